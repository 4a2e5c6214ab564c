//! Chooses among definitions of one name of which a build or a place in the code can mean only some.

use super::facts::Facts;
use super::resolve::{Found, Linker, Sym};
use crate::extract::DefinitionKind;

impl Linker<'_> {
    /// Returns the kind of the definition that something is.
    pub(super) fn kind_of(&self, sym: &Sym) -> Option<DefinitionKind> {
        self.definition(sym.definition()?).map(|of| of.kind)
    }

    /// Keeps the modules and types of one name, through which a path of Rust goes, and not the functions.
    pub(super) fn keep_holders(&self, found: &mut Found) {
        let is_callable = |sym: &Sym| self.kind_of(sym).is_some_and(DefinitionKind::is_callable);
        if !found.syms.iter().all(is_callable) {
            found.syms.retain(|sym| !is_callable(sym));
        }
    }

    /// Returns true for types in several files, of which a build takes one.
    pub(super) fn are_alternatives(&self, found: &Found) -> bool {
        let file = |sym: &Sym| sym.definition().map(|of| of.file);
        let is_type = |sym: &Sym| self.kind_of(sym).is_some_and(DefinitionKind::is_type);
        found.syms.windows(2).any(|two| file(&two[0]) != file(&two[1])) && found.syms.iter().all(is_type)
    }

    /// Keeps the types below the source root of a file, if there are some among types of one full name.
    pub(super) fn keep_nearest(&self, facts: &Facts, found: &mut Found) {
        if !self.are_alternatives(found) {
            return;
        }
        let own = facts.source_root();
        let is_own = |sym: &Sym| {
            let other = sym.definition().and_then(|of| self.facts(of.file));
            other.is_some_and(|other| other.source_root() == own)
        };
        if found.syms.iter().any(is_own) {
            found.syms.retain(is_own);
        }
    }

    /// Keeps the types in the file of Swift whose path is most like that of `facts`, of types of one name in programs that are
    /// built apart.
    pub(super) fn keep_most_alike(&self, facts: &Facts, found: &mut Found) {
        if !self.are_alternatives(found) {
            return;
        }
        let likeness = |sym: &Sym| {
            let path = sym.definition().map_or("", |of| self.links.environment.path(of.file));
            let same = facts.path.split('/').zip(path.split('/'));
            same.take_while(|(one, other)| one == other).count()
        };
        let most = found.syms.iter().map(likeness).max();
        found.syms.retain(|sym| Some(likeness(sym)) == most);
    }
}
