//! What a rename does with each place that has the name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::languages::{declares_global, is_property};
use super::names::check_old;
use crate::artifact::Extractor;
use crate::extract::{Definition, DefinitionKind, ReferenceKind, Value, Word, WordKind, language};
use crate::link::{DefId, Kin, Linker, MAX_CANDIDATES, NameUse, Site, Tier};
use crate::model::ByteRange;
use crate::ops::question::Question;
use crate::session::{OpError, Result};
use crate::snapshot::{FileId, View};

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
pub(super) enum Role {
    Changed(Place),
    Candidate(Place),
    Mention(Place),
    /// It means something else.
    Other,
}

/// What is renamed.
pub(super) struct Subject<'a> {
    pub(super) view: &'a View,
    pub(super) linker: &'a Linker<'a>,
    pub(super) definition: Definition,
    pub(super) of: DefId,
    /// The definitions that are renamed.
    pub(super) kin: BTreeSet<DefId>,
    /// Names of types that relate to types outside of the repository, which may have a member with the name.
    pub(super) outside: Vec<(FileId, ByteRange)>,
    pub(super) is_member: bool,
    pub(super) is_in_function: bool,
    /// True for a member if another type has one with the name.
    pub(super) has_namesakes: bool,
    pub(super) language: &'static str,
}

impl Place {
    /// Returns the type or object that may need the old name because of code outside of the repository.
    pub(super) fn base(file: FileId, range: ByteRange) -> Self {
        Self {
            file,
            range,
            kind: WordKind::Name,
            reason: "base",
            is_bare: false,
        }
    }

    pub(super) fn because(&self, reason: &'static str) -> Self {
        Self { reason, ..self.clone() }
    }
}

impl<'a> Subject<'a> {
    pub(super) fn new(question: &'a Question<'a>, linker: &'a Linker<'a>, of: DefId) -> Result<Self> {
        let missing = || OpError::failed("the definition is not indexed");
        let definition = linker.definition(of).ok_or_else(missing)?;
        let language = language(question.view().lang(of.file)).map_or("", |language| language.name);
        let is_member = definition.qualifier.is_some() || linker.type_around(of).is_some();
        let is_member = is_member || matches!(definition.kind, DefinitionKind::Method | DefinitionKind::Field);
        let is_member = is_member || is_property(question, of, &definition)?;
        let container = definition
            .container
            .and_then(|index| linker.definition(DefId { index, ..of }));
        check_old(language, &definition.name, definition.kind, is_member)?;
        let too_many = || OpError::failed("too many definitions would be renamed");
        let Kin { definitions, outside } = linker.kin(of)?.ok_or_else(too_many)?;
        if definitions.is_empty() {
            return Err(OpError::failed(format!("{} is a title, not a name", definition.name)));
        }
        Ok(Self {
            view: question.view(),
            linker,
            definition,
            of,
            is_member,
            is_in_function: container.is_some_and(|container| container.kind.is_callable()),
            has_namesakes: is_member && linker.has_namesakes(&definitions),
            kin: definitions,
            outside,
            language,
        })
    }

    /// Returns what happens to each occurrence of the name in a file.
    pub(super) fn roles(&self, file: FileId, bytes: &[u8], extractor: &mut Extractor) -> Vec<Role> {
        let (view, name) = (self.view, self.definition.name.as_str());
        let is_code = self.linker.is_like(file, self.of.file);
        let is_hidden = self.linker.may_hide_uses(file, self.of.file);
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
        // The letter of an escape such as `\n` is no part of a word.
        let is_escape = |at: usize| {
            let before = bytes[..at].strip_suffix(b"n").or(bytes[..at].strip_suffix(b"t"));
            let slashes = before.map_or(0, |before| {
                before.iter().rev().take_while(|byte| **byte == b'\\').count()
            });
            slashes % 2 == 1
        };
        let is_word = |at: &usize| {
            let is_part_before = is_part(at.checked_sub(1).and_then(|before| bytes.get(before)));
            (!is_part_before || is_escape(*at)) && !is_part(bytes.get(at + name.len()))
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
                None if is_parsed && self.is_in_tested_text(bytes, at) => {
                    Role::Candidate(place(WordKind::Name, "example"))
                }
                None if is_parsed && is_path_in_mark(bytes, range.as_usize()) => {
                    Role::Candidate(place(WordKind::String, "string"))
                }
                None if is_parsed => Role::Mention(place(WordKind::String, "text")),
                _ if is_code || is_hidden => Role::Candidate(place(WordKind::Name, "not parsed")),
                _ => Role::Mention(place(WordKind::String, "other file")),
            }
        };
        found.map(role).collect()
    }

    fn role(&self, place: Place, bytes: &[u8]) -> Role {
        let (file, at) = (place.file, place.range.start);
        let is_short = matches!(place.kind, WordKind::Shorthand | WordKind::ShorthandPattern);
        let candidate = |reason| Role::Candidate(place.because(reason));
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
            WordKind::String => return self.string(place, bytes),
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
                return Role::Changed(place.because("export"));
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
        let before = &bytes[..place.range.start as usize];
        if let Some(reason) = self.doubt(&place, site, is_plain, before) {
            return Role::Candidate(place.because(reason));
        }
        if !self.is_member && self.is_surely_member(site, is_plain, before) {
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
            return Role::Candidate(place.because(reason));
        }
        other()
    }

    /// Returns true for a definition that can be a part of the path of an import, before its last name.
    fn can_hold_names(&self) -> bool {
        let kind = self.definition.kind;
        kind.is_type() || kind == DefinitionKind::Module
    }

    /// Returns true for a part of the path of an import that is a file or another module.
    pub(super) fn is_other_module(&self, file: FileId, at: u32, bytes: &[u8]) -> bool {
        let end = at as usize + self.definition.name.len();
        let reference = self.linker.reference(file, at);
        !self.can_hold_names()
            && reference.is_some_and(|reference| reference.kind == ReferenceKind::Import)
            && bytes.get(end..).is_some_and(is_path_segment)
    }

    /// Returns what happens to a part of the path of an import.
    fn path_segment(&self, place: &Place, site: &Site, bytes: &[u8]) -> Option<Role> {
        if !is_path_segment(&bytes[place.range.end as usize..]) {
            return None;
        }
        if site.kind == ReferenceKind::Import && !self.can_hold_names() {
            return Some(Role::Other);
        }
        let (file, at) = (place.file, place.range.start);
        let targets = self.linker.path_segment_at(file, at, &self.definition.name);
        // The segments of a static import of Java are types.
        if site.kind != ReferenceKind::Import && targets.is_empty() {
            return None;
        }
        let place = place.because("import");
        Some(if targets.is_empty() {
            Role::Candidate(place)
        } else if targets.iter().all(|target| self.kin.contains(target)) {
            Role::Changed(place)
        } else {
            Role::Other
        })
    }

    /// Returns true if a place is in the statement that defines a variable.
    fn is_in_definition(&self, place: &Place) -> bool {
        let is_variable = matches!(
            self.definition.kind,
            DefinitionKind::Variable | DefinitionKind::Constant | DefinitionKind::TypeAlias
        );
        is_variable && place.file == self.of.file && self.definition.range.contains(place.range)
    }

    /// Returns the role of a string. What a mark in front of a definition reads can mean a name, and Python finds attributes
    /// by strings.
    fn string(&self, place: Place, bytes: &[u8]) -> Role {
        let (start, end) = (place.range.start as usize, place.range.end as usize);
        let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\''));
        let is_whole = is_quote(bytes.get(start.wrapping_sub(1))) && is_quote(bytes.get(end));
        if is_whole && self.language == "python" || is_path_in_mark(bytes, start..end) {
            Role::Candidate(place.because("string"))
        } else {
            Role::Mention(place.because("string"))
        }
    }

    /// Returns the role of a string that names something of its scope: in `__all__`, or in a format string.
    fn at_scope(&self, place: Place, bytes: &[u8]) -> Role {
        let is_format = bytes.get((place.range.start as usize).wrapping_sub(1)) == Some(&b'{');
        if place.kind == WordKind::String && !is_format {
            return self.string(place, bytes);
        }
        let targets = self
            .linker
            .visible_at(place.file, place.range.start, &self.definition.name);
        let is_meant = targets.iter().any(|target| self.kin.contains(target));
        let is_other = !targets.is_empty() && !is_meant;
        match place.kind {
            WordKind::Exported if is_meant => Role::Changed(place.because("export")),
            _ if is_meant => Role::Candidate(place.because("format string")),
            _ if is_other || self.is_member || place.kind == WordKind::String => Role::Other,
            _ => Role::Candidate(place.because("export")),
        }
    }
}

/// Returns true for a part of a path that is a string of an attribute, annotation or decorator: `with = "seconds::read"`.
fn is_path_in_mark(bytes: &[u8], name: Range<usize>) -> bool {
    let is_path = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.');
    let start = name.start - bytes[..name.start].iter().rev().take_while(is_path).count();
    let end = name.end + bytes[name.end..].iter().take_while(is_path).count();
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\''));
    start > 0 && is_quote(bytes.get(start - 1)) && is_quote(bytes.get(end)) && is_in_mark(&bytes[..start - 1])
}

/// Returns true if a text ends inside an attribute, annotation or decorator: `#[arg(requires = `, `@Source(`.
fn is_in_mark(before: &[u8]) -> bool {
    const MAX_MARK: usize = 2 << 10;
    let mut depth = 0usize;
    for (at, byte) in before.iter().enumerate().rev().take(MAX_MARK) {
        match byte {
            b')' | b']' => depth += 1,
            b'(' | b'[' if depth > 0 => depth -= 1,
            b'[' if before[..at].ends_with(b"#") || before[..at].ends_with(b"#!") => return true,
            b'(' => {
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
                let start = before[..at].iter().rposition(|byte| !is_name(byte));
                if start.is_some_and(|start| before[start] == b'@') {
                    return true;
                }
            }
            b';' | b'{' | b'}' if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

/// Returns true if a name is followed by another segment of a path, or by the names that are imported from it.
fn is_path_segment(after: &[u8]) -> bool {
    let n_blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = &after[n_blanks..];
    rest.starts_with(b"::") || rest.starts_with(b".") || rest.starts_with(b"import ")
}
