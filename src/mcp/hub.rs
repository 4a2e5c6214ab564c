//! The repositories of a server: the one in which it was started, and those below the allowed roots.
//!
//! A call may name its repository. There is no "current" repository, which concurrent calls could change for each
//! other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use crate::config::{Environment, Overrides};
use crate::git::{OpenError, Repository};
use crate::model::ErrorKind;
use crate::session::{Context as _, FleetFolder, OpError, Opens, Result, Session, Workspace};

/// Maximum number of open repository sessions. A question over linked repositories needs one for each.
const MAX_SESSIONS: usize = 32;
/// The same for a fleet, whose questions are about up to a hundred repositories.
const MAX_SESSIONS_OF_FLEET: usize = 256;
/// Number of sessions, the last used ones, that keep the views of several revisions. The others keep one.
const MAX_BUSY_SESSIONS: usize = 8;
/// Maximum number of folders that are recorded as names of one repository.
const MAX_FOLDERS: usize = 64;
/// Maximum number of roots that an error names.
const MAX_NAMED: usize = 8;
/// What a reader of some groups of a fleet learns about an error in its settings.
pub(super) const UNREADABLE_FLEET: &str =
    "the settings of the fleet cannot be used; the log of the server has the reason";
/// Maximum length of the `repo` argument.
const MAX_PATH_BYTES: usize = 4096;

/// Maximum total size of in-memory indexes. An index takes about 5 KiB per file, so this suffices for a repository of a
/// hundred thousand files. The limit prevents a long-running server from growing with every repository it has served.
const MAX_BYTES_IN_MEMORY: usize = 512 << 20;

/// The repositories of a server.
pub(crate) struct Hub {
    home: PathBuf,
    roots: Vec<PathBuf>,
    /// The fleet that calls without `repo` are about, with its visible groups.
    fleet: Option<(FleetFolder, Vec<String>)>,
    sessions: Mutex<Vec<Held>>,
}

/// The repositories found below the roots.
pub(crate) struct Below {
    /// Folders of the repositories.
    pub(crate) folders: Vec<PathBuf>,
    /// True if every folder was searched.
    pub(crate) is_all: bool,
}

/// An open session. Each worktree has one session, even if calls name it by different folders.
struct Held {
    place: PathBuf,
    marks: Vec<Mark>,
    folders: Vec<Folder>,
    session: Arc<Session>,
}

/// A folder by which calls have named a repository, with its state at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Folder {
    path: PathBuf,
    marks: [Mark; 2],
}

impl Folder {
    fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            // If the repository is replaced by another one at the same path, its state differs.
            marks: [Mark::of(path.to_owned()), Mark::of(path.join(".git"))],
        }
    }
}

/// The state of a folder or file at some time: device and inode, and for a file also its modification time and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    path: PathBuf,
    found: Option<(u64, u64, Option<SystemTime>, u64)>,
}

impl Mark {
    pub(super) fn of(path: PathBuf) -> Self {
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

impl Opens for Hub {
    fn open(&self, folder: &Path) -> Result<Arc<Session>> {
        // A link must not lead to a repository that calls may not name.
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        self.session(Some(&folder.to_string_lossy()))
    }

    fn may_open(&self, folder: &Path) -> bool {
        let existing = folder.ancestors().find_map(|folder| fs::canonicalize(folder).ok());
        existing.is_some_and(|folder| self.is_allowed(&folder))
    }
}

impl Hub {
    /// Creates a hub for the groups of a fleet, or else for the repository that contains `home` and those below `roots`.
    pub(crate) fn new(home: &Path, roots: &[PathBuf], fleet: Option<&(Option<PathBuf>, Vec<String>)>) -> Result<Self> {
        match fleet {
            Some((folder, groups)) => Self::of_fleet(FleetFolder::at(folder.as_deref())?, groups),
            None => Self::of_repository(home, roots),
        }
    }

    /// Creates a hub. Calls use the repository that contains `home`, unless they name a repository below one of
    /// `roots`.
    fn of_repository(home: &Path, roots: &[PathBuf]) -> Result<Self> {
        let roots = roots
            .iter()
            .map(|root| fs::canonicalize(root).with_context(|| format!("cannot use the root {}", root.display())));
        Ok(Self {
            home: fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()),
            roots: roots.collect::<Result<_>>()?,
            fleet: None,
            sessions: Mutex::default(),
        })
    }

    /// Creates a hub for the repositories of these groups of a fleet, or for all of them. Calls are about all of these,
    /// unless they name one.
    pub(super) fn of_fleet(folder: FleetFolder, groups: &[String]) -> Result<Self> {
        // Reports errors in the settings now.
        folder.open(groups)?;
        Ok(Self {
            fleet: Some((folder.clone(), groups.to_vec())),
            ..Self::of_repository(&folder.home(), &[])?
        })
    }

    /// Returns the fleet, if all of its repositories are served.
    pub(super) fn whole_fleet(&self) -> Option<&FleetFolder> {
        let (folder, groups) = self.fleet.as_ref()?;
        groups.is_empty().then_some(folder)
    }

    /// Returns the folder that calls without `repo` use.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the folders below which calls may name repositories: those of the command line and those of the user's
    /// settings.
    pub(super) fn roots(&self) -> Vec<PathBuf> {
        let mut roots = self.roots.clone();
        if self.fleet.is_some() {
            let links = self
                .find(None)
                .map(|home| home.workspace.config.links.all())
                .unwrap_or_default();
            return links
                .iter()
                .filter_map(|link| fs::canonicalize(&link.path).ok())
                .collect();
        }
        if let Ok(home) = self.find(None) {
            let set = &home.workspace.config.serve.roots.value;
            roots.extend(set.iter().filter_map(|root| fs::canonicalize(root).ok()));
        }
        roots
    }

    /// Returns the session of the repository that a call names, or of the default one.
    pub(crate) fn session(&self, repo: Option<&str>) -> Result<Arc<Session>> {
        let session = self.find(repo)?;
        self.drop_excess_indexes();
        Ok(session)
    }

    /// Removes in-memory indexes, least recently used first, until the others fit into [`MAX_BYTES_IN_MEMORY`].
    fn drop_excess_indexes(&self) {
        let sessions = self.sessions.lock();
        let idle = sessions.iter().rev().skip(MAX_BUSY_SESSIONS);
        idle.for_each(|held| held.session.keep_newest_view());
        let indexes = sessions.iter().flat_map(|held| {
            let indexes = held.session.in_memory().into_iter();
            indexes.map(|(tree, n_bytes)| (&held.session, tree, n_bytes))
        });
        let indexes: Vec<_> = indexes.collect();
        let sizes: Vec<usize> = indexes.iter().map(|(.., n_bytes)| *n_bytes).collect();
        for (session, tree, n_bytes) in indexes.iter().take(n_too_many(&sizes, MAX_BYTES_IN_MEMORY)) {
            tracing::debug!(%tree, n_bytes, "dropping an in-memory index");
            session.forget(*tree);
        }
    }

    fn find(&self, repo: Option<&str>) -> Result<Arc<Session>> {
        let Some(named) = repo else {
            return self.open(&self.home, &|| Ok(Session::for_server(self.own()?, true)));
        };
        let folder = self.resolve(named)?;
        if folder == self.home {
            return self.find(None);
        }
        self.open(&folder, &|| self.checked(&folder, named))
    }

    /// Opens the repository in which the server was started.
    fn own(&self) -> Result<Workspace> {
        if let Some((folder, groups)) = &self.fleet {
            return folder.open(groups).map_err(|error| {
                if groups.is_empty() {
                    return error;
                }
                // The error may name repositories of other groups.
                tracing::warn!("{error:#}");
                OpError::failed(UNREADABLE_FLEET)
            });
        }
        let opened = Workspace::open(&self.home, &Overrides::default());
        opened.map_err(|error| match error.kind {
            ErrorKind::NotFound => {
                let hint = match self.given_roots().as_str() {
                    "" => "start the server with --root DIR and pass a repository below it as repo".to_owned(),
                    roots => format!("pass a repository as repo: its path below {roots}"),
                };
                OpError::new(format!("{error}, where the server was started"), hint)
            }
            _ => error,
        })
    }

    fn given_roots(&self) -> String {
        let roots: Vec<String> = self.roots.iter().map(|root| root.display().to_string()).collect();
        roots.join(", ")
    }

    /// Returns the repositories that have an open session, without the default one.
    pub(super) fn held(&self) -> Vec<PathBuf> {
        let sessions = self.sessions.lock();
        let is_home = |held: &Held| held.folders.iter().any(|folder| folder.path == self.home);
        let others = sessions.iter().filter(|held| !is_home(held));
        others.map(|held| held.place.clone()).collect()
    }

    /// Returns the worktrees of the repository in which the server was started.
    pub(super) fn work_trees(&self) -> Vec<PathBuf> {
        let Ok(home) = Repository::discover(&self.home) else {
            return Vec::new();
        };
        let linked = home.linked_work_trees();
        home.main_work_dir().into_iter().chain(linked).collect()
    }

    /// Searches the roots for repositories, down to a limited depth and number of folders.
    pub(crate) fn below_roots(&self, interrupt: &AtomicBool) -> Below {
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

    /// Stops all builds, and waits up to 400 ms for them to save completed work.
    pub(crate) fn stop(&self) {
        const MOMENT: Duration = Duration::from_millis(400);
        let end = Instant::now() + MOMENT;
        let sessions = self.sessions.lock();
        let jobs: Vec<_> = sessions.iter().flat_map(|held| held.session.jobs.all()).collect();
        sessions.iter().for_each(|held| {
            held.session.jobs.stop(&held.session.jobs.all());
        });
        for job in jobs {
            let left = end.saturating_duration_since(Instant::now());
            job.wait(left, &AtomicBool::new(false), &|_| {});
        }
    }

    fn open(&self, folder: &Path, make: &dyn Fn() -> Result<Session>) -> Result<Arc<Session>> {
        if let Some(session) = self.held_session(folder) {
            return Ok(session);
        }
        // The state is recorded before opening, so that a change during opening is noticed. The lock is not held,
        // because opening takes time and may need another session.
        let known_by = Folder::of(folder);
        let session = Arc::new(make()?);
        let place = session.workspace.repository.place().to_owned();
        let marks = marks(&session.workspace);
        let mut sessions = self.sessions.lock();
        if let Some(first) = sessions
            .iter_mut()
            .find(|other| other.place == place && other.marks == marks)
        {
            // The repository is already open under another folder, or a concurrent call has opened it. Two sessions
            // would build the same index twice.
            first.folders.retain(|known| known.path != folder);
            if first.folders.len() >= MAX_FOLDERS {
                first.folders.remove(0);
            }
            first.folders.push(known_by);
            return Ok(Arc::clone(&first.session));
        }
        sessions.retain(|other| other.place != place);
        let max_sessions = match self.fleet {
            Some(_) => MAX_SESSIONS_OF_FLEET,
            None => MAX_SESSIONS,
        };
        if sessions.len() >= max_sessions {
            sessions.remove(0);
        }
        sessions.push(Held {
            place,
            marks,
            folders: vec![known_by],
            session: Arc::clone(&session),
        });
        Ok(session)
    }

    fn held_session(&self, folder: &Path) -> Option<Arc<Session>> {
        let mut sessions = self.sessions.lock();
        let of_folder = |known: &Folder| known.path == folder && known.marks.iter().all(Mark::still_holds);
        let position = sessions.iter().position(|held| held.folders.iter().any(of_folder))?;
        if !sessions[position].marks.iter().all(Mark::still_holds) {
            return None;
        }
        let held = sessions.remove(position);
        let session = Arc::clone(&held.session);
        sessions.push(held);
        Some(session)
    }

    /// Resolves the `repo` argument to a folder. The argument is a path, or a name below a root. Symbolic links are
    /// resolved before the folder is compared with the roots.
    fn resolve(&self, named: &str) -> Result<PathBuf> {
        let refused = |why: &str| self.refused(named, why);
        if named.trim().is_empty() || named.len() > MAX_PATH_BYTES || named.chars().any(char::is_control) {
            return Err(refused("invalid path"));
        }
        let path = Path::new(named);
        if named.starts_with('-') || path.components().any(|part| part == Component::ParentDir) {
            return Err(refused("a path must not start with a hyphen or contain .."));
        }
        let candidates: Vec<PathBuf> = if path.is_absolute() {
            vec![path.to_owned()]
        } else {
            self.roots().iter().map(|root| root.join(path)).collect()
        };
        let found = candidates.iter().find_map(|candidate| fs::canonicalize(candidate).ok());
        // The message is the same for missing and forbidden folders, so that callers cannot find out which files exist.
        found
            .filter(|folder| folder == &self.home || self.is_allowed(folder) || self.is_relative(folder))
            .ok_or_else(|| refused("there is no allowed repository at this path"))
    }

    fn is_allowed(&self, folder: &Path) -> bool {
        // The folder of a repository may contain others, which are not in the fleet.
        let is_in = |root: &PathBuf| match self.fleet {
            Some(_) => folder == root,
            None => folder.starts_with(root),
        };
        self.roots().iter().any(is_in)
    }

    /// Returns true if a folder is inside the repository in which the server was started: in its worktree, its git
    /// directory, or a linked worktree.
    fn is_relative(&self, folder: &Path) -> bool {
        let Ok(home) = Repository::discover(&self.home) else {
            return false;
        };
        let main = home.main_work_dir();
        let places = [home.work_dir(), main.as_deref(), Some(home.common_dir())];
        let is_inside = places.into_iter().flatten().any(|place| folder.starts_with(place));
        is_inside
            || home
                .linked_work_trees()
                .iter()
                .any(|work_tree| folder.starts_with(work_tree))
    }

    /// Opens a repository that a call names. All parts of it must be in allowed folders, because a `.git` file, a link
    /// or alternate objects could point outside. Errors from opening it are not returned to the caller, because they
    /// may quote files outside.
    fn checked(&self, folder: &Path, named: &str) -> Result<Session> {
        let home = Repository::discover(&self.home).ok();
        let repository = match Repository::discover_foreign(folder) {
            Err(error @ (OpenError::NotARepository { .. } | OpenError::Untrusted { .. })) => return Err(error.into()),
            found => found.map_err(|_| self.refused(named, "it cannot be opened as a git repository"))?,
        };
        if home.is_some_and(|home| repository.is_work_tree_of(&home)) {
            return Ok(Session::for_server(
                Workspace::open(folder, &Overrides::default())?,
                true,
            ));
        }
        // A clone below the worktree, a submodule, or a bare repository among its files is a separate repository.
        if !self.is_allowed(folder) {
            return Err(self.refused(named, "repositories other than the server's own are not allowed"));
        }
        let roots = self.roots();
        let is_allowed = |part: &Path| roots.iter().any(|root| part.starts_with(root)) || self.is_relative(part);
        match repository.is_confined_to(&is_allowed) {
            Ok(true) => Ok(Session::for_server(Workspace::open_foreign(repository)?, false)),
            Ok(false) => Err(self.refused(named, "part of the repository is outside the allowed roots")),
            Err(_) => Err(self.refused(named, "cannot determine where all parts of the repository are")),
        }
    }

    fn refused(&self, named: &str, why: &str) -> OpError {
        let short: String = named.chars().take(80).collect();
        let roots = self.roots();
        let roots: Vec<String> = roots
            .iter()
            .take(MAX_NAMED)
            .map(|root| root.display().to_string())
            .collect();
        let hint = match (roots.is_empty(), Repository::discover(&self.home).is_ok()) {
            (true, true) => "omit repo; to allow other repositories: codescout serve --root DIR".to_owned(),
            (true, false) => "to allow other repositories: codescout serve --root DIR".to_owned(),
            (false, true) => format!("omit repo, or name a repository below {}", roots.join(", ")),
            (false, false) => format!("name a repository below {}", roots.join(", ")),
        };
        OpError::new(format!("repo {short:?} is refused: {why}"), hint)
    }
}

/// Returns the number of leading entries to remove so that the others have at most `max` bytes in total. The last entry
/// is never removed, because the current call uses it.
fn n_too_many(sizes: &[usize], max: usize) -> usize {
    let mut n_bytes: usize = sizes.iter().sum();
    let before_last = sizes.iter().take(sizes.len().saturating_sub(1));
    let is_too_much = |size: &&usize| {
        let is_too_much = n_bytes > max;
        n_bytes -= **size;
        is_too_much
    };
    before_last.take_while(is_too_much).count()
}

/// Returns the state of everything that must be unchanged for a session to be reused: the repository, its object
/// directories and the settings files.
fn marks(workspace: &Workspace) -> Vec<Mark> {
    let repository = &workspace.repository;
    let mut paths = vec![
        repository.place().to_owned(),
        repository.git_dir().to_owned(),
        repository.common_dir().join("config"),
        repository.common_dir().join("objects"),
        repository.common_dir().join("objects/info/alternates"),
        workspace.storage.root().join("config.toml"),
    ];
    paths.extend(Environment::read().user_file);
    paths.extend(workspace.fleet.as_ref().map(|fleet| fleet.settings().to_owned()));
    if let Some(root) = repository.work_dir() {
        paths.push(root.join(".git"));
        paths.push(root.join(".codescout.toml"));
    }
    paths.into_iter().map(Mark::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_indexes_are_dropped_first() {
        for (sizes, n_gone) in [
            (&[][..], 0),
            (&[100], 0),
            (&[4, 3, 3], 0),
            (&[4, 4, 3], 1),
            (&[1, 1, 8, 4], 3),
            (&[9, 9, 9], 2),
            (&[0, 11], 1),
        ] {
            assert_eq!(n_too_many(sizes, 10), n_gone, "{sizes:?}");
        }
    }
}
