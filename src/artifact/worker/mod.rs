//! Extracts blobs in other processes, so that a parser that crashes, hangs or is taken over by a file harms only these.
//! Small, ordinary texts are extracted in this process (`ordinary`), with the same result.
//!
//! A worker is this program with the argument [`WORKER`]. It has no environment variables, cannot open files and,
//! unless it runs as root, cannot start processes (`serve`). A text for which it ends is cut by lines (`process`).
//! So is one for which no worker can be started: `verify --deep --repair` replaces such a record.
//!
//! Extracting all texts in workers takes 3 % (flask) to 5 % (rust-analyzer) more CPU time of an index, but 13 ms more of
//! each small update and each answer with edited files.

mod message;
mod ordinary;
mod process;
mod serve;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;

use self::message::{Answer, Question, Wanted};
use self::ordinary::is_ordinary;
use self::process::Workers;
use super::check::{are_inside, check, is_inside};
use super::codec::{decode_core, decode_references};
use crate::extract::{
    self, Edit, Extraction, FileDefinitions, Options, Unparsed, Word, WordKind, has_grammar, is_too_much,
};
use crate::model::{ByteRange, Lang};

use self::serve::STACK_BYTES;
pub use serve::serve_extractor;

/// The argument with which this program is a worker.
pub const WORKER: &str = "worker";

static WORKERS: OnceLock<Workers> = OnceLock::new();

/// Makes all extractors of this process use workers. `program` is the path of this program. Without this call, as in
/// tests, blobs are extracted in this process.
pub fn use_workers(program: PathBuf) {
    WORKERS.get_or_init(|| Workers::new(program));
}

/// Returns true while this process waits for a worker. If the process ends then, the worker ends too.
pub fn waits_for_worker() -> bool {
    WORKERS.get().is_some_and(Workers::are_busy)
}

/// Extracts `bytes` with a new [`Extractor`].
pub fn extract(bytes: &[u8], lang: Lang, options: &Options) -> Extraction {
    Extractor::new(options.clone()).extract(bytes, lang)
}

/// Extracts blobs one after another, in this process or a worker. Use one extractor per thread. A result does not depend
/// on earlier blobs.
pub struct Extractor {
    options: Options,
    here: extract::Extractor,
}

impl Extractor {
    /// Creates an extractor with these options.
    pub fn new(options: Options) -> Self {
        Self {
            here: extract::Extractor::new(options.clone()),
            options,
        }
    }

    /// Extracts `bytes` as text in `lang`. Never fails: text that cannot be parsed is split by lines.
    pub fn extract(&mut self, bytes: &[u8], lang: Lang) -> Extraction {
        let workers = match self.try_here(bytes, lang, |here| here.extract(bytes, lang)) {
            Ok(found) => return found,
            Err(workers) => workers,
        };
        let question = Question::new(lang, Wanted::all(&self.options));
        let asked = workers.ask(&question, bytes, |answer, body| {
            let Answer::All { n_core_bytes } = answer else {
                return None;
            };
            let (core, links) = body.split_at_checked(n_core_bytes as usize)?;
            let mut extraction = decode_core(core).ok()?;
            (extraction.references, extraction.bindings) = decode_references(links).ok()?;
            // A name that is not UTF-8 is longer than its range.
            let limit = |end: &mut u32| *end = (*end).min(bytes.len() as u32);
            extraction
                .references
                .iter_mut()
                .for_each(|one| limit(&mut one.range.end));
            check(bytes, &extraction).is_ok().then_some(extraction)
        });
        asked.unwrap_or_else(|reason| self.here.extract_lines(bytes, lang, reason))
    }

    /// Returns the definitions of `bytes`, the content of one version of a file.
    pub fn definitions(&mut self, bytes: &[u8], lang: Lang) -> FileDefinitions {
        let workers = match self.try_here(bytes, lang, |here| here.definitions(bytes, lang)) {
            Ok(found) => return found,
            Err(workers) => workers,
        };
        let asked = workers.ask(&Question::new(lang, Wanted::Definitions), bytes, |answer, body| {
            let Answer::Definitions { errors } = answer else {
                return None;
            };
            let definitions = decode_core(body).ok()?.definitions;
            let errors = errors.map(|errors| {
                errors
                    .into_iter()
                    .map(|(start, end)| ByteRange { start, end })
                    .collect()
            });
            let is_valid = |errors: &Vec<ByteRange>| errors.iter().all(|error| is_inside(bytes.len(), *error));
            let is_valid = are_inside(bytes.len(), &definitions) && errors.as_ref().is_none_or(is_valid);
            is_valid.then(|| FileDefinitions::new(definitions, errors, lang))
        });
        let found = match asked {
            // Without definitions, the history would record that this version removed all of them.
            Err(Unparsed::NoProcess) => with_deep_stack(|| self.here.definitions(bytes, lang)),
            found => found.ok(),
        };
        found.unwrap_or_else(|| FileDefinitions::new(Vec::new(), None, lang))
    }

    /// Like [`Self::definitions`], but parses less by reusing the definitions of another version. `known` has the
    /// definitions of that version, `old` is its content, and `edits` are its differences from `bytes`. Uses the
    /// language of `known`.
    pub fn definitions_near(
        &mut self,
        known: &FileDefinitions,
        old: &[u8],
        bytes: &[u8],
        edits: &[Edit],
    ) -> FileDefinitions {
        extract::definitions_near(known, old, bytes, edits, |text| self.definitions(text, known.lang))
    }

    /// Returns the words of code that are `name` in `bytes`. `None` if the language has no grammar or the text must be
    /// split by lines.
    pub fn words(&mut self, bytes: &[u8], lang: Lang, name: &str) -> Option<Vec<Word>> {
        let workers = match self.try_here(bytes, lang, |here| here.words(bytes, lang, name)) {
            Ok(found) => return found,
            Err(workers) => workers,
        };
        let word = |(start, end, kind): (u32, u32, u8)| {
            let range = ByteRange { start, end };
            let kind = WordKind::from_number(kind)?;
            is_inside(bytes.len(), range).then_some(Word { range, kind })
        };
        let question = Question::new(lang, Wanted::Words(name.to_owned()));
        let asked = workers.ask(&question, bytes, |answer, _| match answer {
            Answer::Words(None) => Some(None),
            Answer::Words(Some(words)) => Some(Some(words.into_iter().map(word).collect::<Option<_>>()?)),
            _ => None,
        });
        asked.ok().flatten()
    }

    /// Extracts a text in this process, unless that is left to the workers.
    fn try_here<T>(
        &mut self,
        text: &[u8],
        lang: Lang,
        extract: impl FnOnce(&mut extract::Extractor) -> T,
    ) -> Result<T, &'static Workers> {
        let is_parsed = has_grammar(lang) && !is_too_much(text, lang);
        let Some(workers) = WORKERS.get().filter(|_| is_parsed) else {
            return Ok(extract(&mut self.here));
        };
        if !is_ordinary(text) {
            return Err(workers);
        }
        self.here.with_small_effort(text.len(), extract).ok_or(workers)
    }
}

/// Returns the result of `parse`, which has as much stack as in a worker. `None` if there can be no such thread.
fn with_deep_stack<T: Send>(parse: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, parse).ok()?.join().ok()
    })
}
