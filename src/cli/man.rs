//! `codescout man`: writes manual pages, and what `--version` prints.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::Found;
use super::args::{Args, Global, ManArgs};
use super::op::ID_DIGITS;
use crate::extract;
use crate::session::{Context as _, Result, check_output_from};
use crate::sidecar::write_atomic;

/// Writes a page for each command.
pub(super) fn run(global: &Global, args: &ManArgs) -> Result<Found> {
    let folder = &args.folder;
    check_output_from(&global.repo, &folder.join("page"))?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    write(command, folder)?;
    Ok(Found::Something)
}

/// Writes the pages of a command and of those below it. The source of each is the program, not the command.
fn write(command: Command, folder: &Path) -> Result<()> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write(command.clone(), folder)?;
    }
    let source = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command).source(source);
    let mut text = Vec::new();
    page.render(&mut text)?;
    let path = folder.join(page.get_filename());
    // A link is replaced, also one to a pipe or device.
    write_atomic(&path, &text).with_context(|| format!("cannot write {}", path.display()))
}

/// The commit that the program was built from, and its date. Set by releases and `build.rs`.
const COMMIT: Option<&str> = option_env!("CODESCOUT_COMMIT");
const DATE: Option<&str> = option_env!("CODESCOUT_DATE");

/// Returns the version, with the commit and its date if they are known.
pub(super) fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match COMMIT.and_then(|commit| commit.get(..ID_DIGITS)).zip(DATE) {
        Some((commit, date)) => format!("{version} ({commit} {date})"),
        None => version.to_owned(),
    }
}

/// Returns what the program was built from.
pub(super) fn build() -> String {
    let unknown = "unknown";
    let missing: Vec<&str> = extract::languages()
        .filter(|language| language.lacks_grammar())
        .map(|language| language.name)
        .collect();
    let grammars = if missing.is_empty() {
        "all".to_owned()
    } else {
        format!("all but {}", missing.join(", "))
    };
    format!(
        "commit: {}\ndate: {}\nplatform: {} {}\ngrammars: {grammars}\n",
        COMMIT.unwrap_or(unknown),
        DATE.unwrap_or(unknown),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}
