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
use super::op::{Op, PageOf};
use super::paths::{name_or_place, path_of};
use super::precise::Wanted;
use super::question::{About, Question};
use crate::link::{DefId, Linker};
use crate::model::count::count;
use crate::query::{FoundDefinition, LineStarts, TargetError, meant};
use crate::session::Result;

/// Maximum number of candidates, and of mentions, that an answer lists.
const MAX_LISTED: usize = 200;
/// Maximum number of each of them in the text of an answer.
const MAX_SHOWN: usize = 20;

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
    candidates: Vec<PlaceOut>,
    n_candidates: usize,
    mentions: Vec<PlaceOut>,
    n_mentions: usize,
}

/// A place that is not changed.
#[derive(Debug, Serialize)]
struct PlaceOut {
    path: String,
    line: u32,
    /// 1-based, in bytes.
    column: u32,
    /// Why it is not certain, or where the text is.
    reason: &'static str,
    text: String,
}

impl Op for Rename {
    type Facts = Facts;
    type Row = PatchOut;
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
            candidates: plan.out(&plan.candidates),
            n_candidates: plan.candidates.len(),
            mentions: plan.out(&plan.mentions),
            n_mentions: plan.mentions.len(),
        };
        let mut page = writer.write(&edited)?.map(facts, |patch| patch);
        page.notes.splice(0..0, page.facts.notes(self.apply));
        page.notes.extend(note_of_errors(&question, &found.name, &errors));
        Ok(page)
    }
}

impl Rename {
    /// Finds the definition to rename. Several that can only be renamed together count as one.
    fn target(&self, ask: &Ask<'_>, question: &Question<'_>, linker: &Linker<'_>) -> Result<(DefId, FoundDefinition)> {
        let (query, _) = name_or_place(&ask.session.workspace, question.view(), &self.target)?;
        let outcome = meant(&question.sources(), query, Some(linker), |_| true)?;
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
    fn out(&self, places: &[Place]) -> Vec<PlaceOut> {
        let shown = places.iter().take(MAX_LISTED);
        shown.map(|place| self.place(place)).collect()
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
        let mut notes = vec![format!(
            "{} {done}; {state}: {}, {} in text",
            count(self.changed, "place"),
            count(self.n_candidates, "candidate"),
            count(self.n_mentions, "mention"),
        )];
        let lists = [
            ("candidate", &self.candidates, self.n_candidates),
            ("mention", &self.mentions, self.n_mentions),
        ];
        for (what, list, n_all) in lists {
            notes.extend(list.iter().take(MAX_SHOWN).map(|place| {
                let PlaceOut {
                    path,
                    line,
                    column,
                    reason,
                    text,
                } = place;
                format!("{what} {path}:{line}:{column} ({reason}) {text}")
            }));
            if n_all > MAX_SHOWN {
                notes.push(format!("and {} more", count(n_all - MAX_SHOWN, what)));
            }
        }
        notes
    }
}
