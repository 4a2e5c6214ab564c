//! Counts what was found and what was left out.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;

use super::Lookup;
use super::unreferenced::mark_in;
use crate::artifact::SkipReason;
use crate::extract::{self, DefinitionKind, Language, Profile};
use crate::link::{DefId, Linker, Mentions, Site};
use crate::model::ByteRange;
use crate::model::count::count;
use crate::ops::doubts::with_errors;
use crate::ops::question::Question;
use crate::query::{Source, Sources};
use crate::session::Result;
use crate::snapshot::{FileId, View};

/// Maximum number of files in which a symbol is sought.
const MAX_SYMBOL_FILES: usize = 300;

/// The totals of an answer, before any limit.
#[derive(Debug, Default, Serialize)]
pub(super) struct Account {
    /// Number of results without candidates.
    pub(super) total: usize,
    /// Number of files with results.
    pub(super) files: usize,
    /// Number of results by how they were resolved.
    pub(super) tiers: BTreeMap<&'static str, usize>,
    /// Number of results that a compiler knows, but whose definition this revision has in no file with its facts.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) without_compiler: usize,
    /// Number of references that could mean the target.
    pub(super) candidates: usize,
    /// Number of references to the target that are not of the requested kind.
    pub(super) other_references: usize,
    /// Number of references that could mean the target and are not of the requested kind, such as imports.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) other_candidates: usize,
    /// Number of references to members that the target overrides, if none means the target alone.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) of_overridden: usize,
    /// Number of them that are no imports, after which what they name can be called.
    #[serde(skip)]
    pub(super) as_values: usize,
    /// True if there are no results, but the target may run without being named.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) may_run_unseen: bool,
    /// Number of mentions of the name that mean something else in the repository.
    pub(super) elsewhere: usize,
    /// Number of references that mean something outside of the repository.
    pub(super) outside: usize,
    /// Number of references of which nothing is known.
    pub(super) unknown: usize,
    /// Number of mentions of the name in comments, strings and files that are not parsed.
    pub(super) in_text: usize,
    /// Number of mentions of the name in code and data that are neither references nor comments: in strings and macros, and
    /// where the grammar fails; with the number of files with syntax errors. Counted if there are no results.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) unread: usize,
    /// Number of files searched, which contain the name.
    pub(super) searched_files: usize,
    /// Number of files that may contain the name and are excluded by path, language or tests.
    pub(super) excluded_files: usize,
    /// Number of text files that are not indexed, by reason.
    pub(super) not_indexed: BTreeMap<String, u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Account {
    pub(super) fn new(view: &View) -> Self {
        let is_text = |reason: &SkipReason| {
            !matches!(
                reason,
                SkipReason::Binary | SkipReason::Symlink | SkipReason::Submodule | SkipReason::LockFile
            )
        };
        let skipped = view.coverage().skipped.iter().filter(|(reason, _)| is_text(reason));
        Self {
            not_indexed: skipped.map(|(reason, n)| (reason.to_string(), *n)).collect(),
            ..Self::default()
        }
    }

    /// Adds a result to the totals.
    pub(super) fn add(&mut self, site: &Site, files: &mut BTreeSet<FileId>) {
        self.without_compiler += usize::from(site.is_lost);
        if !site.tier.is_sure() {
            self.candidates += 1;
            return;
        }
        self.total += 1;
        *self.tiers.entry(site.tier.name()).or_default() += 1;
        files.insert(site.file);
        self.files = files.len();
    }

    /// Adds what is known about the mentions that are no results.
    pub(super) fn add_others(&mut self, mentions: &Mentions) {
        self.elsewhere += mentions.n_elsewhere;
        self.outside += mentions.n_outside;
        self.unknown += mentions.unknown.len();
        self.searched_files += mentions.files.len();
        self.excluded_files += mentions.n_left_out;
    }

    /// Returns the number of references that could be results, or could lead to some.
    pub(super) fn n_possible(&self) -> usize {
        self.candidates + self.other_candidates + self.as_values + self.of_overridden + self.unknown + self.unread
    }

    /// Returns true if there are no certain results, but there could be some.
    pub(super) fn is_uncertain(&self) -> bool {
        self.total == 0 && (self.n_possible() > 0 || self.may_run_unseen)
    }

    /// Describes the totals in one line. `noun` names a result.
    pub(super) fn to_text(&self, noun: &str, how_to_list: &str) -> String {
        let looked_at = match noun {
            "callee" => format!("{} in it", count(self.candidates + self.outside + self.unknown, "call")),
            _ => format!("{} with the name searched", count(self.searched_files, "file")),
        };
        let mut parts = vec![match self.total {
            0 if self.n_possible() == 0 && self.may_run_unseen => {
                format!("no {noun} names it, but it may run without; {looked_at}")
            }
            0 if self.is_uncertain() => format!("no certain {noun}s; {} possible; {looked_at}", self.n_possible()),
            0 => format!("no {noun}; {looked_at}"),
            total => {
                let tiers: Vec<String> = self.tiers.iter().map(|(tier, n)| format!("{tier} {n}")).collect();
                format!(
                    "{} in {} ({})",
                    count(total, noun),
                    count(self.files, "file"),
                    tiers.join(", ")
                )
            }
        }];
        let mut add = |n: usize, text: &dyn Fn(usize) -> String| {
            if n > 0 {
                parts.push(text(n));
            }
        };
        add(self.candidates, &|n| format!("{}{how_to_list}", count(n, "candidate")));
        add(self.without_compiler, &|n| {
            format!("{n} resolved without the compiler, because the file of the definition has changed")
        });
        add(self.other_references, &|n| count(n, "other reference"));
        add(self.other_candidates, &|n| count(n, "possible other reference"));
        add(self.of_overridden, &|n| format!("{n} of what it overrides"));
        add(self.elsewhere, &|n| {
            format!("{} of something else", count(n, "mention"))
        });
        add(self.outside, &|n| format!("{n} outside"));
        add(self.unknown, &|n| format!("{n} unresolved"));
        add(self.unread, &|n| {
            format!("{} in strings, macros or unreadable code", count(n, "mention"))
        });
        add(self.in_text, &|n| format!("{} in text", count(n, "mention")));
        add(self.excluded_files, &|n| format!("{} excluded", count(n, "file")));
        let reasons: Vec<String> = self
            .not_indexed
            .iter()
            .map(|(reason, n)| format!("{reason} {n}"))
            .collect();
        add(self.not_indexed.values().sum::<u32>() as usize, &|n| {
            format!("{} not indexed ({})", count(n, "file"), reasons.join(", "))
        });
        parts.join(" · ")
    }
}

impl Lookup<'_> {
    pub(super) fn how_to_list_candidates(&self) -> &'static str {
        match (self.request.candidates, self.ask.common.characters) {
            (true, _) => "",
            (false, None) => " (--candidates)",
            (false, Some(_)) => " (candidates=true)",
        }
    }

    /// Counts the mentions of a definition's name in files whose code is not read.
    pub(super) fn in_hidden_code(&self, of: DefId) -> Result<usize> {
        in_hidden_code(self.question, self.linker, of)
    }

    /// Counts the mentions of a definition's name that may be uses of it although they are no references.
    pub(super) fn unread(&self, of: DefId) -> Result<usize> {
        unread(self.question, self.linker, of)
    }

    /// Counts the mentions of a definition's name that are not code.
    pub(super) fn in_text(&self, of: DefId, files: &[FileId]) -> Result<usize> {
        let Some(definition) = self.linker.definition(of) else {
            return Ok(0);
        };
        let sources = self.question.sources();
        let counts = files
            .par_iter()
            .map(|&file| in_text(&sources, self.linker, file, &definition.name));
        Ok(counts.collect::<Result<Vec<_>>>()?.into_iter().sum())
    }
}

/// Counts the mentions of a definition's name in files whose code is not read.
pub(super) fn in_hidden_code(question: &Question<'_>, linker: &Linker<'_>, of: DefId) -> Result<usize> {
    let Some(definition) = linker.definition(of) else {
        return Ok(0);
    };
    let (view, sources) = (question.view(), question.sources());
    let is_hidden = |file: &FileId| linker.may_hide_uses(*file, of.file) && question.filter.passes(view, *file);
    let files = linker.files_with(&definition.name)?.into_iter().filter(is_hidden);
    files
        .map(|file| in_text(&sources, linker, file, &definition.name))
        .sum()
}

/// Counts the mentions of a definition's name that may be uses of it although they are no references: in strings, macros
/// and data, and files of code with syntax errors. Comments, prose and code that is not read at all do not count, files without a known language do.
fn unread(question: &Question<'_>, linker: &Linker<'_>, of: DefId) -> Result<usize> {
    let Some(definition) = linker.definition(of) else {
        return Ok(0);
    };
    let (view, sources) = (question.view(), question.sources());
    let is_meant = |file: &FileId| {
        let is_prose = extract::language(view.lang(*file)).is_some_and(Language::is_prose);
        !is_prose && !linker.may_hide_uses(*file, of.file) && question.filter.passes(view, *file)
    };
    let mut files: Vec<FileId> = linker.files_with(&definition.name)?.into_iter().collect();
    let errors = with_errors(question, linker, &definition.name)?.len();
    // Of so many files, one may have a use.
    if files.len() > MAX_SYMBOL_FILES {
        return Ok(errors.max(1));
    }
    files.retain(is_meant);
    let counts = files.par_iter().map(|&file| {
        sources.go_on()?;
        let Source::Bytes(bytes) = sources.reader().read(file)? else {
            return Ok(0);
        };
        let mentions = mentions_in(&bytes, linker, file, &definition.name);
        if mentions.is_empty() {
            return Ok(0);
        }
        let profile = extract::profile(view.lang(file));
        let definitions = linker.definitions(file).unwrap_or_default();
        let mut docs: Vec<ByteRange> = definitions.iter().filter_map(|one| one.doc).collect();
        docs.sort_unstable_by_key(|doc| doc.end);
        let is_doc = |at: usize| {
            let next = docs.partition_point(|doc| doc.end as usize <= at);
            docs.get(next).is_some_and(|doc| doc.start as usize <= at)
        };
        let is_read = |at: usize| is_doc(at) || is_comment(&bytes, at, profile);
        Ok(mentions.into_iter().filter(|at| !is_read(*at)).count())
    });
    Ok(errors + counts.collect::<Result<Vec<usize>>>()?.into_iter().sum::<usize>())
}

/// Returns true if a position is certainly in a comment: one that begins its line, or that begins behind a space with no
/// quotation mark before it.
fn is_comment(bytes: &[u8], at: usize, profile: &Profile) -> bool {
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
    let line = bytes[start..at].trim_ascii_start();
    let block = profile.block_comment.map(|(open, _)| open);
    let mut marks = profile.line_comments.iter().copied().chain(block);
    let is_mark = |text: &[u8], mark: &str| {
        let is_other = mark == "#" && (text.starts_with(b"#[") || text.starts_with(b"#{"));
        text.starts_with(mark.as_bytes()) && !is_other
    };
    let is_behind = |mark: &str| {
        let places = memchr::memmem::find_iter(line, mark);
        let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
        let is_start = |at: &usize| {
            let before = &line[..*at];
            before.ends_with(b" ") && is_mark(&line[*at..], mark) && !before.iter().any(is_quote)
        };
        places.into_iter().any(|at| is_start(&at))
    };
    let is_closed = || block == Some("/*") && memchr::memmem::find(line, b"*/").is_some();
    let is_inside = block == Some("/*") && (line.starts_with(b"* ") || line == b"*");
    !is_closed() && (is_inside || marks.any(|mark| is_mark(line, mark) || is_behind(mark)))
}

/// Counts the mentions of a name in a file that are not code.
pub(super) fn in_text(sources: &Sources<'_>, linker: &Linker<'_>, file: FileId, name: &str) -> Result<usize> {
    let Source::Bytes(bytes) = sources.reader().read(file)? else {
        return Ok(0);
    };
    Ok(mentions_in(&bytes, linker, file, name).len())
}

/// Returns the positions of a name in a file that are neither definitions nor references.
fn mentions_in(bytes: &[u8], linker: &Linker<'_>, file: FileId, name: &str) -> Vec<usize> {
    let known = linker.positions(file, name);
    let is_part =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte > 127);
    let is_mention = |at: &usize| {
        !is_part(at.checked_sub(1).and_then(|before| bytes.get(before)))
            && !is_part(bytes.get(at + name.len()))
            && !known.contains(&(*at as u32))
    };
    memchr::memmem::find_iter(bytes, name).filter(is_mention).collect()
}

/// Functions that languages run by their name, besides those in their profiles.
const RUN_BY_NAME: &[&str] = &[
    "main",
    "init",
    "TestMain",
    "deinit",
    "finalize",
    "equals",
    "hashCode",
    "toString",
    "compareTo",
    "clone",
    "toJSON",
    "valueOf",
];

/// Returns true if a function or member may run without a call that names it: the language, a test runner or a framework runs
/// it by its name, it is a member of a value that others see, or it runs through another definition.
pub(super) fn may_run_unseen(view: &View, linker: &Linker<'_>, of: DefId) -> bool {
    let Some(definition) = linker.definition(of) else {
        return false;
    };
    let name = definition.name.as_str();
    let profile = extract::profile(view.lang(of.file));
    let is_magic = name.starts_with("__") && (name.ends_with("__") || profile.has_dollar);
    // An assignment of Ruby calls `name=`.
    let is_setter = name.ends_with('=');
    let is_operator = is_setter || !name.contains(|letter: char| letter.is_alphanumeric() || letter == '_');
    let outer = definition
        .container
        .and_then(|index| linker.definition(DefId { file: of.file, index }));
    // A method of a value, or one that is assigned to a member: `value.name = () => …`.
    let is_method_of_value =
        definition.kind == DefinitionKind::Method && outer.is_none_or(|outer| !outer.kind.is_type());
    let is_in_value = (is_method_of_value || definition.qualifier.is_some()) && is_script(view, of.file);
    is_magic
        || is_operator
        || RUN_BY_NAME.contains(&name)
        || profile.runs(name)
        || definition.kind == DefinitionKind::Constructor
        || is_in_value
        || linker.may_run_through_another(of)
}

/// Returns true if the text of a definition suggests that it runs without a call that names it: a decorator, annotation or
/// attribute may register it, it overrides a member, or a behaviour or protocol asks for it.
pub(super) fn may_be_registered(question: &Question<'_>, linker: &Linker<'_>, of: DefId) -> Result<bool> {
    let sources = question.sources();
    let (Some(definition), Source::Bytes(bytes)) = (linker.definition(of), sources.reader().read(of.file)?) else {
        return Ok(false);
    };
    let text = |start: u32, end: u32| {
        let text = bytes.get(start as usize..end as usize).unwrap_or_default();
        String::from_utf8_lossy(text)
    };
    let (start, signature) = (definition.range.start, definition.signature);
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let whole = text(start, signature.end);
    let overrides = || whole.split(|letter| !is_word(letter)).any(|word| word == "override");
    if mark_in(&text(start, signature.start)).is_some() || overrides() {
        return Ok(true);
    }
    if extract::language(question.view().lang(of.file)).is_none_or(|language| language.name != "elixir") {
        return Ok(false);
    }
    let before = text(0, start);
    let line = before
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    let outer = definition
        .container
        .and_then(|index| linker.definition(DefId { index, ..of }));
    Ok(line.trim_start().starts_with("@impl")
        || whole.trim_start().starts_with("@callback")
        || outer.is_some_and(|outer| outer.kind == DefinitionKind::Impl))
}

/// Returns true for JavaScript and TypeScript.
fn is_script(view: &View, file: FileId) -> bool {
    let name = extract::language(view.lang(file)).map_or("", |language| language.name);
    matches!(name, "javascript" | "typescript" | "tsx")
}
