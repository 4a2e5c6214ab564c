//! Merges pieces that are too small for a chunk of their own.

use super::pieces::{Piece, Role};
use super::text::Text;

/// A range of lines that becomes one chunk. If it is too large, it is split into several.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) first: usize,
    pub(super) end: usize,
    /// The definition that the group belongs to. If it contains several definitions, the first.
    pub(super) definition: Option<u32>,
    /// Number of different definitions in the group.
    pub(super) n_subjects: usize,
    parent: Option<u32>,
    role: Role,
    /// True if all pieces of the group are small, so that more pieces may be added.
    is_open: bool,
}

/// Size limit of pieces that never become a chunk of their own, for example a label or the opening line of a type.
const TINY_BYTES: usize = 120;

/// Merges the pieces of a blob into groups.
pub(super) fn group(text: &Text<'_>, pieces: Vec<Piece>) -> Vec<Group> {
    let pieces = prepend_leads(text, trail(pieces));
    merge_scraps(text, join_small(text, pieces))
}

/// Appends blank lines and closing brackets to the preceding piece.
fn trail(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut at_start = None;
    for mut piece in pieces {
        match (piece.role, out.last_mut()) {
            (Role::Trivial, Some(before)) => before.end = piece.end,
            (Role::Trivial, None) => at_start = at_start.or(Some(piece.clone())),
            _ => {
                if let Some(blank) = at_start.take() {
                    piece.first = blank.first;
                }
                out.push(piece);
            }
        }
    }
    out.extend(at_start);
    out
}

/// Prepends short comments and opening lines of divided items to the following piece.
fn prepend_leads(text: &Text<'_>, pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    for mut piece in pieces {
        if let Some(before) = out.pop_if(|before| leads_to(text, before, &piece)) {
            piece.first = before.first;
        }
        out.push(piece);
    }
    out
}

fn leads_to(text: &Text<'_>, piece: &Piece, next: &Piece) -> bool {
    let n_bytes = text.bytes(piece.first, piece.end);
    match piece.role {
        Role::Comment => {
            n_bytes < text.options.small_bytes as usize && piece.parent == next.parent && next.role != Role::Comment
        }
        Role::Head => n_bytes < TINY_BYTES && (next.parent == piece.parent || next.role == Role::Head),
        _ => false,
    }
}

/// Joins consecutive small pieces with the same parent, up to the target size.
fn join_small(text: &Text<'_>, pieces: Vec<Piece>) -> Vec<Group> {
    let mut out: Vec<Group> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let is_small = text.bytes(piece.first, piece.end) < text.options.small_bytes as usize;
        match out.last_mut() {
            Some(group) if is_small && group.is_open && goes_with(text, group, &piece) => add(group, &piece),
            _ => out.push(Group {
                first: piece.first,
                end: piece.end,
                definition: piece.definition,
                n_subjects: usize::from(piece.definition.is_some()),
                parent: piece.parent,
                role: piece.role,
                is_open: is_small,
            }),
        }
    }
    out
}

fn goes_with(text: &Text<'_>, group: &Group, piece: &Piece) -> bool {
    let are_alike = (group.role == Role::Callable) == (piece.role == Role::Callable);
    group.parent == piece.parent
        && are_alike
        && text.bytes(group.first, piece.end) <= text.options.target_bytes as usize
}

fn add(group: &mut Group, piece: &Piece) {
    group.end = piece.end;
    if piece.definition.is_some() && piece.definition != group.definition {
        group.n_subjects += 1;
        // Text between items belongs to no definition, so the group takes the first definition that follows.
        if group.definition.is_none() {
            group.definition = piece.definition;
        }
    }
}

/// Merges each scrap (a label, a constant) into the next group if it has the same parent, or else into the previous
/// group.
fn merge_scraps(text: &Text<'_>, groups: Vec<Group>) -> Vec<Group> {
    let mut out: Vec<Group> = Vec::with_capacity(groups.len());
    for mut group in groups {
        match out.pop_if(|before| is_scrap(text, before)) {
            Some(scrap) if scrap.parent == group.parent => group.first = scrap.first,
            Some(scrap) => append_to_previous(&mut out, scrap),
            None => {}
        }
        out.push(group);
    }
    if let Some(scrap) = out.pop_if(|last| is_scrap(text, last)) {
        append_to_previous(&mut out, scrap);
    }
    out
}

fn append_to_previous(out: &mut Vec<Group>, scrap: Group) {
    match out.last_mut() {
        Some(before) if before.parent == scrap.parent => before.end = scrap.end,
        _ => out.push(scrap),
    }
}

fn is_scrap(text: &Text<'_>, group: &Group) -> bool {
    let is_plain = group.role != Role::Callable && group.role != Role::Head;
    is_plain && group.n_subjects <= 1 && text.bytes(group.first, group.end) < TINY_BYTES / 2
}
