//! THE definition of a block cast: the values of one block → its scale and its elements' codes.
//!
//! Each recipe is the arithmetic of the implementation it is named after, in its order of operations and,
//! where that computes in f32, in f32: a scale is a discontinuous function of the largest magnitude, so
//! one different rounding gives another byte. Exponents are read from bits. Written to be read; faster code
//! elsewhere must equal it.
//!
//! Sources: OCP MX 1.0 section 6.3 and torchao `to_mx` (power-of-two rules); Transformer Engine
//! `core_nvfp4.cuh` and torchao `nvfp4_quantize` (NVFP4); Transformer Engine `recipe_common.cuh`, torchao
//! `float8_utils.py` and DeepGEMM `utils/math.py` (FP8 tensors, rows and blocks). For these, `x_stored = round(x / s)`
//! and `x · scale` are the same with s = 1 / scale.

use super::round::{Class, cast};
use super::{Overflow, Rounding};
use crate::format::block::{Nvfp4, PowerRule, Quotient, Recipe};
use crate::format::{BlockSpec, FormatSpec, exponent_of, pow2};

/// Everything that fixes the result of a block cast. Elements are rounded to nearest even and saturate, as
/// every implementation does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockPlan {
    /// The block format cast to.
    pub spec: BlockSpec,
    /// Factor applied to every element before all else, as a loss scale: finite, positive.
    pub scale: f32,
}

/// What one number for the whole tensor contributes to every block; 1 where a format has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TensorScale {
    /// Factor on the way in.
    pub encode: f32,
    /// Factor on the way back.
    pub decode: f32,
}

impl TensorScale {
    /// No scale for the tensor.
    pub const ONE: Self = Self { encode: 1.0, decode: 1.0 };

    /// The scale of a tensor whose largest magnitude is `amax` (with [`largest`]'s treatment of NaN).
    ///
    /// Transformer Engine: encode = min(448·6 / amax, largest f32), 1 if amax is 0 or the quotient is;
    /// decode = 1/encode. torchao: decode = amax / (448·6), encode = 1/decode. For anything else
    /// [`TensorScale::ONE`].
    pub fn new(spec: &BlockSpec, amax: f32) -> Self {
        let range = (spec.scale.max_finite() * spec.element.max_finite()) as f32;
        match spec.recipe {
            Recipe::Nvfp4(Nvfp4::Te) => {
                let encode = (range / amax).min(f32::MAX);
                let encode = if amax == 0.0 || encode == 0.0 { 1.0 } else { encode };
                Self { encode, decode: 1.0 / encode }
            }
            Recipe::Nvfp4(Nvfp4::Torchao) => {
                let decode = amax / range;
                Self { encode: 1.0 / decode, decode }
            }
            _ => Self::ONE,
        }
    }
}

/// What became of a block's scale. Every block has exactly one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleClass {
    /// The block holds zeros only.
    AllZero,
    /// A block with nonzero values has the scale 0: all of it is lost.
    Zero,
    /// A nonzero subnormal number of the scale's format.
    Subnormal,
    /// Smaller than the recipe allows, and so set to the smallest scale there is.
    Raised,
    /// Neither of the others.
    Normal,
    /// Too large for the scale's format, and so set to its largest number (1 in FP8 blocks with an Inf, as
    /// Transformer Engine has it).
    Saturated,
    /// NaN: no element of the block has a value.
    Nan,
}

/// How an element is brought to its scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Factor {
    /// x · factor, rounded to f32.
    Times(f32),
    /// x / factor, rounded to f32.
    Over(f32),
}

impl Factor {
    /// `x`, scaled.
    pub fn apply(self, x: f32) -> f32 {
        match self {
            Self::Times(factor) => x * factor,
            Self::Over(divisor) => x / divisor,
        }
    }
}

/// The scale of one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockScale {
    /// Stored code, in the scale's format.
    pub code: u32,
    /// The number that the code means.
    pub value: f64,
    /// What became of it.
    pub class: ScaleClass,
    /// What brings an element to the scale.
    pub factor: Factor,
    /// What an element's number is multiplied by to come back: the stored scale times the tensor's, exact.
    /// (Kernels form the product in f32, or in the accumulator: that adds an error of about 2^-24.)
    pub unit: f64,
}

/// Largest magnitude of a block. MX and torchao take it so that a NaN remains; Transformer Engine's maximum
/// passes over NaN.
pub fn largest(spec: &BlockSpec, block: &[f32]) -> f32 {
    let passes_nan = passes_over_nan(spec.recipe);
    let amax = |amax: f32, x: &f32| {
        let nan = !passes_nan && (amax.is_nan() || x.is_nan());
        if nan { f32::NAN } else { amax.max(x.abs()) }
    };
    block.iter().fold(0.0, amax)
}

/// Whether the recipe's largest magnitude disregards NaN.
pub fn passes_over_nan(recipe: Recipe) -> bool {
    matches!(recipe, Recipe::Nvfp4(Nvfp4::Te) | Recipe::Quotient(Quotient::F32 | Quotient::Pow2))
}

/// The scale of a block whose [`largest`] magnitude is `amax`, in a tensor with the scale `tensor`.
pub fn block_scale(spec: &BlockSpec, tensor: TensorScale, amax: f32) -> BlockScale {
    match spec.recipe {
        Recipe::Power(rule) => power(spec, rule, amax),
        Recipe::Nvfp4(nvfp4) => e4m3(spec, nvfp4, tensor, amax),
        Recipe::Quotient(rule) => quotient(spec, rule, amax),
    }
}

/// MX: a power of two. An Inf or a NaN in the block makes the scale NaN, and with it the whole block (OCP
/// leaves the elements open; torchao does so since its pull request 4725, while its 0.18 stored a number).
fn power(spec: &BlockSpec, rule: PowerRule, amax: f32) -> BlockScale {
    let scale = &spec.scale;
    if !amax.is_finite() {
        let code = scale.nan_code(false).unwrap_or(scale.max_finite_code());
        let factor = Factor::Times(f32::NAN);
        return BlockScale { code, value: f64::NAN, class: ScaleClass::Nan, factor, unit: f64::NAN };
    }
    let exponent = if amax == 0.0 { scale.emin() } else { power_exponent(&spec.element, rule, amax) };
    let class = match exponent {
        _ if amax == 0.0 => ScaleClass::AllZero,
        _ if exponent < scale.emin() => ScaleClass::Raised,
        _ if exponent > scale.emax() => ScaleClass::Saturated,
        _ => ScaleClass::Normal,
    };
    let exponent = exponent.clamp(scale.emin(), scale.emax());
    // Exact, both of them: 2^-127 is an f32 subnormal.
    let (value, factor) = (pow2(exponent), Factor::Times(pow2(-exponent) as f32));
    BlockScale { code: (exponent + scale.bias) as u32, value, class, factor, unit: value }
}

/// log2 of the scale that a rule asks for, with no limits; emax is the exponent of the largest element.
fn power_exponent(element: &FormatSpec, rule: PowerRule, amax: f32) -> i32 {
    let emax = exponent_of(element.max_finite());
    // As f64, where it is normal whatever it was as f32.
    let bits = f64::from(amax).to_bits();
    let round_up = |x: f64| exponent_of(x) + i32::from(x.to_bits() << 12 != 0);
    match rule {
        // floor(log2 amax) − emax
        PowerRule::Floor => exponent_of(amax.into()) - emax,
        // ceil(log2 amax) − emax
        PowerRule::Ceil => round_up(amax.into()) - emax,
        // Half a unit in the element's last place is added first, and may carry into the exponent.
        PowerRule::Even => exponent_of(f64::from_bits(bits + (1 << (51 - element.trailing_bits())))) - emax,
        // ceil(log2(amax / max)), the quotient rounded to f32. (Transformer Engine multiplies by the rounded
        // reciprocal of max, which gives the same exponent for every f32 quotient that is normal.)
        PowerRule::Rceil => match amax / element.max_finite() as f32 {
            0.0 => i32::MIN,
            ratio => round_up(ratio.into()),
        },
    }
}

/// NVFP4: an e4m3 number that takes the block's largest magnitude to the element's largest number, 6.
fn e4m3(spec: &BlockSpec, nvfp4: Nvfp4, tensor: TensorScale, amax: f32) -> BlockScale {
    let scale = &spec.scale;
    let smallest = scale.min_normal() as f32;
    let six = spec.element.max_finite() as f32;
    let wanted = match nvfp4 {
        Nvfp4::Te => (amax * (tensor.encode * (1.0 / six))).min(f32::MAX),
        Nvfp4::Torchao => (amax / six) / tensor.decode,
        Nvfp4::Single => amax / six,
    };
    // torchao also clamps to the largest number, which the saturating cast does for all.
    let raised = nvfp4 != Nvfp4::Te && wanted < smallest;
    let raised_to = if raised { smallest } else { wanted };
    let q = cast(scale, Rounding::NearestEven, Overflow::Saturate, raised_to.into());
    let value = q.value(scale);
    let stored = value as f32;
    let factor = match nvfp4 {
        Nvfp4::Te => Factor::Times((1.0 / (stored * tensor.decode)).min(f32::MAX)),
        Nvfp4::Torchao => Factor::Times(tensor.encode / stored),
        Nvfp4::Single => Factor::Over(stored),
    };
    let class = match q.class {
        _ if value.is_nan() => ScaleClass::Nan,
        _ if amax == 0.0 => ScaleClass::AllZero,
        _ if raised => ScaleClass::Raised,
        Class::Overflow | Class::Inf => ScaleClass::Saturated,
        Class::Zero | Class::Underflow => ScaleClass::Zero,
        Class::Subnormal => ScaleClass::Subnormal,
        _ => ScaleClass::Normal,
    };
    BlockScale { code: q.code, value, class, factor, unit: value * f64::from(tensor.decode) }
}

/// FP8: the factor max / amax in f32 or what an implementation makes of it, and its reciprocal.
fn quotient(spec: &BlockSpec, rule: Quotient, amax: f32) -> BlockScale {
    const SIGNIFICAND: u32 = 0x007f_ffff;
    // The smallest amax of either.
    const TORCHAO: f64 = 1e-12;
    const DEEPGEMM: f32 = 1e-4;
    let max = spec.element.max_finite();
    let te = || {
        let usable = amax > 0.0 && amax.is_finite();
        if usable { (max as f32 / amax).min(f32::MAX) } else { 1.0 }
    };
    let torchao = || if amax.is_nan() { amax } else { (max / f64::from(amax).max(TORCHAO)) as f32 };
    let deepgemm = || if amax.is_nan() { amax } else { amax.max(DEEPGEMM) / max as f32 };
    let (factor, stored) = match rule {
        Quotient::F32 => inverse(te()),
        Quotient::Pow2 => inverse(f32::from_bits(te().to_bits() & !SIGNIFICAND)),
        Quotient::Torchao => inverse(torchao()),
        Quotient::TorchaoPow2 => {
            // The logarithm is rounded to f32 before the floor: just below a power of two it is that power's.
            let log2 = libm::log2(torchao().into()) as f32;
            inverse(if log2.is_finite() { pow2(log2.floor() as i32) as f32 } else { libm::exp2f(log2) })
        }
        Quotient::DeepGemm => (1.0 / deepgemm(), deepgemm()),
        Quotient::DeepGemmUe8m0 => {
            let bits = deepgemm().to_bits();
            let exponent = (bits >> 23) + u32::from(bits & SIGNIFICAND != 0);
            let stored = f32::from_bits(exponent.clamp(1, 254) << 23);
            (1.0 / stored, stored)
        }
    };
    let ratio = max as f32 / amax;
    let class = match stored {
        _ if amax == 0.0 => ScaleClass::AllZero,
        _ if factor == 0.0 || !factor.is_finite() || !stored.is_finite() => ScaleClass::Nan,
        _ if !(amax > 0.0 && amax.is_finite()) => ScaleClass::Saturated,
        _ if ratio.is_infinite() || ratio > 2.0 * factor => ScaleClass::Raised,
        _ if stored.is_subnormal() => ScaleClass::Subnormal,
        _ => ScaleClass::Normal,
    };
    BlockScale { class, ..BlockScale::of_factor(factor, stored) }
}

/// A factor and its reciprocal, which is what is stored.
fn inverse(factor: f32) -> (f32, f32) {
    (factor, 1.0 / factor)
}

/// One element of a block, cast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element {
    /// Stored code, in the element's format.
    pub code: u32,
    /// What happened. It is told from the number that comes back: under a scale that is 0 every element
    /// underflows, under one that is NaN every nonzero element overflows, whatever the codes are.
    pub class: Class,
    /// The number that comes back.
    pub dequantised: f64,
    /// Whether the scaled element exceeded the largest number before rounding.
    pub clipped: bool,
}

impl BlockScale {
    /// The scale of a factor that elements are multiplied by, whatever it was formed from, with `stored` to come
    /// back by.
    pub fn of_factor(factor: f32, stored: f32) -> Self {
        let value = f64::from(stored);
        let class = if stored.is_subnormal() { ScaleClass::Subnormal } else { ScaleClass::Normal };
        Self { code: stored.to_bits(), value, class, factor: Factor::Times(factor), unit: value }
    }

    /// Casts `x`, whose product with the plan's scale is `product`.
    pub fn element(&self, plan: &BlockPlan, x: f64, product: f32) -> Element {
        let format = &plan.spec.element;
        let scaled = f64::from(self.factor.apply(product));
        let q = cast(format, Rounding::NearestEven, Overflow::Saturate, scaled);
        let class = match q.class {
            _ if x.is_nan() => Class::Nan,
            _ if x.is_infinite() => Class::Inf,
            _ if x == 0.0 => Class::Zero,
            _ if !self.unit.is_finite() => Class::Overflow,
            _ if self.unit == 0.0 => Class::Underflow,
            Class::Zero => Class::Underflow,
            Class::Inf | Class::Nan => Class::Overflow,
            class => class,
        };
        let clipped = x.is_finite() && self.unit > 0.0 && scaled.abs() > format.max_finite();
        Element { code: q.code, class, dequantised: q.value(format) * self.back(plan), clipped }
    }

    /// What an element's number is multiplied by to be compared with x.
    pub fn back(&self, plan: &BlockPlan) -> f64 {
        self.unit / f64::from(plan.scale)
    }
}

/// Casts the block `block`: its scale, and its elements in order.
///
/// ```
/// use amp_inspect::cast::block::{BlockPlan, TensorScale, cast_block};
/// use amp_inspect::format::find_block;
/// let plan = BlockPlan { spec: find_block("mxfp4").unwrap(), scale: 1.0 };
/// let (scale, elements) = cast_block(&plan, TensorScale::ONE, &[12.0, -0.75, 0.0]);
/// assert_eq!(scale.code, 128); // 2^1
/// let codes: Vec<u32> = elements.iter().map(|element| element.code).collect();
/// assert_eq!(codes, [0b0111, 0b1001, 0]); // 6, and −0.5: −0.375 is rounded
/// ```
pub fn cast_block(plan: &BlockPlan, tensor: TensorScale, block: &[f32]) -> (BlockScale, Vec<Element>) {
    let products: Vec<f32> = block.iter().map(|x| x * plan.scale).collect();
    let scale = block_scale(&plan.spec, tensor, largest(&plan.spec, &products));
    let elements = block.iter().zip(&products).map(|(&x, &product)| scale.element(plan, x.into(), product));
    (scale, elements.collect())
}
