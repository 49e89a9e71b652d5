//! What a CI system gets of a check, and workflows that run one.

use std::fs::OpenOptions;
use std::io::Write as _;

use clap::{Args, ValueEnum};

use super::super::Outcome;
use super::super::output;
use crate::error::{Error, Result};
use crate::report::Report as _;
use crate::report::check::CheckReport;

/// Prints a workflow that checks a dump in CI, to be saved where it says
#[derive(Args)]
#[command(before_help = "Example:\n  amp-inspect init-ci github > .github/workflows/precision.yml")]
pub(in crate::cli) struct InitCiArgs {
    /// The CI system
    #[arg(value_name = "SYSTEM")]
    system: System,
}

#[derive(Clone, Copy, ValueEnum)]
enum System {
    Github,
    Gitlab,
}

const GITHUB: &str = "\
# .github/workflows/precision.yml
# Fails a pull request whose gradients underflow, overflow or lose precision more than before.
# Once: amp-inspect check grads.safetensors --baseline precision-baseline.json --update-baseline
#       and commit precision-baseline.json. The same command after a wanted change.
name: precision
on: [push, pull_request]
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - name: Install amp-inspect
        run: cargo install --locked amp-inspect
      # Here the step that writes grads.safetensors, unless it is in the repository.
      - name: Check precision
        run: amp-inspect check grads.safetensors --baseline precision-baseline.json --save precision.xml
      - name: Keep the report
        if: always()
        uses: actions/upload-artifact@v4
        with:
          name: precision
          path: precision.xml
";

const GITLAB: &str = "\
# Part of .gitlab-ci.yml
# Fails a merge request whose gradients underflow, overflow or lose precision more than before.
# Once: amp-inspect check grads.safetensors --baseline precision-baseline.json --update-baseline
#       and commit precision-baseline.json. The same command after a wanted change.
precision:
  image: rust:1
  script:
    - cargo install --locked amp-inspect
    # Here what writes grads.safetensors, unless it is in the repository.
    - amp-inspect check grads.safetensors --baseline precision-baseline.json --save precision.xml --save precision.md
  artifacts:
    when: always
    paths: [precision.md]
    reports:
      junit: precision.xml
";

pub(in crate::cli) fn init_ci(args: &InitCiArgs) -> Result<Outcome> {
    let workflow = match args.system {
        System::Github => GITHUB,
        System::Gitlab => GITLAB,
    };
    output::print(workflow.trim_end())?;
    Ok(Outcome::Done)
}

/// Annotations of the job, in GitHub Actions: on standard error, which it reads too, so that --json stays JSON.
pub(super) fn annotate(report: &CheckReport) {
    if std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        report.annotations().iter().for_each(|line| output::say(line));
    }
}

/// Appends the report to the job's summary, where there is one.
pub(super) fn summarise(report: &CheckReport) -> Result<()> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let mut markdown = Vec::new();
    let appended = report.markdown(&mut markdown).and_then(|()| {
        let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
        file.write_all(&markdown)
    });
    appended.map_err(|error| Error::io("cannot append to the summary", &error).in_file(&path))
}

/// Options that do not matter for a baseline: those with a value, and those without.
const IDLE: (&[&str], &[&str]) = (
    &["--save", "--top", "--threads", "--fail-on"],
    &["--json", "--csv", "--quiet", "-q", "--no-color", "--ratchet"],
);

/// The command as it was typed, but to write the baseline: quoted for a shell.
pub(super) fn update_command() -> String {
    let quote = |argument: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument.to_owned()
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    let typed: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // After `--` there are only paths.
    let options = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let (options, paths) = typed.split_at(options);
    let mut words = vec!["amp-inspect".to_owned()];
    let mut options = options.iter();
    while let Some(word) = options.next() {
        let name = word.split('=').next().unwrap_or_default();
        if IDLE.0.contains(&word.as_str()) {
            options.next();
        } else if !IDLE.0.contains(&name) && !IDLE.1.contains(&name) {
            words.push(quote(word));
        }
    }
    words.push("--update-baseline".into());
    words.extend(paths.iter().map(|word| quote(word)));
    words.join(" ")
}
