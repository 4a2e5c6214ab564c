//! The parameters that every question has, and what they mean.

use anyhow::Result;

use super::arguments::{Kind, Parameter};
use super::tool::Call;
use crate::extract::DefinitionKind;
pub(super) use crate::ops::Detail;
use crate::ops::{Ask, CHARACTERS_PER_TOKEN, Common, FileSelection, Question, Stale, WithTests, definition_kinds};
use crate::query::Tests;
use crate::session::Build;

/// Results at most; more come page by page.
pub(super) const MAX_LIMIT: u64 = 1_000;
/// Size of an answer unless another is asked for.
pub(super) const DEFAULT_MAX_TOKENS: usize = 2_000;
/// Size of an answer at most: what clients take without cutting it themselves.
pub(super) const MAX_CHARACTERS: usize = 40_000;

pub(super) const REF: Parameter = Parameter::new("ref", Kind::Text, "default WORKTREE");
pub(super) const REPO: Parameter = Parameter::new("repo", Kind::Text, "");
pub(super) const PATH: Parameter = Parameter::new("path", Kind::Texts, "globs, !glob");
const LANG: Parameter = Parameter::new("lang", Kind::Texts, "");
const KIND: Parameter = Parameter::new("kind", Kind::Texts, "function, class, ...");
const TESTS: Parameter = Parameter::new("tests", Kind::Choice(&["any", "no", "only"]), "");
pub(super) const LIMIT: Parameter = Parameter::new("limit", Kind::Number(MAX_LIMIT), "0: all");
pub(super) const MAX_TOKENS: Parameter = Parameter::new("max_tokens", Kind::Number(100_000), "");
pub(super) const CURSOR: Parameter = Parameter::new("cursor", Kind::Text, "");
pub(super) const DETAIL: Parameter = Parameter::new("detail", Kind::Choice(&["ids", "outline", "preview", "full"]), "");
pub(super) const STALE: Parameter = Parameter::new("stale", Kind::Choice(&["warn", "error", "ignore"]), "");

/// What every question has about files of a revision.
pub(super) const OF_FILES: &[Parameter] = &[
    REF, REPO, PATH, LANG, KIND, TESTS, LIMIT, MAX_TOKENS, CURSOR, DETAIL, STALE,
];

/// What a call asks for besides its own parameters.
#[derive(Debug)]
pub(super) struct Asked {
    /// Which revision.
    pub(super) reference: String,
    /// Which files.
    pub(super) paths: Vec<String>,
    /// In which languages.
    pub(super) langs: Vec<String>,
    /// Whether tests.
    pub(super) tests: Tests,
    /// Kinds of definitions.
    pub(super) kinds: Vec<DefinitionKind>,
    /// How many characters.
    pub(super) characters: usize,
    /// How much of each.
    pub(super) detail: Detail,
    /// What to do while the index is being built.
    pub(super) stale: Stale,
    /// Where to go on.
    pub(super) cursor: Option<String>,
    /// What cursors are bound to.
    pub(super) question: String,
}

impl Asked {
    /// From a call's arguments.
    pub(super) fn of(call: &Call<'_>) -> Result<Self> {
        let arguments = &call.arguments;
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
            question: arguments.question(call.tool),
        })
    }
}

/// Returns the parameters that operations share.
pub(super) fn common(call: &Call<'_>) -> Result<Common> {
    let asked = Asked::of(call)?;
    Ok(Common {
        reference: asked.reference,
        limit: call.arguments.number("limit"),
        cursor: asked.cursor,
        detail: asked.detail,
        stale: asked.stale,
        characters: Some(asked.characters),
        question: asked.question,
    })
}

/// A question with the shared parameters.
pub(super) struct Asking<'a> {
    pub(super) asked: Asked,
    question: Question<'a>,
}

impl<'a> std::ops::Deref for Asking<'a> {
    type Target = Question<'a>;
    fn deref(&self) -> &Question<'a> {
        &self.question
    }
}

impl std::ops::DerefMut for Asking<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.question
    }
}

impl<'a> Asking<'a> {
    pub(super) fn of(call: &Call<'_>, ask: &'a Ask<'a>, build: Build) -> Result<Self> {
        Self::about(
            call,
            ask,
            crate::ops::About {
                build,
                ..crate::ops::About::files(&selection(call)?)
            },
        )
    }

    pub(super) fn about(call: &Call<'_>, ask: &'a Ask<'a>, about: crate::ops::About<'_>) -> Result<Self> {
        Ok(Self {
            asked: Asked::of(call)?,
            question: Question::new(ask, &about)?,
        })
    }
}

pub(super) fn selection(call: &Call<'_>) -> Result<FileSelection> {
    let asked = Asked::of(call)?;
    Ok(FileSelection {
        path: asked.paths,
        lang: asked.langs,
        tests: match asked.tests {
            Tests::Any => WithTests::Any,
            Tests::No => WithTests::No,
            Tests::Only => WithTests::Only,
        },
    })
}
