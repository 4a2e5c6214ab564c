//! Resolves parameters that pytest fills: a parameter of a test has the name of a fixture.

use std::collections::HashSet;

use super::facts::{DefId, Facts, Family};
use super::query::Site;
use super::resolve::{Linker, Tier};
use crate::extract::{Binding, BindingKind, DefinitionKind, ReferenceKind};
use crate::model::ByteRange;

impl Linker<'_> {
    /// Returns the fixture that fills a parameter: that of the file, or else of the nearest `conftest.py`.
    pub(super) fn fixture(&self, facts: &Facts, parameter: &Binding) -> Option<DefId> {
        if facts.family != Family::Python || parameter.kind != BindingKind::Parameter {
            return None;
        }
        let taker = facts.enclosing(parameter.start).next()?;
        if !facts.has_kind(taker, DefinitionKind::Test) && !facts.is_fixture(taker) {
            return None;
        }
        let taker = facts.def(taker);
        let defines = |facts: &Facts| {
            let fixtures = facts.named(&parameter.name).iter();
            let fixtures = fixtures.filter(|&&index| facts.is_fixture(index));
            // A fixture can take the fixture that it replaces.
            let mut others = fixtures.map(|&index| facts.def(index)).filter(|of| *of != taker);
            others.next_back()
        };
        if let Some(found) = defines(facts) {
            return Some(found);
        }
        let mut folder = facts.path.as_str();
        while !folder.is_empty() {
            folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = format!("{folder}/conftest.py");
            let shared = self
                .view
                .find_text(path.trim_start_matches('/'))
                .filter(|file| *file != facts.file);
            if let Some(found) = shared
                .and_then(|file| self.facts(file))
                .and_then(|facts| defines(&facts))
            {
                return Some(found);
            }
        }
        None
    }

    /// Returns the parameters of a file that are filled by one of `targets`, which have the name `name`.
    pub(super) fn filled(&self, facts: &Facts, name: &str, targets: &HashSet<DefId>) -> Vec<Site> {
        let parameters = facts.bindings_of(name).map(|(_, parameter)| parameter);
        let filled = parameters.filter_map(|parameter| {
            let fixture = self.fixture(facts, parameter).filter(|of| targets.contains(of))?;
            Some(Site {
                file: facts.file,
                range: ByteRange::new(parameter.start, parameter.start + name.len() as u32),
                kind: ReferenceKind::Call,
                inside: facts.enclosing(parameter.start).next().map(|index| facts.def(index)),
                tier: Tier::Scope,
                is_lost: false,
                targets: vec![fixture],
            })
        });
        filled.collect()
    }
}

impl Facts {
    /// Returns true for a function with the decorator `fixture`.
    fn is_fixture(&self, definition: u32) -> bool {
        let definition = &self.definitions[definition as usize];
        let before = self.references_in(ByteRange::new(definition.range.start, definition.name_range.start));
        self.references[before]
            .iter()
            .any(|reference| reference.name == "fixture")
    }
}
