//! Finds what names of Scala mean: a class and the object beside it have one name, and a package can be a part of a path.

use super::facts::{DefId, Facts};
use super::memo::deeper;
use super::resolve::{Found, Linker, Sym, Tier};
use super::types::{Base, Ty};
use crate::extract::{Arity, BindingKind, DefinitionKind, Literal, Reference, ReferenceKind, Value};

/// The method that the call of an object runs.
const APPLY: &str = "apply";

impl Facts {
    /// Returns true for an object of Scala.
    pub(super) fn is_object(&self, of: u32) -> bool {
        let binding = self.binding_of(of).map(|binding| &self.bindings[binding as usize]);
        self.is_scala()
            && binding.is_some_and(|binding| {
                binding.kind == BindingKind::Definition && binding.value == Value::Literal(Literal::Class)
            })
    }

    /// Returns true for the object of a package, whose members belong to the package.
    pub(super) fn is_package(&self, of: u32) -> bool {
        let definition = &self.definitions[of as usize];
        self.is_scala() && definition.container.is_none() && definition.kind == DefinitionKind::Module
    }
}

impl Linker<'_> {
    /// Returns true for an object of Scala.
    pub(super) fn is_object(&self, of: DefId) -> bool {
        self.facts(of.file).is_some_and(|facts| facts.is_object(of.index))
    }

    /// Of a class and an object, or an alias and a value, with one name, keeps the one that a reference means.
    pub(super) fn without_companion(&self, reference: &Reference, mut found: Found, depth: u8) -> Found {
        let is_alias = |sym: &Sym| self.kind_of(sym) == Some(DefinitionKind::TypeAlias);
        let is_called = reference.kind == ReferenceKind::Call && reference.qualifier.as_deref() != Some("new");
        if is_called && !found.syms.iter().all(is_alias) {
            found.syms.retain(|sym| !is_alias(sym));
        }
        let is_type = |sym: &Sym| self.kind_of(sym).is_some_and(DefinitionKind::is_type);
        let is_object = |sym: &Sym| sym.definition().is_some_and(|of| self.is_object(of));
        let n_objects = found.syms.iter().filter(|sym| is_object(sym)).count();
        if found.syms.len() < 2 || n_objects == 0 || n_objects == found.syms.len() || !found.syms.iter().all(is_type) {
            return found;
        }
        let has_apply = || {
            let objects = found
                .syms
                .iter()
                .filter(|sym| is_object(sym))
                .filter_map(Sym::definition);
            objects
                .into_iter()
                .any(|of| !self.members_of(of, APPLY, depth).is_empty())
        };
        let means_object = match reference.kind {
            ReferenceKind::Type | ReferenceKind::Inherit => false,
            ReferenceKind::Call => reference.qualifier.as_deref() != Some("new") && has_apply(),
            _ => true,
        };
        found.syms.retain(|sym| is_object(sym) == means_object);
        found
    }

    /// Returns the type of the call of an object.
    pub(super) fn applied(&self, object: DefId, depth: u8) -> Option<Ty> {
        let depth = deeper(depth)?;
        let members = self.members_of(object, APPLY, depth);
        let mut results = members.iter().map(|of| self.result(*of, None, depth));
        let first = results.next()??;
        let is_same = |other: Option<Ty>| match (other.map(|of| of.base), &first.base) {
            (Some(Base::Instance(other)), Base::Instance(of)) => other == *of,
            _ => false,
        };
        results.all(is_same).then_some(first)
    }

    /// Returns true for a function that takes any arguments, because they can be those of its result.
    pub(super) fn may_take_none(&self, of: DefId) -> bool {
        let any = Arity {
            fewest: 0,
            most: Arity::MANY,
        };
        let is_open = |facts: &Facts| facts.is_scala() && facts.definitions[of.index as usize].arity == Some(any);
        self.facts(of.file).is_some_and(|facts| is_open(&facts))
    }

    /// Finds the package that a name means.
    pub(super) fn package_named(&self, facts: &Facts, reference: &Reference) -> Option<Found> {
        let is_value = matches!(reference.kind, ReferenceKind::Value | ReferenceKind::Member);
        if !facts.is_scala() || !is_value {
            return None;
        }
        let package = self.links.environment.java_package(self, &reference.name)?;
        Some(Found {
            syms: vec![Sym::Module(package)],
            tier: Tier::Import,
        })
    }
}
