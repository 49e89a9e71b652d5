//! From a file, plain or gzip'ed, to a [`Trace`]: streamed, so that memory does not grow with the file but
//! with the calls in it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::de::{DeserializeSeed, IgnoredAny};

use super::event::{Event, EventSeed};
use super::split::{Failure, Splitter};
use super::types::Signature;
use super::{Call, Trace};
use crate::error::{Error, Result};
use crate::training::autocast::policy::OPTIMIZER;

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
    if magic.is_empty() {
        return Err(Error::new("the file is empty").in_file(path));
    }
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

/// Reads the JSON; an error comes with the byte it was met at.
fn parse(source: impl Read) -> std::result::Result<Trace, Failure> {
    let mut json = Splitter::new(source);
    let mut collector = Collector::default();
    let mut has_events = false;
    // The bare list of events is a trace, too.
    if json.peek_some()? == b'[' {
        events(&mut json, &mut collector)?;
        has_events = true;
    } else {
        json.expect(b"{")?;
        let mut last = if json.peek_some()? == b'}' { json.expect(b"}")? } else { b',' };
        while last == b',' {
            let (bytes, at) = json.value()?;
            let key: String = whole(bytes, at)?;
            json.expect(b":")?;
            if key == "traceEvents" {
                events(&mut json, &mut collector)?;
                has_events = true;
            } else {
                let (bytes, at) = json.value()?;
                whole::<IgnoredAny>(bytes, at)?;
            }
            last = json.expect(b",}")?;
        }
    }
    if json.peek()?.is_some() {
        return Err((Error::new("is not a JSON trace: something follows it"), json.position()));
    }
    if !has_events {
        return Err((Error::new("has no traceEvents: it is no trace of torch.profiler"), 0));
    }
    Ok(collector.finish())
}

/// Reads the list of events.
fn events(json: &mut Splitter<impl Read>, collector: &mut Collector) -> std::result::Result<(), Failure> {
    json.expect(b"[")?;
    if json.peek_some()? == b']' {
        return json.expect(b"]").map(drop);
    }
    loop {
        let (bytes, at) = json.value()?;
        let mut event = serde_json::Deserializer::from_slice(bytes);
        collector.event.clear();
        let seed = EventSeed(&mut collector.event);
        seed.deserialize(&mut event)
            .and_then(|()| event.end())
            .map_err(|error| unsound(&error, bytes, at))?;
        collector.take().map_err(|error| (error, at))?;
        if collector.trace.calls.len() >= u32::MAX as usize {
            return Err((Error::new("has more than 2^32 calls"), at));
        }
        if json.expect(b",]")? == b']' {
            return Ok(());
        }
    }
}

/// A value that is read as a whole.
fn whole<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8], at: u64) -> std::result::Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(|error| unsound(&error, bytes, at))
}

/// What serde_json says of a value that begins at byte `at`.
fn unsound(error: &serde_json::Error, bytes: &[u8], at: u64) -> Failure {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    let before: usize = bytes
        .split_inclusive(|&byte| byte == b'\n')
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let offset = before + error.column().saturating_sub(1);
    (Error::new(format!("is not a JSON trace: {what}")), at + offset as u64)
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

/// Longest duration that is believed, in µs: eleven days. Sums of 10^4 of them fit u64 in ns.
const MOST_DURATION: f64 = 1e12;
/// Latest start that is believed, in µs from 1970: in the 23rd century, the last that fits i64 in ns.
const MOST_START: f64 = 9e15;

/// A time in µs, if it can be one.
fn within(field: &str, time: f64, possible: RangeInclusive<f64>) -> Result<f64> {
    if possible.contains(&time) {
        return Ok(time);
    }
    let found = if time.is_nan() { "no number".to_owned() } else { format!("{time:?}") };
    Err(Error::new(format!("the {field} of this event is {found}, which is no time in µs")))
}

/// What has been gathered so far.
#[derive(Default)]
struct Collector {
    trace: Trace,
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
    fn take(&mut self) -> Result<()> {
        let event = &self.event;
        if !event.complete {
            return Ok(());
        }
        let id = |number: Option<f64>| number.filter(|number| *number > 0.0).map(|number| number as u64);
        match event.category.as_str() {
            // Of labels, which bracket ops, only the optimizer's matters.
            "user_annotation" if !event.name.starts_with(OPTIMIZER) => {}
            "cpu_op" | "user_annotation" | "operator" | "Operator" => {
                let (Some(start), Some(duration)) = (event.start, event.duration) else {
                    self.trace.malformed += 1;
                    return Ok(());
                };
                let start = within("ts", start, -MOST_START..=MOST_START)?;
                let duration = within("dur", duration, 0.0..=MOST_DURATION)?;
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
                    return Ok(());
                };
                let duration = within("dur", duration, 0.0..=MOST_DURATION)?;
                let ns = (duration * 1e3).round() as u64;
                match (id(event.external), id(event.correlation)) {
                    (Some(external), _) => self.by_id.push((external, ns)),
                    (None, Some(correlation)) => self.by_correlation.push((correlation, ns)),
                    (None, None) => self.trace.stray_kernels = self.trace.stray_kernels.saturating_add(ns),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Trace {
        let Self { mut trace, names, threads, by_id, by_correlation, mut launches, .. } = self;
        launches.sort_unstable();
        trace.kernels = by_id;
        for (correlation, ns) in by_correlation {
            match launches.binary_search_by_key(&correlation, |(correlation, _)| *correlation) {
                Ok(index) => trace.kernels.push((launches[index].1, ns)),
                Err(_) => trace.stray_kernels = trace.stray_kernels.saturating_add(ns),
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
