//! Finds the places that a rename changes, and those that it only lists.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::names::check_new;
use super::role::{Place, Role, Subject};
use crate::artifact::Extractor;
use crate::edit::{Edited, Splice};
use crate::extract::{self, WordKind};
use crate::git::FileMode;
use crate::link::{DefId, Linker};
use crate::model::{Hint, RepoPath};
use crate::ops::ask::Ask;
use crate::ops::edit::Writer;
use crate::ops::paths::{inside, path_of};
use crate::ops::question::Question;
use crate::query::{LineStarts, Source, definitions_at};
use crate::session::{OpError, Result};
use crate::snapshot::FileId;

/// Maximum number of places in one error.
const MAX_IN_ERROR: usize = 5;

/// A file with the name.
pub(super) struct PlannedFile {
    pub(super) bytes: Vec<u8>,
    pub(super) changed: Vec<Place>,
}

/// A rename that is being prepared.
pub(super) struct Plan<'a> {
    pub(super) question: &'a Question<'a>,
    pub(super) subject: Subject<'a>,
    pub(super) new: &'a str,
    /// The files with the name, changed or not.
    pub(super) files: BTreeMap<FileId, PlannedFile>,
    pub(super) candidates: Vec<Place>,
    pub(super) mentions: Vec<Place>,
}

impl<'a> Plan<'a> {
    /// Finds the places with the name of a definition.
    pub(super) fn new(question: &'a Question<'a>, linker: &'a Linker<'a>, of: DefId, new: &'a str) -> Result<Self> {
        let subject = Subject::new(question, linker, of)?;
        check_new(subject.language, &subject.definition.name, new)?;
        let mut plan = Self {
            question,
            subject,
            new,
            files: BTreeMap::new(),
            candidates: Vec::new(),
            mentions: Vec::new(),
        };
        plan.search()?;
        plan.add_bases()?;
        plan.subject.check_language(plan.own_bytes())?;
        Ok(plan)
    }

    pub(super) fn old(&self) -> &str {
        &self.subject.definition.name
    }

    fn search(&mut self) -> Result<()> {
        let (subject, view, sources) = (&self.subject, self.question.view(), self.question.sources());
        let mut files = self.subject.linker.files_with(self.old())?;
        // Files that were not indexed are not found by their words.
        let is_unknown = |file: FileId| {
            let entry = view.file(file);
            entry.blob.is_none() && matches!(entry.entry().mode, FileMode::File | FileMode::Executable)
        };
        files.extend(view.files().map(|(file, _)| file).filter(|file| is_unknown(*file)));
        let files: Vec<FileId> = files.into_iter().collect();
        let searched = files.par_iter().map_init(
            || (Extractor::new(extract::Options::default()), sources.reader()),
            |(extractor, reader), &file| {
                sources.go_on()?;
                let bytes = match reader.read(file)? {
                    Source::Bytes(bytes) if !bytes.contains(&0) => bytes,
                    _ => return Ok(None),
                };
                let roles = subject.roles(file, &bytes, extractor);
                Ok((!roles.is_empty()).then_some((file, bytes, roles)))
            },
        );
        let searched: Vec<_> = searched.collect::<Result<Vec<_>>>()?;
        for (file, bytes, roles) in searched.into_iter().flatten() {
            let mut changed = Vec::new();
            for role in roles {
                match role {
                    Role::Changed(place) => changed.push(place),
                    Role::Candidate(place) => self.candidates.push(place),
                    Role::Mention(place) => self.mentions.push(place),
                    Role::Other => {}
                }
            }
            self.files.insert(file, PlannedFile { bytes, changed });
        }
        Ok(())
    }

    /// Adds the types outside of the repository that may have the member, unless the member is private. An object of
    /// JavaScript may have to fit any type, and a declaration for another module may be merged with one.
    fn add_bases(&mut self) -> Result<()> {
        let is_in_object = self.subject.is_member && self.subject.linker.is_in_object(self.subject.of);
        if is_in_object || self.subject.is_merged(self.own_bytes()) {
            let range = self.subject.definition.name_range;
            self.candidates.push(Place::base(self.subject.of.file, range));
        }
        if self.subject.is_hidden(self.own_bytes()) {
            return Ok(());
        }
        let bases = self.subject.bases_of_go(self.question)?;
        for (file, range) in self.subject.outside.clone().into_iter().chain(bases) {
            let Source::Bytes(bytes) = self.question.sources().reader().read(file)? else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes[range.as_usize()]).into_owned();
            if matches!(text.as_str(), "object" | "ABC" | "Generic" | "Protocol" | "Object") {
                continue;
            }
            self.files.entry(file).or_insert(PlannedFile {
                bytes,
                changed: Vec::new(),
            });
            self.candidates.push(Place::base(file, range));
        }
        Ok(())
    }

    /// Returns the content of the file with the definition.
    fn own_bytes(&self) -> &[u8] {
        self.files.get(&self.subject.of.file).map_or(&[], |file| &file.bytes)
    }

    /// Moves candidates and mentions to the changed places. A base is only confirmed to lack the member.
    pub(super) fn accept(&mut self, ask: &Ask<'_>, accepted: &[String]) -> Result<()> {
        for typed in accepted {
            let spelt = inside(&ask.session.workspace, typed).into_owned();
            let at = |place: &Place| {
                let lines = LineStarts::of(&self.files[&place.file].bytes);
                let line = lines.line_of(place.range.start as usize);
                let column = place.range.start as usize - lines.range(line, line).start + 1;
                let path = path_of(self.question.view(), place.file);
                (format!("{path}:{line}"), format!("{path}:{line}:{column}"))
            };
            let is_meant = |place: &Place| {
                let (line, column) = at(place);
                spelt == line || spelt == column
            };
            let listed = self.candidates.iter().chain(&self.mentions);
            let found: Vec<Place> = listed.filter(|place| is_meant(place)).cloned().collect();
            match found.as_slice() {
                [] => {
                    return Err(OpError::new(
                        format!("there is no candidate or mention at {typed}"),
                        "the answer without it lists them",
                    ));
                }
                [place] if place.reason == "base" => {}
                [place] => {
                    let file = self.files.get_mut(&place.file);
                    file.into_iter()
                        .for_each(|file| file.changed.push(place.because("accepted")));
                }
                several => {
                    let places: Vec<String> = several.iter().map(|place| at(place).1).collect();
                    return Err(OpError::new(
                        format!("{typed} has {} places", several.len()),
                        format!("name the column: {}", places.join(", ")),
                    ));
                }
            }
            let is_done = |place: &Place| found[0].file == place.file && found[0].range == place.range;
            self.candidates.retain(|place| !is_done(place));
            self.mentions.retain(|place| !is_done(place));
        }
        self.files
            .values_mut()
            .for_each(|file| file.changed.sort_by_key(|place| place.range.start));
        let bases: Vec<&Place> = self.candidates.iter().filter(|place| place.reason == "base").collect();
        if bases.is_empty() {
            return Ok(());
        }
        let places: Vec<String> = bases
            .iter()
            .take(MAX_IN_ERROR)
            .map(|place| self.shown(place.file, place.range.start))
            .collect();
        Err(OpError::new(
            format!(
                "types outside of the repository may need the name {}: {}",
                self.old(),
                places.join(", ")
            ),
            Hint::each(
                "if they do not, pass each of these positions with --accept",
                "if they do not, pass each of these positions as accept",
            ),
        ))
    }

    /// Returns a position as text.
    pub(super) fn shown(&self, file: FileId, at: u32) -> String {
        let path = path_of(self.question.view(), file);
        let bytes = match self.files.get(&file) {
            Some(file) => Ok(Source::Bytes(file.bytes.clone())),
            None => self.question.sources().reader().read(file),
        };
        match bytes {
            Ok(Source::Bytes(bytes)) => format!("{path}:{}", LineStarts::of(&bytes).line_of(at as usize)),
            _ => path,
        }
    }

    /// Returns the number of changed places.
    pub(super) fn n_changed(&self) -> usize {
        self.files.values().map(|file| file.changed.len()).sum()
    }

    /// Returns the ids of the renamed definitions, with their old names.
    pub(super) fn ids(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for of in &self.subject.kin {
            let Some(file) = self.files.get(&of.file) else { continue };
            let found = definitions_at(self.question.view(), of.file, &file.bytes, [of.index].into_iter())?;
            ids.extend(found.into_iter().map(|found| found.id));
        }
        Ok(ids)
    }

    /// Returns the text at a changed place, and the position of the new name in it.
    pub(super) fn text_at(&self, place: &Place) -> (String, usize) {
        let (old, new) = (self.old(), self.new);
        let is_variable = !matches!(place.reason, "accepted");
        match place.kind {
            // The file imports the variable by this pattern, so both have the new name.
            WordKind::ShorthandPattern if place.reason == "import" => (new.to_owned(), 0),
            // Those who import it by this name are changed, too.
            WordKind::Shorthand if self.is_exported(place) => (new.to_owned(), 0),
            WordKind::Shorthand if is_variable && !self.subject.is_member => (format!("{old}: {new}"), old.len() + 2),
            WordKind::Shorthand | WordKind::ShorthandPattern => (format!("{new}: {old}"), 0),
            _ => (new.to_owned(), 0),
        }
    }

    /// Returns true for `name` in `module.exports = { name }` and `Object.assign(exports, { name })`.
    fn is_exported(&self, place: &Place) -> bool {
        let bytes = self.files.get(&place.file).map_or(&[][..], |file| &file.bytes);
        let before = &bytes[..(place.range.start as usize).min(bytes.len())];
        let open = memchr::memrchr(b'{', before).map_or(&[][..], |open| &before[..open]);
        let open = open.trim_ascii_end();
        let target = open.strip_suffix(b"=").or_else(|| open.strip_suffix(b","));
        let target = target.map(<[u8]>::trim_ascii_end);
        target.is_some_and(|target| target.ends_with(b"exports"))
    }

    /// Returns the path that a file will have. In Java, a file is named after its type.
    pub(super) fn new_path(&self, file: FileId) -> RepoPath {
        let path = RepoPath::new(self.question.view().file(file).path);
        let is_of_type = self.subject.language == "java"
            && self.subject.definition.kind.is_type()
            && self.subject.definition.container.is_none()
            && file == self.subject.of.file;
        let name = format!("/{}", path.to_text());
        match name.strip_suffix(&format!("/{}.java", self.old())) {
            Some(folder) if is_of_type => RepoPath::from(format!("{folder}/{}.java", self.new).trim_start_matches('/')),
            _ => path,
        }
    }

    /// Returns the files with the new name.
    pub(super) fn edited(&self, writer: &mut Writer<'_>) -> Result<Vec<Edited>> {
        let mut edited = Vec::new();
        for (&file, planned) in self.files.iter().filter(|(_, planned)| !planned.changed.is_empty()) {
            let path = RepoPath::new(self.question.view().file(file).path);
            edited.extend(writer.replaced(&path, &planned.bytes, self.splices(planned), &self.new_path(file))?);
        }
        Ok(edited)
    }

    pub(super) fn splices(&self, file: &PlannedFile) -> Vec<Splice> {
        let splice = |place: &Place| Splice::new(place.range.as_usize(), self.text_at(place).0);
        file.changed.iter().map(splice).collect()
    }
}
