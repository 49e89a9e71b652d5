//! From the files that were named to weights, each with its gradient or moments and the settings of its step.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::input_args::InputArgs;
use super::super::inputs::{Inputs, Selected};
use super::super::output::complain_of_all;
use super::args::{Optimizer, UpdatesArgs};
use crate::error::{Error, Result, escape};
use crate::pipeline::{self, Task};
use crate::training::updates::checkpoint::{Checkpoint, Group, canonical};
use crate::training::updates::{Rule, Step};

/// A weight with all that its step needs.
pub(super) struct Weight<'a> {
    /// The weight, then the inputs of the rule in its order.
    pub(super) tasks: Vec<Task<'a>>,
    pub(super) name: String,
    pub(super) step: Step,
}

/// The files that were named, opened.
pub(super) struct Files {
    weights: Inputs,
    grads: Option<Inputs>,
    moments: Option<(Inputs, Inputs)>,
    is_checkpoint: bool,
}

/// What was found in them.
pub(super) struct Found<'a> {
    pub(super) weights: Vec<Weight<'a>>,
    pub(super) notices: Vec<String>,
    pub(super) problems: Vec<Error>,
    /// The step in words.
    pub(super) rule: String,
}

/// Tensors of one kind by the name of their parameter.
type ByName<'a> = BTreeMap<String, Task<'a>>;

impl Files {
    pub(super) fn open(args: &UpdatesArgs) -> Self {
        let inputs = |paths: &[PathBuf], unscale| Inputs::open(filters(args, paths, unscale));
        let several = |paths: &[PathBuf]| (!paths.is_empty()).then(|| inputs(paths, None));
        Self {
            weights: match &args.checkpoint {
                // Its moments have other names than the weights: what was asked for is chosen later.
                Some(path) => Inputs::open(InputArgs {
                    tensor: None,
                    exclude: None,
                    ..filters(args, std::slice::from_ref(path), None)
                }),
                None => inputs(&args.weights, None),
            },
            grads: (!args.grads.is_empty()).then(|| inputs(&args.grads, args.unscale)),
            moments: several(&args.exp_avg).zip(several(&args.exp_avg_sq)),
            is_checkpoint: args.checkpoint.is_some(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Inputs> {
        let moments = self.moments.iter().flat_map(|(first, second)| [first, second]);
        std::iter::once(&self.weights).chain(&self.grads).chain(moments)
    }

    /// The files that were opened.
    pub(super) fn paths(&self) -> Vec<String> {
        let dumps = self.all().flat_map(|inputs| inputs.dumps());
        dumps.map(|dump| dump.path.display().to_string()).collect()
    }

    /// Every weight that has what its step needs.
    ///
    /// # Errors
    /// The options do not fit what was given, or no optimizer state can be told apart in the checkpoint.
    pub(super) fn weights(&self, args: &UpdatesArgs) -> Result<Found<'_>> {
        let mut notices: Vec<String> = self.all().flat_map(|inputs| inputs.notices.iter().cloned()).collect();
        let mut problems: Vec<Error> =
            self.all().flat_map(|inputs| inputs.problems.iter().cloned()).collect();
        let grads = match &self.grads {
            Some(grads) => {
                notices.extend(grads.other_scales(args.unscale.unwrap_or(1.0)));
                Some(by_name(grads, &mut notices, &mut problems)?)
            }
            None => None,
        };
        let (entries, settled) = if self.is_checkpoint {
            self.of_checkpoint(args, &mut notices, &mut problems)?
        } else {
            self.of_files(args, &mut notices, &mut problems)?
        };
        let mut weights = Vec::new();
        let mut grads = grads;
        for Entry { name, weight, moments, group, seen } in entries {
            let gradient = match &mut grads {
                Some(grads) => match grads.remove(canonical(&name)) {
                    Some(gradient) => Some(gradient),
                    None => {
                        let what = Error::new("has no gradient of its name");
                        problems.push(what.in_tensor(&weight.info.name).in_file(weight.path));
                        continue;
                    }
                },
                None => None,
            };
            let advances = gradient.is_some();
            let step = settled.step(group.as_ref(), seen + f64::from(u8::from(advances)), advances)?;
            let tasks = std::iter::once(weight).chain(gradient).chain(moments).collect();
            weights.push(Weight { tasks, name, step });
        }
        for gradient in grads.into_iter().flatten().map(|(_, gradient)| gradient) {
            let what = Error::new("is the gradient of no weight that was given");
            problems.push(what.in_tensor(&gradient.info.name).in_file(gradient.path));
        }
        let rule = settled.text(self.grads.is_some(), weights.first().map(|weight| &weight.step));
        Ok(Found { weights, notices, problems, rule })
    }

    /// Weights and moments of the checkpoint.
    fn of_checkpoint(
        &self,
        args: &UpdatesArgs,
        notices: &mut Vec<String>,
        problems: &mut Vec<Error>,
    ) -> Result<(Vec<Entry<'_>>, Settled)> {
        let [dump] = self.weights.dumps() else {
            // What is wrong with it has been noted.
            return Ok((Vec::new(), Settled::new(args, false)));
        };
        let tensors = dump.source.tensors();
        let checkpoint =
            Checkpoint::new(tensors, dump.source.metadata()).map_err(|error| error.in_file(&dump.path))?;
        notices.extend(checkpoint.notices);
        let task = |index: usize| Task {
            source: &*dump.source,
            index,
            info: tensors[index].clone(),
            path: &dump.path,
        };
        let mut entries = Vec::new();
        let mut settled = Settled::new(args, true);
        for parameter in checkpoint.parameters {
            let weight = task(parameter.weight);
            let name = weight.info.name.clone();
            if !wants(args, &name) {
                continue;
            }
            let state = |leaf| parameter.state.get(leaf).map(|&index| task(index));
            let group = parameter.group.and_then(|group| checkpoint.groups.get(group).copied());
            if parameter.state.contains_key("max_exp_avg_sq")
                || group.is_some_and(|group| group.amsgrad == Some(true))
            {
                let what = "was trained with amsgrad, whose step is not computed";
                return Err(Error::new(what).in_tensor(&name).in_file(&dump.path));
            }
            let adam = state("exp_avg").zip(state("exp_avg_sq"));
            if args.optimizer == Some(Optimizer::Sgd) && adam.is_some() && self.grads.is_none() {
                let what =
                    "has Adam's moments and no momentum_buffer: leave out --optimizer, or give --grads";
                return Err(Error::new(what).in_tensor(&name).in_file(&dump.path));
            }
            let Some((first, second)) = adam else {
                let momentum = state("momentum_buffer").filter(|_| self.grads.is_none());
                let Some(momentum) = momentum else {
                    let what = "has neither exp_avg and exp_avg_sq nor, without --grads, a momentum_buffer";
                    problems.push(Error::new(what).in_tensor(&name).in_file(&dump.path));
                    continue;
                };
                settled.momentum = true;
                entries.push(Entry { name, weight, moments: vec![momentum], group, seen: 0.0 });
                continue;
            };
            let seen = match (args.moments_step, state("step")) {
                (Some(step), _) => step as f64,
                (None, Some(step)) => pipeline::first_element(&step)?,
                (None, None) => {
                    let what = "the checkpoint does not say how many steps it has seen: give --moments-step";
                    return Err(Error::new(what).in_tensor(&name).in_file(&dump.path));
                }
            };
            entries.push(Entry { name, weight, moments: vec![first, second], group, seen });
        }
        Ok((entries, settled))
    }

    /// Weights and moments of files of their own.
    fn of_files(
        &self,
        args: &UpdatesArgs,
        notices: &mut Vec<String>,
        problems: &mut Vec<Error>,
    ) -> Result<(Vec<Entry<'_>>, Settled)> {
        let weights = by_name(&self.weights, notices, problems)?;
        let settled = Settled::new(args, self.moments.is_some());
        let Some((first, second)) = &self.moments else {
            if self.grads.is_none() {
                return Err(Error::new(
                    "a step needs --grads, or --exp-avg with --exp-avg-sq, or a --checkpoint",
                ));
            }
            if settled.optimizer != Optimizer::Sgd {
                let name = settled.optimizer.name();
                return Err(Error::new(format!("{name} needs its moments: --exp-avg and --exp-avg-sq")));
            }
            return Ok((weights.into_values().map(Entry::bare).collect(), settled));
        };
        if settled.optimizer == Optimizer::Sgd {
            return Err(Error::new(
                "sgd has no moments: leave out --exp-avg and --exp-avg-sq, or --optimizer",
            ));
        }
        let Some(seen) = args.moments_step else {
            return Err(Error::new(
                "Adam's bias correction needs the step of the moments: give --moments-step",
            ));
        };
        let (mut first, mut second) =
            (by_name(first, notices, problems)?, by_name(second, notices, problems)?);
        let mut entries = Vec::new();
        for (name, weight) in weights {
            let (Some(m), Some(v)) = (first.remove(&name), second.remove(&name)) else {
                let what = Error::new("has no exp_avg and exp_avg_sq of its name");
                problems.push(what.in_tensor(&weight.info.name).in_file(weight.path));
                continue;
            };
            entries.push(Entry { moments: vec![m, v], seen: seen as f64, ..Entry::bare(weight) });
        }
        for moment in first.into_values().chain(second.into_values()) {
            let what = Error::new("is the moment of no weight that was given");
            problems.push(what.in_tensor(&moment.info.name).in_file(moment.path));
        }
        Ok((entries, settled))
    }
}

/// A weight with its moments, before its gradient is looked for.
struct Entry<'a> {
    name: String,
    weight: Task<'a>,
    moments: Vec<Task<'a>>,
    group: Option<Group>,
    /// Steps that the moments have seen.
    seen: f64,
}

impl<'a> Entry<'a> {
    fn bare(weight: Task<'a>) -> Self {
        Self { name: weight.info.name.clone(), weight, moments: Vec::new(), group: None, seen: 0.0 }
    }
}

/// What was asked for, before a parameter group says the rest.
struct Settled {
    optimizer: Optimizer,
    /// Whether the optimizer was asked for.
    asked: bool,
    /// Whether SGD's inputs are momentum buffers.
    momentum: bool,
    lr: Option<f64>,
    weight_decay: Option<f64>,
    betas: Option<(f64, f64)>,
    eps: Option<f64>,
}

impl Settled {
    fn new(args: &UpdatesArgs, has_moments: bool) -> Self {
        let default = if has_moments { Optimizer::AdamW } else { Optimizer::Sgd };
        Self {
            optimizer: args.optimizer.unwrap_or(default),
            asked: args.optimizer.is_some(),
            momentum: false,
            lr: args.lr,
            weight_decay: args.weight_decay,
            betas: args.betas,
            eps: args.eps,
        }
    }

    /// The step of a parameter of `group`, number `number` from 1.
    fn step(&self, group: Option<&Group>, number: f64, advances: bool) -> Result<Step> {
        let group = group.copied().unwrap_or_default();
        let lr = self.lr.or(group.lr.filter(|lr| *lr > 0.0 && lr.is_finite()));
        let Some(lr) = lr else {
            return Err(Error::new("no learning rate is known: give --lr"));
        };
        let (beta1, beta2) = self.betas.or(group.betas).unwrap_or((0.9, 0.999));
        let decoupled = match (self.asked, group.decoupled) {
            (false, Some(decoupled)) => decoupled,
            _ => self.optimizer == Optimizer::AdamW,
        };
        let rule = if self.momentum || self.optimizer == Optimizer::Sgd {
            Rule::Sgd
        } else {
            let eps = self.eps.or(group.eps).unwrap_or(1e-8);
            Rule::Adam { beta1, beta2, eps, step: number, decoupled, advances }
        };
        // Of recorded moments, a decay that is added to the gradient is a part already.
        let in_moments = !advances && !matches!(rule, Rule::Adam { decoupled: true, .. });
        let weight_decay = self.weight_decay.or(group.weight_decay).unwrap_or(0.0);
        Ok(Step { rule, lr, weight_decay: if in_moments { 0.0 } else { weight_decay } })
    }

    /// What is computed, in words.
    fn text(&self, has_grads: bool, step: Option<&Step>) -> String {
        match step.map(|step| step.rule) {
            Some(Rule::Adam { step, decoupled, advances, .. }) => {
                let name = if decoupled { "AdamW" } else { "Adam" };
                if advances {
                    format!("step {step} of {name}: the gradients advance the recorded moments")
                } else {
                    format!("a step of {name} from the moments that step {step} left")
                }
            }
            Some(Rule::Sgd) if !has_grads => "a step of SGD from its momentum buffers".to_owned(),
            _ => "a step of SGD from the gradients".to_owned(),
        }
    }
}

fn filters(args: &UpdatesArgs, paths: &[PathBuf], unscale: Option<f32>) -> InputArgs {
    InputArgs {
        paths: paths.to_vec(),
        tensor: args.tensor.clone(),
        exclude: args.exclude.clone(),
        steps: None,
        ranks: None,
        layout: None,
        dtype: None,
        unscale,
        shape: None,
        endian: None,
    }
}

fn wants(args: &UpdatesArgs, name: &str) -> bool {
    args.tensor.as_ref().is_none_or(|regex| regex.is_match(name))
        && !args.exclude.as_ref().is_some_and(|regex| regex.is_match(name))
}

/// The tensors of dumps by the names of their parameters.
fn by_name<'a>(
    inputs: &'a Inputs,
    notices: &mut Vec<String>,
    problems: &mut Vec<Error>,
) -> Result<ByName<'a>> {
    let (selected, more, faults) = inputs.select();
    notices.extend(more);
    problems.extend(faults);
    let mut tensors = ByName::new();
    for Selected { dump, task, .. } in selected {
        let name = canonical(&inputs.name(dump, &task.info)).to_owned();
        if let Some(first) = tensors.get(&name) {
            let what = format!(
                "'{}' is also in {}: give the dumps of one step",
                escape(&name),
                first.path.display()
            );
            return Err(Error::new(what).in_file(task.path));
        }
        tensors.insert(name, task);
    }
    Ok(tensors)
}

/// Why there is nothing to do: the last problem, after the others have been told.
pub(super) fn nothing(args: &UpdatesArgs, mut problems: Vec<Error>) -> Error {
    match problems.pop() {
        Some(last) => {
            complain_of_all(problems.iter());
            last
        }
        None if args.tensor.is_some() || args.exclude.is_some() => {
            Error::new("no tensor is left to read: check --tensor and --exclude")
        }
        None => Error::new("found no weight with an update"),
    }
}
