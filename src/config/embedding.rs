//! The settings of an embedder on another machine, or in another process.

use std::path::PathBuf;
use std::time::Duration;

use crate::remote::{EmbedderOptions, EmbeddingApi, Encoding, KeyHeader};

use super::env::Environment;
use super::file::Settings;
use super::resolve::{ConfigError, Section, Setting, from_variable, one_of, or_default, shown, shown_or};
use super::server::{ServerConfig, ServerNames, server_names};

const NAMES: ServerNames = server_names!("embedding", "CODESCOUT_EMBEDDING");
const DEFAULT_IN_FLIGHT: u32 = 4;
const DEFAULT_TIMEOUT_S: u32 = 60;
const DEFAULT_QUERY_TIMEOUT_MS: u32 = 2000;

/// `[embedding]`, less the model.
#[derive(Clone, Debug)]
pub struct EmbeddingConfig {
    /// Without an address it is a model in this process.
    pub server: ServerConfig,
    api: Setting<String>,
    revision: Setting<String>,
    query_prefix: Setting<String>,
    document_prefix: Setting<String>,
    dimensions: Setting<Option<u32>>,
    encoding: Setting<String>,
    batch: Setting<Option<u32>>,
    in_flight: Setting<u32>,
    timeout_s: Setting<u32>,
    query_timeout_ms: Setting<u32>,
}

impl EmbeddingConfig {
    pub(super) fn resolve(environment: &Environment, layers: &[(PathBuf, Settings)]) -> Result<Self, ConfigError> {
        let section = Section::new(layers, |settings| &settings.embedding);
        let api = from_variable("CODESCOUT_EMBEDDING_API", environment.embedding_api.as_ref(), "text")?;
        Ok(Self {
            server: ServerConfig::resolve(NAMES, environment.embedding_server.as_ref(), &section)?,
            api: or_default(api.or_else(|| section.get(|set| set.api.clone())), "openai".to_owned()),
            revision: section.or(|set| set.revision.clone(), String::new()),
            query_prefix: section.or(|set| set.query_prefix.clone(), String::new()),
            document_prefix: section.or(|set| set.document_prefix.clone(), String::new()),
            dimensions: section.maybe(|set| set.dimensions),
            encoding: section.or(|set| set.encoding.clone(), "float".to_owned()),
            batch: section.maybe(|set| set.batch),
            in_flight: section.or(|set| set.in_flight, DEFAULT_IN_FLIGHT),
            timeout_s: section.or(|set| set.timeout_s, DEFAULT_TIMEOUT_S),
            query_timeout_ms: section.or(|set| set.query_timeout_ms, DEFAULT_QUERY_TIMEOUT_MS),
        })
    }

    /// Every setting as key, value and origin, for people.
    pub(super) fn entries(&self) -> Vec<(&'static str, String, String)> {
        let mut entries = self.server.entries().to_vec();
        entries.insert(1, shown("embedding.api", &self.api));
        entries.extend([
            shown("embedding.revision", &self.revision),
            shown("embedding.query_prefix", &self.query_prefix),
            shown("embedding.document_prefix", &self.document_prefix),
            shown_or("embedding.dimensions", &self.dimensions, "the model's"),
            shown("embedding.encoding", &self.encoding),
            shown_or("embedding.batch", &self.batch, "the server's"),
            shown("embedding.in_flight", &self.in_flight),
            shown("embedding.timeout_s", &self.timeout_s),
            shown("embedding.query_timeout_ms", &self.query_timeout_ms),
        ]);
        entries
    }

    /// What the adapter is made with, if a server is set; `model` is its name there. Reads the key.
    pub(super) fn embedder_options(&self, model: &str) -> Result<Option<EmbedderOptions>, ConfigError> {
        let Some(endpoint) = self.server.endpoint(KeyHeader::Bearer)? else {
            return Ok(None);
        };
        let seconds = |seconds: u32| Duration::from_secs(seconds.max(1).into());
        Ok(Some(EmbedderOptions {
            endpoint,
            api: one_of(
                &self.api,
                &[
                    ("openai", EmbeddingApi::OpenAi),
                    ("ollama", EmbeddingApi::Ollama),
                    ("tei", EmbeddingApi::Tei),
                ],
                "openai, ollama or tei",
            )?,
            model: model.to_owned(),
            revision: self.revision.value.clone(),
            query_prefix: self.query_prefix.value.clone(),
            document_prefix: self.document_prefix.value.clone(),
            dimensions: self.dimensions.value.map(|dimensions| dimensions as usize),
            encoding: one_of(
                &self.encoding,
                &[("float", Encoding::Float), ("base64", Encoding::Base64)],
                "float or base64",
            )?,
            batch: self.batch.value.map(|batch| batch as usize),
            in_flight: self.in_flight.value.clamp(1, 256) as usize,
            timeout: seconds(self.timeout_s.value),
            query_timeout: Duration::from_millis(self.query_timeout_ms.value.max(1).into()),
        }))
    }
}
