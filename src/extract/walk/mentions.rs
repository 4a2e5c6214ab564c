//! Collects references: the names that nodes mention, and the kind of each mention.

use tree_sitter::Node;

use super::Walker;
use super::names::{last_segment, name_in, name_of_leaf, qualifier_in, resolve};
use crate::extract::rules::{CompiledCall, Leaf, Mention, Roles, Zone};
use crate::extract::spans::{clamp, text_of};
use crate::extract::types::{Definition, Reference, ReferenceKind};
use crate::model::ByteRange;

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
        let Some((range, mut qualifier)) = resolve(self.tables, self.src, callee) else {
            return;
        };
        if receiver != 0 {
            let receiver = node.child_by_field_id(receiver);
            qualifier = receiver
                .and_then(|node| last_segment(self.tables, self.src, node))
                .unwrap_or(qualifier);
        }
        let kind = match zone {
            Zone::As(kind @ (ReferenceKind::Attribute | ReferenceKind::Inherit)) => kind,
            _ => kind,
        };
        self.mentions.push(Mention { kind, range, qualifier });
    }

    pub(super) fn visit_leaf(&mut self, node: Node<'t>, leaf: Leaf, zone: Zone) {
        let parent_path = self
            .frames
            .last()
            .and_then(|frame| self.tables.roles(frame.slot).path.map(|path| (frame.node, path)));
        let is_qualifier = parent_path.is_some() && self.is_qualifier(node);
        let zone = if is_qualifier { Zone::Plain } else { zone };
        let kind = match (zone, leaf) {
            (Zone::As(kind) | Zone::Else(kind), _) => kind,
            (Zone::Plain, Leaf::Type) if !is_qualifier => ReferenceKind::Type,
            (Zone::Plain, _) => ReferenceKind::Name,
        };
        let (range, before) = name_of_leaf(self.src, node, leaf);
        if !is_worth_keeping(kind, &self.src[clamp(self.src, range).as_usize()]) {
            return;
        }
        let qualifier = match parent_path {
            Some((path, fields)) if !is_qualifier => qualifier_in(self.tables, self.src, path, fields, node),
            _ => before,
        };
        self.mentions.push(Mention { kind, range, qualifier });
    }
}

/// Returns true if a mention should be recorded. Lower-case names outside of types and calls are mostly local
/// variables, and single letters are type parameters.
fn is_worth_keeping(kind: ReferenceKind, text: &[u8]) -> bool {
    match kind {
        ReferenceKind::Name => text.len() > 1 && text[0].is_ascii_uppercase() && text != b"Self",
        ReferenceKind::Type => text.len() > 1 && !matches!(text, b"Self" | b"self" | b"static"),
        _ => !text.is_empty(),
    }
}

/// Converts mentions to references in source order. Takes the most specific mention at each position, and omits
/// mentions inside the names of definitions.
pub(crate) fn settle(mut mentions: Vec<Mention>, definitions: &[Definition], src: &[u8]) -> Vec<Reference> {
    // The parser inserts missing nodes, which have an empty range.
    mentions.retain(|mention| !mention.range.is_empty() && mention.range.end as usize <= src.len());
    mentions.sort_by_key(|mention| (mention.range.start, rank(mention.kind), mention.range.end));
    mentions.dedup_by_key(|mention| mention.range.start);
    let mut names: Vec<ByteRange> = definitions.iter().map(|definition| definition.name_range).collect();
    names.sort_unstable();
    let mut names = names.into_iter().peekable();
    let mut name = ByteRange::default();
    mentions.retain(|mention| {
        while let Some(next) = names.next_if(|next| next.start <= mention.range.start) {
            name = next;
        }
        mention.range.start >= name.end
    });
    mentions.into_iter().map(|mention| reference(mention, src)).collect()
}

/// Returns the rank of a mention among those at the same position. The most specific kind has the lowest rank: a call
/// is more specific than a plain name.
fn rank(kind: ReferenceKind) -> u8 {
    match kind {
        ReferenceKind::Call | ReferenceKind::Inherit | ReferenceKind::Macro | ReferenceKind::Attribute => kind as u8,
        ReferenceKind::Type => 10,
        ReferenceKind::Name => 11,
    }
}

fn reference(mention: Mention, src: &[u8]) -> Reference {
    Reference {
        name: text_of(src, mention.range),
        qualifier: (!mention.qualifier.is_empty()).then(|| text_of(src, mention.qualifier)),
        kind: mention.kind,
        range: mention.range,
    }
}
