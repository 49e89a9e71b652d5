//! What the rows of a table are.

use clap::builder::TypedValueParser;

use super::args::named;

/// What a row of a table is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Tensor,
    Step,
    Rank,
}

impl By {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Step => "step",
            Self::Rank => "rank",
        }
    }
}

pub(super) fn by_parser() -> impl TypedValueParser<Value = By> {
    named([By::Tensor, By::Step, By::Rank].map(|by| (by.name(), by)))
}
