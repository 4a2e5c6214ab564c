//! Collects references: the names that nodes mention, and the kind of each mention.

use std::collections::{HashMap, HashSet};

use tree_sitter::Node;

use super::Walker;
use super::cx::children;
use super::names::{NameIn, dotted, member_of, name_in, receiver_of, resolve, value_of};
use crate::extract::rules::{CompiledCall, CompiledPath, Leaf, Mention, Roles, Zone, range_of};
use crate::extract::spans::{clamp, text_of};
use crate::extract::types::{Binding, BindingKind, Definition, Reference, ReferenceKind, Value};
use crate::model::ByteRange;

/// Limit on the arguments of a call that are kept.
const MAX_ARGUMENTS: usize = 8;

/// Limit on the nodes around a call among which a function without a name is sought.
const MAX_AROUND: usize = 256;

/// Limit on the scopes of definitions of one name in which its mentions are kept.
const MAX_DEFINED: usize = 64;

impl<'t> Walker<'_, 't> {
    /// Returns true if `node` is a part of a qualified name before the last segment.
    pub(super) fn is_qualifier(&self, node: Node<'t>) -> bool {
        let Some(frame) = self.frames.last() else { return false };
        let Some(fields) = self.tables.roles(frame.slot).path else {
            return false;
        };
        frame.node.start_byte() == node.start_byte()
            && name_in(self.tables, frame.node, fields).is_some_and(|name| name.start_byte() != node.start_byte())
    }

    pub(super) fn visit_call(&mut self, node: Node<'t>, roles: &Roles, zone: Zone) {
        let Some(CompiledCall { field, receiver, kind }) = roles.call else {
            return;
        };
        let callee = if field == 0 {
            node.named_child(0)
        } else {
            node.child_by_field_id(field)
        };
        let Some(callee) = callee else { return };
        let Some(NameIn {
            name,
            mut qualifier,
            receiver: mut of,
        }) = resolve(self.tables, self.src, callee)
        else {
            return;
        };
        if receiver != 0
            && let Some(receiver) = node.child_by_field_id(receiver)
        {
            (qualifier, of) = receiver_of(self.tables, self.src, receiver);
        }
        let kind = match zone {
            Zone::As(kind @ (ReferenceKind::Attribute | ReferenceKind::Inherit)) => kind,
            _ => kind,
        };
        if qualifier.is_empty() && node.kind() == self.tables.grammar.creation {
            let start = range_of(node).start;
            qualifier = ByteRange::new(start, start + 3);
        }
        let (arguments, n_behind) = self.arguments_of(node);
        // The arguments can be one block.
        let n_in = |list: Node<'t>| {
            if list.kind().ends_with("block") {
                1
            } else {
                arguments_in(list).count()
            }
        };
        let n_arguments = arguments.map(n_in);
        let n_arguments = n_arguments.or((n_behind > 0).then_some(0));
        let n_arguments = n_arguments.map(|n| (n + n_behind).min(255) as u8);
        let kept = arguments.filter(|_| self.tables.grammar.has_overloads);
        let arguments = kept.map_or_else(Vec::new, |list| self.arguments(list));
        self.mentions.push(Mention {
            receiver: of,
            n_arguments,
            arguments,
            ..Mention::new(kind, name, self.in_lambda(self.rooted(name, qualifier)))
        });
    }

    /// Returns the bracket that marks a name without a qualifier in a function without a name ([`IN_LAMBDA`]), or the
    /// qualifier.
    fn in_lambda(&self, qualifier: ByteRange) -> ByteRange {
        let lambdas = self.tables.grammar.lambdas;
        if lambdas.is_empty() || !qualifier.is_empty() {
            return qualifier;
        }
        let around = self.frames.iter().rev().map(|frame| frame.node).take(MAX_AROUND);
        let mut inside = around.take_while(|node| node.kind() != "function_declaration");
        let found = inside.find(|node| lambdas.contains(&node.kind()));
        found.map_or(qualifier, |node| {
            let end = range_of(node).end;
            ByteRange::new(end.saturating_sub(1), end)
        })
    }

    /// Returns the list of arguments of a call, and the number of functions behind it that are arguments, too.
    fn arguments_of(&self, call: Node<'t>) -> (Option<Node<'t>>, usize) {
        let Some((list, behind)) = self.tables.grammar.arguments else {
            return (call.child_by_field_id(self.tables.arguments), 0);
        };
        let n_behind = |of: Node<'t>| children(of).iter().filter(|child| child.kind() == behind).count();
        let last = call
            .named_child_count()
            .checked_sub(1)
            .and_then(|last| call.named_child(last as u32));
        let holder = last.filter(|last| last.kind().ends_with("_suffix")).unwrap_or(call);
        let found = children(holder).into_iter().find(|child| child.kind() == list);
        // `f(1) { }` is a call of `f(1)`.
        let around = self.frames.last().map(|frame| frame.node);
        let around = around.filter(|around| around.kind() == call.kind() && around.start_byte() == call.start_byte());
        (found, n_behind(holder) + around.map_or(0, n_behind))
    }

    fn arguments(&self, list: Node<'t>) -> Vec<Value> {
        // The position of one with a name says nothing.
        let is_named = |node: Node<'t>| {
            let name = node.named_child(0);
            let zone = self.tables.grammar.zone.zip(name);
            zone.and_then(|(find, name)| find(name, node, "", self.src)) == Some(Zone::Label)
        };
        let value = |node| {
            if is_named(node) {
                Value::Other
            } else {
                value_of(self.tables, self.src, node)
            }
        };
        arguments_in(list).take(MAX_ARGUMENTS).map(value).collect()
    }

    pub(super) fn visit_leaf(&mut self, node: Node<'t>, leaf: Leaf, zone: Zone) {
        let outer = self
            .frames
            .len()
            .checked_sub(2)
            .map_or("", |at| self.frames[at].node.kind());
        let found = self.tables.grammar.zone.zip(self.frames.last());
        let zone = found
            .and_then(|(find, frame)| find(node, frame.node, outer, self.src))
            .unwrap_or(zone);
        if zone == Zone::Label {
            return;
        }
        let parent_path = self.path_around(node);
        let is_qualifier = parent_path.is_some() && self.is_qualifier(node);
        let is_import = zone == Zone::As(ReferenceKind::Import);
        let zone = if is_qualifier && !is_import { Zone::Plain } else { zone };
        let (range, before) = dotted(self.src, node, leaf);
        let (qualifier, receiver) = match parent_path {
            Some((path, fields, name)) if !is_qualifier => member_of(self.tables, self.src, path, fields, name),
            _ => (before, Mention::new(ReferenceKind::Name, range, before).receiver),
        };
        let text = &self.src[clamp(self.src, range).as_usize()];
        let is_member = receiver != Value::None;
        let kind = match (zone, leaf) {
            _ if text.is_empty() => return,
            _ if is_import => ReferenceKind::Import,
            (_, Leaf::This) => ReferenceKind::Value,
            (Zone::As(ReferenceKind::Type) | Zone::Else(ReferenceKind::Type), _) | (Zone::Plain, Leaf::Type)
                if !is_qualifier && matches!(text, b"Self" | b"self" | b"static") =>
            {
                ReferenceKind::Value
            }
            _ if text == b"static" => return,
            (Zone::As(kind) | Zone::Else(kind), _) => kind,
            (_, Leaf::Type) if !is_qualifier => ReferenceKind::Type,
            _ if text[0].is_ascii_uppercase() && text != b"Self" => ReferenceKind::Name,
            _ if is_member => ReferenceKind::Member,
            (_, Leaf::Segment) if !is_qualifier => return,
            _ => ReferenceKind::Value,
        };
        self.mentions.push(Mention {
            receiver,
            is_variable: leaf == Leaf::Marked && !is_member,
            ..Mention::new(kind, range, self.in_lambda(self.rooted(range, qualifier)))
        });
    }

    /// Returns the path that a leaf is a part of, its fields, and that part: the leaf, or what wraps it.
    fn path_around(&self, leaf: Node<'t>) -> Option<(Node<'t>, CompiledPath, Node<'t>)> {
        let (parent, outer) = self.frames.split_last()?;
        let roles = self.tables.roles(parent.slot);
        if let Some(fields) = roles.path {
            return Some((parent.node, fields, leaf));
        }
        let outer = outer.last().filter(|_| roles.through.is_some())?;
        let fields = self.tables.roles(outer.slot).path?;
        let is_name = name_in(self.tables, outer.node, fields).is_some_and(|name| name.id() == parent.node.id());
        is_name.then_some((outer.node, fields, parent.node))
    }

    /// Returns the mark of the root before a name without a qualifier, or the qualifier.
    fn rooted(&self, name: ByteRange, qualifier: ByteRange) -> ByteRange {
        let before = name.start.wrapping_sub(1);
        let mark = self.src.get(before as usize).copied();
        if qualifier.is_empty() && mark.is_some() && mark == self.tables.grammar.root {
            ByteRange::new(before, name.start)
        } else {
            qualifier
        }
    }
}

/// Returns the arguments in a list, without comments.
fn arguments_in(list: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    children(list).into_iter().filter(|node| !node.is_extra())
}

/// Removes mentions of local variables, unless their value matters: another name is a member of it or is bound to it. Those
/// in the scope of a definition with the name can mean the definition.
fn drop_locals(mentions: &mut Vec<Mention>, definitions: &[Definition], bindings: &[Binding], src: &[u8]) {
    let values = mentions
        .iter()
        .flat_map(|mention| mention.arguments.iter().chain([&mention.receiver]).copied());
    let needed: HashSet<u32> = values
        .chain(bindings.iter().map(|binding| binding.value))
        .filter_map(|value| match value {
            Value::Of { at, .. } => Some(at),
            _ => None,
        })
        .collect();
    let mut declared: Vec<ByteRange> = bindings.iter().map(|binding| binding.declared).collect();
    declared.sort_unstable_by_key(|range| range.start);
    // `struct pool *pool`
    let is_declared_type = |mention: &Mention| {
        let n_before = declared.partition_point(|range| range.start <= mention.range.start);
        mention.kind == ReferenceKind::Type && n_before > 0 && declared[n_before - 1].end > mention.range.start
    };
    let mut names: HashSet<u32> = HashSet::new();
    let mut scopes: HashMap<&str, Vec<ByteRange>> = HashMap::new();
    let by_start = definitions
        .iter()
        .map(|definition| (definition.name_range.start, definition));
    let by_start: HashMap<u32, &Definition> = by_start.collect();
    let is_local = |binding: &Binding| {
        let definition = by_start.get(&binding.start);
        definition.is_some_and(|definition| definition.is_local(definitions, binding.scope))
    };
    let mut defined: HashMap<&str, Vec<ByteRange>> = HashMap::new();
    for binding in bindings {
        if matches!(binding.kind, BindingKind::Local | BindingKind::Parameter) {
            names.insert(binding.start);
            scopes.entry(&binding.name).or_default().push(binding.scope);
        } else if binding.kind == BindingKind::TypeParameter {
            names.insert(binding.start);
        } else if binding.kind == BindingKind::Definition && is_local(binding) {
            defined.entry(&binding.name).or_default().push(binding.scope);
        }
    }
    for scopes in scopes.values_mut() {
        scopes.sort_unstable_by_key(|scope| scope.start);
        let mut end = 0;
        for scope in scopes {
            end = end.max(scope.end);
            scope.end = end;
        }
    }
    mentions.retain(|mention| {
        let at = mention.range.start;
        let is_hidden = || {
            let name = std::str::from_utf8(&src[clamp(src, mention.range).as_usize()]).unwrap_or_default();
            let scopes = scopes.get(name).map_or(&[][..], Vec::as_slice);
            let n_before = scopes.partition_point(|scope| scope.start <= at);
            let is_defined = || {
                let scopes = defined.get(name).map_or(&[][..], Vec::as_slice);
                scopes
                    .iter()
                    .take(MAX_DEFINED)
                    .any(|scope| scope.start <= at && at < scope.end)
            };
            n_before > 0 && scopes[n_before - 1].end > at && !is_defined()
        };
        let is_plain = matches!(
            mention.kind,
            ReferenceKind::Value | ReferenceKind::Name | ReferenceKind::Type
        );
        needed.contains(&at)
            || is_declared_type(mention)
            || !(is_plain
                && mention.receiver == Value::None
                && (mention.is_variable || names.contains(&at) || is_hidden()))
    });
}

/// Converts mentions to references in source order. Takes the most specific mention at each position, and omits
/// mentions inside the names of definitions.
pub(crate) fn settle(
    mut mentions: Vec<Mention>,
    definitions: &[Definition],
    bindings: &[Binding],
    src: &[u8],
) -> Vec<Reference> {
    // The parser inserts missing nodes, which have an empty range.
    mentions.retain(|mention| !mention.range.is_empty() && mention.range.end as usize <= src.len());
    mentions.sort_by_key(|mention| (mention.range.start, rank(mention.kind), mention.range.end));
    mentions.dedup_by_key(|mention| mention.range.start);
    let mut names: Vec<ByteRange> = definitions.iter().map(|definition| definition.name_range).collect();
    names.sort_unstable();
    let mut names = names.into_iter().peekable();
    let mut name = ByteRange::default();
    // The name of an anonymous class ends with the type that it extends.
    let is_last_word =
        |mention: &Mention, name: ByteRange| mention.range.end == name.end && mention.range.start > name.start;
    mentions.retain(|mention| {
        while let Some(next) = names.next_if(|next| next.start <= mention.range.start) {
            name = next;
        }
        mention.range.start >= name.end || is_last_word(mention, name) && mention.kind == ReferenceKind::Call
    });
    drop_locals(&mut mentions, definitions, bindings, src);
    mentions.into_iter().map(|mention| reference(mention, src)).collect()
}

/// Returns the rank of a mention among those at the same position. The most specific kind has the lowest rank: a call
/// is more specific than a plain name.
fn rank(kind: ReferenceKind) -> u8 {
    match kind {
        ReferenceKind::Call | ReferenceKind::Inherit | ReferenceKind::Macro | ReferenceKind::Attribute => kind as u8,
        ReferenceKind::Type | ReferenceKind::Import => 10,
        ReferenceKind::Name | ReferenceKind::Member => 11,
        ReferenceKind::Value => 12,
    }
}

fn reference(mention: Mention, src: &[u8]) -> Reference {
    Reference {
        name: text_of(src, mention.range),
        qualifier: (!mention.qualifier.is_empty()).then(|| text_of(src, mention.qualifier)),
        kind: mention.kind,
        range: mention.range,
        receiver: mention.receiver,
        n_arguments: mention.n_arguments,
        arguments: mention.arguments,
    }
}
