//! `codescout docs`

use super::args::{Global, Paged};
use super::render::Output;
use super::{Found, op};
use crate::ops::Docs;
use crate::session::{Result, Workspace};

pub(super) fn run(workspace: Workspace, global: &Global, docs: &Paged<Docs>, output: &mut Output) -> Result<Found> {
    let found = op::run("docs", &docs.op, &docs.page, workspace, global, output)?;
    // For the scripts that call an audit, a finding is a failure.
    Ok(match found {
        Found::Something if docs.op.is_audit() => Found::Nothing,
        Found::Nothing if docs.op.is_audit() => Found::Something,
        found => found,
    })
}
