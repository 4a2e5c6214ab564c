//! The page of a file: its lines, in which names lead to what they mean, and its outline.

use std::collections::{BTreeSet, HashSet};

use maud::{Markup, PreEscaped, Render, html};

use super::sink::syntax_class;
use super::url::Target;
use crate::extract::profile;
use crate::model::count::count;
use crate::model::unprintable::visible;
use crate::ops::{BlamedLine, DefinitionLink, FileLinks, Syntax};
use crate::query::day;

/// Number of lines with links and numbers that are links. The others are shown in blocks, which browsers draw when they
/// are in sight.
const MAX_LINKED_LINES: usize = 2_000;
/// Number of lines in a block.
const BLOCK: usize = 500;
/// Limit on the bytes of a file that are shown.
const MAX_BYTES: usize = 8 << 20;
/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: usize = 2_000;
/// Maximum number of definitions whose lines can be linked to after the first lines.
const MAX_ANCHORS: usize = 4_000;
/// Maximum number of links to commits beside the lines.
const MAX_RUNS: usize = 1_500;
/// Number of shades of these links.
const AGES: usize = 5;
/// Maximum number of definitions in the outline.
const MAX_OUTLINE: usize = 300;

/// A piece of a line with a link.
struct Piece {
    range: std::ops::Range<usize>,
    href: String,
    /// The class: a definition, a certain reference or a possible one.
    class: &'static str,
    title: Option<String>,
}

/// Returns the content of a file with its links, and with the last commit of each line if it is given.
pub(super) fn content(target: &Target, links: &FileLinks, blamed: Option<&[&BlamedLine]>) -> Markup {
    let bytes = &links.bytes[..links.bytes.len().min(MAX_BYTES)];
    if bytes.contains(&0) {
        return html! { p { "A binary file of " (count(links.bytes.len(), "byte")) "." } };
    }
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let linked = &lines[..lines.len().min(MAX_LINKED_LINES)];
    let rest = &lines[linked.len()..];
    let mut strip = blamed.map(|lines| Strip::of(target, lines));
    let mut beside = |n_lines: usize, block: Markup| match &mut strip {
        Some(strip) => html! { div.blamed { (strip.next(n_lines)) (block) } },
        None => block,
    };
    html! {
        div.file {
            @if !links.definitions.is_empty() { (outline(target, &links.definitions)) }
            div.code {
                (beside(linked.len(), html! { pre { (PreEscaped(numbered(target, links, linked))) } }))
                @for (at, block) in rest.chunks(BLOCK).enumerate() {
                    @let first = MAX_LINKED_LINES + at * BLOCK + 1;
                    (beside(block.len(), html! { pre.block id={ "L" (first) } { (PreEscaped(plain(block, first, &links.definitions))) } }))
                }
                @if bytes.len() < links.bytes.len() {
                    p { "The rest of " (count(links.bytes.len(), "byte")) " is in " a href=(target.link("raw", &target.place.revision, &target.place.path)) { "raw" } "." }
                }
            }
        }
        @if !rest.is_empty() { p.faint { "Names of the first " (MAX_LINKED_LINES) " lines are links." } }
        @if links.n_unknown > 0 {
            p.unknown { "Not known here: what " (links.n_unknown) " of " (links.n_unknown + links.references.len()) " names mean." }
        }
    }
}

/// The commits beside the lines of a file.
struct Strip<'a> {
    target: &'a Target,
    lines: &'a [&'a BlamedLine],
    /// The dates of the commits, the oldest first.
    dates: Vec<&'a str>,
    /// Number of links that may follow.
    room: usize,
}

impl<'a> Strip<'a> {
    fn of(target: &'a Target, lines: &'a [&'a BlamedLine]) -> Self {
        let dates = lines
            .iter()
            .filter_map(|line| Some(line.commit.as_ref()?.date.as_str()));
        Self {
            target,
            lines,
            dates: dates.collect::<BTreeSet<_>>().into_iter().collect(),
            room: MAX_RUNS,
        }
    }

    /// Returns the commits of the next lines, each at the first of its lines. The later it was made, the stronger its color.
    fn next(&mut self, n_lines: usize) -> Markup {
        let (lines, rest) = self.lines.split_at(n_lines.min(self.lines.len()));
        self.lines = rest;
        html! {
            pre.strip {
                @for run in lines.chunk_by(|a, b| a.id() == b.id()) { (self.run(run[0], &"\n".repeat(run.len()))) }
            }
        }
    }

    /// Returns the commit of adjacent lines, with the line feed of each.
    fn run(&mut self, line: &BlamedLine, ends: &str) -> Markup {
        let Some(commit) = &line.commit else {
            return html! { "uncommitted" (ends) };
        };
        if self.room == 0 {
            return html! { (day(&commit.date)) (ends) };
        }
        self.room -= 1;
        let age = self.dates.partition_point(|date| *date < commit.date.as_str()) * AGES / self.dates.len();
        let title = format!("{}: {}", commit.author.name, commit.subject);
        let link = self.target.commit(&commit.commit);
        html! { a class={ "age" (age) } href=(link) title=(visible(&title)) { (day(&commit.date)) (ends) } }
    }
}

fn outline(target: &Target, definitions: &[DefinitionLink]) -> Markup {
    let shown: Vec<&DefinitionLink> = definitions.iter().filter(|definition| definition.depth < 3).collect();
    let name = |definition: &DefinitionLink| {
        let (_, name) = definition.id.split_once('#').unwrap_or(("", &definition.id));
        visible(name.rsplit('.').next().unwrap_or_default()).into_owned()
    };
    html! {
        nav.outline aria-label="Outline" {
            details open {
                summary { "Outline" }
                ul {
                    @for definition in shown.iter().take(MAX_OUTLINE) {
                        li class={ "depth" (definition.depth) } {
                            a href={ "#L" (definition.line) } title=(visible(definition.kind)) { (name(definition)) }
                            " " a.faint href=(target.definition(&definition.id)) aria-label={ "relations of " (name(definition)) } { "↗" }
                        }
                    }
                    @if shown.len() > MAX_OUTLINE { li.faint { (shown.len() - MAX_OUTLINE) " more" } }
                }
            }
        }
    }
}

/// Returns the first lines of a file, each with its number and with links.
fn numbered(target: &Target, links: &FileLinks, lines: &[&[u8]]) -> String {
    let definitions = links.definitions.iter().map(|definition| Piece {
        range: definition.range.clone(),
        href: target.definition(&definition.id),
        class: "def",
        title: Some(definition.kind.to_owned()),
    });
    let references = links.references.iter().map(|reference| Piece {
        range: reference.range.clone(),
        href: target.file(&reference.path, reference.line),
        class: if reference.n_candidates == 0 { "ref" } else { "may" },
        title: match reference.n_candidates {
            0 => None,
            1 => Some("perhaps".to_owned()),
            n => Some(format!("perhaps, one of {n}")),
        },
    });
    let mut pieces: Vec<Piece> = definitions.chain(references).collect();
    pieces.sort_by_key(|piece| (piece.range.start, piece.range.end));
    let mut pieces = pieces.into_iter().peekable();
    let n_bytes = lines.iter().map(|line| line.len()).sum();
    let mut syntax = Syntax::of(&links.bytes[..n_bytes], profile(links.lang));
    let mut paint = |part, text: &mut String| {
        syntax.between(part, |piece, style| {
            let shown = shown(&links.bytes[piece]);
            match syntax_class(style) {
                Some(class) => html! { span.(class) { (shown) } }.render_to(text),
                None => shown.render_to(text),
            }
        });
    };
    let (mut text, mut start) = (String::new(), 0);
    for (number, line) in (1..).zip(lines) {
        html! { a.n id={ "L" (number) } href={ "#L" (number) } { (number) } " " }.render_to(&mut text);
        let end = start + line.trim_ascii_end().len();
        let shown_end = end.min(start + MAX_LINE_BYTES);
        let mut at = start;
        while let Some(piece) = pieces.next_if(|piece| piece.range.start < end) {
            // Of two that overlap, the first one counts.
            if piece.range.start < at || piece.range.end > shown_end {
                continue;
            }
            paint(at..piece.range.start, &mut text);
            let name = shown(&links.bytes[piece.range.clone()]);
            html! { a class=(piece.class) href=(piece.href) title=[piece.title] { (name) } }.render_to(&mut text);
            at = piece.range.end;
        }
        if at < shown_end {
            paint(at..shown_end, &mut text);
        }
        if shown_end < end {
            html! { span.faint { " … " (count(end - shown_end, "more byte")) } }.render_to(&mut text);
        }
        text.push('\n');
        start += line.len();
    }
    text
}

/// Returns bytes of a file as text in which nothing is hidden.
fn shown(bytes: &[u8]) -> String {
    visible(&String::from_utf8_lossy(bytes)).into_owned()
}

/// Returns lines with their numbers. Only lines with definitions can be linked to.
fn plain(lines: &[&[u8]], first: usize, definitions: &[DefinitionLink]) -> String {
    let starts: HashSet<usize> = definitions
        .iter()
        .take(MAX_ANCHORS)
        .map(|definition| definition.line as usize)
        .collect();
    let mut text = String::new();
    for (number, line) in (first..).zip(lines) {
        let line = line.trim_ascii_end();
        let line = shown(&line[..line.len().min(MAX_LINE_BYTES)]);
        let id = (number != first && starts.contains(&number)).then(|| format!("L{number}"));
        match id {
            Some(id) => html! { a id=(id) { (number) } " " (line) "\n" }.render_to(&mut text),
            None => html! { (number) " " (line) "\n" }.render_to(&mut text),
        }
    }
    text
}
