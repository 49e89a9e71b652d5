//! `formats`: parameters worked out by hand, and codes counted one by one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use amp_inspect::format::decode::{CodeClass, classify, decode};
use amp_inspect::format::table::FORMATS;
use common::{amp_inspect, amp_inspect_at, printed, refused, row, small_rows};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

fn formats(arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = ["formats", "--json"].iter().chain(arguments).copied().collect();
    serde_json::from_str(&printed(amp_inspect(&arguments))).unwrap()
}

#[test]
fn parameters_by_hand() {
    // name, largest, threshold, whether it overflows, smallest normal, smallest subnormal, becomes zero
    let expected = [
        ("fp16", "2047·2^5", "4095·2^4", true, "2^-14", "2^-24", "2^-25"),
        ("bf16", "255·2^120", "511·2^119", true, "2^-126", "2^-133", "2^-134"),
        ("e5m2", "7·2^13", "15·2^12", true, "2^-14", "2^-16", "2^-17"),
        ("e4m3fn", "7·2^6", "29·2^4", false, "2^-6", "2^-9", "2^-10"),
        ("e4m3ieee", "15·2^4", "31·2^3", true, "2^-6", "2^-9", "2^-10"),
        ("e2m1fn", "6", "7", true, "1", "2^-1", "2^-2"),
        ("e5m3fn", "7·2^14", "29·2^12", false, "2^-14", "2^-17", "2^-18"),
    ];
    for (name, largest, threshold, tie, normal, subnormal, zero) in expected {
        let report = formats(&[name]);
        let format = &report["formats"][0];
        let text = |key: &str| format["binary"][key].as_str().unwrap();
        let found = (
            text("max_finite"),
            text("overflow_threshold"),
            format["overflow_includes_threshold"].as_bool().unwrap(),
            text("min_normal"),
            text("min_subnormal"),
            text("flush_threshold"),
        );
        assert_eq!(found, (largest, threshold, tie, normal, subnormal, zero), "{name}");
    }
    let e8m0 = &formats(&["e8m0"])["formats"][0];
    assert!(e8m0["min_subnormal"].is_null() && e8m0["flush_threshold"].is_null());
    let e4m3fn = &formats(&["E4M3"])["formats"][0];
    assert_eq!((&e4m3fn["nan_codes"], &e4m3fn["nan_code"]), (&2.into(), &"0x7f".into()));
    assert_eq!((&e4m3fn["emin"], &e4m3fn["emax"]), (&(-6).into(), &8.into()));
    assert_eq!(e4m3fn["binary"]["max_subnormal"], "7·2^-9");
    assert_eq!((&e4m3fn["max_finite"], &e4m3fn["flush_threshold"]), (&448.0.into(), &0.0009765625.into()));
    assert!(e4m3fn["infinity_code"].is_null());
}

#[test]
fn every_row_is_there_and_its_codes_add_up() {
    let report = formats(&[]);
    let entries = report["formats"].as_array().unwrap();
    assert_eq!(
        entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect::<Vec<_>>(),
        FORMATS.iter().map(|row| row.name).collect::<Vec<_>>()
    );
    for (entry, format) in entries.iter().zip(FORMATS).filter(|(_, format)| format.bits <= 19) {
        let count = |wanted: fn(CodeClass) -> bool| {
            (0..1_u32 << format.bits).filter(|&code| wanted(classify(format, code))).count() as u64
        };
        assert_eq!(entry["nan_codes"], count(|class| class == CodeClass::Nan), "{}", format.name);
        let finite = count(|class| !matches!(class, CodeClass::Nan | CodeClass::Infinite));
        assert_eq!(entry["finite_codes"], finite, "{}", format.name);
        let has_negative_zero = (0..1_u32 << format.bits)
            .any(|code| decode(format, code) == 0.0 && decode(format, code).is_sign_negative());
        assert_eq!(entry["negative_zero"], has_negative_zero, "{}", format.name);
    }
}

#[test]
fn one_format_is_shown_with_its_names_and_source() {
    let shown = printed(amp_inspect(&["formats", "fp8"]));
    for text in [
        "448 = 7·2^6",
        "above 464 = 29·2^4",
        "also called float8_e4m3fn, e4m3, fp8,",
        "OFP8",
        "0.001953125 = 2^-9",
    ] {
        assert!(shown.contains(text), "{text} is not in\n{shown}");
    }
    let same = printed(amp_inspect(&["formats", "fp8", "e4m3fn", "float8_e4m3fn"]));
    assert_eq!(shown, same, "once under whatever name");
    assert!(printed(amp_inspect(&["formats", "e5m3"])).contains("described on the command line"));
}

#[test]
fn codes_of_small_formats() {
    for format in small_rows().filter(|row| row.bits <= 8) {
        let report = formats(&["--codes", format.name]);
        let codes = report["codes"].as_array().unwrap();
        assert_eq!(codes.len(), 1 << format.bits, "{}", format.name);
        for (code, entry) in (0_u32..).zip(codes) {
            let value = &entry["value"];
            let value = value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap());
            let expected = decode(format, code);
            assert!(value == expected || (value.is_nan() && expected.is_nan()), "{} {code:#x}", format.name);
            let fields = &entry["fields"];
            let bits: String =
                ["sign", "exponent", "significand"].map(|f| fields[f].as_str().unwrap()).concat();
            assert_eq!((u32::from_str_radix(&bits, 2).unwrap(), bits.len()), (code, format.bits as usize));
        }
    }
    let shown = printed(amp_inspect(&["formats", "--codes", "e2m1fn"]));
    assert!(shown.contains("0xb   1|01|1      -1.5  -3·2^-1  normal\n"), "{shown}");
}

#[test]
fn what_cannot_be_shown_is_told() {
    refused(
        &["formats", "--codes", "fp16"],
        "float16 has 65536 codes: only formats of up to 8 bits are listed (explain --from float16 CODE decodes \
         single ones)",
    );
    refused(
        &["formats", "--save", "no/such/x.svg"],
        "no/such/x.svg: cannot save: this command draws no picture; the extensions are .json, .csv, .md",
    );
    for arguments in
        [&["formats", "e9m9"][..], &["formats", "fp8", "--codes", "fp8"], &["formats", "--json", "--csv"]]
    {
        assert_eq!(amp_inspect(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut shown: Vec<Vec<&str>> = vec![vec!["formats"], vec!["formats", "fp16", "bf16", "fp8", "e5m2"]];
    shown.extend(FORMATS.iter().map(|row| vec!["formats", row.name]));
    shown.extend(FORMATS.iter().filter(|row| row.bits <= 8).map(|row| vec!["formats", "--codes", row.name]));
    for arguments in &shown {
        for columns in [80, 120, 200] {
            for line in printed(amp_inspect_at(columns, arguments)).lines() {
                assert!(line.width() <= columns, "{arguments:?}, {columns} columns: {line:?}");
            }
        }
    }
}

#[test]
fn csv_has_a_row_for_each_format_and_code() {
    let rows = |arguments: &[&str]| {
        let text = printed(amp_inspect(arguments));
        csv::Reader::from_reader(text.as_bytes()).records().map(Result::unwrap).count()
    };
    assert_eq!(rows(&["formats", "--csv"]), FORMATS.len());
    assert_eq!(rows(&["formats", "--codes", "e3m2fn", "--csv"]), 1 << row("e3m2fn").bits);
}

#[test]
fn a_block_format_is_said_to_be_one() {
    let output = amp_inspect(&["formats", "mxfp8"]);
    let said = "mxfp8_e4m3 is a block format: its elements are e4m3fn, and those of a block share a scale in e8m0fnu";
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(said));
}
