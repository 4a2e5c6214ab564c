//! Follows references backwards: what a change of definitions reaches.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use super::facts::{DefId, Facts, Family};
use super::query::Site;
use super::resolve::{Linker, MAX_DEPTH, Tier};
use crate::extract::{DefinitionKind, ReferenceKind};
use crate::index::lexical::LexicalError;
use crate::snapshot::FileId;

/// Methods that run before or after each test of their type.
const AROUND_TESTS: &[&str] = &[
    "setUp",
    "tearDown",
    "setUpClass",
    "tearDownClass",
    "asyncSetUp",
    "asyncTearDown",
    "setup_method",
    "teardown_method",
    "setup_class",
    "teardown_class",
    "setup",
    "teardown",
];
/// Attributes of such methods.
const MARKS_AROUND_TESTS: &[&str] = &[
    "Before",
    "BeforeEach",
    "BeforeAll",
    "BeforeClass",
    "After",
    "AfterEach",
    "AfterAll",
    "AfterClass",
    "SetUp",
    "TearDown",
    "OneTimeSetUp",
    "TestInitialize",
];

/// How one definition reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// It refers to it.
    Refers(ReferenceKind),
    /// It contains it and runs it.
    Contains,
    /// It is overridden by it, so that its callers may run it.
    Overridden,
    /// It is a type whose values run it, although no call names it.
    Type,
    /// It is a test that runs after it.
    Prepared,
}

/// What a change reaches in one step.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The definition, or `None` for code of the file outside of definitions.
    pub definition: Option<DefId>,
    /// The place in its file where the relation is.
    pub site: Site,
    /// How the definition reaches the one before.
    pub relation: Relation,
    /// Number of steps from the change.
    pub depth: u32,
    /// False if one of the steps is a candidate.
    pub is_sure: bool,
    /// The index of the one before; `None` for one step from a changed definition.
    pub before: Option<usize>,
    /// The definition that this one reaches.
    pub of: DefId,
}

/// What a change reaches, nearest first.
#[derive(Clone, Debug, Default)]
pub struct Impact {
    /// What it reaches.
    pub reached: Vec<Reached>,
    /// The changed and reached definitions with references that may mean them and are not followed, and their number.
    pub unfollowed: Vec<(DefId, usize)>,
    /// True if the limit on definitions was met.
    pub is_cut: bool,
}

/// Maximum number of impacts that are kept.
const MAX_KEPT_IMPACTS: usize = 8;

/// What definitions reach, for the same question later.
#[derive(Debug)]
pub(super) struct KeptImpact {
    of: Vec<DefId>,
    how: (Reach, Counts, bool),
    found: Vec<Impact>,
}

/// How far impact is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Limit on steps.
    pub max_depth: u32,
    /// Limit on definitions.
    pub max_reached: usize,
    /// Limit on the definitions that an uncertain reference could mean; 0 follows only sure ones.
    pub max_candidates: usize,
}

/// A definition to continue from.
struct Open {
    definition: DefId,
    before: Option<usize>,
}

impl From<DefId> for Open {
    fn from(definition: DefId) -> Self {
        Self {
            definition,
            before: None,
        }
    }
}

/// Which definitions of a level a reference counts for if it can mean several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// The first.
    Once,
    /// All.
    ForEach,
}

/// The references that already count for a definition, by index.
#[derive(Default)]
struct Counted {
    followed: HashSet<usize>,
    left: HashSet<usize>,
}

/// What is reached so far.
struct Walk {
    impact: Impact,
    /// For each place that is reached, its index if it is not followed further.
    seen: HashMap<(FileId, Option<u32>), Option<usize>>,
}

impl Walk {
    fn from(changed: &[DefId]) -> Self {
        let places = changed.iter().map(|of| ((of.file, Some(of.index)), None));
        Self {
            impact: Impact::default(),
            seen: places.collect(),
        }
    }

    /// Adds what is reached. Returns the definition to continue from.
    fn add(&mut self, one: Reached, reach: Reach) -> Option<Open> {
        let goes_on = !matches!(one.relation, Relation::Refers(ReferenceKind::Type));
        let is_last = one.depth >= reach.max_depth;
        let definition = one.definition;
        let at = match self.seen.entry((one.site.file, definition.map(|of| of.index))) {
            Entry::Vacant(new) => {
                if self.impact.reached.len() >= reach.max_reached {
                    self.impact.is_cut = true;
                    return None;
                }
                let at = self.impact.reached.len();
                new.insert((!goes_on).then_some(at));
                self.impact.reached.push(one);
                at
            }
            // A declared type reached it before.
            Entry::Occupied(mut known) => {
                let at = known.get_mut().take_if(|_| goes_on)?;
                self.impact.reached[at] = one;
                at
            }
        };
        let open = |definition| Open {
            definition,
            before: Some(at),
        };
        definition.filter(|_| goes_on && !is_last).map(open)
    }
}

/// Returns true if Python runs a method of this name without a call by name, such as `__exit__`.
fn is_run_by_language(facts: &Facts, name: &str) -> bool {
    let is_magic = name.starts_with("__") && name.ends_with("__");
    facts.family == Family::Python && is_magic && !matches!(name, "__init__" | "__new__")
}

impl Linker<'_> {
    /// Finds what changes of definitions reach. Sure steps are followed to their end before uncertain ones.
    pub fn impact(&self, changed: &[DefId], reach: Reach) -> Result<Impact, LexicalError> {
        let find = || Ok(vec![self.followed(changed, reach)?]);
        let found = self.kept(changed, reach, Counts::Once, find)?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Returns what definitions reach from memory if possible.
    fn kept(
        &self,
        of: &[DefId],
        reach: Reach,
        counts: Counts,
        find: impl FnOnce() -> Result<Vec<Impact>, LexicalError>,
    ) -> Result<Vec<Impact>, LexicalError> {
        let how = (reach, counts, self.has_candidates);
        let is_same = |kept: &&KeptImpact| kept.of == of && kept.how == how;
        if let Some(kept) = self.links.impacts.lock().iter().find(is_same) {
            return Ok(kept.found.clone());
        }
        let found = find()?;
        if !self.is_interrupted() {
            let n: usize = found.iter().map(|one| one.reached.len()).sum();
            self.links.n_kept.fetch_add(n, Ordering::Relaxed);
            let mut kept = self.links.impacts.lock();
            if kept.len() == MAX_KEPT_IMPACTS {
                kept.remove(0);
            }
            kept.push(KeptImpact {
                of: of.to_vec(),
                how,
                found: found.clone(),
            });
        }
        Ok(found)
    }

    fn followed(&self, changed: &[DefId], reach: Reach) -> Result<Impact, LexicalError> {
        let mut walk = Walk::from(changed);
        let mut level: Vec<Open> = changed.iter().copied().map(Open::from).collect();
        // Uncertain steps, which are followed after the sure ones.
        let mut later: Vec<Reached> = Vec::new();
        loop {
            let mut next = Vec::new();
            let found = self.inbound_to_all(&level, &walk.impact, reach, Counts::Once)?;
            for (definition, found, n_unfollowed) in found {
                if n_unfollowed > 0 {
                    walk.impact.unfollowed.push((definition, n_unfollowed));
                }
                for one in found {
                    if one.is_sure {
                        next.push(one);
                    } else {
                        later.push(one);
                    }
                }
            }
            if next.is_empty() {
                later.sort_by_key(|one| one.depth);
                let nearest = later.first().map_or(0, |one| one.depth);
                let n = later.partition_point(|one| one.depth == nearest);
                next = later.drain(..n).collect();
            }
            level = next.into_iter().filter_map(|one| walk.add(one, reach)).collect();
            if level.is_empty() && later.is_empty() || walk.impact.is_cut {
                return Ok(walk.impact);
            }
        }
    }

    /// Finds what uses each of several definitions, as [`impact`](Self::impact) of each with one step.
    pub fn users(&self, each: &[DefId], reach: Reach) -> Result<Vec<Impact>, LexicalError> {
        let reach = Reach { max_depth: 1, ..reach };
        self.kept(each, reach, Counts::ForEach, || self.found_users(each, reach))
    }

    fn found_users(&self, each: &[DefId], reach: Reach) -> Result<Vec<Impact>, LexicalError> {
        let level: Vec<Open> = each.iter().copied().map(Open::from).collect();
        let found = self.inbound_to_all(&level, &Impact::default(), reach, Counts::ForEach)?;
        let users = found.into_iter().map(|(definition, found, n_unfollowed)| {
            let mut walk = Walk::from(&[definition]);
            let (sure, possible): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.is_sure);
            for one in sure.into_iter().chain(possible) {
                walk.add(one, reach);
            }
            if n_unfollowed > 0 {
                walk.impact.unfollowed.push((definition, n_unfollowed));
            }
            walk.impact
        });
        Ok(users.collect())
    }

    /// Returns for each definition what reaches it in one step, and the number of references that are not followed although
    /// they may mean it. Finds the references to those of one name together, because both can be many.
    fn inbound_to_all(
        &self,
        level: &[Open],
        impact: &Impact,
        reach: Reach,
        counts: Counts,
    ) -> Result<Vec<(DefId, Vec<Reached>, usize)>, LexicalError> {
        let mut groups: HashMap<Option<(Family, String)>, Vec<usize>> = HashMap::new();
        for (at, open) in level.iter().enumerate() {
            let facts = self.facts(open.definition.file);
            let name = |facts: Arc<Facts>| {
                let definition = facts.definitions.get(open.definition.index as usize)?;
                Some((facts.family, definition.name.clone()))
            };
            groups.entry(facts.and_then(name)).or_default().push(at);
        }
        let groups: Vec<Vec<usize>> = groups.into_values().collect();
        let find = |group: &Vec<usize>| {
            let meanings: Vec<Vec<DefId>> = group.iter().map(|&at| self.meanings(level[at].definition)).collect();
            let mentions = self.mentions_of_any(&meanings.concat(), |_| !self.is_interrupted())?;
            let sites = mentions.sites;
            // Of very many definitions that a reference can mean, it names only the first.
            let all: HashSet<DefId> = meanings.iter().flatten().copied().collect();
            let n_unnamed = sites
                .iter()
                .filter(|site| !site.targets.iter().any(|of| all.contains(of)))
                .count();
            let mut n_unknown = mentions.unknown.len() + n_unnamed;
            let mut by_target: HashMap<DefId, Vec<usize>> = HashMap::new();
            for (at, site) in sites.iter().enumerate() {
                for of in &site.targets {
                    by_target.entry(*of).or_default().push(at);
                }
            }
            // Parts of one definition have the same references, which count for the first of them. For the others, one
            // shows that there are any.
            let is_sure = |at: &&usize| sites[**at].tier.is_sure() && sites[**at].kind != ReferenceKind::Import;
            let is_type = |at: &&usize| sites[**at].kind == ReferenceKind::Type;
            let shown = by_target.iter().filter_map(|(of, all)| {
                let sure = all.iter().filter(is_sure);
                Some((*of, *sure.min_by_key(is_type)?))
            });
            let shown: HashMap<DefId, usize> = shown.collect();
            let mut done: HashSet<(DefId, bool)> = HashSet::new();
            let mut counted = Counted::default();
            let mut found = Vec::new();
            for (&at, meanings) in group.iter().zip(meanings) {
                let of = level[at].definition;
                let is_callable = self
                    .definition(of)
                    .is_some_and(|definition| definition.kind.is_callable());
                let mut own: Vec<usize> = Vec::new();
                for of in &meanings {
                    if counts == Counts::ForEach || done.insert((*of, is_callable)) {
                        own.extend(by_target.get(of).into_iter().flatten());
                    } else {
                        own.extend(shown.get(of));
                    }
                }
                own.sort_unstable();
                own.dedup();
                let own = own.into_iter().map(|at| (&sites[at], at));
                let (reached, n_unfollowed) = self.inbound(&level[at], own, &mut counted, impact, reach);
                found.push((at, reached, n_unfollowed + n_unknown));
                match counts {
                    Counts::Once => n_unknown = 0,
                    Counts::ForEach => counted = Counted::default(),
                }
            }
            Ok(found)
        };
        let found: Vec<Result<Vec<_>, LexicalError>> = groups.par_iter().map(find).collect();
        let mut found = found.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        found.sort_by_key(|(at, ..)| *at);
        let of = |(at, reached, n): (usize, _, _)| (level[at].definition, reached, n);
        Ok(found.into_iter().map(of).collect())
    }

    /// Returns what reaches a definition in one step, and the number of references that are not followed. `sites` are the
    /// references to it, with their indexes in `counted`.
    fn inbound<'s>(
        &self,
        open: &Open,
        sites: impl Iterator<Item = (&'s Site, usize)>,
        counted: &mut Counted,
        impact: &Impact,
        reach: Reach,
    ) -> (Vec<Reached>, usize) {
        let of = open.definition;
        let Some(facts) = self.facts(of.file) else {
            return (Vec::new(), 0);
        };
        let definition = &facts.definitions[of.index as usize];
        let before = open.before.map(|before| &impact.reached[before]);
        let (depth, is_sure) = before.map_or((1, true), |before| (before.depth + 1, before.is_sure));
        let mut found = Vec::new();
        let mut add = |definition: Option<DefId>, site: Site, relation, is_step_sure: bool| {
            found.push(Reached {
                definition,
                site,
                relation,
                depth,
                is_sure: is_sure && is_step_sure,
                before: open.before,
                of,
            });
        };
        let mut is_called = false;
        let mut n_unfollowed = 0;
        for (site, at) in sites {
            let is_likely = site.targets.len() <= reach.max_candidates;
            // The type of a parameter does not run the constructor.
            let is_annotation = site.kind == ReferenceKind::Type && definition.kind.is_callable();
            let is_import = site.kind == ReferenceKind::Import;
            if is_import || is_annotation || !site.tier.is_sure() && !is_likely {
                let is_left = !site.tier.is_sure() && (is_import || !is_likely);
                n_unfollowed += usize::from(is_left && counted.left.insert(at));
                continue;
            }
            is_called |= site.tier.is_sure();
            if counted.followed.insert(at) {
                let relation = Relation::Refers(site.kind);
                add(site.inside, site.clone(), relation, site.tier.is_sure());
            }
        }
        // A call of a type's constructor does not run those of its subtypes.
        if !self.is_constructor(of) {
            for base in self.overridden(of) {
                is_called = true;
                add(Some(base), self.site_of(base), Relation::Overridden, true);
            }
        }
        let around = definition.container.map(|container| facts.def(container));
        if let Some(around) = around.filter(|around| {
            let outer = &facts.definitions[around.index as usize];
            outer.kind.is_callable() && definition.kind != DefinitionKind::Test
        }) {
            is_called = true;
            add(Some(around), self.site_of(of), Relation::Contains, true);
        }
        let prepared = self.prepared(&facts, of);
        let is_prepared = !prepared.is_empty();
        for test in prepared {
            is_called = true;
            add(Some(test), self.site_of(test), Relation::Prepared, true);
        }
        let is_by_language = is_run_by_language(&facts, &definition.name);
        let is_possible = reach.max_candidates > 0 && (!is_called || !is_prepared && self.has_outside_base(of));
        if (is_by_language || is_possible)
            && definition.kind.is_callable()
            && definition.kind != DefinitionKind::Test
            && let Some(of_type) = self.type_of_member(&facts, of)
        {
            add(Some(of_type), self.site_of(of), Relation::Type, is_by_language);
        }
        (found, n_unfollowed)
    }

    /// Returns the type that a method belongs to, also if it is defined outside of it.
    pub(super) fn type_of_member(&self, facts: &Facts, of: DefId) -> Option<DefId> {
        if let Some(around) = self.type_around(of) {
            return Some(self.implemented(around));
        }
        let definition = &facts.definitions[of.index as usize];
        let qualifier = definition.qualifier.as_ref()?;
        let found = self.bare_name(facts, qualifier, definition.name_range.start, MAX_DEPTH);
        found.syms.iter().find_map(super::resolve::Sym::definition)
    }

    /// Returns the tests that a method runs for, if it runs before or after each test.
    fn prepared(&self, facts: &Facts, of: DefId) -> Vec<DefId> {
        let definition = &facts.definitions[of.index as usize];
        let is_test = |&index: &u32| facts.has_kind(index, DefinitionKind::Test);
        if facts.family == Family::Go && definition.name == "TestMain" {
            let files = self.links.environment.package_of(self, facts).unwrap_or_default();
            let tests = files.iter().filter_map(|file| self.facts(*file)).flat_map(|facts| {
                let indices = 0..facts.definitions.len() as u32;
                let tests = indices.filter(|&index| facts.has_kind(index, DefinitionKind::Test));
                tests.map(|index| facts.def(index)).collect::<Vec<_>>()
            });
            return tests.collect();
        }
        let Some(container) = definition.container else {
            return Vec::new();
        };
        let marks = facts.references_in(definition.range);
        let is_marked = facts.references[marks]
            .iter()
            .take_while(|reference| reference.range.start < definition.name_range.start)
            .any(|mark| MARKS_AROUND_TESTS.contains(&mark.name.as_str()));
        if !is_marked && !AROUND_TESTS.contains(&definition.name.as_str()) {
            return Vec::new();
        }
        let tests = facts.children(container).iter().copied().filter(is_test);
        tests.map(|index| facts.def(index)).collect()
    }

    /// Returns the place of a definition's name.
    pub fn site_of(&self, of: DefId) -> Site {
        Site {
            file: of.file,
            range: self
                .definition(of)
                .map_or_else(Default::default, |definition| definition.name_range),
            kind: ReferenceKind::Name,
            inside: Some(of),
            tier: Tier::Scope,
            is_lost: false,
            targets: vec![of],
        }
    }
}
