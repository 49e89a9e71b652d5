//! The lists against what PyTorch 2.15.0 says of itself.

use std::collections::BTreeSet;

use amp_inspect::training::autocast::policy::{Policy, find};
use amp_inspect::training::autocast::table::{LISTS_OF, MATMULS, MOVES, OPS};

use crate::common::{amp_inspect, printed, testdata};

/// `op, cuda, cpu, policy in the header` of `testdata/make/autocast_lists.py`.
fn dispatcher() -> Vec<[String; 4]> {
    let text = std::fs::read_to_string(testdata("autocast/lists.tsv")).unwrap();
    assert!(text.starts_with(&format!("# {LISTS_OF}")), "another version");
    let rows = text.lines().skip(2);
    rows.map(|row| row.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap()).collect()
}

#[test]
fn every_op_that_pytorch_handles_is_listed_and_no_other() {
    let rows = dispatcher();
    assert_eq!(rows.len(), OPS.len());
    for [op, cuda, cpu, policy] in &rows {
        let row = find(op).unwrap_or_else(|| panic!("{op} is missing"));
        assert_eq!((row.cuda.is_some(), row.cpu.is_some()), (cuda == "x", cpu == "x"), "{op}");
        let wanted = match policy.as_str() {
            "lower" => Some(Policy::Lower),
            "fp32" => Some(Policy::Fp32),
            "fp32_result" => Some(Policy::Fp32Result),
            "promote" => Some(Policy::Promote),
            _ => None,
        };
        assert!(wanted.is_none() || wanted == row.cuda, "{op}: {:?}", row.cuda);
    }
    let without_header: BTreeSet<&str> =
        rows.iter().filter(|[_, cuda, _, policy]| cuda == "x" && policy == "-").map(|row| &*row[0]).collect();
    let others = ["_cudnn_rnn", "binary_cross_entropy", "cudnn_convolution", "cudnn_convolution_transpose"];
    assert_eq!(without_header, others.into_iter().chain(["linalg_matrix_sqrth", "norm"]).collect());
}

#[test]
fn tables_are_in_order_and_do_not_overlap() {
    let key = |op: &str| op.trim_start_matches('_').to_owned();
    assert!(OPS.is_sorted_by_key(|row| key(row.op)));
    assert!(MATMULS.is_sorted() && MOVES.is_sorted());
    assert!(MOVES.iter().all(|op| find(op).is_none() && !MATMULS.contains(op)));
    assert!(OPS.iter().all(|row| row.cuda.is_some() || row.cpu.is_some()));
}

#[test]
fn an_op_is_looked_up() {
    let text = printed(amp_inspect(&["autocast", "--list", "softmax"]));
    assert!(
        text.starts_with("op           cuda     cpu\nsoftmax      float32  –\nlog_softmax  float32  –\n"),
        "{text}"
    );
    let text = printed(amp_inspect(&["autocast", "--list", "aten::gelu"]));
    assert!(text.starts_with("gelu is of no list: autocast leaves it the types it is given.\n"), "{text}");
    let text = printed(amp_inspect(&["autocast", "--list", "--csv"]));
    assert_eq!(text.lines().count(), 1 + OPS.len());
}
