//! Finds what names of Dart mean: a library is a file with its parts, and imports make the names of libraries visible.

use std::collections::HashMap;
use std::sync::Arc;

use super::environment::{Environment, Module};
use super::facts::Facts;
use super::memo::deeper;
use super::resolve::{Found, Linker, Sym, Tier};
use crate::extract::{Import, ImportedName, Reference, Value};
use crate::snapshot::FileId;

/// Limit on the imports of a library among which a name is sought, and on its parts.
const MAX_IMPORTS: usize = 256;

/// The folders of packages of Dart, by name.
pub(super) type DartPackages = HashMap<String, Vec<String>>;

/// Returns the name in a manifest of a package of Dart.
pub(super) fn package_name(manifest: &str) -> Option<String> {
    let name = manifest.lines().find_map(|line| line.strip_prefix("name:"))?;
    let name = name.split('#').next().unwrap_or_default().trim();
    Some(name.trim_matches(['"', '\'']).to_owned())
}

impl Environment {
    /// Returns the file that a URI in a file of Dart names. Of several packages with one name, the nearest counts.
    pub(super) fn dart_file(&self, from: &str, uri: &str) -> Option<FileId> {
        let Some(path) = uri.strip_prefix("package:") else {
            let (folder, _) = from.rsplit_once('/').unwrap_or(("", from));
            return (!uri.contains(':')).then(|| self.below(folder, uri)).flatten();
        };
        let (package, path) = path.split_once('/')?;
        let folders = self.dart.get(package)?.iter();
        let n_common = |folder: &String| folder.bytes().zip(from.bytes()).take_while(|(a, b)| a == b).count();
        let mut found: Vec<(usize, FileId)> = folders
            .filter_map(|folder| Some((n_common(folder), self.below(folder, &format!("lib/{path}"))?)))
            .collect();
        found.sort_unstable();
        found.pop().map(|(_, file)| file)
    }

    /// Returns true if a URI leads out of the repository: no package of it has that name.
    pub(super) fn is_outside_of_dart(&self, uri: &str) -> bool {
        let package = uri.strip_prefix("package:").and_then(|path| path.split('/').next());
        package.is_some_and(|package| !self.dart.contains_key(package) && !self.has_folder(package))
    }
}

impl Facts {
    /// Returns the statements `part` of a library.
    fn parts(&self) -> impl Iterator<Item = &Import> {
        let parts = self.imports.iter().filter(|import| import.names.is_empty());
        parts.filter(|import| import.is_reexport).take(MAX_IMPORTS)
    }

    /// Returns the library that a part says it belongs to.
    fn whole(&self) -> Option<&Import> {
        self.imports
            .iter()
            .find(|import| import.names.is_empty() && !import.is_reexport)
    }
}

impl Import {
    /// Returns true for an export of Dart of all that a library has.
    pub(super) fn exports_all(&self) -> bool {
        self.is_reexport && !self.names.is_empty() && self.names.iter().all(|named| named.name == "*")
    }
}

impl Linker<'_> {
    /// Finds what a name means that no part of its file makes visible.
    pub(super) fn name_in_dart(&self, facts: &Facts, reference: &Reference, depth: u8) -> Found {
        let name = reference.name.as_str();
        let library = self.library_of(facts);
        let library = library.as_deref().unwrap_or(facts);
        let inside = self.in_files(&self.files_of_library(library), name, None);
        if !inside.is_empty() {
            return Found {
                syms: inside,
                tier: Tier::Scope,
            };
        }
        let imported = library
            .imports
            .iter()
            .filter(|import| !import.is_reexport)
            .take(MAX_IMPORTS);
        let mut imported = imported.filter_map(|import| self.by_import(library, import, name, depth));
        match imported.next() {
            Some(syms) if syms == [Sym::Outside] => Found::outside(),
            Some(syms) => Found {
                syms,
                tier: Tier::Import,
            },
            None => self.invisible(facts, reference),
        }
    }

    /// Finds a name of one of several libraries that are imported under one prefix.
    pub(super) fn member_of_prefix(&self, facts: &Facts, reference: &Reference, depth: u8) -> Option<Found> {
        let Value::Of { at, .. } = reference.receiver else {
            return None;
        };
        let prefix = &facts.references[facts.reference_at(at)? as usize].name;
        let library = self.library_of(facts);
        let library = library.as_deref().unwrap_or(facts);
        let prefixed = library.imports_of(prefix).iter().take(MAX_IMPORTS);
        let syms = prefixed
            .map(|(import, _)| &library.imports[*import as usize])
            .find_map(|import| {
                let module = self.module_sym(library, &import.module, import.range.start, depth);
                let Sym::Module(module) = module else { return None };
                Some(self.look_up(&module, &reference.name, depth)).filter(|found| !found.is_empty())
            })?;
        Some(Found {
            syms,
            tier: Tier::Receiver,
        })
    }

    /// Finds a name that an import or export makes visible: the name of a library, or one in it.
    fn by_import(&self, facts: &Facts, import: &Import, name: &str, depth: u8) -> Option<Vec<Sym>> {
        let depth = deeper(depth)?;
        let at = import.range.start;
        let prefix = import.names.iter().find(|named| named.name.is_empty());
        if let Some(prefix) = prefix {
            let is_meant = prefix.alias.as_deref() == Some(name);
            return is_meant.then(|| vec![self.module_sym(facts, &import.module, at, depth)]);
        }
        let is_hidden = |named: &ImportedName| named.alias.is_some();
        let mut named = import.names.iter().filter(|named| named.name == name);
        let is_shown = named.clone().any(|named| named.alias.is_none());
        if named.any(is_hidden) || !is_shown && import.names.iter().all(|named| named.name != "*") {
            return None;
        }
        match self.module_sym(facts, &import.module, at, depth) {
            Sym::Module(module) => {
                let found = self.look_up(&module, name, depth);
                if found.is_empty() && is_shown {
                    return Some(vec![Sym::Unknown]);
                }
                (!found.is_empty()).then_some(found)
            }
            other => is_shown.then(|| vec![other]),
        }
    }

    /// Finds a name that a library defines, or exports from a library of which it does not export all.
    pub(super) fn look_up_in_library(&self, facts: &Facts, name: &str, depth: u8) -> Vec<Sym> {
        let own = self.in_files(&self.files_of_library(facts), name, None);
        if !own.is_empty() {
            return own;
        }
        let exports = facts
            .imports
            .iter()
            .filter(|import| import.is_reexport && !import.names.is_empty() && !import.exports_all());
        let mut found = exports
            .take(MAX_IMPORTS)
            .filter_map(|import| self.by_import(facts, import, name, depth));
        found.find(|syms| !syms.contains(&Sym::Unknown)).unwrap_or_default()
    }

    /// Returns the library that a file is a part of.
    fn library_of(&self, facts: &Facts) -> Option<Arc<Facts>> {
        let whole = facts.whole()?;
        let environment = &self.links.environment;
        let has_part = |of: &Arc<Facts>| {
            let mut parts = of.parts().map(|part| environment.dart_file(&of.path, &part.module));
            parts.any(|part| part == Some(facts.file))
        };
        match environment.dart_file(&facts.path, &whole.module) {
            Some(file) => self.facts(file),
            None => {
                let named = self.files_defining(&whole.module);
                named
                    .iter()
                    .take(MAX_IMPORTS)
                    .filter_map(|file| self.facts(*file))
                    .find(has_part)
            }
        }
    }

    /// Returns the files of a library, sorted.
    fn files_of_library(&self, library: &Facts) -> Vec<FileId> {
        let parts = library.parts();
        let parts = parts.filter_map(|part| self.links.environment.dart_file(&library.path, &part.module));
        let mut files: Vec<FileId> = parts.chain([library.file]).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Returns the library that a URI names.
    pub(super) fn library(&self, from: &str, uri: &str) -> Option<Module> {
        self.links.environment.dart_file(from, uri).map(Module::File)
    }
}
