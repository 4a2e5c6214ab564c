//! Rules for Java.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming};
use super::standard::Standard;
use super::{Language, Profile, Structure, Visibility};
use crate::extract::rules::{Bound, Grammar, Leaf, Mention, Named, Role, Rule, TestProbe, Zone, bind, call, define, flat_path, method_call, on, path, range_of, same, step};
use crate::extract::types::{BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Shape, Step};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "java",
    lang: Lang(7),
    aliases: &[],
    extensions: &["java"],
    file_names: &[],
    interpreters: &[],
    profile: Profile {
        has_overloads: true,
        has_implicit_this: true,
        has_package_clause: true,
        has_dollar: true,
        keywords: KEYWORDS,
        standard: Standard::JAVA,
        run_by_name: "clone compareTo equals finalize getClass hashCode notify notifyAll toString wait",
        visibility: Visibility::Words(&["public", "protected"]),
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(&Grammar::new("java", &[RULES]).tests(is_test).overloads()),
};

const KEYWORDS: &str = "\
    _ abstract assert boolean break byte case catch char class const continue default do double else enum \
    extends false final finally float for goto if implements import instanceof int interface long native new \
    null package permits private protected public record return sealed short static strictfp super switch \
    synchronized this throw throws transient true try var void volatile while yield";

const RULES: &[Rule] = &[
    on(
        &["package_declaration"],
        define(DefinitionKind::Module).name_child(&["scoped_identifier", "identifier"]).role(),
    ),
    on(&["class_declaration"], define(DefinitionKind::Class).role()),
    on(&["interface_declaration", "annotation_type_declaration"], define(DefinitionKind::Interface).role()),
    on(&["enum_declaration"], define(DefinitionKind::Enum).role()),
    on(&["record_declaration"], define(DefinitionKind::Struct).role()),
    on(&["enum_constant"], define(DefinitionKind::Variant).role()),
    on(&["method_declaration", "annotation_type_element_declaration"], define(DefinitionKind::Method).role()),
    on(&["constructor_declaration", "compact_constructor_declaration"], define(DefinitionKind::Constructor).role()),
    on(&["field_declaration", "constant_declaration"], define(DefinitionKind::Field).name_by(field_names).body_by(initial_value).role()),
    on(&["import_declaration"], Role::Zone(Zone::As(ReferenceKind::Import))),
    on(
        &["object_creation_expression"],
        define(DefinitionKind::Class).name_by(anonymous).body_child(&["class_body"]).role(),
    ),
    on(&["import_declaration"], Role::Import(import_declaration)),
    on(&["line_comment", "block_comment"], Role::Comment),
    on(&["annotation", "marker_annotation"], Role::Annotation),
    on(&["annotation", "marker_annotation"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["modifiers"], Role::Modifiers),
    on(
        &["annotation_argument_list", "type_arguments", "argument_list", "type_parameters"],
        Role::Zone(Zone::Plain),
    ),
    on(&["superclass", "super_interfaces", "extends_interfaces"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["method_invocation"], method_call("name", "object")),
    on(&["object_creation_expression"], call("type")),
    on(&["method_reference"], Role::Mention(method_reference)),
    on(&["scoped_identifier"], path("scope", "name")),
    on(&["field_access"], path("object", "field")),
    on(&["scoped_type_identifier"], flat_path()),
    on(&["generic_type"], Role::Through("")),
    on(
        &["method_declaration", "constructor_declaration", "compact_constructor_declaration", "block",
          "constructor_body", "lambda_expression", "for_statement", "enhanced_for_statement", "catch_clause",
          "try_with_resources_statement", "switch_block_statement_group", "switch_rule", "class_body",
          "record_declaration", "class_declaration", "interface_declaration"],
        Role::Scope,
    ),
    on(&["type_parameter"], Role::BindBy(type_parameter)),
    on(&["method_declaration"], bind(BindingKind::Definition, "name", "type", "")),
    on(&["formal_parameter"], bind(BindingKind::Parameter, "name", "type", "")),
    on(&["resource"], bind(BindingKind::Local, "name", "type", "value")),
    on(&["instanceof_expression"], bind(BindingKind::Local, "name", "right", "")),
    on(&["local_variable_declaration", "field_declaration", "constant_declaration"], Role::BindBy(declared)),
    on(&["spread_parameter"], Role::BindBy(spread)),
    on(&["enhanced_for_statement"], Role::BindBy(iterated)),
    on(&["catch_formal_parameter"], Role::BindBy(caught)),
    on(&["lambda_expression"], Role::BindBy(lambda_parameters)),
    on(&["parenthesized_expression"], same("")),
    on(&["array_access"], step("array", Step::Element)),
    on(&["cast_expression"], step("type", Step::Call)),
    on(&["string_literal"], Role::Literal(Literal::String)),
    on(&["decimal_integer_literal", "hex_integer_literal"], Role::Literal(Literal::Integer)),
    on(&["decimal_floating_point_literal"], Role::Literal(Literal::Float)),
    on(&["character_literal"], Role::Literal(Literal::Character)),
    on(&["true", "false"], Role::Literal(Literal::Boolean)),
    on(&["null_literal"], Role::Literal(Literal::Null)),
    on(&["class_literal"], Role::Literal(Literal::Class)),
    on(&["array_type"], Role::Shape(Shape::Sequence)),
    on(&["this", "super"], Role::Leaf(Leaf::This)),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier", "integral_type", "floating_point_type", "boolean_type"], Role::Leaf(Leaf::Type)),
];

fn is_test(probe: &TestProbe<'_>) -> bool {
    ["Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "Property"].iter().any(|name| probe.has_attribute(name))
}

/// Finds the name of an anonymous class: `new Visitor`.
fn anonymous<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let (Some(_), Some(of)) = (child_of_kind(node, "class_body"), field(node, "type")) else { return };
    let of = if of.kind() == "generic_type" { of.named_child(0).unwrap_or(of) } else { of };
    let range = ByteRange::new(node.start_byte() as u32, of.end_byte() as u32);
    names.push(Named { range, kind: None, qualifier: None });
}

/// Adds the names of a declaration. A variable declared with `var` has the type of its value.
fn declared<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let declared = explicit(cx, field(node, "type"));
    let mut cursor = node.walk();
    for declarator in node.children_by_field_name("declarator", &mut cursor) {
        let name = field(declarator, "name").map(|name| Bound::new(BindingKind::Local, name));
        found.extend(name.map(|bound| bound.of(declared).to(field(declarator, "value"))));
    }
}

fn explicit<'t>(cx: &Cx<'_, 't>, declared: Option<Node<'t>>) -> Option<Node<'t>> {
    declared.filter(|declared| cx.text(*declared) != "var")
}

fn type_parameter<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = child_of_kind(node, "type_identifier").map(|name| Bound::new(BindingKind::TypeParameter, name));
    found.extend(name.map(|name| name.of(child_of_kind(node, "type_bound"))));
}

fn spread<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = child_of_kind(node, "variable_declarator").and_then(|declarator| field(declarator, "name"));
    // A value that is not described marks the parameter as one of any number.
    found.extend(name.map(|name| Bound::new(BindingKind::Parameter, name).to(Some(node))));
}

fn iterated<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(name) = field(node, "name") else { return };
    let bound = Bound::new(BindingKind::Local, name).of(explicit(cx, field(node, "type")));
    found.push(bound.to(field(node, "value")).by(Step::Element));
}

fn caught<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = field(node, "name").map(|name| Bound::new(BindingKind::Local, name));
    found.extend(name.map(|bound| bound.of(child_of_kind(node, "catch_type"))));
}

/// Adds the parameters of a lambda that have no types.
fn lambda_parameters<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(parameters) = field(node, "parameters") else { return };
    let names = match parameters.kind() {
        "identifier" => vec![parameters],
        "inferred_parameters" => children(parameters),
        _ => return,
    };
    found.extend(names.into_iter().map(|name| Bound::new(BindingKind::Parameter, name)));
}

fn field_names<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    for declarator in node.children_by_field_name("declarator", &mut cursor) {
        let Some(name) = field(declarator, "name") else { continue };
        let is_constant = is_screaming(cx.text(name));
        names.push(if is_constant { Named::at(name).of(DefinitionKind::Constant) } else { Named::at(name) });
    }
}

/// Returns the body of an anonymous class that is the value of a field. It is not part of the signature.
fn initial_value<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let value = field(field(node, "declarator")?, "value")?;
    child_of_kind(value, "class_body").map(range_of)
}

/// Adds the method in a method reference such as `Job::next`.
fn method_reference<'t>(_: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let parts = children(node);
    let [of, .., name] = parts.as_slice() else { return };
    let qualifier = if of.child_count() == 0 { range_of(*of) } else { ByteRange::default() };
    mentions.push(Mention::new(ReferenceKind::Name, range_of(*name), qualifier));
}

fn import_declaration<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(path) = children(node).into_iter().find(|child| child.kind().ends_with("identifier")) else { return true };
    let text = cx.text(path);
    let (module, name) = match (child_of_kind(node, "asterisk"), text.rsplit_once('.')) {
        (Some(_), _) => (text, "*"),
        (None, Some((module, name))) => (module, name),
        (None, None) => ("", text),
    };
    let mut import = import_of(module, node);
    import.names.push(imported(name, None));
    imports.push(import);
    true
}
