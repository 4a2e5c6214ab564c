//! Applies operations to one file in memory, with the checks before and after.

use crate::artifact::Extractor;
use crate::extract::{self, Content};
use crate::git::{BlobContent, ExactFile, FileMode, ObjectReader, Repository, Unread, WorkTreeReader, unified_diff};
use crate::model::count::count;
use crate::model::{BlobId, Hint, RepoPath, start_of, without_placeholders};
use crate::query::{PartQuery, parse_lines};
use crate::session::{OpError, Result};

use super::MAX_FILE_BYTES;
use super::change::splices;
use super::locate::{FileText, Part};
use super::operation::{Operation, Verb};
use super::patch::{Version, patch};
use super::splice::spliced;

/// Minimum length of an abbreviated blob id.
pub(crate) const MIN_BLOB_DIGITS: usize = 12;
/// Maximum size of a diff in an error.
const MAX_DIFF_BYTES: usize = 4_000;

/// Operations that are applied together.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) operations: &'a [Operation],
    /// Accepts files with more syntax errors than before.
    pub(crate) allow_errors: bool,
}

impl Batch<'_> {
    /// Checks the parameters that do not depend on files.
    pub(crate) fn check(&self) -> Result<()> {
        for (at, operation) in self.operations.iter().enumerate() {
            operation.check().map_err(|error| error.context(self.label(at)))?;
        }
        Ok(())
    }

    /// Returns the name of an operation in errors.
    pub(crate) fn label(&self, at: usize) -> String {
        let operation = &self.operations[at];
        let number = if self.operations.len() > 1 {
            format!("edit {} of {}: ", at + 1, self.operations.len())
        } else {
            String::new()
        };
        format!("{number}{} {}", operation.op.name(), operation.target)
    }
}

/// The options for opening files.
pub(crate) struct Opening<'a> {
    pub(crate) reader: &'a mut WorkTreeReader,
    pub(crate) repository: &'a Repository,
    /// Refuses files whose blob id the caller does not give.
    pub(crate) must_expect: bool,
}

/// A file of the worktree, before the operations.
pub(crate) struct OpenFile<'a> {
    path: &'a RepoPath,
    pub(crate) exact: Option<ExactFile>,
    pub(crate) warnings: Vec<String>,
}

/// A file with its content before and after.
pub(crate) struct Edited {
    pub(crate) path: RepoPath,
    pub(crate) mode: FileMode,
    pub(crate) old: Option<Vec<u8>>,
    pub(crate) new: Option<Vec<u8>>,
    pub(crate) old_blob: Option<String>,
    pub(crate) new_blob: Option<String>,
    pub(crate) warnings: Vec<String>,
}

impl Edited {
    /// Returns what happens to the file.
    pub(crate) fn change(&self) -> &'static str {
        match (&self.old, &self.new) {
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "modified",
        }
    }

    /// Returns the size before and after.
    pub(crate) fn n_bytes(&self) -> usize {
        [&self.old, &self.new].into_iter().flatten().map(Vec::len).sum()
    }

    /// Returns the change as a patch.
    pub(crate) fn patch(&self) -> Vec<u8> {
        let old = self.old.as_deref().zip(self.old_blob.as_deref());
        let new = self.new.as_deref().zip(self.new_blob.as_deref());
        let [old, new] = [old, new].map(|version| version.map(|(bytes, blob)| Version { bytes, blob }));
        patch(self.path.as_bytes(), self.mode, old, new)
    }
}

/// Returns the id of the blob that git would store of a file with this content.
pub(crate) fn stored_as(
    path: &RepoPath,
    mode: FileMode,
    content: &[u8],
    reader: &mut WorkTreeReader,
) -> Result<String> {
    let stored = reader.stored_as(path, mode, content.to_vec());
    let failed = |error: Unread| OpError::failed(format!("cannot edit {}: {error}", path.to_text()));
    Ok(stored.map_err(failed)?.blob.to_string())
}

/// Returns the paths and parts that a target may mean, the longest path first.
pub(crate) fn parts_of(target: &str) -> Vec<(RepoPath, Part)> {
    let path = |text: &str| RepoPath::new(without_placeholders(text));
    let mut found = vec![(path(target), Part::Whole)];
    let lines = target
        .rsplit_once(':')
        .and_then(|(of, lines)| Some((of, parse_lines(lines)?, lines)));
    if let Some((of, PartQuery::Lines(first, last), typed)) = lines {
        let part = if typed.contains('-') {
            Part::Lines(first, last)
        } else {
            Part::Line(first)
        };
        found.push((path(of), part));
    }
    let names = target
        .rmatch_indices('#')
        .map(|(at, _)| (&target[..at], &target[at + 1..]));
    found.extend(names.map(|(of, name)| (path(of), Part::Name(name.to_owned()))));
    found
}

impl Operation {
    /// Checks the parameters that do not depend on files.
    pub(super) fn check(&self) -> Result<()> {
        if self.op.needs_text() && self.text.is_none() {
            return Err(OpError::new(
                "text is missing",
                Hint::each(
                    "give the new text with --text, or as text in a list; empty text removes",
                    "pass the new text as text; empty text removes",
                ),
            ));
        }
        if self.text.as_ref().is_some_and(|text| text.contains('\0')) {
            return Err(OpError::failed("the text contains a NUL character"));
        }
        let is_of_text = self.op == Verb::ReplaceText;
        if self.old.is_some() && !is_of_text {
            return Err(OpError::failed("old belongs to replace_text"));
        }
        if is_of_text && self.old.is_none() {
            return Err(OpError::new(
                "old is missing",
                Hint::each(
                    "give the text to replace with --old, or as old in a list",
                    "pass the text to replace as old",
                ),
            ));
        }
        if (self.count.is_some() || self.all) && !is_of_text {
            return Err(OpError::failed("count and all belong to replace_text"));
        }
        Ok(())
    }
}

impl<'a> OpenFile<'a> {
    /// Checks a file before it is edited: its content is text and the one that the caller has seen.
    pub(crate) fn new<'e>(
        path: &'a RepoPath,
        exact: Option<ExactFile>,
        expects: impl Iterator<Item = &'e str>,
        opening: Opening<'_>,
    ) -> Result<Self> {
        let mut warnings = Vec::new();
        let Some(file) = &exact else {
            return match expects.into_iter().next() {
                Some(_) => Err(OpError::failed(format!("{} does not exist", path.to_text()))),
                None => Ok(Self { path, exact, warnings }),
            };
        };
        let mut n_expected = 0;
        for expect in expects {
            n_expected += 1;
            check_expected(path, file, expect, &opening)?;
        }
        if n_expected == 0 && opening.must_expect {
            return Err(OpError::new(
                format!("expect is missing for {}", path.to_text()),
                "read the file first and pass its blob as expect",
            ));
        }
        warnings.extend(check_content(path, file)?);
        if file.n_links > 1 {
            let others = count(file.n_links as usize - 1, "hard link");
            warnings.push(format!(
                "{} has {others} elsewhere, which keep the old content",
                path.to_text()
            ));
        }
        if let Some(filter) = &file.stored.unfiltered {
            warnings.push(format!(
                "git runs the filter {filter} on {}; blob ids are without it",
                path.to_text()
            ));
        }
        Ok(Self { path, exact, warnings })
    }

    /// Applies operations. Returns `None` if they change nothing.
    pub(crate) fn edited(
        self,
        batch: Batch<'_>,
        parts: &[(usize, Part)],
        reader: &mut WorkTreeReader,
    ) -> Result<Option<Edited>> {
        let new = self.new_content(batch, parts)?;
        let old = self.exact.as_ref().map(|file| file.raw.clone());
        if new == old {
            return Ok(None);
        }
        let mode = self.exact.as_ref().map_or(FileMode::File, |file| file.stored.mode);
        let new_blob = new.as_ref().map(|new| stored_as(self.path, mode, new, reader));
        let new_blob = new_blob.transpose()?;
        Ok(Some(Edited {
            path: self.path.clone(),
            mode,
            old_blob: self.exact.as_ref().map(|file| file.stored.blob.to_string()),
            new_blob,
            old,
            new,
            warnings: self.warnings,
        }))
    }

    fn new_content(&self, batch: Batch<'_>, parts: &[(usize, Part)]) -> Result<Option<Vec<u8>>> {
        let path = self.path.to_text();
        let whole = parts
            .iter()
            .find(|(at, _)| matches!(batch.operations[*at].op, Verb::Create | Verb::Delete));
        if let Some((at, _)) = whole {
            if parts.len() > 1 {
                return Err(OpError::failed(format!(
                    "{} and other operations on {path} do not combine",
                    batch.label(*at)
                )));
            }
            let operation = &batch.operations[*at];
            let new = (operation.op == Verb::Create).then(|| operation.text.clone().unwrap_or_default().into_bytes());
            if let Some(new) = &new {
                check_errors(
                    batch.allow_errors,
                    &FileText::new(&path, b""),
                    &FileText::new(&path, new),
                )?;
            }
            return Ok(new);
        }
        let old = self.exact.as_ref().map(|file| file.raw.as_slice()).unwrap_or_default();
        applied(&path, old, batch, parts).map(Some)
    }
}

/// Applies operations of an edit to the content of a file, with the checks that need only the content.
pub(super) fn applied(path: &str, old: &[u8], batch: Batch<'_>, parts: &[(usize, Part)]) -> Result<Vec<u8>> {
    let before = FileText::new(path, old);
    let mut all = Vec::new();
    for (at, part) in parts {
        let operation = &batch.operations[*at];
        let found = check_encoding(old, operation)
            .and_then(|()| before.find(part))
            .and_then(|place| splices(&before, operation, &place));
        all.extend(found.map_err(|error| error.context(batch.label(*at)))?);
    }
    let new = spliced(old, all).map_err(|error| error.context(path))?;
    let after = FileText::new(path, &new);
    check_errors(batch.allow_errors, &before, &after)?;
    for (at, part) in parts {
        check_doc(&batch.operations[*at], &before, &after, part).map_err(|error| error.context(batch.label(*at)))?;
    }
    Ok(new)
}

/// Returns true if `expect` is the id of a blob, or its first digits. Fails if it is too short, or not an id.
pub(crate) fn is_expected(blob: BlobId, expect: &str) -> Result<bool> {
    Ok(blob.0.begins_with_hex(&digits(expect)?))
}

/// Returns the digits of an expected blob id in lower case. Fails if they are too few, or not those of an id.
fn digits(expect: &str) -> Result<String> {
    let expect = expect.trim().to_ascii_lowercase();
    if expect.len() < MIN_BLOB_DIGITS || !expect.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(OpError::new(
            format!("{expect:?} is not a blob id"),
            format!("pass the whole id, or at least {MIN_BLOB_DIGITS} digits of it"),
        ));
    }
    Ok(expect)
}

/// Fails unless the blob id is the one that the caller expects, with the difference if git has the expected content.
fn check_expected(path: &RepoPath, file: &ExactFile, expect: &str, opening: &Opening<'_>) -> Result<()> {
    let blob = file.stored.blob;
    let expect = digits(expect)?;
    if blob.0.begins_with_hex(&expect) {
        return Ok(());
    }
    let indexed = opening
        .reader
        .indexed_blob(path)
        .filter(|blob| blob.0.begins_with_hex(&expect));
    let mut objects = opening.repository.reader();
    // Not that of another file, which may be hidden.
    let expected = match indexed {
        Some(blob) => Some(blob),
        None => committed_blob(opening.repository, &mut objects, path)?.filter(|blob| blob.0.begins_with_hex(&expect)),
    };
    let seen = match expected.map(|blob| objects.blob(blob, MAX_FILE_BYTES)).transpose()? {
        Some(BlobContent::Content(bytes)) => Some(bytes),
        _ => None,
    };
    let difference = match seen {
        Some(seen) => format!(" since:\n{}", bounded(&unified_diff(&seen, &file.stored.bytes, (1, 1)))),
        None => "; the version that you saw is not known".to_owned(),
    };
    Err(OpError::new(
        format!(
            "{} has changed: it is now blob {blob}, not {expect}{difference}",
            path.to_text()
        ),
        Hint::each(
            "nothing was changed; read the file again and give its new blob with --expect, or as expect in a list",
            "nothing was changed; read the file again and pass its new blob as expect",
        ),
    ))
}

/// Returns the blob of a file in the checked-out commit.
fn committed_blob(repository: &Repository, objects: &mut ObjectReader, path: &RepoPath) -> Result<Option<BlobId>> {
    let Some(commit) = repository.head()?.commit() else {
        return Ok(None);
    };
    let tree = objects.commit(commit)?.tree;
    Ok(objects.entry_at(tree, path)?.map(|entry| BlobId(entry.oid)))
}

/// Returns the start of a diff, with a mark if lines are missing.
fn bounded(diff: &str) -> String {
    let start = start_of(diff, MAX_DIFF_BYTES);
    if start.len() == diff.len() {
        return diff.trim_end().to_owned();
    }
    format!("{}\n…", start.rsplit_once('\n').map_or("", |(lines, _)| lines))
}

/// Fails unless the file is text without conflict markers. Returns a warning if the file should not be edited by hand.
fn check_content(path: &RepoPath, file: &ExactFile) -> Result<Option<String>> {
    let shown = path.to_text();
    let has = |mark: &[u8]| file.raw.split(|byte| *byte == b'\n').any(|line| line.starts_with(mark));
    if has(b"<<<<<<< ") && has(b">>>>>>> ") {
        return Err(OpError::new(
            format!("{shown} has conflict markers"),
            "resolve the conflict first",
        ));
    }
    let kind = match extract::classify(&file.raw, MAX_FILE_BYTES as usize) {
        Content::Binary => {
            return Err(OpError::failed(format!(
                "{shown} is not text in UTF-8 or a similar encoding"
            )));
        }
        Content::LfsPointer => return Err(OpError::failed(format!("{shown} is a Git LFS pointer"))),
        _ if extract::is_vendored(path) => "vendored",
        _ if extract::is_lock_file(path) => "a lock file",
        Content::Generated(_) => "generated",
        Content::Minified => "minified",
        Content::Text | Content::TooLarge => return Ok(None),
    };
    Ok(Some(format!(
        "{shown} is {kind}: the change may be lost when it is made again"
    )))
}

/// Fails if the text would mix encodings.
fn check_encoding(old: &[u8], operation: &Operation) -> Result<()> {
    let is_plain = operation.text.as_deref().is_none_or(str::is_ascii);
    if is_plain || std::str::from_utf8(old).is_ok() {
        return Ok(());
    }
    Err(OpError::new(
        "the file is not UTF-8",
        "use only ASCII characters in text",
    ))
}

/// Fails if a file has more syntax errors than before.
pub(crate) fn check_errors(allow_errors: bool, before: &FileText<'_>, after: &FileText<'_>) -> Result<()> {
    let [n_before, n_after] = [before, after].map(|text| text.extraction.n_parse_errors);
    if n_after <= n_before || allow_errors {
        return Ok(());
    }
    let mut extractor = Extractor::new(extract::Options::default());
    let [old, new] = [before, after].map(|text| extractor.definitions(text.bytes, text.lang));
    let line = |at: u32| memchr::memchr_iter(b'\n', &after.bytes[..at as usize]).count() + 1;
    // Errors further up than any difference were there before.
    let same = before.bytes.iter().zip(after.bytes).take_while(|(a, b)| a == b).count() as u32;
    let errors = new.errors().unwrap_or_default();
    let first = errors.iter().find(|error| error.end >= same).or(errors.first());
    let place = first.map_or(String::new(), |error| {
        format!(", the first at line {}", line(error.start))
    });
    let already = old.errors().map_or(n_before as usize, <[_]>::len);
    let before = if already > 0 {
        format!(" instead of {already}")
    } else {
        String::new()
    };
    Err(OpError::new(
        format!(
            "{} would have {}{before}{place}",
            after.path,
            count(n_after as usize, "syntax error")
        ),
        Hint::each(
            "nothing was changed; correct the text, or use --allow-errors",
            "nothing was changed; correct the text, or pass allow_errors",
        ),
    ))
}

/// Fails if a new documentation is not read as such: it lacks the marks of a comment.
fn check_doc(operation: &Operation, before: &FileText<'_>, after: &FileText<'_>, part: &Part) -> Result<()> {
    let given = operation.text.as_deref().unwrap_or_default();
    if operation.op != Verb::ReplaceDoc || given.trim().is_empty() {
        return Ok(());
    }
    let super::locate::Place::Definition(index) = before.find(part)? else {
        return Ok(());
    };
    let wanted = &before.names()[index];
    let words = |text: &[u8]| String::from_utf8_lossy(text).split_whitespace().collect::<String>();
    let names = after.names();
    let docs = names
        .iter()
        .zip(&after.extraction.definitions)
        .filter(|(name, _)| *name == wanted);
    let mut docs = docs.filter_map(|(_, definition)| definition.doc);
    if docs.any(|doc| {
        words(&after.bytes[doc.as_usize()]).contains(&*words(given.as_bytes()))
            || words(given.as_bytes()).contains(&*words(&after.bytes[doc.as_usize()]))
    }) {
        return Ok(());
    }
    Err(OpError::new(
        format!("the text is not documentation in {}", after.language),
        "write it with the marks of a comment or docstring, as in the file",
    ))
}
