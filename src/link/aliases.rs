//! Finds what names of modules and functions of Elixir mean: modules have full names, which aliases shorten, and a
//! function belongs to one module.

use super::facts::{DefId, Facts};
use super::globals::joined;
use super::members::Use;
use super::memo::deeper;
use super::resolve::{Found, Linker, MAX_OVERLOADS, Sym, Tier};
use crate::extract::{DefinitionKind, Globals, Import, Reference, ReferenceKind, Value};

/// The name of the module around a name.
const OWN_MODULE: &str = "__MODULE__";
/// The macro that `use` runs.
const USING: &str = "__using__";
/// Limit on the imports of everything in which a function is sought.
const MAX_IMPORTS: usize = 64;

impl Facts {
    pub(super) fn has_aliases(&self) -> bool {
        self.globals() == Globals::Aliases
    }

    /// Returns the innermost module around a byte. The name of a module is outside of it.
    fn module_at(&self, at: u32) -> Option<u32> {
        self.enclosing(at)
            .find(|&of| self.holds_functions(of) && self.definitions[of as usize].signature.end <= at)
    }

    fn holds_functions(&self, of: u32) -> bool {
        let kind = self.definitions[of as usize].kind;
        matches!(
            kind,
            DefinitionKind::Module | DefinitionKind::Interface | DefinitionKind::Impl
        )
    }

    /// Returns the module that a function belongs to. Those in a group of tests belong to the module around it.
    fn module_of(&self, function: u32) -> Option<u32> {
        let outer = |of: u32| self.definitions[of as usize].container;
        let mut around = std::iter::successors(outer(function), |of| outer(*of));
        around.find(|of| !self.has_kind(*of, DefinitionKind::Test))
    }

    fn name_of_module(&self, of: u32) -> Option<String> {
        Some(joined(&self.outer_name(of)?, &self.definitions[of as usize].name))
    }

    /// Returns the last alias before a byte, of those in the innermost block.
    fn alias_at(&self, name: &str, at: u32) -> Option<&Import> {
        let aliases = self.imports_of(name).iter().take(MAX_OVERLOADS);
        let aliases = aliases.filter_map(|&(import, named)| {
            let import = &self.imports[import as usize];
            let is_alias = import.names[named? as usize].name.is_empty() && import.range.end <= at;
            let size = self.import_scope(import, Some(at)).filter(|_| is_alias)?;
            Some((size, import))
        });
        let innermost = aliases.min_by_key(|(size, import)| (*size, u32::MAX - import.range.start));
        innermost.map(|(_, import)| import)
    }
}

impl Linker<'_> {
    /// Finds the module or the function of the same module that a name means.
    pub(super) fn name_with_aliases(&self, facts: &Facts, reference: &Reference, depth: u8) -> Found {
        let at = reference.range.start;
        if reference.name == OWN_MODULE {
            let own = facts.module_at(at).map(|of| Sym::Def(facts.def(of)));
            return own.map_or_else(Found::unknown, |own| Found {
                syms: vec![own],
                tier: Tier::Own,
            });
        }
        if is_module_name(&reference.name) {
            return self.module_with_aliases(facts, reference, depth);
        }
        if reference.kind != ReferenceKind::Call {
            return Found::unknown();
        }
        let own = facts.module_at(at);
        let is_own = |index: &&u32| {
            own.is_some() && facts.module_of(**index) == own && self.fits(facts.def(**index), Use::of(reference))
        };
        let own = facts.named(&reference.name).iter().take(MAX_OVERLOADS).filter(is_own);
        let own: Vec<Sym> = own.map(|&index| Sym::Def(facts.def(index))).collect();
        if !own.is_empty() {
            return Found {
                syms: own,
                tier: Tier::Scope,
            };
        }
        self.imported_function(facts, reference, depth)
            .unwrap_or_else(|| self.invisible(facts, reference))
    }

    /// Finds a function that `import` makes visible.
    fn imported_function(&self, facts: &Facts, reference: &Reference, depth: u8) -> Option<Found> {
        let (name, at) = (reference.name.as_str(), reference.range.start);
        let named = facts.imports_of(name).iter().take(MAX_IMPORTS);
        let named = named.map(|(import, _)| &facts.imports[*import as usize]);
        let used = facts.imports_of(USING).iter().take(MAX_IMPORTS);
        let used = used.map(|(import, _)| &facts.imports[*import as usize]);
        let imports = named.chain(facts.stars().take(MAX_IMPORTS)).chain(used);
        let mut imports = imports.filter(|import| facts.import_scope(import, Some(at)).is_some());
        let syms = imports.find_map(|import| self.brought_in(facts, import, reference, true, depth))?;
        Some(Found {
            syms,
            tier: Tier::Import,
        })
    }

    /// Finds a function that an import makes visible: one of the module, or what `use` of the module defines and, with
    /// `with_imports`, imports.
    fn brought_in(
        &self,
        facts: &Facts,
        import: &Import,
        call: &Reference,
        with_imports: bool,
        depth: u8,
    ) -> Option<Vec<Sym>> {
        let depth = deeper(depth)?;
        let of = self.module_by_path(facts, &import.module, import.range.start, depth)?;
        if import.names.iter().all(|name| name.name != USING) {
            return self.function_of(of, call, depth);
        }
        let used = self.facts(of.file)?;
        let is_using = |index: &&u32| used.definitions[**index as usize].container == Some(of.index);
        let using = *used.named(USING).iter().find(is_using)?;
        let is_defined = |index: &&u32| {
            used.definitions[**index as usize].container == Some(using) && self.fits(used.def(**index), Use::of(call))
        };
        let defined: Vec<Sym> = used
            .named(&call.name)
            .iter()
            .take(MAX_OVERLOADS)
            .filter(is_defined)
            .map(|&index| Sym::Def(used.def(index)))
            .collect();
        if !defined.is_empty() {
            return Some(defined);
        }
        let range = used.definitions[using as usize].range;
        let inside = used.imports.iter().filter(|import| range.contains(import.range));
        let visible = inside.filter(|import| {
            let mut names = import.names.iter().map(|name| name.name.as_str());
            names.any(|name| name == "*" || name == USING || name == call.name)
        });
        let visible = visible.filter(|import| with_imports || import.names.iter().any(|name| name.name == USING));
        visible
            .take(MAX_IMPORTS)
            .find_map(|import| self.brought_in(&used, import, call, with_imports, depth))
    }

    /// Finds the module that a name with the path before it means.
    pub(super) fn module_with_aliases(&self, facts: &Facts, reference: &Reference, depth: u8) -> Found {
        // `A` in `A.B` is no module: each has its own name.
        let next = facts.reference_at(reference.range.end + 1);
        let next = next.map(|next| &facts.references[next as usize]);
        if next.is_some_and(|next| is_module_name(&next.name) && is_member_of(next, reference)) {
            return Found::outside();
        }
        let Some(before) = facts.path_before(reference) else {
            return Found::unknown();
        };
        let path = joined(&before, &reference.name);
        let at = reference.range.start;
        let full = self.full_name(facts, &path, at, depth).unwrap_or_else(|| path.clone());
        let (outer, name) = full.rsplit_once('.').unwrap_or(("", &full));
        let found = self.with_full_name(facts, outer, name);
        let here: Vec<DefId> = found.iter().copied().filter(|of| of.file == facts.file).collect();
        let found = if here.is_empty() { found } else { here };
        if found.is_empty() {
            if self.links.standard.has_module(facts.lang, &full) {
                return Found::outside();
            }
            let last = Reference {
                name: name.to_owned(),
                ..reference.clone()
            };
            return self.invisible(facts, &last);
        }
        let tier = match found.len() {
            1 if path == full => Tier::Scope,
            1 => Tier::Import,
            _ => Tier::Named,
        };
        Found {
            syms: found.into_iter().map(Sym::Def).collect(),
            tier,
        }
    }

    /// Returns the module that a path at a byte means.
    pub(super) fn module_by_path(&self, facts: &Facts, path: &str, at: u32, depth: u8) -> Option<DefId> {
        let full = self.full_name(facts, path, at, depth)?;
        let (outer, name) = full.rsplit_once('.').unwrap_or(("", &full));
        match self.with_full_name(facts, outer, name).as_slice() {
            [only] => Some(*only),
            several => several.iter().copied().find(|of| of.file == facts.file),
        }
    }

    /// Returns the full name of the module that a path at a byte means.
    fn full_name(&self, facts: &Facts, path: &str, at: u32, depth: u8) -> Option<String> {
        let depth = deeper(depth)?;
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        if first == OWN_MODULE {
            return Some(joined(&facts.name_of_module(facts.module_at(at)?)?, rest));
        }
        let mut around = facts.enclosing(at).filter(|&of| facts.holds_functions(of));
        let nested = around.find_map(|outer| {
            let is_inside = |index: &&u32| {
                let start = facts.definitions[**index as usize].range.start;
                facts.holds_functions(**index)
                    && facts.definitions[**index as usize].qualifier.is_none()
                    && facts.module_at(start).filter(|of| of != *index) == Some(outer)
            };
            facts.named(first).iter().take(MAX_OVERLOADS).find(is_inside)
        });
        if let Some(&nested) = nested {
            return Some(joined(&facts.name_of_module(nested)?, rest));
        }
        match facts.alias_at(first, at) {
            Some(alias) => {
                let full = self.full_name(facts, &alias.module, alias.range.start, depth)?;
                Some(joined(&full, rest))
            }
            None => Some(path.to_owned()),
        }
    }

    /// Returns true for definitions of one function.
    pub(super) fn are_clauses(&self, of: &[DefId]) -> bool {
        let Some(facts) = self.facts(of[0].file).filter(|facts| facts.has_aliases()) else {
            return false;
        };
        let key = |of: &DefId| {
            let definition = &facts.definitions[of.index as usize];
            (of.file, definition.container, definition.arity)
        };
        of.iter()
            .all(|other| other.file == of[0].file && key(other) == key(&of[0]))
    }

    /// Finds the function or macro of a module that a call means.
    pub(super) fn function_of(&self, module: DefId, call: &Reference, depth: u8) -> Option<Vec<Sym>> {
        let mut members = self.members_for(module, &call.name, Use::of(call), depth);
        members.retain(|of| call.kind != ReferenceKind::Call || self.fits(*of, Use::of(call)));
        if !members.is_empty() {
            return Some(members.into_iter().map(Sym::Def).collect());
        }
        // What macros define in the module.
        let facts = self.facts(module.file)?;
        let uses = facts.imports_of(USING).iter().take(MAX_IMPORTS);
        let mut uses = uses
            .map(|(import, _)| &facts.imports[*import as usize])
            .filter(|import| facts.module_at(import.range.start) == Some(module.index));
        uses.find_map(|import| self.brought_in(&facts, import, call, false, depth))
    }
}

fn is_member_of(name: &Reference, of: &Reference) -> bool {
    matches!(name.receiver, Value::Of { at, .. } if at == of.range.start)
}

/// Returns true if a name of Elixir is that of a module.
pub(super) fn is_module_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
}
