//! The settings of a reranker on another machine, or in another process.

use std::path::PathBuf;
use std::time::Duration;

use crate::remote::{KeyHeader, RerankApi, RerankerOptions};

use super::env::Environment;
use super::file::Settings;
use super::resolve::{ConfigError, Section, Setting, from_variable, one_of, or_default, shown, shown_or};
use super::server::{ServerConfig, ServerNames, server_names};

const NAMES: ServerNames = server_names!("rerank", "CODESCOUT_RERANK");
const DEFAULT_API: &str = "cohere";
const DEFAULT_CANDIDATES: u32 = 50;
const DEFAULT_TIMEOUT_MS: u32 = 1500;

/// `[rerank]`.
#[derive(Clone, Debug)]
pub struct RerankConfig {
    /// Without an address nothing is reranked.
    pub server: ServerConfig,
    api: Setting<String>,
    model: Setting<String>,
    candidates: Setting<u32>,
    batch: Setting<Option<u32>>,
    timeout_ms: Setting<u32>,
}

impl RerankConfig {
    pub(super) fn resolve(environment: &Environment, layers: &[(PathBuf, Settings)]) -> Result<Self, ConfigError> {
        let section = Section::new(layers, |settings| &settings.rerank);
        let api = from_variable("CODESCOUT_RERANK_API", environment.rerank_api.as_ref(), "text")?;
        let model = from_variable("CODESCOUT_RERANK_MODEL", environment.rerank_model.as_ref(), "text")?;
        Ok(Self {
            server: ServerConfig::resolve(NAMES, environment.rerank_server.as_ref(), &section)?,
            api: or_default(
                api.or_else(|| section.get(|set| set.api.clone())),
                DEFAULT_API.to_owned(),
            ),
            model: or_default(model.or_else(|| section.get(|set| set.model.clone())), String::new()),
            candidates: section.or(|set| set.candidates, DEFAULT_CANDIDATES),
            batch: section.maybe(|set| set.batch),
            timeout_ms: section.or(|set| set.timeout_ms, DEFAULT_TIMEOUT_MS),
        })
    }

    /// Every setting as key, value and origin, for people.
    pub(super) fn entries(&self) -> Vec<(&'static str, String, String)> {
        let mut entries = self.server.entries().to_vec();
        entries.extend([
            shown("rerank.api", &self.api),
            shown("rerank.model", &self.model),
            shown("rerank.candidates", &self.candidates),
            shown_or("rerank.batch", &self.batch, "what such servers take"),
            shown("rerank.timeout_ms", &self.timeout_ms),
        ]);
        entries
    }

    /// How many of the first candidates are judged.
    pub fn n_candidates(&self) -> usize {
        self.candidates.value as usize
    }

    /// What the adapter is made with, if a server is set. Reads the key.
    pub fn options(&self) -> Result<Option<RerankerOptions>, ConfigError> {
        let Some(endpoint) = self.server.endpoint(KeyHeader::Bearer)? else {
            return Ok(None);
        };
        Ok(Some(RerankerOptions {
            endpoint,
            api: one_of(
                &self.api,
                &[
                    ("tei", RerankApi::Tei),
                    ("infinity", RerankApi::Infinity),
                    ("cohere", RerankApi::Cohere),
                    ("jina", RerankApi::Jina),
                    ("voyage", RerankApi::Voyage),
                    ("llamacpp", RerankApi::LlamaCpp),
                ],
                "tei, infinity, cohere, jina, voyage or llamacpp",
            )?,
            model: self.model.value.clone(),
            batch: self.batch.value.map(|batch| batch as usize),
            timeout: Duration::from_millis(self.timeout_ms.value.max(1).into()),
        }))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::{Config, Overrides, RepositoryFiles};

    #[test]
    fn variables_set_one_up_and_without_an_address_there_is_none() {
        let resolve = |environment: &Environment| {
            let config = Config::resolve(&Overrides::default(), environment, &RepositoryFiles::default()).unwrap();
            config.rerank.options()
        };
        assert!(resolve(&Environment::default()).unwrap().is_none());
        let set = Environment {
            rerank_server: Some("https://api.cohere.com/v2".into()),
            rerank_model: Some("rerank-v3.5".into()),
            ..Environment::default()
        };
        let options = resolve(&set).unwrap().unwrap();
        assert_eq!(
            (options.endpoint.host().as_str(), options.api, options.model.as_str()),
            ("api.cohere.com", RerankApi::Cohere, "rerank-v3.5")
        );
        let odd = Environment {
            rerank_api: Some("soap".into()),
            ..set
        };
        assert!(matches!(resolve(&odd), Err(ConfigError::Value { .. })));
    }
}
