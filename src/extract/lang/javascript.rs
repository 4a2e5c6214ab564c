//! Rules for JavaScript and JSX. The rules for TypeScript include these.

use tree_sitter::Node;

use super::text::{import_of, imported, is_screaming, unquoted, variable_kind, without_quotes};
use super::standard::Standard;
use super::{Language, Profile, Structure, Visibility};
use crate::extract::rules::{Bound, Grammar, Leaf, Mention, Named, Role, Rule, SignatureFrom, Zone, attribute, bind, bind_by, call, define, on, path, range_of, same, step};
use crate::extract::types::{BindingKind, DefinitionKind, Import, ImportedName, Literal, ReferenceKind, Step};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "javascript",
    lang: Lang(3),
    aliases: &["js", "jsx", "node", "ecmascript"],
    extensions: &["js", "jsx", "mjs", "cjs", "es6"],
    file_names: &["Jakefile"],
    interpreters: &["node", "nodejs"],
    profile: PROFILE,
    structure: Structure::Grammar(&Grammar::new("javascript", &[RULES, JSX, ONLY_JAVASCRIPT])),
};

/// The profile of JavaScript and TypeScript.
pub(super) const PROFILE: Profile = Profile {
    is_script: true,
    has_dollar: true,
    keywords: KEYWORDS,
    standard: Standard::JAVASCRIPT,
    run_by_name: "constructor next return then throw toJSON toLocaleString toString valueOf",
    visibility: Visibility::Exports,
    ..Profile::C_LIKE
};

const KEYWORDS: &str = "\
    any arguments as async await boolean break case catch class const continue debugger declare default delete \
    do else enum eval export extends false finally for function if implements import in instanceof interface let \
    never new null number object package private protected public return static string super switch symbol this \
    throw true try type typeof undefined unknown var void while with yield";

/// Limit on the nodes around a `var` that are searched for its function.
const MAX_OUTER: usize = 32;

/// Rules for node kinds that have another name in the TypeScript grammar.
const ONLY_JAVASCRIPT: &[Rule] = &[
    on(&["field_definition"], bind(BindingKind::Definition, "property", "", "value")),
    on(&["formal_parameters"], Role::BindBy(parameters)),
    on(&["field_definition"], define(DefinitionKind::Field).name_by(field_name).body_by(value_body).role()),
    on(&["class_heritage"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
];

/// Rules for JSX, which plain TypeScript does not have.
pub(super) const JSX: &[Rule] =
    &[on(&["jsx_opening_element", "jsx_self_closing_element"], Role::Mention(component))];

pub(super) const RULES: &[Rule] = &[
    on(&["function_declaration", "generator_function_declaration"], define(DefinitionKind::Function).role()),
    on(&["class_declaration"], define(DefinitionKind::Class).role()),
    on(&["method_definition"], define(DefinitionKind::Method).name_by(method_name).role()),
    on(&["variable_declarator"], define(DefinitionKind::Variable).name_by(declared).body_by(value_body).role()),
    on(&["assignment_expression"], define(DefinitionKind::Function).name_by(assigned).body_by(value_body).role()),
    on(&["pair"], define(DefinitionKind::Method).name_by(keyed_function).body_by(value_body).role()),
    on(&["call_expression"], define(DefinitionKind::Test).name_by(test_name).body_by(test_body).role()),
    on(&["export_statement", "lexical_declaration", "variable_declaration"], Role::Wrap(SignatureFrom::Wrapper)),
    on(&["import_statement"], Role::Zone(Zone::As(ReferenceKind::Import))),
    on(&["import_statement"], Role::Import(import_statement)),
    on(&["export_clause"], Role::Zone(Zone::As(ReferenceKind::Import))),
    on(&["export_statement"], Role::Import(reexport)),
    on(&["variable_declarator"], Role::Import(required_as)),
    on(&["call_expression"], Role::Import(required)),
    on(&["comment"], Role::Comment),
    on(&["decorator"], attribute()),
    on(&["decorator"], Role::Annotation),
    on(&["decorator"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["arguments"], Role::Zone(Zone::Plain)),
    on(&["call_expression"], call("function")),
    on(&["new_expression"], call("constructor")),
    on(&["pair", "pair_pattern"], Role::FieldZone("key", Zone::As(ReferenceKind::Member))),
    on(&["member_expression"], path("object", "property")),
    on(
        &["function_declaration", "generator_function_declaration", "function_expression", "generator_function",
          "arrow_function", "method_definition", "statement_block", "for_statement", "for_in_statement",
          "catch_clause", "class_body", "class_static_block"],
        Role::Scope,
    ),
    on(
        &["function_declaration", "generator_function_declaration", "method_definition"],
        bind(BindingKind::Definition, "name", "return_type", ""),
    ),
    on(&["variable_declarator"], Role::BindBy(declared_values)),
    on(&["assignment_expression"], bind(BindingKind::Field, "left", "", "right")),
    on(&["assignment_expression"], Role::BindBy(exported)),
    on(&["for_in_statement"], bind_by(BindingKind::Local, "left", "right", Step::Element)),
    on(&["catch_clause"], bind(BindingKind::Local, "parameter", "", "")),
    on(&["arrow_function"], Role::BindBy(arrow)),
    on(&["return_statement"], Role::BindBy(returned)),
    on(&["export_statement"], Role::BindBy(exports)),
    on(&["await_expression"], step("", Step::Unwrap)),
    on(&["subscript_expression"], step("object", Step::Element)),
    on(&["parenthesized_expression"], same("")),
    on(&["string", "template_string"], Role::Literal(Literal::String)),
    on(&["number"], Role::Literal(Literal::Integer)),
    on(&["array", "object", "regex"], Role::Literal(Literal::Other)),
    on(&["true", "false"], Role::Literal(Literal::Boolean)),
    on(&["null"], Role::Literal(Literal::Null)),
    on(&["this", "super"], Role::Leaf(Leaf::This)),
    on(&["shorthand_property_identifier_pattern"], Role::Leaf(Leaf::Name)),
    on(&["identifier", "shorthand_property_identifier"], Role::Leaf(Leaf::Name)),
    on(&["property_identifier", "private_property_identifier"], Role::Leaf(Leaf::Segment)),
];

/// Returns the kind of definition that a value creates. The value can be a function, a class, or a call that can return
/// the function in its first argument, changed: `debounce(function () {…})`, `React.memo(() => …)`.
fn value_kind<'t>(cx: &Cx<'_, 't>, value: Node<'t>) -> Option<DefinitionKind> {
    match value.kind() {
        "call_expression" => {
            let first = field(value, "arguments")?.named_child(0)?;
            let is_function = matches!(first.kind(), "arrow_function" | "function_expression");
            (is_function && is_wrapper(cx, field(value, "function")?)).then_some(DefinitionKind::Function)
        }
        _ => own_kind(value),
    }
}

fn own_kind(value: Node<'_>) -> Option<DefinitionKind> {
    match value.kind() {
        "arrow_function" | "function_expression" | "generator_function" => Some(DefinitionKind::Function),
        "class" => Some(DefinitionKind::Class),
        _ => None,
    }
}

/// Returns false for a callee that runs the function in its arguments and returns something else: a method of a value,
/// as in `list.map(…)` and `promise.then(…)`, or a function that returns the number of a timer. The functions of a
/// library belong to a name like `React`, `_` or `$`.
fn is_wrapper<'t>(cx: &Cx<'_, 't>, callee: Node<'t>) -> bool {
    const TIMERS: [&str; 6] = [
        "setTimeout", "setInterval", "setImmediate", "requestAnimationFrame", "requestIdleCallback", "queueMicrotask",
    ];
    match field(callee, "object") {
        Some(object) => {
            let is_library = |name: &str| !name.starts_with(|c: char| c.is_ascii_lowercase());
            object.kind() == "identifier" && is_library(cx.text(object))
        }
        None => callee.kind() == "identifier" && !TIMERS.contains(&cx.text(callee)),
    }
}

/// Returns the body of a value that is a function or a class.
pub(super) fn value_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let mut value = field(node, "value").or_else(|| chain(node).map(|(_, value)| value))?;
    if value.kind() == "call_expression" {
        value = field(value, "arguments")?.named_child(0)?;
    }
    field(value, "body").map(range_of)
}

/// Adds the names in `const a = x` and `const { a, b: c } = x`. The type of a function is that of its result.
fn declared_values<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let (Some(name), value) = (field(node, "name"), field(node, "value")) else { return };
    let function = value.filter(|value| value_kind(cx, *value) == Some(DefinitionKind::Function));
    let bound = match function {
        Some(function) => Bound::new(BindingKind::Local, name).of(field(function, "return_type")),
        None => Bound::new(BindingKind::Local, name).of(field(node, "type")).to(value),
    };
    found.push(Bound { scope: hoisted(cx), ..bound });
}

/// Returns where the names of `var` are visible: in the whole function or file.
fn hoisted(cx: &Cx<'_, '_>) -> Option<ByteRange> {
    let holds = |node: &Node<'_>| {
        let kind = node.kind();
        kind.contains("function") || matches!(kind, "method_definition" | "class_static_block" | "program")
    };
    let mut outer = (1..MAX_OUTER).map_while(|level| cx.ancestor(level));
    let outer = outer.find(holds).filter(|_| cx.parent_kind() == "variable_declaration");
    outer.map(range_of)
}

/// Adds the parameters of a function without types.
fn parameters<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    for part in children(node) {
        let name = if part.kind() == "assignment_pattern" { field(part, "left") } else { Some(part) };
        let bound = name.map(|name| Bound::new(BindingKind::Parameter, name));
        found.extend(bound.map(|bound| bound.to(field(part, "right"))));
    }
}

/// Adds the parameter in `x => …`, and the value that an arrow function without braces returns.
fn arrow<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    found.extend(field(node, "parameter").map(|name| Bound::new(BindingKind::Parameter, name)));
    let body = field(node, "body").filter(|body| body.kind() != "statement_block");
    found.extend(body.map(|body| Bound::new(BindingKind::Return, body).to(Some(body))));
}

fn returned<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    found.extend(node.named_child(0).map(|value| Bound::new(BindingKind::Return, node).to(Some(value))));
}

/// Adds what `export default x` and `export { a as b }` export.
fn exports<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    if field(node, "source").is_some() {
        return;
    }
    let declared = || {
        let declaration = field(node, "declaration").filter(|_| cx.text(node).starts_with("export default"));
        declaration.and_then(|declaration| field(declaration, "name"))
    };
    if let Some(value) = field(node, "value").or_else(declared) {
        let mut cursor = node.walk();
        let default = node.children(&mut cursor).find(|child| child.kind() == "default");
        found.extend(default.map(|name| Bound::new(BindingKind::Export, name).to(Some(value))));
    }
    let specifiers = child_of_kind(node, "export_clause").map(children).unwrap_or_default();
    for specifier in specifiers {
        let name = field(specifier, "alias").or_else(|| field(specifier, "name"));
        let bound = name.map(|name| Bound::new(BindingKind::Export, name).to(field(specifier, "name")));
        found.extend(bound);
    }
}

/// Adds what `module.exports = x`, `module.exports = { a, b: c }` and `exports.a = x` export.
fn exported<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else { return };
    let object = field(left, "object").map_or("", |object| cx.text(object));
    let Some(property) = field(left, "property") else { return };
    let is_whole = object == "module" && cx.text(property) == "exports";
    if is_whole && right.kind() == "object" {
        for part in children(right) {
            let name = if part.kind() == "pair" { field(part, "key") } else { Some(part) };
            let is_name =
                |name: &Node<'t>| matches!(name.kind(), "property_identifier" | "shorthand_property_identifier");
            let bound = name.filter(is_name).map(|name| Bound::new(BindingKind::Export, name));
            found.extend(bound.map(|bound| bound.to(field(part, "value").or(Some(part)))));
        }
    } else if is_whole || matches!(object, "exports" | "module.exports") {
        found.push(Bound::new(BindingKind::Export, property).to(Some(right)));
    }
}

/// Finds the name of a variable. Inside functions, only variables whose value is a function or a class are recorded.
fn declared<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name").filter(|name| name.kind() == "identifier") else { return };
    let kind = match field(node, "value").and_then(|value| value_kind(cx, value)) {
        Some(kind) => kind,
        None if cx.owner_kind().is_some_and(DefinitionKind::is_callable) || is_in_callback(cx) => return,
        None if is_screaming(cx.text(name)) => DefinitionKind::Constant,
        None => DefinitionKind::Variable,
    };
    names.push(Named::at(name).of(kind));
}

/// Returns true inside a function that is an argument in the value of a variable.
fn is_in_callback(cx: &Cx<'_, '_>) -> bool {
    if !cx.owner_kind().is_some_and(|kind| matches!(kind, DefinitionKind::Variable | DefinitionKind::Constant)) {
        return false;
    }
    let function = (0..MAX_OUTER).find(|level| cx.ancestor(*level).is_some_and(|node| own_kind(node).is_some()));
    function.is_some_and(|level| cx.ancestor(level + 1).is_some_and(|outer| outer.kind() == "arguments"))
}

/// Finds the names in `exports.limit = 5`, `Uploader.prototype.close = …`, `res.send = function …` and
/// `module.exports = class Queue …`. Properties of other objects are recorded only if the value is a function or a
/// class, variables only outside of functions, and handlers of events such as `onclick`, which no code calls, never.
fn assigned<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    if cx.parent_kind() == "assignment_expression" {
        return;
    }
    let Some((targets, value)) = chain(node) else { return };
    names.extend(targets.into_iter().filter_map(|target| assigned_name(cx, target, value)));
}

/// Returns the targets of `a = b = value`, and the value.
fn chain(assignment: Node<'_>) -> Option<(Vec<Node<'_>>, Node<'_>)> {
    /// Real chains are shorter.
    const MAX_TARGETS: usize = 8;
    let mut targets = vec![field(assignment, "left")?];
    let mut value = field(assignment, "right")?;
    while value.kind() == "assignment_expression" && targets.len() < MAX_TARGETS {
        targets.push(field(value, "left")?);
        value = field(value, "right")?;
    }
    Some((targets, value))
}

fn assigned_name<'t>(cx: &Cx<'_, 't>, target: Node<'t>, value: Node<'t>) -> Option<Named> {
    let is_local = cx.owner_kind().is_some_and(DefinitionKind::is_callable);
    if target.kind() == "identifier" {
        return own_kind(value).filter(|_| !is_local).map(|kind| Named::at(target).of(kind));
    }
    let object = field(target, "object")?;
    let property = field(target, "property").filter(|property| property.kind() == "property_identifier")?;
    let text = cx.text(object);
    let kind = if is_local && text != "this" { own_kind(value) } else { value_kind(cx, value) };
    if let Some(class) = text.strip_suffix(".prototype") {
        let start = object.start_byte();
        return Some(Named {
            range: range_of(property),
            kind: Some(kind.map_or(DefinitionKind::Field, |_| DefinitionKind::Method)),
            qualifier: Some(ByteRange::new(start as u32, (start + class.len()) as u32)),
        });
    }
    let name = cx.text(property);
    let handles_event = name.len() > 2 && name.starts_with("on") && name.bytes().all(|byte| byte.is_ascii_lowercase());
    match (text, kind) {
        (_, Some(DefinitionKind::Function)) if handles_event => None,
        ("module", _) => Some(Named::at(field(value, "name").unwrap_or(property)).of(kind?)),
        // A function that is assigned to a member is called through the value.
        (of, Some(DefinitionKind::Function)) if !matches!(of, "exports" | "module.exports") => {
            Some(Named::at(property).of(DefinitionKind::Method))
        }
        (_, Some(kind)) => Some(Named::at(property).of(kind)),
        ("exports" | "module.exports", None) if !refers(cx, value, property) => {
            Some(Named::at(property).of(variable_kind(name)))
        }
        _ => None,
    }
}

/// Returns true if a property of the module is another name for a definition, or is only declared: `exports.a = a`,
/// `exports.a = b.a`, `exports.a = void 0`.
fn refers<'t>(cx: &Cx<'_, 't>, value: Node<'t>, property: Node<'t>) -> bool {
    match value.kind() {
        "identifier" | "member_expression" => {
            cx.resolve(value).is_some_and(|(name, _)| cx.slice(name) == cx.text(property))
        }
        "unary_expression" => field(value, "operator").is_some_and(|operator| operator.kind() == "void"),
        "undefined" => true,
        _ => false,
    }
}

/// Finds the key of an object property whose value is a function.
fn keyed_function<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let is_function = field(node, "value").and_then(|value| value_kind(cx, value)) == Some(DefinitionKind::Function);
    let Some(key) = field(node, "key").filter(|_| is_function) else { return };
    names.extend(key_name(cx, key));
}

fn key_name<'t>(cx: &Cx<'_, 't>, key: Node<'t>) -> Option<Named> {
    match key.kind() {
        "property_identifier" | "private_property_identifier" => Some(Named::at(key)),
        "string" => Some(Named { range: unquoted(cx, key), kind: None, qualifier: None }),
        _ => None,
    }
}

fn method_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(named) = field(node, "name").and_then(|name| key_name(cx, name)) else { return };
    let is_constructor = cx.slice(named.range) == "constructor";
    names.push(if is_constructor { named.of(DefinitionKind::Constructor) } else { named });
}

/// Finds the name of a class field. A field whose value is a function becomes a method.
pub(super) fn field_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = field(node, "property").or_else(|| field(node, "name"));
    let Some(named) = name.and_then(|name| key_name(cx, name)) else { return };
    let is_function = field(node, "value").and_then(|value| value_kind(cx, value)) == Some(DefinitionKind::Function);
    names.push(if is_function { named.of(DefinitionKind::Method) } else { named });
}

/// Finds the title in `it("…", …)`, `describe("…", …)` and `test.each(…)("…", …)`.
fn test_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(callee) = field(node, "function") else { return };
    if !is_test_function(cx, callee) {
        return;
    }
    let Some(title) = field(node, "arguments").and_then(|arguments| arguments.named_child(0)) else { return };
    if matches!(title.kind(), "string" | "template_string") {
        names.push(Named { range: unquoted(cx, title), kind: None, qualifier: None });
    }
}

fn is_test_function<'t>(cx: &Cx<'_, 't>, callee: Node<'t>) -> bool {
    const NAMES: [&str; 10] =
        ["it", "test", "describe", "context", "suite", "specify", "fit", "xit", "fdescribe", "xdescribe"];
    let mut base = callee;
    // Follow the members of a callee such as `describe.skip.each(…)`, up to a small limit.
    for _ in 0..4 {
        base = match base.kind() {
            "identifier" => return NAMES.contains(&cx.text(base)),
            "member_expression" => match field(base, "object") {
                Some(object) => object,
                None => return false,
            },
            "call_expression" => match field(base, "function") {
                Some(function) if function.kind() == "member_expression" => function,
                _ => return false,
            },
            _ => return false,
        };
    }
    false
}

fn test_body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let function = children(field(node, "arguments")?).pop()?;
    field(function, "body").map(range_of)
}

/// Adds a component that is used as `<Panel …>`. Tags in lower case are HTML elements.
fn component<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let Some((range, qualifier)) = field(node, "name").and_then(|name| cx.resolve(name)) else { return };
    if cx.slice(range).starts_with(|c: char| c.is_ascii_uppercase()) {
        mentions.push(Mention::new(ReferenceKind::Call, range, qualifier));
    }
}

fn import_statement<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let clause = child_of_kind(node, "import_clause");
    let require = child_of_kind(node, "import_require_clause");
    let source = field(node, "source").or_else(|| field(require?, "source"));
    let Some(source) = source else { return true };
    let mut import = import_of(without_quotes(cx.text(source)), node);
    for part in clause.map(children).unwrap_or_default() {
        add_clause(cx, part, &mut import.names);
    }
    if let Some(name) = require.and_then(|require| child_of_kind(require, "identifier")) {
        import.names.push(imported("", Some(cx.text(name))));
    }
    imports.push(import);
    true
}

fn add_clause<'t>(cx: &Cx<'_, 't>, part: Node<'t>, names: &mut Vec<ImportedName>) {
    match part.kind() {
        "identifier" => names.push(imported("default", Some(cx.text(part)))),
        "namespace_import" => names.extend(part.named_child(0).map(|name| imported("", Some(cx.text(name))))),
        "named_imports" => {
            let specifiers = children(part).into_iter().filter(|child| child.kind() == "import_specifier");
            names.extend(specifiers.filter_map(|specifier| specified(cx, specifier)));
        }
        _ => {}
    }
}

fn specified<'t>(cx: &Cx<'_, 't>, specifier: Node<'t>) -> Option<ImportedName> {
    let name = without_quotes(cx.text(field(specifier, "name")?));
    Some(imported(name, field(specifier, "alias").map(|alias| without_quotes(cx.text(alias)))))
}

/// Adds the import of `export … from "…"`.
fn reexport<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(source) = field(node, "source") else { return false };
    let mut import = import_of(without_quotes(cx.text(source)), node);
    import.is_reexport = true;
    import.names = match (child_of_kind(node, "export_clause"), child_of_kind(node, "namespace_export")) {
        (Some(clause), _) => children(clause).into_iter().filter_map(|specifier| specified(cx, specifier)).collect(),
        (None, Some(namespace)) => {
            namespace.named_child(0).map(|name| imported("", Some(cx.text(name)))).into_iter().collect()
        }
        (None, None) => vec![imported("*", None)],
    };
    imports.push(import);
    true
}

/// Adds the import of `const fs = require("fs")`, `const { a: b } = require("c")` or `const x = require("y").z`.
fn required_as<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let (Some(name), Some(mut value)) = (field(node, "name"), field(node, "value")) else { return false };
    let property = field(value, "property");
    if value.kind() == "await_expression" || property.is_some() {
        value = field(value, "object").or_else(|| value.named_child(0)).unwrap_or(value);
    }
    let Some(module) = required_module(cx, value) else { return false };
    let mut import = import_of(module, node);
    match (name.kind(), property) {
        ("identifier", Some(property)) => import.names.push(imported(cx.text(property), Some(cx.text(name)))),
        ("identifier", None) => import.names.push(imported("", Some(cx.text(name)))),
        _ => import.names.extend(children(name).into_iter().filter_map(|part| destructured(cx, part))),
    }
    imports.push(import);
    true
}

fn destructured<'t>(cx: &Cx<'_, 't>, part: Node<'t>) -> Option<ImportedName> {
    match part.kind() {
        "pair_pattern" => {
            Some(imported(cx.text(field(part, "key")?), field(part, "value").map(|value| cx.text(value))))
        }
        "shorthand_property_identifier_pattern" => Some(imported(cx.text(part), None)),
        _ => None,
    }
}

fn required<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(module) = required_module(cx, node) else { return false };
    imports.push(import_of(module, node));
    true
}

/// Returns the module in `require("…")` or `import("…")`.
fn required_module<'a, 't>(cx: &Cx<'a, 't>, call: Node<'t>) -> Option<&'a str> {
    let callee = field(call, "function")?;
    let is_require = callee.kind() == "import" || callee.kind() == "identifier" && cx.text(callee) == "require";
    if !is_require {
        return None;
    }
    let argument = field(call, "arguments")?.named_child(0)?;
    (argument.kind() == "string").then(|| without_quotes(cx.text(argument)))
}
