//! All elements of a tensor's weights, gradients and moments, piece by piece.

use super::ratios::Ratios;
use super::rule::{Rule, Step};
use super::store::{Kept, PieceStep, Round, Stepped, Way};
use super::tally::{LANES, Outcomes, Tally, Wanted, changes};
use crate::cast::fast::{Kernel, Level, run};
use crate::cast::philox::{Place, fill};
use crate::error::{Error, Result};
use crate::format::FormatSpec;
use crate::stats::{AccumulateTogether, Merge};
use crate::tensor::Chunk;
use crate::training::stored::{Range, run_rounding};
use crate::training::{Extremes, Stored};

/// Elements that all steps are taken for before the next: what is needed of them stays in the first caches.
const PIECE: usize = 1 << 10;

/// What is to be found out about every tensor.
#[derive(Clone, Debug)]
pub struct UpdatePlan {
    /// Formats that weights are kept in; of the first, float32, only [`Way::Nearest`].
    formats: Vec<Stored>,
    /// Numbers of steps after which the change is compared, ascending, the first being 1.
    marks: Vec<u64>,
    seed: u64,
    level: Level,
}

impl UpdatePlan {
    /// Weights kept in float32 and in each of `formats`, for `steps` steps; `seed` and `random_bits` are those of
    /// stochastic rounding.
    ///
    /// # Errors
    /// A format that keeps no weights.
    pub fn new(formats: &[FormatSpec], steps: u64, seed: u64, random_bits: Option<u32>) -> Result<Self> {
        let master = crate::format::find("float32")?;
        let stored = |format: &FormatSpec| Stored::new(*format, random_bits);
        let formats: Vec<Stored> =
            std::iter::once(&master).chain(formats).map(stored).collect::<Result<_>>()?;
        let powers = (0..u64::BITS).map(|power| 1 << power).take_while(|&mark| mark < steps);
        let marks = powers.chain([steps.max(1)]).collect();
        Ok(Self { formats, marks, seed, level: Level::best() })
    }

    /// The formats, float32 first.
    pub fn formats(&self) -> &[Stored] {
        &self.formats
    }

    /// Numbers of steps after which the change is compared: powers of two, and the number asked for.
    pub fn marks(&self) -> &[u64] {
        &self.marks
    }

    /// The least of the formats' largest numbers.
    fn least_largest(&self) -> f32 {
        self.formats.iter().map(|stored| stored.format.max_finite() as f32).fold(f32::MAX, f32::min)
    }

    /// The ways that format number `format` is kept in.
    fn ways(&self, format: usize) -> &'static [Way] {
        match format {
            0 => &[Way::Nearest],
            _ => &[Way::Nearest, Way::Expected, Way::Stochastic, Way::Kahan],
        }
    }
}

/// What becomes of the updates of one tensor, or of several.
#[derive(Clone, Debug, Default)]
pub struct TensorUpdates {
    /// Elements.
    pub elements: u64,
    /// For each format of the plan.
    pub formats: Vec<FormatUpdates>,
}

/// What becomes of updates in one format.
#[derive(Clone, Debug)]
pub struct FormatUpdates {
    /// Weights beyond the format's largest number, which are left out.
    pub overflow: u64,
    /// |update| / ulp(weight) of the first step.
    pub ratios: Ratios,
    /// The changes after each number of steps, for each way. [`Way::Expected`] has the first only.
    pub ways: Vec<(Way, Vec<Tally>)>,
}

impl TensorUpdates {
    /// Adds another tensor's, or the next elements'.
    pub fn merge(&mut self, next: &Self) {
        if self.formats.is_empty() {
            *self = next.clone();
            return;
        }
        self.elements += next.elements;
        for (sum, next) in self.formats.iter_mut().zip(&next.formats) {
            sum.overflow += next.overflow;
            sum.ratios.merge(&next.ratios);
            for ((_, sums), (_, tallies)) in sum.ways.iter_mut().zip(&next.ways) {
                sums.iter_mut().zip(tallies).for_each(|(sum, tally)| sum.merge(tally));
            }
        }
    }
}

impl FormatUpdates {
    /// The changes in one way, after each number of steps.
    pub fn way(&self, way: Way) -> Option<&[Tally]> {
        self.ways.iter().find(|(known, _)| *known == way).map(|(_, tallies)| tallies.as_slice())
    }
}

/// Adds up what becomes of the updates of a tensor.
pub struct UpdateAccumulator<'a> {
    plan: &'a UpdatePlan,
    step: Step,
    stream: u64,
    updates: TensorUpdates,
    /// For each input, the weights first: how many are NaN or Inf, and the index of the first.
    nonfinite: Vec<Option<(u64, u64)>>,
    /// Number and first index of negative second moments.
    negative: Option<(u64, u64)>,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    inputs: Vec<Vec<f32>>,
    increments: Vec<f64>,
    start: Vec<f32>,
    stepped: Vec<f32>,
    wanted: Wanted,
    outcomes: Outcomes,
    kept: Vec<Kept>,
    random: Vec<u32>,
    bins: Vec<u16>,
}

impl<'a> UpdateAccumulator<'a> {
    /// For a tensor whose step is `step`; `stream` is [`crate::cast::philox::stream`] of its name.
    pub fn new(plan: &'a UpdatePlan, step: Step, stream: u64) -> Self {
        let formats = plan.formats.iter().enumerate().map(|(number, _)| FormatUpdates {
            overflow: 0,
            ratios: Ratios::default(),
            ways: plan
                .ways(number)
                .iter()
                .map(|&way| {
                    let marks = if way == Way::Expected { 1 } else { plan.marks.len() };
                    (way, vec![Tally::default(); marks])
                })
                .collect(),
        });
        Self {
            plan,
            step,
            stream,
            updates: TensorUpdates { elements: 0, formats: formats.collect() },
            nonfinite: Vec::new(),
            negative: None,
            scratch: Scratch::default(),
        }
    }

    /// Counts what no optimizer takes a step with; the largest magnitude of the weights if there is nothing.
    fn check(&mut self, first: u64, inputs: &[&[f32]]) -> Option<f32> {
        self.nonfinite.resize(inputs.len(), None);
        let all: Vec<Extremes> = inputs.iter().map(|values| Extremes::of(self.plan.level, values)).collect();
        for ((extremes, values), found) in all.iter().zip(inputs).zip(&mut self.nonfinite) {
            if !extremes.are_finite() {
                note(found, first, values, |x| !x.is_finite());
            }
        }
        if let (Rule::Adam { .. }, Some((second, extremes))) = (self.step.rule, inputs.last().zip(all.last()))
            && extremes.have_negative()
        {
            note(&mut self.negative, first, second, |x| x < 0.0);
        }
        let is_clean = self.nonfinite.iter().all(Option::is_none) && self.negative.is_none();
        all.first().filter(|_| is_clean).map(|weights| weights.amax())
    }

    /// Takes all steps of weights of a magnitude up to `amax`, the first `used` of them being the tensor's.
    fn piece(&mut self, first: u64, inputs: &[&[f32]], used: usize, amax: f32) {
        let Self { plan, step, stream, updates, scratch, .. } = self;
        let Scratch { increments, start, stepped, wanted, outcomes, kept, random, bins, .. } = scratch;
        let (level, decay) = (plan.level, step.decay());
        let weights = inputs[0];
        let length = weights.len();
        updates.elements += used as u64;
        increments.resize(length, 0.0);
        start.resize(length, 0.0);
        stepped.resize(length, 0.0);
        random.resize(length, 0);
        step.increments(level, weights, &inputs[1..], increments);
        increments[used..].fill(0.0);
        let last = plan.marks.last().copied().unwrap_or(1);
        // What is wanted of one step without decay is the same in all formats.
        let is_shared = decay == 1.0 && last == 1 && amax <= plan.least_largest();
        let own = increments.as_slice();
        let mut usable;
        // The step that `random` is for.
        let mut drawn = 0;
        for (number, (stored, found)) in plan.formats.iter().zip(&mut updates.formats).enumerate() {
            run_rounding(level, stored, Range::Any, Round { stored, values: weights, out: start });
            let largest = stored.format.max_finite() as f32;
            let mut increments = own;
            if amax > largest {
                // Such a weight is no number of the format: it takes no part.
                usable = own.to_vec();
                for ((q, w), d) in start.iter_mut().zip(weights).zip(&mut usable) {
                    if w.abs() > largest {
                        found.overflow += 1;
                        (*q, *d) = (0.0, 0.0);
                    }
                }
                increments = &usable;
            }
            kept.resize_with(plan.ways(number).len(), Kept::default);
            kept.iter_mut().zip(plan.ways(number)).for_each(|(kept, way)| kept.way = *way);
            let mut mark = 0;
            for taken in 1..=last {
                if number > 0 && drawn != taken {
                    let seed = plan.seed.wrapping_add((taken - 1) << 32);
                    let place = Place { stream: *stream, index: first };
                    run(level, Random { seed, place, random });
                    drawn = taken;
                }
                let step = PieceStep { level, stored, decay, increments, random };
                if taken == 1 {
                    run(level, Stepped { decay, increments, now: start, stepped });
                    kept.iter_mut().for_each(|kept| kept.first(step, start, stepped));
                } else {
                    kept.iter_mut().for_each(|kept| kept.next(step, stepped));
                }
                if !is_shared || number == 0 {
                    wanted.advance(level, taken == 1, decay, increments, start);
                }
                if plan.marks[mark] != taken {
                    continue;
                }
                if !is_shared || number == 0 {
                    wanted.describe(level);
                }
                if taken == 1 {
                    found.ratios.observe(level, stored, &wanted.changes, start, bins);
                }
                for (kept, (_, tallies)) in kept.iter().zip(&mut found.ways) {
                    let Some(tally) = tallies.get_mut(mark) else { continue };
                    tally.merge(&if kept.way == Way::Expected {
                        outcomes.changes(level, stored, start, stepped, wanted)
                    } else {
                        changes(level, start, &kept.now, &kept.lost, wanted)
                    });
                }
                mark += 1;
            }
        }
    }
}

/// Counts the values that `is` is true of.
fn note(found: &mut Option<(u64, u64)>, first: u64, values: &[f32], is: impl Fn(f32) -> bool) {
    let mut count = 0;
    for (x, index) in values.iter().zip(first..) {
        if is(*x) {
            count += 1;
            found.get_or_insert((0, index));
        }
    }
    if let Some((sum, _)) = found {
        *sum += count;
    }
}

/// The random bits of stochastic rounding for consecutive elements, which begin at a multiple of four. Each step
/// has a key of its own.
struct Random<'a> {
    seed: u64,
    place: Place,
    random: &'a mut [u32],
}

impl Kernel for Random<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        fill(self.seed, self.place, self.random);
    }
}

impl AccumulateTogether for UpdateAccumulator<'_> {
    fn observe(&mut self, first: u64, chunks: &[Chunk<'_>]) {
        // float64 weights are trained in float64; what is asked about them is their float32.
        let mut narrowed = std::mem::take(&mut self.scratch.inputs);
        narrowed.resize(chunks.len(), Vec::new());
        for (chunk, narrow) in chunks.iter().zip(&mut narrowed) {
            if let Chunk::F64(values) = chunk {
                narrow.clear();
                narrow.extend(values.iter().map(|&x| x as f32));
            }
        }
        let inputs: Vec<&[f32]> = chunks
            .iter()
            .zip(&narrowed)
            .map(|(chunk, narrow)| match chunk {
                Chunk::F32(values) => *values,
                Chunk::F64(_) => narrow,
            })
            .collect();
        let length = inputs.iter().map(|values| values.len()).min().unwrap_or(0);
        for at in (0..length).step_by(PIECE) {
            let end = length.min(at + PIECE);
            let piece: Vec<&[f32]> = inputs.iter().map(|values| &values[at..end]).collect();
            let Some(amax) = self.check(first + at as u64, &piece) else { continue };
            if piece[0].len().is_multiple_of(LANES) {
                self.piece(first + at as u64, &piece, end - at, amax);
            } else {
                let zeros = [0.0; LANES];
                let filled_up = |values: &&[f32]| [values, &zeros[values.len() % LANES..]].concat();
                let piece: Vec<Vec<f32>> = piece.iter().map(filled_up).collect();
                let piece: Vec<&[f32]> = piece.iter().map(Vec::as_slice).collect();
                self.piece(first + at as u64, &piece, end - at, amax);
            }
        }
        self.scratch.inputs = narrowed;
    }
}

impl Merge for UpdateAccumulator<'_> {
    type Out = Result<TensorUpdates>;

    fn merge(&mut self, next: Self) {
        self.updates.merge(&next.updates);
        self.nonfinite.resize(self.nonfinite.len().max(next.nonfinite.len()), None);
        let pairs = self.nonfinite.iter_mut().zip(&next.nonfinite);
        for (sum, next) in pairs.chain([(&mut self.negative, &next.negative)]) {
            *sum = match (*sum, *next) {
                (Some((a, first)), Some((b, _))) => Some((a + b, first)),
                (one, other) => one.or(other),
            };
        }
    }

    fn finish(mut self) -> Result<TensorUpdates> {
        self.updates.formats.iter_mut().for_each(|format| format.ratios.trim());
        let name = |input: usize| match input.checked_sub(1) {
            None => "weight",
            Some(position) => self.step.input_name(position),
        };
        let bad = self.nonfinite.iter().enumerate().find_map(|(input, found)| Some((input, (*found)?)));
        let faults = bad.map(|(input, (count, first))| (count, first, name(input), "NaN or Inf"));
        let faults = faults.or(self.negative.map(|(count, first)| (count, first, "exp_avg_sq", "negative")));
        match faults {
            None => Ok(self.updates),
            Some((count, first, name, what)) => {
                let (elements, are) = if count == 1 { ("element", "is") } else { ("elements", "are") };
                Err(Error::new(format!(
                    "{count} {elements} of its {name} {are} {what}, first at index {first}: no step can be taken"
                )))
            }
        }
    }
}
