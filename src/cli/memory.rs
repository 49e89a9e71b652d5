//! `amp-inspect memory`: what can be typed, and its wiring.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use regex::Regex;

use super::Outcome;
use super::args::{TextOutputArgs, choices, named};
use super::input_args::InputArgs;
use super::inputs::{Inputs, require};
use super::output::{Outputs, complain_of_all};
use crate::error::{Error, Result};
use crate::report::memory::{Counted, LedgerEntry, MemoryReport};
use crate::training::memory::count::{Role, role};
use crate::training::memory::recipe::{BFLOAT16, FLOAT16, FLOAT32};
use crate::training::memory::{
    Element, Ledger, MAX_PARAMETERS, MAX_RANKS, Model, RECIPES, RECOMPUTATIONS, Recipe, Recompute, SHARDINGS,
    Sharding,
};

/// Where the bytes of training go: weights, gradients, master weights and moments by recipe, divided among
/// ranks, activations by formula, and which tensor has which type at each stage of a step
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect memory --params 7e9 --recipe amp-bf16\n  \
                   amp-inspect memory --params 7e9 -r amp-bf16 --sharding fsdp --ranks 64 --flow\n  \
                   amp-inspect memory --from checkpoint.pt",
    after_help = DEFINITIONS
)]
pub(super) struct MemoryArgs {
    /// Number of parameters: 7e9, 7B, 350M or all digits
    #[arg(long, value_name = "N", value_parser = parameters, conflicts_with = "from", required_unless_present = "from", help_heading = "Model")]
    params: Option<u64>,
    /// Count the parameters of these files (repeatable); optimizer states and buffers in them are told by name and
    /// left out, integers and booleans by type
    #[arg(long, value_name = "PATH", help_heading = "Model")]
    from: Vec<PathBuf>,
    /// With --from, only tensors whose name matches this regular expression
    #[arg(long, value_name = "REGEX", requires = "from", conflicts_with = "params", help_heading = "Model")]
    tensor: Option<Regex>,
    /// With --from, no tensors whose name matches this regular expression
    #[arg(long, value_name = "REGEX", requires = "from", conflicts_with = "params", help_heading = "Model")]
    exclude: Option<Regex>,
    /// Recipes [default: all, side by side]
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',', value_parser = recipe_parser(), long_help = recipes_help(), hide_possible_values = true, help_heading = "Recipe")]
    recipe: Vec<&'static Recipe>,
    /// Keep gradients as this type [default: the recipe's]
    #[arg(long, value_name = "TYPE", value_parser = element_parser(), help_heading = "Recipe")]
    grads: Option<Element>,
    /// What ranks divide among themselves
    #[arg(long, value_name = "WHAT", default_value = "none", value_parser = sharding_parser(), long_help = sharding_help(), hide_possible_values = true, help_heading = "Ranks")]
    sharding: Sharding,
    /// Number of ranks that divide it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MAX_RANKS), help_heading = "Ranks")]
    ranks: u64,
    /// Width of the model, for activations
    #[arg(long, value_name = "H", value_parser = extent(), requires_all = ["layers", "seq", "batch"], help_heading = "Activations")]
    hidden: Option<u64>,
    /// Layers
    #[arg(long, value_name = "L", value_parser = extent(), requires = "hidden", help_heading = "Activations")]
    layers: Option<u64>,
    /// Tokens of a sequence
    #[arg(long, value_name = "S", value_parser = extent(), requires = "hidden", help_heading = "Activations")]
    seq: Option<u64>,
    /// Sequences that a rank works on at once
    #[arg(long, value_name = "B", value_parser = extent(), requires = "hidden", help_heading = "Activations")]
    batch: Option<u64>,
    /// Attention heads, for the attention matrix
    #[arg(long, value_name = "A", value_parser = extent(), requires = "hidden", help_heading = "Activations")]
    heads: Option<u64>,
    /// Words, for the logits
    #[arg(long, value_name = "V", value_parser = extent(), requires = "hidden", help_heading = "Activations")]
    vocab: Option<u64>,
    /// What is kept for the backward pass, and not computed again
    #[arg(long, value_name = "WHAT", default_value = "none", requires = "hidden", value_parser = recompute_parser(), long_help = recompute_help(), hide_possible_values = true, help_heading = "Activations")]
    recompute: Recompute,
    /// Show which tensor has which type at each stage of a step
    #[arg(long, help_heading = "Output")]
    flow: bool,
    /// With --flow, reduce gradients over ranks as this type [default: as they are made]
    #[arg(long, value_name = "TYPE", value_parser = element_parser(), requires = "flow", help_heading = "Output")]
    reduce: Option<Element>,
    #[command(flatten)]
    output: TextOutputArgs,
}

const DEFINITIONS: &str = "\
Activations of a layer (Korthikanti et al. 2022), with e bytes an element and
masks of one byte: s·b·h·(16·e + 2) + a·s²·b·(2·e + 1), which for two bytes is
s·b·h·(34 + 5·a·s/h). GB is 10^9 bytes, GiB 2^30. If shares differ, a rank is one
of those that have most.

Exit code: 0 done, 2 wrong usage or something that could not be read.";

fn parameters(text: &str) -> std::result::Result<u64, String> {
    let wrong = || "a number of parameters is such as 7e9, 7B, 350M or 124439808".to_owned();
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        Some((at, 'b' | 'B' | 'g' | 'G')) => (&text[..at], 1e9),
        Some((at, 't' | 'T')) => (&text[..at], 1e12),
        _ => (text, 1.0),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let number = number * unit;
    if !(1.0..=MAX_PARAMETERS as f64).contains(&number) {
        return Err("from 1 to 10^15 parameters make sense".into());
    }
    if number.fract() != 0.0 && unit == 1.0 {
        return Err(wrong());
    }
    Ok(number.round() as u64)
}

fn extent() -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(1..=1 << 40)
}

fn recipe_parser() -> impl TypedValueParser<Value = &'static Recipe> {
    named(RECIPES.iter().map(|recipe| (recipe.name, recipe)))
}

fn recipes_help() -> String {
    let rows = RECIPES.iter().map(|recipe| (recipe.name, recipe.about));
    format!("Recipes; without any, all side by side:{}", choices(rows))
}

fn element_parser() -> impl TypedValueParser<Value = Element> {
    named([FLOAT32, BFLOAT16, FLOAT16].map(|element| (element.name, element)))
}

fn sharding_parser() -> impl TypedValueParser<Value = Sharding> {
    named(SHARDINGS.iter().map(|(name, sharding, _)| (*name, *sharding)))
}

fn sharding_help() -> String {
    let rows = SHARDINGS.iter().map(|(name, _, meaning)| (*name, *meaning));
    format!("What ranks divide among themselves:{}", choices(rows))
}

fn recompute_parser() -> impl TypedValueParser<Value = Recompute> {
    named(RECOMPUTATIONS.iter().map(|(name, recompute, _)| (*name, *recompute)))
}

fn recompute_help() -> String {
    let rows = RECOMPUTATIONS.iter().map(|(name, _, meaning)| (*name, *meaning));
    format!("What is kept for the backward pass, and not computed again:{}", choices(rows))
}

pub(super) fn run(args: MemoryArgs) -> Result<Outcome> {
    let model = model(&args);
    let model = model.as_ref().map(|model| (model, args.recompute));
    let quiet = args.output.quiet;
    let outputs = Outputs::without_pictures(args.output.into())?;
    outputs.keep_apart(None, &args.from)?;
    let mut read = Read::default();
    let parameters = match args.params {
        Some(parameters) => parameters,
        None => read.count(args.from, args.tensor, args.exclude)?,
    };
    if !quiet {
        outputs.notices(&read.notices);
    }
    let recipes: Vec<&'static Recipe> =
        if args.recipe.is_empty() { RECIPES.iter().collect() } else { args.recipe };
    let ranks = (args.sharding, args.ranks);
    let ledgers = recipes.into_iter().map(|recipe| Ledger::new(recipe, parameters, ranks, args.grads, model));
    let ledgers = ledgers.collect::<Result<Vec<_>>>()?;
    let mut report = MemoryReport::new(&ledgers, model, read.counted);
    report.recipes = ledgers.iter().map(|ledger| LedgerEntry::new(ledger, args.flow, args.reduce)).collect();
    report.notices = read.notices;
    report.problems = read.problems.iter().map(Error::to_string).collect();
    complain_of_all(report.problems.iter());
    let incomplete = !report.problems.is_empty();
    outputs.write(&report, MemoryReport::terminal)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}

fn model(args: &MemoryArgs) -> Option<Model> {
    Some(Model {
        hidden: args.hidden?,
        layers: args.layers?,
        sequence: args.seq?,
        batch: args.batch?,
        heads: args.heads,
        vocabulary: args.vocab,
    })
}

/// What came of reading files.
#[derive(Default)]
struct Read {
    counted: Option<Counted>,
    notices: Vec<String>,
    problems: Vec<Error>,
}

impl Read {
    /// The number of parameters in files.
    fn count(&mut self, paths: Vec<PathBuf>, tensor: Option<Regex>, exclude: Option<Regex>) -> Result<u64> {
        let inputs = Inputs::open(InputArgs {
            paths,
            tensor,
            exclude,
            steps: None,
            ranks: None,
            layout: None,
            dtype: None,
            unscale: None,
            shape: None,
            endian: None,
        });
        let mut counted = Counted::default();
        let mut names = BTreeSet::new();
        let (mut parameters, mut again) = (0_u64, 0_u64);
        for dump in inputs.dumps() {
            counted.files.push(dump.path.display().to_string());
            for info in dump.source.tensors().iter().filter(|info| inputs.wants_tensor(&info.name)) {
                let sum = match role(&info.name) {
                    Role::Optimizer => &mut counted.states,
                    Role::Buffer => &mut counted.buffers,
                    Role::Parameter if !info.dtype.is_float() => &mut counted.not_floats,
                    Role::Parameter if !names.insert(&info.name) => {
                        again += 1;
                        continue;
                    }
                    Role::Parameter => {
                        counted.tensors += 1;
                        counted.bytes = counted.bytes.saturating_add(info.bytes());
                        parameters = parameters.saturating_add(info.elements);
                        continue;
                    }
                };
                sum.0 += 1;
                sum.1 = sum.1.saturating_add(info.elements);
                sum.2 = sum.2.saturating_add(info.bytes());
            }
        }
        self.notices.extend(inputs.notices.iter().cloned());
        if again > 0 {
            self.notices.push(format!(
                "{again} tensors have the name of one in another file and are counted once; if the files are shards of \
                 tensors, the count is too low"
            ));
        }
        self.problems = inputs.problems.clone();
        if parameters == 0 && counted.tensors > 0 {
            return Err(Error::new("the tensors of floating-point numbers have no elements"));
        }
        if parameters == 0 {
            require(&[], &inputs, &inputs.problems)?;
        }
        self.counted = Some(counted);
        Ok(parameters)
    }
}
