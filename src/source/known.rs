//! Files that are no dump this crate can read, but that can be told by their first bytes.

use std::path::Path;

/// Bytes needed from the start of a file to tell what it is: a MATLAB file may have its mark at byte 512.
pub(super) const FIRST_BYTES: u64 = 520;

/// A kind of file: where its mark stands, the mark, and what to say of it.
struct Known {
    offset: usize,
    magic: &'static [u8],
    what: &'static str,
}

const fn known(magic: &'static [u8], what: &'static str) -> Known {
    Known { offset: 0, magic, what }
}

const KNOWN: &[Known] = &[
    known(
        b"version https://git-lfs.github.com/spec/",
        "is a git-lfs pointer, not the data it stands for; fetch them with 'git lfs pull'",
    ),
    known(b"\x89HDF\r\n\x1a\n", HDF5),
    Known { offset: 512, magic: b"\x89HDF\r\n\x1a\n", what: HDF5 },
    known(b"GGUF", "is a GGUF file; these are not read: save the dequantised tensors as safetensors"),
    known(b"PAR1", "is a Parquet file, a table; save the tensors as safetensors or with numpy.savez"),
    known(b"ARROW1", "is an Arrow file, a table; save the tensors as safetensors or with numpy.savez"),
    known(
        b"MATLAB 5.0 MAT-file",
        "is a MATLAB file; these are not read: save the arrays with scipy and numpy.savez",
    ),
    Known {
        offset: 23,
        magic: b"brain.Event:",
        what: "is a TensorBoard event file: summaries, not tensors; simulate-scaler reads them",
    },
    known(b"SQLite format 3\0", "is an SQLite database, not a tensor dump"),
    known(b"\x1f\x8b", "is compressed with gzip; unpack it first"),
    known(b"\x28\xb5\x2f\xfd", "is compressed with zstd; unpack it first"),
    known(b"\xfd7zXZ\0", "is compressed with xz; unpack it first"),
    known(b"BZh", "is compressed with bzip2; unpack it first"),
    known(b"\x04\x22\x4d\x18", "is compressed with lz4; unpack it first"),
    known(b"7z\xbc\xaf\x27\x1c", "is a 7z archive; unpack it first"),
    Known { offset: 257, magic: b"ustar", what: "is a tar archive; unpack it first" },
    known(b"\x7fELF", "is a program, not a tensor dump"),
    known(b"\x89PNG\r\n\x1a\n", "is a PNG picture, not a tensor dump"),
    known(b"%PDF-", "is a PDF document, not a tensor dump"),
    known(b"<!DOCTYPE", HTML),
    known(b"<!doctype", HTML),
    known(b"<html", HTML),
];

const HDF5: &str = "is an HDF5 file; these are not read: save the arrays with h5py and numpy.savez";
const HTML: &str = "is a web page, perhaps the answer to a download that failed";

/// What a file that begins with `first` really is, if its mark is known.
pub(super) fn by_magic(first: &[u8]) -> Option<&'static str> {
    let matches = |known: &&Known| first.get(known.offset..).is_some_and(|at| at.starts_with(known.magic));
    KNOWN.iter().find(matches).map(|known| known.what)
}

/// What files without a mark are, by their extension.
pub(super) fn by_extension(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "onnx" => Some("is an ONNX model; these are not read: save its initializers with numpy.savez"),
        "msgpack" => {
            Some("is a MessagePack file (flax); these are not read: save the arrays with numpy.savez")
        }
        "arrows" => Some("is an Arrow stream, a table; save the tensors as safetensors or with numpy.savez"),
        _ => None,
    }
}

/// What a folder without dumps is, by the files in it.
pub(super) fn by_files(folder: &Path) -> Option<&'static str> {
    let has = |names: &[&str]| names.iter().any(|name| folder.join(name).exists());
    if has(&["manifest.ocdbt", "_CHECKPOINT_METADATA"]) {
        Some("is an Orbax checkpoint; these are not read: restore it and save the arrays with numpy.savez")
    } else if has(&["zarr.json", ".zgroup", ".zarray", ".zmetadata"]) {
        Some("is a Zarr store; these are not read: save the arrays with numpy.savez")
    } else {
        None
    }
}

/// What bytes without a mark look like.
pub(super) fn by_content(first: &[u8]) -> Option<&'static str> {
    if first.iter().all(|&byte| byte == 0) {
        return Some("begins with nothing but zero bytes, as a crash or a full disk leaves behind");
    }
    // The last character may be cut by the end of what was read.
    let text = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    if text.is_empty() || text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with(['{', '[']) {
        Some("is JSON text, not a tensor dump")
    } else {
        Some("is plain text, not a tensor dump")
    }
}
