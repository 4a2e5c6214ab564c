//! The fields of answers other than their rows, one type for each kind of answer.

use std::collections::BTreeMap;

use serde::Serialize;

use super::account::Account;
use super::by_package::PackageReached;
use super::impact::ImpactTotals;

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum GraphFacts {
    Edges(EdgeFacts),
    Path(PathFacts),
    Imports(ImportFacts),
    Cycles(CycleFacts),
    Flow(FlowFacts),
    Impact(ImpactFacts),
    Unreferenced(UnreferencedFacts),
    Degrees(DegreeFacts),
    Routes(RouteFacts),
    Stats(StatsFacts),
    Changes(ChangeFacts),
    Choice(ChoiceFacts),
    /// Several definitions, each with facts of its own.
    Several {
        total: usize,
    },
}

/// The fields of an answer about a path.
#[derive(Debug, Serialize)]
pub(crate) struct PathFacts {
    pub(super) target: String,
    pub(super) to: String,
    pub(super) total: usize,
    pub(super) definitions_followed: usize,
}

/// The fields of an answer about a definition.
#[derive(Debug, Serialize)]
pub(crate) struct EdgeFacts {
    /// The id of the target.
    pub(super) target: String,
    /// True if there are no certain results, but there could be some.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) uncertain: bool,
    #[serde(flatten)]
    pub(super) account: Account,
    /// Number of results at each depth.
    pub(super) depths: Vec<usize>,
}

/// The fields of an answer about cycles.
#[derive(Debug, Serialize)]
pub(crate) struct CycleFacts {
    pub(super) total: usize,
    pub(super) files: usize,
    pub(super) imports: usize,
    /// Number of imports that could not be resolved, by language.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) unknown_by_language: BTreeMap<&'static str, usize>,
    /// True if no cycles were found, but some imports could not be resolved.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) uncertain: bool,
}

/// The fields of an answer about imports.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ImportFacts {
    /// Number of imports.
    pub(super) total: usize,
    /// Number of files with these imports.
    pub(super) files: usize,
    /// Number of imports of something outside of the repository.
    pub(super) outside: usize,
    /// Number of imports that could not be resolved; with a target that is imported, of those that could mean it.
    pub(super) unknown: usize,
    /// The same, by language.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) unknown_by_language: BTreeMap<&'static str, usize>,
    /// True if no imports were found, but some could not be resolved.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) uncertain: bool,
}

/// The fields of the answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FlowFacts {
    /// The id of the target.
    pub(super) target: String,
    /// Number of definitions in the tree.
    pub(super) total: usize,
    /// Number of definitions at each depth.
    pub(super) depths: Vec<usize>,
    /// Number of calls in these definitions that only have candidates.
    pub(super) candidates: usize,
    /// Number of calls of something outside of the repository.
    pub(super) outside: usize,
    /// Number of calls of which nothing is known.
    pub(super) unknown: usize,
    /// True if the tree has more definitions than are listed.
    pub(super) is_cut: bool,
}

/// The fields of an answer about impact.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ImpactFacts {
    /// The id of the target, or its path; null for the changes between two states.
    pub(super) target: Option<String>,
    pub(super) total: usize,
    #[serde(flatten)]
    pub(super) totals: ImpactTotals,
    /// What is reached in each package, if the repository has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) packages: Vec<PackageReached>,
}

/// The fields of the answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct UnreferencedFacts {
    pub(super) total: usize,
    /// Number of functions, types, constants and macros in the selected files.
    pub(super) definitions: usize,
    /// Number of them without sure references, by the reason for which they may be needed.
    pub(super) reasons: BTreeMap<&'static str, usize>,
    /// Number of unused ones that a reference could mean.
    pub(super) candidates: usize,
}

/// The fields of an answer about hubs or orphans.
#[derive(Debug, Serialize)]
pub(crate) struct DegreeFacts {
    pub(super) total: usize,
    /// Number of files without sure connections that a reference or import could connect with another.
    pub(super) candidates: usize,
}

/// The fields of an answer about routes.
#[derive(Debug, Serialize)]
pub(crate) struct RouteFacts {
    pub(super) total: usize,
}

/// The fields of an answer about all references.
#[derive(Debug, Serialize)]
pub(crate) struct StatsFacts {
    pub(super) total: usize,
    pub(super) files: usize,
    pub(super) references: usize,
    /// Number of references by how they were resolved.
    pub(super) tiers: BTreeMap<&'static str, usize>,
}

/// The fields of the answer.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeFacts {
    /// The id of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    pub(super) since: String,
    pub(super) total: usize,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// Number of results at the revision.
    pub(super) total_now: usize,
    /// Number of results at `since`.
    pub(super) total_then: usize,
}

/// The definitions that a target names.
#[derive(Debug, Serialize)]
pub(crate) struct ChoiceFacts {
    pub(super) total: usize,
    pub(super) near: Vec<String>,
    pub(super) ambiguous: bool,
}
