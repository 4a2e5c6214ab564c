//! Finds the tests that use the name of a changed definition.

use std::collections::BTreeSet;

use serde::Serialize;

use super::ProvenanceOut;
use super::ask::{Ask, FileSelection};
use super::diff::{FileOut, name_in};
use super::question::{About, Question};
use super::sink::{Sink, Style};
use crate::model::quoted;
use crate::query::{LineStarts, Source, TouchingTest, tests_touching};
use crate::session::Result;

/// The tests in an answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TestsOut {
    /// How the tests were found.
    pub(crate) by: &'static str,
    pub(crate) total: usize,
    /// Names that were ignored because they have too many definitions.
    pub(crate) common: Vec<String>,
}

/// A test.
#[derive(Debug, Serialize)]
pub(crate) struct TestOut {
    kind: &'static str,
    path: String,
    /// The name of the test; null for uses in a test file outside any test.
    name: Option<String>,
    line: u32,
    uses: Vec<String>,
}

impl TestOut {
    /// Writes the test as text.
    pub(crate) fn render(&self, out: &mut dyn Sink) {
        out.plain("test ");
        out.span(Style::Path, &format!("{}:{}", self.path, self.line));
        if let Some(name) = &self.name {
            out.plain(&format!(" {name}"));
        }
        out.span(Style::Fact, &format!(" ({})", self.uses.join(", ")));
        out.end();
    }
}

/// Returns the tests in `reference`, the newer state, that use the name of a changed definition. Adds gaps in its index
/// to `provenance`.
pub(crate) fn touching(
    ask: &Ask<'_>,
    reference: &str,
    files: &[FileOut],
    provenance: &mut ProvenanceOut,
) -> Result<(TestsOut, Vec<TestOut>)> {
    let mut tests = TestsOut {
        by: "names",
        ..TestsOut::default()
    };
    let names = changed_names(files);
    if names.is_empty() {
        return Ok((tests, Vec::new()));
    }
    let selection = FileSelection::default();
    let about = About {
        reference: Some(reference),
        has_cursor: false,
        ..About::files(&selection)
    };
    let question = Question::new(ask, &about)?;
    for why in question.provenance().incomplete_because() {
        provenance.also_incomplete(format!("tests: {why}"));
    }
    let found = tests_touching(question.view(), &names)?;
    tests.total = found.tests.len();
    tests.common = found.common;
    let sources = question.sources();
    let mut reader = sources.reader();
    let mut row = |test: TouchingTest| {
        let line = match reader.read(test.file)? {
            Source::Bytes(bytes) => LineStarts::of(&bytes).line_of(test.start as usize),
            _ => 1,
        };
        Ok(TestOut {
            kind: "test",
            path: quoted(question.view().file(test.file).path).into_owned(),
            name: test.name,
            line,
            uses: test.uses,
        })
    };
    let rows = found.tests.into_iter().map(&mut row).collect::<Result<_>>()?;
    Ok((tests, rows))
}

/// Returns the names of definitions that were changed in more than formatting, including their old names.
fn changed_names(files: &[FileOut]) -> BTreeSet<String> {
    let symbols = files
        .iter()
        .flat_map(|file| file.symbols.iter().flatten().map(move |symbol| (file, symbol)));
    let changed = symbols.filter(|(_, symbol)| symbol.kind != "test" && symbol.events != ["formatting"]);
    let ids = changed.flat_map(|(file, symbol)| {
        let from_path = file.from_path.as_deref().unwrap_or(&file.path);
        let from = symbol.from.as_deref().map(|from| name_in(from, from_path));
        std::iter::once(name_in(&symbol.id, &file.path)).chain(from)
    });
    ids.filter_map(bare_name).collect()
}

/// Returns the name without containers and number: `parse` for `Parser.parse~2`.
fn bare_name(qualified: &str) -> Option<String> {
    let name = qualified.rsplit('.').next()?.split('~').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}
