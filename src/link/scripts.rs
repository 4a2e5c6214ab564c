//! Finds the modules of JavaScript and TypeScript: packages by `package.json`, aliases by `tsconfig.json`.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::environment::{is_inside, joined};
use crate::snapshot::FileId;

/// Endings that imports can omit.
const ENDINGS: &[&str] = &[
    ".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".vue", ".svelte", ".astro",
];
/// Endings of what a build makes of a file with another ending.
const BUILT_ENDINGS: &[&str] = &[".js", ".mjs", ".cjs", ".jsx", ".d.ts", ".d.mts", ".d.cts"];
/// Folders of what a build makes of `src`.
const BUILT_FOLDERS: &[&str] = &["dist", "lib", "build", "out", "es", "esm", "cjs", "types"];
/// Files to which a package without an entry leads.
const ENTRIES: &[&str] = &["src/index", "source/index", "lib/index", "index", "src"];
/// Limits on what a manifest makes a look-up try.
const MAX_WILDCARDS: usize = 256;
const MAX_TARGETS: usize = 16;
/// Maximum number of private names of a package that a look-up follows.
const MAX_STEPS: usize = 64;
/// Maximum length of a chain of files that extend one another.
const MAX_EXTENDED: usize = 32;
/// Maximum number of aliases of one file, and of a tree.
const MAX_PATHS: usize = 4_096;
const MAX_ALIASES: usize = 200_000;
/// Maximum number of `*` that are replaced in a path.
const MAX_STARS: usize = 8;
/// Modules of Node.js that are parts of others.
const NODE_PARTS: &[&str] = &[
    "assert/strict",
    "dns/promises",
    "fs/promises",
    "inspector/promises",
    "path/posix",
    "path/win32",
    "readline/promises",
    "stream/consumers",
    "stream/promises",
    "stream/web",
    "test/reporters",
    "timers/promises",
    "util/types",
];
/// The start of a version that is a folder or another package of the repository.
const LOCAL_VERSIONS: &[&str] = &["file:", "link:", "portal:", "workspace:", "."];

/// The files of a tree, by path.
type Files = HashMap<String, FileId>;

/// What the manifests of a tree say about modules.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    /// Packages, innermost first.
    packages: Vec<NodePackage>,
    /// Indices into `packages`.
    by_name: HashMap<String, Vec<usize>>,
    /// For each folder with a `tsconfig.json`, the aliases of the files below, innermost first.
    aliases: Vec<(String, Patterns)>,
    /// Packages that are declared as dependencies.
    dependencies: HashSet<String>,
    /// Each `tsconfig.json` that was read, by path.
    configs: HashMap<String, Value>,
}

/// A `package.json`.
#[derive(Debug, Default)]
struct NodePackage {
    name: String,
    folder: String,
    entries: Vec<String>,
    exports: Patterns,
    imports: Patterns,
}

/// Patterns of names, and the paths that replace them. Each `*` of a path is the text that the `*` of the pattern matches.
#[derive(Clone, Debug, Default)]
struct Patterns {
    exact: HashMap<String, Vec<String>>,
    /// The text before and after the `*`, and the paths; longest text before it first.
    wildcards: Vec<(String, String, Vec<String>)>,
}

/// The options of a `tsconfig.json` that concern modules.
#[derive(Clone, Debug, Default)]
struct Options {
    base: Option<String>,
    /// Patterns and paths.
    paths: Arc<[(String, String)]>,
}

/// Returns true for the manifests that are read.
pub(super) fn is_manifest(name: &str) -> bool {
    let is_config = name.starts_with("tsconfig") && name.ends_with(".json");
    is_config || matches!(name, "package.json" | "jsconfig.json")
}

impl Scripts {
    /// Adds a manifest. Returns false if it cannot be parsed.
    pub(super) fn add_manifest(&mut self, path: &str, text: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name != "package.json" {
            return config(text)
                .map(|config| self.configs.insert(path.to_owned(), config))
                .is_some();
        }
        let Ok(json) = serde_json::from_str::<Value>(text) else {
            return false;
        };
        for key in [
            "dependencies",
            "devDependencies",
            "peerDependencies",
            "optionalDependencies",
        ] {
            let declared = json[key].as_object().into_iter().flatten();
            let is_local = |version: &Value| {
                let version = version.as_str().unwrap_or_default();
                LOCAL_VERSIONS.iter().any(|start| version.starts_with(start))
            };
            let outside = declared.filter(|(_, version)| !is_local(version));
            self.dependencies.extend(outside.map(|(name, _)| name.clone()));
        }
        let entries = ["source", "types", "module", "main"].into_iter();
        self.packages.push(NodePackage {
            name: json["name"].as_str().unwrap_or_default().to_owned(),
            folder: folder.to_owned(),
            entries: entries
                .filter_map(|key| json[key].as_str().map(str::to_owned))
                .collect(),
            exports: Patterns::of_exports(&json["exports"]),
            imports: Patterns::of(
                json["imports"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, to)| (&**name, targets(to))),
            ),
        });
        true
    }

    /// Call this after all manifests are added. `read` returns the content of another file.
    pub(super) fn finish(&mut self, files: &Files, mut read: impl FnMut(FileId) -> Option<String>) {
        self.packages.sort_by_key(|package| Reverse(package.folder.len()));
        for (index, package) in self.packages.iter().enumerate() {
            self.by_name.entry(package.name.clone()).or_default().push(index);
        }
        let mut paths: Vec<String> = self.configs.keys().cloned().collect();
        // `tsconfig.json` before `tsconfig.app.json`.
        paths.sort_by_key(|path| (path.len(), path.clone()));
        let (mut known, mut n_left) = (HashMap::new(), MAX_ALIASES);
        for path in paths {
            let options = self.options(&path, files, &mut read, &mut known, MAX_EXTENDED);
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
            let everywhere = options.base.iter().map(|base| ("*".to_owned(), joined(base, "*")));
            let mut patterns: Vec<(String, Vec<String>)> = Vec::new();
            let own = options.paths.iter().take(n_left).cloned();
            n_left -= own.len();
            for (pattern, path) in own.chain(everywhere) {
                let path = match path.strip_prefix("${configDir}") {
                    Some(rest) => joined(&folder, rest),
                    None => path,
                };
                match patterns.last_mut().filter(|(last, _)| *last == pattern) {
                    Some((_, paths)) => paths.push(path),
                    None => patterns.push((pattern, vec![path])),
                }
            }
            if !patterns.is_empty() {
                self.aliases.push((folder, Patterns::of(patterns.into_iter())));
            }
        }
        self.aliases.sort_by_key(|(folder, _)| Reverse(folder.len()));
        self.configs = HashMap::new();
    }

    /// Returns the options of a `tsconfig.json`, also those that it inherits. `known` has those of other files.
    fn options(
        &self,
        path: &str,
        files: &Files,
        read: &mut dyn FnMut(FileId) -> Option<String>,
        known: &mut HashMap<String, Options>,
        n_left: usize,
    ) -> Options {
        if let Some(options) = known.get(path) {
            return options.clone();
        }
        // A file that extends itself inherits nothing.
        known.insert(path.to_owned(), Options::default());
        let parsed = match self.configs.get(path) {
            Some(config) => Some(config.clone()),
            None => files.get(path).and_then(|&file| config(&read(file)?)),
        };
        let config = parsed.unwrap_or_default();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut options = Options::default();
        let extended = match &config["extends"] {
            Value::Array(all) => all.iter().collect(),
            one => vec![one],
        };
        for name in extended.into_iter().filter_map(Value::as_str).take(MAX_TARGETS) {
            if let Some(path) = self.extended(folder, name, files).filter(|_| n_left > 0) {
                let inherited = self.options(&path, files, read, known, n_left - 1);
                options.base = inherited.base.or(options.base);
                if !inherited.paths.is_empty() {
                    options.paths = inherited.paths;
                }
            }
        }
        let own = &config["compilerOptions"];
        let from = |folder: &str, path: &str| {
            if path.starts_with("${configDir}") {
                path.to_owned()
            } else {
                joined(folder, path)
            }
        };
        if let Some(base) = own["baseUrl"].as_str() {
            options.base = Some(from(folder, base));
        }
        if let Some(paths) = own["paths"].as_object() {
            let base = options.base.as_deref().unwrap_or(folder);
            let each = paths
                .iter()
                .flat_map(|(pattern, to)| to.as_array().into_iter().flatten().map(move |to| (pattern, to)));
            let each = each.filter_map(|(pattern, to)| Some((pattern.clone(), from(base, to.as_str()?))));
            options.paths = each.take(MAX_PATHS).collect();
        }
        known.insert(path.to_owned(), options.clone());
        options
    }

    /// Returns the path of a file that a `tsconfig.json` extends.
    fn extended(&self, folder: &str, name: &str, files: &Files) -> Option<String> {
        let path = if name.starts_with('.') {
            joined(folder, name)
        } else {
            let package = self.package(folder, name)?;
            joined(&package.folder, inner(name))
        };
        ["", ".json", "/tsconfig.json"]
            .iter()
            .map(|ending| format!("{path}{ending}"))
            .find(|path| files.contains_key(path))
    }

    /// Finds the file that an import in the file `from` names.
    pub(super) fn find(&self, files: &Files, from: &str, module: &str) -> Option<FileId> {
        self.find_within(files, from, module, &mut { MAX_STEPS })
    }

    fn find_within(&self, files: &Files, from: &str, module: &str, n_left: &mut usize) -> Option<FileId> {
        if module.starts_with('.') {
            let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
            return file_at(files, &joined(folder, module));
        }
        let aliases = self.aliases.iter().filter(|(folder, _)| is_inside(from, folder));
        let aliased = aliases
            .flat_map(|(_, patterns)| patterns.replace(module))
            .find_map(|path| file_at(files, &path));
        if aliased.is_some() {
            return aliased;
        }
        if !module.starts_with('#') {
            return self.package(from, module)?.find(files, inner(module));
        }
        let own = self.packages.iter().find(|package| is_inside(from, &package.folder))?;
        own.imports.replace(module).find_map(|target| {
            if target.starts_with('.') {
                return source(files, &own.folder, &target);
            }
            *n_left = n_left.checked_sub(1)?;
            self.find_within(files, from, &target, n_left)
        })
    }

    /// Returns the last word of the name of the package that a folder is in, which imports of its entry contain.
    pub(super) fn package_word(&self, folder: &str) -> Option<String> {
        let is_above = |package: &&NodePackage| {
            let below = folder.strip_prefix(&*package.folder);
            below.is_some_and(|below| package.folder.is_empty() || below.is_empty() || below.starts_with('/'))
        };
        let nearest = self.packages.iter().find(is_above)?;
        let mut words = nearest.name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.rfind(|word| !word.is_empty()).map(str::to_owned)
    }

    /// Returns the package that a module belongs to. Of several with its name, one that contains the importing file.
    fn package(&self, from: &str, module: &str) -> Option<&NodePackage> {
        let named = self.by_name.get(package_name(module))?;
        let own = named
            .iter()
            .find(|&&index| is_inside(from, &self.packages[index].folder));
        let index = *own.or_else(|| named.first().filter(|_| named.len() == 1))?;
        Some(&self.packages[index])
    }

    /// Returns true for a module of Node.js with its prefix, or if a manifest declares the package of a module and no alias
    /// can make it mean a file of the repository.
    pub(super) fn is_outside(&self, module: &str) -> bool {
        let name = package_name(module);
        let is_aliased = || self.aliases.iter().any(|(_, patterns)| patterns.is_for(module));
        let is_declared = self.dependencies.contains(name) && !self.by_name.contains_key(name) && !is_aliased();
        module.starts_with("node:") || is_declared
    }
}

/// Returns the name of a module of Node.js without its part: `fs` for `node:fs/promises`.
pub(super) fn node_module(module: &str) -> &str {
    let module = module.strip_prefix("node:").unwrap_or(module);
    match module.split_once('/') {
        Some((name, _)) if NODE_PARTS.contains(&module) => name,
        _ => module,
    }
}

impl NodePackage {
    /// Finds a module inside of the package, or its entry if `inner` is empty.
    fn find(&self, files: &Files, inner: &str) -> Option<FileId> {
        let name = if inner.is_empty() {
            ".".to_owned()
        } else {
            format!("./{inner}")
        };
        let usual: Vec<String> = if inner.is_empty() {
            self.entries
                .iter()
                .cloned()
                .chain(ENTRIES.iter().map(|&entry| entry.to_owned()))
                .collect()
        } else {
            vec![inner.to_owned(), format!("src/{inner}")]
        };
        self.exports
            .replace(&name)
            .chain(usual)
            .find_map(|path| source(files, &self.folder, &path))
    }
}

impl Patterns {
    fn of<P: AsRef<str>>(patterns: impl Iterator<Item = (P, Vec<String>)>) -> Self {
        let mut found = Self::default();
        for (pattern, paths) in patterns {
            let pattern = pattern.as_ref();
            match pattern.split_once('*') {
                Some((before, after)) => found.wildcards.push((before.to_owned(), after.to_owned(), paths)),
                None => {
                    found.exact.insert(pattern.to_owned(), paths);
                }
            }
        }
        found.wildcards.sort_by_key(|(before, ..)| Reverse(before.len()));
        found.wildcards.truncate(MAX_WILDCARDS);
        found
    }

    /// Reads `exports` of a `package.json`: paths by name, or the paths of the entry.
    fn of_exports(exports: &Value) -> Self {
        match exports.as_object() {
            Some(named) if named.keys().any(|name| name.starts_with('.')) => {
                Self::of(named.iter().map(|(name, to)| (&**name, targets(to))))
            }
            _ => Self::of(std::iter::once((".", targets(exports)))),
        }
    }

    /// Returns the paths that replace a name.
    fn replace(&self, name: &str) -> impl Iterator<Item = String> {
        let exact = self.exact.get(name).into_iter().flatten().cloned();
        exact.chain(self.wildcards.iter().flat_map(move |(before, after, paths)| {
            let rest = name
                .strip_prefix(before.as_str())
                .and_then(|rest| rest.strip_suffix(after.as_str()));
            rest.into_iter()
                .flat_map(move |rest| paths.iter().map(move |path| path.replacen('*', rest, MAX_STARS)))
        }))
    }

    /// Returns true if a pattern other than `*` fits a name.
    fn is_for(&self, name: &str) -> bool {
        let fits = |before: &str, after: &str| !before.is_empty() && name.starts_with(before) && name.ends_with(after);
        self.exact.contains_key(name) || self.wildcards.iter().any(|(before, after, _)| fits(before, after))
    }
}

/// Returns the paths in a value of `exports` or `imports`, under all conditions.
fn targets(value: &Value) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![value]);
    while let Some(value) = open.pop() {
        match value {
            Value::String(path) => found.push(path.clone()),
            Value::Array(all) => open.extend(all.iter().rev()),
            Value::Object(conditions) => open.extend(conditions.values().rev()),
            _ => {}
        }
        if found.len() == MAX_TARGETS {
            break;
        }
    }
    found
}

/// Finds a file that a manifest names, or else the source from which it is built.
fn source(files: &Files, folder: &str, path: &str) -> Option<FileId> {
    if let Some(file) = file_at(files, &joined(folder, path)) {
        return Some(file);
    }
    let mut rest = path.trim_start_matches("./");
    while let Some((_, inner)) = rest.split_once('/').filter(|(first, _)| BUILT_FOLDERS.contains(first)) {
        rest = inner;
        let found = ["src", ""]
            .iter()
            .find_map(|of| file_at(files, &joined(folder, &format!("{of}/{rest}"))));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Finds the file that a path without an ending, or with that of a built file, means.
fn file_at(files: &Files, path: &str) -> Option<FileId> {
    let file = |path: &str| files.get(path).copied();
    let stems = BUILT_ENDINGS.iter().filter_map(|ending| path.strip_suffix(ending));
    let with_ending = |stem: &str| ENDINGS.iter().find_map(|ending| file(&format!("{stem}{ending}")));
    file(path)
        .or_else(|| std::iter::once(path).chain(stems).find_map(with_ending))
        .or_else(|| with_ending(&joined(path, "index")))
}

/// Returns the name of the package that a module belongs to: `@scope/name` for `@scope/name/inner`.
fn package_name(module: &str) -> &str {
    let mut slashes = module.match_indices('/').map(|(at, _)| at);
    let first = slashes.next();
    let end = if module.starts_with('@') {
        first.and_then(|_| slashes.next())
    } else {
        first
    };
    &module[..end.unwrap_or(module.len())]
}

/// Returns the part of a module after the name of its package.
fn inner(module: &str) -> &str {
    module[package_name(module).len()..].trim_start_matches('/')
}

/// Reads JSON with comments and trailing commas.
fn config(text: &str) -> Option<Value> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?;
    Some(parsed.value?.into())
}
