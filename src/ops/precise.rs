//! Asks a language server what names of the worktree mean, before a question is answered.
//!
//! What the server says becomes facts about blobs, like those of an indexer, with which the question is then answered as
//! every other. They are stored for later questions, unless uncommitted code could have changed the meanings.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::ask::Ask;
use super::question::Question;
use crate::extract::{Definition, lang_of_path, language};
use crate::git::read_small_file;
use crate::ingest::ServerFacts;
use crate::link::{DefId, Linker, Mentions, Site, Tier};
use crate::lsp::{self, Answer, AskError, Canary, KnownFile, Place};
use crate::model::count::count;
use crate::model::{BlobId, Hint, RepoPath, Stage};
use crate::query::{Source, Sources};
use crate::session::{OpError, Result, ServerAccess};
use crate::snapshot::{FileId, View};

/// Time that a command waits for a server to read the project.
const PATIENCE: Duration = Duration::from_secs(180);
/// Limit on the references whose definitions are asked one by one.
const MAX_SITES: usize = 2_000;
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
    sources: Sources<'a>,
    /// Whether files have the bytes that the view has. Filters and line endings can make them different.
    as_on_disk: RefCell<HashMap<FileId, bool>>,
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

/// Asks a language server about names in the worktree. Returns what it says, too.
pub(crate) fn ask_server(
    ask: &Ask<'_>,
    question: &Question<'_>,
    linker: &Linker<'_>,
    wanted: Wanted,
) -> Result<(Asked, Option<ServerFacts>)> {
    let view = question.view();
    if view.provenance().reference != "WORKTREE" {
        return Err(OpError::new(
            "language servers read the worktree, no other revision",
            Hint::each(
                "omit --ref or --precise: what servers have said about unchanged files is used at every revision",
                "omit ref or precise: what servers have said about unchanged files is used at every revision",
            ),
        ));
    }
    let asking = Asking {
        ask,
        sources: question.sources(),
        as_on_disk: RefCell::default(),
        linker,
        view,
        access: ask.session.server_access()?,
        file: wanted.file(),
    };
    let progress = ask.call.ctx.progress;
    progress.begin(Stage::Asking, 0);
    let said = asking.ask(wanted);
    progress.end();
    match said {
        Ok(said) => Ok(said),
        Err(Failure::Server(error @ (AskError::NotReady { .. } | AskError::Failed { .. }))) => {
            let why = format!("{error}; this answer is without it, repeat the call later");
            Ok((Asked::Without(why), None))
        }
        Err(Failure::Server(error)) => {
            let hint = match &error {
                AskError::NotInstalled { how, .. } => Hint::from(how.clone()),
                _ => Hint::each(
                    "omit --precise; `codescout doctor` lists language servers",
                    "omit precise; `codescout doctor` lists language servers",
                ),
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
    fn ask(&self, wanted: Wanted) -> Result<(Asked, Option<ServerFacts>), Failure> {
        match wanted {
            Wanted::References(of) => self.ask_references(of),
            Wanted::Uses(of) => self.ask_meanings(&self.linker.uses(of)),
            Wanted::Reference(file, at) => {
                let site = self.linker.site_at(file, at);
                self.ask_meanings(&site.into_iter().collect::<Vec<_>>())
            }
        }
    }

    /// Asks for the references to a definition, then for the meanings of those with its name that the server does not list.
    fn ask_references(&self, of: DefId) -> Result<(Asked, Option<ServerFacts>), Failure> {
        let mentions = self.linker.mentions(of, |_| true)?;
        let meanings = self.linker.meanings(of);
        let places: Vec<Place> = meanings.iter().filter_map(|of| self.name_of(*of)).collect();
        let canaries = self.canaries(&mentions);
        let answer = self.send(canaries.clone(), places, Vec::new())?;
        let mut facts = Said::new(self);
        facts.named(&answer);
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
        let open: Vec<Site> = named.filter(is_open).cloned().collect();
        facts.is_partial |= answer.is_partial;
        if !open.is_empty() {
            self.ask_sites(&open, canaries, &mut facts)?;
        }
        facts.keep()
    }

    fn ask_meanings(&self, sites: &[Site]) -> Result<(Asked, Option<ServerFacts>), Failure> {
        let mut facts = Said::new(self);
        self.ask_sites(sites, self.canaries(&Mentions::default()), &mut facts)?;
        facts.keep()
    }

    fn ask_sites(&self, sites: &[Site], canaries: Vec<Canary>, facts: &mut Said<'_>) -> Result<(), Failure> {
        facts.n_not_asked += sites.len().saturating_sub(MAX_SITES);
        let (sites, places) = self.places(&sites[..sites.len().min(MAX_SITES)]);
        let answer = self.send(canaries, Vec::new(), places)?;
        facts.is_partial |= answer.is_partial;
        facts.meanings(&sites, &answer);
        Ok(())
    }

    fn send(&self, canaries: Vec<Canary>, definitions: Vec<Place>, sites: Vec<Place>) -> Result<Answer, Failure> {
        let call = &self.ask.call;
        let lang = language(self.view.lang(self.file)).map_or("", |language| language.name);
        let question = lsp::Question {
            root: self.access.root.clone(),
            language: lang.to_owned(),
            search_path: self.access.search_path.clone(),
            files: self.files(),
            canaries,
            definitions,
            sites,
            patience: call.build_time().unwrap_or(PATIENCE),
        };
        let mut on_state = |state: &str| call.ctx.progress.say(&format!("a language server: {state}"));
        let said = call.pause(|| lsp::ask(&question, &self.access.broker, call.ctx.interrupt, &mut on_state));
        if call.ctx.is_interrupted() {
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
            path: self.path_as_on_disk(site.file)?,
            start: site.range.start,
            end: site.range.end,
        })
    }

    fn name_of(&self, of: DefId) -> Option<Place> {
        let range = self.linker.definition(of)?.name_range;
        Some(Place {
            path: self.path_as_on_disk(of.file)?,
            start: range.start,
            end: range.end,
        })
    }

    /// Returns the path of a file if the places in it are those on disk.
    fn path_as_on_disk(&self, file: FileId) -> Option<String> {
        let path = self.path(file)?;
        let is_equal = *self.as_on_disk.borrow_mut().entry(file).or_insert_with(|| {
            let stored = self.sources.reader().read(file);
            let on_disk = read_small_file(&self.access.root.join(&path));
            matches!((stored, on_disk), (Ok(Source::Bytes(stored)), Ok(Some(on_disk))) if *stored == *on_disk)
        });
        is_equal.then_some(path)
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
    /// Number of references that were too many to be asked about.
    n_not_asked: usize,
    /// True if the server did not answer all in time.
    is_partial: bool,
}

impl<'a> Said<'a> {
    fn new(asking: &'a Asking<'a>) -> Self {
        Self {
            asking,
            facts: ServerFacts::default(),
            definitions: HashMap::new(),
            n_names: 0,
            n_not_asked: 0,
            is_partial: false,
        }
    }

    fn named(&mut self, answer: &Answer) {
        self.facts.tool = format!("{} server", answer.server);
        self.facts.version.clone_from(&answer.version);
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
        self.named(answer);
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

    /// Stores the facts, unless uncommitted edits could have given them another meaning.
    fn keep(self) -> Result<(Asked, Option<ServerFacts>), Failure> {
        let Ask { session, call, .. } = self.asking.ask;
        let uncommitted = session.uncommitted("WORKTREE", call.ctx.interrupt)?;
        let is_clean = uncommitted.iter().all(|changed| !is_code(&changed.path));
        if is_clean {
            session.workspace.keep_facts(&self.facts, call.ctx.interrupt)?;
        }
        let server = format!("{} {}", self.tool(), self.facts.version);
        let mut said = format!("{} resolved by {}", count(self.n_names, "name"), server.trim());
        if !is_clean {
            said.push_str(", for this answer only because of uncommitted edits");
        }
        let as_on_disk = self.asking.as_on_disk.borrow();
        let n_different = as_on_disk.values().filter(|is_equal| !**is_equal).count();
        let mut gaps = Vec::new();
        let mut add = |n: usize, why: &str| gaps.extend((n > 0).then(|| format!("{why} {n}")));
        add(self.n_not_asked, "references not asked about, as there are too many:");
        add(
            n_different,
            "files that git stores with other bytes, such as other line ends:",
        );
        add(usize::from(self.is_partial), "parts without an answer in time:");
        let asked = if gaps.is_empty() {
            Asked::Said(said)
        } else {
            Asked::Without(format!("{said}; {}", gaps.join("; ")))
        };
        Ok((asked, Some(self.facts.clone())))
    }

    fn tool(&self) -> &str {
        self.facts.tool.trim_end_matches(" server")
    }

    fn file(&self, path: &str) -> Option<FileId> {
        let file = self.asking.view.find(path.as_bytes())?;
        self.asking.path_as_on_disk(file).map(|_| file)
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

/// Returns true unless a file can have no influence on what names mean.
fn is_code(path: &RepoPath) -> bool {
    language(lang_of_path(path)).is_some_and(|language| !language.is_prose() || language.name == "plaintext")
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
