//! Rules for C++, in addition to those for C.

use tree_sitter::Node;

use super::c::{self, dig};
use super::text::{import_of, imported};
use super::{Language, Structure};
use crate::extract::rules::{
    Grammar, Leaf, Named, Role, Rule, SignatureFrom, Zone, call, define, on, path, range_of,
};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "cpp",
    lang: Lang(9),
    aliases: &["c++", "cxx", "cplusplus"],
    extensions: &["cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "h++", "ipp", "tpp", "inl", "ino"],
    file_names: &[],
    interpreters: &[],
    structure: Structure::Grammar(&Grammar::new(|| tree_sitter_cpp::LANGUAGE.into(), &[c::RULES, RULES])),
};

const RULES: &[Rule] = &[
    on(&["function_definition"], define(DefinitionKind::Function).name_by(function_name).role()),
    on(&["field_declaration"], define(DefinitionKind::Field).name_by(member_names).role()),
    on(&["class_specifier"], define(DefinitionKind::Class).name_by(c::specified).role()),
    on(&["namespace_definition"], define(DefinitionKind::Module).role()),
    on(&["alias_declaration", "concept_definition"], define(DefinitionKind::TypeAlias).not_local().role()),
    on(&["template_declaration"], Role::Wrap(SignatureFrom::Wrapper)),
    on(&["using_declaration"], Role::Import(using)),
    on(&["attribute_declaration"], Role::Annotation),
    on(&["attribute"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["base_class_clause"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["template_argument_list", "argument_list"], Role::Zone(Zone::Plain)),
    on(&["new_expression"], call("type")),
    on(&["qualified_identifier"], path("scope", "name")),
    on(&["template_function", "template_type", "template_method"], Role::Through("name")),
    on(&["namespace_identifier"], Role::Leaf(Leaf::Segment)),
];

/// Finds the name of a function. `Foo::bar` has the name `bar` and the qualifier `Foo`. A function with the name of its
/// class is a constructor, and `TEST(Suite, Name)` is a test.
fn function_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(declarator) = field(node, "declarator") else { return };
    if let Some(test) = test_name(cx, declarator) {
        return names.push(test);
    }
    names.extend(dig(declarator).map(|declared| member(cx, declared.name)));
}

fn member<'t>(cx: &Cx<'_, 't>, name: Node<'t>) -> Named {
    let (name, qualifier) = split_scope(cx, name);
    let mut named = Named::at(name);
    if let Some(parameters) = field(name, "declarator").filter(|_| name.kind() == "operator_cast") {
        named.range.end = parameters.start_byte() as u32;
    }
    let text = cx.text(name);
    let container = match qualifier {
        Some(qualifier) => cx.slice(qualifier),
        None => cx.owner().map_or("", |owner| owner.name.as_str()),
    };
    if container == text {
        named.kind = Some(DefinitionKind::Constructor);
    } else if qualifier.is_some() {
        named.kind = Some(DefinitionKind::Method);
    }
    named.qualifier = qualifier;
    named
}

/// Returns the last segment of `a::B<T>::c` and the segment before it.
fn split_scope<'t>(cx: &Cx<'_, 't>, name: Node<'t>) -> (Node<'t>, Option<ByteRange>) {
    let mut name = name;
    let mut qualifier = None;
    for _ in 0..32 {
        if name.kind() != "qualified_identifier" {
            break;
        }
        qualifier = field(name, "scope").and_then(|scope| cx.resolve(scope)).map(|(range, _)| range).or(qualifier);
        let Some(inner) = field(name, "name") else { break };
        name = inner;
    }
    if matches!(name.kind(), "template_function" | "template_method") {
        name = field(name, "name").unwrap_or(name);
    }
    (name, qualifier)
}

/// Finds the name of a test that uses GoogleTest's `TEST(Suite, Name)` or a similar macro. The grammar parses such a
/// test as a function whose parameters are types.
fn test_name<'t>(cx: &Cx<'_, 't>, declarator: Node<'t>) -> Option<Named> {
    const MACROS: [&str; 6] = ["TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P", "BENCHMARK_F"];
    let callee = field(declarator, "declarator")?;
    if callee.kind() != "identifier" || !MACROS.contains(&cx.text(callee)) {
        return None;
    }
    let parameters = children(field(declarator, "parameters")?);
    let (suite, name) = (parameters.first()?, parameters.get(1)?);
    Some(Named { range: range_of(*name), kind: Some(DefinitionKind::Test), qualifier: Some(range_of(*suite)) })
}

fn member_names<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    for declared in c::declarators(node) {
        let mut named = member(cx, declared.name);
        named.kind = match (declared.is_function, named.kind) {
            (true, Some(kind)) => Some(kind),
            (true, None) => Some(DefinitionKind::Method),
            (false, _) => Some(DefinitionKind::Field),
        };
        names.push(named);
    }
}

/// Adds an import: `using namespace a;` imports all names in `a`, and `using a::b;` imports one name.
fn using<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(path) = children(node).into_iter().next_back() else { return true };
    let text = cx.text(path);
    let is_namespace = cx.text(node).starts_with("using namespace");
    let (module, name) = match text.rsplit_once("::") {
        _ if is_namespace => (text, "*"),
        Some((module, name)) => (module, name),
        None => (text, ""),
    };
    let mut import = import_of(module, node);
    if !name.is_empty() {
        import.names.push(imported(name, None));
    }
    imports.push(import);
    true
}
