//! Pages for people: HTML that works without scripts.
//!
//! `server.rs` answers requests, `door.rs` lets only the person in who started it, `url.rs` reads URLs and writes links,
//! `pages.rs` has the pages. Most show what an operation answers, through `sink.rs`.
//!
//! Text of the repository reaches a page only through `visible`, in markup that maud escapes. Ids, classes and styles
//! contain none of it.

mod door;
mod file;
mod frame;
mod overview;
mod pages;
mod review;
mod server;
mod sink;
mod url;

pub(crate) use review::{LinkBase, review_page};
pub use server::{WebOptions, serve};

/// What is sent for a request.
struct Answer {
    kind: &'static str,
    bytes: Vec<u8>,
    /// True for a file as it is, in which a browser must run nothing.
    is_raw: bool,
}

impl Answer {
    fn page(text: String) -> Self {
        Self::bytes("text/html; charset=utf-8", text.into_bytes())
    }

    fn bytes(kind: &'static str, bytes: Vec<u8>) -> Self {
        Self {
            kind,
            bytes,
            is_raw: false,
        }
    }
}
