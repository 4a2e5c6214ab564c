//! `codescout completions`

use clap::CommandFactory;

use super::Found;
use super::args::{Args, CompletionsArgs};
use super::render::Output;
use crate::session::Result;

pub(super) fn run(args: &CompletionsArgs, output: &mut Output) -> Result<Found> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "codescout", &mut script);
    output.bytes(&script)?;
    Ok(Found::Something)
}
