//! How the magnitudes move from step to step, on a terminal: a row of shades for each.

use super::HistogramReport;
use super::axis::Columns;
use crate::report::style::View;

/// The least share of the step's largest column for each shade, darkest first. Something is never drawn as
/// nothing.
const SHADES: [(f64, char); 4] = [(0.5, '█'), (0.125, '▓'), (1.0 / 64.0, '▒'), (0.0, '░')];

/// Most steps that are drawn if no number is asked for: as many as there are lines beside the tables.
const ROWS: usize = 40;

impl HistogramReport {
    /// A line a step, of columns `wide` characters wide, with the steps on the left.
    pub(super) fn heat_map(&self, columns: &Columns, wide: usize, left: usize, view: &View) -> Vec<String> {
        let most = if view.top == 0 { usize::MAX } else { ROWS };
        // Evenly spread, with the first and the last.
        let count = self.tensors.len().min(most);
        let chosen = (0..count).map(|row| row * (self.tensors.len() - 1).max(1) / (count - 1).max(1));
        let steps = chosen.filter_map(|number| self.tensors.get(number));
        steps
            .map(|step| {
                let totals = columns.totals(&step.binades);
                let peak = totals.iter().copied().max().unwrap_or(0).max(1) as f64;
                let shade = |&total: &u64| {
                    let share = total as f64 / peak;
                    let shade = SHADES.iter().find(|(least, _)| total > 0 && share >= *least);
                    shade.map_or(' ', |(_, shade)| *shade).to_string().repeat(wide)
                };
                let row: String = totals.iter().map(shade).collect();
                format!("{:>left$} │{}", step.name, view.paint.wrap("36", row.trim_end()))
            })
            .collect()
    }
}
