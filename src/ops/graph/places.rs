//! Presents definitions and positions: their ids, lines and texts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;

use crate::link::DefId;
use crate::query::{FoundDefinition, LineStarts, Source, Sources, definitions_at};
use crate::session::Result;
use crate::snapshot::FileId;

/// Maximum number of bytes of a line that is shown.
const MAX_LINE_BYTES: usize = 200;

/// The definitions and positions of a file to show.
#[derive(Debug, Default)]
struct Wanted {
    definitions: BTreeSet<u32>,
    positions: BTreeSet<u32>,
}

/// The definitions and positions to show, by file.
#[derive(Debug, Default)]
pub(super) struct Wish(BTreeMap<FileId, Wanted>);

/// The definitions and lines that were read.
#[derive(Debug, Default)]
pub(super) struct Places {
    definitions: HashMap<DefId, FoundDefinition>,
    lines: HashMap<(FileId, u32), (u32, String)>,
}

impl Wish {
    pub(super) fn definition(&mut self, of: DefId) {
        self.0.entry(of.file).or_default().definitions.insert(of.index);
    }

    pub(super) fn position(&mut self, file: FileId, at: u32) {
        self.0.entry(file).or_default().positions.insert(at);
    }

    /// Reads what is wanted, each file once.
    pub(super) fn read(&self, sources: &Sources<'_>) -> Result<Places> {
        let files: Vec<(&FileId, &Wanted)> = self.0.iter().collect();
        let read = files.par_iter().map(|(file, wanted)| wanted.read(sources, **file));
        let mut all = Places::default();
        for places in read.collect::<Result<Vec<_>>>()? {
            all.definitions.extend(places.definitions);
            all.lines.extend(places.lines);
        }
        Ok(all)
    }
}

impl Wanted {
    fn read(&self, sources: &Sources<'_>, file: FileId) -> Result<Places> {
        sources.go_on()?;
        let Source::Bytes(bytes) = sources.reader().read(file)? else {
            return Ok(Places::default());
        };
        let mut places = Places::default();
        if !self.definitions.is_empty() {
            let found = definitions_at(sources.view(), file, &bytes, self.definitions.iter().copied())?;
            places.definitions = found
                .into_iter()
                .map(|found| {
                    (
                        DefId {
                            file,
                            index: found.index,
                        },
                        found,
                    )
                })
                .collect();
        }
        let lines = LineStarts::of(&bytes);
        for &at in &self.positions {
            let line = lines.line_of(at as usize);
            let text = bytes[lines.range(line, line)].trim_ascii();
            let text = String::from_utf8_lossy(&text[..text.len().min(MAX_LINE_BYTES)]).into_owned();
            places.lines.insert((file, at), (line, text));
        }
        Ok(places)
    }
}

impl Places {
    pub(super) fn definition(&self, of: DefId) -> Option<&FoundDefinition> {
        self.definitions.get(&of)
    }

    /// Returns the number and the text of the line of a position.
    pub(super) fn line(&self, file: FileId, at: u32) -> (u32, String) {
        self.lines.get(&(file, at)).cloned().unwrap_or_default()
    }
}
