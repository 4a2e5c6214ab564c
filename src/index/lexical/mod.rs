//! Finds the documents that contain a term: tantivy's inverted index, n-gram signatures of blobs, and BM25.
//!
//! A document is a distinct chunk without a path or commit. Term statistics depend on the view, so
//! [`LexicalSegment::postings`] returns raw counts and [`bm25`] does the arithmetic. Only this module uses tantivy.

pub mod bm25;
mod merge;
mod ngram;
mod pack;
mod reader;
mod terms;
mod tokenizer;
mod writer;

pub use merge::{merge_lexical, merge_some_lexical};
pub use ngram::{Signature, TrigramQuery};
pub use reader::{DocMeta, FORMAT, LexicalError, LexicalSegment, Posting};
pub use terms::{for_each_term, for_each_word, is_stop_word, normal_name, stem, words};
pub use writer::{LexicalDoc, LexicalWriter};
