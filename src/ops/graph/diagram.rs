//! Draws relations: as Mermaid or Graphviz text, or as an SVG picture.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::Format;
use super::rows::GraphRow;
use crate::ops::grouped::Grouped;
use crate::ops::op::Page;
use crate::ops::picture::{self, Edge, Node};
use crate::ops::sink::{PlainText, Recorded};

/// Replaces the text of a page by a diagram of the edges in its first `limit` rows, and adds that text to the notes.
pub(super) fn draw<F>(page: &mut Page<F, Grouped<GraphRow>>, limit: usize, format: Format) {
    let mut diagram = Diagram::default();
    for row in page.rows.iter().take(limit) {
        for (from, to, label, is_sure) in row.row.edges() {
            diagram.add(from, to, label, is_sure);
        }
    }
    let mut text = PlainText::default();
    page.head.replay(&mut text);
    let rows = std::mem::take(&mut page.rows).into_iter().map(|row| {
        row.heading.replay(&mut text);
        Grouped {
            row: GraphRow::Drawn(Box::new(row.row)),
            target: row.target,
            heading: Recorded::default(),
        }
    });
    page.rows = rows.collect();
    std::mem::take(&mut page.tail).replay(&mut text);
    page.notes.extend(text.0.lines().map(str::to_owned));
    let lines = match format {
        Format::Svg => vec![diagram.to_svg()],
        _ => diagram.to_lines(format),
    };
    page.head = Recorded::of(|out| lines.iter().for_each(|line| out.whole_line(line)));
}

/// Definitions, and arrows from those that refer to those that they mean.
#[derive(Default)]
struct Diagram {
    nodes: Vec<String>,
    numbers: HashMap<String, usize>,
    arrows: Vec<Arrow>,
    known: BTreeSet<(usize, usize)>,
}

struct Arrow {
    from: usize,
    to: usize,
    label: String,
    is_sure: bool,
}

impl Diagram {
    fn add(&mut self, from: &str, to: &str, label: &str, is_sure: bool) {
        let (from, to) = (self.node(from), self.node(to));
        if self.known.insert((from, to)) {
            self.arrows.push(Arrow {
                from,
                to,
                label: label.to_owned(),
                is_sure,
            });
        }
    }

    fn node(&mut self, id: &str) -> usize {
        let number = self.nodes.len();
        let known = *self.numbers.entry(id.to_owned()).or_insert(number);
        if known == number {
            self.nodes.push(id.to_owned());
        }
        known
    }

    /// Returns the text for Mermaid or Graphviz. A definition precedes its first arrow.
    fn to_lines(&self, format: Format) -> Vec<String> {
        let is_dot = format == Format::Dot;
        let mut lines = vec![if is_dot { "digraph {" } else { "graph LR" }.to_owned()];
        let mut n_written = 0;
        for Arrow {
            from,
            to,
            label,
            is_sure,
        } in &self.arrows
        {
            for number in n_written..=*from.max(to) {
                let id = &self.nodes[number];
                lines.push(if is_dot {
                    let id = id.replace('\\', "\\\\").replace('"', "\\\"");
                    format!("  n{number} [label=\"{id}\"];")
                } else {
                    format!("  n{number}[\"{}\"]", id.replace('"', "#quot;"))
                });
            }
            n_written = n_written.max(from.max(to) + 1);
            lines.push(match (is_dot, is_sure) {
                (true, true) => format!("  n{from} -> n{to} [label=\"{label}\"];"),
                (true, false) => format!("  n{from} -> n{to} [label=\"{label}\", style=dashed];"),
                (false, true) => format!("  n{from} -->|{label}| n{to}"),
                (false, false) => format!("  n{from} -.->|{label}| n{to}"),
            });
        }
        lines.extend(is_dot.then(|| "}".to_owned()));
        lines
    }

    /// Returns a picture with a column for each number of steps from a definition that nothing refers to.
    fn to_svg(&self) -> String {
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut is_meant = vec![false; self.nodes.len()];
        for arrow in self.arrows.iter().filter(|arrow| arrow.from != arrow.to) {
            next[arrow.from].push(arrow.to);
            is_meant[arrow.to] = true;
        }
        let mut column: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let sources = (0..self.nodes.len()).filter(|node| !is_meant[*node]);
        let mut queue: VecDeque<(usize, usize)> = sources.map(|node| (node, 0)).collect();
        // Those that are left are in circles, and only circles lead to them.
        let mut others = 0..self.nodes.len();
        while let Some((node, steps)) = queue.pop_front().or_else(|| Some((others.next()?, 0))) {
            if column[node].is_none() {
                column[node] = Some(steps);
                queue.extend(next[node].iter().map(|next| (*next, steps + 1)));
            }
        }
        let mut columns: Vec<(String, Vec<Node>)> = Vec::new();
        let mut places = Vec::new();
        for (id, column) in self.nodes.iter().zip(column) {
            let column = column.unwrap_or_default();
            columns.resize_with(columns.len().max(column + 1), Default::default);
            places.push((column, columns[column].1.len()));
            columns[column].1.push(Node::of(id));
        }
        let edge = |arrow: &Arrow| Edge {
            from: places[arrow.to],
            to: places[arrow.from],
            is_sure: arrow.is_sure,
        };
        let edges: Vec<Edge> = self.arrows.iter().map(edge).collect();
        let title = "Definitions on the left refer to those on the right; lines that bend on the right lead back; dashed lines are possible";
        picture::columns(title, &columns, &edges).into_string()
    }
}
