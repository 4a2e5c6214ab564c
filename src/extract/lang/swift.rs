//! Rules for Swift.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming, parameters_in, type_in};
use super::standard::Standard;
use super::{Extensions, Globals, Language, Profile, Structure};
use crate::extract::rules::{
    Bound, Grammar, Leaf, Named, Role, Rule, TestProbe, Zone, call, define, flat_path, on, path, same, step,
};
use crate::extract::types::{Arity, BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Shape, Step};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

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
        run_by_name: "deinit subscript",
        extensions: Extensions::Blocks,
        globals: Globals::Modules,
        implicit_names: "error newValue oldValue",
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(&Grammar::new("swift", &[RULES]).tests(is_test).rooted_by(b'.').arguments("value_arguments", "lambda_literal")),
};

const RULES: &[Rule] = &[
    on(&["class_declaration"], define(DefinitionKind::Class).name_by(type_name).role()),
    on(&["protocol_declaration"], define(DefinitionKind::Interface).role()),
    on(&["function_declaration", "protocol_function_declaration"], define(DefinitionKind::Function).arity_by(arity).role()),
    on(&["init_declaration"], define(DefinitionKind::Constructor).arity_by(arity).role()),
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
    on(&["value_argument_label"], Role::Zone(Zone::Label)),
    on(&["parameter"], Role::FieldZone("external_name", Zone::Label)),
    on(SCOPES, Role::Scope),
    on(&["function_declaration", "protocol_function_declaration"], Role::BindBy(function_result)),
    on(&["property_declaration", "protocol_property_declaration"], Role::BindBy(property)),
    on(&["parameter", "lambda_parameter"], Role::BindBy(parameter)),
    on(&["type_parameter"], Role::BindBy(type_parameter)),
    on(&["if_statement", "guard_statement", "while_statement"], Role::BindBy(unwrapped)),
    on(&["for_statement"], Role::BindBy(iterated)),
    on(&["pattern"], Role::BindBy(matched)),
    on(&["postfix_expression"], same("target")),
    on(&["try_expression", "await_expression"], same("expr")),
    on(&["as_expression"], step("name", Step::Call)),
    on(&["optional_type"], Role::Through("wrapped")),
    on(&["array_type", "dictionary_type"], Role::Shape(Shape::Sequence)),
    on(&["line_string_literal", "multi_line_string_literal"], Role::Literal(Literal::String)),
    on(&["integer_literal"], Role::Literal(Literal::Integer)),
    on(&["real_literal"], Role::Literal(Literal::Float)),
    on(&["boolean_literal"], Role::Literal(Literal::Boolean)),
    on(&["nil_literal"], Role::Literal(Literal::Null)),
    on(&["self_expression", "super_expression"], Role::Leaf(Leaf::This)),
    on(&["simple_identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
];

/// Node kinds in which names are bound.
const SCOPES: &[&str] = &[
    "catch_block",
    "class_declaration",
    "computed_property",
    "for_statement",
    "function_declaration",
    "if_statement",
    "init_declaration",
    "lambda_literal",
    "protocol_declaration",
    "protocol_function_declaration",
    "statements",
    "subscript_declaration",
    "switch_entry",
    "while_statement",
];

fn arity<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<Arity> {
    Some(parameters_in(cx, node))
}

/// Adds the result of a function: the only type that is a child.
fn function_result<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = field(node, "name").map(|name| Bound::new(BindingKind::Definition, name));
    found.extend(name.map(|name| name.of(type_in(node))));
}

fn property<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(pattern) = field(node, "name") else { return };
    let declared = child_of_kind(node, "type_annotation").and_then(type_in);
    match field(pattern, "bound_identifier") {
        Some(name) => {
            let bound = Bound::new(BindingKind::Local, name).of(declared).to(field(node, "value"));
            let is_local = node.parent().is_some_and(|outer| outer.kind() == "statements");
            found.push(if is_local { bound.after(node) } else { bound });
        }
        None => {
            let parts = children(pattern).into_iter().filter_map(|part| part.named_child(0));
            found.extend(parts.map(|name| Bound::new(BindingKind::Local, name)));
        }
    }
}

fn parameter<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = children(node).into_iter().rfind(|child| child.kind() == "simple_identifier");
    let bound = name.map(|name| Bound::new(BindingKind::Parameter, name));
    found.extend(bound.map(|bound| bound.of(type_in(node))));
}

fn type_parameter<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = child_of_kind(node, "type_identifier").map(|name| Bound::new(BindingKind::TypeParameter, name));
    found.extend(name.map(|name| name.of(type_in(node))));
}

/// Adds the names of `if let name = value`. In `if let name`, the name means what it meant before.
fn unwrapped<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let mut cursor = node.walk();
    let other = node.children(&mut cursor).find(|child| child.kind() == "else" && node.kind() == "if_statement");
    let scope = |from: Node<'t>| other.map(|other| ByteRange::new(from.end_byte() as u32, other.start_byte() as u32));
    let mut cursor = node.walk();
    let mut has_children = cursor.goto_first_child();
    let mut name: Option<Node<'t>> = None;
    let mut is_assigned = false;
    while has_children {
        let child = cursor.node();
        if cursor.field_name() == Some("bound_identifier") {
            (name, is_assigned) = (Some(child), false);
        } else if child.kind() == "=" {
            is_assigned = true;
        } else if is_assigned && child.is_named() {
            let bound = name.take().map(|name| Bound::new(BindingKind::Local, name).to(Some(child)).after(child));
            let is_self = bound.as_ref().is_some_and(|bound| child.kind() == "self_expression" && bound.name.end_byte() - bound.name.start_byte() == 4);
            found.extend(bound.filter(|_| !is_self).map(|bound| Bound { scope: scope(child), ..bound }));
        }
        has_children = cursor.goto_next_sibling();
    }
}

fn iterated<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(item) = field(node, "item") else { return };
    let bound = Bound::new(BindingKind::Local, field(item, "bound_identifier").unwrap_or(item));
    found.push(bound.to(field(node, "collection")).by(Step::Element));
}

/// Adds the name of a pattern, with the type in `let name as Type`.
fn matched<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let inner = child_of_kind(node, "pattern").filter(|_| type_in(node).is_some());
    let name = field(inner.unwrap_or(node), "bound_identifier");
    // In `case let .success(name)`, all names of the pattern are bound.
    let name = name.or_else(|| child_of_kind(node, "value_binding_pattern").map(|_| node));
    let bound = name.map(|name| Bound::new(BindingKind::Local, name));
    found.extend(bound.map(|bound| bound.of(type_in(node)).to(type_in(node).is_none().then_some(node))));
}

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
