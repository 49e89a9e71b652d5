//! The command line: what was typed → a plan → the library → an exit code. Computes nothing.

mod args;
mod autocast;
mod bench_gpu;
mod by;
mod casts;
mod check;
mod compare;
mod explain;
mod formats;
mod fp8;
mod histogram;
mod input_args;
mod inputs;
mod ls;
mod memory;
mod output;
mod progress;
mod recommend;
mod reduce;
mod rows;
mod series;
mod simulate;
mod updates;
mod verify;

use std::ffi::OsString;
use std::io;
use std::num::NonZero;
use std::process::ExitCode;
use std::thread;

use clap::{CommandFactory, FromArgMatches};

/// How a run ended, apart from errors.
enum Outcome {
    /// Everything was done.
    Done,
    /// Everything was done, and something is wrong.
    Findings,
    /// The result was given, but some of the input could not be read.
    Incomplete,
}

/// How many threads to use: as many as were asked for, or one a processor.
fn threads(asked: Option<NonZero<usize>>) -> NonZero<usize> {
    asked.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN)
}

/// Runs the program: 0 done, 1 findings, 2 wrong usage or something that could not be read or written.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    // `--lr -1` gives the option a value, of which the option says what is wrong.
    let command = args::Cli::command().mut_subcommands(|command| command.allow_negative_numbers(true));
    let parsed = command.try_get_matches_from(explain::shield(arguments));
    let cli = match parsed.and_then(|matches| args::Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let code = error.exit_code();
            // Help goes to standard output; a reader that hangs up early is no failure.
            return match error.print() {
                Err(broken) if broken.kind() != io::ErrorKind::BrokenPipe => ExitCode::from(2),
                _ => ExitCode::from(code as u8),
            };
        }
    };
    let outcome = match cli.command {
        args::Command::Histogram(args) => histogram::run(args),
        args::Command::Compare(args) => compare::run(args),
        args::Command::Check(args) => check::run(args),
        args::Command::InitCi(args) => check::init_ci(&args),
        args::Command::Ls(args) => ls::run(args),
        args::Command::Explain(args) => explain::run(args),
        args::Command::Formats(args) => formats::run(args),
        args::Command::Verify(args) => verify::run(args),
        args::Command::SimulateScaler(args) => simulate::run(args),
        args::Command::Updates(args) => updates::run(args),
        args::Command::Reduce(args) => reduce::run(args),
        args::Command::Autocast(args) => autocast::run(args),
        args::Command::Memory(args) => memory::run(args),
        args::Command::BenchGpu(args) => bench_gpu::run(args),
        args::Command::Fp8(args) => fp8::run(args),
        args::Command::Recommend(args) => recommend::run(args),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Ok(Outcome::Incomplete) => ExitCode::from(2),
        Err(error) => {
            output::complain(&error.to_string());
            ExitCode::from(2)
        }
    }
}
