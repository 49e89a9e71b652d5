//! A progress bar on standard error for work that lasts.

use std::io::IsTerminal;
use std::sync::Once;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Work done so far, out of a known total. Drawn only on a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    wanted: bool,
    started: Instant,
    shown: Once,
}

impl Progress {
    /// Of bytes read.
    pub(super) fn new(total_bytes: u64, quiet: bool) -> Self {
        let template = "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
        Self::with_template(total_bytes, template, quiet)
    }

    /// Of inputs tried.
    pub(super) fn of_inputs(total: u64, quiet: bool) -> Self {
        Self::with_template(total, "{bar:30} {percent} % of {human_len} inputs, {eta} left", quiet)
    }

    /// Of steps simulated.
    pub(super) fn of_steps(total: u64, quiet: bool) -> Self {
        Self::with_template(total, "{bar:30} {percent} % of {human_len} steps, {eta} left", quiet)
    }

    /// Of conversions tried on a card.
    pub(super) fn of_conversions(total: u64, quiet: bool) -> Self {
        Self::with_template(total, "{bar:30} {pos} of {len} conversions", quiet)
    }

    /// Of formats timed.
    pub(super) fn of_formats(total: u64, quiet: bool) -> Self {
        Self::with_template(total, "{bar:30} {pos} of {len} formats timed", quiet)
    }

    fn with_template(total: u64, template: &str, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        let wanted = !quiet && std::io::stderr().is_terminal();
        Self { bar, wanted, started: Instant::now(), shown: Once::new() }
    }

    /// Counts `units` more.
    pub(super) fn add(&self, units: u64) {
        self.bar.inc(units);
        if self.wanted && self.started.elapsed() > PATIENCE {
            self.shown.call_once(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
    }

    /// Takes the bar off the screen.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
