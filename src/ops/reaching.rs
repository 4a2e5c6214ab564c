//! Finds what the changes between two states reach.

use std::collections::{BTreeMap, HashSet};

use super::ask::{Ask, FileSelection};
use super::diff::{FileOut, SymbolOut, name_in};
use super::graph::{Affected, ReachedOut, affected, imports_of};
use super::provenance::ProvenanceOut;
use super::question::{About, Question};
use crate::link::{DefId, Linker};
use crate::query::{Source, definitions_at};
use crate::session::Result;

/// One of two compared states.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Old,
    New,
}

/// Returns what the changed definitions of `files` reach in `new`, and what the removed ones reach in `old`. Shows only files of
/// `selection`. Adds gaps in the indexes of both to `provenance`.
pub(crate) fn reaching(
    ask: &Ask<'_>,
    sides: (&str, &str),
    files: &[FileOut],
    shown: (&FileSelection, u32),
    provenance: &mut ProvenanceOut,
) -> Result<Affected> {
    reaching_each(ask, sides, files, shown, provenance, |_| Ok(()))
}

/// The changed definitions of one of the two states.
pub(crate) struct InState<'a> {
    pub(crate) state: State,
    pub(crate) question: &'a Question<'a>,
    pub(crate) linker: &'a Linker<'a>,
    pub(crate) changed: &'a [ChangedDefinition],
    /// The imports of removed definitions that did not change.
    pub(crate) broken: &'a [ReachedOut],
}

/// Like [`reaching`]; also calls `visit` for each state.
pub(crate) fn reaching_each(
    ask: &Ask<'_>,
    sides: (&str, &str),
    files: &[FileOut],
    (selection, max_depth): (&FileSelection, u32),
    provenance: &mut ProvenanceOut,
    mut visit: impl FnMut(&InState<'_>) -> Result<()>,
) -> Result<Affected> {
    let mut all = Affected::default();
    for (state, reference) in [(State::New, sides.1), (State::Old, sides.0)] {
        let wanted = |symbol: &SymbolOut| is_followed(symbol) && state.has(symbol);
        let is_changed = |file: &&FileOut| file.symbols.iter().flatten().any(wanted);
        if !files.iter().any(|file| is_changed(&file)) {
            continue;
        }
        let about = About {
            reference: Some(reference),
            has_cursor: false,
            ..About::indexed_files(selection)
        };
        let question = Question::new(ask, &about)?;
        for why in question.provenance().incomplete_because() {
            provenance.also_incomplete(format!("{reference}: {why}"));
        }
        let links = question.links();
        let linker = question.linker(&links);
        let mut changed = Vec::new();
        for file in files.iter().filter(is_changed) {
            changed.extend(definitions(&question, &linker, file, state, wanted)?);
        }
        let defs: Vec<DefId> = changed.iter().map(|changed| changed.def).collect();
        all.add(affected(&question, &linker, &defs, max_depth)?);
        let broken = match state {
            State::Old => broken_imports(&question, &linker, &defs, files)?,
            State::New => Vec::new(),
        };
        all.add_broken(&broken);
        visit(&InState {
            state,
            question: &question,
            linker: &linker,
            changed: &changed,
            broken: &broken,
        })?;
        linker.check()?;
    }
    let others = files.iter().filter(|file| file.has_other_effects());
    all.set_other_files(&others.map(|file| file.path.as_str()).collect::<Vec<_>>());
    Ok(all)
}

/// Returns the imports of removed definitions that did not change.
fn broken_imports(
    question: &Question<'_>,
    linker: &Linker<'_>,
    each: &[DefId],
    files: &[FileOut],
) -> Result<Vec<ReachedOut>> {
    let old_path = |file: &'_ FileOut| file.from_path.clone().unwrap_or_else(|| file.path.clone());
    let files: BTreeMap<String, &FileOut> = files.iter().map(|file| (old_path(file), file)).collect();
    let mut imports = imports_of(question, linker, each)?;
    let has_changed = |row: &ReachedOut| {
        let file = files.get(&row.path);
        file.is_some_and(|file| file.differs_at(row.line, true))
    };
    imports.retain(|row| !has_changed(row));
    Ok(imports)
}

/// A changed definition in one of the two states.
pub(crate) struct ChangedDefinition {
    pub(crate) def: DefId,
    pub(crate) id: String,
}

impl State {
    /// Returns true if a changed definition is sought in this state.
    fn has(self, symbol: &SymbolOut) -> bool {
        (self == Self::Old) == symbol.events.contains(&"removed")
    }
}

/// Returns true if code that depends on a definition can behave differently after the change.
fn is_followed(symbol: &SymbolOut) -> bool {
    symbol
        .events
        .iter()
        .any(|event| !matches!(*event, "doc" | "formatting" | "moved"))
}

/// Returns the changed definitions of a file.
fn definitions(
    question: &Question<'_>,
    linker: &Linker<'_>,
    changed: &FileOut,
    state: State,
    wanted: impl Fn(&SymbolOut) -> bool,
) -> Result<Vec<ChangedDefinition>> {
    let path = match (&changed.from_path, state) {
        (Some(path), State::Old) => path,
        _ => &changed.path,
    };
    let Some(file) = question.view().find_text(path) else {
        return Ok(Vec::new());
    };
    let Source::Bytes(bytes) = question.sources().reader().read(file)? else {
        return Ok(Vec::new());
    };
    let symbols = changed.symbols.iter().flatten().filter(|symbol| wanted(symbol));
    let names: HashSet<&str> = symbols.map(|symbol| name_in(&symbol.id, path)).collect();
    let n = linker.definitions(file).map_or(0, |all| all.len() as u32);
    let found = definitions_at(question.view(), file, &bytes, 0..n)?.into_iter();
    let is_code = |found: &crate::query::FoundDefinition| !found.kind.is_data();
    Ok(found
        .filter(|found| is_code(found) && names.contains(name_in(&found.id, path)))
        .map(|found| ChangedDefinition {
            def: DefId {
                file,
                index: found.index,
            },
            id: found.id,
        })
        .collect())
}
