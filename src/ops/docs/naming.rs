//! Finds the documents that name definitions.

use super::super::question::Question;
use super::dated::{is_dated, is_record_of_changes};
use super::document::Document;
use super::mention::{Markup, Referent};
use crate::model::RepoPath;
use crate::query::Source;
use crate::session::Result;

/// A place of a document that names one of the sought definitions.
#[derive(Debug)]
pub(crate) struct Named {
    /// The index of the definition among the sought ones.
    pub(crate) definition: usize,
    pub(crate) path: String,
    pub(crate) line: u32,
}

/// Returns the first place of each document that names one of `definitions`, which are qualified names. Records of
/// changes and dated documents are left out.
pub(crate) fn naming(question: &Question<'_>, definitions: &[String]) -> Result<Vec<Named>> {
    let (view, mut reader) = (question.view(), question.sources().reader());
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let finders: Vec<_> = definitions
        .iter()
        .map(|name| memchr::memmem::Finder::new(last(name).as_bytes()).into_owned())
        .collect();
    let mut found = Vec::new();
    for (id, file) in view.files().filter(|(id, _)| question.filter.passes(view, *id)) {
        let Some(markup) = Markup::of(view.lang(id)).filter(|_| !is_record_of_changes(file.path)) else {
            continue;
        };
        let Source::Bytes(bytes) = reader.read(id)? else {
            continue;
        };
        let sought: Vec<usize> = (0..finders.len())
            .filter(|&at| finders[at].find(&bytes).is_some())
            .collect();
        if sought.is_empty() || bytes.len() > super::MAX_BYTES {
            continue;
        }
        let Some(document) = Document::new(RepoPath::new(file.path), bytes, markup) else {
            continue;
        };
        if is_dated(&document.text) {
            continue;
        }
        for definition in sought {
            let names = document
                .mentions
                .iter()
                .filter(|mention| mention.referent == Referent::Name);
            let mut names = names.filter(|mention| {
                means(
                    document.text(mention),
                    &definitions[definition],
                    document.is_code(mention),
                )
            });
            if let Some(mention) = names.next() {
                found.push(Named {
                    definition,
                    path: document.path.to_string(),
                    line: document.line_of(mention),
                });
            }
        }
    }
    Ok(found)
}

/// Returns true if a name in a document means the definition with a qualified name. A bare word, such as `run`, means a
/// definition only if it is written as a call or is no ordinary word.
fn means(mention: &str, qualified: &str, is_code: bool) -> bool {
    let mention = mention.replace("::", ".").replace("->", ".").replace('#', ".");
    let is_end = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_word = |name: &str| name.chars().all(|letter| letter.is_ascii_lowercase());
    if mention.contains('.') {
        return is_end(qualified, &mention) || is_end(&mention, qualified);
    }
    is_end(qualified, &mention) && (is_code && !qualified.contains('.') || !is_word(&mention))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_word_names_no_definition() {
        assert!(means("Parser.parse", "Parser.parse", false));
        assert!(means("lib::Parser::parse", "Parser.parse", false));
        assert!(means("parse_all", "Parser.parse_all", false));
        assert!(means("parse", "parse", true));
        assert!(!means("parse", "parse", false));
        assert!(!means("parse", "Parser.parse", true));
        assert!(!means("Lexer.parse", "Parser.parse", true));
    }
}
