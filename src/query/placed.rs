//! Finds the documents at the places that a query gives.

use std::collections::HashMap;

use crate::extract::Extraction;
use crate::index::lexical::normal_name;
use crate::model::Explain;
use crate::model::count::count;
use crate::snapshot::FileId;

use super::candidates::Scope;
use super::hit::Opened;
use super::places::{Meant, TypedPlace, files_meant, files_of_words};
use super::read::unknown_path;
use super::reading::Reading;
use super::request::SearchError;
use super::search::Searcher;

/// The value of a place for each place before it.
const STEP: f32 = 0.01;

/// Maximum number of remarks.
const MAX_REMARKS: usize = 5;

/// The documents at the places of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Placed {
    /// For each document, 1 for the first place, a little less for each further one.
    pub(super) by_doc: HashMap<u32, f32>,
    /// The lines given, by document and file.
    pub(super) lines: HashMap<(u32, FileId), u32>,
    /// Remarks about places that do not exist or are not indexed.
    pub(super) remarks: Vec<String>,
}

impl Searcher<'_> {
    /// Finds the documents at the places of a query.
    pub(super) fn placed(
        &self,
        reading: &Reading,
        query: &str,
        is_defined: bool,
        scope: &Scope,
        opened: &mut Opened,
    ) -> Result<Placed, SearchError> {
        let mut placed = Placed::default();
        let query = query.trim();
        let is_words = reading.places.is_empty() && reading.analysis.is_short && reading.analysis.n_words > 1;
        let whole = match self.view.find_text(query) {
            Some(file) => Meant {
                files: vec![file],
                is_whole: true,
            },
            None if is_words && !is_defined => files_of_words(self.view, query),
            None => Meant::default(),
        };
        if !whole.files.is_empty() {
            let place = TypedPlace {
                path: query.to_owned(),
                line: None,
                range: 0..query.len(),
            };
            self.add_place(&place, &whole, &[], 0, scope, opened, &mut placed)?;
            return Ok(placed);
        }
        if reading.places.is_empty() {
            return Ok(placed);
        }
        let meant = files_meant(self.view, &reading.places, &reading.names);
        for (at, ((place, names), meant)) in reading.places.iter().zip(&reading.names).zip(&meant).enumerate() {
            self.go_on()?;
            let is_sentence = place.line.is_none() && place.range.len() + 2 < query.len();
            if is_sentence && !meant.is_distinct(self.view, &place.path) {
                continue;
            }
            self.add_place(place, meant, names, at, scope, opened, &mut placed)?;
        }
        let is_only = |place: &TypedPlace| {
            place.range.len() + 2 >= query.len() && (place.path.contains('/') || place.line.is_some())
        };
        if let (true, [place]) = (
            placed.by_doc.is_empty() && placed.remarks.is_empty(),
            &reading.places[..],
        ) && is_only(place)
        {
            let error = unknown_path(self.view, &place.path);
            let hint = error.explain().hint.shell.map(|hint| format!("; {hint}"));
            placed.remark(format!("{error}{}", hint.unwrap_or_default()));
        }
        Ok(placed)
    }

    #[expect(clippy::too_many_arguments, reason = "a place with its context")]
    fn add_place(
        &self,
        place: &TypedPlace,
        meant: &Meant,
        names: &[String],
        at: usize,
        scope: &Scope,
        opened: &mut Opened,
        placed: &mut Placed,
    ) -> Result<(), SearchError> {
        let value = (1.0 - STEP * at as f32).max(STEP);
        for (nth, &file) in meant.files.iter().filter(|file| scope.has_file(**file)).enumerate() {
            // Files that the path means equally well differ less than places.
            let value = value - STEP / 20.0 * nth as f32;
            let path = || String::from_utf8_lossy(self.view.file(file).path).into_owned();
            let Some(blob) = self.view.file(file).blob else {
                placed.remark(format!("{} is not indexed; read shows it", path()));
                continue;
            };
            let docs: Vec<u32> = self.view.docs(file).collect();
            if docs.is_empty() {
                placed.remark(format!("{} is empty", path()));
            }
            let Some(line) = place.line else {
                docs.iter().for_each(|&doc| placed.add(doc, value));
                continue;
            };
            let extraction = opened.extraction(self.view, blob)?;
            let n_lines = extraction
                .chunks
                .iter()
                .map(|chunk| chunk.end_line)
                .max()
                .unwrap_or_default();
            if line > n_lines && nth == 0 {
                let lines = count(n_lines as usize, "line");
                placed.remark(format!("line {line} is past the end of {} ({lines})", path()));
            }
            let Some((chunk, line)) = chunk_at(extraction, line.min(n_lines.max(1)), names, meant.is_whole) else {
                continue;
            };
            if let Some(&doc) = docs.get(chunk) {
                placed.add(doc, value);
                placed.lines.entry((doc, file)).or_insert(line);
            }
        }
        Ok(())
    }
}

impl Placed {
    /// Adds a remark, unless there are many: a long stack trace can name hundreds of such places.
    fn remark(&mut self, remark: String) {
        if self.remarks.len() < MAX_REMARKS && !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    fn add(&mut self, doc: u32, value: f32) {
        let known = self.by_doc.entry(doc).or_default();
        *known = known.max(value);
    }
}

/// Returns the chunk that holds a line, and the line. If the file changed since the line was printed, the line may
/// belong to another function than the one named beside it: then the chunk of that function, if there is one.
fn chunk_at(extraction: &Extraction, line: u32, names: &[String], is_whole: bool) -> Option<(usize, u32)> {
    let holds = |(start, end): (u32, u32)| (start..=end).contains(&line);
    let at = extraction
        .chunks
        .iter()
        .rposition(|chunk| holds((chunk.start_line, chunk.end_line)));
    let at = at.or_else(|| extraction.chunks.iter().rposition(|chunk| chunk.start_line <= line))?;
    let Some(name) = names.last().map(|name| normal_name(name)).filter(|_| !is_whole) else {
        return Some((at, line));
    };
    let range = extraction.chunks[at].range;
    let mut named = extraction
        .definitions
        .iter()
        .filter(|definition| normal_name(&definition.name) == name);
    let (first, second) = (named.next(), named.next());
    match (first, second) {
        (Some(only), None) if !only.range.contains(range) && !range.contains(only.name_range) => {
            let chunk = extraction
                .chunks
                .iter()
                .position(|chunk| chunk.range.contains(only.name_range))?;
            Some((chunk, extraction.chunks[chunk].start_line))
        }
        _ => Some((at, line)),
    }
}
