//! Parses JSON with comments and trailing commas, with the positions of values, fields and commas.

use std::collections::HashSet;
use std::ops;

use jsonc_parser::ast;
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::super::TextError;
use crate::config::lines::{line_number, split_mark};

/// A value and its position.
#[derive(Debug)]
pub(super) struct Node {
    span: ops::Range<usize>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Object(Vec<Member>),
    List(Vec<Member>),
    Other(Value),
}

/// A field of an object, or an item of a list.
#[derive(Debug)]
pub(super) struct Member {
    /// The key; empty for an item of a list.
    key: String,
    /// Start of the key, or of the item.
    pub(super) start: usize,
    pub(super) value: Node,
    /// Position of the comma after the value, if there is one.
    pub(super) comma: Option<usize>,
}

impl Node {
    /// The byte range of the value.
    pub(super) fn span(&self) -> ops::Range<usize> {
        self.span.clone()
    }

    /// Returns the fields or items in order. Empty if the value is neither an object nor a list.
    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) | Kind::List(members) => members,
            Kind::Other(_) => &[],
        }
    }

    /// Returns the index of the field with this key. If there are several, the last one is used, as in most programs.
    pub(super) fn index(&self, key: &str) -> Option<usize> {
        match &self.kind {
            Kind::Object(members) => members.iter().rposition(|member| member.key == key),
            _ => None,
        }
    }

    /// Returns the field with this key.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        Some(&self.members()[self.index(key)?])
    }

    /// Returns the first field with the key of an earlier one, on the path of keys or in the value at its end. Programs
    /// differ in which of them they use.
    pub(super) fn repeated(&self, path: &[&str]) -> Option<&Member> {
        let Some((key, rest)) = path.split_first() else {
            let mut seen = HashSet::new();
            let is_object = matches!(self.kind, Kind::Object(_));
            let mut repeated = self
                .members()
                .iter()
                .filter(|member| is_object && !seen.insert(&member.key));
            let first = repeated.next();
            return first.or_else(|| self.members().iter().find_map(|member| member.value.repeated(&[])));
        };
        let mut same = self.members().iter().filter(|member| member.key == *key);
        let first = same.next()?;
        same.next().or_else(|| first.value.repeated(rest))
    }

    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Other(value) => value.clone(),
            Kind::List(items) => items.iter().map(|item| item.value.value()).collect(),
            Kind::Object(members) => {
                let fields = members.iter().map(|member| (member.key.clone(), member.value.value()));
                Value::Object(Map::from_iter(fields))
            }
        }
    }
}

/// Parses the text. Returns `None` if it contains only white space and comments.
pub(super) fn parse(text: &str) -> Result<Option<Node>, TextError> {
    let (mark, text) = split_mark(text);
    let strict = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let collect = CollectOptions {
        tokens: true,
        ..CollectOptions::default()
    };
    let parsed = parse_to_ast(text, &collect, &strict).map_err(|error| TextError::Broken {
        line: error.line_display(),
        message: error.kind().to_string().to_lowercase(),
    })?;
    let tokens = parsed.tokens.unwrap_or_default();
    if let Some(token) = tokens.iter().find(|token| !is_json(token, text)) {
        return Err(TextError::Broken {
            line: line_number(text, token.range.start),
            message: "not a JSON string or number".to_owned(),
        });
    }
    let commas = tokens.iter().filter(|token| token.token == Token::Comma);
    let places = Places {
        offset: mark.len(),
        commas: commas.map(|comma| comma.range.start).collect(),
    };
    Ok(parsed.value.map(|value| places.node(value)))
}

/// Returns false for tokens that the parser accepts but that are not valid JSON, such as a line break in a string.
fn is_json(token: &TokenAndRange<'_>, text: &str) -> bool {
    let is_scalar = matches!(token.token, Token::String(_) | Token::Number(_));
    !is_scalar || serde_json::from_str::<Value>(token.text(text)).is_ok()
}

/// Parses the text as [`parse`] does. Fails if a key on the path `section`, or in what is there, is repeated.
pub(super) fn parse_unambiguous(text: &str, section: &[&str]) -> Result<Option<Node>, TextError> {
    let root = parse(text)?;
    match root.as_ref().and_then(|root| root.repeated(section)) {
        Some(member) => Err(TextError::Broken {
            line: line_number(text, member.start),
            message: format!("the key {:?} is there twice", member.key),
        }),
        None => Ok(root),
    }
}

struct Places {
    /// Number of bytes before the parsed text.
    offset: usize,
    /// The positions of commas, ascending.
    commas: Vec<usize>,
}

impl Places {
    fn node(&self, value: ast::Value<'_>) -> Node {
        let range = value.range();
        let kind = match value {
            ast::Value::Object(object) => {
                let fields = object.properties.into_iter();
                let fields = fields.map(|field| (field.range, field.name.into_string(), field.value));
                Kind::Object(self.members(object.range.end, fields.collect()))
            }
            ast::Value::Array(list) => {
                let items = list
                    .elements
                    .into_iter()
                    .map(|item| (item.range(), String::new(), item));
                Kind::List(self.members(list.range.end, items.collect()))
            }
            other => Kind::Other(other.into()),
        };
        Node {
            span: range.start + self.offset..range.end + self.offset,
            kind,
        }
    }

    /// Returns the members of a value that ends at `end`, given their ranges, keys and values.
    fn members(&self, end: usize, members: Vec<(Range, String, ast::Value<'_>)>) -> Vec<Member> {
        let starts = members.iter().skip(1).map(|(range, ..)| range.start);
        let ends: Vec<usize> = starts.chain([end]).collect();
        let members = members.into_iter().zip(ends).map(|((range, key, value), end)| {
            let next = self.commas.partition_point(|&comma| comma < range.end);
            let comma = self.commas.get(next).filter(|&&comma| comma < end);
            Member {
                start: range.start + self.offset,
                key,
                value: self.node(value),
                comma: comma.map(|comma| comma + self.offset),
            }
        });
        members.collect()
    }
}
