//! Counts what a change reaches in each package of the repository.

use std::collections::HashMap;

use serde::Serialize;

use super::impact::ReachedOut;
use crate::model::count::count;
use crate::query::{Package, ancestors};

/// What a change reaches in a package.
#[derive(Debug, Serialize)]
pub(crate) struct PackageReached {
    name: String,
    definitions: usize,
    tests: usize,
}

/// Counts the rows by package, in the order of folders. Returns nothing if the repository has only one package.
pub(super) fn by_package<'r>(packages: &[Package], rows: impl Iterator<Item = &'r ReachedOut>) -> Vec<PackageReached> {
    let numbered = packages.iter().enumerate();
    let by_folder: HashMap<&str, usize> = numbered.map(|(number, one)| (one.folder.as_str(), number)).collect();
    let reached = |name: &String| PackageReached {
        name: name.clone(),
        definitions: 0,
        tests: 0,
    };
    let mut counts: Vec<PackageReached> = packages.iter().map(|one| reached(&one.name)).collect();
    for row in rows.filter(|_| by_folder.len() > 1) {
        let folder = row.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let Some(number) = ancestors(folder).find_map(|folder| by_folder.get(folder)) else {
            continue;
        };
        if row.kind == "definition" {
            counts[*number].definitions += 1;
        } else {
            counts[*number].tests += 1;
        }
    }
    counts.retain(|count| count.definitions + count.tests > 0);
    counts
}

/// Describes the counts in one line.
pub(super) fn to_text(counts: &[PackageReached]) -> String {
    let one = |reached: &PackageReached| {
        let definitions = count(reached.definitions, "definition");
        format!("{} {definitions}, {}", reached.name, count(reached.tests, "test"))
    };
    format!("by package: {}", counts.iter().map(one).collect::<Vec<_>>().join(" · "))
}
