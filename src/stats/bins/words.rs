//! What a bin adds up, packed into two machine words, and the loop that adds blocks of elements.

use crate::cast::fast::Kernel;
use crate::stats::block::{BLOCK, Block, FRACTION, LANES, SIGN};

/// Units of the last place between two grid points: significands of 24 bits, a grid of six.
pub(super) const WIDTH: u32 = 1 << 18;
/// First place of elements that lie on a grid point, by the upper 13 bits of their magnitude. Before them
/// are the others, by the upper 14 bits.
pub(super) const ON_GRID: usize = 1 << 14;
/// Places for zeros: one a lane, since additions to one and the same place wait for each other.
pub(super) const ZEROS: usize = ON_GRID + (1 << 13);
/// A power of two, so that a mask makes every index valid.
pub(super) const PLACES: usize = 1 << 15;

/// Elements that the words of a place hold before they must be put away.
const CAPACITY: u64 = 1 << 9;
const NEGATIVE_SHIFT: u32 = 44;
const COUNT_SHIFT: u32 = 54;
const RESIDUE_SHIFT: u32 = 27;

/// Sums over up to [`CAPACITY`] elements at one place. With `u` an element's distance from its grid point,
/// up to 2^17 units of the last place:
#[derive(Clone, Copy, Default)]
pub(super) struct Words {
    /// Σ u² in the low 44 bits, then 10 bits for the number of negative elements, 10 for that of all.
    squares_and_counts: u64,
    /// Σ u in the low 27 bits, above it Σ u³/significand.
    sum_and_residue: u64,
}

/// The smallest and the largest distance seen at a place.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    pub(super) smallest: u32,
    pub(super) largest: u32,
}

impl Extremes {
    pub(super) const NONE: Self = Self { smallest: u32::MAX, largest: 0 };
}

/// Sums over any number of elements at one place: all exact integers.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) count: u64,
    pub(super) negative: u64,
    /// Σ u.
    pub(super) sum: u64,
    /// Σ u².
    pub(super) squares: u128,
    /// Σ u³/significand, each rounded.
    pub(super) residue: u128,
}

impl Words {
    fn is_full(self) -> bool {
        self.squares_and_counts >= CAPACITY << COUNT_SHIFT
    }

    pub(super) fn totals(self) -> Totals {
        let low = |word: u64, bits: u32| word & ((1 << bits) - 1);
        Totals {
            count: self.squares_and_counts >> COUNT_SHIFT,
            negative: low(self.squares_and_counts, COUNT_SHIFT) >> NEGATIVE_SHIFT,
            sum: low(self.sum_and_residue, RESIDUE_SHIFT),
            squares: low(self.squares_and_counts, NEGATIVE_SHIFT).into(),
            residue: (self.sum_and_residue >> RESIDUE_SHIFT).into(),
        }
    }
}

impl Totals {
    pub(super) fn add(&mut self, next: &Self) {
        self.count += next.count;
        self.negative += next.negative;
        self.sum += next.sum;
        self.squares += next.squares;
        self.residue += next.residue;
    }
}

/// Sums by place.
pub(super) struct Histogram {
    sums: Box<[Words; PLACES]>,
    extremes: Box<[Extremes; PLACES]>,
    /// What was in words that got full; empty until needed.
    settled: Vec<Totals>,
    prepared: Box<Prepared>,
}

/// A table of equal entries, made on the heap.
fn table<T: Copy, const N: usize>(entry: T) -> Box<[T; N]> {
    let table = vec![entry; N].into_boxed_slice();
    table.try_into().unwrap_or_else(|_| Box::new([entry; N]))
}

impl Histogram {
    pub(super) fn new() -> Self {
        let (places, distances) = ([0; BLOCK], [0; BLOCK]);
        Self {
            sums: table(Words::default()),
            extremes: table(Extremes::NONE),
            settled: Vec::new(),
            prepared: Box::new(Prepared { places, distances, words: [Words::default(); BLOCK] }),
        }
    }

    /// Everything that was added at `place`.
    pub(super) fn totals(&self, place: usize) -> Totals {
        let mut totals = self.settled.get(place).copied().unwrap_or_default();
        totals.add(&self.sums[place].totals());
        totals
    }

    /// Number of elements at `place`, and of negative ones.
    pub(super) fn counts(&self, place: usize) -> (u64, u64) {
        let (recent, settled) = (self.sums[place].totals(), self.settled.get(place));
        let settled = settled.map_or((0, 0), |totals| (totals.count, totals.negative));
        (recent.count + settled.0, recent.negative + settled.1)
    }

    /// The extremes at `place`.
    pub(super) fn extremes(&self, place: usize) -> Extremes {
        self.extremes[place]
    }

    /// Whether nothing was added at `place`.
    pub(super) fn is_empty(&self, place: usize) -> bool {
        self.sums[place].squares_and_counts == 0
            && self.settled.get(place).is_none_or(|totals| totals.count == 0)
    }

    /// Forgets what was added at `place`.
    pub(super) fn clear(&mut self, place: usize) {
        self.sums[place] = Words::default();
        self.extremes[place] = Extremes::NONE;
        if let Some(totals) = self.settled.get_mut(place) {
            *totals = Totals::default();
        }
    }

    /// Adds what another histogram has at `place`.
    pub(super) fn merge(&mut self, place: usize, next: &Self) {
        let totals = next.totals(place);
        if totals.count > 0 {
            self.settle(place, &totals);
            let (extremes, others) = (&mut self.extremes[place], next.extremes[place]);
            extremes.smallest = extremes.smallest.min(others.smallest);
            extremes.largest = extremes.largest.max(others.largest);
        }
    }

    /// Adds the first `len` of what is prepared.
    #[inline(always)]
    fn add_prepared(&mut self, len: usize) {
        let Self { sums, extremes, settled, prepared } = self;
        let (sums, extremes) = (&mut **sums, &mut **extremes);
        let mut add = |place: u16, words: &Words, distance: u32| {
            let place = usize::from(place) % PLACES;
            let sums = &mut sums[place];
            sums.squares_and_counts += words.squares_and_counts;
            sums.sum_and_residue += words.sum_and_residue;
            if sums.is_full() {
                empty(sums, settled, place);
            }
            // New extremes soon become rare, so that these branches cost less than storing each time.
            let extremes = &mut extremes[place];
            if distance > extremes.largest {
                extremes.largest = distance;
            }
            if distance < extremes.smallest {
                extremes.smallest = distance;
            }
        };
        let (places, last_places) = prepared.places[..len].as_chunks::<UNROLLED>();
        let (words, last_words) = prepared.words[..len].as_chunks::<UNROLLED>();
        let (distances, last_distances) = prepared.distances[..len].as_chunks::<UNROLLED>();
        for ((places, words), distances) in places.iter().zip(words).zip(distances) {
            for index in 0..UNROLLED {
                add(places[index], &words[index], distances[index]);
            }
        }
        for ((&place, words), &distance) in last_places.iter().zip(last_words).zip(last_distances) {
            add(place, words, distance);
        }
    }

    fn settle(&mut self, place: usize, totals: &Totals) {
        settle(&mut self.settled, place, totals);
    }
}

fn settle(settled: &mut Vec<Totals>, place: usize, totals: &Totals) {
    settled.resize(PLACES, Totals::default());
    settled[place].add(totals);
}

#[cold]
#[inline(never)]
fn empty(words: &mut Words, settled: &mut Vec<Totals>, place: usize) {
    settle(settled, place, &words.totals());
    *words = Words::default();
}

/// What each element of a block adds, and where.
struct Prepared {
    places: [u16; BLOCK],
    distances: [u32; BLOCK],
    words: [Words; BLOCK],
}

/// Elements added in one turn of the loop.
const UNROLLED: usize = 8;

/// Adds a block to a histogram.
pub(super) struct Fill<'a> {
    pub(super) histogram: &'a mut Histogram,
    pub(super) block: &'a Block<'a>,
}

impl Kernel for Fill<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { histogram, block } = self;
        histogram.prepared.fill(block);
        histogram.add_prepared(block.values().len());
    }
}

impl Prepared {
    #[inline(always)]
    fn fill(&mut self, block: &Block<'_>) {
        let (values, inverses) = (block.padded(), block.inverses());
        let places = self.places.iter_mut().zip(&mut self.distances).zip(&mut self.words);
        for (index, ((place, distance), words)) in places.enumerate().take(values.len()) {
            let bits = values[index].to_bits();
            let magnitude = bits & !SIGN;
            let low = bits % WIDTH;
            let u = low.min(WIDTH - low);
            let on_grid = ON_GRID as u32 + (magnitude >> 18);
            let normal = if u == 0 { on_grid } else { magnitude >> 17 };
            let zero = (ZEROS + index % LANES) as u32;
            *place = if magnitude == 0 { zero } else { normal } as u16;
            *distance = u;
            let (u, negative) = (u64::from(u), u64::from(bits >> 31));
            let square = u * u;
            words.squares_and_counts = square + (negative << NEGATIVE_SHIFT) + (1 << COUNT_SHIFT);
            words.sum_and_residue = u + (residue(u, square, inverses[index]) << RESIDUE_SHIFT);
        }
    }
}

/// u³/significand for a significand of 24 bits, of which `inverse` is 2^54 times the reciprocal.
///
/// What it is added to is more than 2^12 times as large, so that a few bits can be dropped on the way: the
/// factors have to fit in 32.
#[inline(always)]
fn residue(u: u64, square: u64, inverse: u32) -> u64 {
    let quotient = (u * u64::from(inverse)) >> 20;
    (u64::from((square >> 3) as u32) * u64::from(quotient as u32) + (1 << 30)) >> 31
}

const _: () = assert!(FRACTION == (WIDTH << 5) - 1);
