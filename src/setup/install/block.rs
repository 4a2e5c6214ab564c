//! Adds and removes the block about codescout in an instruction file for agents. Two marker lines enclose the block.

use super::TextError;
use crate::config::lines::{append, line_end, line_start, newline, split_mark, without_lines};

const BEGIN: &str = "<!-- codescout:begin for=";
const END: &str = "<!-- codescout:end -->";

/// The text of the block. With its two markers it has at most 15 lines.
const LINES: &str = "\
## Finding code with codescout

The tools of the MCP server codescout (or the command `codescout`, same names) know every revision of this repository:

- How or where is something done: `search` with a question in plain words, before grep and before reading whole files.
- A name: `symbol` gives every definition of it, and on request its body and what mentions it.
- Every line that matches a pattern: `search` with mode `regex`; complete for the revision asked about.
- What is in the repository, a folder or a file: `outline`. Exact lines of a file: `read` with `path:10-40`.
- How did it come to be: `history` of a name, path or lines; `blame` by definition, line or owner; `diff` of two revisions by definition.
- Each takes `ref`: a commit, branch or tag. Without it files count as they are on disk, uncommitted edits included.
- `incomplete:` or `incomplete_because` says what is missing from an answer: not found then does not mean not there.
";

/// Adds the block for a client. If the text is empty, it begins with `preamble`.
pub(super) fn put(text: &str, client: &str, preamble: &str) -> Result<String, TextError> {
    let Some(found) = find(text)? else {
        let start = if split_mark(text).1.trim().is_empty() {
            preamble
        } else {
            text
        };
        return Ok(append(start, &block(&[client])));
    };
    let mut clients = found.clients.clone();
    if !clients.contains(&client) {
        clients.push(client);
    }
    Ok(found.replaced(text, &clients))
}

/// Removes the block, or keeps it if it was added for other clients too. Returns `None` if there is no block for this
/// client.
pub(super) fn take(text: &str, client: &str) -> Result<Option<String>, TextError> {
    let Some(found) = find(text)? else { return Ok(None) };
    let others: Vec<&str> = found.clients.iter().copied().filter(|other| *other != client).collect();
    Ok(match (others.len(), found.clients.len()) {
        (others, all) if others == all => None,
        (0, _) => Some(without_lines(text, found.start, found.end)),
        _ => Some(found.replaced(text, &others)),
    })
}

struct Found<'t> {
    clients: Vec<&'t str>,
    start: usize,
    end: usize,
}

impl Found<'_> {
    fn replaced(&self, text: &str, clients: &[&str]) -> String {
        let block = block(clients).replace('\n', newline(text));
        format!("{}{block}{}", &text[..self.start], &text[self.end..])
    }
}

fn find(text: &str) -> Result<Option<Found<'_>>, TextError> {
    let Some(begin) = text.find(BEGIN) else { return Ok(None) };
    let rest = &text[begin + BEGIN.len()..];
    let Some(end) = rest.find(END) else {
        return Err(TextError::NotEditable {
            what: format!("the codescout block, which lacks the line {END},"),
        });
    };
    let names = rest.split([' ', '\r', '\n']).next().unwrap_or_default();
    Ok(Some(Found {
        clients: names.split(',').filter(|name| !name.is_empty()).collect(),
        start: line_start(text, begin),
        end: line_end(text, begin + BEGIN.len() + end),
    }))
}

fn block(clients: &[&str]) -> String {
    let clients = clients.join(",");
    format!("{BEGIN}{clients} (codescout install --instructions) -->\n{LINES}{END}\n")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn it_is_short_and_names_every_tool_that_answers() {
        let block = block(&["codex"]);
        assert!(block.lines().count() <= 15);
        for tool in ["search", "symbol", "outline", "read", "history", "blame", "diff"] {
            assert!(block.contains(&format!("`{tool}`")), "{tool}");
        }
    }

    #[test]
    fn it_comes_and_goes_without_a_trace() {
        for text in ["", "# Mine\n", "# Mine\r\n\r\nText\r\n", "# Mine\n\nText\n"] {
            let with = put(text, "codex", "").unwrap();
            assert_eq!(put(&with, "codex", "").unwrap(), with);
            assert_eq!(with.contains("\r\n"), text.contains("\r\n"));
            assert_eq!(with.matches('\n').count(), with.lines().count());
            assert_eq!(take(&with, "codex").unwrap().unwrap(), text);
            assert_eq!(take(&with, "zed").unwrap(), None);
        }
    }

    #[test]
    fn clients_that_read_one_file_share_one_block() {
        let codex = put("# Mine\n", "codex", "").unwrap();
        let both = put(&codex, "zed", "").unwrap();
        assert_eq!(both.matches(BEGIN).count(), 1);
        assert!(both.contains("for=codex,zed "), "{both}");
        assert_eq!(take(&both, "zed").unwrap().unwrap(), codex);
        let zed = take(&both, "codex").unwrap().unwrap();
        assert_eq!(take(&zed, "zed").unwrap().unwrap(), "# Mine\n");
    }

    #[test]
    fn a_block_without_an_end_is_left_alone() {
        let text = put("", "codex", "").unwrap().replace(END, "");
        assert!(matches!(put(&text, "codex", ""), Err(TextError::NotEditable { .. })));
        assert!(matches!(take(&text, "codex"), Err(TextError::NotEditable { .. })));
    }
}
