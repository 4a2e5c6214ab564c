//! Records the names, ranges and signatures of definitions.

use tree_sitter::Node;

use super::cx::{children, field};
use super::{NONE, Walker};
use crate::extract::leads;
use crate::extract::rules::{Body, Define, Name, Named, Roles, SignatureFrom, Tables, TestProbe, range_of};
use crate::extract::spans::{clamp, text_of, trimmed};
use crate::extract::types::{Arity, Definition, DefinitionKind};
use crate::model::ByteRange;

/// Limit on nested definitions. Names with all containers, and the definitions around a position, grow with the depth.
const MAX_NESTED: usize = 64;

/// The properties that a definition inherits from the node that wraps it.
#[derive(Clone, Copy)]
pub(super) struct Wrapped {
    /// The id of the wrapped definition's node.
    first: usize,
    range: ByteRange,
    /// The start of the signature; `None` if it starts at the definition.
    signature: Option<u32>,
}

impl Wrapped {
    /// The value for a wrapper without a definition.
    const NOTHING: Self = Self {
        first: 0,
        range: ByteRange { start: 0, end: 0 },
        signature: None,
    };

    fn applies_to(&self, node: Node<'_>) -> bool {
        self.first == node.id()
    }
}

/// The properties common to all names that one node declares.
struct Shape {
    range: ByteRange,
    /// The start of the signature, with and without the wrapper.
    start: u32,
    own_start: u32,
    /// The start of the body; `None` if there is no body.
    head_end: Option<u32>,
    doc: Option<ByteRange>,
    arity: Option<Arity>,
}

impl Shape {
    fn signature(&self, src: &[u8], kind: DefinitionKind) -> ByteRange {
        let end = match self.head_end {
            Some(end) if !is_shown_with_value(kind) => end,
            _ => bodiless_end(src, kind, self.own_start, self.range.end),
        };
        without_equals(src, trimmed(src, ByteRange::new(self.start, end.max(self.start))))
    }
}

impl<'t> Walker<'_, 't> {
    /// Returns the properties that the definition inside the wrapper `node` inherits. If the wrapper contains several
    /// definitions, only the first one inherits, and only if the text before it is on the same line.
    pub(super) fn wrap(&self, node: Node<'t>, from: SignatureFrom) -> Wrapped {
        let bearing = children(node).into_iter().filter(|child| {
            let roles = self.tables.roles_of(*child);
            roles.define.is_some() || roles.wrap.is_some()
        });
        let bearing: Vec<Node<'t>> = bearing.take(2).collect();
        let Some(first) = bearing.first() else {
            return Wrapped::NOTHING;
        };
        let outer = self
            .frames
            .last()
            .and_then(|frame| frame.wrap)
            .filter(|outer| outer.applies_to(node));
        let own = range_of(node);
        let range = outer.map_or(own, |outer| outer.range);
        let before = &self.src[range.start as usize..first.start_byte().min(self.src.len())];
        let range = match bearing.len() {
            1 => range,
            _ if before.contains(&b'\n') => return Wrapped::NOTHING,
            _ => ByteRange::new(range.start, first.end_byte() as u32),
        };
        let signature = match from {
            SignatureFrom::Wrapper => {
                let outer = outer.and_then(|outer| outer.signature);
                Some(outer.unwrap_or_else(|| signature_start(self.tables, node)))
            }
            SignatureFrom::Definition => None,
        };
        Wrapped {
            first: first.id(),
            range,
            signature,
        }
    }

    /// Records the definitions that `node` declares. Returns the first one, which becomes the container of definitions
    /// inside the node.
    pub(super) fn visit_definition(&mut self, node: Node<'t>, roles: &Roles) -> Option<u32> {
        let (define, name_field) = roles.define?;
        let owner = self.owner();
        if !define.includes_locals && owner.is_some_and(|owner| owner.kind.is_callable()) {
            return None;
        }
        if self.is_too_deep() {
            return None;
        }
        self.named.clear();
        self.find_names(node, define, name_field);
        if self.named.is_empty() {
            return None;
        }
        let shape = self.shape(node, define);
        let mut first = None;
        for i in 0..self.named.len() {
            let added = self.add_definition(define, &shape, i);
            first = first.or(added);
        }
        first
    }

    /// Returns true if a definition here would be nested more deeply than handwritten code is.
    fn is_too_deep(&self) -> bool {
        let owner = self
            .frames
            .last()
            .map(|frame| frame.owner)
            .filter(|owner| *owner != NONE);
        let container = |index: &u32| self.definitions.get(*index as usize)?.container;
        std::iter::successors(owner, container).nth(MAX_NESTED - 1).is_some()
    }

    fn owner(&self) -> Option<&Definition> {
        self.definitions.get(self.frames.last()?.owner as usize)
    }

    fn find_names(&mut self, node: Node<'t>, define: &Define, name_field: u16) {
        match define.name {
            Name::Field(_) => self.named.extend(node.child_by_field_id(name_field).map(Named::at)),
            Name::Child(kinds) => {
                let child = children(node).into_iter().find(|child| kinds.contains(&child.kind()));
                self.named.extend(child.map(Named::at));
            }
            Name::By(find) => {
                let cx = super::cx(self.src, self.tables, &self.frames, &self.definitions);
                find(&cx, node, &mut self.named);
            }
        }
    }

    /// Returns the properties common to all names that one node declares.
    fn shape(&self, node: Node<'t>, define: &Define) -> Shape {
        let wrapped = self
            .frames
            .last()
            .and_then(|frame| frame.wrap)
            .filter(|wrapped| wrapped.applies_to(node));
        let body = match define.body {
            Body::Fields(fields) => fields.iter().find_map(|name| field(node, name)).map(range_of),
            Body::Child(kinds) => children(node)
                .into_iter()
                .find(|child| kinds.contains(&child.kind()))
                .map(range_of),
            Body::By(find) => find(&self.cx(), node),
        };
        let start = wrapped.and_then(|wrapped| wrapped.signature);
        let start = start.unwrap_or_else(|| signature_start(self.tables, node));
        let body = body.map(|body| body.start).filter(|body| *body > start);
        Shape {
            range: trimmed(self.src, wrapped.map_or(range_of(node), |wrapped| wrapped.range)),
            start,
            own_start: start.max(node.start_byte() as u32),
            head_end: body.map(|body| self.comment_before(node, body).unwrap_or(body)),
            doc: define.doc.and_then(|find| find(&self.cx(), node)),
            arity: define.arity.and_then(|count| count(&self.cx(), node)),
        }
    }

    fn add_definition(&mut self, define: &Define, shape: &Shape, i: usize) -> Option<u32> {
        let name_range = without_backticks(self.src, clamp(self.src, self.named[i].range));
        let name = one_line(text_of(self.src, name_range));
        if name.trim().is_empty() {
            return None;
        }
        if define.is_clause
            && let Some(joined) = self.join_clause(&name, shape)
        {
            return Some(joined);
        }
        let mut container = self.frames.last().map_or(NONE, |frame| frame.owner);
        while define.ends_functions
            && let Some(outer) = self
                .definitions
                .get_mut(container as usize)
                .filter(|outer| outer.kind.is_callable())
        {
            outer.range.end = outer.range.end.min(shape.range.start);
            container = outer.container.unwrap_or(NONE);
        }
        let kind = self.named[i].kind.unwrap_or(define.kind);
        let kind = kind.within(self.definitions.get(container as usize).map(|owner| owner.kind));
        self.definitions.push(Definition {
            name,
            kind,
            container: (container != NONE).then_some(container),
            qualifier: self.named[i].qualifier.map(|range| text_of(self.src, range)),
            range: shape.range,
            name_range,
            signature: shape.signature(self.src, kind),
            doc: shape.doc,
            arity: shape.arity,
        });
        let index = self.definitions.len() as u32 - 1;
        if let Some(frame) = self.frames.last_mut() {
            frame.last_clause = if define.is_clause { index } else { NONE };
        }
        Some(index)
    }

    fn join_clause(&mut self, name: &str, shape: &Shape) -> Option<u32> {
        let last = self.frames.last()?.last_clause;
        let definition = self.definitions.get_mut(last as usize)?;
        // The first clause may only give default values.
        let most = |arity: Option<Arity>| arity.map(|arity| arity.most);
        if definition.name != name || most(definition.arity) != most(shape.arity) {
            return None;
        }
        definition.range.end = definition.range.end.max(shape.range.end);
        Some(last)
    }

    /// Returns the start of a comment between head and body that begins a line. Such a comment belongs to the body.
    fn comment_before(&self, node: Node<'t>, body_start: u32) -> Option<u32> {
        let before = children(node)
            .into_iter()
            .take_while(|child| (child.start_byte() as u32) < body_start);
        let comment = before.into_iter().find(|child| {
            self.tables.roles_of(*child).is_comment && leads::starts_line(self.src, child.start_byte() as u32)
        });
        comment.map(|comment| comment.start_byte() as u32)
    }
}

/// Returns the start of the first token after annotations and comments.
fn signature_start(tables: &Tables, node: Node<'_>) -> u32 {
    first_token(tables, node).unwrap_or_else(|| node.start_byte()) as u32
}

fn first_token(tables: &Tables, node: Node<'_>) -> Option<usize> {
    let mut cursor = node.walk();
    let mut goes_on = cursor.goto_first_child();
    // Annotations may be inside a child that groups the modifiers.
    let mut is_in_modifiers = false;
    loop {
        if !goes_on {
            if !is_in_modifiers {
                return None;
            }
            cursor.goto_parent();
            is_in_modifiers = false;
            goes_on = cursor.goto_next_sibling();
            continue;
        }
        let roles = tables.roles_of(cursor.node());
        if roles.is_modifiers && !is_in_modifiers && cursor.goto_first_child() {
            is_in_modifiers = true;
        } else if roles.is_annotation || roles.is_comment {
            goes_on = cursor.goto_next_sibling();
        } else {
            return Some(cursor.node().start_byte());
        }
    }
}

/// Returns true if the signature of a definition of this kind includes the first line of its value, which is
/// informative.
fn is_shown_with_value(kind: DefinitionKind) -> bool {
    matches!(
        kind,
        DefinitionKind::Variable | DefinitionKind::Constant | DefinitionKind::TypeAlias | DefinitionKind::Field
    )
}

/// Returns the end of a signature without a body. It is the end of a callable's declaration, or the end of the first
/// line of anything else.
fn bodiless_end(src: &[u8], kind: DefinitionKind, from: u32, end: u32) -> u32 {
    if kind.is_callable() || from >= end {
        return end;
    }
    let text = &src[from as usize..(end as usize).min(src.len())];
    memchr::memchr(b'\n', text).map_or(end, |at| from + at as u32)
}

/// Removes the `=` before the body from the end of a signature.
fn without_equals(src: &[u8], range: ByteRange) -> ByteRange {
    match &src[range.as_usize()] {
        [.., b' ', b'='] => trimmed(src, ByteRange::new(range.start, range.end - 1)),
        _ => range,
    }
}

/// Changes the kind of functions that are tests to [`DefinitionKind::Test`]. Leads and signatures must have been set.
pub(super) fn mark_tests(definitions: &mut [Definition], src: &[u8], tables: &Tables) {
    let is_test = tables.grammar.is_test;
    for i in 0..definitions.len() {
        let definition = &definitions[i];
        if !definition.kind.is_callable() || definition.kind == DefinitionKind::Test {
            continue;
        }
        let attributes = ByteRange::new(
            definition.range.start,
            definition.signature.start.max(definition.range.start),
        );
        let container = definition.container.map(|at| definitions[at as usize].name.as_str());
        let probe = TestProbe {
            name: &definition.name,
            attributes: &String::from_utf8_lossy(&src[attributes.as_usize()]),
            signature: &String::from_utf8_lossy(&src[definition.signature.as_usize()]),
            container: container.unwrap_or_default(),
        };
        if is_test(&probe) {
            definitions[i].kind = DefinitionKind::Test;
        }
    }
}

/// Joins the lines of a name with several lines, for example a list of selectors.
fn one_line(name: String) -> String {
    if !name.contains('\n') {
        return name;
    }
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_backticks(src: &[u8], range: ByteRange) -> ByteRange {
    match &src[range.as_usize()] {
        [b'`', .., b'`'] if range.len() > 2 => ByteRange::new(range.start + 1, range.end - 1),
        _ => range,
    }
}
