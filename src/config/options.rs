//! Converts settings to the options of other modules.

use std::path::Path;
use std::time::Duration;

use crate::extract;
use crate::history::HistoryLimit;
use crate::index::BuildOptions;
use crate::index::dense::Quantisation;
use crate::ingest::CollectOptions;
use crate::remote::{EmbedderOptions, KeyHeader, QdrantOptions, RerankerOptions, SparseOptions};

use super::resolve::ConfigError;
use super::settings::{Config, QdrantConfig, RerankConfig, SparseConfig};

/// Maximum size of the text that a segment covers. Large enough for few segments, small enough to build one in 256 MB
/// of memory.
const MAX_SEGMENT_BYTES: usize = 96 << 20;
/// Version of the rules outside `extract` that determine what is indexed or stored. Incremented when they change.
/// History: 1 is the first version.
const RULES_VERSION: u32 = 1;

fn seconds(setting: u32) -> Duration {
    Duration::from_secs(setting.max(1).into())
}

fn milliseconds(setting: u32) -> Duration {
    Duration::from_millis(setting.max(1).into())
}

impl Config {
    /// Returns the maximum number of results of an answer, if a request does not specify it.
    pub fn max_results(&self) -> usize {
        match self.search.limit.value {
            0 => usize::MAX,
            limit => limit as usize,
        }
    }

    /// Returns the options of the embedding server, if one is configured. Reads its key.
    pub fn remote_embedder(&self) -> Result<Option<EmbedderOptions>, ConfigError> {
        let settings = &self.embedding;
        let Some(endpoint) = settings.server().endpoint(KeyHeader::Bearer)? else {
            return Ok(None);
        };
        let model = settings.model.value.as_deref().unwrap_or(Path::new(""));
        Ok(Some(EmbedderOptions {
            endpoint,
            api: settings.api.value,
            model: model.to_string_lossy().into_owned(),
            revision: settings.revision.value.clone(),
            query_prefix: settings.query_prefix.value.clone(),
            document_prefix: settings.document_prefix.value.clone(),
            dimensions: settings.dimensions.value.map(|dimensions| dimensions as usize),
            encoding: settings.encoding.value,
            batch: settings.batch.value.map(|batch| batch as usize),
            in_flight: settings.in_flight.value.clamp(1, 256) as usize,
            timeout: seconds(settings.timeout_s.value),
            query_timeout: milliseconds(settings.query_timeout_ms.value),
        }))
    }

    /// Returns the options for garbage collection.
    pub fn collect_options(&self) -> CollectOptions {
        let settings = &self.gc;
        CollectOptions {
            reflog_days: settings.reflog_days.value,
            max_bytes: Some(settings.max_bytes.value).filter(|&max_bytes| max_bytes > 0),
            dead_percent: settings.dead_percent.value,
            deleted_files: settings.deleted_files.value as usize,
        }
    }

    /// Returns the limit on the commits to record. `now` is the current time in seconds since 1970.
    pub fn history_limit(&self, now: i64) -> HistoryLimit {
        HistoryLimit {
            max_commits: self.history.max_commits.value as usize,
            since: self.history.since.value.moment(now),
        }
    }

    /// Returns the options for building segments.
    pub fn build_options(&self) -> BuildOptions {
        // Larger chunks than the default of `extract`, because they find the right lines most often
        // (docs/evaluation.md).
        let extract = extract::Options {
            target_bytes: 1_500,
            small_bytes: 500,
            max_bytes: 3_000,
            ..extract::Options::default()
        };
        let max_blob_bytes = self.index.max_blob_bytes.value;
        let mut hasher = blake3::Hasher::new();
        let chunking = [
            extract.target_bytes,
            extract.small_bytes,
            extract.max_bytes,
            extract.overlap_lines,
        ];
        for number in chunking.into_iter().chain([extract::recipe_number(), RULES_VERSION]) {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&max_blob_bytes.to_le_bytes());
        let recipe = u64::from_le_bytes(hasher.finalize().as_bytes()[..8].try_into().expect("eight bytes"));
        BuildOptions {
            extract,
            max_blob_bytes,
            recipe,
            quantisation: Quantisation::default(),
            max_segment_bytes: MAX_SEGMENT_BYTES,
        }
    }
}

impl SparseConfig {
    /// Returns the options of the server for sparse vectors, if one is configured. Reads its key.
    pub fn options(&self) -> Result<Option<SparseOptions>, ConfigError> {
        let Some(endpoint) = self.server().endpoint(KeyHeader::Bearer)? else {
            return Ok(None);
        };
        Ok(Some(SparseOptions {
            endpoint,
            model: self.model.value.clone(),
            revision: self.revision.value.clone(),
            batch: self.batch.value.map(|batch| batch as usize),
            in_flight: self.in_flight.value.clamp(1, 256) as usize,
            timeout: seconds(self.timeout_s.value),
            query_timeout: milliseconds(self.query_timeout_ms.value),
        }))
    }

    /// Returns the weight of sparse vectors in the ranking; 1 is the default.
    pub fn weight(&self) -> f32 {
        self.weight_percent.value as f32 / 100.0
    }
}

impl RerankConfig {
    /// Returns the number of results to rerank, from the first.
    pub fn n_candidates(&self) -> usize {
        self.candidates.value as usize
    }

    /// Returns the options of the reranker, if one is configured. Reads its key.
    pub fn options(&self) -> Result<Option<RerankerOptions>, ConfigError> {
        let Some(endpoint) = self.server().endpoint(KeyHeader::Bearer)? else {
            return Ok(None);
        };
        Ok(Some(RerankerOptions {
            endpoint,
            api: self.api.value,
            model: self.model.value.clone(),
            batch: self.batch.value.map(|batch| batch as usize),
            timeout: milliseconds(self.timeout_ms.value),
        }))
    }
}

impl QdrantConfig {
    /// Returns the options of the Qdrant server, if one is configured. Reads its key.
    pub fn options(&self) -> Result<Option<QdrantOptions>, ConfigError> {
        let Some(endpoint) = self.server().endpoint(KeyHeader::ApiKey)? else {
            return Ok(None);
        };
        Ok(Some(QdrantOptions {
            endpoint,
            prefix: self.prefix.value.to_string(),
            query_timeout: milliseconds(self.query_timeout_ms.value),
            timeout: seconds(self.timeout_s.value),
        }))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::{Environment, Overrides, RepositoryFiles};
    use crate::remote::RerankApi;

    #[test]
    fn variables_set_up_a_reranker_and_without_an_address_there_is_none() {
        let resolve = |variables: &[(&'static str, &str)]| {
            let environment = Environment::with_settings(variables);
            Config::resolve(&Overrides::default(), &environment, &RepositoryFiles::default())
        };
        assert!(resolve(&[]).unwrap().rerank.options().unwrap().is_none());
        let set = [
            ("CODESCOUT_RERANK_SERVER", "https://api.cohere.com/v2"),
            ("CODESCOUT_RERANK_MODEL", "rerank-v3.5"),
        ];
        let options = resolve(&set).unwrap().rerank.options().unwrap().unwrap();
        assert_eq!(
            (options.endpoint.host().as_str(), options.api, options.model.as_str()),
            ("api.cohere.com", RerankApi::Cohere, "rerank-v3.5")
        );
        let odd = resolve(&[("CODESCOUT_RERANK_API", "soap")]).unwrap_err();
        assert_eq!(
            odd.to_string(),
            "CODESCOUT_RERANK_API: invalid value \"soap\" for rerank.api: expected tei, infinity, cohere, jina, voyage or llamacpp"
        );
    }
}
