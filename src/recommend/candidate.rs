//! The formats that can be recommended, cheapest first.

use crate::error::{Error, Result, escape};
use crate::format::{self, BlockSpec, FormatSpec};

/// A format with all that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Name in reports and on the command line.
    pub name: &'static str,
    /// What values are cast to.
    pub cast: Cast,
    /// What has to be done for it, in words: `a scale for the tensor`.
    pub needs: &'static str,
}

/// What values are cast to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// A format as it is.
    Plain(&'static str),
    /// A format under the loss scale that suits all gradients together: for gradients alone.
    LossScaled(&'static str),
    /// A block format.
    Block(&'static str),
}

const fn row(name: &'static str, cast: Cast, needs: &'static str) -> Candidate {
    Candidate { name, cast, needs }
}

/// Every candidate, cheapest first; of equal width the simplest first. bfloat16 comes before float16: it needs no loss
/// scale.
pub const CANDIDATES: &[Candidate] = &[
    row("nvfp4", Cast::Block("nvfp4:te"), "a scale for each 16 values and one for the tensor"),
    row("e4m3fn", Cast::Plain("e4m3fn"), "no scale"),
    row("e5m2", Cast::Plain("e5m2"), "no scale"),
    row("e4m3fn@current", Cast::Block("e4m3fn:tensor"), "a scale for the tensor"),
    row("e5m2@current", Cast::Block("e5m2:tensor"), "a scale for the tensor"),
    row("e4m3fn@rowwise", Cast::Block("e4m3fn:row:torchao"), "a scale for each row"),
    row("e4m3fn@block-128x128", Cast::Block("e4m3fn:128x128:pow2"), "a scale for each 128×128 values"),
    row("mxfp8", Cast::Block("mxfp8:rceil"), "a scale for each 32 values"),
    row("bfloat16", Cast::Plain("bfloat16"), "no scale"),
    row("float16", Cast::Plain("float16"), "no scale"),
    row("float16@loss-scale", Cast::LossScaled("float16"), "a loss scale"),
];

impl Candidate {
    /// The element-by-element format, if it is one.
    ///
    /// # Errors
    /// None: every row names a format.
    pub fn plain(&self) -> Result<Option<FormatSpec>> {
        match self.cast {
            Cast::Plain(name) | Cast::LossScaled(name) => format::find(name).map(Some),
            Cast::Block(_) => Ok(None),
        }
    }

    /// The block format, if it is one.
    ///
    /// # Errors
    /// None: every row names a format.
    pub fn block(&self) -> Result<Option<BlockSpec>> {
        match self.cast {
            Cast::Block(name) => format::find_block(name).map(Some),
            Cast::Plain(_) | Cast::LossScaled(_) => Ok(None),
        }
    }

    /// Whether NaN, if there are some, and Inf, if there are some, come back as what they are. In a block they leave no
    /// scale for the values beside them.
    pub fn holds(&self, nan: bool, inf: bool) -> bool {
        match self.plain() {
            Ok(Some(format)) => (!nan || format.nan_code(false).is_some()) && (!inf || format.infinities),
            _ => !nan && !inf,
        }
    }

    /// Bits that an element takes in memory, with its share of a block's scale.
    pub fn bits(&self) -> f64 {
        if let Ok(Some(spec)) = self.block() {
            let share = spec.shape.elements().map_or(0.0, |n| f64::from(spec.scale.bits) / f64::from(n));
            return f64::from(spec.element.bits) + share;
        }
        self.plain().ok().flatten().map_or(32.0, |format| f64::from(format.bits))
    }
}

/// The candidate called `name`.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static Candidate> {
    CANDIDATES.iter().find(|candidate| candidate.name == name).ok_or_else(|| {
        let names: Vec<&str> = CANDIDATES.iter().map(|candidate| candidate.name).collect();
        Error::new(format!("'{}' cannot be recommended; these can: {}", escape(name), names.join(", ")))
    })
}
