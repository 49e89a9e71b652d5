//! A made-up trace for each finding, and for each way that a trace can be wrong.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use amp_inspect::report::Report;
use amp_inspect::report::autocast::AutocastReport;
use amp_inspect::training::autocast::Audit;
use amp_inspect::training::autocast::trace::read;

use crate::common::{Random, amp_inspect, refused, testdata};

/// A call: its name, the types of its inputs, the calls in it; it takes 10 µs itself.
struct Op(&'static str, &'static [&'static str], Vec<Op>);

const F32: &str = "float";
const BF16: &str = "c10::BFloat16";
const F64: &str = "double";

/// The conversion that autocast makes, from and to a type.
fn cast(from: &'static str, to: &'static str) -> Op {
    let pair: &'static [&'static str] = if to == BF16 { &[BF16, F32] } else { &[F32, BF16] };
    let single: &'static [&'static str] = if from == F32 { &[F32] } else { &[BF16] };
    Op("aten::to", single, vec![Op("aten::_to_copy", single, vec![Op("aten::copy_", pair, vec![])])])
}

/// A linear layer that autocast handles.
fn autocast_linear() -> Op {
    let low = Op("aten::linear", &[BF16, BF16], vec![Op("aten::mm", &[BF16, BF16], vec![])]);
    Op("aten::linear", &[F32, F32], vec![cast(F32, BF16), cast(F32, BF16), low])
}

/// The events of calls one after the other; activations are 8x4, weights 16x4.
fn events(ops: &[Op]) -> Vec<Value> {
    fn add(op: &Op, now: &mut f64, events: &mut Vec<Value>) {
        let (start, place) = (*now, events.len());
        events.push(Value::Null);
        *now += 5.0;
        op.2.iter().for_each(|inner| add(inner, now, events));
        *now += 5.0;
        let shapes: Vec<Value> =
            (0..op.1.len()).map(|at| if at == 1 { json!([16, 4]) } else { json!([8, 4]) }).collect();
        events[place] = json!({
            "ph": "X", "cat": "cpu_op", "name": op.0, "pid": 1, "tid": 1, "ts": start, "dur": *now - start,
            "args": {"External id": place + 1, "Input type": op.1, "Input Dims": shapes},
        });
        *now += 1.0;
    }
    let (mut events, mut now) = (Vec::new(), 1000.0);
    ops.iter().for_each(|op| add(op, &mut now, &mut events));
    events
}

/// What the program says of a trace of these events.
fn audit(events: &[Value], more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    std::fs::write(&path, json!({"schemaVersion": 1, "traceEvents": events}).to_string()).unwrap();
    let output = amp_inspect(&[&["autocast", path.to_str().unwrap(), "--json"], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Kind, cause, calls and time at stake in ns of each finding.
fn findings(report: &Value) -> Vec<(String, String, u64, u64)> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let finding = |found: &Value| {
        let numbers = (found["calls"].as_u64().unwrap(), found["ns"].as_u64().unwrap());
        (text(&found["kind"]), text(&found["cause"]), numbers.0, numbers.1)
    };
    report["findings"].as_array().unwrap().iter().map(finding).collect()
}

fn found(kind: &str, cause: &str, calls: u64, ns: u64) -> (String, String, u64, u64) {
    (kind.to_owned(), cause.to_owned(), calls, ns)
}

#[test]
fn a_product_in_a_disabled_region_is_missed_and_in_a_nested_one_not() {
    // with autocast(): linear; with autocast(enabled=False): linear; with autocast(): linear
    let off = Op("aten::linear", &[F32, F32], vec![Op("aten::mm", &[F32, F32], vec![])]);
    let report = audit(&events(&[autocast_linear(), off, autocast_linear()]), &[]);
    assert_eq!(findings(&report), [found("missed-matmul", "autocast_off", 1, 10_000)]);
    assert_eq!((&report["autocast_calls"], &report["autocast_dtype"]), (&2.into(), &"bfloat16".into()));

    // A region in which everything was low already: it is called again all the same, without casts.
    let again = Op("aten::mm", &[BF16, BF16], vec![Op("aten::mm", &[BF16, BF16], vec![])]);
    let report = audit(&events(&[again]), &[]);
    assert_eq!((findings(&report), &report["autocast_calls"]), (vec![], &1.into()));
    // Two more inputs are another overload and no sign of autocast.
    let overload = Op("aten::prod", &[F32], vec![Op("aten::prod", &[F32, "Scalar", "Scalar"], vec![])]);
    assert_eq!(audit(&events(&[overload]), &[])["autocast_calls"], 0);
}

#[test]
fn products_are_missed_for_a_reason() {
    let mm = || Op("aten::mm", &[F32, F32], vec![]);
    let backward = |node: &'static str, inner: Vec<Op>| {
        Op("autograd::engine::evaluate_function: X", &[], vec![Op(node, &[F32], inner)])
    };
    let ops = [
        autocast_linear(),
        Op("MyFunction", &[F32, F32], vec![mm()]),
        backward("MmBackward0", vec![mm()]),
        backward("MyFunctionBackward", vec![mm()]),
        Op("aten::addmv", &[F32, F32], vec![]),
        // The optimizer is not meant to be in autocast.
        Op("Optimizer.step#Muon.step", &[], vec![mm()]),
    ];
    let report = audit(&events(&ops), &[]);
    let mut told: Vec<(String, u64)> =
        findings(&report).into_iter().map(|(_, cause, calls, _)| (cause, calls)).collect();
    told.sort();
    let expected = [("backward", 1), ("custom", 1), ("custom", 1), ("not_listed", 1)];
    assert_eq!(told, expected.map(|(cause, calls)| (cause.to_owned(), calls)));
    let custom = |report: &Value| -> Vec<String> {
        let names =
            report["findings"].as_array().unwrap().iter().filter_map(|found| found["custom_op"].as_str());
        names.map(str::to_owned).collect()
    };
    assert_eq!(custom(&report), ["MyFunction", "MyFunctionBackward"]);
    // CUDA lists aten::addmv, so there autocast must have been off.
    let report = audit(&events(&ops), &["--device", "cuda"]);
    assert!(findings(&report).iter().any(|(_, cause, ..)| cause == "autocast_off"));
}

#[test]
fn an_op_of_the_float32_list_that_ran_low_is_found() {
    let norm = |inputs: &'static [&'static str]| {
        Op("aten::layer_norm", inputs, vec![Op("aten::native_layer_norm", inputs, vec![])])
    };
    let report = audit(&events(&[autocast_linear(), norm(&[BF16, F32])]), &["--device", "cuda"]);
    // The types of the input and the weight differ, and the widest is float32.
    assert_eq!(findings(&report), []);
    let ops = [autocast_linear(), norm(&[BF16, BF16])];
    let report = audit(&events(&ops), &["--device", "cuda"]);
    assert_eq!(findings(&report), [found("ran-low", "", 1, 10_000)]);
    // The CPU has it in no list.
    assert_eq!(findings(&audit(&events(&ops), &["--device", "cpu"])), []);
    // Asked for a float32 result, an op gets its inputs as they are; and norm one more of them.
    let asked = [
        Op(
            "aten::softmax",
            &[BF16, "Scalar", ""],
            vec![Op("aten::softmax", &[BF16, "Scalar", "Scalar"], vec![])],
        ),
        Op("aten::norm", &[BF16, "Scalar"], vec![Op("aten::norm", &[BF16, "Scalar", "Scalar"], vec![])]),
    ];
    let report = audit(&events(&asked), &["--device", "cuda"]);
    assert_eq!((findings(&report), &report["autocast_calls"]), (vec![], &2.into()));
}

#[test]
fn a_custom_op_in_float32_is_found_and_one_in_low_precision_is_only_named() {
    let ops = [
        autocast_linear(),
        Op("mylib::fused", &[F32, F32], vec![]),
        Op("mylib::fused", &[BF16, BF16], vec![]),
        Op("aten::mul", &[F64, F64], vec![]),
    ];
    let report = audit(&events(&ops), &[]);
    assert_eq!(findings(&report), [found("custom-op", "", 1, 10_000)]);
    let sentences = report["sentences"].as_array().unwrap();
    let unknown = "Not PyTorch's, and so unknown to autocast: 2 mylib::fused.";
    assert!(sentences.iter().any(|sentence| sentence == unknown), "{sentences:?}");
    let verdict = |op: &str| {
        let ops = report["ops"].as_array().unwrap();
        ops.iter().find(|row| row["op"] == op).unwrap()["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict("aten::mul"), "not_eligible");
}

#[test]
fn weights_that_are_cast_again_and_again_are_found() {
    // Twice the same 16x4 weight, one gradient for it.
    let gradient = Op("torch::autograd::AccumulateGrad", &[F32], vec![]);
    let mut events = events(&[autocast_linear(), autocast_linear(), gradient]);
    // Of the two casts in a layer one is of the weight; every copy is from a 16x4 tensor here.
    let last = events.len() - 1;
    events[last]["args"]["Input Dims"] = json!([[16, 4]]);
    for event in &mut events {
        if event["name"] == "aten::copy_" {
            event["args"]["Input Dims"] = json!([[16, 4], [16, 4]]);
        }
    }
    let report = audit(&events, &[]);
    let finding = &report["findings"][0];
    assert_eq!((&finding["kind"], &finding["calls"]), (&"repeated-cast".into(), &4.into()));
    let weights = &finding["weights"][0];
    assert_eq!((&weights["shape"], &weights["parameters"]), (&json!([16, 4]), &1.into()));
    // Read as float32 and written as bfloat16.
    assert_eq!(weights["bytes"], 4 * 64 * (4 + 2));
    // With as many gradients as casts there is nothing to say.
    let gradients = std::iter::repeat_n(events[last].clone(), 3);
    let more: Vec<Value> = events.iter().cloned().chain(gradients).collect();
    assert_eq!(findings(&audit(&more, &[])), []);
}

#[test]
fn kernels_are_joined_by_id_or_correlation_and_count_in_place_of_the_cpu() {
    let off = Op("aten::linear", &[F32, F32], vec![Op("aten::mm", &[F32, F32], vec![])]);
    let mut events = events(&[autocast_linear(), off]);
    let id =
        events.iter().rev().find(|event| event["name"] == "aten::mm").unwrap()["args"]["External id"].clone();
    let low = events.iter().find(|event| event["name"] == "aten::mm").unwrap()["args"]["External id"].clone();
    let kernel = |args: Value, dur: f64| json!({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": dur, "args": args});
    events.push(kernel(json!({"External id": id, "correlation": 1}), 300.0));
    events.push(kernel(json!({"correlation": 2}), 100.0));
    let launch = json!({"External id": low, "correlation": 2});
    events.push(json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": launch}));
    events.push(kernel(json!({"correlation": 99}), 7.0));
    let report = audit(&events, &[]);
    // The lists are those of the device, and the time at stake is the kernel's.
    assert_eq!((&report["device"], &report["device_ns"]), (&"cuda".into(), &400_000.into()));
    assert_eq!(findings(&report), [found("missed-matmul", "autocast_off", 1, 300_000)]);
    let notices = json!(["0.007 ms on the device belong to no call in the trace and are left out"]);
    assert_eq!(report["notices"], notices);
}

#[test]
fn odd_events_cost_only_themselves() {
    let mut events = events(&[autocast_linear()]);
    events.push(json!(null));
    events.push(json!("text"));
    events.push(json!([1, [2], {"a": 3}]));
    events.push(json!({"ph": "X", "cat": "cpu_op", "name": {"a": 1}, "ts": [], "dur": {}}));
    events.push(json!({"ph": "i", "name": "Iteration Start", "ts": "5", "tid": "Trace"}));
    events.push(json!({"ph": "X", "cat": "cpu_op", "name": "aten::\u{1b}[31m", "pid": "a", "tid": null, "ts": -1, "dur": 1e6,
        "args": {"Input type": ["float", 3, null, {}], "Input Dims": [[-1, 1e99], "x", [[2]], [4]]}}));
    let report = audit(&events, &[]);
    assert_eq!(report["calls"], 10);
    assert_eq!(report["notices"], json!(["left out 1 event without times"]));
    // A bare list of events is a trace, too; names that are no text are shown escaped.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bare");
    std::fs::write(&path, Value::from(events).to_string()).unwrap();
    let output = amp_inspect(&["autocast", path.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\\u{1b}[31m") && !text.contains('\u{1b}'), "{text}");
}

/// The error of a file of these bytes, without its path.
fn refusal(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let output = amp_inspect(&["autocast", path.to_str().unwrap(), "--json"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{name}");
    let error = String::from_utf8(output.stderr).unwrap();
    error.trim().strip_prefix(&format!("amp-inspect: {}: ", path.display())).unwrap().to_owned()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn traces_that_are_none_are_refused() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "the file is empty"),
        (b"  \n ", "byte 4: the trace is cut off here, so nothing of it is reported"),
        (b"{}", "byte 0: has no traceEvents: it is no trace of torch.profiler"),
        (br#"{"traceEvents": 5}"#, "byte 16: is not a JSON trace: '[' should be here"),
        (
            br#"{"traceEvents": []}"#,
            "has no calls of ops on the CPU: profile with activities=[ProfilerActivity.CPU, …]",
        ),
        (br#"{"traceEvents": []} x"#, "byte 20: is not a JSON trace: something follows it"),
        (br#"{"traceEvents": [{"ph": "X" "cat"}]}"#, "byte 28: is not a JSON trace: expected `,` or `}`"),
        (b"{\"a\": [1,\n2 3]}", "byte 12: is not a JSON trace: expected `,` or `]`"),
        (br#"{"a": 1 "b": 2}"#, "byte 8: is not a JSON trace: ',' or '}' should be here"),
        (br#"{"a" 1}"#, "byte 5: is not a JSON trace: ':' should be here"),
        (br#"{"a": }"#, "byte 6: is not a JSON trace: expected value"),
        (b"PK\x03\x04", "byte 0: is not a JSON trace: '{' should be here"),
    ];
    for (bytes, error) in cases {
        assert_eq!(refusal("trace.json", bytes), *error, "{}", String::from_utf8_lossy(bytes));
    }
    for (time, found) in [
        (r#""ts": 1, "dur": -5"#, "dur of this event is -5.0, which is no time in µs"),
        (r#""ts": 1, "dur": 1e300"#, "dur of this event is 1e300, which is no time in µs"),
        (r#""ts": 1, "dur": "x""#, "dur of this event is no number, which is no time in µs"),
        (r#""ts": "inf", "dur": 1"#, "ts of this event is inf, which is no time in µs"),
    ] {
        let trace = format!(r#"[{{"ph": "X", "cat": "cpu_op"}}, {{"ph": "X", "cat": "cpu_op", {time}}}]"#);
        assert_eq!(refusal("trace.json", trace.as_bytes()), format!("byte 31: the {found}"));
    }
    let mut untyped = events(&[autocast_linear()]);
    untyped.iter_mut().for_each(|event| event["args"] = json!({}));
    let untyped = json!({"traceEvents": untyped}).to_string();
    let error = "has no types of inputs: profile with torch.profiler.profile(record_shapes=True)";
    assert_eq!(refusal("trace.json", untyped.as_bytes()), error);
    // However deep, what is no event is stepped over.
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let none = "has no calls of ops on the CPU: profile with activities=[ProfilerActivity.CPU, …]";
    assert_eq!(refusal("trace.json", format!("[{deep}]").as_bytes()), none);
    refused(&["autocast", "none.json"], "none.json: cannot open the file: no such file or directory");
    refused(&["autocast", "testdata"], "testdata: cannot read the file: is a directory");
}

#[test]
fn a_trace_that_is_cut_off_is_never_half_reported() {
    let whole = std::fs::read(testdata("profiler/custom_op_left_in_fp32.json")).unwrap();
    let whole = &whole[..whole.iter().rposition(|&byte| byte == b'}').unwrap() + 1];
    for length in (1..whole.len()).step_by(6_911).chain([whole.len() - 1]) {
        let error = refusal("trace.json", &whole[..length]);
        assert_eq!(error, format!("byte {length}: the trace is cut off here, so nothing of it is reported"));
    }
    let packed = gzip(whole);
    for length in [3, 10, 40, packed.len() / 2, packed.len() - 9] {
        let error = refusal("trace.json.gz", &packed[..length]);
        assert!(
            error.starts_with("byte ")
                && error.contains("of member 'the unpacked trace': the trace is cut off"),
            "{error}"
        );
    }
    let mut damaged = packed.clone();
    damaged[packed.len() / 2] ^= 0xff;
    assert!(refusal("trace.json", &damaged).contains("of member 'the unpacked trace': "));
}

#[test]
fn labels_are_no_ops() {
    let mut events =
        events(&[autocast_linear(), Op("forward", &[], vec![Op("aten::mm", &[F32, F32], vec![])])]);
    let label = events.iter().position(|event| event["name"] == "forward").unwrap();
    events[label]["cat"] = "user_annotation".into();
    let report = audit(&events, &[]);
    assert_eq!(findings(&report), [found("missed-matmul", "autocast_off", 1, 10_000)]);
    assert!(report["ops"].as_array().unwrap().iter().all(|op| op["op"] != "forward"));
}

#[test]
fn damaged_traces_never_panic() {
    let whole = std::fs::read(testdata("profiler/custom_op_left_in_fp32.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let mut random = Random(7);
    let mut sound = 0;
    let digits: Vec<usize> = (0..whole.len()).filter(|&at| whole[at].is_ascii_digit()).collect();
    for round in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.bits() % 8 {
            // Digits for digits leave the text sound, and make the numbers absurd.
            if round % 2 == 0 {
                bytes[digits[random.bits() as usize % digits.len()]] = b'0' + (random.bits() % 10) as u8;
            } else {
                let at = random.bits() as usize % bytes.len();
                bytes[at] = random.bits() as u8;
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(trace) = read(&path, |_| {}) {
            let audit = Audit::new(&trace, None);
            let report = AutocastReport::new("x".into(), &trace, &audit);
            report.json(&mut Vec::new()).unwrap();
            report.markdown(&mut Vec::new()).unwrap();
            sound += 1;
        }
    }
    assert!((100..400).contains(&sound), "{sound} could be read");
}

#[test]
fn gzip_is_told_by_the_first_bytes() {
    let whole = std::fs::read(testdata("profiler/custom_op_left_in_fp32.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let json = |path: &Path| {
        let output = amp_inspect(&["autocast", path.to_str().unwrap(), "--csv"]);
        (output.status.code(), output.stdout)
    };
    let packed = folder.path().join("packed.json");
    std::fs::write(&packed, gzip(&whole)).unwrap();
    let plain = json(&testdata("profiler/custom_op_left_in_fp32.json"));
    assert_eq!(plain.0, Some(0));
    assert!(json(&packed) == plain);
}
