//! Finds the sources of the libraries that a project uses, in the versions that are installed here, and keeps them in a
//! store of the user. Nothing is downloaded.
//!
//! The store is a bare repository, so a version that several projects use is indexed once. A ref for each project names
//! the commit with its libraries; each is in a folder `NAME-VERSION`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Context as _, OpError, Result};
use super::linked::Opens;
use super::workspace::Workspace;
use crate::config::{Environment, LIBRARIES, Link};
use crate::git::{FileStore, read_small_file};
use crate::model::RepoPath;
use crate::query::go_directives;
use crate::sidecar::write_atomic;

/// Limits on the files that are read: of each file, and of all files of a library and of a project.
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_LIBRARY_BYTES: u64 = 128 << 20;
const MAX_BYTES: u64 = 2 << 30;
const MAX_FILES: usize = 20_000;
/// Limit on the size of a lock file.
const MAX_LOCK_BYTES: u64 = 16 << 20;

/// The folder of a library's sources.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Library {
    /// `NAME-VERSION`.
    name: String,
    folder: PathBuf,
    /// The parts of the folder that belong to the library. Empty for all of it.
    parts: Vec<PathBuf>,
}

/// The libraries of a project: those whose sources are on this machine, and the number of the others.
#[derive(Default)]
struct Installed {
    found: Vec<Library>,
    n_absent: usize,
}

impl Workspace {
    /// Returns a link to the libraries of the project, after storing those that are new. Also returns what is left out.
    pub(super) fn libraries(&self, opens: &dyn Opens) -> Result<(Link, Vec<String>)> {
        let no_root = || OpError::failed("a bare repository has no installed libraries");
        let root = self.repository.work_dir().ok_or_else(no_root)?;
        let environment = Environment::read();
        let cache = environment.cache.context("neither HOME nor XDG_CACHE_HOME is set")?;
        let store = cache.join("libs.git");
        if !opens.may_open(&store) {
            let store = store.display();
            return Err(OpError::failed(format!("{store} is not below a root of the server")));
        }
        let Installed { found, n_absent } = installed(root);
        if found.is_empty() {
            return Err(OpError::failed("no sources of libraries were found on this machine"));
        }
        let id = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
        let of_project = format!("refs/heads/{}", id(&root.to_string_lossy()));
        let reference = format!("{of_project}/{}", id(&format!("{found:?}")));
        let lacks = store.join(format!("lacks-{}", id(&root.to_string_lossy())));
        if !store.join(&reference).exists() {
            _ = fs::remove_dir_all(store.join(&of_project));
            let mut files = FileStore::open(&store)?;
            let (mut n_bytes, mut lines) = (0, String::new());
            for library in &found {
                match add(library, &mut files, MAX_BYTES - n_bytes)? {
                    Added::Files { n_unread, size } => {
                        n_bytes += size;
                        if n_unread > 0 {
                            lines += &format!("{} has {n_unread} files that cannot be read\n", library.name);
                        }
                    }
                    Added::TooLarge => lines += &format!("{} is too large to be searched\n", library.name),
                }
            }
            write_atomic(&lacks, lines.as_bytes()).with_context(|| format!("cannot write {}", lacks.display()))?;
            files.commit(&reference)?;
        }
        let lines = fs::read_to_string(&lacks).with_context(|| format!("cannot read {}", lacks.display()))?;
        let mut left_out: Vec<String> = lines.lines().map(str::to_owned).collect();
        if n_absent > 0 {
            let n_all = n_absent + found.len();
            left_out.push(format!("{n_absent} of {n_all} libraries are not on this machine"));
        }
        let link = Link {
            name: LIBRARIES.to_owned(),
            path: store,
            reference: Some(reference),
        };
        Ok((link, left_out))
    }
}

/// What was added of a library.
enum Added {
    Files {
        size: u64,
        /// Number of files and folders that cannot be read.
        n_unread: usize,
    },
    TooLarge,
}

/// Adds the text files of a library to the store.
fn add(library: &Library, store: &mut FileStore, max_bytes: u64) -> Result<Added> {
    let whole = [PathBuf::new()];
    let parts = if library.parts.is_empty() {
        &whole[..]
    } else {
        &library.parts
    };
    let mut waiting: Vec<PathBuf> = parts.iter().map(|part| library.folder.join(part)).collect();
    let (mut size, mut n_unread, mut found) = (0, 0, BTreeSet::new());
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            n_unread += 1;
            continue;
        };
        let name = path.file_name().unwrap_or_default();
        if metadata.is_dir() && !matches!(name.as_encoded_bytes(), b".git" | b"node_modules" | b"target") {
            let entries = fs::read_dir(&path);
            n_unread += usize::from(entries.is_err());
            waiting.extend(entries.into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if metadata.is_file() && metadata.len() <= MAX_FILE_BYTES {
            size += metadata.len();
            found.insert(path);
        }
        if size > max_bytes.min(MAX_LIBRARY_BYTES) || found.len() + waiting.len() > MAX_FILES {
            return Ok(Added::TooLarge);
        }
    }
    for path in &found {
        let Ok(content) = fs::read(path) else {
            n_unread += 1;
            continue;
        };
        if content[..content.len().min(8000)].contains(&0) {
            continue;
        }
        if let Some(below) = path.strip_prefix(&library.folder).ok().and_then(Path::to_str) {
            store.add(&RepoPath::from(&*format!("{}/{below}", library.name)), &content)?;
        }
    }
    Ok(Added::Files { size, n_unread })
}

/// Returns the libraries of the project in `root`.
fn installed(root: &Path) -> Installed {
    let mut installed = Installed::default();
    let listed = of_cargo(root)
        .into_iter()
        .chain(of_go(root))
        .chain(of_npm(root))
        .chain(of_python(root));
    for library in listed {
        match library {
            Some(library) if library.folder.is_dir() => installed.found.push(library),
            _ => installed.n_absent += 1,
        }
    }
    installed.found.sort_unstable();
    installed.found.dedup();
    installed
}

/// Returns a folder below the home folder, unless the environment names another one.
fn home(variable: &str, default: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(default)))
}

fn read(path: &Path) -> Option<String> {
    let is_small = fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_LOCK_BYTES);
    is_small.then(|| fs::read_to_string(path).ok()).flatten()
}

/// Returns true for a text that is the name of one folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+~@".contains(c))
}

/// Returns a folder of the project. A link in a checkout must not lead out of it.
fn inside(root: &Path, folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    folder.starts_with(fs::canonicalize(root).ok()?).then_some(folder)
}

/// Returns the names of the entries of a folder that are plain.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_plain(name)).collect()
}

/// Returns the crates of registries in `Cargo.lock`; `None` for one that is not on this machine.
fn of_cargo(root: &Path) -> Vec<Option<Library>> {
    let Some(lock) = read(&root.join("Cargo.lock")).and_then(|text| text.parse::<toml::Table>().ok()) else {
        return Vec::new();
    };
    let registries = home("CARGO_HOME", ".cargo").map(|home| home.join("registry/src"));
    let registries = registries
        .and_then(|folder| fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten();
    let registries: Vec<PathBuf> = registries.map(|entry| entry.path()).collect();
    let packages = lock
        .get("package")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten();
    let library = |package: &toml::Value| {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str);
        // Without a source, it is a package of the project itself.
        let source = text("source")?;
        let name = format!("{}-{}", text("name")?, text("version")?);
        let is_of_registry = source.starts_with("registry+") || source.starts_with("sparse+");
        let mut folders = registries.iter().map(|registry| registry.join(&name));
        let folder = folders.find(|folder| is_of_registry && is_plain(&name) && folder.is_dir());
        Some(folder.map(|folder| Library {
            name,
            folder,
            parts: Vec::new(),
        }))
    };
    packages.filter_map(library).collect()
}

/// Returns the modules that `go.mod` requires, with their replacements.
fn of_go(root: &Path) -> Vec<Option<Library>> {
    let (Some(text), Some(modules)) = (read(&root.join("go.mod")), home("GOMODCACHE", "go/pkg/mod")) else {
        return Vec::new();
    };
    let (mut required, mut replaced) = (Vec::new(), BTreeMap::new());
    for (directive, words) in go_directives(&text) {
        match (directive, words.as_slice()) {
            ("require", [module, version]) => required.push((*module, *version)),
            ("replace", [module, "=>", other, version] | [module, _, "=>", other, version]) => {
                replaced.insert(*module, (*other, *version));
            }
            // A folder. If it is in the repository, it is searched anyway.
            ("replace", [module, "=>", ..] | [module, _, "=>", ..]) => {
                replaced.insert(*module, ("", ""));
            }
            _ => {}
        }
    }
    let library = |(module, version): (&str, &str)| {
        let (module, version) = replaced.get(module).copied().unwrap_or((module, version));
        // Capitals are escaped, because file systems may ignore case.
        let escape = |c: char| match c {
            'A'..='Z' => format!("!{}", c.to_ascii_lowercase()),
            c => c.to_string(),
        };
        let folder = modules.join(format!("{}@{version}", module.chars().map(escape).collect::<String>()));
        let is_known = module.split('/').chain([version]).all(is_plain) && folder.is_dir();
        is_known.then(|| Library {
            name: format!("{}-{version}", module.replace('/', "_")),
            folder,
            parts: Vec::new(),
        })
    };
    required.into_iter().map(library).collect()
}

/// Returns the packages in `node_modules`.
fn of_npm(root: &Path) -> Vec<Option<Library>> {
    let Some(modules) = inside(root, &root.join("node_modules")) else {
        return Vec::new();
    };
    let (scopes, plain): (Vec<String>, Vec<String>) =
        names(&modules).into_iter().partition(|name| name.starts_with('@'));
    let scoped = scopes.iter().flat_map(|scope| {
        let below = names(&modules.join(scope)).into_iter();
        below.map(|name| format!("{scope}/{name}")).collect::<Vec<_>>()
    });
    let library = |name: String| {
        // pnpm links packages to its own folder there.
        let folder = inside(&modules, &modules.join(&name))?;
        let manifest = read(&folder.join("package.json"))?;
        let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
        let version = manifest["version"].as_str().filter(|version| is_plain(version))?;
        Some(Library {
            name: format!("{}-{version}", name.replace('/', "_")),
            folder,
            parts: Vec::new(),
        })
    };
    plain.into_iter().chain(scoped).map(library).collect()
}

/// Returns the packages in the virtual environments of the project.
fn of_python(root: &Path) -> Vec<Option<Library>> {
    let mut found = Vec::new();
    for lib in [".venv", "venv"].map(|name| root.join(name).join("lib")) {
        for python in names(&lib) {
            let Some(packages) = inside(root, &lib.join(python).join("site-packages")) else {
                continue;
            };
            let infos = names(&packages).into_iter().filter(|name| name.ends_with(".dist-info"));
            found.extend(infos.map(|info| of_wheel(&packages, &info)));
        }
    }
    found
}

/// Returns the package whose files the `RECORD` in a folder `NAME-VERSION.dist-info` lists.
fn of_wheel(packages: &Path, info: &str) -> Option<Library> {
    let record = read_small_file(&packages.join(info).join("RECORD")).ok().flatten()?;
    let record = String::from_utf8_lossy(&record);
    let tops = record.lines().filter_map(|line| line.split([',', '/']).next());
    let tops = tops.filter(|top| is_plain(top) && !top.ends_with(".dist-info"));
    let mut parts: Vec<PathBuf> = tops.map(PathBuf::from).collect();
    parts.sort_unstable();
    parts.dedup();
    (!parts.is_empty()).then(|| Library {
        name: info.trim_end_matches(".dist-info").to_owned(),
        folder: packages.to_owned(),
        parts,
    })
}
