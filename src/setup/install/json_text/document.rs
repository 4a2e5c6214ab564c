//! Where everything stands in a text of JSON with comments and trailing commas.

use std::ops::Range;

use serde_json::{Map, Value};

use super::super::TextError;
use super::super::lines::{line_number, split_mark};

/// Deeper nesting is refused: no client's configuration has it, and the stack has an end.
const MAX_DEPTH: usize = 100;

/// A value with its place.
#[derive(Debug)]
pub(super) struct Node {
    span: Range<usize>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar(Value),
}

/// A field of an object.
#[derive(Debug)]
pub(super) struct Member {
    key: String,
    /// Where the key begins.
    pub(super) start: usize,
    /// What follows the colon.
    pub(super) value: Node,
    /// Where the comma after the value stands, if there is one.
    pub(super) comma: Option<usize>,
}

impl Node {
    /// From the first byte to behind the last.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The fields in their order; none if it is no object.
    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    /// Which field has this key: the last one, as for every client.
    pub(super) fn index(&self, key: &str) -> Option<usize> {
        self.members().iter().rposition(|member| member.key == key)
    }

    /// The field with this key.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        Some(&self.members()[self.index(key)?])
    }

    /// What it says.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::Array(items) => items.iter().map(Self::value).collect(),
            Kind::Object(members) => {
                let fields = members.iter().map(|member| (member.key.clone(), member.value.value()));
                Value::Object(Map::from_iter(fields))
            }
        }
    }
}

/// The one value of the text; `None` if it holds only blanks and comments.
pub(super) fn parse(text: &str) -> Result<Option<Node>, TextError> {
    let mut parser = Parser {
        text,
        at: split_mark(text).0.len(),
    };
    parser.skip_trivia()?;
    if parser.at == text.len() {
        return Ok(None);
    }
    let root = parser.value(0)?;
    parser.skip_trivia()?;
    if parser.at == text.len() {
        Ok(Some(root))
    } else {
        Err(parser.expected("the end of the file"))
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Result<Node, TextError> {
        let start = self.at;
        let kind = match self.peek() {
            _ if depth > MAX_DEPTH => return Err(self.broken("nested too deeply".to_owned())),
            Some(b'{') => Kind::Object(self.members(depth)?),
            Some(b'[') => Kind::Array(self.items(depth)?),
            Some(b'"') => Kind::Scalar(Value::String(self.string()?)),
            Some(_) => Kind::Scalar(self.word()?),
            None => return Err(self.expected("a value")),
        };
        Ok(Node {
            span: start..self.at,
            kind,
        })
    }

    fn members(&mut self, depth: usize) -> Result<Vec<Member>, TextError> {
        let mut members: Vec<Member> = Vec::new();
        self.at += 1;
        loop {
            self.skip_trivia()?;
            if self.take(b'}') {
                return Ok(members);
            }
            if members.last().is_some_and(|last| last.comma.is_none()) {
                return Err(self.expected("a comma or }"));
            }
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in double quotes"));
            }
            let key = self.string()?;
            self.skip_trivia()?;
            if !self.take(b':') {
                return Err(self.expected("a colon"));
            }
            self.skip_trivia()?;
            let value = self.value(depth + 1)?;
            let comma = self.comma()?;
            members.push(Member {
                key,
                start,
                value,
                comma,
            });
        }
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Node>, TextError> {
        let mut items = Vec::new();
        let mut has_comma = true;
        self.at += 1;
        loop {
            self.skip_trivia()?;
            if self.take(b']') {
                return Ok(items);
            }
            if !has_comma {
                return Err(self.expected("a comma or ]"));
            }
            items.push(self.value(depth + 1)?);
            has_comma = self.comma()?.is_some();
        }
    }

    /// The place of the comma that comes next; before anything else that comes next is looked at.
    fn comma(&mut self) -> Result<Option<usize>, TextError> {
        self.skip_trivia()?;
        let at = self.at;
        Ok(self.take(b',').then_some(at))
    }

    fn string(&mut self) -> Result<String, TextError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        while bytes.get(end).is_some_and(|byte| *byte != b'"') {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        self.decode(start, (end + 1).min(self.text.len()))
    }

    /// A number, `true`, `false`, `null`.
    fn word(&mut self) -> Result<Value, TextError> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let rest = &self.text[self.at..];
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.expected("a value"));
        }
        self.decode(self.at, self.at + length)
    }

    /// What `serde_json` makes of a token.
    fn decode<T: serde::de::DeserializeOwned>(&mut self, start: usize, end: usize) -> Result<T, TextError> {
        let token = self.text.get(start..end).unwrap_or_default();
        match serde_json::from_str(token) {
            Ok(value) => {
                self.at = end;
                Ok(value)
            }
            Err(_) => Err(self.broken("not a value of JSON, or a string without an end".to_owned())),
        }
    }

    /// Goes behind blanks and comments.
    fn skip_trivia(&mut self) -> Result<(), TextError> {
        loop {
            let rest = &self.text[self.at..];
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.at += blanks;
            let rest = &rest[blanks..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                match comment.find("*/") {
                    Some(length) => self.at += length + 4,
                    None => return Err(self.broken("a comment without an end".to_owned())),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expected(&self, what: &str) -> TextError {
        let found = match self.text[self.at..].chars().next() {
            Some(found) => format!("{found:?}"),
            None => "the end of the file".to_owned(),
        };
        self.broken(format!("expected {what}, found {found}"))
    }

    fn broken(&self, message: String) -> TextError {
        TextError::Broken {
            line: line_number(self.text, self.at),
            message,
        }
    }
}
