//! Rules for Zig.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming, unquoted, without_quotes};
use super::{Language, Profile, Structure};
use crate::extract::rules::{Grammar, Leaf, Named, Role, Rule, Zone, call, define, on, path};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "zig",
    lang: Lang(20),
    aliases: &[],
    extensions: &["zig", "zon"],
    file_names: &[],
    interpreters: &[],
    profile: Profile::C_LIKE,
    structure: Structure::Grammar(&Grammar::new("zig", &[RULES]).inner_docs(&["//!"])),
};

const RULES: &[Rule] = &[
    on(&["function_declaration"], define(DefinitionKind::Function).role()),
    on(&["variable_declaration"], define(DefinitionKind::Variable).name_by(declared).body_by(type_body).role()),
    on(&["container_field"], define(DefinitionKind::Field).name_by(container_field).role()),
    on(&["test_declaration"], define(DefinitionKind::Test).name_by(test_name).body_child(&["block"]).role()),
    on(&["variable_declaration"], Role::Import(imported_as)),
    on(&["using_namespace_declaration"], Role::Import(using)),
    on(&["comment"], Role::Comment),
    on(
        &["parameter", "container_field", "function_declaration", "variable_declaration"],
        Role::FieldZone("type", Zone::As(ReferenceKind::Type)),
    ),
    on(&["builtin_function", "arguments"], Role::Zone(Zone::Plain)),
    on(&["call_expression"], call("function")),
    on(&["field_expression"], path("object", "member")),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
];

/// Returns the value of a declaration, which is its last child.
fn value(node: Node<'_>) -> Option<Node<'_>> {
    children(node).into_iter().skip(1).last()
}

fn type_kind(value: Node<'_>) -> Option<DefinitionKind> {
    match value.kind() {
        "struct_declaration" | "opaque_declaration" => Some(DefinitionKind::Struct),
        "enum_declaration" | "error_set_declaration" => Some(DefinitionKind::Enum),
        "union_declaration" => Some(DefinitionKind::Union),
        _ => None,
    }
}

/// Finds the name that `const` or `var` declares. The grammar also parses assignments as declarations; these are
/// skipped.
fn declared<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let keyword = node.children(&mut cursor).map(|child| child.kind()).find(|kind| matches!(*kind, "const" | "var"));
    let (Some(keyword), Some(name)) = (keyword, child_of_kind(node, "identifier")) else { return };
    let is_local = cx.owner_kind().is_some_and(DefinitionKind::is_callable);
    let kind = match value(node).and_then(type_kind) {
        Some(kind) => kind,
        None if is_local || is_this(cx, node) => return,
        None if keyword == "const" || is_screaming(cx.text(name)) => DefinitionKind::Constant,
        None => DefinitionKind::Variable,
    };
    names.push(Named::at(name).of(kind));
}

/// Returns true for `const Self = @This();`, which gives an existing definition a second name.
fn is_this(cx: &Cx<'_, '_>, node: Node<'_>) -> bool {
    value(node).is_some_and(|value| cx.text(value).starts_with("@This"))
}

/// Returns the braces of a type.
fn type_body<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let value = value(node).filter(|value| type_kind(*value).is_some())?;
    let brace = cx.text(value).find('{')?;
    Some(ByteRange::new((value.start_byte() + brace) as u32, value.end_byte() as u32))
}

fn container_field<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let is_case = matches!(cx.owner_kind(), Some(DefinitionKind::Enum | DefinitionKind::Union));
    let kind = if is_case { DefinitionKind::Variant } else { DefinitionKind::Field };
    names.extend(field(node, "name").map(|name| Named::at(name).of(kind)));
}

/// Finds the title of a test, or its keyword if the test has no title.
fn test_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = child_of_kind(node, "string").map(|name| unquoted(cx, name));
    let keyword = ByteRange::new(node.start_byte() as u32, (node.start_byte() + "test".len()) as u32);
    names.push(Named { range: name.unwrap_or(keyword), kind: None, qualifier: None });
}

/// Adds the import of `const Job = @import("job.zig").Job;`.
fn imported_as<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(mut value) = value(node) else { return false };
    let taken = (value.kind() == "field_expression").then(|| field(value, "member")).flatten();
    if taken.is_some() {
        value = field(value, "object").unwrap_or(value);
    }
    let (Some(module), Some(name)) = (imported_module(cx, value), child_of_kind(node, "identifier")) else {
        return false;
    };
    let mut import = import_of(module, node);
    import.names.push(imported(taken.map_or("", |taken| cx.text(taken)), Some(cx.text(name))));
    import.is_reexport = cx.text(node).starts_with("pub ");
    imports.push(import);
    true
}

fn using<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(module) = node.named_child(0).and_then(|value| imported_module(cx, value)) else { return false };
    let mut import = import_of(module, node);
    import.names.push(imported("*", None));
    imports.push(import);
    true
}

fn imported_module<'a, 't>(cx: &Cx<'a, 't>, value: Node<'t>) -> Option<&'a str> {
    let name = child_of_kind(value, "builtin_identifier").filter(|_| value.kind() == "builtin_function")?;
    let is_import = matches!(cx.text(name), "@import" | "@cImport" | "@embedFile");
    let argument = child_of_kind(value, "arguments").filter(|_| is_import)?.named_child(0)?;
    (argument.kind() == "string").then(|| without_quotes(cx.text(argument)))
}
