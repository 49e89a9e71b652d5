//! `cargo bench --bench compare -- [MiB]`: whole processes, `amp-inspect compare` of two files of so many MiB (256)
//! against a program that only sums both mapped files, in turn. Quote the ratio: absolute times are the machine's.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use std::path::Path;
use std::process::Command;

use common::{RUNS, THREADS, median, sum, time, write_gradients};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [word, paths @ ..] = arguments.as_slice()
        && word == "sum"
    {
        println!("{}", paths.iter().map(|path| sum(Path::new(path))).sum::<f32>());
        return;
    }
    let mebibytes: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(256);
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.npy", "b.npy", "c.npy"].map(|name| folder.path().join(name));
    let bfloat16 = |x: f32| f32::from_bits((x.to_bits() + 0x8000) & 0xffff_0000);
    write_gradients(&paths[0], mebibytes << 18, |x| x);
    write_gradients(&paths[1], mebibytes << 18, bfloat16);
    write_gradients(&paths[2], mebibytes << 18, |x| x);
    let this = std::env::current_exe().unwrap();
    println!("two files of {mebibytes} MiB of f32, {THREADS} threads, median of {RUNS} whole processes");
    for (what, other) in [("all different", &paths[1]), ("all equal", &paths[2])] {
        let mut times = Vec::new();
        for _ in 0..=RUNS {
            let sum = time(Command::new(&this).arg("sum").arg(&paths[0]).arg(other));
            let mut compare = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
            compare.arg("compare").arg(&paths[0]).arg(other);
            // Tensors are called as their files.
            let name = other.file_stem().unwrap().to_str().unwrap();
            compare.args([
                "--json",
                "--quiet",
                "--threads",
                &THREADS.to_string(),
                "--map",
                &format!("^a$={name}"),
            ]);
            times.push((time(&mut compare), sum));
        }
        times.remove(0);
        let (ours, sum) = (median(times.iter().map(|t| t.0)), median(times.iter().map(|t| t.1)));
        let ratio = median(times.iter().map(|t| t.0.div_duration_f64(t.1)));
        println!("{what}");
        println!("  sum of both mapped files  {:8.1} ms", 1e3 * sum.as_secs_f64());
        println!("  compare                   {:8.1} ms", 1e3 * ours.as_secs_f64());
        println!("  compare / sum             {ratio:8.2}");
    }
}
