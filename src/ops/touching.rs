//! The tests that use a name of what changed.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;

use super::diff::{FileOut, name_in};
use crate::model::quoted;
use crate::query::{LineStarts, Source, Sources, tests_touching};
use crate::session::Workspace;
use crate::snapshot::View;

/// The tests that use a name of what changed.
#[derive(Debug, Serialize)]
pub(crate) struct TestsOut {
    /// How that is known: `names`.
    pub(crate) by: &'static str,
    pub(crate) total: usize,
    /// Names that were not looked for, because too many definitions have them.
    pub(crate) common: Vec<String>,
    pub(crate) results: Vec<TestOut>,
}

/// One of them.
#[derive(Debug, Serialize)]
pub(crate) struct TestOut {
    pub(crate) path: String,
    /// Null for what stands in a file of tests outside of any.
    pub(crate) name: Option<String>,
    pub(crate) line: u32,
    pub(crate) uses: Vec<String>,
}

/// The tests of a view of the later side that use a name of a definition that is not what it was.
pub(crate) fn touching(workspace: &Workspace, view: &View, files: &[FileOut]) -> Result<TestsOut> {
    let symbols = files
        .iter()
        .flat_map(|file| file.symbols.iter().flatten().map(move |symbol| (file, symbol)));
    let changed = symbols.filter(|(_, symbol)| symbol.kind != "test" && symbol.events != ["formatting"]);
    let ids = changed.flat_map(|(file, symbol)| {
        let from_path = file.from_path.as_deref().unwrap_or(&file.path);
        let from = symbol.from.as_deref().map(|from| name_in(from, from_path));
        std::iter::once(name_in(&symbol.id, &file.path)).chain(from)
    });
    let names: BTreeSet<String> = ids.filter_map(bare_name).collect();
    let found = tests_touching(view, &names)?;
    let sources = Sources::new(view, &workspace.repository);
    let mut reader = sources.reader();
    let mut results = Vec::new();
    for test in found.tests {
        let line = match reader.read(test.file)? {
            Source::Bytes(bytes) => LineStarts::of(&bytes).line_of(test.start as usize),
            _ => 1,
        };
        results.push(TestOut {
            path: quoted(view.file(test.file).path).into_owned(),
            name: test.name,
            line,
            uses: test.uses,
        });
    }
    Ok(TestsOut {
        by: "names",
        total: results.len(),
        common: found.common,
        results,
    })
}

/// `parse` of `Parser.parse~2`.
fn bare_name(qualified: &str) -> Option<String> {
    let name = qualified.rsplit('.').next()?.split('~').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}
