//! The settings that are common to all servers: address, key and proxy.

use crate::remote::{Endpoint, EndpointError, KeyHeader, Secret};

use super::env;
use super::resolve::{ConfigError, Setting};
use super::settings::{EmbeddingConfig, QdrantConfig, RerankConfig, SparseConfig};
use super::value::{AbsolutePath, Address};

/// The settings of one server. Its key is read when the [`Endpoint`] is created.
pub(super) struct Server<'a> {
    address: &'a Setting<Option<Address>>,
    key_file: &'a Setting<Option<AbsolutePath>>,
    key_variable: &'a Setting<String>,
    proxy: &'a Setting<Option<Address>>,
}

macro_rules! has_server {
    ($($section:ident),+) => {
        $(impl $section {
            pub(super) fn server(&self) -> Server<'_> {
                Server {
                    address: &self.server,
                    key_file: &self.key_file,
                    key_variable: &self.key_variable,
                    proxy: &self.proxy,
                }
            }
        })+
    };
}

has_server!(EmbeddingConfig, SparseConfig, RerankConfig, QdrantConfig);

impl Server<'_> {
    /// Returns the endpoint (address, key and proxy) if an address is configured. Reads the key.
    pub(super) fn endpoint(&self, header: KeyHeader) -> Result<Option<Endpoint>, ConfigError> {
        let Some(address) = &self.address.value else {
            return Ok(None);
        };
        let mut endpoint = Endpoint::new(address).map_err(wrong(self.address))?;
        if let Some(proxy) = &self.proxy.value {
            endpoint = endpoint.with_proxy(proxy).map_err(wrong(self.proxy))?;
        }
        Ok(Some(match self.key()? {
            Some(key) => endpoint.with_key(key, header).map_err(wrong(self.address))?,
            None => endpoint,
        }))
    }

    fn key(&self) -> Result<Option<Secret>, ConfigError> {
        let Some(path) = &self.key_file.value else {
            return Ok(env::secret(&self.key_variable.value).map(|text| Secret::new(&text)));
        };
        match Secret::read(path) {
            // The key file may be on a disk that is not mounted. Queries work without the server, and the server's
            // error will mention the key.
            Err(error @ EndpointError::KeyFile { .. }) => {
                tracing::warn!("{error}");
                Ok(None)
            }
            key => key.map(Some).map_err(wrong(self.key_file)),
        }
    }
}

fn wrong<T>(setting: &Setting<T>) -> impl FnOnce(EndpointError) -> ConfigError {
    let (origin, key) = (setting.origin.clone(), setting.key);
    move |source| ConfigError::Server { origin, key, source }
}
