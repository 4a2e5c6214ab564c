//! What the text of a call or mark says about a route.

use std::collections::{BTreeSet, HashMap};

/// Maximum size of the arguments of a call that are read.
const MAX_ARGUMENTS: usize = 2 << 10;
/// Maximum length of a path with what is in front of it.
const MAX_PATH: usize = 512;
/// Names of functions, decorators and annotations for one method of HTTP. The method is the name in upper case, without
/// `Http`, `Map` and `Mapping` around it.
pub(super) const VERBS: &[&str] = &["get", "post", "put", "patch", "delete", "head", "options"];
/// Names for any method, or for those in the arguments.
const ANY: &[&str] = &[
    "all",
    "any",
    "route",
    "Route",
    "api_route",
    "add_url_rule",
    "handle",
    "Handle",
    "HandleFunc",
    "handleFunc",
    "Any",
    "All",
    "Path",
    "RequestMapping",
    "Map",
    "websocket",
];
/// Names that declare routes only in files that list them.
pub(super) const IN_LISTS: &[&str] = &["path", "re_path", "url", "match", "root", "resources", "resource"];

/// Returns the definition that a string such as `users#show` or `UserController@show` names.
pub(super) fn action(text: &str) -> Option<String> {
    let (of, name) = text.split_once(['#', '@'])?;
    let is_name = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '/' | '\\'))
    };
    if !is_name(of) || !is_name(name) {
        return None;
    }
    let last = of.rsplit(['/', '\\']).next().unwrap_or(of);
    if text.contains('@') {
        return Some(format!("{last}.{name}"));
    }
    let words = last.split('_').map(|word| {
        let mut letters = word.chars();
        letters
            .next()
            .map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    });
    Some(format!("{}Controller.{name}", words.collect::<String>()))
}

pub(super) fn is_named_like_a_route(name: &str) -> bool {
    let is_listed = |names: &[&str]| names.contains(&name);
    is_verb(name) || is_listed(ANY) || is_listed(IN_LISTS)
}

pub(super) fn is_verb(name: &str) -> bool {
    let bare = bare(name);
    VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(bare))
}

/// Returns the name without what frameworks add to the method.
fn bare(name: &str) -> &str {
    let name = name
        .strip_prefix("Http")
        .or_else(|| name.strip_prefix("Map"))
        .unwrap_or(name);
    name.strip_suffix("Mapping").unwrap_or(name)
}

pub(super) fn method_of(name: &str) -> String {
    if is_verb(name) {
        bare(name).to_uppercase()
    } else {
        "ANY".to_owned()
    }
}

/// Returns the methods that arguments such as `methods=["GET", "POST"]` or `method = RequestMethod.POST` name.
pub(super) fn methods(method: String, arguments: &[u8]) -> Vec<String> {
    let at = memchr::memmem::find(arguments, b"method").filter(|_| method == "ANY");
    let Some(at) = at else { return vec![method] };
    let words = arguments[at..].split(|byte| !byte.is_ascii_uppercase());
    let is_method = |word: &&[u8]| VERBS.iter().any(|verb| verb.as_bytes().eq_ignore_ascii_case(word));
    let named: BTreeSet<&[u8]> = words.filter(is_method).collect();
    if named.is_empty() {
        vec![method]
    } else {
        let text = |word| String::from_utf8_lossy(word).into_owned();
        named.into_iter().map(text).collect()
    }
}

/// Returns the text of the arguments after a name: to the closing parenthesis and a block behind it, or else to the end
/// of the line.
pub(super) fn arguments(bytes: &[u8], from: usize) -> &[u8] {
    let rest = &bytes[from.min(bytes.len())..bytes.len().min(from + MAX_ARGUMENTS)];
    let start = rest.iter().position(|byte| *byte != b' ').unwrap_or(0);
    if rest.get(start) != Some(&b'(') {
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b']'))
            .unwrap_or(rest.len());
        let is_block = rest[..end].trim_ascii_end().ends_with(b" do");
        return &rest[..if is_block { (end + 1).min(rest.len()) } else { end }];
    }
    let (mut depth, mut quote) = (0usize, None);
    for (at, byte) in rest.iter().enumerate().skip(start) {
        match (quote, byte) {
            (Some(open), byte) if open == byte && rest[at - 1] != b'\\' => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'' | b'`') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') if depth == 1 => {
                let block = rest[at + 1..].starts_with(b" {") || rest[at + 1..].starts_with(b" do");
                return &rest[start + 1..if block { (at + 5).min(rest.len()) } else { at }];
            }
            (None, b')') => depth -= 1,
            _ => {}
        }
    }
    &rest[start + 1..]
}

/// Returns the strings in a text, with their positions.
pub(super) fn strings(text: &[u8]) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].iter().position(|byte| matches!(byte, b'"' | b'\'' | b'`')) {
        let (open, from) = (text[at + start], at + start + 1);
        let Some(length) = text[from..].iter().position(|byte| *byte == open || *byte == b'\n') else {
            break;
        };
        if text[from + length] == open {
            found.extend(
                std::str::from_utf8(&text[from..from + length])
                    .ok()
                    .map(|text| (from, text)),
            );
        }
        at = from + length + 1;
    }
    found
}

/// Returns the method, the path that is the first argument, or the second after a method, and the rest of the arguments.
pub(super) fn first_path(arguments: &[u8], method: String) -> Option<(String, &str, &[u8])> {
    let is_method = |text: &str| VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(text));
    let first = |part: &[u8]| {
        let strings = strings(&part[..part.len().min(MAX_PATH)]);
        let (start, text) = strings.first().map(|(start, text)| (*start, text.len()))?;
        // Only a prefix such as `r` may come before it.
        let before = part[..start - 1].trim_ascii();
        let is_first = before.len() <= 1 || before.first() == Some(&b',') && before[1..].trim_ascii().len() <= 1;
        is_first.then_some((start, text))
    };
    let split = |part: &'_ [u8]| first(part).map(|(start, length)| (start, start + length));
    let (start, end) = split(arguments)?;
    let text = std::str::from_utf8(&arguments[start..end]).ok()?;
    let rest = &arguments[(end + 1).min(arguments.len())..];
    if is_method(text) {
        let (start, end) = split(rest)?;
        let path = std::str::from_utf8(&rest[start..end]).ok()?;
        return Some((text.to_uppercase(), path, &rest[(end + 1).min(rest.len())..]));
    }
    match text.split_once(' ') {
        // Patterns of Go begin with the method.
        Some((method, path)) if is_method(method) => Some((method.to_owned(), path, rest)),
        _ => Some((method, text, rest)),
    }
}

/// Returns the paths that begin those of routers, by the variables to which a file assigns the routers:
/// `router = APIRouter(prefix="/items")`, `v1 := r.Group("/v1")`.
pub(super) fn prefixes(bytes: &[u8]) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| line.contains(&b'/')) {
        let text = String::from_utf8_lossy(line);
        let Some((name, value)) = text.split_once('=') else {
            continue;
        };
        let mark = ["prefix=", "prefix =", "prefix:", "Group("]
            .into_iter()
            .find_map(|mark| value.find(mark).map(|at| at + mark.len()));
        let name = name
            .trim()
            .trim_end_matches(':')
            .trim_end()
            .rsplit(' ')
            .next()
            .unwrap_or_default();
        if let Some((_, prefix)) = mark.and_then(|at| strings(&value.as_bytes()[at..]).first().copied()) {
            found.insert(name.to_owned(), prefix.to_owned());
        }
    }
    found
}

pub(super) fn joined(prefix: &str, route: &str) -> String {
    let parts = [prefix, route]
        .into_iter()
        .map(|part| part.trim_matches('/'))
        .filter(|part| !part.is_empty());
    let path = format!("/{}", parts.collect::<Vec<_>>().join("/"));
    if route.len() > 1 && route.ends_with('/') {
        path + "/"
    } else {
        path
    }
}

/// Returns true if a requested path can be one of a route, whose start can be missing.
pub(super) fn fits(route: &str, requested: &str) -> bool {
    let requested = requested
        .split_once("://")
        .map_or(requested, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    let requested = requested.split(['?', '#']).next().unwrap_or_default();
    let segments = |path| <str>::rsplit(path, '/').filter(|part: &&str| !part.is_empty());
    let is_open = |part: &str| part.starts_with([':', '<', '[', '*', '$', '(']) || part.contains('{');
    let mut theirs = segments(requested);
    let mut has_name = false;
    for part in segments(route) {
        match theirs.next() {
            Some(other) if part == other || is_open(part) || is_open(other) => has_name |= !is_open(part),
            _ => return false,
        }
    }
    has_name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fit_routes() {
        for (route, requested, is_fit) in [
            ("/users/:id", "/users/4", true),
            ("/users/{id}", "/api/users/${id}?x=1", true),
            ("/users/<int:id>", "https://a.example/users/4", true),
            ("/users", "/users/4", false),
            ("/users/:id", "/orders/4", false),
            ("/:id", "/orders", false),
        ] {
            assert_eq!(fits(route, requested), is_fit, "{route} {requested}");
        }
    }

    #[test]
    fn arguments_end_with_the_call() {
        for (text, found) in [
            ("(\"/a)\", f(x), g) + 1", "\"/a)\", f(x), g"),
            (" '/a', to: 'b#c'\nnext", " '/a', to: 'b#c'"),
            ("(\"/a\") { call }", "\"/a\") { c"),
            ("(\"/a\", ", "\"/a\", "),
        ] {
            assert_eq!(String::from_utf8_lossy(arguments(text.as_bytes(), 0)), found);
        }
    }

    #[test]
    fn actions_name_methods() {
        assert_eq!(
            action("admin/user_groups#show").as_deref(),
            Some("UserGroupsController.show")
        );
        assert_eq!(
            action("App\\UserController@show").as_deref(),
            Some("UserController.show")
        );
        assert_eq!(action("#top"), None);
    }
}
