//! Pictures as SVG. Their attributes carry all that they look like, so that they also show where styles are dropped.

use std::collections::HashMap;

use maud::{Markup, html};

use crate::model::unprintable::visible;

/// A picture as markup.
pub(crate) type Picture = Markup;

const ROW: usize = 26;
const BOX_HEIGHT: usize = 20;
const BOX_WIDTH: usize = 250;
const GAP: usize = 90;
const HEAD: usize = 26;
/// Number of characters that fit into a box.
const MAX_CHARACTERS: usize = 32;

/// A box of a picture with columns.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) label: String,
    /// The path of the file, which is shown if another box has the same label.
    pub(crate) path: String,
    /// The whole text, shown when the pointer is on the box.
    pub(crate) title: String,
    /// A link, if there is something to open.
    pub(crate) href: Option<String>,
    pub(crate) is_marked: bool,
}

impl Node {
    /// Returns a box with the name of a definition.
    pub(crate) fn of(id: &str) -> Self {
        let (path, name) = id.split_once('#').unwrap_or((id, id));
        Self {
            label: name.to_owned(),
            path: path.to_owned(),
            title: id.to_owned(),
            ..Self::default()
        }
    }
}

/// A line from a box to one of a column to its left: their columns and rows.
pub(crate) struct Edge {
    pub(crate) from: (usize, usize),
    pub(crate) to: (usize, usize),
    pub(crate) is_sure: bool,
}

/// Draws columns of boxes, each with a heading. `title` is the text alternative.
pub(crate) fn columns(title: &str, columns: &[(String, Vec<Node>)], edges: &[Edge]) -> Markup {
    let n_rows = columns.iter().map(|(_, nodes)| nodes.len()).max().unwrap_or_default();
    let (width, height) = (
        (columns.len() * (BOX_WIDTH + GAP)).saturating_sub(GAP) + 2,
        HEAD + n_rows * ROW + 2,
    );
    let mut n_alike: HashMap<&str, usize> = HashMap::new();
    for node in columns.iter().flat_map(|(_, nodes)| nodes) {
        *n_alike.entry(&node.label).or_default() += 1;
    }
    let label = |node: &Node| match n_alike[node.label.as_str()] {
        1 => node.label.clone(),
        _ if node.path == node.label => node.label.clone(),
        _ => {
            let room = MAX_CHARACTERS.saturating_sub(node.label.chars().count() + 1);
            format!("{}#{}", without_middle(&node.path, room), node.label)
        }
    };
    let left = |column: usize| column * (BOX_WIDTH + GAP) + 1;
    let top = |row: usize| HEAD + row * ROW;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label=(visible(title)) width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } font-family="sans-serif" font-size="12" {
            @for edge in edges {
                @let (x1, y1) = (left(edge.from.0), top(edge.from.1) + BOX_HEIGHT / 2);
                @let (x2, y2) = (left(edge.to.0) + BOX_WIDTH, top(edge.to.1) + BOX_HEIGHT / 2);
                // One that does not lead to the left bends on the right of both boxes.
                @let leads_back = edge.from.0 <= edge.to.0;
                @let x1 = if leads_back { x1 + BOX_WIDTH } else { x1 };
                @let (bend1, bend2) = if leads_back { (x1 + GAP / 2, x2 + GAP / 2) } else { ((x1 + x2) / 2, (x1 + x2) / 2) };
                path d={ "M" (x1) " " (y1) " C" (bend1) " " (y1) " " (bend2) " " (y2 + usize::from(leads_back) * BOX_HEIGHT / 4) " " (x2) " " (y2) }
                    fill="none" stroke="currentColor" stroke-opacity="0.45"
                    stroke-dasharray=[(!edge.is_sure).then_some("4 3")] {}
            }
            @for (column, (heading, nodes)) in columns.iter().enumerate() {
                text x=(left(column)) y="14" font-weight="bold" fill="currentColor" { (heading) }
                @for (row, node) in nodes.iter().enumerate() {
                    @let drawn = boxed(node, &label(node), left(column), top(row));
                    @match &node.href {
                        Some(href) => { a href=(href) { (drawn) } }
                        None => { (drawn) }
                    }
                }
            }
        }
    }
}

/// A change in a picture of a life.
pub(crate) struct Mark {
    /// When it was made, in seconds since 1970.
    pub(crate) time: i64,
    /// What it is about, under its name then.
    pub(crate) name: String,
    /// The whole text, shown when the pointer is on the mark.
    pub(crate) title: String,
    pub(crate) href: Option<String>,
    pub(crate) shape: Shape,
}

/// The shape of a mark.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Changed,
    Moved,
    Minor,
    Removed,
}

impl Shape {
    const ALL: [(Self, &str); 4] = [
        (Self::Changed, "added or changed"),
        (Self::Moved, "moved or renamed"),
        (Self::Minor, "formatted or documented"),
        (Self::Removed, "removed"),
    ];

    fn draw(self, x: usize, y: usize) -> Markup {
        let by = |d: &str| html! { path transform={ "translate(" (x) " " (y) ")" } d=(d) fill="Canvas" stroke="currentColor" stroke-width="2" {} };
        match self {
            Self::Changed => html! { circle cx=(x) cy=(y) r="5" fill="currentColor" stroke="Canvas" {} },
            Self::Moved => by("M0 -7 L7 0 L0 7 L-7 0 Z"),
            Self::Minor => html! { circle cx=(x) cy=(y) r="4" fill="Canvas" stroke="currentColor" {} },
            Self::Removed => by("M-5 -5 L5 5 M-5 5 L5 -5"),
        }
    }
}

/// Draws changes on a line from the left to the right, the oldest first, with a row for each name. `title` is the text
/// alternative.
pub(crate) fn life_line(title: &str, marks: &[Mark]) -> Markup {
    const WIDTH: usize = 1000;
    const LANE: usize = 44;
    const MARGIN: usize = 10;
    const YEAR: i64 = 31_556_952;
    let clamped = |time: i64| time.clamp(-10_000 * YEAR, 10_000 * YEAR);
    let mut names: Vec<&str> = Vec::new();
    for mark in marks {
        if !names.contains(&mark.name.as_str()) {
            names.push(&mark.name);
        }
    }
    // Dates of commits can be any number.
    let times = || marks.iter().map(|mark| clamped(mark.time));
    let (first, last) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
    let inner = (WIDTH - 2 * MARGIN) as i128;
    let x = |time: i64| MARGIN + (i128::from(clamped(time) - first) * inner / i128::from(last - first).max(1)) as usize;
    let lane = |mark: &Mark| names.iter().position(|name| *name == mark.name).unwrap_or_default();
    let y = |mark: &Mark| HEAD + LANE * lane(mark) + 30;
    let height = HEAD + LANE * names.len() + HEAD;
    // At most a year for every 60 pixels.
    let step = ((last - first) / YEAR * 60 / WIDTH as i64 + 1) as usize;
    let years = (first / YEAR + 1..=last / YEAR).step_by(step);
    let line: Vec<String> = marks
        .iter()
        .map(|mark| format!("{} {}", x(mark.time), y(mark)))
        .collect();
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label=(visible(title)) width=(WIDTH) height=(height)
            viewBox={ "0 0 " (WIDTH) " " (height) } font-family="sans-serif" font-size="12" {
            @for year in years {
                path d={ "M" (x(year * YEAR)) " 18 V" (height - HEAD) } stroke="currentColor" stroke-opacity="0.2" {}
                text x=(x(year * YEAR)) y="14" text-anchor="middle" fill="currentColor" { (1970 + year) }
            }
            @for (lane, name) in names.iter().enumerate() {
                text x="0" y=(HEAD + LANE * lane + 14) fill="currentColor" { (cut(&visible(name), 140)) }
            }
            path d={ "M" (line.join(" L")) } fill="none" stroke="currentColor" stroke-opacity="0.45" stroke-width="2" {}
            @for mark in marks {
                @let drawn = html! { g { title { (visible(&mark.title)) } (mark.shape.draw(x(mark.time), y(mark))) } };
                @match &mark.href {
                    Some(href) => { a href=(href) aria-label=(visible(&mark.title)) { (drawn) } }
                    None => { (drawn) }
                }
            }
            @for (at, (shape, name)) in Shape::ALL.into_iter().enumerate() {
                (shape.draw(MARGIN + at * 190, height - 10))
                text x=(MARGIN + at * 190 + 12) y=(height - 6) fill="currentColor" { (name) }
            }
        }
    }
}

/// A row of a picture with bars: its name, and the name and size of each part.
pub(crate) type Bar = (String, Vec<(String, u32)>);

/// Draws a bar for each row, with its first part darker than the others. `title` is the text alternative.
pub(crate) fn bars(title: &str, rows: &[Bar]) -> Markup {
    const NAME: usize = 130;
    const WIDTH: usize = 400;
    let sum = |parts: &[(String, u32)]| parts.iter().map(|(_, n)| *n as usize).sum::<usize>();
    let most = rows
        .iter()
        .map(|(_, parts)| sum(parts))
        .max()
        .unwrap_or_default()
        .max(1);
    let (width, height) = (1000, rows.len() * ROW + 2);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label=(visible(title)) width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } font-family="sans-serif" font-size="12" {
            @for (row, (name, parts)) in rows.iter().enumerate() {
                text x=(NAME - 8) y=(row * ROW + 15) text-anchor="end" fill="currentColor" { (visible(name)) }
                @for (at, (_, n)) in parts.iter().enumerate().filter(|(_, (_, n))| *n > 0) {
                    @let start = sum(&parts[..at]) * WIDTH / most;
                    rect x=(NAME + start) y=(row * ROW + 1) width=((*n as usize * WIDTH).div_ceil(most)) height=(BOX_HEIGHT)
                        fill="currentColor" fill-opacity=(if at == 0 { "0.6" } else { "0.15" }) stroke="currentColor" {}
                }
                @let numbers: Vec<String> = parts.iter().filter(|(_, n)| *n > 0).map(|(part, n)| format!("{n} {part}")).collect();
                text x=(NAME + (sum(parts) * WIDTH).div_ceil(most) + 8) y=(row * ROW + 15) fill="currentColor" { (visible(&numbers.join(", "))) }
            }
        }
    }
}

/// A rectangle of a treemap.
pub(crate) struct Cell {
    pub(crate) label: String,
    /// The whole text, shown when the pointer is on the rectangle.
    pub(crate) title: String,
    pub(crate) href: String,
    pub(crate) size: u64,
    /// How dark it is, from 0.
    pub(crate) shade: usize,
}

/// The position and the size of a rectangle.
type Area = (f64, f64, f64, f64);

/// Draws rectangles with areas in proportion to sizes, which must be sorted, the largest first. `title` is the text
/// alternative.
pub(crate) fn treemap(title: &str, cells: &[Cell]) -> Markup {
    const WIDTH: f64 = 1000.0;
    const HEIGHT: f64 = 520.0;
    /// Width of a character, and height of a line.
    const LETTER: (f64, f64) = (6.5, 16.0);
    let mut areas = Vec::new();
    divide(cells, (0.0, 0.0, WIDTH, HEIGHT), &mut areas);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label=(visible(title)) width=(WIDTH) height=(HEIGHT)
            viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } font-family="sans-serif" font-size="11" {
            @for (cell, (x, y, width, height)) in cells.iter().zip(areas) {
                a href=(cell.href) aria-label=(visible(&cell.title)) {
                    rect x=(format!("{x:.1}")) y=(format!("{y:.1}")) width=(format!("{width:.1}")) height=(format!("{height:.1}"))
                        fill="currentColor" fill-opacity=(format!("0.{:02}", 2 + cell.shade * 6)) stroke="currentColor" {
                        title { (visible(&cell.title)) }
                    }
                    @let n_letters = ((width - 6.0) / LETTER.0).max(0.0) as usize;
                    @if cell.label.chars().count() <= n_letters && height >= LETTER.1 {
                        text x=(format!("{:.1}", x + 3.0)) y=(format!("{:.1}", y + 12.0)) fill="currentColor" {
                            (visible(&cell.label))
                        }
                    }
                }
            }
        }
    }
}

/// Divides an area among cells: in halves of about the same size along its longer side, then each half in the same way.
fn divide(cells: &[Cell], (x, y, width, height): Area, areas: &mut Vec<Area>) {
    if cells.len() <= 1 {
        areas.extend(cells.iter().map(|_| (x, y, width, height)));
        return;
    }
    let sum = |cells: &[Cell]| cells.iter().map(|cell| cell.size).sum::<u64>();
    let total = sum(cells);
    let mut half = 1;
    while half < cells.len() - 1 && sum(&cells[..=half]) * 2 <= total {
        half += 1;
    }
    let share = sum(&cells[..half]) as f64 / total.max(1) as f64;
    let (first, second) = if width >= height {
        let at = width * share;
        ((x, y, at, height), (x + at, y, width - at, height))
    } else {
        let at = height * share;
        ((x, y, width, at), (x, y + at, width, height - at))
    };
    divide(&cells[..half], first, areas);
    divide(&cells[half..], second, areas);
}

fn boxed(node: &Node, label: &str, x: usize, y: usize) -> Markup {
    let label = cut(&visible(label), MAX_CHARACTERS);
    html! {
        rect x=(x) y=(y) width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="4" fill="Canvas" stroke="currentColor"
            stroke-width=(if node.is_marked { "2" } else { "1" }) { title { (visible(&node.title)) } }
        text x=(x + 8) y=(y + 14) fill="currentColor" { (label) }
    }
}

/// Cuts a text to a number of characters, in its middle.
fn without_middle(text: &str, most: usize) -> String {
    let n = text.chars().count();
    if n <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most / 2).collect();
    let end: String = text.chars().skip(n - most.saturating_sub(most / 2 + 1)).collect();
    format!("{start}…{end}")
}

/// Cuts a text to a number of characters. The end tells names apart.
fn cut(text: &str, most: usize) -> String {
    let n = text.chars().count();
    if n <= most {
        return text.to_owned();
    }
    let end: String = text.chars().skip(n - most + 1).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_of_any_date_are_drawn() {
        let mark = |time| Mark {
            time,
            name: "a".to_owned(),
            title: String::new(),
            href: None,
            shape: Shape::Changed,
        };
        let drawn = life_line("life", &[mark(i64::MIN), mark(0), mark(i64::MAX)]).into_string();
        assert!(drawn.matches("<circle").count() >= 3, "{drawn}");
        assert!(drawn.len() < 20_000, "{}", drawn.len());
    }
}
