//! Rules for Go.

use tree_sitter::Node;

use super::text::{import_of, imported, without_quotes};
use super::standard::Standard;
use super::{Language, Profile, Structure, Visibility};
use crate::extract::rules::{Bound, Grammar, Leaf, Mention, Named, Role, Rule, SignatureFrom, TestProbe, Zone, bind, call, define, on, path, range_of, same, step};
use crate::extract::types::{BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Shape, Step};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "go",
    lang: Lang(6),
    aliases: &["golang"],
    extensions: &["go"],
    file_names: &[],
    interpreters: &[],
    profile: Profile { visibility: Visibility::Capital, has_package_clause: true, keywords: KEYWORDS, run_by_name: RUN_BY_NAME, standard: Standard::GO, ..Profile::C_LIKE },
    structure: Structure::Grammar(&Grammar::new("go", &[RULES]).tests(is_test)),
};

const KEYWORDS: &str = "\
    break case chan const continue default defer else fallthrough for func go goto if import interface map \
    package range return select struct switch type var";
/// Members that the standard library runs by name.
const RUN_BY_NAME: &str = "\
    As BinaryMarshaler Close Done Deadline Err Error Flush Format GoString GobDecode GobEncode Header Hijack Is \
    Len Less Lock LogValue MarshalBinary MarshalJSON MarshalText MarshalXML MarshalYAML Open Pop Push Push Read \
    ReadAt ReadByte ReadFrom ReadRune RoundTrip Scan Seek ServeHTTP Set Stat String Swap Temporary Timeout \
    Unlock UnmarshalBinary UnmarshalJSON UnmarshalText UnmarshalXML UnmarshalYAML UnreadByte UnreadRune Unwrap \
    Value Write WriteAt WriteByte WriteHeader WriteString WriteTo";

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
    on(
        &["function_declaration", "method_declaration", "func_literal", "block", "if_statement", "for_statement",
          "expression_switch_statement", "type_switch_statement", "expression_case", "type_case", "default_case",
          "communication_case", "function_type", "method_elem"],
        Role::Scope,
    ),
    on(
        &["function_declaration", "method_declaration", "method_elem"],
        bind(BindingKind::Definition, "name", "result", ""),
    ),
    on(&["type_alias"], bind(BindingKind::Definition, "name", "type", "")),
    on(&["parameter_declaration", "variadic_parameter_declaration"], Role::BindBy(parameters)),
    on(&["field_declaration"], Role::BindBy(typed_names)),
    on(&["var_spec", "const_spec", "short_var_declaration", "range_clause"], Role::BindBy(assigned)),
    on(&["type_switch_statement"], Role::BindBy(switched)),
    on(&["unary_expression", "slice_expression"], same("operand")),
    on(&["parenthesized_expression"], same("")),
    on(&["index_expression"], step("operand", Step::Element)),
    on(&["composite_literal", "type_assertion_expression"], step("type", Step::Call)),
    on(&["interpreted_string_literal", "raw_string_literal"], Role::Literal(Literal::String)),
    on(&["int_literal"], Role::Literal(Literal::Integer)),
    on(&["float_literal"], Role::Literal(Literal::Float)),
    on(&["rune_literal"], Role::Literal(Literal::Character)),
    on(&["nil"], Role::Literal(Literal::Null)),
    on(&["true", "false"], Role::Literal(Literal::Boolean)),
    on(&["keyed_element"], Role::FieldZone("key", Zone::As(ReferenceKind::Member))),
    on(&["slice_type", "array_type", "map_type", "channel_type"], Role::Shape(Shape::Sequence)),
    on(&["function_type", "interface_type", "struct_type"], Role::Shape(Shape::Opaque)),
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

fn parameters<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    add_typed(node, BindingKind::Parameter, found);
}

fn typed_names<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    add_typed(node, BindingKind::Definition, found);
}

fn add_typed<'t>(node: Node<'t>, kind: BindingKind, found: &mut Vec<Bound<'t>>) {
    let mut cursor = node.walk();
    let names = node.children_by_field_name("name", &mut cursor).filter(|name| name.is_named());
    found.extend(names.map(|name| Bound::new(kind, name).of(field(node, "type"))));
}

/// Adds the names in `var a, b T = x, y`, `a, b := x, y` and `a, b := range x`.
fn assigned<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let list = |list: Node<'t>| if list.kind() == "expression_list" { children(list) } else { vec![list] };
    let names = match field(node, "left") {
        Some(left) => list(left),
        None => {
            let mut cursor = node.walk();
            node.children_by_field_name("name", &mut cursor).filter(|name| name.is_named()).collect()
        }
    };
    let values = field(node, "right").or_else(|| field(node, "value")).map(list).unwrap_or_default();
    let is_range = node.kind() == "range_clause";
    for (at, name) in names.iter().enumerate() {
        let bound = Bound::new(BindingKind::Local, *name).of(field(node, "type")).after(node);
        // Of several results, only the type of the first is known.
        let bound = if is_range {
            if at == 1 { bound.to(values.first().copied()).by(Step::Element) } else { bound }
        } else if values.len() == names.len() || at == 0 {
            bound.to(values.get(at).copied())
        } else {
            bound
        };
        found.push(bound);
    }
}

/// Adds `v` in `switch v := x.(type)`. Each case gives it another type.
fn switched<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let names = field(node, "alias").map(children).unwrap_or_default();
    found.extend(names.into_iter().map(|name| Bound::new(BindingKind::Local, name)));
}

/// Adds the type that a field without a name embeds.
fn embedded<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    if field(node, "name").is_some() {
        return;
    }
    let Some((range, qualifier)) = field(node, "type").and_then(|of| cx.resolve(of)) else { return };
    mentions.push(Mention::new(ReferenceKind::Inherit, range, qualifier));
}

/// Adds the interfaces that an interface embeds: its elements that are a single type. `~int | string` is a constraint
/// instead.
fn embedded_interfaces<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    for element in children(node).into_iter().filter(|child| child.kind() == "type_elem") {
        let [only] = children(element)[..] else { continue };
        let is_type = matches!(only.kind(), "type_identifier" | "qualified_type" | "generic_type");
        if let Some((range, qualifier)) = cx.resolve(only).filter(|_| is_type) {
            let kind = ReferenceKind::Inherit;
            mentions.push(Mention::new(kind, range, qualifier));
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
