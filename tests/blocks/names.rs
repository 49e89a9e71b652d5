//! The grammar of block formats.

use amp_inspect::format::block::{BlockShape, Nvfp4, PowerRule, Quotient, Recipe};
use amp_inspect::format::table::BLOCK_FORMATS;
use amp_inspect::format::{Named, find_any, find_block};

#[test]
fn names_are_read_back_as_the_same_format() {
    for row in BLOCK_FORMATS {
        assert_eq!(
            find_any(row.aliases.first().unwrap_or(&row.name)).map(block).unwrap().element,
            row.element
        );
    }
    let texts = [
        "mxfp8",
        "MXFP8-E5M2:Ceil",
        "mxfp6:even:block=16",
        "mxfp6_e2m3:axis=0:rceil",
        "mxfp4:axis=-2",
        "mxint8:block=1024",
        "nvfp4",
        "nvfp4:torchao",
        "nvfp4:single:block=32:axis=1",
        "fp8:1x128",
        "e4m3fn:128x128:pow2",
        "e5m2:64X7:f32",
        "e3m2fn:1x1",
        "e4m3:ROW:torchao",
        "e5m2:tensor:f32",
        "e4m3fn:1x128:DeepGEMM-ue8m0",
    ];
    for text in texts {
        let spec = find_block(text).unwrap();
        assert_eq!(find_any(spec.name).map(block).unwrap(), spec, "{text}");
    }
    let names = texts.map(|text| find_block(text).unwrap().name);
    let wanted = [
        "mxfp8_e4m3",
        "mxfp8_e5m2:ceil",
        "mxfp6_e3m2:even:block=16",
        "mxfp6_e2m3:rceil:axis=0",
        "mxfp4:axis=-2",
        "mxint8:block=1024",
        "nvfp4:te",
        "nvfp4:torchao",
        "nvfp4:single:block=32:axis=1",
        "e4m3fn:1x128",
        "e4m3fn:128x128:pow2",
        "e5m2:64x7",
        "e3m2fn:1x1",
        "e4m3fn:row:torchao",
        "e5m2:tensor",
        "e4m3fn:1x128:deepgemm-ue8m0",
    ];
    assert_eq!(names, wanted);
}

fn block(named: Named) -> amp_inspect::format::BlockSpec {
    match named {
        Named::Block(spec) => spec,
        Named::Plain(format) => panic!("{} is no block format", format.name),
    }
}

#[test]
fn suffixes_set_what_they_say() {
    let spec = find_block("mxfp8:rceil:block=16:axis=0").unwrap();
    assert_eq!(spec.recipe, Recipe::Power(PowerRule::Rceil));
    assert_eq!(spec.shape, BlockShape::Run { length: 16, axis: 0 });
    assert_eq!(find_block("mxfp8").unwrap().recipe, Recipe::Power(PowerRule::Floor));
    assert_eq!(find_block("nvfp4").unwrap().recipe, Recipe::Nvfp4(Nvfp4::Te));
    let tile = find_block("e5m2:2x3:pow2").unwrap();
    assert_eq!(tile.recipe, Recipe::Quotient(Quotient::Pow2));
    assert_eq!(tile.shape, BlockShape::Tile { rows: 2, columns: 3 });
    // The same word means another recipe of another kind of scale.
    assert_eq!(find_block("e5m2:row:torchao").unwrap().recipe, Recipe::Quotient(Quotient::Torchao));
    assert_eq!(find_block("nvfp4:torchao").unwrap().recipe, Recipe::Nvfp4(Nvfp4::Torchao));
    assert_eq!(find_block("e5m2:row").unwrap().shape, BlockShape::Row);
    assert_eq!(tile.element.name, "e5m2");
    assert!(matches!(find_any("e4m3fn").unwrap(), Named::Plain(_)));
}

#[test]
fn what_is_wrong_with_a_name_is_said() {
    let errors = [
        ("mxfp8:te", "'te' is none of its scale recipes floor, ceil, even, rceil"),
        ("nvfp4:ceil", "'ceil' is none of its scale recipes te, torchao, single"),
        (
            "e4m3fn:1x128:floor",
            "'floor' is none of its scale recipes f32, pow2, torchao, torchao-pow2, deepgemm, deepgemm-ue8m0",
        ),
        ("mxfp8:floor:ceil", "the scale recipe is given twice"),
        ("mxfp8:block=8:block=8", "the block length is given twice"),
        ("mxfp8:block=0", "block=0: a block has 1 to 1024 elements"),
        ("mxfp8:block=1025", "block=1025: a block has 1 to 1024 elements"),
        ("mxfp8:axis=x", "axis=x: an axis is a whole number, 0 the first and -1 the last"),
        ("mxfp8:size=3", "'size' cannot be set; block=N and axis=A can"),
        ("mxfp8:1x32", "the blocks of mxfp8_e4m3 are runs: say block=N and axis=A"),
        ("e4m3fn:1x128:axis=0", "its blocks are tiles: the shape is given as RxC, row or tensor alone"),
        ("e4m3fn:0x128", "a block has 1 to 1024 rows and as many columns"),
        ("mxfp8:row", "the blocks of mxfp8_e4m3 are runs: say block=N and axis=A"),
        (
            "float16:1x128",
            "float16 cannot be the element: it must be signed, of at most 8 bits, with a zero and a moderate bias",
        ),
        (
            "e8m0fnu:1x128",
            "e8m0fnu cannot be the element: it must be signed, of at most 8 bits, with a zero and a moderate bias",
        ),
        (
            "e4m3fn:",
            "known are mxfp8_e4m3, mxfp8_e5m2, mxfp6_e3m2, mxfp6_e2m3, mxfp4, mxint8, nvfp4, e4m3fn:1x128, e4m3fn:128x128; FORMAT:RxC for other tiles, FORMAT:row and FORMAT:tensor",
        ),
    ];
    for (text, why) in errors {
        let error = find_any(text).unwrap_err().to_string();
        assert_eq!(error, format!("block format '{text}': {why}"));
    }
    let unknown = find_any("mxfp3").unwrap_err().to_string();
    assert!(
        unknown.contains("unknown format 'mxfp3'") && unknown.contains("in blocks: mxfp8_e4m3,"),
        "{unknown}"
    );
    assert!(!find_any("e9m2").unwrap_err().to_string().contains("in blocks"));
}
