//! The languages: one file per language, listed in one table.
//!
//! `docs/adding-a-language.md` lists the steps for adding one.

use std::fmt;

use super::layout::Layout;
use super::rules::Grammar;
use super::types::Extraction;
use crate::model::Lang;

/// A language: how to recognise it and how to read it.
pub struct Language {
    /// The name in lower case, as used in filters and answers.
    pub name: &'static str,
    /// The stable number of the language. It is never reused for another language.
    pub lang: Lang,
    /// Other names that users may use for the language.
    pub aliases: &'static [&'static str],
    /// File name extensions without the dot, lower case.
    pub extensions: &'static [&'static str],
    /// Whole file names.
    pub file_names: &'static [&'static str],
    /// Programs in a `#!` line, without version numbers.
    pub interpreters: &'static [&'static str],
    /// The way in which the text is read.
    pub(crate) structure: Structure,
}

/// Finds definitions and headings, and records the depth of each line.
pub(crate) type ScanFn = fn(&[u8], &mut Layout) -> Extraction;

/// The way in which the text of a language is read.
#[derive(Clone, Copy)]
pub(crate) enum Structure {
    /// Code, by a grammar and rules.
    Grammar(&'static Grammar),
    /// Data or markup, by a grammar and rules. Its chunks are of kind data.
    Data(&'static Grammar),
    /// Data, by a dedicated scanner.
    Keys(ScanFn),
    /// Prose, by a dedicated scanner.
    Prose(ScanFn),
    /// No known structure: windows of lines.
    Lines,
}

impl Language {
    /// Returns whether definitions and references are extracted for the language.
    pub fn has_structure(&self) -> bool {
        !matches!(self.structure, Structure::Lines)
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Language")
            .field("name", &self.name)
            .field("lang", &self.lang)
            .finish_non_exhaustive()
    }
}

/// Declares a module per language, each with a `LANGUAGE`, and the table of all of them.
macro_rules! languages {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*
        const WITH_STRUCTURE: &[&Language] = &[$(&$module::LANGUAGE),*];
    };
}

languages! {
    rust,
    python,
    javascript,
    typescript,
    tsx,
    go,
    java,
    c,
    cpp,
    kotlin,
    csharp,
    ruby,
    php,
    swift,
    scala,
    bash,
    lua,
    elixir,
    haskell,
    zig,
    dart,
    r,
    ocaml,
    ocaml_interface,
    markdown,
    html,
    css,
    json,
    yaml,
    toml,
    sql,
}

mod plain;
mod text;

/// Returns every language, those with a structure first.
pub fn languages() -> impl Iterator<Item = &'static Language> {
    WITH_STRUCTURE.iter().copied().chain(plain::LANGUAGES)
}

/// Returns the language with this number, or `None` for plain text and for numbers of later versions.
pub fn language(lang: Lang) -> Option<&'static Language> {
    languages().find(|language| language.lang == lang)
}

/// Returns the number of the language with this name or alias, ignoring case.
pub fn by_name(name: &str) -> Option<Lang> {
    let is_called = |known: &&str| known.eq_ignore_ascii_case(name);
    let named = languages().find(|language| is_called(&language.name) || language.aliases.iter().any(&is_called));
    named.map(|language| language.lang)
}

#[cfg(test)]
mod tests;
