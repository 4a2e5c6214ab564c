//! Finds the modules of Python.

use super::{Environment, Module, joined};

impl Environment {
    pub(super) fn python_module(&self, from: &str, module: &str) -> Option<Module> {
        let (folder, _) = from.rsplit_once('/').unwrap_or(("", from));
        let n_dots = module.len() - module.trim_start_matches('.').len();
        if n_dots > 0 {
            let mut base = folder;
            for _ in 1..n_dots {
                base = base.rsplit_once('/').map_or("", |(outer, _)| outer);
            }
            let rest = module[n_dots..].replace('.', "/");
            return self.python_at(&if rest.is_empty() {
                base.to_owned()
            } else {
                joined(base, &rest)
            });
        }
        // The file whose root is nearest to the importing file: of all folders above it, the deepest.
        let path = module.replace('.', "/");
        let mut base = Some(folder);
        while let Some(folder) = base {
            for root in ["", "src", "lib", "python"] {
                if let Some(found @ Module::File(_)) = self.python_at(&joined(&joined(folder, root), &path)) {
                    let is_package = |folder: &str| self.file(&joined(folder, "__init__.py")).is_some();
                    // Inside a package, `import x` does not mean the sibling `x`.
                    if !is_package(&joined(folder, root)) {
                        return Some(found);
                    }
                }
            }
            base = (!folder.is_empty()).then(|| folder.rsplit_once('/').map_or("", |(outer, _)| outer));
        }
        // Elsewhere in the tree, only below a folder that is no package.
        let is_root = |path: &str, inner: &str| {
            let root = path
                .strip_suffix(inner)
                .map(|root| root.trim_end_matches('/'))
                .unwrap_or_default();
            self.file(&joined(root, "__init__.py")).is_none()
        };
        let found = self.python.get(module).into_iter().flatten().find(|file| {
            let path_of = self.path_of(**file).unwrap_or_default();
            let stem = path_of
                .trim_end_matches(".pyi")
                .trim_end_matches(".py")
                .trim_end_matches("/__init__");
            is_root(stem, &path)
        });
        if let Some(file) = found {
            return Some(Module::File(*file));
        }
        let mut base = Some(folder);
        while let Some(folder) = base {
            for root in ["", "src", "lib"] {
                let (above, at) = (joined(folder, root), joined(&joined(folder, root), &path));
                let is_package = self.file(&joined(&above, "__init__.py")).is_some();
                if self.folders.contains_key(&at) && !module.is_empty() && !is_package {
                    let has_python = self.files_in(&at).iter().any(|(path, _)| path.ends_with(".py"));
                    if has_python {
                        return self.folder(&at);
                    }
                }
            }
            base = (!folder.is_empty()).then(|| folder.rsplit_once('/').map_or("", |(outer, _)| outer));
        }
        None
    }
}
