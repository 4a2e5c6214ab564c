//! Compares the points on the Qdrant server with what they should be.

use std::collections::HashSet;

use super::super::call::CallCtx;
use super::super::error::{Context as _, Result};
use super::super::open::{Build, Session, ViewRequest};
use super::super::workspace::Workspace;
use super::Fleet;
use super::feed::failed;
use super::points::{Points, id_of_repository};
use crate::config::Link;
use crate::remote::PointId;

/// The difference between the server and a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Number of points that the server should have.
    pub(crate) n_points: usize,
    /// Number of points that it lacks.
    pub(crate) n_missing: usize,
    /// Number of points that it should not have.
    pub(crate) n_extra: usize,
    /// True if nothing is to be repaired: the points, the repository's own point and its record.
    pub(crate) is_sound: bool,
}

impl Fleet {
    /// Compares the points of a repository with those of its recorded commit.
    pub(crate) fn check(&self, workspace: &Workspace, link: &Link, call: &CallCtx<'_>) -> Result<Checked> {
        let name = &link.name;
        let _lock = self.locked(name)?;
        let found: HashSet<PointId> = match self.collection.points_of(name, call.ctx.interrupt) {
            // Without a collection, everything is missing.
            Err(error) if error.status() == Some(404) => HashSet::new(),
            found => found.map_err(failed)?.into_iter().collect(),
        };
        let session = Session::for_feeder(Workspace::open_linked(&link.path)?);
        let recorded = self.recorded(name);
        let mut wanted = HashSet::new();
        if let Some(recorded) = &recorded {
            let request = ViewRequest {
                build: Build::Need,
                ..ViewRequest::of(&recorded.commit)
            };
            let (seen, _) = session.view(request, call).with_context(|| name.clone())?;
            let groups = workspace.config.links.scopes_of(name);
            wanted.extend(Points::of(&seen.view, name, groups).known.into_keys());
            wanted.insert(id_of_repository(name));
        }
        let lost = self
            .lost(std::slice::from_ref(link), true, call.ctx.interrupt)
            .map_err(failed)?;
        let is_readable = self.records.statistics(name).is_ok() && self.records.points(name).is_ok();
        Ok(Checked {
            is_sound: recorded.is_some() && lost.is_empty() && is_readable && wanted == found,
            n_points: wanted.len(),
            n_missing: wanted.difference(&found).count(),
            n_extra: found.difference(&wanted).count(),
        })
    }
}
