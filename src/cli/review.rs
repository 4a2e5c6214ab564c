//! `codescout review`

use super::args::{Global, ReviewArgs};
use super::render::Output;
use super::{Found, op};
use crate::ops::{Review, markdown};
use crate::session::{Result, Workspace};

pub(super) fn run(workspace: Workspace, global: &Global, review: &ReviewArgs, output: &mut Output) -> Result<Found> {
    if !review.markdown {
        return op::run("review", &review.op, &review.page, workspace, global, output);
    }
    let request = Review {
        diff: true,
        ..review.op.clone()
    };
    op::answer("review", &request, &review.page, workspace, global, |_, page| {
        output.put(&markdown(&page))?;
        Ok(op::found(&page))
    })
}
