//! Finds the headings that links of Markdown name.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::mention::Markup;
use crate::extract::{Options, extract, lang_of_path};
use crate::model::RepoPath;

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

    /// Returns true if the document has a heading or an id with this name. Generators of sites make slightly different
    /// names of headings. The second heading with the same title ends in -1.
    pub(super) fn has(&self, name: &str) -> bool {
        let first = name.trim_end_matches(|c: char| c.is_ascii_digit());
        [name, first].iter().any(|name| self.slugs.contains(&slug(name))) || self.ids.contains(name.as_bytes())
    }
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
