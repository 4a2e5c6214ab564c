//! Finding and opening a repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::Cause;
use super::includes;
use super::irregular;
use super::linked::check_ends;
use super::reader::{LargeObjects, ObjectReader};
use super::small_file::read_small_file;
use super::surroundings::check_bare;

/// An opened repository: a handle that is cheap to clone and can be shared between threads.
///
/// Configuration is read once, when it is opened; refs, objects and the index are looked up afresh at every call.
#[derive(Clone)]
pub struct Repository {
    pub(super) shared: gix::ThreadSafeRepository,
    pub(super) places: Arc<Places>,
}

/// Where the parts of a repository lie; every path is absolute and without symbolic links.
pub(super) struct Places {
    kind: RepositoryKind,
    work_dir: Option<PathBuf>,
    git_dir: PathBuf,
    common_dir: PathBuf,
    pub(super) refs: RefStorage,
    pub(super) large_objects: LargeObjects,
    pub(super) is_partial: bool,
    includes: Includes,
}

/// Whether other files are read that a configuration includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Includes {
    Followed,
    /// They may lie anywhere, and what is wrong with them would be told.
    Ignored,
}

/// Which part of a family of work trees a repository is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepositoryKind {
    /// Objects and refs without a work tree.
    Bare,
    /// The repository with the work tree it was made with.
    MainWorkTree,
    /// A work tree made by `git worktree add`, sharing objects and refs with the main one.
    LinkedWorkTree,
    /// A submodule; its objects live inside the parent's git directory.
    Submodule,
}

/// Which hash names the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectFormat {
    /// 20-byte ids.
    Sha1,
    /// 32-byte ids.
    Sha256,
}

/// How refs are stored, which decides who reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefStorage {
    /// Loose files and `packed-refs`, read in-process.
    Files,
    /// Reftable, read by the git executable.
    Reftable,
}

/// Why there is no repository to work with.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Neither the path nor any folder above it is a repository.
    #[error("{} is not inside a git repository", .path.display())]
    NotARepository {
        /// Where the search began.
        path: PathBuf,
    },
    /// The path cannot be reached at all.
    #[error("cannot access {}", .path.display())]
    Inaccessible {
        /// The path that was asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Owned by somebody else, so its configuration cannot be trusted; `git config --global --add safe.directory`
    /// with this path allows it.
    #[error("the repository at {} is owned by another user", .path.display())]
    Untrusted {
        /// What `safe.directory` would have to name.
        path: PathBuf,
    },
    /// A bare repository that was not named by `GIT_DIR`, and `safe.bareRepository` is `explicit`.
    #[error("the repository at {} is bare, and safe.bareRepository is explicit", .path.display())]
    Bare {
        /// The git directory.
        path: PathBuf,
    },
    /// A pipe or a device where there should be a file: reading it could take forever.
    #[error("{} is a pipe or a device, not a file, or a link into /dev, /proc or /sys", .path.display())]
    Irregular {
        /// It, or a link to it.
        path: PathBuf,
    },
    /// `shallow` says something else than where history ends.
    #[error("{} has a line that is not the id of a commit", .path.display())]
    Shallow {
        /// The file.
        path: PathBuf,
    },
    /// It says of itself that it belongs to a linked work tree, and the repository with the objects does not list it.
    #[error("the git directory {} is not among the work trees of the repository at {}", .path.display(), .common_dir.display())]
    Unlisted {
        /// The git directory.
        path: PathBuf,
        /// The one that it says it shares objects and refs with.
        common_dir: PathBuf,
    },
    /// It names a work tree that does not name it.
    #[error("the git directory {} names {} as its work tree, whose .git does not lead back", .path.display(), .work_dir.display())]
    NotItsWorkTree {
        /// The git directory.
        path: PathBuf,
        /// The folder that it names.
        work_dir: PathBuf,
    },
    /// A newer repository format than is understood.
    #[error("the repository at {} has format version {version}, supported are 0 and 1", .path.display())]
    UnsupportedVersion {
        /// The git directory.
        path: PathBuf,
        /// `core.repositoryFormatVersion`.
        version: String,
    },
    /// A format extension that git demands to be understood, and is not.
    #[error("the repository at {} uses the unsupported extension {extension:?}", .path.display())]
    UnsupportedExtension {
        /// The git directory.
        path: PathBuf,
        /// As in `extensions.<name>=<value>`.
        extension: String,
    },
    /// Its configuration includes other files, which the git executable would read.
    #[error("the configuration of the repository at {} includes other files", .path.display())]
    Includes {
        /// The git directory.
        path: PathBuf,
    },
    /// Its configuration includes more files than any real one.
    #[error("the configuration {} includes more than {limit} files", .path.display())]
    TooManyIncludes {
        /// The file that begins it.
        path: PathBuf,
        /// How many are accepted.
        limit: usize,
    },
    /// Something is there, but it cannot be read as a repository.
    #[error("cannot open the repository at {}", .path.display())]
    Damaged {
        /// The path that was asked for.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: Cause,
    },
}

impl OpenError {
    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Untrusted { path } => Some(format!(
                "if you trust it: git config --global --add safe.directory {}",
                shell_quoted(&path.to_string_lossy())
            )),
            Self::Bare { path } => Some(format!(
                "if you trust it: GIT_DIR={} codescout …",
                shell_quoted(&path.to_string_lossy())
            )),
            Self::Irregular { path } => Some(format!("remove {}", path.display())),
            Self::Shallow { path } => Some(format!(
                "remove {}, and then: git fetch --unshallow, or git fetch --depth=1",
                path.display()
            )),
            Self::NotItsWorkTree { .. } => Some("if the work tree was moved: git worktree repair, there".to_owned()),
            Self::NotARepository { .. } => Some("run it inside a clone, or make one with git init".to_owned()),
            _ => None,
        }
    }
}

impl Repository {
    /// Opens the repository that `from`, a folder or a file, lies in, as git would find it.
    pub fn discover(from: &Path) -> Result<Self, OpenError> {
        Self::discover_with(from, Includes::Followed)
    }

    /// The same for a repository that may have been made to show what lies outside of it: files that its configuration includes are not
    /// read. [`Self::lies_within`] tells about the rest.
    pub fn discover_foreign(from: &Path) -> Result<Self, OpenError> {
        let repository = Self::discover_with(from, Includes::Ignored)?;
        // The git executable, which reads refs there, would follow them.
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
        Ok(repository)
    }

    /// Opens the repository at exactly `path`, a work tree's root or a git directory.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let exact = canonical(path)?;
        irregular::check_above(&exact)?;
        let shared = gix::ThreadSafeRepository::open_opts(exact.as_path(), open_options(Includes::Followed))
            .map_err(|source| open_error(&exact, source))?;
        Self::from_shared(shared, Includes::Followed)
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
        check_ends(&git_dir, &common_dir, work_dir.as_deref())?;
        let places = Places {
            kind: kind_of(&local, work_dir.as_deref()),
            work_dir,
            git_dir,
            common_dir,
            refs: format.refs,
            large_objects: LargeObjects::default(),
            is_partial: format.is_partial,
            includes,
        };
        Ok(Self {
            shared,
            places: Arc::new(places),
        })
    }

    /// Which part of a family of work trees this is.
    pub fn kind(&self) -> RepositoryKind {
        self.places.kind
    }

    /// The root of the work tree; `None` for a bare repository, or when the folder is gone.
    pub fn work_dir(&self) -> Option<&Path> {
        self.places.work_dir.as_deref()
    }

    /// The root of the work tree, else the git directory: how a repository is named to people, and where git runs for it.
    pub fn place(&self) -> &Path {
        self.work_dir().unwrap_or(self.git_dir())
    }

    /// The folder with this work tree's own `HEAD` and index.
    pub fn git_dir(&self) -> &Path {
        &self.places.git_dir
    }

    /// The folder with the objects and refs that all work trees of the family share; one per family.
    pub fn common_dir(&self) -> &Path {
        &self.places.common_dir
    }

    /// The root of the family's main work tree, whichever work tree this is; `None` if it is bare or gone.
    pub fn main_work_dir(&self) -> Option<PathBuf> {
        if self.kind() != RepositoryKind::LinkedWorkTree {
            return self.work_dir().map(Path::to_path_buf);
        }
        let options = open_options(self.places.includes).open_path_as_is(true);
        let main = gix::ThreadSafeRepository::open_opts(self.common_dir(), options).ok()?;
        let main = Self::from_shared(main, self.places.includes).ok()?;
        main.work_dir().map(Path::to_path_buf)
    }

    /// Which hash names the objects.
    pub fn object_format(&self) -> ObjectFormat {
        match self.local().object_hash() {
            gix::hash::Kind::Sha256 => ObjectFormat::Sha256,
            _ => ObjectFormat::Sha1,
        }
    }

    /// Whether history is cut off: commits at the boundary have parents that are not there.
    pub fn is_shallow(&self) -> bool {
        self.common_dir()
            .join("shallow")
            .metadata()
            .is_ok_and(|meta| meta.len() > 0)
    }

    /// Whether objects may be missing because they were left with the remote (a partial clone).
    pub fn is_partial(&self) -> bool {
        self.places.is_partial
    }

    /// A reader of objects, for one thread.
    pub fn reader(&self) -> ObjectReader {
        ObjectReader::new(self.local(), Arc::clone(&self.places))
    }

    /// This thread's handle. Replacement refs are off: an id always describes the object that has it.
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

/// Everything is read as git reads it, less what the environment says about *which* repository, index or work tree.
///
/// `git_prefix` also covers `GIT_CONFIG_GLOBAL` and `GIT_CONFIG_NOSYSTEM`; they are lost with it, which is the lesser
/// evil: hooks run with `GIT_DIR` and `GIT_INDEX_FILE` of a repository that need not be the one asked about.
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
            // Per allocation; `ObjectReader::read` retries above it, one object at a time.
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
            source: Box::new(source),
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

/// The folder that `safe.directory` would have to name: the nearest one above with a `.git`, else the path itself.
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

/// Refuses what git refuses: gix panics on it when it walks back.
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

/// Extensions of git's repository format that change nothing for a reader, or are handled here.
/// Source: git's `gitformat-repository` page ("repository-version").
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

/// Refuses what git would refuse: gix opens repositories with extensions that it does not know.
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

/// Names in lower case with their values, from the repository's own file only, as git has it.
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

/// Newer git marks the remotes instead of setting `extensions.partialClone`.
fn has_promisor(config: &gix::config::File) -> bool {
    let remotes = config.sections_by_name("remote").into_iter().flatten();
    let mut values = remotes.filter_map(|section| section.value("promisor"));
    values.any(|value| !value.eq_ignore_ascii_case(b"false"))
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
