//! Rules for C++, in addition to those for C.

use std::ops::Range;

use tree_sitter::Node;

use super::c::{self, add_parameters, dig, explicit};
use super::c_macros;
use super::member_macros;
use super::text::{blank, import_of, imported, is_screaming, is_word_byte};
use super::{Language, Structure};
use crate::extract::rules::{
    Bound, Grammar, Leaf, Mention, Named, Role, Rule, SignatureFrom, Zone, call, define, on, path, range_of, step,
};
use crate::extract::types::{BindingKind, DefinitionKind, Import, ReferenceKind, Step};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "cpp",
    lang: Lang(9),
    aliases: &["c++", "cxx", "cplusplus"],
    extensions: &["cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "h++", "ipp", "tpp", "inl", "ino"],
    file_names: &[],
    interpreters: &[],
    profile: c::PROFILE,
    structure: Structure::Grammar(
        &Grammar::new("cpp", &[c::RULES, RULES])
            .masks(without_macros)
            .masks_after_errors(without_macros_or_comments),
    ),
};

const RULES: &[Rule] = &[
    on(
        &["function_definition"],
        define(DefinitionKind::Function).name_by(function_name).arity_by(c::arity).ends_functions().role(),
    ),
    on(&["field_declaration"], define(DefinitionKind::Field).name_by(member_names).role()),
    on(&["class_specifier"], define(DefinitionKind::Class).name_by(specified).role()),
    on(&["struct_specifier"], define(DefinitionKind::Struct).name_by(specified).role()),
    on(&["union_specifier"], define(DefinitionKind::Union).name_by(specified).role()),
    on(&["enum_specifier"], define(DefinitionKind::Enum).name_by(specified).role()),
    on(&["class_specifier", "struct_specifier", "union_specifier", "enum_specifier"], Role::Mention(macro_before_name)),
    on(&["namespace_definition"], define(DefinitionKind::Module).role()),
    on(&["alias_declaration", "concept_definition"], define(DefinitionKind::TypeAlias).not_local().role()),
    on(&["field_declaration_list"], Role::Mention(macros_of_class)),
    on(&["template_declaration"], Role::Wrap(SignatureFrom::Wrapper)),
    on(&["using_declaration"], Role::Import(using)),
    on(&["attribute_declaration"], Role::Annotation),
    on(&["attribute"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["base_class_clause"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["template_argument_list", "argument_list"], Role::Zone(Zone::Plain)),
    on(&["new_expression"], call("type")),
    on(&["new_expression"], step("type", Step::Call)),
    on(&["lambda_expression", "for_range_loop", "catch_clause", "template_declaration"], Role::Scope),
    on(&["lambda_expression", "catch_clause"], Role::BindBy(lambda)),
    on(&["for_range_loop"], Role::BindBy(iterated)),
    on(&["type_parameter_declaration"], Role::BindBy(type_parameter)),
    on(&["this"], Role::Leaf(Leaf::This)),
    on(&["qualified_identifier"], path("scope", "name")),
    on(&["template_function", "template_type", "template_method"], Role::Through("name")),
    on(&["namespace_identifier"], Role::Leaf(Leaf::Segment)),
];

/// Adds the parameters of a lambda, and what a handler catches.
fn lambda<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    add_parameters(field(node, "declarator").unwrap_or(node), found);
}

/// Adds the variable of `for (auto x : list)`.
fn iterated<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(declared) = field(node, "declarator").and_then(dig) else { return };
    let bound = Bound::new(BindingKind::Local, declared.name).of(explicit(node));
    found.push(bound.to(field(node, "right")).by(Step::Element));
}

fn type_parameter<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    found.extend(child_of_kind(node, "type_identifier").map(|name| Bound::new(BindingKind::TypeParameter, name)));
}

/// Replaces macros between `class` and the name of the class by spaces: `EXPORT_API` in `class EXPORT_API Foo {`. The
/// grammar parses such a class as a function. Also replaces macros without a semicolon between the members of a class,
/// which the grammar takes for the type of the next member.
fn without_macros(text: &[u8]) -> Option<Vec<u8>> {
    let mut masked: Option<Vec<u8>> = None;
    for (range, replacement) in member_macros::find(text) {
        let masked = &mut masked.get_or_insert_with(|| text.to_vec())[range];
        blank(masked);
        masked[..replacement.len()].copy_from_slice(replacement);
    }
    for keyword in ["class", "struct", "union"] {
        for at in memchr::memmem::find_iter(text, keyword) {
            let is_word = at.checked_sub(1).is_none_or(|before| !is_word_byte(text[before]));
            if let Some(found) = is_word.then(|| macros_after(text, at + keyword.len())).flatten() {
                blank(&mut masked.get_or_insert_with(|| text.to_vec())[found]);
            }
        }
    }
    masked
}

/// Like [`without_macros`], and also replaces what the grammar of C cannot read.
fn without_macros_or_comments(text: &[u8]) -> Option<Vec<u8>> {
    let masked = without_macros(text);
    c_macros::without_macros(masked.as_deref().unwrap_or(text))
}

/// Returns the range of the macros between the keyword that ends at `start` and a name with a body or base classes.
fn macros_after(text: &[u8], start: usize) -> Option<Range<usize>> {
    /// Limit on the text between the keyword and the body. Real code has less.
    const MAX_BYTES: usize = 512;
    let head = &text[start..text.len().min(start + MAX_BYTES)];
    head.first().filter(|byte| byte.is_ascii_whitespace())?;
    let mut end = 0;
    loop {
        let word = next_word(head, end)?;
        let is_macro = std::str::from_utf8(&head[word.clone()]).is_ok_and(is_screaming);
        let after = after_arguments(head, word.end)?;
        let next = next_word(head, after).filter(|next| next.start > after || after > word.end);
        match next.filter(|next| is_macro && &head[next.clone()] != b"final") {
            Some(_) => end = after,
            None => {
                let follows = head[word.end..].trim_ascii_start();
                let has_body = follows.starts_with(b"final") || matches!(follows.first(), Some(b'{' | b':' | b'<'));
                return (end > 0 && has_body).then(|| start..start + end);
            }
        }
    }
}

/// Returns the word that follows `start` after white space.
fn next_word(text: &[u8], start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let from = text.len() - rest.trim_ascii_start().len();
    let n_bytes = text[from..].iter().take_while(|byte| is_word_byte(**byte)).count();
    (n_bytes > 0).then(|| from..from + n_bytes)
}

/// Returns the end of the arguments in parentheses at `start`, or `start` if there are none.
pub(super) fn after_arguments(text: &[u8], start: usize) -> Option<usize> {
    if text.get(start) != Some(&b'(') {
        return Some(start);
    }
    let mut depth = 0;
    let at = text[start..].iter().position(|byte| {
        depth += i32::from(*byte == b'(') - i32::from(*byte == b')');
        depth == 0
    });
    at.map(|at| start + at + 1)
}

/// Adds the macro in `class EXPORT_API Foo`.
fn macro_before_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let (Some(keyword), Some(name)) = (node.child(0), field(node, "name")) else { return };
    let between = ByteRange::new(keyword.end_byte() as u32, name.start_byte() as u32);
    let Some(word) = next_word(cx.slice(between).as_bytes(), 0) else { return };
    let range = ByteRange::new(between.start + word.start as u32, between.start + word.end as u32);
    if is_screaming(cx.slice(range)) {
        mentions.push(Mention::new(ReferenceKind::Macro, range, ByteRange::default()));
    }
}

/// Adds the macros between the members of a class, and the names in their arguments: `READ value` in
/// `Q_PROPERTY(int value READ value)`.
fn macros_of_class<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let mut end = node.start_byte() as u32 + 1;
    let own_end = node.end_byte() as u32;
    let starts = children(node).into_iter().map(range_of).chain([ByteRange::new(own_end, own_end)]);
    for next in starts {
        let text = cx.slice(ByteRange::new(end.min(next.start), next.start)).as_bytes();
        let (mut at, mut depth) = (0, 0);
        while let Some(start) = text[at..].iter().position(|byte| is_word_byte(*byte)).map(|n| at + n) {
            depth += text[at..start].iter().map(|byte| i32::from(*byte == b'(') - i32::from(*byte == b')')).sum::<i32>();
            at = start + text[start..].iter().take_while(|byte| is_word_byte(**byte)).count();
            let range = ByteRange::new(end + start as u32, end + at as u32);
            let kind = match (is_screaming(cx.slice(range)), depth) {
                (true, 0) => ReferenceKind::Macro,
                (false, 1..) => ReferenceKind::Value,
                _ => continue,
            };
            mentions.push(Mention::new(kind, range, ByteRange::default()));
        }
        end = next.end;
    }
}

/// Finds the name of a class. The name of the specialisation `std::hash<Foo>` is `hash`, with the qualifier `std`.
fn specified<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    c::specified(cx, node, names);
    let Some(name) = field(node, "name").filter(|name| name.kind() != "type_identifier") else { return };
    for named in names {
        let (name, qualifier) = split_scope(cx, name);
        named.range = range_of(name);
        named.qualifier = qualifier;
    }
}

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
    if matches!(name.kind(), "template_function" | "template_method" | "template_type") {
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
