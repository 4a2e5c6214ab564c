//! The operations behind all front ends. Each queries a view and produces rows, JSON fields and text.

mod ask;
mod blame;
mod diff;
mod docs;
mod doubts;
mod drift;
mod edit;
mod gc;
mod graph;
mod grouped;
mod history;
mod life;
mod notes;
mod op;
mod outline;
mod paths;
pub(crate) mod picture;
mod pins;
mod precise;
mod provenance;
mod question;
mod reaching;
mod read;
mod record;
mod rename;
mod review;
mod run;
mod search;
mod sink;
mod status;
mod symbol;
mod symbol_history;
mod syntax;
mod target;
mod verify;

pub(crate) use ask::{Ask, CHARACTERS_PER_TOKEN, Common, Detail, FileSelection, Stale, path_text};
pub(crate) use blame::{Blame, BlameRow, BlamedLine};
pub(crate) use diff::{Diff, SideOut};
pub(crate) use docs::Docs;
pub(crate) use edit::Edit;
pub(crate) use gc::Gc;
pub(crate) use graph::{DefinitionLink, EdgeOut, FileLinks, Graph, GraphRow, ReachedOut, file_links};
pub(crate) use history::{History, life_picture};
pub(crate) use life::{FileLife, life};
pub(crate) use notes::Memory;
pub(crate) use op::{Op, Page, PageOf, Row, answered};
pub(crate) use outline::Outline;
pub(crate) use paths::{on_disk, seen_from};
pub(crate) use pins::Pins;
pub(crate) use provenance::ProvenanceOut;
pub(crate) use question::{About, Question, beside};
pub(crate) use read::Read;
pub(crate) use rename::Rename;
pub(crate) use review::{
    Consequence, DefinitionRow, DocumentSite, OtherFileRow, Review, ReviewFacts, ReviewOwner, ReviewRow, Site,
    TogetherRow, markdown,
};
pub(crate) use run::Run;
pub(crate) use search::{Facets, MAX_QUERY_BYTES, PACK_TOKENS, Search, SearchMode};
pub(crate) use sink::{MarkedText, PlainText, Recorded, Sink, Style, fence_of};
pub(crate) use status::{LanguageCoverage, Status};
pub(crate) use symbol::Symbol;
pub(crate) use syntax::Syntax;
pub(crate) use verify::Verify;
