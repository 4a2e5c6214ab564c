//! `symbol`: finds definitions by name, location or id, with the lines that mention them and their latest changes.
//!
//! This file finds the definitions; `page.rs` and `mentions.rs` say what is known of them.

mod mentions;
mod page;

use clap::{ArgMatches, Args, FromArgMatches};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ask::{Ask, Detail, FileSelection, KindSelection, path_text};
use super::doubts::doubts;
use super::grouped::server_not_asked;
use super::notes::outdated;
use super::op::{Op, PageOf};
use super::paths::{inside, path_of};
use super::precise::Wanted;
use super::question::{About, Question};
use crate::link::DefId;
use crate::model::Hint;
use crate::query::{
    FoundBy, LikelyQuery, MAX_MEANT, OTHER_SPELLING, Sought, SymbolOutcome, SymbolQuery, SymbolRequest, TargetError,
    parse_place, split_position, symbols,
};
use crate::session::{OpError, Result};
use page::{Facts, Lookup, Shown, SymbolRow};

/// Default maximum number of results for a prefix of a name.
const PREFIX_LIMIT: usize = 100;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout symbol Parser::parse
  codescout symbol src/parser.rs#Parser.parse --body
  codescout symbol --at src/lib.rs:42:17
  codescout symbol parse_ --prefix --lang rust
  codescout symbol parse_query --refs --json
  codescout symbol parse_query --history")]
pub(crate) struct Symbol {
    /// Name, qualified or not: parse, Parser::parse, Parser.parse; or the id of a definition
    #[arg(required_unless_present_any = ["at", "id"], conflicts_with_all = ["at", "id"], value_parser = path_text())]
    #[schemars(description = "or at, or id")]
    name: Option<String>,
    /// Find the definition of the name at this position
    #[arg(long, value_name = "PATH:LINE[:COL]", conflicts_with = "id", value_parser = path_text())]
    #[schemars(description = "path:line[:col]")]
    at: Option<String>,
    /// Find the definition with this id
    #[arg(long, value_name = "ID", value_parser = path_text())]
    #[schemars(description = "")]
    id: Option<String>,
    /// Match names that begin with NAME; if there are none, names that contain it
    #[arg(long, conflicts_with_all = ["at", "id"])]
    #[schemars(description = "match names with this prefix")]
    prefix: bool,
    /// Ask a language server, in a repository that you trust: what the name at the position means, or what refers to
    /// the definition
    #[arg(long, conflicts_with = "prefix")]
    #[schemars(description = "")]
    precise: bool,
    #[command(flatten)]
    #[schemars(with = "Vec<Included>", description = "")]
    include: Include,
    #[command(flatten)]
    #[serde(flatten)]
    files: FileSelection,
    #[command(flatten)]
    #[serde(flatten)]
    kinds: KindSelection,
}

/// The parts of an answer besides the definitions' places.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Include(Vec<Included>);

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Included {
    /// Signature
    Signature,
    /// Full text
    Body,
    /// Documentation
    Docs,
    /// Lines that mention the name
    Refs,
    /// Latest changes
    History,
}

/// The flags that select parts on the command line.
#[derive(clap::Args)]
struct IncludeFlags {
    /// Show the full text of each definition
    #[arg(short, long)]
    body: bool,
    /// Show the documentation of each definition
    #[arg(short, long, alias = "doc")]
    docs: bool,
    /// Show the lines that mention the name
    #[arg(long)]
    refs: bool,
    /// Show the latest commits that changed the definition
    #[arg(long)]
    history: bool,
}

impl Args for Include {
    fn augment_args(command: clap::Command) -> clap::Command {
        IncludeFlags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        IncludeFlags::augment_args_for_update(command)
    }
}

impl FromArgMatches for Include {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = IncludeFlags::from_arg_matches(matches)?;
        let given = [
            (flags.body, Included::Body),
            (flags.docs, Included::Docs),
            (flags.refs, Included::Refs),
            (flags.history, Included::History),
        ];
        Ok(Self(
            given
                .into_iter()
                .filter_map(|(is_given, part)| is_given.then_some(part))
                .collect(),
        ))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Op for Symbol {
    type Facts = Facts;
    type Row = SymbolRow;

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        self.check()?;
        let kinds = self.kinds.kinds()?;
        let about = About::files(&self.files);
        let about = match &self.name {
            Some(name) => about.seeking(Sought::by_name(name)),
            None => about,
        };
        let mut question = Question::new(ask, &about)?;
        let sought = self.sought(ask, &question)?;
        let has_all = question.fill(&sought)?;
        let request = SymbolRequest {
            query: self.query(ask, &question)?,
            filter: question.filter.clone(),
            kinds,
        };
        let mut outcome = self.find(&question, &request)?;
        let wanted = wanted(&outcome).filter(|_| self.precise);
        if let Some(wanted) = wanted {
            question.ask_server(wanted)?;
            outcome = self.find(&question, &request)?;
        }
        let shown = self.shown(ask);
        // Every file that defines a name contains it with the exact spelling.
        let is_complete = has_all && sought.name.is_some() && outcome.found_by == FoundBy::Name;
        let provenance = if is_complete && !outcome.definitions.is_empty() && !shown.refs {
            question.provenance_of_files()
        } else {
            question.provenance()
        };
        let lookup = Lookup {
            ask,
            question: &question,
            outcome: &outcome,
            filter: &request.filter,
            shown,
        };
        let default = if self.prefix { PREFIX_LIMIT } else { usize::MAX };
        let mut page = lookup.page(provenance, ask.limit(default))?;
        if self.precise && wanted.is_none() && !outcome.definitions.is_empty() {
            page.notes.push(server_not_asked(outcome.definitions.len()));
        }
        self.explain(ask, &question, &request.query, &outcome, &mut page);
        page.notes.extend(self.doubts(&question, &outcome)?);
        for found in outcome
            .definitions
            .iter()
            .filter(|_| outcome.definitions.len() <= MAX_MEANT)
        {
            page.notes.extend(outdated(ask, &found.id)?);
        }
        Ok(page)
    }
}

/// Returns what a language server is asked for: the meaning of the name at a position, or the references to a definition.
fn wanted(outcome: &SymbolOutcome) -> Option<Wanted> {
    match (&*outcome.references, &*outcome.definitions) {
        ([(file, at), ..], _) => Some(Wanted::Reference(*file, *at)),
        ([], [found]) => Some(Wanted::References(DefId {
            file: found.file,
            index: found.index,
        })),
        _ => None,
    }
}

impl Symbol {
    fn check(&self) -> Result<()> {
        let given = [&self.name, &self.at, &self.id];
        let n_given = given
            .into_iter()
            .flatten()
            .filter(|text| !text.trim().is_empty())
            .count();
        if n_given == 1 {
            return Ok(());
        }
        Err(OpError::new(
            "exactly one of name, at and id is required",
            Hint::each("give a name, --at or --id", "use name to find a definition by its name"),
        )
        .with_retry(json!({"tool": "symbol", "arguments": {"name": "main"}})))
    }

    /// Returns the name or id as given.
    fn named(&self) -> &str {
        self.name.as_deref().or(self.id.as_deref()).unwrap_or_default()
    }

    fn shown(&self, ask: &Ask<'_>) -> Shown {
        let Include(parts) = &self.include;
        let has = |part| parts.contains(&part);
        let detail = ask.common.detail;
        let is_command = ask.common.characters.is_none();
        let is_default = parts.is_empty() && !is_command;
        Shown {
            signature: !is_default || detail >= Detail::Outline,
            body: has(Included::Body) || is_default && detail == Detail::Full,
            docs: has(Included::Docs) || is_default && detail == Detail::Preview,
            refs: has(Included::Refs),
            history: has(Included::History),
            // Of the chosen files of a fleet, they would not be those of all files.
            relations: !self.prefix
                && ask.session.workspace.fleet.is_none()
                && (is_command || detail >= Detail::Outline),
        }
    }

    /// Selects files to read while the index is being built: files that contain the name, or the named file and files
    /// with the names at the location.
    fn sought(&self, ask: &Ask<'_>, question: &Question<'_>) -> Result<LikelyQuery> {
        let workspace = &ask.session.workspace;
        let find = |path: &str| question.seen.view.find_text(path);
        if let Some(place) = &self.at {
            let place = inside(workspace, place);
            let Some((file, line)) = split_position(&place).and_then(|(path, line, _)| Some((find(path)?, line)))
            else {
                return Ok(LikelyQuery::default());
            };
            let mut text = String::new();
            if question.seen.building.is_some() {
                // The requested line is one of the first six.
                let around = question.text_around(file, line)?;
                text = around.lines().take(6).collect::<Vec<_>>().join(" ");
            }
            return Ok(LikelyQuery {
                files: vec![file],
                text,
                name: None,
            });
        }
        let named = inside(workspace, self.named());
        let files = named.rmatch_indices('#').find_map(|(at, _)| find(&named[..at]));
        let bare = named
            .rsplit(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
            .next();
        let bare = bare.unwrap_or_default().to_owned();
        Ok(LikelyQuery {
            files: files.into_iter().collect(),
            // For names with another spelling, and for names that contain or begin with it.
            text: bare.clone(),
            name: (!bare.is_empty() && !self.prefix).then_some(bare),
        })
    }

    fn query(&self, ask: &Ask<'_>, question: &Question<'_>) -> Result<SymbolQuery> {
        let workspace = &ask.session.workspace;
        if let Some(place) = &self.at {
            return match parse_place(question.view(), &inside(workspace, place)) {
                Err(_) if ask.visibility().hides_target(place) => Err(OpError::hidden(place)),
                found => Ok(found?),
            };
        }
        Ok(if self.prefix {
            SymbolQuery::Prefix(self.named().to_owned())
        } else {
            SymbolQuery::Named(inside(workspace, self.named()).into_owned())
        })
    }

    fn find(&self, question: &Question<'_>, request: &SymbolRequest) -> Result<SymbolOutcome> {
        // While the index is being built, the definition may not be indexed yet.
        let links = (self.at.is_some() && question.is_indexed()).then(|| question.links());
        let linker = links.as_deref().map(|links| question.linker(links));
        Ok(symbols(&question.sources(), request, linker.as_ref())?)
    }

    /// Returns notes about files that may have more to say about the name.
    fn doubts(&self, question: &Question<'_>, outcome: &SymbolOutcome) -> Result<Vec<String>> {
        let found = outcome.definitions.first().map(|found| found.name.as_str());
        let typed = self.named().rsplit(['#', '.', ':', '/']).next().unwrap_or_default();
        let name = found.unwrap_or(typed);
        if self.prefix || name.is_empty() || question.after.is_some() || !question.is_indexed() {
            return Ok(Vec::new());
        }
        let links = question.links();
        doubts(question, &question.linker(&links), name, found.is_some())
    }

    /// Adds notes on how the definitions were found, or the reason for an empty answer.
    fn explain(
        &self,
        ask: &Ask<'_>,
        question: &Question<'_>,
        query: &SymbolQuery,
        outcome: &SymbolOutcome,
        page: &mut PageOf<Self>,
    ) {
        if !outcome.definitions.is_empty() {
            if outcome.found_by == FoundBy::OtherSpelling {
                page.notes.push(OTHER_SPELLING.to_owned());
            }
            return;
        }
        if !question.is_indexed() {
            page.notes.push("nothing found in the files indexed so far".to_owned());
            page.hint = Some("try again later, or use search mode=regex, which reads every file now".to_owned());
            return;
        }
        let view = question.view();
        let error = match (query, self.named().rsplit_once('#')) {
            (SymbolQuery::At { file, line, .. }, _) => TargetError::Nowhere {
                path: path_of(view, *file),
                line: *line,
            },
            (_, Some((path, name))) if view.find_text(&inside(&ask.session.workspace, path)).is_some() => {
                TargetError::unknown_in(path, name, &outcome.near)
            }
            _ => TargetError::unknown(self.named(), &outcome.near),
        };
        page.explain(ask, error);
        if let Some(why) = question.why_nothing() {
            page.hint = Some(why);
        }
    }
}
