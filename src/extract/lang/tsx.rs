//! Rules for TypeScript with JSX. It needs its own grammar, because `<T>x` is an element there and not a cast.

use super::{Language, Structure};
use super::{javascript, typescript};
use crate::extract::rules::{Grammar};
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "tsx",
    lang: Lang(5),
    aliases: &[],
    extensions: &["tsx"],
    file_names: &[],
    interpreters: &[],
    profile: javascript::PROFILE,
    structure: Structure::Grammar(&Grammar::new(
        "tsx",
        &[javascript::RULES, javascript::JSX, typescript::RULES],
    )),
};
