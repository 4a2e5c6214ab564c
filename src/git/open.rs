//! Discovers and opens repositories.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bstr::{BString, ByteSlice};

use super::cause::{Cause, without_quotes};
use super::includes;
use super::irregular;
use super::linked::{check_mutual_links, check_start};
use super::reader::{LargeObjects, ObjectReader};
use super::small_file::read_small_file;
use super::surroundings::check_bare;
use crate::model::{ErrorKind, Explain, Explanation};

/// An open repository. Cheap to clone; can be shared between threads.
///
/// The configuration is read once, on opening. Refs, objects and the index are read again by every call.
#[derive(Clone)]
pub struct Repository {
    pub(super) shared: gix::ThreadSafeRepository,
    pub(super) places: Arc<Places>,
    pub(super) sidecar: Option<PathBuf>,
}

/// Paths and properties of a repository. All paths are absolute and free of symbolic links.
pub(super) struct Places {
    kind: RepositoryKind,
    work_dir: Option<PathBuf>,
    git_dir: PathBuf,
    common_dir: PathBuf,
    pub(super) refs: RefStorage,
    pub(super) large_objects: LargeObjects,
    pub(super) is_partial: bool,
    includes: Includes,
    /// The linked worktrees, once they are needed.
    linked: OnceLock<Vec<PathBuf>>,
}

/// Selects if files that the configuration includes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Includes {
    Followed,
    /// Included files can be anywhere on the machine, and an error message about one could reveal its content.
    Ignored,
}

/// The kind of a repository or worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepositoryKind {
    /// A repository without a worktree.
    Bare,
    /// The main worktree of a repository.
    MainWorkTree,
    /// A worktree created by `git worktree add`, which shares objects and refs with the main worktree.
    LinkedWorkTree,
    /// A submodule, whose git directory is inside that of the parent repository.
    Submodule,
}

/// The hash function of object ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectFormat {
    /// SHA-1, with ids of 20 bytes.
    Sha1,
    /// SHA-256, with ids of 32 bytes.
    Sha256,
}

/// The format in which the repository stores refs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefStorage {
    /// Loose files and `packed-refs`, which are read in-process.
    Files,
    /// Reftable, which only the git executable can read.
    Reftable,
}

/// An error from opening a repository.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Neither the path nor any of its parent directories is a repository.
    #[error("{} is not inside a git repository", .path.display())]
    NotARepository {
        /// The path where the search started.
        path: PathBuf,
    },
    /// The path cannot be accessed.
    #[error("cannot access {}", .path.display())]
    Inaccessible {
        /// The given path.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: std::io::Error,
    },
    /// Another user owns the repository, so its configuration cannot be trusted. To trust it, the user runs
    /// `git config --global --add safe.directory` with the path.
    #[error("the repository at {} is owned by another user", .path.display())]
    Untrusted {
        /// The path to add to `safe.directory`.
        path: PathBuf,
    },
    /// The repository is bare and `GIT_DIR` does not name it, while `safe.bareRepository` is `explicit`.
    #[error("the repository at {} is bare, and safe.bareRepository is explicit", .path.display())]
    Bare {
        /// The path of the git directory.
        path: PathBuf,
    },
    /// A pipe or a device is in the place of a file. Reading it could take forever.
    #[error("{} is not a regular file (pipe, device, or link into /dev, /proc or /sys)", .path.display())]
    Irregular {
        /// The path of the pipe or device, or of a link to it.
        path: PathBuf,
    },
    /// A line of the file `shallow` is not a commit id.
    #[error("{} has a line that is not a commit id", .path.display())]
    Shallow {
        /// The path of the file.
        path: PathBuf,
    },
    /// The git directory claims to belong to a linked worktree, but the main repository does not list it.
    #[error("the git directory {} is not a worktree of the repository at {}", .path.display(), .common_dir.display())]
    Unlisted {
        /// The path of the git directory.
        path: PathBuf,
        /// The git directory of the main repository.
        common_dir: PathBuf,
    },
    /// The git directory and the worktree do not refer to each other.
    #[error("the git directory {} and the worktree {} do not refer to each other", .path.display(), .work_dir.display())]
    NotItsWorkTree {
        /// The path of the git directory.
        path: PathBuf,
        /// The worktree.
        work_dir: PathBuf,
        /// True for a linked worktree; otherwise `core.worktree` or a `.git` file names it.
        is_linked: bool,
    },
    /// The version of the repository format is too new.
    #[error("the repository at {} has format version {version} (supported: 0 and 1)", .path.display())]
    UnsupportedVersion {
        /// The path of the git directory.
        path: PathBuf,
        /// `core.repositoryFormatVersion`.
        version: String,
    },
    /// The repository format uses an unsupported extension.
    #[error("the repository at {} uses the unsupported extension {extension:?}", .path.display())]
    UnsupportedExtension {
        /// The path of the git directory.
        path: PathBuf,
        /// The extension in the form `extensions.<name>=<value>`.
        extension: String,
    },
    /// The configuration includes other files, which the git executable would read.
    #[error("the configuration of the repository at {} includes other files", .path.display())]
    Includes {
        /// The path of the git directory.
        path: PathBuf,
    },
    /// The configuration includes more files than any real one.
    #[error("the configuration {} includes more than {limit} files", .path.display())]
    TooManyIncludes {
        /// The path of the configuration file.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// The repository is damaged or unreadable.
    #[error("cannot open the repository at {}", .path.display())]
    Damaged {
        /// The given path.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: Cause,
    },
}

impl Explain for OpenError {
    fn explain(&self) -> Explanation {
        Explanation::hinting(match self {
            Self::NotARepository { .. } => {
                let hint = "run in a git repository, or create one with `git init`";
                return Explanation {
                    kind: ErrorKind::NotFound,
                    ..Explanation::hinting(hint)
                };
            }
            Self::Untrusted { path } => format!(
                "if you trust it: git config --global --add safe.directory {}",
                shell_quoted(&path.to_string_lossy())
            ),
            Self::Bare { path } => format!(
                "if you trust it: GIT_DIR={} codescout …",
                shell_quoted(&path.to_string_lossy())
            ),
            Self::Irregular { path } => format!("remove {}", path.display()),
            Self::Shallow { path } => format!(
                "remove {}, then run `git fetch --unshallow` or `git fetch --depth=1`",
                path.display()
            ),
            Self::NotItsWorkTree { is_linked: true, .. } => {
                "if the worktree moved, run `git worktree repair` in it".to_owned()
            }
            Self::NotItsWorkTree { path, work_dir, .. } => format!(
                "core.worktree or a file .git names it, which an archive can do, too; if you set it: GIT_DIR={} \
                 GIT_WORK_TREE={} codescout …",
                shell_quoted(&path.to_string_lossy()),
                shell_quoted(&work_dir.to_string_lossy())
            ),
            _ => return Explanation::default(),
        })
    }
}

impl Repository {
    /// Opens the repository that contains `from`, a file or a directory. Discovers it as git does.
    pub fn discover(from: &Path) -> Result<Self, OpenError> {
        Self::discover_with(from, Includes::Followed)
    }

    /// Like [`Self::discover`], for a repository that an attacker may have crafted to reveal other files. Does not read
    /// files that the configuration includes. Call [`Self::is_confined_to`] to check all other files.
    pub fn discover_foreign(from: &Path) -> Result<Self, OpenError> {
        let repository = Self::discover_with(from, Includes::Ignored)?;
        // The git executable reads reftable refs and would read the included files.
        let local = repository.local();
        let config = local.config_snapshot();
        let has_includes = ["include", "includeIf"].iter().any(|name| {
            let mut sections = config.plumbing().sections_by_name(name).into_iter().flatten();
            sections.any(|section| section.meta().source == gix::config::Source::Local)
        });
        if repository.places.refs == RefStorage::Reftable && has_includes {
            Err(OpenError::Includes {
                path: repository.git_dir().to_owned(),
            })
        } else {
            Ok(repository)
        }
    }

    fn discover_with(from: &Path, includes: Includes) -> Result<Self, OpenError> {
        let start = starting_folder(from)?;
        irregular::check_above(&start)?;
        let trust = gix::sec::trust::Mapping {
            full: open_options(includes),
            reduced: open_options(includes),
        };
        let shared =
            gix::ThreadSafeRepository::discover_opts(&start, gix::discover::upwards::Options::default(), trust)
                .map_err(|source| open_error(&start, source))?;
        let repository = Self::from_shared(shared, includes)?;
        check_bare(&start, repository.git_dir())?;
        check_start(&start, &repository)?;
        Ok(repository)
    }

    /// Opens the repository at `path`, which must be the root of a worktree or a git directory.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let exact = canonical(path)?;
        irregular::check_above(&exact)?;
        let shared = gix::ThreadSafeRepository::open_opts(exact.as_path(), open_options(Includes::Followed))
            .map_err(|source| open_error(&exact, source))?;
        let repository = Self::from_shared(shared, Includes::Followed)?;
        check_start(&exact, &repository)?;
        Ok(repository)
    }

    fn from_shared(shared: gix::ThreadSafeRepository, includes: Includes) -> Result<Self, OpenError> {
        let local = shared.to_thread_local();
        let git_dir = canonical(local.git_dir())?;
        let common_dir = canonical(local.common_dir())?;
        let format = check_format(&local, &git_dir)?;
        includes::check_named_files(&local)?;
        check_shallow(&common_dir, local.object_hash())?;
        let work_dir = local
            .workdir()
            .and_then(|dir| std::fs::canonicalize(dir).ok())
            .filter(|dir| dir.is_dir());
        let is_configured = local.config_snapshot().string("core.worktree").is_some();
        check_mutual_links(&git_dir, &common_dir, work_dir.as_deref(), is_configured)?;
        let places = Places {
            kind: kind_of(&local, work_dir.as_deref()),
            work_dir,
            git_dir,
            common_dir,
            refs: format.refs,
            large_objects: LargeObjects::default(),
            is_partial: format.is_partial,
            includes,
            linked: OnceLock::new(),
        };
        Ok(Self {
            shared,
            places: Arc::new(places),
            sidecar: None,
        })
    }

    /// Excludes a directory from the files of the worktree. It need not exist.
    pub fn with_sidecar(self, sidecar: &Path) -> Self {
        Self {
            sidecar: Some(sidecar.to_owned()),
            ..self
        }
    }

    /// Returns the kind of this repository.
    pub fn kind(&self) -> RepositoryKind {
        self.places.kind
    }

    /// Returns the root of the worktree. Returns `None` for a bare repository or if the directory no longer exists.
    pub fn work_dir(&self) -> Option<&Path> {
        self.places.work_dir.as_deref()
    }

    /// Returns the root of the worktree, or the git directory if there is no worktree. Messages name the repository by
    /// this path, and git runs in it.
    pub fn place(&self) -> &Path {
        self.work_dir().unwrap_or(self.git_dir())
    }

    /// Returns the directory that contains the `HEAD` and the index of this worktree.
    pub fn git_dir(&self) -> &Path {
        &self.places.git_dir
    }

    /// Returns the directory that contains the objects and refs of all worktrees.
    pub fn common_dir(&self) -> &Path {
        &self.places.common_dir
    }

    /// Returns the folders of the repository: its worktrees, that of the repository whose submodule it is, and those of
    /// git. No program in them is run.
    pub fn folders(&self) -> Vec<&Path> {
        let (git_dir, common) = (self.git_dir(), self.common_dir());
        // The git directory of a submodule is in that of the repository around it.
        let around = common.ancestors().filter(|folder| folder.ends_with(".git"));
        let around = around.filter_map(Path::parent);
        let linked = self.places.linked.get_or_init(|| self.linked_work_trees());
        let own = [self.work_dir(), Some(git_dir), Some(common)].into_iter().flatten();
        own.chain(around).chain(linked.iter().map(PathBuf::as_path)).collect()
    }

    /// Returns the root of the main worktree. Returns `None` if the main repository is bare or the directory no longer
    /// exists.
    pub fn main_work_dir(&self) -> Option<PathBuf> {
        if self.kind() != RepositoryKind::LinkedWorkTree {
            return self.work_dir().map(Path::to_path_buf);
        }
        let options = open_options(self.places.includes).open_path_as_is(true);
        let main = gix::ThreadSafeRepository::open_opts(self.common_dir(), options).ok()?;
        let main = Self::from_shared(main, self.places.includes).ok()?;
        main.work_dir().map(Path::to_path_buf)
    }

    /// Returns the hash function of object ids.
    pub fn object_format(&self) -> ObjectFormat {
        match self.local().object_hash() {
            gix::hash::Kind::Sha256 => ObjectFormat::Sha256,
            _ => ObjectFormat::Sha1,
        }
    }

    /// Returns true if the clone is shallow: the parents of some commits are missing.
    pub fn is_shallow(&self) -> bool {
        self.common_dir()
            .join("shallow")
            .metadata()
            .is_ok_and(|meta| meta.len() > 0)
    }

    /// Returns true for a partial clone, in which objects may be missing because they were left on the remote.
    pub fn is_partial(&self) -> bool {
        self.places.is_partial
    }

    /// Returns a reader of objects, for use on one thread.
    pub fn reader(&self) -> ObjectReader {
        ObjectReader::new(self.local(), Arc::clone(&self.places))
    }

    /// Returns a handle for this thread. The handle ignores replacement refs, so an id always refers to the original
    /// object.
    pub(super) fn local(&self) -> gix::Repository {
        let mut local = self.shared.to_thread_local();
        local.objects.ignore_replacements = true;
        local
    }
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Repository({})", self.places.git_dir.display())
    }
}

/// Returns gix options to read a repository as git does, but without the environment variables that select a
/// repository, index or worktree.
///
/// The option `git_prefix` also disables `GIT_CONFIG_GLOBAL` and `GIT_CONFIG_NOSYSTEM`. That is acceptable: git runs
/// hooks with a `GIT_DIR` and `GIT_INDEX_FILE` that may belong to another repository than the requested one.
fn open_options(includes: Includes) -> gix::open::Options {
    let mut permissions = gix::open::Permissions::secure();
    permissions.env = gix::open::permissions::Environment {
        xdg_config_home: gix::sec::Permission::Allow,
        home: gix::sec::Permission::Allow,
        ..gix::open::permissions::Environment::isolated()
    };
    permissions.config.env = false;
    permissions.config.includes = includes == Includes::Followed;
    gix::open::Options::default()
        .permissions(permissions)
        .bail_if_untrusted(true)
        .cli_overrides([
            "core.fsmonitor=false",
            "core.useReplaceRefs=false",
            // Limit on each allocation. `ObjectReader::read` retries larger objects, one at a time.
            "gitoxide.objects.allocLimit=64m",
        ])
}

fn canonical(path: &Path) -> Result<PathBuf, OpenError> {
    std::fs::canonicalize(path).map_err(|source| OpenError::Inaccessible {
        path: path.to_owned(),
        source,
    })
}

fn starting_folder(from: &Path) -> Result<PathBuf, OpenError> {
    let mut start = canonical(from)?;
    if !start.is_dir() {
        start.pop();
    }
    Ok(start)
}

fn open_error(path: &Path, source: gix::Error) -> OpenError {
    let path = path.to_owned();
    if source.is_permission_denied() && !is_io_failure(&source) {
        OpenError::Untrusted {
            path: owner_root(&path),
        }
    } else if source.is_not_found() {
        OpenError::NotARepository { path }
    } else if let Some(version) = unsupported_version(&source) {
        OpenError::UnsupportedVersion { path, version }
    } else {
        OpenError::Damaged {
            path,
            source: without_quotes(&source),
        }
    }
}

const FORMAT_VERSION_KEY: &str = "core.repositoryFormatVersion";

fn unsupported_version(error: &gix::Error) -> Option<String> {
    let details = error.metadata_merged();
    let is_about_version = details.get("key").is_some_and(|key| *key == FORMAT_VERSION_KEY.into());
    details
        .get("input")
        .filter(|_| is_about_version)
        .map(ToString::to_string)
}

fn is_io_failure(error: &gix::Error) -> bool {
    error.downcast_any_ref::<std::io::Error>().is_some()
}

/// Returns the directory to add to `safe.directory`: the nearest parent that contains a `.git`, or the path itself.
fn owner_root(path: &Path) -> PathBuf {
    let with_git = path.ancestors().find(|dir| dir.join(".git").exists());
    with_git.unwrap_or(path).to_owned()
}

fn kind_of(local: &gix::Repository, work_dir: Option<&Path>) -> RepositoryKind {
    match local.kind() {
        gix::repository::Kind::LinkedWorkTree => RepositoryKind::LinkedWorkTree,
        gix::repository::Kind::Submodule => RepositoryKind::Submodule,
        gix::repository::Kind::Common if work_dir.is_some() => RepositoryKind::MainWorkTree,
        gix::repository::Kind::Common => RepositoryKind::Bare,
    }
}

/// Rejects a malformed `shallow` file, as git does. gix would panic when it walks the history.
fn check_shallow(common_dir: &Path, hash: gix::hash::Kind) -> Result<(), OpenError> {
    let path = common_dir.join("shallow");
    let text = match read_small_file(&path) {
        Ok(text) => text.unwrap_or_default(),
        Err(source) => return Err(OpenError::Inaccessible { path, source }),
    };
    let is_id = |line: &[u8]| line.len() == hash.len_in_hex() && gix::ObjectId::from_hex(line).is_ok();
    if text.lines().all(is_id) {
        Ok(())
    } else {
        Err(OpenError::Shallow { path })
    }
}

struct Format {
    refs: RefStorage,
    is_partial: bool,
}

/// The supported extensions of git's repository format. This module handles them or can ignore them. Source: git's
/// `gitformat-repository` manual page ("repository-version").
const KNOWN_EXTENSIONS: [&str; 8] = [
    "noop",
    "noop-v1",
    "objectformat",
    "compatobjectformat",
    "partialclone",
    "preciousobjects",
    "relativeworktrees",
    "worktreeconfig",
];

/// Rejects an unsupported repository format, as git does. gix opens repositories with unknown extensions.
fn check_format(local: &gix::Repository, git_dir: &Path) -> Result<Format, OpenError> {
    let config = local.config_snapshot();
    let is_own = |meta: &gix::config::file::Metadata| meta.source == gix::config::Source::Local;
    let version = config
        .plumbing()
        .integer_filter(FORMAT_VERSION_KEY, is_own)
        .ok()
        .flatten()
        .unwrap_or(0);
    let mut format = Format {
        refs: RefStorage::Files,
        is_partial: has_promisor(config.plumbing()),
    };
    for (name, value) in extensions(config.plumbing()) {
        match (name.as_str(), value.to_ascii_lowercase().as_slice()) {
            ("refstorage", b"reftable") => format.refs = RefStorage::Reftable,
            ("refstorage", b"files") => {}
            ("partialclone", _) => format.is_partial = true,
            (known, _) if KNOWN_EXTENSIONS.contains(&known) => {}
            _ if version == 0 => {}
            _ => {
                return Err(OpenError::UnsupportedExtension {
                    path: git_dir.to_owned(),
                    extension: format!("{name}={}", value.to_str_lossy()),
                });
            }
        }
    }
    Ok(format)
}

/// Returns the names of the format extensions, in lower case, and their values. Reads only the repository's own
/// configuration file, as git does.
fn extensions(config: &gix::config::File) -> Vec<(String, BString)> {
    let sections = config.sections_by_name("extensions").into_iter().flatten();
    sections
        .filter(|section| section.meta().source == gix::config::Source::Local)
        .flat_map(|section| {
            let names: Vec<String> = section.value_names().map(|name| name.to_string()).collect();
            let pair = |name: String| {
                let value = section.value(name.as_str()).unwrap_or_default();
                (name.to_ascii_lowercase(), value)
            };
            names.into_iter().map(pair).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns true if a remote is marked as a promisor, which newer git versions do instead of setting
/// `extensions.partialClone`.
fn has_promisor(config: &gix::config::File) -> bool {
    let remotes = config.sections_by_name("remote").into_iter().flatten();
    let mut values = remotes.filter_map(|section| section.value("promisor"));
    values.any(|value| !value.eq_ignore_ascii_case(b"false"))
}

/// Quotes a text for a shell.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
