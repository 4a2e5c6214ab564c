//! The names that a node binds or mentions.

use tree_sitter::Node;

use super::{Role, range_of};
use crate::extract::types::{BindingKind, ReferenceKind, Step, Steps, Value};
use crate::model::ByteRange;

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
    /// True for a variable, which means nothing outside of its function.
    pub(crate) is_variable: bool,
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
            is_variable: false,
        }
    }
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
    /// Where the name is, if it is a part of the node.
    pub(crate) range: Option<ByteRange>,
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
            range: None,
        }
    }

    /// Sets the range of the name.
    pub(crate) fn named(mut self, range: ByteRange) -> Self {
        self.range = Some(range);
        self
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
