//! Finds what a name without a receiver means.

use std::sync::Arc;

use super::environment::Module;
use super::facts::{DefId, Facts, Family};
use super::members::Use;
use super::memo::{Question, deeper};
use super::resolve::{Found, Linker, MAX_OVERLOADS, Sym, Tier};
use crate::extract::{BindingKind, DefinitionKind, Globals, Import, ImportedName, Reference, ReferenceKind};
use crate::snapshot::FileId;

/// Limit on the imports of one name in one scope that can be what it means.
const MAX_ALTERNATIVES: usize = 16;

impl Linker<'_> {
    /// Finds what a name means at a byte of a file.
    pub(super) fn bare(&self, facts: &Facts, reference: &Reference, depth: u8) -> Found {
        // Attributes of Rust are macros, which the names of types do not hide.
        if facts.family == Family::Rust && reference.kind == ReferenceKind::Attribute {
            return self.invisible(facts, reference);
        }
        if facts.has_aliases() {
            return self.name_with_aliases(facts, reference, depth);
        }
        let (name, at) = (reference.name.as_str(), reference.range.start);
        if let Some(found) = self.special(facts, name, at, depth) {
            return found;
        }
        if facts.family == Family::Php && !name.starts_with('$') {
            return self.name_in_php(facts, reference);
        }
        // Constants of Ruby are sought in the modules around them before those that a class inherits.
        let is_constant = facts.globals() == Globals::Constants && name.starts_with(char::is_uppercase);
        if is_constant && let Some(found) = self.global_in(facts, reference, "", depth) {
            return found;
        }
        let lexical = self.lexical(facts, reference, depth);
        let lexical = lexical.map(|found| match facts.globals() {
            Globals::Namespaces => self.as_generic(facts, reference, found),
            Globals::Modules => self.required(reference, depth, &found).unwrap_or(found),
            _ if facts.family == Family::Lua => self.held(facts, reference, found, depth),
            _ => found,
        });
        if reference.kind != ReferenceKind::Call
            && facts.profile.may_bind(name)
            && !matches!(&lexical, Some(found) if matches!(found.syms.first(), Some(Sym::Local(..))))
        {
            return Found::unknown();
        }
        if facts.family == Family::C {
            return self.bare_in_c(facts, reference, lexical);
        }
        if let Some(found) = lexical.filter(|found| !found.syms.is_empty() || found.tier == Tier::Unknown) {
            return found;
        }
        if facts.family == Family::Dart {
            return self.name_in_dart(facts, reference, depth);
        }
        if facts.globals() != Globals::None {
            return self.global(facts, reference, depth);
        }
        // Types and macros of Rust can have one name.
        let is_macro = facts.family == Family::Rust && reference.kind == ReferenceKind::Macro;
        let of_kind = |mut syms: Vec<Sym>| {
            syms.retain(|sym| !is_macro || self.can_be_macro(sym));
            Some(syms).filter(|syms| !is_macro || !syms.is_empty())
        };
        if let Some(syms) = self.imported(facts, name, Some(at), depth).and_then(of_kind) {
            return Found {
                syms,
                tier: Tier::Import,
            };
        }
        if let Some(syms) = self.in_package(facts, name) {
            return Found {
                syms,
                tier: Tier::Scope,
            };
        }
        if let Some(syms) = self.by_star(facts, name, None, at, depth).and_then(of_kind) {
            return Found {
                syms,
                tier: Tier::Import,
            };
        }
        if let Some(found) = self.package_named(facts, reference) {
            return found;
        }
        match facts.family {
            Family::Rust if is_macro => self.macro_of_crate(facts, reference),
            Family::Rust if facts.is_path_segment(reference) => self.crate_named(facts, reference),
            _ => self.invisible(facts, reference),
        }
    }

    /// Of the types of C# with one name, keeps those that have type arguments as a reference has.
    fn as_generic(&self, facts: &Facts, reference: &Reference, mut found: Found) -> Found {
        let is_type = |of: DefId| {
            let facts = self.facts(of.file);
            facts.is_some_and(|facts| facts.definitions[of.index as usize].kind.is_type())
        };
        found.syms.retain(|sym| {
            let of = sym.definition().filter(|of| is_type(*of));
            of.is_none_or(|of| self.is_as_generic(facts, of, reference))
        });
        found
    }

    /// Finds the member that a protocol of Swift requires, if a block that extends the protocol has one with its name.
    fn required(&self, reference: &Reference, depth: u8, found: &Found) -> Option<Found> {
        let block = self.type_around(found.syms.first()?.definition()?)?;
        let protocol = self.extended(self.facts(block.file)?.as_ref(), block.index)?;
        self.definition(protocol)
            .filter(|protocol| protocol.kind == DefinitionKind::Interface)?;
        let members = self.members_for(protocol, &reference.name, Use::of(reference), depth);
        Some(Found {
            syms: members.into_iter().map(Sym::Def).collect(),
            tier: Tier::Own,
        })
        .filter(|found| !found.syms.is_empty())
    }

    /// Returns true if something can be used as a macro. Some are functions.
    fn can_be_macro(&self, sym: &Sym) -> bool {
        let kind = |of: DefId| self.definition(of).map(|definition| definition.kind);
        match sym {
            Sym::Def(of) => kind(*of).is_some_and(|kind| kind == DefinitionKind::Macro || kind.is_callable()),
            _ => true,
        }
    }

    /// Finds the crate that the first segment of a path names.
    fn crate_named(&self, facts: &Facts, reference: &Reference) -> Found {
        let (name, environment) = (reference.name.as_str(), &self.links.environment);
        match environment.rust_dependency(name) {
            Some(_) if environment.is_ambiguous(Family::Rust, name) => Found::unknown(),
            Some(module) => Found {
                syms: vec![Sym::Module(module)],
                tier: Tier::Import,
            },
            None if environment.is_outside(self, facts, name) => Found::outside(),
            None => self.invisible(facts, reference),
        }
    }

    /// Finds the macro of the same crate with this name. `macro_use` makes it visible in other files.
    fn macro_of_crate(&self, facts: &Facts, reference: &Reference) -> Found {
        let named = self.named(Family::Rust, &reference.name);
        let environment = &self.links.environment;
        let own = environment.rust_crate(facts.file);
        let is_visible = |of: &&DefId| {
            let is_macro = |facts: Arc<Facts>| facts.has_kind(of.index, DefinitionKind::Macro);
            self.facts(of.file).is_some_and(is_macro) && environment.rust_crate(of.file) == own
        };
        let mut visible = named.iter().take(MAX_OVERLOADS).filter(is_visible);
        match (visible.next(), visible.next()) {
            (Some(of), None) => Found {
                syms: vec![Sym::Def(*of)],
                tier: Tier::Scope,
            },
            (None, _) => self.invisible(facts, reference),
            _ => Found::unknown(),
        }
    }

    /// Finds what `this`, `self`, `super` and similar words mean.
    fn special(&self, facts: &Facts, name: &str, at: u32, depth: u8) -> Option<Found> {
        let scope = |sym| {
            Some(Found {
                syms: vec![sym],
                tier: Tier::Own,
            })
        };
        // `self::name` is an item of the module, also in a method.
        let is_path = || {
            let reference = facts.reference_at(at);
            reference.is_some_and(|index| facts.is_path_segment(&facts.references[index as usize]))
        };
        let is_called = || {
            let called = facts
                .reference_at(at)
                .map(|index| facts.references[index as usize].kind);
            called == Some(ReferenceKind::Call)
        };
        let is_constructor = || {
            let mut around = facts.enclosing(at).map(|of| &facts.definitions[of as usize]);
            around
                .find(|of| of.kind.is_callable())
                .is_some_and(|of| of.name == "this")
        };
        match (facts.family, name) {
            (Family::Rust, "crate") => scope(Sym::Module(self.links.environment.rust_crate(facts.file)?)),
            (Family::Rust, "super") => scope(Sym::Module(self.rust_parent(facts, at)?)),
            (Family::Rust, "self") => match facts.enclosing_type(at).filter(|_| !is_path()) {
                Some(of) => scope(Sym::This(self.own_type(facts, of, depth)?)),
                None => scope(Sym::Module(Module::Items {
                    file: facts.file,
                    of: inline_module(facts, at),
                })),
            },
            (Family::Rust, "Self") => {
                let of = facts.enclosing_type(at)?;
                scope(Sym::Def(self.own_type(facts, of, depth)?))
            }
            (Family::Python, "super") => {
                let of = facts.enclosing_type(at)?;
                scope(Sym::Super(facts.def(of)))
            }
            (Family::Python, "self" | "cls") => {
                let parameter = facts.bindings_near(name, at).rev().find(|(_, binding)| {
                    binding.kind == BindingKind::Parameter && binding.scope.start <= at && at < binding.scope.end
                })?;
                let of = facts.enclosing_type(parameter.1.start)?;
                scope(if name == "cls" {
                    Sym::Def(facts.def(of))
                } else {
                    Sym::This(facts.def(of))
                })
            }
            (Family::Python, "Self") => scope(Sym::Def(facts.def(facts.enclosing_type(at)?))),
            (Family::Go | Family::Rust, "this") => None,
            (Family::C, "this") => {
                let of = facts.enclosing_type(at).map(|of| facts.def(of));
                scope(Sym::This(of.or_else(|| self.class_at(facts, at, name, depth))?))
            }
            (Family::Php, "self" | "static") => {
                let of = facts.def(facts.enclosing_type(at)?);
                scope(if is_called() { Sym::Def(of) } else { Sym::This(of) })
            }
            (Family::Php, "$this") => scope(Sym::This(facts.def(facts.enclosing_type(at)?))),
            (Family::Php, "parent") => scope(Sym::Super(facts.def(facts.enclosing_type(at)?))),
            (Family::Php, "this" | "super") => None,
            _ if facts.globals() != Globals::None => {
                let of = facts.enclosing_type(at).and_then(|of| self.own_type(facts, of, depth));
                let is_csharp = facts.globals() == Globals::Namespaces;
                match name {
                    "this" if is_csharp => scope(Sym::This(of?)),
                    "self" if !is_csharp => scope(Sym::This(of?)),
                    "base" if is_csharp => scope(Sym::Super(of?)),
                    "super" if !is_csharp => scope(Sym::Super(of?)),
                    "Self" if facts.globals() == Globals::Modules => scope(Sym::Def(of?)),
                    _ if name.starts_with('@') => scope(self.assigned_field(of?, name, depth)?),
                    _ => None,
                }
            }
            (Family::Java, "this") if let Some(of) = facts.extended_around(at) => {
                let found = self.bare_name(facts, of, at, depth);
                scope(Sym::This(found.syms.first()?.definition()?))
            }
            (Family::Java, "self") if facts.is_scala() => None,
            // A constructor that calls another one.
            (Family::Java, "this") if facts.is_scala() && is_called() && is_constructor() => {
                scope(Sym::Def(facts.def(facts.enclosing_type(at)?)))
            }
            (Family::Dart, "self") | (Family::Lua, "this" | "super") => None,
            (Family::Lua, "self") => scope(Sym::This(facts.def(facts.table_around(at)?))),
            (_, "this" | "self") => scope(Sym::This(facts.def(facts.enclosing_type(at)?))),
            (_, "super") => scope(Sym::Super(facts.def(facts.enclosing_type(at)?))),
            _ => None,
        }
    }

    /// Returns the type that an `impl` is for, or the type itself.
    pub(super) fn own_type(&self, facts: &Facts, of: u32, depth: u8) -> Option<DefId> {
        let definition = &facts.definitions[of as usize];
        if definition.kind != DefinitionKind::Impl {
            return Some(facts.def(of));
        }
        if facts.globals() == Globals::Modules {
            return self.extended(facts, of);
        }
        let at = facts.reference_at(definition.name_range.start);
        let found = match at {
            Some(at) => self.resolve_at(facts, at, depth),
            None => self.bare_name(facts, &definition.name, definition.name_range.start, depth),
        };
        found.syms.iter().find_map(|sym| match sym {
            Sym::Def(def) => Some(*def),
            _ => None,
        })
    }

    /// Finds what a name means at a place where it is not a reference.
    pub(super) fn bare_name(&self, facts: &Facts, name: &str, at: u32, depth: u8) -> Found {
        let reference = Reference {
            name: name.to_owned(),
            qualifier: None,
            kind: crate::extract::ReferenceKind::Name,
            range: crate::model::ByteRange::new(at, at),
            receiver: crate::extract::Value::None,
            n_arguments: None,
            arguments: Vec::new(),
        };
        let Some(depth) = deeper(depth) else {
            return Found::unknown();
        };
        let question = Question::Word(facts.file, at, name.into());
        self.answer(question, || self.bare(facts, &reference, depth))
    }

    /// Finds a local variable, an inherited member or a definition of the file that is visible where a reference is, unless
    /// a nearer function or block imports the name.
    fn lexical(&self, facts: &Facts, reference: &Reference, depth: u8) -> Option<Found> {
        let visible = self.visible(facts, reference);
        let size = visible.as_ref().map_or(usize::MAX, |(size, _)| *size);
        let is_python = facts.family == Family::Python;
        // A call means no variable.
        let has_own_functions =
            facts.family == Family::Java && !facts.is_scala() || facts.globals() == Globals::Constants;
        let (import_size, imports) = facts.imports_at(&reference.name, Some(reference.range.start));
        let scope = |syms| Found {
            syms,
            tier: Tier::Scope,
        };
        if let Some((local_size, binding)) = nearest_local(facts, reference)
            && local_size <= size.min(import_size)
            && !(reference.kind == ReferenceKind::Call && has_own_functions)
        {
            // A function of Python can import and assign one name, or import and define it.
            if local_size == import_size && is_python {
                return Some(Found::unknown());
            }
            // What a class inherits hides the variables around it.
            let class = facts.enclosing_type(reference.range.start).filter(|_| facts.is_scala());
            let is_outside = class.is_some_and(|of| facts.definitions[of as usize].range.len() < local_size);
            if is_outside && let Some(found) = self.inherited(facts, reference, depth) {
                return Some(found);
            }
            let has_bases = class.is_some_and(|of| !facts.bases(of).is_empty());
            if is_outside && has_bases && reference.kind == ReferenceKind::Call {
                return Some(Found::unknown());
            }
            let local = Sym::Local(facts.file, binding);
            return Some(scope(vec![facts.local_definition(binding).map_or(local, Sym::Def)]));
        }
        if import_size < size {
            return None;
        }
        if facts.is_kotlin() {
            if let Some(found) = self.member_of_extended(facts, reference, size, depth) {
                return Some(found);
            }
            // An import hides what the file and its package define.
            if size == usize::MAX && !imports.is_empty() {
                return self.inherited(facts, reference, depth);
            }
        }
        if is_python && import_size < usize::MAX {
            return Some(Found::unknown());
        }
        if facts.family == Family::Rust
            && let Some(syms) = self.by_star(facts, &reference.name, Some(size), reference.range.start, depth)
        {
            return Some(Found {
                syms,
                tier: Tier::Import,
            });
        }
        // Inherited members are nearer than the definitions of the file.
        if size == usize::MAX
            && let Some(found) = self.inherited(facts, reference, depth)
        {
            return Some(found);
        }
        let list = self.one_of(facts, visible?.1);
        // Parts of a type and extensions of it overload its functions.
        let has_parts = matches!(facts.globals(), Globals::Modules | Globals::Namespaces);
        let is_member = |index: &u32| {
            let container = facts.definitions[*index as usize].container;
            container.is_some_and(|of| facts.definitions[of as usize].kind.is_type())
        };
        if has_parts
            && reference.kind == ReferenceKind::Call
            && list.iter().all(is_member)
            && let Some(found) = self.inherited(facts, reference, depth)
            && found.syms.len() > list.len()
        {
            return Some(found);
        }
        Some(scope(
            list.into_iter().map(|index| Sym::Def(facts.def(index))).collect(),
        ))
    }

    /// Returns the definitions of the file that a reference can mean in the innermost scope that has any, and the length
    /// of that scope.
    fn visible(&self, facts: &Facts, reference: &Reference) -> Option<(usize, Vec<u32>)> {
        let (at, usage) = (reference.range.start, Use::of(reference));
        let enclosing: Vec<u32> = facts.enclosing(at).collect();
        let module = inline_module(facts, at);
        let is_path_segment = facts.is_path_segment(reference);
        let mut visible: Option<(usize, Vec<u32>)> = None;
        for &index in facts.named(&reference.name).iter().take(MAX_OVERLOADS) {
            let definition = &facts.definitions[index as usize];
            let outer = definition.container.map(|outer| &facts.definitions[outer as usize]);
            let is_member = outer.is_some_and(|outer| outer.kind.is_type());
            let is_macro = definition.kind == DefinitionKind::Macro || usage.kind == Some(ReferenceKind::Macro);
            let is_method_outside = match facts.family {
                Family::Go | Family::C => definition.qualifier.is_some(),
                Family::Lua => definition.qualifier.is_some() || definition.kind == DefinitionKind::Method,
                // A constructor is called by the name of its type.
                Family::Dart if definition.kind == DefinitionKind::Constructor => {
                    usage.kind != Some(ReferenceKind::Call) || outer.is_none_or(|outer| outer.name != definition.name)
                }
                _ => false,
            };
            let has_members = definition.kind.is_type() || definition.kind == DefinitionKind::Module;
            if !facts.is_name(index)
                || is_path_segment && !has_members
                || !is_path_segment && definition.kind == DefinitionKind::Module && facts.family == Family::Rust
                || facts.is_package(index)
                || is_method_outside
                || (is_member || is_macro) && !self.fits(facts.def(index), usage)
                || definition.container.is_some_and(|outer| !enclosing.contains(&outer))
                || !is_in_scope(facts, index, at, module)
            {
                continue;
            }
            let block = facts.block_of(index);
            if block.is_some_and(|block| at < block.start || block.end <= at) {
                continue;
            }
            let has_blocks = matches!(facts.family, Family::JavaScript | Family::Dart | Family::Lua);
            let is_value = !is_member && matches!(definition.kind, DefinitionKind::Method | DefinitionKind::Field);
            let is_hidden = || {
                let scope = facts.scope_of(index);
                scope.is_some_and(|scope| at < scope.start || scope.end <= at)
            };
            if facts.family == Family::JavaScript && is_value || has_blocks && is_hidden() {
                continue;
            }
            let size = outer.map_or(usize::MAX, |outer| outer.range.len());
            let size = block.map_or(size, |block| size.min(block.len()));
            match &mut visible {
                Some((known, list)) if *known == size => list.push(index),
                Some((known, _)) if *known < size => {}
                _ => visible = Some((size, vec![index])),
            }
        }
        visible
    }

    /// Finds a member that the types around a reference inherit, if members are visible without a receiver. A base of a
    /// type is not sought among the members of that type.
    fn inherited(&self, facts: &Facts, reference: &Reference, depth: u8) -> Option<Found> {
        if !facts.profile.has_implicit_this {
            return None;
        }
        let types = facts.enclosing(reference.range.start);
        let own = facts.reference_at(reference.range.start);
        let is_base = |of: u32| own.is_some_and(|own| facts.bases(of).binary_search(&own).is_ok());
        let types = types.filter(|&index| facts.holds_members(index) && !is_base(index));
        let class = self.class_at(facts, reference.range.start, &reference.name, depth);
        let mut types = class.into_iter().chain(types.map(|of| facts.def(of)));
        types.find_map(|of| {
            let mut members = self.members_for(of, &reference.name, Use::of(reference), depth);
            // A function is imported; the property of its name may be none.
            if reference.kind == ReferenceKind::Call && !facts.imports_of(&reference.name).is_empty() {
                members.retain(|of| self.fits(*of, Use::of(reference)));
            }
            (!members.is_empty()).then(|| Found {
                syms: members.into_iter().map(Sym::Def).collect(),
                tier: Tier::Own,
            })
        })
    }

    /// Of several definitions of a name in one scope, returns those that count.
    pub(super) fn one_of(&self, facts: &Facts, mut list: Vec<u32>) -> Vec<u32> {
        match facts.family {
            // Overloads and accessors come before the function that implements them.
            Family::Python => {
                list.truncate(1);
                list
            }
            _ => list,
        }
    }

    /// Finds a name that an import of the file makes visible.
    pub(super) fn imported(&self, facts: &Facts, name: &str, at: Option<u32>, depth: u8) -> Option<Vec<Sym>> {
        let depth = deeper(depth)?;
        let (_, imports) = facts.imports_at(name, at);
        match imports.len() {
            0 => return None,
            1..=MAX_ALTERNATIVES => {}
            _ => return Some(vec![Sym::Unknown]),
        }
        let question = Question::Imported(facts.file, imports.as_slice().into());
        let find = || Found {
            syms: self.all_made_visible(facts, &imports, depth),
            tier: Tier::Import,
        };
        let found = self.answer(question, find).syms;
        // What a name means that is imported from itself is not known.
        Some(if found.is_empty() { vec![Sym::Unknown] } else { found })
    }

    fn all_made_visible(&self, facts: &Facts, imports: &[(u32, Option<u32>)], depth: u8) -> Vec<Sym> {
        let mut all = Vec::new();
        for one in imports {
            let mut found = self.made_visible(facts, *one, depth);
            found.retain(|sym| !all.contains(sym));
            all.append(&mut found);
        }
        // Alternatives, of which some are not known.
        let is_known = |sym: &Sym| matches!(sym, Sym::Def(_));
        if imports.len() > 1 && all.len() > 1 && !all.iter().all(is_known) {
            return vec![Sym::Unknown];
        }
        all
    }

    fn made_visible(&self, facts: &Facts, (import, at): (u32, Option<u32>), depth: u8) -> Vec<Sym> {
        let import = &facts.imports[import as usize];
        let Some(at) = at else {
            // `import a.b` makes `a` visible.
            let module = match facts.family {
                Family::Python => import.module.split('.').next().unwrap_or_default(),
                _ => &import.module,
            };
            return vec![self.module_sym(facts, module, import.range.start, depth)];
        };
        self.brought(facts, import, &import.names[at as usize], depth)
    }

    /// Returns what a name of an import means.
    pub(super) fn brought(&self, facts: &Facts, import: &Import, imported: &ImportedName, depth: u8) -> Vec<Sym> {
        let at = import.range.start;
        if imported.name.is_empty() || imported.name == "self" && facts.family == Family::Rust {
            return match self.module_sym(facts, &import.module, at, depth) {
                // `use a::Type::{self}` takes a type.
                Sym::Outside | Sym::Unknown if let Some((outer, name)) = import.module.rsplit_once("::") => {
                    self.taken(facts, outer, name, at, depth)
                }
                module => vec![module],
            };
        }
        self.taken(facts, &import.module, &imported.name, at, depth)
    }

    /// Returns the module that a path in an import means.
    pub(super) fn module_sym(&self, facts: &Facts, module: &str, at: u32, depth: u8) -> Sym {
        let is_rust = facts.family == Family::Rust;
        let inside = inline_module(facts, at).filter(|_| is_rust);
        let question = Question::Path(facts.file, inside, module.into());
        let may_be_taken = || !matches!(module.split("::").next(), Some("crate" | "self" | "super"));
        if is_rust && facts.stars_in(inside).next().is_some() && may_be_taken() && !self.links.memo.has(&question) {
            // Asked inside of the question, it would be asked again for each path.
            let file = facts.file;
            self.ask_what_is_taken_by(Module::Items { file, of: inside }, depth);
        }
        let find = || {
            let environment = &self.links.environment;
            let found = environment.module(self, facts, module, at, depth);
            let found = match found {
                Some(_) if environment.is_ambiguous(facts.family, module) => Sym::Unknown,
                Some(module) => Sym::Module(module),
                None if environment.is_outside(self, facts, module) => Sym::Outside,
                None => Sym::Unknown,
            };
            Found {
                syms: vec![found],
                tier: Tier::Import,
            }
        };
        self.answer(question, find).syms.pop().unwrap_or(Sym::Unknown)
    }

    /// Returns what the name `name` of a module means.
    pub(super) fn taken(&self, facts: &Facts, module: &str, name: &str, at: u32, depth: u8) -> Vec<Sym> {
        if facts.family == Family::Php {
            return self.taken_in_php(module, name);
        }
        match self.module_sym(facts, module, at, depth) {
            // `from . import name` takes a module from the package of the file itself.
            Sym::Module(own)
                if own == Module::File(facts.file)
                    && let Some(inner) = self.links.environment.inside(&own, name) =>
            {
                vec![Sym::Module(inner)]
            }
            Sym::Module(module) => {
                let found = self.look_up(&module, name, depth);
                if found.is_empty() { vec![Sym::Unknown] } else { found }
            }
            other => {
                // `use Type::Variant` and `import a.Outer.Inner` take a member of a type.
                self.taken_of_type(facts, module, name, at, depth)
                    .unwrap_or_else(|| vec![other])
            }
        }
    }

    fn taken_of_type(&self, facts: &Facts, module: &str, name: &str, at: u32, depth: u8) -> Option<Vec<Sym>> {
        let depth = deeper(depth)?;
        // Outside of definitions, a path of Java begins with a package or a type of the own one: other imports have no
        // effect on it.
        let is_whole = facts.family == Family::Java && facts.enclosing(at).next().is_none();
        let separator = if facts.family == Family::Rust { "::" } else { "." };
        let (outer, of) = module.rsplit_once(separator).unwrap_or(("", module));
        let types = if outer.is_empty() && is_whole {
            let own = facts.named(of).iter().map(|index| Sym::Def(facts.def(*index)));
            let own: Vec<Sym> = own.collect();
            if own.is_empty() {
                self.in_package(facts, of).unwrap_or_default()
            } else {
                own
            }
        } else if outer.is_empty() {
            self.bare_name(facts, of, at, depth).syms
        } else {
            self.taken(facts, outer, of, at, depth)
        };
        types.iter().find_map(|sym| match sym {
            Sym::Def(def) => {
                let members = self.members_of(*def, name, depth);
                (!members.is_empty()).then(|| members.into_iter().map(Sym::Def).collect())
            }
            _ => None,
        })
    }

    /// Finds a name among the names that imports of everything make visible. With `below`, only those in functions and
    /// blocks that are shorter count.
    fn by_star(&self, facts: &Facts, name: &str, below: Option<usize>, at: u32, depth: u8) -> Option<Vec<Sym>> {
        let depth = deeper(depth)?;
        // The path of such an import can begin with a member of a type that an earlier one names. If later ones counted,
        // the paths would depend on each other, and nothing would be kept.
        let mut first = facts.stars().take(MAX_OVERLOADS);
        let is_of_star = first.any(|import| import.range.start == at);
        for import in facts
            .stars()
            .take(MAX_OVERLOADS)
            .filter(|import| below.is_none() || import.scope.is_some())
            .filter(|import| {
                let size = facts.import_scope(import, Some(at));
                size.is_some_and(|size| below.is_none_or(|below| size < below))
            })
        {
            if let Sym::Module(module) = self.module_sym(facts, &import.module, import.range.start, depth) {
                let found = self.look_up(&module, name, depth);
                if !found.is_empty() {
                    return Some(found);
                }
            } else if facts.family != Family::Python
                && !(is_of_star && at <= import.range.start)
                && let Some(found) = self.taken_of_type(facts, &import.module, name, import.range.start, depth)
            {
                return Some(found);
            }
        }
        None
    }

    /// Finds a name in the other files of the package.
    fn in_package(&self, facts: &Facts, name: &str) -> Option<Vec<Sym>> {
        let files = self.links.environment.package_of(self, facts)?;
        let syms = self.in_files(&files, name, Some(facts.file));
        (!syms.is_empty()).then_some(syms)
    }

    /// Returns what a name means at the top level of files.
    pub(super) fn in_files(&self, files: &[FileId], name: &str, except: Option<FileId>) -> Vec<Sym> {
        let mut found = self.at_top(files, name);
        found.retain(|of| Some(of.file) != except);
        // Of several files of a Go package that define a name, only one is built at a time.
        let is_go = |of: &DefId| self.facts(of.file).is_some_and(|facts| facts.family == Family::Go);
        if found.first().is_some_and(is_go) {
            found.truncate(1);
        }
        found.into_iter().map(Sym::Def).collect()
    }

    /// Returns the definitions of a name at the top level of files.
    pub(super) fn at_top(&self, files: &[FileId], name: &str) -> Vec<DefId> {
        let mut found = Vec::new();
        let wanted = self.files_defining(name);
        for file in wanted.iter().filter(|file| files.binary_search(file).is_ok()) {
            let Some(facts) = self.facts(*file) else { continue };
            let top = facts.named(name).iter().take(MAX_OVERLOADS).filter(|&&index| {
                let definition = &facts.definitions[index as usize];
                definition.container.is_none_or(|outer| facts.is_package(outer))
                    && !(definition.qualifier.is_some() && facts.family == Family::Go)
                    && definition.kind != DefinitionKind::Module
                    && facts.is_name(index)
            });
            found.extend(top.map(|&index| facts.def(index)));
        }
        found
    }
}

/// Returns the local variable or parameter that a reference can mean in the innermost scope that has any, and the length
/// of that scope. In JavaScript, a variable with a function is a definition, in a block like any other.
pub(super) fn nearest_local(facts: &Facts, reference: &Reference) -> Option<(usize, u32)> {
    let at = reference.range.start;
    let is_path_segment = facts.is_path_segment(reference);
    let locals = facts.bindings_near(&reference.name, at).filter(|(index, binding)| {
        let can_be = match binding.kind {
            BindingKind::TypeParameter => is_path_segment || reference.kind == ReferenceKind::Type,
            _ if is_path_segment => false,
            // `struct x *x`, `func f(x x)`
            _ if facts.names_types_apart() && reference.kind == ReferenceKind::Type => false,
            BindingKind::Local | BindingKind::Parameter => true,
            _ => facts.family == Family::JavaScript && facts.local_definition(*index).is_some(),
        };
        can_be && binding.scope.start <= at && at < binding.scope.end
    });
    // Of several bindings in a scope, the last one before the reference counts.

    let nearest = locals.min_by_key(|(_, binding)| (binding.scope.len(), binding.start > at, u32::MAX - binding.start));
    nearest.map(|(index, binding)| (binding.scope.len(), index))
}

/// Returns true if a definition is visible by its name alone at a byte inside its container. `module` is the innermost
/// module with a body around the byte.
fn is_in_scope(facts: &Facts, index: u32, at: u32, module: Option<u32>) -> bool {
    let definition = &facts.definitions[index as usize];
    let is_rust = facts.family == Family::Rust;
    let Some(container) = definition.container else {
        return !is_rust || module.is_none();
    };
    match facts.definitions[container as usize].kind {
        DefinitionKind::Module => !is_rust || module == Some(container),
        // The names of a class are visible in its body after their definition, but not in those of its methods.
        kind if kind.is_type() && facts.family == Family::Python => {
            definition.range.end <= at && facts.body_around(at) == Some(container)
        }
        kind if kind.is_type() => facts.profile.has_implicit_this || definition.kind.is_type() && !is_rust,
        _ => true,
    }
}

/// Returns the innermost module with a body that contains a byte.
pub(super) fn inline_module(facts: &Facts, at: u32) -> Option<u32> {
    facts
        .enclosing(at)
        .find(|&index| facts.has_kind(index, DefinitionKind::Module))
}
