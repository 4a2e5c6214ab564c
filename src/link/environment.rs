//! Knows where the modules of each language are in a tree, from paths and manifests.

mod java;
mod python;

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use super::cargo::{add_crate_aliases, cargo_package};
use super::dart::{self, DartPackages};
use super::facts::{Facts, Family};
use super::memo::deeper;
use super::resolve::{Linker, Sym};
use super::scopes::inline_module;
use super::scripts::{self, Scripts};
use crate::extract::{DefinitionKind, Globals};
use crate::snapshot::{FileId, View};

/// Limit on the segments of the names of modules of Python and packages of Java that are kept. Without it, they take
/// memory as the square of a path's length.
const MAX_MODULE_SEGMENTS: usize = 32;

/// A module, package or namespace of the repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Module {
    /// A file of Python or JavaScript.
    File(FileId),
    /// A Rust module: a file, or a module with a body inside of it.
    Items { file: FileId, of: Option<u32> },
    /// A Rust crate with one or more root files.
    Crate { roots: Arc<[FileId]> },
    /// The files of a package, sorted.
    Folder { path: Arc<str>, files: Files },
}

/// The files of a package, sorted. Packages of one path differ in their first file, so the others are not compared.
#[derive(Clone, Debug)]
pub(super) struct Files(pub(super) Arc<[FileId]>);

impl PartialEq for Files {
    fn eq(&self, other: &Self) -> bool {
        self.0.first() == other.0.first()
    }
}

impl Eq for Files {}

impl Hash for Files {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.first().hash(state);
    }
}

/// A manifest that names a package and its folder.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) folder: String,
    /// Root files, relative to `folder`. With a slash at the end, a folder in which each file is one.
    pub(super) roots: Vec<String>,
}

/// The files of a package; `None` if there is no such package.
type PackageFiles = Option<Arc<[FileId]>>;

/// Where the modules of a tree are.
#[derive(Debug, Default)]
pub(super) struct Environment {
    files: HashMap<String, FileId>,
    /// The path of each file.
    paths: Vec<String>,
    /// The files in each folder, sorted.
    folders: HashMap<String, Vec<FileId>>,
    pub(super) dart: DartPackages,
    /// Folders by their last segment.
    folders_by_name: HashMap<String, Vec<String>>,
    /// Files by dotted name.
    python: HashMap<String, Vec<FileId>>,
    go: Vec<Package>,
    cargo: Vec<Package>,
    pub(super) scripts: Scripts,
    rust_roots: HashMap<String, Vec<FileId>>,
    /// The root file of each crate, by the name in paths.
    crates: HashMap<String, FileId>,
    /// Names of dependencies, and the packages that they mean: `name = { package = "…" }`.
    crate_aliases: Vec<(String, String)>,
    /// Names of crates that several manifests have.
    ambiguous: HashSet<String>,
    /// Crates that manifests declare as dependencies.
    dependencies: HashSet<String>,
    /// The folders with a project file of C# or a package of Swift.
    projects: HashSet<String>,
    /// True if a file has code of Objective-C.
    pub(super) has_objective_c: bool,
    /// The manifests that cannot be read or parsed.
    pub(super) broken: Vec<String>,
    /// Packages that were looked up: Java packages by name, and those of Go by folder and package clause.
    packages: Mutex<HashMap<(String, String), PackageFiles>>,
}

/// Names of the manifests that are read.
pub(super) fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(name, "go.mod" | "go.work" | "Cargo.toml" | "pubspec.yaml") || scripts::is_manifest(name)
}

impl Environment {
    /// Reads the environment of a view. `read` returns the content of a manifest.
    pub(super) fn of(view: &View, mut read: impl FnMut(FileId) -> Option<String>) -> Self {
        let mut environment = Self::default();
        let mut manifests = Vec::new();
        for (id, file) in view.files() {
            let path = String::from_utf8_lossy(file.path).into_owned();
            if is_manifest(&path) {
                manifests.push((id, path.clone()));
            }
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
            if name.ends_with(".csproj") || name == "Package.swift" {
                environment.projects.insert(folder.to_owned());
            }
            environment.has_objective_c |= name.ends_with(".m") || name.ends_with(".mm");
            environment.folders.entry(folder.to_owned()).or_default().push(id);
            environment.paths.push(path.clone());
            environment.files.insert(path, id);
        }
        for folder in environment.folders.keys() {
            let name = folder.rsplit('/').next().unwrap_or_default();
            environment
                .folders_by_name
                .entry(name.to_owned())
                .or_default()
                .push(folder.clone());
        }
        environment
            .folders_by_name
            .values_mut()
            .for_each(|folders| folders.sort());
        for (id, path) in manifests {
            let is_understood = read(id).is_some_and(|text| environment.add_manifest(&path, &text));
            if !is_understood {
                environment.broken.push(path);
            }
        }
        environment.index_python();
        environment.index_rust();
        let deepest_first = |package: &Package| std::cmp::Reverse(package.folder.len());
        environment.go.sort_by_key(deepest_first);
        environment.cargo.sort_by_key(deepest_first);
        let crates = environment.cargo.iter().map(|package| package.name.replace('-', "_"));
        let mut seen = HashSet::new();
        environment.ambiguous = crates.filter(|name| !seen.insert(name.clone())).collect();
        environment.index_crate_aliases();
        environment.scripts.finish(&environment.files, read);
        environment
    }

    /// Adds what a manifest says. Returns false if it cannot be parsed.
    fn add_manifest(&mut self, path: &str, text: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = folder.to_owned();
        match name {
            "go.mod" => {
                let module = text.lines().find_map(|line| line.trim().strip_prefix("module "));
                let Some(module) = module else { return false };
                let name = module.trim().trim_matches('"').to_owned();
                self.add_replaced(&folder, text);
                self.go.push(Package {
                    name,
                    folder,
                    roots: Vec::new(),
                });
            }
            "go.work" => self.add_replaced(&folder, text),
            "Cargo.toml" => {
                let Ok(manifest) = text.parse::<toml::Table>() else {
                    return false;
                };
                self.cargo.extend(cargo_package(folder, &manifest));
                add_crate_aliases(&manifest, &mut self.crate_aliases);
            }
            "pubspec.yaml" => {
                let name = dart::package_name(text);
                name.into_iter()
                    .for_each(|name| self.dart.entry(name).or_default().push(folder.clone()));
            }
            _ => return self.scripts.add_manifest(path, text),
        }
        true
    }

    /// Adds the modules that a `go.mod` or `go.work` replaces by folders: `replace example.com/a => ./a`.
    fn add_replaced(&mut self, folder: &str, text: &str) {
        for line in text.lines() {
            let code = line.split("//").next().unwrap_or_default();
            let Some((old, new)) = code.split_once("=>") else {
                continue;
            };
            let old = old.trim().trim_start_matches("replace ").split_whitespace().next();
            let new = new
                .split_whitespace()
                .next()
                .filter(|new| new.starts_with('.') && !leaves(folder, new));
            if let (Some(name), Some(new)) = (old, new) {
                self.go.push(Package {
                    name: name.trim_matches('"').to_owned(),
                    folder: joined(folder, new),
                    roots: Vec::new(),
                });
            }
        }
    }

    fn index_python(&mut self) {
        for (path, &id) in &self.files {
            let Some(stem) = path.strip_suffix(".py").or_else(|| path.strip_suffix(".pyi")) else {
                continue;
            };
            let segments: Vec<&str> = stem.split('/').collect();
            let is_package = segments.last() == Some(&"__init__");
            let segments = if is_package {
                &segments[..segments.len() - 1]
            } else {
                &segments[..]
            };
            // A file can be imported from any folder above it: which one is decided where it is imported.
            for first in segments.len().saturating_sub(MAX_MODULE_SEGMENTS)..segments.len() {
                self.python.entry(segments[first..].join(".")).or_default().push(id);
            }
        }
        for files in self.python.values_mut() {
            files.sort_unstable();
        }
    }

    fn index_rust(&mut self) {
        let mut roots: HashMap<String, Vec<FileId>> = HashMap::new();
        let mains: Vec<&String> = self.files.keys().filter(|path| path.ends_with("/main.rs")).collect();
        for package in &self.cargo {
            let mut paths: Vec<String> = package.roots.iter().map(|root| joined(&package.folder, root)).collect();
            for standard in ["src/lib.rs", "src/main.rs", "build.rs"] {
                paths.push(joined(&package.folder, standard));
            }
            for folder in package.roots.iter().filter_map(|root| root.strip_suffix('/')) {
                let folder = joined(&package.folder, folder);
                for (path, _) in self.files_in(&folder) {
                    if path.ends_with(".rs") {
                        paths.push(path);
                    }
                }
                let inner = format!("{folder}/");
                let is_root = |path: &&&String| {
                    let rest = path.strip_prefix(&inner).and_then(|rest| rest.strip_suffix("/main.rs"));
                    rest.is_some_and(|rest| !rest.contains('/'))
                };
                paths.extend(mains.iter().filter(is_root).map(|path| (*path).clone()));
            }
            for path in paths {
                if let Some(&id) = self.files.get(&path) {
                    let (folder, _) = path.rsplit_once('/').unwrap_or(("", &path));
                    let known = roots.entry(folder.to_owned()).or_default();
                    if !known.contains(&id) {
                        known.push(id);
                    }
                }
            }
        }
        self.rust_roots = roots;
        for package in &self.cargo {
            let paths = package.roots.iter().map(|root| joined(&package.folder, root));
            let lib = std::iter::once(joined(&package.folder, "src/lib.rs"))
                .chain(paths)
                .find_map(|path| self.file(&path));
            if let Some(lib) = lib {
                self.crates.entry(package.name.replace('-', "_")).or_insert(lib);
            }
        }
    }

    /// Adds the crates under their other names. A name with several meanings is ambiguous.
    fn index_crate_aliases(&mut self) {
        let mut meanings: HashMap<String, HashSet<Option<FileId>>> = HashMap::new();
        for (alias, package) in std::mem::take(&mut self.crate_aliases) {
            self.dependencies.insert(alias.clone());
            let target = self.crates.get(&package).copied();
            meanings.entry(alias).or_default().insert(target);
        }
        for (alias, mut targets) in meanings {
            targets.extend(self.crates.get(&alias).map(|own| Some(*own)));
            if let Some(target) = targets.iter().flatten().next() {
                self.crates.entry(alias.clone()).or_insert(*target);
            }
            if targets.len() > 1 {
                self.ambiguous.insert(alias);
            }
        }
    }

    fn files_in(&self, folder: &str) -> Vec<(String, FileId)> {
        let ids = self.folders.get(folder).map_or(&[][..], Vec::as_slice);
        ids.iter()
            .filter_map(|&id| Some((self.path_of(id)?.to_owned(), id)))
            .collect()
    }

    fn file(&self, path: &str) -> Option<FileId> {
        self.files.get(path).copied()
    }

    /// Returns true if a folder has this name.
    pub(super) fn has_folder(&self, name: &str) -> bool {
        self.folders_by_name.contains_key(name)
    }

    /// Returns the files whose path ends with `path`.
    pub(super) fn ending_with(&self, path: &str) -> Vec<FileId> {
        let Some((folder, name)) = path.rsplit_once('/') else {
            return Vec::new();
        };
        let folders = self.folders_by_name.get(folder.rsplit('/').next().unwrap_or_default());
        let is_end = |outer: &&String| {
            outer
                .strip_suffix(folder)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let folders = folders.into_iter().flatten().filter(is_end);
        folders.filter_map(|folder| self.below(folder, name)).collect()
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, file: FileId) -> &str {
        &self.paths[file.0 as usize]
    }

    /// Returns true for a folder with a project file of C# or a package of Swift.
    pub(super) fn is_project(&self, folder: &str) -> bool {
        self.projects.contains(folder)
    }

    /// Returns the file at a path relative to a folder.
    pub(super) fn below(&self, folder: &str, path: &str) -> Option<FileId> {
        self.file(&joined(folder, path))
    }

    /// Returns true if the package that an import names is one of several with that name.
    pub(super) fn is_ambiguous(&self, family: Family, module: &str) -> bool {
        family == Family::Rust && self.ambiguous.contains(module.split("::").next().unwrap_or_default())
    }

    /// Finds the module that an import in a file names.
    pub(super) fn module(
        &self,
        linker: &Linker<'_>,
        facts: &Facts,
        module: &str,
        at: u32,
        depth: u8,
    ) -> Option<Module> {
        match facts.family {
            Family::Python => self.python_module(&facts.path, module),
            Family::JavaScript => self.scripts.find(&self.files, &facts.path, module).map(Module::File),
            Family::Go => self.go_package(module),
            Family::Java => {
                let near = || self.scala_package(linker, facts, module);
                self.java_package(linker, module).or_else(near)
            }
            Family::Rust => self.rust_module(linker, facts, module, at, depth),
            Family::Php => self.php_module(linker, &facts.path, module),
            Family::Dart => linker.library(&facts.path, module),
            Family::Lua => self.lua_file(&facts.path, module).map(Module::File),
            Family::C => None,
            Family::Other(_) => match facts.globals() {
                Globals::Namespaces => self.namespace(linker, facts.family, module),
                Globals::Modules => self.swift_module(module),
                Globals::Constants => self.ruby_file(&facts.path, module).map(Module::File),
                Globals::Aliases => {
                    let of = linker.module_by_path(facts, module, at, depth)?;
                    Some(Module::File(of.file))
                }
                Globals::None => None,
            },
        }
    }

    /// Returns true if a module that was not found is proven to be outside of the repository.
    pub(super) fn is_outside(&self, linker: &Linker<'_>, facts: &Facts, module: &str) -> bool {
        let standard = &linker.links.standard;
        if facts.family != Family::JavaScript && standard.has_module(facts.lang, module) {
            return true;
        }
        let first = |separator: &str| module.split(separator).next().unwrap_or_default();
        match facts.family {
            Family::Python => !module.starts_with('.') && self.python_module(&facts.path, first(".")).is_none(),
            Family::JavaScript => {
                let name = scripts::node_module(module);
                !name.contains('/') && standard.has_module(facts.lang, name) || self.scripts.is_outside(module)
            }
            Family::Go => {
                let is_own = |package: &Package| is_inside(module, &package.name) || module == package.name;
                let last = module.rsplit('/').next().unwrap_or_default();
                !self.go.iter().any(is_own) && (!self.go.is_empty() || !self.folders_by_name.contains_key(last))
            }
            Family::Java => {
                let mut outer = module.rsplit_once('.');
                let is_relative = outer.is_none() || linker.is_defined_in(Family::Java, first("."));
                // Each name that is looked up is kept.
                let is_short = module.matches('.').count() < MAX_MODULE_SEGMENTS;
                while let Some((package, _)) = outer.filter(|_| is_short) {
                    if self.java_package(linker, package).is_some() {
                        return false;
                    }
                    outer = package.rsplit_once('.');
                }
                !is_relative && is_short
            }
            Family::Rust => {
                let name = module.trim_start_matches("::").split("::").next().unwrap_or_default();
                let is_declared = self.dependencies.contains(name.trim());
                is_declared && !self.crates.contains_key(name)
            }
            Family::Dart => self.is_outside_of_dart(module),
            Family::C | Family::Php | Family::Lua | Family::Other(_) => false,
        }
    }

    /// Returns the module `name` inside another module.
    pub(super) fn inside(&self, module: &Module, name: &str) -> Option<Module> {
        let folder = match module {
            Module::Folder { path, .. } => path.to_string(),
            Module::File(file) => {
                let path = self.path_of(*file)?;
                path.strip_suffix("/__init__.py")
                    .or_else(|| path.strip_suffix("/__init__.pyi"))?
                    .to_owned()
            }
            _ => return None,
        };
        self.python_at(&joined(&folder, name))
    }

    fn path_of(&self, file: FileId) -> Option<&str> {
        self.paths.get(file.0 as usize).map(String::as_str)
    }

    /// Returns the stub (`.pyi`) of a Python file, or the file that a stub describes.
    pub(super) fn python_twin(&self, file: FileId) -> Option<FileId> {
        let path = self.path_of(file)?;
        match path.strip_suffix(".pyi") {
            Some(stem) => self.file(&format!("{stem}.py")),
            None => self.file(&format!("{}.pyi", path.strip_suffix(".py")?)),
        }
    }

    fn python_at(&self, path: &str) -> Option<Module> {
        let endings = ["/__init__.py", ".py", "/__init__.pyi", ".pyi"];
        let file = endings.iter().find_map(|ending| self.file(&format!("{path}{ending}")));
        file.map(Module::File).or_else(|| self.folder(path))
    }

    fn folder(&self, path: &str) -> Option<Module> {
        let files = self.folders.get(path)?;
        Some(Module::Folder {
            path: path.into(),
            files: Files(files.as_slice().into()),
        })
    }

    fn go_package(&self, module: &str) -> Option<Module> {
        self.go.iter().find_map(|package| {
            let rest = module.strip_prefix(package.name.as_str())?;
            let rest = rest.strip_prefix('/').or_else(|| rest.is_empty().then_some(""))?;
            self.folder(&joined(&package.folder, rest))
        })
    }

    /// Returns the files of a package. `find` finds them if they are not known.
    fn remembered(
        &self,
        folder: String,
        name: &str,
        find: impl FnOnce() -> Option<Arc<[FileId]>>,
    ) -> Option<Arc<[FileId]>> {
        let key = (folder, name.to_owned());
        let known = self.packages.lock().get(&key).cloned();
        known.unwrap_or_else(|| {
            let found = find();
            self.packages.lock().insert(key, found.clone());
            found
        })
    }

    /// Finds the file that `require` of Ruby reads: relative to the file, or below a folder `lib`.
    fn ruby_file(&self, from: &str, module: &str) -> Option<FileId> {
        let name = format!("{}.rb", module.strip_suffix(".rb").unwrap_or(module));
        let (folder, _) = from.rsplit_once('/').unwrap_or(("", from));
        if module.starts_with('.') {
            return self.below(folder, &name);
        }
        let mut above = Some(folder);
        while let Some(folder) = above {
            for root in ["lib", "", "test", "spec"] {
                if let Some(found) = self.below(&joined(folder, root), &name) {
                    return Some(found);
                }
            }
            above = (!folder.is_empty()).then(|| folder.rsplit_once('/').map_or("", |(outer, _)| outer));
        }
        None
    }

    /// Returns the files of a module of a Swift package.
    fn swift_module(&self, module: &str) -> Option<Module> {
        let files = self.remembered("Package.swift".to_owned(), module, || {
            let folders = self.folders_by_name.get(module).into_iter().flatten();
            let is_source = |folder: &&String| {
                let outer = folder.rsplit('/').nth(1);
                outer.is_some_and(|outer| matches!(outer, "Sources" | "Tests"))
            };
            let folders: Vec<&String> = folders.filter(is_source).collect();
            let is_in = |path: &String| folders.iter().any(|folder| is_inside(path, folder));
            let files = self
                .paths
                .iter()
                .enumerate()
                .filter(|(_, path)| path.ends_with(".swift") && is_in(path));
            let files: Vec<FileId> = files.map(|(file, _)| FileId(file as u32)).collect();
            (!files.is_empty()).then(|| files.into())
        })?;
        Some(Module::Folder {
            path: module.into(),
            files: Files(files),
        })
    }

    /// Returns the files with a namespace of PHP or C#.
    pub(super) fn namespace(&self, linker: &Linker<'_>, family: Family, namespace: &str) -> Option<Module> {
        let files = self.remembered(format!("{family:?}"), namespace, || {
            let has = |file: &&FileId| {
                let facts = linker.facts(**file).filter(|facts| facts.family == family);
                facts.is_some_and(|facts| {
                    let mut names = facts.namespaces.iter().map(|&of| &facts.definitions[of as usize].name);
                    names.any(|name| name == namespace)
                })
            };
            let files: Vec<FileId> = linker.files_defining(namespace).iter().filter(has).copied().collect();
            (!files.is_empty()).then(|| files.into())
        })?;
        Some(Module::Folder {
            path: namespace.into(),
            files: Files(files),
        })
    }

    /// Finds the file that `require` reads, or a namespace.
    fn php_module(&self, linker: &Linker<'_>, from: &str, module: &str) -> Option<Module> {
        if !module.contains(['/', '.']) {
            return self.namespace(linker, Family::Php, module);
        }
        let (folder, _) = from.rsplit_once('/').unwrap_or(("", from));
        let file = self.below(folder, module).or_else(|| self.file(module))?;
        Some(Module::File(file))
    }

    /// Returns the files whose top-level names a file sees without importing them.
    pub(super) fn package_of(&self, linker: &Linker<'_>, facts: &Facts) -> Option<Arc<[FileId]>> {
        let (folder, _) = facts.path.rsplit_once('/').unwrap_or(("", &facts.path));
        match facts.family {
            Family::Java => match package_clause(facts).and_then(|package| self.java_package(linker, package))? {
                Module::Folder { files, .. } => Some(files.0),
                _ => None,
            },
            Family::Go => self.remembered(folder.to_owned(), package_clause(facts)?, || {
                let own = package_clause(facts)?;
                let files = self.folders.get(folder)?.iter().copied().filter(|file| {
                    let other = linker.facts(*file);
                    other.is_some_and(|other| {
                        other.family == Family::Go && package_clause(&other).is_some_and(|other| other == own)
                    })
                });
                Some(files.collect())
            }),
            _ => None,
        }
    }

    /// Returns the crate that a file belongs to.
    pub(super) fn rust_crate(&self, file: FileId) -> Option<Module> {
        let path = self.path_of(file)?;
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        if self.rust_roots.get(folder).is_some_and(|roots| roots.contains(&file)) {
            return Some(Module::Crate { roots: [file].into() });
        }
        let mut folder = Some(folder);
        while let Some(at) = folder {
            if let Some(roots) = self.rust_roots.get(at) {
                return Some(Module::Crate {
                    roots: roots.as_slice().into(),
                });
            }
            folder = (!at.is_empty()).then(|| at.rsplit_once('/').map_or("", |(outer, _)| outer));
        }
        None
    }

    fn is_rust_root(&self, path: &str, file: FileId) -> bool {
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        self.rust_roots.get(folder).is_some_and(|roots| roots.contains(&file))
    }

    /// Returns the file of the module `name` that a file declares.
    pub(super) fn rust_child(&self, file: FileId, name: &str) -> Option<Module> {
        let path = self.path_of(file)?;
        let (folder, own) = path.rsplit_once('/').unwrap_or(("", path));
        let inner = if own == "mod.rs" || self.is_rust_root(path, file) {
            folder.to_owned()
        } else {
            joined(folder, own.trim_end_matches(".rs"))
        };
        let name = name.strip_prefix("r#").unwrap_or(name);
        let paths = [
            joined(&inner, &format!("{name}.rs")),
            joined(&inner, &format!("{name}/mod.rs")),
        ];
        let file = paths.iter().find_map(|path| self.file(path))?;
        Some(Module::Items { file, of: None })
    }

    /// Returns the module that declares the file of a module.
    pub(super) fn rust_outer(&self, file: FileId) -> Option<Module> {
        let path = self.path_of(file)?;
        let (folder, own) = path.rsplit_once('/').unwrap_or(("", path));
        if self.is_rust_root(path, file) {
            return None;
        }
        let folder = if own == "mod.rs" {
            folder.rsplit_once('/').map_or("", |(outer, _)| outer)
        } else {
            folder
        };
        let paths = [joined(folder, "mod.rs"), format!("{folder}.rs")];
        if let Some(file) = paths.iter().find_map(|path| self.file(path)) {
            return Some(Module::Items { file, of: None });
        }
        self.rust_roots.get(folder).map(|roots| Module::Crate {
            roots: roots.as_slice().into(),
        })
    }

    fn rust_module(&self, linker: &Linker<'_>, facts: &Facts, module: &str, at: u32, depth: u8) -> Option<Module> {
        let depth = deeper(depth)?;
        let mut segments = module.trim_start_matches("::").split("::").map(str::trim);
        let here = Module::Items {
            file: facts.file,
            of: inline_module(facts, at),
        };
        let first = segments.next()?;
        let mut found = match first {
            "crate" => self.rust_crate(facts.file)?,
            "self" => here,
            "super" => linker.rust_parent(facts, at)?,
            "" => here,
            _ => match linker.module_in(&here, first, depth) {
                Some(module) => module,
                None => self.rust_dependency(first)?,
            },
        };
        for segment in segments {
            found = match segment {
                "self" => found,
                "super" => linker.outer_module(&found)?,
                _ => linker.module_in(&found, segment, depth)?,
            };
        }
        Some(found)
    }

    /// Returns the crate of the repository with this name.
    pub(super) fn rust_dependency(&self, name: &str) -> Option<Module> {
        let &root = self.crates.get(name)?;
        Some(Module::Crate { roots: [root].into() })
    }
}

impl Linker<'_> {
    /// Returns the module around a module of Rust.
    pub(super) fn outer_module(&self, module: &Module) -> Option<Module> {
        match module {
            Module::Items { file, of: None } => self.links.environment.rust_outer(*file),
            Module::Items { file, of: Some(inner) } => {
                let of = self.facts(*file)?.definitions[*inner as usize].container;
                Some(Module::Items { file: *file, of })
            }
            _ => None,
        }
    }

    /// Returns the module around the one at a byte of a Rust file.
    pub(super) fn rust_parent(&self, facts: &Facts, at: u32) -> Option<Module> {
        match inline_module(facts, at) {
            Some(inner) => {
                // A module in a function is in the module of the function.
                let outer = |of: u32| facts.definitions[of as usize].container;
                let mut around = std::iter::successors(outer(inner), |of| outer(*of));
                let of = around.find(|of| facts.has_kind(*of, DefinitionKind::Module));
                Some(Module::Items { file: facts.file, of })
            }
            None => self.links.environment.rust_outer(facts.file),
        }
    }

    /// Returns the module with this name that a module of Rust declares.
    fn module_inside(&self, file: FileId, of: Option<u32>, name: &str) -> Option<Module> {
        let facts = self.facts(file)?;
        let is_inner = |&&index: &&u32| {
            facts.has_kind(index, DefinitionKind::Module)
                && facts.definitions[index as usize].container == of
                && !facts.is_declared_module(index)
        };
        if let Some(&inner) = facts.named(name).iter().find(is_inner) {
            let of = Some(inner);
            return Some(Module::Items { file, of });
        }
        if of.is_some() {
            return None;
        }
        self.links.environment.rust_child(file, name)
    }

    /// Returns the module that `name` means in a module.
    fn module_in(&self, module: &Module, name: &str, depth: u8) -> Option<Module> {
        if let Module::Items { file, of } = module
            && let Some(inner) = self.module_inside(*file, *of, name)
        {
            return Some(inner);
        }
        self.look_up(module, name, depth).into_iter().find_map(|sym| match sym {
            Sym::Module(module) => Some(module),
            _ => None,
        })
    }
}

/// Returns the package that a file says it belongs to.
pub(super) fn package_clause(facts: &Facts) -> Option<&str> {
    let clause = facts
        .definitions
        .first()
        .filter(|first| first.kind == DefinitionKind::Module)?;
    Some(&clause.name)
}

pub(super) fn is_inside(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns true if a path relative to a folder leads out of the repository.
fn leaves(folder: &str, path: &str) -> bool {
    let mut depth = folder.split('/').filter(|segment| !segment.is_empty()).count();
    path.split('/').any(|segment| match segment {
        "" | "." => false,
        ".." => depth.checked_sub(1).map(|outer| depth = outer).is_none(),
        _ => {
            depth += 1;
            false
        }
    })
}

/// Joins a folder and a relative path with `.` and `..`. A path that leaves the repository stays at its root.
pub(super) fn joined(folder: &str, path: &str) -> String {
    let mut segments: Vec<&str> = folder.split('/').filter(|segment| !segment.is_empty()).collect();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    segments.join("/")
}
