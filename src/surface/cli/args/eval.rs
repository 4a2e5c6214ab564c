//! Measuring.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::ModeArg;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout eval --from-history --sample 100       this repository's own commits as queries
  codescout eval --judgements DIR --clones DIR     judged queries over local clones
  codescout eval --judgements DIR --clones DIR --settings keyword,semantic,auto --ids odd")]
pub(crate) struct EvalArgs {
    /// Judged queries: a folder of JSON files (format: docs/evaluation.md)
    #[arg(long, value_name = "DIR", required_unless_present = "from_history")]
    pub(crate) judgements: Option<PathBuf>,
    /// Clones of the judged repositories: DIR/name, DIR/owner/name or DIR/owner+name/repo
    #[arg(long, value_name = "DIR", requires = "judgements")]
    pub(crate) clones: Option<PathBuf>,
    /// Commit subjects as queries, the files that each commit changed as answers, searched at its parent
    #[arg(long, conflicts_with = "judgements")]
    pub(crate) from_history: bool,
    /// How many commits
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) sample: usize,
    /// Keep indexes below this folder instead of in the clones
    #[arg(long, value_name = "DIR")]
    pub(crate) index_dir: Option<PathBuf>,
    /// Search modes to compare; the last is compared with each of the others
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["keyword", "semantic", "auto"])]
    pub(crate) settings: Vec<ModeArg>,
    /// Compare them by the program alone too: without the models, servers and reranker that are set
    #[arg(long)]
    pub(crate) against_built_in: bool,
    /// Which judged queries: all, those with an even number at the end of the id, or those with an odd one
    #[arg(long, value_enum, default_value_t)]
    pub(crate) ids: IdsArg,
    /// Write every query's candidates with features and grades to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) features: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum IdsArg {
    #[default]
    All,
    Even,
    Odd,
}
