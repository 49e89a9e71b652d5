//! What is to be said of the inputs beside the result.

use std::collections::{BTreeMap, BTreeSet};

use super::Dump;
use crate::error::escape;
use crate::source::DumpRecords;

/// Most kinds of files that are named.
const KINDS: usize = 5;

/// `skipped 12 files that are no dumps: 7 .csv, 4 .json, 1 .py`
pub(super) fn skipped_files(skipped: &BTreeMap<String, u64>) -> Option<String> {
    let total: u64 = skipped.values().sum();
    let (files, are) = if total == 1 { ("file", "is no dump") } else { ("files", "are no dumps") };
    let mut kinds: Vec<(&String, &u64)> = skipped.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let kind = |&(extension, count): &(&String, &u64)| match extension.as_str() {
        "" => format!("{count} without extension"),
        extension => format!("{count} .{}", escape(extension)),
    };
    let mut named: Vec<String> = kinds.iter().take(KINDS).map(kind).collect();
    if kinds.len() > KINDS {
        named.push(format!("{} others", kinds[KINDS..].iter().map(|(_, count)| **count).sum::<u64>()));
    }
    let tables = ["csv", "tsv"].iter().any(|table| skipped.contains_key(*table));
    let tables = if tables { " (tables are read if they are named)" } else { "" };
    (total > 0).then(|| format!("skipped {total} {files} that {are}: {}{tables}", named.join(", ")))
}

/// `dump.json says of 3 tensors that they had another type in the run: bfloat16 (stored as float32)`
pub(super) fn other_types(dumps: &[Dump]) -> Option<String> {
    let mut records = DumpRecords::default();
    let (mut count, mut types) = (0, BTreeSet::new());
    for Dump { path, source, .. } in dumps {
        if let ([info], Some(dtype)) = (source.tensors(), records.dtype(path))
            && info.dtype != dtype
        {
            count += 1;
            types.insert(format!("{} (stored as {})", dtype.name(), info.dtype.name()));
        }
    }
    let (tensors, they) = if count == 1 { ("tensor", "it") } else { ("tensors", "they") };
    let types = types.into_iter().collect::<Vec<_>>().join(", ");
    (count > 0).then(|| {
        format!("dump.json says of {count} {tensors} that {they} had another type in the run: {types}")
    })
}

/// `skipped 5 tensors whose type names no floating-point format: 3 I64, 2 BOOL`
pub(super) fn skipped_types(skipped: &BTreeMap<&str, u64>) -> Option<String> {
    let total: u64 = skipped.values().sum();
    let types: Vec<String> =
        skipped.iter().map(|(dtype, count)| format!("{count} {}", escape(dtype))).collect();
    let tensors = if total == 1 { "tensor" } else { "tensors" };
    (total > 0).then(|| {
        format!(
            "skipped {total} {tensors} whose type names no floating-point format: {} (--dtype reads such codes)",
            types.join(", ")
        )
    })
}
