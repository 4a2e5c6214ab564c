//! The context that the walk passes to the functions of a language.

use tree_sitter::Node;

use super::Frame;
use super::names;
use crate::extract::rules::{Tables, Zone, range_of};
use crate::extract::types::{Definition, DefinitionKind};
use crate::model::ByteRange;

/// The context of the visited node: the text and the nodes and definitions above it.
pub(crate) struct Cx<'a, 't> {
    pub(super) src: &'a [u8],
    pub(super) tables: &'a Tables,
    pub(super) frames: &'a [Frame<'t>],
    pub(super) definitions: &'a [Definition],
}

impl<'a, 't> Cx<'a, 't> {
    /// Returns the text of `node`, or an empty string if the text is not UTF-8.
    pub(crate) fn text(&self, node: Node<'_>) -> &'a str {
        self.slice(range_of(node))
    }

    /// Returns the first part of the file, in which most imports are.
    pub(crate) fn head(&self) -> &'a [u8] {
        &self.src[..self.src.len().min(4096)]
    }

    /// Returns the text in `range`, or an empty string if the text is not UTF-8.
    pub(crate) fn slice(&self, range: ByteRange) -> &'a str {
        let end = range.as_usize().end.min(self.src.len());
        let start = range.as_usize().start.min(end);
        std::str::from_utf8(&self.src[start..end]).unwrap_or_default()
    }

    /// Returns the parent of the visited node.
    pub(crate) fn parent(&self) -> Option<Node<'t>> {
        self.ancestor(0)
    }

    /// Returns the kind of the visited node's parent. Empty at the root.
    pub(crate) fn parent_kind(&self) -> &'t str {
        self.parent().map_or("", |node| node.kind())
    }

    /// Returns the ancestor `n` levels above the parent of the visited node.
    pub(crate) fn ancestor(&self, n: usize) -> Option<Node<'t>> {
        let at = self.frames.len().checked_sub(n + 1)?;
        Some(self.frames[at].node)
    }

    /// Returns the kind of the innermost definition that encloses the visited node.
    pub(crate) fn owner_kind(&self) -> Option<DefinitionKind> {
        self.owner().map(|definition| definition.kind)
    }

    /// Returns the innermost definition that encloses the visited node.
    pub(crate) fn owner(&self) -> Option<&'a Definition> {
        let owner = self.frames.last()?.owner;
        self.definitions.get(owner as usize)
    }

    /// Returns true if the grammar's function for zones takes `leaf`, a child of `parent`, for a label.
    pub(crate) fn is_label(&self, leaf: Node<'_>, parent: Node<'_>) -> bool {
        let zone = self
            .tables
            .grammar
            .zone
            .and_then(|find| find(leaf, parent, "", self.src));
        zone == Some(Zone::Label)
    }

    /// Returns the ranges of the name that an expression refers to and of the segment before it, which may be empty.
    /// For `a.b.c::<T>`, these are `c` and `b`.
    pub(crate) fn resolve(&self, node: Node<'t>) -> Option<(ByteRange, ByteRange)> {
        names::resolve(self.tables, self.src, node).map(|found| (found.name, found.qualifier))
    }
}

/// Returns the first named child of `node` that has the given kind.
pub(crate) fn child_of_kind<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    children(node).into_iter().find(|child| child.kind() == kind)
}

/// Returns the named children of `node`.
pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

/// Returns the child of `node` in `field`.
pub(crate) fn field<'t>(node: Node<'t>, field: &str) -> Option<Node<'t>> {
    node.child_by_field_name(field)
}
