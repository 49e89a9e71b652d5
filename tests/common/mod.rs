//! What the test files share: the data folder, the choices of a cast, reproducible numbers.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use amp_inspect::cast::{Overflow, Rounding};
use amp_inspect::format::table::FORMATS;
use amp_inspect::format::{FormatSpec, find};

pub const ROUNDINGS: [Rounding; 6] = [
    Rounding::NearestEven,
    Rounding::NearestAway,
    Rounding::TowardZero,
    Rounding::Up,
    Rounding::Down,
    Rounding::ToOdd,
];

pub const OVERFLOWS: [Overflow; 2] = [Overflow::Ieee, Overflow::Saturate];

/// The row called `name`.
pub fn row(name: &str) -> FormatSpec {
    find(name).unwrap_or_else(|error| panic!("{error}"))
}

/// The rows whose codes are few enough to try them all.
pub fn small_rows() -> impl Iterator<Item = &'static FormatSpec> {
    FORMATS.iter().filter(|row| row.bits <= 16)
}

/// A path below `testdata`.
pub fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(path)
}

/// The names, sorted, of the files in a folder of `testdata` that end in `suffix`, without the suffix.
pub fn names_in(folder: &str, suffix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(testdata(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter_map(|name| name.strip_suffix(suffix).map(str::to_owned)).collect();
    names.sort();
    names
}

/// The unpacked bytes of a gzip file below `testdata`.
pub fn gunzip(path: &str) -> Vec<u8> {
    let packed = std::fs::read(testdata(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&*packed).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Whether every input there is shall be tried, not a sample of them.
pub fn exhaustive() -> bool {
    std::env::var_os("AMP_INSPECT_EXHAUSTIVE").is_some_and(|value| value == "1")
}

/// Writes a line to stderr that shows also when the test passes.
#[allow(clippy::explicit_write)] // the test harness captures what `eprintln!` writes
pub fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").unwrap();
}

/// Numbers that look random and are the same in every run (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A finite number with random sign and significand, its exponent evenly spread over a range.
    pub fn number(&mut self, exponents: std::ops::RangeInclusive<i32>) -> f64 {
        let (low, high) = exponents.into_inner();
        let exponent = low + (self.bits() % (high - low + 1) as u64) as i32;
        let bits = self.bits();
        let significand = f64::from_bits(bits >> 12 | 1023 << 52);
        let magnitude = significand * amp_inspect::format::pow2(exponent);
        if bits & 1 == 1 { -magnitude } else { magnitude }
    }
}

/// Runs the program in the package's folder on a terminal of 80 columns.
pub fn amp_inspect(arguments: &[&str]) -> std::process::Output {
    amp_inspect_at(80, arguments)
}

/// The same at another width.
pub fn amp_inspect_at(columns: usize, arguments: &[&str]) -> std::process::Output {
    amp_inspect_with(("COLUMNS", &columns.to_string()), arguments)
}

/// The same with a variable in the environment.
pub fn amp_inspect_with((name, value): (&str, &str), arguments: &[&str]) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_amp-inspect"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .env("COLUMNS", "80")
        .env(name, value)
        .env_remove("NO_COLOR")
        .output()
        .unwrap()
}

/// What a run that must succeed prints.
#[track_caller]
pub fn printed(output: std::process::Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// A run must fail with code 2 and this sentence, and print nothing else.
#[track_caller]
pub fn refused(arguments: &[&str], sentence: &str) {
    let output = amp_inspect(arguments);
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!("amp-inspect: {sentence}\n"),
        "{arguments:?}"
    );
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{arguments:?}");
}

/// A tensor of a file: name, shape, values.
pub type Tensor = (String, Vec<u64>, Vec<f32>);

/// Writes a safetensors file of float32 tensors.
pub fn write_safetensors(path: &Path, tensors: &[Tensor]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape, values) in tensors {
        let first = data.len();
        data.extend(values.iter().flat_map(|x| x.to_le_bytes()));
        let entry = serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [first, data.len()]});
        header.insert(name.clone(), entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).unwrap();
}

/// The float32 tensors of a safetensors file.
pub fn read_safetensors(path: &Path) -> Vec<Tensor> {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let data = &bytes[8 + length..];
    let fields = header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
    fields
        .map(|(name, entry)| {
            let number = |value: &serde_json::Value| value.as_u64().unwrap();
            let [start, end] = [0, 1].map(|end| number(&entry["data_offsets"][end]) as usize);
            let values =
                data[start..end].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            (name.clone(), entry["shape"].as_array().unwrap().iter().map(number).collect(), values)
        })
        .collect()
}
