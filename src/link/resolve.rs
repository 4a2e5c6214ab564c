//! Resolves a reference to the definitions that it means.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use super::aliases::is_module_name;
use super::c::Includes;
use super::compiler::{CompilerFacts, Meaning};
use super::environment::{Environment, Module};
use super::facts::{DefId, Facts, Family};
use super::globals::GlobalNames;
use super::impact::KeptImpact;
use super::members::Use;
use super::memo::{Memo, Question, deeper};
use super::outside::{Sought, StandardNames};
use super::types::{Base, Ty};
use crate::extract::{Definition, DefinitionKind, Reference, ReferenceKind, Steps, Value, byte_order_mark};
use crate::git::{BlobContent, ObjectReader};
use crate::index::lexical::{LexicalError, normal_name};
use crate::precise::FactsFile;
use crate::snapshot::{FileId, View};

/// Limit on nested questions, such as the type of the receiver of a receiver.
pub(super) const MAX_DEPTH: u8 = 60;
/// Limit on candidates for a reference that cannot be resolved, or that could mean any of several definitions.
pub const MAX_CANDIDATES: usize = 24;
/// Limit on definitions of one name among which those that are meant are sought.
pub(super) const MAX_OVERLOADS: usize = 256;
/// Limit on the definitions of one name among which candidates are sought.
pub(super) const MAX_NAMESAKES: usize = 1_000;
/// Limit on references, bindings and answers that a server keeps for a view.
const MAX_KEPT: usize = 8_000_000;
/// Limit on the size of a manifest in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// How a reference was resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// A compiler says what the name means.
    Compiler,
    /// The name is visible in its scope: in the function, the file or the package.
    Scope,
    /// The file imports the name.
    Import,
    /// The name is a member of the object or type that the code belongs to.
    Own,
    /// The name is a member of a module or of a type that is named.
    Receiver,
    /// The name is a member of a value whose type is declared or constructed.
    Type,
    /// The name is a member of the result of a call.
    Return,
    /// Only the name is equal.
    Named,
    /// The name means something outside of the repository, or nothing that is a definition.
    Outside,
    /// Nothing is known.
    Unknown,
}

impl Tier {
    /// Returns the name of the tier in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiler => "compiler",
            Self::Scope => "scope",
            Self::Import => "import",
            Self::Own => "self",
            Self::Receiver => "receiver",
            Self::Type => "type",
            Self::Return => "return",
            Self::Named => "named",
            Self::Outside => "outside",
            Self::Unknown => "unknown",
        }
    }

    /// Returns true if the targets are what the reference means, not only candidates.
    pub fn is_sure(self) -> bool {
        self < Self::Named
    }
}

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sym {
    Def(DefId),
    /// A local variable or parameter, by its file and binding.
    Local(FileId, u32),
    Module(Module),
    /// The object that a method of the type belongs to.
    This(DefId),
    /// The same object, as an instance of the type that it extends.
    Super(DefId),
    Outside,
    Unknown,
}

impl Sym {
    pub(super) fn definition(&self) -> Option<DefId> {
        match self {
            Self::Def(def) => Some(*def),
            _ => None,
        }
    }
}

/// What a name means, and how that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) syms: Vec<Sym>,
    pub(super) tier: Tier,
}

impl Found {
    pub(super) fn outside() -> Self {
        Self {
            syms: vec![Sym::Outside],
            tier: Tier::Outside,
        }
    }

    pub(super) fn unknown() -> Self {
        Self {
            syms: Vec::new(),
            tier: Tier::Unknown,
        }
    }
}

/// A reference and the definitions that it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The index of the reference in its file.
    pub reference: u32,
    /// How it was resolved.
    pub tier: Tier,
    /// The definitions; empty if they are outside of the repository or unknown.
    pub targets: Vec<DefId>,
    /// True if a compiler names a definition that no file of this revision with facts has. The link was then found
    /// without the compiler.
    pub is_lost: bool,
}

/// The definitions of a name in the languages of a family.
type Candidates = HashMap<(Family, String), Arc<[DefId]>>;
/// Those that a use of the name could mean.
type Possible = HashMap<(Family, String, Sought), Arc<[DefId]>>;

/// The definitions that a file exports, sorted, with the names under which it does.
pub(super) type Exports = Arc<[(DefId, String)]>;

/// What is known about the links of a view. Answers are added as questions need them.
#[derive(Debug)]
pub struct Links {
    pub(super) environment: Environment,
    pub(super) compiler: CompilerFacts,
    files: Vec<OnceLock<Option<Arc<Facts>>>>,
    names: RwLock<HashMap<String, Arc<[FileId]>>>,
    pub(super) memo: Memo,
    candidates: Mutex<Possible>,
    /// Two members of interfaces with a name, if there are any.
    abstracts: Mutex<Candidates>,
    pub(super) standard: StandardNames,
    pub(super) globals: GlobalNames,
    /// The types and blocks that directly extend or implement a type.
    pub(super) subtypes: Mutex<HashMap<DefId, Arc<[DefId]>>>,
    /// The files that may contain a name.
    pub(super) mentioning: Mutex<HashMap<String, Arc<BTreeSet<FileId>>>>,
    /// What the last changes reach.
    pub(super) impacts: Mutex<Vec<KeptImpact>>,
    /// What each file exports.
    pub(super) exported: Mutex<HashMap<FileId, Exports>>,
    /// The includes of C and C++.
    pub(super) includes: Includes,
    /// Number of references and bindings kept.
    pub(super) n_kept: AtomicUsize,
    errors: Mutex<Vec<LexicalError>>,
    /// True if something could not be read.
    is_broken: AtomicBool,
}

/// Resolves the references of a view.
#[derive(Clone, Copy)]
pub struct Linker<'v> {
    pub(super) view: &'v View,
    pub(super) links: &'v Links,
    interrupt: &'v AtomicBool,
    pub(super) has_candidates: bool,
}

impl Links {
    /// Reads the manifests of a view.
    pub fn new(view: &View, reader: &mut ObjectReader) -> Self {
        let read = |file: FileId| match view.read(file, reader, MAX_MANIFEST_BYTES) {
            Ok(BlobContent::Content(mut bytes)) => {
                bytes.drain(..byte_order_mark(&bytes));
                String::from_utf8(bytes).ok()
            }
            _ => None,
        };
        Self {
            environment: Environment::of(view, read),
            compiler: CompilerFacts::default(),
            files: (0..view.n_files()).map(|_| OnceLock::new()).collect(),
            names: RwLock::default(),
            memo: Memo::new(),
            candidates: Mutex::default(),
            abstracts: Mutex::default(),
            standard: StandardNames::default(),
            globals: GlobalNames::default(),
            subtypes: Mutex::default(),
            mentioning: Mutex::default(),
            impacts: Mutex::default(),
            exported: Mutex::default(),
            includes: Includes::default(),
            n_kept: AtomicUsize::new(0),
            errors: Mutex::default(),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Returns true if the links must be created again: too much is kept, or something could not be read.
    pub fn is_spent(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed) || self.n_kept.load(Ordering::Relaxed) + self.memo.len() > MAX_KEPT
    }

    /// Returns the paths of the manifests that cannot be read or parsed.
    pub fn broken_manifests(&self) -> &[String] {
        &self.environment.broken
    }

    /// Adds the facts of indexers about the files of the view. Where several indexers know a name, the first counts.
    #[must_use]
    pub fn with_facts(self, view: &View, precise: Arc<Vec<FactsFile>>) -> Self {
        Self {
            compiler: CompilerFacts::new(view, precise),
            ..self
        }
    }

    /// Returns true if the links use these facts.
    pub fn uses(&self, precise: &Arc<Vec<FactsFile>>) -> bool {
        Arc::ptr_eq(&self.compiler.tools, precise)
    }

    pub(super) fn report(&self, error: LexicalError) {
        self.is_broken.store(true, Ordering::Relaxed);
        self.errors.lock().push(error);
    }
}

impl<'v> Linker<'v> {
    /// Creates a linker for a view and its links. All further links are unknown once `interrupt` is set.
    pub fn new(view: &'v View, links: &'v Links, interrupt: &'v AtomicBool) -> Self {
        Self {
            view,
            links,
            interrupt,
            has_candidates: true,
        }
    }

    /// Returns a linker that looks for no candidates: a reference that cannot be resolved is unknown. It reads fewer
    /// files.
    pub fn without_candidates(self) -> Self {
        Self {
            has_candidates: false,
            ..self
        }
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Answers a question, from memory if possible. Answers found after an interruption are not kept.
    pub(super) fn answer(&self, question: Question, find: impl FnOnce() -> Found) -> Found {
        self.links.memo.answer(question, find, || !self.is_interrupted())
    }

    /// Resolves every reference of a file. Returns `None` if the file is not indexed.
    pub fn link_file(&self, file: FileId) -> Option<Vec<Link>> {
        let facts = self.facts(file)?;
        Some(
            (0..facts.references.len() as u32)
                .map(|index| self.link(&facts, index))
                .collect(),
        )
    }

    /// Resolves the reference at a position. Returns `None` if there is none.
    pub fn link_at(&self, file: FileId, at: u32) -> Option<Link> {
        let facts = self.facts(file)?;
        Some(self.link(&facts, facts.reference_at(at)?))
    }

    /// Returns the references of a file, to which the links of [`Self::link_file`] refer.
    pub fn references(&self, file: FileId) -> Option<Vec<Reference>> {
        Some(self.facts(file)?.references.clone())
    }

    /// Returns the definitions of a file.
    pub fn definitions(&self, file: FileId) -> Option<Vec<Definition>> {
        Some(self.facts(file)?.definitions.clone())
    }

    /// Returns a definition.
    pub fn definition(&self, of: DefId) -> Option<Definition> {
        self.facts(of.file)?.definitions.get(of.index as usize).cloned()
    }

    /// Returns an error if facts or names could not be read.
    pub fn check(&self) -> Result<(), LexicalError> {
        let mut errors = self.links.errors.lock();
        errors.pop().map_or(Ok(()), Err)
    }

    pub(super) fn facts(&self, file: FileId) -> Option<Arc<Facts>> {
        let known = self.links.files.get(file.0 as usize)?;
        known.get_or_init(|| self.read(file)).clone()
    }

    fn read(&self, file: FileId) -> Option<Arc<Facts>> {
        let entry = self.view.file(file);
        let (segment, local) = self.view.segments().of_blob(entry.blob?)?;
        let read = || {
            let extraction = segment.artifacts.extraction(local)?;
            let path = String::from_utf8_lossy(entry.path).into_owned();
            let links = segment.artifacts.links(local)?;
            Ok(Facts::new(
                file,
                path,
                self.view.lang(file),
                extraction.definitions,
                extraction.imports,
                links,
            ))
        };
        match read() {
            Ok(facts) => {
                let n_kept = facts.references.len() + facts.bindings.len();
                self.links.n_kept.fetch_add(n_kept, Ordering::Relaxed);
                Some(Arc::new(facts))
            }
            Err(error) => {
                self.links.report(LexicalError::File(error));
                None
            }
        }
    }

    /// Returns the files that define a name or one that differs in case and `_`, sorted. Reads no facts.
    pub(super) fn files_defining(&self, name: &str) -> Arc<[FileId]> {
        if let Some(known) = self.links.names.read().get(name) {
            return Arc::clone(known);
        }
        let files: Arc<[FileId]> = match self.find_defining(name) {
            Ok(files) => files.into(),
            Err(error) => {
                self.links.report(error);
                [].into()
            }
        };
        let mut names = self.links.names.write();
        names.insert(name.to_owned(), Arc::clone(&files));
        files
    }

    fn find_defining(&self, name: &str) -> Result<Vec<FileId>, LexicalError> {
        let mut files = BTreeSet::new();
        for segment in self.view.segments().iter() {
            for doc in segment.lexical.defining(&normal_name(name))? {
                let places = self.view.places(segment.base_doc + doc).iter();
                files.extend(places.map(|place| place.file));
            }
        }
        Ok(files.into_iter().collect())
    }

    /// Returns true if a file of a family defines a name.
    pub(super) fn is_defined_in(&self, family: Family, name: &str) -> bool {
        let defines = |facts: Arc<Facts>| facts.family == family && !facts.named(name).is_empty();
        let defines = |file: &FileId| self.facts(*file).is_some_and(defines);
        self.files_defining(name).iter().any(defines)
    }

    /// Returns members of interfaces and traits with a name, at most two: whether there is one besides a definition is all
    /// that is asked.
    pub(super) fn abstracts(&self, family: Family, name: &str) -> Arc<[DefId]> {
        let find = || {
            let is_abstract = |of: &DefId| {
                let around = self
                    .type_around(*of)
                    .and_then(|around| Some((self.facts(around.file)?, around)));
                let kind = around.map(|(facts, around)| facts.definitions[around.index as usize].kind);
                matches!(kind, Some(DefinitionKind::Interface | DefinitionKind::Trait))
            };
            self.named(family, name)
                .into_iter()
                .filter(is_abstract)
                .take(2)
                .collect()
        };
        remembered(&self.links.abstracts, (family, name.to_owned()), find)
    }

    /// Returns the definitions with this name in files of a family.
    pub(super) fn named(&self, family: Family, name: &str) -> Vec<DefId> {
        let mut found = Vec::new();
        for file in self.files_defining(name).iter() {
            let Some(facts) = self.facts(*file).filter(|facts| facts.family == family) else {
                continue;
            };
            let n_left = MAX_NAMESAKES + 1 - found.len();
            found.extend(facts.named(name).iter().take(n_left).map(|&index| facts.def(index)));
            if found.len() > MAX_NAMESAKES {
                break;
            }
        }
        found
    }

    pub(super) fn link(&self, facts: &Facts, index: u32) -> Link {
        let link = |tier, targets| Link {
            reference: index,
            tier,
            targets,
            is_lost: false,
        };
        let reference = &facts.references[index as usize];
        // In Java, the compiler says that the creation of an anonymous class refers to that class.
        if facts.is_scala() && facts.anonymous(reference).is_some() {
            return self.link_to_base(facts, index);
        }
        match self.meaning(facts, reference.range.start) {
            Meaning::Definitions(mut targets) => {
                targets
                    .iter_mut()
                    .for_each(|target| *target = self.written(*target, &reference.name));
                targets.dedup();
                link(Tier::Compiler, targets)
            }
            Meaning::NoDefinition => link(Tier::Outside, Vec::new()),
            Meaning::External => {
                let own = self.link_by_names(facts, index);
                // The package can be a part of the repository that was not indexed.
                let is_known = |target: &DefId| self.links.compiler.has(target.file);
                if own.tier.is_sure() && !own.targets.iter().any(is_known) {
                    own
                } else {
                    link(Tier::Outside, Vec::new())
                }
            }
            Meaning::Lost => Link {
                is_lost: true,
                ..self.link_by_names(facts, index)
            },
            Meaning::Unknown => self.link_by_names(facts, index),
        }
    }

    /// Returns the definition that a name means: the type instead of a constructor with another name.
    fn written(&self, target: DefId, name: &str) -> DefId {
        let has_other_name = |target| {
            self.definition(target)
                .is_some_and(|definition| definition.name != name)
        };
        let around = self.type_around(target);
        around
            .filter(|_| self.is_constructor(target) && has_other_name(target))
            .unwrap_or(target)
    }

    /// Resolves a reference without a compiler.
    fn link_by_names(&self, facts: &Facts, index: u32) -> Link {
        let reference = &facts.references[index as usize];
        let found = self.resolve_at(facts, index, MAX_DEPTH);
        let outside = Link {
            reference: index,
            tier: Tier::Outside,
            targets: Vec::new(),
            is_lost: false,
        };
        // The object or type that the code belongs to is no mention of the type.
        let is_own_type = reference.receiver == Value::None && matches!(reference.name.as_str(), "Self" | "cls");
        if matches!(found.syms.first(), Some(Sym::This(_))) || is_own_type && !facts.is_scala() {
            return outside;
        }
        let found = self.of_whole_module(facts, reference, found);
        let mut targets: Vec<DefId> = found.syms.iter().filter_map(Sym::definition).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.truncate(MAX_OVERLOADS);
        let mut tier = found.tier;
        if reference.kind == ReferenceKind::Call {
            targets = self.called(facts, targets, reference);
            // A function of a base type outside of the repository may be meant.
            if !targets.is_empty() && targets.iter().all(|of| self.is_misfit(facts, *of, reference)) {
                tier = tier.max(Tier::Named);
                if self.has_candidates {
                    targets.extend_from_slice(&self.candidates(facts.family, &reference.name, Sought::of(reference)));
                    targets.sort_unstable();
                    targets.dedup();
                }
            }
        }
        let are_many = targets.len() > MAX_CANDIDATES;
        if are_many || targets.len() > 1 && tier.is_sure() && self.is_overloaded(&targets) {
            tier = Tier::Named;
            targets.truncate(MAX_CANDIDATES);
        }
        if targets.is_empty() {
            if found.syms.iter().any(|sym| *sym != Sym::Unknown) {
                return outside;
            }
            if self.has_candidates {
                let found = self.candidates(facts.family, &reference.name, Sought::of(reference));
                targets = found.to_vec();
            }
            tier = if targets.is_empty() { Tier::Unknown } else { Tier::Named };
        }
        Link {
            reference: index,
            tier,
            targets,
            is_lost: false,
        }
    }

    /// Resolves a reference in the creation of an anonymous class to the base of the class.
    pub(super) fn link_to_base(&self, facts: &Facts, index: u32) -> Link {
        let base = self.resolve_base(facts, index, MAX_DEPTH);
        let targets: Vec<DefId> = base.syms.iter().filter_map(Sym::definition).collect();
        Link {
            reference: index,
            tier: match targets.is_empty() {
                false if targets.len() > 1 => Tier::Named,
                true if base.syms.contains(&Sym::Outside) => Tier::Outside,
                true => Tier::Unknown,
                false => base.tier,
            },
            targets,
            is_lost: false,
        }
    }

    /// Returns true for a function that takes other numbers of arguments than a call has, as far as they are known.
    fn is_misfit(&self, facts: &Facts, of: DefId, reference: &Reference) -> bool {
        // Values for parameters of C++ can be declared elsewhere.
        let has_arity =
            |target: Arc<Facts>| target.family != Family::C && target.definitions[of.index as usize].arity.is_some();
        self.facts(of.file).is_some_and(has_arity)
            && (!self.fits(of, Use::of(reference)) || !self.takes_types(facts, of, reference))
    }

    /// Finds what is called or extended if that is a whole module: what a file of JavaScript has as `module.exports`.
    fn of_whole_module(&self, facts: &Facts, reference: &Reference, found: Found) -> Found {
        let is_used = matches!(
            reference.kind,
            ReferenceKind::Call | ReferenceKind::Inherit | ReferenceKind::Type
        );
        match found.syms.as_slice() {
            [Sym::Module(module)] if is_used && facts.family == Family::JavaScript => Found {
                syms: self.look_up(module, "default", MAX_DEPTH),
                ..found
            },
            [Sym::Module(Module::File(file))] if is_used && facts.family == Family::Lua => Found {
                syms: self.returned_by(*file, MAX_DEPTH),
                ..found
            },
            _ => found,
        }
    }

    /// Returns the definitions of a name that a use of it could mean.
    pub(super) fn candidates(&self, family: Family, name: &str, sought: Sought) -> Arc<[DefId]> {
        let find = || {
            let named = self.named(family, name).into_iter().take(MAX_NAMESAKES);
            let possible = named.filter(|of| self.can_be(*of, sought));
            possible.take(MAX_CANDIDATES).collect()
        };
        remembered(&self.links.candidates, (family, name.to_owned(), sought), find)
    }

    /// Finds what a reference means.
    pub(super) fn resolve_at(&self, facts: &Facts, index: u32, depth: u8) -> Found {
        let Some(depth) = deeper(depth).filter(|_| !self.is_interrupted()) else {
            return Found::unknown();
        };
        // The receivers of a long chain of calls are resolved one after the other, not one inside the other.
        let mut chain = vec![index];
        while let Some(&last) = chain.last()
            && let Value::Of { at, .. } = facts.references[last as usize].receiver
            && let Some(next) = facts.reference_at(at)
            && next < last
            && !self.links.memo.has(&Question::Reference(facts.file, next))
        {
            chain.push(next);
        }
        let mut found = Found::unknown();
        for index in chain.into_iter().rev() {
            let question = Question::Reference(facts.file, index);
            found = self.answer(question, || {
                let mut found = self.resolve(facts, index, depth);
                let reference = &facts.references[index as usize];
                if found.syms.len() > 1 && facts.is_path_segment(reference) {
                    self.keep_holders(&mut found);
                }
                if found.syms.len() > 1 && facts.family == Family::Java && !facts.is_kotlin() {
                    self.keep_nearest(facts, &mut found);
                }
                let is_of_value = matches!(
                    reference.kind,
                    ReferenceKind::Call | ReferenceKind::Value | ReferenceKind::Name
                );
                if facts.is_kotlin() && is_of_value && reference.receiver == Value::None {
                    return self.with_receiver(facts, reference, found);
                }
                if facts.is_scala() {
                    self.without_companion(reference, found, depth)
                } else {
                    found
                }
            });
        }
        found
    }

    fn resolve(&self, facts: &Facts, index: u32, depth: u8) -> Found {
        let reference = &facts.references[index as usize];
        if reference.kind == ReferenceKind::Import {
            return self.import(facts, reference, depth);
        }
        match facts.anonymous(reference) {
            Some(of) => Found {
                syms: vec![Sym::Def(facts.def(of))],
                tier: Tier::Scope,
            },
            None => self.named_by(facts, reference, depth),
        }
    }

    /// Finds what a reference names: for the creation of an anonymous class, its base.
    pub(super) fn named_by(&self, facts: &Facts, reference: &Reference, depth: u8) -> Found {
        match reference.receiver {
            Value::None if reference.kind == ReferenceKind::Member => Found::unknown(),
            Value::None => self.bare(facts, reference, depth),
            _ if facts.is_path_of_php(reference) => self.name_in_php(facts, reference),
            Value::Literal(_) => self.member_outside(facts, reference),
            Value::Of { .. } if facts.has_aliases() && is_module_name(&reference.name) => {
                self.module_with_aliases(facts, reference, depth)
            }
            Value::Other => Found::unknown(),
            _ if facts.family == Family::Lua
                && let Some(found) = self.member_in_lua(facts, reference, depth) =>
            {
                found
            }
            Value::Of { at, steps } => match (self.value(facts, at, steps, depth), &reference.qualifier) {
                (Some(of), _) => self.member(facts, &of, reference, depth),
                (None, _) if let Some(found) = self.global_by_path(facts, reference, depth) => found,
                (None, Some(namespace)) if facts.family == Family::C && !self.is_local(facts, at, depth) => {
                    self.in_namespace(facts, namespace, reference)
                }
                (None, _) => Found::unknown(),
            },
        }
    }

    /// Returns true if the reference at a byte means a local variable.
    fn is_local(&self, facts: &Facts, at: u32, depth: u8) -> bool {
        let syms = facts
            .reference_at(at)
            .map(|index| self.resolve_at(facts, index, depth).syms);
        syms.is_some_and(|syms| matches!(syms.first(), Some(Sym::Local(..))))
    }

    /// Finds what a name in an import means. The segments of the module's path mean no definition.
    fn import(&self, facts: &Facts, reference: &Reference, depth: u8) -> Found {
        let at = reference.range.start;
        let mut named = facts.called_around(&reference.name, at);
        named.dedup_by(|one, other| {
            one.0.range == other.0.range && one.0.module == other.0.module && one.1.name == other.1.name
        });
        // A statement of Rust can import one name from several modules.
        if let (2.., Some(outer)) = (named.len(), &reference.qualifier) {
            named.retain(|(import, _)| import.module.rsplit("::").next() == Some(outer));
        }
        let mut found = named
            .into_iter()
            .map(|(import, named)| self.taken(facts, &import.module, &named.name, at, depth));
        match (found.next(), found.next()) {
            (Some(syms), None) => Found {
                syms,
                tier: Tier::Import,
            },
            (Some(_), Some(_)) => Found::unknown(),
            (None, _) => self.exported_here(facts, reference, depth),
        }
    }

    /// Finds what a name in `export { name }` means.
    fn exported_here(&self, facts: &Facts, reference: &Reference, depth: u8) -> Found {
        if facts.is_export(reference.range.start) {
            self.bare(facts, reference, depth)
        } else {
            Found::outside()
        }
    }

    /// Finds a member of a value.
    fn member(&self, facts: &Facts, of: &Ty, reference: &Reference, depth: u8) -> Found {
        let name = &reference.name;
        match &of.base {
            Base::Module(module) if name == "super" => match self.outer_module(module) {
                Some(outer) => Found {
                    syms: vec![Sym::Module(outer)],
                    tier: Tier::Receiver,
                },
                None => Found::unknown(),
            },
            Base::Module(module) => match self.look_up(module, name, depth) {
                found if found.is_empty() && facts.family == Family::Dart => {
                    let found = self.member_of_prefix(facts, reference, depth);
                    found.unwrap_or_else(Found::unknown)
                }
                found if found.is_empty() => Found::unknown(),
                syms => Found {
                    syms,
                    tier: Tier::Receiver,
                },
            },
            Base::Instance(def)
                if facts.family == Family::Java
                    && let Some(found) = self.extension(facts, *def, reference, depth) =>
            {
                found
            }
            Base::Class(def) | Base::Instance(def) if facts.family == Family::Lua => {
                let syms = self.member_of_table(*def, reference, depth);
                Found { syms, tier: of.tier }
            }
            Base::Class(def) if facts.has_aliases() => {
                let syms = self.function_of(*def, reference, depth);
                syms.map_or_else(Found::unknown, |syms| Found { syms, tier: of.tier })
            }
            Base::Class(def) | Base::Instance(def) => {
                let members = self.members_for(*def, name, Use::of(reference), depth);
                let mut syms: Vec<Sym> = members.into_iter().map(Sym::Def).collect();
                if syms.is_empty() {
                    syms.extend(self.assigned_field(*def, name, depth));
                }
                Found { syms, tier: of.tier }
            }
            Base::Function(def) => match self.result(*def, None, depth) {
                Some(result) => self.member(facts, &result, reference, deeper(depth).unwrap_or(0)),
                None => Found::unknown(),
            },
            Base::Outer(_) => match self.content(of, depth) {
                Some(inner) if of.is_transparent() => self.member(facts, &inner, reference, depth),
                _ if of.is_undetermined(facts) => Found::unknown(),
                _ => self.member_outside(facts, reference),
            },
            Base::Outside => self.member_outside(facts, reference),
        }
    }

    /// Returns the type of a value.
    pub(super) fn value(&self, facts: &Facts, at: u32, steps: Steps, depth: u8) -> Option<Ty> {
        let depth = deeper(depth)?;
        let index = facts.reference_at(at)?;
        self.value_of(facts, index, steps, depth)
    }
}

/// Returns what is known of a key, or finds it.
pub(super) fn remembered<K: Eq + Hash, T>(
    known: &Mutex<HashMap<K, Arc<[T]>>>,
    key: K,
    find: impl FnOnce() -> Arc<[T]>,
) -> Arc<[T]> {
    let lock = || known.lock();
    let found = lock().get(&key).cloned();
    found.unwrap_or_else(|| {
        let found = find();
        lock().insert(key, Arc::clone(&found));
        found
    })
}
