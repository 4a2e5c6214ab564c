//! The languages: one file each, one line in the table.
//!
//! `docs/adding-a-language.md` has the steps.

use std::fmt;

use super::layout::Layout;
use super::rules::Grammar;
use super::types::Extraction;
use crate::model::Lang;

/// One language: how it is recognised and how it is read.
pub struct Language {
    /// Its name, lower case: what filters and answers say.
    pub name: &'static str,
    /// Its stable number. Never given to another language.
    pub lang: Lang,
    /// Other names by which people ask for it.
    pub aliases: &'static [&'static str],
    /// File name extensions without the dot, lower case.
    pub extensions: &'static [&'static str],
    /// Whole file names.
    pub file_names: &'static [&'static str],
    /// Programs in a `#!` line, without version numbers.
    pub interpreters: &'static [&'static str],
    /// How its text is read.
    pub(crate) structure: Structure,
}

/// Finds definitions and headings, and notes how deep each line lies.
pub(crate) type ScanFn = fn(&[u8], &mut Layout) -> Extraction;

/// How a language's text is read.
#[derive(Clone, Copy)]
pub(crate) enum Structure {
    /// Code, with a grammar and rules.
    Grammar(&'static Grammar),
    /// Data or markup, with a grammar and rules; chunks are called data.
    Data(&'static Grammar),
    /// Data, with a scanner of its own.
    Keys(ScanFn),
    /// Prose, with a scanner of its own.
    Prose(ScanFn),
    /// No structure is known: windows of lines.
    Lines,
}

impl Language {
    /// Whether definitions and references are known of its blobs.
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

/// Declares a module per language, each with a `LANGUAGE`, and the table of them.
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

/// Every language, those with a structure first.
pub fn languages() -> impl Iterator<Item = &'static Language> {
    WITH_STRUCTURE.iter().copied().chain(plain::LANGUAGES)
}

/// The language with this number; nothing for plain text and numbers of later versions.
pub fn language(lang: Lang) -> Option<&'static Language> {
    languages().find(|language| language.lang == lang)
}

/// The number of the language with this name or alias, upper and lower case alike.
pub fn by_name(name: &str) -> Option<Lang> {
    let is_called = |known: &&str| known.eq_ignore_ascii_case(name);
    let named = languages().find(|language| is_called(&language.name) || language.aliases.iter().any(&is_called));
    named.map(|language| language.lang)
}

#[cfg(test)]
mod tests;
