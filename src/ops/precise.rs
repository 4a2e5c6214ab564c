//! Asks a language server what names of the worktree mean, before a question is answered.
//!
//! What the server says is stored as facts about blobs, like the facts of an indexer. So the question is then answered
//! as every other, and later ones about the same files need no server.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::ask::Ask;
use crate::extract::{Definition, language};
use crate::ingest::{ServerFacts, Stage};
use crate::link::{DefId, Linker, Mentions, Site, Tier};
use crate::lsp::{self, Answer, AskError, Canary, KnownFile, Place};
use crate::model::count::count;
use crate::model::{BlobId, RepoPath};
use crate::session::{OpError, Result, ServerAccess};
use crate::snapshot::{FileId, View};

/// Time that a command waits for a server to read the project.
const PATIENCE: Duration = Duration::from_secs(180);
/// Limit on the references whose definitions are asked one by one.
const MAX_SITES: usize = 500;
/// Number of certain references that a server is tested with.
const N_CANARIES: usize = 6;
/// Limit on the files in which certain references are looked for.
const MAX_CANARY_FILES: usize = 50;

/// What a language server is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// The references to a definition.
    References(DefId),
    /// What the references in a definition mean.
    Uses(DefId),
    /// What the reference at a position means.
    Reference(FileId, u32),
}

/// What came of asking a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The server has answered.
    Said(String),
    /// The answer is without the server, for this reason.
    Without(String),
}

/// A question to a server that is being made.
struct Asking<'a> {
    ask: &'a Ask<'a>,
    linker: &'a Linker<'a>,
    view: &'a View,
    access: ServerAccess,
    /// A file in the language of the question.
    file: FileId,
}

impl Wanted {
    fn file(self) -> FileId {
        match self {
            Self::References(of) | Self::Uses(of) => of.file,
            Self::Reference(file, _) => file,
        }
    }
}

/// Asks a language server about names in the worktree, and stores what it says.
pub(crate) fn ask_server(ask: &Ask<'_>, view: &View, linker: &Linker<'_>, wanted: Wanted) -> Result<Asked> {
    if view.provenance().reference != "WORKTREE" {
        return Err(OpError::new(
            "language servers read the worktree, no other revision",
            "omit ref, or omit precise: what servers have said about unchanged files is used at every revision",
        ));
    }
    let asking = Asking {
        ask,
        linker,
        view,
        access: ask.session.server_access()?,
        file: wanted.file(),
    };
    let progress = ask.ctx.progress;
    progress.begin(Stage::Asking, 0);
    let said = asking.ask(wanted);
    progress.end();
    match said {
        Ok(said) => Ok(said),
        Err(Failure::Server(error @ (AskError::NotReady { .. } | AskError::Failed { .. }))) => Ok(Asked::Without(
            format!("{error}; this answer is without it, repeat the call later"),
        )),
        Err(Failure::Server(error)) => {
            let hint = match &error {
                AskError::NotInstalled { how, .. } => how.clone(),
                _ => "omit precise; `codescout doctor` lists language servers".to_owned(),
            };
            Err(OpError::new(error.to_string(), hint))
        }
        Err(Failure::Other(error)) => Err(error),
    }
}

enum Failure {
    Server(AskError),
    Other(OpError),
}

impl<E: Into<OpError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl Asking<'_> {
    fn ask(&self, wanted: Wanted) -> Result<Asked, Failure> {
        match wanted {
            Wanted::References(of) => self.ask_references(of),
            Wanted::Uses(of) => {
                let sites: Vec<Site> = self.linker.uses(of).into_iter().take(MAX_SITES).collect();
                self.ask_meanings(&sites)
            }
            Wanted::Reference(file, at) => {
                let site = self.linker.site_at(file, at);
                self.ask_meanings(&site.into_iter().collect::<Vec<_>>())
            }
        }
    }

    /// Asks for the references to a definition, then for the meanings of those with its name that the server does not list.
    fn ask_references(&self, of: DefId) -> Result<Asked, Failure> {
        let mentions = self.linker.mentions(of, |_| true)?;
        let meanings = self.linker.meanings(of);
        let places: Vec<Place> = meanings.iter().filter_map(|of| self.name_of(*of)).collect();
        let canaries = self.canaries(&mentions);
        let answer = self.send(canaries.clone(), places, Vec::new())?;
        let mut facts = Said::new(self, &answer);
        let mut listed = HashSet::new();
        for (of, references) in meanings.iter().zip(&answer.references) {
            for place in references.iter().flatten() {
                facts.reference(place, *of);
                listed.insert((place.path.clone(), place.start));
            }
        }
        let is_open = |site: &&Site| {
            let path = self.path(site.file);
            path.is_some_and(|path| !listed.contains(&(path, site.range.start)))
        };
        let named = mentions.sites.iter().chain(&mentions.unknown);
        let open: Vec<&Site> = named.filter(is_open).collect();
        let n_open = open.len();
        let open: Vec<Site> = open.into_iter().take(MAX_SITES).cloned().collect();
        let mut is_partial = answer.is_partial || n_open > open.len();
        if !open.is_empty() {
            let (sites, places) = self.places(&open);
            let answer = self.send(canaries, Vec::new(), places)?;
            is_partial |= answer.is_partial;
            facts.meanings(&sites, &answer);
        }
        facts.keep(is_partial)
    }

    fn ask_meanings(&self, sites: &[Site]) -> Result<Asked, Failure> {
        let (sites, places) = self.places(sites);
        let answer = self.send(self.canaries(&Mentions::default()), Vec::new(), places)?;
        let mut facts = Said::new(self, &answer);
        facts.meanings(&sites, &answer);
        facts.keep(answer.is_partial)
    }

    fn send(&self, canaries: Vec<Canary>, definitions: Vec<Place>, sites: Vec<Place>) -> Result<Answer, Failure> {
        let ctx = &self.ask.ctx;
        let lang = language(self.view.lang(self.file)).map_or("", |language| language.name);
        let question = lsp::Question {
            root: self.access.root.clone(),
            language: lang.to_owned(),
            search_path: self.access.search_path.clone(),
            files: self.files(),
            canaries,
            definitions,
            sites,
            patience: ctx.build_time().unwrap_or(PATIENCE),
        };
        let mut on_state = |state: &str| ctx.progress.say(&format!("a language server: {state}"));
        let said = ctx.pause(|| lsp::ask(&question, &self.access.broker, ctx.interrupt, &mut on_state));
        if ctx.is_interrupted() {
            return Err(Failure::Other(OpError::interrupted()));
        }
        said.map_err(Failure::Server)
    }

    /// Lists the files that the server may read.
    fn files(&self) -> Vec<KnownFile> {
        let files = self.view.files();
        let like = files.filter(|(file, _)| self.linker.is_like(*file, self.file));
        let known = like.filter_map(|(file, entry)| {
            Some(KnownFile {
                path: self.path(file)?,
                id: entry.entry().oid.to_string(),
            })
        });
        known.collect()
    }

    /// Returns references to definitions in other files that are certain: of those that are asked about, and others. The
    /// nearest come first, because a repository can have several projects, and a server knows one of them.
    fn canaries(&self, mentions: &Mentions) -> Vec<Canary> {
        let mut sites: Vec<&Site> = mentions.sites.iter().collect();
        sites.sort_by_key(|site| Reverse(self.nearness(site.file)));
        let asked = sites.into_iter().filter_map(|site| self.canary(site));
        let mut canaries: Vec<Canary> = asked.take(N_CANARIES / 2).collect();
        let files = self.view.files().map(|(file, _)| file);
        let mut files: Vec<FileId> = files.filter(|file| self.linker.is_like(*file, self.file)).collect();
        files.sort_by_key(|file| Reverse(self.nearness(*file)));
        for file in files.into_iter().take(MAX_CANARY_FILES) {
            if canaries.len() >= N_CANARIES {
                break;
            }
            let sites = self.linker.sites_in(file);
            // Of different files rather than all of one.
            canaries.extend(sites.iter().find_map(|site| self.canary(site)));
        }
        canaries
    }

    /// Returns the number of folders that a file shares with the file of the question.
    fn nearness(&self, file: FileId) -> usize {
        let folders = |file: FileId| self.view.file(file).path.split(|byte| *byte == b'/');
        folders(file)
            .zip(folders(self.file))
            .take_while(|(a, b)| a == b)
            .count()
    }

    fn canary(&self, site: &Site) -> Option<Canary> {
        let [definition] = site.targets.as_slice() else {
            return None;
        };
        let is_certain = matches!(site.tier, Tier::Import | Tier::Compiler) && definition.file != site.file;
        if !is_certain {
            return None;
        }
        Some(Canary {
            site: self.place(site)?,
            definition: self.name_of(*definition)?,
        })
    }

    /// Returns the references that have a place, with their places.
    fn places(&self, sites: &[Site]) -> (Vec<Site>, Vec<Place>) {
        let placed = sites.iter().filter_map(|site| Some((site.clone(), self.place(site)?)));
        placed.unzip()
    }

    fn place(&self, site: &Site) -> Option<Place> {
        Some(Place {
            path: self.path(site.file)?,
            start: site.range.start,
            end: site.range.end,
        })
    }

    fn name_of(&self, of: DefId) -> Option<Place> {
        let range = self.linker.definition(of)?.name_range;
        Some(Place {
            path: self.path(of.file)?,
            start: range.start,
            end: range.end,
        })
    }

    /// Returns the path of a file, if it can be sent.
    fn path(&self, file: FileId) -> Option<String> {
        String::from_utf8(self.view.file(file).path.to_vec()).ok()
    }
}

/// What a server has said, as facts.
struct Said<'a> {
    asking: &'a Asking<'a>,
    facts: ServerFacts,
    /// The definitions of files, as far as they were needed.
    definitions: HashMap<FileId, Vec<Definition>>,
    n_names: usize,
}

impl<'a> Said<'a> {
    fn new(asking: &'a Asking<'a>, answer: &Answer) -> Self {
        Self {
            asking,
            facts: ServerFacts {
                tool: format!("{} server", answer.server),
                version: answer.version.clone(),
                ..ServerFacts::default()
            },
            definitions: HashMap::new(),
            n_names: 0,
        }
    }

    /// Adds that a name means a definition.
    fn reference(&mut self, place: &Place, of: DefId) {
        let Some(symbol) = self.symbol(of) else { return };
        if let (Some(file), Some(name)) = (self.file(&place.path), self.asking.name_of(of)) {
            self.add(file, place.start, symbol.clone(), false);
            self.add(of.file, name.start, symbol, true);
        }
    }

    /// Adds what the server says about references.
    fn meanings(&mut self, sites: &[Site], answer: &Answer) {
        let all = sites.iter().zip(&answer.definitions).zip(&answer.is_outside);
        for ((site, places), is_outside) in all {
            // A place in a file that git does not track is outside, such as an installed package.
            let (inside, untracked): (Vec<&Place>, Vec<&Place>) = places
                .iter()
                .flatten()
                .partition(|place| self.file(&place.path).is_some());
            let is_outside = inside.is_empty() && (*is_outside || !untracked.is_empty());
            for place in inside {
                match self.definition_at(place) {
                    Some(of) => {
                        let symbol = self.symbol(of);
                        let name = self.asking.name_of(of);
                        if let (Some(symbol), Some(name)) = (symbol, name) {
                            self.add(site.file, site.range.start, symbol.clone(), false);
                            self.add(of.file, name.start, symbol, true);
                        }
                    }
                    None => self.variable(site, place),
                }
            }
            if is_outside {
                // The reference is itself the place of what has no definition here.
                let here = self.asking.place(site);
                here.iter().for_each(|here| self.variable(site, here));
            }
        }
    }

    /// Adds that a reference means something that is no definition here, such as a parameter.
    fn variable(&mut self, site: &Site, place: &Place) {
        let name = self.asking.linker.name_at(site.file, site.range.start);
        if let (Some(file), Some(name)) = (self.file(&place.path), name) {
            let (path, at) = (quoted(&place.path), quoted(&format!("@{}", place.start)));
            let symbol = format!("lsp {} . . {path}/{at}/{}.", self.tool(), quoted(&name));
            self.add(site.file, site.range.start, symbol.clone(), false);
            self.add(file, place.start, symbol, true);
        }
    }

    fn add(&mut self, file: FileId, start: u32, symbol: String, is_definition: bool) {
        let entry = self.asking.view.file(file);
        let document = (RepoPath::new(entry.path), BlobId(entry.entry().oid));
        let names = self.facts.documents.entry(document).or_default();
        self.n_names += usize::from(names.insert((start, symbol, is_definition)) && !is_definition);
    }

    /// Stores the facts.
    fn keep(self, is_partial: bool) -> Result<Asked, Failure> {
        let Ask { session, ctx, .. } = self.asking.ask;
        session.workspace.keep_facts(&self.facts, ctx.interrupt)?;
        let ServerFacts { version, .. } = &self.facts;
        let server = format!("{} {version}", self.tool());
        let said = format!("{} resolved by {}", count(self.n_names, "name"), server.trim());
        Ok(if is_partial {
            Asked::Without(format!("{said}; there are more, repeat the call"))
        } else {
            Asked::Said(said)
        })
    }

    fn tool(&self) -> &str {
        self.facts.tool.trim_end_matches(" server")
    }

    fn file(&self, path: &str) -> Option<FileId> {
        self.asking.view.find(path.as_bytes())
    }

    fn definition_at(&mut self, place: &Place) -> Option<DefId> {
        let file = self.file(&place.path)?;
        let definitions = self.definitions(file);
        let starts_here = |definition: &Definition| definition.name_range.start == place.start;
        let index = definitions.iter().position(starts_here)? as u32;
        Some(DefId { file, index })
    }

    fn definitions(&mut self, file: FileId) -> &[Definition] {
        let linker = self.asking.linker;
        self.definitions
            .entry(file)
            .or_insert_with(|| linker.definitions(file).unwrap_or_default())
    }

    /// Returns the symbol of a definition: its file and the names around it. Of several with the same names, all but the
    /// first have a number.
    fn symbol(&mut self, of: DefId) -> Option<String> {
        let path = self.asking.path(of.file)?;
        let definitions = self.definitions(of.file);
        let own = descriptors(definitions, of.index);
        let name = &definitions.get(of.index as usize)?.name;
        let before = definitions[..of.index as usize].iter().zip(0..);
        let n_before = before
            .filter(|(other, index)| other.name == *name && descriptors(definitions, *index) == own)
            .count();
        let number = match n_before {
            0 => String::new(),
            n => format!("{}/", n + 1),
        };
        Some(format!("lsp {} . . {}/{number}{own}", self.tool(), quoted(&path)))
    }
}

/// Returns the names of a definition and of those around it, from the outermost.
fn descriptors(definitions: &[Definition], index: u32) -> String {
    let mut parts = Vec::new();
    let mut at = Some(index);
    while let Some(definition) = at.and_then(|at| definitions.get(at as usize)) {
        let suffix = match definition.kind {
            kind if kind.is_type() => "#",
            kind if kind.is_callable() => "().",
            _ => ".",
        };
        parts.push(format!("{}{suffix}", quoted(&definition.name)));
        at = definition.container;
    }
    parts.reverse();
    parts.concat()
}

/// Returns a name as symbols write it.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
