//! What a compiler says about files: which definition each name means.
//!
//! An indexer such as scip-python writes these facts for one commit. They are checked against the text of each file
//! and kept under the file's blob and path, so that they hold at every revision with the same file. This module knows no
//! repository and no revision. Start with [`Index`] (reading SCIP), [`check`] and [`FactsFile`].

mod check;
mod file;
mod indexer;
mod positions;
mod scip;
mod symbol;

pub use check::{Checked, Mismatch, Name, check, fits};
pub use file::{FactsFile, FactsWriter, Occurrence};
pub use indexer::{INDEXERS, Indexer};
pub use scip::{Document, Index, ScipError};
