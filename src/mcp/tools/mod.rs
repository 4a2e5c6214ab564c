//! The table of tools. A tool that runs one operation needs only an entry; other tools also have a file.

mod index;
pub(super) mod op;
mod status;

use std::time::Duration;

use super::asked::{CURSOR, DETAIL, DETAIL_OR_PACK, LIMIT, MAX_TOKENS, REF, REPO, STALE};
use super::parameters;
use super::tool::Tool;
use crate::config::CommandTimeout;
use crate::mcp::{Profile, ServeOptions};
use crate::ops::{Blame, Diff, Docs, Edit, Graph, History, Memory, Outline, Read, Rename, Review, Run, Search, Symbol};
use crate::session::{OpError, Result};

/// Every tool, in the order of the tool list.
pub(super) const TOOLS: &[Tool] = &[
    SEARCH,
    OUTLINE,
    SYMBOL,
    GRAPH,
    READ,
    HISTORY,
    BLAME,
    DIFF,
    REVIEW,
    status::TOOL,
    index::TOOL,
    EDIT,
    RENAME,
    MEMORY,
    DOCS,
    RUN,
];

/// Returns the tools that a server with these options has.
pub(super) fn selected(options: &ServeOptions) -> Result<Vec<&'static Tool>> {
    let is_in_profile = |tool: &&Tool| tool.profile.is_none_or(|profile| options.profiles.contains(&profile));
    let mut tools: Vec<&Tool> = TOOLS.iter().filter(is_in_profile).collect();
    for name in &options.without {
        let Some(at) = tools.iter().position(|tool| tool.name == name) else {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
            return Err(OpError::new(
                format!("no tool {name:?} to leave out"),
                format!("the tools are {}", names.join(", ")),
            ));
        };
        tools.remove(at);
    }
    Ok(tools)
}

const SEARCH: Tool = Tool {
    own: || {
        let mut own = parameters::of::<Search>();
        for parameter in &mut own {
            match parameter.name {
                "lang" => parameter.about = "python, ...",
                "tests" => parameter.about = "default any",
                _ => {}
            }
        }
        own
    },
    ..Tool::of_op::<Search>(
        "search",
        "Find code, docs or commits in any revision: use it when you do not know where something is.",
        &[
            REF.about("default WORKTREE"),
            REPO.about("default: this one"),
            LIMIT,
            MAX_TOKENS.about("default 2000"),
            CURSOR.about("next_cursor"),
            DETAIL_OR_PACK,
            STALE.about("during a build"),
        ],
    )
};

const OUTLINE: Tool = Tool::of_op::<Outline>(
    "outline",
    "See what a repository, directory or file contains: summary, tree, definitions, a ranked map, headings, imports. Start \
     here in a repository you do not know.",
    &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL, STALE],
);

const READ: Tool = Tool::of_op::<Read>(
    "read",
    "Read the exact text of a file at any revision, or only some lines, headings, keys (JSON, TOML, YAML) or definitions. \
    ",
    &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL],
);
const SYMBOL: Tool = Tool::of_op::<Symbol>(
    "symbol",
    "Find every definition of a name (Parser.parse, parse), at a place, or by id, with signature and docs. \
     include=[\"body\", \"refs\", \"history\"] adds its text, the lines that mention it, its last changes.",
    &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL, STALE],
);

const GRAPH: Tool = Tool::of_op::<Graph>(
    "graph",
    "Who calls or uses a definition, what it calls, what implements it, call paths, imports and import cycles, at any \
     revision.",
    &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, STALE],
);

const HISTORY: Tool = Tool::of_op::<History>(
    "history",
    "See how a definition, file, directory or lines changed across edits, renames and moves: when introduced, last seen \
     or deleted, and what changes together with it. detail=full adds diffs.",
    &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL],
);

const BLAME: Tool = Tool::of_op::<Blame>(
    "blame",
    "See who last changed each definition or line of a file, directory or definition, or each owner's share, and in which \
     commit.",
    &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR],
);

const DIFF: Tool = Tool::of_op::<Diff>(
    "diff",
    "Compare two revisions, the index or the worktree (default: uncommitted changes) by definition, file or line. \
     with=tests adds tests that use what changed.",
    &[REPO, LIMIT, MAX_TOKENS, CURSOR],
);

const REVIEW: Tool = Tool::of_op::<Review>(
    "review",
    "Review a change before it is committed or merged: definitions by consequence, callers that did not change with them, \
     tests to run, stale notes and documents, and what is not known.",
    &[REPO, LIMIT, MAX_TOKENS],
);

const EDIT: Tool = Tool::of_op::<Edit>(
    "edit",
    "Change files of the worktree by definition, Markdown section, key or exact text: all edits or none. Each existing \
     file needs expect, the blob id from read or symbol. Text is indented to fit. Returns the patch and new blob ids.",
    &[REPO, MAX_TOKENS],
)
.writing(Profile::Write);

const RENAME: Tool = Tool::of_op::<Rename>(
    "rename",
    "Rename a definition with what certainly refers to it: references, imports, overrides. Lists other places of the name \
     as candidates and mentions, to accept one by one. Call it without apply first.",
    &[REPO, MAX_TOKENS],
)
.writing(Profile::Write);

const MEMORY: Tool = Tool::of_op::<Memory>(
    "memory",
    "Keep notes about definitions, and see whether they still hold: each note names its definitions, and is fresh, changed (by \
     which commits), moved or gone at any revision. list first; write what you learnt and others would look for.",
    &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR],
)
.writing(Profile::Memory);

const DOCS: Tool = Tool::of_op::<Docs>(
    "docs",
    "After a rename or deletion, find what prose still says about it: audit lists names, paths and links of documents that \
     were right once, with the commit that renamed or deleted what they mean. list finds documents by kind and status.",
    &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR],
)
.writing(Profile::Docs);
const RUN: Tool = Tool {
    // The command ends before, so that the answer says why.
    time_limit: Duration::from_secs(CommandTimeout::MAX.as_secs() + 60),
    ..Tool::of_op::<Run>(
        "run",
        "Run a command that the user has configured (build, test, lint, format) in the worktree. Returns its exit code and \
         the end of its output; lines reads the rest of it. Without a name it lists what is configured.",
        &[REPO, LIMIT, MAX_TOKENS, CURSOR],
    )
    .writing(Profile::Run)
};
