//! Rules for R, where a definition is an assignment.

use tree_sitter::Node;

use super::text::{import_of, imported, unquoted, variable_kind, without_quotes};
use super::{Language, Profile, Structure};
use crate::extract::rules::{Grammar, Leaf, Named, Role, Rule, Zone, call, define, on, path, range_of};
use crate::extract::types::{DefinitionKind, Import};
use crate::extract::walk::{Cx, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "r",
    lang: Lang(22),
    aliases: &["rscript", "rlang"],
    extensions: &["r"],
    file_names: &[".Rprofile"],
    interpreters: &["Rscript", "r", "littler"],
    profile: Profile::HASH,
    structure: Structure::Grammar(&Grammar::new("r", &[RULES])),
};

const RULES: &[Rule] = &[
    on(&["binary_operator"], define(DefinitionKind::Function).name_by(assigned).body_by(assigned_body).role()),
    on(&["argument"], define(DefinitionKind::Method).name_by(keyed_function).body_by(keyed_body).role()),
    on(&["call"], define(DefinitionKind::Class).name_by(declared_by_call).body_by(last_function_body).role()),
    on(&["call"], Role::Import(attached)),
    on(&["comment"], Role::Comment),
    on(&["arguments"], Role::Zone(Zone::Plain)),
    on(&["call"], call("function")),
    on(&["namespace_operator", "extract_operator"], path("lhs", "rhs")),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
];

/// Finds the name that an assignment defines. `f <- function(…)` is recorded anywhere, other values only at file level.
fn assigned<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let operator = field(node, "operator").map(|operator| operator.kind());
    if !matches!(operator, Some("<-" | "=" | "<<-")) {
        return;
    }
    let (Some(name), Some(value)) = (field(node, "lhs"), field(node, "rhs")) else { return };
    let range = match name.kind() {
        "identifier" => range_of(name),
        "string" => unquoted(cx, name),
        _ => return,
    };
    let kind = match value.kind() {
        "function_definition" => DefinitionKind::Function,
        "call" if is_class(cx, value) => DefinitionKind::Class,
        _ if cx.owner_kind().is_some_and(DefinitionKind::is_callable) => return,
        _ => variable_kind(cx.slice(range)),
    };
    names.push(Named { range, kind: Some(kind), qualifier: None });
}

fn callee<'a, 't>(cx: &Cx<'a, 't>, call: Node<'t>) -> &'a str {
    let name = field(call, "function").and_then(|function| cx.resolve(function));
    name.map_or("", |(range, _)| cx.slice(range))
}

fn is_class(cx: &Cx<'_, '_>, call: Node<'_>) -> bool {
    let function = field(call, "function").map_or("", |function| cx.text(function));
    matches!(function, "R6Class" | "R6::R6Class" | "setRefClass" | "new_class" | "S7::new_class")
}

fn assigned_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    field(field(node, "rhs")?, "body").map(range_of)
}

/// Finds the name of an argument whose value is a function, for example a method of an R6 class.
fn keyed_function<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let is_function = field(node, "value").is_some_and(|value| value.kind() == "function_definition");
    let name = field(node, "name").filter(|name| is_function && name.kind() == "identifier");
    names.extend(name.map(Named::at));
}

fn keyed_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    field(field(node, "value")?, "body").map(range_of)
}

fn string_arguments(call: Node<'_>) -> Vec<Node<'_>> {
    let arguments = field(call, "arguments").map(children).unwrap_or_default();
    let values = arguments.into_iter().filter_map(|argument| field(argument, "value"));
    values.take_while(|value| value.kind() == "string").collect()
}

/// Finds the name in `setClass("A", …)`, `setMethod("f", "A", …)` and `test_that("…", {…})`.
fn declared_by_call<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let kind = match callee(cx, node) {
        "setClass" | "setRefClass" => DefinitionKind::Class,
        "setGeneric" => DefinitionKind::Function,
        "setMethod" => DefinitionKind::Method,
        "test_that" | "describe" | "it" => DefinitionKind::Test,
        _ => return,
    };
    let strings = string_arguments(node);
    let Some(name) = strings.first() else { return };
    let of = strings.get(1).filter(|_| kind == DefinitionKind::Method).map(|of| unquoted(cx, *of));
    names.push(Named { range: unquoted(cx, *name), kind: Some(kind), qualifier: of });
}

fn last_function_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let last = children(field(node, "arguments")?).pop().and_then(|argument| field(argument, "value"))?;
    match last.kind() {
        "function_definition" => field(last, "body").map(range_of),
        "braced_expression" => Some(range_of(last)),
        _ => None,
    }
}

/// Adds an import: `library(a)` imports all names, `requireNamespace("a")` none. `source("a.R")` imports a file.
fn attached<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let function = field(node, "function").filter(|function| function.kind() == "identifier");
    let name = function.map_or("", |function| cx.text(function));
    let is_attached = matches!(name, "library" | "require");
    if !is_attached && !matches!(name, "requireNamespace" | "loadNamespace" | "source") {
        return false;
    }
    let first = field(node, "arguments").and_then(|arguments| arguments.child_by_field_name("argument"));
    let Some(module) = first.and_then(|argument| field(argument, "value")) else { return false };
    let mut import = import_of(without_quotes(cx.text(module)), node);
    if is_attached {
        import.names.push(imported("*", None));
    }
    imports.push(import);
    true
}
