//! The recipes by name: each a block format, or delayed scaling.

use super::delayed::Variant;
use super::role::Role;
use crate::error::{Error, Result, escape};
use crate::format::{BlockSpec, find_block};

/// A way to scale FP8 and FP4.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Name on the command line and in reports.
    pub name: &'static str,
    /// What its scales follow from.
    pub kind: Kind,
    /// The elements that its framework takes if nothing else is asked for.
    pub elements: Elements,
    /// Whether `all` means it too.
    pub usual: bool,
    /// What it is, and whose.
    pub about: &'static str,
}

/// What the scales follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The values themselves: the block format with this before and this after the element format's name.
    Values(&'static str, &'static str),
    /// The steps before.
    Delayed(Variant),
}

/// Which element format a tensor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// e4m3fn.
    E4m3,
    /// e5m2.
    E5m2,
    /// e4m3fn for activations and weights, e5m2 for gradients.
    Hybrid,
    /// The recipe's only one, e2m1fn.
    Fixed,
}

/// What can be asked for, by name.
pub const FORMATS: &[(&str, Elements, &str)] = &[
    ("e4m3fn", Elements::E4m3, "for every tensor"),
    ("e5m2", Elements::E5m2, "for every tensor"),
    ("hybrid", Elements::Hybrid, "e4m3fn for activations and weights, e5m2 for gradients"),
];

const fn values(
    name: &'static str,
    before: &'static str,
    after: &'static str,
    elements: Elements,
    about: &'static str,
) -> Recipe {
    Recipe { name, kind: Kind::Values(before, after), elements, usual: true, about }
}

const fn rare(recipe: Recipe) -> Recipe {
    Recipe { usual: false, ..recipe }
}

const fn delayed(name: &'static str, variant: Variant, about: &'static str) -> Recipe {
    Recipe { name, kind: Kind::Delayed(variant), elements: Elements::Hybrid, usual: true, about }
}

/// Every recipe. A name before the colon alone means all usual ones that begin so.
pub const RECIPES: &[Recipe] = &[
    values("current", "", ":tensor", Elements::Hybrid, "a scale a tensor (Transformer Engine)"),
    rare(values("current:pow2", "", ":tensor:pow2", Elements::Hybrid, "cut to a power of two")),
    rare(values("current:torchao", "", ":tensor:torchao", Elements::Hybrid, "amax at least 1e-12 (torchao)")),
    rare(values(
        "current:torchao-pow2",
        "",
        ":tensor:torchao-pow2",
        Elements::Hybrid,
        "a power of two by logarithm (torchao)",
    )),
    delayed("delayed", Variant::Fused, "from the steps before (fused kernel)"),
    rare(delayed("delayed:te-single", Variant::Single, "single-tensor kernel")),
    rare(delayed("delayed:te-python", Variant::Python, "NVTE_UNFUSED_FP8_UPDATE=1")),
    rare(delayed("delayed:jax", Variant::Jax, "Transformer Engine for JAX")),
    values("rowwise", "", ":row:torchao", Elements::E4m3, "a scale a row (torchao)"),
    rare(values("rowwise:pow2", "", ":row:torchao-pow2", Elements::E4m3, "a power of two (torchao)")),
    values("block-1x128", "", ":1x128:pow2", Elements::E4m3, "1×128 blocks (Float8BlockScaling)"),
    rare(values("block-1x128:f32", "", ":1x128", Elements::E4m3, "scales in f32")),
    rare(values("block-1x128:deepgemm", "", ":1x128:deepgemm", Elements::E4m3, "amax at least 1e-4")),
    rare(values(
        "block-1x128:deepgemm-ue8m0",
        "",
        ":1x128:deepgemm-ue8m0",
        Elements::E4m3,
        "scales rounded up to powers of two",
    )),
    values("block-128x128", "", ":128x128:pow2", Elements::E4m3, "128×128 blocks (Float8BlockScaling)"),
    rare(values("block-128x128:f32", "", ":128x128", Elements::E4m3, "scales in f32")),
    values("mxfp8:floor", "mxfp8_", ":floor", Elements::E4m3, "32 values, scale rounded down (OCP MX)"),
    values("mxfp8:ceil", "mxfp8_", ":ceil", Elements::E4m3, "scale rounded up"),
    values("mxfp8:even", "mxfp8_", ":even", Elements::E4m3, "amax rounded first, then down"),
    values("mxfp8:rceil", "mxfp8_", ":rceil", Elements::E4m3, "amax/max rounded up (NVIDIA)"),
    values("nvfp4:te", "nvfp4:te", "", Elements::Fixed, "16 values, e4m3 scales (NVIDIA)"),
    values("nvfp4:torchao", "nvfp4:torchao", "", Elements::Fixed, "16 values, scales from 2^-6 (torchao)"),
];

/// The recipes that `name` stands for: one, or the usual ones of a family (`mxfp8`), or all usual ones (`all`).
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<Vec<&'static Recipe>> {
    if name == "all" {
        return Ok(RECIPES.iter().filter(|recipe| recipe.usual).collect());
    }
    if let Some(exact) = RECIPES.iter().find(|recipe| recipe.name == name) {
        return Ok(vec![exact]);
    }
    let family = |recipe: &&Recipe| recipe.usual && recipe.name.split(':').next() == Some(name);
    let family: Vec<_> = RECIPES.iter().filter(family).collect();
    if family.is_empty() {
        let names: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
        return Err(Error::new(format!("no recipe '{}'; there are {}, all", escape(name), names.join(", "))));
    }
    Ok(family)
}

/// The block format that `text`, an element format and a recipe (`e4m3fn@current`, `e5m2@block-1x128`), stands for.
///
/// # Errors
/// There is no such recipe or format, or the recipe looks at steps before, or at no format of choice.
pub fn find_format(text: &str) -> Result<BlockSpec> {
    let (element, name) = text.split_once('@').unwrap_or((text, ""));
    let refuse = |why: &str| Error::new(format!("'{}': {why}", escape(text)));
    let recipe = RECIPES.iter().find(|recipe| recipe.name == name);
    match recipe.map(|recipe| recipe.kind) {
        Some(Kind::Values(before, after)) if !after.is_empty() => {
            find_block(&format!("{before}{element}{after}"))
        }
        Some(Kind::Values(..)) => Err(refuse("the recipe has one format, whose name says it all")),
        Some(Kind::Delayed(_)) => {
            Err(refuse("delayed scaling looks at the steps before; see amp-inspect fp8"))
        }
        None => find(name).and(Err(refuse("name one recipe"))),
    }
}

impl Recipe {
    /// The block format that a tensor of this role gets, with `asked` elements if the recipe has a choice.
    ///
    /// # Errors
    /// None: every row of [`RECIPES`] names a block format.
    pub fn block(&self, role: Role, asked: Option<Elements>) -> Result<BlockSpec> {
        let elements =
            if self.elements == Elements::Fixed { self.elements } else { asked.unwrap_or(self.elements) };
        let element = match (elements, role) {
            (Elements::Fixed, _) => "",
            (Elements::E5m2, _) | (Elements::Hybrid, Role::Gradient) => "e5m2",
            (Elements::E4m3 | Elements::Hybrid, _) => "e4m3fn",
        };
        match self.kind {
            Kind::Values(before, after) => find_block(&format!("{before}{element}{after}")),
            Kind::Delayed(_) => find_block(&format!("{element}:tensor")),
        }
    }

    /// The variant of delayed scaling, if it is that.
    pub fn variant(&self) -> Option<Variant> {
        match self.kind {
            Kind::Delayed(variant) => Some(variant),
            Kind::Values(..) => None,
        }
    }
}
