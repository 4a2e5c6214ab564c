//! Rules for C#.

use std::ops::Range;

use tree_sitter::Node;

use super::text::{blank, import_of, imported, is_word_byte};
use super::standard::Standard;
use super::{Extensions, Globals, Language, Profile, Structure};
use crate::extract::rules::{
    Bound, ENDS, Grammar, Leaf, Named, Role, Rule, TestProbe, Zone, attribute, bind, call, define, on, path, same, step,
};
use crate::extract::types::{Arity, BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Shape, Step};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "csharp",
    lang: Lang(11),
    aliases: &["cs", "c#"],
    extensions: &["cs", "csx"],
    file_names: &[],
    interpreters: &["dotnet-script"],
    profile: Profile {
        has_overloads: true,
        has_implicit_this: true,
        has_package_clause: true,
        standard: Standard::CSHARP,
        run_by_name: "CompareTo Deconstruct Dispose DisposeAsync Equals GetEnumerator GetHashCode MoveNext ToString",
        extensions: Extensions::Anywhere,
        has_capital_values: true,
        globals: Globals::Namespaces,
        implicit_names: "field value",
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(
        &Grammar::new("c_sharp", &[RULES]).tests(is_test).masks_after_errors(without_obstacles).zones(member_of_new).overloads(),
    ),
};

const RULES: &[Rule] = &[
    on(&["namespace_declaration", "file_scoped_namespace_declaration"], define(DefinitionKind::Module).role()),
    on(&["class_declaration"], define(DefinitionKind::Class).role()),
    on(&["struct_declaration", "record_declaration"], define(DefinitionKind::Struct).role()),
    on(&["interface_declaration"], define(DefinitionKind::Interface).role()),
    on(&["enum_declaration"], define(DefinitionKind::Enum).role()),
    on(&["enum_member_declaration"], define(DefinitionKind::Variant).role()),
    on(&["delegate_declaration"], define(DefinitionKind::TypeAlias).role()),
    on(&["method_declaration"], define(DefinitionKind::Method).arity_by(arity).role()),
    on(&["local_function_statement"], define(DefinitionKind::Function).arity_by(arity).role()),
    on(&["constructor_declaration"], define(DefinitionKind::Constructor).arity_by(arity).role()),
    on(&["destructor_declaration"], define(DefinitionKind::Method).name_by(destructor_name).role()),
    on(&["operator_declaration"], define(DefinitionKind::Method).name_field("operator").role()),
    on(&["indexer_declaration"], define(DefinitionKind::Property).name_by(indexer_name).body_fields(ACCESSORS).role()),
    on(&["property_declaration"], define(DefinitionKind::Property).body_fields(ACCESSORS).role()),
    on(&["event_declaration"], define(DefinitionKind::Property).body_fields(ACCESSORS).role()),
    on(&["field_declaration", "event_field_declaration"], define(DefinitionKind::Field).name_by(field_names).role()),
    on(&["parameter"], define(DefinitionKind::Property).name_by(record_property).role()),
    on(&["using_directive"], Role::Import(using)),
    on(&["comment"], Role::Comment),
    on(&["preproc_pragma"], attribute()),
    on(&["attribute_list"], Role::Annotation),
    on(&["attribute"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["base_list"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["attribute_argument_list", "argument_list", "bracketed_argument_list"], Role::Zone(Zone::Plain)),
    on(&["type_argument_list"], Role::Zone(Zone::As(ReferenceKind::Type))),
    on(&["method_declaration"], Role::FieldZone("returns", Zone::As(ReferenceKind::Type))),
    on(TYPED, Role::FieldZone("type", Zone::As(ReferenceKind::Type))),
    on(&["as_expression", "is_expression"], Role::FieldZone("right", Zone::As(ReferenceKind::Type))),
    on(&["invocation_expression"], call("function")),
    on(&["object_creation_expression"], call("type")),
    on(&["member_access_expression"], path("expression", "name")),
    on(&["conditional_access_expression"], path(ENDS, ENDS)),
    on(&["member_binding_expression"], Role::Through("name")),
    on(&["qualified_name"], path("qualifier", "name")),
    on(&["generic_name"], Role::Through("")),
    on(&["argument", "attribute_argument"], Role::FieldZone("name", Zone::Label)),
    on(&["argument"], same("")),
    on(SCOPES, Role::Scope),
    on(&["method_declaration"], bind(BindingKind::Definition, "name", "returns", "")),
    on(&["property_declaration"], bind(BindingKind::Definition, "name", "type", "")),
    on(&["local_function_statement"], bind(BindingKind::Definition, "name", "type", "")),
    on(&["parameter"], bind(BindingKind::Parameter, "name", "type", "")),
    on(&["type_parameter"], bind(BindingKind::TypeParameter, "name", "", "")),
    on(&["implicit_parameter"], Role::BindBy(untyped)),
    on(&["variable_declaration"], Role::BindBy(declared)),
    on(&["declaration_pattern", "recursive_pattern", "catch_declaration"], bind(BindingKind::Local, "name", "type", "")),
    on(&["var_pattern"], bind(BindingKind::Local, "name", "", "")),
    on(&["declaration_expression"], Role::BindBy(declared_inside)),
    on(&["foreach_statement"], Role::BindBy(iterated)),
    on(&["from_clause"], Role::BindBy(queried)),
    on(&["parenthesized_expression", "postfix_unary_expression", "checked_expression", "ref_expression"], same("")),
    on(&["await_expression"], step("", Step::Unwrap)),
    on(&["element_access_expression"], step("expression", Step::Element)),
    on(&["cast_expression"], step("type", Step::Call)),
    on(&["as_expression"], step("right", Step::Call)),
    on(&["nullable_type"], Role::Through("type")),
    on(&["array_type"], Role::Shape(Shape::Sequence)),
    on(&["string_literal", "verbatim_string_literal", "raw_string_literal", "interpolated_string_expression"], Role::Literal(Literal::String)),
    on(&["integer_literal"], Role::Literal(Literal::Integer)),
    on(&["real_literal"], Role::Literal(Literal::Float)),
    on(&["character_literal"], Role::Literal(Literal::Character)),
    on(&["boolean_literal"], Role::Literal(Literal::Boolean)),
    on(&["null_literal"], Role::Literal(Literal::Null)),
    on(&["this", "base"], Role::Leaf(Leaf::This)),
    on(&["predefined_type"], Role::Leaf(Leaf::Type)),
    on(&["identifier", "implicit_parameter"], Role::Leaf(Leaf::Name)),
];

/// Node kinds in which names are bound.
const SCOPES: &[&str] = &[
    "accessor_declaration",
    "anonymous_method_expression",
    "block",
    "catch_clause",
    "class_declaration",
    "constructor_declaration",
    "conversion_operator_declaration",
    "delegate_declaration",
    "for_statement",
    "foreach_statement",
    "indexer_declaration",
    "interface_declaration",
    "lambda_expression",
    "local_function_statement",
    "method_declaration",
    "operator_declaration",
    "property_declaration",
    "query_expression",
    "record_declaration",
    "struct_declaration",
    "switch_expression_arm",
    "switch_section",
    "using_statement",
];

/// Takes the names on the left in `new Item { Name = value }` for labels.
fn member_of_new(leaf: Node<'_>, parent: Node<'_>, outer: &str, _: &[u8]) -> Option<Zone> {
    let is_in_new = match parent.kind() {
        "assignment_expression" => outer == "initializer_expression",
        kind => kind == "with_initializer",
    };
    (is_in_new && leaf.start_byte() == parent.start_byte()).then_some(Zone::Label)
}

fn explicit(declared: Option<Node<'_>>) -> Option<Node<'_>> {
    declared.filter(|declared| declared.kind() != "implicit_type")
}

fn untyped<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    found.push(Bound::new(BindingKind::Parameter, node));
}

/// Adds the names of a declaration. A variable declared with `var` has the type of its value.
fn declared<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let declared = explicit(field(node, "type"));
    for declarator in children(node).into_iter().filter(|child| child.kind() == "variable_declarator") {
        let Some(name) = field(declarator, "name").or_else(|| declarator.named_child(0)) else { continue };
        let value = children(declarator).pop().filter(|value| value.id() != name.id());
        found.push(Bound::new(BindingKind::Local, name).of(declared).to(value));
    }
}

fn declared_inside<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let name = field(node, "name").map(|name| Bound::new(BindingKind::Local, name));
    found.extend(name.map(|name| name.of(explicit(field(node, "type")))));
}

/// Adds the variable of `from item in items`.
fn queried<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(name) = field(node, "name") else { return };
    let bound = Bound::new(BindingKind::Local, name).of(field(node, "type"));
    found.push(bound.to(children(node).pop()).by(Step::Element));
}

fn iterated<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(name) = field(node, "left") else { return };
    let bound = Bound::new(BindingKind::Local, name).of(explicit(field(node, "type")));
    found.push(bound.to(field(node, "right")).by(Step::Element));
}

/// Counts the parameters. Those with a default value are optional, and so is the object of an extension method.
fn arity<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<Arity> {
    let list = field(node, "parameters")?;
    let parameters: Vec<Node<'t>> = children(list).into_iter().filter(|child| child.kind() == "parameter").collect();
    let is_optional = |parameter: &&Node<'t>| {
        let text = cx.text(**parameter);
        text.contains('=') || text.starts_with("this ")
    };
    let mut arity = Arity::new(parameters.len(), parameters.iter().filter(is_optional).count());
    let mut cursor = list.walk();
    if list.children(&mut cursor).any(|child| child.kind() == "params" || cx.text(child).starts_with("params ")) {
        arity.most = Arity::MANY;
        arity.fewest = arity.fewest.saturating_sub(1);
    }
    Some(arity)
}

const ACCESSORS: &[&str] = &["accessors", "value"];

/// Node kinds with a type in the field `type`.
const TYPED: &[&str] = &[
    "parameter",
    "variable_declaration",
    "property_declaration",
    "indexer_declaration",
    "operator_declaration",
    "delegate_declaration",
    "local_function_statement",
    "cast_expression",
    "typeof_expression",
    "catch_declaration",
    "foreach_statement",
    "declaration_pattern",
    "recursive_pattern",
    "default_expression",
    "tuple_element",
];

/// Replaces what the grammar cannot read.
fn without_obstacles(text: &[u8]) -> Option<Vec<u8>> {
    let masked = without_fragments(text);
    without_keywords_as_names(masked.as_deref().unwrap_or(text)).or(masked)
}

/// Replaces `async` and `await` where they are names, as in `if (async)`, by other words.
fn without_keywords_as_names(text: &[u8]) -> Option<Vec<u8>> {
    let mut masked: Option<Vec<u8>> = None;
    for keyword in ["async", "await"] {
        for at in memchr::memmem::find_iter(text, keyword) {
            let is_word = text[..at].last().is_none_or(|before| !is_word_byte(*before) && *before != b'@');
            let next = text[at + keyword.len()..].trim_ascii_start().first();
            if is_word && next.is_some_and(|next| b"),;?:.=|&]}!".contains(next)) {
                masked.get_or_insert_with(|| text.to_vec())[at] = keyword.as_bytes()[0].to_ascii_uppercase();
            }
        }
    }
    masked
}

/// Replaces `#if` directives around fragments of code, and all branches except the first one. The grammar knows such
/// directives only around whole members, statements and attributes.
fn without_fragments(text: &[u8]) -> Option<Vec<u8>> {
    /// Real code nests less. The limit keeps the time linear.
    const MAX_DEPTH: usize = 16;
    memchr::memmem::find(text, b"#if")?;
    let mut masked: Option<Vec<u8>> = None;
    let mut open: Vec<Conditional> = Vec::new();
    let mut depth = 0;
    let mut last = b' ';
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
        let line = start..end;
        start = end + 1;
        let words = without_comment(text[line.clone()].trim_ascii());
        if words.starts_with(b"#if") {
            if open.len() == MAX_DEPTH {
                return None;
            }
            open.push(Conditional { head: line, next: None, first: None, depth, is_fragment: false });
        } else if words.starts_with(b"#el") {
            if let Some(conditional) = open.last_mut() {
                conditional.end_branch(depth, last);
                conditional.next.get_or_insert(line.start);
            }
        } else if words.starts_with(b"#endif") {
            let Some(mut conditional) = open.pop() else { continue };
            conditional.end_branch(depth, last);
            if conditional.is_fragment {
                let masked = masked.get_or_insert_with(|| text.to_vec());
                let rest = conditional.next.unwrap_or(line.start)..line.end;
                blank(&mut masked[conditional.head]);
                blank(&mut masked[rest]);
            }
        } else if let (Some(&first), Some(&end)) = (words.first(), words.last())
            && first != b'#'
        {
            open.last_mut().map(|conditional| conditional.first.get_or_insert(first));
            depth += words.iter().map(|byte| bracket(*byte)).sum::<i32>();
            last = end;
        }
    }
    masked
}

/// An `#if` whose `#endif` was not read yet.
struct Conditional {
    /// The line of the `#if`.
    head: Range<usize>,
    /// The start of the second branch.
    next: Option<usize>,
    /// The first byte of code in the branch that is being read.
    first: Option<u8>,
    /// The number of open brackets at the start of that branch.
    depth: i32,
    is_fragment: bool,
}

impl Conditional {
    /// Notes whether the branch that ends here is a fragment. `depth` is the number of open brackets and `last` the last
    /// byte of code.
    fn end_branch(&mut self, depth: i32, last: u8) {
        if let Some(first) = self.first.take() {
            self.is_fragment |= depth != self.depth || b".,&|?:+=)".contains(&first) || !b";}]".contains(&last);
        }
        self.depth = depth;
    }
}

fn bracket(byte: u8) -> i32 {
    match byte {
        b'(' | b'{' | b'[' => 1,
        b')' | b'}' | b']' => -1,
        _ => 0,
    }
}

fn without_comment(line: &[u8]) -> &[u8] {
    memchr::memmem::find(line, b"//").map_or(line, |at| line[..at].trim_ascii_end())
}

fn is_test(probe: &TestProbe<'_>) -> bool {
    ["Fact", "Theory", "Test", "TestMethod", "TestCase", "DataTestMethod"].iter().any(|name| probe.has_attribute(name))
}

fn destructor_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name") else { return };
    let mut named = Named::at(name);
    named.range.start -= 1;
    names.push(named);
}

/// Finds the name of an indexer, which is the keyword `this`.
fn indexer_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let keyword = node.children(&mut cursor).find(|child| child.kind() == "this");
    names.extend(keyword.map(Named::at));
}

fn field_names<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let is_const = node.children(&mut cursor).any(|child| child.kind() == "modifier" && cx.text(child) == "const");
    let kind = if is_const { DefinitionKind::Constant } else { DefinitionKind::Field };
    let declarators = child_of_kind(node, "variable_declaration").map(children).unwrap_or_default();
    let declared = declarators.into_iter().filter(|child| child.kind() == "variable_declarator");
    names.extend(declared.filter_map(|declarator| field(declarator, "name")).map(|name| Named::at(name).of(kind)));
}

/// Finds the properties that a record declares, for example `Size` in `record Receipt(int Size)`.
fn record_property<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    if cx.ancestor(1).is_some_and(|node| node.kind() == "record_declaration") {
        names.extend(field(node, "name").map(Named::at));
    }
}

/// Adds an import: `using A.B;` imports all names in a namespace, and `using X = A.B;` imports one name under an alias.
fn using<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let alias = field(node, "name");
    let target = children(node).into_iter().rfind(|child| Some(child.id()) != alias.map(|alias| alias.id()));
    let Some(target) = target else { return true };
    let text = cx.text(target);
    let mut import = import_of(text, node);
    match (alias, text.rsplit_once('.')) {
        (Some(alias), Some((module, name))) => {
            import.module = module.to_owned();
            import.names.push(imported(name, Some(cx.text(alias))));
        }
        (Some(alias), None) => import.names.push(imported("", Some(cx.text(alias)))),
        (None, _) => import.names.push(imported("*", None)),
    }
    import.is_reexport = cx.text(node).starts_with("global ");
    imports.push(import);
    true
}
