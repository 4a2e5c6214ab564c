//! Rules for Python.

use tree_sitter::Node;

use super::text::{import_of, imported, is_quoted_type, is_word, unquoted, variable};
use super::standard::Standard;
use super::{Indentation, Language, Profile, Structure};
use crate::extract::rules::{Bound, Grammar, Leaf, Mention, Named, Role, Rule, SignatureFrom, TestProbe, Zone, bind, bind_by, call, define, on, path, range_of, same, step};
use crate::extract::types::{BindingKind, DefinitionKind, Import, ImportedName, Literal, ReferenceKind, Step};
use crate::extract::walk::{Cx, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "python",
    lang: Lang(2),
    aliases: &["py", "python3"],
    extensions: &["py", "pyi", "pyw", "pyx", "wsgi"],
    file_names: &["SConstruct", "SConscript", "wscript"],
    interpreters: &["python", "pypy", "uv"],
    profile: Profile {
        indentation: Indentation::OutsideBrackets,
        is_script: true,
        has_tests_by_name: true,
        keywords: KEYWORDS,
        standard: Standard::PYTHON,
        ..Profile::HASH
    },
    structure: Structure::Grammar(&Grammar::new("python", &[RULES]).tests(is_test)),
};

const KEYWORDS: &str = "\
    False None True and as assert async await break class continue def del elif else except finally for from \
    global if import in is lambda nonlocal not or pass raise return try while with yield";

const RULES: &[Rule] = &[
    on(&["function_definition"], define(DefinitionKind::Function).doc_by(docstring).role()),
    on(&["class_definition"], define(DefinitionKind::Class).doc_by(docstring).role()),
    on(&["decorated_definition"], Role::Wrap(SignatureFrom::Definition)),
    on(&["assignment"], define(DefinitionKind::Variable).name_by(assigned).not_local().role()),
    on(&["type_alias_statement"], define(DefinitionKind::TypeAlias).name_by(alias_name).not_local().role()),
    on(&["import_statement", "import_from_statement"], Role::Zone(Zone::As(ReferenceKind::Import))),
    on(&["import_statement"], Role::Import(imported_modules)),
    on(&["import_from_statement", "future_import_statement"], Role::Import(imported_from)),
    on(&["comment"], Role::Comment),
    on(&["decorator"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["type"], Role::Zone(Zone::As(ReferenceKind::Type))),
    on(&["argument_list"], Role::Zone(Zone::Plain)),
    on(
        &["module", "function_definition", "class_definition", "lambda", "list_comprehension", "set_comprehension",
          "dictionary_comprehension", "generator_expression"],
        Role::Scope,
    ),
    on(&["function_definition"], bind(BindingKind::Definition, "name", "return_type", "")),
    on(&["assignment"], Role::BindBy(assigned_values)),
    on(&["named_expression"], bind(BindingKind::Local, "name", "", "value")),
    on(&["for_statement", "for_in_clause"], bind_by(BindingKind::Local, "left", "right", Step::Element)),
    on(&["as_pattern"], Role::BindBy(as_pattern)),
    on(&["return_statement"], Role::BindBy(returned)),
    on(&["parameters", "lambda_parameters"], Role::BindBy(parameters)),
    on(&["type"], Role::Mention(quoted_types)),
    on(&["await"], step("", Step::Unwrap)),
    on(&["subscript"], step("value", Step::Element)),
    on(&["parenthesized_expression", "as_pattern_target"], same("")),
    on(&["string", "concatenated_string"], Role::Literal(Literal::String)),
    on(&["integer"], Role::Literal(Literal::Integer)),
    on(&["float"], Role::Literal(Literal::Float)),
    on(&["true", "false"], Role::Literal(Literal::Boolean)),
    on(&["none"], Role::Literal(Literal::Null)),
    on(&["list", "dictionary", "set", "tuple", "list_comprehension", "dictionary_comprehension", "set_comprehension"], Role::Literal(Literal::Other)),
    on(&["class_definition"], Role::FieldZone("superclasses", Zone::As(ReferenceKind::Inherit))),
    on(&["keyword_argument"], Role::FieldZone("name", Zone::Label)),
    on(&["subscript"], Role::FieldZone("subscript", Zone::Plain)),
    on(&["call"], call("function")),
    on(&["attribute"], path("object", "attribute")),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
];

fn is_test(probe: &TestProbe<'_>) -> bool {
    probe.name.starts_with("test_")
        || probe.name.starts_with("test") && (probe.container.starts_with("Test") || probe.container.ends_with("Test"))
}

/// Returns the string that is the first statement of a body.
fn docstring<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let first = children(field(node, "body")?).into_iter().find(|child| child.kind() != "comment")?;
    let string = if first.kind() == "expression_statement" { first.named_child(0)? } else { first };
    (string.kind() == "string").then(|| range_of(string))
}

/// Adds the names in `a = x`, `a: T = x`, `a, b = x, y` and `self.a = x`. An item (`a[0] = x`) is no name.
fn assigned_values<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let (Some(left), right) = (field(node, "left"), field(node, "right")) else { return };
    let declared = field(node, "type");
    let lists = ["pattern_list", "tuple_pattern"];
    let right_list = right.filter(|right| matches!(right.kind(), "expression_list" | "tuple"));
    if lists.contains(&left.kind()) {
        let values = right_list.map(children).unwrap_or_default();
        let names = children(left);
        let is_paired = names.len() == values.len();
        let value = |at: usize| if is_paired { Some(values[at]) } else { right };
        let names = names.into_iter().enumerate().filter(|(_, name)| name.kind() != "subscript");
        let bound = names.map(|(at, name)| Bound::new(BindingKind::Local, name).to(value(at)));
        // Which part of a value a name gets is only known for lists of equal length.
        found.extend(bound.map(|bound| if is_paired { bound } else { bound.by(Step::Element) }));
    } else if left.kind() != "subscript" {
        found.push(Bound::new(BindingKind::Local, left).of(declared).to(right));
    }
}

/// Adds the names in the quoted parts of a type: `-> "Response"`, `Optional["models.Response"]`. The strings of `Literal`
/// are values.
fn quoted_types<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let has_values = |of: Node<'t>| {
        let name = of.named_child(0).map_or("", |of| cx.text(of));
        matches!(of.kind(), "subscript" | "generic_type") && has_values(cx, name.rsplit('.').next().unwrap_or_default())
    };
    let is_in_values = || (0..2).filter_map(|level| cx.ancestor(level)).any(has_values);
    let mut open = vec![node];
    while let Some(outer) = open.pop() {
        for child in children(outer) {
            match child.kind() {
                "string" if outer == node && is_in_values() => {}
                "string" => names_in_type(cx, unquoted(cx, child), mentions),
                // Visited by itself.
                "type" => {}
                // Its arguments are values: `Annotated[str, Path(alias="name")]`.
                "call" => {}
                _ if has_values(child) => {}
                _ => open.push(child),
            }
        }
    }
}

/// Returns true if the strings in a generic type are values: it is `Literal` or `Annotated`, perhaps imported under
/// another name.
fn has_values(cx: &Cx<'_, '_>, name: &str) -> bool {
    ["Literal", "Annotated"].iter().any(|values| {
        let import = format!("{values} as {name}");
        let mut imports = memchr::memmem::find_iter(cx.head(), import.as_bytes());
        let is_end = |at: usize| !cx.head().get(at + import.len()).is_some_and(|byte| is_word(char::from(*byte)));
        name == *values || !name.is_empty() && imports.any(is_end)
    })
}

fn names_in_type(cx: &Cx<'_, '_>, range: ByteRange, mentions: &mut Vec<Mention>) {
    let text = cx.slice(range);
    if !is_quoted_type(text) {
        return;
    }
    let (mut end, mut outer) = (range.start, ByteRange::default());
    for part in text.split_inclusive(|c: char| !is_word(c)) {
        end += part.len() as u32;
        let (name, separator) = part.split_at(part.trim_end_matches(|c: char| !is_word(c)).len());
        let start = end - part.len() as u32;
        let name = ByteRange::new(start, start + name.len() as u32);
        if !matches!(cx.slice(name), "" | "None" | "True" | "False") {
            mentions.push(Mention::new(ReferenceKind::Type, name, outer));
        }
        outer = if separator == "." { name } else { ByteRange::default() };
    }
}

fn as_pattern<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let (Some(value), Some(name)) = (node.named_child(0), field(node, "alias")) else { return };
    found.push(Bound::new(BindingKind::Local, name).to(Some(value)));
}

fn returned<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    found.extend(node.named_child(0).map(|value| Bound::new(BindingKind::Return, node).to(Some(value))));
}

/// Adds the names of parameters. Their types and defaults do not see them.
fn parameters<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    for part in children(node) {
        let name = match part.kind() {
            "identifier" => Some(part),
            "default_parameter" | "typed_default_parameter" => field(part, "name"),
            "typed_parameter" => part.named_child(0),
            "list_splat_pattern" | "dictionary_splat_pattern" => part.named_child(0),
            _ => None,
        };
        let bound = name.map(|name| Bound::new(BindingKind::Parameter, name).after(node));
        found.extend(bound.map(|bound| bound.of(field(part, "type")).to(field(part, "value"))));
    }
}

/// Finds the names in `A = 1`, `a = b = 1`, `a, b = 1, 2` and `a: int`. An assignment to an attribute or item defines no
/// name.
fn assigned<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    /// Real chains are shorter.
    const MAX_TARGETS: usize = 8;
    if cx.parent_kind() == "assignment" {
        return;
    }
    let next = |node: &Node<'t>| field(*node, "right").filter(|right| right.kind() == "assignment");
    let chain = std::iter::successors(Some(node), next).take(MAX_TARGETS);
    for left in chain.filter_map(|assignment| field(assignment, "left")) {
        match left.kind() {
            "identifier" => names.push(variable(cx, left)),
            "pattern_list" | "tuple_pattern" => {
                let parts = children(left).into_iter().filter(|part| part.kind() == "identifier");
                names.extend(parts.map(|part| variable(cx, part)));
            }
            _ => {}
        }
    }
}

fn alias_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let left = field(node, "left").and_then(|left| left.named_child(0));
    let left = left.map(|left| if left.kind() == "generic_type" { left.named_child(0).unwrap_or(left) } else { left });
    names.extend(left.filter(|left| !cx.text(*left).is_empty()).map(Named::at));
}

fn imported_modules<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    for module in children(node).into_iter().filter(|child| is_name(*child)) {
        let (name, alias) = name_and_alias(cx, module);
        let mut import = import_of(name, node);
        import.names.extend(alias.map(|alias| imported("", Some(alias))));
        imports.push(import);
    }
    true
}

fn imported_from<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let module = field(node, "module_name");
    let mut import = import_of(module.map_or("__future__", |module| cx.text(module)), node);
    let names = children(node).into_iter().filter(|child| Some(child.id()) != module.map(|module| module.id()));
    import.names = names.filter_map(|child| taken(cx, child)).collect();
    imports.push(import);
    true
}

fn taken<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<ImportedName> {
    match node.kind() {
        "wildcard_import" => Some(imported("*", None)),
        _ if is_name(node) => {
            let (name, alias) = name_and_alias(cx, node);
            Some(imported(name, alias))
        }
        _ => None,
    }
}

/// Returns true for the parts of an import that are not comments or line breaks.
fn is_name(node: Node<'_>) -> bool {
    matches!(node.kind(), "dotted_name" | "aliased_import")
}

fn name_and_alias<'a, 't>(cx: &Cx<'a, 't>, node: Node<'t>) -> (&'a str, Option<&'a str>) {
    if node.kind() != "aliased_import" {
        return (cx.text(node), None);
    }
    (field(node, "name").map_or("", |name| cx.text(name)), field(node, "alias").map(|alias| cx.text(alias)))
}
