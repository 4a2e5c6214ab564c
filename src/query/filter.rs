//! Limits a query to some files of a view.

use std::borrow::Cow;
use std::collections::HashMap;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::extract;
use crate::model::{Explain, Explanation, Lang, NameKind, RepoPath, typed, with_placeholders};
use crate::snapshot::{FileId, View};

use super::near::nearest;
use super::packages::ancestors;
use super::path_role::is_test_path;

/// Determines how test code is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tests {
    /// Included, but ranked below other code with the same score.
    #[default]
    Any,
    /// Excluded.
    No,
    /// Only test code is included.
    Only,
}

/// Maximum length of a glob. Globs compile to automata some thousand times their length.
const MAX_GLOB_BYTES: usize = 1 << 10;
const MAX_GLOBS_BYTES: usize = 8 << 10;

/// Limits a query to some files.
#[derive(Clone, Debug, Default)]
pub struct FileFilter {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
    langs: Vec<Lang>,
    tests: Tests,
    /// The folders of packages, with true for the selected ones. `None` if no package is selected.
    packages: Option<HashMap<String, bool>>,
}

/// The reason why a filter is rejected.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// A path pattern is invalid.
    #[error("invalid path pattern: {glob}")]
    Glob {
        /// The pattern as given.
        glob: String,
        /// The syntax error.
        #[source]
        source: globset::Error,
    },
    /// The path patterns are too long.
    #[error(
        "path patterns too long: {n_bytes} bytes (limit: {MAX_GLOB_BYTES} per pattern, {MAX_GLOBS_BYTES} in total)"
    )]
    TooLong {
        /// The length of the longest pattern, or of all patterns together.
        n_bytes: usize,
    },
    /// The language is unknown.
    #[error("unknown language {name}")]
    Lang {
        /// The name as given.
        name: String,
        /// Known languages with similar names, best first.
        near: Vec<String>,
    },
}

impl Explain for FilterError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Lang { name, near } => {
                let explanation = Explanation::misspelt(NameKind::Language, name, near);
                let otherwise = "status lists the known languages; without lang all are searched";
                Explanation {
                    hint: explanation.hint.or_for_tools(otherwise),
                    ..explanation
                }
            }
            _ => Explanation::default(),
        }
    }
}

impl FileFilter {
    /// Creates a filter. `paths` are globs, optionally quoted. A glob that starts with `!` excludes files. A folder or
    /// file without wildcards includes everything below it. `langs` are language names.
    pub fn new(paths: &[String], langs: &[String], tests: Tests) -> Result<Self, FilterError> {
        let longest = paths.iter().map(String::len).max().unwrap_or_default();
        let n_bytes = paths.iter().map(String::len).sum();
        if longest > MAX_GLOB_BYTES || n_bytes > MAX_GLOBS_BYTES {
            let n_bytes = if longest > MAX_GLOB_BYTES { longest } else { n_bytes };
            return Err(FilterError::TooLong { n_bytes });
        }
        let (exclude, include): (Vec<&String>, Vec<&String>) = paths.iter().partition(|path| path.starts_with('!'));
        let exclude = exclude.into_iter().map(|path| typed(&path[1..]));
        let include = include.into_iter().map(|path| typed(path));
        let langs = langs
            .iter()
            .map(|name| extract::by_name(name).ok_or_else(|| unknown_lang(name)))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            include: globs(include)?,
            exclude: globs(exclude)?,
            langs,
            tests,
            packages: None,
        })
    }

    /// Accepts only files of the selected packages. `folders` has the folder of each package, with true for the
    /// selected ones; a file belongs to the package with the nearest folder above it.
    pub fn in_packages(self, folders: HashMap<String, bool>) -> Self {
        Self {
            packages: Some(folders),
            ..self
        }
    }

    /// Returns true if the filter accepts every file.
    pub fn is_open(&self) -> bool {
        self.include.is_none()
            && self.exclude.is_none()
            && self.langs.is_empty()
            && self.tests == Tests::Any
            && self.packages.is_none()
    }

    /// Returns true if the filter accepts a file of `view`.
    pub fn passes(&self, view: &View, id: FileId) -> bool {
        self.passes_as(view.file(id).path, || view.lang(id))
    }

    /// Returns true if the filter accepts a path of any revision. The language is determined from the path.
    pub fn passes_path(&self, path: &[u8]) -> bool {
        self.passes_as(path, || extract::lang_of_path(&RepoPath::new(path)))
    }

    fn passes_as(&self, path: &[u8], lang: impl Fn() -> Lang) -> bool {
        let path: &str = &with_placeholders(path);
        let is_selected = |folders: &HashMap<String, bool>| {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let nearest = ancestors(folder).find_map(|folder| folders.get(folder));
            nearest.copied().unwrap_or_default()
        };
        self.packages.as_ref().is_none_or(is_selected)
            && self.include.as_ref().is_none_or(|globs| globs.is_match(path))
            && !self.exclude.as_ref().is_some_and(|globs| globs.is_match(path))
            && (self.langs.is_empty() || self.langs.contains(&lang()))
            && match self.tests {
                Tests::Any => true,
                Tests::No => !is_test_path(path),
                Tests::Only => is_test_path(path),
            }
    }
}

fn unknown_lang(name: &str) -> FilterError {
    FilterError::Lang {
        name: name.to_owned(),
        near: nearest(name, extract::languages().map(|language| language.name)),
    }
}

fn globs<'a>(patterns: impl Iterator<Item = Cow<'a, str>>) -> Result<Option<GlobSet>, FilterError> {
    let mut builder = GlobSetBuilder::new();
    let mut n_globs = 0;
    for pattern in patterns {
        for form in forms(&pattern) {
            let glob = Glob::new(&form).map_err(|source| FilterError::Glob {
                glob: pattern.clone().into_owned(),
                source,
            })?;
            builder.add(glob);
            n_globs += 1;
        }
    }
    if n_globs == 0 {
        return Ok(None);
    }
    let set = builder.build().map_err(|source| FilterError::Glob {
        glob: String::new(),
        source,
    })?;
    Ok(Some(set))
}

/// Returns a pattern, and the pattern for everything below it. A pattern without a slash matches at any depth, as in
/// `.gitignore`.
fn forms(pattern: &str) -> Vec<String> {
    let trimmed = pattern.trim_start_matches("./").trim_end_matches('/');
    if trimmed.is_empty() || trimmed == "." {
        return vec!["**".to_owned()];
    }
    let has_slash = trimmed.contains('/') || pattern.ends_with('/');
    let mut forms = vec![trimmed.to_owned(), format!("{trimmed}/**")];
    if !has_slash {
        forms.extend([format!("**/{trimmed}"), format!("**/{trimmed}/**")]);
    }
    forms
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn matches(patterns: &[&str], path: &str) -> bool {
        globs(patterns.iter().map(|pattern| Cow::from(*pattern)))
            .unwrap()
            .unwrap()
            .is_match(path)
    }

    #[test]
    fn folders_files_and_globs() {
        assert!(matches(&["src"], "src/a/b.rs"));
        assert!(matches(&["./src/"], "src/a.rs"));
        assert!(!matches(&["src/"], "other/src/a.rs"));
        assert!(matches(&["*.rs"], "src/a/b.rs"));
        assert!(matches(&["src/**/b.rs"], "src/a/b.rs"));
        assert!(matches(&["."], "anything"));
    }

    #[test]
    fn patterns_have_a_bounded_length() {
        let filter = |n_patterns: usize, n_bytes: usize| {
            let patterns = vec!["{a,?}".repeat(n_bytes / 5); n_patterns];
            FileFilter::new(&patterns, &[], Tests::Any)
        };
        assert!(filter(8, 1_000).is_ok());
        assert!(matches!(
            filter(1, 60_000),
            Err(FilterError::TooLong { n_bytes: 60_000 })
        ));
        assert!(matches!(filter(9, 1_000), Err(FilterError::TooLong { n_bytes: 9_000 })));
    }

    #[test]
    fn bad_patterns_and_languages_are_named() {
        assert!(matches!(
            FileFilter::new(&["a[".to_owned()], &[], Tests::Any),
            Err(FilterError::Glob { .. })
        ));
        assert!(matches!(
            FileFilter::new(&[], &["klingon".to_owned()], Tests::Any),
            Err(FilterError::Lang { .. })
        ));
    }
}
