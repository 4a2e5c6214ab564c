//! Finds the documents that define a name from the query, and scores the definitions.

use std::collections::HashMap;

use crate::extract::{Chunk, Definition, DefinitionKind, Extraction};
use crate::index::lexical::normal_name;

use super::analyze::{Analysis, NameQuery};
use super::candidates::Scope;
use super::hit::Opened;
use super::request::SearchError;
use super::search::Searcher;

/// How well a document's definitions match a name from the query.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Defining {
    /// 1 for a function or type with the exact spelling; less for a field, a package clause or a different spelling.
    pub(super) strength: f32,
    /// 1 if the definition is in the container given in the query, less if only its file or folder has that name.
    pub(super) in_container: f32,
}

/// The value of a file or folder with the name of the container.
const FILE_AS_CONTAINER: f32 = 0.7;

/// The factor for a name that differs in case or underscores.
const OTHER_SPELLING: f32 = 0.8;

impl Searcher<'_> {
    /// Returns the documents that define a name from the query.
    pub(super) fn defining(&self, analysis: &Analysis, scope: &Scope) -> Result<HashMap<u32, Defining>, SearchError> {
        let mut found: HashMap<u32, Defining> = HashMap::new();
        let mut opened = Opened::default();
        for wanted in &analysis.names {
            for segment in self.view.segments().iter() {
                for local in segment.lexical.defining(&wanted.name)? {
                    let doc = segment.base_doc + local;
                    if !scope.contains(doc) || !self.view.live().contains(doc) {
                        continue;
                    }
                    let defining = self.score_definition(doc, wanted, &mut opened)?;
                    if defining.in_container > 0.0 || !wanted.is_guess {
                        let known = found.entry(doc).or_default();
                        known.strength = known.strength.max(defining.strength);
                        known.in_container = known.in_container.max(defining.in_container);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Scores a document's definitions of a name.
    fn score_definition(&self, doc: u32, wanted: &NameQuery, opened: &mut Opened) -> Result<Defining, SearchError> {
        let mut defining = Defining::default();
        let Some(place) = self.view.places(doc).first() else {
            return Ok(defining);
        };
        let file = self.view.file(place.file);
        let Some(blob) = file.blob else {
            return Ok(defining);
        };
        let extraction = opened.extraction(self.view, blob)?;
        let Some(chunk) = extraction.chunks.get(place.chunk as usize) else {
            return Ok(defining);
        };
        let is_container = |name: &str| wanted.container.as_deref() == Some(normal_name(name).as_str());
        for definition in named(extraction, chunk, wanted) {
            let spelling = if definition.name == wanted.typed {
                1.0
            } else {
                OTHER_SPELLING
            };
            defining.strength = defining.strength.max(spelling * weight_of_kind(definition.kind));
            if containers(&extraction.definitions, definition).any(is_container) {
                defining.in_container = 1.0;
            }
        }
        let path = String::from_utf8_lossy(self.view.path_in_repository(place.file));
        let mut components = path.rsplit('/');
        let stem = components
            .next()
            .and_then(|name| name.split('.').next())
            .unwrap_or_default();
        if is_container(stem) || components.next().is_some_and(is_container) {
            defining.in_container = defining.in_container.max(FILE_AS_CONTAINER);
        }
        Ok(defining)
    }
}

/// Returns the likelihood that a query for a name refers to a definition of this kind.
fn weight_of_kind(kind: DefinitionKind) -> f32 {
    match kind {
        DefinitionKind::Method | DefinitionKind::Constructor | DefinitionKind::Property => 0.9,
        kind if kind.is_callable() => 1.0,
        DefinitionKind::Variant => 0.7,
        DefinitionKind::Impl => 0.9,
        kind if kind.is_type() => 1.0,
        DefinitionKind::Constant => 0.9,
        DefinitionKind::Variable | DefinitionKind::Field => 0.6,
        _ => 0.5,
    }
}

/// Returns the definitions in a chunk that have the wanted name.
fn named<'e>(
    extraction: &'e Extraction,
    chunk: &'e Chunk,
    wanted: &'e NameQuery,
) -> impl Iterator<Item = &'e Definition> {
    let is_named = |definition: &&Definition| {
        chunk.range.contains(definition.name_range) && normal_name(&definition.name) == wanted.name
    };
    extraction.definitions.iter().filter(is_named)
}

/// Returns the definition in a chunk that best matches the names from the query.
pub(super) fn asked_for<'e>(
    extraction: &'e Extraction,
    chunk: &'e Chunk,
    names: &'e [NameQuery],
) -> Option<&'e Definition> {
    let all = names.iter().flat_map(|wanted| {
        let weighed = named(extraction, chunk, wanted).filter_map(|definition| {
            let spelling = if definition.name == wanted.typed {
                1.0
            } else {
                OTHER_SPELLING
            };
            let is_container = |name: &str| wanted.container.as_deref() == Some(normal_name(name).as_str());
            let is_inside = containers(&extraction.definitions, definition).any(is_container);
            let weight = spelling * weight_of_kind(definition.kind) + f32::from(u8::from(is_inside));
            (is_inside || !wanted.is_guess).then_some((weight, definition))
        });
        weighed.collect::<Vec<_>>()
    });
    let best = all.reduce(|a, b| if b.0 > a.0 { b } else { a });
    best.map(|(_, definition)| definition)
}

/// Returns the names of a definition's containers, innermost first.
pub(super) fn containers<'d>(definitions: &'d [Definition], of: &'d Definition) -> impl Iterator<Item = &'d str> {
    let at = |index: Option<u32>| index.and_then(|index| definitions.get(index as usize));
    let enclosing = std::iter::successors(at(of.container), move |outer| at(outer.container));
    of.qualifier
        .as_deref()
        .into_iter()
        .chain(enclosing.map(|outer| outer.name.as_str()))
}
