//! Resolves references by what a compiler says about the files of a view.
//!
//! The compiler names a symbol; the files of the view in which it is defined are looked up. So the facts about a file
//! hold in every tree that has the file, even if the definition has moved within another one.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::facts::{DefId, Facts};
use super::resolve::Linker;
use crate::index::lexical::LexicalError;
use crate::model::BlobId;
use crate::precise::FactsFile;
use crate::snapshot::{FileId, View};

/// Limit on the symbols of one name. A name rarely has more than two.
const MAX_SYMBOLS: usize = 16;
/// Limit on the definitions of one symbol. With more, the compiler is not asked.
const MAX_DEFINITIONS: usize = 64;

/// The facts of indexers about the files of a view.
#[derive(Debug, Default)]
pub(super) struct CompilerFacts {
    pub(super) tools: Arc<Vec<FactsFile>>,
    documents: HashMap<FileId, Vec<Document>>,
    /// For each indexer, the files that its documents are about.
    files: Vec<HashMap<u32, FileId>>,
    /// What symbols mean, by indexer and symbol.
    meanings: Mutex<HashMap<(usize, u32), Meaning>>,
}

/// What an indexer says about a file.
#[derive(Debug)]
struct Document {
    tool: usize,
    number: u32,
    names: OnceLock<Option<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    /// The start and the symbol of each reference, ascending.
    references: Vec<(u32, u32)>,
    /// The definitions of each symbol that the file defines. Empty if it is none of ours, such as a variable.
    definitions: HashMap<u32, Vec<DefId>>,
}

/// What the compiler says about a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It means these definitions.
    Definitions(Vec<DefId>),
    /// It means a variable, a parameter or a module.
    NoDefinition,
    /// It means something in a package of which no file is known.
    External,
    /// It means something that no file of the view with facts defines.
    Lost,
    /// Nothing is known.
    Unknown,
}

impl CompilerFacts {
    pub(super) fn new(view: &View, tools: Arc<Vec<FactsFile>>) -> Self {
        let mut documents: HashMap<FileId, Vec<Document>> = HashMap::new();
        let mut files = vec![HashMap::new(); tools.len()];
        if !tools.is_empty() {
            for (file, entry) in view.files() {
                let blob = BlobId(entry.entry().oid);
                for (tool, facts) in tools.iter().enumerate() {
                    let Some(number) = facts.find(blob, entry.path) else {
                        continue;
                    };
                    files[tool].insert(number, file);
                    documents.entry(file).or_default().push(Document {
                        tool,
                        number,
                        names: OnceLock::new(),
                    });
                }
            }
        }
        Self {
            tools,
            documents,
            files,
            meanings: Mutex::default(),
        }
    }

    fn of(&self, file: FileId) -> &[Document] {
        self.documents.get(&file).map_or(&[], Vec::as_slice)
    }

    /// Returns true if there are facts about a file.
    pub(super) fn has(&self, file: FileId) -> bool {
        !self.of(file).is_empty()
    }
}

impl Linker<'_> {
    /// Returns what the compiler says about the reference that starts at `at`.
    pub(super) fn meaning(&self, facts: &Facts, at: u32) -> Meaning {
        let mut meaning = Meaning::Unknown;
        for document in self.links.compiler.of(facts.file) {
            let Some(names) = self.names_in(facts.file, document) else {
                continue;
            };
            let first = names.references.partition_point(|&(start, _)| start < at);
            let here = names.references[first..].iter().take_while(|&&(start, _)| start == at);
            // A name can mean two things, such as a variable and the property with its value.
            for &(_, symbol) in here.take(MAX_SYMBOLS) {
                match (self.meaning_of(document.tool, symbol), &mut meaning) {
                    (Meaning::Definitions(more), Meaning::Definitions(all)) => all.extend(more),
                    (_, Meaning::Definitions(_)) => {}
                    (Meaning::Unknown, _) => {}
                    (Meaning::Lost, Meaning::NoDefinition | Meaning::External) => {}
                    (found, _) => meaning = found,
                }
            }
            // What one indexer has lost, another may know.
            if !matches!(meaning, Meaning::Unknown | Meaning::Lost) {
                break;
            }
        }
        if let Meaning::Definitions(all) = &mut meaning {
            all.sort_unstable();
            all.dedup();
        }
        meaning
    }

    fn meaning_of(&self, tool: usize, symbol: u32) -> Meaning {
        let known = || self.links.compiler.meanings.lock();
        if let Some(meaning) = known().get(&(tool, symbol)) {
            return meaning.clone();
        }
        let meaning = self.find_meaning(tool, symbol);
        known().insert((tool, symbol), meaning.clone());
        meaning
    }

    fn find_meaning(&self, tool: usize, symbol: u32) -> Meaning {
        let compiler = &self.links.compiler;
        let facts = &compiler.tools[tool];
        let (mut found, mut is_in_view) = (Vec::new(), false);
        for number in facts.definers(symbol) {
            let Some(&file) = compiler.files[tool].get(number) else {
                continue;
            };
            let document = compiler.of(file).iter().find(|document| document.tool == tool);
            let names = document.and_then(|document| self.names_in(file, document));
            if let Some(definitions) = names.and_then(|names| names.definitions.get(&symbol)) {
                is_in_view = true;
                found.extend_from_slice(definitions);
            }
        }
        if found.len() > MAX_DEFINITIONS {
            Meaning::Unknown
        } else if !found.is_empty() {
            Meaning::Definitions(found)
        } else if is_in_view {
            // Extraction does not know this definition, or has another name for it.
            if facts.is_type_or_callable(symbol) {
                Meaning::Unknown
            } else {
                Meaning::NoDefinition
            }
        } else if facts.is_external(symbol) {
            Meaning::External
        } else {
            Meaning::Lost
        }
    }

    fn names_in<'d>(&self, file: FileId, document: &'d Document) -> Option<&'d Names> {
        let names = document.names.get_or_init(|| {
            let facts = self.facts(file)?;
            let occurrences = match self.links.compiler.tools[document.tool].occurrences(document.number) {
                Ok(occurrences) => occurrences,
                Err(error) => {
                    self.links.report(LexicalError::File(error));
                    return None;
                }
            };
            let named = (0..facts.definitions.len() as u32).filter(|&index| facts.is_name(index));
            let by_start: HashMap<u32, u32> = named
                .map(|index| (facts.definitions[index as usize].name_range.start, index))
                .collect();
            let mut names = Names::default();
            for occurrence in occurrences {
                if occurrence.is_definition {
                    let of = by_start.get(&occurrence.start).map(|&index| facts.def(index));
                    names.definitions.entry(occurrence.symbol).or_default().extend(of);
                } else {
                    names.references.push((occurrence.start, occurrence.symbol));
                }
            }
            Some(names)
        });
        names.as_ref()
    }
}
