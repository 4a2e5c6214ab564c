//! Lists the documents with a kind or a status in their front matter.

use serde::Serialize;

use super::super::notes::{front_matter, title};
use super::super::question::Question;
use super::super::sink::{Sink, Style};
use super::mention::Markup;
use crate::query::Source;
use crate::session::Result;

/// A document with a kind or a status.
#[derive(Debug, Serialize)]
pub(crate) struct DocumentOut {
    path: String,
    pub(super) kind: Option<String>,
    pub(super) status: Option<String>,
    title: String,
}

impl DocumentOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Path, &self.path);
        let facts = [&self.kind, &self.status];
        let facts: Vec<&str> = facts.into_iter().flatten().map(String::as_str).collect();
        out.span(Style::Fact, &format!(" {}", facts.join(" ")));
        out.line(&format!(": {}", self.title));
    }
}

/// Returns the documents that have a kind or a status, by path.
pub(super) fn documents(question: &Question<'_>) -> Result<Vec<DocumentOut>> {
    let (view, mut reader) = (question.view(), question.sources().reader());
    let mut documents = Vec::new();
    for (id, file) in view.files().filter(|(id, _)| question.filter.passes(view, *id)) {
        if Markup::of(view.lang(id)) != Some(Markup::Markdown) {
            continue;
        }
        let Source::Bytes(bytes) = reader.read(id)? else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        let (kind, status) = (front_matter(&text, "kind"), front_matter(&text, "status"));
        if kind.is_some() || status.is_some() {
            documents.push(DocumentOut {
                path: String::from_utf8_lossy(file.path).into_owned(),
                kind,
                status,
                title: title(&text),
            });
        }
    }
    Ok(documents)
}
