//! The page of a review: one file that needs no script, no network and no style to be read.

use std::collections::HashMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::frame::STYLE;
use super::url::encoded;
use crate::model::count::count;
use crate::model::typed;
use crate::model::unprintable::visible;
use crate::ops::picture::{Edge, Node, columns};
use crate::ops::{
    Consequence, DefinitionRow, DocumentSite, OtherFileRow, Page, ReachedOut, ReviewFacts, ReviewOwner, ReviewRow,
    Site, TogetherRow,
};

/// Limit on the markup of changed lines that a page contains, in bytes. The page stays below 3 MB.
const MAX_DIFF_BYTES: usize = 2_000_000;
/// Number of changed lines above which the rest is folded.
const MAX_LINES: usize = 60;
/// Maximum length of a line in characters.
const MAX_LINE: usize = 2_000;
/// Number of changed files above which one definition is open at a time.
const MANY_FILES: usize = 30;
/// Maximum number of boxes in a column of the picture.
const MAX_BOXES: usize = 16;

/// The start of links to files, such as `https://example.org/owner/name/blob/main`.
#[derive(Clone, Debug)]
pub(crate) struct LinkBase {
    new: String,
    /// For files as they were before the change; `None` if they cannot be linked.
    old: Option<String>,
}

impl LinkBase {
    /// Returns `None` for what is no `http` or `https` address.
    pub(crate) fn new(typed: &str) -> Option<Self> {
        let is_link = typed.starts_with("https://") || typed.starts_with("http://");
        is_link.then(|| Self {
            new: format!("{}/", typed.trim_end_matches('/')),
            old: None,
        })
    }

    /// The links of a server of pages to the newer and to the older state, which begin with these.
    pub(super) fn own(new: String, old: String) -> Self {
        Self { new, old: Some(old) }
    }

    fn link(&self, path: &str, line: u32, is_old: bool) -> Option<String> {
        let start = if is_old { self.old.as_ref()? } else { &self.new };
        let link = format!("{start}{}", encoded(&typed(path), "/"));
        Some(match line {
            0 => link,
            line => format!("{link}#L{line}"),
        })
    }
}

/// The rows of a review by kind.
#[derive(Default)]
struct Rows<'a> {
    major: Vec<&'a DefinitionRow>,
    minor: Vec<&'a DefinitionRow>,
    others: Vec<&'a OtherFileRow>,
    together: Vec<&'a TogetherRow>,
    tests: Vec<&'a ReachedOut>,
    owners: Vec<&'a ReviewOwner>,
}

impl<'a> Rows<'a> {
    fn of(rows: &'a [ReviewRow]) -> Self {
        let mut sorted = Self::default();
        for row in rows {
            match row {
                ReviewRow::Definition(row) if row.is_minor() => sorted.minor.push(row),
                ReviewRow::Definition(row) => sorted.major.push(row),
                ReviewRow::Other(row) => sorted.others.push(row),
                ReviewRow::Together(row) => sorted.together.push(row),
                ReviewRow::Test(row) => sorted.tests.push(row),
                ReviewRow::Owner(row) => sorted.owners.push(row),
            }
        }
        sorted
    }
}

struct Writer<'a> {
    base: Option<&'a LinkBase>,
    /// Room for changed lines, in bytes.
    room: std::cell::Cell<usize>,
    /// True if only one definition is open at a time.
    is_exclusive: bool,
}

/// Returns a review as a page of its own, which is the same for the same commits.
pub(crate) fn review_page(page: &Page<ReviewFacts, ReviewRow>, base: Option<&LinkBase>) -> String {
    let title = format!("review {}", page.facts.range());
    let incomplete = page
        .provenance
        .iter()
        .flat_map(|provenance| provenance.incomplete_because());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
                title { (visible(&title)) }
                style { (PreEscaped(STYLE.text)) }
            }
            body { main {
                h1 { (visible(&title)) }
                @for why in incomplete { p.facts.unknown { "Incomplete: " (visible(why)) } }
                (review_body(page, base))
            } }
        }
    }
    .into_string()
}

/// Returns what a review says, without the frame of a page.
pub(super) fn review_body(page: &Page<ReviewFacts, ReviewRow>, base: Option<&LinkBase>) -> Markup {
    let (facts, rows) = (&page.facts, Rows::of(&page.rows));
    let writer = Writer {
        base,
        room: std::cell::Cell::new(MAX_DIFF_BYTES),
        is_exclusive: facts.files > MANY_FILES,
    };
    if facts.files == 0 {
        return html! { p.facts { "Nothing changed." } };
    }
    html! {
        p.facts { (facts.size()) }
        p.facts { strong { (facts.changes()) } }
        p.facts { (facts.reach()) }
        @if !facts.unknown.is_empty() { p.facts.unknown { "Not known: " (facts.unknown.join("; ")) } }
        @for note in &page.notes { p.faint { (visible(note)) } }
        (picture(&rows))
        @if !rows.major.is_empty() {
            h2 { "Changed definitions" }
            @for (at, row) in rows.major.iter().enumerate() { (writer.definition(&format!("d{at}"), row)) }
        }
        @if !rows.minor.is_empty() {
            h2 { "Moved, documented or formatted" }
            ul { @for row in &rows.minor { li { (writer.head(row)) } } }
        }
        @if !rows.others.is_empty() {
            h2 { "Changed outside of definitions" }
            ul { @for row in &rows.others { li {
                (row.change) " " (writer.place_in(&row.path, 0, row.change == "deleted")) " " span.faint { (row.size()) }
                @if let Some(from) = &row.from_path { " from " code { (visible(from)) } }
            } } }
        }
        (writer.tests(facts, &rows.tests))
        @if !rows.together.is_empty() {
            h2 { "Usually change, too, and did not" }
            ul { @for row in &rows.together { li {
                (writer.place(&row.path, 0)) " changed in " (row.both) " of " (row.commits) " commits with "
                code { (visible(&row.with)) }
            } } }
        }
        @if !rows.owners.is_empty() {
            h2 { "Who knows these files" }
            ul { @for row in &rows.owners { li {
                (visible(&row.owner.name)) " "
                span.faint { (count(row.owner.commits, "commit")) ", last " (row.owner.last.get(..10).unwrap_or_default()) }
            } } }
        }
    }
}

impl Writer<'_> {
    fn place(&self, path: &str, line: u32) -> Markup {
        self.place_in(path, line, false)
    }

    /// Returns a place of the newer or the older state, with a link if there is one.
    fn place_in(&self, path: &str, line: u32, is_old: bool) -> Markup {
        let shown = match line {
            0 => visible(path).into_owned(),
            line => format!("{}:{line}", visible(path)),
        };
        html! {
            @match self.base.and_then(|base| base.link(path, line, is_old)) {
                Some(link) => { a href=(link) rel="noreferrer" { code { (shown) } } }
                None => { code { (shown) } }
            }
        }
    }

    fn head(&self, row: &DefinitionRow) -> Markup {
        html! { (Self::summary(row)) " " (self.place(&row.path, row.line)) }
    }

    /// Describes the change without links, because a click opens it.
    fn summary(row: &DefinitionRow) -> Markup {
        let usage = row.usage();
        html! {
            span.event { (row.events.join(", ")) } " " (row.definition) " " code { (visible(row.name())) }
            @if !usage.is_empty() { " " span.faint { (usage) } }
            @if let Some(from) = &row.from { " from " code { (visible(from)) } }
        }
    }

    fn definition(&self, id: &str, row: &DefinitionRow) -> Markup {
        let sites: &[Site] = if row.may_break() { &row.unchanged } else { &[] };
        // Callers of what is gone are those from before.
        let is_old = row.consequence() == Consequence::Removed;
        let n_more = row.unchanged_callers.saturating_sub(sites.len());
        html! {
            details id=(id) open[!self.is_exclusive] name=[self.is_exclusive.then_some("definition")] {
                summary { (Self::summary(row)) }
                p { (self.place_in(&row.path, row.line, is_old)) }
                @if !sites.is_empty() {
                    p.breaks { "Did not change with it:" }
                    ul {
                        @for site in sites { li {
                            (site.label()) " " (self.place_in(&site.path, site.line, is_old))
                            @if let Some(name) = &site.name { " " code { (visible(name)) } }
                        } }
                        @if n_more > 0 { li { (n_more) " more" } }
                    }
                }
                @for note in &row.notes { p.breaks { "Note " code { (visible(note)) } " may no longer hold." } }
                @for DocumentSite { path, line } in &row.documents { p { (self.place(path, *line)) " names it." } }
                @if let Some(diff) = &row.diff { (self.diff(diff)) }
            }
        }
    }

    fn diff(&self, diff: &str) -> Markup {
        let lines: Vec<&str> = diff.lines().collect();
        let (first, rest) = lines.split_at(lines.len().min(MAX_LINES));
        let room = self.room.get();
        let markup = html! {
            pre tabindex="0" { (changed_lines(first)) }
            @if !rest.is_empty() && diff.len() < room {
                details { summary { (count(rest.len(), "more line")) } pre tabindex="0" { (changed_lines(rest)) } }
            }
        };
        let n_bytes = markup.0.len();
        if n_bytes > room {
            return html! { p.faint { "The changed lines are left out: the page would be too large." } };
        }
        self.room.set(room - n_bytes);
        markup
    }

    fn tests(&self, facts: &ReviewFacts, tests: &[&ReachedOut]) -> Markup {
        if tests.is_empty() {
            return html! {};
        }
        html! {
            h2 id="tests" { (count(facts.impact.tests + facts.impact.possible_tests, "test")) " to run" }
            @for command in &facts.commands { pre tabindex="0" { (visible(command)) } }
            details open[!self.is_exclusive] {
                summary { "Tests" }
                ul { @for test in tests { li {
                    @if !test.sure { span.faint { "possible " } }
                    (self.place(&test.path, test.line))
                    @if let Some(name) = &test.name { " " code { (visible(name)) } }
                    @if let Some(of) = test.via.first() { span.faint { " uses " code { (visible(of)) } } }
                } } }
            }
        }
    }
}

/// Writes each line as an element with its `+` or `-`, which shows the kind of line without colors.
fn changed_lines(lines: &[&str]) -> Markup {
    let class = |line: &str| match line.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "del",
        Some(b'@') => "at",
        _ => "same",
    };
    let cut = |line: &str| -> String { line.chars().take(MAX_LINE).collect() };
    html! { @for line in lines { span class=(class(line)) { (visible(&cut(line))) "\n" } } }
}

/// Draws the changed definitions, the callers that did not change with them, and the tests.
fn picture(rows: &Rows<'_>) -> Markup {
    let changed: Vec<&DefinitionRow> = rows.major.iter().copied().take(MAX_BOXES).collect();
    let mut at: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut boxes: [Vec<Node>; 3] = [const { Vec::new() }; 3];
    let mut edges = Vec::new();
    for (row, definition) in changed.iter().enumerate() {
        at.insert(&definition.id, (0, row));
        boxes[0].push(Node {
            title: format!("{} {}", definition.events.join(", "), definition.id),
            href: Some(format!("#d{row}")),
            is_marked: definition.may_break() && definition.unchanged_callers > 0,
            ..Node::of(&definition.id)
        });
    }
    for (row, definition) in changed.iter().enumerate() {
        for site in definition.unchanged.iter().filter(|site| !site.test) {
            let Some(id) = site.id.as_deref() else { continue };
            let place = match at.get(id) {
                Some(place) => *place,
                None if boxes[1].len() < MAX_BOXES => {
                    let place = (1, boxes[1].len());
                    at.insert(id, place);
                    boxes[1].push(Node {
                        title: format!("{} {}:{}", site.label(), site.path, site.line),
                        ..Node::of(id)
                    });
                    place
                }
                None => continue,
            };
            if place.0 == 1 {
                edges.push(Edge {
                    from: place,
                    to: (0, row),
                    is_sure: site.sure,
                });
            }
        }
    }
    for test in &rows.tests {
        let Some(to) = test.via.iter().find_map(|id| at.get(id.as_str())).copied() else {
            continue;
        };
        if boxes[2].len() == MAX_BOXES {
            break;
        }
        edges.push(Edge {
            from: (2, boxes[2].len()),
            to,
            is_sure: test.sure,
        });
        boxes[2].push(Node {
            title: format!("{}:{}", test.path, test.line),
            href: Some("#tests".to_owned()),
            ..Node::of(test.id.as_ref().unwrap_or(&test.path))
        });
    }
    if edges.is_empty() {
        return html! {};
    }
    let headings = ["changed", "use it and did not change", "tests"];
    let columns_of: Vec<(String, Vec<Node>)> = headings.into_iter().map(str::to_owned).zip(boxes).collect();
    let title = "Changed definitions on the left, what uses them and did not change in the middle, tests on the right; \
                 the same is listed below";
    html! { figure { (columns(title, &columns_of, &edges)) } }
}
