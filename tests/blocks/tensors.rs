//! `pipeline::run_blocks` against a plain implementation that holds the whole tensor and casts block after
//! block by the definition.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;

use amp_inspect::cast::block::{BlockPlan, ScaleClass, cast_block, largest};
use amp_inspect::error::Result;
use amp_inspect::format::block::BlockShape;
use amp_inspect::format::{find_block, pow2};
use amp_inspect::pipeline::{Task, run_blocks};
use amp_inspect::source::TensorSource;
use amp_inspect::stats::blocks::{ScaleCounts, WORST, WorstBlock, tensor_scale};
use amp_inspect::stats::{BlockStats, SourceStats};
use amp_inspect::tensor::grid::{coordinates, row_major};
use amp_inspect::tensor::{ByteOrder, Dtype, TensorInfo};

use crate::common::{Random, row};

/// A tensor in memory.
struct Memory {
    tensors: Vec<TensorInfo>,
    bytes: Vec<u8>,
    column_major: bool,
}

impl TensorSource for Memory {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn column_major(&self, _: usize) -> bool {
        self.column_major
    }

    fn read_at(&self, _: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let offset = offset as usize;
        bytes.copy_from_slice(&self.bytes[offset..offset + bytes.len()]);
        Ok(())
    }
}

fn memory(shape: &[u64], dtype: Dtype, bytes: Vec<u8>) -> Memory {
    let elements = shape.iter().product();
    let (name, shape, byte_order) = ("t".to_owned(), shape.to_vec(), ByteOrder::Little);
    Memory {
        tensors: vec![TensorInfo { name, shape, dtype, byte_order, elements }],
        bytes,
        column_major: false,
    }
}

fn source_stats(values: &[f64]) -> SourceStats {
    let mut source = SourceStats::default();
    values.iter().for_each(|&x| source.observe(x, 1));
    source
}

/// What `run_blocks` finds. `values` are what the bytes mean.
fn found(memory: &Memory, values: &[f64], plans: &[BlockPlan], threads: usize) -> Vec<BlockStats> {
    let task = Task { source: memory, index: 0, info: memory.tensors[0].clone(), path: Path::new("memory") };
    let source = source_stats(values);
    let threads = NonZero::new(threads).unwrap();
    let (stats, failures) = run_blocks(&[(&task, &source)], plans, threads, |_| {}).remove(0);
    assert_eq!(failures, []);
    stats
}

/// The blocks of a tensor as positions, by the position of the first element.
fn blocks(shape: &[u64], block: BlockShape) -> Vec<Vec<usize>> {
    let mut blocks: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
    for position in 0..shape.iter().product::<u64>() {
        let mut index = coordinates(shape, position);
        match block {
            BlockShape::Run { length, axis } => {
                let rank = shape.len() as i32;
                let axis = if axis < 0 { axis + rank } else { axis };
                if rank > 0 {
                    index[axis as usize] /= u64::from(length);
                }
            }
            BlockShape::Tile { rows, columns } => {
                let width = shape.last().copied().unwrap_or(1);
                index = vec![position / width / u64::from(rows), position % width / u64::from(columns)];
            }
            BlockShape::Row => index = vec![position / shape.last().copied().unwrap_or(1)],
            BlockShape::Tensor => index = Vec::new(),
        }
        blocks.entry(index).or_default().push(position as usize);
    }
    let mut blocks: Vec<_> = blocks.into_values().collect();
    blocks.sort();
    blocks
}

fn naive(shape: &[u64], values: &[f64], plan: &BlockPlan) -> BlockStats {
    let tensor = tensor_scale(plan, &source_stats(values));
    let mut stats = BlockStats::default();
    let mut worst = Vec::new();
    for positions in blocks(shape, plan.spec.shape) {
        let exact: Vec<f64> = positions.iter().map(|&position| values[position]).collect();
        let single: Vec<f32> = exact.iter().map(|&x| x as f32).collect();
        let (scale, elements) = cast_block(plan, tensor, &single);
        let mut errors = amp_inspect::stats::ErrorSums::default();
        for (&x, single) in exact.iter().zip(&elements) {
            // The cast is that of the f32; the class and the error are those of the exact value.
            let element = scale.element(plan, x, x as f32 * plan.scale);
            assert_eq!(element.code, single.code);
            stats.format.classes.add(element.class, 1);
            if x.is_finite() {
                stats.format.exceeds_max += u64::from(element.clipped);
                errors.observe(x, element.dequantised, 1);
            }
        }
        let products: Vec<f32> = single.iter().map(|x| x * plan.scale).collect();
        let amax = largest(&plan.spec, &products);
        let counts = &mut stats.scales;
        match scale.class {
            ScaleClass::AllZero => counts.all_zero += 1,
            ScaleClass::Zero => counts.zero += 1,
            ScaleClass::Subnormal => counts.subnormal += 1,
            ScaleClass::Raised => counts.raised += 1,
            ScaleClass::Normal => counts.normal += 1,
            ScaleClass::Saturated => counts.saturated += 1,
            ScaleClass::Nan => counts.nan += 1,
        }
        if amax != 0.0 && scale.value.is_finite() {
            stats.scale_min = stats.scale_min.min(scale.value);
            stats.scale_max = stats.scale_max.max(scale.value);
        }
        let magnitudes = exact.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x > 0.0);
        let (low, high) = magnitudes.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), x| (a.min(x), b.max(x)));
        if high > 0.0 {
            stats.ranged += 1;
            stats.range_max = stats.range_max.max((high / low).log2());
            stats.range_sum += (high / low).log2();
        }
        if let Some(rel_l2) = errors.rel_l2().filter(|&error| error > 0.0) {
            worst.push(WorstBlock { first: positions[0] as u64, rel_l2 });
        }
        stats.format.errors.merge(&errors);
    }
    worst.sort_by(|a, b| b.rel_l2.total_cmp(&a.rel_l2));
    // A whole tensor is no place in it.
    worst.truncate(if plan.spec.shape == BlockShape::Tensor { 0 } else { WORST });
    stats.worst = worst;
    stats
}

#[track_caller]
fn same(what: &str, a: &BlockStats, b: &BlockStats) {
    let close = |figure: &str, a: f64, b: f64| {
        assert!(a == b || (a - b).abs() <= 1e-9 * b.abs(), "{figure} of {what}: {a:e} is not {b:e}");
    };
    assert_eq!(a.format.classes, b.format.classes, "classes of {what}");
    assert_eq!(a.format.exceeds_max, b.format.exceeds_max, "clipped of {what}");
    assert_eq!(a.scales, b.scales, "scales of {what}");
    assert_eq!((a.scale_min, a.scale_max), (b.scale_min, b.scale_max), "scale range of {what}");
    assert_eq!(a.ranged, b.ranged, "{what}");
    close("range_max", a.range_max, b.range_max);
    close("range_sum", a.range_sum, b.range_sum);
    let (x, y) = (&a.format.errors, &b.format.errors);
    assert_eq!((x.elements, x.nonzero, x.left_out), (y.elements, y.nonzero, y.left_out), "{what}");
    assert_eq!((x.max_abs, x.max_rel), (y.max_abs, y.max_rel), "{what}");
    close("signal", x.signal, y.signal);
    close("noise", x.noise, y.noise);
    close("relative", x.relative, y.relative);
    assert_eq!(a.worst.len(), b.worst.len(), "{what}");
    for (x, y) in a.worst.iter().zip(&b.worst) {
        close("worst", x.rel_l2, y.rel_l2);
    }
}

const FORMATS: &[&str] = &[
    "mxfp8",
    "mxfp8_e5m2:rceil",
    "mxfp6:even:block=16",
    "mxfp6_e2m3:ceil:axis=0",
    "mxfp4:axis=0:block=5",
    "mxfp4:rceil:axis=1",
    "mxint8:block=7",
    "mxint8:axis=-2:even",
    "nvfp4",
    "nvfp4:te:axis=0",
    "nvfp4:torchao",
    "nvfp4:single:block=9",
    "e4m3fn:1x128",
    "e4m3fn:128x128",
    "e5m2:3x7:pow2",
    "e4m3fnuz:1x16",
    "e2m1fn:128x1",
    "e4m0fn:2x2",
    "e4m3fn:row:torchao",
    "e2m3fn:row:pow2",
    "e5m2:tensor",
    "e4m3fn:tensor:torchao-pow2",
    "e4m3fn:1x128:deepgemm",
    "e5m2:3x40:deepgemm-ue8m0",
];

/// The casts whose blocks lie along an axis that tensors of this shape have. Scalars have one axis.
fn plans(shape: &[u64], scale: f32) -> Vec<BlockPlan> {
    let rank = shape.len().max(1) as i32;
    let fits = |plan: &BlockPlan| match plan.spec.shape {
        BlockShape::Run { axis, .. } => (-rank..rank).contains(&axis),
        BlockShape::Tile { .. } | BlockShape::Row | BlockShape::Tensor => true,
    };
    FORMATS.iter().map(|name| BlockPlan { spec: find_block(name).unwrap(), scale }).filter(fits).collect()
}

const SHAPES: &[&[u64]] =
    &[&[7, 33], &[1, 5], &[130, 257], &[], &[0, 3], &[3, 4, 50], &[1000], &[5, 3, 2, 3], &[5, 256], &[9, 48]];

/// Values on limits and ties, of widely different size from place to place, with zeros in between.
pub(super) fn values(random: &mut Random, count: usize, kind: usize) -> Vec<f32> {
    const FEW: [f32; 16] =
        [0.25, 0.5, 0.75, 1.0, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0, 7.0, 7.75, 30.0, 448.0, 464.0, 496.0];
    let one = |index: usize| {
        let sign = if random.bits() & 1 == 1 { -1.0 } else { 1.0 };
        let pick = random.bits();
        let few = FEW[(pick % 16) as usize];
        let near = f32::from_bits(few.to_bits().wrapping_add_signed((pick >> 8) as i32 % 3 - 1));
        match kind {
            // Gradients: mostly small, some zero.
            0 if pick.is_multiple_of(9) => 0.0,
            0 => random.number(-30..=-4) as f32,
            // On the limits and next to them, times a power of two a few places share.
            1 => sign * near * pow2(((index / 11 * 7) % 60) as i32 - 30) as f32,
            // All over the range of f32, and zeros in runs.
            2 if (index / 40).is_multiple_of(3) => sign * 0.0,
            2 => f32::from_bits((pick >> 20) as u32 & 0x7f7f_ffff | (pick as u32 & 1 << 31)),
            // A NaN or an Inf here and there.
            _ if pick.is_multiple_of(97) => [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][index % 3],
            _ => sign * near * 0.37,
        }
    };
    (0..count).map(one).collect()
}

#[test]
fn every_shape_and_axis_is_cut_and_cast_as_the_definition_says() {
    let mut random = Random(5);
    for (shape, kind) in SHAPES.iter().flat_map(|shape| (0..4).map(move |kind| (*shape, kind))) {
        let singles = values(&mut random, shape.iter().product::<u64>() as usize, kind);
        let values: Vec<f64> = singles.iter().map(|&x| x.into()).collect();
        let bytes = singles.iter().flat_map(|x| x.to_le_bytes()).collect();
        let memory = memory(shape, Dtype::Float(row("float32")), bytes);
        let scales = if values.len() > 5000 { &[1.0][..] } else { &[1.0, 1024.0, 0.3] };
        for &scale in scales {
            let plans = plans(shape, scale);
            let found = found(&memory, &values, &plans, 2);
            for (plan, stats) in plans.iter().zip(&found) {
                let what = format!("{} of {shape:?}, values {kind}, scale {scale}", plan.spec.name);
                same(&what, stats, &naive(shape, &values, plan));
                assert_eq!(stats.format.classes.total(), values.len() as u64, "{what}");
                assert_eq!(stats.scales.total(), blocks(shape, plan.spec.shape).len() as u64, "{what}");
            }
        }
    }
}

#[test]
fn narrow_and_wide_sources() {
    let mut random = Random(6);
    for shape in [&[7_u64, 33][..], &[3, 5, 5], &[130, 17]] {
        let count = shape.iter().product::<u64>() as usize;
        let doubles: Vec<f64> = (0..count).map(|_| random.number(-160..=20)).collect();
        let bytes = doubles.iter().flat_map(|x| x.to_le_bytes()).collect();
        check(shape, Dtype::Float64, bytes, &doubles);
        // Rows of an odd number of half bytes begin within a byte.
        let codes: Vec<u8> = (0..count).map(|_| (random.bits() & 15) as u8).collect();
        let e2m1 = row("e2m1fn");
        let packed = codes.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4).collect();
        let meant: Vec<f64> =
            codes.iter().map(|&code| amp_inspect::format::decode::decode(&e2m1, code.into())).collect();
        check(shape, Dtype::Float(e2m1), packed, &meant);
        let halves: Vec<u16> = (0..count).map(|_| random.bits() as u16 & 0xbfff).collect();
        let bytes = halves.iter().flat_map(|code| code.to_le_bytes()).collect();
        let bf16 = row("bfloat16");
        let meant: Vec<f64> =
            halves.iter().map(|&code| amp_inspect::format::decode::decode(&bf16, code.into())).collect();
        check(shape, Dtype::Float(bf16), bytes, &meant);
    }
}

fn check(shape: &[u64], dtype: Dtype, bytes: Vec<u8>, values: &[f64]) {
    let memory = memory(shape, dtype.clone(), bytes);
    let plans = plans(shape, 1.0);
    for (plan, stats) in plans.iter().zip(&found(&memory, values, &plans, 1)) {
        let what = format!("{} of {shape:?} {}", plan.spec.name, dtype.name());
        same(&what, stats, &naive(shape, values, plan));
    }
}

#[test]
fn large_tensors_give_the_same_for_any_number_of_threads() {
    // Wider than a rectangle, so that rows are cut; the second is one long row.
    let mut random = Random(7);
    for shape in [&[2_u64, 70_001][..], &[200_001], &[537, 303]] {
        let singles = values(&mut random, shape.iter().product::<u64>() as usize, 0);
        let values: Vec<f64> = singles.iter().map(|&x| x.into()).collect();
        let bytes = singles.iter().flat_map(|x| x.to_le_bytes()).collect();
        let memory = memory(shape, Dtype::Float(row("float32")), bytes);
        let plans = plans(shape, 1.0);
        let one = found(&memory, &values, &plans, 1);
        assert_eq!(one, found(&memory, &values, &plans, 3));
        for (plan, stats) in plans.iter().zip(&one).step_by(3) {
            same(plan.spec.name, stats, &naive(shape, &values, plan));
        }
    }
}

#[test]
fn fortran_order_gives_the_same_blocks() {
    let mut random = Random(8);
    for (shape, kind) in SHAPES.iter().flat_map(|shape| (0..4).map(move |kind| (*shape, kind))) {
        let singles = values(&mut random, shape.iter().product::<u64>() as usize, kind);
        let values: Vec<f64> = singles.iter().map(|&x| x.into()).collect();
        let mut stored = vec![0.0; singles.len()];
        for (position, &x) in singles.iter().enumerate() {
            let index = coordinates(shape, position as u64);
            let place =
                index.iter().zip(shape).rev().fold(0, |place, (index, extent)| place * extent + index);
            assert_eq!(row_major(shape, place), position as u64);
            stored[place as usize] = x;
        }
        let bytes = stored.iter().flat_map(|x: &f32| x.to_le_bytes()).collect();
        let stored = Memory { column_major: true, ..memory(shape, Dtype::Float(row("float32")), bytes) };
        for plan in plans(shape, 1.0) {
            let tiles = matches!(plan.spec.shape, BlockShape::Tile { rows, .. } if rows > 1);
            if tiles && shape.len() > 2 {
                let task = Task {
                    source: &stored,
                    index: 0,
                    info: stored.tensors[0].clone(),
                    path: Path::new("memory"),
                };
                let source = source_stats(&values);
                let (_, failures) =
                    run_blocks(&[(&task, &source)], &[plan], NonZero::<usize>::MIN, |_| {}).remove(0);
                let wanted = "tiles of an array of more than two dimensions cannot be read in Fortran order";
                assert_eq!(failures[0].what(), wanted);
                continue;
            }
            let stats = found(&stored, &values, &[plan], 2).remove(0);
            let naive = naive(shape, &values, &plan);
            same(&format!("{} of {shape:?} in Fortran order", plan.spec.name), &stats, &naive);
            if let (Some(a), Some(b)) = (stats.worst.first(), naive.worst.first())
                && naive.worst.get(1).is_none_or(|next| next.rel_l2 < 0.999 * b.rel_l2)
            {
                assert_eq!(a.first, b.first, "{} of {shape:?}", plan.spec.name);
            }
        }
    }
}

#[test]
fn axes_that_a_tensor_lacks_are_refused() {
    for (shape, axis, sentence) in [
        (&[3_u64, 4][..], "5", "has 2 dimensions, so its blocks cannot lie along axis 5"),
        (&[3, 4], "-3", "has 2 dimensions, so its blocks cannot lie along axis -3"),
        (&[12], "1", "has 1 dimension, so its blocks cannot lie along axis 1"),
        (&[], "-2", "has 0 dimensions, so its blocks cannot lie along axis -2"),
    ] {
        let count = shape.iter().product::<u64>() as usize;
        let memory = memory(shape, Dtype::Float(row("float32")), vec![0; 4 * count]);
        let source = source_stats(&vec![0.0; count]);
        let spec = find_block(&format!("mxfp8:axis={axis}")).unwrap();
        for column_major in [false, true] {
            let memory =
                Memory { column_major, tensors: memory.tensors.clone(), bytes: memory.bytes.clone() };
            let task = Task {
                source: &memory,
                index: 0,
                info: memory.tensors[0].clone(),
                path: Path::new("memory"),
            };
            let plans = [BlockPlan { spec, scale: 1.0 }];
            let (_, failures) =
                run_blocks(&[(&task, &source)], &plans, NonZero::<usize>::MIN, |_| {}).remove(0);
            assert_eq!(failures[0].to_string(), format!("memory: tensor 't': {sentence}"));
        }
    }
}

#[test]
fn the_worst_blocks_are_named() {
    // Three blocks of four: one exact, one whose small values are lost, one whose largest is clipped.
    let singles = [1.0_f32, 2.0, 4.0, 0.5, 448.0, 0.001, 0.002, 0.0005, 480.0, 1.0, 1.0, 1.0];
    let values: Vec<f64> = singles.iter().map(|&x| x.into()).collect();
    let bytes: Vec<u8> = singles.iter().flat_map(|x| x.to_le_bytes()).collect();
    let memory = memory(&[3, 4], Dtype::Float(row("float32")), bytes);
    let plan = BlockPlan { spec: find_block("mxfp8:block=4").unwrap(), scale: 1.0 };
    let stats = found(&memory, &values, &[plan], 1).remove(0);
    assert_eq!(stats.worst.iter().map(|block| block.first).collect::<Vec<_>>(), [8, 4]);
    assert_eq!(coordinates(&[3, 4], 8), [2, 0]);
    assert_eq!(stats.scales, ScaleCounts { normal: 3, ..ScaleCounts::default() });
    assert_eq!((stats.scale_min, stats.scale_max), (pow2(-6), 1.0));
    assert_eq!(stats.format.exceeds_max, 1);
    assert_eq!(stats.range_max(), Some((448.0_f64 / f64::from(0.0005_f32)).log2()));
}
