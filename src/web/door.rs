//! Lets only the person in who started the server: a one-time code, kept in a file of this user, is exchanged for a cookie.
//!
//! Names other than those of this machine in `Host`, and requests that other sites make, are refused.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use parking_lot::Mutex;

use crate::model::random_token;
use crate::session::{Context as _, Result};

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The `Host` header is not an address of this server.
    Host,
    /// Only pages are requested.
    Method,
    /// Another site requests more than a page.
    OtherSite,
    /// A link on another site leads here. The person can follow it with one more click.
    FollowedLink,
    /// There is no cookie.
    Unknown,
}

/// The check in front of all pages.
pub(super) struct Door {
    hosts: [String; 3],
    /// The name of the cookie, which contains the port: cookies do not tell ports apart.
    cookie: String,
    /// The hash of the value of the cookie.
    token: blake3::Hash,
    codes: Mutex<Codes>,
}

struct Codes {
    /// The hash of the code; `None` once it was used.
    code: Option<blake3::Hash>,
    /// The value of the cookie, given out once.
    token: String,
}

impl Door {
    /// Creates a door for a port. Also returns the code.
    pub(super) fn new(port: u16) -> Result<(Self, String)> {
        let (code, token) = (random_token()?, random_token()?);
        let door = Self {
            hosts: ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}")),
            cookie: format!("codescout-{port}"),
            token: blake3::hash(token.as_bytes()),
            codes: Mutex::new(Codes {
                code: Some(blake3::hash(code.as_bytes())),
                token,
            }),
        };
        Ok((door, code))
    }

    /// Checks a request for a page.
    pub(super) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
        self.check_host(headers)?;
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(Refused::Method);
        }
        let site = single(headers, &HeaderName::from_static("sec-fetch-site"));
        if !matches!(site, None | Some("none" | "same-origin")) {
            let mode = single(headers, &HeaderName::from_static("sec-fetch-mode"));
            return Err(if mode == Some("navigate") {
                Refused::FollowedLink
            } else {
                Refused::OtherSite
            });
        }
        let cookies = single(headers, &header::COOKIE).unwrap_or_default().split(';');
        let mut values = cookies.filter_map(|cookie| cookie.trim().split_once('='));
        let is_known = values.any(|(name, value)| name == self.cookie && blake3::hash(value.as_bytes()) == self.token);
        if is_known { Ok(()) } else { Err(Refused::Unknown) }
    }

    /// Checks that a request is for an address of this server.
    pub(super) fn check_host(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let host = single(headers, &header::HOST);
        match host {
            Some(host) if self.is_own(host) => Ok(()),
            _ => Err(Refused::Host),
        }
    }

    /// Returns true for an address of this server.
    pub(super) fn is_own(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    }

    /// Exchanges the code for a cookie, once. The code is too long to be guessed.
    pub(super) fn enter(&self, code: &str) -> Option<HeaderValue> {
        let mut codes = self.codes.lock();
        if codes.code != Some(blake3::hash(code.trim().as_bytes())) {
            return None;
        }
        codes.code = None;
        let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie, codes.token);
        HeaderValue::from_str(&cookie).ok()
    }
}

/// Writes a page that sends the code to the server, readable for this user only.
pub(super) fn write_entrance(file: &Path, address: &str, code: &str) -> Result<()> {
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>codescout</title>\n\
         <form method=\"post\" action=\"http://{address}/-/open\"><input type=\"hidden\" name=\"code\" value=\"{code}\">\n\
         <button autofocus>Open codescout</button></form></html>\n"
    );
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .and_then(|mut opened| opened.write_all(page.as_bytes()))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Returns the value of a header that is there once and is ASCII.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        all.iter().map(pair).collect()
    }

    #[test]
    fn only_this_machine_with_the_cookie_comes_in() {
        let (door, code) = Door::new(8080).unwrap();
        assert_eq!(door.enter("wrong"), None);
        let cookie = door.enter(&format!(" {code}\n")).unwrap();
        assert_eq!(door.enter(&code), None, "the code is used");
        let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
        let own = ("host", "127.0.0.1:8080");
        let check = |all: &[(&'static str, &str)]| door.check(&Method::GET, &headers(all));
        assert_eq!(check(&[own, ("cookie", cookie)]), Ok(()));
        assert_eq!(
            check(&[("host", "localhost:8080"), ("cookie", &format!("a=b; {cookie}"))]),
            Ok(())
        );
        assert_eq!(check(&[own]), Err(Refused::Unknown));
        assert_eq!(check(&[own, ("cookie", "codescout-8080=1")]), Err(Refused::Unknown));
        for host in [
            "127.0.0.1",
            "127.0.0.1:8081",
            "evil.example:8080",
            "127.0.0.1:8080.evil.example",
            "localhost.:8080",
            "",
        ] {
            assert_eq!(
                check(&[("host", host), ("cookie", cookie)]),
                Err(Refused::Host),
                "{host}"
            );
        }
        assert_eq!(check(&[("cookie", cookie)]), Err(Refused::Host));
        let cross = ("sec-fetch-site", "cross-site");
        assert_eq!(check(&[own, ("cookie", cookie), cross]), Err(Refused::OtherSite));
        assert_eq!(
            check(&[own, ("cookie", cookie), ("sec-fetch-site", "same-site")]),
            Err(Refused::OtherSite)
        );
        assert_eq!(
            check(&[own, ("cookie", cookie), cross, ("sec-fetch-mode", "navigate")]),
            Err(Refused::FollowedLink)
        );
        assert_eq!(
            door.check(&Method::POST, &headers(&[own, ("cookie", cookie)])),
            Err(Refused::Method)
        );
    }
}
