//! The sum: each term, whole and on one rank.

use super::activations::{Activations, Model, Recompute, activations};
use super::recipe::{Element, FLOAT32, Part, Recipe};
use crate::error::{Error, Result};

/// Most parameters that are taken for meant.
pub const MAX_PARAMETERS: u64 = 1_000_000_000_000_000;

/// Most ranks that are taken for meant.
pub const MAX_RANKS: u64 = 10_000_000;

/// What ranks divide among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharding {
    /// Nothing: every rank has everything (DDP).
    None,
    /// The optimizer's states.
    Zero1,
    /// And gradients.
    Zero2,
    /// And weights.
    Zero3,
    /// All, where the shards are the master weights, and low-precision weights are there only while gathered.
    Fsdp,
}

/// Every choice, its name and what is divided.
pub const SHARDINGS: &[(&str, Sharding, &str)] = &[
    ("none", Sharding::None, "every rank has everything, as in DDP"),
    ("zero1", Sharding::Zero1, "master weights and moments are divided"),
    ("zero2", Sharding::Zero2, "and gradients"),
    ("zero3", Sharding::Zero3, "and weights"),
    ("fsdp", Sharding::Fsdp, "all; its shards are the float32 master weights"),
];

impl Sharding {
    /// The name in [`SHARDINGS`].
    pub fn name(self) -> &'static str {
        SHARDINGS.iter().find(|(_, choice, _)| *choice == self).map_or("", |(name, ..)| name)
    }

    /// Whether ranks divide this part.
    pub fn divides(self, part: Part) -> bool {
        match part {
            Part::Master | Part::Moments => self != Self::None,
            Part::Gradients => matches!(self, Self::Zero2 | Self::Zero3 | Self::Fsdp),
            Part::Weights | Part::Copies => matches!(self, Self::Zero3 | Self::Fsdp),
        }
    }

    /// Whether weights have to be gathered before they are used.
    pub fn gathers(self) -> bool {
        self.divides(Part::Weights)
    }
}

/// A term with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is for.
    pub part: Part,
    /// What it is.
    pub what: &'static str,
    /// How it is stored.
    pub element: Element,
    /// Bytes for all parameters.
    pub bytes: u64,
    /// Whether ranks divide it.
    pub divided: bool,
    /// Bytes on the rank that has most.
    pub rank_bytes: u64,
    /// Whether it is there only for a part of the step.
    pub passing: bool,
}

/// What a recipe needs.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// The recipe.
    pub recipe: &'static Recipe,
    /// What ranks divide.
    pub sharding: Sharding,
    /// How many ranks there are.
    pub ranks: u64,
    /// How many parameters there are.
    pub parameters: u64,
    /// What is kept for the parameters, and what is there for a while.
    pub lines: Vec<Line>,
    /// What activations take on a rank; empty if no shape was given.
    pub activations: Vec<Activations>,
}

impl Ledger {
    /// The terms of `recipe` for so many parameters; gradients are kept as `gradients` if that is given.
    ///
    /// # Errors
    /// Absurd numbers, or activations that cannot be told.
    pub fn new(
        recipe: &'static Recipe,
        parameters: u64,
        (sharding, ranks): (Sharding, u64),
        gradients: Option<Element>,
        model: Option<(&Model, Recompute)>,
    ) -> Result<Self> {
        if parameters == 0 || parameters > MAX_PARAMETERS {
            return Err(Error::new(format!("{parameters} parameters: from 1 to 10^15 make sense")));
        }
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(Error::new(format!("{ranks} ranks: from 1 to 10^7 make sense")));
        }
        let fsdp = sharding == Sharding::Fsdp && recipe.has_master();
        let mut lines = Vec::new();
        for term in recipe.terms {
            // The shards of FSDP are the master weights: there are no other weights but while gathered.
            let element = match term.part {
                Part::Weights | Part::Copies if fsdp => continue,
                // The gradient of a float32 shard is float32, whatever it was reduced in.
                Part::Gradients if fsdp => gradients.unwrap_or(FLOAT32),
                Part::Gradients => gradients.unwrap_or(term.element),
                _ => term.element,
            };
            // What is cast for a while is cast from weights that have been gathered.
            let divided = sharding.divides(term.part) && !term.passing;
            let share = if divided { parameters.div_ceil(ranks) } else { parameters };
            lines.push(Line {
                part: term.part,
                what: term.what,
                element,
                bytes: element.bytes_of(parameters),
                divided,
                rank_bytes: element.bytes_of(share),
                passing: term.passing,
            });
        }
        if let Some((model, _)) = model.filter(|_| sharding.gathers() && ranks > 1) {
            let element =
                recipe.terms.iter().find(|term| term.part == Part::Weights).map(|term| term.element);
            let element = element.unwrap_or(FLOAT32);
            // The layer at work and the next one, which is gathered meanwhile.
            let gathered = parameters.div_ceil(model.layers.max(1)).saturating_mul(2).min(parameters);
            lines.push(Line {
                part: Part::Copies,
                what: "gathered, two layers",
                element,
                bytes: element.bytes_of(gathered),
                divided: false,
                rank_bytes: element.bytes_of(gathered),
                passing: true,
            });
        }
        let activations = match model {
            Some((model, recompute)) => activations(model, recipe.activations, recompute)?,
            None => Vec::new(),
        };
        Ok(Self { recipe, sharding, ranks, parameters, lines, activations })
    }

    /// Bytes a parameter that are kept, over all ranks but without their copies of it.
    pub fn bytes_per_parameter(&self) -> f64 {
        self.lines.iter().filter(|line| !line.passing).map(|line| line.element.bytes()).sum()
    }

    /// Bytes kept for all parameters.
    pub fn kept(&self) -> u64 {
        self.sum(|line| if line.passing { 0 } else { line.bytes })
    }

    /// Bytes kept on the rank that has most.
    pub fn kept_on_rank(&self) -> u64 {
        self.sum(|line| if line.passing { 0 } else { line.rank_bytes })
    }

    /// Bytes of activations on a rank.
    pub fn activation_bytes(&self) -> u64 {
        self.activations.iter().fold(0, |sum: u64, term| sum.saturating_add(term.bytes))
    }

    /// Everything on the rank that has most, with what is there for a while.
    pub fn peak_on_rank(&self) -> u64 {
        self.sum(|line| line.rank_bytes).saturating_add(self.activation_bytes())
    }

    fn sum(&self, of: impl Fn(&Line) -> u64) -> u64 {
        self.lines.iter().fold(0, |sum: u64, line| sum.saturating_add(of(line)))
    }
}
