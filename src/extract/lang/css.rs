//! Rules for CSS.

use tree_sitter::Node;

use super::text::{import_of, without_quotes};
use super::{Language, Profile, Structure};
use crate::extract::rules::{Grammar, Named, Role, Rule, define, on, range_of};
use crate::extract::types::{DefinitionKind, Import};
use crate::extract::walk::{Cx, child_of_kind, children};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "css",
    lang: Lang(32),
    aliases: &[],
    extensions: &["css", "pcss", "postcss"],
    file_names: &[],
    interpreters: &[],
    profile: Profile { attributes: &[], ..Profile::C_LIKE },
    structure: Structure::Data(&Grammar::new("css", &[RULES])),
};

const RULES: &[Rule] = &[
    on(&["rule_set"], define(DefinitionKind::Rule).name_child(&["selectors"]).body_child(&["block"]).role()),
    on(
        &["media_statement", "supports_statement", "at_rule", "keyframes_statement"],
        define(DefinitionKind::Rule).name_by(at_rule).body_child(BLOCKS).role(),
    ),
    on(&["declaration"], define(DefinitionKind::Variable).name_by(custom_property).body_child(&[]).role()),
    on(&["import_statement"], Role::Import(import)),
    on(&["comment", "js_comment"], Role::Comment),
];

const BLOCKS: &[&str] = &["block", "keyframe_block_list"];

/// Finds the name of an at-rule, which is everything before the block, for example `@media (max-width: 600px)`.
fn at_rule<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(block) = children(node).into_iter().find(|child| BLOCKS.contains(&child.kind())) else { return };
    let whole = ByteRange::new(node.start_byte() as u32, block.start_byte() as u32);
    let len = cx.slice(whole).trim_end().len() as u32;
    names.push(Named { range: ByteRange::new(whole.start, whole.start + len), kind: None, qualifier: None });
}

/// Finds the name of a custom property, for example `--main-color`.
fn custom_property<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = child_of_kind(node, "property_name").filter(|name| cx.text(*name).starts_with("--"));
    names.extend(name.map(Named::at));
}

fn import<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(first) = node.named_child(0) else { return true };
    let arguments = child_of_kind(first, "arguments").and_then(|arguments| arguments.named_child(0));
    let range = range_of(arguments.unwrap_or(first));
    imports.push(import_of(without_quotes(cx.slice(range)), node));
    true
}
