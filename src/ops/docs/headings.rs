//! Finds the headings that links of Markdown name.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::mention::Markup;
use crate::extract::{Options, extract, lang_of_path};
use crate::history::PathChange;
use crate::model::RepoPath;
use crate::session::Result;

/// Limit on the number of versions of a document in which a heading is searched.
const MAX_VERSIONS: usize = 100;

/// Matches ids that are written out.
static ID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:\b(?:id|name)=["']|\{ ?#|\[#|\[\[)([^"'}\]\s]+)"#).expect("the pattern is valid")
});

static TAG: LazyLock<Regex> = LazyLock::new(|| Regex::new("</?[a-z][^>]*>").expect("the pattern is valid"));

/// Returns true for documents whose headings links can name.
pub(super) fn has_links(path: &RepoPath) -> bool {
    Markup::of(lang_of_path(path)) == Some(Markup::Markdown)
}

/// The names by which links can lead to a place in a Markdown document.
pub(super) struct Headings {
    slugs: HashSet<String>,
    ids: HashSet<Vec<u8>>,
}

/// The names that earlier versions of a document had, read as far as questions need.
pub(super) struct PastHeadings {
    /// The changes of the document, oldest first.
    changes: Vec<PathChange>,
    /// The number of the newest of them that are read.
    n_read: usize,
    /// The number of the change, counted from the newest, that has a name last.
    slugs: HashMap<String, usize>,
    ids: HashMap<Vec<u8>, usize>,
}

impl PastHeadings {
    pub(super) fn new(changes: Vec<PathChange>) -> Self {
        Self {
            changes,
            n_read: 0,
            slugs: HashMap::new(),
            ids: HashMap::new(),
        }
    }

    /// Returns the commit after the last version that has a name; `Some(None)` if it is not committed, and `None` if no
    /// version has the name. `content` returns that of a version.
    pub(super) fn last_commit_after(
        &mut self,
        name: &str,
        content: &dyn Fn(&PathChange) -> Result<Option<Vec<u8>>>,
    ) -> Result<Option<Option<u32>>> {
        let newest_first = |at: usize| &self.changes[self.changes.len() - 1 - at];
        loop {
            let known = slugs(name).into_iter().map(|slug| self.slugs.get(&slug));
            let known = known.chain([self.ids.get(name.as_bytes())]).flatten().min();
            if let Some(last) = known {
                return Ok(Some(last.checked_sub(1).map(|after| newest_first(after).commit)));
            }
            if self.n_read >= self.changes.len().min(MAX_VERSIONS) {
                return Ok(None);
            }
            if let Some(content) = content(newest_first(self.n_read))? {
                let headings = Headings::of(&content);
                for slug in headings.slugs {
                    self.slugs.entry(slug).or_insert(self.n_read);
                }
                for id in headings.ids {
                    self.ids.entry(id).or_insert(self.n_read);
                }
            }
            self.n_read += 1;
        }
    }
}

impl Headings {
    pub(super) fn of(document: &[u8]) -> Self {
        let lang = lang_of_path(&RepoPath::from("a.md"));
        let headings = extract(document, lang, &Options::default()).headings;
        // HTML is no part of a name, but `Vec<T>` is.
        let titles = headings.iter().flat_map(|heading| {
            let title = heading.title.as_bytes();
            [title.to_vec(), TAG.replace_all(title, &b""[..]).into_owned()]
        });
        let titles = titles.map(|title| String::from_utf8_lossy(&title).into_owned());
        let ids = ID.captures_iter(document).filter_map(|found| found.get(1));
        Self {
            slugs: titles.map(|title| slug(&title)).collect(),
            ids: ids.map(|id| id.as_bytes().to_vec()).collect(),
        }
    }

    /// Returns true if the document has a heading or an id with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        slugs(name).iter().any(|slug| self.slugs.contains(slug)) || self.ids.contains(name.as_bytes())
    }
}

/// Returns the slugs of headings that a link with this name can mean. Generators of sites make slightly different names
/// of headings. The second heading with the same title ends in -1.
fn slugs(name: &str) -> [String; 2] {
    [name, name.trim_end_matches(|c: char| c.is_ascii_digit())].map(slug)
}

fn slug(title: &str) -> String {
    let letters = title.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_name_headings_as_sites_do() {
        let text = b"# What's new?\n\n## `foo_bar` & co\n\n## <a id=\"here\"></a> What now?\n\n## `Vec<t>`\n\n## What's new?\n";
        let headings = Headings::of(text);
        for name in [
            "whats-new",
            "foo_bar--co",
            "foo-bar-co",
            "here",
            "what-now",
            "vect",
            "whats-new-1",
        ] {
            assert!(headings.has(name), "{name}");
        }
        assert!(!headings.has("old") && !headings.has("her"));
    }
}
