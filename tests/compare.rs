//! `compare` as people meet it: what belongs together, what differs, exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::process::Output;

use amp_inspect::format::table::FORMATS;
use common::{Tensor, amp_inspect, refused, write_safetensors};
use serde_json::Value;

const REFERENCE: &str = "testdata/gpt/grads_step01500.safetensors";
const BF16: &str = "testdata/gpt/grads_step01500_h1_bf16.safetensors";

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, tensors: &[(&str, Vec<u64>, Vec<f32>)]) -> String {
        let path = self.0.path().join(name);
        let tensors: Vec<Tensor> = tensors
            .iter()
            .map(|(name, shape, values)| ((*name).to_owned(), shape.clone(), values.clone()))
            .collect();
        write_safetensors(&path, &tensors);
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn a_dump_equals_itself_whatever_its_type_and_contents() {
    let folder = tempfile::tempdir().unwrap();
    // Every code of every narrow type, NaN, Inf and −0 among them; of wide ones a sample.
    for format in FORMATS.iter().filter(|format| matches!(format.bits, 0..=8 | 16 | 32)) {
        let bytes: Vec<u8> = match format.bits {
            ..=8 => (0..1_u32 << format.bits).map(|code| code as u8).collect(),
            16 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
            _ => (0..=u16::MAX).flat_map(|high| (u32::from(high) << 16 | 1).to_le_bytes()).collect(),
        };
        let path = folder.path().join(format!("{}.bin", format.name));
        std::fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        let output = amp_inspect(&[
            "compare",
            path,
            path,
            "--dtype",
            format.name,
            "--json",
            "--rtol",
            "0",
            "--atol",
            "0",
        ]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}: {}",
            format.name,
            String::from_utf8_lossy(&output.stderr)
        );
        let row = &json(&output)["tensors"][0];
        assert_eq!(
            (&row["bitwise_equal"], &row["different"], &row["outside"]),
            (&true.into(), &0.into(), &0.into())
        );
        assert_eq!(row["max_abs"], 0.0, "{}", format.name);
    }
    let output = amp_inspect(&["compare", "testdata/gpt", "testdata/gpt", "--exclude", "wte", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&output);
    assert_eq!(report["equal"], report["tensors"].as_array().unwrap().len());
}

#[test]
fn a_cast_by_torch_is_one_rounding() {
    let output = amp_inspect(&["compare", REFERENCE, BF16, "--tensor", r"^h\.1\.", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let report = json(&output);
    assert_eq!((&report["within"], &report["equal"]), (&12.into(), &0.into()));
    assert!(
        report["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["max_ulp"] == 0 && row["ulp_of"] == "bfloat16")
    );
    let finding = report["findings"][1].as_str().unwrap();
    assert!(finding.starts_with("Every difference is one rounding to bfloat16"), "{finding}");
    // The other way round the same, but for what the reference's size enters.
    let back = json(&amp_inspect(&["compare", BF16, REFERENCE, "--tensor", r"^h\.1\.", "--json"]));
    for (there, back) in report["tensors"].as_array().unwrap().iter().zip(back["tensors"].as_array().unwrap())
    {
        for figure in ["tensor", "max_abs", "mean_abs", "symmetric_diff", "cosine", "sign_flips"] {
            assert_eq!(there[figure], back[figure], "{figure}");
        }
    }
}

/// Of `wte.weight` at step 400 against step 1500, by Python's `math.fsum` (sums that are rounded once).
const FSUM: &[(&str, f64)] = &[
    ("max_abs", 0.5458804965019226),
    ("mean_abs", 0.008354501762213553),
    ("rms_error", 0.022803841852525455),
    ("rms", 0.006964692179770588),
    ("rel_l2", 3.2742067077653094),
    ("cosine", 0.2667451059982441),
    ("symmetric_diff", 0.855437150708295),
    ("max_ulp", 2064908182.0),
    ("sign_flips", 1115.0),
    ("outside", 3644.0),
];

#[test]
fn figures_are_those_of_exact_sums() {
    let output = amp_inspect(&[
        "compare",
        "testdata/gpt/grads_step00400.safetensors",
        REFERENCE,
        "--tensor",
        "^wte.weight$",
        "--json",
    ]);
    let row = &json(&output)["tensors"][0];
    for (figure, wanted) in FSUM {
        let ours = row[figure].as_f64().unwrap();
        assert!((ours - wanted).abs() <= 1e-12 * wanted.abs(), "{figure}: {ours} {wanted}");
    }
}

#[test]
fn what_only_one_has_is_found_and_named() {
    let folder = Folder::new();
    let a = folder.file(
        "a.safetensors",
        &[
            ("same", vec![2], vec![1.0, f32::NAN]),
            ("gone", vec![1], vec![1.0]),
            ("shape", vec![2, 3], vec![0.0; 6]),
            ("nan", vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]),
        ],
    );
    let b = folder.file(
        "b.safetensors",
        &[
            ("new", vec![1], vec![1.0]),
            ("nan", vec![2, 2], vec![1.0, 2.0, f32::NAN, 4.0]),
            ("shape", vec![3, 2], vec![0.0; 6]),
            ("same", vec![2], vec![1.0, f32::NAN]),
        ],
    );
    let output = amp_inspect(&["compare", &a, &b, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    assert_eq!(report["missing"][0]["tensor"], "gone");
    assert_eq!(report["extra"][0]["tensor"], "new");
    assert_eq!(report["reshaped"][0]["other_shape"], serde_json::json!([3, 2]));
    let row = &report["tensors"][1];
    assert_eq!(
        (&row["tensor"], &row["nan_mismatch"], &row["verdict"]),
        (&"nan".into(), &1.into(), &"outside".into())
    );
    assert_eq!(row["first_mismatch"], serde_json::json!({"index": [1, 0], "reference": 3.0, "other": "nan"}));
    let text = String::from_utf8(amp_inspect(&["compare", &a, &b]).stdout).unwrap().replace("\n  ", " ");
    for sentence in [
        "1 tensor is only in the reference: gone.",
        "1 tensor is only in the other dump: new.",
        "shape has shape 2×3 in the reference and 3×2 in the other.",
        "NaN or Inf stand on one side only in 1 element of 1 tensor: nan [1, 0] is 3 in the reference, nan in the other.",
    ] {
        assert!(text.contains(sentence), "{text}");
    }
}

#[test]
fn a_scale_is_told_from_noise() {
    let folder = Folder::new();
    let values: Vec<f32> = (1..100).map(|x| x as f32).collect();
    let scaled = values.iter().map(|x| x / 64.0).collect();
    let a = folder.file("a.safetensors", &[("w", vec![99], values)]);
    let b = folder.file("b.safetensors", &[("w", vec![99], scaled)]);
    let text = String::from_utf8(amp_inspect(&["compare", &a, &b]).stdout).unwrap();
    assert!(text.contains("of the right direction but not of the right size"), "{text}");
}

#[test]
fn names_of_another_framework_are_mapped() {
    let folder = Folder::new();
    let file =
        |name: &str, tensors: [&str; 2]| folder.file(name, &tensors.map(|name| (name, vec![1], vec![1.0])));
    let a = file("a.safetensors", ["layers_0/fc/kernel", "layers_1/fc/kernel"]);
    let b = file("b.safetensors", ["h.0.fc.weight", "h.1.fc.weight"]);
    let sentence = "nothing was compared: no tensor of one dump is called as one of the other ('layers_0/fc/kernel', \
                    'h.0.fc.weight'); --map changes names";
    refused(&["compare", &a, &b], sentence);
    let map = r"^layers_(\d+)/(\w+)/kernel$=h.$1.$2.weight";
    assert_eq!(amp_inspect(&["compare", &a, &b, "--map", map]).status.code(), Some(0));
}

#[test]
fn usage() {
    refused(
        &["compare", REFERENCE],
        "compare takes two paths, a reference and what is compared with it; a directory or a quoted glob can stand for \
         several files (1 given)",
    );
    refused(
        &["compare", REFERENCE, REFERENCE, "--tensor", "^none$"],
        "no tensor is left to read: check --tensor and --exclude",
    );
    refused(
        &["compare", REFERENCE, "missing.npy"],
        "missing.npy: cannot open the file: no such file or directory",
    );
    let tight =
        amp_inspect(&["compare", REFERENCE, BF16, "--tensor", r"^h\.1\.", "--rtol", "0", "--atol", "1e-9"]);
    assert_eq!(tight.status.code(), Some(1));
    let threads = |n| {
        amp_inspect(&[
            "compare",
            "testdata/gpt/grads_step00400.safetensors",
            REFERENCE,
            "--json",
            "--threads",
            n,
        ])
    };
    assert_eq!(threads("1").stdout, threads("3").stdout);
}

#[test]
fn a_file_of_one_tensor_meets_the_other() {
    let folder = Folder::new();
    let a = folder.file("a.safetensors", &[("one", vec![1], vec![1.0])]);
    let b = folder.file("b.safetensors", &[("other", vec![1], vec![1.0])]);
    assert_eq!(amp_inspect(&["compare", &a, &b]).status.code(), Some(0));
    let two = folder.file("c.safetensors", &[("other", vec![1], vec![1.0]), ("third", vec![1], vec![1.0])]);
    assert_eq!(amp_inspect(&["compare", &a, &two]).status.code(), Some(2));
}

#[test]
fn a_map_makes_no_two_tensors_one() {
    let folder = Folder::new();
    let one = vec![1.0_f32];
    let a = folder.file("a.safetensors", &[("a.0", vec![1], one.clone()), ("a.1", vec![1], one.clone())]);
    let b = folder.file("b.safetensors", &[("b", vec![1], one)]);
    let sentence = "--map makes two tensors one: 'a.0' and 'a.1' become 'b'";
    refused(&["compare", &a, &b, "--map", r"a\..*=b"], sentence);
}

/// The square of a root is not always the number.
#[test]
fn equal_tensors_have_cosine_1() {
    let folder = Folder::new();
    for number in 1..50_u8 {
        let values = vec![f32::from(number) / 3.0, 1.0 / f32::from(number)];
        let a = folder.file("a.safetensors", &[("t", vec![2], values)]);
        let report = json(&amp_inspect(&["compare", &a, &a, "--json"]));
        assert_eq!(report["tensors"][0]["cosine"], 1.0, "{number}");
    }
}
