//! FP8 scales against recordings of the frameworks, bit for bit, and by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::path::Path;
use std::process::Command;

use amp_inspect::cast::block::{Factor, TensorScale, block_scale};
use amp_inspect::format::{find, find_block};
use amp_inspect::scaler::fp8::{AmaxAlgo, Delayed, Event, Settings, Variant, replay};
use common::{amp_inspect, gunzip, printed, say, testdata};
use serde_json::Value;

const BIN: &str = env!("CARGO_BIN_EXE_amp-inspect");
const SPIKE: &str = "testdata/fp8/spike";
const GPT: &str = "testdata/gpt/grads_step01500.safetensors";

/// Runs the program; its standard output as JSON, and its exit code.
fn run(arguments: &[&str]) -> (Value, i32) {
    let output = Command::new(BIN)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .args(["--json", "--quiet"])
        .output()
        .unwrap();
    let code = output.status.code().unwrap();
    let json = serde_json::from_slice(&output.stdout);
    (json.unwrap_or_else(|_| Value::String(String::from_utf8(output.stderr).unwrap())), code)
}

/// An npy file of these values.
fn npy(folder: &Path, name: &str, shape: &str, values: &[f32]) -> String {
    let head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{head:<117}\n").into_bytes());
    bytes.extend(values.iter().flat_map(|x| x.to_le_bytes()));
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

/// A recording: each row's bits by column.
fn read(name: &str) -> Vec<std::collections::HashMap<String, String>> {
    let bytes = gunzip(&format!("fp8/{name}.csv.gz"));
    let mut reader = csv::Reader::from_reader(&*bytes);
    reader.deserialize().map(|row| row.unwrap()).collect()
}

fn bits(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn delayed_scales_are_those_of_the_frameworks() {
    let index: Value = serde_json::from_slice(&std::fs::read(testdata("fp8/index.json")).unwrap()).unwrap();
    let mut met = [0; 4];
    for (name, about) in index.as_object().unwrap() {
        let variant = match name.split('/').next().unwrap() {
            "te_delayed_fused" => Variant::Fused,
            "te_delayed_nonbulk" => Variant::Single,
            "te_delayed_unfused" => Variant::Python,
            "te_delayed_jax" => Variant::Jax,
            _ => continue,
        };
        let settings = Settings {
            history: about["amax_history_len"].as_u64().unwrap() as usize,
            margin: about["margin"].as_i64().unwrap() as i32,
            algo: match about["amax_compute_algo"].as_str().unwrap() {
                "max" => AmaxAlgo::Max,
                "most_recent" => AmaxAlgo::MostRecent,
                other => panic!("{other}"),
            },
        };
        let mut state = Delayed::new(variant, settings, about["fp8_max"].as_f64().unwrap() as f32);
        for (step, row) in read(name).iter().enumerate() {
            assert_eq!(state.scale().to_bits(), bits(&row["scale_used_f32"]), "{name} step {step}: used");
            state.update(f32::from_bits(bits(&row["amax_f32bits"])));
            assert_eq!(state.scale().to_bits(), bits(&row["scale_after_f32"]), "{name} step {step}: after");
            met[variant as usize] += 1;
        }
    }
    assert_eq!(met.map(|steps| steps > 2000), [true; 4], "{met:?}");
    say(&format!(
        "delayed scaling: {met:?} steps of four variants as Transformer Engine has them, no exception"
    ));
}

#[test]
fn traces_of_magnitudes_give_the_recorded_scales() {
    let index: Value = serde_json::from_slice(&std::fs::read(testdata("fp8/index.json")).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("amax.csv");
    let mut met = 0;
    for (name, about) in index.as_object().unwrap() {
        let recipe = match name.split('/').next().unwrap() {
            "te_delayed_fused" => "delayed",
            "te_delayed_jax" => "delayed:jax",
            _ => continue,
        };
        let rows = read(name);
        let amaxes: Vec<f32> = rows.iter().map(|row| f32::from_bits(bits(&row["amax_f32bits"]))).collect();
        // A trace makes no difference between NaN and Inf.
        if amaxes.iter().any(|amax| amax.is_nan()) {
            continue;
        }
        let lines = amaxes.iter().enumerate().map(|(step, amax)| format!("{step},{amax:e}\n"));
        std::fs::write(&path, "step,amax:layer\n".to_owned() + &lines.collect::<String>()).unwrap();
        let format = if about["fp8_max"] == 448.0 { "e4m3fn" } else { "e5m2" };
        let [history, margin] = ["amax_history_len", "margin"].map(|key| about[key].to_string());
        let algo = about["amax_compute_algo"].as_str().unwrap();
        let options = ["--recipe", recipe, "--format", format, "--history", &history, "--margin", &margin];
        let mut arguments = vec!["fp8", path.to_str().unwrap(), "--amax-algo", algo];
        arguments.extend(options);
        let (report, code) = run(&arguments);
        assert_eq!(code, 0, "{report}");
        let steps = report["tensors"].as_array().unwrap();
        assert_eq!(steps.len(), rows.len());
        for (step, row) in steps.iter().zip(&rows) {
            let cell = &step["recipes"][0];
            assert_eq!(
                bits(cell["scale_bits"].as_str().unwrap()),
                bits(&row["scale_used_f32"]),
                "{name} {step}"
            );
            assert_eq!(cell["saturated"], Value::Null);
            met += 1;
        }
        assert_eq!((&steps[0]["name"], &steps[0]["role"]), (&"layer".into(), &"gradient".into()));
    }
    assert!(met > 5000, "{met}");
    say(&format!("delayed scaling of traces: {met} steps as recorded"));
}

#[test]
fn what_a_trace_cannot_tell_is_refused() {
    let trace = "testdata/gradscaler_cnn_default.csv";
    for (arguments, sentence) in [
        (&["fp8", trace, "--recipe", "current,mxfp8"][..], "the recipes for it are those of delayed scaling"),
        (&["fp8", trace, GPT], "traces (.csv, .tsv, .jsonl, TensorBoard) and dumps are not read together"),
        (&["fp8", trace, "--unscale", "2"], "--unscale is for dumps, not for traces"),
        (&["fp8", GPT, "--column", "scale=x"], "--column is for traces, not for dumps"),
        (
            &["fp8", trace, "--steps", "5000.."],
            "gradscaler_cnn_default.csv: has no magnitude at a step of --steps 5000..",
        ),
        (&["fp8", "nowhere.csv"], "nowhere.csv: cannot open the file"),
    ] {
        let (said, code) = run(arguments);
        assert_eq!(code, 2, "{arguments:?}");
        assert!(said.as_str().unwrap().contains(sentence), "{said}");
    }
    // Each step is told to be of the file that has it; of a step in both the larger counts.
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.csv", "b.csv"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&paths[0], "step,amax:w,amax:v\n0,1,7\n1,2,7\n").unwrap();
    std::fs::write(&paths[1], "step,amax:w\n1,4\n2,8\n").unwrap();
    let (report, code) = run(&["fp8", &paths[0], &paths[1], "--recipe", "delayed"]);
    let rows = report["tensors"].as_array().unwrap();
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["input"].clone(), row["amax"].clone()))
        .collect();
    let wanted = [("w", 0, 1.0), ("w", 1, 4.0), ("w", 1, 8.0), ("v", 0, 7.0), ("v", 0, 7.0)];
    assert_eq!(code, 0);
    assert_eq!(told, wanted.map(|(name, input, amax)| (name, input.into(), amax.into())));
    assert_eq!((&report["inputs"][0]["tensors"], &report["inputs"][1]["tensors"]), (&2.into(), &1.into()));

    let (report, code) = run(&["fp8", trace, "--steps", "0..9", "--role", "activation"]);
    assert_eq!((code, report["tensors"].as_array().unwrap().len()), (0, 10));
    assert_eq!(report["tensors"][3]["recipes"][0]["format"], "e4m3fn:tensor");
    assert!(report["notices"][0].as_str().unwrap().contains("other recipes are left out"));
}

#[test]
fn an_inf_leaves_transformer_engine_without_a_scale() {
    let folder = tempfile::tempdir().unwrap();
    let path = npy(folder.path(), "x.npy", "32,", &[&[f32::INFINITY][..], &[1e-3; 31]].concat());
    let (report, _) = run(&["fp8", &path, "--recipe", "current,nvfp4:te,mxfp8:rceil"]);
    let findings = report["findings"].to_string();
    assert!(findings.contains("An Inf gives no scale: in 1 tensor (x)"), "{findings}");
    assert!(findings.contains("the tensor's scale of current and nvfp4:te is 1"), "{findings}");
    assert_eq!(report["tensors"][0]["recipes"][0]["scale"], 1.0);
}

/// The factor that an element is multiplied by, in a block whose largest magnitude is `amax`.
fn factor(format: &str, amax: f32) -> u32 {
    match block_scale(&find_block(format).unwrap(), TensorScale::ONE, amax).factor {
        Factor::Times(factor) => factor.to_bits(),
        Factor::Over(divisor) => panic!("{divisor}"),
    }
}

#[test]
fn scales_of_an_amax_are_those_of_the_frameworks() {
    let mut met = 0;
    for row in read("te_scale_from_amax/scale_table") {
        let amax = f32::from_bits(bits(&row["amax_f32bits"]));
        for (column, format) in [
            ("e4m3_fp32scale", "e4m3fn:tensor"),
            ("e4m3_pow2scale", "e4m3fn:1x128:pow2"),
            ("e5m2_fp32scale", "e5m2:tensor"),
            ("e5m2_pow2scale", "e5m2:128x128:pow2"),
            // Its guard, the largest bfloat16, has the same exponent as the largest f32.
            ("e4m3_pow2scale_bf16input", "e4m3fn:1x128:pow2"),
        ] {
            assert_eq!(factor(format, amax), bits(&row[column]), "{column} of {amax:e}");
            met += 1;
        }
        let raised = if amax.is_nan() { amax } else { amax.max(1e-12) };
        assert_eq!(factor("e4m3fn:1x128:pow2", raised), bits(&row["e4m3_pow2scale_eps1e-12"]), "{amax:e}");
        // Of an Inf and a NaN Transformer Engine stores 0xfe and 0xff; blocks with either are NaN here.
        if amax.is_finite() {
            for (column, format) in
                [("mxfp8_e8m0_e4m3", "mxfp8:rceil"), ("mxfp8_e8m0_e5m2", "mxfp8_e5m2:rceil")]
            {
                let code = block_scale(&find_block(format).unwrap(), TensorScale::ONE, amax).code;
                assert_eq!(code, bits(&row[column]), "{column} of {amax:e}");
            }
        }
    }
    for row in read("fp8_scale_tables/torchao_deepgemm") {
        let amax = f32::from_bits(bits(&row["amax_f32bits"]));
        for (column, format) in [
            ("torchao_e4m3_scale", "e4m3fn:row:torchao"),
            ("torchao_e4m3_pow2_scale", "e4m3fn:row:torchao-pow2"),
            ("torchao_e5m2_scale", "e5m2:tensor:torchao"),
            ("torchao_e5m2_pow2_scale", "e5m2:tensor:torchao-pow2"),
        ] {
            let ours = f32::from_bits(factor(format, amax));
            let theirs = f32::from_bits(bits(&row[column]));
            assert!(
                ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                "{column} of {amax:e}: {ours:e} {theirs:e}"
            );
            met += 1;
        }
        for (column, format) in [
            ("deepgemm_sf_f32", "e4m3fn:1x128:deepgemm"),
            ("deepgemm_sf_ue8m0", "e4m3fn:1x128:deepgemm-ue8m0"),
        ] {
            let code = block_scale(&find_block(format).unwrap(), TensorScale::ONE, amax).code;
            let nan = |bits: u32| f32::from_bits(bits).is_nan();
            assert!(
                code == bits(&row[column]) || nan(code) && nan(bits(&row[column])),
                "{column} of {amax:e}"
            );
            met += 1;
        }
        for (element, name) in [("e4m3", "mxfp8"), ("e5m2", "mxfp8_e5m2")] {
            for rule in ["floor", "rceil", "ceil", "even"] {
                let spec = find_block(&format!("{name}:{rule}")).unwrap();
                // torchao 0.18.0 stores numbers for an Inf.
                if amax.is_infinite() {
                    continue;
                }
                let ours = block_scale(&spec, TensorScale::ONE, amax).code;
                let theirs = bits(&row[&format!("mx_{element}_{rule}")]);
                // torchao takes a logarithm in f32, which rounds this one down to a power of two; Transformer Engine,
                // whose rule this is, does not.
                let logarithm = u32::from(rule == "rceil" && row["amax_f32bits"] == "0x3fe00001");
                assert_eq!(ours, theirs + logarithm, "{rule} of {amax:e}");
                met += 1;
            }
        }
    }
    say(&format!("scales of 436 magnitudes: {met} as the frameworks have them"));
}

#[test]
fn a_spike_holds_the_scale_down_for_as_long_as_the_history_is() {
    // By hand: amax 1, a spike of 1000 at step 5, a history of 4; 448/1000 in f32.
    let settings = Settings { history: 4, ..Settings::default() };
    let state = Delayed::new(Variant::Fused, settings, 448.0);
    let amaxes = (0..14).map(|step| if step == 5 { 1000.0 } else { 1.0 });
    let moments = replay(state, &find("e4m3fn").unwrap(), amaxes);
    let scales: Vec<f32> = moments.iter().map(|moment| moment.scale).collect();
    let low = 448.0_f32 / 1000.0;
    let wanted = [1.0, 448.0, 448.0, 448.0, 448.0, 448.0, low, low, low, low, 448.0, 448.0, 448.0, 448.0];
    assert_eq!(scales, wanted);
    let stale = Event::Stale { bits: libm::log2(448.0) - libm::log2(low.into()) };
    let events: Vec<&[Event]> = moments.iter().map(|moment| &moment.events[..]).collect();
    assert_eq!(events[0], [Event::Start]);
    assert_eq!(events[5], [Event::Saturates]);
    assert!(events[6..10].iter().all(|events| *events == [stale]));
    assert_eq!(events[10], [Event::Recovered { after: 5 }]);
    let quiet = |step: &usize| !matches!(step, 0 | 5..=10);
    assert!((0..14).filter(quiet).all(|step| events[step].is_empty()));
    assert_eq!(moments[7].amax_used, Some(1000.0));
}

#[test]
fn an_inf_freezes_and_a_zero_keeps() {
    let settings = Settings { history: 3, ..Settings::default() };
    let replay = |variant, amaxes: &[f32]| {
        replay(Delayed::new(variant, settings, 448.0), &find("e4m3fn").unwrap(), amaxes.iter().copied())
    };
    // The Inf of step 1 is in the history of the updates after steps 1, 2 and 3.
    let moments = replay(Variant::Fused, &[1.0, f32::INFINITY, 2.0, 2.0, 2.0, 2.0]);
    let frozen: Vec<bool> = moments.iter().map(|moment| moment.events.contains(&Event::Frozen)).collect();
    assert_eq!(frozen, [false, false, true, true, true, false]);
    assert_eq!(moments[4].scale, 448.0);
    assert_eq!(moments[5].scale, 224.0);
    // A zero enters the history of the single-tensor kernel and not that of the fused one.
    for (variant, scale) in [(Variant::Fused, 224.0), (Variant::Single, 448.0)] {
        let moments = replay(variant, &[2.0, 0.0, 0.0, 1.0, 1.0]);
        assert_eq!(moments[4].scale, scale, "{variant:?}");
        assert_eq!(moments[1].events, [Event::Zero]);
        assert_eq!(moments[1].wanted, None);
    }
    // One step, and a longer history than there are steps.
    assert_eq!(replay(Variant::Jax, &[f32::NAN]).len(), 1);
    let long = Settings { history: 1024, ..Settings::default() };
    let mut state = Delayed::new(Variant::Fused, long, 448.0);
    for amax in [1.0, 4.0, 2.0] {
        state.update(amax);
    }
    assert_eq!(state.scale(), 112.0);
}

#[test]
fn the_spike_dumps_are_told() {
    let (report, code) = run(&["fp8", SPIKE, "--recipe", "delayed", "--history", "8"]);
    assert_eq!(code, 0);
    let rows = report["tensors"].as_array().unwrap();
    let of = |name: &str, event: &str| -> Vec<u64> {
        let has = |row: &&Value| {
            row["recipes"][0]["events"].as_array().into_iter().flatten().any(|found| found["event"] == event)
        };
        let rows = rows.iter().filter(|row| row["name"] == name).filter(has);
        rows.map(|row| row["step"].as_u64().unwrap()).collect()
    };
    assert_eq!(of("h.0.ln_1.weight", "stale"), (9..=16).collect::<Vec<_>>());
    assert_eq!(of("h.0.fc.bias", "frozen"), (13..=20).collect::<Vec<_>>());
    let spike = rows.iter().find(|row| row["name"] == "h.0.ln_1.weight" && row["step"] == 8).unwrap();
    // Every value is a thousand times too large.
    assert_eq!(spike["recipes"][0]["saturated"], spike["elements"]);
    assert_eq!(spike["role"], "gradient");
    assert_eq!(spike["recipes"][0]["format"], "e5m2:tensor");
}

#[test]
fn a_power_of_two_changes_nothing_but_the_scale() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = common::Random(3);
    let values: Vec<f32> = (0..6 * 40).map(|_| random.number(-20..=0) as f32).collect();
    let larger: Vec<f32> = values.iter().map(|x| x * 1024.0).collect();
    let path = npy(folder.path(), "a_weight.npy", "6, 40", &values);
    let scaled = npy(folder.path(), "b_weight.npy", "6, 40", &larger);
    let (report, code) = run(&["fp8", &path, &scaled]);
    assert_eq!(code, 0);
    let rows = &report["tensors"];
    let mut met = 0;
    for (a, b) in rows[0]["recipes"].as_array().unwrap().iter().zip(rows[1]["recipes"].as_array().unwrap()) {
        for figure in ["underflow", "subnormal", "saturated", "sqnr_db", "max_rel"] {
            assert_eq!(a[figure], b[figure], "{figure} of {}", a["recipe"]);
        }
        if let (Some(a), Some(b)) = (a["scale"].as_f64(), b["scale"].as_f64()) {
            assert_eq!(a, 1024.0 * b);
            met += 1;
        }
    }
    assert_eq!(met, 2, "current and delayed have one scale");
}

#[test]
fn odd_tensors_are_cast_as_defined() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (name, shape, values) in [
        ("zero", "3, 5", vec![0.0; 15]),
        ("inf", "2, 40", [vec![f32::INFINITY], vec![1.0; 79]].concat()),
        ("nan", "2, 40", [vec![f32::NAN], vec![1.0; 79]].concat()),
        ("subnormal", "33,", vec![f32::from_bits(77); 33]),
        ("scalar", "", vec![3.0]),
        ("one", "1, 1", vec![-0.3]),
        ("edge", "130, 131", vec![0.5; 130 * 131]),
        ("empty", "0, 7", vec![]),
    ] {
        npy(f, &format!("{name}.npy"), shape, &values);
    }
    let (report, code) = run(&["fp8", f.to_str().unwrap(), "--recipe", "all,current:torchao,delayed:jax"]);
    assert_eq!(code, 0, "{report}");
    let rows = report["tensors"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    let cell = |tensor: &str, recipe: &str| {
        let row = rows.iter().find(|row| row["name"] == tensor).unwrap();
        row["recipes"].as_array().unwrap().iter().find(|cell| cell["recipe"] == recipe).unwrap().clone()
    };
    let number = |value: &Value| value.as_f64().unwrap();
    for row in rows {
        for cell in row["recipes"].as_array().unwrap() {
            assert!(cell["underflow"].is_u64(), "{} {}", row["name"], cell["recipe"]);
        }
    }
    // No amax: scale 1; torchao: 448 / 1e-12. An SQNR of nothing is undefined.
    assert_eq!(number(&cell("zero", "current")["scale"]), 1.0);
    assert_eq!(cell("zero", "current:torchao")["scale_bits"], "0x57cbba10");
    assert!(cell("zero", "current")["sqnr_db"].is_null());
    assert_eq!(number(&cell("inf", "current")["scale"]), 1.0);
    // Transformer Engine's maximum passes over NaN, JAX's and torchao's do not.
    assert_eq!(number(&cell("nan", "current")["scale"]), 448.0);
    assert_eq!(number(&cell("nan", "delayed")["scale"]), 448.0);
    assert_eq!(number(&cell("nan", "delayed:jax")["scale"]), 1.0);
    assert_eq!(cell("nan", "current:torchao")["spoiled"], 79);
    assert_eq!(cell("nan", "mxfp8:rceil")["spoiled"], 31);
    // 448 / 1.08e-43 is beyond f32: the largest f32, and JAX's Inf.
    assert_eq!(cell("subnormal", "current")["scale_bits"], "0x7f7fffff");
    assert_eq!(cell("subnormal", "delayed:jax")["scale"], "inf");
    assert_eq!(cell("scalar", "rowwise")["blocks"], 1);
    assert_eq!(cell("edge", "block-128x128")["blocks"], 4);
    assert_eq!(cell("edge", "rowwise")["blocks"], 130);
    assert_eq!(cell("edge", "mxfp8:floor")["blocks"], 130 * 5);
    assert_eq!(cell("one", "block-128x128")["blocks"], 1);
    assert_eq!(cell("scalar", "current")["blocks"], 1);
    assert_eq!(cell("empty", "current")["blocks"], 0);
}

#[test]
fn values_beside_an_inf_or_nan_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    // One block of 32 with a NaN, and 15 values that go with it; a row alone of 16 whole ones.
    let mut values = vec![1.0; 16];
    let whole = npy(folder.path(), "whole.npy", "16,", &values);
    values[0] = f32::NAN;
    let bad = npy(folder.path(), "bad.npy", "16,", &values);
    let (report, code) = run(&["fp8", &bad, "--recipe", "mxfp8:floor,current"]);
    assert_eq!(code, 0, "{report}");
    let row = &report["recipes"][0];
    assert_eq!(
        (&row["spoiled"], &row["nonzero_finite"], &row["sqnr_db"]),
        (&15.into(), &15.into(), &Value::Null)
    );
    let said =
        "Finite nonzero values come back as NaN, since their block holds an Inf or NaN: mxfp8:floor 15 of 15";
    assert!(report["findings"].to_string().contains(said), "{}", report["findings"]);
    // In the table nothing is said of values that are not there.
    let text = printed(amp_inspect(&["fp8", &bad, "--recipe", "mxfp8:floor,current"]));
    let line = text.lines().find(|line| line.starts_with("mxfp8:floor")).unwrap();
    assert_eq!(line.matches('–').count(), 4, "{text}");
    let picture = folder.path().join("x.svg");
    printed(amp_inspect(&[
        "fp8",
        &bad,
        "--recipe",
        "mxfp8:floor",
        "--save",
        picture.to_str().unwrap(),
        "-q",
    ]));
    let picture = std::fs::read_to_string(&picture).unwrap();
    assert_eq!(picture.lines().filter(|line| *line == "–").count(), 3, "SQNR, underflow, saturated");
    let (report, _) = run(&["fp8", &bad, &whole, "--recipe", "mxfp8:floor"]);
    assert!(report["findings"].to_string().contains("mxfp8:floor 15 of 31"), "{}", report["findings"]);
}

#[test]
fn recipes_are_found_by_name_and_family() {
    let names = |text: &str| -> Vec<&str> {
        amp_inspect::scaler::fp8::find(text).unwrap().iter().map(|recipe| recipe.name).collect()
    };
    assert_eq!(names("mxfp8"), ["mxfp8:floor", "mxfp8:ceil", "mxfp8:even", "mxfp8:rceil"]);
    assert_eq!(names("nvfp4"), ["nvfp4:te", "nvfp4:torchao"]);
    assert_eq!(names("current"), ["current"]);
    assert_eq!(names("delayed:jax"), ["delayed:jax"]);
    assert_eq!(names("all").len(), 11);
    let (error, code) = run(&["fp8", GPT, "--recipe", "nope"]);
    assert_eq!(code, 2);
    assert!(error.as_str().unwrap().contains("no recipe 'nope'"), "{error}");
    // The formats of histogram.
    let (report, _) = run(&["histogram", GPT, "--formats", "e4m3fn@current,e5m2@block-1x128,mxfp8:rceil"]);
    let formats: Vec<&str> =
        report["formats"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert_eq!(formats, ["e4m3fn:tensor", "e5m2:1x128:pow2", "mxfp8_e4m3:rceil"]);
    for (text, why) in [
        ("e4m3fn@delayed", "delayed scaling looks at the steps before"),
        ("e4m3fn@nvfp4:te", "the recipe has one format"),
        ("e4m3fn@x", "no recipe 'x'"),
        ("e9m3@current", "e9m3"),
    ] {
        let (error, code) = run(&["histogram", GPT, "--formats", text]);
        assert!(code == 2 && error.as_str().unwrap().contains(why), "{error}");
    }
}

#[test]
fn roles_are_told_by_name() {
    use amp_inspect::scaler::fp8::{ACTIVATION, GRADIENT, Role, Roles};
    let regex = |text| regex::Regex::new(text).unwrap();
    let roles = Roles { all: None, gradient: regex(GRADIENT), activation: regex(ACTIVATION) };
    for (file, name, role) in [
        ("grads_step01500.safetensors", "h.0.fc.weight", Role::Gradient),
        ("step3.pt", "layers.0.mlp.weight.grad", Role::Gradient),
        ("dump.pt", "Functional.linear.0.backward.output.0", Role::Gradient),
        ("dump.pt", "decoder.main_grad", Role::Gradient),
        ("dump.pt", "wgrad", Role::Gradient),
        ("dump.pt", "Functional.linear.0.forward.output.0", Role::Activation),
        ("activations_step01500.safetensors", "h.0.fc.weight", Role::Activation),
        ("decoder_layers_0_mlp_fc1_activation.pt", "x", Role::Activation),
        ("model.safetensors", "output.weight", Role::Weight),
        ("model.safetensors", "encoder.output.dense.bias", Role::Weight),
        ("upgrade.safetensors", "gradual.weight", Role::Weight),
    ] {
        assert_eq!(roles.of(file, name), role, "{file} {name}");
    }
    let all = Roles { all: Some(Role::Weight), ..roles };
    assert_eq!(all.of("grads.npy", "grad"), Role::Weight);
}

#[test]
fn lines_fit_the_terminal_and_pictures_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    for (number, arguments) in [
        vec!["fp8", GPT],
        vec!["fp8", "testdata/gpt"],
        vec!["fp8", SPIKE, "--recipe", "delayed", "--history", "4"],
        vec!["fp8", "testdata/gpt/h0_fc_weight_grad_step01500.npy"],
        vec!["fp8", "testdata/gradscaler_gpt_interval100.tensors.csv", "--recipe", "delayed,delayed:jax"],
        vec!["recommend", GPT],
        vec!["recommend", "testdata/gpt", "--by", "layer", "--min-sqnr", "60"],
    ]
    .into_iter()
    .enumerate()
    {
        for columns in [80, 120, 200] {
            let mut command = Command::new(BIN);
            command.current_dir(env!("CARGO_MANIFEST_DIR")).env("COLUMNS", columns.to_string());
            command.args(&arguments).arg("--quiet");
            let svg = folder.path().join(format!("{number}.svg"));
            if arguments[0] == "fp8" {
                command.arg("--save").arg(&svg);
            }
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            for line in String::from_utf8(output.stdout).unwrap().lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
    }
}
