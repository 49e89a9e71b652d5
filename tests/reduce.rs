//! `reduce`: the order of every algorithm by hand, sums against torch's own all-reduce and on constructed numbers,
//! estimates for more ranks, every refusal, every output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use amp_inspect::cast::fast::Level;
use amp_inspect::source::open;
use amp_inspect::stats::{AccumulateTogether as _, Merge as _};
use amp_inspect::tensor::{Chunk, Decoder, TensorInfo};
use amp_inspect::training::Stored;
use amp_inspect::training::reduce::exact::ExactSum;
use amp_inspect::training::reduce::order::{ALGORITHMS, Token};
use amp_inspect::training::reduce::sum::Adder;
use amp_inspect::training::reduce::{
    Accumulate, Algorithm, Case, Divide, ErrorTally, ReduceAccumulator, ReducePlan, TensorReductions,
    WorldAccumulator, drawn_rank,
};
use common::{
    Random, amp_inspect, amp_inspect_at, amp_inspect_with, printed, refused, row, testdata, write_safetensors,
};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

const RANKS: &str = "testdata/ranks";

/// A sum as text, with brackets.
fn written(order: &[Token]) -> String {
    let mut stack: Vec<String> = Vec::new();
    for token in order {
        match token {
            Token::Rank(rank) => stack.push(rank.to_string()),
            Token::Add => {
                let (right, left) = (stack.pop().unwrap(), stack.pop().unwrap());
                stack.push(format!("({left}+{right})"));
            }
        }
    }
    assert_eq!(stack.len(), 1);
    stack.pop().unwrap()
}

#[test]
fn the_orders_of_four_ranks_are_those_written_by_hand() {
    let of = |algorithm: Algorithm, ranks, chunk| written(&algorithm.order(ranks, chunk));
    // Chunk c of the ring starts at rank c + 1 and ends at rank c.
    for ring in [Algorithm::Ring, Algorithm::ReduceScatter] {
        assert_eq!(ring.chunks(4), 4);
        assert_eq!(of(ring, 4, 0), "(((1+2)+3)+0)");
        assert_eq!(of(ring, 4, 1), "(((2+3)+0)+1)");
        assert_eq!(of(ring, 4, 2), "(((3+0)+1)+2)");
        assert_eq!(of(ring, 4, 3), "(((0+1)+2)+3)");
    }
    // First with the neighbour, then with the rank two further on.
    assert_eq!(of(Algorithm::RecursiveDoubling, 4, 0), "((0+1)+(2+3))");
    // Rank 0 is the root, with 2 below it, with 1 and 3 below that; the second tree is its mirror image.
    assert_eq!(of(Algorithm::Tree, 4, 0), "(0+((2+1)+3))");
    assert_eq!(of(Algorithm::Tree, 4, 1), "(3+((1+2)+0))");
    assert_eq!(of(Algorithm::Flat, 4, 0), "(((0+1)+2)+3)");
    // Ranks beyond a power of two join a neighbour first.
    assert_eq!(of(Algorithm::RecursiveDoubling, 6, 0), "(((0+1)+(2+3))+(4+5))");
    assert_eq!(of(Algorithm::RecursiveDoubling, 5, 0), "(((0+1)+2)+(3+4))");
    // Five ranks: 4 is below 0, 2 below 4, 1 and 3 below 2; the second tree is shifted by one.
    assert_eq!(of(Algorithm::Tree, 5, 0), "(0+(4+((2+1)+3)))");
    assert_eq!(of(Algorithm::Tree, 5, 1), "(1+(0+((3+2)+4)))");
}

#[test]
fn every_order_adds_every_rank_once() {
    for (name, algorithm, _) in ALGORITHMS {
        for ranks in (1..40).chain([127, 128, 129, 1000]) {
            for chunk in 0..algorithm.chunks(ranks).min(40) {
                let order = algorithm.order(ranks, chunk);
                let mut seen: Vec<usize> = order
                    .iter()
                    .filter_map(|token| match token {
                        Token::Rank(rank) => Some(*rank),
                        Token::Add => None,
                    })
                    .collect();
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..ranks), "{name} {ranks} {chunk}");
                assert_eq!(order.len(), 2 * ranks - 1, "{name} {ranks} {chunk}");
            }
        }
    }
}

#[test]
fn what_is_sent_is_counted() {
    // Of four ranks, in elements of the tensor: partial sums, results.
    assert_eq!(Algorithm::Ring.sends(4), (0.75, 0.75));
    assert_eq!(Algorithm::ReduceScatter.sends(4), (0.75, 0.0));
    assert_eq!(Algorithm::RecursiveDoubling.sends(4), (2.0, 0.0));
    assert_eq!(Algorithm::RecursiveDoubling.sends(6), (2.0, 1.0));
    // Rank 2 sends half a tensor up in each tree, and half a tensor to each of its two children.
    assert_eq!(Algorithm::Tree.sends(4), (1.0, 1.0));
    assert_eq!(Algorithm::Tree.sends(2), (0.5, 0.5));
    assert_eq!(Algorithm::Flat.sends(4), (0.0, 3.0));
    let bytes = |format, algorithm, accumulate| case(format, algorithm, accumulate, Divide::Before).bytes(4);
    assert_eq!(bytes("bfloat16", Algorithm::Ring, Accumulate::Same), 3.0);
    assert_eq!(bytes("float32", Algorithm::Ring, Accumulate::Same), 6.0);
    // One hop in three carries a gradient, the others sums of four bytes.
    assert_eq!(bytes("bfloat16", Algorithm::Ring, Accumulate::Float32), 0.25 * 2.0 + 0.5 * 4.0 + 0.75 * 2.0);
}

fn case(format: &str, algorithm: Algorithm, accumulate: Accumulate, divide: Divide) -> Case {
    let wire = Stored::new(row(format), None).unwrap();
    Case { param: None, wire, algorithm, accumulate, divide }
}

/// The mean of one element of each rank.
fn mean(case: &Case, chunk: usize, ranks: &[f32]) -> f32 {
    let inputs: Vec<&[f32]> = ranks.chunks(1).collect();
    let mut adder = Adder::default();
    let order = case.algorithm.order(ranks.len(), chunk);
    adder.contribute(Level::best(), case, ranks.len(), 1.0, &inputs);
    adder.mean(Level::best(), case, ranks.len(), &order, |rank| rank)[0]
}

/// Numbers of bfloat16 are 2 apart from 256 on, and ties go to multiples of 4.
#[test]
fn sums_by_hand() {
    let ranks = [256.0, 1.0, 1.0, 1.0];
    let sum = |algorithm, chunk| {
        4.0 * mean(&case("bfloat16", algorithm, Accumulate::Same, Divide::After), chunk, &ranks)
    };
    // 256 + 1 is a tie, three times.
    assert_eq!(sum(Algorithm::Flat, 0), 256.0);
    // (256 + 1) + (1 + 1)
    assert_eq!(sum(Algorithm::RecursiveDoubling, 0), 258.0);
    // 3 + 256 is a tie.
    assert_eq!(sum(Algorithm::Ring, 0), 260.0);
    assert_eq!(sum(Algorithm::Tree, 0), 260.0);
    // ((1 + 1) + 256) + 1: a tie back down to 256, whose last bit is even.
    assert_eq!(sum(Algorithm::Ring, 1), 260.0);
    assert_eq!(sum(Algorithm::Tree, 1), 260.0);
    let in_float32 = case("bfloat16", Algorithm::Flat, Accumulate::Float32, Divide::After);
    assert_eq!(4.0 * mean(&in_float32, 0, &ranks), 260.0);
}

fn reductions(cases: &[Case], ranks: &[&[f32]], scale: f32) -> TensorReductions {
    let mut all = ReduceAccumulator::new(cases, ranks[0].len() as u64, scale, 0);
    let chunks: Vec<Chunk<'_>> = ranks.iter().map(|values| Chunk::F32(values)).collect();
    all.observe(0, &chunks);
    all.finish().unwrap()
}

#[test]
fn overflow_and_underflow_on_the_way_are_counted() {
    let tally = |format, algorithm, divide, ranks: &[&[f32]], scale| -> ErrorTally {
        reductions(&[case(format, algorithm, Accumulate::Same, divide)], ranks, scale).cases[0]
    };
    // 80000 is beyond float16; the mean is 0, and an element of 1 beside it is right.
    let large: [&[f32]; 4] = [&[4e4, 1.0], &[4e4, 1.0], &[-4e4, 1.0], &[-4e4, 1.0]];
    for algorithm in [Algorithm::Flat, Algorithm::RecursiveDoubling] {
        let after = tally("float16", algorithm, Divide::After, &large, 1.0);
        assert_eq!((after.overflow, after.error()), (1, Some(0.0)));
        let before = tally("float16", algorithm, Divide::Before, &large, 1.0);
        assert_eq!((before.overflow, before.error()), (0, Some(0.0)));
    }
    // A loss scale does the same to smaller gradients.
    let small: [&[f32]; 2] = [&[0.75], &[0.75]];
    assert_eq!(tally("float16", Algorithm::Ring, Divide::After, &small, 65536.0).overflow, 1);
    assert_eq!(tally("float16", Algorithm::Ring, Divide::Before, &small, 65536.0).overflow, 0);
    // 2^-24 is the smallest number of float16: a quarter and a half of it are zero.
    let tiny = 2.0_f32.powi(-24);
    let tiny = [[tiny]; 4];
    let tiny: [&[f32]; 4] = [&tiny[0], &tiny[1], &tiny[2], &tiny[3]];
    for (divide, lost, flushed) in [(Divide::Before, 4, 1), (Divide::Split, 4, 1), (Divide::After, 0, 0)] {
        let found = tally("float16", Algorithm::Ring, divide, &tiny, 1.0);
        assert_eq!((found.lost, found.flushed, found.nonzero), (lost, flushed, 1), "{divide:?}");
    }
    assert_eq!(tally("float16", Algorithm::Ring, Divide::By(2.0), &tiny, 1.0).lost, 4);
}

#[test]
fn divisions_are_those_of_the_frameworks() {
    // torch's _get_gradient_predivide_factor of 1, 2, 4, 6, 8, 16, 48, 64 ranks, run by hand.
    for (ranks, before, after) in [
        (1, 1.0, 1.0),
        (2, 2.0, 1.0),
        (4, 2.0, 2.0),
        (6, 4.0, 1.5),
        (8, 4.0, 2.0),
        (16, 4.0, 4.0),
        (48, 8.0, 6.0),
        (64, 8.0, 8.0),
    ] {
        assert_eq!(Divide::Split.factors(ranks), (before, after), "{ranks}");
        assert_eq!(Divide::Before.factors(ranks), (ranks as f32, 1.0));
        assert_eq!(Divide::After.factors(ranks), (1.0, ranks as f32));
    }
    assert_eq!(Divide::By(0.5).factors(4), (0.5, 8.0));
}

/// Arrays of testdata/make/reduce_golden.py.
fn golden() -> BTreeMap<String, Vec<f32>> {
    let source = open(&testdata("training/reduce.npz")).unwrap();
    let read = |(index, info): (usize, &TensorInfo)| {
        let mut decoder = Decoder::new(info).unwrap();
        let chunk = decoder.chunk(info.elements as usize, |bytes| source.read_at(index, 0, bytes)).unwrap();
        let Chunk::F32(values) = chunk else { panic!("{}", info.name) };
        (info.name.clone(), values.to_vec())
    };
    source.tensors().iter().enumerate().map(read).collect()
}

/// gloo's ring runs from higher ranks to lower ones: chunk k starts at rank k − 1. With the ranks in reverse order it
/// is ours, with the chunks in reverse order.
#[test]
fn the_ring_is_that_of_torch_with_gloo() {
    let golden = golden();
    let ranks: Vec<&[f32]> = (0..4).rev().map(|rank| golden[&format!("rank{rank}")].as_slice()).collect();
    for (suffix, format) in [("f32", "float32"), ("bf16", "bfloat16"), ("f16", "float16")] {
        for (name, divide) in [("sum", Divide::After), ("mean", Divide::Before)] {
            let case = case(format, Algorithm::Ring, Accumulate::Same, divide);
            let recorded = &golden[&format!("{name}_{suffix}")];
            let mut compared = 0;
            for (chunk, recorded) in recorded.chunks(250).enumerate() {
                let inputs: Vec<&[f32]> = ranks.iter().map(|values| &values[250 * chunk..][..250]).collect();
                for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                    let mut adder = Adder::default();
                    adder.contribute(level, &case, 4, 1.0, &inputs);
                    let ours = adder.mean(level, &case, 4, &Algorithm::Ring.order(4, 3 - chunk), |rank| rank);
                    // A division by four is exact here but for float16's smallest sums.
                    let times = if divide == Divide::After { 4.0 } else { 1.0 };
                    for (ours, torch) in ours.iter().zip(recorded) {
                        if torch.abs() > 1e-3 || divide == Divide::Before {
                            assert_eq!(times * ours, *torch, "{name}_{suffix} chunk {chunk}");
                            compared += 1;
                        }
                    }
                }
            }
            assert!(compared > 900, "{compared}");
        }
    }
}

#[test]
fn the_exact_sum_is_exact() {
    let mut exact = ExactSum::default();
    let mut mean = Vec::new();
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        // A plain f64 sum of these loses the numbers in the middle.
        for (large, small) in [(1e30_f32, 1.0_f32), (1.0, 2.0_f32.powi(-60))] {
            exact.clear(1);
            for x in [large, small, -large, small] {
                exact.add(level, 1.0, &[x]);
            }
            exact.mean(4, &mut mean);
            assert_eq!(mean, [f64::from(small) / 2.0]);
        }
        exact.clear(1);
        exact.add(level, 3.0, &[0.1]);
        exact.mean(3, &mut mean);
        assert_eq!(mean, [f64::from(0.1_f32)]);
    }
}

#[test]
fn pieces_are_put_together() {
    let mut random = Random(5);
    let mut rank = || -> Vec<f32> { (0..10_000).map(|_| random.number(-20..=2) as f32).collect() };
    let ranks = [rank(), rank(), rank()];
    let cases: Vec<Case> = ALGORITHMS
        .iter()
        .map(|(_, algorithm, _)| case("bfloat16", *algorithm, Accumulate::Same, Divide::Before))
        .collect();
    let all: Vec<&[f32]> = ranks.iter().map(Vec::as_slice).collect();
    let whole = reductions(&cases, &all, 1.0);
    let part = |range: std::ops::Range<usize>| {
        let mut part = ReduceAccumulator::new(&cases, 10_000, 1.0, 0);
        let chunks: Vec<Chunk<'_>> = ranks.iter().map(|values| Chunk::F32(&values[range.clone()])).collect();
        part.observe(range.start as u64, &chunks);
        part
    };
    let mut first = part(0..4096);
    first.merge(part(4096..10_000));
    let merged = first.finish().unwrap();
    for ((case, a), b) in cases.iter().zip(&merged.cases).zip(&whole.cases) {
        assert_eq!((a.elements, a.nonzero, a.max_error), (10_000, 10_000, b.max_error), "{case:?}");
        assert!((a.error().unwrap() / b.error().unwrap() - 1.0).abs() < 1e-12);
    }
    // Each element anew, in the order of its chunk.
    for (case, tally) in cases.iter().zip(&whole.cases) {
        let chunk_length = 10_000_usize.div_ceil(case.algorithm.chunks(3));
        let mut errors = 0.0;
        let mut squares = 0.0;
        for index in 0..10_000 {
            let own: Vec<f32> = ranks.iter().map(|values| values[index]).collect();
            let exact = own.iter().map(|&x| f64::from(x)).sum::<f64>() / 3.0;
            let error = f64::from(mean(case, index / chunk_length, &own)) - exact;
            errors += error * error;
            squares += exact * exact;
        }
        assert!((tally.error().unwrap() / (errors / squares).sqrt() - 1.0).abs() < 1e-9, "{case:?}");
    }
}

/// What becomes of each element alone, of chunks that are equally long.
fn one_by_one(case: &Case, ranks: &[&[f32]], scale: f32) -> ErrorTally {
    let level = Level::best();
    let length = ranks[0].len();
    let chunk_length = length.div_ceil(case.algorithm.chunks(ranks.len()));
    let (mut adder, mut exact, mut mean) = (Adder::default(), ExactSum::default(), Vec::new());
    let mut tally = ErrorTally { elements: length as u64, ..ErrorTally::default() };
    for index in 0..length {
        let own: Vec<&[f32]> = ranks.iter().map(|values| &values[index..=index]).collect();
        tally.lost += adder.contribute(level, case, ranks.len(), scale, &own);
        let order = case.algorithm.order(ranks.len(), index / chunk_length);
        let computed = adder.mean(level, case, ranks.len(), &order, |rank| rank)[0];
        exact.clear(1);
        own.iter().for_each(|values| exact.add(level, 1.0, values));
        exact.mean(ranks.len(), &mut mean);
        let nonzero = mean[0] != 0.0;
        tally.nonzero += u64::from(nonzero);
        tally.flushed += u64::from(nonzero && computed == 0.0);
        if !computed.is_finite() {
            tally.overflow += 1;
            continue;
        }
        let error = (f64::from(computed) * (1.0 / f64::from(scale)) - mean[0]).abs();
        tally.squares += mean[0] * mean[0];
        tally.error_squares += error * error;
        tally.max_error = tally.max_error.max(error);
    }
    tally
}

/// Of gradients that stay normal numbers divisions by powers of two are not computed apart, and where none overflows
/// none is looked for. It must not be seen.
#[test]
fn every_range_of_gradients_gives_what_one_element_gives() {
    let mut random = Random(8);
    let algorithms: Vec<Algorithm> = ALGORITHMS.iter().map(|(_, algorithm, _)| *algorithm).collect();
    let divisions = [Divide::Before, Divide::Split, Divide::After, Divide::By(0.25), Divide::By(3.0)];
    for name in ["float32", "tf32", "bfloat16", "float16", "e5m2", "e4m3fn", "e3m2fn", "e2m1fn"] {
        let accumulations = [Accumulate::Same, Accumulate::Float32];
        let plan = ReducePlan::new(&[row(name)], &algorithms, &accumulations, &divisions, None).unwrap();
        for exponents in
            [-4..=-1, -1..=0, -12..=-2, -18..=1, 2..=6, 11..=15, -149..=-120, -60..=60, 120..=127]
        {
            for (ranks, scale) in [(2, 1.0), (3, 1.0), (4, 1.0), (4, 64.0), (5, 0.3), (16, 1.0), (4, 1.5e-38)]
            {
                let mut rank = || -> Vec<f32> {
                    let number = |random: &mut Random| random.number(exponents.clone()) as f32;
                    (0..83).map(|index| if index % 9 == 4 { 0.0 } else { number(&mut random) }).collect()
                };
                let values: Vec<Vec<f32>> = (0..ranks).map(|_| rank()).collect();
                let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
                let found = reductions(plan.cases(), &values, scale);
                for (case, ours) in plan.cases().iter().zip(&found.cases) {
                    let one = one_by_one(case, &values, scale);
                    let what = format!(
                        "{name} {exponents:?} {ranks} {scale} {:?} {:?}",
                        case.algorithm, case.divide
                    );
                    let exact = |tally: &ErrorTally| {
                        let ErrorTally { elements, nonzero, overflow, flushed, lost, max_error, .. } = *tally;
                        (elements, nonzero, overflow, flushed, lost, max_error)
                    };
                    assert_eq!(exact(ours), exact(&one), "{what}");
                    for (ours, one) in [(ours.squares, one.squares), (ours.error_squares, one.error_squares)]
                    {
                        assert!((ours - one).abs() <= 1e-13 * one, "{what}: {ours:e} {one:e}");
                    }
                }
            }
        }
    }
}

#[test]
fn as_many_ranks_as_recorded_are_the_recorded_ones() {
    let mut random = Random(6);
    let mut rank = || -> Vec<f32> { (0..3000).map(|_| random.number(-12..=2) as f32).collect() };
    let ranks = [rank(), rank(), rank(), rank()];
    let cases: Vec<Case> = ALGORITHMS
        .iter()
        .map(|(_, algorithm, _)| case("bfloat16", *algorithm, Accumulate::Same, Divide::Before))
        .collect();
    let mut all = ReduceAccumulator::new(&cases, 3000, 1.0, 1);
    all.observe(0, &ranks.each_ref().map(|values| Chunk::F32(values)));
    let whole = all.finish().unwrap();
    let estimate = |world: usize| {
        let mut worlds = WorldAccumulator::new(&cases, world, 4, 1.0, 7);
        worlds.observe(&whole.sample);
        worlds.finish()
    };
    for (a, b) in estimate(4).iter().zip(&whole.cases) {
        assert_eq!((a.elements, a.nonzero, a.max_error), (b.elements, b.nonzero, b.max_error));
        assert!((a.error().unwrap() / b.error().unwrap() - 1.0).abs() < 1e-12);
    }
    // Draws are even, and the same for the same seed.
    let mut drawn = [0; 4];
    (4..4004).for_each(|number| drawn[drawn_rank(7, 4, number)] += 1);
    assert!(drawn.iter().all(|count| (900..1100).contains(count)), "{drawn:?}");
    assert!((4..100).any(|number| drawn_rank(7, 4, number) != drawn_rank(8, 4, number)));
    // Many additions in a row lose more than a balanced tree of them.
    let many = estimate(1000);
    assert!(many[0].error().unwrap() > 4.0 * many[2].error().unwrap());
}

#[test]
fn each_thing_is_varied_alone() {
    let formats = [row("float32"), row("bfloat16"), row("bfloat16")];
    let algorithms: Vec<Algorithm> = ALGORITHMS.iter().map(|(_, algorithm, _)| *algorithm).collect();
    let divisions = [Divide::Before, Divide::Split, Divide::After];
    let accumulations = [Accumulate::Same, Accumulate::Float32];
    let plan = ReducePlan::new(&formats, &algorithms, &accumulations, &divisions, None).unwrap();
    // For each format five algorithms, one other sum and two other divisions; the ring's reduce-scatter is its ring.
    assert_eq!((plan.rows().len(), plan.cases().len(), plan.world_cases().len()), (2 * 8, 2 * 7, 2 * 5));
    let error = ReducePlan::new(&[row("e8m0fnu")], &algorithms, &accumulations, &divisions, None);
    assert_eq!(error.unwrap_err().to_string(), "e8m0fnu is no format to train in");
}

fn json(arguments: &[&str]) -> Value {
    let output = amp_inspect(&[&["reduce", RANKS, "--quiet", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn real_ranks_and_the_dtypes_of_fsdp() {
    let report = json(&["--fsdp", "param=bf16,reduce=fp32", "--formats", "bfloat16,float32"]);
    assert_eq!(report["ranks"], serde_json::json!([0, 1, 2, 3]));
    assert_eq!((&report["elements"], report["tensors"].as_array().unwrap().len()), (&56_704.into(), 15));
    let fsdp = &report["fsdp"];
    assert_eq!(fsdp["error"], fsdp["param_error"], "reduced in float32 either way");
    assert_eq!(fsdp["divided_by"], serde_json::json!([2.0, 2.0]));
    assert_eq!(fsdp["buffer_dtype"], "float32");
    // What is not given is as torch has it: gradients are reduced in the type of the parameters.
    let half = json(&["--fsdp", "param=bf16", "--formats", "bfloat16"]);
    assert_eq!(half["fsdp"]["reduce_dtype"], "bfloat16");
    // Division by powers of two changes nothing in bfloat16, so it is the error of the ring.
    assert_eq!(half["fsdp"]["error"], half["total"][0]["error"]);
    // Twice the bytes for float32.
    let sent = |row: &Value| row["sent_bytes"].as_f64().unwrap();
    let total = report["total"].as_array().unwrap();
    let wide = total.iter().find(|row| row["format"] == "float32").unwrap();
    assert_eq!(2.0 * sent(&total[0]), sent(wide));
}

#[test]
fn what_cannot_be_done_is_told_in_a_sentence() {
    let rank = |number: u32| format!("testdata/ranks/grads_rank{number}.safetensors");
    let (r0, r1, r3) = (rank(0), rank(1), rank(3));
    refused(&["reduce", &r0], "rank 0 is the only one: a reduction needs the dumps of two ranks or more");
    refused(
        &["reduce", &r0, &r1, &r3],
        "rank 2 is missing among 3 ranks up to 3: name its file, or choose ranks with --ranks",
    );
    refused(
        &["reduce", "testdata/gpt/grads_step00000.safetensors", "testdata/gpt/grads_step00400.safetensors"],
        "testdata/gpt/grads_step00000.safetensors: does not say of what rank it is; --layout tells where paths have it",
    );
    refused(
        &["reduce", RANKS, "--world-size", "2..8"],
        "--world-size: 4 ranks are recorded, so it begins there; --ranks takes fewer",
    );
    refused(&["reduce", RANKS, "--formats", "e8m0fnu"], "e8m0fnu is no format to train in");
    refused(
        &["reduce", RANKS, "--tensor", "^nothing$"],
        "no tensor is left to read: check --tensor and --exclude",
    );
    refused(&["reduce", "missing"], "missing: cannot open the file: no such file or directory");
    for (option, value) in [
        ("--world-size", "8..4"),
        ("--world-size", "1..4"),
        ("--algorithms", "star"),
        ("--divide", "-1"),
        ("--accumulate", "int"),
        ("--fsdp", "param=bf16,param=fp16"),
        ("--fsdp", "weights=bf16"),
        ("--scale", "0"),
    ] {
        let output = amp_inspect(&["reduce", RANKS, &format!("{option}={value}")]);
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{option}={value}");
        assert!(
            String::from_utf8_lossy(&output.stderr).starts_with("error: invalid value"),
            "{option}={value}"
        );
    }
    let some = amp_inspect(&["reduce", &r0, &r1, &r3, "--ranks", "0,1,3"]);
    assert_eq!(some.status.code(), Some(0), "ranks that were chosen need not be all");
}

/// Writes a safetensors file of float32 tensors.
fn write(path: &Path, tensors: &[(&str, &[u64], &[f32])]) {
    let owned = |(name, shape, values): &(&str, &[u64], &[f32])| {
        ((*name).to_owned(), shape.to_vec(), values.to_vec())
    };
    write_safetensors(path, &tensors.iter().map(owned).collect::<Vec<_>>());
}

#[test]
fn one_bad_tensor_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (zero, one) = (path("g_rank0.safetensors"), path("g_rank1.safetensors"));
    let all: [(&str, &[u64], &[f32]); 4] = [
        ("good", &[2], &[1.0, 2.0]),
        ("shape", &[2], &[1.0, 2.0]),
        ("nan", &[2], &[1.0, 2.0]),
        ("only", &[1], &[1.0]),
    ];
    write(Path::new(&zero), &all);
    write(
        Path::new(&one),
        &[
            ("good", &[2], &[1.5, 2.5]),
            ("shape", &[1, 2], &[1.0, 2.0]),
            ("nan", &[2], &[f32::NAN, f32::INFINITY]),
        ],
    );
    let output = amp_inspect(&["reduce", &zero, &one, "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["tensors"].as_array().unwrap().len(), 1);
    let mut lines: Vec<String> =
        String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            format!("amp-inspect: {zero}: tensor 'only': rank 1 does not have it"),
            format!(
                "amp-inspect: {one}: tensor 'nan': 2 elements are NaN or Inf, first at index 0: there is no mean to \
                 compare with"
            ),
            format!(
                "amp-inspect: {one}: tensor 'shape': has shape [1, 2], which cannot be read beside [2] of tensor 'shape'"
            ),
        ]
    );
    let again = path("again_rank1.safetensors");
    std::fs::copy(&one, &again).unwrap();
    let twice = path("x/g_rank1.safetensors");
    std::fs::create_dir(folder.path().join("x")).unwrap();
    std::fs::copy(&one, &twice).unwrap();
    refused(&["reduce", &zero, &one, &twice], &format!("{twice}: is of rank 1, as {one} is"));
}

#[test]
fn every_output_is_there_and_fits() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let base =
        ["reduce", RANKS, "--world-size", "4..64", "--fsdp", "param=bf16,reduce=bf16,buffer=fp32", "-q"];
    let one = amp_inspect(&[&base[..], &["--threads", "1", "--json"]].concat()).stdout;
    let three = amp_inspect(&[&base[..], &["--threads", "3", "--json"]].concat()).stdout;
    assert!(one == three, "the same bytes for any number of threads");
    for level in Level::ALL {
        let at_level =
            amp_inspect_with(("AMP_INSPECT_SIMD", level.name()), &[&base[..], &["--json"]].concat());
        assert!(at_level.stdout == one, "the same bytes for {}", level.name());
    }
    for columns in [80, 100, 200] {
        let printed = printed(amp_inspect_at(columns, &base));
        assert!(printed.lines().all(|line| line.width() <= columns), "{printed}");
        for said in ["ESTIMATE", "buffer_dtype float32", "reduce_dtype bfloat16", "f32 sums"] {
            assert!(printed.contains(said), "{said} in {printed}");
        }
    }
    // Headings wrap and columns fold, however many there are and however long their names.
    let ones = ["1"; 12].join(",");
    for divide in ["3e38", "1e-30,3e38", "3.3333333333,7,8,9", &ones] {
        let more = ["--divide", divide, "--formats", "float32,tf32,bfloat16,float16", "--world-size", "1024"];
        let printed = printed(amp_inspect_at(80, &[&["reduce", RANKS, "-q"], &more[..]].concat()));
        assert!(printed.lines().all(|line| line.width() <= 80), "{printed}");
        for format in ["tf32", "float16"] {
            assert!(printed.contains(format), "{printed}");
        }
        assert_eq!(printed.contains("by 9 before"), divide.contains('9'), "{printed}");
        assert_eq!(printed.contains("by 3e38 before"), divide.contains("3e38"), "{printed}");
    }
    let saved = [path("a.csv"), path("a.md"), path("a.svg"), path("a.png")];
    let mut arguments = base.to_vec();
    saved.iter().for_each(|path| arguments.extend(["--save", path]));
    printed(amp_inspect(&arguments));
    let rows: Vec<BTreeMap<String, String>> =
        csv::Reader::from_path(&saved[0]).unwrap().deserialize().map(|row| row.unwrap()).collect();
    // 15 tensors and their sum in 4 formats of 8 ways; 5 numbers of ranks in 5 ways.
    assert_eq!(rows.len(), 16 * 4 * 8 + 5 * 4 * 5);
    assert!(std::fs::read_to_string(&saved[1]).unwrap().contains("| `ln_f.bias` |"));
    roxmltree::Document::parse(&std::fs::read_to_string(&saved[2]).unwrap()).unwrap();
    assert!(std::fs::read(&saved[3]).unwrap().starts_with(b"\x89PNG"));
}
