//! Who wrote what stands there.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::Hinted;
use super::history::{CandidateOut, PersonOut, candidates_out, person_out, unread_changes};
use super::target::{Target, Targets};
use crate::git::{Blame, BlameOptions, BlamedCommit};
use crate::history::{Boundary, CommitHead, FileShapes, Shape, SymbolChange, SymbolKey, Who};
use crate::model::{CommitId, RepoPath};
use crate::query::{
    BlamedLine, Gaps, Owner, SymbolBlame, blame_by_symbol, blame_over_changes, change_owners, folder_owners, kind_name,
    line_owners, timestamp,
};

/// By what blame is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlameBy {
    /// By definition.
    Symbol,
    /// By line.
    Line,
    /// By author.
    Owner,
}

/// A question about who wrote something, but for what it is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlameQuestion {
    /// By what; without it by what fits the target.
    pub(crate) by: Option<BlameBy>,
    /// Whether commits count that only moved, renamed or reformatted a definition.
    pub(crate) counts_moves: bool,
    pub(crate) ignores_blanks: bool,
    pub(crate) follows_moves: bool,
    /// How far copies are followed, as `git blame -C` counts it.
    pub(crate) follows_copies: u8,
    /// Commits that are passed over.
    pub(crate) ignored: Vec<String>,
    /// Files with such commits.
    pub(crate) ignore_files: Vec<PathBuf>,
}

/// Who last changed what was asked about.
#[derive(Debug, Serialize)]
pub(crate) struct BlameBody {
    pub(crate) target: BlameTargetOut,
    pub(crate) by: &'static str,
    /// Of definitions: `changes`, the commits that changed each; `all_changes`, those that only moved, renamed or reformatted it too;
    /// `lines`, those that its lines come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) basis: Option<&'static str>,
    pub(crate) notes: Vec<String>,
    pub(crate) candidates: Vec<CandidateOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lines: Option<Vec<LineOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) symbols: Option<Vec<SymbolOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owners: Option<Vec<OwnerOut>>,
    /// What makes it partial.
    #[serde(skip)]
    pub(crate) incomplete: Vec<String>,
}

/// What was asked about.
#[derive(Debug, Serialize)]
pub(crate) struct BlameTargetOut {
    pub(crate) kind: &'static str,
    pub(crate) path: String,
}

/// A commit that lines come from.
#[derive(Debug, Serialize)]
pub(crate) struct CommitOut {
    pub(crate) commit: String,
    pub(crate) author: PersonOut,
    pub(crate) date: String,
    pub(crate) subject: String,
    pub(crate) boundary: bool,
}

/// A line and where it comes from.
#[derive(Debug, Serialize)]
pub(crate) struct LineOut {
    pub(crate) line: u32,
    #[serde(flatten)]
    pub(crate) commit: Option<CommitOut>,
    pub(crate) from_path: Option<String>,
    pub(crate) from_line: Option<u32>,
    pub(crate) text: String,
}

/// A definition and who wrote it.
#[derive(Debug, Serialize)]
pub(crate) struct SymbolOut {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    pub(crate) last: Option<CommitOut>,
    pub(crate) uncommitted_lines: u32,
    pub(crate) commits: u32,
    pub(crate) owners: Vec<OwnerOut>,
}

/// An author and how much is theirs.
#[derive(Debug, Serialize)]
pub(crate) struct OwnerOut {
    pub(crate) name: String,
    pub(crate) email: String,
    /// Lines of a file, changed paths of a folder.
    pub(crate) count: u32,
    pub(crate) commits: u32,
    pub(crate) share: f64,
    pub(crate) last: String,
}

impl BlameBody {
    /// By what definitions are blamed, in words.
    pub(crate) fn basis_sentence(&self) -> Option<&'static str> {
        Some(match self.basis? {
            "changes" => {
                "the last commit that changed each definition; a move, a rename or other formatting alone does not count"
            }
            "all_changes" => "the last commit that did anything to each definition",
            _ => "the last commit that a line of each definition comes from, by git blame",
        })
    }
}

impl SymbolOut {
    /// Of a definition none of whose lines is committed.
    pub(crate) fn not_committed(&self) -> String {
        let verb = if self.uncommitted_lines == 1 { "is" } else { "are" };
        format!("{} {verb} not committed", count(self.uncommitted_lines, "line"))
    }
}

/// `1 commit`, `2 commits`.
pub(crate) fn count(n: u32, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

struct Question<'a> {
    targets: &'a Targets<'a>,
    args: &'a BlameQuestion,
}

/// Who last changed a target.
pub(crate) fn blame(targets: &Targets<'_>, target: Target, asked: &BlameQuestion) -> Result<BlameBody> {
    Question { targets, args: asked }.answer(target)
}

/// A file with what its lines come from.
struct BlamedFile {
    path: RepoPath,
    file: FileShapes,
    lines: Vec<BlamedLine>,
    blame: Blame,
}

impl Question<'_> {
    fn answer(&self, target: Target) -> Result<BlameBody> {
        let mut answer = BlameBody {
            target: BlameTargetOut {
                kind: "unknown",
                path: String::new(),
            },
            by: "line",
            basis: None,
            notes: Vec::new(),
            candidates: Vec::new(),
            lines: None,
            symbols: None,
            owners: None,
            incomplete: Vec::new(),
        };
        match target {
            Target::Unknown(path, near) => {
                let near = near.join(" or ");
                return Err(Hinted {
                    message: format!("nothing is called {:?}", path.to_text()),
                    hint: if near.is_empty() {
                        "give a path, path:lines, path#name or the name of a definition".to_owned()
                    } else {
                        format!("did you mean {near}?")
                    },
                }
                .into());
            }
            Target::Many(candidates) => {
                answer.target.kind = "many";
                answer.candidates = candidates_out(&candidates);
            }
            Target::Folder(path) => {
                answer.target.kind = "folder";
                answer.target.path = path.to_string();
                answer.by = "owner";
                let opened = self.targets.opened;
                let found = folder_owners(&opened.history, &opened.reached, &path, &opened.mailmap)?;
                answer.owners = Some(found.iter().map(owner_out).collect());
                answer.incomplete = Gaps::of(&opened.history, &opened.reached)?.sentences();
            }
            Target::File(path) if self.knows_changes(&path)? => {
                answer.target.kind = "file";
                self.add_changes(&mut answer, &path, None)?;
            }
            Target::File(path) => {
                answer.target.kind = "file";
                self.add_file(&mut answer, &path, None, None, BlameBy::Symbol)?;
            }
            Target::Lines(path, first, last) => {
                answer.target.kind = "lines";
                self.add_file(&mut answer, &path, Some((first, last)), None, BlameBy::Line)?;
            }
            Target::Symbol(key) | Target::Once(_, key) if self.knows_changes(&key.path)? => {
                answer.target.kind = "symbol";
                let path = key.path.clone();
                self.add_changes(&mut answer, &path, Some(&key))?;
            }
            Target::Symbol(key) | Target::Once(_, key) => {
                answer.target.kind = "symbol";
                let path = key.path.clone();
                self.add_file(&mut answer, &path, None, Some(&key), BlameBy::Symbol)?;
            }
        }
        Ok(answer)
    }

    /// Whether blame by definition can be told from what commits did to each: where that is known of all commits, the file has
    /// definitions, and nothing is asked for that only lines can tell.
    fn knows_changes(&self, path: &RepoPath) -> Result<bool> {
        let (args, targets) = (self.args, self.targets);
        let history = &targets.opened.history;
        let is_plain = !(args.ignores_blanks || args.follows_moves || args.follows_copies > 0)
            && args.ignored.is_empty()
            && args.ignore_files.is_empty()
            && !targets.workspace.repository.has_ignored_revisions();
        let is_traced = history.n_traced(targets.workspace.symbol_recipe()) == history.n_commits();
        let is_committed = !targets.uncommitted.iter().any(|change| change.path == *path);
        let is_meant = matches!(args.by, None | Some(BlameBy::Symbol));
        if !(is_plain && is_traced && is_committed && is_meant && history.n_commits() > 0) {
            return Ok(false);
        }
        // Where the record ends early, who wrote what came before is not in it.
        if !Gaps::of(history, &targets.opened.reached)?.boundaries.is_empty() {
            return Ok(false);
        }
        Ok(targets.shapes(path)?.is_some_and(|file| !file.shapes.is_empty()))
    }

    /// Each definition by the commits that changed it.
    fn add_changes(&self, answer: &mut BlameBody, path: &RepoPath, symbol: Option<&SymbolKey>) -> Result<()> {
        answer.by = "symbol";
        answer.basis = Some(if self.args.counts_moves {
            "all_changes"
        } else {
            "changes"
        });
        answer.target.path = symbol.map_or_else(|| path.to_string(), SymbolKey::id);
        let opened = self.targets.opened;
        let (Some(tip), Some(file)) = (opened.tip, self.targets.shapes(path)?) else {
            return Ok(());
        };
        let is_meant = |shape: &&Shape| symbol.is_none_or(|key| shape.qualified == key.name && shape.nth == key.nth);
        let shapes: Vec<&Shape> = file.shapes.iter().filter(is_meant).collect();
        if let Some(key) = symbol.filter(|_| shapes.is_empty()) {
            return Err(no_definition(path, key).into());
        }
        let keys: Vec<SymbolKey> = shapes.iter().map(|shape| shape.key(path)).collect();
        let mut reader = self.targets.workspace.repository.reader();
        let history = &opened.history;
        let lives = self.targets.lives(&mut reader, |lives| lives.of_all(tip, &keys))?;
        answer
            .incomplete
            .extend(unread_changes(lives.iter().map(|life| life.n_unread).max()));
        let numbers = lives.iter().flat_map(|life| &life.changes).map(|change| change.commit);
        let heads = history.heads(&numbers.collect::<Vec<_>>())?;
        let counts = |change: &&SymbolChange| self.args.counts_moves || change.events.is_of_content();
        let told = shapes.iter().zip(&keys).zip(&lives);
        let told = told.map(|((shape, key), life)| {
            let (start_line, end_line) = file.lines_of(shape.range);
            let changes: Vec<&CommitHead> = life
                .changes
                .iter()
                .filter(counts)
                .filter_map(|change| heads.get(&change.commit))
                .collect();
            SymbolOut {
                id: key.id(),
                name: shape.qualified.clone(),
                kind: kind_name(shape.kind),
                start_line,
                end_line,
                last: changes.first().map(|head| self.head_out(head)),
                uncommitted_lines: 0,
                commits: changes.len() as u32,
                owners: change_owners(&changes, &opened.mailmap).iter().map(owner_out).collect(),
            }
        });
        answer.symbols = Some(told.collect());
        Ok(())
    }

    fn head_out(&self, head: &CommitHead) -> CommitOut {
        CommitOut {
            commit: head.id.to_string(),
            author: person_out(&self.targets.opened.mailmap.resolve(&head.author)),
            date: timestamp(head.author_time, head.author_offset),
            subject: head.subject.clone(),
            boundary: head.boundary != Boundary::None,
        }
    }

    fn add_file(
        &self,
        answer: &mut BlameBody,
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
            // Git reads beyond where the record ends, but not beyond where the clone does.
            gaps.boundaries.retain(|name, _| *name == Boundary::Shallow.name());
            answer.incomplete = gaps.sentences();
        }
        let args = self.args;
        if args.counts_moves {
            let why = "commits that only moved, renamed or reformatted a definition are known where definitions are traced through all \
                       commits (codescout index --history) and no option asks for lines";
            answer.notes.push(why.to_owned());
        }
        let is_changed = self.targets.uncommitted.iter().any(|change| change.path == *path);
        if is_changed && (args.ignores_blanks || args.follows_moves || args.follows_copies > 0) {
            let why = "the file is not as committed: lines that differ in anything are not committed, as blanks, moves and copies \
                       are looked at in commits alone";
            answer.notes.push(why.to_owned());
        }
        // A file without definitions has lines.
        let unless_asked = if found.file.shapes.is_empty() {
            BlameBy::Line
        } else {
            unless_asked
        };
        match self.args.by.unwrap_or(unless_asked) {
            BlameBy::Line => {
                answer.by = "line";
                answer.lines = Some(lines_out(&found));
            }
            BlameBy::Owner => {
                answer.by = "owner";
                answer.owners = Some(line_owners(&found.lines, &found.blame).iter().map(owner_out).collect());
            }
            BlameBy::Symbol => {
                answer.by = "symbol";
                answer.basis = Some("lines");
                let told: std::collections::BTreeSet<u32> = found.lines.iter().map(|(line, _)| *line).collect();
                let of_file = blame_by_symbol(&found.file, &found.lines, &found.blame);
                let is_meant = |found: &&SymbolBlame| match symbol {
                    Some(key) => found.name == key.name && found.nth == key.nth,
                    None => told.range(found.start_line..=found.end_line).next().is_some(),
                };
                let symbols = of_file.iter().filter(is_meant);
                answer.symbols = Some(symbols.map(|symbol| symbol_out(path, symbol, &found.blame)).collect());
            }
        }
        Ok(())
    }

    /// The lines of a file as it stands at the revision, those asked for alone.
    fn blamed(&self, path: &RepoPath, lines: Option<(u32, u32)>, symbol: Option<&SymbolKey>) -> Result<BlamedFile> {
        let targets = self.targets;
        let not_there = || Hinted {
            message: format!("{:?} is not a file of {}", path.to_text(), targets.reference),
            hint: format!("history {} tells what became of it", path.to_text()),
        };
        let not_here = || Hinted {
            message: format!(
                "the content of {:?} is missing or damaged in this repository",
                path.to_text()
            ),
            hint: format!(
                "{}; history {} tells what is known",
                targets.workspace.how_to_get_objects(),
                path.to_text()
            ),
        };
        let changed = targets.uncommitted.iter().find(|change| change.path == *path);
        let file = match (targets.shapes(path)?, changed) {
            (Some(file), _) => file,
            (None, None) => match targets.committed_entry(path)? {
                Some(entry) => return Err(targets.too_large(path, entry)?.unwrap_or_else(not_here).into()),
                None => return Err(not_there().into()),
            },
            _ => return Err(not_there().into()),
        };
        let n_lines = file.bytes.split_inclusive(|byte| *byte == b'\n').count() as u32;
        let wanted = match symbol {
            Some(key) => {
                let shape = file.find(&key.name, key.nth).ok_or_else(|| no_definition(path, key))?;
                Some(file.lines_of(shape.range))
            }
            None => lines,
        };
        if let Some((first, _)) = wanted.filter(|(first, _)| *first > n_lines) {
            return Err(Hinted {
                message: format!("line {first} is past the end of {:?} ({n_lines} lines)", path.to_text()),
                hint: "lines are counted from 1".to_owned(),
            }
            .into());
        }
        let committed_path = changed
            .and_then(|change| change.origin.clone())
            .unwrap_or_else(|| path.clone());
        let commit = targets.opened.target.and_then(|target| target.commit);
        let is_committed = targets.committed_entry(&committed_path)?;
        let (commit, entry) = match (commit, is_committed) {
            (Some(commit), Some(entry)) => (commit, entry),
            _ => {
                let mut all = (1..=n_lines).map(|line| (line, None)).collect();
                let mut blame = Blame::default();
                self.credit_merged(path, &file.bytes, &mut all, &mut blame)?;
                return Ok(BlamedFile {
                    path: path.clone(),
                    lines: within(all, wanted),
                    blame,
                    file,
                });
            }
        };
        let mut options = self.options()?;
        // Lines of a changed file are found in the committed one only after all of it was blamed.
        options.lines = wanted
            .filter(|_| changed.is_none())
            .map(|(first, last)| (first, last.min(n_lines)));
        let repository = &targets.workspace.repository;
        let mut blame = repository.blame(commit, &committed_path, &options, targets.reading.interrupt)?;
        let blamed = match changed {
            None => blame.lines.iter().map(|line| (line.line, Some(line.clone()))).collect(),
            Some(_) => {
                let committed = targets
                    .workspace
                    .content(&committed_path, entry, &mut None)?
                    .unwrap_or_default();
                let mut blamed = blame_over_changes(&blame, &committed, &file.bytes);
                self.credit_merged(path, &file.bytes, &mut blamed, &mut blame)?;
                blamed
            }
        };
        Ok(BlamedFile {
            path: path.clone(),
            lines: within(blamed, wanted),
            blame,
            file,
        })
    }

    /// Credits lines that are not in the commit to those that an unfinished merge joins to it, as git does: a file that is one of theirs
    /// is theirs as a whole, else each gives the lines that none before it has.
    fn credit_merged(&self, path: &RepoPath, now: &[u8], lines: &mut Vec<BlamedLine>, blame: &mut Blame) -> Result<()> {
        let workspace = self.targets.workspace;
        for head in workspace.repository.merge_heads()? {
            let mut reader = workspace.repository.reader();
            let tree = reader.commit(head)?.tree;
            let found = reader.diff_trees_at(None, tree, &[path])?;
            let Some(entry) = found.first().and_then(|change| change.new) else {
                continue;
            };
            let theirs = workspace.content(path, entry.into(), &mut None)?.unwrap_or_default();
            let options = self.options()?;
            let of_head = workspace
                .repository
                .blame(head, path, &options, self.targets.reading.interrupt)?;
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
        for revision in &args.ignored {
            let resolved = self.targets.workspace.repository.resolve(revision)?;
            ignored.push(resolved.commit.with_context(|| format!("{revision} is not a commit"))?);
        }
        let absolute = |file: &PathBuf| {
            let found = std::path::absolute(file).ok().filter(|path| path.is_file());
            found.ok_or_else(|| Hinted {
                message: format!("there is no file {}", file.display()),
                hint: "--ignore-revs-file takes a file with one commit id a line".to_owned(),
            })
        };
        Ok(BlameOptions {
            ignores_blanks: args.ignores_blanks,
            follows_moves: args.follows_moves,
            follows_copies: args.follows_copies,
            ignored,
            ignore_files: args.ignore_files.iter().map(absolute).collect::<Result<_, Hinted>>()?,
            lines: None,
        })
    }
}

fn no_definition(path: &RepoPath, key: &SymbolKey) -> Hinted {
    Hinted {
        message: format!("{:?} has no definition {:?}", path.to_text(), key.name),
        hint: format!("outline {} shows what it has", path.to_text()),
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
        }
    };
    found.lines.iter().map(line_out).collect()
}

fn symbol_out(path: &RepoPath, symbol: &SymbolBlame, blame: &Blame) -> SymbolOut {
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

fn owner_out(owner: &Owner) -> OwnerOut {
    OwnerOut {
        name: owner.who.name.to_string(),
        email: owner.who.email.to_string(),
        count: owner.n_lines,
        commits: owner.n_commits,
        share: (owner.share * 1e4).round() / 1e4,
        last: timestamp(owner.last, 0),
    }
}
