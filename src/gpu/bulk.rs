//! Kernels over whole buffers, to be timed: float32 to codes, codes to float32, and there and back.
//!
//! A thread moves [`IN_FLIGHT`] vectors of [`VECTOR`] values, a warp's next to each other, and loads all of
//! them before it converts the first: that is what keeps the memory busy. Codes of six bits take a byte each.

use std::fmt::Write as _;

use super::ptx::{self, BLOCK, IN_FLIGHT, VECTOR};
use super::target::{Target, Version};
use super::{Conversion, decoder, encoder};

/// Values that a block moves; buffers must be a multiple of this long.
pub const VALUES_PER_BLOCK: u64 = (BLOCK * VECTOR * IN_FLIGHT) as u64;

/// The instructions that convert buffers of a format on a target.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// float32 to the format.
    pub encode: &'static Conversion,
    /// The format to 16 bits, if it is narrower, and to float32.
    pub decode: Option<(Option<&'static Conversion>, &'static Conversion)>,
}

impl Bulk {
    /// `None` if the target cannot convert to the format.
    pub fn new(format: &str, target: &Target) -> Option<Self> {
        let encode = encoder(format, |row| row.is_on(target))?;
        let decode = decoder(format)
            .filter(|(decode, widen)| decode.is_none_or(|row| row.is_on(target)) && widen.is_on(target));
        Some(Self { encode, decode })
    }

    /// Names of the formats that some instruction rounds float32 to.
    pub fn formats() -> Vec<&'static str> {
        let mut names: Vec<&str> = super::table::CONVERSIONS.iter().map(|row| row.to).collect();
        names.retain(|name| encoder(name, |_| true).is_some());
        let mut seen = Vec::new();
        names.retain(|name| {
            !seen.contains(name) && {
                seen.push(*name);
                true
            }
        });
        names
    }

    /// The PTX version of the module.
    pub fn version(&self, target: &Target) -> Version {
        let decode = self.decode.iter().flat_map(|(decode, widen)| decode.iter().chain([widen]));
        ptx::version(target, &decode.copied().chain([self.encode]).collect::<Vec<_>>())
    }

    /// Bits that a code takes in memory.
    pub fn code_bits(&self) -> u32 {
        ptx::container(self.encode.to)
    }

    /// The module: kernels `encode`, and where there is a way back `decode` and `roundtrip`.
    pub fn ptx(&self, target: &Target) -> String {
        let mut text = ptx::head(target, self.version(target));
        let (float, code) = (32, self.code_bits());
        kernel(&mut text, "encode", float, code, |text| self.encode(text));
        if let Some(way) = self.decode {
            kernel(&mut text, "decode", code, float, |text| self.decode(way, text));
            kernel(&mut text, "roundtrip", float, float, |text| {
                self.encode(text);
                let words = words(code);
                (0..words).for_each(|word| {
                    let _ = writeln!(text, "\tmov.b32 %in{word}, %out{word};");
                });
                self.decode(way, text);
            });
        }
        text
    }

    /// Four values in `%in` to packed codes in `%out`.
    fn encode(&self, text: &mut String) {
        let (row, bits) = (self.encode, self.code_bits());
        if bits == 32 {
            for value in 0..VECTOR {
                *text += &ptx::convert(row, &format!("%out{value}"), &[&format!("%in{value}")]);
                // Back to the upper bits of a float32.
                let _ = writeln!(text, "\tshl.b32 %out{value}, %out{value}, 13;");
            }
            return;
        }
        let per_result = row.lanes;
        for result in 0..VECTOR / per_result {
            let first = result * per_result;
            let y = format!("%part{result}");
            *text += &match per_result {
                2 => ptx::convert(row, &y, &[&format!("%in{}", first + 1), &format!("%in{first}")]),
                _ => ptx::convert(row, &y, &[&format!("%in{first}")]),
            };
        }
        pack(text, per_result * bits, VECTOR / per_result);
    }

    /// Packed codes in `%in` to four values in `%out`.
    pub(super) fn decode(&self, (decode, widen): (Option<&Conversion>, &Conversion), text: &mut String) {
        let bits = self.code_bits();
        let Some(decode) = decode else {
            for value in 0..VECTOR {
                let _ = writeln!(text, "\tshr.u32 %upper, %in{}, {};", value / 2, value % 2 * 16);
                *text += &ptx::convert(widen, &format!("%part{value}"), &["%upper"]);
            }
            return results(text);
        };
        for pair in 0..VECTOR / 2 {
            let _ = writeln!(text, "\tshr.u32 %upper, %in0, {};", pair * 2 * bits);
            if bits == 4 {
                let _ = writeln!(text, "\tand.b32 %upper, %upper, 255;");
            }
            *text += &ptx::convert(decode, "%lower", &["%upper"]);
            *text += &ptx::convert(widen, &format!("%part{}", 2 * pair), &["%lower"]);
            let _ = writeln!(text, "\tshr.u32 %lower, %lower, 16;");
            *text += &ptx::convert(widen, &format!("%part{}", 2 * pair + 1), &["%lower"]);
        }
        results(text);
    }
}

fn results(text: &mut String) {
    (0..VECTOR).for_each(|value| {
        let _ = writeln!(text, "\tmov.b32 %out{value}, %part{value};");
    });
}

/// Puts `count` parts of `bits` bits each into as few registers as hold them, the first lowest.
pub(super) fn pack(text: &mut String, bits: u32, count: u32) {
    let each = 32 / bits;
    for part in 0..count {
        let (word, place) = (part / each, part % each * bits);
        let _ = match place {
            0 => writeln!(text, "\tmov.b32 %out{word}, %part{part};"),
            _ => writeln!(
                text,
                "\tshl.b32 %part{part}, %part{part}, {place};\n\tor.b32 %out{word}, %out{word}, %part{part};"
            ),
        };
    }
}

/// 32-bit registers that a vector of such elements takes.
fn words(bits: u32) -> u32 {
    (VECTOR * bits).div_ceil(32)
}

/// How a vector is moved: the type of the access, and its registers.
fn access(bits: u32, registers: impl Fn(u32) -> String) -> (&'static str, String) {
    let all = |count: u32| format!("{{{}}}", (0..count).map(&registers).collect::<Vec<_>>().join(", "));
    match VECTOR * bits {
        16 => ("u16", registers(0)),
        32 => ("u32", registers(0)),
        64 => ("v2.u32", all(2)),
        _ => ("v4.u32", all(4)),
    }
}

/// A kernel from `source` to `result`, elements of so many bits each; `convert` makes the `%out` registers of
/// the `%in` registers.
fn kernel(text: &mut String, name: &str, source: u32, result: u32, convert: impl Fn(&mut String)) {
    let _ = write!(
        text,
        "\
.visible .entry {name}(
	.param .u64 source,
	.param .u64 result)
{{
	.reg .b32 %loaded<16>, %in<4>, %out<4>, %part<4>, %upper, %lower, %first, %thread;
	.reg .b64 %source, %result, %offset;
	ld.param.u64 %source, [source];
	cvta.to.global.u64 %source, %source;
	ld.param.u64 %result, [result];
	cvta.to.global.u64 %result, %result;
	mov.u32 %first, %ctaid.x;
	mov.u32 %thread, %tid.x;
	mad.lo.u32 %first, %first, {vectors}, %thread;
	mul.wide.u32 %offset, %first, {from};
	add.u64 %source, %source, %offset;
	mul.wide.u32 %offset, %first, {to};
	add.u64 %result, %result, %offset;
",
        vectors = BLOCK * IN_FLIGHT,
        from = VECTOR * source / 8,
        to = VECTOR * result / 8,
    );
    for vector in 0..IN_FLIGHT {
        let (kind, registers) = access(source, |word| format!("%loaded{}", vector * 4 + word));
        let at = vector * BLOCK * VECTOR * source / 8;
        let _ = writeln!(text, "\tld.global.nc.{kind} {registers}, [%source+{at}];");
    }
    for vector in 0..IN_FLIGHT {
        for word in 0..words(source) {
            let _ = writeln!(text, "\tmov.b32 %in{word}, %loaded{};", vector * 4 + word);
        }
        convert(text);
        let (kind, registers) = access(result, |word| format!("%out{word}"));
        let at = vector * BLOCK * VECTOR * result / 8;
        let _ = writeln!(text, "\tst.global.{kind} [%result+{at}], {registers};");
    }
    *text += "\tret;\n}\n\n";
}
