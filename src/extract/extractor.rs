//! Runs the stages of extraction: parsing, walking and chunking.

use std::collections::HashMap;

use tree_sitter::Parser;

use super::chunk;
use super::embedded;
use super::lang::{self, Structure};
use super::layout::Layout;
use super::lines::LineIndex;
use super::near::{Cut, Edit, FileDefinitions, Reduced};
use super::options::Options;
use super::parse::parse;
use super::rules::{Grammar, Tables};
use super::spans::clamp;
use super::types::Extraction;
use super::walk::{self, Facts, Wanted};
use crate::model::{ByteRange, Lang};

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
}

impl Extractor {
    /// Creates an extractor with these options.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            parser: Parser::new(),
            tables: HashMap::new(),
        }
    }

    /// Extracts `bytes` as text in `lang`. The result depends only on the arguments and the options.
    ///
    /// Never fails: text that cannot be parsed is split by lines. Time and memory are linear in the length of `bytes`.
    pub fn extract(&mut self, bytes: &[u8], lang: Lang) -> Extraction {
        let lines = LineIndex::new(bytes);
        let mut layout = Layout::new(lines.count());
        let structure = lang::language(lang).map_or(Structure::Lines, |language| language.structure);
        let facts = self.facts(bytes, lang, structure, &lines, &mut layout);
        let style = chunk::Style::of(structure, facts.is_some());
        let mut extraction = facts.unwrap_or_default();
        extraction.n_lines = lines.count() as u32;
        extraction.chunks = chunk::cut(bytes, &lines, &layout, &extraction, style, &self.options);
        extraction
    }

    /// Returns the definitions of `bytes`, the content of one version of a file.
    pub fn definitions(&mut self, bytes: &[u8], lang: Lang) -> FileDefinitions {
        let lines = LineIndex::new(bytes);
        let mut layout = Layout::new(lines.count());
        let found = match lang::language(lang).map_or(Structure::Lines, |language| language.structure) {
            Structure::Grammar(grammar) | Structure::Data(grammar) if grammar.embedded.is_none() => {
                let facts = self.grammar_facts(bytes, lang, grammar, &mut layout, Wanted::Definitions);
                facts.map(|facts| (facts.definitions, Some(facts.errors)))
            }
            structure => {
                let extraction = self.facts(bytes, lang, structure, &lines, &mut layout);
                extraction.map(|extraction| (extraction.definitions, None))
            }
        };
        let (definitions, errors) = found.unwrap_or_default();
        FileDefinitions {
            carried: vec![None; definitions.len()],
            definitions,
            lang,
            errors,
        }
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
        let cuts = [Cut::Runs, Cut::Definitions].into_iter();
        let found = cuts
            .filter_map(|cut| self.restored(known, old, bytes, edits, cut))
            .next();
        found.unwrap_or_else(|| self.definitions(bytes, known.lang))
    }

    fn restored(
        &mut self,
        known: &FileDefinitions,
        old: &[u8],
        bytes: &[u8],
        edits: &[Edit],
        cut: Cut,
    ) -> Option<FileDefinitions> {
        let structure = lang::language(known.lang)?.structure;
        let (Structure::Grammar(grammar) | Structure::Data(grammar)) = structure else {
            return None;
        };
        if (grammar.is_too_much)(bytes) {
            return None;
        }
        let reduced = Reduced::new(known, old, bytes, edits, cut)?;
        let mut layout = Layout::new(LineIndex::new(&reduced.text).count());
        let facts = self.grammar_facts(&reduced.text, known.lang, grammar, &mut layout, Wanted::Definitions)?;
        reduced.restore(facts.definitions, &facts.errors)
    }

    /// Returns everything except the chunks, or `None` if the text must be split by lines.
    fn facts(
        &mut self,
        bytes: &[u8],
        lang: Lang,
        structure: Structure,
        lines: &LineIndex,
        layout: &mut Layout,
    ) -> Option<Extraction> {
        match structure {
            Structure::Lines => None,
            Structure::Keys(scan) | Structure::Prose(scan) => Some(scan(bytes, layout)),
            Structure::Grammar(grammar) | Structure::Data(grammar) => {
                let mut facts = self.grammar_facts(bytes, lang, grammar, layout, Wanted::All)?;
                let parts = std::mem::take(&mut facts.embedded);
                let mut extraction = extraction(facts);
                self.add_parts(bytes, &parts, &mut extraction, lines, layout);
                Some(extraction)
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
    ) -> Option<Facts> {
        let tables = self.tables.entry(lang).or_insert_with(|| Tables::compile(grammar));
        if (grammar.is_too_much)(bytes) {
            return None;
        }
        self.parser.set_language(&tables.language).ok()?;
        let tree = parse(&mut self.parser, bytes)?;
        Some(walk::walk(&tree, bytes, tables, layout, wanted))
    }

    /// Adds the facts of embedded code in other languages. Ignores code embedded in embedded code.
    fn add_parts(
        &mut self,
        bytes: &[u8],
        parts: &[(ByteRange, &'static str)],
        extraction: &mut Extraction,
        lines: &LineIndex,
        layout: &mut Layout,
    ) {
        for &(range, name) in parts {
            let range = clamp(bytes, range);
            let language = lang::by_name(name).and_then(lang::language);
            let Some(Structure::Grammar(grammar) | Structure::Data(grammar)) = language.map(|found| found.structure)
            else {
                continue;
            };
            let Some(lang) = language.map(|found| found.lang) else {
                continue;
            };
            layout.enter(lines.line_of(range.start), embedded::DEPTH);
            if let Some(facts) = self.grammar_facts(&bytes[range.as_usize()], lang, grammar, layout, Wanted::All) {
                embedded::add(extraction, facts, range.start);
            }
        }
        if !parts.is_empty() {
            embedded::sort(extraction);
        }
    }
}

fn extraction(facts: Facts) -> Extraction {
    Extraction {
        n_parse_errors: facts.errors.len() as u32,
        definitions: facts.definitions,
        references: facts.references,
        imports: facts.imports,
        ..Extraction::default()
    }
}
