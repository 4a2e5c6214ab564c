//! Runs builds of the index in the background, while requests are answered.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::call::CallCtx;
use super::error::Result;
use crate::ingest::{Outcome, RecordOutcome, Target, TraceOutcome};
use crate::model::count::count;
use crate::model::{Progress, Stage};

/// Maximum number of concurrent builds of one repository. More would wait for one another, because a writer needs the
/// lock.
const MAX_RUNNING: usize = 1;
/// Maximum number of queued builds. A further build stops the one that has waited longest.
const MAX_WAITING: usize = 256;
/// Maximum number of finished builds in the list.
const MAX_REMEMBERED: usize = 16;
/// Interval at which a waiting call checks if it was cancelled.
const TICK: Duration = Duration::from_millis(20);

/// The builds of one repository, with their queue.
#[derive(Default)]
pub(crate) struct Jobs {
    lists: Arc<Mutex<Lists>>,
}

#[derive(Default)]
struct Lists {
    /// The listed builds, oldest first.
    all: Vec<Arc<Job>>,
    waiting: VecDeque<(Arc<Job>, Work)>,
    n_running: usize,
}

type Work = Box<dyn FnOnce(&Job) -> Result<Made> + Send>;

/// The kind of data that a build creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The index of a tree.
    Index,
    /// Records of all commits reachable from the target.
    Record,
    /// Records of commits that are also searchable.
    Searchable,
    /// Records of commits that are also searchable and have traced definitions.
    Trace,
}

impl Task {
    /// Returns the name in responses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Record => "commits",
            Self::Searchable => "searchable_commits",
            Self::Trace => "traced_commits",
        }
    }
}

/// The result of a build.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// An index.
    Index(Outcome),
    /// Records of commits.
    Records(RecordOutcome),
    /// Records of commits with traced definitions.
    Traced(RecordOutcome, TraceOutcome),
}

impl Made {
    /// Describes the result in words.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Index(outcome) if outcome.n_new_blobs == 0 => "up to date".to_owned(),
            Self::Index(outcome) => {
                let (blobs, chunks) = (outcome.n_new_blobs, outcome.n_new_chunks);
                format!("{}, {}", count(blobs, "new blob"), count(chunks, "new chunk"))
            }
            Self::Records(outcome) => format!(
                "{} recorded, {} in all",
                count(outcome.n_new_commits, "new commit"),
                outcome.n_commits
            ),
            Self::Traced(recorded, traced) => format!(
                "{} recorded, {} in all; definitions traced through {} more",
                count(recorded.n_new_commits, "new commit"),
                recorded.n_commits,
                traced.n_new_commits
            ),
        }
    }
}

/// A build.
pub(crate) struct Job {
    /// The revision, as given by the caller.
    pub(crate) reference: String,
    /// The kind of build.
    pub(crate) task: Task,
    /// The commit and tree to build.
    pub(crate) target: Target,
    /// Stops the build when set. Data indexed so far is kept.
    pub(crate) interrupt: AtomicBool,
    /// Number of calls that requested the build and have not withdrawn their request.
    n_asked: AtomicUsize,
    /// Number of calls that are waiting for the build to end.
    n_waiting: AtomicUsize,
    started: Instant,
    has_begun: AtomicBool,
    course: Mutex<Course>,
    /// Number of existing [`Hold`]s. The build is paused while there are any.
    n_holds: Mutex<usize>,
    let_go: Condvar,
    end: Mutex<Option<End>>,
    ended: Condvar,
}

/// The current stage of a build, and the progress of the previous stages.
#[derive(Clone, Copy, Debug, Default)]
struct Course {
    /// The current stage; `None` before the first stage and between stages.
    stage: Option<Stage>,
    n_ahead: usize,
    n_done: usize,
    /// Number of steps in the previous stages.
    n_before: usize,
}

/// The outcome of a build.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// The build completed with this result.
    Done(Made),
    /// The build was stopped early.
    Stopped,
    /// The build failed with this error.
    Failed(String),
}

/// The progress of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Advance {
    /// The kind of build.
    pub(crate) task: Task,
    /// True if the build has left the queue.
    pub(crate) has_begun: bool,
    /// The current stage; `None` before the first stage and between stages.
    pub(crate) stage: Option<Stage>,
    /// Number of steps of the current stage; 0 if it is not known yet.
    pub(crate) n_ahead: usize,
    /// Number of completed steps of the current stage.
    pub(crate) n_done: usize,
    /// Number of steps in the previous stages.
    pub(crate) n_before: usize,
    /// Time since the build was requested.
    pub(crate) elapsed: Duration,
}

impl Advance {
    /// Describes the progress in words.
    pub(crate) fn to_text(self) -> String {
        let listed = match self.task {
            Task::Index => "files",
            Task::Record | Task::Searchable | Task::Trace => "commits",
        };
        match (self.has_begun, self.stage) {
            (false, _) => "waiting for other builds".to_owned(),
            (_, Some(Stage::Waiting)) => "waiting for another writer".to_owned(),
            (_, Some(stage)) if self.n_ahead > 0 => {
                format!("{} of {} {} read", self.n_done, self.n_ahead, stage.unit())
            }
            _ => format!("listing {listed}"),
        }
    }
}

impl Jobs {
    /// Returns the unfinished build of a target, or queues a new one. The flag is true for a new build.
    pub(crate) fn ensure(
        &self,
        task: Task,
        reference: &str,
        target: Target,
        run: impl FnOnce(&Job) -> Result<Made> + Send + 'static,
    ) -> (Arc<Job>, bool) {
        let mut lists = self.lists.lock();
        let is_it = |job: &&Arc<Job>| {
            let is_same = match task {
                Task::Index => job.target.tree == target.tree,
                Task::Record | Task::Searchable | Task::Trace => job.target.commit == target.commit,
            };
            job.task == task && is_same && job.is_running() && !job.interrupt.load(Ordering::Relaxed)
        };
        if let Some(job) = lists.all.iter().find(is_it).cloned() {
            job.n_asked.fetch_add(1, Ordering::Relaxed);
            lists.hurry(&job);
            return (job, false);
        }
        let job = Arc::new(Job {
            reference: reference.to_owned(),
            task,
            target,
            interrupt: AtomicBool::new(false),
            n_asked: AtomicUsize::new(1),
            n_waiting: AtomicUsize::new(0),
            started: Instant::now(),
            has_begun: AtomicBool::new(false),
            course: Mutex::default(),
            n_holds: Mutex::default(),
            let_go: Condvar::new(),
            end: Mutex::new(None),
            ended: Condvar::new(),
        });
        lists.remember(&job);
        lists.waiting.push_back((Arc::clone(&job), Box::new(run)));
        if lists.waiting.len() > MAX_WAITING
            && let Some((given_up, _)) = lists.waiting.pop_front()
        {
            given_up.finish(End::Stopped);
        }
        if lists.n_running < MAX_RUNNING {
            lists.n_running += 1;
            drop(lists);
            self.start_worker();
        }
        (job, true)
    }

    /// Starts a thread that runs queued builds until the queue is empty.
    fn start_worker(&self) {
        let lists = Arc::clone(&self.lists);
        let spawned = std::thread::Builder::new().name("build".to_owned()).spawn(move || {
            while let Some((job, run)) = next(&lists) {
                job.run(run);
            }
        });
        if let Err(error) = spawned {
            let mut lists = self.lists.lock();
            lists.n_running -= 1;
            for (job, _) in lists.waiting.drain(..) {
                job.finish(End::Failed(error.to_string()));
            }
        }
    }

    /// Returns the listed builds, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.lists.lock().all.clone()
    }

    /// Stops the unfinished builds among `meant`.
    pub(crate) fn stop(&self, meant: &[Arc<Job>]) {
        let is_meant = |job: &Arc<Job>| meant.iter().any(|other| Arc::ptr_eq(job, other));
        meant
            .iter()
            .for_each(|job| job.interrupt.store(true, Ordering::Relaxed));
        // Queued builds end immediately.
        self.lists.lock().waiting.retain(|(job, _)| {
            let is_meant = is_meant(job);
            if is_meant {
                job.finish(End::Stopped);
            }
            !is_meant
        });
    }
}

impl Lists {
    /// Moves a queued build to the front.
    fn hurry(&mut self, job: &Arc<Job>) {
        let position = self.waiting.iter().position(|(waiting, _)| Arc::ptr_eq(waiting, job));
        if let Some(next) = position.and_then(|position| self.waiting.remove(position)) {
            self.waiting.push_back(next);
        }
    }

    fn remember(&mut self, job: &Arc<Job>) {
        let n_over = self.all.iter().filter(|job| !job.is_running()).count();
        if n_over >= MAX_REMEMBERED
            && let Some(oldest) = self.all.iter().position(|job| !job.is_running())
        {
            self.all.remove(oldest);
        }
        self.all.push(Arc::clone(job));
    }
}

/// Removes the most recently requested build from the queue, because a caller may be waiting for it. If the queue is
/// empty, returns `None` and decrements the number of threads.
fn next(lists: &Mutex<Lists>) -> Option<(Arc<Job>, Work)> {
    let mut lists = lists.lock();
    let next = lists.waiting.pop_back();
    lists.n_running -= usize::from(next.is_none());
    next
}

impl Job {
    /// Returns true if the build has not ended.
    pub(crate) fn is_running(&self) -> bool {
        self.end().is_none()
    }

    /// Returns the outcome of the build, or `None` if it has not ended.
    pub(crate) fn end(&self) -> Option<End> {
        self.end.lock().clone()
    }

    /// Withdraws the request of one call. If no other request remains, stops the build.
    pub(crate) fn give_up(&self) {
        if self.n_asked.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.interrupt.store(true, Ordering::Relaxed);
        }
    }

    /// Describes the state of the build in words.
    pub(crate) fn to_text(&self) -> String {
        match self.end() {
            Some(End::Stopped) => "the build was stopped; repeat the call to resume it".to_owned(),
            _ => self.advance().to_text(),
        }
    }

    /// Returns the progress.
    pub(crate) fn advance(&self) -> Advance {
        let course = *self.course();
        Advance {
            task: self.task,
            has_begun: self.has_begun.load(Ordering::Relaxed),
            stage: course.stage,
            n_ahead: course.n_ahead,
            n_done: course.n_done,
            n_before: course.n_before,
            elapsed: self.started.elapsed(),
        }
    }

    /// Returns the time that a call should wait if it can wait for `patience`. That is `patience` if the build is
    /// expected to end within it. Otherwise the time that the build has already run is subtracted, so that later calls
    /// do not wait for a long build.
    pub(crate) fn worth_waiting(&self, patience: Duration) -> Duration {
        let advance = self.advance();
        let rest = advance.n_ahead.saturating_sub(advance.n_done) as u32;
        let left = advance
            .elapsed
            .checked_div(advance.n_done as u32)
            .map(|of_one| of_one.saturating_mul(rest));
        match left {
            Some(left) if left <= patience => patience,
            _ => patience.saturating_sub(advance.elapsed),
        }
    }

    /// Pauses the build until the returned [`Hold`] is dropped. Used while a request that could not wait for the build
    /// needs the processors.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        *self.n_holds.lock() += 1;
        Hold(Arc::clone(self))
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock()
    }

    /// Waits at most `patience` for the build to end, and calls `progress` with how far it is. Returns `None` if the build
    /// continues or the caller is interrupted.
    pub(crate) fn wait(&self, patience: Duration, interrupt: &AtomicBool, progress: &dyn Fn(Advance)) -> Option<End> {
        self.n_waiting.fetch_add(1, Ordering::Relaxed);
        let end = self.wait_counted(patience, interrupt, progress);
        self.n_waiting.fetch_sub(1, Ordering::Relaxed);
        end
    }

    /// Waits within the limits of a call. Other calls may run meanwhile.
    pub(crate) fn wait_as(&self, patience: Duration, call: &CallCtx<'_>) -> Option<End> {
        match call.limits {
            Some(limits) if !patience.is_zero() => {
                call.pause(|| self.wait(patience, call.ctx.interrupt, limits.waiting))
            }
            _ => self.end(),
        }
    }

    /// Returns true if a call is waiting for the build to end.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.n_waiting.load(Ordering::Relaxed) > 0
    }

    fn wait_counted(&self, patience: Duration, interrupt: &AtomicBool, progress: &dyn Fn(Advance)) -> Option<End> {
        let deadline = Instant::now() + patience;
        let mut end = self.end.lock();
        loop {
            let now = Instant::now();
            if end.is_some() || now >= deadline || interrupt.load(Ordering::Relaxed) {
                return end.clone();
            }
            progress(self.advance());
            self.ended.wait_for(&mut end, TICK.min(deadline - now));
        }
    }

    fn run(&self, run: Work) {
        self.has_begun.store(true, Ordering::Relaxed);
        let is_told_to_stop = || self.interrupt.load(Ordering::Relaxed);
        if is_told_to_stop() {
            return self.finish(End::Stopped);
        }
        self.finish(
            match std::panic::catch_unwind(AssertUnwindSafe(|| apart(|| run(self)))) {
                Ok(Ok(Made::Index(outcome))) if outcome.interrupted => End::Stopped,
                Ok(Ok(made)) => End::Done(made),
                Ok(Err(_)) if is_told_to_stop() => End::Stopped,
                Ok(Err(error)) => End::Failed(format!("{error:#}")),
                Err(_) => End::Failed("the build panicked".to_owned()),
            },
        );
    }

    fn finish(&self, end: End) {
        *self.end.lock() = Some(end);
        self.ended.notify_all();
    }
}

/// Runs a build on its own thread pool. In the global pool, a query would have to wait until hundreds of files are
/// indexed.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().build() {
        Ok(pool) => pool.install(work),
        // No thread pool can be started, so the work runs on this thread.
        Err(_) => work(),
    }
}

/// Pauses a build until dropped.
pub(crate) struct Hold(Arc<Job>);

impl Drop for Hold {
    fn drop(&mut self) {
        *self.0.n_holds.lock() -= 1;
        self.0.let_go.notify_all();
    }
}

impl Progress for Job {
    fn begin(&self, stage: Stage, n_blobs: usize) {
        let mut course = self.course();
        *course = Course {
            stage: Some(stage),
            n_ahead: n_blobs,
            n_done: 0,
            n_before: course.n_before + course.n_done,
        };
    }

    fn advance(&self, _: u64) {
        self.course().n_done += 1;
        let mut n_holds = self.n_holds.lock();
        while *n_holds > 0 && !self.interrupt.load(Ordering::Relaxed) {
            self.let_go.wait_for(&mut n_holds, TICK);
        }
    }

    fn end(&self) {
        let mut course = self.course();
        if course.stage == Some(Stage::Waiting) {
            course.stage = None;
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::sync::mpsc;

    use super::*;
    use crate::model::{Oid, TreeId};

    const LONG: Duration = Duration::from_secs(60);

    fn target(number: u8) -> Target {
        Target {
            commit: None,
            tree: TreeId(Oid::from_bytes(&[number; 20]).unwrap()),
        }
    }

    #[test]
    fn what_was_asked_for_last_is_built_next() {
        let jobs = Jobs::default();
        let (begin, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let first = jobs.ensure(Task::Index, "first", target(1), move |_| {
            released.recv_timeout(LONG).unwrap();
            Ok(Made::Index(Outcome::default()))
        });
        while !first.0.advance().has_begun {
            std::thread::yield_now();
        }
        let ask = |number: u8| {
            let begin = begin.clone();
            let run = move |_: &Job| {
                begin.send(number).unwrap();
                Ok(Made::Index(Outcome::default()))
            };
            jobs.ensure(Task::Index, "other", target(number), run)
        };
        assert!(ask(2).1 && ask(3).1 && ask(4).1);
        assert!(!ask(2).1, "it waits already");
        release.send(()).unwrap();
        let order: Vec<u8> = (0..3).map(|_| has_begun.recv_timeout(LONG).unwrap()).collect();
        assert_eq!(order, [2, 4, 3]);
        assert!(matches!(first.0.end(), Some(End::Done(_))));
    }

    #[test]
    fn each_stage_is_counted_from_its_beginning() {
        let jobs = Jobs::default();
        let (sender, receiver) = mpsc::channel();
        let run = move |job: &Job| {
            let steps: [&dyn Fn(); 4] = [
                &|| job.begin(Stage::Recording, 3),
                &|| (0..3).for_each(|_| Progress::advance(job, 0)),
                &|| job.begin(Stage::Lines, 2),
                &|| Progress::advance(job, 0),
            ];
            for step in steps {
                step();
                sender.send(job.advance()).unwrap();
            }
            Ok(Made::Index(Outcome::default()))
        };
        jobs.ensure(Task::Searchable, "one", target(1), run);
        let counted = |_| {
            let advance: Advance = receiver.recv_timeout(LONG).unwrap();
            (advance.to_text(), advance.n_before + advance.n_done)
        };
        let counted: Vec<(String, usize)> = (0..4).map(counted).collect();
        let expected = [
            ("0 of 3 commits read", 0),
            ("3 of 3 commits read", 3),
            ("0 of 2 paths read", 3),
            ("1 of 2 paths read", 4),
        ];
        assert_eq!(counted, expected.map(|(text, n_all)| (text.to_owned(), n_all)));
    }

    #[test]
    fn a_build_goes_on_when_nothing_holds_it_up() {
        let jobs = Jobs::default();
        let (begin, begun) = mpsc::channel();
        let (sender, receiver) = mpsc::channel();
        let run = move |job: &Job| {
            begun.recv_timeout(LONG).unwrap();
            Progress::advance(job, 0);
            sender.send(()).unwrap();
            Ok(Made::Index(Outcome::default()))
        };
        let (job, _) = jobs.ensure(Task::Index, "one", target(1), run);
        let holds = [job.hold(), job.hold()];
        begin.send(()).unwrap();
        while job.advance().n_done == 0 {
            std::thread::yield_now();
        }
        for hold in holds {
            assert!(receiver.try_recv().is_err());
            drop(hold);
        }
        receiver.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn a_build_stops_when_the_last_call_gives_it_up() {
        let jobs = Jobs::default();
        let run = |job: &Job| {
            while !job.interrupt.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let interrupted = true;
            Ok(Made::Index(Outcome {
                interrupted,
                ..Outcome::default()
            }))
        };
        let (job, _) = jobs.ensure(Task::Index, "one", target(1), run);
        let (same, is_new) = jobs.ensure(Task::Index, "one", target(1), run);
        assert!(!is_new && Arc::ptr_eq(&job, &same));
        job.give_up();
        assert!(!job.interrupt.load(Ordering::Relaxed));
        same.give_up();
        let end = job.wait(LONG, &AtomicBool::new(false), &|_| {});
        assert!(matches!(end, Some(End::Stopped)), "{end:?}");
        assert!(job.to_text().contains("stopped"));
    }
}
