//! A progress bar on standard error for work that lasts.

use std::io::IsTerminal;
use std::sync::Once;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Bytes read so far, out of a known total. Drawn only on a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    wanted: bool,
    started: Instant,
    shown: Once,
}

impl Progress {
    pub(super) fn new(total_bytes: u64, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::hidden());
        let template = "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        let wanted = !quiet && std::io::stderr().is_terminal();
        Self { bar, wanted, started: Instant::now(), shown: Once::new() }
    }

    /// Counts `bytes` more.
    pub(super) fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
        if self.wanted && self.started.elapsed() > PATIENCE {
            self.shown.call_once(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
    }

    /// Takes the bar off the screen.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
