//! Rules for Dart.

use tree_sitter::Node;

use super::text::{import_of, imported, unquoted, without_quotes};
use super::standard::Standard;
use super::{Extensions, Language, Profile, Structure};
use crate::extract::rules::{
    Grammar, Leaf, Named, Role, Rule, SignatureFrom, Zone, call, define, on, path, range_of,
};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "dart",
    lang: Lang(21),
    aliases: &[],
    extensions: &["dart"],
    file_names: &[],
    interpreters: &["dart"],
    profile: Profile {
        has_implicit_this: true,
        has_package_clause: true,
        standard: Standard::DART,
        extensions: Extensions::Blocks,
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(&Grammar::new("dart", &[RULES])),
};

const RULES: &[Rule] = &[
    on(&["library_name"], define(DefinitionKind::Module).name_child(&["dotted_identifier_list"]).role()),
    on(&["class_declaration"], define(DefinitionKind::Class).role()),
    on(&["mixin_declaration"], define(DefinitionKind::Trait).role()),
    on(&["enum_declaration"], define(DefinitionKind::Enum).role()),
    on(&["enum_entry"], define(DefinitionKind::Variant).role()),
    on(&["extension_declaration"], define(DefinitionKind::Impl).name_by(extension_name).role()),
    on(&["extension_type_declaration"], define(DefinitionKind::Class).role()),
    on(&["type_alias"], define(DefinitionKind::TypeAlias).name_child(&["type_identifier"]).role()),
    on(
        &["function_declaration", "local_function_declaration", "method_declaration"],
        define(DefinitionKind::Function).name_by(signed_name).body_child(&["function_body"]).role(),
    ),
    on(
        &["declaration", "external_function_declaration"],
        define(DefinitionKind::Field).name_by(member_names).role(),
    ),
    on(&["top_level_variable_declaration"], define(DefinitionKind::Variable).name_by(member_names).role()),
    on(&["call_expression"], define(DefinitionKind::Test).name_by(test_name).body_by(test_body).role()),
    on(&["member_declaration"], Role::Wrap(SignatureFrom::Wrapper)),
    on(&["import_or_export"], Role::Import(import)),
    on(&["part_directive", "part_of_directive"], Role::Import(part)),
    on(&["comment", "documentation_comment"], Role::Comment),
    on(&["annotation"], Role::Annotation),
    on(&["method_declaration", "declaration"], Role::Modifiers),
    on(&["annotation"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["superclass", "interfaces", "mixins"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["arguments", "type_arguments"], Role::Zone(Zone::Plain)),
    on(&["call_expression"], call("function")),
    on(&["member_expression"], path("object", "property")),
    on(&["type"], Role::Through("")),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
];

fn extension_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = field(node, "name").or_else(|| field(node, "class"));
    let range = name.and_then(|name| cx.resolve(name)).map(|(range, _)| range);
    names.extend(range.map(|range| Named { range, kind: None, qualifier: None }));
}

/// Returns the name that a signature declares, with its kind.
fn signed(signature: Node<'_>) -> Option<Named> {
    let mut signature = signature;
    if signature.kind() == "method_signature" {
        signature = signature.named_child(0)?;
    }
    let kind = match signature.kind() {
        "function_signature" => None,
        "getter_signature" | "setter_signature" => Some(DefinitionKind::Property),
        "operator_signature" => Some(DefinitionKind::Method),
        kind if kind.contains("constructor_signature") => Some(DefinitionKind::Constructor),
        _ => return None,
    };
    let name = last_name(signature).or_else(|| field(signature, "operator"))?;
    Some(Named { range: range_of(name), kind, qualifier: None })
}

/// Returns the last segment of a name: `local` for `Uploader.local`.
fn last_name(signature: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = signature.walk();
    let names = signature.children_by_field_name("name", &mut cursor).filter(|name| name.is_named());
    names.last()
}

fn signed_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let signature = field(node, "signature").or_else(|| child_of_kind(node, "function_signature"));
    names.extend(signature.and_then(signed));
}

/// Finds the names of a member without a body, which is a signature or declares variables.
fn member_names<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let is_const = cx.text(node).contains("const ");
    for child in children(node) {
        match child.kind() {
            "initialized_identifier_list" | "static_final_declaration_list" | "identifier_list" => {
                for declared in children(child) {
                    let named = Named::at(field(declared, "name").unwrap_or(declared));
                    names.push(if is_const { named.of(DefinitionKind::Constant) } else { named });
                }
            }
            _ => {
                let named = signed(child);
                names.extend(named.map(|named| match named.kind {
                    None => named.of(DefinitionKind::Method),
                    Some(_) => named,
                }));
            }
        }
    }
}

/// Finds the title of a test: `group('…', () { … })` or `test('…', …)`.
fn test_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let callee = field(node, "function").filter(|callee| callee.kind() == "identifier");
    let is_test = callee.is_some_and(|callee| matches!(cx.text(callee), "test" | "group" | "testWidgets" | "blocTest"));
    let title = field(node, "arguments").filter(|_| is_test).and_then(|arguments| arguments.named_child(0));
    let title = title.filter(|title| title.kind() == "string_literal");
    names.extend(title.map(|title| Named { range: unquoted(cx, title), kind: None, qualifier: None }));
}

fn test_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let arguments = children(field(node, "arguments")?);
    let function = arguments.into_iter().find(|argument| argument.kind() == "function_expression")?;
    field(function, "body").map(range_of)
}

fn import<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(directive) = node.named_child(0) else { return true };
    let is_export = directive.kind() == "library_export";
    let specification = child_of_kind(directive, "import_specification").unwrap_or(directive);
    let Some(uri) = field(specification, "uri") else { return true };
    let mut import = import_of(first_string(cx, uri), node);
    import.is_reexport = is_export;
    if let Some(alias) = field(specification, "alias") {
        import.names.push(imported("", Some(cx.text(alias))));
    }
    let shown = children(specification).into_iter().filter(|child| cx.text(*child).starts_with("show"));
    import.names.extend(shown.flat_map(children).map(|name| imported(cx.text(name), None)));
    if import.names.is_empty() {
        import.names.push(imported("*", None));
    }
    imports.push(import);
    true
}

fn part<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let file = field(node, "uri").or_else(|| node.named_child(0));
    imports.extend(file.map(|file| import_of(first_string(cx, file), node)));
    true
}

/// Returns the default URI of an import. A configurable URI has alternatives after it.
fn first_string<'a>(cx: &Cx<'a, '_>, uri: Node<'_>) -> &'a str {
    let text = cx.text(uri);
    without_quotes(text.split_once(" if").map_or(text, |(first, _)| first))
}
