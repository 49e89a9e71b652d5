//! float32 to MXFP8 in buffers: 32 values share a scale, a power of two in one byte (OCP MX 1.0).
//!
//! A lane of a warp has four values at a time, so that eight lanes have a block: they pass the largest magnitude
//! around, each makes the same scale of it, and one of them stores that. Magnitudes and scales are bits here, and
//! what an element is multiplied by is a power of two; one instruction rounds, that of the elements.

use std::fmt::Write as _;

use super::Conversion;
use super::bulk::pack;
use super::ptx::{self, BLOCK, IN_FLIGHT, VECTOR};
use super::table::{Target, Version};
use crate::cast::Place;
use crate::cast::block::{BlockPlan, TensorScale, cast_block};
use crate::error::{Error, Result};
use crate::format::block::{PowerRule, Recipe};
use crate::format::{BlockSpec, find_block};

/// Values that share a scale.
pub const SHARED: usize = 32;
/// Values in which [`hostile`] has all that it has.
pub const HOSTILE: usize = 1 << 17;

/// A kernel and the block format that it casts to.
#[derive(Clone, Copy, Debug)]
pub struct Mx {
    /// The format: MXFP8 with e4m3 elements.
    pub spec: BlockSpec,
    /// The name of the kernel.
    pub kernel: &'static str,
    encode: &'static Conversion,
    /// Added to the bits of a largest magnitude so that it carries into the exponent where the rule rounds up.
    carry: u32,
}

/// Names of the formats and of their kernels.
const KERNELS: [(&str, &str); 2] = [("mxfp8", "mxfp8_floor"), ("mxfp8:rceil", "mxfp8_rceil")];

/// The only magnitude above 448 · 2^-127 whose quotient by 448 is rounded to 2^-127, a subnormal number.
const ROUNDED_DOWN: u32 = 0x0460_0001;

impl Mx {
    /// The formats that a target casts to.
    pub fn on(target: &Target) -> Vec<Self> {
        KERNELS.iter().filter_map(|(name, kernel)| Self::new(name, kernel, target)).collect()
    }

    fn new(name: &str, kernel: &'static str, target: &Target) -> Option<Self> {
        let spec = find_block(name).ok()?;
        let encode = super::encoder(spec.element.name, |row| row.is_on(target))?;
        let carry = match spec.recipe {
            Recipe::Power(PowerRule::Floor) => 0,
            // Above 1.75 · 2^e, as 448 is 1.75 · 2^8.
            Recipe::Power(PowerRule::Rceil) => 0x001f_ffff,
            _ => return None,
        };
        Some(Self { spec, kernel, encode, carry })
    }

    /// The PTX version of the module.
    pub fn version(&self, target: &Target) -> Version {
        ptx::version(target, &[self.encode])
    }

    /// Bytes that so many values are read from, and their scales and codes written to.
    pub fn bytes(values: u64) -> u64 {
        5 * values + values / SHARED as u64
    }

    /// The module: a kernel from `source` to the codes in `result`, and behind the codes of all `values` the
    /// scales. As many blocks of threads move them as in [`bulk`](super::bulk).
    pub fn ptx(&self, target: &Target, values: u64) -> String {
        let mut text = ptx::head(target, self.version(target));
        let _ = write!(
            text,
            "\
.visible .entry {name}(
	.param .u64 source,
	.param .u64 result)
{{
	.reg .pred %stores, %special, %down;
	.reg .b32 %loaded<16>, %in<4>, %out<4>, %part<4>, %largest, %other, %scale, %factor, %first, %thread;
	.reg .b64 %source, %result, %scales, %offset;
	ld.param.u64 %source, [source];
	cvta.to.global.u64 %source, %source;
	ld.param.u64 %result, [result];
	cvta.to.global.u64 %result, %result;
	mov.u32 %first, %ctaid.x;
	mov.u32 %thread, %tid.x;
	mad.lo.u32 %first, %first, {vectors}, %thread;
	add.u64 %scales, %result, {values};
	shr.u32 %thread, %first, {lanes_log2};
	cvt.u64.u32 %offset, %thread;
	add.u64 %scales, %scales, %offset;
	and.b32 %thread, %first, {last_lane};
	setp.eq.u32 %stores, %thread, 0;
	mul.wide.u32 %offset, %first, {from};
	add.u64 %source, %source, %offset;
	mul.wide.u32 %offset, %first, {VECTOR};
	add.u64 %result, %result, %offset;
",
            name = self.kernel,
            vectors = BLOCK * IN_FLIGHT,
            from = VECTOR * 4,
            lanes_log2 = LANES.ilog2(),
            last_lane = LANES - 1,
        );
        for vector in 0..IN_FLIGHT {
            let registers: Vec<String> =
                (0..VECTOR).map(|value| format!("%loaded{}", vector * VECTOR + value)).collect();
            let at = vector * BLOCK * VECTOR * 4;
            let _ = writeln!(text, "\tld.global.nc.v4.u32 {{{}}}, [%source+{at}];", registers.join(", "));
        }
        for vector in 0..IN_FLIGHT {
            self.largest(vector, &mut text);
            self.scale(&mut text);
            let _ = writeln!(text, "\t@%stores st.global.u8 [%scales+{}], %scale;", vector * BLOCK / LANES);
            for value in 0..VECTOR {
                let loaded = vector * VECTOR + value;
                let _ = writeln!(text, "\tmul.rn.f32 %in{value}, %loaded{loaded}, %factor;");
            }
            for pair in 0..VECTOR / 2 {
                let (upper, lower) = (format!("%in{}", 2 * pair + 1), format!("%in{}", 2 * pair));
                text += &ptx::convert(self.encode, &format!("%part{pair}"), &[&upper, &lower]);
            }
            pack(&mut text, 16, VECTOR / 2);
            let _ = writeln!(text, "\tst.global.u32 [%result+{}], %out0;", vector * BLOCK * VECTOR);
        }
        text + "\tret;\n}\n"
    }

    /// Bits of the block's largest magnitude in `%largest`; NaN is above Inf, and so stays.
    fn largest(&self, vector: u32, text: &mut String) {
        *text += "\tmov.u32 %largest, 0;\n";
        for value in 0..VECTOR {
            let _ = writeln!(text, "\tand.b32 %other, %loaded{}, 2147483647;", vector * VECTOR + value);
            *text += "\tmax.u32 %largest, %largest, %other;\n";
        }
        for lanes in [1, 2, 4] {
            let _ = writeln!(text, "\tshfl.sync.bfly.b32 %other, %largest, {lanes}, 31, 4294967295;");
            *text += "\tmax.u32 %largest, %largest, %other;\n";
        }
    }

    /// The scale's code in `%scale`, and in `%factor` the float32 that is its reciprocal. The exponent of 448 is 8;
    /// scales below 2^-127 are raised to that. An Inf or a NaN in the block makes both NaN.
    fn scale(&self, text: &mut String) {
        let Self { carry, .. } = self;
        let _ = writeln!(text, "\tadd.u32 %scale, %largest, {carry};\n\tshr.u32 %scale, %scale, 23;");
        *text += "\tmax.u32 %scale, %scale, 8;\n\tsub.u32 %scale, %scale, 8;\n";
        if *carry > 0 {
            let _ = writeln!(text, "\tsetp.eq.u32 %down, %largest, {ROUNDED_DOWN};");
            *text += "\tselp.b32 %scale, 0, %scale, %down;\n";
        }
        *text += "\tsub.u32 %factor, 254, %scale;\n\tshl.b32 %factor, %factor, 23;\n";
        let infinity = f32::INFINITY.to_bits();
        let _ = writeln!(text, "\tsetp.ge.u32 %special, %largest, {infinity};");
        *text +=
            "\tselp.b32 %scale, 255, %scale, %special;\n\tselp.b32 %factor, 2147483647, %factor, %special;\n";
    }

    /// The codes and the scales that the values must have, by the definition of a block cast; what is NaN has the
    /// code that NVIDIA's conversion gives it.
    ///
    /// # Errors
    /// The table of conversions names a format that there is none of.
    pub fn expected(&self, values: &[f32]) -> Result<(Vec<u8>, Vec<u8>)> {
        let plan = BlockPlan { spec: self.spec, scale: 1.0 };
        let element = self.encode.plan()?;
        let nan = u8::try_from(element.cast_f32(f32::NAN, Place::default()).code)
            .map_err(|_| Error::new("codes of MXFP8 have 8 bits"))?;
        let (mut codes, mut scales) = (Vec::with_capacity(values.len()), Vec::new());
        for block in values.chunks(SHARED) {
            let (scale, elements) = cast_block(&plan, TensorScale::ONE, block);
            scales.push(scale.code as u8);
            codes.extend(elements.iter().map(|element| match element.dequantised.is_nan() {
                true => nan,
                false => element.code as u8,
            }));
        }
        Ok((codes, scales))
    }
}

/// Lanes that have a block.
const LANES: u32 = SHARED as u32 / VECTOR;

/// Blocks that a kernel could get wrong: zeros, subnormal numbers, Inf and NaN in any place, magnitudes spread over
/// all of float32, and largest ones on each side of where a rule changes its exponent, of every exponent.
pub fn hostile(count: usize) -> Vec<f32> {
    const EDGES: [u32; 8] = [0, 1, 0x5f_ffff, 0x60_0000, 0x60_0001, 0x60_0002, 0x7f_fffe, 0x7f_ffff];
    let noise = super::cpu::numbers(count);
    let mut values: Vec<u32> = noise.iter().map(|x| x.to_bits().rotate_left(7)).collect();
    for (number, block) in values.chunks_mut(SHARED).enumerate() {
        let (turn, place) = (number / 2, number * 7 % block.len());
        // All of them in HOSTILE values, and far apart in fewer.
        let exponent = (turn / 8 * 37 % 256) as u32;
        let sign = (number as u32 & 4) << 29;
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
