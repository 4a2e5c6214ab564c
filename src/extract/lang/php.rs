//! Rules for PHP.

use tree_sitter::Node;

use super::text::{import_of, imported, unquoted, without_quotes};
use super::standard::Standard;
use super::{Language, Profile, Structure};
use crate::extract::rules::{
    Bound, Grammar, Leaf, Named, Role, Rule, SignatureFrom, TestProbe, Zone, bind, call, define, flat_path, method_call, on,
    path, same, step,
};
use crate::extract::types::{BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Step};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "php",
    lang: Lang(13),
    aliases: &[],
    extensions: &["php", "phtml", "php3", "php4", "php5", "php7", "phps"],
    file_names: &[],
    interpreters: &["php"],
    profile: Profile {
        line_comments: &["//", "#"],
        attributes: &["#[", "@", "["],
        has_package_clause: true,
        is_script: true,
        standard: Standard::PHP,
        run_by_name: "count current getIterator jsonSerialize key next offsetExists offsetGet offsetSet offsetUnset rewind valid",
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(&Grammar::new("php", &[RULES]).tests(is_test).rooted_by(b'\\')),
};

const RULES: &[Rule] = &[
    on(&["namespace_definition"], define(DefinitionKind::Module).role()),
    on(&["class_declaration"], define(DefinitionKind::Class).role()),
    on(&["interface_declaration"], define(DefinitionKind::Interface).role()),
    on(&["trait_declaration"], define(DefinitionKind::Trait).role()),
    on(&["enum_declaration"], define(DefinitionKind::Enum).role()),
    on(&["enum_case"], define(DefinitionKind::Variant).role()),
    on(&["function_definition"], define(DefinitionKind::Function).role()),
    on(&["method_declaration"], define(DefinitionKind::Method).name_by(method_name).role()),
    on(&["const_element"], define(DefinitionKind::Constant).name_child(&["name"]).not_local().role()),
    on(&["property_element"], define(DefinitionKind::Field).name_by(variable_name).role()),
    on(&["property_promotion_parameter"], define(DefinitionKind::Field).name_by(variable_name).role()),
    on(&["function_call_expression"], define(DefinitionKind::Constant).name_by(defined_constant).not_local().role()),
    on(&["const_declaration", "property_declaration"], Role::Wrap(SignatureFrom::Wrapper)),
    on(&["namespace_use_declaration"], Role::Zone(Zone::As(ReferenceKind::Import))),
    on(&["namespace_use_declaration"], Role::Import(used)),
    on(REQUIRES, Role::Import(required)),
    on(&["comment"], Role::Comment),
    on(&["attribute_list"], Role::Annotation),
    on(&["attribute"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(
        &["base_clause", "class_interface_clause", "use_declaration"],
        Role::Zone(Zone::As(ReferenceKind::Inherit)),
    ),
    on(&["named_type"], Role::Zone(Zone::As(ReferenceKind::Type))),
    on(&["arguments", "use_list"], Role::Zone(Zone::Plain)),
    on(&["function_call_expression"], call("function")),
    on(&["member_call_expression", "nullsafe_member_call_expression"], method_call("name", "object")),
    on(&["scoped_call_expression"], method_call("name", "scope")),
    on(&["object_creation_expression"], call("")),
    on(&["qualified_name", "namespace_name", "class_constant_access_expression"], flat_path()),
    on(&["member_access_expression", "nullsafe_member_access_expression"], path("object", "name")),
    on(&["scoped_property_access_expression"], path("scope", "name")),
    on(&["variable_name"], Role::Leaf(Leaf::Marked)),
    on(&["variable_name"], Role::Opaque),
    on(&["name"], Role::Leaf(Leaf::Name)),
    on(&["relative_scope"], Role::Leaf(Leaf::This)),
    on(&["function_definition", "method_declaration", "anonymous_function", "arrow_function"], Role::Scope),
    on(&["function_definition", "method_declaration"], bind(BindingKind::Definition, "name", "return_type", "")),
    on(&["simple_parameter"], bind(BindingKind::Parameter, "name", "type", "")),
    on(&["variadic_parameter", "property_promotion_parameter"], Role::BindBy(parameter)),
    on(&["property_declaration"], Role::BindBy(properties)),
    on(&["assignment_expression"], bind(BindingKind::Local, "left", "", "right")),
    on(&["assignment_expression"], bind(BindingKind::Field, "left", "", "right")),
    on(&["foreach_statement"], Role::BindBy(iterated)),
    on(&["catch_clause"], bind(BindingKind::Local, "name", "type", "")),
    on(&["return_statement"], Role::BindBy(returned)),
    on(&["subscript_expression"], step("", Step::Element)),
    on(&["parenthesized_expression", "clone_expression"], same("")),
    on(&["string", "encapsed_string", "heredoc"], Role::Literal(Literal::String)),
    on(&["integer"], Role::Literal(Literal::Integer)),
    on(&["float"], Role::Literal(Literal::Float)),
    on(&["boolean"], Role::Literal(Literal::Boolean)),
    on(&["array_creation_expression"], Role::Literal(Literal::Other)),
    on(&["null"], Role::Literal(Literal::Null)),
];

const REQUIRES: &[&str] = &["require_expression", "require_once_expression", "include_expression", "include_once_expression"];

fn is_test(probe: &TestProbe<'_>) -> bool {
    let is_named = probe.name.starts_with("test") && probe.container.ends_with("Test");
    is_named || probe.has_attribute("Test") || probe.has_attribute("test")
}

fn method_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name") else { return };
    let is_constructor = cx.text(name) == "__construct";
    names.push(if is_constructor { Named::at(name).of(DefinitionKind::Constructor) } else { Named::at(name) });
}

/// Finds the name of a variable, without the `$`.
fn variable_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let variable = field(node, "name").or_else(|| child_of_kind(node, "variable_name"));
    names.extend(variable.and_then(|variable| variable.named_child(0)).map(Named::at));
}

/// Adds a parameter of any number of arguments, or one that is a field, too.
fn parameter<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(variable) = field(node, "name") else { return };
    let variable = if variable.kind() == "by_ref" { variable.named_child(0).unwrap_or(variable) } else { variable };
    let declared = field(node, "type");
    if node.kind() == "variadic_parameter" {
        found.push(Bound::new(BindingKind::Parameter, variable).to(Some(node)));
        return;
    }
    found.push(Bound::new(BindingKind::Parameter, variable).of(declared));
    found.extend(variable.named_child(0).map(|name| Bound::new(BindingKind::Definition, name).of(declared)));
}

fn properties<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let declared = field(node, "type");
    for element in children(node).into_iter().filter(|child| child.kind() == "property_element") {
        let name = field(element, "name").and_then(|variable| variable.named_child(0));
        let bound = name.map(|name| Bound::new(BindingKind::Definition, name).of(declared));
        found.extend(bound.map(|bound| bound.to(field(element, "default_value"))));
    }
}

/// Adds the variables of `foreach ($list as $key => $value)`.
fn iterated<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let parts = children(node);
    let [list, target, ..] = parts.as_slice() else { return };
    let mut names = if target.kind() == "pair" { children(*target) } else { vec![*target] };
    let value = names.pop().map(|value| if value.kind() == "by_ref" { value.named_child(0).unwrap_or(value) } else { value });
    found.extend(names.into_iter().map(|key| Bound::new(BindingKind::Local, key)));
    found.extend(value.map(|value| Bound::new(BindingKind::Local, value).to(Some(*list)).by(Step::Element)));
}

fn returned<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    found.extend(node.named_child(0).map(|value| Bound::new(BindingKind::Return, node).to(Some(value))));
}

/// Finds the name in `define('NAME', …)`.
fn defined_constant<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    if field(node, "function").is_none_or(|function| cx.text(function) != "define") {
        return;
    }
    let first = field(node, "arguments").and_then(|arguments| arguments.named_child(0));
    let string = first.and_then(|argument| argument.named_child(0)).filter(|value| value.kind() == "string");
    names.extend(string.map(|string| Named { range: unquoted(cx, string), kind: None, qualifier: None }));
}

/// Adds the imports of `use A\B;`, `use A\{B as C, D};` and `use function A\b;`.
fn used<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let prefix = child_of_kind(node, "namespace_name").map_or("", |name| cx.text(name));
    let clauses = field(node, "body").unwrap_or(node);
    for clause in children(clauses).into_iter().filter(|child| child.kind() == "namespace_use_clause") {
        let alias = field(clause, "alias");
        let skipped = [alias.map(|node| node.id()), field(clause, "type").map(|node| node.id())];
        let Some(path) = children(clause).into_iter().find(|child| !skipped.contains(&Some(child.id()))) else { continue };
        let whole = format!("{prefix}\\{}", cx.text(path));
        let (module, name) = whole.rsplit_once('\\').unwrap_or(("", &whole));
        let mut import = import_of(module.trim_start_matches('\\'), node);
        import.names.push(imported(name, alias.map(|alias| cx.text(alias))));
        imports.push(import);
    }
    true
}

/// Adds the import of `require 'a.php'`. `__DIR__ . '/a.php'` becomes `./a.php`.
fn required<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(mut path) = node.named_child(0) else { return false };
    if path.kind() == "parenthesized_expression" {
        path = path.named_child(0).unwrap_or(path);
    }
    if matches!(path.kind(), "string" | "encapsed_string") {
        imports.push(import_of(without_quotes(cx.text(path)), node));
        return true;
    }
    let text = cx.text(path);
    let beside = text.strip_prefix("__DIR__").map(|rest| rest.trim_start_matches([' ', '.']));
    match beside {
        Some(quoted) if quoted.len() > 2 && !quoted[1..quoted.len() - 1].contains(['\'', '"']) => {
            imports.push(import_of(&format!(".{}", without_quotes(quoted)), node));
            true
        }
        _ => false,
    }
}
