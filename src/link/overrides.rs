//! Relates the members of types to those of the types that they extend or implement.

use std::collections::HashSet;
use std::sync::Arc;

use super::facts::{DefId, Facts, Family};
use super::resolve::{Linker, MAX_DEPTH, Sym};
use crate::extract::{DefinitionKind, ReferenceKind};
use crate::index::lexical::LexicalError;

/// Limit on the methods of one name that are compared with interfaces.
const MAX_INTERFACES: usize = 256;

impl Linker<'_> {
    /// Returns the members that a member of a type overrides or implements.
    pub fn overridden(&self, of: DefId) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return Vec::new();
        };
        if facts.family == Family::Go {
            return self.satisfied(&facts, of);
        }
        let Some(around) = self.type_around(of) else {
            return Vec::new();
        };
        let name = &facts.definitions[of.index as usize].name;
        let mut found = Vec::new();
        // The body of an enum's constant extends the enum.
        if facts.has_kind(around.index, DefinitionKind::Variant)
            && let Some(outer) = facts.definitions[around.index as usize].container
        {
            found.extend(self.members_of(facts.def(outer), name, MAX_DEPTH));
        }
        let mut seen = HashSet::new();
        for &base in facts.bases(around.index) {
            for sym in self.resolve_base(&facts, base, MAX_DEPTH).syms {
                if let Sym::Def(base) = sym {
                    let base = self.aliased(base, MAX_DEPTH).unwrap_or(base);
                    if seen.insert(self.whole(base, MAX_DEPTH)) {
                        found.extend(self.members_of(base, name, MAX_DEPTH));
                    }
                }
            }
        }
        found.retain(|member| *member != of);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the methods of interfaces that a method of Go implements.
    fn satisfied(&self, facts: &Facts, of: DefId) -> Vec<DefId> {
        let definition = &facts.definitions[of.index as usize];
        let Some(of_type) = self.type_with_method(of) else {
            return Vec::new();
        };
        let mut found = self.named(Family::Go, &definition.name);
        found.truncate(MAX_INTERFACES);
        found.retain(|method| self.satisfies(of_type, *method));
        found
    }

    /// Returns the methods of types of Go that implement a method of an interface.
    pub(super) fn satisfied_by(&self, of: DefId) -> Vec<DefId> {
        let is_in_interface = |facts: Arc<Facts>| {
            let around = self.type_around(of)?;
            facts.has_kind(around.index, DefinitionKind::Interface).then_some(facts)
        };
        let Some(facts) = self.facts(of.file).and_then(is_in_interface) else {
            return Vec::new();
        };
        let mut found = self.named(Family::Go, &facts.definitions[of.index as usize].name);
        found.truncate(MAX_INTERFACES);
        found.retain(|member| {
            self.type_with_method(*member)
                .is_some_and(|of_type| self.satisfies(of_type, of))
        });
        found
    }

    /// Returns the type of a method of Go that has a body.
    fn type_with_method(&self, of: DefId) -> Option<DefId> {
        let facts = self.facts(of.file)?;
        facts.definitions[of.index as usize].qualifier.as_ref()?;
        self.type_of_member(&facts, of)
    }

    /// Returns true if a type of Go has all methods of the interface around `method`, with the same types in their
    /// signatures.
    fn satisfies(&self, of_type: DefId, method: DefId) -> bool {
        let (Some(facts), Some(interface)) = (self.facts(method.file), self.type_around(method)) else {
            return false;
        };
        facts.has_kind(interface.index, DefinitionKind::Interface)
            && facts.children(interface.index).iter().all(|&method| {
                let own = self.members_of(of_type, &facts.definitions[method as usize].name, MAX_DEPTH);
                own.into_iter()
                    .any(|own| self.is_spelled_like(own, &facts, interface.index, method))
            })
    }

    /// Returns true if a member of a type of Go has the types of a method of an interface in its signature. Parameters of
    /// generic types and aliases can be any type.
    fn is_spelled_like(&self, own: DefId, facts: &Facts, interface: u32, method: u32) -> bool {
        let Some(own_facts) = self.facts(own.file) else {
            return false;
        };
        let generic: HashSet<&str> = own_facts
            .generic_names(own.index)
            .chain(facts.generic_names(interface))
            .collect();
        let is_any = |name: &str| {
            let is_alias = |of: &DefId| {
                self.facts(of.file).is_some_and(|facts| {
                    facts.has_kind(of.index, DefinitionKind::TypeAlias) && facts.binding_of(of.index).is_some()
                })
            };
            generic.contains(name) || self.named(Family::Go, name).iter().any(is_alias)
        };
        let (own, theirs) = (own_facts.spelled_types(own.index), facts.spelled_types(method));
        own.len() == theirs.len()
            && own
                .iter()
                .zip(&theirs)
                .all(|(own, their)| own == their || is_any(own) || is_any(their))
    }

    /// Returns the members that override or implement a member.
    pub fn overriding(&self, of: DefId) -> Result<Vec<DefId>, LexicalError> {
        let (Some(around), Some(facts)) = (self.type_around(of), self.facts(of.file)) else {
            return Ok(Vec::new());
        };
        if facts.family == Family::Go {
            return Ok(self.satisfied_by(of));
        }
        let name = &facts.definitions[of.index as usize].name;
        let mut found = self.in_constants(around, name);
        for subtype in self.subtypes(around)? {
            found.extend(self.own_members(subtype, name));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Returns the members with a name in the constants of an enum.
    pub(super) fn in_constants(&self, of: DefId, name: &str) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return Vec::new();
        };
        let constants = facts.children(of.index).iter();
        let constants = constants.filter(|&&constant| facts.has_kind(constant, DefinitionKind::Variant));
        constants
            .flat_map(|&constant| self.own_members(facts.def(constant), name))
            .collect()
    }

    /// Returns the types and blocks that extend or implement a type, also through others.
    pub(super) fn subtypes(&self, of: DefId) -> Result<Vec<DefId>, LexicalError> {
        let mut open = vec![self.implemented(of)];
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        while let Some(base) = open.pop() {
            for &subtype in self.direct_subtypes(base)?.iter() {
                if seen.insert(subtype) {
                    found.push(subtype);
                    open.push(self.implemented(subtype));
                }
            }
        }
        Ok(found)
    }

    fn direct_subtypes(&self, of: DefId) -> Result<Arc<[DefId]>, LexicalError> {
        let lock = || self.links.subtypes.lock();
        if let Some(known) = lock().get(&of) {
            return Ok(Arc::clone(known));
        }
        let sites = self.mentions(of, |_| true)?.sites.into_iter();
        let sites = sites.filter(|site| site.kind == ReferenceKind::Inherit && site.tier.is_sure());
        let found: Arc<[DefId]> = sites.filter_map(|site| site.inside).collect();
        if !self.is_interrupted() {
            lock().insert(of, Arc::clone(&found));
        }
        Ok(found)
    }

    /// Returns the types of Go that implement an interface.
    pub fn satisfying(&self, interface: DefId) -> Result<Vec<DefId>, LexicalError> {
        let Some(facts) = self.facts(interface.file).filter(|facts| facts.family == Family::Go) else {
            return Ok(Vec::new());
        };
        let methods = facts.children(interface.index).iter();
        let mut methods = methods.filter(|&&method| facts.definitions[method as usize].kind.is_callable());
        let Some(&first) = methods.next() else {
            return Ok(Vec::new());
        };
        let members = self.overriding(facts.def(first))?.into_iter();
        let types = members.filter_map(|member| self.type_of_member(&*self.facts(member.file)?, member));
        Ok(types.collect())
    }
}
