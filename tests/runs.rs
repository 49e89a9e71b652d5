//! Directories of steps and ranks: told by paths, selected, merged, shown step by step.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use amp_inspect::source::{Layout, Place};
use serde_json::Value;

mod common;
use common::{amp_inspect, printed, refused, testdata};

fn place(path: &str) -> (Option<u64>, Option<u64>, String) {
    let Place { step, rank, group } = Place::of(Path::new(path));
    (step, rank, group)
}

#[test]
fn paths_of_the_tools_are_understood() {
    // Each layout is that of a tool's public source or of a user's script.
    let layouts: [(&str, Option<u64>, Option<u64>, &str); 16] = [
        ("run/grads_step00100.safetensors", Some(100), None, "grads"),
        ("step3/rank0/w.npy", Some(3), Some(0), "w"),
        ("ckpt/iter_0000005/mp_rank_01_002/model_optim_rng.pt", Some(5), Some(1), "model_optim_rng"),
        ("d/grad_mlp.weight.rank7.npy", None, Some(7), "grad_mlp.weight"),
        (
            "step0/rank1/dump_tensor_data/Functional.linear.0.forward.input.0.pt",
            Some(0),
            Some(1),
            "Functional.linear.0.forward.input.0",
        ),
        (
            "tensor_dumps/rank_2/iter_000100/decoder_layers_0_mlp_fc1_activation.pt",
            Some(100),
            Some(2),
            "decoder_layers_0_mlp_fc1_activation",
        ),
        (
            "d/step=3___rank=1___dump_index=12___name=layer_start___layer_id=2.pt",
            Some(3),
            Some(1),
            "layer_start.2",
        ),
        ("TP0_PP0_Rank4_pid123/Pass00017.pt", Some(17), Some(4), ""),
        (
            "rank1/step_000020/model.layers.0.mlp.weight.grad.npy",
            Some(20),
            Some(1),
            "model.layers.0.mlp.weight.grad",
        ),
        ("my_tensor_gpu3_amax.bin", None, Some(3), "my_tensor_amax"),
        ("global_step40/worker2/x.npz", Some(40), Some(2), "x"),
        ("checkpoint-1500/model.safetensors.index.json", Some(1500), None, "model"),
        ("checkpoint_step01500.pt", Some(1500), None, "checkpoint"),
        ("first_step/ranking3/footstep4.npy", None, None, "footstep4"),
        ("step12b/rank.npy", None, None, "rank"),
        ("Step-99999999999999999999/x.npy", None, None, "x"),
    ];
    for (path, step, rank, group) in layouts {
        assert_eq!(place(path), (step, rank, group.to_owned()), "{path}");
    }
}

#[test]
fn templates_say_where_step_rank_and_name_are() {
    let place = |template: &str, path: &str| Layout::parse(template).unwrap().place(Path::new(path));
    let found = place("{step}/r{rank}/{name}.npy", "/run7/0012/r3/a.b.npy").unwrap();
    assert_eq!((found.step, found.rank, &*found.group), (Some(12), Some(3), "a.b"));
    let found = place("*_{step}.*", "x/grads_5.npz").unwrap();
    assert_eq!((found.step, found.rank, &*found.group), (Some(5), None, "grads_5"));
    assert_eq!(place("{step}/{name}.npy", "x/y.npy"), None);
    assert_eq!(place("s{step}.npy", "steps5.npy"), None);
    let error = |text| Layout::parse(text).unwrap_err().to_string();
    assert_eq!(error("{step"), "a brace is not closed");
    let words = "the words in braces are {step}, {rank} and {name}, each once";
    assert_eq!(error("{epoch}/{name}.npy"), words);
    assert_eq!(error("{step}/{step}.npy"), words);
}

/// A run of two steps and two ranks. The ranks of step 0 are the same; those of step 10 differ.
fn run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let npy = |values: [f32; 4]| {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}";
        let data: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &data].concat()
    };
    for (step, rank, values) in [
        (0, 0, [1.0, 2.0, 3.0, 1e-9]),
        (0, 1, [1.0, 2.0, 3.0, 1e-9]),
        (10, 0, [0.5, 0.25, 0.0, 1e-9]),
        (10, 1, [70000.0, 1e-9, 1e-9, 1.0]),
    ] {
        let place = folder.path().join(format!("step{step}/rank{rank}"));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("w.npy"), npy(values)).unwrap();
    }
    folder
}

fn json(arguments: &[&str]) -> (Value, String) {
    let output = amp_inspect(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    (serde_json::from_slice(&output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn steps_add_up_their_ranks_and_count_replicas_once() {
    let run = run();
    let path = run.path().to_str().unwrap();
    let (report, notices) = json(&["histogram", path, "--by", "step", "--formats", "fp16", "--json"]);
    let rows: Vec<_> = report["tensors"].as_array().unwrap().iter().collect();
    let figures = |row: &Value| {
        let cell = &row["formats"][0];
        [&row["step"], &row["elements"], &row["zero"], &cell["underflow"], &cell["overflow"]]
            .map(|n| n.as_u64().unwrap())
    };
    // By hand: 1e-9 is below 2^-25, 70000 above 65520.
    assert_eq!(rows.iter().map(|row| figures(row)).collect::<Vec<_>>(), [[0, 4, 0, 1, 0], [10, 8, 1, 3, 1]]);
    assert_eq!(report["total"]["elements"], 12);
    assert_eq!(notices, "note: 1 tensor is the same in another rank and is not counted again\n");
}

#[test]
fn a_tensor_is_a_row_with_all_its_ranks() {
    let run = run();
    let path = run.path().to_str().unwrap();
    let figures = |by: &str| -> Vec<[Value; 6]> {
        let (report, _) =
            json(&["histogram", path, "--by", by, "--formats", "fp16", "--sort", "file", "--json"]);
        assert_eq!(report["inputs"].as_array().unwrap().len(), 4);
        let row = |row: &Value| {
            let underflow = row["formats"][0]["underflow"].clone();
            [&row["name"], &row["step"], &row["rank"], &row["ranks"], &row["elements"], &underflow]
                .map(Clone::clone)
        };
        report["tensors"].as_array().unwrap().iter().map(row).collect()
    };
    // The ranks of step 0 are the same: one is counted.
    let null = Value::Null;
    let both = || serde_json::json!([0, 1]);
    assert_eq!(
        figures("tensor"),
        [
            ["w".into(), 0.into(), null.clone(), both(), 4.into(), 1.into()],
            ["w".into(), 10.into(), null.clone(), both(), 8.into(), 3.into()],
        ]
    );
    // Each rank with all that it has.
    assert_eq!(
        figures("rank"),
        [
            ["rank 0".into(), null.clone(), 0.into(), null.clone(), 8.into(), 2.into()],
            ["rank 1".into(), null.clone(), 1.into(), null.clone(), 8.into(), 3.into()],
        ]
    );
    let text = |more: &[&str]| {
        printed(amp_inspect(&[&["histogram", path, "--formats", "fp16", "--quiet"], more].concat()))
    };
    let tables = text(&[]);
    assert!(
        tables.contains("\nby tensor, ranks together: ") && tables.contains("\n[step 10] w  "),
        "{tables}"
    );
    let one = text(&["--ranks", "1", "--steps", "10"]);
    assert!(!one.contains("together: flushed"), "{one}");
    let ranks = text(&["--by", "rank"]);
    assert!(ranks.contains("rank by rank\n") && ranks.contains("\nall ranks together: "), "{ranks}");
    refused(
        &["histogram", "testdata/gpt/grads_step01500.safetensors", "--by", "rank"],
        "no file says of what rank it is; --layout tells where paths have it",
    );
}

#[test]
fn loss_scales_that_files_record_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let header =
        br#"{"__metadata__":{"loss_scale":"65536.0"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let file = folder.path().join("g.safetensors");
    fs::write(&file, [&(header.len() as u64).to_le_bytes()[..], header, &2.0_f32.to_le_bytes()].concat())
        .unwrap();
    let notices = |more: &[&str]| json(&[&["histogram", file.to_str().unwrap(), "--json"], more].concat()).1;
    let told = "note: a file records a loss scale: loss_scale 65536; if the values still have it, divide by it with \
                --unscale\n";
    assert_eq!(notices(&[]), told);
    assert_eq!(notices(&["--unscale", "2^16"]), "");
    let other = "note: a file records another loss scale than --unscale: loss_scale 65536\n";
    assert_eq!(notices(&["--unscale", "1024"]), other);
}

#[test]
fn steps_and_ranks_are_selected() {
    let run = run();
    let path = run.path().to_str().unwrap();
    let places = |more: &[&str]| -> Vec<(u64, u64)> {
        let (report, _) = json(&[&["ls", path, "--json"], more].concat());
        let number = |row: &Value, key| row[key].as_u64().unwrap();
        report["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (number(row, "step"), number(row, "rank")))
            .collect()
    };
    assert_eq!(places(&[]), [(0, 0), (0, 1), (10, 0), (10, 1)]);
    assert_eq!(places(&["--steps", "1.."]), [(10, 0), (10, 1)]);
    assert_eq!(places(&["--steps", "0..10:5", "--ranks", "1"]), [(0, 1), (10, 1)]);
    assert_eq!(places(&["--steps", "0..10:3"]), [(0, 0), (0, 1)]);
    assert_eq!(places(&["--steps", "10,20"]), [(10, 0), (10, 1)]);
}

#[test]
fn what_selects_nothing_is_refused() {
    let run = run();
    let path = run.path().to_str().unwrap();
    let none = "no dump is left to read: check --steps, --ranks and --layout";
    refused(&["histogram", path, "--steps", "11..19"], none);
    let output = amp_inspect(&["histogram", path, "--steps", "9..1"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("9..1 ends before it begins"));
    let alone: PathBuf = testdata("sources/npy/v1_f4.npy");
    let alone = alone.to_str().unwrap();
    refused(
        &["histogram", alone, "--by", "step"],
        "no file says of what step it is; --layout tells where paths have it",
    );
}

#[test]
fn a_run_of_one_step_is_that_step() {
    let file = "testdata/gpt/grads_step01500.safetensors";
    let (by_step, _) = json(&["histogram", file, "--by", "step", "--json"]);
    let (by_tensor, _) = json(&["histogram", file, "--json"]);
    assert_eq!(by_step["tensors"][0]["formats"], by_tensor["total"]["formats"]);
    assert_eq!(by_step["total"], by_tensor["total"]);
    let text = printed(amp_inspect(&["histogram", file, "--by", "step", "--formats", "fp16"]));
    assert!(text.lines().any(|line| line.starts_with("1500 ") && line.ends_with(" 0.123")), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn more_files_than_may_be_open_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let npy = fs::read(testdata("sources/npy/v1_f4.npy")).unwrap();
    for number in 0..400 {
        fs::write(folder.path().join(format!("w{number}.npy")), &npy).unwrap();
    }
    let run = format!(
        "ulimit -n 200; exec {} histogram {} --formats fp16 --csv",
        env!("CARGO_BIN_EXE_amp-inspect"),
        folder.path().display()
    );
    let output = std::process::Command::new("sh").args(["-c", &run]).output().unwrap();
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
    // A row a tensor, one of all, and the head.
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 402);
}

#[test]
fn recorded_scales_are_divided_out() {
    let figures = |report: &Value, subject: &str| {
        let cells = report[subject]["formats"].as_array().unwrap();
        let counts =
            |cell: &Value| ["underflow", "subnormal", "normal", "overflow"].map(|key| cell[key].clone());
        (cells.iter().map(counts).collect::<Vec<_>>(), report[subject]["amax"].as_f64().unwrap())
    };
    for file in ["grads_step01500.safetensors", "grads_step01500_h1_bf16.safetensors"] {
        let file = format!("testdata/gpt/{file}");
        let run = |option: &str, value: &str| {
            json(&["histogram", &file, "--formats", "fp16,e4m3fn", "--json", option, value]).0
        };
        // A power of two: what is divided before is as what is multiplied in the cast, but for the figures of x.
        let (divided, scaled) = (run("--unscale", "1024"), run("--scale", "0.0009765625"));
        let ((counts, amax), (same, stored)) = (figures(&divided, "total"), figures(&scaled, "total"));
        assert_eq!((counts, amax), (same, stored / 1024.0), "{file}");
        assert_eq!(divided["options"]["unscale"], 1024.0);
    }
    // 3 is no power of two: torch multiplies by the float32 nearest to a third.
    let ones = run();
    let (report, _) =
        json(&["histogram", ones.path().to_str().unwrap(), "--steps", "10", "--unscale", "3", "--json"]);
    assert_eq!(report["total"]["amax"].as_f64().unwrap(), f64::from(70000.0_f32 * (1.0 / 3.0_f64) as f32));
}

#[test]
fn msprobe_says_what_the_types_were() {
    let says = "dump.json says of 1 tensor that it had another type in the run: bfloat16 (stored as float32)";
    let notices = |path: &Path| {
        let output = amp_inspect(&["ls", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let dumped = "testdata/dumps/msprobe_mindspore/step0/rank0";
    assert!(notices(Path::new(dumped)).contains(says));
    // PyTorch's are stored as they were.
    assert!(!notices(Path::new("testdata/dumps/msprobe")).contains("dump.json says"));

    let folder = tempfile::tempdir().unwrap();
    let tensors = folder.path().join("dump_tensor_data");
    fs::create_dir(&tensors).unwrap();
    let name = "Functional.matmul.0.forward.input.0.npy";
    fs::copy(Path::new(dumped).join("dump_tensor_data").join(name), tensors.join(name)).unwrap();
    let record = folder.path().join("dump.json");
    let entry = format!(r#"{{"Max": NaN, "Min": -Infinity, "dtype": "BFloat16", "data_name": "{name}"}}"#);
    for (text, known) in [
        (format!(r#"{{"data": {{"a \" NaN": [[{entry}]]}}}}"#), true),
        // As a crash leaves it: what is before the end counts.
        (format!(r#"{{"data": {{"a": [{entry}, {{"dty"#), true),
        (entry.replace("BFloat16", "Int8"), false),
        (entry.replace(name, "../other.npy"), false),
        ("[".repeat(100_000), false),
        (String::new(), false),
    ] {
        fs::write(&record, &text).unwrap();
        assert_eq!(notices(folder.path()).contains(says), known, "{}", &text[..text.len().min(100)]);
    }
}
