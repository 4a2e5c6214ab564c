//! The tools, one file each. A new one is a file with a `TOOL`, and a line in the list here.

mod index;
mod op;
mod status;
mod symbol;

use serde_json::json;

use super::asked::{CURSOR, DETAIL, LIMIT, MAX_TOKENS, REF, REPO, STALE};
use super::parameters;
use super::tool::{QUESTION_TIME, Tool, results};
use crate::ops::{Blame, Diff, History, Outline, Read, Search};

/// Every tool, in the order in which they are listed.
pub(super) const TOOLS: &[Tool] = &[
    SEARCH,
    OUTLINE,
    symbol::TOOL,
    READ,
    HISTORY,
    BLAME,
    DIFF,
    status::TOOL,
    index::TOOL,
];

const SEARCH: Tool = Tool {
    name: "search",
    title: "Search code",
    description: "Find code in any revision of the repository by a question, words, a name or a regex; one call does what many \
                  greps do. Exact definitions come first, then meaning. mode=regex is a complete grep; mode=similar takes code \
                  or path:line.",
    own: parameters::of::<Search>,
    common: &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL, STALE],
    output: || {
        json!({
            "read_as": {"type": "string"},
            "absent": {"type": "array"},
            "results": results(&[("path", "string"), ("start_line", "integer"), ("end_line", "integer"), ("score", "number")]),
        })
    },
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run: op::run::<Search>,
};

const OUTLINE: Tool = Tool {
    name: "outline",
    title: "See what is there",
    description: "What is in the repository, a folder or a file: summary, tree, definitions with signatures, a ranked map within \
                  max_tokens, headings, imports. Start here in a new repository.",
    own: parameters::of::<Outline>,
    common: &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL, STALE],
    output: || {
        json!({
            "view": {"type": "string"},
            "summary": {"type": "object"},
            "results": results(&[("path", "string"), ("name", "string"), ("start_line", "integer")]),
        })
    },
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run: op::run::<Outline>,
};

const READ: Tool = Tool {
    name: "read",
    title: "Read a file",
    description: "Exact text of any path at any revision: whole, or only the lines, headings of a document, keys of JSON, TOML or \
                  YAML, or definitions that are named. Long text comes in pages.",
    own: parameters::of::<Read>,
    common: &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL, STALE],
    output: || {
        json!({
            "path": {"type": "string"},
            "blob": {"type": "string"},
            "lines": {"type": "integer"},
            "results": results(&[("start_line", "integer"), ("end_line", "integer")]),
        })
    },
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run: op::run::<Read>,
};

const HISTORY: Tool = Tool {
    name: "history",
    title: "Show the history",
    description: "The life of a definition, file, folder or lines across edits, renames and moves: log, when it was introduced, \
                  when last seen, what was deleted below it, what changes together with it. detail=full shows the changes.",
    own: parameters::of::<History>,
    common: &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL],
    output: || json!({"target": {"type": "object"}, "total": {"type": "integer"}}),
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run: op::run::<History>,
};

const BLAME: Tool = Tool {
    name: "blame",
    title: "Tell who wrote it",
    description: "Who last changed a file, lines or a definition, and in which commit: by definition unless asked otherwise, by \
                  line, or by owner with shares. A folder is told by owner. Uncommitted lines are told as such.",
    own: parameters::of::<Blame>,
    common: &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR],
    output: || json!({"target": {"type": "object"}, "by": {"type": "string"}}),
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run: op::run::<Blame>,
};

const DIFF: Tool = Tool {
    name: "diff",
    title: "Compare two states",
    description: "What differs between two revisions, the index or the work tree (default: what is not committed): definitions \
                  added, removed, moved or changed; files; or lines. with=tests adds tests of them.",
    own: parameters::of::<Diff>,
    common: &[REPO, LIMIT, MAX_TOKENS, CURSOR],
    output: || {
        json!({
            "from": {"type": "object"},
            "to": {"type": "object"},
            "total": {"type": "integer"},
            "results": results(&[("path", "string")]),
        })
    },
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run: op::run::<Diff>,
};
