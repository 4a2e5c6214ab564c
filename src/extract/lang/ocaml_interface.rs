//! Rules for OCaml interfaces, which have their own grammar but the rules of implementations.

use super::{Language, Structure, ocaml};
use crate::extract::rules::{Grammar};
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "ocaml-interface",
    lang: Lang(24),
    aliases: &["mli"],
    extensions: &["mli", "eliomi"],
    file_names: &[],
    interpreters: &[],
    profile: ocaml::PROFILE,
    structure: Structure::Grammar(&Grammar::new("ocaml_interface", &[ocaml::RULES])),
};
