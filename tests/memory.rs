//! The ledger of memory against published figures and sums worked out by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use amp_inspect::training::memory::activations::activations;
use amp_inspect::training::memory::count::{Role, role};
use amp_inspect::training::memory::flow::flow;
use amp_inspect::training::memory::recipe::{BFLOAT16, FLOAT32};
use amp_inspect::training::memory::{Ledger, Model, RECIPES, Recipe, Recompute, Sharding};
use common::{amp_inspect, amp_inspect_at, printed, refused};
use serde_json::Value;

fn recipe(name: &str) -> &'static Recipe {
    RECIPES.iter().find(|recipe| recipe.name == name).unwrap()
}

fn ledger(name: &str, parameters: u64, ranks: (Sharding, u64)) -> Ledger {
    Ledger::new(recipe(name), parameters, ranks, None, None).unwrap()
}

#[test]
fn seven_billion_parameters_under_each_recipe() {
    let whole = [
        // Each moment: 7e9 codes of a byte and 7e9/256 scales of four.
        ("adam-8bit", 10.03125, 8 * 7_000_000_000 + 2 * (7_000_000_000 + 4 * 27_343_750)),
        ("fp32", 16.0, 112_000_000_000),
        ("autocast", 16.0, 112_000_000_000),
        ("amp-fp16", 16.0, 112_000_000_000),
        ("amp-bf16", 16.0, 112_000_000_000),
        ("pure-bf16", 8.0, 56_000_000_000),
        ("fp8-te", 18.0, 126_000_000_000),
    ];
    assert_eq!(whole.len(), RECIPES.len());
    for (name, each, bytes) in whole {
        let ledger = ledger(name, 7_000_000_000, (Sharding::None, 1));
        assert_eq!(
            (ledger.bytes_per_parameter(), ledger.kept(), ledger.kept_on_rank()),
            (each, bytes, bytes)
        );
        let passing = if name == "autocast" { 14_000_000_000 } else { 0 };
        assert_eq!(ledger.peak_on_rank(), bytes + passing, "{name}");
    }
}

/// Rajbhandari et al. 2020, figure 1: 7.5 billion parameters on 64 ranks, K = 12.
#[test]
fn zero_divides_as_in_its_paper() {
    let published =
        [(Sharding::None, 120.0), (Sharding::Zero1, 31.4), (Sharding::Zero2, 16.6), (Sharding::Zero3, 1.9)];
    for (sharding, gigabytes) in published {
        let bytes = ledger("amp-fp16", 7_500_000_000, (sharding, 64)).kept_on_rank();
        assert_eq!((bytes as f64 / 1e8).round() / 10.0, gigabytes, "{sharding:?}");
    }
}

#[test]
fn zero_and_fsdp_over_8_and_64_ranks() {
    // 7e9 · (what every rank has + what is divided / ranks), by hand.
    let cases = [
        ("amp-bf16", Sharding::Zero1, 8, 28_000_000_000 + 84_000_000_000 / 8),
        ("amp-bf16", Sharding::Zero2, 8, 14_000_000_000 + 98_000_000_000 / 8),
        ("amp-bf16", Sharding::Zero3, 8, 112_000_000_000 / 8),
        ("amp-bf16", Sharding::Zero1, 64, 28_000_000_000 + 84_000_000_000 / 64),
        ("amp-bf16", Sharding::Zero2, 64, 14_000_000_000 + 98_000_000_000 / 64),
        ("amp-bf16", Sharding::Zero3, 64, 112_000_000_000 / 64),
        // FSDP: float32 shards of weights and gradients, and moments; no bfloat16 weights of its own.
        ("amp-bf16", Sharding::Fsdp, 64, 112_000_000_000 / 64),
        ("pure-bf16", Sharding::Fsdp, 64, 56_000_000_000 / 64),
        ("fp32", Sharding::Zero1, 8, 56_000_000_000 + 56_000_000_000 / 8),
        ("fp8-te", Sharding::Zero2, 8, 28_000_000_000 + 98_000_000_000 / 8),
    ];
    for (name, sharding, ranks, bytes) in cases {
        assert_eq!(
            ledger(name, 7_000_000_000, (sharding, ranks)).kept_on_rank(),
            bytes,
            "{name} {sharding:?}"
        );
    }
    // Shares that do not come out even: the rank with most has one parameter more.
    assert_eq!(ledger("fp32", 10, (Sharding::Zero3, 4)).kept_on_rank(), 3 * 16);
    // Gradients kept in float32, as Megatron-LM does.
    let ledger = Ledger::new(recipe("amp-bf16"), 10, (Sharding::None, 1), Some(FLOAT32), None).unwrap();
    assert_eq!(ledger.bytes_per_parameter(), 18.0);
}

/// Korthikanti et al. 2022, table 2 and section 5: 5·a·s/h is 80 for GPT-3 and 64 for MT-NLG.
/// A rank multiplies by all weights, so it casts all of them, whatever its share.
#[test]
fn casts_of_gathered_weights_are_whole() {
    for sharding in [Sharding::Zero3, Sharding::Fsdp] {
        let ledger = ledger("autocast", 7_000_000_000, (sharding, 64));
        assert_eq!(ledger.kept_on_rank(), 7_000_000_000 * 16 / 64);
        assert_eq!(ledger.peak_on_rank(), 1_750_000_000 + 14_000_000_000);
    }
}

#[test]
fn activations_are_those_of_the_paper() {
    for (hidden, heads, layers, matrix) in [(12_288, 96, 96, 80), (20_480, 128, 105, 64)] {
        let model = Model { hidden, layers, sequence: 2048, batch: 1, heads: Some(heads), vocabulary: None };
        let sum = |element, recompute| -> u64 {
            activations(&model, element, recompute).unwrap().iter().map(|term| term.bytes).sum()
        };
        let sbh = 2048 * hidden;
        assert_eq!(sum(BFLOAT16, Recompute::None), sbh * layers * (34 + matrix));
        assert_eq!(sum(BFLOAT16, Recompute::Selective), sbh * layers * 34);
        // The inputs of the layers, and one layer made again.
        assert_eq!(sum(BFLOAT16, Recompute::Full), sbh * (2 * layers + 34 + matrix));
        // Of float32, all but the masks are twice as large: 2·32 + 2, and of 5 a·s²·b four are no mask.
        assert_eq!(sum(FLOAT32, Recompute::None), sbh * layers * 66 + 9 * matrix * sbh * layers / 5);
    }
    let model = Model { hidden: 64, layers: 2, sequence: 16, batch: 3, heads: None, vocabulary: Some(100) };
    let terms = activations(&model, BFLOAT16, Recompute::Selective).unwrap();
    let bytes: Vec<u64> = terms.iter().map(|term| term.bytes).collect();
    assert_eq!(bytes, [34 * 16 * 3 * 64 * 2, 4 * 16 * 3 * 64, 4 * 16 * 3 * 100]);
}

#[test]
fn what_is_gathered_is_there_for_a_while() {
    let model = Model { hidden: 4096, layers: 32, sequence: 1, batch: 1, heads: None, vocabulary: None };
    let shape = Some((&model, Recompute::Selective));
    let ledger = Ledger::new(recipe("amp-bf16"), 6_400_000_000, (Sharding::Fsdp, 64), None, shape).unwrap();
    // Two of 32 layers in bfloat16.
    assert_eq!(ledger.peak_on_rank() - ledger.kept_on_rank() - ledger.activation_bytes(), 400_000_000 * 2);
}

#[test]
fn a_step_flows_through_its_types() {
    let stages = flow(&ledger("amp-bf16", 6_400, (Sharding::Fsdp, 64)), Some(FLOAT32));
    let told: Vec<_> = stages.iter().map(|stage| (stage.stage, stage.element, stage.bytes)).collect();
    let expected = [
        ("start", "float32", Some(400)),
        ("all-gather", "bfloat16", Some(12_800)),
        ("matmul", "bfloat16", None),
        ("float32 ops", "float32", None),
        ("kept", "bfloat16", None),
        ("backward", "bfloat16", Some(12_800)),
        ("reduce-scatter", "float32", Some(25_600)),
        ("kept", "float32", Some(400)),
        ("optimizer", "float32", Some(400)),
        ("optimizer", "float32", Some(400)),
        ("optimizer", "float32", Some(400)),
    ];
    assert_eq!(told, expected);
    // ZeRO-1 sends the updated weights at the end; autocast's gradients come back in float32.
    let stages = flow(&ledger("amp-fp16", 100, (Sharding::Zero1, 2)), None);
    let last = stages.last().unwrap();
    assert_eq!((last.stage, last.element, last.bytes), ("all-gather", "float16", Some(200)));
    let stages = flow(&ledger("autocast", 100, (Sharding::None, 1)), None);
    let gradients: Vec<_> = stages.iter().filter(|stage| stage.tensor == "gradients").collect();
    assert_eq!([gradients[0].element, gradients[1].element], ["bfloat16", "float32"]);
    assert!(!stages.iter().any(|stage| stage.stage.contains("reduce") || stage.stage.contains("gather")));
}

#[test]
fn parameters_are_counted_in_files() {
    let count = |path: &str| -> Value {
        let output = amp_inspect(&["memory", "--from", path, "--recipe", "fp32", "--json"]);
        serde_json::from_str(&printed(output)).unwrap()
    };
    // 167,360 parameters, as `ls` has it for the gradients of each.
    let json = count("testdata/gpt/grads_step01500.safetensors");
    assert_eq!((&json["parameters"], &json["counted"]["tensors"]), (&167_360.into(), &41.into()));
    assert_eq!(json["recipes"][0]["kept_bytes"], 16 * 167_360);
    // The checkpoint has two moments and a step for each of the 41.
    let json = count("testdata/gpt/checkpoint_step01500.pt");
    assert_eq!((&json["parameters"], &json["counted"]["tensors"]), (&167_360.into(), &41.into()));
    assert_eq!(json["counted"]["states"], serde_json::json!([123, 2 * 167_360 + 41, 4 * (2 * 167_360 + 41)]));

    assert_eq!(role("optimizer.state.3.exp_avg"), Role::Optimizer);
    assert_eq!(role("module.bn1.running_mean"), Role::Buffer);
    assert_eq!(role("model.layers.0.self_attn.q_proj.weight"), Role::Parameter);
}

#[test]
fn what_is_no_parameter_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let write = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        std::fs::write(&path, bytes).unwrap();
    };
    let from = ["memory", "--from", path.to_str().unwrap(), "--recipe", "fp32"];
    write(
        r#"{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"ids":{"dtype":"I64","shape":[2],"data_offsets":[12,28]},
            "mask":{"dtype":"BOOL","shape":[2],"data_offsets":[28,30]}}"#,
        30,
    );
    let text = printed(amp_inspect(&from)).replace('\n', " ");
    assert!(text.contains("3 parameters in 1 tensor of"), "{text}");
    assert!(text.contains("not counted: 2 integer or boolean tensors (18 B)"), "{text}");
    write(r#"{"e":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#, 0);
    refused(&from, "the tensors of floating-point numbers have no elements");
    let text = printed(amp_inspect(&["memory", "--params", "7e9", "--sharding", "fsdp"])).replace('\n', " ");
    assert!(text.contains("sharding fsdp over 1 rank divides nothing: give --ranks"), "{text}");
}

#[test]
fn absurd_numbers_are_refused() {
    let of = |option: &str, more: &[&str]| {
        let output = amp_inspect(&[&["memory", option], more].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{option}");
        String::from_utf8(output.stderr).unwrap()
    };
    for params in ["--params=-7e9", "--params=0", "--params=1e16", "--params=inf", "--params=nan"] {
        assert!(of(params, &[]).contains("from 1 to 10^15 parameters make sense"), "{params}");
    }
    for params in ["--params=many", "--params=1.5", "--params="] {
        assert!(of(params, &[]).contains("a number of parameters is such as 7e9, 7B, 350M"), "{params}");
    }
    assert!(of("--params=1", &["--ranks", "0"]).contains("0 is not in 1..=10000000"));
    assert!(of("--params=1", &["--hidden", "64"]).contains("--layers"));
    let shape = ["--hidden", "1099511627776", "--layers", "4", "--seq", "1099511627776", "--batch", "1"];
    refused(
        &[&["memory", "--params", "1", "--recompute", "selective"], &shape[..]].concat(),
        "activations of this shape are 2^64 bytes or more: check the numbers",
    );
    refused(
        &["memory", "--params", "1", "--hidden", "64", "--layers", "1", "--seq", "8", "--batch", "1"],
        "a layer has an attention matrix a·s²·b: give the number of heads (--heads), or --recompute selective if it is never \
         in memory, as with FlashAttention",
    );
    refused(&["memory", "--from", "none.pt"], "none.pt: cannot open the file: no such file or directory");
    assert!(of("--params=7B", &["--recipe", "fp4"]).contains("amp-bf16"));
    for option in ["--tensor", "--exclude"] {
        assert!(of("--params=7e9", &[option, "x"]).contains("cannot be used with"), "{option}");
    }
    assert!(of("--params=7e9", &["--recompute", "full"]).contains("--hidden"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [80, 120, 200] {
        let all: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
        for recipes in all.iter().map(ToString::to_string).chain([all.join(",")]) {
            let shape =
                ["--hidden", "4096", "--layers", "32", "--seq", "4096", "--batch", "1", "--heads", "32"];
            let ranks = ["--sharding", "fsdp", "--ranks", "1024", "--flow", "--vocab", "32000"];
            let command = ["memory", "--params", "7e12", "--recipe", &recipes];
            let text = printed(amp_inspect_at(columns, &[&command[..], &shape, &ranks].concat()));
            for line in text.lines() {
                assert!(unicode_width::UnicodeWidthStr::width(line) <= columns, "{columns}: {line}");
            }
        }
    }
}
