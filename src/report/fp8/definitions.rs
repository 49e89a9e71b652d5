//! What the names of the figures mean.

pub(super) const DEFINITIONS: &[(&str, &str)] = &[
    (
        "scale",
        "what values are multiplied by before the cast: x_stored = round(x·scale); papers that divide, x_stored = round(x / s), mean s = scale_inv = 1/scale",
    ),
    ("scale_bits", "the same as the bits of a float32"),
    (
        "scale_inv, scale_inv_min, scale_inv_max",
        "1/scale as it is stored: of the tensor, or the range over its blocks with a nonzero value",
    ),
    ("amax", "largest finite magnitude of the tensor at this step"),
    ("amax_used", "the magnitude that a delayed scale was formed from; without a value the scale is still 1"),
    (
        "bits_off",
        "log2(the scale that this step's own amax gives / the scale used): above 0 range lies idle, below 0 values saturate",
    ),
    ("underflow", "x is finite and nonzero, but is stored as zero"),
    ("saturated", "x is finite, but x·scale rounds beyond the largest number, which is stored in its place"),
    ("spoiled", "x is finite, but its block holds an Inf or NaN, and its scale is NaN"),
    (
        "exceeds_max",
        "x is finite and |x·scale| is above the largest number before rounding (Transformer Engine's overflow)",
    ),
    ("*_pct", "percent of the finite nonzero elements"),
    ("sqnr_db", "20·log10(‖x‖ / ‖x − x_stored·scale_inv‖)"),
    ("start", "the first step of delayed scaling: no history, scale 1"),
    ("saturates", "the largest magnitude times the scale rounds beyond the largest number"),
    (
        "stale",
        "the scale is at least one bit smaller than this step needs: an older, larger magnitude holds it down",
    ),
    ("recovered", "the first good scale after steps that saturated or were stale"),
    ("frozen", "the history holds an Inf or NaN, and the scale stays as it is until that has left"),
    ("non-finite, zero", "the step's own amax is Inf or NaN; is 0"),
];

/// Said once.
pub(super) const SAME: &str = "x_stored = round(x·scale), which is round(x / s) with s = 1/scale.";
