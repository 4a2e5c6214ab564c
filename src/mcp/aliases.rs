//! Renames arguments that have other names in the tools which agents know, before they are checked.

use rmcp::model::JsonObject;
use serde_json::Value;

use super::arguments::{Kind, Parameter};

/// Other names of parameters: the names, the tools that accept them (all, if none is listed), and the parameter. A name
/// that is itself a parameter of the tool keeps its meaning. The first entry that applies counts.
const ALIASES: &[(&[&str], &[&str], &str)] = &[
    (&["level"], &["diff"], "by"),
    (&["base"], &[], "from"),
    (&["head"], &[], "to"),
    (&["old_string"], &[], "old"),
    (&["new_string"], &[], "text"),
    (&["replace_all"], &[], "all"),
    (&["pattern", "q", "substring_pattern", "text"], &["search"], "query"),
    (&["pattern", "q", "query", "target"], &["symbol"], "name"),
    (NAMES, &["symbol"], "name"),
    (NAMES, WITH_IDS, "target"),
    (&["old_name"], &["rename"], "target"),
    (&["from"], &["graph"], "target"),
    (
        FILES,
        &["read", "outline", "graph", "history", "blame", "edit"],
        "target",
    ),
    (FILES, &["outline"], "at"),
    (&["target", "dir", "directory"], &["outline"], "at"),
    (FILES, &[], "path"),
    (
        &["glob", "include", "paths", "directory", "target_directories"],
        &[],
        "path",
    ),
    (&["language", "languages", "type"], &[], "lang"),
    (&["head_limit", "max_results", "max_count", "top_k"], &[], "limit"),
    (&["branch", "revision", "commit"], &[], "ref"),
    (&["max_depth"], &[], "depth"),
    (&["context", "-C"], &[], "context_lines"),
];
/// Names of a definition.
const NAMES: &[&str] = &[
    "name",
    "symbol",
    "symbol_name",
    "function_name",
    "name_path",
    "name_path_pattern",
];
/// Names of a file.
const FILES: &[&str] = &[
    "file_path",
    "path",
    "file",
    "filename",
    "target_file",
    "relative_path",
    "uri",
];
/// Tools with a target that can be the id of a definition.
const WITH_IDS: &[&str] = &["graph", "history", "blame", "rename"];
/// Names of the first and the last line.
const RANGES: &[(&str, &str)] = &[
    ("start_line", "end_line"),
    ("line_start", "line_end"),
    ("start_line_one_indexed", "end_line_one_indexed_inclusive"),
];
/// Names that need no counterpart.
const WITHOUT_EFFECT: &[&str] = &["-n", "output_mode", "explanation", "should_read_entire_file", "stale"];

/// Returns the arguments under the names that the tool knows, and a note for each other name.
pub(super) fn resolved(tool: &str, parameters: &[Parameter], given: JsonObject) -> (JsonObject, Vec<String>) {
    let mut call = Call {
        tool,
        parameters,
        given,
        notes: Vec::new(),
    };
    call.drop_without_effect();
    call.wrap_record();
    call.join_lines();
    call.join_definition();
    call.include_body();
    call.rename();
    call.choose_op();
    call.use_slashes();
    (call.given, call.notes)
}

struct Call<'a> {
    tool: &'a str,
    parameters: &'a [Parameter],
    given: JsonObject,
    notes: Vec<String>,
}

impl Call<'_> {
    fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter.name == name)
    }

    /// Returns true if the parameter exists and has no value.
    fn lacks(&self, name: &str) -> bool {
        self.has(name) && self.given.get(name).is_none_or(Value::is_null)
    }

    /// Returns true if there is a value under a name that is no parameter.
    fn is_foreign(&self, name: &str) -> bool {
        !self.has(name) && self.given.contains_key(name)
    }

    fn drop_without_effect(&mut self) {
        for name in WITHOUT_EFFECT {
            if self.is_foreign(name) {
                self.given.remove(*name);
                self.notes.push(format!("{name} has no effect"));
            }
        }
    }

    fn include_body(&mut self) {
        if self.is_foreign("include_body") && self.lacks("include") {
            if self.given.remove("include_body") == Some(Value::Bool(true)) {
                self.given.insert("include".to_owned(), vec!["body"].into());
            }
            self.notes.push("include_body means include=[\"body\"]".to_owned());
        }
    }

    fn rename(&mut self) {
        for (names, tools, real) in ALIASES {
            let is_for = tools.is_empty() || tools.contains(&self.tool);
            for name in *names {
                if is_for && self.lacks(real) && self.is_foreign(name) {
                    let value = match self.given.remove(*name).unwrap_or_default() {
                        Value::String(text) if name.starts_with("name_path") => dotted(&text).into(),
                        value => value,
                    };
                    self.given.insert((*real).to_owned(), value);
                    self.notes.push(format!("{name} means {real}"));
                }
            }
        }
    }

    /// Puts numbers of lines where the tool has them: in `lines`, or after the path in `target` or `at`.
    fn join_lines(&mut self) {
        let mut used = Vec::new();
        let Some(lines) = self.lines(&mut used) else { return };
        let (real, value) = if self.lacks("lines") {
            ("lines", Value::from(vec![lines]))
        } else {
            let real = if self.has("at") { "at" } else { "target" };
            let is_path = |name: &&str| (*name == real || self.is_foreign(name)) && self.text(name).is_some();
            let names = std::iter::once(real).chain(FILES.iter().copied());
            let Some(file) = names.into_iter().find(is_path).filter(|_| self.has(real)) else {
                return;
            };
            let path = self.text(file).unwrap_or_default().trim_start_matches("file://");
            let place = format!("{path}:{lines}");
            used.push(file);
            (real, place.into())
        };
        let mean = if used.len() == 1 { "means" } else { "mean" };
        self.notes.push(format!("{} {mean} {real}={value}", used.join(", ")));
        used.iter().for_each(|name| drop(self.given.remove(*name)));
        self.given.insert(real.to_owned(), value);
    }

    /// Returns lines as `5-9`, `5-` or `5:1`, and adds the names that they were given under.
    fn lines(&self, used: &mut Vec<&'static str>) -> Option<String> {
        let range = |first: u64, last: Option<u64>| match last {
            Some(last) => format!("{first}-{last}"),
            None => format!("{first}-"),
        };
        if let Some(Value::Array(both)) = self.given.get("view_range")
            && let [first, last] = &**both
        {
            used.push("view_range");
            return Some(range(number(first)?, number(last)));
        }
        let mut take = |name: &'static str| {
            let found = number(self.given.get(name)?)?;
            used.push(name);
            Some(found)
        };
        for (start, end) in RANGES {
            if let Some(first) = take(start) {
                return Some(range(first, take(end)));
            }
        }
        if let Some(line) = take("line") {
            let column = take("character").or_else(|| take("column"));
            return Some(column.map_or_else(|| line.to_string(), |column| format!("{line}:{column}")));
        }
        // `limit` is a parameter that counts lines, too; after `offset` it says where they end.
        let first = take("offset").filter(|_| self.lacks("lines"))?.max(1);
        let n_lines = take("limit").filter(|n_lines| *n_lines > 0);
        Some(range(first, n_lines.map(|n_lines| first + n_lines - 1)))
    }

    /// Makes a list of one record of the fields of a record, if the call has them instead of the list.
    fn wrap_record(&mut self) {
        let is_list = |parameter: &&Parameter| matches!(parameter.kind, Kind::Records(_)) && self.lacks(parameter.name);
        let Some(list) = self.parameters.iter().find(is_list) else {
            return;
        };
        let names: Vec<String> = self.given.keys().filter(|name| !self.has(name)).cloned().collect();
        let fields: JsonObject = names.iter().filter_map(|name| self.given.remove_entry(name)).collect();
        if !fields.is_empty() {
            self.notes
                .push(format!("{} belong into {}", names.join(", "), list.name));
            self.given
                .insert(list.name.to_owned(), vec![Value::Object(fields)].into());
        }
    }

    /// Makes the id of a definition of its file and its name.
    fn join_definition(&mut self) {
        if !WITH_IDS.contains(&self.tool) || !self.lacks("target") {
            return;
        }
        let given = |names: &[&'static str]| names.iter().copied().find(|name| self.is_foreign(name));
        let (Some(file), Some(name)) = (given(FILES), given(NAMES)) else {
            return;
        };
        if let (Some(path), Some(definition)) = (self.text(file), self.text(name)) {
            let id = format!("{path}#{}", dotted(definition));
            self.notes.push(format!("{file}, {name} mean target={id}"));
            self.given.insert("target".to_owned(), id.into());
            self.given.remove(file);
            self.given.remove(name);
        }
    }

    /// Replaces the backslashes in paths. A backslash before a character with a meaning in globs remains, and so does
    /// one in a name: only the last part of a path has a dot.
    fn use_slashes(&mut self) {
        let is_path = |name: &str, text: &str| match name {
            "path" | "at" => true,
            "target" => self.tool == "read" || text.rsplit('\\').next().is_some_and(|last| last.contains('.')),
            _ => false,
        };
        let slashed = |name: &str, text: &str| {
            (text.contains('\\') && !text.starts_with('"') && is_path(name, text)).then(|| with_slashes(text))
        };
        let mut changed = Vec::new();
        for (name, value) in &self.given {
            let new = match value {
                Value::String(text) => slashed(name, text).map(Value::String),
                Value::Array(items) => {
                    let item = |item: &Value| slashed(name, item.as_str()?).map(Value::String);
                    let new = items
                        .iter()
                        .map(|old| item(old).unwrap_or_else(|| old.clone()))
                        .collect();
                    Some(Value::Array(new))
                }
                _ => None,
            };
            changed.extend(new.filter(|new| new != value).map(|new| (name.clone(), new)));
        }
        if !changed.is_empty() {
            self.notes.push("paths have slashes, not backslashes".to_owned());
            self.given.extend(changed);
        }
    }

    /// Selects the operation that the fields of a record imply.
    fn choose_op(&mut self) {
        if self.has("old") && !self.lacks("old") && self.lacks("op") {
            self.given.insert("op".to_owned(), "replace_text".into());
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name)?.as_str()
    }
}

/// Converts `/Outer/name` to `Outer.name`.
fn dotted(name_path: &str) -> String {
    name_path.trim_start_matches('/').replace('/', ".")
}

fn with_slashes(path: &str) -> String {
    let mut slashed = String::with_capacity(path.len());
    let mut letters = path.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some('[' | ']' | '{' | '}' | '!' | '?')) | (_, None) => slashed.push(letter),
            ('\\', Some('\\')) => {}
            ('\\', _) => slashed.push('/'),
            _ => slashed.push(letter),
        }
    }
    slashed
}

/// Returns a line number that may be written as a string.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::super::tools::TOOLS;
    use super::*;

    #[track_caller]
    fn assert_resolved(tool: &str, given: Value, expected: Value, notes: &[&str]) {
        let tool = TOOLS.iter().find(|known| known.name == tool).unwrap();
        let (found, noted) = resolved(tool.name, tool.parameters(), given.as_object().unwrap().clone());
        let noted: Vec<&str> = noted.iter().map(String::as_str).collect();
        assert_eq!((Value::Object(found), &*noted), (expected, notes), "{given}");
    }

    #[test]
    fn habitual_names_mean_parameters() {
        for (tool, given, expected, notes) in [
            (
                "search",
                json!({"pattern": "x", "glob": "*.py", "head_limit": 3, "-n": true}),
                json!({"query": "x", "path": "*.py", "limit": 3}),
                &[
                    "-n has no effect",
                    "pattern means query",
                    "glob means path",
                    "head_limit means limit",
                ][..],
            ),
            // A name that the tool has keeps its meaning, and so does a value that is there.
            (
                "search",
                json!({"query": "x", "path": "src"}),
                json!({"query": "x", "path": "src"}),
                &[],
            ),
            (
                "search",
                json!({"query": "x", "q": "y"}),
                json!({"query": "x", "q": "y"}),
                &[],
            ),
            (
                "read",
                json!({"path": "a.py"}),
                json!({"target": "a.py"}),
                &["path means target"],
            ),
            (
                "outline",
                json!({"file_path": "a.py"}),
                json!({"at": "a.py"}),
                &["file_path means at"],
            ),
            (
                "symbol",
                json!({"file": "a.py", "symbol": "f"}),
                json!({"path": "a.py", "name": "f"}),
                &["symbol means name", "file means path"],
            ),
            (
                "symbol",
                json!({"name_path": "/F/f", "include_body": true}),
                json!({"name": "F.f", "include": ["body"]}),
                &["include_body means include=[\"body\"]", "name_path means name"],
            ),
            (
                "graph",
                json!({"file": "a.py", "name_path": "F/f"}),
                json!({"target": "a.py#F.f"}),
                &["file, name_path mean target=a.py#F.f"],
            ),
            (
                "diff",
                json!({"base": "a", "head": "b"}),
                json!({"from": "a", "to": "b"}),
                &["base means from", "head means to"],
            ),
            (
                "edit",
                json!({"old_string": "a", "dry_run": true}),
                json!({"edits": [{"old_string": "a"}], "dry_run": true}),
                &["old_string belong into edits"],
            ),
        ] {
            assert_resolved(tool, given, expected, notes);
        }
    }

    #[test]
    fn numbers_of_lines_go_where_the_tool_has_them() {
        for (tool, given, expected) in [
            (
                "read",
                json!({"target": "a", "offset": 20, "limit": 15}),
                json!({"target": "a", "lines": ["20-34"]}),
            ),
            (
                "read",
                json!({"target": "a", "offset": "0"}),
                json!({"target": "a", "lines": ["1-"]}),
            ),
            (
                "read",
                json!({"target": "a", "limit": 15}),
                json!({"target": "a", "limit": 15}),
            ),
            (
                "read",
                json!({"target": "a", "start_line": 5, "end_line": 9}),
                json!({"target": "a", "lines": ["5-9"]}),
            ),
            (
                "read",
                json!({"target": "a", "view_range": [5, -1]}),
                json!({"target": "a", "lines": ["5-"]}),
            ),
            (
                "blame",
                json!({"file": "a", "start_line": 5, "end_line": 9}),
                json!({"target": "a:5-9"}),
            ),
            (
                "symbol",
                json!({"uri": "file://a", "line": 5, "character": 2}),
                json!({"at": "a:5:2"}),
            ),
            ("graph", json!({"file": "a", "line": 5}), json!({"target": "a:5"})),
            // There is no place for it.
            (
                "search",
                json!({"query": "x", "line": 5}),
                json!({"query": "x", "line": 5}),
            ),
            (
                "history",
                json!({"target": "a", "offset": 5}),
                json!({"target": "a", "offset": 5}),
            ),
        ] {
            let tool = TOOLS.iter().find(|known| known.name == tool).unwrap();
            let (found, _) = resolved(tool.name, tool.parameters(), given.as_object().unwrap().clone());
            assert_eq!(Value::Object(found), expected, "{given}");
        }
    }

    #[test]
    fn backslashes_in_paths_are_slashes() {
        let notes = &["paths have slashes, not backslashes"];
        for (tool, given, expected, notes) in [
            ("read", json!({"target": "a\\b"}), json!({"target": "a/b"}), &notes[..]),
            (
                "blame",
                json!({"target": "a\\b.py:5"}),
                json!({"target": "a/b.py:5"}),
                notes,
            ),
            (
                "blame",
                json!({"target": "App\\User"}),
                json!({"target": "App\\User"}),
                &[],
            ),
            (
                "read",
                json!({"target": "\"a\\303\""}),
                json!({"target": "\"a\\303\""}),
                &[],
            ),
            (
                "search",
                json!({"path": ["a\\*.py", "b\\\\c"]}),
                json!({"path": ["a/*.py", "b/c"]}),
                notes,
            ),
            ("search", json!({"path": "\\[a\\]"}), json!({"path": "\\[a\\]"}), &[]),
            ("search", json!({"query": "a\\b"}), json!({"query": "a\\b"}), &[]),
        ] {
            assert_resolved(tool, given, expected, notes);
        }
    }
}
