//! float64 inputs on, beside and between the midpoints of every format, in every mode: one rounding,
//! never two. What is expected is found by comparing with decoded values, never by handling bits.

use amp_inspect::cast::round::{Class, cast};
use amp_inspect::cast::{Overflow, Rounding};
use amp_inspect::format::FormatSpec;
use amp_inspect::format::decode::{CodeClass, classify, decode};

use crate::common::{OVERFLOWS, ROUNDINGS, Random, row, small_rows};

/// What a format stores beyond its range, typed in from facts about the formats: the code (without the
/// sign) of the largest number, and the code under the `ieee` policy. NaNs of the `fnuz` formats have
/// no sign; the formats of 6 and 4 bits saturate in any case.
const BEYOND: &[(&str, u32, u32)] = &[
    ("tf32", 0x3fbff, 0x3fc00),
    ("bfloat16", 0x7f7f, 0x7f80),
    ("float16", 0x7bff, 0x7c00),
    ("e5m2", 0x7b, 0x7c),
    ("e4m3fn", 0x7e, 0x7f),
    ("e4m3ieee", 0x77, 0x78),
    ("e3m4", 0x6f, 0x70),
    ("e5m2fnuz", 0x7f, 0x80),
    ("e4m3fnuz", 0x7f, 0x80),
    ("e4m3b11fnuz", 0x7f, 0x80),
    ("e3m2fn", 0x1f, 0x1f),
    ("e2m3fn", 0x1f, 0x1f),
    ("e2m1fn", 0x7, 0x7),
    ("e8m0fnu", 0xfe, 0xff),
];

/// A format as a list of its non-negative numbers.
struct Numbers {
    format: FormatSpec,
    /// By code, and after the largest the number that would follow it if the exponent had no bound.
    values: Vec<f64>,
    /// The code stored for overflow under the `ieee` policy.
    ieee_beyond: u32,
}

/// Where a magnitude lies in the gap from one number of a format to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Exact,
    LowerHalf,
    Midpoint,
    UpperHalf,
}

impl Numbers {
    fn of(name: &str) -> Self {
        let &(_, largest, ieee_beyond) = BEYOND.iter().find(|row| row.0 == name).expect(name);
        let format = row(name);
        let mut values: Vec<f64> = (0..=largest).map(|code| decode(&format, code)).collect();
        assert!(values.is_sorted_by(|a, b| a < b), "{name}: codes are in the order of their values");
        let max = *values.last().unwrap();
        let step = max - values[values.len() - 2];
        // With one significand bit each step is twice the one before.
        values.push(if format.precision == 1 { max * 2.0 } else { max + step });
        Self { format, values, ieee_beyond }
    }

    fn largest(&self) -> usize {
        self.values.len() - 2
    }

    /// The midpoint above a code; exact, as no number here has more than 24 significant bits.
    fn midpoint(&self, code: usize) -> f64 {
        f64::midpoint(self.values[code], self.values[code + 1])
    }

    /// The largest code not above a magnitude, and the magnitude's place above it.
    fn locate(&self, magnitude: f64) -> (usize, Place) {
        let code = self.values.partition_point(|&value| value <= magnitude).saturating_sub(1);
        let below = self.values[code];
        // Beyond the list every place is the same: overflow. Below it (e8m0) the first number is nearest.
        if magnitude <= below || code > self.largest() {
            return (code, Place::Exact);
        }
        let place = match magnitude.total_cmp(&self.midpoint(code)) {
            std::cmp::Ordering::Less => Place::LowerHalf,
            std::cmp::Ordering::Equal => Place::Midpoint,
            std::cmp::Ordering::Greater => Place::UpperHalf,
        };
        (code, place)
    }

    /// Code and class of a finite number, by the definitions of the modes, policies and classes.
    fn expected(&self, rounding: Rounding, overflow: Overflow, x: f64) -> (u32, Class) {
        let format = &self.format;
        let unsigned = !format.signed;
        if unsigned && overflow == Overflow::Ieee && x <= 0.0 {
            return (self.ieee_beyond, if x == 0.0 { Class::Zero } else { Class::Overflow });
        }
        let negative = x.is_sign_negative() && !unsigned;
        let (code, place) = self.locate(x.abs());
        let up = match (rounding, place) {
            (_, Place::Exact) => false,
            (Rounding::NearestEven, Place::Midpoint) => code % 2 == 1,
            (Rounding::NearestAway, Place::Midpoint) => true,
            (Rounding::NearestEven | Rounding::NearestAway, place) => place == Place::UpperHalf,
            (Rounding::TowardZero, _) => false,
            (Rounding::Up, _) => !negative,
            (Rounding::Down, _) => negative,
            (Rounding::ToOdd, _) => code % 2 == 0,
            (Rounding::Stochastic { .. }, _) => panic!("has tests of its own"),
        };
        let code = code + usize::from(up);
        let sign = if negative { format.sign_bit() } else { 0 };
        if code > self.largest() {
            let largest = self.largest() as u32 | sign;
            let away = match rounding {
                Rounding::NearestEven | Rounding::NearestAway | Rounding::Stochastic { .. } => true,
                Rounding::TowardZero | Rounding::ToOdd => false,
                Rounding::Up => !negative,
                Rounding::Down => negative,
            };
            let beyond = overflow == Overflow::Ieee && away;
            return (if beyond { self.ieee_beyond | sign } else { largest }, Class::Overflow);
        }
        let class = match self.values[code] {
            _ if x == 0.0 => Class::Zero,
            0.0 => Class::Underflow,
            value if value < format.min_normal() => Class::Subnormal,
            _ => Class::Normal,
        };
        let fnuz = self.ieee_beyond == format.sign_bit();
        (if code == 0 && fnuz { 0 } else { code as u32 | sign }, class)
    }

    /// Each number, and in the gap above it: both ends of the gap, the quarter points, and the midpoint
    /// with its float64 neighbours. Then what lies outside of all gaps. Of both signs.
    fn inputs(&self) -> Vec<f64> {
        let mut inputs = vec![0.0, f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX];
        for (code, pair) in self.values.windows(2).enumerate() {
            let (low, middle, high) = (pair[0], self.midpoint(code), pair[1]);
            let quarters = [f64::midpoint(low, middle), f64::midpoint(middle, high)];
            inputs.extend([low, low.next_up(), quarters[0], middle.next_down()]);
            inputs.extend([middle, middle.next_up(), quarters[1], high.next_down()]);
        }
        let (first, past) = (self.values[0], *self.values.last().unwrap());
        inputs.extend([first / 2.0, first.next_down().abs(), past, past.next_up(), past * 1.5, past * 4.0]);
        let negated: Vec<f64> = inputs.iter().map(|x| -x).collect();
        inputs.extend(negated);
        inputs
    }

    fn check(&self, x: f64) {
        for rounding in ROUNDINGS {
            for overflow in OVERFLOWS {
                let got = cast(&self.format, rounding, overflow, x);
                assert_eq!(
                    (got.code, got.class),
                    self.expected(rounding, overflow, x),
                    "{} {rounding:?} {overflow:?}: {x:e} = {:#x}",
                    self.format.name,
                    x.to_bits()
                );
            }
        }
    }
}

fn all_numbers() -> impl Iterator<Item = Numbers> {
    BEYOND.iter().map(|row| Numbers::of(row.0))
}

#[test]
fn every_small_row_is_tried() {
    let tried: Vec<_> = BEYOND.iter().map(|row| row.0).filter(|&name| name != "tf32").collect();
    assert_eq!(small_rows().map(|row| row.name).collect::<Vec<_>>(), tried);
}

#[test]
fn every_gap_is_cut_at_its_midpoint() {
    for numbers in all_numbers() {
        for x in numbers.inputs() {
            numbers.check(x);
        }
    }
}

/// The same said without any model: one step off a midpoint decides, the midpoint goes to the even code.
#[test]
fn one_float64_step_beside_a_tie_decides() {
    for numbers in all_numbers() {
        for code in 0..numbers.largest() as u32 {
            let tie = numbers.midpoint(code as usize);
            for rounding in [Rounding::NearestEven, Rounding::NearestAway] {
                let rounded = |x: f64| cast(&numbers.format, rounding, Overflow::Ieee, x).code;
                let sign = numbers.format.sign_bit();
                let even = if rounding == Rounding::NearestEven { code + code % 2 } else { code + 1 };
                let name = numbers.format.name;
                assert_eq!(rounded(tie.next_down()), code, "{name} {rounding:?} below {tie:e}");
                assert_eq!(rounded(tie), even, "{name} {rounding:?} {tie:e}");
                assert_eq!(rounded(tie.next_up()), code + 1, "{name} {rounding:?} above {tie:e}");
                // Of the unsigned format and the zeros without sign the model above takes care.
                if numbers.format.signed && code > 0 {
                    assert_eq!(rounded(-tie.next_down()), code | sign, "{name} {rounding:?} {tie:e}");
                    assert_eq!(rounded(-tie), even | sign, "{name} {rounding:?} {tie:e}");
                    assert_eq!(rounded(-tie.next_up()), (code + 1) | sign, "{name} {rounding:?} {tie:e}");
                }
            }
        }
    }
}

#[test]
fn random_numbers_go_to_the_right_neighbour() {
    for numbers in all_numbers() {
        let (emin, emax) = (numbers.format.emin(), numbers.format.emax());
        let mut random = Random(7);
        for _ in 0..100_000 {
            numbers.check(random.number(emin - 26..=emax + 2));
        }
        // Any bits at all: exponents of the whole float64 range, its subnormals too.
        let bits = (0..20_000).map(|_| f64::from_bits(random.bits()));
        for x in bits.filter(|x| x.is_finite()) {
            numbers.check(x);
            numbers.check(x * f64::from_bits(1) * 1e300);
        }
    }
}

#[test]
fn every_code_is_a_fixed_point() {
    for format in small_rows() {
        for code in 0..1_u32 << format.bits {
            for rounding in ROUNDINGS {
                for overflow in OVERFLOWS {
                    let got = cast(format, rounding, overflow, decode(format, code));
                    let (expected, class) = match classify(format, code) {
                        // NaN payloads are not kept: the sign and the quiet bit remain.
                        CodeClass::Nan => {
                            (format.nan_code(code & format.sign_bit() != 0).unwrap(), Class::Nan)
                        }
                        CodeClass::Infinite if overflow == Overflow::Saturate => (code - 1, Class::Inf),
                        CodeClass::Infinite => (code, Class::Inf),
                        CodeClass::Zero => (code, Class::Zero),
                        CodeClass::Subnormal => (code, Class::Subnormal),
                        CodeClass::Normal => (code, Class::Normal),
                    };
                    let name = format.name;
                    assert_eq!(
                        (got.code, got.class),
                        (expected, class),
                        "{name} {code:#x} {rounding:?} {overflow:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn casts_are_monotone() {
    for numbers in all_numbers() {
        let mut inputs = numbers.inputs();
        inputs.sort_by(f64::total_cmp);
        for rounding in ROUNDINGS {
            for overflow in OVERFLOWS {
                // Where the sign is dropped, the order is that of magnitudes.
                let order = |x: &&f64| numbers.format.signed || **x >= 0.0;
                let casts = inputs
                    .iter()
                    .filter(order)
                    .map(|&x| (x, cast(&numbers.format, rounding, overflow, x).value(&numbers.format)));
                let numbers_only: Vec<_> = casts.filter(|(_, q)| !q.is_nan()).collect();
                assert!(numbers_only.len() > 8);
                for pair in numbers_only.windows(2) {
                    let (low, high) = (pair[0], pair[1]);
                    let name = numbers.format.name;
                    assert!(low.1 <= high.1, "{name} {rounding:?} {overflow:?}: {low:?} {high:?}");
                }
            }
        }
    }
}

#[test]
fn signs_mirror() {
    let mirrored = |rounding| match rounding {
        Rounding::Up => Rounding::Down,
        Rounding::Down => Rounding::Up,
        other => other,
    };
    for numbers in all_numbers().filter(|numbers| numbers.format.signed) {
        let format = &numbers.format;
        for x in numbers.inputs() {
            for rounding in ROUNDINGS {
                for overflow in OVERFLOWS {
                    let here = cast(format, rounding, overflow, x);
                    let there = cast(format, mirrored(rounding), overflow, -x);
                    let name = format.name;
                    assert_eq!(here.class, there.class, "{name} {rounding:?} {overflow:?} {x:e}");
                    let (q, mirror) = (here.value(format), -there.value(format));
                    let same = q == mirror || (q.is_nan() && mirror.is_nan());
                    assert!(same, "{name} {rounding:?} {overflow:?} {x:e}: {q} {mirror}");
                    if format.negative_zero {
                        let mirrored = there.code ^ format.sign_bit();
                        assert_eq!(here.code, mirrored, "{name} {rounding:?} {overflow:?} {x:e}");
                    }
                }
            }
        }
    }
}
