//! Finds what names of C and C++ mean in other files: what the included files declare, and the bodies of that.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::facts::{DefId, Facts, Family};
use super::members::Use;
use super::resolve::{Found, Linker, Sym, Tier};
use crate::extract::{DefinitionKind, Reference, ReferenceKind};
use crate::snapshot::FileId;

/// Limit on the files that one includes, directly or not.
const MAX_INCLUDED: usize = 2_000;
/// Limit on the definitions of one name that are compared.
const MAX_NAMESAKES: usize = 1_000;

/// Limit on the types and namespaces with prototypes of one name whose bodies are sought.
const MAX_OWNERS: usize = 8;

/// The files of C and C++, by the last segment of their paths.
pub(super) type FilesByName = HashMap<String, Vec<FileId>>;

impl Facts {
    /// Returns true for a function of C or C++ without a body.
    pub(super) fn is_prototype(&self, index: u32) -> bool {
        let definition = &self.definitions[index as usize];
        self.family == Family::C
            && definition.kind.is_callable()
            && definition.kind != DefinitionKind::Macro
            && definition.signature.end >= definition.range.end.saturating_sub(1)
    }

    /// Returns the name of the type or namespace of a definition: the one that encloses it, or the one that is written
    /// before its name.
    fn owner(&self, index: u32) -> Option<&str> {
        let definition = &self.definitions[index as usize];
        let outer = definition.container.map(|outer| &self.definitions[outer as usize]);
        let qualifier = definition.qualifier.as_deref();
        qualifier.or_else(|| outer.map(|outer| outer.name.as_str()))
    }
}

impl Linker<'_> {
    /// Finds a name of C or C++ that has no receiver.
    pub(super) fn bare_in_c(&self, facts: &Facts, reference: &Reference, own: Option<Found>) -> Found {
        let mut declared = Vec::new();
        if let Some(own) = own {
            let mut targets: Vec<DefId> = own.syms.iter().filter_map(Sym::definition).collect();
            if reference.kind != ReferenceKind::Call {
                targets.retain(|of| self.owner_of(*of).as_deref() != Some(&reference.name));
            }
            let is_constructor = targets.is_empty() && own.syms.iter().any(|sym| sym.definition().is_some());
            let (prototypes, bodies): (Vec<DefId>, Vec<DefId>) =
                targets.into_iter().partition(|of| self.is_prototype(*of));
            if prototypes.is_empty() && !is_constructor || !bodies.is_empty() {
                let syms = if bodies.is_empty() {
                    own.syms
                } else {
                    syms(self.without_aliases(bodies))
                };
                return Found { syms, ..own };
            }
            declared = prototypes;
        }
        let usage = Use::of(reference);
        let included = self.included(facts.file);
        let named = self.named(Family::C, &reference.name);
        let named: Vec<DefId> = named
            .into_iter()
            .take(MAX_NAMESAKES)
            .filter(|of| self.is_global(*of))
            .collect();
        let visible = named
            .iter()
            .copied()
            .filter(|of| included.binary_search(&of.file).is_ok())
            .collect();
        let (prototypes, bodies): (Vec<DefId>, Vec<DefId>) = self
            .fitting(visible, usage)
            .into_iter()
            .partition(|of| self.is_prototype(*of));
        let found = |targets| Found {
            syms: syms(targets),
            tier: Tier::Import,
        };
        declared.extend(prototypes);
        if !bodies.is_empty() {
            // One branch of the preprocessor can have a body where another has only a prototype.
            let others = self
                .bodies_of(declared)
                .into_iter()
                .filter(|of| !self.is_prototype(*of));
            let all: BTreeSet<DefId> = bodies.into_iter().chain(others).collect();
            return found(self.without_aliases(all.into_iter().collect()));
        }
        if !declared.is_empty() {
            let files: BTreeSet<FileId> = declared.iter().map(|of| of.file).collect();
            let bodies = self.fitting(self.bodies_of(declared), usage);
            // A function of that name in a file that does not see the prototype may be another, `static` one. The body can
            // be missing because of a macro or a syntax error.
            let sees = |body: &DefId| {
                let included = self.included(body.file);
                !self.is_prototype(*body) && files.iter().any(|file| included.binary_search(file).is_ok())
            };
            let (certain, others): (Vec<DefId>, Vec<DefId>) = bodies.into_iter().partition(sees);
            return Found {
                tier: if certain.is_empty() { Tier::Named } else { Tier::Import },
                syms: syms(if certain.is_empty() { others } else { certain }),
            };
        }
        // The type in `typedef struct x x_t` can be defined in the file that includes this one.
        let includes = |of: &&DefId| self.included(of.file).binary_search(&facts.file).is_ok();
        let is_type = |of: &&DefId| {
            self.definition(**of)
                .is_some_and(|definition| definition.kind.is_type())
        };
        if let [only] = named.iter().filter(is_type).collect::<Vec<_>>()[..]
            && reference.kind == ReferenceKind::Type
            && includes(&only)
        {
            return found(vec![*only]);
        }
        if self.is_defined_in(Family::C, &reference.name) {
            Found::unknown()
        } else {
            Found::outside()
        }
    }

    /// Finds the member of a namespace of C++ with this name.
    pub(super) fn in_namespace(&self, facts: &Facts, namespace: &str, reference: &Reference) -> Found {
        let usage = Use::of(reference);
        let included = self.included(facts.file);
        let is_meant = |of: &DefId| {
            let is_visible = of.file == facts.file || included.binary_search(&of.file).is_ok();
            is_visible && self.owner_of(*of).as_deref() == Some(namespace)
        };
        let named = self.named(Family::C, &reference.name);
        let found = named.into_iter().take(MAX_NAMESAKES).filter(is_meant).collect();
        let found = self.fitting(found, usage);
        if found.is_empty() {
            return Found::unknown();
        }
        Found {
            syms: syms(self.without_aliases(self.bodies_of(found))),
            tier: Tier::Receiver,
        }
    }

    /// Returns the class of a method that is defined outside of it and has code at a byte.
    pub(super) fn class_at(&self, facts: &Facts, at: u32, depth: u8) -> Option<DefId> {
        let method = facts.enclosing_callable(at)?;
        let name = facts.definitions[method as usize].qualifier.as_deref()?;
        let found = self.bare_name(facts, name, at, depth);
        let is_type = |of: &DefId| self.definition(*of).is_some_and(|definition| definition.kind.is_type());
        found.syms.iter().filter_map(Sym::definition).find(is_type)
    }

    /// Returns the class whose members a reference in a method can mean, if the method is defined outside of the class.
    pub(super) fn class_of_method(&self, facts: &Facts, reference: &Reference, depth: u8) -> Option<DefId> {
        let method = facts
            .enclosing_callable(reference.range.start)
            .filter(|_| facts.family == Family::C)?;
        let qualifier = facts.definitions[method as usize].qualifier.as_deref()?;
        (qualifier != reference.name).then(|| self.class_at(facts, reference.range.start, depth))?
    }

    /// Replaces prototypes by the bodies that they declare, and drops the others if some have one.
    pub(super) fn bodies_of(&self, declared: Vec<DefId>) -> Vec<DefId> {
        let is_prototype = |of: &DefId| self.is_prototype(*of);
        if declared.iter().any(|of| !is_prototype(of)) {
            return declared.into_iter().filter(|of| !is_prototype(of)).collect();
        }
        let (mut bodies, mut owners) = (BTreeSet::new(), BTreeSet::new());
        for of in &declared {
            let Some(facts) = self.facts(of.file) else { continue };
            let definition = &facts.definitions[of.index as usize];
            let owner = facts.owner(of.index);
            if owners.len() >= MAX_OWNERS || !owners.insert(owner.map(str::to_owned)) {
                continue;
            }
            let declares = |body: &DefId| {
                self.facts(body.file).is_some_and(|other| {
                    let body_definition = &other.definitions[body.index as usize];
                    body_definition.kind.is_callable()
                        && body_definition.kind != DefinitionKind::Macro
                        && !other.is_prototype(body.index)
                        && other.owner(body.index) == owner
                        && (body.file == of.file
                            || owner.is_none()
                            || self.included(body.file).binary_search(&of.file).is_ok())
                })
            };
            bodies.extend(
                self.named(Family::C, &definition.name)
                    .into_iter()
                    .take(MAX_NAMESAKES)
                    .filter(declares),
            );
        }
        if bodies.is_empty() {
            declared
        } else {
            bodies.into_iter().collect()
        }
    }

    /// Returns the definitions that fit a use, or all if none does: parameters without names are not known.
    fn fitting(&self, targets: Vec<DefId>, usage: Use) -> Vec<DefId> {
        let fitting: Vec<DefId> = targets.iter().copied().filter(|of| self.fits(*of, usage)).collect();
        if fitting.is_empty() { targets } else { fitting }
    }

    /// Drops the aliases in `typedef struct x x` if there is another definition.
    fn without_aliases(&self, mut targets: Vec<DefId>) -> Vec<DefId> {
        let is_alias = |of: &DefId| {
            self.facts(of.file).is_some_and(|facts| {
                let definition = &facts.definitions[of.index as usize];
                let named = facts.references_in(definition.range);
                definition.kind == DefinitionKind::TypeAlias
                    && facts.references[named]
                        .iter()
                        .any(|reference| reference.name == definition.name)
            })
        };
        if targets.len() > 1 && !targets.iter().all(is_alias) {
            targets.retain(|of| !is_alias(of));
        }
        targets
    }

    /// Returns true for a function of C or C++ without a body.
    pub fn is_prototype(&self, of: DefId) -> bool {
        self.facts(of.file).is_some_and(|facts| facts.is_prototype(of.index))
    }

    fn owner_of(&self, of: DefId) -> Option<String> {
        self.facts(of.file)?.owner(of.index).map(str::to_owned)
    }

    /// Returns true if a definition is no member of a type, and not inside a function.
    fn is_global(&self, of: DefId) -> bool {
        let Some(facts) = self.facts(of.file) else { return false };
        let definition = &facts.definitions[of.index as usize];
        let container = definition.container.map(|outer| facts.definitions[outer as usize].kind);
        let is_outside = match container {
            None | Some(DefinitionKind::Module) => true,
            Some(DefinitionKind::Enum) => definition.kind == DefinitionKind::Variant,
            Some(_) => definition.kind == DefinitionKind::Macro,
        };
        is_outside
            && definition.qualifier.is_none()
            && facts.is_name(of.index)
            && definition.kind != DefinitionKind::Module
            && definition.kind != DefinitionKind::Field
    }

    /// Returns the files that a file includes, directly or not, sorted.
    pub(super) fn included(&self, file: FileId) -> Arc<[FileId]> {
        let lock = || self.links.included.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&file) {
            return Arc::clone(known);
        }
        let mut found = BTreeSet::new();
        let mut open = vec![file];
        while let Some(next) = open.pop().filter(|_| found.len() < MAX_INCLUDED) {
            let included = self.includes(next);
            open.extend(included.iter().filter(|included| found.insert(**included)));
        }
        let found: Arc<[FileId]> = found.into_iter().collect();
        self.links.n_kept.fetch_add(found.len() / 4, Ordering::Relaxed);
        lock().insert(file, Arc::clone(&found));
        found
    }

    /// Returns the files that a file includes itself.
    fn includes(&self, file: FileId) -> Arc<[FileId]> {
        let lock = || self.links.includes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&file) {
            return Arc::clone(known);
        }
        let facts = self.facts(file).filter(|facts| facts.family == Family::C);
        let found = facts.iter().flat_map(|facts| {
            let modules = facts.imports.iter().map(|import| &import.module);
            modules.filter_map(|module| self.included_by(facts, module))
        });
        let found: Arc<[FileId]> = found.collect::<BTreeSet<_>>().into_iter().collect();
        lock().insert(file, Arc::clone(&found));
        found
    }

    /// Returns the file that an include names: the one beside the including file, or else the one whose path ends with
    /// the name and begins most like that of the including file.
    pub(super) fn included_by(&self, facts: &Facts, module: &str) -> Option<FileId> {
        let name = module
            .trim_start_matches('<')
            .trim_end_matches('>')
            .trim_start_matches("./");
        let environment = &self.links.environment;
        let folder = facts.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if !module.starts_with('<')
            && let Some(beside) = environment.below(folder, name)
        {
            return Some(beside);
        }
        let last = name.rsplit('/').next()?;
        let files = self.links.c_files.get_or_init(|| self.files_by_name());
        let ends = |file: &&FileId| {
            let path = environment.path(**file);
            path.strip_suffix(name)
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let n_common = |file: &&FileId| {
            let pairs = environment.path(**file).bytes().zip(facts.path.bytes());
            pairs.take_while(|(one, other)| one == other).count()
        };
        files.get(last)?.iter().filter(ends).max_by_key(n_common).copied()
    }

    fn files_by_name(&self) -> FilesByName {
        let mut files = FilesByName::new();
        for (file, _) in self
            .view
            .files()
            .filter(|(file, _)| Family::of(self.view.lang(*file)) == Family::C)
        {
            let path = self.links.environment.path(file);
            files
                .entry(path.rsplit('/').next().unwrap_or(path).to_owned())
                .or_default()
                .push(file);
        }
        files
    }
}

fn syms(targets: Vec<DefId>) -> Vec<Sym> {
    targets.into_iter().map(Sym::Def).collect()
}
