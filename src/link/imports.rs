//! Resolves the imports of a file to files.

use std::collections::BTreeSet;

use super::environment::Module;
use super::facts::{Facts, Family};
use super::resolve::{Linker, MAX_DEPTH, Sym};
use crate::extract::Import;
use crate::model::ByteRange;
use crate::snapshot::FileId;

/// A statement that imports something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportSite {
    /// The file.
    pub file: FileId,
    /// The range of the statement.
    pub range: ByteRange,
    /// The module as written.
    pub module: String,
    /// What it imports.
    pub imported: Imported,
}

/// What a statement imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// These files, sorted.
    Files(Vec<FileId>),
    /// A package with these files, sorted.
    Package(String, Vec<FileId>),
    /// A module outside of the repository.
    Outside,
    /// It is not known what it imports.
    Unknown,
}

impl Imported {
    /// Returns true if it includes a file.
    pub fn includes(&self, file: FileId) -> bool {
        match self {
            Self::Files(files) | Self::Package(_, files) => files.binary_search(&file).is_ok(),
            Self::Outside | Self::Unknown => false,
        }
    }
}

impl Linker<'_> {
    /// Resolves the imports of a file.
    pub fn imports(&self, file: FileId) -> Vec<ImportSite> {
        let Some(facts) = self.facts(file) else {
            return Vec::new();
        };
        let site = |import: &Import| ImportSite {
            file,
            range: import.range,
            module: import.module.clone(),
            imported: self.imported_by(&facts, import),
        };
        facts.imports.iter().map(site).collect()
    }

    fn imported_by(&self, facts: &Facts, import: &Import) -> Imported {
        let at = import.range.start;
        let of_module = self.module_sym(facts, &import.module, at, MAX_DEPTH);
        let mut is_outside = of_module == Sym::Outside;
        let module = match of_module {
            Sym::Module(module) => Some(module),
            _ => None,
        };
        if facts.family == Family::C {
            let file = self.included_by(facts, &import.module);
            // The folders that the compiler searches are not known, but every file is found by the end of its path. The
            // name of a file can be that of a macro.
            let is_file = import.module.starts_with('<') || import.module.contains('.');
            return match file {
                Some(file) => Imported::Files(vec![file]),
                None if is_file && !import.module.contains("../") => Imported::Outside,
                None => Imported::Unknown,
            };
        }
        let mut files = BTreeSet::new();
        for name in import
            .names
            .iter()
            .filter(|name| !matches!(name.name.as_str(), "" | "*" | "self"))
        {
            for sym in self.taken(facts, &import.module, &name.name, at, MAX_DEPTH) {
                is_outside |= facts.family == Family::Php && sym == Sym::Outside;
                match (sym, &module) {
                    (Sym::Module(Module::File(file) | Module::Items { file, .. }), _) => files.insert(file),
                    (_, Some(Module::File(file) | Module::Items { file, .. })) => files.insert(*file),
                    (Sym::Def(def), _) => files.insert(def.file),
                    _ => false,
                };
            }
        }
        if !files.is_empty() {
            return Imported::Files(files.into_iter().collect());
        }
        // A namespace has no file of its own.
        let module = module.filter(|module| facts.family != Family::Php || matches!(module, Module::File(_)));
        match module {
            Some(Module::File(file) | Module::Items { file, .. }) => Imported::Files(vec![file]),
            Some(Module::Crate { roots }) => Imported::Files(roots.to_vec()),
            Some(Module::Folder { path, files }) => Imported::Package(path.to_string(), files.0.to_vec()),
            None if is_outside => Imported::Outside,
            None => Imported::Unknown,
        }
    }
}
