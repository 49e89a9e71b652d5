//! The engines of `stats` against the definition (one element at a time through `cast::round`), and the
//! definition against figures worked out by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Mutex;

use amp_inspect::cast::fast::Level;
use amp_inspect::cast::{CastPlan, Overflow, Rounding};
use amp_inspect::format::{find, table::FORMATS};
use amp_inspect::stats::{
    Accumulate, FormatStats, Merge, SourceStats, StatsPlan, TensorAccumulator, TensorStats,
};
use amp_inspect::tensor::Chunk;
use proptest::prelude::*;

fn casts(scale: f32) -> Vec<CastPlan> {
    let described =
        ["e5m7", "e8m3", "e8m4fn", "e6m4b20", "e2m4fn", "e8m10fn"].map(|name| find(name).unwrap());
    let formats = FORMATS.iter().copied().chain(described);
    let modes = [Rounding::NearestEven, Rounding::NearestAway, Rounding::TowardZero, Rounding::Up];
    formats
        .flat_map(|target| {
            let policies = [Overflow::Ieee, Overflow::Saturate];
            policies.into_iter().flat_map(move |overflow| {
                modes.map(|rounding| CastPlan { rounding, overflow, scale, ..CastPlan::new(target) })
            })
        })
        .collect()
}

/// The plans for a scale, made once: tabulating a cast takes longer than casting a test's few elements.
fn plans(scale: f32) -> &'static (StatsPlan, StatsPlan) {
    static PLANS: Mutex<BTreeMap<u32, &(StatsPlan, StatsPlan)>> = Mutex::new(BTreeMap::new());
    PLANS.lock().unwrap().entry(scale.to_bits()).or_insert_with(|| {
        Box::leak(Box::new((StatsPlan::new(casts(scale)), StatsPlan::element_by_element(casts(scale)))))
    })
}

/// Small tensors go through other engines than large ones: the tests put each data set through both.
const SIZES: [u64; 2] = [0, u64::MAX];

fn run(plan: &StatsPlan, values: &[f32], size: u64) -> TensorStats {
    let mut whole = TensorAccumulator::new(plan, "t", size);
    whole.observe(0, Chunk::F32(values));
    whole.finish()
}

fn run_split(plan: &StatsPlan, values: &[f32], size: u64, at: usize) -> TensorStats {
    let (head, tail) = values.split_at(at.min(values.len()));
    let mut first = TensorAccumulator::new(plan, "t", size);
    first.observe(0, Chunk::F32(head));
    let mut second = TensorAccumulator::new(plan, "t", size);
    second.observe(head.len() as u64, Chunk::F32(tail));
    first.merge(second);
    first.finish()
}

#[track_caller]
fn close(what: &str, engine: f64, reference: f64) {
    let tolerance = 1e-9 * reference.abs();
    assert!(
        engine == reference || (engine - reference).abs() <= tolerance,
        "{what}: {engine:e} is not {reference:e}"
    );
}

#[track_caller]
fn same_source(a: &SourceStats, b: &SourceStats) {
    let sums = |s: &SourceStats| SourceStats { sum: 0.0, sum_squares: 0.0, ..s.clone() };
    assert_eq!(sums(a), sums(b));
    close("sum of squares", a.sum_squares, b.sum_squares);
    // The terms of the sum may cancel: what they can be off by is measured on their size.
    let size = (a.finite() as f64 * b.sum_squares).sqrt();
    assert!(a.sum == b.sum || (a.sum - b.sum).abs() <= 1e-12 * size, "sum: {:e} is not {:e}", a.sum, b.sum);
}

#[track_caller]
fn same_format(plan: &CastPlan, a: &FormatStats, b: &FormatStats) {
    let what = |figure: &str| format!("{figure} of {plan:?}");
    assert_eq!(a.classes, b.classes, "{}", what("classes"));
    assert_eq!(a.exceeds_max, b.exceeds_max, "{}", what("exceeds_max"));
    let (a, b) = (&a.errors, &b.errors);
    assert_eq!(
        (a.elements, a.nonzero, a.left_out),
        (b.elements, b.nonzero, b.left_out),
        "{}",
        what("elements")
    );
    close(&what("signal"), a.signal, b.signal);
    close(&what("noise"), a.noise, b.noise);
    close(&what("relative"), a.relative, b.relative);
    assert_eq!(a.max_abs, b.max_abs, "{}", what("max_abs"));
    assert_eq!(a.max_rel, b.max_rel, "{}", what("max_rel"));
}

#[track_caller]
fn same(plans: &[CastPlan], a: &TensorStats, b: &TensorStats) {
    same_source(&a.source, &b.source);
    for ((plan, a), b) in plans.iter().zip(&a.formats).zip(&b.formats) {
        assert_eq!(a.classes.total(), b.classes.total());
        same_format(plan, a, b);
    }
}

#[track_caller]
fn engines_equal_the_definition(values: &[f32], scale: f32) {
    let (engines, definition) = plans(scale);
    let reference = run(definition, values, 0);
    // Without casts the stored values have an engine of their own.
    let stored = StatsPlan::new(Vec::new());
    for level in Level::ALL {
        let stored = StatsPlan::new(Vec::new()).at_level(level);
        same_source(&run(&stored, values, u64::MAX).source, &reference.source);
    }
    same_source(&run_split(&stored, values, 0, values.len() / 3).source, &reference.source);
    // The definition of the source statistics, too, is one element at a time.
    let mut source = SourceStats::default();
    values.iter().for_each(|&x| source.observe(x.into(), 1));
    same_source(&reference.source, &source);
    for size in SIZES {
        same(engines.casts(), &run(engines, values, size), &reference);
        same(engines.casts(), &run_split(engines, values, size, values.len() / 3), &reference);
    }
    for stats in &reference.formats {
        assert_eq!(stats.classes.total(), values.len() as u64);
    }
}

#[test]
fn every_level_gives_the_same_bytes() {
    let mut random = 1_u32;
    let values: Vec<f32> = (0..5000)
        .map(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits(random)
        })
        .collect();
    for scale in [1.0, 1024.0] {
        let at = |level| SIZES.map(|size| run(&StatsPlan::new(casts(scale)).at_level(level), &values, size));
        let portable = at(Level::Portable);
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            assert_eq!(at(level), portable, "{}", level.name());
        }
    }
}

/// Bit patterns near everything that matters: ties, limits, powers of two, the ends of the range.
fn adversarial() -> impl Strategy<Value = f32> {
    let near = prop::sample::select(vec![
        0x0000_0000_u32,
        0x0000_0001,
        0x0003_ffff,
        0x0004_0000,
        0x007f_8000,
        0x007f_f000,
        0x007f_ffff,
        0x0080_0000,
        0x3300_0000,
        0x3380_0000,
        0x387f_f000,
        0x3880_0000,
        0x3a80_0000,
        0x3b00_0000,
        0x3c80_0000,
        0x3e80_0000,
        0x3f80_0000,
        0x40e0_0000,
        0x40c0_0000,
        0x43e0_0000,
        0x43e8_0000,
        0x4760_0000,
        0x4770_0000,
        0x477f_e000,
        0x477f_f000,
        0x7f7f_8000,
        0x7f7f_f000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
    ]);
    let near = (near, -2_i32..=2, any::<bool>());
    let near = near.prop_map(|(bits, step, negative)| {
        bits.wrapping_add_signed(step) & 0x7fff_ffff | u32::from(negative) << 31
    });
    let few_bits = any::<u32>().prop_map(|bits| bits & 0xffff_0000);
    let gradient =
        (any::<u32>(), 0x60_u32..0x80).prop_map(|(bits, exponent)| bits & 0x807f_ffff | exponent << 23);
    prop_oneof![near, few_bits, gradient, any::<u32>()].prop_map(f32::from_bits)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn engines_equal_the_definition_on_adversarial_bits(
        values in prop::collection::vec(adversarial(), 0..129),
        scale in prop::sample::select(vec![1.0_f32, 65536.0, 0.0078125, 3.0, 1e-30, 1.2676506e30, 8.507059e37]),
    ) {
        engines_equal_the_definition(&values, scale);
    }

    #[test]
    fn engines_equal_the_definition_on_repeated_values(value in adversarial(), length in 1_usize..3000) {
        engines_equal_the_definition(&vec![value; length], 1.0);
    }
}

#[test]
fn engines_equal_the_definition_one_unit_beside_every_e4m3fn_tie() {
    // Where the terms of the bin sums cancel most: all elements hug a number of the format.
    let format = find("e4m3fn").unwrap();
    for code in 1..format.max_finite_code() {
        let number = format.magnitude(code.into()) as f32;
        let tie = f64::midpoint(format.magnitude(code.into()), format.magnitude(u64::from(code) + 1)) as f32;
        for x in [number.next_down(), number.next_up(), tie.next_down(), tie, tie.next_up()] {
            engines_equal_the_definition(&[x, -x, x, x], 1.0);
        }
    }
}

#[test]
fn long_runs_of_every_kind_of_data_equal_the_definition() {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let mut gradient =
        move |_| f32::from_bits(random() & 0x007f_ffff | (0x68 + random() % 20) << 23 | random() << 31);
    let gradients: Vec<f32> = (0..5000).map(&mut gradient).collect();
    engines_equal_the_definition(&gradients, 1.0);
    engines_equal_the_definition(&gradients, 1024.0);
    let relu: Vec<f32> = gradients.iter().map(|x| x.max(0.0)).collect();
    engines_equal_the_definition(&relu, 1.0);
    engines_equal_the_definition(&[0.0; 2049], 1.0);
    engines_equal_the_definition(&[0.1; 2049], 1.0);
    engines_equal_the_definition(&[f32::NAN; 1025], 1.0);
    engines_equal_the_definition(&[1e-42; 1025], 1.0);
    engines_equal_the_definition(&[], 1.0);
}

/// −0, a subnormal of f16, a tie on each side of 1.0, the last value below f16's overflow and the first
/// that overflows, NaN, both infinities, and a value that is flushed.
const TEN: [f32; 10] = [
    -0.0,
    f32::from_bits(0x3380_0000), // 2^-24
    f32::from_bits(0x3f7f_f000), // 1 − 2^-12, tie between 1 − 2^-11 and 1
    f32::from_bits(0x3f80_1000), // 1 + 2^-11, tie between 1 and 1 + 2^-10
    f32::from_bits(0x477f_efff), // 65519.996
    65520.0,
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::from_bits(0xb300_0000), // −2^-25, tie between 0 and the smallest subnormal
];

#[test]
fn ten_elements_worked_out_by_hand() {
    let plans = vec![CastPlan::new(find("float16").unwrap())];
    for plan in [StatsPlan::new(plans.clone()), StatsPlan::element_by_element(plans.clone())] {
        let TensorStats { source, formats } = run(&plan, &TEN, u64::MAX);
        assert_eq!((source.elements, source.nan, source.positive_inf, source.negative_inf), (10, 1, 1, 1));
        assert_eq!((source.zero, source.finite(), source.nonzero_finite()), (1, 7, 6));
        assert_eq!((source.amax, source.amin), (65520.0, 2_f64.powi(-25)));
        let binades: Vec<_> =
            source.binades.iter().map(|(e, b)| (e, b.negative, b.positive, b.at_power)).collect();
        assert_eq!(binades, [(-25, 1, 0, 1), (-24, 0, 1, 1), (-1, 0, 1, 0), (0, 0, 1, 0), (15, 0, 2, 0)]);
        let c = formats[0].classes;
        assert_eq!(
            (c.nan, c.inf, c.zero, c.underflow, c.subnormal, c.normal, c.overflow),
            (1, 2, 1, 1, 1, 3, 1)
        );
        assert_eq!(formats[0].exceeds_max, 2, "65519.996 and 65520 are above 65504");
        let errors = formats[0].errors;
        assert_eq!((errors.elements, errors.nonzero, errors.left_out), (6, 5, 1));
        // 65519.99609375 − 65504; the flushed element loses all of itself.
        assert_eq!(errors.max_abs, 15.99609375);
        assert_eq!(errors.max_rel, 1.0);
        let noise = 2_f64.powi(-50) + 2_f64.powi(-24) + 2_f64.powi(-22) + 15.99609375 * 15.99609375;
        close("noise", errors.noise, noise);
        let relative = 1.0
            + 2_f64.powi(-12) / (1.0 - 2_f64.powi(-12))
            + 2_f64.powi(-11) / (1.0 + 2_f64.powi(-11))
            + 15.99609375 / 65519.99609375;
        close("relative", errors.relative, relative);
    }
}

#[test]
fn saturation_keeps_overflows_in_the_sums() {
    let plan = CastPlan { overflow: Overflow::Saturate, ..CastPlan::new(find("e4m3fn").unwrap()) };
    let stats = run(&StatsPlan::new(vec![plan]), &[1000.0, 464.0, 448.0, f32::INFINITY], u64::MAX).formats[0];
    assert_eq!((stats.classes.overflow, stats.classes.normal, stats.classes.inf), (1, 2, 1));
    assert_eq!(stats.exceeds_max, 2, "Transformer Engine counts 464, which rounds back to 448");
    assert_eq!((stats.errors.elements, stats.errors.left_out, stats.errors.max_abs), (3, 0, 552.0));
}

#[test]
fn sixty_four_bit_sources_are_rounded_once() {
    // 1 + 2^-11 + 2^-40 is above the tie; through f32 it would be the tie, and go down.
    let x = 1.0 + 2_f64.powi(-11) + 2_f64.powi(-40);
    let plans = vec![CastPlan::new(find("float16").unwrap())];
    let plan = StatsPlan::new(plans);
    let mut accumulator = TensorAccumulator::new(&plan, "t", 0);
    accumulator.observe(0, Chunk::F64(&[x]));
    let stats = accumulator.finish();
    assert_eq!(stats.formats[0].errors.max_abs, 1.0 + 2_f64.powi(-10) - x);
}
