//! Every scaler equals the framework that it is named after, bit for bit, on recorded trajectories.
//!
//! testdata/scalers/README.md says what was recorded, and how.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use amp_inspect::scaler::{Event, Float, LossScaler, SCALERS, ScalerSpec, Seen, Settings, find};
use common::{gunzip, names_in};
use serde_json::Value;

/// A folder of recordings: the scaler, and what its configuration calls the parameters. An empty name is a
/// value that the rule does not have.
type Folder = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const SAME: &[(&str, &str)] = &[];
const FOLDERS: &[Folder] = &[
    ("torch", "torch", SAME),
    ("torch_fsdp_sharded", "torch-fsdp", SAME),
    ("deepspeed_zero", "deepspeed", &[("delayed_shift", "hysteresis")]),
    ("deepspeed_zero_pre_0_17_1", "deepspeed@<=0.17.0", &[("delayed_shift", "hysteresis")]),
    ("deepspeed_stage0", "deepspeed-stage0", &[("delayed_shift", ""), ("consecutive_hysteresis", "")]),
    (
        "apex_amp",
        "apex",
        // The framework ignores the factor, too.
        &[("scale_factor", ""), ("loss_scale", "")],
    ),
    ("apex_fp16_utils", "apex-fp16-utils", &[("min", "min_scale")]),
    (
        "apex_update_scale_hysteresis",
        "nemo",
        &[("init", "init_scale"), ("growth", "growth_factor"), ("backoff", "backoff_factor")],
    ),
    ("megatron_core", "megatron", SAME),
    ("megatron_legacy_fp16", "megatron@<2020", SAME),
    ("colossalai", "colossalai", SAME),
    ("fairseq", "fairseq", SAME),
    ("metaseq", "metaseq", SAME),
    ("jmp", "jmp", SAME),
    ("flax", "flax", SAME),
    ("keras3", "keras", SAME),
    ("tf_keras2", "keras2", SAME),
    ("tf_v1_dynamic_loss_scale", "tf1", SAME),
    ("paddle_dygraph", "paddle", SAME),
    ("paddle_op_update_loss_scaling", "paddle-static", &[("init", "init_loss_scaling")]),
    (
        "mxnet",
        "mxnet",
        &[("init", "init_scale"), ("max", "max_loss_scale"), ("win", "scale_window"), ("window", "")],
    ),
    ("mindspore_manager", "mindspore-manager", SAME),
    ("mindspore_update_cell", "mindspore", &[("init", "init_loss_scale")]),
    ("mindspore_dynamic_loss_scaler", "mindspore-amp", &[("init", "scale_value")]),
    ("openseq2seq_backoff", "openseq2seq-backoff", SAME),
    ("openseq2seq_logmax", "openseq2seq-logmax", SAME),
    ("chainer", "chainer", &[("clamp", "")]),
    (
        "cerebras",
        "cerebras",
        &[("spi", "steps_per_increase"), ("mx", "max_loss_scale"), ("tol", "overflow_tolerance")],
    ),
    ("onnxruntime_training", "onnxruntime", SAME),
];

/// Recordings that are no trajectory of flags. Several optimizers, scales set by hand and values have tests of their own
/// below and in `simulate_scaler.rs`; the last bits of fused updates, misuse of the API and the type of a scaled loss are
/// not what is simulated.
const SPECIAL: &[&str] = &[
    "torch/accum2_rand",
    "torch/two_opt_rand",
    "torch/update_new_scale",
    "torch/interval_lowered_below_tracker",
    "torch/unscale_values",
    "torch/fused_vs_unfused_update",
    "torch/protocol_errors",
    "torch_fsdp_sharded/fp16_loss_times_default_scale",
    "paddle_dygraph/two_optimizers_step_each",
    "paddle_dygraph/two_optimizers_unscale_both_then_step",
    "paddle_dygraph/unscale_values",
    "jmp/f16_scale_p5__clean_60",
];

/// Columns that say nothing about the scaler's own state.
const OTHER_COLUMNS: &[&str] = &[
    "step",
    "found_inf",
    "has_nan",
    "unscaled_amax_f32",
    "grad_returned",
    "grads_after_op",
    "non_clamped_scale_after",
];

/// One recording: rows by column.
struct Recording {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Recording {
    fn read(name: &str) -> Self {
        let bytes = gunzip(&format!("scalers/{name}.csv.gz"));
        let mut reader = csv::Reader::from_reader(&*bytes);
        let columns = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let rows = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
        Self { columns, rows }
    }

    fn get(&self, row: usize, column: &str) -> &str {
        let index = self.columns.iter().position(|name| name == column);
        &self.rows[row][index.unwrap_or_else(|| panic!("no column {column}"))]
    }

    fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }

    fn number(&self, row: usize, column: &str) -> f64 {
        self.get(row, column).parse().unwrap()
    }
}

fn index() -> BTreeMap<String, Value> {
    serde_json::from_slice(&std::fs::read(common::testdata("scalers/index.json")).unwrap()).unwrap()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) if text.starts_with("float32 tiny") => f32::MIN_POSITIVE.to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The scaler that a recording is of, with the recorded configuration.
fn scaler(folder: &Folder, name: &str, about: &Value) -> (&'static ScalerSpec, Settings) {
    let jit = about["adjust_under_jit"] == Value::Bool(true);
    let constant = name.starts_with("static");
    let spec = find(match folder.1 {
        "jmp" if jit => "jmp-jit",
        "apex" if constant => "apex-static",
        name => name,
    })
    .unwrap();
    let mut settings = Settings::defaults(spec);
    let mut set = |name: &str, value: &str| {
        assert!(settings.set(spec, name, value).unwrap(), "{} has no {name}", spec.name);
    };
    if constant {
        set("loss_scale", &text(&about["config"]["ls"]));
        return (spec, settings);
    }
    if name.starts_with("fused_profile_default") {
        set("init_scale", "2^32");
    }
    if name.starts_with("unfused_profile_default") {
        set("min_scale", "0.25");
    }
    for (key, value) in about["config"].as_object().into_iter().flatten() {
        let renamed = folder.2.iter().find(|(theirs, _)| theirs == key).map_or(&**key, |(_, ours)| ours);
        if !renamed.is_empty() {
            set(renamed, &text(value));
        }
    }
    // Overruled values stand beside the defaults, in no order.
    for (short, long) in folder.2 {
        if let Some(value) = about["config"].get(*short)
            && about["config"].get(*long).is_some()
        {
            set(long, &text(value));
        }
    }
    if let Some(state) = about["load_state_dict"].as_object() {
        set("init_scale", &text(&state["scale"]));
        set("growth_tracker", &text(&state["_growth_tracker"]));
    }
    (spec, settings)
}

/// The recorded bits of a scale.
fn bits(recording: &Recording, row: usize, column: &str) -> f64 {
    let parse = |suffix: &str| {
        let name = format!("{column}_{suffix}");
        let hex = recording.has(&name).then(|| recording.get(row, &name).trim_start_matches("0x"));
        hex.map(|hex| u64::from_str_radix(hex, 16).unwrap())
    };
    match (parse("f32"), parse("f64")) {
        (Some(bits), _) => f32::from_bits(bits as u32).into(),
        (_, Some(bits)) => f64::from_bits(bits),
        (None, None) => recording.number(row, column),
    }
}

fn same(ours: f64, theirs: f64) -> bool {
    ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan()
}

/// Runs through a recording and gives the columns that were compared.
fn replay<'r>(
    name: &str,
    spec: &ScalerSpec,
    settings: &Settings,
    recording: &'r Recording,
) -> BTreeSet<&'r str> {
    let mut scaler = spec.start(settings);
    let mut compared = BTreeSet::new();
    for row in 0..recording.rows.len() {
        let flag = if recording.has("has_nan") { "has_nan" } else { "found_inf" };
        let amax =
            if recording.has("unscaled_amax_f32") { bits(recording, row, "unscaled_amax") } else { f64::NAN };
        let seen = Seen { found_inf: recording.get(row, flag) != "0", amax, edge: None };
        let used = scaler.scale();
        let event = scaler.update(seen);
        let at = format!("{name}, row {row}, {event:?}");
        let counters = scaler.counters();
        for column in &recording.columns {
            let theirs = recording.get(row, column);
            let stem = column.trim_end_matches("_f32").trim_end_matches("_f64");
            match stem {
                _ if OTHER_COLUMNS.contains(&&**column) => continue,
                "scale_used" => {
                    let theirs = bits(recording, row, stem);
                    assert!(close(spec, used, theirs), "{at}: {used} used, not {theirs}");
                }
                "scale_after" | "loss_scale_prop_after" => {
                    let (ours, theirs) = (scaler.scale(), bits(recording, row, stem));
                    assert!(close(spec, ours, theirs), "{at}: {ours} after, not {theirs}");
                }
                "opt_stepped" | "inner_iterations_delta" => assert_eq!(event.skips(), theirs == "0", "{at}"),
                "found_inf_seen" => assert_eq!(event.skips(), theirs == "1", "{at}"),
                "trainer_rescale" => assert!(same(1.0 / used, theirs.parse().unwrap()), "{at}"),
                "grad_div_scale" => {
                    assert!(spec.divides_by_new_scale);
                    if !theirs.is_empty() {
                        assert_eq!(theirs.parse::<f64>().unwrap(), scaler.scale(), "{at}");
                    }
                }
                "event" => match event {
                    Event::Abort(why) => assert_eq!(abort(theirs), abort(why), "{at}"),
                    _ => assert!(["", "overflow_skip"].contains(&theirs), "{at}: {theirs}"),
                },
                _ => {
                    let ours = counters.iter().find(|(name, _)| *name == column.trim_end_matches("_after"));
                    let (_, ours) = ours.unwrap_or_else(|| panic!("{name}: nothing says {column}"));
                    assert!(same(*ours, theirs.parse().unwrap()), "{at}: {column} {ours}, not {theirs}");
                }
            }
            compared.insert(&**column);
        }
    }
    compared
}

/// LogMax goes through the platform's f32 logarithm and power; all else is exact.
fn close(spec: &ScalerSpec, ours: f64, theirs: f64) -> bool {
    let tolerance = if spec.name == "openseq2seq-logmax" { 1e-5 } else { 0.0 };
    same(ours, theirs) || ((ours - theirs) / theirs).abs() <= tolerance
}

/// The text of an error as it can be compared: recordings lack the space after the type, and cut some texts.
fn abort(text: &str) -> String {
    match text {
        text if text.contains("Minimum loss scale reached") => "Minimum loss scale reached".into(),
        text if text.starts_with("RuntimeError") && text.contains("1000") => "RuntimeError 1000".into(),
        text => text.replace(": ", ":"),
    }
}

#[test]
fn every_scaler_equals_its_framework() {
    let index = index();
    let (mut files, mut rows) = (0, 0);
    let mut used = BTreeSet::new();
    for folder in FOLDERS {
        for name in names_in(&format!("scalers/{}", folder.0), ".csv.gz") {
            let name = format!("{}/{name}", folder.0);
            if SPECIAL.contains(&&*name) {
                continue;
            }
            let recording = Recording::read(&name);
            let (spec, settings) = scaler(folder, name.split('/').nth(1).unwrap(), &index[&name]);
            let compared = replay(&name, spec, &settings, &recording);
            assert!(compared.len() >= 3, "{name}: only {compared:?}");
            used.insert(spec.name);
            files += 1;
            rows += recording.rows.len();
        }
    }
    common::say(&format!("{files} recordings, {rows} steps"));
    assert!(files > 230, "{files} recordings");
    let rest: Vec<_> = SCALERS.iter().map(|spec| spec.name).filter(|name| !used.contains(name)).collect();
    // torch@<2.1 was recorded as FSDP's unguarded growth; a constant has no trajectory; als was not recorded.
    assert_eq!(rest, ["static", "torch@<2.1", "accelerate", "als"]);
}

#[test]
fn every_recording_is_walked() {
    let folders: BTreeSet<&str> = FOLDERS.iter().map(|folder| folder.0).collect();
    let special = ["accelerate", "deepspeed_real_step", "torch_closed_loop", "patterns"];
    for name in index().keys() {
        let folder = name.split('/').next().unwrap();
        assert!(folders.contains(folder) || special.contains(&folder), "{name} is tested nowhere");
    }
}

#[test]
fn f32_scalers_hold_f32_values() {
    for spec in SCALERS.iter().filter(|spec| spec.float == Float::F32) {
        let mut settings = Settings::defaults(spec);
        let first = spec.parameters[0].name;
        settings.set(spec, first, "65537.123456789").unwrap();
        let mut scaler = spec.start(&settings);
        for step in 0..100 {
            let scale = scaler.scale();
            assert_eq!(f64::from(scale as f32).to_bits(), scale.to_bits(), "{}", spec.name);
            scaler.update(Seen { found_inf: step % 7 == 0, amax: 0.1, edge: None });
        }
    }
}

fn torch(settings: &[(&str, f64)]) -> Box<dyn LossScaler> {
    let spec = find("torch").unwrap();
    let mut all = Settings::defaults(spec);
    for (name, value) in settings {
        assert!(all.set(spec, name, &value.to_string()).unwrap());
    }
    spec.start(&all)
}

const CLEAN: Seen = Seen { found_inf: false, amax: f64::NAN, edge: None };

fn flagged(flag: &str) -> Seen {
    Seen { found_inf: flag != "0", ..CLEAN }
}

#[test]
fn one_update_for_several_optimizers_or_micro_batches() {
    for (name, flags, interval) in [
        ("torch/two_opt_rand", ["found_inf_A", "found_inf_B"], 6.0),
        ("torch/accum2_rand", ["found_inf_micro0", "found_inf_micro1"], 4.0),
        ("accelerate/two_opt_update_once", ["found_inf_0", "found_inf_1"], 6.0),
    ] {
        let recording = Recording::read(name);
        let mut scaler = torch(&[("growth_interval", interval)]);
        for row in 0..recording.rows.len() {
            let found = flags.iter().any(|flag| recording.get(row, flag) != "0");
            scaler.update(Seen { found_inf: found, ..CLEAN });
            assert_eq!(scaler.scale(), recording.number(row, "scale_after"), "{name} {row}");
            assert_eq!(scaler.counters()[0].1, recording.number(row, "growth_tracker_after"), "{name} {row}");
        }
    }
}

#[test]
fn accelerate_updates_once_for_each_optimizer() {
    let recording = Recording::read("accelerate/two_opt_update_per_step");
    let mut each = torch(&[("growth_interval", 6.0)]);
    let spec = find("accelerate").unwrap();
    let mut settings = Settings::defaults(spec);
    settings.set(spec, "growth_interval", "6").unwrap();
    settings.set(spec, "optimizers", "2").unwrap();
    let mut ours = spec.start(&settings);
    let mut alike = true;
    for row in 0..recording.rows.len() {
        let (first, second) = (recording.get(row, "found_inf_0"), recording.get(row, "found_inf_1"));
        assert_eq!(each.scale(), recording.number(row, "scale_used_for_backward"));
        each.update(flagged(first));
        assert_eq!(each.scale(), recording.number(row, "scale_seen_by_opt1"));
        each.update(flagged(second));
        assert_eq!(each.scale(), recording.number(row, "scale_after"));
        // The rule takes every optimizer but the first for clean.
        alike &= second == "0";
        if alike {
            ours.update(flagged(first));
            assert_eq!(ours.scale(), each.scale());
            assert_eq!(ours.counters(), each.counters());
        }
    }
}

#[test]
fn a_scale_set_by_hand_leaves_the_tracker() {
    let recording = Recording::read("torch/update_new_scale");
    let mut scaler = torch(&[("growth_interval", 5.0)]);
    for row in 0..recording.rows.len() {
        match recording.get(row, "update_new_scale_arg") {
            "" => {
                scaler.update(flagged(recording.get(row, "found_inf")));
            }
            new => {
                let tracker = scaler.counters()[0].1;
                let state = [("growth_interval", 5.0), ("growth_tracker", tracker)];
                scaler = torch(&[("init_scale", new.parse().unwrap()), state[0], state[1]]);
            }
        }
        assert_eq!(scaler.scale(), recording.number(row, "scale_after"), "{row}");
        assert_eq!(scaler.counters()[0].1, recording.number(row, "growth_tracker_after"), "{row}");
    }
}

#[test]
fn an_interval_lowered_below_the_tracker_is_never_met() {
    let recording = Recording::read("torch/interval_lowered_below_tracker");
    let mut scaler = torch(&[("growth_interval", 50.0)]);
    for row in 0..recording.rows.len() {
        if row == 20 {
            let tracker = scaler.counters()[0].1;
            scaler = torch(&[
                ("init_scale", scaler.scale()),
                ("growth_tracker", tracker),
                ("growth_interval", 10.0),
            ]);
        }
        scaler.update(flagged(recording.get(row, "found_inf")));
        assert_eq!(scaler.scale(), recording.number(row, "scale_after"), "{row}");
        assert_eq!(scaler.counters()[0].1, recording.number(row, "growth_tracker_after"), "{row}");
    }
}

#[test]
fn of_two_optimizers_paddle_sees_the_last() {
    for name in ["two_optimizers_step_each", "two_optimizers_unscale_both_then_step"] {
        let recording = Recording::read(&format!("paddle_dygraph/{name}"));
        let spec = find("paddle").unwrap();
        let mut settings = Settings::defaults(spec);
        settings.set(spec, "incr_every_n_steps", "6").unwrap();
        let mut scaler = spec.start(&settings);
        for row in 0..recording.rows.len() {
            scaler.update(flagged(recording.get(row, "found_inf_1")));
            assert_eq!(scaler.scale(), recording.number(row, "scale_after"), "{name} {row}");
            assert_eq!(scaler.counters()[0].1, recording.number(row, "incr_count_after"), "{name} {row}");
        }
    }
}

#[test]
fn a_f16_scale_stops_at_32768() {
    // The rule in f16, which holds no larger power of two: growth to Inf is not done.
    let recording = Recording::read("jmp/f16_scale_p5__clean_60");
    let spec = find("jmp").unwrap();
    let mut settings = Settings::defaults(spec);
    settings.set(spec, "loss_scale", "4096").unwrap();
    settings.set(spec, "period", "5").unwrap();
    let mut scaler = spec.start(&settings);
    for row in 0..recording.rows.len() {
        scaler.update(CLEAN);
        let ours = scaler.scale().min(32768.0);
        assert_eq!(ours, recording.number(row, "scale_after"), "{row}");
    }
}
