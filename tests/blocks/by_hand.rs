//! Block casts worked out by hand, and what must hold for all of them.

use amp_inspect::cast::block::{BlockPlan, ScaleClass, TensorScale, block_scale, cast_block, largest};
use amp_inspect::cast::round::{Class, cast};
use amp_inspect::cast::{Overflow, Rounding};
use amp_inspect::format::decode::{CodeClass, classify, decode};
use amp_inspect::format::table::{BLOCK_FORMATS, INT8};
use amp_inspect::format::{find_block, pow2};

use crate::common::Random;

fn plan(name: &str) -> BlockPlan {
    BlockPlan { spec: find_block(name).unwrap(), scale: 1.0 }
}

fn byte(name: &str, amax: f32) -> u32 {
    block_scale(&plan(name).spec, TensorScale::ONE, amax).code
}

const RULES: [&str; 4] = ["floor", "ceil", "even", "rceil"];

/// The next f32 above a positive number.
fn above(x: f32) -> f32 {
    f32::from_bits(x.to_bits() + 1)
}

#[test]
fn power_of_two_rules_give_the_published_bytes() {
    // Amax, then the byte of floor, ceil, even, rceil.
    let e4m3 = [
        (150.0, [126, 127, 126, 126]),
        (448.0, [127, 128, 127, 127]),
        (above(448.0), [127, 128, 127, 128]),
        (496.0, [127, 128, 128, 128]),
        (512.0, [128, 128, 128, 128]),
    ];
    let e2m1 = [
        (3.5, [126, 127, 127, 127]),
        (5.0, [127, 128, 127, 127]),
        (6.0, [127, 128, 127, 127]),
        (above(6.0), [127, 128, 127, 128]),
        (7.0, [127, 128, 128, 128]),
    ];
    // 127/64 is the largest; from 127.5/64 on, rounding to seven bits carries.
    let int8 = [
        (1.0, [127, 127, 127, 127]),
        (1.984_375, [127, 128, 127, 127]),
        (above(1.984_375), [127, 128, 127, 128]),
        (1.992_187_5, [127, 128, 128, 128]),
    ];
    for (name, cases) in [("mxfp8", &e4m3[..]), ("mxfp4", &e2m1[..]), ("mxint8", &int8[..])] {
        for (amax, bytes) in cases {
            let ours = RULES.map(|rule| byte(&format!("{name}:{rule}"), *amax));
            assert_eq!(ours, *bytes, "{name} {amax}");
        }
    }
}

#[test]
fn edge_scales() {
    for row in BLOCK_FORMATS.iter().filter(|row| row.name.starts_with("mx")) {
        for rule in RULES {
            let name = format!("{}:{rule}", row.name);
            let spec = plan(&name).spec;
            let scale = |amax| block_scale(&spec, TensorScale::ONE, amax);
            // Zero has byte 0, which is 2^-127, not 0.
            assert_eq!((scale(0.0).code, scale(0.0).class), (0, ScaleClass::AllZero), "{name}");
            assert_eq!((scale(0.0).value, decode(&spec.scale, 0)), (pow2(-127), pow2(-127)));
            let tiniest = scale(f32::from_bits(1));
            assert_eq!((tiniest.code, tiniest.class), (0, ScaleClass::Raised), "{name}");
            for amax in [f32::INFINITY, f32::NAN] {
                assert_eq!((scale(amax).code, scale(amax).class), (255, ScaleClass::Nan), "{name}");
            }
        }
    }
    // The largest f32 in eighths: floor 2^(127 − emax); no element has emax below 0.
    assert_eq!(byte("mxfp8", f32::MAX), 254 - 8);
    assert_eq!(byte("mxint8:ceil", f32::MAX), 254);
    let clamped = block_scale(&plan("mxint8:ceil").spec, TensorScale::ONE, f32::MAX);
    assert_eq!(clamped.class, ScaleClass::Saturated);
    // A quotient at 2^-127 exactly, and just above.
    let limit = (448.0 * pow2(-127)) as f32;
    assert_eq!((byte("mxfp8:rceil", limit), byte("mxfp8:rceil", limit * 1.01)), (0, 1));
    assert_eq!(byte("mxfp8", pow2(-118) as f32), 1);
    assert_eq!(byte("mxfp8", pow2(-119) as f32), 0);
}

#[test]
fn no_rule_takes_an_exponent_from_a_rounded_logarithm() {
    for exponent in -100..=100 {
        let power = pow2(exponent) as f32;
        let below = f32::from_bits(power.to_bits() - 1);
        for (amax, floor, ceil) in [(below, -1, 0), (power, 0, 0), (above(power), 0, 1)] {
            assert_eq!(byte("mxfp4:floor", amax) as i32, 127 + exponent + floor - 2, "{amax:e}");
            assert_eq!(byte("mxfp4:ceil", amax) as i32, 127 + exponent + ceil - 2, "{amax:e}");
        }
        for (name, max) in [("mxfp8", 448.0), ("mxfp8_e5m2", 57344.0), ("mxfp6", 28.0), ("mxfp6_e2m3", 7.5)] {
            if exponent < 100 {
                let fits = (max * pow2(exponent)) as f32;
                let name = format!("{name}:rceil");
                assert_eq!(byte(&name, fits) as i32, 127 + exponent, "{name} {fits:e}");
                assert_eq!(byte(&name, above(fits)) as i32, 128 + exponent, "{name} {fits:e}");
            }
        }
    }
}

#[test]
fn floor_clips_what_rceil_keeps() {
    let block = [480.0, -470.0, 1.0, 2.0_f32.powi(-12)];
    let (_, floor) = cast_block(&plan("mxfp8"), TensorScale::ONE, &block);
    // 480 / 2^0 is above 464: clipped to 448. 2^-12 is below half of 2^-9.
    assert_eq!(floor.iter().map(|e| e.dequantised).collect::<Vec<_>>(), [448.0, -448.0, 1.0, 0.0]);
    let classes: Vec<_> = floor.iter().map(|e| e.class).collect();
    assert_eq!(classes, [Class::Overflow, Class::Overflow, Class::Normal, Class::Underflow]);
    assert_eq!(floor.iter().map(|e| e.clipped).collect::<Vec<_>>(), [true, true, false, false]);
    let (scale, rceil) = cast_block(&plan("mxfp8:rceil"), TensorScale::ONE, &block);
    assert_eq!(scale.code, 128);
    assert_eq!(rceil.iter().map(|e| e.dequantised).collect::<Vec<_>>(), [480.0, -480.0, 1.0, 0.0]);
    assert!(rceil.iter().all(|e| !e.clipped && e.class != Class::Overflow));
    // 456 is clipped before rounding, but rounds to the largest number all the same.
    let (_, near) = cast_block(&plan("mxfp8"), TensorScale::ONE, &[456.0]);
    assert_eq!((near[0].class, near[0].clipped), (Class::Normal, true));
}

#[test]
fn one_bad_element_spoils_an_mx_block() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let (scale, elements) = cast_block(&plan("mxfp8"), TensorScale::ONE, &[1.0, bad, 0.0]);
        assert_eq!(scale.code, 255);
        assert!(elements.iter().all(|e| e.dequantised.is_nan()));
        let source = if bad.is_nan() { Class::Nan } else { Class::Inf };
        assert_eq!(
            elements.iter().map(|e| e.class).collect::<Vec<_>>(),
            [Class::Overflow, source, Class::Zero]
        );
    }
}

#[test]
fn a_power_of_two_changes_only_the_scale_byte() {
    let mut random = Random(11);
    for row in BLOCK_FORMATS.iter().filter(|row| row.name.starts_with("mx")) {
        for rule in RULES {
            let plan = plan(&format!("{}:{rule}", row.name));
            for _ in 0..50 {
                let block: Vec<f32> = (0..32).map(|_| random.number(-12..=3) as f32).collect();
                let (scale, elements) = cast_block(&plan, TensorScale::ONE, &block);
                for shift in [-60, -3, 1, 90] {
                    let shifted: Vec<f32> = block.iter().map(|x| x * pow2(shift) as f32).collect();
                    let (other, same) = cast_block(&plan, TensorScale::ONE, &shifted);
                    assert_eq!(other.code as i32, scale.code as i32 + shift);
                    assert!(elements.iter().zip(&same).all(|(a, b)| (a.code, a.class) == (b.code, b.class)));
                }
            }
        }
    }
}

#[test]
fn transformer_engine_nvfp4() {
    let plan = plan("nvfp4");
    // Tensor amax 2688 → encode 1; block amax 12 → 12·(1·fl(1/6)) = 2; elements · 1/2.
    let tensor = TensorScale::new(&plan.spec, 2688.0);
    assert_eq!(tensor, TensorScale::ONE);
    let (scale, elements) = cast_block(&plan, tensor, &[12.0, 5.0, -2.4, 0.1]);
    assert_eq!((scale.code, scale.value), (0x40, 2.0));
    assert_eq!(elements.iter().map(|e| e.code).collect::<Vec<_>>(), [7, 4, 0b1010, 0]);
    assert_eq!(elements.iter().map(|e| e.dequantised).collect::<Vec<_>>(), [12.0, 4.0, -2.0, 0.0]);
    // 2^19 below the tensor's largest: the scale is 2^-10, a tie that goes to 0, and the block is lost, though
    // its codes are not zero.
    let amax = 6.0 * pow2(-10) as f32;
    let (scale, elements) = cast_block(&plan, tensor, &[amax, 0.0]);
    assert_eq!((scale.code, scale.class), (0, ScaleClass::Zero));
    assert_eq!((elements[0].code, elements[0].class, elements[0].dequantised), (7, Class::Underflow, 0.0));
    assert_eq!((elements[1].class, elements[0].clipped), (Class::Zero, false));
    let (scale, _) = cast_block(&plan, tensor, &[6.0 * pow2(-9) as f32]);
    assert_eq!((scale.code, scale.class), (1, ScaleClass::Subnormal));
    // A tensor of zeros has encode 1; a tiny one the largest f32.
    assert_eq!(TensorScale::new(&plan.spec, 0.0), TensorScale::ONE);
    assert_eq!(TensorScale::new(&plan.spec, f32::from_bits(1)).encode, f32::MAX);
    // NaN is passed over, and stored as 6; Inf saturates the scale.
    let block = [f32::NAN, 3.0];
    assert_eq!(largest(&plan.spec, &block), 3.0);
    let (_, elements) = cast_block(&plan, tensor, &block);
    assert_eq!((elements[0].code, elements[0].class), (7, Class::Nan));
    let infinite = TensorScale::new(&plan.spec, f32::INFINITY);
    let (scale, _) = cast_block(&plan, infinite, &[f32::INFINITY, 3.0]);
    assert_eq!((infinite, scale.code, scale.class), (TensorScale::ONE, 0x7e, ScaleClass::Saturated));
}

#[test]
fn order_of_operations_of_the_nvfp4_recipes() {
    // amax·(encode·fl(1/6)), (amax/6)/decode: the same real number, rounded at other places.
    let spec = plan("nvfp4:te").spec;
    let tensor = TensorScale::new(&spec, 10.0);
    assert_eq!(tensor.encode, 268.8);
    assert_eq!(tensor.decode, 1.0 / 268.8);
    let scale = block_scale(&spec, tensor, 10.0);
    assert_eq!((scale.code, scale.value), (0x7e, 448.0));
    let spec = plan("nvfp4:torchao").spec;
    let tensor = TensorScale::new(&spec, 10.0);
    assert_eq!(tensor.decode, 10.0 / 2688.0);
    // A pair, found by search, for which every other order gives Transformer Engine's other neighbour, 0x77.
    let (tensor_amax, amax) = (f32::from_bits(0x3ff5_cc38), f32::from_bits(0x3f88_110c));
    for (name, code) in [("nvfp4:te", 0x78), ("nvfp4:torchao", 0x77)] {
        let spec = plan(name).spec;
        assert_eq!(block_scale(&spec, TensorScale::new(&spec, tensor_amax), amax).code, code, "{name}");
    }
    // Raised to 2^-6 where Transformer Engine goes on to smaller scales.
    let scale = block_scale(&spec, tensor, 1e-4);
    assert_eq!((scale.value, scale.class), (pow2(-6), ScaleClass::Raised));
    let spec = plan("nvfp4:single").spec;
    let scale = block_scale(&spec, TensorScale::new(&spec, 1e6), 1e6);
    assert_eq!((scale.value, scale.class), (448.0, ScaleClass::Saturated));
    assert_eq!(TensorScale::new(&spec, 1e6), TensorScale::ONE);
}

#[test]
fn fp8_blocks_store_the_reciprocal_of_their_factor() {
    let (scale, elements) = cast_block(&plan("e4m3fn:1x128"), TensorScale::ONE, &[3.0, -1.0, 1e-4]);
    assert_eq!(scale.value, f64::from(1.0_f32 / (448.0_f32 / 3.0)));
    assert_eq!(elements[0].code, 0x7e);
    assert!((elements[1].dequantised + 1.0).abs() < 0.05);
    let (scale, elements) = cast_block(&plan("e4m3fn:1x128:pow2"), TensorScale::ONE, &[3.0]);
    // 448/3 = 149.3, cut to 128; 3·128 = 384.
    assert_eq!((scale.value, elements[0].dequantised), (1.0 / 128.0, 3.0));
    let of = |amax| block_scale(&plan("e4m3fn:1x128").spec, TensorScale::ONE, amax);
    assert_eq!((of(0.0).value, of(0.0).class), (1.0, ScaleClass::AllZero));
    assert_eq!((of(f32::INFINITY).value, of(f32::INFINITY).class), (1.0, ScaleClass::Saturated));
    assert_eq!(of(1e-37).class, ScaleClass::Raised);
    assert_eq!(of(4e-36).class, ScaleClass::Subnormal);
}

#[test]
fn int8_is_the_integers_in_sixty_fourths() {
    for code in 0..256_u32 {
        let value = f64::from(code as u8 as i8) / 64.0;
        assert_eq!(decode(&INT8, code), value, "{code:#x}");
        let class = match value.abs() {
            0.0 => CodeClass::Zero,
            small if small < 1.0 => CodeClass::Subnormal,
            _ => CodeClass::Normal,
        };
        assert_eq!(classify(&INT8, code), class);
    }
    assert_eq!((INT8.max_finite(), INT8.emax(), INT8.min_normal()), (127.0 / 64.0, 0, 1.0));
    assert_eq!(INT8.nan_code(false), None);
    let mut random = Random(3);
    for _ in 0..20_000 {
        let x = random.number(-12..=3);
        let q = cast(&INT8, Rounding::NearestEven, Overflow::Saturate, x);
        // Round half even to an integer, then clamp to ±127: never −128.
        let wanted = (x * 64.0).round_ties_even().clamp(-127.0, 127.0);
        assert_eq!(f64::from(q.code as u8 as i8), wanted, "{x:e}");
        assert_eq!(q.class == Class::Overflow, (x * 64.0).round_ties_even().abs() > 127.0, "{x:e}");
    }
    for half in -300..=300 {
        let x = f64::from(half) / 128.0;
        let q = cast(&INT8, Rounding::NearestEven, Overflow::Saturate, x);
        let wanted = (x * 64.0).round_ties_even().clamp(-127.0, 127.0);
        assert_eq!(f64::from(q.code as u8 as i8), wanted, "{x}");
    }
}

#[test]
fn a_scale_before_the_cast_is_taken_off_again() {
    let plan = BlockPlan { scale: 1000.0, ..plan("mxfp6") };
    let (scale, elements) = cast_block(&plan, TensorScale::ONE, &[0.5, 0.25]);
    // 500 is 31.25·2^4, and 28 the largest: clipped.
    assert_eq!((scale.value, elements[0].clipped), (pow2(4), true));
    assert_eq!((elements[0].dequantised, elements[1].dequantised), (0.448, 0.256));
}
