//! Inserts and removes definitions with the blank lines, separators and comments that belong to them.
//!
//! Removing what was inserted restores the file: an insertion copies the distance between its neighbours, and a removal
//! takes the blank lines that such an insertion adds.

use std::ops::Range;

use crate::extract::{self, DefinitionKind, Profile};
use crate::session::{OpError, Result};

use super::body::{Body, Form, body_indent, body_of};
use super::locate::FileText;
use super::splice::Splice;
use super::text::{
    bom_len, fitted, indent_at, is_closer, line_end, line_start, newline_at, next_line, trimmed, with_newlines,
    without_blank_ends,
};

/// The side of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// The surroundings of a definition in one direction.
struct Gap {
    /// Number of blank lines.
    n_blank: usize,
    /// True if the container or the file begins or ends there.
    is_edge: bool,
    /// The end of the line above the blank lines, or the start of the line below them.
    at: usize,
}

/// The end of a definition with what belongs to it on its last line.
struct Tail {
    /// The separator after the definition.
    separator: Option<u8>,
    /// The end of the separator, or of the definition.
    end_of_separator: usize,
    /// The end of a comment on the same line.
    end: usize,
    /// True if nothing else follows on the line.
    ends_line: bool,
}

/// Inserts `given` next to a definition.
pub(super) fn insert(text: &FileText<'_>, index: usize, side: Side, given: &str) -> Result<Vec<Splice>> {
    let (range, tail) = (text.range(index), tail(text, index));
    let is_listed = is_listed(text, index, &tail);
    let start = line_start(text.bytes, range.start);
    let begins_line = text.bytes[start..range.start].trim_ascii().is_empty();
    if !begins_line || !tail.ends_line {
        return insert_inline(text, index, side, given, is_listed);
    }
    let newline = newline_at(text.bytes, range.start);
    let mut own = if text.is_section(index) {
        without_blank_ends(given).to_owned()
    } else {
        fitted(given, &indent_at(text.bytes, range.start), &text.unit, "")
    };
    let mut splices = Vec::new();
    if is_listed && side == Side::After && tail.separator.is_none() {
        // The definition was the last of a list without a separator at its end, and now the new one is.
        splices.push(Splice::new(range.end..range.end, ","));
        own.truncate(own.trim_end_matches(',').len());
    } else if let Some(separator) = tail.separator.or(is_listed.then_some(b',')).map(char::from)
        && !own.ends_with(separator)
        && (text.bytes[range.end - 1] == b'}' || !own.ends_with('}') || separator == ',')
    {
        own.push(separator);
    }
    let (above, below) = (above(text, index, start), below(text, index, tail.end));
    let is_large = text.definition(index).kind.is_callable() || text.bytes[range].contains(&b'\n');
    let n_default = usize::from(is_large || text.is_section(index));
    let n_blank = match (side, above.is_edge, below.is_edge) {
        (Side::Before, false, _) | (Side::After, false, true) => above.n_blank,
        (Side::After, _, false) | (Side::Before, true, false) => below.n_blank,
        (_, true, true) => n_default,
    };
    let gap = newline.repeat(n_blank + 1);
    let own = with_newlines(&own, newline);
    splices.push(match side {
        Side::Before => Splice::new(start..start, own + &gap),
        // The new text goes below the blank lines, and gets new ones, so that removing it takes those.
        Side::After if !below.is_edge => Splice::new(below.at..below.at, own + &gap),
        Side::After => Splice::new(tail.end..tail.end, gap + &own),
    });
    Ok(splices)
}

/// Inserts a member into a list on one line.
fn insert_inline(text: &FileText<'_>, index: usize, side: Side, given: &str, is_listed: bool) -> Result<Vec<Splice>> {
    let own = given.trim().trim_end_matches(',');
    if !is_listed || own.contains('\n') {
        return Err(OpError::new(
            format!("{:?} shares its line with other code", text.definition(index).name),
            "use replace_text, or replace the definition around it",
        ));
    }
    let range = text.range(index);
    let next = text.bytes[range.end..]
        .strip_prefix(b",")
        .and_then(|after| after.first());
    let blank = if next.is_none_or(u8::is_ascii_whitespace) {
        " "
    } else {
        ""
    };
    Ok(vec![match side {
        Side::Before => Splice::new(range.start..range.start, format!("{own},{blank}")),
        Side::After => Splice::new(range.end..range.end, format!(",{blank}{own}")),
    }])
}

/// Inserts `given` at the end of a container.
pub(super) fn insert_last(text: &FileText<'_>, index: usize, given: &str) -> Result<Vec<Splice>> {
    let none = || {
        OpError::new(
            format!("{:?} has no body to insert into", text.definition(index).name),
            "use insert_after",
        )
    };
    let body = body_of(text, index).ok_or_else(none)?;
    if let Some(member) = text.last_member(index) {
        let end = tail(text, member).end;
        let rest = &text.bytes[end..body.range.end.max(end)];
        if rest
            .trim_ascii()
            .iter()
            .all(|byte| matches!(byte, b'}' | b']' | b',' | b';'))
        {
            return insert(text, member, Side::After, given);
        }
    }
    let inside = trimmed(text.bytes, body.range.clone());
    let indent = body_indent(text, index, &body);
    let newline = newline_at(text.bytes, text.range(index).start);
    let own = with_newlines(&fitted(given, &indent, &text.unit, ""), newline);
    if inside.is_empty() || body.form == Form::Rest {
        return enclose(text, index, &body, &own, newline).ok_or_else(none);
    }
    let n_blank = usize::from(own.contains('\n') || text.is_section(index));
    let end = line_end(text.bytes, inside.end);
    let shares_line = text.bytes[inside.end..end.min(body.range.end.max(inside.end))].trim_ascii() != b"";
    if shares_line || body.form == Form::Enclosed && end >= body.range.end {
        return Err(none());
    }
    Ok(vec![Splice::new(
        inside.end..inside.end,
        newline.repeat(n_blank + 1) + &own,
    )])
}

/// Puts text into an empty body, or a first key into an empty object.
fn enclose(text: &FileText<'_>, index: usize, body: &Body, own: &str, newline: &str) -> Option<Vec<Splice>> {
    let own_indent = indent_at(text.bytes, text.definition(index).signature.as_usize().start);
    match body.form {
        Form::Enclosed => {
            let closing = format!("{newline}{own}{newline}{own_indent}");
            Some(vec![Splice::new(body.range.clone(), closing)])
        }
        Form::Below if text.is_section(index) => {
            let at = body.range.start;
            Some(vec![Splice::new(at..at, format!("{newline}{newline}{own}"))])
        }
        Form::Below => Some(vec![Splice::new(
            body.range.start..body.range.start,
            format!("{newline}{own}"),
        )]),
        Form::Rest if text.bytes[body.range.clone()].trim_ascii() == b"{}" => {
            let own = with_newlines(
                &fitted(own, &(own_indent.clone() + &text.unit), &text.unit, ""),
                newline,
            );
            let inside = body.range.start + 1..body.range.end - 1;
            Some(vec![Splice::new(
                inside,
                format!("{newline}{own}{newline}{own_indent}"),
            )])
        }
        _ => None,
    }
}

/// Removes a definition with its separator, the comment on its last line, and blank lines.
pub(super) fn remove(text: &FileText<'_>, index: usize) -> Result<Vec<Splice>> {
    if let Some(twin) = text.twin(index) {
        return Err(OpError::new(
            format!(
                "{:?} is declared together with {:?}",
                text.definition(index).name,
                twin.name
            ),
            "use replace to write the declaration without it",
        ));
    }
    let (range, tail) = (text.range(index), tail(text, index));
    let start = line_start(text.bytes, range.start);
    let begins_line = text.bytes[start..range.start].trim_ascii().is_empty();
    let before = &text.bytes[..range.start];
    let comma = before.trim_ascii_end().len();
    let comma = (before[..comma].last() == Some(&b',') && tail.separator.is_none()).then(|| comma - 1);
    if !begins_line || !tail.ends_line {
        return Ok(vec![remove_inline(text, &range, &tail, comma)]);
    }
    let (above, below) = (above(text, index, start), below(text, index, tail.end));
    let mut splices: Vec<Splice> = Vec::new();
    if let Some(comma) = comma.filter(|_| is_listed(text, index, &tail)) {
        splices.push(Splice::new(comma..comma + 1, ""));
    }
    let takes_below = match (above.is_edge, below.is_edge) {
        (true, true) => below.at == text.bytes.len(),
        (true, false) => true,
        (false, true) => false,
        (false, false) => above.n_blank > 0 || below.n_blank == 0,
    };
    splices.push(if takes_below {
        Splice::new(start..below.at, "")
    } else if above.is_edge || !below.is_edge {
        Splice::new(start..next_line(text.bytes, tail.end), "")
    } else {
        Splice::new(above.at..tail.end, "")
    });
    Ok(splices)
}

fn remove_inline(text: &FileText<'_>, range: &Range<usize>, tail: &Tail, comma: Option<usize>) -> Splice {
    if tail.separator == Some(b',') {
        let after = &text.bytes[tail.end_of_separator..];
        let n_blank = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        return Splice::new(range.start..tail.end_of_separator + n_blank, "");
    }
    Splice::new(comma.unwrap_or(range.start)..tail.end_of_separator, "")
}

/// Returns true if a definition is a member of a list whose members are separated by commas.
fn is_listed(text: &FileText<'_>, index: usize, tail: &Tail) -> bool {
    let before = &text.bytes[..text.range(index).start];
    text.language == "json" || tail.separator == Some(b',') || before.trim_ascii_end().ends_with(b",")
}

fn tail(text: &FileText<'_>, index: usize) -> Tail {
    let end = text.range(index).end;
    let kind = text.definition(index).kind;
    let separator = text.bytes.get(end).copied().filter(|byte| match byte {
        b',' => true,
        b';' => kind != DefinitionKind::Variant,
        _ => false,
    });
    let end_of_separator = end + usize::from(separator.is_some());
    let line = line_end(text.bytes, end_of_separator);
    let rest = text.bytes[end_of_separator..line].trim_ascii();
    let is_comment = is_comment(extract::profile(text.lang), rest);
    Tail {
        separator,
        end_of_separator,
        end: if is_comment || rest.is_empty() {
            line
        } else {
            end_of_separator
        },
        ends_line: is_comment || rest.is_empty(),
    }
}

/// Returns true if the rest of a line is a comment.
fn is_comment(profile: &Profile, rest: &[u8]) -> bool {
    let is_between = |(open, close): (&str, &str)| {
        let inside = rest.strip_prefix(open.as_bytes());
        inside.is_some_and(|inside| {
            memchr::memmem::find(inside, close.as_bytes()) == inside.len().checked_sub(close.len())
        })
    };
    profile
        .line_comments
        .iter()
        .any(|start| rest.starts_with(start.as_bytes()))
        || profile.block_comment.is_some_and(is_between)
}

/// Returns the surroundings above a definition that starts on the line at `start`.
fn above(text: &FileText<'_>, index: usize, start: usize) -> Gap {
    let bytes = text.bytes;
    let (mut n_blank, mut line) = (0, start);
    let begin = bom_len(bytes);
    while line > begin {
        let previous = line_start(bytes, line - 1);
        if !bytes[previous..line].trim_ascii().is_empty() {
            let end = line_end(bytes, previous);
            let content = bytes[previous..end].trim_ascii_end();
            let is_opening = content.ends_with(b"{") || content.ends_with(b"(") || content.ends_with(b"[");
            return Gap {
                n_blank,
                is_edge: is_opening || start == text.head || is_first(text, index, start),
                at: end,
            };
        }
        n_blank += 1;
        line = previous;
    }
    Gap {
        n_blank,
        is_edge: true,
        at: begin,
    }
}

/// Returns true if nothing but an opening mark separates a definition from the signature of its container.
fn is_first(text: &FileText<'_>, index: usize, start: usize) -> bool {
    let container = text.definition(index).container;
    container.is_some_and(|container| {
        let between = text.definition(container as usize).signature.as_usize().end.min(start)..start;
        let between = text.bytes[between].trim_ascii();
        matches!(between, b"" | b"do" | b"=") || between.iter().all(|byte| b"{([:".contains(byte))
    })
}

/// Returns the surroundings below a definition that ends at `end`.
fn below(text: &FileText<'_>, index: usize, end: usize) -> Gap {
    let bytes = text.bytes;
    let container = text.definition(index).container;
    let is_last = container.is_some_and(|container| text.range(container as usize).end <= end);
    let (mut n_blank, mut line) = (0, next_line(bytes, end));
    while line < bytes.len() {
        let next = next_line(bytes, line);
        let content = bytes[line..next].trim_ascii();
        if !content.is_empty() {
            let is_edge = is_last || is_closer(&String::from_utf8_lossy(content));
            return Gap {
                n_blank,
                is_edge,
                at: line,
            };
        }
        n_blank += 1;
        line = next;
    }
    Gap {
        n_blank,
        is_edge: true,
        at: bytes.len(),
    }
}
