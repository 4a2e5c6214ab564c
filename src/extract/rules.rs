//! Rules that map the node kinds of a grammar to their meaning.
//!
//! The file of a language lists its [`Rule`]s, which assign a [`Role`] to node kinds by name. [`Tables::compile`]
//! converts the names to the grammar's ids once. The walk then finds the roles of each node by its kind id.

use std::collections::HashMap;

use tree_sitter::{Node, Tree};

use super::types::{Arity, BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Shape, Step, Steps, Value};
use super::walk::Cx;
use crate::model::ByteRange;

/// A grammar and the rules for reading its trees.
pub(crate) struct Grammar {
    /// The name of the grammar in `codescout_grammars`.
    pub(crate) name: &'static str,
    /// The rules, as several lists because languages share some of them. A node kind may have several roles.
    pub(crate) rules: &'static [&'static [Rule]],
    /// Returns true if a callable definition is a test case.
    pub(crate) is_test: fn(&TestProbe<'_>) -> bool,
    /// Prefixes of comments that belong to the enclosing definition instead of the next one, for example `//!`.
    pub(crate) inner_docs: &'static [&'static str],
    /// Returns true if a text would make the grammar's C scanner abort the process.
    pub(crate) is_too_much: fn(&[u8]) -> bool,
    /// True if several functions of one name differ in the types of their parameters.
    pub(crate) has_overloads: bool,
    /// Replaces syntax that the grammar misreads, before a text is parsed.
    pub(crate) mask: Option<MaskFn>,
    /// Replaces syntax that the grammar does not know, in texts with syntax errors. They are parsed again.
    pub(crate) mask_after_errors: Option<MaskFn>,
    /// Replaces what the parser took for something else. The text is parsed again.
    pub(crate) mask_misread: Option<MaskTreeFn>,
    /// Finds code that the grammar does not parse, such as `<script>` in HTML.
    pub(crate) embedded: Option<EmbeddedFn>,
    /// Finds the zone of a leaf where the grammar has no node for it.
    pub(crate) zone: Option<ZoneFn>,
}

impl Grammar {
    /// Returns the parser's language. Returns `None` if it is not built in.
    pub(crate) fn language(&self) -> Option<tree_sitter::Language> {
        codescout_grammars::language(self.name).map(Into::into)
    }

    /// Creates a grammar with `rules` and default values.
    pub(crate) const fn new(name: &'static str, rules: &'static [&'static [Rule]]) -> Self {
        Self {
            name,
            rules,
            is_test: never_a_test,
            inner_docs: &[],
            is_too_much: never_too_much,
            has_overloads: false,
            mask: None,
            mask_after_errors: None,
            mask_misread: None,
            embedded: None,
            zone: None,
        }
    }

    /// Marks a language with overloads.
    pub(crate) const fn overloads(mut self) -> Self {
        self.has_overloads = true;
        self
    }

    /// Sets the function that selects texts not to parse.
    pub(crate) const fn unless(mut self, is_too_much: fn(&[u8]) -> bool) -> Self {
        self.is_too_much = is_too_much;
        self
    }

    /// Sets the function that recognises tests.
    pub(crate) const fn tests(mut self, is_test: fn(&TestProbe<'_>) -> bool) -> Self {
        self.is_test = is_test;
        self
    }

    /// Sets the prefixes of comments that are not attached to the next definition.
    pub(crate) const fn inner_docs(mut self, starts: &'static [&'static str]) -> Self {
        self.inner_docs = starts;
        self
    }

    /// Sets the function that replaces syntax in all texts.
    pub(crate) const fn masks(mut self, mask: MaskFn) -> Self {
        self.mask = Some(mask);
        self
    }

    /// Sets the function that replaces syntax in texts with syntax errors.
    pub(crate) const fn masks_after_errors(mut self, mask: MaskFn) -> Self {
        self.mask_after_errors = Some(mask);
        self
    }

    /// Sets the function that replaces what the parser took for something else.
    pub(crate) const fn masks_misread(mut self, mask: MaskTreeFn) -> Self {
        self.mask_misread = Some(mask);
        self
    }

    /// Sets the function that finds the zone of a leaf.
    pub(crate) const fn zones(mut self, zone: ZoneFn) -> Self {
        self.zone = Some(zone);
        self
    }

    /// Sets the function that finds embedded code.
    pub(crate) const fn embeds(mut self, embedded: EmbeddedFn) -> Self {
        self.embedded = Some(embedded);
        self
    }
}

fn never_too_much(_: &[u8]) -> bool {
    false
}

fn never_a_test(_: &TestProbe<'_>) -> bool {
    false
}

/// Returns a copy of a text in which some syntax is replaced, usually by spaces. Returns `None` if the text has no such
/// syntax. The copy has the same length and lines, and only the parser reads it: names and
/// signatures come from the original.
pub(crate) type MaskFn = fn(&[u8]) -> Option<Vec<u8>>;

/// Like [`MaskFn`], for a text and its tree.
pub(crate) type MaskTreeFn = fn(&Tree, &[u8]) -> Option<Vec<u8>>;

/// Finds the embedded code in `node`. Returns its range and the name of its language.
pub(crate) type EmbeddedFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<(ByteRange, &'static str)>;

/// Finds the zone of a leaf, given its parent and the text.
pub(crate) type ZoneFn = fn(Node<'_>, Node<'_>, &[u8]) -> Option<Zone>;

/// The properties of a function that determine if it is a test.
pub(crate) struct TestProbe<'a> {
    /// The name without a qualifier.
    pub(crate) name: &'a str,
    /// The source text of the attributes, annotations or decorators. May include comments.
    pub(crate) attributes: &'a str,
    /// The source text from the first token to the body.
    pub(crate) signature: &'a str,
    /// The name of the enclosing definition; empty at file level.
    pub(crate) container: &'a str,
}

impl TestProbe<'_> {
    /// Returns true if the last path segment of an attribute is `name`: `test` in `#[tokio::test]`, `Test` in
    /// `@org.junit.Test`.
    pub(crate) fn has_attribute(&self, name: &str) -> bool {
        self.attributes.match_indices(name).any(|(at, _)| {
            let before = self.attributes[..at].chars().next_back();
            let after = self.attributes[at + name.len()..].chars().next();
            before.is_some_and(|c| "@[:.\\<".contains(c)) && after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    }
}

/// Node kinds and the role that all of them have.
pub(crate) struct Rule {
    pub(crate) kinds: &'static [&'static str],
    pub(crate) role: Role,
}

/// The meaning of a node.
pub(crate) enum Role {
    /// The node is a definition.
    Define(Define),
    /// The node wraps a definition and counts as part of it: `export`, decorators, `template <…>`.
    Wrap(SignatureFrom),
    /// The node is a comment. A comment directly above a definition documents it.
    Comment,
    /// The node may precede a definition and belong to it.
    Lead(LeadFn),
    /// The node is an annotation inside a definition, before its first token.
    Annotation,
    /// The node is a group of modifiers, which may begin with annotations.
    Modifiers,
    /// The node is a call.
    Call(Callee),
    /// The node may import another module.
    Import(ImportFn),
    /// The node is a leaf that contains a name.
    Leaf(Leaf),
    /// The node is a qualified name.
    Path(Path),
    /// Names inside the node get this reference kind.
    Zone(Zone),
    /// Names inside this field of the node get this reference kind.
    FieldZone(&'static str, Zone),
    /// The node wraps the name of a callee, for example `f` in `f::<T>`. The name is in this field, or in the first
    /// named child if the field name is empty.
    Through(&'static str),
    /// The node is an expression around another one: `await x`, `x[0]`, `(x)`.
    Step(Around),
    /// The node is a literal.
    Literal(Literal),
    /// The node is a type of this form.
    Shape(Shape),
    /// Names that are bound inside the node are not visible outside of it.
    Scope,
    /// The node binds names.
    Bind(Bind),
    /// A function finds the names that the node binds.
    BindBy(BindFn),
    /// The walk does not visit the children of the node.
    Opaque,
    /// A function collects the names that the node mentions.
    Mention(MentionFn),
    /// The node may contain embedded code in another language.
    Embedded,
}

/// Returns the kind of a node that precedes a definition and belongs to it, or `None` for other nodes.
pub(crate) type LeadFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<Lead>;
/// Adds the imports of `node`. Returns false if it is not an import.
pub(crate) type ImportFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Import>) -> bool;
/// Adds the names that `node` mentions.
pub(crate) type MentionFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Mention>);
/// Adds the names that `node` binds.
pub(crate) type BindFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Bound<'t>>);
/// Adds the names that `node` defines.
pub(crate) type NamesFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Named>);
/// Finds a part of `node`, such as the body of a definition.
pub(crate) type PartFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<ByteRange>;

/// Counts the parameters of `node`.
pub(crate) type ArityFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<Arity>;

/// The kind of a node that precedes a definition and belongs to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Documentation. The range is its text.
    Doc(ByteRange),
    /// An attribute or similar annotation.
    Attribute,
}

/// The start of a wrapped definition's signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureFrom {
    /// At the start of the wrapper, as in `export function f`.
    Wrapper,
    /// At the start of the definition, for example after decorators.
    Definition,
}

/// The kind of name that a leaf contains. A surrounding [`Zone`] can override it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// The name of a type.
    Type,
    /// The name of a variable or constant.
    Name,
    /// A segment of a path or a member.
    Segment,
    /// The object that a method belongs to: `this`, `self`.
    This,
    /// A whole path in one leaf, with segments separated by dots.
    Dotted,
}

/// The reference kind of the names inside a part of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Zone {
    /// The kind determined by the leaf.
    Plain,
    /// The given kind.
    As(ReferenceKind),
    /// The given kind, unless an enclosing zone sets another.
    Else(ReferenceKind),
    /// Names inside refer to nothing, such as the name of an argument.
    Label,
}

/// The parts of a definition and the settings for reading it.
pub(crate) struct Define {
    pub(crate) kind: DefinitionKind,
    pub(crate) name: Name,
    pub(crate) body: Body,
    pub(crate) doc: Option<PartFn>,
    /// True if the definition is recorded even inside functions.
    pub(crate) includes_locals: bool,
    /// True if adjacent nodes with the same name and number of parameters are clauses of one definition, as in Haskell
    /// and Elixir.
    pub(crate) is_clause: bool,
    /// Counts the parameters.
    pub(crate) arity: Option<ArityFn>,
}

/// The location of the name of a definition.
pub(crate) enum Name {
    /// In this field of the node.
    Field(&'static str),
    /// In the first child whose kind is in the list.
    Child(&'static [&'static str]),
    /// Wherever the function finds it. The function may also set the kind or a qualifier, and return several names or
    /// none.
    By(NamesFn),
}

/// The location of a definition's body. The signature ends before the body.
pub(crate) enum Body {
    /// In the first existing field of the list.
    Fields(&'static [&'static str]),
    /// In the first child whose kind is in the list.
    Child(&'static [&'static str]),
    /// In the range that the function returns.
    By(PartFn),
}

/// A name that a node defines.
pub(crate) struct Named {
    pub(crate) range: ByteRange,
    /// The kind of the definition; `None` for the kind in the rule.
    pub(crate) kind: Option<DefinitionKind>,
    /// The name of the container, if the container does not enclose the definition.
    pub(crate) qualifier: Option<ByteRange>,
}

impl Named {
    /// Creates a name that consists of `node` and has the kind in the rule.
    pub(crate) fn at(node: Node<'_>) -> Self {
        Self {
            range: range_of(node),
            kind: None,
            qualifier: None,
        }
    }

    /// Sets the kind.
    pub(crate) fn of(mut self, kind: DefinitionKind) -> Self {
        self.kind = Some(kind);
        self
    }
}

/// A name mentioned in the source, and the kind of the mention.
#[derive(Clone)]
pub(crate) struct Mention {
    pub(crate) kind: ReferenceKind,
    pub(crate) range: ByteRange,
    /// The qualifier; empty if the name has none.
    pub(crate) qualifier: ByteRange,
    pub(crate) receiver: Value,
    pub(crate) n_arguments: Option<u8>,
    pub(crate) arguments: Vec<Value>,
}

impl Mention {
    /// Creates a mention whose receiver is the name in `qualifier`, which may be empty.
    pub(crate) fn new(kind: ReferenceKind, range: ByteRange, qualifier: ByteRange) -> Self {
        let receiver = if qualifier.is_empty() {
            Value::None
        } else {
            Value::Of {
                at: qualifier.start,
                steps: Steps::default(),
            }
        };
        Self {
            kind,
            range,
            qualifier,
            receiver,
            n_arguments: None,
            arguments: Vec::new(),
        }
    }
}

/// An expression around another one.
pub(crate) struct Around {
    /// The field of the inner expression, or an empty string if it is the first named child.
    pub(crate) field: &'static str,
    /// What the expression does with the inner one; `None` if it is the same value.
    pub(crate) step: Option<Step>,
}

/// The fields of a node that binds names. A part that the node never has is an empty string.
pub(crate) struct Bind {
    pub(crate) kind: BindingKind,
    /// The name or a pattern that contains the names.
    pub(crate) name: &'static str,
    pub(crate) declared: &'static str,
    pub(crate) value: &'static str,
    /// What is done with the value before it is bound.
    pub(crate) step: Option<Step>,
}

/// A name, or a pattern of several names, that a node binds.
pub(crate) struct Bound<'t> {
    pub(crate) kind: BindingKind,
    pub(crate) name: Node<'t>,
    pub(crate) declared: Option<Node<'t>>,
    pub(crate) value: Option<Node<'t>>,
    pub(crate) step: Option<Step>,
    /// True if names that begin with a capital letter are constants, which the pattern compares with.
    pub(crate) has_constants: bool,
    /// The byte from which the names are visible, if not in their whole scope.
    pub(crate) from: u32,
    /// Where the names are visible, if not in the scope of the node.
    pub(crate) scope: Option<ByteRange>,
}

impl<'t> Bound<'t> {
    /// Creates a binding without type and value.
    pub(crate) fn new(kind: BindingKind, name: Node<'t>) -> Self {
        Self {
            kind,
            name,
            declared: None,
            value: None,
            step: None,
            has_constants: false,
            from: 0,
            scope: None,
        }
    }

    /// Makes the names visible after `node` only: the value of a declaration does not see them.
    pub(crate) fn after(mut self, node: Node<'t>) -> Self {
        self.from = range_of(node).end;
        self
    }

    /// Binds no names that begin with a capital letter.
    pub(crate) fn with_constants(mut self) -> Self {
        self.has_constants = true;
        self
    }

    /// Sets the value.
    pub(crate) fn to(mut self, value: Option<Node<'t>>) -> Self {
        self.value = value;
        self
    }

    /// Sets the declared type.
    pub(crate) fn of(mut self, declared: Option<Node<'t>>) -> Self {
        self.declared = declared;
        self
    }

    /// Sets the step that is done with the value.
    pub(crate) fn by(mut self, step: Step) -> Self {
        self.step = Some(step);
        self
    }
}

/// The fields of a call node that contain the callee.
pub(crate) struct Callee {
    /// The field of the callee, or an empty string if the callee is the first named child.
    pub(crate) field: &'static str,
    /// The field of the receiver, or an empty string if the receiver is part of the callee.
    pub(crate) receiver: &'static str,
    pub(crate) kind: ReferenceKind,
}

/// The fields of a qualified name. Both are empty strings if the segments are the named children of the node.
pub(crate) struct Path {
    pub(crate) qualifier: &'static str,
    pub(crate) name: &'static str,
}

/// Returns the byte range of a node.
pub(crate) fn range_of(node: Node<'_>) -> ByteRange {
    ByteRange::new(node.start_byte() as u32, node.end_byte() as u32)
}

/// Creates a rule.
pub(crate) const fn on(kinds: &'static [&'static str], role: Role) -> Rule {
    Rule { kinds, role }
}

/// Creates a definition whose name is in the field `name` and whose body is in the field `body`. It is recorded even
/// inside functions.
pub(crate) const fn define(kind: DefinitionKind) -> Define {
    Define {
        kind,
        name: Name::Field("name"),
        body: Body::Fields(&["body"]),
        doc: None,
        includes_locals: true,
        is_clause: false,
        arity: None,
    }
}

impl Define {
    /// Sets the field that contains the name.
    pub(crate) const fn name_field(mut self, field: &'static str) -> Self {
        self.name = Name::Field(field);
        self
    }

    /// Sets the kinds of the child that is the name.
    pub(crate) const fn name_child(mut self, kinds: &'static [&'static str]) -> Self {
        self.name = Name::Child(kinds);
        self
    }

    /// Sets the function that finds the names.
    pub(crate) const fn name_by(mut self, find: NamesFn) -> Self {
        self.name = Name::By(find);
        self
    }

    /// Sets the fields that may contain the body, in order of preference.
    pub(crate) const fn body_fields(mut self, fields: &'static [&'static str]) -> Self {
        self.body = Body::Fields(fields);
        self
    }

    /// Sets the kinds of the child that is the body.
    pub(crate) const fn body_child(mut self, kinds: &'static [&'static str]) -> Self {
        self.body = Body::Child(kinds);
        self
    }

    /// Sets the function that finds the body.
    pub(crate) const fn body_by(mut self, find: PartFn) -> Self {
        self.body = Body::By(find);
        self
    }

    /// Sets the function that finds documentation inside the definition.
    pub(crate) const fn doc_by(mut self, find: PartFn) -> Self {
        self.doc = Some(find);
        self
    }

    /// Excludes definitions inside functions, which are local variables.
    pub(crate) const fn not_local(mut self) -> Self {
        self.includes_locals = false;
        self
    }

    /// Marks the definition as one of several clauses.
    pub(crate) const fn clause(mut self) -> Self {
        self.is_clause = true;
        self
    }

    /// Sets the function that counts the parameters.
    pub(crate) const fn arity_by(mut self, count: ArityFn) -> Self {
        self.arity = Some(count);
        self
    }

    /// Converts the definition to a role.
    pub(crate) const fn role(self) -> Role {
        Role::Define(self)
    }
}

/// Creates the role of a call whose callee is in `field`.
pub(crate) const fn call(field: &'static str) -> Role {
    Role::Call(Callee {
        field,
        receiver: "",
        kind: ReferenceKind::Call,
    })
}

/// Creates the role of a method call. The method is in `field`, the receiver in `receiver`.
pub(crate) const fn method_call(field: &'static str, receiver: &'static str) -> Role {
    Role::Call(Callee {
        field,
        receiver,
        kind: ReferenceKind::Call,
    })
}

/// Creates the role of a macro call whose macro is in `field`.
pub(crate) const fn macro_call(field: &'static str) -> Role {
    Role::Call(Callee {
        field,
        receiver: "",
        kind: ReferenceKind::Macro,
    })
}

/// Creates the role of a qualified name whose parts are in fields.
pub(crate) const fn path(qualifier: &'static str, name: &'static str) -> Role {
    Role::Path(Path { qualifier, name })
}

/// Creates the role of a qualified name whose segments are its named children.
pub(crate) const fn flat_path() -> Role {
    Role::Path(Path {
        qualifier: "",
        name: "",
    })
}

/// Creates the role of an expression that has the same value as the one in `field`, or in the first named child if
/// `field` is empty.
pub(crate) const fn same(field: &'static str) -> Role {
    Role::Step(Around { field, step: None })
}

/// Creates the role of an expression that does something with the one in `field`, or in the first named child if
/// `field` is empty.
pub(crate) const fn step(field: &'static str, step: Step) -> Role {
    Role::Step(Around {
        field,
        step: Some(step),
    })
}

/// Creates the role of a node that binds the names in the field `name`.
pub(crate) const fn bind(kind: BindingKind, name: &'static str, declared: &'static str, value: &'static str) -> Role {
    Role::Bind(Bind {
        kind,
        name,
        declared,
        value,
        step: None,
    })
}

/// Like [`bind`], for names that are bound to what `step` makes of the value.
pub(crate) const fn bind_by(kind: BindingKind, name: &'static str, value: &'static str, step: Step) -> Role {
    Role::Bind(Bind {
        kind,
        name,
        declared: "",
        value,
        step: Some(step),
    })
}

/// Creates the role of a node that always belongs to the definition after it.
pub(crate) const fn attribute() -> Role {
    Role::Lead(always_attribute)
}

fn always_attribute<'t>(_: &Cx<'_, 't>, _: Node<'t>) -> Option<Lead> {
    Some(Lead::Attribute)
}

/// The rules of a grammar, indexed by the ids of node kinds.
pub(crate) struct Tables {
    pub(crate) language: tree_sitter::Language,
    pub(crate) grammar: &'static Grammar,
    /// For each kind id, an index into `roles`. Kinds without a role have index 0.
    by_kind: Vec<u16>,
    roles: Vec<Roles>,
    /// The field of the arguments of a call, or 0.
    pub(crate) arguments: u16,
}

/// All roles of a node kind.
#[derive(Default)]
pub(crate) struct Roles {
    pub(crate) define: Option<(&'static Define, u16)>,
    pub(crate) wrap: Option<SignatureFrom>,
    pub(crate) is_comment: bool,
    pub(crate) lead: Option<LeadFn>,
    pub(crate) is_annotation: bool,
    pub(crate) is_modifiers: bool,
    pub(crate) call: Option<CompiledCall>,
    pub(crate) import: Option<ImportFn>,
    pub(crate) leaf: Option<Leaf>,
    pub(crate) path: Option<CompiledPath>,
    pub(crate) zone: Option<Zone>,
    pub(crate) field_zones: Vec<(u16, Zone)>,
    pub(crate) through: Option<u16>,
    pub(crate) step: Option<(u16, Option<Step>)>,
    pub(crate) literal: Option<Literal>,
    pub(crate) shape: Option<Shape>,
    pub(crate) is_scope: bool,
    pub(crate) binds: Vec<CompiledBind>,
    pub(crate) bind_by: Option<BindFn>,
    pub(crate) is_opaque: bool,
    pub(crate) mention: Option<MentionFn>,
    pub(crate) is_embedded: bool,
}

/// A [`Bind`] with field ids instead of names.
#[derive(Clone, Copy)]
pub(crate) struct CompiledBind {
    pub(crate) kind: BindingKind,
    pub(crate) name: u16,
    pub(crate) declared: u16,
    pub(crate) value: u16,
    pub(crate) step: Option<Step>,
}

/// A [`Callee`] with field ids instead of names.
#[derive(Clone, Copy)]
pub(crate) struct CompiledCall {
    pub(crate) field: u16,
    /// The field of the receiver, or 0 if the call has none.
    pub(crate) receiver: u16,
    pub(crate) kind: ReferenceKind,
}

/// A [`Path`] with field ids instead of names.
#[derive(Clone, Copy)]
pub(crate) struct CompiledPath {
    /// The field of the qualifier. In a flat path, both fields are 0.
    pub(crate) qualifier: u16,
    pub(crate) name: u16,
}

impl Tables {
    /// Converts the names in the rules to ids. Ignores names that the grammar does not contain; a test checks that
    /// there are none.
    pub(crate) fn compile(grammar: &'static Grammar, language: tree_sitter::Language) -> Self {
        let ids = kind_ids(&language);
        let mut by_kind = vec![0; language.node_kind_count() + 1];
        let mut roles = vec![Roles::default()];
        for rule in grammar.rules.iter().copied().flatten() {
            for kind in rule.kinds {
                for &id in ids.get(kind).map(Vec::as_slice).unwrap_or_default() {
                    let slot = &mut by_kind[usize::from(id)];
                    if *slot == 0 {
                        *slot = roles.len() as u16;
                        roles.push(Roles::default());
                    }
                    roles[usize::from(*slot)].add(&rule.role, &language);
                }
            }
        }
        drop(ids);
        let arguments = language.field_id_for_name("arguments");
        Self {
            arguments: arguments.map_or(0, std::num::NonZero::get),
            language,
            grammar,
            by_kind,
            roles,
        }
    }

    /// Returns the index of the roles of a kind, or 0 for a kind without a role.
    pub(crate) fn slot(&self, kind_id: u16) -> u16 {
        self.by_kind.get(usize::from(kind_id)).copied().unwrap_or(0)
    }

    /// Returns the roles at index `slot`.
    pub(crate) fn roles(&self, slot: u16) -> &Roles {
        &self.roles[usize::from(slot)]
    }

    /// Returns the roles of a node's kind.
    pub(crate) fn roles_of(&self, node: Node<'_>) -> &Roles {
        self.roles(self.slot(node.kind_id()))
    }
}

/// Returns the ids of all named, visible node kinds. Several ids may have the same name.
fn kind_ids(language: &tree_sitter::Language) -> HashMap<&str, Vec<u16>> {
    let mut ids: HashMap<&str, Vec<u16>> = HashMap::new();
    for id in 0..language.node_kind_count() as u16 {
        if !language.node_kind_is_named(id) || !language.node_kind_is_visible(id) {
            continue;
        }
        if let Some(kind) = language.node_kind_for_id(id) {
            ids.entry(kind).or_default().push(id);
        }
    }
    ids
}

impl Roles {
    fn add(&mut self, role: &'static Role, language: &tree_sitter::Language) {
        // An empty field name would match any field.
        let field = |name: &str| match name {
            "" => 0,
            _ => language.field_id_for_name(name).map_or(0, std::num::NonZero::get),
        };
        match role {
            Role::Define(define) => {
                let name_field = match define.name {
                    Name::Field(name) => field(name),
                    _ => 0,
                };
                self.define = Some((define, name_field));
            }
            Role::Wrap(from) => self.wrap = Some(*from),
            Role::Comment => self.is_comment = true,
            Role::Lead(lead) => self.lead = Some(*lead),
            Role::Annotation => self.is_annotation = true,
            Role::Modifiers => self.is_modifiers = true,
            Role::Call(callee) => {
                self.call = Some(CompiledCall {
                    field: field(callee.field),
                    receiver: field(callee.receiver),
                    kind: callee.kind,
                });
            }
            Role::Import(import) => self.import = Some(*import),
            Role::Leaf(leaf) => self.leaf = Some(*leaf),
            Role::Path(path) => {
                self.path = Some(CompiledPath {
                    qualifier: field(path.qualifier),
                    name: field(path.name),
                });
            }
            Role::Zone(zone) => self.zone = Some(*zone),
            Role::FieldZone(name, zone) => self.field_zones.push((field(name), *zone)),
            Role::Through(name) => self.through = Some(field(name)),
            Role::Step(around) => self.step = Some((field(around.field), around.step)),
            Role::Literal(literal) => self.literal = Some(*literal),
            Role::Shape(shape) => self.shape = Some(*shape),
            Role::Scope => self.is_scope = true,
            Role::Bind(bind) => self.binds.push(CompiledBind {
                kind: bind.kind,
                name: field(bind.name),
                declared: field(bind.declared),
                value: field(bind.value),
                step: bind.step,
            }),
            Role::BindBy(find) => self.bind_by = Some(*find),
            Role::Opaque => self.is_opaque = true,
            Role::Mention(mention) => self.mention = Some(*mention),
            Role::Embedded => self.is_embedded = true,
        }
    }
}
