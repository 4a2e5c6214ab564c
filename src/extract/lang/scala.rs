//! Rules for Scala.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming, unquoted};
use super::standard::Standard;
use super::{Extensions, Language, Profile, Structure};
use crate::extract::rules::{
    Bound, Grammar, Leaf, Named, Role, Rule, TestProbe, Zone, bind, call, define, flat_path, method_call, on, path,
    range_of, same, step,
};
use crate::extract::types::{Arity, BindingKind, DefinitionKind, Import, ImportedName, Literal, ReferenceKind, Shape, Step};
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
        run_by_name: "apply equals flatMap foreach hashCode map toString unapply unapplySeq update withFilter",
        extensions: Extensions::Anywhere,
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(&Grammar::new("scala", &[RULES]).tests(is_test).created_by("instance_expression")),
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
        define(DefinitionKind::Function).name_by(function_name).arity_by(arity).role(),
    ),
    on(&["instance_expression"], define(DefinitionKind::Class).name_by(anonymous).role()),
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
    on(&["infix_expression"], method_call("operator", "left")),
    on(SCOPES, Role::Scope),
    on(&["function_definition", "function_declaration"], bind(BindingKind::Definition, "name", "return_type", "")),
    on(&["object_definition"], Role::BindBy(object)),
    on(&["object_definition"], Role::Literal(Literal::Class)),
    on(&["parameter", "class_parameter", "binding"], bind(BindingKind::Parameter, "name", "type", "")),
    on(&["val_definition", "var_definition"], bind(BindingKind::Local, "pattern", "type", "value")),
    on(&["val_declaration", "var_declaration"], bind(BindingKind::Local, "name", "type", "")),
    on(&["type_parameters"], Role::BindBy(type_parameters)),
    on(&["type_definition"], bind(BindingKind::Definition, "name", "type", "")),
    on(&["enumerator"], Role::BindBy(enumerated)),
    on(&["lambda_expression"], Role::BindBy(lambda_parameter)),
    on(&["colon_argument"], Role::BindBy(lambda_parameter)),
    on(&["case_clause"], Role::BindBy(case)),
    on(&["typed_pattern"], bind(BindingKind::Local, "pattern", "type", "")),
    on(&["self_type"], Role::BindBy(self_alias)),
    on(&["parenthesized_expression"], same("")),
    on(&["repeated_parameter_type"], Role::Shape(Shape::Sequence)),
    on(&["function_type", "tuple_type", "infix_type", "singleton_type"], Role::Shape(Shape::Opaque)),
    on(&["string", "interpolated_string_expression"], Role::Literal(Literal::String)),
    on(&["integer_literal"], Role::Literal(Literal::Integer)),
    on(&["floating_point_literal"], Role::Literal(Literal::Float)),
    on(&["boolean_literal"], Role::Literal(Literal::Boolean)),
    on(&["character_literal"], Role::Literal(Literal::Character)),
    on(&["null_literal"], Role::Literal(Literal::Null)),
    on(&["generic_function"], Role::Through("function")),
    on(&["generic_function"], step("function", Step::Call)),
    on(&["generic_type"], Role::Through("type")),
    on(&["field_expression"], path("value", "field")),
    on(&["stable_type_identifier", "stable_identifier"], flat_path()),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
];

/// Node kinds in which names are bound.
const SCOPES: &[&str] = &[
    "block",
    "case_clause",
    "class_definition",
    "colon_argument",
    "enum_definition",
    "for_expression",
    "full_enum_case",
    "function_definition",
    "function_declaration",
    "given_definition",
    "indented_block",
    "lambda_expression",
    "object_definition",
    "template_body",
    "trait_definition",
    "type_definition",
    "with_template_body",
];

/// Counts the parameters of the first list. A function without one, or with one that is implicit, can be followed by the
/// arguments of its result.
fn arity<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<Arity> {
    let any = Arity { fewest: 0, most: Arity::MANY };
    let Some(list) = child_of_kind(node, "parameters") else { return Some(any) };
    let text = cx.text(list);
    if text.starts_with("(implicit") || text.starts_with("(using") {
        return Some(any);
    }
    let parameters: Vec<Node<'t>> = children(list).into_iter().filter(|child| child.kind() == "parameter").collect();
    let n_optional = parameters.iter().filter(|parameter| field(**parameter, "default_value").is_some()).count();
    let is_repeated = |parameter: &&Node<'t>| {
        field(**parameter, "type").is_some_and(|declared| declared.kind() == "repeated_parameter_type")
    };
    let n_repeated = parameters.iter().filter(is_repeated).count();
    Some(Arity::variadic(parameters.len(), n_optional, n_repeated))
}

/// Finds the name of an anonymous class: `new Visitor`.
fn anonymous<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let (Some(_), Some(of)) = (child_of_kind(node, "template_body"), node.named_child(0)) else { return };
    let of = if of.kind() == "generic_type" { of.named_child(0).unwrap_or(of) } else { of };
    if of.kind() != "template_body" {
        let range = ByteRange::new(node.start_byte() as u32, of.end_byte() as u32);
        names.push(Named { range, kind: None, qualifier: None });
    }
}

/// Marks the name of an object, which is a value.
fn object<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    found.extend(field(node, "name").map(|name| Bound::new(BindingKind::Definition, name).to(Some(node))));
}

fn type_parameters<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let mut cursor = node.walk();
    let mut has_children = cursor.goto_first_child();
    while has_children {
        match cursor.field_name() {
            Some("name") => found.push(Bound::new(BindingKind::TypeParameter, cursor.node())),
            Some("bound") if cursor.node().kind() == "upper_bound" => {
                if let Some(last) = found.last_mut() {
                    last.declared = field(cursor.node(), "type");
                }
            }
            _ => {}
        }
        has_children = cursor.goto_next_sibling();
    }
}

/// Adds the names of `a <- list` and `a = value`.
fn enumerated<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    if let [pattern, value, ..] = children(node).as_slice() {
        let between = cx.slice(ByteRange::new(pattern.end_byte() as u32, value.start_byte() as u32));
        let bound = Bound::new(BindingKind::Local, *pattern).to(Some(*value)).with_constants();
        found.push(if between.contains("<-") { bound.by(Step::Element) } else { bound });
    }
}

/// Adds the parameter in `a => …`.
fn lambda_parameter<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = field(node, "parameters").or_else(|| field(node, "lambda_start"));
    let name = name.filter(|name| name.kind() == "identifier");
    found.extend(name.map(|name| Bound::new(BindingKind::Parameter, name)));
}

fn case<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    // A single name gets no value from the clause.
    let Some(pattern) = field(node, "pattern") else { return };
    found.push(Bound::new(BindingKind::Local, pattern).with_constants());
}

/// Adds the other name of `this` in `self: Type =>`.
fn self_alias<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = child_of_kind(node, "identifier").map(|name| Bound::new(BindingKind::Local, name));
    found.extend(name.map(|name| name.of(child_of_kind(node, "type_identifier"))));
}

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

/// Finds the field that a class parameter declares: `b` in `class A(val b: B)` and `case class A(b: B)`, but nothing in
/// `class A(b: B)`.
fn parameter_field<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let has = |node: Node<'t>, keywords: &[&str]| {
        let mut cursor = node.walk();
        node.children(&mut cursor).any(|child| keywords.contains(&child.kind()))
    };
    let is_case = cx.ancestor(1).is_some_and(|class| class.kind() == "class_definition" && has(class, &["case"]));
    if is_case || has(node, &["val", "var"]) {
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

/// Adds the imports of `import a.b.C`, `import a.{B, C => D, _}`, `import a.*` and `import a.B, c.D`.
fn add_imports<'t>(cx: &Cx<'_, 't>, node: Node<'t>, is_reexport: bool, imports: &mut Vec<Import>) {
    let mut cursor = node.walk();
    let mut segments: Vec<&str> = Vec::new();
    let mut names = Vec::new();
    let mut add = |segments: &mut Vec<&str>, names: &mut Vec<ImportedName>| {
        let (module, last) = match segments.split_last() {
            Some((last, module)) if names.is_empty() => (module.join("."), Some(*last)),
            _ => (segments.join("."), None),
        };
        let mut import = import_of(&module, node);
        names.extend(last.map(|name| imported(name, None)));
        import.names = std::mem::take(names);
        import.is_reexport = is_reexport;
        segments.clear();
        imports.push(import);
    };
    let mut has_children = cursor.goto_first_child();
    while has_children {
        let part = cursor.node();
        match part.kind() {
            "namespace_selectors" => names.extend(children(part).into_iter().filter_map(|part| selected(cx, part))),
            "namespace_wildcard" => names.push(imported("*", None)),
            "as_renamed_identifier" | "arrow_renamed_identifier" => names.extend(selected(cx, part)),
            "," => add(&mut segments, &mut names),
            _ if cursor.field_name() == Some("path") && part.is_named() => segments.push(cx.text(part)),
            _ => {}
        }
        has_children = cursor.goto_next_sibling();
    }
    add(&mut segments, &mut names);
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
