//! Rules that map the node kinds of a grammar to their meaning.
//!
//! The file of a language lists its [`Rule`]s, which assign a [`Role`] to node kinds by name. [`Tables::compile`]
//! converts the names to the grammar's ids once. The walk then finds the roles of each node by its kind id.
//!
//! `grammar.rs` says what a language is, `define.rs` what a definition, `bindings.rs` what binds or mentions a name.

mod bindings;
mod define;
mod grammar;
mod tables;

use tree_sitter::Node;

use super::types::{Arity, Import, Literal, ReferenceKind, Shape, Step};
use super::walk::Cx;
use crate::model::ByteRange;

pub(crate) use bindings::{Bind, Bound, Mention, bind, bind_by};
pub(crate) use define::{Body, Define, Name, Named, define};
pub(crate) use grammar::{Grammar, TestProbe};
pub(crate) use tables::{CompiledCall, CompiledPath, Roles, Tables};

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
    /// A field of the object that a method belongs to, with its mark: `@name`.
    Field,
    /// A variable with a mark before its name, which is no part of the name of a static member.
    Marked,
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

/// An expression around another one.
pub(crate) struct Around {
    /// The field of the inner expression, or an empty string if it is the first named child.
    pub(crate) field: &'static str,
    /// What the expression does with the inner one; `None` if it is the same value.
    pub(crate) step: Option<Step>,
}

/// The fields of a call node that contain the callee.
pub(crate) struct Callee {
    /// The field of the callee, or an empty string if the callee is the first named child.
    pub(crate) field: &'static str,
    /// The field of the receiver, or an empty string if the receiver is part of the callee.
    pub(crate) receiver: &'static str,
    pub(crate) kind: ReferenceKind,
}

/// The fields of a qualified name. Both are empty strings if the segments are the named children of the node, and
/// [`ENDS`] if they are the first and the last named child.
pub(crate) struct Path {
    pub(crate) qualifier: &'static str,
    pub(crate) name: &'static str,
}

/// Stands for the field of the first or last named child.
pub(crate) const ENDS: &str = "*";

/// Returns the byte range of a node.
pub(crate) fn range_of(node: Node<'_>) -> ByteRange {
    ByteRange::new(node.start_byte() as u32, node.end_byte() as u32)
}

/// Creates a rule.
pub(crate) const fn on(kinds: &'static [&'static str], role: Role) -> Rule {
    Rule { kinds, role }
}

/// Creates the role of a call whose callee is in `field`.
pub(crate) const fn call(field: &'static str) -> Role {
    method_call(field, "")
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
    path("", "")
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

/// Creates the role of a node that always belongs to the definition after it.
pub(crate) const fn attribute() -> Role {
    Role::Lead(always_attribute)
}

fn always_attribute<'t>(_: &Cx<'_, 't>, _: Node<'t>) -> Option<Lead> {
    Some(Lead::Attribute)
}
