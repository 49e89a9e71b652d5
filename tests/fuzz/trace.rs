//! Whatever the bytes are, a trace of them is read or refused.
#![no_main]

use amp_inspect::format;
use amp_inspect::scaler::trace::{Evidence, FP32_GRADS, Join, read};
use libfuzzer_sys::fuzz_target;
use regex::Regex;

fuzz_target!(|bytes: &[u8]| {
    let (Ok(folder), Ok(format), Ok(single)) = (tempfile::tempdir(), format::find("float16"), Regex::new(FP32_GRADS))
    else {
        return;
    };
    let path = folder.path().join("x");
    if std::fs::write(&path, bytes).is_ok() {
        let mut join = Join::new(format, single, Evidence::All);
        let _ = read(&path, &[], &mut join);
    }
});
