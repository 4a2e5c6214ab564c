//! Rules for TOML: tables and their keys.

use tree_sitter::Node;

use super::{Language, Profile, Structure};
use crate::extract::rules::{Grammar, Named, Role, Rule, define, on};
use crate::extract::types::DefinitionKind;
use crate::extract::walk::Cx;
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "toml",
    lang: Lang(35),
    aliases: &[],
    extensions: &["toml"],
    file_names: &["Pipfile", "Cargo.toml.orig"],
    interpreters: &[],
    profile: Profile::HASH,
    structure: Structure::Data(&Grammar::new("toml", &[RULES])),
};

const RULES: &[Rule] = &[
    on(&["table", "table_array_element"], define(DefinitionKind::Key).name_child(KEYS).body_child(&["pair"]).role()),
    on(&["pair"], define(DefinitionKind::Key).name_by(key).body_fields(&[]).role()),
    on(&["comment"], Role::Comment),
];

const KEYS: &[&str] = &["bare_key", "dotted_key", "quoted_key"];

/// Finds the name of a key. Keys of inline tables are data, not names.
fn key<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    if cx.parent_kind() != "inline_table" {
        names.extend(node.named_child(0).map(Named::at));
    }
}
