//! The text of a note: Markdown, after front matter that names the definitions it is about.

/// Limit on the length of a title in characters.
const MAX_TITLE: usize = 100;

/// A definition that a note is about, as it was when the note was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Anchor {
    /// The id of the definition.
    pub(super) id: String,
    /// The id of the file's blob. Empty if a person wrote the anchor.
    pub(super) blob: String,
    /// A hash of the definition's lines. Empty if a person wrote the anchor.
    pub(super) text: String,
}

/// A note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    /// The definitions that it is about.
    pub(super) about: Vec<Anchor>,
    /// The other lines of the front matter.
    pub(super) others: Vec<String>,
    /// The text after the front matter.
    pub(super) body: String,
}

/// Returns the front matter of a Markdown document, and the text after it.
fn divided(text: &str) -> Option<Result<(&str, &str), String>> {
    let rest = text.strip_prefix("---\n")?;
    let end = match rest.strip_prefix("---\n") {
        Some(_) => Some((0, 4)),
        None => rest.find("\n---\n").map(|at| (at + 1, at + 5)),
    };
    let divided = end.map(|(end, start)| (&rest[..end], &rest[start..]));
    Some(divided.ok_or_else(|| "the front matter has no end: ---".to_owned()))
}

/// Returns a text of the front matter of a Markdown document.
pub(in crate::ops) fn front_matter(text: &str, key: &str) -> Option<String> {
    let text = unified(text);
    let (front, _) = divided(&text)?.ok()?;
    let value = |line: &str| unquoted(line.strip_prefix(key)?.strip_prefix(':')?);
    front.lines().find_map(value)
}

/// Returns the title of a Markdown document.
pub(in crate::ops) fn title(text: &str) -> String {
    let text = unified(text);
    let body = divided(&text)
        .and_then(Result::ok)
        .map_or(text.as_str(), |(_, body)| body);
    Note {
        body: body.to_owned(),
        ..Note::default()
    }
    .title()
}

fn unified(text: &str) -> String {
    text.trim_start_matches('\u{feff}').replace("\r\n", "\n")
}

impl Note {
    /// Reads a note. Fails with the reason if its front matter is not valid.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = unified(text);
        let Some(divided) = divided(&text) else {
            return Ok(Self {
                body: text,
                ..Self::default()
            });
        };
        let (front, body) = divided?;
        let mut note = Self {
            body: body.to_owned(),
            ..Self::default()
        };
        let mut is_about = false;
        for line in front.lines() {
            let is_inner = line.starts_with([' ', '\t', '-']);
            if !is_inner && !line.starts_with('#') {
                is_about = line.trim_end() == "about:";
                if !is_about && line.starts_with("about:") {
                    return Err("about must be a list, one definition in each line".to_owned());
                }
            }
            match (is_about, is_inner) {
                (true, true) if line.trim_start().starts_with('#') => {}
                (true, true) => note.add(line.trim())?,
                (true, false) => {}
                (false, _) => note.others.push(line.to_owned()),
            }
        }
        Ok(note)
    }

    /// Adds a line of the list `about`.
    fn add(&mut self, line: &str) -> Result<(), String> {
        let invalid = || format!("invalid line in about: {line}");
        let field = match line.strip_prefix("- ") {
            Some(item) => {
                self.about.push(Anchor::default());
                item.trim()
            }
            None => line,
        };
        if field.is_empty() {
            return Ok(());
        }
        let anchor = self.about.last_mut().ok_or_else(invalid)?;
        match field.split_once(": ") {
            Some(("id", id)) => anchor.id = unquoted(id).ok_or_else(invalid)?,
            Some(("blob", blob)) => anchor.blob = unquoted(blob).ok_or_else(invalid)?,
            Some(("text", text)) => anchor.text = unquoted(text).ok_or_else(invalid)?,
            // A person writes only the id.
            _ if line.starts_with("- ") => anchor.id = unquoted(field).ok_or_else(invalid)?,
            _ => return Err(invalid()),
        }
        Ok(())
    }

    /// Returns the text of the note.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        if !self.about.is_empty() || !self.others.is_empty() {
            text.push_str("---\n");
            self.others.iter().for_each(|line| text.push_str(&format!("{line}\n")));
            if !self.about.is_empty() {
                text.push_str("about:\n");
            }
            for Anchor { id, blob, text: hash } in &self.about {
                let id = serde_json::Value::from(id.as_str());
                text.push_str(&format!("  - id: {id}\n"));
                if !hash.is_empty() {
                    text.push_str(&format!("    blob: {blob:?}\n    text: {hash:?}\n"));
                }
            }
            text.push_str("---\n");
        }
        text.push_str(&self.body);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    /// Returns the first line with text, without the marks of a heading.
    pub(super) fn title(&self) -> String {
        let mut lines = self.body.lines().map(|line| line.trim_start_matches('#').trim());
        let title = lines.find(|line| !line.is_empty()).unwrap_or_default();
        match title.char_indices().nth(MAX_TITLE) {
            Some((end, _)) => format!("{}…", &title[..end]),
            None => title.to_owned(),
        }
    }

    /// Returns the names in backticks, each once.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for line in self.body.lines() {
            for name in line.split('`').skip(1).step_by(2) {
                let is_name = name.len() > 1 && name.chars().all(|c| c.is_alphanumeric() || "_.:#/-~".contains(c));
                if is_name && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }
}

/// Returns the content of a plain or quoted scalar.
fn unquoted(value: &str) -> Option<String> {
    let value = value.trim();
    if value.starts_with('"') {
        return serde_json::from_str(value).ok();
    }
    if let Some(inner) = value.strip_prefix('\'') {
        return Some(inner.strip_suffix('\'')?.replace("''", "'"));
    }
    (!value.is_empty() && !value.starts_with(['[', '{', '&', '*', '|', '>'])).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_note_comes_back_as_it_was_written() {
        let note = Note {
            about: vec![
                Anchor {
                    id: "src/a b.rs#Parser.parse~2".to_owned(),
                    blob: "12ab".to_owned(),
                    text: "77".to_owned(),
                },
                Anchor {
                    id: "b.rs#f".to_owned(),
                    ..Anchor::default()
                },
            ],
            others: vec!["kind: decision".to_owned(), "tags:".to_owned(), "  - x".to_owned()],
            body: "# Why\n\n`parse` and `f()` differ; see `b.rs#f`, `parse`\n".to_owned(),
        };
        assert_eq!(Note::parse(&note.to_text()), Ok(note.clone()));
        assert_eq!(note.title(), "Why");
        assert_eq!(note.names(), ["parse", "b.rs#f"]);
        let plain = Note::parse("only text").unwrap();
        assert_eq!((plain.about.len(), plain.to_text().as_str()), (0, "only text\n"));
    }

    #[test]
    fn people_write_ids_alone() {
        let note = Note::parse("---\nabout:\n- src/a.rs#f\n  - [x]\n---\ntext").unwrap_err();
        assert_eq!(note, "invalid line in about: - [x]");
        assert!(Note::parse("---\nabout: [a, b]\n---\ntext").is_err());
        let note = Note::parse("\u{feff}---\nabout:\n# two\n- 'a''b.rs#f'\n---\ntext").unwrap();
        assert_eq!(note.about[0].id, "a'b.rs#f");
        let note = Note::parse("---\r\nabout:\r\n- src/a.rs#f\r\nkind: spec\r\n---\r\ntext\r\n").unwrap();
        assert_eq!(note.about[0].id, "src/a.rs#f");
        assert_eq!(
            (note.others, note.body),
            (vec!["kind: spec".to_owned()], "text\n".to_owned())
        );
        assert!(Note::parse("---\nabout:\n").is_err());
    }
}
