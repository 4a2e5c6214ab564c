//! `codescout ci`

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use super::Found;
use super::args::{CiArgs, CiCommand, Global, KeyArgs, RestoreArgs, SaveArgs};
use super::export::read_key;
use super::import::{BundleOut, TakenOut, size, trust_of};
use super::progress::CliProgress;
use super::render::{Output, note, one_line};
use crate::bundle::{BundleFile, Kind, ReadError, SigningKey};
use crate::config::Environment;
use crate::ingest::{Audit, ExportedCommits, ExportedFacts};
use crate::model::{CommitId, ErrorKind};
use crate::session::{
    Context as _, ImportOptions, Known, Packing, Result, Workspace, check_output, ensure, open_plain, write_whole,
};
use crate::sidecar::RealFolder;

/// Default location of the archive: a folder in the root of the worktree, and a file in it.
const DEFAULT_FOLDER: &str = ".codescout-ci";
const DEFAULT_NAME: &str = "index.bundle";

#[derive(Debug, Serialize)]
struct KeyOut {
    key: String,
    prefix: String,
    moving_key: String,
    tree: String,
}

#[derive(Debug, Serialize)]
struct RestoreOut {
    restored: bool,
    because: Option<String>,
    file: String,
    #[serde(flatten)]
    taken: Option<TakenOut>,
}

#[derive(Debug, Serialize)]
struct SaveOut {
    saved: bool,
    because: Option<String>,
    file: String,
    bytes: u64,
    blobs: u64,
    vectors: u64,
    commits: u64,
    fact_files: u64,
    took_ms: u64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &CiArgs, output: &mut Output) -> Result<Found> {
    match &args.command {
        CiCommand::Key(key) => show_key(workspace, global, key, output),
        CiCommand::Restore(restore) => run_restore(workspace, global, restore, output),
        CiCommand::Save(save) => run_save(workspace, global, save, output),
    }
}

fn show_key(workspace: &Workspace, global: &Global, args: &KeyArgs, output: &mut Output) -> Result<Found> {
    let target = workspace.target(&global.reference)?.context("no commits yet")?;
    let prefix = format!("codescout-{}-", workspace.pipeline());
    let keys = KeyOut {
        key: format!("{prefix}{}", target.tree),
        moving_key: format!("{prefix}{}", slug(&args.branch)),
        tree: target.tree.to_string(),
        prefix,
    };
    match (output.json, args.github, args.gitlab) {
        (true, ..) => output.json(&keys)?,
        (_, true, _) => output.put(&format!("key={}\nrestore-keys={}\n", keys.key, keys.prefix))?,
        (_, _, true) => output.put(&format!(
            "CODESCOUT_KEY={}\nCODESCOUT_MOVING_KEY={}\n",
            keys.key, keys.moving_key
        ))?,
        _ => output.put(&format!("{}\n{}\n", keys.key, keys.prefix))?,
    }
    Ok(Found::Something)
}

/// Converts a branch name to a part of a cache key. Replaces characters that caches do not accept by hyphens.
fn slug(branch: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' || c == '_' {
            c
        } else {
            '-'
        }
    };
    branch.chars().map(keep).collect()
}

fn run_restore(workspace: &Workspace, global: &Global, args: &RestoreArgs, output: &mut Output) -> Result<Found> {
    let path = path_of(workspace, args.file.as_deref())?;
    let options = ImportOptions {
        trust: trust_of(args.trust.as_deref())?,
        is_own: !args.compare,
        audit: Audit::default(),
    };
    let opened = open_plain(&path);
    if args.file.is_none() && opened.is_ok() {
        // A cache may restore only the archive, without the `.gitignore` next to it. An error from writing that file is
        // ignored.
        let _ = make_folder(&path, true);
    }
    let progress = CliProgress::new(global.quiet);
    let (taken, because) = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => (None, Some("no archive found".to_owned())),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        Ok(file) => match workspace.import(file, options, progress.ctx()) {
            Ok(taken) => {
                workspace.records().add_messages_of_head(progress.ctx())?;
                (Some(TakenOut::of(&taken)), None)
            }
            // An archive of another build or another repository is skipped, and the index is rebuilt. All other errors
            // are returned.
            Err(error) if error.kind == ErrorKind::OtherOrigin => (None, Some(format!("{error:#}"))),
            Err(error) => return Err(error.context(format!("cannot restore {}", path.display()))),
        },
    };
    let answer = RestoreOut {
        restored: taken.is_some(),
        because,
        file: path.display().to_string(),
        taken,
    };
    if output.json {
        output.json(&answer)?;
    } else {
        output.line(&match (&answer.taken, &answer.because) {
            (Some(taken), _) => format!("restored: {}", taken.text()),
            (None, because) => format!("not restored: {}", one_line(because.as_deref().unwrap_or_default())),
        })?;
    }
    Ok(answer.taken.as_ref().map_or(Found::Something, TakenOut::found))
}

fn run_save(workspace: &Workspace, global: &Global, args: &SaveArgs, output: &mut Output) -> Result<Found> {
    let started = Instant::now();
    let path = path_of(workspace, args.file.as_deref())?;
    let mut answer = SaveOut {
        saved: false,
        because: None,
        file: path.display().to_string(),
        bytes: 0,
        blobs: 0,
        vectors: 0,
        commits: 0,
        fact_files: 0,
        took_ms: 0,
    };
    let key = args.sign.as_deref().map(read_key).transpose()?;
    let untrusted = Environment::read().untrusted_job.filter(|_| !args.force);
    let known = workspace.known(
        std::slice::from_ref(&global.reference),
        CliProgress::new(global.quiet).ctx(),
    )?;
    let is_shallow = !workspace.repository.shallow_commits()?.is_empty();
    if args.history && is_shallow {
        note("commit history is not included: this clone is shallow");
    }
    let wants_commits = args.history && !is_shallow;
    let facts = known.facts()?;
    if let Some(why) = untrusted {
        answer.because = Some(format!("this job may run untrusted code ({why})"));
    } else if has_all(workspace, &path, &known, wants_commits, key.as_ref(), &facts) {
        answer.because = Some("the archive already has this tree".to_owned());
    } else {
        let commits = if wants_commits {
            commits_of(workspace, &known, global)?
        } else {
            None
        };
        let real = match &args.file {
            Some(file) => check_output(workspace, file)?,
            None => path.clone(),
        };
        make_folder(&real, args.file.is_none())?;
        let packing = Packing {
            kind: Kind::Ready,
            added: &workspace.added_profiles(),
            commits: commits.as_ref(),
            facts: &facts,
            key: key.as_ref(),
        };
        let pack = |packing| write_whole(&real, &path, |file: &mut File| workspace.pack(&known, packing, file));
        let packed = match pack(packing) {
            Err(error) if packing.commits.is_some() && error.kind == ErrorKind::TooLarge => {
                note(&format!("commit history is not included: {error:#}"));
                pack(Packing {
                    commits: None,
                    ..packing
                })?
            }
            packed => packed?,
        };
        let shown = BundleOut::of(&packed.header, None);
        (answer.saved, answer.bytes) = (true, packed.n_bytes);
        (answer.blobs, answer.vectors, answer.commits) = (shown.blobs, shown.vectors, shown.commits);
        answer.fact_files = shown.fact_files;
    }
    answer.took_ms = started.elapsed().as_millis() as u64;
    let said = match &answer.because {
        None => {
            let counted = [
                (answer.blobs, "blobs"),
                (answer.vectors, "vectors of other models"),
                (answer.commits, "commits"),
                (answer.fact_files, "files with facts of indexers"),
            ];
            let there = counted
                .iter()
                .filter(|(n, _)| *n > 0)
                .map(|(n, what)| format!("{n} {what}"));
            let there: Vec<String> = there.collect();
            format!("saved: {} in {}", there.join(", "), size(answer.bytes))
        }
        Some(because) => format!("not saved: {}", one_line(because)),
    };
    if output.json {
        output.json(&answer)?;
    } else if args.github {
        note(&said);
        output.put(&format!("saved={}\n", answer.saved))?;
    } else {
        output.line(&said)?;
    }
    Ok(Found::Something)
}

/// Returns the commit history for the archive. If this clone does not have all commits, returns `None` with a note, and
/// the archive is saved without history.
fn commits_of(workspace: &Workspace, known: &Known, global: &Global) -> Result<Option<ExportedCommits>> {
    let progress = CliProgress::new(global.quiet);
    match workspace.records().given_commits(&known.commits, progress.ctx()) {
        Err(error) if error.kind == ErrorKind::Incomplete => {
            note(&format!("commit history is not included: {error:#}"));
            Ok(None)
        }
        given => given.map(Some),
    }
}

/// Returns true if the archive at `path` need not be saved again: this build can import it, it has all trees and
/// vectors, it has the commits if they are wanted, it has exactly the facts, and it is signed by `key` if there is one.
fn has_all(
    workspace: &Workspace,
    path: &Path,
    known: &Known,
    wants_commits: bool,
    key: Option<&SigningKey>,
    facts: &ExportedFacts,
) -> bool {
    let Ok(bundle) = open_plain(path).map_err(ReadError::Io).and_then(BundleFile::open) else {
        return false;
    };
    let is_signed = key.is_none_or(|key| bundle.signer == Some(key.public()));
    let has_tip = |tip: &CommitId| bundle.header.has_commit(*tip, workspace.records().record_recipe());
    let has_commits = !wants_commits || known.commits.iter().all(has_tip);
    let has_trees = known.trees.iter().all(|&tree| bundle.header.has_tree(tree));
    // An archive is replaced if it was saved before all vectors were computed.
    let has_vectors = workspace.n_rows(known).into_iter().all(|(profile, n_rows)| {
        let mut added = bundle.header.added.iter();
        let added = added.find(|added| added.profile == profile.0);
        n_rows <= added.map_or(0, |added| added.rows.iter().map(|&n| n as usize).sum())
    });
    let has_facts = bundle.header.has_facts(facts);
    is_signed && workspace.takes(&bundle) && has_trees && has_commits && has_vectors && has_facts
}

/// Returns the path of the archive. Returns an error for a tracked file, which comes from the repository and not from a
/// cache, and for a link in the default location, which may point anywhere.
fn path_of(workspace: &Workspace, named: Option<&Path>) -> Result<PathBuf> {
    let repository = &workspace.repository;
    let Some(root) = repository.work_dir() else {
        return Ok(named.map_or_else(
            || repository.git_dir().join(DEFAULT_FOLDER).join(DEFAULT_NAME),
            Path::to_owned,
        ));
    };
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let (path, is_tracked) = match named {
        Some(path) => {
            let absolute = std::path::absolute(path)?;
            let inside = absolute.strip_prefix(root).ok();
            let tracked = inside.map(|path| repository.tracks_here(path.as_os_str().as_encoded_bytes()));
            check_output(workspace, path)?;
            (path.to_owned(), tracked.transpose()?.unwrap_or(false))
        }
        None => {
            let folder = root.join(DEFAULT_FOLDER);
            let path = folder.join(DEFAULT_NAME);
            let is_tracked = repository.tracks_here(DEFAULT_FOLDER.as_bytes())?;
            let leads_away = is_link(&folder) || is_link(&path);
            (path, is_tracked || leads_away)
        }
    };
    ensure!(
        !is_tracked,
        "{} is tracked by git or a symbolic link, so it is not used; name another file",
        path.display()
    );
    Ok(path)
}

/// Creates the archive's folder. If the folder is new or the default one, adds a `.gitignore`, so that the archive is
/// not committed.
fn make_folder(path: &Path, is_ours: bool) -> Result<()> {
    let is_there = path.parent().is_some_and(Path::exists);
    if is_there && !is_ours {
        return Ok(());
    }
    let made =
        RealFolder::of_file(path, true).and_then(|(folder, _)| match folder.create(OsStr::new(".gitignore"), b"*\n") {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created,
        });
    made.with_context(|| format!("cannot create {}", path.parent().unwrap_or(path).display()))
}
