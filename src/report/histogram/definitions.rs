//! What the names of the figures mean, in the words that every report prints.

/// Meaning of the figures, as printed in the JSON.
pub(super) const DEFINITIONS: &[(&str, &str)] = &[
    (
        "q",
        "the element x times the scale s (one f32 multiplication), cast to the format; q/s is what comes back",
    ),
    ("nan, inf, zero", "the stored element itself is NaN, ±Inf, ±0"),
    ("underflow", "x is finite and nonzero, but q is zero: the value is lost"),
    ("subnormal", "q is a nonzero subnormal number: kept, with fewer bits"),
    ("normal", "q is a normal number"),
    ("overflow", "x is finite, but x·s rounded with unbounded exponent exceeds the largest finite number"),
    (
        "exceeds_max",
        "x is finite and |x·s| is above the largest finite number before rounding (Transformer Engine's overflow)",
    ),
    ("*_pct", "percent of the finite nonzero elements"),
    ("*_pct_of_all", "percent of all elements (Transformer Engine's underflows%)"),
    ("mse", "mean of (x − q/s)²"),
    ("rel_l2", "‖x − q/s‖ / ‖x‖"),
    ("sqnr_db", "−20·log10(rel_l2)"),
    ("max_rel, mean_rel", "of |x − q/s| / |x| over finite nonzero x"),
    ("left_out_of_errors", "finite elements stored as Inf or NaN, which no error figure includes"),
    ("headroom_log2", "log2(max_finite / (s·amax))"),
    ("dynamic_range_log2", "log2(amax / amin), amin being the smallest nonzero magnitude"),
    (
        "block formats",
        "q is x·s divided by its block's scale and cast to the element format; exceeds_max counts x·s over its scale",
    ),
    ("scale zero, subnormal", "of a block with nonzero values, as a number of the scale's format"),
    ("scale raised, saturated", "set to the smallest, the largest scale because the wanted one lay beyond"),
    ("binades", "rows of [e, negative, positive]: elements with 2^e ≤ |x| < 2^(e+1)"),
];
