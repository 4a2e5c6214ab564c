//! The entry of the server: a few fields, whose names differ from client to client.

use serde_json::{Map, Value};

/// The variable that clients take the token of an HTTP server from. The token itself is never written.
pub(crate) const TOKEN_VARIABLE: &str = "CODESCOUT_TOKEN";

/// The way a client connects to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// The client starts it and talks over its standard input and output.
    Stdio {
        /// The program: a path, or a name that is looked up.
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

/// The form of a server's entry in a client's configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(super) stdio: StdioShape,
    pub(super) http: HttpShape,
}

/// The form of the command.
#[derive(Clone, Copy, Debug)]
pub(super) enum StdioShape {
    /// `command` and `args`.
    Plain,
    /// The same after `type: "stdio"`.
    Typed,
    /// `type: "local"`, and program and arguments as one list `command`.
    Local,
}

/// The form of the address.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpShape {
    /// The field of the address.
    pub(super) url: &'static str,
    /// The field `type`.
    pub(super) kind: Option<&'static str>,
    /// The form of the reference to the token.
    pub(super) token: Token,
}

/// The form in which an entry names the token's variable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    /// A header `Authorization`, in which `VARIABLE` is replaced by the name of the variable.
    Header(&'static str),
    /// The field `bearer_token_env_var`.
    Field,
    /// Headers inside `requestOptions`.
    RequestOptions(&'static str),
    /// Not supported; the client asks for the token, or its user adds it.
    None,
}

/// All fields that describe how a server is reached, in any client. Those that a new entry lacks are removed from an
/// old one. All other fields of an old entry belong to the user and stay.
const TRANSPORT_FIELDS: [&str; 9] = [
    "type",
    "command",
    "args",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "bearer_token_env_var",
    "requestOptions",
];

/// The fields of one server, in the order in which they are written.
pub(super) type Entry = Map<String, Value>;

impl Shape {
    /// The fields of `server`.
    pub(super) fn entry(&self, server: &Server) -> Entry {
        match server {
            Server::Stdio { command, args } => self.stdio.entry(command, args),
            Server::Http { url } => self.http.entry(url),
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
            Self::Typed => drop(entry.insert("type".to_owned(), "stdio".into())),
            Self::Plain => {}
        }
        entry.insert("command".to_owned(), command.into());
        entry.insert("args".to_owned(), args.to_vec().into());
        entry
    }
}

impl HttpShape {
    fn entry(self, url: &str) -> Entry {
        let mut entry = Entry::new();
        if let Some(kind) = self.kind {
            entry.insert("type".to_owned(), kind.into());
        }
        entry.insert(self.url.to_owned(), url.into());
        let headers = |template: &str| {
            let value = template.replace("VARIABLE", TOKEN_VARIABLE);
            Value::Object(Entry::from_iter([("Authorization".to_owned(), value.into())]))
        };
        match self.token {
            Token::Header(template) => drop(entry.insert("headers".to_owned(), headers(template))),
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

/// The edits of an existing entry.
#[derive(Debug, PartialEq)]
pub(super) struct Difference<'e> {
    /// Fields to remove, because they describe another way to reach the server.
    pub(super) remove: Vec<&'static str>,
    /// Fields that are missing or have another value.
    pub(super) set: Vec<(&'e str, &'e Value)>,
}

/// The edits that turn `found` into an entry with the fields of `wanted`.
pub(super) fn difference<'e>(found: &Entry, wanted: &'e Entry) -> Difference<'e> {
    let is_left_over = |field: &&str| found.contains_key(*field) && !wanted.contains_key(*field);
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

/// `found` with its difference to `wanted` applied.
pub(super) fn merged(found: &Entry, wanted: &Entry) -> Entry {
    let difference = difference(found, wanted);
    let mut merged: Entry = found.clone();
    merged.retain(|field, _| !difference.remove.contains(&field.as_str()));
    for (field, value) in difference.set {
        merged.insert(field.to_owned(), value.clone());
    }
    merged
}
