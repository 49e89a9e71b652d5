//! What each recipe keeps for every parameter.

/// An element type, or a way to store elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: &'static str,
    /// Bytes that 256 elements take: a block of 8-bit states has a float32 scale beside its codes.
    pub bytes_of_256: u64,
}

impl Element {
    /// Bytes that one element takes.
    pub fn bytes(&self) -> f64 {
        self.bytes_of_256 as f64 / 256.0
    }

    /// Bytes that `count` elements take, the last block padded.
    pub fn bytes_of(&self, count: u64) -> u64 {
        let bytes = (u128::from(count) * u128::from(self.bytes_of_256)).div_ceil(256);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// IEEE binary32.
pub const FLOAT32: Element = Element { name: "float32", bytes_of_256: 1024 };
/// bfloat16.
pub const BFLOAT16: Element = Element { name: "bfloat16", bytes_of_256: 512 };
/// IEEE binary16.
pub const FLOAT16: Element = Element { name: "float16", bytes_of_256: 512 };
/// FP8, whose scale is one for a whole tensor.
pub const E4M3: Element = Element { name: "e4m3fn", bytes_of_256: 256 };
/// Codes of 8 bits with a float32 scale for each 256 of them.
pub const INT8: Element = Element { name: "8-bit blocks", bytes_of_256: 256 + 4 };

/// What a term is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What the matrix multiplications read.
    Weights,
    /// Further copies of the weights, in another type or order.
    Copies,
    /// Gradients of the weights.
    Gradients,
    /// The weights that the optimizer updates.
    Master,
    /// The optimizer's running means.
    Moments,
}

/// Every part with its name.
pub const PARTS: &[(Part, &str)] = &[
    (Part::Weights, "weights"),
    (Part::Copies, "copies"),
    (Part::Gradients, "grads"),
    (Part::Master, "master"),
    (Part::Moments, "moments"),
];

impl Part {
    /// The name in [`PARTS`].
    pub fn name(self) -> &'static str {
        PARTS.iter().find(|(part, _)| *part == self).map_or("", |(_, name)| name)
    }
}

/// Something kept for every parameter.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// What it is for.
    pub part: Part,
    /// What it is.
    pub what: &'static str,
    /// How it is stored.
    pub element: Element,
    /// Whether it is there only for a part of the step.
    pub passing: bool,
}

const fn kept(part: Part, what: &'static str, element: Element) -> Term {
    Term { part, what, element, passing: false }
}

const fn passing(part: Part, what: &'static str, element: Element) -> Term {
    Term { part, what, element, passing: true }
}

/// A way to train.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Where the terms come from.
    pub source: &'static str,
    /// What it keeps, in the order that they are made in.
    pub terms: &'static [Term],
    /// What the matrix multiplications read.
    pub compute: Element,
    /// What activations are kept in.
    pub activations: Element,
    /// What the gradients are that are kept.
    pub gradients: Element,
    /// What it leaves open.
    pub doubt: &'static str,
}

impl Recipe {
    /// Whether the optimizer has float32 weights of its own.
    pub fn has_master(&self) -> bool {
        self.terms.iter().any(|term| term.part == Part::Master)
    }
}

const M: Term = kept(Part::Moments, "Adam's first moment", FLOAT32);
const V: Term = kept(Part::Moments, "Adam's second moment", FLOAT32);
const MASTER: Term = kept(Part::Master, "master weights", FLOAT32);

/// Every recipe. All with Adam; SGD with momentum lacks the second moment.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        name: "fp32",
        about: "everything in float32",
        source: "Kingma and Ba 2015, two moments",
        terms: &[kept(Part::Weights, "weights", FLOAT32), kept(Part::Gradients, "gradients", FLOAT32), M, V],
        compute: FLOAT32,
        activations: FLOAT32,
        gradients: FLOAT32,
        doubt: "4 + 4 + 4 + 4 is 16: the 28 bytes for all-FP32 that are often quoted do not follow from these terms.",
    },
    Recipe {
        name: "autocast",
        about: "float32 weights, cast for each matrix multiplication",
        source: "torch.autocast, whose cache of casts is in aten/src/ATen/autocast_mode.cpp",
        terms: &[
            kept(Part::Weights, "weights", FLOAT32),
            passing(Part::Copies, "casts in autocast's cache", BFLOAT16),
            kept(Part::Gradients, "gradients", FLOAT32),
            M,
            V,
        ],
        compute: BFLOAT16,
        activations: BFLOAT16,
        gradients: FLOAT32,
        doubt: "Autocast's cache holds casts of linear and convolution weights only, until its region ends, and the backward \
                pass keeps them. What stays in float32 (normalisations, the residual stream) makes activations larger.",
    },
    Recipe {
        name: "amp-fp16",
        about: "float16 weights, gradients; float32 master weights",
        source: "Rajbhandari et al. 2020 (ZeRO), 3.1: 2 + 2 + 12 bytes, as Apex O2, DeepSpeed, Megatron-LM",
        terms: &[
            kept(Part::Weights, "weights", FLOAT16),
            kept(Part::Gradients, "gradients", FLOAT16),
            MASTER,
            M,
            V,
        ],
        compute: FLOAT16,
        activations: FLOAT16,
        gradients: FLOAT16,
        doubt: "Gradients are cast to float32 for the update, all at once or in pieces: up to 4 bytes a parameter more.",
    },
    Recipe {
        name: "amp-bf16",
        about: "bfloat16 weights, gradients; float32 master weights",
        source: "Rajbhandari et al. 2020 (ZeRO), 3.1, with bfloat16 for float16",
        terms: &[
            kept(Part::Weights, "weights", BFLOAT16),
            kept(Part::Gradients, "gradients", BFLOAT16),
            MASTER,
            M,
            V,
        ],
        compute: BFLOAT16,
        activations: BFLOAT16,
        gradients: BFLOAT16,
        doubt: "Where gradients are accumulated in float32, as Megatron-LM does, they take 4 bytes in place of 2 (--grads float32).",
    },
    Recipe {
        name: "pure-bf16",
        about: "weights, gradients, moments in bfloat16, and no others",
        source: "torch.optim.AdamW on a bfloat16 model",
        terms: &[
            kept(Part::Weights, "weights", BFLOAT16),
            kept(Part::Gradients, "gradients", BFLOAT16),
            kept(Part::Moments, "Adam's first moment", BFLOAT16),
            kept(Part::Moments, "Adam's second moment", BFLOAT16),
        ],
        compute: BFLOAT16,
        activations: BFLOAT16,
        gradients: BFLOAT16,
        doubt: "Small updates of bfloat16 weights are rounded away; stochastic rounding or a Kahan sum (2 bytes more) help.",
    },
    Recipe {
        name: "fp8-te",
        about: "Transformer Engine: amp-bf16 with FP8 copies of weights",
        source: "TransformerEngine at d0067d0: FP8 weights are kept row- and column-wise between micro-batches",
        terms: &[
            kept(Part::Weights, "weights", BFLOAT16),
            kept(Part::Copies, "FP8 weights, row-wise", E4M3),
            kept(Part::Copies, "FP8 weights, column-wise", E4M3),
            kept(Part::Gradients, "gradients", BFLOAT16),
            MASTER,
            M,
            V,
        ],
        compute: E4M3,
        activations: BFLOAT16,
        gradients: BFLOAT16,
        doubt: "The forward pass reads the row-wise copy, the backward pass the column-wise one. Only linear layers have FP8 copies: embeddings and normalisations are counted too high. With FP8 primary \
                weights the 2 bytes of bfloat16 fall away. Inputs of linear layers are kept in FP8, so activations are less; \
                MXFP8 has a scale for each 32 elements beside its codes.",
    },
    Recipe {
        name: "adam-8bit",
        about: "amp-bf16 with Adam's moments in blocks of 8 bits",
        source: "Dettmers et al. 2022, in bitsandbytes with a float32 scale for each 256 values",
        terms: &[
            kept(Part::Weights, "weights", BFLOAT16),
            kept(Part::Gradients, "gradients", BFLOAT16),
            MASTER,
            kept(Part::Moments, "Adam's first moment", INT8),
            kept(Part::Moments, "Adam's second moment", INT8),
        ],
        compute: BFLOAT16,
        activations: BFLOAT16,
        gradients: BFLOAT16,
        doubt: "Moments of tensors below 4096 elements, and often of embeddings, stay in float32. bitsandbytes itself keeps \
                no master weights: of a bfloat16 model the 4 bytes fall away.",
    },
];
