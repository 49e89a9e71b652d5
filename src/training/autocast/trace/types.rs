//! Types and shapes of the inputs of a call.

/// A floating-point type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Float {
    /// How the profiler writes it.
    pub written: &'static str,
    /// Its usual name.
    pub name: &'static str,
    /// The name where there is little room.
    pub short: &'static str,
    /// Size in bytes.
    pub bytes: u64,
}

const fn float(written: &'static str, name: &'static str, short: &'static str, bytes: u64) -> Float {
    Float { written, name, short, bytes }
}

/// Every floating-point type, the widest first.
pub const TYPES: &[Float] = &[
    float("double", "float64", "fp64", 8),
    float("float", "float32", "fp32", 4),
    float("c10::BFloat16", "bfloat16", "bf16", 2),
    float("c10::Half", "float16", "fp16", 2),
    float("c10::Float8_e4m3fn", "e4m3fn", "e4m3fn", 1),
    float("c10::Float8_e5m2", "e5m2", "e5m2", 1),
    float("c10::Float8_e4m3fnuz", "e4m3fnuz", "e4m3fnuz", 1),
    float("c10::Float8_e5m2fnuz", "e5m2fnuz", "e5m2fnuz", 1),
];

/// The index in [`TYPES`] that stands for everything else: integers, numbers, lists, nothing.
pub(super) const NO_FLOAT: u8 = u8::MAX;

/// A set of floating-point types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Types(u16);

impl Types {
    /// The types, the widest first.
    pub fn floats(self) -> impl Iterator<Item = &'static Float> {
        let rows = TYPES.iter().enumerate();
        rows.filter_map(move |(index, float)| (self.0 >> index & 1 == 1).then_some(float))
    }

    /// Their usual names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.floats().map(|float| float.name)
    }

    /// Whether no floating-point type is known.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether float32 is the widest of them.
    pub fn is_float32(self) -> bool {
        self.floats().next().is_some_and(|widest| widest.name == "float32")
    }

    /// Whether all of them are narrower than float32.
    pub fn is_low(self) -> bool {
        self.floats().next().is_some_and(|widest| widest.bytes < 4)
    }

    /// Whether one of them is narrower than float32.
    pub fn has_low(self) -> bool {
        self.floats().last().is_some_and(|narrowest| narrowest.bytes < 4)
    }
}

/// What the inputs of a call were: types and shapes, in order. Inputs that are no tensor have neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    pub(super) types: Vec<u8>,
    /// All extents one after the other.
    pub(super) extents: Vec<u64>,
    /// Where those of each input end.
    pub(super) ends: Vec<u32>,
}

impl Signature {
    pub(super) fn clear(&mut self) {
        self.types.clear();
        self.extents.clear();
        self.ends.clear();
    }

    /// How many inputs there are, `None` and numbers included.
    pub fn inputs(&self) -> usize {
        self.types.len()
    }

    /// The type of input `index`, of [`TYPES`]; `None` if it is no floating-point tensor.
    pub fn float(&self, index: usize) -> Option<&'static Float> {
        self.types.get(index).and_then(|&number| TYPES.get(usize::from(number)))
    }

    /// All floating-point types among the inputs.
    pub fn types(&self) -> Types {
        let bits = self.types.iter().filter(|&&number| usize::from(number) < TYPES.len());
        Types(bits.fold(0, |set, number| set | 1 << number))
    }

    /// The shape of input `index`; empty for scalars and what is no tensor.
    pub fn shape(&self, index: usize) -> &[u64] {
        let end = |index: usize| self.ends.get(index).map(|&end| end as usize);
        let start = if index == 0 { Some(0) } else { end(index - 1) };
        match (start, end(index)) {
            (Some(start), Some(end)) => self.extents.get(start..end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// The number of elements of input `index`.
    pub fn elements(&self, index: usize) -> u64 {
        self.shape(index).iter().fold(1, |product, &extent| product.saturating_mul(extent))
    }
}
