//! Conversions between floating-point types: how many, how large, how long, and which are made again and again.

use std::collections::BTreeMap;

/// A conversion, as it was met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cast {
    /// Index of the copy's call in the trace: the shape is its.
    pub(super) call: u32,
    /// Source and target types.
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    /// Bytes read and written.
    pub(super) bytes: u64,
    /// Time on the CPU in ns, and on the device.
    pub(super) ns: u64,
    pub(super) device_ns: u64,
}

/// Who asked for a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastCause {
    /// Autocast, for a listed op.
    Autocast,
    /// The backward pass, mostly since the gradient of a conversion goes back to the type of its source.
    Backward,
    /// The model's code, or an op that mixes types.
    Explicit,
}

impl CastCause {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Autocast => "autocast",
            Self::Backward => "backward",
            Self::Explicit => "explicit",
        }
    }

    /// In a few words, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Autocast => "autocast",
            Self::Backward => "the backward pass",
            Self::Explicit => "the code, or mixed types",
        }
    }
}

/// Conversions of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastRow {
    /// Type of the source.
    pub from: &'static str,
    /// Type of the result.
    pub to: &'static str,
    /// Who asked for it.
    pub cause: CastCause,
    /// How many.
    pub count: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Time on the CPU in ns.
    pub ns: u64,
    /// Time on the device in ns.
    pub device_ns: u64,
}

/// All conversions of a trace, by kind; and those of weights, by shape.
#[derive(Default)]
pub(super) struct Casts {
    rows: BTreeMap<(&'static str, &'static str, CastCause), CastRow>,
    /// Conversions to the lower precision of what stands where an op has its weights, by shape.
    weights: BTreeMap<Vec<u64>, Repeats>,
    /// How many parameters of a shape got a gradient.
    parameters: BTreeMap<Vec<u64>, u64>,
}

/// Conversions of weights of one shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repeats {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) ns: u64,
    pub(super) device_ns: u64,
}

impl Casts {
    pub(super) fn add(&mut self, cast: &Cast, cause: CastCause) {
        let Cast { from, to, .. } = *cast;
        let empty = CastRow { from, to, cause, count: 0, bytes: 0, ns: 0, device_ns: 0 };
        let row = self.rows.entry((from, to, cause)).or_insert(empty);
        row.count += 1;
        row.bytes = row.bytes.saturating_add(cast.bytes);
        row.ns = row.ns.saturating_add(cast.ns);
        row.device_ns = row.device_ns.saturating_add(cast.device_ns);
    }

    pub(super) fn add_weight(&mut self, shape: &[u64], cast: &Cast) {
        let sum = self.weights.entry(shape.to_vec()).or_default();
        sum.count += 1;
        sum.bytes = sum.bytes.saturating_add(cast.bytes);
        sum.ns = sum.ns.saturating_add(cast.ns);
        sum.device_ns = sum.device_ns.saturating_add(cast.device_ns);
    }

    /// A parameter of this shape got its gradient.
    pub(super) fn add_parameter(&mut self, shape: &[u64]) {
        *self.parameters.entry(shape.to_vec()).or_default() += 1;
    }

    /// The kinds, the longest first.
    pub(super) fn rows(&self) -> Vec<CastRow> {
        let mut rows: Vec<CastRow> = self.rows.values().copied().collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.device_ns, row.ns)));
        rows
    }

    /// Shapes of which more weights were cast than got a gradient: some must have been cast twice. With the
    /// number of parameters.
    pub(super) fn repeats(&self) -> impl Iterator<Item = (&[u64], u64, Repeats)> {
        self.weights.iter().filter_map(|(shape, sum)| {
            let parameters = *self.parameters.get(shape)?;
            (sum.count > parameters).then_some((shape.as_slice(), parameters, *sum))
        })
    }
}
