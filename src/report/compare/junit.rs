//! The report as JUnit XML: a case a tensor.

use std::io::{self, Write};

use super::findings::{element_text, shape_text};
use super::{CompareReport, Row, Verdict};
use crate::error::escape;
use crate::report::junit::{self, NotPassed};
use crate::report::number::{percent, short};

/// What a case that cannot be told is called.
const TROUBLE: &str = "trouble";

impl CompareReport {
    pub(super) fn write_junit(&self, out: &mut dyn Write) -> io::Result<()> {
        const SUITE: &str = "amp-inspect compare";
        let mut suite = junit::suite(SUITE);
        let mut add = |name: String, failure: Option<(&str, String)>| {
            let failure = failure.map(|(what, message)| (what, format!("{name}: {message}")));
            let outcome = failure.as_ref().map(|(what, message)| NotPassed {
                trouble: *what == TROUBLE,
                what,
                message,
            });
            suite.add_test_case(junit::case(SUITE, &name, outcome));
        };
        for row in &self.tensors {
            let outside = row.verdict == Verdict::Outside;
            add(self.full_name(row), outside.then(|| ("outside", failure(row))));
        }
        let alone = self.missing.iter().map(|alone| (alone, "missing", "only in the reference"));
        let extra = self.extra.iter().map(|alone| (alone, "extra", "only in the other dump"));
        for (alone, what, message) in alone.chain(extra) {
            add(escape(&alone.tensor), Some((what, message.to_owned())));
        }
        for reshaped in &self.reshaped {
            let shapes = [&reshaped.shape, &reshaped.other_shape].map(|shape| shape_text(shape));
            let message = format!("shape {} in the reference, {} in the other", shapes[0], shapes[1]);
            add(escape(&reshaped.tensor), Some(("reshaped", message)));
        }
        for (number, problem) in self.problems.iter().enumerate() {
            let name = format!("trouble {}", number + 1);
            add(name, Some((TROUBLE, escape(problem))));
        }
        junit::write("compare", vec![suite], out)
    }
}

/// `12.5 % outside the tolerance, relative L2 error 0.0312; worst [3, 12] is 0.25 in the reference, nan in the other`
fn failure(row: &Row) -> String {
    let relative =
        row.rel_l2.map_or(String::new(), |error| format!(", relative L2 error {}", short(error.0, 3)));
    let worst = row.telling().map_or(String::new(), |element| format!("; worst {}", element_text(element)));
    format!("{} % outside the tolerance{relative}{worst}", percent(row.outside, row.elements))
}
