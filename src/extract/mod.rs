//! Extracts chunks, definitions, references, imports and headings from one blob.
//!
//! Extraction is a pure function of bytes, language and options: the same input gives the same [`Extraction`]. This
//! module knows nothing of git, files, the clock or the network. A file with syntax errors gives a partial result.
//! Start reading at [`Extractor`].
//!
//! The stages are, in order: `detect` (the language), `parse` (the syntax tree), `walk` (definitions, references and
//! imports in one pass, by the rules in `lang`) and `chunk` (the units of search). Before that, `content` decides
//! whether a blob is text worth indexing.

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
pub use near::{Edit, FileDefinitions, is_balanced_after, offset_after, touches};
pub use options::{Options, RECIPE_VERSION};
pub use paths::{is_lock_file, is_vendored};
pub use types::{
    Chunk, ChunkKind, Definition, DefinitionKind, Extraction, Heading, Import, ImportedName, Reference, ReferenceKind,
};

#[cfg(test)]
mod tests;
