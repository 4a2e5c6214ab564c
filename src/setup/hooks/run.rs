//! The worker: waits until git is done, then indexes what is checked out.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;

use super::event::HookEvent;
use super::log::{Entry, HookLog, RunOutcome, timestamp};
use super::queue::{Queue, Request};
use crate::config::Overrides;
use crate::git::{RefKind, Repository, is_in_operation};
use crate::ingest::{NoProgress, Outcome, Target};
use crate::model::TreeId;
use crate::session::{Freshness, Workspace};
use crate::sidecar::write_atomic;

/// How long a worker waits for the end of what git is doing, counted from the last request. What takes longer ends with a hook
/// of its own, or goes on with one, and that one starts the next worker.
const PATIENCE: Duration = Duration::from_secs(10);
/// When a waiting worker looks again; the time doubles with each look, up to the second figure. The end of a rebase has no event
/// that could be waited for everywhere.
const LOOK_AFTER: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(500)];
/// Of how many branches the tips are indexed when it is not known which were pushed.
const MAX_UNKNOWN_BRANCHES: usize = 50;

/// Serves the requests of a repository until none is left, unless another worker does so already. Apart from the caller's
/// process group and terminal. What happens is told in the log.
pub fn work(repository: &Repository, interrupt: &AtomicBool) {
    // A process that leads its group already cannot have a session of its own; it has been put apart by its caller then.
    let _ = rustix::process::setsid();
    let queue = Queue::of(repository);
    let mut waiting = Waiting::default();
    loop {
        let Ok(Some(lock)) = queue.try_lock() else {
            return;
        };
        if let Err(error) = queue.clear(&lock) {
            tracing::debug!(%error, "leftovers of hooks were not removed");
        }
        let can_serve = serve(&queue, &mut waiting, interrupt);
        drop(lock);
        // Who left a request while the lock was held has gone away. So it has to be looked for after the lock is free.
        let is_left = queue.requests().iter().any(|request| waiting.is_worth_it(request));
        if !is_left || !can_serve || interrupt.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Since when requests wait for git to be done, where their own time does not tell.
#[derive(Default)]
struct Waiting {
    since: HashMap<PathBuf, (SystemTime, Instant)>,
}

impl Waiting {
    /// Whether to go on waiting for the request's turn. It counts from the request, not from this worker's start: else what waits
    /// for the end of a bisect would keep every worker from ending.
    fn is_worth_it(&mut self, request: &Request) -> bool {
        match request.made.elapsed() {
            Ok(age) => age < PATIENCE,
            // The clock was set back.
            Err(_) => self.elapsed(request) < PATIENCE,
        }
    }

    /// How long this process has known the request.
    fn elapsed(&mut self, request: &Request) -> Duration {
        let fresh = (request.made, Instant::now());
        let known = self.since.entry(request.git_dir.clone()).or_insert(fresh);
        if known.0 != request.made {
            *known = fresh;
        }
        known.1.elapsed()
    }
}

/// Says whether requests can be taken away.
fn serve(queue: &Queue, waiting: &mut Waiting, interrupt: &AtomicBool) -> bool {
    let [shortest, longest] = LOOK_AFTER;
    let mut pause = shortest;
    while !interrupt.load(Ordering::Relaxed) {
        let mut is_waiting = false;
        let mut has_run = false;
        for request in queue.requests() {
            if is_in_operation(&request.git_dir) {
                is_waiting |= waiting.is_worth_it(&request);
            } else if queue.take(&request).is_ok() {
                run(&request, interrupt);
                has_run = true;
            } else {
                // A request that cannot be taken away would be served for ever.
                return false;
            }
        }
        match (has_run, is_waiting) {
            (true, _) => pause = shortest,
            (false, true) => {
                thread::sleep(pause);
                pause = longest.min(pause * 2);
            }
            (false, false) => return true,
        }
    }
    true
}

fn run(request: &Request, interrupt: &AtomicBool) {
    // A work tree that has been removed since has nothing left to index.
    let Ok(repository) = Repository::open(&request.git_dir) else {
        return;
    };
    match Workspace::open(repository.found_from(), &Overrides::default()) {
        Ok(workspace) => Run::new(&workspace, request.event).index(interrupt),
        Err(error) => {
            let log = HookLog::of(&repository, None);
            let entry = Entry {
                outcome: RunOutcome::Failed,
                why: Some(format!("{error:#}")),
                ..start_of(&repository, request.event)
            };
            // There is nobody to tell.
            let _ = log.append(&entry);
        }
    }
}

fn start_of(repository: &Repository, event: HookEvent) -> Entry {
    let place = repository.place();
    Entry {
        at: timestamp(SystemTime::now()),
        event: event.name().to_owned(),
        repo: place.display().to_string(),
        reference: "HEAD".to_owned(),
        outcome: RunOutcome::Started,
        commit: None,
        new_blobs: 0,
        took_ms: 0,
        why: None,
    }
}

/// The runs for one request.
struct Run<'a> {
    workspace: &'a Workspace,
    event: HookEvent,
    log: HookLog,
}

impl<'a> Run<'a> {
    fn new(workspace: &'a Workspace, event: HookEvent) -> Self {
        Self {
            workspace,
            event,
            log: HookLog::of(&workspace.repository, Some(workspace.sidecar_root())),
        }
    }

    fn index(&self, interrupt: &AtomicBool) {
        if let Err(error) = self.log.clear() {
            tracing::debug!(%error, "leftovers of the log were not removed");
        }
        // `WORKTREE` is the commit that is checked out, or nothing before the first.
        match self.workspace.target("WORKTREE") {
            // A hook whose request came only when what it is about was indexed already.
            Ok(Some(target)) if self.is_done("HEAD", target) => {}
            Ok(Some(target)) => _ = self.index_one("HEAD", target, interrupt),
            Ok(None) => {}
            Err(error) => self.tell(Entry {
                outcome: RunOutcome::Failed,
                why: Some(format!("{error:#}")),
                ..start_of(&self.workspace.repository, self.event)
            }),
        }
        if self.event == HookEvent::PostReceive {
            self.index_pushed(interrupt);
        }
        self.collect_garbage(interrupt);
    }

    /// Nobody waits for this run, so it is the time to tidy up, if it is time.
    fn collect_garbage(&self, interrupt: &AtomicBool) {
        let head = self.workspace.target("WORKTREE").ok().flatten();
        let used: Vec<TreeId> = head.into_iter().map(|target| target.tree).collect();
        if let Err(error) = self.workspace.collect_if_due(&used, &NoProgress, interrupt) {
            self.tell(Entry {
                outcome: RunOutcome::Failed,
                why: Some(format!("garbage was not collected: {error:#}")),
                ..start_of(&self.workspace.repository, self.event)
            });
        }
    }

    /// Whether the last run was about this very commit, and what it did is still there.
    fn is_done(&self, reference: &str, target: Target) -> bool {
        let place = start_of(&self.workspace.repository, self.event).repo;
        let mut entries = self.log.entries().into_iter();
        let last = entries.rfind(|entry| entry.repo == place && entry.reference == reference);
        let is_last = last.is_some_and(|entry| {
            entry.outcome == RunOutcome::Indexed && entry.commit == target.commit.map(|commit| commit.0.to_string())
        });
        is_last && matches!(self.workspace.freshness(target.tree), Ok(Freshness::UpToDate))
    }

    /// Indexes a revision; says whether that is done.
    fn index_one(&self, reference: &str, target: Target, interrupt: &AtomicBool) -> bool {
        let entry = Entry {
            reference: reference.to_owned(),
            commit: target.commit.map(|commit| commit.0.to_string()),
            ..start_of(&self.workspace.repository, self.event)
        };
        self.tell(entry.clone());
        let started = Instant::now();
        let ingested = self.ingest(target, interrupt);
        let entry = Entry {
            at: timestamp(SystemTime::now()),
            took_ms: started.elapsed().as_millis() as u64,
            ..entry
        };
        let entry = match ingested {
            Ok(outcome) => Entry {
                outcome: if outcome.interrupted {
                    RunOutcome::Interrupted
                } else {
                    RunOutcome::Indexed
                },
                why: outcome
                    .interrupted
                    .then(|| "asked to stop; what was done is kept".to_owned()),
                new_blobs: outcome.n_new_blobs,
                ..entry
            },
            Err(error) => Entry {
                outcome: RunOutcome::Failed,
                why: Some(format!("{error:#}")),
                ..entry
            },
        };
        let is_done = entry.outcome == RunOutcome::Indexed;
        self.tell(entry);
        is_done
    }

    /// Brings the index up to date, and the records of commits where there are any.
    fn ingest(&self, target: Target, interrupt: &AtomicBool) -> anyhow::Result<Outcome> {
        let outcome = self.workspace.ingest(target, &NoProgress, interrupt)?;
        if !outcome.interrupted {
            let recorded = self
                .workspace
                .record_new_commits(target.commit.as_slice(), &NoProgress, interrupt);
            recorded.context("commits were not recorded")?;
            // What a server does not give now it gives the next time.
            let caught_up = self.workspace.catch_up(&[target.tree], &NoProgress, interrupt);
            for (maker, caught_up) in caught_up.context("vectors were not made")? {
                let (what, n_embedded, n_left) = (maker.kind().noun(), caught_up.n_embedded, caught_up.n_left);
                tracing::info!(n_embedded, n_left, caught_up.stopped, "{what}");
            }
            let shared = self.workspace.share_vectors(&[target.tree], &NoProgress, interrupt);
            for (kind, shared) in shared.context("vectors were not shared")? {
                tracing::info!(shared.n_put, shared.n_left, shared.stopped, "shared {}", kind.noun());
            }
        }
        Ok(outcome)
    }

    /// Indexes the branches that moved since the last time. Which those are is not read from the hook's standard input: that
    /// belongs to the hooks of others, and what a missed hook did not tell is found like this too.
    fn index_pushed(&self, interrupt: &AtomicBool) {
        let path = Queue::of(&self.workspace.repository).path("tips");
        let known = fs::read(&path).ok().map(|text| parse_tips(&text));
        let Ok(refs) = self.workspace.repository.refs() else {
            return;
        };
        let branches = refs.into_iter().filter(|found| found.kind == RefKind::Branch);
        let mut tips: Vec<(String, String)> = branches
            .filter_map(|branch| Some((branch.name.to_string(), branch.commit?.0.to_string())))
            .collect();
        let mut done = BTreeMap::new();
        if known.is_none() {
            let mut reader = self.workspace.repository.reader();
            let mut age = |name: &str| {
                let target = self
                    .workspace
                    .target(name)
                    .ok()
                    .flatten()
                    .and_then(|target| target.commit);
                let commit = target.and_then(|commit| reader.commit(commit).ok());
                -commit.map_or(i64::MIN + 1, |commit| commit.committer.time)
            };
            tips.sort_by_cached_key(|(name, _)| age(name));
            done.extend(tips.drain(tips.len().min(MAX_UNKNOWN_BRANCHES)..));
        }
        let known = known.unwrap_or_default();
        for (name, tip) in tips {
            let is_new = known.get(&name) != Some(&tip);
            if !is_new || self.index_branch(&name, interrupt) {
                done.insert(name, tip);
            }
        }
        // Without it the same branches are looked at again next time.
        let _ = write_atomic(&path, &format_tips(&done));
    }

    fn index_branch(&self, name: &str, interrupt: &AtomicBool) -> bool {
        let target = self.workspace.target(name).ok().flatten();
        target.is_some_and(|target| self.index_one(name, target, interrupt))
    }

    fn tell(&self, entry: Entry) {
        // Where no log can be written nobody can be told; the next question does what was not done here.
        let _ = self.log.append(&entry);
    }
}

/// Lines of `commit ref`.
fn parse_tips(text: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(text);
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(tip, name)| (name.to_owned(), tip.to_owned())).collect()
}

fn format_tips(tips: &BTreeMap<String, String>) -> Vec<u8> {
    let lines: Vec<String> = tips.iter().map(|(name, tip)| format!("{tip} {name}\n")).collect();
    lines.concat().into_bytes()
}
