//! Extracts chunks, definitions, references, imports and headings from one blob.
//!
//! Extraction is a pure function of bytes, language and options: the same input always gives the same [`Extraction`].
//! This module does not access git, files, the clock or the network. A file with syntax errors gives a partial result.
//! Start with [`Extractor`].
//!
//! `content` first decides if a blob should be indexed as text. Then the stages are: `detect` (find the language),
//! `parse` (build the syntax tree), `walk` (collect definitions, references and imports in one pass, using the rules in
//! `lang`) and `chunk` (split the text into units of search).

mod balance;
mod chunk;
mod content;
mod credentials;
mod detect;
mod embedded;
mod encoding;
mod extractor;
mod lang;
mod layout;
mod leads;
mod lines;
mod near;
mod options;
mod parse;
mod paths;
mod rules;
mod spans;
mod types;
mod visible;
mod walk;
mod words;

pub use content::{Content, classify, is_text};
pub use credentials::{is_credential, is_credential_of_tree};
pub use detect::{detect, is_lang_of_path, lang_of_path, refine};
pub use encoding::byte_order_mark;
pub use extractor::{Extractor, extract, has_grammar, is_too_much};
pub(crate) use lang::is_quoted_type;
pub use lang::{Extensions, Globals, Indentation, Language, Profile, Standard, by_name, language, languages, profile};
pub(crate) use lines::LineIndex;
pub use near::{Edit, FileDefinitions, definitions_near, is_balanced_after, offset_after, touches};
pub use options::{Options, recipe_number};
pub use paths::{is_lock_file, is_vendored};
pub use types::{
    Arity, Binding, BindingKind, Chunk, ChunkKind, Definition, DefinitionKind, Extraction, Heading, IN_LAMBDA, Import,
    ImportedName, Literal, Reference, ReferenceKind, Shape, Step, Steps, Unparsed, Value,
};
pub use visible::is_visible_outside;
pub use words::{Word, WordKind};

#[cfg(test)]
mod tests;
