//! Follows links: which references mean a definition, and what a definition refers to.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use super::environment::Module;
use super::facts::{DefId, Facts, Family};
use super::globals::ATTRIBUTE;
use super::resolve::{Exports, Linker, MAX_CANDIDATES, MAX_DEPTH, Sym, Tier};
use crate::extract::{BindingKind, Definition, DefinitionKind, Globals, ReferenceKind, Value, language, profile};
use crate::index::lexical::{LexicalError, for_each_term};
use crate::model::ByteRange;
use crate::snapshot::FileId;

/// Limit on the names that imports give to a definition.
const MAX_NAMES: usize = 16;
/// Number of files with a name that take as much memory as a reference.
const FILES_PER_REFERENCE: usize = 4;
/// Limit on the definitions that count as one function.
const MAX_PARTS: usize = 16;

/// A reference and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The file.
    pub file: FileId,
    /// The range of the name.
    pub range: ByteRange,
    /// The kind of reference.
    pub kind: ReferenceKind,
    /// The innermost definition that contains the reference.
    pub inside: Option<DefId>,
    /// How the reference was resolved.
    pub tier: Tier,
    /// The definitions that it means, or if the tier is not sure, that it could mean.
    pub targets: Vec<DefId>,
    /// True if a compiler names a definition that this revision has in no file with facts.
    pub is_lost: bool,
}

/// The references with the name of a definition.
#[derive(Clone, Debug, Default)]
pub struct Mentions {
    /// References that mean or could mean the definition, by file and position.
    pub sites: Vec<Site>,
    /// Number of references and local variables with the name that mean something else in the repository.
    pub n_elsewhere: usize,
    /// Number of references with the name that mean something outside of the repository.
    pub n_outside: usize,
    /// References with the name of which nothing is known.
    pub unknown: Vec<Site>,
    /// The files that may contain the name.
    pub files: Vec<FileId>,
    /// Number of files that may contain the name and were left out.
    pub n_left_out: usize,
}

impl Linker<'_> {
    /// Finds the references that mean a definition, in the files that are wanted. Reads only files that contain one of
    /// its names.
    pub fn mentions(&self, of: DefId, is_wanted: impl Fn(FileId) -> bool + Sync) -> Result<Mentions, LexicalError> {
        self.find_mentions(&self.meanings(of), true, is_wanted)
    }

    /// Like [`Self::mentions`], of several definitions, without the number of local variables.
    pub(super) fn mentions_of_any(
        &self,
        targets: &[DefId],
        is_wanted: impl Fn(FileId) -> bool + Sync,
    ) -> Result<Mentions, LexicalError> {
        self.find_mentions(targets, false, is_wanted)
    }

    fn find_mentions(
        &self,
        targets: &[DefId],
        counts_locals: bool,
        is_wanted: impl Fn(FileId) -> bool + Sync,
    ) -> Result<Mentions, LexicalError> {
        let own = self.own_names(targets);
        let names = self.names(targets, own.clone())?;
        let mut files = self.files_with_any(&names)?;
        let n_files = files.len();
        files.retain(|file| is_wanted(*file));
        let files: Vec<FileId> = files.into_iter().collect();
        let targets: HashSet<DefId> = targets.iter().copied().collect();
        let found = files
            .par_iter()
            .map(|&file| self.mentions_in(file, &targets, (&own, &names), counts_locals));
        let mut all = Mentions {
            n_left_out: n_files - files.len(),
            ..Mentions::default()
        };
        for found in found.collect::<Vec<_>>() {
            all.sites.extend(found.sites);
            all.n_elsewhere += found.n_elsewhere;
            all.n_outside += found.n_outside;
            all.unknown.extend(found.unknown);
        }
        all.files = files;
        Ok(all)
    }

    /// Returns the files that may mention a definition, sorted.
    pub fn files_mentioning(&self, of: DefId) -> Result<Vec<FileId>, LexicalError> {
        let targets = self.meanings(of);
        let names = self.names(&targets, self.own_names(&targets))?;
        Ok(self.files_with_any(&names)?.into_iter().collect())
    }

    fn files_with_any(&self, names: &[String]) -> Result<BTreeSet<FileId>, LexicalError> {
        let mut files = BTreeSet::new();
        for name in names {
            files.extend(self.files_naming(name)?.iter().copied());
        }
        Ok(files)
    }

    /// Returns the number of files that may contain the name of a definition. Returns `None` if it exceeds `limit`.
    pub fn n_files_naming(&self, of: DefId, limit: usize) -> Result<Option<usize>, LexicalError> {
        let Some(definition) = self.definition(of) else {
            return Ok(Some(0));
        };
        let files = self.files_with_up_to(&definition.name, limit)?;
        Ok((files.len() <= limit).then_some(files.len()))
    }

    /// Finds the mentions in a file by the definitions' own names and all their names.
    fn mentions_in(
        &self,
        file: FileId,
        targets: &HashSet<DefId>,
        (own, names): (&[String], &[String]),
        counts_locals: bool,
    ) -> Mentions {
        let mut found = Mentions::default();
        let Some(facts) = self.facts(file) else { return found };
        let is_of_family = targets.iter().next().and_then(|of| self.family(*of)) == Some(facts.family);
        let named = names.iter().flat_map(|name| facts.references_named(name));
        for &index in named {
            let site = self.site(&facts, index);
            let has_own_name = own.contains(&facts.references[index as usize].name);
            // The list of candidates may have been cut.
            let is_cut = site.tier == Tier::Named && site.targets.len() >= MAX_CANDIDATES;
            let may_mean = is_cut && has_own_name && is_of_family;
            if may_mean || site.targets.iter().any(|target| targets.contains(target)) {
                found.sites.push(site);
            } else if has_own_name {
                match site.tier {
                    Tier::Outside => found.n_outside += 1,
                    Tier::Unknown => found.unknown.push(site),
                    _ => found.n_elsewhere += 1,
                }
            }
        }
        let filled = own.iter().flat_map(|name| self.filled(&facts, name, targets));
        let filled: Vec<Site> = filled.collect();
        let is_other = |local: u32| !facts.is_mention(local) && filled.iter().all(|site| site.range.start != local);
        let counted = own.iter().filter(|_| counts_locals);
        let locals = counted.flat_map(|name| facts.bindings_of(name));
        found.n_elsewhere += locals.filter(|(_, local)| is_other(local.start)).count();
        found.sites.extend(filled);
        found.sites.sort_by_key(|site| site.range.start);
        found.unknown.sort_by_key(|site| site.range.start);
        found
    }

    fn family(&self, of: DefId) -> Option<Family> {
        self.facts(of.file).map(|facts| facts.family)
    }

    /// Returns the references inside a definition and the blocks that implement it.
    pub fn uses(&self, of: DefId) -> Vec<Site> {
        self.uses_in(&self.whole_parts(of))
    }

    /// Returns the definition, its other parts, and the blocks that implement it.
    pub fn whole_parts(&self, of: DefId) -> Vec<DefId> {
        let parts = self.same_in_scope(of).into_iter();
        parts.flat_map(|part| self.parts_of(part, MAX_DEPTH)).collect()
    }

    /// Returns the references inside definitions.
    pub fn uses_in(&self, parts: &[DefId]) -> Vec<Site> {
        let mut sites = Vec::new();
        for part in parts {
            let Some(facts) = self.facts(part.file) else { continue };
            let definition = &facts.definitions[part.index as usize];
            // Decorators are before the signature.
            let body = ByteRange::new(definition.signature.start, definition.range.end);
            sites.extend(facts.references_in(body).map(|index| self.site(&facts, index as u32)));
        }
        sites
    }

    /// Returns the references in a file.
    pub fn sites_in(&self, file: FileId) -> Vec<Site> {
        let facts = self.facts(file);
        let sites = facts.iter().flat_map(|facts| {
            let indices = 0..facts.references.len() as u32;
            indices.map(|index| self.site(facts, index))
        });
        sites.collect()
    }

    /// Returns the reference at a position.
    pub fn site_at(&self, file: FileId, at: u32) -> Option<Site> {
        let facts = self.facts(file)?;
        Some(self.site(&facts, facts.reference_at(at)?))
    }

    /// Returns the name of the reference at a position.
    pub fn name_at(&self, file: FileId, at: u32) -> Option<String> {
        let facts = self.facts(file)?;
        let index = facts.reference_at(at)?;
        Some(facts.references[index as usize].name.clone())
    }

    /// Returns true if the files of both can use each other's definitions.
    pub fn is_like(&self, a: FileId, b: FileId) -> bool {
        let family = |file| Family::of(self.view.lang(file));
        family(a) == family(b)
    }

    /// Returns true if names in a file are resolved to definitions of other files of its language.
    pub fn resolves_across_files(&self, file: FileId) -> bool {
        let lang = self.view.lang(file);
        !matches!(Family::of(lang), Family::Other(_)) || profile(lang).globals != Globals::None
    }

    /// Returns true if a file can have code that uses the definitions of another one, but whose references are not known.
    pub fn may_hide_uses(&self, file: FileId, of: FileId) -> bool {
        let lang = self.view.lang(file);
        let is_markup = language(lang).is_some_and(|language| language.name == "html");
        let is_script = Family::of(self.view.lang(of)) == Family::JavaScript;
        profile(lang).has_hidden_code && (is_script || !is_markup)
    }

    /// Returns the references in a file that are outside of definitions.
    pub fn uses_at_file_level(&self, file: FileId) -> Vec<Site> {
        let Some(facts) = self.facts(file) else {
            return Vec::new();
        };
        let is_outside = |index: &u32| {
            let at = facts.references[*index as usize].range.start;
            facts.enclosing(at).next().is_none()
        };
        let indices = (0..facts.references.len() as u32).filter(is_outside);
        indices.map(|index| self.site(&facts, index)).collect()
    }

    /// Returns what runs when a definition is called: the constructors of a type, or the definition itself.
    pub fn called_by_name(&self, of: DefId) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return Vec::new();
        };
        if !facts.definitions[of.index as usize].kind.is_type() {
            return self.same_in_scope(of);
        }
        let inner = facts.children(of.index).iter().copied();
        inner
            .filter(|&index| is_constructor(&facts, index))
            .map(|index| facts.def(index))
            .collect()
    }

    /// Returns the definitions with this name directly inside a type.
    pub fn own_members(&self, of: DefId, name: &str) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return Vec::new();
        };
        let inner = facts.children(of.index).iter();
        inner
            .filter(|&&index| facts.definitions[index as usize].name == name)
            .map(|&index| facts.def(index))
            .collect()
    }

    /// Returns the definitions directly inside a type and the blocks that implement it.
    pub fn members(&self, of: DefId) -> Vec<DefId> {
        let inner = |part: DefId| {
            let Some(facts) = self.facts(part.file) else {
                return Vec::new();
            };
            let inner = facts.children(part.index).iter();
            inner.map(|&index| facts.def(index)).collect()
        };
        self.parts_of(of, MAX_DEPTH).into_iter().flat_map(inner).collect()
    }

    /// Returns the type that a definition is a member of.
    pub fn type_around(&self, of: DefId) -> Option<DefId> {
        let facts = self.facts(of.file)?;
        let definition = &facts.definitions[of.index as usize];
        let mut outer = definition.container?;
        if facts.is_parameter(definition) {
            outer = facts.definitions[outer as usize].container?;
        }
        facts.definitions[outer as usize]
            .kind
            .is_type()
            .then(|| facts.def(outer))
    }

    /// Returns the type that a block implements, or the type itself.
    pub fn implemented(&self, of: DefId) -> DefId {
        let facts = self.facts(of.file);
        facts
            .and_then(|facts| self.own_type(&facts, of.index, MAX_DEPTH))
            .unwrap_or(of)
    }

    /// Returns the positions at which a file mentions a name in code, in ascending order.
    pub fn positions(&self, file: FileId, name: &str) -> BTreeSet<u32> {
        let Some(facts) = self.facts(file) else {
            return BTreeSet::new();
        };
        let named = facts.references_named(name).iter();
        let references = named.map(|&index| &facts.references[index as usize]);
        let defined = facts
            .named(name)
            .iter()
            .map(|&index| facts.definitions[index as usize].name_range.start);
        let bound = facts.bindings_of(name).map(|(_, binding)| binding.start);
        references
            .map(|reference| reference.range.start)
            .chain(defined)
            .chain(bound)
            .collect()
    }

    pub(super) fn site(&self, facts: &Facts, index: u32) -> Site {
        let reference = &facts.references[index as usize];
        let inside = facts
            .enclosing(reference.range.start)
            .next()
            .map(|index| facts.def(index));
        let is_creation = facts.anonymous(reference).is_some();
        let link = if is_creation {
            self.link_to_base(facts, index)
        } else {
            self.link(facts, index)
        };
        // In Ruby, a name that is no variable is a call.
        let is_call = facts.globals() == Globals::Constants
            && reference.kind == ReferenceKind::Value
            && reference.receiver == Value::None
            && link.tier != Tier::Outside
            && reference
                .name
                .starts_with(|first: char| first.is_lowercase() || first == '_');
        Site {
            file: facts.file,
            range: reference.range,
            kind: match reference.kind {
                _ if is_creation => ReferenceKind::Inherit,
                _ if is_call => ReferenceKind::Call,
                kind => kind,
            },
            inside,
            tier: link.tier,
            targets: link.targets,
            is_lost: link.is_lost,
        }
    }

    /// Returns the definitions that a reference to `of` may mean: a call of a type calls its constructor.
    pub fn meanings(&self, of: DefId) -> Vec<DefId> {
        let mut all = vec![of];
        let Some(facts) = self.facts(of.file) else { return all };
        let definition = &facts.definitions[of.index as usize];
        if definition.kind.is_type() {
            let same_name = |def: &DefId| facts.definitions[def.index as usize].name == definition.name;
            all.extend(self.called_by_name(of).into_iter().filter(same_name));
        } else if is_constructor(&facts, of.index) {
            all.extend(definition.container.map(|container| facts.def(container)));
        }
        all.extend(self.same_in_scope(of).into_iter().filter(|other| *other != of));
        if facts.is_prototype(of.index) {
            all.extend(self.bodies_of(vec![of]).into_iter().filter(|body| *body != of));
        }
        all
    }

    /// Returns the parts of one definition: in Python, the functions of one name in one scope are its overloads, accessors
    /// or alternatives; in Go, those in files of which a build takes one. References mean the first of them.
    fn same_in_scope(&self, of: DefId) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return vec![of];
        };
        let definition = &facts.definitions[of.index as usize];
        match facts.family {
            Family::Python if definition.kind.is_callable() => {}
            Family::Go if definition.container.is_none() && definition.name != "init" => {
                let package = self.links.environment.package_of(self, &facts).unwrap_or_default();
                let is_same = |other: &Definition| {
                    let is_callable = other.kind.is_callable() == definition.kind.is_callable();
                    is_callable && other.qualifier == definition.qualifier
                };
                let mut parts = Vec::new();
                if definition.qualifier.is_none() {
                    parts = self.at_top(&package, &definition.name);
                    parts.retain(|other| {
                        let facts = self.facts(other.file);
                        facts.is_some_and(|facts| is_same(&facts.definitions[other.index as usize]))
                    });
                } else {
                    for other in package.iter().filter_map(|file| self.facts(*file)) {
                        let named = other.named(&definition.name).iter();
                        let same = named.filter(|&&index| is_same(&other.definitions[index as usize]));
                        parts.extend(same.take(MAX_PARTS).map(|&index| other.def(index)));
                    }
                }
                parts.truncate(MAX_PARTS);
                return parts;
            }
            _ => return vec![of],
        }
        let is_part = |&&index: &&u32| {
            let other = &facts.definitions[index as usize];
            other.container == definition.container && other.kind.is_callable()
        };
        let parts = facts.named(&definition.name).iter().filter(is_part).take(MAX_PARTS);
        let mut parts: Vec<DefId> = parts.map(|&index| facts.def(index)).collect();
        if !parts.contains(&of) {
            parts.push(of);
        }
        parts
    }

    /// Returns true if a definition is a constructor.
    pub(super) fn is_constructor(&self, of: DefId) -> bool {
        self.facts(of.file)
            .is_some_and(|facts| is_constructor(&facts, of.index))
    }

    pub(super) fn own_names(&self, targets: &[DefId]) -> Vec<String> {
        let names = targets.iter().filter_map(|target| Some(self.definition(*target)?.name));
        let mut names: BTreeSet<String> = names.collect();
        let has_attributes = |target: &DefId| {
            let facts = self.facts(target.file);
            facts.is_some_and(|facts| facts.globals() == Globals::Namespaces)
        };
        if targets.iter().any(has_attributes) {
            let short = names.iter().filter_map(|name| name.strip_suffix(ATTRIBUTE));
            let short: Vec<String> = short.filter(|name| !name.is_empty()).map(str::to_owned).collect();
            names.extend(short);
        }
        names.into_iter().collect()
    }

    /// Returns the names, and those that imports give to the definitions.
    fn names(&self, targets: &[DefId], mut names: Vec<String>) -> Result<Vec<String>, LexicalError> {
        for target in targets {
            for exported in self.exported_as(*target) {
                if matches!(exported.as_str(), "default" | "exports") {
                    let files = self.may_import(target.file)?;
                    self.add_aliases("default", &files, targets, &mut names);
                } else if !names.contains(&exported) {
                    names.push(exported);
                }
            }
        }
        let mut at = 0;
        while at < names.len() && names.len() < MAX_NAMES {
            let name = names[at].clone();
            let files = self.files_naming(&name)?;
            self.add_aliases(&name, &files, targets, &mut names);
            at += 1;
        }
        Ok(names)
    }

    /// Adds the aliases under which files import `name`, if it means one of the targets there.
    fn add_aliases(&self, name: &str, files: &BTreeSet<FileId>, targets: &[DefId], names: &mut Vec<String>) {
        let aliases = |file: &FileId| {
            let Some(facts) = self.facts(*file) else {
                return Vec::new();
            };
            let imported = facts
                .imports
                .iter()
                .flat_map(|import| import.names.iter().map(move |name| (import, name)));
            let aliases = imported.filter_map(|(import, imported)| {
                let is_whole = imported.name.is_empty() && name == "default";
                let alias = imported.alias.as_ref().filter(|_| imported.name == name || is_whole)?;
                let syms = self.taken(&facts, &import.module, name, import.range.start, MAX_DEPTH);
                definitions(&syms)
                    .iter()
                    .any(|def| targets.contains(def))
                    .then(|| alias.clone())
            });
            aliases.collect::<Vec<_>>()
        };
        let found: Vec<Vec<String>> = files.par_iter().map(aliases).collect();
        for alias in found.into_iter().flatten() {
            if !names.contains(&alias) {
                names.push(alias);
            }
        }
    }

    /// Returns the names under which the file of a definition exports it.
    pub(super) fn exported_as(&self, of: DefId) -> Vec<String> {
        let known = self.links.exported.lock().get(&of.file).cloned();
        let exported = known.unwrap_or_else(|| {
            let found: Exports = self.exports_of(of.file).into();
            if !self.is_interrupted() {
                self.links.exported.lock().insert(of.file, Arc::clone(&found));
            }
            found
        });
        let first = exported.partition_point(|(def, _)| *def < of);
        let same = exported[first..].iter().take_while(|(def, _)| *def == of);
        same.map(|(_, name)| name.clone()).collect()
    }

    /// Returns the definitions that a file of JavaScript exports, sorted, with the names under which it does.
    fn exports_of(&self, file: FileId) -> Vec<(DefId, String)> {
        let Some(facts) = self.facts(file).filter(|facts| facts.family == Family::JavaScript) else {
            return Vec::new();
        };
        let exports = facts
            .bindings
            .iter()
            .filter(|binding| binding.kind == BindingKind::Export);
        let names: BTreeSet<&str> = exports.map(|binding| binding.name.as_str()).collect();
        let mut exported = Vec::new();
        for name in names {
            let sought = if name == "exports" { "default" } else { name };
            let found = definitions(&self.look_up(&Module::File(file), sought, MAX_DEPTH));
            exported.extend(found.into_iter().map(|of| (of, name.to_owned())));
        }
        exported.sort_unstable();
        exported.dedup();
        exported
    }

    /// Returns the files that may import a file of JavaScript by its name, its folder or its package.
    fn may_import(&self, file: FileId) -> Result<BTreeSet<FileId>, LexicalError> {
        let path = String::from_utf8_lossy(self.view.file(file).path).into_owned();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let stem = name.split('.').next().unwrap_or_default();
        let mut words = vec![stem.to_owned()];
        words.extend(self.links.environment.scripts.package_word(folder));
        let mut files = BTreeSet::new();
        if stem == "index" {
            words.extend(folder.rsplit('/').next().map(str::to_owned));
            // `import all from ".."` has no word of the path.
            let is_below = |path: &[u8]| path.starts_with(folder.as_bytes());
            let below = self.view.files().filter(|(_, file)| is_below(file.path));
            files.extend(below.map(|(other, _)| other).filter(|other| self.is_like(*other, file)));
        }
        for word in words.iter().filter(|word| !word.is_empty()) {
            files.extend(self.files_naming(word)?.iter());
        }
        Ok(files)
    }

    /// Returns the files that may contain a name, according to the lexical index.
    pub fn files_with(&self, name: &str) -> Result<BTreeSet<FileId>, LexicalError> {
        Ok(BTreeSet::clone(&*self.files_naming(name)?))
    }

    /// Like [`Self::files_with`]. The answer is kept.
    fn files_naming(&self, name: &str) -> Result<Arc<BTreeSet<FileId>>, LexicalError> {
        if let Some(known) = self.links.mentioning.lock().get(name) {
            return Ok(Arc::clone(known));
        }
        let files = Arc::new(self.files_with_up_to(name, usize::MAX)?);
        self.links
            .n_kept
            .fetch_add(files.len() / FILES_PER_REFERENCE, Ordering::Relaxed);
        self.links.mentioning.lock().insert(name.to_owned(), Arc::clone(&files));
        Ok(files)
    }

    /// Returns the files that may contain a name. If there are more than `limit`, returns only some of them.
    fn files_with_up_to(&self, name: &str, limit: usize) -> Result<BTreeSet<FileId>, LexicalError> {
        let mut terms = BTreeSet::new();
        for_each_term(name, |term| {
            terms.insert(term.to_owned());
        });
        // A text with a word has the terms of its parts, too. The term of the whole word is the longest.
        let is_word = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        let term = if is_word {
            terms.into_iter().max_by_key(String::len)
        } else {
            self.rarest(terms)?
        };
        let Some(term) = term else {
            return Ok(self.view.files().map(|(file, _)| file).collect());
        };
        let mut files = BTreeSet::new();
        for segment in self.view.segments().iter() {
            segment.lexical.postings_until(&term, |posting| {
                let places = self.view.places(segment.base_doc + posting.doc).iter();
                files.extend(places.map(|place| place.file));
                if files.len() > limit {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
        }
        Ok(files)
    }

    /// Returns the term that the fewest documents contain.
    fn rarest(&self, terms: BTreeSet<String>) -> Result<Option<String>, LexicalError> {
        let mut rarest: Option<(u32, String)> = None;
        for term in terms {
            let segments = self.view.segments().iter();
            let n_docs = segments.map(|segment| segment.lexical.n_docs_with(&term));
            let n_docs = n_docs.sum::<Result<u32, _>>()?;
            if rarest.as_ref().is_none_or(|(fewest, _)| n_docs < *fewest) {
                rarest = Some((n_docs, term));
            }
        }
        Ok(rarest.map(|(_, term)| term))
    }
}

impl Facts {
    /// Returns true if a reference or the name of a definition starts at `at`.
    fn is_mention(&self, at: u32) -> bool {
        self.reference_at(at).is_some()
            || self
                .enclosing(at)
                .any(|of| self.definitions[of as usize].name_range.start == at)
    }
}

fn is_constructor(facts: &Facts, index: u32) -> bool {
    let definition = &facts.definitions[index as usize];
    definition.kind == DefinitionKind::Constructor
        || facts.family == Family::Python && matches!(definition.name.as_str(), "__init__" | "__new__")
}

fn definitions(syms: &[Sym]) -> Vec<DefId> {
    syms.iter().filter_map(Sym::definition).collect()
}
