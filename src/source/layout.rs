//! Where in a run a dump is from, as its path says: `run/step00100/rank3/mlp.weight.grad.npy`.
//!
//! Paths are searched for the words that the tools write (PyTorch users, Megatron-LM, msprobe, Transformer
//! Engine, SGLang, vLLM, TE-JAX), from the file's name up to the folders; or a template says where they are.

use std::path::Path;

use regex::Regex;

use crate::error::{Error, Result};

/// Words before the number of a step, in lower case.
const STEPS: &[&str] =
    &["global_step", "globalstep", "steps", "step", "iteration", "iter", "checkpoint", "pass"];
/// Words before the number of a rank.
const RANKS: &[&str] = &["mp_rank", "rank", "worker", "proc", "gpu"];

/// Where in a run a file is from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of the training step.
    pub step: Option<u64>,
    /// Number of the process that wrote it; of Megatron's `mp_rank_01_002` the first.
    pub rank: Option<u64>,
    /// The file's name without these: what it holds, such as `grads`.
    pub group: String,
}

/// A template of paths, such as `{step}/rank{rank}/{name}.npy`.
#[derive(Clone, Debug)]
pub struct Layout {
    text: String,
    regex: Regex,
}

impl Layout {
    /// Reads a template: `{step}` and `{rank}` are numbers, `{name}` is what the file holds, `*` is anything in
    /// one part of the path. It is compared with the end of each path.
    ///
    /// # Errors
    /// A word in braces that is none of these, or that occurs twice.
    pub fn parse(text: &str) -> Result<Self> {
        let mut pattern = String::from("(?:^|/)");
        let mut rest = text;
        while !rest.is_empty() {
            let plain = rest.find(['{', '*']).unwrap_or(rest.len());
            pattern.push_str(&regex::escape(&rest[..plain]));
            rest = &rest[plain..];
            if let Some(after) = rest.strip_prefix('*') {
                pattern.push_str("[^/]*");
                rest = after;
            } else if !rest.is_empty() {
                let (word, after) =
                    rest[1..].split_once('}').ok_or_else(|| Error::new("a brace is not closed"))?;
                pattern.push_str(match word {
                    "step" => r"(?<step>\d{1,18})",
                    "rank" => r"(?<rank>\d{1,18})",
                    "name" => "(?<name>[^/]+?)",
                    _ => {
                        return Err(Error::new(
                            "the words in braces are {step}, {rank} and {name}, each once",
                        ));
                    }
                });
                rest = after;
            }
        }
        pattern.push('$');
        let twice = |_| Error::new("the words in braces are {step}, {rank} and {name}, each once");
        Ok(Self { text: text.to_owned(), regex: Regex::new(&pattern).map_err(twice)? })
    }

    /// The template as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place of the file `path`; `None` if the template does not fit.
    pub fn place(&self, path: &Path) -> Option<Place> {
        let text = path.to_string_lossy().replace('\\', "/");
        let found = self.regex.captures(&text)?;
        let number = |name| found.name(name).and_then(|digits| digits.as_str().parse().ok());
        let group = match found.name("name") {
            Some(name) => name.as_str().to_owned(),
            None => stem(path),
        };
        Some(Place { step: number("step"), rank: number("rank"), group })
    }
}

impl Place {
    /// The place of the file `path`, from the words in it.
    pub fn of(path: &Path) -> Self {
        let stem = stem(path);
        if let Some(place) = tagged(&stem) {
            return place;
        }
        let mut group = stem.clone();
        let mut number = |words: &[&str]| {
            if let Some(token) = find(&group, words) {
                group = without(&group, token.start, token.end);
                return Some(token.number);
            }
            let folders = path.parent().into_iter().flat_map(Path::ancestors);
            let names = folders.filter_map(|folder| folder.file_name());
            names.filter_map(|name| find(&name.to_string_lossy(), words)).map(|token| token.number).next()
        };
        let (step, rank) = (number(STEPS), number(RANKS));
        Self { step, rank, group }
    }
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == ".metadata" {
        return String::new();
    }
    let name = name.strip_suffix(".index.json").unwrap_or(&name);
    Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// SGLang's names: `step=3___rank=0___dump_index=12___name=layer_start___layer_id=2`.
fn tagged(stem: &str) -> Option<Place> {
    let tags: Option<Vec<(&str, &str)>> = stem.split("___").map(|tag| tag.split_once('=')).collect();
    let tags = tags.filter(|tags| tags.len() > 1)?;
    let get = |key| tags.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    let number = |key| get(key).and_then(|value| value.parse().ok());
    let layer = get("layer_id").map_or(String::new(), |layer| format!(".{layer}"));
    Some(Place { step: number("step"), rank: number("rank"), group: format!("{}{layer}", get("name")?) })
}

/// A word with its number, in a name.
struct Token {
    start: usize,
    end: usize,
    number: u64,
}

/// Finds one of `words` with digits behind it, neither part of a longer word or number.
fn find(name: &str, words: &[&str]) -> Option<Token> {
    let lower = name.to_ascii_lowercase();
    let bytes = lower.as_bytes();
    for start in 0..bytes.len() {
        if start > 0 && bytes[start - 1].is_ascii_alphanumeric() {
            continue;
        }
        let Some(word) = words.iter().find(|word| bytes[start..].starts_with(word.as_bytes())) else {
            continue;
        };
        let mut first = start + word.len();
        first += usize::from(bytes.get(first).is_some_and(|byte| b"_=-.".contains(byte)));
        let digits = bytes[first..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = first + digits;
        if bytes.get(end).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        if let Ok(number) = lower[first..end].parse() {
            return Some(Token { start, end, number });
        }
    }
    None
}

/// A name without a part of it, and without the separator that this leaves over.
fn without(name: &str, start: usize, end: usize) -> String {
    let separates = |c: char| matches!(c, '_' | '.' | '-' | '=' | ' ');
    let (before, after) =
        (name[..start].trim_end_matches(separates), name[end..].trim_start_matches(separates));
    let between = if before.is_empty() || after.is_empty() { "" } else { "_" };
    format!("{before}{between}{after}")
}
