//! Measures ranking quality with judged queries, metrics and confidence intervals.
//!
//! Judged queries come from files in the format of `docs/evaluation.md`, or from commits: the commit subject is the
//! query, the changed files are the answer, and the parent commit is searched. This module handles only the paths and
//! lines of results.

mod history;
mod judgements;
mod metrics;
mod statistics;

pub use history::{HistoryOptions, sample_history};
pub use judgements::{Category, Judged, JudgementError, Judgements, Relevant, read_folder};
pub use metrics::{Lines, Measures, Ranked, measure};
pub use statistics::{Interval, bootstrap_mean, paired_difference};
