//! Progress of long operations: a bar on a terminal, plain lines elsewhere, nothing for short operations.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use super::INTERRUPTED;
use super::render::note;
use crate::model::{Ctx, Progress, Stage};

/// Time before any progress is shown.
const SILENT: Duration = Duration::from_millis(700);
/// Interval between lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows progress on standard error.
pub(super) struct CliProgress {
    quiet: bool,
    state: Mutex<Option<Running>>,
}

struct Running {
    stage: Stage,
    began: Instant,
    last_line: Instant,
    n_blobs: usize,
    n_done: usize,
    n_bytes: u64,
    bar: Option<ProgressBar>,
}

impl CliProgress {
    pub(super) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            state: Mutex::new(None),
        }
    }

    /// Returns the context of work that reports here and stops at Ctrl-C.
    pub(super) fn ctx(&self) -> Ctx<'_> {
        Ctx::new(self, &INTERRUPTED)
    }

    fn with(&self, act: impl FnOnce(&mut Running)) {
        if let Some(running) = self.state.lock().as_mut() {
            act(running);
        }
    }
}

impl Progress for CliProgress {
    fn begin(&self, stage: Stage, n_blobs: usize) {
        self.end();
        let now = Instant::now();
        *self.state.lock() = Some(Running {
            stage,
            began: now,
            last_line: now,
            n_blobs,
            n_done: 0,
            n_bytes: 0,
            bar: None,
        });
    }

    fn advance(&self, n_bytes: u64) {
        let quiet = self.quiet;
        self.with(|running| {
            running.n_done += 1;
            running.n_bytes += n_bytes;
            if !quiet && running.began.elapsed() > SILENT {
                running.show();
            }
        });
    }

    fn say(&self, what: &str) {
        let quiet = self.quiet;
        self.with(|running| {
            if !quiet && running.began.elapsed() > SILENT {
                running.say(what);
            }
        });
    }

    fn end(&self) {
        self.with(|running| {
            if let Some(bar) = &running.bar {
                bar.finish_and_clear();
            }
        });
        *self.state.lock() = None;
    }
}

impl Running {
    fn say(&mut self, what: &str) {
        let text = format!("{} {what}", doing(self.stage));
        if std::io::stderr().is_terminal() {
            let bar = self.bar.get_or_insert_with(|| {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                let style = ProgressStyle::with_template("{msg} {elapsed}");
                bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
            });
            bar.set_message(text);
        } else if self.last_line.elapsed() > LINE_EVERY {
            self.last_line = Instant::now();
            note(&text);
        }
    }

    fn show(&mut self) {
        if std::io::stderr().is_terminal() {
            let n_blobs = self.n_blobs as u64;
            let stage = self.stage;
            let bar = self.bar.get_or_insert_with(|| new_bar(stage, n_blobs));
            bar.set_position(self.n_done as u64);
            return;
        }
        if self.stage != Stage::Waiting && self.last_line.elapsed() > LINE_EVERY {
            self.last_line = Instant::now();
            let rate = self.n_bytes as f64 / 1e6 / self.began.elapsed().as_secs_f64();
            let (doing, unit) = (doing(self.stage), self.stage.unit());
            let speed = match self.stage {
                Stage::Recording | Stage::Messages | Stage::Lines | Stage::Tracing => String::new(),
                _ => format!(", {rate:.1} MB/s"),
            };
            note(&format!("{doing} {} of {} {unit}{speed}", self.n_done, self.n_blobs));
        }
    }
}

fn doing(stage: Stage) -> &'static str {
    match stage {
        Stage::Waiting => "waiting for",
        Stage::Indexing => "indexing",
        Stage::Importing => "importing",
        Stage::Recording => "recording",
        Stage::Messages => "indexing messages:",
        Stage::Lines => "comparing changes:",
        Stage::Tracing => "tracing definitions:",
        Stage::Verifying => "reading",
        Stage::Deriving => "comparing",
        Stage::Embedding => "embedding",
        Stage::Collecting => "collecting garbage:",
        Stage::Asking => "waiting for",
    }
}

fn new_bar(stage: Stage, n_blobs: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(n_blobs), ProgressDrawTarget::stderr());
    let template = format!(
        "{} {{bar:30}} {{pos}}/{{len}} {}, {{eta}} left",
        doing(stage),
        stage.unit()
    );
    let style = ProgressStyle::with_template(&template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
