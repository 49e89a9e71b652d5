//! From the cast options that were typed to one cast a format.

use super::args::{CastArgs, RoundingArg};
use crate::cast::block::BlockPlan;
use crate::cast::{CastPlan, Rounding, Target};
use crate::error::{Error, Result};
use crate::format::{FormatSpec, Named};

impl CastArgs {
    /// One cast for each format, each format once.
    pub(super) fn targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for named in &self.formats {
            let target = match *named {
                Named::Plain(format) => Target::Plain(self.plan(format)),
                Named::Block(spec) => Target::Block(BlockPlan { spec, scale: self.scale }),
            };
            if !targets.iter().any(|known| known.name() == target.name()) {
                targets.push(target);
            }
        }
        targets
    }

    /// The same for values that have no block.
    ///
    /// # Errors
    /// A block format was asked for.
    pub(super) fn plain_plans(&self) -> Result<Vec<CastPlan>> {
        let plain = |target: Target| {
            let alone = "is a block format, whose elements share a scale; name the format of its elements";
            target.plain().copied().ok_or_else(|| Error::new(format!("{} {alone}", target.name())))
        };
        self.targets().into_iter().map(plain).collect()
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
