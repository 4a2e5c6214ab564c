//! Follows the types of values: what a receiver is an instance of.

use super::environment::Module;
use super::facts::{DefId, Facts, Family};
use super::members::Use;
use super::memo::deeper;
use super::resolve::{Found, Linker, Sym, Tier};
use crate::extract::{Binding, BindingKind, DefinitionKind, Globals, Literal, Shape, Step, Steps, Value};
use crate::model::ByteRange;
use crate::snapshot::FileId;

/// The type of a value.
#[derive(Clone, Debug)]
pub(super) struct Ty {
    pub(super) base: Base,
    /// The references that are the arguments of the type, in the file that names them.
    arguments: Vec<(FileId, u32)>,
    /// The tier of what is found by means of this type.
    pub(super) tier: Tier,
}

#[derive(Clone, Debug)]
pub(super) enum Base {
    Instance(DefId),
    /// A type itself.
    Class(DefId),
    Function(DefId),
    Module(Module),
    /// An instance of a type outside of the repository, by its name.
    Outer(String),
    /// Something outside of the repository that is not an instance of a named type.
    Outside,
}

/// Number of references in a type that are read.
const MAX_HEADS: usize = 256;
/// Types whose members are those of their argument.
const TRANSPARENT: &[&str] = &[
    "Box",
    "Arc",
    "Rc",
    "Cow",
    "Ref",
    "RefMut",
    "MutexGuard",
    "Pin",
    "Readonly",
    "Partial",
    "Required",
    "Optional",
    "Annotated",
    "Final",
    "ClassVar",
    "Mut",
    "unique_ptr",
    "shared_ptr",
    "weak_ptr",
];
/// Types with a content that `await`, `?` or a pattern takes out.
const WRAPPERS: &[&str] = &[
    "Option",
    "Result",
    "Promise",
    "PromiseLike",
    "Awaitable",
    "Coroutine",
    "Optional",
    "Future",
    "CompletableFuture",
    "Task",
    "ValueTask",
    "Type",
    "type",
    "Class",
];
/// Methods of types outside of the repository that return the content of the type.
const CONTENT: &[&str] = &[
    "unwrap",
    "expect",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
    "lock",
    "borrow",
    "borrow_mut",
    "get",
    "next",
    "remove",
    "poll",
    "peek",
    "getFirst",
    "getLast",
    "pop",
    "shift",
    "find",
    "at",
    "first",
    "last",
    "orElse",
    "orElseThrow",
    "orElseGet",
    "findFirst",
    "get_mut",
    "read",
    "write",
    "popleft",
    "removeFirst",
    "removeLast",
    "setdefault",
    "take",
    "next_back",
    "upgrade",
    "element",
    "newInstance",
];
/// Methods of types outside of the repository that return the same type.
const SAME: &[&str] = &[
    "iter",
    "iter_mut",
    "into_iter",
    "as_ref",
    "as_mut",
    "as_deref",
    "clone",
    "cloned",
    "copied",
    "rev",
    "to_owned",
    "filter",
    "stream",
    "iterator",
    "sorted",
    "reverse",
    "slice",
    "values",
    "ok",
    "ok_or",
    "ok_or_else",
    "map_err",
    "skip",
    "chain",
    "peekable",
    "copy",
    "limit",
    "concat",
    "or_else",
    "as_deref_mut",
];
const CONTENT_CSHARP: &[&str] = &[
    "First",
    "FirstOrDefault",
    "Single",
    "SingleOrDefault",
    "Last",
    "LastOrDefault",
];
const SAME_CSHARP: &[&str] = &[
    "ConfigureAwait",
    "Where",
    "OrderBy",
    "Skip",
    "Take",
    "Reverse",
    "ToList",
    "ToArray",
];
const CONTENT_KOTLIN: &[&str] = &["firstOrNull", "lastOrNull", "single", "getOrNull"];
const SAME_KOTLIN: &[&str] = &["toList", "asSequence", "sortedBy", "also", "apply"];

impl Ty {
    fn new(base: Base, tier: Tier) -> Self {
        Self {
            base,
            arguments: Vec::new(),
            tier,
        }
    }

    /// Returns an instance of a type outside of the repository.
    pub(super) fn outer(name: &str) -> Self {
        Self::new(Base::Outer(name.to_owned()), Tier::Outside)
    }

    fn by(mut self, tier: Tier) -> Self {
        self.tier = tier;
        self
    }

    /// Returns true if nothing is known of the members: the type is that of all values, which a condition may narrow down,
    /// or a tuple, of which a part may be meant, or has the name of a type parameter, a capital letter and perhaps a digit.
    pub(super) fn is_undetermined(&self, facts: &Facts) -> bool {
        let Base::Outer(name) = &self.base else { return false };
        let narrows = matches!(
            facts.family,
            Family::Python | Family::JavaScript | Family::Php | Family::Dart
        );
        if name.eq_ignore_ascii_case("tuple")
            || matches!(name.as_str(), "dynamic" | "Any" | "any" | "unknown" | "mixed")
            || facts.family == Family::Python && matches!(name.as_str(), "type" | "Type")
            || narrows && name.eq_ignore_ascii_case("object")
        {
            return true;
        }
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first.is_ascii_uppercase()) && letters.all(|letter| letter.is_ascii_digit())
    }

    pub(super) fn is_transparent(&self) -> bool {
        matches!(&self.base, Base::Outer(name) if TRANSPARENT.contains(&name.as_str()))
    }
}

impl Linker<'_> {
    /// Returns the type of what `steps` make of a reference.
    pub(super) fn value_of(&self, facts: &Facts, index: u32, steps: Steps, depth: u8) -> Option<Ty> {
        let depth = deeper(depth)?;
        let found = self.resolve_at(facts, index, depth);
        if found.tier == Tier::Named {
            return None;
        }
        let mut steps = steps.iter().peekable();
        let reference = &facts.references[index as usize];
        // Methods that are often derived, and `new` of Ruby.
        let makes = match (facts.family, reference.name.as_str()) {
            (Family::Rust, "clone" | "default" | "to_owned") => Some(Tier::Return),
            (_, "new") if facts.globals() == Globals::Constants => Some(Tier::Type),
            _ => None,
        };
        if let (Some(tier), true, Value::Of { at, steps: before }) = (makes, found.syms.is_empty(), reference.receiver)
            && steps.next_if_eq(&Step::Call).is_some()
        {
            let mut of = self.value(facts, at, before, depth)?;
            if let Base::Class(def) = of.base {
                of.base = Base::Instance(def);
            }
            for step in steps {
                of = self.after(of, step, None, depth)?;
            }
            return Some(of.by(tier));
        }
        if facts.family == Family::Java && self.are_alternatives(&found) {
            return None;
        }
        let mut of = match found.syms.first()? {
            Sym::Def(def) => self.type_of_definition(*def, found.tier, depth)?,
            Sym::Local(file, binding) => {
                let facts = self.facts(*file)?;
                self.type_of_binding(&facts, &facts.bindings[*binding as usize], depth)?
            }
            Sym::Module(module) => Ty::new(Base::Module(module.clone()), Tier::Receiver),
            Sym::This(def) => Ty::new(Base::Instance(*def), Tier::Own),
            Sym::Super(def) => {
                if facts.family == Family::Python {
                    steps.next_if_eq(&Step::Call);
                }
                self.base_of(*def, depth)?
            }
            Sym::Outside => {
                let Value::Of { at, steps: before } = reference.receiver else {
                    return Some(Ty::new(Base::Outside, Tier::Outside)).filter(|_| steps.peek().is_none());
                };
                // A method of a container or wrapper from outside.
                let of = self.value(facts, at, before, depth)?;
                if !matches!(of.base, Base::Outer(_)) || steps.next_if_eq(&Step::Call).is_none() {
                    return None;
                }
                let (same, content) = match facts.globals() {
                    Globals::Namespaces => (SAME_CSHARP, CONTENT_CSHARP),
                    _ if facts.is_kotlin() => (SAME_KOTLIN, CONTENT_KOTLIN),
                    _ => (&[][..], &[][..]),
                };
                match reference.name.as_str() {
                    name if SAME.contains(&name) || same.contains(&name) => of,
                    name if CONTENT.contains(&name) || content.contains(&name) => self.content(&of, depth)?,
                    _ => return None,
                }
            }
            Sym::Unknown => return None,
        };
        // The functions of one name that a call can mean have one type, or none is known.
        if found.syms.len() > 1 && steps.peek() == Some(&Step::Call) {
            let fitting = found.syms.iter().find_map(|sym| match sym {
                Sym::Def(def) if self.fits(*def, Use::of(reference)) => Some(*def),
                _ => None,
            });
            if let Some(def) = fitting {
                of = self.type_of_definition(def, Tier::Return, depth)?;
            }
        }
        let this = match reference.receiver {
            Value::Of { at, steps } => self.value(facts, at, steps, depth),
            _ => None,
        };
        for step in steps {
            of = self.after(of, step, this.as_ref(), depth)?;
        }
        Some(of)
    }

    fn after(&self, of: Ty, step: Step, this: Option<&Ty>, depth: u8) -> Option<Ty> {
        match (step, &of.base) {
            (Step::Call, Base::Class(def)) if self.is_object(*def) => {
                self.applied(*def, depth).map(|result| result.by(Tier::Return))
            }
            (Step::Call, Base::Function(def)) if self.may_take_none(*def) => None,
            (Step::Call, Base::Class(def)) => {
                let base = Base::Instance(*def);
                Some(Ty {
                    base,
                    arguments: of.arguments,
                    tier: Tier::Type,
                })
            }
            (Step::Call, Base::Function(def)) => self.result(*def, this, depth).map(|result| result.by(Tier::Return)),
            (Step::Call, Base::Instance(def)) => {
                let call = self.members_of(*def, "__call__", depth);
                self.result(*call.first()?, None, depth)
                    .map(|result| result.by(Tier::Return))
            }
            (Step::Call, _) => None,
            (Step::Element, Base::Outer(_)) => self.content(&of, depth),
            (Step::Element, _) => None,
            (Step::Unwrap, Base::Outer(name)) if WRAPPERS.contains(&name.as_str()) || name.ends_with("Result") => {
                self.content(&of, depth)
            }
            (Step::Unwrap, _) => Some(of),
        }
    }

    /// Returns what a wrapper or container contains.
    pub(super) fn content(&self, of: &Ty, depth: u8) -> Option<Ty> {
        let is_map = matches!(&of.base, Base::Outer(name) if name.contains("Map") || name.eq_ignore_ascii_case("dict"));
        let skipped = usize::from(is_map && of.arguments.len() > 1);
        self.argument(of, skipped, depth)
    }

    fn argument(&self, of: &Ty, at: usize, depth: u8) -> Option<Ty> {
        let &(file, index) = of.arguments.get(at)?;
        let facts = self.facts(file)?;
        let mut inner = self.named_type(&facts, index, depth)?;
        inner.arguments = of.arguments[at + 1..].to_vec();
        Some(inner.by(of.tier))
    }

    /// Returns the type of the value of a definition.
    pub(super) fn type_of_definition(&self, def: DefId, tier: Tier, depth: u8) -> Option<Ty> {
        let depth = deeper(depth)?;
        let facts = self.facts(def.file)?;
        let definition = &facts.definitions[def.index as usize];
        match definition.kind {
            DefinitionKind::Variant => {
                let of = facts.def(definition.container?);
                Some(Ty::new(Base::Instance(of), Tier::Type))
            }
            DefinitionKind::TypeAlias => {
                let of = self.aliased(def, depth).unwrap_or(def);
                Some(Ty::new(Base::Class(of), Tier::Receiver))
            }
            _ if facts.holds_members(def.index) || facts.is_table(def.index) => {
                Some(Ty::new(Base::Class(def), Tier::Receiver))
            }
            DefinitionKind::Module if facts.family == Family::Rust => {
                let module = if !facts.is_declared_module(def.index) {
                    Module::Items {
                        file: def.file,
                        of: Some(def.index),
                    }
                } else if definition.container.is_none() {
                    self.links.environment.rust_child(def.file, &definition.name)?
                } else {
                    return None;
                };
                Some(Ty::new(Base::Module(module), Tier::Receiver))
            }
            DefinitionKind::Property => self.result(def, None, depth),
            kind if kind.is_callable() => Some(Ty::new(Base::Function(def), tier)),
            DefinitionKind::Field | DefinitionKind::Variable | DefinitionKind::Constant => {
                let binding = facts.binding_of(def.index);
                let known = binding.and_then(|binding| {
                    let binding = &facts.bindings[binding as usize];
                    let of = self.type_of_binding(&facts, binding, depth);
                    (of.is_some() || !binding.declared.is_empty()).then_some(of)
                });
                match known {
                    Some(of) => of,
                    None => self.type_of_assigned(facts.def(definition.container?), &definition.name, depth),
                }
            }
            _ => None,
        }
    }

    /// Returns the type of the value that methods of a type assign to a field.
    fn type_of_assigned(&self, of: DefId, name: &str, depth: u8) -> Option<Ty> {
        let Sym::Local(file, binding) = self.assigned_field(of, name, depth)? else {
            return None;
        };
        let facts = self.facts(file)?;
        self.type_of_binding(&facts, &facts.bindings[binding as usize], depth)
    }

    /// Returns the type that an alias names.
    pub(super) fn aliased(&self, def: DefId, depth: u8) -> Option<DefId> {
        let depth = deeper(depth)?;
        let facts = self.facts(def.file)?;
        if !facts.has_kind(def.index, DefinitionKind::TypeAlias) {
            return None;
        }
        let binding = &facts.bindings[facts.binding_of(def.index)? as usize];
        match self.declared(&facts, binding, depth)?.base {
            Base::Instance(of) if of != def => Some(of),
            _ => None,
        }
    }

    pub(super) fn type_of_binding(&self, facts: &Facts, binding: &Binding, depth: u8) -> Option<Ty> {
        let depth = deeper(depth)?;
        if binding.kind == BindingKind::TypeParameter {
            return self.bound_of(facts, binding, depth);
        }
        if !binding.declared.is_empty() {
            return self.declared(facts, binding, depth);
        }
        match binding.value {
            Value::Of { at, steps } => {
                let mut of = self.value(facts, at, steps, depth)?;
                if steps == Steps::default() && matches!(of.base, Base::Function(_) | Base::Module(_)) {
                    return Some(of);
                }
                if of.tier == Tier::Own {
                    of.tier = Tier::Type;
                }
                Some(of)
            }
            // Nothing is a member of null, so the variable has another value where it is used.
            Value::Literal(Literal::Null) => None,
            Value::Literal(literal) => Some(Ty::outer(literal_type(literal))),
            Value::None => {
                let fixture = self.fixture(facts, binding)?;
                self.result(fixture, None, depth).map(|of| of.by(Tier::Type))
            }
            Value::Other => None,
        }
    }

    /// Returns the declared type of a binding.
    pub(super) fn declared(&self, facts: &Facts, binding: &Binding, depth: u8) -> Option<Ty> {
        let depth = deeper(depth)?;
        if binding.shape == Shape::Opaque {
            return None;
        }
        let mut heads = heads(facts, binding.declared);
        if binding.shape == Shape::Sequence {
            // The key of a map comes before its values.
            let is_outside = |index: u32| self.resolve_at(facts, index, depth).syms.contains(&Sym::Outside);
            if heads.len() > 1 && is_outside(heads[0]) {
                heads.remove(0);
            }
            let arguments = heads.into_iter().map(|index| (facts.file, index)).collect();
            return Some(Ty {
                base: Base::Outer("[]".to_owned()),
                arguments,
                tier: Tier::Type,
            });
        }
        let (&first, rest) = heads.split_first()?;
        let mut of = self.named_type(facts, first, depth)?;
        of.arguments = rest.iter().map(|&index| (facts.file, index)).collect();
        Some(of)
    }

    /// Returns an instance of the type that bounds a type parameter: in Rust, of the first trait of the repository.
    /// Nothing is known of a parameter without a bound.
    fn bound_of(&self, facts: &Facts, parameter: &Binding, depth: u8) -> Option<Ty> {
        if facts.family != Family::Rust {
            return self.declared(facts, parameter, depth);
        }
        let bounds = heads(facts, parameter.declared);
        let is_interface = |of: &DefId| {
            let kind = self.definition(*of).map(|definition| definition.kind);
            matches!(kind, Some(DefinitionKind::Trait | DefinitionKind::Interface))
        };
        let syms = |index: u32| self.resolve_at(facts, index, depth).syms;
        let mut inside = bounds.iter().filter_map(|index| {
            let of = syms(*index).first().and_then(Sym::definition);
            of.filter(is_interface)
        });
        let is_outside = |index: &u32| syms(*index).contains(&Sym::Outside);
        let base = match inside.next() {
            Some(of) => Base::Instance(of),
            None if !bounds.is_empty() && bounds.iter().all(is_outside) => Base::Outer(parameter.name.clone()),
            None => return None,
        };
        Some(Ty::new(base, Tier::Type))
    }

    /// Returns an instance of the type that a reference names.
    fn named_type(&self, facts: &Facts, index: u32, depth: u8) -> Option<Ty> {
        let depth = deeper(depth)?;
        self.instance_of(facts, index, &self.resolve_at(facts, index, depth), depth)
    }

    /// Returns an instance of the type that was found for a reference.
    fn instance_of(&self, facts: &Facts, index: u32, found: &Found, depth: u8) -> Option<Ty> {
        let name = &facts.references[index as usize].name;
        match found.syms.first() {
            Some(Sym::Def(def)) => {
                let target = self.facts(def.file)?;
                let kind = target.definitions[def.index as usize].kind;
                match kind {
                    DefinitionKind::TypeAlias if depth > 2 => match self.aliased(*def, depth) {
                        Some(of) => Some(Ty::new(Base::Instance(of), Tier::Type)),
                        None if target.family == Family::Rust => Some(Ty::new(Base::Outer(name.clone()), Tier::Type)),
                        None => Some(Ty::new(Base::Instance(*def), Tier::Type)),
                    },
                    kind if kind.is_type() => Some(Ty::new(Base::Instance(*def), Tier::Type)),
                    _ => None,
                }
            }
            Some(Sym::This(def)) => Some(Ty::new(Base::Instance(*def), Tier::Type)),
            Some(Sym::Local(file, binding)) => {
                let facts = self.facts(*file)?;
                let binding = &facts.bindings[*binding as usize];
                self.bound_of(&facts, binding, depth)
                    .filter(|_| binding.kind == BindingKind::TypeParameter)
            }
            Some(Sym::Outside) => Some(Ty::new(Base::Outer(name.clone()), Tier::Type)),
            _ => None,
        }
    }

    /// Returns the type of the result of a function. `this` is the value that the function is a member of.
    pub(super) fn result(&self, def: DefId, this: Option<&Ty>, depth: u8) -> Option<Ty> {
        let depth = deeper(depth)?;
        let facts = self.facts(def.file)?;
        if facts.family == Family::Dart && facts.has_kind(def.index, DefinitionKind::Constructor) {
            let of = facts.definitions[def.index as usize].container?;
            return Some(Ty::new(Base::Instance(facts.def(of)), Tier::Return));
        }
        let binding = facts.binding_of(def.index).map(|index| &facts.bindings[index as usize]);
        if let Some(binding) = binding.filter(|binding| !binding.declared.is_empty()) {
            let own = heads(&facts, binding.declared)
                .first()
                .map(|&index| facts.references[index as usize].name.as_str());
            if matches!(own, Some("Self" | "this" | "static"))
                && let Some(Ty {
                    base: Base::Instance(of) | Base::Class(of),
                    arguments,
                    ..
                }) = this
            {
                return Some(Ty {
                    base: Base::Instance(*of),
                    arguments: arguments.clone(),
                    tier: Tier::Return,
                });
            }
            // A caller chooses what a type parameter is: more than what bounds it.
            let is_parameter = heads(&facts, binding.declared).first().is_some_and(|&head| {
                let syms = self.resolve_at(&facts, head, depth).syms;
                matches!(syms.first(), Some(Sym::Local(..)))
            });
            let of = self.declared(&facts, binding, depth)?;
            return Some(of).filter(|of| !is_parameter || !matches!(of.base, Base::Outer(_)));
        }
        if !matches!(facts.family, Family::Python | Family::JavaScript | Family::Php) {
            return None;
        }
        // Without a declared type, all values that the function returns must be of one type.
        let mut result: Option<Ty> = None;
        for &index in facts.returns_of(def.index) {
            let of = match facts.bindings[index as usize].value {
                Value::Literal(_) | Value::None => continue,
                Value::Other => return None,
                Value::Of { at, steps } => self.value(&facts, at, steps, depth)?,
            };
            match (&result, &of.base) {
                (None, _) => result = Some(of),
                (
                    Some(Ty {
                        base: Base::Instance(known),
                        ..
                    }),
                    Base::Instance(other),
                ) if known == other => {}
                _ => return None,
            }
        }
        result
    }

    /// Returns an instance of the type that a type extends.
    fn base_of(&self, def: DefId, depth: u8) -> Option<Ty> {
        let facts = self.facts(def.file)?;
        let base = *facts.bases(def.index).first()?;
        let found = self.resolve_base(&facts, base, depth);
        self.instance_of(&facts, base, &found, depth).map(|of| of.by(Tier::Own))
    }
}

/// Returns the name of a literal's type.
pub(super) fn literal_type(literal: Literal) -> &'static str {
    match literal {
        Literal::Other => "",
        Literal::String => "String",
        Literal::Integer => "int",
        Literal::Float => "double",
        Literal::Boolean => "boolean",
        Literal::Character => "char",
        Literal::Null => "null",
        Literal::Class => "Class",
    }
}

/// Returns the references in a type that are not segments of another one's path: `Map`, `Key` and `Item` for
/// `Map<Key, base.Item>`.
pub(super) fn heads(facts: &Facts, range: ByteRange) -> Vec<u32> {
    // Each use of a value can ask for those of its type.
    let inside = facts.references_in(range).take(MAX_HEADS);
    let mut heads: Vec<u32> = Vec::new();
    for index in inside {
        let reference = &facts.references[index];
        if let (Value::Of { at, .. }, Some(&last)) = (reference.receiver, heads.last())
            && facts.references[last as usize].range.start == at
        {
            heads.pop();
        }
        heads.push(index as u32);
    }
    heads
}
