//! Every comparison with its figures, ready for any output.

use serde::Serialize;

use super::super::code::hex;
use super::super::number::Num;
use super::super::{SCHEMA_VERSION, Tool};
use crate::cast::NanCode;
use crate::cast::fast::Level;
use crate::cast::fast::hardware::INSTRUCTIONS;
use crate::format::decode::decode;
use crate::verify::{Check, Difference, Example, Implementation, Inputs, Maker, Source, Tally, known};

/// What `verify` found.
#[derive(Clone, Debug, Serialize)]
pub struct VerifyReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `verify`.
    pub command: &'static str,
    /// Whether all float32 were tried where that was asked for.
    pub full: bool,
    /// What this processor can do.
    pub machine: Machine,
    /// Whether this tool's own code equals the definition everywhere.
    pub passed: bool,
    /// Each implementation on each cast.
    pub checks: Vec<CheckEntry>,
}

/// The part of the processor that matters.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Its architecture.
    pub architecture: &'static str,
    /// Levels of SIMD code that it runs.
    pub simd_levels: Vec<&'static str>,
    /// Its instructions that convert, with their rounding modes.
    pub instructions: Vec<&'static str>,
}

/// One implementation on one cast.
#[derive(Clone, Debug, Serialize)]
pub struct CheckEntry {
    /// The format.
    pub format: &'static str,
    /// Who made the implementation.
    pub maker: &'static str,
    /// Which one it is.
    pub implementation: String,
    /// What is converted: `float32`, `float64` or `codes` (back to values).
    pub source: &'static str,
    /// The rounding mode.
    pub rounding: &'static str,
    /// The overflow policy.
    pub overflow: &'static str,
    /// The code of NaNs.
    pub nan: &'static str,
    /// Whether the inputs are all 2^32 float32.
    pub all_float32: bool,
    /// Inputs compared.
    pub inputs: u64,
    /// Inputs on which it differs from the definition.
    pub differing: u64,
    /// What differs.
    pub differences: Vec<DifferenceEntry>,
}

/// Inputs of one kind whose results differ in one way.
#[derive(Clone, Debug, Serialize)]
pub struct DifferenceEntry {
    /// What the inputs are, or what the definition makes of them.
    pub input: &'static str,
    /// What is stored instead.
    pub result: &'static str,
    /// How many there are.
    pub count: u64,
    /// What is known of it.
    pub known: Option<KnownEntry>,
    /// The first inputs.
    pub first: Vec<ExampleEntry>,
}

/// A difference that has been told elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KnownEntry {
    /// What happens.
    pub why: &'static str,
    /// Where it is told.
    pub reference: &'static str,
}

/// One input: bits, and the numbers that they mean.
#[derive(Clone, Debug, Serialize)]
pub struct ExampleEntry {
    /// Bits of the input.
    pub input: String,
    /// The number.
    pub input_value: Num,
    /// The code by the definition; of conversions from codes, the bits of a float64.
    pub definition: String,
    /// The number.
    pub definition_value: Num,
    /// The code of the implementation.
    pub found: String,
    /// The number.
    pub found_value: Num,
}

impl VerifyReport {
    /// Puts together what [`run`](crate::verify::run) gave for `checks`.
    pub fn new(checks: &[Check], tallies: &[Vec<Tally>], full: bool) -> Self {
        let pairs = checks.iter().zip(tallies).flat_map(|(check, tallies)| {
            check
                .implementations
                .iter()
                .zip(tallies)
                .map(move |(implementation, tally)| (check, implementation, tally))
        });
        let failed = |(_, implementation, tally): (&Check, &Implementation, &Tally)| {
            implementation.maker == Maker::Ours && tally.differing() > 0
        };
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "verify",
            full,
            machine: Machine::this(),
            passed: !pairs.clone().any(failed),
            checks: pairs.map(|(check, implementation, tally)| entry(check, implementation, tally)).collect(),
        }
    }
}

impl Machine {
    fn this() -> Self {
        let levels = Level::ALL.into_iter().filter(|level| level.is_available());
        let instructions = INSTRUCTIONS.iter().filter(|instruction| instruction.is_available());
        Self {
            architecture: std::env::consts::ARCH,
            simd_levels: levels.map(Level::name).collect(),
            instructions: instructions.map(|instruction| instruction.name).collect(),
        }
    }
}

fn entry(check: &Check, implementation: &Implementation, tally: &Tally) -> CheckEntry {
    let plan = &check.plan;
    CheckEntry {
        format: plan.target.name,
        maker: implementation.maker.name(),
        implementation: implementation.name.clone(),
        source: check.source.name(),
        rounding: plan.rounding.name(),
        overflow: plan.overflow.name(),
        nan: match plan.nan {
            NanCode::Canonical => "canonical",
            NanCode::AllOnes => "all-ones",
            NanCode::AllOnesPositive => "all-ones-positive",
            NanCode::AllOnesNegative => "all-ones-negative",
        },
        all_float32: matches!(check.inputs, Inputs::AllFloat32),
        inputs: tally.inputs,
        differing: tally.differing(),
        differences: tally
            .differences()
            .iter()
            .map(|difference| difference_entry(check, implementation, difference))
            .collect(),
    }
}

fn difference_entry(
    check: &Check,
    implementation: &Implementation,
    difference: &Difference,
) -> DifferenceEntry {
    let Difference { kind, outcome, count, .. } = *difference;
    let Implementation { maker, name, .. } = implementation;
    let known = known(*maker, name, check.plan.target.name, check.source, kind, outcome);
    DifferenceEntry {
        input: kind.name(),
        result: outcome.name(),
        count,
        known: known.map(|known| KnownEntry { why: known.why, reference: known.reference }),
        first: difference.first.iter().map(|example| example_entry(check, example)).collect(),
    }
}

fn example_entry(check: &Check, example: &Example) -> ExampleEntry {
    let format = &check.plan.target;
    let code = |bits: u64| (hex(bits, format.bits), Num(decode(format, bits as u32)));
    let float32 = |bits: u64| (hex(bits, 32), Num(f32::from_bits(bits as u32).into()));
    let float64 = |bits: u64| (hex(bits, 64), Num(f64::from_bits(bits)));
    let (input, definition, found) = match check.source {
        Source::Float32 => (float32(example.input), code(example.defined), code(example.found)),
        Source::Float64 => (float64(example.input), code(example.defined), code(example.found)),
        Source::Codes => (code(example.input), float64(example.defined), float64(example.found)),
    };
    ExampleEntry {
        input: input.0,
        input_value: input.1,
        definition: definition.0,
        definition_value: definition.1,
        found: found.0,
        found_value: found.1,
    }
}
