//! Rules for HTML and similar formats: elements with an id, and embedded scripts and styles.

use tree_sitter::Node;

use super::text::{import_of, without_quotes};
use super::{Language, Profile, Structure};
use crate::extract::rules::{Grammar, Named, Role, Rule, define, on, range_of};
use crate::extract::types::{DefinitionKind, Import};
use crate::extract::walk::{Cx, child_of_kind, children};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "html",
    lang: Lang(31),
    aliases: &["vue", "svelte", "xhtml"],
    extensions: &["html", "htm", "xhtml", "vue", "svelte", "astro"],
    file_names: &[],
    interpreters: &[],
    profile: Profile { has_hidden_code: true, ..Profile::MARKUP },
    structure: Structure::Data(&Grammar::new("html", &[RULES]).embeds(embedded)),
};

const RULES: &[Rule] = &[
    on(
        &["element", "script_element", "style_element"],
        define(DefinitionKind::Element).name_by(id).body_by(content).role(),
    ),
    on(&["script_element"], Role::Import(script_source)),
    on(&["element"], Role::Import(stylesheet)),
    on(&["raw_text"], Role::Embedded),
    on(&["comment"], Role::Comment),
];

fn start_tag(element: Node<'_>) -> Option<Node<'_>> {
    children(element).into_iter().next().filter(|tag| matches!(tag.kind(), "start_tag" | "self_closing_tag"))
}

/// Returns the range of an attribute's value without the quotes.
fn attribute<'t>(cx: &Cx<'_, 't>, tag: Node<'t>, name: &str) -> Option<ByteRange> {
    let is_called = |attribute: &Node<'t>| {
        child_of_kind(*attribute, "attribute_name").is_some_and(|found| cx.text(found).eq_ignore_ascii_case(name))
    };
    let attribute = children(tag).into_iter().find(is_called)?;
    let quoted = child_of_kind(attribute, "quoted_attribute_value").unwrap_or(attribute);
    child_of_kind(quoted, "attribute_value").map(range_of)
}

fn id<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let range = start_tag(node).and_then(|tag| attribute(cx, tag, "id"));
    names.extend(range.map(|range| Named { range, kind: None, qualifier: None }));
}

/// Returns the range after the start tag.
fn content<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let end = start_tag(node)?.end_byte() as u32;
    Some(ByteRange::new(end, node.end_byte() as u32))
}

fn script_source<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    add_file(cx, node, "src", imports);
    false
}

fn stylesheet<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(tag) = start_tag(node) else { return false };
    if child_of_kind(tag, "tag_name").is_some_and(|name| cx.text(name) == "link") {
        add_file(cx, node, "href", imports);
    }
    false
}

fn add_file<'t>(cx: &Cx<'_, 't>, element: Node<'t>, name: &str, imports: &mut Vec<Import>) {
    let Some(tag) = start_tag(element) else { return };
    if let Some(file) = attribute(cx, tag, name) {
        imports.push(import_of(without_quotes(cx.slice(file)), tag));
    }
}

/// Finds an embedded style or script. Styles are CSS. Scripts are JavaScript, or TypeScript if the attribute `lang`
/// names it. Skips scripts of other types.
fn embedded<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<(ByteRange, &'static str)> {
    let element = cx.parent()?;
    let range = range_of(node);
    if element.kind() == "style_element" {
        return Some((range, "css"));
    }
    let tag = start_tag(element)?;
    let said = |name: &str| attribute(cx, tag, name).map_or("", |range| cx.slice(range));
    match (said("lang"), said("type")) {
        ("ts" | "tsx" | "typescript", _) => Some((range, "typescript")),
        (_, "" | "module" | "text/javascript" | "application/javascript" | "text/babel") => Some((range, "javascript")),
        _ => None,
    }
}
