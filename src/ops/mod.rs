//! The operations that answer requests of all front ends: they query a view and produce rows, facts and text for
//! output.

mod ask;
mod blame;
mod diff;
mod gc;
mod history;
mod op;
mod outline;
mod paths;
mod pins;
mod provenance;
mod question;
mod read;
mod record;
mod search;
mod sink;
mod status;
mod symbol;
mod symbol_history;
mod target;
mod touching;
mod verify;

pub(crate) use crate::session::OpError;
pub(crate) use ask::{Ask, CHARACTERS_PER_TOKEN, Common, Detail, FileSelection, Stale, path_text};
pub(crate) use blame::Blame;
pub(crate) use diff::Diff;
pub(crate) use gc::Gc;
pub(crate) use history::History;
pub(crate) use op::{Op, Page, Row};
pub(crate) use outline::Outline;
pub(crate) use paths::{inside, seen_from};
pub(crate) use pins::Pins;
pub(crate) use provenance::ProvenanceOut;
pub(crate) use question::{About, Question, beside};
pub(crate) use read::Read;
pub(crate) use search::{MAX_QUERY_BYTES, Search, SearchMode};
pub(crate) use sink::{PlainText, Recorded, Sink, Style};
pub(crate) use status::Status;
pub(crate) use symbol::{Symbol, definition_kinds};
pub(crate) use target::{Named, Targets, named};
pub(crate) use verify::Verify;
