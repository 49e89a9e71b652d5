//! How a report looks on the terminal at hand.

/// Width, colour and length of what is shown to a person.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Columns to use.
    pub width: usize,
    /// Whether and how to colour.
    pub paint: Paint,
    /// Rows of long tables to show, 0 for all.
    pub top: usize,
}

/// Wraps text in ANSI styles, or leaves it alone.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    /// Whether styles are wanted.
    pub on: bool,
}

impl Paint {
    /// `text` in the ANSI style `code`.
    pub fn wrap(self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Emphasised.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// In the background.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }
}
