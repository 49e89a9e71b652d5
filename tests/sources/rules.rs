//! One file a rule, made here: what the formats' descriptions forbid or leave open.

use super::{assert_values, open_bytes, values};
use amp_inspect::error::Result;
use amp_inspect::source::TensorSource;
use amp_inspect::tensor::{ByteOrder, Dtype};

fn npy(header: &str, data: &[u8]) -> Result<Box<dyn TensorSource>> {
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    let bytes = [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), data].concat();
    open_bytes(tempfile::tempdir().unwrap().path(), "x.npy", &bytes)
}

fn array(descr: &str, shape: &str, data: &[u8]) -> Result<Box<dyn TensorSource>> {
    npy(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}"), data)
}

fn safetensors(header: &str, data: &[u8]) -> Result<Box<dyn TensorSource>> {
    let length = (header.len() as u64).to_le_bytes();
    let bytes = [&length[..], header.as_bytes(), data].concat();
    open_bytes(tempfile::tempdir().unwrap().path(), "x.safetensors", &bytes)
}

/// The refusal without its path: of the file, or else of its first tensor.
fn refusal(opened: Result<Box<dyn TensorSource>>) -> String {
    let error = match opened {
        Err(error) => error,
        Ok(source) => source.problems().first().expect("nothing is refused").clone(),
    };
    let text = error.to_string();
    text.split_once(": ").unwrap().1.to_owned()
}

#[test]
fn npy_headers_follow_numpys_rules() {
    let rules = [
        ("", "byte 10: the header ends where the header's opening brace should be"),
        ("{}", "byte 10: the header has no key 'descr'"),
        ("{'descr': '<f4', 'shape': ()}", "byte 10: the header has no key 'fortran_order'"),
        ("{'descr': '<f4', 'fortran_order': True}", "byte 10: the header has no key 'shape'"),
        ("{'shape': (), 'shape': ()}", "byte 24: header key 'shape' occurs twice"),
        ("{'shape': (), }; import os", "byte 25: text follows the header's closing brace"),
        ("{'shape' (2,)}", "byte 19: '(' where a colon after the key should be"),
        ("{shape: (2,)}", "byte 11: 's' where a header key in quotes should be"),
        ("{'shape: (2,)}", "byte 11: a quoted text does not end"),
        ("{'shape': (2,) 'descr': 1}", "byte 25: ''' where a comma or the header's closing brace should be"),
        ("{'shape': (2 3)}", "byte 23: '3' where a comma or the end of the shape should be"),
        ("{'shape': (2.5,)}", "byte 22: '.' where a comma or the end of the shape should be"),
        ("{'shape': (,)}", "byte 21: ',' where a dimension of the shape should be"),
        ("{'shape': (99999999999999999999,)}", "byte 21: a dimension of the shape does not fit in 64 bits"),
        ("{'fortran_order': 1}", "byte 28: '1' where True or False for fortran_order should be"),
        ("{'descr': <f4}", "byte 20: '<' where descr in quotes should be"),
        ("{'descr': ('<f4', (2,))}", "byte 20: '(' where descr in quotes should be"),
        ("\u{1}", "byte 10: '\\u{1}' where the header's opening brace should be"),
    ];
    for (header, sentence) in rules {
        assert_eq!(refusal(npy(header, &[])), sentence);
    }
    let deep = format!("({})", "1,".repeat(65));
    assert_eq!(refusal(array("<f4", &deep, &[0; 4])), "byte 189: the shape has more than 64 dimensions");
    let large = "(1000000000000000000,)";
    let sentence = "byte 10: 1000000000000000000 elements of 64 bits are 2^64 bits or more";
    assert_eq!(refusal(array("<f8", large, &[0; 4])), sentence);
    let version = open_bytes(tempfile::tempdir().unwrap().path(), "x.npy", b"\x93NUMPY\x04\0\0\0\0\0");
    assert_eq!(refusal(version), "byte 6: npy version 4.0 is unknown; there are 1.0, 2.0 and 3.0");
}

#[test]
fn npy_names_of_types_mean_what_numpy_means() {
    let other = |name: &str, bits| Dtype::Other { name: name.to_owned(), bits };
    let named = |name| Dtype::parse(name).unwrap();
    let types = [
        ("<f4", named("float32")),
        ("=f4", named("float32")),
        ("|f4", named("float32")),
        ("f4", named("float32")),
        ("f8", Dtype::Float64),
        ("float", Dtype::Float64),
        ("single", named("float32")),
        ("half", named("float16")),
        ("float8_e4m3", named("e4m3ieee")),
        ("float8_e8m0fnu", named("e8m0fnu")),
        ("float6_e2m3fn", named("e2m3fn")),
        ("?", other("?", 8)),
        ("<f1", other("<f1", 8)),
        (">u2", other(">u2", 16)),
        ("int4", other("int4", 8)),
        ("<g2", other("<g2", 16)),
    ];
    for (descr, dtype) in types {
        let source = array(descr, "()", &vec![0; (dtype.bits() / 8) as usize]).unwrap();
        assert_eq!(source.tensors()[0].dtype, dtype, "{descr}");
    }
    for descr in [
        "",
        "<",
        "<bfloat16",
        "<f3",
        "f4 ",
        "F4",
        "e4m3fn ",
        "float4_e2m1fn_x2",
        "tf32",
        "<\u{1b}[2J",
        "<f99999999999",
    ] {
        let sentence = refusal(array(descr, "()", &[0; 16]));
        assert!(sentence.ends_with("names no type of numpy or ml_dtypes"), "{descr}: {sentence}");
        assert!(!sentence.contains('\u{1b}'));
    }
    assert!(refusal(array("<V0", "(9223372036854775807, 9)", &[])).contains("0 bytes wide"));
}

#[test]
fn integers_told_to_be_floats_keep_their_byte_order() {
    let bf16 = Dtype::parse("bf16").unwrap();
    for (descr, data) in [(">u2", [0x3f, 0x80, 0xc0, 0x20]), ("<i2", [0x80, 0x3f, 0x20, 0xc0])] {
        let source = array(descr, "(2,)", &data).unwrap();
        let info = source.tensors()[0].reinterpret(&bf16).unwrap();
        assert_eq!(info.byte_order, if descr == ">u2" { ByteOrder::Big } else { ByteOrder::Little });
        assert_values(&values(&*source, 0, &info).unwrap(), &[1.0, -2.5], descr);
    }
}

#[test]
fn four_bit_codes_are_packed_low_half_first() {
    let header = r#"{"x":{"dtype":"F4","shape":[2,4],"data_offsets":[0,4]}}"#;
    let source = safetensors(header, &[0x10, 0x32, 0x54, 0xf6]).unwrap();
    let wanted = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, -6.0];
    assert_values(&values(&*source, 0, &source.tensors()[0]).unwrap(), &wanted, "F4");
    let bytes = header.replace("F4", "U8").replace("[2,4]", "[4]");
    let source = safetensors(&bytes, &[0x10, 0x32, 0x54, 0xf6]).unwrap();
    let info = source.tensors()[0].reinterpret(&Dtype::parse("fp4_x2").unwrap()).unwrap();
    assert_values(&values(&*source, 0, &info).unwrap(), &wanted, "U8 as fp4_x2");
}

#[test]
fn safetensors_headers_follow_the_rules() {
    let entry = |rest: &str| format!(r#"{{"x":{{"dtype":"F32",{rest}}}}}"#);
    let long = "9".repeat(30);
    let rules = [
        (" {}".to_owned(), "byte 8: the header must begin with an opening brace"),
        ("{\"a\":}".to_owned(), "byte 13: the header is not as it should be: expected value"),
        ("{} x".to_owned(), "byte 11: the header is not as it should be: trailing characters"),
        (
            "{\n\n\"x\":3}".to_owned(),
            "tensor 'x': byte 15: the entry is not as it should be: invalid type: integer `3`, expected an object with dtype, shape and data_offsets",
        ),
        (
            entry(r#""shape":[1]"#),
            "tensor 'x': byte 39: the entry is not as it should be: missing field `data_offsets`",
        ),
        (
            entry(r#""shape":[-1],"data_offsets":[0,4]"#),
            "tensor 'x': byte 38: the entry is not as it should be: invalid value: integer `-1`, expected u64",
        ),
        (
            entry(r#""shape":[1],"data_offsets":[4,0]"#),
            "tensor 'x': byte 13: data_offsets [4, 0] end before they begin",
        ),
        (
            entry(r#""shape":[4294967296,4294967296],"data_offsets":[0,4]"#),
            "tensor 'x': byte 13: shape (4294967296, 4294967296) has 2^64 elements or more",
        ),
        (
            entry(r#""shape":[4611686018427387904],"data_offsets":[0,4]"#),
            "tensor 'x': byte 13: 4611686018427387904 elements of 32 bits are 2^64 bits or more",
        ),
        (
            entry(&format!(r#""shape":[{long}],"data_offsets":[0,4]"#)),
            "tensor 'x': byte 66: the entry is not as it should be: invalid type: floating point `1e+30`, expected u64",
        ),
        (
            entry(r#""shape":[2],"data_offsets":[0,8]"#),
            "tensor 'x': byte 66: the data are cut off: 4 of 8 bytes are there",
        ),
        (
            entry(r#""shape":[1],"data_offsets":[18446744073709551610,18446744073709551614]"#),
            "tensor 'x': byte 100: no tensor has the 18446744073709551610 bytes before its data",
        ),
    ];
    let mut found = Vec::new();
    for (header, _) in &rules {
        found.push(refusal(safetensors(header, &[0; 4])));
    }
    assert_eq!(found, rules.map(|(_, sentence)| sentence));
    let binary = open_bytes(tempfile::tempdir().unwrap().path(), "x.dat", b"\x03\0\0\0\0\0\0\0{\xff}");
    assert_eq!(refusal(binary), "byte 9: the header is not UTF-8 text");
}

#[test]
fn a_cut_safetensors_file_keeps_the_tensors_before_the_cut() {
    let header = concat!(
        r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"#,
        r#""b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},"c":{"dtype":"odd"}}"#
    );
    let source = safetensors(header, &[0, 0, 0x80, 0x3f, 0, 0]).unwrap();
    assert_values(&values(&*source, 0, &source.tensors()[0]).unwrap(), &[1.0], "a");
    let problems: Vec<_> = source.problems().iter().map(|problem| problem.what()).collect();
    let missing = "the entry is not as it should be: missing field `shape`";
    assert_eq!(problems, ["the data are cut off: 2 of 8 bytes are there", missing]);
}
