//! Which repositories a server speaks of: the one that it was started in, and those below the allowed roots.
//!
//! A repository is named by each call; there is no active one that calls at once could change for each other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Repositories that were found.
pub(super) struct Below {
    /// Where they are.
    pub(super) folders: Vec<PathBuf>,
    /// Whether every folder was looked at.
    pub(super) is_all: bool,
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
            return self.open(&self.home, &|| {
                Ok(Desk::new(Workspace::open(&self.home, &Overrides::default())?, true))
            });
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

    /// The work trees of the repository that the server was started in.
    pub(super) fn work_trees(&self) -> Vec<PathBuf> {
        let Ok(home) = Repository::discover(&self.home) else {
            return Vec::new();
        };
        let linked = linked_work_trees(home.common_dir());
        home.main_work_dir().into_iter().chain(linked).collect()
    }

    /// The repositories below the roots, as far as they are found soon.
    pub(super) fn below_roots(&self, interrupt: &AtomicBool) -> Below {
        const MAX_FOLDERS: usize = 10_000;
        const MAX_DEPTH: usize = 4;
        let mut below = Below {
            folders: Vec::new(),
            is_all: true,
        };
        let mut waiting: Vec<(PathBuf, usize)> = self.roots().into_iter().map(|root| (root, 0)).collect();
        let mut n_seen = 0;
        while let Some((folder, depth)) = waiting.pop() {
            n_seen += 1;
            if n_seen > MAX_FOLDERS || interrupt.load(Ordering::Relaxed) {
                below.is_all = false;
                break;
            }
            let is_bare = folder.join("HEAD").is_file() && folder.join("objects").is_dir();
            if is_bare || folder.join(".git").exists() {
                below.folders.push(folder);
                continue;
            }
            if depth == MAX_DEPTH {
                below.is_all = false;
                continue;
            }
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_hidden = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
            let folders = entries.filter(|entry| is_folder(entry) && !is_hidden(entry));
            waiting.extend(folders.map(|entry| (entry.path(), depth + 1)));
        }
        below.folders.sort_unstable();
        below
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

    fn open(&self, folder: &Path, make: &dyn Fn() -> Result<Desk>) -> Result<Arc<Desk>> {
        if let Some(desk) = self.held_desk(folder) {
            return Ok(desk);
        }
        // Without the lock: what is opened may ask for another desk, and takes a moment.
        let desk = Arc::new(make()?);
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
    fn checked(&self, folder: &Path, named: &str) -> Result<Desk> {
        let home = Repository::discover(&self.home).ok();
        // What is wrong with it may be told in the words of a file that its configuration names: nothing of it is told.
        let refused = || self.refused(named, "it is no repository that may be asked about");
        let repository = Repository::discover(folder).map_err(|_| refused())?;
        let is_family = home.is_some_and(|home| home.common_dir() == repository.common_dir());
        if is_family {
            return Ok(Desk::new(Workspace::open(folder, &Overrides::default())?, true));
        }
        let parts = parts_of(&repository).ok_or_else(refused)?;
        if !parts.iter().all(|part| self.is_allowed(part) || self.is_relative(part)) {
            return Err(self.refused(named, "a part of that repository lies outside the allowed roots"));
        }
        Ok(Desk::new(
            Workspace::open_foreign(folder).map_err(|_| refused())?,
            false,
        ))
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
        repository.common_dir().join("objects/info/alternates"),
        workspace.sidecar_root().join("config.toml"),
    ];
    if let Some(root) = repository.work_dir() {
        paths.push(root.join(".git"));
        paths.push(root.join(".codescout.toml"));
    }
    paths.into_iter().map(Mark::of).collect()
}

/// Where a repository's files and objects are, links followed; none if that cannot be known: its configuration takes in other
/// files, or other repositories' objects are nested too deeply.
fn parts_of(repository: &Repository) -> Option<Vec<PathBuf>> {
    let (common, own) = (repository.common_dir(), repository.git_dir());
    for config in [common.join("config"), own.join("config.worktree")] {
        let text = fs::read(config).unwrap_or_default().to_ascii_lowercase();
        if text.windows(8).any(|word| word == b"[include") {
            return None;
        }
    }
    let mut parts = vec![common.to_owned(), own.to_owned()];
    parts.extend(repository.work_dir().map(Path::to_owned));
    for file in [
        "config",
        "refs",
        "packed-refs",
        "logs",
        "shallow",
        "info",
        "info/exclude",
        "info/attributes",
    ] {
        parts.extend(fs::canonicalize(common.join(file)));
    }
    for file in ["HEAD", "index", "config.worktree"] {
        parts.extend(fs::canonicalize(own.join(file)));
    }
    add_object_folders(&common.join("objects"), 0, &mut parts)?;
    Some(parts)
}

/// A folder of objects, what links in it lead to, and the folders that it takes objects from.
fn add_object_folders(objects: &Path, depth: usize, parts: &mut Vec<PathBuf>) -> Option<()> {
    const MAX_DEPTH: usize = 5;
    if depth > MAX_DEPTH {
        return None;
    }
    parts.push(fs::canonicalize(objects).ok()?);
    for folder in [objects.to_owned(), objects.join("pack"), objects.join("info")] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        parts.extend(links.filter_map(|link| fs::canonicalize(link.path()).ok()));
    }
    let Ok(alternates) = fs::read_to_string(objects.join("info/alternates")) else {
        return Some(());
    };
    for line in alternates
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        // A quoted one is not followed by us, so it is taken for what it is not.
        add_object_folders(&objects.join(line.trim_matches('"')), depth + 1, parts)?;
    }
    Some(())
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
