//! Options of `graph`.

use clap::{Args as ClapArgs, Subcommand};

use super::Paged;
use crate::ops::{FileSelection, Graph};

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct GraphArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GraphCommand>,
    #[command(flatten)]
    pub(crate) query: Option<Paged<Graph>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Print every reference and what it refers to, one JSON object per line
    Export(GraphExportArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GraphExportArgs {
    #[command(flatten)]
    pub(crate) files: FileSelection,
}
