//! `edit`: changes files of the worktree by operations on definitions, sections, keys and text, all or none.
//!
//! `crate::edit` applies the operations to each file, and then [`crate::git::Rewriter`] replaces the files.

mod replace;
mod uses;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ask::Ask;
use super::op::{Op, Page, PageOf, Paging, Row};
use super::paths::{inside, inside_here};
use super::question::beside;
use super::sink::{Recorded, Sink, Style};
use crate::edit::{Batch, Edited, MAX_FILE_BYTES, OpenFile, Opening, Operation, Part, Verb, parts_of};
use crate::git::{Rewrite, Rewriter, Unread, WorkTreeReader, check_path};
use crate::model::count::count;
use crate::model::unprintable::{is_unprintable, visible};
use crate::model::{RepoPath, without_placeholders};
use crate::session::{OpError, Result};

/// Time to wait for another edit.
const PATIENCE: Duration = Duration::from_secs(8);
/// Maximum total size of the files of an edit, before and after.
const MAX_BYTES: usize = 128 << 20;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["edits"]))]
pub(crate) struct Edit {
    /// The operations.
    #[arg(skip)]
    #[schemars(description = "applied together or not at all; targets refer to the files before")]
    pub(crate) edits: Vec<Operation>,
    /// Print the patch, but change nothing
    #[arg(long)]
    #[schemars(description = "only return the patch")]
    pub(crate) dry_run: bool,
    /// Accept files with more syntax errors than before
    #[arg(long)]
    #[schemars(description = "accept new syntax errors")]
    pub(crate) allow_errors: bool,
    /// Remove definitions that other code still uses
    #[arg(long)]
    #[schemars(description = "remove what is still used")]
    pub(crate) allow_uses: bool,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    dry_run: bool,
    files: Vec<FileOut>,
    /// Files of an earlier edit that was interrupted, and is complete now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    completed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A changed file.
#[derive(Clone, Debug, Serialize)]
struct FileOut {
    path: String,
    change: &'static str,
    old_blob: Option<String>,
    blob: Option<String>,
}

/// The patch of a file.
#[derive(Debug, Serialize)]
pub(crate) struct PatchOut {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    /// True if the patch has bytes that are not UTF-8, which its text cannot show.
    lossy: bool,
    #[serde(skip)]
    bytes: Vec<u8>,
}

impl Row for PatchOut {
    fn render(&self, out: &mut dyn Sink) {
        if let Some(patch) = &self.patch {
            out.diff(patch);
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        vec![&mut self.patch]
    }

    fn raw(&self) -> Option<(&[u8], &'static str)> {
        Some((&self.bytes, "text"))
    }
}

impl Op for Edit {
    type Facts = Facts;
    type Row = PatchOut;
    const WHEN_TOO_SLOW: &'static str = "use diff to see whether the files were changed before you repeat it";

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        self.batch().check()?;
        let mut writer = Writer::new(ask, self.dry_run)?;
        let edited = self.edited(&mut writer.files)?;
        let missed = self.check_uses(ask, &edited)?;
        let mut page = writer.write(&edited)?;
        page.notes.extend(missed);
        Ok(page)
    }
}

/// Changes files of the worktree.
pub(crate) struct Writer<'a> {
    /// `None` if nothing is written.
    rewriter: Option<Rewriter>,
    files: Files<'a>,
}

impl<'a> Writer<'a> {
    /// Locks the files of the worktree, unless nothing will be written. Fails for other revisions and repositories.
    pub(crate) fn new(ask: &'a Ask<'a>, dry_run: bool) -> Result<Self> {
        if ask.common.reference != "WORKTREE" {
            return Err(OpError::new(
                "only files of the worktree can be edited",
                "omit the revision",
            ));
        }
        if !ask.session.is_own {
            return Err(OpError::new(
                "this repository can only be read",
                "edit works in the repository in which the server was started",
            ));
        }
        let repository = &ask.session.workspace.repository;
        let rewriter = || ask.session.workspace.rewriter(PATIENCE, ask.call.ctx.interrupt);
        Ok(Self {
            rewriter: (!dry_run).then(rewriter).transpose()?,
            files: Files {
                ask,
                reader: repository.work_tree_reader()?,
                known: BTreeMap::new(),
            },
        })
    }

    /// Replaces the files, all or none, and returns the answer with the patches.
    pub(crate) fn write(mut self, edited: &[Edited]) -> Result<PageOf<Edit>> {
        let ask = self.files.ask;
        if let Some(rewriter) = &mut self.rewriter {
            if ask.call.ctx.is_interrupted() {
                return Err(OpError::interrupted());
            }
            let changed = edited.iter().map(|file| Rewrite {
                path: file.path.as_bytes().to_vec(),
                from: file.old.clone(),
                to: file.new.clone(),
                mode: None,
            });
            rewriter.apply(changed.collect())?;
            ask.session.files_changed();
        }
        let completed = self.rewriter.iter().flat_map(|rewriter| rewriter.completed());
        let completed = completed.map(|path| path.to_text().into_owned()).collect();
        Ok(page(ask, self.rewriter.is_none(), edited, completed))
    }
}

impl Edit {
    fn batch(&self) -> Batch<'_> {
        Batch {
            operations: &self.edits,
            allow_errors: self.allow_errors,
        }
    }

    /// Returns the files that the operations change, with their contents before and after.
    fn edited(&self, files: &mut Files<'_>) -> Result<Vec<Edited>> {
        let mut of_files: BTreeMap<RepoPath, Vec<(usize, Part)>> = BTreeMap::new();
        for (at, operation) in self.edits.iter().enumerate() {
            let (path, part) = files
                .find(operation)
                .map_err(|error| error.context(self.batch().label(at)))?;
            of_files.entry(path).or_default().push((at, part));
        }
        let mut edited = Vec::new();
        for (path, parts) in of_files {
            let file = files.known.remove(&path).flatten();
            let expects = parts.iter().filter_map(|(at, _)| self.edits[*at].expect.as_deref());
            let file = OpenFile::new(&path, file, expects, files.opening())?;
            edited.extend(file.edited(self.batch(), &parts, &mut files.reader)?);
        }
        let n_bytes = edited.iter().map(Edited::n_bytes).sum::<usize>();
        if n_bytes > MAX_BYTES {
            return Err(OpError::new(
                "the files are too large for one edit",
                "send fewer operations at once",
            ));
        }
        Ok(edited)
    }
}

/// The files that operations name.
struct Files<'a> {
    ask: &'a Ask<'a>,
    reader: WorkTreeReader,
    known: BTreeMap<RepoPath, Option<crate::git::ExactFile>>,
}

impl Files<'_> {
    fn opening(&mut self) -> Opening<'_> {
        Opening {
            reader: &mut self.reader,
            repository: &self.ask.session.workspace.repository,
            must_expect: self.ask.common.characters.is_some(),
        }
    }

    /// Finds the file and the part that an operation names.
    fn find(&mut self, operation: &Operation) -> Result<(RepoPath, Part)> {
        let workspace = &self.ask.session.workspace;
        let target = inside(workspace, &operation.target);
        if operation.op == Verb::Create {
            let target = inside_here(workspace, &operation.target).unwrap_or_else(|| target.into_owned());
            let path = RepoPath::new(without_placeholders(target.trim_start_matches("./")));
            self.check(&path)?;
            check_new(&path)?;
            if self.is_there(&path)? {
                return Err(OpError::new("the file exists", "use other operations to change it"));
            }
            return Ok((path, Part::Whole));
        }
        let mut refused = None;
        for (path, part) in parts_of(target.trim_start_matches("./")) {
            match self.check(&path) {
                Err(error) => refused = refused.or(Some(error)),
                Ok(()) if self.is_there(&path)? => return Ok((path, part)),
                Ok(()) => {}
            }
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        if let Some((path, lines)) = target.trim_start_matches("./").rsplit_once(':')
            && lines.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
            && self.is_there(&RepoPath::new(without_placeholders(path)))?
        {
            return Err(OpError::new(
                format!("{lines:?} is not a range of lines"),
                "lines count from 1, and the first comes first: path:10-20",
            ));
        }
        Err(OpError::new("there is no such file", "use create for a new file"))
    }

    fn check(&self, path: &RepoPath) -> Result<()> {
        check_path(path.as_bytes())?;
        if self.ask.visibility().hides(path.as_bytes()) {
            return Err(OpError::hidden(&path.to_text()));
        }
        let workspace = &self.ask.session.workspace;
        let place = workspace
            .repository
            .work_dir()
            .map(|root| root.join(OsStr::from_bytes(path.as_bytes())));
        if place.is_some_and(|place| place.starts_with(workspace.storage.root())) {
            return Err(OpError::failed(format!(
                "{} is in the index of codescout",
                path.to_text()
            )));
        }
        Ok(())
    }

    /// Reads the file at a path, if there is one.
    fn is_there(&mut self, path: &RepoPath) -> Result<bool> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.is_some());
        }
        let found = match self.reader.read_exact(path, MAX_FILE_BYTES) {
            Ok(Some(file)) => Some(file),
            Ok(None) => {
                return Err(OpError::new(
                    format!("{} is a symbolic link", path.to_text()),
                    "edit the file that it refers to",
                ));
            }
            Err(Unread::Absent) => None,
            Err(error) => return Err(OpError::failed(format!("cannot read {}: {error}", path.to_text()))),
        };
        let is_there = found.is_some();
        self.known.insert(path.clone(), found);
        Ok(is_there)
    }
}

/// Fails if the path of a new file has characters that are not seen, or change how the rest is seen.
fn check_new(path: &RepoPath) -> Result<()> {
    let has_hidden = |text: &str| text.contains(is_unprintable);
    if path.as_bytes().utf8_chunks().any(|chunk| has_hidden(chunk.valid())) {
        let shown = visible(&path.to_text()).into_owned();
        let hint = "choose a name that shows what it is";
        return Err(OpError::new(
            format!("{shown} has invisible or control characters"),
            hint,
        ));
    }
    Ok(())
}

fn page(ask: &Ask<'_>, dry_run: bool, edited: &[Edited], completed: Vec<String>) -> PageOf<Edit> {
    let is_command = ask.common.characters.is_none();
    let out = |file: &Edited| FileOut {
        path: file.path.to_text().into_owned(),
        change: file.change(),
        old_blob: file.old_blob.clone(),
        blob: file.new_blob.clone(),
    };
    let row = |file: &Edited| {
        let bytes = file.patch();
        PatchOut {
            path: file.path.to_text().into_owned(),
            patch: Some(String::from_utf8_lossy(&bytes).into_owned()),
            lossy: std::str::from_utf8(&bytes).is_err(),
            bytes,
        }
    };
    let warnings: Vec<String> = edited.iter().flat_map(|file| file.warnings.iter().cloned()).collect();
    let facts = Facts {
        dry_run,
        files: edited.iter().map(out).collect(),
        completed,
        warnings,
    };
    let rows: Vec<PatchOut> = edited.iter().map(row).collect();
    let n_rows = rows.len();
    let paging = Paging::numbered(None, 0, n_rows, usize::MAX);
    let mut page = Page::new(beside(ask), facts, rows, paging);
    let facts = &page.facts;
    page.notes.extend(facts.warnings.iter().cloned());
    if !facts.completed.is_empty() {
        let files = count(facts.completed.len(), "file");
        page.notes.push(format!(
            "completed an edit of {files} that was interrupted: {}",
            facts.completed.join(", ")
        ));
    }
    if n_rows == 0 && facts.completed.is_empty() {
        page.notes.push("the edit changes nothing".to_owned());
    }
    page.is_empty = n_rows == 0 && facts.completed.is_empty();
    // On the command line, the patch is all of the output, so that `git apply` can read it.
    if !is_command {
        page.head = Recorded::of(|out| {
            for file in &facts.files {
                out.span(Style::Fact, if dry_run { "would be " } else { "" });
                out.span(Style::Fact, &format!("{} ", file.change));
                out.span(Style::Path, &file.path);
                out.line(&file.blob.as_ref().map_or(String::new(), |blob| format!(" blob {blob}")));
            }
        });
    }
    page
}
