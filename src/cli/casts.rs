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

    /// What the options asked for that block formats do not do.
    pub(super) fn ignored_by_blocks(&self) -> Option<String> {
        let blocks = self.formats.iter().any(|named| matches!(named, Named::Block(_)));
        let options = [
            (self.profile.is_some(), "--profile"),
            (self.overflow.is_some(), "--overflow"),
            (self.rounding.is_some(), "--rounding"),
            (self.ftz, "--ftz"),
            (self.daz, "--daz"),
        ];
        let given: Vec<&str> =
            options.into_iter().filter_map(|(given, name)| given.then_some(name)).collect();
        (blocks && !given.is_empty()).then(|| {
            format!("block formats always round to nearest even and saturate: without {}", given.join(", "))
        })
    }

    fn plan(&self, target: FormatSpec) -> CastPlan {
        let stack = self.profile.map_or_else(|| CastPlan::new(target), |profile| profile.plan(target));
        CastPlan {
            rounding: match self.rounding {
                None => stack.rounding,
                Some(RoundingArg::Fixed(mode)) => mode,
                Some(RoundingArg::Stochastic) => Rounding::stochastic(&target, self.random_bits),
            },
            seed: self.seed.unwrap_or(0),
            overflow: self.overflow.unwrap_or(stack.overflow),
            flush_subnormal_results: self.ftz,
            flush_subnormal_inputs: self.daz,
            scale: self.scale,
            ..stack
        }
    }
}
