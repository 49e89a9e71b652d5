//! What README says about formats and shows of the program is true of this build.
//!
//! After a wanted change: `AMP_INSPECT_BLESS=1 cargo test --release --test readme`, then read the diff.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::process::Command;

use amp_inspect::format::table::{BLOCK_FORMATS, FORMATS};
use amp_inspect::format::{BlockSpec, FormatSpec, exponent_of, pow2};

/// A power of two as such, anything else as the shortest decimal.
fn number(x: f64) -> String {
    let exponent = exponent_of(x);
    if x == pow2(exponent) && !(0..=6).contains(&exponent) {
        return format!("2^{exponent}");
    }
    if x < 1e6 { format!("{x}") } else { format!("{x:.6e}") }
}

fn row(format: &FormatSpec) -> String {
    let aliases: Vec<String> = format.aliases.iter().take(3).map(|alias| format!("`{alias}`")).collect();
    let tie = if format.overflow_includes_tie() { "from" } else { "above" };
    format!(
        "| `{}` | {} | {} | {tie} {} | {} | {} | {} |",
        format.name,
        aliases.join(" "),
        number(format.max_finite()),
        number(format.overflow_threshold()),
        number(format.min_normal()),
        format.min_subnormal().map_or("–".into(), number),
        format.flush_threshold().map_or("never".into(), |limit| format!("≤ {}", number(limit))),
    )
}

fn block_row(format: &BlockSpec) -> String {
    let aliases: Vec<String> = format.aliases.iter().take(1).map(|alias| format!("`{alias}`")).collect();
    let bits =
        f64::from(format.element.bits) + f64::from(format.scale.bits) / f64::from(format.shape.elements());
    format!(
        "| `{}` | {} | {} | {} | {} | {} |",
        format.name,
        aliases.join(" "),
        format.element.name,
        format.scale.name,
        format.shape.text().replace('x', "×"),
        (1e4 * bits).round() / 1e4
    )
}

/// The text of the code block that begins with `first`.
fn block<'a>(readme: &'a str, first: &str) -> &'a str {
    let start = readme.find(first).unwrap_or_else(|| panic!("README lacks {first:?}")) + first.len() + 1;
    &readme[start..start + readme[start..].find("\n```").unwrap()]
}

#[test]
fn readme_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let mut wanted = readme.clone();

    let tables = [
        ("|:--|:--|--:|:--|--:|--:|:--|\n", FORMATS.iter().map(row).collect::<Vec<_>>()),
        ("|:--|:--|:--|:--|--:|--:|\n", BLOCK_FORMATS.iter().map(block_row).collect()),
    ];
    for (head, rows) in tables {
        let start = wanted.find(head).unwrap() + head.len();
        let end = start + wanted[start..].find("\n\n").unwrap();
        wanted.replace_range(start..end, &rows.join("\n"));
    }

    let shown: Vec<String> =
        readme.lines().filter(|line| line.starts_with("$ amp-inspect ")).map(str::to_owned).collect();
    assert!(!shown.is_empty());
    for line in shown {
        let arguments = line.trim_start_matches("$ amp-inspect ").split(' ');
        let mut command = Command::new(env!("CARGO_BIN_EXE_amp-inspect"));
        let output = command.current_dir(root).env("COLUMNS", "90").args(arguments).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let old = block(&wanted, &line).to_owned();
        wanted = wanted.replacen(&format!("{line}\n{old}"), &format!("{line}\n{}", printed.trim_end()), 1);
    }
    if std::env::var_os("AMP_INSPECT_BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(wanted == readme, "README.md is out of date; see the top of this test");
    }
}
