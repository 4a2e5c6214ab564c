//! Options of `graph`.

use clap::{Args as ClapArgs, Subcommand};

use crate::ops::FileSelection;

#[derive(Debug, ClapArgs)]
pub(crate) struct GraphArgs {
    #[command(subcommand)]
    pub(crate) command: GraphCommand,
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
