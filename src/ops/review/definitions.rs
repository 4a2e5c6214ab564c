//! The changed definitions, in the order of their consequences.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::rows::{Consequence, DefinitionRow, Site};
use crate::link::DefId;
use crate::ops::ask::{Ask, FileSelection};
use crate::ops::diff::{FileOut, SymbolOut, name_in};
use crate::ops::graph::{Affected, ReachedOut, users};
use crate::ops::provenance::ProvenanceOut;
use crate::ops::reaching::{State, reaching_each};
use crate::session::Result;

/// Maximum number of changed definitions whose callers are sought.
const MAX_FOLLOWED: usize = 300;
/// Maximum number of changed definitions with one name in a file whose callers are sought: each call can mean all of them.
const MAX_OF_NAME: usize = 8;
/// Maximum number of callers that are listed for one definition.
const MAX_SITES: usize = 20;

/// The changed definitions, and what they reach.
pub(super) struct Changed {
    /// Number of changed definitions by what happened to them.
    pub(super) counts: Vec<(&'static str, usize)>,
    /// Number of uses that may mean something else.
    pub(super) n_possible: usize,
    pub(super) definitions: Vec<DefinitionRow>,
    pub(super) affected: Affected,
    pub(super) provenance: ProvenanceOut,
}

impl Changed {
    /// Finds what changed between two states of `files`, and what uses it.
    pub(super) fn of(
        ask: &Ask<'_>,
        sides: (&str, &str),
        files: &[FileOut],
        mut provenance: ProvenanceOut,
    ) -> Result<Self> {
        let mut rows = rows(files);
        let (mut n_followed, mut n_all) = (0, 0);
        let edits = Edits::of(files);
        let selection = FileSelection::default();
        let shown = (&selection, u32::MAX);
        let mut all = reaching_each(ask, sides, files, shown, &mut provenance, |there| {
            let defs: BTreeMap<&str, DefId> = there.changed.iter().map(|one| (one.id.as_str(), one.def)).collect();
            let mut here: Vec<(&mut DefinitionRow, DefId)> = rows
                .iter_mut()
                .filter_map(|row| defs.get(row.id.as_str()).map(|of| (row, *of)))
                .collect();
            n_all += here.len();
            let mut n_of_name: HashMap<_, usize> = HashMap::new();
            here.retain(|(_, of)| {
                let name = there.linker.definition(*of).map(|of| of.name).unwrap_or_default();
                let n = n_of_name.entry((of.file, name)).or_default();
                *n += 1;
                *n <= MAX_OF_NAME
            });
            here.truncate(MAX_FOLLOWED - n_followed);
            n_followed += here.len();
            let each: Vec<DefId> = here.iter().map(|(_, of)| *of).collect();
            for ((row, _), mut found) in here.into_iter().zip(users(there.question, there.linker, &each)?) {
                let imports = there.broken.iter().filter(|import| import.via.contains(&row.id));
                let is_new = |import: &&ReachedOut| found.iter().all(|user| user.path != import.path);
                let imports: Vec<ReachedOut> = imports.filter(is_new).cloned().collect();
                found.extend(imports);
                row.add_users(found, &edits, there.state);
            }
            Ok(())
        })?;
        all.tests
            .retain(|test| !test.id.as_deref().is_some_and(|id| edits.removed.contains(id)));
        if n_all > n_followed {
            provenance.also_incomplete(format!(
                "callers are shown for {n_followed} of {n_all} changed definitions; narrow it down with a path"
            ));
        }
        rows.sort_by_cached_key(DefinitionRow::rank);
        Ok(Self {
            counts: counts(&rows),
            n_possible: rows.iter().map(|row| row.possible_callers).sum(),
            definitions: folded(rows),
            affected: all,
            provenance,
        })
    }
}

/// Returns the rows of the changed definitions of code, the gravest changes first.
fn rows(files: &[FileOut]) -> Vec<DefinitionRow> {
    let of_file = |file| symbols(file).map(move |symbol| row(file, symbol));
    let mut rows: Vec<DefinitionRow> = files.iter().flat_map(of_file).collect();
    rows.sort_by_key(DefinitionRow::consequence);
    rows
}

/// Returns the changed definitions of a file, without keys of data and sections of prose.
pub(super) fn symbols(file: &FileOut) -> impl Iterator<Item = &SymbolOut> {
    let symbols = file.symbols.iter().flatten();
    // Nothing refers to `_`, of which a file can have many.
    symbols.filter(|symbol| !matches!(symbol.kind, "key" | "section") && name_in(&symbol.id, &file.path) != "_")
}

fn row(file: &FileOut, symbol: &SymbolOut) -> DefinitionRow {
    let lines = symbol.new_lines.or(symbol.old_lines);
    DefinitionRow {
        kind: "definition",
        id: symbol.id.clone(),
        path: file.path.clone(),
        line: lines.map_or(0, |lines| lines.0),
        definition: symbol.kind,
        events: symbol.events.clone(),
        from: symbol.from.clone(),
        inner: 0,
        callers: 0,
        possible_callers: 0,
        tests: 0,
        unchanged_callers: 0,
        unchanged: Vec::new(),
        notes: Vec::new(),
        documents: Vec::new(),
        diff: symbol.diff.clone(),
    }
}

/// What a change edits.
struct Edits<'a> {
    /// The ids, in both states, of the definitions that only moved or look otherwise.
    minor: BTreeSet<&'a str>,
    removed: BTreeSet<&'a str>,
    /// The changed files by their path in the old and in the new state.
    files: [BTreeMap<&'a str, &'a FileOut>; 2],
}

impl<'a> Edits<'a> {
    fn of(files: &'a [FileOut]) -> Self {
        let symbols = || files.iter().flat_map(|file| file.symbols.iter().flatten());
        let removed = symbols().filter(|symbol| symbol.events.contains(&"removed"));
        let is_minor = |symbol: &&SymbolOut| Consequence::of(&symbol.events) >= Consequence::Moved;
        let ids = |symbol: &'a SymbolOut| [Some(symbol.id.as_str()), symbol.from.as_deref()];
        let old = |file: &'a FileOut| (file.from_path.as_deref().unwrap_or(&file.path), file);
        Self {
            minor: symbols().filter(is_minor).flat_map(ids).flatten().collect(),
            removed: removed.map(|symbol| symbol.id.as_str()).collect(),
            files: [
                files.iter().map(old).collect(),
                files.iter().map(|file| (file.path.as_str(), file)).collect(),
            ],
        }
    }

    /// Returns true if the change edits the line of a use. A use that only moved, or looks otherwise, is as it was.
    fn includes(&self, user: &ReachedOut, state: State) -> bool {
        let is_old = state == State::Old;
        let file = self.files[usize::from(!is_old)].get(user.path.as_str());
        let only_moved = user.id.as_deref().is_some_and(|id| self.minor.contains(id));
        !only_moved && file.is_some_and(|file| file.differs_at(user.use_line, is_old))
    }
}

impl DefinitionRow {
    /// Adds what uses it. A type does not use its members, nor a function itself.
    fn add_users(&mut self, users: Vec<ReachedOut>, edits: &Edits<'_>, state: State) {
        for user in users {
            if matches!(user.relation, "contains" | "changed" | "type of") || user.id.as_ref() == Some(&self.id) {
                continue;
            }
            let (is_test, is_unchanged) = (user.kind != "definition", !edits.includes(&user, state));
            self.callers += usize::from(user.sure);
            self.possible_callers += usize::from(!user.sure);
            self.tests += usize::from(is_test && user.sure);
            self.unchanged_callers += usize::from(is_unchanged && user.sure);
            if is_unchanged {
                self.unchanged.push(Site {
                    path: user.path,
                    line: user.use_line,
                    id: user.id,
                    name: user.name,
                    sure: user.sure,
                    test: is_test,
                });
            }
        }
        self.unchanged.sort_by_key(|site| (!site.sure, site.test));
        self.unchanged.truncate(MAX_SITES);
    }
}

/// Folds definitions that were added or removed with the one around them, unless something unchanged uses them.
fn folded(rows: Vec<DefinitionRow>) -> Vec<DefinitionRow> {
    let whole = |row: &DefinitionRow| {
        let consequence = row.consequence();
        matches!(consequence, Consequence::Added | Consequence::Removed).then_some(consequence)
    };
    let mut inner: BTreeMap<String, usize> = BTreeMap::new();
    let known: BTreeMap<String, Option<Consequence>> = rows.iter().map(|row| (row.id.clone(), whole(row))).collect();
    // The outermost definition around a row to which the same happened.
    let around = |row: &DefinitionRow| {
        let is_used = !row.unchanged.is_empty() && row.may_break();
        let event = whole(row).filter(|_| !is_used)?;
        let starts = row.name().match_indices('.').map(|(at, _)| &row.name()[..at]);
        let mut outer = starts.map(|name| format!("{}#{name}", row.path));
        outer.find(|id| known.get(id) == Some(&Some(event)))
    };
    let mut kept = Vec::new();
    for row in rows {
        match around(&row) {
            Some(outer) => *inner.entry(outer).or_default() += 1,
            None => kept.push(row),
        }
    }
    for row in &mut kept {
        row.inner = inner.remove(&row.id).unwrap_or_default();
    }
    kept
}

/// Returns the number of definitions by what happened to them, the gravest first.
fn counts(definitions: &[DefinitionRow]) -> Vec<(&'static str, usize)> {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for row in definitions {
        *counts.entry(row.consequence()).or_default() += 1;
    }
    counts
        .into_iter()
        .map(|(consequence, n)| (consequence.name(), n))
        .collect()
}
