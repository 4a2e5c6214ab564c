//! Parses JSON with comments and trailing commas, with the positions of values, fields and commas.

use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::super::TextError;
use crate::config::lines::{line_number, split_mark};

/// A value and its position.
#[derive(Debug)]
pub(super) struct Node {
    span: Range<usize>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Object(Vec<Member>),
    Other(Value),
}

/// A field of an object.
#[derive(Debug)]
pub(super) struct Member {
    key: String,
    /// Start of the key.
    pub(super) start: usize,
    pub(super) value: Node,
    /// Position of the comma after the value, if there is one.
    pub(super) comma: Option<usize>,
}

impl Node {
    /// The byte range of the value.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns the fields in order. Empty if the value is not an object.
    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            Kind::Other(_) => &[],
        }
    }

    /// Returns the index of the field with this key. If there are several, the last one is used, as in every client.
    pub(super) fn index(&self, key: &str) -> Option<usize> {
        self.members().iter().rposition(|member| member.key == key)
    }

    /// Returns the field with this key.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        Some(&self.members()[self.index(key)?])
    }

    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Other(value) => value.clone(),
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
            ast::Value::Object(object) => Kind::Object(self.members(object)),
            other => Kind::Other(other.into()),
        };
        Node {
            span: range.start + self.offset..range.end + self.offset,
            kind,
        }
    }

    fn members(&self, object: ast::Object<'_>) -> Vec<Member> {
        let starts = object.properties.iter().skip(1).map(Ranged::start);
        let ends: Vec<usize> = starts.chain([object.range.end]).collect();
        let members = object.properties.into_iter().zip(ends).map(|(property, end)| {
            let next = self.commas.partition_point(|&comma| comma < property.range.end);
            let comma = self.commas.get(next).filter(|&&comma| comma < end);
            Member {
                start: property.range.start + self.offset,
                key: property.name.into_string(),
                value: self.node(property.value),
                comma: comma.map(|comma| comma + self.offset),
            }
        });
        members.collect()
    }
}
