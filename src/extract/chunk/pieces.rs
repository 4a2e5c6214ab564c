//! Divides items that are too large for one chunk and classifies the text between items.

use super::items::{Item, Items};
use super::text::Text;
use crate::extract::types::{DefinitionKind, Extraction};

/// A range of lines with one role. The pieces of a blob are consecutive, without gaps or overlaps.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) first: usize,
    pub(super) end: usize,
    /// The definition that the piece consists of or is part of.
    pub(super) definition: Option<u32>,
    /// The divided item that contains the piece. Only pieces with the same parent are merged.
    pub(super) parent: Option<u32>,
    pub(super) role: Role,
}

/// The role of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A whole function, test or section.
    Callable,
    /// Another whole item: a type, a constant, an import.
    Item,
    /// A field or enum case of a divided type. The piece's definition is the type.
    Member,
    /// The lines of a divided item before its first child.
    Head,
    /// Text between items that is not a comment.
    Between,
    /// Comments between items.
    Comment,
    /// Blank lines and closing brackets.
    Trivial,
}

/// Returns the pieces of a blob in source order.
pub(super) fn pieces(text: &Text<'_>, items: &Items, extraction: &Extraction) -> Vec<Piece> {
    let mut cutter = Divider {
        text,
        items,
        extraction,
        pieces: Vec::new(),
        todo: Vec::new(),
    };
    cutter.open(None, 0, text.lines.count(), &items.roots);
    while let Some(todo) = cutter.todo.pop() {
        match todo {
            Todo::Item(at, parent) => cutter.item(at, parent),
            Todo::Between {
                first,
                end,
                item,
                is_head,
            } => cutter.between(first, end, item, is_head),
        }
    }
    cutter.pieces
}

/// An entry of the work stack, which replaces recursion so that deep nesting cannot overflow the call stack.
enum Todo {
    Item(u32, Option<u32>),
    Between {
        first: usize,
        end: usize,
        item: Option<u32>,
        is_head: bool,
    },
}

struct Divider<'a> {
    text: &'a Text<'a>,
    items: &'a Items,
    extraction: &'a Extraction,
    pieces: Vec<Piece>,
    /// The work stack. The last entry is processed first.
    todo: Vec<Todo>,
}

impl Divider<'_> {
    /// Schedules the children of `item` and the text between them.
    fn open(&mut self, item: Option<u32>, first: usize, end: usize, children: &[u32]) {
        let mut todo = Vec::with_capacity(2 * children.len() + 1);
        let mut at = first;
        for &child in children {
            let is_head = at == first && item.is_some();
            let lines = self.items.get(child);
            todo.push(Todo::Between {
                first: at,
                end: lines.first,
                item,
                is_head,
            });
            todo.push(Todo::Item(child, item));
            at = lines.end;
        }
        todo.push(Todo::Between {
            first: at,
            end,
            item,
            is_head: false,
        });
        self.todo.extend(todo.into_iter().rev());
    }

    fn item(&mut self, at: u32, parent: Option<u32>) {
        let item = self.items.get(at);
        let children = self.children_with_own_pieces(item);
        if self.must_be_divided(item, &children) {
            return self.open(Some(at), item.first, item.end, &children);
        }
        let role = self.role_of(item, parent);
        let definition = if role == Role::Member {
            self.definition_of(parent)
        } else {
            item.definition
        };
        self.push(item.first, item.end, definition, parent, role);
    }

    fn definition_of(&self, item: Option<u32>) -> Option<u32> {
        item.and_then(|item| self.items.get(item).definition)
    }

    fn kind_of(&self, item: &Item) -> Option<DefinitionKind> {
        item.definition.map(|at| self.extraction.definitions[at as usize].kind)
    }

    /// Returns the children of an item that become pieces of their own. In a function, these are tests and large
    /// functions and types. In other items, these are all children.
    fn children_with_own_pieces(&self, item: &Item) -> Vec<u32> {
        let is_callable = self.kind_of(item).is_some_and(DefinitionKind::is_callable);
        let is_worth = |child: &u32| {
            let child = self.items.get(*child);
            let kind = self.kind_of(child);
            !is_callable
                || kind == Some(DefinitionKind::Test)
                || kind.is_some_and(|kind| kind.is_callable() || kind.is_type()) && !self.is_small(child)
        };
        item.children.iter().copied().filter(is_worth).collect()
    }

    fn is_small(&self, item: &Item) -> bool {
        self.text.bytes(item.first, item.end) < self.text.options.small_bytes as usize
    }

    fn must_be_divided(&self, item: &Item, children: &[u32]) -> bool {
        if children.is_empty() {
            return false;
        }
        let options = self.text.options;
        let is_function = self
            .kind_of(item)
            .is_some_and(|kind| kind.is_callable() && kind != DefinitionKind::Test);
        let only_has_members = children.iter().all(|child| self.is_member(self.items.get(*child)));
        let limit = if is_function || only_has_members {
            options.max_bytes
        } else {
            options.target_bytes
        };
        self.text.bytes(item.first, item.end) > limit as usize
    }

    fn is_member(&self, item: &Item) -> bool {
        matches!(
            self.kind_of(item),
            Some(DefinitionKind::Field | DefinitionKind::Variant)
        )
    }

    fn role_of(&self, item: &Item, parent: Option<u32>) -> Role {
        match self.kind_of(item) {
            Some(DefinitionKind::Field | DefinitionKind::Variant) if parent.is_some() => Role::Member,
            Some(DefinitionKind::Section) => Role::Callable,
            Some(kind) if kind.is_callable() => Role::Callable,
            _ => Role::Item,
        }
    }

    /// Adds the lines between two items as up to three pieces: closing lines of the previous item, comments, and other
    /// text.
    fn between(&mut self, first: usize, end: usize, item: Option<u32>, is_head: bool) {
        let definition = self.definition_of(item);
        let n_trivial = (first..end)
            .take_while(|&line| !is_head && self.text.is_trivial(line))
            .count();
        let start = first + n_trivial;
        self.push(first, start, definition, item, Role::Trivial);
        let is_comment = |line: usize| self.text.layout.is_comment(line) || self.text.is_blank(line);
        let mut after_comments = (start..end).find(|&line| is_head || !is_comment(line)).unwrap_or(end);
        if after_comments < end {
            // A comment directly above other text belongs to that text.
            while after_comments > start && !self.text.is_blank(after_comments - 1) {
                after_comments -= 1;
            }
        }
        self.push(start, after_comments, definition, item, Role::Comment);
        let role = if is_head { Role::Head } else { Role::Between };
        self.push(after_comments, end, definition, item, role);
    }

    fn push(&mut self, first: usize, end: usize, definition: Option<u32>, parent: Option<u32>, role: Role) {
        if first < end {
            self.pieces.push(Piece {
                first,
                end,
                definition,
                parent,
                role,
            });
        }
    }
}
