//! Rules for Dart.

use tree_sitter::Node;

use super::text::{import_of, imported, unquoted, without_quotes};
use super::standard::Standard;
use super::{Extensions, Language, Profile, Structure};
use crate::extract::rules::{
    Bound, Grammar, Leaf, Mention, Named, Role, Rule, SignatureFrom, Zone, bind, call, define, flat_path, on, path,
    range_of, same, step,
};
use crate::extract::types::{BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Step, Steps, Value};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "dart",
    lang: Lang(21),
    aliases: &[],
    extensions: &["dart"],
    file_names: &[],
    interpreters: &["dart"],
    profile: Profile {
        has_implicit_this: true,
        has_package_clause: true,
        standard: Standard::DART,
        run_by_name: "call compareTo current hashCode iterator moveNext noSuchMethod toString",
        extensions: Extensions::Blocks,
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(&Grammar::new("dart", &[RULES])),
};

const RULES: &[Rule] = &[
    on(&["library_name"], define(DefinitionKind::Module).name_child(&["dotted_identifier_list"]).role()),
    on(&["class_declaration"], define(DefinitionKind::Class).role()),
    on(&["mixin_declaration"], define(DefinitionKind::Trait).role()),
    on(&["enum_declaration"], define(DefinitionKind::Enum).role()),
    on(&["enum_entry"], define(DefinitionKind::Variant).role()),
    on(&["extension_declaration"], define(DefinitionKind::Impl).name_by(extension_name).role()),
    on(&["extension_type_declaration"], define(DefinitionKind::Class).role()),
    on(&["type_alias"], define(DefinitionKind::TypeAlias).name_child(&["type_identifier"]).role()),
    on(
        &["function_declaration", "local_function_declaration", "method_declaration"],
        define(DefinitionKind::Function).name_by(signed_name).body_child(&["function_body"]).role(),
    ),
    on(
        &["declaration", "external_function_declaration"],
        define(DefinitionKind::Field).name_by(member_names).role(),
    ),
    on(&["top_level_variable_declaration"], define(DefinitionKind::Variable).name_by(member_names).role()),
    on(&["call_expression"], define(DefinitionKind::Test).name_by(test_name).body_by(test_body).role()),
    on(&["member_declaration"], Role::Wrap(SignatureFrom::Wrapper)),
    on(&["import_or_export"], Role::Import(import)),
    on(&["part_directive", "part_of_directive"], Role::Import(part)),
    on(&["comment", "documentation_comment"], Role::Comment),
    on(&["annotation"], Role::Annotation),
    on(&["method_declaration", "declaration"], Role::Modifiers),
    on(&["annotation"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["superclass", "interfaces", "mixins"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["arguments", "type_arguments"], Role::Zone(Zone::Plain)),
    on(&["call_expression"], call("function")),
    on(&["member_expression"], path("object", "property")),
    on(&["mixin_declaration", "extension_declaration"], Role::Mention(extended)),
    on(&["label"], Role::Zone(Zone::Label)),
    on(&["new_expression", "const_object_expression"], call("")),
    on(&["null_aware_member_expression"], path("object", "property")),
    on(&["cascade_call_expression"], Role::Mention(cascaded)),
    on(SCOPES, Role::Scope),
    on(&["function_signature", "getter_signature"], bind(BindingKind::Definition, "name", "return_type", "")),
    on(&["local_function_declaration"], Role::BindBy(local_function)),
    on(&["formal_parameter"], Role::BindBy(parameter)),
    on(&["initialized_variable_declaration", "initialized_identifier", "static_final_declaration"], Role::BindBy(variable)),
    on(&["for_statement"], Role::BindBy(iterated)),
    on(&["variable_pattern"], Role::BindBy(matched)),
    on(&["catch_clause"], Role::BindBy(caught)),
    on(&["type_parameter"], bind(BindingKind::TypeParameter, "name", "bound", "")),
    on(&["type_alias"], Role::BindBy(alias)),
    on(&["parenthesized_expression", "cascade", "unary_expression"], same("")),
    on(&["null_assertion_expression"], same("value")),
    on(&["index_expression"], step("object", Step::Element)),
    on(&["await_expression"], step("", Step::Unwrap)),
    on(&["string_literal"], Role::Literal(Literal::String)),
    on(&["decimal_integer_literal"], Role::Literal(Literal::Integer)),
    on(&["true", "false"], Role::Literal(Literal::Boolean)),
    on(&["null_literal"], Role::Literal(Literal::Null)),
    on(&["list_literal", "set_or_map_literal"], Role::Literal(Literal::Other)),
    on(&["this", "super"], Role::Leaf(Leaf::This)),
    on(&["type"], flat_path()),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
];

/// Node kinds in which names are bound.
const SCOPES: &[&str] = &[
    "block",
    "class_declaration",
    "extension_declaration",
    "extension_type_declaration",
    "for_statement",
    "function_declaration",
    "function_expression",
    "if_statement",
    "local_function_declaration",
    "member_declaration",
    "mixin_declaration",
    "switch_statement_case",
    "try_statement",
];

/// Adds the type that a mixin or an extension is for, whose members its code sees.
fn extended<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let of = field(node, "class").or_else(|| child_of_kind(node, "type"));
    let found = of.and_then(|of| cx.resolve(of));
    mentions.extend(found.map(|(range, qualifier)| Mention::new(ReferenceKind::Inherit, range, qualifier)));
}

/// Adds the method of `value..method()`.
fn cascaded<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let Some(name) = field(node, "property") else { return };
    let value = cx.ancestor(1).filter(|outer| outer.kind() == "cascade").and_then(|cascade| cascade.named_child(0));
    let called = value.and_then(|value| match value.kind() {
        "call_expression" => field(value, "function"),
        "new_expression" | "const_object_expression" => value.named_child(0),
        _ => None,
    });
    let steps = if called.is_some() { Steps::default().then(Step::Call) } else { Some(Steps::default()) };
    let at = called.or(value).and_then(|of| cx.resolve(of)).map(|(range, _)| range.start);
    let receiver = at.zip(steps).map_or(Value::Other, |(at, steps)| Value::Of { at, steps });
    mentions.push(Mention { receiver, ..Mention::new(ReferenceKind::Call, range_of(name), ByteRange::default()) });
}

/// Returns the declared type of `node`, unless it is the type of a function or a record.
fn declared(node: Node<'_>) -> Option<Node<'_>> {
    let declared = child_of_kind(node, "type")?;
    let is_named = |inner: Node<'_>| !matches!(inner.kind(), "function_type" | "record_type" | "void_type");
    declared.named_child(0).is_some_and(is_named).then_some(declared)
}

/// Adds the name of a local function, which its block sees.
fn local_function<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(signature) = child_of_kind(node, "function_signature") else { return };
    let name = field(signature, "name").map(|name| Bound::new(BindingKind::Definition, name));
    found.extend(name.map(|name| name.of(field(signature, "return_type"))));
}

/// Adds a parameter. `this.name` and `super.name` bind no name.
fn parameter<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = field(node, "name").or_else(|| child_of_kind(node, "identifier"));
    let is_function = child_of_kind(node, "formal_parameter_list").is_some();
    let bound = name.map(|name| Bound::new(BindingKind::Parameter, name));
    found.extend(bound.map(|bound| bound.of(declared(node).filter(|_| !is_function))));
}

/// Adds a variable, whose type is before the first one of its declaration.
fn variable<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(name) = field(node, "name") else { return };
    let around = [Some(node), cx.parent(), cx.ancestor(1)];
    let levels = if node.kind() == "initialized_variable_declaration" { 1 } else { 3 };
    let holder = around.into_iter().take(levels).flatten().find(|around| child_of_kind(*around, "type").is_some());
    let bound = Bound::new(BindingKind::Local, name);
    found.push(match holder {
        Some(holder) if declared(holder).is_none() => bound,
        holder => bound.of(holder.and_then(declared)).to(field(node, "value")),
    });
}

fn iterated<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = field(node, "name").map(|name| Bound::new(BindingKind::Local, name));
    found.extend(name.map(|name| name.of(declared(node)).to(field(node, "value")).by(Step::Element)));
}

fn matched<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = field(node, "name").map(|name| Bound::new(BindingKind::Local, name));
    found.extend(name.map(|name| name.of(declared(node))));
}

/// Adds the names of `catch (error, trace)`, which the block behind it sees.
fn caught<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let names = ["exception", "stack_trace"].into_iter().filter_map(|name| field(node, name));
    found.extend(names.map(|name| Bound::new(BindingKind::Local, name)));
}

fn alias<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = child_of_kind(node, "type_identifier").map(|name| Bound::new(BindingKind::Definition, name));
    found.extend(name.map(|name| name.of(declared(node))));
}

fn extension_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = field(node, "name").or_else(|| field(node, "class"));
    let range = name.and_then(|name| cx.resolve(name)).map(|(range, _)| range);
    names.extend(range.map(|range| Named { range, kind: None, qualifier: None }));
}

/// Returns the name that a signature declares, with its kind.
fn signed(signature: Node<'_>) -> Option<Named> {
    let mut signature = signature;
    if signature.kind() == "method_signature" {
        signature = signature.named_child(0)?;
    }
    let kind = match signature.kind() {
        "function_signature" => None,
        "getter_signature" | "setter_signature" => Some(DefinitionKind::Property),
        "operator_signature" => Some(DefinitionKind::Method),
        kind if kind.contains("constructor_signature") => Some(DefinitionKind::Constructor),
        _ => return None,
    };
    let name = last_name(signature).or_else(|| field(signature, "operator"))?;
    Some(Named { range: range_of(name), kind, qualifier: None })
}

/// Returns the last segment of a name: `local` for `Uploader.local`.
fn last_name(signature: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = signature.walk();
    let names = signature.children_by_field_name("name", &mut cursor).filter(|name| name.is_named());
    names.last()
}

fn signed_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let signature = field(node, "signature").or_else(|| child_of_kind(node, "function_signature"));
    names.extend(signature.and_then(signed));
}

/// Finds the names of a member without a body, which is a signature or declares variables.
fn member_names<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let is_const = cx.text(node).contains("const ");
    for child in children(node) {
        match child.kind() {
            "initialized_identifier_list" | "static_final_declaration_list" | "identifier_list" => {
                for declared in children(child) {
                    let named = Named::at(field(declared, "name").unwrap_or(declared));
                    names.push(if is_const { named.of(DefinitionKind::Constant) } else { named });
                }
            }
            _ => {
                let named = signed(child);
                names.extend(named.map(|named| match named.kind {
                    None => named.of(DefinitionKind::Method),
                    Some(_) => named,
                }));
            }
        }
    }
}

/// Finds the title of a test: `group('…', () { … })` or `test('…', …)`.
fn test_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let callee = field(node, "function").filter(|callee| callee.kind() == "identifier");
    let is_test = callee.is_some_and(|callee| matches!(cx.text(callee), "test" | "group" | "testWidgets" | "blocTest"));
    let title = field(node, "arguments").filter(|_| is_test).and_then(|arguments| arguments.named_child(0));
    let title = title.filter(|title| title.kind() == "string_literal");
    names.extend(title.map(|title| Named { range: unquoted(cx, title), kind: None, qualifier: None }));
}

fn test_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let arguments = children(field(node, "arguments")?);
    let function = arguments.into_iter().find(|argument| argument.kind() == "function_expression")?;
    field(function, "body").map(range_of)
}

fn import<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(directive) = node.named_child(0) else { return true };
    let is_export = directive.kind() == "library_export";
    let specification = child_of_kind(directive, "import_specification").unwrap_or(directive);
    let Some(uri) = field(specification, "uri") else { return true };
    let mut import = import_of(first_string(cx, uri), node);
    import.is_reexport = is_export;
    if let Some(alias) = field(specification, "alias") {
        import.names.push(imported("", Some(cx.text(alias))));
        imports.push(import);
        return true;
    }
    let combinators = children(specification).into_iter().filter(|child| child.kind() == "combinator");
    let (shown, hidden): (Vec<Node<'t>>, Vec<Node<'t>>) = combinators.partition(|child| cx.text(*child).starts_with("show"));
    import.names.extend(shown.into_iter().flat_map(children).map(|name| imported(cx.text(name), None)));
    if import.names.is_empty() {
        import.names.push(imported("*", None));
    }
    // A hidden name has an empty alias.
    import.names.extend(hidden.into_iter().flat_map(children).map(|name| imported(cx.text(name), Some(""))));
    imports.push(import);
    true
}

fn part<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let file = field(node, "uri").or_else(|| node.named_child(0));
    let is_reexport = node.kind() == "part_directive";
    imports.extend(file.map(|file| Import { is_reexport, ..import_of(first_string(cx, file), node) }));
    true
}

/// Returns the default URI of an import. A configurable URI has alternatives after it.
fn first_string<'a>(cx: &Cx<'a, '_>, uri: Node<'_>) -> &'a str {
    let text = cx.text(uri);
    without_quotes(text.split_once(" if").map_or(text, |(first, _)| first))
}
