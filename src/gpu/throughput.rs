//! How fast the card casts buffers, against its own copy in the same run.

use super::blocks::Blocks;
use super::bulk::{Bulk, VALUES_PER_BLOCK};
use super::driver::{Buffer, Device};
use super::hostile;
use crate::cast::Place;
use crate::error::{Error, Result};
use crate::format::decode::decode;

/// What was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A copy of float32.
    Copy,
    /// float32 to codes.
    Encode,
    /// Codes to float32.
    Decode,
    /// float32 to codes and back, without storing the codes.
    Roundtrip,
}

impl Work {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::Roundtrip => "roundtrip",
        }
    }

    /// Bits read and written for each value, the codes having so many.
    pub fn bits(self, code: u32) -> u32 {
        match self {
            Self::Copy | Self::Roundtrip => 64,
            Self::Encode | Self::Decode => 32 + code,
        }
    }
}

/// One figure: how long a buffer took.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The format; none of a copy.
    pub format: Option<&'static str>,
    /// What was done.
    pub work: Work,
    /// Values in the buffer.
    pub values: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Seconds of each run, in ascending order.
    pub seconds: Vec<f64>,
}

impl Timing {
    /// Of runs in any order.
    pub fn new(
        format: Option<&'static str>,
        work: Work,
        values: u64,
        code_bits: u32,
        seconds: Vec<f64>,
    ) -> Self {
        Self::of_bytes((format, work), values, values * u64::from(work.bits(code_bits)) / 8, seconds)
    }

    /// Of runs in any order that read and write so many bytes.
    pub fn of_bytes(
        (format, work): (Option<&'static str>, Work),
        values: u64,
        bytes: u64,
        mut seconds: Vec<f64>,
    ) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self { format, work, values, bytes, seconds }
    }

    /// The time that a share of the runs did not exceed, linearly between two of them.
    pub fn quantile(&self, share: f64) -> f64 {
        let place = share * self.seconds.len().saturating_sub(1) as f64;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        match (self.seconds.get(below), self.seconds.get(above)) {
            (Some(low), Some(high)) => low + (high - low) * place.fract(),
            _ => f64::NAN,
        }
    }

    /// Bytes a second, read and written, of the median run.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.quantile(0.5)
    }
}

/// Values in a buffer: what was asked for, or as many float32 as take 16 times the second-level cache (4 times
/// if that shall be `quick`), in whole blocks.
pub fn values(device: &Device, asked: Option<u64>, quick: bool) -> u64 {
    let caches = if quick { 4 } else { 16 };
    let values = asked.unwrap_or((caches * device.environment.l2_bytes / 4).max(1 << 26));
    values.next_multiple_of(VALUES_PER_BLOCK)
}

/// What was timed, and kernels that were not, since their results are wrong.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The times, that of the copy first.
    pub timings: Vec<Timing>,
    /// Kernels that gave a result that is not the tool's.
    pub wrong: Vec<Error>,
}

/// Values of a buffer whose results are compared before a kernel is timed.
const COMPARED: usize = 1 << 16;

/// Times the formats of these names that the card casts to: first its copy, then each way, once the results
/// have been compared; and the casts to blocks.
///
/// # Errors
/// The card fails, or lacks the memory.
pub fn run(
    device: &Device,
    (formats, shared): (&[&str], &[Blocks]),
    values: u64,
    repeats: usize,
) -> Result<Measured> {
    let numbers = super::cpu::numbers(1 << 20);
    let numbers = &numbers[..numbers.len().min(values as usize)];
    let mut floats = device.buffer(4 * values)?;
    let mut codes = device.buffer(4 * values)?;
    let mut back = device.buffer(4 * values)?;
    device.fill(&mut floats, bytemuck::cast_slice(numbers))?;
    let blocks = (values / VALUES_PER_BLOCK) as u32;
    let copy = device.time_copy(&floats, &mut back, 4 * values, repeats)?;
    let mut measured = Measured::default();
    measured.timings.push(Timing::new(None, Work::Copy, values, 32, seconds(copy)));
    let numbers = &numbers[..numbers.len().min(COMPARED)];
    for format in Bulk::formats().into_iter().filter(|name| formats.contains(name)) {
        let bulk = Bulk::new(format, device.target);
        let Some(bulk) = bulk.filter(|bulk| device.takes(bulk.version(device.target))) else { continue };
        let module = device.load(bulk.ptx(device.target))?;
        let expected = Expected::new(&bulk, numbers)?;
        let works = match bulk.decode {
            Some(_) => &[Work::Encode, Work::Decode, Work::Roundtrip][..],
            None => &[Work::Encode],
        };
        for &work in works {
            let (source, result) = match work {
                Work::Encode => (&floats, &mut codes),
                Work::Decode => (&codes, &mut back),
                _ => (&floats, &mut back),
            };
            let kernel = (&module, work.name());
            device.time_kernel(kernel, source, result, blocks, 0)?;
            let wanted = if work == Work::Encode { &expected.codes } else { &expected.values };
            if device.read(result, 0..wanted.len())? != *wanted {
                measured.wrong.push(wrong(format, work));
                continue;
            }
            let times = device.time_kernel(kernel, source, result, blocks, repeats)?;
            measured.timings.push(Timing::new(Some(format), work, values, bulk.code_bits(), seconds(times)));
        }
    }
    for blocks in shared.iter().filter(|blocks| device.takes(blocks.version(device.target))) {
        measured.time_blocks(device, blocks, [&mut floats, &mut codes, &mut back], values, repeats)?;
    }
    Ok(measured)
}

fn seconds(milliseconds: Vec<f32>) -> Vec<f64> {
    milliseconds.into_iter().map(|ms| f64::from(ms) / 1e3).collect()
}

impl Measured {
    /// Times a cast to blocks, and the way back if there is one, once scales and codes of values that are hard have
    /// been compared.
    fn time_blocks(
        &mut self,
        device: &Device,
        blocks: &Blocks,
        [floats, codes, back]: [&mut Buffer; 3],
        values: u64,
        repeats: usize,
    ) -> Result<()> {
        let hard = hostile::values(hostile::COUNT.min(values as usize), blocks.shared as usize);
        device.fill(floats, bytemuck::cast_slice(&hard))?;
        let threads = (values / VALUES_PER_BLOCK) as u32;
        let behind = blocks.bytes_of_codes(values) as usize;
        let mut timed = None;
        for tensor in hostile::tensor_scales(blocks) {
            let wanted = hostile::expected(blocks, tensor, &hard)?;
            let module = device.load(blocks.ptx(device.target, values, tensor))?;
            // What another kernel wrote must not pass for this one's.
            device.write(codes, &wanted.codes.iter().map(|code| !code).collect::<Vec<_>>())?;
            device.time_kernel((&module, "encode"), floats, codes, threads, 0)?;
            let found = device.read(codes, 0..wanted.codes.len())?;
            if found != wanted.codes
                || device.read(codes, behind..behind + wanted.scales.len())? != wanted.scales
            {
                self.wrong.push(wrong(blocks.spec.name, Work::Encode));
                return Ok(());
            }
            timed = Some((module, wanted));
        }
        let Some((module, wanted)) = timed else { return Ok(()) };
        let timing = |work, times| {
            Timing::of_bytes((Some(blocks.spec.name), work), values, blocks.bytes(values), seconds(times))
        };
        let times = device.time_kernel((&module, "encode"), floats, codes, threads, repeats)?;
        self.timings.push(timing(Work::Encode, times));
        if !blocks.comes_back() {
            return Ok(());
        }
        device.time_kernel((&module, "decode"), codes, back, threads, 0)?;
        let found = device.read(back, 0..4 * wanted.back.len())?;
        let found =
            found.chunks_exact(4).map(|x| hostile::bits(f32::from_le_bytes([x[0], x[1], x[2], x[3]])));
        if !found.eq(wanted.back) {
            self.wrong.push(wrong(blocks.spec.name, Work::Decode));
            return Ok(());
        }
        let times = device.time_kernel((&module, "decode"), codes, back, threads, repeats)?;
        self.timings.push(timing(Work::Decode, times));
        Ok(())
    }
}

fn wrong(format: &str, work: Work) -> Error {
    Error::new(format!("{format}: the {} kernel for buffers gives wrong results", work.name()))
}

/// What buffers must hold, as bytes.
struct Expected {
    codes: Vec<u8>,
    values: Vec<u8>,
}

impl Expected {
    fn new(bulk: &Bulk, numbers: &[f32]) -> Result<Self> {
        let plan = bulk.encode.plan()?;
        let codes = || numbers.iter().map(|x| plan.cast_f32(*x, Place::default()).code);
        let packed = match bulk.code_bits() {
            4 => codes().collect::<Vec<_>>().chunks(2).map(|two| (two[1] << 4 | two[0]) as u8).collect(),
            8 => codes().map(|code| code as u8).collect(),
            16 => codes().flat_map(|code| (code as u16).to_le_bytes()).collect(),
            // The upper bits of a float32.
            _ => codes().flat_map(|code| (code << (32 - plan.target.bits)).to_le_bytes()).collect(),
        };
        let value = |code: u32| decode(&plan.target, code) as f32;
        let values = codes().flat_map(|code| value(code).to_le_bytes()).collect();
        Ok(Self { codes: packed, values })
    }
}
