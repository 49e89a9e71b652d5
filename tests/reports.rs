//! The committed sample reports are what the program writes today.
//!
//! After a wanted change: `AMP_INSPECT_BLESS=1 cargo test --release --test reports`, then read the diff.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::process::Command;

/// Sample reports: their name, the command line, its columns, and the kinds of file it saves. What it prints
/// is kept as .txt.
type Sample = (&'static str, &'static [&'static str], u32, &'static [&'static str]);

const SAMPLES: &[Sample] = &[
    (
        "histogram",
        &[
            "histogram",
            "testdata/gpt/grads_step01500.safetensors",
            // One layer is enough to show every field; the picture and the sums are those of what was read.
            "--tensor",
            r"^(h\.1\.|wte|ln_f)",
            "--formats",
            "float16,bfloat16,e5m2,e4m3fn,e2m1fn",
        ],
        100,
        &["json", "csv", "md", "png", "svg"],
    ),
    (
        "blocks",
        &[
            "histogram",
            "testdata/gpt/grads_step01500.safetensors",
            "--tensor",
            r"^(h\.1\.|wte|ln_f)",
            "--formats",
            "e4m3fn,mxfp8,mxfp8:rceil,mxfp4,nvfp4,nvfp4:torchao,e4m3fn:128x128",
        ],
        100,
        &["json", "csv", "md", "png", "svg"],
    ),
    (
        "steps",
        &[
            "histogram",
            "testdata/gpt/grads_step?????.safetensors",
            "--by",
            "step",
            "--formats",
            "float16,bfloat16,e5m2,e4m3fn",
        ],
        100,
        &["csv", "md", "png", "svg"],
    ),
    (
        "compare",
        &[
            "compare",
            "testdata/gpt/grads_step00400.safetensors",
            "testdata/gpt/grads_step01500.safetensors",
            "--tensor",
            r"^(h\.1\.|wte|ln_f)",
        ],
        100,
        &["json", "csv", "md", "png", "svg"],
    ),
    (
        "compare_bf16",
        &[
            "compare",
            "testdata/gpt/grads_step01500.safetensors",
            "testdata/gpt/grads_step01500_h1_bf16.safetensors",
            "--tensor",
            r"^h\.1\.",
        ],
        160,
        &["png"],
    ),
    (
        "check",
        &[
            "check",
            "testdata/gpt/grads_step00400.safetensors",
            "--rules",
            "testdata/check/rules.toml",
            "--baseline",
            "reports/gpt_baseline.json",
            "--tensor",
            r"^(h\.1\.|wte|ln_f)",
        ],
        100,
        &["json", "csv", "md", "xml"],
    ),
    ("ls", &["ls", "testdata/gpt/[gh]*", "--steps", "1500"], 80, &["json", "csv", "md"]),
    ("dumps", &["ls", "testdata/dumps/msprobe", "testdata/dumps/npy_tree"], 100, &["csv"]),
    (
        "simulate_scaler",
        &[
            "simulate-scaler",
            "testdata/gradscaler_gpt_interval100.csv",
            "testdata/gradscaler_gpt_interval100.tensors.csv",
            "--scaler",
            "torch,deepspeed,megatron",
            "--set",
            "torch.growth_interval=100",
            "--quiet",
        ],
        100,
        &["json", "md", "png", "svg"],
    ),
    (
        "simulate_scaler_dumps",
        &[
            "simulate-scaler",
            "testdata/gpt/[gh]*",
            "--scaler",
            "torch,megatron,als",
            "--suggest",
            "--clip",
            "1",
            "--gaps",
            "skip",
        ],
        100,
        &["json", "csv", "md", "png", "svg"],
    ),
    (
        "fp8",
        &["fp8", "testdata/gpt/grads_step01500.safetensors", "--tensor", r"^(h\.1\.(qkv|fc|ln_1)|wte|ln_f)"],
        100,
        &["json", "csv", "md", "png", "svg"],
    ),
    (
        "fp8_steps",
        &["fp8", "testdata/fp8/spike", "--recipe", "delayed", "--history", "8"],
        100,
        &["csv", "md", "png", "svg"],
    ),
    (
        "recommend",
        &["recommend", "testdata/gpt/grads_step01500.safetensors", "--min-sqnr", "30dB"],
        120,
        &["json", "csv", "md"],
    ),
    ("autocast", &["autocast", "testdata/profiler/custom_op_left_in_fp32.json"], 100, &["json", "csv", "md"]),
    ("autocast_bf16", &["autocast", "testdata/profiler/gpt_step_bf16.json.gz"], 100, &[]),
    ("autocast_lists", &["autocast", "--list"], 80, &["csv", "md"]),
    ("memory", &["memory", "--params", "7e9"], 80, &["json", "csv", "md"]),
    (
        "memory_flow",
        &[
            "memory",
            "--params",
            "7e9",
            "--recipe",
            "amp-bf16",
            "--sharding",
            "fsdp",
            "--ranks",
            "64",
            "--reduce",
            "float32",
            "--flow",
            "--hidden",
            "4096",
            "--layers",
            "32",
            "--seq",
            "4096",
            "--batch",
            "1",
            "--recompute",
            "selective",
        ],
        100,
        &["md"],
    ),
    ("bench_gpu_plan", &["bench-gpu", "--dry-run"], 80, &["json"]),
    ("scalers", &["simulate-scaler", "--list"], 80, &["json", "csv", "md"]),
    (
        "updates",
        &[
            "updates",
            "--checkpoint",
            "testdata/gpt/checkpoint_step01500.pt",
            "--lr",
            "1e-4",
            "--tensor",
            r"h\.1\.fc|wte|ln_f",
            "--steps",
            "16",
            "--quiet",
        ],
        100,
        &["json", "csv", "md", "png", "svg"],
    ),
    (
        "updates_sgd",
        &[
            "updates",
            "--weights",
            "testdata/training/weights_step01500.safetensors",
            "--grads",
            "testdata/gpt/grads_step01500.safetensors",
            "--lr",
            "0.1",
        ],
        80,
        &[],
    ),
    (
        "reduce",
        &[
            "reduce",
            "testdata/ranks",
            "--formats",
            "float32,bfloat16,e5m2",
            "--exclude",
            "bias",
            "--world-size",
            "4..1024",
            "--fsdp",
            "param=bf16,reduce=bf16,buffer=fp32",
        ],
        100,
        &["json", "csv", "md", "png", "svg"],
    ),
    ("formats", &["formats"], 80, &["json", "csv", "md"]),
    ("codes_e3m2fn", &["formats", "--codes", "e3m2fn"], 80, &[]),
    ("explain", &["explain", "0.1", "-65520", "1e-8", "nan"], 80, &["json", "csv", "md"]),
];

/// Samples of runs that find something.
const FINDINGS: &[&str] = &["compare", "check"];

#[test]
fn the_sample_reports_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let bless = std::env::var_os("AMP_INSPECT_BLESS").is_some();
    for (sample, arguments, columns, kinds) in SAMPLES {
        let mut command = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
        command.current_dir(root).env("COLUMNS", columns.to_string()).args(*arguments);
        let names: Vec<String> = kinds.iter().map(|kind| format!("{sample}.{kind}")).collect();
        for name in &names {
            command.arg("--save").arg(folder.path().join(name));
        }
        let output = command.output().unwrap();
        let code = if FINDINGS.contains(sample) { 1 } else { 0 };
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        let text = format!("{sample}.txt");
        std::fs::write(folder.path().join(&text), &output.stdout).unwrap();
        for name in names.iter().chain([&text]) {
            let made = std::fs::read(folder.path().join(name)).unwrap();
            let committed = root.join("reports").join(name);
            if bless {
                std::fs::write(&committed, &made).unwrap();
            }
            let committed = std::fs::read(&committed).unwrap_or_default();
            assert!(
                committed == made,
                "reports/{name} is not what the program writes; see the top of this test"
            );
        }
    }
}
