//! How good answers are: judged queries, measures, and how sure one can be of them.
//!
//! Judgements are files in the format of `docs/evaluation.md`, or commits: the subject is the query, what the commit changed the
//! answer, and the parent is searched. Asks questions as anybody would and only looks at paths and lines.

mod history;
mod judgements;
mod metrics;
mod statistics;

pub use history::{HistoryOptions, sample_history};
pub use judgements::{Category, Judged, JudgementError, Judgements, Relevant, read_folder};
pub use metrics::{Measures, Ranked, measure};
pub use statistics::{Interval, bootstrap_mean, paired_difference};
