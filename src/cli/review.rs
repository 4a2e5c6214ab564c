//! `codescout review`

use std::path::Path;

use super::args::{Global, PageArgs, ReviewArgs};
use super::render::Output;
use super::{Found, op};
use crate::ops::{Review, markdown};
use crate::session::{Context as _, OpError, Result, Workspace};
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
    let root = workspace.repository.work_dir().map(Path::to_owned);
    op::answer("review", &request, &page, workspace, global, |_, page| {
        let found = op::found(&page);
        match &review.html {
            None => output.put(&markdown(&page))?,
            Some(file) if file.as_path() == Path::new("-") => output.put(&review_page(&page, base.as_ref()))?,
            Some(file) => {
                check_place(root.as_deref(), file)?;
                std::fs::write(file, review_page(&page, base.as_ref()))
                    .with_context(|| format!("{} cannot be written", file.display()))?;
                output.remark(&format!("{}: {}", file.display(), page.facts.size()));
            }
        }
        if let Some(provenance) = &page.provenance {
            output.incomplete(provenance.incomplete_because())?;
        }
        Ok(found)
    })
}

/// Fails if a file is a link, or if a link in the worktree leads it out of the worktree.
fn check_place(root: Option<&Path>, file: &Path) -> Result<()> {
    let is_link = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let leaves = || {
        let root = root?;
        let folder = std::path::absolute(file).ok()?.parent()?.to_owned();
        Some(folder.starts_with(root) && !folder.canonicalize().ok()?.starts_with(root.canonicalize().ok()?))
    };
    if is_link(file) || leaves().unwrap_or(false) {
        return Err(OpError::new(
            format!("{} is, or is behind, a symbolic link", file.display()),
            "name another file, or - for standard output",
        ));
    }
    Ok(())
}
