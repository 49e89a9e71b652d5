//! `amp-inspect`: see the library's documentation, or `amp-inspect --help`.

fn main() -> std::process::ExitCode {
    amp_inspect::cli::run(std::env::args_os())
}
