//! Rules for Elixir, where every definition is a macro call.

use tree_sitter::Node;

use super::text::{import_of, imported, unquoted};
use super::standard::Standard;
use super::{Globals, Language, Profile, Structure};
use crate::extract::rules::{Grammar, Lead, Leaf, Mention, Named, Role, Rule, define, on, path, range_of};
use crate::extract::types::{Arity, DefinitionKind, Import, ImportedName, Literal, ReferenceKind, Value};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "elixir",
    lang: Lang(18),
    aliases: &["ex", "exs"],
    extensions: &["ex", "exs"],
    file_names: &[],
    interpreters: &["elixir"],
    profile: Profile { has_overloads: true, standard: Standard::ELIXIR, globals: Globals::Aliases, run_by_name: "child_spec code_change handle_call handle_cast handle_continue handle_info init start start_link terminate", ..Profile::HASH },
    structure: Structure::Grammar(&Grammar::new("elixir", &[RULES])),
};

const RULES: &[Rule] = &[
    on(
        &["call"],
        define(DefinitionKind::Function).name_by(defined).body_by(body).doc_by(module_doc).clause()
            .arity_by(arity).role(),
    ),
    on(&["unary_operator"], define(DefinitionKind::Constant).name_by(attribute_name).not_local().role()),
    on(&["unary_operator"], Role::Lead(attribute)),
    on(&["unary_operator"], Role::Mention(mentioned_by_operator)),
    on(&["binary_operator"], Role::Mention(piped)),
    on(&["call"], Role::Import(imported_by_call)),
    on(&["call"], Role::Mention(called)),
    on(&["comment"], Role::Comment),
    on(&["do_block"], Role::Scope),
    on(&["alias"], Role::Mention(outer_segments)),
    on(&["dot"], path("left", "right")),
    on(&["alias"], Role::Leaf(Leaf::Dotted)),
    on(&["identifier"], Role::Leaf(Leaf::Segment)),
];

/// Macros that work like syntax. Calls of these are not recorded.
const SYNTAX: [&str; 33] = [
    "alias", "case", "cond", "def", "defdelegate", "defexception", "defguard", "defguardp", "defimpl", "defmacro",
    "defmacrop", "defmodule", "defp", "defprotocol", "defstruct", "describe", "fn", "for", "if", "import", "property",
    "quote", "receive", "require", "super", "test", "try", "unless", "unquote", "unquote_splicing", "use", "var!", "with",
];

fn target<'a, 't>(cx: &Cx<'a, 't>, call: Node<'t>) -> &'a str {
    let target = field(call, "target").filter(|target| target.kind() == "identifier");
    target.map_or("", |target| cx.text(target))
}

fn first_argument(call: Node<'_>) -> Option<Node<'_>> {
    child_of_kind(call, "arguments")?.named_child(0)
}

fn defined<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let kind = match target(cx, node) {
        "def" | "defp" | "defdelegate" => DefinitionKind::Function,
        "defmacro" | "defmacrop" | "defguard" | "defguardp" => DefinitionKind::Macro,
        "defmodule" => DefinitionKind::Module,
        "defprotocol" => DefinitionKind::Interface,
        "defimpl" => DefinitionKind::Impl,
        "test" | "describe" | "property" => DefinitionKind::Test,
        _ => return,
    };
    let Some(first) = first_argument(node) else { return };
    let named = match (kind, first.kind()) {
        (DefinitionKind::Test, "string") => Some(Named { range: unquoted(cx, first), kind: None, qualifier: None }),
        (DefinitionKind::Test, _) => None,
        (DefinitionKind::Impl, _) => Some(in_namespace(cx, implemented(node, first))),
        (_, "alias") => Some(in_namespace(cx, range_of(first))),
        (_, "identifier") => Some(Named::at(first)),
        _ => head_name(first),
    };
    names.extend(named.map(|named| named.of(kind)));
}

/// Counts the parameters in `f(a, b \\\\ 1)`, of which those with a default value are optional.
fn arity<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<Arity> {
    if !FUNCTIONS.contains(&target(cx, node)) {
        return None;
    }
    let mut head = first_argument(node)?;
    let operator = |node: Node<'t>| field(node, "operator").map_or("", |operator| operator.kind());
    if head.kind() == "binary_operator" && operator(head) == "when" {
        head = field(head, "left")?;
    }
    match head.kind() {
        "identifier" => Some(Arity::new(0, 0)),
        "binary_operator" => Some(Arity::new(2, 0)),
        "call" => {
            let parameters = arguments(head);
            let is_optional = |parameter: &&Node<'t>| operator(**parameter) == "\\\\";
            Some(Arity::new(parameters.len(), parameters.iter().filter(is_optional).count()))
        }
        _ => None,
    }
}

/// Macros that define a function or a macro, which is known by its name and number of parameters.
const FUNCTIONS: [&str; 7] = ["def", "defp", "defdelegate", "defmacro", "defmacrop", "defguard", "defguardp"];

fn arguments(call: Node<'_>) -> Vec<Node<'_>> {
    let mut found = child_of_kind(call, "arguments").map(children).unwrap_or_default();
    found.retain(|argument| argument.kind() != "comment");
    found
}

/// Returns the defined name in `f(a)`, `f(a) when …` or `a <~> b`.
fn head_name(head: Node<'_>) -> Option<Named> {
    let mut head = head;
    if head.kind() == "binary_operator" {
        let operator = field(head, "operator")?;
        match operator.kind() {
            "when" => head = field(head, "left")?,
            _ => return Some(Named::at(operator)),
        }
    }
    match head.kind() {
        "call" => field(head, "target").map(Named::at),
        "identifier" => Some(Named::at(head)),
        _ => None,
    }
}

/// Returns the name of an implementation, which is the type: `List` for `defimpl Size, for: List`.
fn implemented<'t>(node: Node<'t>, protocol: Node<'t>) -> ByteRange {
    let find = || {
        let keywords = child_of_kind(child_of_kind(node, "arguments")?, "keywords")?;
        let value = field(keywords.named_child(0)?, "value")?;
        (value.kind() == "alias").then(|| range_of(value))
    };
    find().unwrap_or_else(|| range_of(protocol))
}

/// Creates the name of a module. `MyApp.Repo` has the name `Repo` and the qualifier `MyApp`.
fn in_namespace(cx: &Cx<'_, '_>, alias: ByteRange) -> Named {
    let dot = cx.slice(alias).rfind('.').map(|dot| alias.start + dot as u32);
    Named {
        range: ByteRange::new(dot.map_or(alias.start, |dot| dot + 1), alias.end),
        kind: None,
        qualifier: dot.map(|dot| ByteRange::new(alias.start, dot)),
    }
}

/// Returns the range after the head: the `do` block, or the text from the comma before `do:`.
fn body<'t>(_: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    if let Some(block) = child_of_kind(node, "do_block") {
        return Some(range_of(block));
    }
    let head = first_argument(node)?;
    child_of_kind(child_of_kind(node, "arguments")?, "keywords")
        .map(|keywords| ByteRange::new(head.end_byte() as u32, keywords.end_byte() as u32))
}

fn module_doc<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<ByteRange> {
    let block = child_of_kind(node, "do_block").filter(|_| target(cx, node).starts_with("def"))?;
    let first = block.named_child(0).filter(|first| first.kind() == "unary_operator")?;
    let call = field(first, "operand").filter(|call| target(cx, *call) == "moduledoc")?;
    first_argument(call).filter(|doc| doc.kind() == "string").map(range_of)
}

/// Classifies `@doc`, `@spec` and similar attributes, which belong to the next function.
fn attribute<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<Lead> {
    let call = field(node, "operand").filter(|call| call.kind() == "call")?;
    match target(cx, call) {
        "doc" | "typedoc" => {
            let text = first_argument(call).filter(|doc| doc.kind() == "string");
            Some(text.map_or(Lead::Attribute, |text| Lead::Doc(range_of(text))))
        }
        "spec" | "impl" | "tag" | "deprecated" | "since" | "dialyzer" | "callback_doc" | "moduletag" => {
            Some(Lead::Attribute)
        }
        _ => None,
    }
}

/// Finds the name that an attribute defines: `@max_tries 5` defines a constant, `@type state :: …` a type.
fn attribute_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    const BUILT_IN_ATTRIBUTES: [&str; 14] = [
        "doc", "moduledoc", "typedoc", "spec", "impl", "tag", "moduletag", "describetag", "behaviour", "deprecated",
        "since", "dialyzer", "derive", "enforce_keys",
    ];
    let Some(call) = field(node, "operand").filter(|call| call.kind() == "call") else { return };
    let name = target(cx, call);
    let is_attribute = cx.text(node).starts_with('@');
    if !is_attribute || BUILT_IN_ATTRIBUTES.contains(&name) {
        return;
    }
    match name {
        "type" | "typep" | "opaque" | "callback" | "macrocallback" => {
            let kind = if name.contains("callback") { DefinitionKind::Function } else { DefinitionKind::TypeAlias };
            let left = first_argument(call).and_then(|argument| field(argument, "left"));
            names.extend(left.and_then(head_name).map(|named| named.of(kind)));
        }
        _ => names.extend(field(call, "target").map(Named::at)),
    }
}

/// Adds the behaviour in `@behaviour Name`, and the function in `&name/2`.
fn mentioned_by_operator<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    if let (Some(operand), Some(n)) = (field(node, "operand"), captured(cx, node)) {
        let name = field(operand, "left").filter(|name| name.kind() == "identifier");
        mentions.extend(name.map(|name| Mention {
            n_arguments: Some(n),
            ..Mention::new(ReferenceKind::Call, range_of(name), ByteRange::default())
        }));
    }
    let call = field(node, "operand").filter(|call| call.kind() == "call" && target(cx, *call) == "behaviour");
    inherit(cx, call.and_then(first_argument), mentions);
}

/// Adds the call in `value |> name`.
fn piped<'t>(_: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let is_pipe = field(node, "operator").is_some_and(|operator| operator.kind() == "|>");
    let name = field(node, "right").filter(|right| is_pipe && right.kind() == "identifier");
    mentions.extend(name.map(|name| Mention {
        n_arguments: Some(1),
        ..Mention::new(ReferenceKind::Call, range_of(name), ByteRange::default())
    }));
}

/// Returns the number in `&name/2`.
fn captured<'t>(cx: &Cx<'_, 't>, operator: Node<'t>) -> Option<u8> {
    let operand = field(operator, "operand").filter(|operand| operand.kind() == "binary_operator")?;
    let is_capture = cx.text(operator).starts_with('&') && field(operand, "operator")?.kind() == "/";
    let number = field(operand, "right").filter(|number| is_capture && number.kind() == "integer")?;
    cx.text(number).parse().ok()
}

/// Returns the number of arguments of a call: one more after `|>` or with a `do` block, and the number in `&A.name/2`.
fn n_arguments<'t>(cx: &Cx<'_, 't>, call: Node<'t>) -> Option<u8> {
    let outer = cx.parent().filter(|outer| outer.kind() == "binary_operator");
    let operator = outer.and_then(|outer| field(outer, "operator")).map_or("", |operator| operator.kind());
    let is_right = outer.and_then(|outer| field(outer, "right")).is_some_and(|right| right.id() == call.id());
    let capture = cx.ancestor(1).filter(|_| operator == "/" && !is_right).and_then(|capture| captured(cx, capture));
    if capture.is_some() {
        return capture;
    }
    let has_block = child_of_kind(call, "do_block").is_some();
    let n = arguments(call).len() + usize::from(has_block) + usize::from(operator == "|>" && is_right);
    Some(n.min(u8::MAX.into()) as u8)
}

fn inherit<'t>(cx: &Cx<'_, 't>, of: Option<Node<'t>>, mentions: &mut Vec<Mention>) {
    if let Some((range, qualifier)) = of.and_then(|of| cx.resolve(of)) {
        mentions.push(Mention::new(ReferenceKind::Inherit, range, qualifier));
    }
}

fn called<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let name = target(cx, node);
    if name == "defimpl" {
        return inherit(cx, first_argument(node), mentions);
    }
    if SYNTAX.contains(&name) || is_head_or_spec(cx, node) {
        return;
    }
    let Some(callee) = field(node, "target") else { return };
    let Some((range, qualifier)) = cx.resolve(callee) else { return };
    let mut mention = Mention::new(ReferenceKind::Call, range, qualifier);
    mention.n_arguments = n_arguments(cx, node);
    match field(callee, "left").map(|left| left.kind()) {
        // A module of Erlang.
        Some("atom" | "quoted_atom") => mention.receiver = Value::Literal(Literal::Other),
        Some("alias" | "dot") => {}
        Some(left) => {
            // Without arguments, it is the key of a map.
            let is_key = child_of_kind(node, "arguments").is_none() && mention.n_arguments == Some(0);
            if is_key && cx.slice(qualifier) != "__MODULE__" {
                mention.kind = ReferenceKind::Member;
            }
            if left != "identifier" {
                mention.receiver = Value::Other;
            }
        }
        None if is_quoted(cx) => mention.receiver = Value::Other,
        None => {}
    }
    mentions.push(mention);
}

/// Returns true if the visited call is code that a macro makes: another module can run it.
fn is_quoted(cx: &Cx<'_, '_>) -> bool {
    /// Limit on the nodes around a call that are asked.
    const MAX_LEVELS: usize = 40;
    let around = (0..MAX_LEVELS).map_while(|level| cx.ancestor(level));
    let mut calls = around.filter(|node| node.kind() == "call").map(|call| target(cx, call));
    calls.find(|name| matches!(*name, "quote" | "unquote" | "unquote_splicing" | "defmodule")) == Some("quote")
}

/// Adds the segments before the last one of `A.B.C`.
fn outer_segments<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let text = cx.text(node);
    let mut before = ByteRange::default();
    let mut start = 0;
    for (dot, _) in text.match_indices('.').take(MAX_SEGMENTS) {
        let at = node.start_byte();
        let range = ByteRange::new((at + start) as u32, (at + dot) as u32);
        mentions.push(Mention::new(ReferenceKind::Name, range, before));
        (before, start) = (range, dot + 1);
    }
}

/// Limit on the segments of the name of a module.
const MAX_SEGMENTS: usize = 32;

/// Returns true if the visited call is not executed: it is the head of a definition (`f(a)` in `def f(a)`) or part of a
/// type.
fn is_head_or_spec<'t>(cx: &Cx<'_, 't>, call: Node<'t>) -> bool {
    /// Limit on the nodes around a call that are asked.
    const MAX_LEVELS: usize = 16;
    let mut inner = call;
    for level in 0..MAX_LEVELS {
        let Some(node) = cx.ancestor(level) else { return false };
        match node.kind() {
            "unary_operator" => {
                let attribute = field(node, "operand").filter(|_| cx.text(node).starts_with('@'));
                let is_attribute = level == 0 && attribute.is_some();
                return is_attribute || attribute.is_some_and(|attribute| TYPES.contains(&target(cx, attribute)));
            }
            "binary_operator" => {
                let is_guard = field(node, "right").is_some_and(|right| right.id() == inner.id())
                    && field(node, "operator").is_some_and(|operator| operator.kind() == "when");
                if is_guard && cx.ancestor(level + 2).is_none_or(|outer| !TYPES.contains(&target(cx, outer))) {
                    return false;
                }
            }
            "call" if level < 3 && target(cx, node).starts_with("def") => return true,
            "arguments" | "call" | "list" | "tuple" | "map" | "map_content" | "keywords" | "pair" | "stab_clause"
            | "block" => {}
            _ => return false,
        }
        inner = node;
    }
    false
}

/// Attributes with types.
const TYPES: [&str; 6] = ["spec", "type", "typep", "opaque", "callback", "macrocallback"];

/// Adds the imports of `alias A.{B, C}`, `alias A.B, as: C`, `import A, only: […]`, `require A` and `use A`.
fn imported_by_call<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let verb = target(cx, node);
    if !matches!(verb, "alias" | "import" | "require" | "use") {
        return false;
    }
    let Some(first) = first_argument(node) else { return false };
    let options = child_of_kind(node, "arguments").and_then(|arguments| child_of_kind(arguments, "keywords"));
    let mut import = import_of(cx.text(first), node);
    if verb == "import" {
        import.names = options.map(|options| only(cx, options)).unwrap_or_default();
        if import.names.is_empty() {
            import.names.push(imported("*", None));
        }
    } else if let (Some(left), Some(tuple)) = (field(first, "left"), field(first, "right").filter(|r| r.kind() == "tuple")) {
        imports.extend(children(tuple).into_iter().map(|inner| {
            let mut import = import_of(&format!("{}.{}", cx.text(left), cx.text(inner)), node);
            match verb {
                "alias" => import.names.extend(alias(cx.text(inner))),
                "use" => import.names.push(imported("__using__", None)),
                _ => {}
            }
            import
        }));
        return true;
    } else if let Some(name) = options.and_then(|options| option(cx, options, "as:")) {
        import.names.push(imported("", Some(cx.text(name))));
    } else if verb == "alias" {
        import.names.extend(alias(cx.text(first)));
    } else if verb == "use" {
        import.names.push(imported("__using__", None));
    }
    imports.push(import);
    true
}

/// Returns the name that an alias of a module makes visible, its last segment.
fn alias(module: &str) -> Option<ImportedName> {
    module.rsplit('.').next().map(|last| imported("", Some(last)))
}

fn option<'t>(cx: &Cx<'_, 't>, keywords: Node<'t>, key: &str) -> Option<Node<'t>> {
    let is_key = |pair: &Node<'t>| field(*pair, "key").is_some_and(|found| cx.text(found).trim() == key);
    children(keywords).into_iter().find(is_key).and_then(|pair| field(pair, "value"))
}

/// Returns the names in the option `only: [map: 2, sum: 1]`.
fn only<'t>(cx: &Cx<'_, 't>, options: Node<'t>) -> Vec<ImportedName> {
    let list = option(cx, options, "only:").and_then(|list| child_of_kind(list, "keywords"));
    let keys = list.map(children).unwrap_or_default().into_iter().filter_map(|pair| field(pair, "key"));
    keys.map(|key| imported(cx.text(key).trim().trim_end_matches(':'), None)).collect()
}
