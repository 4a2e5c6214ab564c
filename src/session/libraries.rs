//! Finds the sources of the libraries that a project uses, in the versions that are installed here, and keeps them in a
//! store of the user. Nothing is downloaded.
//!
//! The store is a bare repository, so a version that several projects use is indexed once. A ref for each project names
//! the commit with its libraries; each is in a folder `NAME-VERSION`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Context as _, OpError, Result};
use super::workspace::Workspace;
use crate::config::{Environment, LIBRARIES, Link};
use crate::git::{FileStore, read_small_file};
use crate::model::RepoPath;

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

impl Workspace {
    /// Returns a link to the libraries of the project, after storing those that are new. Also returns what is left out.
    pub(super) fn libraries(&self) -> Result<(Link, Vec<String>)> {
        let no_root = || OpError::failed("a bare repository has no installed libraries");
        let root = self.repository.work_dir().ok_or_else(no_root)?;
        let environment = Environment::read();
        let cache = environment.cache.context("neither HOME nor XDG_CACHE_HOME is set")?;
        let store = cache.join("libs.git");
        let libraries = installed(root);
        if libraries.is_empty() {
            return Err(OpError::failed("no sources of libraries were found on this machine"));
        }
        let id = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
        let of_project = format!("refs/heads/{}", id(&root.to_string_lossy()));
        let reference = format!("{of_project}/{}", id(&format!("{libraries:?}")));
        let mut left_out = Vec::new();
        if !store.join(&reference).exists() {
            _ = fs::remove_dir_all(store.join(&of_project));
            let mut files = FileStore::open(&store)?;
            let mut n_bytes = 0;
            for library in &libraries {
                match add(library, &mut files, MAX_BYTES - n_bytes)? {
                    Some(added) => n_bytes += added,
                    None => left_out.push(format!("{} is too large to be searched", library.name)),
                }
            }
            files.commit(&reference)?;
        }
        let link = Link {
            name: LIBRARIES.to_owned(),
            path: store,
            reference: Some(reference),
        };
        Ok((link, left_out))
    }
}

/// Adds the text files of a library to the store. Returns their size; `None` if it is too large.
fn add(library: &Library, store: &mut FileStore, max_bytes: u64) -> Result<Option<u64>> {
    let whole = [PathBuf::new()];
    let parts = if library.parts.is_empty() {
        &whole[..]
    } else {
        &library.parts
    };
    let mut waiting: Vec<PathBuf> = parts.iter().map(|part| library.folder.join(part)).collect();
    let (mut n_bytes, mut found) = (0, BTreeMap::new());
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        let name = path.file_name().unwrap_or_default();
        if metadata.is_dir() && !matches!(name.as_encoded_bytes(), b".git" | b"node_modules" | b"target") {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.map(|entry| entry.path()));
        } else if metadata.is_file() && metadata.len() <= MAX_FILE_BYTES {
            n_bytes += metadata.len();
            found.insert(path, metadata.len());
        }
        if n_bytes > max_bytes.min(MAX_LIBRARY_BYTES) || found.len() + waiting.len() > MAX_FILES {
            return Ok(None);
        }
    }
    for path in found.keys() {
        let Some(content) = fs::read(path)
            .ok()
            .filter(|content| !content[..content.len().min(8000)].contains(&0))
        else {
            continue;
        };
        if let Some(below) = path.strip_prefix(&library.folder).ok().and_then(Path::to_str) {
            store.add(&RepoPath::from(&*format!("{}/{below}", library.name)), &content)?;
        }
    }
    Ok(Some(n_bytes))
}

/// Returns the libraries of the project in `root` whose sources are on this machine, each once.
fn installed(root: &Path) -> Vec<Library> {
    let mut found = of_cargo(root);
    found.extend(of_go(root));
    found.extend(of_npm(root));
    found.extend(of_python(root));
    found.retain(|library| library.folder.is_dir());
    found.sort_unstable();
    found.dedup_by(|a, b| a.name == b.name);
    found
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

fn of_cargo(root: &Path) -> Vec<Library> {
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
    let named = packages.filter_map(|package| {
        package.get("source")?;
        let name = format!(
            "{}-{}",
            package.get("name")?.as_str()?,
            package.get("version")?.as_str()?
        );
        is_plain(&name).then_some(name)
    });
    let library = |name: String| {
        let folder = registries
            .iter()
            .map(|registry| registry.join(&name))
            .find(|folder| folder.is_dir())?;
        let parts = Vec::new();
        Some(Library { name, folder, parts })
    };
    named.filter_map(library).collect()
}

fn of_go(root: &Path) -> Vec<Library> {
    let modules = home("GOMODCACHE", "go/pkg/mod");
    let (Some(text), Some(modules)) = (read(&root.join("go.mod")), modules) else {
        return Vec::new();
    };
    let library = |line: &str| {
        let line = line.split("//").next()?.trim().trim_start_matches("require ");
        let (module, version) = line.split_once(' ').filter(|(_, version)| version.starts_with('v'))?;
        if !module.split('/').chain([version]).all(is_plain) {
            return None;
        }
        // Capitals are escaped, because file systems may ignore case.
        let escape = |c: char| {
            if c.is_ascii_uppercase() {
                format!("!{}", c.to_ascii_lowercase())
            } else {
                c.to_string()
            }
        };
        let folder = modules.join(format!("{}@{version}", module.chars().map(escape).collect::<String>()));
        let name = format!("{}-{version}", module.replace('/', "_"));
        let parts = Vec::new();
        Some(Library { name, folder, parts })
    };
    text.lines().filter_map(library).collect()
}

fn of_npm(root: &Path) -> Vec<Library> {
    let modules = root.join("node_modules");
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| is_plain(name)).collect::<Vec<_>>()
    };
    let (scopes, plain): (Vec<String>, Vec<String>) =
        names(&modules).into_iter().partition(|name| name.starts_with('@'));
    let scoped = scopes.iter().flat_map(|scope| {
        let below = names(&modules.join(scope)).into_iter();
        below.map(|name| format!("{scope}/{name}")).collect::<Vec<_>>()
    });
    let library = |name: String| {
        // pnpm links packages to its own folder there. A link out of it is not a package that was installed.
        let folder = fs::canonicalize(modules.join(&name)).ok()?;
        let is_inside = fs::canonicalize(&modules).is_ok_and(|modules| folder.starts_with(modules));
        let manifest = read(&folder.join("package.json")).filter(|_| is_inside)?;
        let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
        let version = manifest["version"].as_str().filter(|version| is_plain(version))?;
        let name = format!("{}-{version}", name.replace('/', "_"));
        let parts = Vec::new();
        Some(Library { name, folder, parts })
    };
    plain.into_iter().chain(scoped).filter_map(library).collect()
}

fn of_python(root: &Path) -> Vec<Library> {
    let environments = [".venv", "venv"].iter().map(|name| root.join(name).join("lib"));
    let pythons = environments
        .filter_map(|lib| fs::read_dir(lib).ok())
        .flatten()
        .flatten();
    let packages = pythons.map(|python| python.path().join("site-packages"));
    let infos = packages
        .filter_map(|packages| fs::read_dir(packages).ok())
        .flatten()
        .flatten();
    let library = |info: fs::DirEntry| {
        let folder = info.path().parent()?.to_owned();
        let name = info
            .file_name()
            .into_string()
            .ok()?
            .strip_suffix(".dist-info")?
            .to_owned();
        let record = read_small_file(&info.path().join("RECORD")).ok().flatten()?;
        let record = String::from_utf8_lossy(&record);
        let tops = record
            .lines()
            .filter_map(|line| line.split([',', '/']).next())
            .filter(|top| is_plain(top));
        let tops = tops.filter(|top| !top.ends_with(".dist-info"));
        let mut parts: Vec<PathBuf> = tops.map(PathBuf::from).collect();
        parts.sort_unstable();
        parts.dedup();
        (is_plain(&name) && !parts.is_empty()).then_some(Library { name, folder, parts })
    };
    infos.filter_map(library).collect()
}
