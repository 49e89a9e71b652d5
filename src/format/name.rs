//! From what a user types to a format: a row's name or alias, or `e<E>m<M>` for any other format.

use super::table::FORMATS;
use super::{BlockSpec, FormatSpec, block, find_block, pow2};
use crate::error::{Error, Result};

/// Finds a format by name, alias or description.
///
/// Case, a `torch.` prefix and the difference between `-` and `_` do not matter. What no row is called
/// may be described: `e<E>m<M>` follows IEEE 754 (Inf and NaNs in the top binade); `b<bias>` sets the
/// bias; `fn` has no Inf and, from 8 bits on, one NaN at the top; `fnuz` has its one NaN in place of
/// −0 and a bias one larger.
///
/// # Errors
/// An unknown name, or a description that is not a format of at most 32 bits whose every finite
/// number is a normal f64.
///
/// ```
/// use amp_inspect::format::find;
/// assert_eq!(find("E4M3").unwrap().name, "e4m3fn");
/// assert_eq!(find("e5m3b14").unwrap().max_finite(), 122880.0);
/// assert!(find("e9m2").is_err());
/// ```
pub fn find(text: &str) -> Result<FormatSpec> {
    let lower = text.trim().to_ascii_lowercase().replace('-', "_");
    let name = lower.strip_prefix("torch.").unwrap_or(&lower);
    let row = FORMATS.iter().find(|row| row.name == name || row.aliases.contains(&name));
    if let Some(row) = row {
        return Ok(*row);
    }
    if block::is_block(name)
        && let Ok(spec) = find_block(name)
    {
        let (element, scale) = (spec.element.name, spec.scale.name);
        return Err(Error::new(format!(
            "{} is a block format: its elements are {element}, and those of a block share a scale in {scale}; name \
             either of these formats",
            spec.name
        )));
    }
    match parse(name) {
        Some(description) => description.format(name),
        None => Err(Error::new(format!(
            "unknown format '{}'; known are {}, or describe one as e<E>m<M> with b<bias>, fn or fnuz",
            crate::error::escape(text),
            FORMATS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// What a user may name where a format is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A format whose every element stands for itself.
    Plain(FormatSpec),
    /// A format whose elements share a scale with their block.
    Block(BlockSpec),
}

/// Finds a plain or a block format.
///
/// # Errors
/// Those of [`find`] and [`find_block`].
pub fn find_any(text: &str) -> Result<Named> {
    if block::is_block(text) {
        return find_block(text).map(Named::Block);
    }
    let unknown = |error: Error| {
        let blocks: Vec<_> = super::table::BLOCK_FORMATS.iter().map(|row| row.name).collect();
        match parse(text) {
            None => Error::new(format!("{}; in blocks: {}", error.what(), blocks.join(", "))),
            Some(_) => error,
        }
    };
    find(text).map(Named::Plain).map_err(unknown)
}

/// `e<E>m<M>[b<bias>][fn|fnuz]`, read but not yet judged.
struct Description {
    exponent_bits: u32,
    trailing_bits: u32,
    bias: Option<i32>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ieee,
    Finite,
    UnsignedZero,
}

fn parse(name: &str) -> Option<Description> {
    let (exponent_bits, rest) = number(name.strip_prefix('e')?)?;
    let (trailing_bits, mut rest) = number(rest.strip_prefix('m')?)?;
    let mut bias = None;
    if let Some(after) = rest.strip_prefix('b') {
        let (value, after) = number(after)?;
        bias = Some(i32::try_from(value).ok()?);
        rest = after;
    }
    let kind = match rest {
        "" => Kind::Ieee,
        "fn" => Kind::Finite,
        "fnuz" => Kind::UnsignedZero,
        _ => return None,
    };
    Some(Description { exponent_bits, trailing_bits, bias, kind })
}

/// The leading decimal number of `text` (at most 9 digits) and what follows it.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let digits = text.get(..end).filter(|digits| digits.len() <= 9)?;
    Some((digits.parse().ok()?, &text[end..]))
}

impl Description {
    fn format(&self, name: &str) -> Result<FormatSpec> {
        let refuse = |why: &str| Err(Error::new(format!("format '{name}': {why}")));
        let (exponent_bits, trailing_bits) = (self.exponent_bits, self.trailing_bits);
        if !(1..=8).contains(&exponent_bits) {
            return refuse("the exponent field must have 1 to 8 bits");
        }
        if trailing_bits > 23 {
            return refuse("the significand field must have at most 23 bits");
        }
        if self.kind == Kind::Ieee && (exponent_bits < 2 || trailing_bits < 1) {
            return refuse("with Inf and NaN it needs 2 exponent bits and 1 significand bit; add fn");
        }
        let bits = 1 + exponent_bits + trailing_bits;
        let ieee_bias = (1 << (exponent_bits - 1)) - 1;
        let format = FormatSpec {
            // Leaked: formats are values without lifetimes, and a command line describes a handful.
            name: String::leak(name.to_owned()),
            aliases: &[],
            bits,
            precision: trailing_bits + 1,
            bias: self.bias.unwrap_or(ieee_bias + i32::from(self.kind == Kind::UnsignedZero)),
            signed: true,
            infinities: self.kind == Kind::Ieee,
            high_nans: match self.kind {
                Kind::Ieee => (1 << trailing_bits) - 1,
                Kind::Finite => u32::from(bits >= 8),
                Kind::UnsignedZero => 0,
            },
            negative_zero: self.kind != Kind::UnsignedZero,
            subnormals: true,
            twos_complement: false,
            source: "described on the command line",
        };
        if format.magnitude(1) < pow2(-1022) || format.max_finite() > pow2(1000) {
            return refuse("with this bias its numbers leave the range of a 64-bit float");
        }
        Ok(format)
    }
}
