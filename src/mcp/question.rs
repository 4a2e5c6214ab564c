//! A question about the files of a revision: the view, which files of it, and which part of the answer is wanted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::asked::{Asked, Stale};
use super::desk::{Looking, Seen};
use super::failure::Failure;
use super::jobs::Hold;
use super::tool::Call;
use crate::model::{RepoPath, typed};
use crate::ops::{ProvenanceOut, inside};
use crate::query::{CursorKey, FileFilter, Sought, Source, Sources, Tests, likely, n_not_indexed};
use crate::snapshot::FileId;

/// What the body of a tool begins with.
pub(super) struct Question {
    /// What was asked for.
    pub(super) asked: Asked,
    /// The revision, as it is now.
    pub(super) seen: Arc<Seen>,
    /// Which files are asked about.
    pub(super) filter: FileFilter,
    /// Where the answer goes on, if the call says so.
    pub(super) after: Option<(u32, u32)>,
    /// How old the view is, if a new one could not be had yet.
    old: Option<Duration>,
    key: CursorKey,
    /// Files were indexed for this answer alone, so that no other answer goes on from it.
    is_for_once: bool,
    /// Keeps the build from taking the processors until this is answered.
    hold: Option<Hold>,
}

impl Question {
    /// Looks at the revision; what is not indexed within `patience` is looked at as files alone. Without patience nothing is begun either.
    pub(super) fn of(call: &Call<'_>, patience: impl Into<Option<Duration>>) -> Result<Self> {
        Self::about(call, Asked::of(call)?, &[], patience.into())
    }

    /// The same where any file of `paths`, which ascend, is enough: if the revision is not indexed, nothing else of it is looked at.
    pub(super) fn of_files(call: &Call<'_>, paths: &[RepoPath], patience: Option<Duration>) -> Result<Self> {
        Self::about(call, Asked::of(call)?, paths, patience)
    }

    /// The same for a part of a question, whose cursor is about something else.
    pub(super) fn of_part(call: &Call<'_>, patience: impl Into<Option<Duration>>) -> Result<Self> {
        let cursor = None;
        Self::about(
            call,
            Asked {
                cursor,
                ..Asked::of(call)?
            },
            &[],
            patience.into(),
        )
    }

    /// The same about another revision, whose cursor is about several.
    pub(super) fn of_ref(call: &Call<'_>, reference: &str, patience: Option<Duration>) -> Result<Self> {
        let asked = Asked::of(call)?;
        let cursor = asked.cursor.clone();
        let part = Asked {
            reference: reference.to_owned(),
            cursor: None,
            ..asked
        };
        let mut question = Self::about(call, part, &[], patience)?;
        question.asked.cursor = cursor;
        Ok(question)
    }

    fn about(call: &Call<'_>, asked: Asked, files: &[RepoPath], patience: Option<Duration>) -> Result<Self> {
        let (seen, old) = call.desk()?.look(Looking {
            reference: &asked.reference,
            files,
            patience,
            takes_last: asked.stale == Stale::Ignore,
            interrupt: call.interrupt,
            seat: call.seat,
            progress: call.progress,
        })?;
        if let Some(job) = seen.building.as_ref().filter(|_| asked.stale == Stale::Error) {
            return Err(Failure::new(
                format!("this revision is still being indexed: {}", job.to_text()),
                "ask again later, or with stale=warn for what can be told now",
            )
            .into());
        }
        let paths = globs(call, &seen, &asked.paths)?;
        let filter = FileFilter::new(&paths, &asked.langs, asked.tests)?;
        let key = CursorKey::new(&seen.view, &asked.question);
        let after = asked.cursor.as_deref().map(|cursor| key.read(cursor)).transpose()?;
        Ok(Self {
            asked,
            seen,
            filter,
            after,
            old,
            key,
            is_for_once: false,
            hold: None,
        })
    }

    /// While the index is being built: indexes in memory the files that are likely to answer. Returns whether no other file can.
    pub(super) fn fill(&mut self, call: &Call<'_>, sought: &Sought) -> Result<bool> {
        let Some(job) = &self.seen.building else {
            return Ok(true);
        };
        self.hold.get_or_insert_with(|| job.hold());
        let workspace = call.workspace()?;
        let found = likely(
            &self.seen.view,
            &workspace.repository,
            sought,
            &self.filter,
            workspace.build_options().max_blob_bytes,
            call.reading_ends(),
            call.interrupt,
        );
        self.seen = call.desk()?.with_files(&self.seen, &found.files, call.interrupt)?;
        self.is_for_once = !self.is_indexed();
        Ok(found.is_all)
    }

    /// The lines of a file around one of them.
    pub(super) fn text_around(&self, call: &Call<'_>, file: FileId, line: u32) -> Result<String> {
        const LINES_BEFORE: u32 = 5;
        const LINES: usize = 30;
        let Source::Bytes(bytes) = self.sources(call)?.reader().read(file)? else {
            return Ok(String::new());
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines = text
            .lines()
            .skip(line.saturating_sub(LINES_BEFORE) as usize)
            .take(LINES);
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Whether every file is indexed that can be.
    pub(super) fn is_indexed(&self) -> bool {
        self.seen.building.is_none() || n_not_indexed(&self.seen.view) == 0
    }

    /// What files are read through.
    pub(super) fn sources<'a>(&'a self, call: &'a Call<'_>) -> Result<Sources<'a>> {
        Ok(Sources::new(&self.seen.view, &call.workspace()?.repository).until(call.interrupt))
    }

    /// Whether a path is that of a file.
    pub(super) fn is_path(&self, path: &str) -> bool {
        self.seen.view.find_text(&typed(path)).is_some()
    }

    /// How many results were told before.
    pub(super) fn n_told(&self) -> usize {
        self.after.map_or(0, |(n_told, _)| n_told as usize)
    }

    /// A cursor to what comes after a position; none where another answer would not come from the same files.
    pub(super) fn cursor(&self, position: (u32, u32)) -> Option<String> {
        (!self.is_for_once).then(|| self.key.write(position))
    }

    /// Fails while files are not indexed.
    pub(super) fn needs_index(&self, what: &str, hint: &str, retry: Option<Value>) -> Result<()> {
        let Some(job) = self.seen.building.as_ref().filter(|_| !self.is_indexed()) else {
            return Ok(());
        };
        let told = job.to_text();
        let failure = Failure::new(format!("{what}, the index is being built: {told}"), hint);
        Err(Failure { retry, ..failure }.into())
    }

    /// What an answer is about that an index is needed for.
    pub(super) fn provenance(&self) -> ProvenanceOut {
        let mut provenance = self.provenance_of_files();
        let n_missing = n_not_indexed(&self.seen.view);
        if let Some(job) = self.seen.building.as_ref().filter(|_| n_missing > 0) {
            provenance.also_incomplete(format!(
                "this revision is being indexed ({}, {:.0} s so far): {n_missing} of {} files are not indexed yet; ask again for the full \
                 answer",
                job.to_text(),
                job.advance().elapsed.as_secs_f64(),
                self.seen.view.n_files()
            ));
        }
        provenance
    }

    /// What an answer is about that the files alone are enough for.
    pub(super) fn provenance_of_files(&self) -> ProvenanceOut {
        let mut provenance = ProvenanceOut::of(&self.seen.view);
        if self.seen.is_listed {
            provenance.still_building();
        }
        if let Some(note) = self.seen.note {
            provenance.also_note(note.to_owned());
        }
        if let Some(old) = self.old {
            provenance.also_incomplete(format!(
                "told is the state of {:.0} s ago; the present one is still being indexed",
                old.as_secs_f64()
            ));
        }
        provenance
    }

    /// Why there is nothing, where the files that were asked for are not there.
    pub(super) fn why_nothing(&self, call: &Call<'_>) -> Result<Option<String>> {
        if self.asked.paths.is_empty() {
            return Ok(None);
        }
        let filter = FileFilter::new(&globs(call, &self.seen, &self.asked.paths)?, &[], Tests::Any)?;
        let view = &self.seen.view;
        let is_there = view.files().any(|(id, _)| filter.passes(view, id));
        Ok((!is_there).then(|| {
            let paths = self.asked.paths.join(", ");
            format!(
                "no file of {} matches path {paths}; outline view=tree shows what there is",
                self.asked.reference
            )
        }))
    }
}

/// Patterns from the root of the repository, however they were written. What is the path of a file is no pattern.
fn globs(call: &Call<'_>, seen: &Seen, paths: &[String]) -> Result<Vec<String>> {
    let workspace = call.workspace()?;
    let glob = |path: &str| {
        let path = inside(workspace, path);
        match seen.view.find_text(&path) {
            Some(_) => literal(&path),
            None => path.into_owned(),
        }
    };
    let both = |path: &String| match path.strip_prefix('!') {
        Some(path) => format!("!{}", glob(path)),
        None => glob(path),
    };
    Ok(paths.iter().map(both).collect())
}

/// A pattern that matches a path alone.
fn literal(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for letter in path.chars() {
        if "*?[]{}\\!".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// What an answer is about that is not about files; nothing where there is no repository.
pub(super) fn beside(call: &Call<'_>, asked: &Asked) -> Option<ProvenanceOut> {
    let desk = call.desk().ok()?;
    let reference = desk.checked(&asked.reference).ok()?;
    let target = desk.workspace.target(reference).ok()?;
    Some(ProvenanceOut::beside(&desk.workspace, reference, target))
}
