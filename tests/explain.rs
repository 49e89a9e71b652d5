//! `explain`: single values worked out by hand, every form of VALUE, and where a value lies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::cmp::Ordering;

use amp_inspect::cast::{Overflow, Rounding, round::cast};
use amp_inspect::format::decode::{CodeClass, classify, decode};
use amp_inspect::format::literal::{decimal, hexadecimal};
use amp_inspect::format::{pow2, table::FORMATS};
use amp_inspect::report::explain::Place;
use amp_inspect::report::number::{binary, brief, exact};
use common::{Random, amp_inspect, amp_inspect_at, printed, refused, row};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

fn explain(arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = ["explain", "--json"].iter().chain(arguments).copied().collect();
    serde_json::from_str(&printed(amp_inspect(&arguments))).unwrap()
}

/// Code, stored number and class of one value in one format.
#[track_caller]
fn becomes(value: &str, format: &str, more: &[&str], expected: (&str, f64, &str)) -> Value {
    let arguments: Vec<&str> = [value, "-f", format].iter().chain(more).copied().collect();
    let report = explain(&arguments);
    let row = &report["values"][0]["formats"][0];
    let stored = row["stored"].as_f64().unwrap_or_else(|| row["stored"].as_str().unwrap().parse().unwrap());
    let class = row["class"].as_str().unwrap();
    assert_eq!((row["code"].as_str().unwrap(), class), (expected.0, expected.2), "{value} in {format}");
    assert!(
        stored == expected.1 || (stored.is_nan() && expected.1.is_nan()),
        "{value} in {format}: {stored}"
    );
    row.clone()
}

#[test]
fn a_tenth_in_each_format() {
    becomes("0.1", "float16", &[], ("0x2e66", 0.0999755859375, "normal"));
    becomes("0.1", "bfloat16", &[], ("0x3dcd", 0.10009765625, "normal"));
    becomes("0.1", "e5m2", &[], ("0x2e", 0.09375, "normal"));
    becomes("0.1", "e2m1fn", &[], ("0x0", 0.0, "underflow"));
    let row = becomes("0.1", "e4m3fn", &[], ("0x1d", 0.1015625, "normal"));
    assert_eq!(row["fields"]["sign"], "0");
    assert_eq!(row["fields"]["exponent"], "0011");
    assert_eq!(row["fields"]["significand"], "101");
    assert_eq!(row["stored_binary"], "13·2^-7");
    assert_eq!(row["below"], serde_json::json!({"code": "0x1c", "value": 0.09375}));
    assert_eq!(row["above"], serde_json::json!({"code": "0x1d", "value": 0.1015625}));
    assert_eq!((row["tie"].as_f64(), row["side"].as_str()), (Some(0.09765625), Some("above")));
    assert_eq!((row["exact"].as_bool(), row["ulp"].as_f64()), (Some(false), Some(0.0078125)));
    assert!((row["error_pct"].as_f64().unwrap() - 1.5625).abs() < 1e-12);
    assert!((row["error_ulp"].as_f64().unwrap() - 0.2).abs() < 1e-12);
}

#[test]
fn thresholds_and_the_next_number_on_the_other_side() {
    let row = becomes("464", "e4m3fn", &[], ("0x7e", 448.0, "normal"));
    assert_eq!(
        (row["tie"].as_f64(), row["side"].as_str(), row["above"].is_null()),
        (Some(464.0), Some("at"), true)
    );
    let row = becomes("0x43e80001", "e4m3fn", &[], ("0x7e", 448.0, "overflow"));
    assert_eq!((row["overflow"].as_str(), row["side"].as_str()), (Some("saturate"), Some("above")));
    assert_eq!(row["ulp"], 32.0);
    let row = becomes("0x43e80001", "e4m3fn", &["--overflow", "ieee"], ("0x7f", f64::NAN, "overflow"));
    assert_eq!(
        (row["stored"].as_str(), row["error"].is_null(), row["error_ulp"].is_null()),
        (Some("nan"), true, true)
    );
    becomes("65519.996", "float16", &[], ("0x7bff", 65504.0, "normal"));
    becomes("65520", "float16", &[], ("0x7c00", f64::INFINITY, "overflow"));
    becomes("-65520", "float16", &[], ("0xfc00", f64::NEG_INFINITY, "overflow"));
    becomes("65520", "float16", &["--overflow", "saturate"], ("0x7bff", 65504.0, "overflow"));
    let row = becomes("0x1p-25", "float16", &[], ("0x0000", 0.0, "underflow"));
    assert_eq!((row["side"].as_str(), row["error_ulp"].as_f64()), (Some("at"), Some(-0.5)));
    becomes("0x33000001", "float16", &[], ("0x0001", pow2(-24), "subnormal"));
    becomes("0x1p-24", "float16", &[], ("0x0001", pow2(-24), "subnormal"));
    becomes("-0x3p-10", "e4m3fn", &[], ("0x82", -pow2(-8), "subnormal"));
}

#[test]
fn zeros_infinities_and_nans() {
    becomes("-0", "float16", &[], ("0x8000", 0.0, "zero"));
    becomes("-0", "e4m3fnuz", &[], ("0x00", 0.0, "zero"));
    becomes("0", "e8m0fnu", &["--overflow", "ieee"], ("0xff", f64::NAN, "zero"));
    becomes("nan", "float16", &[], ("0x7e00", f64::NAN, "nan"));
    becomes("-nan", "e4m3fn", &[], ("0xff", f64::NAN, "nan"));
    becomes("nan", "e4m3fnuz", &[], ("0x80", f64::NAN, "nan"));
    becomes("nan", "e2m1fn", &[], ("0x7", 6.0, "nan"));
    becomes("inf", "float16", &[], ("0x7c00", f64::INFINITY, "inf"));
    let row = becomes("-inf", "e4m3fn", &[], ("0xfe", -448.0, "inf"));
    assert!(row["error"].is_null() && row["tie"].is_null() && row["below"].is_null());
}

#[test]
fn every_form_of_value() {
    let forms: [(&[&str], f64); 19] = [
        (&["0.1"], 0.1),
        (&[".5"], 0.5),
        (&["5."], 5.0),
        (&["+1"], 1.0),
        (&["1e-8"], 1e-8),
        (&["-1e-8"], -1e-8),
        (&["-.5E+3"], -500.0),
        (&["-65520"], -65520.0),
        (&["inf"], f64::INFINITY),
        (&["-Infinity"], f64::NEG_INFINITY),
        (&["\u{2212}2"], -2.0),
        (&["0x1.8p-3"], 0.1875),
        (&["-0x1.8p-3"], -0.1875),
        (&["0X.8P+4"], 8.0),
        (&["0x1.8"], 1.5),
        (&["0x3f800001"], 1.0 + f64::from(f32::EPSILON)),
        (&["--from", "e4m3fn", "0x7e"], 448.0),
        (&["--from", "float64", "0x3fb999999999999a"], 0.1),
        (&["--from", "e5m3fn", "0x078"], 1.0),
    ];
    for (arguments, expected) in forms {
        let report = explain(arguments);
        let value = &report["values"][0]["value"];
        let value = value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap());
        assert_eq!(value, expected, "{arguments:?}");
    }
    let report = explain(&["--from", "float16", "0x7e00", "-f", "e5m2"]);
    assert_eq!(report["values"][0]["value"], "nan");
    assert_eq!(report["options"]["from"], "float16");
}

#[test]
fn values_may_stand_among_options() {
    let report = explain(&["-1", "-f", "float16,e5m2", "-inf", "--scale", "4", "-0x1p3", "-1e-3"]);
    let values = report["values"].as_array().unwrap();
    let inputs: Vec<&str> = values.iter().map(|value| value["input"].as_str().unwrap()).collect();
    assert_eq!(inputs, ["-1", "-inf", "-0x1p3", "-1e-3"]);
    assert!(values.iter().all(|value| value["formats"].as_array().unwrap().len() == 2));
    assert_eq!(values[2]["product"], -32.0);
    assert_eq!(values[2]["formats"][0]["stored"], -32.0);
    assert_eq!(values[2]["formats"][0]["dequantised"], -8.0);
}

#[test]
fn the_product_is_formed_in_the_precision_of_the_source() {
    // (1 + 2^-23)·3 takes 25 bits: a tie in float32, exact in float64.
    let [code, number] =
        ["0x3f800001", "0x1.000002p0"].map(|x| explain(&[x, "--scale", "3", "-f", "float32"]));
    assert_eq!(code["values"][0]["product"], 3.0 + pow2(-21));
    assert_eq!(number["values"][0]["product"], 3.0 + 3.0 * pow2(-23));
}

#[test]
fn says_what_float64_and_float32_hold() {
    let report = explain(&["0.1", "0.5", "16777217"]);
    let held = |value: usize, form: usize| &report["values"][value]["held"][form];
    assert_eq!(held(0, 0)["exact"], false);
    assert_eq!(held(0, 0)["decimal"], "0.1000000000000000055511151231257827021181583404541015625");
    assert_eq!(held(0, 1)["decimal"], "0.100000001490116119384765625");
    assert_eq!(held(0, 1)["code"], "0x3dcccccd");
    assert_eq!((&held(1, 0)["exact"], &held(1, 1)["exact"]), (&true.into(), &true.into()));
    assert_eq!((&held(2, 0)["exact"], &held(2, 1)["exact"]), (&true.into(), &false.into()));
    let shown = printed(amp_inspect(&["explain", "0.1", "0.5", "16777217"]));
    assert!(shown.contains("0.1 is not exactly a float64; the nearest one is cast:\n"));
    assert!(shown.contains("0.5 is exactly a float32\n"));
    assert!(shown.contains("16777217 is exactly a float64, but not a float32\n"));
}

#[test]
fn a_decimal_that_float64_rounds_to_a_tie_is_told() {
    let sentence = "• The number as typed is not halfway: float64 rounded it to the tie.";
    let shown = |value: &str| printed(amp_inspect(&["explain", value, "-f", "float16"]));
    assert!(shown("1.000488281250000000000001").contains(sentence));
    assert!(!shown("1.00048828125").contains(sentence));
    assert!(!shown("1.0004").contains(sentence));
}

#[test]
fn shares_are_a_hundred_only_if_all_is_lost() {
    let shown = printed(amp_inspect(&["explain", "65520", "1e-8", "-f", "e2m1fn"]));
    assert!(shown.contains("  -99.99  ") && shown.contains("  -100  "), "{shown}");
}

#[test]
fn one_sentence_for_what_is_no_value() {
    refused(
        &["explain", "abc"],
        "'abc' is no number: give a decimal (0.1, -1e-8, inf, nan), a hexadecimal float (0x1.8p-3) or the 8 hex \
         digits of a float32 (0x3f800001)",
    );
    refused(
        &["explain", "0x7e"],
        "'0x7e' is not the 8 hex digits of a float32; --from FORMAT reads codes of other formats (--from e4m3fn \
         0x7e), and a p makes a hexadecimal float (0x7ep0)",
    );
    refused(
        &["explain", "-0x3f800000"],
        "'-0x3f800000' has a sign before a code, whose sign is its top bit; a hexadecimal float has a p (-0x1p3)",
    );
    refused(&["explain", "0xzz"], "'0xzz' is not hexadecimal");
    refused(
        &["explain", "0x1.8p"],
        "'0x1.8p' is no hexadecimal float: it looks like 0x1.8p-3, which is 1.5·2^-3",
    );
    refused(&["explain", "1e400"], "'1e400' is too large for a float64, from which the casts are made");
    refused(&["explain", "-1e-400"], "'-1e-400' is too small for a float64, from which the casts are made");
    refused(&["explain", "0x1p1024"], "'0x1p1024' is too large for a float64, from which the casts are made");
    refused(
        &["explain", "--from", "e4m3fn", "0x17e"],
        "'0x17e' is no code of e4m3fn: it has more than 8 bits",
    );
    refused(
        &["explain", "--from", "e4m3fn", "448"],
        "'448' is no code of e4m3fn: a code is written in hex, such as 0x7e",
    );
    refused(
        &["explain", "\u{1b}[2J"],
        "'\\u{1b}[2J' is no number: give a decimal (0.1, -1e-8, inf, nan), a hexadecimal float (0x1.8p-3) or the \
         8 hex digits of a float32 (0x3f800001)",
    );
    // Before any work: the file's name alone is wrong.
    refused(
        &["explain", "abc", "--save", "x.png"],
        "x.png: cannot save: this command draws no picture; the extensions are .json, .csv, .md",
    );
    for arguments in [&["explain"][..], &["explain", "1", "--from", "e9m9"], &["explain", "1", "--zzz"]] {
        assert_eq!(amp_inspect(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let values = [
        "0.1",
        "-65520",
        "1e-42",
        "464",
        "inf",
        "nan",
        "-0",
        "123456.789",
        "-1e-8",
        "1e30",
        "0x3f800001",
        "0.1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
    ];
    let all = FORMATS.iter().map(|row| row.name).collect::<Vec<_>>().join(",");
    for formats in ["float16,bfloat16,e5m2,e4m3fn,e3m2fn,e2m3fn,e2m1fn", "float32,e4m3b11fnuz", &all] {
        for scale in ["1", "1000", "2^-100"] {
            for columns in [80, 100, 200] {
                let arguments: Vec<&str> =
                    ["explain"].into_iter().chain(values).chain(["-f", formats, "--scale", scale]).collect();
                for line in printed(amp_inspect_at(columns, &arguments)).lines() {
                    assert!(line.width() <= columns, "{formats} ×{scale}, {columns} columns: {line:?}");
                }
            }
        }
    }
}

#[test]
fn csv_and_markdown_have_a_row_for_each_value_and_format() {
    let csv = printed(amp_inspect(&["explain", "0.1", "nan", "-f", "float16,e4m3fn", "--csv"]));
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(reader.records().map(|record| record.unwrap().len()).collect::<Vec<_>>(), [22; 4]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.md");
    printed(amp_inspect(&[
        "explain",
        "0.1",
        "nan",
        "-f",
        "float16,e4m3fn",
        "--save",
        path.to_str().unwrap(),
    ]));
    let markdown = std::fs::read_to_string(path).unwrap();
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| float16 | `0x")).count(), 2);
    assert_eq!(explain(&["0.1", "nan"])["values"].as_array().unwrap().len(), 2);
}

/// Between every two neighbours of every small format: the tie, and one ulp either side.
#[test]
fn the_place_of_a_value_is_where_the_cast_decides() {
    for format in common::small_rows().filter(|row| row.bits <= 8) {
        let finite = |code: &u32| {
            matches!(classify(format, *code), CodeClass::Normal | CodeClass::Subnormal | CodeClass::Zero)
        };
        let mut numbers: Vec<f64> =
            (0..1 << format.bits).filter(finite).map(|code| decode(format, code)).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        for pair in numbers.windows(2) {
            let (below, above) = (pair[0], pair[1]);
            let tie = f64::midpoint(below, above);
            for (x, side) in [
                (tie, Ordering::Equal),
                (tie.next_up(), Ordering::Greater),
                (tie.next_down(), Ordering::Less),
            ] {
                let place = Place::of(format, x);
                assert!(!place.exact, "{} {x:e}", format.name);
                assert_eq!(place.below.map(|n| n.value), Some(below), "{} {x:e}", format.name);
                assert_eq!(place.above.map(|n| n.value), Some(above), "{} {x:e}", format.name);
                assert_eq!((place.tie, place.side(x), place.ulp), (Some(tie), Some(side), above - below));
                let stored = cast(format, Rounding::NearestEven, Overflow::Saturate, x).value(format);
                let nearest = if side.is_gt() { above } else { below };
                assert!(stored == nearest || (side.is_eq() && stored == above), "{} {x:e}", format.name);
            }
            let place = Place::of(format, below);
            assert!(place.exact && place.tie.is_none());
            assert_eq!(place.above.map(|n| n.value), Some(above), "{} above {below:e}", format.name);
            assert_eq!(
                Place::of(format, above).below.map(|n| n.value),
                Some(below),
                "{} below {above:e}",
                format.name
            );
        }
        let largest = format.max_finite();
        for x in [largest * 1.01, format.overflow_threshold(), largest * 1e6] {
            let place = Place::of(format, x);
            assert_eq!(place.below.map(|n| n.value), Some(largest), "{} {x:e}", format.name);
            assert_eq!((place.above, place.tie), (None, Some(format.overflow_threshold())));
        }
        assert_eq!(Place::of(format, largest).above, None);
    }
    let e8m0 = row("e8m0fnu");
    let place = Place::of(&e8m0, -1.0);
    assert_eq!((place.below, place.above.map(|n| n.code), place.tie), (None, Some(0), None));
}

#[test]
fn hexadecimal_floats_are_rounded_once() {
    let cases = [
        ("0x1.00000000000008p0", 1.0, false),
        ("0x1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON, false),
        ("0x1.00000000000008000000000000000001p0", 1.0 + f64::EPSILON, false),
        ("0x1.00000000000007ffffffffffffffffffp0", 1.0, false),
        ("0x000000000000000000000001.80p0", 1.5, true),
        ("0x1.0000000000000000000000000000p0", 1.0, true),
        ("0x10000000000000000000000p-88", 1.0, true),
        ("0x0.0000000000001p-1022", pow2(-1074), true),
        ("0x1.8p-1075", pow2(-1074), false),
        ("0x1.8p-1074", 2.0 * pow2(-1074), false),
        ("0x1.fffffffffffffp1023", f64::MAX, true),
        ("0x0p99999", 0.0, true),
    ];
    for (text, value, is_exact) in cases {
        let read = hexadecimal(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((read.value, read.exact), (value, is_exact), "{text}");
    }
    for text in [
        "0x1p-1075",
        "0x1.fffffffffffff8p1023",
        "0x",
        "0x.p1",
        "0x1.2.3p0",
        "0x1p",
        "0x1p+-1",
        "1p3",
        "0xgp0",
    ] {
        assert!(hexadecimal(text).is_err(), "{text}");
    }
    // To float32 at once: by way of float64 the rest would be lost and the tie go down.
    let read = hexadecimal("0x1.000001000000000000001p0").unwrap();
    assert_eq!((read.value, read.single), (1.0 + pow2(-24), 1.0 + f32::EPSILON));
    assert_eq!(hexadecimal("0x1.ffffffp127").unwrap().single, f32::INFINITY);
    let mut random = Random(7);
    for _ in 0..10_000 {
        let x = f64::from_bits(random.bits());
        if !x.is_finite() || x == 0.0 {
            continue;
        }
        let bits = x.to_bits();
        let (field, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        let (lead, exponent) = if field == 0 { (0, -1022) } else { (1, field - 1023) };
        let sign = if x < 0.0 { "-" } else { "" };
        let read = hexadecimal(&format!("{sign}0x{lead}.{fraction:013x}p{exponent}")).unwrap();
        assert_eq!((read.value, read.exact, read.single), (x, true, x as f32));
    }
}

#[test]
fn a_decimal_is_exact_only_if_it_is_the_number_itself() {
    for text in ["0.5", "5e-1", "0.50000", "050e-2", "-0", "0e99999999999999999999", "1e22"] {
        assert!(decimal(text).unwrap().exact, "{text}");
    }
    for text in ["0.3", "1e23", "9007199254740993", "0.50000000000000000000000000000000000000001"] {
        assert!(!decimal(text).unwrap().exact, "{text}");
    }
    let mut random = Random(11);
    for _ in 0..2_000 {
        let x = random.number(-1060..=1000);
        let text = exact(x);
        assert_eq!((decimal(&text).unwrap().value, decimal(&text).unwrap().exact), (x, true), "{text}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let point = if digits.contains('.') { "" } else { "." };
        let more = format!("{digits}{point}01e{power}");
        assert!(!decimal(&more).unwrap().exact, "{more}");
    }
}

#[test]
fn numbers_are_written_exactly_or_said_to_fit() {
    for (x, text) in [
        (448.0, "7·2^6"),
        (-0.375, "-3·2^-3"),
        (pow2(-1074), "2^-1074"),
        (1.0, "1"),
        (28.0, "28"),
        (32.0, "2^5"),
        (0.0, "0"),
        (f64::INFINITY, "inf"),
    ] {
        assert_eq!(binary(x), text);
    }
    assert_eq!(brief(0.0999755859375, 15), "0.0999755859375");
    assert_eq!(brief(0.0999755859375, 13), "0.09997558594");
    for x in [0.1 + 0.2, -1.0 / 3.0, 1e-8 / 3.0, 1e30 / 7.0, 123456.789012345] {
        for width in 9..=17 {
            let text = brief(x, width);
            let read: f64 = text.parse().unwrap();
            assert!(text.len() <= width && ((read - x) / x).abs() < 0.01, "{x} in {width}: {text}");
        }
    }
}
