//! The parameters of formats, under the names that the JSON uses.

use serde::{Serialize, Serializer};

use super::super::code::hex;
use super::super::number::{Num, binary};
use super::super::{SCHEMA_VERSION, Tool, histogram};
use crate::format::FormatSpec;

/// Everything that `formats` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct FormatsReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `formats`.
    pub command: &'static str,
    /// What the names of the figures mean.
    #[serde(serialize_with = "histogram::as_map")]
    pub definitions: &'static [(&'static str, &'static str)],
    /// The formats, in the order asked for.
    pub formats: Vec<FormatEntry>,
    /// What other tables get wrong about these formats.
    pub notes: Vec<&'static str>,
}

/// A format and everything that follows from its row.
#[derive(Clone, Debug, Serialize)]
pub struct FormatEntry {
    /// Canonical name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Where the format is defined.
    pub source: &'static str,
    /// Width in bits.
    pub bits: u32,
    /// Bits of the sign field.
    pub sign_bits: u32,
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// Bits of the significand field.
    pub significand_bits: u32,
    /// Significand bits including the implicit one.
    pub precision_bits: u32,
    /// Exponent bias.
    pub exponent_bias: i32,
    /// Exponent of the smallest normal number.
    pub emin: i32,
    /// Exponent of the largest finite number.
    pub emax: i32,
    /// Largest finite number.
    pub max_finite: Limit,
    /// Magnitudes above this, or from it on, overflow.
    pub overflow_threshold: Limit,
    /// Whether the threshold itself overflows.
    pub overflow_includes_threshold: bool,
    /// Smallest normal number.
    pub min_normal: Limit,
    /// Largest subnormal number.
    pub max_subnormal: Option<Limit>,
    /// Smallest subnormal number.
    pub min_subnormal: Option<Limit>,
    /// Magnitudes up to and including this become zero.
    pub flush_threshold: Option<Limit>,
    /// Distance from 1 to the next larger number.
    pub epsilon: Limit,
    /// Code of +Inf.
    pub infinity_code: Option<String>,
    /// How many codes are NaN.
    pub nan_codes: u64,
    /// The NaN that a cast gives, of positive sign where it has one.
    pub nan_code: Option<String>,
    /// Whether there is a −0.
    pub negative_zero: bool,
    /// How many codes are finite, both zeros counted.
    pub finite_codes: u64,
    /// The limits as odd integers times powers of two, by the names of their fields.
    #[serde(serialize_with = "histogram::as_map")]
    pub binary: Vec<(&'static str, String)>,
    /// The row itself, for renderers.
    #[serde(skip)]
    pub format: FormatSpec,
}

/// An exact number. JSON has the number here, and the other notation under `binary` of the format.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The number.
    pub value: Num,
    /// The same as an odd integer times a power of two.
    pub binary: String,
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl Limit {
    fn new(x: f64) -> Self {
        Self { value: Num(x), binary: binary(x) }
    }
}

const DEFINITIONS: &[(&str, &str)] = &[
    ("precision_bits", "significand bits, the implicit one included"),
    ("emin, emax", "exponents of the smallest normal and the largest finite number, as 1.x·2^e"),
    (
        "overflow_threshold",
        "rounding to nearest, magnitudes above this overflow; the threshold itself does if \
         overflow_includes_threshold. It is half an ulp above max_finite",
    ),
    ("flush_threshold", "rounding to nearest, magnitudes up to and including this become zero"),
    ("epsilon", "distance from 1 to the next larger number, 2^(1 − precision_bits)"),
    ("binary", "the limits as odd integers times powers of two"),
    ("nan_code", "the NaN that a cast gives, of positive sign where it has one"),
];

/// What tables elsewhere get wrong, and the formats that it is about.
const NOTES: &[(&[&str], &str)] = &[
    (
        &["e4m3fn", "e5m2"],
        "Many tables print 2^-9 (0.00195) as e4m3fn's and 2^-16 (1.53e-5) as e5m2's smallest normal number. \
         Those are the smallest subnormals; the smallest normal numbers are 2^-6 (0.0156) and 2^-14 (6.10e-5).",
    ),
    (
        &["e4m3fn", "e4m3ieee"],
        "The largest number of OCP's E4M3 (e4m3fn) is 448: one NaN code a sign, and no Inf. 240 is that of the \
         IEEE-like e4m3ieee, which chop and pychop mean by E4M3; 480 (CPFloat, QPyTorch, some decoders) takes the \
         NaN code for a number, and 416 (constant of the crate float8) takes 448 for Inf.",
    ),
    (
        &["e4m3fn", "float16", "e5m2"],
        "Overflow does not begin at the largest number but half an ulp above it: e4m3fn rounds what is up to 464 to \
         448, e5m2 what is below 61440 to 57344, float16 what is below 65520 to 65504. Transformer Engine's \
         overflows% counts everything above the largest number.",
    ),
    (
        &["float16", "e5m2"],
        "131008 for float16 and 114688 for e5m2 (QPyTorch) use up the exponent that IEEE 754 keeps for Inf and NaN.",
    ),
];

impl FormatsReport {
    /// The parameters of `formats`.
    pub fn new(formats: &[FormatSpec]) -> Self {
        let named = |names: &[&str]| formats.iter().any(|format| names.contains(&format.name));
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "formats",
            definitions: DEFINITIONS,
            formats: formats.iter().map(FormatEntry::new).collect(),
            notes: NOTES.iter().filter(|(names, _)| named(names)).map(|(_, note)| *note).collect(),
        }
    }
}

impl FormatEntry {
    fn new(format: &FormatSpec) -> Self {
        let subnormals = format.min_subnormal().is_some();
        let signs = if format.signed { 2 } else { 1 };
        let nan_codes = signs * u64::from(format.high_nans) + u64::from(format.nan_is_negative_zero());
        let code = |code: u32| hex(code.into(), format.bits);
        let mut entry = Self {
            name: format.name,
            aliases: format.aliases,
            source: format.source,
            bits: format.bits,
            sign_bits: format.signed.into(),
            exponent_bits: format.exponent_bits(),
            significand_bits: format.trailing_bits(),
            precision_bits: format.precision,
            exponent_bias: format.bias,
            emin: format.emin(),
            emax: format.emax(),
            max_finite: Limit::new(format.max_finite()),
            overflow_threshold: Limit::new(format.overflow_threshold()),
            overflow_includes_threshold: format.overflow_includes_tie(),
            min_normal: Limit::new(format.min_normal()),
            max_subnormal: subnormals
                .then(|| Limit::new(format.magnitude((1 << format.trailing_bits()) - 1))),
            min_subnormal: format.min_subnormal().map(Limit::new),
            flush_threshold: format.flush_threshold().map(Limit::new),
            epsilon: Limit::new(format.epsilon()),
            infinity_code: format.infinity_code().map(code),
            nan_codes,
            nan_code: format.nan_code(false).map(code),
            negative_zero: format.negative_zero,
            finite_codes: (1_u64 << format.bits) - nan_codes - signs * u64::from(format.infinities),
            binary: Vec::new(),
            format: *format,
        };
        let limits = [
            ("max_finite", Some(&entry.max_finite)),
            ("overflow_threshold", Some(&entry.overflow_threshold)),
            ("min_normal", Some(&entry.min_normal)),
            ("max_subnormal", entry.max_subnormal.as_ref()),
            ("min_subnormal", entry.min_subnormal.as_ref()),
            ("flush_threshold", entry.flush_threshold.as_ref()),
            ("epsilon", Some(&entry.epsilon)),
        ];
        let binary = limits.iter().filter_map(|(name, limit)| limit.map(|l| (*name, l.binary.clone())));
        entry.binary = binary.collect();
        entry
    }
}
