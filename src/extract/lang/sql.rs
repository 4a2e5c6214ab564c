//! Rules for SQL: the objects that statements create.

use tree_sitter::Node;

use super::{Language, Profile, Structure};
use crate::extract::rules::{Grammar, Leaf, Mention, Named, Role, Rule, SignatureFrom, call, define, on, path};
use crate::extract::types::{DefinitionKind, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "sql",
    lang: Lang(36),
    aliases: &["mysql", "postgresql", "plsql", "sqlite"],
    extensions: &["sql", "ddl", "dml", "pgsql", "psql"],
    file_names: &[],
    interpreters: &[],
    profile: Profile::DASHES,
    structure: Structure::Data(&Grammar::new("sql", &[RULES])),
};

const RULES: &[Rule] = &[
    on(
        &["create_table", "create_view", "create_materialized_view", "create_sequence", "create_trigger"],
        define(DefinitionKind::Table).name_by(created).body_child(BODIES).role(),
    ),
    on(&["create_index"], define(DefinitionKind::Table).name_by(index_name).body_child(&["index_fields"]).role()),
    on(&["create_function"], define(DefinitionKind::Function).name_by(created).body_child(&["function_body"]).role()),
    on(&["create_type"], define(DefinitionKind::TypeAlias).name_by(created).role()),
    on(&["create_schema", "create_database"], define(DefinitionKind::Module).name_child(&["identifier"]).role()),
    on(&["column_definition"], define(DefinitionKind::Field).name_by(column).role()),
    on(&["statement"], Role::Wrap(SignatureFrom::Wrapper)),
    on(
        &["relation", "insert", "alter_table", "drop_table", "create_index", "column_definition", "constraint"],
        Role::Mention(tables),
    ),
    on(&["invocation"], call("")),
    on(&["object_reference"], path("schema", "name")),
    on(&["comment", "marginalia"], Role::Comment),
    on(&["identifier"], Role::Leaf(Leaf::Segment)),
];

const BODIES: &[&str] = &["column_definitions", "create_query"];

fn created<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = child_of_kind(node, "object_reference").and_then(|reference| field(reference, "name"));
    names.extend(name.map(Named::at));
}

fn index_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    names.extend(field(node, "column").map(Named::at));
}

/// Finds the name of a column in a `CREATE TABLE`. A statement that adds a column to a table is a change, not a
/// definition.
fn column<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    if cx.parent_kind() == "column_definitions" {
        names.extend(field(node, "name").map(Named::at));
    }
}

/// Adds the tables that a statement reads, writes or references.
fn tables<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    for reference in children(node).into_iter().filter(|child| child.kind() == "object_reference") {
        if let Some((range, qualifier)) = cx.resolve(reference) {
            mentions.push(Mention::new(ReferenceKind::Type, range, qualifier));
        }
    }
}
