//! Finds what names mean that files see without importing each other: in C# those of namespaces, in Swift those of
//! modules, in Ruby constants.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::facts::{DefId, Facts, Family};
use super::members::Use;
use super::memo::deeper;
use super::resolve::{Found, Linker, MAX_CANDIDATES, MAX_NAMESAKES, MAX_OVERLOADS, Sym, Tier, remembered};
use crate::extract::{Binding, BindingKind, DefinitionKind, Globals, Reference, ReferenceKind, Steps, Value};

/// What the names of attributes of C# end with, and uses of them omit.
pub(super) const ATTRIBUTE: &str = "Attribute";
/// Limit on the segments of a name.
const MAX_SEGMENTS: usize = 32;
/// Limit on the namespaces that a file uses among which a name is sought.
const MAX_USED: usize = 256;
/// Limit on the definitions of a name among which the parts of one type are sought.
const MAX_PARTS: usize = 256;

/// The global definitions of a name in the languages of a family, by the full names of what they are in.
pub(super) type GlobalNames = Mutex<HashMap<(Family, String), Arc<[(Box<str>, DefId)]>>>;

impl Facts {
    pub(super) fn globals(&self) -> Globals {
        self.profile.globals
    }

    /// Returns the full name of what a definition is in, its segments separated by dots; empty at the top. Returns `None`
    /// inside a function.
    pub(super) fn outer_name(&self, of: u32) -> Option<String> {
        let definition = &self.definitions[of as usize];
        let mut segments: Vec<&str> = definition.qualifier.as_deref().into_iter().collect();
        let mut has_namespace = false;
        let mut next = definition.container;
        while let Some(outer) = next.filter(|_| segments.len() < MAX_SEGMENTS) {
            let outer = &self.definitions[outer as usize];
            if outer.kind.is_callable() {
                // A module in a function belongs to the module around that.
                if self.has_aliases() {
                    next = outer.container;
                    continue;
                }
                return None;
            }
            has_namespace |= outer.kind == DefinitionKind::Module;
            segments.push(&outer.name);
            segments.extend(outer.qualifier.as_deref());
            next = outer.container;
        }
        if next.is_some() {
            return None;
        }
        if !has_namespace && self.globals() == Globals::Namespaces {
            segments.extend(Some(self.namespace_at(definition.range.start)).filter(|namespace| !namespace.is_empty()));
        }
        segments.reverse();
        Some(segments.join(".").replace("::", "."))
    }

    /// Returns the full names of the types and namespaces in which a name at a byte is sought, innermost first. The last
    /// one is empty.
    fn scopes_at(&self, at: u32) -> Vec<String> {
        let mut holders = self.enclosing(at).filter(|&of| {
            self.holds_members(of) || self.globals() == Globals::Namespaces && self.has_kind(of, DefinitionKind::Module)
        });
        let full = |of: u32| {
            let outer = self.outer_name(of).unwrap_or_default();
            joined(&outer, &self.definitions[of as usize].name)
        };
        if self.globals() == Globals::Constants {
            return holders.map(full).chain([String::new()]).take(MAX_SEGMENTS).collect();
        }
        let innermost = match holders.next() {
            Some(of) => full(of),
            None if self.globals() == Globals::Namespaces => self.namespace_at(at).to_owned(),
            None => String::new(),
        };
        let outer = |name: &String| {
            let outer = name.rsplit_once('.').map_or("", |(outer, _)| outer);
            (!name.is_empty()).then(|| outer.to_owned())
        };
        std::iter::successors(Some(innermost), outer).collect()
    }

    /// Returns true for a type, and for a module of Ruby.
    pub(super) fn holds_members(&self, of: u32) -> bool {
        let kind = self.definitions[of as usize].kind;
        kind.is_type()
            || kind == DefinitionKind::Module && matches!(self.globals(), Globals::Constants | Globals::Aliases)
    }

    /// Returns true for a type of C#, Kotlin or Scala with the parameters of a constructor behind its name.
    pub(super) fn has_head_parameters(&self, of: u32) -> bool {
        let can_have = self.is_kotlin() || self.is_scala() || self.globals() == Globals::Namespaces;
        let is_parameter = |binding: &Binding| matches!(binding.kind, BindingKind::Parameter | BindingKind::Definition);
        can_have && self.definitions[of as usize].kind.is_type() && self.bound_in_head(of).any(is_parameter)
    }

    /// Returns the number of type parameters of a type or function.
    fn n_type_parameters(&self, of: u32) -> usize {
        let bound = self.bound_in_head(of);
        bound
            .filter(|binding| binding.kind == BindingKind::TypeParameter)
            .count()
    }

    /// Returns the bindings between the name of a definition and its body.
    fn bound_in_head(&self, of: u32) -> impl Iterator<Item = &Binding> {
        let definition = &self.definitions[of as usize];
        let (start, end) = (definition.name_range.end, definition.signature.end);
        let first = self.bindings.partition_point(|binding| binding.start < start);
        self.bindings[first..]
            .iter()
            .take_while(move |binding| binding.start < end)
    }

    /// Returns true if type arguments follow a reference.
    fn has_type_arguments(&self, reference: &Reference) -> bool {
        self.reference_at(reference.range.end + 1).is_some_and(|next| {
            let next = &self.references[next as usize];
            next.kind == ReferenceKind::Type && next.receiver == Value::None
        })
    }

    /// Returns the path before a name, as `A.B` before `name` in `A.B.name`; empty if there is none, and `None` if it is a
    /// member of something else.
    pub(super) fn path_before(&self, reference: &Reference) -> Option<String> {
        let mut segments = Vec::new();
        let mut last = reference;
        while let Value::Of { at, steps } = last.receiver {
            if steps != Steps::default() || segments.len() == MAX_SEGMENTS {
                return None;
            }
            last = &self.references[self.reference_at(at)? as usize];
            segments.push(last.name.as_str());
        }
        segments.reverse();
        (last.receiver == Value::None).then(|| segments.join("."))
    }
}

impl Linker<'_> {
    /// Finds what a name means that nothing in its file makes visible.
    pub(super) fn global(&self, facts: &Facts, reference: &Reference, depth: u8) -> Found {
        // The type of `.name` is not written.
        if reference.qualifier.as_deref() == Some(".") {
            return Found::unknown();
        }
        if let Some(found) = self.global_in(facts, reference, "", depth) {
            return found;
        }
        // `[Mark]` means `MarkAttribute`.
        if reference.kind == ReferenceKind::Attribute && facts.globals() == Globals::Namespaces {
            let name = format!("{}{ATTRIBUTE}", reference.name);
            let long = Reference {
                name,
                ..reference.clone()
            };
            return self
                .global_in(facts, &long, "", depth)
                .unwrap_or_else(|| self.invisible(facts, &long));
        }
        self.invisible(facts, reference)
    }

    /// Finds a name in the namespace or module that is written before it.
    pub(super) fn global_by_path(&self, facts: &Facts, reference: &Reference, depth: u8) -> Option<Found> {
        if facts.globals() == Globals::None {
            return None;
        }
        let before = facts.path_before(reference).filter(|path| !path.is_empty())?;
        self.global_in(facts, reference, &before, depth)
    }

    /// Finds a name in the namespaces or modules around a reference, then in those that the file uses. `before` is the path
    /// before the name.
    pub(super) fn global_in(&self, facts: &Facts, reference: &Reference, before: &str, depth: u8) -> Option<Found> {
        let depth = deeper(depth)?;
        let (name, at) = (reference.name.as_str(), reference.range.start);
        if before.is_empty()
            && let Some(&(import, Some(named))) = facts.imports_of(name).first()
        {
            let import = &facts.imports[import as usize];
            let found = self.with_full_name(facts, &import.module, &import.names[named as usize].name);
            return self
                .chosen(facts, reference, found, Tier::Import)
                .or(Some(Found::unknown()));
        }
        if self.globals_named(facts, name).is_empty() && facts.stars().next().is_none() {
            return None;
        }
        let is_rooted = reference.qualifier.as_deref() == Some(":");
        let scopes = if is_rooted {
            vec![String::new()]
        } else {
            facts.scopes_at(at)
        };
        for scope in scopes {
            let found = self.with_full_name(facts, &joined(&scope, before), name);
            if let Some(found) = self.chosen(facts, reference, found, Tier::Scope) {
                return Some(found);
            }
        }
        let used = facts.stars().take(MAX_USED);
        let mut used = used.filter(|_| facts.globals() == Globals::Namespaces);
        used.find_map(|import| {
            let found = self.with_full_name(facts, &joined(&import.module, before), name);
            self.chosen(facts, reference, found, Tier::Import)
                .or_else(|| self.member_of_used(facts, &import.module, reference, depth))
        })
    }

    /// Finds a member of the type in `using static A.Type`.
    fn member_of_used(&self, facts: &Facts, module: &str, reference: &Reference, depth: u8) -> Option<Found> {
        let (outer, of) = module.rsplit_once('.').unwrap_or(("", module));
        let of = self.with_full_name(facts, outer, of).into_iter().next()?;
        let members = self.members_for(of, &reference.name, Use::of(reference), depth);
        (!members.is_empty()).then(|| Found {
            syms: members.into_iter().map(Sym::Def).collect(),
            tier: Tier::Import,
        })
    }

    /// Returns false for a function of C# without type parameters if a call of it has type arguments.
    pub(super) fn takes_types(&self, facts: &Facts, of: DefId, reference: &Reference) -> bool {
        let has_parameters = |target: Arc<Facts>| {
            let is_function = target.definitions[of.index as usize].kind.is_callable();
            !is_function || target.n_type_parameters(of.index) > 0
        };
        facts.globals() != Globals::Namespaces
            || !facts.has_type_arguments(reference)
            || self.facts(of.file).is_none_or(has_parameters)
    }

    /// Of the functions that a call can mean, returns those with type parameters if the call has type arguments.
    pub(super) fn generic(&self, facts: &Facts, called: Vec<DefId>, reference: &Reference) -> Vec<DefId> {
        let takes_types = |of: &DefId| self.is_constructor(*of) || self.takes_types(facts, *of, reference);
        if called.iter().any(takes_types) {
            called.into_iter().filter(takes_types).collect()
        } else {
            called
        }
    }

    /// Returns true if the number of type arguments of a call of C# would choose among functions.
    pub(super) fn differ_in_types(&self, facts: &Facts, called: &[DefId], reference: &Reference) -> bool {
        let n_parameters = |of: &DefId| self.facts(of.file).map(|facts| facts.n_type_parameters(of.index));
        facts.globals() == Globals::Namespaces
            && facts.has_type_arguments(reference)
            && called.iter().any(|of| n_parameters(of) != n_parameters(&called[0]))
    }

    /// Returns the global definitions with a full name.
    pub(super) fn with_full_name(&self, facts: &Facts, outer: &str, name: &str) -> Vec<DefId> {
        let named = self.globals_named(facts, name);
        let first = named.partition_point(|(of, _)| **of < *outer);
        let meant = named[first..].iter().take_while(|(of, _)| **of == *outer);
        meant.take(MAX_PARTS).map(|(_, of)| *of).collect()
    }

    /// Returns the global definitions of a name, by the full names of what they are in.
    fn globals_named(&self, facts: &Facts, name: &str) -> Arc<[(Box<str>, DefId)]> {
        let globals = facts.globals();
        let outer_name = |of: DefId| {
            let facts = self.facts(of.file)?;
            let is_global = match facts.definitions[of.index as usize].kind {
                DefinitionKind::Impl => false,
                DefinitionKind::Module if globals == Globals::Aliases => true,
                DefinitionKind::TypeAlias if globals == Globals::Aliases => false,
                DefinitionKind::Module | DefinitionKind::Variant => globals == Globals::Constants,
                DefinitionKind::Constant => !matches!(globals, Globals::Namespaces | Globals::Aliases),
                DefinitionKind::Function | DefinitionKind::Variable => globals == Globals::Modules,
                kind => kind.is_type(),
            };
            let outer = is_global.then(|| facts.outer_name(of.index))??;
            Some((outer.into_boxed_str(), of))
        };
        let find = || {
            let named = self.named(facts.family, name);
            // Those that are left out could be nearer.
            let is_cut = named.len() > MAX_NAMESAKES;
            let named = named.into_iter().filter(|_| !is_cut);
            let mut named: Vec<(Box<str>, DefId)> = named.filter_map(outer_name).collect();
            named.sort_unstable();
            named.into()
        };
        remembered(&self.links.globals, (facts.family, name.to_owned()), find)
    }

    /// Chooses among definitions of one full name: those of the project of the file, with as many type parameters.
    /// Candidates if it is not known which project is meant.
    fn chosen(&self, facts: &Facts, reference: &Reference, mut found: Vec<DefId>, tier: Tier) -> Option<Found> {
        if facts.globals() == Globals::Modules {
            let own = module_of(&facts.path);
            let is_imported = |module: &str| facts.imports.iter().any(|import| import.module == module);
            found.retain(|of| {
                let module = module_of(self.links.environment.path(of.file));
                module == own || module.is_none_or(is_imported)
            });
        }
        found.retain(|of| self.is_as_generic(facts, *of, reference));
        let mut tier = tier;
        if found.len() > 1 && facts.globals() != Globals::Constants {
            let own = self.project(&facts.path);
            let project = |of: &DefId| self.project(self.links.environment.path(of.file));
            if found.iter().any(|of| project(of) == own) {
                found.retain(|of| project(of) == own);
            } else if found.iter().any(|of| project(of) != project(&found[0])) {
                tier = Tier::Named;
            }
        }
        if found.len() > MAX_CANDIDATES {
            tier = Tier::Named;
        }
        found.truncate(MAX_CANDIDATES);
        let mut found = Found {
            syms: found.into_iter().map(Sym::Def).collect(),
            tier,
        };
        // Programs of Swift that are built apart can have types of one name.
        if facts.globals() == Globals::Modules {
            self.keep_most_alike(facts, &mut found);
        }
        (!found.syms.is_empty()).then_some(found)
    }

    /// Returns true if a type of C# has type parameters, and a reference type arguments, or both have none.
    pub(super) fn is_as_generic(&self, facts: &Facts, of: DefId, reference: &Reference) -> bool {
        let n_parameters = || {
            self.facts(of.file)
                .map_or(0, |target| target.n_type_parameters(of.index))
        };
        facts.globals() != Globals::Namespaces || (n_parameters() > 0) == facts.has_type_arguments(reference)
    }

    /// Returns the folder of the project that a file belongs to: the nearest one with a project file of C# or a package of
    /// Swift; empty if there is none.
    fn project<'p>(&self, path: &'p str) -> &'p str {
        let mut folder = path;
        while let Some((outer, _)) = folder.rsplit_once('/') {
            folder = outer;
            if self.links.environment.is_project(folder) {
                return folder;
            }
        }
        ""
    }

    /// Returns the parts of a type: those with its full name in the same project, and in Swift its extensions.
    pub(super) fn parts_by_name(&self, facts: &Facts, of: DefId) -> Vec<DefId> {
        let name = &facts.definitions[of.index as usize].name;
        let outer = facts.outer_name(of.index);
        let n_parameters = facts.n_type_parameters(of.index);
        let is_exact = facts.globals() == Globals::Namespaces;
        let project = self.project(&facts.path);
        let is_part = |other: &DefId| {
            self.facts(other.file).is_some_and(|facts| {
                facts.holds_members(other.index)
                    && facts.outer_name(other.index) == outer
                    && (!is_exact
                        || facts.n_type_parameters(other.index) == n_parameters && self.project(&facts.path) == project)
            })
        };
        let named = self.named(facts.family, name).into_iter().take(MAX_OVERLOADS);
        let mut parts = vec![of];
        parts.extend(named.filter(|other| *other != of && is_part(other)).take(MAX_PARTS));
        parts
    }

    /// Returns the type that a block of Swift extends.
    pub(super) fn extended(&self, facts: &Facts, block: u32) -> Option<DefId> {
        let outer = facts.outer_name(block)?;
        let found = self.with_full_name(facts, &outer, &facts.definitions[block as usize].name);
        found
            .into_iter()
            .find(|of| self.definition(*of).is_some_and(|of| of.kind.is_type()))
    }
}

/// Returns the module of a file of Swift: the folder below `Sources` or `Tests`, or else a folder of tests.
fn module_of(path: &str) -> Option<&str> {
    let mut folders = path.split('/').rev().skip(1).peekable();
    while let Some(folder) = folders.next() {
        let is_below = folders
            .peek()
            .is_some_and(|outer| matches!(*outer, "Sources" | "Tests"));
        if is_below || folder.ends_with("Tests") {
            return Some(folder);
        }
    }
    None
}

/// Joins two parts of a name, of which each can be empty.
pub(super) fn joined(outer: &str, inner: &str) -> String {
    match (outer, inner) {
        ("", one) | (one, "") => one.to_owned(),
        _ => format!("{outer}.{inner}"),
    }
}
