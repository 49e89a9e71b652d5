//! Every file in `testdata/sources` gives what `expected.json` says, or is refused in the words of `errors.txt`.

use std::fs;
use std::path::Path;

use amp_inspect::error::Error;
use amp_inspect::source::{RawLayout, open, open_or_raw};
use amp_inspect::tensor::{ByteOrder, Decoder, Dtype, TensorInfo};
use serde_json::Value;

use super::{CASES, assert_values, case, expectations, fortran, numbers, values};

/// A tensor, whether it is in Fortran order, and its values, if its type is one of numbers.
type Tensor = (TensorInfo, bool, Option<Vec<f64>>);

/// What a dump gives.
#[derive(Default)]
struct Found {
    /// The tensors that can be read.
    tensors: Vec<Tensor>,
    /// What is said of the rest, and then the notices.
    problems: Vec<Error>,
    notices: Vec<Error>,
}

/// The layout that options such as `--dtype f32 --byteorder big` give.
fn layout(options: &str) -> RawLayout {
    let words: Vec<_> = options.split(' ').collect();
    let value = |name| words.iter().position(|&word| word == name).map(|at| words[at + 1]);
    RawLayout {
        dtype: Dtype::parse(value("--dtype").unwrap()).unwrap(),
        byte_order: if value("--byteorder") == Some("big") { ByteOrder::Big } else { ByteOrder::Little },
        shape: None,
    }
}

/// Reads everything in the file.
fn read(name: &str, wanted: &Value) -> Found {
    let raw = wanted.get("cli").map(|options| layout(options.as_str().unwrap()));
    let source = match open_or_raw(&case(name), raw.as_ref()) {
        Ok(source) => source,
        Err(error) => return Found { problems: vec![error], ..Found::default() },
    };
    let mut found = Found {
        tensors: Vec::new(),
        problems: source.problems().to_vec(),
        notices: source.notices().to_vec(),
    };
    for (index, info) in source.tensors().iter().enumerate() {
        // What is larger is there to see that it is streamed.
        let stored = match info.dtype.is_float() && info.elements < 1 << 20 {
            true => values(&*source, index, info).map(Some),
            false => {
                source.read_at(index, 0, &mut vec![0; info.bytes().min(1 << 20) as usize]).map(|()| None)
            }
        };
        match stored {
            Ok(values) => found.tensors.push((info.clone(), source.column_major(index), values)),
            Err(error) => found.problems.push(error),
        }
    }
    found
}

/// Compares one tensor with `wanted`: a list of its values, or an object that has them.
fn check(name: &str, wanted: &Value, (info, is_fortran, found): &Tensor) {
    // Raw data have no shape of their own.
    if let (Some(shape), None) = (wanted.get("shape"), wanted.get("cli")) {
        assert_eq!(&serde_json::to_value(&info.shape).unwrap(), shape, "{name}: {}", info.name);
    }
    let lists = [Some(wanted), wanted.get("values"), wanted.get("values_C_order"), wanted.get("first")];
    let list = lists.into_iter().flatten().find(|list| list.is_array() && !list[0].is_array());
    if let (Some(list), Some(found)) = (list.map(numbers), found) {
        let list = if *is_fortran { fortran(&info.shape, &list) } else { list };
        assert_values(found, &list, name);
    }
}

/// Compares all tensors with an object of them by name; the only tensor of a file may have no name.
fn check_all(name: &str, wanted: &Value, found: &Found) {
    let Some(wanted) = wanted.as_object() else { return };
    let listed = |(info, ..): &&Tensor| info.dtype.is_float() || wanted.contains_key(&info.name);
    let names: Vec<_> = found.tensors.iter().filter(listed).map(|(info, ..)| &info.name).collect();
    assert_eq!(names.len(), wanted.len(), "{name}: {names:?}");
    for (tensor, wanted) in wanted {
        let same = |(info, ..): &&Tensor| tensor.is_empty() || &info.name == tensor;
        let found =
            found.tensors.iter().find(same).unwrap_or_else(|| panic!("{name}: no {tensor} in {names:?}"));
        check(name, wanted, found);
    }
}

#[test]
fn every_case_gives_its_values_or_is_refused() {
    let cases = expectations();
    let mut folders = vec![String::new()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(case(&folder)).unwrap().map(|entry| entry.unwrap()) {
            let name = format!("{folder}{}", entry.file_name().display());
            if entry.file_type().unwrap().is_dir() {
                folders.push(name + "/");
            } else if !folder.is_empty() {
                assert!(cases.contains_key(&name), "{name} is not expected");
                files += 1;
            }
        }
    }
    assert_eq!(files, cases.len());
    for (name, wanted) in &cases {
        let found = read(name, wanted);
        let is_refused = found.tensors.is_empty() && !found.problems.is_empty();
        match wanted["result"].as_str().unwrap() {
            "ok" | "ok-with-warning" => {
                assert!(found.problems.is_empty(), "{name}: {:?}", found.problems);
                assert!(wanted["result"] == "ok" || !found.notices.is_empty(), "{name}");
                match wanted.get("tensors") {
                    Some(tensors) => check_all(name, tensors, &found),
                    None => found.tensors.iter().take(1).for_each(|found| check(name, wanted, found)),
                }
                if let Some(count) = wanted.get("count") {
                    assert_eq!(found.tensors.len() as u64, count.as_u64().unwrap(), "{name}");
                }
                if let (Some(last), Some(found)) = (wanted.get("last"), found.tensors.last()) {
                    check(name, last, found);
                }
            }
            "ok-when-told-dtype" => {
                let source = open(&case(name)).unwrap_or_else(|error| panic!("{error}"));
                let info = &source.tensors()[0];
                assert!(!info.dtype.is_float() && Decoder::new(info).is_err(), "{name}");
                let dtype = wanted["dtype_needed"].as_str().unwrap().trim_end_matches('?');
                if let Ok(dtype) = Dtype::parse(dtype) {
                    let told = info.reinterpret(&dtype).unwrap();
                    let values = values(&*source, 0, &told).unwrap();
                    check(name, wanted, &(told, source.column_major(0), Some(values)));
                } else {
                    assert!(dtype.contains("int") || dtype.contains("complex"), "{name}: {dtype}");
                }
            }
            "partial" => {
                assert!(!found.tensors.is_empty() && !found.problems.is_empty(), "{name}");
                check_all(name, &wanted["tensors"], &found);
            }
            "error" => assert!(is_refused, "{name} is read"),
            "ok-or-clear-error" | "ok-or-error" if is_refused => {}
            "ok-or-clear-error" | "ok-or-error" => check_all(name, &wanted["tensors"], &found),
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn every_refusal_has_its_sentence() {
    let mut lines = Vec::new();
    for (name, wanted) in &expectations() {
        let found = read(name, wanted);
        lines.extend(found.problems.iter().map(Error::to_string));
        lines.extend(found.notices.iter().map(|notice| format!("notice: {notice}")));
    }
    let found = (lines.join("\n") + "\n").replace(&format!("{CASES}/"), "");
    let file = case("errors.txt");
    if std::env::var_os("AMP_INSPECT_BLESS").is_some() {
        fs::write(&file, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(file).unwrap());
    assert!(!Path::new("io_cases_pwned_file").exists(), "a pickle was executed");
}
