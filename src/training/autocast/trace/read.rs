//! From a file, plain or gzip'ed, to a [`Trace`]: streamed, so that memory does not grow with the file but
//! with the calls in it.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use super::event::{Event, EventSeed};
use super::types::Signature;
use super::{Call, Trace};
use crate::error::{Error, Result};

/// Bytes taken from the file at a time.
const STEP: usize = 1 << 16;

/// Reads a trace that `torch.profiler` exported (`export_chrome_trace`), whatever the file is called.
/// `on_bytes` is told how many bytes of the file have been read since the last time.
///
/// # Errors
/// The file cannot be read, is damaged or cut off (with the byte), or is no trace.
pub fn read(path: &Path, on_bytes: impl Fn(u64)) -> Result<Trace> {
    let unreadable = |error: io::Error| Error::io("cannot read the file", &error).in_file(path);
    let mut file =
        File::open(path).map_err(|error| Error::io("cannot open the file", &error).in_file(path))?;
    let mut magic = Vec::new();
    (&mut file).take(2).read_to_end(&mut magic).map_err(unreadable)?;
    let packed = magic == b"\x1f\x8b";
    let whole =
        io::BufReader::with_capacity(STEP, Told { file: io::Cursor::new(magic).chain(file), on_bytes });
    let outcome = if packed { parse(MultiGzDecoder::new(whole)) } else { parse(whole) };
    outcome.map_err(|(error, at)| {
        let error = match packed {
            true => error.at_byte(at).in_member("the unpacked trace"),
            false => error.at_byte(at),
        };
        error.in_file(path)
    })
}

/// Says how much has been read.
struct Told<R, F> {
    file: R,
    on_bytes: F,
}

impl<R: Read, F: Fn(u64)> Read for Told<R, F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(bytes)?;
        (self.on_bytes)(count as u64);
        Ok(count)
    }
}

/// A reader that knows where it is, and gives single bytes quickly.
struct Input<R> {
    source: R,
    buffer: Box<[u8]>,
    next: usize,
    filled: usize,
    /// Bytes before the buffer.
    before: u64,
}

impl<R: Read> Input<R> {
    fn new(source: R) -> Self {
        Self { source, buffer: vec![0; STEP].into(), next: 0, filled: 0, before: 0 }
    }

    fn position(&self) -> u64 {
        self.before + self.next as u64
    }

    #[cold]
    fn refill(&mut self) -> io::Result<()> {
        self.before += self.filled as u64;
        (self.next, self.filled) = (0, 0);
        self.filled = self.source.read(&mut self.buffer)?;
        Ok(())
    }
}

impl<R: Read> Read for Input<R> {
    #[inline]
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.next == self.filled {
            self.refill()?;
        }
        let count = bytes.len().min(self.filled - self.next);
        match bytes {
            [only] if count == 1 => *only = self.buffer[self.next],
            _ => bytes[..count].copy_from_slice(&self.buffer[self.next..self.next + count]),
        }
        self.next += count;
        Ok(count)
    }
}

/// Reads the JSON; an error comes with the byte it was met at.
fn parse(source: impl Read) -> std::result::Result<Trace, (Error, u64)> {
    let mut input = Input::new(source);
    let mut collector = Collector::default();
    let mut json = serde_json::Deserializer::from_reader(&mut input);
    let outcome = json.deserialize_any(Top(&mut collector)).and_then(|()| json.end());
    drop(json);
    match outcome {
        Ok(()) if collector.has_events => Ok(collector.finish()),
        Ok(()) => Err((Error::new("has no traceEvents: it is no trace of torch.profiler"), 0)),
        Err(error) => {
            let at = input.position();
            Err(match error.classify() {
                Category::Eof if at == 0 => (Error::new("the file is empty"), 0),
                Category::Eof => (Error::new("the trace is cut off here; nothing of it is reported"), at),
                Category::Io => (Error::io("cannot be read on", &io::Error::from(error)), at),
                Category::Syntax | Category::Data => {
                    let text = error.to_string();
                    let what = text.split(" at line ").next().unwrap_or(&text);
                    (Error::new(format!("is not a JSON trace: {what}")), at.saturating_sub(1))
                }
            })
        }
    }
}

/// Texts with a number each.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }
}

/// What has been gathered so far.
#[derive(Default)]
struct Collector {
    trace: Trace,
    has_events: bool,
    event: Event,
    names: Texts,
    threads: Texts,
    signatures: HashMap<Signature, u32>,
    /// Kernels: external id, or else the correlation with the call that launched them, and ns.
    by_id: Vec<(u64, u64)>,
    by_correlation: Vec<(u64, u64)>,
    /// Correlation and external id of launches.
    launches: Vec<(u64, u64)>,
}

impl Collector {
    /// Takes the event in the scratch, if it is a call or a kernel.
    fn take(&mut self) {
        let event = &self.event;
        if !event.complete {
            return;
        }
        let id = |number: Option<f64>| number.filter(|number| *number > 0.0).map(|number| number as u64);
        match event.category.as_str() {
            // Labels that users and the optimizer set bracket ops.
            "cpu_op" | "user_annotation" | "operator" | "Operator" => {
                let (Some(start), Some(duration)) = (event.start, event.duration) else {
                    self.trace.malformed += 1;
                    return;
                };
                self.trace.typed_calls += u64::from(event.typed);
                let signature = match self.signatures.get(&event.signature) {
                    Some(&number) => number,
                    None => {
                        let number = self.signatures.len() as u32;
                        self.signatures.insert(event.signature.clone(), number);
                        self.trace.signatures.push(event.signature.clone());
                        number
                    }
                };
                self.trace.calls.push(Call {
                    name: self.names.number(&event.name),
                    signature,
                    thread: self.threads.number(&event.thread),
                    external: id(event.external).and_then(|id| u32::try_from(id).ok()).unwrap_or(0),
                    start: (start * 1e3).round() as i64,
                    duration: (duration * 1e3).round() as u64,
                });
            }
            "cuda_runtime" | "cuda_driver" | "hip_runtime" => {
                if let (Some(correlation), Some(external)) = (id(event.correlation), id(event.external)) {
                    self.launches.push((correlation, external));
                }
            }
            "kernel" | "gpu_memcpy" | "gpu_memset" | "Kernel" | "Memcpy" | "Memset" => {
                let Some(duration) = event.duration else {
                    self.trace.malformed += 1;
                    return;
                };
                let ns = (duration * 1e3).round() as u64;
                match (id(event.external), id(event.correlation)) {
                    (Some(external), _) => self.by_id.push((external, ns)),
                    (None, Some(correlation)) => self.by_correlation.push((correlation, ns)),
                    (None, None) => self.trace.stray_kernels += ns,
                }
            }
            _ => {}
        }
    }

    fn finish(self) -> Trace {
        let Self { mut trace, names, threads, by_id, by_correlation, mut launches, .. } = self;
        launches.sort_unstable();
        trace.kernels = by_id;
        for (correlation, ns) in by_correlation {
            match launches.binary_search_by_key(&correlation, |(correlation, _)| *correlation) {
                Ok(index) => trace.kernels.push((launches[index].1, ns)),
                Err(_) => trace.stray_kernels += ns,
            }
        }
        trace.kernels.sort_unstable();
        trace.names = names.texts;
        trace.threads = threads.texts.len() as u32;
        // Stable: of two calls with the same bounds the file has the outer one first.
        trace.calls.sort_by_key(|call| (call.thread, call.start, std::cmp::Reverse(call.duration)));
        trace
    }
}

/// The file: an object with the events in it, or the bare list of them.
struct Top<'a>(&'a mut Collector);

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with traceEvents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> std::result::Result<(), A::Error> {
        while let Some(key) = object.next_key::<String>()? {
            if key == "traceEvents" {
                object.next_value_seed(Events(&mut *self.0))?;
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> std::result::Result<(), A::Error> {
        Events(self.0).visit_seq(list)
    }
}

/// The list of events.
struct Events<'a>(&'a mut Collector);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        let collector = self.0;
        collector.has_events = true;
        while list.next_element_seed(EventSeed(&mut collector.event))?.is_some() {
            collector.take();
            if collector.trace.calls.len() >= u32::MAX as usize {
                return Err(A::Error::custom("more than 2^32 calls"));
            }
        }
        Ok(())
    }
}
