//! Finds the packages of Java, Kotlin and Scala.

use std::sync::Arc;

use super::{Environment, Files, Module, package_clause};
use crate::link::facts::{Facts, Family};
use crate::link::resolve::Linker;
use crate::snapshot::FileId;

impl Environment {
    pub(in crate::link) fn java_package(&self, linker: &Linker<'_>, package: &str) -> Option<Module> {
        let files = self.remembered(String::new(), package, || self.find_java_package(linker, package))?;
        Some(Module::Folder {
            path: package.into(),
            files: Files(files),
        })
    }

    /// Returns the package that a path means in the packages around a file of Scala.
    pub(super) fn scala_package(&self, linker: &Linker<'_>, facts: &Facts, path: &str) -> Option<Module> {
        let mut outer = package_clause(facts).filter(|_| facts.is_scala());
        while let Some(package) = outer {
            if let Some(found) = self.java_package(linker, &format!("{package}.{path}")) {
                return Some(found);
            }
            outer = package.rsplit_once('.').map(|(outer, _)| outer);
        }
        None
    }

    /// Finds the files of a package: those that say so, and those in a folder with its name.
    fn find_java_package(&self, linker: &Linker<'_>, package: &str) -> Option<Arc<[FileId]>> {
        let path = package.replace('.', "/");
        let last = path.rsplit('/').next().unwrap_or_default();
        let suffix = format!("/{path}");
        let folders = self.folders_by_name.get(last).into_iter().flatten();
        let mut files: Vec<FileId> = folders
            .filter(|folder| **folder == path || folder.ends_with(&suffix))
            .flat_map(|folder| self.folders[folder].iter().copied())
            .collect();
        let says_so = |file: &&FileId| {
            let is_clause = |facts: Arc<Facts>| package_clause(&facts) == Some(package);
            Family::of(linker.view.lang(**file)) == Family::Java
                && (package.contains('.') || linker.facts(**file).is_some_and(is_clause))
        };
        files.extend(linker.files_defining(package).iter().filter(says_so));
        files.sort_unstable();
        files.dedup();
        (!files.is_empty()).then(|| files.into())
    }
}
