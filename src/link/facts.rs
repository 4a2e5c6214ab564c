//! The facts of one file, with the indexes that linking needs.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::environment::package_clause;
use super::scopes::inline_module;
use crate::extract::{
    Binding, BindingKind, Definition, DefinitionKind, Extensions, Globals, Import, ImportedName, Profile, Reference,
    ReferenceKind, Steps, Value, language, profile,
};
use crate::model::{ByteRange, Lang};
use crate::snapshot::FileId;

/// Limit on the imports of one name in a file among which the visible ones are sought.
const MAX_NAMESAKES: usize = 256;

/// A definition in a file of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefId {
    /// The file.
    pub file: FileId,
    /// The index in the definitions of the file.
    pub index: u32,
}

/// Languages whose files can use each other's definitions, and which resolve names in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Python,
    JavaScript,
    Go,
    Java,
    Rust,
    C,
    Php,
    Dart,
    Lua,
    Other(Lang),
}

impl Family {
    pub(super) fn of(lang: Lang) -> Self {
        match language(lang).map_or("", |language| language.name) {
            "python" => Self::Python,
            "javascript" | "typescript" | "tsx" => Self::JavaScript,
            "go" => Self::Go,
            "java" | "kotlin" | "scala" => Self::Java,
            "rust" => Self::Rust,
            "c" | "cpp" => Self::C,
            "php" => Self::Php,
            "dart" => Self::Dart,
            "lua" => Self::Lua,
            _ => Self::Other(lang),
        }
    }

    /// Returns what names that mean the same have in common: in PHP, their case does not matter.
    fn key_of(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::Php => name.to_ascii_lowercase().into(),
            _ => name.into(),
        }
    }
}

/// The facts of one file.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) file: FileId,
    pub(super) path: String,
    pub(super) lang: Lang,
    pub(super) family: Family,
    pub(super) profile: &'static Profile,
    pub(super) definitions: Vec<Definition>,
    pub(super) references: Vec<Reference>,
    /// The references by name, in the order of the text, collected when they are first looked up.
    by_name: OnceLock<HashMap<String, Vec<u32>>>,
    pub(super) bindings: Vec<Binding>,
    pub(super) imports: Vec<Import>,
    defined: HashMap<String, Vec<u32>>,
    /// The functions and types of PHP by their names in lower case.
    folded: HashMap<String, Vec<u32>>,
    bound: HashMap<String, Vec<u32>>,
    /// For each name that an import binds, the import and the name in it, or `None` for a whole module.
    imported: HashMap<String, Vec<(u32, Option<u32>)>>,
    /// For each name in a module that an import gives another name, the import and the name in it.
    renamed: HashMap<String, Vec<(u32, Option<u32>)>>,
    children: HashMap<u32, Vec<u32>>,
    /// Names that definitions in other containers are members of, such as Go receivers.
    qualified: HashMap<String, Vec<u32>>,
    returns: HashMap<u32, Vec<u32>>,
    bases: HashMap<u32, Vec<u32>>,
    /// The definitions by where their names start.
    by_start: HashMap<u32, Vec<u32>>,
    /// Where the values of exports of JavaScript start, if they are names.
    exports: HashSet<u32>,
    /// The namespaces of PHP and C#.
    pub(super) namespaces: Vec<u32>,
    /// The imports of everything.
    stars: Vec<u32>,
    /// Those of each module with a body of Rust, and the others.
    stars_in: HashMap<Option<u32>, Vec<u32>>,
    /// The length of the longest import.
    max_import: u32,
}

impl Facts {
    pub(super) fn new(
        file: FileId,
        path: String,
        lang: Lang,
        definitions: Vec<Definition>,
        imports: Vec<Import>,
        (references, bindings): (Vec<Reference>, Vec<Binding>),
    ) -> Self {
        let family = Family::of(lang);
        let mut facts = Self {
            file,
            path,
            lang,
            family,
            profile: profile(lang),
            definitions,
            references,
            by_name: OnceLock::new(),
            bindings,
            imports,
            defined: HashMap::new(),
            folded: HashMap::new(),
            bound: HashMap::new(),
            imported: HashMap::new(),
            renamed: HashMap::new(),
            children: HashMap::new(),
            qualified: HashMap::new(),
            returns: HashMap::new(),
            bases: HashMap::new(),
            by_start: HashMap::new(),
            exports: HashSet::new(),
            namespaces: Vec::new(),
            stars: Vec::new(),
            stars_in: HashMap::new(),
            max_import: 0,
        };
        // What is repeated has no further effect, and would take time for each member.
        let mut known_bases = HashSet::new();
        let mut known_stars = HashSet::new();
        let has_modules = facts.definitions.iter().any(|one| one.kind == DefinitionKind::Module);
        for index in 0..facts.references.len() {
            let reference = &facts.references[index];
            let of = match reference.kind {
                ReferenceKind::Inherit => facts.enclosing_type(reference.range.start),
                ReferenceKind::Call => facts.anonymous(reference),
                _ => None,
            };
            if let Some(of) = of
                && known_bases.insert((of, reference.name.clone(), reference.qualifier.clone()))
            {
                facts.bases.entry(of).or_default().push(index as u32);
            }
        }
        let has_namespaces = family == Family::Php || facts.globals() == Globals::Namespaces;
        for (index, definition) in facts.definitions.iter().enumerate() {
            let index = index as u32;
            facts.defined.entry(definition.name.clone()).or_default().push(index);
            if family == Family::Php && (definition.kind == DefinitionKind::Function || definition.kind.is_type()) {
                let name = definition.name.to_ascii_lowercase();
                facts.folded.entry(name).or_default().push(index);
            }
            if definition.kind == DefinitionKind::Module && has_namespaces {
                facts.namespaces.push(index);
            }
            facts
                .by_start
                .entry(definition.name_range.start)
                .or_default()
                .push(index);
            if let Some(container) = definition.container {
                facts.children.entry(container).or_default().push(index);
            }
            if let Some(qualifier) = &definition.qualifier {
                facts.qualified.entry(qualifier.clone()).or_default().push(index);
            }
        }
        for (index, binding) in facts.bindings.iter().enumerate() {
            facts.bound.entry(binding.name.clone()).or_default().push(index as u32);
            if let (BindingKind::Export, Family::JavaScript, Value::Of { at, steps }) =
                (binding.kind, family, binding.value)
                && steps == Steps::default()
            {
                facts.exports.insert(at);
            }
        }
        for index in 0..facts.bindings.len() {
            if facts.bindings[index].kind == BindingKind::Return
                && let Some(of) = facts.enclosing_callable(facts.bindings[index].start)
            {
                facts.returns.entry(of).or_default().push(index as u32);
            }
        }
        for (index, import) in facts.imports.iter().enumerate() {
            let index = index as u32;
            facts.max_import = facts.max_import.max(import.range.end - import.range.start);
            let takes_all = import.names.iter().any(|name| name.name == "*");
            // In a module with a body, the same path can mean another module.
            let mut is_new = || known_stars.insert((import.module.clone(), import.scope));
            if takes_all && (has_modules || import.names.len() > 1 || is_new()) {
                facts.stars.push(index);
                let module = inline_module(&facts, import.range.start).filter(|_| family == Family::Rust);
                facts.stars_in.entry(module).or_default().push(index);
            }
            // `use` and `require` of Elixir make no name visible, nor does `part` of Dart.
            if import.names.is_empty() && !facts.has_aliases() && family != Family::Dart {
                let local = local_module_name(family, &import.module);
                let key = family.key_of(&local).into_owned();
                facts.imported.entry(key).or_default().push((index, None));
            }
            for (at, name) in import.names.iter().enumerate().filter(|(_, name)| name.name != "*") {
                let local = local_name(family, import, name);
                if local != name.name {
                    let renamed = facts.renamed.entry(name.name.clone()).or_default();
                    renamed.push((index, Some(at as u32)));
                }
                let key = family.key_of(&local).into_owned();
                facts.imported.entry(key).or_default().push((index, Some(at as u32)));
            }
        }
        facts
    }

    pub(super) fn def(&self, index: u32) -> DefId {
        DefId { file: self.file, index }
    }

    /// Returns the definitions with this name, in source order; in PHP, if there are none, the functions and types whose
    /// names differ in case.
    pub(super) fn named(&self, name: &str) -> &[u32] {
        let folded = || (!self.folded.is_empty()).then(|| self.folded.get(&name.to_ascii_lowercase()));
        let found = self.defined.get(name).or_else(|| folded().flatten());
        found.map_or(&[], Vec::as_slice)
    }

    /// Returns the definition whose name starts at a byte.
    pub(super) fn defined_at(&self, start: u32) -> Option<u32> {
        self.by_start.get(&start)?.first().copied()
    }

    /// Returns true if the name at a byte is the value of an export of JavaScript.
    pub(super) fn is_export(&self, start: u32) -> bool {
        self.exports.contains(&start)
    }

    /// Returns the imports of everything.
    pub(super) fn stars(&self) -> impl Iterator<Item = &Import> {
        self.stars.iter().map(|&index| &self.imports[index as usize])
    }

    /// Returns the imports of everything in a module with a body of Rust, or outside of these.
    pub(super) fn stars_in(&self, module: Option<u32>) -> impl Iterator<Item = &Import> {
        let stars = self.stars_in.get(&module).map_or(&[][..], Vec::as_slice);
        stars.iter().map(|&index| &self.imports[index as usize])
    }

    /// Returns the imports that contain a byte with what is called `name` in them, in the module or in this file.
    pub(super) fn called_around(&self, name: &str, at: u32) -> Vec<(&Import, &ImportedName)> {
        let end = self.imports.partition_point(|import| import.range.start <= at) as u32;
        let first = self
            .imports
            .partition_point(|import| import.range.start + self.max_import < at) as u32;
        let near = |all: &[(u32, Option<u32>)]| {
            let around = all.partition_point(|one| one.0 < first)..all.partition_point(|one| one.0 < end);
            let around = all[around].iter().take(MAX_NAMESAKES);
            around.filter_map(|one| Some((one.0, one.1?))).collect::<Vec<_>>()
        };
        let mut called = near(self.imports_of(name));
        called.extend(near(self.renamed.get(name).map_or(&[], Vec::as_slice)));
        called.sort_unstable();
        let called = called.into_iter().map(|(import, name)| {
            let import = &self.imports[import as usize];
            (import, &import.names[name as usize])
        });
        let is_called = |named: &ImportedName| named.name == name || named.alias.as_deref() == Some(name);
        called
            .filter(|(import, named)| at < import.range.end && !named.name.is_empty() && is_called(named))
            .collect()
    }

    /// Returns the bindings of this name, in source order.
    pub(super) fn bindings_of(&self, name: &str) -> impl DoubleEndedIterator<Item = (u32, &Binding)> {
        let indexes = self.bound.get(name).map_or(&[][..], Vec::as_slice);
        indexes.iter().map(|&index| (index, &self.bindings[index as usize]))
    }

    /// Returns the bindings of a name around a byte. If there are very many, returns the nearest ones.
    pub(super) fn bindings_near(&self, name: &str, at: u32) -> impl DoubleEndedIterator<Item = (u32, &Binding)> {
        const MAX_NEAR: usize = 256;
        let indexes = self.bound.get(name).map_or(&[][..], Vec::as_slice);
        let n_before = indexes.partition_point(|&index| self.bindings[index as usize].start <= at);
        let near = n_before.saturating_sub(MAX_NEAR)..(n_before + MAX_NEAR).min(indexes.len());
        indexes[near]
            .iter()
            .map(|&index| (index, &self.bindings[index as usize]))
    }

    /// Returns the binding with the type and value of a definition.
    pub(super) fn binding_of(&self, definition: u32) -> Option<u32> {
        let definition = &self.definitions[definition as usize];
        let start = definition.name_range.start;
        let indexes = self.bound.get(&definition.name)?;
        let first = indexes.partition_point(|&index| self.bindings[index as usize].start < start);
        let mut same = indexes[first..]
            .iter()
            .take_while(|&&index| self.bindings[index as usize].start == start);
        same.find(|&&index| self.bindings[index as usize].kind == BindingKind::Definition)
            .copied()
    }

    /// Returns the imports that make a name visible somewhere in the file: the import, and the index among its names.
    pub(super) fn imports_of(&self, name: &str) -> &[(u32, Option<u32>)] {
        let found = self.imported.get(&*self.family.key_of(name));
        found.map_or(&[], Vec::as_slice)
    }

    /// Returns the imports that make a name visible at a position, those of the innermost scope that has any, and the length
    /// of that scope, `usize::MAX` for the file. Without a position, those that other files see.
    pub(super) fn imports_at(&self, name: &str, at: Option<u32>) -> (usize, Vec<(u32, Option<u32>)>) {
        let mut nearest = (usize::MAX, Vec::new());
        for &one in self.imports_of(name).iter().take(MAX_NAMESAKES) {
            let Some(size) = self.import_scope(&self.imports[one.0 as usize], at) else {
                continue;
            };
            if size < nearest.0 {
                nearest = (size, Vec::new());
            }
            if size == nearest.0 {
                nearest.1.push(one);
            }
        }
        nearest
    }

    /// Returns the length of the scope of an import if its names are visible at a position, or without one, in other files.
    pub(super) fn import_scope(&self, import: &Import, at: Option<u32>) -> Option<usize> {
        let (start, is_rust) = (import.range.start, self.family == Family::Rust);
        let is_holder = |of: &u32| {
            let is_module = is_rust && self.has_kind(*of, DefinitionKind::Module);
            self.definitions[*of as usize].kind.is_callable() || is_module
        };
        let range = |of: u32| self.definitions[of as usize].range;
        let scope = import
            .scope
            .or_else(|| self.enclosing(start).find(is_holder).map(range));
        let Some(at) = at else {
            return scope.is_none().then_some(usize::MAX);
        };
        if is_rust && inline_module(self, start) != inline_module(self, at) {
            return None;
        }
        let Some(scope) = scope else { return Some(usize::MAX) };
        // The head of a function of Python is outside, and the methods of a class.
        let is_in_body = self.family != Family::Python
            || match self.body_around(start) {
                Some(of) if self.definitions[of as usize].kind.is_type() => self.body_around(at) == Some(of),
                Some(of) => self.definitions[of as usize].signature.end <= at,
                None => true,
            };
        (scope.contains(ByteRange::new(at, at)) && is_in_body).then(|| scope.len())
    }

    /// Returns the definition in a function or a block that a binding is of, or the field that a parameter of a constructor
    /// defines.
    pub(super) fn local_definition(&self, binding: u32) -> Option<DefId> {
        let binding = &self.bindings[binding as usize];
        let is_local = |index: &&u32| {
            let definition = &self.definitions[**index as usize];
            definition.name == binding.name
                && (definition.is_local(&self.definitions, binding.scope) || self.is_parameter(definition))
        };
        let found = self.by_start.get(&binding.start).into_iter().flatten().find(is_local);
        found
            .filter(|_| binding.kind == BindingKind::Definition)
            .map(|&index| self.def(index))
    }

    /// Returns true for a field that a parameter of a constructor of TypeScript or PHP defines.
    pub(super) fn is_parameter(&self, field: &Definition) -> bool {
        let is_in_constructor = field
            .container
            .is_some_and(|outer| self.has_kind(outer, DefinitionKind::Constructor));
        let can_declare = matches!(self.family, Family::JavaScript | Family::Php);
        field.kind == DefinitionKind::Field && can_declare && is_in_constructor
    }

    /// Returns where the name of a definition is visible, if that is a part of the file.
    pub(super) fn scope_of(&self, definition: u32) -> Option<ByteRange> {
        let binding = self.binding_of(definition)?;
        self.local_definition(binding)?;
        Some(self.bindings[binding as usize].scope)
    }

    /// Returns the folder of the file, without the folders that its package names.
    pub(super) fn source_root(&self) -> &str {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let package = package_clause(self).unwrap_or_default().replace('.', "/");
        folder.strip_suffix(&package).unwrap_or(folder).trim_end_matches('/')
    }

    /// Returns true for a language in which a variable or function is never meant where a type is named.
    pub(super) fn names_types_apart(&self) -> bool {
        let families = [Family::C, Family::Go, Family::Rust, Family::Java, Family::Dart];
        families.contains(&self.family) || matches!(self.globals(), Globals::Namespaces | Globals::Modules)
    }

    /// Returns the block in which a method of Ruby is defined, whose caller decides what it is a member of.
    pub(super) fn block_of(&self, definition: u32) -> Option<ByteRange> {
        let binding = &self.bindings[self.binding_of(definition)? as usize];
        let is_in_block = self.globals() == Globals::Constants && binding.kind == BindingKind::Definition;
        (is_in_block && binding.value != Value::None).then_some(binding.scope)
    }

    /// Returns the values that a function returns.
    pub(super) fn returns_of(&self, definition: u32) -> &[u32] {
        self.returns.get(&definition).map_or(&[], Vec::as_slice)
    }

    /// Returns the definitions directly inside another one.
    pub(super) fn children(&self, container: u32) -> &[u32] {
        self.children.get(&container).map_or(&[], Vec::as_slice)
    }

    /// Returns the definitions outside of `of` that are members of it.
    pub(super) fn qualified(&self, of: &str) -> &[u32] {
        self.qualified.get(of).map_or(&[], Vec::as_slice)
    }

    /// Returns the references with a name, in the order of the text.
    pub(super) fn references_named(&self, name: &str) -> &[u32] {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name: HashMap<String, Vec<u32>> = HashMap::new();
            for (index, reference) in (0..).zip(&self.references) {
                match by_name.get_mut(&reference.name) {
                    Some(known) => known.push(index),
                    None => _ = by_name.insert(reference.name.clone(), vec![index]),
                }
            }
            by_name
        });
        by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the reference whose name starts at `at`.
    pub(super) fn reference_at(&self, at: u32) -> Option<u32> {
        let index = self
            .references
            .binary_search_by_key(&at, |reference| reference.range.start)
            .ok()?;
        Some(index as u32)
    }

    /// Returns true if a name is followed by `::`, so that it means a module or a type.
    pub(super) fn is_path_segment(&self, reference: &Reference) -> bool {
        let next = self.reference_at(reference.range.end + 2);
        let receiver = next.map(|next| self.references[next as usize].receiver);
        self.family == Family::Rust
            && matches!(receiver, Some(Value::Of { at, steps }) if at == reference.range.start && steps == Steps::default())
    }

    /// Returns true if a definition is a member of the type `of`. Parameters of a constructor can declare fields.
    pub(super) fn is_member(&self, index: u32, of: u32) -> bool {
        let definition = &self.definitions[index as usize];
        definition.container.is_some_and(|container| {
            let outer = &self.definitions[container as usize];
            let declares = definition.kind == DefinitionKind::Field && outer.kind == DefinitionKind::Constructor;
            container == of || declares && outer.container == Some(of)
        })
    }

    /// Returns the members with a name of the type `of`, in source order.
    pub(super) fn members_named(&self, of: u32, name: &str) -> Vec<u32> {
        let (named, children) = (self.named(name), self.children(of));
        if named.len() <= children.len() {
            return named
                .iter()
                .copied()
                .filter(|&index| self.is_member(index, of))
                .collect();
        }
        let of_constructors = children
            .iter()
            .filter(|&&index| self.has_kind(index, DefinitionKind::Constructor))
            .flat_map(|&index| self.children(index));
        let members = children.iter().chain(of_constructors).copied();
        let is_it = |index: &u32| named.binary_search(index).is_ok() && self.is_member(*index, of);
        let mut members: Vec<u32> = members.filter(is_it).collect();
        members.sort_unstable();
        members
    }

    /// Returns the references whose names start inside `range`.
    pub(super) fn references_in(&self, range: ByteRange) -> std::ops::Range<usize> {
        let first = self
            .references
            .partition_point(|reference| reference.range.start < range.start);
        let end = self
            .references
            .partition_point(|reference| reference.range.start < range.end);
        first..end
    }

    /// Returns the definitions that contain a byte, innermost first.
    pub(super) fn enclosing(&self, at: u32) -> impl Iterator<Item = u32> {
        let n_before = self
            .definitions
            .partition_point(|definition| definition.range.start <= at);
        let contains = move |index: &u32| self.definitions[*index as usize].range.end > at;
        // The last definition before a byte is inside all those that contain the byte, or ended before.
        let mut next = n_before.checked_sub(1).map(|last| last as u32);
        std::iter::from_fn(move || {
            while let Some(index) = next {
                next = self.definitions[index as usize].container;
                if contains(&index) {
                    return Some(index);
                }
            }
            None
        })
    }

    /// Returns the innermost function or type with a body that contains a byte. The signature of a definition belongs to the
    /// body around it.
    pub(super) fn body_around(&self, at: u32) -> Option<u32> {
        self.enclosing(at).find(|&index| {
            let definition = &self.definitions[index as usize];
            let has_body = definition.kind.is_callable() || definition.kind.is_type();
            has_body && definition.signature.end <= at
        })
    }

    pub(super) fn enclosing_callable(&self, at: u32) -> Option<u32> {
        self.enclosing(at)
            .find(|&index| self.definitions[index as usize].kind.is_callable())
    }

    pub(super) fn is_kotlin(&self) -> bool {
        self.profile.extensions == Extensions::Receivers
    }

    pub(super) fn is_scala(&self) -> bool {
        self.family == Family::Java && self.profile.extensions == Extensions::Anywhere
    }

    /// Returns the name of the type that the function of Kotlin around a byte extends.
    pub(super) fn extended_around(&self, at: u32) -> Option<&str> {
        let function = self
            .enclosing(at)
            .find(|&of| self.definitions[of as usize].kind.is_callable())?;
        let is_inside = self.enclosing_type(at).is_none_or(|of| of < function);
        let of = self.definitions[function as usize].qualifier.as_deref();
        of.filter(|_| is_inside)
    }

    /// Returns the innermost type that contains a byte.
    pub(super) fn enclosing_type(&self, at: u32) -> Option<u32> {
        self.enclosing(at).find(|&index| self.holds_members(index))
    }

    /// Returns the anonymous class whose creation a reference is part of.
    pub(super) fn anonymous(&self, reference: &Reference) -> Option<u32> {
        if self.family != Family::Java || reference.kind != ReferenceKind::Call {
            return None;
        }
        let of = self.enclosing(reference.range.start).next()?;
        let name = self.definitions[of as usize].name_range;
        (name.start < reference.range.start && reference.range.end == name.end).then_some(of)
    }

    /// Returns the references to the types that a definition extends or implements.
    pub(super) fn bases(&self, definition: u32) -> &[u32] {
        self.bases.get(&definition).map_or(&[], Vec::as_slice)
    }

    /// Returns the names of the types in the signature of a method of Go, without the receiver: those of each parameter,
    /// then those of the results. Omits `any`, which can be written as `interface{}`.
    pub(super) fn spelled_types(&self, definition: u32) -> Vec<&str> {
        let parameters = self.parameters(definition);
        let mut names = Vec::new();
        for reference in self.types_in_signature(definition) {
            let at = reference.range.start;
            // `a, b int` are two parameters, and those of a function type are inside the type of one.
            let around = |of: &&&Binding| of.declared.start <= at && at < of.declared.end;
            let outermost = parameters
                .iter()
                .filter(around)
                .map(|of| of.declared)
                .min_by_key(|of| of.start);
            let n = parameters.iter().filter(|of| Some(of.declared) == outermost).count();
            names.extend(std::iter::repeat_n(reference.name.as_str(), n.max(1)));
        }
        names
    }

    fn types_in_signature(&self, definition: u32) -> impl Iterator<Item = &Reference> {
        let definition = &self.definitions[definition as usize];
        let range = ByteRange::new(definition.name_range.end, definition.signature.end);
        self.references[self.references_in(range)]
            .iter()
            .filter(|reference| reference.kind == ReferenceKind::Type && reference.name != "any")
    }

    /// Returns the names that may be parameters of a generic type of Go: those in the receiver of a method, and those
    /// between the name of a type and its members.
    pub(super) fn generic_names(&self, definition: u32) -> impl Iterator<Item = &str> {
        let one = &self.definitions[definition as usize];
        let range = match self.children(definition).first() {
            Some(&member) => ByteRange::new(one.name_range.end, self.definitions[member as usize].range.start),
            None => ByteRange::new(one.range.start, one.name_range.start),
        };
        self.references[self.references_in(range)]
            .iter()
            .map(|reference| reference.name.as_str())
    }

    fn parameters(&self, definition: u32) -> Vec<&Binding> {
        let signature = self.definitions[definition as usize].signature;
        let first = self.bindings.partition_point(|binding| binding.start < signature.start);
        let inside = self.bindings[first..]
            .iter()
            .take_while(|binding| binding.start < signature.end);
        inside
            .filter(|binding| binding.kind == BindingKind::Parameter)
            .collect()
    }

    /// Returns true if a function can be called with `n` arguments.
    pub(super) fn takes(&self, definition: u32, n: usize) -> bool {
        let parameters = self.parameters(definition);
        let is_variadic = parameters.last().is_some_and(|last| last.value == Value::Other);
        if is_variadic {
            n + 1 >= parameters.len()
        } else {
            n == parameters.len()
        }
    }

    /// Returns true if code can refer to the definition by its name. The title of a test is no name, and the name of an
    /// `impl` is that of its type.
    pub(super) fn is_name(&self, definition: u32) -> bool {
        match self.definitions[definition as usize].kind {
            DefinitionKind::Test => {
                let has_titles =
                    matches!(self.family, Family::JavaScript | Family::Dart | Family::Lua) || self.is_scala();
                !has_titles && !matches!(self.globals(), Globals::Constants | Globals::Aliases)
            }
            kind => kind != DefinitionKind::Impl,
        }
    }

    /// Returns true for `mod x;` in Rust.
    pub(super) fn is_declared_module(&self, index: u32) -> bool {
        let definition = &self.definitions[index as usize];
        definition.kind == DefinitionKind::Module && definition.signature.end >= definition.range.end.saturating_sub(1)
    }

    /// Returns true if a definition has this kind.
    pub(super) fn has_kind(&self, definition: u32, kind: DefinitionKind) -> bool {
        self.definitions[definition as usize].kind == kind
    }
}

/// Returns the name that an import makes visible.
pub(super) fn local_name(family: Family, import: &Import, imported: &ImportedName) -> String {
    match &imported.alias {
        // `use a::b::{self}` makes `b` visible.
        None if imported.name == "self" && family == Family::Rust => local_module_name(family, &import.module),
        alias => alias.as_ref().unwrap_or(&imported.name).clone(),
    }
}

/// Returns the name under which `import` makes a whole module visible.
fn local_module_name(family: Family, module: &str) -> String {
    let separators: &[char] = match family {
        Family::Python => return module.split('.').next().unwrap_or_default().to_owned(),
        Family::Rust => &[':'],
        Family::Go => {
            // The last segment can be a major version, which is no part of the name.
            let mut segments = module.rsplit('/');
            let last = segments.next().unwrap_or_default();
            let is_version = last
                .strip_prefix('v')
                .is_some_and(|n| n.bytes().all(|byte| byte.is_ascii_digit()));
            let name = if is_version {
                segments.next().unwrap_or(last)
            } else {
                last
            };
            return name.split('.').next().unwrap_or_default().to_owned();
        }
        _ => &['/', '.', ':', '\\'],
    };
    module.rsplit(separators).next().unwrap_or_default().to_owned()
}
