//! The definitions that a node makes.

use tree_sitter::Node;

use super::{ArityFn, NamesFn, PartFn, Role, range_of};
use crate::extract::types::DefinitionKind;
use crate::model::ByteRange;

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
    /// True if the language has no such definition inside a function. One that seems to be inside comes after a brace that
    /// the parser misses, such as one in a macro.
    pub(crate) ends_functions: bool,
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
        ends_functions: false,
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

    /// Ends the functions around the definition where it begins.
    pub(crate) const fn ends_functions(mut self) -> Self {
        self.ends_functions = true;
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
