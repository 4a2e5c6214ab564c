//! Finds the headings that links of Markdown name.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::bytes::Regex;
use unicode_normalization::UnicodeNormalization;

use super::mention::Markup;
use crate::artifact::extract;
use crate::extract::{Options, lang_of_path};
use crate::history::PathChange;
use crate::model::RepoPath;
use crate::session::Result;

/// Limit on the number of versions of a document in which a heading is searched.
const MAX_VERSIONS: usize = 100;

/// Matches ids that are written out: in HTML, in attributes of headings, and as targets of MyST.
static ID: LazyLock<Regex> = LazyLock::new(|| {
    let attributes = r#"(?:\b(?:id|name)\s*=\s*["']?|\{:?[^}\n#]*#|\[#|\[\[)([^"'>}\]\s]+)"#;
    let targets = r"^\(([^()\s]+)\)=\s*$";
    Regex::new(&format!("(?im){attributes}|{targets}")).expect("the pattern is valid")
});

/// Matches tags, entities and short names of emojis, which are no part of most names.
static MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("(?i)</?[a-z][^>]*>|&[a-z]+;|:[a-z0-9_+-]+:").expect("the pattern is valid"));

/// Letters that docutils replaces, apart from accents. Source: `docutils.nodes.make_id`.
const REPLACED: [(char, &str); 9] = [
    ('ß', "sz"),
    ('æ', "ae"),
    ('œ', "oe"),
    ('ø', "o"),
    ('đ', "d"),
    ('ħ', "h"),
    ('ı', "i"),
    ('ł', "l"),
    ('ŧ', "t"),
];

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
        // A tag is no part of a name, but `Vec<T>` is.
        let titles = headings.iter().flat_map(|heading| {
            let title = heading.title.as_bytes();
            [title.to_vec(), MARK.replace_all(title, &b""[..]).into_owned()]
        });
        let titles = titles.map(|title| String::from_utf8_lossy(&title).into_owned());
        let ids = ID
            .captures_iter(document)
            .filter_map(|found| found.get(1).or_else(|| found.get(2)));
        Self {
            slugs: titles.flat_map(|title| slugs_of_title(&title)).collect(),
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

/// Returns the slugs of the names that sites make of a title: GitHub; VitePress, without accents; Python-Markdown, with
/// ASCII letters only; docutils, with other letters for some and without digits in front.
fn slugs_of_title(title: &str) -> [String; 4] {
    let in_ascii = |letters: &mut dyn Iterator<Item = char>| slug(&letters.filter(char::is_ascii).collect::<String>());
    let mut replaced = title.to_lowercase();
    for (letter, letters) in REPLACED {
        replaced = replaced.replace(letter, letters);
    }
    let of_docutils = in_ascii(&mut replaced.nfkd());
    let of_docutils = of_docutils.trim_start_matches(|c: char| c.is_ascii_digit());
    [
        slug(title),
        slug(&title.nfkd().collect::<String>()),
        in_ascii(&mut title.nfkd()),
        // Without a letter, the name is a number after `id`.
        if of_docutils.is_empty() { "id" } else { of_docutils }.to_owned(),
    ]
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

    #[test]
    fn names_of_any_generator_are_right() {
        let right = |title: &str, name: &str| Headings::of(format!("# {title}\n").as_bytes()).has(name);
        for (title, names) in [
            // GitHub; VitePress; Python-Markdown; docutils.
            ("Über Ärger", ["über-ärger", "uber-arger", "uber-arger", "uber-arger"]),
            (
                "Große Straße",
                ["große-straße", "große-straße", "groe-strae", "grosze-strasze"],
            ),
            ("2.1 Files", ["21-files", "_2-1-files", "21-files", "files"]),
            ("Łódź & co", ["łódź--co", "łodz-co", "odz-co", "lodz-co"]),
            ("日本語", ["日本語", "日本語", "_1", "id1"]),
            ("A &amp; :tada: b", ["a---b", "a-b", "a-b", "a-b"]),
        ] {
            for name in names {
                assert!(right(title, name), "{title}: {name}");
            }
        }
        for (title, wrong) in [
            ("Über", "ueber"),
            ("2.1 Files", "les"),
            ("Straße", "strase"),
            ("Files", "id1"),
        ] {
            assert!(!right(title, wrong), "{title}: {wrong}");
        }
    }

    #[test]
    fn ids_are_written_in_many_ways() {
        let text = b"(of-myst)=\n# A {#braces}\n\n## B { .wide #spaced }\n\n## C {: #colon }\n\n\
                     <a name=unquoted></a> <A ID = 'upper'>\n\n(no) (nor)=x\n";
        let headings = Headings::of(text);
        for name in ["of-myst", "braces", "spaced", "colon", "unquoted", "upper"] {
            assert!(headings.has(name), "{name}");
        }
        assert!(!headings.has("no") && !headings.has("nor") && !headings.has("wide"));
    }
}
