//! `cargo bench --bench training`: whole processes, `amp-inspect updates` and `reduce` against a program that only sums
//! the same mapped files, in turn. Quote the ratio: absolute times are the machine's.
//!
//! `cargo bench --bench training -- [MiB a file] [formats]`: 128 MiB, and the formats of each command if not said otherwise.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: usize = 2;
const RUNS: usize = 9;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [word, paths @ ..] = arguments.as_slice()
        && word == "sum"
    {
        println!("{}", paths.iter().map(|path| sum(Path::new(path))).sum::<f32>());
        return;
    }
    let mebibytes: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(128);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, scale: f32, seed: u64| {
        let path = folder.path().join(name);
        write_numbers(&path, mebibytes << 18, scale, seed);
        path
    };
    println!("{mebibytes} MiB a file of f32, {THREADS} threads, least of {RUNS} whole processes each");

    let (weights, gradients) = (write("w.npy", 0.02, 1), write("g.npy", 1e-3, 2));
    let (first, second) = (write("m.npy", 1e-3, 3), write("v.npy", 1e-6, 4));
    // Named as one tensor: a file of one array gives it its own name.
    for (formats, what) in [("bfloat16", "bfloat16"), ("bfloat16,float16,e4m3fn,e5m2", "four formats")] {
        let formats = arguments.get(1).map_or(formats, String::as_str);
        let named = |path: &Path, folder: &str| {
            let link = path.parent().unwrap().join(folder).join("t.npy");
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            let _ = std::fs::hard_link(path, &link);
            link
        };
        let (w, g) = (named(&weights, "weights"), named(&gradients, "grads"));
        let (m, v) = (named(&first, "first"), named(&second, "second"));
        let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
        let sgd = ["updates", "--weights", &text(&w), "--grads", &text(&g)].map(str::to_owned).to_vec();
        let adam = [
            "updates",
            "--weights",
            &text(&w),
            "--exp-avg",
            &text(&m),
            "--exp-avg-sq",
            &text(&v),
            "--moments-step",
            "100",
        ]
        .map(str::to_owned)
        .to_vec();
        let rest = ["--lr", "1e-3", "--formats", formats].map(str::to_owned);
        compare(&format!("updates, sgd, {what}"), &[sgd, rest.to_vec()].concat(), &[&w, &g]);
        compare(&format!("updates, adamw, {what}"), &[adam, rest.to_vec()].concat(), &[&w, &m, &v]);
    }
    let ranks: Vec<PathBuf> =
        (0..4).map(|rank| write(&format!("g_rank{rank}.npy"), 1e-3, 10 + rank)).collect();
    let paths: Vec<&PathBuf> = ranks.iter().collect();
    for (options, what) in [
        (
            &["--formats", "bfloat16", "--algorithms", "ring", "--accumulate", "same", "--divide", "before"]
                [..],
            "one way in bfloat16",
        ),
        (&["--formats", "bfloat16"], "every way in bfloat16"),
        (&[], "every way in four formats"),
    ] {
        let mut command = vec!["reduce".to_owned()];
        command.extend(paths.iter().map(|path| path.to_str().unwrap().to_owned()));
        command.extend(options.iter().map(|&option| option.to_owned()));
        compare(&format!("reduce, 4 ranks, {what}"), &command, &paths);
    }
}

/// Times the tool and the sum in turn.
fn compare(what: &str, arguments: &[String], paths: &[&PathBuf]) {
    let this = std::env::current_exe().unwrap();
    let threads = THREADS.to_string();
    let mut times = Vec::new();
    for _ in 0..=RUNS {
        let sum = time(Command::new(&this).arg("sum").args(paths));
        let mut tool = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
        let ours = time(tool.args(arguments).args(["--json", "--quiet", "--threads", &threads]));
        times.push((ours, sum));
    }
    times.remove(0);
    // Others share the machine: what is least disturbed is nearest to the truth.
    let least = |of: fn(&(Duration, Duration)) -> Duration| times.iter().map(of).min().unwrap();
    let (ours, sum) = (least(|t| t.0), least(|t| t.1));
    let ratio = ours.div_duration_f64(sum);
    println!(
        "  {what:44} sum {:7.1} ms  tool {:8.1} ms  ratio {ratio:6.2}",
        1e3 * sum.as_secs_f64(),
        1e3 * ours.as_secs_f64()
    );
}

fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    start.elapsed()
}

/// The sum of all elements, as quickly as memory allows.
fn sum(path: &Path) -> f32 {
    let file = File::open(path).unwrap();
    // SAFETY: the benchmark has written the file and nobody changes it.
    let map = unsafe { memmap2::Mmap::map(&file) }.unwrap();
    let values: &[f32] = bytemuck::cast_slice(&map[128..]);
    let half = values.len() / THREADS;
    let part = |values: &[f32]| {
        let mut lanes = [0.0_f32; 64];
        for chunk in values.as_chunks::<64>().0 {
            lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x);
        }
        lanes.iter().sum::<f32>()
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            values.chunks(half.max(1)).map(|values| scope.spawn(move || part(values))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    })
}

/// Numbers around `scale` over some twenty binades; of both signs but for a scale of second moments.
fn write_numbers(path: &Path, elements: usize, scale: f32, seed: u64) {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({elements},), }}");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    out.write_all(b"\x93NUMPY\x01\x00\x76\x00").unwrap();
    writeln!(out, "{header:<117}").unwrap();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    for _ in 0..elements {
        let normal = (uniform() + uniform() + uniform() + uniform() - 2.0) * 3.0_f32.sqrt();
        let magnitude = scale * (1.5 * normal).exp2();
        let x = if scale > 1e-5 && uniform() < 0.5 { -magnitude } else { magnitude };
        out.write_all(&x.to_le_bytes()).unwrap();
    }
    out.flush().unwrap();
}
