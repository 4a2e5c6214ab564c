//! Rules for Lua.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming, unquoted, without_quotes};
use super::standard::Standard;
use super::{Language, Profile, Structure};
use crate::extract::rules::{
    Bound, Grammar, Leaf, Named, Role, Rule, SignatureFrom, Zone, call, define, on, path, range_of, same,
};
use crate::extract::types::{BindingKind, DefinitionKind, Import, Literal};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "lua",
    lang: Lang(17),
    aliases: &["luajit"],
    extensions: &["lua", "rockspec", "luau"],
    file_names: &[".luacheckrc"],
    interpreters: &["lua", "luajit"],
    profile: Profile { block_comment: Some(("--[[", "]]")), is_script: true, run_by_name: "__add __band __bor __call __close __concat __div __eq __gc __idiv __index __ipairs __le __len __lt __mod __mul __newindex __pairs __pow __sub __tostring __unm", standard: Standard::LUA, ..Profile::DASHES },
    structure: Structure::Grammar(&Grammar::new("lua", &[RULES])),
};

const RULES: &[Rule] = &[
    on(&["function_declaration"], define(DefinitionKind::Function).name_by(function_name).role()),
    on(&["assignment_statement"], define(DefinitionKind::Variable).name_by(assigned).body_by(assigned_body).role()),
    on(&["field"], define(DefinitionKind::Method).name_by(keyed_function).body_by(field_body).role()),
    on(&["function_call"], define(DefinitionKind::Test).name_by(test_name).body_by(test_body).role()),
    on(&["variable_declaration"], Role::Wrap(SignatureFrom::Wrapper)),
    on(&["variable_declaration"], Role::Import(required_as)),
    on(&["function_call"], Role::Import(required)),
    on(&["comment"], Role::Comment),
    on(&["arguments"], Role::Zone(Zone::Plain)),
    on(&["function_call"], call("name")),
    on(&["dot_index_expression"], path("table", "field")),
    on(&["method_index_expression"], path("table", "method")),
    on(SCOPES, Role::Scope),
    on(&["parameters"], Role::BindBy(parameters)),
    on(&["variable_declaration"], Role::BindBy(locals)),
    on(&["function_declaration"], Role::BindBy(local_function)),
    on(&["assignment_statement"], Role::BindBy(set)),
    on(&["for_generic_clause", "for_numeric_clause"], Role::BindBy(iterated)),
    on(&["return_statement"], Role::BindBy(returned)),
    on(&["field"], Role::BindBy(returned_field)),
    on(&["field"], Role::FieldZone("name", Zone::Label)),
    on(&["parenthesized_expression"], same("")),
    on(&["string"], Role::Literal(Literal::String)),
    on(&["number"], Role::Literal(Literal::Float)),
    on(&["true", "false"], Role::Literal(Literal::Boolean)),
    on(&["nil"], Role::Literal(Literal::Null)),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
];

/// Node kinds in which names are bound.
const SCOPES: &[&str] = &["block", "for_statement", "function_declaration", "function_definition", "repeat_statement"];

fn parameters<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let names = children(node).into_iter().filter(|name| name.kind() == "identifier");
    found.extend(names.map(|name| Bound::new(BindingKind::Parameter, name)));
}

/// Returns the names on the left of an assignment, with their values.
fn pairs<'t>(cx: &Cx<'_, 't>, assignment: Node<'t>) -> Vec<(Node<'t>, Option<Node<'t>>)> {
    let Some(left) = child_of_kind(assignment, "variable_list") else { return Vec::new() };
    let mut cursor = left.walk();
    let names: Vec<Node<'t>> = left.children_by_field_name("name", &mut cursor).collect();
    let mut values = child_of_kind(assignment, "expression_list").map(children).unwrap_or_default();
    values.retain(|value| value.kind() != "comment");
    let value = |at: usize| values.get(at).map(|value| table_of(cx, *value));
    names.into_iter().enumerate().map(|(at, name)| (name, value(at))).collect()
}

/// Returns the table whose functions `setmetatable(table, class)` has: the class, or the table if the class is none.
fn table_of<'t>(cx: &Cx<'_, 't>, value: Node<'t>) -> Node<'t> {
    let is_set = value.kind() == "function_call" && field(value, "name").is_some_and(|name| cx.text(name) == "setmetatable");
    let arguments = field(value, "arguments").filter(|_| is_set).map(children).unwrap_or_default();
    match arguments.as_slice() {
        [table, class] if table.kind() == "table_constructor" && class.kind() == "identifier" => *class,
        [table, _] => *table,
        _ => value,
    }
}

/// Adds the names of `local a, b = c, d`.
fn locals<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let assignment = child_of_kind(node, "assignment_statement").unwrap_or(node);
    // A name of the whole file that is visible in a part of it only would count as local.
    let is_in_block = cx.parent_kind() != "chunk";
    let bound = |(name, value)| {
        let bound = Bound::new(BindingKind::Local, name).to(value);
        if is_in_block { bound.after(node) } else { bound }
    };
    found.extend(pairs(cx, assignment).into_iter().map(bound));
}

/// Adds the name of a local function, which its block sees.
fn local_function<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = field(node, "name").filter(|_| cx.text(node).starts_with("local"));
    found.extend(name.map(|name| Bound::new(BindingKind::Definition, name)));
}

/// Adds what is set to a variable or a field of a table.
fn set<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    if cx.parent_kind() == "variable_declaration" {
        return;
    }
    for (name, value) in pairs(cx, node) {
        let field = field(name, "field").filter(|_| name.kind() == "dot_index_expression");
        let is_name = value.is_some_and(|value| matches!(value.kind(), "identifier" | "dot_index_expression"));
        match field {
            Some(field) if is_name => found.push(Bound::new(BindingKind::Export, field).to(value)),
            None if name.kind() == "identifier" => found.push(Bound::new(BindingKind::Export, name).to(value)),
            _ => {}
        }
    }
}

fn iterated<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let list = child_of_kind(node, "variable_list").map(children);
    let names = list.unwrap_or_else(|| field(node, "name").into_iter().collect());
    found.extend(names.into_iter().filter(|name| name.kind() == "identifier").map(|name| Bound::new(BindingKind::Local, name)));
}

/// Adds the value that a file returns.
fn returned<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    if cx.parent_kind() == "chunk" {
        let value = child_of_kind(node, "expression_list").and_then(|list| list.named_child(0));
        found.push(Bound::new(BindingKind::Return, node).to(value.map(|value| table_of(cx, value))));
    }
}

/// Adds a field of the table that a file returns.
fn returned_field<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let is_returned = cx.ancestor(2).is_some_and(|outer| outer.kind() == "return_statement")
        && cx.ancestor(3).is_some_and(|outer| outer.kind() == "chunk");
    let name = field(node, "name").filter(|name| is_returned && name.kind() == "identifier");
    let value = field(node, "value").filter(|value| matches!(value.kind(), "identifier" | "dot_index_expression"));
    if let (Some(name), Some(value)) = (name, value) {
        found.push(Bound::new(BindingKind::Export, name).to(Some(value)));
    }
}

/// Finds the name in `function M.send()` and `function Uploader:upload()`, with the table as its qualifier.
fn function_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    names.extend(field(node, "name").and_then(|name| of_table(cx, name, DefinitionKind::Function)));
}

/// Returns the name of a definition. A function in a table becomes a method of that table.
fn of_table<'t>(cx: &Cx<'_, 't>, name: Node<'t>, kind: DefinitionKind) -> Option<Named> {
    let (range, qualifier) = match field(name, "field").filter(|_| name.kind() == "bracket_index_expression") {
        Some(key) if key.kind() == "string" => {
            let table = field(name, "table").and_then(|table| cx.resolve(table));
            (unquoted(cx, key), table.map(|(range, _)| range).unwrap_or_default())
        }
        Some(_) => return None,
        None => cx.resolve(name)?,
    };
    let qualifier = (!qualifier.is_empty()).then_some(qualifier);
    let is_method = qualifier.is_some() && kind == DefinitionKind::Function;
    let kind = if is_method { DefinitionKind::Method } else { kind };
    Some(Named { range, kind: Some(kind), qualifier })
}

/// Finds the names that an assignment defines. Functions are recorded anywhere; other values only at file level, and
/// only if they are not aliases of other names.
fn assigned<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let (Some(left), Some(right)) = (child_of_kind(node, "variable_list"), child_of_kind(node, "expression_list")) else {
        return;
    };
    let is_local = cx.owner_kind().is_some_and(DefinitionKind::is_callable);
    for (name, value) in children(left).into_iter().zip(children(right)) {
        let text = cx.text(name);
        let kind = match value.kind() {
            "function_definition" => DefinitionKind::Function,
            _ if is_local || text.contains("__") => continue,
            "identifier" | "dot_index_expression" => continue,
            _ if is_screaming(text) => DefinitionKind::Constant,
            _ => DefinitionKind::Variable,
        };
        names.extend(of_table(cx, name, kind));
    }
}

fn assigned_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let value = child_of_kind(node, "expression_list")?.named_child(0)?;
    function_body(value)
}

fn function_body(function: Node<'_>) -> Option<ByteRange> {
    field(function, "body").map(range_of)
}

fn keyed_function<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let is_function = field(node, "value").is_some_and(|value| value.kind() == "function_definition");
    let Some(name) = field(node, "name").filter(|_| is_function) else { return };
    match name.kind() {
        "identifier" => names.push(Named::at(name)),
        "string" => names.push(Named { range: unquoted(cx, name), kind: None, qualifier: None }),
        _ => {}
    }
}

fn field_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    function_body(field(node, "value")?)
}

/// Finds the title in `describe("…", function() … end)` and similar calls.
fn test_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let callee = field(node, "name").filter(|name| name.kind() == "identifier");
    let is_test = callee.is_some_and(|name| matches!(cx.text(name), "describe" | "it" | "context" | "test" | "spec"));
    let arguments = field(node, "arguments").filter(|_| is_test).map(children).unwrap_or_default();
    if let [title, .., last] = arguments.as_slice()
        && title.kind() == "string"
        && last.kind() == "function_definition"
    {
        names.push(Named { range: unquoted(cx, *title), kind: None, qualifier: None });
    }
}

fn test_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    function_body(children(field(node, "arguments")?).pop()?)
}

/// Adds the import of `local json = require("json").decode`.
fn required_as<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let find = || {
        let assignment = child_of_kind(node, "assignment_statement")?;
        let name = child_of_kind(assignment, "variable_list")?.named_child(0)?;
        let mut value = child_of_kind(assignment, "expression_list")?.named_child(0)?;
        let taken = (value.kind() == "dot_index_expression").then(|| field(value, "field")).flatten();
        if taken.is_some() {
            value = field(value, "table")?;
        }
        let mut import = import_of(required_module(cx, value)?, node);
        import.names.push(imported(taken.map_or("", |taken| cx.text(taken)), Some(cx.text(name))));
        Some(import)
    };
    let import = find();
    let is_import = import.is_some();
    imports.extend(import);
    is_import
}

fn required<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(module) = required_module(cx, node) else { return false };
    imports.push(import_of(module, node));
    true
}

fn required_module<'a, 't>(cx: &Cx<'a, 't>, call: Node<'t>) -> Option<&'a str> {
    let is_require = field(call, "name").is_some_and(|name| cx.text(name) == "require");
    let module = field(call, "arguments").filter(|_| is_require)?.named_child(0)?;
    (module.kind() == "string").then(|| without_quotes(cx.text(module)))
}
