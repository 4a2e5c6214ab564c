//! Definitions that no code of the repository refers to: entry points and unused code.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;
use rayon::prelude::*;
use serde::Serialize;

use super::Lookup;
use super::account::{in_text, may_run_unseen};
use super::edges::called;
use super::facts::{GraphFacts, UnreferencedFacts};
use super::impact::is_test;
use super::rows::{GraphRow, name_of};
use crate::extract::{self, DefinitionKind};
use crate::link::{DefId, Imported, Linker, Usage, Usages};
use crate::model::count::count;
use crate::ops::ask::WithTests;
use crate::ops::op::Page;
use crate::ops::paths::path_of;
use crate::ops::sink::{Recorded, Sink, Style};
use crate::query::{FoundDefinition, Source, Sources, definitions_at, is_test_path, kind_name};
use crate::session::Result;
use crate::snapshot::FileId;

/// Attributes, decorators and annotations that do not register what they mark.
const PASSIVE_MARKS: &[&str] = &[
    "abstractmethod",
    "allow",
    "async_trait",
    "automatically_derived",
    "cached_property",
    "cfg",
    "cfg_attr",
    "classmethod",
    "cold",
    "contextmanager",
    "dataclass",
    "deny",
    "deprecated",
    "Deprecated",
    "derive",
    "doc",
    "expect",
    "final",
    "inline",
    "must_use",
    "non_exhaustive",
    "Nullable",
    "Override",
    "override",
    "overload",
    "property",
    "repr",
    "rustfmt",
    "serde",
    "staticmethod",
    "SuppressWarnings",
    "track_caller",
    "typing",
    "warn",
    "wraps",
];

/// Why code outside of the repository may run a definition, or that nothing is known to run it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// A program starts with it.
    Main,
    /// The code of a file that no other file imports.
    Script,
    /// A decorator, annotation or attribute marks it.
    Marked(String),
    /// Code outside of the repository can name it.
    Exported,
    /// A test runner runs it, or something marks it in a test file.
    Test,
    /// It may run when another definition is called, or the language runs it.
    Implicit,
    /// Nothing in the repository refers to it.
    Unused,
}

/// A definition to which there is no sure reference.
struct Unreferenced {
    /// `None` for the code of a file outside of definitions.
    found: Option<FoundDefinition>,
    file: FileId,
    reason: Reason,
    usage: Usage,
}

/// A definition without references, or the code of a file.
#[derive(Debug, Serialize)]
pub(crate) struct UnreferencedOut {
    path: String,
    line: u32,
    kind: &'static str,
    /// The id of the definition; null for the code of a file.
    pub(super) id: Option<String>,
    /// `main`, `script`, `marked`, `exported`, `test` or `unused`.
    reason: &'static str,
    /// The decorator, annotation or attribute.
    mark: Option<String>,
    /// Number of definitions that it calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<usize>,
    /// Number of references that could mean it.
    candidates: u32,
    /// Number of mentions of its name in comments, strings and files that are not parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_text: Option<usize>,
    signature: String,
}

impl Reason {
    fn name(&self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Script => "script",
            Self::Marked(_) => "marked",
            Self::Exported => "exported",
            Self::Test => "test",
            Self::Implicit => "implicit",
            Self::Unused => "unused",
        }
    }
}

impl UnreferencedOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Path, &format!("{}:{}", self.path, self.line));
        out.span(Style::Fact, &format!(" {} {} ", self.reason, self.kind));
        if let Some(mark) = &self.mark {
            out.plain(&format!("{mark} "));
        }
        out.span(Style::Name, self.id.as_deref().map_or("", name_of));
        let mut facts = Vec::new();
        facts.extend(self.calls.map(|n| format!("calls {n}")));
        facts.extend((self.candidates > 0).then(|| count(self.candidates, "candidate")));
        facts.extend(self.in_text.filter(|n| *n > 0).map(|n| format!("{n} in text")));
        if !facts.is_empty() {
            out.span(Style::Fact, &format!(" {}", facts.join(", ")));
        }
        out.end();
    }
}

/// Looks for definitions without references.
struct Scan<'a> {
    sources: Sources<'a>,
    linker: &'a Linker<'a>,
    /// The number of definitions that the parts of a type call together.
    called_by_parts: Mutex<HashMap<Vec<DefId>, usize>>,
}

impl Lookup<'_> {
    fn scan(&self) -> Scan<'_> {
        Scan {
            sources: self.question.sources(),
            linker: self.linker,
            called_by_parts: Mutex::default(),
        }
    }

    /// Lists where programs start: definitions and files that code outside of the repository runs.
    pub(super) fn entry_points(&self) -> Result<Page<GraphFacts, GraphRow>> {
        // What only tests use still starts something.
        let (mut all, mut facts) = self.unreferenced(false)?;
        all.extend(self.scripts());
        *facts.reasons.entry("script").or_default() += all.iter().filter(|one| one.reason == Reason::Script).count();
        let has_tests = self.request.candidates || self.request.files.tests == WithTests::Only;
        let is_listed = |one: &Unreferenced| match one.reason {
            Reason::Main | Reason::Script | Reason::Marked(_) | Reason::Exported => true,
            Reason::Test => has_tests,
            Reason::Implicit | Reason::Unused => false,
        };
        all.retain(is_listed);
        let scan = self.scan();
        let mut rows: Vec<(&Unreferenced, usize)> = all.par_iter().map(|one| (one, scan.n_called(one))).collect();
        rows.sort_by_cached_key(|(one, n_called)| {
            let id = one.found.as_ref().map(|found| found.id.clone());
            let rank = match one.reason {
                Reason::Main => 0,
                Reason::Script => 1,
                Reason::Marked(_) => 2,
                _ => 3,
            };
            (rank, std::cmp::Reverse(*n_called), one.file, id)
        });
        facts.total = rows.len();
        let mut line = format!(
            "{} of {}",
            count(rows.len(), "entry point"),
            count(facts.definitions, "definition")
        );
        for reason in ["main", "script", "marked", "exported", "test"] {
            let n = facts.reasons.get(reason).copied().unwrap_or_default();
            if n > 0 {
                line += &format!(" · {n} {reason}");
                if reason == "test" && !has_tests {
                    line += self.how_to_list_candidates();
                }
            }
        }
        let rows = self.part.of(&rows).into_iter();
        let rows = rows
            .map(|(one, n_called)| GraphRow::Unreferenced(scan.out(one, Some(*n_called), None)))
            .collect();
        Ok(self.listed(rows, facts, line))
    }

    /// Lists the definitions that nothing refers to and that nothing outside of the repository is known to need.
    pub(super) fn unused(&self) -> Result<Page<GraphFacts, GraphRow>> {
        let (mut all, mut facts) = self.unreferenced(self.request.files.tests != WithTests::No)?;
        let is_sure = |one: &Unreferenced| one.reason == Reason::Unused && one.usage.possible == 0;
        let n_sure = all.iter().filter(|one| is_sure(one)).count();
        let is_possible = |one: &Unreferenced| matches!(one.reason, Reason::Unused | Reason::Exported);
        facts.candidates = all
            .iter()
            .filter(|one| one.reason == Reason::Unused && one.usage.possible > 0)
            .count();
        all.retain(|one| is_sure(one) || self.request.candidates && is_possible(one));
        all.sort_by_key(|one| !is_sure(one));
        facts.total = all.len();
        let mut line = format!("{n_sure} unused of {}", count(facts.definitions, "definition"));
        let number = |reason: &str| facts.reasons.get(reason).copied().unwrap_or_default();
        let mut add = |n: usize, what: &str| {
            if n > 0 {
                line += &format!(" · {n} {what}");
            }
        };
        let how = self.how_to_list_candidates();
        add(facts.candidates, &format!("with candidates{how}"));
        add(number("exported"), &format!("unreferenced but exported{how}"));
        add(number("implicit"), "that may run through another definition");
        add(number("marked"), "marked by a decorator or attribute");
        add(number("main") + number("test"), "programs and tests");
        let scan = self.scan();
        let rows = self.part.of(&all).into_par_iter().map(|one| {
            let in_text = one.found.as_ref().map(|found| scan.in_text(found)).transpose()?;
            Ok(GraphRow::Unreferenced(scan.out(one, None, in_text)))
        });
        let rows = rows.collect::<Result<Vec<_>>>()?;
        Ok(self.listed(rows, facts, line))
    }

    fn listed(&self, rows: Vec<GraphRow>, facts: UnreferencedFacts, line: String) -> Page<GraphFacts, GraphRow> {
        let mut page = self.page(rows, facts.total, GraphFacts::Unreferenced(facts));
        page.head = Recorded::of(|out| out.whole_line(&line));
        page
    }

    /// Returns the definitions of the selected files without sure references, by file and position. References from
    /// test files count if `has_tests`.
    fn unreferenced(&self, has_tests: bool) -> Result<(Vec<Unreferenced>, UnreferencedFacts)> {
        // Only definitions of the selected files are listed, but references from all files count.
        let usages = self.linker.usages(&self.files_of_view(has_tests));
        // After an interruption, all further links are unknown, and what they mean seems to be unused.
        self.question.sources().go_on()?;
        let scan = self.scan();
        let of_files = self.wanted_files();
        let of_files = of_files.par_iter().map(|file| scan.unreferenced_in(*file, &usages));
        let of_files = of_files.collect::<Result<Vec<_>>>()?;
        let mut facts = UnreferencedFacts::default();
        let mut all = Vec::new();
        for (n, some) in of_files {
            facts.definitions += n;
            all.extend(some);
        }
        for one in &all {
            *facts.reasons.entry(one.reason.name()).or_default() += 1;
        }
        Ok((all, facts))
    }

    /// Returns all files of the view, those of tests only if `has_tests`.
    pub(super) fn files_of_view(&self, has_tests: bool) -> Vec<FileId> {
        let view = self.question.view();
        let files = view.files().map(|(file, _)| file);
        files
            .filter(|file| has_tests || !is_test_path(&path_of(view, *file)))
            .collect()
    }

    /// Returns the files whose code calls definitions and that no other file imports.
    fn scripts(&self) -> Vec<Unreferenced> {
        let scan = self.scan();
        let is_script = |file: &FileId| {
            extract::profile(self.question.view().lang(*file)).is_script
                && !is_test_path(&path_of(self.question.view(), *file))
        };
        let files: Vec<FileId> = self.wanted_files().into_iter().filter(is_script).collect();
        let mut imported = BTreeSet::new();
        for site in self.imports_of(&self.files_of_view(false)) {
            match site.imported {
                Imported::Files(files) => imported.extend(files.into_iter().filter(|file| *file != site.file)),
                Imported::Package(_, files) => imported.extend(files.iter().copied()),
                Imported::Outside | Imported::Unknown => {}
            }
        }
        let starts = files
            .par_iter()
            .filter(|file| !imported.contains(file) && scan.called_at_file_level(**file) > 0);
        let scripts = starts.map(|&file| Unreferenced {
            found: None,
            file,
            reason: Reason::Script,
            usage: Usage::default(),
        });
        scripts.collect()
    }
}

impl Scan<'_> {
    /// Returns the number of definitions of a file, and those without sure references.
    fn unreferenced_in(&self, file: FileId, usages: &Usages) -> Result<(usize, Vec<Unreferenced>)> {
        let definitions = self.linker.definitions(file).unwrap_or_default();
        let is_counted = |kind: DefinitionKind| {
            kind.is_callable() && kind != DefinitionKind::Property
                || kind.is_type() && !matches!(kind, DefinitionKind::Impl | DefinitionKind::Variant)
                || kind == DefinitionKind::Constant
        };
        let mut unreferenced = Vec::new();
        let mut n_definitions = 0;
        for (index, definition) in (0..).zip(&definitions) {
            // A type without a name is used where it is defined.
            if !is_counted(definition.kind) || definition.name.contains(' ') && definition.kind.is_type() {
                continue;
            }
            n_definitions += 1;
            let usage = self.linker.usage_of(DefId { file, index }, usages);
            if usage.sure == 0 {
                unreferenced.push((index, usage));
            }
        }
        if unreferenced.is_empty() {
            return Ok((n_definitions, Vec::new()));
        }
        let Source::Bytes(bytes) = self.sources.reader().read(file)? else {
            return Ok((n_definitions, Vec::new()));
        };
        let usage_of: HashMap<u32, Usage> = unreferenced.iter().copied().collect();
        let indices = unreferenced.iter().map(|(index, _)| *index);
        let found = definitions_at(self.sources.view(), file, &bytes, indices)?;
        let found = found.into_iter().filter_map(|found| {
            let usage = *usage_of.get(&found.index)?;
            let reason = self.reason(&found, &definitions, &bytes);
            Some(Unreferenced {
                file,
                reason,
                usage,
                found: Some(found),
            })
        });
        Ok((n_definitions, found.collect()))
    }

    fn reason(&self, found: &FoundDefinition, definitions: &[extract::Definition], bytes: &[u8]) -> Reason {
        let of = def_of(found);
        let definition = &definitions[found.index as usize];
        let name = definition.name.as_str();
        let is_in_tests = is_test_path(&path_of(self.sources.view(), found.file));
        let has_tests = || {
            let mut inner = definitions.iter().filter(|inner| inner.container == Some(found.index));
            definition.kind.is_type() && inner.any(|inner| inner.kind == DefinitionKind::Test)
        };
        if is_test(self.sources.view(), self.linker, of) || is_in_tests && has_tests() {
            return Reason::Test;
        }
        if name == "main" && definition.kind.is_callable() {
            return Reason::Main;
        }
        let head = bytes.get(definition.range.start as usize..definition.signature.start as usize);
        if let Some(mark) = mark_in(&String::from_utf8_lossy(head.unwrap_or_default())) {
            return if is_in_tests {
                Reason::Test
            } else {
                Reason::Marked(mark)
            };
        }
        let is_unseen = may_run_unseen(self.sources.view(), self.linker, of);
        if name == "_" || is_unseen || self.linker.is_imported_too(of) {
            return Reason::Implicit;
        }
        let lang = self.sources.view().lang(found.file);
        let is_exported = |index| self.linker.is_exported(DefId { index, ..of });
        if extract::is_visible_outside(lang, bytes, definitions, found.index, is_exported) {
            let is_member = definition.container.is_some() || definition.qualifier.is_some();
            match (is_in_tests, is_member) {
                (false, _) => return Reason::Exported,
                // An interface outside of the repository may need it.
                (true, true) => return Reason::Implicit,
                (true, false) => {}
            }
        }
        Reason::Unused
    }

    /// Returns the number of definitions that one calls.
    fn n_called(&self, one: &Unreferenced) -> usize {
        let Some(found) = &one.found else {
            return self.called_at_file_level(one.file);
        };
        // All parts of a type have the same references.
        let mut parts = self.linker.whole_parts(def_of(found));
        parts.sort_unstable();
        parts.dedup();
        if let [only] = parts.as_slice() {
            return called(&self.linker.uses_in(&[*only])).len();
        }
        if let Some(known) = self.called_by_parts.lock().get(&parts) {
            return *known;
        }
        let n = called(&self.linker.uses_in(&parts)).len();
        self.called_by_parts.lock().insert(parts, n);
        n
    }

    fn called_at_file_level(&self, file: FileId) -> usize {
        called(&self.linker.uses_at_file_level(file)).len()
    }

    /// Returns the number of mentions of a definition's name in comments, strings and files that are not parsed.
    fn in_text(&self, found: &FoundDefinition) -> Result<usize> {
        let files = self.linker.files_mentioning(def_of(found))?;
        let counts = files
            .iter()
            .map(|file| in_text(&self.sources, self.linker, *file, &found.name));
        Ok(counts.collect::<Result<Vec<_>>>()?.into_iter().sum())
    }

    fn out(&self, one: &Unreferenced, calls: Option<usize>, in_text: Option<usize>) -> UnreferencedOut {
        let found = one.found.as_ref();
        UnreferencedOut {
            path: path_of(self.sources.view(), one.file),
            line: found.map_or(1, |found| found.name_line),
            kind: found.map_or("file", |found| kind_name(found.kind)),
            id: found.map(|found| found.id.clone()),
            reason: one.reason.name(),
            mark: match &one.reason {
                Reason::Marked(mark) => Some(mark.clone()),
                _ => None,
            },
            calls,
            candidates: one.usage.possible,
            in_text,
            signature: found.map_or_else(String::new, |found| found.signature.clone()),
        }
    }
}

pub(super) fn def_of(found: &FoundDefinition) -> DefId {
    DefId {
        file: found.file,
        index: found.index,
    }
}

/// Returns the first decorator, annotation or attribute in the text before a definition that may register it.
pub(super) fn mark_in(head: &str) -> Option<String> {
    let marks = head.lines().filter_map(|line| {
        let line = line.trim_start();
        let mark = line.strip_prefix('@').or_else(|| line.strip_prefix("#["))?;
        let end = mark.find(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '.' | ':')));
        Some(&mark[..end.unwrap_or(mark.len())])
    });
    let is_active = |mark: &&str| {
        let mut segments = mark.split(['.', ':']).filter(|segment| !segment.is_empty());
        !mark.is_empty() && !segments.any(|segment| PASSIVE_MARKS.contains(&segment))
    };
    marks.filter(is_active).map(|mark| format!("@{mark}")).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_register_are_found() {
        assert_eq!(mark_in("@app.route('/')\n@wraps(f)\n").as_deref(), Some("@app.route"));
        assert_eq!(
            mark_in("/// @see\n#[inline]\n#[tokio::main]\n").as_deref(),
            Some("@tokio::main")
        );
        assert_eq!(mark_in("#[derive(Debug)]\n@property\n@functools.wraps(f)\n"), None);
    }
}
