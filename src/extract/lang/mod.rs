//! The supported languages: one file per language, listed in one table.
//!
//! `docs/adding-a-language.md` describes how to add a language.

use std::fmt;

pub(super) use self::profile::Visibility;
pub use self::profile::{Extensions, Globals, Indentation, Profile};
pub use self::standard::Standard;
use super::layout::Layout;
use super::rules::Grammar;
use super::types::Extraction;
use crate::model::Lang;

/// A language: how it is recognised and read.
pub struct Language {
    /// The name in lower case, as used in filters and output.
    pub name: &'static str,
    /// The number of the language, which is never reused for another language.
    pub lang: Lang,
    /// Alternative names that filters accept.
    pub aliases: &'static [&'static str],
    /// File name extensions in lower case, without the dot.
    pub extensions: &'static [&'static str],
    /// Whole file names, for example `Makefile`.
    pub file_names: &'static [&'static str],
    /// Program names in a `#!` line, without version numbers.
    pub interpreters: &'static [&'static str],
    /// What other modules ask about the language.
    pub profile: Profile,
    /// The method of reading the text, if the grammar is there.
    structure: Structure,
}

/// Finds definitions and headings in the text, and records the depth of each line.
pub(crate) type ScanFn = fn(&[u8], &mut Layout) -> Extraction;

/// The method of reading the text of a language.
#[derive(Clone, Copy)]
pub(crate) enum Structure {
    /// Code, which a grammar parses.
    Grammar(&'static Grammar),
    /// Data or markup, which a grammar parses. Its chunks have the kind
    /// [`ChunkKind::Data`](crate::extract::ChunkKind::Data).
    Data(&'static Grammar),
    /// Data, which a dedicated scanner reads.
    Keys(ScanFn),
    /// Prose, which a dedicated scanner reads.
    Prose(ScanFn),
    /// Text without a known structure, which is split into windows of lines.
    Lines,
}

impl Language {
    /// Returns true if definitions and references are extracted for this language.
    pub fn has_structure(&self) -> bool {
        !matches!(self.structure(), Structure::Lines)
    }

    /// Returns the method of reading the text. Without its grammar, a language has no structure.
    pub(crate) fn structure(&self) -> Structure {
        if self.lacks_grammar() {
            Structure::Lines
        } else {
            self.structure
        }
    }

    /// Returns true if this program was built without the language's grammar.
    pub(crate) fn lacks_grammar(&self) -> bool {
        match self.structure {
            Structure::Grammar(grammar) | Structure::Data(grammar) => !codescout_grammars::is_built(grammar.name),
            Structure::Keys(_) | Structure::Prose(_) | Structure::Lines => false,
        }
    }

    /// Returns true for code, whose references are extracted.
    pub fn is_code(&self) -> bool {
        matches!(self.structure, Structure::Grammar(_))
    }

    /// Returns true for prose, which has sections instead of definitions.
    pub fn is_prose(&self) -> bool {
        matches!(self.structure, Structure::Prose(_))
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

/// Declares a module for each language, which contains a `LANGUAGE`, and the table of these languages.
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
    restructuredtext,
    asciidoc,
    plaintext,
    html,
    css,
    json,
    yaml,
    toml,
    sql,
}

mod c_macros;
mod member_macros;
mod plain;
mod profile;
mod standard;
mod text;

pub(crate) use text::is_quoted_type;

/// Returns all languages. Those without structure come last.
pub fn languages() -> impl Iterator<Item = &'static Language> {
    WITH_STRUCTURE.iter().copied().chain(plain::LANGUAGES)
}

/// Returns the language with this number. Returns `None` for plain text and for numbers that this version does not
/// know.
pub fn language(lang: Lang) -> Option<&'static Language> {
    languages().find(|language| language.lang == lang)
}

/// Returns the profile of the language with this number. Plain text is read like prose.
pub fn profile(lang: Lang) -> &'static Profile {
    language(lang).map_or(&Profile::MARKUP, |language| &language.profile)
}

/// Returns the number of the language with this name or alias, ignoring case.
pub fn by_name(name: &str) -> Option<Lang> {
    let is_called = |known: &&str| known.eq_ignore_ascii_case(name);
    let named = languages().find(|language| is_called(&language.name) || language.aliases.iter().any(&is_called));
    named.map(|language| language.lang)
}

#[cfg(test)]
mod tests;
