//! Rules for Kotlin.

use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::text::{blank, import_of, imported, is_screaming, parameters_in, type_in};
use super::standard::Standard;
use super::{Extensions, Language, Profile, Structure};
use crate::extract::rules::{
    Bound, ENDS, Grammar, Leaf, Mention, Named, Role, Rule, TestProbe, Zone, call, define, flat_path, on, path, range_of, same, step,
};
use crate::extract::types::{Arity, BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Step};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "kotlin",
    lang: Lang(10),
    aliases: &["kt"],
    extensions: &["kt", "kts"],
    file_names: &[],
    interpreters: &["kotlin"],
    profile: Profile {
        has_overloads: true,
        has_implicit_this: true,
        has_package_clause: true,
        standard: Standard::KOTLIN,
        run_by_name: "compareTo contains dec div equals get getValue hasNext hashCode inc invoke iterator minus minusAssign next not plus plusAssign provideDelegate rangeTo rem set setValue times toString unaryMinus unaryPlus",
        extensions: Extensions::Receivers,
        implicit_names: "field it",
        ..Profile::C_LIKE
    },
    structure: Structure::Grammar(
        &Grammar::new("kotlin", &[RULES])
            .tests(is_test)
            .zones(name_of_argument)
            .overloads()
            .lambdas(&["lambda_literal", "anonymous_function"])
            .arguments("value_arguments", "annotated_lambda")
            .masks_after_errors(without_unknown_syntax)
            .masks_misread(without_misread_modifiers),
    ),
};

const RULES: &[Rule] = &[
    on(&["package_header"], define(DefinitionKind::Module).name_child(&["qualified_identifier"]).role()),
    on(
        &["class_declaration"],
        define(DefinitionKind::Class).name_by(class_name).arity_by(head_arity).body_child(&["class_body", "enum_class_body"]).role(),
    ),
    on(&["companion_object"], define(DefinitionKind::Class).name_child(&["identifier"]).body_child(&["class_body"]).role()),
    on(&["object_declaration"], define(DefinitionKind::Class).body_child(&["class_body"]).role()),
    on(
        &["function_declaration"],
        define(DefinitionKind::Function).name_by(function_name).arity_by(arity).body_child(&["function_body"]).role(),
    ),
    on(
        &["secondary_constructor"],
        define(DefinitionKind::Constructor).name_by(keyword_name).arity_by(arity).body_child(&["block"]).role(),
    ),
    on(
        &["property_declaration"],
        define(DefinitionKind::Variable).name_by(property_name).body_child(&["getter", "setter"]).not_local().role(),
    ),
    on(&["class_parameter"], define(DefinitionKind::Field).name_by(parameter_field).role()),
    on(&["enum_entry"], define(DefinitionKind::Variant).name_child(&["identifier"]).body_child(&["class_body"]).role()),
    on(&["type_alias"], define(DefinitionKind::TypeAlias).name_field("type").role()),
    on(&["import"], Role::Import(import)),
    on(&["line_comment", "block_comment"], Role::Comment),
    on(&["annotation"], Role::Annotation),
    on(&["annotation"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["modifiers"], Role::Modifiers),
    on(&["delegation_specifiers"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["explicit_delegation"], Role::Zone(Zone::Plain)),
    on(&["explicit_delegation"], Role::Mention(delegated)),
    on(&["value_arguments", "type_arguments", "annotated_lambda"], Role::Zone(Zone::Plain)),
    on(&["user_type"], Role::Zone(Zone::Else(ReferenceKind::Type))),
    on(&["user_type"], flat_path()),
    on(&["navigation_expression"], path(ENDS, ENDS)),
    on(&["call_expression"], call("")),
    on(SCOPES, Role::Scope),
    on(&["function_declaration"], Role::BindBy(function_result)),
    on(&["parameter", "class_parameter", "catch_block", "setter", "type_parameter"], Role::BindBy(parameter)),
    on(&["property_declaration"], Role::BindBy(property)),
    on(&["for_statement"], Role::BindBy(iterated)),
    on(&["when_subject"], Role::BindBy(property)),
    on(&["lambda_parameters"], Role::BindBy(lambda_parameters)),
    on(&["parenthesized_expression", "value_argument"], same("")),
    on(&["unary_expression"], same("argument")),
    // `!f(x)` is read as a call of `!f`.
    on(&["unary_expression"], Role::Through("argument")),
    on(&["index_expression"], step("", Step::Element)),
    on(&["as_expression"], step("right", Step::Call)),
    on(&["nullable_type"], Role::Through("")),
    on(&["string_literal", "multiline_string_literal"], Role::Literal(Literal::String)),
    on(&["number_literal"], Role::Literal(Literal::Integer)),
    on(&["float_literal"], Role::Literal(Literal::Float)),
    on(&["character_literal"], Role::Literal(Literal::Character)),
    on(&["this_expression", "super_expression"], Role::Leaf(Leaf::This)),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
];

/// Node kinds in which names are bound.
const SCOPES: &[&str] = &[
    "anonymous_function",
    "block",
    "catch_block",
    "class_declaration",
    "for_statement",
    "function_declaration",
    "getter",
    "lambda_literal",
    "object_declaration",
    "secondary_constructor",
    "setter",
    "when_expression",
];

/// Takes the name in `f(name = value)` for a label.
fn name_of_argument(leaf: Node<'_>, parent: Node<'_>, _: &str, src: &[u8]) -> Option<Zone> {
    if parent.kind() != "value_argument" || leaf.start_byte() != parent.start_byte() {
        return None;
    }
    let next = src.get(leaf.end_byte()..)?.trim_ascii_start();
    (next.starts_with(b"=") && !next.starts_with(b"==")).then_some(Zone::Label)
}

fn arity<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<Arity> {
    child_of_kind(node, "function_value_parameters").map(|list| parameters_in(cx, list))
}

/// Returns the arity of the constructor in the head of a class.
fn head_arity<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<Arity> {
    let list = child_of_kind(child_of_kind(node, "primary_constructor")?, "class_parameters")?;
    let parameters = || children(list).into_iter().filter(|child| child.kind() == "class_parameter");
    let has_default = |parameter: &Node<'t>| {
        let mut cursor = parameter.walk();
        parameter.children(&mut cursor).any(|child| child.kind() == "=")
    };
    let is_variadic = |parameter: &Node<'t>| {
        child_of_kind(*parameter, "modifiers").is_some_and(|modifiers| cx.text(modifiers).contains("vararg"))
    };
    let (n_optional, n_variadic) = (parameters().filter(has_default).count(), parameters().filter(is_variadic).count());
    Some(Arity::variadic(parameters().count(), n_optional, n_variadic))
}

/// Adds the result of a function, whose type is behind its parameters.
fn function_result<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(name) = field(node, "name") else { return };
    let mut behind = children(node).into_iter().skip_while(|child| child.kind() != "function_value_parameters");
    found.push(Bound::new(BindingKind::Definition, name).of(behind.find(|child| child.kind().ends_with("_type"))));
}

fn parameter<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let kind = match node.kind() {
        "catch_block" => BindingKind::Local,
        "type_parameter" => BindingKind::TypeParameter,
        _ => BindingKind::Parameter,
    };
    let name = child_of_kind(node, "identifier").map(|name| Bound::new(kind, name));
    found.extend(name.map(|name| name.of(type_in(node))));
}

/// Adds the names that `node` declares.
fn variables<'t>(node: Node<'t>, value: Option<Node<'t>>) -> Vec<Bound<'t>> {
    let mut declarations: Vec<Node<'t>> = Vec::new();
    for child in children(node) {
        match child.kind() {
            "variable_declaration" => declarations.push(child),
            "multi_variable_declaration" => declarations.extend(children(child)),
            _ => {}
        }
    }
    let value = value.filter(|_| declarations.len() == 1);
    let bound = |declaration: Node<'t>| {
        let name = child_of_kind(declaration, "identifier")?;
        Some(Bound::new(BindingKind::Local, name).of(type_in(declaration)).to(value))
    };
    declarations.into_iter().filter_map(bound).collect()
}

fn property<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    const NO_VALUE: &[&str] = &["getter", "setter", "property_delegate", "type_constraints"];
    let behind = children(node).into_iter().skip_while(|child| !child.kind().ends_with("variable_declaration")).skip(1);
    let value = behind.into_iter().find(|child| !NO_VALUE.contains(&child.kind()));
    found.extend(variables(node, value));
}

fn iterated<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let mut behind = children(node).into_iter().skip_while(|child| !child.kind().ends_with("variable_declaration")).skip(1);
    found.extend(variables(node, behind.next()).into_iter().map(|bound| bound.by(Step::Element)));
}

fn lambda_parameters<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    found.extend(variables(node, None));
}

/// Replaces syntax that the grammar does not know, and for which it gives up on the rest of the file: guards in `when`,
/// context parameters, a comma after the last type parameter, bodies of types in one line, which need a semicolon at the
/// end, names that are spelled like keywords, modifiers and annotations of a constructor or accessor in a line of their
/// own, and dollar signs and quotes in strings.
fn without_unknown_syntax(text: &[u8]) -> Option<Vec<u8>> {
    let mut mask = Mask { text, masked: None };
    let mut start = 0;
    let mut before: Range<usize> = 0..0;
    for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
        let line = &text[start..end];
        if let Some(arrow) = memchr::memmem::find(line, b"->") {
            mask.guard(start, &line[..arrow]);
        }
        mask.body_in_one_line(start, line);
        mask.comma(before, start..end);
        before = start..end;
        start = end + 1;
    }
    for at in memchr::memmem::find_iter(text, b" if (") {
        mask.guard_in_parentheses(at);
    }
    for at in memchr::memmem::find_iter(text, b"context(") {
        mask.context(at);
    }
    mask.dollars();
    mask.quotes();
    let mut at = 0;
    while let Some(start) = text[at..].iter().position(|byte| is_word_byte(*byte)).map(|n| at + n) {
        at = start + first_word(&text[start..]).len();
        match &text[start..at] {
            b"constructor" => mask.before_constructor(start),
            b"get" | b"set" if mask.is_accessor(start..at) => mask.before_accessor(start),
            b"get" | b"set" => mask.rename(at),
            b"by" if !mask.is_delegation(at) => mask.rename(at),
            b"where" if !mask.is_constraint(at) => mask.rename(at),
            _ => mask.modifier(start..at),
        }
    }
    mask.masked
}

/// Replaces modifiers and annotations before declarations that the parser takes for expressions: it can take the keyword
/// in `@Api class Client` for a name.
fn without_misread_modifiers(tree: &Tree, text: &[u8]) -> Option<Vec<u8>> {
    let mut mask = Mask { text, masked: None };
    let mut annotations = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let is_inside = match node.kind() {
            "line_comment" | "block_comment" => false,
            "annotation" => {
                annotations.push(node.byte_range());
                false
            }
            // The arguments of an annotation.
            "parenthesized_expression" if !annotations.is_empty() => {
                annotations.push(node.byte_range());
                false
            }
            "annotated_expression" => true,
            "modifiers" | "parameter_modifiers" => {
                annotations.clear();
                false
            }
            kind => {
                let is_known = kind.ends_with("_declaration") || kind == "type_alias";
                if !annotations.is_empty() && !is_known {
                    mask.misread(&annotations, node.start_byte());
                }
                annotations.clear();
                true
            }
        };
        if is_inside && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return mask.masked;
            }
        }
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte > 127
}

fn first_word(text: &[u8]) -> &[u8] {
    let n_bytes = text.iter().take_while(|byte| is_word_byte(**byte)).count();
    &text[..n_bytes]
}

struct Mask<'a> {
    text: &'a [u8],
    masked: Option<Vec<u8>>,
}

impl Mask<'_> {
    fn masked(&mut self) -> &mut [u8] {
        self.masked.get_or_insert_with(|| self.text.to_vec())
    }

    fn blank(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            blank(&mut self.masked()[range]);
        }
    }

    /// Replaces the guard in `is Ready if isOpen ->` and `else if isOpen ->`. `head` is the text before the arrow in the
    /// line that starts at `start`.
    fn guard(&mut self, start: usize, head: &[u8]) {
        let Some(at) = memchr::memmem::find(head, b" if ") else { return };
        let condition = &head[at..];
        let count = |byte: u8| memchr::memchr_iter(byte, condition).count();
        if is_case(&head[..at]) && count(b'(') == count(b')') && count(b'{') + count(b'}') + count(b';') == 0 {
            self.blank(start + at..start + head.len());
        }
    }

    /// Replaces a guard in parentheses, which can have several lines. It is at `at`.
    fn guard_in_parentheses(&mut self, at: usize) {
        let before = &self.text[at.saturating_sub(MAX_BYTES)..at];
        let case = &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..];
        let condition = &self.text[at..];
        let Some(end) = closing_parenthesis(condition) else { return };
        if is_case(case) && condition[end + 1..].trim_ascii_start().starts_with(b"->") {
            self.blank(at..at + end + 1);
        }
    }

    /// Adds a semicolon to `object : Clock { override fun now() = 0 }`.
    fn body_in_one_line(&mut self, start: usize, line: &[u8]) {
        let Some(open) = memchr::memchr(b'{', line) else { return };
        let is_type = [b"class ".as_slice(), b"object ", b"interface "]
            .iter()
            .any(|word| memchr::memmem::find(line, word).is_some());
        if !is_type {
            return;
        }
        for close in memchr::memmem::find_iter(line, b" }").filter(|close| *close > open + 1) {
            self.masked()[start + close] = b';';
        }
    }

    /// Replaces the comma in front of a line that begins with `>`.
    fn comma(&mut self, before: Range<usize>, line: Range<usize>) {
        let above = self.text[before.clone()].trim_ascii_end();
        let words = self.text[line.clone()].trim_ascii_start();
        if words.starts_with(b">") && above.ends_with(b",") {
            let comma = before.start + above.len() - 1;
            self.blank(comma..comma + 1);
        }
    }

    /// Replaces each dollar sign that begins no name. In `$$"$a $$b"`, two of them begin a name.
    fn dollars(&mut self) {
        let text = self.text;
        let mut literal = 0..0;
        let mut n_literal = 1;
        let mut at = 0;
        while let Some(start) = memchr::memchr(b'$', &text[at..]).map(|n| at + n) {
            let n_dollars = text[start..].iter().take_while(|byte| **byte == b'$').count();
            at = start + n_dollars;
            let next = text.get(at).copied().unwrap_or_default();
            if next == b'"' && !literal.contains(&start) {
                let quotes: &[u8] = if text[at..].starts_with(b"\"\"\"") { b"\"\"\"" } else { b"\"" };
                let inside = at + quotes.len();
                let n_inside = memchr::memmem::find(&text[inside..], quotes).unwrap_or(text.len() - inside);
                (literal, n_literal) = (inside..inside + n_inside, n_dollars);
            }
            let begins_name = is_word_byte(next) && !next.is_ascii_digit() || b"{`".contains(&next);
            let is_text = literal.contains(&start) && n_dollars < n_literal;
            self.blank(start..if begins_name && !is_text { at - 1 } else { at });
        }
    }

    /// Replaces the quotes next to the three that begin or end a string.
    fn quotes(&mut self) {
        let mut at = 0;
        while let Some(start) = memchr::memmem::find(&self.text[at..], b"\"\"\"").map(|n| at + n) {
            let n_quotes = self.text[start..].iter().take_while(|byte| **byte == b'"').count();
            at = start + n_quotes;
            if n_quotes < 6 {
                self.blank(start + 3..at);
            }
        }
    }

    /// Changes the last letter of the word that ends at `end`, so that it is no keyword.
    fn rename(&mut self, end: usize) {
        self.masked()[end - 1] = b'_';
    }

    /// Returns true for `get` and `set` that begin an accessor: with no argument or one name, and a body, or with neither.
    fn is_accessor(&self, word: Range<usize>) -> bool {
        let behind = &self.text[word.end..];
        if !behind.starts_with(b"(") {
            let next = behind.iter().find(|byte| !b" \t".contains(byte));
            return next.is_none_or(|next| b"\r\n/;}".contains(next));
        }
        let list = closing_parenthesis(behind).map(|end| behind.split_at(end + 1));
        list.is_some_and(|(list, rest)| match &self.text[word] {
            b"get" => list == b"()",
            _ => matches!(rest.trim_ascii_start().first(), Some(b'{' | b'=')),
        })
    }

    /// Returns true if the `by` that ends at `end` is between a type and a value.
    fn is_delegation(&self, end: usize) -> bool {
        let next = self.text[end..].trim_ascii_start();
        next.first().is_some_and(|first| is_word_byte(*first) || b"({@`:/".contains(first))
            && (next.len() < self.text.len() - end || next.starts_with(b"("))
    }

    /// Returns true if the `where` that ends at `end` is before the bounds of a type parameter.
    fn is_constraint(&self, end: usize) -> bool {
        let next = self.text[end..].trim_ascii_start();
        let name = first_word(next);
        next.starts_with(b"@") || !name.is_empty() && next[name.len()..].trim_ascii_start().starts_with(b":")
    }

    /// Replaces the modifiers and annotations of a constructor in a line below the name of its class.
    fn before_constructor(&mut self, word: usize) {
        let start = start_of_modifiers(&self.text[..word]);
        let before = self.text[..start].trim_ascii_end();
        let is_below = self.text[before.len()..word].contains(&b'\n');
        let header = &before[before.len().saturating_sub(MAX_BYTES)..];
        let header = &header[memchr::memrchr(b'\n', header).map_or(0, |at| at + 1)..];
        let is_name = header.last().is_some_and(|last| is_word_byte(*last) || b">`".contains(last));
        if is_below && is_name && memchr::memmem::find(header, b"class ").is_some() {
            self.blank(start..word);
            // In the body of another class, only a comment says that the line does not begin a member.
            let comment = word - COMMENT.len()..word;
            if !self.text[comment.clone()].contains(&b'\n') {
                self.masked()[comment].copy_from_slice(COMMENT);
            }
        }
    }

    /// Replaces the annotations of an accessor.
    fn before_accessor(&mut self, word: usize) {
        let start = start_of_modifiers(&self.text[..word]);
        if self.text[start..word].starts_with(b"@") {
            self.blank(start..word);
        }
    }

    /// Changes the last letter of a word that is spelled like a modifier but is a name: `open` in `open = true`,
    /// `suspend` in `suspend { … }`. Replaces `actual` and `expect` before `constructor`.
    fn modifier(&mut self, word: Range<usize>) {
        let name = &self.text[word.clone()];
        if !MODIFIERS.iter().any(|modifier| modifier.as_bytes() == name) {
            return;
        }
        let behind = &self.text[word.end..];
        let next = behind.trim_ascii_start();
        let is_on_next_line = behind[..behind.len() - next.len()].contains(&b'\n');
        let before = self.text[..word.start].trim_ascii_end();
        let n_before = before.iter().rev().take_while(|byte| is_word_byte(**byte)).count();
        let is_value = before.last().is_some_and(|byte| b".=&|!+?".contains(byte));
        let is_declared = matches!(&before[before.len() - n_before..], b"val" | b"var" | b"fun");
        let next_word = first_word(next);
        let begins_declaration = match name {
            b"actual" | b"expect" if next_word == b"constructor" => return self.blank(word),
            b"dynamic" => false,
            b"noinline" | b"crossinline" | b"vararg" => !next_word.is_empty() || next.starts_with(b"`"),
            b"suspend" => !next_word.is_empty() || is_function_type(next),
            _ => {
                let mut starts = DECLARATION_STARTS.iter().chain(&DECLARED_AFTER_MODIFIERS);
                starts.any(|start| start.as_bytes() == next_word)
            }
        };
        let begins_declaration = begins_declaration || next.starts_with(b"@") || next.starts_with(b"/");
        if is_declared || !begins_declaration || is_value && is_on_next_line {
            self.rename(word.end);
        }
    }

    /// Makes the declaration at `start`, below `annotations`, easier to read: replaces its modifiers that can be names, or
    /// the annotations if it has none. Does nothing if no declaration is there.
    fn misread(&mut self, annotations: &[Range<usize>], start: usize) {
        let is_in = |words: &[&str], word: &[u8]| words.iter().any(|known| known.as_bytes() == word);
        let mut names = Vec::new();
        let mut at = start;
        loop {
            let word = at..at + first_word(&self.text[at..]).len();
            let next = self.text[word.end..].trim_ascii_start();
            let name = &self.text[word.clone()];
            if is_in(&["class", "fun", "interface", "object", "typealias", "val", "var"], name) {
                if next.first().is_some_and(|first| is_word_byte(*first) || b"`<".contains(first)) {
                    break;
                }
                return;
            }
            if !is_in(&DECLARATION_STARTS, name) && !is_in(&DECLARED_AFTER_MODIFIERS, name) {
                return;
            }
            at = self.text.len() - next.len();
            if is_in(&["actual", "annotation", "expect"], name) {
                names.push(word);
            }
        }
        let replaced = if names.is_empty() { annotations } else { &names };
        replaced.iter().for_each(|range| self.blank(range.clone()));
    }

    /// Replaces `context(…)` before a declaration or a type.
    fn context(&mut self, at: usize) {
        let list = &self.text[at..];
        let before = self.text[..at].trim_ascii_end();
        let is_type = before.ends_with(b":") || before.ends_with(b"->");
        let Some(end) = closing_parenthesis(list) else { return };
        let next = list[end + 1..].trim_ascii_start();
        let word = next.split(|byte| !byte.is_ascii_lowercase()).next().unwrap_or_default();
        let is_declaration = next.starts_with(b"@") || DECLARATION_STARTS.iter().any(|start| start.as_bytes() == word);
        if is_type || is_declaration {
            self.blank(at..at + end + 1);
        }
    }
}

/// Words that begin a declaration.
const DECLARATION_STARTS: [&str; 19] = [
    "fun", "val", "var", "class", "private", "public", "internal", "protected", "override", "open", "abstract", "final",
    "suspend", "inline", "infix", "operator", "tailrec", "expect", "actual",
];

/// Other words that can follow a modifier.
const DECLARED_AFTER_MODIFIERS: [&str; 17] = [
    "interface", "object", "typealias", "constructor", "get", "set", "companion", "data", "enum", "annotation", "value",
    "inner", "const", "sealed", "lateinit", "external", "vararg",
];

/// Modifiers that the grammar does not take for names, and `dynamic`, which it takes for a type only.
const MODIFIERS: [&str; 21] = [
    "abstract", "actual", "crossinline", "dynamic", "expect", "external", "final", "infix", "inline", "internal",
    "lateinit", "noinline", "open", "override", "private", "protected", "public", "sealed", "suspend", "tailrec",
    "vararg",
];

const COMMENT: &[u8] = b"/**/";

/// Limit on the length of a list in parentheses and of the header of a class.
const MAX_BYTES: usize = 1_000;

/// Returns the position of the first parenthesis that closes the first open one.
fn closing_parenthesis(text: &[u8]) -> Option<usize> {
    let mut depth = 0;
    memchr::memchr2_iter(b'(', b')', &text[..text.len().min(MAX_BYTES)]).find(|at| {
        depth += if text[*at] == b'(' { 1 } else { -1 };
        depth == 0
    })
}

/// Returns true for the start of a line that is a condition in `when`.
fn is_case(text: &[u8]) -> bool {
    let case = text.trim_ascii_start();
    !case.is_empty() && !case.starts_with(b"return") && !case.iter().any(|byte| b"={}".contains(byte))
}

/// Returns true for the parameters or the receiver of a function type.
fn is_function_type(text: &[u8]) -> bool {
    let end = closing_parenthesis(text).filter(|_| text.starts_with(b"("));
    let next = end.map_or(b"".as_slice(), |end| text[end + 1..].trim_ascii_start());
    next.starts_with(b"->") || next.starts_with(b".(")
}

/// Returns the start of the modifiers and annotations at the end of `text`. Reads a limited part of it.
fn start_of_modifiers(text: &[u8]) -> usize {
    /// Limit on the number of modifiers and annotations.
    const MAX_MODIFIERS: usize = 12;
    let from = text.len().saturating_sub(MAX_BYTES);
    let text = &text[from..];
    let mut start = text.len();
    for _ in 0..MAX_MODIFIERS {
        let before = without_comment(text[..start].trim_ascii_end());
        let name = start_of_name(before);
        let word = &before[name..];
        let is_modifier = word.starts_with(b"@") || MODIFIERS.iter().any(|modifier| modifier.as_bytes() == word);
        let Some(next) = is_modifier.then_some(name).or_else(|| start_of_call(before)) else { break };
        start = next;
    }
    from + start
}

/// Returns `text` without the comment at the end of its last line.
fn without_comment(text: &[u8]) -> &[u8] {
    let line = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
    let comment = memchr::memmem::find(&text[line..], b" // ");
    comment.map_or(text, |at| text[..line + at].trim_ascii_end())
}

/// Returns the start of the name of an annotation or modifier at the end of `text`.
fn start_of_name(text: &[u8]) -> usize {
    text.len() - text.iter().rev().take_while(|byte| is_word_byte(**byte) || b".:@".contains(byte)).count()
}

/// Returns the start of an annotation with arguments at the end of `text`.
fn start_of_call(text: &[u8]) -> Option<usize> {
    let mut depth = 0;
    let open = memchr::memchr2_iter(b'(', b')', text).rev().find(|at| {
        depth += if text[*at] == b')' { 1 } else { -1 };
        depth <= 0
    })?;
    let name = start_of_name(&text[..open]);
    (text.ends_with(b")") && text[name..].starts_with(b"@")).then_some(name)
}

fn is_test(probe: &TestProbe<'_>) -> bool {
    ["Test", "ParameterizedTest", "RepeatedTest", "TestFactory"].iter().any(|name| probe.has_attribute(name))
}

/// Finds the name and kind of a class, interface or enum. All three have the same node kind.
fn class_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let is_interface = node.children(&mut cursor).any(|child| child.kind() == "interface");
    let kind = match child_of_kind(node, "enum_class_body") {
        Some(_) => DefinitionKind::Enum,
        None if is_interface => DefinitionKind::Interface,
        None => DefinitionKind::Class,
    };
    names.extend(field(node, "name").map(|name| Named::at(name).of(kind)));
}

/// Finds the name of a function. The qualifier of an extension function is its receiver: `List` in
/// `fun <T> List<T>.describe()`.
fn function_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name") else { return };
    let mut named = Named::at(name);
    named.qualifier = receiver(cx, node, name);
    if named.qualifier.is_some() {
        named.kind = Some(DefinitionKind::Method);
    }
    names.push(named);
}

fn receiver<'t>(_: &Cx<'_, 't>, node: Node<'t>, name: Node<'t>) -> Option<ByteRange> {
    let receiver = children(node).into_iter().take_while(|child| child.end_byte() < name.end_byte());
    let mut receiver = receiver.into_iter().find(|child| matches!(child.kind(), "user_type" | "nullable_type"))?;
    if receiver.kind() == "nullable_type" {
        receiver = child_of_kind(receiver, "user_type")?;
    }
    child_of_kind(receiver, "identifier").map(range_of)
}

/// Finds the name of a constructor, which is the keyword `constructor`.
fn keyword_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let keyword = node.children(&mut cursor).find(|child| child.kind() == "constructor");
    names.extend(keyword.map(Named::at));
}

fn property_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(variable) = child_of_kind(node, "variable_declaration") else { return };
    let Some(name) = child_of_kind(variable, "identifier") else { return };
    let is_const = child_of_kind(node, "modifiers").is_some_and(|modifiers| cx.text(modifiers).contains("const"));
    let mut named = Named::at(name);
    named.qualifier = receiver(cx, node, variable);
    if is_const || is_screaming(cx.text(name)) {
        named.kind = Some(DefinitionKind::Constant);
    } else if child_of_kind(node, "getter").is_some() {
        named.kind = Some(DefinitionKind::Property);
    }
    names.push(named);
}

/// Finds the field that a constructor parameter declares: `b` in `class A(val b: B)`, but nothing in `class A(b: B)`.
fn parameter_field<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    if node.children(&mut cursor).any(|child| matches!(child.kind(), "val" | "var")) {
        names.extend(child_of_kind(node, "identifier").map(Named::at));
    }
}

/// Adds the type that `Flushable by transport` inherits from.
fn delegated<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let Some((range, qualifier)) = child_of_kind(node, "user_type").and_then(|of| cx.resolve(of)) else { return };
    mentions.push(Mention::new(ReferenceKind::Inherit, range, qualifier));
}

fn import<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(path) = child_of_kind(node, "qualified_identifier") else { return true };
    let text = cx.text(path);
    let alias = child_of_kind(node, "identifier").map(|alias| cx.text(alias));
    let is_everything = cx.text(node).trim_end().ends_with('*');
    let (module, name) = match text.rsplit_once('.') {
        _ if is_everything => (text, "*"),
        Some((module, name)) => (module, name),
        None => ("", text),
    };
    let mut import = import_of(module, node);
    import.names.push(imported(name, alias));
    imports.push(import);
    true
}
