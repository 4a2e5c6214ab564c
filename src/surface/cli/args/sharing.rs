//! What carries an index elsewhere, and brings it from there.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout export project.bundle
  codescout export project.bundle main v1.2.0 --sign key.pem
  codescout export - | ssh host 'cd project && codescout import -'")]
pub(crate) struct ExportArgs {
    /// The file to write; `-` writes to standard output
    pub(crate) file: PathBuf,
    /// What to export: commits, branches or tags; what `--ref` says if there are none
    #[arg(value_name = "REV")]
    pub(crate) revisions: Vec<String>,
    /// Whole segments with their words, for who trusts this machine: taken in at once, but larger
    #[arg(long)]
    pub(crate) ready: bool,
    /// Also what the models on servers, or in a folder, have made: vectors for clones that have them in use too
    #[arg(long)]
    pub(crate) vectors: bool,
    /// Also the record of commits, which is made first where it is missing: what `index --history` makes
    #[arg(long)]
    pub(crate) history: bool,
    /// Sign it with the Ed25519 key in this PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout import project.bundle
  codescout import project.bundle --trust public.pem
  codescout import --inspect project.bundle --json")]
pub(crate) struct ImportArgs {
    /// The file to read; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Only if it is signed by this key: 64 hexadecimal digits, or a PEM file; then it is not compared with the files
    #[arg(long, value_name = "KEY", conflicts_with = "inspect")]
    pub(crate) trust: Option<String>,
    /// Show what the file says of itself and take in nothing
    #[arg(long)]
    pub(crate) inspect: bool,
    /// Compare everything it says with the files, not a part
    #[arg(long, conflicts_with = "inspect")]
    pub(crate) compare_all: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout ci key --github
  codescout ci restore
  codescout ci save")]
pub(crate) struct CiArgs {
    #[command(subcommand)]
    pub(crate) command: CiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CiCommand {
    /// Print the keys that a cache of this revision is kept under
    Key(KeyArgs),
    /// Take in the archive that a cache has brought back
    Restore(RestoreArgs),
    /// Index, and write the archive that a cache is to keep, if it has something new
    Save(SaveArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout push --dry-run
  codescout push --yes
  codescout push upstream main v1.2.0 --sign key.pem")]
pub(crate) struct PushArgs {
    /// The remote, by its name or its address
    #[arg(default_value = "origin")]
    pub(crate) remote: String,
    /// What to push the index of: commits, branches or tags; what `--ref` says if there are none
    #[arg(value_name = "REV")]
    pub(crate) revisions: Vec<String>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    /// Also the record of commits, which is made first where it is missing: what `index --history` makes
    #[arg(long)]
    pub(crate) history: bool,
    /// Sign it with the Ed25519 key in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
    /// In the place of all that is there, not beside it
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout pull --dry-run
  codescout pull --yes
  codescout pull upstream --trust public.pem")]
pub(crate) struct PullArgs {
    /// The remote, by its name or its address
    #[arg(default_value = "origin")]
    pub(crate) remote: String,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    /// Also the record of commits, if one is there of commits that are here
    #[arg(long)]
    pub(crate) history: bool,
    /// Only what is signed by this key: 64 hexadecimal digits, or a PEM file
    #[arg(long, value_name = "KEY")]
    pub(crate) trust: Option<String>,
    /// Compare everything it says with the files, not a part
    #[arg(long)]
    pub(crate) compare_all: bool,
    /// No more than so many bytes may come; with K, M or G behind
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size)]
    pub(crate) max_size: u64,
}

/// Whether something is to be sent or brought.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConsentArgs {
    /// Only show what would be sent or brought
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Do it without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Bytes as people write them.
fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((digits, "K" | "k")) => (digits, 10),
        Some((digits, "M" | "m")) => (digits, 20),
        Some((digits, "G" | "g")) => (digits, 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "a number of bytes, or with K, M or G behind".to_owned())
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyArgs {
    /// As outputs of a step of GitHub Actions: key, restore-keys
    #[arg(long, conflicts_with = "gitlab")]
    pub(crate) github: bool,
    /// As variables for GitLab, whose keys have no prefixes: CODESCOUT_KEY, CODESCOUT_MOVING_KEY
    #[arg(long)]
    pub(crate) gitlab: bool,
    /// The branch of the moving key
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) branch: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    /// The archive; .codescout-ci/index.bundle if none is named
    pub(crate) file: Option<PathBuf>,
    /// Only if it is signed by this key: 64 hexadecimal digits, or a PEM file
    #[arg(long, value_name = "KEY")]
    pub(crate) trust: Option<String>,
    /// Compare it with the files as import does: for a cache that others can write to
    #[arg(long)]
    pub(crate) compare: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SaveArgs {
    /// The archive; .codescout-ci/index.bundle if none is named
    pub(crate) file: Option<PathBuf>,
    /// Also the record of commits, which is made first where it is missing: what `index --history` makes
    #[arg(long)]
    pub(crate) history: bool,
    /// Sign it with the Ed25519 key in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
    /// Print saved=true or saved=false, as an output of a step of GitHub Actions
    #[arg(long)]
    pub(crate) github: bool,
    /// Also in a job of a pull or merge request
    #[arg(long)]
    pub(crate) force: bool,
}
