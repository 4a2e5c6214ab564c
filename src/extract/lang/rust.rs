//! Rules for Rust.

use tree_sitter::Node;

use super::text::{import_of, imported};
use super::standard::Standard;
use super::{Extensions, Language, Profile, Structure, Visibility};
use crate::extract::rules::{Bound, Grammar, Leaf, Mention, Named, Role, Rule, TestProbe, Zone, attribute, bind, call, define, macro_call, on, path, range_of, same, step};
use crate::extract::types::{BindingKind, DefinitionKind, Import, Literal, ReferenceKind, Shape, Step, Steps, Value};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "rust",
    lang: Lang(1),
    aliases: &["rs"],
    extensions: &["rs"],
    file_names: &[],
    interpreters: &["rust-script"],
    profile: Profile { visibility: Visibility::Words(&["pub"]), has_single_quotes: false, keywords: KEYWORDS, standard: Standard::RUST, extensions: Extensions::Traits, ..Profile::C_LIKE },
    structure: Structure::Grammar(
        &Grammar::new("rust", &[RULES]).tests(is_test).inner_docs(&["//!", "/*!"])
            .embeds(items_in_macro).zones(zone_in_macro),
    ),
};

const KEYWORDS: &str = "\
    Self abstract as async await become box break const continue crate do dyn else enum extern false final fn \
    for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super \
    trait true try type typeof unsafe unsized use virtual where while yield";

/// Limit on the nodes around a bound among which its type parameter is sought.
const MAX_OUTER: usize = 8;

const RULES: &[Rule] = &[
    on(&["function_item", "function_signature_item"], define(DefinitionKind::Function).role()),
    on(&["struct_item"], define(DefinitionKind::Struct).role()),
    on(&["enum_item"], define(DefinitionKind::Enum).role()),
    on(&["enum_variant"], define(DefinitionKind::Variant).body_fields(&[]).role()),
    on(&["union_item"], define(DefinitionKind::Union).role()),
    on(&["trait_item"], define(DefinitionKind::Trait).role()),
    on(&["impl_item"], define(DefinitionKind::Impl).name_by(impl_name).role()),
    on(&["type_item", "associated_type"], define(DefinitionKind::TypeAlias).not_local().role()),
    on(&["const_item"], define(DefinitionKind::Constant).not_local().role()),
    on(&["static_item"], define(DefinitionKind::Variable).not_local().role()),
    on(&["field_declaration"], define(DefinitionKind::Field).role()),
    on(&["macro_definition"], define(DefinitionKind::Macro).body_child(&["macro_rule"]).role()),
    on(&["mod_item"], define(DefinitionKind::Module).role()),
    on(&["mod_item"], Role::Import(declared_module)),
    on(&["use_declaration"], Role::Zone(Zone::As(ReferenceKind::Import))),
    on(&["use_declaration"], Role::Import(used)),
    on(&["extern_crate_declaration"], Role::Import(extern_crate)),
    on(&["line_comment", "block_comment"], Role::Comment),
    on(&["attribute_item"], attribute()),
    on(&["attribute"], Role::Zone(Zone::As(ReferenceKind::Attribute))),
    on(&["token_tree", "arguments", "type_arguments", "parameters"], Role::Zone(Zone::Plain)),
    on(&["token_tree", "token_repetition"], Role::Mention(calls_in_macro)),
    on(&["token_tree"], Role::Embedded),
    on(&["impl_item"], Role::FieldZone("trait", Zone::As(ReferenceKind::Inherit))),
    on(&["trait_item"], Role::FieldZone("bounds", Zone::As(ReferenceKind::Inherit))),
    on(&["call_expression"], call("function")),
    on(&["macro_invocation"], macro_call("macro")),
    on(&["generic_function"], Role::Through("function")),
    on(&["generic_type", "generic_type_with_turbofish", "bracketed_type"], Role::Through("type")),
    on(&["scoped_identifier", "scoped_type_identifier"], path("path", "name")),
    on(&["field_expression"], path("value", "field")),
    on(
        &["function_item", "function_signature_item", "function_type", "closure_expression", "block", "match_arm",
          "for_expression", "if_expression", "while_expression", "impl_item", "struct_item", "enum_item", "trait_item",
          "type_item"],
        Role::Scope,
    ),
    on(&["type_parameter"], bind(BindingKind::TypeParameter, "name", "bounds", "")),
    on(&["where_predicate"], Role::BindBy(bounded)),
    on(&["type_binding"], Role::FieldZone("name", Zone::Label)),
    on(
        &["function_item", "function_signature_item"],
        bind(BindingKind::Definition, "name", "return_type", ""),
    ),
    on(&["field_declaration", "const_item", "static_item", "type_item"], bind(BindingKind::Definition, "name", "type", "")),
    on(&["parameter"], bind(BindingKind::Parameter, "pattern", "type", "")),
    on(&["let_declaration", "let_condition", "for_expression", "match_arm"], Role::BindBy(matched)),
    on(&["closure_parameters"], Role::BindBy(closure_parameters)),
    on(&["await_expression", "try_expression"], step("", Step::Unwrap)),
    on(&["index_expression"], step("", Step::Element)),
    on(&["reference_expression"], same("value")),
    on(&["parenthesized_expression", "unary_expression", "match_pattern"], same("")),
    on(&["struct_expression"], step("name", Step::Call)),
    on(&["string_literal", "raw_string_literal"], Role::Literal(Literal::String)),
    on(&["integer_literal"], Role::Literal(Literal::Integer)),
    on(&["float_literal"], Role::Literal(Literal::Float)),
    on(&["boolean_literal"], Role::Literal(Literal::Boolean)),
    on(&["char_literal"], Role::Literal(Literal::Character)),
    on(&["array_expression", "tuple_expression"], Role::Literal(Literal::Other)),
    on(&["array_type"], Role::Shape(Shape::Sequence)),
    on(&["function_type", "tuple_type"], Role::Shape(Shape::Opaque)),
    on(&["lifetime", "label"], Role::Opaque),
    on(&["self", "crate", "super"], Role::Leaf(Leaf::This)),
    on(&["identifier"], Role::Leaf(Leaf::Name)),
    on(&["type_identifier"], Role::Leaf(Leaf::Type)),
    on(&["field_initializer"], Role::FieldZone("field", Zone::As(ReferenceKind::Member))),
    on(&["field_identifier"], Role::Leaf(Leaf::Segment)),
];

fn is_test(probe: &TestProbe<'_>) -> bool {
    ["test", "rstest", "test_case", "bench", "quickcheck", "proptest"].iter().any(|name| probe.has_attribute(name))
}

/// Adds the type parameter that a `where` bounds. Other types can have bounds, too.
fn bounded<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(left) = field(node, "left").filter(|left| left.kind() == "type_identifier") else { return };
    let parameters = (1..MAX_OUTER).filter_map(|level| field(cx.ancestor(level)?, "type_parameters"));
    let mut names = parameters.flat_map(children).filter_map(|parameter| field(parameter, "name"));
    if names.any(|name| cx.text(name) == cx.text(left)) {
        found.push(Bound::new(BindingKind::TypeParameter, left).of(field(node, "bounds")));
    }
}

/// Adds the names in the pattern of `let`, `if let`, `for` and `match`.
fn matched<'t>(cx: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let Some(mut pattern) = field(node, "pattern") else { return };
    let value = match node.kind() {
        "match_arm" => cx.ancestor(1).and_then(|expression| field(expression, "value")),
        _ => field(node, "value"),
    };
    if pattern.kind() == "match_pattern" {
        pattern = pattern.named_child(0).unwrap_or(pattern);
    }
    let is_alone = |pattern: Node<'t>| matches!(pattern.kind(), "ref_pattern" | "reference_pattern" | "mut_pattern");
    let inside = |pattern: Node<'t>| children(pattern).pop().unwrap_or(pattern);
    let mut bound = Bound::new(BindingKind::Local, pattern).of(field(node, "type")).to(value).with_constants();
    bound = match node.kind() {
        "for_expression" => bound.by(Step::Element).after(field(node, "value").unwrap_or(node)),
        "match_arm" => bound,
        _ => bound.after(node),
    };
    // The names of `if let` are not visible behind `else`.
    let around = [0, 1].into_iter().filter_map(|n| cx.ancestor(n)).find(|around| around.kind() == "if_expression");
    if let Some(other) = around.filter(|_| node.kind() == "let_condition").and_then(|around| field(around, "alternative")) {
        bound.scope = Some(ByteRange::new(bound.from, range_of(other).start));
    }
    if pattern.kind() == "tuple_struct_pattern" && pattern.named_child_count() == 2 {
        let is_wrapper = field(pattern, "type").is_some_and(|of| matches!(cx.text(of), "Some" | "Ok"));
        bound.name = inside(pattern);
        bound = if is_wrapper { bound.by(Step::Unwrap) } else { bound.to(None) };
    }
    if is_alone(bound.name) {
        bound.name = inside(bound.name);
    }
    found.push(bound);
}

/// Adds the parameters of a closure that have no types.
fn closure_parameters<'t>(_: &Cx<'_, 't>, node: Node<'t>, found: &mut Vec<Bound<'t>>) {
    let names = children(node).into_iter().filter(|child| child.kind() != "parameter");
    found.extend(names.map(|name| Bound::new(BindingKind::Parameter, name)));
}

/// Finds the name of an `impl`, which is the type that it applies to.
fn impl_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(target) = field(node, "type") else { return };
    let target = if target.kind() == "reference_type" { field(target, "type").unwrap_or(target) } else { target };
    let range = cx.resolve(target).map_or(range_of(target), |(name, _)| name);
    names.push(Named { range, kind: None, qualifier: None });
}

/// Adds the import of `mod wire;`, which imports the file of `self::wire`. It is also a definition.
fn declared_module<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let (Some(name), None) = (field(node, "name"), field(node, "body")) else { return false };
    let mut import = import_of(&format!("self::{}", cx.text(name)), node);
    import.is_reexport = is_public(node);
    imports.push(import);
    false
}

fn is_public(node: Node<'_>) -> bool {
    child_of_kind(node, "visibility_modifier").is_some()
}

fn extern_crate<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(name) = field(node, "name") else { return false };
    let mut import = import_of(cx.text(name), node);
    if let Some(alias) = field(node, "alias") {
        import.names.push(imported("", Some(cx.text(alias))));
    }
    imports.push(import);
    true
}

/// Adds one import per module in a `use`: `a::{B, c::D}` imports `B` from `a` and `D` from `a::c`.
fn used<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    /// Limit on nested lists. Real code has far fewer.
    const MAX_DEPTH: usize = 32;
    let Some(argument) = field(node, "argument") else { return true };
    let first = imports.len();
    let mut todo = vec![(argument, String::new(), 0)];
    while let Some((tree, prefix, depth)) = todo.pop() {
        match tree.kind() {
            "scoped_use_list" | "use_list" if depth < MAX_DEPTH => {
                let prefix = joined(&prefix, field(tree, "path").map_or("", |path| cx.text(path)));
                let list = field(tree, "list").unwrap_or(tree);
                todo.extend(children(list).into_iter().rev().map(|child| (child, prefix.clone(), depth + 1)));
            }
            _ => add_use(cx, node, tree, &prefix, first, imports),
        }
    }
    let is_reexport = is_public(node);
    imports[first..].iter_mut().for_each(|import| import.is_reexport = is_reexport);
    true
}

/// Adds one name of a `use` to the import of its module. Creates that import if necessary.
fn add_use<'t>(cx: &Cx<'_, 't>, statement: Node<'t>, tree: Node<'t>, prefix: &str, first: usize, imports: &mut Vec<Import>) {
    let (path, alias) = match tree.kind() {
        "use_as_clause" => (field(tree, "path").map_or("", |path| cx.text(path)), field(tree, "alias")),
        "line_comment" | "block_comment" => return,
        _ => (cx.text(tree), None),
    };
    let whole = joined(prefix, path);
    let (module, name) = whole.rsplit_once("::").unwrap_or((&whole, ""));
    let at = imports[first..].iter().position(|import| import.module == module).map(|at| first + at);
    let at = at.unwrap_or_else(|| {
        imports.push(import_of(module, statement));
        imports.len() - 1
    });
    if !name.is_empty() || alias.is_some() {
        imports[at].names.push(imported(name, alias.map(|alias| cx.text(alias))));
    }
}

fn joined(prefix: &str, path: &str) -> String {
    if prefix.is_empty() || path.is_empty() {
        return format!("{prefix}{path}");
    }
    format!("{prefix}::{path}")
}

/// Finds the items in a macro call that expands to them: `cfg_rt! { pub fn f() {} }` or
/// `cfg_if! { if #[cfg(unix)] { mod unix; } else { mod other; } }`. The grammar parses neither.
fn items_in_macro<'t>(cx: &Cx<'_, 't>, node: Node<'t>) -> Option<(ByteRange, &'static str)> {
    let parent = cx.parent()?;
    let level = match parent.kind() {
        "macro_invocation" => 0,
        "token_tree" if parent.child(1).is_some_and(|first| first.kind() == "if") => 1,
        _ => return None,
    };
    let is_call = cx.ancestor(level).is_some_and(|call| call.kind() == "macro_invocation");
    let statement = cx.ancestor(level + 1).filter(|outer| outer.kind() == "expression_statement");
    let outer = cx.ancestor(level + 1 + usize::from(statement.is_some()))?;
    let is_among_items = is_call && matches!(outer.kind(), "source_file" | "declaration_list");
    (is_among_items && begins_like_item(cx, node)).then(|| {
        let range = range_of(node);
        (ByteRange::new(range.start + 1, range.end.max(range.start + 2) - 1), "rust")
    })
}

/// Returns true if the first token inside the brackets, after comments and attributes, can begin an item.
fn begins_like_item<'t>(cx: &Cx<'_, 't>, tree: Node<'t>) -> bool {
    const STARTS: [&str; 16] = [
        "pub", "fn", "mod", "use", "struct", "enum", "union", "impl", "trait", "const", "static", "type", "unsafe", "extern",
        "async", "macro_rules",
    ];
    let mut cursor = tree.walk();
    let mut tokens = tree.children(&mut cursor).skip(1).filter(|token| !token.kind().ends_with("_comment"));
    while let Some(token) = tokens.next() {
        match token.kind() {
            "#" if tokens.next().is_some_and(|next| next.kind() == "!") => drop(tokens.next()),
            "#" => {}
            "identifier" if tokens.next().is_some_and(|next| next.kind() == "!") => return true,
            _ => return STARTS.contains(&cx.text(token).split(['(', ' ']).next().unwrap_or_default()),
        }
    }
    false
}

/// Adds the calls, members and paths in the arguments of a macro. The grammar does not parse the arguments as
/// expressions, so a name followed by parentheses counts as a call.
fn calls_in_macro<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let tokens = children(node);
    let is_derive = cx.parent().is_some_and(|parent| {
        parent.kind() == "attribute" && parent.named_child(0).is_some_and(|name| cx.text(name) == "derive")
    });
    let crates = tokens.iter().filter_map(|token| own_crate(cx, *token));
    mentions.extend(crates.map(|name| Mention::new(ReferenceKind::Value, name, ByteRange::default())));
    let names = tokens.iter().enumerate().filter(|(_, name)| name.kind() == "identifier");
    for (at, name) in names.filter(|(_, name)| !cx.is_label(**name, node)) {
        let is_call = tokens.get(at + 1).is_some_and(|next| is_arguments(cx, *name, *next));
        let is_macro = tokens.get(at + 1).is_some_and(|next| is_macro_call(cx, *name, *next));
        let (qualifier, receiver) = receiver_in_macro(cx, &tokens[..at], *name);
        let kind = match receiver {
            _ if is_call => ReferenceKind::Call,
            _ if is_macro => ReferenceKind::Macro,
            // What is derived is a macro, whatever has its name.
            _ if is_derive => ReferenceKind::Macro,
            Value::None => continue,
            _ if cx.text(*name).starts_with(char::is_uppercase) => ReferenceKind::Name,
            _ => ReferenceKind::Member,
        };
        mentions.push(Mention { receiver, ..Mention::new(kind, range_of(*name), qualifier) });
    }
}

/// Returns the zone of a name in the tokens of a macro or an attribute. The name before `=` or `:` in parentheses or
/// square brackets is that of an argument, as in `info!(count = count())` and `#[serde(default = "…")]`, also if it has
/// several parts. That before `:` in braces is a field.
fn zone_in_macro(name: Node<'_>, tree: Node<'_>, _: &str, src: &[u8]) -> Option<Zone> {
    if tree.kind() != "token_tree" || name.kind() != "identifier" {
        return None;
    }
    let rest = src.get(name.end_byte()..)?;
    let is_in_braces = src.get(tree.start_byte()) == Some(&b'{');
    match rest.trim_ascii_start() {
        [b':', b':', ..] => None,
        [b':', ..] if is_in_braces => {
            let is_lower = src.get(name.start_byte()).is_some_and(|byte| !byte.is_ascii_uppercase());
            (is_lower && !is_declared(&src[..name.start_byte()])).then_some(Zone::As(ReferenceKind::Member))
        }
        [b':', ..] => Some(Zone::Label),
        rest if !is_in_braces && is_before_value(rest) => Some(Zone::Label),
        _ => None,
    }
}

/// Returns true if the text before a name with a type declares a variable, a constant or a function's parameter.
fn is_declared(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    ["let", "mut", "ref", "static", "const"].iter().any(|word| before.ends_with(word.as_bytes()))
}

/// Returns true if `text` is `= …`, or the other parts of a name and `= …`.
fn is_before_value(mut text: &[u8]) -> bool {
    /// Real names have fewer parts.
    const MAX_PARTS: usize = 8;
    for _ in 0..MAX_PARTS {
        match text {
            [b'=', b'=' | b'>', ..] => return false,
            [b'=', ..] => return true,
            [b'.', rest @ ..] => {
                let n_bytes = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
                text = rest[n_bytes..].trim_ascii_start();
            }
            _ => return false,
        }
    }
    false
}

/// Returns the name in `$crate`, the crate of the macro.
fn own_crate(cx: &Cx<'_, '_>, token: Node<'_>) -> Option<ByteRange> {
    let range = range_of(token);
    (token.kind() == "metavariable" && cx.text(token) == "$crate").then(|| ByteRange::new(range.start + 1, range.end))
}

/// Returns true if `next` is what a macro with this name gets: `name!(…)`.
fn is_macro_call(cx: &Cx<'_, '_>, name: Node<'_>, next: Node<'_>) -> bool {
    let between = cx.slice(ByteRange::new(name.end_byte() as u32, next.start_byte() as u32));
    next.kind() == "token_tree" && between.trim() == "!"
}

/// Returns true if `next` is a list of arguments directly after `name`.
fn is_arguments(cx: &Cx<'_, '_>, name: Node<'_>, next: Node<'_>) -> bool {
    next.kind() == "token_tree" && name.end_byte() == next.start_byte() && cx.text(next).starts_with('(')
}

/// Returns what `name` is a member of, given the tokens before it.
fn receiver_in_macro(cx: &Cx<'_, '_>, before: &[Node<'_>], name: Node<'_>) -> (ByteRange, Value) {
    let of = |node: Node<'_>, steps| Value::Of { at: node.start_byte() as u32, steps };
    let between = |last: Node<'_>| cx.slice(ByteRange::new(last.end_byte() as u32, name.start_byte() as u32));
    let own = before.last().filter(|last| between(**last) == "::").and_then(|last| own_crate(cx, *last));
    match before {
        _ if let Some(own) = own => (own, Value::Of { at: own.start, steps: Steps::default() }),
        [.., last] if is_joined(cx, *last, name) && last.kind() != "token_tree" => {
            (range_of(*last), of(*last, Steps::default()))
        }
        [.., callee, last]
            if is_joined(cx, *last, name) && callee.kind() == "identifier" && is_arguments(cx, *callee, *last) =>
        {
            (ByteRange::default(), of(*callee, Steps::default().then(Step::Call).unwrap_or_default()))
        }
        _ if is_after_dot(cx, name) => (ByteRange::default(), Value::Other),
        _ => Default::default(),
    }
}

fn is_after_dot(cx: &Cx<'_, '_>, name: Node<'_>) -> bool {
    let start = name.start_byte() as u32;
    cx.slice(ByteRange::new(start.saturating_sub(1), start)) == "."
}

/// Returns true if only `.` or `::` is between the two nodes.
fn is_joined(cx: &Cx<'_, '_>, before: Node<'_>, after: Node<'_>) -> bool {
    let between = ByteRange::new(before.end_byte() as u32, after.start_byte() as u32);
    matches!(before.kind(), "identifier" | "self" | "crate" | "super" | "token_tree") && matches!(cx.slice(between), "." | "::")
}
