//! Finds the documents that contain a term, with an inverted index (tantivy), n-gram signatures of blobs, and BM25.
//!
//! A document is a distinct chunk, without a path or commit. Term statistics depend on the view, so
//! [`LexicalSegment::postings`] returns counts, and [`bm25`] computes scores from them. No other module uses tantivy.

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
pub use terms::{for_each_term, for_each_word, is_stop_word, normal_name, parts, push_lower, stem, words};
pub use writer::{LexicalDoc, LexicalWriter};
