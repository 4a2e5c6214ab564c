//! Rules for C. The rules for C++ include these.

use tree_sitter::Node;

use super::c_macros;
use super::text::{import_of, is_screaming};
use super::standard::Standard;
use super::{Language, Profile, Structure, Visibility};
use crate::extract::rules::{Bound, Grammar, Leaf, Mention, Named, Role, Rule, call, define, on, path, range_of, same, step};
use crate::extract::types::{Arity, BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Step};
use crate::extract::walk::{Cx, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "c",
    lang: Lang(8),
    aliases: &[],
    extensions: &["c", "h"],
    file_names: &[],
    interpreters: &["tcc"],
    profile: PROFILE,
    structure: Structure::Grammar(&Grammar::new("c", &[RULES]).masks_after_errors(c_macros::without_macros)),
};

pub(super) const PROFILE: Profile = Profile {
    has_overloads: true,
    has_implicit_this: true,
    standard: Standard::C,
    has_capital_values: true,
    visibility: Visibility::UnlessStatic,
    ..Profile::C_LIKE
};

pub(super) const RULES: &[Rule] = &[
    on(
        &["function_definition"],
        define(DefinitionKind::Function).name_by(function_name).arity_by(arity).ends_functions().role(),
    ),
    on(
        &["function_definition", "declaration", "field_declaration"],
        Role::Mention(macro_before_function),
    ),
    on(&["declaration"], define(DefinitionKind::Variable).name_by(declared).body_by(initial_braces).not_local().role()),
    on(&["struct_specifier"], define(DefinitionKind::Struct).name_by(specified).role()),
    on(&["union_specifier"], define(DefinitionKind::Union).name_by(specified).role()),
    on(&["enum_specifier"], define(DefinitionKind::Enum).name_by(specified).role()),
    on(&["type_definition"], define(DefinitionKind::TypeAlias).name_by(typedef_names).body_by(typedef_body).role()),
    on(&["field_declaration"], define(DefinitionKind::Field).name_by(field_names).role()),
    on(&["enumerator"], define(DefinitionKind::Variant).role()),
    on(&["preproc_def"], define(DefinitionKind::Constant).name_by(constant_name).role()),
    on(&["preproc_function_def"], define(DefinitionKind::Macro).body_fields(&["value"]).role()),
    on(&["preproc_include"], Role::Import(include)),
    on(&["comment"], Role::Comment),
    on(&["call_expression"], call("function")),
    on(&["field_expression"], path("argument", "field")),
    on(
        &["function_definition", "compound_statement", "for_statement", "if_statement", "while_statement", "case_statement"],
        Role::Scope,
    ),
    on(&["function_definition"], Role::BindBy(function)),
    on(&["declaration", "field_declaration", "type_definition"], Role::BindBy(variables)),
    on(&["pointer_expression", "subscript_expression"], same("argument")),
    on(&["parenthesized_expression"], same("")),
    on(&["cast_expression", "compound_literal_expression"], step("type", Step::Call)),
    on(&["string_literal", "concatenated_string"], Role::Literal(Literal::String)),
    on(&["number_literal"], Role::Literal(Literal::Integer)),
    on(&["char_literal"], Role::Literal(Literal::Character)),
    on(&["true", "false"], Role::Literal(Literal::Boolean)),
    on(&["null"], Role::Literal(Literal::Null)),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
    on(&["field_identifier"], Role::Leaf(Leaf::Segment)),
];

/// The name in a declarator, which may be nested in pointers, arrays and parameter lists.
pub(super) struct Declared<'t> {
    pub(super) name: Node<'t>,
    /// True if the declarator declares a function; false for a pointer to a function.
    pub(super) is_function: bool,
}

/// Finds the name in a declarator.
pub(super) fn dig(declarator: Node<'_>) -> Option<Declared<'_>> {
    let mut node = declarator;
    let mut is_function = false;
    // Real declarators are nested only a few levels deep.
    for _ in 0..64 {
        match node.kind() {
            "identifier" | "field_identifier" | "type_identifier" | "qualified_identifier" | "destructor_name"
            | "operator_name" | "operator_cast" | "template_function" | "primitive_type" => {
                return Some(Declared { name: node, is_function: is_function || node.kind() == "operator_cast" });
            }
            "function_declarator" => {
                if let Some(name) = named_by_macro(node) {
                    return Some(Declared { name, is_function: true });
                }
                is_function = true;
            }
            "parenthesized_declarator" => is_function = false,
            _ => {}
        }
        node = inner(node)?;
    }
    None
}

/// Returns the declarator inside another one.
fn inner(declarator: Node<'_>) -> Option<Node<'_>> {
    let named = field(declarator, "declarator");
    named.or_else(|| children(declarator).into_iter().find(|child| is_declarator(child.kind())))
}

/// Returns the parameters of the function that a declarator declares.
fn parameters(declarator: Node<'_>) -> Option<Node<'_>> {
    let declarators = std::iter::successors(Some(declarator), |outer| inner(*outer));
    declarators.take(64).find_map(|declarator| field(declarator, "parameters"))
}

/// Returns the numbers of arguments that a function takes.
pub(super) fn arity<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<Arity> {
    let mut list = children(field(node, "declarator").and_then(parameters)?);
    list.retain(|parameter| parameter.kind() != "comment" && cx.text(*parameter) != "void");
    let is_of_kind = |kind: &'static str| list.iter().filter(move |parameter| parameter.kind().starts_with(kind));
    let (n_optional, n_variadic) = (is_of_kind("optional_parameter").count(), is_of_kind("variadic_parameter").count());
    Some(Arity::variadic(list.len(), n_optional, n_variadic))
}

/// Returns the name in `FNAME(first)(void)`, which a macro declares: its last argument. A function cannot return a
/// function.
fn named_by_macro(declarator: Node<'_>) -> Option<Node<'_>> {
    let call = field(declarator, "declarator").filter(|call| call.kind() == "function_declarator")?;
    field(call, "declarator").filter(|name| name.kind() == "identifier")?;
    let argument = children(field(call, "parameters")?).pop()?;
    field(argument, "type").filter(|name| name.kind() == "type_identifier" && argument.named_child_count() == 1)
}

fn is_declarator(kind: &str) -> bool {
    kind.ends_with("declarator") || kind.ends_with("identifier") || matches!(kind, "destructor_name" | "operator_name")
}

fn function_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let declared = field(node, "declarator").and_then(dig);
    names.extend(declared.map(|declared| Named::at(declared.name)));
}

/// Adds the macro in `int ZEXPORT inflate(z_streamp stream)`.
fn macro_before_function<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let (Some(of), Some(mut declarator)) = (field(node, "type"), field(node, "declarator")) else { return };
    let mut before = range_of(of).end;
    // After each `*` of `char *ZEXPORT name(void)`.
    for _ in 0..64 {
        if declarator.kind() != "pointer_declarator" {
            break;
        }
        before = range_of(declarator).start + 1;
        let Some(inner) = field(declarator, "declarator") else { return };
        declarator = inner;
    }
    let text = cx.slice(ByteRange::new(before, range_of(declarator).start));
    let word = text.split_whitespace().next_back().filter(|word| is_screaming(word));
    if let (Some(word), "function_declarator") = (word, declarator.kind()) {
        let end = before + text.trim_end().len() as u32;
        let range = ByteRange::new(end - word.len() as u32, end);
        mentions.push(Mention::new(ReferenceKind::Macro, range, ByteRange::default()));
    }
}

/// Finds all names that a declaration declares. Prototypes become functions, and `const` variables become constants.
fn declared<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let is_constant = children(node).iter().any(|child| child.kind() == "type_qualifier" && is_const(cx.text(*child)));
    for Declared { name, is_function } in declarators(node) {
        let kind = match is_function {
            true => DefinitionKind::Function,
            false if is_constant || is_screaming(cx.text(name)) => DefinitionKind::Constant,
            false => DefinitionKind::Variable,
        };
        names.push(Named::at(name).of(kind));
    }
}

fn is_const(qualifier: &str) -> bool {
    matches!(qualifier, "const" | "constexpr" | "constinit")
}

/// Returns the name in each declarator of a declaration.
pub(super) fn declarators(node: Node<'_>) -> Vec<Declared<'_>> {
    let mut cursor = node.walk();
    node.children_by_field_name("declarator", &mut cursor).filter_map(dig).collect()
}

/// Adds the parameters of a function and its result.
fn function<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(declarator) = field(node, "declarator") else { return };
    let name = dig(declarator).map(|declared| Bound::new(BindingKind::Definition, last_name(declared.name)));
    found.extend(name.map(|name| name.of(explicit(node))));
    add_parameters(declarator, found);
}

/// Adds the parameters of a declarator.
pub(super) fn add_parameters<'t>(declarator: Node<'t>, found: &mut Vec<Bound<'t>>) {
    for parameter in parameters(declarator).map(children).unwrap_or_default() {
        let name = field(parameter, "declarator").and_then(dig).map(|declared| declared.name);
        found.extend(name.map(|name| Bound::new(BindingKind::Parameter, name).of(explicit(parameter))));
        // A value that is not described marks the parameter as one of any number.
        if parameter.kind() == "variadic_parameter" {
            found.push(Bound::new(BindingKind::Parameter, parameter).to(Some(parameter)));
        }
    }
}

/// Adds the variables of a declaration, the results of the functions and the types of the aliases that it declares.
fn variables<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let mut cursor = node.walk();
    for declarator in node.children_by_field_name("declarator", &mut cursor) {
        let Some(Declared { name, is_function }) = dig(declarator) else { continue };
        let is_definition = is_function || node.kind() == "type_definition";
        let kind = if is_definition { BindingKind::Definition } else { BindingKind::Local };
        let bound = Bound::new(kind, last_name(name)).of(explicit(node));
        found.push(bound.to(field(declarator, "value")));
    }
}

/// Returns the type of a declaration if it is a name.
pub(super) fn explicit(node: Node<'_>) -> Option<Node<'_>> {
    field(node, "type").filter(|of| of.kind() != "placeholder_type_specifier" && field(*of, "body").is_none())
}

/// Returns the last segment of a qualified name.
fn last_name(mut name: Node<'_>) -> Node<'_> {
    for _ in 0..64 {
        match field(name, "name").filter(|_| name.kind() == "qualified_identifier") {
            Some(inner) => name = inner,
            None => break,
        }
    }
    name
}

/// Returns the braces of an initial value, which are not part of the signature.
fn initial_braces<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let value = field(field(node, "declarator")?, "value")?;
    (value.kind() == "initializer_list").then(|| range_of(value))
}

/// Finds the name of a struct, union or enum with a body. If a typedef has the same name, only the typedef is recorded.
pub(super) fn specified<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let (Some(name), Some(_)) = (field(node, "name"), field(node, "body")) else { return };
    let parent = cx.parent().filter(|parent| parent.kind() == "type_definition");
    let is_typedef_of_same_name =
        parent.is_some_and(|parent| declarators(parent).iter().any(|other| cx.text(other.name) == cx.text(name)));
    if !is_typedef_of_same_name {
        names.push(Named::at(name));
    }
}

fn typedef_names<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let body = field(node, "type").filter(|of| field(*of, "body").is_some());
    let kind = match body.map(|of| of.kind()) {
        Some("struct_specifier") => DefinitionKind::Struct,
        Some("union_specifier") => DefinitionKind::Union,
        Some("enum_specifier") => DefinitionKind::Enum,
        _ => DefinitionKind::TypeAlias,
    };
    names.extend(declarators(node).into_iter().map(|declared| Named::at(declared.name).of(kind)));
}

fn typedef_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    field(field(node, "type")?, "body").map(range_of)
}

fn field_names<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    for Declared { name, is_function } in declarators(node) {
        let kind = if is_function { DefinitionKind::Method } else { DefinitionKind::Field };
        names.push(Named::at(name).of(kind));
    }
}

/// Finds the name in `#define NAME value`. A macro without a value is an include guard or a switch and is not recorded.
fn constant_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    if field(node, "value").is_some() {
        names.extend(field(node, "name").map(Named::at));
    }
}

/// Adds an `#include`. Angle brackets remain in the path, because they determine where the compiler searches the file.
fn include<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(path) = field(node, "path") else { return true };
    let mut import = import_of(cx.text(path).trim_matches('"'), node);
    import.range = ByteRange::new(node.start_byte() as u32, path.end_byte() as u32);
    imports.push(import);
    true
}
