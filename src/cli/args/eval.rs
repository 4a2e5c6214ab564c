//! Arguments of `eval`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use crate::ops::SearchMode;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout eval --from-history --sample 100       use commits of this repository as queries
  codescout eval --judgements DIR --clones DIR     run judged queries on local clones
  codescout eval --judgements DIR --clones DIR --settings keyword,semantic,auto --ids odd")]
pub(crate) struct EvalArgs {
    /// Directory of judged queries in JSON (format: docs/evaluation.md)
    #[arg(long, value_name = "DIR", required_unless_present = "from_history")]
    pub(crate) judgements: Option<PathBuf>,
    /// Directory of clones of the judged repositories: DIR/name, DIR/owner/name or DIR/owner+name/repo
    #[arg(long, value_name = "DIR", requires = "judgements")]
    pub(crate) clones: Option<PathBuf>,
    /// Use commit subjects as queries and the files that each commit changed as answers, searched at its parent
    #[arg(long, conflicts_with = "judgements")]
    pub(crate) from_history: bool,
    /// Number of commits
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) sample: usize,
    /// Keep indexes below this directory instead of in the clones
    #[arg(long, value_name = "DIR")]
    pub(crate) index_dir: Option<PathBuf>,
    /// Search modes to compare; the last is compared with each of the others
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["keyword", "semantic", "auto"])]
    pub(crate) settings: Vec<SearchMode>,
    /// Also measure with the built-in model alone, without configured models, servers and reranker
    #[arg(long)]
    pub(crate) against_built_in: bool,
    /// Queries to run: all, or those whose id ends in an even or an odd number
    #[arg(long, value_enum, default_value_t)]
    pub(crate) ids: IdsArg,
    /// Write each query's candidates, features and grades to this file as JSON lines
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
