//! Statistics of two tensors: by hand, against the definition of one pair, and on hostile values.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use amp_inspect::cast::fast::Level;
use amp_inspect::cast::{CastPlan, Place};
use amp_inspect::format::decode::decode;
use amp_inspect::format::table::FORMATS;
use amp_inspect::stats::pair::{PairAt, Tolerance};
use amp_inspect::stats::{AccumulateTogether, Merge, PairAccumulator, PairPlan, PairStats};
use amp_inspect::tensor::{Chunk, Dtype};
use common::Random;

const NONE: Tolerance = Tolerance { rtol: 0.0, atol: 0.0 };

fn dtype(name: &str) -> Dtype {
    Dtype::parse(name).unwrap()
}

fn singles(plan: &PairPlan, x: &[f32], y: &[f32]) -> PairStats {
    let mut accumulator = PairAccumulator::new(plan);
    accumulator.observe(0, &[Chunk::F32(x), Chunk::F32(y)]);
    accumulator.finish()
}

fn by_definition(plan: &PairPlan, x: &[f32], y: &[f32]) -> PairStats {
    let mut accumulator = PairAccumulator::new(plan);
    for (index, (x, y)) in x.iter().zip(y).enumerate() {
        accumulator.observe_pair(index as u64, f64::from(*x), f64::from(*y));
    }
    accumulator.finish()
}

#[test]
fn a_case_by_hand() {
    let plan = PairPlan::new(&dtype("float32"), &dtype("float32"), Tolerance { rtol: 0.25, atol: 0.0 });
    let stats = singles(&plan, &[1.0, 2.0, -3.0, 0.0, -0.0], &[1.0, 2.5, 3.0, 0.0, 0.0]);
    assert_eq!((stats.elements, stats.finite, stats.different), (5, 5, 3), "−0 is another value than +0");
    // |2 − 2.5| = 0.25 · 2 is still within; |−3 − 3| is not.
    assert_eq!((stats.outside, stats.sign_flips), (1, 1));
    assert_eq!((stats.max_abs, stats.worst), (6.0, Some(PairAt { index: 2, x: -3.0, y: 3.0 })));
    assert_eq!(stats.mean_abs(), Some(6.5 / 5.0));
    assert_eq!(stats.rel_l2(), Some((36.25_f64 / 14.0).sqrt()));
    assert_eq!(stats.symmetric_diff(), Some(36.25 / (14.0 + 16.25)));
    assert!((stats.cosine().unwrap() - (1.0 + 5.0 - 9.0) / (14.0_f64 * 16.25).sqrt()).abs() < 1e-15);
    // From −3 over 0 to 3; the bits of 3.0 are 0x40400000.
    assert_eq!(stats.max_ulp, Some(2 * 0x4040_0000));
    let ulps = |x: f32, y: f32| singles(&plan, &[x], &[y]).max_ulp.unwrap();
    assert_eq!(ulps(1.0, 1.0_f32.next_up()), 1);
    assert_eq!(ulps(0.0, -f32::from_bits(1)), 1);
    assert_eq!(ulps(2.0, 2.5), 0x0020_0000);
    let half = PairPlan::new(&dtype("float32"), &dtype("bfloat16"), NONE);
    assert_eq!(singles(&half, &[1.0, 1.003], &[1.0, 1.0]).max_ulp, Some(0), "1.003 rounds to 1 in bfloat16");
    assert_eq!(singles(&half, &[1.0, 1.005], &[1.0, 1.0]).max_ulp, Some(1));
    assert_eq!(half.coarser().name(), "bfloat16");
}

#[test]
fn nothing_and_what_is_not_finite() {
    let plan = PairPlan::new(&dtype("float32"), &dtype("float32"), NONE);
    let nothing = singles(&plan, &[], &[]);
    assert_eq!(nothing, PairStats::default());
    assert_eq!(
        (nothing.mean_abs(), nothing.rel_l2(), nothing.cosine(), nothing.max_ulp),
        (None, None, None, None)
    );
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let x = [nan, nan, inf, inf, 1.0, -inf, nan];
    let y = [nan, 1.0, inf, -inf, nan, 2.0, inf];
    let stats = singles(&plan, &x, &y);
    assert_eq!((stats.nan_mismatch, stats.inf_mismatch, stats.finite), (3, 2, 0));
    assert_eq!((stats.different, stats.outside), (5, 5));
    assert_eq!(stats.first_mismatch.map(|at| at.index), Some(1));
    assert_eq!(stats.p99_ulp, None);
    let zeros = singles(&plan, &[0.0; 3], &[0.0; 3]);
    assert_eq!((zeros.rel_l2(), zeros.cosine(), zeros.symmetric_diff()), (Some(0.0), None, Some(0.0)));
    let from_zero = singles(&plan, &[0.0; 3], &[1.0; 3]);
    assert_eq!(from_zero.rel_l2(), Some(f64::INFINITY));
}

/// Values of every kind, and partners that are the same, near, far or not finite.
fn hostile(random: &mut Random, length: usize) -> (Vec<f32>, Vec<f32>) {
    let one = |random: &mut Random| match random.bits() % 12 {
        0 => 0.0,
        1 => -0.0,
        2 => f32::NAN,
        3 => f32::INFINITY,
        4 => f32::from_bits(random.bits() as u32),
        5 => f32::from_bits(random.bits() as u32 & 0x807f_ffff),
        _ => random.number(-20..=3) as f32,
    };
    let pair = |random: &mut Random| {
        let x = one(random);
        let y = match random.bits() % 5 {
            0 => x,
            1 => x.next_up(),
            2 => x * 1.01,
            3 => -x,
            _ => one(random),
        };
        (x, y)
    };
    (0..length).map(|_| pair(random)).unzip()
}

#[track_caller]
fn close(a: f64, b: f64) {
    assert!(a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs()), "{a} {b}");
}

#[test]
fn kernels_equal_the_definition() {
    let mut random = Random(7);
    let tolerance = Tolerance { rtol: 0.005, atol: 1e-6 };
    for (a, b) in [
        ("float32", "float32"),
        ("float32", "bfloat16"),
        ("float16", "float32"),
        ("bfloat16", "float16"),
        ("e4m3fn", "float32"),
        ("e5m2fnuz", "float16"),
        ("e2m1fn", "float32"),
        ("float32", "e8m0fnu"),
    ] {
        for length in [1, 15, 511, 512, 513, 5000] {
            let (x, y) = hostile(&mut random, length);
            let plan = PairPlan::new(&dtype(a), &dtype(b), tolerance);
            let wanted = by_definition(&plan, &x, &y);
            for level in Level::ALL {
                let plan = plan.clone().at_level(level);
                let stats = singles(&plan, &x, &y);
                for (ours, theirs) in [
                    (stats.sum_abs, wanted.sum_abs),
                    (stats.noise, wanted.noise),
                    (stats.signal_x, wanted.signal_x),
                    (stats.signal_y, wanted.signal_y),
                ] {
                    close(ours, theirs);
                }
                let scale = (wanted.signal_x * wanted.signal_y).sqrt();
                assert!((stats.dot - wanted.dot).abs() <= 1e-12 * scale, "{} {}", stats.dot, wanted.dot);
                let PairStats { sum_abs, noise, signal_x, signal_y, dot, .. } = wanted.clone();
                let rest = PairStats { sum_abs, noise, signal_x, signal_y, dot, ..stats };
                // As text, for a NaN is not equal to itself.
                let texts = [rest, wanted.clone()].map(|stats| format!("{stats:?}"));
                assert_eq!(texts[0], texts[1], "{a} {b} {length} {level:?}");
            }
        }
    }
}

#[test]
fn doubles_and_pieces_equal_the_definition() {
    let mut random = Random(8);
    let plan = PairPlan::new(&dtype("float32"), &dtype("float64"), NONE);
    let (x, _) = hostile(&mut random, 3000);
    let y: Vec<f64> = x.iter().map(|&x| f64::from(x) * (1.0 + 1e-9)).collect();
    let mut whole = PairAccumulator::new(&plan);
    whole.observe(0, &[Chunk::F32(&x), Chunk::F64(&y)]);
    let mut pieces = PairAccumulator::new(&plan);
    for first in (0..3000).step_by(700) {
        let end = (first + 700).min(3000);
        let mut piece = PairAccumulator::new(&plan);
        piece.observe(first as u64, &[Chunk::F32(&x[first..end]), Chunk::F64(&y[first..end])]);
        pieces.merge(piece);
    }
    let (whole, pieces) = (whole.finish(), pieces.finish());
    assert_eq!((whole.elements, whole.outside), (3000, pieces.outside));
    assert_eq!((whole.worst, whole.first_mismatch), (pieces.worst, pieces.first_mismatch));
    assert_eq!((whole.max_ulp, whole.p99_ulp), (pieces.max_ulp, pieces.p99_ulp));
    close(whole.noise, pieces.noise);
    let doubles = PairPlan::new(&dtype("float64"), &dtype("float64"), NONE);
    let mut accumulator = PairAccumulator::new(&doubles);
    accumulator
        .observe(0, &[Chunk::F64(&[1.0, -0.0, 1e300]), Chunk::F64(&[1.0_f64.next_down(), 5e-324, -1e300])]);
    let stats = accumulator.finish();
    assert_eq!(stats.max_ulp, Some(2 * 1e300_f64.to_bits()));
    assert_eq!((stats.rel_l2(), stats.cosine()), (None, None), "squares beyond f64");
}

#[test]
fn distances_count_the_numbers_between() {
    for format in FORMATS.iter().filter(|format| format.bits <= 8) {
        let mut numbers: Vec<f64> = (0..1 << format.bits).map(|code| decode(format, code)).collect();
        numbers.retain(|x| x.is_finite());
        // A code that no cast gives, such as the most negative integer, is no place to be.
        let plan = CastPlan::new(*format);
        numbers.retain(|&x| plan.cast_f64(x, Place::default()).value(format) == x);
        numbers.sort_by(f64::total_cmp);
        numbers.dedup_by(|a, b| a == b);
        let stored = dtype(format.name);
        let plan = PairPlan::new(&stored, &stored, NONE);
        for (i, &x) in numbers.iter().enumerate() {
            for (j, &y) in numbers.iter().enumerate() {
                let between = i.abs_diff(j) as u64;
                assert_eq!(plan.coarser().distance(x, y), between, "{}: {x} {y}", format.name);
            }
        }
    }
}

#[test]
fn the_percentile_is_that_of_the_sorted_distances() {
    let plan = PairPlan::new(&dtype("float32"), &dtype("float32"), NONE);
    let mut random = Random(9);
    for (length, most) in [(1, 5), (7, 40), (100, 60), (101, 1000), (5000, 1 << 20), (5000, 1 << 30)] {
        let distances: Vec<u32> = (0..length).map(|_| random.bits() as u32 % (most + 1)).collect();
        let y: Vec<f32> = distances.iter().map(|&distance| f32::from_bits(distance)).collect();
        let stats = singles(&plan, &vec![0.0; length], &y);
        let mut sorted = distances;
        sorted.sort_unstable();
        let wanted = u64::from(sorted[(99 * length).div_ceil(100) - 1]);
        let p99 = stats.p99_ulp.unwrap();
        assert_eq!(stats.max_ulp, sorted.last().map(|&max| max.into()));
        assert!(p99 >= wanted && p99 - wanted <= if wanted < 64 { 0 } else { wanted / 32 }, "{p99} {wanted}");
    }
}
