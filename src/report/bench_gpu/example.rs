//! One result that differs, from bits to what a person reads.

use super::super::code::hex;
use super::super::explain::class_name;
use super::super::number::Num;
use super::model::MismatchEntry;
use crate::cast::{CastPlan, Place};
use crate::error::Result;
use crate::format::decode::decode;
use crate::format::{self, FormatSpec};
use crate::gpu::steps::Mismatch;
use crate::gpu::{Job, ptx};

/// What the bits of a question's inputs and results are.
pub(super) struct Example {
    /// Of codes, their format; float32 has none.
    from: Option<FormatSpec>,
    plan: CastPlan,
    /// Bits of an input, of one of the two codes in it, and of a result.
    bits: [u32; 3],
    pairs: bool,
    lanes: &'static [&'static str],
    is_random: bool,
}

impl Example {
    pub(super) fn new(job: &Job) -> Result<Self> {
        let rows = job.rows();
        let (first, last) = (&rows[0], &rows[rows.len() - 1]);
        let pairs = first.takes_pairs();
        let code = ptx::container(first.from);
        let input = if pairs { 2 * code } else { code };
        let result = if rows.len() > 1 { 32 } else { last.lanes * ptx::container(last.to) };
        let from = if first.from == "float32" { None } else { Some(format::find(first.from)?) };
        let lanes = if first.lanes == 4 { &["1", "2", "3", "4"][..] } else { &["lower", "upper"] };
        let is_random = first.random.is_some();
        Ok(Self { from, plan: first.plan()?, bits: [input, code, result], pairs, lanes, is_random })
    }

    /// A cast of float32 alone.
    pub(super) fn of_cast(plan: &CastPlan) -> Self {
        Self {
            from: None,
            plan: *plan,
            bits: [32, 32, plan.target.bits],
            pairs: false,
            lanes: &[],
            is_random: false,
        }
    }

    pub(super) fn entry(&self, mismatch: &Mismatch) -> MismatchEntry {
        let Mismatch { input, found, expected, beside } = *mismatch;
        let [input_bits, code_bits, result_bits] = self.bits;
        let upper = self.pairs && (found ^ expected) & ((1 << (result_bits / 2)) - 1) == 0;
        let code = if upper { input >> code_bits } else { input };
        let value = match &self.from {
            None => f64::from(f32::from_bits(code)),
            Some(from) => decode(from, code & (from.magnitude_mask() | from.sign_bit())),
        };
        MismatchEntry {
            input: hex(input.into(), input_bits),
            input_value: Num(value),
            beside: beside.map(|beside| hex(beside.partner.into(), input_bits)),
            lane: beside.and_then(|beside| self.lanes.get(beside.lane as usize).copied()),
            random: beside.filter(|_| self.is_random).map(|beside| hex(beside.random.into(), 32)),
            gpu: hex(found.into(), result_bits),
            expected: hex(expected.into(), result_bits),
            class: class_name(self.plan.cast_f64(value, Place::default()).class),
        }
    }
}
