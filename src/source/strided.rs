//! Tensors whose elements are not in order: views, transposes, slices and expansions of a storage.

use super::bytes::Bytes;
use crate::error::{Error, Result};

/// Bytes of a storage that are read at once to gather elements from.
const SPAN: u64 = 1 << 20;

/// Where in a storage the elements of a tensor are. Neighbouring dimensions that can be run through in one
/// are one, and those of extent 1 are none.
#[derive(Debug)]
pub(super) struct Strided {
    /// Extent and distance, in elements, of each dimension.
    dimensions: Vec<(u64, u64)>,
    /// Bytes of an element.
    width: u64,
}

impl Strided {
    /// Elements of `width` bytes. Strides count elements; the caller has checked that all are in the storage.
    pub(super) fn new(shape: &[u64], strides: &[u64], width: u64) -> Self {
        let mut dimensions: Vec<(u64, u64)> = Vec::new();
        for (&extent, &stride) in shape.iter().zip(strides).filter(|&(&extent, _)| extent != 1) {
            match dimensions.last_mut() {
                Some(outer) if outer.1 == stride.saturating_mul(extent) => {
                    *outer = (outer.0 * extent, stride);
                }
                _ => dimensions.push((extent, stride)),
            }
        }
        Self { dimensions, width }
    }

    /// Whether the elements follow one another.
    pub(super) fn is_contiguous(&self) -> bool {
        matches!(self.dimensions[..], [] | [(_, 1)] | [(0, _)])
    }

    /// Fills `bytes` from byte `offset` on of the elements put in order. The storage begins at byte `start`.
    pub(super) fn read(&self, storage: &dyn Bytes, start: u64, offset: u64, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() || self.is_contiguous() {
            return storage.read_exact_at(start + offset, bytes);
        }
        let width = self.width;
        let (first, len) = (offset / width, bytes.len() as u64);
        let end = (offset + len).div_ceil(width);
        if !offset.is_multiple_of(width) || !len.is_multiple_of(width) {
            let mut whole = vec![0; ((end - first) * width) as usize];
            self.read(storage, start, first * width, &mut whole)?;
            let from = (offset - first * width) as usize;
            bytes.copy_from_slice(&whole[from..from + bytes.len()]);
            return Ok(());
        }
        self.gather(storage, start, first, bytes)
    }

    /// Fills `bytes` with the elements from number `first` on, run by run of the inner dimensions.
    fn gather(&self, storage: &dyn Bytes, start: u64, mut first: u64, mut bytes: &mut [u8]) -> Result<()> {
        let inner = self.inner();
        let (outer, inner) = self.dimensions.split_at(inner);
        let elements: u64 = inner.iter().map(|&(extent, _)| extent).product();
        // Of a single dimension too long for the buffer, as many as fit.
        let most = match inner {
            [(_, stride)] => (SPAN / (stride * self.width).max(1)).max(1),
            _ => elements,
        };
        let mut span = Vec::new();
        while !bytes.is_empty() {
            let within = first % elements;
            let count = (bytes.len() as u64 / self.width).min(elements - within).min(most);
            let base = position(outer, first / elements);
            let (low, high) = bounds(inner, within, count);
            let len = usize::try_from((high - low + 1) * self.width)
                .map_err(|_| Error::new("the elements lie too far apart"))?;
            span.resize(len, 0);
            storage.read_exact_at(start + (base + low) * self.width, &mut span)?;
            let (now, rest) = bytes.split_at_mut((count * self.width) as usize);
            match self.width {
                1 => pick::<1>(inner, within, low, &span, now),
                2 => pick::<2>(inner, within, low, &span, now),
                4 => pick::<4>(inner, within, low, &span, now),
                8 => pick::<8>(inner, within, low, &span, now),
                _ => pick::<16>(inner, within, low, &span, now),
            }
            first += count;
            bytes = rest;
        }
        Ok(())
    }

    /// Number of the first dimension of those that are gathered from one buffer.
    fn inner(&self) -> usize {
        let mut reach = 0;
        let mut number = self.dimensions.len();
        for &(extent, stride) in self.dimensions.iter().rev() {
            reach += (extent - 1) * stride;
            if reach >= SPAN / self.width {
                break;
            }
            number -= 1;
        }
        number.min(self.dimensions.len() - 1)
    }
}

/// Distance from the first element to element `number` of dimensions.
fn position(dimensions: &[(u64, u64)], mut number: u64) -> u64 {
    let mut position = 0;
    for &(extent, stride) in dimensions.iter().rev() {
        position += number % extent * stride;
        number /= extent;
    }
    position
}

/// A range of positions that holds `count` elements from number `first` on.
fn bounds(dimensions: &[(u64, u64)], first: u64, count: u64) -> (u64, u64) {
    let Some((&(_, stride), rest)) = dimensions.split_first() else { return (0, 0) };
    let elements: u64 = rest.iter().map(|&(extent, _)| extent).product();
    let reach: u64 = rest.iter().map(|&(extent, stride)| (extent - 1) * stride).sum();
    let (from, to) = (first / elements, (first + count - 1) / elements);
    (from * stride, to * stride + reach)
}

/// Copies elements of `W` bytes from number `first` on; `span` begins at position `low`.
fn pick<const W: usize>(dimensions: &[(u64, u64)], first: u64, low: u64, span: &[u8], out: &mut [u8]) {
    let Some((&(extent, stride), outer)) = dimensions.split_last() else { return };
    let mut places = out.as_chunks_mut::<W>().0.iter_mut();
    let (mut row, mut column) = (first / extent, first % extent);
    loop {
        let base = position(outer, row);
        for index in column..extent {
            let Some(place) = places.next() else { return };
            let from = (base + index * stride - low) as usize * W;
            place.copy_from_slice(&span[from..from + W]);
        }
        (row, column) = (row + 1, 0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::Strided;
    use crate::source::bytes::Memory;

    #[test]
    fn gathers_what_indexing_finds() {
        let storage: Vec<u8> = (0..4_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let storage = Memory(storage);
        let layouts: [(&[u64], &[u64]); 9] = [
            (&[5, 7], &[1, 5]),
            (&[4, 1, 6], &[6, 99, 1]),
            (&[3, 4, 5], &[0, 1, 0]),
            (&[2, 3, 8, 8], &[192, 1, 24, 3]),
            (&[3], &[1_300_000]),
            (&[7, 2], &[500_000, 400_000]),
            (&[700, 900], &[1, 2000]),
            (&[1000, 300], &[300, 1]),
            (&[6, 6], &[2, 3]),
        ];
        for (shape, strides) in layouts {
            let total: u64 = shape.iter().product();
            let index = |mut number: u64| {
                let mut position = 0;
                for (extent, stride) in shape.iter().zip(strides).rev() {
                    position += number % extent * stride;
                    number /= extent;
                }
                10 + position as u32
            };
            let wanted: Vec<u8> = (0..total).flat_map(|number| index(number).to_le_bytes()).collect();
            let layout = Strided::new(shape, strides, 4);
            for (from, to) in [(0, 4 * total), (4, 4 * total - 4), (5, 7), (4 * total / 3, 4 * total / 2)] {
                let mut bytes = vec![0; (to - from) as usize];
                layout.read(&storage, 40, from, &mut bytes).unwrap();
                assert!(bytes == wanted[from as usize..to as usize], "{shape:?} {strides:?} {from}..{to}");
            }
        }
    }
}
