//! `simulate-scaler`: what decides an overflow, on recordings of the real frameworks; every refusal; every output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use amp_inspect::format::find as find_format;
use amp_inspect::report::Report;
use amp_inspect::report::number::Num;
use amp_inspect::report::simulate::{Options, Record, SimulateReport};
use amp_inspect::scaler::run::Setup;
use amp_inspect::scaler::schedule::{Gaps, Length, Schedule};
use amp_inspect::scaler::simulate::{inverse, simulate};
use amp_inspect::scaler::suggest::suggest;
use amp_inspect::scaler::trace::{Evidence, FP32_GRADS, Join, SYNTHETICS, Step, Trace, read};
use amp_inspect::scaler::{LooksAt, SCALERS, ScalerSpec, Settings, find};
use common::{amp_inspect, amp_inspect_at, gunzip, names_in, printed, refused};
use serde_json::Value;

const GPT: &str = "testdata/gradscaler_gpt_interval100.csv";

type Rows = Vec<BTreeMap<String, String>>;

fn recording(name: &str) -> Rows {
    rows(&gunzip(&format!("scalers/{name}.csv.gz")))
}

fn rows(csv: &[u8]) -> Rows {
    csv::Reader::from_reader(csv).deserialize().map(|row| row.unwrap()).collect()
}

fn f32_bits(row: &BTreeMap<String, String>, column: &str) -> f32 {
    f32::from_bits(u32::from_str_radix(row[column].trim_start_matches("0x"), 16).unwrap())
}

/// The CSV that a simulation of a trace writes.
fn simulated(folder: &Path, trace: &str, options: &[&str]) -> Rows {
    let path = folder.join("trace.csv");
    std::fs::write(&path, trace).unwrap();
    let arguments = ["simulate-scaler", path.to_str().unwrap(), "--quiet", "--csv"];
    rows(printed(amp_inspect(&[&arguments, options].concat())).as_bytes())
}

#[test]
fn magnitudes_decide_as_float16_does_in_torch() {
    let folder = tempfile::tempdir().unwrap();
    let (mut steps, mut files) = (0, 0);
    for name in names_in("scalers/torch_closed_loop", ".csv.gz") {
        let real = recording(&format!("torch_closed_loop/{name}"));
        let mut trace = "step,grad_amax\n".to_owned();
        for row in &real {
            writeln!(trace, "{},{}", row["step"], f32_bits(row, "true_amax_f32")).unwrap();
        }
        let settings: &[&str] = match name.split("__").next().unwrap() {
            "default" => &[],
            "gi1" => &["--set", "growth_interval=1"],
            "gi20" => &["--set", "growth_interval=20"],
            "nonpow2" => &[
                "--set",
                "growth_interval=5",
                "--set",
                "init_scale=60000",
                "--set",
                "growth_factor=1.3",
                "--set",
                "backoff_factor=0.6",
            ],
            other => panic!("{other}"),
        };
        let ours = simulated(folder.path(), &trace, settings);
        assert_eq!(ours.len(), real.len());
        for (ours, real) in ours.iter().zip(&real) {
            let at = format!("{name}, step {}", real["step"]);
            for column in ["scale_used", "scale_after"] {
                let ours: f32 = ours[column].parse().unwrap();
                assert_eq!(ours.to_bits(), f32_bits(real, &format!("{column}_f32")).to_bits(), "{at}");
            }
            assert_eq!(ours["found_inf"], real["found_inf"], "{at}");
            let true_amax = f32_bits(real, "true_amax_f32");
            assert_eq!(ours["cause"] == "no scale helps", !true_amax.is_finite(), "{at}");
        }
        steps += real.len();
        files += 1;
    }
    assert_eq!((files, steps), (20, 5940));
}

#[test]
fn the_inverse_of_a_scale_is_that_of_torch_and_paddle() {
    let same = |ours: f32, theirs: f64| f64::from(ours) == theirs || ours.is_nan() && theirs.is_nan();
    let (mut rows, mut corrupt) = (0, 0);
    for row in recording("torch/unscale_values") {
        let scale = f64::from(f32_bits(&row, "scale_f32"));
        assert_eq!(inverse(scale).to_bits(), f32_bits(&row, "inv_scale_f32").to_bits());
        let unscaled: f64 = row["unscaled_grad"].parse().unwrap();
        if row["grad_dtype"] == "float32" && row["found_inf"] == "0" {
            let scaled = row["scaled_grad"].parse::<f64>().unwrap() as f32;
            assert!(same(scaled * inverse(scale), unscaled), "{row:?}");
        }
        corrupt += u32::from(row["found_inf"] == "0" && !unscaled.is_finite());
        rows += 1;
    }
    assert_eq!((rows, corrupt), (528, 127));
    // Paddle's kernels take subnormals for zero on the CPU.
    let flush = |x: f32| if x.is_subnormal() { 0.0 } else { x };
    for row in recording("paddle_dygraph/unscale_values").iter().filter(|row| row["found_inf"] == "0") {
        let scale = f64::from(flush(f32_bits(row, "scale_f32")));
        let scaled: f32 = row["scaled_grad_f32"].parse().unwrap();
        let product = flush(flush(scaled) * flush(inverse(scale)));
        assert!(same(product, row["unscaled_grad"].parse().unwrap()), "{row:?}");
    }
}

#[test]
fn the_gradient_that_deepspeed_applies_is_the_recorded_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = 0;
    for name in names_in("scalers/deepspeed_real_step", ".csv.gz") {
        let real = recording(&format!("deepspeed_real_step/{name}"));
        let mut trace = "step,found_inf,grad_norm\n".to_owned();
        for row in &real {
            writeln!(trace, "{},{},{}", row["step"], row["found_inf"], row["true_grad"]).unwrap();
        }
        let mut options = vec!["--scaler", "deepspeed-stage0", "--set", "scale_window=5"];
        let clipped = name.contains("_clip_");
        options.extend(clipped.then_some(["--clip", "1e-5"]).into_iter().flatten());
        for (ours, real) in simulated(folder.path(), &trace, &options).iter().zip(&real) {
            assert_eq!(
                ours["scale_used"].parse::<f64>().unwrap(),
                real["scale_used"].parse::<f64>().unwrap()
            );
            let Ok(applied) = real["effective_grad"].parse::<f64>() else {
                assert!(!ours["event"].is_empty(), "{name} {}", real["step"]);
                continue;
            };
            let factor: f64 = ours["gradient_factor"].parse().unwrap();
            if clipped {
                // The norm is clipped to 1e-5, to the 1e-6 that is added to it.
                assert!((applied - 1e-5).abs() < 1e-6 && factor == 1.0);
            } else {
                let true_grad: f64 = real["true_grad"].parse().unwrap();
                assert_eq!(applied, true_grad * factor, "{name} {}", real["step"]);
                wrong += u32::from(factor == 0.5);
            }
        }
    }
    assert!(wrong >= 4, "{wrong}");
}

#[test]
fn a_file_of_tensors_names_the_one_at_fault() {
    let tensors = GPT.replace(".csv", ".tensors.csv");
    let arguments = ["simulate-scaler", GPT, &tensors, "-q", "--set", "growth_interval=100", "--json"];
    let report: Value = serde_json::from_str(&printed(amp_inspect(&arguments))).unwrap();
    let run = &report["scalers"][0];
    assert_eq!(run["skipped"], 10);
    let events = run["events"].as_array().unwrap();
    let skips: Vec<&Value> = events.iter().filter(|event| event["found_inf"] == true).collect();
    assert_eq!(skips.len(), 10);
    assert!(skips.iter().all(|event| event["tensor"].is_string() && event["cause"] == "recorded"));
    assert!(report["record"]["fp32_grads"].as_array().unwrap().contains(&"wte.weight".into()));
}

#[test]
fn dumps_are_a_record_too() {
    let output = amp_inspect(&[
        "simulate-scaler",
        "testdata/gpt/[gh]*",
        "-q",
        "--suggest",
        "--json",
        "--gaps",
        "skip",
    ]);
    let report: Value = serde_json::from_str(&printed(output)).unwrap();
    assert_eq!(report["record"]["steps"], 3);
    // lm_head.weight at step 0: 0.371·2^17 < 65520 ≤ 0.371·2^18, as the histogram command has it.
    assert_eq!(report["suggestion"]["largest_log2"], 17);
    assert_eq!(report["suggestion"]["smallest_log2"], 16);
    // Scaled dumps are divided first: the same suggestion, shifted.
    let unscaled = ["simulate-scaler", "testdata/gpt/[gh]*", "-q", "--suggest", "--json", "--unscale", "2^4"];
    let report: Value = serde_json::from_str(&printed(amp_inspect(&unscaled))).unwrap();
    assert_eq!(report["suggestion"]["largest_log2"], 21);
    assert_eq!(report["suggestion"]["smallest_log2"], 20);
}

#[test]
fn scaled_dumps_are_divided_by_the_scale_they_record() {
    let folder = tempfile::tempdir().unwrap();
    let write = |step: u32, facts: &str, values: [f32; 2]| {
        let header = format!(
            r#"{{"__metadata__":{{"step":"{step}"{facts}}},"w":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}}}"#
        );
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        std::fs::write(folder.path().join(format!("{step}.safetensors")), bytes).unwrap();
    };
    let run = || {
        let path = folder.path().to_str().unwrap();
        amp_inspect(&["simulate-scaler", path, "--unscale", "recorded", "--suggest", "--json", "-q"])
    };
    write(3, r#","loss_scale":"1024""#, [512.0, 1.0]);
    write(4, r#","loss_scale":"4096.0""#, [-512.0, 1.0]);
    // 0.5·2^16 fits, 0.5·2^17 does not; at step 4 it is an eighth.
    let report: Value = serde_json::from_str(&printed(run())).unwrap();
    assert_eq!(report["suggestion"]["largest_log2"], 16);
    assert!(!report["notices"].to_string().contains("--unscale"), "{}", report["notices"]);
    // An Inf says that 4096 was too much.
    write(4, r#","loss_scale":"4096.0""#, [f32::INFINITY, 1.0]);
    let report: Value = serde_json::from_str(&printed(run())).unwrap();
    assert_eq!(report["suggestion"]["largest_log2"], 11);
    assert_eq!(report["record"]["nonfinite"], 0);
    write(5, "", [1.0, 1.0]);
    let output = run();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.ends_with("5.safetensors: does not record its loss scale: its metadata has no loss_scale\n"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn json_lines_say_the_same_as_csv() {
    let folder = tempfile::tempdir().unwrap();
    let csv = "step,found_inf,scale,amax:a,amax:b\n3,0,65536,0.5,0.25\n4,1,65536,2,0.5\n6,0,32768,inf,0.5\n";
    let lines = concat!(
        "{\"step\":3,\"found_inf\":false,\"scale\":65536,\"amax\":{\"a\":0.5,\"b\":0.25}}\n\n",
        "{\"amax\":{\"a\":2,\"b\":0.5},\"step\":4,\"found_inf\":true,\"scale\":65536}\n",
        "{\"step\":6,\"found_inf\":0,\"scale\":32768,\"amax\":{\"a\":\"inf\",\"b\":0.5}}\n"
    );
    let run = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        printed(amp_inspect(&["simulate-scaler", path.to_str().unwrap(), "-q", "--csv", "--all"]))
    };
    assert_eq!(run("a.csv", csv), run("a.jsonl", lines));
    assert_eq!(run("a.csv", csv), run("a.tsv", &csv.replace(',', "\t")));
    // A row for each tensor of a step, too.
    let long = "step,tensor,amax,found_inf,scale\n3,a,0.5,0,65536\n3,b,0.25,0,65536\n4,a,2,1,65536\n4,b,0.5,1,65536\n\
                6,a,inf,0,32768\n6,b,0.5,0,32768\n";
    assert_eq!(run("a.csv", csv), run("b.csv", long));
}

#[test]
fn of_two_traces_of_a_step_the_larger_gradient_counts() {
    let folder = tempfile::tempdir().unwrap();
    // float16 holds 0.5 · 2^16 and not 2 · 2^16.
    for (small, large, tensor) in [
        ("grad_amax", "grad_amax", ""),
        ("amax:a", "amax:b", "b"),
        ("amax:a", "amax:a", "a"),
        ("grad_amax", "amax:b", "b"),
    ] {
        let write = |name: &str, head: &str, amax: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("step,{head}\n0,{amax}\n")).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (small, large) = (write("small.csv", small, "0.5"), write("large.csv", large, "2"));
        for paths in [[&small, &large], [&large, &small]] {
            let arguments = ["simulate-scaler", paths[0], paths[1], "-q", "--csv"];
            let step = rows(printed(amp_inspect(&arguments)).as_bytes()).remove(0);
            assert_eq!((&*step["cause"], &*step["tensor"]), ("scale too high", tensor), "{paths:?}");
        }
    }
}

/// A trace that must be refused, and the sentence after its path.
const REFUSED: &[(&str, &[&str], &str)] = &[
    ("", &[], "is empty: there is no step to simulate"),
    ("step,found_inf\n3,0\0", &[], "is binary; a trace is text in UTF-8"),
    ("[{\"step\": 3}]", &[], "is a JSON array; a trace in JSON has one object a line"),
    ("step,found_inf\n", &[], "has a head but no row: there is no step to simulate"),
    ("step,found_inf\n3,0\n3,1\n", &[], "line 3: step 3 is there twice"),
    ("step,found_inf\n3,0\n2,1\n", &[], "line 3: step 2 follows step 3; steps must ascend"),
    ("step,found_inf\n3,2\n", &[], "line 2, column 'found_inf': a flag is 0 or 1, not 2"),
    ("step,found_inf\n-3,0\n", &[], "line 2, column 'step': a step is a whole number from 0 to 9e15, not -3"),
    ("step,found_inf,scale\n3,0,-1\n", &[], "line 2, column 'scale': a scale is a number from 0 on, not -1"),
    (
        "step,grad_amax\n3,-0.5\n",
        &[],
        "line 2, column 'grad_amax': a magnitude is a number from 0 on, not -0.5",
    ),
    ("step,grad_amax\n3,big\n", &[], "line 2, column 'grad_amax': 'big' is no number"),
    ("step,grad_amax\n3\n", &[], "line 2: the head has 2 fields, this line 1"),
    (
        "step,loss\n3,1\n",
        &[],
        "no column says whether a step overflows (found_inf, grad_amax, amax:TENSOR, …); the columns are step, loss, and \
         --column grad_amax=NAME names one",
    ),
    (
        "step,scaled_amax\n3,1\n",
        &[],
        "the largest scaled gradient is of use only with the scale in force, for which there is no column; --column \
         scale=NAME names one",
    ),
    (
        "tensor,amax\na,1\n",
        &[],
        "a row for each tensor takes a column for the step; --column step=NAME names one",
    ),
    ("step,tensor,amax\n4,a,1\n3,a,1\n4,a,1\n", &[], "line 4: step 3 follows step 4; steps must ascend"),
    (
        "step,found_inf,overflow\n3,1,0\n",
        &[],
        "the columns 'found_inf' and 'overflow' both say found_inf; --column found_inf=NAME chooses one",
    ),
    (
        "step,gmax\n3,1\n",
        &["--column", "grad_amax=gmx"],
        "--column: there is no column 'gmx'; the columns are step, gmax",
    ),
    (
        "step,gmax\n3,1\n",
        &["--column", "amaximum=gmax"],
        "--column: there is no role 'amaximum'; the roles are step, found_inf, scale, grad_amax, scaled_amax, nonfinite, \
         grad_norm, tensor, tensor_amax, tensor_nonfinite",
    ),
    ("step,gmax\n3,1\n", &["--column", "gmax"], "--column takes ROLE=NAME, not 'gmax'"),
];

#[test]
fn a_bad_trace_gets_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.csv");
    let path = path.to_str().unwrap();
    for (text, options, sentence) in REFUSED {
        std::fs::write(path, text).unwrap();
        let arguments = [&["simulate-scaler", path], *options].concat();
        refused(&arguments, &format!("{path}: {sentence}"));
    }
    std::fs::write(path, "{\"step\": 1, \"found_inf\": 0}\n{\"step\": 2").unwrap();
    let output = amp_inspect(&["simulate-scaler", path]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("line 2 is no JSON object: EOF while parsing"), "{said}");
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.csv");
    let tensors = std::fs::read_to_string(GPT.replace(".csv", ".tensors.csv")).unwrap();
    let head: String = tensors.lines().take(3).map(|line| format!("{line}\n")).collect();
    let json = "{\"step\":3,\"found_inf\":false,\"amax\":{\"a\":0.5}}\n{\"step\":4,\"found_inf\":true}\n";
    let mut random = common::Random(6);
    let float16 = find_format("float16").unwrap();
    let all = regex::Regex::new(FP32_GRADS).unwrap();
    let mut tried = 0;
    for text in [&head[..], json, "step,found_inf,scale\n0,1,65536\n1,0,32768\n"] {
        for cut in 0..text.len().min(2000) {
            let mut bytes = text.as_bytes()[..if cut % 2 == 0 { cut } else { text.len() }].to_vec();
            if cut % 2 == 1 {
                for _ in 0..3 {
                    let at = (random.bits() % bytes.len() as u64) as usize;
                    bytes[at] = random.bits() as u8;
                }
            }
            std::fs::write(&path, &bytes).unwrap();
            let mut join = Join::new(float16, all.clone(), Evidence::All);
            if read(&path, &[], &mut join).is_ok() {
                let (trace, _) = join.finish();
                let schedule = Schedule::new(&trace, Gaps::Skip, Length::Passes(1)).unwrap();
                let spec = find("torch").unwrap();
                let setup = Setup { spec, settings: Settings::defaults(spec) };
                simulate(&trace, &schedule, &setup, None, |_| {});
            }
            tried += 1;
        }
    }
    assert!(tried > 2000, "{tried}");
}

#[test]
fn a_bad_setting_gets_one_sentence() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["--set", "growth_factor=1"],
            "torch: growth_factor must be above 1, or the framework refuses it; got '1'",
        ),
        (
            &["--set", "backoff_factor=1"],
            "torch: backoff_factor must be from 0 to below 1, or the framework refuses it; got '1'",
        ),
        (&["--set", "init_scale=-2"], "torch: init_scale must be a number that is not negative; got '-2'"),
        (&["--set", "init_scale=nan"], "torch: init_scale must be a number that is not negative; got 'nan'"),
        (
            &["--scaler", "deepspeed", "--set", "scale_window=0"],
            "deepspeed: scale_window must be a whole number from 1 on, or the framework fails; got '0'",
        ),
        // Megatron-core asserts both in its constructor.
        (
            &["--scaler", "megatron", "--set", "growth_interval=0"],
            "megatron: growth_interval must be a whole number from 1 on, or the framework fails; got '0'",
        ),
        (
            &["--scaler", "megatron", "--set", "initial_scale=0"],
            "megatron: initial_scale must be a positive number; got '0'",
        ),
        (
            &["--scaler", "torch,flax", "--set", "window=5"],
            "--set: no parameter 'window' of torch, flax; --list shows the parameters of each scaler",
        ),
        (
            &["--scaler", "torch,keras", "--set", "keras.growth_interval=5"],
            "--set: keras has no parameter 'growth_interval'; it has initial_scale, dynamic_growth_steps",
        ),
        (&["--set", "flax.scale=5"], "--set: flax is not among the scalers that are simulated"),
        (&["--set", "growth_interval"], "--set takes KEY=VALUE, not 'growth_interval'"),
        (
            &["--scaler", "openseq2seq-logmax", "--evidence", "flags"],
            "openseq2seq-logmax looks at the largest gradient of each step, which the record does not have",
        ),
    ];
    for (options, sentence) in cases {
        refused(&[&["simulate-scaler", GPT], *options].concat(), sentence);
    }
    // The framework takes these, so they are simulated: torch never grows with an interval of 0.
    printed(amp_inspect(&[
        "simulate-scaler",
        GPT,
        "-q",
        "--set",
        "growth_interval=0",
        "--set",
        "init_scale=0",
    ]));
}

#[test]
fn bad_input_is_refused() {
    refused(&["simulate-scaler", "no.csv"], "no.csv: cannot open the file: no such file or directory");
    refused(
        &["simulate-scaler", GPT, "testdata/gpt"],
        "traces (.csv, .tsv, .jsonl, TensorBoard) and dumps are not read together",
    );
    refused(
        &[
            "simulate-scaler",
            "testdata/gpt/h0_fc_weight_grad_step01500.npy",
            "--gaps",
            "refuse",
            "--tensor",
            "nope",
        ],
        "no tensor is left to read: check --tensor and --exclude",
    );
    refused(
        &["simulate-scaler", "testdata/gpt/[gh]*", "--gaps", "refuse"],
        "1498 steps are missing, the first after step 0; --gaps hold or skip goes on without them",
    );
    refused(
        &["simulate-scaler", "testdata/cnn", "--evidence", "flags"],
        "with --evidence flags nothing in the record says whether a step overflows",
    );
    refused(
        &["simulate-scaler", GPT, "--evidence", "flags", "--suggest"],
        "--suggest needs finite gradients that are not all zero: grad_amax, amax:TENSOR or dumps",
    );
    // An option without effect is no option that is ignored.
    refused(&["simulate-scaler", GPT, "--unscale", "65536"], "--unscale is for dumps, not for traces");
    refused(&["simulate-scaler", GPT, "--tensor", "wte"], "--tensor is for dumps, not for traces");
    refused(
        &["simulate-scaler", "testdata/gpt", "--column", "grad_amax=g"],
        "--column is for traces, not for dumps",
    );
    refused(&["simulate-scaler", "--ranks", "0"], "--ranks is for dumps, of which no path is given");
    refused(
        &["simulate-scaler", "--steps", "0..500"],
        "--steps 0..500: of a made-up record it is their number, from 1 to 1000000",
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("far.csv");
    std::fs::write(&path, "step,found_inf\n0,0\n8000000000000000,0\n").unwrap();
    let path = path.to_str().unwrap();
    refused(
        &["simulate-scaler", path],
        "there are 8000000000000001 steps to simulate, more than the 10000000 that are done; --gaps skip leaves the \
         missing ones out",
    );
    printed(amp_inspect(&["simulate-scaler", path, "-q", "--gaps", "skip"]));
    let endless = folder.path().join("endless.csv");
    std::fs::write(&endless, "step,found_inf\n0,".to_owned() + &"1".repeat(20_000_000)).unwrap();
    let endless = endless.to_str().unwrap();
    let sentence = "cannot read the file: a line is longer than the 16777216 bytes that are read";
    refused(&["simulate-scaler", endless], &format!("{endless}: {sentence}"));
    let unknown = amp_inspect(&["simulate-scaler", GPT, "--scaler", "deepspeed@1"]);
    assert_eq!(unknown.status.code(), Some(2));
    for unknown in [unknown, amp_inspect(&["simulate-scaler", GPT, "--scaler", "deepseed"])] {
        let said = String::from_utf8(unknown.stderr).unwrap();
        assert!(said.contains("there are deepspeed, deepspeed@<=0.17.0, deepspeed-stage0"), "{said}");
    }
}

#[test]
fn a_scaler_that_aborts_stops_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("allinf.csv");
    let steps: String = (0..1200).map(|step| format!("{step},1\n")).collect();
    std::fs::write(&path, format!("step,found_inf\n{steps}")).unwrap();
    let scalers = "torch,deepspeed,apex,fairseq,mindspore-manager";
    let arguments = ["simulate-scaler", path.to_str().unwrap(), "-q", "--scaler", scalers, "--json"];
    let report: Value = serde_json::from_str(&printed(amp_inspect(&arguments))).unwrap();
    let stops: Vec<Option<u64>> =
        (0..5).map(|index| report["scalers"][index]["abort"]["step"].as_u64()).collect();
    // Counted from 0: the 18th overflow, the one after the 1091st, the 21st, the 1001st.
    assert_eq!(stops, [None, Some(17), Some(1091), Some(20), Some(1000)]);
    assert_eq!(report["scalers"][0]["last_scale"], 0.0);
    // Torch's scale is 0 after 166 overflows.
    let at_floor = report["scalers"][0]["at_floor"].as_u64().unwrap();
    assert_eq!(at_floor, 1200 - 166);
}

#[test]
fn sentences_claim_no_more_than_the_record_shows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.csv");
    let findings = |trace: &str, options: &[&str]| -> Vec<String> {
        std::fs::write(&path, trace).unwrap();
        let arguments = ["simulate-scaler", path.to_str().unwrap(), "-q", "--json"];
        let report = printed(amp_inspect(&[&arguments, options].concat()));
        let report: Value = serde_json::from_str(&report).unwrap();
        report["findings"].as_array().unwrap().iter().map(|said| said.as_str().unwrap().to_owned()).collect()
    };
    let clean = "step,found_inf\n0,0\n1,0\n2,0\n";
    assert_eq!(findings(clean, &[]), ["torch skips nothing, and the scale never changes."]);
    let short = "step,found_inf\n0,1\n1,1\n2,0\n";
    let said =
        "torch skips 2 of 3 steps and has no 10 applied ones in a row: it does not settle in this record.";
    assert_eq!(findings(short, &[]), [said]);
    let apart = ["--scaler", "torch,megatron,keras,apex"];
    let said = findings(clean, &apart);
    assert_eq!(said[4], "torch starts from another scale than megatron and 1 more.");
    assert_eq!(said[5..], ["torch and apex use the same scale at every step."]);
    let endless = ["simulate-scaler", "--synthetic", "level-shift", "--seed", "7", "--until-steady", "-q"];
    let said = printed(amp_inspect_at(200, &[&endless, &["--scaler", "paddle-static"][..]].concat()));
    assert!(said.contains("None of the states that it ends the record in comes back."), "{said}");
}

#[test]
fn updates_that_the_test_does_not_see_are_told() {
    // 144 overflows take torch's scale from 2^16 to 2^-128, where 1/scale is Inf in float32.
    let folder = tempfile::tempdir().unwrap();
    let run = |overflows: u64, scaler: &str| {
        let path = folder.path().join("run.csv");
        let rows: String =
            (0..overflows + 10).map(|step| format!("{step},{}\n", u8::from(step < overflows))).collect();
        std::fs::write(&path, format!("step,found_inf\n{rows}")).unwrap();
        let arguments = ["simulate-scaler", path.to_str().unwrap(), "-q", "--scaler", scaler, "--json"];
        let report: Value = serde_json::from_str(&printed(amp_inspect(&arguments))).unwrap();
        let run = &report["scalers"][0];
        (run["corrupt"].as_u64().unwrap(), run["applied_nonfinite"].as_u64().unwrap())
    };
    assert_eq!(run(143, "torch"), (0, 0));
    assert_eq!(run(144, "torch"), (10, 0));
    // Keras divides: it goes wrong at a scale of 0, which XLA makes of a subnormal one.
    assert_eq!(run(141, "keras"), (0, 0));
    assert_eq!(run(142, "keras"), (10, 0));
    // Flax sees 0/0 and skips.
    assert_eq!(run(200, "flax"), (0, 0));
    assert_eq!(run(3, "apex-static"), (0, 3));
}

#[test]
fn a_hard_ceiling_gives_the_periods_of_the_rules() {
    // A scale above 2^12 overflows. By hand: the clean steps until growth, then the overflows until the scale is
    // back. MXNet's decisions come a step late: two overflows, halved twice, then 1 + 2000 + 2000 clean steps.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ceiling.csv");
    std::fs::write(&path, "step,grad_amax\n0,15.996\n").unwrap();
    let run = |scaler: &str, option: &[&str]| {
        let arguments = ["simulate-scaler", path.to_str().unwrap(), "-q", "--scaler", scaler, "--json"];
        let report: Value =
            serde_json::from_str(&printed(amp_inspect(&[&arguments, option].concat()))).unwrap();
        report["scalers"][0].clone()
    };
    for (scaler, clean, overflows) in [
        ("torch", 2000, 1),
        ("keras", 2000, 1),
        ("flax", 2001, 1),
        ("cerebras", 2001, 1),
        ("megatron", 1000, 2),
        ("colossalai", 1000, 2),
        ("deepspeed", 1001, 2),
        ("deepspeed@<=0.17.0", 1000, 2),
        ("deepspeed-stage0", 1001, 1),
        ("nemo", 2000, 2),
        ("mxnet", 4001, 2),
    ] {
        let steady = &run(scaler, &["--until-steady"])["steady_state"];
        let found = (steady["steps"].as_u64(), steady["skipped"].as_u64());
        assert_eq!(found, (Some(clean + overflows), Some(overflows)), "{scaler}");
    }
    // From an independent model over 100,000 steps.
    for (scaler, mean_log2) in [("mxnet", 11.50), ("chainer", 11.50)] {
        let mean = run(scaler, &["--repeat", "100000"])["mean_log2_scale"].as_f64().unwrap();
        assert_eq!((100.0 * mean).round() / 100.0, mean_log2, "{scaler}");
    }
    assert_eq!(run("metaseq", &["--repeat", "100000"])["skipped"], 0);
}

#[test]
fn every_scaler_runs_and_every_output_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments =
        vec!["simulate-scaler".to_owned(), GPT.to_owned(), "--scaler".into(), "all".into(), "-q".into()];
    for kind in ["json", "csv", "md", "png", "svg"] {
        arguments
            .extend(["--save".to_owned(), folder.path().join(format!("x.{kind}")).display().to_string()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let text = printed(amp_inspect_at(200, &arguments));
    // The traces do not have what als counts.
    let simulated = || SCALERS.iter().filter(|spec| spec.looks_at != LooksAt::Counts);
    for spec in simulated() {
        assert!(text.contains(spec.name), "{}", spec.name);
    }
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let report: Value = serde_json::from_slice(&read("x.json")).unwrap();
    assert_eq!(report["scalers"].as_array().unwrap().len(), simulated().count());
    assert_eq!(rows(&read("x.csv")).len(), 1500 * simulated().count());
    roxmltree::Document::parse(std::str::from_utf8(&read("x.svg")).unwrap()).unwrap();
    for output in [text.into_bytes(), read("x.md"), read("x.svg"), read("x.json")] {
        let said = String::from_utf8(output).unwrap().replace(['\n', ' '], "");
        assert_eq!(said.matches("givealowerboundonskips").count(), 1);
    }
}

/// The report of a trace through some scalers, with nothing set.
fn report(trace: &Trace, scalers: &[&ScalerSpec], length: Length) -> SimulateReport {
    let schedule = Schedule::new(trace, Gaps::Hold, length).unwrap();
    let run = |spec: &&'static ScalerSpec| {
        let settings = Settings::defaults(spec);
        simulate(trace, &schedule, &Setup { spec, settings }, None, |_| {})
    };
    let runs = scalers.iter().map(|spec| run(&find(spec.name).unwrap())).collect();
    let options = Options {
        format: "float16".into(),
        gaps: "hold",
        repeat: Some(1),
        evidence: "all",
        fp32_grads: String::new(),
        unscale: Some(Num(1.0)),
        clip: None,
        all_steps: false,
    };
    let record = Record { inputs: vec!["run/".repeat(80)], ..Record::default() };
    let suggestion = suggest(trace, &schedule).unwrap();
    let suggestion = trace.steps.len().is_multiple_of(2).then_some(suggestion);
    SimulateReport::new(options, record, trace.clone(), schedule, runs, suggestion)
}

#[test]
fn no_text_of_the_picture_overlaps_another_or_leaves_it() {
    let all: Vec<&ScalerSpec> = SCALERS.iter().collect();
    let float16 = find_format("float16").unwrap();
    let mut steep = Trace::new(float16);
    steep.steps = (0..3).map(|number| Step { nonfinite: Some(None), ..Step::new(number) }).collect();
    let mut reports =
        vec![report(&steep, &all[..1], Length::Passes(1)), report(&steep, &all[5..12], Length::Passes(500))];
    for (_, kind, _) in SYNTHETICS {
        for steps in [1, 2, 5000, 6001] {
            let trace = kind.trace(steps, 1, float16);
            reports.push(report(&trace, &all, Length::Passes(1)));
            reports.push(report(&trace, &all[..3], Length::Passes(1)));
        }
    }
    for report in reports {
        let picture = report.picture().unwrap();
        let (width, height) = picture.size();
        let texts: Vec<_> =
            picture.items().iter().filter_map(|item| Some((item, item.text_bounds()?))).collect();
        for (index, (item, [left, top, right, bottom])) in texts.iter().enumerate() {
            assert!(*left >= 0.0 && *top >= 0.0, "{item:?}");
            assert!(*right <= width.into() && *bottom <= height.into(), "{item:?}");
            for (other, [l, t, r, b]) in &texts[..index] {
                assert!(right <= l || r <= left || bottom <= t || b <= top, "{item:?} on {other:?}");
            }
        }
    }
}

#[test]
fn lines_fit_the_terminal() {
    for columns in [80, 120, 200] {
        for arguments in [
            &["simulate-scaler", GPT, "-q", "--scaler", "torch,deepspeed,megatron"][..],
            &["simulate-scaler", GPT, "-q", "--scaler", "all", "--suggest", "--clip", "1"],
            &["simulate-scaler", "testdata/gpt", "-q", "--suggest"],
            &["simulate-scaler", "--synthetic", "nan-burst", "--until-steady"],
            &["simulate-scaler", "--list"],
        ] {
            for line in printed(amp_inspect_at(columns, arguments)).lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
    }
}

#[test]
fn a_long_table_is_cut_at_the_rows_that_were_asked_for() {
    // Of 34 scalers a line each, below each other: one step is shown, however many lines it takes.
    let text = printed(amp_inspect_at(80, &["simulate-scaler", "-q", "--scaler", "all", "--top", "6"]));
    let rows = text.split_once("next scale and event").unwrap().1.split_once("… ").unwrap().0;
    let steps: Vec<_> = rows.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert!(steps.len() > 6 && steps.iter().all(|step| *step == "0"), "{rows}");
    let text = printed(amp_inspect_at(80, &["simulate-scaler", "-q", "--scaler", "all", "--top", "70"]));
    let rows = text.split_once("next scale and event").unwrap().1.split_once("… ").unwrap().0;
    assert!((60..=71).contains(&rows.lines().count()), "{}", rows.lines().count());
}

/// The trace in an event file, and what is said of it.
fn events(name: &str) -> Result<(Trace, Vec<String>), String> {
    let format = find_format("float16").unwrap();
    let mut join = Join::new(format, regex::Regex::new(FP32_GRADS).unwrap(), Evidence::All);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/events").join(name);
    let notices = read(&path, &[], &mut join).map_err(|error| error.to_string())?;
    Ok((join.finish().0, notices))
}

#[test]
fn event_files_say_what_the_table_says() {
    let folder = tempfile::tempdir().unwrap();
    let table = std::fs::read_to_string("testdata/gradscaler_gpt_init2e24_interval20.csv").unwrap();
    let mut trace = "step,scale,found_inf,grad_amax\n".to_owned();
    for row in rows(table.as_bytes()).iter().take(300) {
        let amax: f32 = row["grad_amax_fp32"].parse().unwrap();
        writeln!(trace, "{},{},{},{}", row["step"], row["scale"], row["found_inf"], f64::from(amax)).unwrap();
    }
    let of_table = simulated(folder.path(), &trace, &["--scaler", "torch,megatron"]);
    let path = "testdata/events/gpt_init2e24";
    let arguments = ["simulate-scaler", path, "--quiet", "--csv", "--scaler", "torch,megatron"];
    assert!(rows(printed(amp_inspect(&arguments)).as_bytes()) == of_table);
}

#[test]
fn event_files_of_other_writers() {
    let run = "run1/events.out.tfevents.1700000000.host";
    let (trace, notices) = events(run).unwrap();
    let numbers: Vec<u64> = trace.steps.iter().map(|step| step.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 1 << 40]);
    assert_eq!((trace.steps[3].low.amax, trace.steps[5].norm), (1.0, f64::from(1e38_f32)));
    assert_eq!(trace.tensors, ["grads/layer0"]);
    assert!(notices[1] == "columns not used: loss", "{notices:?}");

    let (cut, notices) = events("trunc/events.out.tfevents.1").unwrap();
    assert!(cut.steps.len() + 1 >= trace.steps.len());
    assert!(
        notices[0].starts_with("the last record, at byte ")
            && notices[0].ends_with(" is cut off and left out")
    );
    let damaged = events("crc/events.out.tfevents.1").unwrap_err();
    assert!(damaged.contains("events.out.tfevents.1: byte ") && damaged.contains("checksum"), "{damaged}");
    let hostile = events("hugelen/events.out.tfevents.1").unwrap_err();
    assert!(hostile.contains("events.out.tfevents.1: "), "{hostile}");

    // Cut anywhere, and any byte flipped: a sentence or the records before.
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(format!("testdata/events/{run}")).unwrap();
    let path = folder.path().join("events.out.tfevents.1");
    for at in (0..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        for bytes in [&whole[..at], &flipped] {
            std::fs::write(&path, bytes).unwrap();
            let _ = events(path.to_str().unwrap());
        }
    }
}
