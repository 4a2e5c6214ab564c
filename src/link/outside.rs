//! Decides what is outside of the repository: only what is proven to be.
//!
//! Proofs are: the name or module belongs to the language and its standard library; no file of the repository defines
//! the name; a manifest declares the package; or the form of the import leads out of the repository. Everything else is
//! unknown, and has candidates.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::facts::{DefId, Facts, Family};
use super::resolve::{Found, Linker, Sym, Tier};
use crate::extract::{DefinitionKind, Extensions, Globals, Reference, ReferenceKind, Value, languages, profile};
use crate::model::Lang;

/// The names of the standard library of each language.
#[derive(Debug, Default)]
pub(super) struct StandardNames(OnceLock<HashMap<Lang, [HashSet<&'static str>; 3]>>);

impl StandardNames {
    /// Returns the names of a language, or its macros or modules.
    fn of(&self, lang: Lang, at: usize) -> Option<&HashSet<&'static str>> {
        let words = |text: &'static str| text.split_whitespace().collect();
        let read = || {
            let named = languages().map(|language| {
                let standard = &language.profile.standard;
                let sets = [standard.names, standard.macros, standard.modules].map(words);
                (language.lang, sets)
            });
            named.collect()
        };
        Some(&self.0.get_or_init(read).get(&lang)?[at])
    }

    fn has_name(&self, lang: Lang, name: &str) -> bool {
        self.of(lang, 0).is_some_and(|names| names.contains(name))
    }

    fn has_macro(&self, lang: Lang, name: &str) -> bool {
        self.of(lang, 1).is_some_and(|names| names.contains(name))
    }

    /// Returns true if a module begins with a segment of the standard library.
    pub(super) fn has_module(&self, lang: Lang, module: &str) -> bool {
        let first = module.split(['.', ':', '/', '\\']).next().unwrap_or_default();
        self.of(lang, 2).is_some_and(|modules| modules.contains(first))
    }
}

/// The use of a name for which candidates are sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sought {
    /// The name of a type.
    Type,
    /// Without a receiver.
    Plain,
    /// A member of a value.
    Member,
    /// A member of a value that is outside of the repository.
    Extension,
}

impl Sought {
    pub(super) fn of(reference: &Reference) -> Self {
        match reference.kind {
            _ if reference.receiver != Value::None => Self::Member,
            ReferenceKind::Member => Self::Member,
            ReferenceKind::Type => Self::Type,
            _ => Self::Plain,
        }
    }
}

impl Linker<'_> {
    /// Finds what a name is that nothing makes visible at its place.
    pub(super) fn invisible(&self, facts: &Facts, reference: &Reference) -> Found {
        let (lang, name) = (facts.lang, reference.name.as_str());
        let standard = &self.links.standard;
        let can_name_type = match reference.kind {
            ReferenceKind::Type | ReferenceKind::Inherit | ReferenceKind::Attribute => true,
            ReferenceKind::Name => !profile(lang).has_capital_values,
            _ => false,
        };
        let is_defined = || self.is_defined_in(facts.family, name);
        let is_standard = || standard.has_name(lang, name);
        let is_outside = match (reference.kind, facts.family) {
            (ReferenceKind::Macro | ReferenceKind::Attribute, _) if standard.has_macro(lang, name) => true,
            // It can be a member that is inherited from an unknown type.
            (ReferenceKind::Call, _) if facts.profile.has_implicit_this && name.starts_with(char::is_lowercase) => {
                is_standard() && !is_defined()
            }
            // All files of the package are known.
            (_, Family::Go) => facts.stars().next().is_none(),
            // A function that is imported may not have the name of one of the language.
            (ReferenceKind::Call, _) if facts.has_aliases() && is_standard() => true,
            // What other files make visible is known.
            (_, Family::Python | Family::Rust | Family::Java | Family::Php | Family::Lua) if is_standard() => true,
            // Code of Objective-C is not read.
            _ if facts.globals() == Globals::Modules && self.links.environment.has_objective_c => {
                is_standard() && !is_defined()
            }
            _ => (can_name_type || is_standard()) && !is_defined(),
        };
        if is_outside { Found::outside() } else { Found::unknown() }
    }

    /// Finds a member of a value that is outside of the repository. The repository may extend its type.
    pub(super) fn member_outside(&self, facts: &Facts, reference: &Reference) -> Found {
        if profile(facts.lang).extensions == Extensions::Nowhere {
            return Found::outside();
        }
        let extensions = self.candidates(facts.family, &reference.name, Sought::Extension);
        if extensions.is_empty() {
            return Found::outside();
        }
        Found {
            syms: extensions.iter().copied().map(Sym::Def).collect(),
            tier: Tier::Named,
        }
    }

    /// Returns true if a definition with the name of a reference can be what it means, as far as its place is concerned.
    pub(super) fn can_be(&self, of: DefId, sought: Sought) -> bool {
        let Some(facts) = self.facts(of.file) else { return false };
        let definition = &facts.definitions[of.index as usize];
        let container = definition.container.map(|outer| facts.definitions[outer as usize].kind);
        let is_inside = container.is_some_and(|outer| !outer.is_callable());
        let is_assigned = facts.family == Family::JavaScript && definition.kind == DefinitionKind::Method;
        let is_of_other = definition.qualifier.is_some() || facts.block_of(of.index).is_some();
        let is_member = is_inside || is_assigned || is_of_other || facts.is_parameter(definition);
        let is_of_type = container.is_some_and(DefinitionKind::is_type);
        let is_possible = match sought {
            Sought::Type => !definition.kind.is_callable() && definition.kind != DefinitionKind::Field,
            // A name that is visible only inside a function or type would have been found.
            Sought::Plain => match facts.family {
                Family::Python | Family::JavaScript | Family::Rust | Family::Go | Family::Php => {
                    let is_of_value = definition.kind == DefinitionKind::Method || definition.qualifier.is_some();
                    !is_of_value
                        && (!is_of_type || definition.kind.is_type())
                        && container.is_none_or(|outer| !outer.is_callable())
                }
                _ => true,
            },
            Sought::Member => is_member,
            Sought::Extension => match profile(facts.lang).extensions {
                Extensions::Nowhere => false,
                Extensions::Traits => container == Some(DefinitionKind::Trait),
                Extensions::Blocks => container == Some(DefinitionKind::Impl),
                Extensions::Receivers => definition.qualifier.is_some(),
                Extensions::Anywhere => is_member,
            },
        };
        is_possible && facts.is_name(of.index)
    }
}
