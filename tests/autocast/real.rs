//! The four recorded traces: every verdict was checked by hand against the tree of calls, and is kept.

use serde_json::Value;

use crate::common::amp_inspect;

/// Op, types of its inputs, calls, verdict, and for missed ones the cause, of every op that is more than
/// bookkeeping.
type Row = (&'static str, &'static str, u64, &'static str, &'static str);

const CUSTOM: &[Row] = &[
    ("OwnMatmul", "float32", 1, "custom", ""),
    ("OwnMatmulBackward", "float32", 1, "custom", ""),
    ("_softmax", "bfloat16", 1, "unlisted", ""),
    ("_softmax_backward_data", "bfloat16", 1, "backward", ""),
    ("_to_copy", "bfloat16", 4, "cast", ""),
    ("_to_copy", "float32", 7, "cast", ""),
    ("_to_copy", "float64", 1, "cast", ""),
    ("add_", "float32", 1, "backward", ""),
    ("bmm", "float32", 1, "missed_matmul", "custom"),
    ("copy_", "float32+bfloat16", 11, "cast", ""),
    ("copy_", "float64+float32", 1, "cast", ""),
    ("einsum", "", 1, "unlisted", ""),
    ("linear", "bfloat16", 1, "outer", ""),
    ("linear", "float32", 1, "dispatch", ""),
    ("matmul", "bfloat16", 3, "outer", ""),
    ("matmul", "float32", 2, "dispatch", ""),
    ("mm", "bfloat16", 1, "dispatch", ""),
    ("mm", "bfloat16", 4, "as_listed", ""),
    ("mul", "float32", 2, "backward", ""),
    ("mul", "float64+float32", 1, "not_eligible", ""),
    ("pow", "float32", 1, "backward", ""),
    ("pow", "float32", 1, "unlisted", ""),
    ("softmax", "bfloat16", 1, "unlisted", ""),
    ("sum", "float32", 2, "unlisted", ""),
    ("to", "bfloat16", 4, "cast", ""),
    ("to", "float32", 7, "cast", ""),
    ("to", "float64", 1, "cast", ""),
];

const BF16: &[Row] = &[
    ("_log_softmax", "float32", 1, "as_listed", ""),
    ("_log_softmax_backward_data", "float32", 1, "backward", ""),
    ("_scaled_dot_product_flash_attention_for_cpu", "bfloat16", 3, "as_listed", ""),
    ("_scaled_dot_product_flash_attention_for_cpu_backward", "float32+bfloat16", 3, "as_listed", ""),
    ("_to_copy", "bfloat16", 39, "cast", ""),
    ("_to_copy", "float32", 39, "cast", ""),
    ("add", "float32", 1, "unlisted", ""),
    ("add", "float32+bfloat16", 6, "unlisted", ""),
    ("add_", "float32", 6, "backward", ""),
    ("addmm", "bfloat16", 12, "as_listed", ""),
    ("cat", "", 3, "unlisted", ""),
    ("copy_", "float32+bfloat16", 78, "cast", ""),
    ("cross_entropy_loss", "float32", 1, "dispatch", ""),
    ("cross_entropy_loss", "float32", 1, "outer", ""),
    ("embedding", "float32", 2, "unlisted", ""),
    ("embedding_backward", "float32", 2, "backward", ""),
    ("embedding_dense_backward", "float32", 2, "backward", ""),
    ("gelu", "bfloat16", 3, "unlisted", ""),
    ("gelu_backward", "bfloat16", 3, "backward", ""),
    ("index_select", "float32", 2, "unlisted", ""),
    ("layer_norm", "float32", 7, "unlisted", ""),
    ("linear", "bfloat16", 13, "outer", ""),
    ("linear", "float32", 7, "dispatch", ""),
    ("linear", "float32+bfloat16", 6, "dispatch", ""),
    ("log_softmax", "float32", 1, "as_listed", ""),
    ("matmul", "bfloat16", 1, "outer", ""),
    ("mm", "bfloat16", 27, "as_listed", ""),
    ("native_layer_norm", "float32", 7, "unlisted", ""),
    ("native_layer_norm_backward", "float32", 7, "backward", ""),
    ("nll_loss", "float32", 1, "as_listed", ""),
    ("nll_loss_backward", "float32", 1, "backward", ""),
    ("nll_loss_forward", "float32", 1, "as_listed", ""),
    ("nll_loss_nd", "float32", 1, "as_listed", ""),
    ("scaled_dot_product_attention", "bfloat16", 3, "dispatch", ""),
    ("scaled_dot_product_attention", "bfloat16", 3, "outer", ""),
    ("sum", "bfloat16", 12, "backward", ""),
    ("sum", "float32", 1, "backward", ""),
    ("to", "bfloat16", 39, "cast", ""),
    ("to", "float32", 39, "cast", ""),
];

const FP32: &[Row] = &[
    ("_log_softmax", "float32", 1, "unlisted", ""),
    ("_log_softmax_backward_data", "float32", 1, "backward", ""),
    ("_scaled_dot_product_flash_attention_for_cpu", "float32", 3, "missed_matmul", "no_autocast"),
    ("_scaled_dot_product_flash_attention_for_cpu_backward", "float32", 3, "missed_matmul", "no_autocast"),
    ("add", "float32", 7, "unlisted", ""),
    ("add_", "float32", 6, "backward", ""),
    ("addmm", "float32", 12, "missed_matmul", "no_autocast"),
    ("cat", "", 3, "unlisted", ""),
    ("cross_entropy_loss", "float32", 1, "outer", ""),
    ("embedding", "float32", 2, "unlisted", ""),
    ("embedding_backward", "float32", 2, "backward", ""),
    ("embedding_dense_backward", "float32", 2, "backward", ""),
    ("gelu", "float32", 3, "unlisted", ""),
    ("gelu_backward", "float32", 3, "backward", ""),
    ("index_select", "float32", 2, "unlisted", ""),
    ("layer_norm", "float32", 7, "unlisted", ""),
    ("linear", "float32", 13, "outer", ""),
    ("log_softmax", "float32", 1, "unlisted", ""),
    ("matmul", "float32", 1, "outer", ""),
    ("mm", "float32", 27, "missed_matmul", "no_autocast"),
    ("native_layer_norm", "float32", 7, "unlisted", ""),
    ("native_layer_norm_backward", "float32", 7, "backward", ""),
    ("nll_loss", "float32", 1, "as_listed", ""),
    ("nll_loss_backward", "float32", 1, "backward", ""),
    ("nll_loss_forward", "float32", 1, "unlisted", ""),
    ("nll_loss_nd", "float32", 1, "unlisted", ""),
    ("scaled_dot_product_attention", "float32", 3, "outer", ""),
    ("sum", "float32", 13, "backward", ""),
];

/// What the program says of a trace, its exit code, and its rows in the form above.
fn audit(trace: &str, more: &[&str]) -> (Value, Option<i32>, Vec<String>) {
    let path = format!("testdata/profiler/{trace}");
    let output = amp_inspect(&[&["autocast", &path, "--json"], more].concat());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let mut rows: Vec<String> = Vec::new();
    for op in json["ops"].as_array().unwrap() {
        let verdict = text(&op["verdict"]);
        if verdict == "moves_data" || verdict == "bookkeeping" {
            continue;
        }
        let types: Vec<String> = op["types"].as_array().unwrap().iter().map(text).collect();
        let name = text(&op["op"]).replace("aten::", "");
        rows.push(format!("{name} {} {} {verdict} {}", types.join("+"), op["calls"], text(&op["cause"])));
    }
    rows.sort();
    (json, output.status.code(), rows)
}

fn expected(rows: &[Row], dtype: &str) -> Vec<String> {
    let row = |(op, types, calls, verdict, cause): &Row| {
        format!("{op} {} {calls} {verdict} {cause}", types.replace("bfloat16", dtype))
    };
    let mut rows: Vec<String> = rows.iter().map(row).collect();
    rows.sort();
    rows
}

#[test]
fn the_custom_op_that_was_left_in_float32_is_named() {
    let (json, code, rows) = audit("custom_op_left_in_fp32.json", &["--fail-on", "missed-matmul"]);
    assert_eq!(rows, expected(CUSTOM, "bfloat16"));
    assert_eq!(code, Some(1));
    let findings = json["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1);
    let finding = &findings[0];
    assert_eq!((&finding["kind"], &finding["custom_op"]), (&"missed-matmul".into(), &"OwnMatmul".into()));
    // The duration of the one aten::bmm.
    assert_eq!((&finding["calls"], &finding["ns"]), (&1.into(), &63_545.into()));
    // aten::to that converted: 4 in the forward, and in the backward 2 for each of two products, 2 after them and
    // 2 gradients of casts; and a number.
    let casts: u64 = json["casts"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(casts, 12);
}

#[test]
fn low_precision_steps_are_clean_but_for_what_stayed_in_float32() {
    for (trace, dtype) in [("gpt_step_bf16.json.gz", "bfloat16"), ("gpt_step_fp16.json.gz", "float16")] {
        let (json, code, rows) =
            audit(trace, &["--fail-on", "missed-matmul,ran-low,custom-op,repeated-cast"]);
        assert_eq!(rows, expected(BF16, dtype), "{trace}");
        assert_eq!((code, &json["findings"]), (Some(0), &Value::Array(Vec::new())), "{trace}");
        // 13 linear layers, 3 attentions and the loss went through autocast.
        assert_eq!((&json["autocast_dtype"], &json["autocast_calls"]), (&dtype.into(), &17.into()));
        // Read by a script: 78 aten::_to_copy, which all convert.
        let casts: u64 =
            json["casts"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
        assert_eq!(casts, 78);
        let sentences: Vec<&str> =
            json["sentences"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        assert_eq!(sentences[0], format!("All 45 matrix multiplications ran in {dtype}."));
        assert!(sentences[2].contains("they are of no list: native_layer_norm"), "{sentences:?}");
        assert!(!sentences[2].contains("attention"), "{sentences:?}");
    }
}

#[test]
fn a_step_without_autocast_is_told_so() {
    let (json, code, rows) = audit("gpt_step_fp32.json.gz", &[]);
    assert_eq!(rows, expected(FP32, "bfloat16"));
    assert_eq!((code, &json["autocast_calls"]), (Some(0), &0.into()));
    assert_eq!(json["findings"][0]["cause"], "no_autocast");
    assert_eq!(json["findings"][0]["calls"], 3 + 27 + 12 + 3);
}

#[test]
fn own_times_add_up_to_the_whole() {
    for trace in ["custom_op_left_in_fp32.json", "gpt_step_bf16.json.gz", "gpt_step_fp32.json.gz"] {
        let (json, ..) = audit(trace, &[]);
        let own: u64 = json["ops"].as_array().unwrap().iter().map(|op| op["self_ns"].as_u64().unwrap()).sum();
        let whole = json["total_ns"].as_u64().unwrap();
        // Durations are cut to ns, so that calls within can exceed the one around them.
        assert!(own.abs_diff(whole) <= 10_000, "{trace}: {own} of {whole}");
    }
}

#[test]
fn weights_that_were_cast_more_than_once_are_told() {
    // One of 32x16 used six times; the other, used once, is not told.
    let (json, code, _) = audit("no_cache.json.gz", &["--fail-on", "repeated-cast"]);
    let weights = &json["findings"][0]["weights"];
    assert_eq!((code, weights.as_array().unwrap().len()), (Some(1), 1));
    assert_eq!(weights[0]["shape"], serde_json::json!([32, 16]));
    assert_eq!((&weights[0]["casts"], &weights[0]["parameters"]), (&6.into(), &1.into()));
    // Two weights and two biases, each in the forward pass and again in the backward pass.
    let (json, ..) = audit("recomputed.json.gz", &[]);
    assert_eq!(
        (&json["findings"][0]["kind"], &json["findings"][0]["calls"]),
        (&"repeated-cast".into(), &8.into())
    );
    assert_eq!(json["findings"][0]["weights"].as_array().unwrap().len(), 4);
}
