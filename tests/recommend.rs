//! Every recommendation is cast again, element by element, and held against the bounds; so is every refusal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use amp_inspect::cast::block::{BlockPlan, cast_block};
use amp_inspect::cast::{CastPlan, Place};
use amp_inspect::format::block::BlockShape;
use amp_inspect::format::{BlockSpec, find_block, pow2};
use amp_inspect::recommend::{
    Bounds, CANDIDATES, Cast, Census, Choice, Failure, Measured, choose, find, judge,
};
use amp_inspect::source::open;
use amp_inspect::stats::blocks::tensor_scale;
use amp_inspect::stats::{FormatStats, SourceStats};
use common::{Tensor, write_safetensors};
use serde_json::Value;

const GPT: &str = "testdata/gpt/grads_step01500.safetensors";

fn run(arguments: &[&str]) -> (Value, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
    let output =
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).arg("--quiet").output().unwrap();
    let code = output.status.code().unwrap();
    let json = serde_json::from_slice(&output.stdout);
    (json.unwrap_or_else(|_| Value::String(String::from_utf8(output.stderr).unwrap())), code)
}

/// The positions of each block of a tensor.
fn blocks(shape: &[u64], spec: &BlockSpec) -> Vec<Vec<usize>> {
    let count = shape.iter().product::<u64>() as usize;
    let width = shape.last().copied().unwrap_or(1) as usize;
    let mut blocks: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for position in 0..count {
        let (row, column) = (position / width, position % width);
        let key = match spec.shape {
            BlockShape::Run { length, axis: -1 } => (row, column / length as usize),
            BlockShape::Tile { rows, columns } => (row / rows as usize, column / columns as usize),
            BlockShape::Row => (row, 0),
            BlockShape::Tensor => (0, 0),
            other @ BlockShape::Run { .. } => panic!("{other:?}"),
        };
        blocks.entry(key).or_default().push(position);
    }
    blocks.into_values().collect()
}

/// What a candidate does to these values, by the definition of every cast.
fn cast_again(cast: Cast, shape: &[u64], values: &[f32], loss_scale: f32) -> Measured {
    let mut stats = FormatStats::default();
    let plain = |name: &str, scale: f32| CastPlan {
        scale,
        ..CastPlan::new(amp_inspect::format::find(name).unwrap())
    };
    match cast {
        Cast::Plain(name) | Cast::LossScaled(name) => {
            let plan = plain(name, if cast == Cast::Plain(name) { 1.0 } else { loss_scale });
            values.iter().for_each(|&x| stats.observe_f32(&plan, x, Place::default()));
        }
        Cast::Block(name) => {
            let plan = BlockPlan { spec: find_block(name).unwrap(), scale: 1.0 };
            let mut source = SourceStats::default();
            values.iter().for_each(|&x| source.observe(x.into(), 1));
            let tensor = tensor_scale(&plan, &source);
            for block in blocks(shape, &plan.spec) {
                let block: Vec<f32> = block.iter().map(|&position| values[position]).collect();
                for (&x, element) in block.iter().zip(cast_block(&plan, tensor, &block).1) {
                    stats.classes.add(element.class, 1);
                    stats.errors.observe(x.into(), element.dequantised, 1);
                }
            }
        }
    }
    Measured::from(&stats)
}

#[test]
fn every_recommendation_and_every_refusal_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = open(&root.join(GPT)).unwrap();
    for min_sqnr in [10.0, 20.0, 28.0, 31.5, 60.0, 500.0] {
        let bounds = Bounds { min_sqnr, ..Bounds::default() };
        let (report, code) = run(&["recommend", GPT, "--json", "--min-sqnr", &format!("{min_sqnr}dB")]);
        assert_eq!(code, 0);
        let loss_scale = report["loss_scale_log2"].as_i64().map_or(1.0, |log2| pow2(log2 as i32) as f32);
        let rows = report["rows"].as_array().unwrap();
        assert_eq!(rows.len(), source.tensors().len());
        for (index, info) in source.tensors().iter().enumerate() {
            let mut bytes = vec![0; info.bytes() as usize];
            source.read_at(index, 0, &mut bytes).unwrap();
            let values: Vec<f32> =
                bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
            let row = rows.iter().find(|row| row["name"] == info.name.as_str()).unwrap();
            let measured =
                |name: &str| cast_again(find(name).unwrap().cast, &info.shape, &values, loss_scale);
            let what = format!("{} at {min_sqnr} dB", info.name);
            if let Some(name) = row["recommended"]["format"].as_str() {
                let measured = measured(name);
                assert_eq!(judge(&bounds, &measured), [], "{name} of {what}");
                let underflow = 100.0 * measured.underflow as f64 / measured.nonzero as f64;
                let reported = row["recommended"]["underflow_pct"].as_f64().unwrap();
                assert!((reported - underflow).abs() < 1e-9, "{what}: {reported} {underflow}");
                let sqnr = row["recommended"]["sqnr_db"].as_f64().unwrap_or(f64::INFINITY);
                let close =
                    (sqnr - measured.sqnr_db.unwrap()).abs() < 1e-6 || sqnr == measured.sqnr_db.unwrap();
                assert!(close, "{name} of {what}: {sqnr} {measured:?}");
            }
            let rejected = row["rejected"].as_array().unwrap();
            for fails in rejected {
                let name = fails["format"].as_str().unwrap();
                assert_ne!(judge(&bounds, &measured(name)), [], "{name} of {what}");
            }
            // All that come before the one recommended were refused.
            let before =
                CANDIDATES.iter().take_while(|c| Some(c.name) != row["recommended"]["format"].as_str());
            let refused: Vec<&str> = rejected.iter().map(|fails| fails["format"].as_str().unwrap()).collect();
            assert_eq!(refused, before.map(|candidate| candidate.name).collect::<Vec<_>>(), "{what}");
            let bf16 = measured("bfloat16");
            let reported = row["bfloat16"]["sqnr_db"].as_f64().unwrap();
            assert!((reported - bf16.sqnr_db.unwrap()).abs() < 1e-6, "{what}");
        }
    }
}

fn measured(underflow: u64, overflow: u64, sqnr: f64) -> Measured {
    Measured { nonzero: 1000, underflow, overflow, sqnr_db: Some(sqnr), max_rel: None }
}

#[test]
fn bounds_are_met_at_their_very_value() {
    let bounds = Bounds::default();
    assert_eq!(judge(&bounds, &measured(1, 0, 20.0)), []);
    assert_eq!(judge(&bounds, &measured(2, 0, 20.0)), [Failure::Underflow(0.002)]);
    assert_eq!(judge(&bounds, &measured(0, 1, 19.9)), [Failure::Overflow(0.001), Failure::Sqnr(19.9)]);
    let nothing = Measured { nonzero: 0, underflow: 0, overflow: 0, sqnr_db: None, max_rel: None };
    assert_eq!(judge(&bounds, &nothing), []);
    let lost = Measured { nonzero: 5, ..nothing };
    assert_eq!(judge(&bounds, &lost), [Failure::Sqnr(f64::NEG_INFINITY)]);
}

#[test]
fn the_cheapest_that_does_at_every_step_is_chosen() {
    let bounds = Bounds::default();
    let (good, bad, worse) =
        (Some(measured(0, 0, 30.0)), Some(measured(5, 0, 30.0)), Some(measured(9, 0, 12.0)));
    let steps = [vec![good, bad, worse], vec![good, None, good], vec![good; 3], vec![good; 3]];
    let candidates: Vec<_> = CANDIDATES.iter().take(4).collect();
    let choice = choose(&bounds, &Census::default(), &candidates, &steps);
    let first = vec![Failure::Underflow(0.009), Failure::Sqnr(12.0)];
    let wanted = Choice { chosen: Some(2), rejected: vec![(0, first), (1, vec![Failure::NotMeasured])] };
    assert_eq!(choice, wanted);
    assert_eq!(choose(&bounds, &Census::default(), &candidates, &[vec![bad]]).chosen, None);
    assert_eq!(choose(&bounds, &Census::default(), &candidates, &[vec![]]).chosen, None);
}

#[test]
fn candidates_come_cheapest_first_and_are_what_they_are_called() {
    let bits: Vec<f64> = CANDIDATES.iter().map(|candidate| candidate.bits()).collect();
    assert!(bits.windows(2).all(|pair| pair[0] <= pair[1]), "{bits:?}");
    for candidate in CANDIDATES {
        assert!(candidate.plain().unwrap().is_some() != candidate.block().unwrap().is_some());
        assert_eq!(find(candidate.name).unwrap(), candidate);
    }
    assert_eq!(find("mxfp8").unwrap().bits(), 8.25);
}

#[test]
fn the_configuration_names_what_stays_in_higher_precision() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("formats.json");
    let config = path.to_str().unwrap();
    // At 29.5 dB some of the 8-bit formats will do, at 40 dB none.
    let (_, code) = run(&["recommend", GPT, "--json", "--min-sqnr", "40", "--config", config]);
    assert_eq!(code, 0);
    let found: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(found["dtypes"].as_object().unwrap().len(), 41);
    assert_eq!(found["dtypes"]["lm_head.weight"], "bfloat16");
    let kept: Vec<&str> = found["keep_in_higher_precision"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(kept.contains(&"lm_head") && kept.contains(&"h.0.fc"), "{kept:?}");
    let pattern = found["transformer_engine_layer_name_regex_pattern"].as_str().unwrap();
    let pattern = regex::Regex::new(pattern).unwrap();
    assert!(kept.iter().all(|name| pattern.is_match(name)) && !pattern.is_match("h.0.fcx"));
    for (arguments, why) in [
        (&["recommend", GPT, "--config", "x.yaml"][..], "a configuration is a .json file"),
        (&["recommend", GPT, "--by", "layer", "--config", config], "without --by layer"),
        (&["recommend", GPT, "--max-underflow", "120%"], "a share is from 0% to 100%"),
        (&["recommend", GPT, "--candidates", "fp7"], "'fp7' cannot be recommended"),
    ] {
        let (error, code) = run(arguments);
        assert!(code == 2 && error.as_str().unwrap().contains(why), "{error}");
    }
}

#[test]
fn bad_values_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    std::fs::write(&path, "a,b,c\n1,0,1\ninf,0,2\n2,0,3e-30\n").unwrap();
    let (report, code) = run(&["recommend", path.to_str().unwrap(), "--json"]);
    assert_eq!(code, 0, "{report}");
    let row = |name: &str| {
        report["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(row("b")["reason"], "no nonzero value: nothing to lose");
    assert_eq!(row("a")["nonfinite"], 1);
    assert_eq!(row("c")["recommended"]["format"], "bfloat16");
}

fn floats(name: &str, shape: &[u64], values: &[f32]) -> Tensor {
    (name.to_owned(), shape.to_vec(), values.to_vec())
}

#[test]
fn nan_and_inf_are_kept_and_counted() {
    let nan = f32::NAN;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    // All of them are numbers of e2m1.
    let healthy: Vec<f32> = [1.0, 2.0, 3.0, 6.0].repeat(4);
    let with = |bad: f32| -> Vec<f32> { std::iter::once(bad).chain(healthy[1..].iter().copied()).collect() };
    write_safetensors(
        &path,
        &[
            floats("all.weight", &[4], &[nan; 4]),
            floats("zeros.weight", &[2], &[f32::NEG_INFINITY, 0.0]),
            floats("nan.weight", &[16], &with(nan)),
            floats("inf.weight", &[16], &with(f32::INFINITY)),
            floats("both.weight", &[4], &[nan, f32::INFINITY, 1.0, 2.0]),
            floats("healthy.weight", &[16], &healthy),
        ],
    );
    let config = folder.path().join("c.json");
    let (report, code) =
        run(&["recommend", path.to_str().unwrap(), "--json", "--config", config.to_str().unwrap()]);
    assert_eq!(code, 0, "{report}");
    let config: Value = serde_json::from_slice(&std::fs::read(config).unwrap()).unwrap();
    // nvfp4 has neither, e4m3fn has a NaN and no Inf, e5m2 has both; two of them leave nothing to judge by.
    for (name, dtype) in [
        ("all.weight", "float32"),
        ("zeros.weight", "float32"),
        ("nan.weight", "e4m3fn"),
        ("inf.weight", "e5m2"),
        ("both.weight", "e5m2"),
        ("healthy.weight", "nvfp4"),
    ] {
        assert_eq!(config["dtypes"][name], dtype, "{name}");
    }
    let sentences = report["findings"].to_string();
    for said in ["all.weight has 4 NaN/Inf", "inf.weight has 1 NaN/Inf", "left out of the figures"] {
        assert!(sentences.contains(said), "{sentences}");
    }
    assert!(!report.to_string().contains("nothing to lose"), "{report}");
}

#[test]
fn bfloat16_has_the_range_of_float32_but_for_its_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let said = |values: &[f32]| {
        write_safetensors(&path, &[floats("w", &[values.len() as u64], values)]);
        let (report, _) = run(&["recommend", path.to_str().unwrap(), "--json"]);
        report["findings"].to_string()
    };
    let in_range = "has the range of float32, so that it needs no loss scale: 0 % underflow, 0 % overflow";
    assert!(said(&[1.0, 1e-30, 3e38]).contains(in_range));
    // Half of bfloat16's smallest number is 2^-134, of float32's 2^-150.
    let tiny = said(&[1e-45, 2e-45, 1e-44]);
    assert!(tiny.contains("100 % underflow") && tiny.contains("keeps 0 of 24 significand bits"), "{tiny}");
    assert!(!tiny.contains("no loss scale"), "{tiny}");
}
