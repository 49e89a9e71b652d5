//! From a graph of values to names: `model.0.weight`.

use std::collections::HashSet;

use super::{Id, Node, Pickle};
use crate::error::{Error, Result};
use crate::source::limits;

/// Deepest nesting that is followed.
const DEPTH: usize = 1000;
/// Longest name, in bytes.
const NAME: usize = 1 << 16;

/// A value in another, and what the name of the outer is continued with; `None` leaves the name as it is.
pub(in crate::source) struct Child {
    pub(in crate::source) segment: Option<String>,
    pub(in crate::source) id: Id,
}

/// What a reader makes of a Python object.
pub(in crate::source) enum Look {
    /// What is looked for.
    Leaf,
    /// A container of these.
    Children(Vec<Child>),
}

/// Calls `found` with the name and number of each leaf, in the order of the pickle. Lists, tuples, sets and
/// dicts are entered; of other values `look` says what they are. Values that are shared by several containers
/// are found under each of their names. Returns what could not be followed.
///
/// # Errors
/// More than [`limits::TENSORS`] leaves, or containers that refer to each other so often that there would be
/// no end.
pub(in crate::source) fn walk(
    pickle: &Pickle,
    look: impl Fn(Id) -> Look,
    mut found: impl FnMut(&str, Id),
) -> Result<Vec<Error>> {
    let mut problems = Vec::new();
    let mut name = String::new();
    let mut path: HashSet<Id> = HashSet::new();
    let mut frames = vec![Frame::new(None, 0, vec![Child { segment: None, id: pickle.root }])];
    let (mut steps, mut leaves) = (0, 0);
    let most = 16 * pickle.nodes().len() + (1 << 20);
    while let Some(frame) = frames.last_mut() {
        name.truncate(frame.name_len);
        let Some(child) = frame.children.next() else {
            if let Some(id) = frame.id {
                path.remove(&id);
            }
            frames.pop();
            continue;
        };
        steps += 1;
        if steps > most {
            return Err(Error::new("the pickle's containers refer to each other without end"));
        }
        if let Some(segment) = &child.segment {
            let dot = if name.is_empty() { "" } else { "." };
            if name.len() + segment.len() >= NAME {
                problems.push(Error::new(format!("a name is longer than {NAME} bytes")));
                continue;
            }
            name.push_str(dot);
            name.push_str(segment);
        }
        let children = match pickle.node(child.id) {
            Node::List(items) | Node::Tuple(items) | Node::Set(items) => numbered(items),
            Node::Dict(pairs) => keyed(pickle, pairs),
            Node::Object(_) => match look(child.id) {
                Look::Children(children) => children,
                Look::Leaf => {
                    leaves += 1;
                    if leaves > limits::TENSORS {
                        let what = format!("the pickle names more than {} tensors", limits::TENSORS);
                        return Err(Error::new(what));
                    }
                    found(&name, child.id);
                    continue;
                }
            },
            _ => continue,
        };
        if frames.len() == DEPTH {
            problems.push(Error::new(format!("the pickle nests its containers more than {DEPTH} deep")));
            continue;
        }
        if !path.insert(child.id) {
            problems.push(Error::new("the pickle has a container that contains itself").in_tensor(&name));
            continue;
        }
        frames.push(Frame::new(Some(child.id), name.len(), children));
    }
    Ok(problems)
}

/// A container on the way to the current value.
struct Frame {
    id: Option<Id>,
    /// Length of its name.
    name_len: usize,
    children: std::vec::IntoIter<Child>,
}

impl Frame {
    fn new(id: Option<Id>, name_len: usize, children: Vec<Child>) -> Self {
        Self { id, name_len, children: children.into_iter() }
    }
}

/// Items under their numbers.
pub(in crate::source) fn numbered(items: &[Id]) -> Vec<Child> {
    items.iter().enumerate().map(|(number, &id)| Child { segment: Some(number.to_string()), id }).collect()
}

/// Values under their keys.
pub(in crate::source) fn keyed(pickle: &Pickle, pairs: &[(Id, Id)]) -> Vec<Child> {
    pairs.iter().map(|&(key, id)| Child { segment: Some(key_text(pickle, key)), id }).collect()
}

/// A key as Python shows it; tuples are shown one level deep.
fn key_text(pickle: &Pickle, key: Id) -> String {
    let plain = |id: Id| match pickle.node(id) {
        Node::Text(text) => text.to_string(),
        Node::Int(value) => value.to_string(),
        Node::Bool(true) => "True".to_owned(),
        Node::Bool(false) => "False".to_owned(),
        Node::None => "None".to_owned(),
        Node::Float(value) => format!("{value:?}"),
        _ => "?".to_owned(),
    };
    match pickle.node(key) {
        Node::Tuple(items) => {
            let items: Vec<String> = items.iter().take(16).map(|&item| plain(item)).collect();
            format!("({})", items.join(", "))
        }
        _ => plain(key),
    }
}
