//! From a path to a reader: what a file is, what cannot be opened, what directories and patterns stand for.

use std::fs;
use std::path::Path;

use amp_inspect::source::{discover, open};

use super::{case, open_bytes};

#[test]
fn a_file_is_told_by_its_first_bytes() {
    let tar: Vec<u8> = [&[b'a'; 257][..], b"ustar\0"].concat();
    let kinds: [(&[u8], &str); 11] = [
        (b"\x80\x04\x95", "the file ends within a pickle"),
        (
            b"\x89HDF\r\n\x1a\n",
            "is an HDF5 file; these are not read: save the arrays with h5py and numpy.savez",
        ),
        (
            b"GGUF\x03\0\0\0",
            "is a GGUF file; these are not read: save the dequantised tensors as safetensors",
        ),
        (b"\x1f\x8b\x08", "is compressed with gzip; unpack it first"),
        (&tar, "is a tar archive; unpack it first"),
        (b"<html>", "is a web page, perhaps the answer to a download that failed"),
        (b"{\"metadata\": {}}", "is JSON text, not a tensor dump"),
        ("1,5;2,5;µ".as_bytes(), "is plain text, not a tensor dump"),
        (&[0; 700], "begins with nothing but zero bytes, as a crash or a full disk leaves behind"),
        (b"", "is empty, as a job that ends while it opens its dump leaves it"),
        (
            b"\x01\xff\x03",
            "is no dump of a kind that can be read (npy, npz, safetensors, sharded model, PyTorch distributed, PyTorch)",
        ),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (bytes, what) in kinds {
        let error = open_bytes(directory.path(), "x.dump", bytes).err().expect(what);
        assert_eq!(error.what(), what);
    }
    for name in ["npy/f2_be.npy", "safetensors/f16.safetensors"] {
        let source = open_bytes(directory.path(), "x.dat", &fs::read(case(name)).unwrap()).unwrap();
        assert_eq!(source.tensors()[0].shape, [6]);
    }
}

#[test]
fn what_cannot_be_opened_is_told_in_the_systems_words() {
    let directory = tempfile::tempdir().unwrap();
    let what = |path: &Path| open(path).err().unwrap().what().to_owned();
    assert_eq!(what(directory.path()), "cannot open the file: is a directory");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let none = directory.path().join("none");
        assert_eq!(what(&none), "cannot open the file: no such file or directory");
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let refusal = "is a pipe, socket or device; only regular files can be read at any position";
        assert_eq!(what(&pipe), refusal);
        assert_eq!(what(Path::new("/dev/zero")), refusal);
        let secret = directory.path().join("secret");
        fs::write(&secret, "x").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser may read everything.
        if fs::File::open(&secret).is_err() {
            assert_eq!(what(&secret), "cannot open the file: permission denied");
        }
    }
}

#[test]
fn discovery_walks_directories_and_expands_patterns() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let npy = fs::read(case("npy/v1_f4.npy")).unwrap();
    fs::create_dir_all(at("step2/rank[0]")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    for name in ["step2/b.dump", "step2/a.npy", "step2/rank[0]/c.npy", "d.npy"] {
        fs::write(at(name), &npy).unwrap();
    }
    fs::write(at("step2/killed.safetensors"), "").unwrap();
    fs::write(at("step2/notes.txt"), "loss went up").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(directory.path(), at("step2/up")).unwrap();

    let found = discover(&[directory.path().to_owned()], false);
    let names = ["d.npy", "step2/a.npy", "step2/b.dump", "step2/killed.safetensors", "step2/rank[0]/c.npy"];
    assert_eq!(found.files, names.map(at));
    assert_eq!((found.skipped, found.problems.as_slice()), ([("txt".to_owned(), 1)].into(), [].as_slice()));

    assert_eq!(discover(&[at("step*/?.npy")], false).files, [at("step2/a.npy")]);
    assert_eq!(discover(&[at("step2/rank[0]")], false).files, [at("step2/rank[0]/c.npy")]);
    let problems = discover(&[at("no.npy"), at("no*"), at("empty"), at("[")], false).problems;
    let whats = problems.iter().map(|problem| problem.what()).collect::<Vec<_>>();
    let expected = [
        "cannot open the file: no such file or directory",
        "matches no file",
        "contains no dump that can be read; other files there: 0",
    ];
    assert_eq!(whats[..3], expected);
    assert!(whats[3].starts_with("is no file, nor a pattern: "), "{}", whats[3]);
}
