//! The cast of whole matrices against the definition of one block, scales and codes.

use amp_inspect::cast::block::{BlockPlan, TensorScale, cast_block, largest};
use amp_inspect::cast::fast::Level;
use amp_inspect::cast::fast::slice_blocks::SliceBlocks;
use amp_inspect::format::block::BlockShape;
use amp_inspect::format::decode::decode;
use amp_inspect::format::find_block;

use super::tensors::values;
use crate::common::Random;

const FORMATS: &[&str] = &[
    "mxfp8",
    "mxfp8:rceil",
    "mxfp8_e5m2:ceil",
    "mxfp6_e3m2",
    "mxfp6_e2m3:even:block=7",
    "mxfp4",
    "nvfp4",
    "nvfp4:torchao",
    "nvfp4:single",
    "e4m3fn:1x128",
    "e5m2:1x128:pow2",
    "e4m3fn:3x5",
    "e4m3fn:128x128:pow2",
];

/// Scales and codes of a matrix, block by block.
fn one_by_one(plan: &BlockPlan, tensor: TensorScale, columns: usize, values: &[f32]) -> (Vec<u8>, Vec<u8>) {
    let (tall, wide) = match plan.spec.shape {
        BlockShape::Run { length, .. } => (1, length as usize),
        BlockShape::Tile { rows, columns } => (rows as usize, columns as usize),
        shape => panic!("{shape:?} has no rectangle of its own"),
    };
    let (mut codes, mut scales) = (vec![0; values.len()], Vec::new());
    for first_row in (0..values.len().div_ceil(columns)).step_by(tall) {
        for first_column in (0..columns).step_by(wide) {
            let places: Vec<usize> = (first_row..first_row + tall)
                .flat_map(|row| {
                    (first_column..columns.min(first_column + wide)).map(move |c| row * columns + c)
                })
                .filter(|place| *place < values.len())
                .collect();
            if places.is_empty() {
                continue;
            }
            let block: Vec<f32> = places.iter().map(|place| values[*place]).collect();
            let (scale, elements) = cast_block(plan, tensor, &block);
            let bytes = plan.spec.scale.bits.div_ceil(8) as usize;
            scales.extend_from_slice(&scale.code.to_le_bytes()[..bytes]);
            places.iter().zip(elements).for_each(|(place, element)| codes[*place] = element.code as u8);
        }
    }
    (codes, scales)
}

#[test]
fn matrices_are_cast_block_by_block() {
    let mut random = Random(11);
    let levels = || Level::ALL.into_iter().filter(|level| level.is_available());
    for name in FORMATS {
        for (columns, count, kind, scale) in [
            (256, 256 * 130, 0, 1.0),
            (100, 100 * 7, 1, 1.0),
            (96, 96 * 40, 2, 1.0),
            (96, 96 * 40, 3, 1.0),
            // The last row shorter, a row alone, and a factor before all else.
            (300, 300 * 5 + 17, 3, 1024.0),
            (500, 40, 1, 0.125),
            (64, 0, 0, 1.0),
        ] {
            let plan = BlockPlan { spec: find_block(name).unwrap(), scale };
            let values = values(&mut random, count, kind);
            let products: Vec<f32> = values.iter().map(|x| x * scale).collect();
            let amax = largest(&plan.spec, &products);
            let tensor = TensorScale::new(&plan.spec, amax);
            let cast = SliceBlocks::new(&plan).unwrap();
            let (codes, scales) = one_by_one(&plan, tensor, columns, &values);
            assert_eq!(cast.scale_bytes(columns, count), scales.len(), "{name} {columns} {count}");
            for level in levels() {
                let what = format!("{name}, {count} in rows of {columns}, kind {kind}, {}", level.name());
                let found = cast.amax(level, &values);
                assert!(found == amax || (found.is_nan() && amax.is_nan()), "{what}: {found} and {amax}");
                let (mut our_codes, mut our_scales) = (vec![0x5a; count], vec![0x5a; scales.len()]);
                cast.encode(level, tensor, columns, &values, (&mut our_codes, &mut our_scales));
                assert_eq!(our_scales, scales, "{what}");
                let nan = |code: u8| decode(&plan.spec.element, code.into()).is_nan();
                let differ = |(a, b): &(&u8, &u8)| *a != *b && !(nan(**a) && nan(**b) && kind == 3);
                let differing = our_codes.iter().zip(&codes).position(|pair| differ(&(pair.0, pair.1)));
                assert_eq!(differing, None, "{what}");
            }
        }
    }
}

#[test]
fn blocks_along_another_axis_are_left_to_the_definition() {
    let plan = BlockPlan { spec: find_block("mxfp8:axis=0").unwrap(), scale: 1.0 };
    assert!(SliceBlocks::new(&plan).is_none());
}
