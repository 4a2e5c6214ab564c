//! Finds the body of a definition, the value of a key, or the text of a section.

use std::ops::Range;

use super::locate::FileText;
use super::text::{indent_at, lead, line_end, line_start, trimmed};

/// The form of a body, which determines how a new one is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Between an opening and a closing mark, such as braces.
    Enclosed,
    /// On the lines below the signature, deeper than it.
    Indented,
    /// After the heading of a section or table, at the same depth.
    Below,
    /// A value of YAML, on the line of its key or on deeper lines.
    YamlValue,
    /// Directly after the signature.
    Rest,
}

/// The range of a body, and its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) range: Range<usize>,
    pub(super) form: Form,
}

/// Returns the body of a definition; `None` if it has none.
pub(super) fn body_of(text: &FileText<'_>, index: usize) -> Option<Body> {
    let definition = text.definition(index);
    let (signature, whole) = (definition.signature.as_usize(), text.range(index));
    if text.is_section(index) {
        let start = text.bytes[signature.clone()].trim_ascii_end().len() + signature.start;
        return Some(Body {
            range: start..definition.range.as_usize().end,
            form: Form::Below,
        });
    }
    if text.is_key(index) {
        return value_of(text, index);
    }
    let rest = signature.end.min(whole.end)..whole.end;
    let content = trimmed(text.bytes, rest.clone());
    let opens_before = text.bytes[signature.clone()].trim_ascii_end().ends_with(b"{");
    if content.is_empty() && !opens_before {
        return None;
    }
    if text.language == "python" {
        return Some(Body {
            range: rest,
            form: Form::Indented,
        });
    }
    if opens_before {
        let end = last(text.bytes, rest.clone(), b"}")?;
        return Some(Body {
            range: rest.start..end,
            form: Form::Enclosed,
        });
    }
    let content = without_sign(text.bytes, content);
    let inner = enclosed(text, rest, content.clone());
    Some(match inner {
        Some(range) => Body {
            range,
            form: Form::Enclosed,
        },
        None => Body {
            range: content,
            form: Form::Rest,
        },
    })
}

/// Returns the part of `content` between marks that enclose it. `rest` is everything after the signature.
fn enclosed(text: &FileText<'_>, rest: Range<usize>, content: Range<usize>) -> Option<Range<usize>> {
    let bytes = &text.bytes[content.clone()];
    let between = |open: usize, close: &[u8]| {
        let end = last(text.bytes, content.clone(), close)?;
        (end >= content.start + open).then_some(content.start + open..end)
    };
    let ends_with_end = || {
        let end = last(text.bytes, content.clone(), b"end")?;
        let after = &text.bytes[end + 3..content.end];
        let is_word = end == rest.start || !text.bytes[end - 1].is_ascii_alphanumeric();
        (is_word
            && after
                .iter()
                .all(|byte| matches!(byte, b')' | b';' | b'}' | b' ' | b',')))
        .then_some(end)
    };
    if bytes.starts_with(b"{") {
        return between(1, b"}");
    }
    match text.language {
        "sql" if bytes.starts_with(b"(") => between(1, b")"),
        "ruby" | "elixir" if bytes.starts_with(b"do") => {
            let line = line_end(text.bytes, content.start);
            let arguments = text.bytes[content.start + 2..line].trim_ascii();
            let start = if arguments.starts_with(b"|") {
                line
            } else {
                content.start + 2
            };
            ends_with_end().map(|end| start..end)
        }
        "ruby" | "lua" => ends_with_end().map(|end| rest.start..end),
        "html" | "vue" | "svelte" if text.bytes[..rest.start].ends_with(b">") => {
            last(text.bytes, rest.clone(), b"</").map(|end| rest.start..end)
        }
        _ => None,
    }
}

/// Returns a range without the sign that separates a definition from its value.
fn without_sign(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &bytes[range.clone()];
    let sign = [&b"=>"[..], b"="].into_iter().find(|sign| {
        let after = text.strip_prefix(*sign);
        after.is_some_and(|after| {
            after
                .first()
                .is_none_or(|byte| byte.is_ascii_whitespace() || *byte == b'{')
        })
    });
    match sign {
        Some(sign) => trimmed(bytes, range.start + sign.len()..range.end),
        None => range,
    }
}

fn last(bytes: &[u8], range: Range<usize>, mark: &[u8]) -> Option<usize> {
    memchr::memmem::rfind(&bytes[range.clone()], mark).map(|at| range.start + at)
}

/// Returns the value of a key. A table of TOML has its keys as value.
fn value_of(text: &FileText<'_>, index: usize) -> Option<Body> {
    let definition = text.definition(index);
    let (bytes, whole) = (text.bytes, text.range(index));
    let signature = definition.signature.as_usize();
    if text.language == "toml" && bytes[signature.start] == b'[' {
        return Some(Body {
            range: signature.end..whole.end,
            form: Form::Below,
        });
    }
    let mut at = definition.name_range.as_usize().end;
    if bytes.get(at).is_some_and(|byte| matches!(byte, b'"' | b'\'')) {
        at += 1;
    }
    let sign = if text.language == "toml" { b'=' } else { b':' };
    let n_blanks = bytes[at..whole.end]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    // A list item of YAML has its name as value.
    let at = (bytes.get(at + n_blanks) == Some(&sign) && at < whole.end).then_some(at + n_blanks + 1)?;
    if text.language != "yaml" {
        let end = if text.language == "toml" {
            end_of_value(bytes, at..whole.end)
        } else {
            whole.end
        };
        return Some(Body {
            range: trimmed(bytes, at..end),
            form: Form::Rest,
        });
    }
    Some(Body {
        range: at..end_of_value(bytes, at..whole.end),
        form: Form::YamlValue,
    })
}

/// Returns the end of a value on one line without a comment after it.
fn end_of_value(bytes: &[u8], range: Range<usize>) -> usize {
    let value = &bytes[range.clone()];
    if value.contains(&b'\n') {
        return range.end;
    }
    let mut quote = None;
    for (at, byte) in value.iter().enumerate() {
        let before = at.checked_sub(1).map_or(b' ', |before| value[before]);
        match (quote, byte) {
            (None, b'"' | b'\'') if before.is_ascii_whitespace() || b"[{,:=(".contains(&before) => quote = Some(*byte),
            (None, b'#') if before.is_ascii_whitespace() => {
                return range.start + value[..at].trim_ascii_end().len();
            }
            (Some(open), byte) if open == *byte && before != b'\\' => quote = None,
            _ => {}
        }
    }
    range.end
}

/// Returns the indentation of the lines of a body.
pub(super) fn body_indent(text: &FileText<'_>, index: usize, body: &Body) -> String {
    let own = indent_at(text.bytes, text.definition(index).signature.as_usize().start);
    if matches!(body.form, Form::Below | Form::Rest) {
        return own;
    }
    let inside = trimmed(text.bytes, body.range.clone());
    let line = line_start(text.bytes, inside.start);
    if inside.is_empty() || line < body.range.start {
        return own + &text.unit;
    }
    let line = String::from_utf8_lossy(&text.bytes[line..inside.end]);
    lead(&line).to_owned()
}
