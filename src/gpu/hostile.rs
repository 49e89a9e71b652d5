//! Values that a cast to blocks could get wrong, and what it must make of them.

use super::blocks::Blocks;
use crate::cast::Place;
use crate::cast::block::{BlockPlan, TensorScale, cast_block};
use crate::error::{Error, Result};
use crate::format::block::{Nvfp4, Recipe};

/// Values in which [`values`] has all that it has.
pub const COUNT: usize = 1 << 17;

/// What a kernel must give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Codes, two of 4 bits in a byte, the first lower.
    pub codes: Vec<u8>,
    /// Scales, their lowest byte first.
    pub scales: Vec<u8>,
    /// The float32 that come back, as bits; all NaNs are one.
    pub back: Vec<u32>,
}

/// The tensor scales with which a format is tried: where it has them such as put the range of the block scales
/// elsewhere, as the values are spread over all of float32.
pub fn tensor_scales(blocks: &Blocks) -> Vec<TensorScale> {
    match blocks.spec.recipe {
        Recipe::Nvfp4(Nvfp4::Te | Nvfp4::Torchao) => {
            [f32::INFINITY, 1e-30, 1.3, 1e30].map(|amax| TensorScale::new(&blocks.spec, amax)).to_vec()
        }
        _ => vec![TensorScale::ONE],
    }
}

/// What must come of the values, by the definition of a block cast; what is NaN has the code that NVIDIA's
/// conversion gives it.
///
/// # Errors
/// The table of conversions names a format that there is none of.
pub fn expected(blocks: &Blocks, tensor: TensorScale, values: &[f32]) -> Result<Expected> {
    let plan = BlockPlan { spec: blocks.spec, scale: 1.0 };
    let nan = blocks.encode.plan()?.cast_f32(f32::NAN, Place::default()).code;
    let mut codes = Vec::with_capacity(values.len());
    let (mut scales, mut back) = (Vec::new(), Vec::with_capacity(values.len()));
    for block in values.chunks(blocks.shared as usize) {
        let (scale, elements) = cast_block(&plan, tensor, block);
        scales.extend_from_slice(&scale.code.to_le_bytes()[..blocks.scale_bytes() as usize]);
        for element in elements {
            codes.push(if element.dequantised.is_nan() { nan } else { element.code });
            back.push(bits(element.dequantised as f32));
        }
    }
    let byte = |code: u32| u8::try_from(code).map_err(|_| Error::new("codes of blocks have up to 8 bits"));
    let codes = match blocks.code_bits() {
        4 => {
            codes.chunks(2).map(|two| byte(two.iter().rev().fold(0, |both, code| both << 4 | code))).collect()
        }
        _ => codes.into_iter().map(byte).collect::<Result<_>>(),
    }?;
    Ok(Expected { codes, scales, back })
}

/// The bits of a float32, of all NaNs the same.
pub fn bits(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}

/// Blocks that a kernel could get wrong: zeros, subnormal numbers, Inf and NaN in any place, magnitudes spread over
/// all of float32, and largest ones on each side of where a rule changes its exponent, of every exponent.
pub fn values(count: usize, shared: usize) -> Vec<f32> {
    const EDGES: [u32; 8] = [0, 1, 0x5f_ffff, 0x60_0000, 0x60_0001, 0x60_0002, 0x7f_fffe, 0x7f_ffff];
    let noise = super::cpu::numbers(count);
    let mut values: Vec<u32> = noise.iter().map(|x| x.to_bits().rotate_left(7)).collect();
    for (number, block) in values.chunks_mut(shared).enumerate() {
        let (turn, place) = (number / 2, number * 7 % block.len());
        // All of them in COUNT values, and far apart in fewer.
        let exponent = (turn / 8 * 37 % 256) as u32;
        let sign = (number as u32 & 16) << 27;
        match turn % 8 {
            // The largest on an edge, the others at most as large and of any sign.
            edge if number % 2 == 0 => {
                let largest = (exponent << 23) | EDGES[edge];
                let at_most = |x: u32| (x & (1 << 31)) | ((x & 0x7fff_ffff) % (largest + 1));
                block.iter_mut().for_each(|x| *x = at_most(*x));
                block[place] = sign | largest;
            }
            0 => block.iter_mut().for_each(|x| *x &= 1 << 31),
            1 => block.iter_mut().for_each(|x| *x &= 0x807f_ffff),
            2 => block[place] = 0x7f80_0000 | sign,
            3 => block[place] = 0x7f80_0001 | sign,
            4 => block[place] = 0x7fff_ffff | sign,
            // One value that may not be zero.
            5 => {
                let kept = block[place];
                block.fill(sign);
                block[place] = kept;
            }
            // Within eight binades.
            _ => block.iter_mut().for_each(|x| *x = (*x & 0x83ff_ffff) | ((exponent << 22) & 0x7c00_0000)),
        }
    }
    values.into_iter().map(f32::from_bits).collect()
}
