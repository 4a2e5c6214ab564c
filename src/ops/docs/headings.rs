//! Finds the headings that links of Markdown name.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::mention::Markup;
use crate::extract::{Options, extract, lang_of_path};
use crate::model::RepoPath;

/// Matches ids that are written out.
static ID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:\b(?:id|name)=["']|\{ ?#|\[#|\[\[)([^"'}\]\s]+)"#).expect("the pattern is valid")
});

/// Returns true for documents whose headings links can name.
pub(super) fn has_links(path: &RepoPath) -> bool {
    Markup::of(lang_of_path(path)) == Some(Markup::Markdown)
}

/// Returns true if a Markdown document has a heading or an id that a link names. Generators of sites make slightly
/// different names of headings.
pub(super) fn has(document: &[u8], name: &str) -> bool {
    let lang = lang_of_path(&RepoPath::from("a.md"));
    let (wanted, headings) = (slug(name), extract(document, lang, &Options::default()).headings);
    let is_it = |title: &str| {
        let slug = slug(title);
        // The second heading with the same title ends in -1.
        slug == wanted
            || wanted
                .strip_prefix(&slug)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut ids = ID.captures_iter(document).filter_map(|found| found.get(1));
    headings.iter().any(|heading| is_it(&heading.title)) || ids.any(|id| id.as_bytes() == name.as_bytes())
}

fn slug(title: &str) -> String {
    title
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_name_headings_as_sites_do() {
        let text = b"# What's new?\n\n## `foo_bar` & co\n\n<a id=\"here\"></a>\n## What's new?\n";
        for name in ["whats-new", "foo_bar--co", "foo-bar-co", "here", "whats-new-1"] {
            assert!(has(text, name), "{name}");
        }
        assert!(!has(text, "old") && !has(text, "her"));
    }
}
