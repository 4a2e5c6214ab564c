//! Finds the data of Kubernetes secrets, in YAML and JSON. A part of a file may lack the kind; no other kind has
//! `stringData`.

use std::ops::Range;

const STRING_DATA: &str = "stringData";

/// Returns the data of each document of the kind `Secret`, and all `stringData`. O(n) for n bytes.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let kind = form!(r#"["']?\bkind["']?\s*:\s*(?:!!str\s+)?["']?Secret(?:List)?["']?\s*(?:[,}#\n]|\z)"#);
    let key = form!(r#"["']?\b(?:stringData|data)["']?[ \t]*:(?:[ \t]*&\w+)?(?:\s*\{|[ \t]*)"#);
    let mut found = Vec::new();
    if !kind.is_match(text) && !text.contains(STRING_DATA) {
        return found;
    }
    let mut start = 0;
    for end in form!(r"(?m)^---(?:\s.*)?$")
        .find_iter(text)
        .map(|line| line.end())
        .chain([text.len()])
    {
        let document = &text[start..end];
        let is_secret = kind.is_match(document);
        if is_secret || document.contains(STRING_DATA) {
            let mut read = 0;
            for key in key.find_iter(document) {
                if key.start() < read || !is_secret && !key.as_str().contains(STRING_DATA) {
                    continue;
                }
                // A template such as `{{- if a }}` is no value.
                let is_template = document[key.end()..].starts_with('{');
                let data = if key.as_str().ends_with('{') && !is_template {
                    braces(document, key.end() - 1)
                } else {
                    let colon = key.as_str().find(':').unwrap_or_default();
                    block(document, key.start()..key.start() + colon + 1)
                };
                read = data.end;
                if !document[data.clone()].trim().is_empty() {
                    found.push(start + data.start..start + data.end);
                }
            }
        }
        start = end;
    }
    found
}

/// Returns what is between the brace at `open` and the one that closes it.
fn braces(text: &str, open: usize) -> Range<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0, None, false);
    let close = text[open..].bytes().position(|byte| {
        match (byte, quote) {
            _ if std::mem::take(&mut is_escaped) => {}
            (b'\\', Some(_)) => is_escaped = true,
            (b'"' | b'\'', None) => quote = Some(byte),
            (_, Some(open)) if byte == open => quote = None,
            (b'{', None) => depth += 1,
            (b'}', None) => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    open + 1..close.map_or(text.len(), |n| open + n)
}

/// Returns the lines behind a key that are indented more.
fn block(text: &str, key: Range<usize>) -> Range<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let line_start = text[..key.start].rfind('\n').map_or(0, |at| at + 1);
    let around = indent(&text[line_start..]);
    let Some(n) = text[key.end..].find('\n') else {
        return key.end..text.len();
    };
    let start = key.end + n + 1;
    let lines = text[start..].split_inclusive('\n');
    let is_other = |line: &str| line.trim().is_empty() || line.starts_with(['#', '{']);
    let inside = lines.take_while(|line| is_other(line) || indent(line) > around);
    let end = start + inside.map(str::len).sum::<usize>();
    let lines = &text[start..end];
    start + indent(lines)..start + lines.trim_end().len().max(indent(lines))
}
