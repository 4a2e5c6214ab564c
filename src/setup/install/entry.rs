//! What is written about the server: a few fields, whose names differ from client to client.

use serde_json::{Map, Value};

/// The variable that clients take the token of an HTTP server from. The token itself is never written.
pub(crate) const TOKEN_VARIABLE: &str = "CODESCOUT_TOKEN";

/// How a client reaches the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// The client starts it and talks over its standard input and output.
    Stdio {
        /// The program: a path, or a name that is looked up.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It runs already.
    Http {
        /// Where.
        url: String,
    },
}

/// How a client's configuration spells a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(super) stdio: StdioShape,
    pub(super) http: HttpShape,
}

/// How the command is spelt.
#[derive(Clone, Copy, Debug)]
pub(super) enum StdioShape {
    /// `command` and `args`.
    Plain,
    /// The same after `type: "stdio"`.
    Typed,
    /// `type: "local"`, and program and arguments as one list `command`.
    Local,
}

/// How the address is spelt.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpShape {
    /// The field of the address.
    pub(super) url: &'static str,
    /// The field `type`.
    pub(super) kind: Option<&'static str>,
    /// How the token is named.
    pub(super) token: Token,
}

/// How a client is told to take the token from a variable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    /// A header `Authorization`, in which `VARIABLE` stands for the name of the variable.
    Header(&'static str),
    /// The field `bearer_token_env_var`.
    Field,
    /// Headers inside `requestOptions`.
    RequestOptions(&'static str),
    /// There is no way; the client asks for it, or its user adds it.
    None,
}

/// Every field that says how a server is reached, in any client. Those that a new entry does not have are removed from an
/// old one; all other fields of an old entry are its user's and stay.
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

/// What has to happen to an entry that is there.
#[derive(Debug, PartialEq)]
pub(super) struct Difference<'e> {
    /// Fields of another way to reach the server.
    pub(super) remove: Vec<&'static str>,
    /// Fields that are missing or have another value.
    pub(super) set: Vec<(&'e str, &'e Value)>,
}

/// What turns `found` into an entry with the fields of `wanted`.
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

/// `found` after its difference to `wanted` has been made up for.
pub(super) fn merged(found: &Entry, wanted: &Entry) -> Entry {
    let difference = difference(found, wanted);
    let mut merged: Entry = found.clone();
    merged.retain(|field, _| !difference.remove.contains(&field.as_str()));
    for (field, value) in difference.set {
        merged.insert(field.to_owned(), value.clone());
    }
    merged
}
