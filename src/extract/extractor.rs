//! Runs the stages of extraction: parsing, walking and chunking.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tree_sitter::{Parser, Tree};

use super::chunk;
use super::content::is_minified;
use super::embedded;
use super::encoding::{byte_order_mark, legible, without_second_halves};
use super::lang::{self, Structure};
use super::layout::Layout;
use super::lines::LineIndex;
use super::near::FileDefinitions;
use super::options::Options;
use super::parse::{Effort, Limit, parse};
use super::rules::{Grammar, Tables};
use super::spans::clamp;
use super::types::{Extraction, Unparsed};
use super::walk::{self, Facts, Part, Wanted};
use super::words::{self, Word};
use crate::model::{ByteRange, Lang};

/// Limit on how often a text is parsed again because of what the parser took for something else. An error can hide
/// another one.
const MAX_MISREADINGS: usize = 2;

/// Extracts `bytes` with a new [`Extractor`]. To extract many blobs, use one extractor per thread instead.
pub fn extract(bytes: &[u8], lang: Lang, options: &Options) -> Extraction {
    Extractor::new(options.clone()).extract(bytes, lang)
}

/// Extracts blobs one after another. Contains a parser and the compiled rules of the languages used so far, so use one
/// extractor per thread. A result does not depend on earlier blobs.
pub struct Extractor {
    options: Options,
    parser: Parser,
    tables: HashMap<Lang, Tables>,
    effort: Effort,
}

impl Extractor {
    /// Creates an extractor with these options.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            parser: Parser::new(),
            tables: HashMap::new(),
            effort: Effort::Full,
        }
    }

    /// Calls `extract` with a text of `n_bytes` bytes. Returns `None` if parsing it takes more work than most code does.
    pub fn with_small_effort<T>(&mut self, n_bytes: usize, extract: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.effort = Effort::small(n_bytes);
        let found = extract(self);
        let effort = std::mem::replace(&mut self.effort, Effort::Full);
        (effort != Effort::Exceeded).then_some(found)
    }

    /// Extracts `bytes` as text in `lang`. The result depends only on the arguments and the options.
    ///
    /// Text that cannot be parsed is split by lines. Time and memory are linear in the length of `bytes`, except for
    /// hostile input to the parsers, which can also crash.
    pub fn extract(&mut self, bytes: &[u8], lang: Lang) -> Extraction {
        let lines = LineIndex::new(bytes);
        let mut layout = Layout::new(lines.count());
        let found = self.facts(&Text::new(bytes, lang, &lines), &mut layout, Wanted::All);
        self.with_chunks(bytes, lang, &lines, &layout, found.map(|found| found.extraction))
    }

    /// Extracts `bytes` without parsing them.
    pub fn extract_lines(&self, bytes: &[u8], lang: Lang, reason: Unparsed) -> Extraction {
        let lines = LineIndex::new(bytes);
        let layout = Layout::new(lines.count());
        self.with_chunks(bytes, lang, &lines, &layout, Err(Some(reason)))
    }

    fn with_chunks(
        &self,
        bytes: &[u8],
        lang: Lang,
        lines: &LineIndex,
        layout: &Layout,
        found: Result<Extraction, Option<Unparsed>>,
    ) -> Extraction {
        let style = chunk::Style::of(structure(lang), found.is_ok());
        let mut extraction = found.unwrap_or_else(|unparsed| Extraction {
            unparsed,
            n_parse_errors: unparsed.is_some().into(),
            first_error_line: unparsed.is_some().into(),
            ..Extraction::default()
        });
        extraction.n_lines = lines.count() as u32;
        extraction.chunks = chunk::cut(bytes, lines, layout, &extraction, style, &self.options);
        extraction
    }

    /// Returns the definitions of `bytes`, the content of one version of a file.
    pub fn definitions(&mut self, bytes: &[u8], lang: Lang) -> FileDefinitions {
        let lines = LineIndex::new(bytes);
        let mut layout = Layout::new(lines.count());
        let found = self.facts(&Text::new(bytes, lang, &lines), &mut layout, Wanted::Definitions);
        let (definitions, errors) = found.map_or_else(
            |_| Default::default(),
            |found| (found.extraction.definitions, found.errors),
        );
        FileDefinitions::new(definitions, errors, lang)
    }

    /// Returns everything except the chunks, or the reason why a text with a grammar must be split by lines.
    fn facts(&mut self, text: &Text<'_>, layout: &mut Layout, wanted: Wanted) -> Result<Found, Option<Unparsed>> {
        match structure(text.lang) {
            Structure::Lines => Err(None),
            Structure::Keys(scan) | Structure::Prose(scan) => {
                let start = byte_order_mark(text.bytes);
                let mut extraction = scan(&text.bytes[start..], layout);
                extraction.shift(start as u32);
                Ok(Found {
                    extraction,
                    errors: None,
                })
            }
            Structure::Grammar(grammar) | Structure::Data(grammar) => {
                if is_too_much(text.bytes, text.lang) {
                    return Err(has_grammar(text.lang).then_some(Unparsed::TooMuchWork));
                }
                let facts = self.grammar_facts(text.bytes, text.lang, grammar, layout, wanted, Limit::OfFile);
                let unparsed = has_grammar(text.lang).then_some(Unparsed::TooMuchWork);
                let mut facts = facts.ok_or(unparsed)?;
                let parts = std::mem::take(&mut facts.embedded);
                let errors = parts.is_empty().then(|| facts.errors.clone());
                let mut first_error = facts.errors.iter().map(|error| error.start).min();
                let mut extraction = extraction(facts);
                if !parts.is_empty() {
                    self.add_parts(text, parts, &mut extraction, &mut first_error, layout, wanted);
                }
                let line = first_error.map(|at| text.lines.line_of(at) + 1);
                extraction.first_error_line = line.unwrap_or(0) as u32;
                Ok(Found { extraction, errors })
            }
        }
    }

    fn grammar_facts(
        &mut self,
        bytes: &[u8],
        lang: Lang,
        grammar: &'static Grammar,
        layout: &mut Layout,
        wanted: Wanted,
        limit: Limit,
    ) -> Option<Facts> {
        let tree = self.tree(bytes, lang, grammar, limit)?;
        let mut facts = walk::walk(&tree, bytes, &self.tables[&lang], layout, wanted);
        let limit = |range: &mut ByteRange| *range = clamp(bytes, *range);
        facts.references.iter_mut().for_each(|one| limit(&mut one.range));
        facts.bindings.iter_mut().for_each(|one| limit(&mut one.scope));
        for import in &mut facts.imports {
            limit(&mut import.range);
            import.scope.iter_mut().for_each(limit);
        }
        Some(facts)
    }

    /// Returns the words of code that are `name` in `bytes`. `None` if the language has no grammar or the text must be
    /// split by lines.
    pub fn words(&mut self, bytes: &[u8], lang: Lang, name: &str) -> Option<Vec<Word>> {
        let Structure::Grammar(grammar) = lang::language(lang)?.structure() else {
            return None;
        };
        if is_too_much(bytes, lang) {
            return None;
        }
        let tree = self.tree(bytes, lang, grammar, Limit::OfFile)?;
        Some(words::words(&tree, bytes, name, grammar))
    }

    fn tree(&mut self, bytes: &[u8], lang: Lang, grammar: &'static Grammar, limit: Limit) -> Option<Tree> {
        let tables = match self.tables.entry(lang) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Tables::compile(grammar, grammar.language()?)),
        };
        if (grammar.is_too_much)(bytes) {
            return None;
        }
        self.parser.set_language(&tables.language).ok()?;
        let Some(legible) = legible(bytes) else {
            return self.masked_tree(bytes, grammar, limit);
        };
        let tree = self.masked_tree(&legible, grammar, limit)?;
        if !tree.root_node().has_error() {
            return Some(tree);
        }
        let other = without_second_halves(bytes, &legible).and_then(|text| self.masked_tree(&text, grammar, limit));
        Some(match other {
            Some(other) if walk::n_errors(&other) < walk::n_errors(&tree) => other,
            _ => tree,
        })
    }

    fn masked_tree(&mut self, bytes: &[u8], grammar: &'static Grammar, limit: Limit) -> Option<Tree> {
        let mut masked = grammar.mask.and_then(|mask| mask(bytes));
        let mut tree = parse(
            &mut self.parser,
            masked.as_deref().unwrap_or(bytes),
            limit,
            &mut self.effort,
        )?;
        if limit == Limit::OfGuess && tree.root_node().has_error() {
            return None;
        }
        if let Some(mask) = grammar.mask_after_errors
            && tree.root_node().has_error()
            && let Some(text) = mask(bytes)
            && let Some(other) = parse(&mut self.parser, &text, limit, &mut self.effort)
        {
            (tree, masked) = (other, Some(text));
        }
        for _ in 0..MAX_MISREADINGS {
            let mask = grammar.mask_misread;
            let text = mask.and_then(|mask| mask(&tree, masked.as_deref().unwrap_or(bytes)));
            let Some(text) = text else { break };
            tree = parse(&mut self.parser, &text, limit, &mut self.effort).unwrap_or(tree);
            masked = Some(text);
        }
        Some(tree)
    }

    /// Adds the facts of `parts`, then of the parts inside them.
    fn add_parts(
        &mut self,
        text: &Text<'_>,
        mut parts: Vec<Part>,
        extraction: &mut Extraction,
        first_error: &mut Option<u32>,
        layout: &mut Layout,
        wanted: Wanted,
    ) {
        for _ in 0..embedded::MAX_LEVELS {
            let mut found = Vec::with_capacity(parts.len());
            for mut part in parts {
                part.range = clamp(text.bytes, part.range);
                let facts = self.part(text, &part, layout, wanted);
                found.extend(facts.map(|facts| (part, facts)));
            }
            let places: Vec<ByteRange> = found.iter().map(|(part, _)| part.range).collect();
            embedded::remove_references(extraction, &places);
            parts = Vec::new();
            for (part, facts) in found {
                let errors = facts.errors.iter().map(|error| error.start + part.range.start);
                *first_error = errors.chain(*first_error).min();
                embedded::add(extraction, &part, facts, &mut parts);
            }
        }
        embedded::sort(extraction);
    }

    /// Returns the facts of `part`. That a part is code in the language of the file is a guess.
    fn part(&mut self, text: &Text<'_>, part: &Part, layout: &mut Layout, wanted: Wanted) -> Option<Facts> {
        let language = lang::by_name(part.language).and_then(lang::language)?;
        let (Structure::Grammar(grammar) | Structure::Data(grammar)) = language.structure() else {
            return None;
        };
        let limit = if language.lang == text.lang {
            Limit::OfGuess
        } else {
            Limit::OfFile
        };
        layout.enter(text.lines.line_of(part.range.start), embedded::DEPTH);
        let bytes = &text.bytes[part.range.as_usize()];
        self.grammar_facts(bytes, language.lang, grammar, layout, wanted, limit)
    }
}

/// Returns true if text in `lang` is parsed with a grammar that is built in.
pub fn has_grammar(lang: Lang) -> bool {
    grammar(lang).is_some() && !lang::language(lang).is_some_and(lang::Language::lacks_grammar)
}

/// Returns true if a text must be split by lines without being parsed: it is minified code, or would end the process.
pub fn is_too_much(bytes: &[u8], lang: Lang) -> bool {
    matches!(structure(lang), Structure::Grammar(grammar) if is_minified(bytes) || (grammar.is_too_much)(bytes))
}

fn grammar(lang: Lang) -> Option<&'static Grammar> {
    match structure(lang) {
        Structure::Grammar(grammar) | Structure::Data(grammar) => Some(grammar),
        _ => None,
    }
}

fn structure(lang: Lang) -> Structure {
    lang::language(lang).map_or(Structure::Lines, lang::Language::structure)
}

/// The blob to extract.
struct Text<'a> {
    bytes: &'a [u8],
    lang: Lang,
    lines: &'a LineIndex,
}

impl<'a> Text<'a> {
    fn new(bytes: &'a [u8], lang: Lang, lines: &'a LineIndex) -> Self {
        Self { bytes, lang, lines }
    }
}

/// The facts of a blob without its chunks.
struct Found {
    extraction: Extraction,
    /// The ranges of syntax errors; `None` unless a single grammar parsed the whole text.
    errors: Option<Vec<ByteRange>>,
}

fn extraction(facts: Facts) -> Extraction {
    Extraction {
        n_parse_errors: facts.errors.len() as u32,
        definitions: facts.definitions,
        references: facts.references,
        bindings: facts.bindings,
        imports: facts.imports,
        ..Extraction::default()
    }
}
