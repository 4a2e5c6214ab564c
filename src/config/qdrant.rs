//! The settings of a Qdrant that clones share their vectors by.

use std::path::PathBuf;
use std::time::Duration;

use crate::remote::{CollectionOptions, Compression, KeyHeader, QdrantOptions};

use super::env::Environment;
use super::file::Settings;
use super::resolve::{ConfigError, Section, Setting, one_of, shown, shown_or};
use super::server::{ServerConfig, ServerNames, server_names};

const NAMES: ServerNames = server_names!("qdrant", "CODESCOUT_QDRANT");
const DEFAULT_PREFIX: &str = "codescout";
/// Fewer documents are compared here sooner than a request is answered (docs/evaluation.md).
const DEFAULT_SCAN_BELOW: u32 = 1_000_000;
const DEFAULT_IN_FLIGHT: u32 = 2;
const DEFAULT_TIMEOUT_S: u32 = 60;
const DEFAULT_QUERY_TIMEOUT_MS: u32 = 1000;
const MAX_PREFIX: usize = 64;

/// `[qdrant]`
#[derive(Clone, Debug)]
pub struct QdrantConfig {
    /// Without an address vectors are shared with nobody.
    pub server: ServerConfig,
    prefix: Setting<String>,
    /// `qdrant.repository`: what the repository is known by there; by default what follows from its first commit.
    pub repository: Setting<Option<String>>,
    shards: Setting<Option<u32>>,
    replication: Setting<Option<u32>>,
    write_consistency: Setting<Option<u32>>,
    read_consistency: Setting<Option<String>>,
    compression: Setting<String>,
    on_disk: Setting<bool>,
    exact: Setting<bool>,
    /// `qdrant.scan_below`: fewer documents are compared here, without asking.
    pub scan_below: Setting<u32>,
    /// `qdrant.keep_local`: whether vectors of a server's model that are there are kept here as well.
    pub keep_local: Setting<bool>,
    in_flight: Setting<u32>,
    timeout_s: Setting<u32>,
    query_timeout_ms: Setting<u32>,
}

impl QdrantConfig {
    pub(super) fn resolve(environment: &Environment, layers: &[(PathBuf, Settings)]) -> Result<Self, ConfigError> {
        let section = Section::new(layers, |settings| &settings.qdrant);
        Ok(Self {
            server: ServerConfig::resolve(NAMES, environment.qdrant_server.as_ref(), &section)?,
            prefix: section.or(|set| set.prefix.clone(), DEFAULT_PREFIX.to_owned()),
            repository: section.maybe(|set| set.repository.clone()),
            shards: section.maybe(|set| set.shards),
            replication: section.maybe(|set| set.replication),
            write_consistency: section.maybe(|set| set.write_consistency),
            read_consistency: section.maybe(|set| set.read_consistency.clone()),
            compression: section.or(|set| set.compression.clone(), "none".to_owned()),
            on_disk: section.or(|set| set.on_disk, false),
            exact: section.or(|set| set.exact, true),
            scan_below: section.or(|set| set.scan_below, DEFAULT_SCAN_BELOW),
            keep_local: section.or(|set| set.keep_local, true),
            in_flight: section.or(|set| set.in_flight, DEFAULT_IN_FLIGHT),
            timeout_s: section.or(|set| set.timeout_s, DEFAULT_TIMEOUT_S),
            query_timeout_ms: section.or(|set| set.query_timeout_ms, DEFAULT_QUERY_TIMEOUT_MS),
        })
    }

    /// Every setting as key, value and origin, for people.
    pub(super) fn entries(&self) -> Vec<(&'static str, String, String)> {
        let mut entries = self.server.entries().to_vec();
        entries.extend([
            shown("qdrant.prefix", &self.prefix),
            shown_or("qdrant.repository", &self.repository, "by its first commit"),
            shown_or("qdrant.shards", &self.shards, "the server's"),
            shown_or("qdrant.replication", &self.replication, "the server's"),
            shown_or("qdrant.write_consistency", &self.write_consistency, "the server's"),
            shown_or("qdrant.read_consistency", &self.read_consistency, "the server's"),
            shown("qdrant.compression", &self.compression),
            shown("qdrant.on_disk", &self.on_disk),
            shown("qdrant.exact", &self.exact),
            shown("qdrant.scan_below", &self.scan_below),
            shown("qdrant.keep_local", &self.keep_local),
            shown("qdrant.in_flight", &self.in_flight),
            shown("qdrant.timeout_s", &self.timeout_s),
            shown("qdrant.query_timeout_ms", &self.query_timeout_ms),
        ]);
        entries
    }

    /// How it is asked, if a server is set. Reads the key.
    pub fn options(&self) -> Result<Option<QdrantOptions>, ConfigError> {
        let Some(endpoint) = self.server.endpoint(KeyHeader::ApiKey)? else {
            return Ok(None);
        };
        Ok(Some(QdrantOptions {
            endpoint,
            prefix: self.prefix()?,
            collection: CollectionOptions {
                shards: self.shards.value,
                replication: self.replication.value,
                write_consistency: self.write_consistency.value,
                compression: one_of(
                    &self.compression,
                    &[
                        ("none", Compression::None),
                        ("scalar", Compression::Scalar),
                        ("binary", Compression::Binary),
                        ("product", Compression::Product),
                    ],
                    "none, scalar, binary or product",
                )?,
                on_disk: self.on_disk.value,
            },
            exact: self.exact.value,
            read_consistency: self.read_consistency()?,
            query_timeout: Duration::from_millis(self.query_timeout_ms.value.max(1).into()),
            timeout: Duration::from_secs(self.timeout_s.value.max(1).into()),
            in_flight: self.in_flight.value.clamp(1, 64) as usize,
        }))
    }

    /// What can stand in an address without more ado.
    fn prefix(&self) -> Result<String, ConfigError> {
        let prefix = &self.prefix.value;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !prefix.is_empty() && prefix.len() <= MAX_PREFIX && prefix.bytes().all(is_plain) {
            Ok(prefix.clone())
        } else {
            Err(ConfigError::Value {
                origin: self.prefix.origin.clone(),
                value: prefix.clone(),
                expected: "a short name of letters, digits, hyphens and underscores for qdrant.prefix",
            })
        }
    }

    fn read_consistency(&self) -> Result<Option<String>, ConfigError> {
        let Some(consistency) = &self.read_consistency.value else {
            return Ok(None);
        };
        let is_number = consistency.parse::<u16>().is_ok_and(|number| number > 0);
        if is_number || matches!(consistency.as_str(), "majority" | "quorum" | "all") {
            Ok(Some(consistency.clone()))
        } else {
            Err(ConfigError::Value {
                origin: self.read_consistency.origin.clone(),
                value: consistency.clone(),
                expected: "a number, majority, quorum or all for qdrant.read_consistency",
            })
        }
    }
}
