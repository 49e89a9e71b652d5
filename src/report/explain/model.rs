//! The figures of an `explain` report, under the names that its JSON uses.

use serde::Serialize;

use super::super::code::{Fields, hex};
use super::super::number::{Num, binary, exact};
use super::super::{SCHEMA_VERSION, Tool, histogram};
use super::neighbours::{Neighbour, Place};
use super::{CodesOf, Given};
use crate::cast::CastPlan;
use crate::cast::round::{Cast, Class};

/// Everything that `explain` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `explain`.
    pub command: &'static str,
    /// What the user asked for.
    pub options: Options,
    /// What the names of the figures mean.
    #[serde(serialize_with = "histogram::as_map")]
    pub definitions: &'static [(&'static str, &'static str)],
    /// The values, in the order given.
    pub values: Vec<Explained>,
}

/// The options that fixed the figures.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// Factor applied to every value before the casts.
    pub scale: f32,
    /// Rounding mode.
    pub rounding: &'static str,
    /// The format whose codes the values are, if they are codes.
    pub from: Option<&'static str>,
}

/// One value and what becomes of it.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    /// The value.
    #[serde(flatten)]
    pub given: Given,
    /// The value times the scale: what is cast.
    pub product: Num,
    /// What each format makes of it.
    pub formats: Vec<CastRow>,
}

/// What one format makes of one value.
#[derive(Clone, Debug, Serialize)]
pub struct CastRow {
    /// The format's name.
    pub format: &'static str,
    /// Overflow policy in force.
    pub overflow: &'static str,
    /// What happened.
    pub class: &'static str,
    /// The stored code in hex.
    pub code: String,
    /// The bits of its fields.
    pub fields: Fields,
    /// The number that the code means.
    pub stored: Num,
    /// All its decimals.
    pub stored_decimal: String,
    /// The same as an odd integer times a power of two.
    pub stored_binary: String,
    /// The stored number divided by the scale.
    pub dequantised: Num,
    /// dequantised − value.
    pub error: Option<Num>,
    /// Percent of the value, positive away from zero.
    pub error_pct: Option<Num>,
    /// stored − product in ulps, positive away from zero.
    pub error_ulp: Option<Num>,
    /// The distance between the format's numbers around the product.
    pub ulp: Option<Num>,
    /// Whether the format holds the product itself.
    pub exact: bool,
    /// The format's next smaller number.
    pub below: Option<Near>,
    /// The format's next larger number.
    pub above: Option<Near>,
    /// Halfway between the two, or where overflow begins.
    pub tie: Option<Num>,
    /// Where the product lies as seen from the tie: `below`, `at` or `above`.
    pub side: Option<&'static str>,
}

/// A neighbour.
#[derive(Clone, Debug, Serialize)]
pub struct Near {
    /// Its code in hex.
    pub code: String,
    /// Its value.
    pub value: Num,
}

const DEFINITIONS: &[(&str, &str)] = &[
    ("value", "x, the number cast: a decimal is first rounded to the nearest float64"),
    ("held", "x in wider formats; exact says whether that is the number as typed"),
    ("product", "p = x·s, one multiplication: in float32 for codes of up to 32 bits, else in float64"),
    ("stored", "q, p cast to the format in one rounding"),
    ("dequantised", "q / s"),
    ("error", "q/s − x; undefined if either is not finite"),
    ("error_pct", "100·(q/s − x) / x: positive away from zero"),
    ("error_ulp", "(q − p) / ulp, positive away from zero"),
    (
        "ulp",
        "the distance between the two numbers of the format around p; beyond the largest number, that number's",
    ),
    ("below, above", "the numbers of the format next to p, p itself excluded"),
    (
        "tie",
        "halfway between below and above; beyond the largest number, where rounding to nearest overflows",
    ),
    ("side", "where p lies as seen from the tie: below or above it on the number line, or at it"),
    (
        "class",
        "underflow: finite and nonzero, but q is zero. subnormal, normal: what q is. overflow: p rounded with \
         unbounded exponent exceeds the largest finite number. nan, inf, zero: what x is",
    ),
];

impl ExplainReport {
    /// Casts each value to each format.
    pub fn new(values: Vec<Given>, casts: &[CastPlan], scale: f32, from: Option<CodesOf>) -> Self {
        let rounding = casts.first().map_or("", |plan| plan.rounding.name());
        let values = values
            .into_iter()
            .zip(0..)
            .map(|(given, index)| {
                let product = given.product(scale);
                let row = |plan| CastRow::new(plan, given.value.0, product, given.cast(plan, index));
                let formats = casts.iter().map(row).collect();
                Explained { given, product: Num(product), formats }
            })
            .collect();
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "explain",
            options: Options { scale, rounding, from: from.map(|from| from.name()) },
            definitions: DEFINITIONS,
            values,
        }
    }
}

impl Explained {
    /// Whether the first rounding, of what was typed to float64, ended on a tie of a format, so that the cast is not
    /// that of the number as typed.
    pub(super) fn moved_to_a_tie(&self) -> bool {
        let rounded = self.given.held.first().is_some_and(|held| !held.exact);
        rounded && self.formats.iter().any(|row| row.side == Some("at"))
    }
}

impl CastRow {
    fn new(plan: &CastPlan, x: f64, product: f64, q: Cast) -> Self {
        let format = &plan.target;
        let stored = q.value(format);
        let dequantised = plan.dequantise(q);
        let place = product.is_finite().then(|| Place::of(format, product));
        let known = x.is_finite() && dequantised.is_finite();
        let error = dequantised - x;
        let near = |n: Option<Neighbour>| {
            n.map(|n| Near { code: hex(n.code.into(), format.bits), value: Num(n.value) })
        };
        // Steps of a format do not measure what is on the other side of zero from all its numbers.
        let ulp = place.map(|place| place.ulp).filter(|_| format.signed || product >= 0.0);
        let away = |error: f64| Num(if error == 0.0 { 0.0 } else { error * product.signum() });
        Self {
            format: format.name,
            overflow: plan.overflow.name(),
            class: class_name(q.class),
            code: hex(q.code.into(), format.bits),
            fields: Fields::of(format, q.code),
            stored: Num(stored),
            stored_decimal: exact(stored),
            stored_binary: binary(stored),
            dequantised: Num(dequantised),
            error: known.then_some(Num(error)),
            error_pct: (known && x != 0.0).then(|| away(100.0 * error / x.abs())),
            error_ulp: ulp.filter(|_| known).map(|ulp| away((stored - product) / ulp)),
            ulp: ulp.map(Num),
            exact: place.is_some_and(|place| place.exact),
            below: near(place.and_then(|place| place.below)),
            above: near(place.and_then(|place| place.above)),
            tie: place.and_then(|place| place.tie).map(Num),
            side: place.and_then(|place| place.side(product)).map(|side| match side {
                std::cmp::Ordering::Less => "below",
                std::cmp::Ordering::Equal => "at",
                std::cmp::Ordering::Greater => "above",
            }),
        }
    }
}

pub(in crate::report) fn class_name(class: Class) -> &'static str {
    match class {
        Class::Nan => "nan",
        Class::Inf => "inf",
        Class::Zero => "zero",
        Class::Underflow => "underflow",
        Class::Subnormal => "subnormal",
        Class::Normal => "normal",
        Class::Overflow => "overflow",
    }
}
