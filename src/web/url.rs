//! The URLs of pages: `/REPO/-/PAGE/REV:PATH?parameters`.
//!
//! git has no ref names with a colon, so the first one ends the revision. Every link begins with `/`: a relative one that
//! begins with `v3.0.0:` would be a scheme. Paths are encoded byte by byte, because they need not be UTF-8.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::unprintable::visible;
use crate::model::{quoted, typed, with_placeholders, without_placeholders};

/// What a URL asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    /// The name of the repository; empty for pages of the server.
    pub(super) repo: String,
    /// The name of the page.
    pub(super) page: String,
    pub(super) place: Place,
    pub(super) parameters: Vec<(String, String)>,
    /// For a page about a fleet or one of its repositories; the former knows the revisions of all repositories by name.
    pub(super) fleet: Option<Arc<BTreeMap<String, String>>>,
}

/// A revision and a path in it; or the range of a review.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) revision: String,
    pub(super) path: String,
}

impl Place {
    /// Returns the path as answers write it.
    pub(super) fn written(&self) -> String {
        quoted(&without_placeholders(&self.path)).into_owned()
    }
}

impl Target {
    /// Reads the path and the query of a URL; `None` if it is none of ours.
    pub(super) fn parse(path: &str, query: Option<&str>) -> Option<Self> {
        let parameters = query.unwrap_or_default().split('&').filter(|part| !part.is_empty());
        let parameters = parameters.map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (form(name), form(value))
        });
        let parameters: Vec<(String, String)> = parameters.collect();
        let whole = path.strip_prefix('/')?;
        if whole.is_empty() || whole.starts_with("-/") {
            return Some(Self {
                page: whole.trim_start_matches("-/").to_owned(),
                parameters,
                ..Self::default()
            });
        }
        let (repo, rest) = whole.split_once("/-/")?;
        let (page, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let rest = decoded(rest.as_bytes());
        let (revision, path) = rest.split_once(':').unwrap_or((&rest, ""));
        Some(Self {
            repo: decoded(repo.as_bytes()),
            page: page.to_owned(),
            place: Place {
                revision: revision.to_owned(),
                path: path.trim_end_matches('/').to_owned(),
            },
            parameters,
            fleet: None,
        })
    }

    /// Returns true for a page about all repositories of a fleet.
    pub(super) fn is_about_all(&self) -> bool {
        self.repo.is_empty()
    }

    /// Splits text such as `client:/src/a.rs`, in an answer about a fleet, into the target of the repository and the path
    /// in it. Returns `None` for other text.
    pub(super) fn in_repository<'t>(&self, text: &'t str) -> Option<(Self, &'t str)> {
        let revisions = self.fleet.as_ref().filter(|_| self.is_about_all())?;
        let (name, path) = text.split_once(":/")?;
        let place = Place {
            revision: revisions.get(name)?.clone(),
            path: String::new(),
        };
        let target = Self {
            repo: name.to_owned(),
            place,
            ..Self::default()
        };
        Some((target, path))
    }

    /// Returns the value of a parameter that is not empty.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self
            .parameters
            .iter()
            .filter(|(known, value)| known == name && !value.is_empty());
        found.next().map(|(_, value)| value.as_str())
    }

    /// Returns the link to another page of the repository, about a place.
    pub(super) fn link(&self, page: &str, revision: &str, path: &str) -> String {
        format!(
            "/{}/-/{page}/{}:{}",
            encoded(&self.repo, ""),
            encoded(revision, "/"),
            encoded(path, "/")
        )
    }

    /// Returns the link to another page of the repository, about the files on disk.
    pub(super) fn page(&self, page: &str) -> String {
        if self.is_about_all() {
            return format!("/-/{page}");
        }
        format!("/{}/-/{page}", encoded(&self.repo, ""))
    }

    /// Returns the link to the review of a range such as `A..B`, of all files or those below a path.
    pub(super) fn review(&self, range: &str, path: Option<&str>) -> String {
        let link = format!("{}/{}", self.page("review"), encoded(range, "/"));
        match path {
            Some(path) => format!("{link}?path={}", encoded(path, "")),
            None => link,
        }
    }

    /// Returns the link to what a commit changed.
    pub(super) fn commit(&self, id: &str) -> String {
        self.review(&format!("{id}^..{id}"), None)
    }

    /// Returns the link to a line of a file at the revision of this page, by its path as answers write it.
    pub(super) fn file(&self, path: &str, line: u32) -> String {
        let path = typed(path);
        if let Some((target, path)) = self.in_repository(&path) {
            return target.file(path, line);
        }
        let link = self.link("file", &self.place.revision, &path);
        if line == 0 { link } else { format!("{link}#L{line}") }
    }

    /// Returns the link to a definition, by its id.
    pub(super) fn definition(&self, id: &str) -> String {
        let id = typed(id);
        if let Some((target, id)) = self.in_repository(&id) {
            return target.definition(id);
        }
        let (path, name) = id.split_once('#').unwrap_or((&id, ""));
        self.with_name("def", path, name)
    }

    /// Returns the link to a page about a definition of a file.
    pub(super) fn with_name(&self, page: &str, path: &str, name: &str) -> String {
        format!(
            "{}?name={}",
            self.link(page, &self.place.revision, path),
            encoded(name, "")
        )
    }

    /// Returns the link to this page with all its rows.
    pub(super) fn with_all(&self) -> String {
        self.with("n", "0")
    }

    /// Returns the link to this page with another value of a parameter, which is left out if it is empty.
    pub(super) fn with(&self, name: &str, value: &str) -> String {
        let mut other = self.clone();
        other.parameters.retain(|(known, _)| known != name);
        if !value.is_empty() {
            other.parameters.push((name.to_owned(), value.to_owned()));
        }
        other.at(&self.place.revision)
    }

    /// Returns the limit on the number of rows.
    pub(super) fn limit(&self) -> Option<usize> {
        self.parameter("n")?.parse().ok()
    }

    /// Returns the link to this page at another revision.
    pub(super) fn at(&self, revision: &str) -> String {
        let link = match self.place.path.as_str() {
            _ if self.is_about_all() => self.page(&self.page),
            "" if self.page == "search" => format!("{}/{}", self.page("search"), encoded(revision, "/")),
            path => self.link(&self.page, revision, path),
        };
        let parameters = self.parameters.iter();
        let parameters: Vec<String> = parameters
            .map(|(name, value)| format!("{}={}", encoded(name, ""), encoded(value, "")))
            .collect();
        if parameters.is_empty() {
            link
        } else {
            format!("{link}?{}", parameters.join("&"))
        }
    }
}

/// Encodes text for a URL. `keep` are characters that stay, besides letters, digits and `-_.~`.
pub(super) fn encoded(text: &str, keep: &str) -> String {
    let mut url = String::with_capacity(text.len());
    for byte in without_placeholders(text).iter() {
        let letter = char::from(*byte);
        if byte.is_ascii_alphanumeric() || "-_.~".contains(letter) || keep.contains(letter) {
            url.push(letter);
        } else {
            url += &format!("%{byte:02X}");
        }
    }
    url
}

/// Returns text of a URL as pages show it. Bytes that are not UTF-8 are visible.
pub(super) fn shown(text: &str) -> String {
    let bytes = without_placeholders(text);
    match bytes {
        Cow::Borrowed(_) => visible(text).into_owned(),
        Cow::Owned(bytes) => quoted(&bytes).into_owned(),
    }
}

/// Decodes a part of a URL. Bytes that are not UTF-8 become placeholders.
fn decoded(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| text[at] == b'%');
        let byte = digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(text[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    with_placeholders(&bytes).into_owned()
}

/// Decodes a part of a query, in which `+` is a space.
fn form(text: &str) -> String {
    decoded(text.replace('+', " ").as_bytes())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn links_lead_back_to_what_they_were_made_of() {
        let target = Target {
            repo: "a b".to_owned(),
            place: Place {
                revision: "topic/one".to_owned(),
                path: String::new(),
            },
            ..Target::default()
        };
        for path in ["src/a.rs", "odd name?#%.rs", "größe", "a:b", "-/x"] {
            let read = Target::parse(&target.link("file", "topic/one", path), None).unwrap();
            assert_eq!((read.repo.as_str(), read.page.as_str()), ("a b", "file"), "{path}");
            assert_eq!(
                (read.place.revision.as_str(), read.place.path.as_str()),
                ("topic/one", path)
            );
        }
        let link = target.definition("src/a.rs#Outer.parse~2");
        let (path, query) = link.split_once('?').unwrap();
        let read = Target::parse(path, Some(query)).unwrap();
        assert_eq!(
            (read.place.path.as_str(), read.parameter("name")),
            ("src/a.rs", Some("Outer.parse~2"))
        );
    }

    #[test]
    fn odd_urls_are_read_as_they_are() {
        assert_eq!(Target::parse("/", None).unwrap().repo, "");
        assert_eq!(Target::parse("/-/open", None).unwrap().page, "open");
        assert_eq!(Target::parse("/a-/-/tree/main:", None).unwrap().repo, "a-");
        assert_eq!(
            (Target::parse("nothing", None), Target::parse("/r/file", None)),
            (None, None)
        );
        let search = Target::parse("/r/-/search/main", Some("q=a+b%26&&x")).unwrap();
        assert_eq!((search.parameter("q"), search.parameter("x")), (Some("a b&"), None));
        assert_eq!(Target::parse("/r/-/file/main:a%zz%", None).unwrap().place.path, "a%zz%");
        assert_eq!(
            Target::parse("/r/-/file/main:%ff", None)
                .unwrap()
                .place
                .path
                .chars()
                .count(),
            1
        );
    }
}
