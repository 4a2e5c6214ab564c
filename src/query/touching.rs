//! Finds tests that may cover changed definitions, by name.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::extract::{Definition, DefinitionKind, Extraction};
use crate::model::ByteRange;
use crate::sidecar::FileError;
use crate::snapshot::{FileId, View};

use super::definition::qualified_name;
use super::filter::is_test_path;

/// Maximum number of definitions with the same name. If there are more, a use of the name is no evidence for any of
/// them.
const MAX_NAMESAKES: u32 = 3;

/// A test, or a part of a test file, that uses a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TouchingTest {
    /// The file.
    pub file: FileId,
    /// The qualified name of the test; `None` for uses outside of any test.
    pub name: Option<String>,
    /// Byte offset of the start of the test; without a test, of the first use.
    pub start: u32,
    /// The names that the test uses, in ascending order.
    pub uses: Vec<String>,
}

/// The tests that use some names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TouchingTests {
    /// The tests, ordered by file and position.
    pub tests: Vec<TouchingTest>,
    /// Names that were ignored because they have too many definitions.
    pub common: Vec<String>,
}

/// Returns the tests of a view that use one of `names` in code. Considers test definitions, and everything in test
/// files.
pub fn tests_touching(view: &View, names: &BTreeSet<String>) -> Result<TouchingTests, FileError> {
    let files: Vec<FileId> = view
        .files()
        .filter(|(_, file)| file.blob.is_some())
        .map(|(id, _)| id)
        .collect();
    let of_files: Vec<OfFile> = files
        .par_iter()
        .map(|file| of_file(view, *file, names))
        .collect::<Result<_, _>>()?;
    let mut n_defined: BTreeMap<&str, u32> = BTreeMap::new();
    for name in of_files.iter().flat_map(|file| &file.defined) {
        *n_defined.entry(name).or_default() += 1;
    }
    let common: BTreeSet<&str> = n_defined
        .into_iter()
        .filter(|(_, n_defined)| *n_defined > MAX_NAMESAKES)
        .map(|(name, _)| name)
        .collect();
    let mut found = TouchingTests {
        common: common.iter().map(|name| (*name).to_owned()).collect(),
        tests: Vec::new(),
    };
    for mut test in of_files.iter().flat_map(|file| file.tests.iter().cloned()) {
        test.uses.retain(|name| !common.contains(name.as_str()));
        if !test.uses.is_empty() {
            found.tests.push(test);
        }
    }
    Ok(found)
}

#[derive(Default)]
struct OfFile {
    tests: Vec<TouchingTest>,
    /// The wanted names that the file defines, one entry per definition.
    defined: Vec<String>,
}

fn of_file(view: &View, file: FileId, names: &BTreeSet<String>) -> Result<OfFile, FileError> {
    let mut found = OfFile::default();
    let blob = view.file(file).blob;
    let Some((segment, local)) = blob.and_then(|blob| view.segments().of_blob(blob)) else {
        return Ok(found);
    };
    let mut references = segment.artifacts.references(local)?;
    references.retain(|reference| names.contains(&reference.name));
    let extraction = segment.artifacts.extraction(local)?;
    let defined = extraction
        .definitions
        .iter()
        .filter(|known| names.contains(&known.name));
    found.defined = defined.map(|known| known.name.clone()).collect();
    let is_tests = is_test_path(&String::from_utf8_lossy(view.file(file).path));
    let mut by_test: BTreeMap<Option<usize>, (u32, BTreeSet<String>)> = BTreeMap::new();
    for reference in references {
        let around = test_around(&extraction, reference.range, is_tests);
        if is_tests || around.is_some() {
            let start = around.map_or(reference.range.start, |at| extraction.definitions[at].range.start);
            let entry = by_test.entry(around).or_insert_with(|| (start, BTreeSet::new()));
            entry.1.insert(reference.name);
        }
    }
    found.tests = by_test
        .into_iter()
        .map(|(around, (start, uses))| TouchingTest {
            file,
            name: around.map(|at| qualified_name(&extraction.definitions, &extraction.definitions[at])),
            start,
            uses: uses.into_iter().collect(),
        })
        .collect();
    found.tests.sort_by_key(|test| test.start);
    Ok(found)
}

/// Returns the index of the innermost test around a position. In a test file without marked tests, returns the
/// innermost callable.
fn test_around(extraction: &Extraction, place: ByteRange, is_tests: bool) -> Option<usize> {
    let innermost = |is_it: &dyn Fn(&Definition) -> bool| {
        let around = extraction.definitions.iter().enumerate();
        let around = around.filter(|(_, known)| known.range.contains(place) && is_it(known));
        around.min_by_key(|(_, known)| known.range.len()).map(|(at, _)| at)
    };
    let is_test = |known: &Definition| known.kind == DefinitionKind::Test;
    innermost(&is_test).or_else(|| {
        let found = is_tests.then(|| innermost(&|known| known.kind.is_callable()));
        found.flatten()
    })
}
