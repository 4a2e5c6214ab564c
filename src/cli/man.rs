//! `codescout man`: writes manual pages, and what `--version --verbose` prints.

use clap::CommandFactory;

use super::Found;
use super::args::{Args, ManArgs};
use crate::extract;
use crate::session::{Context as _, Result};

/// Writes a page for each command.
pub(super) fn run(args: &ManArgs) -> Result<Found> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    clap_mangen::generate_to(Args::command(), folder)
        .with_context(|| format!("cannot write in {}", folder.display()))?;
    Ok(Found::Something)
}

/// Returns what the program was built from. Release builds set the variables.
pub(super) fn build() -> String {
    let unknown = "unknown (not a release)";
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
        option_env!("CODESCOUT_COMMIT").unwrap_or(unknown),
        option_env!("CODESCOUT_DATE").unwrap_or(unknown),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}
