//! Finds paths and lines in a query, in the forms in which people and tools write them, and the files of the view that
//! they mean.

use std::ops::Range;

use crate::snapshot::{FileId, View};

/// Maximum number of places read from one query.
const MAX_PLACES: usize = 64;
/// Maximum number of files that a path without a line in a sentence can mean.
const MAX_DISTINCT: usize = 2;
/// Maximum number of files that one path without a folder can mean.
const MAX_FILES: usize = 10;

/// A path in a query, and optionally a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypedPlace {
    /// The path with `/` between its components.
    pub(super) path: String,
    /// The line, 1-based.
    pub(super) line: Option<u32>,
    /// The bytes of the query that the place takes up.
    pub(super) range: Range<usize>,
}

/// Returns the texts in a query that have the form of a path, in order.
pub(super) fn typed_places(query: &str) -> Vec<TypedPlace> {
    let mut places = Vec::new();
    let mut at = 0;
    while at < query.len() && places.len() < MAX_PLACES {
        let rest = &query[at..];
        let start = at + (rest.len() - rest.trim_start_matches(is_boundary).len());
        let rest = &query[start..];
        let length = rest.find(is_boundary).unwrap_or(rest.len());
        if length == 0 {
            break;
        }
        at = start + length;
        if let Some(place) = typed_place(query, start..at) {
            at = at.max(place.range.end);
            places.push(place);
        }
    }
    places
}

fn is_boundary(c: char) -> bool {
    c.is_whitespace() || "\"'`()[]{}<>,;|=*".contains(c)
}

/// Reads the token at `range` as a place.
fn typed_place(query: &str, range: Range<usize>) -> Option<TypedPlace> {
    let token = query[range.clone()].trim_end_matches(['.', ':', '!', '?']);
    let token = token
        .strip_suffix(":line")
        .or(token.strip_suffix(":in"))
        .unwrap_or(token);
    let (path, line, end) = match split_line(token) {
        Some((path, line)) => (path, Some(line), range.end),
        None => {
            let (line, length) = line_after(&query[range.start + token.len()..]);
            (token, line, range.start + token.len() + length)
        }
    };
    let path = path.replace('\\', "/");
    // Of an address, the path behind the host; the page of a host names a folder of the repository at its end.
    let (is_address, path) = match path.split_once("://") {
        Some((_, rest)) => (true, rest.split_once('/').map_or("", |(_, path)| path)),
        None => (false, path.as_str()),
    };
    let path = path.split('?').next().unwrap_or_default();
    let path = path.trim_start_matches("./").trim_start_matches('/').to_owned();
    let name = path.rsplit('/').next().unwrap_or_default();
    let has_folder = path.trim_end_matches('/').contains('/');
    let is_path = has_folder || line.is_some() && !name.is_empty() || has_extension(name);
    let is_number =
        !path.contains(char::is_alphanumeric) || name.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
    let is_file = !is_address || has_extension(name);
    (is_path && is_file && !is_number).then_some(TypedPlace {
        path,
        line,
        range: range.start..end,
    })
}

/// Splits `path:12`, `path:12:5`, `path:12-20` and `path#L12`.
fn split_line(token: &str) -> Option<(&str, u32)> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|line| *line > 0);
    if let Some((path, line)) = token.split_once("#L") {
        return Some((path, number(line.split(['-', 'C']).next()?)?));
    }
    let (before, last) = token.rsplit_once(':')?;
    let last = last.split('-').next()?;
    match before.rsplit_once(':') {
        Some((path, line)) if number(line).is_some() && number(last).is_some() => Some((path, number(line)?)),
        _ => Some((before, number(last)?)).filter(|(path, _)| !path.is_empty()),
    }
}

/// Reads the line that follows a path: `(12,5)`, `", line 12`, `:line 12`, ` on line 12`. Also returns the length.
fn line_after(rest: &str) -> (Option<u32>, usize) {
    let digits = |at: usize| {
        let text = &rest[at..];
        let length = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        (text[..length].parse::<u32>().ok().filter(|line| *line > 0), at + length)
    };
    // A version behind a path, as development servers write it: `core.ts?v=1:14`.
    if let Some(version) = rest.strip_prefix('=') {
        let length = version.len() - version.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
        return if version[length..].starts_with(':') {
            digits(length + 2)
        } else {
            (None, 0)
        };
    }
    if rest.starts_with('(') {
        let (line, end) = digits(1);
        let is_closed = rest[end..].starts_with([',', ')', ':']);
        return if is_closed {
            (line, end + rest[end..].find(')').map_or(0, |at| at + 1))
        } else {
            (None, 0)
        };
    }
    let head = rest.len() - rest.trim_start_matches(['"', '\'', '`', ',', ':', ' ']).len();
    let words = &rest[head..];
    let words_length = ["on line ", "at line ", "line "]
        .iter()
        .find(|word| words.starts_with(**word))
        .map(|word| word.len());
    match words_length {
        Some(length) if head > 0 => digits(head + length),
        _ => (None, 0),
    }
}

/// Returns true if a name ends with a dot and letters, as those of files do.
fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        (1..=10).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && extension.bytes().any(|byte| byte.is_ascii_alphabetic())
            && (!stem.is_empty() || extension.len() > 1)
    })
}

/// The files of a view that a path means, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meant {
    pub(super) files: Vec<FileId>,
    /// True if all components of the path are those of the files, not only the last ones.
    pub(super) is_whole: bool,
}

/// Finds the files that the paths mean. `names` are names around each path, for example of a package: among equally
/// good files, those below folders with such names come first.
///
/// A path can begin in a folder of another machine. Then its last components decide, at least two of them or all of the
/// file's path. The last component can lack its extension if a folder is given.
pub(super) fn files_meant(view: &View, places: &[TypedPlace], names: &[Vec<String>]) -> Vec<Meant> {
    let mut found: Vec<Vec<(Fit, FileId)>> = vec![Vec::new(); places.len()];
    let wanted: Vec<Vec<&[u8]>> = places.iter().map(|place| components(place.path.as_bytes())).collect();
    for (id, file) in view.files() {
        for (at, place) in wanted.iter().enumerate() {
            let names = names.get(at).map_or(&[][..], Vec::as_slice);
            if let Some(fit) = Fit::of(place, file.path, names) {
                found[at].push((fit, id));
            }
        }
    }
    found.into_iter().map(best_fitting).collect()
}

/// Returns the files whose names without an extension consist of these words: `rbenv version-origin`, `core config`.
pub(super) fn files_of_words(view: &View, query: &str) -> Meant {
    let wanted: Vec<u8> = normal_bytes(query.as_bytes()).collect();
    let is_named = |path: &[u8]| {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let stem = name
            .iter()
            .position(|byte| *byte == b'.')
            .filter(|at| *at > 0)
            .map_or(name, |at| &name[..at]);
        normal_bytes(stem).eq(wanted.iter().copied())
    };
    let files = view.files().filter(|(_, file)| is_named(file.path)).map(|(id, _)| id);
    Meant {
        files: files.take(MAX_FILES).collect(),
        is_whole: true,
    }
}

/// Returns the letters and digits of a name in lower case.
fn normal_bytes(name: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let is_kept = |byte: &&u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    name.iter().filter(is_kept).map(u8::to_ascii_lowercase)
}

impl Meant {
    /// True if a name without folder and line in a sentence is that of a file and not, for example, of a product.
    pub(super) fn is_distinct(&self, view: &View, name: &str) -> bool {
        let is_same = |file: &FileId| view.file(*file).path.ends_with(name.as_bytes());
        self.files.len() <= MAX_DISTINCT && self.files.iter().all(is_same)
    }
}

fn best_fitting(mut found: Vec<(Fit, FileId)>) -> Meant {
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let Some(&(best, _)) = found.first() else {
        return Meant::default();
    };
    let is_equal = |(fit, _): &&(Fit, FileId)| {
        (fit.is_whole, fit.n_equal, fit.has_extension) == (best.is_whole, best.n_equal, best.has_extension)
    };
    Meant {
        files: found
            .iter()
            .filter(is_equal)
            .take(MAX_FILES)
            .map(|(_, id)| *id)
            .collect(),
        is_whole: best.is_whole,
    }
}

/// How well a file's path fits a typed one. Greater is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    is_whole: bool,
    n_equal: usize,
    has_extension: bool,
    n_names: usize,
    is_same_case: bool,
    /// Fewer other folders are better.
    shallowness: std::cmp::Reverse<usize>,
}

impl Fit {
    fn of(wanted: &[&[u8]], path: &[u8], names: &[String]) -> Option<Self> {
        let (last, folders) = wanted.split_last()?;
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        let stem = name
            .iter()
            .position(|byte| *byte == b'.')
            .filter(|at| *at > 0)
            .map_or(name, |at| &name[..at]);
        let has_extension = name.eq_ignore_ascii_case(last);
        if !has_extension && (folders.is_empty() || !stem.eq_ignore_ascii_case(last)) {
            return None;
        }
        let known = components(path);
        let above = known[..known.len() - 1].iter().rev();
        let n_equal = 1 + folders
            .iter()
            .rev()
            .zip(above)
            .take_while(|(a, b)| a.eq_ignore_ascii_case(b))
            .count();
        let is_whole = n_equal == wanted.len();
        // A module before a name may be no folder: `Alamofire/Session.swift`.
        let is_module = wanted.len() == 2 && n_equal == 1;
        let is_meant = is_whole || has_extension && (n_equal >= 2 || n_equal == known.len() || is_module);
        is_meant.then(|| Self {
            is_whole,
            n_equal,
            has_extension,
            n_names: known[..known.len() - 1]
                .iter()
                .filter(|folder| names.iter().any(|name| name.as_bytes() == **folder))
                .count(),
            is_same_case: wanted[wanted.len() - n_equal..] == known[known.len() - n_equal..],
            shallowness: std::cmp::Reverse(known.len()),
        })
    }
}

fn components(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Vec<(String, Option<u32>)> {
        typed_places(query)
            .into_iter()
            .map(|place| (place.path, place.line))
            .collect()
    }

    #[test]
    fn places_are_read_in_all_forms() {
        let at = |path: &str, line| vec![(path.to_owned(), line)];
        for (query, path, line) in [
            ("src/pkg/core.py", "src/pkg/core.py", None),
            ("core.py:14", "core.py", Some(14)),
            ("core.py:14:3", "core.py", Some(14)),
            ("core.py:14-20", "core.py", Some(14)),
            ("what does ./src/core.py do?", "src/core.py", None),
            ("see core.py.", "core.py", None),
            ("File \"/srv/a/core.py\", line 14, in run", "srv/a/core.py", Some(14)),
            ("core.ts(14,5): error TS2304", "core.ts", Some(14)),
            ("core.py on line 14", "core.py", Some(14)),
            (r"C:\a\b\C.cs:line 14", "C:/a/b/C.cs", Some(14)),
            ("at Object.run (/app/lib/core.js:14:9)", "app/lib/core.js", Some(14)),
            ("a.b.C.m(C.java:696)", "C.java", Some(696)),
            ("lib/core.rb:14:in `run'", "lib/core.rb", Some(14)),
            ("lib/core.rb:14:in 'A#run'", "lib/core.rb", Some(14)),
            ("src/core.py#L14-L20", "src/core.py", Some(14)),
            ("Makefile:14", "Makefile", Some(14)),
            ("#0 /a/b.php(14): A->m()", "a/b.php", Some(14)),
            (
                "see https://example.org/o/r/blob/main/src/core.py#L14",
                "o/r/blob/main/src/core.py",
                Some(14),
            ),
            ("http://localhost:5173/src/core.ts?v=1:14:2", "src/core.ts", Some(14)),
        ] {
            let read: Vec<_> = read(query).into_iter().filter(|(found, _)| found == path).collect();
            assert_eq!(read, at(path, line), "{query}");
        }
    }

    #[test]
    fn prose_has_no_places() {
        for query in [
            "where is it? There.",
            "version 1.2.3",
            "https://example.org/a/b",
            "10:30",
            "a: 5",
            "… :1",
            "::1",
        ] {
            assert_eq!(read(query), [], "{query}");
        }
    }

    #[test]
    fn the_last_components_of_a_foreign_path_decide() {
        let fit = |wanted: &str, path: &str| {
            Fit::of(&components(wanted.as_bytes()), path.as_bytes(), &[]).map(|fit| (fit.is_whole, fit.n_equal))
        };
        assert_eq!(fit("src/a.py", "src/a.py"), Some((true, 2)));
        assert_eq!(fit("a.py", "x/src/a.py"), Some((true, 1)));
        assert_eq!(fit("/srv/me/p/src/a.py", "src/a.py"), Some((false, 2)));
        assert_eq!(fit("/srv/me/p/setup.py", "setup.py"), Some((false, 1)));
        assert_eq!(fit("/usr/lib/json/decoder.py", "src/decoder.py"), None);
        assert_eq!(fit("src/pkg/core", "src/pkg/core.py"), Some((true, 3)));
        assert_eq!(fit("core", "src/pkg/core.py"), None);
    }
}
