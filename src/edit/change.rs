//! Turns an operation on a part of a file into replaced ranges.

use std::ops::Range;

use crate::extract::{self, Profile};
use crate::model::Hint;
use crate::session::{OpError, Result};

use super::body::{Body, Form, body_indent, body_of};
use super::layout::{Side, insert, insert_last, remove};
use super::locate::{FileText, Place};
use super::operation::{Operation, Verb};
use super::splice::Splice;
use super::text::{
    bom_len, fitted, indent_at, line_end, line_start, newline_at, next_line, trimmed, with_newlines, without_blank_ends,
};

/// Maximum number of lines that an error lists.
const MAX_LISTED: usize = 10;

/// Returns the ranges that an operation replaces.
pub(super) fn splices(text: &FileText<'_>, operation: &Operation, place: &Place) -> Result<Vec<Splice>> {
    let given = operation.text.as_deref().unwrap_or_default();
    match (operation.op, place) {
        (Verb::Replace, Place::Definition(index)) => Ok(replace(text, *index, given)),
        (Verb::ReplaceBody, Place::Definition(index)) => replace_body(text, *index, given).map(|splice| vec![splice]),
        (Verb::ReplaceDoc, Place::Definition(index)) => replace_doc(text, *index, given).map(|splice| vec![splice]),
        (Verb::InsertBefore, Place::Definition(index)) => insert(text, *index, Side::Before, given),
        (Verb::InsertAfter, Place::Definition(index)) => insert(text, *index, Side::After, given),
        (Verb::InsertLast, Place::Definition(index)) => insert_last(text, *index, given),
        (Verb::Remove, Place::Definition(index)) => remove(text, *index),
        (Verb::ReplaceText, place) => replace_text(text, operation, scope(text, place)),
        (Verb::ReplaceFrontMatter, Place::Whole) => replace_front_matter(text, given).map(|splice| vec![splice]),
        (verb, Place::Lines(lines)) => edit_lines(text, verb, lines.clone(), given).map(|splice| vec![splice]),
        (Verb::InsertLast, Place::Whole) => Ok(vec![append(text, given)]),
        (verb, _) => Err(OpError::new(
            format!("{} needs a definition, section or key as target", verb.name()),
            "write path#Name or path:LINE",
        )),
    }
}

/// Replaces a definition. Its comments stay unless the text begins with such, and so do its attributes and decorators.
fn replace(text: &FileText<'_>, index: usize, given: &str) -> Vec<Splice> {
    let (range, definition) = (text.range(index), text.definition(index));
    let signature = definition.signature.as_usize().start;
    let has_lead = signature > range.start && signature < range.end;
    let (given_parts, _) = lead_parts(extract::profile(text.lang), given.as_bytes());
    let start = if has_lead && given_parts.is_empty() {
        signature
    } else {
        range.start
    };
    let mut own = if text.is_section(index) {
        without_blank_ends(given).to_owned()
    } else {
        code_from(text, start..range.end, given)
    };
    let after = text.bytes.get(range.end).copied().map(char::from);
    if let Some(separator) = after.filter(|after| matches!(after, ';' | ',')) {
        own.truncate(own.trim_end_matches(separator).len());
    }
    let newline = newline_at(text.bytes, range.start);
    let own = with_newlines(&own, newline);
    let (parts, code) = lead_parts(extract::profile(text.lang), own.as_bytes());
    let Some((kind, _)) = parts
        .first()
        .filter(|(kind, _)| parts.iter().all(|(other, _)| other == kind))
    else {
        return vec![Splice::new(start..range.end, own)];
    };
    let (old, _) = lead_parts(
        extract::profile(text.lang),
        &text.bytes[range.start..signature.clamp(range.start, range.end)],
    );
    if old.iter().all(|(other, _)| other == kind) || code == own.len() {
        return vec![Splice::new(start..range.end, own)];
    }
    let mut new = Some(own[..code].trim_end());
    let mut splices = Vec::new();
    for (_, part) in old.iter().filter(|(other, _)| other == kind) {
        let part = range.start + part.start..range.start + part.end;
        splices.push(match new.take() {
            Some(new) => Splice::new(trimmed(text.bytes, part), new),
            None => Splice::new(part, ""),
        });
    }
    let code = own[code..].trim_start();
    let indent = indent_at(text.bytes, range.start);
    match new {
        Some(comment) if *kind == Lead::Comment => {
            splices.push(Splice::new(
                range.start..range.start,
                format!("{comment}{newline}{indent}"),
            ));
        }
        Some(_) => return vec![Splice::new(signature..range.end, own)],
        None => {}
    }
    splices.push(Splice::new(signature..range.end, code));
    splices
}

/// Returns the given text as code that replaces a range: all lines but the first have the indentation of its line.
fn code_from(text: &FileText<'_>, old: Range<usize>, given: &str) -> String {
    let indent = indent_at(text.bytes, old.start);
    let own = fitted(given, &indent, &text.unit, &lines_of(text, &old));
    own.strip_prefix(&*indent).map(str::to_owned).unwrap_or(own)
}

/// Returns the lines of a range.
fn lines_of(text: &FileText<'_>, range: &Range<usize>) -> String {
    String::from_utf8_lossy(&text.bytes[line_start(text.bytes, range.start)..range.end]).replace("\r\n", "\n")
}

/// What may stand before a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lead {
    Comment,
    /// An attribute or decorator.
    Attribute,
}

/// Splits the lines before a definition into comments and attributes, without the blanks before each. Returns them, and
/// the start of the line with the definition.
fn lead_parts(profile: &Profile, bytes: &[u8]) -> (Vec<(Lead, Range<usize>)>, usize) {
    let mut comments = profile.line_comments.to_vec();
    comments.extend(profile.block_comment.map(|(open, _)| open));
    if profile.block_comment == Profile::MARKUP.block_comment {
        // Scripts in pages.
        comments.extend(["//", "/*"]);
    }
    let mut parts: Vec<(Lead, Range<usize>)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = bytes.len() - bytes[at..].trim_ascii_start().len();
        let begins = |marks: &[&str]| marks.iter().any(|mark| bytes[start..].starts_with(mark.as_bytes()));
        let (kind, end) = if begins(profile.attributes) {
            (Lead::Attribute, end_of_attribute(bytes, start))
        } else if begins(&comments) {
            let marks = [("/*", "*/"), ("<!--", "-->"), ("{-", "-}"), ("(*", "*)")];
            let close = marks
                .iter()
                .find(|(open, _)| begins(&[open]))
                .map(|(_, close)| close.as_bytes());
            let close = close.and_then(|close| memchr::memmem::find(&bytes[start..], close));
            (Lead::Comment, start + close.unwrap_or(0))
        } else {
            break;
        };
        at = next_line(bytes, end);
        match parts.last_mut() {
            Some((last, range)) if *last == kind => range.end = at,
            _ => parts.push((kind, start..at)),
        }
    }
    (parts, at)
}

/// Returns a place on the last line of an attribute: where its brackets are closed.
fn end_of_attribute(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        depth += i32::from(b"([{".contains(byte)) - i32::from(b")]}".contains(byte));
        if *byte == b'\n' && depth <= 0 {
            return at;
        }
    }
    start
}

fn replace_body(text: &FileText<'_>, index: usize, given: &str) -> Result<Splice> {
    let name = &text.definition(index).name;
    let none = || OpError::new(format!("{name:?} has no body"), "use replace for the whole definition");
    let body = body_of(text, index).ok_or_else(none)?;
    let given = if body.form == Form::Enclosed {
        without_braces(text, &body, given)
    } else {
        given
    };
    let indent = body_indent(text, index, &body);
    let newline = newline_at(text.bytes, body.range.start);
    let old = lines_of(text, &body.range);
    let own = fitted(given, &indent, &text.unit, &old);
    if own.is_empty() && matches!(body.form, Form::Indented | Form::Rest) {
        return Err(OpError::new(
            "the text is empty",
            "use remove to remove the whole definition",
        ));
    }
    let inside = trimmed(text.bytes, body.range.clone());
    let (range, own) = match body.form {
        Form::Enclosed => between_marks(text, index, &body, &own),
        Form::Indented => (
            below_docstring(text, index, &body, given)..body.range.end,
            format!("\n{own}"),
        ),
        Form::Below => below_heading(text, index, &body, given),
        Form::YamlValue => {
            let value = own.trim_start();
            let anchor = kept_anchor(&String::from_utf8_lossy(&text.bytes[body.range.clone()]), value);
            if is_yaml_block(value)? {
                (body.range, format!("{anchor}\n{own}"))
            } else {
                let own = fitted(given, &indent_at(text.bytes, text.range(index).start), &text.unit, &old);
                (body.range, format!("{anchor} {}", own.trim_start()))
            }
        }
        Form::Rest => (inside.clone(), code_from(text, inside, given)),
    };
    Ok(Splice::new(range, with_newlines(&own, newline)))
}

/// Returns a space and the anchor of a value of YAML, to which other values refer, unless the new value has its own or
/// is an alias, which cannot have one.
fn kept_anchor(old: &str, new: &str) -> String {
    let anchor_of = |value: &str| {
        let words = value.lines().next()?.split_whitespace();
        let mut properties = words.take_while(|word| word.starts_with(['&', '!']));
        properties
            .find(|word| word.starts_with('&'))
            .map(|anchor| format!(" {anchor}"))
    };
    let is_replaced = new.starts_with('*') || anchor_of(new).is_some();
    anchor_of(old).filter(|_| !is_replaced).unwrap_or_default()
}

/// Returns true for a value of YAML that goes on the lines below its key: a list, a mapping, or text of several lines.
/// Fails if it is neither such nor a scalar.
fn is_yaml_block(value: &str) -> Result<bool> {
    let first = value.lines().next().unwrap_or_default();
    let line = first.split(" #").next().unwrap_or_default().trim_end();
    let has_lines = value.contains('\n');
    let is_between = |open, close| line.starts_with(open) && line.len() > 1 && line.ends_with(close);
    let is_scalar = has_lines && line.starts_with(['[', '{'])
        || line.starts_with(['|', '>', '&', '!', '*'])
        || [('[', ']'), ('{', '}'), ('"', '"'), ('\'', '\'')]
            .iter()
            .any(|(open, close)| is_between(*open, *close));
    if is_scalar {
        return Ok(false);
    }
    if line.starts_with("- ") || line == "-" {
        return Ok(true);
    }
    let (key, rest) = match line.split_once(": ") {
        Some((key, rest)) => (Some(key), rest.trim_start()),
        None => (line.strip_suffix(':'), ""),
    };
    let is_open = |text: &str| text.starts_with([',', ']', '}', '%', '@', '`', '[', '{']);
    let is_nested = !rest.starts_with(['"', '\'', '{', '[']) && (rest.contains(": ") || rest.ends_with(':'));
    let is_quote = key.is_none() && !has_lines && line.starts_with(['"', '\'']);
    if is_open(line) || is_nested || is_quote {
        return Err(OpError::new(
            format!("{first:?} is not a value in YAML"),
            "put quotes around text with colons or marks",
        ));
    }
    Ok(key.is_some() || has_lines && !line.starts_with(['"', '\'']))
}

/// Returns the text without the braces around it, if the file's braces stay.
fn without_braces<'g>(text: &FileText<'_>, body: &Body, given: &'g str) -> &'g str {
    let inside = given.trim();
    let has_brace = text.bytes[..body.range.start].ends_with(b"{");
    let Some(inside) = inside
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .filter(|_| has_brace)
    else {
        return given;
    };
    let mut depth = 0_i32;
    let is_whole = inside.chars().all(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        depth >= 0
    });
    if is_whole { inside } else { given }
}

/// Lays out a body between two marks: on one line if the old one is, and the new one can be.
fn between_marks(text: &FileText<'_>, index: usize, body: &Body, own: &str) -> (Range<usize>, String) {
    let inside = trimmed(text.bytes, body.range.clone());
    let is_line = !text.bytes[body.range.clone()].contains(&b'\n');
    if is_line && !inside.is_empty() && !own.contains('\n') && !own.is_empty() {
        return (inside, own.trim_start().to_owned());
    }
    let line = line_start(text.bytes, body.range.end);
    if line > body.range.start && text.bytes[line..body.range.end].trim_ascii().is_empty() {
        let own = if own.is_empty() {
            String::new()
        } else {
            format!("{own}\n")
        };
        return (body.range.start..line, format!("\n{own}"));
    }
    if own.is_empty() {
        return (body.range.clone(), String::new());
    }
    let indent = indent_at(text.bytes, text.definition(index).signature.as_usize().start);
    (body.range.clone(), format!("\n{own}\n{indent}"))
}

/// Returns the start of the body of Python code that is replaced: after the docstring, unless the new body has its own.
fn below_docstring(text: &FileText<'_>, index: usize, body: &Body, given: &str) -> usize {
    let given = given.trim_start().trim_start_matches(['r', 'R', 'u', 'U']);
    let doc = text.definition(index).doc.map(|doc| doc.as_usize());
    match doc.filter(|doc| doc.start >= body.range.start) {
        Some(doc) if !given.starts_with(['"', '\'']) => doc.end,
        _ => body.range.start,
    }
}

/// Lays out the text of a section, or the keys of a table. The blank lines around it stay.
fn below_heading(text: &FileText<'_>, index: usize, body: &Body, given: &str) -> (Range<usize>, String) {
    let inside = trimmed(text.bytes, body.range.clone());
    let own = without_blank_ends(given).to_owned();
    match (inside.is_empty(), text.is_section(index)) {
        (false, _) if own.is_empty() => (body.range.start..inside.end, String::new()),
        (false, _) => (inside, own),
        (true, true) => (body.range.start..body.range.start, format!("\n\n{own}")),
        (true, false) => (body.range.start..body.range.start, format!("\n{own}")),
    }
}

/// Replaces, adds or removes the documentation of a definition.
fn replace_doc(text: &FileText<'_>, index: usize, given: &str) -> Result<Splice> {
    let definition = text.definition(index);
    let range = text.range(index);
    let newline = newline_at(text.bytes, range.start);
    if let Some(doc) = definition.doc {
        let doc = trimmed(text.bytes, doc.as_usize());
        let own = with_newlines(&code_from(text, doc.clone(), given), newline);
        if !own.is_empty() {
            return Ok(Splice::new(doc, own));
        }
        let start = line_start(text.bytes, doc.start);
        let is_whole = text.bytes[start..doc.start].trim_ascii().is_empty()
            && line_end(text.bytes, doc.end) - text.bytes[doc.end..line_end(text.bytes, doc.end)].len() == doc.end
            && text.bytes[doc.end..line_end(text.bytes, doc.end)]
                .trim_ascii()
                .is_empty();
        return Ok(if is_whole {
            Splice::new(start..next_line(text.bytes, doc.end), "")
        } else {
            Splice::new(doc, "")
        });
    }
    if given.trim().is_empty() {
        return Err(OpError::failed(format!("{:?} has no documentation", definition.name)));
    }
    if text.language == "python" && !given.trim_start().starts_with('#') {
        let body = body_of(text, index).filter(|body| {
            let inside = trimmed(text.bytes, body.range.clone());
            line_start(text.bytes, inside.start) > body.range.start
        });
        let body =
            body.ok_or_else(|| OpError::failed(format!("{:?} has no place for a docstring", definition.name)))?;
        let own = fitted(given, &body_indent(text, index, &body), &text.unit, "");
        return Ok(Splice::new(
            body.range.start..body.range.start,
            with_newlines(&format!("\n{own}"), newline),
        ));
    }
    let start = line_start(text.bytes, range.start);
    if !text.bytes[start..range.start].trim_ascii().is_empty() {
        return Err(OpError::failed(format!("{:?} does not begin a line", definition.name)));
    }
    let own = fitted(given, &indent_at(text.bytes, range.start), &text.unit, "");
    // A blank line separates the documentation from the comments of the file.
    let gap = if start == text.head && start > bom_len(text.bytes) {
        "\n"
    } else {
        ""
    };
    Ok(Splice::new(
        start..start,
        with_newlines(&format!("{gap}{own}\n"), newline),
    ))
}

/// Returns the range in which text is replaced.
fn scope(text: &FileText<'_>, place: &Place) -> Range<usize> {
    match place {
        Place::Whole => bom_len(text.bytes)..text.bytes.len(),
        Place::Lines(lines) => lines.clone(),
        Place::Definition(index) => text.range(*index),
    }
}

fn replace_text(text: &FileText<'_>, operation: &Operation, scope: Range<usize>) -> Result<Vec<Splice>> {
    let old = operation.old.as_deref().unwrap_or_default();
    if old.is_empty() {
        return Err(OpError::new(
            "old is empty",
            Hint::each(
                "give the text to replace with --old, or as old in a list",
                "pass the text to replace as old",
            ),
        ));
    }
    let given = operation.text.as_deref().unwrap_or_default();
    let found = |old: &str| -> Vec<Range<usize>> {
        let finder = memchr::memmem::find_iter(&text.bytes[scope.clone()], old);
        finder
            .map(|at| scope.start + at..scope.start + at + old.len())
            .collect()
    };
    let mut places = found(old);
    if places.is_empty() && old.contains('\n') {
        // The text was sent with other line endings than the file has.
        places = found(&with_newlines(old, "\r\n"));
    }
    let n_wanted = operation.count.map_or(1, |count| count as usize);
    if places.is_empty() || !operation.all && places.len() != n_wanted {
        return Err(miscounted(text, &places, n_wanted));
    }
    let splice = |place: Range<usize>| {
        let newline = newline_at(text.bytes, place.start);
        Splice::new(place, with_newlines(given, newline))
    };
    Ok(places.into_iter().map(splice).collect())
}

fn miscounted(text: &FileText<'_>, places: &[Range<usize>], n_wanted: usize) -> OpError {
    if places.is_empty() {
        return OpError::new(
            format!("the old text does not occur in {:?}", text.path),
            "copy it exactly, with its white space",
        );
    }
    let line = |place: &Range<usize>| (memchr::memchr_iter(b'\n', &text.bytes[..place.start]).count() + 1).to_string();
    let lines: Vec<String> = places.iter().take(MAX_LISTED).map(line).collect();
    OpError::new(
        format!(
            "the old text occurs {} times in {:?}, not {n_wanted}: at line {}",
            places.len(),
            text.path,
            lines.join(", ")
        ),
        Hint::each(
            "include more of the text around it, or use --count or --all",
            "include more of the text around it, or pass count or all",
        ),
    )
}

/// Returns front matter without the lines around it, and what these are.
fn without_fences(given: &str) -> Result<(Option<&'static str>, String)> {
    let fence_of = |line: &&str| ["---", "+++"].into_iter().find(|fence| line.trim_end() == *fence);
    let mut lines: Vec<&str> = given.trim().lines().collect();
    let fence = lines.first().and_then(fence_of);
    if fence.is_some() {
        lines.remove(0);
    }
    if lines.last().is_some_and(|line| fence_of(line).is_some()) {
        lines.pop();
    }
    match lines
        .iter()
        .find(|line| fence_of(line).is_some() || line.trim_end() == "...")
    {
        Some(line) => Err(OpError::failed(format!("the line {line:?} would end the front matter"))),
        None => Ok((fence, lines.join("\n").trim_end().to_owned())),
    }
}

/// Replaces, adds or removes the front matter of a document.
fn replace_front_matter(text: &FileText<'_>, given: &str) -> Result<Splice> {
    let start = bom_len(text.bytes);
    let newline = newline_at(text.bytes, start);
    let (given_fence, given) = without_fences(given)?;
    let first = &text.bytes[start..line_end(text.bytes, start)];
    let fence = [&b"---"[..], b"+++"]
        .into_iter()
        .find(|fence| *fence == first.trim_ascii_end());
    let Some(fence) = fence else {
        if given.is_empty() {
            return Err(OpError::failed(format!("{:?} has no front matter", text.path)));
        }
        let after = if text.bytes.len() > start { "\n" } else { "" };
        return Ok(Splice::new(
            start..start,
            with_newlines(
                &format!("{0}\n{given}\n{0}\n{after}", given_fence.unwrap_or("---")),
                newline,
            ),
        ));
    };
    if given_fence.is_some_and(|given| given.as_bytes() != fence) {
        return Err(OpError::failed(
            "the front matter of the file is between other lines than that of the text",
        ));
    }
    let begin = next_line(text.bytes, start);
    let mut line = begin;
    while line < text.bytes.len() {
        let content = text.bytes[line..line_end(text.bytes, line)].trim_ascii_end();
        if content == fence || fence == b"---" && content == b"..." {
            return Ok(if given.is_empty() {
                let mut end = next_line(text.bytes, line);
                while end < text.bytes.len() && text.bytes[end..next_line(text.bytes, end)].trim_ascii().is_empty() {
                    end = next_line(text.bytes, end);
                }
                Splice::new(start..end, "")
            } else {
                Splice::new(begin..line, with_newlines(&format!("{given}\n"), newline))
            });
        }
        line = next_line(text.bytes, line);
    }
    Err(OpError::failed(format!(
        "the front matter of {:?} does not end",
        text.path
    )))
}

/// Edits whole lines. The text is not indented.
fn edit_lines(text: &FileText<'_>, verb: Verb, lines: Range<usize>, given: &str) -> Result<Splice> {
    let newline = newline_at(text.bytes, lines.start);
    let has_newline = text.bytes[lines.clone()].ends_with(b"\n");
    let own = with_newlines(given.strip_suffix('\n').unwrap_or(given), newline);
    let line = || format!("{own}{newline}");
    Ok(match verb {
        Verb::Replace if has_newline => Splice::new(lines, line()),
        Verb::Replace => Splice::new(lines, own),
        Verb::Remove => Splice::new(lines, ""),
        Verb::InsertBefore => Splice::new(lines.start..lines.start, line()),
        Verb::InsertAfter if has_newline => Splice::new(lines.end..lines.end, line()),
        Verb::InsertAfter => Splice::new(lines.end..lines.end, format!("{newline}{own}")),
        verb => {
            return Err(OpError::new(
                format!("{} needs a definition, not lines", verb.name()),
                "write path:LINE for the definition at a line",
            ));
        }
    })
}

/// Adds text at the end of the file, which keeps its final line ending or the lack of one.
fn append(text: &FileText<'_>, given: &str) -> Splice {
    let end = text.bytes.len();
    let newline = newline_at(text.bytes, end);
    let own = with_newlines(given.strip_suffix('\n').unwrap_or(given), newline);
    let is_open = end > bom_len(text.bytes) && !text.bytes.ends_with(b"\n");
    Splice::new(
        end..end,
        if is_open {
            format!("{newline}{own}")
        } else {
            format!("{own}{newline}")
        },
    )
}
