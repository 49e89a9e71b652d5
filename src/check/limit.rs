//! Limits of figures: numbers, or what follows from the baseline's figure by arithmetic.
//!
//! A limit is a finite number. The one exception: against a baseline that is itself infinite, as the SQNR of a cast
//! that loses nothing, an infinite limit is as good as any.

/// How a figure and its limit compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

pub(super) const RELATIONS: &[(&str, Relation)] = &[
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("==", Relation::Equal),
    ("!=", Relation::Unequal),
    ("<", Relation::Below),
    (">", Relation::Above),
];

impl Relation {
    /// Whether `figure` keeps to `limit`.
    pub fn holds(self, figure: f64, limit: f64) -> bool {
        match self {
            Self::AtMost => figure <= limit,
            Self::Below => figure < limit,
            Self::AtLeast => figure >= limit,
            Self::Above => figure > limit,
            Self::Equal => figure == limit,
            Self::Unequal => figure != limit,
        }
    }
}

/// A limit, which may follow from the baseline's figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A number.
    Number(f64),
    /// The same figure of the same tensor in the baseline.
    Baseline,
    /// The negative of another.
    Minus(Box<Limit>),
    /// Two joined by `+`, `-`, `*` or `/`.
    Join(Box<Limit>, char, Box<Limit>),
}

impl Limit {
    /// Its value, given the baseline's figure.
    pub fn value(&self, baseline: f64) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Baseline => baseline,
            Self::Minus(limit) => -limit.value(baseline),
            Self::Join(a, operator, b) => {
                let (a, b) = (a.value(baseline), b.value(baseline));
                match operator {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ => a / b,
                }
            }
        }
    }

    /// Whether a figure can be compared with it, given the baseline's.
    pub fn is_meaningful(&self, baseline: f64) -> bool {
        let value = self.value(baseline);
        value.is_finite() || value.is_infinite() && baseline.is_infinite()
    }

    /// Whether it follows from the baseline.
    pub fn is_relative(&self) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Baseline => true,
            Self::Minus(limit) => limit.is_relative(),
            Self::Join(a, _, b) => a.is_relative() || b.is_relative(),
        }
    }
}
