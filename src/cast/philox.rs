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
#[inline(always)]
pub fn philox4x32(mut key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let low = |x: u64| x & u64::from(u32::MAX);
    // In words of 64 bits, of which the lower half counts, as products are.
    let [mut a, mut b, mut c, mut d] = counter.map(u64::from);
    for _ in 0..10 {
        let first = 0xd251_1f53 * low(a);
        let second = 0xcd9e_8d57 * low(c);
        (a, b) = ((second >> 32) ^ b ^ u64::from(key[0]), second);
        (c, d) = ((first >> 32) ^ d ^ u64::from(key[1]), first);
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    [a, b, c, d].map(|word| word as u32)
}

/// Fills `random` with what [`random`](fn@random) gives for consecutive elements, the first of which has an index
/// that is a multiple of four.
#[inline(always)]
pub fn fill(seed: u64, first: Place, random: &mut [u32]) {
    let halves = |x: u64| [x as u32, (x >> 32) as u32];
    let ([c, d], key) = (halves(first.stream), halves(seed));
    let drawn = |counter: u64| {
        let [a, b] = halves(counter);
        philox4x32(key, [a, b, c, d])
    };
    let block = first.index / 4;
    let (fours, rest) = random.as_chunks_mut::<4>();
    for (number, four) in fours.iter_mut().enumerate() {
        *four = drawn(block + number as u64);
    }
    let last = drawn(block + fours.len() as u64);
    rest.iter_mut().zip(last).for_each(|(x, word)| *x = word);
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
