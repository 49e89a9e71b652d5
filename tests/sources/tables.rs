//! CSV and TSV.

use amp_inspect::source::discover;

use super::{assert_values, open_bytes, values};

fn found(name: &str, text: &str) -> (Vec<(String, Vec<f64>)>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let source = match open_bytes(folder.path(), name, text.as_bytes()) {
        Ok(source) => source,
        Err(error) => return (Vec::new(), vec![error.what().to_owned()]),
    };
    let tensors = source.tensors().iter().enumerate();
    let tensors =
        tensors.map(|(index, info)| (info.name.clone(), values(&*source, index, info).unwrap())).collect();
    let said = source.problems().iter().chain(source.notices());
    (tensors, said.map(|error| error.to_string().split_once(": ").unwrap().1.to_owned()).collect())
}

#[test]
fn columns_are_tensors() {
    let (tensors, said) = found("x.csv", "a,\"b,c\", d\r\n1, inf,x\r\n-0.0,NaN,\r\n,5e-324,y\r\n1e400,,\r\n");
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let wanted: [(&str, &[f64]); 2] = [("a", &[1.0, -0.0, inf]), ("b,c", &[inf, nan, 5e-324])];
    for ((name, found), (wanted_name, wanted)) in tensors.iter().zip(wanted) {
        assert_eq!(name, wanted_name);
        assert_values(found, wanted, name);
    }
    assert_eq!(said, ["the column 'd' is text; it is ignored"]);
    let (tensors, said) = found("x.tsv", "a\tb\n1\t2\n0x1\t3\n");
    assert_eq!((tensors[0].0.as_str(), tensors[0].1.as_slice()), ("b", [2.0, 3.0].as_slice()));
    assert_eq!(
        said,
        ["the column 'a' is text; it is ignored"].map(|_| "tensor 'a': line 3: '0x1' is no number")
    );
}

#[test]
fn rows_may_name_their_tensor() {
    let (tensors, said) = found("x.csv", "step;Tensor;value\n0;w;1\n0;b;2\n1;w;3\n1;w;\n");
    assert_eq!(tensors, [("w".to_owned(), vec![1.0, 3.0]), ("b".to_owned(), vec![2.0])]);
    assert_eq!(said, [""; 0]);
}

#[test]
fn tables_are_read_in_any_order_and_any_length() {
    let rows: String = (0..30_000).map(|row| format!("{row},{}\n", 2 * row)).collect();
    let folder = tempfile::tempdir().unwrap();
    let source = open_bytes(folder.path(), "x.csv", format!("n,twice\n{rows}").as_bytes()).unwrap();
    for first in [29_990_u64, 3, 20_000, 20_005] {
        let mut bytes = [0; 19];
        source.read_at(1, 8 * first + 4, &mut bytes).unwrap();
        let all: Vec<u8> = (first..first + 3).flat_map(|row| (2.0 * row as f64).to_le_bytes()).collect();
        assert_eq!(bytes, all[4..23]);
    }
    let (_, said) = found("x.csv", &format!("a\n{}\n", "1".repeat(17_000_000)));
    assert_eq!(said, ["a line is longer than 16777216 bytes"]);
}

#[test]
fn tables_in_folders_are_logs_until_they_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("loss.csv"), "step,loss\n0,1.5\n").unwrap();
    assert_eq!(discover(&[folder.path().to_owned()], false).skipped, [("csv".to_owned(), 1)].into());
    assert_eq!(discover(&[folder.path().join("loss.csv")], false).files.len(), 1);
}
