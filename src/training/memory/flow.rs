//! Which tensor has which type at each stage of a step: so that nobody has to guess what is cast where.

use super::ledger::{Ledger, Sharding};
use super::recipe::{Element, FLOAT32, Part};

/// A stage of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// When.
    pub stage: &'static str,
    /// Which tensor.
    pub tensor: &'static str,
    /// Its type.
    pub element: &'static str,
    /// Bytes an element; `None` where types differ.
    pub bytes_each: Option<f64>,
    /// Bytes on a rank, kept or sent; `None` for activations without a shape.
    pub bytes: Option<u64>,
    /// How many ranks divide it, if any do.
    pub divided_by: Option<u64>,
    /// What is said about it.
    pub note: String,
}

/// The stages of a step, in order. Gradients are reduced as `reduce`, if that is given, else as they are made.
pub fn flow(ledger: &Ledger, reduce: Option<Element>) -> Vec<Stage> {
    let recipe = ledger.recipe;
    let line = |part: Part| ledger.lines.iter().find(|line| line.part == part && !line.passing);
    let (all, ranks, sharding) = (ledger.parameters, ledger.ranks, ledger.sharding);
    let weights =
        recipe.terms.iter().find(|term| term.part == Part::Weights).map_or(FLOAT32, |term| term.element);
    // Without master weights the matrix multiplications of autocast read casts, and gradients come back as those.
    let autocast = weights != recipe.compute && !recipe.has_master();
    let made = if autocast { recipe.compute } else { recipe.gradients };
    let master = line(Part::Master);
    let mut stages = Vec::new();
    // `of` is the part whose division among ranks it shares; without it, every rank has all or sends all.
    let mut stage = |stage, tensor, element: Element, of: Option<Part>, note: String| {
        let divided_by = of.filter(|part| ranks > 1 && sharding.divides(*part)).map(|_| ranks);
        let count = all.div_ceil(divided_by.unwrap_or(1));
        let (bytes_each, bytes) = (Some(element.bytes()), Some(element.bytes_of(count)));
        stages.push(Stage { stage, tensor, element: element.name, bytes_each, bytes, divided_by, note });
    };
    let over = format!("over {ranks} ranks");
    let gathers = sharding.gathers() && ranks > 1;
    match master {
        Some(master) if gathers => {
            stage("start", "master weights", master.element, Some(Part::Master), String::new());
        }
        Some(_) => stage("start", "weights", weights, None, "cast from the master weights".into()),
        None => stage("start", "weights", weights, Some(Part::Weights), String::new()),
    }
    if gathers {
        let cast = if master.is_some() { ", cast first" } else { "" };
        stage(
            "all-gather",
            "weights",
            weights,
            None,
            format!("{over}{cast}; layer by layer, forward and backward"),
        );
    }
    for term in recipe.terms.iter().filter(|term| term.part == Part::Copies) {
        stage("cast", term.what, term.element, None, "of linear layers, once a step".into());
    }
    let products = match recipe.compute == FLOAT32 {
        true => "in TF32 only if that is allowed",
        false => "products are summed in float32",
    };
    stage("matmul", "inputs and weights", recipe.compute, None, products.to_owned());
    let others = if autocast { "of autocast's float32 list" } else { "inside their kernels" };
    stage("float32 ops", "softmax, norms, loss", FLOAT32, None, others.to_owned());
    stage("kept", "activations", recipe.activations, None, "for the backward pass".into());
    stage("backward", "gradients", made, None, "layer by layer".into());
    let reduced = reduce.unwrap_or(made);
    if ranks > 1 {
        let how = if sharding.divides(Part::Gradients) { "reduce-scatter" } else { "all-reduce" };
        let cast = if reduced == made { "" } else { ", cast first" };
        stage(how, "gradients", reduced, None, format!("{over}{cast}"));
    }
    if let Some(gradients) = line(Part::Gradients) {
        stage("kept", "gradients", gradients.element, Some(Part::Gradients), String::new());
    }
    for term in recipe.terms.iter().filter(|term| term.part == Part::Moments) {
        stage("optimizer", term.what, term.element, Some(Part::Moments), String::new());
    }
    let divided = sharding != Sharding::None && ranks > 1;
    match master {
        Some(master) => {
            let note = "updated from gradients cast to float32".to_owned();
            stage("optimizer", "master weights", master.element, Some(Part::Master), note);
        }
        None => stage("optimizer", "weights", weights, Some(Part::Moments), "updated in place".into()),
    }
    if divided && !gathers {
        let cast = if master.is_some() { ", cast first" } else { "" };
        stage("all-gather", "weights", weights, None, format!("{over}{cast}"));
    }
    // What is multiplied passes by; what is kept of it is known from the shape of the model alone.
    let activations = (!ledger.activations.is_empty()).then(|| ledger.activation_bytes());
    for stage in &mut stages {
        match stage.tensor {
            "inputs and weights" | "softmax, norms, loss" => stage.bytes = None,
            "activations" => stage.bytes = activations,
            _ => {}
        }
    }
    stages
}
