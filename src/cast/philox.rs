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
    let (mut key, mut counter) = (key, counter);
    for _ in 0..10 {
        let product = |factor: u32, x: u32| {
            let wide = u64::from(factor) * u64::from(x);
            ((wide >> 32) as u32, wide as u32)
        };
        let (high0, low0) = product(0xd251_1f53, counter[0]);
        let (high1, low1) = product(0xcd9e_8d57, counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}
