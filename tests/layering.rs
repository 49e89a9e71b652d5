//! The rules of the layout: who may import whom, where `unsafe` may stand, how long a file may be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

/// Modules, lowest first. Those of one row do not know each other; each may import the rows above it.
const LAYERS: &[&[&str]] = &[
    &["error"],
    &["format"],
    &["tensor"],
    &["source", "cast"],
    &["stats", "verify"],
    &["scaler", "training", "check", "gpu"],
    &["recommend"],
    &["report"],
    &["pipeline"],
    &["cli"],
];

/// Files that may contain `unsafe`.
const UNSAFE: &[&str] = &["src/cast/fast/mod.rs", "src/cast/fast/hardware.rs", "src/gpu/driver.rs"];

/// Longest file. Tables may be longer.
const MAX_LINES: usize = 400;
const TABLES: &[&str] = &["src/format/table.rs", "src/scaler/table.rs", "src/training/autocast/table.rs"];

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let mut folders = vec![root.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(files.len() > 20, "found only {} source files", files.len());
    files
}

fn module(path: &Path) -> String {
    let inside = path.strip_prefix("src").unwrap();
    inside.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&module))
}

#[test]
fn modules_import_only_from_their_left() {
    for (path, text) in sources() {
        let importer = module(&path);
        if importer == "lib" || importer == "main" {
            continue;
        }
        let own = layer(&importer).unwrap_or_else(|| panic!("{importer} has no layer"));
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            for (at, _) in code.match_indices("crate::") {
                let rest = &code[at + "crate::".len()..];
                let imported: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let Some(theirs) = layer(&imported) else {
                    panic!("{}: unknown module {imported}", path.display())
                };
                assert!(
                    theirs < own || imported == importer,
                    "{}:{}: {importer} imports {imported}, which is not to its left",
                    path.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn unsafe_stands_only_where_it_is_allowed() {
    for (path, text) in sources() {
        let uses =
            text.lines().map(|line| line.split("//").next().unwrap()).any(|code| code.contains("unsafe "));
        assert!(!uses || UNSAFE.contains(&path.to_str().unwrap()), "{} contains unsafe code", path.display());
    }
}

#[test]
fn files_are_short() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        let allowed = lines <= MAX_LINES || TABLES.contains(&path.to_str().unwrap());
        assert!(allowed, "{} has {lines} lines: split it", path.display());
    }
}

#[test]
fn exponents_are_never_taken_from_log2_where_counts_are_made() {
    // floor(log2(x)) is off by one just below large powers of two.
    for (path, text) in sources() {
        let counts = ["format", "tensor", "cast", "stats"].contains(&module(&path).as_str());
        let floors = text
            .lines()
            .any(|line| line.contains("log2()") && (line.contains("floor") || line.contains(" as i")));
        assert!(!(counts && floors), "{} takes an exponent from log2", path.display());
    }
}
