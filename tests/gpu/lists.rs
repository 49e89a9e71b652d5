//! This tool's lists of steps against those that NVIDIA's own conversion routines gave on the processor
//! (`testdata/casts/cuda-*`), and against a walk by the definition.

use std::num::NonZero;
use std::time::Instant;

use amp_inspect::cast::{CastPlan, Overflow, Place, Rounding};
use amp_inspect::gpu::steps::{Mismatch, compare, map, steps};
use amp_inspect::gpu::table::CONVERSIONS;

use crate::common::{exhaustive, gunzip, say};

/// The list of another maker: steps of 4 and 2 bytes, each the difference from the one before.
fn golden(list: &str) -> Vec<(u32, u32)> {
    let bytes = gunzip(&format!("casts/{list}.steps.gz"));
    let (firsts, codes) = bytes.split_at(bytes.len() / 6 * 4);
    let (mut u, mut code) = (0_u32, 0_u16);
    let deltas = firsts.chunks_exact(4).zip(codes.chunks_exact(2));
    deltas
        .map(|(first, second)| {
            u = u.wrapping_add(u32::from_le_bytes(first.try_into().unwrap()));
            code = code.wrapping_add(u16::from_le_bytes(second.try_into().unwrap()));
            (u, code.into())
        })
        .collect()
}

fn threads() -> NonZero<usize> {
    std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// The cast of the conversion with this instruction.
fn plan(instruction: &str) -> CastPlan {
    let row = CONVERSIONS.iter().find(|row| row.instruction == instruction);
    row.unwrap_or_else(|| panic!("no {instruction}")).plan().unwrap()
}

/// What NVIDIA's routines gave for all 2^32 float32, beside the instruction that they stand for. The first are
/// compared always, since a list of few steps is quick, and those that are found by halving; the rest, each of
/// which takes a walk, in the exhaustive run.
const QUICK: &[(&str, &str)] = &[
    ("cvt.rn.satfinite.e4m3x2.f32", "cuda-13.0-host.e4m3_sat"),
    ("cvt.rn.f16.f32", "cuda-13.2-host.f16"),
    ("cvt.rm.f16.f32", "cuda-13.0-host.f16_rd"),
    ("cvt.rp.f16.f32", "cuda-13.0-host.f16_ru"),
    ("cvt.rm.bf16.f32", "cuda-13.0-host.bf16_rd"),
    ("cvt.rp.bf16.f32", "cuda-13.0-host.bf16_ru"),
    ("cvt.rp.satfinite.ue8m0x2.f32", "cuda-13.2-host.e8m0_rp_sat"),
];
const SLOW: &[(&str, &str)] = &[
    ("cvt.rn.satfinite.e2m1x2.f32", "cuda-13.2-host.e2m1"),
    ("cvt.rz.f16.f32", "cuda-13.0-host.f16_rz"),
    ("cvt.rn.bf16.f32", "cuda-13.0-host.bf16_rn"),
    ("cvt.rz.bf16.f32", "cuda-13.0-host.bf16_rz"),
    ("cvt.rn.satfinite.e5m2x2.f32", "cuda-13.2-host.e5m2_sat"),
    ("cvt.rn.satfinite.e3m2x2.f32", "cuda-13.2-host.e3m2"),
    ("cvt.rn.satfinite.e2m3x2.f32", "cuda-13.2-host.e2m3"),
    ("cvt.rz.satfinite.ue8m0x2.f32", "cuda-13.0-host.e8m0_rz_sat"),
];

#[test]
fn our_lists_are_those_of_nvidias_routines() {
    let slow = if exhaustive() { SLOW } else { &[] };
    for (instruction, list) in QUICK.iter().chain(slow) {
        let start = Instant::now();
        let ours = steps(&plan(instruction), threads());
        let seconds = start.elapsed().as_secs_f64();
        let theirs = golden(list);
        let found = compare(&theirs, &ours, true);
        assert_eq!(found.count, 0, "{instruction} and {list}: {:x?}", found.first);
        // As lists, too: each step is where theirs is.
        assert_eq!(ours, theirs, "{instruction} and {list}");
        say(&format!("{instruction}: {} steps, {seconds:.2} s", ours.len()));
    }
}

#[test]
fn each_step_is_where_the_definition_changes() {
    for instruction in ["cvt.rna.tf32.f32", "cvt.rm.f16.f32"] {
        let plan = plan(instruction);
        let code = |u: u32| plan.cast_f32(f32::from_bits(u), Place::default()).code;
        let list = steps(&plan, threads());
        assert_eq!(list[0], (0, code(0)));
        for pair in list.windows(2) {
            let [(_, before), (u, after)] = [pair[0], pair[1]];
            assert_eq!((code(u - 1), code(u)), (before, after), "{instruction} at {u:#x}");
        }
        assert_eq!(list.last().unwrap().1, code(u32::MAX));
    }
}

#[test]
fn a_comparison_counts_every_input_between_two_steps() {
    let ours = [(0, 1), (100, 2), (0x7f80_0001, 3), (0x8000_0000, 4)];
    assert_eq!(compare(&ours, &ours, true).count, 0);
    // A step three inputs late, one that is missing, and one that is new.
    let theirs = [(0, 1), (103, 2), (0x8000_0000, 4), (u32::MAX, 5)];
    let found = compare(&theirs, &ours, true);
    assert_eq!(found.count, 3 + 0x7f_ffff + 1);
    assert_eq!(found.first[0], Mismatch { input: 100, found: 1, expected: 2, beside: None });
    assert_eq!(found.first[3], Mismatch { input: 0x7f80_0001, found: 2, expected: 3, beside: None });
    assert_eq!(found.first.len(), 20);
    // NaN inputs left out: those above Inf of either sign.
    assert_eq!(compare(&theirs, &ours, false).count, 3);
    assert_eq!(map(&ours, |code| code / 2), [(0, 0), (100, 1), (0x8000_0000, 2)]);
}

#[test]
fn the_casts_of_the_table_are_the_profile_nvidia() {
    for row in CONVERSIONS {
        let (plan, format) = (row.plan().unwrap(), row.target().unwrap());
        let saturates = row.instruction.contains(".satfinite");
        let wanted = if saturates { Overflow::Saturate } else { Overflow::Ieee };
        // Where nothing can overflow the policy says nothing.
        assert!(plan.overflow == wanted || !row.from.contains("float32"), "{}", row.instruction);
        let mode = match row.rounding {
            Rounding::NearestEven => ".rn",
            Rounding::NearestAway => ".rna",
            Rounding::TowardZero => ".rz",
            Rounding::Down => ".rm",
            Rounding::Stochastic { .. } => ".rs",
            _ => ".rp",
        };
        let exact = row.to == "float32";
        assert!(exact || row.instruction.starts_with(&format!("cvt{mode}.")), "{}", row.instruction);
        let lanes = [(2, "x2."), (4, "x4.")].into_iter().find(|(_, name)| row.instruction.contains(name));
        assert_eq!(row.lanes, lanes.map_or(1, |(lanes, _)| lanes), "{} {}", row.instruction, format.name);
    }
}
