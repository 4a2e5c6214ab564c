//! All that a page of a file links: its definitions, and what its references mean.

use std::ops::Range;

use super::places::Wish;
use crate::extract;
use crate::link::{DefId, Linker, Site};
use crate::model::Lang;
use crate::ops::ask::{Ask, FileSelection};
use crate::ops::paths::path_of;
use crate::ops::provenance::ProvenanceOut;
use crate::ops::question::{About, Question};
use crate::query::{Source, definitions_at, kind_name};
use crate::session::Result;

/// The content of a file with its links.
pub(crate) struct FileLinks {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lang: Lang,
    pub(crate) definitions: Vec<DefinitionLink>,
    /// The references with known or possible meanings, in source order.
    pub(crate) references: Vec<ReferenceLink>,
    /// Number of references about which nothing is known.
    pub(crate) n_unknown: usize,
    pub(crate) provenance: ProvenanceOut,
}

/// A definition of the file.
pub(crate) struct DefinitionLink {
    /// The bytes of the name.
    pub(crate) range: Range<usize>,
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) line: u32,
    /// Number of definitions around it.
    pub(crate) depth: usize,
}

/// A reference in the file.
pub(crate) struct ReferenceLink {
    /// The bytes of the name.
    pub(crate) range: Range<usize>,
    /// The path and the line of what it means.
    pub(crate) path: String,
    pub(crate) line: u32,
    /// Number of definitions that it could mean; 0 if it certainly means this one.
    pub(crate) n_candidates: usize,
}

/// Returns the content and the links of the file at a path; `None` if there is none.
pub(crate) fn file_links(ask: &Ask<'_>, path: &str) -> Result<Option<FileLinks>> {
    let selection = FileSelection::default();
    let question = Question::new(ask, &About::indexed_files(&selection))?;
    let Some(file) = question.view().find_text(path) else {
        return Ok(None);
    };
    let Source::Bytes(bytes) = question.sources().reader().read(file)? else {
        return Ok(None);
    };
    let links = question.links();
    let linker = question.linker(&links);
    let (sites, n_unknown) = meant(&linker, linker.sites_in(file));
    let mut wish = Wish::default();
    let targets = sites.iter().filter_map(|site| site.targets.first());
    targets.for_each(|of| wish.definition(*of));
    let places = wish.read(&question.sources())?;
    let reference = |site: &Site| {
        let found = places.definition(*site.targets.first()?)?;
        Some(ReferenceLink {
            range: site.range.as_usize(),
            path: path_of(question.view(), found.file),
            line: found.name_line,
            n_candidates: if site.tier.is_sure() { 0 } else { site.targets.len() },
        })
    };
    let mut references: Vec<ReferenceLink> = sites.iter().filter_map(reference).collect();
    references.sort_by_key(|link| link.range.start);
    let names = linker.definitions(file).unwrap_or_default();
    let found = definitions_at(question.view(), file, &bytes, 0..names.len() as u32)?;
    let definition = |found: crate::query::FoundDefinition| {
        let name = names.get(found.index as usize)?;
        Some(DefinitionLink {
            range: name.name_range.as_usize(),
            kind: kind_name(found.kind),
            line: found.name_line,
            depth: found.container.map_or(0, |outer| outer.matches('.').count() + 1),
            id: found.id,
        })
    };
    let mut definitions: Vec<DefinitionLink> = found.into_iter().filter_map(definition).collect();
    definitions.sort_by_key(|link| link.range.start);
    linker.check()?;
    let is_code = extract::language(question.view().lang(file)).is_some_and(|language| !language.is_prose());
    Ok(Some(FileLinks {
        bytes,
        lang: question.view().lang(file),
        definitions,
        references,
        n_unknown: if is_code { n_unknown } else { 0 },
        provenance: question.provenance(),
    }))
}

/// Returns the references that mean something in the repository, and the number of those about which nothing is known.
fn meant(linker: &Linker<'_>, sites: Vec<Site>) -> (Vec<Site>, usize) {
    let is_itself = |site: &Site| {
        let of: Option<&DefId> = site.targets.first();
        of.is_some_and(|of| of.file == site.file && linker.site_of(*of).range == site.range)
    };
    let n_unknown = sites
        .iter()
        .filter(|site| site.tier == crate::link::Tier::Unknown)
        .count();
    let meant = sites
        .into_iter()
        .filter(|site| !site.targets.is_empty() && !is_itself(site));
    (meant.collect(), n_unknown)
}
