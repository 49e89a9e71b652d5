//! Random bits for stochastic rounding that depend on the element and nothing else.
//!
//! Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): a counter-based
//! generator, so that a result does not change with threads, chunks or the tensors before.

/// Where an element is: its tensor and its index there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Which tensor, as [`stream`] of its name.
    pub stream: u64,
    /// Index of the element in the order of the file.
    pub index: u64,
}

/// A number for a tensor's name: 64-bit FNV-1a.
pub fn stream(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The 32 random bits of the element at `place` for the key `seed`.
pub fn random(seed: u64, place: Place) -> u32 {
    let halves = |x: u64| [x as u32, (x >> 32) as u32];
    let [a, b] = halves(place.index / 4);
    let [c, d] = halves(place.stream);
    philox4x32(halves(seed), [a, b, c, d])[(place.index % 4) as usize]
}

/// Ten rounds of Philox4x32.
pub fn philox4x32(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    rounds(key, counter.map(|word| [word])).map(|[word]| word)
}

/// The same of `N` counters at once, word by word.
#[inline(always)]
fn rounds<const N: usize>(mut key: [u32; 2], mut counter: [[u32; N]; 4]) -> [[u32; N]; 4] {
    for _ in 0..10 {
        let [a, b, c, d] = &mut counter;
        for lane in 0..N {
            let first = u64::from(0xd251_1f53_u32) * u64::from(a[lane]);
            let second = u64::from(0xcd9e_8d57_u32) * u64::from(c[lane]);
            a[lane] = (second >> 32) as u32 ^ b[lane] ^ key[0];
            c[lane] = (first >> 32) as u32 ^ d[lane] ^ key[1];
            (b[lane], d[lane]) = (second as u32, first as u32);
        }
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// Counters that are drawn from at once.
const LANES: usize = 16;

/// Fills `random` with what [`random`](fn@random) gives for consecutive elements, the first of which has an index
/// that is a multiple of four.
#[inline(always)]
pub fn fill(seed: u64, first: Place, random: &mut [u32]) {
    let halves = |x: u64| [x as u32, (x >> 32) as u32];
    let [c, d] = halves(first.stream);
    let mut block = first.index / 4;
    for random in random.chunks_mut(4 * LANES) {
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        for (lane, (low, high)) in low.iter_mut().zip(&mut high).enumerate() {
            [*low, *high] = halves(block + lane as u64);
        }
        let drawn = rounds(halves(seed), [low, high, [c; LANES], [d; LANES]]);
        for (lane, four) in random.chunks_mut(4).enumerate() {
            for (word, x) in drawn.iter().zip(four) {
                *x = word[lane];
            }
        }
        block += LANES as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, fill, random};

    #[test]
    fn many_at_once_are_the_same_as_one_by_one() {
        for index in [0, 4, (1 << 34) - 8] {
            let mut many = [0; 203];
            fill(5, Place { stream: 9, index }, &mut many);
            for (element, drawn) in (index..).zip(many) {
                assert_eq!(drawn, random(5, Place { stream: 9, index: element }), "{element}");
            }
        }
    }
}
