//! Proof on a graphics card that hardware rounds as [`cast`](crate::cast) says, and how fast it does.
//!
//! A cast from float32 is a step function of the bits. The card lists every input at which its result
//! changes, over all 2^32 of them, and [`steps`] makes the same list from this tool's casts: the lists are
//! equal or the card differs. No second implementation of rounding runs on the card. [`table`] has the
//! instructions, [`target`] the chips; [`ptx`], [`bulk`] and [`blocks`] write the kernels around them; `driver`
//! talks to the card, and is the only file with unsafe code; [`validate`] and [`stochastic`] ask and compare,
//! [`throughput`] times.
//!
//! NVIDIA cards only. The driver is looked for at run time: nothing of CUDA is needed to build or to start.

mod absent;
mod answer;
pub mod blocks;
pub mod bulk;
pub mod cpu;
mod driver;
pub mod hostile;
pub mod own;
pub mod ptx;
pub mod steps;
pub mod stochastic;
pub mod table;
pub mod target;
pub mod throughput;
pub mod validate;

pub use absent::Absent;
pub use driver::{Device, Environment};

use crate::cast::profile::Profile;
use crate::cast::{CastPlan, Rounding};
use crate::error::{Error, Result};
use crate::format::{self, FormatSpec};
use table::{CONVERSIONS, Random, Since};
use target::Target;

/// One conversion instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conversion {
    /// The format converted from.
    pub from: &'static str,
    /// The format converted to.
    pub to: &'static str,
    /// The rounding mode in its name.
    pub rounding: Rounding,
    /// The PTX instruction with its types.
    pub instruction: &'static str,
    /// Values that it converts at once: 1, 2 or 4.
    pub lanes: u32,
    /// Since when it exists.
    pub since: Since,
    /// What the machine code has for it, one of these.
    pub machine: &'static [&'static str],
    /// Whether the codes of NaNs are fixed by its description. If not, NaN inputs are not compared.
    pub nan_codes_known: bool,
    /// Where its random bits come from, if it takes any.
    pub random: Option<Random>,
}

impl Conversion {
    /// Whether the target has it.
    pub fn is_on(&self, target: &Target) -> bool {
        target.capability >= self.since.capability && target.reach >= self.since.reach
    }

    /// Whether the chips that have it convert in hardware (four values by two instructions); if not, the assembler
    /// writes a few of integers.
    pub fn is_one_instruction(&self) -> bool {
        self.machine.iter().all(|name| name.starts_with("F2F") || name.starts_with("HADD2"))
    }

    /// Whether its source is a pair of packed codes of up to 8 bits.
    pub fn takes_pairs(&self) -> bool {
        self.lanes == 2 && ptx::container(self.from) <= 8
    }

    /// The format converted to.
    ///
    /// # Errors
    /// The table names a format that there is none of.
    pub fn target(&self) -> Result<FormatSpec> {
        format::find(self.to)
    }

    /// The cast of this tool that it must equal: overflow and NaN codes are those of the profile `nvidia`. With
    /// stochastic rounding the random bits are those of [`stochastic`].
    ///
    /// # Errors
    /// As [`target`](Self::target), or there is no such profile.
    pub fn plan(&self) -> Result<CastPlan> {
        let profile = Profile::find("nvidia").ok_or_else(|| Error::new("there is no profile nvidia"))?;
        Ok(CastPlan { rounding: self.rounding, ..profile.plan(self.target()?) })
    }

    /// From what to what, and how: `float32→e4m3fn nearest-even`.
    pub fn name(&self) -> String {
        let exact = self.from != "float32" && ptx::container(self.from) < ptx::container(self.to);
        let rounding = if exact { String::new() } else { format!(" {}", self.rounding.name()) };
        let lanes = if self.lanes > 1 { format!(" x{}", self.lanes) } else { String::new() };
        format!("{}→{}{rounding}{lanes}", self.from, self.to)
    }
}

/// A question to the card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Job {
    /// One instruction.
    One(&'static Conversion),
    /// float32 to a format and back to float32.
    Roundtrip {
        /// To the format.
        encode: &'static Conversion,
        /// To a format of 16 bits, if it is not one.
        decode: Option<&'static Conversion>,
        /// From 16 bits to float32.
        widen: &'static Conversion,
    },
}

impl Job {
    /// Every question about the formats of these names, or about all if there are none.
    pub fn all(formats: &[&str]) -> Vec<Self> {
        let wanted = |row: &&Conversion| {
            formats.is_empty() || formats.contains(&row.to) || formats.contains(&row.from)
        };
        let ones = CONVERSIONS.iter().filter(wanted).map(Self::One);
        let trips = roundtrip_formats().filter(|name| formats.is_empty() || formats.contains(name));
        ones.chain(trips.filter_map(Self::roundtrip)).collect()
    }

    /// To the format and back; `None` where the way back is missing.
    pub fn roundtrip(format: &str) -> Option<Self> {
        let encode = encoder(format, |_| true)?;
        let (decode, widen) = decoder(format)?;
        Some(Self::Roundtrip { encode, decode, widen })
    }

    /// The instructions in question.
    pub fn rows(&self) -> Vec<&'static Conversion> {
        match self {
            Self::One(row) => vec![row],
            Self::Roundtrip { encode, decode, widen } => {
                [Some(*encode), *decode, Some(*widen)].into_iter().flatten().collect()
            }
        }
    }

    /// Whether the target has all of them.
    pub fn is_on(&self, target: &Target) -> bool {
        self.rows().iter().all(|row| row.is_on(target))
    }

    /// Whether all float32 are inputs; if not, all codes of 16 bits, or all pairs of codes of 8.
    pub fn walks(&self) -> bool {
        self.rows().first().is_some_and(|row| row.from == "float32")
    }

    /// Values at once in the first instruction, each of which is in question.
    pub fn lanes(&self) -> u32 {
        match self {
            Self::One(row) if row.takes_pairs() => 1,
            Self::One(row) => row.lanes,
            Self::Roundtrip { encode, .. } => encode.lanes,
        }
    }

    /// The name of the kernel in [`ptx::job`].
    pub fn kernel(&self) -> &'static str {
        if self.walks() { "walk" } else { "table" }
    }

    /// From what to what, and how.
    pub fn name(&self) -> String {
        match self {
            Self::One(row) => row.name(),
            Self::Roundtrip { encode, .. } => format!("{}→float32", encode.name()),
        }
    }

    /// Whether NaN inputs have a result that is documented.
    pub fn nan_codes_known(&self) -> bool {
        self.rows().iter().all(|row| row.nan_codes_known)
    }
}

/// Formats with a way there and back.
fn roundtrip_formats() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> = Vec::new();
    for row in CONVERSIONS.iter().filter(|row| row.from == "float32") {
        if !names.contains(&row.to) {
            names.push(row.to);
        }
    }
    names.into_iter().filter(|name| Job::roundtrip(name).is_some())
}

/// The instruction of the table that rounds float32 to nearest, two at once if there is one like that.
fn encoder(format: &str, usable: impl Fn(&Conversion) -> bool) -> Option<&'static Conversion> {
    let nearest = |row: &&Conversion| {
        row.from == "float32" && row.to == format && row.rounding == Rounding::NearestEven && usable(row)
    };
    CONVERSIONS.iter().filter(nearest).max_by_key(|row| row.lanes)
}

/// The instructions from a format to float32: to 16 bits first, if it is narrower.
fn decoder(format: &str) -> Option<(Option<&'static Conversion>, &'static Conversion)> {
    let from =
        |name: &str| CONVERSIONS.iter().find(|row| row.from == name && row.lanes == 1 && row.to == "float32");
    if let Some(widen) = from(format) {
        return Some((None, widen));
    }
    let decode = CONVERSIONS.iter().find(|row| row.from == format && row.takes_pairs())?;
    Some((Some(decode), from(decode.to)?))
}
