//! Checks that the `Host` and `Origin` headers of a request are well-formed and unambiguous.
//!
//! The SDK compares host names with the allowed ones after a lenient parser has read them: `[::1].evil` and
//! `localhost:80.evil.com` pass as `[::1]` and `localhost`. This module rejects malformed names before that.

use std::net::Ipv6Addr;

use axum::http::{HeaderMap, HeaderName, Uri, header};

/// Returns the reason to reject a request, or `None` if its headers are well-formed.
pub(super) fn fault(uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
    let Ok(host) = single(headers, &header::HOST) else {
        return Some("the Host header is repeated or not ASCII");
    };
    if !host.is_none_or(is_authority) {
        return Some("the Host header is not a host with an optional port");
    }
    let target = uri.authority().map(|authority| authority.as_str());
    if target.is_some_and(|target| !is_authority(target) || host.is_some_and(|host| !target.eq_ignore_ascii_case(host)))
    {
        return Some("the request target does not match the Host header");
    }
    match single(headers, &header::ORIGIN) {
        Ok(None | Some("null")) => None,
        Ok(Some(origin)) if is_origin(origin) => None,
        _ => Some("the Origin header is not a scheme and a host with an optional port"),
    }
}

/// Returns the value of a header. Fails if the header is repeated or not visible ASCII.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(());
    }
    first.map(|value| value.to_str().map_err(drop)).transpose()
}

fn is_origin(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(scheme, authority)| {
        !scheme.is_empty()
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && is_authority(authority)
    })
}

/// Returns true for a name, an IPv4 address or an IPv6 address in brackets, with an optional port and nothing else.
fn is_authority(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<Ipv6Addr>().is_ok() => (address, port),
            _ => return false,
        },
        None => {
            let at = authority.find(':').unwrap_or(authority.len());
            let (name, port) = authority.split_at(at);
            if !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            {
                return false;
            }
            (name, port)
        }
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    !host.is_empty() && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_with_an_optional_port_is_an_authority() {
        for good in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8808",
            "[::1]",
            "[::1]:8808",
            "[fe80::1]:1",
            "my_host.example",
            "localhost.",
            "a:65535",
        ] {
            assert!(is_authority(good), "{good}");
        }
        for bad in [
            "",
            ":80",
            "[::1].evil",
            "[::1]evil:80",
            "[::1]:80.evil.com",
            "[::1",
            "::1",
            "[localhost]",
            "[::1%25eth0]",
            "[::1]]",
            "localhost:80.evil.com",
            "localhost:",
            "localhost:65536",
            "localhost:99999999999",
            "localhost:+80",
            "localhost:-1",
            "localhost:80:80",
            "user@localhost",
            "localhost@evil.com",
            "user:pass@localhost:80",
            "localhost/evil",
            "localhost?a",
            "localhost#a",
            "local host",
            "localhost%2eevil.com",
            "localhost,evil.com",
            "localhost\\evil",
        ] {
            assert!(!is_authority(bad), "{bad}");
        }
    }

    #[test]
    fn only_a_scheme_and_an_authority_are_an_origin() {
        for good in [
            "http://localhost:3000",
            "https://[::1]:1",
            "vscode-webview://a1-b2",
            "HTTP://LOCALHOST",
        ] {
            assert!(is_origin(good), "{good}");
        }
        for bad in [
            "http://localhost:80.evil.com",
            "http://[::1].evil",
            "localhost",
            "://localhost",
            "http://",
            "http:/localhost",
            "http://localhost/",
            "http://a@localhost",
            "http://localhost http://localhost",
            "ht tp://a",
        ] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
