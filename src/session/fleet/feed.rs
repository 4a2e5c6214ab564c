//! Stores a repository of a fleet on the Qdrant server.
//!
//! Ids are derived from content, so storing a point twice is harmless. The record lists every point that the server may
//! have, before it is stored; so the next run repairs whatever an interruption has left.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::super::call::CallCtx;
use super::super::error::{Context as _, OpError, Result};
use super::super::exchange::{Content, Purpose, Remote};
use super::super::open::{Build, Session, ViewRequest};
use super::super::share::ImportOptions;
use super::super::workspace::Workspace;
use super::points::{Points, id_of_repository, point_of_repository};
use super::record::{KnownPoints, Recorded};
use super::{Fleet, unknown};
use crate::bundle::Trust;
use crate::config::Link;
use crate::embed::Embedder;
use crate::git::Bounds;
use crate::ingest::Audit;
use crate::remote::{PointId, RemoteError};
use crate::sidecar::FileLock;

/// Number of points that are computed at a time, which limits memory.
const POINTS_AT_A_TIME: usize = 20_000;

/// Maximum size of an index that is taken from the refs of a repository.
const MAX_PULLED_BYTES: u64 = 2 << 30;

/// How a repository is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feeding {
    /// True if the server may lack points that are recorded.
    pub(crate) is_lost: bool,
    /// If given, takes what was pushed to the refs of the repository with a signature that this accepts.
    pub(crate) pull: Option<Trust>,
}

/// What was done for a repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fed {
    /// What is stored now.
    pub(crate) recorded: Recorded,
    /// Number of points that were stored.
    pub(crate) n_put: usize,
    /// Number of points that were removed.
    pub(crate) n_removed: usize,
    /// Number of files of which the index was taken from the repository.
    pub(crate) n_pulled: usize,
    /// The duration.
    pub(crate) elapsed: Duration,
}

impl Fleet {
    /// Stores what is new of a repository, and removes what is gone. Returns `None` if it is stored already.
    pub(crate) fn feed(
        &self,
        workspace: &Workspace,
        link: &Link,
        feeding: Feeding,
        call: &CallCtx<'_>,
    ) -> Result<Option<Fed>> {
        let began = Instant::now();
        let name = &link.name;
        let _lock = self.locked(name)?;
        let session = Session::for_feeder(Workspace::open_linked(&link.path)?);
        let reference = link.reference.as_deref().unwrap_or("HEAD");
        let target = session.workspace.target(reference)?;
        let target = target.with_context(|| format!("{name} has no commit"))?;
        let commit = target
            .commit
            .with_context(|| format!("{reference} is not a commit"))?
            .to_string();
        let groups = workspace.config.links.scopes_of(name);
        let before = self.records.of_repository(name).ok().flatten().unwrap_or_default();
        if !feeding.is_lost && before.is_whole && before.commit == commit && before.groups == groups {
            return Ok(None);
        }
        let pulled = feeding.pull.map(|trust| pull(&session.workspace, trust, call));
        let n_pulled = pulled.unwrap_or(Ok(0)).unwrap_or_else(|error| {
            tracing::warn!("{name}: the pushed index is not used: {error:#}");
            0
        });
        let request = ViewRequest {
            build: Build::Need,
            ..ViewRequest::of(&commit)
        };
        let (seen, _) = session.view(request, call)?;
        let view = &seen.view;
        let points = Points::of(view, name, groups.clone());
        let interrupt = call.ctx.interrupt;
        let dim = workspace.models.own().profile().dim;
        self.collection.create(dim, interrupt).map_err(failed)?;
        let known = match self.records.points(name) {
            Ok(known) if !feeding.is_lost => known,
            unusable => {
                if let Err(error) = unusable {
                    tracing::warn!("{error:#}");
                }
                self.stored_points(name, interrupt)?
            }
        };
        let is_new = |(id, digest): &(&PointId, &u64)| known.get(*id) != Some(*digest);
        let mut new: Vec<PointId> = points.known.iter().filter(is_new).map(|(id, _)| *id).collect();
        let gone: Vec<PointId> = known
            .keys()
            .filter(|id| !points.known.contains_key(*id))
            .copied()
            .collect();
        let mut possible = known;
        // A point that is being removed may be needed by the next run.
        possible.extend(new.iter().chain(&gone).map(|id| (*id, 0)));
        self.records.begin(name, &possible)?;
        points.sort(&mut new);
        for ids in new.chunks(POINTS_AT_A_TIME) {
            self.collection
                .put(points.made(ids)?.into_iter(), interrupt)
                .map_err(failed)?;
        }
        let own = point_of_repository(name, &commit);
        self.collection.put([own].into_iter(), interrupt).map_err(failed)?;
        self.collection.remove(&gone, interrupt).map_err(failed)?;
        let (n_files, n_chunks) = points.counts();
        let recorded = Recorded {
            commit,
            groups,
            n_files,
            n_chunks,
            n_left_out: view.n_files() + view.n_withheld() - n_files,
            at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs(),
            is_whole: true,
        };
        self.records
            .finish(name, &recorded, &points.known, &points.statistics()?)?;
        Ok(Some(Fed {
            recorded,
            n_put: new.len(),
            n_removed: gone.len(),
            n_pulled,
            elapsed: began.elapsed(),
        }))
    }

    /// Returns the points that the server has of a repository, with unknown content, without the repository's own.
    fn stored_points(&self, name: &str, interrupt: &AtomicBool) -> Result<KnownPoints> {
        let ids = self.collection.points_of(name, interrupt).map_err(failed)?.into_iter();
        let own = id_of_repository(name);
        Ok(ids.filter(|id| *id != own).map(|id| (id, 0)).collect())
    }

    /// Returns the names of repositories that are stored but no longer in the settings.
    pub(crate) fn removed(&self, workspace: &Workspace) -> Vec<String> {
        let mut names: Vec<String> = self.records.all().keys().cloned().collect();
        names.retain(|name| workspace.config.links.get(name).is_none());
        names
    }

    /// Removes the points of a repository. Returns their number.
    pub(crate) fn forget(&self, name: &str, call: &CallCtx<'_>) -> Result<usize> {
        let _lock = self.locked(name)?;
        let interrupt = call.ctx.interrupt;
        let ids = match self.collection.points_of(name, interrupt) {
            Err(error) if error.status() == Some(404) => Vec::new(),
            ids => ids.map_err(failed)?,
        };
        self.collection.remove(&ids, interrupt).map_err(failed)?;
        self.records.remove(name)?;
        Ok(ids.len())
    }

    /// Returns the repositories with these names, or all.
    pub(crate) fn selected(&self, workspace: &Workspace, names: &[String]) -> Result<Vec<Link>> {
        let links = &workspace.config.links;
        if names.is_empty() {
            return Ok(links.all());
        }
        let found = names.iter();
        found
            .map(|name| links.get(name).ok_or_else(|| unknown(name, links)))
            .collect()
    }

    /// Returns the repositories that are recorded but not on the server.
    pub(crate) fn lost_of(&self, links: &[Link], interrupt: &AtomicBool) -> Result<Vec<String>> {
        self.lost(links, true, interrupt).map_err(failed)
    }

    pub(super) fn locked(&self, name: &str) -> Result<FileLock> {
        let taken = FileLock::take(self.records.lock_file(name)?).context("cannot lock the record")?;
        taken.map_err(|_| {
            OpError::new(
                format!("{name} is being stored by another process"),
                "wait for it to end, then try again",
            )
        })
    }
}

/// Takes the index that was pushed to the refs of a repository. Returns the number of new files.
fn pull(workspace: &Workspace, trust: Trust, call: &CallCtx<'_>) -> Result<usize> {
    let bounds = Bounds {
        max_bytes: MAX_PULLED_BYTES,
        until: None,
        interrupt: call.ctx.interrupt,
    };
    let place = workspace.repository.common_dir().display().to_string();
    let remote = Remote::open(workspace, &place, Content::Records, Purpose::Pull, bounds)?;
    let plan = remote.plan_pull(workspace, trust)?;
    let options = ImportOptions {
        trust,
        is_own: false,
        audit: Audit::Sample,
    };
    let taken = remote.pull(&plan, workspace, options, call.ctx)?;
    Ok(taken.iter().map(|bundle| bundle.imported.n_blobs).sum())
}

/// Converts an error of the server.
pub(super) fn failed(error: RemoteError) -> OpError {
    let hint = match error.status() {
        Some(401 | 403) => "set the key: qdrant.key_file in fleet.toml, or CODESCOUT_QDRANT_KEY",
        Some(404) => "create the collection: codescout fleet index",
        _ => "is the server running? docker compose --profile fleet up starts one",
    };
    OpError::new(format!("Qdrant at {error}"), hint)
}
