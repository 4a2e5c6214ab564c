//! Finds the places that a rename changes, and those that it only lists.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::names::{check_new, check_old};
use crate::extract::{self, Definition, DefinitionKind, Extractor, ReferenceKind, Value, Word, WordKind, language};
use crate::git::FileMode;
use crate::link::{DefId, Kin, Linker, MAX_CANDIDATES, NameUse, Site, Tier};
use crate::model::{ByteRange, Hint, RepoPath};
use crate::ops::ask::Ask;
use crate::ops::edit::{Edited, Splice, Writer};
use crate::ops::paths::inside;
use crate::ops::question::Question;
use crate::ops::symbol::path_of;
use crate::query::{LineStarts, Source, definitions_at};
use crate::session::{OpError, Result};
use crate::snapshot::{FileId, View};

/// Maximum number of places in one error.
const MAX_IN_ERROR: usize = 5;

/// A place with the name.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) file: FileId,
    pub(super) range: ByteRange,
    pub(super) kind: WordKind,
    /// How it was resolved, or where the text is.
    pub(super) reason: &'static str,
    /// True if the name stands alone or is imported, so that other names of the file can hide it.
    pub(super) is_bare: bool,
}

/// What a rename does with a place.
enum Role {
    Changed(Place),
    Candidate(Place),
    Mention(Place),
    /// It means something else.
    Other,
}

/// A file with the name.
pub(super) struct PlannedFile {
    pub(super) bytes: Vec<u8>,
    pub(super) changed: Vec<Place>,
}

/// What is renamed.
pub(super) struct Subject<'a> {
    view: &'a View,
    pub(super) linker: &'a Linker<'a>,
    pub(super) definition: Definition,
    of: DefId,
    /// The definitions that are renamed.
    pub(super) kin: BTreeSet<DefId>,
    is_member: bool,
    is_in_function: bool,
    has_namesakes: bool,
    pub(super) language: &'static str,
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
        let missing = || OpError::failed("the definition is not indexed");
        let definition = linker.definition(of).ok_or_else(missing)?;
        let language = language(question.view().lang(of.file)).map_or("", |language| language.name);
        let is_member = definition.qualifier.is_some() || linker.type_around(of).is_some();
        let is_member = is_member || matches!(definition.kind, DefinitionKind::Method | DefinitionKind::Field);
        let is_member = is_member || is_property(question, of, &definition)?;
        let container = definition
            .container
            .and_then(|index| linker.definition(DefId { index, ..of }));
        let is_in_function = container.is_some_and(|container| container.kind.is_callable());
        check_old(language, &definition.name, definition.kind, is_member)?;
        check_new(language, &definition.name, new)?;
        let too_many = || OpError::failed("too many definitions would be renamed");
        let Kin { definitions, outside } = linker.kin(of)?.ok_or_else(too_many)?;
        if definitions.is_empty() {
            return Err(OpError::failed(format!("{} is a title, not a name", definition.name)));
        }
        let mut plan = Self {
            question,
            subject: Subject {
                view: question.view(),
                linker,
                definition,
                of,
                is_member,
                is_in_function,
                has_namesakes: is_member && linker.has_namesakes(&definitions),
                kin: definitions,
                language,
            },
            new,
            files: BTreeMap::new(),
            candidates: Vec::new(),
            mentions: Vec::new(),
        };
        plan.search()?;
        plan.add_bases(&outside)?;
        plan.check_marks()?;
        Ok(plan)
    }

    fn old(&self) -> &str {
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
    /// JavaScript may have to fit any type.
    fn add_bases(&mut self, outside: &[(FileId, ByteRange)]) -> Result<()> {
        if self.subject.is_member && self.subject.linker.is_in_object(self.subject.of) {
            self.candidates.push(Place {
                file: self.subject.of.file,
                range: self.subject.definition.name_range,
                kind: WordKind::Name,
                reason: "base",
                is_bare: false,
            });
        }
        let signature = self.text_of(self.subject.of.file, |definition| {
            ByteRange::new(definition.signature.start, definition.name_range.start)
        });
        let is_hidden = signature
            .split_whitespace()
            .any(|word| matches!(word, "private" | "static"));
        if is_hidden && matches!(self.subject.language, "java" | "typescript" | "tsx") || self.old().starts_with('#') {
            return Ok(());
        }
        for &(file, range) in outside {
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
            self.candidates.push(Place {
                file,
                range,
                kind: WordKind::Name,
                reason: "base",
                is_bare: false,
            });
        }
        Ok(())
    }

    /// Returns a part of a definition.
    fn text_of(&self, file: FileId, part: impl Fn(&Definition) -> ByteRange) -> String {
        let bytes = self.files.get(&file).map_or(&[][..], |file| &file.bytes);
        String::from_utf8_lossy(bytes.get(part(&self.subject.definition).as_usize()).unwrap_or_default()).into_owned()
    }

    /// Fails if parameters of other functions mean the definition by its name.
    fn check_marks(&self) -> Result<()> {
        let head = self.text_of(self.subject.of.file, |definition| {
            ByteRange::new(definition.range.start, definition.signature.start)
        });
        if self.subject.language == "python"
            && head
                .lines()
                .any(|line| line.trim_start().starts_with('@') && line.contains("fixture"))
        {
            return Err(OpError::failed(format!(
                "{} is a fixture, which tests name by their parameters",
                self.old()
            )));
        }
        if self.subject.language == "java" && self.old() == "value" && self.is_in_annotation() {
            return Err(OpError::failed(
                "annotations of java name value by giving only its value",
            ));
        }
        if self.old().starts_with("Example") && self.subject.is_test_of_go(self.subject.of.file) {
            return Err(OpError::failed(format!("{} is named after what it shows", self.old())));
        }
        Ok(())
    }

    /// Returns true for an element of an annotation of Java.
    fn is_in_annotation(&self) -> bool {
        let around = self.subject.linker.type_around(self.subject.of);
        let around = around.and_then(|around| self.subject.linker.definition(around));
        let bytes = self
            .files
            .get(&self.subject.of.file)
            .map_or(&[][..], |file| &file.bytes);
        let signature = around.and_then(|around| bytes.get(around.signature.as_usize()));
        signature.is_some_and(|signature| memchr::memmem::find(signature, b"@interface").is_some())
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
                    let is_bare = false;
                    let file = self.files.get_mut(&place.file);
                    file.into_iter().for_each(|file| {
                        file.changed.push(Place {
                            reason: "accepted",
                            is_bare,
                            ..place.clone()
                        })
                    });
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

impl Subject<'_> {
    /// Returns what happens to each occurrence of the name in a file.
    fn roles(&self, file: FileId, bytes: &[u8], extractor: &mut Extractor) -> Vec<Role> {
        let (view, name) = (self.view, self.definition.name.as_str());
        let is_code = self.linker.is_like(file, self.of.file);
        let words = is_code.then(|| extractor.words(bytes, view.lang(file), name)).flatten();
        let is_parsed = words.is_some() && view.file(file).blob.is_some();
        let words: BTreeMap<u32, Word> = words
            .into_iter()
            .flatten()
            .map(|word| (word.range.start, word))
            .collect();
        let is_part = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || *byte > 127)
        };
        let is_word = |at: &usize| {
            !is_part(at.checked_sub(1).and_then(|before| bytes.get(before))) && !is_part(bytes.get(at + name.len()))
        };
        let is_example = |at: usize| self.is_test_of_go(file) && self.is_in_example(bytes, at);
        let found = memchr::memmem::find_iter(bytes, name).filter(|at| is_word(at) || is_example(*at));
        let role = |at: usize| {
            let range = ByteRange::new(at as u32, (at + name.len()) as u32);
            let place = |kind, reason| Place {
                file,
                range,
                kind,
                reason,
                is_bare: false,
            };
            match words.get(&(at as u32)) {
                _ if !is_word(&at) => Role::Candidate(place(WordKind::Name, "example")),
                Some(word) if is_parsed => self.role(place(word.kind, ""), bytes),
                None if is_parsed
                    && (self.is_quoted_type(bytes, at) || self.linker.reference(file, at as u32).is_some()) =>
                {
                    self.role(place(WordKind::String, ""), bytes)
                }
                None if is_parsed => Role::Mention(place(WordKind::String, "text")),
                _ if is_code => Role::Candidate(place(WordKind::Name, "not parsed")),
                _ => Role::Mention(place(WordKind::String, "other file")),
            }
        };
        found.map(role).collect()
    }

    fn role(&self, place: Place, bytes: &[u8]) -> Role {
        let (file, at) = (place.file, place.range.start);
        let is_short = matches!(place.kind, WordKind::Shorthand | WordKind::ShorthandPattern);
        let candidate = |reason| {
            Role::Candidate(Place {
                reason,
                ..place.clone()
            })
        };
        // The field of a short form is never resolved.
        let other = || {
            if is_short && self.is_member {
                candidate("short form")
            } else {
                Role::Other
            }
        };
        match place.kind {
            WordKind::String if self.language == "rust" => return self.at_scope(place, bytes),
            WordKind::String if self.language == "python" && self.linker.reference(file, at).is_some() => {}
            WordKind::String if self.is_quoted_type(bytes, at as usize) => return candidate("string"),
            // `T = TypeVar("T")`, and keys as types: `Omit<Options, "path">`.
            WordKind::String if self.is_in_definition(&place) || self.is_script() && self.is_member => {
                return candidate("string");
            }
            WordKind::String => {
                return Role::Mention(Place {
                    reason: "string",
                    ..place
                });
            }
            WordKind::Exported => return self.at_scope(place, bytes),
            WordKind::Label if self.is_member => return candidate("argument"),
            WordKind::Label => return Role::Other,
            WordKind::PatternKey if self.is_script() && self.may_be_exported(file, at) => {
                return candidate("short form");
            }
            _ => {}
        }
        if self.is_script() && !self.is_member && place.kind == WordKind::Name {
            let exported = self.linker.exported_at(file, at, &self.definition.name);
            if !exported.is_empty() && exported.iter().all(|of| self.kin.contains(of)) {
                return Role::Changed(Place {
                    reason: "export",
                    ..place
                });
            }
        }
        match self.linker.use_at(file, at, &self.definition.name) {
            NameUse::Definition(of) if self.is_assignment(&place, of) => candidate("unresolved"),
            NameUse::Definition(of) if self.kin.contains(&of) => Role::Changed(Place {
                reason: "definition",
                is_bare: !self.is_member,
                ..place
            }),
            NameUse::Definition(of) if self.is_member && self.linker.is_in_object(of) => candidate("object"),
            NameUse::Definition(of) if self.has_namesakes && self.linker.has_contract(&self.kin, of) => {
                candidate("interface")
            }
            NameUse::Definition(of) if !self.is_member && self.linker.is_augmented(self.of, of) => candidate("module"),
            NameUse::Definition(_) => Role::Other,
            NameUse::Local
                if self.language == "python" && !self.is_member && declares_global(bytes, &self.definition.name) =>
            {
                candidate("global")
            }
            NameUse::Local if place.kind == WordKind::ShorthandPattern && self.is_from_module(&place, bytes) => {
                candidate("short form")
            }
            NameUse::Local => other(),
            NameUse::Unresolved => candidate("unresolved"),
            NameUse::Reference(site) => self.reference(place.clone(), &site, bytes, &other),
        }
    }

    fn reference(&self, place: Place, site: &Site, bytes: &[u8], other: &dyn Fn() -> Role) -> Role {
        if let Some(role) = self.path_segment(&place, site, bytes) {
            return role;
        }
        let reference = self.linker.reference(place.file, place.range.start);
        let receiver = reference.map_or(Value::None, |reference| reference.receiver);
        let is_plain = receiver == Value::None;
        if is_plain && self.linker.is_alias(place.file, &self.definition.name) {
            return Role::Other;
        }
        let before = &bytes[..place.range.start as usize];
        if let Some(reason) = self.doubt(&place, site, is_plain, before) {
            return Role::Candidate(Place { reason, ..place });
        }
        // A key of an object is no plain name.
        if self.is_script() && site.kind == ReferenceKind::Member && is_plain && !self.is_member {
            return Role::Other;
        }
        let n_meant = site.targets.iter().filter(|target| self.kin.contains(target)).count();
        let reason = site.tier.name();
        if site.tier.is_sure() && n_meant > 0 && n_meant == site.targets.len() {
            return Role::Changed(Place {
                reason,
                is_bare: is_plain,
                ..place
            });
        }
        // Of many candidates, not all are given, and fields of types without a name are none.
        let is_cut = site.tier == Tier::Named && (site.targets.len() >= MAX_CANDIDATES || self.is_in_function);
        let is_of_module = !self.is_member && self.linker.may_be_of_module(place.file, place.range.start);
        if n_meant > 0
            || is_cut
            || site.tier == Tier::Unknown
            || site.tier == Tier::Named && is_of_module
            || self.may_be_inside(&place, site, is_plain, before)
        {
            return Role::Candidate(Place { reason, ..place });
        }
        other()
    }

    /// Returns what happens to a part of the path of an import.
    fn path_segment(&self, place: &Place, site: &Site, bytes: &[u8]) -> Option<Role> {
        if !is_path_segment(&bytes[place.range.end as usize..]) {
            return None;
        }
        let (file, at) = (place.file, place.range.start);
        let targets = self.linker.path_segment_at(file, at, &self.definition.name);
        // The segments of a static import of Java are types.
        if site.kind != ReferenceKind::Import && targets.is_empty() {
            return None;
        }
        let place = Place {
            reason: "import",
            ..place.clone()
        };
        Some(if targets.is_empty() {
            Role::Candidate(place)
        } else if targets.iter().all(|target| self.kin.contains(target)) {
            Role::Changed(place)
        } else {
            Role::Other
        })
    }

    /// Returns why the meaning of a reference cannot be relied on, if it cannot.
    fn doubt(&self, place: &Place, site: &Site, is_plain: bool, before: &[u8]) -> Option<&'static str> {
        let is_import = site.kind == ReferenceKind::Import;
        let is_here = || self.kin.iter().any(|of| of.file == place.file);
        let tier = site.tier.name();
        match self.language {
            // In some macros and attributes, a path is not resolved.
            "rust" if is_plain && !is_import && ends_with_path(before) => return Some("macro"),
            // A name can be defined or imported.
            "python" if is_import && site.tier == Tier::Outside && !self.is_member && is_here() => {
                return Some("import");
            }
            "python" if self.has_namesakes && matches!(site.tier, Tier::Type | Tier::Return) => return Some(tier),
            "python" if self.is_too_early(place, site) => return Some("unresolved"),
            _ if !self.is_script() => return None,
            _ => {}
        }
        // In TypeScript, a value can have the name of a type.
        let is_only_type = matches!(
            self.definition.kind,
            DefinitionKind::TypeAlias | DefinitionKind::Interface
        );
        let is_of_type = matches!(site.kind, ReferenceKind::Type | ReferenceKind::Import)
            || site.kind == ReferenceKind::Inherit && self.definition.kind == DefinitionKind::Interface;
        // A parameter can be called `self`.
        let is_of_self = before.ends_with(b"self.") || before.ends_with(b"self?.");
        match site.tier {
            _ if is_of_self => Some(tier),
            _ if is_only_type && !is_of_type => Some("value"),
            Tier::Type | Tier::Return if self.has_namesakes => Some(tier),
            _ => None,
        }
    }

    /// Returns true if a reference that was resolved to nothing in the repository can mean the definition after all.
    fn may_be_inside(&self, place: &Place, site: &Site, is_plain: bool, before: &[u8]) -> bool {
        let (file, at) = (place.file, place.range.start);
        let is_after_dot = before.trim_ascii_end().ends_with(b".") || before.ends_with(b"::");
        let is_unsure = (self.is_member || is_after_dot) && !self.linker.is_surely_outside(file, at, is_after_dot);
        // Members by their bare names: cases and inherited members of Java, and what a class body of Python names. Paths of
        // Rust are not resolved from the crate in files that no Cargo.toml leads to, nor from `Self` of a type outside.
        let is_here = self.kin.iter().any(|of| of.file == file);
        let is_bare_member = self.is_member && is_plain && (self.language == "java" || is_here);
        let is_own = before.ends_with(b"Self::") || before.ends_with(b"::") && !ends_with_path(before);
        // The items of a file that a file of Rust includes.
        let is_included = is_plain && memchr::memmem::find(before, b"include!(").is_some();
        site.tier == Tier::Outside
            && (is_unsure || is_bare_member || (is_own || is_included) && self.language == "rust")
    }

    /// Returns true if code of a Python module runs before the definition, and can mean a built-in name:
    /// `native = str` above `str = str`.
    fn is_too_early(&self, place: &Place, site: &Site) -> bool {
        let of_file = self.kin.iter().filter(|of| of.file == place.file);
        let ends = of_file.filter_map(|of| Some(self.linker.definition(*of)?.range.end));
        let is_early = ends.min().is_some_and(|end| place.range.start < end);
        let mut around = site.inside;
        while let Some(of) = around {
            let outer = self.linker.definition(of);
            if outer.as_ref().is_none_or(|outer| outer.kind.is_callable()) {
                return false;
            }
            around = outer
                .and_then(|outer| outer.container)
                .map(|index| DefId { index, ..of });
        }
        is_early && site.kind != ReferenceKind::Type && !self.is_member && !self.is_in_function
    }

    /// Returns true if a definition of JavaScript is an assignment to a variable of which only one of them is renamed:
    /// `let run = wrap(a => a); run = wrap(b => b)`.
    fn is_assignment(&self, place: &Place, of: DefId) -> bool {
        let visible = || {
            self.linker
                .visible_at(place.file, place.range.start, &self.definition.name)
        };
        let is_apart = |visible: Vec<DefId>| {
            let is_meant = visible.iter().any(|target| self.kin.contains(target));
            !visible.is_empty() && is_meant != self.kin.contains(&of)
        };
        self.is_script() && !self.is_member && is_apart(visible())
    }

    fn is_test_of_go(&self, file: FileId) -> bool {
        self.language == "go" && self.view.file(file).path.ends_with(b"_test.go")
    }

    /// Returns true if a place is in the name of an example of Go, which says what it shows: `func ExampleRoute_Path()`.
    fn is_in_example(&self, bytes: &[u8], at: usize) -> bool {
        let line = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        let outer = self
            .linker
            .type_around(self.of)
            .and_then(|of| self.linker.definition(of));
        let outer = self.definition.qualifier.clone().or(outer.map(|outer| outer.name));
        let before = format!("func Example{}", outer.map_or_else(String::new, |outer| outer + "_"));
        let after = bytes.get(at + self.definition.name.len());
        &bytes[line..at] == before.as_bytes() && matches!(after, Some(b'(' | b'_'))
    }

    /// Returns true for the key in `const { name: other } = module` if it is not resolved.
    fn may_be_exported(&self, file: FileId, at: u32) -> bool {
        let is_resolved = |site: Site| site.tier.is_sure() && !site.targets.is_empty();
        let site = self.linker.site_at(file, at);
        !self.is_member && !self.is_in_function && !site.is_some_and(is_resolved)
    }

    /// Returns true for `name` in `const { name } = module`.
    fn is_from_module(&self, place: &Place, bytes: &[u8]) -> bool {
        let rest = &bytes[place.range.end as usize..];
        let close = rest
            .iter()
            .position(|byte| *byte == b'}')
            .map_or(&[][..], |close| &rest[close + 1..]);
        let value = close
            .trim_ascii_start()
            .strip_prefix(b"=")
            .unwrap_or_default()
            .trim_ascii_start();
        let end = value
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
            .unwrap_or(value.len());
        let name = std::str::from_utf8(&value[..end]).unwrap_or_default();
        self.is_script() && !self.is_member && self.linker.imports_name(place.file, name)
    }

    fn is_script(&self) -> bool {
        matches!(self.language, "javascript" | "typescript" | "tsx")
    }

    /// Returns true if a place in a string of Python can name a type: `cast("Thing", x)`, `Callable[["Thing"], None]`.
    fn is_quoted_type(&self, bytes: &[u8], at: usize) -> bool {
        let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'');
        let start = bytes[..at].iter().rposition(is_quote).map_or(at, |quote| quote + 1);
        let end = bytes[at..].iter().position(is_quote).map_or(at, |quote| at + quote);
        let name = &self.definition.name;
        let is_camel = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
        let can_be = self.definition.kind.is_type() || is_camel && !self.definition.kind.is_callable();
        let text = std::str::from_utf8(&bytes[start..end]).unwrap_or_default();
        can_be && self.language == "python" && extract::is_quoted_type(text)
    }

    /// Returns true if a place is in the statement that defines a variable.
    fn is_in_definition(&self, place: &Place) -> bool {
        let is_variable = matches!(
            self.definition.kind,
            DefinitionKind::Variable | DefinitionKind::Constant | DefinitionKind::TypeAlias
        );
        is_variable && place.file == self.of.file && self.definition.range.contains(place.range)
    }

    /// Returns the role of a string that names something of its scope: in `__all__`, or in a format string.
    fn at_scope(&self, place: Place, bytes: &[u8]) -> Role {
        let is_format = bytes.get((place.range.start as usize).wrapping_sub(1)) == Some(&b'{');
        if place.kind == WordKind::String && !is_format {
            return Role::Mention(Place {
                reason: "string",
                ..place
            });
        }
        let targets = self
            .linker
            .visible_at(place.file, place.range.start, &self.definition.name);
        let is_meant = targets.iter().any(|target| self.kin.contains(target));
        let is_other = !targets.is_empty() && !is_meant;
        match place.kind {
            WordKind::Exported if is_meant => Role::Changed(Place {
                reason: "export",
                ..place
            }),
            _ if is_meant => Role::Candidate(Place {
                reason: "format string",
                ..place
            }),
            _ if is_other || self.is_member || place.kind == WordKind::String => Role::Other,
            _ => Role::Candidate(Place {
                reason: "export",
                ..place
            }),
        }
    }
}

/// Returns true for `value.name = function …` in JavaScript, unless the module exports it.
fn is_property(question: &Question<'_>, of: DefId, definition: &Definition) -> Result<bool> {
    let is_script = language(question.view().lang(of.file))
        .is_some_and(|language| matches!(language.name, "javascript" | "typescript" | "tsx"));
    let source = question.sources().reader().read(of.file)?;
    let Source::Bytes(bytes) = source else { return Ok(false) };
    let before = bytes.get(..definition.name_range.start as usize).unwrap_or_default();
    let object = before.trim_ascii_end().strip_suffix(b".");
    Ok(is_script && object.is_some_and(|object| !object.ends_with(b"exports") && !object.ends_with(b"module")))
}

/// Returns true if a function of a Python file says that a name is that of the module.
fn declares_global(bytes: &[u8], name: &str) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut names = lines.filter_map(|line| line.strip_prefix(b"global "));
    names.any(|names| {
        names
            .split(|byte| *byte == b',')
            .any(|other| other.trim_ascii() == name.as_bytes())
    })
}

/// Returns true if a text ends with the qualifier of a name, other than a keyword.
fn ends_with_path(before: &[u8]) -> bool {
    before.strip_suffix(b"::").is_some_and(|path| {
        ![&b"crate"[..], b"self", b"super"]
            .iter()
            .any(|keyword| path.ends_with(keyword))
    })
}

/// Returns true if a name is followed by another segment of a path, or by the names that are imported from it.
fn is_path_segment(after: &[u8]) -> bool {
    let n_blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = &after[n_blanks..];
    rest.starts_with(b"::") || rest.starts_with(b".") || rest.starts_with(b"import ")
}
