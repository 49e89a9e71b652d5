//! Readers against files: good values, exact refusals, truncation and damage.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use amp_inspect::error::Result;
use amp_inspect::source::{TensorSource, open};
use amp_inspect::tensor::{ByteOrder, Chunk, Decoder, Dtype, TensorInfo};
use serde_json::Value;

#[path = "sources/cases.rs"]
mod cases;
#[path = "sources/checkpoints.rs"]
mod checkpoints;
mod common;
#[path = "sources/hostile.rs"]
mod hostile;
#[path = "sources/paths.rs"]
mod paths;
#[path = "sources/rules.rs"]
mod rules;
#[path = "sources/tables.rs"]
mod tables;

const CASES: &str = "testdata/sources";

fn expectations() -> BTreeMap<String, Value> {
    serde_json::from_str(&fs::read_to_string(format!("{CASES}/expected.json")).unwrap()).unwrap()
}

fn case(name: &str) -> PathBuf {
    Path::new(CASES).join(name)
}

/// All values of a tensor that is taken for `info`; small ones are read in chunks of 8 elements.
fn values(source: &dyn TensorSource, index: usize, info: &TensorInfo) -> Result<Vec<f64>> {
    let mut decoder = Decoder::new(info)?;
    let mut values = Vec::new();
    let step = if info.elements < 10_000 { 8 } else { 1 << 16 };
    for start in (0..info.elements).step_by(step) {
        let count = (info.elements - start).min(step as u64) as usize;
        let offset = start * u64::from(info.dtype.bits()) / 8;
        match decoder.chunk(count, |bytes| source.read_at(index, offset, bytes))? {
            Chunk::F32(chunk) => values.extend(chunk.iter().map(|&x| f64::from(x))),
            Chunk::F64(chunk) => values.extend(chunk),
        }
    }
    Ok(values)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(number).collect()
}

/// Equal to the bit, but that all NaNs are one.
fn assert_values(found: &[f64], wanted: &[f64], of: &str) {
    let bits = |list: &[f64]| -> Vec<_> {
        list.iter().map(|x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }).collect()
    };
    assert_eq!(bits(found), bits(wanted), "{of}: {found:?} is not {wanted:?}");
}

/// Values in C order, rearranged to the order of a Fortran file: the first dimension runs fastest.
fn fortran(shape: &[u64], list: &[f64]) -> Vec<f64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as usize;
    }
    let at = |mut index: usize| {
        let offset = shape.iter().zip(&strides).map(|(&extent, stride)| {
            let here = index % extent as usize;
            index /= extent as usize;
            here * stride
        });
        list[offset.sum::<usize>()]
    };
    (0..list.len()).map(at).collect()
}

#[test]
fn integers_keep_their_bytes() {
    for (name, wanted) in expectations().iter().filter(|(_, wanted)| wanted.get("values_exact").is_some()) {
        let source = open(&case(name)).unwrap();
        let info = &source.tensors()[0];
        let mut bytes = vec![0; info.bytes() as usize];
        source.read_at(0, 0, &mut bytes).unwrap();
        let width = (info.dtype.bits() / 8) as usize;
        let found = bytes.chunks(width).map(|element| {
            let unsigned = element.iter().rev().fold(0_i128, |sum, &byte| sum << 8 | i128::from(byte));
            let negative = info.dtype.name().contains('i') && element[width - 1] >= 128;
            unsigned - if negative { 1 << (8 * width) } else { 0 }
        });
        let wanted: Vec<i128> = wanted["values_exact"]
            .as_array()
            .unwrap()
            .iter()
            .map(|x| x.to_string().parse().unwrap())
            .collect();
        assert_eq!(found.collect::<Vec<_>>(), wanted, "{name}");
    }
}

#[test]
fn safetensors_directories_are_read_in_the_order_of_the_data() {
    let names = |file| -> Vec<_> {
        let source = open(&case(file)).unwrap();
        source.tensors().iter().map(|tensor| tensor.name.clone()).collect()
    };
    assert_eq!(names("safetensors/unsorted_offsets.safetensors"), ["a", "b"]);
    assert_eq!(names("safetensors/unicode_names.safetensors"), ["层.0.梯度", "a\"b\\c\n"]);
    let integers = ["i64", "u64", "i32", "u32", "i16", "u16", "i8", "u8", "b"];
    assert_eq!(names("safetensors/bool_ints.safetensors"), integers);

    let metadata = |file| open(&case(file)).unwrap().metadata().to_vec();
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let pairs = metadata("safetensors/metadata_only.safetensors");
    assert_eq!(pairs, [pair("format", "pt"), pair("step", "1200")]);
    assert_eq!(metadata("safetensors/metadata_nonstring.safetensors"), [pair("step", "1200")]);
}

#[test]
fn arrays_appended_to_an_npy_file_are_read_too() {
    let name = "npy/two_arrays_concatenated.npy";
    let source = open(&case(name)).unwrap();
    let tensors = source.tensors();
    assert_eq!(tensors[1].name, "two_arrays_concatenated[1]");
    assert_values(
        &values(&*source, 1, &tensors[1]).unwrap(),
        &numbers(&expectations()[name]["second"]),
        name,
    );
}

#[test]
fn one_tensor_from_two_containers_is_the_same() {
    let alone = open(Path::new("testdata/gpt/h0_fc_weight_grad_step01500.npy")).unwrap();
    let all = open(Path::new("testdata/gpt/grads_step01500.safetensors")).unwrap();
    let index = all.tensors().iter().position(|tensor| tensor.name == "h.0.fc.weight").unwrap();
    assert_eq!(alone.tensors()[0].shape, [256, 64]);
    let (alone, all) = (
        values(&*alone, 0, &alone.tensors()[0]).unwrap(),
        values(&*all, index, &all.tensors()[index]).unwrap(),
    );
    assert_eq!(alone, all);
}

#[test]
fn compressed_tensors_can_be_read_in_any_order() {
    let packed = open(&case("../gpt/grads_step01500_h0.npz")).unwrap();
    let plain = open(&case("../gpt/grads_step01500.safetensors")).unwrap();
    for (index, info) in packed.tensors().iter().enumerate() {
        assert!(packed.in_order(index));
        let same = plain.tensors().iter().position(|tensor| tensor.name == info.name).unwrap();
        let mut wanted = vec![0; info.bytes() as usize];
        plain.read_at(same, 0, &mut wanted).unwrap();
        for number in (0..wanted.len().div_ceil(1000)).rev().chain([0, 3, 1]) {
            let offset = (1000 * number).min(wanted.len());
            let mut bytes = vec![0; 1000.min(wanted.len() - offset)];
            packed.read_at(index, offset as u64, &mut bytes).unwrap();
            assert_eq!(bytes, wanted[offset..offset + bytes.len()]);
        }
    }
}

/// Writes `bytes` and opens them under a name with `like`'s extension.
fn open_bytes(directory: &Path, like: &str, bytes: &[u8]) -> Result<Box<dyn TensorSource>> {
    let file = directory.join("x").with_extension(Path::new(like).extension().unwrap());
    fs::write(&file, bytes).unwrap();
    open(&file)
}

const DAMAGED: [&str; 10] = [
    "npy/two_arrays_concatenated.npy",
    "npy/descr_named_bfloat16.npy",
    "safetensors/unicode_names.safetensors",
    "safetensors/metadata_only.safetensors",
    "npz/non_npy_member.npz",
    "npz/duplicate_names.npz",
    "pt/handmade_good.pt",
    "pt/zip_deflated_members.pt",
    "pt/legacy_nonzip.pt",
    "pt/plain_pickle_numpy_p5.pkl",
];

#[test]
fn a_file_cut_anywhere_is_refused_or_gives_true_values() {
    let directory = tempfile::tempdir().unwrap();
    for name in DAMAGED {
        let bytes = fs::read(case(name)).unwrap();
        let whole = open(&case(name)).unwrap();
        let path = directory.path().join("x").with_extension(Path::new(name).extension().unwrap());
        fs::write(&path, &bytes).unwrap();
        // Shortened in place: writing a file anew thousands of times is slow.
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        for length in (0..bytes.len()).rev() {
            file.set_len(length as u64).unwrap();
            let Ok(cut) = open(&path) else { continue };
            let lacks_some = !cut.problems().is_empty() || !cut.notices().is_empty();
            assert!(lacks_some || cut.tensors().len() == 1, "{name} cut to {length} bytes");
            for (index, tensor) in cut.tensors().iter().enumerate() {
                let same = whole.tensors().iter().position(|its| its.name == tensor.name);
                let same = same.unwrap_or(index);
                let found = values(&*cut, index, tensor).unwrap();
                assert_values(&found, &values(&*whole, same, &whole.tensors()[same]).unwrap(), name);
            }
        }
    }
}

#[test]
fn a_damaged_byte_anywhere_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    for name in DAMAGED {
        let bytes = fs::read(case(name)).unwrap();
        let path = directory.path().join("x").with_extension(Path::new(name).extension().unwrap());
        fs::write(&path, &bytes).unwrap();
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mut put = |at: usize, byte: u8| {
            file.seek(SeekFrom::Start(at as u64)).unwrap();
            file.write_all(&[byte]).unwrap();
        };
        for at in 0..bytes.len() {
            for flip in [0x01, 0x02, 0x10, 0x80, 0xff, bytes[at], bytes[at] ^ b'9', bytes[at] ^ b'['] {
                put(at, bytes[at] ^ flip);
                let Ok(source) = open(&path) else { continue };
                for (index, tensor) in source.tensors().iter().enumerate() {
                    assert!(tensor.bytes() <= bytes.len() as u64);
                    let _ = source.read_at(index, 0, &mut vec![0; tensor.bytes() as usize]);
                }
            }
            put(at, bytes[at]);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn sizes_in_headers_are_not_allocated() {
    let peak = || -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmPeak:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let before = peak();
    for name in
        ["npy/hdr_v2_len_4GB.npy", "npy/hdr_claims_1TB.npy", "safetensors/header_len_huge.safetensors"]
    {
        assert!(open(&case(name)).is_err());
    }
    assert!(peak() - before < 1 << 20, "more than 1 GiB of address space was taken");
}

#[test]
fn reading_outside_a_tensor_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = fs::read(case("npy/v1_f4.npy")).unwrap();
    let source = open_bytes(directory.path(), "x.npy", &bytes).unwrap();
    let what = |index, offset, count| {
        source.read_at(index, offset, &mut vec![0; count]).unwrap_err().what().to_owned()
    };
    assert_eq!(what(1, 0, 4), "there is no tensor number 1");
    assert_eq!(what(0, 20, 5), "5 bytes from byte 20 on go beyond the tensor's 24 bytes");
    assert_eq!(
        what(0, 1 << 63, 2),
        "2 bytes from byte 9223372036854775808 on go beyond the tensor's 24 bytes"
    );
    fs::write(directory.path().join("x.npy"), &bytes[..140]).unwrap();
    assert_eq!(what(0, 0, 24), "the file has become shorter than the 152 bytes it had");
}

#[test]
fn a_told_dtype_must_have_the_stored_width() {
    let dtype = Dtype::Other { name: "U8".to_owned(), bits: 8 };
    let byte_order = ByteOrder::Little;
    let bytes = TensorInfo { name: "w".to_owned(), shape: vec![2, 3], dtype, byte_order, elements: 6 };
    let packed = bytes.reinterpret(&Dtype::parse("float4_e2m1fn_x2").unwrap()).unwrap();
    assert_eq!((packed.shape.as_slice(), packed.elements, packed.bytes()), ([2, 6].as_slice(), 12, 6));
    // Packed stays packed, whatever other 4-bit format it is taken for.
    assert_eq!(packed.reinterpret(&Dtype::parse("e1m2fn").unwrap()).unwrap().bytes(), 6);
    let alone = bytes.reinterpret(&Dtype::parse("fp4").unwrap()).unwrap();
    assert_eq!((alone.elements, alone.bytes()), (6, 6));
    let error = bytes.reinterpret(&Dtype::parse("bf16").unwrap()).unwrap_err();
    let what =
        "tensor 'w': elements of type U8 are 8 bits wide, so they cannot be read as bfloat16 of 16 bits";
    assert_eq!(error.to_string(), what);
}
