//! Finds what names of Lua mean: a module is what its file returns, usually a table with functions.

use super::environment::{Environment, joined};
use super::facts::{DefId, Facts, Family};
use super::memo::deeper;
use super::resolve::{Found, Linker, MAX_OVERLOADS, Sym, Tier};
use super::scopes::nearest_local;
use crate::extract::{Binding, BindingKind, DefinitionKind, Reference, ReferenceKind, Steps, Value};
use crate::snapshot::FileId;

/// Limit on the bindings at the end of a file among which the returned value is sought.
const MAX_LAST: usize = 4_096;

impl Environment {
    /// Finds the file of a module: the nearest one, or the only one whose path ends with the name.
    pub(super) fn lua_file(&self, from: &str, module: &str) -> Option<FileId> {
        let path = module.replace('.', "/");
        let paths = [format!("{path}.lua"), format!("{path}/init.lua")];
        let (folder, _) = from.rsplit_once('/').unwrap_or(("", from));
        let mut above = Some(folder);
        while let Some(folder) = above {
            for root in ["", "lua", "src", "lib"] {
                let root = joined(folder, root);
                if let Some(found) = paths.iter().find_map(|path| self.below(&root, path)) {
                    return Some(found);
                }
            }
            above = (!folder.is_empty()).then(|| folder.rsplit_once('/').map_or("", |(outer, _)| outer));
        }
        let mut found: Vec<FileId> = paths.iter().flat_map(|path| self.ending_with(path)).collect();
        found.dedup();
        match found.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }
}

impl Facts {
    /// Returns the value that a file of Lua returns.
    fn returned(&self) -> Option<&Binding> {
        let mut last = self.bindings.iter().rev().take(MAX_LAST);
        last.find(|binding| binding.kind == BindingKind::Return && self.enclosing_callable(binding.start).is_none())
    }

    /// Returns true for a variable of a file of Lua that is a table with functions.
    pub(super) fn is_table(&self, of: u32) -> bool {
        let definition = &self.definitions[of as usize];
        let is_variable = matches!(definition.kind, DefinitionKind::Variable | DefinitionKind::Constant);
        self.family == Family::Lua
            && is_variable
            && definition.container.is_none()
            && (!self.qualified(&definition.name).is_empty() || !self.children(of).is_empty())
    }

    /// Returns the table that the function around a byte is a member of.
    pub(super) fn table_around(&self, at: u32) -> Option<u32> {
        let is_local = |(_, binding): &(u32, &Binding)| {
            binding.kind == BindingKind::Local && binding.scope.start <= at && at < binding.scope.end
        };
        if self.bindings_near("self", at).any(|binding| is_local(&binding)) {
            return None;
        }
        let mut around = self.enclosing(at).map(|of| &self.definitions[of as usize]);
        let table = around.find_map(|of| of.qualifier.as_deref())?;
        let mut tables = self.named(table).iter().copied().filter(|&of| self.is_table(of));
        tables.next().filter(|_| tables.next().is_none())
    }

    /// Returns true if a name means something else in the function around it than in the file.
    fn is_shadowed(&self, name: &Reference) -> bool {
        nearest_local(self, name).is_some_and(|(_, binding)| {
            let binding = &self.bindings[binding as usize];
            binding.kind == BindingKind::Parameter || self.enclosing_callable(binding.start).is_some()
        })
    }

    /// Returns the name of the table in which an assignment sets a field; `None` if it sets a variable.
    fn assigned_in(&self, binding: &Binding) -> Option<&str> {
        let field = &self.references[self.reference_at(binding.start)? as usize];
        let Value::Of { at, steps } = field.receiver else {
            return None;
        };
        let table = self.reference_at(at).filter(|_| steps == Steps::default())?;
        Some(&self.references[table as usize].name)
    }
}

impl Linker<'_> {
    /// Finds a member of a table of the file.
    pub(super) fn member_in_lua(&self, facts: &Facts, reference: &Reference, depth: u8) -> Option<Found> {
        let Value::Of { at, steps } = reference.receiver else {
            return None;
        };
        let table = &facts.references[facts.reference_at(at)? as usize];
        let is_name = steps == Steps::default() && table.receiver == Value::None && table.name != "self";
        if !is_name || facts.is_shadowed(table) {
            return None;
        }
        let syms = self.in_table(facts, &table.name, &reference.name, depth);
        (!syms.is_empty()).then_some(Found {
            syms,
            tier: Tier::Receiver,
        })
    }

    /// Finds a member of the table with a name in a file.
    fn in_table(&self, facts: &Facts, table: &str, name: &str, depth: u8) -> Vec<Sym> {
        let named = facts.named(name).iter().take(MAX_OVERLOADS).copied();
        let is_inside = |of: u32| {
            let definition = &facts.definitions[of as usize];
            let outer = definition.container.filter(|outer| facts.is_table(*outer));
            definition.qualifier.as_deref() == Some(table)
                || definition.qualifier.is_none()
                    && outer.is_some_and(|outer| facts.definitions[outer as usize].name == table)
        };
        let own: Vec<Sym> = named
            .filter(|of| is_inside(*of))
            .map(|of| Sym::Def(facts.def(of)))
            .collect();
        if !own.is_empty() {
            return own;
        }
        let is_set =
            |binding: &Binding| binding.kind == BindingKind::Export && facts.assigned_in(binding) == Some(table);
        let mut set = facts
            .bindings_of(name)
            .take(MAX_OVERLOADS)
            .filter(|(_, binding)| is_set(binding));
        match (set.next(), set.next()) {
            (Some((_, binding)), None) => self.value_in_lua(facts, binding, depth),
            _ => Vec::new(),
        }
    }

    /// Returns what a name or a member of a table, to which something is set, means.
    fn value_in_lua(&self, facts: &Facts, binding: &Binding, depth: u8) -> Vec<Sym> {
        let (Value::Of { at, steps }, Some(depth)) = (binding.value, deeper(depth)) else {
            return Vec::new();
        };
        let value = facts.reference_at(at).filter(|_| steps == Steps::default());
        value.map_or_else(Vec::new, |value| self.resolve_at(facts, value, depth).syms)
    }

    /// Finds a member of a variable with a table.
    pub(super) fn member_of_table(&self, of: DefId, reference: &Reference, depth: u8) -> Vec<Sym> {
        let Some(facts) = self.facts(of.file) else {
            return Vec::new();
        };
        self.in_table(
            &facts,
            &facts.definitions[of.index as usize].name,
            &reference.name,
            depth,
        )
    }

    /// Finds a member of what a file returns.
    pub(super) fn look_up_in_lua(&self, facts: &Facts, name: &str, depth: u8) -> Vec<Sym> {
        let Some(returned) = facts.returned() else {
            return Vec::new();
        };
        if let Value::Of { at, steps } = returned.value {
            let value = facts.reference_at(at).filter(|_| steps == Steps::default());
            let Some(value) = value.filter(|&value| facts.references[value as usize].receiver == Value::None) else {
                return Vec::new();
            };
            let own = self.in_table(facts, &facts.references[value as usize].name, name, depth);
            let other = || {
                self.value_in_lua(facts, returned, depth)
                    .into_iter()
                    .find_map(|sym| match sym {
                        Sym::Module(module) => Some(self.look_up(&module, name, depth)),
                        _ => None,
                    })
            };
            return if own.is_empty() {
                other().unwrap_or_default()
            } else {
                own
            };
        }
        // `return { name = value }`
        let is_field = |binding: &Binding| binding.kind == BindingKind::Export && binding.start > returned.start;
        let set = facts.bindings_of(name).find(|(_, binding)| is_field(binding));
        if let Some((_, binding)) = set {
            return self.value_in_lua(facts, binding, depth);
        }
        let is_inside = |of: &&u32| {
            let definition = &facts.definitions[**of as usize];
            definition.container.is_none() && definition.range.start > returned.start
        };
        let inside = facts.named(name).iter().take(MAX_OVERLOADS).filter(is_inside);
        inside.map(|&of| Sym::Def(facts.def(of))).collect()
    }

    /// Returns what a file returns, if that is a function or a table.
    pub(super) fn returned_by(&self, file: FileId, depth: u8) -> Vec<Sym> {
        let Some(facts) = self.facts(file) else {
            return Vec::new();
        };
        let mut syms = facts
            .returned()
            .map_or_else(Vec::new, |returned| self.value_in_lua(&facts, returned, depth));
        syms.retain(|sym| matches!(sym, Sym::Def(_)));
        syms
    }

    /// Finds the function that a local variable of Lua holds when it is called.
    pub(super) fn held(&self, facts: &Facts, reference: &Reference, found: Found, depth: u8) -> Found {
        let Some(Sym::Local(_, binding)) = found.syms.first() else {
            return found;
        };
        let binding = &facts.bindings[*binding as usize];
        if reference.kind != ReferenceKind::Call || binding.kind != BindingKind::Local {
            return found;
        }
        // `local f` can be set to a function later.
        let is_set = |of: &&u32| {
            let definition = &facts.definitions[**of as usize];
            definition.kind == DefinitionKind::Function && definition.qualifier.is_none()
        };
        let functions = facts.named(&reference.name).iter().take(MAX_OVERLOADS).filter(is_set);
        let functions: Vec<Sym> = functions.map(|&of| Sym::Def(facts.def(of))).collect();
        let mut set = facts.bindings_near(&reference.name, reference.range.start);
        let is_set_again =
            set.any(|(_, other)| other.kind == BindingKind::Export && facts.assigned_in(other).is_none());
        let held = match binding.value {
            Value::None if functions.len() == 1 && !is_set_again => functions,
            Value::Of { .. } if functions.is_empty() && !is_set_again => self.value_in_lua(facts, binding, depth),
            _ => Vec::new(),
        };
        if held.is_empty() || held.iter().any(|sym| !matches!(sym, Sym::Def(_))) {
            return Found::unknown();
        }
        Found {
            syms: held,
            tier: Tier::Scope,
        }
    }
}
