//! The parameters that every question has, and what they mean.

use anyhow::Result;

use super::arguments::{Arguments, Kind, Parameter};
use super::desk::{Looking, Seen};
use super::failure::Failure;
use super::tool::Call;
use crate::extract::DefinitionKind;
use crate::query::{CursorKey, FileFilter, Tests};
use crate::surface::answer::definition_kinds;
use std::sync::Arc;
use std::time::Duration;

/// Results unless another number is asked for.
pub(super) const DEFAULT_LIMIT: usize = 10;
/// Results at most; more come page by page.
pub(super) const MAX_LIMIT: u64 = 1_000;
/// Size of an answer unless another is asked for.
pub(super) const DEFAULT_MAX_TOKENS: usize = 2_000;
/// Size of an answer at most: what clients take without cutting it themselves.
pub(super) const MAX_CHARACTERS: usize = 40_000;
/// How many characters count as a token.
pub(super) const CHARACTERS_PER_TOKEN: usize = 4;

pub(super) const REF: Parameter = Parameter::new("ref", Kind::Text, "commit-ish, INDEX or WORKTREE (default)");
pub(super) const REPO: Parameter = Parameter::new("repo", Kind::Text, "path of another repository");
pub(super) const PATH: Parameter = Parameter::new("path", Kind::Texts, "globs; !glob leaves out");
pub(super) const LANG: Parameter = Parameter::new("lang", Kind::Texts, "");
pub(super) const KIND: Parameter = Parameter::new("kind", Kind::Texts, "function, class, ...");
pub(super) const TESTS: Parameter = Parameter::new("tests", Kind::Choice(&["any", "no", "only"]), "");
pub(super) const LIMIT: Parameter = Parameter::new("limit", Kind::Number(MAX_LIMIT), "0: all");
pub(super) const MAX_TOKENS: Parameter = Parameter::new("max_tokens", Kind::Number(100_000), "default 2000");
pub(super) const CURSOR: Parameter = Parameter::new("cursor", Kind::Text, "next_cursor of the last answer");
pub(super) const DETAIL: Parameter = Parameter::new("detail", Kind::Choice(&["ids", "outline", "preview", "full"]), "");
pub(super) const STALE: Parameter = Parameter::new("stale", Kind::Choice(&["warn", "error", "ignore"]), "");

/// How much is told of each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// Where it is.
    Ids,
    /// And what it is.
    Outline,
    /// And how it begins.
    #[default]
    Preview,
    /// All of it.
    Full,
}

/// What to do where the index is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stale {
    /// Answer from the files, and say so.
    #[default]
    Warn,
    /// Fail.
    Error,
    /// Take what was seen last.
    Ignore,
}

/// What a call asks for besides its own parameters.
#[derive(Debug)]
pub(super) struct Asked {
    reference: String,
    paths: Vec<String>,
    langs: Vec<String>,
    tests: Tests,
    /// Kinds of definitions.
    pub(super) kinds: Vec<DefinitionKind>,
    /// How many results.
    pub(super) limit: usize,
    /// How many characters.
    pub(super) characters: usize,
    /// How much of each.
    pub(super) detail: Detail,
    stale: Stale,
    cursor: Option<String>,
    question: String,
}

impl Asked {
    /// From a call's arguments.
    pub(super) fn of(tool: &str, arguments: &Arguments) -> Result<Self> {
        let max_tokens = match arguments.number("max_tokens") {
            None | Some(0) => DEFAULT_MAX_TOKENS,
            Some(max_tokens) => max_tokens,
        };
        Ok(Self {
            reference: arguments.text("ref").unwrap_or("WORKTREE").to_owned(),
            paths: arguments.texts("path"),
            langs: arguments.texts("lang"),
            tests: match arguments.text("tests") {
                Some("no") => Tests::No,
                Some("only") => Tests::Only,
                _ => Tests::Any,
            },
            kinds: definition_kinds(&arguments.texts("kind"))?,
            limit: match arguments.number("limit") {
                None => DEFAULT_LIMIT,
                Some(0) => MAX_LIMIT as usize,
                Some(limit) => limit,
            },
            characters: (max_tokens.saturating_mul(CHARACTERS_PER_TOKEN)).clamp(400, MAX_CHARACTERS),
            detail: match arguments.text("detail") {
                Some("ids") => Detail::Ids,
                Some("outline") => Detail::Outline,
                Some("full") => Detail::Full,
                _ => Detail::Preview,
            },
            stale: match arguments.text("stale") {
                Some("error") => Stale::Error,
                Some("ignore") => Stale::Ignore,
                _ => Stale::Warn,
            },
            cursor: arguments.text("cursor").map(str::to_owned),
            question: arguments.question(tool),
        })
    }

    /// The revision, as it is now. What is not indexed within `patience` is looked at as files alone.
    pub(super) fn look(&self, call: &Call<'_>, patience: Duration) -> Result<Arc<Seen>> {
        let seen = call.desk.look(Looking {
            reference: &self.reference,
            patience,
            take_last: self.stale == Stale::Ignore,
            interrupt: call.interrupt,
        })?;
        match &seen.building {
            Some(job) if self.stale == Stale::Error => Err(Failure::new(
                format!("this revision is still being indexed: {}", job.advance().to_text()),
                "ask again later, or with stale=warn for what can be told now",
            )
            .into()),
            _ => Ok(seen),
        }
    }

    /// Which files are asked about.
    pub(super) fn filter(&self, seen: &Seen) -> Result<FileFilter> {
        Ok(FileFilter::new(&self.paths, &self.langs, self.tests)?.without(&seen.hidden))
    }

    /// What cursors of this answer are bound to.
    pub(super) fn cursor_key(&self, seen: &Seen) -> CursorKey {
        CursorKey::new(&seen.view, &self.question)
    }

    /// Where to go on, if the call says so.
    pub(super) fn after(&self, seen: &Seen) -> Result<Option<(u32, u32)>> {
        match &self.cursor {
            Some(cursor) => Ok(Some(self.cursor_key(seen).read(cursor)?)),
            None => Ok(None),
        }
    }
}
