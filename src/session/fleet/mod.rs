//! A fleet: many repositories of an organisation, whose chunks and files a Qdrant server finds.
//!
//! The folder of a fleet has the operator's settings (`fleet.toml`: the server, the repositories as links, groups as
//! scopes), an empty repository (`home.git`) from which questions are asked, and a record of what was stored of each
//! repository. `feed.rs` stores repositories, `choose.rs` chooses the files that may answer a question, `check.rs`
//! compares Qdrant with the records. Texts stay in the repositories and their sidecars on this machine.

mod check;
mod choose;
mod feed;
mod points;
mod record;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::error::{Context as _, OpError, Result};
use super::output::check_output_from;
use super::place::default_sidecar_root;
use super::storage::Storage;
use super::workspace::Workspace;
use crate::config::{Config, Environment, Link, Links, Overrides, Reader, RepositoryFiles, SettingInfo, set, unset};
use crate::embed::Embedder;
use crate::git::{FileStore, Repository};
use crate::model::{ErrorKind, Hint, random_bytes, random_token};
use crate::query::{Statistics, WholeStatistics, nearest};
use crate::remote::FleetCollection;
use crate::sidecar::write_atomic;

pub(super) use choose::{Chosen, some_of};
pub(crate) use feed::{Fed, Feeding};
pub(crate) use record::Recorded;
use record::Records;

/// The server of a new fleet.
const DEFAULT_SERVER: &str = "http://127.0.0.1:6333";

/// The folder of a fleet. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct FleetFolder {
    path: PathBuf,
    /// Shared by the views of all groups.
    statistics: Arc<Mutex<HashMap<String, HeldStatistics>>>,
}

/// A fleet as its readers see it.
pub(crate) struct Fleet {
    settings: PathBuf,
    records: Records,
    collection: FleetCollection,
    /// The groups whose repositories are visible. Empty for all repositories.
    groups: Vec<String>,
    statistics: Arc<Mutex<HashMap<String, HeldStatistics>>>,
    known: Mutex<choose::Known>,
}

/// The statistics of a repository, with the time at which they were written.
type HeldStatistics = (Option<SystemTime>, Arc<Statistics>);

impl FleetFolder {
    /// Uses a folder, or the one below the user's state folder. It need not exist.
    pub(crate) fn at(folder: Option<&Path>) -> Result<Self> {
        let folder = match folder {
            Some(folder) => {
                check_output_from(Path::new("."), &folder.join("fleet.toml"))?;
                std::path::absolute(folder).context("cannot use the folder of the fleet")?
            }
            None => Environment::read()
                .state
                .context("neither HOME nor XDG_STATE_HOME is set; name the folder with --dir")?
                .join("fleet"),
        };
        Ok(Self {
            path: folder,
            statistics: Arc::default(),
        })
    }

    /// Returns the path of the empty repository.
    pub(crate) fn home(&self) -> PathBuf {
        self.path.join("home.git")
    }

    /// Returns the path of the settings.
    pub(crate) fn settings(&self) -> PathBuf {
        self.path.join("fleet.toml")
    }

    /// Reads the settings.
    pub(crate) fn config(&self) -> Result<Config> {
        let mut environment = Environment::read();
        environment.user_file = Some(self.settings());
        Ok(Config::resolve(
            &Overrides::default(),
            &environment,
            &RepositoryFiles::default(),
        )?)
    }

    /// Adds a repository to the settings, also to groups. Returns its name.
    pub(crate) fn add(
        &self,
        name: Option<&str>,
        path: &Path,
        reference: Option<&str>,
        groups: &[String],
    ) -> Result<String> {
        let repository = Repository::discover(path)?;
        let place = repository.place().to_owned();
        let text = place
            .to_str()
            .with_context(|| format!("{} is not UTF-8", place.display()))?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => name_of(&place).with_context(|| format!("{text}: no name; use NAME=DIR"))?,
        };
        let config = self.config()?;
        if let Some(known) = config.links.get(&name)
            && known.path != place
        {
            return Err(OpError::new(
                format!("{name} is {}", known.path.display()),
                format!("give the other one a name: NAME={text}"),
            ));
        }
        if let Some(group) = groups
            .iter()
            .find(|group| **group == name || config.links.get(group).is_some())
        {
            return Err(OpError::new(
                format!("{group:?} is a repository"),
                "give the group another name",
            ));
        }
        std::fs::create_dir_all(&self.path).with_context(|| format!("cannot create {}", self.path.display()))?;
        let known = config.links.get(&name).and_then(|known| known.reference);
        let value = match reference.map(str::to_owned).or(known) {
            Some(reference) => format!("{text}#{reference}"),
            // A path may contain the character that separates it from a revision.
            None if text.contains('#') => format!("{text}#HEAD"),
            None => text.to_owned(),
        };
        if config.qdrant.server.value.is_none() {
            set(&self.settings(), "qdrant.server", DEFAULT_SERVER)?;
        }
        set(&self.settings(), &format!("linked.{name}"), &value)?;
        for group in groups {
            let members = config.links.members(group);
            if !members.contains(&name) {
                let members = members.into_iter().chain([name.clone()]).collect::<Vec<_>>();
                set(&self.settings(), &format!("scopes.{group}"), &members.join(", "))?;
            }
        }
        Ok(name)
    }

    /// Removes a repository from the settings. Its points are removed when the fleet is indexed.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        let config = self.config()?;
        if unset(&self.settings(), &format!("linked.{name}"))?.is_none() {
            return Err(unknown(name, &config.links));
        }
        for group in config.links.scopes() {
            let mut members = config.links.members(&group);
            let n_members = members.len();
            members.retain(|member| member != name);
            let key = format!("scopes.{group}");
            if members.is_empty() && n_members > 0 {
                unset(&self.settings(), &key)?;
            } else if members.len() < n_members {
                set(&self.settings(), &key, &members.join(", "))?;
            }
        }
        Ok(())
    }

    /// Adds a reader of these groups, or of all repositories. Returns the token. Stores only its hash.
    pub(crate) fn admit(&self, name: &str, groups: &[String]) -> Result<String> {
        // Checks the groups.
        self.open(groups)?;
        if SettingInfo::of(&format!("readers.{name}")).is_none() {
            return Err(OpError::new(
                format!("invalid name {name:?}"),
                "a name has letters, digits, - and _",
            ));
        }
        let token = random_token()?;
        let reader = Reader {
            groups: groups.to_vec(),
            token: blake3::hash(token.as_bytes()),
        };
        set(&self.settings(), &format!("readers.{name}"), &reader.to_string())?;
        Ok(token)
    }

    /// Removes a reader.
    pub(crate) fn revoke(&self, name: &str) -> Result<()> {
        self.check_exists()?;
        match unset(&self.settings(), &format!("readers.{name}"))? {
            Some(_) => Ok(()),
            None => Err(OpError::not_found(
                format!("no reader is called {name:?}"),
                "codescout fleet list lists the readers",
            )),
        }
    }

    /// Returns the id of the fleet, by which collections of several fleets on one server differ. Creates it if there is
    /// none.
    fn id(&self) -> Result<String> {
        let path = self.path.join("id");
        if let Ok(id) = std::fs::read_to_string(&path)
            && id.len() == 16
            && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Ok(id);
        }
        let id = format!("{:016x}", u64::from_le_bytes(random_bytes()?));
        write_atomic(&path, id.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(id)
    }

    fn check_exists(&self) -> Result<()> {
        if self.settings().exists() {
            return Ok(());
        }
        Err(OpError::new(
            format!("{} is not a fleet", self.path.display()),
            "create one: codescout fleet add DIR",
        ))
    }

    /// Fails if a group has a member that is not a repository.
    fn check_groups(&self, links: &Links) -> Result<()> {
        for group in links.scopes() {
            if let Some(name) = links.members(&group).iter().find(|name| links.get(name).is_none()) {
                let error = unknown(name, links);
                return Err(OpError {
                    message: format!("{}: scopes.{group}: {error}", self.settings().display()),
                    kind: ErrorKind::Failed,
                    ..error
                });
            }
        }
        Ok(())
    }

    /// Opens the fleet with the repositories of `groups`, or with all repositories.
    pub(crate) fn open(&self, groups: &[String]) -> Result<Workspace> {
        self.check_exists()?;
        let home = self.home();
        let store = FileStore::open(&home)?;
        let repository = Repository::open(&home)?;
        if repository.head()?.commit().is_none() {
            store.commit("HEAD")?;
        }
        let mut config = self.config()?;
        config.links = config.links.only(groups).map_err(|group| {
            OpError::not_found(
                format!("no group is called {group:?}"),
                "the groups are [scopes] in fleet.toml",
            )
        })?;
        self.check_groups(&config.links)?;
        let options = config.qdrant.options()?;
        let options = options.context("no Qdrant server: set qdrant.server in fleet.toml")?;
        let overrides = Overrides {
            sidecar: Some(default_sidecar_root(&repository)),
            ..Overrides::default()
        };
        let storage = Storage::of(&repository, &overrides, &Environment::default())?.without_creating()?;
        let mut workspace = Workspace::with(repository, storage, config, None)?;
        let profile = workspace.models.own().profile().id();
        let recipe = workspace.build_options().recipe;
        let name = format!("{}-fleet-{}-{profile}-{recipe:x}", options.prefix, self.id()?);
        workspace.fleet = Some(Fleet {
            settings: self.settings(),
            records: Records::of(&self.path, &name),
            collection: FleetCollection::new(options, name),
            groups: groups.to_vec(),
            statistics: Arc::clone(&self.statistics),
            known: Mutex::default(),
        });
        Ok(workspace)
    }
}

impl Fleet {
    /// Returns what was stored of a repository, if it was stored as a whole.
    pub(crate) fn recorded(&self, name: &str) -> Option<Recorded> {
        self.records
            .all()
            .get(name)
            .filter(|recorded| recorded.is_whole)
            .cloned()
    }

    /// Returns the commit of a repository that was stored, or else the revision to store.
    pub(crate) fn revision_of(&self, link: &Link) -> String {
        match self.recorded(&link.name) {
            Some(recorded) => recorded.commit,
            None => link.reference.clone().unwrap_or_else(|| "HEAD".to_owned()),
        }
    }

    /// Returns the path of the settings.
    pub(crate) fn settings(&self) -> &Path {
        &self.settings
    }

    /// Returns the name of the collection.
    pub(crate) fn collection_name(&self) -> &str {
        self.collection.name()
    }

    /// Returns true if a repository was stored for a group that is visible here.
    pub(super) fn is_stored_for_visible(&self, recorded: &Recorded) -> bool {
        self.groups.is_empty() || recorded.groups.iter().any(|group| self.groups.contains(group))
    }

    /// Compares what is stored of a repository with its current commit and groups.
    pub(crate) fn state(&self, link: &Link, groups: &[String]) -> &'static str {
        let Some(recorded) = self.recorded(&link.name) else {
            return "not stored";
        };
        let target = |workspace: Workspace| workspace.target(link.reference.as_deref().unwrap_or("HEAD"));
        match Workspace::open_linked(&link.path).and_then(target) {
            Ok(Some(target)) => {
                let commit = target.commit.map(|commit| commit.to_string());
                let is_current = commit.as_ref() == Some(&recorded.commit) && recorded.groups == groups;
                if is_current { "up to date" } else { "behind" }
            }
            Ok(None) => "without a commit",
            Err(error) => {
                tracing::warn!("{}: {error:#}", link.name);
                "cannot be opened"
            }
        }
    }

    /// Returns the statistics of repositories, and why some are missing.
    pub(super) fn statistics(&self, links: &[Link]) -> (Arc<WholeStatistics>, Vec<String>) {
        let mut held = self.statistics.lock();
        let mut unreadable = Vec::new();
        for link in links {
            let stamp = self.records.stamp(&link.name);
            if held
                .get(&link.name)
                .is_some_and(|(known, _)| *known == stamp && stamp.is_some())
            {
                continue;
            }
            let read = self.records.statistics(&link.name);
            if read.is_err() {
                unreadable.push(link.name.as_str());
            }
            let statistics = read.ok().flatten().unwrap_or_default();
            held.insert(
                link.name.clone(),
                (
                    stamp.filter(|_| !unreadable.contains(&&*link.name)),
                    Arc::new(statistics),
                ),
            );
        }
        let parts = links
            .iter()
            .filter_map(|link| Some(Arc::clone(&held.get(&link.name)?.1)));
        let whole = Arc::new(WholeStatistics(parts.collect()));
        let because = (!unreadable.is_empty()).then(|| {
            let names = some_of(&unreadable);
            format!("the record of {names} is damaged; codescout fleet verify --repair repairs it")
        });
        (whole, because.into_iter().collect())
    }
}

fn unknown(name: &str, links: &Links) -> OpError {
    let names: Vec<String> = links.all().into_iter().map(|link| link.name).collect();
    let hint = match nearest(name, names.iter().map(String::as_str)).as_slice() {
        [] => "codescout fleet list lists the repositories".into(),
        near => Hint::did_you_mean(near),
    };
    OpError::not_found(format!("no repository is called {name:?}"), hint)
}

/// Returns the name of the repository in a folder: that of the folder, with other characters replaced.
fn name_of(place: &Path) -> Option<String> {
    let folder = match place.file_name()? {
        name if name == ".git" => place.parent()?.file_name()?,
        name => name,
    };
    let text = folder.to_string_lossy();
    let text = text.strip_suffix(".git").unwrap_or(&text);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = text.chars().map(plain).collect();
    let name = name.trim_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}
