//! This tool's lists of steps against those that NVIDIA's own conversion routines gave on the processor
//! (`testdata/casts/cuda-*`), and against walks through all inputs.

use amp_inspect::cast::fast::Level;
use amp_inspect::cast::fast::slice::{Code, SliceCast};
use amp_inspect::cast::{CastPlan, Overflow, Place, Rounding};
use amp_inspect::gpu::steps::{Beside, Mismatch, cast_at, compare, map, steps, steps_at};
use amp_inspect::gpu::stochastic::{self, OPERANDS};
use amp_inspect::gpu::table::CONVERSIONS;

use crate::common::{exhaustive, gunzip};

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

/// The cast of the conversion with this instruction.
fn plan(instruction: &str) -> CastPlan {
    let row = CONVERSIONS.iter().find(|row| row.instruction == instruction);
    row.unwrap_or_else(|| panic!("no {instruction}")).plan().unwrap()
}

/// What NVIDIA's routines gave for all 2^32 float32, beside the instruction that they stand for.
const LISTS: &[(&str, &str)] = &[
    ("cvt.rn.satfinite.e4m3x2.f32", "cuda-13.0-host.e4m3_sat"),
    ("cvt.rn.f16.f32", "cuda-13.2-host.f16"),
    ("cvt.rm.f16.f32", "cuda-13.0-host.f16_rd"),
    ("cvt.rp.f16.f32", "cuda-13.0-host.f16_ru"),
    ("cvt.rm.bf16.f32", "cuda-13.0-host.bf16_rd"),
    ("cvt.rp.bf16.f32", "cuda-13.0-host.bf16_ru"),
    ("cvt.rp.satfinite.ue8m0x2.f32", "cuda-13.2-host.e8m0_rp_sat"),
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
    for (instruction, list) in LISTS {
        let ours = steps(&plan(instruction));
        let theirs = golden(list);
        let found = compare(&theirs, &ours, true);
        assert_eq!(found.count, 0, "{instruction} and {list}: {:x?}", found.first);
        // As lists, too: each step is where theirs is.
        assert_eq!(ours, theirs, "{instruction} and {list}");
    }
}

/// Steps of a cast by the SIMD loops, all inputs of them one after the other.
fn walked<C: Code + PartialEq>(cast: &SliceCast) -> Vec<(u32, u32)> {
    const BLOCK: usize = 1 << 12;
    let (mut values, mut codes) = (vec![0.0_f32; BLOCK], vec![C::default(); BLOCK]);
    let mut steps: Vec<(u32, u32)> = Vec::new();
    for first in (0..=u32::MAX).step_by(BLOCK) {
        values.iter_mut().zip(first..=u32::MAX).for_each(|(value, u)| *value = f32::from_bits(u));
        cast.encode(Level::best(), &values, &mut codes);
        let before = steps.last().map(|step| step.1);
        if codes.iter().all(|code| Some(code.to_u32()) == before) {
            continue;
        }
        for (u, code) in (first..=u32::MAX).zip(&codes) {
            if steps.last().is_none_or(|step| step.1 != code.to_u32()) {
                steps.push((u, code.to_u32()));
            }
        }
    }
    steps
}

#[test]
fn halving_finds_what_a_walk_through_all_inputs_finds() {
    let mut plans: Vec<CastPlan> = Vec::new();
    for row in CONVERSIONS.iter().filter(|row| row.from == "float32") {
        let plan = row.plan().unwrap();
        if !plans.contains(&plan) && SliceCast::new(&plan).is_some() {
            plans.push(plan);
        }
    }
    assert!(plans.len() > 10);
    if !exhaustive() {
        plans.retain(|plan| plan.target.name == "e2m1fn");
    }
    for plan in plans {
        let cast = SliceCast::new(&plan).unwrap();
        let walked = match plan.target.bits {
            ..=8 => walked::<u8>(&cast),
            9..=16 => walked::<u16>(&cast),
            _ => walked::<u32>(&cast),
        };
        assert_eq!(steps(&plan), walked, "{} {}", plan.target.name, plan.rounding.name());
    }
}

#[test]
fn each_step_is_where_the_definition_changes() {
    for instruction in ["cvt.rna.tf32.f32", "cvt.rm.f16.f32"] {
        let plan = plan(instruction);
        let code = |u: u32| plan.cast_f32(f32::from_bits(u), Place::default()).code;
        let list = steps(&plan);
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

type List = Vec<(u32, u32)>;

/// Lists of a card that gives each lane of four the byte at its place.
fn bytes(plan: &CastPlan, beside: Beside) -> List {
    let draw = |lane: u32| beside.random >> (8 * lane) & 0xff;
    let others = (0..4).filter(|lane| *lane != beside.lane);
    let others =
        others.fold(0, |others, lane| others | cast_at(plan, 8, draw(lane), beside.partner) << (8 * lane));
    map(&steps_at(plan, 8, draw(beside.lane)), |code| others | code << (8 * beside.lane))
}

#[test]
fn a_card_that_adds_random_bits_wrongly_is_never_found_right() {
    let row = CONVERSIONS.iter().find(|row| row.instruction == "cvt.rs.satfinite.e4m3x4.f32").unwrap();
    let plan = row.plan().unwrap();
    let ask = |change: &dyn Fn(Beside, List) -> List| {
        stochastic::try_all(row, &[0x3f99_999a], |beside| Ok(change(beside, bytes(&plan, beside))))
    };
    let right = ask(&|_, list| list).unwrap();
    assert_eq!((right.mismatches.count, right.inputs), (0, 40 << 32));
    // One step of one list, from zero to the smallest subnormal number, an input late.
    let (lane, operand) = (3, OPERANDS[7]);
    let late = ask(&|beside, mut list| {
        if (beside.lane, beside.random) == (lane, operand) {
            list[1].0 += 1;
        }
        list
    });
    let late = late.unwrap().mismatches;
    let beside = Beside { partner: 0x3f99_999a, lane, random: operand };
    assert_eq!((late.count, late.first[0].beside), (1, Some(beside)));
    // Random bits that do nothing, or that leave a gap at the top.
    let nothing = ask(&|beside, _| bytes(&plan, Beside { random: 0, ..beside }));
    let read_off = "read off between 1 and the next number, lane 0 adds ";
    let all_set = " for random bits that are all set";
    assert_eq!(nothing.unwrap_err().to_string(), format!("{read_off}0x0{all_set}"));
    let gap = ask(&|beside, _| bytes(&plan, Beside { random: beside.random & 0x7f7f_7f7f, ..beside }));
    assert_eq!(gap.unwrap_err().to_string(), format!("{read_off}0x7f000{all_set}"));
    // Bits that are swapped after all, in an operand that the others do not tell of.
    let swapped = ask(&|beside, list| match beside.random == OPERANDS[9] {
        true => bytes(&plan, Beside { random: beside.random.swap_bytes(), ..beside }),
        false => list,
    });
    assert!(swapped.unwrap().mismatches.count > 0);
}
