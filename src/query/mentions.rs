//! Determines which definitions the files of a view mention, from names, imports and paths. Does not resolve
//! references.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use crate::extract::{Definition, DefinitionKind, Extraction, Import, ReferenceKind};
use crate::index::lexical::normal_name;
use crate::model::Lang;
use crate::snapshot::FileId;

use super::outline::OutlineError;
use super::source::Sources;

/// Maximum number of definitions with the same name. If there are more, a mention of the name is no evidence for any of
/// them.
const MAX_OF_A_NAME: usize = 8;
/// Weight of a type that a file mentions without importing it from the file that defines it. The import may be a
/// re-export.
const UNPROVEN_TYPE: f32 = 0.25;
/// Weight of a method that a file mentions together with the method's type.
const METHOD: f32 = 0.3;
/// Groups of languages whose files can use each other's definitions.
const FAMILIES: &[&[&str]] = &[
    &["c", "cpp"],
    &["javascript", "typescript", "tsx"],
    &["java", "kotlin", "scala"],
];
/// Segments of a module path that are relative to the importing file.
const RELATIVE: &[&str] = &["", "crate", "self", "super", "this"];

/// A file with its definitions, imports and mentions.
pub(super) struct FileMentions {
    pub(super) file: FileId,
    pub(super) extraction: Extraction,
    lang: Lang,
    path: String,
    /// The normalized components of the file's path.
    places: HashSet<String>,
    mentions: HashMap<String, HashSet<(ReferenceKind, Option<String>)>>,
}

/// The origin of a name in a file, according to its imports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    FromThere,
    FromElsewhere,
    Unknown,
}

/// Reads the definitions, imports and mentions of each file. Files that are not indexed are omitted.
pub(super) fn read(sources: &Sources<'_>, files: &[FileId]) -> Result<Vec<FileMentions>, OutlineError> {
    let view = sources.view();
    let read = |&file: &FileId| -> Result<Option<FileMentions>, OutlineError> {
        sources.go_on()?;
        let place = view.file(file).blob.and_then(|blob| view.segments().of_blob(blob));
        let (Some((segment, local)), Some(extraction)) = (place, view.extraction(file).transpose()?) else {
            return Ok(None);
        };
        let mut mentions: HashMap<String, HashSet<_>> = HashMap::new();
        for reference in segment.artifacts.references(local)? {
            let how = (reference.kind, reference.qualifier);
            mentions.entry(reference.name).or_default().insert(how);
        }
        let path = super::outline::path_of(view, file);
        Ok(Some(FileMentions {
            file,
            extraction,
            lang: view.lang(file),
            places: path.split(['/', '.']).map(plain).collect(),
            path,
            mentions,
        }))
    };
    let all: Vec<Option<FileMentions>> = files.par_iter().map(read).collect::<Result<_, _>>()?;
    Ok(all.into_iter().flatten().collect())
}

/// Returns every wanted definition, as file index and definition index, with the total weight of its mentions in other
/// files.
pub(super) fn weighed(files: &[FileMentions], is_wanted: impl Fn(DefinitionKind) -> bool) -> Vec<(usize, u32, f32)> {
    let mut named: HashMap<&str, Vec<(usize, u32)>> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        let definitions = file.extraction.definitions.iter().enumerate();
        for (index, definition) in definitions.filter(|(_, definition)| is_wanted(definition.kind)) {
            named.entry(&definition.name).or_default().push((at, index as u32));
        }
    }
    let mut mentioning: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        for name in file.mentions.keys().filter(|name| named.contains_key(name.as_str())) {
            mentioning.entry(name).or_default().push(at);
        }
    }
    let places: HashSet<&str> = files
        .iter()
        .flat_map(|file| file.places.iter().map(String::as_str))
        .collect();
    let named: Vec<_> = named.into_iter().collect();
    let weigh = |(name, definitions): &(&str, Vec<(usize, u32)>)| -> Vec<(usize, u32, f32)> {
        let by = if definitions.len() > MAX_OF_A_NAME {
            &[][..]
        } else {
            mentioning.get(name).map_or(&[][..], Vec::as_slice)
        };
        let weight = |&(at, index): &(usize, u32)| {
            let others = by.iter().filter(|other| **other != at);
            let sum: f32 = others
                .map(|&other| mention(&files[other], &files[at], index, &places))
                .sum();
            (at, index, sum / definitions.len() as f32)
        };
        definitions.iter().map(weight).collect()
    };
    named.par_iter().flat_map_iter(weigh).collect()
}

/// Returns the likelihood, 0 to 1, that a mention of the name in `by` refers to the definition in `home`.
fn mention(by: &FileMentions, home: &FileMentions, index: u32, known_places: &HashSet<&str>) -> f32 {
    let definition = &home.extraction.definitions[index as usize];
    let container = container(&home.extraction, definition);
    let is_place = |qualifier: &String| {
        let plain = plain(qualifier);
        RELATIVE.contains(&plain.as_str())
            || home.places.contains(&plain)
            || container.is_some_and(|name| name == qualifier)
    };
    let fits = |(kind, qualifier): &(ReferenceKind, Option<String>)| {
        (*kind == ReferenceKind::Macro) == (definition.kind == DefinitionKind::Macro)
            && (definition.kind.is_type() || !matches!(kind, ReferenceKind::Type | ReferenceKind::Inherit))
            && qualifier
                .as_ref()
                .is_none_or(|name| definition.kind == DefinitionKind::Method || is_place(name))
    };
    let how = by.mentions.get(&definition.name);
    if !are_related(by.lang, home.lang) || !how.is_some_and(|how| how.iter().any(fits)) {
        return 0.0;
    }
    if definition.kind == DefinitionKind::Method {
        let is_beside = container.is_some_and(|name| by.mentions.contains_key(name));
        return if is_beside { METHOD } else { 0.0 };
    }
    let is_qualified = how.is_some_and(|how| how.iter().any(|how| fits(how) && how.1.is_some()));
    match taken(by, home, &definition.name, known_places) {
        Taken::FromThere => 1.0,
        Taken::FromElsewhere => 0.0,
        Taken::Unknown if is_qualified || folder(&by.path) == folder(&home.path) => 1.0,
        Taken::Unknown if definition.kind.is_type() => UNPROVEN_TYPE,
        Taken::Unknown => 0.0,
    }
}

fn taken(by: &FileMentions, home: &FileMentions, name: &str, known_places: &HashSet<&str>) -> Taken {
    let mut taken = Taken::Unknown;
    for Import { module, names, .. } in &by.extraction.imports {
        let segments = module
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
            .map(plain);
        let segments: Vec<String> = segments
            .filter(|segment| !RELATIVE.contains(&segment.as_str()))
            .collect();
        let is_named = names.iter().any(|taken| taken.name == name);
        match segments.first() {
            _ if segments.iter().all(|segment| home.places.contains(segment)) && (is_named || !segments.is_empty()) => {
                return Taken::FromThere;
            }
            Some(first) if is_named && !known_places.contains(first.as_str()) => taken = Taken::FromElsewhere,
            _ => {}
        }
    }
    taken
}

fn container<'e>(extraction: &'e Extraction, definition: &'e Definition) -> Option<&'e str> {
    let outer = definition
        .container
        .and_then(|outer| extraction.definitions.get(outer as usize));
    outer
        .map(|outer| outer.name.as_str())
        .or(definition.qualifier.as_deref())
}

fn are_related(one: Lang, other: Lang) -> bool {
    let name = |lang| crate::extract::language(lang).map_or("", |language| language.name);
    one == other
        || FAMILIES
            .iter()
            .any(|family| family.contains(&name(one)) && family.contains(&name(other)))
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Normalizes a name so that modules and paths can be compared.
fn plain(name: &str) -> String {
    normal_name(&name.replace('-', "_"))
}
