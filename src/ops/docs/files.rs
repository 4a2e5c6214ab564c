//! Finds what became of files and directories that documents mention.

use std::collections::{BTreeMap, HashSet};

use super::super::paths::below;
use super::super::target::Targets;
use crate::model::RepoPath;
use crate::session::Result;

/// Limit on the number of renames through which a file is followed.
const MAX_RENAMES: usize = 64;
/// Limit on the number of files by which a directory is followed.
const MAX_FILES: usize = 1_000;
/// File extensions that references to documents omit.
const OMITTED: [&str; 3] = ["", ".rst", ".md"];

/// Files and their directories.
pub(super) struct Paths {
    all: HashSet<String>,
    by_name: BTreeMap<String, Vec<String>>,
}

impl Paths {
    pub(super) fn new<T: AsRef<str>>(files: impl Iterator<Item = T>) -> Self {
        let mut all = HashSet::new();
        for file in files {
            let mut path = file.as_ref();
            while all.insert(path.to_owned()) {
                match path.rsplit_once('/') {
                    Some((folder, _)) => path = folder,
                    None => break,
                }
            }
        }
        let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in &all {
            let name = path.rsplit('/').next().unwrap_or(path);
            by_name.entry(name.to_owned()).or_default().push(path.clone());
        }
        Self { all, by_name }
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.all.contains(path)
    }

    /// Returns the paths in other directories that end in `path`.
    pub(super) fn within(&self, path: &str) -> impl Iterator<Item = &str> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let end = format!("/{path}");
        let paths = self.by_name.get(name).into_iter().flatten();
        paths.map(String::as_str).filter(move |path| path.ends_with(&end))
    }
}

/// The present and past files of a revision.
pub(super) struct Files<'a> {
    targets: &'a Targets<'a>,
    present: &'a Paths,
    /// The files that existed in any commit.
    past: Paths,
    /// The names of files and directories of `past` without extensions.
    stems: HashSet<String>,
}

/// How a document writes a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// After this directory, which may be that of the root. `../` leaves it.
    Below(String),
    /// After a directory that is not one of the above.
    Within(String),
}

/// A file or directory that does not exist any more.
pub(super) struct Gone {
    pub(super) form: Form,
    /// The commit that deleted or renamed it; `None` for an uncommitted change.
    pub(super) commit: Option<u32>,
    /// Its present path.
    pub(super) now: Option<RepoPath>,
}

impl<'a> Files<'a> {
    pub(super) fn new(targets: &'a Targets<'a>, present: &'a Paths) -> Self {
        let past = Paths::new(targets.opened.history.paths_from(b"").iter().map(RepoPath::to_text));
        let stems = past.by_name.keys().filter_map(|name| name.split('.').next());
        Self {
            stems: stems.map(str::to_owned).collect(),
            targets,
            present,
            past,
        }
    }

    /// Returns true if a directory or file, without its extension, has or had this name.
    pub(super) fn has_part(&self, name: &str) -> bool {
        self.past.by_name.contains_key(name) || self.stems.contains(name)
    }

    /// Returns what became of the file or directory that a document mentions as `text`. `None` if no commit had it.
    pub(super) fn gone(&self, document: &RepoPath, text: &str, is_link: bool) -> Result<Option<Gone>> {
        let bare = bare(text);
        let within: Vec<&str> = self.past.within(bare).take(2).collect();
        let past = written(document, bare, is_link).find(|(_, path)| self.past.has(path));
        let (form, path) = match (past, within.as_slice()) {
            (Some(past), _) => past,
            (None, [path]) if !is_link => {
                let folder = path.strip_suffix(bare).unwrap_or_default();
                // Deeper in the tree, it may as well be a file of the reader.
                if folder.matches('/').count() > 1 && !document.as_bytes().starts_with(folder.as_bytes()) {
                    return Ok(None);
                }
                (Form::Within(folder.to_owned()), (*path).to_owned())
            }
            _ => return Ok(None),
        };
        let became = self.of_file(&RepoPath::from(path.as_str()))?;
        let became = match became {
            Some(became) => Some(became),
            None => self.of_folder(&path)?,
        };
        Ok(became.map(|(commit, now)| Gone { form, commit, now }))
    }

    /// Returns the commit that took a file away, and the present path.
    fn of_file(&self, path: &RepoPath) -> Result<Option<(Option<u32>, Option<RepoPath>)>> {
        let (mut at, mut first) = (path.clone(), None);
        for _ in 0..MAX_RENAMES {
            let Some((commit, next)) = self.step(&at)? else { break };
            let first = *first.get_or_insert(commit);
            match next {
                Some(next) if self.present.has(&next.to_text()) => return Ok(Some((first, Some(next)))),
                Some(next) => at = next,
                None => return Ok(Some((first, None))),
            }
        }
        Ok(first.map(|commit| (commit, None)))
    }

    /// Returns the commit that deleted or renamed a file last, and the path that it gave to it.
    fn step(&self, path: &RepoPath) -> Result<Option<(Option<u32>, Option<RepoPath>)>> {
        let opened = self.targets.opened;
        let mut own = self.targets.uncommitted.iter();
        if own.any(|change| change.path == *path && change.new.is_none()) {
            let mut all = self.targets.uncommitted.iter();
            let next = all.find(|change| change.origin.as_ref() == Some(path));
            return Ok(Some((None, next.map(|change| change.path.clone()))));
        }
        let changes = opened.history.changes_of(path.as_bytes())?;
        let mut gone = changes.iter().rev().filter(|change| change.new.is_none());
        let Some(gone) = gone.find(|change| opened.reached.has(change.commit)) else {
            return Ok(None);
        };
        let is_next =
            |change: &crate::history::Change| change.origin.as_ref().is_some_and(|origin| origin.path == *path);
        let next = opened.history.changes_at(gone.commit)?.into_iter().find(is_next);
        Ok(Some((Some(gone.commit), next.map(|change| change.path))))
    }

    /// Returns the commit that took the last file of a directory away, and the directory where all went that exist.
    fn of_folder(&self, folder: &str) -> Result<Option<(Option<u32>, Option<RepoPath>)>> {
        let start = format!("{folder}/");
        let (mut last, mut now) = (None, HashSet::new());
        for path in self
            .targets
            .opened
            .history
            .paths_from(start.as_bytes())
            .iter()
            .take(MAX_FILES)
        {
            let Some((commit, next)) = self.of_file(path)? else {
                continue;
            };
            last = last.max(Some(commit.unwrap_or(u32::MAX)));
            let path = path.to_text();
            let inner = path.strip_prefix(folder).unwrap_or_default();
            now.extend(next.map(|next| next.to_text().strip_suffix(inner).map(str::to_owned)));
        }
        let now = now.iter().next().filter(|_| now.len() == 1).cloned().flatten();
        let commit = |last: u32| (last != u32::MAX).then_some(last);
        Ok(last.map(|last| (commit(last), now.map(|now| RepoPath::from(now.as_str())))))
    }
}

impl Form {
    /// Returns the present path in the form of the text that it replaces.
    pub(super) fn text_for(&self, now: &RepoPath, text: &str) -> Option<String> {
        let now = now.to_text();
        let mut written = match self {
            Self::Below(folder) => relative(folder, &now),
            Self::Within(folder) => now.strip_prefix(folder.as_str())?.to_owned(),
        };
        let ends_alike = |ending: &&&str| written.ends_with(**ending) && !text.ends_with(**ending);
        let is_whole = text.rsplit('/').next().is_some_and(|name| name.contains('.'));
        if let Some(ending) = OMITTED[1..].iter().find(ends_alike).filter(|_| !is_whole) {
            written.truncate(written.len() - ending.len());
        }
        if text.starts_with("./") {
            written.insert_str(0, "./");
        }
        if text.ends_with('/') {
            written.push('/');
        }
        Some(written)
    }
}

/// Returns a mentioned path without the marks of a directory.
pub(super) fn bare(text: &str) -> &str {
    text.trim_start_matches("./").trim_end_matches('/')
}

/// Returns the paths that a document can mean with `bare`.
pub(super) fn written(document: &RepoPath, bare: &str, is_link: bool) -> impl Iterator<Item = (Form, String)> {
    let endings = if is_link { OMITTED.as_slice() } else { &OMITTED[..1] };
    let folders = [folder_of(document), String::new()];
    endings.iter().flat_map(move |ending| {
        let named = format!("{bare}{ending}");
        let paths = folders.clone().into_iter();
        paths.filter_map(move |folder| Some((Form::Below(folder.clone()), below(&folder, &named)?)))
    })
}

pub(super) fn folder_of(document: &RepoPath) -> String {
    let path = document.to_text();
    path.rsplit_once('/')
        .map_or_else(String::new, |(folder, _)| folder.to_owned())
}

/// Returns a path relative to a directory.
fn relative(folder: &str, path: &str) -> String {
    let from: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let to: Vec<&str> = path.split('/').collect();
    let n_common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", from.len() - n_common);
    up.chain(to[n_common..].iter().copied()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_their_form() {
        let below_docs = Form::Below("docs/a".to_owned());
        let text_for = |form: &Form, now: &str, text| form.text_for(&now.into(), text);
        assert_eq!(
            text_for(&below_docs, "src/b.rs", "../../x.rs").as_deref(),
            Some("../../src/b.rs")
        );
        assert_eq!(
            text_for(&below_docs, "docs/a/c.md", "./b.md").as_deref(),
            Some("./c.md")
        );
        assert_eq!(text_for(&below_docs, "docs/a/new.rst", "old").as_deref(), Some("new"));
        assert_eq!(
            text_for(&Form::Below(String::new()), "lib/x", "src/x/").as_deref(),
            Some("lib/x/")
        );
        let within = Form::Within("src/".to_owned());
        assert_eq!(text_for(&within, "src/b/c.rs", "a/c.rs").as_deref(), Some("b/c.rs"));
        assert_eq!(text_for(&within, "lib/c.rs", "a/c.rs"), None);
    }
}
