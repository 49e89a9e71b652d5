//! The stack machine.

use std::collections::HashMap;

use super::input::Input;
use super::{Id, Node, Object, Pickle, TEXT, globals, refuse};
use crate::error::{Error, Result};
use crate::source::bytes::Bytes;
use crate::source::limits::quote;

/// Runs the pickle that begins at byte `start`.
pub(super) fn run(bytes: &dyn Bytes, start: u64, limit: usize) -> Result<Pickle> {
    let mut machine = Machine {
        input: Input::new(bytes, start),
        at: start,
        limit,
        held: 0,
        nodes: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    loop {
        machine.at = machine.input.at();
        let opcode = machine.input.byte()?;
        if opcode == b'.' {
            let root = machine.pop()?;
            return Ok(Pickle { nodes: machine.nodes, root, end: machine.input.at() });
        }
        machine.step(opcode)?;
    }
}

pub(super) struct Machine<'a> {
    pub(super) input: Input<'a>,
    /// Where the current opcode is.
    pub(super) at: u64,
    /// Most nodes, and most references between them.
    limit: usize,
    /// References in lists and dicts, and texts in units of 32 bytes.
    held: usize,
    pub(super) nodes: Vec<Node>,
    pub(super) stack: Vec<Id>,
    /// Lengths of the stack where marks stand.
    pub(super) marks: Vec<usize>,
    pub(super) memo: HashMap<u64, Id>,
}

impl Machine<'_> {
    /// Refuses to let what the pickle builds grow without bound.
    pub(super) fn fits(&self, count: usize) -> Result<()> {
        if count > self.limit {
            return refuse(format!("the pickle holds more than {} values", self.limit), self.at);
        }
        Ok(())
    }

    pub(super) fn hold(&mut self, more: usize) -> Result<()> {
        self.held += more;
        self.fits(self.held)
    }

    pub(super) fn push(&mut self, node: Node) -> Result<()> {
        self.fits(self.nodes.len() + 1)?;
        self.stack.push(self.nodes.len() as Id);
        self.nodes.push(node);
        Ok(())
    }

    pub(super) fn top(&self) -> Result<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(&top) if self.stack.len() > floor => Ok(top),
            _ => refuse("the pickle takes a value that it has not made", self.at),
        }
    }

    pub(super) fn pop(&mut self) -> Result<Id> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    pub(super) fn pop_many(&mut self, count: usize) -> Result<Vec<Id>> {
        let mut items = (0..count).map(|_| self.pop()).collect::<Result<Vec<_>>>()?;
        items.reverse();
        Ok(items)
    }

    pub(super) fn pop_array<const N: usize>(&mut self) -> Result<[Id; N]> {
        let mut items = [0; N];
        for place in items.iter_mut().rev() {
            *place = self.pop()?;
        }
        Ok(items)
    }

    /// Everything above the last mark.
    pub(super) fn pop_mark(&mut self) -> Result<Vec<Id>> {
        match self.marks.pop() {
            Some(mark) => {
                self.hold(self.stack.len() - mark)?;
                Ok(self.stack.split_off(mark))
            }
            None => refuse("the pickle goes back to a mark that it has not set", self.at),
        }
    }

    pub(super) fn decimal(&mut self) -> Result<()> {
        let line = self.input.line()?;
        let node = match line.as_str() {
            "00" => Node::Bool(false),
            "01" => Node::Bool(true),
            text => match text.strip_suffix('L').unwrap_or(text).parse() {
                Ok(value) => Node::Int(value),
                Err(_) if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'L')) => Node::LongInt,
                Err(_) => return refuse(format!("{} is no integer", quote(text)), self.at),
            },
        };
        self.push(node)
    }

    /// An integer in two's complement, the lowest byte first.
    pub(super) fn long(&mut self, len: u64) -> Result<()> {
        if len > 8 {
            self.input.skip(len)?;
            return self.push(Node::LongInt);
        }
        let value = self.input.number(len as usize)?;
        let unused = 64 - 8 * len as u32;
        let value = if len == 0 { 0 } else { (value << unused) as i64 >> unused };
        self.push(Node::Int(value))
    }

    /// The length that follows one of the opcodes `of`: one, four or eight bytes in their order.
    pub(super) fn length(&mut self, opcode: u8, of: &[u8]) -> Result<u64> {
        let bytes = [1, 4, 8][of.iter().position(|&known| known == opcode).unwrap_or(0)];
        self.input.number(bytes)
    }

    pub(super) fn text(&mut self, len: u64) -> Result<()> {
        if len > TEXT {
            return self.bytes(len);
        }
        self.hold(len as usize / 32)?;
        let at = self.input.at();
        let text = std::str::from_utf8(self.input.take(len as usize)?);
        match text.map(Box::from) {
            Ok(text) => self.push(Node::Text(text)),
            Err(_) => refuse("a text is not UTF-8", at),
        }
    }

    /// A string of Python 2, which may be text or bytes.
    pub(super) fn python2_string(&mut self, len: u64) -> Result<()> {
        if len > TEXT {
            return self.bytes(len);
        }
        let at = self.input.at();
        let text = std::str::from_utf8(self.input.take(len as usize)?).map(Box::from);
        self.push(text.map_or(Node::Bytes { at, len }, Node::Text))
    }

    pub(super) fn quoted(&mut self) -> Result<()> {
        let line = self.input.line()?;
        let inside = [b'\'', b'"'].iter().find_map(|&mark| {
            let mark = char::from(mark);
            line.strip_prefix(mark)?.strip_suffix(mark)
        });
        match inside {
            Some(text) => self.push(Node::Text(text.into())),
            None => refuse("a text lacks its quotes", self.at),
        }
    }

    pub(super) fn bytes(&mut self, len: u64) -> Result<()> {
        let at = self.input.skip(len)?;
        self.push(Node::Bytes { at, len })
    }

    pub(super) fn append(&mut self, more: Vec<Id>) -> Result<()> {
        let top = self.top()?;
        match &mut self.nodes[top as usize] {
            Node::List(items) | Node::Set(items) => items.extend(more),
            Node::Object(object) => object.items.extend(more),
            _ => return refuse("the pickle appends to what is no list", self.at),
        }
        Ok(())
    }

    pub(super) fn pairs(&self, items: &[Id]) -> Result<Vec<(Id, Id)>> {
        match items.as_chunks() {
            (pairs, []) => Ok(pairs.iter().map(|&[key, value]| (key, value)).collect()),
            _ => refuse("the pickle sets a key without a value", self.at),
        }
    }

    pub(super) fn set_items(&mut self, items: &[Id]) -> Result<()> {
        let more = self.pairs(items)?;
        let top = self.top()?;
        match &mut self.nodes[top as usize] {
            Node::Dict(pairs) => pairs.extend(more),
            Node::Object(object) => object.pairs.extend(more),
            _ => return refuse("the pickle sets keys of what is no dict", self.at),
        }
        Ok(())
    }

    pub(super) fn index(&mut self) -> Result<u64> {
        let line = self.input.line()?;
        line.parse().or_else(|_| refuse(format!("{} is no number of a memo", quote(&line)), self.at))
    }

    pub(super) fn put(&mut self, index: u64) -> Result<()> {
        let top = self.top()?;
        self.memo.insert(index, top);
        self.fits(self.memo.len())
    }

    pub(super) fn recall(&mut self, index: u64) -> Result<()> {
        match self.memo.get(&index) {
            Some(&id) => {
                self.stack.push(id);
                self.fits(self.stack.len())
            }
            None => refuse(format!("the pickle recalls number {index}, which it has not put aside"), self.at),
        }
    }

    pub(super) fn global(&mut self, module: String, name: String) -> Result<()> {
        if globals::runs_code(&module, &name) {
            let full = quote(&format!("{module}.{name}"));
            let what = format!(
                "the pickle names {full}, which runs code: no dump needs it, and nothing of it is read"
            );
            return refuse(what, self.at);
        }
        self.push(Node::Global(Box::new((module, name))))
    }

    pub(super) fn stack_global(&mut self) -> Result<()> {
        let [module, name] = self.pop_array()?;
        match (&self.nodes[module as usize], &self.nodes[name as usize]) {
            (Node::Text(module), Node::Text(name)) => self.global(module.to_string(), name.to_string()),
            _ => refuse("the pickle names a class by what is no text", self.at),
        }
    }

    pub(super) fn object(&mut self, callable: Id, arguments: Id) -> Result<()> {
        if !matches!(self.nodes[callable as usize], Node::Global(_) | Node::Object(_)) {
            return refuse("the pickle calls what is no class or function", self.at);
        }
        let object = Object { callable, arguments, state: None, items: Vec::new(), pairs: Vec::new() };
        self.push(Node::Object(Box::new(object)))
    }

    pub(super) fn build(&mut self) -> Result<()> {
        let state = self.pop()?;
        let top = self.top()?;
        match &mut self.nodes[top as usize] {
            Node::Object(object) => object.state = Some(state),
            _ => return Err(Error::new("the pickle sets the state of what is no object").at_byte(self.at)),
        }
        Ok(())
    }
}
