//! The committed sample reports are what the program writes today.
//!
//! After a wanted change: `AMP_INSPECT_BLESS=1 cargo test --release --test reports`, then read the diff.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::process::Command;

const DUMP: &str = "testdata/gpt/grads_step01500.safetensors";

#[test]
fn the_sample_reports_are_current() {
    // One layer is enough to show every field; the picture and the sums are those of what was read.
    let tensors = r"^(h\.1\.|wte|ln_f)";
    sample("histogram", &["--tensor", tensors, "--formats", "float16,bfloat16,e5m2,e4m3fn,e2m1fn"]);
    let blocks = "e4m3fn,mxfp8,mxfp8:rceil,mxfp4,nvfp4,nvfp4:torchao,e4m3fn:128x128";
    sample("blocks", &["--tensor", tensors, "--formats", blocks]);
}

fn sample(name: &str, arguments: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let names = ["json", "csv", "md", "png", "svg"].map(|extension| format!("{name}.{extension}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
    command.current_dir(root).env("COLUMNS", "100").args(["histogram", DUMP]).args(arguments);
    for name in &names {
        command.arg("--save").arg(folder.path().join(name));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = format!("{name}.txt");
    std::fs::write(folder.path().join(&text), &output.stdout).unwrap();
    let bless = std::env::var_os("AMP_INSPECT_BLESS").is_some();
    for name in names.into_iter().chain([text]) {
        let made = std::fs::read(folder.path().join(&name)).unwrap();
        let committed = root.join("reports").join(&name);
        if bless {
            std::fs::write(&committed, &made).unwrap();
        }
        let committed = std::fs::read(&committed).unwrap_or_default();
        assert!(committed == made, "reports/{name} is not what the program writes; see the top of this test");
    }
}
