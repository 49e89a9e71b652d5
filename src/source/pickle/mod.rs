//! Python pickles, read as data: nothing in them is ever executed.
//!
//! A pickle is a program for a small stack machine (protocols 0 to 5: Python's `Lib/pickletools.py`). It is run here on a
//! machine that can only build a graph of plain values. Where the program calls a Python callable, the graph
//! gets an [`Object`] that says which and with what arguments; readers interpret those that they know by
//! name. Callables whose purpose is to run code are refused, and so are opcodes that no writer of dumps
//! emits.
//!
//! Everything is held in one list and refers by number, so that cycles, values shared by many and deep
//! nesting cost nothing; sizes in the program are claims, and strings beyond [`TEXT`] stay in the file.

mod globals;
mod input;
mod machine;
mod opcodes;
mod walk;

pub(super) use walk::{Child, Look, keyed, numbered, walk};

use super::bytes::Bytes;
use crate::error::{Error, Result};

/// Longest text that is kept in memory, in bytes.
const TEXT: u64 = 1 << 20;

/// Number of a node.
pub(super) type Id = u32;

/// A value in a pickle.
#[derive(Debug)]
pub(super) enum Node {
    None,
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits.
    LongInt,
    Float(f64),
    Text(Box<str>),
    /// Bytes, or text beyond [`TEXT`]: where they are.
    Bytes {
        at: u64,
        len: u64,
    },
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Set(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// A Python class or function, by the name of its module and its own.
    Global(Box<(String, String)>),
    Object(Box<Object>),
    /// What stands for something outside the pickle, such as a tensor's storage.
    Persistent(Id),
}

/// What calling a Python callable would have made.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) callable: Id,
    pub(super) arguments: Id,
    /// What its attributes would have been set from.
    pub(super) state: Option<Id>,
    /// What would have been appended or added to it.
    pub(super) items: Vec<Id>,
    /// What would have been set in it by key.
    pub(super) pairs: Vec<(Id, Id)>,
}

/// A pickle that has been read.
#[derive(Debug)]
pub(super) struct Pickle {
    nodes: Vec<Node>,
    /// The value as a whole.
    pub(super) root: Id,
    /// Where the pickle ends.
    pub(super) end: u64,
}

/// Most nodes of a pickle in a container of `len` bytes: what compression may gain is bounded.
pub(super) fn node_limit(len: u64) -> usize {
    (1 << 16) + len.saturating_mul(16).min(1 << 24) as usize
}

/// Reads the pickle that begins at byte `start`.
///
/// # Errors
/// It ends early, is damaged, has more than `limit` nodes, or uses what is not read.
pub(super) fn read(bytes: &dyn Bytes, start: u64, limit: usize) -> Result<Pickle> {
    machine::run(bytes, start, limit)
}

impl Pickle {
    /// All nodes.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node `id`, which is one of this pickle's.
    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    /// The items of a list or tuple.
    pub(super) fn items(&self, id: Id) -> Option<&[Id]> {
        match self.node(id) {
            Node::List(items) | Node::Tuple(items) => Some(items),
            // torch.Size is a tuple.
            Node::Object(object) if self.global(object.callable) == Some(("torch", "Size")) => {
                match self.node(object.arguments) {
                    Node::Tuple(arguments) => match self.node(*arguments.first()?) {
                        Node::List(items) | Node::Tuple(items) => Some(items),
                        _ => None,
                    },
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A text.
    pub(super) fn text(&self, id: Id) -> Option<&str> {
        match self.node(id) {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// An integer.
    pub(super) fn int(&self, id: Id) -> Option<i64> {
        match self.node(id) {
            Node::Int(value) => Some(*value),
            Node::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// The integers of a list or tuple.
    pub(super) fn ints(&self, id: Id) -> Option<Vec<i64>> {
        self.items(id)?.iter().map(|&item| self.int(item)).collect()
    }

    /// The module and name of a class or function.
    pub(super) fn global(&self, id: Id) -> Option<(&str, &str)> {
        match self.node(id) {
            Node::Global(names) => Some((&names.0, &names.1)),
            _ => None,
        }
    }

    /// The value of `key` in a dict.
    pub(super) fn get(&self, id: Id, key: &str) -> Option<Id> {
        match self.node(id) {
            Node::Dict(pairs) => {
                pairs.iter().rev().find(|(its, _)| self.text(*its) == Some(key)).map(|p| p.1)
            }
            _ => None,
        }
    }
}

/// Refuses what a pickle holds, at a byte of it.
fn refuse<T>(what: impl Into<String>, at: u64) -> Result<T> {
    Err(Error::new(what).at_byte(at))
}
