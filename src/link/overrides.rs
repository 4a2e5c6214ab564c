//! Relates the members of types to those of the types that they extend or implement.

use super::facts::DefId;
use super::resolve::{Linker, MAX_DEPTH, Sym};

impl Linker<'_> {
    /// Returns the members that a member of a type overrides or implements.
    pub fn overridden(&self, of: DefId) -> Vec<DefId> {
        let (Some(around), Some(facts)) = (self.type_around(of), self.facts(of.file)) else {
            return Vec::new();
        };
        let name = &facts.definitions[of.index as usize].name;
        let mut found = Vec::new();
        for &base in facts.bases(around.index) {
            for sym in self.resolve_base(&facts, base, MAX_DEPTH).syms {
                if let Sym::Def(base) = sym {
                    let base = self.aliased(base, MAX_DEPTH).unwrap_or(base);
                    found.extend(self.members_of(base, name, MAX_DEPTH));
                }
            }
        }
        found.retain(|member| *member != of);
        found.sort_unstable();
        found.dedup();
        found
    }
}
