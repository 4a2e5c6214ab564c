//! `codescout import`

pub(super) mod scip;

use std::fs;
use std::io::Read;
use std::path::Path;

use serde::Serialize;

use super::Found;
use super::args::{Global, ImportArgs, ImportCommand};
use super::progress::CliProgress;
use super::render::Output;
use crate::bundle::{BundleFile, CommitsPart, Header, Kind, PublicKey, Trust};
use crate::config::Overrides;
use crate::embed::ProfileId;
use crate::ingest::{Audit, ImportRefusal, TakenFacts};
use crate::model::count::count;
use crate::session::{
    Context as _, ImportOptions, ImportedBundle, OpError, Result, TakenCommits, Workspace, ensure, open_plain,
};

#[derive(Debug, Serialize)]
struct ImportOut {
    bundle: BundleOut,
    #[serde(flatten)]
    taken: TakenOut,
}

/// The header of a bundle.
#[derive(Debug, Serialize)]
pub(super) struct BundleOut {
    kind: &'static str,
    object_format: &'static str,
    recipe: String,
    profile: String,
    trees: Vec<String>,
    pub(super) blobs: u64,
    chunks: u64,
    pub(super) vectors: u64,
    pub(super) commits: u64,
    pub(super) fact_files: u64,
    opened_bytes: u64,
    packed_bytes: u64,
    signer: Option<String>,
    entries: usize,
}

/// The result of an import.
#[derive(Debug, Serialize)]
pub(super) struct TakenOut {
    new_blobs: usize,
    new_chunks: usize,
    text_bytes: u64,
    known_blobs: usize,
    absent_blobs: usize,
    compared_blobs: usize,
    adopted: bool,
    new_vectors: usize,
    vectors_passed_over: Option<String>,
    new_commits: u32,
    compared_commits: usize,
    commits_passed_over: Option<String>,
    commits_untrue: bool,
    #[serde(flatten)]
    facts: TakenFactsOut,
    indexed_trees: Vec<String>,
    took_ms: u64,
}

impl BundleOut {
    pub(super) fn of(header: &Header, signer: Option<PublicKey>) -> Self {
        Self {
            kind: match header.kind() {
                Kind::Records => "records",
                Kind::Ready => "ready",
                Kind::Added => "vectors",
            },
            object_format: if header.id_bytes == 20 { "sha1" } else { "sha256" },
            recipe: format!("{:016x}", header.recipe),
            profile: ProfileId(header.profile).to_string(),
            trees: header.trees().map(|tree| tree.to_string()).collect(),
            blobs: header.n_blobs(),
            chunks: header.n_docs(),
            vectors: header.n_rows(),
            commits: header.commits.as_ref().map_or(0, CommitsPart::n_commits),
            fact_files: header.n_facts(),
            opened_bytes: header.n_bytes(),
            packed_bytes: header.n_packed(),
            signer: signer.map(|signer| signer.to_string()),
            entries: header.entries.len(),
        }
    }

    /// Describes the number of blobs, chunks, vectors and commits.
    pub(super) fn content(&self) -> String {
        let mut content = format!("{}, {}", count(self.blobs, "blob"), count(self.chunks, "chunk"));
        if self.vectors > 0 {
            content.push_str(&format!(", {} of other models", count(self.vectors, "vector")));
        }
        if self.commits > 0 {
            content.push_str(&format!(", {}", count(self.commits, "commit")));
        }
        if self.fact_files > 0 {
            content.push_str(&format!(", facts of indexers about {}", count(self.fact_files, "file")));
        }
        content
    }
}

impl TakenOut {
    pub(super) fn of(taken: &ImportedBundle) -> Self {
        let imported = &taken.imported;
        let (commits, passed_over) = match &taken.commits {
            Some(Ok(commits)) => (*commits, None),
            Some(Err(why)) => (TakenCommits::default(), Some(why.to_string())),
            None => (TakenCommits::default(), None),
        };
        Self {
            new_blobs: imported.n_blobs,
            new_chunks: imported.n_docs,
            text_bytes: imported.n_text_bytes,
            known_blobs: imported.n_known_blobs,
            absent_blobs: imported.n_absent_blobs,
            compared_blobs: imported.n_audited_blobs,
            adopted: imported.is_adopted,
            new_vectors: taken.vectors.n_new,
            vectors_passed_over: taken.vectors.passed_over.clone(),
            new_commits: commits.n_commits,
            compared_commits: commits.n_audited,
            commits_passed_over: passed_over,
            commits_untrue: matches!(taken.commits, Some(Err(ImportRefusal::WrongRecord { .. }))),
            facts: TakenFactsOut::default().with(&taken.facts),
            indexed_trees: taken.trees.iter().map(ToString::to_string).collect(),
            took_ms: imported.elapsed.as_millis() as u64,
        }
    }

    /// Returns [`Found::Nothing`] if the bundle's commit history or facts do not match the repository.
    pub(super) fn found(&self) -> Found {
        if self.commits_untrue || self.facts.untrue_fact_files > 0 {
            Found::Nothing
        } else {
            Found::Something
        }
    }

    /// Describes the result in one line.
    pub(super) fn text(&self) -> String {
        let mut text = [count(self.new_blobs, "new blob"), count(self.new_chunks, "new chunk")].join(", ");
        for (n_blobs, what) in [
            (self.known_blobs, "already indexed"),
            (self.absent_blobs, "not in this repository"),
        ] {
            if n_blobs > 0 {
                text.push_str(&format!("; {n_blobs} {what}"));
            }
        }
        text.push_str(&if self.adopted {
            "; imported without comparison".to_owned()
        } else {
            format!("; {} compared with the files", self.compared_blobs)
        });
        text.push_str(&describe_vectors(self.new_vectors, self.vectors_passed_over.as_deref()));
        match (&self.commits_passed_over, self.new_commits, self.compared_commits) {
            (Some(why), ..) => text.push_str(&format!("; skipped commit history: {why}")),
            (None, 0, _) => {}
            (None, n, 0) => text.push_str(&format!("; history of {}", count(n, "commit"))),
            (None, n, compared) => text.push_str(&format!(
                "; history of {}, definitions compared in {compared} of them",
                count(n, "commit")
            )),
        }
        text.push_str(&self.facts.text());
        text.push_str(&format!(" ({:.2} s)", self.took_ms as f64 / 1e3));
        text
    }
}

/// The imported facts of indexers.
#[derive(Debug, Default, Serialize)]
pub(super) struct TakenFactsOut {
    new_fact_files: usize,
    pub(super) untrue_fact_files: usize,
    facts_passed_over: Option<&'static str>,
}

impl TakenFactsOut {
    /// Returns the sum with the outcome of another bundle.
    pub(super) fn with(self, taken: &Result<TakenFacts, &'static str>) -> Self {
        let TakenFacts { n_new, n_untrue } = taken.unwrap_or_default();
        Self {
            new_fact_files: self.new_fact_files + n_new,
            untrue_fact_files: self.untrue_fact_files + n_untrue,
            facts_passed_over: taken.err().or(self.facts_passed_over),
        }
    }

    /// Describes the facts. Empty if there are none.
    pub(super) fn text(&self) -> String {
        let mut text = match self.new_fact_files {
            0 => String::new(),
            n => format!("; facts of indexers about {}", count(n, "file")),
        };
        if self.untrue_fact_files > 0 {
            let untrue = count(self.untrue_fact_files, "file");
            text.push_str(&format!("; skipped facts about {untrue}: they do not fit the text"));
        }
        if let Some(why) = self.facts_passed_over {
            text.push_str(&format!("; skipped facts of indexers: {why}"));
        }
        text
    }
}

/// Describes the imported and skipped vectors of external models. Empty if there are none.
pub(super) fn describe_vectors(n_new: usize, passed_over: Option<&str>) -> String {
    let new = match n_new {
        0 => String::new(),
        n => format!("; {} of another model", count(n, "vector")),
    };
    match passed_over {
        None => new,
        Some(why) => format!("{new}; skipped vectors of another model: {why}"),
    }
}

pub(super) fn run(global: &Global, args: &ImportArgs, output: &mut Output) -> Result<Found> {
    match (&args.command, &args.file) {
        (Some(ImportCommand::Scip(args)), _) => scip::run(global, args, output),
        (None, Some(file)) => run_bundle(global, args, file, output),
        (None, None) => Err(OpError::failed("a bundle to import is required")),
    }
}

fn run_bundle(global: &Global, args: &ImportArgs, path: &Path, output: &mut Output) -> Result<Found> {
    let trust = trust_of(args.trust.as_deref())?;
    if args.inspect {
        return inspect(path, output);
    }
    let from = open(path)?;
    let workspace = Workspace::open(&global.repo, &Overrides::default())?;
    let options = ImportOptions {
        trust,
        is_own: false,
        audit: if args.compare_all { Audit::All } else { Audit::Sample },
    };
    let cannot = || format!("cannot import {}", path.display());
    let progress = CliProgress::new(global.quiet);
    let bundle = BundleFile::open(from).with_context(cannot)?;
    let taken = workspace
        .import_opened(bundle, options, progress.ctx())
        .with_context(cannot)?;
    workspace.records().add_messages_of_head(progress.ctx())?;
    let answer = ImportOut {
        bundle: BundleOut::of(&taken.header, taken.signer),
        taken: TakenOut::of(&taken),
    };
    if output.json {
        output.json(&answer)?
    } else {
        output.line(&answer.taken.text())?
    }
    Ok(answer.taken.found())
}

fn inspect(path: &Path, output: &mut Output) -> Result<Found> {
    let bundle = BundleFile::open(open(path)?)?;
    let (n_bytes, expected) = (n_bytes_of(path), bundle.n_bytes());
    ensure!(
        n_bytes.is_none_or(|n_bytes| n_bytes >= expected),
        "{} is truncated: expected {expected} bytes",
        path.display()
    );
    let shown = BundleOut::of(&bundle.header, bundle.signer);
    if output.json {
        output.json(&shown)?;
        return Ok(Found::Something);
    }
    output.line(&format!("kind      {}", shown.kind))?;
    output.line(&format!("trees     {}", shown.trees.join(", ")))?;
    output.line(&format!("content   {} in {} entries", shown.content(), shown.entries))?;
    let (packed, opened) = (size(shown.packed_bytes), size(shown.opened_bytes));
    output.line(&format!("size      {packed}, {opened} uncompressed"))?;
    output.line(&format!(
        "made for  {} repositories, recipe {}, profile {}",
        shown.object_format, shown.recipe, shown.profile
    ))?;
    output.line(&format!(
        "signed    {}",
        shown
            .signer
            .as_deref()
            .map_or("no".to_owned(), |key| format!("by {key}"))
    ))?;
    Ok(Found::Something)
}

/// Returns the signature requirement: none, or a signature by `key`, given as hexadecimal digits or as a file.
pub(super) fn trust_of(key: Option<&str>) -> Result<Trust> {
    let Some(key) = key else {
        return Ok(Trust::Anybody);
    };
    if let Ok(public) = PublicKey::parse(key) {
        return Ok(Trust::Only(public));
    }
    let text = fs::read_to_string(key).with_context(|| format!("{key} is neither a public key nor a readable file"))?;
    Ok(Trust::Only(
        PublicKey::parse(&text).with_context(|| format!("cannot use {key}"))?,
    ))
}

fn open(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file =
        open_plain(path).with_context(|| format!("cannot read {} (use - for standard input)", path.display()))?;
    Ok(Box::new(file))
}

/// Returns the size of a file; `None` for standard input.
fn n_bytes_of(path: &Path) -> Option<u64> {
    let found = fs::metadata(path).ok().filter(|_| path != Path::new("-"))?;
    Some(found.len())
}

/// Formats a size in kB or MB (decimal).
pub(super) fn size(n_bytes: u64) -> String {
    match n_bytes {
        0..1_000_000 => format!("{:.1} kB", n_bytes as f64 / 1e3),
        _ => format!("{:.1} MB", n_bytes as f64 / 1e6),
    }
}
