//! FP8 recipes over the steps of every tensor: amax of each step → scales → casts.

use std::num::NonZero;

use super::{BlockTask, Task, bytes_to_read, run, run_block_casts};
use crate::cast::block::{BlockPlan, BlockScale};
use crate::error::Error;
use crate::format::BlockSpec;
use crate::scaler::fp8::{Delayed, Elements, Moment, Recipe, Role, Settings, Variant, replay};
use crate::stats::blocks::single_scale;
use crate::stats::{BlockCast, BlockStats, SourceStats, StatsPlan, TensorAccumulator};

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Fp8Plan {
    /// The recipes, in the order of the results.
    pub recipes: Vec<&'static Recipe>,
    /// The elements asked for; `None` leaves them to each recipe.
    pub elements: Option<Elements>,
    /// Of delayed scaling.
    pub settings: Settings,
}

impl Fp8Plan {
    /// Bytes that [`run_fp8`] reads of these tensors.
    pub fn bytes_to_read(&self, tasks: &[Task<'_>]) -> u64 {
        let specs: Vec<_> =
            self.recipes.iter().filter_map(|recipe| recipe.block(Role::Weight, self.elements).ok()).collect();
        let plans: Vec<_> = specs.into_iter().map(|spec| BlockPlan { spec, scale: 1.0 }).collect();
        bytes_to_read(tasks, &plans)
    }
}

/// A tensor in all its steps.
pub struct Series {
    /// What it is in training.
    pub role: Role,
    /// For each step, in order, the positions of its tasks: one a rank.
    pub steps: Vec<Vec<usize>>,
}

/// One step of one tensor.
pub struct Fp8Step {
    /// The stored values, all ranks together.
    pub source: SourceStats,
    /// What each recipe does.
    pub recipes: Vec<Fp8Cast>,
}

/// What one recipe does to one step of one tensor.
pub struct Fp8Cast {
    /// The block format that the recipe comes to.
    pub spec: BlockSpec,
    /// The one scale of all its elements, if there is just one.
    pub scale: Option<BlockScale>,
    /// For delayed scaling: where its scale came from, and what there is to say.
    pub moment: Option<Moment>,
    /// The cast; `None` if the tensor cannot be cut into such blocks.
    pub stats: Option<BlockStats>,
}

/// What [`run_fp8`] finds.
pub struct Fp8Results {
    /// Each series, step by step; `None` for a step that could not be read.
    pub series: Vec<Vec<Option<Fp8Step>>>,
    /// What went wrong.
    pub problems: Vec<Error>,
}

/// What became of the block casts of a task.
type Part = (usize, (Vec<BlockStats>, Vec<Error>));

/// Replays every recipe on every series. Results come in the order of the series and their steps. `read` is told of
/// bytes, from any thread.
pub fn run_fp8(
    tasks: &[Task<'_>],
    series: &[Series],
    plan: &Fp8Plan,
    threads: NonZero<usize>,
    read: impl Fn(u64) + Sync,
) -> Fp8Results {
    let no_casts = StatsPlan::new(Vec::new());
    let found =
        run(tasks, threads, |info| TensorAccumulator::new(&no_casts, &info.name, info.elements), &read);
    let mut problems = Vec::new();
    let mut sources: Vec<Option<SourceStats>> = Vec::new();
    for result in found {
        sources.push(result.map_err(|error| problems.push(error)).ok().map(|stats| stats.source));
    }

    let replayed: Vec<Replayed> = series.iter().map(|series| Replayed::new(series, &sources, plan)).collect();
    let jobs = || replayed.iter().flat_map(|replayed| &replayed.steps).flatten();
    let block_tasks: Vec<BlockTask<'_>> = jobs()
        .flat_map(|step| step.members.iter().map(move |&member| (member, step)))
        .filter_map(|(member, step)| {
            let casts = step.casts.iter().map(|(cast, _)| *cast).collect();
            Some(BlockTask { task: &tasks[member], source: sources[member].as_ref()?, casts })
        })
        .collect();
    let mut cast = run_block_casts(&block_tasks, threads, read).into_iter();

    let results = replayed
        .into_iter()
        .map(|Replayed { steps }| {
            let steps = steps.into_iter().map(|step| {
                step.map(|step| {
                    let parts: Vec<_> = step
                        .members
                        .iter()
                        .map(|&member| (member, cast.next().unwrap_or_default()))
                        .collect();
                    step.finish(parts, &sources, &mut problems)
                })
            });
            steps.collect()
        })
        .collect();
    Fp8Results { series: results, problems }
}

/// Replays delayed scaling on a tensor of which only the largest magnitude of each step is known: what each recipe of
/// that kind does at each step, without statistics of values.
pub fn replay_magnitudes(role: Role, amaxes: &[f32], plan: &Fp8Plan) -> Vec<Vec<Fp8Cast>> {
    let mut steps: Vec<Vec<Fp8Cast>> = amaxes.iter().map(|_| Vec::new()).collect();
    for recipe in &plan.recipes {
        let (Some(variant), Ok(spec)) = (recipe.variant(), recipe.block(role, plan.elements)) else {
            continue;
        };
        for (step, moment) in steps.iter_mut().zip(moments(variant, plan.settings, &spec, amaxes)) {
            let scale = Some(BlockScale::of_factor(moment.scale, 1.0 / moment.scale));
            step.push(Fp8Cast { spec, scale, moment: Some(moment), stats: None });
        }
    }
    steps
}

/// A series with the scales of its steps.
struct Replayed {
    steps: Vec<Option<Step>>,
}

/// One step before its casts are made.
struct Step {
    /// Its tasks that could be read.
    members: Vec<usize>,
    source: SourceStats,
    casts: Vec<(BlockCast, Option<Moment>)>,
}

impl Replayed {
    fn new(series: &Series, sources: &[Option<SourceStats>], plan: &Fp8Plan) -> Self {
        let mut steps: Vec<Option<Step>> = Vec::new();
        for members in &series.steps {
            let members: Vec<usize> =
                members.iter().copied().filter(|&member| sources[member].is_some()).collect();
            let mut source = SourceStats::default();
            members.iter().filter_map(|&member| sources[member].as_ref()).for_each(|next| source.merge(next));
            steps.push((!members.is_empty()).then_some(Step { members, source, casts: Vec::new() }));
        }
        for recipe in &plan.recipes {
            // Every row of the table of recipes names a format.
            let Ok(spec) = recipe.block(series.role, plan.elements) else { continue };
            let present = || steps.iter().flatten();
            let moments = recipe.variant().map(|variant| {
                let amaxes = present().map(|step| amax(variant, &step.source)).collect::<Vec<_>>();
                moments(variant, plan.settings, &spec, &amaxes)
            });
            let mut moments = moments.into_iter().flatten();
            for step in steps.iter_mut().flatten() {
                let moment = moments.next();
                let factor = moment.as_ref().map(|moment| moment.scale);
                step.casts.push((BlockCast { plan: BlockPlan { spec, scale: 1.0 }, factor }, moment));
            }
        }
        Self { steps }
    }
}

/// Largest magnitude of a tensor, as delayed scaling takes it.
fn amax(variant: Variant, source: &SourceStats) -> f32 {
    if source.nan > 0 && !variant.passes_over_nan() {
        f32::NAN
    } else if source.inf() > 0 {
        f32::INFINITY
    } else {
        source.amax as f32
    }
}

/// The steps of a run. One step alone has no history: it is shown at the scale that it hands to the next.
fn moments(variant: Variant, settings: Settings, spec: &BlockSpec, amaxes: &[f32]) -> Vec<Moment> {
    let format = &spec.element;
    let mut state = Delayed::new(variant, settings, format.max_finite() as f32);
    if let &[only] = amaxes {
        state.update(only);
        let mut moments = replay(state, format, [only]);
        moments.iter_mut().for_each(|moment| {
            moment.amax_used = Some(only);
            moment.events.clear();
        });
        return moments;
    }
    replay(state, format, amaxes.iter().copied())
}

impl Step {
    fn finish(self, parts: Vec<Part>, sources: &[Option<SourceStats>], problems: &mut Vec<Error>) -> Fp8Step {
        let mut recipes = Vec::new();
        for (number, (cast, moment)) in self.casts.iter().enumerate() {
            let mut scales =
                self.members.iter().filter_map(|&member| single_scale(cast, sources[member].as_ref()?));
            let first = scales.next();
            let scale = first.filter(|first| scales.all(|other| other.factor == first.factor));
            let mut stats: Option<BlockStats> = None;
            for found in parts.iter().filter_map(|(_, (found, _))| found.get(number)) {
                match &mut stats {
                    Some(sum) => sum.merge_tensor(found),
                    None => stats = Some(found.clone()),
                }
            }
            // A tensor that cannot be cut so has no elements in these statistics.
            let stats = stats.filter(|stats| stats.format.classes.total() == self.source.elements);
            recipes.push(Fp8Cast { spec: cast.plan.spec, scale, moment: moment.clone(), stats });
        }
        for (_, (_, failures)) in parts {
            problems.extend(failures);
        }
        Fp8Step { source: self.source, recipes }
    }
}
