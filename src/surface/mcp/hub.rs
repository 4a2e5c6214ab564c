//! Which repositories a server speaks of: the one that it was started in, and those below the allowed roots.
//!
//! A repository is named by each call; there is no active one that calls at once could change for each other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Result;

use super::desk::Desk;
use super::failure::Failure;
use crate::config::Overrides;
use crate::git::Repository;
use crate::surface::open::Workspace;

/// Repositories whose views are held.
const MAX_DESKS: usize = 8;
/// No honest path is longer.
const MAX_PATH_BYTES: usize = 4096;

/// The repositories of a server.
pub(super) struct Hub {
    home: PathBuf,
    roots: Vec<PathBuf>,
    desks: Mutex<Vec<Held>>,
}

struct Held {
    folder: PathBuf,
    marks: Vec<Mark>,
    desk: Arc<Desk>,
}

/// What a folder or file was when it was looked at: device, inode, and for a file its time and size.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    path: PathBuf,
    found: Option<(u64, u64, Option<SystemTime>, u64)>,
}

impl Mark {
    fn of(path: PathBuf) -> Self {
        let found = fs::metadata(&path).ok().map(|metadata| {
            let is_file = metadata.is_file();
            let time = metadata.modified().ok().filter(|_| is_file);
            (
                metadata.dev(),
                metadata.ino(),
                time,
                if is_file { metadata.len() } else { 0 },
            )
        });
        Self { path, found }
    }

    fn still_holds(&self) -> bool {
        Self::of(self.path.clone()) == *self
    }
}

impl Hub {
    /// A hub whose calls are about the repository around `home`, unless they name another below one of `roots`.
    pub(super) fn new(home: &Path, roots: &[PathBuf]) -> Result<Self> {
        let roots = roots.iter().map(|root| {
            fs::canonicalize(root).map_err(|error| anyhow::anyhow!("cannot use the root {}: {error}", root.display()))
        });
        Ok(Self {
            home: fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()),
            roots: roots.collect::<Result<_>>()?,
            desks: Mutex::default(),
        })
    }

    /// Where a call without `repo` goes.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// The folders in which other repositories may be named: those given at the start, and those of the user's settings.
    pub(super) fn roots(&self) -> Vec<PathBuf> {
        let mut roots = self.roots.clone();
        if let Ok(home) = self.desk(None) {
            let set = &home.workspace.config.roots.value;
            roots.extend(set.iter().filter_map(|root| fs::canonicalize(root).ok()));
        }
        roots
    }

    /// The repository that a call is about.
    pub(super) fn desk(&self, repo: Option<&str>) -> Result<Arc<Desk>> {
        let Some(named) = repo else {
            return self.open(&self.home, &|| Workspace::open(&self.home, &Overrides::default()));
        };
        let folder = self.resolve(named)?;
        if folder == self.home {
            return self.desk(None);
        }
        self.open(&folder, &|| self.checked(&folder, named))
    }

    /// The repositories that were asked about and are held, by folder.
    pub(super) fn held(&self) -> Vec<PathBuf> {
        let desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        desks.iter().map(|held| held.folder.clone()).collect()
    }

    /// Stops every build, and waits a moment for them to keep what they have.
    pub(super) fn stop(&self) {
        const MOMENT: Duration = Duration::from_secs(1);
        let desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs: Vec<_> = desks.iter().flat_map(|held| held.desk.jobs.all()).collect();
        desks.iter().for_each(|held| {
            held.desk.jobs.stop();
        });
        for job in jobs {
            job.wait(MOMENT, &AtomicBool::new(false), &|_| {});
        }
    }

    fn open(&self, folder: &Path, make: &dyn Fn() -> Result<Workspace>) -> Result<Arc<Desk>> {
        if let Some(desk) = self.held_desk(folder) {
            return Ok(desk);
        }
        // Without the lock: what is opened may ask for another desk, and takes a moment.
        let desk = Arc::new(Desk::new(make()?));
        let held = Held {
            folder: folder.to_owned(),
            marks: marks(folder, &desk.workspace),
            desk: Arc::clone(&desk),
        };
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = desks
            .iter()
            .find(|other| other.folder == folder && other.marks == held.marks)
        {
            // A call at the same time was faster; two desks would build twice.
            return Ok(Arc::clone(&first.desk));
        }
        desks.retain(|other| other.folder != folder);
        if desks.len() >= MAX_DESKS {
            desks.remove(0);
        }
        desks.push(held);
        Ok(desk)
    }

    fn held_desk(&self, folder: &Path) -> Option<Arc<Desk>> {
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        let position = desks.iter().position(|held| held.folder == folder)?;
        if !desks[position].marks.iter().all(Mark::still_holds) {
            return None;
        }
        let held = desks.remove(position);
        let desk = Arc::clone(&held.desk);
        desks.push(held);
        Some(desk)
    }

    /// The folder that a call names: a path, or a name below a root. Links are followed before it is compared with the roots.
    fn resolve(&self, named: &str) -> Result<PathBuf> {
        let refused = |why: &str| self.refused(named, why);
        if named.trim().is_empty() || named.len() > MAX_PATH_BYTES || named.chars().any(char::is_control) {
            return Err(refused("it is not a path"));
        }
        let path = Path::new(named);
        if named.starts_with('-') || path.components().any(|part| part == Component::ParentDir) {
            return Err(refused("a path begins with no hyphen and holds no .."));
        }
        let candidates: Vec<PathBuf> = match path.is_absolute() {
            true => vec![path.to_owned()],
            false => self.roots().iter().map(|root| root.join(path)).collect(),
        };
        let found = candidates.iter().find_map(|candidate| fs::canonicalize(candidate).ok());
        // The same words for what is not there and what may not be seen: nobody shall learn which files there are.
        found
            .filter(|folder| folder == &self.home || self.is_allowed(folder) || self.is_relative(folder))
            .ok_or_else(|| refused("no repository that may be asked about is there"))
    }

    fn is_allowed(&self, folder: &Path) -> bool {
        self.roots().iter().any(|root| folder.starts_with(root))
    }

    /// Whether a folder belongs to the repository that the server was started in: its work tree, its git directory, or a work
    /// tree that git lists as one of it.
    fn is_relative(&self, folder: &Path) -> bool {
        let Ok(home) = Repository::discover(&self.home) else {
            return false;
        };
        let main = home.main_work_dir();
        let places = [home.work_dir(), main.as_deref(), Some(home.common_dir())];
        let is_inside = places.into_iter().flatten().any(|place| folder.starts_with(place));
        is_inside
            || linked_work_trees(home.common_dir())
                .iter()
                .any(|work_tree| folder.starts_with(work_tree))
    }

    /// A repository that may be asked about: all of it has to lie where that is allowed, so that a `.git` file that points elsewhere leads nowhere.
    fn checked(&self, folder: &Path, named: &str) -> Result<Workspace> {
        let home = Repository::discover(&self.home).ok();
        let repository = Repository::discover(folder)?;
        let is_family = home.is_some_and(|home| home.common_dir() == repository.common_dir());
        if is_family {
            return Workspace::open(folder, &Overrides::default());
        }
        let parts = [
            Some(repository.common_dir()),
            Some(repository.git_dir()),
            repository.work_dir(),
        ];
        if !parts
            .into_iter()
            .flatten()
            .all(|part| self.is_allowed(part) || self.is_relative(part))
        {
            return Err(self.refused(named, "a part of that repository lies outside the allowed roots"));
        }
        Workspace::open_foreign(folder)
    }

    fn refused(&self, named: &str, why: &str) -> anyhow::Error {
        let short: String = named.chars().take(80).collect();
        let hint = match self.roots().as_slice() {
            [] => "leave repo out; other repositories need: codescout serve --root DIR".to_owned(),
            roots => {
                let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
                format!("leave repo out, or name one below {}", roots.join(", "))
            }
        };
        Failure::new(format!("repo {short:?} is refused: {why}"), hint).into()
    }
}

/// What has to be the same for a desk to be of use: the folder, its repository, and the files with settings.
fn marks(folder: &Path, workspace: &Workspace) -> Vec<Mark> {
    let repository = &workspace.repository;
    let mut paths = vec![
        folder.to_owned(),
        repository.git_dir().to_owned(),
        repository.common_dir().join("config"),
        workspace.sidecar_root().join("config.toml"),
    ];
    if let Some(root) = repository.work_dir() {
        paths.push(root.join(".git"));
        paths.push(root.join(".codescout.toml"));
    }
    paths.into_iter().map(Mark::of).collect()
}

/// The work trees that `git worktree add` has made, as far as both ends agree.
fn linked_work_trees(common_dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(common_dir.join("worktrees")) else {
        return Vec::new();
    };
    let root_of = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("gitdir")).ok()?;
        let root = fs::canonicalize(Path::new(text.trim_end()).parent()?).ok()?;
        let back = fs::read_to_string(root.join(".git")).ok()?;
        let git_dir = fs::canonicalize(root.join(back.trim_end().strip_prefix("gitdir: ")?)).ok()?;
        (git_dir == fs::canonicalize(entry.path()).ok()?).then_some(root)
    };
    entries.flatten().filter_map(root_of).collect()
}
