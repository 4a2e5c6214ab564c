//! Routes of web frameworks: which function answers a request for a path.

mod text;

use std::collections::HashMap;

use rayon::prelude::*;
use serde::Serialize;

use self::text::{
    IN_LISTS, VERBS, action, arguments, first_path, fits, is_named_like_a_route, is_verb, joined, method_of, methods,
    prefixes, strings,
};
use super::Lookup;
use super::facts::{GraphFacts, RouteFacts};
use super::places::{Places, Wish};
use super::rows::{GraphRow, name_of};
use super::unreferenced::def_of;
use crate::extract::{self, Definition, Reference, ReferenceKind};
use crate::link::{DefId, Linker};
use crate::model::count::count;
use crate::ops::op::Page;
use crate::ops::paths::path_of;
use crate::ops::sink::{Recorded, Sink, Style};
use crate::query::{FoundDefinition, Source, Sources};
use crate::session::Result;
use crate::snapshot::FileId;

/// Maximum number of calls in the arguments of a route, and of resources in one call.
const MAX_NESTED: usize = 32;
/// Maximum number of references in arguments among which what answers is sought.
const MAX_TRIED: usize = 32;
/// Maximum number of requests that are listed for a route.
const MAX_REQUESTS: usize = 50;
/// What begins a function without a name, by language.
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("python", &["lambda"]),
    ("javascript", &["=>", "function"]),
    ("typescript", &["=>", "function"]),
    ("tsx", &["=>", "function"]),
    ("csharp", &["=>", "delegate"]),
    ("go", &["func("]),
    ("php", &["function", "fn (", "fn("]),
    ("ruby", &["{ |", " do", "->"]),
    ("rust", &["|"]),
    ("java", &["->"]),
    ("kotlin", &[" {"]),
    ("scala", &[" {", "=>"]),
    ("swift", &[" {"]),
    ("elixir", &["fn "]),
    ("dart", &["=>", " {"]),
    ("lua", &["function"]),
];
/// The routes of a resource of Rails: method, the path after its name, action.
const RESOURCES: &[(&str, &str, &str)] = &[
    ("GET", "", "index"),
    ("POST", "", "create"),
    ("GET", "/new", "new"),
    ("GET", "/:id/edit", "edit"),
    ("GET", "/:id", "show"),
    ("PATCH", "/:id", "update"),
    ("DELETE", "/:id", "destroy"),
];
/// Names of annotations of a class that begin the paths of its methods.
const PREFIXES: &[&str] = &[
    "Controller",
    "RequestMapping",
    "Route",
    "RoutePrefix",
    "Path",
    "JsonController",
];

/// A route, and what answers it.
#[derive(Debug, Serialize)]
pub(crate) struct RouteOut {
    path: String,
    line: u32,
    kind: &'static str,
    /// In upper case; `ANY` if all are answered or they are not known.
    method: String,
    route: String,
    /// What answers: `definition`, `function` (without a name) or `unknown`.
    answer: &'static str,
    /// The ids of the definitions that answer.
    pub(super) handlers: Vec<String>,
    /// Calls elsewhere that may request the route.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RequestOut>,
}

/// A call with the path of a route.
#[derive(Clone, Debug, Serialize)]
struct RequestOut {
    path: String,
    line: u32,
    text: String,
}

impl RouteOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Path, &format!("{}:{}", self.path, self.line));
        out.span(Style::Fact, &format!(" {} ", self.method));
        out.plain(&self.route);
        let names: Vec<&str> = self.handlers.iter().map(|id| name_of(id)).collect();
        out.plain(" → ");
        match names.as_slice() {
            [] if self.answer == "function" => out.span(Style::Fact, "a function without a name"),
            [] => out.span(Style::Fact, "not known here"),
            names => out.span(Style::Name, &names.join(" | ")),
        }
        out.end();
        for request in &self.requests {
            out.plain("    ");
            out.span(Style::Path, &format!("{}:{}", request.path, request.line));
            out.span(Style::Fact, " request ");
            out.line(&request.text);
        }
    }
}

/// What answers a route.
#[derive(Clone)]
enum Handler {
    Definitions(Vec<DefId>),
    /// A function without a name.
    Inline,
    /// A name in a string, such as `users#show`.
    Named(String),
    /// A method that Rails calls by a convention, if it is there.
    Convention(String),
    /// Something that is not in the repository, or is not named beside the path.
    Unknown,
}

impl Handler {
    fn definitions(&self) -> &[DefId] {
        match self {
            Self::Definitions(ends) => ends,
            _ => &[],
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Definitions(_) => "definition",
            Self::Inline => "function",
            Self::Named(_) | Self::Convention(_) | Self::Unknown => "unknown",
        }
    }
}

/// A call, decorator or annotation with the path of a route.
struct Found {
    file: FileId,
    at: u32,
    method: String,
    route: String,
    /// `None` for a call that requests a path.
    handler: Option<Handler>,
}

/// A path, and what answers requests for it with each method; nothing if it is requested.
type Answers = (String, Vec<(String, Option<Handler>)>);

/// A file in which routes are sought.
struct Reading<'a> {
    linker: &'a Linker<'a>,
    file: FileId,
    language: &'static str,
    /// True for a file of Django, Rails or Laravel that lists routes.
    is_list: bool,
    bytes: &'a [u8],
    definitions: Vec<Definition>,
    references: &'a [Reference],
    /// The paths that begin those of routers, by the names of variables that hold the routers.
    prefixes: HashMap<String, String>,
}

impl Lookup<'_> {
    /// Lists routes by file and line; with candidates also the calls that may request them.
    pub(super) fn routes(&self) -> Result<Page<GraphFacts, GraphRow>> {
        let files = self.wanted_files();
        let (sources, linker) = (self.question.sources(), self.linker);
        let found = files.par_iter().map(|file| routes_in(&sources, linker, *file));
        let found: Vec<Found> = found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        let (mut routes, mut requests) = (Vec::new(), Vec::new());
        let mut known = HashMap::new();
        for mut one in found {
            let answer = match one.handler.take() {
                None => {
                    requests.push(one);
                    continue;
                }
                Some(Handler::Named(name)) => match self.named(&name, &mut known)? {
                    ends if ends.is_empty() => Handler::Unknown,
                    ends => Handler::Definitions(ends),
                },
                Some(Handler::Convention(name)) => match self.named(&name, &mut known)? {
                    ends if ends.is_empty() => continue,
                    ends => Handler::Definitions(ends),
                },
                Some(answer) => answer,
            };
            routes.push((one, answer));
        }
        routes.sort_by_key(|(one, _)| (one.file, one.at));
        let n_routes = routes.len();
        let mut wish = Wish::default();
        let of_page = self.part.of(&routes);
        for (one, answer) in &of_page {
            wish.position(one.file, one.at);
            answer.definitions().iter().for_each(|of| wish.definition(*of));
        }
        let has_requests = self.request.candidates;
        let requests = if has_requests { requests } else { Vec::new() };
        requests.iter().for_each(|one| wish.position(one.file, one.at));
        let places = wish.read(&self.question.sources())?;
        let rows = of_page.into_iter();
        let rows = rows
            .map(|(one, answer)| GraphRow::Route(self.route(one, answer, &requests, &places)))
            .collect();
        let mut line = count(n_routes, "route");
        if !has_requests {
            line += &format!(" · calls that may request them{}", self.how_to_list_candidates());
        }
        let facts = RouteFacts { total: n_routes };
        let mut page = self.page(rows, n_routes, GraphFacts::Routes(facts));
        page.head = Recorded::of(|out| out.whole_line(&line));
        let note = if n_routes == 0 {
            "there can be routes in forms that are not recognised"
        } else {
            "paths are as written at each route: prefixes of blueprints, groups and mounted routers are not added"
        };
        page.notes.push(note.to_owned());
        Ok(page)
    }

    /// Finds the definitions with a qualified name.
    fn named(&self, name: &str, known: &mut HashMap<String, Vec<DefId>>) -> Result<Vec<DefId>> {
        if let Some(found) = known.get(name) {
            return Ok(found.clone());
        }
        let found = self.definitions(name)?.definitions;
        let is_it = |found: &&FoundDefinition| name.ends_with(&found.name);
        let found: Vec<DefId> = found.iter().filter(is_it).map(def_of).collect();
        known.insert(name.to_owned(), found.clone());
        Ok(found)
    }

    fn route(&self, one: &Found, answer: &Handler, requests: &[Found], places: &Places) -> RouteOut {
        let (line, _) = places.line(one.file, one.at);
        let view = self.question.view();
        let is_request = |request: &&Found| {
            let is_method = [one, request].iter().any(|one| one.method == "ANY") || one.method == request.method;
            is_method && fits(&one.route, &request.route)
        };
        let request = |request: &Found| {
            let (line, text) = places.line(request.file, request.at);
            RequestOut {
                path: path_of(view, request.file),
                line,
                text,
            }
        };
        RouteOut {
            path: path_of(view, one.file),
            line,
            kind: "route",
            method: one.method.clone(),
            route: one.route.clone(),
            answer: answer.name(),
            handlers: answer
                .definitions()
                .iter()
                .filter_map(|of| places.definition(*of))
                .map(|found| found.id.clone())
                .collect(),
            requests: requests
                .iter()
                .filter(is_request)
                .take(MAX_REQUESTS)
                .map(request)
                .collect(),
        }
    }
}

fn routes_in(sources: &Sources<'_>, linker: &Linker<'_>, file: FileId) -> Result<Vec<Found>> {
    let language = extract::language(sources.view().lang(file)).filter(|language| language.is_code());
    let references = linker.references(file).unwrap_or_default();
    let mut named = references
        .iter()
        .filter(|reference| is_named_like_a_route(&reference.name))
        .peekable();
    let (Some(language), Some(_)) = (language, named.peek()) else {
        return Ok(Vec::new());
    };
    let Source::Bytes(bytes) = sources.reader().read(file)? else {
        return Ok(Vec::new());
    };
    let path = path_of(sources.view(), file);
    let reading = Reading {
        linker,
        file,
        language: language.name,
        is_list: match language.name {
            "python" => memchr::memmem::find(&bytes, b"urlpatterns").is_some(),
            "ruby" => path.ends_with("routes.rb") || path.contains("config/routes/"),
            "php" => path.split('/').any(|part| part == "routes"),
            _ => false,
        },
        bytes: &bytes,
        definitions: linker.definitions(file).unwrap_or_default(),
        references: &references,
        prefixes: prefixes(&bytes),
    };
    Ok(named.flat_map(|reference| reading.found(reference)).collect())
}

impl Reading<'_> {
    /// Returns the routes that a reference declares, or the request that it makes.
    fn found(&self, reference: &Reference) -> Vec<Found> {
        if IN_LISTS.contains(&reference.name.as_str()) && !self.is_list {
            return Vec::new();
        }
        if matches!(reference.name.as_str(), "resources" | "resource") {
            return self.resources(reference);
        }
        let at = reference.range.start;
        let found = match self.marked(at) {
            Some(index) => self.mark(reference, index),
            None if reference.kind == ReferenceKind::Call => self.call(reference),
            None => None,
        };
        let (route, answers) = found.unwrap_or_default();
        let one = |(method, handler)| Found {
            file: self.file,
            at,
            method,
            route: route.clone(),
            handler,
        };
        answers.into_iter().map(one).collect()
    }

    /// Returns the path that a mark gives the definition behind it, and the definition for each method.
    fn mark(&self, reference: &Reference, index: u32) -> Option<Answers> {
        let definition = &self.definitions[index as usize];
        let arguments = arguments(self.bytes, reference.range.end as usize);
        let written = strings(arguments).first().map_or("", |(_, text)| *text);
        // Other marks, such as `@get` of a property, have no path.
        let is_route = written.starts_with('/') || reference.name.starts_with(char::is_uppercase);
        if definition.kind.is_type() || !is_route {
            return None;
        }
        let method = match reference.name.as_str() {
            "Path" => self.method_beside(definition)?,
            name => method_of(name),
        };
        let prefix = match self.prefix(reference) {
            Some(prefix) => prefix.clone(),
            None => self.prefix_of_type(definition),
        };
        let of = DefId { file: self.file, index };
        let methods = methods(method, arguments).into_iter();
        let answers = methods.map(|method| (method, Some(Handler::Definitions(vec![of]))));
        Some((joined(&prefix, written), answers.collect()))
    }

    /// Returns the path that a call names, and what answers for each method; nothing for a request.
    fn call(&self, reference: &Reference) -> Option<Answers> {
        let arguments = arguments(self.bytes, reference.range.end as usize);
        let (method, written, after) = first_path(arguments, method_of(&reference.name))?;
        if !written.starts_with('/') && !self.is_list && !written.contains("://") {
            return None;
        }
        let route = match self.prefix(reference) {
            Some(prefix) => joined(prefix, written),
            None if self.is_list => joined("", written),
            None => written.to_owned(),
        };
        let nested = if is_verb(&reference.name) {
            Vec::new()
        } else {
            self.nested(after)
        };
        if !nested.is_empty() {
            return Some((route, nested));
        }
        // Another host answers.
        let handler = self.handler(after).filter(|_| !written.contains("://"));
        let handler = handler.or_else(|| self.is_list.then_some(Handler::Unknown));
        if handler.is_none() && !is_verb(&reference.name) {
            return None;
        }
        let methods = methods(method, arguments).into_iter();
        Some((route, methods.map(|method| (method, handler.clone())).collect()))
    }

    /// Returns the path with which a router begins.
    fn prefix(&self, reference: &Reference) -> Option<&String> {
        self.prefixes.get(reference.qualifier.as_ref()?)
    }

    /// Returns the routes that Rails gives resources, with the actions that answer them.
    fn resources(&self, reference: &Reference) -> Vec<Found> {
        if self.language != "ruby" {
            return Vec::new();
        }
        let text = String::from_utf8_lossy(arguments(self.bytes, reference.range.end as usize)).into_owned();
        let names = text.split(',').map_while(|name| name.trim().strip_prefix(':'));
        let names = names.map(|name| name.split_whitespace().next().unwrap_or_default().to_owned());
        let names = names.take(MAX_NESTED);
        let one = |name: String| {
            RESOURCES.iter().filter_map(move |(method, rest, action)| {
                let handler = Handler::Convention(self::action(&format!("{name}#{action}"))?);
                Some(Found {
                    file: self.file,
                    at: reference.range.start,
                    method: (*method).to_owned(),
                    route: format!("/{name}{rest}"),
                    handler: Some(handler),
                })
            })
        };
        names.flat_map(one).collect()
    }

    /// Returns the definition in front of which a decorator, annotation or attribute is.
    fn marked(&self, at: u32) -> Option<u32> {
        let last = self
            .definitions
            .partition_point(|one| one.range.start <= at)
            .checked_sub(1)?;
        (at < self.definitions[last].signature.start).then_some(last as u32)
    }

    /// Returns the method that another annotation of a definition names.
    fn method_beside(&self, definition: &Definition) -> Option<String> {
        let is_method = |name: &str| is_verb(name) && name.bytes().all(|byte| byte.is_ascii_uppercase());
        let mut beside = self.marks_of(definition).iter().filter(|mark| is_method(&mark.name));
        beside.next().map(|mark| mark.name.clone())
    }

    fn marks_of(&self, definition: &Definition) -> &[Reference] {
        self.between(definition.range.start, definition.signature.start)
    }

    /// Returns the start of the paths of the methods of the type around a definition.
    fn prefix_of_type(&self, definition: &Definition) -> String {
        let Some(outer) = definition.container.map(|outer| &self.definitions[outer as usize]) else {
            return String::new();
        };
        let mut marks = self
            .marks_of(outer)
            .iter()
            .filter(|mark| PREFIXES.contains(&mark.name.as_str()));
        let written = marks.find_map(|mark| {
            let strings = strings(arguments(self.bytes, mark.range.end as usize));
            strings.first().map(|(_, text)| (*text).to_owned())
        });
        let name = outer.name.strip_suffix("Controller").unwrap_or(&outer.name);
        written.unwrap_or_default().replace("[controller]", name)
    }

    /// Returns the references in a part of the file.
    fn inside(&self, part: &[u8]) -> &[Reference] {
        let start = part.as_ptr() as usize - self.bytes.as_ptr() as usize;
        self.between(start as u32, (start + part.len()) as u32)
    }

    fn between(&self, start: u32, end: u32) -> &[Reference] {
        let at = |position: u32| self.references.partition_point(|one| one.range.start < position);
        &self.references[at(start)..at(end)]
    }

    /// Returns the handlers of the calls for single methods in arguments, as in `.route("/", get(list).post(create))`.
    fn nested(&self, part: &[u8]) -> Vec<(String, Option<Handler>)> {
        let calls = self
            .inside(part)
            .iter()
            .filter(|inner| VERBS.contains(&inner.name.as_str()))
            .take(MAX_NESTED);
        let handlers = calls.filter_map(|call| {
            let handler = self.handler(arguments(self.bytes, call.range.end as usize))?;
            Some((method_of(&call.name), Some(handler)))
        });
        handlers.collect()
    }

    /// Returns what answers a route, as the arguments after its path say.
    fn handler(&self, part: &[u8]) -> Option<Handler> {
        let marks = FUNCTIONS.iter().find(|(language, _)| *language == self.language);
        let is_there = |mark: &&str| memchr::memmem::find(part, mark.as_bytes()).is_some();
        if marks.is_some_and(|(_, marks)| marks.iter().any(is_there)) {
            return Some(Handler::Inline);
        }
        let linker = self.linker;
        let can_answer = |of: &DefId| {
            let definition = linker.definition(*of);
            definition.is_some_and(|of| of.kind.is_callable() || of.kind.is_type())
        };
        // In PHP, members of values are arguments.
        let is_argument = |inner: &Reference| {
            self.language == "php" && matches!(inner.kind, ReferenceKind::Member | ReferenceKind::Call)
        };
        let mut ends = self.inside(part).iter().rev().take(MAX_TRIED).filter_map(|inner| {
            if is_argument(inner) {
                return None;
            }
            let site = linker.site_at(self.file, inner.range.start)?;
            let targets: Vec<DefId> = site.targets.into_iter().filter(can_answer).collect();
            (targets.len() == 1 || site.tier.is_sure() && !targets.is_empty()).then_some(targets)
        });
        let strings = strings(part);
        let Some(targets) = ends.next() else {
            let mut named = strings.iter().filter_map(|(_, text)| action(text));
            return named.next().map(Handler::Named);
        };
        // A type with the name of one of its methods: `[Users::class, 'show']`, `Users, :show`.
        let text = String::from_utf8_lossy(part);
        let atoms = text.split(':').skip(1);
        let atoms = atoms.map(|rest| {
            rest.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .next()
                .unwrap_or_default()
        });
        let mut names = strings.iter().map(|(_, text)| *text).chain(atoms);
        let methods = names.find_map(|name| {
            let found = targets.iter().flat_map(|of| linker.own_members(*of, name));
            Some(found.collect::<Vec<_>>()).filter(|found| !found.is_empty())
        });
        Some(Handler::Definitions(methods.unwrap_or(targets)))
    }
}
