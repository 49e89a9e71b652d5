//! Who else converts to a format, and what to ask of them.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};

use super::{Check, Convert, Implementation, Inputs, Maker, Source, inputs};
use crate::cast::fast::Level;
use crate::cast::fast::hardware::INSTRUCTIONS;
use crate::cast::fast::slice::{Code, SliceCast};
use crate::cast::fast::unpack::SliceDecode;
use crate::cast::{CastPlan, NanCode, OVERFLOWS, Rounding};
use crate::format::FormatSpec;

/// A function of a crate.
struct Function {
    maker: Maker,
    format: &'static str,
    name: &'static str,
    call: Call,
}

#[derive(Clone, Copy)]
enum Call {
    Float32(fn(f32) -> u32),
    Float64(fn(f64) -> u32),
    Value(fn(u32) -> f64),
}

const fn function(maker: Maker, format: &'static str, name: &'static str, call: Call) -> Function {
    Function { maker, format, name, call }
}

/// What the crates offer. `half` rounds float64 to float16 in another way where the processor has F16C, so
/// its way without is asked for too.
const FUNCTIONS: &[Function] = &[
    function(Maker::Half, "float16", "f16::from_f32", Call::Float32(|x| f16::from_f32(x).to_bits().into())),
    function(Maker::Half, "float16", "f16::from_f64", Call::Float64(|x| f16::from_f64(x).to_bits().into())),
    function(
        Maker::Half,
        "float16",
        "f16::from_f64_const",
        Call::Float64(|x| f16::from_f64_const(x).to_bits().into()),
    ),
    function(Maker::Half, "float16", "f16::to_f64", Call::Value(|code| f16::from_bits(code as u16).to_f64())),
    function(
        Maker::Half,
        "bfloat16",
        "bf16::from_f32",
        Call::Float32(|x| bf16::from_f32(x).to_bits().into()),
    ),
    function(
        Maker::Half,
        "bfloat16",
        "bf16::from_f64",
        Call::Float64(|x| bf16::from_f64(x).to_bits().into()),
    ),
    function(
        Maker::Half,
        "bfloat16",
        "bf16::to_f64",
        Call::Value(|code| bf16::from_bits(code as u16).to_f64()),
    ),
    function(
        Maker::Float8,
        "e5m2",
        "F8E5M2::from_f32",
        Call::Float32(|x| F8E5M2::from_f32(x).to_bits().into()),
    ),
    function(
        Maker::Float8,
        "e5m2",
        "F8E5M2::from_f64",
        Call::Float64(|x| F8E5M2::from_f64(x).to_bits().into()),
    ),
    function(
        Maker::Float8,
        "e5m2",
        "F8E5M2::to_f64",
        Call::Value(|code| F8E5M2::from_bits(code as u8).to_f64()),
    ),
    function(
        Maker::Float8,
        "e4m3fn",
        "F8E4M3::from_f32",
        Call::Float32(|x| F8E4M3::from_f32(x).to_bits().into()),
    ),
    function(
        Maker::Float8,
        "e4m3fn",
        "F8E4M3::from_f64",
        Call::Float64(|x| F8E4M3::from_f64(x).to_bits().into()),
    ),
    function(
        Maker::Float8,
        "e4m3fn",
        "F8E4M3::to_f64",
        Call::Value(|code| F8E4M3::from_bits(code as u8).to_f64()),
    ),
];

impl Function {
    fn implementation(&self) -> Implementation {
        let convert = match self.call {
            Call::Float32(call) => {
                Convert::Float32(Box::new(move |xs, codes| each(xs, codes, |x| call(x).into())))
            }
            Call::Float64(call) => {
                Convert::Float64(Box::new(move |xs, codes| each(xs, codes, |x| call(x).into())))
            }
            Call::Value(call) => Convert::Codes(Box::new(move |codes, values| {
                each(codes, values, |code| call(code).to_bits());
            })),
        };
        Implementation::new(self.maker, self.name, convert)
    }

    fn source(&self) -> Source {
        match self.call {
            Call::Float32(_) => Source::Float32,
            Call::Float64(_) => Source::Float64,
            Call::Value(_) => Source::Codes,
        }
    }
}

fn each<T: Copy>(inputs: &[T], results: &mut [u64], one: impl Fn(T) -> u64) {
    inputs.iter().zip(results).for_each(|(&input, result)| *result = one(input));
}

/// Everything that converts to or from `format`, in as many checks as there are different casts. With `full`,
/// the default cast and those that an instruction does are tried on every float32.
pub fn checks(format: &FormatSpec, full: bool) -> Vec<Check> {
    let default = CastPlan::new(*format);
    let telling = Inputs::List(inputs::float32(format));
    let mut checks = Vec::new();
    for plan in casts(&default) {
        let mut implementations = slices(&plan);
        let plain = CastPlan { rounding: Rounding::NearestEven, ..plan } == default;
        if plain {
            implementations.extend(instructions(&plan));
        }
        let all =
            full && plain && (plan == default || implementations.iter().any(|i| i.maker != Maker::Ours));
        if plan == default {
            implementations.extend(functions(format, Source::Float32));
        }
        let inputs = if all { Inputs::AllFloat32 } else { telling.clone() };
        checks.push(Check { plan, source: Source::Float32, inputs, implementations });
    }
    let implementations: Vec<_> = functions(format, Source::Float64).collect();
    if !implementations.is_empty() {
        let inputs = Inputs::List(inputs::float64(format));
        checks.push(Check { plan: default, source: Source::Float64, inputs, implementations });
    }
    let implementations = decoders(format).chain(functions(format, Source::Codes)).collect();
    let inputs = Inputs::List(inputs::codes(format));
    checks.push(Check { plan: default, source: Source::Codes, inputs, implementations });
    checks.retain(|check| !check.implementations.is_empty());
    checks
}

/// The casts to compare: each rounding that is implemented twice, with each policy, and each NaN code.
fn casts(default: &CastPlan) -> Vec<CastPlan> {
    let roundings =
        [Rounding::NearestEven, Rounding::NearestAway, Rounding::TowardZero, Rounding::Up, Rounding::Down];
    let mut casts = vec![*default];
    for rounding in roundings {
        for (_, overflow, _) in OVERFLOWS {
            casts.push(CastPlan { rounding, overflow: *overflow, ..*default });
        }
    }
    for nan in [NanCode::AllOnes, NanCode::AllOnesPositive, NanCode::AllOnesNegative] {
        casts.push(CastPlan { nan, ..*default });
    }
    let again = casts.iter().skip(1).position(|cast| cast == default);
    again.map(|index| casts.remove(index + 1));
    casts
}

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

fn slices(plan: &CastPlan) -> Vec<Implementation> {
    let Some(cast) = SliceCast::new(plan) else {
        return Vec::new();
    };
    let bits = plan.target.bits;
    let at_level = |level: Level| {
        let convert: super::OnSlices<f32> = match bits {
            0..=8 => Box::new(move |xs, codes| encode::<u8>(&cast, level, xs, codes)),
            9..=16 => Box::new(move |xs, codes| encode::<u16>(&cast, level, xs, codes)),
            _ => Box::new(move |xs, codes| encode::<u32>(&cast, level, xs, codes)),
        };
        Implementation::new(Maker::Ours, format!("SIMD {}", level.name()), Convert::Float32(convert))
    };
    levels().map(at_level).collect()
}

fn encode<C: Code>(cast: &SliceCast, level: Level, xs: &[f32], codes: &mut [u64]) {
    let mut narrow = vec![C::default(); xs.len()];
    cast.encode(level, xs, &mut narrow);
    each(&narrow, codes, |code| code.to_u32().into());
}

fn decoders(format: &FormatSpec) -> impl Iterator<Item = Implementation> {
    let decoder = SliceDecode::new(format);
    levels().filter_map(move |level| {
        let decoder = decoder.clone()?;
        let convert = Convert::Codes(Box::new(move |codes: &[u32], values: &mut [u64]| {
            let mut narrow = vec![0.0_f32; codes.len()];
            decoder.decode(level, codes, &mut narrow);
            each(&narrow, values, widened_bits);
        }));
        Some(Implementation::new(Maker::Ours, format!("SIMD {}", level.name()), convert))
    })
}

/// Bits of the float64 that equals `x`, with the sign and payload that a NaN has.
fn widened_bits(x: f32) -> u64 {
    if x.is_nan() {
        let bits = u64::from(x.to_bits());
        return bits >> 31 << 63 | 0x7ff << 52 | (bits & 0x007f_ffff) << 29;
    }
    f64::from(x).to_bits()
}

fn instructions(plan: &CastPlan) -> impl Iterator<Item = Implementation> {
    let (format, rounding) = (plan.target.name, plan.rounding);
    let claims = move |instruction: &&'static crate::cast::fast::hardware::Instruction| {
        instruction.is_available() && instruction.format == format && instruction.rounding == rounding
    };
    INSTRUCTIONS.iter().filter(claims).map(|instruction| {
        let convert = Convert::Float32(Box::new(|xs, codes| {
            let mut narrow = vec![0_u16; xs.len()];
            instruction.convert(xs, &mut narrow);
            each(&narrow, codes, u64::from);
        }));
        Implementation::new(Maker::Processor, instruction.name, convert)
    })
}

fn functions(format: &FormatSpec, source: Source) -> impl Iterator<Item = Implementation> {
    let name = format.name;
    let wanted = move |function: &&Function| function.format == name && function.source() == source;
    FUNCTIONS.iter().filter(wanted).map(Function::implementation)
}
