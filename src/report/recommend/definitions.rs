//! What the names of the figures mean.

pub(super) const DEFINITIONS: &[(&str, &str)] = &[
    (
        "recommended",
        "the cheapest candidate that breaks no bound at any step and keeps NaN and Inf, if there are some; null if none will do, or if NaN and Inf leave nothing to judge by: the tensor stays as it is stored",
    ),
    ("nonfinite", "NaN and Inf, which no figure counts"),
    ("underflow_pct", "finite nonzero values stored as zero, percent of them; of several steps the worst"),
    (
        "overflow_pct",
        "finite nonzero values that round beyond the largest number, or whose block holds an Inf or NaN; the worst step",
    ),
    ("sqnr_db", "20·log10(‖x‖ / ‖x − what comes back‖), the worst step"),
    ("significand_bits", "−log2(largest relative error): 8 for bfloat16 in its range, 24 for float32"),
    ("bits", "that an element takes in memory, with its share of a block's scale"),
    ("needs", "what has to be done for the format"),
];
