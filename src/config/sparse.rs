//! The settings of a server for sparse vectors.

use std::path::PathBuf;
use std::time::Duration;

use crate::remote::{KeyHeader, SparseOptions};

use super::env::Environment;
use super::file::Settings;
use super::resolve::{ConfigError, Section, Setting, shown, shown_or};
use super::server::{ServerConfig, ServerNames, server_names};

const NAMES: ServerNames = server_names!("sparse", "CODESCOUT_SPARSE");
const DEFAULT_MODEL: &str = "splade";
const DEFAULT_IN_FLIGHT: u32 = 4;
const DEFAULT_TIMEOUT_S: u32 = 60;
const DEFAULT_QUERY_TIMEOUT_MS: u32 = 2000;
const DEFAULT_WEIGHT_PERCENT: u32 = 100;

/// `[sparse]`
#[derive(Clone, Debug)]
pub struct SparseConfig {
    /// Without an address there are no sparse vectors.
    pub server: ServerConfig,
    model: Setting<String>,
    revision: Setting<String>,
    batch: Setting<Option<u32>>,
    in_flight: Setting<u32>,
    timeout_s: Setting<u32>,
    query_timeout_ms: Setting<u32>,
    weight_percent: Setting<u32>,
}

impl SparseConfig {
    pub(super) fn resolve(environment: &Environment, layers: &[(PathBuf, Settings)]) -> Result<Self, ConfigError> {
        let section = Section::new(layers, |settings| &settings.sparse);
        Ok(Self {
            server: ServerConfig::resolve(NAMES, environment.sparse_server.as_ref(), &section)?,
            model: section.or(|set| set.model.clone(), DEFAULT_MODEL.to_owned()),
            revision: section.or(|set| set.revision.clone(), String::new()),
            batch: section.maybe(|set| set.batch),
            in_flight: section.or(|set| set.in_flight, DEFAULT_IN_FLIGHT),
            timeout_s: section.or(|set| set.timeout_s, DEFAULT_TIMEOUT_S),
            query_timeout_ms: section.or(|set| set.query_timeout_ms, DEFAULT_QUERY_TIMEOUT_MS),
            weight_percent: section.or(|set| set.weight_percent, DEFAULT_WEIGHT_PERCENT),
        })
    }

    /// Every setting as key, value and origin, for people.
    pub(super) fn entries(&self) -> Vec<(&'static str, String, String)> {
        let mut entries = self.server.entries().to_vec();
        entries.extend([
            shown("sparse.model", &self.model),
            shown("sparse.revision", &self.revision),
            shown_or("sparse.batch", &self.batch, "the server's"),
            shown("sparse.in_flight", &self.in_flight),
            shown("sparse.timeout_s", &self.timeout_s),
            shown("sparse.query_timeout_ms", &self.query_timeout_ms),
            shown("sparse.weight_percent", &self.weight_percent),
        ]);
        entries
    }

    /// What the adapter is made with, if a server is set. Reads the key.
    pub(super) fn options(&self) -> Result<Option<SparseOptions>, ConfigError> {
        let Some(endpoint) = self.server.endpoint(KeyHeader::Bearer)? else {
            return Ok(None);
        };
        Ok(Some(SparseOptions {
            endpoint,
            model: self.model.value.clone(),
            revision: self.revision.value.clone(),
            batch: self.batch.value.map(|batch| batch as usize),
            in_flight: self.in_flight.value.clamp(1, 256) as usize,
            timeout: Duration::from_secs(self.timeout_s.value.max(1).into()),
            query_timeout: Duration::from_millis(self.query_timeout_ms.value.max(1).into()),
        }))
    }

    /// What sparse vectors count in an order, as a share of what they count by default.
    pub fn weight(&self) -> f32 {
        self.weight_percent.value as f32 / 100.0
    }
}
