//! Manages the vectors that the clones of a repository share through a Qdrant server.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use super::error::{Context as _, Result, ensure};
use super::workspace::Workspace;
use crate::embed::{Embedder, SparseEmbedder};
use crate::index::dense::DenseIndex;
use crate::index::shared::{RepositoryTag, SharedVectors, There};
use crate::index::sparse::ImpactIndex;
use crate::index::{RowKind, Segments};
use crate::ingest::{EmbeddingSource, Shared, Sharing, load_probe, renumber_shared};
use crate::model::{Ctx, TreeId};
use crate::query::{
    Away, DenseRemoteIndex, Elsewhere, LEG_CANDIDATES, Reranking, Searcher, Sources, SparseRemoteIndex,
};
use crate::remote::{Endpoint, Qdrant, QdrantIndex, SettingsApplied};
use crate::sidecar::Sidecar;
use crate::snapshot::View;

/// Error for a shallow clone, which cannot compute the repository's identity.
const TOO_SHALLOW: &str = "this shallow clone lacks the first commit, which identifies the repository; set \
    qdrant.repository to its id, as shown by codescout doctor in a full clone";

/// The vectors that clones of a repository share through a Qdrant server.
#[derive(Clone, Copy)]
pub struct VectorSharing<'w> {
    workspace: &'w Workspace,
}

impl Workspace {
    /// Returns the vectors shared with other clones.
    pub fn vector_sharing(&self) -> VectorSharing<'_> {
        VectorSharing { workspace: self }
    }

    /// Returns the configuration for reranking the best candidates in a view, if a reranker is configured.
    pub fn reranking<'a>(&'a self, view: &'a View, interrupt: &'a AtomicBool) -> Option<Reranking<'a>> {
        self.models.reranker().map(|reranker| Reranking {
            reranker,
            n_candidates: self.config.rerank.n_candidates(),
            sources: Sources::new(view, &self.repository),
            interrupt,
        })
    }

    /// Creates the searcher of a view with the configured remote models and the Qdrant server. Searches stop when
    /// `interrupt` is set.
    pub fn searcher<'a>(&'a self, view: &'a View, interrupt: &'a AtomicBool) -> Result<Searcher<'a>> {
        let sharing = self.vector_sharing();
        sharing.know_models();
        let mut searcher = Searcher::new(view, self.models.embedder(), self.models.own())?
            .until(interrupt)
            .with_sources(Sources::new(view, &self.repository));
        if let Some(fleet) = &self.fleet {
            let (statistics, _) = fleet.statistics(&self.config.links.all());
            return Ok(searcher.with_statistics(Some(statistics)));
        }
        if let Some(model) = self.models.remote_sparse() {
            searcher = searcher.with_sparse(model, self.config.sparse.weight());
        }
        if let Some(elsewhere) = sharing.shared_index(view, RowKind::Dense, interrupt)? {
            searcher = if sharing.keeps_away(RowKind::Dense) {
                searcher.with_remote_vectors(Away {
                    empty: elsewhere.index.empty().clone(),
                    store: Box::new(elsewhere.index),
                    holds: elsewhere.holds,
                })?
            } else {
                searcher.with_remote_index(elsewhere.map(|index| Box::new(index) as Box<dyn DenseIndex>))
            };
        }
        if let Some(elsewhere) = sharing.sparse_elsewhere(view, interrupt)? {
            searcher = searcher.with_sparse_remote_index(elsewhere);
        }
        Ok(searcher.with_messages(self.records().messages_of(view, interrupt)))
    }
}

impl<'w> VectorSharing<'w> {
    /// Returns the collections on the server: one for dense vectors and, if a sparse model is configured, one for
    /// sparse vectors. Empty if no server is configured.
    pub(crate) fn sharing(self) -> Result<&'w [Qdrant]> {
        if let Some(known) = self.workspace.qdrant.get() {
            return Ok(known);
        }
        let Some(options) = self.workspace.config.qdrant.options()? else {
            return Ok(&[]);
        };
        let identity = self.identity()?.context(TOO_SHALLOW)?;
        let dense = Qdrant::new(
            options,
            self.workspace.models.embedder().profile().id(),
            RowKind::Dense,
            tag_of(&identity),
        );
        let sparse = self.workspace.models.remote_sparse();
        let sparse = sparse.map(|model| dense.beside(model.profile().id(), RowKind::Sparse));
        let all = [dense].into_iter().chain(sparse).collect();
        Ok(self.workspace.qdrant.get_or_init(|| all))
    }

    /// Returns the collection for vectors of one kind.
    fn sharing_of(self, kind: RowKind) -> Result<Option<&'w Qdrant>> {
        Ok(self.sharing()?.iter().find(|qdrant| qdrant.kind() == kind))
    }

    /// Returns true if vectors of this kind are stored only on the server. That applies to dense vectors of a remote
    /// model, if so configured.
    pub(crate) fn keeps_away(self, kind: RowKind) -> bool {
        let config = &self.workspace.config.qdrant;
        let is_wanted = !config.keep_local.value && config.server.value.is_some();
        is_wanted && kind == RowKind::Dense && self.workspace.models.remote().is_some()
    }

    /// Returns the host and port of the server, if one is configured.
    pub(crate) fn sharing_host(self) -> Option<String> {
        let address = self.workspace.config.qdrant.server.value.as_ref()?;
        Some(Endpoint::new(address).ok()?.host())
    }

    /// Uploads the vectors of the indexed files of some trees. Returns one outcome for each kind of vector, up to the
    /// first that was interrupted. It includes the `n_uploaded` vectors that were uploaded while they were computed.
    pub(super) fn share_vectors(
        self,
        trees: &[TreeId],
        n_uploaded: &HashMap<RowKind, usize>,
        ctx: Ctx<'_>,
    ) -> Result<Vec<(RowKind, Shared)>> {
        let sharing = match self.sharing() {
            Ok(sharing) => sharing,
            // The failure concerns only sharing; the index is complete.
            Err(error) => {
                let stopped = Shared {
                    stopped: Some(format!("{error:#}")),
                    ..Shared::default()
                };
                return Ok(vec![(RowKind::Dense, stopped)]);
            }
        };
        let mut outcomes = Vec::new();
        let Some(sidecar) = self.workspace.storage.open()? else {
            return Ok(outcomes);
        };
        let own_profile = self.workspace.models.own_profile();
        // Vectors that are stored only on the server were uploaded when they were computed.
        for qdrant in sharing.iter().filter(|qdrant| !self.keeps_away(qdrant.kind())) {
            let shared = self.sharing_by(qdrant, &sidecar, &own_profile).run(trees, ctx)?;
            let is_over = shared.interrupted;
            let n_own = n_uploaded.get(&qdrant.kind()).copied().unwrap_or_default();
            outcomes.push((qdrant.kind(), shared.with_own(n_own)));
            if is_over {
                break;
            }
        }
        Ok(outcomes)
    }

    fn sharing_by(self, qdrant: &'w Qdrant, sidecar: &'w Sidecar, own_profile: &'w str) -> Sharing<'w> {
        Sharing {
            sidecar,
            shared: qdrant,
            profile: qdrant.profile(),
            own_profile,
            recipe: self.workspace.build_options().recipe,
            is_remote_only: self.keeps_away(qdrant.kind()),
        }
    }

    /// Runs `change`, which may renumber documents, and then updates the document numbers in the record of shared
    /// vectors.
    pub(super) fn renumbering<T>(self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let opened = || -> Result<Option<(Sidecar, Segments)>> {
            let Some((sidecar, Some(state))) = self.workspace.storage.open_with_state()? else {
                return Ok(None);
            };
            let segments = Segments::open_newest(&sidecar, &state, &self.workspace.models.own_profile())?;
            Ok(Some((sidecar, segments)))
        };
        let is_shared = self.workspace.config.qdrant.server.value.is_some();
        // If the segments cannot be opened, shared vectors are later looked up on the server again.
        let before = is_shared.then(|| opened().ok().flatten()).flatten();
        let changed = change()?;
        if let Some((_, before)) = before
            && let Ok(Some((sidecar, after))) = opened()
            && before.epoch() != after.epoch()
        {
            for qdrant in self.sharing().unwrap_or_default() {
                let (profile, repository) = (qdrant.profile(), qdrant.repository());
                if let Err(error) = renumber_shared(&sidecar, profile, repository, &before, &after) {
                    tracing::warn!(
                        "the record of shared vectors is outdated and will be read from the server again: {error}"
                    );
                }
            }
        }
        Ok(changed)
    }

    /// Returns the number of vectors that this clone has shared for chunks that are no longer in its index. `None` if
    /// it shares no vectors.
    pub(crate) fn gone_but_shared(self) -> Result<Option<usize>> {
        let (sharing, Some(sidecar)) = (self.sharing()?, self.workspace.storage.open()?) else {
            return Ok(None);
        };
        let own_profile = self.workspace.models.own_profile();
        let mut n_gone = None;
        for qdrant in sharing {
            *n_gone.get_or_insert(0) += self.sharing_by(qdrant, &sidecar, &own_profile).gone()?.len();
        }
        Ok(n_gone)
    }

    /// Deletes the vectors of [`Self::gone_but_shared`] from the server, and then records again which vectors the
    /// server has. Returns the number of deleted vectors and, if some remain, the reason.
    pub(crate) fn remove_gone(self, ctx: Ctx<'_>) -> Result<Option<(usize, Option<String>)>> {
        let (sharing, Some(sidecar)) = (self.sharing()?, self.workspace.storage.open()?) else {
            return Ok(None);
        };
        let own_profile = self.workspace.models.own_profile();
        let mut removed = None;
        for qdrant in sharing {
            let sharing = self.sharing_by(qdrant, &sidecar, &own_profile);
            let (n_gone, mut why) = sharing.remove_gone(ctx.interrupt)?;
            if let Some(head) = self.workspace.target("HEAD")?.filter(|_| why.is_none() && n_gone > 0) {
                why = sharing.run(&[head.tree], ctx)?.stopped;
            }
            let (n_all, first) = removed.get_or_insert((0, None));
            *n_all += n_gone;
            *first = first.take().or(why);
        }
        Ok(removed)
    }

    /// Applies the current settings to the collections of the models in use.
    pub(crate) fn resettle_collections(self, interrupt: &AtomicBool) -> Result<Vec<SettingsApplied>> {
        let sharing = self.sharing()?;
        ensure!(
            !sharing.is_empty(),
            "no Qdrant server is configured; run: codescout config set qdrant.server ADDRESS"
        );
        let mut resettled = Vec::new();
        for qdrant in sharing {
            resettled.extend(qdrant.apply_settings(interrupt)?);
        }
        ensure!(
            !resettled.is_empty(),
            "the collection does not exist yet; run codescout index to create it"
        );
        Ok(resettled)
    }

    /// Returns the collection that may already contain the vectors of a model.
    pub(super) fn shared_for(self, maker: EmbeddingSource<'_>) -> Option<&'w dyn SharedVectors> {
        let qdrant = self.sharing_of(maker.kind()).ok().flatten()?;
        Some(qdrant)
    }

    /// Passes the stored probe vectors to the remote models, which use them to detect a changed model.
    pub(crate) fn know_models(self) {
        let known = |profile| {
            let sidecar = self.workspace.storage.open().ok()??;
            load_probe(&sidecar, profile).ok()?
        };
        if let Some(model) = self.workspace.models.remote() {
            model.set_known_probe(|| known(model.profile().id()));
        }
        if let Some(model) = self.workspace.models.remote_sparse() {
            model.set_known_probe(|| known(model.profile().id()));
        }
    }

    /// Returns the index of a view's dense vectors on the server, according to the record of shared vectors.
    pub fn elsewhere(self, view: &'w View, interrupt: &'w AtomicBool) -> Result<Option<DenseRemoteIndex<'w>>> {
        let shared = self.shared_index(view, RowKind::Dense, interrupt)?;
        Ok(shared.map(|elsewhere| elsewhere.map(|index| Box::new(index) as Box<dyn DenseIndex>)))
    }

    /// Returns the index of a view's sparse vectors on the server, according to the record of shared vectors.
    pub fn sparse_elsewhere(self, view: &'w View, interrupt: &'w AtomicBool) -> Result<Option<SparseRemoteIndex<'w>>> {
        let shared = self.shared_index(view, RowKind::Sparse, interrupt)?;
        Ok(shared.map(|elsewhere| elsewhere.map(|index| Box::new(index) as Box<dyn ImpactIndex>)))
    }

    /// Returns the index of a view's vectors of one kind on the server.
    fn shared_index(
        self,
        view: &'w View,
        kind: RowKind,
        interrupt: &'w AtomicBool,
    ) -> Result<Option<Elsewhere<QdrantIndex<'w>>>> {
        if self.workspace.config.qdrant.server.value.is_none() {
            return Ok(None);
        }
        let there = self.there(kind).unwrap_or_else(|error| {
            tracing::warn!("cannot read the record of shared vectors: {error:#}");
            None
        });
        // Document numbers of another epoch do not match: garbage was collected after the view was opened or after
        // vectors were shared.
        let Some(there) = there.filter(|there| there.epoch == view.segments().epoch()) else {
            return Ok(None);
        };
        let Some(qdrant) = self.sharing_of(kind)? else {
            return Ok(None);
        };
        let holds = there.docs.clone();
        let index = qdrant.index(view.segments(), there, interrupt);
        let scan_below = u64::from(self.workspace.config.qdrant.scan_below.value);
        Ok(Some(Elsewhere {
            min_docs: scan_below.max(index.min_live(LEG_CANDIDATES)),
            index,
            holds,
        }))
    }

    /// Returns the record of shared vectors of one kind, if there is one.
    pub(crate) fn there(self, kind: RowKind) -> Result<Option<There>> {
        let Some(sidecar) = self.workspace.storage.open()? else {
            return Ok(None);
        };
        // A clone that has shared nothing has no recorded identity. A damaged record is replaced by the next upload.
        let noted = sidecar.repository_identity().unwrap_or_default();
        if self.workspace.config.qdrant.repository.value.is_none() && noted.is_none() {
            return Ok(None);
        }
        let Some(qdrant) = self.sharing_of(kind)? else {
            return Ok(None);
        };
        Ok(There::load(&sidecar, qdrant.profile(), qdrant.repository())?)
    }

    /// Returns the identity that all clones of the repository share: the configured one, or the id of the first commit.
    /// `None` if a shallow clone lacks the first commit.
    pub(crate) fn identity(self) -> Result<Option<String>> {
        if let Some(set) = &self.workspace.config.qdrant.repository.value {
            return Ok(Some(set.clone()));
        }
        let sidecar = self.workspace.storage.open()?;
        // A damaged record is rewritten.
        let noted = |sidecar: &Sidecar| match sidecar.repository_identity() {
            Err(error) if error.is_invalid() => Ok(None),
            noted => noted,
        };
        if let Some(noted) = sidecar.as_ref().map(noted).transpose()?.flatten() {
            return Ok(Some(noted));
        }
        let head = self
            .workspace
            .repository
            .head()?
            .commit()
            .context("there are no commits yet")?;
        let Some(first) = self.workspace.repository.first_commit(head)? else {
            return Ok(None);
        };
        let identity = first.to_string();
        if let Some(sidecar) = sidecar
            && let Err(error) = sidecar.note_repository_identity(&identity)
        {
            tracing::debug!(%error, "the first commit is looked for again the next time");
        }
        Ok(Some(identity))
    }
}

/// Returns a hash that identifies a repository without revealing its name.
fn tag_of(identity: &str) -> RepositoryTag {
    let hash = blake3::derive_key("codescout repository 1", identity.trim().as_bytes());
    RepositoryTag(hash[..16].try_into().expect("sixteen bytes"))
}
