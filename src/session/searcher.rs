//! Makes the searcher of a view.

use std::sync::atomic::AtomicBool;

use super::error::Result;
use super::workspace::Workspace;
use crate::embed::{Embedder, SparseEmbedder};
use crate::ingest::load_probe;
use crate::query::{Reranking, Searcher, Sources};
use crate::snapshot::View;

impl Workspace {
    /// Returns the configuration for reranking the best candidates in a view, if a reranker is configured.
    pub fn reranking<'a>(&'a self, view: &'a View, interrupt: &'a AtomicBool) -> Option<Reranking<'a>> {
        self.models.reranker().map(|reranker| Reranking {
            reranker,
            n_candidates: self.config.rerank.n_candidates(),
            sources: Sources::new(view, &self.repository),
            interrupt,
        })
    }

    /// Creates the searcher of a view with the configured remote models. Searches stop when `interrupt` is set.
    pub fn searcher<'a>(&'a self, view: &'a View, interrupt: &'a AtomicBool) -> Result<Searcher<'a>> {
        self.know_models();
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
        Ok(searcher.with_messages(self.records().messages_of(view, interrupt)))
    }

    /// Passes the stored probe vectors to the remote models, which use them to detect a changed model.
    pub(crate) fn know_models(&self) {
        let known = |profile| {
            let sidecar = self.storage.open().ok()??;
            load_probe(&sidecar, profile).ok()?
        };
        if let Some(model) = self.models.remote() {
            model.set_known_probe(|| known(model.profile().id()));
        }
        if let Some(model) = self.models.remote_sparse() {
            model.set_known_probe(|| known(model.profile().id()));
        }
    }
}
