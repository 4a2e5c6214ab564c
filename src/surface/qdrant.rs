//! Vectors that the clones of a repository share by a Qdrant.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};

use super::open::Workspace;
use crate::embed::{Embedder, SparseEmbedder};
use crate::index::RowFile;
use crate::index::shared::{RepositoryTag, SharedVectors, There};
use crate::ingest::{Maker, Progress, Shared, Sharing, probe_of};
use crate::model::TreeId;
use crate::query::{Elsewhere, LEG_CANDIDATES, Searcher};
use crate::remote::{Endpoint, Moved, Qdrant};
use crate::sidecar::{RecordError, Sidecar};
use crate::snapshot::View;

/// Why a shallow clone shares nothing, and how it could.
const TOO_SHALLOW: &str = "this clone is too shallow to tell which repository it is of; set qdrant.repository to the id of the first \
    commit, which codescout doctor tells in a whole clone";

impl Workspace {
    /// Where vectors are shared; `None` if no server is set.
    pub(crate) fn sharing(&self) -> Result<Option<&Qdrant>> {
        if let Some(qdrant) = self.qdrant.get() {
            return Ok(Some(qdrant));
        }
        let Some(options) = self.config.qdrant.options()? else {
            return Ok(None);
        };
        let identity = self.identity()?.context(TOO_SHALLOW)?;
        let qdrant = Qdrant::new(options, self.embedder().profile().id(), tag_of(&identity));
        Ok(Some(self.qdrant.get_or_init(|| qdrant)))
    }

    /// Host and port of the server, if one is set.
    pub(crate) fn sharing_host(&self) -> Option<String> {
        let address = self.config.qdrant.server.address.value.as_ref()?;
        Some(Endpoint::new(address).ok()?.host())
    }

    /// Puts the vectors of what is indexed of some trees to where they are shared; `None` if they are not.
    pub fn share_vectors(
        &self,
        trees: &[TreeId],
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Option<Shared>> {
        let qdrant = match self.sharing() {
            Ok(Some(qdrant)) => qdrant,
            Ok(None) => return Ok(None),
            // That is no failure of the index.
            Err(error) => {
                return Ok(Some(Shared {
                    stopped: Some(format!("{error:#}")),
                    ..Shared::default()
                }));
            }
        };
        let Some(sidecar) = self.open_sidecar()? else {
            return Ok(None);
        };
        let own_profile = self.own_profile();
        let sharing = self.sharing_of(qdrant, &sidecar, &own_profile);
        Ok(Some(sharing.run(trees, progress, interrupt)?))
    }

    fn sharing_of<'a>(&'a self, qdrant: &'a Qdrant, sidecar: &'a Sidecar, own_profile: &'a str) -> Sharing<'a> {
        Sharing {
            sidecar,
            shared: qdrant,
            profile: self.embedder().profile().id(),
            own_profile,
            recipe: self.build_options().recipe,
        }
    }

    /// How many vectors this clone has shared of chunks that it does not keep any more; `None` if none are shared.
    pub(crate) fn gone_but_shared(&self) -> Result<Option<usize>> {
        let Some((qdrant, sidecar)) = self.sharing()?.zip(self.open_sidecar()?) else {
            return Ok(None);
        };
        let own_profile = self.own_profile();
        Ok(Some(self.sharing_of(qdrant, &sidecar, &own_profile).gone()?.len()))
    }

    /// Removes these where they are shared, and looks what is there then. Returns how many they are, and why they are still there, if so.
    pub(crate) fn remove_gone(
        &self,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Option<(usize, Option<String>)>> {
        let Some((qdrant, sidecar)) = self.sharing()?.zip(self.open_sidecar()?) else {
            return Ok(None);
        };
        let own_profile = self.own_profile();
        let sharing = self.sharing_of(qdrant, &sidecar, &own_profile);
        let (n_gone, mut why) = sharing.remove_gone(interrupt)?;
        if let Some(head) = self.target("HEAD")?.filter(|_| why.is_none() && n_gone > 0) {
            why = sharing.run(&[head.tree], progress, interrupt)?.stopped;
        }
        Ok(Some((n_gone, why)))
    }

    /// Has all shared vectors of the model in use move to a new collection, made as it is set now.
    pub(crate) fn move_collection(&self, interrupt: &AtomicBool) -> Result<Moved> {
        let qdrant = self
            .sharing()?
            .context("no Qdrant is set: codescout config set qdrant.server ADDRESS")?;
        Ok(qdrant.move_collection(interrupt)?)
    }

    /// Where the vectors of a maker may be already.
    pub(super) fn shared_for(&self, maker: Maker<'_>) -> Option<&dyn SharedVectors> {
        match maker {
            Maker::Dense(_) => self.sharing().ok().flatten().map(|qdrant| qdrant as &dyn SharedVectors),
            Maker::Sparse(_) => None,
        }
    }

    /// Tells the models on other machines by what they are known again.
    pub(crate) fn know_models(&self) {
        let known = |profile| {
            let sidecar = self.open_sidecar().ok()??;
            RowFile::open(Arc::new(probe_of(&sidecar, profile).ok()??)).ok()
        };
        if let Some(model) = self.remote_model() {
            model.know_by(|| known(model.profile().id()));
        }
        if let Some(model) = self.remote_sparse() {
            model.know_by(|| known(model.profile().id()));
        }
    }

    /// What answers questions about a view, with the help of others as it is set, until `interrupt` is set.
    pub fn searcher<'a>(&'a self, view: &'a View, interrupt: &'a AtomicBool) -> Result<Searcher<'a>> {
        self.know_models();
        let mut searcher = Searcher::new(view, self.embedder(), self.static_model())?.until(interrupt);
        if let Some(model) = self.remote_sparse() {
            searcher = searcher.with_sparse(model, self.config.sparse.weight());
        }
        if let Some(elsewhere) = self.elsewhere(view, interrupt)? {
            searcher = searcher.with_elsewhere(elsewhere);
        }
        Ok(searcher)
    }

    /// The vectors of a view that are with a server, as far as that is known.
    pub fn elsewhere<'a>(&'a self, view: &'a View, interrupt: &'a AtomicBool) -> Result<Option<Elsewhere<'a>>> {
        if self.config.qdrant.server.address.value.is_none() {
            return Ok(None);
        }
        let Some(there) = self.there().unwrap_or_else(|error| {
            tracing::warn!("what is shared is not known: {error:#}");
            None
        }) else {
            return Ok(None);
        };
        // Numbers of another epoch are others: garbage was collected since the view was opened, or since vectors were shared.
        if there.epoch != view.segments().epoch() {
            return Ok(None);
        }
        let Some(qdrant) = self.sharing()? else {
            return Ok(None);
        };
        let holds = there.docs.clone();
        let index = qdrant.index(view.segments(), there, interrupt);
        let scan_below = u64::from(self.config.qdrant.scan_below.value);
        Ok(Some(Elsewhere {
            min_docs: scan_below.max(index.min_live(LEG_CANDIDATES)),
            index: Box::new(index),
            holds,
        }))
    }

    /// What is known to be shared, if anything is.
    pub(crate) fn there(&self) -> Result<Option<There>> {
        let Some(sidecar) = self.open_sidecar()? else {
            return Ok(None);
        };
        // Who has not shared anything has not looked for the identity; a damaged one is looked for by who shares next.
        let noted = sidecar.repository_identity().unwrap_or_default();
        if self.config.qdrant.repository.value.is_none() && noted.is_none() {
            return Ok(None);
        }
        let Some(qdrant) = self.sharing()? else {
            return Ok(None);
        };
        Ok(There::load(
            &sidecar,
            self.embedder().profile().id(),
            qdrant.repository(),
        )?)
    }

    /// What all clones of the repository have in common: what is set, or the id of the first commit. `None` if the clone is too
    /// shallow to tell.
    pub(crate) fn identity(&self) -> Result<Option<String>> {
        if let Some(set) = &self.config.qdrant.repository.value {
            return Ok(Some(set.clone()));
        }
        let sidecar = self.open_sidecar()?;
        // What is damaged is written anew.
        let noted = |sidecar: &Sidecar| match sidecar.repository_identity() {
            Err(RecordError::Damaged { .. } | RecordError::Format { .. }) => Ok(None),
            noted => noted,
        };
        if let Some(noted) = sidecar.as_ref().map(noted).transpose()?.flatten() {
            return Ok(Some(noted));
        }
        let head = self.repository.head()?.commit().context("there are no commits yet")?;
        let Some(first) = self.repository.first_commit(head)? else {
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

/// Stands for a repository without naming it.
fn tag_of(identity: &str) -> RepositoryTag {
    let hash = blake3::derive_key("codescout repository 1", identity.trim().as_bytes());
    RepositoryTag(hash[..16].try_into().expect("sixteen bytes"))
}
