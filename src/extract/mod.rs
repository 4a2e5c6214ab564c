//! What one blob says: chunks, definitions, references, imports, headings.
//!
//! Pure: (bytes, language, options) → [`Extraction`]. Knows no git, no files, no clock, no network; the same input gives
//! the same output, and a broken file gives what can be had. Start at [`Extractor`].
//!
//! The stages, in order: `detect` (which language), `parse` (syntax tree), `walk` (definitions, references and imports in
//! one pass, by the rules in `lang`), `chunk` (pieces that are found as one). `content` says beforehand whether a blob is
//! text that is worth it.

mod balance;
mod chunk;
mod content;
mod credentials;
mod detect;
mod embedded;
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
mod walk;

pub use content::{Content, classify};
pub use credentials::is_credential;
pub use detect::{detect, is_lang_of_path, lang_of_path, refine};
pub use extractor::{Extractor, extract};
pub use lang::{Language, by_name, language, languages};
pub(crate) use lines::LineIndex;
pub use near::{Edit, FileDefinitions, closed_after, place_after, touches};
pub use options::{Options, RECIPE_VERSION};
pub use paths::{is_lock_file, is_vendored};
pub use types::{
    Chunk, ChunkKind, Definition, DefinitionKind, Extraction, Heading, Import, ImportedName, Reference, ReferenceKind,
};

#[cfg(test)]
mod tests;
