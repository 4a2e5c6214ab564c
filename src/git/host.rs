//! Finds the host of a repository's remote.

use super::exchange::{Direction, ExchangeError, address_of};
use super::open::Repository;

/// Returns the host of the remote `origin` in lower case; `None` without such a remote or for a folder.
pub fn origin_host(repository: &Repository) -> Result<Option<String>, ExchangeError> {
    match address_of(repository, "origin", Direction::Fetch) {
        Ok(address) => Ok(host_of(&address)),
        Err(ExchangeError::NoRemote { .. } | ExchangeError::Address { .. } | ExchangeError::Io { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the host of `scheme://user@host:port/path` or `user@host:path`.
pub fn host_of(address: &str) -> Option<String> {
    let authority = match address.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split(['/', '?', '#', '\\']).next()?,
        None => address.split_once(':').filter(|(host, _)| !host.contains('/'))?.0,
    };
    let host = authority.rsplit('@').next()?;
    let host = host.split(':').next()?;
    (!host.is_empty()).then(|| host.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn the_host_is_found_in_every_form_of_an_address() {
        for (address, expected) in [
            ("https://github.com/a/b.git", Some("github.com")),
            ("https://user:secret@GitHub.com/a/b", Some("github.com")),
            ("ssh://git@gitlab.example:2222/a/b", Some("gitlab.example")),
            ("git@github.com:a/b.git", Some("github.com")),
            ("github.com:a/b", Some("github.com")),
            ("https://example.org/github.com", Some("example.org")),
            ("https://evil.example?@github.com/a", Some("evil.example")),
            ("https://evil.example#@github.com/a", Some("evil.example")),
            ("https://evil.example\\@github.com/a", Some("evil.example")),
            ("file:///srv/github.com/a", None),
            ("/srv/github.com:a/b", None),
            ("../other", None),
        ] {
            assert_eq!(host_of(address).as_deref(), expected, "{address}");
        }
    }
}
