//! What runs when a definition is called, as a tree of calls.

use std::collections::HashSet;

use serde::Serialize;

use super::Lookup;
use super::edges::is_call;
use super::facts::{FlowFacts, GraphFacts};
use super::impact::by_depth;
use super::places::{Places, Wish};
use super::rows::{GraphRow, name_of};
use crate::link::{DefId, Tier};
use crate::model::count::count;
use crate::ops::op::Page;
use crate::ops::paths::path_of;
use crate::ops::sink::{Recorded, Sink, Style};
use crate::query::{FoundDefinition, kind_name};
use crate::session::Result;

/// Default number of steps from the target.
const DEFAULT_DEPTH: u32 = 3;
/// Maximum number of definitions in a tree.
const MAX_CALLED: usize = 5_000;

/// A definition in a tree of calls.
#[derive(Debug, Serialize)]
pub(crate) struct FlowOut {
    /// Number of calls from the target; 0 for the target.
    depth: u32,
    path: String,
    line: u32,
    kind: &'static str,
    pub(super) id: String,
    /// The id of the definition that calls it; null for the target.
    pub(super) from: Option<String>,
    /// True if it overrides or implements the definition `from`, which is called.
    pub(super) overrides: bool,
    /// Number of definitions that it calls and that the tree lists elsewhere.
    listed_elsewhere: usize,
    /// Number of calls in it that only have candidates.
    candidates: usize,
}

/// A node of the tree.
struct Node {
    of: DefId,
    from: Option<usize>,
    depth: u32,
    overrides: bool,
    children: Vec<usize>,
    listed_elsewhere: usize,
    candidates: usize,
}

impl FlowOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        out.plain(&"  ".repeat(self.depth as usize));
        out.span(Style::Name, name_of(&self.id));
        out.span(Style::Path, &format!(" {}:{}", self.path, self.line));
        let mut facts = Vec::new();
        facts.extend(self.overrides.then(|| "overrides".to_owned()));
        facts.extend((self.listed_elsewhere > 0).then(|| format!("calls {} listed elsewhere", self.listed_elsewhere)));
        facts.extend((self.candidates > 0).then(|| format!("{} uncertain", count(self.candidates, "call"))));
        if !facts.is_empty() {
            out.span(Style::Fact, &format!(" ({})", facts.join(", ")));
        }
        out.end();
    }
}

impl Lookup<'_> {
    /// Shows what a definition calls as a tree. Each definition is listed once, as near to the target as possible.
    pub(super) fn flow(&self, of: &FoundDefinition) -> Result<Page<GraphFacts, GraphRow>> {
        let mut facts = FlowFacts {
            target: of.id.clone(),
            ..FlowFacts::default()
        };
        let nodes = self.called(of.def(), &mut facts)?;
        for node in &nodes {
            facts.depths.resize(facts.depths.len().max(node.depth as usize + 1), 0);
            facts.depths[node.depth as usize] += 1;
        }
        facts.total = nodes.len();
        let mut line = format!("{} in the flow", count(facts.total, "definition"));
        line += &format!(" · by depth {}", by_depth(&facts.depths));
        for (n, what) in [
            (facts.candidates, "uncertain"),
            (facts.outside, "outside"),
            (facts.unknown, "unresolved"),
        ] {
            if n > 0 {
                line += &format!(" · {} {what}", count(n, "call"));
            }
        }
        if facts.is_cut {
            line += &format!(" · stopped after {MAX_CALLED} definitions");
        }
        let order = in_order(&nodes);
        let of_page: Vec<&Node> = self.part.of(order.iter().map(|at| &nodes[*at]));
        let mut wish = Wish::default();
        for node in &of_page {
            wish.definition(node.of);
            node.from.iter().for_each(|from| wish.definition(nodes[*from].of));
        }
        let places = wish.read(&self.question.sources())?;
        let rows = of_page.iter().filter_map(|node| self.flow_out(node, &nodes, &places));
        let mut page = self.page(rows.map(GraphRow::Flow).collect(), facts.total, GraphFacts::Flow(facts));
        page.head = Recorded::of(|out| out.whole_line(&line));
        Ok(page)
    }

    fn flow_out(&self, node: &Node, nodes: &[Node], places: &Places) -> Option<FlowOut> {
        let found = places.definition(node.of)?;
        let from = node.from.and_then(|from| places.definition(nodes[from].of));
        Some(FlowOut {
            depth: node.depth,
            path: path_of(self.question.view(), node.of.file),
            line: found.name_line,
            kind: kind_name(found.kind),
            id: found.id.clone(),
            from: from.map(|from| from.id.clone()),
            overrides: node.overrides,
            listed_elsewhere: node.listed_elsewhere,
            candidates: node.candidates,
        })
    }

    /// Follows calls from a definition, nearest first. The first node is the definition.
    fn called(&self, of: DefId, facts: &mut FlowFacts) -> Result<Vec<Node>> {
        let max_depth = match self.request.depth {
            Some(0) => u32::MAX,
            depth => depth.unwrap_or(DEFAULT_DEPTH),
        };
        let node = |of, from, depth, overrides| Node {
            of,
            from,
            depth,
            overrides,
            children: Vec::new(),
            listed_elsewhere: 0,
            candidates: 0,
        };
        let mut nodes = vec![node(of, None, 0, false)];
        let mut known = HashSet::from([of]);
        let mut at = 0;
        while at < nodes.len() {
            let (of, depth) = (nodes[at].of, nodes[at].depth);
            let mut next: Vec<(DefId, bool)> = Vec::new();
            let mut seen = HashSet::from([of]);
            for site in self.linker.uses(of).into_iter().filter(|site| is_call(site.kind)) {
                match site.tier {
                    tier if tier.is_sure() => {
                        let new = site.targets.into_iter().filter(|target| seen.insert(*target));
                        next.extend(new.map(|target| (target, false)));
                    }
                    Tier::Named => nodes[at].candidates += 1,
                    Tier::Outside => facts.outside += 1,
                    _ => facts.unknown += 1,
                }
            }
            facts.candidates += nodes[at].candidates;
            let overriding = self.linker.overriding(of)?.into_iter();
            next.extend(
                overriding
                    .filter(|member| seen.insert(*member))
                    .map(|member| (member, true)),
            );
            for (target, overrides) in next {
                if depth >= max_depth {
                    break;
                }
                if nodes.len() >= MAX_CALLED {
                    facts.is_cut = true;
                    break;
                }
                if !known.insert(target) {
                    nodes[at].listed_elsewhere += 1;
                    continue;
                }
                let child = nodes.len();
                nodes[at].children.push(child);
                nodes.push(node(target, Some(at), depth + 1, overrides));
            }
            at += 1;
        }
        Ok(nodes)
    }
}

/// Returns the nodes of a tree, each before the nodes below it.
fn in_order(nodes: &[Node]) -> Vec<usize> {
    let (mut order, mut open) = (Vec::with_capacity(nodes.len()), vec![0]);
    while let Some(at) = open.pop() {
        order.push(at);
        open.extend(nodes[at].children.iter().rev());
    }
    order
}
