//! Finds the name in an expression: the last segment of a path, and the segment before it.

use tree_sitter::Node;

use super::cx::children;
use crate::extract::rules::{CompiledPath, Leaf, Tables, range_of};
use crate::extract::spans::clamp;
use crate::model::ByteRange;

/// Limit on the number of segments in a flat path. Real code has fewer, and finding a segment takes time linear in
/// their number.
const MAX_SEGMENTS: usize = 64;

/// Implements [`super::Cx::resolve`].
pub(super) fn resolve<'t>(tables: &Tables, src: &[u8], mut node: Node<'t>) -> Option<(ByteRange, ByteRange)> {
    let mut qualifier = ByteRange::default();
    // An expression with more nested wrappers than this does not count as a name.
    for _ in 0..16 {
        let roles = tables.roles_of(node);
        if let Some(fields) = roles.path {
            let name = name_in(tables, node, fields)?;
            qualifier = qualifier_in(tables, src, node, fields, name);
            node = name;
        } else if let Some(field) = roles.through {
            node = if field == 0 {
                node.named_child(0)?
            } else {
                node.child_by_field_id(field)?
            };
        } else {
            let (name, before) = name_of_leaf(src, node, roles.leaf?);
            return Some((name, if before.is_empty() { qualifier } else { before }));
        }
    }
    None
}

/// Returns the last segment of `path`.
pub(super) fn name_in<'t>(tables: &Tables, path: Node<'t>, fields: CompiledPath) -> Option<Node<'t>> {
    if fields.name == 0 {
        return segments(tables, path).pop();
    }
    path.child_by_field_id(fields.name)
}

/// Returns the segments of a flat path. Omits other children, such as arguments.
fn segments<'t>(tables: &Tables, path: Node<'t>) -> Vec<Node<'t>> {
    if path.named_child_count() > MAX_SEGMENTS {
        return Vec::new();
    }
    let mut segments = children(path);
    segments.retain(|child| {
        let roles = tables.roles_of(*child);
        roles.leaf.is_some() || roles.path.is_some() || roles.through.is_some() || child.child_count() == 0
    });
    segments
}

/// Returns the segment before `name` in `path`. Empty if the path has no such segment.
pub(super) fn qualifier_in<'t>(
    tables: &Tables,
    src: &[u8],
    path: Node<'t>,
    fields: CompiledPath,
    name: Node<'t>,
) -> ByteRange {
    let qualifier = if fields.name == 0 {
        let segments = segments(tables, path);
        let at = segments.iter().position(|segment| segment.id() == name.id());
        at.and_then(|at| at.checked_sub(1)).map(|at| segments[at])
    } else {
        path.child_by_field_id(fields.qualifier)
    };
    qualifier
        .and_then(|node| last_segment(tables, src, node))
        .unwrap_or_default()
}

/// Returns the name in a leaf. If the leaf contains a whole path, also returns the segment before the name.
pub(super) fn name_of_leaf(src: &[u8], node: Node<'_>, leaf: Leaf) -> (ByteRange, ByteRange) {
    let whole = clamp(src, range_of(node));
    if leaf != Leaf::Dotted {
        return (whole, ByteRange::default());
    }
    let text = &src[whole.as_usize()];
    let after_dot = |text: &[u8]| memchr::memrchr(b'.', text).map_or(0, |dot| dot + 1);
    let start = after_dot(text);
    let name = ByteRange::new(whole.start + start as u32, whole.end);
    if start == 0 {
        return (name, ByteRange::default());
    }
    let before = after_dot(&text[..start - 1]);
    (name, ByteRange::new(whole.start + before as u32, name.start - 1))
}

/// Returns the last name of an expression that is a name or a path: `b` for `a.b`, `self` for `self`.
pub(super) fn last_segment<'t>(tables: &Tables, src: &[u8], node: Node<'t>) -> Option<ByteRange> {
    if let Some((range, _)) = resolve(tables, src, node) {
        return Some(range);
    }
    let is_word = node.child_count() == 0 && node.end_byte() - node.start_byte() <= 64;
    is_word.then(|| range_of(node))
}
