//! The way through the host: the program as people run it, with a libcuda that is made up in the place of the
//! driver's.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use amp_inspect::gpu::Job;
use serde_json::Value;

use crate::common::exhaustive;

/// The library, built once; `lacks` leaves a function out.
fn fake(lacks: bool) -> PathBuf {
    static FOLDERS: OnceLock<[tempfile::TempDir; 2]> = OnceLock::new();
    let folders = FOLDERS.get_or_init(|| {
        [None, Some("lacks_elapsed_time")].map(|lacking| {
            let folder = tempfile::tempdir().unwrap();
            build("tests/gpu/fake_cuda.rs", &folder.path().join("libcuda.so.1"), lacking);
            folder
        })
    });
    folders[usize::from(lacks)].path().to_owned()
}

/// A folder with a libnvrtc that is made up, too.
fn fake_compiler() -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let built = || {
        let folder = tempfile::tempdir().unwrap();
        build("tests/gpu/fake_nvrtc.rs", &folder.path().join("libnvrtc.so.12"), None);
        folder
    };
    FOLDER.get_or_init(built).path().to_owned()
}

fn build(source: &str, library: &Path, cfg: Option<&str>) {
    let mut command = Command::new(std::env::var("RUSTC").unwrap_or("rustc".to_owned()));
    command.args(["--edition", "2024", "-O", "--crate-type", "cdylib", "--cap-lints", "allow"]);
    command.args(cfg.iter().flat_map(|cfg| ["--cfg", cfg])).arg("-o").arg(library);
    let output = command.arg(source).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs `bench-gpu` on the card that is made up.
fn bench(settings: &[(&str, &str)], arguments: &[&str]) -> Output {
    bench_with(fake(false), settings, arguments)
}

fn bench_with(library: PathBuf, settings: &[(&str, &str)], arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_amp-inspect"))
        .arg("bench-gpu")
        .args(["--quick", "--quiet"])
        .args(if arguments.contains(&"--size") { &[][..] } else { &["--size", "16384"] })
        .args(arguments)
        .env("LD_LIBRARY_PATH", library)
        .env("COLUMNS", "100")
        .envs(settings.iter().map(|(name, value)| (format!("FAKE_CUDA_{name}"), value)))
        .output()
        .unwrap()
}

#[track_caller]
fn json(output: &Output, code: i32) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One line on standard error, nothing on standard output, code 2.
#[track_caller]
fn refused(output: &Output) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said.trim_start_matches("amp-inspect: ").trim_end().to_owned()
}

fn results(report: &Value) -> Vec<(&str, &str)> {
    let entries = report["conversions"].as_array().unwrap().iter();
    entries.map(|entry| (entry["conversion"].as_str().unwrap(), entry["result"].as_str().unwrap())).collect()
}

#[test]
fn every_answer_of_the_driver_that_is_no_card_is_one_clear_line() {
    let cases = [
        ("cuInit=34", "cuInit gave error 34 (stub library); a toolkit's stub"),
        ("cuInit=35", "cuInit gave error 35 (driver older than asked for); update the NVIDIA driver"),
        ("cuInit=100", "cuInit gave error 100 (no device); check nvidia-smi, CUDA_VISIBLE_DEVICES"),
        ("cuInit=803", "cuInit gave error 803 (driver and library do not match); restart"),
        ("cuInit=999", "cuInit gave error 999 (unknown error); look at dmesg"),
        ("cuInit=4242", "cuInit gave error 4242 (unknown to this tool); look the code up"),
        ("cuDeviceGetCount=4242", "cuDeviceGetCount gave error 4242 (unknown to this tool)"),
        ("cuDevicePrimaryCtxRetain=46", "cuDevicePrimaryCtxRetain gave error 46 (device busy"),
        ("cuDevicePrimaryCtxRetain=4242", "cuDevicePrimaryCtxRetain gave error 4242 (unknown"),
    ];
    for (errors, start) in cases {
        let said = refused(&bench(&[("ERRORS", errors)], &[]));
        assert!(said.starts_with(start), "{said}");
    }
    let said = refused(&bench(&[("DEVICES", "0")], &[]));
    assert!(said.starts_with("the driver sees no device; check nvidia-smi"), "{said}");
    let said = refused(&bench(&[], &["--device", "3"]));
    assert_eq!(said, "there is no device 3: the driver sees 1, counted from 0; choose another --device");
    let said = refused(&bench(&[("DRIVER", "10020")], &[]));
    assert!(said.starts_with("the driver supports CUDA 10.2 only; update the NVIDIA driver"), "{said}");
    let said = refused(&bench(&[("CAPABILITY", "61")], &[]));
    assert_eq!(said, "Fake GPU has compute capability 6.1; 7.5 (Turing) is the least that is supported");
    let said = refused(&bench_with(fake(true), &[], &[]));
    assert_eq!(said, "libcuda lacks cuEventElapsedTime; update the NVIDIA driver");
}

#[test]
fn where_a_card_is_welcome_but_not_needed_its_absence_is_told_and_no_failure() {
    let output = bench(&[("ERRORS", "cuInit=803")], &["--if-available", "--json"]);
    let report = json(&output, 0);
    assert_eq!(report["status"], "skipped");
    assert_eq!(report["skipped"]["code"], 803);
    assert_eq!(report["conversions"], serde_json::json!([]));
    // Whatever is saved, a picture too.
    let folder = tempfile::tempdir().unwrap();
    let saved = ["json", "csv", "md", "png", "svg"].map(|kind| folder.path().join(format!("gpu.{kind}")));
    let mut arguments = vec!["--if-available"];
    saved.iter().for_each(|path| arguments.extend(["--save", path.to_str().unwrap()]));
    let output = bench(&[("ERRORS", "cuInit=100")], &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(saved.iter().all(|path| path.metadata().unwrap().len() > 0));
}

#[test]
fn a_card_that_is_right_is_found_right() {
    let report = json(&bench(&[], &["--formats", "e4m3fn,e2m1fn", "--json"]), 0);
    assert_eq!(report["status"], "equal");
    let missing = "not in hardware";
    assert_eq!(
        results(&report),
        [
            ("float32→e4m3fn nearest-even x2", "equal"),
            ("float16→e4m3fn nearest-even x2", "equal"),
            ("bfloat16→e4m3fn nearest-even x2", missing),
            ("float32→e2m1fn nearest-even x2", missing),
            ("float16→e2m1fn nearest-even x2", missing),
            ("bfloat16→e2m1fn nearest-even x2", missing),
            ("float32→e4m3fn stochastic x4", missing),
            ("float32→e2m1fn stochastic x4", missing),
            ("e4m3fn→float16 x2", "equal"),
            ("e2m1fn→float16 x2", missing),
            ("e4m3fn→bfloat16 x2", missing),
            ("e2m1fn→bfloat16 x2", missing),
            ("float32→e4m3fn nearest-even x2→float32", "equal"),
            ("float32→e2m1fn nearest-even x2→float32", missing),
        ]
    );
    // Six partners in each lane, all float32.
    assert_eq!(report["conversions"][0]["inputs"], 12_u64 << 32);
    assert_eq!(report["conversions"][1]["inputs"], 12 << 16);
    assert_eq!(report["conversions"][8]["inputs"], 1 << 16);
    assert_eq!(report["targets"][0]["not_in_hardware"], serde_json::json!(["e2m1fn"]));
    let card = &report["environment"];
    assert_eq!((&card["name"], &card["ptx_target"]), (&"Fake GPU".into(), &"sm_90".into()));
    // 3201 MHz, two transfers a clock, 6144 bits.
    assert_eq!(card["peak_bytes_per_second"], 4_916_736_000_000_u64);
    let times = report["throughput"].as_array().unwrap();
    let of_gpu: Vec<&str> =
        times.iter().filter(|t| t["device"] == "gpu").map(|t| t["work"].as_str().unwrap()).collect();
    assert_eq!(of_gpu, ["copy", "encode", "decode", "roundtrip"]);
    // 16,384 values in a quarter of a millisecond: 8 bytes of a copy, 5 of a cast to 8 bits.
    assert_eq!(times[0]["bytes"], 131_072);
    assert_eq!(times[1]["bytes"], 81_920);
    let rate = times[1]["gb_per_s"].as_f64().unwrap();
    assert!((rate - 0.32768).abs() < 1e-6, "{rate}");
    assert_eq!(times[1]["pct_of_copy"], 62.5);
    assert!(times.iter().any(|time| time["device"] == "cpu"));
}

#[test]
fn one_wrong_bit_is_found_and_shown() {
    let fault = ("FAULT", "e4m3x2.f32@3f900000");
    let output = bench(&[fault], &["--formats", "e4m3fn", "--json"]);
    let report = json(&output, 1);
    assert_eq!(report["status"], "differs");
    let entry = &report["conversions"][0];
    assert_eq!((&entry["result"], &entry["mismatches"]), (&"differs".into(), &12.into()));
    // 1.125 is 0 0111 001; in the lower lane beside a zero the lowest bit errs.
    let first = &entry["first"][0];
    assert_eq!(
        (&first["input"], &first["input_value"], &first["gpu"], &first["expected"], &first["class"]),
        (&"0x3f900000".into(), &1.125.into(), &"0x0038".into(), &"0x0039".into(), &"normal".into())
    );
    assert!(
        report["throughput"]
            .as_array()
            .unwrap()
            .iter()
            .all(|t| t["format"] != "e4m3fn" || t["device"] == "cpu")
    );
    let output = bench(&[fault], &["--formats", "e4m3fn"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let shown = text.lines().find(|line| line.starts_with("0x3f900000")).unwrap();
    let cells: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(cells, ["0x3f900000", "1.125", "lower", "0x00000000", "0x0038", "0x0039", "normal"]);
    assert!(text.contains("DIFFERS: this card's results differ from this tool's in"), "{text}");
}

#[test]
fn broken_rules_of_the_harness_are_failures_and_never_equal() {
    for (setting, why) in [
        ("LOSES", "the kernel converted 4294966296 inputs of 4294967296"),
        ("FLICKERS", "two runs of the kernel gave different results"),
    ] {
        let report = json(&bench(&[(setting, "1")], &["--formats", "e5m2", "--json"]), 1);
        let entry = &report["conversions"][0];
        assert_eq!((&entry["result"], &entry["why"]), (&"failed".into(), &why.into()));
    }
}

#[test]
fn failures_of_the_card_are_told_with_their_codes() {
    let formats = ["--formats", "e5m2", "--json"];
    let report = json(&bench(&[("ERRORS", "cuModuleLoadData=218")], &formats), 1);
    let why = report["conversions"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("the card cannot load a kernel: error 218 (invalid PTX)"), "{why}");
    let report = json(&bench(&[("ERRORS", "cuLaunchKernel=719")], &formats), 1);
    let why = report["conversions"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("the card cannot run a kernel: error 719 (launch failed)"), "{why}");
    // Room for the lists and not for the buffers.
    let arguments = ["--formats", "e5m2", "--size", "2^22", "--json"];
    let report = json(&bench(&[("MEMORY", "10000000")], &arguments), 2);
    assert_eq!(report["status"], "equal");
    let why = report["not_timed"].as_str().unwrap();
    assert!(why.starts_with("the card cannot hold a buffer: error 2 (out of memory); free memory"), "{why}");
    // Not even for a list.
    let report = json(&bench(&[("MEMORY", "10000")], &formats), 1);
    let why = report["conversions"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("the card cannot hold the results: error 2 (out of memory)"), "{why}");
}

#[test]
fn what_a_chip_or_a_driver_lacks_is_said_of_each_format() {
    let formats = ["--formats", "float16,e4m3fn", "--json"];
    let report = json(&bench(&[("CAPABILITY", "75")], &formats), 0);
    assert_eq!(report["environment"]["ptx_target"], "sm_75");
    assert_eq!(report["targets"][0]["in_hardware"], serde_json::json!(["float16"]));
    // PTX 8.6 came with CUDA 12.7, 8.8 with 12.9.
    let old = [("CAPABILITY", "120"), ("DRIVER", "12080")];
    let report = json(&bench(&old, &["--formats", "e2m1fn", "--json"]), 2);
    assert_eq!(report["status"], "nothing-tried");
    let entry = &report["conversions"][0];
    assert_eq!(
        (&entry["result"], &entry["why"]),
        (&"driver too old".into(), &"needs a driver of CUDA 12.9".into())
    );
}

#[test]
fn blocks_are_timed_on_the_processor_in_the_same_units() {
    let formats = "e4m3fn,mxfp8,nvfp4,e4m3fn:1x128,e4m3fn:128x128";
    let size = (1_u64 << 20) + 4096;
    let arguments = ["--cpu-only", "--json", "--formats", formats, "--size", &size.to_string()];
    let report = json(&bench(&[], &arguments), 0);
    assert_eq!(report["status"], "cpu-only");
    let times = report["throughput"].as_array().unwrap();
    let bytes = |format: &str| {
        let of_format: Vec<&Value> = times.iter().filter(|time| time["format"] == format).collect();
        assert_eq!((of_format.len(), &of_format[0]["work"]), (1, &"encode".into()), "{format}");
        assert!(of_format[0]["pct_of_copy"].as_f64().unwrap() > 0.0);
        of_format[0]["bytes"].as_u64().unwrap()
    };
    // A value and its code, and a scale for each 32, 16, 128 or 128 by 128, the last of which are cut short.
    assert_eq!(bytes("mxfp8_e4m3"), 5 * size + size / 32);
    assert_eq!(bytes("nvfp4:te"), 5 * size + size / 16);
    assert_eq!(bytes("e4m3fn:1x128"), 5 * size + 4 * size / 128);
    assert_eq!(bytes("e4m3fn:128x128"), 5 * size + 4 * 32 * 3);
}

#[test]
fn buffers_too_small_to_time_are_said() {
    let few = |size: &str| {
        let report = json(&bench(&[], &["--cpu-only", "--json", "--formats", "e4m3fn", "--size", size]), 0);
        report["notices"].as_array().unwrap().len()
    };
    assert_eq!((few("1"), few("2^20")), (1, 0));
    let output = bench(&[], &["--cpu-only", "--formats", "e4m3fn", "--size", "1", "--threads", "1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("buffers of 1 value are too small to time"), "{text}");
    assert!(text.contains("1 thread.") && !text.contains("1 values"), "{text}");
}

#[test]
fn blocks_are_compared_on_the_card_before_they_are_timed() {
    let names = [
        "mxfp8_e4m3",
        "mxfp8_e4m3:rceil",
        "mxfp8_e5m2",
        "mxfp8_e5m2:rceil",
        "e4m3fn:1x128",
        "e4m3fn:1x128:pow2",
    ];
    let formats = names.join(",");
    let arguments = ["--formats", &formats, "--json", "--size", "2^17"];
    let of_blocks = |report: &Value| -> Vec<(String, String, u64)> {
        let times = report["throughput"].as_array().unwrap().iter().filter(|time| time["device"] == "gpu");
        let blocks = times.filter(|time| time["format"].as_str().is_some_and(|name| names.contains(&name)));
        let text = |time: &Value, key: &str| time[key].as_str().unwrap().to_owned();
        blocks.map(|t| (text(t, "format"), text(t, "work"), t["bytes"].as_u64().unwrap())).collect()
    };
    let report = json(&bench(&[], &arguments), 0);
    let row = |name: &str, work: &str| {
        // One byte for 32 values, or four for 128.
        let scales = (1 << 17) / 32;
        (name.to_owned(), work.to_owned(), 5 * (1 << 17) + scales)
    };
    let mx = names[..4].iter().flat_map(|name| [row(name, "encode"), row(name, "decode")]);
    let all: Vec<_> = mx.chain(names[4..].iter().map(|name| row(name, "encode"))).collect();
    assert_eq!(of_blocks(&report), all);
    // The conversions of the elements are tried first.
    assert_eq!(results(&report)[0], ("float32→e4m3fn nearest-even x2", "equal"));
    // One wrong scale, and one wrong value on the way back.
    let wrong = |fault: &str, work: &str, names: &[&str], timed: &[(String, String, u64)]| {
        let report = json(&bench(&[("FAULT", fault)], &arguments), 1);
        assert_eq!(report["status"], "differs");
        let sentence = |name: &&str| format!("{name}: the {work} kernel for buffers gives wrong results");
        assert_eq!(
            report["wrong_kernels"],
            serde_json::json!(names.iter().map(sentence).collect::<Vec<_>>())
        );
        assert_eq!(of_blocks(&report), timed);
    };
    wrong("block@317", "encode", &names, &[]);
    let there: Vec<_> = names.iter().map(|name| row(name, "encode")).collect();
    wrong("back@3", "decode", &names[..4], &there);
}

#[test]
fn a_newer_chip_is_asked_for_its_conversions_from_and_to_16_bits() {
    // PTX 9.2 came with CUDA 13.2; that of 13.1 lacks the way from FP8, FP6 and FP4 to bfloat16 alone.
    for (driver, status) in [("13020", "equal"), ("13010", "driver too old")] {
        let settings = [("CAPABILITY", "103"), ("DRIVER", driver)];
        let report = json(&bench(&settings, &["--formats", "e2m1fn", "--json"]), 0);
        let expected = [
            ("float32→e2m1fn nearest-even x2", "equal"),
            ("float16→e2m1fn nearest-even x2", "equal"),
            ("bfloat16→e2m1fn nearest-even x2", "equal"),
            ("float32→e2m1fn stochastic x4", "equal"),
            ("e2m1fn→float16 x2", "equal"),
            ("e2m1fn→bfloat16 x2", status),
            ("float32→e2m1fn nearest-even x2→float32", "equal"),
        ];
        assert_eq!(results(&report), expected);
    }
}

#[test]
fn random_bits_are_read_off_where_they_are_open_and_held_to_ptx_where_they_are_not() {
    let bench = |random: &str, fault: &str, format: &str, code: i32| {
        let settings = [("CAPABILITY", "100"), ("RANDOM", random), ("FAULT", fault)];
        let settings = &settings[..if fault.is_empty() { 2 } else { 3 }];
        let report = json(&bench(settings, &["--formats", format, "--json"]), code);
        let mut entries = report["conversions"].as_array().unwrap().iter();
        entries.find(|entry| entry["conversion"].as_str().unwrap().contains("stochastic")).unwrap().clone()
    };
    let down = |first: u32| (0..8).map(|bit| first - bit).collect::<Vec<_>>();
    let up = |first: u32| (0..8).map(|bit| first + bit).collect::<Vec<_>>();
    // Each lane its own byte, or two lanes a half between them, from both ends.
    let bytes = [down(7), down(15), down(23), down(31)];
    let reversed = [down(15), up(0), down(31), up(16)];
    for format in ["e4m3fn", "e5m2", "e3m2fn", "e2m3fn"] {
        for (random, bits) in [("", &bytes), ("reversed", &reversed)] {
            let entry = bench(random, "", format, 0);
            assert_eq!(entry["random_bits_seen"], serde_json::json!(bits), "{format} {random}");
            // Ten operands in four lanes.
            assert_eq!((&entry["result"], &entry["inputs"]), (&"equal".into(), &(40_u64 << 32).into()));
        }
    }
    let entry = bench("reversed", "", "e2m1fn", 0);
    assert_eq!(entry["random_bits_seen"], serde_json::json!([down(23), up(0), down(31), up(8)]));
    let halves = |low: u32| -> Value {
        [0, 16].map(|half| (half..half + low).rev().collect::<Vec<_>>()).to_vec().into()
    };
    let entry = bench("", "", "bfloat16", 0);
    assert_eq!((&entry["result"], &entry["random_bits_seen"]), (&"equal".into(), &halves(16)));
    assert_eq!(entry["inputs"], 20_u64 << 32);
    // The third lane adds bits of the first.
    let entry = bench("foreign", "", "e4m3fn", 1);
    let why = "read off between 1 and the next number, lane 2 adds bit 7 of rbits, which is another's in PTX";
    assert_eq!((&entry["result"], &entry["why"]), (&"failed".into(), &why.into()));
    // A wrong result where the bits are read off.
    let entry = bench("", "rs.satfinite.e5m2x4.f32@3f810001", "e5m2", 1);
    assert_eq!((&entry["result"], &entry["random_bits_seen"]), (&"failed".into(), &serde_json::json!([])));
    // One wrong bit at 1.0078125, which 13 random bits take up or not.
    let entry = bench("", "rs.f16x2.f32@3f810001", "float16", 1);
    assert_eq!((&entry["result"], &entry["mismatches"]), (&"differs".into(), &20.into()));
    assert_eq!(entry["random_bits_seen"], halves(13));
    let last = &entry["first"][19];
    assert_eq!((&last["lane"], &last["random"]), (&"upper".into(), &"0x1f4a1d35".into()));
}

#[test]
fn all_that_the_newest_chip_has_is_found_right() {
    // A quick part of it, unless all is asked for.
    let formats = if exhaustive() { &[][..] } else { &["--formats", "e2m1fn,e8m0fnu,nvfp4"] };
    let mut arguments = vec!["--json", "--size", "2^17"];
    arguments.extend(formats);
    let settings = [("CAPABILITY", "100"), ("DRIVER", "13020")];
    let report = json(&bench(&settings, &arguments), 0);
    assert!(results(&report).iter().all(|(_, result)| *result == "equal"), "{:?}", results(&report));
    assert!(!exhaustive() || results(&report).len() == Job::all(&[]).len());
    assert_eq!(report["wrong_kernels"], serde_json::json!([]));
    let times = report["throughput"].as_array().unwrap();
    let nvfp4 = times.iter().find(|time| time["format"] == "nvfp4:te" && time["device"] == "gpu").unwrap();
    // Half a byte a value, and a byte for each 16.
    assert_eq!(nvfp4["bytes"], (4 << 17) + (1 << 16) + (1 << 13));
    if !exhaustive() {
        let output = bench(&[settings[0], settings[1], ("FAULT", "block@1")], &arguments);
        let wrong = "nvfp4:te: the encode kernel for buffers gives wrong results";
        assert_eq!(json(&output, 1)["wrong_kernels"], serde_json::json!([wrong]));
    }
}

/// Runs `bench-gpu --kernel` on a file with this text; the file's name goes out of what it says.
fn bench_kernel(settings: &[(&str, &str)], text: &str, has_compiler: bool) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.cu");
    std::fs::write(&path, text).unwrap();
    let libraries = match has_compiler {
        true => format!("{}:{}", fake(false).display(), fake_compiler().display()).into(),
        false => fake(false),
    };
    let arguments = ["--kernel", path.to_str().unwrap(), "--formats", "float16", "--json"];
    let mut output = bench_with(libraries, settings, &arguments);
    let said = String::from_utf8(output.stderr).unwrap().replace(path.to_str().unwrap(), "own.cu");
    output.stderr = said.into_bytes();
    output
}

#[test]
fn a_kernel_of_ones_own_is_compiled_and_compared() {
    let kernel = |mode: &str| {
        format!("__device__ unsigned cast(float x)\n{{\n    asm(\"cvt.{mode}.f16.f32 %0, %1;\" : …);\n}}\n")
    };
    // NVRTC writes PTX 8.8, which this driver is too old for.
    for settings in [&[][..], &[("DRIVER", "12040")]] {
        let report = json(&bench_kernel(settings, &kernel("rn"), true), 0);
        assert_eq!(
            (&report["status"], &report["conversions"][0]["inputs"]),
            (&"equal".into(), &(1_u64 << 32).into())
        );
    }
    let report = json(&bench_kernel(&[], &kernel("rz"), true), 1);
    let entry = &report["conversions"][0];
    // The smallest subnormal number is 2^-24: just above half of it is no zero.
    let first = &entry["first"][0];
    assert_eq!(
        (&first["input"], &first["gpu"], &first["expected"]),
        (&"0x33000001".into(), &"0x0000".into(), &"0x0001".into())
    );
    assert_eq!(report["status"], "differs");
}

#[test]
fn what_is_wrong_with_a_kernel_of_ones_own_is_said() {
    let said = |text: &str, has_compiler| {
        let output = bench_kernel(&[], text, has_compiler);
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        said("\n#error not \u{1b}[31myet\n", true),
        "amp-inspect: own.cu: NVRTC rejects it:\n  own.cu(2): error: #error not \\u{1b}[31myet\n  1 error detected.\n"
    );
    assert_eq!(
        said("__device__ unsigned cast(double x) { return 0; }", true),
        "amp-inspect: own.cu: it does not define  __device__ unsigned cast(float x)\n"
    );
    let missing = said("", false);
    assert!(
        missing.starts_with("amp-inspect: own.cu: --kernel needs NVRTC, and no libnvrtc was found: pip"),
        "{missing}"
    );
    assert_eq!(missing.lines().count(), 1);
}
