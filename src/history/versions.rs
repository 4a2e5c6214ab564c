//! Reads versions of files and extracts their definitions.

use std::collections::VecDeque;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::artifact::Extractor;
use crate::extract::{Options, lang_of_path, recipe_number, refine};
use crate::git::{BlobContent, ObjectError, ObjectReader};
use crate::model::{BlobId, Lang, RepoPath};

use super::lineage::LINEAGE_VERSION;
use super::record::Entry;
use super::shape::may_have_traced_definitions;
use super::symbols::FileShapes;
use super::{lines, symbol_batch, writer};

/// Version of the rules for commit records. Increase it if the records of the same commits change: renames, combined
/// changes of merges, signatures of lines.
///
/// 1: initial.
const RECORD_VERSION: u64 = 1;

/// Returns a hash of everything that determines the records of definitions. Files larger than `max_bytes` have no
/// records.
pub fn symbol_recipe(max_bytes: u64) -> u64 {
    let numbers = [u64::from(recipe_number()), u64::from(LINEAGE_VERSION), max_bytes];
    xxh3_64(&numbers.map(u64::to_le_bytes).concat())
}

/// Returns a hash of everything that determines the content of imported commit records: [`symbol_recipe`], the rules
/// and the file formats.
pub fn record_recipe(max_bytes: u64) -> u64 {
    let formats = [writer::FORMAT, symbol_batch::FORMAT, lines::FORMAT].map(u64::from);
    let numbers = [
        symbol_recipe(max_bytes),
        RECORD_VERSION,
        formats[0],
        formats[1],
        formats[2],
    ];
    xxh3_64(&numbers.map(u64::to_le_bytes).concat())
}

/// Returns true if a file at this path can contain definitions with their own history. If the path does not determine
/// the language, returns true.
pub(super) fn is_traced(path: &RepoPath) -> bool {
    let lang = lang_of_path(path);
    lang == Lang::TEXT || may_have_traced_definitions(refine(lang, b""))
}

/// Reads versions of files and extracts their definitions. Each thread needs its own.
pub(super) struct Versions<R> {
    pub(super) reader: R,
    extractor: Extractor,
    max_bytes: u64,
    /// The versions that were read last.
    recent: VecDeque<(Entry, Arc<Vec<u8>>)>,
}

impl<R: std::borrow::BorrowMut<ObjectReader>> Versions<R> {
    pub(super) fn new(mut reader: R, max_bytes: u64) -> Self {
        reader.borrow_mut().keep_bases();
        Self {
            reader,
            extractor: Extractor::new(Options::default()),
            max_bytes,
            recent: VecDeque::new(),
        }
    }

    /// Returns the content of a version, or `None` if it is not in the repository. The content is empty if the entry is
    /// not a file or the file is too large.
    pub(super) fn bytes(&mut self, entry: Entry) -> Result<Option<Arc<Vec<u8>>>, ObjectError> {
        if let Some((_, bytes)) = self.recent.iter().find(|(known, _)| *known == entry) {
            return Ok(Some(Arc::clone(bytes)));
        }
        let found = if entry.is_file() {
            self.reader.borrow_mut().blob(BlobId(entry.oid), self.max_bytes)?
        } else {
            BlobContent::Content(Vec::new())
        };
        let bytes = Arc::new(match found {
            BlobContent::Content(bytes) => bytes,
            BlobContent::TooLarge { .. } => Vec::new(),
            BlobContent::Missing | BlobContent::Damaged => return Ok(None),
        });
        self.recent.truncate(1);
        self.recent.push_front((entry, Arc::clone(&bytes)));
        Ok(Some(bytes))
    }

    /// Extracts the definitions in a version. If `known` is given, reuses its definitions to parse less.
    pub(super) fn shapes(&mut self, path: &RepoPath, bytes: Arc<Vec<u8>>, known: Option<&FileShapes>) -> FileShapes {
        match known {
            Some(known) => FileShapes::near(&mut self.extractor, known, path, bytes),
            None => FileShapes::of(&mut self.extractor, path, bytes),
        }
    }
}
