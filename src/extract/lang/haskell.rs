//! Rules for Haskell.

use tree_sitter::Node;

use super::text::{import_of, imported};
use super::{Indentation, Language, Profile, Structure};
use crate::extract::rules::{
    Grammar, Leaf, Mention, Named, Role, Rule, TestProbe, Zone, call, define, flat_path, on, path, range_of,
};
use crate::extract::types::{DefinitionKind, Import, ReferenceKind};
use crate::extract::walk::{Cx, child_of_kind, children, field};
use crate::model::{ByteRange, Lang};

pub(super) const LANGUAGE: Language = Language {
    name: "haskell",
    lang: Lang(19),
    aliases: &["hs"],
    extensions: &["hs", "hsc", "hs-boot"],
    file_names: &[],
    interpreters: &["runhaskell", "runghc", "stack"],
    profile: Profile {
        block_comment: Some(("{-", "-}")),
        indentation: Indentation::Everywhere,
        has_single_quotes: false,
        ..Profile::DASHES
    },
    structure: Structure::Grammar(
        &Grammar::new("haskell", &[RULES]).tests(is_test).inner_docs(&["-- ^", "-- *", "{-# "]),
    ),
};

const RULES: &[Rule] = &[
    on(&["header"], define(DefinitionKind::Module).name_field("module").body_fields(&["exports"]).role()),
    on(&["signature"], define(DefinitionKind::Function).name_by(bare_name).clause().role()),
    on(&["function"], define(DefinitionKind::Function).name_by(bare_name).body_fields(&["match"]).clause().role()),
    on(&["bind"], define(DefinitionKind::Function).name_by(bare_name).body_fields(&["match"]).clause().not_local().role()),
    on(&["data_type"], define(DefinitionKind::Struct).name_by(data_name).body_fields(&["constructors"]).role()),
    on(&["newtype"], define(DefinitionKind::Struct).body_fields(&["constructor"]).role()),
    on(&["type_synonym", "type_family", "data_family"], define(DefinitionKind::TypeAlias).role()),
    on(&["class"], define(DefinitionKind::Interface).body_fields(&["declarations"]).role()),
    on(&["instance"], define(DefinitionKind::Impl).name_by(instance_name).body_fields(&["declarations"]).role()),
    on(&["data_constructor"], define(DefinitionKind::Variant).name_by(constructor_name).role()),
    on(&["gadt_constructor", "newtype_constructor"], define(DefinitionKind::Variant).role()),
    on(&["field"], define(DefinitionKind::Field).name_by(field_name).role()),
    on(&["import"], Role::Import(import)),
    on(&["comment", "haddock"], Role::Comment),
    on(&["deriving"], Role::Zone(Zone::As(ReferenceKind::Inherit))),
    on(&["instance"], Role::FieldZone("name", Zone::As(ReferenceKind::Inherit))),
    on(&["pragma"], Role::Opaque),
    on(&["apply"], call("function")),
    on(&["infix"], Role::Mention(applied)),
    on(&["qualified"], path("module", "id")),
    on(&["module"], flat_path()),
    on(&["name"], Role::Leaf(Leaf::Type)),
    on(&["variable", "constructor"], Role::Leaf(Leaf::Name)),
    on(&["module_id"], Role::Leaf(Leaf::Segment)),
];

/// Recognises tests by the name prefixes that QuickCheck and Tasty use.
fn is_test(probe: &TestProbe<'_>) -> bool {
    ["prop_", "test_", "unit_", "spec_", "hprop_"].iter().any(|prefix| probe.name.starts_with(prefix))
}

/// Finds the name of a signature or equation. Removes the parentheses around an operator.
fn bare_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let name = match field(node, "name") {
        Some(name) if name.kind() == "prefix_id" => name.named_child(0),
        Some(name) => Some(name),
        None => child_of_kind(node, "infix").and_then(|infix| field(infix, "operator")),
    };
    names.extend(name.map(Named::at));
}

fn data_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let constructors = field(node, "constructors").map(children).unwrap_or_default();
    let n_constructors = constructors.iter().filter(|child| child.kind().ends_with("constructor")).count();
    let kind = if n_constructors > 1 { DefinitionKind::Enum } else { DefinitionKind::Struct };
    names.extend(field(node, "name").map(|name| Named::at(name).of(kind)));
}

/// Finds the name of an instance, which is the type it implements the class for.
fn instance_name<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let Some(of) = field(node, "patterns").and_then(|patterns| patterns.named_child(0)) else {
        return names.extend(field(node, "name").map(Named::at));
    };
    let mut inner = of;
    // Find the type constructor inside parentheses and arguments, for example in `(Map k v)`.
    for _ in 0..8 {
        match field(inner, "type").or_else(|| field(inner, "constructor")) {
            Some(next) => inner = next,
            None => break,
        }
    }
    let range = cx.resolve(inner).map_or(range_of(of), |(range, _)| range);
    names.push(Named { range, kind: None, qualifier: None });
}

fn constructor_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let constructor = field(node, "constructor").unwrap_or(node);
    let name = field(constructor, "name").or_else(|| field(constructor, "operator"));
    names.extend(name.map(Named::at));
}

fn field_name<'t>(_: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let mut cursor = node.walk();
    let names_of = node.children_by_field_name("name", &mut cursor).filter(|name| name.kind() == "field_name");
    names.extend(names_of.filter_map(|name| name.named_child(0)).map(Named::at));
}

/// Adds the operands that an operator calls as functions: `f` in `f $ x` and `f <$> x`, both operands in `f . g`.
fn applied<'t>(cx: &Cx<'_, 't>, node: Node<'t>, mentions: &mut Vec<Mention>) {
    let operator = field(node, "operator").map(|operator| cx.text(operator));
    let sides: &[&str] = match operator {
        Some("$" | "$!" | "<$>" | "=<<" | "<$!>") => &["left_operand"],
        Some(">>=" | "&" | "<&>") => &["right_operand"],
        Some("." | ">=>" | "<=<" | "&&&" | "***") => &["left_operand", "right_operand"],
        _ => return,
    };
    for side in sides {
        let operand = field(node, side).filter(|operand| matches!(operand.kind(), "variable" | "qualified"));
        if let Some((range, qualifier)) = operand.and_then(|operand| cx.resolve(operand)) {
            mentions.push(Mention::new(ReferenceKind::Call, range, qualifier));
        }
    }
}

fn import<'t>(cx: &Cx<'_, 't>, node: Node<'t>, imports: &mut Vec<Import>) -> bool {
    let Some(module) = field(node, "module") else { return true };
    let mut import = import_of(cx.text(module), node);
    let before_names = field(node, "names").map_or(node.end_byte(), |names| names.start_byte());
    let head = cx.slice(ByteRange::new(node.start_byte() as u32, before_names as u32));
    let is_hiding = head.contains("hiding");
    if let Some(alias) = field(node, "alias") {
        import.names.push(imported("", Some(cx.text(alias))));
    }
    match field(node, "names").filter(|_| !is_hiding) {
        Some(names) => import.names.extend(
            children(names).into_iter().filter_map(|name| name.named_child(0)).map(|name| imported(cx.text(name), None)),
        ),
        None if !head.contains("qualified") => import.names.push(imported("*", None)),
        None => {}
    }
    imports.push(import);
    true
}
