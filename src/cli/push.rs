//! `codescout push`, `codescout pull`

use std::time::Instant;

use serde::Serialize;

use super::args::{Global, PullArgs, PushArgs};
use super::export::read_key;
use super::import::{TakenFactsOut, describe_vectors, size, trust_of};
use super::progress::CliProgress;
use super::render::{Output, one_line};
use super::{Found, INTERRUPTED};
use crate::git::Bounds;
use crate::ingest::{Audit, ExportedCommits, ImportRefusal};
use crate::model::count::count;
use crate::session::{
    Content, ImportOptions, ImportedBundle, Known, OpError, Purpose, PushPlan, Remote, Result, Workspace, bail,
};

/// Maximum download during a push. A push downloads the lists of parts, and if the remote cannot filter objects,
/// everything on it.
const MAX_BYTES: u64 = 2 << 30;
/// Hint for a download that exceeds the limit.
const MORE: &str = "raise the limit with --max-size, such as 8G or 500M";

#[derive(Debug, Default, Serialize)]
struct PushOut {
    remote: String,
    dry_run: bool,
    pushed: bool,
    blobs: usize,
    vector_blobs: usize,
    commits: usize,
    fact_files: usize,
    bytes: u64,
    parts_before: usize,
    parts_after: usize,
    took_ms: u64,
}

#[derive(Debug, Serialize)]
struct PullOut {
    remote: String,
    dry_run: bool,
    pulled: bool,
    parts: usize,
    parts_there: usize,
    bytes: u64,
    new_blobs: usize,
    new_chunks: usize,
    new_vectors: usize,
    new_commits: u32,
    commits_passed_over: Option<String>,
    vectors_passed_over: Option<String>,
    commits_untrue: bool,
    #[serde(flatten)]
    facts: TakenFactsOut,
    absent_blobs: usize,
    compared_blobs: usize,
    took_ms: u64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &PushArgs, output: &mut Output) -> Result<Found> {
    let started = Instant::now();
    let key = args.sign.as_deref().map(read_key).transpose()?;
    let revisions = match args.revisions.as_slice() {
        [] => vec![global.reference.clone()],
        some => some.to_vec(),
    };
    let progress = CliProgress::new(global.quiet);
    let mut known = workspace.known(&revisions, progress.ctx())?;
    if args.history {
        known.given = Some(workspace.records().given_commits(&known.commits, progress.ctx())?);
    }
    let purpose = if args.replace { Purpose::Replace } else { Purpose::Add };
    let mut shelves = Vec::new();
    for content in Content::all(workspace, args.history) {
        if content == Content::Facts && !known.has_facts() {
            continue;
        }
        let remote = Remote::open(workspace, &args.remote, content, purpose, bounds(MAX_BYTES))?;
        let plan = remote.plan_push(workspace, &known, key.as_ref())?;
        shelves.push((remote, plan));
    }
    let is_empty = shelves.iter().all(|(_, plan)| plan.is_empty());
    let is_wanted = !is_empty && !args.consent.dry_run;
    let question = format!("Push the index of {}?", PushOut::of(&shelves, &known).what());
    let goes = is_wanted && may(&question, args.consent.yes, output)?;
    if goes {
        for (remote, plan) in shelves.iter_mut().filter(|(_, plan)| !plan.is_empty()) {
            remote.push_until_done(plan, workspace, &known, key.as_ref())?;
        }
    }
    let answer = PushOut {
        dry_run: args.consent.dry_run,
        pushed: goes,
        took_ms: started.elapsed().as_millis() as u64,
        ..PushOut::of(&shelves, &known)
    };
    if output.json {
        output.json(&answer)?;
    } else {
        let (what, remote) = (answer.what(), one_line(&answer.remote));
        output.line(&match (is_empty, goes) {
            (true, _) if key.is_some() => {
                format!(
                    "{remote} is up to date; existing parts keep their signatures (use --replace to sign them again)"
                )
            }
            (true, _) => format!("{remote} is up to date"),
            (_, true) => format!(
                "pushed the index of {what}; parts on the remote: {}",
                answer.parts_after
            ),
            _ if args.consent.dry_run => format!("would push the index of {what}"),
            _ => "not pushed".to_owned(),
        })?;
    }
    Ok(if is_wanted && !goes {
        Found::Nothing
    } else {
        Found::Something
    })
}

impl PushOut {
    fn of(shelves: &[(Remote<'_>, PushPlan)], known: &Known) -> Self {
        let mut pushed = Self::default();
        for (remote, plan) in shelves {
            let (n_blobs, n_bytes) = plan.cost();
            match remote.content {
                Content::Records => pushed.blobs += n_blobs,
                Content::Rows(_) => pushed.vector_blobs += n_blobs,
                Content::Facts => pushed.fact_files += n_blobs,
                Content::Commits if n_blobs == 0 => {}
                Content::Commits => pushed.commits = known.given.as_ref().map_or(0, ExportedCommits::n_commits),
            }
            pushed.remote = remote.address();
            pushed.bytes += n_bytes;
            pushed.parts_before += plan.n_parts.0;
            pushed.parts_after += plan.n_parts.1;
        }
        pushed
    }

    /// Describes the pushed data and the remote.
    fn what(&self) -> String {
        let vectors = match self.vector_blobs {
            0 => String::new(),
            n => format!(", vectors of another model for {}", count(n, "blob")),
        };
        let commits = match self.commits {
            0 => String::new(),
            n => format!(", history of {}", count(n, "commit")),
        };
        let facts = match self.fact_files {
            0 => String::new(),
            n => format!(", facts of indexers about {}", count(n, "file")),
        };
        format!(
            "{}{vectors}{facts}{commits} ({}) to {}",
            count(self.blobs, "blob"),
            size(self.bytes),
            self.remote
        )
    }
}

pub(super) fn run_pull(workspace: &Workspace, global: &Global, args: &PullArgs, output: &mut Output) -> Result<Found> {
    let started = Instant::now();
    let options = ImportOptions {
        trust: trust_of(args.trust.as_deref())?,
        is_own: false,
        audit: if args.compare_all { Audit::All } else { Audit::Sample },
    };
    let mut shelves = Vec::new();
    for content in Content::all(workspace, args.history) {
        let remote = Remote::open(workspace, &args.remote, content, Purpose::Pull, bounds(args.max_size))?;
        let plan = remote.plan_pull(workspace, options.trust)?;
        shelves.push((remote, plan));
    }
    let costs = shelves.iter().map(|(_, plan)| plan.cost());
    let (parts, bytes) = costs.fold((0, 0), |sum, cost| (sum.0 + cost.0, sum.1 + cost.1));
    let address = shelves.first().map(|(remote, _)| remote.address()).unwrap_or_default();
    if bytes > args.max_size {
        let message = format!(
            "{address} has {parts} parts with {bytes} bytes; the limit is {}",
            args.max_size
        );
        return Err(OpError::new(message, MORE.to_owned()));
    }
    let what = format!(
        "{parts} part{} with {} from {address}",
        if parts == 1 { "" } else { "s" },
        size(bytes),
    );
    let is_wanted = parts > 0 && !args.consent.dry_run;
    let goes = is_wanted && may(&format!("Pull {what}?"), args.consent.yes, output)?;
    let progress = CliProgress::new(global.quiet);
    let mut answer = PullOut {
        remote: address,
        dry_run: args.consent.dry_run,
        pulled: goes,
        parts,
        parts_there: shelves.iter().map(|(remote, _)| remote.n_parts()).sum(),
        bytes,
        new_blobs: 0,
        new_chunks: 0,
        new_vectors: 0,
        new_commits: 0,
        commits_passed_over: None,
        vectors_passed_over: None,
        commits_untrue: false,
        facts: TakenFactsOut::default(),
        absent_blobs: 0,
        compared_blobs: 0,
        took_ms: 0,
    };
    let of_commits = shelves.iter().find(|(remote, _)| remote.content == Content::Commits);
    if let Some((remote, plan)) = of_commits {
        answer.commits_passed_over = match remote.n_parts() {
            0 => Some("the remote has none; run codescout push --history in a full clone to add it".to_owned()),
            _ => plan.passed_over.as_ref().map(ToString::to_string),
        };
    }
    if goes {
        for (remote, plan) in &shelves {
            if remote.content != Content::Records {
                // Vectors can only be imported for indexed chunks, so the revision is indexed first.
                workspace.ingest_revision(&global.reference, progress.ctx())?;
            }
            let taken = remote.pull(plan, workspace, options, progress.ctx());
            taken?.iter().for_each(|taken| answer.add(taken));
        }
        // Indexes files that the remote's index lacks, so that the next query is complete.
        workspace.ingest_revision(&global.reference, progress.ctx())?;
        workspace.records().add_messages_of_head(progress.ctx())?;
    }
    answer.took_ms = started.elapsed().as_millis() as u64;
    if output.json {
        output.json(&answer)?;
    } else {
        let remote = one_line(&answer.remote);
        output.line(&match (parts, goes) {
            (0, _) if answer.parts_there == 0 => {
                format!(
                    "{remote} has no index for this codescout version and these settings; run codescout push to \
                    create one"
                )
            }
            (0, _) => format!("already up to date with {remote}{}", answer.of_commits()),
            (_, true) => format!(
                "pulled {what}: {}, {}{}{}{}",
                count(answer.new_blobs, "new blob"),
                count(answer.new_chunks, "new chunk"),
                describe_vectors(answer.new_vectors, answer.vectors_passed_over.as_deref()),
                answer.facts.text(),
                answer.of_commits()
            ),
            _ if args.consent.dry_run => format!("would pull {what}"),
            _ => "not pulled".to_owned(),
        })?;
    }
    let is_untrue = answer.commits_untrue || answer.facts.untrue_fact_files > 0;
    Ok(if is_wanted && !goes || is_untrue {
        Found::Nothing
    } else {
        Found::Something
    })
}

impl PullOut {
    fn of_commits(&self) -> String {
        match (&self.commits_passed_over, self.new_commits) {
            (Some(why), 0) => format!("; skipped commit history: {why}"),
            (None, 0) => String::new(),
            (None, n) => format!("; history of {}", count(n, "commit")),
            (Some(why), n) => {
                let commits = count(n, "commit");
                format!("; history of {commits}; skipped part of the history: {why}")
            }
        }
    }

    fn add(&mut self, taken: &ImportedBundle) {
        self.new_blobs += taken.imported.n_blobs;
        self.new_chunks += taken.imported.n_docs;
        self.new_vectors += taken.vectors.n_new;
        self.vectors_passed_over = taken.vectors.passed_over.clone().or(self.vectors_passed_over.take());
        match &taken.commits {
            Some(Ok(commits)) => self.new_commits += commits.n_commits,
            Some(Err(why)) => {
                self.commits_passed_over = Some(why.to_string());
                self.commits_untrue |= matches!(why, ImportRefusal::WrongRecord { .. });
            }
            None => {}
        }
        self.facts = std::mem::take(&mut self.facts).with(&taken.facts);
        self.absent_blobs += taken.imported.n_absent_blobs;
        self.compared_blobs += taken.imported.n_audited_blobs;
    }
}

fn bounds(max_bytes: u64) -> Bounds<'static> {
    Bounds {
        max_bytes,
        until: None,
        interrupt: &INTERRUPTED,
    }
}

/// Returns true if the user confirms the action.
fn may(question: &str, yes: bool, output: &mut Output) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if output.json || !output.can_ask() {
        bail!("{question} Use --yes to confirm, or --dry-run to see what would be done");
    }
    Ok(output.ask(question)?)
}
