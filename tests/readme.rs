//! What README says about formats and shows of the program is true of this build.
//!
//! After a wanted change: `AMP_INSPECT_BLESS=1 cargo test --release --test readme`, then read the diff.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::process::Command;

use amp_inspect::format::BlockSpec;
use amp_inspect::format::table::{BLOCK_FORMATS, FORMATS};
use amp_inspect::report::Report;
use amp_inspect::report::formats::FormatsReport;
use amp_inspect::source::{READERS, Reader};

/// The table of all formats, as `formats --save x.md` writes it, without its head.
fn rows() -> String {
    let mut markdown = Vec::new();
    FormatsReport::new(FORMATS).markdown(&mut markdown).unwrap();
    let markdown = String::from_utf8(markdown).unwrap();
    let start = markdown.find(HEAD).unwrap() + HEAD.len();
    let rows = markdown[start..].split("\n\n").next().unwrap();
    let names = rows.lines().map(|row| row.split('`').nth(1).unwrap());
    assert!(names.eq(FORMATS.iter().map(|format| format.name)), "a row for each format");
    rows.to_owned()
}

/// The line under the names of the columns.
const HEAD: &str = "|:--|:--|:--|--:|--:|:--|--:|--:|:--|:--|:--|:--|\n";

fn block_row(format: &BlockSpec) -> String {
    let aliases: Vec<String> = format.aliases.iter().take(1).map(|alias| format!("`{alias}`")).collect();
    let bits = f64::from(format.element.bits)
        + f64::from(format.scale.bits) / f64::from(format.shape.elements().unwrap());
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

fn reader_row(reader: &Reader) -> String {
    let files: Vec<String> = reader.extensions.iter().map(|extension| format!("`.{extension}`")).collect();
    format!("| {} | {} | {} |", reader.name, files.join(" "), reader.about)
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

    let blocks: Vec<String> = BLOCK_FORMATS.iter().map(block_row).collect();
    let readers: Vec<String> = READERS.iter().map(reader_row).collect();
    for (head, rows) in [
        (HEAD, rows()),
        ("|:--|:--|:--|:--|--:|--:|\n", blocks.join("\n")),
        ("| container | files | what is read |\n|:--|:--|:--|\n", readers.join("\n")),
    ] {
        let start = wanted.find(head).unwrap() + head.len();
        let end = start + wanted[start..].find("\n\n").unwrap();
        wanted.replace_range(start..end, &rows);
    }

    let rules = std::fs::read_to_string(root.join("testdata/check/rules.toml")).unwrap();
    let (_, rules) = rules.split_once("\n\n").unwrap();
    let first = "# testdata/check/rules.toml: the first rule whose pattern matches is a tensor's";
    let old = block(&wanted, first).to_owned();
    wanted = wanted.replacen(&old, rules.trim_end(), 1);

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
