//! Prepares an answer: opens the view of a revision, selects files, and manages the pages of the answer.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use super::ask::{Ask, FileSelection, Stale};
use super::paths::{literal, pattern};
use super::precise::{Asked, Wanted, ask_server};
use super::provenance::ProvenanceOut;
use crate::link::{Linker, Links};
use crate::model::{Hint, RepoPath, typed};
use crate::precise::FactsFile;
use crate::query::{
    CursorKey, FileFilter, LikelyQuery, Package, Sought, Source, Sources, likely, n_not_indexed, nearest,
};
use crate::session::{Build, Edits, Hold, OpError, Result, SeenView, ViewRequest};
use crate::snapshot::{FileId, View};

/// What a path that names a package begins with.
const PACKAGE: &str = "package:";

pub(crate) struct Question<'a> {
    ask: &'a Ask<'a>,
    /// The view of the revision's current state.
    pub(crate) seen: Arc<SeenView>,
    /// The selected files.
    pub(crate) filter: FileFilter,
    /// The position of the page; `None` for the first page.
    pub(crate) after: Option<(u32, u32)>,
    reference: String,
    selection: FileSelection,
    /// The age of the view, if it is not current because the current state is still being indexed.
    old: Option<Duration>,
    key: CursorKey,
    /// True if files were indexed for this answer only. Then no cursor is returned, because another call may see other
    /// files.
    is_for_once: bool,
    /// Pauses the build while the question is being answered.
    hold: Option<Hold>,
    /// What came of asking a language server.
    asked: Option<Asked>,
    /// The facts with those that the server has said.
    facts: Option<Arc<Vec<FactsFile>>>,
    /// Manifests of packages that cannot be read, if the question is about packages.
    unreadable: Vec<String>,
}

/// The revision and files that a [`Question`] is about.
pub(crate) struct About<'a> {
    /// The revision; `None` for the revision of the call.
    pub(crate) reference: Option<&'a str>,
    /// The options that select files.
    pub(crate) selection: &'a FileSelection,
    /// Paths in ascending order. If any of them is a file, the view needs to contain only these files. Empty for all
    /// files.
    pub(crate) files: &'a [RepoPath],
    /// Determines what to do if the revision is not indexed.
    pub(crate) build: Build,
    /// The level of detail needed for uncommitted files.
    pub(crate) edits: Edits,
    /// What is looked for, if a store can choose the files that may have it.
    pub(crate) sought: Option<Sought>,
    /// False for a part of an answer if the cursor of the call belongs to another part.
    pub(crate) has_cursor: bool,
}

impl<'a> About<'a> {
    /// Selects the files of the call's revision that match `selection`.
    pub(crate) fn files(selection: &'a FileSelection) -> Self {
        Self {
            reference: None,
            selection,
            files: &[],
            build: Build::Wait,
            edits: Edits::Extracted,
            sought: None,
            has_cursor: true,
        }
    }

    /// Sets what is looked for.
    pub(crate) fn seeking(self, sought: Sought) -> Self {
        let sought = Some(sought.in_langs(&self.selection.lang));
        Self { sought, ..self }
    }

    /// Like [`Self::files`], for an answer that needs the index of all files.
    pub(crate) fn indexed_files(selection: &'a FileSelection) -> Self {
        Self {
            build: Build::Need,
            ..Self::files(selection)
        }
    }

    /// Like [`Self::files`], for an answer that reads the files themselves: nothing is built for it.
    pub(crate) fn unindexed_files(selection: &'a FileSelection) -> Self {
        Self {
            build: Build::Never,
            edits: Edits::Listed,
            has_cursor: false,
            ..Self::files(selection)
        }
    }
}

impl<'a> Question<'a> {
    /// Opens the view of the revision.
    pub(crate) fn new(ask: &'a Ask<'a>, about: &About<'_>) -> Result<Self> {
        let reference = about.reference.unwrap_or(&ask.common.reference);
        let is_fleet = ask.session.workspace.fleet.is_some();
        if is_fleet && !matches!(reference, "WORKTREE" | "HEAD") {
            return Err(OpError::new(
                "a fleet is searched at the commits that were stored",
                "to read another revision, use codescout --repo DIR, without fleet (over MCP: repo)",
            ));
        }
        let request = ViewRequest {
            files: about.files,
            build: about.build,
            edits: about.edits,
            takes_last: ask.common.stale == Stale::Ignore,
            ..ViewRequest::of(reference)
        };
        let (mut seen, old) = ask.session.view(request, &ask.call)?;
        if let Some(job) = seen.building.as_ref().filter(|_| ask.common.stale == Stale::Error) {
            return Err(OpError::new(
                format!("this revision is still being indexed: {}", job.to_text()),
                "try again later, or use stale=warn for a partial answer",
            ));
        }
        let FileSelection {
            path,
            lang,
            tests,
            packages: _,
            linked,
        } = about.selection;
        let of_fleet = if is_fleet && linked.is_empty() {
            named_in(ask, path)
        } else {
            Vec::new()
        };
        let linked = if is_fleet && linked.is_empty() {
            &of_fleet
        } else {
            linked
        };
        if !linked.is_empty() {
            let sought = about.sought.as_ref();
            seen = ask
                .session
                .with_linked(seen, linked, sought, ask.opens, request, &ask.call)?;
        }
        let (of_package, path): (Vec<&String>, Vec<&String>) = path.iter().partition(|path| path.starts_with(PACKAGE));
        let mut filter = FileFilter::new(&globs(ask, &seen, &path), lang, tests.to_query())?;
        let mut unreadable = Vec::new();
        let of_package = of_package.into_iter().map(|path| &path[PACKAGE.len()..]);
        let wanted: Vec<&str> = of_package
            .chain(about.selection.packages.iter().map(String::as_str))
            .collect();
        if !wanted.is_empty() {
            let sources = Sources::new(&seen.view, &ask.session.workspace.repository).until(ask.call.ctx.interrupt);
            let (packages, broken) = seen.packages(&sources)?;
            filter = filter.in_packages(selected_packages(packages, &wanted)?);
            unreadable = broken.clone();
        }
        let key = CursorKey::new(&seen.view, &ask.common.question);
        let cursor = ask.common.cursor.as_deref().filter(|_| about.has_cursor);
        let after = cursor.map(|cursor| key.read(cursor)).transpose()?;
        Ok(Self {
            ask,
            seen,
            filter,
            after,
            reference: reference.to_owned(),
            selection: about.selection.clone(),
            old,
            key,
            is_for_once: false,
            hold: None,
            asked: None,
            facts: None,
            unreadable,
        })
    }

    /// Returns what is known about the links of the view.
    pub(crate) fn links(&self) -> Arc<Links> {
        match &self.facts {
            Some(facts) => self.ask.session.links_with(&self.seen, facts),
            None => self.ask.session.links(&self.seen),
        }
    }

    /// Returns a linker for the view. `links` are the view's links.
    pub(crate) fn linker<'q>(&'q self, links: &'q Links) -> Linker<'q> {
        Linker::new(self.view(), links, self.interrupt())
    }

    /// Asks a language server, whose answer is then part of the view's links.
    pub(crate) fn ask_server(&mut self, wanted: Wanted) -> Result<()> {
        let links = self.links();
        let (asked, said) = ask_server(self.ask, self, &self.linker(&links), wanted)?;
        self.asked = Some(asked);
        let said = said.map(|said| said.to_file()).transpose()?;
        self.facts = said.map(|said| self.ask.session.facts_with(said));
        Ok(())
    }

    /// Returns true if a language server was asked and did not say all.
    pub(crate) fn lacks_server(&self) -> bool {
        matches!(self.asked, Some(Asked::Without(_)))
    }

    /// Returns the view.
    pub(crate) fn view(&self) -> &View {
        &self.seen.view
    }

    /// Indexes files in memory that are likely to be relevant, while the index is being built. Returns true if no other
    /// file can be relevant.
    pub(crate) fn fill(&mut self, sought: &LikelyQuery) -> Result<bool> {
        let (Some(job), Some(until)) = (&self.seen.building, self.ask.call.short_reading_ends()) else {
            return Ok(true);
        };
        if !self.view().linked().is_empty() {
            return Ok(false);
        }
        self.hold.get_or_insert_with(|| job.hold());
        let workspace = &self.ask.session.workspace;
        let found = likely(
            &self.seen.view,
            &workspace.repository,
            sought,
            &self.filter,
            workspace.build_options().max_blob_bytes,
            until,
            self.ask.call.ctx.interrupt,
        );
        self.seen = self
            .ask
            .session
            .with_files(&self.seen, &found.files, self.ask.call.ctx.interrupt)?;
        self.is_for_once = !self.is_indexed();
        Ok(found.is_all)
    }

    /// Returns a line of a file with the lines around it.
    pub(crate) fn text_around(&self, file: FileId, line: u32) -> Result<String> {
        const LINES_BEFORE: u32 = 5;
        const LINES: usize = 30;
        let Source::Bytes(bytes) = self.sources().reader().read(file)? else {
            return Ok(String::new());
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines = text
            .lines()
            .skip(line.saturating_sub(LINES_BEFORE) as usize)
            .take(LINES);
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Returns true if all files that can be indexed are indexed.
    pub(crate) fn is_indexed(&self) -> bool {
        self.seen.building.is_none() || n_not_indexed(&self.seen.view) == 0
    }

    /// Returns the sources of the files' bytes.
    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources::new(&self.seen.view, &self.ask.session.workspace.repository).until(self.ask.call.ctx.interrupt)
    }

    /// Returns the flag that ends the work when set.
    pub(crate) fn interrupt(&self) -> &AtomicBool {
        self.ask.call.ctx.interrupt
    }

    /// Returns true if `path` is the path of a file.
    pub(crate) fn is_path(&self, path: &str) -> bool {
        self.seen.view.find_text(&typed(path)).is_some()
    }

    /// Returns the number of results on earlier pages.
    pub(crate) fn n_before(&self) -> usize {
        self.after.map_or(0, |(n_before, _)| n_before as usize)
    }

    /// Returns the key for cursors of this answer. `None` if another call would not use the same files.
    pub(crate) fn key(&self) -> Option<CursorKey> {
        (!self.is_for_once).then_some(self.key)
    }

    /// Returns an error if files are not indexed yet.
    pub(crate) fn needs_index(&self, what: &str, hint: &str, retry: Option<Value>) -> Result<()> {
        let Some(job) = self.seen.building.as_ref().filter(|_| !self.is_indexed()) else {
            return Ok(());
        };
        let error = OpError::new(format!("{what}; the index is being built: {}", job.to_text()), hint);
        Err(match retry {
            Some(retry) => error.with_retry(retry),
            None => error,
        })
    }

    /// Returns the provenance of an answer that depends on the index.
    pub(crate) fn provenance(&self) -> ProvenanceOut {
        let mut provenance = self.provenance_of_files();
        let building = self.seen.building.as_ref();
        let building = building.map(|job| (job, n_not_indexed(&self.seen.view)));
        if let Some((job, n_missing)) = building.filter(|(_, n_missing)| *n_missing > 0) {
            provenance.also_building(format!(
                "this revision is being indexed ({}, {:.0} s so far): {n_missing} of {} files are not indexed yet; \
                 repeat the call later for the full answer",
                job.to_text(),
                job.advance().elapsed.as_secs_f64(),
                self.seen.view.n_files()
            ));
        }
        provenance
    }

    /// Returns the provenance of an answer that depends only on the files.
    pub(crate) fn provenance_of_files(&self) -> ProvenanceOut {
        let mut provenance = ProvenanceOut::of(&self.seen.view);
        if self.seen.is_listed {
            provenance.still_building();
        }
        if let Some(note) = self.seen.note {
            provenance.also_note(note.to_owned());
        }
        let unreadable = self.unreadable.iter();
        unreadable.for_each(|path| provenance.also_incomplete(format!("cannot read {path}")));
        match &self.asked {
            Some(Asked::Said(what)) => provenance.also_note(what.clone()),
            Some(Asked::Without(why)) => provenance.also_incomplete(why.clone()),
            None => {}
        }
        if let Some(old) = self.old {
            provenance.also_building(format!(
                "this answer is for the files as they were {:.0} s ago; the current state is still being indexed",
                old.as_secs_f64()
            ));
        }
        provenance
    }

    /// Explains an empty answer if no file is selected.
    pub(crate) fn why_nothing(&self) -> Option<String> {
        let view = self.view();
        let is_there = self.filter.is_open() || view.files().any(|(id, _)| self.filter.passes(view, id));
        (!is_there).then(|| {
            let (reference, selection) = (&self.reference, self.selection.to_text());
            match self.ask.session.workspace.fleet {
                Some(_) => format!("none of the chosen files matches {selection}; grep reads all files"),
                None => format!("no file of {reference} matches {selection}; outline in view tree lists the files"),
            }
        })
    }
}

/// Returns the repositories of a fleet that all patterns name, as `NAME:/src/**` does, or `*` for all of them.
fn named_in(ask: &Ask<'_>, paths: &[String]) -> Vec<String> {
    let links = &ask.session.workspace.config.links;
    let wanted = paths.iter().filter(|path| !path.starts_with('!'));
    let names: Option<Vec<String>> = wanted.map(|path| Some(links.split(path)?.0.to_owned())).collect();
    names
        .filter(|names| !names.is_empty())
        .unwrap_or_else(|| vec!["*".to_owned()])
}

/// Converts patterns as typed to patterns relative to the repository root. The path of a file or directory is matched
/// literally.
fn globs(ask: &Ask<'_>, seen: &SeenView, paths: &[&String]) -> Vec<String> {
    let is_directory = |path: &str| {
        let start = format!("{path}/");
        let mut files = seen.view.files();
        !path.is_empty() && files.any(|(_, file)| file.path.starts_with(start.as_bytes()))
    };
    let glob = |typed: &&String| {
        let glob = pattern(&ask.session.workspace, typed);
        let (sign, path) = match glob.strip_prefix('!') {
            Some(path) => ("!", path),
            None => ("", &*glob),
        };
        let is_path = !path.ends_with('/') && (seen.view.find_text(path).is_some() || is_directory(path));
        let workspace = &ask.session.workspace;
        let is_in_any = workspace.fleet.is_some() && path.contains('/') && workspace.config.links.split(path).is_none();
        if is_in_any && !path.starts_with('*') {
            // Each repository is a folder.
            return format!("{sign}*:/{}", path.trim_start_matches('/'));
        }
        if is_path {
            format!("{sign}{}", literal(path))
        } else {
            glob
        }
    };
    paths.iter().map(glob).collect()
}

/// Returns the folders of all packages, with true for those with a wanted name: `NAME`, or `NAME+deps` with the packages
/// that it needs.
fn selected_packages(packages: &[Package], wanted: &[&str]) -> Result<HashMap<String, bool>> {
    let mut selected = BTreeSet::new();
    for wanted in wanted {
        let (name, has_needed) = match wanted.strip_suffix("+deps") {
            Some(name) => (name, true),
            None => (*wanted, false),
        };
        let numbers = (0..packages.len()).filter(|number| packages[*number].name == name);
        let mut waiting: Vec<usize> = numbers.collect();
        if waiting.is_empty() {
            let near = nearest(name, packages.iter().map(|package| package.name.as_str()));
            let hint = match near.as_slice() {
                [] => "codescout outline --view packages lists the packages".into(),
                near => Hint::did_you_mean(near),
            };
            return Err(OpError::not_found(format!("no package is called {name:?}"), hint));
        }
        while let Some(number) = waiting.pop() {
            if selected.insert(number) && has_needed {
                waiting.extend(&packages[number].needs);
            }
        }
    }
    let mut folders = HashMap::new();
    for (number, package) in packages.iter().enumerate() {
        *folders.entry(package.folder.clone()).or_default() |= selected.contains(&number);
    }
    Ok(folders)
}

/// Returns the provenance of an answer that does not depend on files; `None` outside a repository.
pub(crate) fn beside(ask: &Ask<'_>) -> Option<ProvenanceOut> {
    let reference = ask.session.checked(&ask.common.reference).ok()?;
    let target = ask.session.workspace.target(reference).ok()?;
    Some(ProvenanceOut::beside(&ask.session.workspace, reference, target))
}
