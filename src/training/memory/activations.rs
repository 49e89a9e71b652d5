//! What the forward pass keeps for the backward pass, of a transformer.
//!
//! Korthikanti et al. 2022 (arXiv:2205.05198), equations 1 to 4, without tensor parallelism: a layer keeps
//! s·b·h·(34 + 5·a·s/h) bytes if elements have two bytes and dropout masks one. In terms of the element size e
//! that is s·b·h·(16·e + 2) for what is as long as the sequence, and a·s²·b·(2·e + 1) for the attention matrix.

use super::recipe::Element;
use crate::error::{Error, Result};

/// The shape of a transformer and of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Width h.
    pub hidden: u64,
    /// Layers L.
    pub layers: u64,
    /// Tokens of a sequence, s.
    pub sequence: u64,
    /// Sequences that a rank works on at once, b.
    pub batch: u64,
    /// Attention heads a; `None` without an attention matrix in memory.
    pub heads: Option<u64>,
    /// Words v, for the logits.
    pub vocabulary: Option<u64>,
}

/// What is computed again in the backward pass instead of being kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recompute {
    /// Nothing.
    None,
    /// The attention matrix.
    Selective,
    /// Everything in a layer.
    Full,
}

/// Every choice, its name and what it means.
pub const RECOMPUTATIONS: &[(&str, Recompute, &str)] = &[
    ("none", Recompute::None, "everything is kept"),
    ("selective", Recompute::Selective, "all but the attention matrix; so does FlashAttention"),
    ("full", Recompute::Full, "each layer's input; one layer at a time is made again"),
];

impl Recompute {
    /// The name in [`RECOMPUTATIONS`].
    pub fn name(self) -> &'static str {
        RECOMPUTATIONS.iter().find(|(_, choice, _)| *choice == self).map_or("", |(name, ..)| name)
    }
}

/// One term of the sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activations {
    /// What it is.
    pub what: &'static str,
    /// The formula with its numbers for this element size.
    pub formula: String,
    /// Bytes on a rank.
    pub bytes: u64,
}

/// The terms for a model whose activations are `element`s.
///
/// # Errors
/// A product beyond 2^64 bytes, or an attention matrix without the number of heads.
pub fn activations(model: &Model, element: Element, recompute: Recompute) -> Result<Vec<Activations>> {
    let e = element.bytes_of_256 / 256;
    let Model { hidden: h, layers, sequence: s, batch: b, heads, vocabulary } = *model;
    let product = |factors: &[u64]| {
        let product = factors.iter().try_fold(1_u64, |product, factor| product.checked_mul(*factor));
        product
            .ok_or_else(|| Error::new("activations of this shape are 2^64 bytes or more: check the numbers"))
    };
    let mut terms = Vec::new();
    let mut term = |what, formula: String, factors: &[u64]| -> Result<()> {
        terms.push(Activations { what, formula, bytes: product(factors)? });
        Ok(())
    };
    let (linear, matrix) = (16 * e + 2, 2 * e + 1);
    let attention = |of: u64, made_of: &str, formula: &str| -> Result<Option<(String, [u64; 6])>> {
        match (recompute, heads) {
            (Recompute::Selective, _) => Ok(None),
            (_, Some(a)) => Ok(Some((format!("{matrix}·a·s²·b{formula}"), [matrix, a, s, s, b, of]))),
            (_, None) => Err(Error::new(format!(
                "{made_of} has an attention matrix a·s²·b: give the number of heads (--heads), or --recompute selective if it \
                 is never in memory, as with FlashAttention"
            ))),
        }
    };
    match recompute {
        Recompute::None | Recompute::Selective => {
            term("layers", format!("{linear}·s·b·h·L"), &[linear, s, b, h, layers])?;
            if let Some((formula, factors)) = attention(layers, "a layer", "·L")? {
                term("attention matrices", formula, &factors)?;
            }
        }
        Recompute::Full => {
            term("inputs of the layers", format!("{e}·s·b·h·L"), &[e, s, b, h, layers])?;
            term("one layer, made again", format!("{linear}·s·b·h"), &[linear, s, b, h])?;
            if let Some((formula, factors)) = attention(1, "the layer that is made again", "")? {
                term("its attention matrix", formula, &factors)?;
            }
        }
    }
    if let Some(v) = vocabulary {
        term("inputs of the last norm and layer", format!("{}·s·b·h", 2 * e), &[2 * e, s, b, h])?;
        term("logits in float32", "4·s·b·v".to_owned(), &[4, s, b, v])?;
    }
    Ok(terms)
}
