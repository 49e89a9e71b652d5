//! Every scale and every code of `testdata/blocks`, bit for bit.

use amp_inspect::cast::block::{BlockPlan, TensorScale, cast_block, largest};
use amp_inspect::format::block::BlockShape;
use amp_inspect::format::find_block;

use crate::common::{gunzip, say, testdata};

const ELEMENTS: usize = 64 * 64;

/// The block format that a case stands for.
fn format_of(case: &str) -> String {
    match case.split('.').collect::<Vec<_>>().as_slice() {
        ["mx", element, rule] => {
            let name = match *element {
                "e4m3fn" => "mxfp8_e4m3",
                "e5m2" => "mxfp8_e5m2",
                "e3m2fn" => "mxfp6_e3m2",
                "e2m3fn" => "mxfp6_e2m3",
                "e2m1fn" => "mxfp4",
                other => panic!("{other}"),
            };
            format!("{name}:{rule}")
        }
        ["nvfp4_torchao", "single_level"] => "nvfp4:single".into(),
        ["nvfp4_torchao", "two_level"] => "nvfp4:torchao".into(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn torchao_agrees_on_every_scale_and_code() {
    let table = std::fs::read_to_string(testdata("blocks/cases.csv")).unwrap();
    let (mut cases, mut scales_met, mut codes_met) = (0, 0, 0);
    let mut open: Option<(String, Vec<u8>, usize)> = None;
    for line in table.lines().skip(1) {
        let [input, case, sizes @ ..] = line.split(',').collect::<Vec<_>>().try_into().unwrap_or([""; 5]);
        let sizes: Vec<usize> = sizes.iter().map(|size| size.parse().unwrap()).collect();
        if open.as_ref().is_none_or(|(name, ..)| name != input) {
            open = Some((input.to_owned(), gunzip(&format!("blocks/{input}.gz")), 4 * ELEMENTS));
        }
        let (_, bytes, at) = open.as_mut().unwrap();
        let mut take = |size: usize| {
            *at += size;
            &bytes[*at - size..*at]
        };
        let (scales, codes, global) = (take(sizes[0]), take(sizes[1]), take(sizes[2]));
        let x: Vec<f32> = bytes[..4 * ELEMENTS]
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect();

        let plan = BlockPlan { spec: find_block(&format_of(case)).unwrap(), scale: 1.0 };
        let tensor = TensorScale::new(&plan.spec, largest(&plan.spec, &x));
        if let Ok(global) = <[u8; 4]>::try_from(global) {
            assert_eq!(tensor.decode.to_bits(), u32::from_le_bytes(global), "{line}");
        }
        let BlockShape::Run { length, axis: -1 } = plan.spec.shape else { panic!("{line}") };
        let codes: Vec<u32> = match plan.spec.element.bits {
            4 => codes.iter().flat_map(|&byte| [byte & 15, byte >> 4]).map(u32::from).collect(),
            _ => codes.iter().map(|&byte| byte.into()).collect(),
        };
        let blocks = x.chunks(length as usize).zip(codes.chunks(length as usize)).zip(scales);
        assert_eq!((codes.len(), scales.len()), (ELEMENTS, ELEMENTS / length as usize), "{line}");
        for (number, ((block, codes), &scale)) in blocks.enumerate() {
            let (ours, elements) = cast_block(&plan, tensor, block);
            assert_eq!(ours.code, u32::from(scale), "scale {number} of {line}: {block:?}");
            let ours: Vec<u32> = elements.iter().map(|element| element.code).collect();
            assert_eq!(ours, codes, "codes of block {number} of {line}: {block:?}");
            scales_met += 1;
            codes_met += codes.len();
        }
        cases += 1;
    }
    assert_eq!(cases, 5 * (5 * 4 + 2));
    say(&format!(
        "blocks: {scales_met} scales and {codes_met} codes as torchao 0.18.0 has them, no exception"
    ));
}
