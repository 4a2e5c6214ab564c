//! `codescout blame`

use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use super::args::{BlameArgs, BlameBy, Global};
use super::history::{CandidateOut, PersonOut, candidates_out, person_out};
use super::json::{Hinted, ProvenanceOut};
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, STRONG, one_line};
use super::target::{Target, Targets};
use super::{Found, INTERRUPTED};
use crate::git::{Blame, BlameOptions, BlamedCommit};
use crate::history::{FileShapes, SymbolKey, Who, lines_of};
use crate::model::{CommitId, RepoPath};
use crate::query::{
    BlamedLine, Owner, SymbolBlame, blame_by_symbol, blame_over_changes, folder_owners, kind_name, line_owners,
    timestamp,
};
use crate::surface::open::Workspace;

#[derive(Debug, Serialize)]
struct BlameOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    target: BlameTargetOut,
    by: &'static str,
    notes: Vec<String>,
    candidates: Vec<CandidateOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Vec<LineOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbols: Option<Vec<SymbolOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owners: Option<Vec<OwnerOut>>,
    took_ms: f64,
}

#[derive(Debug, Serialize)]
struct BlameTargetOut {
    kind: &'static str,
    path: String,
}

#[derive(Debug, Serialize)]
struct CommitOut {
    commit: String,
    author: PersonOut,
    date: String,
    subject: String,
    boundary: bool,
}

#[derive(Debug, Serialize)]
struct LineOut {
    line: u32,
    #[serde(flatten)]
    commit: Option<CommitOut>,
    from_path: Option<String>,
    from_line: Option<u32>,
    text: String,
}

#[derive(Debug, Serialize)]
struct SymbolOut {
    id: String,
    name: String,
    kind: &'static str,
    start_line: u32,
    end_line: u32,
    last: Option<CommitOut>,
    uncommitted_lines: u32,
    commits: u32,
    owners: Vec<OwnerOut>,
}

#[derive(Debug, Serialize)]
struct OwnerOut {
    name: String,
    email: String,
    /// Lines of a file, changed paths of a folder.
    count: u32,
    commits: u32,
    share: f64,
    last: String,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &BlameArgs, output: &mut Output) -> Result<Found> {
    let opened = workspace.history(&global.reference, &CliProgress::new(global.quiet), &INTERRUPTED)?;
    let started = Instant::now();
    let uncommitted = workspace.uncommitted(&global.reference, &INTERRUPTED)?;
    let targets = Targets {
        workspace,
        opened: &opened,
        uncommitted: &uncommitted,
        reference: &global.reference,
        quiet: global.quiet,
    };
    let question = Question { targets, args };
    let target = question.targets.find(&args.target)?;
    let provenance = ProvenanceOut::without_view(
        workspace,
        &global.reference,
        opened.target,
        uncommitted.len(),
        opened.notes.clone(),
    );
    let mut answer = question.answer(target, provenance)?;
    answer.took_ms = started.elapsed().as_secs_f64() * 1e3;
    let is_empty = |n: Option<usize>| n.unwrap_or(0) == 0;
    let is_nothing = is_empty(answer.lines.as_ref().map(Vec::len))
        && is_empty(answer.symbols.as_ref().map(Vec::len))
        && is_empty(answer.owners.as_ref().map(Vec::len));
    match output.json {
        true => output.json(&answer)?,
        false => show(&answer, output)?,
    }
    Ok(if is_nothing { Found::Nothing } else { Found::Something })
}

struct Question<'a> {
    targets: Targets<'a>,
    args: &'a BlameArgs,
}

/// A file with what its lines come from.
struct BlamedFile {
    path: RepoPath,
    file: FileShapes,
    lines: Vec<BlamedLine>,
    blame: Blame,
}

impl Question<'_> {
    fn answer(&self, target: Target, provenance: ProvenanceOut) -> Result<BlameOut> {
        let mut answer = BlameOut {
            provenance,
            target: BlameTargetOut {
                kind: "unknown",
                path: String::new(),
            },
            by: "line",
            notes: Vec::new(),
            candidates: Vec::new(),
            lines: None,
            symbols: None,
            owners: None,
            took_ms: 0.0,
        };
        match target {
            Target::Unknown(path, near) => {
                let near = near.join(" or ");
                return Err(Hinted {
                    message: format!("nothing is called {:?}", path.to_text()),
                    hint: match near.is_empty() {
                        true => "give a path, path:lines, path#name or the name of a definition".to_owned(),
                        false => format!("did you mean {near}?"),
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
            }
            Target::File(path) => {
                answer.target.kind = "file";
                self.add_file(&mut answer, &path, None, None, BlameBy::Symbol)?;
            }
            Target::Lines(path, first, last) => {
                answer.target.kind = "lines";
                self.add_file(&mut answer, &path, Some((first, last)), None, BlameBy::Line)?;
            }
            Target::Symbol(key) => {
                answer.target.kind = "symbol";
                let path = key.path.clone();
                self.add_file(&mut answer, &path, None, Some(&key), BlameBy::Symbol)?;
            }
        }
        Ok(answer)
    }

    fn add_file(
        &self,
        answer: &mut BlameOut,
        path: &RepoPath,
        lines: Option<(u32, u32)>,
        symbol: Option<&SymbolKey>,
        unless_asked: BlameBy,
    ) -> Result<()> {
        answer.target.path = symbol.map_or_else(|| path.to_string(), SymbolKey::id);
        let found = self.blamed(path, lines, symbol)?;
        answer.notes.clone_from(&found.blame.notes);
        // A file without definitions has lines.
        let unless_asked = match found.file.shapes.is_empty() {
            true => BlameBy::Line,
            false => unless_asked,
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
        let targets = &self.targets;
        let not_there = || Hinted {
            message: format!("{:?} is not a file of {}", path.to_text(), targets.reference),
            hint: format!("codescout history {} tells what became of it", path.to_text()),
        };
        let file = targets.shapes(path)?.ok_or_else(not_there)?;
        let n_lines = file.bytes.split_inclusive(|byte| *byte == b'\n').count() as u32;
        let wanted = match symbol {
            Some(key) => {
                let shape = file.find(&key.name, key.nth).ok_or_else(|| Hinted {
                    message: format!("{:?} has no definition {:?}", path.to_text(), key.name),
                    hint: format!("codescout outline {}", path.to_text()),
                })?;
                Some(lines_of(&file.bytes, shape.range))
            }
            None => lines,
        };
        if let Some((first, _)) = wanted.filter(|(first, _)| *first > n_lines) {
            return Err(Hinted {
                message: format!("{:?} has {n_lines} lines, none of which is {first}", path.to_text()),
                hint: "lines are counted from 1".to_owned(),
            }
            .into());
        }
        let changed = targets.uncommitted.iter().find(|change| change.path == *path);
        let committed_path = changed
            .and_then(|change| change.origin.clone())
            .unwrap_or_else(|| path.clone());
        let commit = targets.opened.target.and_then(|target| target.commit);
        let is_committed = targets.committed_entry(&committed_path)?;
        let (commit, entry) = match (commit, is_committed) {
            (Some(commit), Some(entry)) => (commit, entry),
            _ => {
                let all = (1..=n_lines).map(|line| (line, None));
                return Ok(BlamedFile {
                    path: path.clone(),
                    lines: within(all.collect(), wanted),
                    blame: Blame::default(),
                    file,
                });
            }
        };
        let mut options = self.options()?;
        // Lines of a changed file are found in the committed one only after all of it was blamed.
        options.lines = wanted
            .filter(|_| changed.is_none())
            .map(|(first, last)| (first, last.min(n_lines)));
        let blame = targets.workspace.repository.blame(commit, &committed_path, &options)?;
        let blamed = match changed {
            None => blame.lines.iter().map(|line| (line.line, Some(line.clone()))).collect(),
            Some(_) => {
                let committed = targets
                    .workspace
                    .content(&committed_path, entry, &mut None)?
                    .unwrap_or_default();
                blame_over_changes(&blame, &committed, &file.bytes)
            }
        };
        Ok(BlamedFile {
            path: path.clone(),
            lines: within(blamed, wanted),
            blame,
            file,
        })
    }

    fn options(&self) -> Result<BlameOptions> {
        let args = self.args;
        let mut ignored = Vec::new();
        for revision in &args.ignore_revs {
            let resolved = self.targets.workspace.repository.resolve(revision)?;
            ignored.push(resolved.commit.with_context(|| format!("{revision} is not a commit"))?);
        }
        let absolute = |file: &std::path::PathBuf| {
            let found = std::path::absolute(file).ok().filter(|path| path.is_file());
            found.ok_or_else(|| Hinted {
                message: format!("there is no file {}", file.display()),
                hint: "--ignore-revs-file takes a file with one commit id a line".to_owned(),
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
                .collect::<Result<_, Hinted>>()?,
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

fn show(answer: &BlameOut, output: &mut Output) -> Result<()> {
    let day = |date: &str| date[..date.len().min(10)].to_owned();
    for line in answer.lines.iter().flatten() {
        let (commit, when, who) = match &line.commit {
            Some(commit) => (&commit.commit[..10], day(&commit.date), commit.author.name.as_str()),
            None => ("----------", "not committed".to_owned(), ""),
        };
        let commit = output.styled(STRONG, commit);
        let facts = output.name(FAINT, format!("{when} {who}").trim_end());
        let from = line.from_path.as_deref().map(|path| output.name(PATH, path));
        let from = from.map(|path| format!("{path} ")).unwrap_or_default();
        output.line(&format!(
            "{commit} {from}{facts} {:>5}: {}",
            line.line,
            one_line(&line.text)
        ))?;
    }
    for symbol in answer.symbols.iter().flatten() {
        let place = output.styled(FAINT, &format!("{}-{}", symbol.start_line, symbol.end_line));
        output.line(&format!("{} {} {place}", symbol.kind, output.name(PATH, &symbol.name)))?;
        let last = match &symbol.last {
            Some(last) => format!(
                "{} {} {} {}",
                &last.commit[..10],
                day(&last.date),
                one_line(&last.author.name),
                one_line(&last.subject)
            ),
            None => format!("{} lines are not committed", symbol.uncommitted_lines),
        };
        output.line(&format!("    {last}"))?;
        let owners = symbol
            .owners
            .iter()
            .take(3)
            .map(|owner| format!("{} {:.0} %", one_line(&owner.name), owner.share * 100.0));
        let owners = owners.collect::<Vec<_>>().join(", ");
        output.line(&format!("    {} commits; {owners}", symbol.commits))?;
    }
    for owner in answer.owners.iter().flatten() {
        let name = output.name(STRONG, &format!("{} <{}>", owner.name, owner.email));
        output.line(&format!(
            "{:>6} {:>5.1} % {name} {} commits, last {}",
            owner.count,
            owner.share * 100.0,
            owner.commits,
            day(&owner.last)
        ))?;
    }
    output.flush()?;
    super::history::show_candidates(&answer.candidates, output)?;
    for note in &answer.notes {
        output.remark(note);
    }
    Ok(())
}
