//! Whatever the bytes are, a trace of them is read or refused.
#![no_main]

use std::sync::LazyLock;

use amp_inspect::format;
use amp_inspect::scaler::trace::{Evidence, FP32_GRADS, Join, read};
use libfuzzer_sys::fuzz_target;
use regex::Regex;

/// Compiling it takes longer than reading a trace.
static SINGLE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(FP32_GRADS).ok());

fuzz_target!(|bytes: &[u8]| {
    let (Ok(folder), Ok(format), Some(single)) = (tempfile::tempdir(), format::find("float16"), &*SINGLE) else {
        return;
    };
    let path = folder.path().join("x");
    if std::fs::write(&path, bytes).is_ok() {
        let mut join = Join::new(format, single.clone(), Evidence::All);
        let _ = read(&path, &[], &mut join);
    }
});
