//! Reads YAML with a dedicated scanner: the keys of the two outermost levels, and list items with a name.
//!
//! The grammar is not used because its C scanner stores its state in 1,024 bytes and aborts the process if deep nesting
//! needs more. The indentation of lines is sufficient to find keys and items.

use std::ops::Range;

use super::{Indentation, Language, Profile, Structure};
use crate::extract::layout::Layout;
use crate::extract::leads::{self, LeadPiece};
use crate::extract::types::{Definition, DefinitionKind, Extraction};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "yaml",
    lang: Lang(34),
    aliases: &["yml"],
    extensions: &["yaml", "yml", "eyaml", "cff"],
    file_names: &[".clang-format", ".clang-tidy"],
    interpreters: &["ansible-playbook"],
    profile: Profile { indentation: Indentation::OutsideBrackets, ..Profile::HASH },
    structure: Structure::Keys(scan),
};

/// Finds the keys of `bytes` and records the depth of each line.
fn scan(bytes: &[u8], layout: &mut Layout) -> Extraction {
    let mut scanner =
        Scanner { bytes, open: Vec::new(), within: Within::Block, definitions: Vec::new(), comments: Vec::new(), end: 0 };
    let mut at = 0;
    for (line, text) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        scanner.see(line, at, text, layout);
        at += text.len();
    }
    scanner.close(0, 0);
    leads::attach(&mut scanner.definitions, &scanner.comments, bytes);
    Extraction { definitions: scanner.definitions, ..Extraction::default() }
}

/// The construct that a line continues, other than keys and items.
enum Within {
    /// The line continues no construct.
    Block,
    /// A text after `|` or `>`. It contains all lines that are indented deeper than this number.
    Text(usize),
    /// Brackets. The number is how many are still open.
    Flow(usize),
    /// A string that ends with this quote.
    Quoted(u8),
}

/// A key or list item that later lines may continue.
struct Open {
    indent: usize,
    is_item: bool,
    definition: Option<usize>,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    open: Vec<Open>,
    within: Within,
    definitions: Vec<Definition>,
    comments: Vec<LeadPiece>,
    /// The end of the last non-blank line, as an offset.
    end: usize,
}

impl Scanner<'_> {
    fn see(&mut self, line: usize, at: usize, text: &[u8], layout: &mut Layout) {
        let content = text.trim_ascii();
        if content.is_empty() {
            return;
        }
        let indent = text.iter().take_while(|&&byte| byte == b' ').count();
        layout.set_depth(line, indent.min(64) + 1);
        if self.is_continued(indent, content) {
            layout.set_depth(line, indent.min(64) + 3);
        } else if content[0] == b'#' {
            let start = (at + text.len() - text.trim_ascii_start().len()) as u32;
            let range = ByteRange::new(start, start + content.len() as u32);
            self.comments.push(LeadPiece { range, doc: Some(range) });
            layout.mark_comment(line, line);
            return;
        } else if content == b"---" || content == b"..." || content.starts_with(b"--- ") {
            self.close(0, 0);
        } else {
            self.see_node(at + indent, indent, at + text.trim_ascii_end().len());
        }
        self.end = at + text.trim_ascii_end().len();
    }

    /// Returns true if a line continues the construct of the line above.
    fn is_continued(&mut self, indent: usize, content: &[u8]) -> bool {
        match self.within {
            Within::Block => return false,
            Within::Text(above) if indent > above => {}
            Within::Text(_) => {
                self.within = Within::Block;
                return false;
            }
            Within::Flow(n_open) => {
                let n_open = brackets(content, n_open);
                self.within = if n_open == 0 { Within::Block } else { Within::Flow(n_open) };
            }
            Within::Quoted(quote) => {
                if content.contains(&quote) {
                    self.within = Within::Block;
                }
            }
        }
        true
    }

    /// Reads the `- ` marks and the key of a line. The content starts at `at`, is `indent` deep and ends at `end`.
    fn see_node(&mut self, at: usize, indent: usize, end: usize) {
        let (mut at, mut indent) = (at, indent);
        // Nested items on one line are rare, and each adds an entry to the stack.
        for _ in 0..16 {
            let rest = &self.bytes[at..end];
            if rest != b"-" && !rest.starts_with(b"- ") {
                break;
            }
            self.close(indent, 1);
            let n_blanks = rest[1..].iter().take_while(|&&byte| byte == b' ').count();
            self.see_item(at, indent, at + 1 + n_blanks..end);
            at += 1 + n_blanks;
            indent += 1 + n_blanks;
        }
        let Some((key, value)) = key_and_value(self.bytes, at..end) else {
            return self.enter_value(indent, at..end);
        };
        self.close(indent, 0);
        let n_keys = self.open.iter().filter(|open| open.definition.is_some()).count();
        let is_in_list = self.open.iter().any(|open| open.is_item);
        let definition = (n_keys < 2 && !is_in_list).then(|| self.define(at..end, key));
        self.open.push(Open { indent, is_item: false, definition });
        self.enter_value(indent, value);
    }

    /// Adds a definition for a list item that starts with a name: `- name: Install packages`.
    fn see_item(&mut self, at: usize, indent: usize, content: Range<usize>) {
        let named = key_and_value(self.bytes, content.clone())
            .filter(|(key, value)| matches!(&self.bytes[key.clone()], b"name" | b"hosts" | b"id") && !value.is_empty());
        let name = named.map(|(_, value)| unquoted(self.bytes, value));
        let name = name.filter(|name| !self.bytes[name.clone()].trim_ascii().is_empty());
        let definition = name.map(|name| self.define(at..content.end, name));
        self.open.push(Open { indent, is_item: true, definition });
    }

    /// Closes the open keys and items that a node at `indent` ends: items with at least this indentation, and keys with
    /// at least `indent` + `n`. `n` is 0 for a key and 1 for an item, which may have the same indentation as the key
    /// above it.
    fn close(&mut self, indent: usize, n: usize) {
        let end = self.end as u32;
        while let Some(open) = self.open.pop_if(|open| open.indent >= indent + if open.is_item { 0 } else { n }) {
            if let Some(definition) = open.definition {
                let range = &mut self.definitions[definition].range;
                range.end = range.end.max(end);
            }
        }
    }

    fn enter_value(&mut self, indent: usize, value: Range<usize>) {
        let value = self.bytes[value].trim_ascii();
        let value = value.strip_prefix(b"&").map_or(value, |anchored| {
            let len = anchored.iter().position(|&byte| byte == b' ').unwrap_or(anchored.len());
            anchored[len..].trim_ascii_start()
        });
        self.within = match value.first() {
            Some(b'|' | b'>') => Within::Text(indent),
            Some(b'[' | b'{') => match brackets(value, 0) {
                0 => Within::Block,
                n_open => Within::Flow(n_open),
            },
            Some(&quote @ (b'"' | b'\'')) if !value[1..].contains(&quote) => Within::Quoted(quote),
            _ => Within::Block,
        };
    }

    fn define(&mut self, line: Range<usize>, name: Range<usize>) -> usize {
        let container = self.open.iter().rev().find_map(|open| open.definition).map(|at| at as u32);
        let range = ByteRange::new(line.start as u32, line.end as u32);
        self.definitions.push(Definition {
            name: String::from_utf8_lossy(&self.bytes[name.clone()]).into_owned(),
            kind: DefinitionKind::Key,
            container,
            qualifier: None,
            range,
            name_range: ByteRange::new(name.start as u32, name.end as u32),
            signature: range,
            doc: None,
            arity: None,
        });
        self.definitions.len() - 1
    }
}

/// Splits `key: value` into its ranges, with the key unquoted. Returns `None` if the line has no key.
fn key_and_value(bytes: &[u8], line: Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
    let text = &bytes[line.clone()];
    let quoted = match text.first()? {
        &quote @ (b'"' | b'\'') => Some(2 + text[1..].iter().position(|&byte| byte == quote)?),
        b'[' | b'{' | b'#' | b'|' | b'>' | b'&' | b'*' | b'!' | b'%' | b'@' | b'`' => return None,
        _ => None,
    };
    let after = quoted.unwrap_or(0);
    let colon = after + text[after..].windows(2).position(|pair| pair == b": ").or_else(|| {
        let is_last = text.ends_with(b":");
        is_last.then(|| text.len() - 1 - after)
    })?;
    if text[after..colon].windows(2).any(|pair| pair == b" #") {
        return None;
    }
    let key = unquoted(bytes, line.start..line.start + quoted.unwrap_or(colon));
    let value = line.start + colon + 1..line.end;
    let n_blanks = bytes[value.clone()].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    (!bytes[key.clone()].trim_ascii().is_empty()).then_some((key, value.start + n_blanks..value.end))
}

/// Removes surrounding white space and one pair of quotes from `range`.
fn unquoted(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let text = bytes[range.clone()].trim_ascii();
    let start = range.start + (bytes[range.clone()].len() - bytes[range].trim_ascii_start().len());
    match text {
        [b'"', .., b'"'] | [b'\'', .., b'\''] if text.len() > 2 => start + 1..start + text.len() - 1,
        _ => start..start + text.len(),
    }
}

/// Returns the number of open brackets after `text`, given that `n_open` are open before it. Brackets in quotes count
/// too, because such values usually close them on the same line.
fn brackets(text: &[u8], n_open: usize) -> usize {
    text.iter().fold(n_open, |n_open, byte| match byte {
        b'[' | b'{' => n_open + 1,
        b']' | b'}' => n_open.saturating_sub(1),
        _ => n_open,
    })
}
