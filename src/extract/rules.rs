//! The form in which a language says what its syntax nodes mean.
//!
//! A language file lists [`Rule`]s: node kinds by name, and the [`Role`] they play. [`Tables::compile`] turns the names
//! into the grammar's numbers once; the walk then looks a node up by its kind id.

use std::collections::HashMap;

use tree_sitter::Node;

use super::types::{DefinitionKind, Import, ReferenceKind};
use super::walk::Cx;
use crate::model::ByteRange;

/// How a language with a grammar is read.
pub(crate) struct Grammar {
    /// The parser's tables.
    pub(crate) language: fn() -> tree_sitter::Language,
    /// What its node kinds mean; a kind may play several roles. Several lists, because languages share some.
    pub(crate) rules: &'static [&'static [Rule]],
    /// Whether a callable definition is a test case.
    pub(crate) is_test: fn(&TestProbe<'_>) -> bool,
    /// Starts of comments that belong to what encloses them, not to what follows (`//!`).
    pub(crate) inner_docs: &'static [&'static str],
    /// Whether a text would make the grammar's C scanner abort the program.
    pub(crate) is_too_much: fn(&[u8]) -> bool,
    /// Hands parts of a file to other languages (`<script>` in HTML).
    pub(crate) embedded: Option<EmbeddedFn>,
}

impl Grammar {
    /// A grammar with `rules` and nothing unusual.
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

    /// The same, left unparsed where `is_too_much` says so.
    pub(crate) const fn unless(mut self, is_too_much: fn(&[u8]) -> bool) -> Self {
        self.is_too_much = is_too_much;
        self
    }

    /// The same, with tests told apart by `is_test`.
    pub(crate) const fn tests(mut self, is_test: fn(&TestProbe<'_>) -> bool) -> Self {
        self.is_test = is_test;
        self
    }

    /// The same, with comments that start like one of `starts` left where they are.
    pub(crate) const fn inner_docs(mut self, starts: &'static [&'static str]) -> Self {
        self.inner_docs = starts;
        self
    }

    /// The same, with parts in other languages.
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

/// Finds the part of `node` that is written in another language, with that language's name.
pub(crate) type EmbeddedFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<(ByteRange, &'static str)>;

/// What is known of a callable when it is asked whether it is a test.
pub(crate) struct TestProbe<'a> {
    /// Its bare name.
    pub(crate) name: &'a str,
    /// Its attributes, annotations or decorators as written; may hold comments.
    pub(crate) attributes: &'a str,
    /// From its first token to its body.
    pub(crate) signature: &'a str,
    /// The name of the definition around it; empty at file level.
    pub(crate) container: &'a str,
}

impl TestProbe<'_> {
    /// Whether one of the attributes has `name` as its last path segment: `#[tokio::test]`, `@org.junit.Test`.
    pub(crate) fn has_attribute(&self, name: &str) -> bool {
        self.attributes.match_indices(name).any(|(at, _)| {
            let before = self.attributes[..at].chars().next_back();
            let after = self.attributes[at + name.len()..].chars().next();
            before.is_some_and(|c| "@[:.\\<".contains(c)) && after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    }
}

/// Some node kinds and the role they play.
pub(crate) struct Rule {
    pub(crate) kinds: &'static [&'static str],
    pub(crate) role: Role,
}

/// What a node means.
pub(crate) enum Role {
    /// It defines something.
    Define(Define),
    /// It stands around one definition and belongs to it: `export`, decorators, `template <…>`.
    Wrap(SignatureFrom),
    /// A comment; directly above a definition it is its doc.
    Comment,
    /// It stands before a definition and belongs to it.
    Lead(LeadFn),
    /// An annotation inside a definition, before its first token.
    Annotation,
    /// A group of modifiers that may begin with annotations.
    Modifiers,
    /// A call.
    Call(Callee),
    /// It brings in another module.
    Import(ImportFn),
    /// A leaf that names something.
    Leaf(Leaf),
    /// A qualified name.
    Path(Path),
    /// Names in it are meant in this way.
    Zone(Zone),
    /// Names in this field of it are meant in this way.
    FieldZone(&'static str, Zone),
    /// A callee in it is what stands in this field (`f` of `f::<T>`); the first named child if the name is empty.
    Through(&'static str),
    /// Nothing in it is of interest.
    Opaque,
    /// It mentions names in an irregular way.
    Mention(MentionFn),
    /// It may be written in another language.
    Embedded,
}

/// Whether a node stands before a definition and belongs to it.
pub(crate) type LeadFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<Lead>;
/// Adds what `node` imports; false if it is no import after all.
pub(crate) type ImportFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Import>) -> bool;
/// Adds what `node` mentions.
pub(crate) type MentionFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Mention>);
/// Adds the names that `node` defines.
pub(crate) type NamesFn = for<'t> fn(&Cx<'_, 't>, Node<'t>, &mut Vec<Named>);
/// Finds a part of `node`.
pub(crate) type PartFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<ByteRange>;

/// What stands before a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Its documentation, in this range.
    Doc(ByteRange),
    /// An attribute.
    Attribute,
}

/// Where the signature of a wrapped definition starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureFrom {
    /// At the wrapper (`export function f`).
    Wrapper,
    /// At the definition (decorators stand before it).
    Definition,
}

/// What a leaf means outside every zone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// A type.
    Type,
    /// A variable or constant: of interest where it is capitalised.
    Name,
    /// A part of a path; the same.
    Segment,
    /// A whole path in one leaf, its segments parted by dots.
    Dotted,
}

/// How names in a part of the tree are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Zone {
    /// As ever.
    Plain,
    /// In this way.
    As(ReferenceKind),
    /// In this way, unless what is around it says otherwise.
    Else(ReferenceKind),
}

/// How a definition is read.
pub(crate) struct Define {
    pub(crate) kind: DefinitionKind,
    pub(crate) name: Name,
    pub(crate) body: Body,
    pub(crate) doc: Option<PartFn>,
    /// Whether it counts inside a function too.
    pub(crate) counts_inside_functions: bool,
    /// Whether it is one of several clauses that make up one definition (Haskell, Elixir).
    pub(crate) is_clause: bool,
}

/// Where the name of a definition stands.
pub(crate) enum Name {
    /// In this field.
    Field(&'static str),
    /// In the first child of one of these kinds.
    Child(&'static [&'static str]),
    /// Wherever this finds it; also for several names, another kind, a qualifier, or to say that there is no definition.
    By(NamesFn),
}

/// Where the body of a definition starts, and its signature ends.
pub(crate) enum Body {
    /// At the first of these fields that is there.
    Fields(&'static [&'static str]),
    /// At the first child of one of these kinds.
    Child(&'static [&'static str]),
    /// At the start of what this finds.
    By(PartFn),
}

/// A name that a node defines.
pub(crate) struct Named {
    pub(crate) range: ByteRange,
    /// If it is another kind than the rule says.
    pub(crate) kind: Option<DefinitionKind>,
    /// The container by name, where it does not enclose the definition.
    pub(crate) qualifier: Option<ByteRange>,
}

impl Named {
    /// A name at `node`, of the rule's kind.
    pub(crate) fn at(node: Node<'_>) -> Self {
        Self {
            range: range_of(node),
            kind: None,
            qualifier: None,
        }
    }

    /// The same with another kind.
    pub(crate) fn of(mut self, kind: DefinitionKind) -> Self {
        self.kind = Some(kind);
        self
    }
}

/// A mention found by a [`MentionFn`] or the walk.
#[derive(Clone, Copy)]
pub(crate) struct Mention {
    pub(crate) kind: ReferenceKind,
    pub(crate) range: ByteRange,
    /// Empty where there is none.
    pub(crate) qualifier: ByteRange,
}

/// The fields of a call.
pub(crate) struct Callee {
    /// What is called; the first named child if empty.
    pub(crate) field: &'static str,
    /// On what, where that is a field of the call itself; empty if it is not.
    pub(crate) receiver: &'static str,
    pub(crate) kind: ReferenceKind,
}

/// The fields of a qualified name; empty names mean that its named children are the segments.
pub(crate) struct Path {
    pub(crate) qualifier: &'static str,
    pub(crate) name: &'static str,
}

/// The bytes of a node.
pub(crate) fn range_of(node: Node<'_>) -> ByteRange {
    ByteRange::new(node.start_byte() as u32, node.end_byte() as u32)
}

/// `kinds` play `role`.
pub(crate) const fn on(kinds: &'static [&'static str], role: Role) -> Rule {
    Rule { kinds, role }
}

/// A definition with its name in the field `name` and its body in the field `body`; counts inside functions too.
pub(crate) const fn define(kind: DefinitionKind) -> Define {
    Define {
        kind,
        name: Name::Field("name"),
        body: Body::Fields(&["body"]),
        doc: None,
        counts_inside_functions: true,
        is_clause: false,
    }
}

impl Define {
    /// The same with the name in another field.
    pub(crate) const fn name_field(mut self, field: &'static str) -> Self {
        self.name = Name::Field(field);
        self
    }

    /// The same with the name in the first child of one of these kinds.
    pub(crate) const fn name_child(mut self, kinds: &'static [&'static str]) -> Self {
        self.name = Name::Child(kinds);
        self
    }

    /// The same with the name found by a function.
    pub(crate) const fn name_by(mut self, find: NamesFn) -> Self {
        self.name = Name::By(find);
        self
    }

    /// The same with the body in another field.
    pub(crate) const fn body_fields(mut self, fields: &'static [&'static str]) -> Self {
        self.body = Body::Fields(fields);
        self
    }

    /// The same with the body in a child.
    pub(crate) const fn body_child(mut self, kinds: &'static [&'static str]) -> Self {
        self.body = Body::Child(kinds);
        self
    }

    /// The same with the body found by a function.
    pub(crate) const fn body_by(mut self, find: PartFn) -> Self {
        self.body = Body::By(find);
        self
    }

    /// The same with its documentation inside, found by a function.
    pub(crate) const fn doc_by(mut self, find: PartFn) -> Self {
        self.doc = Some(find);
        self
    }

    /// The same, left out inside functions: local variables are no definitions.
    pub(crate) const fn not_local(mut self) -> Self {
        self.counts_inside_functions = false;
        self
    }

    /// The same as one of several clauses.
    pub(crate) const fn clause(mut self) -> Self {
        self.is_clause = true;
        self
    }

    /// As a role.
    pub(crate) const fn role(self) -> Role {
        Role::Define(self)
    }
}

/// A call whose callee stands in `field`.
pub(crate) const fn call(field: &'static str) -> Role {
    Role::Call(Callee {
        field,
        receiver: "",
        kind: ReferenceKind::Call,
    })
}

/// A call of the method in `field` on what stands in `receiver`.
pub(crate) const fn method_call(field: &'static str, receiver: &'static str) -> Role {
    Role::Call(Callee {
        field,
        receiver,
        kind: ReferenceKind::Call,
    })
}

/// A use of the macro in `field`.
pub(crate) const fn macro_call(field: &'static str) -> Role {
    Role::Call(Callee {
        field,
        receiver: "",
        kind: ReferenceKind::Macro,
    })
}

/// A qualified name with its parts in fields.
pub(crate) const fn path(qualifier: &'static str, name: &'static str) -> Role {
    Role::Path(Path { qualifier, name })
}

/// A qualified name whose named children are the segments.
pub(crate) const fn flat_path() -> Role {
    Role::Path(Path {
        qualifier: "",
        name: "",
    })
}

/// An attribute: everything that stands before a definition and belongs to it.
pub(crate) const fn attribute() -> Role {
    Role::Lead(always_attribute)
}

fn always_attribute<'t>(_: &Cx<'_, 't>, _: Node<'t>) -> Option<Lead> {
    Some(Lead::Attribute)
}

/// The rules of one grammar by kind id.
pub(crate) struct Tables {
    pub(crate) language: tree_sitter::Language,
    pub(crate) grammar: &'static Grammar,
    /// Index into `roles` by kind id; 0 for kinds without a role.
    by_kind: Vec<u16>,
    roles: Vec<Roles>,
}

/// All roles of one kind.
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
    /// 0 for a flat path, as is `name`.
    pub(crate) qualifier: u16,
    pub(crate) name: u16,
}

impl Tables {
    /// Resolves the names in the rules. A name that the grammar does not have plays no role (a test sees to it that
    /// there is none).
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

    /// Where the roles of a kind stand; 0 for a kind without a role.
    pub(crate) fn slot(&self, kind_id: u16) -> u16 {
        self.by_kind.get(usize::from(kind_id)).copied().unwrap_or(0)
    }

    /// The roles at `slot`.
    pub(crate) fn roles(&self, slot: u16) -> &Roles {
        &self.roles[usize::from(slot)]
    }

    /// The roles of a node's kind.
    pub(crate) fn roles_of(&self, node: Node<'_>) -> &Roles {
        self.roles(self.slot(node.kind_id()))
    }
}

/// The ids of every named node kind.
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
        // The empty name would match any field.
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
