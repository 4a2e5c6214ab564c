//! Rules for TypeScript, in addition to those for JavaScript.

use tree_sitter::Node;

use super::javascript;
use super::text::unquoted;
use super::{Language, Structure};
use crate::extract::rules::{Grammar, Leaf, Named, Role, Rule, SignatureFrom, Zone, bind, call, define, on, path, same};
use crate::extract::types::{BindingKind, DefinitionKind, ReferenceKind, Shape};
use crate::extract::walk::{Cx, field};
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "typescript",
    lang: Lang(4),
    aliases: &["ts"],
    extensions: &["ts", "mts", "cts"],
    file_names: &[],
    interpreters: &["deno", "ts-node", "tsx", "bun"],
    profile: javascript::PROFILE,
    structure: Structure::Grammar(&Grammar::new(
        "typescript",
        &[javascript::RULES, RULES],
    )),
};

pub(super) const RULES: &[Rule] = &[
    on(&["abstract_class_declaration"], define(DefinitionKind::Class).role()),
    on(&["interface_declaration"], define(DefinitionKind::Interface).role()),
    on(&["type_alias_declaration"], define(DefinitionKind::TypeAlias).not_local().role()),
    on(&["enum_declaration"], define(DefinitionKind::Enum).role()),
    on(&["enum_assignment"], define(DefinitionKind::Variant).role()),
    on(&["property_identifier"], define(DefinitionKind::Variant).name_by(bare_variant).role()),
    on(&["internal_module", "module"], define(DefinitionKind::Module).name_by(module_name).role()),
    on(&["function_signature"], define(DefinitionKind::Function).role()),
    on(&["method_signature", "abstract_method_signature"], define(DefinitionKind::Method).role()),
    on(&["property_signature"], define(DefinitionKind::Field).role()),
    on(
        &["public_field_definition"],
        define(DefinitionKind::Field).name_by(javascript::field_name).body_by(javascript::value_body).role(),
    ),
    on(&["required_parameter", "optional_parameter"], define(DefinitionKind::Field).name_by(parameter_field).role()),
    on(&["ambient_declaration"], Role::Wrap(SignatureFrom::Wrapper)),
    on(
        &["extends_clause", "implements_clause", "extends_type_clause"],
        Role::Zone(Zone::As(ReferenceKind::Inherit)),
    ),
    on(&["type_arguments", "type_parameters"], Role::Zone(Zone::Plain)),
    on(&["nested_type_identifier"], path("module", "name")),
    on(&["nested_identifier"], path("object", "property")),
    on(&["generic_type"], Role::Through("name")),
    on(&["non_null_expression", "instantiation_expression"], Role::Through("")),
    on(
        &["method_signature", "abstract_method_signature", "function_signature"],
        bind(BindingKind::Definition, "name", "return_type", ""),
    ),
    on(&["property_signature"], bind(BindingKind::Definition, "name", "type", "")),
    on(&["public_field_definition"], bind(BindingKind::Definition, "name", "type", "value")),
    on(
        &["function_type", "constructor_type", "function_signature", "method_signature", "abstract_method_signature",
          "call_signature", "construct_signature", "class_declaration", "abstract_class_declaration", "class",
          "interface_declaration", "type_alias_declaration"],
        Role::Scope,
    ),
    on(&["type_parameter"], bind(BindingKind::TypeParameter, "name", "constraint", "")),
    on(&["mapped_type_clause"], bind(BindingKind::TypeParameter, "name", "", "")),
    on(&["required_parameter", "optional_parameter"], bind(BindingKind::Parameter, "pattern", "type", "value")),
    on(&["type_alias_declaration"], bind(BindingKind::Definition, "name", "value", "")),
    on(&["array_type", "tuple_type"], Role::Shape(Shape::Sequence)),
    on(
        &["function_type", "object_type", "conditional_type", "constructor_type", "index_type_query", "lookup_type"],
        Role::Shape(Shape::Opaque),
    ),
    on(&["as_expression", "satisfies_expression"], same("")),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
    on(&["new_expression"], call("constructor")),
];

/// Finds the name of an enum case without a value.
fn bare_variant<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    if cx.parent_kind() == "enum_body" {
        names.push(Named::at(node));
    }
}

/// Finds the name in `namespace A.B` and `module "express"`.
fn module_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name") else { return };
    let range = unquoted(cx, name);
    names.push(Named { range, kind: None, qualifier: None });
}

/// Finds the field that a constructor parameter declares, as in `constructor(private queue: Queue)`.
fn parameter_field<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let is_field = node
        .children(&mut cursor)
        .any(|child| matches!(child.kind(), "accessibility_modifier" | "override_modifier" | "readonly"));
    let name = field(node, "pattern").filter(|name| is_field && name.kind() == "identifier");
    names.extend(name.map(Named::at));
}
