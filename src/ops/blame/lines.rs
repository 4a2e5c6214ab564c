//! Blames the lines of a file as git does, and sums them up by definition or owner.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::rows::{BlameRow, CommitOut, LineOut, SymbolOut, owner_out};
use super::{Answer, BlameBy, Question, no_definition};
use crate::git::{Blame as GitBlame, BlameOptions, BlamedCommit, FileMode};
use crate::history::{Boundary, FileShapes, SymbolKey, Who};
use crate::model::{CommitId, RepoPath};
use crate::ops::record::person_out;
use crate::ops::target::n_lines_with;
use crate::query::{
    BlamedLine, Gaps, ReadError, SymbolBlame, blame_by_symbol, blame_over_changes, kind_name, line_owners, timestamp,
};
use crate::session::{Context as _, OpError, Result, Uncommitted};

/// A file and the commits of its lines.
struct BlamedFile {
    path: RepoPath,
    file: FileShapes,
    lines: Vec<BlamedLine>,
    blame: GitBlame,
}

impl Question<'_> {
    pub(super) fn add_file(
        &self,
        answer: &mut Answer,
        path: &RepoPath,
        lines: Option<(u32, u32)>,
        symbol: Option<&SymbolKey>,
        unless_asked: BlameBy,
    ) -> Result<()> {
        answer.target.path = symbol.map_or_else(|| path.to_string(), SymbolKey::id);
        let found = self.blamed(path, lines, symbol)?;
        answer.notes.clone_from(&found.blame.notes);
        if found.blame.commits.values().any(|commit| commit.is_boundary) {
            let opened = self.targets.opened;
            let mut gaps = Gaps::of(&opened.history, &opened.reached)?;
            // Git can read commits that are not recorded, but not those that a shallow clone lacks.
            gaps.boundaries.retain(|name, _| *name == Boundary::Shallow.name());
            gaps.keep_renames([]);
            answer.incomplete = gaps.sentences();
        }
        let args = self.args;
        if args.all_changes {
            let why = "commits that only moved, renamed or reformatted a definition are counted only after \
                `codescout index --history`, and not with options for lines";
            answer.notes.push(why.to_owned());
        }
        let is_changed = self.targets.uncommitted.iter().any(|change| change.path == *path);
        if is_changed && (args.ignore_whitespace || args.moved || args.copied > 0) {
            let why = "the file has uncommitted changes: every changed line counts as uncommitted, because \
                whitespace, moves and copies are only detected in commits";
            answer.notes.push(why.to_owned());
        }
        // A file without definitions is blamed by line.
        let unless_asked = if found.file.shapes.is_empty() {
            BlameBy::Line
        } else {
            unless_asked
        };
        match self.args.by.unwrap_or(unless_asked) {
            BlameBy::Line => {
                answer.by = "line";
                answer.rows = lines_out(&found).into_iter().map(BlameRow::Line).collect();
            }
            BlameBy::Owner => {
                answer.by = "owner";
                let owners = line_owners(&found.lines, &found.blame);
                answer.rows = owners.iter().map(owner_out).map(BlameRow::Owner).collect();
            }
            BlameBy::Symbol => {
                answer.by = "symbol";
                answer.basis = Some("lines");
                let lines: BTreeSet<u32> = found.lines.iter().map(|(line, _)| *line).collect();
                let of_file = blame_by_symbol(&found.file, &found.lines, &found.blame);
                let is_meant = |found: &&SymbolBlame| match symbol {
                    Some(key) => found.name == key.name && found.nth == key.nth,
                    None => lines.range(found.start_line..=found.end_line).next().is_some(),
                };
                let symbols = of_file.iter().filter(is_meant);
                answer.rows = symbols
                    .map(|symbol| BlameRow::Symbol(symbol_out(path, symbol, &found.blame)))
                    .collect();
            }
        }
        Ok(())
    }

    /// Blames the file at the revision, or only the requested lines.
    fn blamed(&self, path: &RepoPath, lines: Option<(u32, u32)>, symbol: Option<&SymbolKey>) -> Result<BlamedFile> {
        let targets = self.targets;
        let changed = targets.uncommitted.iter().find(|change| change.path == *path);
        let file = self.file(path, changed)?;
        let wanted = match symbol {
            Some(key) => {
                let shape = file.find(&key.name, key.nth).ok_or_else(|| no_definition(path, key))?;
                Some(file.lines_of(shape.range))
            }
            None => lines,
        };
        let n_lines = n_lines_with(path, &file.bytes, wanted.map_or(0, |(first, _)| first))?;
        let committed_path = changed
            .and_then(|change| change.origin.clone())
            .unwrap_or_else(|| path.clone());
        let commit = targets.opened.target.and_then(|target| target.commit);
        let is_committed = targets.committed_entry(&committed_path)?;
        let (blamed, blame) = match (commit, is_committed) {
            (Some(commit), Some(entry)) => {
                let mut options = self.options()?;
                // Lines of a changed file can be mapped to the committed file only after all of it was blamed.
                options.lines = wanted
                    .filter(|_| changed.is_none())
                    .map(|(first, last)| (first, last.min(n_lines)));
                let repository = &targets.workspace.repository;
                let mut blame = repository.blame(commit, &committed_path, &options, targets.ctx.interrupt)?;
                let mut blamed = blame.lines.iter().map(|line| (line.line, Some(line.clone()))).collect();
                if changed.is_some() {
                    let committed = targets
                        .workspace
                        .records()
                        .content(&committed_path, entry, &mut None)?
                        .unwrap_or_default();
                    blamed = blame_over_changes(&blame, &committed, &file.bytes);
                    self.credit_merged(path, &file.bytes, &mut blamed, &mut blame)?;
                }
                (blamed, blame)
            }
            _ => {
                let mut all = (1..=n_lines).map(|line| (line, None)).collect();
                let mut blame = GitBlame::default();
                self.credit_merged(path, &file.bytes, &mut all, &mut blame)?;
                (all, blame)
            }
        };
        Ok(BlamedFile {
            path: path.clone(),
            lines: within(blamed, wanted),
            blame,
            file,
        })
    }

    /// Reads the file at the revision.
    fn file(&self, path: &RepoPath, changed: Option<&Uncommitted>) -> Result<FileShapes> {
        let targets = self.targets;
        let not_there = || {
            OpError::new(
                format!("no file {:?} at {}", path.to_text(), targets.reference),
                format!("see where it went: history {}", path.to_text()),
            )
        };
        let not_here = || {
            OpError::new(
                format!("the content of {:?} is missing or damaged in git", path.to_text()),
                format!(
                    "{}; history {} shows what is recorded",
                    targets.workspace.records().how_to_get_objects(),
                    path.to_text()
                ),
            )
        };
        let is_submodule = || {
            OpError::from(ReadError::Submodule {
                path: path.to_text().into(),
            })
        };
        Err(match (targets.shapes(path)?, changed) {
            (Some(file), _) => return Ok(file),
            (None, Some(Uncommitted { new: Some(entry), .. })) if entry.mode == FileMode::Submodule => is_submodule(),
            (None, None) => match targets.committed_entry(path)? {
                Some(entry) if entry.mode == FileMode::Submodule => is_submodule(),
                Some(entry) => targets.too_large(path, entry)?.unwrap_or_else(not_here),
                None => not_there(),
            },
            _ => not_there(),
        })
    }

    /// Attributes uncommitted lines to the parents of an unfinished merge, as git does. A file that is identical in one
    /// parent is attributed to it as a whole. Otherwise each parent gets the lines that no earlier parent has.
    fn credit_merged(
        &self,
        path: &RepoPath,
        now: &[u8],
        lines: &mut Vec<BlamedLine>,
        blame: &mut GitBlame,
    ) -> Result<()> {
        let workspace = self.targets.workspace;
        for head in workspace.repository.merge_heads()? {
            let mut reader = workspace.repository.reader();
            let tree = reader.commit(head)?.tree;
            let Some(entry) = reader.entry_at(tree, path)? else {
                continue;
            };
            let theirs = workspace
                .records()
                .content(path, entry.into(), &mut None)?
                .unwrap_or_default();
            let options = self.options()?;
            let of_head = workspace
                .repository
                .blame(head, path, &options, self.targets.ctx.interrupt)?;
            let credited = blame_over_changes(&of_head, &theirs, now);
            blame.commits.extend(of_head.commits);
            if theirs == now {
                *lines = credited;
                break;
            }
            for (line, credited) in lines.iter_mut().zip(credited) {
                if line.1.is_none() {
                    *line = credited;
                }
            }
        }
        Ok(())
    }

    fn options(&self) -> Result<BlameOptions> {
        let args = self.args;
        let mut ignored = Vec::new();
        for revision in &args.ignore_revs {
            let resolved = self.targets.workspace.repository.resolve(revision)?;
            ignored.push(resolved.commit.with_context(|| format!("{revision} is not a commit"))?);
        }
        let absolute = |file: &PathBuf| {
            let found = std::path::absolute(file).ok().filter(|path| path.is_file());
            found.ok_or_else(|| {
                OpError::new(
                    format!("there is no file {}", file.display()),
                    "--ignore-revs-file needs a file with one commit id per line",
                )
            })
        };
        Ok(BlameOptions {
            ignores_blanks: args.ignore_whitespace,
            follows_moves: args.moved,
            follows_copies: args.copied,
            ignored,
            ignore_files: args
                .ignore_revs_files
                .iter()
                .map(absolute)
                .collect::<Result<_, OpError>>()?,
            lines: None,
        })
    }
}

fn within(lines: Vec<BlamedLine>, wanted: Option<(u32, u32)>) -> Vec<BlamedLine> {
    let Some((first, last)) = wanted else { return lines };
    lines
        .into_iter()
        .filter(|(line, _)| (first..=last).contains(line))
        .collect()
}

fn commit_out(id: CommitId, commit: &BlamedCommit) -> CommitOut {
    let author = Who {
        name: commit.author.name.clone(),
        email: commit.author.email.clone(),
    };
    CommitOut {
        commit: id.to_string(),
        author: person_out(&author),
        date: timestamp(commit.author.time, commit.author.utc_offset),
        subject: commit.subject.to_string(),
        boundary: commit.is_boundary,
    }
}

fn lines_out(found: &BlamedFile) -> Vec<LineOut> {
    let texts: Vec<&[u8]> = found.file.bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let line_out = |(number, line): &BlamedLine| {
        let text = texts.get(*number as usize - 1).copied().unwrap_or_default();
        let commit = line
            .as_ref()
            .and_then(|line| Some((line, found.blame.commits.get(&line.commit)?)));
        let is_elsewhere = line.as_ref().filter(|line| line.path != found.path);
        LineOut {
            line: *number,
            commit: commit.map(|(line, commit)| commit_out(line.commit, commit)),
            from_path: is_elsewhere.map(|line| line.path.to_string()),
            from_line: line.as_ref().map(|line| line.original_line),
            text: String::from_utf8_lossy(text.strip_suffix(b"\n").unwrap_or(text)).into_owned(),
            shows_subject: found.lines.len() == 1,
        }
    };
    found.lines.iter().map(line_out).collect()
}

fn symbol_out(path: &RepoPath, symbol: &SymbolBlame, blame: &GitBlame) -> SymbolOut {
    let key = SymbolKey {
        path: path.clone(),
        name: symbol.name.clone(),
        nth: symbol.nth,
    };
    SymbolOut {
        id: key.id(),
        name: symbol.name.clone(),
        kind: kind_name(symbol.kind),
        start_line: symbol.start_line,
        end_line: symbol.end_line,
        last: symbol.last.and_then(|id| Some(commit_out(id, blame.commits.get(&id)?))),
        uncommitted_lines: symbol.n_uncommitted,
        commits: symbol.n_commits,
        owners: symbol.owners.iter().map(owner_out).collect(),
    }
}
