//! The format rows: every code against ml_dtypes and NumPy, limits against their tables and against
//! literals, names, and the formats that a user describes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::collections::HashSet;

use amp_inspect::cast::Overflow;
use amp_inspect::format::decode::{CodeClass, classify, decode};
use amp_inspect::format::table::FORMATS;
use amp_inspect::format::{FormatSpec, exponent_of, find, pow2};
use common::{Random, exhaustive, gunzip, names_in, row, small_rows, testdata};

/// Equal in every bit, but for the payload of a NaN.
fn same(a: f64, b: f64) -> bool {
    let payload = |x: f64| if x.is_nan() { x.is_sign_negative().into() } else { x.to_bits() };
    a.is_nan() == b.is_nan() && payload(a) == payload(b)
}

/// The values that another maker gave to the codes 0, 1, 2, … of a format.
fn golden_values(name: &str) -> Vec<f64> {
    let planes = gunzip(&format!("formats/{name}.f64.gz"));
    let count = planes.len() / 8;
    (0..count)
        .map(|code| f64::from_le_bytes(std::array::from_fn(|plane| planes[plane * count + code])))
        .collect()
}

#[test]
fn every_code_means_what_it_means_to_ml_dtypes_and_numpy() {
    let names = names_in("formats", ".f64.gz");
    let mut tried: Vec<_> = names.iter().map(|name| row(name).name).collect();
    tried.sort_unstable();
    let mut rows: Vec<_> = small_rows().map(|row| row.name).collect();
    rows.sort_unstable();
    assert_eq!(tried, rows, "one golden file for each row of at most 16 bits");
    let mut codes = 0;
    for name in &names {
        let (format, values) = (row(name), golden_values(name));
        assert_eq!(values.len(), 1 << format.bits, "{name}");
        for (code, &theirs) in values.iter().enumerate() {
            let ours = decode(&format, code as u32);
            assert!(same(ours, theirs), "{name} {code:#x}: {ours:e}, theirs {theirs:e}");
        }
        codes += values.len();
    }
    assert_eq!(codes, 133_264);
}

#[test]
fn tf32_and_float32_follow_from_binary32() {
    let (tf32, float32) = (row("tf32"), row("float32"));
    for code in 0..1 << 19 {
        let expected = f64::from(f32::from_bits(code << 13));
        assert!(same(decode(&tf32, code), expected), "tf32 {code:#x}");
    }
    let stride = if exhaustive() { 1 } else { 4099 };
    for code in (0..=u32::MAX).step_by(stride) {
        let expected = f64::from(f32::from_bits(code));
        assert!(same(decode(&float32, code), expected), "float32 {code:#x}");
    }
}

#[test]
fn bfloat16_is_the_upper_half_of_float32() {
    let bfloat16 = row("bfloat16");
    for code in 0..1 << 16 {
        assert!(same(decode(&bfloat16, code), f32::from_bits(code << 16).into()), "{code:#x}");
    }
}

#[test]
fn limits_equal_finfo() {
    let text = std::fs::read_to_string(testdata("formats/finfo.csv")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let mut count = 0;
    for line in lines {
        let fields: Vec<_> = line.split(',').collect();
        let [name, bits, constants @ ..] = &fields[..] else { panic!("{line}") };
        let [max, normal, subnormal, eps] =
            [0, 1, 2, 3].map(|field| f64::from_bits(u64::from_str_radix(constants[field], 16).unwrap()));
        let format = row(name);
        assert_eq!(format.bits, bits.parse::<u32>().unwrap(), "{name}");
        assert_eq!(format.max_finite(), max, "{name}");
        assert_eq!(format.min_normal(), normal, "{name}");
        // e8m0 has no subnormal numbers; finfo repeats the smallest number there.
        assert_eq!(format.min_subnormal().unwrap_or(format.min_normal()), subnormal, "{name}");
        assert_eq!(format.epsilon(), eps, "{name}");
        count += 1;
    }
    assert_eq!(count, 13);
}

#[test]
fn limits_of_the_wide_rows() {
    let float32 = row("float32");
    assert_eq!(float32.max_finite(), f64::from(f32::MAX));
    assert_eq!(float32.min_normal(), f64::from(f32::MIN_POSITIVE));
    assert_eq!(float32.min_subnormal(), Some(f32::from_bits(1).into()));
    assert_eq!(float32.epsilon(), f64::from(f32::EPSILON));
    let tf32 = row("tf32");
    assert_eq!(tf32.max_finite(), 2047.0 * pow2(117));
    assert_eq!(tf32.min_normal(), pow2(-126));
    assert_eq!(tf32.min_subnormal(), Some(pow2(-136)));
    assert_eq!(tf32.epsilon(), pow2(-10));
}

/// Codes of each kind in the whole format, and the numbers of emin and emax, from the specifications.
struct Counts {
    name: &'static str,
    bias: i32,
    emin: i32,
    emax: i32,
    infinite: u32,
    nan: u32,
    zero: u32,
    subnormal: u32,
    normal: u32,
}

#[test]
fn counts_of_codes_are_those_of_the_specifications() {
    #[rustfmt::skip]
    const TABLE: &[Counts] = &[
        Counts { name: "tf32", bias: 127, emin: -126, emax: 127, infinite: 2, nan: 2046, zero: 2, subnormal: 2046, normal: 520_192 },
        Counts { name: "bfloat16", bias: 127, emin: -126, emax: 127, infinite: 2, nan: 254, zero: 2, subnormal: 254, normal: 65_024 },
        Counts { name: "float16", bias: 15, emin: -14, emax: 15, infinite: 2, nan: 2046, zero: 2, subnormal: 2046, normal: 61_440 },
        Counts { name: "e5m2", bias: 15, emin: -14, emax: 15, infinite: 2, nan: 6, zero: 2, subnormal: 6, normal: 240 },
        Counts { name: "e4m3fn", bias: 7, emin: -6, emax: 8, infinite: 0, nan: 2, zero: 2, subnormal: 14, normal: 238 },
        Counts { name: "e4m3ieee", bias: 7, emin: -6, emax: 7, infinite: 2, nan: 14, zero: 2, subnormal: 14, normal: 224 },
        Counts { name: "e3m4", bias: 3, emin: -2, emax: 3, infinite: 2, nan: 30, zero: 2, subnormal: 30, normal: 192 },
        Counts { name: "e5m2fnuz", bias: 16, emin: -15, emax: 15, infinite: 0, nan: 1, zero: 1, subnormal: 6, normal: 248 },
        Counts { name: "e4m3fnuz", bias: 8, emin: -7, emax: 7, infinite: 0, nan: 1, zero: 1, subnormal: 14, normal: 240 },
        Counts { name: "e4m3b11fnuz", bias: 11, emin: -10, emax: 4, infinite: 0, nan: 1, zero: 1, subnormal: 14, normal: 240 },
        Counts { name: "e3m2fn", bias: 3, emin: -2, emax: 4, infinite: 0, nan: 0, zero: 2, subnormal: 6, normal: 56 },
        Counts { name: "e2m3fn", bias: 1, emin: 0, emax: 2, infinite: 0, nan: 0, zero: 2, subnormal: 14, normal: 48 },
        Counts { name: "e2m1fn", bias: 1, emin: 0, emax: 2, infinite: 0, nan: 0, zero: 2, subnormal: 2, normal: 12 },
        Counts { name: "e8m0fnu", bias: 127, emin: -127, emax: 127, infinite: 0, nan: 1, zero: 0, subnormal: 0, normal: 255 },
    ];
    let rows: Vec<_> = FORMATS.iter().map(|row| row.name).filter(|&name| name != "float32").collect();
    assert_eq!(TABLE.iter().map(|counts| counts.name).collect::<Vec<_>>(), rows);
    for counts in TABLE {
        let (name, format) = (counts.name, row(counts.name));
        let limits = (format.bias, format.emin(), format.emax());
        assert_eq!(limits, (counts.bias, counts.emin, counts.emax), "{name}");
        let of = |class| (0..1_u32 << format.bits).filter(|&code| classify(&format, code) == class).count();
        let found =
            [CodeClass::Infinite, CodeClass::Nan, CodeClass::Zero, CodeClass::Subnormal, CodeClass::Normal]
                .map(of);
        let expected = [counts.infinite, counts.nan, counts.zero, counts.subnormal, counts.normal];
        assert_eq!(found, expected.map(|count| count as usize), "{name}: Inf, NaN, 0, subnormal, normal");
    }
}

/// Checks what any format must satisfy, code by code.
fn assert_consistent(format: &FormatSpec) {
    let name = format.name;
    let (mut largest, mut smallest_normal, mut smallest_subnormal) = (0.0, f64::INFINITY, f64::INFINITY);
    for code in 0..1_u32 << format.bits {
        let value = decode(format, code);
        let magnitude = value.abs();
        let expected = match classify(format, code) {
            CodeClass::Nan => value.is_nan(),
            CodeClass::Infinite => value.is_infinite(),
            CodeClass::Zero => value == 0.0,
            CodeClass::Subnormal => {
                smallest_subnormal = magnitude.min(smallest_subnormal);
                0.0 < magnitude && magnitude < pow2(format.emin())
            }
            CodeClass::Normal => {
                smallest_normal = magnitude.min(smallest_normal);
                exponent_of(value) >= format.emin() && exponent_of(value) <= format.emax()
            }
        };
        assert!(expected, "{name} {code:#x}: {value:e} is no {:?}", classify(format, code));
        let negative = code & format.sign_bit() != 0;
        assert_eq!(value.is_sign_negative(), negative, "{name} {code:#x}: {value:e}");
        if value.is_finite() {
            largest = magnitude.max(largest);
        }
        // Bits above the width are not part of the code.
        if format.bits < 32 {
            assert!(same(decode(format, code | 1 << format.bits), value), "{name} {code:#x}");
        }
    }
    assert_eq!(format.max_finite(), largest, "{name}");
    assert_eq!(decode(format, format.max_finite_code()), largest, "{name}");
    assert_eq!(format.min_normal(), smallest_normal, "{name}");
    assert_eq!(format.min_subnormal().unwrap_or(f64::INFINITY), smallest_subnormal, "{name}");
    assert_eq!(exponent_of(largest), format.emax(), "{name}");
    assert_eq!(
        format.bits,
        u32::from(format.signed) + format.exponent_bits() + format.trailing_bits(),
        "{name}"
    );
    for negative in [false, true] {
        if let Some(code) = format.nan_code(negative) {
            assert_eq!(classify(format, code), CodeClass::Nan, "{name} {code:#x}");
        } else {
            let all = 0..1_u32 << format.bits;
            assert!(all.into_iter().all(|code| classify(format, code) != CodeClass::Nan), "{name}");
        }
    }
    if let Some(code) = format.infinity_code() {
        assert_eq!(decode(format, code), f64::INFINITY, "{name}");
        assert_eq!(decode(format, code | format.sign_bit()), -f64::INFINITY, "{name}");
    }
}

#[test]
fn rows_agree_with_their_own_codes() {
    FORMATS.iter().filter(|row| row.bits < 32).for_each(assert_consistent);
    for name in ["e5m3", "e6m9", "e3m3fn", "e4m7fn", "e1m0fn", "e1m3fnuz", "e5m3b20fnuz", "e2m1", "e8m1"] {
        assert_consistent(&row(name));
    }
}

#[test]
fn canonical_nans() {
    let codes = |name| [false, true].map(|negative| row(name).nan_code(negative));
    assert_eq!(codes("float32"), [Some(0x7fc0_0000), Some(0xffc0_0000)]);
    assert_eq!(codes("tf32"), [Some(0x3fe00), Some(0x7fe00)]);
    assert_eq!(codes("bfloat16"), [Some(0x7fc0), Some(0xffc0)]);
    assert_eq!(codes("float16"), [Some(0x7e00), Some(0xfe00)]);
    assert_eq!(codes("e5m2"), [Some(0x7e), Some(0xfe)]);
    assert_eq!(codes("e4m3fn"), [Some(0x7f), Some(0xff)]);
    assert_eq!(codes("e4m3ieee"), [Some(0x7c), Some(0xfc)]);
    assert_eq!(codes("e3m4"), [Some(0x78), Some(0xf8)]);
    for name in ["e5m2fnuz", "e4m3fnuz", "e4m3b11fnuz"] {
        assert_eq!(codes(name), [Some(0x80), Some(0x80)], "{name}");
    }
    for name in ["e3m2fn", "e2m3fn", "e2m1fn"] {
        assert_eq!(codes(name), [None, None], "{name}");
    }
    assert_eq!(codes("e8m0fnu"), [Some(0xff), Some(0xff)]);
}

#[test]
fn e2m1_has_these_sixteen_values() {
    let e2m1 = row("e2m1fn");
    let values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    for (code, value) in (0..).zip(values) {
        assert_eq!(decode(&e2m1, code), value);
        assert_eq!(decode(&e2m1, code + 8), -value);
    }
}

#[test]
fn thresholds() {
    // Name; largest number; where overflow begins, and whether the tie itself overflows; smallest normal
    // and subnormal number; largest magnitude that becomes zero.
    type Row = (&'static str, f64, f64, bool, f64, Option<f64>, Option<f64>);
    let p = pow2;
    #[rustfmt::skip]
    let table: &[Row] = &[
        ("float32", 16_777_215.0 * p(104), 33_554_431.0 * p(103), true, p(-126), Some(p(-149)), Some(p(-150))),
        ("tf32", 2047.0 * p(117), 4095.0 * p(116), true, p(-126), Some(p(-136)), Some(p(-137))),
        ("bfloat16", 255.0 * p(120), 511.0 * p(119), true, p(-126), Some(p(-133)), Some(p(-134))),
        ("float16", 65504.0, 65520.0, true, p(-14), Some(p(-24)), Some(p(-25))),
        ("e5m2", 57344.0, 61440.0, true, p(-14), Some(p(-16)), Some(p(-17))),
        ("e4m3fn", 448.0, 464.0, false, p(-6), Some(p(-9)), Some(p(-10))),
        ("e4m3ieee", 240.0, 248.0, true, p(-6), Some(p(-9)), Some(p(-10))),
        ("e3m4", 15.5, 15.75, true, p(-2), Some(p(-6)), Some(p(-7))),
        ("e5m2fnuz", 57344.0, 61440.0, true, p(-15), Some(p(-17)), Some(p(-18))),
        ("e4m3fnuz", 240.0, 248.0, true, p(-7), Some(p(-10)), Some(p(-11))),
        ("e4m3b11fnuz", 30.0, 31.0, true, p(-10), Some(p(-13)), Some(p(-14))),
        ("e3m2fn", 28.0, 30.0, true, p(-2), Some(p(-4)), Some(p(-5))),
        ("e2m3fn", 7.5, 7.75, true, 1.0, Some(p(-3)), Some(p(-4))),
        ("e2m1fn", 6.0, 7.0, true, 1.0, Some(0.5), Some(0.25)),
        ("e8m0fnu", p(127), 1.5 * p(127), false, p(-127), None, None),
    ];
    assert_eq!(
        table.iter().map(|row| row.0).collect::<Vec<_>>(),
        FORMATS.iter().map(|row| row.name).collect::<Vec<_>>()
    );
    for &(name, max, overflow, includes_tie, normal, subnormal, flush) in table {
        let format = row(name);
        assert_eq!(format.max_finite(), max, "{name}");
        assert_eq!(format.overflow_threshold(), overflow, "{name}");
        assert_eq!(format.overflow_includes_tie(), includes_tie, "{name}");
        assert_eq!(format.min_normal(), normal, "{name}");
        assert_eq!(format.min_subnormal(), subnormal, "{name}");
        assert_eq!(format.flush_threshold(), flush, "{name}");
    }
    // The first float32 that overflows, as bits.
    let firsts = [
        ("e4m3fn", 0x43e8_0001),
        ("e5m2", 0x4770_0000),
        ("e4m3fnuz", 0x4378_0000),
        ("bfloat16", 0x7f7f_8000),
        ("tf32", 0x7f7f_f000_u32),
    ];
    for (name, bits) in firsts {
        let format = row(name);
        let threshold = format.overflow_threshold() as f32;
        let first = if format.overflow_includes_tie() { threshold } else { threshold.next_up() };
        assert_eq!(first.to_bits(), bits, "{name}");
    }
}

#[test]
fn names_are_unique_and_every_spelling_finds_its_row() {
    let mut seen = HashSet::new();
    for format in FORMATS {
        assert!(!format.source.is_empty(), "{}", format.name);
        for name in [format.name].iter().chain(format.aliases) {
            assert!(seen.insert(*name), "'{name}' is there twice");
            assert_eq!(*name, name.to_ascii_lowercase().replace('-', "_"), "find would never match");
            let spellings = [
                (*name).to_owned(),
                name.to_ascii_uppercase(),
                name.replace('_', "-"),
                format!("torch.{name}"),
                format!(" {name} "),
            ];
            for spelling in spellings {
                assert_eq!(find(&spelling).unwrap(), *format, "'{spelling}'");
            }
        }
    }
}

/// Equal in everything but the name and where it is defined.
fn same_parameters(a: &FormatSpec, b: &FormatSpec) -> bool {
    FormatSpec { name: a.name, aliases: a.aliases, source: a.source, ..*b } == *a
}

#[test]
fn described_formats_equal_the_rows_that_they_describe() {
    let pairs = [
        ("e8m23", "float32"),
        ("e8m10", "tf32"),
        ("e8m7", "bfloat16"),
        ("e5m10", "float16"),
        ("e5m2b15", "e5m2"),
        ("e4m3b7fn", "e4m3fn"),
        ("E4M3B7", "e4m3ieee"),
        ("e3m4b3", "e3m4"),
        ("e5m2b16fnuz", "e5m2fnuz"),
        ("torch.e4m3b8fnuz", "e4m3fnuz"),
        ("e3m2b3fn", "e3m2fn"),
        ("e2m3b1fn", "e2m3fn"),
        ("e2m1b1fn", "e2m1fn"),
    ];
    for (description, name) in pairs {
        let (described, expected) = (row(description), row(name));
        assert_ne!(described.name, expected.name);
        assert!(same_parameters(&described, &expected), "{description}: {described:?}");
    }
    // The bias of fnuz is one larger by default, so the row's own name describes it too.
    let e3m4fnuz = row("e3m4fnuz");
    assert_eq!((e3m4fnuz.bias, e3m4fnuz.max_finite()), (4, 15.5));
    // A row's name or alias comes before the description that it resembles.
    assert_eq!(row("e4m3").name, "e4m3fn");
    assert_eq!(row("e3m2").name, "e3m2fn");
    assert_eq!(row("e5m3").max_finite(), 61440.0);
    assert_eq!(row("e5m3b14").max_finite(), 122_880.0);
    assert_eq!(Overflow::default_for(&row("e5m3")), Overflow::Ieee);
    // Below 8 bits `fn` spends no code on a NaN, from 8 bits on one of each sign.
    assert_eq!((row("e3m3fn").high_nans, row("e3m3fn").max_finite()), (0, 30.0));
    assert_eq!((row("e3m4fn").high_nans, row("e3m4fn").max_finite()), (1, 30.0));
    assert_eq!(row("e1m0fn").max_finite(), 2.0);
    // The smallest number of all that may be described is the smallest normal float64.
    assert_eq!(row("e4m3b1020fn").min_subnormal(), Some(f64::MIN_POSITIVE));
}

#[test]
fn what_is_no_format_is_refused() {
    let exponent = "the exponent field must have 1 to 8 bits";
    let significand = "the significand field must have at most 23 bits";
    let reserved = "with Inf and NaN it needs 2 exponent bits and 1 significand bit; add fn";
    let range = "with this bias its numbers leave the range of a 64-bit float";
    let refusals = [
        ("e9m2", exponent),
        ("e0m3", exponent),
        ("e999999999m1", exponent),
        ("e5m24", significand),
        ("e5m999999999fn", significand),
        ("e1m2", reserved),
        ("e7m0", reserved),
        ("e8m7b2000", range),
        ("e8m7b999999999", range),
        ("e4m3b1021fn", range),
    ];
    for (text, why) in refusals {
        let error = find(text).unwrap_err().to_string();
        assert_eq!(error, format!("format '{text}': {why}"));
    }
    let known = "float32, tf32, bfloat16, float16, e5m2, e4m3fn, e4m3ieee, e3m4, e5m2fnuz, e4m3fnuz, \
                 e4m3b11fnuz, e3m2fn, e2m3fn, e2m1fn, e8m0fnu";
    let unknown = [
        ("", ""),
        ("int8", "int8"),
        ("e4", "e4"),
        ("e4m", "e4m"),
        ("em3", "em3"),
        ("e4m3x", "e4m3x"),
        ("e4m3b", "e4m3b"),
        ("e4m3b-1", "e4m3b-1"),
        ("e4m3fnfn", "e4m3fnfn"),
        ("e4m3b7fnu", "e4m3b7fnu"),
        ("e1234567890m3", "e1234567890m3"),
        ("e+4m3", "e+4m3"),
        ("\u{1b}[31mfp8\n", "\\u{1b}[31mfp8\\n"),
        ("é4m3", "é4m3"),
    ];
    for (text, shown) in unknown {
        let expected = format!(
            "unknown format '{shown}'; known are {known}, or describe one as e<E>m<M> with b<bias>, fn or fnuz"
        );
        assert_eq!(find(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn powers_and_exponents_over_the_whole_range() {
    for exponent in -1074..1024_i32 {
        // Exact halving and doubling from 1 are the reference.
        let mut expected = 1.0_f64;
        for _ in 0..exponent.abs() {
            expected = if exponent < 0 { expected / 2.0 } else { expected * 2.0 };
        }
        assert_eq!(pow2(exponent), expected, "{exponent}");
        assert_eq!(exponent_of(expected), exponent);
        assert_eq!(exponent_of(-expected.next_up()), if exponent == -1074 { -1073 } else { exponent });
        if exponent > -1074 {
            assert_eq!(exponent_of(expected.next_down()), exponent - 1);
        }
    }
    assert_eq!([pow2(-1075), pow2(i32::MIN)], [0.0, 0.0]);
    assert_eq!([pow2(1024), pow2(i32::MAX)], [f64::INFINITY; 2]);
    let mut random = Random(5);
    for _ in 0..10_000 {
        let x = random.number(-1022..=1023);
        let exponent = exponent_of(x);
        assert!(pow2(exponent) <= x.abs() && x.abs() < 2.0 * pow2(exponent), "{x:e}");
    }
}
