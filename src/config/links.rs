//! The repositories that the user links with the one at hand, and names for groups of them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::resolve::{Origin, Sources};
use super::settings::{Entry, NAMED};
use crate::query::nearest;

/// A reader of a fleet, identified by a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The groups whose repositories are visible. Empty for all repositories.
    pub groups: Vec<String>,
    /// The BLAKE3 hash of the token.
    pub token: blake3::Hash,
}

impl FromStr for Reader {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (groups, token) = text.trim().rsplit_once(char::is_whitespace).ok_or(())?;
        let groups: Vec<String> = match groups.trim() {
            ALL => Vec::new(),
            groups => Some(split(groups).map(str::to_owned).collect::<Vec<_>>())
                .filter(|groups| !groups.is_empty())
                .ok_or(())?,
        };
        let token = blake3::Hash::from_hex(token).map_err(drop)?;
        Ok(Self { groups, token })
    }
}

impl fmt::Display for Reader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.groups.as_slice() {
            [] => write!(out, "{ALL} {}", self.token),
            groups => write!(out, "{} {}", groups.join(", "), self.token),
        }
    }
}

/// The name for the libraries that a project uses, unless the user has linked something by that name.
pub const LIBRARIES: &str = "lib";

/// Names all repositories.
const ALL: &str = "*";

/// The linked repositories and the scopes; in a fleet, also the readers.
#[derive(Clone, Debug, Default)]
pub struct Links {
    linked: BTreeMap<String, (String, Origin)>,
    scopes: BTreeMap<String, (String, Origin)>,
    readers: BTreeMap<String, (String, Origin)>,
}

/// A linked repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The name that the user has chosen.
    pub name: String,
    /// The folder, absolute or relative to the repository at hand.
    pub path: PathBuf,
    /// The revision; `None` for the files on disk.
    pub reference: Option<String>,
}

/// A name that is neither a linked repository nor a scope.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownLink {
    /// The name as given.
    pub name: String,
    /// Names that are alike, or all names.
    pub near: Vec<String>,
}

impl Links {
    pub(super) fn of(sources: &Sources) -> Self {
        Self {
            linked: sources.named("linked"),
            scopes: sources.named("scopes"),
            readers: sources.named("readers"),
        }
    }

    /// Returns the repositories with these names, or in scopes with these names, each once. `*` names all of them.
    pub fn select(&self, names: &[String]) -> Result<Vec<Link>, UnknownLink> {
        let typed: Vec<&str> = names.iter().flat_map(|names| split(names)).collect();
        if typed.is_empty() && !names.is_empty() {
            return Err(self.unknown(""));
        }
        let mut selected: Vec<&str> = Vec::new();
        for name in typed {
            match (self.scopes.get(name), self.linked.get_key_value(name)) {
                _ if name == ALL => selected.extend(self.linked.keys().map(String::as_str)),
                (Some((scope, _)), _) => selected.extend(split(scope)),
                (None, Some((name, _))) => selected.push(name),
                (None, None) => return Err(self.unknown(name)),
            }
        }
        selected.sort_unstable();
        selected.dedup();
        let link = |name| match self.linked.get(name) {
            Some((place, _)) => Ok(Link::new(name, place)),
            None => Err(self.unknown(name)),
        };
        selected.into_iter().map(link).collect()
    }

    /// Returns the link with this name.
    pub fn get(&self, name: &str) -> Option<Link> {
        self.linked.get(name).map(|(place, _)| Link::new(name, place))
    }

    /// Splits a target such as `sdk:src/lib.rs` into the name of a linked repository, or of the libraries, and the target
    /// in it. `std::vec` is a name.
    pub fn split<'t>(&self, target: &'t str) -> Option<(&'t str, &'t str)> {
        let (name, rest) = target.split_once(':').filter(|(_, rest)| !rest.starts_with(':'))?;
        let is_linked = name == LIBRARIES || self.linked.contains_key(name);
        is_linked.then(|| (name, rest.trim_start_matches('/')))
    }

    /// Returns all links.
    pub fn all(&self) -> Vec<Link> {
        self.linked
            .iter()
            .map(|(name, (place, _))| Link::new(name, place))
            .collect()
    }

    /// Returns the names of the scopes.
    pub fn scopes(&self) -> Vec<String> {
        self.scopes.keys().cloned().collect()
    }

    /// Returns the names in a scope. Empty if there is no such scope.
    pub fn members(&self, scope: &str) -> Vec<String> {
        let names = self.scopes.get(scope).map_or("", |(names, _)| names);
        split(names).map(str::to_owned).collect()
    }

    /// Returns the scopes that a link is in.
    pub fn scopes_of(&self, name: &str) -> Vec<String> {
        let mut scopes = self.scopes();
        scopes.retain(|scope| self.members(scope).iter().any(|member| member == name));
        scopes
    }

    /// Keeps these scopes and the links in them; all without scopes. Fails with the name of a scope that does not exist.
    pub fn only(mut self, scopes: &[String]) -> Result<Self, String> {
        self.readers.clear();
        if scopes.is_empty() {
            return Ok(self);
        }
        if let Some(unknown) = scopes.iter().find(|scope| !self.scopes.contains_key(*scope)) {
            return Err(unknown.clone());
        }
        self.scopes.retain(|scope, _| scopes.contains(scope));
        let members: Vec<String> = scopes.iter().flat_map(|scope| self.members(scope)).collect();
        self.linked.retain(|name, _| members.contains(name));
        Ok(self)
    }

    /// Returns the readers of a fleet by name.
    pub fn readers(&self) -> BTreeMap<&str, Reader> {
        let readers = self.readers.iter();
        readers
            .filter_map(|(name, (value, _))| Some((name.as_str(), value.parse().ok()?)))
            .collect()
    }

    /// Divides the groups of a reader into those that exist and those that do not.
    pub fn groups_of(&self, reader: &Reader) -> (Vec<String>, Vec<String>) {
        let groups = reader.groups.iter().cloned();
        groups.partition(|group| self.scopes.contains_key(group))
    }

    /// Returns true if nothing is linked.
    pub fn is_empty(&self) -> bool {
        self.linked.is_empty()
    }

    fn unknown(&self, name: &str) -> UnknownLink {
        let all = || self.linked.keys().chain(self.scopes.keys()).map(String::as_str);
        let near = nearest(name, all());
        let near = if near.is_empty() {
            all().map(str::to_owned).collect()
        } else {
            near
        };
        let name = name.to_owned();
        UnknownLink { name, near }
    }

    /// Returns all links, scopes and readers for display.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let sections = NAMED.iter().zip([&self.linked, &self.scopes, &self.readers]);
        let entries = sections.flat_map(|(row, named)| {
            named.iter().map(|(name, (value, origin))| Entry {
                key: row.key.replace("NAME", name),
                value: value.clone(),
                origin: origin.clone(),
                help: row.help,
            })
        });
        entries.collect()
    }
}

impl Link {
    fn new(name: &str, place: &str) -> Self {
        let (path, reference) = match place.rsplit_once('#') {
            Some((path, reference)) => (path, Some(reference.to_owned())),
            None => (place, None),
        };
        Self {
            name: name.to_owned(),
            path: PathBuf::from(path),
            reference,
        }
    }
}

/// Splits a list of names.
fn split(names: &str) -> impl Iterator<Item = &str> {
    names.split(',').map(str::trim).filter(|name| !name.is_empty())
}
