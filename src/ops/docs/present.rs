//! Compares what documents mention with the files, headings and words that the revision has, without its history.

use std::collections::{HashMap, HashSet};

use bstr::ByteSlice;
use rayon::prelude::*;

use super::super::paths::below;
use super::super::question::Question;
use super::dated::is_record_of_changes;
use super::document::{Document, last_part, parts, qualifier};
use super::files::{Paths, bare, folder_of, written};
use super::headings::{Headings, has_links};
use super::mention::{Markup, Mention, Referent};
use crate::model::RepoPath;
use crate::query::{Source, SourceError, SourceReader};
use crate::session::Result;
use crate::snapshot::FileId;

/// The files, headings and words of a revision.
pub(super) struct Present {
    pub(super) paths: Paths,
    /// The parts of mentioned names that occur in files other than documents, as definitions or in any other way.
    pub(super) in_code: HashSet<String>,
    /// The headings of the documents to which links lead.
    headings: HashMap<RepoPath, Headings>,
}

impl Present {
    pub(super) fn new(question: &Question<'_>, documents: &[Document]) -> Result<Self> {
        let files = question.view().files();
        let paths = Paths::new(files.map(|(_, file)| String::from_utf8_lossy(file.path)));
        let names = documents.iter().flat_map(Document::names).flat_map(parts);
        let mut present = Self {
            paths,
            in_code: in_code(question, &names.collect())?,
            headings: HashMap::new(),
        };
        for document in documents {
            for mention in &document.mentions {
                if let Some((path, _)) = present.heading(document, mention) {
                    present.read_headings(question, path)?;
                }
            }
        }
        Ok(present)
    }

    /// Returns true if a mention needs no history to be right.
    pub(super) fn is_right(&self, document: &Document, mention: &Mention) -> bool {
        match &mention.referent {
            Referent::Name => {
                let name = document.text(mention);
                qualifier(name).is_none() && self.in_code.contains(last_part(name))
            }
            Referent::Path => {
                let path = document.read(mention, &mention.range);
                self.has_path(&document.path, &path, mention.is_link)
            }
            Referent::Heading(_) => self
                .heading(document, mention)
                .is_none_or(|(path, name)| self.headings.get(&path).is_none_or(|headings| headings.has(&name))),
        }
    }

    /// Returns the document and the name of a heading that a mention means; `None` if it is no document with names.
    pub(super) fn heading(&self, document: &Document, mention: &Mention) -> Option<(RepoPath, String)> {
        let Referent::Heading(path) = &mention.referent else {
            return None;
        };
        let path = match &*document.read(mention, path) {
            "" => document.path.clone(),
            path => self.link(&document.path, path)?,
        };
        has_links(&path).then(|| (path, document.read(mention, &mention.range).into_owned()))
    }

    fn read_headings(&mut self, question: &Question<'_>, path: RepoPath) -> Result<()> {
        if self.headings.contains_key(&path) {
            return Ok(());
        }
        let file = question.view().find_text(&path.to_text());
        let source = file.map(|file| question.sources().reader().read(file)).transpose()?;
        if let Some(Source::Bytes(bytes)) = source {
            self.headings.insert(path, Headings::of(&bytes));
        }
        Ok(())
    }

    /// Returns the file that a link leads to.
    fn link(&self, document: &RepoPath, link: &str) -> Option<RepoPath> {
        let forms = [folder_of(document), String::new()].into_iter();
        let mut paths = forms.filter_map(|folder| below(&folder, link));
        paths
            .find(|path| self.paths.has(path))
            .map(|path| RepoPath::from(path.as_str()))
    }

    /// Returns true if there is a file or directory that a document mentions as `text`, or one whose path ends in it.
    fn has_path(&self, document: &RepoPath, text: &str, is_link: bool) -> bool {
        let bare = bare(text);
        // A file name alone may be that of a file of the reader.
        !is_link && !bare.contains('/')
            || written(document, bare, is_link).any(|(_, path)| self.paths.has(&path))
            || self.paths.within(bare).next().is_some()
    }
}

fn in_code(question: &Question<'_>, names: &HashSet<&str>) -> Result<HashSet<String>> {
    let sources = question.sources();
    let view = question.view();
    let is_code = |id: &FileId| {
        let (path, lang) = (view.file(*id).path, view.lang(*id));
        Markup::of(lang).is_none() && !is_record_of_changes(path) && !is_translation(path)
    };
    let files: Vec<FileId> = view.files().map(|(id, _)| id).filter(is_code).collect();
    let of_file = |reader: &mut SourceReader<'_>, id: FileId| -> Result<HashSet<&str>, SourceError> {
        sources.go_on()?;
        let Source::Bytes(bytes) = reader.read(id)? else {
            return Ok(HashSet::new());
        };
        let words = bytes
            .split(|byte| !is_part_of_word(*byte))
            .filter_map(|word| word.to_str().ok());
        Ok(words.filter_map(|word| names.get(word)).copied().collect())
    };
    let found: Vec<HashSet<&str>> = files
        .into_par_iter()
        .map_init(|| sources.reader(), of_file)
        .collect::<Result<_, _>>()?;
    Ok(found.into_iter().flatten().map(str::to_owned).collect())
}

fn is_part_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns true for translations of documents, which lag behind.
fn is_translation(path: &[u8]) -> bool {
    path.ends_with(b".po") || path.ends_with(b".pot")
}
