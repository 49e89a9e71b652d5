//! `cast::fast::block_scales` against the definition: scales for magnitudes over all of f32.

use amp_inspect::cast::block::{Factor, TensorScale, block_scale};
use amp_inspect::cast::fast::Level;
use amp_inspect::cast::fast::block_scales::Scales;
use amp_inspect::format::find_block;

/// Patterns of numbers that are not negative: all that have six significand bits, where exponents and roundings to e4m3
/// change, those beside them, and some thousand in each binade.
fn patterns() -> Vec<u32> {
    let grid = (0..1 << 14)
        .flat_map(|point: u32| (0..5).map(move |beside| (point << 17).wrapping_add(beside).wrapping_sub(2)));
    let spread = (0..=i32::MAX as u32).step_by(1_013);
    grid.skip(2).chain(spread).collect()
}

#[test]
fn scales_of_many_blocks_are_those_of_each() {
    let patterns = patterns();
    for (name, tensor_amax) in [
        ("mxfp8:floor", 1.0),
        ("mxfp8:ceil", 1.0),
        ("mxfp8:even", 1.0),
        ("mxfp8_e5m2:even", 1.0),
        ("mxfp8:rceil", 1.0),
        ("mxfp4:rceil", 1.0),
        ("mxint8:floor", 1.0),
        ("nvfp4:te", 1.0),
        ("nvfp4:te", 3e-30),
        ("nvfp4:te", 0.0),
        ("nvfp4:torchao", 1.0),
        ("nvfp4:torchao", 5e20),
        ("nvfp4:torchao", 0.0),
        ("nvfp4:single", 1.0),
        ("e4m3fn:1x128:pow2", 1.0),
    ] {
        let spec = find_block(name).unwrap();
        let tensor = TensorScale::new(&spec, tensor_amax);
        let mut scales = Scales::default();
        // A length that no vector divides.
        for bits in patterns.chunks(4_099) {
            let amax: Vec<f32> = bits.iter().map(|&bits| f32::from_bits(bits)).collect();
            let wanted: Vec<_> = amax.iter().map(|&amax| block_scale(&spec, tensor, amax)).collect();
            for level in Level::ALL {
                scales.fill(level, &spec, tensor, &amax);
                for (block, (&amax, wanted)) in amax.iter().zip(&wanted).enumerate() {
                    let what = || format!("{name}, amax {amax:e}, {}", level.name());
                    assert_eq!(scales.codes[block], wanted.code, "code, {}", what());
                    assert_eq!(scales.classes[block], wanted.class, "class, {}", what());
                    let unit = f64::from(scales.values[block]) * f64::from(scales.decode);
                    let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
                    assert!(same(scales.values[block].into(), wanted.value), "value, {}", what());
                    assert!(same(unit, wanted.unit), "unit, {}", what());
                    let (factor, divides) = match wanted.factor {
                        Factor::Times(factor) => (factor, false),
                        Factor::Over(divisor) => (divisor, true),
                    };
                    assert_eq!(scales.divide, divides);
                    assert!(same(scales.factors[block].into(), factor.into()), "factor, {}", what());
                }
            }
        }
    }
}
