//! Rules for Scala.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming, unquoted};
use super::standard::Standard;
use super::{Extensions, Language, Profile, Structure};
use crate::extract::rules::{
    Grammar, Leaf, Named, Role, Rule, TestProbe, Zone, call, define, flat_path, on, path, range_of,
};
use crate::extract::types::{DefinitionKind, Import, ImportedName, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "scala",
    lang: Lang(15),
    aliases: &[],
    extensions: &["scala", "sc", "sbt", "mill"],
    file_names: &[],
    interpreters: &["scala", "amm", "scala-cli"],
    profile: Profile {
        has_overloads: true,
        has_implicit_this: true,
        has_package_clause: true,
        standard: Standard::SCALA,
        extensions: Extensions::Anywhere,
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(&Grammar::new("scala", &[RULES]).tests(is_test)),
};

const RULES: &[Rule] = &[
    on(&["package_clause"], define(DefinitionKind::Module).role()),
    on(&["package_object"], define(DefinitionKind::Module).role()),
    on(&["class_definition", "object_definition"], define(DefinitionKind::Class).role()),
    on(&["trait_definition"], define(DefinitionKind::Trait).role()),
    on(&["enum_definition"], define(DefinitionKind::Enum).role()),
    on(&["simple_enum_case", "full_enum_case"], define(DefinitionKind::Variant).role()),
    on(&["given_definition"], define(DefinitionKind::Impl).role()),
    on(
        &["function_definition", "function_declaration"],
        define(DefinitionKind::Function).name_by(function_name).role(),
    ),
    on(
        &["val_definition", "var_definition", "val_declaration", "var_declaration"],
        define(DefinitionKind::Variable).name_by(value_name).body_by(value_block).not_local().role(),
    ),
    on(&["type_definition"], define(DefinitionKind::TypeAlias).not_local().role()),
    on(&["class_parameter"], define(DefinitionKind::Field).name_by(parameter_field).role()),
    on(&["call_expression"], define(DefinitionKind::Test).name_by(test_name).body_by(test_body).role()),
    on(&["infix_expression"], define(DefinitionKind::Test).name_by(sentence).body_fields(&["right"]).role()),
    on(&["import_declaration"], Role::Import(import)),
    on(&["export_declaration"], Role::Import(export)),
    on(&["comment", "block_comment"], Role::Comment),
    on(&["annotation"], Role::Annotation),
    on(&["annotation"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["extends_clause"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["arguments", "type_arguments"], Role::Zone(Zone::Plain)),
    on(&["call_expression"], call("function")),
    on(&["instance_expression"], call("")),
    on(&["generic_function"], Role::Through("function")),
    on(&["generic_type"], Role::Through("type")),
    on(&["field_expression"], path("value", "field")),
    on(&["stable_type_identifier", "stable_identifier"], flat_path()),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
];

fn is_test(probe: &TestProbe<'_>) -> bool {
    probe.has_attribute("Test")
}

fn function_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name") else { return };
    let is_constructor = cx.text(name) == "this";
    names.push(if is_constructor { Named::at(name).of(DefinitionKind::Constructor) } else { Named::at(name) });
}

fn value_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "pattern").or_else(|| field(node, "name")) else { return };
    if name.kind() == "identifier" {
        let is_constant = is_screaming(cx.text(name));
        names.push(if is_constant { Named::at(name).of(DefinitionKind::Constant) } else { Named::at(name) });
    }
}

/// Returns the value of a definition if it is a block, which is not part of the signature.
fn value_block<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let value = field(node, "value")?;
    matches!(value.kind(), "block" | "indented_block").then(|| range_of(value))
}

/// Finds the field that a class parameter declares: `b` in `class A(val b: B)`, but nothing in `class A(b: B)`.
fn parameter_field<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let mut has_keyword = node.children(&mut cursor).map(|child| child.kind()).filter(|kind| matches!(*kind, "val" | "var"));
    if has_keyword.next().is_some() {
        names.extend(field(node, "name").map(Named::at));
    }
}

/// Finds the title in `test("…") { … }`, `describe("…") { … }` and `it("…") { … }`.
fn test_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    const NAMES: [&str; 8] = ["test", "it", "describe", "they", "scenario", "feature", "property", "ignore"];
    let Some(inner) = field(node, "function").filter(|inner| inner.kind() == "call_expression") else { return };
    let Some(callee) = field(inner, "function").filter(|callee| callee.kind() == "identifier") else { return };
    if !NAMES.contains(&cx.text(callee)) {
        return;
    }
    let title = field(inner, "arguments").and_then(|arguments| arguments.named_child(0));
    let title = title.filter(|title| title.kind() == "string");
    names.extend(title.map(|title| Named { range: unquoted(cx, title), kind: None, qualifier: None }));
}

fn test_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    field(node, "arguments").map(range_of)
}

/// Finds the title in `"an uploader" should "retry" in { … }`.
fn sentence<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let operator = field(node, "operator").map(|operator| cx.text(operator));
    if !matches!(operator, Some("in" | "should" | "when" | "must" | "ignore")) {
        return;
    }
    let is_block = field(node, "right").is_some_and(|right| matches!(right.kind(), "block" | "indented_block"));
    let Some(left) = field(node, "left").filter(|_| is_block) else { return };
    let range = if left.kind() == "string" { unquoted(cx, left) } else { range_of(left) };
    names.push(Named { range, kind: None, qualifier: None });
}

fn import<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    add_imports(cx, node, false, imports);
    true
}

fn export<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    add_imports(cx, node, true, imports);
    true
}

/// Adds the imports of `import a.b.C`, `import a.{B, C => D, _}` and `import a.*`.
fn add_imports<'t>(cx: &Cx<'_, 't>, node: Node<'t>, is_reexport: bool, imports: &mut Vec<Import>) {
    let mut cursor = node.walk();
    let segments: Vec<&str> = node
        .children_by_field_name("path", &mut cursor)
        .filter(|part| part.is_named())
        .map(|part| cx.text(part))
        .collect();
    let mut names = Vec::new();
    for part in children(node) {
        match part.kind() {
            "namespace_selectors" => names.extend(children(part).into_iter().filter_map(|part| selected(cx, part))),
            "namespace_wildcard" => names.push(imported("*", None)),
            "as_renamed_identifier" | "arrow_renamed_identifier" => names.extend(selected(cx, part)),
            _ => {}
        }
    }
    let (module, last) = match segments.split_last() {
        Some((last, module)) if names.is_empty() => (module.join("."), Some(*last)),
        _ => (segments.join("."), None),
    };
    let mut import = import_of(&module, node);
    names.extend(last.map(|name| imported(name, None)));
    import.names = names;
    import.is_reexport = is_reexport;
    imports.push(import);
}

fn selected<'t>(cx: &Cx<'_, 't>, part: Node<'t>) -> Option<ImportedName> {
    match part.kind() {
        "namespace_wildcard" => Some(imported("*", None)),
        "identifier" => Some(imported(cx.text(part), None)),
        _ => {
            let name = field(part, "name").or_else(|| child_of_kind(part, "identifier"))?;
            Some(imported(cx.text(name), field(part, "alias").map(|alias| cx.text(alias))))
        }
    }
}
