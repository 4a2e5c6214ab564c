//! Finds the sections of Markdown with a dedicated scanner, which is a hundred times as fast as the grammar.
//!
//! Follows CommonMark 0.31 for ATX headings, setext headings and fenced code. Skips front matter between `---` lines.

use super::{Language, Profile, Structure};
use crate::extract::layout::Layout;
use crate::extract::types::{Definition, DefinitionKind, Extraction, Heading};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "markdown",
    lang: Lang(30),
    aliases: &["md"],
    extensions: &["md", "markdown", "mdx", "mkd", "qmd", "rmd"],
    file_names: &[],
    interpreters: &[],
    profile: Profile::MARKUP,
    structure: Structure::Prose(scan),
};

/// Finds the sections of `bytes` and records the depth of each line.
fn scan(bytes: &[u8], layout: &mut Layout) -> Extraction {
    let mut scanner = Scanner { bytes, block: Block::Text, paragraph: None, titles: Vec::new() };
    let mut at = 0;
    for (line, text) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let depth = scanner.see(line, at, text);
        if let Some(depth) = depth {
            layout.set_depth(line, depth);
        }
        at += text.len();
    }
    sections(&scanner.titles, bytes)
}

/// A heading.
pub(super) struct Title {
    pub(super) level: u8,
    /// The range of the heading's lines.
    pub(super) lines: ByteRange,
    /// The range of the heading's text, including markup.
    pub(super) text: ByteRange,
}

/// The kind of block that contains the current line.
enum Block {
    Text,
    FrontMatter,
    Fence { mark: u8, len: usize },
    Comment,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    block: Block,
    /// The start of the paragraph that the previous line belongs to. A setext underline turns the paragraph into a
    /// heading.
    paragraph: Option<usize>,
    titles: Vec<Title>,
}

impl Scanner<'_> {
    /// Processes one line. Returns its depth for the chunker, or `None` for a blank line of text.
    fn see(&mut self, line: usize, at: usize, text: &[u8]) -> Option<usize> {
        let trimmed = text.trim_ascii();
        match self.block {
            Block::Text => self.see_text(line, at, text, trimmed),
            Block::FrontMatter => {
                self.leave_if(trimmed == b"---" || trimmed == b"...");
                Some(3)
            }
            Block::Fence { mark, len } => {
                let (n, rest) = run_of(trimmed, mark);
                self.leave_if(n >= len && rest.is_empty());
                Some(4)
            }
            Block::Comment => {
                self.leave_if(trimmed.ends_with(b"-->"));
                Some(4)
            }
        }
    }

    fn leave_if(&mut self, is_end: bool) {
        if is_end {
            self.block = Block::Text;
        }
    }

    fn see_text(&mut self, line: usize, at: usize, text: &[u8], trimmed: &[u8]) -> Option<usize> {
        let paragraph = self.paragraph.take();
        if trimmed.is_empty() {
            return None;
        }
        if line == 0 && trimmed == b"---" {
            self.block = Block::FrontMatter;
            return Some(0);
        }
        if let Some(block) = opened(trimmed) {
            self.block = block;
            return Some(if paragraph.is_some() { 3 } else { 2 });
        }
        let indent = text.len() - text.trim_ascii_start().len();
        if indent < 4 && self.see_heading(at, text, trimmed, paragraph) {
            return Some(0);
        }
        let is_paragraph = indent < 4 && !starts_other_block(trimmed);
        self.paragraph = is_paragraph.then(|| paragraph.unwrap_or(at));
        Some(match (paragraph, is_paragraph) {
            (None, true) => 1,
            (Some(_), true) => 3,
            (_, false) => 2 + indent.min(8) / 2,
        })
    }

    fn see_heading(&mut self, at: usize, text: &[u8], trimmed: &[u8], paragraph: Option<usize>) -> bool {
        let end = at + text.len();
        let (level, rest) = run_of(trimmed, b'#');
        if (1..=6).contains(&level) && (rest.is_empty() || rest[0].is_ascii_whitespace()) {
            let start = at + text.len() - text.trim_ascii_start().len() + level;
            self.push(level as u8, at..end, start..end, b"#");
            return true;
        }
        let Some(start) = paragraph else { return false };
        let level = match (run_of(trimmed, b'='), run_of(trimmed, b'-')) {
            ((_, []), _) => 1,
            (_, (n, [])) if n > 1 => 2,
            _ => return false,
        };
        self.push(level, start..end, start..at, b"");
        true
    }

    fn push(&mut self, level: u8, lines: std::ops::Range<usize>, text: std::ops::Range<usize>, closing: &[u8]) {
        let inner = self.bytes[text.clone()].trim_ascii_end();
        let without = inner.iter().rposition(|byte| !closing.contains(byte)).map_or(0, |last| last + 1);
        let is_closed = without == 0 || inner[without - 1].is_ascii_whitespace();
        let inner = if is_closed { &inner[..without] } else { inner };
        let start = text.start + inner.len() - inner.trim_ascii_start().len();
        let end = (text.start + inner.trim_ascii_end().len()).max(start);
        self.titles.push(Title { level, lines: range(lines.start, lines.end), text: range(start, end) });
    }
}

pub(super) fn range(start: usize, end: usize) -> ByteRange {
    ByteRange::new(start as u32, end as u32)
}

/// Returns the number of `mark` bytes at the start of `text`, and the text after them.
fn run_of(text: &[u8], mark: u8) -> (usize, &[u8]) {
    let n = text.iter().take_while(|&&byte| byte == mark).count();
    (n, &text[n..])
}

/// Returns the block that a line opens if the content of the block is not Markdown.
fn opened(trimmed: &[u8]) -> Option<Block> {
    if trimmed.starts_with(b"<!--") {
        return (!trimmed.ends_with(b"-->")).then_some(Block::Comment);
    }
    let mark = *trimmed.first()?;
    let (len, info) = run_of(trimmed, mark);
    let is_fence = len >= 3 && (mark == b'~' || mark == b'`' && !info.contains(&b'`'));
    is_fence.then_some(Block::Fence { mark, len })
}

/// Returns true if a line starts a list item, a quote, a table row or HTML. An underline below such a line does not
/// make it a heading.
fn starts_other_block(trimmed: &[u8]) -> bool {
    let after_number = trimmed.trim_ascii_start();
    let n_digits = after_number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_numbered = n_digits > 0 && after_number[n_digits..].starts_with(b". ");
    is_numbered
        || [&b"- "[..], b"* ", b"+ ", b">", b"|", b"<"].iter().any(|start| trimmed.starts_with(start))
        || [&b"---"[..], b"***", b"___"].iter().any(|rule| trimmed.starts_with(rule))
}

/// Returns the sections. A section extends to the next heading of the same or a higher rank.
pub(super) fn sections(titles: &[Title], bytes: &[u8]) -> Extraction {
    let mut extraction = Extraction::default();
    let mut open: Vec<(usize, u8)> = Vec::new();
    for title in titles {
        while let Some((at, _)) = open.pop_if(|(_, level)| *level >= title.level) {
            close(&mut extraction, at, title.lines.start);
        }
        let container = open.last().map(|(at, _)| *at as u32);
        open.push((extraction.headings.len(), title.level));
        let plain = plain_text(&bytes[title.text.as_usize()]);
        extraction.headings.push(Heading { level: title.level, title: plain.clone(), range: title.lines });
        extraction.definitions.push(section(title, plain, container, bytes));
    }
    for (at, _) in open {
        close(&mut extraction, at, bytes.len() as u32);
    }
    extraction
}

fn close(extraction: &mut Extraction, at: usize, end: u32) {
    extraction.headings[at].range.end = end;
    extraction.definitions[at].range.end = end;
}

/// Creates the definition of a section. If the heading has no text, its marks are the name.
fn section(title: &Title, name: String, container: Option<u32>, bytes: &[u8]) -> Definition {
    let heading = bytes[title.lines.as_usize()].trim_ascii_end();
    let signature = ByteRange::new(title.lines.start, title.lines.start + heading.len() as u32);
    let has_text = !name.is_empty();
    Definition {
        name: if has_text { name } else { String::from_utf8_lossy(heading.trim_ascii()).into_owned() },
        kind: DefinitionKind::Section,
        container,
        qualifier: None,
        range: title.lines,
        name_range: if has_text { title.text } else { signature },
        signature,
        doc: None,
        arity: None,
    }
}

/// Returns a heading's text as displayed: without emphasis, code marks and link targets.
fn plain_text(title: &[u8]) -> String {
    let text = String::from_utf8_lossy(title);
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '`' | '*' | '[' => {}
            '!' if rest.starts_with('[') => {}
            ']' if rest.starts_with('(') => rest = rest.find(')').map_or("", |at| &rest[at + 1..]),
            ']' => {}
            '{' if rest.starts_with('#') => rest = rest.find('}').map_or("", |at| &rest[at + 1..]),
            '\n' | '\r' => plain.push(' '),
            _ => plain.push(c),
        }
    }
    plain.trim().to_owned()
}
