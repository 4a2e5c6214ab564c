//! Which documents hold which terms: tantivy's inverted index, n-gram signatures of blobs, and BM25.
//!
//! A document is a distinct chunk; it knows no path and no commit. Statistics are not kept here: they are the view's, so
//! [`LexicalSegment::postings`] hands out raw counts and [`bm25`] does the arithmetic. The only home of tantivy.

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
