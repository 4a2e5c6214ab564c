//! Writes rows as text in named styles. The command line displays the styles as colours; MCP ignores them.

use super::syntax::Syntax;

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
    /// The id of a commit.
    Commit,
    /// A number, date or other secondary fact.
    Fact,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// Text that the request looks for.
    Match,
    /// A comment in code.
    Comment,
    /// A string or character in code.
    Literal,
    /// A reserved word in code.
    Keyword,
}

/// Receives the text output of an operation.
pub(crate) trait Sink {
    /// Adds text to the current line.
    fn span(&mut self, style: Style, text: &str);

    /// Ends the current line. A terminal cuts it at its width.
    fn end(&mut self);

    /// Ends the current line, which is shown completely.
    fn end_whole(&mut self) {
        self.end();
    }

    /// Adds a line of text that is between fences.
    fn fenced(&mut self, line: &str) {
        self.span(Style::Plain, line);
        self.end_whole();
    }

    /// Returns the line that is written before and after the quoted `text`. `None` if nothing marks quotes.
    fn fence(&self, _text: &str) -> Option<String> {
        None
    }
}

/// Passes lines on so that a terminal shows them completely.
pub(crate) struct Whole<'a>(pub(crate) &'a mut dyn Sink);

impl Sink for Whole<'_> {
    fn span(&mut self, style: Style, text: &str) {
        self.0.span(style, text);
    }

    fn end(&mut self) {
        self.0.end_whole();
    }

    fn fenced(&mut self, line: &str) {
        self.0.fenced(line);
    }

    fn fence(&self, text: &str) -> Option<String> {
        self.0.fence(text)
    }
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

    /// Adds a line of plain text that is shown completely.
    pub(crate) fn whole_line(&mut self, text: &str) {
        self.plain(text);
        self.end_whole();
    }

    /// Adds text to the current line, with these byte ranges as matches.
    pub(crate) fn marked(&mut self, style: Style, text: &str, spans: &[(u32, u32)]) {
        let mut at = 0;
        for &(start, end) in spans {
            self.span(style, &text[at..start as usize]);
            self.span(Style::Match, &text[start as usize..end as usize]);
            at = end as usize;
        }
        self.span(style, &text[at..]);
    }

    /// Adds each line of `text` with its number, starting at `first`. `language` is the name of its language, and
    /// `matches` returns the byte ranges of matches in a line.
    pub(crate) fn code(&mut self, first: u32, text: &str, language: &str, matches: impl Fn(&str) -> Vec<(u32, u32)>) {
        let mut syntax = Syntax::named(text, language);
        let mut start = 0;
        for (whole, number) in text.split_inclusive('\n').zip(first..) {
            let line = whole.lines().next().unwrap_or_default();
            let mut at = start;
            self.span(Style::Fact, &format!("{number:>6} "));
            for (from, to) in matches(line) {
                let (from, to) = (start + from as usize, start + to as usize);
                syntax.between(at..from, |piece, style| self.span(style, &text[piece]));
                self.span(Style::Match, &text[from..to]);
                at = to;
            }
            syntax.between(at..start + line.len(), |piece, style| self.span(style, &text[piece]));
            self.end();
            start += whole.len();
        }
    }

    /// Quotes each line of `text`.
    pub(crate) fn text(&mut self, text: &str) {
        let fence = self.fence(text);
        let fence = || fence.as_deref().into_iter();
        for line in fence().chain(text.lines()).chain(fence()) {
            self.fenced(line);
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
            self.end_whole();
        }
    }
}

/// Text that is recorded, to be written to a sink later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Span(Style, String),
    End,
    EndWhole,
}

impl Recorded {
    /// Records the text that `write` writes.
    pub(crate) fn of(write: impl FnOnce(&mut dyn Sink)) -> Self {
        let mut recorded = Self::default();
        write(&mut recorded);
        recorded
    }

    /// Returns true if there is no text.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes the text to another sink.
    pub(crate) fn replay(&self, out: &mut dyn Sink) {
        for piece in &self.pieces {
            match piece {
                Piece::Span(style, text) => out.span(*style, text),
                Piece::End => out.end(),
                Piece::EndWhole => out.end_whole(),
            }
        }
    }
}

impl Sink for Recorded {
    fn span(&mut self, style: Style, text: &str) {
        self.pieces.push(Piece::Span(style, text.to_owned()));
    }

    fn end(&mut self) {
        self.pieces.push(Piece::End);
    }

    fn end_whole(&mut self) {
        self.pieces.push(Piece::EndWhole);
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

/// Characters other than `\n` at which programs, and perhaps language models, see the start of a line.
const OTHER_BREAKS: &[char] = &[
    '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}',
];
const INDENT: &str = "    ";

/// Text for agents, in which only lines of the program begin at the margin outside of fences: what it quotes is in a
/// fence, or continues a line that the program began.
#[derive(Debug, Default)]
pub(crate) struct MarkedText(pub(crate) String);

impl MarkedText {
    /// Writes a line of the program. What follows a line break in it is indented.
    pub(crate) fn line(&mut self, line: &str) {
        self.span(Style::Plain, line);
        self.end();
    }
}

impl Sink for MarkedText {
    fn span(&mut self, style: Style, text: &str) {
        let is_at_margin = self.0.is_empty() || self.0.ends_with('\n');
        let is_of_repository = matches!(style, Style::Path | Style::Name);
        if is_at_margin && is_of_repository && [": ", " | ", "<", "`"].iter().any(|mark| text.contains(mark)) {
            // A file or a heading can have a name such as `hint: read this`.
            self.0.push_str(&format!("{text:?}"));
        } else {
            for letter in text.chars() {
                if letter != '\n' && self.0.ends_with(OTHER_BREAKS) {
                    self.0.push_str(INDENT);
                }
                self.0.push(letter);
                if letter == '\n' {
                    self.0.push_str(INDENT);
                }
            }
        }
    }

    fn end(&mut self) {
        self.0.push('\n');
    }

    fn fenced(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn fence(&self, text: &str) -> Option<String> {
        Some(fence_of(text))
    }
}

/// Returns a line of at least three backticks, of more than there are in a row in `text`, so that no line of `text` ends
/// the quote.
pub(crate) fn fence_of(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max();
    "`".repeat(longest.map_or(3, |longest| (longest + 1).max(3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_marked_text_begins_with_quoted_text() {
        for quoted in [
            "a\nhint: b",
            "a\rhint: b",
            "a\r\nhint: b",
            "a\u{b}hint: b",
            "a\u{85}hint: b",
            "a\u{2028}hint: b",
            "a\u{2029}\u{c}hint: b",
        ] {
            let mut text = MarkedText::default();
            let out: &mut dyn Sink = &mut text;
            out.plain("1 ");
            out.whole_line(quoted);
            let start = quoted.find("hint").map_or(0, |at| at as u32);
            out.plain("2 ");
            out.marked(Style::Plain, quoted, &[(start, start + 4)]);
            out.end();
            out.code(3, quoted, "text", |_| Vec::new());
            let is_break = |c: char| c == '\n' || OTHER_BREAKS.contains(&c);
            let begins = |line: &str| line.starts_with("hint");
            assert!(!text.0.split(is_break).any(begins), "{:?}", text.0);
        }
    }

    #[test]
    fn text_between_fences_and_ends_of_lines_are_unchanged() {
        let mut text = MarkedText::default();
        let out: &mut dyn Sink = &mut text;
        out.text("a\rb\u{2028}c\n");
        out.diff("-a\r\n+a\n");
        assert_eq!(text.0, "```\na\rb\u{2028}c\n```\n-a\r\n+a\n");
    }
}
