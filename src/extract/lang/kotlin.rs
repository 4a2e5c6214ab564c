//! Rules for Kotlin.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming};
use super::{Language, Structure};
use crate::extract::rules::{Grammar, Leaf, Mention, Named, Role, Rule, TestProbe, Zone, call, define, flat_path, on, range_of};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "kotlin",
    lang: Lang(10),
    aliases: &["kt"],
    extensions: &["kt", "kts"],
    file_names: &[],
    interpreters: &["kotlin"],
    structure: Structure::Grammar(&Grammar::new(|| tree_sitter_kotlin_ng::LANGUAGE.into(), &[RULES]).tests(is_test)),
};

const RULES: &[Rule] = &[
    on(&["package_header"], define(DefinitionKind::Module).name_child(&["qualified_identifier"]).role()),
    on(
        &["class_declaration"],
        define(DefinitionKind::Class).name_by(class_name).body_child(&["class_body", "enum_class_body"]).role(),
    ),
    on(&["object_declaration"], define(DefinitionKind::Class).body_child(&["class_body"]).role()),
    on(
        &["function_declaration"],
        define(DefinitionKind::Function).name_by(function_name).body_child(&["function_body"]).role(),
    ),
    on(
        &["secondary_constructor"],
        define(DefinitionKind::Constructor).name_by(keyword_name).body_child(&["block"]).role(),
    ),
    on(
        &["property_declaration"],
        define(DefinitionKind::Variable).name_by(property_name).body_child(&["getter", "setter"]).not_local().role(),
    ),
    on(&["class_parameter"], define(DefinitionKind::Field).name_by(parameter_field).role()),
    on(&["enum_entry"], define(DefinitionKind::Variant).name_child(&["identifier"]).body_child(&["class_body"]).role()),
    on(&["type_alias"], define(DefinitionKind::TypeAlias).name_field("type").role()),
    on(&["import"], Role::Import(import)),
    on(&["line_comment", "block_comment"], Role::Comment),
    on(&["annotation"], Role::Annotation),
    on(&["annotation"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["modifiers"], Role::Modifiers),
    on(&["delegation_specifiers"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["explicit_delegation"], Role::Zone(Zone::Plain)),
    on(&["explicit_delegation"], Role::Mention(delegated)),
    on(&["value_arguments", "type_arguments", "annotated_lambda"], Role::Zone(Zone::Plain)),
    on(&["user_type"], Role::Zone(Zone::Else(ReferenceKind::Type))),
    on(&["user_type", "navigation_expression"], flat_path()),
    on(&["call_expression"], call("")),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
];

fn is_test(probe: &TestProbe<'_>) -> bool {
    ["Test", "ParameterizedTest", "RepeatedTest", "TestFactory"].iter().any(|name| probe.has_attribute(name))
}

/// Finds the name and kind of a class, interface or enum. All three have the same node kind.
fn class_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let is_interface = node.children(&mut cursor).any(|child| child.kind() == "interface");
    let kind = match child_of_kind(node, "enum_class_body") {
        Some(_) => DefinitionKind::Enum,
        None if is_interface => DefinitionKind::Interface,
        None => DefinitionKind::Class,
    };
    names.extend(field(node, "name").map(|name| Named::at(name).of(kind)));
}

/// Finds the name of a function. The qualifier of an extension function is its receiver: `List` in
/// `fun <T> List<T>.describe()`.
fn function_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name") else { return };
    let mut named = Named::at(name);
    named.qualifier = receiver(cx, node, name);
    if named.qualifier.is_some() {
        named.kind = Some(DefinitionKind::Method);
    }
    names.push(named);
}

fn receiver<'t>(_: &Cx<'_, 't>, node: Node<'t>, name: Node<'t>) -> Option<ByteRange> {
    let receiver = children(node).into_iter().take_while(|child| child.end_byte() < name.end_byte());
    let receiver = receiver.into_iter().find(|child| child.kind() == "user_type")?;
    child_of_kind(receiver, "identifier").map(range_of)
}

/// Finds the name of a constructor, which is the keyword `constructor`.
fn keyword_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let keyword = node.children(&mut cursor).find(|child| child.kind() == "constructor");
    names.extend(keyword.map(Named::at));
}

fn property_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(variable) = child_of_kind(node, "variable_declaration") else { return };
    let Some(name) = child_of_kind(variable, "identifier") else { return };
    let is_const = child_of_kind(node, "modifiers").is_some_and(|modifiers| cx.text(modifiers).contains("const"));
    let mut named = Named::at(name);
    named.qualifier = receiver(cx, node, variable);
    if is_const || is_screaming(cx.text(name)) {
        named.kind = Some(DefinitionKind::Constant);
    } else if child_of_kind(node, "getter").is_some() {
        named.kind = Some(DefinitionKind::Property);
    }
    names.push(named);
}

/// Finds the field that a constructor parameter declares: `b` in `class A(val b: B)`, but nothing in `class A(b: B)`.
fn parameter_field<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    if node.children(&mut cursor).any(|child| matches!(child.kind(), "val" | "var")) {
        names.extend(child_of_kind(node, "identifier").map(Named::at));
    }
}

/// Adds the type that `Flushable by transport` inherits from.
fn delegated<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let Some((range, qualifier)) = child_of_kind(node, "user_type").and_then(|of| cx.resolve(of)) else { return };
    mentions.push(Mention { kind: ReferenceKind::Inherit, range, qualifier });
}

fn import<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(path) = child_of_kind(node, "qualified_identifier") else { return true };
    let text = cx.text(path);
    let alias = child_of_kind(node, "identifier").map(|alias| cx.text(alias));
    let is_everything = cx.text(node).trim_end().ends_with('*');
    let (module, name) = match text.rsplit_once('.') {
        _ if is_everything => (text, "*"),
        Some((module, name)) => (module, name),
        None => ("", text),
    };
    let mut import = import_of(module, node);
    import.names.push(imported(name, alias));
    imports.push(import);
    true
}
