//! Whatever the bytes are, a file of them is opened and read, or refused. The name of the target is the
//! file's extension.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(folder) = tempfile::tempdir() else { return };
    let path = folder.path().join("x").with_extension(env!("CARGO_BIN_NAME"));
    if std::fs::write(&path, bytes).is_err() {
        return;
    }
    let Ok(source) = amp_inspect::source::open(&path) else { return };
    for (index, tensor) in source.tensors().iter().enumerate() {
        let end = tensor.bytes();
        for (from, to) in [(0, end.min(4096)), (end.saturating_sub(100), end)] {
            let _ = source.read_at(index, from, &mut vec![0; (to - from) as usize]);
        }
    }
});
