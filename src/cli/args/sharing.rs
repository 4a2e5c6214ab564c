//! Arguments of the commands that share an index: `export`, `import`, `precise`, `ci`, `push` and `pull`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};

use crate::precise::INDEXERS;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout export project.bundle
  codescout export project.bundle main v1.2.0 --sign key.pem
  codescout export - | ssh host 'cd project && codescout import -'")]
pub(crate) struct ExportArgs {
    /// File to write; `-` writes to standard output
    pub(crate) file: PathBuf,
    /// Commits, branches or tags to export; `--ref` by default
    #[arg(value_name = "REV")]
    pub(crate) revisions: Vec<String>,
    /// Include ready-made index segments: larger, but imported without re-indexing; for trusted receivers only
    #[arg(long)]
    pub(crate) ready: bool,
    /// Include vectors of configured models, for clones that use the same models
    #[arg(long)]
    pub(crate) vectors: bool,
    /// Include commit history, recording it first if needed (see `index --history`)
    #[arg(long)]
    pub(crate) history: bool,
    /// Sign with the Ed25519 key in this PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout import project.bundle
  codescout import project.bundle --trust public.pem
  codescout import --inspect project.bundle --json
  codescout import scip index.scip --commit main")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ImportCommand>,
    /// Bundle to read; `-` reads standard input
    #[arg(required = true)]
    pub(crate) file: Option<PathBuf>,
    /// Require a signature by this key (64 hexadecimal digits or a PEM file) and skip the comparison with files
    #[arg(long, value_name = "KEY", conflicts_with = "inspect")]
    pub(crate) trust: Option<String>,
    /// Describe the file without importing it
    #[arg(long)]
    pub(crate) inspect: bool,
    /// Verify the whole index against the repository's files instead of a sample
    #[arg(long, conflicts_with = "inspect")]
    pub(crate) compare_all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Import a SCIP index: exact references from a compiler
    Scip(ImportScipArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout import scip index.scip
  codescout import scip index.scip --commit v1.2.0
  cd packages/web && scip-typescript index && codescout import scip index.scip")]
pub(crate) struct ImportScipArgs {
    /// SCIP index to read; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Commit that the indexer read; `--ref` by default
    #[arg(long, value_name = "REV")]
    pub(crate) commit: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout precise run python
  codescout precise run rust --ref v1.2.0 --allow-build")]
pub(crate) struct PreciseArgs {
    #[command(subcommand)]
    pub(crate) command: PreciseCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PreciseCommand {
    /// Run the indexer of a language on a clean checkout, and import its index
    Run(RunArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Language to index
    #[arg(value_parser = language_parser())]
    pub(crate) language: String,
    /// Let the indexer execute the build of the repository
    #[arg(long)]
    pub(crate) allow_build: bool,
    /// Do not block the network
    #[arg(long)]
    pub(crate) allow_network: bool,
    /// Stop the indexer after this number of seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(crate) timeout: u64,
    /// Stop the indexer above this memory in bytes (suffixes K, M, G)
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size)]
    pub(crate) max_memory: u64,
}

fn language_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(INDEXERS.iter().flat_map(|indexer| indexer.languages))
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
    /// Print the cache keys of this revision
    Key(KeyArgs),
    /// Import the archive that the cache restored
    Restore(RestoreArgs),
    /// Index the revision, and write the cache archive if it has changed
    Save(SaveArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout push --dry-run
  codescout push --yes
  codescout push upstream main v1.2.0 --sign key.pem")]
pub(crate) struct PushArgs {
    /// Name or URL of the remote
    #[arg(default_value = "origin")]
    pub(crate) remote: String,
    /// Commits, branches or tags whose index to push; `--ref` by default
    #[arg(value_name = "REV")]
    pub(crate) revisions: Vec<String>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    /// Include commit history, recording it first if needed (see `index --history`)
    #[arg(long)]
    pub(crate) history: bool,
    /// Sign with the Ed25519 key in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
    /// Replace what is on the remote instead of adding to it
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout pull --dry-run
  codescout pull --yes
  codescout pull upstream --trust public.pem")]
pub(crate) struct PullArgs {
    /// Name or URL of the remote
    #[arg(default_value = "origin")]
    pub(crate) remote: String,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    /// Also fetch the history index of the commits that this clone has
    #[arg(long)]
    pub(crate) history: bool,
    /// Require a signature by this key: 64 hexadecimal digits or a PEM file
    #[arg(long, value_name = "KEY")]
    pub(crate) trust: Option<String>,
    /// Verify the whole index against the repository's files instead of a sample
    #[arg(long)]
    pub(crate) compare_all: bool,
    /// Abort above this download size in bytes (suffixes K, M, G)
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size)]
    pub(crate) max_size: u64,
}

/// Options for confirming a transfer.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConsentArgs {
    /// Show what would be transferred without transferring it
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Parses a size in bytes with an optional suffix.
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
        .ok_or_else(|| "expected a number of bytes with an optional suffix K, M or G".to_owned())
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyArgs {
    /// Print as GitHub Actions step outputs: key, restore-keys
    #[arg(long, conflicts_with = "gitlab")]
    pub(crate) github: bool,
    /// Print as GitLab variables: CODESCOUT_KEY, CODESCOUT_MOVING_KEY
    #[arg(long)]
    pub(crate) gitlab: bool,
    /// Branch of the moving key
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) branch: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    /// Archive file; .codescout-ci/index.bundle by default
    pub(crate) file: Option<PathBuf>,
    /// Require a signature by this key: 64 hexadecimal digits or a PEM file
    #[arg(long, value_name = "KEY")]
    pub(crate) trust: Option<String>,
    /// Verify the archive against the files, as `import` does; for caches that others can write
    #[arg(long)]
    pub(crate) compare: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SaveArgs {
    /// Archive file; .codescout-ci/index.bundle by default
    pub(crate) file: Option<PathBuf>,
    /// Include commit history, recording it first if needed (see `index --history`)
    #[arg(long)]
    pub(crate) history: bool,
    /// Sign with the Ed25519 key in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
    /// Print saved=true or saved=false as a GitHub Actions step output
    #[arg(long)]
    pub(crate) github: bool,
    /// Save in pull request and merge request jobs too
    #[arg(long)]
    pub(crate) force: bool,
}
