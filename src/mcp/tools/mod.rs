//! The tools, one file each. A new one is a file with a `TOOL`, and a line in the list here.

mod blame;
mod diff;
mod history;
mod index;
mod outline;
mod read;
mod search;
mod search_commits;
mod status;
mod symbol;

use super::tool::Tool;

/// Every tool, in the order in which they are listed.
pub(super) const TOOLS: &[Tool] = &[
    search::TOOL,
    outline::TOOL,
    symbol::TOOL,
    read::TOOL,
    history::TOOL,
    blame::TOOL,
    diff::TOOL,
    status::TOOL,
    index::TOOL,
];
