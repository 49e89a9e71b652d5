//! Where results and talk go: standard output, standard error, and the files asked for.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use super::args::OutputArgs;
use crate::error::{Error, Result};
use crate::report::save::{self, Target};
use crate::report::style::{Paint, View};
use crate::report::{Needs, Report};

/// Most lines of one kind on standard error: a file may have a fault for each of a million tensors.
const MOST: usize = 100;

/// Everything that has to be written at the end, checked at the start.
pub(super) struct Outputs {
    args: OutputArgs,
    targets: Vec<Target>,
}

impl Outputs {
    /// Reserves the files to save.
    pub(super) fn prepare(args: OutputArgs) -> Result<Self> {
        Self::reserve(args, &[Needs::Picture])
    }

    /// Reserves the files to save of a report that has no picture.
    pub(super) fn without_pictures(args: OutputArgs) -> Result<Self> {
        Self::reserve(args, &[])
    }

    /// Reserves the files to save of a report with verdicts and a picture.
    pub(super) fn with_verdicts_and_picture(args: OutputArgs) -> Result<Self> {
        Self::reserve(args, &[Needs::Picture, Needs::Verdicts])
    }

    /// Reserves the files to save of a report with verdicts.
    pub(super) fn with_verdicts(args: OutputArgs) -> Result<Self> {
        Self::reserve(args, &[Needs::Verdicts])
    }

    fn reserve(args: OutputArgs, has: &[Needs]) -> Result<Self> {
        let targets = args.save.iter().map(|path| Target::reserve(path, has)).collect::<Result<_>>()?;
        let outputs = Self { args, targets };
        outputs.keep_apart(None, &[] as &[&Path])?;
        Ok(outputs)
    }

    /// Makes sure that no file to save, nor what the command writes besides, is what it reads.
    pub(super) fn keep_apart(&self, besides: Option<&Path>, read: &[impl AsRef<Path>]) -> Result<()> {
        let written: Vec<&Path> =
            besides.into_iter().chain(self.args.save.iter().map(AsRef::as_ref)).collect();
        save::keep_apart(&written, &read.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }

    /// Says what is to be said beside the result, unless told to be quiet.
    pub(super) fn notices(&self, notices: &[String]) {
        if !self.args.quiet {
            notices.iter().take(MOST).for_each(|notice| say(&format!("note: {notice}")));
            say_rest(notices.len());
        }
    }

    /// Writes the result to standard output and saves the files. A file that cannot be saved does not keep
    /// the others back.
    pub(super) fn write<R: Report>(
        self,
        report: &R,
        terminal: impl FnOnce(&R, &View, &mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let stdout = io::stdout();
        let view = View {
            width: width(),
            paint: Paint {
                on: stdout.is_terminal()
                    && !self.args.no_color
                    && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
            },
            top: self.args.top,
        };
        let mut out = BufWriter::new(Pipe(stdout.lock()));
        let written = if self.args.json {
            report.json(&mut out)
        } else if self.args.csv {
            report.csv(&mut out)
        } else {
            terminal(report, &view, &mut out)
        };
        let written = written.and_then(|()| out.flush());
        let mut outcome = written.map_err(|error| Error::io("cannot write to standard output", &error));
        for target in self.targets {
            outcome = outcome.and(target.save(report));
        }
        outcome
    }
}

/// A stream whose reader may hang up: that is no failure, and the rest is dropped.
struct Pipe<W: Write>(W);

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            outcome => outcome,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome,
        }
    }
}

/// Writes a text that is the whole result to standard output.
pub(super) fn print(text: &str) -> Result<()> {
    let mut out = Pipe(io::stdout().lock());
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    written.map_err(|error| Error::io("cannot write to standard output", &error))
}

/// Reports a failure on standard error.
pub(super) fn complain(text: &str) {
    say(&format!("amp-inspect: {text}"));
}

/// Reports several failures.
pub(super) fn complain_of_all<T: ToString>(problems: impl ExactSizeIterator<Item = T>) {
    let count = problems.len();
    problems.take(MOST).for_each(|problem| complain(&problem.to_string()));
    say_rest(count);
}

/// Says how many of `count` lines have been left out.
fn say_rest(count: usize) {
    if count > MOST {
        say(&format!("… and {} more like these; --json has all", count - MOST));
    }
}

/// Writes a line to standard error.
pub(super) fn say(text: &str) {
    // Nothing can be done about a standard error that is closed.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Columns of the terminal, or 80; `COLUMNS` overrides. Fewer than 80 would garble every table, so that is the
/// least.
fn width() -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = asked.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.into()));
    width.unwrap_or(80).clamp(80, 240)
}
