//! The rules of a grammar with the ids of node kinds and fields instead of their names.

use std::collections::HashMap;

use tree_sitter::Node;

use super::{BindFn, Define, ENDS, Grammar, ImportFn, LeadFn, Leaf, MentionFn, Name, Role, SignatureFrom, Zone};
use crate::extract::types::{BindingKind, Literal, ReferenceKind, Shape, Step};

/// The rules of a grammar, indexed by the ids of node kinds.
pub(crate) struct Tables {
    pub(crate) language: tree_sitter::Language,
    pub(crate) grammar: &'static Grammar,
    /// For each kind id, an index into `roles`. Kinds without a role have index 0.
    by_kind: Vec<u16>,
    roles: Vec<Roles>,
    /// The field of the arguments of a call, or 0.
    pub(crate) arguments: u16,
}

/// All roles of a node kind.
#[derive(Default)]
pub(crate) struct Roles {
    pub(crate) define: Option<(&'static Define, u16)>,
    pub(crate) wrap: Option<SignatureFrom>,
    pub(crate) is_comment: bool,
    pub(crate) lead: Option<LeadFn>,
    pub(crate) is_annotation: bool,
    pub(crate) is_modifiers: bool,
    pub(crate) call: Option<CompiledCall>,
    pub(crate) import: Option<ImportFn>,
    pub(crate) leaf: Option<Leaf>,
    pub(crate) path: Option<CompiledPath>,
    pub(crate) zone: Option<Zone>,
    pub(crate) field_zones: Vec<(u16, Zone)>,
    pub(crate) through: Option<u16>,
    pub(crate) step: Option<(u16, Option<Step>)>,
    pub(crate) literal: Option<Literal>,
    pub(crate) shape: Option<Shape>,
    pub(crate) is_scope: bool,
    pub(crate) binds: Vec<CompiledBind>,
    pub(crate) bind_by: Option<BindFn>,
    pub(crate) is_opaque: bool,
    pub(crate) mention: Option<MentionFn>,
    pub(crate) is_embedded: bool,
}

/// A [`Bind`] with field ids instead of names.
#[derive(Clone, Copy)]
pub(crate) struct CompiledBind {
    pub(crate) kind: BindingKind,
    pub(crate) name: u16,
    pub(crate) declared: u16,
    pub(crate) value: u16,
    pub(crate) step: Option<Step>,
}

/// A [`Callee`] with field ids instead of names.
#[derive(Clone, Copy)]
pub(crate) struct CompiledCall {
    pub(crate) field: u16,
    /// The field of the receiver, or 0 if the call has none.
    pub(crate) receiver: u16,
    pub(crate) kind: ReferenceKind,
}

/// A [`Path`] with field ids instead of names.
#[derive(Clone, Copy)]
pub(crate) struct CompiledPath {
    /// The field of the qualifier. In a flat path, both fields are 0.
    pub(crate) qualifier: u16,
    pub(crate) name: u16,
    /// True if the qualifier is the first and the name the last named child.
    pub(crate) is_ends: bool,
}

impl Tables {
    /// Converts the names in the rules to ids. Ignores names that the grammar does not contain; a test checks that
    /// there are none.
    pub(crate) fn compile(grammar: &'static Grammar, language: tree_sitter::Language) -> Self {
        let ids = kind_ids(&language);
        let mut by_kind = vec![0; language.node_kind_count() + 1];
        let mut roles = vec![Roles::default()];
        for rule in grammar.rules.iter().copied().flatten() {
            for kind in rule.kinds {
                for &id in ids.get(kind).map(Vec::as_slice).unwrap_or_default() {
                    let slot = &mut by_kind[usize::from(id)];
                    if *slot == 0 {
                        *slot = roles.len() as u16;
                        roles.push(Roles::default());
                    }
                    roles[usize::from(*slot)].add(&rule.role, &language);
                }
            }
        }
        drop(ids);
        let arguments = language.field_id_for_name("arguments");
        Self {
            arguments: arguments.map_or(0, std::num::NonZero::get),
            language,
            grammar,
            by_kind,
            roles,
        }
    }

    /// Returns the index of the roles of a kind, or 0 for a kind without a role.
    pub(crate) fn slot(&self, kind_id: u16) -> u16 {
        self.by_kind.get(usize::from(kind_id)).copied().unwrap_or(0)
    }

    /// Returns the roles at index `slot`.
    pub(crate) fn roles(&self, slot: u16) -> &Roles {
        &self.roles[usize::from(slot)]
    }

    /// Returns the roles of a node's kind.
    pub(crate) fn roles_of(&self, node: Node<'_>) -> &Roles {
        self.roles(self.slot(node.kind_id()))
    }
}

/// Returns the ids of all visible node kinds. Several ids may have the same name. Those of tokens without a name of
/// their own, such as `this`, are left out if there are others.
fn kind_ids(language: &tree_sitter::Language) -> HashMap<&str, Vec<u16>> {
    let mut ids: HashMap<&str, Vec<u16>> = HashMap::new();
    let visible = (0..language.node_kind_count() as u16).filter(|id| language.node_kind_is_visible(*id));
    let (named, tokens): (Vec<u16>, Vec<u16>) = visible.partition(|id| language.node_kind_is_named(*id));
    for id in named {
        if let Some(kind) = language.node_kind_for_id(id) {
            ids.entry(kind).or_default().push(id);
        }
    }
    for id in tokens {
        if let Some(kind) = language.node_kind_for_id(id) {
            ids.entry(kind).or_insert_with(|| vec![id]);
        }
    }
    ids
}

impl Roles {
    fn add(&mut self, role: &'static Role, language: &tree_sitter::Language) {
        // An empty field name would match any field.
        let field = |name: &str| match name {
            "" => 0,
            _ => language.field_id_for_name(name).map_or(0, std::num::NonZero::get),
        };
        match role {
            Role::Define(define) => {
                let name_field = match define.name {
                    Name::Field(name) => field(name),
                    _ => 0,
                };
                self.define = Some((define, name_field));
            }
            Role::Wrap(from) => self.wrap = Some(*from),
            Role::Comment => self.is_comment = true,
            Role::Lead(lead) => self.lead = Some(*lead),
            Role::Annotation => self.is_annotation = true,
            Role::Modifiers => self.is_modifiers = true,
            Role::Call(callee) => {
                self.call = Some(CompiledCall {
                    field: field(callee.field),
                    receiver: field(callee.receiver),
                    kind: callee.kind,
                });
            }
            Role::Import(import) => self.import = Some(*import),
            Role::Leaf(leaf) => self.leaf = Some(*leaf),
            Role::Path(path) => {
                self.path = Some(CompiledPath {
                    qualifier: field(path.qualifier),
                    name: field(path.name),
                    is_ends: path.name == ENDS,
                });
            }
            Role::Zone(zone) => self.zone = Some(*zone),
            Role::FieldZone(name, zone) => self.field_zones.push((field(name), *zone)),
            Role::Through(name) => self.through = Some(field(name)),
            Role::Step(around) => self.step = Some((field(around.field), around.step)),
            Role::Literal(literal) => self.literal = Some(*literal),
            Role::Shape(shape) => self.shape = Some(*shape),
            Role::Scope => self.is_scope = true,
            Role::Bind(bind) => self.binds.push(CompiledBind {
                kind: bind.kind,
                name: field(bind.name),
                declared: field(bind.declared),
                value: field(bind.value),
                step: bind.step,
            }),
            Role::BindBy(find) => self.bind_by = Some(*find),
            Role::Opaque => self.is_opaque = true,
            Role::Mention(mention) => self.mention = Some(*mention),
            Role::Embedded => self.is_embedded = true,
        }
    }
}
