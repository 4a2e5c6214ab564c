//! Finds the references to several definitions. Those to definitions of one name are found together, because both can be
//! many.

use std::collections::{HashMap, HashSet};

use super::facts::{DefId, Family};
use super::query::Site;
use super::resolve::{Linker, MAX_CANDIDATES, Tier};
use crate::index::lexical::LexicalError;

/// The definitions of a name in the languages of a family.
type Name = Option<(Family, String)>;

/// Several definitions, with the references that were found.
#[derive(Debug)]
pub struct Together {
    groups: HashMap<Name, Vec<DefId>>,
    found: HashMap<Name, Found>,
}

/// The references to the definitions of a name.
#[derive(Debug, Default)]
struct Found {
    sites: Vec<Site>,
    by_target: HashMap<DefId, Vec<usize>>,
    /// Those that name only some of very many definitions which they can mean, by name.
    cut: HashMap<String, Vec<usize>>,
}

impl Together {
    /// Groups definitions by their names.
    pub fn of(linker: &Linker<'_>, all: impl Iterator<Item = DefId>) -> Self {
        let mut groups: HashMap<Name, Vec<DefId>> = HashMap::new();
        for of in all {
            groups.entry(name_of(linker, of)).or_default().push(of);
        }
        Self {
            groups,
            found: HashMap::new(),
        }
    }

    /// Returns the references that mean a definition or could mean it, by file and position.
    pub fn sites(&mut self, linker: &Linker<'_>, of: DefId) -> Result<impl Iterator<Item = &Site>, LexicalError> {
        let name = name_of(linker, of);
        if !self.found.contains_key(&name) {
            let alone = [of];
            let group = self.groups.get(&name).map_or(&alone[..], Vec::as_slice);
            self.found.insert(name.clone(), found(linker, group)?);
        }
        let found = &self.found[&name];
        let meanings = linker.meanings(of);
        let named = meanings.iter().filter_map(|of| found.by_target.get(of));
        let own = linker.own_names(&meanings);
        let cut = own.iter().filter_map(|name| found.cut.get(name));
        let mut sites: Vec<usize> = named.chain(cut).flatten().copied().collect();
        sites.sort_unstable();
        sites.dedup();
        Ok(sites.into_iter().map(|at| &found.sites[at]))
    }
}

fn name_of(linker: &Linker<'_>, of: DefId) -> Name {
    let facts = linker.facts(of.file)?;
    let definition = facts.definitions.get(of.index as usize)?;
    Some((facts.family, definition.name.clone()))
}

fn found(linker: &Linker<'_>, group: &[DefId]) -> Result<Found, LexicalError> {
    let meanings: HashSet<DefId> = group.iter().flat_map(|of| linker.meanings(*of)).collect();
    let meanings: Vec<DefId> = meanings.into_iter().collect();
    let mut found = Found {
        sites: linker.mentions_of_any(&meanings, |_| true)?.sites,
        ..Found::default()
    };
    for (at, site) in found.sites.iter().enumerate() {
        for of in &site.targets {
            found.by_target.entry(*of).or_default().push(at);
        }
        if site.tier == Tier::Named && site.targets.len() >= MAX_CANDIDATES {
            let name = linker.name_at(site.file, site.range.start).unwrap_or_default();
            found.cut.entry(name).or_default().push(at);
        }
    }
    Ok(found)
}
