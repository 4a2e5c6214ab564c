//! `codescout history`

use anyhow::Result;

use super::args::{Global, PageArgs, Paged};
use super::json::OpError;
use super::progress::CliProgress;
use super::render::Output;
use super::{Found, INTERRUPTED, op};
use crate::ops::{History, Search};
use crate::session::Workspace;

/// Number of results for a description unless another is given.
const N_DESCRIBED: usize = 50;

pub(super) fn run(
    workspace: Workspace,
    global: &Global,
    Paged { op: history, page }: &Paged<History>,
    output: &mut Output,
) -> Result<Found> {
    match history.description() {
        Some(query) if !is_path(&workspace, global, query)? => {
            if history.selects_commits() {
                return Err(OpError::new(
                    "since, until and author mean nothing for a description of deleted code",
                    "leave them out, or name a directory",
                )
                .into());
            }
            let page = PageArgs {
                limit: page.limit.or(Some(N_DESCRIBED)),
                cursor: page.cursor.clone(),
            };
            op::run("history", &Search::for_deleted(query), &page, workspace, global, output)
        }
        _ => op::run("history", history, page, workspace, global, output),
    }
}

/// Returns true if a file or directory once had this path.
fn is_path(workspace: &Workspace, global: &Global, typed: &str) -> Result<bool> {
    let progress = CliProgress::new(global.quiet);
    let opened = workspace.history(&global.reference, &progress, &INTERRUPTED)?;
    Ok(!opened.history.paths_from(typed.as_bytes()).is_empty())
}
