//! Finds the name in an expression: the last segment of a path, and the value that it is a member of.

use tree_sitter::Node;

use super::cx::children;
use crate::extract::rules::{CompiledPath, Leaf, Tables, range_of};
use crate::extract::spans::clamp;
use crate::extract::types::{Step, Steps, Value};
use crate::model::ByteRange;

/// Limit on the number of segments in a flat path. Real code has fewer, and finding a segment takes time linear in
/// their number.
const MAX_SEGMENTS: usize = 64;
/// Limit on nested wrappers around a name. An expression with more does not count as a name.
const MAX_WRAPPERS: usize = 16;

/// A name in an expression.
#[derive(Clone, Copy)]
pub(super) struct NameIn {
    pub(super) name: ByteRange,
    /// The last name of the receiver. Empty if there is none.
    pub(super) qualifier: ByteRange,
    pub(super) receiver: Value,
}

/// Finds the name that `node` refers to. For `a.b.c::<T>` this is `c`, a member of `b`.
pub(super) fn resolve(tables: &Tables, src: &[u8], node: Node<'_>) -> Option<NameIn> {
    let (mut qualifier, mut receiver) = (ByteRange::default(), Value::None);
    let (node, leaf) = leaf_of(tables, node, |path, fields, name| {
        (qualifier, receiver) = member_of(tables, src, path, fields, name);
    })?;
    Some(match dotted(src, node, leaf) {
        (name, before) if before.is_empty() => NameIn {
            name,
            qualifier,
            receiver,
        },
        (name, before) => NameIn {
            name,
            qualifier: before,
            receiver: of(before),
        },
    })
}

/// Returns the leaf that is the name in an expression. Calls `on_path` with each path and its last segment.
fn leaf_of<'t>(
    tables: &Tables,
    mut node: Node<'t>,
    mut on_path: impl FnMut(Node<'t>, CompiledPath, Node<'t>),
) -> Option<(Node<'t>, Leaf)> {
    for _ in 0..MAX_WRAPPERS {
        let roles = tables.roles_of(node);
        if let Some(fields) = roles.path {
            let name = name_in(tables, node, fields)?;
            on_path(node, fields, name);
            node = name;
        } else if let Some(field) = roles.through {
            node = inner(node, field)?;
        } else {
            return Some((node, roles.leaf?));
        }
    }
    None
}

/// Returns the value of an expression.
pub(super) fn value_of(tables: &Tables, src: &[u8], mut node: Node<'_>) -> Value {
    let mut steps = Steps::default();
    let mut is_called = false;
    for _ in 0..MAX_WRAPPERS {
        let roles = tables.roles_of(node);
        // `f[T](x)` is one call, `f[T].x` is one, too.
        let is_part_of_call = std::mem::take(&mut is_called) && roles.through.is_some();
        let next = if let Some(call) = roles.call {
            // `f(1) { }` is a call of `f(1)`.
            if let Some(inner) = node.named_child(0).filter(|_| tables.grammar.arguments.is_some())
                && tables.roles_of(inner).call.is_some()
            {
                node = inner;
                continue;
            }
            let Some(more) = steps.after(Step::Call) else {
                return Value::Other;
            };
            steps = more;
            is_called = true;
            inner(node, call.field)
        } else if let Some((field, step)) = roles.step {
            if let Some(step) = step.filter(|_| !is_part_of_call) {
                let Some(more) = steps.after(step) else {
                    return Value::Other;
                };
                steps = more;
            }
            inner(node, field)
        } else if let Some(field) = roles.through {
            inner(node, field)
        } else if let Some(fields) = roles.path {
            // The fields of a tuple are numbers.
            name_in(tables, node, fields).filter(|name| tables.roles_of(*name).literal.is_none())
        } else if let Some(leaf) = roles.leaf {
            let at = dotted(src, node, leaf).0.start;
            return Value::Of { at, steps };
        } else if let Some(literal) = roles.literal {
            return if steps == Steps::default() {
                Value::Literal(literal)
            } else {
                Value::Other
            };
        } else {
            return Value::Other;
        };
        let Some(next) = next else { return Value::Other };
        node = next;
    }
    Value::Other
}

fn of(name: ByteRange) -> Value {
    Value::Of {
        at: name.start,
        steps: Steps::default(),
    }
}

fn inner(node: Node<'_>, field: u16) -> Option<Node<'_>> {
    if field == 0 {
        node.named_child(0)
    } else {
        node.child_by_field_id(field)
    }
}

/// Returns the last segment of `path`.
pub(super) fn name_in<'t>(tables: &Tables, path: Node<'t>, fields: CompiledPath) -> Option<Node<'t>> {
    if fields.is_ends {
        return path.named_child(path.named_child_count().checked_sub(1)? as u32);
    }
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

/// Returns the last name of what `name` is a member of in `path`, and its value. Both are empty if the path has no such
/// segment.
pub(super) fn member_of<'t>(
    tables: &Tables,
    src: &[u8],
    path: Node<'t>,
    fields: CompiledPath,
    name: Node<'t>,
) -> (ByteRange, Value) {
    let receiver = if fields.is_ends {
        path.named_child(0)
    } else if fields.name == 0 {
        let segments = segments(tables, path);
        let at = segments.iter().position(|segment| segment.id() == name.id());
        at.and_then(|at| at.checked_sub(1)).map(|at| segments[at])
    } else {
        path.child_by_field_id(fields.qualifier)
    };
    receiver.map_or_else(Default::default, |node| receiver_of(tables, src, node))
}

/// Returns the last name of a receiver, empty if it has none, and its value.
pub(super) fn receiver_of(tables: &Tables, src: &[u8], node: Node<'_>) -> (ByteRange, Value) {
    let name = last_segment(tables, src, node).unwrap_or_default();
    (name, value_of(tables, src, node))
}

/// Returns the name in a leaf. If the leaf contains a whole path, also returns the segment before the name.
pub(super) fn dotted(src: &[u8], node: Node<'_>, leaf: Leaf) -> (ByteRange, ByteRange) {
    let mut whole = clamp(src, range_of(node));
    if leaf == Leaf::Marked && src[..whole.start as usize].ends_with(b"::") {
        whole.start = (whole.start + 1).min(whole.end);
    }
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
fn last_segment(tables: &Tables, src: &[u8], node: Node<'_>) -> Option<ByteRange> {
    // Without the receiver of each segment, which would take a recursion as deep as the path is long.
    if let Some((leaf, kind)) = leaf_of(tables, node, |_, _, _| ()) {
        return Some(dotted(src, leaf, kind).0);
    }
    let is_word = node.child_count() == 0 && node.end_byte() - node.start_byte() <= 64;
    is_word.then(|| range_of(node))
}
