//! The report as JUnit XML: a suite a rule, a case a tensor.
//!
//! Warnings fail no case unless they fail the check; what cannot be told is an error of the test, not a failure.

use std::io::{self, Write};

use quick_junit::TestCase;

use super::{CaseRow, CheckReport};
use crate::check::judge::Status;
use crate::report::junit::{self, NotPassed};

impl CheckReport {
    pub(super) fn write_junit(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut names: Vec<&str> = self.cases.iter().map(|case| case.rule.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut suites = Vec::new();
        for name in names {
            let mut suite = junit::suite(name);
            suite.add_test_cases(
                self.cases.iter().filter(|case| case.rule == name).map(|case| self.test(case)),
            );
            suites.push(suite);
        }
        // What cannot be told of a tensor is the error of its own case.
        let untold = |trouble: &&String| !trouble.starts_with("tensor ");
        let troubles: Vec<&String> = self.troubles.iter().filter(untold).chain(&self.problems).collect();
        if !troubles.is_empty() {
            let mut suite = junit::suite("trouble");
            for (number, message) in troubles.iter().enumerate() {
                let outcome = NotPassed { trouble: true, what: "trouble", message };
                suite.add_test_case(junit::case(
                    "trouble",
                    &format!("trouble {}", number + 1),
                    Some(outcome),
                ));
            }
            suites.push(suite);
        }
        junit::write("check", suites, out)
    }

    fn test(&self, case: &CaseRow) -> TestCase {
        let message = &self.sentence(case);
        let fails = self.options.fail_on.is_some_and(|from| from == "warn" || case.severity == "error");
        let outcome = match case.outcome {
            Status::Failed if fails => Some(NotPassed { trouble: false, what: case.severity, message }),
            Status::Untold => Some(NotPassed { trouble: true, what: "trouble", message }),
            _ => None,
        };
        let is_told = outcome.is_none() && case.outcome != Status::Passed;
        let mut test = junit::case(&case.rule, &self.full_name(case), outcome);
        if is_told {
            test.set_system_out(junit::text(&format!("{}: {message}", case.severity)));
        }
        test
    }
}
