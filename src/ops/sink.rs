//! Writes rows as text in named styles. The command line displays the styles as colours; MCP ignores them.

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// No style.
    #[default]
    Plain,
    /// A path.
    Path,
    /// A name.
    Name,
    /// A number, date or other secondary fact.
    Fact,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
}

/// Receives the text output of an operation.
pub(crate) trait Sink {
    /// Adds text to the current line.
    fn span(&mut self, style: Style, text: &str);

    /// Ends the current line.
    fn end(&mut self);
}

impl dyn Sink + '_ {
    /// Adds a line of plain text.
    pub(crate) fn line(&mut self, text: &str) {
        self.span(Style::Plain, text);
        self.end();
    }

    /// Adds plain text to the current line.
    pub(crate) fn plain(&mut self, text: &str) {
        self.span(Style::Plain, text);
    }

    /// Adds each line of `text`.
    pub(crate) fn text(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    /// Adds each line of `text` with its number, starting at `first`.
    pub(crate) fn numbered(&mut self, first: u32, text: &str) {
        for (line, number) in text.lines().zip(first..) {
            self.span(Style::Fact, &format!("{number:>6} "));
            self.line(line);
        }
    }

    /// Adds a unified difference.
    pub(crate) fn diff(&mut self, diff: &str) {
        // A carriage return at the end of a line may be the difference.
        for line in diff.split_terminator('\n') {
            let style = match line.as_bytes().first() {
                Some(b'+') => Style::Added,
                Some(b'-') => Style::Removed,
                Some(b'@') => Style::Fact,
                _ => Style::Plain,
            };
            self.span(style, line);
            self.end();
        }
    }
}

/// Text that is recorded, to be written to a sink later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    /// Pieces of text with their styles. `None` ends a line.
    spans: Vec<Option<(Style, String)>>,
}

impl Recorded {
    /// Records the text that `write` writes.
    pub(crate) fn of(write: impl FnOnce(&mut dyn Sink)) -> Self {
        let mut recorded = Self::default();
        write(&mut recorded);
        recorded
    }

    /// Writes the text to another sink.
    pub(crate) fn replay(&self, out: &mut dyn Sink) {
        for span in &self.spans {
            match span {
                Some((style, text)) => out.span(*style, text),
                None => out.end(),
            }
        }
    }
}

impl Sink for Recorded {
    fn span(&mut self, style: Style, text: &str) {
        self.spans.push(Some((style, text.to_owned())));
    }

    fn end(&mut self) {
        self.spans.push(None);
    }
}

/// A sink for text without styles.
#[derive(Debug, Default)]
pub(crate) struct PlainText(pub(crate) String);

impl Sink for PlainText {
    fn span(&mut self, _: Style, text: &str) {
        self.0.push_str(text);
    }

    fn end(&mut self) {
        self.0.push('\n');
    }
}
