//! The picture of a report: what it shows, that its files are well formed, and that nothing collides.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use amp_inspect::cast::{CastPlan, Target};
use amp_inspect::format::{find, pow2, table::FORMATS};
use amp_inspect::report::Report;
use amp_inspect::report::histogram::{HistogramReport, Input, Options};
use amp_inspect::report::picture::{self, Anchor, Colour, Item, Picture, TextStyle};
use amp_inspect::stats::{Accumulate, Merge, StatsPlan, TensorAccumulator, TensorStats};
use amp_inspect::tensor::{ByteOrder, Chunk, Dtype, TensorInfo};

const USUAL: [&str; 7] = ["float16", "bfloat16", "e5m2", "e4m3fn", "e3m2fn", "e2m3fn", "e2m1fn"];

fn report(path: &str, formats: &[&str], scale: f32, tensors: &[(String, Vec<f64>)]) -> HistogramReport {
    let casts: Vec<_> =
        formats.iter().map(|name| CastPlan { scale, ..CastPlan::new(find(name).unwrap()) }).collect();
    let plan = StatsPlan::new(casts);
    let options = Options::at_scale(scale);
    let mut report = HistogramReport::new(plan.casts().iter().copied(), options);
    let elements = tensors.iter().map(|(_, values)| values.len() as u64).sum();
    report.inputs.push(Input {
        step: None,
        rank: None,
        path: path.to_owned(),
        metadata: Vec::new(),
        tensors: tensors.len() as u64,
        elements,
        bytes: 4 * elements,
    });
    let mut total = TensorStats::default();
    for (name, values) in tensors {
        let mut accumulator = TensorAccumulator::new(&plan, "t", 0);
        let singles: Vec<_> = values.iter().map(|&x| x as f32).collect();
        let exact = values.iter().zip(&singles).all(|(&x, &single)| x.is_nan() || x == f64::from(single));
        accumulator.observe(0, if exact { Chunk::F32(&singles) } else { Chunk::F64(values) });
        let stats = accumulator.finish();
        total.merge(&stats);
        let info = TensorInfo {
            name: name.clone(),
            shape: vec![values.len() as u64],
            dtype: Dtype::Float(find("float32").unwrap()),
            byte_order: ByteOrder::Little,
            elements: values.len() as u64,
        };
        report.push(0, &info, stats, &[]);
    }
    if tensors.is_empty() {
        total = TensorAccumulator::new(&plan, "t", 0).finish();
    }
    report.conclude(&total, &[]);
    report
}

/// Values with something like the spread of gradients: a bump of `width` binades around 2^`middle`.
fn bump(middle: f64, width: f64, count: usize) -> Vec<f64> {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut value = |_| {
        let bell: f64 = (0..6).map(|_| uniform()).sum::<f64>() - 3.0;
        let sign = if uniform() < 0.5 { -1.0 } else { 1.0 };
        ((sign * (middle + width * bell).exp2()) as f32).into()
    };
    (0..count).map(&mut value).collect()
}

fn named(name: &str, values: Vec<f64>) -> Vec<(String, Vec<f64>)> {
    vec![(name.to_owned(), values)]
}

/// Every case that a layout might fail on.
fn cases() -> Vec<(&'static str, HistogramReport)> {
    let all: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
    let many: Vec<_> = all.iter().copied().cycle().take(16).collect();
    let crowd: Vec<_> = all.iter().copied().cycle().take(24).collect();
    let mut spoilt = bump(-20.0, 6.0, 20_000);
    spoilt.extend([0.0; 700]);
    spoilt.extend([f64::NAN, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f32::MAX.into()]);
    let wide = (-140..110).map(|exponent| 1.5 * pow2(exponent)).collect();
    let doubles = (-1074..1024).map(pow2).collect();
    let two = vec![("a".into(), bump(-18.0, 4.0, 9000)), ("b".into(), bump(-9.0, 1.0, 3000))];
    let long = format!("/{}/step_000123.safetensors", "runs/a-rather-long-name".repeat(40));
    let mut incomplete = report(&long, &USUAL, 0.125, &two);
    incomplete.inputs.extend(vec![incomplete.inputs[0].clone(); 1234]);
    incomplete.problems.push("broken.npy: it ends early".into());
    vec![
        ("none", report("empty.safetensors", &USUAL, 1.0, &[])),
        ("zeros", report("zeros.npy", &USUAL, 1024.0, &named("w", vec![0.0; 4096]))),
        ("binade", report("ones.npy", &USUAL, 1.0, &named("w", vec![1.25; 100]))),
        ("wide", report("wide.npy", &USUAL, 1.0, &named("w", wide))),
        ("doubles", report("doubles.npy", &USUAL, 1.0, &named("w", doubles))),
        ("one_format", report("grads.npz", &["float16"], 1.0, &named("w", bump(-24.0, 5.0, 50_000)))),
        ("no_format", report("grads.npz", &[], 1.0, &named("w", bump(-24.0, 5.0, 50_000)))),
        ("sixteen", report("grads.npz", &many, 1.0, &named("w", bump(-24.0, 5.0, 50_000)))),
        ("crowd", report("grads.npz", &crowd, 1.0, &named("w", bump(-24.0, 5.0, 50_000)))),
        ("scaled", report("grads.npz", &USUAL, 65536.0, &two)),
        ("spoilt", report("crash.safetensors", &USUAL, 1.0, &named(&"layer.".repeat(90), spoilt))),
        ("incomplete", incomplete),
    ]
}

/// Where pictures are left for a person to look at, if one asks for them.
fn keep(name: &str, picture: &Picture) {
    if let Some(folder) = std::env::var_os("AMP_INSPECT_PICTURES") {
        let path = std::path::Path::new(&folder).join(name);
        std::fs::write(path.with_extension("png"), picture::to_png(picture).unwrap()).unwrap();
        std::fs::write(path.with_extension("svg"), picture::to_svg(picture).unwrap()).unwrap();
    }
}

fn texts(svg: &[u8]) -> Vec<String> {
    let svg = std::str::from_utf8(svg).unwrap();
    let document = roxmltree::Document::parse(svg).unwrap();
    let text =
        document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    text.map(|node| node.text().unwrap_or_default().trim().to_owned()).collect()
}

#[test]
fn no_text_overlaps_another_or_leaves_the_picture() {
    for (name, report) in cases() {
        let picture = report.picture().unwrap();
        keep(name, &picture);
        let (width, height) = picture.size();
        let boxes: Vec<_> =
            picture.items().iter().filter_map(|item| Some((item, item.text_bounds()?))).collect();
        for (index, (item, a)) in boxes.iter().enumerate() {
            assert!(a[0] >= 0.0 && a[1] >= 0.0, "{name}: {item:?} sticks out at {a:?}");
            assert!(a[2] <= width.into() && a[3] <= height.into(), "{name}: {item:?} sticks out at {a:?}");
            let Item::Text { style, .. } = item else { panic!("only texts have bounds") };
            assert!(style.size >= 12.0, "{name}: {item:?} is too small to read");
            for (other, b) in &boxes[index + 1..] {
                let apart = a[2] + 2.0 <= b[0] || b[2] + 2.0 <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                assert!(apart, "{name}: {item:?} and {other:?} overlap");
            }
        }
    }
}

#[test]
fn svg_is_well_formed_and_names_every_format() {
    for (name, report) in cases() {
        let texts = texts(&picture::to_svg(&report.picture().unwrap()).unwrap());
        for format in &report.formats {
            assert!(texts.iter().any(|text| text == format.name), "{name}: {} is missing", format.name);
        }
    }
}

#[test]
fn limits_and_shares_are_shown() {
    let values = vec![1e-9, 1e-6, 1.0, 1e5];
    let report = report("four.npy", &["float16"], 1.0, &named("w", values));
    let texts = texts(&picture::to_svg(&report.picture().unwrap()).unwrap());
    for expected in ["2⁻²⁵", "2⁻¹⁴", "65520", "25.0", "four.npy", "tensor w · 4 elements"] {
        assert!(texts.iter().any(|text| text == expected), "{expected} is not among {texts:?}");
    }
}

#[test]
fn names_are_escaped() {
    let hostile = "<b>&  \"'\u{1b}[31m\n\u{202e}x\u{ffff}</text>";
    let report = report(hostile, &["e5m2"], 1.0, &named(hostile, vec![1.0]));
    let svg = picture::to_svg(&report.picture().unwrap()).unwrap();
    let shown = "<b>& \u{a0}\"'\\u{1b}[31m\\n\\u{202e}x\u{fffd}</text>";
    assert_eq!(texts(&svg)[0], shown);
    assert!(texts(&svg).iter().any(|text| text.starts_with(&format!("tensor {shown}"))));
    assert!(!svg.contains(&0x1b));
}

#[test]
fn files_have_the_promised_sizes() {
    let picture = Picture::new(120, 80);
    let png = picture::to_png(&picture).unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&png[16..24], [0, 0, 0, 240, 0, 0, 0, 160]);
    let svg = String::from_utf8(picture::to_svg(&picture).unwrap()).unwrap();
    assert!(svg.starts_with(r#"<svg width="120" height="80" viewBox="0 0 1200 800""#), "{svg}");
}

#[test]
fn same_report_gives_same_bytes() {
    let picture = || cases().into_iter().find(|(name, _)| *name == "spoilt").unwrap().1.picture().unwrap();
    assert_eq!(picture::to_png(&picture()).unwrap(), picture::to_png(&picture()).unwrap());
    assert_eq!(picture::to_svg(&picture()).unwrap(), picture::to_svg(&picture()).unwrap());
}

#[test]
fn long_texts_keep_both_ends() {
    let style = TextStyle::new(14.0, Colour(0, 0, 0)).anchored(Anchor::Middle);
    let path = format!("/first/{}/last.npy", "x".repeat(500));
    let short = style.fit(&path, 200.0);
    assert!(style.width(&short) <= 200.0 && style.width(&short) > 180.0, "{short}");
    assert!(short.starts_with("/fi") && short.ends_with("/last.npy") && short.contains('…'), "{short}");
    assert_eq!(style.fit("short", 200.0), "short");
    assert_eq!(style.fit("anything", 0.0), "…");
}

#[test]
fn lines_are_painted_dashed_and_slanted() {
    let ink = Colour(10, 20, 30);
    let mut drawn = Picture::new(100, 100);
    drawn.dashes(&[(10.0, 10.0), (90.0, 10.0)], 1.0, ink, (6.0, 4.0));
    drawn.line(&[(10.0, 20.0), (50.0, 90.0), (90.0, 20.0)], 2.0, ink);
    let svg = String::from_utf8(picture::to_svg(&drawn).unwrap()).unwrap();
    assert_eq!(svg.matches("<rect").count(), 1 + 8);
    assert_eq!(svg.matches("<polyline").count(), 1);
    assert!(picture::to_png(&drawn).unwrap().len() > picture::to_png(&Picture::new(100, 100)).unwrap().len());
}

#[test]
fn bars_cover_the_grid_and_one_is_singular() {
    let values = vec![1.0, 1.0, 1.0, 2.0, 4.0, 1e-6];
    let picture = report("six.npy", &["float16"], 1.0, &named("w", values)).picture().unwrap();
    let items = picture.items();
    let is_bar = |item: &Item| matches!(item, Item::Rect { fill: Colour(84, 84, 84), .. });
    let first = items.iter().position(is_bar).unwrap();
    assert!(!items[first..].iter().any(|item| matches!(item, Item::Line { .. })), "a line crosses the bars");
    let one = report("one.npy", &["float16"], 1.0, &named("w", vec![1.0])).picture().unwrap();
    let texts = texts(&picture::to_svg(&one).unwrap());
    assert!(texts.iter().any(|text| text == "tensor w · 1 element"), "{texts:?}");
}

#[test]
fn headroom_stays_in_range() {
    let headroom = |values: Vec<f64>, scale: f32| {
        let report = report("big.npy", &["float16"], scale, &named("w", values));
        report.total.formats[0].headroom_log2.unwrap().0
    };
    assert!((headroom(vec![pow2(1023)], pow2(100) as f32) - (15.999_3 - 1123.0)).abs() < 0.001);
    assert!((headroom(vec![pow2(-1074)], pow2(-100) as f32) - (15.999_3 + 1174.0)).abs() < 0.001);
}

#[test]
fn flushing_is_told_and_drawn() {
    let mut report = report("four.npy", &["float16"], 1.0, &named("w", vec![1e-6, 1.0]));
    let before = texts(&picture::to_svg(&report.picture().unwrap()).unwrap());
    assert!(before.iter().any(|text| text == "2⁻²⁵"), "{before:?}");
    report.options.ftz = true;
    let Target::Plain(plan) = &mut report.formats[0].target else { panic!("a plain format") };
    plan.flush_subnormal_results = true;
    let after = texts(&picture::to_svg(&report.picture().unwrap()).unwrap());
    assert!(!after.iter().any(|text| text == "2⁻²⁵"), "{after:?}");
    assert!(after.iter().any(|text| text == "tensor w · 2 elements · FTZ"), "{after:?}");
}
