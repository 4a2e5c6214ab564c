//! The relations of a definition in a few lines: who calls it, which tests do, and what it calls.

use std::collections::{BTreeSet, HashSet};

use serde::Serialize;

use super::account::Account;
use super::edges::{called, is_call, is_call_of};
use super::impact::is_test;
use super::places::{Places, Wish};
use super::rows::name_of;
use super::unreferenced::def_of;
use crate::extract::{DefinitionKind, ReferenceKind};
use crate::link::{DefId, Linker, Site, Tier};
use crate::model::count::count;
use crate::ops::paths::path_of;
use crate::ops::question::Question;
use crate::ops::sink::{Sink, Style};
use crate::query::{FoundDefinition, is_minor, is_test_path};
use crate::session::Result;
use crate::snapshot::View;

/// Maximum number of files with the name of a definition in which its callers are sought.
const MAX_FILES: usize = 300;
/// Maximum number of callers and of callees that are listed.
const MAX_LISTED: usize = 3;

/// The relations of a definition.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RelationsOut {
    /// Calls of a function, or references to anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<ReferencesOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<ReferencesOut>,
    /// Definitions that a function calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    callees: Option<CalleesOut>,
    /// Number of files that contain the name, if they are too many to be searched for callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    named_in_files: Option<usize>,
    #[serde(skip)]
    id: String,
}

/// The references to a definition. All numbers are those before any limit.
#[derive(Debug, Serialize)]
struct ReferencesOut {
    total: usize,
    files: usize,
    /// Number of tests that refer to it directly.
    tests: usize,
    candidates: usize,
    /// Number of mentions of the name that mean something else, also outside of the repository.
    elsewhere: usize,
    unknown: usize,
    searched_files: usize,
    /// The first ones: one per definition, code before tests.
    first: Vec<EndOut>,
}

/// What a definition calls.
#[derive(Debug, Serialize)]
struct CalleesOut {
    /// Number of definitions.
    total: usize,
    /// Number of calls with candidates.
    candidates: usize,
    /// Number of calls of something outside of the repository.
    outside: usize,
    /// Number of calls of which nothing is known.
    unknown: usize,
    first: Vec<EndOut>,
}

/// A reference with the definition around it, or a called definition.
#[derive(Debug, Serialize)]
struct EndOut {
    path: String,
    line: u32,
    /// The id of the definition; null for code at file level.
    id: Option<String>,
}

/// Finds the relations of a definition. Returns `None` for kinds that code does not refer to by name.
pub(crate) fn relations(
    question: &Question<'_>,
    linker: &Linker<'_>,
    found: &FoundDefinition,
) -> Result<Option<RelationsOut>> {
    if is_minor(found) {
        return Ok(None);
    }
    let (view, of) = (question.view(), def_of(found));
    let is_callable = found.kind.is_callable();
    let n_named = linker.n_files_naming(of, usize::MAX)?.unwrap_or_default();
    let references = match n_named {
        0..=MAX_FILES => Some(References::of(question, linker, found)?),
        _ => None,
    };
    let calls: Vec<Site> = if is_callable {
        let uses = linker.uses(of).into_iter();
        uses.filter(|site| is_call(site.kind)).collect()
    } else {
        Vec::new()
    };
    let called = called(&calls);
    let mut wish = Wish::default();
    let sites = references.iter().flat_map(|references| &references.first);
    for site in sites {
        wish.position(site.file, site.range.start);
        site.inside.iter().for_each(|inside| wish.definition(*inside));
    }
    called.iter().take(MAX_LISTED).for_each(|of| wish.definition(*of));
    let places = wish.read(&question.sources())?;
    let mut out = RelationsOut {
        named_in_files: references.is_none().then_some(n_named),
        callees: is_callable.then(|| CalleesOut::of(view, &calls, &called, &places)),
        id: found.id.clone(),
        ..RelationsOut::default()
    };
    let referring = references.map(|references| references.out(view, &places));
    if is_callable {
        // A test runner calls tests.
        out.callers = referring.filter(|callers| callers.total > 0 || !is_test(view, linker, of));
    } else {
        out.references = referring;
    }
    Ok(Some(out))
}

/// Counts the sure calls of a definition.
pub(crate) fn n_callers(linker: &Linker<'_>, of: DefId, kind: DefinitionKind) -> Result<usize> {
    let sites = linker.mentions(of, |_| true)?.sites;
    let is_caller = |site: &&Site| site.tier.is_sure() && is_call_of(kind, site.kind);
    Ok(sites.iter().filter(is_caller).count())
}

/// The references to a definition.
struct References {
    account: Account,
    n_tests: usize,
    /// The first ones: one per definition that contains them, code before tests.
    first: Vec<Site>,
}

impl References {
    fn of(question: &Question<'_>, linker: &Linker<'_>, found: &FoundDefinition) -> Result<Self> {
        let mentions = linker.mentions(def_of(found), |_| true)?;
        let mut account = Account::new(question.view());
        account.add_others(&mentions);
        let (mut files, mut tests) = (BTreeSet::new(), BTreeSet::new());
        let (mut first, mut seen) = (Vec::new(), HashSet::new());
        for site in mentions.sites {
            let is_meant = if found.kind.is_callable() {
                is_call_of(found.kind, site.kind)
            } else {
                site.kind != ReferenceKind::Import
            };
            if !is_meant {
                continue;
            }
            account.add(&site, &mut files);
            if !site.tier.is_sure() {
                continue;
            }
            let test = site.inside.filter(|inside| is_test(question.view(), linker, *inside));
            tests.extend(test);
            if seen.insert((site.file, site.inside)) {
                let is_in_test = test.is_some() || is_test_path(&path_of(question.view(), site.file));
                first.push((is_in_test, site));
            }
        }
        first.sort_by_key(|(is_in_test, _)| *is_in_test);
        Ok(Self {
            account,
            n_tests: tests.len(),
            first: first.into_iter().take(MAX_LISTED).map(|(_, site)| site).collect(),
        })
    }

    fn out(self, view: &View, places: &Places) -> ReferencesOut {
        let Account {
            total,
            files,
            candidates,
            elsewhere,
            outside,
            unknown,
            searched_files,
            ..
        } = self.account;
        let end = |site: Site| EndOut {
            path: path_of(view, site.file),
            line: places.line(site.file, site.range.start).0,
            id: site
                .inside
                .and_then(|inside| Some(places.definition(inside)?.id.clone())),
        };
        ReferencesOut {
            total,
            files,
            tests: self.n_tests,
            candidates,
            elsewhere: elsewhere + outside,
            unknown,
            searched_files,
            first: self.first.into_iter().map(end).collect(),
        }
    }
}

impl CalleesOut {
    fn of(view: &View, calls: &[Site], called: &[DefId], places: &Places) -> Self {
        let n = |tier: Tier| calls.iter().filter(|site| site.tier == tier).count();
        let found = called.iter().filter_map(|of| places.definition(*of));
        let first = found.map(|found| EndOut {
            path: path_of(view, found.file),
            line: found.name_line,
            id: Some(found.id.clone()),
        });
        Self {
            total: called.len(),
            candidates: n(Tier::Named),
            outside: n(Tier::Outside),
            unknown: n(Tier::Unknown),
            first: first.collect(),
        }
    }
}

impl RelationsOut {
    /// Writes a line for the references and a line for the calls. `is_command` determines how a call is written.
    pub(crate) fn render(&self, out: &mut dyn Sink, is_command: bool) {
        if let Some(n) = self.named_in_files {
            let op = if self.callees.is_some() { "callers" } else { "refs" };
            let how = if is_command {
                format!("codescout graph {op} {}", self.id)
            } else {
                format!("graph op={op} target={}", self.id)
            };
            out.whole_line(&format!("    named in {}: {how}", count(n, "file")));
        }
        if let Some(callers) = &self.callers {
            callers.render(out, |total| format!("called by {total}"), "caller");
        }
        if let Some(references) = &self.references {
            references.render(out, |total| count(total, "reference"), "reference");
        }
        if let Some(callees) = &self.callees {
            callees.render(out);
        }
    }
}

impl ReferencesOut {
    fn render(&self, out: &mut dyn Sink, number: fn(usize) -> String, noun: &str) {
        let mut rest = Vec::new();
        let is_uncertain = self.candidates + self.unknown > 0;
        let mut add = |n: usize, text: String| rest.extend((n > 0).then_some(text));
        add(self.tests, count(self.tests, "test"));
        add(self.candidates, count(self.candidates, "candidate"));
        if self.total > 0 {
            let what = format!("{} in {}", number(self.total), count(self.files, "file"));
            return render_ends(out, &what, &self.first, self.total, &rest);
        }
        add(
            self.elsewhere,
            format!("{} of something else", count(self.elsewhere, "mention")),
        );
        add(self.unknown, format!("{} unresolved", self.unknown));
        if rest.is_empty() {
            rest.push(format!("{} with the name searched", count(self.searched_files, "file")));
        }
        let certain = if is_uncertain { "certain " } else { "" };
        render_ends(out, &format!("no {certain}{noun}s"), &[], 0, &rest);
    }
}

impl CalleesOut {
    fn render(&self, out: &mut dyn Sink) {
        let mut rest = Vec::new();
        let mut add = |n: usize, text: String| rest.extend((n > 0).then_some(text));
        add(self.candidates, format!("{} uncertain", self.candidates));
        add(self.unknown, format!("{} unresolved", self.unknown));
        if self.total > 0 {
            return render_ends(out, &format!("calls {}", self.total), &self.first, self.total, &rest);
        }
        let outside = count(self.outside, "call");
        add(self.outside, format!("{outside} of something outside"));
        if !rest.is_empty() {
            render_ends(out, "no sure callees", &[], 0, &rest);
        }
    }
}

fn render_ends(out: &mut dyn Sink, what: &str, first: &[EndOut], total: usize, rest: &[String]) {
    out.plain(&format!("    {what}"));
    for (number, end) in first.iter().enumerate() {
        out.plain(if number == 0 { ": " } else { ", " });
        out.span(Style::Path, &format!("{}:{}", end.path, end.line));
        if let Some(id) = &end.id {
            out.plain(&format!(" {}", name_of(id)));
        }
    }
    if !first.is_empty() && first.len() < total {
        out.plain(", …");
    }
    if !rest.is_empty() {
        out.plain(&format!("; {}", rest.join(", ")));
    }
    out.end();
}
