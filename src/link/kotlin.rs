//! Finds what names of Kotlin mean: functions that extend types, and `this` of functions without a name.

use super::facts::{DefId, Facts};
use super::members::Use;
use super::outside::Sought;
use super::resolve::{Found, Linker, Sym, Tier};
use crate::extract::{IN_LAMBDA, Reference};
use crate::model::ByteRange;

impl Linker<'_> {
    /// Finds a function that extends a type of Kotlin, unless the type has a member of its name.
    pub(super) fn extension(&self, facts: &Facts, of: DefId, reference: &Reference, depth: u8) -> Option<Found> {
        if !facts.is_kotlin() {
            return None;
        }
        let (name, at) = (&reference.name, reference.range.start);
        let mut named = self.named(facts.family, name).into_iter();
        if !named.any(|one| self.extended_by(one).is_some())
            || !self.members_for(of, name, Use::of(reference), depth).is_empty()
        {
            return None;
        }
        let of = self.definition(of)?.name;
        let mut visible = self.bare_name(facts, name, at, depth);
        let extends = |one: DefId| self.extended_by(one).is_some_and(|extended| extended == of);
        visible.syms.retain(|sym| sym.definition().is_some_and(extends));
        (!visible.syms.is_empty() && visible.tier.is_sure()).then_some(Found {
            tier: Tier::Type,
            ..visible
        })
    }

    /// Returns the name of the type that a function of Kotlin extends.
    pub(super) fn extended_by(&self, of: DefId) -> Option<String> {
        self.facts(of.file)?.definitions[of.index as usize].qualifier.clone()
    }

    /// A function of Kotlin that extends none of the types around a name without a receiver is no more than a candidate. In a
    /// function without a name, `this` can be another object: so is everything but a variable, if a type has another member
    /// with the name.
    pub(super) fn with_receiver(&self, facts: &Facts, reference: &Reference, found: Found) -> Found {
        let at = reference.range.start;
        let is_around = |extended: &str| {
            let mut types = facts.enclosing(at).filter(|&of| facts.holds_members(of));
            facts.extended_around(at) == Some(extended)
                || types.any(|of| facts.definitions[of as usize].name == extended)
        };
        let extends_other = |sym: &Sym| {
            let extended = sym.definition().and_then(|of| self.extended_by(of));
            extended.is_some_and(|extended| !is_around(&extended))
        };
        let is_in_lambda = reference.qualifier.as_deref() == Some(IN_LAMBDA);
        let is_local = matches!(found.syms.first(), Some(Sym::Local(..)));
        let has_other = || {
            let candidates = self.candidates(facts.family, &reference.name, Sought::Member);
            candidates.iter().any(|of| !found.syms.contains(&Sym::Def(*of)))
        };
        let is_known = found.syms.iter().any(|sym| sym.definition().is_some());
        let is_of_other = is_known && found.syms.iter().all(extends_other);
        if !is_local && (is_of_other || is_in_lambda && has_other()) {
            return Found::unknown();
        }
        found
    }

    /// Returns true for a function that only programs that are already compiled can call.
    pub(super) fn is_hidden(&self, of: DefId) -> bool {
        self.facts(of.file)
            .filter(|facts| facts.is_kotlin())
            .is_some_and(|facts| {
                let definition = &facts.definitions[of.index as usize];
                let before = ByteRange::new(definition.range.start, definition.name_range.start);
                let mut marks = facts.references_named("HIDDEN").iter();
                marks.any(|&mark| before.contains(facts.references[mark as usize].range))
            })
    }

    /// Finds a member of the type that the function of Kotlin around a reference extends. It hides functions of the file
    /// that extend the type.
    pub(super) fn member_of_extended(
        &self,
        facts: &Facts,
        reference: &Reference,
        size: usize,
        depth: u8,
    ) -> Option<Found> {
        let at = reference.range.start;
        let of = facts.extended_around(at).filter(|_| size == usize::MAX)?;
        let of = self.bare_name(facts, of, at, depth).syms.first()?.definition()?;
        let mut members = self.members_for(of, &reference.name, Use::of(reference), depth);
        members.retain(|of| self.fits(*of, Use::of(reference)));
        (!members.is_empty()).then(|| Found {
            syms: members.into_iter().map(Sym::Def).collect(),
            tier: Tier::Own,
        })
    }
}
