//! What stands beside and below the main panel: constant scales, skipped steps, shares of underflow.

use super::super::model::SimulateReport;
use super::super::suggestion::{SuggestionRow, SweepRow};
use super::{ALARM, AXIS, COLOURS, EDGE, FAINT, INK, LEFT, NOTE, Plot, RIGHT, RIGHT_OF_SWEEP, SHARES, TOP};
use crate::report::number::{count, percent, short};
use crate::report::picture::{Anchor, Picture};
use crate::scaler::run::Run;
use crate::scaler::simulate::flushed_share;

impl Plot {
    /// Constant scales, at the height of their scale: how many steps overflow, and what underflows.
    pub(super) fn sweep(&self, picture: &mut Picture, found: &SuggestionRow, recorded: u64) {
        let (left, right) = (RIGHT_OF_SWEEP + 24.0, RIGHT);
        picture.line(&[(left, self.bottom), (right, self.bottom)], 1.0, AXIS);
        let inside = |row: &&SweepRow| (self.low..=self.high).contains(&f64::from(row.log2));
        let rows: Vec<&SweepRow> = found.sweep.iter().filter(inside).collect();
        let lost = rows.iter().filter_map(|row| row.underflow_pct).map(|share| share.0).fold(0.0, f64::max);
        let curve = |share: &dyn Fn(&SweepRow) -> Option<f64>| -> Vec<(f64, f64)> {
            let points = rows.iter().filter_map(|row| Some((share(row)?, self.y(row.log2.into()))));
            points.map(|(share, y)| (left + (right - left) * share, y)).collect()
        };
        let overflow = curve(&|row| Some(row.overflow_steps as f64 / recorded.max(1) as f64));
        picture.line(&overflow, 2.0, ALARM);
        let underflow = curve(&|row| row.underflow_pct.map(|share| share.0 / lost.max(1e-300)));
        picture.line(&underflow, 2.0, EDGE);
        if let Some(best) = found.best_log2 {
            let y = self.y(best.into());
            picture.dashes(&[(left, y), (right, y)], 1.0, INK, (4.0, 3.0));
            let style = NOTE.anchored(Anchor::End).bold();
            picture.text((right, y - 5.0), &format!("2^{best}"), style);
        }
        let title = NOTE.coloured(AXIS);
        picture.text((left, TOP - 12.0), "a constant scale", title);
        picture.text((left, self.bottom + 18.0), "steps overflow, to 100 %", NOTE.coloured(ALARM));
        let lost = format!("underflow, to {} %", short(lost, 2));
        let lost = if underflow.is_empty() { "underflow not recorded" } else { &lost };
        picture.text((left, self.bottom + 33.0), lost, NOTE.coloured(EDGE));
    }

    /// A strip with a tick for each skipped step.
    pub(super) fn skips(&self, picture: &mut Picture, run: &Run, index: usize, y: f64) {
        let colour = COLOURS[index % COLOURS.len()];
        let name = NOTE.anchored(Anchor::End).fit(run.setup.spec.name, LEFT - 16.0);
        picture.text((LEFT - 8.0, y + 9.0), &name, NOTE.anchored(Anchor::End));
        picture.line(&[(LEFT, y + 6.0), (self.right, y + 6.0)], 0.5, FAINT);
        let mut last = f64::NEG_INFINITY;
        for event in run.events.iter().filter(|event| event.event.skips()) {
            let x = self.x(event.position as f64);
            if x - last >= 0.5 {
                picture.rect((x, y), (1.5, 12.0), colour);
                last = x;
            }
        }
        let skipped = format!(
            "{} skipped, {} %",
            count(run.totals.skipped),
            percent(run.totals.skipped, run.totals.steps)
        );
        picture.text((RIGHT + 20.0, y + 10.0), &skipped, NOTE);
    }

    /// What underflows at the scale in force.
    pub(super) fn shares(&self, picture: &mut Picture, report: &SimulateReport, runs: &[Run], top: f64) {
        let (base, height) = (top + SHARES, SHARES);
        let curves: Vec<Vec<(f64, f64)>> = runs
            .iter()
            .map(|run| {
                let columns = (self.right - LEFT) as u64;
                let mut curve = Vec::new();
                let mut column = u64::MAX;
                for step in run.steps() {
                    let at = step.position * columns / self.steps;
                    if at == column {
                        continue;
                    }
                    column = at;
                    let recorded = &report.trace.steps[report.schedule.turn(step.position).step];
                    if let Some(histogram) = recorded.histogram {
                        let share = flushed_share(&report.trace, histogram, step.scale);
                        curve.push((self.x(step.position as f64), 100.0 * share));
                    }
                }
                curve
            })
            .collect();
        let largest = curves.iter().flatten().map(|(_, share)| *share).fold(0.0, f64::max).max(1e-3);
        picture.line(&[(LEFT, base), (self.right, base)], 1.0, AXIS);
        let style = NOTE.anchored(Anchor::End);
        for part in [0.0, 0.5, 1.0] {
            let y = base - height * part;
            picture.line(&[(LEFT, y), (self.right, y)], 0.5, FAINT);
            picture.text((LEFT - 8.0, y + 4.0), &format!("{} %", short(largest * part, 2)), style);
        }
        for (index, curve) in curves.iter().enumerate() {
            let points: Vec<_> =
                curve.iter().map(|(x, share)| (*x, base - height * share / largest)).collect();
            picture.line(&points, 1.5, COLOURS[index % COLOURS.len()]);
        }
        picture.text((RIGHT + 20.0, top + 10.0), "underflow at the scale", NOTE);
        picture.text((RIGHT + 20.0, top + 25.0), "in force, of the nonzero values", NOTE.coloured(AXIS));
    }
}
