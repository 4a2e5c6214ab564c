//! Arguments of `edit`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::edit::Verb;
use crate::ops::{Edit, path_text};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Operations: replace, replace_body, replace_doc, replace_text, replace_front_matter, insert_before,
insert_after, insert_last, remove, create, delete.

Examples:
  codescout edit edits.json --dry-run
  codescout edit replace src/parser.rs#Parser.parse --text - < parse.rs
  codescout edit replace_text src/lib.rs --old 'limit = 10' --text 'limit = 20'
  codescout edit replace_body Cargo.toml#package.version --text '\"1.1.0\"'
  codescout edit remove src/parser.rs:42
  codescout edit - <<'END'
  [{\"op\": \"insert_after\", \"target\": \"src/lib.rs#parse\", \"text\": \"fn next() {}\"}]
  END"
)]
pub(crate) struct EditArgs {
    /// File with a JSON list of operations, - for standard input; or the name of an operation
    #[arg(value_name = "FILE|OPERATION")]
    pub(crate) what: String,
    /// Target of the operation: path, path#Outer.name, path:LINE, or path:START-END for lines
    #[arg(value_parser = path_text())]
    pub(crate) target: Option<String>,
    /// New text; - for standard input
    #[arg(long, value_name = "TEXT", requires = "target", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Text that replace_text replaces
    #[arg(long, value_name = "TEXT", requires = "target", allow_hyphen_values = true)]
    pub(crate) old: Option<String>,
    /// Number of times that the old text occurs [default: 1]
    #[arg(long, value_name = "N", requires = "old", conflicts_with = "all")]
    pub(crate) count: Option<u32>,
    /// Replace all occurrences of the old text
    #[arg(long, requires = "old")]
    pub(crate) all: bool,
    /// Change the file only if it has this blob id
    #[arg(long, value_name = "BLOB", requires = "target")]
    pub(crate) expect: Option<String>,
    #[command(flatten)]
    pub(crate) edit: Edit,
}

impl EditArgs {
    /// Returns the operation that the arguments name, if they do not name a file.
    pub(crate) fn verb(&self) -> Option<Verb> {
        use clap::ValueEnum;
        self.target
            .as_ref()
            .and_then(|_| Verb::from_str(&self.what, false).ok())
    }

    /// Returns the file with the operations; `None` for standard input.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        (self.what != "-").then(|| PathBuf::from(&self.what))
    }
}
