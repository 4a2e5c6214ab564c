//! What the sections of all servers have: where it is, and what it is shown to be let in.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::remote::{Endpoint, EndpointError, KeyHeader, Secret};

use super::env;
use super::resolve::{ConfigError, Origin, Section, Setting, from_variable, maybe, shown};

const ABSOLUTE: &str = "an absolute path";

/// What the settings of one server are called.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerNames {
    pub(super) server: &'static str,
    pub(super) key_file: &'static str,
    pub(super) key_variable: &'static str,
    pub(super) proxy: &'static str,
    /// The variable with the address.
    pub(super) address_variable: &'static str,
    /// Where the key is looked for if nothing else is said.
    pub(super) default_key_variable: &'static str,
}

/// The names of a section of settings files, and the beginning of the names of its variables.
macro_rules! server_names {
    ($section:literal, $variables:literal) => {
        $crate::config::server::ServerNames {
            server: concat!($section, ".server"),
            key_file: concat!($section, ".key_file"),
            key_variable: concat!($section, ".key_variable"),
            proxy: concat!($section, ".proxy"),
            address_variable: concat!($variables, "_SERVER"),
            default_key_variable: concat!($variables, "_KEY"),
        }
    };
}
pub(super) use server_names;

/// What a section of a settings file says of its server.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerSettings {
    pub(super) server: Option<String>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) key_variable: Option<String>,
    pub(super) proxy: Option<String>,
}

/// A section of a settings file that has a server.
pub(super) trait OfServer {
    /// What it says of where the server is, and of what lets in.
    fn of_server(&self) -> ServerSettings;
}

/// One server, resolved. Its key is read when an [`Endpoint`] is made.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    names: ServerNames,
    /// The address, if there is a server.
    pub address: Setting<Option<String>>,
    key_file: Setting<Option<PathBuf>>,
    key_variable: Setting<String>,
    proxy: Setting<Option<String>>,
}

impl ServerConfig {
    /// `address` is the value of the variable with it.
    pub(super) fn resolve<S: OfServer>(
        names: ServerNames,
        address: Option<&OsString>,
        section: &Section<'_, S>,
    ) -> Result<Self, ConfigError> {
        let address = from_variable(names.address_variable, address, "text")?;
        Ok(Self {
            names,
            address: maybe(address.or_else(|| section.get(|set| set.of_server().server))),
            key_file: section.maybe(|set| set.of_server().key_file),
            key_variable: section.or(
                |set| set.of_server().key_variable,
                names.default_key_variable.to_owned(),
            ),
            proxy: section.maybe(|set| set.of_server().proxy),
        })
    }

    /// Every setting as key, value and origin, for people.
    pub(super) fn entries(&self) -> [(&'static str, String, String); 4] {
        // An address that holds a password is refused, and not shown before.
        let address_of = |setting: &Setting<Option<String>>| match &setting.value {
            Some(address) if Endpoint::new(address).is_err() => "not a usable address".to_owned(),
            Some(address) => address.clone(),
            None => "none".to_owned(),
        };
        let key_file = self.key_file.value.as_ref().map(|path| path.display().to_string());
        [
            (
                self.names.server,
                address_of(&self.address),
                self.address.origin.to_string(),
            ),
            (
                self.names.key_file,
                key_file.unwrap_or_else(|| "none".to_owned()),
                self.key_file.origin.to_string(),
            ),
            shown(self.names.key_variable, &self.key_variable),
            (self.names.proxy, address_of(&self.proxy), self.proxy.origin.to_string()),
        ]
    }

    /// Where the server is, with its key, if one is set. Reads the key.
    pub(super) fn endpoint(&self, header: KeyHeader) -> Result<Option<Endpoint>, ConfigError> {
        let Some(address) = &self.address.value else {
            return Ok(None);
        };
        let of_address = || wrong(self.names.server, &self.address.origin);
        let mut endpoint = Endpoint::new(address).map_err(of_address())?;
        if let Some(proxy) = &self.proxy.value {
            let of_proxy = wrong(self.names.proxy, &self.proxy.origin);
            endpoint = endpoint.with_proxy(proxy).map_err(of_proxy)?;
        }
        Ok(Some(match self.key()? {
            Some(key) => endpoint.with_key(key, header).map_err(of_address())?,
            None => endpoint,
        }))
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
            key => key.map(Some).map_err(wrong(self.names.key_file, &self.key_file.origin)),
        }
    }
}

/// What is wrong with a setting.
fn wrong(key: &'static str, origin: &Origin) -> impl FnOnce(EndpointError) -> ConfigError {
    let origin = origin.clone();
    move |source| ConfigError::Server { origin, key, source }
}
