//! Counts the references to definitions, and recognises members that run without being named.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use super::facts::DefId;
use super::resolve::{Linker, MAX_CANDIDATES, MAX_DEPTH, Sym, Tier};
use crate::extract::{DefinitionKind, ReferenceKind, Value};
use crate::snapshot::FileId;

/// Number of references to a definition from outside of it. Imports that are resolved do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of sure references.
    pub sure: u32,
    /// Number of them in the file of the definition.
    pub own: u32,
    /// Number of other files with sure references.
    pub files: u32,
    /// Number of references that only have the name.
    pub possible: u32,
}

/// Number of references to each definition, and which files refer to which.
#[derive(Clone, Debug, Default)]
pub struct Usages {
    of: HashMap<DefId, Usage>,
    /// Pairs of different files of which the first has a sure reference to a definition in the second.
    between: Vec<(FileId, FileId)>,
}

impl Usages {
    /// Returns each definition to which there are references.
    pub fn each(&self) -> impl Iterator<Item = (DefId, Usage)> {
        self.of.iter().map(|(of, usage)| (*of, *usage))
    }

    /// Returns the references to a definition itself.
    pub fn get(&self, of: DefId) -> Usage {
        self.of.get(&of).copied().unwrap_or_default()
    }

    /// Returns the pairs of files of which the first has a sure reference to a definition in the second.
    pub fn between(&self) -> impl Iterator<Item = (FileId, FileId)> {
        self.between.iter().copied()
    }
}

impl Linker<'_> {
    /// Counts the references in `files` to each definition.
    pub fn usages(&self, files: &[FileId]) -> Usages {
        let add = |mut all: Usages, some: Usages| {
            all.between.extend(some.between);
            for (of, usage) in some.of {
                let known = all.of.entry(of).or_default();
                known.sure += usage.sure;
                known.own += usage.own;
                known.files += usage.files;
                known.possible += usage.possible;
            }
            all
        };
        let count = |all: Usages, file: &FileId| add(all, self.usages_in(*file));
        files
            .par_iter()
            .fold(Usages::default, count)
            .reduce(Usages::default, add)
    }

    fn usages_in(&self, file: FileId) -> Usages {
        let mut usages = Usages::default();
        let mut others: HashSet<FileId> = HashSet::new();
        let Some(facts) = self.facts(file) else { return usages };
        // References that may mean any definition of a name are counted by name, as both can be many.
        let mut by_name: HashMap<&str, u32> = HashMap::new();
        let mut by_name_here: HashMap<&str, u32> = HashMap::new();
        let mut from_inside: HashMap<DefId, u32> = HashMap::new();
        for index in 0..facts.references.len() as u32 {
            let reference = &facts.references[index as usize];
            let at = reference.range.start;
            let heads_impl = |of: u32| {
                facts.has_kind(of, DefinitionKind::Impl) && facts.definitions[of as usize].name_range.start == at
            };
            if facts.enclosing(at).next().is_some_and(heads_impl) {
                continue;
            }
            let link = self.link(&facts, index);
            if link.tier.is_sure() {
                others.extend(link.targets.iter().map(|target| target.file));
            }
            // An import is no use, but one that is not resolved can give a definition another name.
            if reference.kind == ReferenceKind::Import && link.tier != Tier::Named {
                continue;
            }
            let around: Vec<u32> = facts.enclosing(at).collect();
            if link.tier == Tier::Named && link.targets.len() >= MAX_CANDIDATES {
                *by_name.entry(&reference.name).or_default() += 1;
                for of in around {
                    if facts.definitions[of as usize].name == reference.name {
                        *from_inside.entry(facts.def(of)).or_default() += 1;
                    }
                }
                continue;
            }
            if link.targets.is_empty() && reference.receiver == Value::None {
                // A variable with the name of a definition may hold the definition.
                *by_name_here.entry(&reference.name).or_default() += 1;
            }
            for target in link.targets {
                if target.file == file && around.contains(&target.index) {
                    continue;
                }
                let usage = usages.of.entry(target).or_default();
                if link.tier.is_sure() {
                    usage.sure += 1;
                    usage.own += u32::from(target.file == file);
                    usage.files = u32::from(target.file != file);
                } else {
                    usage.possible += 1;
                }
            }
        }
        others.remove(&file);
        usages.between = others.into_iter().map(|other| (file, other)).collect();
        for (name, n) in by_name {
            for of in self.named(facts.family, name) {
                let n_inside = from_inside.get(&of).copied().unwrap_or_default();
                usages.of.entry(of).or_default().possible += n - n_inside;
            }
        }
        for (name, n) in by_name_here {
            for &same in facts.named(name) {
                usages.of.entry(facts.def(same)).or_default().possible += n;
            }
        }
        usages
    }

    /// Returns the number of references to a definition. Those to a type include those to its constructors.
    pub fn usage_of(&self, of: DefId, usages: &Usages) -> Usage {
        let known = self.meanings(of).into_iter().filter_map(|of| usages.of.get(&of));
        known.fold(Usage::default(), |all, one| Usage {
            sure: all.sure + one.sure,
            own: all.own + one.own,
            // A file that calls a constructor usually names the type, too.
            files: all.files.max(one.files),
            possible: all.possible + one.possible,
        })
    }

    /// Returns true if a member may run through a call of another definition: it overrides a member, its type extends
    /// something outside of the repository, or an interface has a member with its name.
    pub fn may_run_through_another(&self, of: DefId) -> bool {
        let Some(facts) = self.facts(of.file) else { return false };
        let definition = &facts.definitions[of.index as usize];
        if definition.container.is_none() && definition.qualifier.is_none() {
            return false;
        }
        if self.has_outside_base(of) {
            return true;
        }
        let abstracts = self.abstracts(facts.family, &definition.name);
        abstracts.iter().any(|other| *other != of) || !self.overridden(of).is_empty()
    }

    /// Returns true if a member's type extends something outside of the repository, directly or not.
    pub(super) fn has_outside_base(&self, of: DefId) -> bool {
        let mut open: Vec<DefId> = self.type_around(of).into_iter().collect();
        let mut seen: HashSet<DefId> = open.iter().copied().collect();
        while let Some(next) = open.pop() {
            let Some(facts) = self.facts(next.file) else { continue };
            for &base in facts.bases(next.index) {
                let syms = self.resolve_base(&facts, base, MAX_DEPTH).syms;
                if syms.is_empty() || syms.iter().any(|sym| !matches!(sym, Sym::Def(_))) {
                    return true;
                }
                let bases = syms.iter().filter_map(Sym::definition);
                open.extend(bases.filter(|base| seen.insert(*base)));
            }
            // Of so many types, one may.
            if seen.len() > MAX_CANDIDATES {
                return true;
            }
        }
        false
    }

    /// Returns true if the file of a definition also imports its name, as an alternative.
    pub fn is_imported_too(&self, of: DefId) -> bool {
        let facts = self.facts(of.file);
        facts.is_some_and(|facts| {
            let definition = &facts.definitions[of.index as usize];
            definition.container.is_none() && !facts.imports_of(&definition.name).is_empty()
        })
    }

    /// Returns true if the file of a definition exports it by name.
    pub fn is_exported(&self, of: DefId) -> bool {
        !self.exported_as(of).is_empty()
    }
}
