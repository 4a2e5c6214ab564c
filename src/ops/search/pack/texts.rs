//! Reads the files of a pack, each once.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::super::graph::qualified;
use super::super::super::paths::path_of;
use super::super::super::question::Question;
use super::rows::{PackOut, Role};
use crate::link::DefId;
use crate::query::{FoundDefinition, LineStarts, Source, definitions_in};
use crate::session::Result;
use crate::snapshot::FileId;

/// The bytes and definitions of files.
pub(super) struct Texts<'a> {
    question: &'a Question<'a>,
    files: HashMap<FileId, Rc<Vec<u8>>>,
    definitions: HashMap<FileId, Rc<Vec<FoundDefinition>>>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(question: &'a Question<'a>) -> Self {
        Self {
            question,
            files: HashMap::new(),
            definitions: HashMap::new(),
        }
    }

    /// Returns the bytes of a file; empty if it cannot be read.
    pub(super) fn bytes(&mut self, file: FileId) -> Result<Rc<Vec<u8>>> {
        if let Some(bytes) = self.files.get(&file) {
            return Ok(Rc::clone(bytes));
        }
        let bytes = match self.question.sources().reader().read(file)? {
            Source::Bytes(bytes) => bytes,
            _ => Vec::new(),
        };
        let bytes = Rc::new(bytes);
        self.files.insert(file, Rc::clone(&bytes));
        Ok(bytes)
    }

    /// Returns all definitions of a file by their indexes.
    pub(super) fn definitions(&mut self, file: FileId) -> Result<Rc<Vec<FoundDefinition>>> {
        if let Some(all) = self.definitions.get(&file) {
            return Ok(Rc::clone(all));
        }
        let bytes = self.bytes(file)?;
        let all = Rc::new(definitions_in(self.question.view(), file, &bytes)?);
        self.definitions.insert(file, Rc::clone(&all));
        Ok(all)
    }

    pub(super) fn definition(&mut self, of: DefId) -> Result<Option<FoundDefinition>> {
        Ok(self.definitions(of.file)?.get(of.index as usize).cloned())
    }

    /// Returns the lines as an item with their exact bytes.
    pub(super) fn lines(&mut self, file: FileId, (first, last): (u32, u32)) -> Result<PackOut> {
        let bytes = self.bytes(file)?;
        let range = LineStarts::of(&bytes).range(first, last);
        let text = String::from_utf8_lossy(bytes.get(range).unwrap_or_default());
        let view = self.question.view();
        Ok(PackOut {
            role: Role::Body,
            reason: String::new(),
            path: path_of(view, file),
            start_line: first,
            end_line: last,
            line: None,
            id: None,
            blob: Some(view.file(file).entry().oid.to_string()),
            lossy: matches!(text, std::borrow::Cow::Owned(_)),
            text: Some(text.into_owned()),
            name: String::new(),
            label: String::new(),
            is_first: false,
            n_reasons: 1,
            is_known: false,
        })
    }

    /// Returns a definition without its body as an item.
    pub(super) fn signature(&mut self, found: &FoundDefinition) -> PackOut {
        let view = self.question.view();
        PackOut {
            role: Role::Signature,
            reason: String::new(),
            path: path_of(view, found.file),
            start_line: found.start_line,
            end_line: found.end_line,
            line: None,
            id: Some(found.id.clone()),
            blob: Some(view.file(found.file).entry().oid.to_string()),
            text: Some(short(&found.signature)),
            lossy: false,
            name: qualified(found),
            label: String::new(),
            is_first: false,
            n_reasons: 1,
            is_known: false,
        }
    }
}

/// Shortens a line.
pub(super) fn short(line: &str) -> String {
    const MAX: usize = 160;
    match line.char_indices().nth(MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
