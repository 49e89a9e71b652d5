//! Other implementations in Rust as second oracles: `half`, `float8`, the compiler's own float32, and
//! `rustc_apfloat`, the port of LLVM's software floats.

use amp_inspect::cast::round::{Class, cast};
use amp_inspect::cast::{Overflow, Rounding};
use amp_inspect::format::decode::decode;
use amp_inspect::format::{FormatSpec, pow2};
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status, StatusAnd};

use crate::common::{Random, row};

/// Every upper half of a float32, with lower halves that lie on and around the places where 8- and
/// 16-bit formats round, and one that lies anywhere.
fn float32_strata() -> impl Iterator<Item = f32> {
    let mut random = Random(1);
    (0..=u32::from(u16::MAX)).flat_map(move |upper| {
        let any = random.bits() as u32 & 0xffff;
        [0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff, any]
            .map(|lower| f32::from_bits(upper << 16 | lower))
    })
}

/// Compares our cast with another's code on all strata; of a NaN only the sign, since payloads differ.
fn assert_equal_on_strata(name: &str, overflow: Overflow, theirs: fn(f32) -> u32) {
    let format = row(name);
    for x in float32_strata() {
        let ours = cast(&format, Rounding::NearestEven, overflow, x.into()).code;
        let theirs = theirs(x);
        if x.is_nan() {
            let sign = format.sign_bit();
            assert!(decode(&format, theirs).is_nan() && decode(&format, ours).is_nan(), "{name} {x}");
            assert_eq!(ours & sign, theirs & sign, "{name}: sign of the NaN {:#x}", x.to_bits());
        } else {
            assert_eq!(ours, theirs, "{name} {overflow:?}: {x:e} = {:#x}", x.to_bits());
        }
    }
}

#[test]
fn float16_equals_half() {
    assert_equal_on_strata("float16", Overflow::Ieee, |x| half::f16::from_f32(x).to_bits().into());
}

#[test]
fn bfloat16_equals_half() {
    assert_equal_on_strata("bfloat16", Overflow::Ieee, |x| half::bf16::from_f32(x).to_bits().into());
}

#[test]
fn saturating_e4m3fn_equals_float8() {
    assert_equal_on_strata("e4m3fn", Overflow::Saturate, |x| float8::F8E4M3::from_f32(x).to_bits().into());
}

#[test]
fn saturating_e5m2_equals_float8() {
    assert_equal_on_strata("e5m2", Overflow::Saturate, |x| float8::F8E5M2::from_f32(x).to_bits().into());
}

#[test]
fn float32_equals_the_processor() {
    let format = row("float32");
    let mut random = Random(2);
    let ours = |x: f64| cast(&format, Rounding::NearestEven, Overflow::Ieee, x).code;
    let check = |x: f64| assert_eq!(ours(x), (x as f32).to_bits(), "{x:e}");
    for _ in 0..1_000_000 {
        check(random.number(-160..=130));
        // A midpoint of two float32, and one float64 step to either side of it.
        let below = f32::from_bits(random.bits() as u32 & 0xff7f_ffff);
        let tie = f64::midpoint(below.into(), f32::from_bits(below.to_bits() + 1).into());
        [tie, tie.next_up(), tie.next_down(), below.into()].into_iter().for_each(check);
    }
}

const ROUNDS: [(Rounding, Round); 5] = [
    (Rounding::NearestEven, Round::NearestTiesToEven),
    (Rounding::NearestAway, Round::NearestTiesToAway),
    (Rounding::TowardZero, Round::TowardZero),
    (Rounding::Up, Round::TowardPositive),
    (Rounding::Down, Round::TowardNegative),
];

/// Numbers of a format, midpoints and their float64 neighbours, and random ones, of both signs.
fn float64_inputs(format: &FormatSpec) -> Vec<f64> {
    let codes = format.max_finite_code();
    let mut random = Random(3);
    let mut inputs = vec![format.overflow_threshold(), pow2(1023), f64::MAX, f64::from_bits(1), 0.0];
    inputs.extend((0..300_000).map(|_| random.number(format.emin() - 30..=format.emax() + 3)));
    for _ in 0..60_000 {
        let code = (random.bits() % u64::from(codes)) as u32;
        let (low, high) = (decode(format, code), decode(format, code + 1));
        let tie = f64::midpoint(low, high);
        inputs.extend([low, tie, tie.next_up(), tie.next_down(), high.next_down(), low.next_up()]);
    }
    let negated: Vec<_> = inputs.iter().map(|x| -x).collect();
    inputs.extend(negated);
    inputs
}

/// Compares code and overflow with LLVM's floats, in the five modes that they have.
///
/// In rustc_apfloat 0.2.3 a negative number between `largest` and the next power of two, rounded up or
/// down, overflows in a format without Inf as if it were positive (the mode is not mirrored there). On
/// these inputs its answer for the positive number in the mirrored mode stands in.
fn assert_equal_to_apfloat<F: Float>(name: &str, unmirrored: fn(f64) -> bool)
where
    Double: FloatConvert<F>,
{
    let format = row(name);
    for x in float64_inputs(&format) {
        for (rounding, round) in ROUNDS {
            let ours = cast(&format, rounding, Overflow::Ieee, x);
            let convert = |x: f64, round| Double::from_bits(x.to_bits().into()).convert_r(round, &mut false);
            let theirs: StatusAnd<F> = match round {
                Round::TowardPositive | Round::TowardNegative if unmirrored(x) => {
                    convert(-x, -round).map(|q: F| -q)
                }
                _ => convert(x, round),
            };
            assert_eq!(u128::from(ours.code), theirs.value.to_bits(), "{name} {rounding:?} {x:e}");
            // LLVM raises the flag only where the result is not the largest number.
            let left_range = ours.class == Class::Overflow && !ours.value(&format).is_finite();
            let overflows = theirs.status.contains(Status::OVERFLOW);
            assert_eq!(left_range, overflows, "{name} {rounding:?} {x:e}: {ours:?}");
        }
    }
}

#[test]
fn float32_equals_apfloat() {
    assert_equal_to_apfloat::<Single>("float32", |_| false);
}

#[test]
fn float16_equals_apfloat() {
    assert_equal_to_apfloat::<Half>("float16", |_| false);
}

#[test]
fn bfloat16_equals_apfloat() {
    assert_equal_to_apfloat::<BFloat>("bfloat16", |_| false);
}

#[test]
fn e5m2_equals_apfloat() {
    assert_equal_to_apfloat::<Float8E5M2>("e5m2", |_| false);
}

#[test]
fn e4m3fn_equals_apfloat() {
    assert_equal_to_apfloat::<Float8E4M3FN>("e4m3fn", |x| -512.0 < x && x < -448.0);
}
