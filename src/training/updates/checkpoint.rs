//! Which optimizer state of a checkpoint belongs to which weight.
//!
//! `Optimizer.state_dict` of torch numbers the parameters in the order of its groups; names are only there from
//! torch 2.6 on, if the optimizer was given named parameters. Without names the rule is: the parameters are the
//! floating-point tensors of the model in the order of its `state_dict`, without the buffers of normalisations; of
//! several groups, as most recipes make them, first all matrices and then all vectors. Every shape has to fit, or
//! nothing is concluded.

use std::collections::BTreeMap;

use crate::error::{Error, Result, escape};
use crate::tensor::TensorInfo;

/// What the names of an optimizer's tensors end with.
const LEAVES: [&str; 5] = ["exp_avg", "exp_avg_sq", "step", "momentum_buffer", "max_exp_avg_sq"];
/// Float buffers that a model's `state_dict` has among its parameters.
const BUFFERS: [&str; 2] = ["running_mean", "running_var"];
/// First parts of names that training loops and wrappers put before a parameter's own name.
const WRAPPERS: [&str; 6] = ["module", "_orig_mod", "model", "state_dict", "model_state_dict", "params"];

/// A weight with its optimizer state: positions in the list of the checkpoint's tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The weight.
    pub weight: usize,
    /// Its state by what it is called: `exp_avg`, `exp_avg_sq`, `step`, `momentum_buffer`.
    pub state: BTreeMap<&'static str, usize>,
    /// Number of its parameter group, if the checkpoint says it.
    pub group: Option<usize>,
}

/// Settings of a parameter group that decide what a step does; `None` where the checkpoint does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Group {
    /// Learning rate.
    pub lr: Option<f64>,
    /// Decays of the moments.
    pub betas: Option<(f64, f64)>,
    /// Added to the denominator.
    pub eps: Option<f64>,
    /// Weight decay.
    pub weight_decay: Option<f64>,
    /// Whether it multiplies the weights.
    pub decoupled: Option<bool>,
    /// Whether the largest second moment so far is used.
    pub amsgrad: Option<bool>,
}

/// The optimizer in a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Weights that have state, in the optimizer's order.
    pub parameters: Vec<Parameter>,
    /// Parameter groups.
    pub groups: Vec<Group>,
    /// What was concluded and is not written in the checkpoint.
    pub notices: Vec<String>,
}

/// A parameter's name without what wrappers and dumps put around it.
pub fn canonical(name: &str) -> &str {
    let mut name = name.strip_suffix(".grad").unwrap_or(name);
    while let Some((first, rest)) = name.split_once('.') {
        if !WRAPPERS.contains(&first) {
            break;
        }
        name = rest;
    }
    name
}

/// The state of one parameter, under the key that the optimizer gives it.
struct State<'a> {
    key: &'a str,
    leaves: BTreeMap<&'static str, usize>,
}

impl Checkpoint {
    /// Matches the optimizer state among `tensors` with the weights; `metadata` may have the parameter groups.
    ///
    /// # Errors
    /// There is no optimizer state, there are several optimizers, or which parameter is which cannot be told.
    pub fn new(tensors: &[TensorInfo], metadata: &[(String, String)]) -> Result<Self> {
        let (root, states) = states(tensors)?;
        let under = format!("{root}state.");
        let is_model = |info: &TensorInfo| {
            info.dtype.is_float()
                && !info.name.starts_with(&under)
                && !BUFFERS.iter().any(|buffer| info.name.ends_with(buffer))
        };
        let model: Vec<usize> = (0..tensors.len()).filter(|&position| is_model(&tensors[position])).collect();
        let groups = Groups::new(&root, metadata);
        let settings = groups.settings();
        let mut notices = Vec::new();
        let parameters = if states.iter().all(|state| state.key.parse::<usize>().is_ok()) {
            let names = groups.list("param_names");
            if names.is_empty() {
                let order = by_order(tensors, &states, &model, &groups)?;
                notices.extend(order.notice);
                numbered(&states, &order.weights, &groups)
            } else {
                let weights: Vec<Option<usize>> =
                    names.iter().map(|name| called(tensors, &model, name)).collect();
                check_shapes(tensors, &states, &weights)?;
                numbered(&states, &weights, &groups)
            }
        } else {
            let weights: Vec<Option<usize>> =
                states.iter().map(|state| called(tensors, &model, state.key)).collect();
            let pairs = states.iter().zip(&weights);
            pairs
                .filter_map(|(state, weight)| {
                    Some(Parameter { weight: (*weight)?, state: state.leaves.clone(), group: None })
                })
                .collect()
        };
        Ok(Self { parameters, groups: settings, notices })
    }
}

/// The optimizer's state by parameter, in the order of the checkpoint, and what stands before `state.` in its
/// names.
fn states(tensors: &[TensorInfo]) -> Result<(String, Vec<State<'_>>)> {
    let mut roots: Vec<&str> = Vec::new();
    let mut states: Vec<State<'_>> = Vec::new();
    for (position, info) in tensors.iter().enumerate() {
        let Some((base, leaf)) = info.name.rsplit_once('.') else { continue };
        let Some(leaf) = LEAVES.iter().find(|known| **known == leaf) else { continue };
        let at = if base.starts_with("state.") { Some(0) } else { base.find(".state.").map(|at| at + 1) };
        let Some(at) = at else { continue };
        let (root, key) = (&base[..at], &base[at + "state.".len()..]);
        if !roots.contains(&root) {
            roots.push(root);
        }
        match states.last_mut().filter(|state| state.key == key) {
            Some(state) => drop(state.leaves.insert(leaf, position)),
            None => states.push(State { key, leaves: BTreeMap::from([(*leaf, position)]) }),
        }
    }
    match roots.as_slice() {
        [root] => Ok(((*root).to_owned(), states)),
        [] => Err(Error::new(
            "has no optimizer state (no tensor such as optimizer.state.0.exp_avg): save the optimizer's state_dict \
             too, or give --weights and --grads",
        )),
        [first, second, ..] => Err(Error::new(format!(
            "has more than one optimizer, '{}' and '{}': save one of them with its weights",
            escape(first.trim_end_matches('.')),
            escape(second.trim_end_matches('.'))
        ))),
    }
}

/// The model's tensor that is called `name`, whatever wrappers put before it.
fn called(tensors: &[TensorInfo], model: &[usize], name: &str) -> Option<usize> {
    let exact = model.iter().find(|&&position| tensors[position].name == name);
    let alike = || model.iter().find(|&&position| canonical(&tensors[position].name) == canonical(name));
    exact.or_else(alike).copied()
}

/// Parameters of optimizer state that is numbered.
fn numbered(states: &[State<'_>], weights: &[Option<usize>], groups: &Groups<'_>) -> Vec<Parameter> {
    let parameter = |state: &State<'_>| {
        let id = state.key.parse::<usize>().ok()?;
        let weight = (*weights.get(id)?)?;
        Some(Parameter { weight, state: state.leaves.clone(), group: groups.of.get(&id).copied() })
    };
    states.iter().filter_map(parameter).collect()
}

/// Which weight each numbered parameter is, and how that was concluded.
struct Order {
    weights: Vec<Option<usize>>,
    notice: Option<String>,
}

fn by_order(
    tensors: &[TensorInfo],
    states: &[State<'_>],
    model: &[usize],
    groups: &Groups<'_>,
) -> Result<Order> {
    let last = states.iter().filter_map(|state| state.key.parse::<usize>().ok()).max().unwrap_or(0);
    let total = groups.list("params").len().max(last + 1);
    if model.len() != total {
        return Err(Error::new(format!(
            "its optimizer has {total} parameters, but there are {} other tensors of floating-point numbers: which \
             is which cannot be told; give --weights, --exp-avg and --exp-avg-sq by name",
            model.len()
        )));
    }
    let as_listed: Vec<Option<usize>> = model.iter().copied().map(Some).collect();
    let fault = match check_shapes(tensors, states, &as_listed) {
        Ok(()) => {
            let what = "the optimizer numbers its parameters: they are taken in the order of the model's tensors, \
                        which the shapes fit";
            return Ok(Order { weights: as_listed, notice: Some(what.to_owned()) });
        }
        Err(fault) => fault,
    };
    let is_matrix = |position: &Option<usize>| position.is_some_and(|at| tensors[at].shape.len() > 1);
    let (mut weights, vectors): (Vec<_>, Vec<_>) = as_listed.into_iter().partition(is_matrix);
    weights.extend(vectors);
    if groups.count() > 1 && check_shapes(tensors, states, &weights).is_ok() {
        let what = "the optimizer numbers its parameters: they are taken to be the model's matrices and then its \
                    vectors, each in the order of the model, which the shapes fit";
        return Ok(Order { weights, notice: Some(what.to_owned()) });
    }
    Err(fault)
}

fn check_shapes(tensors: &[TensorInfo], states: &[State<'_>], weights: &[Option<usize>]) -> Result<()> {
    for state in states {
        let weight = state.key.parse::<usize>().ok().and_then(|id| *weights.get(id)?);
        let Some(weight) = weight.map(|position| &tensors[position]) else { continue };
        for (leaf, &position) in &state.leaves {
            let shape = &tensors[position].shape;
            if *leaf != "step" && *shape != weight.shape {
                return Err(Error::new(format!(
                    "parameter {} of its optimizer has an {leaf} of shape {shape:?}, but the tensor in that place, \
                     '{}', has {:?}: which is which cannot be told; give --weights, --exp-avg and --exp-avg-sq by \
                     name",
                    escape(state.key),
                    escape(&weight.name),
                    weight.shape
                )));
            }
        }
    }
    Ok(())
}

/// The parameter groups in a checkpoint's metadata.
struct Groups<'a> {
    /// For each group its settings by name.
    groups: Vec<BTreeMap<&'a str, &'a str>>,
    /// The group of each parameter.
    of: BTreeMap<usize, usize>,
}

impl<'a> Groups<'a> {
    fn new(root: &str, metadata: &'a [(String, String)]) -> Self {
        let prefix = format!("{root}param_groups.");
        let mut groups: Vec<BTreeMap<&str, &str>> = Vec::new();
        let settings = metadata.iter().filter_map(|(key, value)| {
            let (number, name) = key.strip_prefix(&prefix)?.split_once('.')?;
            Some((number.parse::<usize>().ok()?, name, value.as_str()))
        });
        for (number, name, value) in settings {
            // Groups are listed one after the other.
            if number == groups.len() {
                groups.push(BTreeMap::new());
            }
            if let Some(group) = groups.get_mut(number) {
                group.insert(name, value);
            }
        }
        let ids = |group: &BTreeMap<&str, &'a str>| group.get("params").map_or("", |ids| ids).split(',');
        let numbers = groups.iter().enumerate();
        let of = numbers
            .flat_map(|(number, group)| ids(group).filter_map(move |id| Some((id.parse().ok()?, number))));
        let of = of.collect();
        Self { groups, of }
    }

    fn count(&self) -> usize {
        self.groups.len()
    }

    /// A list that every group has a part of.
    fn list(&self, name: &str) -> Vec<&'a str> {
        let parts = self.groups.iter().filter_map(|group| group.get(name));
        parts.flat_map(|part| part.split(',')).filter(|item| !item.is_empty()).collect()
    }

    fn settings(&self) -> Vec<Group> {
        let group = |group: &BTreeMap<&str, &str>| {
            let number = |name: &str| group.get(name).and_then(|text| text.parse().ok());
            let flag = |name: &str| group.get(name).and_then(|text| text.parse().ok());
            let betas = group.get("betas").and_then(|text| text.split_once(','));
            Group {
                lr: number("lr"),
                betas: betas.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))),
                eps: number("eps"),
                weight_decay: number("weight_decay"),
                decoupled: flag("decoupled_weight_decay"),
                amsgrad: flag("amsgrad"),
            }
        };
        self.groups.iter().map(group).collect()
    }
}
