//! The program as people meet it: exit codes, what goes where, and files that are whole or not there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

const GPT: &str = "testdata/gpt/grads_step01500.safetensors";
const ONE: &str = "testdata/gpt/h0_fc_weight_grad_step01500.npy";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .env("COLUMNS", "80")
        .env_remove("NO_COLOR");
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[track_caller]
fn fails(arguments: &[&str], sentence: &str) {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), format!("amp-inspect: {sentence}\n"), "{arguments:?}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
}

#[test]
fn results_go_to_stdout_and_talk_to_stderr() {
    let output = run(&["histogram", GPT]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
    let start = format!("{GPT}: 41 tensors, 167\u{202f}360 elements float32, 654 KiB");
    assert!(stdout(&output).replace('\n', " ").starts_with(&start));
}

#[test]
fn one_sentence_and_code_two_for_what_cannot_be_read() {
    fails(&["histogram", "missing.npy"], "missing.npy: cannot open the file: no such file or directory");
    fails(&["histogram", "nothing*.npy"], "nothing*.npy: matches no file");
    fails(
        &["histogram", GPT, "--tensor", "^no such name$"],
        "no tensor is left to read: check --tensor and --exclude",
    );
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.npy");
    std::fs::write(&cut, &std::fs::read(ONE).unwrap()[..5000]).unwrap();
    let cut = cut.to_str().unwrap();
    fails(
        &["histogram", cut],
        &format!("{cut}: byte 5000: the data are cut off: shape (256, 64) takes 65536 bytes, 4872 are there"),
    );
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let output = run(&["histogram", "missing.npy", ONE]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("1 tensor, 16\u{202f}384 elements"));
    assert!(stderr(&output).contains("missing.npy"));
}

#[test]
fn wrong_usage_is_code_two() {
    for arguments in [
        &["histogram"][..],
        &["histogram", ONE, "--formats", "e9m9"],
        &["histogram", ONE, "--scale", "0"],
        &["histogram", ONE, "--scale", "nan"],
        &["histogram", ONE, "--json", "--csv"],
        &["histogram", ONE, "--threads", "0"],
        &["histogram", ONE, "--tensor", "("],
        &["no-such-command"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert!(stderr(&output).starts_with("error: "), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn help_shows_an_example_first_and_fits_the_width() {
    for command in ["histogram", "explain", "formats", "simulate-scaler", "updates", "reduce"] {
        let output = run(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).starts_with(&format!("Example:\n  amp-inspect {command}")));
        assert!(stdout(&output).lines().all(|line| line.width() <= 100));
        assert!(stdout(&run(&["--help"])).contains(command));
    }
    let help = run(&["histogram", "--help"]);
    for said in ["\n  exceeds_max ", "\n  mse ", "\n  max_rel, mean_rel", "nearest-even, in every"] {
        assert!(stdout(&help).contains(said), "{said} in {}", stdout(&help));
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [80_usize, 100, 120, 200] {
        for input in [GPT, ONE, "testdata/cnn", "testdata/gpt"] {
            let options =
                ["--scale", "3", "--rounding", "stochastic", "--ftz", "--daz", "--profile", "torch"];
            let output = command(&["histogram", input])
                .args(options)
                .env("COLUMNS", columns.to_string())
                .output()
                .unwrap();
            for line in stdout(&output).lines() {
                assert!(line.width() <= columns, "{columns} columns, {input}: {} in {line:?}", line.width());
            }
        }
    }
}

#[test]
fn colours_are_for_terminals_only() {
    assert!(!stdout(&run(&["histogram", ONE])).contains('\u{1b}'));
}

#[test]
fn a_reader_that_hangs_up_is_no_failure() {
    let mut child = command(&["histogram", GPT, "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(&["histogram", ONE]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "amp-inspect: cannot write to standard output: no space left on device\n");
}

#[test]
fn saved_files_are_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let saved = [path("a.json"), path("a.csv"), path("a.md")];
    let mut arguments = vec!["histogram", ONE];
    saved.iter().for_each(|path| arguments.extend(["--save", path]));
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("float16"), "the table stays on the screen");
    let json: Value = serde_json::from_slice(&std::fs::read(&saved[0]).unwrap()).unwrap();
    assert_eq!(json, serde_json::from_slice::<Value>(&run(&["histogram", ONE, "--json"]).stdout).unwrap());
    assert_eq!(std::fs::read(&saved[1]).unwrap(), run(&["histogram", ONE, "--csv"]).stdout);

    // A failure leaves an existing file as it was, and nothing beside it.
    let before = std::fs::read(&saved[0]).unwrap();
    assert_eq!(run(&["histogram", "missing.npy", "--save", &saved[0]]).status.code(), Some(2));
    assert_eq!(std::fs::read(&saved[0]).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn an_output_that_cannot_be_written_fails_before_the_work() {
    fails(
        &["histogram", ONE, "--save", "no/such/folder/a.json"],
        "no/such/folder/a.json: cannot save: no such file or directory",
    );
    let output = run(&["histogram", ONE, "--save", "a.docx"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot save this kind of file; the extensions are .json, .csv"));
    fails(&["histogram", ONE, "--save", "testdata.json/"], "testdata.json/: cannot save: it is a directory");
}

#[test]
fn help_lists_the_kinds_of_file_that_can_be_saved() {
    let known = [".json", ".csv", ".md", ".png", ".svg", ".xml"];
    for (command, input, missing) in [
        ("histogram", &["x"][..], &[".xml"][..]),
        ("fp8", &["x"], &[".xml"]),
        ("updates", &["--weights", "x"], &[".xml"]),
        ("reduce", &["x"], &[".xml"]),
        ("compare", &["x", "y"], &[]),
        ("check", &["x", "--rules", "y"], &[".png", ".svg"]),
        ("recommend", &["x"], &[".png", ".svg", ".xml"]),
    ] {
        let help = run(&[command, "--help"]);
        for extension in known {
            let listed = stdout(&help).contains(&format!("\n            {extension:<6} "));
            assert_eq!(listed, !missing.contains(&extension), "{command} {extension}: {}", stdout(&help));
            let file = format!("no/such/a{extension}");
            let output = run(&[&[command], input, &["--save", &file]].concat());
            assert_eq!(
                stderr(&output).contains("the extensions are"),
                !listed,
                "{command}: {}",
                stderr(&output)
            );
        }
    }
}

#[test]
fn outputs_replace_neither_inputs_nor_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (input, new) = (path("in.json"), path("new.md"));
    std::fs::write(&input, "{}").unwrap();
    let again = folder.path().join("..").join(folder.path().file_name().unwrap()).join("in.json");
    let again = again.to_str().unwrap();
    for command in ["histogram", "ls", "fp8", "recommend", "reduce", "autocast", "simulate-scaler"] {
        fails(
            &[command, &input, "--save", again],
            &format!("{again}: cannot save: it is an input, which would be lost"),
        );
    }
    for arguments in [
        &["compare", ONE, &input][..],
        &["updates", "--weights", &input],
        &["memory", "--from", &input],
        &["check", ONE, "--rules", &input],
    ] {
        let output = run(&[arguments, &["--save", &input]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("it is an input"), "{arguments:?}: {}", stderr(&output));
    }
    fails(
        &["histogram", ONE, "--save", &new, "--save", &new],
        &format!("{new}: cannot save: it is named for two outputs"),
    );
    let config = path("new.json");
    let output = run(&["recommend", ONE, "--config", &config, "--save", &config]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("it is named for two outputs"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read(&input).unwrap(), b"{}");
}

#[test]
fn the_same_bytes_come_out_for_any_number_of_threads() {
    let with = |threads: &str| {
        run(&["histogram", "testdata/gpt", "testdata/cnn", "--json", "--threads", threads]).stdout
    };
    let one = with("1");
    assert!(one.len() > 10_000);
    for threads in ["2", "3", "8"] {
        assert!(with(threads) == one, "{threads} threads give other bytes");
    }
}

#[test]
fn the_counts_of_every_readable_fixture_add_up() {
    let report: Value =
        serde_json::from_slice(&run(&["histogram", "testdata", "--json", "--quiet"]).stdout).unwrap();
    let tensors = report["tensors"].as_array().unwrap();
    assert!(tensors.len() > 150);
    for tensor in tensors.iter().chain([&report["total"]]) {
        let count =
            |of: &Value, names: &[&str]| names.iter().map(|name| of[*name].as_u64().unwrap()).sum::<u64>();
        let special = count(tensor, &["nan", "positive_inf", "negative_inf", "zero"]);
        let elements = count(tensor, &["elements"]);
        let binades: u64 = tensor["binades"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row[1].as_u64().unwrap() + row[2].as_u64().unwrap())
            .sum();
        assert_eq!(special + binades, elements, "{}", tensor["name"]);
        for cell in tensor["formats"].as_array().unwrap() {
            let cast = count(cell, &["underflow", "subnormal", "normal", "overflow"]);
            assert_eq!(special + cast, elements, "{} {}", tensor["name"], cell["format"]);
        }
    }
}

#[test]
fn json_writes_what_is_not_finite_as_strings_and_what_is_undefined_as_null() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("special.npy");
    let mut bytes = b"\x93NUMPY\x01\x00\x3a\x00".to_vec();
    bytes.extend(format!("{:<57}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }").as_bytes());
    bytes.extend([f32::NAN.to_le_bytes(), 1_f32.to_le_bytes()].concat());
    std::fs::write(&path, &bytes).unwrap();
    let report: Value =
        serde_json::from_slice(&run(&["histogram", path.to_str().unwrap(), "--json", "-f", "fp16"]).stdout)
            .unwrap();
    assert_eq!(report["total"]["formats"][0]["sqnr_db"], "inf", "1.0 is exact in float16");
    assert_eq!(report["total"]["nan"], 1);
    assert_eq!(report["schema_version"], 1);
    bytes.truncate(68);
    bytes.extend([f32::NAN.to_le_bytes(), f32::INFINITY.to_le_bytes()].concat());
    std::fs::write(&path, &bytes).unwrap();
    let report: Value =
        serde_json::from_slice(&run(&["histogram", path.to_str().unwrap(), "--json", "-f", "fp16"]).stdout)
            .unwrap();
    assert_eq!(report["total"]["amax"], Value::Null);
    assert_eq!(report["total"]["formats"][0]["underflow_pct"], Value::Null);
    assert_eq!(report["total"]["formats"][0]["mse"], Value::Null);
}

#[test]
fn tensor_names_cannot_write_to_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.safetensors");
    let header = r#"{"a\u001b[2Jb":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"c\nd":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([0_u8; 8]);
    std::fs::write(&path, bytes).unwrap();
    let output = run(&["histogram", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stdout(&output).contains('\u{1b}'));
    assert!(stdout(&output).contains("c\\nd"));
}

#[test]
fn dtype_reads_codes_that_the_file_has_no_type_for() {
    let file = "testdata/sources/npy/fp8_float8_e4m3fn_all256.npy";
    let unnamed = run(&["histogram", file]);
    assert_eq!(unnamed.status.code(), Some(2));
    let named = run(&["histogram", file, "--dtype", "e4m3fn", "--json", "-f", "e4m3fn"]);
    let report: Value = serde_json::from_slice(&named.stdout).unwrap();
    let total = &report["total"];
    assert_eq!(
        (total["nan"].as_u64(), total["zero"].as_u64(), total["amax"].as_f64()),
        (Some(2), Some(2), Some(448.0))
    );
    assert_eq!(total["formats"][0]["max_abs"], 0.0, "a format holds its own numbers");
    assert!(Path::new(file).exists());
}

#[test]
fn block_formats_are_formats_like_the_others() {
    let names = "float16,mxfp8,nvfp4:torchao,e4m3fn:128x128:pow2,mxfp8:axis=0:rceil";
    let output = run(&["histogram", GPT, "--formats", names, "--json"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let json: Value = serde_json::from_str(stdout(&output)).unwrap();
    let formats = json["formats"].as_array().unwrap();
    let called: Vec<&str> = formats.iter().map(|format| format["name"].as_str().unwrap()).collect();
    let wanted = ["float16", "mxfp8_e4m3", "nvfp4:torchao", "e4m3fn:128x128:pow2", "mxfp8_e4m3:rceil:axis=0"];
    assert_eq!(called, wanted);
    assert!(formats[0].get("block").is_none());
    assert_eq!(formats[1]["block"]["bits_per_element"], 8.25);
    for tensor in json["tensors"].as_array().unwrap().iter().chain([&json["total"]]) {
        let cells = tensor["formats"].as_array().unwrap();
        assert!(cells[0].get("blocks").is_none());
        for cell in &cells[1..] {
            let count = |figure: &str| cell[figure].as_u64().unwrap();
            let nonzero = ["underflow", "subnormal", "normal", "overflow"].map(count).iter().sum::<u64>();
            assert_eq!(nonzero, tensor["nonzero_finite"].as_u64().unwrap());
            let blocks = &cell["blocks"];
            let kinds = ["all_zero", "scale_zero", "scale_subnormal", "scale_raised", "scale_normal"];
            let kinds = kinds.iter().chain(&["scale_saturated", "scale_nan"]);
            let sum: u64 = kinds.map(|kind| blocks[kind].as_u64().unwrap()).sum();
            assert_eq!(sum, blocks["count"].as_u64().unwrap());
        }
    }
    let worst = &json["total"]["formats"][1]["blocks"]["worst"];
    assert_eq!(worst.as_array().unwrap().len(), 5);
    assert!(worst[0]["tensor"].is_string() && worst[0]["input"] == 0);

    let one = run(&["histogram", GPT, "--formats", names, "--json", "--threads", "1"]);
    assert!(one.stdout == output.stdout, "the number of threads shows");
    let csv = run(&["histogram", GPT, "--formats", names, "--csv"]);
    let mut lines = csv::Reader::from_reader(&*csv.stdout);
    let column = lines.headers().unwrap().iter().position(|head| head == "blocks").unwrap();
    for (record, format) in lines.records().zip(wanted.into_iter().cycle()) {
        assert_eq!(record.unwrap()[column].is_empty(), format == "float16");
    }
}

#[test]
fn tables_of_block_formats_fit_the_terminal() {
    let formats = "e4m3fn,mxfp8_e5m2:rceil,nvfp4,nvfp4:torchao,e4m3fn:128x128";
    let output = run(&["histogram", GPT, "--formats", formats, "--top", "3"]);
    let widest = stdout(&output).lines().map(UnicodeWidthStr::width).max().unwrap();
    assert!(widest <= 80, "{widest} columns:\n{}", stdout(&output));
    assert!(stdout(&output).contains(" 128×128 (f32) "));
    assert!(stdout(&output).contains("worst block"));
}

#[test]
fn a_wrong_block_format_is_named() {
    let output = run(&["histogram", GPT, "--formats", "mxfp8:te"]);
    assert_eq!(output.status.code(), Some(2));
    let said = "block format 'mxfp8:te': 'te' is none of its scale recipes floor, ceil, even, rceil";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
}

/// A Fortran-order array of 3 × 4 × 5 ones, whose tiles of several rows cannot be read.
fn fortran_cube(folder: &Path) -> String {
    let path = folder.join("cube.npy");
    let mut bytes = b"\x93NUMPY\x01\x00\x3e\x00".to_vec();
    bytes.extend(
        format!("{:<61}\n", "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4, 5), }").as_bytes(),
    );
    (0..60).for_each(|_| bytes.extend(1_f32.to_le_bytes()));
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn blocks_that_cannot_be_read_leave_the_other_formats_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = fortran_cube(folder.path());
    let output = run(&["histogram", &path, "-f", "float16,e4m3fn:2x2,mxfp8", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["total"]["formats"].as_array().unwrap();
    assert_eq!(cells[0]["normal"], 60);
    assert_eq!(cells[1]["underflow_pct"], Value::Null);
    assert_eq!(cells[2]["overflow_pct"], 0.0);
    assert!(stderr(&output).contains("cannot be read in Fortran order"), "{}", stderr(&output));
}

#[test]
fn csv_too_may_lose_its_reader() {
    let mut child = command(&["histogram", GPT, "--csv"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_file_that_is_named_twice_counts_once() {
    let output = run(&["histogram", ONE, ONE, "testdata/gpt/h0*.npy", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["total"]["elements"], 16384);
    assert_eq!(stderr(&output), "note: 2 paths name a file that is read already\n");
}

#[test]
fn every_problem_is_told_when_nothing_is_left() {
    let output = run(&["histogram", "a.npy", "b.npy"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("a.npy: ") && stderr(&output).contains("b.npy: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn block_formats_say_which_options_they_do_without() {
    let output = run(&["histogram", ONE, "-f", "mxfp8", "--overflow", "ieee", "--ftz"]);
    let note = "note: block formats always round to nearest even and saturate: without --overflow, --ftz\n";
    assert_eq!(stderr(&output), note);
}

#[test]
fn advice_is_given_only_where_it_holds() {
    let advice = |arguments: &[&str]| {
        let output = run(&[&["histogram", GPT, "-f", "float16", "--json"], arguments].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["findings"].to_string()
    };
    assert!(advice(&[]).contains("a scale between 2^11 and 2^16"));
    assert!(!advice(&["--ftz"]).contains("a scale between"), "{}", advice(&["--ftz"]));
    assert!(!advice(&["--rounding", "toward-zero"]).contains("a scale between"));
}

#[test]
fn block_kinds_add_up_in_csv_and_every_cast_option_has_a_column() {
    let options = ["--rounding", "toward-zero", "--ftz", "--profile", "torch", "--csv"];
    let output = command(&["histogram", ONE, "-f", "mxfp8,float16"]).args(options).output().unwrap();
    let mut csv = csv::Reader::from_reader(&*output.stdout);
    let heads = csv.headers().unwrap().clone();
    let rows: Vec<_> = csv.records().map(Result::unwrap).collect();
    let figure = |row: usize, name: &str| &rows[row][heads.iter().position(|head| head == name).unwrap()];
    let kinds = heads.iter().filter(|head| *head == "blocks_all_zero" || head.starts_with("blocks_scale_"));
    let sum: u64 = kinds.map(|kind| figure(0, kind).parse::<u64>().unwrap()).sum();
    assert_eq!(sum.to_string(), figure(0, "blocks"));
    let options = |row| ["rounding", "ftz", "daz", "profile"].map(|name| figure(row, name));
    assert_eq!(options(0), ["nearest-even", "false", "false", ""]);
    assert_eq!(options(1), ["toward-zero", "true", "false", "torch"]);
    let json: Value = serde_json::from_slice(&run(&["histogram", ONE, "--json"]).stdout).unwrap();
    assert_eq!((&json["total"]["dtype"], &json["total"]["shape"]), (&Value::Null, &Value::Null));
    assert_eq!(json["tensors"][0]["dtype"], "float32");
}

#[test]
fn tensors_of_several_files_keep_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let name = |step: u32| folder.path().join(format!("a_rather_long_name_of_a_dump_at_step{step:05}.npy"));
    for step in [1, 2] {
        std::fs::copy(ONE, name(step)).unwrap();
    }
    let output = run(&["histogram", folder.path().to_str().unwrap()]);
    for step in [1, 2] {
        let key = format!("[{step}] a_rather_long_name_of_a_dump_at_step{step:05}.npy");
        assert!(stdout(&output).lines().any(|line| line == key), "{}", stdout(&output));
        assert!(stdout(&output).lines().filter(|line| line.starts_with(&format!("[{step}] "))).count() == 2);
    }
}

#[test]
fn names_of_formats_are_not_cut_where_heads_can_be() {
    let output = run(&["histogram", ONE, "-f", "mxfp8:rceil:axis=0,float16"]);
    let table = stdout(&output).lines().skip_while(|line| !line.contains("under %"));
    let names: Vec<&str> = table.skip(1).take(2).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["mxfp8_e4m3:rceil:axis=0", "float16"]);
    assert!(stdout(&run(&["histogram", ONE])).contains("underflow %"));
}

#[test]
fn options_of_the_cast_are_told() {
    assert!(!stdout(&run(&["histogram", ONE])).contains("cast with"));
    let formats = ["histogram", ONE, "-f", "float16,e4m3fn", "--rounding", "stochastic", "--seed", "7"];
    let output = command(&formats)
        .args(["--ftz", "--daz", "--scale", "2^10", "--overflow", "saturate"])
        .output()
        .unwrap();
    let text = stdout(&output).replace('\n', " ");
    let said = "cast with rounding stochastic · seed 7, random bits 13 for float16; 16 for e4m3fn · overflow policy \
                saturate for float16, e4m3fn · subnormal results flushed (--ftz) · subnormal inputs taken for zero \
                (--daz) · scale 1024";
    assert!(text.contains(said), "{text}");
}

#[test]
fn thousands_of_faults_take_a_hundred_lines() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("model.safetensors.index.json");
    let shards: Vec<String> = (0..300).map(|n| format!("\"w{n}\": \"shard{n}.safetensors\"")).collect();
    std::fs::write(&index, format!("{{\"weight_map\": {{{}}}}}", shards.join(", "))).unwrap();
    let output = run(&["ls", index.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(talk.lines().count(), 101);
    assert!(talk.ends_with("\n… and 200 more like these; --json has all\n"), "{talk}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["problems"].as_array().unwrap().len(), 300);
}

#[test]
fn what_is_passed_over_is_told_by_kind() {
    let folder = tempfile::tempdir().unwrap();
    let npy = std::fs::read("testdata/gpt/h0_fc_weight_grad_step01500.npy").unwrap();
    for (name, bytes) in
        [("w.npy", &npy[..]), ("log.csv", b"a\n1\n"), ("a.txt", b"x"), ("b.txt", b"y"), ("README", b"z")]
    {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let told = "note: skipped 4 files that are no dumps: 2 .txt, 1 without extension, 1 .csv (tables are read if they \
                are named)\n";
    assert_eq!(String::from_utf8(run(&["ls", path]).stderr).unwrap(), told);
    assert_eq!(String::from_utf8(run(&["ls", path, "--quiet"]).stderr).unwrap(), "");
}

#[test]
fn listings_leave_out_files_without_a_tensor_that_is_asked_for() {
    let files = ["testdata/gpt/grads_step01500.safetensors", "testdata/cnn/grads_step00100.safetensors"];
    let listing = |regex: &str| run(&["ls", files[0], files[1], "--tensor", regex]);
    let text = String::from_utf8(listing("^c1").stdout).unwrap();
    assert!(text.starts_with("testdata/cnn/") && !text.contains("testdata/gpt/"), "{text}");
    let nothing = listing("^nosuch$");
    assert_eq!((nothing.status.code(), nothing.stdout.len()), (Some(2), 0));
    let told = "amp-inspect: no tensor is left to read: check --tensor and --exclude\n";
    assert_eq!(String::from_utf8(nothing.stderr).unwrap(), told);
}

#[test]
fn numbers_out_of_range_are_told_with_the_option() {
    let file = "testdata/gpt/grads_step01500.safetensors";
    let cases: [(&[&str], &str); 4] = [
        (&["updates", "--weights", file, "--grads", file, "--lr", "-1"], "invalid value '-1' for '--lr <"),
        (&["compare", file, file, "--rtol", "-1"], "invalid value '-1' for '--rtol <"),
        (&["memory", "--params", "-5"], "invalid value '-5' for '--params <"),
        (&["histogram", file, "--threads", "0"], "'0' for '--threads <N>': threads are a number from 1 on"),
    ];
    for (arguments, told) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
}

#[test]
fn a_directory_named_twice_counts_once() {
    let output = run(&["ls", "testdata/checkpoints/single", "testdata/checkpoints/single"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("that is read already"), "{}", stderr(&output));
}
