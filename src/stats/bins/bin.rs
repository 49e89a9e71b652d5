//! One bin, its sums made into what every cast needs of them.

use super::FIRST_NORMAL;
use super::words::{Extremes, Histogram, ON_GRID, Totals, WIDTH};
use crate::format::pow2;

/// One bin: the elements on a grid point, and those between it and the next one.
pub(super) struct Bin {
    pub(super) number: usize,
    /// Weight of the last significand bit, a power of two.
    pub(super) unit: f64,
    /// Number of elements on the grid point, and their magnitude.
    pub(super) on_grid: u64,
    pub(super) base: f64,
    /// The elements above it, nearer to it and nearer to the next one.
    pub(super) between: [Half; 2],
}

/// Elements on one side of a grid point, at most half a bin away. In units: their last place.
pub(super) struct Half {
    /// The grid point: an integer significand.
    pub(super) point: f64,
    /// 1 for elements above the point, −1 for those below.
    pub(super) side: f64,
    pub(super) totals: Totals,
    /// Σ x².
    pub(super) squares: f64,
    /// Σ u/|x|, u being the distance to the point.
    pub(super) relative_distances: f64,
    /// The magnitudes nearest to the point and farthest from it.
    pub(super) extremes: [f64; 2],
}

impl Bin {
    /// `None` if the bin is empty.
    pub(super) fn new(number: usize, histogram: &Histogram) -> Option<Self> {
        let places = [2 * number, 2 * number + 1, ON_GRID + number];
        if places.iter().all(|&place| histogram.is_empty(place)) {
            return None;
        }
        let [below, above, on_grid] = places.map(|place| histogram.totals(place));
        let base = f64::from((32 + (number & 31) as u32) * WIDTH);
        let unit = pow2((number / FIRST_NORMAL) as i32 - 150);
        let extremes = |half: usize| histogram.extremes(places[half]);
        Some(Self {
            number,
            unit,
            on_grid: on_grid.count,
            base: base * unit,
            between: [
                Half::new(base, 1.0, below, extremes(0)),
                Half::new(base + f64::from(WIDTH), -1.0, above, extremes(1)),
            ],
        })
    }
}

impl Half {
    fn new(point: f64, side: f64, totals: Totals, extremes: Extremes) -> Self {
        let mut half = Self {
            point,
            side,
            totals,
            squares: 0.0,
            relative_distances: 0.0,
            extremes: [extremes.smallest, extremes.largest].map(|u| point + side * f64::from(u)),
        };
        if half.totals.count > 0 {
            half.squares = half.squares_about(0.0);
            // From u/(p ± u) = u/p ∓ u²/p² + u³/(p²·(p ± u)), where the last term is the residue over p².
            let second = (side * half.totals.squares as f64 - half.totals.residue as f64) / point;
            half.relative_distances = (half.totals.sum as f64 - second) / point;
        }
        half
    }

    /// Σ (|x| − centre)². In exact integers where the centre is one, since near a number of the format the
    /// terms cancel.
    pub(super) fn squares_about(&self, centre: f64) -> f64 {
        let totals = &self.totals;
        let gap = self.side * (self.point - centre);
        let exact = gap as i64;
        if exact as f64 != gap || exact.unsigned_abs() >= 1 << 40 {
            let (n, sum) = (totals.count as f64, totals.sum as f64);
            return n * gap * gap + 2.0 * gap * sum + totals.squares as f64;
        }
        if totals.count < 1 << 12 && exact.unsigned_abs() < 1 << 25 {
            // Most bins of most tensors: here no term reaches 2^63.
            let (n, sum) = (totals.count as i64, totals.sum as i64);
            return (n * exact * exact + 2 * exact * sum + totals.squares as i64) as f64;
        }
        let (n, gap, sum) = (i128::from(totals.count), i128::from(exact), i128::from(totals.sum));
        (n * gap * gap + 2 * gap * sum + totals.squares as i128) as f64
    }
}
