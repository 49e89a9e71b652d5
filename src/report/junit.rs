//! What the JUnit outputs share. A library writes the XML.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::error::escape;

/// Untrusted text as it may stand in XML: no control characters, and nothing that XML forbids.
pub(super) fn text(untrusted: &str) -> String {
    escape(untrusted).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// Why a case is not passed.
pub(super) struct NotPassed<'a> {
    /// Whether it cannot be told, rather than failed.
    pub(super) trouble: bool,
    /// Its kind, in a word.
    pub(super) what: &'a str,
    /// A sentence.
    pub(super) message: &'a str,
}

/// A case of a suite.
pub(super) fn case(suite: &str, name: &str, outcome: Option<NotPassed<'_>>) -> TestCase {
    let status = outcome.map_or_else(TestCaseStatus::success, |NotPassed { trouble, what, message }| {
        let kind = if trouble { NonSuccessKind::Error } else { NonSuccessKind::Failure };
        let mut status = TestCaseStatus::non_success(kind);
        status.set_type(what).set_message(text(message));
        status
    });
    let mut case = TestCase::new(text(name), status);
    case.set_classname(text(suite));
    case
}

/// A suite without cases.
pub(super) fn suite(name: &str) -> TestSuite {
    TestSuite::new(text(name))
}

/// Writes the suites of a command.
pub(super) fn write(command: &str, suites: Vec<TestSuite>, out: &mut dyn Write) -> io::Result<()> {
    let mut report = Report::new(format!("amp-inspect {command}"));
    report.add_test_suites(suites);
    report.serialize(&mut *out).map_err(io::Error::other)?;
    out.write_all(b"\n")
}
