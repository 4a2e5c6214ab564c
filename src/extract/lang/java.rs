//! Rules for Java.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming};
use super::{Language, Structure};
use crate::extract::rules::{
    Grammar, Leaf, Mention, Named, Role, Rule, TestProbe, Zone, call, define, flat_path, method_call, on, path, range_of,
};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "java",
    lang: Lang(7),
    aliases: &[],
    extensions: &["java"],
    file_names: &[],
    interpreters: &[],
    structure: Structure::Grammar(&Grammar::new(|| tree_sitter_java::LANGUAGE.into(), &[RULES]).tests(is_test)),
};

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
    on(&["identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
];

fn is_test(probe: &TestProbe<'_>) -> bool {
    ["Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "Property"].iter().any(|name| probe.has_attribute(name))
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
    mentions.push(Mention { kind: ReferenceKind::Name, range: range_of(*name), qualifier });
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
