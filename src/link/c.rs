//! Finds what names of C and C++ mean in other files: what the included files declare, and the bodies of that.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::facts::{DefId, Facts, Family};
use super::members::Use;
use super::resolve::{Found, Linker, MAX_OVERLOADS, Sym, Tier, remembered};
use crate::extract::{DefinitionKind, Reference, ReferenceKind};
use crate::snapshot::FileId;

/// Limit on the files that one includes, directly or not.
const MAX_INCLUDED: usize = 2_000;
/// Limit on the types and namespaces with prototypes of one name whose bodies are sought.
const MAX_OWNERS: usize = 8;
/// Number of included files that take as much memory as a reference.
const INCLUDED_PER_REFERENCE: usize = 4;

/// The files that include one another.
#[derive(Debug, Default)]
pub(super) struct Includes {
    direct: Mutex<HashMap<FileId, Arc<[FileId]>>>,
    /// Directly or not.
    all: Mutex<HashMap<FileId, Arc<[FileId]>>>,
    /// The files of C and C++, by the last segment of their paths.
    by_name: OnceLock<HashMap<String, Vec<FileId>>>,
}

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
    /// Finds a name of C or C++ that has no receiver. `own` is what it means in its file alone.
    pub(super) fn bare_in_c(&self, facts: &Facts, reference: &Reference, own: Option<Found>) -> Found {
        let mut declared = Vec::new();
        if let Some(own) = own {
            let mut targets: Vec<DefId> = own.syms.iter().filter_map(Sym::definition).collect();
            if targets.is_empty() {
                return own;
            }
            if reference.kind != ReferenceKind::Call {
                // The name of a class before `::` is not its constructor.
                targets.retain(|of| self.owner_of(*of).as_deref() != Some(&reference.name));
            }
            let (prototypes, bodies) = self.divided(targets);
            if !bodies.is_empty() {
                let syms = syms(self.without_aliases(bodies));
                return Found { syms, ..own };
            }
            declared = prototypes;
        }
        let mut named = self.named(Family::C, &reference.name);
        named.retain(|of| self.is_global(*of));
        let found = self.declared_in_c(facts, reference, &named, declared);
        found.unwrap_or_else(|| self.invisible(facts, reference))
    }

    /// Finds what the files that a file sees declare, of the global definitions with the name of a reference. `declared`
    /// are the prototypes in the file itself.
    fn declared_in_c(
        &self,
        facts: &Facts,
        reference: &Reference,
        named: &[DefId],
        mut declared: Vec<DefId>,
    ) -> Option<Found> {
        let usage = Use::of(reference);
        let visible = named.iter().copied().filter(|of| self.sees(facts.file, of.file));
        let (prototypes, bodies) = self.divided(self.fitting(visible.take(MAX_OVERLOADS).collect(), usage));
        declared.extend(prototypes);
        if !bodies.is_empty() {
            // One branch of the preprocessor can have a body where another has only a prototype.
            let (_, others) = self.divided(self.bodies_of(declared));
            let all: BTreeSet<DefId> = bodies.into_iter().chain(others).collect();
            return Some(imported(self.without_aliases(all.into_iter().collect())));
        }
        if !declared.is_empty() {
            return Some(self.declared_bodies(declared, usage));
        }
        // The type in `typedef struct x x_t` can be defined in the file that includes this one.
        let is_type = |of: &&DefId| {
            let definition = self.definition(**of);
            definition.is_some_and(|definition| definition.kind.is_type())
        };
        let types: Vec<DefId> = named.iter().filter(is_type).copied().collect();
        let is_opaque = reference.kind == ReferenceKind::Type && types.len() == 1 && self.owner_of(types[0]).is_none();
        (is_opaque && self.sees(types[0].file, facts.file)).then(|| imported(types))
    }

    /// Returns the bodies of prototypes that fit a use.
    fn declared_bodies(&self, declared: Vec<DefId>, usage: Use) -> Found {
        let files: BTreeSet<FileId> = declared.iter().map(|of| of.file).collect();
        // A function of that name in a file that does not see the prototype may be another, `static` one. The body can be
        // missing because of a macro or a syntax error.
        let is_certain =
            |body: &DefId| !self.is_prototype(*body) && files.iter().any(|file| self.sees(body.file, *file));
        let bodies = self.fitting(self.bodies_of(declared), usage);
        let (certain, others): (Vec<DefId>, Vec<DefId>) = bodies.into_iter().partition(is_certain);
        if certain.is_empty() {
            let tier = Tier::Named;
            return Found {
                syms: syms(others),
                tier,
            };
        }
        imported(certain)
    }

    /// Divides definitions into prototypes and others.
    fn divided(&self, of: Vec<DefId>) -> (Vec<DefId>, Vec<DefId>) {
        of.into_iter().partition(|of| self.is_prototype(*of))
    }

    /// Finds the member of a namespace of C++ with this name.
    pub(super) fn in_namespace(&self, facts: &Facts, namespace: &str, reference: &Reference) -> Found {
        let mut found = self.named(Family::C, &reference.name);
        found.retain(|of| self.sees(facts.file, of.file) && self.owner_of(*of).as_deref() == Some(namespace));
        let found = self.fitting(found, Use::of(reference));
        if found.is_empty() {
            return Found::unknown();
        }
        Found {
            syms: syms(self.without_aliases(self.bodies_of(found))),
            tier: Tier::Receiver,
        }
    }

    /// Returns the class whose members `name` can mean at a byte of a method that is defined outside of the class.
    pub(super) fn class_at(&self, facts: &Facts, at: u32, name: &str, depth: u8) -> Option<DefId> {
        if facts.family != Family::C {
            return None;
        }
        let method = facts.enclosing_callable(at)?;
        let class = facts.definitions[method as usize].qualifier.as_deref();
        let found = self.bare_name(facts, class.filter(|class| *class != name)?, at, depth);
        let is_type = |of: &DefId| self.definition(*of).is_some_and(|definition| definition.kind.is_type());
        found.syms.iter().filter_map(Sym::definition).find(is_type)
    }

    /// Replaces prototypes by the bodies that they declare, and drops the others if some have one.
    pub(super) fn bodies_of(&self, declared: Vec<DefId>) -> Vec<DefId> {
        let (declared, others) = self.divided(declared);
        if !others.is_empty() {
            return others;
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
                    let kind = other.definitions[body.index as usize].kind;
                    kind.is_callable()
                        && kind != DefinitionKind::Macro
                        && !other.is_prototype(body.index)
                        && other.owner(body.index) == owner
                        && (owner.is_none() || self.sees(body.file, of.file))
                })
            };
            let named = self.named(Family::C, &definition.name);
            bodies.extend(named.into_iter().filter(declares));
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

    /// Returns true if a file is another one, or includes it, directly or not.
    pub(super) fn sees(&self, file: FileId, other: FileId) -> bool {
        file == other || self.included(file).binary_search(&other).is_ok()
    }

    /// Returns the files that a file includes, directly or not, sorted.
    fn included(&self, file: FileId) -> Arc<[FileId]> {
        remembered(&self.links.includes.all, file, || {
            let mut found = BTreeSet::new();
            let mut open = vec![file];
            while let Some(next) = open.pop().filter(|_| found.len() < MAX_INCLUDED) {
                let included = self.includes(next);
                open.extend(included.iter().filter(|included| found.insert(**included)));
            }
            let n_kept = &self.links.n_kept;
            n_kept.fetch_add(found.len() / INCLUDED_PER_REFERENCE, Ordering::Relaxed);
            found.into_iter().collect()
        })
    }

    /// Returns the files that a file includes itself.
    fn includes(&self, file: FileId) -> Arc<[FileId]> {
        remembered(&self.links.includes.direct, file, || {
            let facts = self.facts(file).filter(|facts| facts.family == Family::C);
            let included = facts.iter().flat_map(|facts| {
                let modules = facts.imports.iter().map(|import| &import.module);
                modules.filter_map(|module| self.included_by(facts, module))
            });
            included.collect()
        })
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
        let files = self.links.includes.by_name.get_or_init(|| self.files_by_name());
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

    fn files_by_name(&self) -> HashMap<String, Vec<FileId>> {
        let mut files = HashMap::<String, Vec<FileId>>::new();
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

fn imported(targets: Vec<DefId>) -> Found {
    Found {
        syms: syms(targets),
        tier: Tier::Import,
    }
}
