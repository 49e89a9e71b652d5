//! The inputs that tell: where a cast changes its result, and all that has a rule of its own.

use std::sync::Arc;

use crate::format::FormatSpec;

/// Formats with more numbers than this are sampled: the first and last of each binade, and every so many
/// between.
const ALL_CODES: u64 = 1 << 18;

/// Inputs of any width: the bits of a value are those below the sign.
trait Width {
    const SIGN: u64;
    const INFINITY: u64;
    const TRAILING: u32;
    fn bits(x: f64) -> u64;
}

struct Single;
struct Double;

impl Width for Single {
    const SIGN: u64 = 1 << 31;
    const INFINITY: u64 = 0x7f80_0000;
    const TRAILING: u32 = 23;
    fn bits(x: f64) -> u64 {
        (x as f32).to_bits().into()
    }
}

impl Width for Double {
    const SIGN: u64 = 1 << 63;
    const INFINITY: u64 = 0x7ff0_0000_0000_0000;
    const TRAILING: u32 = 52;
    fn bits(x: f64) -> u64 {
        x.to_bits()
    }
}

/// Bits of float32.
pub(super) fn float32(format: &FormatSpec) -> Arc<[u64]> {
    telling::<Single>(format)
}

/// Bits of float64.
pub(super) fn float64(format: &FormatSpec) -> Arc<[u64]> {
    telling::<Double>(format)
}

/// Every code, or a sample of both signs where there are more than 2^20.
pub(super) fn codes(format: &FormatSpec) -> Arc<[u64]> {
    if format.bits <= 20 {
        return (0..1 << format.bits).collect();
    }
    let edges = [u64::from(format.max_finite_code()) + 1, format.magnitude_mask().into()];
    let magnitudes = numbers(format).into_iter().chain(edges).collect::<Vec<_>>();
    let signed = magnitudes.iter().map(|code| code | u64::from(format.sign_bit()));
    magnitudes.iter().copied().chain(signed).collect()
}

/// Codes of the non-negative numbers.
fn numbers(format: &FormatSpec) -> Vec<u64> {
    let last = u64::from(format.max_finite_code());
    if last < ALL_CODES {
        return (0..=last).collect();
    }
    // An odd step meets odd and even codes.
    let step = (last / ALL_CODES) | 1;
    let binade = 1_u64 << format.trailing_bits();
    let edges = (0..=last / binade).flat_map(|field| {
        let first = field * binade;
        [first.saturating_sub(1), first, first + 1]
    });
    let mut codes: Vec<u64> = (0..=last).step_by(step as usize).chain(edges).chain([last]).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.retain(|&code| code <= last);
    codes
}

/// In the order of their bits, each once.
fn telling<W: Width>(format: &FormatSpec) -> Arc<[u64]> {
    let mut magnitudes = Vec::new();
    for code in numbers(format) {
        let (number, next) = (format.magnitude(code), format.magnitude(code + 1));
        for x in [number, f64::midpoint(number, next)] {
            let bits = W::bits(x);
            magnitudes.extend([bits.saturating_sub(1), bits, bits + 1]);
        }
    }
    // Subnormal inputs with each highest bit, the limits of normal ones, and the largest.
    let normal = 1_u64 << W::TRAILING;
    for bit in 0..W::TRAILING {
        magnitudes.extend([1 << bit, (1 << bit) + 1, (3 << bit) >> 1, (2 << bit) - 1]);
    }
    magnitudes.extend([0, normal - 1, normal, normal + 1, W::INFINITY - 1]);
    magnitudes.retain(|&bits| bits < W::INFINITY);
    magnitudes.push(W::INFINITY);
    // NaNs with each single payload bit, some with several, quiet and not.
    for bit in 0..W::TRAILING {
        magnitudes.extend([1 << bit, (2 << bit) - 1, normal - (1 << bit)].map(|bits| W::INFINITY | bits));
    }
    magnitudes.sort_unstable();
    magnitudes.dedup();
    let negative = magnitudes.iter().map(|bits| bits | W::SIGN);
    magnitudes.iter().copied().chain(negative).collect()
}
