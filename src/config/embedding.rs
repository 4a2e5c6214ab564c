//! The settings of an embedder on another machine, or in another process.

use std::path::PathBuf;
use std::time::Duration;

use crate::remote::{EmbedderOptions, EmbeddingApi, Encoding, Endpoint, EndpointError, KeyHeader, Secret};

use super::env::{self, Environment};
use super::file::{EmbeddingSettings, Settings};
use super::resolve::{ConfigError, Origin, Setting, from_files, from_variable, or_default};

/// Where the key is looked for if nothing else is said.
const KEY_VARIABLE: &str = "CODESCOUT_EMBEDDING_KEY";
const DEFAULT_IN_FLIGHT: u32 = 4;
const DEFAULT_TIMEOUT_S: u32 = 60;
const DEFAULT_QUERY_TIMEOUT_MS: u32 = 2000;
const ABSOLUTE: &str = "an absolute path";

/// `[embedding]`, less the model.
#[derive(Clone, Debug)]
pub struct EmbeddingConfig {
    /// `embedding.server`: the address; `None` for a model in this process.
    pub server: Setting<Option<String>>,
    api: Setting<String>,
    key_file: Setting<Option<PathBuf>>,
    key_variable: Setting<String>,
    proxy: Setting<Option<String>>,
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
        fn pick<T>(
            layers: &[(PathBuf, Settings)],
            pick: impl Fn(&EmbeddingSettings) -> Option<T>,
        ) -> Option<Setting<T>> {
            from_files(layers, |settings| pick(&settings.embedding))
        }
        fn maybe<T>(setting: Option<Setting<T>>) -> Setting<Option<T>> {
            or_default(
                setting.map(|Setting { value, origin }| Setting {
                    value: Some(value),
                    origin,
                }),
                None,
            )
        }
        let text = "text";
        let server = from_variable(
            "CODESCOUT_EMBEDDING_SERVER",
            environment.embedding_server.as_ref(),
            text,
        )?;
        let api = from_variable("CODESCOUT_EMBEDDING_API", environment.embedding_api.as_ref(), text)?;
        Ok(Self {
            server: maybe(server.or_else(|| pick(layers, |set| set.server.clone()))),
            api: or_default(api.or_else(|| pick(layers, |set| set.api.clone())), "openai".to_owned()),
            key_file: maybe(pick(layers, |set| set.key_file.clone())),
            key_variable: or_default(pick(layers, |set| set.key_variable.clone()), KEY_VARIABLE.to_owned()),
            proxy: maybe(pick(layers, |set| set.proxy.clone())),
            revision: or_default(pick(layers, |set| set.revision.clone()), String::new()),
            query_prefix: or_default(pick(layers, |set| set.query_prefix.clone()), String::new()),
            document_prefix: or_default(pick(layers, |set| set.document_prefix.clone()), String::new()),
            dimensions: maybe(pick(layers, |set| set.dimensions)),
            encoding: or_default(pick(layers, |set| set.encoding.clone()), "float".to_owned()),
            batch: maybe(pick(layers, |set| set.batch)),
            in_flight: or_default(pick(layers, |set| set.in_flight), DEFAULT_IN_FLIGHT),
            timeout_s: or_default(pick(layers, |set| set.timeout_s), DEFAULT_TIMEOUT_S),
            query_timeout_ms: or_default(pick(layers, |set| set.query_timeout_ms), DEFAULT_QUERY_TIMEOUT_MS),
        })
    }

    /// Every setting as key, value and origin, for people.
    pub(super) fn entries(&self) -> Vec<(&'static str, String, String)> {
        fn shown<T: ToString>(key: &'static str, setting: &Setting<T>) -> (&'static str, String, String) {
            (key, setting.value.to_string(), setting.origin.to_string())
        }
        fn maybe<T: ToString>(
            key: &'static str,
            setting: &Setting<Option<T>>,
            none: &str,
        ) -> (&'static str, String, String) {
            let value = setting
                .value
                .as_ref()
                .map_or_else(|| none.to_owned(), ToString::to_string);
            (key, value, setting.origin.to_string())
        }
        // An address that holds a password is refused, and not shown before.
        let server = match &self.server.value {
            Some(address) if Endpoint::new(address).is_err() => "not a usable address".to_owned(),
            Some(address) => address.clone(),
            None => "none".to_owned(),
        };
        let key_file = self.key_file.value.as_ref().map(|path| path.display().to_string());
        vec![
            ("embedding.server", server, self.server.origin.to_string()),
            shown("embedding.api", &self.api),
            (
                "embedding.key_file",
                key_file.unwrap_or_else(|| "none".to_owned()),
                self.key_file.origin.to_string(),
            ),
            shown("embedding.key_variable", &self.key_variable),
            maybe("embedding.proxy", &self.proxy, "none"),
            shown("embedding.revision", &self.revision),
            shown("embedding.query_prefix", &self.query_prefix),
            shown("embedding.document_prefix", &self.document_prefix),
            maybe("embedding.dimensions", &self.dimensions, "the model's"),
            shown("embedding.encoding", &self.encoding),
            maybe("embedding.batch", &self.batch, "the server's"),
            shown("embedding.in_flight", &self.in_flight),
            shown("embedding.timeout_s", &self.timeout_s),
            shown("embedding.query_timeout_ms", &self.query_timeout_ms),
        ]
    }

    /// What the adapter is made with, if a server is set; `model` is its name there. Reads the key.
    pub(super) fn embedder_options(&self, model: &str) -> Result<Option<EmbedderOptions>, ConfigError> {
        let Some(address) = &self.server.value else {
            return Ok(None);
        };
        let seconds = |seconds: u32| Duration::from_secs(seconds.max(1).into());
        Ok(Some(EmbedderOptions {
            endpoint: self.endpoint(address)?,
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

    fn endpoint(&self, address: &str) -> Result<Endpoint, ConfigError> {
        let mut endpoint = Endpoint::new(address)?;
        if let Some(proxy) = &self.proxy.value {
            endpoint = endpoint.with_proxy(proxy)?;
        }
        match self.key()? {
            Some(key) => Ok(endpoint.with_key(key, KeyHeader::Bearer)?),
            None => Ok(endpoint),
        }
    }

    fn key(&self) -> Result<Option<Secret>, ConfigError> {
        let Some(path) = &self.key_file.value else {
            return Ok(env::secret(&self.key_variable.value).map(|text| Secret::new(&text)));
        };
        if !path.is_absolute() {
            return Err(ConfigError::Value {
                origin: self.key_file.origin.clone(),
                value: path.display().to_string(),
                expected: ABSOLUTE,
            });
        }
        match Secret::read(path) {
            // A disk that is not mounted is no reason to answer nothing; the server will say that it wants a key.
            Err(error @ EndpointError::KeyFile { .. }) => {
                tracing::warn!("{error}");
                Ok(None)
            }
            key => Ok(Some(key?)),
        }
    }
}

fn one_of<T: Copy>(setting: &Setting<String>, choices: &[(&str, T)], expected: &'static str) -> Result<T, ConfigError> {
    let found = choices.iter().find(|(name, _)| *name == setting.value);
    found.map(|(_, choice)| *choice).ok_or_else(|| ConfigError::Value {
        origin: Origin::clone(&setting.origin),
        value: setting.value.clone(),
        expected,
    })
}
