//! Collects bindings: the names that nodes bind, where they are visible, and what is known of their values.

use std::collections::HashMap;

use tree_sitter::Node;

use super::Walker;
use super::names::{dotted, member_of, name_in, value_of};
use crate::extract::rules::{Bound, Leaf, Roles, Tables, range_of};
use crate::extract::spans::{clamp, text_of};
use crate::extract::types::{Binding, BindingKind, Definition, Shape, Step, Value};
use crate::model::ByteRange;

/// Limit on the nodes of a pattern that are searched for names.
const MAX_PATTERN: usize = 64;

impl<'t> Walker<'_, 't> {
    /// Adds the names that `node` binds, visible in `scope`. That of a definition is visible around it.
    pub(super) fn visit_bindings(&mut self, node: Node<'t>, roles: &Roles, scope: ByteRange) {
        let mut found: Vec<Bound<'t>> = Vec::new();
        for bind in &roles.binds {
            let part = |field: u16| (field != 0).then(|| node.child_by_field_id(field)).flatten();
            let Some(name) = part(bind.name) else { continue };
            let (declared, value, step) = (part(bind.declared), part(bind.value), bind.step);
            found.push(Bound {
                kind: bind.kind,
                name,
                declared,
                value,
                step,
                has_constants: false,
                from: 0,
                scope: None,
                range: None,
            });
        }
        if let Some(find) = roles.bind_by {
            find(&self.cx(), node, &mut found);
        }
        let outer = self.frames.last().map_or(scope, |frame| frame.scope);
        for bound in found {
            let is_definition = bound.kind == BindingKind::Definition;
            let scope = bound.scope.unwrap_or(if is_definition { outer } else { scope });
            self.bind(&bound, scope);
        }
    }

    fn bind(&mut self, bound: &Bound<'t>, scope: ByteRange) {
        let (tables, src) = (self.tables, self.src);
        let scope = ByteRange::new(scope.start.max(bound.from), scope.end.max(bound.from));
        let declared = bound
            .declared
            .map_or_else(ByteRange::default, |node| clamp(src, range_of(node)));
        let shape = bound.declared.map_or(Shape::Named, |node| shape_of(tables, node));
        let value = bound.value.map_or(Value::None, |node| value_of(tables, src, node));
        let value = stepped(value, bound.step);
        let mut add = |kind, name: ByteRange, value| {
            if bound.has_constants
                && src[clamp(src, name).as_usize()]
                    .first()
                    .is_some_and(u8::is_ascii_uppercase)
            {
                return;
            }
            let name_text = if kind == BindingKind::Return {
                String::new()
            } else {
                text_of(src, name)
            };
            self.bindings.push(Binding {
                name: name_text,
                kind,
                start: name.start,
                scope,
                declared,
                shape,
                value,
            });
        };
        if let Some(range) = bound.range {
            return add(bound.kind, range, value);
        }
        if matches!(bound.kind, BindingKind::Return | BindingKind::Export) {
            return add(bound.kind, range_of(bound.name), value);
        }
        // Wrappers around a single name: `&x`, `mut x`, `Some(x)`.
        let (mut name, mut value) = (bound.name, value);
        for _ in 0..4 {
            let Some((field, step)) = tables.roles_of(name).step else {
                break;
            };
            value = stepped(value, step);
            let inner = if field == 0 {
                name.named_child(0)
            } else {
                name.child_by_field_id(field)
            };
            let Some(inner) = inner else { return };
            name = inner;
        }
        let roles = tables.roles_of(name);
        if let Some(fields) = roles.path {
            let Some(member) = name_in(tables, name, fields) else {
                return;
            };
            let (of, _) = member_of(tables, src, name, fields, member);
            if matches!(&src[clamp(src, of).as_usize()], b"self" | b"this" | b"cls" | b"$this") {
                add(BindingKind::Field, range_of(member), value);
            }
        } else if let Some(leaf) = roles.leaf {
            let kind = match (bound.kind, leaf) {
                (BindingKind::Field, _) => return,
                (_, Leaf::Field) => BindingKind::Field,
                (kind, _) => kind,
            };
            add(kind, dotted(src, name, leaf).0, value);
        } else if bound.kind != BindingKind::Field {
            names_in(tables, name, |leaf| add(bound.kind, range_of(leaf), Value::Other));
        }
    }
}

/// Returns the form of a type, which may be inside an annotation or behind a pointer.
fn shape_of(tables: &Tables, mut node: Node<'_>) -> Shape {
    for _ in 0..4 {
        let roles = tables.roles_of(node);
        if let Some(shape) = roles.shape {
            return shape;
        }
        if roles.leaf.is_some() || roles.path.is_some() || roles.through.is_some() || node.named_child_count() != 1 {
            return Shape::Named;
        }
        let Some(inner) = node.named_child(0) else {
            return Shape::Named;
        };
        node = inner;
    }
    Shape::Named
}

fn stepped(value: Value, step: Option<Step>) -> Value {
    match (value, step) {
        (Value::Of { at, steps }, Some(step)) => steps.then(step).map_or(Value::Other, |steps| Value::Of { at, steps }),
        (Value::Literal(_), Some(_)) => Value::Other,
        _ => value,
    }
}

/// Calls `see` with the leaves of a pattern that can be names.
fn names_in<'t>(tables: &Tables, pattern: Node<'t>, mut see: impl FnMut(Node<'t>)) {
    let mut cursor = pattern.walk();
    let mut depth = 0;
    for _ in 0..MAX_PATTERN {
        let roles = tables.roles_of(cursor.node());
        // What a part of the pattern is without a value, the type that a part must have, and the field that it is.
        let is_no_name = depth > 0
            && match cursor.field_name() {
                Some("right" | "type" | "key") => true,
                Some("name") => cursor.node().kind() == "field_identifier",
                _ => false,
            };
        let is_name = roles.leaf.is_some() && cursor.node().is_named() && !is_no_name;
        if is_name {
            see(cursor.node());
        }
        let goes_in = !is_name && !is_no_name && roles.path.is_none() && roles.call.is_none() && !roles.is_scope;
        if goes_in && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while depth > 0 && !cursor.goto_next_sibling() {
            cursor.goto_parent();
            depth -= 1;
        }
        if depth == 0 {
            return;
        }
    }
}

/// Sorts bindings, marks those of definitions, and drops those that say nothing.
pub(super) fn settle(mut bindings: Vec<Binding>, definitions: &[Definition]) -> Vec<Binding> {
    let names: HashMap<u32, &Definition> = definitions
        .iter()
        .map(|definition| (definition.name_range.start, definition))
        .collect();
    bindings.retain_mut(|binding| {
        if matches!(binding.kind, BindingKind::Return | BindingKind::Export) {
            return true;
        }
        let defines = names.get(&binding.start);
        if defines.is_some() {
            binding.kind = BindingKind::Definition;
        } else if binding.kind == BindingKind::Definition {
            return false;
        }
        let says = !binding.declared.is_empty() || binding.value != Value::None;
        // The scopes of local names are needed, too.
        let is_local = match (binding.kind, defines) {
            (_, Some(definition)) => definition.is_local(definitions, binding.scope),
            (BindingKind::Local | BindingKind::Parameter | BindingKind::TypeParameter, None) => true,
            _ => false,
        };
        !binding.name.is_empty() && (says || is_local)
    });
    // Of two bindings of a name, the one with a type counts.
    bindings.sort_by_key(|binding| (binding.start, binding.kind, binding.declared.is_empty()));
    bindings.dedup_by_key(|binding| (binding.start, binding.kind));
    bindings
}
