//! `codescout review`

use std::path::Path;

use super::args::{Global, PageArgs, ReviewArgs};
use super::render::Output;
use super::{Found, op};
use crate::ops::{Review, markdown};
use crate::session::{OpError, Result, Workspace, check_output, write_text};
use crate::web::{LinkBase, review_page};

pub(super) fn run(workspace: Workspace, global: &Global, review: &ReviewArgs, output: &mut Output) -> Result<Found> {
    let is_text = !review.markdown && review.html.is_none();
    let page = PageArgs {
        limit: review.limit.or((!is_text).then_some(0)),
        cursor: None,
    };
    if is_text {
        return op::run("review", &review.op, &page, workspace, global, output);
    }
    let base = review.link_base.as_deref().map(|typed| {
        LinkBase::new(typed)
            .ok_or_else(|| OpError::new(format!("{typed:?} is not a web address"), "start it with https://"))
    });
    let base = base.transpose()?;
    let request = Review {
        diff: true,
        ..review.op.clone()
    };
    op::answer("review", &request, &page, workspace, global, |ask, page| {
        let found = op::found(&page);
        match &review.html {
            None => output.put(&markdown(&page))?,
            Some(file) if file.as_path() == Path::new("-") => output.put(&review_page(&page, base.as_ref()))?,
            Some(file) => {
                check_output(&ask.session.workspace, file)?;
                write_text(file, &review_page(&page, base.as_ref()))?;
                output.remark(&format!("{}: {}", file.display(), page.facts.size()));
            }
        }
        if let Some(provenance) = &page.provenance {
            output.incomplete(provenance.incomplete_because())?;
        }
        Ok(found)
    })
}
