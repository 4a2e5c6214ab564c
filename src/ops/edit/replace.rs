//! Replaces ranges of a file that were found in a view.

use super::{Writer, check_new};
use crate::edit::{Edited, FileText, OpenFile, Splice, check_errors, spliced, stored_as};
use crate::git::FileMode;
use crate::model::RepoPath;
use crate::session::{OpError, Result};

impl Writer<'_> {
    /// Replaces ranges of a file, none of them empty, and moves it to another path if that differs. `seen` is the content to which the ranges
    /// refer. Fails if the file has another one now, or would have more syntax errors.
    pub(crate) fn replaced(
        &mut self,
        path: &RepoPath,
        seen: &[u8],
        mut splices: Vec<Splice>,
        to: &RepoPath,
    ) -> Result<Vec<Edited>> {
        let files = &mut self.files;
        for path in [path, to] {
            files.check(path)?;
        }
        files.is_there(path)?;
        let changed = || {
            let shown = path.to_text();
            OpError::new(
                format!("{shown} is not as it was read"),
                "nothing was changed; repeat the call. A file that git converts other than by its line endings cannot be changed",
            )
        };
        let exact = files.known.remove(path).flatten().ok_or_else(changed)?;
        let removed = removed_returns(&exact.raw, seen).ok_or_else(changed)?;
        if exact.stored.bytes != seen {
            return Err(changed());
        }
        for splice in &mut splices {
            let on_disk = |at: usize| at + removed.partition_point(|&before| before <= at);
            // A carriage return after the range stays.
            splice.range = on_disk(splice.range.start)..on_disk(splice.range.end - 1) + 1;
        }
        let expect = exact.stored.blob.to_string();
        let file = OpenFile::new(path, Some(exact), [expect.as_str()].into_iter(), files.opening())?;
        let old = file.exact.map(|file| (file.raw, file.stored.mode));
        let (old, mode) = old.unwrap_or((Vec::new(), FileMode::File));
        let new = spliced(&old, splices)?;
        let (shown, shown_new) = (path.to_text(), to.to_text());
        check_errors(false, &FileText::new(&shown, &old), &FileText::new(&shown_new, &new))?;
        let new_blob = stored_as(to, mode, &new, &mut files.reader)?;
        let edited = |path: &RepoPath, old: Option<Vec<u8>>, new: Option<Vec<u8>>, warnings| Edited {
            path: path.clone(),
            mode,
            old_blob: old.is_some().then(|| expect.clone()),
            new_blob: new.is_some().then(|| new_blob.clone()),
            old,
            new,
            warnings,
        };
        if path == to {
            return Ok(vec![edited(path, Some(old), Some(new), file.warnings)]);
        }
        if files.is_there(to)? {
            return Err(OpError::new(format!("{shown_new} exists"), "choose another name"));
        }
        check_new(to)?;
        Ok(vec![
            edited(path, Some(old), None, file.warnings),
            edited(to, None, Some(new), Vec::new()),
        ])
    }
}

/// Returns the positions in `stored` before which `raw` has one more carriage return. `None` if they differ otherwise.
fn removed_returns(raw: &[u8], stored: &[u8]) -> Option<Vec<usize>> {
    let (mut removed, mut rest) = (Vec::new(), raw);
    for (at, byte) in stored.iter().enumerate() {
        if let [b'\r', b'\n', ..] = rest
            && *byte == b'\n'
        {
            removed.push(at);
            rest = &rest[1..];
        }
        rest = rest.strip_prefix(&[*byte])?;
    }
    rest.is_empty().then_some(removed)
}
