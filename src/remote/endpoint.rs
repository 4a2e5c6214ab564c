//! The address and credentials of a server.

use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

/// Maximum size of a key file. Real keys are much shorter.
const MAX_KEY_BYTES: u64 = 16 << 10;

/// The address of a server, with its key and proxy if they are set.
///
/// `Display` and `Debug` show only the address.
#[derive(Clone)]
pub struct Endpoint {
    base: Url,
    key: Option<(HeaderName, HeaderValue, Secret)>,
    proxy: Option<Url>,
}

/// A key or password. `Debug` does not print its value.
#[derive(Clone)]
pub struct Secret(String);

/// Header that carries the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer …`
    #[default]
    Bearer,
    /// `api-key: …`
    ApiKey,
}

/// An error in an address or a key.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The text is not a usable URL.
    #[error("{text:?} is not a server address: {why}")]
    Address {
        /// The address as given, without possible credentials.
        text: String,
        /// The reason.
        why: String,
    },
    /// The address contains a user name or password, which would be displayed and logged.
    #[error("the address of {host} has credentials in it; put the key in a file or an environment variable")]
    Credentials {
        /// Host of the address.
        host: String,
    },
    /// The key would be sent unencrypted over the network.
    #[error("a key is not sent to {host} over plain http; use https")]
    KeyInClear {
        /// Host of the address.
        host: String,
    },
    /// The key is not a valid header value.
    #[error("the key for {host} is empty or not a valid HTTP header value")]
    Key {
        /// Host of the address.
        host: String,
    },
    /// The key file cannot be read.
    #[error("cannot read the key in {}: {why}", .path.display())]
    KeyFile {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl Endpoint {
    /// Parses an address such as `https://host/v1`. Request paths are appended to its path.
    pub fn new(text: &str) -> Result<Self, EndpointError> {
        Ok(Self {
            base: checked_url(text)?,
            key: None,
            proxy: None,
        })
    }

    /// Adds a key. Fails if it would be sent unencrypted over the network.
    pub fn with_key(mut self, key: Secret, header: KeyHeader) -> Result<Self, EndpointError> {
        let host = self.host();
        if self.is_in_clear() {
            return Err(EndpointError::KeyInClear { host });
        }
        let (name, text) = match header {
            KeyHeader::Bearer => (AUTHORIZATION, format!("Bearer {}", key.0)),
            KeyHeader::ApiKey => (HeaderName::from_static("api-key"), key.0.clone()),
        };
        let mut value = HeaderValue::from_str(&text)
            .ok()
            .filter(|_| !key.0.is_empty())
            .ok_or(EndpointError::Key { host })?;
        value.set_sensitive(true);
        self.key = Some((name, value, key));
        Ok(self)
    }

    /// Sets a proxy. Without one, connections are direct, even if environment variables name a proxy. Fails if a key
    /// would be sent to the proxy unencrypted.
    pub fn with_proxy(mut self, text: &str) -> Result<Self, EndpointError> {
        self.proxy = Some(checked_url(text)?);
        if self.has_key() && self.is_in_clear() {
            Err(EndpointError::KeyInClear { host: self.host() })
        } else {
            Ok(self)
        }
    }

    /// Returns the host, with the port if the address names one.
    pub fn host(&self) -> String {
        host_of(&self.base)
    }

    /// Returns true if the host is this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Returns true if requests cross the network unencrypted.
    pub fn is_in_clear(&self) -> bool {
        !(self.is_https() || self.is_loopback() && self.proxy.as_ref().is_none_or(is_loopback))
    }

    /// Returns true if a key is set.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Returns the host and port of the proxy, if one is set.
    pub fn proxy_host(&self) -> Option<String> {
        self.proxy.as_ref().map(host_of)
    }

    pub(super) fn proxy(&self) -> Option<&Url> {
        self.proxy.as_ref()
    }

    pub(super) fn is_https(&self) -> bool {
        self.base.scheme() == "https"
    }

    pub(super) fn key_header(&self) -> Option<(&HeaderName, &HeaderValue)> {
        self.key.as_ref().map(|(name, value, _)| (name, value))
    }

    /// Returns the URL of `path`, which must begin with a slash, below the base address.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url.set_query(query);
        url
    }

    /// Replaces the key in `text`, because servers may quote a key that they reject.
    pub(super) fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some((_, _, Secret(key))) => text.replace(key.as_str(), "[key]"),
            None => text.to_owned(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

impl Secret {
    /// Creates a secret from `text`, trimmed.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// Reads a secret from a regular file, trimmed.
    pub fn read(path: &Path) -> Result<Self, EndpointError> {
        let unusable = |why: String| EndpointError::KeyFile {
            path: path.to_owned(),
            why,
        };
        let file = std::fs::File::open(path).map_err(|error| unusable(error.to_string()))?;
        let found = file.metadata().map_err(|error| unusable(error.to_string()))?;
        if !found.is_file() || found.len() > MAX_KEY_BYTES {
            return Err(unusable("not a regular file of at most 16 KiB".to_owned()));
        }
        let mut text = String::new();
        file.take(MAX_KEY_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Self::new(&text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn checked_url(text: &str) -> Result<Url, EndpointError> {
    // The text before an @ may be a password, so it is not shown.
    let shown = || match text.rsplit_once('@') {
        Some((_, after)) => format!("…@{after}"),
        None => text.to_owned(),
    };
    let wrong = |why: &str| EndpointError::Address {
        text: shown(),
        why: why.to_owned(),
    };
    let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with http:// or https://"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("it has no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EndpointError::Credentials { host: host_of(&url) });
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it has a query or fragment"));
    }
    Ok(url)
}

fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_plain_addresses_of_servers_are_taken() {
        for text in [
            "ftp://h",
            "file:///etc/passwd",
            "h:80",
            "",
            "http://",
            "https://h/?q=1",
            "http://h/#x",
        ] {
            assert!(
                matches!(Endpoint::new(text), Err(EndpointError::Address { .. })),
                "{text}"
            );
        }
        let endpoint = Endpoint::new("http://[::1]:7997/v1/").unwrap();
        assert_eq!(endpoint.url("/embeddings").as_str(), "http://[::1]:7997/v1/embeddings");
        assert_eq!(endpoint.url("/a?b=1").as_str(), "http://[::1]:7997/v1/a?b=1");
        assert!(endpoint.is_loopback() && !endpoint.is_in_clear());
        assert_eq!(
            Endpoint::new("http://h").unwrap().url("/embed").as_str(),
            "http://h/embed"
        );
        assert!(Endpoint::new("http://127.0.0.1.example.com").unwrap().is_in_clear());
    }

    #[test]
    fn credentials_in_an_address_are_refused_and_not_repeated() {
        for text in ["https://me:hunter2@host/v1", "https://hunter2@host", "hunter2@host"] {
            let error = Endpoint::new(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_key_goes_over_tls_or_to_this_machine_only() {
        let with_key = |text: &str| {
            Endpoint::new(text)
                .unwrap()
                .with_key(Secret::new("sesame\n"), KeyHeader::Bearer)
        };
        assert!(matches!(
            with_key("http://example.com"),
            Err(EndpointError::KeyInClear { .. })
        ));
        for text in ["https://example.com", "http://localhost:1", "http://127.8.9.1"] {
            let endpoint = with_key(text).unwrap();
            assert!(!format!("{endpoint} {endpoint:?}").contains("sesame"));
            assert_eq!(endpoint.without_key("bad key sesame!"), "bad key [key]!");
        }
        let proxied = |text: &str| Endpoint::new(text).unwrap().with_proxy("http://proxy:3128").unwrap();
        let key = || Secret::new("sesame");
        assert!(matches!(
            proxied("http://127.0.0.1:1").with_key(key(), KeyHeader::Bearer),
            Err(EndpointError::KeyInClear { .. })
        ));
        assert!(matches!(
            with_key("http://127.0.0.1:1").unwrap().with_proxy("http://proxy:3128"),
            Err(EndpointError::KeyInClear { .. })
        ));
        // The proxy relays TLS and does not see the key.
        assert!(proxied("https://h").with_key(key(), KeyHeader::Bearer).is_ok());
        let odd = Endpoint::new("https://h")
            .unwrap()
            .with_key(Secret::new("a\nb"), KeyHeader::ApiKey);
        assert!(matches!(odd, Err(EndpointError::Key { .. })));
        assert!(Secret::read(Path::new("/dev/zero")).is_err());
    }
}
