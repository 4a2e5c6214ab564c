//! Rules for Kotlin.

use std::ops::Range;

use tree_sitter::Node;

use super::text::{blank, import_of, imported, is_screaming};
use super::{Language, Structure};
use crate::extract::rules::{Grammar, Leaf, Mention, Named, Role, Rule, TestProbe, Zone, call, define, flat_path, on, range_of};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "kotlin",
    lang: Lang(10),
    aliases: &["kt"],
    extensions: &["kt", "kts"],
    file_names: &[],
    interpreters: &["kotlin"],
    structure: Structure::Grammar(
        &Grammar::new("kotlin", &[RULES]).tests(is_test).masks_after_errors(without_unknown_syntax),
    ),
};

const RULES: &[Rule] = &[
    on(&["package_header"], define(DefinitionKind::Module).name_child(&["qualified_identifier"]).role()),
    on(
        &["class_declaration"],
        define(DefinitionKind::Class).name_by(class_name).body_child(&["class_body", "enum_class_body"]).role(),
    ),
    on(&["companion_object"], define(DefinitionKind::Class).name_child(&["identifier"]).body_child(&["class_body"]).role()),
    on(&["object_declaration"], define(DefinitionKind::Class).body_child(&["class_body"]).role()),
    on(
        &["function_declaration"],
        define(DefinitionKind::Function).name_by(function_name).body_child(&["function_body"]).role(),
    ),
    on(
        &["secondary_constructor"],
        define(DefinitionKind::Constructor).name_by(keyword_name).body_child(&["block"]).role(),
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
    on(&["user_type", "navigation_expression"], flat_path()),
    on(&["call_expression"], call("")),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
];

/// Replaces syntax that the grammar does not know, and for which it gives up on the rest of the file: guards in `when`,
/// context parameters, a comma after the last type parameter, an annotation before `annotation class`, bodies of types
/// in one line, which need a semicolon at the end, names that are spelled like modifiers, and dollar signs in strings
/// that begin no name.
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
        mask.start_of_line(before, start..end);
        before = start..end;
        start = end + 1;
    }
    for at in memchr::memmem::find_iter(text, b"context(") {
        mask.context(at);
    }
    for at in memchr::memchr_iter(b'$', text) {
        if !text.get(at + 1).is_some_and(|next| is_word_byte(*next) && !next.is_ascii_digit() || b"{`".contains(next)) {
            mask.blank(at..at + 1);
        }
    }
    let mut at = 0;
    while let Some(start) = text[at..].iter().position(|byte| is_word_byte(*byte)).map(|n| at + n) {
        let n_bytes = text[start..].iter().take_while(|byte| is_word_byte(**byte)).count();
        at = start + n_bytes;
        mask.modifier(start..at);
    }
    mask.masked
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
        blank(&mut self.masked()[range]);
    }

    /// Replaces the guard in `is Ready if isOpen ->` and `else if isOpen ->`. `head` is the text before the arrow in the
    /// line that starts at `start`.
    fn guard(&mut self, start: usize, head: &[u8]) {
        let Some(at) = memchr::memmem::find(head, b" if ") else { return };
        let (case, condition) = (head[..at].trim_ascii_start(), &head[at..]);
        let is_case = !case.is_empty() && !case.starts_with(b"return") && !case.iter().any(|byte| b"={}".contains(byte));
        let count = |byte: u8| memchr::memchr_iter(byte, condition).count();
        if is_case && count(b'(') == count(b')') && count(b'{') + count(b'}') + count(b';') == 0 {
            self.blank(start + at..start + head.len());
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
        for close in memchr::memmem::find_iter(&line[open..], b" }") {
            self.masked()[start + open + close] = b';';
        }
    }

    /// Replaces the comma in front of a line that begins with `>`, and `annotation` below a line with an annotation.
    fn start_of_line(&mut self, before: Range<usize>, line: Range<usize>) {
        let above = self.text[before.clone()].trim_ascii_end();
        let words = self.text[line.clone()].trim_ascii_start();
        if words.starts_with(b">") && above.ends_with(b",") {
            let comma = before.start + above.len() - 1;
            self.blank(comma..comma + 1);
        }
        let rest = [&b"public "[..], b"internal ", b"private "].iter().find_map(|start| words.strip_prefix(*start));
        let words = rest.unwrap_or(words);
        if words.starts_with(b"annotation class ") && above.trim_ascii_start().starts_with(b"@") {
            let start = line.end - words.len();
            self.blank(start..start + b"annotation".len());
        }
        // An annotation between the name of a class and its constructor.
        let has_annotation = above.trim_ascii_start().starts_with(b"@") && !above.contains(&b'(');
        let is_before = words.starts_with(b"constructor(") && !self.text[..before.start].trim_ascii_end().ends_with(b"}");
        if has_annotation && is_before {
            self.blank(before);
        }
    }

    /// Changes the last letter of a word that is spelled like a modifier but is a name: `open` in `open = true`,
    /// `suspend` in `suspend { … }`. Replaces `actual` and `expect` before `constructor`.
    fn modifier(&mut self, word: Range<usize>) {
        let name = &self.text[word.clone()];
        // A call. An accessor has no argument or one name, and a body.
        let is_accessor = || {
            let list = closing_parenthesis(&self.text[word.end..]).map(|end| self.text[word.end..].split_at(end + 1));
            list.is_none_or(|(list, rest)| match name {
                b"get" => list == b"()",
                _ => matches!(rest.trim_ascii_start().first(), Some(b'{' | b'=')),
            })
        };
        if matches!(name, b"get" | b"set") && self.text[word.end..].starts_with(b"(") && !is_accessor() {
            self.masked()[word.end - 1] = b'_';
        }
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
            b"suspend" => !next_word.is_empty() || next.starts_with(b"("),
            _ => {
                let mut starts = DECLARATION_STARTS.iter().chain(&DECLARED_AFTER_MODIFIERS);
                starts.any(|start| start.as_bytes() == next_word)
            }
        };
        let begins_declaration = begins_declaration || next.starts_with(b"@") || next.starts_with(b"/");
        if is_declared || !begins_declaration || is_value && is_on_next_line {
            self.masked()[word.end - 1] = b'_';
        }
    }

    /// Replaces `context(…)` before a declaration or a type.
    fn context(&mut self, at: usize) {
        /// Limit on the length of a list of context parameters.
        const MAX_BYTES: usize = 1_000;
        let list = &self.text[at..self.text.len().min(at + MAX_BYTES)];
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

/// Returns the position of the first parenthesis that closes the first open one.
fn closing_parenthesis(text: &[u8]) -> Option<usize> {
    let mut depth = 0;
    memchr::memchr2_iter(b'(', b')', text).find(|at| {
        depth += if text[*at] == b'(' { 1 } else { -1 };
        depth == 0
    })
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
    let receiver = receiver.into_iter().find(|child| child.kind() == "user_type")?;
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
