//! Every input of float32 against what other makers' conversions gave for it (`testdata/casts`).
//!
//! Each list has one row below: the cast of ours that it must equal, and the inputs on which the maker
//! is known to differ. A difference is told as the exact codes that the maker and we give there, so it
//! excuses nothing else.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use amp_inspect::cast::Overflow::{Ieee, Saturate};
use amp_inspect::cast::Rounding::{Down, NearestEven, TowardZero, Up};
use amp_inspect::cast::round::cast;
use amp_inspect::cast::{Overflow, Rounding};
use amp_inspect::format::FormatSpec;

use crate::common::{exhaustive, gunzip, names_in, row, say};

/// One list and the cast it must equal.
struct Mapping {
    list: &'static str,
    format: &'static str,
    rounding: Rounding,
    overflow: Overflow,
    differs: &'static [Difference],
}

/// Inputs on which a maker gives a code other than ours, and the only two codes accepted there.
struct Difference {
    why: &'static str,
    /// Whether the float32 with these bits is such an input.
    applies: fn(u32) -> bool,
    ours: fn(u32) -> u32,
    theirs: fn(u32) -> u32,
}

const fn map(
    list: &'static str,
    format: &'static str,
    rounding: Rounding,
    overflow: Overflow,
    differs: &'static [Difference],
) -> Mapping {
    Mapping { list, format, rounding, overflow, differs }
}

const fn differ(
    why: &'static str,
    applies: fn(u32) -> bool,
    ours: fn(u32) -> u32,
    theirs: fn(u32) -> u32,
) -> Difference {
    Difference { why, applies, ours, theirs }
}

const INFINITY: u32 = 0x7f80_0000;

fn magnitude(u: u32) -> u32 {
    u & 0x7fff_ffff
}

fn negative(u: u32) -> bool {
    u >> 31 == 1
}

fn nan(u: u32) -> bool {
    magnitude(u) > INFINITY
}

/// The sign, moved to the place that it has in a code of `bits` bits.
fn sign(u: u32, bits: u32) -> u32 {
    u >> 31 << (bits - 1)
}

/// Halfway between two powers of two, above 2^-126.
fn between_powers(u: u32) -> bool {
    (0x0080_0000..INFINITY).contains(&magnitude(u)) && u & 0x007f_ffff == 0x0040_0000
}

/// The exponent field: the e8m0 code of the power of two below.
fn power_below(u: u32) -> u32 {
    magnitude(u) >> 23
}

// IEEE 754 leaves a NaN's payload open; ours is the sign and the quiet bit. Each maker has another.
fn our_f16_nan(u: u32) -> u32 {
    0x7e00 | sign(u, 16)
}
fn our_bf16_nan(u: u32) -> u32 {
    0x7fc0 | sign(u, 16)
}
fn our_e5m2_nan(u: u32) -> u32 {
    0x7e | sign(u, 8)
}
const F16_NAN_CUDA: Difference =
    differ("NVIDIA's float16 NaN is 0x7fff, without sign", nan, our_f16_nan, |_| 0x7fff);
const BF16_NAN_CUDA: Difference =
    differ("NVIDIA's bfloat16 NaN is 0x7fff, without sign", nan, our_bf16_nan, |_| 0x7fff);
const BF16_NAN_TORCH: Difference =
    differ("torch's bfloat16 NaN is 0xffff whatever the sign", nan, our_bf16_nan, |_| 0xffff);
const E4M3_NAN_CUDA: Difference =
    differ("NVIDIA's e4m3 NaN has no sign", |u| nan(u) && negative(u), |_| 0xff, |_| 0x7f);
const E5M2_NAN_CUDA: Difference =
    differ("NVIDIA's e5m2 NaN is 0x7f, without sign", nan, our_e5m2_nan, |_| 0x7f);
const E5M2_NAN_TORCH: Difference =
    differ("torch's e5m2 NaN has both payload bits set", nan, our_e5m2_nan, |u| 0x7f | sign(u, 8));
const E5M2_NAN_FLOAT8: Difference = differ(
    "float8 lets the second payload bit through",
    |u| nan(u) && u >> 21 & 1 == 1,
    our_e5m2_nan,
    |u| 0x7f | sign(u, 8),
);
const F16_NAN_HALF: Difference =
    differ("half keeps the upper payload bits and sets the quiet bit", nan, our_f16_nan, |u| {
        sign(u, 16) | 0x7e00 | (u & 0x007f_ffff) >> 13
    });
const BF16_NAN_HALF: Difference =
    differ("half keeps the upper payload bits and sets the quiet bit", nan, our_bf16_nan, |u| u >> 16 | 0x40);

// Formats without NaN: ours follows NVIDIA (the largest number), ml_dtypes gives a zero of the other sign.
const FP6_NAN_ML_DTYPES: Difference =
    differ("ml_dtypes turns an FP6 NaN into a zero of the other sign", nan, |_| 0x1f, |u| sign(!u, 6));
const FP4_NAN_ML_DTYPES: Difference =
    differ("ml_dtypes turns an FP4 NaN into a zero of the other sign", nan, |_| 0x7, |u| sign(!u, 4));

// e8m0 by ml_dtypes, and by torch, which does the same with positive inputs.
const E8M0_TIE_UP: Difference = differ(
    "a tie between powers of two goes up even if the code below is even (from 254 to NaN)",
    |u| between_powers(u) && power_below(u).is_multiple_of(2),
    power_below,
    |u| power_below(u) + 1,
);
const E8M0_LOWEST_BINADE: Difference = differ(
    "everything above 2^-127, not only above 1.5*2^-127, goes up to 2^-126",
    |u| (0x0040_0001..=0x0060_0000).contains(&magnitude(u)),
    |_| 0,
    |_| 1,
);
const E8M0_OVERFLOW_TORCH: Difference = differ(
    "torch drops the sign as `saturate` does, yet overflow and Inf are NaN",
    |u| (0x7f40_0001..=INFINITY).contains(&magnitude(u)),
    |_| 0xfe,
    |_| 0xff,
);
// NVIDIA's e8m0 without satfinite: as with it, but beyond 2^127 comes NaN.
const E8M0_OVERFLOW_UP: Difference = differ(
    "without satfinite, above 2^127 rounded up is NaN, and so is Inf",
    |u| (0x7f00_0001..=INFINITY).contains(&magnitude(u)),
    |_| 0xfe,
    |_| 0xff,
);
const E8M0_INFINITY: Difference =
    differ("without satfinite Inf is NaN", |u| magnitude(u) == INFINITY, |_| 0xfe, |_| 0xff);

const MAPPINGS: &[Mapping] = &[
    map("cuda-13.0-host.bf16_rd", "bfloat16", Down, Ieee, &[BF16_NAN_CUDA]),
    map("cuda-13.0-host.bf16_rn", "bfloat16", NearestEven, Ieee, &[BF16_NAN_CUDA]),
    map("cuda-13.0-host.bf16_ru", "bfloat16", Up, Ieee, &[BF16_NAN_CUDA]),
    map("cuda-13.0-host.bf16_rz", "bfloat16", TowardZero, Ieee, &[BF16_NAN_CUDA]),
    map("cuda-13.0-host.e4m3_sat", "e4m3fn", NearestEven, Saturate, &[E4M3_NAN_CUDA]),
    map("cuda-13.0-host.e8m0_rp_nosat", "e8m0fnu", Up, Saturate, &[E8M0_OVERFLOW_UP]),
    map("cuda-13.0-host.e8m0_rz_nosat", "e8m0fnu", TowardZero, Saturate, &[E8M0_INFINITY]),
    map("cuda-13.0-host.e8m0_rz_sat", "e8m0fnu", TowardZero, Saturate, &[]),
    map("cuda-13.0-host.f16_rd", "float16", Down, Ieee, &[F16_NAN_CUDA]),
    map("cuda-13.0-host.f16_ru", "float16", Up, Ieee, &[F16_NAN_CUDA]),
    map("cuda-13.0-host.f16_rz", "float16", TowardZero, Ieee, &[F16_NAN_CUDA]),
    map("cuda-13.2-host.e2m1", "e2m1fn", NearestEven, Saturate, &[]),
    map("cuda-13.2-host.e2m3", "e2m3fn", NearestEven, Saturate, &[]),
    map("cuda-13.2-host.e3m2", "e3m2fn", NearestEven, Saturate, &[]),
    map("cuda-13.2-host.e4m3_nosat", "e4m3fn", NearestEven, Ieee, &[E4M3_NAN_CUDA]),
    map("cuda-13.2-host.e5m2_nosat", "e5m2", NearestEven, Ieee, &[E5M2_NAN_CUDA]),
    map("cuda-13.2-host.e5m2_sat", "e5m2", NearestEven, Saturate, &[E5M2_NAN_CUDA]),
    map("cuda-13.2-host.e8m0_rp_sat", "e8m0fnu", Up, Saturate, &[]),
    map("cuda-13.2-host.f16", "float16", NearestEven, Ieee, &[F16_NAN_CUDA]),
    map("float8-0.7.0.e4m3.rne", "e4m3fn", NearestEven, Saturate, &[]),
    map("float8-0.7.0.e5m2.rne", "e5m2", NearestEven, Saturate, &[E5M2_NAN_FLOAT8]),
    map("half-2.7.1.bfloat16.rne", "bfloat16", NearestEven, Ieee, &[BF16_NAN_HALF]),
    map("half-2.7.1.float16.rne", "float16", NearestEven, Ieee, &[F16_NAN_HALF]),
    map("ml_dtypes-0.6.0.bfloat16.rne", "bfloat16", NearestEven, Ieee, &[]),
    map("ml_dtypes-0.6.0.float4_e2m1fn.rne", "e2m1fn", NearestEven, Ieee, &[FP4_NAN_ML_DTYPES]),
    map("ml_dtypes-0.6.0.float6_e2m3fn.rne", "e2m3fn", NearestEven, Ieee, &[FP6_NAN_ML_DTYPES]),
    map("ml_dtypes-0.6.0.float6_e3m2fn.rne", "e3m2fn", NearestEven, Ieee, &[FP6_NAN_ML_DTYPES]),
    map("ml_dtypes-0.6.0.float8_e3m4.rne", "e3m4", NearestEven, Ieee, &[]),
    map("ml_dtypes-0.6.0.float8_e4m3.rne", "e4m3ieee", NearestEven, Ieee, &[]),
    map("ml_dtypes-0.6.0.float8_e4m3b11fnuz.rne", "e4m3b11fnuz", NearestEven, Ieee, &[]),
    map("ml_dtypes-0.6.0.float8_e4m3fn.rne", "e4m3fn", NearestEven, Ieee, &[]),
    map("ml_dtypes-0.6.0.float8_e4m3fnuz.rne", "e4m3fnuz", NearestEven, Ieee, &[]),
    map("ml_dtypes-0.6.0.float8_e5m2.rne", "e5m2", NearestEven, Ieee, &[]),
    map("ml_dtypes-0.6.0.float8_e5m2fnuz.rne", "e5m2fnuz", NearestEven, Ieee, &[]),
    map(
        "ml_dtypes-0.6.0.float8_e8m0fnu.rne",
        "e8m0fnu",
        NearestEven,
        Ieee,
        &[E8M0_TIE_UP, E8M0_LOWEST_BINADE],
    ),
    map("torch-2.15.0-cpu.bfloat16.rne", "bfloat16", NearestEven, Ieee, &[BF16_NAN_TORCH]),
    map("torch-2.15.0-cpu.float8_e4m3fn.rne", "e4m3fn", NearestEven, Saturate, &[]),
    map("torch-2.15.0-cpu.float8_e4m3fnuz.rne", "e4m3fnuz", NearestEven, Ieee, &[]),
    map("torch-2.15.0-cpu.float8_e5m2.rne", "e5m2", NearestEven, Ieee, &[E5M2_NAN_TORCH]),
    map("torch-2.15.0-cpu.float8_e5m2fnuz.rne", "e5m2fnuz", NearestEven, Ieee, &[]),
    map(
        "torch-2.15.0-cpu.float8_e8m0fnu.rne",
        "e8m0fnu",
        NearestEven,
        Saturate,
        &[E8M0_TIE_UP, E8M0_LOWEST_BINADE, E8M0_OVERFLOW_TORCH],
    ),
];

/// The steps of one list: from input `firsts[i]` on the result is `codes[i]`.
struct Steps {
    firsts: Vec<u32>,
    codes: Vec<u16>,
}

impl Steps {
    fn read(list: &str) -> Self {
        let bytes = gunzip(&format!("casts/{list}.steps.gz"));
        let count = bytes.len() / 6;
        assert_eq!(bytes.len(), count * 6, "{list}: two columns of n x 4 and n x 2 bytes");
        let (firsts, codes) = bytes.split_at(count * 4);
        let firsts: Vec<u32> = firsts
            .chunks_exact(4)
            .scan(0_u32, |sum, delta| {
                *sum = sum.checked_add(u32::from_le_bytes(delta.try_into().unwrap())).unwrap();
                Some(*sum)
            })
            .collect();
        let codes = codes
            .chunks_exact(2)
            .scan(0_u16, |sum, delta| {
                *sum = sum.wrapping_add(u16::from_le_bytes(delta.try_into().unwrap()));
                Some(*sum)
            })
            .collect();
        assert_eq!(firsts[0], 0, "{list}: the first step begins at input 0");
        assert!(firsts.is_sorted_by(|a, b| a < b), "{list}: steps in ascending order");
        Self { firsts, codes }
    }

    /// The step that holds input `u`.
    fn at(&self, u: u32) -> usize {
        self.firsts.partition_point(|&first| first <= u) - 1
    }

    /// The last input of a step.
    fn last(&self, step: usize) -> u32 {
        self.firsts.get(step + 1).map_or(u32::MAX, |next| next - 1)
    }
}

/// The steps of a list as pairs of the first input and the code.
pub(crate) fn steps(list: &str) -> Vec<(u32, u32)> {
    let Steps { firsts, codes } = Steps::read(list);
    firsts.into_iter().zip(codes.into_iter().map(u32::from)).collect()
}

/// Lists that share a cast, so that each input is rounded once for all of them.
struct Group {
    format: FormatSpec,
    rounding: Rounding,
    overflow: Overflow,
    lists: Vec<(&'static Mapping, Steps)>,
}

impl Group {
    fn ours(&self, u: u32) -> u32 {
        cast(&self.format, self.rounding, self.overflow, f64::from(f32::from_bits(u))).code
    }

    fn name(&self) -> String {
        format!("{} {:?} {:?}", self.format.name, self.rounding, self.overflow)
    }
}

fn groups() -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for mapping in MAPPINGS {
        let format = row(mapping.format);
        let (rounding, overflow) = (mapping.rounding, mapping.overflow);
        let list = (mapping, Steps::read(mapping.list));
        let same = |group: &&mut Group| {
            group.format == format && group.rounding == rounding && group.overflow == overflow
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.lists.push(list),
            None => groups.push(Group { format, rounding, overflow, lists: vec![list] }),
        }
    }
    groups
}

/// What was found wrong, and how often each difference was met, by list and by its place in the row.
#[derive(Default)]
struct Findings {
    wrong: u64,
    examples: Vec<String>,
    met: Vec<(&'static str, usize)>,
}

impl Findings {
    /// Judges one result of a maker that is not ours.
    fn judge(&mut self, mapping: &'static Mapping, u: u32, ours: u32, theirs: u32) {
        let known = |d: &Difference| (d.applies)(u) && (d.ours)(u) == ours && (d.theirs)(u) == theirs;
        if let Some(which) = mapping.differs.iter().position(known) {
            if !self.met.contains(&(mapping.list, which)) {
                self.met.push((mapping.list, which));
            }
            return;
        }
        self.wrong += 1;
        if self.examples.len() < 4 {
            let x = f32::from_bits(u);
            self.examples.push(format!("{}: {u:#010x} ({x:e}) is {theirs:#x}, ours {ours:#x}", mapping.list));
        }
    }

    fn merge(&mut self, other: Self) {
        self.wrong += other.wrong;
        self.examples.extend(other.examples);
        self.met.extend(other.met);
    }

    /// Nothing wrong, and no difference listed that is never met.
    fn assert_clean(&self) {
        assert!(self.wrong == 0, "{} results differ:\n{}", self.wrong, self.examples.join("\n"));
        for mapping in MAPPINGS {
            for (which, difference) in mapping.differs.iter().enumerate() {
                let met = self.met.contains(&(mapping.list, which));
                assert!(met, "{}: never met: {}", mapping.list, difference.why);
            }
        }
    }
}

/// Checks every input of a range, both ends included.
fn check_range(group: &Group, range: RangeInclusive<u32>) -> Findings {
    let (start, end) = range.into_inner();
    let mut findings = Findings::default();
    let mut steps: Vec<usize> = group.lists.iter().map(|(_, list)| list.at(start)).collect();
    let mut from = start;
    loop {
        // Up to `to` no list changes its code.
        let lasts = group.lists.iter().zip(&steps).map(|((_, list), &step)| list.last(step));
        let to = lasts.min().unwrap().min(end);
        let codes: Vec<u32> =
            group.lists.iter().zip(&steps).map(|((_, list), &step)| list.codes[step].into()).collect();
        for u in from..=to {
            let ours = group.ours(u);
            for (&theirs, (mapping, _)) in codes.iter().zip(&group.lists) {
                if theirs != ours {
                    findings.judge(mapping, u, ours, theirs);
                }
            }
        }
        if to == end {
            return findings;
        }
        from = to + 1;
        for ((_, list), step) in group.lists.iter().zip(&mut steps) {
            *step += usize::from(list.last(*step) < from);
        }
    }
}

/// Checks the first and last input of every step, and a million inputs spread over all of them.
fn check_sample(group: &Group) -> (Findings, u64) {
    // Prime, so that the low bits take all values; a million strides cover all inputs.
    const STRIDE: usize = 4099;
    let mut findings = Findings::default();
    let mut inputs = 0;
    for (mapping, list) in &group.lists {
        let mut check = |u: u32, step: usize| {
            let (ours, theirs) = (group.ours(u), list.codes[step].into());
            if ours != theirs {
                findings.judge(mapping, u, ours, theirs);
            }
            inputs += 1;
        };
        for step in 0..list.firsts.len() {
            check(list.firsts[step], step);
            check(list.last(step), step);
        }
        let mut step = 0;
        for u in (0..=u32::MAX).step_by(STRIDE) {
            while list.last(step) < u {
                step += 1;
            }
            check(u, step);
        }
    }
    (findings, inputs)
}

/// Runs `work` on the numbers below `count`, on every processor.
fn in_parallel(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let item = next.fetch_add(1, Relaxed);
                    if item >= count {
                        break;
                    }
                    work(item);
                }
            });
        }
    });
}

#[test]
fn every_list_has_one_mapping_and_every_mapping_a_list() {
    let files = names_in("casts", ".steps.gz");
    let mapped: BTreeSet<_> = MAPPINGS.iter().map(|mapping| mapping.list.to_owned()).collect();
    assert_eq!(mapped.len(), MAPPINGS.len(), "a list is mapped twice");
    assert_eq!(files, mapped.into_iter().collect::<Vec<_>>());
}

#[test]
fn casts_equal_the_lists_of_other_makers() {
    let groups = groups();
    let findings = Mutex::new(Findings::default());
    let inputs = AtomicU64::new(0);
    if exhaustive() {
        // 2^8 parts of 2^24 inputs: small enough that the processors finish together.
        for group in &groups {
            let start = Instant::now();
            in_parallel(1 << 8, |part| {
                let from = (part as u32) << 24;
                let found = check_range(group, from..=from | 0x00ff_ffff);
                findings.lock().unwrap().merge(found);
                inputs.fetch_add(1 << 24, Relaxed);
            });
            let (name, lists) = (group.name(), group.lists.len());
            say(&format!("{name}: 2^32 inputs, {lists} lists, {:.1} s", start.elapsed().as_secs_f64()));
        }
        assert_eq!(inputs.into_inner(), (groups.len() as u64) << 32);
    } else {
        in_parallel(groups.len(), |index| {
            let (found, count) = check_sample(&groups[index]);
            findings.lock().unwrap().merge(found);
            inputs.fetch_add(count, Relaxed);
        });
        say(&format!(
            "{} lists: checked both ends of every step and a sample, {} inputs; \
             AMP_INSPECT_EXHAUSTIVE=1 checks all 2^32 of each list",
            MAPPINGS.len(),
            inputs.into_inner()
        ));
    }
    findings.into_inner().unwrap().assert_clean();
}
