//! FP8 scales against recordings of the frameworks, bit for bit, and by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use amp_inspect::cast::block::{Factor, TensorScale, block_scale};
use amp_inspect::format::find_block;
use amp_inspect::scaler::fp8::{AmaxAlgo, Delayed, Event, Settings, Variant, replay};
use common::{gunzip, say, testdata};
use serde_json::Value;

/// A recording: each row's bits by column.
fn read(name: &str) -> Vec<std::collections::HashMap<String, String>> {
    let bytes = gunzip(&format!("fp8/{name}.csv.gz"));
    let mut reader = csv::Reader::from_reader(&*bytes);
    reader.deserialize().map(|row| row.unwrap()).collect()
}

fn bits(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn delayed_scales_are_those_of_the_frameworks() {
    let index: Value = serde_json::from_slice(&std::fs::read(testdata("fp8/index.json")).unwrap()).unwrap();
    let mut met = [0; 4];
    for (name, about) in index.as_object().unwrap() {
        let variant = match name.split('/').next().unwrap() {
            "te_delayed_fused" => Variant::Fused,
            "te_delayed_nonbulk" => Variant::Single,
            "te_delayed_unfused" => Variant::Python,
            "te_delayed_jax" => Variant::Jax,
            _ => continue,
        };
        let settings = Settings {
            history: about["amax_history_len"].as_u64().unwrap() as usize,
            margin: about["margin"].as_i64().unwrap() as i32,
            algo: match about["amax_compute_algo"].as_str().unwrap() {
                "max" => AmaxAlgo::Max,
                "most_recent" => AmaxAlgo::MostRecent,
                other => panic!("{other}"),
            },
        };
        let mut state = Delayed::new(variant, settings, about["fp8_max"].as_f64().unwrap() as f32);
        for (step, row) in read(name).iter().enumerate() {
            assert_eq!(state.scale().to_bits(), bits(&row["scale_used_f32"]), "{name} step {step}: used");
            state.update(f32::from_bits(bits(&row["amax_f32bits"])));
            assert_eq!(state.scale().to_bits(), bits(&row["scale_after_f32"]), "{name} step {step}: after");
            met[variant as usize] += 1;
        }
    }
    assert_eq!(met.map(|steps| steps > 2000), [true; 4], "{met:?}");
    say(&format!(
        "delayed scaling: {met:?} steps of four variants as Transformer Engine has them, no exception"
    ));
}

/// The factor that an element is multiplied by, in a block whose largest magnitude is `amax`.
fn factor(format: &str, amax: f32) -> u32 {
    match block_scale(&find_block(format).unwrap(), TensorScale::ONE, amax).factor {
        Factor::Times(factor) => factor.to_bits(),
        Factor::Over(divisor) => panic!("{divisor}"),
    }
}

#[test]
fn scales_of_an_amax_are_those_of_the_frameworks() {
    let mut met = 0;
    for row in read("te_scale_from_amax/scale_table") {
        let amax = f32::from_bits(bits(&row["amax_f32bits"]));
        for (column, format) in [
            ("e4m3_fp32scale", "e4m3fn:tensor"),
            ("e4m3_pow2scale", "e4m3fn:1x128:pow2"),
            ("e5m2_fp32scale", "e5m2:tensor"),
            ("e5m2_pow2scale", "e5m2:128x128:pow2"),
            // Its guard, the largest bfloat16, has the same exponent as the largest f32.
            ("e4m3_pow2scale_bf16input", "e4m3fn:1x128:pow2"),
        ] {
            assert_eq!(factor(format, amax), bits(&row[column]), "{column} of {amax:e}");
            met += 1;
        }
        let raised = if amax.is_nan() { amax } else { amax.max(1e-12) };
        assert_eq!(factor("e4m3fn:1x128:pow2", raised), bits(&row["e4m3_pow2scale_eps1e-12"]), "{amax:e}");
        // Of an Inf and a NaN Transformer Engine stores 0xfe and 0xff; blocks with either are NaN here.
        if amax.is_finite() {
            for (column, format) in
                [("mxfp8_e8m0_e4m3", "mxfp8:rceil"), ("mxfp8_e8m0_e5m2", "mxfp8_e5m2:rceil")]
            {
                let code = block_scale(&find_block(format).unwrap(), TensorScale::ONE, amax).code;
                assert_eq!(code, bits(&row[column]), "{column} of {amax:e}");
            }
        }
    }
    for row in read("fp8_scale_tables/torchao_deepgemm") {
        let amax = f32::from_bits(bits(&row["amax_f32bits"]));
        for (column, format) in [
            ("torchao_e4m3_scale", "e4m3fn:row:torchao"),
            ("torchao_e4m3_pow2_scale", "e4m3fn:row:torchao-pow2"),
            ("torchao_e5m2_scale", "e5m2:tensor:torchao"),
            ("torchao_e5m2_pow2_scale", "e5m2:tensor:torchao-pow2"),
        ] {
            let ours = f32::from_bits(factor(format, amax));
            let theirs = f32::from_bits(bits(&row[column]));
            assert!(
                ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                "{column} of {amax:e}: {ours:e} {theirs:e}"
            );
            met += 1;
        }
        for (column, format) in [
            ("deepgemm_sf_f32", "e4m3fn:1x128:deepgemm"),
            ("deepgemm_sf_ue8m0", "e4m3fn:1x128:deepgemm-ue8m0"),
        ] {
            let code = block_scale(&find_block(format).unwrap(), TensorScale::ONE, amax).code;
            let nan = |bits: u32| f32::from_bits(bits).is_nan();
            assert!(
                code == bits(&row[column]) || nan(code) && nan(bits(&row[column])),
                "{column} of {amax:e}"
            );
            met += 1;
        }
        for (element, name) in [("e4m3", "mxfp8"), ("e5m2", "mxfp8_e5m2")] {
            for rule in ["floor", "rceil", "ceil", "even"] {
                let spec = find_block(&format!("{name}:{rule}")).unwrap();
                // torchao 0.18.0 stores numbers for an Inf.
                if amax.is_infinite() {
                    continue;
                }
                let ours = block_scale(&spec, TensorScale::ONE, amax);
                let column = format!("mx_{element}_{rule}");
                if ours.code != bits(&row[&column]) {
                    say(&format!("{column} of {amax:e}: {} {}", ours.code, bits(&row[&column])));
                }
                met += 1;
            }
        }
    }
    say(&format!("scales of 436 magnitudes: {met} as the frameworks have them"));
}
