//! Rules for Go.

use tree_sitter::Node;

use super::text::{import_of, imported, without_quotes};
use super::{Language, Structure};
use crate::extract::rules::{
    Grammar, Leaf, Mention, Named, Role, Rule, SignatureFrom, TestProbe, call, define, on, path, range_of,
};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "go",
    lang: Lang(6),
    aliases: &["golang"],
    extensions: &["go"],
    file_names: &[],
    interpreters: &[],
    structure: Structure::Grammar(&Grammar::new(|| tree_sitter_go::LANGUAGE.into(), &[RULES]).tests(is_test)),
};

const RULES: &[Rule] = &[
    on(&["package_clause"], define(DefinitionKind::Module).name_child(&["package_identifier"]).role()),
    on(&["function_declaration"], define(DefinitionKind::Function).role()),
    on(&["method_declaration"], define(DefinitionKind::Method).name_by(method_name).role()),
    on(&["type_spec"], define(DefinitionKind::TypeAlias).name_by(type_name).body_by(type_body).role()),
    on(&["type_alias"], define(DefinitionKind::TypeAlias).not_local().role()),
    on(&["const_spec"], define(DefinitionKind::Constant).name_by(spec_names).not_local().role()),
    on(&["var_spec"], define(DefinitionKind::Variable).name_by(spec_names).not_local().role()),
    on(&["field_declaration"], define(DefinitionKind::Field).name_by(spec_names).role()),
    on(&["field_declaration"], Role::Mention(embedded)),
    on(&["method_elem"], define(DefinitionKind::Method).role()),
    on(&["type_declaration", "const_declaration", "var_declaration"], Role::Wrap(SignatureFrom::Wrapper)),
    on(&["import_spec"], Role::Import(import_spec)),
    on(&["comment"], Role::Comment),
    on(&["interface_type"], Role::Mention(embedded_interfaces)),
    on(&["call_expression"], call("function")),
    // The grammar parses `f[int](x)` as a type conversion.
    on(&["type_conversion_expression"], call("type")),
    on(&["selector_expression"], path("operand", "field")),
    on(&["qualified_type"], path("package", "name")),
    on(&["generic_type"], Role::Through("type")),
    on(&["type_instantiation_expression"], Role::Through("type")),
    on(&["index_expression"], Role::Through("operand")),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
    on(&["field_identifier", "package_identifier"], Role::Leaf(Leaf::Segment)),
];

/// Recognises `TestX(t *testing.T)`, benchmarks and fuzz targets with a parameter of the same form, and `ExampleX()`.
fn is_test(probe: &TestProbe<'_>) -> bool {
    let is_named = ["Test", "Benchmark", "Fuzz", "Example"].iter().any(|prefix| {
        let rest = probe.name.strip_prefix(prefix);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_lowercase()))
    });
    let is_example = probe.name.starts_with("Example") && probe.signature.ends_with("()");
    is_named && (is_example || probe.signature.contains("*testing."))
}

/// Finds the name of a method. Its qualifier is the type of the receiver: `Uploader` in `func (u *Uploader[T]) Send()`.
fn method_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name") else { return };
    let receiver = field(node, "receiver").and_then(|receiver| child_of_kind(receiver, "parameter_declaration"));
    let mut of = receiver.and_then(|receiver| field(receiver, "type"));
    if let Some(pointer) = of.filter(|of| of.kind() == "pointer_type") {
        of = pointer.named_child(0);
    }
    let mut named = Named::at(name);
    named.qualifier = of.and_then(|of| cx.resolve(of)).map(|(name, _)| name);
    names.push(named);
}

fn type_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let kind = match field(node, "type").map(|of| of.kind()) {
        Some("struct_type") => DefinitionKind::Struct,
        Some("interface_type") => DefinitionKind::Interface,
        _ => DefinitionKind::TypeAlias,
    };
    names.extend(field(node, "name").map(|name| Named::at(name).of(kind)));
}

/// Returns the braces of a struct or interface.
fn type_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let of = field(node, "type")?;
    match of.kind() {
        "struct_type" => child_of_kind(of, "field_declaration_list").map(range_of),
        // The signature includes the keyword but not the braces.
        "interface_type" => Some(ByteRange::new((of.start_byte() + "interface".len()) as u32, of.end_byte() as u32)),
        _ => None,
    }
}

fn spec_names<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    names.extend(node.children_by_field_name("name", &mut cursor).filter(|name| name.is_named()).map(Named::at));
}

/// Adds the type that a field without a name embeds.
fn embedded<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    if field(node, "name").is_some() {
        return;
    }
    let Some((range, qualifier)) = field(node, "type").and_then(|of| cx.resolve(of)) else { return };
    mentions.push(Mention { kind: ReferenceKind::Inherit, range, qualifier });
}

/// Adds the interfaces that an interface embeds: its elements that are a single type. `~int | string` is a constraint
/// instead.
fn embedded_interfaces<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    for element in children(node).into_iter().filter(|child| child.kind() == "type_elem") {
        let [only] = children(element)[..] else { continue };
        let is_type = matches!(only.kind(), "type_identifier" | "qualified_type" | "generic_type");
        if let Some((range, qualifier)) = cx.resolve(only).filter(|_| is_type) {
            let kind = ReferenceKind::Inherit;
            mentions.push(Mention { kind, range, qualifier });
        }
    }
}

fn import_spec<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(path) = field(node, "path") else { return true };
    let mut import = import_of(without_quotes(cx.text(path)), node);
    if let Some(name) = field(node, "name") {
        import.names.push(match name.kind() {
            "dot" => imported("*", None),
            _ => imported("", Some(cx.text(name))),
        });
    }
    imports.push(import);
    true
}
