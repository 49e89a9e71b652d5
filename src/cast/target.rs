//! What elements are cast to: a plain format or a block format.

use super::CastPlan;
use super::block::BlockPlan;

/// A cast of either kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Every element on its own.
    Plain(CastPlan),
    /// Elements that share a scale with their block.
    Block(BlockPlan),
}

impl Target {
    /// The format's canonical name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Plain(plan) => plan.target.name,
            Self::Block(plan) => plan.spec.name,
        }
    }

    /// The cast, if it is a plain one.
    pub fn plain(&self) -> Option<&CastPlan> {
        match self {
            Self::Plain(plan) => Some(plan),
            Self::Block(_) => None,
        }
    }

    /// The cast, if it is one of blocks.
    pub fn block(&self) -> Option<&BlockPlan> {
        match self {
            Self::Plain(_) => None,
            Self::Block(plan) => Some(plan),
        }
    }
}

impl From<CastPlan> for Target {
    fn from(plan: CastPlan) -> Self {
        Self::Plain(plan)
    }
}

impl From<BlockPlan> for Target {
    fn from(plan: BlockPlan) -> Self {
        Self::Block(plan)
    }
}
