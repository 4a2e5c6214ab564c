//! The rows of a pack.

use serde::Serialize;

use super::super::super::sink::{MarkedText, Sink, Style};

/// Number of digits of a blob id in text output.
const BLOB_DIGITS: usize = 10;
/// Maximum number of reasons of an item.
const MAX_REASONS: usize = 3;
/// Number of characters by which a control character may be escaped.
const ESCAPED: usize = 9;

/// The part of an answer that an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// Lines of a file.
    Body,
    /// A definition without its body.
    Signature,
    /// A test.
    Test,
    /// The last change.
    Change,
}

/// One item of a pack.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PackOut {
    pub(super) role: Role,
    pub(super) reason: String,
    pub(super) path: String,
    pub(super) start_line: u32,
    pub(super) end_line: u32,
    /// The line of the reference to the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
    /// The id of the definition; null for lines outside of definitions.
    pub(super) id: Option<String>,
    pub(super) blob: Option<String>,
    /// The exact text of the lines of a body; otherwise a signature, a line or a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) text: Option<String>,
    /// True if the text was not UTF-8 and has replacement characters.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) lossy: bool,
    /// The qualified name, or empty.
    #[serde(skip)]
    pub(super) name: String,
    /// The reason as it follows the result that the item belongs to.
    #[serde(skip)]
    pub(super) label: String,
    /// True for the first item of a result.
    #[serde(skip)]
    pub(in super::super) is_first: bool,
    #[serde(skip)]
    pub(super) n_reasons: usize,
    /// True for a change that is also that of an earlier result.
    #[serde(skip)]
    pub(super) is_known: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl PackOut {
    /// Adds another reason, unless there are enough. Returns true if it was added.
    pub(super) fn add_reason(&mut self, reason: &str) -> bool {
        if self.n_reasons >= MAX_REASONS || self.reason.contains(reason) {
            return false;
        }
        self.n_reasons += 1;
        self.reason = format!("{}; {reason}", self.reason);
        self.label = format!("{}; {reason}", self.label);
        true
    }

    /// Returns the size of the item in an answer, in characters. `is_structured` is true if the answer also has the
    /// facts as JSON, which may be twice as long as the text.
    pub(super) fn size(&self, is_structured: bool) -> usize {
        let mut text = MarkedText::default();
        self.render(&mut text);
        let n_control = text
            .0
            .chars()
            .filter(|letter| letter.is_control() && !matches!(letter, '\n' | '\t'));
        let n_text = text.0.len() + n_control.count() * ESCAPED + usize::from(self.is_first);
        if !is_structured {
            return n_text;
        }
        let facts = Self {
            text: None,
            ..self.clone()
        };
        let n_facts = serde_json::to_string(&facts).map_or(0, |json| json.len() + 1);
        n_text.max(n_facts.div_ceil(2))
    }

    pub(crate) fn render(&self, out: &mut dyn Sink) {
        let indent = "  ";
        if self.role == Role::Change {
            out.span(Style::Fact, &format!("{indent}{}: ", self.label));
            let text = self.text.as_deref().unwrap_or_default();
            return match text.split_once(' ') {
                Some((commit, _)) if self.is_known => out.whole_line(&format!("{commit}, as above")),
                _ => out.whole_line(text),
            };
        }
        if self.is_first {
            return self.render_result(out);
        }
        if self.role == Role::Body {
            let (first, last) = (self.start_line, self.end_line);
            out.span(Style::Fact, &format!("lines {first}-{last} · {}", self.label));
            out.end_whole();
            return out.text(self.text.as_deref().unwrap_or_default());
        }
        out.span(Style::Fact, &format!("{indent}{}: ", self.label));
        out.span(Style::Path, &format!("{}:{}", self.path, self.start_line));
        if let Some(line) = self.line {
            out.span(Style::Fact, &format!(" (line {line})"));
        }
        if let Some((around, _)) = self.name.rsplit_once('.') {
            out.span(Style::Name, &format!(" in {around}"));
        }
        out.whole_line(&format!(" {}", self.text.as_deref().unwrap_or_default()));
    }

    fn render_result(&self, out: &mut dyn Sink) {
        out.span(Style::Path, &format!("{}:{}", self.path, self.start_line));
        out.span(Style::Fact, &format!("-{}", self.end_line));
        if !self.name.is_empty() {
            out.span(Style::Name, &format!(" {}", self.name));
        }
        out.span(Style::Fact, &format!(" · {}", self.label));
        if let Some(blob) = self.blob.as_deref().filter(|_| self.role == Role::Body) {
            out.span(
                Style::Fact,
                &format!(" · blob {}", &blob[..blob.len().min(BLOB_DIGITS)]),
            );
        }
        if self.lossy {
            out.span(Style::Fact, " · not UTF-8");
        }
        out.end_whole();
        match (&self.text, self.role) {
            (Some(text), Role::Body) => out.text(text),
            (Some(text), _) => out.whole_line(&format!("    {text}")),
            (None, _) => {}
        }
    }
}
