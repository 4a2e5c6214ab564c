//! Rules for Ruby.

use tree_sitter::Node;

use super::text::{blank, import_of, is_word_byte, unquoted, without_quotes};
use super::standard::Standard;
use super::{Extensions, Globals, Language, Profile, Structure};
use crate::extract::rules::{
    Bound, Grammar, Leaf, Mention, Named, Role, Rule, TestProbe, Zone, bind, define, method_call, on, path, range_of, same,
};
use crate::extract::types::{BindingKind, DefinitionKind, Import, Literal, ReferenceKind};
use crate::extract::walk::{Cx, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "ruby",
    lang: Lang(12),
    aliases: &["rb"],
    extensions: &["rb", "rake", "gemspec", "ru", "podspec", "thor", "jbuilder", "rbi"],
    file_names: &["Rakefile", "Gemfile", "Guardfile", "Capfile", "Vagrantfile", "Podfile", "Fastfile", "Brewfile"],
    interpreters: &["ruby", "rake", "jruby"],
    profile: Profile { has_implicit_this: true, is_script: true, standard: Standard::RUBY, extensions: Extensions::Anywhere, globals: Globals::Constants, implicit_names: "it", run_by_name: "call coerce each eql? extended hash included inherited inspect method_missing prepended respond_to_missing? to_ary to_proc to_s to_str", ..Profile::HASH },
    structure: Structure::Grammar(
        &Grammar::new("ruby", &[RULES])
            .tests(is_test)
            .rooted_by(b':')
            .unless(has_a_long_heredoc_word)
            .masks(without_open_heredoc_words),
    ),
};

const RULES: &[Rule] = &[
    on(&["module"], define(DefinitionKind::Module).name_by(scoped_name).role()),
    on(&["class"], define(DefinitionKind::Class).name_by(scoped_name).role()),
    on(&["method"], define(DefinitionKind::Method).name_by(method_name).role()),
    on(&["singleton_method"], define(DefinitionKind::Method).name_by(method_name).role()),
    on(&["alias"], define(DefinitionKind::Method).role()),
    on(&["assignment"], define(DefinitionKind::Constant).name_by(constant_name).body_fields(&[]).not_local().role()),
    on(&["call"], define(DefinitionKind::Method).name_by(declared_by_call).body_fields(&["block"]).role()),
    on(&["call"], Role::Import(required)),
    on(&["call"], Role::Mention(mixed_in)),
    on(&["comment"], Role::Comment),
    on(&["superclass"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["argument_list"], Role::Zone(Zone::Plain)),
    on(&["call"], method_call("method", "receiver")),
    on(&["scope_resolution"], path("scope", "name")),
    on(SCOPES, Role::Scope),
    on(&["assignment", "operator_assignment"], bind(BindingKind::Local, "left", "", "right")),
    on(PARAMETERS, Role::BindBy(parameters)),
    on(&["method", "singleton_method", "call"], Role::BindBy(defined_in_block)),
    on(&["exception_variable"], Role::BindBy(first_name)),
    on(&["for"], bind(BindingKind::Local, "pattern", "", "")),
    on(&["parenthesized_statements"], same("")),
    on(&["string", "heredoc_beginning"], Role::Literal(Literal::String)),
    on(&["integer"], Role::Literal(Literal::Integer)),
    on(&["float"], Role::Literal(Literal::Float)),
    on(&["true", "false"], Role::Literal(Literal::Boolean)),
    on(&["array", "hash", "simple_symbol"], Role::Literal(Literal::Other)),
    on(&["nil"], Role::Literal(Literal::Null)),
    on(&["instance_variable"], Role::Leaf(Leaf::Field)),
    on(&["self"], Role::Leaf(Leaf::This)),
    on(&["constant", "identifier"], Role::Leaf(Leaf::Name)),
];

/// Node kinds in which names are bound.
const SCOPES: &[&str] = &["block", "class", "do_block", "lambda", "method", "module", "singleton_class", "singleton_method"];

const PARAMETERS: &[&str] = &["block_parameters", "lambda_parameters", "method_parameters"];

fn parameters<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let names = children(node).into_iter().map(|child| field(child, "name").unwrap_or(child));
    found.extend(names.map(|name| Bound::new(BindingKind::Parameter, name)));
}

/// Adds the names of methods that are defined in a block: the caller of the block decides what they are members of. Their
/// value is the block.
fn defined_in_block<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let outer = node.parent().filter(|outer| outer.kind() == "body_statement").and_then(|body| body.parent());
    let Some(block) = outer.filter(|outer| matches!(outer.kind(), "block" | "do_block")) else { return };
    let mut names = Vec::new();
    match node.kind() {
        "call" => declared_by_call(cx, node, &mut names),
        _ => method_name(cx, node, &mut names),
    }
    let names = names.into_iter().filter(|named| named.kind != Some(DefinitionKind::Test));
    found.extend(names.map(|named| Bound::new(BindingKind::Definition, node).to(Some(block)).named(named.range)));
}

fn first_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    found.extend(node.named_child(0).map(|name| Bound::new(BindingKind::Local, name)));
}

/// Returns true if a heredoc word is too long for the grammar's scanner. The scanner stores the length in one byte, and
/// aborts the process if it then reads the word incorrectly.
fn has_a_long_heredoc_word(bytes: &[u8]) -> bool {
    const MAX_WORD: usize = 200;
    heredoc_words(bytes).any(|(_, length)| length.is_some_and(|length| length > MAX_WORD))
}

/// Replaces `<<` before a quote that is not closed on its line. This is no heredoc, but the scanner would read a word up
/// to the next quote, which may be long: `'<<'` or `` `<<` in a comment``.
fn without_open_heredoc_words(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut masked: Option<Vec<u8>> = None;
    for (at, _) in heredoc_words(bytes).filter(|(_, length)| length.is_none()) {
        blank(&mut masked.get_or_insert_with(|| bytes.to_vec())[at..at + 2]);
    }
    masked
}

/// Returns the place of each `<<`, and the length of the word that follows. `None` for an open quote.
fn heredoc_words(bytes: &[u8]) -> impl Iterator<Item = (usize, Option<usize>)> {
    let starts = memchr::memchr_iter(b'<', bytes).filter(|at| bytes.get(at + 1) == Some(&b'<'));
    starts.map(|at| {
        let text = &bytes[at + 2..];
        let text = text.strip_prefix(b"~").or_else(|| text.strip_prefix(b"-")).unwrap_or(text);
        let length = match text {
            [quote @ (b'"' | b'\'' | b'`'), word @ ..] => {
                let end = word.iter().position(|byte| byte == quote || *byte == b'\n');
                end.filter(|end| word[*end] == *quote)
            }
            word => Some(word.iter().take_while(|byte| is_word_byte(**byte) || **byte >= 0x80).count()),
        };
        (at, length)
    })
}

fn is_test(probe: &TestProbe<'_>) -> bool {
    probe.name.starts_with("test_")
}

/// Finds the name of a class or module. `class A::B` has the name `B` and the qualifier `A`.
fn scoped_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some((range, qualifier)) = field(node, "name").and_then(|name| cx.resolve(name)) else { return };
    let qualifier = (!qualifier.is_empty()).then_some(qualifier);
    names.push(Named { range, kind: None, qualifier });
}

fn method_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(name) = field(node, "name") else { return };
    let mut named = Named::at(name);
    let object = field(node, "object").filter(|object| object.kind() == "constant");
    named.qualifier = object.map(range_of);
    named.kind = match (cx.text(name), cx.owner_kind()) {
        ("initialize", _) => Some(DefinitionKind::Constructor),
        (_, None) if object.is_none() => Some(DefinitionKind::Function),
        _ => None,
    };
    names.push(named);
}

/// Finds the name in `A = 1`. The name is that of a class if the value is a call of `Struct.new` or `Class.new`.
fn constant_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(left) = field(node, "left").filter(|left| left.kind() == "constant") else { return };
    let right = field(node, "right").filter(|right| right.kind() == "call");
    let receiver = right.and_then(|right| field(right, "receiver")).map(|receiver| cx.text(receiver));
    let is_class = matches!(receiver, Some("Struct" | "Class" | "Data"));
    names.push(if is_class { Named::at(left).of(DefinitionKind::Class) } else { Named::at(left) });
}

/// Finds the names that a call declares: accessors, aliases, scopes or tests.
fn declared_by_call<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(method) = field(node, "method") else { return };
    let (kind, is_many) = match cx.text(method) {
        "attr_reader" | "attr_writer" | "attr_accessor" | "cattr_accessor" | "mattr_accessor" => {
            (DefinitionKind::Property, true)
        }
        "alias_method" | "define_method" | "scope" => (DefinitionKind::Method, false),
        "it" | "specify" | "test" | "should" | "scenario" | "describe" | "context" | "feature" | "example" => {
            (DefinitionKind::Test, false)
        }
        _ => return,
    };
    let is_test = kind == DefinitionKind::Test;
    if is_test && field(node, "block").is_none() {
        return;
    }
    let arguments = field(node, "arguments").map(children).unwrap_or_default();
    let n_names = if is_many { arguments.len() } else { 1 };
    let named = arguments.into_iter().take(n_names).filter_map(|argument| argument_name(cx, argument, is_test));
    names.extend(named.map(|range| Named { range, kind: Some(kind), qualifier: None }));
}

fn argument_name<'t>(cx: &Cx<'_, 't>, argument: Node<'t>, is_test: bool) -> Option<ByteRange> {
    let range = range_of(argument);
    match argument.kind() {
        "simple_symbol" => Some(ByteRange::new(range.start + 1, range.end)),
        "string" => Some(unquoted(cx, argument)),
        "constant" | "scope_resolution" if is_test => Some(range),
        _ => None,
    }
}

fn required<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(method) = field(node, "method").filter(|_| field(node, "receiver").is_none()) else { return false };
    let name = cx.text(method);
    if !matches!(name, "require" | "require_relative" | "load" | "autoload") {
        return false;
    }
    let module = field(node, "arguments").map(children).unwrap_or_default().pop();
    let Some(module) = module.filter(|module| module.kind() == "string") else { return false };
    let text = without_quotes(cx.text(module));
    // A leading dot marks a path relative to the file, as opposed to one on the load path.
    let is_beside = name == "require_relative" && !text.starts_with('.');
    imports.push(import_of(&if is_beside { format!("./{text}") } else { text.to_owned() }, node));
    true
}

/// Adds the modules of `include A, B::C`.
fn mixed_in<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let is_mixin = field(node, "method").is_some_and(|m| matches!(cx.text(m), "include" | "extend" | "prepend"));
    if !is_mixin || field(node, "receiver").is_some() {
        return;
    }
    for argument in field(node, "arguments").map(children).unwrap_or_default() {
        if let Some((range, qualifier)) = cx.resolve(argument) {
            mentions.push(Mention::new(ReferenceKind::Inherit, range, qualifier));
        }
    }
}
