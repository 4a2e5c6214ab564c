//! Finds the definitions that must have one name, and what a word of code means.

use std::collections::BTreeSet;

use super::compiler::Meaning;
use super::facts::{DefId, Facts, Family};
use super::query::Site;
use super::resolve::{Linker, MAX_DEPTH, Sym, Tier};
use crate::extract::{BindingKind, DefinitionKind, Reference, ReferenceKind, Shape, Step, Steps, Value};
use crate::index::lexical::LexicalError;
use crate::model::ByteRange;
use crate::snapshot::FileId;

/// Limit on the definitions of a family.
const MAX_KIN: usize = 1_000;

/// Limit on the values that are followed to find out where one comes from.
const MAX_STEPS: u8 = 8;

/// Definitions that can only be renamed together.
#[derive(Clone, Debug, Default)]
pub struct Kin {
    /// A definition, its overloads, and the members that it overrides or that override it.
    pub definitions: BTreeSet<DefId>,
    /// Names of types that relate to types outside of the repository, which may have a member with the name: those that
    /// are extended, and interfaces of Go.
    pub outside: Vec<(FileId, ByteRange)>,
}

/// What a word of code is.
#[derive(Clone, Debug)]
pub enum NameUse {
    /// The name of a definition.
    Definition(DefId),
    /// A reference.
    Reference(Site),
    /// A local variable or a parameter.
    Local,
    /// Anything else, for example the name of an argument.
    Unresolved,
}

impl Linker<'_> {
    /// Returns the definitions that must have the same name as `of`. Returns `None` if there are too many.
    pub fn kin(&self, of: DefId) -> Result<Option<Kin>, LexicalError> {
        let (mut kin, mut open) = (Kin::default(), vec![of]);
        // Types, and names of members that were sought in all their subtypes.
        let mut types: BTreeSet<(DefId, String)> = BTreeSet::new();
        while let Some(of) = open.pop() {
            let Some(facts) = self.facts(of.file) else { continue };
            if !facts.is_name(of.index) || !kin.definitions.insert(of) {
                continue;
            }
            if kin.definitions.len() > MAX_KIN {
                return Ok(None);
            }
            open.extend(self.meanings(of));
            open.extend(alternatives(&facts, of.index));
            open.extend(self.twins(&facts, of.index));
            if let Some(around) = self.overridable(&facts, of) {
                let name = &facts.definitions[of.index as usize].name;
                open.extend(self.overridden(of));
                if facts.family == Family::Go {
                    open.extend(self.satisfied_by(of));
                } else {
                    open.extend(self.in_constants(around, name));
                    if types.contains(&(around, name.clone())) {
                        continue;
                    }
                }
                let subtypes = self.subtypes(around)?;
                for &subtype in subtypes.iter().filter(|_| facts.family != Family::Go) {
                    open.extend(self.own_members(subtype, name));
                    open.extend(self.overridden_in(subtype, name));
                }
                for ty in [around].into_iter().chain(subtypes) {
                    open.extend(self.beside_constants(ty, name));
                    types.insert((ty, name.clone()));
                }
            }
        }
        let types: BTreeSet<DefId> = types.into_iter().map(|(of, _)| of).collect();
        for of in types {
            let Some(facts) = self.facts(of.file) else { continue };
            if is_open(&facts, of.index) {
                let name = facts.definitions[of.index as usize].name_range;
                kin.outside.push((of.file, name));
            }
            for &base in facts.bases(of.index) {
                let syms = self.resolve_base(&facts, base, MAX_DEPTH).syms;
                if syms.is_empty() || syms.iter().any(|sym| !matches!(sym, Sym::Def(_))) {
                    kin.outside.push((of.file, facts.references[base as usize].range));
                }
            }
        }
        Ok(Some(kin))
    }

    /// Returns the same definition in the stub of a Python file, or in the file that a stub describes; in Rust, in a module of
    /// the file with the same path, of which a build takes one.
    fn twins(&self, facts: &Facts, of: u32) -> Vec<DefId> {
        let definition = &facts.definitions[of as usize];
        let is_in_module = |container| facts.has_kind(container, DefinitionKind::Module);
        if facts.family == Family::Rust && definition.container.is_some_and(is_in_module) {
            let kind = definition.kind;
            let named = facts.named(&definition.name).iter();
            let same = named
                .filter(|&&other| facts.has_kind(other, kind) && outer_names(facts, other).eq(outer_names(facts, of)));
            return same.map(|&index| facts.def(index)).collect();
        }
        let twin = self.links.environment.python_twin(facts.file);
        let Some(twin) = twin.and_then(|file| self.facts(file)) else {
            return Vec::new();
        };
        let name = facts.definitions[of as usize].name.as_str();
        let same = twin
            .named(name)
            .iter()
            .filter(|&&index| outer_names(&twin, index).eq(outer_names(facts, of)));
        same.map(|&index| twin.def(index)).collect()
    }

    /// Returns the members with a name in the constants of an enum of Java, each of which can have a body, or those of the
    /// enum of a constant.
    fn beside_constants(&self, of: DefId, name: &str) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file).filter(|facts| facts.family == Family::Java) else {
            return Vec::new();
        };
        let definition = &facts.definitions[of.index as usize];
        let is_constant = |index: u32| facts.has_kind(index, DefinitionKind::Variant);
        if let (true, Some(outer)) = (is_constant(of.index), definition.container) {
            return self.members_of(facts.def(outer), name, MAX_DEPTH);
        }
        let constants = facts.children(of.index).iter().filter(|&&index| is_constant(index));
        let members = constants.flat_map(|&constant| facts.children(constant));
        let named = members.filter(|&&index| facts.definitions[index as usize].name == name);
        named.map(|&index| facts.def(index)).collect()
    }

    /// Returns the type of a member that can override another one.
    fn overridable(&self, facts: &Facts, of: DefId) -> Option<DefId> {
        let kind = facts.definitions[of.index as usize].kind;
        let is_hidden = facts.family == Family::Java && !kind.is_callable()
            || matches!(kind, DefinitionKind::Variant | DefinitionKind::Constructor);
        match facts.family {
            _ if is_hidden => None,
            Family::Go => self.type_around(of).or_else(|| self.type_of_member(facts, of)),
            _ => self.type_around(of),
        }
    }

    /// Returns the members with a name that the bases of a type have.
    fn overridden_in(&self, of: DefId, name: &str) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return Vec::new();
        };
        let bases = facts.bases(of.index).iter();
        let bases = bases.flat_map(|&base| self.resolve_base(&facts, base, MAX_DEPTH).syms);
        let bases = bases.filter_map(|sym| sym.definition());
        bases
            .flat_map(|base| self.members_of(self.aliased(base, MAX_DEPTH).unwrap_or(base), name, MAX_DEPTH))
            .collect()
    }

    /// Returns the members with a name of a type, of what it extends, and of what extends it.
    pub fn members_around(&self, of: DefId, name: &str) -> Result<Vec<DefId>, LexicalError> {
        let Some(facts) = self.facts(of.file) else {
            return Ok(Vec::new());
        };
        let Some(around) = self.type_around(of).or_else(|| self.type_of_member(&facts, of)) else {
            return Ok(Vec::new());
        };
        let around = self.implemented(around);
        let mut found = self.members_of(around, name, MAX_DEPTH);
        match self.facts(around.file) {
            Some(facts) if facts.family == Family::JavaScript => {
                for part in alternatives(&facts, around.index) {
                    found.extend(self.own_members(part, name));
                }
            }
            // A field that embeds a type of Go has its name.
            Some(facts) if facts.family == Family::Go => {
                let bases = facts.bases(around.index).iter();
                for &base in bases.filter(|&&base| facts.references[base as usize].name == name) {
                    let syms = self.resolve_base(&facts, base, MAX_DEPTH).syms;
                    found.extend(syms.iter().filter_map(Sym::definition));
                }
            }
            _ => {}
        }
        for subtype in self.subtypes(around)? {
            found.extend(self.own_members(subtype, name));
        }
        Ok(found)
    }

    /// Returns the other definitions of a scope.
    pub fn siblings(&self, of: DefId, name: &str) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return Vec::new();
        };
        let container = facts.definitions[of.index as usize].container;
        let package = match facts.family {
            Family::Go | Family::Java if container.is_none() => self.links.environment.package_of(self, &facts),
            _ => None,
        };
        let files = package.map_or_else(|| vec![of.file], |files| files.to_vec());
        let facts = files.into_iter().filter_map(|file| self.facts(file));
        let named = facts.flat_map(|facts| {
            let is_sibling = |&&index: &&u32| {
                let other = &facts.definitions[index as usize];
                other.container == container && other.qualifier.is_none() && facts.is_name(index)
            };
            let found = facts.named(name).iter().filter(is_sibling);
            found.map(|&index| facts.def(index)).collect::<Vec<_>>()
        });
        named.collect()
    }

    /// Returns the position at which a file imports or binds a name so that it is visible at one of `places`.
    pub fn bound_at(&self, file: FileId, name: &str, places: &[u32]) -> Option<u32> {
        let facts = self.facts(file)?;
        let imported = facts.imports_of(name).last();
        let bound = facts.bindings_of(name).filter(|(_, binding)| {
            !matches!(
                binding.kind,
                BindingKind::Field | BindingKind::Return | BindingKind::Export
            ) && places
                .iter()
                .any(|at| binding.scope.start <= *at && *at < binding.scope.end)
        });
        let imported = imported.map(|(import, _)| facts.imports[*import as usize].range.start);
        imported.or_else(|| bound.map(|(_, binding)| binding.start).next())
    }

    /// Returns true if a file imports something by this name.
    pub fn imports_name(&self, file: FileId, name: &str) -> bool {
        self.facts(file).is_some_and(|facts| !facts.imports_of(name).is_empty())
    }

    /// Returns what the word `name` at a position is.
    pub fn use_at(&self, file: FileId, at: u32, name: &str) -> NameUse {
        let Some(facts) = self.facts(file) else {
            return NameUse::Unresolved;
        };
        let here = facts
            .named(name)
            .iter()
            .filter(|&&index| facts.definitions[index as usize].name_range.start == at);
        for &index in here {
            let of = facts.def(index);
            if facts.is_name(index) {
                return NameUse::Definition(of);
            }
            let implemented = self.implemented(of);
            if implemented != of {
                let targets = vec![implemented];
                return NameUse::Reference(Site {
                    targets,
                    ..self.site_of(of)
                });
            }
        }
        let is_named = |index: &u32| facts.references[*index as usize].name == name;
        if let Some(index) = facts.reference_at(at).filter(is_named) {
            return NameUse::Reference(self.site(&facts, index));
        }
        // The names of some re-exports are no references.
        let mut imported = facts.called_around(name, at).into_iter();
        if let Some((import, first)) = imported.next() {
            // Several names of a statement: `export { a as b, b as c } from "d"`.
            if imported.any(|(_, other)| other.name != first.name) {
                return NameUse::Unresolved;
            }
            let syms = self.taken(&facts, &import.module, &first.name, import.range.start, MAX_DEPTH);
            let targets: Vec<DefId> = syms.iter().filter_map(Sym::definition).collect();
            if targets.is_empty() {
                return NameUse::Unresolved;
            }
            return NameUse::Reference(Site {
                file,
                range: ByteRange::new(at, at + name.len() as u32),
                kind: ReferenceKind::Import,
                inside: None,
                tier: Tier::Import,
                targets,
                is_lost: false,
            });
        }
        let is_bound = facts.bindings_of(name).any(|(_, binding)| binding.start == at);
        let found = || self.bare_name(&facts, name, at, MAX_DEPTH).syms;
        if is_bound || matches!(found().first(), Some(Sym::Local(..))) {
            return NameUse::Local;
        }
        NameUse::Unresolved
    }

    /// Returns true if it is certain that a reference means nothing in the repository, or that it means a variable. A
    /// member is certain if it belongs to a literal or to something outside that nothing was passed to.
    pub fn is_surely_outside(&self, file: FileId, at: u32, is_after_dot: bool) -> bool {
        let Some(facts) = self.facts(file) else { return false };
        let Some(index) = facts.reference_at(at) else {
            return false;
        };
        let reference = &facts.references[index as usize];
        if matches!(self.meaning(&facts, at), Meaning::NoDefinition | Meaning::External) {
            return true;
        }
        match reference.receiver {
            // In macros of Rust, fields look like variables.
            Value::None if facts.family == Family::Rust => matches!(
                self.resolve_at(&facts, index, MAX_DEPTH).syms.as_slice(),
                [Sym::Local(..)]
            ),
            Value::None => !is_after_dot,
            Value::Literal(_) => true,
            Value::Other => false,
            Value::Of { at, steps } => steps == Steps::default() && self.is_outside_value(&facts, at, MAX_STEPS),
        }
    }

    /// Returns true if a reference can be a part of a module: it follows names that begin with an import.
    pub fn may_be_of_module(&self, file: FileId, at: u32) -> bool {
        let Some(facts) = self.facts(file) else { return false };
        let mut at = at;
        for _ in 0..MAX_STEPS {
            let Some(index) = facts.reference_at(at) else {
                return false;
            };
            let reference = &facts.references[index as usize];
            match reference.receiver {
                Value::Of { at: receiver, steps } if steps == Steps::default() => at = receiver,
                Value::None => return !facts.imports_of(&reference.name).is_empty(),
                _ => return false,
            }
        }
        true
    }

    fn is_outside_value(&self, facts: &Facts, at: u32, n_left: u8) -> bool {
        let (Some(index), Some(n_left)) = (facts.reference_at(at), n_left.checked_sub(1)) else {
            return false;
        };
        match facts.references[index as usize].receiver {
            Value::None => {}
            Value::Of { at, steps } => return steps == Steps::default() && self.is_outside_value(facts, at, n_left),
            Value::Literal(_) | Value::Other => return false,
        }
        match self.resolve_at(facts, index, MAX_DEPTH).syms.as_slice() {
            // In Java, it can be the first segment of a package's name.
            [Sym::Outside] => {
                facts.family != Family::Java || {
                    let name = &facts.references[index as usize].name;
                    !name.starts_with(char::is_lowercase) || !facts.imports_of(name).is_empty()
                }
            }
            [Sym::Local(file, binding)] if *file == facts.file => {
                let binding = &facts.bindings[*binding as usize];
                let mut declared = facts.references_in(binding.declared).peekable();
                // The type is written here, with members of its own.
                if facts
                    .definitions
                    .iter()
                    .any(|inner| binding.declared.contains(inner.range))
                {
                    return false;
                }
                if binding.shape != Shape::Named || !binding.declared.is_empty() {
                    return binding.shape == Shape::Named
                        && declared.peek().is_some()
                        && declared
                            .all(|index| self.is_outside_value(facts, facts.references[index].range.start, n_left));
                }
                let Value::Of { at, steps } = binding.value else {
                    return matches!(binding.value, Value::Literal(_));
                };
                let called = facts.reference_at(at).map(|index| &facts.references[index as usize]);
                // In Go, a type switch or an assertion gives the result of a call another type.
                facts.family != Family::Go
                    && steps.iter().eq([Step::Call])
                    && called.is_some_and(|called| called.n_arguments == Some(0))
                    && self.is_outside_value(facts, at, n_left)
            }
            _ => false,
        }
    }

    /// Returns true if other types of JavaScript have a member with the name, or in Python, if a protocol has it, too. The
    /// declared type of a value then does not say whose member is meant, because it can be narrowed, or be like the other
    /// type.
    pub fn has_namesakes(&self, kin: &BTreeSet<DefId>) -> bool {
        let Some(facts) = kin.first().and_then(|of| self.facts(of.file)) else {
            return false;
        };
        let Some(definition) = kin.first().and_then(|of| self.definition(*of)) else {
            return false;
        };
        let is_member = |of: &DefId| {
            let around = self.type_around(*of);
            !kin.contains(of) && around.is_some()
        };
        let named = self.named(facts.family, &definition.name);
        let mut others = named.iter().filter(|of| is_member(of));
        match facts.family {
            Family::JavaScript => others.next().is_some(),
            Family::Python => others.any(|of| self.has_contract(kin, *of)),
            _ => false,
        }
    }

    /// Returns true if one of several members belongs to an interface of TypeScript or a protocol of Python, which the type
    /// of the other member can fit without naming it.
    pub fn has_contract(&self, kin: &BTreeSet<DefId>, other: DefId) -> bool {
        let is_contract = |of: &DefId| {
            let Some((around, facts)) = self.type_around(*of).zip(self.facts(of.file)) else {
                return false;
            };
            let is_protocol = |base: &u32| facts.references[*base as usize].name == "Protocol";
            match facts.family {
                Family::Python => facts.bases(around.index).iter().any(is_protocol),
                _ => facts.has_kind(around.index, DefinitionKind::Interface),
            }
        };
        self.type_around(other).is_some() && (is_contract(&other) || kin.iter().any(is_contract))
    }

    /// Returns true if one of two definitions of TypeScript is in `declare module "./path"`, so that both can be one.
    pub fn is_augmented(&self, one: DefId, other: DefId) -> bool {
        let is_in_module = |of: DefId| {
            let facts = self.facts(of.file).filter(|facts| facts.family == Family::JavaScript);
            facts.is_some_and(|facts| {
                let outer = facts.definitions[of.index as usize].container;
                outer.is_some_and(|outer| facts.definitions[outer as usize].name.contains('/'))
            })
        };
        is_in_module(one) || is_in_module(other)
    }

    /// Returns true if a definition is a member of an object of JavaScript that is no class.
    pub fn is_in_object(&self, of: DefId) -> bool {
        let is_script = self
            .facts(of.file)
            .is_some_and(|facts| facts.family == Family::JavaScript);
        is_script && self.type_around(of).is_none()
    }

    /// Returns what a plain name at a position means.
    pub fn visible_at(&self, file: FileId, at: u32, name: &str) -> Vec<DefId> {
        let Some(facts) = self.facts(file) else {
            return Vec::new();
        };
        let syms = self.bare_name(&facts, name, at, MAX_DEPTH).syms;
        syms.iter().filter_map(Sym::definition).collect()
    }

    /// Returns what a name in the path of an import means, if it is a type.
    pub fn path_segment_at(&self, file: FileId, at: u32, name: &str) -> Vec<DefId> {
        let Some(facts) = self.facts(file) else {
            return Vec::new();
        };
        let separator = match facts.family {
            Family::Rust => "::",
            Family::Java => ".",
            _ => return Vec::new(),
        };
        let around = facts
            .imports
            .iter()
            .filter(|import| import.range.start <= at && at < import.range.end);
        let mut found = Vec::new();
        for import in around {
            let segments: Vec<&str> = import.module.split(separator).collect();
            let Some(last) = segments.iter().rposition(|segment| *segment == name) else {
                continue;
            };
            let syms = match segments[..last].join(separator) {
                module if module.is_empty() => self.bare_name(&facts, name, at, MAX_DEPTH).syms,
                module => self.taken(&facts, &module, name, import.range.start, MAX_DEPTH),
            };
            found.extend(syms.iter().filter_map(Sym::definition));
        }
        found
    }

    /// Returns true if a type can have a method and something else of one name.
    pub fn has_separate_methods(&self, of: DefId) -> bool {
        self.facts(of.file)
            .is_some_and(|facts| matches!(facts.family, Family::Java | Family::Rust))
    }

    /// Returns the position of the first definition of a file with a name that is in no other one and is no member.
    pub fn at_file_level(&self, file: FileId, name: &str) -> Option<u32> {
        let facts = self.facts(file)?;
        let is_outer = |&&index: &&u32| {
            let definition = &facts.definitions[index as usize];
            definition.container.is_none() && definition.qualifier.is_none() && facts.is_name(index)
        };
        let first = facts.named(name).iter().find(is_outer)?;
        Some(facts.definitions[*first as usize].name_range.start)
    }

    /// Returns the reference at a position, without what it means.
    pub fn reference(&self, file: FileId, at: u32) -> Option<Reference> {
        let facts = self.facts(file)?;
        Some(facts.references[facts.reference_at(at)? as usize].clone())
    }

    /// Returns how a word is resolved: the tier, and the definitions that it means.
    pub fn resolved(&self, file: FileId, at: u32, name: &str) -> Option<(Tier, Vec<DefId>)> {
        match self.use_at(file, at, name) {
            NameUse::Reference(site) => Some((site.tier, site.targets)),
            NameUse::Definition(of) => Some((Tier::Scope, vec![of])),
            NameUse::Local => Some((Tier::Outside, Vec::new())),
            NameUse::Unresolved => None,
        }
    }
}

/// Returns true for an interface of Go that types of other packages can implement.
fn is_open(facts: &Facts, of: u32) -> bool {
    let methods = facts
        .children(of)
        .iter()
        .map(|&index| &facts.definitions[index as usize]);
    let mut methods = methods.filter(|method| method.kind.is_callable());
    facts.family == Family::Go
        && facts.has_kind(of, DefinitionKind::Interface)
        && methods.all(|method| method.name.starts_with(char::is_uppercase))
}

/// Returns the names of the definitions around one, the innermost first.
fn outer_names(facts: &Facts, of: u32) -> impl Iterator<Item = &str> {
    let outer = |of: &u32| facts.definitions[*of as usize].container;
    let chain = std::iter::successors(outer(&of), outer);
    chain.map(|of| facts.definitions[of as usize].name.as_str())
}

/// Returns the other definitions of a name in one scope that are the same to code: overloads, accessors, and
/// alternatives for other platforms.
fn alternatives(facts: &Facts, of: u32) -> Vec<DefId> {
    let definition = &facts.definitions[of as usize];
    let is_alternative = |&&index: &&u32| {
        let other = &facts.definitions[index as usize];
        let is_alike = other.kind.is_callable() == definition.kind.is_callable()
            || matches!(facts.family, Family::Python | Family::JavaScript);
        let is_macro = |kind| kind == DefinitionKind::Macro;
        is_alike
            && other.container == definition.container
            && (facts.family != Family::JavaScript || other.kind.is_scoped() == definition.kind.is_scoped())
            && (facts.family != Family::JavaScript || facts.scope_of(index) == facts.scope_of(of))
            && other.qualifier == definition.qualifier
            && is_macro(other.kind) == is_macro(definition.kind)
            && other.kind != DefinitionKind::Module
    };
    let named = facts.named(&definition.name).iter().filter(is_alternative);
    named.map(|&index| facts.def(index)).collect()
}
