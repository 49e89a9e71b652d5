//! The parameters of a scaler: their names upstream, their defaults, and which values are refused.

use super::ScalerSpec;
use crate::error::{Error, Result};

/// Something that can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The name upstream, or the nearest to it.
    pub name: &'static str,
    /// The default upstream; NaN is `none`.
    pub default: f64,
    /// Which values can be taken.
    pub range: Range,
}

/// Which values a parameter can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Zero or positive, infinity too: upstream tests nothing.
    Scale,
    /// Finite, zero or positive.
    Number,
    /// As `Number`, or `none`.
    Optional,
    /// Positive: upstream divides by it or refuses 0.
    Positive,
    /// Above 1: upstream refuses the others.
    AboveOne,
    /// Below 1: upstream refuses the others.
    BelowOne,
    /// A whole number from 0 on.
    Count,
    /// A whole number from 1 on: upstream divides by it or refuses 0.
    Divisor,
    /// `true` or `false`.
    Flag,
}

impl Range {
    /// The values in words, after "must be".
    fn words(self) -> &'static str {
        match self {
            Self::Scale | Self::Number => "a number that is not negative",
            Self::Optional => "a number that is not negative, or none",
            Self::Positive => "a positive number",
            Self::AboveOne => "above 1, or the framework refuses it",
            Self::BelowOne => "from 0 to below 1, or the framework refuses it",
            Self::Count => "a whole number that is not negative",
            Self::Divisor => "a whole number from 1 on, or the framework fails",
            Self::Flag => "true or false",
        }
    }

    fn contains(self, x: f64) -> bool {
        let whole = x.fract() == 0.0 && x <= 2_f64.powi(53);
        match self {
            Self::Scale => x >= 0.0,
            Self::Number => (0.0..f64::INFINITY).contains(&x),
            Self::Optional => x.is_nan() || (0.0..f64::INFINITY).contains(&x),
            Self::Positive => x > 0.0 && x < f64::INFINITY,
            Self::AboveOne => x > 1.0 && x < f64::INFINITY,
            Self::BelowOne => (0.0..1.0).contains(&x),
            Self::Count => x >= 0.0 && whole,
            Self::Divisor => x >= 1.0 && whole,
            Self::Flag => x == 0.0 || x == 1.0,
        }
    }
}

impl Parameter {
    /// A parameter with its default.
    pub const fn new(name: &'static str, default: f64, range: Range) -> Self {
        Self { name, default, range }
    }

    /// A value as it is typed: 65536, 2^16, 1e-4, none, true.
    fn parse(&self, text: &str) -> Option<f64> {
        let value = match text.strip_prefix("2^") {
            Some(exponent) => 2_f64.powi(exponent.parse().ok()?),
            None if text.eq_ignore_ascii_case("none") => f64::NAN,
            None if self.range == Range::Flag && text == "true" => 1.0,
            None if self.range == Range::Flag && text == "false" => 0.0,
            None => text.parse().ok().filter(|x: &f64| !x.is_nan())?,
        };
        self.range.contains(value).then_some(value)
    }

    /// A value as it can be typed.
    pub fn text(&self, value: f64) -> String {
        let power = (0..127).find(|&k| k > 9 && value == 2_f64.powi(k));
        match (self.range, power) {
            (_, _) if value.is_nan() => "none".into(),
            (Range::Flag, _) => (value == 1.0).to_string(),
            (Range::Scale | Range::Optional | Range::Positive, Some(power)) => format!("2^{power}"),
            _ => value.to_string(),
        }
    }
}

/// A value for each parameter of one scaler, in the order of its table row.
#[derive(Clone, Debug)]
pub struct Settings(Vec<f64>);

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|x| x.to_bits()).eq(other.0.iter().map(|x| x.to_bits()))
    }
}

impl Settings {
    /// The upstream defaults.
    pub fn defaults(spec: &ScalerSpec) -> Self {
        Self(spec.parameters.iter().map(|parameter| parameter.default).collect())
    }

    /// Sets the parameter called `name` from text. `false` if the scaler has none of this name.
    ///
    /// # Errors
    /// The parameter cannot have this value.
    pub fn set(&mut self, spec: &ScalerSpec, name: &str, text: &str) -> Result<bool> {
        let Some(index) = spec.parameters.iter().position(|parameter| parameter.name == name) else {
            return Ok(false);
        };
        let parameter = &spec.parameters[index];
        self.0[index] = parameter.parse(text).ok_or_else(|| {
            let must = parameter.range.words();
            Error::new(format!("{}: {name} must be {must}; got '{text}'", spec.name))
        })?;
        Ok(true)
    }

    /// The values, in the order of the parameters.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The first `N` values.
    pub(super) fn take<const N: usize>(&self) -> [f64; N] {
        std::array::from_fn(|index| self.0.get(index).copied().unwrap_or(f64::NAN))
    }
}
