//! The entry for the server in a client's configuration: a few fields, whose names differ between clients.

use serde_json::{Map, Value};

use super::TextError;

/// The environment variable from which clients read the token of an HTTP server. The token itself is never written.
pub(crate) const TOKEN_VARIABLE: &str = "CODESCOUT_TOKEN";

/// How a client connects to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// The client starts the server and communicates over its standard input and output.
    Stdio {
        /// The program: a path, or a name to look up in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// The server is already running.
    Http {
        /// Its address.
        url: String,
    },
}

/// The format of a server's entry in a client's configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(super) stdio: StdioShape,
    /// `None` if the client takes no addresses from its configuration.
    pub(super) http: Option<HttpShape>,
}

/// The format of the command.
#[derive(Clone, Copy, Debug)]
pub(super) enum StdioShape {
    /// `command` and `args`.
    Plain,
    /// `command` and `args`, after `type: "stdio"`.
    Typed,
    /// `cmd` and `args`, after `type: "stdio"`.
    Cmd,
    /// `type: "local"`, and one list `command` with the program and its arguments.
    Local,
}

/// The format of the address.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpShape {
    /// The name of the field with the address.
    pub(super) url: &'static str,
    /// The field that names the kind of connection, with its value, if there is one.
    pub(super) kind: Option<(&'static str, &'static str)>,
    /// The format of the reference to the token.
    pub(super) token: Token,
}

/// How an entry names the token's environment variable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    /// A header `Authorization`, in which `VARIABLE` is replaced by the name of the variable.
    Header(&'static str),
    /// A header as above, and the variable in the list `env_keys`.
    HeaderOfKeys(&'static str),
    /// The field `bearer_token_env_var`.
    Field,
    /// Headers in the field `requestOptions`.
    RequestOptions(&'static str),
    /// The entry has no token. The client asks for it, or the user adds it.
    None,
}

/// The fields that describe how to connect to a server, for all clients. If a new entry lacks one of them, it is
/// removed from the old entry. All other fields of the old entry belong to the user and are kept.
const TRANSPORT_FIELDS: [&str; 13] = [
    "type",
    "transport",
    "command",
    "cmd",
    "args",
    "url",
    "uri",
    "serverUrl",
    "httpUrl",
    "headers",
    KEYS,
    "bearer_token_env_var",
    "requestOptions",
];

/// The list of the variables without which Goose does not connect to a server.
const KEYS: &str = "env_keys";

/// The fields of one server, in the order in which they are written.
pub(super) type Entry = Map<String, Value>;

impl Shape {
    /// Returns the fields of an entry for `server`; `None` if the client has no such entries.
    pub(super) fn entry(&self, server: &Server) -> Option<Entry> {
        match server {
            Server::Stdio { command, args } => Some(self.stdio.entry(command, args)),
            Server::Http { url } => Some(self.http?.entry(url)),
        }
    }
}

impl StdioShape {
    fn entry(self, command: &str, args: &[String]) -> Entry {
        let mut entry = Entry::new();
        match self {
            Self::Local => {
                let whole: Vec<&str> = std::iter::once(command)
                    .chain(args.iter().map(String::as_str))
                    .collect();
                entry.insert("type".to_owned(), "local".into());
                entry.insert("command".to_owned(), whole.into());
                return entry;
            }
            Self::Typed | Self::Cmd => drop(entry.insert("type".to_owned(), "stdio".into())),
            Self::Plain => {}
        }
        let program = if matches!(self, Self::Cmd) { "cmd" } else { "command" };
        entry.insert(program.to_owned(), command.into());
        entry.insert("args".to_owned(), args.to_vec().into());
        entry
    }
}

impl HttpShape {
    fn entry(self, url: &str) -> Entry {
        let mut entry = Entry::new();
        if let Some((field, kind)) = self.kind {
            entry.insert(field.to_owned(), kind.into());
        }
        entry.insert(self.url.to_owned(), url.into());
        let headers = |template: &str| {
            let value = template.replace("VARIABLE", TOKEN_VARIABLE);
            Value::Object(Entry::from_iter([("Authorization".to_owned(), value.into())]))
        };
        match self.token {
            Token::Header(template) => drop(entry.insert("headers".to_owned(), headers(template))),
            Token::HeaderOfKeys(template) => {
                entry.insert("headers".to_owned(), headers(template));
                entry.insert(KEYS.to_owned(), keys());
            }
            Token::Field => drop(entry.insert("bearer_token_env_var".to_owned(), TOKEN_VARIABLE.into())),
            Token::RequestOptions(template) => {
                let options = Entry::from_iter([("headers".to_owned(), headers(template))]);
                entry.insert("requestOptions".to_owned(), options.into());
            }
            Token::None => {}
        }
        entry
    }
}

fn keys() -> Value {
    vec![TOKEN_VARIABLE].into()
}

/// The edits of an existing entry.
#[derive(Debug, PartialEq)]
pub(super) struct Difference<'e> {
    /// Fields to remove, because they describe another way to connect to the server.
    pub(super) remove: Vec<&'static str>,
    /// Fields to set, because they are missing or have another value.
    pub(super) set: Vec<(&'e str, &'e Value)>,
}

/// Returns the edits that turn `found` into an entry with the fields of `wanted`.
pub(super) fn difference<'e>(found: &Entry, wanted: &'e Entry) -> Difference<'e> {
    // The list may also have variables of the user.
    let is_own = |field: &str| found.get(field).is_some_and(|value| field != KEYS || *value == keys());
    let is_left_over = |field: &&str| is_own(field) && !wanted.contains_key(*field);
    let is_missing = |(field, value): &(&String, &Value)| found.get(*field) != Some(*value);
    Difference {
        remove: TRANSPORT_FIELDS.into_iter().filter(is_left_over).collect(),
        set: wanted
            .iter()
            .filter(is_missing)
            .map(|(field, value)| (field.as_str(), value))
            .collect(),
    }
}

/// Returns `found` after applying its difference to `wanted`.
pub(super) fn merged(found: &Entry, wanted: &Entry) -> Entry {
    let difference = difference(found, wanted);
    let mut merged: Entry = found.clone();
    merged.retain(|field, _| !difference.remove.contains(&field.as_str()));
    for (field, value) in difference.set {
        merged.insert(field.to_owned(), value.clone());
    }
    merged
}

/// Describes how an entry differs from the one that would be written, one line per field.
pub(super) fn differences(found: &Value, wanted: &Entry) -> Vec<String> {
    let Value::Object(found) = found else {
        return vec![format!("the entry is {found}")];
    };
    let fields = found
        .keys()
        .chain(wanted.keys().filter(|field| !found.contains_key(*field)));
    let line = |field: &String| match (found.get(field), wanted.get(field)) {
        (found, wanted) if found == wanted => None,
        (Some(found), Some(wanted)) => Some(format!("{field} is {found} instead of {wanted}")),
        (Some(found), None) => Some(format!("{field} is {found}, which install does not write")),
        (None, _) => Some(format!("{field} is missing")),
    };
    fields.filter_map(line).collect()
}

/// Removes the entry of a server from its section. Returns true if the section is empty then, and `None` if there is no
/// such entry.
pub(super) fn take_out(fields: &mut Entry, section: &str, name: &str) -> Option<bool> {
    let servers = fields.get_mut(section)?.as_object_mut()?;
    servers.shift_remove(name)?;
    Some(servers.is_empty())
}

/// Fails unless an edited text has the expected values.
pub(super) fn check(found: Result<Option<Entry>, TextError>, expected: &Entry, what: &str) -> Result<(), TextError> {
    match found.map(Option::unwrap_or_default) {
        Ok(found) if found == *expected => Ok(()),
        _ => Err(TextError::NotEditable { what: what.to_owned() }),
    }
}
