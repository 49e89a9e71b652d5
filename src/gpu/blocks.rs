//! float32 to blocks in buffers, and back: values that share a scale (OCP MX 1.0; NVFP4 and FP8 1x128 as
//! Transformer Engine forms them).
//!
//! A lane of a warp has four values at a time, so that a block of 16, 32 or 128 is on 4, 8 or 32 lanes: they pass
//! the largest magnitude around, each makes the same scale of it, and one of them stores that. Magnitudes and powers
//! of two are bits here; quotients and products are rounded to nearest by the chip's float32 arithmetic, in the
//! order of [`cast::block`](crate::cast::block); elements and e4m3 scales by the conversions of the table.

use std::fmt::Write as _;

use super::bulk::{Bulk, pack};
use super::ptx::{self, BLOCK, IN_FLIGHT, VECTOR};
use super::target::{Target, Version};
use super::{Conversion, decoder, encoder};
use crate::cast::block::TensorScale;
use crate::format::block::{BlockShape, PowerRule, Quotient, Recipe};
use crate::format::{BlockSpec, exponent_of, find_block};

/// A block format that a target casts to.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// The format.
    pub spec: BlockSpec,
    /// Values that share a scale.
    pub shared: u32,
    /// How elements are converted.
    pub encode: &'static Conversion,
    way_back: (Option<&'static Conversion>, &'static Conversion),
    /// How a scale of e4m3 is converted, there and back.
    scale: Option<(&'static Conversion, &'static Conversion)>,
}

/// Names of the formats that there are kernels for.
const FORMATS: [&str; 7] = [
    "mxfp8_e4m3",
    "mxfp8_e4m3:rceil",
    "mxfp8_e5m2",
    "mxfp8_e5m2:rceil",
    "nvfp4:te",
    "e4m3fn:1x128",
    "e4m3fn:1x128:pow2",
];

/// The largest significand of e4m3 and of e5m2 is 1.75: what is above carries into the exponent.
const CARRY: u32 = 0x001f_ffff;

const REGISTERS: &str = "\
	.reg .pred %stores, %special;
	.reg .b32 %loaded<16>, %in<4>, %out<4>, %part<4>, %upper, %lower, %largest, %other, %scale, %factor;
	.reg .b32 %most, %one, %zero, %first, %thread;
	.reg .b64 %source, %result, %scales, %offset;
	ld.param.u64 %source, [source];
	cvta.to.global.u64 %source, %source;
	ld.param.u64 %result, [result];
	cvta.to.global.u64 %result, %result;
	mov.u32 %first, %ctaid.x;
	mov.u32 %thread, %tid.x;
";

impl Blocks {
    /// The formats that a target casts to.
    pub fn on(target: &Target) -> Vec<Self> {
        FORMATS.iter().filter_map(|name| Self::new(name, target)).collect()
    }

    fn new(name: &str, target: &Target) -> Option<Self> {
        let spec = find_block(name).ok()?;
        let is_on = |row: &Conversion| row.is_on(target);
        let encode = encoder(spec.element.name, is_on)?;
        let (decode, widen) = decoder(spec.element.name)?;
        let shared = match spec.shape {
            BlockShape::Run { length, axis: -1 } => length,
            BlockShape::Tile { rows: 1, columns } => columns,
            _ => return None,
        };
        let scale = match spec.recipe {
            Recipe::Nvfp4(_) => Some((encoder(spec.scale.name, is_on)?, decoder(spec.scale.name)?.0?)),
            _ => None,
        };
        let blocks = Self { spec, shared, encode, way_back: (decode, widen), scale };
        blocks.rows().iter().all(|row| row.is_on(target)).then_some(blocks)
    }

    fn rows(&self) -> Vec<&'static Conversion> {
        let (decode, widen) = self.way_back;
        let scale = self.scale.iter().flat_map(|(there, back)| [*there, *back]);
        [self.encode, widen].into_iter().chain(decode).chain(scale).collect()
    }

    /// The PTX version of the module.
    pub fn version(&self, target: &Target) -> Version {
        ptx::version(target, &self.rows())
    }

    /// Bits that a code takes in memory.
    pub fn code_bits(&self) -> u32 {
        ptx::container(self.spec.element.name)
    }

    /// Bytes that a scale takes.
    pub fn scale_bytes(&self) -> u32 {
        self.spec.scale.bits.div_ceil(8)
    }

    /// Bytes of the codes of so many values, behind which their scales are.
    pub fn bytes_of_codes(&self, values: u64) -> u64 {
        values * u64::from(self.code_bits()) / 8
    }

    /// Bytes that so many values are, with their scales and codes.
    pub fn bytes(&self, values: u64) -> u64 {
        4 * values
            + self.bytes_of_codes(values)
            + values / u64::from(self.shared) * u64::from(self.scale_bytes())
    }

    /// Whether there is a kernel `decode`.
    pub fn comes_back(&self) -> bool {
        matches!(self.spec.recipe, Recipe::Power(_))
    }

    /// The module: a kernel `encode` from `source` to the codes in `result`, and behind the codes of all `values` the
    /// scales, with a given scale of the tensor; of MX also `decode`, from there to float32. As many blocks of threads
    /// move them as in [`bulk`](super::bulk).
    pub fn ptx(&self, target: &Target, values: u64, tensor: TensorScale) -> String {
        let mut text = ptx::head(target, self.version(target));
        self.encoding(values, tensor, &mut text);
        if self.comes_back() {
            self.decoding(values, &mut text);
        }
        text
    }

    /// Parameters, registers and addresses: of values four bytes each, of codes, and of the scales behind the codes in
    /// the buffer of this name.
    fn entry(&self, text: &mut String, name: &str, coded: &str, values: u64) {
        let lanes = self.shared / VECTOR;
        let (from, to) = match coded {
            "source" => (VECTOR * self.code_bits() / 8, 4 * VECTOR),
            _ => (4 * VECTOR, VECTOR * self.code_bits() / 8),
        };
        let _ = write!(
            text,
            "\
.visible .entry {name}(
	.param .u64 source,
	.param .u64 result)
{{
{REGISTERS}\
	mad.lo.u32 %first, %first, {vectors}, %thread;
	add.u64 %scales, %{coded}, {codes};
	shr.u32 %thread, %first, {lanes_log2};
	mul.wide.u32 %offset, %thread, {scale};
	add.u64 %scales, %scales, %offset;
	and.b32 %thread, %first, {last_lane};
	setp.eq.u32 %stores, %thread, 0;
	mul.wide.u32 %offset, %first, {from};
	add.u64 %source, %source, %offset;
	mul.wide.u32 %offset, %first, {to};
	add.u64 %result, %result, %offset;
",
            vectors = BLOCK * IN_FLIGHT,
            codes = self.bytes_of_codes(values),
            lanes_log2 = lanes.ilog2(),
            scale = self.scale_bytes(),
            last_lane = lanes - 1,
        );
    }

    fn encoding(&self, values: u64, tensor: TensorScale, text: &mut String) {
        self.entry(text, "encode", "result", values);
        let _ = writeln!(text, "\tmov.b32 %one, {};\n\tmov.b32 %zero, 0;", 1_f32.to_bits());
        let _ = writeln!(text, "\tmov.b32 %most, {};", f32::MAX.to_bits());
        for vector in 0..IN_FLIGHT {
            let registers: Vec<String> =
                (0..VECTOR).map(|value| format!("%loaded{}", vector * VECTOR + value)).collect();
            let at = vector * BLOCK * VECTOR * 4;
            let _ = writeln!(text, "\tld.global.nc.v4.u32 {{{}}}, [%source+{at}];", registers.join(", "));
        }
        let (bits, scale_bytes) = (self.code_bits(), self.scale_bytes());
        for vector in 0..IN_FLIGHT {
            self.largest(vector, text);
            match self.spec.recipe {
                Recipe::Power(rule) => self.power(rule, text),
                Recipe::Nvfp4(_) => self.e4m3(tensor, text),
                Recipe::Quotient(rule) => self.quotient(rule, text),
            }
            let at = vector * BLOCK * VECTOR / self.shared * scale_bytes;
            let _ = writeln!(text, "\t@%stores st.global.u{} [%scales+{at}], %scale;", 8 * scale_bytes);
            for value in 0..VECTOR {
                let loaded = vector * VECTOR + value;
                let _ = writeln!(text, "\tmul.rn.f32 %in{value}, %loaded{loaded}, %factor;");
            }
            for pair in 0..VECTOR / 2 {
                let (upper, lower) = (format!("%in{}", 2 * pair + 1), format!("%in{}", 2 * pair));
                *text += &ptx::convert(self.encode, &format!("%part{pair}"), &[&upper, &lower]);
            }
            pack(text, 2 * bits, VECTOR / 2);
            let at = vector * BLOCK * VECTOR * bits / 8;
            let _ = writeln!(text, "\tst.global.u{} [%result+{at}], %out0;", VECTOR * bits);
        }
        *text += "\tret;\n}\n\n";
    }

    /// Bits of the block's largest magnitude in `%largest`. Of MX NaN is above Inf, and so stays; the others' maximum
    /// passes over NaN, as the chip's does.
    fn largest(&self, vector: u32, text: &mut String) {
        let kind = if matches!(self.spec.recipe, Recipe::Power(_)) { "u32" } else { "f32" };
        *text += "\tmov.b32 %largest, 0;\n";
        for value in 0..VECTOR {
            let _ = writeln!(text, "\tand.b32 %other, %loaded{}, 2147483647;", vector * VECTOR + value);
            let _ = writeln!(text, "\tmax.{kind} %largest, %largest, %other;");
        }
        for lanes in (0..(self.shared / VECTOR).ilog2()).map(|log2| 1 << log2) {
            let _ = writeln!(text, "\tshfl.sync.bfly.b32 %other, %largest, {lanes}, 31, 4294967295;");
            let _ = writeln!(text, "\tmax.{kind} %largest, %largest, %other;");
        }
    }

    /// The scale's code in `%scale`, and in `%factor` the float32 that is its reciprocal. Scales below 2^-127 are
    /// raised to that. An Inf or a NaN in the block makes both NaN.
    fn power(&self, rule: PowerRule, text: &mut String) {
        let emax = exponent_of(self.spec.element.max_finite()) as u32;
        let carry = if rule == PowerRule::Rceil { CARRY } else { 0 };
        let _ = writeln!(text, "\tadd.u32 %scale, %largest, {carry};\n\tshr.u32 %scale, %scale, 23;");
        let _ = writeln!(text, "\tmax.u32 %scale, %scale, {emax};\n\tsub.u32 %scale, %scale, {emax};");
        if carry > 0 {
            // The only magnitude above 1.75 · 2^emax · 2^-127 whose quotient is rounded to 2^-127, which is subnormal.
            let rounded_down = (emax << 23 | 0x0060_0000) + 1;
            let _ = writeln!(text, "\tsetp.eq.u32 %special, %largest, {rounded_down};");
            *text += "\tselp.b32 %scale, 0, %scale, %special;\n";
        }
        *text += "\tsub.u32 %factor, 254, %scale;\n\tshl.b32 %factor, %factor, 23;\n";
        let infinity = f32::INFINITY.to_bits();
        let _ = writeln!(text, "\tsetp.ge.u32 %special, %largest, {infinity};");
        *text +=
            "\tselp.b32 %scale, 255, %scale, %special;\n\tselp.b32 %factor, 2147483647, %factor, %special;\n";
    }

    /// The e4m3 scale's code in `%scale`, and the factor of the elements in `%factor`.
    fn e4m3(&self, tensor: TensorScale, text: &mut String) {
        let Some((there, back)) = self.scale else { return };
        let six = self.spec.element.max_finite() as f32;
        let encode = (tensor.encode * (1.0 / six)).to_bits();
        let _ = writeln!(text, "\tmov.b32 %other, {encode};\n\tmul.rn.f32 %scale, %largest, %other;");
        *text += "\tmin.f32 %scale, %scale, %most;\n";
        *text += &ptx::convert(there, "%scale", &["%zero", "%scale"]);
        *text += &ptx::convert(back, "%factor", &["%scale"]);
        *text += &ptx::convert(self.way_back.1, "%factor", &["%factor"]);
        let _ = writeln!(text, "\tmov.b32 %other, {};", tensor.decode.to_bits());
        *text += "\tmul.rn.f32 %factor, %factor, %other;\n\tdiv.rn.f32 %factor, %one, %factor;\n";
        *text += "\tmin.f32 %factor, %factor, %most;\n";
    }

    /// The float32 that brings back in `%scale`, and the factor in `%factor`: 1 for blocks of zeros and with Inf.
    fn quotient(&self, rule: Quotient, text: &mut String) {
        let max = (self.spec.element.max_finite() as f32).to_bits();
        let _ = writeln!(text, "\tmov.b32 %other, {max};\n\tdiv.rn.f32 %factor, %other, %largest;");
        *text += "\tmin.f32 %factor, %factor, %most;\n";
        for (test, bits) in [("eq", 0), ("ge", f32::INFINITY.to_bits())] {
            let _ = writeln!(text, "\tsetp.{test}.u32 %special, %largest, {bits};");
            *text += "\tselp.b32 %factor, %one, %factor, %special;\n";
        }
        if rule == Quotient::Pow2 {
            let _ = writeln!(text, "\tand.b32 %factor, %factor, {};", 0xff80_0000_u32);
        }
        *text += "\tdiv.rn.f32 %scale, %one, %factor;\n";
    }

    /// Codes and scales to float32: a product with a power of two, which is exact.
    fn decoding(&self, values: u64, text: &mut String) {
        self.entry(text, "decode", "source", values);
        for vector in 0..IN_FLIGHT {
            let at = vector * BLOCK * VECTOR;
            let _ = writeln!(text, "\tld.global.nc.u32 %loaded{}, [%source+{at}];", 2 * vector);
            let at = at / self.shared;
            let _ = writeln!(text, "\tld.global.nc.u8 %loaded{}, [%scales+{at}];", 2 * vector + 1);
        }
        let bulk = Bulk { encode: self.encode, decode: Some(self.way_back) };
        for vector in 0..IN_FLIGHT {
            let _ = writeln!(text, "\tmov.b32 %in0, %loaded{};", 2 * vector);
            bulk.decode(self.way_back, text);
            let scale = format!("%loaded{}", 2 * vector + 1);
            let _ = writeln!(text, "\tshl.b32 %factor, {scale}, 23;");
            // 2^-127 is subnormal, and the last code is NaN.
            for (code, bits) in [(0, 0x0040_0000_u32), (255, 0x7fff_ffff)] {
                let _ = writeln!(text, "\tsetp.eq.u32 %special, {scale}, {code};");
                let _ = writeln!(text, "\tselp.b32 %factor, {bits}, %factor, %special;");
            }
            for value in 0..VECTOR {
                let _ = writeln!(text, "\tmul.rn.f32 %out{value}, %out{value}, %factor;");
            }
            let at = vector * BLOCK * VECTOR * 4;
            let _ = writeln!(text, "\tst.global.v4.u32 [%result+{at}], {{%out0, %out1, %out2, %out3}};");
        }
        *text += "\tret;\n}\n\n";
    }
}
