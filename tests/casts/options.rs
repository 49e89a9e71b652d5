//! Stochastic rounding, flushing of subnormals, saturation that keeps Inf, and the profiles of stacks.

use amp_inspect::cast::philox::{self, philox4x32};
use amp_inspect::cast::profile::{PROFILES, Profile};
use amp_inspect::cast::round::{Class, cast};
use amp_inspect::cast::{CastPlan, NanCode, Overflow, Place, Rounding};
use amp_inspect::format::exponent_of;

use crate::common::{Random, row};
use crate::lists::steps;

#[test]
fn philox_gives_the_known_answers() {
    // The three vectors that Random123 publishes for philox4x32 with 10 rounds.
    assert_eq!(philox4x32([0, 0], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(
        philox4x32([u32::MAX; 2], [u32::MAX; 4]),
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
    );
    assert_eq!(
        philox4x32([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
    );
    // Four consecutive elements share one block.
    let draws: Vec<u32> = (0..4).map(|index| philox::random(0, Place { stream: 0, index })).collect();
    assert_eq!(draws, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
}

#[test]
fn random_bits_carry_as_the_hardware_adds_them() {
    // All random values: of the 2^bits draws, exactly as many go up as the fraction says in units of
    // 2^-bits. 1 + 5/64 is 5/8 of the way from 1 to 1.125 in e4m3fn.
    let e4m3fn = row("e4m3fn");
    for (x, bits, up) in
        [(1.0 + 5.0 / 64.0, 3, 5), (1.0 + 5.0 / 64.0, 8, 160), (1.0 + 5.0 / 64.0, 1, 1), (1.0, 8, 0)]
    {
        for x in [x, -x] {
            let ups = (0..1_u32 << bits).filter(|&random| {
                let q = cast(&e4m3fn, Rounding::Stochastic { bits, random }, Overflow::Saturate, x);
                q.value(&e4m3fn).abs() > 1.0
            });
            assert_eq!(ups.count(), up, "{x} with {bits} bits");
        }
    }
    // Below the smallest subnormal too: a quarter of it survives in a quarter of the draws.
    let ups = (0..16).filter(|&random| {
        let q = cast(&e4m3fn, Rounding::Stochastic { bits: 4, random }, Overflow::Saturate, 2_f64.powi(-11));
        q.class == Class::Subnormal
    });
    assert_eq!(ups.count(), 4);
}

#[test]
fn stochastic_rounding_takes_a_neighbour_and_is_unbiased_to_five_sigma() {
    const N: u64 = 1 << 16;
    let mut random = Random(7);
    for name in ["float16", "bfloat16", "tf32", "e5m2", "e4m3fn", "e3m2fn", "e2m3fn", "e2m1fn"] {
        let format = row(name);
        let rounding = Rounding::stochastic(&format, Some(24));
        for seed in [1, 2, 3] {
            let plan = CastPlan { rounding, seed, ..CastPlan::new(format) };
            let x = random.number(-1..=0) as f32;
            let at = |mode| cast(&format, mode, Overflow::Saturate, x.into()).value(&format);
            let (low, high) = (at(Rounding::Down), at(Rounding::Up));
            let ups = (0..N).filter(|&index| {
                let q = plan.dequantise(plan.cast_f32(x, Place { stream: 5, index }));
                assert!(q == low || q == high, "{name}: {x} gives {q}, not {low} or {high}");
                q == high
            });
            let p = if low == high { 0.0 } else { (f64::from(x) - low) / (high - low) };
            let mean = N as f64 * if low == high { 1.0 } else { p };
            let sigma = (N as f64 * p * (1.0 - p)).sqrt();
            let ups = ups.count() as f64;
            assert!(
                (ups - mean).abs() <= 5.0 * sigma,
                "{name}: {ups} of {N} go up, {mean} expected, sigma {sigma}"
            );
        }
    }
}

#[test]
fn stochastic_results_for_three_seeds_stay_what_they_are() {
    // 1.3 lies 0.4 of the way from 1.25 (0x3a) to 1.375 (0x3b) in e4m3fn. The codes are those of
    // testdata/make/philox_codes.py, which shares nothing with the code here.
    let format = row("e4m3fn");
    let codes = |seed| -> Vec<u32> {
        let plan = CastPlan { rounding: Rounding::stochastic(&format, None), seed, ..CastPlan::new(format) };
        (0..8).map(|index| plan.cast_f32(1.3, Place { stream: 0, index }).code).collect()
    };
    assert_eq!(codes(0), [0x3b, 0x3b, 0x3b, 0x3b, 0x3b, 0x3a, 0x3a, 0x3b]);
    assert_eq!(codes(1), [0x3a, 0x3a, 0x3a, 0x3b, 0x3a, 0x3b, 0x3a, 0x3a]);
    assert_eq!(codes(u64::MAX), [0x3a, 0x3a, 0x3b, 0x3b, 0x3b, 0x3b, 0x3a, 0x3a]);
}

#[test]
fn the_default_number_of_random_bits_is_the_hardwares() {
    let bits = |name| match Rounding::stochastic(&row(name), None) {
        Rounding::Stochastic { bits, .. } => bits,
        other => panic!("{other:?}"),
    };
    let names = ["float16", "bfloat16", "e5m2", "e4m3fn", "e3m2fn", "e2m3fn", "e2m1fn"];
    assert_eq!(names.map(bits), [13, 16, 16, 16, 16, 16, 8]);
}

#[test]
fn subnormal_results_are_flushed_after_rounding() {
    let half = row("float16");
    let plan = CastPlan { flush_subnormal_results: true, ..CastPlan::new(half) };
    let outcome = |x: f64| plan.cast_f64(x, Place::default());
    let min_normal = half.min_normal();
    assert_eq!((outcome(min_normal).code, outcome(min_normal).class), (0x0400, Class::Normal));
    // Just below it rounds up to the smallest normal number, so it stays.
    assert_eq!(outcome(min_normal - 2_f64.powi(-25)).code, 0x0400);
    let largest_subnormal = min_normal - 2_f64.powi(-24);
    assert_eq!((outcome(largest_subnormal).code, outcome(largest_subnormal).class), (0, Class::Underflow));
    assert_eq!(outcome(-largest_subnormal).code, 0x8000);
    let fnuz = CastPlan { flush_subnormal_results: true, ..CastPlan::new(row("e4m3fnuz")) };
    assert_eq!(fnuz.cast_f32(-0.001, Place::default()).code, 0, "e4m3fnuz has no −0");
}

#[test]
fn subnormal_inputs_are_those_of_the_product() {
    let bfloat16 = row("bfloat16");
    let tiny = f32::from_bits(0x0070_0000);
    let plan = CastPlan { flush_subnormal_inputs: true, ..CastPlan::new(bfloat16) };
    let q = plan.cast_f32(-tiny, Place::default());
    assert_eq!((q.code, q.class), (0x8000, Class::Underflow));
    assert_eq!(plan.cast_f32(f32::MIN_POSITIVE, Place::default()).class, Class::Normal);
    let scaled = CastPlan { scale: 16.0, ..plan };
    assert_eq!(scaled.cast_f32(tiny, Place::default()).class, Class::Normal, "the product is normal");
    assert_eq!(CastPlan::new(bfloat16).cast_f32(tiny, Place::default()).class, Class::Subnormal);
    assert_eq!(plan.cast_f32(0.0, Place::default()).class, Class::Zero);
}

#[test]
fn saturate_finite_keeps_infinity() {
    let at = |name, x| {
        let format = row(name);
        let q = cast(&format, Rounding::NearestEven, Overflow::SaturateFinite, x);
        (q.code, q.class)
    };
    assert_eq!(at("e5m2", 1e9), (0x7b, Class::Overflow));
    assert_eq!(at("e5m2", -f64::INFINITY), (0xfc, Class::Inf));
    assert_eq!(at("e4m3fn", -1e9), (0xfe, Class::Overflow));
    assert_eq!(at("e4m3fn", f64::INFINITY), (0x7f, Class::Inf), "without Inf, as the ieee policy");
    assert_eq!(at("e2m1fn", f64::INFINITY), (0x7, Class::Inf), "without NaN either, the largest");
}

#[test]
fn nan_codes_are_chosen_only_where_there_are_several() {
    let code = |name, nan| {
        CastPlan { nan, ..CastPlan::new(row(name)) }.cast_f64(-f64::NAN.copysign(1.0), Place::default()).code
    };
    assert_eq!(code("float16", NanCode::Canonical), 0xfe00);
    assert_eq!(code("float16", NanCode::AllOnesPositive), 0x7fff);
    assert_eq!(code("float16", NanCode::AllOnesNegative), 0xffff);
    assert_eq!(code("e5m2", NanCode::AllOnes), 0xff);
    assert_eq!(code("e4m3fnuz", NanCode::AllOnes), 0x80);
    assert_eq!(code("e2m1fn", NanCode::AllOnes), 0x7);
}

/// Lists that a profile must equal on every input: maker, its profile, list, format.
const OF_PROFILES: &[(&str, &str, &str)] = &[
    ("ml_dtypes", "ml_dtypes-0.6.0.bfloat16.rne", "bfloat16"),
    ("ml_dtypes", "ml_dtypes-0.6.0.float8_e3m4.rne", "e3m4"),
    ("ml_dtypes", "ml_dtypes-0.6.0.float8_e4m3.rne", "e4m3ieee"),
    ("ml_dtypes", "ml_dtypes-0.6.0.float8_e4m3b11fnuz.rne", "e4m3b11fnuz"),
    ("ml_dtypes", "ml_dtypes-0.6.0.float8_e4m3fn.rne", "e4m3fn"),
    ("ml_dtypes", "ml_dtypes-0.6.0.float8_e4m3fnuz.rne", "e4m3fnuz"),
    ("ml_dtypes", "ml_dtypes-0.6.0.float8_e5m2.rne", "e5m2"),
    ("ml_dtypes", "ml_dtypes-0.6.0.float8_e5m2fnuz.rne", "e5m2fnuz"),
    ("torch<2.13", "ml_dtypes-0.6.0.float8_e4m3fn.rne", "e4m3fn"),
    ("torch", "torch-2.15.0-cpu.bfloat16.rne", "bfloat16"),
    ("torch", "torch-2.15.0-cpu.float8_e4m3fn.rne", "e4m3fn"),
    ("torch", "torch-2.15.0-cpu.float8_e4m3fnuz.rne", "e4m3fnuz"),
    ("torch", "torch-2.15.0-cpu.float8_e5m2.rne", "e5m2"),
    ("torch", "torch-2.15.0-cpu.float8_e5m2fnuz.rne", "e5m2fnuz"),
    ("nvidia", "cuda-13.0-host.bf16_rn", "bfloat16"),
    ("nvidia", "cuda-13.2-host.f16", "float16"),
    ("nvidia", "cuda-13.0-host.e4m3_sat", "e4m3fn"),
    ("nvidia", "cuda-13.2-host.e5m2_sat", "e5m2"),
    ("nvidia", "cuda-13.2-host.e3m2", "e3m2fn"),
    ("nvidia", "cuda-13.2-host.e2m3", "e2m3fn"),
    ("nvidia", "cuda-13.2-host.e2m1", "e2m1fn"),
    ("te", "cuda-13.0-host.e4m3_sat", "e4m3fn"),
    ("te", "cuda-13.2-host.e5m2_sat", "e5m2"),
];

#[test]
fn profiles_equal_the_lists_of_their_makers_without_exception() {
    for (profile, list, format) in OF_PROFILES {
        let plan = Profile::find(profile).unwrap().plan(row(format));
        let steps = steps(list);
        for (index, &(first, code)) in steps.iter().enumerate() {
            let last = steps.get(index + 1).map_or(u32::MAX, |(next, _)| next - 1);
            let middle = first + (last - first) / 3;
            for u in [first, middle, last] {
                let ours = plan.cast_f32(f32::from_bits(u), Place::default()).code;
                assert_eq!(ours, code, "{profile} {list} at {u:#010x}");
            }
        }
    }
    // ONNX has no list: its rule is saturation with Inf included, for every FP8 format.
    let onnx = Profile::find("onnx").unwrap();
    assert_eq!(onnx.plan(row("e5m2")).cast_f32(f32::INFINITY, Place::default()).code, 0x7b);
    assert_eq!(onnx.plan(row("e4m3fnuz")).cast_f32(f32::INFINITY, Place::default()).code, 0x7f);
    assert_eq!(onnx.plan(row("float16")).cast_f32(1e6, Place::default()).code, 0x7c00);
    let named: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
    assert_eq!(named, ["ml_dtypes", "torch", "torch<2.13", "nvidia", "te", "onnx"]);
}

#[test]
fn a_scale_that_is_a_power_of_two_is_known_as_one() {
    let log2 = |scale| CastPlan { scale, ..CastPlan::new(row("e5m2")) }.scale_log2();
    assert_eq!(
        (log2(1.0), log2(65536.0), log2(3.0), log2(2_f32.powi(-126))),
        (Some(0), Some(16), None, Some(-126))
    );
    assert_eq!(exponent_of(3.0), 1);
}
