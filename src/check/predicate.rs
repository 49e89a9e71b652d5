//! What a rule demands: comparisons of figures with limits, joined by `and` and `or`.
//!
//! ```text
//! predicate  = all { "or" all }
//! all        = one { "and" one }
//! one        = "(" predicate ")" | metric ( "<=" | "<" | ">=" | ">" | "==" | "!=" ) limit
//! limit      = product { ( "+" | "-" ) product }
//! product    = factor { ( "*" | "/" ) factor }
//! factor     = number [ unit ] | "baseline" | "-" factor | "(" limit ")"
//! ```

use super::limit::{Limit, RELATIONS, Relation};
use super::metric::{Metric, is_unit};

/// A demand on the figures of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// All must hold.
    All(Vec<Predicate>),
    /// One must hold.
    Any(Vec<Predicate>),
    /// A figure keeps to its limit.
    Compare(Comparison),
}

/// A figure and its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The figure.
    pub metric: Metric,
    /// How they compare.
    pub relation: Relation,
    /// The limit.
    pub limit: Limit,
    /// As written.
    pub text: String,
}

/// Why a text is no predicate, and where: at this byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Offset in bytes.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl Predicate {
    /// Reads a predicate.
    ///
    /// # Errors
    /// Where the text leaves the grammar, and what would have been valid there.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let predicate = parser.any()?;
        match parser.peek() {
            None => Ok(predicate),
            Some(_) => Err(parser.expected("'and', 'or' or the end")),
        }
    }

    /// Every comparison in it, in order.
    pub fn comparisons(&self) -> Vec<&Comparison> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::comparisons).collect(),
            Self::Compare(comparison) => vec![comparison],
        }
    }
}

/// Deepest nesting of brackets: far beyond what a person writes, far below what the stack holds.
const DEEPEST: usize = 64;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.text[self.at..].chars().next()
    }

    /// Takes `symbol` if it comes next.
    fn takes(&mut self, symbol: &str) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(symbol);
        self.at += if found { symbol.len() } else { 0 };
        found
    }

    /// The word that comes next, without taking it.
    fn word(&mut self) -> &'t str {
        self.skip_space();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_.:".contains(c))).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Takes the word `word` if it comes next.
    fn takes_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn error<T>(&self, at: usize, what: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError { at, what: what.into() })
    }

    fn expected(&mut self, what: &str) -> SyntaxError {
        let found = match (self.word(), self.peek()) {
            (_, None) => "the end".to_owned(),
            ("", Some(c)) => format!("'{}'", crate::error::escape(&c.to_string())),
            (word, _) => format!("'{}'", crate::error::escape(word)),
        };
        SyntaxError { at: self.at, what: format!("expected {what}, found {found}") }
    }

    /// Goes into a bracket.
    fn nested<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.error(self.at, "too many brackets");
        }
        let found = inside(self)?;
        self.depth -= 1;
        if self.takes(")") { Ok(found) } else { Err(self.expected("')'")) }
    }

    fn any(&mut self) -> Result<Predicate, SyntaxError> {
        let mut parts = vec![self.all()?];
        while self.takes_word("or") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Predicate::Any(parts) })
    }

    fn all(&mut self) -> Result<Predicate, SyntaxError> {
        let mut parts = vec![self.one()?];
        while self.takes_word("and") {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Predicate::All(parts) })
    }

    fn one(&mut self) -> Result<Predicate, SyntaxError> {
        if self.takes("(") {
            return self.nested(Self::any);
        }
        let word = self.word();
        if word.is_empty() {
            return Err(self.expected("a figure such as underflow_pct.float16, or '('"));
        }
        let start = self.at;
        let metric = match Metric::parse(word) {
            Ok(metric) => metric,
            Err(what) => return self.error(start, what),
        };
        self.at += word.len();
        let Some((_, relation)) = RELATIONS.iter().find(|(symbol, _)| self.takes(symbol)) else {
            return Err(self.expected("<=, <, >=, >, == or !="));
        };
        self.skip_space();
        let at = self.at;
        let limit = self.limit(&metric)?;
        if !limit.is_relative() && !limit.is_meaningful(0.0) {
            return self.error(at, "the limit is not a finite number");
        }
        let text = self.text[start..self.at].trim_end().to_owned();
        Ok(Predicate::Compare(Comparison { metric, relation: *relation, limit, text }))
    }

    fn limit(&mut self, metric: &Metric) -> Result<Limit, SyntaxError> {
        self.joined(['+', '-'], |parser| parser.joined(['*', '/'], |parser| parser.factor(metric)))
    }

    fn joined(
        &mut self,
        operators: [char; 2],
        mut part: impl FnMut(&mut Self) -> Result<Limit, SyntaxError>,
    ) -> Result<Limit, SyntaxError> {
        let mut limit = part(self)?;
        while let Some(operator) = self.peek().filter(|c| operators.contains(c)) {
            self.at += 1;
            limit = Limit::Join(Box::new(limit), operator, Box::new(part(self)?));
        }
        Ok(limit)
    }

    fn factor(&mut self, metric: &Metric) -> Result<Limit, SyntaxError> {
        if self.takes("(") {
            return self.nested(|parser| parser.limit(metric));
        }
        if self.takes("-") {
            return self.nested_factor(metric);
        }
        if self.takes_word("baseline") {
            return Ok(Limit::Baseline);
        }
        let at = self.at;
        let Some(number) = self.number() else {
            return Err(self.expected("a number or 'baseline'"));
        };
        if number.is_infinite() {
            return self.error(at, "the number is too large");
        }
        let unit = match self.peek() {
            Some('%') => "%",
            _ => Some(self.word()).filter(|word| is_unit(word)).unwrap_or(""),
        };
        match metric.unit() {
            _ if unit.is_empty() => {}
            Some(own) if own == unit => self.at += unit.len(),
            Some(own) => return self.error(self.at, format!("{metric} is in {own}, not in {unit}")),
            None => return self.error(self.at, format!("{metric} has no unit, so not {unit}")),
        }
        Ok(Limit::Number(number))
    }

    /// What stands after a minus.
    fn nested_factor(&mut self, metric: &Metric) -> Result<Limit, SyntaxError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.error(self.at, "too many signs");
        }
        let factor = self.factor(metric)?;
        self.depth -= 1;
        Ok(Limit::Minus(Box::new(factor)))
    }

    /// A decimal number, with an exponent or not.
    fn number(&mut self) -> Option<f64> {
        self.skip_space();
        let rest = &self.text.as_bytes()[self.at..];
        let digits = |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        if rest.get(end) == Some(&b'.') {
            end += 1 + digits(end + 1);
        }
        if end > 0 && matches!(rest.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            end += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
        let number = self.text[self.at..self.at + end].parse().ok()?;
        self.at += end;
        Some(number)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn error(text: &str) -> (usize, String) {
        let error = Predicate::parse(text).unwrap_err();
        (error.at, error.what)
    }

    #[test]
    fn and_binds_more_than_or() {
        let Predicate::Any(parts) = Predicate::parse("nan == 0 or amax<1 and amin >= 1").unwrap() else {
            panic!("any")
        };
        assert!(matches!(parts[1], Predicate::All(_)));
        let texts: Vec<_> = parts.iter().flat_map(Predicate::comparisons).map(|c| c.text.as_str()).collect();
        assert_eq!(texts, ["nan == 0", "amax<1", "amin >= 1"]);
    }

    #[test]
    fn limits_are_sums_of_products() {
        let limit = |text: &str| match Predicate::parse(&format!("amax <= {text}")).unwrap() {
            Predicate::Compare(comparison) => comparison.limit,
            _ => panic!("{text}"),
        };
        assert_eq!(limit("baseline * 1.1 + 0.05").value(2.0), 2.0 * 1.1 + 0.05);
        assert_eq!(limit("1 - 2 - 3").value(0.0), -4.0);
        assert_eq!(limit("-(1 + 2) * 2e-1").value(0.0), -3.0 * 0.2);
        assert_eq!(limit("8 / 2 / 2").value(0.0), 2.0);
        assert!(limit("2 * (3 + baseline)").is_relative() && !limit("7").is_relative());
    }

    #[test]
    fn units_are_those_of_the_figure() {
        for good in ["underflow_pct.fp16 <= 0.5 %", "sqnr_db.e4m3fn >= 25dB", "headroom_log2.fp16 > 2 bits"] {
            assert!(Predicate::parse(good).is_ok(), "{good}: {:?}", Predicate::parse(good));
        }
        assert_eq!(error("sqnr_db.e4m3fn >= 25 %"), (21, "sqnr_db.e4m3fn is in dB, not in %".into()));
        assert_eq!(error("amax <= 1 dB"), (10, "amax has no unit, so not dB".into()));
    }

    #[test]
    fn errors_say_where_and_what_would_be_valid() {
        assert_eq!(
            error(""),
            (0, "expected a figure such as underflow_pct.float16, or '(', found the end".into())
        );
        assert_eq!(error("amax = 1"), (5, "expected <=, <, >=, >, == or !=, found '='".into()));
        assert_eq!(error("amax <= "), (8, "expected a number or 'baseline', found the end".into()));
        assert_eq!(error("amax <= 1 / 0"), (8, "the limit is not a finite number".into()));
        assert_eq!(error("amax <= baseline + 1e999"), (19, "the number is too large".into()));
        assert_eq!(error("(amax <= 1"), (10, "expected ')', found the end".into()));
        assert_eq!(error("amax <= 1 amin"), (10, "expected 'and', 'or' or the end, found 'amin'".into()));
        assert_eq!(
            error("nan==0 and max_abs <= 1"),
            (11, "'max_abs' needs a format: max_abs.float16".into())
        );
        let (at, what) = error("undrflow_pct.fp16 <= 1");
        assert!(
            at == 0 && what.contains("there is no figure 'undrflow_pct'") && what.contains(" underflow_pct,")
        );
        let (at, what) = error("mse.fp17 <= 1");
        assert!(at == 0 && what.contains("fp17"), "{what}");
        assert!(error(&"(".repeat(100_000)).1.contains("too many brackets"));
        assert!(error(&format!("amax < {}1", "-".repeat(100_000))).1.contains("too many signs"));
    }
}
