//! Finds what the prose of a document says about code: names, paths and links. Code blocks are not prose.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::link::{Spelling, attribute_value, destination};
use crate::extract::{lang_of_path, language};
use crate::model::{Lang, RepoPath};

/// The markup of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markup {
    Markdown,
    Restructured,
    Asciidoc,
    Plain,
}

/// The languages of documents.
pub(in crate::ops) const DOCUMENT_LANGUAGES: [&str; 4] = ["markdown", "restructuredtext", "asciidoc", "plaintext"];

impl Markup {
    /// Returns the markup of documents in a language; `None` for code.
    pub(super) fn of(lang: Lang) -> Option<Self> {
        let name = language(lang)?.name;
        let at = DOCUMENT_LANGUAGES.iter().position(|known| *known == name)?;
        Some([Self::Markdown, Self::Restructured, Self::Asciidoc, Self::Plain][at])
    }
}

/// What a mention refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Referent {
    /// A definition.
    Name,
    /// A file or directory.
    Path,
    /// A heading of the document at the path in this range; of the same document if it is empty.
    Heading(Range<usize>),
}

/// A mention of a definition, file, directory or heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    /// The range of the name or path in the document.
    pub(super) range: Range<usize>,
    pub(super) referent: Referent,
    /// True for the target of a link, which is relative to the document.
    pub(super) is_link: bool,
    pub(super) spelling: Spelling,
}

macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident: $pattern:expr;)+) => {
        $($(#[$doc])* static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the pattern is valid"));)+
    };
}

patterns! {
    NAME: r"(?s)^[~.!&*@]*([A-Za-z_]\w*(?:(?:\.|::|#|->)[A-Za-z_]\w*)*)(?:<.*>)?[!?]?(?:\(.*\))?;?$";
    PATH: r"^((?:\.\.?/)*[\w@+.-]+(?:/[\w@+.-]+)*/?)(?::\d+(?:-\d+)?)?$";
    OTHER_TIMES: r"(?i)migrat|upgrad|change|what.s new|deprecat|history|release|backward|incompat";
    ROLE: r"[:{]((?:\w+:)?[\w-]+)[:}]$";
    DIRECTIVE: r"^\s*\.\. +([\w:-]+)::[ \t]*(.*?)\s*$";
    DEFINED_LINK: r"^ {0,3}\[[^\]^]+\]:";
    EXPLICIT_LINK: r"^\s*\.\. _[^:]+:\s+(\S+)\s*$";
    MACRO: r"\b(link|xref|include|image)::?([^\s\[\]]+)\[";
    SCHEME: r"^(?:[A-Za-z][A-Za-z0-9+.-]*:|//)";
    LINES: r":\d+(?:-\d+)?$";
    REFERENCE_ATTRIBUTE: r"(?i)\s(?:src|href)\s*$";
    IMPORT: r#"(?m)^[\s>]*(?:from +([\w.]+) +import +(.+)|(?:import|const|let|var) +(.+?)(?: +from| *= *require\() *['"]([^'"]+)|use +(\w+)(::.+);)"#;
}

/// Number of bytes before a quoted text that can be its role, and before `=` that can be the name of an attribute.
const MAX_NAME_BYTES: usize = 64;

/// Finds the mentions in a document, in their order.
pub(super) fn mentions(text: &str, markup: Markup) -> Vec<Mention> {
    let mut scan = Scan {
        text,
        markup,
        found: Vec::new(),
        paragraph: 0..0,
        skipped: Skipped::Nothing,
        ranks: Vec::new(),
        old_section: None,
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        scan.line(at, line);
        at += line.len();
    }
    scan.end_paragraph();
    scan.found.sort_by_key(|mention| mention.range.start);
    // Each can be replaced.
    scan.found.dedup_by(|next, last| next.range.start < last.range.end);
    scan.found
}

/// Returns the names that the examples of a document import, each with the first part of the name of its module.
pub(super) fn imported(text: &str) -> HashMap<String, String> {
    let of_line = |found: regex::Captures<'_>| {
        let [module, names] = [[1, 4, 5], [2, 3, 6]].map(|groups| {
            let group = groups.into_iter().find_map(|group| found.get(group));
            group.map_or(0..0, |group| group.range())
        });
        let words = |range: Range<usize>| text[range].split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let module = text[module].split(['/', '.']).next().unwrap_or_default();
        let names = words(names).map(|name| (name.to_owned(), module.to_owned()));
        names.collect::<Vec<_>>()
    };
    IMPORT.captures_iter(text).flat_map(of_line).collect()
}

/// The block that is being skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Skipped {
    Nothing,
    /// Up to a line that starts with this text.
    Until(String),
    /// Lines that are indented more than this.
    Indented(usize),
}

struct Scan<'a> {
    text: &'a str,
    markup: Markup,
    found: Vec<Mention>,
    /// The range of the paragraph so far.
    paragraph: Range<usize>,
    skipped: Skipped,
    /// The marks of headings of reStructuredText in the order of their ranks.
    ranks: Vec<u8>,
    /// The rank of the heading of the section of other times that contains the line.
    old_section: Option<usize>,
}

impl Scan<'_> {
    fn line(&mut self, at: usize, line: &str) {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start().len();
        match &self.skipped {
            Skipped::Until(end) if trimmed.starts_with(end.as_str()) => return self.skipped = Skipped::Nothing,
            Skipped::Until(_) => return,
            Skipped::Indented(outer) if trimmed.is_empty() || indent > *outer => return,
            _ => self.skipped = Skipped::Nothing,
        }
        if trimmed.is_empty() {
            return self.end_paragraph();
        }
        if let Some(skipped) = self.opened(at, trimmed) {
            self.end_paragraph();
            return self.skipped = skipped;
        }
        if self.markup == Markup::Restructured && trimmed.starts_with(".. ") {
            self.end_paragraph();
            return self.directive(at, line, indent);
        }
        let defined = DEFINED_LINK.find(line).filter(|_| self.markup == Markup::Markdown);
        if let Some((target, spelling)) = defined.and_then(|found| destination(self.text, at + found.end())) {
            self.link(target, spelling);
        }
        if self.paragraph.is_empty() {
            self.paragraph.start = at;
        }
        self.paragraph.end = at + line.len();
    }

    /// Returns what a line begins to skip.
    fn opened(&self, at: usize, trimmed: &str) -> Option<Skipped> {
        let until = |end: &str| Some(Skipped::Until(end.to_owned()));
        match self.markup {
            Markup::Markdown if at == 0 && trimmed.trim_start_matches('\u{feff}') == "---" => until("---"),
            Markup::Markdown if trimmed.starts_with("<!--") && !trimmed.contains("-->") => until("-->"),
            Markup::Markdown if trimmed.starts_with("```") && !trimmed[3..].contains('`') => until("```"),
            Markup::Markdown if trimmed.starts_with("~~~") => until("~~~"),
            Markup::Asciidoc if matches!(trimmed, "----" | "...." | "````" | "////" | "```") => until(trimmed),
            _ => None,
        }
    }

    /// Reads a line of reStructuredText that starts with two dots.
    fn directive(&mut self, at: usize, line: &str, indent: usize) {
        if let Some(target) = EXPLICIT_LINK.captures(line).and_then(|found| found.get(1)) {
            return self.link(at + target.start()..at + target.end(), Spelling::Url);
        }
        let Some(found) = DIRECTIVE.captures(line) else {
            self.skipped = Skipped::Indented(indent);
            return;
        };
        let argument = found
            .get(2)
            .map_or(0..0, |argument| at + argument.start()..at + argument.end());
        let name = found[1].trim_start_matches("py:");
        match name.trim_start_matches("auto") {
            "function" | "class" | "method" | "module" | "exception" | "data" | "attribute" | "decorator"
            | "currentmodule" => self.code(argument),
            "image" | "figure" | "include" => self.linked_path(argument, Spelling::Argument),
            "literalinclude" => {
                self.linked_path(argument, Spelling::Argument);
                self.skipped = Skipped::Indented(indent);
            }
            "note" | "warning" | "tip" | "admonition" | "seealso" | "hint" | "important" | "caution" | "topic"
            | "rubric" | "describe" | "only" | "container" | "attention" | "danger" | "list-table" | "sidebar"
            | "glossary" | "option" | "envvar" | "setting" => {}
            // Code, changes of versions, comments and what is unknown.
            _ => self.skipped = Skipped::Indented(indent),
        }
    }

    fn end_paragraph(&mut self) {
        let range = std::mem::take(&mut self.paragraph);
        let paragraph = &self.text[range.clone()];
        if self.markup == Markup::Restructured && paragraph.trim_end().ends_with("::") {
            let first = paragraph.lines().next().unwrap_or_default();
            self.skipped = Skipped::Indented(first.len() - first.trim_start().len());
        }
        if let Some((rank, title)) = self.heading(paragraph) {
            let goes_on = self.old_section.is_some_and(|section| rank > section);
            if !goes_on {
                self.old_section = OTHER_TIMES.is_match(title).then_some(rank);
            }
        }
        if self.old_section.is_some() {
            return;
        }
        let bytes = paragraph.as_bytes();
        let runs = Runs::of(paragraph);
        let is_markdown = self.markup == Markup::Markdown;
        let (mut at, mut is_in_tag) = (0, false);
        while at < bytes.len() {
            at = match bytes[at] {
                b'`' => self.quoted(range.start, paragraph, at, &runs),
                b']' if is_markdown && bytes.get(at + 1) == Some(&b'(') => {
                    let target = destination(paragraph, at + 2);
                    let end = target.as_ref().map_or(at + 2, |(target, _)| target.end);
                    if let Some((target, spelling)) = target {
                        self.link(range.start + target.start..range.start + target.end, spelling);
                    }
                    end
                }
                b'<' if is_markdown => {
                    is_in_tag = bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic);
                    at + 1
                }
                b'>' => {
                    is_in_tag = false;
                    at + 1
                }
                b'=' if is_in_tag => {
                    let value = attribute_value(paragraph, at);
                    if REFERENCE_ATTRIBUTE.is_match(end_of(&paragraph[..at], MAX_NAME_BYTES)) {
                        self.link(range.start + value.start..range.start + value.end, Spelling::Url);
                    }
                    value.end
                }
                _ => at + 1,
            };
        }
        if self.markup == Markup::Asciidoc {
            for found in MACRO.captures_iter(paragraph) {
                let target = found.get(2).map_or(0..0, |target| target.range());
                let target = range.start + target.start..range.start + target.end;
                match &found[1] {
                    "include" => self.linked_path(target, Spelling::Argument),
                    _ => self.link(target, Spelling::Url),
                }
            }
        }
    }

    /// Returns the rank and the text of the heading that a paragraph begins with.
    fn heading<'p>(&mut self, paragraph: &'p str) -> Option<(usize, &'p str)> {
        let mut lines = paragraph.lines().map(str::trim_end);
        let (first, mark) = (lines.next()?, if self.markup == Markup::Asciidoc { '=' } else { '#' });
        let title = first.trim_start_matches(mark);
        if self.markup != Markup::Restructured && title.len() < first.len() {
            return Some((first.len() - title.len(), title));
        }
        let is_line = |line: &str| line.len() > 2 && line.bytes().all(|byte| byte == line.as_bytes()[0]);
        let second = lines.next()?;
        let (title, line) = if is_line(first) {
            (second, first)
        } else {
            (first, second)
        };
        let mark = line
            .bytes()
            .next()
            .filter(|byte| is_line(line) && byte.is_ascii_punctuation())?;
        let at = self.ranks.iter().position(|known| *known == mark).unwrap_or_else(|| {
            self.ranks.push(mark);
            self.ranks.len() - 1
        });
        Some((at + 1, title))
    }

    /// Reads text in backticks that starts at `at`. Returns where it ends.
    fn quoted(&mut self, base: usize, paragraph: &str, at: usize, runs: &Runs) -> usize {
        let n = paragraph[at..].bytes().take_while(|byte| *byte == b'`').count();
        let Some(end) = runs.next(n, at + n) else {
            return at + n;
        };
        let inner = self.trimmed(base + at + n..base + end);
        let before = end_of(&paragraph[..at], MAX_NAME_BYTES);
        let role = ROLE
            .captures(before)
            .filter(|_| n == 1)
            .map(|found| found[1].to_owned());
        match role.as_deref().map(|role| role.rsplit(':').next().unwrap_or(role)) {
            Some("func" | "class" | "meth" | "attr" | "exc" | "data" | "obj" | "mod" | "const" | "type" | "deco") => {
                let target = self.target(inner);
                self.code(target);
            }
            Some("doc" | "file" | "download" | "src") => {
                let target = self.target(inner);
                self.linked_path(target, Spelling::Quoted);
            }
            Some(_) if self.markup == Markup::Restructured || before.ends_with('}') => {}
            _ if self.markup == Markup::Restructured && n == 1 && paragraph[end + n..].starts_with('_') => {
                let target = self.target(inner.clone());
                if target != inner {
                    self.link(target, Spelling::Url);
                }
            }
            _ => self.code(inner),
        }
        end + n
    }

    /// Returns the target of `title <target>`.
    fn target(&self, inner: Range<usize>) -> Range<usize> {
        let text = &self.text[inner.clone()];
        match text.rfind('<').filter(|_| text.ends_with('>')) {
            Some(at) => inner.start + at + 1..inner.end - 1,
            None => inner,
        }
    }

    fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let text = &self.text[range.clone()];
        let start = range.start + text.len() - text.trim_start().len();
        start..(range.start + text.trim_end().len()).max(start)
    }

    /// Adds a name or path that is marked as code.
    fn code(&mut self, range: Range<usize>) {
        let text = &self.text[range.clone()];
        let is_file = |path: &str| {
            let ending = path.rsplit_once('.').is_some_and(|(name, _)| !name.is_empty());
            ending && language(lang_of_path(&RepoPath::from(path))).is_some()
        };
        if text.contains('/') || is_file(text) {
            return self.path(range);
        }
        if let Some(name) = NAME.captures(text).and_then(|found| found.get(1)) {
            let range = range.start + name.start()..range.start + name.end();
            self.add(range, Referent::Name, false, Spelling::Quoted);
        }
    }

    /// Adds the path that a text is, if it looks like one.
    fn path(&mut self, range: Range<usize>) {
        if let Some(path) = PATH.captures(&self.text[range.clone()]).and_then(|found| found.get(1)) {
            let range = range.start + path.start()..range.start + path.end();
            self.add(range, Referent::Path, false, Spelling::Quoted);
        }
    }

    /// Adds the path and the heading of a link, unless it leads out of the repository.
    fn link(&mut self, range: Range<usize>, spelling: Spelling) {
        let text = &self.text[range.clone()];
        if SCHEME.is_match(text) {
            return;
        }
        let (before, heading) = text.split_once('#').unwrap_or((text, ""));
        let path = range.start..range.start + before.find('?').unwrap_or(before.len());
        if !heading.is_empty() {
            let heading = range.end - heading.len()..range.end;
            self.add(heading, Referent::Heading(path.clone()), true, spelling);
        }
        self.linked_path(path, spelling);
    }

    /// Adds a path that is relative to the document or the root, without the lines after it.
    fn linked_path(&mut self, range: Range<usize>, spelling: Spelling) {
        let text = &self.text[range.clone()];
        let start = range.start + text.len() - text.trim_start_matches('/').len();
        let end = range.start + LINES.find(text).map_or(text.len(), |lines| lines.start());
        if start < end {
            self.add(start..end, Referent::Path, true, spelling);
        }
    }

    fn add(&mut self, range: Range<usize>, referent: Referent, is_link: bool, spelling: Spelling) {
        self.found.push(Mention {
            range,
            referent,
            is_link,
            spelling,
        });
    }
}

/// The runs of backticks in a paragraph: where those of each length start, in order.
struct Runs(HashMap<usize, Vec<usize>>);

impl Runs {
    fn of(paragraph: &str) -> Self {
        let bytes = paragraph.as_bytes();
        let mut runs: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'`', &bytes[at..]) {
            at += found;
            let n = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
            runs.entry(n).or_default().push(at);
            at += n;
        }
        Self(runs)
    }

    /// Returns the start of the first run of this length that does not start before `from`.
    fn next(&self, length: usize, from: usize) -> Option<usize> {
        let starts = self.0.get(&length)?;
        starts.get(starts.partition_point(|start| *start < from)).copied()
    }
}

/// Returns the last bytes of a text, at most `max_bytes`.
fn end_of(text: &str, max_bytes: usize) -> &str {
    let start = text.len().saturating_sub(max_bytes);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::super::link::MAX_LINK_BYTES;
    use super::*;

    fn found(text: &str, markup: Markup) -> Vec<(&str, bool)> {
        let all = mentions(text, markup).into_iter();
        all.map(|mention| (&text[mention.range], mention.is_link)).collect()
    }

    #[test]
    fn markdown_is_prose_outside_code_blocks() {
        let text = "---\nid: `a`\n---\nUse `Parser.parse(text)` of [this](src/a.py#L1 \"x\") and\n`src/b.py:12`, \
                    `Vec<T>`, ``c.rs``, `two words`.\n\n```\n`no`\n```\n[x]: ../d.md\n[web](https://e.org/f)\n";
        let names = [
            ("Parser.parse", false),
            ("src/a.py", true),
            ("L1", true),
            ("src/b.py", false),
            ("Vec", false),
            ("c.rs", false),
            ("../d.md", true),
        ];
        assert_eq!(found(text, Markup::Markdown), names);
    }

    #[test]
    fn restructured_text_has_roles_and_directives() {
        let text = "Call :func:`~flask.run` or :meth:`go <App.go>` but :ref:`this`; ``x.y``::\n\n    `code`\n\n\
                    .. autofunction:: jsonify\n\n.. versionchanged:: 2\n    ``old`` is gone.\n\n.. note:: ``z``\n   ``kept``\n\
                    \n`a <b/c.rst>`_ and `d`\n";
        let names = [
            ("flask.run", false),
            ("App.go", false),
            ("x.y", false),
            ("jsonify", false),
            ("kept", false),
            ("b/c.rst", true),
            ("d", false),
        ];
        assert_eq!(found(text, Markup::Restructured), names);
    }

    #[test]
    fn sections_about_other_times_are_left_out() {
        let text = "# A\n\n`a1`\n\n## Migrating to 2\n\n`b1`\n\n### C\n\n`c1`\n\n## D\n\n`d1`\n";
        assert_eq!(found(text, Markup::Markdown), [("a1", false), ("d1", false)]);
        let text = "A\n===\n\nUpgrading\n----------\n\n`b1`\n\nC\n~~~~\n\n`c1`\n\nD\n----\n\n`d1`\n";
        assert_eq!(found(text, Markup::Restructured), [("d1", false)]);
    }

    #[test]
    fn marks_without_an_end_take_linear_time() {
        let hostile = [
            "](",
            "](<",
            "](a](b)",
            "](\\(",
            "](  ",
            "[a](#a)",
            "`a ``b ```c ",
            ":`a`",
            "{a}`b`",
            "`",
            "<a ",
            "<a x=",
            "<a x=\"",
            "<a x=\"'",
            "<a x= ",
            "=",
            "[a]: (\n",
        ];
        for markup in [Markup::Markdown, Markup::Restructured, Markup::Asciidoc] {
            for unit in hostile {
                let text = unit.repeat(400_000 / unit.len());
                let began = std::time::Instant::now();
                mentions(&text, markup);
                // Quadratic time would be minutes.
                assert!(
                    began.elapsed().as_secs() < 20,
                    "{unit} in {markup:?}: {:?}",
                    began.elapsed()
                );
            }
        }
        let long = format!("[a](#{}) [b](#c)", "x".repeat(MAX_LINK_BYTES));
        assert_eq!(found(&long, Markup::Markdown), [("c", true)]);
    }

    #[test]
    fn markdown_has_links_in_many_forms() {
        let text = "[a](d/a%20b.md) [b](<d/a b.md>) [c](d/(p(q)).md) [d](c.md?raw=true#x%20y) [e](\n/e.md 'x (y)')\n\
                    ![f](f(1).png) [g](<g.md?x>) [h](?q#i) [j](d/j.md:3-4) [k](k\\(.md)\n\
                    <img alt=\"a > b\" src=\"l.png\"> <A HREF = 'm m.md#n'>x</A> <img src=o.png> <video\nsrc=\"p.mp4\"/>\n\n\
                    [q]: <q q.md> \"title\"\n[r]: r(1).md 'title'\n[s]:\n  s.md (title)\n\n\
                    1 < 2 src=\"no\" <a data-src=\"no\" title=\" src='no'\"> `<img src=\"a/no\">`\n";
        let expected = [
            "d/a%20b.md",
            "d/a b.md",
            "d/(p(q)).md",
            "c.md",
            "x%20y",
            "e.md",
            "f(1).png",
            "g.md",
            "i",
            "d/j.md",
            "k\\(.md",
            "l.png",
            "m m.md",
            "n",
            "o.png",
            "p.mp4",
            "q q.md",
            "r(1).md",
            "s.md",
        ];
        assert_eq!(found(text, Markup::Markdown), expected.map(|text| (text, true)));
    }

    #[test]
    fn links_with_a_scheme_or_a_host_are_external() {
        let text = "[a](mailto:a/b.md) [b](//e.org/b.md) [c](<HTTPS://e.org/c.md>) [d](data:image/png;base64,a) \
                    <img src=\"https://e.org/e.png\"> <a href='//e.org/f'> <https://e.org/?href=g.md>\n\n[h]: git+ssh://e.org/h.md\n";
        assert_eq!(found(text, Markup::Markdown), []);
        let text = "`a <mailto:a@b>`_ and `b <b%20c.rst>`_\n\n.. _d: https://e.org/d.rst\n.. _e: e.rst?x\n";
        assert_eq!(
            found(text, Markup::Restructured),
            [("b%20c.rst", true), ("e.rst", true)]
        );
    }

    #[test]
    fn mentions_do_not_overlap() {
        let text = "[a](<b href=\"c.md\">) [d](e](f.md)) <img src=\"[g](h.md)\">\n\n[i]: <b href=\"j.md\">\n";
        let all = mentions(text, Markup::Markdown);
        assert!(
            all.is_sorted_by(|last, next| last.range.end <= next.range.start),
            "{all:?}"
        );
    }

    #[test]
    fn asciidoc_has_macros() {
        let text = "See xref:a/b.adoc#c[that] and `f()`.\ninclude::d.adoc[]\n\n----\n`no`\n----\n";
        let names = [("a/b.adoc", true), ("c", true), ("f", false), ("d.adoc", true)];
        assert_eq!(found(text, Markup::Asciidoc), names);
    }
}
