//! Changes the content of files by operations on definitions, sections, keys and text.
//!
//! Every operation refers to the files as they are before the edit. `locate.rs` finds its target, `change.rs` makes the
//! ranges that it replaces, `splice.rs` applies those of a file together, `file.rs` checks the file before and after.

mod body;
mod change;
mod file;
mod layout;
mod locate;
mod operation;
mod patch;
mod splice;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use file::{
    Batch, Edited, MIN_BLOB_DIGITS, OpenFile, Opening, check_errors, is_expected, parts_of, stored_as,
};
pub(crate) use locate::{FileText, Part};
pub(crate) use operation::{Operation, Verb};
pub(crate) use splice::{Splice, spliced};

/// Maximum size of a file.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;
