//! From the cast options that were typed to one plan a format.

use super::args::{CastArgs, RoundingArg};
use crate::cast::{CastPlan, Rounding};
use crate::format::FormatSpec;

impl CastArgs {
    /// One cast for each format, each format once.
    pub(super) fn plans(&self) -> Vec<CastPlan> {
        let mut plans: Vec<CastPlan> = Vec::new();
        for &target in &self.formats {
            if !plans.iter().any(|known| known.target.name == target.name) {
                plans.push(self.plan(target));
            }
        }
        plans
    }

    fn plan(&self, target: FormatSpec) -> CastPlan {
        let stack = self.profile.map_or_else(|| CastPlan::new(target), |profile| profile.plan(target));
        CastPlan {
            rounding: match self.rounding {
                None => stack.rounding,
                Some(RoundingArg::Fixed(mode)) => mode,
                Some(RoundingArg::Stochastic) => Rounding::stochastic(&target, self.random_bits),
            },
            seed: self.seed,
            overflow: self.overflow.unwrap_or(stack.overflow),
            flush_subnormal_results: self.ftz,
            flush_subnormal_inputs: self.daz,
            scale: self.scale,
            ..stack
        }
    }
}
