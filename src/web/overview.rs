//! The pages about a whole repository: sizes and ages of its files, what is indexed, and how to use the pages.

use std::cmp::Reverse;

use maud::{Markup, html};
use serde_json::json;

use super::Answer;
use super::frame;
use super::pages::{json_of, missing, request, shown};
use super::sink::rows;
use super::url::Target;
use crate::config::Link;
use crate::git::{Ref, RefKind};
use crate::model::count::count;
use crate::model::unprintable::visible;
use crate::model::with_placeholders;
use crate::ops::picture::{Bar, Cell, bars, treemap};
use crate::ops::{Ask, FileLife, Graph, LanguageCoverage, Op as _, Status, life};
use crate::query::day;
use crate::session::Result;

/// Maximum number of files in the picture, and in the table.
const MAX_CELLS: usize = 150;
const MAX_HOTSPOTS: usize = 30;
/// Maximum number of branches and of tags that are listed.
const MAX_REFS: usize = 1_000;
/// Maximum number of repositories that are listed.
const MAX_REPOSITORIES: usize = 500;
/// Number of shades of the picture.
const SHADES: usize = 5;

/// The files of a folder by their size and last change, and those that are long and change often.
pub(super) fn life_page(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    let folder = &target.place.path;
    let life = life(ask, folder, MAX_CELLS)?;
    if life.files.is_empty() && !folder.is_empty() {
        return Err(missing(ask, target));
    }
    let mut files: Vec<&FileLife> = life.files.iter().filter(|file| file.n_lines > 0).collect();
    files.sort_by_key(|file| (Reverse(file.n_lines), &file.path));
    let mut times: Vec<Option<&str>> = files.iter().map(|file| file.last_change.as_deref()).collect();
    times.sort_unstable();
    let cell = |file: &&FileLife| Cell {
        label: file.path.rsplit('/').next().unwrap_or_default().to_owned(),
        title: format!("{}: {}", file.path, facts(file)),
        href: target.file(&file.path, 0),
        size: file.n_lines,
        shade: times.partition_point(|time| *time < file.last_change.as_deref()) * SHADES / times.len(),
    };
    let cells: Vec<Cell> = files.iter().take(MAX_CELLS).map(cell).collect();
    let mut hotspots = files.clone();
    hotspots.sort_by_key(|file| (Reverse(file.heat()), &file.path));
    hotspots.retain(|file| file.n_changes > 0);
    hotspots.truncate(MAX_HOTSPOTS);
    let n_lines: u64 = files.iter().map(|file| file.n_lines).sum();
    let body = html! {
        p { (count(files.len(), "file")) ", " (count(n_lines as usize, "line")) }
        @if !cells.is_empty() {
            p.faint {
                "Files by their number of lines; the darker, the later changed."
                @if files.len() > MAX_CELLS { " The " (MAX_CELLS) " longest are shown." }
            }
            figure { (treemap("Files by their number of lines; darker ones changed later", &cells)) }
        }
        @if !hotspots.is_empty() {
            h2 { "Long files that change often" }
            p.faint {
                "Commits and dates are those of each file's history: under its earlier paths, too, merges only if they differ from all parents, with the author's date."
            }
            div.wide {
                table {
                    thead { tr { th { "file" } th { "lines" } th { "commits" } th { "last change" } } }
                    tbody {
                        @for file in hotspots {
                            tr {
                                td { a href=(target.file(&file.path, 0)) { (visible(&file.path)) } }
                                td { (file.n_lines) }
                                td { (file.n_changes) }
                                td { (file.last_change.as_deref().map(day).unwrap_or_default()) }
                            }
                        }
                    }
                }
            }
        }
    };
    let title = if folder.is_empty() {
        "Life".to_owned()
    } else {
        format!("Life of {folder}")
    };
    shown(target, title, body, Some(life.provenance))
}

fn facts(file: &FileLife) -> String {
    let changes = count(file.n_changes, "commit");
    let last = file.last_change.as_deref();
    let last = last.map_or_else(String::new, |last| format!(", last on {}", day(last)));
    format!("{}, {changes}{last}", count(file.n_lines as usize, "line"))
}

/// What is indexed, and how many references are resolved.
pub(super) fn index_page(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    // Indexes what is not indexed.
    let stats = request::<Graph>(json!({"op": "stats"}))?.run(ask)?;
    let status = request::<Status>(json!({}))?.run(ask)?;
    if target.parameter("format") == Some("json") {
        let took = ask.call.began.elapsed().as_secs_f64() * 1e3;
        let parts = [("status", status.into_json(took)?), ("stats", stats.into_json(took)?)];
        let parts = parts.map(|(name, part)| (name.to_owned(), serde_json::Value::Object(part)));
        return json_of(parts.into_iter().collect());
    }
    let coverage = &status.facts.coverage;
    let body = html! {
        @if !coverage.is_empty() {
            p.faint { "Files by language: the filled part of a bar is indexed." }
            figure tabindex="0" { (bars("Files by language, indexed or skipped by reason", &coverage_bars(coverage))) }
        }
        (rows(target, &status))
        h2 { "References" }
        (rows(target, &stats))
    };
    shown(target, "Index".to_owned(), body, stats.provenance)
}

/// Returns a bar for each language: the indexed files, then those that are skipped for each reason.
fn coverage_bars(coverage: &[LanguageCoverage]) -> Vec<Bar> {
    let parts = |language: &LanguageCoverage| {
        let skipped = language
            .skipped
            .iter()
            .map(|(reason, n)| (reason.replace('_', " "), *n));
        std::iter::once(("indexed".to_owned(), language.indexed))
            .chain(skipped)
            .collect()
    };
    let bar = |language: &LanguageCoverage| (language.name.to_owned(), parts(language));
    coverage.iter().map(bar).collect()
}

/// The repositories of a fleet.
pub(super) fn fleet_page(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    let workspace = &ask.session.workspace;
    let wanted = target.parameter("name").unwrap_or_default();
    let mut links = workspace.config.links.all();
    links.retain(|link| link.name.contains(wanted));
    let stored = |link: &Link| match workspace.fleet.as_ref()?.recorded(&link.name) {
        Some(recorded) => Some(count(recorded.n_files as usize, "file")),
        None => Some("not stored".to_owned()),
    };
    let body = html! {
        @if links.len() > MAX_REPOSITORIES || !wanted.is_empty() {
            form action="/" {
                label { "Name " input name="name" value=(visible(wanted)); }
                " " button { "Select" }
            }
        }
        p { (count(links.len(), "repository")) }
        ul.tree {
            @for link in links.iter().take(MAX_REPOSITORIES) {
                @let (repo, revision) = (link.name.clone(), link.reference.as_deref().unwrap_or("HEAD"));
                @let shown = Target { repo, ..Target::default() };
                @let groups = workspace.config.links.scopes_of(&link.name);
                li {
                    a href=(shown.link("tree", revision, "")) { (visible(&link.name)) } " "
                    span.faint {
                        (stored(link).unwrap_or_default())
                        @if !groups.is_empty() { " · " (visible(&groups.join(", "))) }
                    }
                }
            }
        }
        @if links.len() > MAX_REPOSITORIES { p.faint { (links.len() - MAX_REPOSITORIES) " more" } }
    };
    shown(target, "Repositories".to_owned(), body, None)
}

/// The branches and tags.
pub(super) fn refs_page(ask: &Ask<'_>, target: &Target) -> Result<Answer> {
    let mut refs = ask.session.workspace.repository.refs()?;
    refs.sort_by_cached_key(|one| (one.kind, numbers_apart(&one.name.to_string())));
    refs.reverse();
    let path = target.place.path.as_str();
    let page = if path.is_empty() { "tree" } else { "file" };
    let of_kind = |kind: RefKind| refs.iter().filter(move |one| one.kind == kind);
    let kinds = [
        ("Branches", RefKind::Branch),
        ("Tags", RefKind::Tag),
        ("Branches of other clones", RefKind::Remote),
    ];
    let name = |one: &Ref| with_placeholders(one.short_name()).into_owned();
    // What a branch adds, and what was changed since a tag.
    let what = |kind: RefKind| {
        if kind == RefKind::Tag {
            "changes since"
        } else {
            "changes"
        }
    };
    let changes = |one: &Ref| {
        let range = match one.kind {
            RefKind::Tag => format!("{}..HEAD", name(one)),
            _ => format!("HEAD...{}", name(one)),
        };
        target.review(&range, Some(path).filter(|path| !path.is_empty()))
    };
    let body = html! {
        p {
            a href=(target.link(page, "WORKTREE", path)) { "WORKTREE" } " · "
            a href=(target.link(page, "HEAD", path)) { "HEAD" }
        }
        @for (heading, kind) in kinds {
            @let n = of_kind(kind).filter(|one| one.commit.is_some()).count();
            @if n > 0 {
                h2 { (heading) }
                ul.tree {
                    @for one in of_kind(kind).filter(|one| one.commit.is_some()).take(MAX_REFS) {
                        li {
                            a href=(target.link(page, &name(one), path)) { (visible(&name(one))) }
                            " " a.faint href=(changes(one)) aria-label={ (what(kind)) " " (visible(&name(one))) } { (what(kind)) }
                        }
                    }
                    @if n > MAX_REFS { li.faint { (n - MAX_REFS) " more" } }
                }
            }
        }
    };
    shown(target, "Revisions".to_owned(), body, None)
}

/// Divides a name so that the numbers in it are sorted by their size: `v2` before `v10`.
fn numbers_apart(name: &str) -> Vec<(u64, String)> {
    let parts = name.split_inclusive(|letter: char| !letter.is_ascii_digit());
    let part = |part: &str| {
        let digits = part.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        (digits.parse().unwrap_or_default(), part[digits.len()..].to_owned())
    };
    parts.map(part).collect()
}

/// What can be typed and clicked.
pub(super) fn help_page() -> String {
    let row = |what: &str, text: Markup| html! { dt { (what) } dd { (text) } };
    let body = html! {
        p { a href="/" { "back to the repositories" } }
        dl {
            (row("Search", html! { "words, a name, a path or a question: " code { "parse header" } ", " code { "Parser.parse" } ", "
                code { "src/parser.rs" } ", " code { "where are retries scheduled" } }))
            (row("Names in code", html! { "lead to what they mean; the name of a definition leads to a page about it. A dotted line marks what is only possible." }))
            (row("Line numbers", html! { "are links to the line." }))
            (row("Revision", html! { "the text before the first colon of an address: a branch, tag or commit, " code { "WORKTREE" } " or " code { "INDEX" }
                ". A permalink has the full commit id." }))
            (row("Review", html! { code { "review/A..B" } " shows what changed between two revisions, and what uses it." }))
            (row("JSON", html! { "add " code { "format=json" } " to the parameters of a page." }))
            (row("Keys", html! {
                @for (key, what) in [("/", "search"), ("f o h b", "file, outline, history, blame"), ("y", "permalink"),
                    ("j k", "next and previous link"), ("?", "this page")] {
                    code { (key) } " " (what) ". "
                }
                button id="keys" hidden { "Turn keys off" }
            }))
            (row("Not known here", html! { "at the end of a page: what the answer could not take into account." }))
        }
    };
    frame::plain_page("Help", &body)
}
