//! Archives and pickles made to do harm, or half written: each rule with its sentence, and many random damages.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use amp_inspect::error::Result;
use amp_inspect::source::{TensorSource, open};
use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::{case, open_bytes};
use crate::common::Random;

/// A member to write: name, method, what its records claim to be its size unpacked, and its stored bytes.
struct Member {
    name: &'static str,
    method: u16,
    flags: u16,
    crc: u32,
    unpacked: u32,
    stored: Vec<u8>,
    /// Where its record says that it is, if not where it is.
    at: Option<u32>,
}

fn stored(name: &'static str, bytes: &[u8]) -> Member {
    let (unpacked, stored) = (bytes.len() as u32, bytes.to_vec());
    Member { name, method: 0, flags: 0, crc: 0, unpacked, stored, at: None }
}

fn deflated(name: &'static str, bytes: &[u8]) -> Member {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    Member { method: 8, stored: encoder.finish().unwrap(), ..stored(name, bytes) }
}

/// A zip archive, after APPNOTE 6.3: local headers with the data, directory, end record.
fn zip(members: &[Member]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for member in members {
        let at = member.at.unwrap_or(file.len() as u32);
        let common = |out: &mut Vec<u8>| {
            out.extend(20_u16.to_le_bytes());
            out.extend(member.flags.to_le_bytes());
            out.extend(member.method.to_le_bytes());
            out.extend([0; 4]);
            out.extend(member.crc.to_le_bytes());
            out.extend((member.stored.len() as u32).to_le_bytes());
            out.extend(member.unpacked.to_le_bytes());
            out.extend((member.name.len() as u16).to_le_bytes());
            out.extend([0; 2]);
        };
        file.extend(b"PK\x03\x04");
        common(&mut file);
        file.extend(member.name.as_bytes());
        file.extend(&member.stored);
        directory.extend(b"PK\x01\x02\x14\0");
        common(&mut directory);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(member.name.as_bytes());
    }
    let (at, size, count) = (file.len() as u32, directory.len() as u32, members.len() as u16);
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend(size.to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend([0; 2]);
    file
}

/// An npy file of one float32.
fn npy() -> Vec<u8> {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}";
    [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &[0, 0, 0x80, 0x3f]]
        .concat()
}

/// What is said of a file, without its path: the refusal, the first problem, or the first error of reading.
fn said(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let error =
        match open_bytes(folder.path(), if bytes.starts_with(b"PK") { "x.npz" } else { "x.pt" }, bytes) {
            Err(error) => error,
            Ok(source) => match source.problems() {
                [first, ..] => first.clone(),
                [] => {
                    let mut read = (0..source.tensors().len()).map(|index| {
                        source.read_at(index, 0, &mut vec![0; source.tensors()[index].bytes() as usize])
                    });
                    read.find_map(Result::err).unwrap_or_else(|| panic!("nothing is said"))
                }
            },
        };
    error.to_string().split_once(": ").unwrap().1.to_owned()
}

#[test]
fn archives_follow_the_rules() {
    let whole = npy();
    let good = || stored("a.npy", &whole);
    let at_byte = |member: Member| said(&zip(&[member]));
    assert_eq!(at_byte(Member { flags: 1, ..good() }), "tensor 'a': member 'a.npy': is encrypted");
    assert_eq!(
        at_byte(Member { method: 93, ..good() }),
        "tensor 'a': member 'a.npy': is compressed with zip method 93: only stored and deflated members are read; pack it anew"
    );
    assert_eq!(
        at_byte(Member { unpacked: 70, ..good() }),
        "tensor 'a': member 'a.npy': is stored as 69 bytes, but the directory claims 70"
    );
    let damaged =
        "tensor 'a': member 'a.npy': the data are damaged: their CRC-32 is not the one that was recorded";
    assert_eq!(at_byte(Member { crc: 1, ..good() }), damaged);
    let packed = deflated("a.npy", &whole);
    assert_eq!(at_byte(Member { crc: 1, ..packed }), damaged);
    // Claims of less and of more than is there.
    let packed = deflated("a.npy", &whole);
    // Behind the local header of 30 bytes and the name.
    let end = 35 + packed.stored.len();
    assert_eq!(
        at_byte(Member { unpacked: 68, ..packed }),
        format!(
            "tensor 'a': member 'a.npy': unpacks to more than the 68 bytes it should have, at byte {end} of the file"
        )
    );
    let packed = deflated("a.npy", &whole);
    assert_eq!(
        at_byte(Member { unpacked: u32::MAX - 1, ..packed }),
        format!(
            "tensor 'a': member 'a.npy': the compressed data end after 69 of 4294967294 bytes, at byte {end} of the file"
        )
    );
    let overlapping = [good(), Member { at: Some(0), ..stored("b.npy", &whole) }];
    assert_eq!(
        said(&zip(&overlapping)),
        "tensor 'b': member 'b.npy': its data overlap those of another member, from byte 35 of the file on"
    );
    let beyond = [Member { stored: whole.clone(), at: Some(60), ..good() }];
    let what = "the archive's directory is damaged, or belongs to another archive in the same file (is it two files in one?)";
    assert_eq!(said(&zip(&beyond)), format!("tensor 'a': byte 104 of member 'a.npy': {what}"));
    assert_eq!(
        said(&zip(&[stored("a.txt", b"x")])),
        "is a zip archive without NumPy arrays and not one of torch.save"
    );
    let mut two = zip(&[good()]);
    two.extend(zip(&[good()]));
    assert_eq!(said(&two), format!("byte 104: {what}"));
    let cut = zip(&[good()]);
    let what = "the archive has no directory at its end, as when a job is killed while it saves";
    assert_eq!(said(&cut[..110]), format!("byte 110: {what}"));
}

#[test]
fn pickles_follow_the_rules() {
    let refused: [(&[u8], &str); 20] = [
        (b"\x80\x02\x80\x06N.", "byte 2: pickle protocol 6 is unknown; there are 0 to 5"),
        (b"\x80\x02", "byte 2: the file ends within a pickle"),
        (b"\x80\x02.", "byte 2: the pickle takes a value that it has not made"),
        (b"\x80\x02(0.", "byte 4: the pickle takes a value that it has not made"),
        (b"\x80\x02t.", "byte 2: the pickle goes back to a mark that it has not set"),
        (b"\x80\x02h\x07.", "byte 2: the pickle recalls number 7, which it has not put aside"),
        (b"\x80\x02NNa.", "byte 4: the pickle appends to what is no list"),
        (b"\x80\x02NNNs.", "byte 5: the pickle sets keys of what is no dict"),
        (b"\x80\x02}(Nu.", "byte 5: the pickle sets a key without a value"),
        (b"\x80\x02NNb.", "byte 4: the pickle sets the state of what is no object"),
        (b"\x80\x02NNR.", "byte 4: the pickle calls what is no class or function"),
        (b"\x80\x02\xff.", "byte 2: 0xff is no opcode of a pickle"),
        (
            b"\x80\x02X\xff\xff\xff\x7fab.",
            "byte 7: a string of 2147483647 bytes is longer than the 3 bytes that are left",
        ),
        (b"\x80\x02X\x01\0\0\0\xff.", "byte 7: a text is not UTF-8"),
        (b"\x80\x02\x8b\xff\xff\xff\xff.", "byte 2: an integer claims a length of -1 bytes"),
        (b"\x80\x02Iabc\n.", "byte 2: 'abc' is no integer"),
        (b"\x80\x02Fabc\n.", "byte 2: 'abc' is no number"),
        (
            b"\x80\x02cos\nsystem\n.",
            "byte 2: the pickle names 'os.system', which runs code: no dump needs it, and nothing of it is read",
        ),
        (
            b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
            "byte 18: the pickle names 'builtins.eval', which runs code: no dump needs it, and nothing of it is read",
        ),
        (
            b"\x80\x05\x97.",
            "byte 2: the pickle uses the opcode NEXT_BUFFER, which no dump needs; it is not read",
        ),
    ];
    for (bytes, sentence) in refused {
        assert_eq!(said(bytes), sentence);
    }
}

#[test]
fn pickles_cannot_grow_without_bound() {
    // Deep, self-referring and exponentially shared containers: each list holds the one before twice.
    let mut deep = b"\x80\x02".to_vec();
    deep.extend([b']'; 5000]);
    deep.extend([b'a'; 4999]);
    deep.push(b'.');
    assert_eq!(said(&deep), "the pickle nests its containers more than 1000 deep");
    assert_eq!(said(b"\x80\x02]q\0h\0a."), "tensor '0': the pickle has a container that contains itself");
    let mut shared = b"\x80\x02]q\0".to_vec();
    for number in 0..200_u8 {
        shared.extend([b']', b'(', b'h', number, b'h', number, b'e', b'q', number + 1]);
    }
    shared.push(b'.');
    assert_eq!(said(&shared), "the pickle's containers refer to each other without end");
    // 300,000 values from 4 KiB.
    let mut many = vec![b'N'; 300_000];
    many[..3].copy_from_slice(b"\x80\x02(");
    many.extend(b"t.");
    let bomb = zip(&[deflated("archive/data.pkl", &many)]);
    assert!(bomb.len() < 4096);
    let said = said(&bomb);
    assert!(
        said.starts_with("byte ")
            && said.contains(" of member 'archive/data.pkl': the pickle holds more than "),
        "{said}"
    );
}

/// Changes a file at random: bytes, numbers, pieces moved, left out or doubled.
fn damage(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.bits() % 4 {
        let at = (random.bits() % bytes.len() as u64) as usize;
        let len = (random.bits() % 16) as usize;
        let end = (at + len).min(bytes.len());
        match random.bits() % 6 {
            0 => bytes[at] = random.bits() as u8,
            1 => bytes[at..end].fill(0xff),
            2 => bytes[at..end].fill(0),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let piece = bytes[at..end].to_vec();
                let to = (random.bits() % (bytes.len() as u64 + 1)) as usize;
                bytes.splice(to..to, piece);
            }
            _ => bytes[at] ^= 1 << (random.bits() % 8),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

/// Whatever is done to a good file, it is read or refused: no panic, no endless loop, no more bytes than a
/// small multiple of what is there.
#[test]
fn damaged_files_of_every_kind_are_survived() {
    let good = [
        "npy/structured_v3_utf8_name.npy",
        "npy/f4_fortran_2x3x4.npy",
        "npz/savez_deflated.npz",
        "npz/duplicate_names.npz",
        "safetensors/unicode_names.safetensors",
        "safetensors/sharded/model.safetensors.index.json",
        "pt/views_strides.pt",
        "pt/numpy_inside.pt",
        "pt/set_and_misc.pt",
        "pt/whole_module_user_class.pt",
        "pt/legacy_nonzip.pt",
        "pt/plain_pickle_numpy.pkl",
        "../checkpoints/two_ranks/.metadata",
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(5);
    let times = if crate::common::exhaustive() { 20_000 } else { 150 };
    for name in good {
        let bytes = fs::read(case(name)).unwrap();
        let path = folder.path().join(Path::new(name).file_name().unwrap());
        for _ in 0..times {
            fs::write(&path, damage(&bytes, &mut random)).unwrap();
            let Ok(source) = open(&path) else { continue };
            read_some(&*source);
        }
    }
    assert!(!Path::new("io_cases_pwned_file").exists(), "a pickle was executed");
}

fn read_some(source: &dyn TensorSource) {
    for (index, tensor) in source.tensors().iter().enumerate() {
        let end = tensor.bytes();
        for (from, to) in [(0, end.min(4096)), (end.saturating_sub(100), end)] {
            let _ = source.read_at(index, from, &mut vec![0; (to - from) as usize]);
        }
    }
}
