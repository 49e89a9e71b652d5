//! The scales of many blocks at once.

use super::nearest::Nearest;
use super::{Kernel, Level, run};
use crate::cast::block::{Factor, ScaleClass, TensorScale, block_scale};
use crate::format::block::{Nvfp4, PowerRule, Recipe};
use crate::format::{BlockSpec, exponent_of};

/// The scales of blocks, in order: of each what [`BlockScale`](crate::cast::block::BlockScale) says.
#[derive(Clone, Debug, Default)]
pub struct Scales {
    /// Stored codes, in the scale's format.
    pub codes: Vec<u32>,
    /// The numbers that the codes mean: exact.
    pub values: Vec<f32>,
    /// What became of them.
    pub classes: Vec<ScaleClass>,
    /// What elements are multiplied by, or divided by if [`divide`](Self::divide).
    pub factors: Vec<f32>,
    /// Whether factors divide.
    pub divide: bool,
    /// The tensor's part of what brings a number back: values are multiplied by it.
    pub decode: f32,
}

impl Scales {
    /// Makes these the scales of blocks whose [`largest`](crate::cast::block::largest) magnitudes, products with a plan's
    /// scale, are `amax`, in a tensor
    /// with the scale `tensor`: each equals [`block_scale`].
    pub fn fill(&mut self, level: Level, spec: &BlockSpec, tensor: TensorScale, amax: &[f32]) {
        self.codes.resize(amax.len(), 0);
        self.values.resize(amax.len(), 0.0);
        self.classes.resize(amax.len(), ScaleClass::Normal);
        self.factors.resize(amax.len(), 0.0);
        self.divide = spec.recipe == Recipe::Nvfp4(Nvfp4::Single);
        self.decode = tensor.decode;
        let done = match (spec.recipe, Nearest::new(&spec.scale)) {
            (Recipe::Power(PowerRule::Floor), _) => run(level, Power::<FLOOR>::new(spec, amax, self)),
            (Recipe::Power(PowerRule::Ceil), _) => run(level, Power::<CEIL>::new(spec, amax, self)),
            (Recipe::Power(PowerRule::Even), _) => run(level, Power::<EVEN>::new(spec, amax, self)),
            (Recipe::Power(PowerRule::Rceil), _) => run(level, Power::<RCEIL>::new(spec, amax, self)),
            (Recipe::Nvfp4(nvfp4), Some(nearest)) => {
                run(level, E4m3 { spec, nvfp4, nearest, tensor, amax, scales: self })
            }
            _ => false,
        };
        if !done {
            self.define(spec, tensor, amax);
        }
    }

    /// By the definition.
    fn define(&mut self, spec: &BlockSpec, tensor: TensorScale, amax: &[f32]) {
        for (block, &amax) in amax.iter().enumerate() {
            let scale = block_scale(spec, tensor, amax);
            self.codes[block] = scale.code;
            self.values[block] = scale.value as f32;
            self.classes[block] = scale.class;
            let (Factor::Times(factor) | Factor::Over(factor)) = scale.factor;
            self.factors[block] = factor;
        }
    }
}

// [`PowerRule`], as it can be a parameter of a loop.
const FLOOR: u8 = 0;
const CEIL: u8 = 1;
const EVEN: u8 = 2;
const RCEIL: u8 = 3;

/// Powers of two.
struct Power<'a, const RULE: u8> {
    amax: &'a [f32],
    scales: &'a mut Scales,
    /// Exponent of the largest element, and that number.
    emax: i32,
    max: f32,
    /// Half a unit in an element's last place, of an f64.
    half_unit: u64,
}

impl<'a, const RULE: u8> Power<'a, RULE> {
    fn new(spec: &BlockSpec, amax: &'a [f32], scales: &'a mut Scales) -> Self {
        let (max, trailing_bits) = (spec.element.max_finite(), spec.element.trailing_bits());
        Self { amax, scales, emax: exponent_of(max), max: max as f32, half_unit: 1 << (51 - trailing_bits) }
    }
}

impl<const RULE: u8> Kernel for Power<'_, RULE> {
    type Out = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self { amax, scales, emax, max, half_unit } = self;
        let Scales { codes, values, classes, factors, .. } = scales;
        let mut finite = true;
        let out = codes.iter_mut().zip(values).zip(classes).zip(factors);
        for ((((code, value), class), factor), &amax) in out.zip(amax) {
            finite &= amax.is_finite();
            // As f64, every f32 but 0 is normal; 0 seems to have the exponent −1023.
            let number = f64::from(if RULE == RCEIL { amax / max } else { amax });
            let bits = number.to_bits() + if RULE == EVEN { half_unit } else { 0 };
            let up = i32::from((RULE == CEIL || RULE == RCEIL) && bits << 12 != 0);
            let wanted = (bits >> 52) as i32 - 1023 + up - if RULE == RCEIL { 0 } else { emax };
            let exponent = wanted.clamp(-LIMIT, LIMIT);
            *code = (exponent + LIMIT) as u32;
            *value = power_of_two(exponent);
            *factor = power_of_two(-exponent);
            let limited = if wanted > LIMIT { ScaleClass::Saturated } else { ScaleClass::Normal };
            let limited = if wanted < -LIMIT { ScaleClass::Raised } else { limited };
            *class = if amax == 0.0 { ScaleClass::AllZero } else { limited };
        }
        finite
    }
}

/// The largest exponent of an e8m0 number, and its bias.
const LIMIT: i32 = 127;

/// 2^exponent, for exponents within [`LIMIT`].
#[inline(always)]
fn power_of_two(exponent: i32) -> f32 {
    const SMALLEST: u32 = 1 << 22;
    let bits = if exponent == -LIMIT { SMALLEST } else { ((exponent + LIMIT) as u32) << 23 };
    f32::from_bits(bits)
}

/// e4m3 numbers.
struct E4m3<'a> {
    spec: &'a BlockSpec,
    nvfp4: Nvfp4,
    nearest: Nearest,
    tensor: TensorScale,
    amax: &'a [f32],
    scales: &'a mut Scales,
}

impl Kernel for E4m3<'_> {
    type Out = bool;

    #[inline(always)]
    fn run(self) -> bool {
        match self.nvfp4 {
            Nvfp4::Te => {
                let times = self.tensor.encode * (1.0 / self.six());
                let back = self.tensor.decode;
                self.each(
                    |amax| (amax * times).min(f32::MAX),
                    0.0,
                    |stored| (1.0 / (stored * back)).min(f32::MAX),
                )
            }
            Nvfp4::Torchao => {
                let (six, smallest, tensor) = (self.six(), self.smallest(), self.tensor);
                self.each(|amax| (amax / six) / tensor.decode, smallest, |stored| tensor.encode / stored)
            }
            Nvfp4::Single => {
                let (six, smallest) = (self.six(), self.smallest());
                self.each(|amax| amax / six, smallest, |stored| stored)
            }
        }
    }
}

impl E4m3<'_> {
    /// The largest element.
    fn six(&self) -> f32 {
        self.spec.element.max_finite() as f32
    }

    fn smallest(&self) -> f32 {
        self.spec.scale.min_normal() as f32
    }

    /// `raised_to`: the smallest scale that the recipe allows.
    #[inline(always)]
    fn each(self, wanted: impl Fn(f32) -> f32, raised_to: f32, factor_of: impl Fn(f32) -> f32) -> bool {
        let (smallest, max) = (self.smallest(), self.spec.scale.max_finite() as f32);
        let smallest_code = 1 << self.spec.scale.trailing_bits();
        let dropped = self.nearest.dropped;
        // From the smallest normal number on, codes are consecutive as the bits above those dropped are.
        let offset = (smallest.to_bits() >> dropped) - smallest_code;
        let to_integer = smallest_code as f32 / smallest;
        let Scales { codes, values, classes, factors, .. } = self.scales;
        let mut is_number = true;
        let out = codes.iter_mut().zip(values).zip(classes).zip(factors);
        for ((((code, value), class), factor), &amax) in out.zip(self.amax) {
            let wanted = wanted(amax);
            is_number &= !wanted.is_nan();
            let raised = wanted < raised_to;
            let unlimited = self.nearest.round(if raised { raised_to } else { wanted }.to_bits());
            let stored = if unlimited > max { max } else { unlimited };
            let subnormal = stored < smallest;
            let of_subnormal = (stored * to_integer) as u32;
            *code = if subnormal { of_subnormal } else { (stored.to_bits() >> dropped).wrapping_sub(offset) };
            *value = stored;
            *factor = factor_of(stored);
            let ordinary = if subnormal { ScaleClass::Subnormal } else { ScaleClass::Normal };
            let ordinary = if stored == 0.0 { ScaleClass::Zero } else { ordinary };
            let ordinary = if unlimited > max { ScaleClass::Saturated } else { ordinary };
            let ordinary = if raised { ScaleClass::Raised } else { ordinary };
            *class = if amax == 0.0 { ScaleClass::AllZero } else { ordinary };
        }
        is_number
    }
}
