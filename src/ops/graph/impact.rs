//! What a change reaches: the definitions and tests that depend on it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::account::in_hidden_code;
use super::by_package::{by_package, to_text};
use super::facts::{GraphFacts, ImpactFacts};
use super::places::{Places, Wish};
use super::rows::{GraphRow, name_of};
use super::{CiList, Lookup};
use crate::extract::{self, DefinitionKind, ReferenceKind};
use crate::link::{DefId, Impact, Linker, Reach, Reached, Relation, Site};
use crate::model::Hint;
use crate::model::count::count;
use crate::ops::diff::Diff;
use crate::ops::op::{Page, Paging};
use crate::ops::paths::path_of;
use crate::ops::provenance::ProvenanceOut;
use crate::ops::question::Question;
use crate::ops::sink::{Recorded, Sink, Style};
use crate::query::{FoundDefinition, UsageKind, is_test_path};
use crate::session::{OpError, Result};
use crate::snapshot::{FileId, View};

/// Maximum number of definitions that a change is followed through.
const MAX_REACHED: usize = 20_000;
/// Maximum number of definitions that an uncertain reference could mean, for a change to be followed through it.
const MAX_CANDIDATES: usize = 3;

/// Number of tests that precede the definitions in a list.
const FIRST_TESTS: usize = 30;

/// Maximum number of definitions through which one is said to reach the change.
const MAX_STEPS: usize = 32;

/// Maximum number of reasons of one kind that are named if the tests to run are not known.
const MAX_DOUBTS: usize = 3;

/// Maximum number of definitions whose names are sought in files whose code is not read.
const MAX_SOUGHT: usize = 200;

/// A definition or test that a change reaches.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReachedOut {
    /// `definition`, `test`, or `test_file` for code of a test file outside of any test.
    pub(crate) kind: &'static str,
    pub(crate) path: String,
    pub(crate) line: u32,
    /// The line in which it refers to the first definition in `via`.
    #[serde(skip)]
    pub(crate) use_line: u32,
    /// The id of the definition; null for code outside of definitions.
    pub(crate) id: Option<String>,
    /// The qualified name.
    pub(crate) name: Option<String>,
    /// Number of steps from the change; 0 for a test that changed itself.
    pub(crate) depth: u32,
    /// How it reaches the first definition in `via`; `changed` for a test that changed itself.
    pub(crate) relation: &'static str,
    /// False if a step of `via` only has the name of what it means.
    pub(crate) sure: bool,
    /// The ids of the definitions through which it reaches the change; the last one changed. Of more than [`MAX_STEPS`],
    /// those before the last one are left out.
    pub(crate) via: Vec<String>,
    /// The line of the source in which it refers to the first definition in `via`.
    pub(crate) text: String,
    /// A line above the row; empty if there is none.
    #[serde(skip)]
    heading: &'static str,
}

/// The totals of what a change reaches.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ImpactTotals {
    /// Number of changed definitions that were followed.
    pub(crate) changed: usize,
    pub(crate) definitions: usize,
    pub(crate) possible_definitions: usize,
    pub(crate) tests: usize,
    pub(crate) possible_tests: usize,
    /// Number of files with tests.
    pub(crate) test_files: usize,
    /// Number of definitions and tests by their number of steps from the change, from 1.
    pub(crate) depths: Vec<usize>,
    /// True if more definitions are reached than are followed.
    pub(crate) is_cut: bool,
    /// Number of files with changes outside of definitions, which are not followed.
    pub(crate) other_files: usize,
    /// Number of references that may mean a changed or reached definition and are not followed.
    pub(crate) unfollowed: usize,
}

/// What a change reaches.
#[derive(Debug, Default)]
pub(crate) struct Affected {
    /// Definitions, nearest first.
    pub(crate) definitions: Vec<ReachedOut>,
    /// Tests, sure ones first, then nearest first.
    pub(crate) tests: Vec<ReachedOut>,
    pub(crate) totals: ImpactTotals,
    /// The first reasons for which there may be more.
    doubts: Vec<String>,
    /// Number of unchanged imports of removed definitions. What imports their files may fail.
    n_broken: usize,
}

/// A row before its text is read.
struct Entry {
    kind: &'static str,
    file: FileId,
    definition: Option<DefId>,
    /// The index in the impact; `None` for a changed test.
    reached: Option<usize>,
}

impl ReachedOut {
    pub(crate) fn render(&self, out: &mut dyn Sink) {
        if !self.heading.is_empty() {
            out.line(self.heading);
        }
        let certainty = if self.sure { "" } else { "possible " };
        out.span(Style::Fact, &format!("{certainty}{} ", self.kind.replace('_', " ")));
        out.span(Style::Path, &format!("{}:{}", self.path, self.line));
        if let Some(name) = &self.name {
            out.plain(" ");
            out.span(Style::Name, name);
        }
        out.span(Style::Fact, &format!(" {}", self.relation));
        let n_left_out = (self.depth as usize).saturating_sub(MAX_STEPS);
        for (number, id) in self.via.iter().enumerate() {
            if n_left_out > 0 && number + 1 == self.via.len() {
                out.span(Style::Fact, &format!(" → {n_left_out} more"));
            }
            out.plain(&format!(" → {}", name_of(id)));
        }
        out.end();
    }
}

impl ImpactTotals {
    /// Describes the totals in one line.
    pub(crate) fn to_text(&self) -> String {
        let mut parts = vec![
            format!("{} changed", count(self.changed, "definition")),
            format!("reaches {}", count(self.definitions, "definition")),
            count(self.tests, "test"),
        ];
        if self.possible_definitions + self.possible_tests > 0 {
            let definitions = count(self.possible_definitions, "definition");
            parts.push(format!(
                "possibly {definitions}, {}",
                count(self.possible_tests, "test")
            ));
        }
        if let Some(last) = parts.last_mut().filter(|_| self.test_files > 0) {
            *last += &format!(" in {}", count(self.test_files, "file"));
        }
        if self.depths.len() > 1 {
            parts.push(format!("by depth {}", by_depth(&self.depths)));
        }
        if self.other_files > 0 {
            let files = count(self.other_files, "file");
            parts.push(format!("changes outside of definitions in {files} are not followed"));
        }
        if self.unfollowed > 0 {
            let references = count(self.unfollowed, "unresolved reference");
            parts.push(format!("{references} not followed"));
        }
        if self.is_cut {
            parts.push(format!("stopped after {MAX_REACHED} definitions"));
        }
        parts.join(" · ")
    }
}

impl Lookup<'_> {
    /// Answers what depends on a definition, or on the changes between two states.
    pub(super) fn impact(&self, of: Option<&FoundDefinition>) -> Result<Page<GraphFacts, GraphRow>> {
        let typed = self.request.target.as_deref().unwrap_or_default();
        let max_depth = match self.request.depth {
            None | Some(0) => u32::MAX,
            Some(depth) => depth,
        };
        let mut facts = ImpactFacts::default();
        let files = self.files_of_impact().unwrap_or_default();
        let (affected, provenance) = match of {
            None if !files.is_empty() => {
                let changed = self.definitions_of(&files);
                if changed.is_empty() {
                    return Err(OpError::new(
                        format!("no definitions in {typed}"),
                        Hint::each(
                            "to see what imports it, use graph importers",
                            "to see what imports it, use op importers",
                        ),
                    ));
                }
                let affected = affected(self.question, self.linker, &changed, max_depth)?;
                (affected, self.question.provenance())
            }
            None => Diff::affected(self.ask, typed, &self.request.files, max_depth)?,
            Some(of) => {
                let affected = affected(self.question, self.linker, &[of.def()], max_depth)?;
                (affected, self.question.provenance())
            }
        };
        facts.target = match of {
            Some(of) => Some(of.id.clone()),
            None => (!files.is_empty()).then(|| self.path_of(typed)),
        };
        if let Some(list) = self.request.ci {
            return self.tests_to_run(list, &affected, provenance);
        }
        let line = affected.totals.to_text();
        facts.totals = affected.totals.clone();
        let rows = affected.parts(|row| row.sure || self.request.candidates);
        let (packages, unreadable) = self.question.seen.packages(&self.question.sources())?;
        facts.packages = by_package(packages, rows.iter());
        let by_package = (!facts.packages.is_empty()).then(|| to_text(&facts.packages));
        let rows: Vec<GraphRow> = rows.into_iter().map(GraphRow::Reached).collect();
        facts.total = rows.len();
        let mut page = self.page(rows, facts.total, GraphFacts::Impact(facts));
        page.provenance = Some(provenance);
        let unreadable = unreadable.iter().map(|path| format!("packages: cannot read {path}"));
        page.notes.extend(unreadable);
        page.head = Recorded::of(|out| {
            [Some(line), by_package]
                .iter()
                .flatten()
                .for_each(|line| out.whole_line(line))
        });
        Ok(page)
    }
}

impl Lookup<'_> {
    /// Returns the files whose definitions the request is about. A word is the name of a definition, not of a folder.
    pub(super) fn files_of_impact(&self) -> Option<Vec<FileId>> {
        let typed = self
            .request
            .target
            .as_ref()
            .filter(|typed| typed.contains(['/', '.']))?;
        self.files_at(&self.path_of(typed))
    }

    /// Returns the definitions in files, without the packages and namespaces that the files belong to.
    fn definitions_of(&self, files: &[FileId]) -> Vec<DefId> {
        let definitions = |file: &FileId| {
            let found = self.linker.definitions(*file).unwrap_or_default();
            let file = *file;
            let found = found
                .into_iter()
                .enumerate()
                .filter(|(_, one)| one.kind != DefinitionKind::Module);
            found.map(move |(index, _)| DefId {
                file,
                index: index as u32,
            })
        };
        files.iter().flat_map(definitions).collect()
    }

    /// Lists the tests that a change reaches, sure or not, for another program. It cannot tell which if the change has
    /// effects that are not followed, or if it reaches no test but may reach some.
    fn tests_to_run(
        &self,
        list: CiList,
        affected: &Affected,
        provenance: ProvenanceOut,
    ) -> Result<Page<GraphFacts, GraphRow>> {
        let mut names: Vec<String> = Vec::new();
        for test in &affected.tests {
            let name = match (list, &test.id) {
                (CiList::Ids, Some(id)) => id,
                _ => &test.path,
            };
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let rows: Vec<GraphRow> = names.into_iter().map(|name| GraphRow::Test(TestOut { name })).collect();
        let facts = GraphFacts::Impact(ImpactFacts {
            target: None,
            total: rows.len(),
            totals: affected.totals.clone(),
            packages: Vec::new(),
        });
        let paging = Paging::numbered(None, 0, rows.len(), usize::MAX);
        let mut page = Page::new(provenance, facts, Vec::new(), paging);
        page.is_empty = rows.is_empty();
        let is_complete = page
            .provenance
            .as_ref()
            .is_none_or(|known| known.incomplete_because().is_empty());
        let totals = &affected.totals;
        let is_all_followed = !totals.is_cut && totals.other_files == 0 && affected.n_broken == 0 && is_complete;
        page.cannot_tell = !is_all_followed || rows.is_empty() && totals.unfollowed > 0;
        page.rows = rows;
        page.notes.push(totals.to_text());
        if page.cannot_tell {
            page.notes.extend(affected.doubts.iter().cloned());
            page.notes
                .push("cannot tell which tests the change reaches: run all".to_owned());
        }
        Ok(page)
    }
}

/// A test or a file with tests.
#[derive(Debug, Serialize)]
pub(crate) struct TestOut {
    /// The id of the test, or the path of the file.
    name: String,
}

impl TestOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        out.whole_line(&self.name);
    }
}

/// Finds what changes of definitions reach, in at most `max_depth` steps. If no test is reached, counts mentions in code
/// that is not read, too.
pub(crate) fn affected(
    question: &Question<'_>,
    linker: &Linker<'_>,
    changed: &[DefId],
    max_depth: u32,
) -> Result<Affected> {
    let (mut affected, impact, places) = reached(question, linker, changed, max_depth)?;
    if affected.tests.is_empty() {
        let reached = impact.reached.iter().filter_map(|reached| reached.definition);
        for of in changed.iter().copied().chain(reached).take(MAX_SOUGHT) {
            let n = in_hidden_code(question, linker, of)?;
            affected.totals.unfollowed += n;
            if let (Some(found), 1..) = (places.definition(of), n) {
                affected
                    .doubts
                    .push(format!("code that is not read names {}", found.id));
            }
        }
    }
    Ok(affected)
}

/// Finds the definitions and tests that use each of several definitions.
pub(crate) fn users(question: &Question<'_>, linker: &Linker<'_>, each: &[DefId]) -> Result<Vec<Vec<ReachedOut>>> {
    question.sources().go_on()?;
    let impacts = linker.users(each, reach(1))?;
    let mut wish = Wish::default();
    for (of, impact) in each.iter().zip(&impacts) {
        wish_for(&mut wish, &[*of], impact);
    }
    // The files are read once for all.
    let places = wish.read(&question.sources())?;
    let users = |(of, impact): (&DefId, &Impact)| {
        let users = affected_by(question, linker, &[*of], impact, &places);
        users.definitions.into_iter().chain(users.tests).collect()
    };
    Ok(each.iter().zip(&impacts).map(users).collect())
}

/// Finds the imports of definitions. Only their removal matters to these.
pub(crate) fn imports_of(question: &Question<'_>, linker: &Linker<'_>, each: &[DefId]) -> Result<Vec<ReachedOut>> {
    let mut sites: Vec<(DefId, Site)> = Vec::new();
    let mut wish = Wish::default();
    for &of in each {
        question.sources().go_on()?;
        let mentions = linker.mentions(of, |_| true)?.sites.into_iter();
        let imports = mentions.filter(|site| site.kind == ReferenceKind::Import && site.tier.is_sure());
        let n_known = sites.len();
        sites.extend(imports.map(|site| (of, site)));
        if sites.len() > n_known {
            wish.definition(of);
        }
    }
    sites
        .iter()
        .for_each(|(_, site)| wish.position(site.file, site.range.start));
    let places = wish.read(&question.sources())?;
    let row = |(of, site): (DefId, Site)| {
        let (line, text) = places.line(site.file, site.range.start);
        ReachedOut {
            kind: "definition",
            path: path_of(question.view(), site.file),
            line,
            use_line: line,
            id: None,
            name: None,
            depth: 1,
            relation: UsageKind::Reference(site.kind).name(),
            sure: true,
            via: places
                .definition(of)
                .map(|found| found.id.clone())
                .into_iter()
                .collect(),
            text,
            heading: "",
        }
    };
    Ok(sites.into_iter().map(row).collect())
}

fn reached(
    question: &Question<'_>,
    linker: &Linker<'_>,
    changed: &[DefId],
    max_depth: u32,
) -> Result<(Affected, Impact, Places)> {
    let impact = impact(question, linker, changed, max_depth)?;
    let mut wish = Wish::default();
    wish_for(&mut wish, changed, &impact);
    let places = wish.read(&question.sources())?;
    let affected = affected_by(question, linker, changed, &impact, &places);
    Ok((affected, impact, places))
}

fn impact(question: &Question<'_>, linker: &Linker<'_>, changed: &[DefId], max_depth: u32) -> Result<Impact> {
    question.sources().go_on()?;
    Ok(linker.impact(changed, reach(max_depth))?)
}

fn reach(max_depth: u32) -> Reach {
    Reach {
        max_depth,
        max_reached: MAX_REACHED,
        max_candidates: MAX_CANDIDATES,
    }
}

/// Adds the places that [`affected_by`] shows.
fn wish_for(wish: &mut Wish, changed: &[DefId], impact: &Impact) {
    changed.iter().for_each(|of| wish.definition(*of));
    for reached in &impact.reached {
        reached.definition.iter().for_each(|of| wish.definition(*of));
        wish.position(reached.site.file, reached.site.range.start);
    }
    let unfollowed = impact.unfollowed.iter().take(MAX_DOUBTS);
    unfollowed.for_each(|(of, _)| wish.definition(*of));
}

fn affected_by(
    question: &Question<'_>,
    linker: &Linker<'_>,
    changed: &[DefId],
    impact: &Impact,
    places: &Places,
) -> Affected {
    let view = question.view();
    let (definitions, tests) = entries(question, linker, changed, impact);
    let doubt = |(of, n): &(DefId, usize)| {
        let references = count(*n, "unresolved reference");
        Some(format!("{references} may mean {}", places.definition(*of)?.id))
    };
    let firsts = firsts(impact);
    let row = |entry: &Entry| {
        let reached = entry.reached.map(|at| &impact.reached[at]);
        let found = entry.definition.and_then(|of| places.definition(of));
        let site = reached.map(|reached| places.line(reached.site.file, reached.site.range.start));
        let name_line = found.filter(|_| entry.kind == "test").map(|found| found.name_line);
        let (line, text) = site.unwrap_or_default();
        ReachedOut {
            kind: entry.kind,
            path: path_of(view, entry.file),
            line: name_line.unwrap_or(line),
            use_line: line,
            id: found.map(|found| found.id.clone()),
            name: found.map(qualified),
            depth: reached.map_or(0, |reached| reached.depth),
            relation: reached.map_or("changed", |reached| relation_name(reached.relation)),
            sure: reached.is_none_or(|reached| reached.is_sure),
            via: entry
                .reached
                .map_or_else(Vec::new, |at| chain(impact, at, firsts[at], places)),
            text,
            heading: "",
        }
    };
    let mut affected = Affected {
        definitions: definitions.iter().map(row).collect(),
        tests: tests.iter().map(row).collect(),
        totals: ImpactTotals {
            changed: changed.len(),
            is_cut: impact.is_cut,
            unfollowed: impact.unfollowed.iter().map(|(_, n)| n).sum(),
            ..ImpactTotals::default()
        },
        ..Affected::default()
    };
    affected.doubts = impact.unfollowed.iter().take(MAX_DOUBTS).filter_map(doubt).collect();
    affected.sort();
    affected.count();
    affected
}

impl Affected {
    /// Adds what the same change reaches in an older state, unless it is known.
    pub(crate) fn add(&mut self, older: Self) {
        let known: BTreeSet<Option<String>> = self.tests.iter().map(|test| test.id.clone()).collect();
        self.tests
            .extend(older.tests.into_iter().filter(|test| !known.contains(&test.id)));
        let known: BTreeSet<Option<String>> = self.definitions.iter().map(|one| one.id.clone()).collect();
        let new = older.definitions.into_iter().filter(|one| !known.contains(&one.id));
        self.definitions.extend(new);
        self.totals.changed += older.totals.changed;
        self.totals.is_cut |= older.totals.is_cut;
        self.totals.unfollowed += older.totals.unfollowed;
        self.doubts.extend(older.doubts);
        self.sort();
        self.count();
    }

    /// Sets the files with changes that are not followed.
    pub(crate) fn set_other_files(&mut self, paths: &[&str]) {
        self.totals.other_files = paths.len();
        let named = paths.iter().take(MAX_DOUBTS);
        self.doubts
            .extend(named.map(|path| format!("{path} changed outside of definitions")));
    }

    /// Counts imports of removed definitions that did not change.
    pub(crate) fn add_broken(&mut self, imports: &[ReachedOut]) {
        self.totals.unfollowed += imports.len();
        self.n_broken += imports.len();
        let named = imports.iter().take(MAX_DOUBTS);
        self.doubts.extend(named.map(|row| {
            let removed = row.via.first().map_or("a removed definition", String::as_str);
            format!("{}:{} still imports {removed}", row.path, row.line)
        }));
    }

    /// Returns the rows to show in three parts with headings: the first tests, the definitions, the other tests.
    fn parts(self, is_shown: impl Fn(&ReachedOut) -> bool) -> Vec<ReachedOut> {
        let of = |mut rows: Vec<ReachedOut>| {
            rows.retain(&is_shown);
            rows
        };
        let (definitions, mut tests) = (of(self.definitions), of(self.tests));
        let others = tests.split_off(tests.len().min(FIRST_TESTS));
        let parts = [
            ("tests:", tests),
            ("definitions:", definitions),
            ("other tests:", others),
        ];
        let with_heading = |(heading, mut rows): (&'static str, Vec<ReachedOut>)| {
            rows.iter_mut().take(1).for_each(|row| row.heading = heading);
            rows
        };
        parts.into_iter().flat_map(with_heading).collect()
    }

    fn sort(&mut self) {
        let place = |row: &ReachedOut| (row.path.clone(), row.line);
        self.definitions
            .sort_by_cached_key(|row| (row.depth, !row.sure, place(row)));
        self.tests.sort_by_cached_key(|row| (!row.sure, row.depth, place(row)));
    }

    fn count(&mut self) {
        let n_sure = |rows: &[ReachedOut]| rows.iter().filter(|row| row.sure).count();
        let totals = &mut self.totals;
        totals.definitions = n_sure(&self.definitions);
        totals.possible_definitions = self.definitions.len() - totals.definitions;
        totals.tests = n_sure(&self.tests);
        totals.possible_tests = self.tests.len() - totals.tests;
        let files: BTreeSet<&str> = self.tests.iter().map(|test| test.path.as_str()).collect();
        totals.test_files = files.len();
        totals.depths.clear();
        for row in self.definitions.iter().chain(&self.tests).filter(|row| row.depth > 0) {
            let depth = row.depth as usize;
            totals.depths.resize(totals.depths.len().max(depth), 0);
            totals.depths[depth - 1] += 1;
        }
    }
}

/// Divides what a change reaches into definitions and tests.
fn entries(
    question: &Question<'_>,
    linker: &Linker<'_>,
    changed: &[DefId],
    impact: &Impact,
) -> (Vec<Entry>, Vec<Entry>) {
    let is_test = |of: DefId| is_test(question.view(), linker, of);
    let is_shown = |file: FileId| question.filter.passes(question.view(), file);
    let (mut definitions, mut tests) = (Vec::new(), Vec::new());
    for &of in changed.iter().filter(|of| is_test(**of) && is_shown(of.file)) {
        tests.push(Entry {
            kind: "test",
            file: of.file,
            definition: Some(of),
            reached: None,
        });
    }
    let mut whole_files = BTreeSet::new();
    for (at, reached) in impact.reached.iter().enumerate() {
        let file = reached.site.file;
        if !is_shown(file) {
            continue;
        }
        let entry = |kind, definition| Entry {
            kind,
            file,
            definition,
            reached: Some(at),
        };
        match reached.definition {
            Some(of) if is_test(of) => tests.push(entry("test", Some(of))),
            None if is_run_as_tests(question, linker, file) => {
                if whole_files.insert(file) {
                    tests.push(entry("test_file", None));
                }
            }
            definition => definitions.push(entry("definition", definition)),
        }
    }
    (definitions, tests)
}

/// Returns true if a test runner runs a definition.
pub(crate) fn is_test(view: &View, linker: &Linker<'_>, of: DefId) -> bool {
    let is_marked = linker
        .definition(of)
        .is_some_and(|found| found.kind == DefinitionKind::Test);
    // In Python, functions are tests by their name, but only in test files.
    is_marked && (is_test_path(&path_of(view, of.file)) || !has_tests_by_name(view, of.file))
}

/// Returns true if functions of a file are tests because of their names.
fn has_tests_by_name(view: &View, file: FileId) -> bool {
    extract::profile(view.lang(file)).has_tests_by_name
}

/// Returns true if a test runner runs the code of a file that is outside of definitions.
fn is_run_as_tests(question: &Question<'_>, linker: &Linker<'_>, file: FileId) -> bool {
    let path = path_of(question.view(), file);
    let name = path.rsplit('/').next().unwrap_or_default();
    let definitions = linker.definitions(file).unwrap_or_default();
    let has_tests = definitions.iter().any(|found| found.kind == DefinitionKind::Test);
    is_test_path(name) && !name.starts_with("conftest.") || has_tests && is_test_path(&path)
}

/// Returns the ids of the definitions from one that is reached to the one that changed, `first`. Of a long chain, leaves
/// out those before the last one.
fn chain(impact: &Impact, at: usize, first: DefId, places: &Places) -> Vec<String> {
    let steps = std::iter::successors(Some(&impact.reached[at]), |reached: &&Reached| {
        reached.before.map(|before| &impact.reached[before])
    });
    let mut steps: Vec<DefId> = steps.map(|reached| reached.of).take(MAX_STEPS).collect();
    if let Some(last) = steps.last_mut() {
        *last = first;
    }
    let id = |of: DefId| Some(places.definition(of)?.id.clone());
    steps.into_iter().filter_map(id).collect()
}

/// Returns for each definition that is reached the one that changed.
fn firsts(impact: &Impact) -> Vec<DefId> {
    let mut firsts: Vec<Option<DefId>> = vec![None; impact.reached.len()];
    let mut steps = Vec::new();
    for mut at in 0..firsts.len() {
        let first = loop {
            if let Some(first) = firsts[at] {
                break first;
            }
            steps.push(at);
            match impact.reached[at].before {
                Some(before) => at = before,
                None => break impact.reached[at].of,
            }
        };
        steps.drain(..).for_each(|step| firsts[step] = Some(first));
    }
    firsts.into_iter().flatten().collect()
}

/// Lists the numbers of definitions by depth; of great depths, the sum.
pub(super) fn by_depth(numbers: &[usize]) -> String {
    const MAX_LISTED: usize = 10;
    let listed: Vec<String> = numbers.iter().take(MAX_LISTED).map(usize::to_string).collect();
    let deeper: usize = numbers.iter().skip(MAX_LISTED).sum();
    let rest = if deeper > 0 {
        format!(" and {deeper} deeper")
    } else {
        String::new()
    };
    listed.join(", ") + &rest
}

/// Returns the name of a definition with its containers.
pub(crate) fn qualified(found: &FoundDefinition) -> String {
    match &found.container {
        Some(container) => format!("{container}.{}", found.name),
        None => found.name.clone(),
    }
}

fn relation_name(relation: Relation) -> &'static str {
    match relation {
        Relation::Refers(kind) => UsageKind::Reference(kind).name(),
        Relation::Contains => "contains",
        Relation::Overridden => "overridden by",
        Relation::Type => "type of",
        Relation::Prepared => "prepared by",
    }
}
