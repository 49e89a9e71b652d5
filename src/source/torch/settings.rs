//! What an optimizer's `state_dict` says of its parameter groups: settings, and which parameters are in which.
//!
//! Source: PyTorch 2.15 `torch/optim/optimizer.py`, `Optimizer.state_dict`: `{"state": …, "param_groups": [{"lr": …,
//! "params": [0, 1, …]}, …]}`, which training loops save somewhere in a dict of theirs.

use crate::source::pickle::{Id, Node, Pickle};

/// Most values looked at on the way to the groups.
const STEPS: usize = 1 << 16;
/// How deep in dicts and lists an optimizer's state is looked for.
const DEPTH: usize = 4;
/// Longest text of a setting, in bytes: names of all parameters of a large model.
const TEXT: usize = 1 << 22;

/// The settings of all parameter groups, under names such as `optimizer.param_groups.0.lr`; lists are joined by
/// commas.
pub(super) fn settings(pickle: &Pickle) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut steps = STEPS;
    search(pickle, pickle.root, "", DEPTH, &mut steps, &mut found);
    found
}

fn search(
    pickle: &Pickle,
    id: Id,
    name: &str,
    depth: usize,
    steps: &mut usize,
    found: &mut Vec<(String, String)>,
) {
    let children: Vec<(String, Id)> = match pickle.node(id) {
        Node::List(items) => items.iter().enumerate().map(|(at, &id)| (at.to_string(), id)).collect(),
        Node::Dict(pairs) => {
            let keyed = |&(key, value): &(Id, Id)| Some((pickle.text(key)?.to_owned(), value));
            pairs.iter().filter_map(keyed).collect()
        }
        _ => return,
    };
    for (key, child) in children {
        if *steps == 0 {
            return;
        }
        *steps -= 1;
        let full = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        match pickle.node(child) {
            Node::List(groups) if key == "param_groups" => {
                for (number, group) in groups.iter().enumerate() {
                    let Node::Dict(pairs) = pickle.node(*group) else { continue };
                    for &(key, value) in pairs {
                        if let (Some(key), Some(text)) = (pickle.text(key), value_text(pickle, value)) {
                            found.push((format!("{full}.{number}.{key}"), text));
                        }
                    }
                }
            }
            _ if depth > 0 => search(pickle, child, &full, depth - 1, steps, found),
            _ => {}
        }
    }
}

/// A number, a flag, a text, or a list of these.
fn value_text(pickle: &Pickle, id: Id) -> Option<String> {
    match pickle.node(id) {
        Node::Int(value) => Some(value.to_string()),
        Node::Float(value) => Some(value.to_string()),
        Node::Bool(value) => Some(value.to_string()),
        Node::Text(text) => Some(text.to_string()),
        Node::List(items) | Node::Tuple(items) => {
            let mut joined = String::new();
            for (number, &item) in items.iter().enumerate() {
                let text = match pickle.node(item) {
                    Node::List(_) | Node::Tuple(_) => return None,
                    _ => value_text(pickle, item)?,
                };
                if joined.len() + text.len() > TEXT {
                    return None;
                }
                joined.push_str(if number > 0 { "," } else { "" });
                joined.push_str(&text);
            }
            Some(joined)
        }
        _ => None,
    }
}
