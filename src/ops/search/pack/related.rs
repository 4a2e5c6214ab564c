//! Finds what a definition is related to: what contains it, calls it, tests it, and what it calls.

use std::collections::HashSet;

use super::super::super::graph::{is_call, is_test};
use super::super::super::question::Question;
use crate::extract::{DefinitionKind, ReferenceKind};
use crate::link::{DefId, Linker, Site, Together};
use crate::query::{FoundDefinition, is_test_path};
use crate::session::Result;
use crate::snapshot::FileId;

/// How a definition is related to a result. The order is that of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Relation {
    /// The type that it is a member of.
    Container,
    /// A member that it overrides.
    Overridden,
    /// A member that overrides it.
    Overriding,
    Caller,
    /// A test that refers to it.
    Test,
    Callee,
    /// A member of it.
    Member,
    /// It refers to it, but calls it not.
    Used,
}

/// A definition or a place that is related to a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Related {
    pub(super) relation: Relation,
    pub(super) verb: &'static str,
    pub(super) of: Option<DefId>,
    /// The place of the reference to the result, or the file and 0.
    pub(super) at: (FileId, u32),
}

impl Related {
    /// Returns the relation to the result above it.
    pub(super) fn label(self) -> String {
        match self.relation {
            Relation::Callee => "it calls".to_owned(),
            Relation::Used => "it uses".to_owned(),
            _ => format!("{} it", self.verb),
        }
    }
}

impl Relation {
    /// The singular name of what is left out.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Overridden | Self::Overriding => "override",
            Self::Caller => "caller",
            Self::Test => "test",
            Self::Callee => "callee",
            Self::Member => "member",
            Self::Used => "use",
        }
    }

    /// The number that is shown of each result before more of any is shown.
    pub(super) fn first(self) -> usize {
        match self {
            Self::Container => 1,
            Self::Overridden | Self::Overriding | Self::Used => 2,
            Self::Test => 3,
            Self::Caller | Self::Callee => 4,
            Self::Member => 8,
        }
    }
}

/// Returns what a definition is related to, and the number of uncertain references to it.
pub(super) fn related(
    question: &Question<'_>,
    linker: &Linker<'_>,
    references: &mut Together,
    of: DefId,
    found: &FoundDefinition,
    with_tests: bool,
) -> Result<(Vec<Related>, usize)> {
    let view = question.view();
    let path = |file: FileId| super::super::super::paths::path_of(view, file);
    let mut all = Vec::new();
    let mut add = |relation, verb, of: DefId| {
        all.push(Related {
            relation,
            verb,
            of: Some(of),
            at: (of.file, 0),
        });
    };
    let around = linker.type_around(of).map(|around| linker.implemented(around));
    around
        .into_iter()
        .for_each(|around| add(Relation::Container, "contains", around));
    linker
        .overridden(of)
        .into_iter()
        .for_each(|base| add(Relation::Overridden, "overridden by", base));
    linker
        .overriding(of)?
        .into_iter()
        .for_each(|member| add(Relation::Overriding, "overrides", member));
    let mut n_uncertain = 0;
    let sites = references.sites(linker, of)?;
    for site in sites.filter(|site| site.kind != ReferenceKind::Import) {
        if !site.tier.is_sure() {
            n_uncertain += 1;
            continue;
        }
        let test = site.inside.and_then(|inside| test_around(question, linker, inside));
        let is_test_code = test.is_some() || site.inside.is_none() && is_test_path(&path(site.file));
        if (!with_tests && (is_test_code || is_test_path(&path(site.file)))) || site.inside == Some(of) {
            continue;
        }
        let (relation, verb) = match (is_test_code, site.kind) {
            (true, _) => (Relation::Test, "test of"),
            (_, kind) if is_call(kind) => (Relation::Caller, "calls"),
            (_, ReferenceKind::Inherit) => (Relation::Overriding, "extends"),
            _ => (Relation::Caller, "uses"),
        };
        all.push(Related {
            relation,
            verb,
            of: test.or(site.inside),
            at: (site.file, site.range.start),
        });
    }
    let mut uses: Vec<Site> = linker.uses(of);
    uses.retain(|site| site.tier.is_sure() && site.kind != ReferenceKind::Import);
    for site in &uses {
        for target in site.targets.iter().filter(|target| **target != of) {
            let kind = linker.definition(*target).map(|definition| definition.kind);
            if matches!(kind, None | Some(DefinitionKind::Field | DefinitionKind::Variant)) {
                continue;
            }
            let (relation, verb) = if is_call(site.kind) {
                (Relation::Callee, "called by")
            } else {
                (Relation::Used, "used by")
            };
            all.push(Related {
                relation,
                verb,
                of: Some(*target),
                at: (target.file, 0),
            });
        }
    }
    if found.kind.is_type() {
        let members = linker.members(of).into_iter().map(|member| Related {
            relation: Relation::Member,
            verb: "member of",
            of: Some(member),
            at: (member.file, 0),
        });
        all.extend(members);
    }
    // Production code first, the code nearest to the definition before other code.
    all.sort_by_cached_key(|one| {
        let is_far = one.at.0 != of.file;
        let is_caller = matches!(one.relation, Relation::Caller | Relation::Overriding);
        let is_in_tests = is_caller && is_test_path(&path(one.at.0));
        (
            one.relation,
            is_in_tests,
            is_far && (is_caller || one.relation == Relation::Used),
        )
    });
    let mut seen = HashSet::new();
    all.retain(|one| one.of != Some(of) && seen.insert((one.of, one.of.is_none().then_some(one.at))));
    Ok((all, n_uncertain))
}

/// Returns the innermost test that contains a definition, or is it.
fn test_around(question: &Question<'_>, linker: &Linker<'_>, of: DefId) -> Option<DefId> {
    let outer = |of: &DefId| {
        let index = linker.definition(*of)?.container?;
        Some(DefId { file: of.file, index })
    };
    std::iter::successors(Some(of), outer).find(|of| is_test(question.view(), linker, *of))
}
