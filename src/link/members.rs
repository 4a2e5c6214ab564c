//! Finds the members of modules and types.

use std::collections::HashSet;

use super::environment::Module;
use super::facts::{DefId, Facts, Family};
use super::memo::{Question, deeper};
use super::resolve::{Found, Linker, MAX_DEPTH, MAX_OVERLOADS, Sym, Tier};
use super::scopes::inline_module;
use crate::extract::{Binding, BindingKind, DefinitionKind, Globals, Import, Literal, Reference, ReferenceKind, Value};
use crate::snapshot::FileId;

/// Limit on the bases, direct or not, in which something is sought.
const MAX_BASES: usize = 256;

/// Limit on the modules, direct or not, from which a module imports everything.
const MAX_TAKEN: usize = 1_000;

/// The bases of a type that a search has reached. A type can have many ways to the same base.
#[derive(Default)]
pub(super) struct Climb {
    seen: HashSet<DefId>,
    n_followed: usize,
}

impl Climb {
    /// Returns true if a type is reached for the first time.
    pub(super) fn enters(&mut self, of: DefId) -> bool {
        self.seen.insert(of)
    }

    /// Returns true if one more base may be followed.
    pub(super) fn may_follow(&mut self) -> bool {
        self.n_followed += 1;
        self.n_followed <= MAX_BASES
    }
}

/// How a reference uses a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Use {
    pub(super) kind: Option<ReferenceKind>,
    pub(super) n_arguments: Option<u8>,
}

impl Use {
    pub(super) fn of(reference: &Reference) -> Self {
        Self {
            kind: Some(reference.kind),
            n_arguments: reference.n_arguments,
        }
    }
}

impl Linker<'_> {
    /// Returns what `name` means in a module. Empty if the module does not have it.
    pub(super) fn look_up(&self, module: &Module, name: &str, depth: u8) -> Vec<Sym> {
        let question = Question::Name(module.clone(), name.into());
        let find = || Found {
            syms: self.find_in(module, name, depth),
            tier: Tier::Receiver,
        };
        self.answer(question, find).syms
    }

    fn find_in(&self, module: &Module, name: &str, depth: u8) -> Vec<Sym> {
        let Some(depth) = deeper(depth) else { return Vec::new() };
        let own = self.own_name(module, name, depth);
        if !own.is_empty() {
            return own;
        }
        let taken = self.all_taken_by(module, depth);
        let found = taken.iter().map(|module| self.own_name(module, name, depth));
        if let Some(found) = found.into_iter().find(|found| !found.is_empty()) {
            return found;
        }
        let files = std::iter::once(module).chain(&taken);
        let mut files = files.filter(|module| matches!(module, Module::File(_)));
        let inner = files.find_map(|module| self.links.environment.inside(module, name));
        inner.map(Sym::Module).into_iter().collect()
    }

    /// Finds a name in a module itself, not in the modules from which it takes everything.
    fn own_name(&self, module: &Module, name: &str, depth: u8) -> Vec<Sym> {
        match module {
            Module::File(file) => self.look_up_in_file(*file, name, depth),
            Module::Items { file, of } => self.look_up_items(*file, *of, name, depth),
            Module::Folder { files, .. } => {
                let found = self.in_files(&files.0, name, None);
                if found.is_empty() {
                    self.links
                        .environment
                        .inside(module, name)
                        .map(Sym::Module)
                        .into_iter()
                        .collect()
                } else {
                    found
                }
            }
            Module::Crate { .. } => Vec::new(),
        }
    }

    /// Returns the modules whose names a module has because it imports everything from them, directly or not. Each is
    /// listed once, so circles of modules take time in proportion to their imports.
    fn all_taken_by(&self, module: &Module, depth: u8) -> Vec<Module> {
        let find = || {
            let mut found = Vec::new();
            let mut seen = HashSet::from([module.clone()]);
            let mut next = self.taken_by(module, depth);
            next.reverse();
            while let Some(module) = next.pop().filter(|_| found.len() < MAX_TAKEN) {
                if seen.insert(module.clone()) {
                    next.extend(self.taken_by(&module, depth).into_iter().rev());
                    found.push(Sym::Module(module));
                }
            }
            Found {
                syms: found,
                tier: Tier::Import,
            }
        };
        self.modules_for(Question::Taken(module.clone()), find)
    }

    /// Remembers from which modules a module imports everything.
    pub(super) fn ask_what_is_taken_by(&self, module: Module, depth: u8) {
        if !self.links.memo.has(&Question::Taken(module.clone())) {
            self.all_taken_by(&module, depth);
        }
    }

    /// Returns the modules from which a module imports everything, in their order.
    fn taken_by(&self, module: &Module, depth: u8) -> Vec<Module> {
        let find = || Found {
            syms: self.find_taken_by(module, depth).into_iter().map(Sym::Module).collect(),
            tier: Tier::Import,
        };
        self.modules_for(Question::Stars(module.clone()), find)
    }

    /// Answers a question about modules.
    fn modules_for(&self, question: Question, find: impl FnOnce() -> Found) -> Vec<Module> {
        let module = |sym| match sym {
            Sym::Module(module) => Some(module),
            _ => None,
        };
        self.answer(question, find)
            .syms
            .into_iter()
            .filter_map(module)
            .collect()
    }

    fn find_taken_by(&self, module: &Module, depth: u8) -> Vec<Module> {
        let (file, of) = match module {
            Module::File(file) => (*file, None),
            Module::Items { file, of } => (*file, *of),
            Module::Crate { roots } => {
                let root = |file: &FileId| Module::Items { file: *file, of: None };
                return roots.iter().map(root).collect();
            }
            Module::Folder { .. } => return Vec::new(),
        };
        let Some(facts) = self.facts(file) else {
            return Vec::new();
        };
        let stars = facts.stars_in(of).filter(|import| {
            let is_passed_on = match facts.family {
                Family::JavaScript => import.is_reexport,
                Family::Dart => import.exports_all(),
                _ => true,
            };
            import.scope.is_none() && is_passed_on
        });
        let module = |import: &Import| match self.module_sym(&facts, &import.module, import.range.start, depth) {
            Sym::Module(module) => Some(module),
            _ => None,
        };
        stars.filter_map(module).collect()
    }

    /// Finds a name that a file of Python or JavaScript exports.
    fn look_up_in_file(&self, file: FileId, name: &str, depth: u8) -> Vec<Sym> {
        let Some(facts) = self.facts(file) else {
            return Vec::new();
        };
        match facts.family {
            Family::Dart => return self.look_up_in_library(&facts, name, depth),
            Family::Lua => return self.look_up_in_lua(&facts, name, depth),
            _ => {}
        }
        let exported = facts
            .bindings_of(name)
            .find(|(_, binding)| binding.kind == BindingKind::Export);
        if let Some((index, _)) = exported {
            let found = self.exported(&facts, index, depth);
            if !found.is_empty() {
                return found;
            }
        }
        let top = facts.named(name).iter().copied();
        let top: Vec<u32> = top
            .filter(|&index| facts.definitions[index as usize].container.is_none() && facts.is_name(index))
            .collect();
        let top = self.one_of(&facts, top);
        // `try: import x … except ImportError: x = None` means the import.
        let is_fallback =
            |index: &u32| facts.has_kind(*index, DefinitionKind::Variable) && !facts.imports_of(name).is_empty();
        if !top.is_empty() && !top.iter().all(is_fallback) {
            return top.into_iter().map(|index| Sym::Def(facts.def(index))).collect();
        }
        if let Some(found) = self.imported(&facts, name, None, depth) {
            return found;
        }
        if name == "default"
            && let Some((index, _)) = facts
                .bindings_of("exports")
                .find(|(_, binding)| binding.kind == BindingKind::Export)
        {
            let found = self.exported(&facts, index, depth);
            // `module.exports = function …` defines a function with the name `exports`.
            let defined = facts.named("exports").iter();
            let defined = defined.filter(|&&index| facts.definitions[index as usize].container.is_none());
            let defined = defined.map(|&index| Sym::Def(facts.def(index)));
            return if found.is_empty() { defined.collect() } else { found };
        }
        Vec::new()
    }

    /// Returns what a file of JavaScript exports under the name at a position, as in `exports.name = value`.
    pub fn exported_at(&self, file: FileId, at: u32, name: &str) -> Vec<DefId> {
        let Some(facts) = self.facts(file) else {
            return Vec::new();
        };
        let is_here = |(_, binding): &(u32, &Binding)| binding.kind == BindingKind::Export && binding.start == at;
        let found = facts.bindings_of(name).find(is_here);
        let syms = found.map_or_else(Vec::new, |(index, _)| self.exported(&facts, index, MAX_DEPTH));
        syms.iter().filter_map(Sym::definition).collect()
    }

    fn exported(&self, facts: &Facts, binding: u32, depth: u8) -> Vec<Sym> {
        let Value::Of { at, .. } = facts.bindings[binding as usize].value else {
            return Vec::new();
        };
        if let Some(reference) = facts.reference_at(at) {
            return self.resolve_at(facts, reference, depth).syms;
        }
        // The value can be the name of a definition: `export default function f() {}`.
        let defined = facts.defined_at(at);
        defined.map(|index| Sym::Def(facts.def(index))).into_iter().collect()
    }

    /// Finds an item of a Rust module.
    fn look_up_items(&self, file: FileId, of: Option<u32>, name: &str, depth: u8) -> Vec<Sym> {
        let Some(facts) = self.facts(file) else {
            return Vec::new();
        };
        let items = facts.named(name).iter().copied().filter(|&index| {
            let definition = &facts.definitions[index as usize];
            definition.container == of && definition.kind != DefinitionKind::Impl && !facts.is_declared_module(index)
        });
        let mut items: Vec<Sym> = items
            .map(|index| match facts.definitions[index as usize].kind {
                DefinitionKind::Module => Sym::Module(Module::Items { file, of: Some(index) }),
                _ => Sym::Def(facts.def(index)),
            })
            .collect();
        // A function can have the name of a module.
        let is_declared = facts.named(name).iter().any(|&index| facts.is_declared_module(index));
        if of.is_none() && (items.is_empty() || is_declared) {
            items.extend(self.links.environment.rust_child(file, name).map(Sym::Module));
        }
        if items.iter().any(|sym| !matches!(sym, Sym::Module(_))) {
            return items;
        }
        let Some(depth) = deeper(depth) else { return items };
        let mut named = facts.imports_of(name).iter().filter_map(|&(import, imported)| {
            let import = &facts.imports[import as usize];
            let is_item = import.scope.is_none() && inline_module(&facts, import.range.start) == of;
            Some((import, &import.names[imported? as usize])).filter(|_| is_item)
        });
        if let Some((import, imported)) = named.next() {
            let taken = self.brought(&facts, import, imported, depth).into_iter();
            let taken = taken.filter(|sym| items.is_empty() || *sym != Sym::Unknown);
            items.extend(taken.collect::<Vec<_>>());
        }
        items
    }

    /// Returns the members of a type with this name: its own, or else those that it inherits.
    pub(super) fn members_of(&self, of: DefId, name: &str, depth: u8) -> Vec<DefId> {
        self.members_for(of, name, Use::default(), depth)
    }

    /// Like [`Self::members_of`], for a use of the name. A member that does not fit the use is returned only if no
    /// inherited one fits.
    pub(super) fn members_for(&self, of: DefId, name: &str, usage: Use, depth: u8) -> Vec<DefId> {
        let of = self.whole(of, depth);
        let find = || {
            let mut other = Vec::new();
            let found = self.members_in(of, (name, usage), depth, &mut Climb::default(), &mut other);
            if usage.kind == Some(ReferenceKind::Type) {
                other.retain(|of| self.fits(*of, usage));
            }
            let mut found = if found.is_empty() { other } else { found };
            // Each of as many references can have this answer.
            found.truncate(MAX_OVERLOADS);
            found
        };
        self.definitions_for(Question::Members(of, name.into(), usage), find)
    }

    /// Returns the first part of a type. All parts have the same members, so answers are kept for this one.
    pub(super) fn whole(&self, of: DefId, depth: u8) -> DefId {
        if self
            .facts(of.file)
            .is_none_or(|facts| matches!(facts.globals(), Globals::None | Globals::Aliases))
        {
            return of;
        }
        let find = || self.parts_of(of, depth).into_iter().min().into_iter().collect();
        let found = self.definitions_for(Question::Whole(of), find);
        found.first().copied().unwrap_or(of)
    }

    /// Returns the definitions that answer a question.
    fn definitions_for(&self, question: Question, find: impl FnOnce() -> Vec<DefId>) -> Vec<DefId> {
        let find = || Found {
            syms: find().into_iter().map(Sym::Def).collect(),
            tier: Tier::Receiver,
        };
        let found = self.answer(question, find);
        found.syms.iter().filter_map(Sym::definition).collect()
    }

    fn members_in(
        &self,
        of: DefId,
        (name, usage): (&str, Use),
        depth: u8,
        climb: &mut Climb,
        other: &mut Vec<DefId>,
    ) -> Vec<DefId> {
        let Some(depth) = deeper(depth) else { return Vec::new() };
        // A base can be resolved to each of its parts.
        if !climb.enters(self.whole(of, depth)) {
            return Vec::new();
        }
        let parts = self.parts_of(of, depth);
        let mut own = Vec::new();
        for part in &parts {
            let Some(facts) = self.facts(part.file) else { continue };
            let members = facts.members_named(part.index, name);
            own.extend(members.into_iter().map(|index| facts.def(index)));
        }
        own.extend(self.outside_members(of, name));
        if own.len() > 1 && own.iter().any(|def| self.is_prototype(*def)) {
            own = self.bodies_of(own);
        }
        if self.facts(of.file).is_some_and(|facts| facts.family == Family::Python) {
            own.truncate(1);
        }
        let mut fitting: Vec<DefId> = own.iter().copied().filter(|def| self.fits(*def, usage)).collect();
        // A protocol of Swift declares what a block that extends it implements.
        let is_declared = |def: &DefId| {
            let around = self.type_around(*def).and_then(|around| self.definition(around));
            around.is_some_and(|around| around.kind == DefinitionKind::Interface)
        };
        if parts.len() > 1 && fitting.iter().any(is_declared) {
            fitting.retain(is_declared);
        }
        if !fitting.is_empty() {
            return fitting;
        }
        if other.is_empty() {
            *other = own;
        }
        let has_bases = |part: &DefId| {
            let facts = self.facts(part.file);
            facts.is_some_and(|facts| !facts.bases(part.index).is_empty())
        };
        for part in parts.into_iter().filter(has_bases) {
            for base in self.bases_of(part, depth) {
                if !climb.may_follow() {
                    return Vec::new();
                }
                let found = self.members_in(base, (name, usage), depth, climb, other);
                if !found.is_empty() {
                    return found;
                }
            }
        }
        Vec::new()
    }

    /// Returns the types that a type extends or implements, in the order in which their members are sought.
    fn bases_of(&self, of: DefId, depth: u8) -> Vec<DefId> {
        self.definitions_for(Question::Bases(of), || self.find_bases(of, depth))
    }

    fn find_bases(&self, of: DefId, depth: u8) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return Vec::new();
        };
        let mut bases = Vec::new();
        // Modules do not inherit the functions of a behaviour.
        if facts.has_aliases() {
            return bases;
        }
        for &base in facts.bases(of.index) {
            let found = self.resolve_base(&facts, base, depth).syms;
            let found = found.iter().filter_map(Sym::definition);
            bases.extend(found.map(|base| self.aliased(base, depth).unwrap_or(base)));
        }
        let mut known = HashSet::new();
        bases.retain(|base| known.insert(*base));
        if matches!(facts.family, Family::Php | Family::Dart) {
            // A trait hides what a class inherits, and that hides what an interface declares.
            bases.sort_by_key(|base| match self.definition(*base).map(|base| base.kind) {
                Some(DefinitionKind::Trait) => 0,
                Some(DefinitionKind::Interface) => 2,
                _ => 1,
            });
        }
        bases
    }

    /// Finds the place at which a method of a type, or of a type that it extends, assigns to a field.
    pub(super) fn assigned_field(&self, of: DefId, name: &str, depth: u8) -> Option<Sym> {
        self.assigned_in(of, name, depth, &mut Climb::default())
    }

    fn assigned_in(&self, of: DefId, name: &str, depth: u8, climb: &mut Climb) -> Option<Sym> {
        let depth = deeper(depth)?;
        let facts = self.facts(of.file)?;
        let assigns = matches!(facts.family, Family::Python | Family::JavaScript | Family::Php);
        if !climb.enters(of) || !assigns && facts.globals() != Globals::Constants {
            return None;
        }
        let mut own = facts.bindings_of(name).filter(|(_, binding)| {
            binding.kind == BindingKind::Field && facts.enclosing_type(binding.start) == Some(of.index)
        });
        let first = own.next();
        let is_null = |(_, binding): &(u32, &Binding)| binding.value == Value::Literal(Literal::Null);
        let own = first
            .filter(|first| !is_null(first))
            .or_else(|| own.find(|one| !is_null(one)))
            .or(first);
        if let Some((index, _)) = own {
            return Some(Sym::Local(of.file, index));
        }
        facts.bases(of.index).iter().find_map(|&base| {
            let may_follow = climb.may_follow();
            let found = may_follow.then(|| self.resolve_base(&facts, base, depth))?;
            let base = found.syms.iter().find_map(Sym::definition)?;
            self.assigned_in(base, name, depth, climb)
        })
    }

    /// Returns true if a definition can be what a use means.
    pub(super) fn fits(&self, def: DefId, usage: Use) -> bool {
        let Some(facts) = self.facts(def.file) else {
            return false;
        };
        let kind = facts.definitions[def.index as usize].kind;
        match usage.kind {
            Some(ReferenceKind::Macro) if facts.family == Family::Rust => kind == DefinitionKind::Macro,
            Some(ReferenceKind::Type) if kind == DefinitionKind::Constructor => false,
            Some(ReferenceKind::Type)
                if facts.family != Family::C
                    && facts.names_types_apart()
                    && (kind.is_callable()
                        || matches!(
                            kind,
                            DefinitionKind::Field | DefinitionKind::Variable | DefinitionKind::Property
                        )) =>
            {
                false
            }
            Some(ReferenceKind::Attribute) if facts.family == Family::Java => kind.is_type(),
            _ if kind == DefinitionKind::Macro && facts.family == Family::Rust => false,
            // The type of a callback is no function.
            Some(ReferenceKind::Call) if facts.has_aliases() => {
                let arity = facts.definitions[def.index as usize].arity;
                arity.is_some_and(|arity| usage.n_arguments.is_none_or(|n| arity.takes(n)))
            }
            Some(ReferenceKind::Call) if !kind.is_callable() => {
                let is_value = matches!(
                    kind,
                    DefinitionKind::Variable | DefinitionKind::Constant | DefinitionKind::Field
                );
                let arity = facts.definitions[def.index as usize].arity;
                let takes = |n| arity.is_none_or(|arity| arity.takes(n));
                kind.is_type() && usage.n_arguments.is_none_or(takes)
                    || kind == DefinitionKind::Variant
                    || is_value && facts.is_scala()
            }
            Some(ReferenceKind::Call) if let Some(arity) = facts.definitions[def.index as usize].arity => {
                usage.n_arguments.is_none_or(|n| arity.takes(n))
            }
            Some(ReferenceKind::Call) if matches!(facts.family, Family::Java | Family::C) => {
                let is_exact = kind != DefinitionKind::Macro && !facts.is_prototype(def.index);
                !is_exact || usage.n_arguments.is_none_or(|n| facts.takes(def.index, n.into()))
            }
            Some(ReferenceKind::Call) => true,
            // A field and a method can have one name.
            Some(ReferenceKind::Member)
                if !facts.is_scala() && matches!(facts.family, Family::Java | Family::Rust | Family::Php) =>
            {
                !kind.is_callable()
            }
            _ => true,
        }
    }

    /// Finds what a reference to a base type means. That of an anonymous class is resolved where the class is
    /// created.
    pub(super) fn resolve_base(&self, facts: &Facts, base: u32, depth: u8) -> Found {
        let reference = &facts.references[base as usize];
        let mut found = match facts.anonymous(reference) {
            Some(_) => {
                let mut found = self.named_by(facts, reference, depth);
                if found.syms.len() > 1 {
                    self.keep_nearest(facts, &mut found);
                }
                let inherit = Reference {
                    kind: ReferenceKind::Inherit,
                    ..reference.clone()
                };
                self.without_companion(&inherit, found, depth)
            }
            None => self.resolve_at(facts, base, depth),
        };
        // Inside a type, its name can mean its constructor.
        for sym in &mut found.syms {
            if let Sym::Def(of) = sym
                && self.is_constructor(*of)
                && let Some(around) = self.type_around(*of)
            {
                *of = around;
            }
        }
        found
    }

    /// Returns a type and the blocks that implement it.
    pub(super) fn parts_of(&self, of: DefId, depth: u8) -> Vec<DefId> {
        let find = || {
            let parts = self.find_parts(of, depth).into_iter().map(Sym::Def).collect();
            Found {
                syms: parts,
                tier: Tier::Own,
            }
        };
        let parts = self.answer(Question::Parts(of), find).syms;
        let parts: Vec<DefId> = parts.into_iter().filter_map(|sym| sym.definition()).collect();
        if parts.is_empty() { vec![of] } else { parts }
    }

    fn find_parts(&self, of: DefId, depth: u8) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return vec![of];
        };
        let definition = &facts.definitions[of.index as usize];
        if facts.has_aliases() {
            return vec![of];
        }
        if facts.globals() != Globals::None {
            return self.parts_by_name(&facts, of);
        }
        let mut parts = vec![of];
        if facts.family != Family::Rust || !definition.kind.is_type() {
            return parts;
        }
        for file in self.files_defining(&definition.name).iter() {
            let Some(other) = self.facts(*file).filter(|other| other.family == Family::Rust) else {
                continue;
            };
            for &index in other.named(&definition.name) {
                if other.has_kind(index, DefinitionKind::Impl) && self.own_type(&other, index, depth) == Some(of) {
                    parts.push(other.def(index));
                }
            }
        }
        parts
    }

    /// Returns the members of a type that are defined outside of it, such as the methods of a Go type.
    fn outside_members(&self, of: DefId, name: &str) -> Vec<DefId> {
        let Some(facts) = self.facts(of.file) else {
            return Vec::new();
        };
        let definition = &facts.definitions[of.index as usize];
        let files = match facts.family {
            Family::Go => self.links.environment.package_of(self, &facts).unwrap_or_default(),
            Family::C | Family::JavaScript => vec![of.file].into(),
            _ => return Vec::new(),
        };
        let mut found = Vec::new();
        for file in self.files_defining(name).iter() {
            let is_near = match facts.family {
                Family::C => self.sees(*file, of.file),
                _ => files.binary_search(file).is_ok(),
            };
            if !is_near {
                continue;
            }
            let Some(other) = self.facts(*file).filter(|other| other.family == facts.family) else {
                continue;
            };
            let members = other
                .qualified(&definition.name)
                .iter()
                .filter(|&&index| other.definitions[index as usize].name == name);
            found.extend(members.map(|&index| other.def(index)));
        }
        found
    }
}
