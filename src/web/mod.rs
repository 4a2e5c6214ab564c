//! Pages for people: HTML that works without scripts.
//!
//! Text of the repository reaches a page only through `visible`, in markup that maud escapes. Ids, classes and styles
//! contain none of it.

mod review;
mod svg;

pub(crate) use review::{LinkBase, review_page};
