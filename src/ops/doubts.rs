//! Notes about files that contain a name, but of which not all definitions and references are known.

use rayon::prelude::*;

use super::paths::path_of;
use super::question::Question;
use crate::artifact::SkipReason;
use crate::extract::{Language, language};
use crate::link::Linker;
use crate::query::{Pattern, PatternOptions, Source, unindexed_with};
use crate::session::{OpError, Result};
use crate::snapshot::FileId;

/// Maximum number of files that a note names.
const MAX_NAMED: usize = 3;

/// Returns notes about the files that contain `name`, as a word. Of the files that are not indexed, those that are not
/// generated count only if no definition `is_known`: minified ones contain many names.
pub(super) fn doubts(question: &Question<'_>, linker: &Linker<'_>, name: &str, is_known: bool) -> Result<Vec<String>> {
    let is_wanted = |reason| reason == SkipReason::Generated || !is_known && reason != SkipReason::LockFile;
    let unindexed = not_indexed(question, &[name], is_wanted)?;
    let errors = note_of_errors(question, name, &with_errors(question, linker, name)?);
    Ok(unindexed.into_iter().flatten().chain(errors).collect())
}

/// Returns, for each name, a note if a generated file contains it.
pub(super) fn generated(question: &Question<'_>, names: &[&str]) -> Result<Vec<Option<String>>> {
    not_indexed(question, names, |reason| reason == SkipReason::Generated)
}

fn not_indexed(
    question: &Question<'_>,
    names: &[&str],
    is_wanted: impl Fn(SkipReason) -> bool,
) -> Result<Vec<Option<String>>> {
    let words = names.iter().map(|name| word(name)).collect::<Result<Vec<_>>>()?;
    let files = unindexed_with(
        &words,
        &question.sources(),
        &question.filter,
        is_wanted,
        question.interrupt(),
    );
    let note = |(name, files): (&&str, Vec<FileId>)| {
        let paths = files.iter().map(|file| path_of(question.view(), *file)).collect();
        (!files.is_empty()).then(|| format!("files that are not indexed contain {name:?}: {}", listed(paths)))
    };
    Ok(names.iter().zip(files).map(note).collect())
}

/// Returns the files of code that contain `name` and have syntax errors, with the line of the first error.
pub(super) fn with_errors(question: &Question<'_>, linker: &Linker<'_>, name: &str) -> Result<Vec<(FileId, u32)>> {
    let (view, sources, filter, word) = (question.view(), question.sources(), &question.filter, word(name)?);
    let files: Vec<FileId> = linker.files_with(name)?.into_iter().collect();
    let line_of = |file: &FileId| -> Result<Option<(FileId, u32)>> {
        let is_code = language(view.lang(*file)).is_some_and(Language::is_code);
        if !is_code || !filter.passes(view, *file) {
            return Ok(None);
        }
        let line = view
            .extraction(*file)
            .transpose()?
            .map_or(0, |facts| facts.first_error_line);
        let contains = || match sources.reader().read(*file)? {
            Source::Bytes(bytes) => Ok::<_, OpError>(word.occurs(&bytes)),
            _ => Ok(false),
        };
        Ok((line > 0 && contains()?).then_some((*file, line)))
    };
    let found = files.par_iter().map(line_of).collect::<Result<Vec<_>>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Returns a note about the result of [`with_errors`].
pub(super) fn note_of_errors(question: &Question<'_>, name: &str, files: &[(FileId, u32)]) -> Option<String> {
    let shown = |(file, line): &(FileId, u32)| format!("{}:{line}", path_of(question.view(), *file));
    (!files.is_empty()).then(|| {
        let places = listed(files.iter().map(shown).collect());
        format!("parse errors in files that contain {name:?}, so some of its uses may be unknown: {places}")
    })
}

fn word(name: &str) -> Result<Pattern> {
    let options = PatternOptions {
        whole_words: true,
        literal: true,
        ..PatternOptions::default()
    };
    Ok(Pattern::new(name, options)?)
}

fn listed(mut paths: Vec<String>) -> String {
    let n_more = paths.len().saturating_sub(MAX_NAMED);
    paths.truncate(MAX_NAMED);
    match n_more {
        0 => paths.join(", "),
        n => format!("{} and {n} more", paths.join(", ")),
    }
}
