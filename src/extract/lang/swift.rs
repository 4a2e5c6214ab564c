//! Rules for Swift.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming};
use super::standard::Standard;
use super::{Extensions, Language, Profile, Structure};
use crate::extract::rules::{Grammar, Leaf, Named, Role, Rule, TestProbe, Zone, call, define, flat_path, on, path};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, field};
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "swift",
    lang: Lang(14),
    aliases: &[],
    extensions: &["swift", "swiftinterface"],
    file_names: &[],
    interpreters: &["swift"],
    profile: Profile {
        has_overloads: true,
        has_implicit_this: true,
        standard: Standard::SWIFT,
        extensions: Extensions::Blocks,
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(&Grammar::new("swift", &[RULES]).tests(is_test)),
};

const RULES: &[Rule] = &[
    on(&["class_declaration"], define(DefinitionKind::Class).name_by(type_name).role()),
    on(&["protocol_declaration"], define(DefinitionKind::Interface).role()),
    on(&["function_declaration", "protocol_function_declaration"], define(DefinitionKind::Function).role()),
    on(&["init_declaration"], define(DefinitionKind::Constructor).role()),
    on(&["deinit_declaration", "subscript_declaration"], define(DefinitionKind::Method).name_by(keyword_name).role()),
    on(
        &["property_declaration", "protocol_property_declaration"],
        define(DefinitionKind::Variable).name_by(property_name).body_fields(&["computed_value"]).not_local().role(),
    ),
    on(&["enum_entry"], define(DefinitionKind::Variant).name_by(case_names).role()),
    on(&["typealias_declaration", "associatedtype_declaration"], define(DefinitionKind::TypeAlias).role()),
    on(&["import_declaration"], Role::Import(import)),
    on(&["comment", "multiline_comment"], Role::Comment),
    on(&["modifiers"], Role::Modifiers),
    on(&["attribute"], Role::Annotation),
    on(&["attribute"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["inheritance_specifier"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["type_arguments", "value_arguments", "call_suffix"], Role::Zone(Zone::Plain)),
    on(&["call_expression", "constructor_expression"], call("")),
    on(&["macro_invocation"], Role::Zone(Zone::Plain)),
    on(&["navigation_expression"], path("target", "suffix")),
    on(&["navigation_suffix"], Role::Through("suffix")),
    on(&["user_type"], flat_path()),
    on(&["simple_identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
];

fn is_test(probe: &TestProbe<'_>) -> bool {
    let is_named = probe.name.starts_with("test") && probe.container.contains("Test");
    is_named || probe.has_attribute("Test")
}

/// Finds the name and kind of a class, struct, enum, actor or extension. All of these have the same node kind.
fn type_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name") else { return };
    let kind = match field(node, "declaration_kind").map(|kind| kind.kind()) {
        Some("struct") => DefinitionKind::Struct,
        Some("enum") => DefinitionKind::Enum,
        Some("extension") => DefinitionKind::Impl,
        _ => DefinitionKind::Class,
    };
    let range = cx.resolve(name).map(|(range, _)| range);
    let mut named = Named::at(name).of(kind);
    named.range = range.unwrap_or(named.range);
    names.push(named);
}

/// Finds the name of `deinit` and `subscript`, which is the keyword.
fn keyword_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let keyword = node.children(&mut cursor).find(|child| matches!(child.kind(), "deinit" | "subscript"));
    names.extend(keyword.map(Named::at));
}

fn property_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let pattern = field(node, "name");
    let Some(name) = pattern.and_then(|pattern| field(pattern, "bound_identifier")) else { return };
    let named = Named::at(name);
    let is_computed = field(node, "computed_value").is_some();
    names.push(match is_computed {
        true => named.of(DefinitionKind::Property),
        false if is_screaming(cx.text(name)) => named.of(DefinitionKind::Constant),
        false => named,
    });
}

/// Finds all names of a case declaration: `case broken, cancelled` has two.
fn case_names<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    names.extend(node.children_by_field_name("name", &mut cursor).map(Named::at));
}

/// Adds an import. `import struct Queue.Job` imports one name.
fn import<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    const KINDS: [&str; 8] = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"];
    let Some(path) = child_of_kind(node, "identifier") else { return true };
    let text = cx.text(path);
    let before = &cx.text(node)[..path.start_byte() - node.start_byte()];
    let is_one_name = before.split_whitespace().any(|word| KINDS.contains(&word));
    let (module, name) = match text.rsplit_once('.') {
        Some((module, name)) if is_one_name => (module, name),
        _ => (text, ""),
    };
    let mut import = import_of(module, node);
    if !name.is_empty() {
        import.names.push(imported(name, None));
    }
    import.is_reexport = before.contains("@_exported");
    imports.push(import);
    true
}
