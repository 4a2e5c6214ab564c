//! `codescout index`

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;

use super::args::{Global, HistoryVersions, IndexArgs};
use super::progress::CliProgress;
use super::render::{Output, one_line};
use super::{Found, IDLE, INTERRUPTED};
use crate::git::{RefKind, is_in_operation};
use crate::index::RowKind;
use crate::index::dense::GraphLimits;
use crate::ingest::{CatchUpOutcome, EmbeddingSource, Outcome, RecordOutcome, TraceOutcome};
use crate::model::count::count;
use crate::model::{ErrorKind, TreeId};
use crate::session::{CallCtx, Commits, Event, OpError, Result, Steps, Workspace};
use crate::sidecar::PastVersions;

/// The graphs that `--graph` builds.
const ON_REQUEST: GraphLimits = GraphLimits {
    min_bytes: 1,
    max_docs: u32::MAX,
};
/// Time without ref changes after which `--watch` starts indexing. Refs change in bursts, for example in a rebase or
/// fetch.
const QUIET: Duration = Duration::from_millis(300);

#[derive(Debug, Default, Serialize)]
struct IndexOut {
    revisions: Vec<RevisionOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<HistoryOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<VectorsOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sparse_vectors: Option<VectorsOut>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    graphs: Vec<GraphOut>,
}

/// A new graph of vectors.
#[derive(Debug, Serialize)]
struct GraphOut {
    profile: String,
    chunks: u32,
    bytes: u64,
    took_ms: u64,
}

/// The outcome of computing the vectors of a configured model.
#[derive(Debug, Serialize)]
struct VectorsOut {
    model: String,
    chunks: usize,
    new: usize,
    missing: usize,
    withheld: usize,
    took_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_because: Option<String>,
}

/// The outcome of recording commits.
#[derive(Debug, Serialize)]
struct HistoryOut {
    new_commits: u32,
    new_changes: u64,
    commits: u32,
    bytes: u64,
    took_ms: u64,
    search_bytes: u64,
    past_versions: usize,
    new_past_versions: usize,
    past_took_ms: u64,
    searchable_after_ms: u64,
    traced_commits: u32,
    traced_changes: usize,
    trace_took_ms: u64,
}

#[derive(Debug, Serialize)]
struct RevisionOut {
    #[serde(rename = "ref")]
    reference: String,
    tree: Option<String>,
    looked_at_files: usize,
    new_blobs: usize,
    new_chunks: usize,
    text_bytes: u64,
    took_ms: u64,
    interrupted: bool,
}

impl VectorsOut {
    fn line(&self) -> String {
        let seconds = self.took_ms as f64 / 1e3;
        format!(
            "{} new of {} chunks by {} in {seconds:.2} s ({:.0} a second); {} missing",
            self.new,
            self.chunks,
            self.model,
            self.new as f64 / seconds.max(1e-3),
            self.missing
        )
    }
}

/// Prints the result of computing the vectors of one model and adds it to `answer`.
fn report_vectors(
    maker: EmbeddingSource<'_>,
    caught_up: CatchUpOutcome,
    answer: &mut IndexOut,
    output: &mut Output,
) -> Result<()> {
    let mut vectors = VectorsOut {
        model: maker.profile().model.clone(),
        chunks: caught_up.n_docs,
        new: caught_up.n_embedded,
        missing: caught_up.n_left,
        withheld: caught_up.n_withheld,
        took_ms: caught_up.elapsed.as_millis() as u64,
        notes: maker.notes(),
        stopped_because: caught_up.stopped,
    };
    if caught_up.n_withheld > 0 {
        let note = "chunks were not sent to the server: the names of their files suggest secrets";
        vectors.notes.push(format!("{} {note}", caught_up.n_withheld));
    }
    let noun = maker.kind().noun();
    if !output.json {
        output.line(&format!("{noun}: {}", one_line(&vectors.line())))?;
    }
    for note in &vectors.notes {
        output.remark(note);
    }
    if let Some(why) = &vectors.stopped_because {
        output.remark(&format!("{} chunks have no {noun} yet: {why}", vectors.missing));
    }
    if caught_up.interrupted {
        if output.json {
            output.json(&vectors)?;
        }
        output.flush()?;
        return Err(OpError::interrupted_with("the vectors computed so far are kept"));
    }
    match maker.kind() {
        RowKind::Dense => answer.vectors = Some(vectors),
        RowKind::Sparse => answer.sparse_vectors = Some(vectors),
    }
    Ok(())
}

/// Prints the result of recording the messages of commits for ranking.
fn report_messages(recorded: Result<(u32, Option<RecordOutcome>)>, output: &mut Output) -> Result<()> {
    let (n_completed, recorded) = match recorded {
        Err(error) if error.kind != ErrorKind::Interrupted => {
            output.remark(&format!("commit messages are not recorded for ranking: {error:#}"));
            return Ok(());
        }
        recorded => recorded?,
    };
    if output.json {
        return Ok(());
    }
    if n_completed > 0 {
        output.line(&format!(
            "messages: added those of {}",
            count(n_completed, "recorded commit")
        ))?;
    }
    let Some(outcome) = recorded else {
        output.remark("more than 10,000 new commits are not recorded; codescout index --history records them");
        return Ok(());
    };
    if outcome.n_new_commits > 0 {
        output.line(&format!(
            "messages: {} in {:.2} s",
            count(outcome.n_new_commits, "new commit"),
            outcome.elapsed.as_secs_f64(),
        ))?;
    }
    if outcome.n_left_out > 0 {
        output.remark(&format!(
            "{} not recorded; codescout index --history adds their messages to the ranking",
            count(outcome.n_left_out, "older commit")
        ));
    }
    Ok(())
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &IndexArgs, output: &mut Output) -> Result<Found> {
    let mut indexer = Indexer {
        workspace,
        progress: CliProgress::new(global.quiet),
        commits: match args.history {
            None => Commits::AsBefore { is_waited_for: true },
            Some(versions) => Commits::All(versions.map(|versions| match versions {
                HistoryVersions::Last => PastVersions::Last,
                HistoryVersions::All => PastVersions::All,
            })),
        },
        builds_graphs: args.graph,
        records_branches: args.history.is_some() && args.revisions.is_empty() && global.reference == "WORKTREE",
        done: HashMap::new(),
    };
    if !args.watch {
        let mut answer = indexer.update(&revisions(workspace, global, args)?, output)?;
        // A collection can drop a graph.
        indexer.collect_if_due(output)?;
        answer.graphs = indexer.build_graphs(output)?;
        if output.json {
            output.json(&answer)?;
        }
        return Ok(Found::Something);
    }
    // The watch starts before the first update, so that no change of a ref is missed.
    let watch = workspace.repository.watch_refs()?;
    loop {
        let updated = revisions(workspace, global, args).and_then(|revisions| indexer.update(&revisions, output));
        match updated {
            Ok(answer) if output.json && !answer.revisions.is_empty() => output.json(&answer)?,
            Ok(_) => {}
            // A later change of a ref may resolve an error such as a deleted branch or a full disk.
            Err(error) if !INTERRUPTED.load(Ordering::Relaxed) => output.error(&error),
            Err(error) => return Err(error),
        }
        indexer.collect_if_due(output)?;
        IDLE.store(true, Ordering::SeqCst);
        if INTERRUPTED.load(Ordering::SeqCst) {
            return Err(OpError::interrupted());
        }
        watch.wait(QUIET)?;
        // Skips the intermediate states of a rebase, merge or bisect. Its end changes a ref too.
        while is_in_operation(workspace.repository.git_dir()) {
            watch.wait(QUIET)?;
        }
        IDLE.store(false, Ordering::SeqCst);
    }
}

/// Returns the revisions to index: those given, or every local branch with `--all-branches`, or else the revision of
/// `--ref`.
fn revisions(workspace: &Workspace, global: &Global, args: &IndexArgs) -> Result<Vec<String>> {
    let mut revisions = args.revisions.clone();
    if args.all_branches {
        let refs = workspace.repository.refs()?.into_iter();
        let branches = refs.filter(|found| found.kind == RefKind::Branch);
        revisions.extend(branches.map(|branch| branch.name.to_string()));
    }
    if revisions.is_empty() {
        revisions.push(global.reference.clone());
    }
    Ok(revisions)
}

struct Indexer<'w> {
    workspace: &'w Workspace,
    progress: CliProgress,
    commits: Commits,
    /// True if graphs of vectors are requested.
    builds_graphs: bool,
    /// True if history is requested and no revision was given. Then that of all local branches is recorded.
    records_branches: bool,
    /// The tree of each revision when it was last indexed.
    done: HashMap<String, TreeId>,
}

impl Indexer<'_> {
    /// Indexes the revisions whose tree has changed since the last update.
    fn update(&mut self, revisions: &[String], output: &mut Output) -> Result<IndexOut> {
        let mut answer = IndexOut::default();
        let mut tips = Vec::new();
        for reference in revisions {
            let done = self.done.get(reference);
            if done.is_some() && done == self.workspace.target(reference)?.map(|target| target.tree).as_ref() {
                continue;
            }
            let ingested = self.workspace.ingest_revision(reference, self.progress.ctx())?;
            let Some((target, outcome)) = ingested else {
                if !output.json {
                    output.line("no commits yet: nothing to index")?;
                }
                continue;
            };
            if !output.json {
                let rate = outcome.n_text_bytes as f64 / 1e6 / outcome.elapsed.as_secs_f64().max(1e-9);
                output.line(&match outcome.n_new_blobs {
                    n_blobs if outcome.interrupted => {
                        format!(
                            "{reference}: interrupted; kept {}, the next run goes on from there",
                            count(n_blobs, "new blob")
                        )
                    }
                    0 => format!("{reference}: up to date ({})", target.tree.0.short(12)),
                    n_blobs => format!(
                        "{reference}: {}, {}, {:.1} MB in {:.2} s ({rate:.1} MB/s)",
                        count(n_blobs, "new blob"),
                        count(outcome.n_new_chunks, "new chunk"),
                        outcome.n_text_bytes as f64 / 1e6,
                        outcome.elapsed.as_secs_f64(),
                    ),
                })?;
            }
            answer.revisions.push(RevisionOut {
                reference: reference.clone(),
                tree: Some(target.tree.to_string()),
                looked_at_files: outcome.n_files,
                new_blobs: outcome.n_new_blobs,
                new_chunks: outcome.n_new_chunks,
                text_bytes: outcome.n_text_bytes,
                took_ms: outcome.elapsed.as_millis() as u64,
                interrupted: outcome.interrupted,
            });
            if outcome.interrupted {
                if output.json {
                    output.json(&answer)?;
                }
                output.flush()?;
                return Err(OpError::interrupted_with("the files indexed so far are kept"));
            }
            self.done.insert(reference.clone(), target.tree);
            tips.extend(target.commit);
        }
        if self.records_branches {
            tips.extend(self.workspace.records().branch_tips()?);
        }
        let steps = Steps {
            commits: self.commits,
            vectors: true,
            collection: false,
        };
        let call = CallCtx::unlimited(self.progress.ctx());
        self.workspace
            .finish_update(&tips, &self.trees(), steps, &call, &mut |event| {
                self.report(event, &mut answer, output)?;
                Ok(output.flush()?)
            })?;
        Ok(answer)
    }

    /// Prints the result of a step and adds it to `answer`. An unavailable server is not an error.
    fn report(&self, event: Event<'_>, answer: &mut IndexOut, output: &mut Output) -> Result<()> {
        match event {
            Event::Recorded(recorded) => answer.history = Some(self.report_history(recorded?, output)?),
            Event::Messages(recorded) => report_messages(recorded, output)?,
            Event::Vectors(caught_up) => {
                for (maker, caught_up) in caught_up? {
                    report_vectors(maker, caught_up, answer, output)?;
                }
            }
            Event::Collected(_) => event.log()?,
        }
        Ok(())
    }

    /// Builds graphs of vectors if they are requested.
    fn build_graphs(&self, output: &mut Output) -> Result<Vec<GraphOut>> {
        let mut graphs = Vec::new();
        if !self.builds_graphs {
            return Ok(graphs);
        }
        output.flush()?;
        let Some(built) = self.workspace.build_graphs(ON_REQUEST, &INTERRUPTED)? else {
            output.remark("no graph was built: another process computes vectors or a graph");
            return Ok(graphs);
        };
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err(OpError::interrupted());
        }
        for graph in built {
            if !output.json {
                output.line(&format!(
                    "graph: {} in {:.2} s, {:.1} MB",
                    count(graph.n_docs, "chunk"),
                    graph.elapsed.as_secs_f64(),
                    graph.n_bytes as f64 / 1e6
                ))?;
            }
            if !graph.is_usable {
                output.remark("the graph is not used, because it finds too few of the nearest vectors");
            }
            graphs.push(GraphOut {
                profile: graph.profile,
                chunks: graph.n_docs,
                bytes: graph.n_bytes,
                took_ms: graph.elapsed.as_millis() as u64,
            });
        }
        Ok(graphs)
    }

    /// Prints and returns the result of recording commits. What was traced and indexed is shown only if history is
    /// requested.
    fn report_history(
        &self,
        (outcome, mut traced, mut past): (RecordOutcome, TraceOutcome, Outcome),
        output: &mut Output,
    ) -> Result<HistoryOut> {
        let is_requested = matches!(self.commits, Commits::All(_));
        if !is_requested {
            (traced, past) = Default::default();
        }
        if !output.json && (is_requested || outcome.n_new_commits > 0) {
            let seconds = outcome.elapsed.as_secs_f64();
            output.line(&format!(
                "history: {} with {} in {seconds:.2} s ({:.0} commits/s), searchable \
                 after {:.2} s; \
                 {} in {:.1} MB, {:.1} MB for search",
                count(outcome.n_new_commits, "new commit"),
                count(outcome.n_new_changes, "changed path"),
                f64::from(outcome.n_new_commits) / seconds.max(1e-9),
                outcome.searchable_after.as_secs_f64(),
                count(outcome.n_commits, "commit"),
                outcome.n_bytes as f64 / 1e6,
                outcome.n_search_bytes as f64 / 1e6,
            ))?;
        }
        if !output.json && traced.n_new_commits > 0 {
            output.line(&format!(
                "definitions: traced through {} with {} in {:.2} s; {:.1} MB",
                count(traced.n_new_commits, "commit"),
                count(traced.n_changes, "changed source file"),
                traced.elapsed.as_secs_f64(),
                traced.n_bytes as f64 / 1e6,
            ))?;
        }
        if !output.json && past.n_new_blobs > 0 {
            output.line(&format!(
                "past versions: {} new of {} with {} in {:.2} s",
                past.n_new_blobs,
                past.n_files,
                count(past.n_new_chunks, "new chunk"),
                past.elapsed.as_secs_f64(),
            ))?;
        }
        Ok(HistoryOut {
            new_commits: outcome.n_new_commits,
            new_changes: outcome.n_new_changes,
            commits: outcome.n_commits,
            bytes: outcome.n_bytes,
            took_ms: outcome.elapsed.as_millis() as u64,
            search_bytes: outcome.n_search_bytes,
            past_versions: past.n_files,
            new_past_versions: past.n_new_blobs,
            past_took_ms: past.elapsed.as_millis() as u64,
            searchable_after_ms: outcome.searchable_after.as_millis() as u64,
            traced_commits: traced.n_new_commits,
            traced_changes: traced.n_changes,
            trace_took_ms: traced.elapsed.as_millis() as u64,
        })
    }

    /// Collects garbage if a collection is due. Called after the answer is printed, so that the user does not wait for
    /// it.
    fn collect_if_due(&self, output: &mut Output) -> Result<()> {
        output.flush()?;
        let collected = self.workspace.collect_if_due(&self.trees(), self.progress.ctx());
        Event::Collected(collected).log()
    }

    fn trees(&self) -> Vec<TreeId> {
        self.done.values().copied().collect()
    }
}
