//! `updates`: the step as torch computes it, each way of keeping weights against the definition of a cast, sums by
//! hand, which state belongs to which weight, every refusal, every output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use amp_inspect::cast::fast::Level;
use amp_inspect::cast::philox::random;
use amp_inspect::cast::{CastPlan, Overflow, Place, Rounding, round};
use amp_inspect::format::decode::decode;
use amp_inspect::format::{FormatSpec, find};
use amp_inspect::source::open;
use amp_inspect::stats::{AccumulateTogether as _, Merge as _};
use amp_inspect::tensor::{ByteOrder, Chunk, Decoder, Dtype, TensorInfo};
use amp_inspect::training::Stored;
use amp_inspect::training::updates::checkpoint::{Checkpoint, canonical};
use amp_inspect::training::updates::{
    Rule, Step, Tally, TensorUpdates, UpdateAccumulator, UpdatePlan, Way, step as step_of,
};
use common::{
    Random, amp_inspect, amp_inspect_at, amp_inspect_with, printed, refused, row, testdata, write_safetensors,
};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

const CHECKPOINT: &str = "testdata/gpt/checkpoint_step01500.pt";
const WEIGHTS: &str = "testdata/training/weights_step01500.safetensors";
const GRADS: &str = "testdata/gpt/grads_step01500.safetensors";
const FORMATS: [&str; 6] = ["bfloat16", "float16", "e4m3fn", "e5m2", "e3m2fn", "e2m1fn"];

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// Around every number of the format: its ties, quarters and their neighbours, of both signs; all of them for
/// formats of up to 8 bits, every 13th otherwise.
fn around(format: &FormatSpec) -> Vec<f32> {
    let stride = if format.bits <= 8 { 1 } else { 13 };
    let mut values = vec![0.0, -0.0, f32::MIN_POSITIVE, 1e-45];
    for code in (0..format.max_finite_code()).step_by(stride) {
        let (low, high) = (decode(format, code), decode(format, code + 1));
        for part in [0.0, 0.25, 0.375, 0.5, 0.75, 1.0] {
            let x = (low + (high - low) * part) as f32;
            values.extend([x, x.next_up(), x.next_down(), -x, -x.next_up(), -x.next_down()]);
        }
    }
    values.extend([format.max_finite() as f32 * 1.5, f32::MAX, -f32::MAX]);
    values
}

#[test]
fn rounding_is_that_of_the_definition() {
    for name in FORMATS {
        let format = row(name);
        let nearest = CastPlan::new(format);
        let value = |plan: &CastPlan, x: f32| plan.cast_f32(x, Place::default()).value(&format) as f32;
        for bits in [None, Some(1), Some(8), Some(24), Some(32)] {
            let stored = Stored::new(format, bits).unwrap();
            let mut random = Random(1);
            for x in around(&format) {
                assert_eq!(stored.round(x).to_bits(), value(&nearest, x).to_bits(), "{name} {x:e}");
                let draw = random.bits() as u32;
                let rounding = Rounding::Stochastic { bits: stored.random_bits(), random: draw };
                let overflow = Overflow::default_for(&format);
                let wanted = round::cast(&format, rounding, overflow, x.into()).value(&format) as f32;
                let ours = stored.round_stochastically(x, draw);
                assert_eq!(ours.to_bits(), wanted.to_bits(), "{name} {x:e} {bits:?} {draw:x}");
            }
        }
    }
}

#[test]
fn the_mean_of_stochastic_rounding_is_that_of_all_draws() {
    for name in ["e2m1fn", "e3m2fn", "e4m3fn", "float16"] {
        let format = row(name);
        let stored = Stored::new(format, Some(6)).unwrap();
        for x in around(&format).into_iter().step_by(7) {
            let mut draws: BTreeMap<u32, u32> = BTreeMap::new();
            for random in 0..64 {
                let rounding = Rounding::Stochastic { bits: 6, random };
                let value = round::cast(&format, rounding, Overflow::default_for(&format), x.into());
                *draws.entry((value.value(&format) as f32).to_bits()).or_default() += 1;
            }
            let (low, high, up) = stored.outcomes(x);
            let mut ours: BTreeMap<u32, u32> = BTreeMap::new();
            *ours.entry(low.to_bits()).or_default() += (64.0 * (1.0 - up)) as u32;
            *ours.entry(high.to_bits()).or_default() += (64.0 * up) as u32;
            ours.retain(|_, count| *count > 0);
            assert_eq!(ours, draws, "{name} {x:e}");
        }
    }
}

#[test]
fn an_ulp_is_the_way_to_the_next_number() {
    for name in FORMATS {
        let format = row(name);
        let stored = Stored::new(format, None).unwrap();
        for code in 0..format.max_finite_code() {
            let (low, high) = (decode(&format, code), decode(&format, code + 1));
            assert_eq!(f64::from(stored.ulp(low as f32)), high - low, "{name} {low:e}");
            assert_eq!(f64::from(stored.ulp(-low as f32)), high - low, "{name} -{low:e}");
        }
    }
    let error = Stored::new(row("e8m0fnu"), None).unwrap_err().to_string();
    assert_eq!(error, "e8m0fnu is no format to train in");
}

/// One step of SGD at learning rate `lr`.
fn sgd(lr: f64) -> Step {
    Step { rule: Rule::Sgd, lr, weight_decay: 0.0 }
}

fn updates(plan: &UpdatePlan, step: Step, inputs: &[&[f32]]) -> TensorUpdates {
    let mut all = UpdateAccumulator::new(plan, step, 5);
    let chunks: Vec<Chunk<'_>> = inputs.iter().map(|values| Chunk::F32(values)).collect();
    all.observe(0, &chunks);
    all.finish().unwrap()
}

/// Every weight of a small format with updates of every size beside it.
#[test]
fn updates_vanish_where_the_definition_says() {
    for name in ["e2m1fn", "e3m2fn", "e4m3fn"] {
        let format = row(name);
        let plan = UpdatePlan::new(&[format], 1, 0, None).unwrap();
        let codes = 0..1_u32 << format.bits;
        let finite = codes.map(|code| decode(&format, code)).filter(|x| x.is_finite());
        let (mut weights, mut gradients) = (Vec::new(), Vec::new());
        for w in finite {
            for update in around(&row("e3m2fn")).into_iter().filter(|x| x.abs() < 30.0) {
                weights.push(w as f32);
                gradients.push(update);
            }
        }
        let found = updates(&plan, sgd(1.0), &[&weights, &gradients]);
        let cast = CastPlan::new(format);
        let (mut nonzero, mut unmoved, mut off) = (0, 0.0, 0.0);
        let (mut wanted2, mut applied2, mut products, mut errors, mut relative) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (w, g) in weights.iter().zip(&gradients) {
            let wanted = -f64::from(*g);
            let new = cast.cast_f32(w - g, Place::default()).value(&format);
            let applied = new - f64::from(*w);
            if wanted != 0.0 {
                nonzero += 1;
                unmoved += f64::from(u8::from(applied == 0.0));
                off += f64::from(u8::from(applied != 0.0 && (applied - wanted).abs() > 0.5 * wanted.abs()));
                relative += (applied - wanted).abs() / wanted.abs();
            }
            wanted2 += wanted * wanted;
            applied2 += applied * applied;
            products += applied * wanted;
            errors += (applied - wanted) * (applied - wanted);
        }
        let tally = found.formats[1].way(Way::Nearest).unwrap()[0];
        assert_eq!((tally.nonzero, tally.unmoved, tally.off), (nonzero, unmoved, off), "{name}");
        let near = |ours: f64, theirs: f64, what: &str| {
            assert!((ours / theirs - 1.0).abs() < 1e-9, "{name} {what}: {ours} {theirs}");
        };
        near(tally.effective().unwrap(), (applied2 / wanted2).sqrt(), "effective");
        near(tally.along().unwrap(), products / wanted2, "along");
        near(tally.error().unwrap(), (errors / wanted2).sqrt(), "error");
        assert!((tally.relative_errors / relative - 1.0).abs() < 1e-5);
        assert_eq!(found.formats[1].ratios.total(), nonzero);
    }
}

/// One draw for each of many weights comes near the mean in closed form.
#[test]
fn random_draws_come_near_the_mean() {
    let plan = UpdatePlan::new(&[row("bfloat16")], 1, 3, None).unwrap();
    let mut random = Random(4);
    let weights: Vec<f32> = (0..1 << 16).map(|_| random.number(-7..=-5) as f32).collect();
    let gradients: Vec<f32> = (0..1 << 16).map(|_| random.number(-18..=-12) as f32).collect();
    let found = updates(&plan, sgd(1.0), &[&weights, &gradients]);
    let mean = found.formats[1].way(Way::Expected).unwrap()[0];
    let drawn = found.formats[1].way(Way::Stochastic).unwrap()[0];
    assert!((mean.along().unwrap() - 1.0).abs() < 0.002, "{:?}", mean.along());
    assert!((drawn.along().unwrap() - 1.0).abs() < 0.05, "{:?}", drawn.along());
    assert!((drawn.unmoved / mean.unmoved - 1.0).abs() < 0.01);
    assert!((drawn.error().unwrap() / mean.error().unwrap() - 1.0).abs() < 0.05);
}

/// bfloat16 around 1: the spacing is 2^-7 above and 2^-8 below.
#[test]
fn one_weight_by_hand() {
    let plan = UpdatePlan::new(&[row("bfloat16")], 16, 0, None).unwrap();
    let of = |gradient: f32| updates(&plan, sgd(1.0), &[&[1.0], &[gradient]]);
    let tally = |found: &TensorUpdates, way, mark: usize| found.formats[1].way(way).unwrap()[mark];
    // 1 − 2^-9 is a tie: it goes back to 1, whose last bit is even. A little more, and it moves twice as far.
    let found = of(1.0 / 512.0);
    assert_eq!(tally(&found, Way::Nearest, 0).unmoved, 1.0);
    assert_eq!(tally(&found, Way::Nearest, 4).along(), Some(0.0), "sixteen steps change nothing");
    assert_eq!(found.formats[1].ratios.octaves(), [(-2, 1)]);
    // Half of the draws move it by 2^-8.
    let mean = tally(&found, Way::Expected, 0);
    assert_eq!((mean.unmoved, mean.along(), mean.error()), (0.5, Some(1.0), Some(1.0)));
    // After two steps Kahan has gone both, after sixteen 2^-5.
    assert_eq!(tally(&found, Way::Kahan, 0).along(), Some(1.0));
    assert_eq!(tally(&found, Way::Kahan, 4).along(), Some(1.0));
    let found = of(1.0 / 511.0);
    let nearest = tally(&found, Way::Nearest, 0);
    assert_eq!(nearest.unmoved, 0.0);
    assert!((nearest.along().unwrap() - 511.0 / 256.0).abs() < 1e-6 && nearest.off == 1.0);
    // Upwards the tie is twice as far.
    let found = of(-1.0 / 256.0);
    assert_eq!(tally(&found, Way::Nearest, 0).unmoved, 1.0);
    assert_eq!(found.formats[1].ratios.octaves(), [(-1, 1)]);
}

/// Of few updates, too, the median is known to the width of a bin.
#[test]
fn the_median_ratio_of_one_update_is_found() {
    let plan = UpdatePlan::new(&[row("bfloat16")], 1, 0, None).unwrap();
    for ratio in [0.26_f32, 0.3, 0.49, 0.5, 0.99, 1.4] {
        let found = updates(&plan, sgd(1.0), &[&[1.0], &[-ratio / 128.0]]);
        let ours = found.formats[1].ratios.median_log2().unwrap().exp2();
        assert!((ours / f64::from(ratio) - 1.0).abs() < 1.0 / 32.0, "{ours} {ratio}");
    }
}

/// Weights of 1, where numbers of bfloat16 are 2^-7 apart, and updates of 1 to 1001 times 2^-12.
#[test]
fn the_median_ratio_is_found() {
    let plan = UpdatePlan::new(&[row("bfloat16")], 1, 0, None).unwrap();
    let gradients: Vec<f32> = (1..=1001_u16).map(|k| f32::from(k) / 4096.0).collect();
    let mut found = updates(&plan, sgd(1.0), &[&[1.0; 1001], &gradients]);
    let median = 501.0_f64 / 32.0;
    let near = |found: &TensorUpdates| {
        let ours = found.formats[1].ratios.median_log2().unwrap().exp2();
        assert!((ours / median - 1.0).abs() < 0.01, "{ours} {median}");
    };
    near(&found);
    let again = found.clone();
    found.merge(&again);
    near(&found);
    // From 2^-5 to below 2^5: 1, 2, 4, … and what is left.
    let counts: Vec<u64> = found.formats[1].ratios.octaves().into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [2, 4, 8, 16, 32, 64, 128, 256, 512, 980]);
    assert_eq!(found.formats[1].ratios.octaves()[0].0, -5);
}

/// Adds a change of `probability` to a tally, as its fields are defined.
fn add_change(tally: &mut Tally, applied: f64, wanted: f64, probability: f64) {
    let error = applied - wanted;
    if wanted != 0.0 {
        let near = error.abs() <= 0.5 * wanted.abs();
        tally.unmoved += if applied == 0.0 { probability } else { 0.0 };
        tally.off += if applied == 0.0 || near { 0.0 } else { probability };
        tally.relative_errors += probability * (error.abs() / wanted.abs());
    }
    tally.applied_squares += probability * (applied * applied);
    tally.products += probability * (applied * wanted);
    tally.error_squares += probability * (error * error);
}

/// What becomes of each weight alone, in one way, after each of the first `steps` steps.
fn one_by_one(
    stored: &Stored,
    way: Way,
    step: Step,
    (steps, seed): (u64, u64),
    inputs: &[&[f32]],
) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); if way == Way::Expected { 1 } else { steps as usize }];
    let (decay, largest) = (step.decay(), stored.format.max_finite() as f32);
    for index in 0..inputs[0].len() {
        let own: Vec<&[f32]> = inputs.iter().map(|values| &values[index..=index]).collect();
        let mut increment = [0.0];
        step.increments(Level::best(), own[0], &own[1..], &mut increment);
        let ([d], left_out) = (increment, own[0][0].abs() > largest);
        let (d, start) = if left_out { (0.0, 0.0) } else { (d, stored.round(own[0][0])) };
        let (mut now, mut lost, mut wanted) = (start, 0.0_f32, 0.0);
        for (taken, tally) in (0..).zip(&mut tallies) {
            wanted = f64::from(decay) * wanted + ((f64::from(decay) - 1.0) * f64::from(start) + d);
            tally.nonzero += u64::from(wanted != 0.0);
            tally.wanted_squares += wanted * wanted;
            let stepped = (f64::from(decay * now) + d) as f32;
            match way {
                Way::Expected => {
                    let (low, high, up) = stored.outcomes(stepped);
                    for (number, probability) in [(low, 1.0 - f64::from(up)), (high, f64::from(up))] {
                        if probability > 0.0 {
                            add_change(tally, f64::from(number) - f64::from(start), wanted, probability);
                        }
                    }
                    continue;
                }
                Way::Nearest => now = step_of(stored, now, decay, d),
                Way::Stochastic => {
                    let place = Place { stream: 5, index: index as u64 };
                    now = stored.round_stochastically(stepped, random(seed + (taken << 32), place));
                }
                Way::Kahan => {
                    let change = ((f64::from(decay) - 1.0) * f64::from(now) + d) as f32;
                    let taken = stored.round(lost + change);
                    let new = stored.round(now + taken);
                    lost = stored.round(taken + (now - new));
                    now = new;
                }
            }
            add_change(tally, f64::from(now) - f64::from(start) + f64::from(lost), wanted, 1.0);
        }
    }
    tallies
}

/// Lanes, pieces and what is shared among ways and formats must not be seen.
#[test]
fn every_way_gives_what_one_weight_gives() {
    let mut random = Random(12);
    let formats = ["bfloat16", "tf32", "float16", "e5m2", "e4m3fn", "e3m2fn", "e2m1fn"].map(row);
    let decayed = Step { weight_decay: 30.0, ..adam(true, 0.0, 7.0, false) };
    for (step, steps) in [(sgd(0.5), 1), (sgd(0.5), 2), (decayed, 1), (decayed, 2)] {
        for (weights, updates_of) in [(-9..=-1, -16..=-3), (-30..=8, -30..=6), (-149..=-100, -149..=-110)] {
            let mut number = |exponents: std::ops::RangeInclusive<i32>| random.number(exponents) as f32;
            let mut values = |exponents: &std::ops::RangeInclusive<i32>| -> Vec<f32> {
                let value = |index| if index % 11 == 3 { 0.0 } else { number(exponents.clone()) };
                (0..1100).map(value).collect()
            };
            let (w, m, v) = (values(&weights), values(&updates_of), values(&(-3..=3)));
            let v: Vec<f32> = v.iter().map(|x| x * x).collect();
            let inputs = if step.rule == Rule::Sgd { vec![&w[..], &m] } else { vec![&w[..], &m, &v] };
            let seed = 6;
            let plan = UpdatePlan::new(&formats, steps, seed, None).unwrap();
            let found = updates(&plan, step, &inputs);
            for (stored, found) in plan.formats().iter().zip(&found.formats) {
                for (way, ours) in &found.ways {
                    let ones = one_by_one(stored, *way, step, (steps, seed), &inputs);
                    for (ours, one) in ours.iter().zip(&ones) {
                        let what = format!("{} {way:?} {step:?} {weights:?}", stored.format.name);
                        assert_eq!(
                            (ours.nonzero, ours.unmoved, ours.off),
                            (one.nonzero, one.unmoved, one.off),
                            "{what}"
                        );
                        let near = |ours: f64, one: f64, of: f64| {
                            assert!((ours - one).abs() <= 1e-12 * of, "{what}: {ours:e} {one:e}");
                        };
                        near(ours.wanted_squares, one.wanted_squares, one.wanted_squares);
                        near(ours.applied_squares, one.applied_squares, one.applied_squares);
                        near(ours.error_squares, one.error_squares, one.error_squares);
                        let most = (one.applied_squares * one.wanted_squares).sqrt();
                        near(ours.products, one.products, most);
                        near(ours.relative_errors, one.relative_errors, one.relative_errors);
                    }
                }
            }
        }
    }
}

#[test]
fn pieces_are_put_together_and_weights_out_of_range_left_out() {
    let plan = UpdatePlan::new(&[row("e4m3fn")], 3, 9, None).unwrap();
    let mut random = Random(11);
    let weights: Vec<f32> = (0..5000).map(|_| random.number(-9..=3) as f32).collect();
    let gradients: Vec<f32> = (0..5000).map(|_| random.number(-12..=2) as f32).collect();
    let whole = updates(&plan, sgd(0.5), &[&weights, &gradients]);
    let mut first = UpdateAccumulator::new(&plan, sgd(0.5), 5);
    first.observe(0, &[Chunk::F32(&weights[..1024]), Chunk::F32(&gradients[..1024])]);
    let mut second = UpdateAccumulator::new(&plan, sgd(0.5), 5);
    second.observe(1024, &[Chunk::F32(&weights[1024..]), Chunk::F32(&gradients[1024..])]);
    first.merge(second);
    let merged = first.finish().unwrap();
    for way in [Way::Nearest, Way::Stochastic, Way::Kahan] {
        for (a, b) in merged.formats[1].way(way).unwrap().iter().zip(whole.formats[1].way(way).unwrap()) {
            assert_eq!((a.nonzero, a.unmoved, a.off), (b.nonzero, b.unmoved, b.off));
            assert!((a.products / b.products - 1.0).abs() < 1e-12);
        }
    }
    let found = updates(&plan, sgd(1.0), &[&[500.0, 448.0, -1e6], &[1.0, 64.0, 1.0]]);
    assert_eq!((found.formats[1].overflow, found.formats[1].ratios.total()), (2, 1));
    assert_eq!(found.formats[1].way(Way::Nearest).unwrap()[0].along(), Some(1.0));
    assert_eq!((found.formats[0].overflow, found.formats[0].ratios.total()), (0, 3));
}

/// Arrays of testdata/make/updates_golden.py.
fn golden() -> BTreeMap<String, Vec<f32>> {
    let source = open(&testdata("training/updates.npz")).unwrap();
    let read = |(index, info): (usize, &TensorInfo)| {
        let mut decoder = Decoder::new(info).unwrap();
        let chunk = decoder.chunk(info.elements as usize, |bytes| source.read_at(index, 0, bytes)).unwrap();
        let Chunk::F32(values) = chunk else { panic!("{}", info.name) };
        (info.name.clone(), values.to_vec())
    };
    source.tensors().iter().enumerate().map(read).collect()
}

/// The weights after one step, in `format`.
fn stepped(level: Level, step: &Step, format: &str, inputs: &[&[f32]]) -> Vec<f32> {
    let stored = Stored::new(row(format), None).unwrap();
    let weights: Vec<f32> = inputs[0].iter().map(|w| stored.round(*w)).collect();
    let mut increments = vec![0.0; weights.len()];
    step.increments(level, &weights, &inputs[1..], &mut increments);
    weights.iter().zip(&increments).map(|(w, d)| step_of(&stored, *w, step.decay(), *d)).collect()
}

fn rounded(format: &str, values: &[f32]) -> Vec<f32> {
    let stored = Stored::new(row(format), None).unwrap();
    values.iter().map(|x| stored.round(*x)).collect()
}

#[track_caller]
fn same(ours: &[f32], torch: &[f32]) {
    let differ = ours.iter().zip(torch).filter(|(a, b)| a.to_bits() != b.to_bits());
    assert_eq!((ours.len(), differ.count()), (torch.len(), 0));
}

#[test]
fn sgd_is_that_of_torch() {
    let golden = golden();
    let (w, g) = (&golden["w"], &golden["g"]);
    for level in levels() {
        same(&stepped(level, &sgd(1e-3), "float32", &[w, g]), &golden["add_f32"]);
        let decay = Step { weight_decay: 0.1, ..sgd(1e-3) };
        same(&stepped(level, &decay, "float32", &[w, g]), &golden["sgd_f32_decay"]);
        for (format, name) in [("bfloat16", "add_bf16"), ("float16", "add_f16")] {
            // torch's `add_` rounds the learning rate to the type of the weights first.
            let lr = rounded(format, &[1e-3])[0];
            let gradients = rounded(format, g);
            same(&stepped(level, &sgd(lr.into()), format, &[w, &gradients]), &golden[name]);
        }
        let lr = sgd(rounded("bfloat16", &[1e-3])[0].into());
        let gradients = rounded("bfloat16", g);
        let mut now = w.clone();
        for _ in 0..100 {
            now = stepped(level, &lr, "bfloat16", &[&now, &gradients]);
        }
        same(&now, &golden["add_bf16_100"]);
    }
}

fn adam(decoupled: bool, weight_decay: f64, step: f64, advances: bool) -> Step {
    let rule = Rule::Adam { beta1: 0.9, beta2: 0.999, eps: 1e-8, step, decoupled, advances };
    Step { rule, lr: 1e-3, weight_decay }
}

#[test]
fn adam_is_that_of_torch() {
    let golden = golden();
    let inputs: [&[f32]; 4] = [&golden["w"], &golden["g"], &golden["m"], &golden["v"]];
    for level in levels() {
        for (name, decoupled, decay) in [("adamw_f32", true, 0.01), ("adam_f32", false, 0.1)] {
            let ours = stepped(level, &adam(decoupled, decay, 1502.0, true), "float32", &inputs);
            let second = &golden[&format!("{name}.exp_avg_sq")];
            let sqrt = &golden[&format!("{name}.sqrt")];
            let mut compared = 0;
            for (index, (ours, torch)) in ours.iter().zip(&golden[name]).enumerate() {
                // torch's own square root is not always the nearest number; there the step may differ with it.
                if second[index].sqrt() == sqrt[index] {
                    assert_eq!(ours, torch, "{name} {index}");
                    compared += 1;
                } else {
                    let change = (ours - inputs[0][index]).abs();
                    let last_bits = 4e-7 * change + 1.2e-7 * torch.abs();
                    assert!((ours - torch).abs() <= last_bits, "{name} {index}: {ours} {torch}");
                }
            }
            assert!(compared > 1500, "{compared}");
            // From the moments that the step has left, the same without a gradient.
            if decoupled {
                let left: [&[f32]; 3] = [inputs[0], &golden["adamw_f32.exp_avg"], second];
                assert_eq!(stepped(level, &adam(true, decay, 1502.0, false), "float32", &left), ours);
            }
        }
        let bf16: Vec<Vec<f32>> = inputs.iter().map(|values| rounded("bfloat16", values)).collect();
        let bf16: Vec<&[f32]> = bf16.iter().map(Vec::as_slice).collect();
        for (name, decay) in [("adamw_bf16_fused", 0.01), ("adamw_bf16_fused_no_decay", 0.0)] {
            same(&stepped(level, &adam(true, decay, 1502.0, true), "bfloat16", &bf16), &golden[name]);
        }
    }
}

fn info(name: &str, shape: &[u64]) -> TensorInfo {
    TensorInfo {
        name: name.to_owned(),
        shape: shape.to_vec(),
        dtype: Dtype::Float(find("float32").unwrap()),
        byte_order: ByteOrder::Little,
        elements: shape.iter().product(),
    }
}

/// A model of two layers and the state of its optimizer, the state in the order of `shapes`.
fn tensors(shapes: &[&[u64]]) -> Vec<TensorInfo> {
    let mut tensors = vec![
        info("model.a.weight", &[4, 2]),
        info("model.a.bias", &[4]),
        info("model.norm.running_mean", &[4]),
        info("model.b.weight", &[3, 4]),
        info("model.b.bias", &[3]),
    ];
    for (id, shape) in shapes.iter().enumerate() {
        for leaf in ["exp_avg", "exp_avg_sq"] {
            tensors.push(info(&format!("optim.state.{id}.{leaf}"), shape));
        }
        tensors.push(info(&format!("optim.state.{id}.step"), &[]));
    }
    tensors
}

fn pair(key: &str, value: &str) -> (String, String) {
    (format!("optim.param_groups.{key}"), value.to_owned())
}

#[test]
fn state_finds_its_weights() {
    let weights = |tensors: &[TensorInfo], metadata: &[(String, String)]| {
        let found = Checkpoint::new(tensors, metadata).map_err(|error| error.to_string())?;
        let parameters = found.parameters.iter();
        Ok::<_, String>(parameters.map(|parameter| (parameter.weight, parameter.group)).collect::<Vec<_>>())
    };
    // One group: the order of the model, without its buffer.
    let in_order = tensors(&[&[4, 2], &[4], &[3, 4], &[3]]);
    let one = [pair("0.lr", "0.25"), pair("0.betas", "0.8,0.9"), pair("0.params", "0,1,2,3")];
    let group = |weights: [usize; 4]| weights.map(|weight| (weight, Some(0))).to_vec();
    assert_eq!(weights(&in_order, &one).unwrap(), group([0, 1, 3, 4]));
    assert_eq!(
        weights(&in_order, &[]).unwrap(),
        [0, 1, 3, 4].map(|weight| (weight, None)).to_vec(),
        "without its groups"
    );
    let settings = Checkpoint::new(&in_order, &one).unwrap().groups[0];
    assert_eq!((settings.lr, settings.betas, settings.eps), (Some(0.25), Some((0.8, 0.9)), None));
    // Two groups, matrices first.
    let matrices = tensors(&[&[4, 2], &[3, 4], &[4], &[3]]);
    let two = [pair("0.params", "0,1"), pair("1.params", "2,3")];
    let found = weights(&matrices, &two).unwrap();
    assert_eq!(found, [(0, Some(0)), (3, Some(0)), (1, Some(1)), (4, Some(1))]);
    // By name, in whatever order.
    let turned = tensors(&[&[3], &[3, 4], &[4, 2], &[4]]);
    let named = [pair("0.params", "0,1,2,3"), pair("0.param_names", "b.bias,b.weight,a.weight,a.bias")];
    assert_eq!(weights(&turned, &named).unwrap(), group([4, 3, 0, 1]));
    // State under the names themselves.
    let mut keyed = tensors(&[]);
    keyed.push(info("optimizer.state.b.weight.exp_avg", &[3, 4]));
    keyed.push(info("optimizer.state.b.weight.exp_avg_sq", &[3, 4]));
    assert_eq!(weights(&keyed, &[]).unwrap(), [(3, None)]);
    // What does not fit is not guessed.
    let error = weights(&turned, &one).unwrap_err();
    assert!(
        error.starts_with(
            "parameter 0 of its optimizer has an exp_avg of shape [3], but the tensor in that place, \
        'model.a.weight', has [4, 2]: which is which cannot be told"
        ),
        "{error}"
    );
    let error = weights(&tensors(&[&[4, 2], &[4], &[3, 4]]), &[]).unwrap_err();
    assert!(error.starts_with("its optimizer has 3 parameters, but there are 4 other tensors"), "{error}");
    let error = weights(&tensors(&[]), &[]).unwrap_err();
    assert!(error.starts_with("has no optimizer state"), "{error}");
    let mut twice = in_order.clone();
    twice.push(info("other.state.0.exp_avg", &[4, 2]));
    let error = weights(&twice, &one).unwrap_err();
    assert!(error.starts_with("has more than one optimizer, 'optim' and 'other'"), "{error}");
    assert_eq!(canonical("module._orig_mod.h.0.weight.grad"), "h.0.weight");
}

fn json(arguments: &[&str]) -> Value {
    let output = amp_inspect(&[&["updates", "--quiet", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The tensors of the report that the step names, counted anew from the files.
#[test]
fn weights_and_gradients_of_real_files() {
    let report = json(&["--weights", WEIGHTS, "--grads", GRADS, "--lr", "1e-3", "--formats", "bfloat16"]);
    let read = |path: &str, name: &str| -> Vec<f32> {
        let source = open(Path::new(path)).unwrap();
        let index = source.tensors().iter().position(|info| info.name == name).unwrap();
        let info = &source.tensors()[index];
        let mut decoder = Decoder::new(info).unwrap();
        let chunk = decoder.chunk(info.elements as usize, |bytes| source.read_at(index, 0, bytes));
        let Chunk::F32(values) = chunk.unwrap() else { panic!() };
        values.to_vec()
    };
    let rows = report["tensors"].as_array().unwrap();
    assert_eq!(rows.len(), 41);
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let (mut nonzero, mut unmoved) = (0, 0);
        for (w, g) in read(WEIGHTS, name).into_iter().zip(read(GRADS, name)) {
            let w = half::bf16::from_f32(w);
            let new = half::bf16::from_f32((-1e-3_f32).mul_add(g, w.to_f32()));
            nonzero += u64::from(g != 0.0);
            unmoved += u64::from(g != 0.0 && new == w);
        }
        let format = &row["formats"][1];
        assert_eq!(format["updates"], nonzero, "{name}");
        let pct = format["ways"][0]["after"][0]["unmoved_pct"].as_f64().unwrap();
        assert!((pct - 100.0 * unmoved as f64 / nonzero as f64).abs() < 1e-9, "{name}");
    }
}

#[test]
fn a_checkpoint_and_the_same_tensors_by_name_agree() {
    let checkpoint = json(&["--checkpoint", CHECKPOINT, "--tensor", "ln_f|wte"]);
    let total = &checkpoint["total"];
    assert_eq!((&total["lr"], &total["weight_decay"]), (&Value::from(1e-3), &Value::from(0.01)));
    assert_eq!(checkpoint["rule"], "a step of AdamW from the moments that step 1501 left");
    let advanced = json(&["--checkpoint", CHECKPOINT, "--grads", GRADS, "--tensor", "ln_f|wte"]);
    assert_eq!(advanced["rule"], "step 1502 of AdamW: the gradients advance the recorded moments");
    assert_ne!(advanced["total"], checkpoint["total"]);
    // A tenth of the learning rate asks for a tenth of the step: the ratios move by log2(10).
    let tenth = json(&["--checkpoint", CHECKPOINT, "--tensor", "ln_f|wte", "--lr", "1e-4"]);
    let median = |report: &Value| report["total"]["formats"][1]["median_ratio_log2"].as_f64().unwrap();
    assert!((median(&checkpoint) - median(&tenth) - 10_f64.log2()).abs() < 0.1);
    let half = |report: &Value| report["total"]["formats"][1]["lr_for_half"].as_f64().unwrap();
    assert!((half(&checkpoint) / half(&tenth) - 1.0).abs() < 0.05);
}

#[test]
fn what_cannot_be_done_is_told_in_a_sentence() {
    refused(
        &["updates", "--checkpoint", GRADS, "--lr", "1e-3"],
        &format!(
            "{GRADS}: has no optimizer state (no tensor such as optimizer.state.0.exp_avg): save the optimizer's \
             state_dict too, or give --weights and --grads"
        ),
    );
    refused(
        &["updates", "--weights", WEIGHTS, "--lr", "1e-3"],
        "a step needs --grads, or --exp-avg with --exp-avg-sq, or a --checkpoint",
    );
    refused(&["updates", "--weights", WEIGHTS, "--grads", GRADS], "no learning rate is known: give --lr");
    refused(
        &["updates", "--weights", WEIGHTS, "--grads", GRADS, "--lr", "1", "--optimizer", "adam"],
        "adam needs its moments: --exp-avg and --exp-avg-sq",
    );
    refused(
        &["updates", "--weights", WEIGHTS, "--exp-avg", GRADS, "--exp-avg-sq", GRADS, "--lr", "1"],
        "Adam's bias correction needs the step of the moments: give --moments-step",
    );
    refused(
        &["updates", "--weights", WEIGHTS, "--grads", GRADS, "--lr", "1", "--formats", "e8m0fnu"],
        "e8m0fnu is no format to train in",
    );
    refused(
        &["updates", "--checkpoint", CHECKPOINT, "--tensor", "^nothing$"],
        "no tensor is left to read: check --tensor and --exclude",
    );
    let sgd = amp_inspect(&["updates", "--checkpoint", CHECKPOINT, "--optimizer", "sgd"]);
    assert_eq!((sgd.status.code(), &*sgd.stdout), (Some(2), &b""[..]));
    let said = String::from_utf8(sgd.stderr).unwrap();
    assert!(said.contains("has Adam's moments and no momentum_buffer"), "{said}");
    refused(
        &["updates", "--checkpoint", "missing.pt"],
        "missing.pt: cannot open the file: no such file or directory",
    );
    for (option, value) in
        [("--lr", "0"), ("--lr", "-1e-3"), ("--lr", "nan"), ("--betas", "1,2"), ("--eps", "0")]
    {
        let output =
            amp_inspect(&["updates", "--weights", WEIGHTS, "--grads", GRADS, &format!("{option}={value}")]);
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{option}={value}");
        assert!(
            String::from_utf8_lossy(&output.stderr).starts_with("error: invalid value"),
            "{option}={value}"
        );
    }
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
    let (w, g, m, v) =
        (path("w.safetensors"), path("g.safetensors"), path("m.safetensors"), path("v.safetensors"));
    let names = ["good", "shape", "nan", "lonely"];
    write(Path::new(&w), &names.map(|name| (name, &[2][..], &[1.0, 2.0][..])));
    let bad: [(&str, &[u64], &[f32]); 4] = [
        ("good", &[2], &[0.5, 0.0]),
        ("shape", &[1, 2], &[0.5, 0.5]),
        ("nan", &[2], &[0.5, f32::NAN]),
        ("stranger", &[1], &[1.0]),
    ];
    write(Path::new(&g), &bad);
    write(Path::new(&m), &names.map(|name| (name, &[2][..], &[0.1, 0.2][..])));
    write(
        Path::new(&v),
        &names.map(|name| (name, &[2][..], if name == "nan" { &[0.1, -0.2][..] } else { &[0.1, 0.2] })),
    );

    let output = amp_inspect(&["updates", "--weights", &w, "--grads", &g, "--lr", "0.1", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["tensors"].as_array().unwrap().len(), 1);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap().lines().collect::<Vec<_>>(),
        [
            format!("amp-inspect: {w}: tensor 'lonely': has no gradient of its name"),
            format!("amp-inspect: {g}: tensor 'stranger': is the gradient of no weight that was given"),
            format!(
                "amp-inspect: {w}: tensor 'nan': 1 element of its gradient is NaN or Inf, first at index 1: no step \
                 can be taken"
            ),
            format!(
                "amp-inspect: {g}: tensor 'shape': has shape [1, 2], which cannot be read beside [2] of tensor 'shape'"
            ),
        ]
    );
    let moments = ["--exp-avg", &m, "--exp-avg-sq", &v, "--moments-step", "10", "--lr", "0.1", "--json"];
    let output = amp_inspect(&[&["updates", "--weights", &w][..], &moments].concat());
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        format!(
            "amp-inspect: {w}: tensor 'nan': 1 element of its exp_avg_sq is negative, first at index 1: no step can \
             be taken\n"
        )
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["tensors"].as_array().unwrap().len(), 3);
}

#[test]
fn weights_that_overflow_are_counted_and_have_no_ratios() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (weights, grads) = (path("w.safetensors"), path("g.safetensors"));
    write(Path::new(&weights), &[("w", &[3], &[1.0, 2.0, 3.0])]);
    write(Path::new(&grads), &[("w", &[3], &[1.0, -1.0, 0.0])]);
    // 1e38 is beyond float16's 65504 and within bfloat16.
    let command = [
        "updates",
        "--weights",
        &weights,
        "--grads",
        &grads,
        "--lr",
        "1e38",
        "--formats",
        "float16,bfloat16",
    ];
    let report = json(&command[1..]);
    let mark = |format: usize, way: usize| &report["total"]["formats"][format]["ways"][way]["after"][0];
    for way in [0, 2, 3] {
        let mark = mark(1, way);
        assert_eq!((&mark["nonfinite"], &mark["off_pct"]), (&2.into(), &100.0.into()), "{mark}");
    }
    for way in 0..4 {
        for figure in ["along", "effective_lr", "error", "mean_relative_error"] {
            assert!(mark(1, way)[figure].is_null(), "{figure}: {}", mark(1, way));
            assert!(mark(2, way)[figure].is_number(), "{figure}: {}", mark(2, way));
        }
    }
    let sentences = report["findings"].to_string();
    assert!(sentences.contains("2 weights become Inf or NaN in float16."), "{sentences}");
    assert!(!sentences.contains("NaN in bfloat16"), "{sentences}");
    let text = printed(amp_inspect(&command)).to_lowercase();
    assert!(!text.replace("inf or nan", "").contains("nan"), "{text}");
}

#[test]
fn every_output_is_there_and_fits() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let base = ["updates", "--checkpoint", CHECKPOINT, "--steps", "20", "-q"];
    let one = amp_inspect(&[&base[..], &["--threads", "1", "--json"]].concat()).stdout;
    let three = amp_inspect(&[&base[..], &["--threads", "3", "--json"]].concat()).stdout;
    assert!(one == three, "the same bytes for any number of threads");
    for level in levels() {
        let at_level =
            amp_inspect_with(("AMP_INSPECT_SIMD", level.name()), &[&base[..], &["--json"]].concat());
        assert!(at_level.stdout == one, "the same bytes for {}", level.name());
    }
    for columns in [80, 100, 200] {
        let printed = printed(amp_inspect_at(columns, &base));
        assert!(printed.lines().all(|line| line.width() <= columns), "{printed}");
        assert!(printed.contains("half an ulp") && printed.contains("bfloat16 + 16 bits apart"), "{printed}");
    }
    let saved = [path("a.csv"), path("a.md"), path("a.svg"), path("a.png")];
    let mut arguments = base.to_vec();
    saved.iter().for_each(|path| arguments.extend(["--save", path]));
    printed(amp_inspect(&arguments));
    let rows: Vec<BTreeMap<String, String>> =
        csv::Reader::from_path(&saved[0]).unwrap().deserialize().map(|row| row.unwrap()).collect();
    // Six marks each (1, 2, 4, 8, 16, 20), but one of the mean; 41 tensors and their sum.
    assert_eq!(rows.len(), 42 * (6 + 4 * (3 * 6 + 1)));
    assert!(std::fs::read_to_string(&saved[1]).unwrap().contains("| `model.ln_f.bias` |"));
    roxmltree::Document::parse(&std::fs::read_to_string(&saved[2]).unwrap()).unwrap();
    assert!(std::fs::read(&saved[3]).unwrap().starts_with(b"\x89PNG"));
}
