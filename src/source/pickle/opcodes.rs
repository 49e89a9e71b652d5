//! The opcodes, by the letters that Python's `Lib/pickletools.py` lists them under.

use super::machine::Machine;
use super::{Node, refuse};
use crate::error::Result;
use crate::source::limits::quote;

impl Machine<'_> {
    /// Does what one opcode says.
    pub(super) fn step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            b'\x80' => self.protocol(),
            b'\x95' => self.input.number(8).map(drop),
            b'(' => {
                self.marks.push(self.stack.len());
                self.fits(self.marks.len())
            }
            b'0' => match self.marks.last() {
                Some(&mark) if mark == self.stack.len() => self.pop_mark().map(drop),
                _ => self.pop().map(drop),
            },
            b'1' => self.pop_mark().map(drop),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
                self.fits(self.stack.len())
            }
            b'N' => self.push(Node::None),
            b'\x88' => self.push(Node::Bool(true)),
            b'\x89' => self.push(Node::Bool(false)),
            b'J' => {
                let value = self.input.number(4)? as u32;
                self.push(Node::Int(i64::from(value as i32)))
            }
            b'K' | b'M' => {
                let value = self.input.number(if opcode == b'K' { 1 } else { 2 })?;
                self.push(Node::Int(value as i64))
            }
            b'I' | b'L' => self.decimal(),
            b'\x8a' => {
                let len = self.input.number(1)?;
                self.long(len)
            }
            b'\x8b' => match self.input.number(4)? as u32 as i32 {
                len @ 0.. => self.long(len as u64),
                len => refuse(format!("an integer claims a length of {len} bytes"), self.at),
            },
            b'F' => {
                let line = self.input.line()?;
                let value = line.parse();
                let value = value.or_else(|_| refuse(format!("{} is no number", quote(&line)), self.at))?;
                self.push(Node::Float(value))
            }
            b'G' => {
                let bits = self.input.number(8)?.swap_bytes();
                self.push(Node::Float(f64::from_bits(bits)))
            }
            b'V' => {
                let line = self.input.line()?;
                self.push(Node::Text(line.into()))
            }
            b'S' => self.quoted(),
            b'\x8c' | b'X' | b'\x8d' => {
                let len = self.length(opcode, b"\x8cX\x8d")?;
                self.text(len)
            }
            b'U' | b'T' => {
                let len = self.length(opcode, b"UT")?;
                self.python2_string(len)
            }
            b'C' | b'B' | b'\x8e' => {
                let len = self.length(opcode, b"CB\x8e")?;
                self.bytes(len)
            }
            b'\x96' => {
                let len = self.input.number(8)?;
                self.bytes(len)
            }
            b'\x98' => Ok(()),
            b']' => self.push(Node::List(Vec::new())),
            b')' => self.push(Node::Tuple(Vec::new())),
            b'}' => self.push(Node::Dict(Vec::new())),
            b'\x8f' => self.push(Node::Set(Vec::new())),
            b'l' => self.pop_mark().and_then(|items| self.push(Node::List(items))),
            b't' => self.pop_mark().and_then(|items| self.push(Node::Tuple(items))),
            b'\x91' => self.pop_mark().and_then(|items| self.push(Node::Set(items))),
            b'd' => {
                let items = self.pop_mark()?;
                let pairs = self.pairs(&items)?;
                self.push(Node::Dict(pairs))
            }
            b'\x85'..=b'\x87' => {
                let count = usize::from(opcode - b'\x84');
                let items = self.pop_many(count)?;
                self.push(Node::Tuple(items))
            }
            b'a' => {
                let item = self.pop()?;
                self.hold(1)?;
                self.append(vec![item])
            }
            b'e' | b'\x90' => self.pop_mark().and_then(|items| self.append(items)),
            b's' => {
                let items = self.pop_many(2)?;
                self.hold(2)?;
                self.set_items(&items)
            }
            b'u' => self.pop_mark().and_then(|items| self.set_items(&items)),
            b'p' => {
                let index = self.index()?;
                self.put(index)
            }
            b'q' | b'r' => {
                let index = self.input.number(if opcode == b'q' { 1 } else { 4 })?;
                self.put(index)
            }
            b'\x94' => self.put(self.memo.len() as u64),
            b'g' => {
                let index = self.index()?;
                self.recall(index)
            }
            b'h' | b'j' => {
                let index = self.input.number(if opcode == b'h' { 1 } else { 4 })?;
                self.recall(index)
            }
            b'c' => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                self.global(module, name)
            }
            b'\x93' => self.stack_global(),
            b'R' | b'\x81' => {
                let [callable, arguments] = self.pop_array()?;
                self.object(callable, arguments)
            }
            b'\x92' => {
                let [callable, arguments, _keywords] = self.pop_array()?;
                self.object(callable, arguments)
            }
            b'b' => self.build(),
            b'Q' => {
                let id = self.pop()?;
                self.push(Node::Persistent(id))
            }
            _ => self.unknown(opcode),
        }
    }

    fn protocol(&mut self) -> Result<()> {
        match self.input.byte()? {
            0..=5 => Ok(()),
            version => refuse(format!("pickle protocol {version} is unknown; there are 0 to 5"), self.at),
        }
    }

    fn unknown(&mut self, opcode: u8) -> Result<()> {
        if opcode == b'i' {
            let (module, name) = (self.input.line()?, self.input.line()?);
            self.global(module, name)?;
        }
        let known = match opcode {
            b'i' => "INST",
            b'o' => "OBJ",
            b'P' => "PERSID",
            b'\x82'..=b'\x84' => "EXT",
            b'\x97' => "NEXT_BUFFER",
            _ => return refuse(format!("0x{opcode:02x} is no opcode of a pickle"), self.at),
        };
        refuse(format!("the pickle uses the opcode {known}, which no dump needs; it is not read"), self.at)
    }
}
