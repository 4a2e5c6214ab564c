//! Writes a YAML file that contains one server and belongs to codescout. Other files are not changed.

use serde_json::Value;

use super::TextError;
use super::entry::Entry;
use crate::config::lines::split_mark;

/// The first line of every file that codescout writes.
const MARK: &str = "# Written by `codescout install`; `codescout uninstall` removes it.";

/// Returns the content of the file for this server. The existing text must be blank or written by codescout.
pub(super) fn put(text: &str, section: &str, name: &str, entry: &Entry) -> Result<String, TextError> {
    let wanted = whole(section, name, entry);
    let blank = split_mark(text).1;
    if text.replace("\r\n", "\n") == wanted {
        return Ok(text.to_owned());
    }
    if blank.trim().is_empty() || blank.starts_with(MARK) {
        Ok(wanted)
    } else {
        Err(TextError::Foreign)
    }
}

/// Returns the content of the file without this server. `None` if codescout did not write the file; empty if it
/// contains nothing else.
pub(super) fn take(text: &str, section: &str, name: &str) -> Option<String> {
    if !split_mark(text).1.starts_with(MARK) {
        return None;
    }
    let item = format!("  - name: {}", scalar(name));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let start = lines.iter().position(|line| line.trim_end() == item)?;
    let is_inside = |line: &&str| line.trim().is_empty() || line.starts_with("    ");
    let length = lines[start + 1..].iter().take_while(|line| is_inside(line)).count();
    let rest = [&lines[..start], &lines[start + 1 + length..]].concat().concat();
    let frame = frame(section, name);
    if rest.replace("\r\n", "\n").trim() == frame.trim() {
        Some(String::new())
    } else {
        Some(rest)
    }
}

/// Returns true if codescout wrote the file.
pub(super) fn has(text: &str, name: &str) -> bool {
    let item = format!("  - name: {}", scalar(name));
    split_mark(text).1.starts_with(MARK) && text.lines().any(|line| line.trim_end() == item)
}

fn frame(section: &str, name: &str) -> String {
    format!(
        "{MARK}\nname: {}\nversion: 1.0.0\nschema: v1\n{section}:\n",
        scalar(name)
    )
}

fn whole(section: &str, name: &str, entry: &Entry) -> String {
    let mut text = frame(section, name) + "  - name: " + &scalar(name) + "\n";
    fields(entry, 4, &mut text);
    text
}

/// Appends the fields of an entry, in block style.
pub(super) fn fields(entry: &Entry, indent: usize, text: &mut String) {
    for (field, value) in entry {
        let key = format!("{:indent$}{}:", "", scalar(field));
        match value {
            Value::Object(inner) => {
                *text += &format!("{key}\n");
                fields(inner, indent + 2, text);
            }
            Value::Array(items) => {
                *text += &format!("{key}\n");
                for item in items {
                    *text += &format!("{:indent$}  - {}\n", "", value_text(item));
                }
            }
            scalar => *text += &format!("{key} {}\n", value_text(scalar)),
        }
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// Formats a string. Uses double quotes and JSON escapes if an unquoted string would have another meaning.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') && text.chars().all(is_plain);
    // YAML 1.1 treats these words as booleans.
    let is_taken = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    if is_word && !is_taken {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn put_in(text: &str) -> Result<String, TextError> {
        let Value::Object(entry) = json!({
            "type": "stdio", "command": "/x y", "args": ["serve"], "requestOptions": {"headers": {"A": "Bearer ${{ s.V }}"}}
        }) else {
            return Ok(String::new());
        };
        put(text, "mcpServers", "me", &entry)
    }

    #[test]
    fn a_file_is_written() {
        let expected = format!(
            "{MARK}\nname: me\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: me\n    type: stdio\n    command: \"/x y\"\n    \
             args:\n      - serve\n    requestOptions:\n      headers:\n        A: \"Bearer ${{{{ s.V }}}}\"\n"
        );
        assert_eq!(put_in("").unwrap(), expected);
        assert_eq!(put_in(&expected).unwrap(), expected);
        assert_eq!(
            put_in(&expected.replace('\n', "\r\n")).unwrap(),
            expected.replace('\n', "\r\n")
        );
        assert!(has(&expected, "me") && !has(&expected, "m"));
    }

    #[test]
    fn only_our_own_files_are_touched() {
        assert!(matches!(put_in("name: me\n"), Err(TextError::Foreign)));
        assert_eq!(take("name: me\n", "mcpServers", "me"), None);
        let ours = put_in("").unwrap();
        assert_eq!(take(&ours, "mcpServers", "me").unwrap(), "");
        let shared = format!("{ours}  - name: other\n    command: z\n");
        let left = take(&shared, "mcpServers", "me").unwrap();
        assert!(left.contains("command: z") && !left.contains("- name: me"), "{left}");
    }

    #[test]
    fn words_that_mean_something_are_quoted() {
        for (text, expected) in [
            ("a-b", "a-b"),
            ("yes", "\"yes\""),
            ("1", "\"1\""),
            ("a: b", "\"a: b\""),
            ("", "\"\""),
        ] {
            assert_eq!(scalar(text), expected);
        }
    }
}
