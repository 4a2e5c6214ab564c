//! References between definitions: callers, callees, references, implementations and paths.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::account::{Account, may_be_registered, may_run_unseen};
use super::facts::{EdgeFacts, GraphFacts, PathFacts};
use super::impact::by_depth;
use super::places::{Places, Wish};
use super::rows::{EdgeOut, GraphRow};
use super::{GraphOp, Lookup, generated};
use crate::extract::{DefinitionKind, ReferenceKind};
use crate::link::{DefId, Site, Tier};
use crate::model::count::count;
use crate::ops::op::Page;
use crate::ops::paths::path_of;
use crate::ops::sink::Recorded;
use crate::query::{FoundDefinition, UsageKind};
use crate::session::Result;
use crate::snapshot::FileId;

/// Maximum number of definitions that a walk visits.
const MAX_VISITED: usize = 20_000;

/// A site with its distance from the target.
struct Step {
    site: Site,
    depth: u32,
    kind: &'static str,
    /// The definition of the walk that the site belongs to.
    of: DefId,
}

/// What a walk has found.
struct Walk {
    steps: Vec<Step>,
    account: Account,
    files: BTreeSet<FileId>,
    seen: HashSet<DefId>,
    notes: Vec<String>,
}

impl Walk {
    fn add(&mut self, site: Site, depth: u32, of: DefId, kind: &'static str) {
        self.account.add(&site, &mut self.files);
        self.steps.push(Step { site, depth, kind, of });
    }

    /// Returns true if the search continues with a definition.
    fn visits(&mut self, of: DefId) -> bool {
        if self.seen.len() >= MAX_VISITED {
            if !self.notes.iter().any(|note| note.starts_with("stopped")) {
                self.notes.push(format!("stopped after {MAX_VISITED} definitions"));
            }
            return false;
        }
        self.seen.insert(of)
    }
}

impl Lookup<'_> {
    /// Answers what is asked about one definition.
    pub(super) fn edges(&self, found: &FoundDefinition) -> Result<Page<GraphFacts, GraphRow>> {
        let of = found.def();
        let mut walk = Walk {
            steps: Vec::new(),
            account: Account::new(self.question.view()),
            files: BTreeSet::new(),
            seen: HashSet::from([of]),
            notes: Vec::new(),
        };
        let (noun, shown) = match self.request.op {
            GraphOp::Callees => {
                self.callees(of, &mut walk)?;
                ("callee", (self.request.max_depth() > 1, true))
            }
            GraphOp::Implementations => {
                self.implementations(of, found, &mut walk)?;
                ("implementation", (true, false))
            }
            GraphOp::Refs => {
                self.callers(of, &|_| true, 1, &mut walk)?;
                ("reference", (true, false))
            }
            _ => {
                let is_call = |kind| is_call_of(found.kind, kind);
                self.callers(of, &is_call, self.request.max_depth(), &mut walk)?;
                ("caller", (true, self.request.max_depth() > 1))
            }
        };
        self.walked(found, walk, noun, shown)
    }

    fn callers(&self, of: DefId, is_meant: &dyn Fn(ReferenceKind) -> bool, depth: u32, walk: &mut Walk) -> Result<()> {
        let mut level = vec![of];
        let is_callable = self.linker.definition(of).is_some_and(|of| of.kind.is_callable());
        for depth in 1..=depth {
            let mut next = Vec::new();
            for of in level {
                let mentions = self.linker.mentions(of, self.is_wanted())?;
                if depth == 1 {
                    walk.account.add_others(&mentions);
                    walk.account.in_text = self.in_text(of, &mentions.files)?;
                    walk.account.unknown += self.in_hidden_code(of)?;
                }
                for site in mentions.sites {
                    let (is_sure, kind) = (site.tier.is_sure(), site.kind);
                    if !is_meant(kind) {
                        let n = usize::from(depth == 1);
                        walk.account.other_references += if is_sure { n } else { 0 };
                        let may_call = is_sure && is_callable && kind != ReferenceKind::Import;
                        walk.account.as_values += if may_call { n } else { 0 };
                        walk.account.other_candidates += if is_sure { 0 } else { n };
                        continue;
                    }
                    let around = site.inside.filter(|_| is_sure);
                    next.extend(around.filter(|around| walk.visits(*around)));
                    walk.add(site, depth, of, kind_name(kind));
                }
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        if walk.account.total == 0 {
            walk.account.of_overridden = self.of_overridden(of, is_meant)?;
            walk.account.unread = self.unread(of)?;
            walk.account.may_run_unseen = may_run_unseen(self.question.view(), self.linker, of)
                || may_be_registered(self.question, self.linker, of)?;
        }
        Ok(())
    }

    /// Counts the references to the members that a definition overrides, directly or not.
    fn of_overridden(&self, of: DefId, is_meant: &dyn Fn(ReferenceKind) -> bool) -> Result<usize> {
        const MAX_OVERRIDDEN: usize = 16;
        let (mut seen, mut open, mut n) = (HashSet::from([of]), vec![of], 0);
        while let Some(next) = open.pop() {
            for base in self.linker.overridden(next) {
                if seen.len() > MAX_OVERRIDDEN || !seen.insert(base) {
                    continue;
                }
                let sites = self.linker.mentions(base, self.is_wanted())?.sites;
                n += sites
                    .iter()
                    .filter(|site| site.tier.is_sure() && is_meant(site.kind))
                    .count();
                open.push(base);
            }
        }
        Ok(n)
    }

    fn callees(&self, of: DefId, walk: &mut Walk) -> Result<()> {
        let mut level = vec![of];
        let mut outside: BTreeMap<String, usize> = BTreeMap::new();
        let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
        for depth in 1..=self.request.max_depth() {
            let mut next = Vec::new();
            for of in level {
                for site in self.calls_in(of, depth > 1) {
                    match site.targets.is_empty() {
                        true if depth == 1 => {
                            let name = self.linker.name_at(site.file, site.range.start).unwrap_or_default();
                            let numbers = if site.tier == Tier::Outside {
                                &mut outside
                            } else {
                                &mut unknown
                            };
                            *numbers.entry(name).or_default() += 1;
                        }
                        true => {}
                        false => {
                            let sure = site.targets.iter().filter(|_| site.tier.is_sure());
                            next.extend(sure.copied().filter(|target| walk.visits(*target)));
                            let kind = kind_name(site.kind);
                            walk.add(site, depth, of, kind);
                        }
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        // A generated file of the repository may define what is not found.
        let names: Vec<&str> = outside.keys().chain(unknown.keys()).map(String::as_str).collect();
        let notes = generated(self.question, &names)?;
        let (of_outside, of_unknown) = notes.split_at(outside.len());
        for (note, n) in of_outside.iter().zip(outside.values()) {
            match note {
                Some(_) => walk.account.unknown += n,
                None => walk.account.outside += n,
            }
        }
        walk.account.unknown += unknown.values().sum::<usize>();
        walk.notes
            .extend(of_outside.iter().chain(of_unknown).flatten().cloned());
        Ok(())
    }

    /// Returns the calls in a definition. `is_called` is true if only what a call runs counts: of a type, its
    /// constructors.
    fn calls_in(&self, of: DefId, is_called: bool) -> Vec<Site> {
        let parts = if is_called {
            self.linker.called_by_name(of)
        } else {
            vec![of]
        };
        let wanted = self.is_wanted();
        let uses = parts.into_iter().flat_map(|part| self.linker.uses(part));
        uses.filter(|site| is_call(site.kind) && wanted(site.file)).collect()
    }

    fn implementations(&self, of: DefId, found: &FoundDefinition, walk: &mut Walk) -> Result<()> {
        let member = (!found.kind.is_type()).then(|| self.linker.type_around(of)).flatten();
        let mut level = vec![member.unwrap_or(of)];
        let depth = if member.is_some() {
            u32::MAX
        } else {
            self.request.max_depth()
        };
        for depth in 1..=depth {
            let mut next = Vec::new();
            for base in level {
                let mentions = self.linker.mentions(base, self.is_wanted())?;
                walk.account.searched_files += mentions.files.len();
                let unknown = mentions
                    .unknown
                    .iter()
                    .filter(|site| site.kind == ReferenceKind::Inherit);
                walk.account.unknown += if depth == 1 { unknown.count() } else { 0 };
                for site in mentions.sites {
                    let Some(subtype) = site.inside.filter(|_| site.kind == ReferenceKind::Inherit) else {
                        continue;
                    };
                    if site.tier.is_sure() && walk.visits(subtype) {
                        next.push(self.linker.implemented(subtype));
                    }
                    match member {
                        None => walk.add(site, depth, base, "inherit"),
                        Some(_) => self.overrides(of, &found.name, subtype, &site, depth, walk),
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        let (satisfying, kind) = match member {
            None => (self.linker.satisfying(of)?, "inherit"),
            Some(_) if walk.steps.is_empty() => (self.linker.overriding(of)?, "override"),
            Some(_) => (Vec::new(), "override"),
        };
        let wanted = self.is_wanted();
        for one in satisfying.into_iter().filter(|one| wanted(one.file)) {
            let site = Site {
                tier: Tier::Type,
                targets: vec![of],
                ..self.linker.site_of(one)
            };
            walk.add(site, 1, of, kind);
        }
        Ok(())
    }

    /// Adds the members of a subtype that have the name of a member of its base.
    fn overrides(&self, of: DefId, name: &str, subtype: DefId, inherits: &Site, depth: u32, walk: &mut Walk) {
        for member in self.linker.own_members(subtype, name) {
            let Some(definition) = self.linker.definition(member) else {
                continue;
            };
            let site = Site {
                file: member.file,
                range: definition.name_range,
                inside: Some(member),
                targets: vec![of],
                ..inherits.clone()
            };
            walk.add(site, depth, of, "override");
        }
    }

    fn walked(
        &self,
        of: &FoundDefinition,
        mut walk: Walk,
        noun: &str,
        shown: (bool, bool),
    ) -> Result<Page<GraphFacts, GraphRow>> {
        let mut depths: Vec<usize> = Vec::new();
        for step in walk.steps.iter().filter(|step| step.site.tier.is_sure()) {
            depths.resize(depths.len().max(step.depth as usize), 0);
            depths[step.depth as usize - 1] += 1;
        }
        walk.steps
            .retain(|step| self.request.candidates || step.site.tier.is_sure());
        walk.steps.sort_by_key(|step| {
            (
                step.depth,
                !step.site.tier.is_sure(),
                step.site.file,
                step.site.range.start,
            )
        });
        let mut line = walk.account.to_text(noun, self.how_to_list_candidates());
        if depths.len() > 1 {
            line += &format!(" · by depth {}", by_depth(&depths));
        }
        let is_uncertain = walk.account.is_uncertain();
        let facts = EdgeFacts {
            target: of.id.clone(),
            uncertain: is_uncertain,
            account: walk.account,
            depths,
        };
        let mut page = self.stepped(walk.steps, shown, GraphFacts::Edges(facts))?;
        page.is_unfinished |= page.is_empty && is_uncertain;
        page.notes = walk.notes;
        page.head = Recorded::of(|out| out.whole_line(&line));
        Ok(page)
    }

    /// Returns a page of steps.
    fn stepped(&self, steps: Vec<Step>, shown: (bool, bool), facts: GraphFacts) -> Result<Page<GraphFacts, GraphRow>> {
        let n_all = steps.len();
        let of_page: Vec<Step> = self.part.of(steps);
        let mut wish = Wish::default();
        for step in &of_page {
            wish.position(step.site.file, step.site.range.start);
            step.site
                .inside
                .iter()
                .chain(&step.site.targets)
                .chain([&step.of])
                .for_each(|of| wish.definition(*of));
        }
        let places = wish.read(&self.question.sources())?;
        let rows = of_page
            .iter()
            .map(|step| GraphRow::Edge(self.edge(step, &places, shown)))
            .collect();
        Ok(self.page(rows, n_all, facts))
    }

    fn edge(&self, step: &Step, places: &Places, shown: (bool, bool)) -> EdgeOut {
        let Step { site, depth, kind, of } = step;
        let (line, text) = places.line(site.file, site.range.start);
        let id = |of: &DefId| places.definition(*of).map(|found| found.id.clone());
        // Of a constructor and its type, the walk may have asked for the other one.
        let is_asked = site.tier.is_sure() && self.request.op != GraphOp::Callees && self.request.op != GraphOp::Path;
        let to = if is_asked { vec![*of] } else { site.targets.clone() };
        EdgeOut {
            path: path_of(self.question.view(), site.file),
            line,
            kind,
            tier: site.tier.name(),
            depth: *depth,
            from: site.inside.as_ref().and_then(id),
            to: to.iter().filter_map(id).collect(),
            text,
            shown: (shown.0, shown.1 || !site.tier.is_sure() && site.targets.len() > 1),
        }
    }

    /// Finds the shortest chain of sure calls from one definition to another.
    pub(super) fn path(&self, first: &FoundDefinition, last: &FoundDefinition) -> Result<Page<GraphFacts, GraphRow>> {
        let (from, to) = (first.def(), last.def());
        let (came_by, n_visited) = self.calls_between(from, to);
        let mut steps = Vec::new();
        let mut at = to;
        while let Some((before, site)) = came_by.get(&at).filter(|_| at != from || steps.is_empty()) {
            steps.push(Step {
                site: Site {
                    targets: vec![at],
                    ..site.clone()
                },
                depth: 0,
                kind: kind_name(site.kind),
                of: *before,
            });
            at = *before;
        }
        steps.reverse();
        steps.iter_mut().zip(1..).for_each(|(step, depth)| step.depth = depth);
        let visited = count(n_visited, "definition");
        let line = match steps.len() {
            0 => format!(
                "no chain of sure calls from {} to {}; {visited} followed",
                first.id, last.id
            ),
            n => format!(
                "{} from {} to {}; {visited} followed",
                count(n, "call"),
                first.id,
                last.id
            ),
        };
        let facts = PathFacts {
            target: first.id.clone(),
            to: last.id.clone(),
            total: steps.len(),
            definitions_followed: n_visited,
        };
        let mut page = self.stepped(steps, (true, true), GraphFacts::Path(facts))?;
        page.head = Recorded::of(|out| out.whole_line(&line));
        Ok(page)
    }

    /// Follows calls, breadth first. Returns for each definition the one that calls it and the call.
    fn calls_between(&self, from: DefId, to: DefId) -> (HashMap<DefId, (DefId, Site)>, usize) {
        let mut came_by: HashMap<DefId, (DefId, Site)> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([from]);
        let mut n_visited = 0;
        while let Some(of) = queue.pop_front() {
            n_visited += 1;
            for site in self
                .calls_in(of, of != from)
                .into_iter()
                .filter(|site| site.tier.is_sure())
            {
                for &target in &site.targets {
                    if target != from && !came_by.contains_key(&target) && came_by.len() < MAX_VISITED {
                        came_by.insert(target, (of, site.clone()));
                        queue.push_back(target);
                    }
                }
            }
            if came_by.contains_key(&to) {
                break;
            }
        }
        (came_by, n_visited)
    }
}

/// Returns true for references that run what they refer to.
pub(crate) fn is_call(kind: ReferenceKind) -> bool {
    matches!(
        kind,
        ReferenceKind::Call | ReferenceKind::Macro | ReferenceKind::Attribute
    )
}

/// Returns true for references that run a definition of this kind. A property runs when it is read.
pub(super) fn is_call_of(of: DefinitionKind, kind: ReferenceKind) -> bool {
    is_call(kind) || of == DefinitionKind::Property && kind == ReferenceKind::Member
}

/// Returns the definitions that sure calls run, in the order of the first call of each.
pub(super) fn called(sites: &[Site]) -> Vec<DefId> {
    let sure = sites.iter().filter(|site| site.tier.is_sure() && is_call(site.kind));
    let mut seen = HashSet::new();
    let targets = sure.flat_map(|site| site.targets.iter().copied());
    targets.filter(|target| seen.insert(*target)).collect()
}

fn kind_name(kind: ReferenceKind) -> &'static str {
    UsageKind::Reference(kind).name()
}
