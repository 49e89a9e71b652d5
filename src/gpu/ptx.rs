//! The kernels, as PTX text: one generator, a conversion of the table put into each.
//!
//! Three things are asked of a chip. `walk` runs through all 2^32 float32 and lists each at which the result
//! changes; `table` writes the result of all 65,536 codes or pairs of codes; `encode`, `decode` and
//! `roundtrip` convert buffers, to be timed. Nothing here rounds: the one instruction that does is the one
//! under test.

use std::fmt::Write as _;

use super::target::{Target, Version};
use super::{Conversion, Job};

/// log2 of the inputs that one thread of `walk` takes.
pub const WALK_LOG2: u32 = 12;
/// Threads of a block in every kernel.
pub const BLOCK: u32 = 256;
/// Values that a thread of a buffer kernel loads at once, and how often it does so.
pub const VECTOR: u32 = 4;
/// Vectors that a thread has in flight.
pub const IN_FLIGHT: u32 = 4;

/// The module that answers a question of the validation; it has one kernel, of the name that
/// [`Job::kernel`] gives.
pub fn job(target: &Target, job: &Job) -> String {
    let convert = |y: &str, x: &str| match job {
        Job::One(row) => chosen(row, y, x),
        Job::Roundtrip { encode, decode, widen } => roundtrip(encode, *decode, widen, y, x),
    };
    let mut text = head(target, version(target, &job.rows()));
    match job.walks() {
        true => walk(&mut text, convert),
        false => table(&mut text, convert),
    }
    text
}

/// The PTX version of a module with these conversions.
pub fn version(target: &Target, rows: &[&Conversion]) -> Version {
    rows.iter().map(|row| row.since.version).fold(target.version, Version::max)
}

pub(super) fn head(target: &Target, (major, minor): Version) -> String {
    format!(".version {major}.{minor}\n.target {}\n.address_size 64\n\n", target.name)
}

/// Bits of memory that a code takes.
pub fn container(format: &str) -> u32 {
    let bits = crate::format::find(format).map_or(32, |format| format.bits);
    [4, 8, 16].into_iter().find(|&width| bits <= width).unwrap_or(32)
}

/// The instruction, from 32-bit registers to one: `sources` are values of float32, the first of which goes to
/// the uppermost lane, or one register of packed codes. Random bits are in `%random`.
pub(super) fn convert(row: &Conversion, y: &str, sources: &[&str]) -> String {
    let results = row.lanes * container(row.to);
    let instruction = row.instruction;
    let mut text = String::from("\t{\n");
    let operands = match (row.from, row.lanes * container(row.from)) {
        ("float32", _) => {
            let values = sources.join(", ");
            let values = if row.lanes == 4 { format!("{{{values}}}") } else { values };
            if row.random.is_some() { values + ", %random" } else { values }
        }
        (_, 32) => sources[0].to_owned(),
        (_, 16) => {
            let _ = writeln!(text, "\t.reg .b16 source;\n\tcvt.u16.u32 source, {};", sources[0]);
            "source".to_owned()
        }
        _ => {
            // PTX has no 32-bit to 8-bit move but this.
            let _ = writeln!(
                text,
                "\t.reg .b8 source, rest1, rest2, rest3;\n\tmov.b32 {{source, rest1, rest2, rest3}}, {};",
                sources[0]
            );
            "source".to_owned()
        }
    };
    let _ = match (row.to, results) {
        // The 19 bits of tf32 are the upper ones of a register.
        ("tf32", _) => writeln!(text, "\t{instruction} {y}, {operands};\n\tshr.u32 {y}, {y}, 13;"),
        (_, 32) => writeln!(text, "\t{instruction} {y}, {operands};"),
        (_, 16) => writeln!(
            text,
            "\t.reg .b16 result;\n\t{instruction} result, {operands};\n\tcvt.u32.u16 {y}, result;"
        ),
        _ => writeln!(
            text,
            "\t.reg .b8 result, zero;\n\t.reg .b32 zeros;\n\tmov.b32 zeros, 0;\n\t{instruction} result, {operands};\n\t\
             mov.b32 {{zero, zero, zero, zero}}, zeros;\n\tmov.b32 {y}, {{result, zero, zero, zero}};"
        ),
    };
    text + "\t}\n"
}

/// The conversion with `x` in the lane that the kernel is told, and the partner in the others.
fn chosen(row: &Conversion, y: &str, x: &str) -> String {
    if row.takes_pairs() || row.lanes == 1 {
        return convert(row, y, &[x]);
    }
    if row.lanes == 4 {
        let mut text = String::new();
        for lane in 0..4 {
            let _ = writeln!(
                text,
                "\tsetp.eq.u32 %here, %where, {lane};\n\tselp.b32 %source{lane}, {x}, %partner, %here;"
            );
        }
        return text + &convert(row, y, &["%source3", "%source2", "%source1", "%source0"]);
    }
    let mut text =
        format!("\tselp.b32 %upper, {x}, %partner, %swap;\n\tselp.b32 %lower, %partner, {x}, %swap;\n");
    if row.from == "float32" {
        return text + &convert(row, y, &["%upper", "%lower"]);
    }
    text += "\tshl.b32 %upper, %upper, 16;\n\tor.b32 %upper, %upper, %lower;\n";
    text + &convert(row, y, &["%upper"])
}

/// To the format and back to float32, in the chosen lane.
fn roundtrip(
    encode: &Conversion,
    decode: Option<&Conversion>,
    widen: &Conversion,
    y: &str,
    x: &str,
) -> String {
    let mut text = chosen(encode, y, x);
    if let Some(decode) = decode {
        text += &convert(decode, y, &[y]);
    }
    if encode.lanes == 2 {
        let _ = writeln!(text, "\tshr.u32 %upper, {y}, 16;\n\tand.b32 %lower, {y}, 65535;");
        let _ = writeln!(text, "\tselp.b32 {y}, %upper, %lower, %swap;");
    }
    text + &convert(widen, y, &[y])
}

/// What `walk` and `table` have in common: parameters, registers and the number of the thread.
const QUESTION: &str = "\
	.reg .pred %swap, %here, %changed, %first, %again, %full;
	.reg .b32 %x, %y, %before, %left, %slot, %capacity, %upper, %lower, %source<4>;
	.reg .b32 %partner, %where, %random, %block, %thread;
	.reg .b64 %out, %counters, %address, %done;
	ld.param.u64 %out, [out];
	cvta.to.global.u64 %out, %out;
	ld.param.u64 %counters, [counters];
	cvta.to.global.u64 %counters, %counters;
	ld.param.u32 %capacity, [capacity];
	ld.param.u32 %partner, [partner];
	ld.param.u32 %where, [lane];
	setp.ne.u32 %swap, %where, 0;
	ld.param.u32 %random, [random];
	mov.u32 %block, %ctaid.x;
	mov.u32 %x, %ntid.x;
	mov.u32 %thread, %tid.x;
	mad.lo.u32 %x, %block, %x, %thread;
";

fn entry(text: &mut String, name: &str) {
    let parameters = "\t.param .u64 out,\n\t.param .u64 counters,\n\t.param .u32 capacity,\n\t.param .u32 partner,\n\t.param .u32 lane,\n\t.param .u32 random\n";
    let _ = write!(text, ".visible .entry {name}(\n{parameters})\n{{\n{QUESTION}");
}

/// Lists `x` and the result wherever that differs from the one before `x`; the input 0 always.
fn walk(text: &mut String, convert: impl Fn(&str, &str) -> String) {
    entry(text, "walk");
    let inputs = 1 << WALK_LOG2;
    let _ = write!(
        text,
        "\
	shl.b32 %x, %x, {WALK_LOG2};
	sub.u32 %left, %x, 1;
{before}\
	mov.u32 %left, {inputs};
next:
{now}\
	setp.ne.u32 %changed, %y, %before;
	setp.eq.u32 %first, %x, 0;
	or.pred %changed, %changed, %first;
	@!%changed bra same;
	atom.global.add.u32 %slot, [%counters], 1;
	setp.ge.u32 %full, %slot, %capacity;
	@%full bra same;
	mad.wide.u32 %address, %slot, 8, %out;
	st.global.v2.u32 [%address], {{%x, %y}};
same:
	mov.b32 %before, %y;
	add.u32 %x, %x, 1;
	sub.u32 %left, %left, 1;
	setp.ne.u32 %again, %left, 0;
	@%again bra next;
	mov.u64 %done, {inputs};
	red.global.add.u64 [%counters+8], %done;
	ret;
}}
",
        before = convert("%before", "%left"),
        now = convert("%y", "%x"),
    );
}

/// Writes the result of every `x`.
fn table(text: &mut String, convert: impl Fn(&str, &str) -> String) {
    entry(text, "table");
    let _ = write!(
        text,
        "\
{}\
	mad.wide.u32 %address, %x, 4, %out;
	st.global.u32 [%address], %y;
	mov.u64 %done, 1;
	red.global.add.u64 [%counters+8], %done;
	ret;
}}
",
        convert("%y", "%x")
    );
}
