//! Collects definitions, references and imports in one pass over a syntax tree.
//!
//! The walk does not depend on the language: it looks up node kinds in [`Tables`]. A tree may be as deep as the file is
//! long, so the walk uses its own stack of frames instead of recursion.

mod bindings;
mod cx;
mod definitions;
mod mentions;
mod names;

use tree_sitter::{Node, Tree, TreeCursor};

pub(crate) use self::cx::{Cx, child_of_kind, children, field};
use self::definitions::Wrapped;
use super::layout::Layout;
use super::leads::{self, LeadPiece};
use super::rules::{Lead, Mention, Named, Roles, Tables, Zone, range_of};
use super::spans::{clamp, trimmed};
use super::types::{Binding, Definition, Import, Reference, ReferenceKind};
use crate::model::ByteRange;

/// The owner of a frame that is not inside a definition.
const NONE: u32 = u32::MAX;

/// The result of a walk.
pub(crate) struct Facts {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) references: Vec<Reference>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) imports: Vec<Import>,
    /// The ranges of syntax errors and missing nodes.
    pub(crate) errors: Vec<ByteRange>,
    pub(crate) embedded: Vec<Part>,
}

/// A part of a file that is parsed separately.
pub(crate) struct Part {
    pub(crate) range: ByteRange,
    /// The name of the language.
    pub(crate) language: &'static str,
    /// The index of the definition that encloses the part.
    pub(crate) owner: Option<u32>,
}

/// Selects what the walk collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    All,
    /// All facts except references.
    Definitions,
}

/// Walks `tree` and records the depths of its lines in `layout`. The tree was parsed from `src`, possibly with a
/// newline added.
pub(crate) fn walk(tree: &Tree, src: &[u8], tables: &Tables, layout: &mut Layout, wanted: Wanted) -> Facts {
    let mut walker = Walker::new(src, tables, layout, wanted);
    walker.run(tree.walk());
    walker.finish()
}

/// Returns the number of syntax errors and missing nodes in `tree`.
pub(crate) fn n_errors(tree: &Tree) -> usize {
    let mut cursor = tree.walk();
    let mut n = 0;
    loop {
        let node = cursor.node();
        n += usize::from(node.is_error() || node.is_missing());
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return n;
            }
        }
    }
}

/// An ancestor of the visited node, with its context.
struct Frame<'t> {
    node: Node<'t>,
    slot: u16,
    zone: Zone,
    /// The innermost enclosing definition.
    owner: u32,
    /// The range in which names that are bound here are visible.
    scope: ByteRange,
    /// The last child that was a clause. If the next clause has the same name, it joins this one.
    last_clause: u32,
    /// The properties that a wrapped definition inherits from this node.
    wrap: Option<Wrapped>,
}

struct Walker<'a, 't> {
    wanted: Wanted,
    src: &'a [u8],
    tables: &'a Tables,
    layout: &'a mut Layout,
    frames: Vec<Frame<'t>>,
    definitions: Vec<Definition>,
    imports: Vec<Import>,
    mentions: Vec<Mention>,
    bindings: Vec<Binding>,
    leads: Vec<LeadPiece>,
    embedded: Vec<Part>,
    named: Vec<Named>,
    errors: Vec<ByteRange>,
}

/// The decision if the walk visits the children of a node, and their context.
enum Descend {
    No,
    Into {
        owner: u32,
        scope: ByteRange,
        zone: Zone,
        wrap: Option<Wrapped>,
    },
}

impl<'a, 't> Walker<'a, 't> {
    fn new(src: &'a [u8], tables: &'a Tables, layout: &'a mut Layout, wanted: Wanted) -> Self {
        Self {
            wanted,
            src,
            tables,
            layout,
            frames: Vec::with_capacity(64),
            definitions: Vec::new(),
            imports: Vec::new(),
            mentions: Vec::with_capacity(if wanted == Wanted::All { src.len() / 32 } else { 0 }),
            bindings: Vec::new(),
            leads: Vec::new(),
            embedded: Vec::new(),
            named: Vec::new(),
            errors: Vec::new(),
        }
    }

    fn run(&mut self, mut cursor: TreeCursor<'t>) {
        loop {
            let node = cursor.node();
            let slot = self.tables.slot(node.kind_id());
            if let Descend::Into {
                owner,
                scope,
                zone,
                wrap,
            } = self.visit(&cursor, node, slot)
                && cursor.goto_first_child()
            {
                let last_clause = NONE;
                self.frames.push(Frame {
                    node,
                    slot,
                    zone,
                    owner,
                    scope,
                    last_clause,
                    wrap,
                });
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                self.frames.pop();
            }
        }
    }

    fn visit(&mut self, cursor: &TreeCursor<'t>, node: Node<'t>, slot: u16) -> Descend {
        self.layout
            .see(node.start_position(), node.start_byte(), self.frames.len(), self.src);
        self.record_error(node);
        let file = ByteRange::new(0, range_of(node).end);
        let (owner, scope, inherited) = self.frames.last().map_or((NONE, file, Zone::Plain), |frame| {
            (frame.owner, frame.scope, frame.zone)
        });
        let by_field = self.zone_by_field(cursor);
        let inherited = by_field.unwrap_or(inherited);
        if slot == 0 {
            return Descend::Into {
                owner,
                scope,
                zone: inherited,
                wrap: None,
            };
        }
        let roles = self.tables.roles(slot);
        let zone = by_field.unwrap_or_else(|| self.zone_of(node, roles, inherited));
        let scope = if roles.is_scope { range_of(node) } else { scope };
        self.visit_with_roles(node, roles, owner, scope, zone)
    }

    fn visit_with_roles(&mut self, node: Node<'t>, roles: &Roles, owner: u32, scope: ByteRange, zone: Zone) -> Descend {
        if roles.is_comment {
            self.visit_comment(node);
            return Descend::No;
        }
        if let Some(leaf) = roles.leaf
            && self.wanted == Wanted::All
        {
            self.visit_leaf(node, leaf, zone);
        }
        if self.is_import(node, roles, scope) {
            let has_names = roles.zone == Some(Zone::As(ReferenceKind::Import)) && self.wanted == Wanted::All;
            return if has_names {
                Descend::Into {
                    owner,
                    scope,
                    zone,
                    wrap: None,
                }
            } else {
                Descend::No
            };
        }
        self.visit_embedded(node, roles);
        self.visit_lead(node, roles);
        if self.wanted == Wanted::All {
            self.visit_call(node, roles, zone);
            self.visit_bindings(node, roles, scope);
        }
        if let Some(mention) = roles.mention
            && self.wanted == Wanted::All
        {
            let cx = cx(self.src, self.tables, &self.frames, &self.definitions);
            mention(&cx, node, &mut self.mentions);
        }
        let wrap = roles.wrap.map(|from| self.wrap(node, from));
        let owner = self.visit_definition(node, roles).unwrap_or(owner);
        if roles.is_opaque {
            return Descend::No;
        }
        Descend::Into {
            owner,
            scope,
            zone,
            wrap,
        }
    }

    fn cx(&self) -> Cx<'_, 't> {
        cx(self.src, self.tables, &self.frames, &self.definitions)
    }

    fn record_error(&mut self, node: Node<'t>) {
        let is_missing = node.start_byte() == node.end_byte() && node.is_missing();
        if is_missing || node.is_error() {
            self.errors.push(clamp(self.src, range_of(node)));
        }
    }

    fn zone_by_field(&self, cursor: &TreeCursor<'t>) -> Option<Zone> {
        let zones = &self.tables.roles(self.frames.last()?.slot).field_zones;
        if zones.is_empty() {
            return None;
        }
        let id = cursor.field_id()?.get();
        zones.iter().find(|(field, _)| *field == id).map(|(_, zone)| *zone)
    }

    fn zone_of(&self, node: Node<'t>, roles: &Roles, inherited: Zone) -> Zone {
        match (roles.zone, inherited) {
            (Some(Zone::Else(kind)), Zone::Plain) => return Zone::As(kind),
            (Some(Zone::Else(_)) | None, _) => {}
            (Some(zone), _) => return zone,
        }
        if roles.path.is_some() && self.is_qualifier(node) {
            return Zone::Plain;
        }
        inherited
    }

    fn visit_comment(&mut self, node: Node<'t>) {
        let range = trimmed(self.src, range_of(node));
        let starts_line = leads::starts_line(self.src, range.start);
        if starts_line {
            let last = node.end_position().row - usize::from(node.end_position().column == 0);
            self.layout.mark_comment(node.start_position().row, last);
        }
        let text = &self.src[range.as_usize()];
        let is_inner = self
            .tables
            .grammar
            .inner_docs
            .iter()
            .any(|start| text.starts_with(start.as_bytes()));
        if is_inner {
            return;
        }
        // A comment behind an attribute documents nothing, but does not separate the attribute from the definition.
        let follows_lead = || {
            let last = self.leads.last().filter(|last| last.range.end <= range.start);
            last.is_some_and(|last| {
                let between = &self.src[last.range.end as usize..range.start as usize];
                between.iter().all(|byte| matches!(byte, b' ' | b'\t'))
            })
        };
        if starts_line || follows_lead() {
            let doc = starts_line.then_some(range);
            self.leads.push(LeadPiece { range, doc });
        }
    }

    fn visit_lead(&mut self, node: Node<'t>, roles: &Roles) {
        let Some(lead) = roles.lead else { return };
        let doc = match lead(&self.cx(), node) {
            None => return,
            Some(Lead::Doc(range)) => Some(range),
            Some(Lead::Attribute) => None,
        };
        self.leads.push(LeadPiece {
            range: trimmed(self.src, range_of(node)),
            doc,
        });
    }

    fn is_import(&mut self, node: Node<'t>, roles: &Roles, scope: ByteRange) -> bool {
        let Some(import) = roles.import else { return false };
        let n_before = self.imports.len();
        let cx = cx(self.src, self.tables, &self.frames, &self.definitions);
        let is_import = import(&cx, node, &mut self.imports);
        let of_file = self.frames.first().map_or(scope, |root| root.scope);
        for import in &mut self.imports[n_before..] {
            import.scope = Some(scope).filter(|scope| *scope != of_file);
        }
        is_import
    }

    fn visit_embedded(&mut self, node: Node<'t>, roles: &Roles) {
        let Some(embedded) = self.tables.grammar.embedded.filter(|_| roles.is_embedded) else {
            return;
        };
        let owner = self.frames.last().map_or(NONE, |frame| frame.owner);
        let owner = (owner != NONE).then_some(owner);
        let part = embedded(&self.cx(), node);
        self.embedded
            .extend(part.map(|(range, language)| Part { range, language, owner }));
    }

    fn finish(mut self) -> Facts {
        leads::attach(&mut self.definitions, &self.leads, self.src);
        definitions::mark_tests(&mut self.definitions, self.src, self.tables);
        let bindings = bindings::settle(self.bindings, &self.definitions);
        let references = mentions::settle(self.mentions, &self.definitions, &bindings, self.src);
        Facts {
            definitions: self.definitions,
            references,
            bindings,
            imports: self.imports,
            errors: self.errors,
            embedded: self.embedded,
        }
    }
}

/// Creates a context from fields of the walker, for callers that modify its other fields at the same time.
fn cx<'a, 't>(src: &'a [u8], tables: &'a Tables, frames: &'a [Frame<'t>], definitions: &'a [Definition]) -> Cx<'a, 't> {
    Cx {
        src,
        tables,
        frames,
        definitions,
    }
}
