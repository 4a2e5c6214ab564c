//! Validates the arguments of a call against the parameters of its tool, before the tool runs.

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::aliases::resolved;
use super::suggest::call_of;
use crate::query::nearest;
use crate::session::OpError;

/// Maximum length of a string argument. A longer one is probably a file passed by mistake.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum number of items in a list argument.
const MAX_LIST: usize = 256;

/// One parameter of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Description for the schema; empty if the name is clear enough.
    pub(super) about: &'static str,
    pub(super) is_required: bool,
}

/// The kind of values that a parameter accepts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A string.
    Text,
    /// A list of strings; a single string counts as a list of one.
    Texts,
    /// An integer from 0 to this maximum.
    Number(u64),
    /// A boolean.
    Flag,
    /// One of the listed strings.
    Choice(&'static [&'static str]),
    /// A list in which each item is one of the listed strings.
    Choices(&'static [&'static str]),
    /// A list of objects with these fields.
    Records(&'static [Parameter]),
}

impl Parameter {
    /// Creates an optional parameter.
    pub(super) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self {
            name,
            kind,
            about,
            is_required: false,
        }
    }

    /// Describes the parameter.
    pub(super) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// Makes the parameter required.
    pub(super) const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }

    /// Returns the JSON Schema of the values. It names a single type, because some model providers do not accept
    /// unions.
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Kind::Number(_) => json!({"type": "integer"}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Choice(choices) => json!({"type": "string", "enum": choices}),
            Kind::Choices(choices) => json!({"type": "array", "items": {"type": "string", "enum": choices}}),
            Kind::Records(fields) => json!({"type": "array", "items": schema(fields)}),
        };
        if !self.about.is_empty() {
            schema["description"] = self.about.into();
        }
        schema
    }
}

/// Returns the JSON Schema of a tool's parameters.
pub(super) fn schema(parameters: &[Parameter]) -> JsonObject {
    let properties: JsonObject = parameters
        .iter()
        .map(|parameter| (parameter.name.to_owned(), parameter.schema()))
        .collect();
    let required: Vec<&str> = parameters
        .iter()
        .filter(|parameter| parameter.is_required)
        .map(|parameter| parameter.name)
        .collect();
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}

/// The arguments of one call, each converted to the kind of its parameter.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    values: JsonObject,
    /// Remarks on names that are not those of the parameters.
    pub(super) notes: Vec<String>,
}

impl Arguments {
    /// Validates the given arguments. The error lists all problems, and suggests a call without them.
    pub(super) fn check(tool: &str, parameters: &[Parameter], given: JsonObject) -> Result<Self, OpError> {
        let (given, mut notes) = resolved(tool, parameters, given);
        let mut values = JsonObject::new();
        let (mut wrong, mut rest) = (Vec::new(), Vec::new());
        for (name, value) in given {
            match parameters.iter().find(|parameter| parameter.name == name) {
                _ if value.is_null() => {}
                None => {
                    wrong.push(unknown(&name, parameters));
                    rest.push((name, value));
                }
                Some(parameter) => {
                    // A value that is wrong is not missing.
                    let accepted = accepted(tool, parameter, value.clone(), &mut notes);
                    let value = accepted.unwrap_or_else(|problem| {
                        wrong.push(problem);
                        rest.push((name.clone(), value));
                        Value::Null
                    });
                    values.insert(name, value);
                }
            }
        }
        let is_missing = |parameter: &&Parameter| parameter.is_required && !values.contains_key(parameter.name);
        let missing = parameters.iter().filter(is_missing);
        wrong.extend(missing.map(|parameter| format!("{} is missing", parameter.name)));
        if wrong.is_empty() {
            notes.sort_unstable();
            notes.dedup();
            return Ok(Self { values, notes });
        }
        let error = OpError::new(wrong.join("; "), format!("the parameters are {}", names(parameters)));
        Err(match corrected(tool, parameters, values, rest) {
            Some(call) => error.with_retry(call),
            None => error,
        })
    }

    /// Returns all arguments.
    pub(super) fn given(&self) -> &JsonObject {
        &self.values
    }

    /// Returns a string argument.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// Returns a list argument; an empty list if it is absent.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let values = self.values.get(name).and_then(Value::as_array);
        let texts = values.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    /// Returns a numeric argument.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.values.get(name)?.as_u64().map(|number| number as usize)
    }

    /// Returns a boolean argument; false if it is absent.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.optional_flag(name).unwrap_or(false)
    }

    /// Returns a boolean argument, or `None` if it is absent.
    pub(super) fn optional_flag(&self, name: &str) -> Option<bool> {
        self.values.get(name)?.as_bool()
    }

    /// Returns the tool name and its arguments as text, without arguments that only affect the size of the answer.
    /// Cursors are valid only for the same text.
    pub(super) fn question(&self, tool: &str) -> String {
        let how_much = [
            "limit",
            "max_tokens",
            "cursor",
            "detail",
            "stale",
            "context_lines",
            "explain",
        ];
        let asked: JsonObject = self
            .values
            .iter()
            .filter(|(name, _)| !how_much.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        format!("mcp {tool} {}", Value::Object(asked))
    }
}

fn names(parameters: &[Parameter]) -> String {
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    names.join(", ")
}

fn unknown(name: &str, parameters: &[Parameter]) -> String {
    let short: String = name.chars().take(40).collect();
    match nearest(&short, parameters.iter().map(|parameter| parameter.name)).first() {
        Some(near) => format!("unknown parameter {short:?}; did you mean {near}?"),
        None => format!("unknown parameter {short:?}"),
    }
}

/// Returns a call with the valid arguments and, as far as can be guessed, what the others were meant to be; `None` if it
/// would fail.
fn corrected(
    tool: &str,
    parameters: &[Parameter],
    mut values: JsonObject,
    rest: Vec<(String, Value)>,
) -> Option<Value> {
    values.retain(|_, value| !value.is_null());
    for (name, value) in rest {
        let near = nearest(&name, parameters.iter().map(|parameter| parameter.name));
        let is_meant = |parameter: &&Parameter| near.first().is_some_and(|near| near == parameter.name);
        let is_missing = |parameter: &&Parameter| parameter.is_required && !values.contains_key(parameter.name);
        let mut by_name = parameters
            .iter()
            .filter(|parameter| parameter.name == name || is_meant(parameter));
        let Some(parameter) = by_name.next().or_else(|| parameters.iter().find(is_missing)) else {
            continue;
        };
        let value = match (parameter.kind, value) {
            (Kind::Number(max), value) if as_number(&value).is_some_and(|number| number > max) => max.into(),
            (Kind::Choice(choices), Value::String(text)) => nearest(&text, choices.iter().copied())
                .into_iter()
                .next()
                .unwrap_or(text)
                .into(),
            (_, value) => value,
        };
        if let (Ok(value), false) = (
            accepted(tool, parameter, value, &mut Vec::new()),
            values.contains_key(parameter.name),
        ) {
            values.insert(parameter.name.to_owned(), value);
        }
    }
    let has = |names: &[&str]| names.iter().any(|name| values.contains_key(*name));
    let is_whole = match tool {
        "symbol" => has(&["name", "at", "id"]),
        "graph" => has(&["target"]),
        _ => parameters
            .iter()
            .all(|parameter| !parameter.is_required || has(&[parameter.name])),
    };
    if is_whole { call_of(tool, values) } else { None }
}

/// Converts a value to the kind of its parameter. Accepts numbers, lists and objects written as strings, and single
/// strings instead of lists, because models write those.
fn accepted(tool: &str, parameter: &Parameter, value: Value, notes: &mut Vec<String>) -> Result<Value, String> {
    let name = parameter.name;
    match (parameter.kind, value) {
        (Kind::Text, Value::String(text)) => checked_text(name, text).map(Value::String),
        (Kind::Text, Value::Number(number)) => Ok(Value::String(number.to_string())),
        (Kind::Texts | Kind::Choices(_), Value::String(text)) => match serde_json::from_str(&text) {
            Ok(values) if text.starts_with('[') => list(parameter, values),
            _ => list(parameter, vec![Value::String(text)]),
        },
        (Kind::Texts | Kind::Choices(_), Value::Array(values)) => list(parameter, values),
        (Kind::Records(fields), Value::Array(records)) => self::records(tool, name, fields, records, notes),
        (Kind::Records(fields), record @ Value::Object(_)) => self::records(tool, name, fields, vec![record], notes),
        (Kind::Records(_), Value::String(text)) => match serde_json::from_str(&text) {
            Ok(value @ (Value::Array(_) | Value::Object(_))) => accepted(tool, parameter, value, notes),
            Err(error) if text.trim_start().starts_with(['[', '{']) => Err(format!("{name} is not JSON: {error}")),
            _ => Err(format!("{name} must be a list of objects, not a string")),
        },
        (Kind::Number(max), value) => number(name, max, &value),
        (Kind::Flag, Value::Bool(flag)) => Ok(Value::Bool(flag)),
        (Kind::Flag, Value::String(text)) if text == "true" || text == "false" => Ok(Value::Bool(text == "true")),
        (Kind::Choice(choices), Value::String(text)) => choice(name, choices, text),
        (kind, value) => Err(format!("{name} must be {}, not {}", said(kind), kind_of(&value))),
    }
}

fn checked_text(name: &str, text: String) -> Result<String, String> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!(
            "{name} has {} bytes; the maximum is {MAX_TEXT_BYTES}",
            text.len()
        ));
    }
    if text.contains('\0') {
        return Err(format!("{name} contains a NUL character"));
    }
    Ok(text)
}

fn list(parameter: &Parameter, values: Vec<Value>) -> Result<Value, String> {
    let name = parameter.name;
    if values.len() > MAX_LIST {
        return Err(format!("{name} has {} items; the maximum is {MAX_LIST}", values.len()));
    }
    let item = |value| match value {
        Value::String(text) => match parameter.kind {
            Kind::Choices(choices) => choice(name, choices, text),
            _ => checked_text(name, text).map(Value::String),
        },
        other => Err(format!("{name} must contain strings, not {}", kind_of(&other))),
    };
    Ok(Value::Array(values.into_iter().map(item).collect::<Result<_, _>>()?))
}

/// Checks the fields of each object like the arguments of a call.
fn records(
    tool: &str,
    name: &str,
    fields: &[Parameter],
    records: Vec<Value>,
    notes: &mut Vec<String>,
) -> Result<Value, String> {
    if records.len() > MAX_LIST {
        return Err(format!("{name} has {} items; the maximum is {MAX_LIST}", records.len()));
    }
    let checked = records.into_iter().zip(1..).map(|(record, number)| match record {
        Value::Object(given) => match Arguments::check(tool, fields, given) {
            Ok(arguments) => {
                notes.extend(arguments.notes);
                Ok(Value::Object(arguments.values))
            }
            Err(OpError { message, .. }) => Err(format!(
                "{name}, item {number}: {message}; its fields are {}",
                names(fields)
            )),
        },
        other => Err(format!("{name} must contain objects, not {}", kind_of(&other))),
    });
    Ok(Value::Array(checked.collect::<Result<_, _>>()?))
}

fn number(name: &str, max: u64, value: &Value) -> Result<Value, String> {
    match as_number(value) {
        Some(number) if number <= max => Ok(number.into()),
        Some(number) => Err(format!("{name} is {number}; the maximum is {max}")),
        None => Err(format!(
            "{name} must be an integer from 0 to {max}, not {}",
            kind_of(value)
        )),
    }
}

fn as_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        // JSON has only one number type, so 3.0 equals 3.
        Value::Number(number) => number.as_u64().or_else(|| {
            number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && *float >= 0.0)
                .map(|float| float as u64)
        }),
        _ => None,
    }
}

fn choice(name: &str, choices: &[&str], text: String) -> Result<Value, String> {
    if choices.contains(&text.as_str()) {
        return Ok(Value::String(text));
    }
    let short: String = text.chars().take(40).collect();
    Err(format!("{name} must be one of {}, not {short:?}", choices.join(", ")))
}

fn said(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Choice(_) => "a string",
        Kind::Texts | Kind::Choices(_) => "a list of strings",
        Kind::Records(_) => "a list of objects",
        Kind::Number(_) => "an integer",
        Kind::Flag => "a boolean",
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter::new("query", Kind::Text, "").required(),
        Parameter::new("limit", Kind::Number(10), ""),
        Parameter::new("path", Kind::Texts, ""),
        Parameter::new("tests", Kind::Choice(&["any", "no"]), ""),
        Parameter::new("explain", Kind::Flag, ""),
    ];
    const ITEM: &[Parameter] = &[Parameter::new("op", Kind::Text, "").required()];
    const NESTED: &[Parameter] = &[Parameter::new("edits", Kind::Records(ITEM), "").required()];

    fn check(given: Value) -> Result<Arguments, OpError> {
        Arguments::check("search", PARAMETERS, given.as_object().unwrap().clone())
    }

    #[test]
    fn lenient_argument_forms_are_accepted() {
        let arguments = check(json!({"query": "x", "limit": "3", "path": "src", "explain": "true", "tests": null}));
        let arguments = arguments.unwrap();
        assert_eq!(arguments.number("limit"), Some(3));
        assert_eq!(arguments.texts("path"), ["src"]);
        assert!(arguments.flag("explain"));
        assert_eq!(arguments.text("tests"), None);
        assert_eq!(
            check(json!({"query": "x", "limit": 3.0})).unwrap().number("limit"),
            Some(3)
        );
    }

    #[test]
    fn objects_are_accepted_as_text_and_what_is_wrong_in_one_is_not_missing() {
        let check =
            |edits: Value| Arguments::check("edit", NESTED, json!({"edits": edits}).as_object().unwrap().clone());
        let listed = json!({"edits": [{"op": "remove"}]});
        for edits in [
            json!([{"op": "remove"}]),
            json!({"op": "remove"}),
            json!("[{\"op\": \"remove\"}]"),
        ] {
            assert_eq!(Value::Object(check(edits).unwrap().given().clone()), listed);
        }
        let wrong = |edits| check(edits).unwrap_err().message;
        assert_eq!(
            wrong(json!([{"do": 1}])),
            "edits, item 1: unknown parameter \"do\"; op is missing; its fields are op"
        );
        assert_eq!(wrong(json!("remove")), "edits must be a list of objects, not a string");
        assert_eq!(wrong(json!("\"[]\"")), "edits must be a list of objects, not a string");
        assert_eq!(wrong(json!(null)), "edits is missing");
    }

    #[test]
    fn check_reports_every_problem() {
        let failure = check(json!({"limt": 1, "limit": 11, "tests": "maybe", "path": [1], "explain": 2})).unwrap_err();
        for part in [
            "did you mean limit",
            "the maximum is 10",
            "one of any, no",
            "not a number",
            "query is missing",
        ] {
            assert!(failure.message.contains(part), "{part}: {}", failure.message);
        }
        assert!(failure.for_tools().hint.unwrap().contains("query, limit"));
        for bad in [
            json!({"query": "a\u{0}b"}),
            json!({"query": "x".repeat(MAX_TEXT_BYTES + 1)}),
        ] {
            assert!(check(bad).is_err());
        }
        assert!(check(json!({"query": "x", "limit": -1})).is_err());
        assert!(check(json!({"query": "x", "limit": 1.5})).is_err());
        assert!(check(json!({"query": "x", "limit": 1e300})).is_err());
    }
}
