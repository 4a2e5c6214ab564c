//! Rules for JSON: the keys of the two outermost levels.

use tree_sitter::Node;

use super::text::unquoted;
use super::{Language, Profile, Structure};
use crate::extract::rules::{Grammar, Named, Role, Rule, define, on};
use crate::extract::types::DefinitionKind;
use crate::extract::walk::{Cx, field};
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "json",
    lang: Lang(33),
    aliases: &["jsonc", "json5"],
    extensions: &["json", "jsonc", "json5", "webmanifest", "geojson", "ipynb", "avsc", "har"],
    file_names: &[".babelrc", ".eslintrc", ".prettierrc", ".swcrc", ".jshintrc"],
    interpreters: &[],
    profile: Profile::C_LIKE,
    structure: Structure::Data(&Grammar::new("json", &[RULES])),
};

const RULES: &[Rule] = &[
    on(&["pair"], define(DefinitionKind::Key).name_by(outer_key).body_fields(&[]).role()),
    on(&["comment"], Role::Comment),
];

/// Finds a key on the two outermost levels. Deeper keys and keys in lists are data, not names.
fn outer_key<'t>(cx: &Cx<'_, 't>, node: Node<'t>, names: &mut Vec<Named>) {
    let kind_of = |level| cx.ancestor(level).map_or("", |node| node.kind());
    let is_outer = matches!((kind_of(1), kind_of(3)), ("document", _) | ("pair", "document"));
    let key = field(node, "key").filter(|_| is_outer);
    names.extend(key.map(|key| Named { range: unquoted(cx, key), kind: None, qualifier: None }));
}
