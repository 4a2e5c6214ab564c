//! Reads the parameters that are common to several tools.

use super::arguments::{Kind, Parameter};
use super::tool::Call;
use crate::ops::{CHARACTERS_PER_TOKEN, Common, Detail, PACK_TOKENS, Stale};
use crate::session::Result;

/// Maximum number of results of one answer.
const MAX_LIMIT: u64 = 1_000;
/// Default maximum size of an answer in tokens.
const DEFAULT_MAX_TOKENS: usize = 2_000;
/// Minimum size limit of an answer in characters.
const MIN_CHARACTERS: usize = 400;
/// Maximum size of an answer in characters. Clients truncate larger answers.
pub(super) const MAX_CHARACTERS: usize = 40_000;

pub(super) const REF: Parameter = Parameter::new("ref", Kind::Text, "");
pub(super) const REPO: Parameter = Parameter::new("repo", Kind::Text, "");
pub(super) const LIMIT: Parameter = Parameter::new("limit", Kind::Number(MAX_LIMIT), "0: all");
pub(super) const MAX_TOKENS: Parameter = Parameter::new("max_tokens", Kind::Number(100_000), "");
pub(super) const CURSOR: Parameter = Parameter::new("cursor", Kind::Text, "");
pub(super) const DETAIL: Parameter = Parameter::new("detail", Kind::Choice(&["ids", "outline", "preview", "full"]), "");
/// The detail of a search.
pub(super) const DETAIL_OR_PACK: Parameter = Parameter::new(
    "detail",
    Kind::Choice(&["ids", "outline", "preview", "full", "pack"]),
    "pack: also callers, callees, tests; of A..B, too",
);
pub(super) const STALE: Parameter = Parameter::new("stale", Kind::Choice(&["warn", "error", "ignore"]), "");

/// The revision and the size limit of a call that runs no operation.
#[derive(Debug)]
pub(super) struct Asked {
    /// The revision.
    pub(super) reference: String,
    /// Maximum size of the answer in characters.
    pub(super) characters: usize,
}

impl Asked {
    /// Reads a call's arguments.
    pub(super) fn of(call: &Call<'_>) -> Result<Self> {
        let max_tokens = match call.arguments.number("max_tokens") {
            None | Some(0) if call.arguments.text("detail") == Some("pack") => PACK_TOKENS,
            None | Some(0) => DEFAULT_MAX_TOKENS,
            Some(max_tokens) => max_tokens,
        };
        Ok(Self {
            reference: call.arguments.text("ref").unwrap_or("WORKTREE").to_owned(),
            characters: (max_tokens.saturating_mul(CHARACTERS_PER_TOKEN)).clamp(MIN_CHARACTERS, MAX_CHARACTERS),
        })
    }
}

/// Returns the parameters common to all operations.
pub(super) fn common(call: &Call<'_>) -> Result<Common> {
    let arguments = &call.arguments;
    let Asked { reference, characters } = Asked::of(call)?;
    Ok(Common {
        reference,
        limit: arguments.number("limit"),
        cursor: arguments.text("cursor").map(str::to_owned),
        detail: match arguments.text("detail") {
            Some("ids") => Detail::Ids,
            Some("outline") => Detail::Outline,
            Some("full") => Detail::Full,
            Some("pack") => Detail::Pack,
            _ => Detail::Preview,
        },
        stale: match arguments.text("stale") {
            Some("error") => Stale::Error,
            Some("ignore") => Stale::Ignore,
            _ => Stale::Warn,
        },
        characters: Some(characters),
        question: arguments.question(call.tool),
    })
}
