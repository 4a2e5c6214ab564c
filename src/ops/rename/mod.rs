//! `rename`: gives a definition another name, wherever it is certain that the name means it.
//!
//! `plan.rs` finds the places, `role.rs` decides what happens to each, with the rules of `languages.rs`, `names.rs` knows
//! what names are allowed, and `check.rs` resolves the files with the new name in memory before they are written. Places
//! that are not certain are only listed.

mod check;
mod languages;
mod names;
mod plan;
mod role;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use self::plan::Plan;
use self::role::Place;
use super::ask::{Ask, FileSelection, path_text};
use super::doubts::{note_of_errors, with_errors};
use super::edit::{Edit, PatchOut, Writer};
use super::op::{Op, PageOf, Paging, Row};
use super::paths::{name_or_place, path_of};
use super::precise::Wanted;
use super::question::{About, Question};
use super::sink::{Sink, Style};
use crate::link::{DefId, Linker};
use crate::model::count::count;
use crate::query::{FoundBy, FoundDefinition, LineStarts, SymbolQuery, TargetError, meant};
use crate::session::{OpError, Result};

/// Maximum number of candidates, and of mentions, that an answer lists.
const MAX_LISTED: usize = 200;
/// Maximum number of places that a tool lists before the patches, which may fill its answer.
const MAX_FIRST: usize = 40;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["target", "new_name"]))]
#[command(after_help = "Examples:
  codescout rename Parser.parse read
  codescout rename src/parser.rs#Parser.parse read --accept src/main.rs:42 --apply
  codescout rename src/parser.rs:17 read | git apply --check")]
pub(crate) struct Rename {
    /// Definition: NAME, Outer.NAME, an id (path#Outer.NAME) or PATH:LINE[:COL]
    #[arg(value_name = "NAME", value_parser = path_text())]
    #[schemars(description = "name, id, path:line")]
    target: String,
    /// New name
    #[arg(value_name = "NEW")]
    #[schemars(description = "")]
    new_name: String,
    /// Change the files; without it, the patch is only printed
    #[arg(long)]
    #[schemars(description = "write; default: only show the patch")]
    apply: bool,
    /// Also change the candidate or mention at this position; repeatable
    #[arg(long, value_name = "PATH:LINE[:COL]", value_parser = path_text())]
    #[schemars(description = "path:line[:column] of candidates to change, too")]
    accept: Vec<String>,
    /// Ask a language server, in a repository that you trust
    #[arg(long)]
    #[schemars(description = "")]
    precise: bool,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    #[serde(flatten)]
    edit: <Edit as Op>::Facts,
    target: String,
    new_name: String,
    /// The ids of the definitions that are renamed.
    definitions: Vec<String>,
    /// Number of changed places.
    changed: usize,
    /// True if no place is left that could mean the definition.
    renamed_all: bool,
    n_candidates: usize,
    n_mentions: usize,
}

/// A changed file, or a place that is not changed, about which a person must decide.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum RenameRow {
    Change(PatchOut),
    /// A reference that could mean the definition.
    Candidate(PlaceOut),
    /// The name in a text.
    Mention(PlaceOut),
}

/// A place that is not changed.
#[derive(Debug, Serialize)]
pub(crate) struct PlaceOut {
    path: String,
    line: u32,
    /// 1-based, in bytes.
    column: u32,
    /// Why it is not certain, or where the text is.
    reason: &'static str,
    text: String,
}

impl Row for RenameRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Change(patch) => patch.render(out),
            Self::Candidate(place) => place.render("candidate", out),
            Self::Mention(place) => place.render("mention", out),
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        match self {
            Self::Change(patch) => patch.bodies(),
            Self::Candidate(_) | Self::Mention(_) => Vec::new(),
        }
    }

    fn raw(&self) -> Option<(&[u8], &'static str)> {
        match self {
            Self::Change(patch) => patch.raw(),
            Self::Candidate(_) | Self::Mention(_) => None,
        }
    }
}

impl PlaceOut {
    fn render(&self, what: &str, out: &mut dyn Sink) {
        out.span(Style::Fact, what);
        out.plain(" ");
        out.span(Style::Path, &self.path);
        out.plain(&format!(":{}:{} ", self.line, self.column));
        out.span(Style::Fact, &format!("({}) ", self.reason));
        out.line(&self.text);
    }
}

impl Op for Rename {
    type Facts = Facts;
    type Row = RenameRow;
    const WHEN_TOO_SLOW: &'static str = "use diff to see whether the files were changed before you repeat it";

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let mut writer = Writer::new(ask, !self.apply)?;
        let selection = FileSelection::default();
        let mut question = Question::new(ask, &About::indexed_files(&selection))?;
        question.needs_index("a rename needs all files", "repeat the call later", None)?;
        if self.precise {
            let links = question.links();
            let (of, _) = self.target(ask, &question, &question.linker(&links))?;
            question.ask_server(Wanted::References(of))?;
        }
        let links = question.links();
        let linker = question.linker(&links);
        let (of, found) = self.target(ask, &question, &linker)?;
        let mut plan = Plan::new(&question, &linker, of, &self.new_name)?;
        plan.accept(ask, &self.accept)?;
        plan.check_clashes()?;
        let edited = plan.edited(&mut writer)?;
        plan.check_meanings(ask)?;
        let errors = with_errors(&question, &linker, &found.name)?;
        linker.check()?;
        question.sources().go_on()?;
        let (target, new_name, definitions) = (found.id, self.new_name.clone(), plan.ids()?);
        let facts = |edit| Facts {
            edit,
            target,
            new_name,
            definitions,
            changed: plan.n_changed(),
            renamed_all: plan.candidates.is_empty() && errors.is_empty() && !question.lacks_server(),
            n_candidates: plan.candidates.len(),
            n_mentions: plan.mentions.len(),
        };
        let mut page = writer.write(&edited)?.map(facts, RenameRow::Change);
        page.notes.splice(0..0, page.facts.notes(self.apply));
        page.notes.extend(note_of_errors(&question, &found.name, &errors));
        plan.add_places(ask, &mut page);
        Ok(page)
    }
}

impl Rename {
    /// Finds the definition to rename. Several that can only be renamed together count as one.
    fn target(&self, ask: &Ask<'_>, question: &Question<'_>, linker: &Linker<'_>) -> Result<(DefId, FoundDefinition)> {
        let (query, _) = name_or_place(&ask.session.workspace, question.view(), &self.target)?;
        let is_position = matches!(query, SymbolQuery::At { column: Some(_), .. });
        let outcome = meant(&question.sources(), query, Some(linker), |_| true)?;
        if is_position && outcome.found_by == FoundBy::Enclosing {
            return Err(OpError::new(
                format!("{} is no name that can be renamed", self.target),
                "local variables, parameters and words of comments are not renamed; a line without a column means the definition around it",
            ));
        }
        let mut found = outcome.definitions;
        let Some(first) = found.first() else {
            return Err(TargetError::unknown(&self.target, &outcome.near).into());
        };
        let kin = linker.kin(first.def())?.map(|kin| kin.definitions).unwrap_or_default();
        let others: BTreeSet<DefId> = found.iter().map(FoundDefinition::def).collect();
        if found.len() > 1 && !others.is_subset(&kin) {
            let ids = found.iter().map(|found| found.id.clone()).collect();
            let command = |id: &str| format!("rename {id} {}", self.new_name);
            return Err(TargetError::ambiguous(&self.target, ids, command).into());
        }
        Ok((first.def(), found.swap_remove(0)))
    }
}

impl Plan<'_> {
    /// Adds the places that are not changed. On the command line they follow the patches, which `git apply` reads.
    fn add_places(&self, ask: &Ask<'_>, page: &mut PageOf<Rename>) {
        let candidates = self.candidates.iter().take(MAX_LISTED);
        let candidates = candidates.map(|place| RenameRow::Candidate(self.place(place)));
        let mentions = self.mentions.iter().take(MAX_LISTED);
        let mentions = mentions.map(|place| RenameRow::Mention(self.place(place)));
        let mut places: Vec<RenameRow> = candidates.chain(mentions).collect();
        let n_first = match ask.common.characters {
            Some(_) => places.len().min(MAX_FIRST),
            None => 0,
        };
        let rest = places.split_off(n_first);
        page.rows.splice(0..0, places);
        page.rows.extend(rest);
        page.paging = Paging::numbered(None, 0, page.rows.len(), usize::MAX);
    }

    fn place(&self, place: &Place) -> PlaceOut {
        let bytes = self.files.get(&place.file).map_or(&[][..], |file| &file.bytes);
        let lines = LineStarts::of(bytes);
        let at = place.range.start as usize;
        let line = lines.line_of(at);
        let range = lines.range(line, line);
        let text = String::from_utf8_lossy(bytes.get(range.clone()).unwrap_or_default());
        PlaceOut {
            path: path_of(self.question.view(), place.file),
            line,
            column: (at - range.start) as u32 + 1,
            reason: place.reason,
            text: text.trim().chars().take(160).collect(),
        }
    }
}

impl Facts {
    fn notes(&self, is_applied: bool) -> Vec<String> {
        let state = if self.renamed_all { "complete" } else { "not complete" };
        let done = if is_applied { "changed" } else { "would be changed" };
        let sum = format!(
            "{} {done}; {state}: {}, {} in text",
            count(self.changed, "place"),
            count(self.n_candidates, "candidate"),
            count(self.n_mentions, "mention"),
        );
        let more = |(what, n_all): (&str, usize)| {
            let n_more = n_all.saturating_sub(MAX_LISTED);
            (n_more > 0).then(|| format!("{} not listed", count(n_more, what)))
        };
        let more = [("candidate", self.n_candidates), ("mention", self.n_mentions)]
            .into_iter()
            .filter_map(more);
        std::iter::once(sum).chain(more).collect()
    }
}
