//! Chooses among functions of one name by the types of the arguments.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::facts::{DefId, Facts, Family};
use super::members::{Climb, Use};
use super::memo::deeper;
use super::resolve::{Linker, Sym};
use super::types::{Base, Ty, heads, literal_type};
use crate::extract::{BindingKind, DefinitionKind, Globals, Reference, Shape, Value};

/// Limit on nested questions about the type of an argument.
const DEPTH: u8 = 12;
/// Maximum number of functions among which the types of the arguments choose. Calls of more functions of one name stay
/// uncertain.
const MAX_COMPARED: usize = 128;
/// Types to which a value of the first type converts without a cast.
const WIDENING: &[(&str, &[&str])] = &[
    ("int", &["long", "float", "double", "Integer", "Number"]),
    ("char", &["int", "long", "Character"]),
    ("short", &["int", "long", "Short"]),
    ("byte", &["short", "int", "long", "Byte"]),
    ("long", &["float", "double", "Long", "Number"]),
    ("float", &["double", "Float", "Number"]),
    ("double", &["Double", "Number"]),
    ("boolean", &["Boolean"]),
    ("String", &["CharSequence", "Comparable"]),
    ("Class", &["Type"]),
    ("Integer", &["int", "long", "Number"]),
    ("Long", &["long", "Number"]),
    ("Boolean", &["boolean"]),
    ("Double", &["double", "Number"]),
    ("Character", &["char"]),
    ("StringBuilder", &["CharSequence", "Appendable"]),
    ("StringReader", &["Reader"]),
    ("StringWriter", &["Writer", "Appendable"]),
    ("ArrayList", &["List", "Collection", "Iterable"]),
    ("List", &["Collection", "Iterable"]),
];
/// Other names of types, in C# and Kotlin.
const SPELLINGS: &[(&str, &str)] = &[
    ("string", "String"),
    ("bool", "boolean"),
    ("object", "Object"),
    ("Any", "Object"),
    ("Int", "int"),
];
const PRIMITIVES: &[&str] = &["int", "long", "short", "byte", "char", "float", "double", "boolean"];

impl Linker<'_> {
    /// Of the targets of a call, returns those that fit: a constructor for a type, and the functions with as many
    /// parameters as there are arguments.
    pub(super) fn called(&self, facts: &Facts, targets: Vec<DefId>, reference: &Reference) -> Vec<DefId> {
        let mut called = Vec::new();
        for target in targets {
            let Some(facts) = self.facts(target.file) else { continue };
            let definition = &facts.definitions[target.index as usize];
            let is_dart = facts.family == Family::Dart;
            let has_constructors = facts.family == Family::Java || is_dart || facts.globals() == Globals::Namespaces;
            let is_type = definition.kind.is_type() && has_constructors && definition.name == reference.name;
            let children = if is_type { facts.children(target.index) } else { &[] };
            let constructors: Vec<DefId> = children
                .iter()
                .filter(|&&index| facts.has_kind(index, DefinitionKind::Constructor))
                .filter(|&&index| !is_dart || facts.definitions[index as usize].name == definition.name)
                .map(|&index| facts.def(index))
                .collect();
            if constructors.is_empty() || facts.has_head_parameters(target.index) {
                called.push(target);
            }
            called.extend(constructors);
        }
        // One part of a type of C# can have the constructors of all.
        if facts.globals() == Globals::Namespaces && called.iter().any(|of| self.is_constructor(*of)) {
            let has_head = |of: &DefId| {
                let facts = self.facts(of.file);
                facts.is_some_and(|facts| facts.has_head_parameters(of.index))
            };
            called.retain(|of| self.is_constructor(*of) || has_head(of));
        }
        called.retain(|of| !self.is_hidden(*of));
        called.sort_unstable();
        called.dedup();
        let fitting: Vec<DefId> = called
            .iter()
            .copied()
            .filter(|target| self.fits(*target, Use::of(reference)))
            .collect();
        let fitting = if fitting.is_empty() { called } else { fitting };
        let fitting = self.generic(facts, fitting, reference);
        let is_open = self.differ_in_types(facts, &fitting, reference);
        let is_few = (2..=MAX_COMPARED).contains(&fitting.len());
        if is_few && !reference.arguments.is_empty() && !is_open {
            self.best_overloads(facts, reference, fitting)
        } else {
            fitting
        }
    }

    /// Returns true if the targets are overloads, of which only one is meant.
    pub(super) fn is_overloaded(&self, targets: &[DefId]) -> bool {
        let is_callable = |target: &DefId| self.definition(*target).is_some_and(|target| target.kind.is_callable());
        // A type with parameters is its first constructor, and a variant of an enumeration has its name.
        let can_be_called = |target: &DefId| {
            let facts = self.facts(target.file);
            let is_called = |facts: Arc<Facts>| {
                facts.has_head_parameters(target.index) || facts.has_kind(target.index, DefinitionKind::Variant)
            };
            is_callable(target) || facts.is_some_and(is_called)
        };
        match self.facts(targets[0].file) {
            Some(facts) if matches!(facts.family, Family::Java | Family::C) => true,
            // Blocks that implement a trait with several arguments for one type: `From<A>`, `From<B>`.
            Some(facts) if facts.family == Family::Rust => {
                let block = |of: &DefId| {
                    let container = facts.definitions[of.index as usize].container?;
                    facts.has_kind(container, DefinitionKind::Impl).then_some(container)
                };
                let is_here = |of: &DefId| of.file == targets[0].file;
                let blocks: Option<BTreeSet<u32>> = targets.iter().map(|of| is_here(of).then(|| block(of))?).collect();
                blocks.is_some_and(|blocks| blocks.len() > 1)
            }
            // The clauses of a function need not be adjacent.
            Some(_) if self.are_clauses(targets) => false,
            Some(facts) => {
                facts.profile.has_overloads && targets.iter().any(is_callable) && targets.iter().all(can_be_called)
            }
            None => false,
        }
    }

    /// Returns the functions that fit the types of the arguments best. Several if none is better than the others.
    pub(super) fn best_overloads(&self, facts: &Facts, reference: &Reference, targets: Vec<DefId>) -> Vec<DefId> {
        let arguments: Vec<Option<Ty>> = reference
            .arguments
            .iter()
            .map(|value| self.argument_type(facts, *value))
            .collect();
        let scored: Vec<(u32, DefId)> = targets
            .iter()
            .filter_map(|target| Some((self.score(*target, &arguments)?, *target)))
            .collect();
        let best = scored.iter().map(|(score, _)| *score).max();
        let best: Vec<DefId> = scored
            .into_iter()
            .filter(|(score, _)| Some(*score) == best)
            .map(|(_, target)| target)
            .collect();
        if best.is_empty() { targets } else { best }
    }

    fn argument_type(&self, facts: &Facts, value: Value) -> Option<Ty> {
        match value {
            Value::Literal(literal) => Some(Ty::outer(literal_type(literal))),
            Value::Of { at, steps } => self.value(facts, at, steps, DEPTH),
            Value::None | Value::Other => None,
        }
    }

    /// Returns how well the arguments fit the parameters of a function; `None` if one of them does not.
    fn score(&self, target: DefId, arguments: &[Option<Ty>]) -> Option<u32> {
        let facts = self.facts(target.file)?;
        let signature = facts.definitions[target.index as usize].signature;
        let is_type = facts.definitions[target.index as usize].kind.is_type();
        let first = facts
            .bindings
            .partition_point(|binding| binding.start < signature.start);
        let parameters = facts.bindings[first..]
            .iter()
            .take_while(|binding| binding.start < signature.end)
            .filter(|binding| {
                // Parameters of a type can be its fields.
                binding.kind == BindingKind::Parameter || is_type && binding.kind == BindingKind::Definition
            });
        let mut score = 1;
        for (parameter, argument) in parameters.zip(arguments) {
            let (Some(argument), false) = (argument, parameter.declared.is_empty()) else {
                continue;
            };
            let Some(&head) = heads(&facts, parameter.declared).first() else {
                continue;
            };
            let name = facts.references[head as usize].name.as_str();
            if parameter.shape == Shape::Sequence {
                match &argument.base {
                    Base::Outer(of) if of == "[]" => score += 3,
                    Base::Outer(of) if of == "null" || of.is_empty() => {}
                    _ => return None,
                }
                continue;
            }
            let syms = self.resolve_at(&facts, head, DEPTH).syms;
            // A type parameter can be anything.
            if matches!(syms.first(), Some(Sym::Local(..))) {
                continue;
            }
            let of = syms.iter().find_map(Sym::definition);
            score += self.fit(argument, name, of)?;
        }
        Some(score)
    }

    fn fit(&self, argument: &Ty, name: &str, of: Option<DefId>) -> Option<u32> {
        let name = SPELLINGS
            .iter()
            .find(|(other, _)| *other == name)
            .map_or(name, |(_, name)| name);
        let is_primitive = PRIMITIVES.contains(&name);
        let is_anything = name == "Object" || of.is_none() && name.len() == 1;
        match (&argument.base, of) {
            (Base::Instance(def), Some(of)) if *def == of => Some(4),
            (Base::Instance(def), Some(of)) => self.extends(*def, of, DEPTH, &mut Climb::default()).then_some(2),
            (Base::Instance(_), None) if is_primitive || name == "String" => None,
            (Base::Instance(def), None) if !is_anything && self.has_no_base(*def) => None,
            (Base::Instance(_), None) => Some(u32::from(!is_anything)),
            (Base::Outer(known), _) if known == "null" => (!is_primitive).then_some(1),
            (Base::Outer(known), _) if known.is_empty() => Some(0),
            (Base::Outer(known), None) if known == name => Some(4),
            (Base::Outer(known), of) => {
                let wider = WIDENING
                    .iter()
                    .find(|(from, _)| from == known)
                    .map_or(&[][..], |(_, to)| to);
                match wider.iter().position(|wide| *wide == name) {
                    Some(0) => Some(3),
                    Some(_) => Some(2),
                    None if is_anything => Some(0),
                    None if of.is_some()
                        || is_primitive
                        || !wider.is_empty()
                        || PRIMITIVES.contains(&known.as_str()) =>
                    {
                        None
                    }
                    None => Some(1),
                }
            }
            _ => Some(0),
        }
    }

    /// Returns true for a type that extends and implements nothing.
    fn has_no_base(&self, of: DefId) -> bool {
        let parts = self.parts_of(of, DEPTH);
        let has_none = |part: &DefId| {
            self.facts(part.file)
                .is_some_and(|facts| facts.bases(part.index).is_empty())
        };
        parts.iter().all(has_none)
    }

    /// Returns true if a type is a subtype of another one.
    fn extends(&self, def: DefId, of: DefId, depth: u8, climb: &mut Climb) -> bool {
        let Some(depth) = deeper(depth) else { return false };
        let Some(facts) = self.facts(def.file) else {
            return false;
        };
        facts.bases(def.index).iter().any(|&base| {
            let found = climb.may_follow().then(|| self.resolve_base(&facts, base, depth));
            found.is_some_and(|found| {
                found.syms.iter().any(|sym| match sym {
                    Sym::Def(base) => *base == of || climb.enters(*base) && self.extends(*base, of, depth, climb),
                    _ => false,
                })
            })
        })
    }
}
