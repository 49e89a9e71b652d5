//! Conversions that round stochastically, compared for a set of operands of random bits.
//!
//! With one operand such a conversion is a step function as any other, and what it adds to the discarded bits of a
//! lane shows in its list of steps: how far before the next number the step lies. Lists for a few operands, in which
//! no two bits of the operand are set alike, tell for each bit that a lane adds where it comes from. PTX leaves that
//! open where lanes share bits ([`Random`](super::table::Random)): there it is read off and reported as seen, and
//! nothing is claimed; where PTX says it, that is what must be. Then every list must be that of this tool's cast by
//! those bits, over all 2^32 float32, in each lane: with as many bits as the lane has, added at the top of the bits
//! that are discarded. (That alignment, too, is open where more bits are discarded than there are random ones, as of
//! all subnormal results; and what becomes of float16 and bfloat16 that carry past the largest number: Inf here.)
//!
//! Others report of FP8 that a B200 gives each lane the byte at its own place, and a B300 one the upper byte of
//! the shared half and the other its lower byte, bits reversed (Dao-AILab/quack, comments in quack/rounding.py). Not
//! tried here: no card has been at hand.

use super::Conversion;
use super::ptx::container;
use super::steps::{Beside, Mismatches, Step, cast_at, compare, map, steps_at};
use crate::error::{Error, Result};

/// Operands that are tried. None and all, five in which each bit is set as its number is written in binary, and
/// three in which what the others told must hold.
pub const OPERANDS: [u32; 10] = [
    0,
    u32::MAX,
    0xaaaa_aaaa,
    0xcccc_cccc,
    0xf0f0_f0f0,
    0xff00_ff00,
    0xffff_0000,
    0x9e37_79b9,
    0x0001_8000,
    0x7f4a_1d35,
];
const ALL: usize = 1;
const NUMBERED: [usize; 5] = [2, 3, 4, 5, 6];

/// Bits of 1, where the draws of all formats are read off.
const ONE: u32 = 0x3f80_0000;

/// What came out for all operands and lanes.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Inputs on which the card and the tool differ.
    pub mismatches: Mismatches,
    /// Results compared.
    pub inputs: u64,
    /// For each lane, the lowest first, the bits of the operand that it was seen to add, the most significant first;
    /// none where that could not be read off.
    pub random: Vec<Vec<u32>>,
}

/// Asks for the lists of all operands and lanes and compares them; each of the `partners` stands in the other lanes
/// of some.
///
/// # Errors
/// `ask` fails, or a lane adds what cannot come from bits of the operand, or from such as are another's in PTX.
pub fn try_all(
    row: &Conversion,
    partners: &[u32],
    mut ask: impl FnMut(Beside) -> Result<Vec<Step>>,
) -> Result<Tried> {
    let Some(supply) = row.random else { return Err(Error::new("this conversion takes no random bits")) };
    let plan = row.plan()?;
    let width = container(row.to);
    let discarded = 24 - plan.target.precision;
    // Bits that no lane may take are left zero: PTX wants those of float16 so.
    let taken = supply.lanes.iter().fold(0, |taken, may_take| taken | may_take);
    let mut lists = Vec::new();
    let mut random = Vec::new();
    for (lane, &may_take) in (0..).zip(supply.lanes) {
        let mut draws = [0; OPERANDS.len()];
        for ((turn, operand), draw) in (0..).zip(OPERANDS).zip(&mut draws) {
            let beside = Beside { partner: partners[turn % partners.len()], lane, random: operand & taken };
            let list = ask(beside)?;
            *draw = read_off(&map(&list, |y| y >> (lane * width) & ((1 << width) - 1)), discarded);
            lists.push((beside, list));
        }
        let failed =
            |what: String| Error::new(format!("read off between 1 and the next number, lane {lane} {what}"));
        let bits = match origins(&draws, discarded) {
            // Results that PTX fixes are compared, whatever was read off.
            bits if supply.is_whole => bits.unwrap_or_default(),
            None => return Err(failed(format!("adds {:#x} for random bits that are all set", draws[ALL]))),
            Some(bits) => match bits.iter().find(|bit| may_take >> **bit & 1 == 0) {
                Some(bit) => {
                    return Err(failed(format!("adds bit {bit} of rbits, which is another's in PTX")));
                }
                None => bits,
            },
        };
        random.push(bits);
    }
    let documented = |may_take: &u32| (0..32).rev().filter(|bit| may_take >> bit & 1 == 1).collect();
    let origins: Vec<Vec<u32>> =
        if supply.is_whole { supply.lanes.iter().map(documented).collect() } else { random.clone() };
    let drawn = |lane: u32, operand: u32| {
        let bits = &origins[lane as usize];
        (bits.len() as u32, bits.iter().fold(0, |draw, bit| draw << 1 | (operand >> bit & 1)))
    };
    let mut known: Vec<((u32, u32), Vec<Step>)> = Vec::new();
    let mut mismatches = Mismatches::default();
    for (beside, found) in &lists {
        let beside = *beside;
        let others = (0..row.lanes).filter(|lane| *lane != beside.lane).fold(0, |others, lane| {
            let (bits, draw) = drawn(lane, beside.random);
            others | cast_at(&plan, bits, draw, beside.partner) << (lane * width)
        });
        let (bits, draw) = drawn(beside.lane, beside.random);
        let at = match known.iter().position(|(key, _)| *key == (bits, draw)) {
            Some(at) => at,
            None => {
                known.push(((bits, draw), steps_at(&plan, bits, draw)));
                known.len() - 1
            }
        };
        let expected = map(&known[at].1, |code| others | code << (beside.lane * width));
        mismatches.extend(compare(found, &expected, row.nan_codes_known), Some(beside));
    }
    Ok(Tried { mismatches, inputs: (lists.len() as u64) << 32, random })
}

/// What is added to the bits that are discarded, by a list of steps of one lane: a result passes from 1 to the next
/// number as many inputs before that as this.
fn read_off(list: &[Step], discarded: u32) -> u32 {
    let after = list.partition_point(|step| step.0 <= ONE);
    let next = ONE + (1 << discarded);
    list.get(after).map_or(0, |step| next.saturating_sub(step.0))
}

/// Which bit of the operand each bit that is added is, by the draws for all [`OPERANDS`]; `None` if all of them
/// together are not so many ones at the top of the discarded bits.
fn origins(draws: &[u32; OPERANDS.len()], discarded: u32) -> Option<Vec<u32>> {
    let all = draws[ALL];
    let places: Vec<u32> = (0..discarded).rev().filter(|place| all >> place & 1 == 1).collect();
    let are_at_the_top = places.iter().zip((0..discarded).rev()).all(|(place, top)| *place == top);
    let bit = |place: &u32| (0..5).fold(0, |bit, digit| bit | (draws[NUMBERED[digit]] >> place & 1) << digit);
    (are_at_the_top && !places.is_empty()).then(|| places.iter().map(bit).collect())
}
