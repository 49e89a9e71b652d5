//! `cargo bench --bench autocast`: seconds to audit a trace of 100 MB, plain and gzip'ed, beside those to only read it.
//!
//! The trace is a real one, its events repeated one step after the other. Whole processes, medians of several runs.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

const BYTES: u64 = 100_000_000;
const RUNS: usize = 7;

/// Writes about [`BYTES`] of steps one after the other; gives their number.
fn write_trace(path: &Path) -> u64 {
    let packed = File::open("testdata/profiler/gpt_step_bf16.json.gz").unwrap();
    let trace: Value = serde_json::from_reader(flate2::read::GzDecoder::new(packed)).unwrap();
    let mut events: Vec<Value> = trace["traceEvents"].as_array().unwrap().clone();
    let mut out = BufWriter::new(File::create(path).unwrap());
    write!(out, "{{\"schemaVersion\": 1, \"traceEvents\": [").unwrap();
    let (mut written, mut steps) = (0, 0);
    while written < BYTES {
        steps += 1;
        for event in &mut events {
            // A step takes less than 100 ms.
            let start = event["ts"].as_f64().unwrap() + 100_000.0;
            event["ts"] = start.into();
            let text = serde_json::to_string_pretty(event).unwrap();
            out.write_all(if written == 0 { b"\n" } else { b",\n" }).unwrap();
            out.write_all(text.as_bytes()).unwrap();
            written += text.len() as u64 + 2;
        }
    }
    out.write_all(b"]}").unwrap();
    out.flush().unwrap();
    steps
}

fn median(mut work: impl FnMut()) -> f64 {
    let mut seconds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[RUNS / 2]
}

fn audit(path: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
    let status = command.arg("autocast").arg(path).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("trace.json");
    let steps = write_trace(&plain);
    let packed = folder.path().join("trace.json.gz");
    let mut gzip = flate2::write::GzEncoder::new(File::create(&packed).unwrap(), flate2::Compression::fast());
    std::io::copy(&mut File::open(&plain).unwrap(), &mut gzip).unwrap();
    gzip.finish().unwrap();

    let bytes = std::fs::metadata(&plain).unwrap().len();
    let read = median(|| {
        let mut buffer = vec![0; 1 << 18];
        let mut file = File::open(&plain).unwrap();
        while file.read(&mut buffer).unwrap() > 0 {}
    });
    println!("{steps} steps, {bytes} bytes; only reading them takes {:.0} ms", read * 1e3);
    for (what, path) in [("plain", &plain), ("gzip'ed", &packed)] {
        let seconds = median(|| audit(path));
        println!(
            "{what}: {:.0} ms, {:.0} MB/s, {:.1} times as long",
            seconds * 1e3,
            bytes as f64 / seconds / 1e6,
            seconds / read
        );
    }
}
