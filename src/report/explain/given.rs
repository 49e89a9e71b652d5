//! What was typed as a VALUE, and the number that it means.

use serde::Serialize;

use super::super::code::{Fields, hex};
use super::super::number::{Num, binary, exact};
use crate::cast::round::Cast;
use crate::cast::round::cast;
use crate::cast::{CastPlan, Place};
use crate::cast::{Overflow, Rounding};
use crate::error::{Error, Result, escape};
use crate::format::decode::decode;
use crate::format::literal::{self, Literal};
use crate::format::{self, FormatSpec};

/// The format whose codes are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CodesOf {
    /// One of at most 32 bits.
    Format(FormatSpec),
    /// IEEE 754 binary64, which is no target of a cast.
    Float64,
}

impl CodesOf {
    /// Reads any format name, or `float64`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(name: &str) -> Result<Self> {
        if matches!(name.to_ascii_lowercase().as_str(), "float64" | "fp64" | "f64" | "double") {
            return Ok(Self::Float64);
        }
        format::find(name).map(Self::Format)
    }

    /// The format's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Format(format) => format.name,
            Self::Float64 => "float64",
        }
    }
}

/// What is typed can be one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `0.1`, `inf`, `nan`
    Decimal,
    /// `0x1.8p-3`
    Hexadecimal,
    /// `0x3f800001`
    Code,
}

/// A number as a wide format holds it.
#[derive(Clone, Debug, Serialize)]
pub struct Held {
    /// The format's name.
    pub format: &'static str,
    /// The code in hex.
    pub code: String,
    /// The bits of its fields.
    pub fields: Fields,
    /// Whether this is the number as it was typed.
    pub exact: bool,
    /// The number held.
    pub value: Num,
    /// All its decimals.
    pub decimal: String,
    /// The same as an odd integer times a power of two.
    pub binary: String,
}

/// A VALUE, understood.
#[derive(Clone, Debug, Serialize)]
pub struct Given {
    /// As typed.
    pub input: String,
    /// What it is.
    pub form: Form,
    /// The number that is cast.
    pub value: Num,
    /// For a code its format; for a number float64, from which it is cast, and float32.
    pub held: Vec<Held>,
}

impl Given {
    /// Reads a VALUE: a code if `from` names a format, else a decimal, a hexadecimal float or the 8 hex
    /// digits of a float32.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str, from: Option<CodesOf>) -> Result<Self> {
        let text = text.trim();
        if let Some(from) = from {
            return Self::code(text, from);
        }
        let unsigned = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
        let Some(digits) = unsigned.strip_prefix("0x") else {
            return Ok(Self::number(text, Form::Decimal, literal::decimal(text)?));
        };
        if digits.contains(['.', 'p']) {
            return Ok(Self::number(text, Form::Hexadecimal, literal::hexadecimal(text)?));
        }
        let refuse = |why: &str| Err(Error::new(format!("'{}' {why}", escape(text))));
        if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return refuse("is not hexadecimal");
        }
        if unsigned.len() != text.len() {
            return refuse(
                "has a sign before a code, whose sign is its top bit; a hexadecimal float has a p (-0x1p3)",
            );
        }
        if digits.len() != 8 {
            return refuse(
                "is not the 8 hex digits of a float32; --from FORMAT reads codes of other formats (--from e4m3fn \
                 0x7e), and a p makes a hexadecimal float (0x7ep0)",
            );
        }
        Self::code(text, CodesOf::Format(format::find("float32")?))
    }

    fn code(text: &str, from: CodesOf) -> Result<Self> {
        let held = match from {
            CodesOf::Float64 => held_double(f64::from_bits(literal::code(text, "float64", 64)?), true),
            CodesOf::Format(format) => {
                held(&format, literal::code(text, format.name, format.bits)? as u32, true)
            }
        };
        Ok(Self { input: text.to_owned(), form: Form::Code, value: held.value, held: vec![held] })
    }

    fn number(text: &str, form: Form, literal: Literal) -> Self {
        let mut forms = vec![held_double(literal.value, literal.exact)];
        if let Ok(single) = format::find("float32") {
            let q = cast(&single, Rounding::NearestEven, Overflow::Ieee, literal.single.into());
            forms.push(held(&single, q.code, literal.exact_in_single()));
        }
        Self { input: text.to_owned(), form, value: Num(literal.value), held: forms }
    }

    /// x · `scale`, one multiplication in the precision of the source: float32 for codes of up to 32 bits,
    /// else float64.
    pub fn product(&self, scale: f32) -> f64 {
        let x = self.value.0;
        if self.is_narrow() { f64::from(x as f32 * scale) } else { x * f64::from(scale) }
    }

    /// The cast of the value, for stochastic rounding with the random bits of the element at `index`.
    pub(super) fn cast(&self, plan: &CastPlan, index: u64) -> Cast {
        let (x, place) = (self.value.0, Place { stream: 0, index });
        if self.is_narrow() { plan.cast_f32(x as f32, place) } else { plan.cast_f64(x, place) }
    }

    fn is_narrow(&self) -> bool {
        self.form == Form::Code && self.held.iter().all(|held| held.format != "float64")
    }
}

fn held(format: &FormatSpec, code: u32, exact_input: bool) -> Held {
    let value = decode(format, code);
    Held {
        format: format.name,
        code: hex(code.into(), format.bits),
        fields: Fields::of(format, code),
        exact: exact_input,
        value: Num(value),
        decimal: exact(value),
        binary: binary(value),
    }
}

fn held_double(value: f64, exact_input: bool) -> Held {
    let code = value.to_bits();
    Held {
        format: "float64",
        code: hex(code, 64),
        fields: Fields::of_float64(code),
        exact: exact_input,
        value: Num(value),
        decimal: exact(value),
        binary: binary(value),
    }
}
