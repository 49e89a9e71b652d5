//! What a kernel of the validation brings back, and the rules that it must have kept.

use super::steps::Step;
use crate::error::{Error, Result};

/// What `walk` and `table` bring back.
pub struct Answer {
    /// As many 32-bit words as the buffer has; what was not written is [`POISON`].
    pub words: Vec<u32>,
    /// Steps that there are, whether they fitted or not.
    pub steps: u32,
    /// Inputs that were converted.
    pub inputs: u64,
}

/// What the buffers hold before.
pub(super) const POISON: u32 = 0xa5a5_a5a5;

impl Answer {
    /// The steps that `walk` listed, in order; nothing behind them may have been written.
    ///
    /// # Errors
    /// There are more than fit, or words were written that should not be.
    pub fn list(self) -> Result<Vec<Step>> {
        let count = self.steps as usize;
        let Some(listed) = self.words.get(..2 * count) else {
            let what = format!("{count} changes of the result: it is no step function");
            return Err(Error::new(what));
        };
        if self.words[2 * count..].iter().any(|word| *word != POISON) {
            return Err(Error::new("the kernel wrote behind its list"));
        }
        let mut steps: Vec<Step> = listed.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        steps.sort_unstable();
        Ok(steps)
    }
}
