//! `cargo bench --bench histogram`: whole processes, `amp-inspect histogram` against a program that only
//! sums the same mapped file, in turn. Quote the ratio: absolute times are the machine's.
//!
//! `cargo bench --bench histogram -- [MiB] [formats]` (256 MiB and eight formats if not said otherwise).
//! `cargo bench --bench histogram -- numpy [MiB]`: against `numpy_peer.py`, run by `$PYTHON` (python3), which needs
//! NumPy and ml_dtypes.
//! `cargo bench --bench histogram -- fp8 [MiB] [recipes]`: `amp-inspect fp8` with all recipes, against the same sum.
//! `cargo bench --bench histogram -- small`: 10,000 tensors of 1,000 elements in one safetensors file.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use common::{RUNS, THREADS, gradient, median, sum, time, uniform, write_gradients};

const FORMATS: &str = "float16,bfloat16,tf32,e5m2,e4m3fn,e3m2fn,e2m3fn,e2m1fn";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [word, path] = arguments.as_slice()
        && word == "sum"
    {
        println!("{}", sum(Path::new(path)));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    if arguments == ["small"] {
        let path = folder.path().join("small.safetensors");
        write_small_tensors(&path);
        let run = || time(&mut histogram(&path, FORMATS));
        run();
        let times = (0..RUNS).map(|_| run());
        println!("10,000 tensors of 1,000 f32, {THREADS} threads, formats {FORMATS}");
        println!("  histogram               {:8.1} ms", 1e3 * median(times).as_secs_f64());
        return;
    }
    if arguments.first().is_some_and(|word| word == "numpy") {
        let mebibytes: usize = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(64);
        let path = folder.path().join("gradients.npy");
        write_gradients(&path, mebibytes << 18, |x| x);
        let ours = median((0..RUNS).map(|_| time(&mut histogram(&path, FORMATS))));
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/numpy_peer.py");
        let peer = time(Command::new(python).arg(script).arg(&path));
        println!("{mebibytes} MiB of f32, formats {FORMATS}, whole processes");
        println!("  NumPy and ml_dtypes     {:8.1} ms", 1e3 * peer.as_secs_f64());
        println!("  histogram, {THREADS} threads    {:8.1} ms", 1e3 * ours.as_secs_f64());
        println!("  NumPy / histogram       {:8.0}", peer.div_duration_f64(ours));
        return;
    }
    let fp8 = arguments.first().is_some_and(|word| word == "fp8");
    let arguments = &arguments[usize::from(fp8)..];
    let mebibytes: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(256);
    let formats = arguments.get(1).map_or(if fp8 { "all" } else { FORMATS }, String::as_str);
    let (command, option) = if fp8 { ("fp8", "--recipe") } else { ("histogram", "--formats") };
    let path = folder.path().join("gradients.npy");
    let elements = mebibytes << 18;
    write_gradients(&path, elements, |x| x);

    let this = std::env::current_exe().unwrap();
    let mut times = Vec::new();
    for _ in 0..=RUNS {
        let sum = time(Command::new(&this).arg("sum").arg(&path));
        let ours = time(&mut amp_inspect(command, &path, option, formats));
        times.push((ours, sum));
    }
    times.remove(0);
    let (ours, sum) = (median(times.iter().map(|t| t.0)), median(times.iter().map(|t| t.1)));
    let ratio = median(times.iter().map(|t| t.0.div_duration_f64(t.1)));
    println!(
        "{mebibytes} MiB of f32, {THREADS} threads, {command} {option} {formats}, median of {RUNS} whole processes"
    );
    println!("  sum of the mapped file  {:8.1} ms", 1e3 * sum.as_secs_f64());
    println!("  {command:<22}  {:8.1} ms", 1e3 * ours.as_secs_f64());
    println!("  elements per second     {:8.3} G", elements as f64 / ours.as_secs_f64() / 1e9);
    println!("  {:<22}  {ratio:8.2}", format!("{command} / sum"));
}

fn histogram(path: &Path, formats: &str) -> Command {
    amp_inspect("histogram", path, "--formats", formats)
}

fn amp_inspect(subcommand: &str, path: &Path, option: &str, formats: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
    let threads = THREADS.to_string();
    command.arg(subcommand).arg(path);
    command.args(["--json", "--quiet", "--threads", &threads, option, formats]);
    command
}

/// A safetensors file of many small tensors.
fn write_small_tensors(path: &Path) {
    const TENSORS: usize = 10_000;
    const BYTES: usize = 4 * 1000;
    let entry = |number: usize| {
        let (start, end) = (number * BYTES, (number + 1) * BYTES);
        format!(r#""layers.{number}.weight":{{"dtype":"F32","shape":[1000],"data_offsets":[{start},{end}]}}"#)
    };
    let header = format!("{{{}}}", (0..TENSORS).map(entry).collect::<Vec<_>>().join(","));
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    out.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    out.write_all(header.as_bytes()).unwrap();
    let mut uniform = uniform();
    for _ in 0..TENSORS * BYTES / 4 {
        out.write_all(&gradient(&mut uniform).to_le_bytes()).unwrap();
    }
    out.flush().unwrap();
}
