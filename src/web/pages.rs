//! The pages of a repository. Most show what an operation answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use maud::{Markup, html};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::frame::{self, Content};
use super::overview::{fleet_page, index_page, life_page, refs_page};
use super::review::{LinkBase, review_body};
use super::sink::rows;
use super::url::{self, Target};
use super::{Answer, file};
use crate::history::message_text;
use crate::model::count::count;
use crate::model::unprintable::visible;
use crate::model::{quoted, without_placeholders};
use crate::ops::picture::{Edge, Node, columns};
use crate::ops::{
    About, Ask, Blame, BlameRow, BlamedLine, EdgeOut, Facets, FileSelection, Graph, GraphRow, History, Op, Outline,
    Page, Question, Review, ReviewFacts, Row, Search, SideOut, Symbol, file_links, life_picture,
};
use crate::query::{Source, day, timestamp};
use crate::session::{OpError, Result};

/// Maximum number of boxes in a column of a picture.
const MAX_BOXES: usize = 20;
/// Maximum number of changes on the page of a definition, and the time for reading them. The page with all has more.
const N_CHANGES: usize = 10;
const HISTORY_TIME: Duration = Duration::from_millis(5);
/// Default maximum number of commits of a history, and the number that its picture shows.
const MAX_COMMITS: usize = 50;
const MAX_DRAWN: usize = 500;
/// Maximum number of folders and of languages to which a search can be narrowed.
const MAX_FACETS: usize = 12;
/// Default maximum number of definitions, files and tests of a review.
const MAX_REVIEWED: usize = 100;
/// Maximum number of rows of an outline.
const MAX_OUTLINED: usize = 1_500;
/// Limit on what `raw` sends, in bytes.
const MAX_RAW_BYTES: usize = 64 << 20;

/// Answers a request for a page of a repository.
pub(super) fn answer(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    let place = &target.place;
    let path = place.path.as_str();
    let name = target.parameter("name");
    let written = place.written();
    let id = || match name {
        Some(name) => format!("{written}#{name}"),
        None => written.clone(),
    };
    match target.page.as_str() {
        "tree" => tree(ask, target),
        "file" if path.is_empty() => tree(ask, target),
        "file" => file_page(ask, target),
        "raw" => raw(ask, path),
        "def" => definition(ask, target, &id()),
        "at" => simple::<Symbol>(
            ask,
            target,
            "Meaning",
            json!({"at": format!("{path}:{}", target.parameter("pos").unwrap_or_default())}),
        ),
        "search" => search(ask, target),
        "outline" => simple::<Outline>(
            &ask.limited(MAX_OUTLINED),
            target,
            "Outline",
            json!({"at": path, "view": target.parameter("view")}),
        ),
        "history" => {
            let of = if path.is_empty() { ".".to_owned() } else { id() };
            history(ask, target, json!({"target": of}))
        }
        "blame" => simple::<Blame>(
            ask,
            target,
            "Blame",
            json!({"target": id(), "by": target.parameter("by")}),
        ),
        "graph" => {
            let op = target.parameter("op").unwrap_or("callers");
            let depth = target.parameter("depth").and_then(|depth| depth.parse::<u32>().ok());
            simple::<Graph>(
                ask,
                target,
                &format!("Graph: {op}"),
                json!({"op": op, "target": id(), "depth": depth, "candidates": true}),
            )
        }
        "review" => review(ask, target),
        "life" => life_page(ask, target),
        "index" => index_page(ask, target),
        "refs" => refs_page(ask, target),
        _ => Err(OpError::not_found(
            format!("no page is named {}", target.page),
            "begin at /",
        )),
    }
}

/// Answers a request for a page about all repositories of a fleet.
pub(super) fn answer_of_fleet(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    match target.page.as_str() {
        "" => fleet_page(ask, target),
        "search" => search(ask, target),
        "graph" => {
            let op = target.parameter("op").unwrap_or("callers");
            let of = target.parameter("target").unwrap_or_default();
            let repos = target.parameter("repos").map(|names| vec![names]);
            let parameters = json!({"op": op, "target": of, "repos": repos, "candidates": true});
            simple::<Graph>(ask, target, &format!("Graph: {op} of {of}"), parameters)
        }
        _ => Err(OpError::not_found(format!("no such page: {}", target.page), "open /")),
    }
}

/// Returns a request for an operation. Parameters that are null are left out.
pub(super) fn request<O: DeserializeOwned>(mut parameters: Value) -> Result<O> {
    if let Value::Object(given) = &mut parameters {
        given.retain(|_, value| !value.is_null());
    }
    Ok(serde_json::from_value(parameters)?)
}

/// Answers with the rows of an operation.
fn simple<O: Op + DeserializeOwned>(ask: &Ask<'_>, target: &Target, title: &str, parameters: Value) -> Result<Answer> {
    let page = request::<O>(parameters)?.run(&ask.limited_to(target.limit()))?;
    answered(ask, target, title, page, |_| views(target))
}

/// Answers with the rows of a page, below what `above` returns.
fn answered<F: Serialize, R: Row>(
    ask: &Ask<'_>,
    target: &Target,
    title: &str,
    page: Page<F, R>,
    above: impl FnOnce(&Page<F, R>) -> Markup,
) -> Result<Answer> {
    if target.parameter("format") == Some("json") {
        return json_of(page.into_json(ask.call.began.elapsed().as_secs_f64() * 1e3)?);
    }
    let body = html! { (above(&page)) (rows(target, &page)) };
    let about = if target.place.path.is_empty() {
        String::new()
    } else {
        format!(" of {}", about(target))
    };
    shown(target, format!("{title}{about}"), body, page.provenance)
}

/// The other views of a blame.
fn views(target: &Target) -> Markup {
    let link = target.link("blame", &target.place.revision, &target.place.path);
    let views = [("definition", "symbol"), ("line", "line"), ("owner", "owner")];
    html! {
        @if target.page == "blame" && target.parameter("name").is_none() {
            p { "by " @for (name, by) in views { a href=(format!("{link}?by={by}")) { (name) } " " } }
        }
    }
}

/// The commits of a target, with a picture of a definition or file.
fn history(ask: &Ask<'_>, target: &Target, parameters: Value) -> Result<Answer> {
    let limit = match target.limit() {
        Some(0) => usize::MAX,
        limit => limit.unwrap_or(MAX_COMMITS),
    };
    let mut page = request::<History>(parameters)?.run(&ask.limited(limit.max(MAX_DRAWN)))?;
    page.paging.limit = Some(limit);
    let link = |id: &str| Some(target.commit(id));
    answered(ask, target, "History", page, |page| {
        html! { @if let Some(picture) = life_picture(page, link) { figure { (picture) } } }
    })
}

fn about(target: &Target) -> String {
    match target.parameter("name") {
        Some(name) => format!("{name} in {}", target.place.path),
        None => target.place.path.clone(),
    }
}

pub(super) fn shown(
    target: &Target,
    title: String,
    body: Markup,
    provenance: Option<crate::ops::ProvenanceOut>,
) -> Result<Answer> {
    let permanent = permanent_link(target, provenance.as_ref());
    Ok(Answer::page(frame::page(
        target,
        &Content {
            title,
            body,
            provenance,
            permanent,
        },
    )))
}

pub(super) fn json_of(answer: serde_json::Map<String, Value>) -> Result<Answer> {
    let text = crate::model::unprintable::printable(serde_json::to_string(&answer)?);
    Ok(Answer::bytes("application/json", text.into_bytes()))
}

/// The folders and files directly in a folder, and the text of its README.
fn tree(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    let selection = FileSelection::default();
    let question = Question::new(ask, &About::unindexed_files(&selection))?;
    let path = target.place.path.as_str();
    let start = if path.is_empty() {
        String::new()
    } else {
        format!("{path}/")
    };
    let start = crate::model::without_placeholders(&start).into_owned();
    let (mut folders, mut files) = (BTreeMap::<String, usize>::new(), BTreeSet::new());
    for (_, file) in question.view().files() {
        let Some(rest) = file.path.strip_prefix(start.as_slice()) else {
            continue;
        };
        let rest = crate::model::with_placeholders(rest).into_owned();
        match rest.split_once('/') {
            Some((folder, _)) => *folders.entry(folder.to_owned()).or_default() += 1,
            None => {
                files.insert(rest);
            }
        }
    }
    if folders.is_empty() && files.is_empty() && !path.is_empty() {
        return match question.view().find_text(path) {
            Some(_) => file_page(ask, target),
            None => Err(missing(ask, target)),
        };
    }
    let revision = &target.place.revision;
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}/{name}")
        }
    };
    let readme = files
        .iter()
        .find(|name| name.to_ascii_lowercase().starts_with("readme"));
    let readme = match readme.and_then(|name| question.view().find_text(&below(name))) {
        Some(file) => match question.sources().reader().read(file)? {
            Source::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes[..bytes.len().min(64 << 10)]).into_owned()),
            _ => None,
        },
        None => None,
    };
    let body = html! {
        p {
            a href=(format!("{}?view=map", target.link("outline", revision, path))) { "most referred-to definitions" } " · "
            a href=(target.link("outline", revision, path)) { "outline" } " · "
            a href=(target.link("history", revision, path)) { "history" } " · "
            a href=(format!("{}?by=owner", target.link("blame", revision, path))) { "owners" } " · "
            a href=(target.link("life", revision, path)) { "life" }
        }
        ul.tree {
            @for (name, n) in &folders {
                li { a href=(target.link("tree", revision, &below(name))) { (url::shown(name)) "/" } " " span.faint { (count(*n, "file")) } }
            }
            @for name in &files { li { a href=(target.link("file", revision, &below(name))) { (url::shown(name)) } } }
        }
        @if let Some(text) = &readme { h2 { "README" } pre tabindex="0" { @for line in text.lines() { (visible(line)) "\n" } } }
    };
    let title = if path.is_empty() {
        target.repo.clone()
    } else {
        path.to_owned()
    };
    shown(target, title, body, Some(question.provenance_of_files()))
}

fn file_page(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    let path = target.place.path.as_str();
    let Some(links) = file_links(ask, path)? else {
        let selection = FileSelection::default();
        let question = Question::new(ask, &About::unindexed_files(&selection))?;
        let start = format!("{path}/");
        let is_folder = question
            .view()
            .files()
            .any(|(_, file)| file.path.starts_with(start.as_bytes()));
        return if is_folder {
            tree(ask, target)
        } else {
            Err(missing(ask, target))
        };
    };
    let wants_blame = target.parameter("blame").is_some();
    let blame = || request::<Blame>(json!({"target": target.place.written(), "by": "line"}))?.run(ask);
    let blame = wants_blame.then(blame);
    let lines: Option<Vec<&BlamedLine>> = blame.as_ref().and_then(|page| page.as_ref().ok()).map(|page| {
        let lines = page.rows.iter().filter_map(|row| match &row.row {
            BlameRow::Line(line) => Some(line),
            _ => None,
        });
        lines.collect()
    });
    let (value, text) = if wants_blame {
        ("", "without commits")
    } else {
        ("1", "commit of each line")
    };
    let body = html! {
        p { a href=(target.with("blame", value)) { (text) } }
        @if let Some(Err(problem)) = &blame { p.unknown { (visible(&problem.to_string())) } }
        (file::content(target, &links, lines.as_deref()))
    };
    shown(target, path.to_owned(), body, Some(links.provenance))
}

pub(super) fn missing(ask: &Ask<'_>, target: &Target) -> OpError {
    let bytes = crate::model::without_placeholders(&target.place.path);
    if ask.visibility().hides(&bytes) {
        return OpError::hidden(&target.place.path);
    }
    OpError::not_found(
        format!("{} is not in {}", about(target), target.place.revision),
        "its history says where it last was",
    )
}

/// The bytes of a file. Only pictures, by their first bytes, are not text.
fn raw(ask: &Ask<'_>, path: &str) -> Result<Answer> {
    const PICTURES: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"RIFF", "image/webp"),
    ];
    let selection = FileSelection::default();
    let question = Question::new(ask, &About::unindexed_files(&selection))?;
    let found = question.view().find_text(path);
    let found = found.map(|file| question.sources().reader().read(file)).transpose()?;
    let Some(Source::Bytes(bytes)) =
        found.filter(|source| !matches!(source, Source::Bytes(bytes) if bytes.len() > MAX_RAW_BYTES))
    else {
        return Err(OpError::not_found(
            format!("{path} cannot be shown"),
            "it is missing, hidden or too large",
        ));
    };
    let is_webp = bytes.get(8..12) == Some(b"WEBP".as_slice());
    let mut pictures = PICTURES
        .iter()
        .filter(|(start, kind)| bytes.starts_with(start) && (*kind != "image/webp" || is_webp));
    let kind = pictures.next().map_or("text/plain; charset=utf-8", |(_, kind)| kind);
    let mut answer = Answer::bytes(kind, bytes);
    answer.is_raw = true;
    Ok(answer)
}

fn search(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    let Some(query) = target.parameter("q") else {
        return shown(
            target,
            "Search".to_owned(),
            html! { p { "Type words, a name, a path or a question." } },
            None,
        );
    };
    let lists = |name: &str| target.parameter(name).map(|value| vec![value.to_owned()]);
    let repos = lists("repos").filter(|_| target.is_about_all());
    let parameters = json!({
        "query": query, "mode": target.parameter("mode"), "in": target.parameter("in"),
        "path": lists("path"), "lang": lists("lang"), "repos": repos,
    });
    let page = request::<Search>(parameters)?.run(&ask.limited_to(target.limit()))?;
    answered(ask, target, &format!("Search: {query}"), page, |page| {
        html! {
            @if target.fleet.is_some() && !target.is_about_all() {
                p { a href=(format!("/-/search?q={}", url::encoded(query, ""))) { "search all repositories" } }
            }
            @if let Some(facets) = page.facts.facets() { (narrowing(target, facets)) }
        }
    })
}

/// The folders and languages of all hits, each with a link to those in it.
fn narrowing(target: &Target, facets: &Facets) -> Markup {
    let kinds = [
        ("path", "folder", &facets.folders),
        ("lang", "language", &facets.languages),
    ];
    html! {
        nav aria-label="Narrow the search" {
            @for (name, what, values) in kinds {
                @let chosen = target.parameter(name);
                @if values.len() > 1 || chosen.is_some() {
                    p.facts {
                        (what) ": "
                        @if let Some(chosen) = chosen { b { (url::shown(chosen)) } " " a href=(target.with(name, "")) { "any " (what) } " " }
                        @for (value, n) in values.iter().take(MAX_FACETS).filter(|(value, _)| chosen != Some(value)) {
                            a href=(target.with(name, value)) { (url::shown(value)) } " " span.faint { (count(*n, "file")) } " "
                        }
                        @if values.len() > MAX_FACETS { (values.len() - MAX_FACETS) " more" }
                    }
                }
            }
        }
    }
}

/// A definition: its text, what calls it, what it calls, and its last changes.
fn definition(ask: &Ask<'_>, target: &Target, id: &str) -> Result<Answer> {
    let symbol = request::<Symbol>(json!({"id": id, "include": ["body", "docs"]}))?.run(ask)?;
    if symbol.rows.is_empty() {
        return Err(missing(ask, target));
    }
    if target.parameter("format") == Some("json") {
        return json_of(symbol.into_json(ask.call.began.elapsed().as_secs_f64() * 1e3)?);
    }
    let relation = |op: &str| request::<Graph>(json!({"op": op, "target": id, "candidates": true}))?.run(ask);
    // A type has users, but nothing calls it.
    let callers = relation("refs")?;
    let callees = relation("callees").ok();
    let history = request::<History>(json!({"target": id}))?.run(&ask.limited(N_CHANGES).hurried(HISTORY_TIME));
    let (path, name) = (&target.place.path, target.parameter("name").unwrap_or_default());
    let users = ends(id, &callers, |edge| edge.from.as_ref());
    let called = callees
        .as_ref()
        .map(|callees| ends(id, callees, |edge| edge.to.first()));
    let picture = picture(target, id, users, called.unwrap_or_default());
    let body = html! {
        p {
            @for op in ["callers", "implementations", "impact", "flow"] {
                a href=(format!("{}&op={op}", target.with_name("graph", path, name))) { (op) } " · "
            }
            a href=(target.with_name("history", path, name)) { "history" }
            @if target.fleet.is_some() {
                @let id = format!("{}:/{}", target.repo, quoted(&without_placeholders(id)));
                " · " a href=(format!("/-/graph?target={}", url::encoded(&id, ""))) { "callers in all repositories" }
            }
        }
        (picture)
        (rows(target, &symbol))
        h2 { "Uses of it" }
        (rows(target, &callers))
        @if let Some(callees) = &callees { h2 { "Calls in it" } (rows(target, callees)) }
        h2 { "Last changes" }
        @match &history {
            Ok(history) => {
                @let gaps = history.provenance.as_ref().map(|known| known.incomplete_because()).unwrap_or_default();
                @if gaps.is_empty() || !history.rows.is_empty() { (rows(target, history)) }
                @for gap in gaps { p.unknown { (visible(gap)) } }
            }
            Err(error) => { p.unknown { (visible(&error.to_string())) } }
        }
        p { a href=(target.with_name("history", path, name)) { "whole history" } }
    };
    shown(target, format!("{name} in {path}"), body, symbol.provenance)
}

/// The other ends of edges: the id of a definition, and true if one of the edges is certain.
type Ends = BTreeMap<String, bool>;

/// Collects the other ends of the edges of the definition `id`. Of several edges to one end, a certain one counts.
fn ends(id: &str, page: &crate::ops::PageOf<Graph>, end: impl Fn(&EdgeOut) -> Option<&String>) -> Ends {
    let mut ends = Ends::new();
    for row in &page.rows {
        if let GraphRow::Edge(edge) = &row.row
            && let Some(other) = end(edge).filter(|other| *other != id)
        {
            *ends.entry(other.clone()).or_default() |= edge.tier != "named";
        }
    }
    ends
}

/// Draws what uses a definition on its left, and what it calls on its right: the certain ones first.
fn picture(target: &Target, id: &str, callers: Ends, callees: Ends) -> Markup {
    let node = |id: &str| Node {
        href: Some(target.definition(id)),
        ..Node::of(id)
    };
    let sorted = |ends: Ends| {
        let mut ends: Vec<(String, bool)> = ends.into_iter().collect();
        ends.sort_by_key(|(_, is_sure)| !is_sure);
        ends
    };
    let (mut left, mut right) = (sorted(callers), sorted(callees));
    if left.is_empty() && right.is_empty() {
        return html! {};
    }
    let heading = |text: &str, n: usize| match n.saturating_sub(MAX_BOXES) {
        0 => text.to_owned(),
        more => format!("{text} ({more} more below)"),
    };
    let headings = [
        heading("used by", left.len()),
        "definition".to_owned(),
        heading("calls", right.len()),
    ];
    left.truncate(MAX_BOXES);
    right.truncate(MAX_BOXES);
    let to_it = left.iter().enumerate().map(|(row, (_, is_sure))| Edge {
        from: (1, 0),
        to: (0, row),
        is_sure: *is_sure,
    });
    let from_it = right.iter().enumerate().map(|(row, (_, is_sure))| Edge {
        from: (2, row),
        to: (1, 0),
        is_sure: *is_sure,
    });
    let edges: Vec<Edge> = to_it.chain(from_it).collect();
    let nodes = |ids: &[(String, bool)]| ids.iter().map(|(id, _)| node(id)).collect::<Vec<Node>>();
    let mut itself = node(id);
    itself.is_marked = true;
    let boxes = [nodes(&left), vec![itself], nodes(&right)];
    let title = "What uses the definition on the left, what it calls on the right; dashed lines are possible. The same is listed below";
    html! { figure { (columns(title, &headings.into_iter().zip(boxes).collect::<Vec<_>>(), &edges)) } }
}

fn review(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    let ends = target.parameter("from").zip(target.parameter("to"));
    let range = ends.map(|(from, to)| format!("{from}..{to}"));
    let range = range.unwrap_or_else(|| target.place.revision.clone());
    let range = Some(range).filter(|range| !range.is_empty() && range != "WORKTREE");
    let path = target.parameter("path").map(|path| vec![path]);
    let request: Review = request(json!({"range": &range, "diff": true, "path": path.unwrap_or_default()}))?;
    let page = request.run(&ask.limited(target.limit().unwrap_or(MAX_REVIEWED)))?;
    if target.parameter("format") == Some("json") {
        return json_of(page.into_json(ask.call.began.elapsed().as_secs_f64() * 1e3)?);
    }
    // Places are those of the newer state.
    let mut newer = target.clone();
    newer.place.revision.clone_from(&page.facts.to.reference);
    newer.page = "review".to_owned();
    let state = |side: &SideOut| match &side.commit {
        Some(commit) if !matches!(side.reference.as_str(), "WORKTREE" | "INDEX") => commit.clone(),
        _ => side.reference.clone(),
    };
    let (old, new) = (state(&page.facts.from), state(&page.facts.to));
    let base = LinkBase::own(newer.link("file", &new, ""), newer.link("file", &old, ""));
    let body = match &range {
        None if page.facts.files == 0 && target.parameter("path").is_none() => unchanged(ask, &newer, &page.facts),
        _ => review_body(&page, Some(&base)),
    };
    let title = format!("review {}", page.facts.range());
    let n_rows = page.rows.len();
    let commit = match range.as_deref().and_then(|range| range.split_once("^..")) {
        Some((parent, id)) if parent == id => commit_header(ask, &newer, id)?,
        _ => html! {},
    };
    let body = html! {
        (commit)
        (body)
        (ends_form(&newer, &page.facts))
        @if target.parameter("n").is_none() && n_rows >= MAX_REVIEWED { p { a href=(target.with_all()) { "show all" } } }
    };
    let permanent = Some(newer.review(&format!("{old}..{new}"), target.parameter("path")))
        .filter(|link| !link.contains("WORKTREE") && !link.contains("INDEX"));
    let content = Content {
        title,
        body,
        provenance: page.provenance,
        permanent,
    };
    Ok(Answer::page(frame::page(&newer, &content)))
}

/// Says that nothing differs from the main branch, with what can be reviewed instead.
fn unchanged(ask: &Ask<'_>, target: &Target, facts: &ReviewFacts) -> Markup {
    let workspace = &ask.session.workspace;
    let commit = |reference| Some(workspace.target(reference).ok().flatten()?.commit?.to_string());
    let (head, start) = (commit("HEAD"), facts.from.commit.as_ref().zip(facts.since));
    let link = |what: &str, id: &str| html! { li { a href=(target.commit(id)) { (what) ", " (id[..10]) } } };
    html! {
        p { "Nothing changed: the files on disk are those of the last commit" @if let Some(branch) = facts.since { ", and differ in nothing from " (branch) } "." }
        p { "Review instead:" }
        ul {
            @if let Some(id) = &head { (link("the last commit", id)) }
            @if let Some((id, branch)) = start.filter(|(id, _)| head.as_ref() != Some(id)) {
                (link(&format!("the commit at which it left {branch}"), id))
            }
            li { a href=(target.link("refs", "", "")) { "what changed since a tag or on a branch" } }
        }
    }
}

/// The author, date and message of a commit, and the link to its parent.
fn commit_header(ask: &Ask<'_>, target: &Target, id: &str) -> Result<Markup> {
    let workspace = &ask.session.workspace;
    let Some(commit) = workspace.target(id)?.and_then(|found| found.commit) else {
        return Ok(html! {});
    };
    let info = workspace.repository.reader().commit(commit)?;
    let encoding = info.encoding.as_ref().map(|name| name.as_slice());
    let message = message_text(&info.message, encoding);
    let author = message_text(&info.author.name, encoding);
    Ok(html! {
        p.faint {
            (visible(&author)) ", " (day(&timestamp(info.author.time, info.author.utc_offset)))
            @for parent in &info.parents { " · " a href=(target.commit(&parent.to_string())) { "parent " (parent.to_string()[..10]) } }
        }
        pre tabindex="0" { @for line in message.trim_end().lines() { (visible(line)) "\n" } }
    })
}

/// A form for the review of other states.
fn ends_form(target: &Target, facts: &ReviewFacts) -> Markup {
    html! {
        form action=(target.page("review")) {
            label { "from " input name="from" value=(visible(&facts.from.reference)); }
            label { " to " input name="to" value=(visible(&facts.to.reference)); }
            label { " path " input name="path" value=[target.parameter("path").map(visible)]; }
            " " button { "Review" }
        }
    }
}

/// Returns the link to the page at the full commit id, if it is about a commit.
fn permanent_link(target: &Target, provenance: Option<&crate::ops::ProvenanceOut>) -> Option<String> {
    let is_moving = target.is_about_all() || matches!(target.place.revision.as_str(), "WORKTREE" | "INDEX");
    let commit = provenance
        .and_then(crate::ops::ProvenanceOut::commit)
        .filter(|_| !is_moving)?;
    Some(target.at(commit))
}
