//! Rules that map the node kinds of a grammar to their meaning.
//!
//! A language file lists [`Rule`]s: node kinds by name, and their [`Role`]. [`Tables::compile`] resolves the names to
//! the grammar's ids once; the walk then looks up each node by its kind id.

use std::collections::HashMap;

use tree_sitter::Node;

use super::types::{DefinitionKind, Import, ReferenceKind};
use super::walk::Cx;
use crate::model::ByteRange;

/// A grammar and the rules for reading its trees.
pub(crate) struct Grammar {
    /// The tables of the parser.
    pub(crate) language: fn() -> tree_sitter::Language,
    /// The rules. A kind may have several roles. They are several lists because languages share some of them.
    pub(crate) rules: &'static [&'static [Rule]],
    /// Returns whether a callable definition is a test case.
    pub(crate) is_test: fn(&TestProbe<'_>) -> bool,
    /// Prefixes of comments that belong to the enclosing definition instead of the following one (`//!`).
    pub(crate) inner_docs: &'static [&'static str],
    /// Returns whether a text would make the grammar's C scanner abort the process.
    pub(crate) is_too_much: fn(&[u8]) -> bool,
    /// Finds parts of a file in other languages (`<script>` in HTML).
    pub(crate) embedded: Option<EmbeddedFn>,
}

impl Grammar {
    /// Creates a grammar with `rules` and defaults for everything else.
    pub(crate) const fn new(language: fn() -> tree_sitter::Language, rules: &'static [&'static [Rule]]) -> Self {
        Self {
            language,
            rules,
            is_test: never_a_test,
            inner_docs: &[],
            is_too_much: never_too_much,
            embedded: None,
        }
    }

    /// Leaves texts unparsed for which `is_too_much` returns true.
    pub(crate) const fn unless(mut self, is_too_much: fn(&[u8]) -> bool) -> Self {
        self.is_too_much = is_too_much;
        self
    }

    /// Recognises tests with `is_test`.
    pub(crate) const fn tests(mut self, is_test: fn(&TestProbe<'_>) -> bool) -> Self {
        self.is_test = is_test;
        self
    }

    /// Does not attach comments that start with one of `starts` to the following definition.
    pub(crate) const fn inner_docs(mut self, starts: &'static [&'static str]) -> Self {
        self.inner_docs = starts;
        self
    }

    /// Reads parts in other languages, found by `embedded`.
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

/// Finds the part of `node` that is in another language, with the name of that language.
pub(crate) type EmbeddedFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<(ByteRange, &'static str)>;

/// The properties of a callable that decide whether it is a test.
pub(crate) struct TestProbe<'a> {
    /// The bare name.
    pub(crate) name: &'a str,
    /// The attributes, annotations or decorators as written; may include comments.
    pub(crate) attributes: &'a str,
    /// From the first token to the body.
    pub(crate) signature: &'a str,
    /// The name of the enclosing definition; empty at file level.
    pub(crate) container: &'a str,
}

impl TestProbe<'_> {
    /// Returns whether one of the attributes has `name` as its last path segment: `#[tokio::test]`, `@org.junit.Test`.
    pub(crate) fn has_attribute(&self, name: &str) -> bool {
        self.attributes.match_indices(name).any(|(at, _)| {
            let before = self.attributes[..at].chars().next_back();
            let after = self.attributes[at + name.len()..].chars().next();
            before.is_some_and(|c| "@[:.\\<".contains(c)) && after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    }
}

/// A set of node kinds and their role.
pub(crate) struct Rule {
    pub(crate) kinds: &'static [&'static str],
    pub(crate) role: Role,
}

/// The meaning of a node.
pub(crate) enum Role {
    /// A definition.
    Define(Define),
    /// Wraps one definition and belongs to it: `export`, decorators, `template <…>`.
    Wrap(SignatureFrom),
    /// A comment. Directly above a definition it is its doc comment.
    Comment,
    /// A node that may precede a definition and belong to it.
    Lead(LeadFn),
    /// An annotation inside a definition, before its first token.
    Annotation,
    /// A group of modifiers that may begin with annotations.
    Modifiers,
    /// A call.
    Call(Callee),
    /// An import of another module.
    Import(ImportFn),
    /// A leaf that is a name.
    Leaf(Leaf),
    /// A qualified name.
    Path(Path),
    /// Sets the reference kind of the names inside.
    Zone(Zone),
    /// Sets the reference kind of the names in this field.
    FieldZone(&'static str, Zone),
    /// Contains the actual callee in this field (`f` of `f::<T>`), or in its first named child if the field name is
    /// empty.
    Through(&'static str),
    /// Nothing inside is visited.
    Opaque,
    /// Mentions names in an irregular way.
    Mention(MentionFn),
    /// May be in another language.
    Embedded,
}

/// Classifies a node that may precede a definition and belong to it.
pub(crate) type LeadFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<Lead>;
/// Adds the imports of `node`. Returns false if it is not an import.
pub(crate) type ImportFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Import>) -> bool;
/// Adds the names that `node` mentions.
pub(crate) type MentionFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Mention>);
/// Adds the names that `node` defines.
pub(crate) type NamesFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Named>);
/// Finds a part of `node`.
pub(crate) type PartFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<ByteRange>;

/// The meaning of a node that precedes a definition and belongs to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Documentation, in this range.
    Doc(ByteRange),
    /// An attribute.
    Attribute,
}

/// The start of the signature of a wrapped definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureFrom {
    /// At the wrapper (`export function f`).
    Wrapper,
    /// At the definition (decorators precede it).
    Definition,
}

/// The meaning of a leaf outside every zone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// A type.
    Type,
    /// A variable or constant. Kept only if it is capitalised.
    Name,
    /// A segment of a path. Kept only if it is capitalised.
    Segment,
    /// A whole path in one leaf, with its segments separated by dots.
    Dotted,
}

/// The reference kind of names in a part of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Zone {
    /// The kind that the leaf has by default.
    Plain,
    /// This kind.
    As(ReferenceKind),
    /// This kind, unless an enclosing zone sets another.
    Else(ReferenceKind),
}

/// Describes how to read a definition.
pub(crate) struct Define {
    pub(crate) kind: DefinitionKind,
    pub(crate) name: Name,
    pub(crate) body: Body,
    pub(crate) doc: Option<PartFn>,
    /// True if definitions inside functions are recorded too.
    pub(crate) includes_locals: bool,
    /// True if adjacent nodes with the same name are clauses of one definition (Haskell, Elixir).
    pub(crate) is_clause: bool,
}

/// The location of a definition's name.
pub(crate) enum Name {
    /// In this field.
    Field(&'static str),
    /// In the first child of one of these kinds.
    Child(&'static [&'static str]),
    /// Found by a function. It may also return several names, another kind or a qualifier, or nothing if the node
    /// defines nothing.
    By(NamesFn),
}

/// The location of a definition's body, where its signature ends.
pub(crate) enum Body {
    /// At the first of these fields that is present.
    Fields(&'static [&'static str]),
    /// At the first child of one of these kinds.
    Child(&'static [&'static str]),
    /// At the start of the range that this function finds.
    By(PartFn),
}

/// A name that a node defines.
pub(crate) struct Named {
    pub(crate) range: ByteRange,
    /// The kind, if it differs from the rule's.
    pub(crate) kind: Option<DefinitionKind>,
    /// The container's name, if the container does not enclose the definition.
    pub(crate) qualifier: Option<ByteRange>,
}

impl Named {
    /// Creates a name at `node`, with the kind of the rule.
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

/// A mention of a name, found by a [`MentionFn`] or the walk.
#[derive(Clone, Copy)]
pub(crate) struct Mention {
    pub(crate) kind: ReferenceKind,
    pub(crate) range: ByteRange,
    /// Empty if there is none.
    pub(crate) qualifier: ByteRange,
}

/// The fields of a call node.
pub(crate) struct Callee {
    /// The callee; the first named child if empty.
    pub(crate) field: &'static str,
    /// The receiver, if it is in a field of the call itself; otherwise empty.
    pub(crate) receiver: &'static str,
    pub(crate) kind: ReferenceKind,
}

/// The fields of a qualified name. Both are empty if its named children are the segments.
pub(crate) struct Path {
    pub(crate) qualifier: &'static str,
    pub(crate) name: &'static str,
}

/// Returns the byte range of a node.
pub(crate) fn range_of(node: Node<'_>) -> ByteRange {
    ByteRange::new(node.start_byte() as u32, node.end_byte() as u32)
}

/// Creates a rule that gives `kinds` the role `role`.
pub(crate) const fn on(kinds: &'static [&'static str], role: Role) -> Rule {
    Rule { kinds, role }
}

/// Creates a definition with its name in the field `name` and its body in the field `body`. It is also recorded inside
/// functions.
pub(crate) const fn define(kind: DefinitionKind) -> Define {
    Define {
        kind,
        name: Name::Field("name"),
        body: Body::Fields(&["body"]),
        doc: None,
        includes_locals: true,
        is_clause: false,
    }
}

impl Define {
    /// Finds the name in the field `field`.
    pub(crate) const fn name_field(mut self, field: &'static str) -> Self {
        self.name = Name::Field(field);
        self
    }

    /// Finds the name in the first child of one of these kinds.
    pub(crate) const fn name_child(mut self, kinds: &'static [&'static str]) -> Self {
        self.name = Name::Child(kinds);
        self
    }

    /// Finds the names with a function.
    pub(crate) const fn name_by(mut self, find: NamesFn) -> Self {
        self.name = Name::By(find);
        self
    }

    /// Finds the body in the first of these fields that is present.
    pub(crate) const fn body_fields(mut self, fields: &'static [&'static str]) -> Self {
        self.body = Body::Fields(fields);
        self
    }

    /// Finds the body in the first child of one of these kinds.
    pub(crate) const fn body_child(mut self, kinds: &'static [&'static str]) -> Self {
        self.body = Body::Child(kinds);
        self
    }

    /// Finds the body with a function.
    pub(crate) const fn body_by(mut self, find: PartFn) -> Self {
        self.body = Body::By(find);
        self
    }

    /// Finds documentation inside the definition with a function.
    pub(crate) const fn doc_by(mut self, find: PartFn) -> Self {
        self.doc = Some(find);
        self
    }

    /// Omits the definition inside functions: local variables are not definitions.
    pub(crate) const fn not_local(mut self) -> Self {
        self.includes_locals = false;
        self
    }

    /// Makes the definition one of several clauses.
    pub(crate) const fn clause(mut self) -> Self {
        self.is_clause = true;
        self
    }

    /// Converts the definition to a role.
    pub(crate) const fn role(self) -> Role {
        Role::Define(self)
    }
}

/// Creates a call whose callee is in `field`.
pub(crate) const fn call(field: &'static str) -> Role {
    Role::Call(Callee {
        field,
        receiver: "",
        kind: ReferenceKind::Call,
    })
}

/// Creates a call of the method in `field` on the receiver in `receiver`.
pub(crate) const fn method_call(field: &'static str, receiver: &'static str) -> Role {
    Role::Call(Callee {
        field,
        receiver,
        kind: ReferenceKind::Call,
    })
}

/// Creates a use of the macro in `field`.
pub(crate) const fn macro_call(field: &'static str) -> Role {
    Role::Call(Callee {
        field,
        receiver: "",
        kind: ReferenceKind::Macro,
    })
}

/// Creates a qualified name with its parts in fields.
pub(crate) const fn path(qualifier: &'static str, name: &'static str) -> Role {
    Role::Path(Path { qualifier, name })
}

/// Creates a qualified name whose named children are the segments.
pub(crate) const fn flat_path() -> Role {
    Role::Path(Path {
        qualifier: "",
        name: "",
    })
}

/// Creates a role for nodes that precede a definition and always belong to it.
pub(crate) const fn attribute() -> Role {
    Role::Lead(always_attribute)
}

fn always_attribute<'t>(_: &Cx<'_, 't>, _: Node<'t>) -> Option<Lead> {
    Some(Lead::Attribute)
}

/// The rules of one grammar, indexed by node kind id.
pub(crate) struct Tables {
    pub(crate) language: tree_sitter::Language,
    pub(crate) grammar: &'static Grammar,
    /// Index into `roles` by kind id; 0 for kinds without a role.
    by_kind: Vec<u16>,
    roles: Vec<Roles>,
}

/// All roles of one node kind.
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
    pub(crate) is_opaque: bool,
    pub(crate) mention: Option<MentionFn>,
    pub(crate) is_embedded: bool,
}

/// [`Callee`] with field ids.
#[derive(Clone, Copy)]
pub(crate) struct CompiledCall {
    pub(crate) field: u16,
    /// 0 for none.
    pub(crate) receiver: u16,
    pub(crate) kind: ReferenceKind,
}

/// [`Path`] with field ids.
#[derive(Clone, Copy)]
pub(crate) struct CompiledPath {
    /// 0 for a flat path; `name` is then also 0.
    pub(crate) qualifier: u16,
    pub(crate) name: u16,
}

impl Tables {
    /// Resolves the names in the rules to ids. Names unknown to the grammar are ignored; a test checks that there are
    /// none.
    pub(crate) fn compile(grammar: &'static Grammar) -> Self {
        let language = (grammar.language)();
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
        Self {
            language,
            grammar,
            by_kind,
            roles,
        }
    }

    /// Returns the index of a kind's roles, or 0 for a kind without a role.
    pub(crate) fn slot(&self, kind_id: u16) -> u16 {
        self.by_kind.get(usize::from(kind_id)).copied().unwrap_or(0)
    }

    /// Returns the roles at `slot`.
    pub(crate) fn roles(&self, slot: u16) -> &Roles {
        &self.roles[usize::from(slot)]
    }

    /// Returns the roles of a node's kind.
    pub(crate) fn roles_of(&self, node: Node<'_>) -> &Roles {
        self.roles(self.slot(node.kind_id()))
    }
}

/// Returns the ids of every named, visible node kind by name.
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
            Role::Opaque => self.is_opaque = true,
            Role::Mention(mention) => self.mention = Some(*mention),
            Role::Embedded => self.is_embedded = true,
        }
    }
}
