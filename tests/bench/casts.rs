//! `cargo bench --bench casts`: elements a second of slice casts, by format and level, on one thread.
//!
//! The slices fit the second-level cache, so that memory does not count; each figure is the best of several
//! runs, as others may use the machine.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use amp_inspect::cast::fast::Level;
use amp_inspect::cast::fast::hardware::INSTRUCTIONS;
use amp_inspect::cast::fast::slice::{Code, SliceCast};
use amp_inspect::cast::fast::unpack::SliceDecode;
use amp_inspect::cast::{CastPlan, Place};
use amp_inspect::format::table::FORMATS;

const LENGTH: usize = 1 << 15;
const RUNS: usize = 9;

/// Billions of elements a second.
fn rate(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..16 {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64() / 16.0);
    }
    LENGTH as f64 / best / 1e9
}

fn both<C: Code>(plan: &CastPlan, level: Level, values: &[f32]) -> (f64, f64) {
    let mut codes = vec![C::default(); values.len()];
    let cast = SliceCast::new(plan).unwrap();
    let encode = rate(|| cast.encode(level, black_box(values), black_box(&mut codes)));
    let decoder = SliceDecode::new(&plan.target).unwrap();
    let mut back = vec![0.0; values.len()];
    (encode, rate(|| decoder.decode(level, black_box(&codes), black_box(&mut back))))
}

fn main() {
    let mut state = 1_u32;
    let values: Vec<f32> = (0..LENGTH)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            // Magnitudes over 32 binades below and above 1, both signs.
            f32::from_bits((state & 0x8fff_ffff) | 0x3000_0000)
        })
        .collect();
    println!("Gelem/s   f32 to codes (codes to f32), slices of {LENGTH}");
    let levels: Vec<Level> = Level::ALL.into_iter().filter(|level| level.is_available()).collect();
    print!("{:12} {:>10}", "", "definition");
    levels.iter().for_each(|level| print!(" {:>15}", level.name()));
    println!();
    for format in FORMATS {
        let plan = CastPlan::new(*format);
        let mut codes = vec![0; LENGTH];
        let definition = rate(|| {
            for (x, code) in black_box(&values).iter().zip(&mut codes) {
                *code = plan.cast_f32(*x, Place::default()).code;
            }
            black_box(&codes);
        });
        print!("{:12} {definition:10.3}", format.name);
        for &level in &levels {
            let (encode, decode) = match format.bits {
                0..=8 => both::<u8>(&plan, level, &values),
                9..=16 => both::<u16>(&plan, level, &values),
                _ => both::<u32>(&plan, level, &values),
            };
            print!(" {:>15}", format!("{encode:.2} ({decode:.2})"));
        }
        println!();
    }
    for instruction in INSTRUCTIONS.iter().filter(|instruction| instruction.is_available()) {
        let mut codes = vec![0; LENGTH];
        let speed = rate(|| instruction.convert(black_box(&values), black_box(&mut codes)));
        println!("{:12} {:>10} {speed:15.2}", instruction.name, "");
    }
}
