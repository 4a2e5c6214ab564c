//! The worker that hooks start. It waits until git is done and then indexes the checked-out commit.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::event::HookEvent;
use super::log::{Entry, HookLog, RunOutcome, timestamp};
use super::queue::{Queue, Request};
use crate::config::Overrides;
use crate::git::{RefKind, Repository, is_in_operation, read_small_file};
use crate::index::dense::IN_BACKGROUND;
use crate::ingest::{Outcome, Target};
use crate::model::{Ctx, TreeId};
use crate::session::{CallCtx, Commits, Context as _, Event, Freshness, Result, Steps, Workspace};
use crate::sidecar::write_atomic;

/// Time that a worker waits for a git operation to end, counted from the last request. A longer operation calls another
/// hook at its end, which starts the next worker.
const PATIENCE: Duration = Duration::from_secs(10);
/// First and longest pause between two checks if a git operation has ended. Each pause is twice as long as the previous
/// one. There is no portable event for the end of a rebase.
const LOOK_AFTER: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(500)];
/// Maximum number of branches to index if it is unknown which were pushed.
const MAX_UNKNOWN_BRANCHES: usize = 50;

/// Processes the requests of a repository until none is left, unless another worker is running. Leaves the caller's
/// process group and terminal. Writes outcomes to the log.
pub fn work(repository: &Repository, interrupt: &AtomicBool) {
    // Fails for the leader of a process group. In that case the caller has already detached it.
    let _ = rustix::process::setsid();
    let queue = Queue::of(repository);
    let mut waiting = Waiting::default();
    loop {
        let Ok(Some(lock)) = queue.try_lock() else {
            return;
        };
        if let Err(error) = queue.clear(&lock) {
            tracing::debug!(%error, "cannot remove leftover hook files");
        }
        let can_serve = serve(repository, &queue, &mut waiting, interrupt);
        drop(lock);
        // A hook may have written a request while this worker held the lock, and ended without starting a worker. So
        // look again after releasing the lock.
        let is_left = queue.requests().iter().any(|request| waiting.is_worth_it(request));
        if !is_left && can_serve && !interrupt.load(Ordering::Relaxed) {
            build_graphs(repository, interrupt);
        }
        if !is_left || !can_serve || interrupt.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Builds graphs of very many vectors. Takes minutes, so the queue is not locked meanwhile.
fn build_graphs(repository: &Repository, interrupt: &AtomicBool) {
    let built = Workspace::open(repository.discovery_dir(), &Overrides::default())
        .and_then(|workspace| workspace.build_graphs(IN_BACKGROUND, interrupt));
    if let Err(error) = built {
        let entry = Entry {
            event: "graph".to_owned(),
            outcome: RunOutcome::Failed,
            why: Some(format!("cannot build a graph of vectors: {error:#}")),
            ..start_of(repository, HookEvent::PostCommit)
        };
        // If the log cannot be written, the error cannot be reported.
        let _ = HookLog::of(repository, None).append(&entry);
    }
}

/// The times at which requests were first seen, in case their own times are wrong.
#[derive(Default)]
struct Waiting {
    since: HashMap<PathBuf, (SystemTime, Instant)>,
}

impl Waiting {
    /// Returns true if the worker should still wait for the request. The time counts from the request and not from the
    /// start of the worker, because otherwise a request during a bisect would keep every worker running.
    fn is_worth_it(&mut self, request: &Request) -> bool {
        match request.made.elapsed() {
            Ok(age) => age < PATIENCE,
            // The clock was set back, so the time since the request was first seen is used.
            Err(_) => self.elapsed(request) < PATIENCE,
        }
    }

    /// Returns the time since this process first saw the request.
    fn elapsed(&mut self, request: &Request) -> Duration {
        let fresh = (request.made, Instant::now());
        let known = self.since.entry(request.git_dir.clone()).or_insert(fresh);
        if known.0 != request.made {
            *known = fresh;
        }
        known.1.elapsed()
    }
}

/// Processes the requests that can be processed now. Returns false if a request cannot be removed.
fn serve(of: &Repository, queue: &Queue, waiting: &mut Waiting, interrupt: &AtomicBool) -> bool {
    let mut pause = LOOK_AFTER[0];
    while !interrupt.load(Ordering::Relaxed) {
        let mut is_waiting = false;
        let mut has_run = false;
        for request in queue.requests() {
            if is_in_operation(&request.git_dir) {
                is_waiting |= waiting.is_worth_it(&request);
            } else if queue.take(&request).is_ok() {
                run(of, &request, interrupt);
                has_run = true;
            } else {
                // A request that cannot be removed would be processed forever.
                return false;
            }
        }
        match (has_run, is_waiting) {
            (true, _) => pause = LOOK_AFTER[0],
            (false, true) => {
                thread::sleep(pause);
                pause = pause_after(pause);
            }
            (false, false) => return true,
        }
    }
    true
}

fn pause_after(pause: Duration) -> Duration {
    LOOK_AFTER[1].min(pause * 2)
}

fn run(of: &Repository, request: &Request, interrupt: &AtomicBool) {
    // The worktree was removed since, so there is nothing to index. A request that came with an archive can name any
    // other repository.
    let opened = Repository::open(&request.git_dir).ok();
    let Some(repository) = opened.filter(|repository| repository.is_work_tree_of(of)) else {
        return;
    };
    match Workspace::open(repository.discovery_dir(), &Overrides::default()) {
        Ok(workspace) => Run::new(&workspace, request.event).index(interrupt),
        Err(error) => {
            let log = HookLog::of(&repository, None);
            let entry = Entry {
                outcome: RunOutcome::Failed,
                why: Some(format!("{error:#}")),
                ..start_of(&repository, request.event)
            };
            // If the log cannot be written, the error cannot be reported.
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

/// The runs that process one request.
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
            log: HookLog::of(&workspace.repository, Some(workspace.storage.root())),
        }
    }

    fn index(&self, interrupt: &AtomicBool) {
        if let Err(error) = self.log.clear() {
            tracing::debug!(%error, "cannot remove leftover log files");
        }
        // `WORKTREE` resolves to the checked-out commit; to `None` before the first commit.
        match self.workspace.target("WORKTREE") {
            // The commit was already indexed when the request arrived.
            Ok(Some(target)) if self.is_done("HEAD", target) => {}
            Ok(Some(target)) => _ = self.index_one("HEAD", target, interrupt),
            Ok(None) => {}
            Err(error) => self.fail(&format!("{error:#}")),
        }
        if self.event == HookEvent::PostReceive {
            self.index_pushed(interrupt);
        }
        self.collect_garbage(interrupt);
    }

    /// Collects garbage if a collection is due, because no user waits for this run.
    fn collect_garbage(&self, interrupt: &AtomicBool) {
        let head = self.workspace.target("WORKTREE").ok().flatten();
        let used: Vec<TreeId> = head.into_iter().map(|target| target.tree).collect();
        if let Err(error) = self.workspace.collect_if_due(&used, Ctx::silent(interrupt)) {
            self.fail(&format!("garbage collection failed: {error:#}"));
        }
    }

    fn fail(&self, why: &str) {
        self.tell(Entry {
            outcome: RunOutcome::Failed,
            why: Some(why.to_owned()),
            ..start_of(&self.workspace.repository, self.event)
        });
    }

    /// Returns true if the last run indexed this commit and its result still exists.
    fn is_done(&self, reference: &str, target: Target) -> bool {
        let place = start_of(&self.workspace.repository, self.event).repo;
        let mut entries = self.log.entries().into_iter();
        let last = entries.rfind(|entry| entry.repo == place && entry.reference == reference);
        let is_last = last.is_some_and(|entry| {
            entry.outcome == RunOutcome::Indexed && entry.commit == target.commit.map(|commit| commit.0.to_string())
        });
        is_last && matches!(self.workspace.freshness(target.tree), Ok(Freshness::UpToDate))
    }

    /// Indexes a revision. Returns true if it is completely indexed.
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
                    .then(|| "stopped; completed work is kept".to_owned()),
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

    /// Updates the index. Vectors that a server does not return now are requested again by the next run.
    fn ingest(&self, target: Target, interrupt: &AtomicBool) -> Result<Outcome> {
        let steps = Steps {
            commits: Commits::AsBefore { is_waited_for: false },
            vectors: true,
            collection: false,
        };
        let call = CallCtx::unlimited(Ctx::silent(interrupt));
        self.workspace.update(target, steps, &call, &mut |event| match event {
            Event::Messages(recorded) => recorded.context("cannot record commits").map(drop),
            event => event.log(),
        })
    }

    /// Indexes the branches that moved since the last run. The branches are not read from the hook's standard input,
    /// because other hooks need that. This way also finds branches that moved without a hook.
    fn index_pushed(&self, interrupt: &AtomicBool) {
        let path = Queue::of(&self.workspace.repository).path("tips");
        let known = read_small_file(&path).ok().flatten().map(|text| parse_tips(&text));
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
        // If the file cannot be written, the next run checks the same branches again.
        let _ = write_atomic(&path, &format_tips(&done));
    }

    fn index_branch(&self, name: &str, interrupt: &AtomicBool) -> bool {
        let target = self.workspace.target(name).ok().flatten();
        target.is_some_and(|target| self.index_one(name, target, interrupt))
    }

    fn tell(&self, entry: Entry) {
        // If the log cannot be written, the error cannot be reported. The next query indexes what is missing.
        let _ = self.log.append(&entry);
    }
}

/// Parses lines of the form `commit ref`.
fn parse_tips(text: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(text);
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(tip, name)| (name.to_owned(), tip.to_owned())).collect()
}

fn format_tips(tips: &BTreeMap<String, String>) -> Vec<u8> {
    let lines: Vec<String> = tips.iter().map(|(name, tip)| format!("{tip} {name}\n")).collect();
    lines.concat().into_bytes()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;

    use super::*;
    use crate::support::TestRepo;

    #[test]
    fn a_waiting_worker_looks_a_few_dozen_times() {
        let pauses = std::iter::successors(Some(LOOK_AFTER[0]), |pause| Some(pause_after(*pause)));
        let mut waited = Duration::ZERO;
        let n_looks = pauses
            .take_while(|pause| {
                waited += *pause;
                waited <= PATIENCE
            })
            .count();
        assert_eq!(n_looks, 23);
    }

    #[test]
    fn a_request_is_waited_for_from_the_time_when_it_was_made() {
        let repo = TestRepo::new("//- a.rs\nfn a() {}\n");
        let repository = Repository::discover(repo.root()).unwrap();
        let request = repo.path(".git/codescout-hooks/request main");
        fs::create_dir_all(request.parent().unwrap()).unwrap();
        fs::write(&request, format!("post-checkout\n{}", repo.path(".git").display())).unwrap();
        let file = fs::File::options().write(true).open(&request).unwrap();
        for (age, is_worth_it) in [(Duration::ZERO, true), (PATIENCE, false)] {
            file.set_modified(SystemTime::now() - age).unwrap();
            let [request] = Queue::of(&repository).requests().try_into().ok().unwrap();
            assert_eq!(Waiting::default().is_worth_it(&request), is_worth_it, "{age:?}");
        }
    }
}
