//! What went wrong and where: path, tensor, position, then one sentence.
//!
//! Nothing here prints or exits; the command line decides what an error costs.

use std::fmt;
use std::path::{Path, PathBuf};

/// Shorthand for results that fail with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// One failure, told as `path: tensor 'name': byte 12: what is wrong`.
///
/// ```
/// use amp_inspect::error::Error;
/// let error = Error::new("the header is cut off").in_tensor("h.0.bias").at_byte(8).in_file("g.npy");
/// assert_eq!(error.to_string(), "g.npy: tensor 'h.0.bias': byte 8: the header is cut off");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    what: String,
    path: Option<PathBuf>,
    tensor: Option<String>,
    /// Offset from the start of the file, or of the member.
    byte: Option<u64>,
    /// Name of the archive's member that `byte` counts in.
    member: Option<String>,
}

impl Error {
    /// An error that says what is wrong; the place is added by the `in_` and `at_` methods.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), path: None, tensor: None, byte: None, member: None }
    }

    /// Words an operating system error without its `(os error N)` tail.
    pub fn io(doing: &str, error: &std::io::Error) -> Self {
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or(&text);
        Self::new(format!("{doing}: {}", lower_first(text)))
    }

    /// Names the file, unless a deeper layer has named one already.
    #[must_use]
    pub fn in_file(mut self, path: impl AsRef<Path>) -> Self {
        self.path.get_or_insert_with(|| path.as_ref().to_owned());
        self
    }

    /// Names the tensor, unless a deeper layer has named one already.
    #[must_use]
    pub fn in_tensor(mut self, name: &str) -> Self {
        self.tensor.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Adds the byte offset at which the file stops making sense.
    #[must_use]
    pub fn at_byte(mut self, offset: u64) -> Self {
        self.byte = Some(offset);
        self
    }

    /// Says that the byte counts from the start of this member of an archive, once unpacked.
    #[must_use]
    pub fn in_member(mut self, name: &str) -> Self {
        self.member.get_or_insert_with(|| name.to_owned());
        self
    }

    /// The tensor, if one is named.
    pub fn tensor(&self) -> Option<&str> {
        self.tensor.as_deref()
    }

    /// The sentence alone, without its place.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", escape(&path.to_string_lossy()))?;
        }
        if let Some(tensor) = &self.tensor {
            write!(f, "tensor '{}': ", escape(tensor))?;
        }
        match (self.byte, &self.member) {
            (Some(offset), None) => write!(f, "byte {offset}: ")?,
            (Some(offset), Some(member)) => write!(f, "byte {offset} of member '{}': ", escape(member))?,
            (None, Some(member)) => write!(f, "member '{}': ", escape(member))?,
            (None, None) => {}
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

/// Makes untrusted text safe to print on one line of a terminal: control characters, and the
/// bidirectional overrides that reorder a line, are written as escapes. So is what GitHub Actions takes for a
/// command in a job's output: `::` at its start, `##[` anywhere.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let reorders =
            matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || reorders || matches!(c, '\u{2028}' | '\u{2029}') {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    if safe.contains("##[") {
        safe = safe.replace("##[", "#\\u{23}[");
    }
    if let Some(rest) = safe.trim_start().strip_prefix("::") {
        safe = format!("\\u{{3a}}:{rest}");
    }
    safe
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
