//! Codes and classes worked out by hand, for the inputs that users argue about.

use amp_inspect::cast::Overflow::{Ieee, Saturate};
use amp_inspect::cast::round::Class::{self, Inf, Nan, Normal, Subnormal, Underflow, Zero};
use amp_inspect::cast::round::{Class::Overflow as Beyond, cast};
use amp_inspect::cast::{CastPlan, Overflow, Rounding};
use amp_inspect::format::pow2;

use crate::common::row;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// Rounds to nearest even and compares code and class.
fn check(name: &str, overflow: Overflow, cases: &[(f64, u32, Class)]) {
    let format = row(name);
    for &(x, code, class) in cases {
        let got = cast(&format, Rounding::NearestEven, overflow, x);
        assert_eq!((got.code, got.class), (code, class), "{name} {overflow:?}: {x:e} gave {:#x}", got.code);
    }
}

/// NaN with the sign bit: negation, since `-f64::NAN` is not promised to have it.
fn negative_nan() -> f64 {
    f64::from_bits(NAN.to_bits() | 1 << 63)
}

fn positive_nan() -> f64 {
    f64::from_bits(NAN.to_bits() & !(1 << 63))
}

#[test]
fn float16() {
    let cases = |beyond: u32| {
        vec![
            (0.0, 0x0000, Zero),
            (-0.0, 0x8000, Zero),
            (positive_nan(), 0x7e00, Nan),
            (negative_nan(), 0xfe00, Nan),
            (INF, beyond, Inf),
            (-INF, beyond | 0x8000, Inf),
            (1.0, 0x3c00, Normal),
            // 1 + 2^-11 is the tie between 1 and 1 + 2^-10; 1 + 3*2^-11 the next, above an odd code.
            (1.0 + pow2(-11), 0x3c00, Normal),
            ((1.0 + pow2(-11)).next_up(), 0x3c01, Normal),
            (1.0 + 3.0 * pow2(-11), 0x3c02, Normal),
            ((1.0 + 3.0 * pow2(-11)).next_down(), 0x3c01, Normal),
            // Half the smallest subnormal is a tie with zero, the even code.
            (pow2(-25), 0x0000, Underflow),
            (-pow2(-25), 0x8000, Underflow),
            (pow2(-25).next_up(), 0x0001, Subnormal),
            (-pow2(-25).next_up(), 0x8001, Subnormal),
            (pow2(-24), 0x0001, Subnormal),
            (1.5 * pow2(-24), 0x0002, Subnormal),
            (1023.0 * pow2(-24), 0x03ff, Subnormal),
            // 1023.5 units are the tie between the largest subnormal and the smallest normal number.
            ((1023.5 * pow2(-24)).next_down(), 0x03ff, Subnormal),
            (1023.5 * pow2(-24), 0x0400, Normal),
            (pow2(-14), 0x0400, Normal),
            (65504.0, 0x7bff, Normal),
            (65519.996, 0x7bff, Normal),
            (-65519.996, 0xfbff, Normal),
            (65520.0_f64.next_down(), 0x7bff, Normal),
            (65520.0, beyond, Beyond),
            (-65520.0, beyond | 0x8000, Beyond),
            (65536.0, beyond, Beyond),
            (f64::MAX, beyond, Beyond),
            (f64::from_bits(1), 0x0000, Underflow),
        ]
    };
    check("float16", Ieee, &cases(0x7c00));
    check("float16", Saturate, &cases(0x7bff));
}

#[test]
fn e4m3fn() {
    let cases = |beyond: u32| {
        vec![
            (0.0, 0x00, Zero),
            (-0.0, 0x80, Zero),
            (positive_nan(), 0x7f, Nan),
            (negative_nan(), 0xff, Nan),
            (INF, beyond, Inf),
            (-INF, beyond | 0x80, Inf),
            (1.0, 0x38, Normal),
            (1.0625, 0x38, Normal),
            (1.0625 + pow2(-40), 0x39, Normal),
            (1.1875, 0x3a, Normal),
            (pow2(-10), 0x00, Underflow),
            (-pow2(-10), 0x80, Underflow),
            (pow2(-10).next_up(), 0x01, Subnormal),
            (pow2(-9), 0x01, Subnormal),
            (7.0 * pow2(-9), 0x07, Subnormal),
            (7.5 * pow2(-9), 0x08, Normal),
            ((7.5 * pow2(-9)).next_down(), 0x07, Subnormal),
            (pow2(-6), 0x08, Normal),
            (448.0, 0x7e, Normal),
            // Not in the format, but rounded it is: 464 is the tie, and 448 has the even code.
            (449.0, 0x7e, Normal),
            (464.0, 0x7e, Normal),
            (-464.0, 0xfe, Normal),
            (464.0_f64.next_up(), beyond, Beyond),
            (-464.0_f64.next_up(), beyond | 0x80, Beyond),
            (f32::from_bits(0x43e8_0001).into(), beyond, Beyond),
            (480.0, beyond, Beyond),
        ]
    };
    check("e4m3fn", Ieee, &cases(0x7f));
    check("e4m3fn", Saturate, &cases(0x7e));
}

#[test]
fn e5m2() {
    let cases = |beyond: u32| {
        vec![
            (0.0, 0x00, Zero),
            (-0.0, 0x80, Zero),
            (positive_nan(), 0x7e, Nan),
            (negative_nan(), 0xfe, Nan),
            (INF, beyond, Inf),
            (-INF, beyond | 0x80, Inf),
            (1.0, 0x3c, Normal),
            (1.125, 0x3c, Normal),
            (1.375, 0x3e, Normal),
            (pow2(-17), 0x00, Underflow),
            (pow2(-17).next_up(), 0x01, Subnormal),
            (-pow2(-16), 0x81, Subnormal),
            (3.0 * pow2(-16), 0x03, Subnormal),
            (3.5 * pow2(-16), 0x04, Normal),
            (pow2(-14), 0x04, Normal),
            (57344.0, 0x7b, Normal),
            (61440.0_f64.next_down(), 0x7b, Normal),
            (61440.0, beyond, Beyond),
            (-61440.0, beyond | 0x80, Beyond),
        ]
    };
    check("e5m2", Ieee, &cases(0x7c));
    check("e5m2", Saturate, &cases(0x7b));
}

#[test]
fn e2m1fn() {
    // 0, 0.5, 1, 1.5, 2, 3, 4, 6: no Inf and no NaN, so both policies store the largest number, and a
    // NaN becomes it with the sign lost.
    let cases = [
        (0.0, 0x0, Zero),
        (-0.0, 0x8, Zero),
        (positive_nan(), 0x7, Nan),
        (negative_nan(), 0x7, Nan),
        (INF, 0x7, Inf),
        (-INF, 0xf, Inf),
        (0.25, 0x0, Underflow),
        (-0.25, 0x8, Underflow),
        (0.25_f64.next_up(), 0x1, Subnormal),
        (0.5, 0x1, Subnormal),
        (0.75_f64.next_down(), 0x1, Subnormal),
        (0.75, 0x2, Normal),
        (1.25, 0x2, Normal),
        (1.75, 0x4, Normal),
        (2.5, 0x4, Normal),
        (3.5, 0x6, Normal),
        (5.0, 0x6, Normal),
        (5.0_f64.next_up(), 0x7, Normal),
        (-5.0_f64.next_up(), 0xf, Normal),
        (7.0_f64.next_down(), 0x7, Normal),
        // The tie above 6 would go to 8, whose code would be even.
        (7.0, 0x7, Beyond),
        (-7.0, 0xf, Beyond),
        (1e30, 0x7, Beyond),
    ];
    check("e2m1fn", Ieee, &cases);
    check("e2m1fn", Saturate, &cases);
}

#[test]
fn bfloat16() {
    let cases = |beyond: u32| {
        vec![
            (0.0, 0x0000, Zero),
            (-0.0, 0x8000, Zero),
            (positive_nan(), 0x7fc0, Nan),
            (negative_nan(), 0xffc0, Nan),
            (INF, beyond, Inf),
            (-INF, beyond | 0x8000, Inf),
            (1.0, 0x3f80, Normal),
            (1.0 + pow2(-8), 0x3f80, Normal),
            // Through float32 first this would be the tie above, and 1.
            (1.0 + pow2(-8) + pow2(-40), 0x3f81, Normal),
            (1.0 + 3.0 * pow2(-8), 0x3f82, Normal),
            (pow2(-134), 0x0000, Underflow),
            (-pow2(-134), 0x8000, Underflow),
            (pow2(-134).next_up(), 0x0001, Subnormal),
            (pow2(-133), 0x0001, Subnormal),
            (127.0 * pow2(-133), 0x007f, Subnormal),
            (127.5 * pow2(-133), 0x0080, Normal),
            (pow2(-126), 0x0080, Normal),
            (255.0 * pow2(120), 0x7f7f, Normal),
            ((511.0 * pow2(119)).next_down(), 0x7f7f, Normal),
            (511.0 * pow2(119), beyond, Beyond),
            (f32::from_bits(0x7f7f_8000).into(), beyond, Beyond),
            (f32::MAX.into(), beyond, Beyond),
            (-f64::from(f32::MAX), beyond | 0x8000, Beyond),
            // The smallest float32 is lost.
            (pow2(-149), 0x0000, Underflow),
        ]
    };
    check("bfloat16", Ieee, &cases(0x7f80));
    check("bfloat16", Saturate, &cases(0x7f7f));
}

#[test]
fn formats_with_one_zero_lose_the_sign_of_what_underflows() {
    for (name, smallest) in [("e5m2fnuz", -17), ("e4m3fnuz", -10), ("e4m3b11fnuz", -13)] {
        let half = pow2(smallest - 1);
        for overflow in [Ieee, Saturate] {
            let cases = [
                (-0.0, 0x00, Zero),
                (-half, 0x00, Underflow),
                (-half.next_up(), 0x81, Subnormal),
                (positive_nan(), 0x80, Nan),
                (negative_nan(), 0x80, Nan),
            ];
            check(name, overflow, &cases);
        }
        check(name, Ieee, &[(INF, 0x80, Inf), (-INF, 0x80, Inf), (-1e9, 0x80, Beyond)]);
        check(name, Saturate, &[(INF, 0x7f, Inf), (-INF, 0xff, Inf), (-1e9, 0xff, Beyond)]);
    }
}

#[test]
fn e8m0_has_no_zero_and_no_sign() {
    let both = [
        (1.0, 127, Normal),
        (1.5, 128, Normal),
        (1.5_f64.next_down(), 127, Normal),
        (3.0, 128, Normal),
        (pow2(-127), 0, Normal),
        (pow2(-140), 0, Normal),
        (pow2(127), 254, Normal),
        (1.5 * pow2(127), 254, Normal),
        (positive_nan(), 255, Nan),
        (negative_nan(), 255, Nan),
    ];
    check("e8m0fnu", Ieee, &both);
    check("e8m0fnu", Saturate, &both);
    let beyond = (1.5 * pow2(127)).next_up();
    let ieee = [(0.0, 255, Zero), (-0.0, 255, Zero), (-2.0, 255, Beyond), (beyond, 255, Beyond)];
    check("e8m0fnu", Ieee, &ieee);
    check("e8m0fnu", Ieee, &[(INF, 255, Inf), (-INF, 255, Inf)]);
    let saturate = [(0.0, 0, Zero), (-0.0, 0, Zero), (-2.0, 128, Normal), (beyond, 254, Beyond)];
    check("e8m0fnu", Saturate, &saturate);
    check("e8m0fnu", Saturate, &[(INF, 254, Inf), (-INF, 254, Inf)]);
    // Rounding up, which block scales do, works on the magnitude once the sign is dropped.
    let up = |x| cast(&row("e8m0fnu"), Rounding::Up, Saturate, x).code;
    assert_eq!([2.0, 2.1, -2.0, -2.1].map(up), [128, 129, 128, 129]);
}

#[test]
fn directed_modes_round_on_their_side_of_zero() {
    let format = row("float16");
    let code = |rounding, x| {
        let got = cast(&format, rounding, Ieee, x);
        (got.code, got.class)
    };
    let tiny = pow2(-60);
    assert_eq!(code(Rounding::Up, tiny), (0x0001, Subnormal));
    assert_eq!(code(Rounding::Up, -tiny), (0x8000, Underflow));
    assert_eq!(code(Rounding::Down, tiny), (0x0000, Underflow));
    assert_eq!(code(Rounding::Down, -tiny), (0x8001, Subnormal));
    assert_eq!(code(Rounding::TowardZero, -tiny), (0x8000, Underflow));
    assert_eq!(code(Rounding::ToOdd, -tiny), (0x8001, Subnormal));
    assert_eq!(code(Rounding::NearestAway, pow2(-25)), (0x0001, Subnormal));
    // Above 65504 and below 65536 it is the mode that says whether there is an overflow.
    assert_eq!(code(Rounding::TowardZero, 65535.0), (0x7bff, Normal));
    assert_eq!(code(Rounding::Down, 65535.0), (0x7bff, Normal));
    assert_eq!(code(Rounding::ToOdd, 65535.0), (0x7bff, Normal));
    assert_eq!(code(Rounding::Up, 65505.0), (0x7c00, Beyond));
    assert_eq!(code(Rounding::Up, -65535.0), (0xfbff, Normal));
    assert_eq!(code(Rounding::Down, -65505.0), (0xfc00, Beyond));
    assert_eq!(code(Rounding::NearestAway, 65520.0), (0x7c00, Beyond));
    // From 65536 on there always is; a mode that points back into the range stores the largest number.
    assert_eq!(code(Rounding::TowardZero, 65536.0), (0x7bff, Beyond));
    assert_eq!(code(Rounding::Down, 1e9), (0x7bff, Beyond));
    assert_eq!(code(Rounding::Up, -1e9), (0xfbff, Beyond));
    assert_eq!(code(Rounding::Up, 1e9), (0x7c00, Beyond));
    assert_eq!(code(Rounding::ToOdd, -1e9), (0xfbff, Beyond));
    // An Inf is no overflow: only `saturate` takes it away.
    assert_eq!(code(Rounding::TowardZero, -INF), (0xfc00, Inf));
}

#[test]
fn a_policy_left_open_follows_from_the_format() {
    let default = |name| CastPlan::new(row(name)).overflow;
    for name in ["float32", "tf32", "bfloat16", "float16", "e5m2", "e4m3ieee", "e3m4"] {
        assert_eq!((default(name), default(name).name()), (Ieee, "ieee"), "{name}");
    }
    for name in ["e4m3fn", "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "e3m2fn", "e2m3fn", "e2m1fn", "e8m0fnu"] {
        assert_eq!((default(name), default(name).name()), (Saturate, "saturate"), "{name}");
    }
}
