//! `verify`: this tool's code passes, the faults of others are counted, and a wrong back end is caught.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::num::NonZero;

use amp_inspect::cast::{CastPlan, Overflow, Place, Rounding};
use amp_inspect::report::style::{Paint, View};
use amp_inspect::report::verify::VerifyReport;
use amp_inspect::verify::{self, Check, Convert, Implementation, Inputs, Kind, Maker, Outcome, Tally};
use common::{amp_inspect, amp_inspect_at, printed, refused, row};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

fn checks(arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = ["verify", "--json"].iter().chain(arguments).copied().collect();
    serde_json::from_str(&printed(amp_inspect(&arguments))).unwrap()
}

/// Sum of the counts of the differences of one implementation that `wanted` lets through.
fn differing(report: &Value, implementation: &str, source: &str, wanted: fn(&Value) -> bool) -> u64 {
    let checks = report["checks"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|check| check["implementation"] == implementation && check["source"] == source)
        .unwrap_or_else(|| panic!("{implementation} is not compared"));
    let differences = check["differences"].as_array().unwrap().iter();
    differences.filter(|class| wanted(class)).map(|class| class["count"].as_u64().unwrap()).sum()
}

#[test]
fn every_named_format_passes() {
    let shown = printed(amp_inspect(&["verify"]));
    assert!(shown.contains("PASSED: this tool's SIMD code equals the definition"), "{shown}");
    assert!(!shown.contains("not known before"), "{shown}");
    assert!(!shown.contains("A FAULT"), "{shown}");
    for line in shown.lines() {
        assert!(line.width() <= 80, "{line:?}");
    }
}

#[test]
fn faults_of_half_from_float64_are_counted() {
    let report = checks(&["--formats", "float16,bfloat16"]);
    let above = |class: &Value| class["input"] == "just above a tie";
    let below = |class: &Value| class["input"] == "just below a tie";
    // Half of the 31 744 ties of float16 and 32 640 of bfloat16, of both signs.
    assert_eq!(differing(&report, "f16::from_f64_const", "float64", above), 31_744);
    assert_eq!(differing(&report, "f16::from_f64_const", "float64", below), 0);
    assert_eq!(differing(&report, "f16::from_f64", "float64", above), 31_744);
    assert_eq!(differing(&report, "bf16::from_f64", "float64", above), 32_640);
    assert_eq!(differing(&report, "bf16::from_f64", "float64", below), 0);
    let f16c = report["machine"]["instructions"].as_array().unwrap().contains(&"vcvtps2ph rn".into());
    if f16c {
        assert_eq!(differing(&report, "f16::from_f64", "float64", below), 31_744);
    }
    for implementation in ["f16::from_f32", "bf16::from_f32"] {
        assert_eq!(differing(&report, implementation, "float32", |class| class["input"] != "NaN"), 0);
    }
}

#[test]
fn saturation_of_float8_is_shown() {
    let report = checks(&["--formats", "e5m2,e4m3fn"]);
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["implementation"] == "F8E5M2::from_f32").unwrap();
    let differences = check["differences"].as_array().unwrap();
    let overflow = differences.iter().find(|class| class["input"] == "overflow").unwrap();
    assert_eq!(overflow["result"], "saturates");
    assert_eq!(
        overflow["known"]["why"].as_str().unwrap().split(',').next(),
        Some("always saturates at 57344")
    );
    let first = &overflow["first"][0];
    assert_eq!((&first["input"], &first["input_value"]), (&"0x47700000".into(), &61440.0.into()));
    assert_eq!((&first["definition"], &first["found"]), (&"0x7c".into(), &"0x7b".into()));
    assert_eq!((&first["definition_value"], &first["found_value"]), (&"inf".into(), &57344.0.into()));
    for source in ["float32", "float64"] {
        let implementation = if source == "float32" { "F8E4M3::from_f32" } else { "F8E4M3::from_f64" };
        assert_eq!(differing(&report, implementation, source, |_| true), 0);
    }
}

/// An implementation that equals the definition but where `wrong` says otherwise.
fn claimed(plan: CastPlan, wrong: fn(f32, u32) -> u32) -> Implementation {
    let convert = move |xs: &[f32], codes: &mut [u64]| {
        for (&x, code) in xs.iter().zip(codes) {
            *code = wrong(x, plan.cast_f32(x, Place::default()).code).into();
        }
    };
    Implementation::new(Maker::Ours, "wrong", Convert::Float32(Box::new(convert)))
}

fn tally(check: Check) -> (Check, Tally) {
    let mut tallies = verify::run(std::slice::from_ref(&check), NonZero::new(2).unwrap(), |_| ());
    (check, tallies.remove(0).remove(0))
}

#[test]
fn a_wrong_back_end_fails_with_its_first_inputs() {
    let plan = CastPlan::new(row("float16"));
    let wrong = claimed(plan, |x, code| if x.abs() > 1000.0 && x.abs() < 2000.0 { code ^ 1 } else { code });
    let check = Check::of_float32(plan, Check::quick_float32(&plan), vec![wrong]);
    let (check, tally) = tally(check);
    let differences = tally.differences();
    let [difference] = &*differences else { panic!("{differences:?}") };
    assert_eq!((difference.kind, difference.outcome), (Kind::Normal, Outcome::Neighbour));
    assert_eq!(difference.count, tally.differing());
    let first: Vec<(u64, u64, u64)> =
        difference.first.iter().map(|example| (example.input, example.defined, example.found)).collect();
    // The first float32 above 1000, which float16 has as 0x63d0; then the first tie and its lower neighbour.
    let tie = 0x447a_1000;
    assert_eq!(first, [(0x447a_0001, 0x63d0, 0x63d1), (tie - 1, 0x63d0, 0x63d1), (tie, 0x63d0, 0x63d1)]);

    let report = VerifyReport::new(&[check], &[vec![tally]], false);
    assert!(!report.passed);
    let mut shown = Vec::new();
    let view = View { width: 80, paint: Paint { on: false }, top: 0 };
    report.terminal(&view, &mut shown).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    for text in [
        "FAILED: this tool's SIMD code differs from the definition in ",
        "A FAULT OF THIS TOOL",
        "wrong: float32 to float16, nearest-even, overflow ieee, NaN canonical",
        "normal → neighbour  0x447a0001: 0x63d1, not 0x63d0",
    ] {
        assert!(shown.contains(text), "{text} is not in\n{shown}");
    }
}

#[test]
fn differences_are_told_for_what_they_are() {
    type Case = (&'static str, fn(f32, u32) -> u32, Kind, Outcome);
    const CASES: &[Case] = &[
        ("float16", |x, q| if x.is_nan() { q | 1 } else { q }, Kind::Nan, Outcome::NanPayload),
        ("float16", |x, q| if x.is_nan() { q ^ 0x8000 } else { q }, Kind::Nan, Outcome::NanSign),
        ("float16", |x, q| if x.is_nan() { 0x7c00 } else { q }, Kind::Nan, Outcome::BecomesInf),
        ("e2m1fn", |x, q| if x.is_nan() { 0 } else { q }, Kind::Nan, Outcome::BecomesZero),
        ("float16", |x, q| if x.is_infinite() { 0x7bff } else { q }, Kind::Inf, Outcome::Saturates),
        ("float16", |x, q| if x.is_infinite() { 0x7e00 } else { q }, Kind::Inf, Outcome::BecomesNan),
        ("float16", |x, q| if x == 65520.0 { 0x7bff } else { q }, Kind::Overflow, Outcome::Saturates),
        ("e4m3fn", |x, q| if x > 464.0 && x < 465.0 { 0x7f } else { q }, Kind::Overflow, Outcome::BecomesNan),
        ("float16", |x, q| if x == 0.0 { q ^ 0x8000 } else { q }, Kind::Zero, Outcome::Sign),
        ("float16", |x, q| if x == 2.0 { q ^ 0x8000 } else { q }, Kind::Normal, Outcome::Sign),
        ("float16", |x, q| if x == 2.0 { q + 2 } else { q }, Kind::Normal, Outcome::Other),
        ("float16", |x, q| if x == 2.0 { q | 0x10000 } else { q }, Kind::Normal, Outcome::NoCode),
        (
            "e5m2",
            |x, q| if x == 1.5 * 2_f32.powi(-15) { 0 } else { q },
            Kind::Subnormal,
            Outcome::BecomesZero,
        ),
        ("e5m2", |x, q| if x == 2_f32.powi(-17) { 1 } else { q }, Kind::Underflow, Outcome::Neighbour),
        (
            "bfloat16",
            |x, q| if x.is_subnormal() { q & 0x8000 } else { q },
            Kind::SubnormalInput,
            Outcome::BecomesZero,
        ),
    ];
    for &(name, wrong, kind, outcome) in CASES {
        let plan = CastPlan::new(row(name));
        let check = Check::of_float32(plan, Check::quick_float32(&plan), vec![claimed(plan, wrong)]);
        let (_, tally) = tally(check);
        let differences = tally.differences();
        let found: Vec<_> = differences.iter().map(|class| (class.kind, class.outcome)).collect();
        assert_eq!(found, [(kind, outcome)], "{name} {kind:?} {outcome:?}");
    }
}

#[test]
fn counts_do_not_depend_on_the_threads() {
    let formats = ["verify", "--formats", "float16,e5m2", "--json", "--threads"];
    let of = |threads: &str| {
        let arguments: Vec<&str> = formats.iter().copied().chain([threads]).collect();
        printed(amp_inspect(&arguments))
    };
    assert_eq!(of("1"), of("3"));
}

#[test]
fn a_list_of_inputs_is_tried_as_given() {
    let plan = CastPlan {
        rounding: Rounding::TowardZero,
        overflow: Overflow::Saturate,
        ..CastPlan::new(row("e4m3fn"))
    };
    let inputs = Inputs::List([1.99_f32, 1e9].map(|x| u64::from(x.to_bits())).into());
    let (check, tally) = tally(Check::of_float32(plan, inputs, vec![claimed(plan, |_, code| code)]));
    assert_eq!((tally.inputs, tally.differing()), (2, 0));
    assert_eq!(check.defined(1.99_f32.to_bits().into()), 0x3f);
}

#[test]
fn outputs_and_usage() {
    let text = printed(amp_inspect(&["verify", "--formats", "e5m2", "--csv"]));
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let heads = csv.headers().unwrap().clone();
    let rows: Vec<_> = csv.records().map(Result::unwrap).collect();
    assert!(rows.iter().any(|row| row.iter().zip(&heads).any(|pair| pair == ("saturates", "result"))));
    for columns in [80, 120, 200] {
        for line in printed(amp_inspect_at(columns, &["verify", "--formats", "float16,bf16"])).lines() {
            assert!(line.width() <= columns, "{line:?}");
        }
    }
    refused(
        &["verify", "--formats", "e8m20b140"],
        "there is no second implementation of these formats to compare with",
    );
    assert_eq!(amp_inspect(&["verify", "--formats", "e9m9"]).status.code(), Some(2));
    assert_eq!(amp_inspect(&["verify", "--json", "--csv"]).status.code(), Some(2));
}
