//! The fast paths against the definition: every length, offset, level, row and policy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use amp_inspect::cast::fast::Level;
use amp_inspect::cast::fast::hardware::INSTRUCTIONS;
use amp_inspect::cast::fast::slice::{Code, SliceCast};
use amp_inspect::cast::fast::unpack::SliceDecode;
use amp_inspect::cast::{CastPlan, NanCode, OVERFLOWS, Place, Rounding};
use amp_inspect::format::decode::decode;
use amp_inspect::format::table::FORMATS;
use amp_inspect::format::{FormatSpec, find};
use common::{Random, exhaustive, row, say};

const MODES: [Rounding; 3] = [Rounding::NearestEven, Rounding::NearestAway, Rounding::TowardZero];
const NANS: [NanCode; 4] =
    [NanCode::Canonical, NanCode::AllOnes, NanCode::AllOnesPositive, NanCode::AllOnesNegative];

/// Described formats that the slices must reproduce: one bit of precision, exponents beyond float32's on
/// either side, odd biases.
const DESCRIBED: &[&str] = &[
    "e4m0fn",
    "e5m0b14fn",
    "e5m0fnuz",
    "e5m3",
    "e8m1",
    "e8m22",
    "e8m5b100",
    "e8m4b60",
    "e8m3b200",
    "e6m9fn",
    "e3m20",
    "e2m2fnuz",
    "e7m23",
    "e8m2b126",
    "e1m2fn",
];

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

fn formats() -> Vec<FormatSpec> {
    let described = DESCRIBED.iter().map(|name| find(name).expect(name));
    // No name describes a bias below 0.
    let large = [-20, -90].map(|bias| FormatSpec { bias, ..row("e4m3fn") });
    FORMATS.iter().copied().chain(described).chain(large).collect()
}

fn plans(target: FormatSpec) -> Vec<CastPlan> {
    let mut plans = Vec::new();
    for rounding in MODES {
        for (_, overflow, _) in OVERFLOWS {
            for nan in NANS {
                plans.push(CastPlan { rounding, overflow: *overflow, nan, ..CastPlan::new(target) });
            }
        }
    }
    plans
}

/// Float32 that lie on and beside every number, tie and limit of the format (or many of them, where it has
/// too many), all kinds of NaN, subnormal numbers and random bits.
fn adversarial(format: &FormatSpec) -> Vec<f32> {
    let last = u64::from(format.max_finite_code()) + 1;
    let step = last / 3000 + 1;
    let binade = 1_u64 << format.trailing_bits();
    let edges = (0..=last / binade).flat_map(|field| {
        let start = field * binade;
        [start.saturating_sub(2), start.saturating_sub(1), start, start + 1]
    });
    let codes = (0..=last).step_by(step as usize).chain(edges.take(20_000)).chain([last - 1, last]);
    let mut bits: Vec<u32> = Vec::new();
    for code in codes.filter(|&code| code <= last) {
        let (here, next) = (format.magnitude(code), format.magnitude(code + 1));
        for x in [here, f64::midpoint(here, next)] {
            let near = (x as f32).to_bits();
            bits.extend([near.saturating_sub(1), near, (near + 1).min(0x7f80_0000)]);
        }
    }
    for payload in [1, 2, 0x1fff, 0x2000, 0x1f_ffff, 0x20_0000, 0x3f_ffff, 0x40_0000, 0x7f_ffff] {
        bits.push(0x7f80_0000 | payload);
    }
    bits.extend((0..23).flat_map(|bit| [1 << bit, (1 << bit) - 1, (1 << bit) + 1, 3 << bit >> 1]));
    bits.extend([0, 0x7f7f_ffff, 0x7f80_0000, 0x0080_0000, 0x007f_ffff, 0x0060_0000, 0x0060_0001]);
    let mut random = Random(7);
    bits.extend((0..2000).map(|_| random.bits() as u32));
    let negated: Vec<u32> = bits.iter().map(|bits| bits ^ 1 << 31).collect();
    bits.into_iter().chain(negated).map(f32::from_bits).collect()
}

fn assert_encodes<C: Code>(
    plan: &CastPlan,
    cast: &SliceCast,
    level: Level,
    values: &[f32],
    expected: &[u32],
) {
    let mut codes = vec![C::default(); values.len()];
    cast.encode(level, values, &mut codes);
    for ((x, code), &expected) in values.iter().zip(codes).zip(expected) {
        let found = code.to_u32();
        let bits = x.to_bits();
        assert_eq!(found, expected, "{level:?} {bits:#x} = {x:e} {found:#x} not {expected:#x}\n{plan:?}");
    }
}

#[test]
fn slices_equal_the_definition_on_every_tie_and_limit() {
    for format in formats() {
        let values = adversarial(&format);
        for plan in plans(format) {
            let cast = SliceCast::new(&plan).unwrap_or_else(|| panic!("{} is not cast", format.name));
            let expected: Vec<u32> =
                values.iter().map(|&x| plan.cast_f32(x, Place::default()).code).collect();
            for level in levels() {
                assert_encodes::<u32>(&plan, &cast, level, &values, &expected);
                if format.bits <= 16 {
                    assert_encodes::<u16>(&plan, &cast, level, &values, &expected);
                }
                if format.bits <= 8 {
                    assert_encodes::<u8>(&plan, &cast, level, &values, &expected);
                }
            }
        }
    }
}

#[test]
fn slices_of_every_length_and_offset() {
    let mut random = Random(11);
    for format in FORMATS {
        let plan = CastPlan::new(*format);
        let cast = SliceCast::new(&plan).unwrap();
        let values: Vec<f32> = (0..160).map(|_| f32::from_bits(random.bits() as u32)).collect();
        let expected: Vec<u32> = values.iter().map(|&x| plan.cast_f32(x, Place::default()).code).collect();
        for level in levels() {
            for (length, offset) in (0..129).map(|length| (length, length * 7 % 31)) {
                let mut codes = [u32::MAX; 160];
                cast.encode(level, &values[offset..offset + length], &mut codes[offset..]);
                assert_eq!(codes[offset..offset + length], expected[offset..offset + length]);
                let untouched = codes[..offset].iter().chain(&codes[offset + length..]);
                assert!(untouched.into_iter().all(|&code| code == u32::MAX));
            }
        }
    }
}

#[test]
fn what_is_not_reproduced_is_refused() {
    let half = CastPlan::new(row("float16"));
    for plan in [
        CastPlan { scale: 2.0, ..half },
        CastPlan { flush_subnormal_results: true, ..half },
        CastPlan { flush_subnormal_inputs: true, ..half },
        CastPlan { rounding: Rounding::Up, ..half },
        CastPlan { rounding: Rounding::stochastic(&half.target, None), ..half },
        CastPlan::new(find("e8m3b140").unwrap()),
        CastPlan::new(FormatSpec { signed: false, ..row("e4m3fn") }),
    ] {
        assert!(SliceCast::new(&plan).is_none(), "{plan:?}");
    }
    assert!(SliceDecode::new(&find("e8m5b100").unwrap()).is_none());
}

#[test]
fn decoded_slices_equal_the_definition() {
    let mut random = Random(13);
    for format in formats() {
        let Some(decoder) = SliceDecode::new(&format) else {
            assert!(format.emax() > 127 || format.emin() < -126, "{}", format.name);
            continue;
        };
        let mask = ((1_u64 << format.bits) - 1) as u32;
        let mut codes: Vec<u32> = match format.bits {
            ..=20 => (0..=mask).collect(),
            _ => (0..1 << 20).map(|_| random.bits() as u32 & mask).collect(),
        };
        let edges = [0, 1, format.max_finite_code(), format.magnitude_mask()];
        codes.extend(edges.into_iter().flat_map(|code| [code, code + 1, code | format.sign_bit()]));
        codes.iter_mut().for_each(|code| *code &= mask);
        for level in levels() {
            let mut values = vec![0.0; codes.len()];
            decoder.decode(level, &codes, &mut values);
            for (&code, value) in codes.iter().zip(values) {
                let expected = decode(&format, code);
                let same = f64::from(value).to_bits() == expected.to_bits();
                assert!(same, "{} {level:?} {code:#x}: {value:e} not {expected:e}", format.name);
            }
        }
    }
}

#[test]
fn instructions_round_as_the_definition() {
    for instruction in INSTRUCTIONS.iter().filter(|instruction| instruction.is_available()) {
        let format = row(instruction.format);
        let plan = CastPlan { rounding: instruction.rounding, ..CastPlan::new(format) };
        let mut values = adversarial(&format);
        values.truncate(values.len() / 16 * 16 + 5);
        // NaN payloads are kept, and vcvtneps2bf16 has no subnormal inputs.
        values.retain(|x| !x.is_nan() && (format.name == "float16" || !x.is_subnormal()));
        let mut codes = vec![0; values.len()];
        instruction.convert(&values, &mut codes);
        for (&x, code) in values.iter().zip(codes) {
            let expected = plan.cast_f32(x, Place::default()).code;
            assert_eq!(u32::from(code), expected, "{} {x:e}", instruction.name);
        }
    }
}

/// Every input of every row at the best level. Rounding is monotonic (tests/casts proves that of the
/// definition on all inputs), so a run of 256 inputs whose ends have the same code has it throughout, and
/// only the others are cast one by one. `amp-inspect verify --full` asks the definition every time.
#[test]
fn every_float32_is_cast_as_defined() {
    if !exhaustive() {
        say("AMP_INSPECT_EXHAUSTIVE=1 would try all 2^32 inputs of slices");
        return;
    }
    const CHUNK: usize = 1 << 14;
    const RUN: usize = 256;
    let mut cases: Vec<CastPlan> = FORMATS.iter().map(|format| CastPlan::new(*format)).collect();
    cases.push(CastPlan { rounding: Rounding::NearestAway, ..CastPlan::new(row("tf32")) });
    for plan in cases {
        let start = std::time::Instant::now();
        let cast = SliceCast::new(&plan).unwrap();
        let defined = |x: f32| plan.cast_f32(x, Place::default()).code;
        let next = AtomicU32::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let (mut values, mut codes) = (vec![0.0_f32; CHUNK], vec![0_u32; CHUNK]);
                    loop {
                        let chunk = next.fetch_add(1, Relaxed);
                        if u64::from(chunk) * CHUNK as u64 >= 1 << 32 {
                            break;
                        }
                        for (bits, value) in (chunk * CHUNK as u32..).zip(&mut values) {
                            *value = f32::from_bits(bits);
                        }
                        cast.encode(Level::best(), &values, &mut codes);
                        for (values, codes) in values.chunks(RUN).zip(codes.chunks(RUN)) {
                            let (first, last) = (defined(values[0]), defined(values[RUN - 1]));
                            let same = first == last && codes.iter().all(|&code| code == first);
                            if !same {
                                for (&x, &code) in values.iter().zip(codes) {
                                    assert_eq!(code, defined(x), "{:#x}, {plan:?}", x.to_bits());
                                }
                            }
                        }
                    }
                });
            }
        });
        let (name, rounding) = (plan.target.name, plan.rounding.name());
        say(&format!("{name} {rounding}: all 2^32 inputs in {:.1} s", start.elapsed().as_secs_f64()));
    }
}
