//! Rules for OCaml implementations. Interfaces use the same rules.

use tree_sitter::Node;

use super::text::{import_of, imported};
use super::{Language, Profile, Structure};
use crate::extract::rules::{
    Grammar, Leaf, Mention, Named, Role, Rule, SignatureFrom, Zone, call, define, flat_path, on, path, range_of,
};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "ocaml",
    lang: Lang(23),
    aliases: &["ml"],
    extensions: &["ml", "mll", "mly", "eliom"],
    file_names: &[],
    interpreters: &["ocaml", "ocamlrun"],
    profile: PROFILE,
    structure: Structure::Grammar(&Grammar::new("ocaml", &[RULES])),
};

/// The profile of implementations and interfaces.
pub(super) const PROFILE: Profile = Profile {
    line_comments: &[],
    block_comment: Some(("(*", "*)")),
    has_single_quotes: false,
    attributes: &["[@"],
    ..Profile::C_LIKE
};

pub(super) const RULES: &[Rule] = &[
    on(&["let_binding"], define(DefinitionKind::Variable).name_by(bound).role()),
    on(&["value_specification"], define(DefinitionKind::Variable).name_by(specified).body_fields(&[]).role()),
    on(&["external"], define(DefinitionKind::Function).name_child(&["value_name"]).role()),
    on(&["type_binding"], define(DefinitionKind::TypeAlias).name_by(type_name).role()),
    on(&["constructor_declaration"], define(DefinitionKind::Variant).name_by(constructor).role()),
    on(&["field_declaration"], define(DefinitionKind::Field).name_child(&["field_name"]).role()),
    on(&["exception_definition"], define(DefinitionKind::Struct).name_by(exception).role()),
    on(&["module_binding"], define(DefinitionKind::Module).name_child(&["module_name"]).role()),
    on(&["module_type_definition"], define(DefinitionKind::Interface).name_child(&["module_type_name"]).role()),
    on(&["class_binding", "class_type_binding"], define(DefinitionKind::Class).name_by(class_name).role()),
    on(&["method_definition", "method_specification"], define(DefinitionKind::Method).name_child(&["method_name"]).role()),
    on(&["instance_variable_definition"], define(DefinitionKind::Field).name_child(&["instance_variable_name"]).role()),
    on(
        &["value_definition", "type_definition", "module_definition", "class_definition", "class_type_definition"],
        Role::Wrap(SignatureFrom::Wrapper),
    ),
    on(&["open_module", "open_module_signature"], Role::Import(open)),
    on(&["include_module", "include_module_type"], Role::Import(include)),
    on(&["comment"], Role::Comment),
    on(&["inheritance_definition"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["module_binding"], Role::FieldZone("module_type", Zone::As(ReferenceKind::Inherit))),
    on(&["application_expression"], call("function")),
    on(&["infix_expression"], Role::Mention(piped)),
    on(&["method_invocation"], path("object", "method")),
    on(
        &[
            "value_path",
            "module_path",
            "extended_module_path",
            "type_constructor_path",
            "constructor_path",
            "module_type_path",
            "class_path",
            "field_path",
        ],
        flat_path(),
    ),
    on(&["type_constructor", "module_type_name", "class_name"], Role::Leaf(Leaf::Type)),
    on(
        &["value_name", "module_name", "constructor_name", "method_name", "field_name"],
        Role::Leaf(Leaf::Segment),
    ),
];

/// Finds the name of a binding. A binding with parameters or with a function as its value is a function. Other local
/// bindings are not recorded.
fn bound<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = match field(node, "pattern") {
        Some(pattern) if pattern.kind() == "value_name" => pattern,
        Some(pattern) if pattern.kind() == "parenthesized_operator" => pattern.named_child(0).unwrap_or(pattern),
        _ => return,
    };
    let is_function = child_of_kind(node, "parameter").is_some()
        || field(node, "body").is_some_and(|body| matches!(body.kind(), "fun_expression" | "function_expression"));
    if is_function {
        names.push(Named::at(name).of(DefinitionKind::Function));
    } else if !cx.owner_kind().is_some_and(DefinitionKind::is_callable) {
        names.push(Named::at(name));
    }
}

fn specified<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let is_function = field(node, "type").is_some_and(|of| of.kind() == "function_type");
    let kind = if is_function { DefinitionKind::Function } else { DefinitionKind::Variable };
    let name = child_of_kind(node, "value_name").or_else(|| child_of_kind(node, "parenthesized_operator"));
    names.extend(name.map(|name| Named::at(name).of(kind)));
}

fn type_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let kind = match field(node, "body").map(|body| body.kind()) {
        Some("variant_declaration") => DefinitionKind::Enum,
        Some("record_declaration") => DefinitionKind::Struct,
        _ => DefinitionKind::TypeAlias,
    };
    let name = field(node, "name").filter(|name| name.kind() == "type_constructor");
    names.extend(name.map(|name| Named::at(name).of(kind)));
}

/// Finds the name of a constructor, except that of an exception, which is recorded as the exception itself.
fn constructor<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    if cx.parent_kind() != "exception_definition" {
        names.extend(child_of_kind(node, "constructor_name").map(Named::at));
    }
}

fn exception<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let constructor = child_of_kind(node, "constructor_declaration");
    names.extend(constructor.and_then(|node| child_of_kind(node, "constructor_name")).map(Named::at));
}

fn class_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = children(node).into_iter().find(|child| matches!(child.kind(), "class_name" | "class_type_name"));
    names.extend(name.map(Named::at));
}

/// Adds the function that a pipe operator calls: `f` in `x |> f` and `f @@ x`.
fn piped<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let side = match field(node, "operator").map(|operator| cx.text(operator)) {
        Some("|>" | ">>=" | ">|=") => "right",
        Some("@@") => "left",
        _ => return,
    };
    let function = field(node, side).filter(|function| function.kind() == "value_path");
    if let Some((range, qualifier)) = function.and_then(|function| cx.resolve(function)) {
        mentions.push(Mention::new(ReferenceKind::Call, range, qualifier));
    }
}

fn open<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(module) = field(node, "module") else { return false };
    let mut import = import_of(cx.text(module), node);
    import.names.push(imported("*", None));
    imports.push(import);
    true
}

/// Adds the import of `include A`, which is a re-export.
fn include<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let module = field(node, "module").filter(|module| module.kind().ends_with("path"));
    let Some(module) = module else { return false };
    let mut import = import_of(cx.slice(range_of(module)), node);
    import.names.push(imported("*", None));
    import.is_reexport = true;
    imports.push(import);
    true
}
