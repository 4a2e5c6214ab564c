//! Finds what names of PHP mean: `use`, namespaces, and the classes and functions of the repository by their full names.

use super::facts::{DefId, Facts, Family};
use super::resolve::{Found, Linker, Sym, Tier};
use crate::extract::{DefinitionKind, Reference, ReferenceKind, Steps, Value};
use crate::model::ByteRange;

/// Limit on the segments of a name.
const MAX_SEGMENTS: usize = 32;
/// The qualifier of a name that begins at the root.
const ROOT: &str = "\\";

/// A name in full: the namespace, empty for the root, and the last segment.
type FullName = (String, String);

impl Facts {
    /// Returns the namespace of the code at a byte; empty for the root.
    pub(super) fn namespace_at(&self, at: u32) -> &str {
        let before = self.namespaces.iter().rev().find(|&&index| {
            let definition = &self.definitions[index as usize];
            let is_clause = definition.signature.end >= definition.range.end.saturating_sub(1);
            definition.range.start <= at && (is_clause || at < definition.range.end)
        });
        before.map_or("", |&index| &self.definitions[index as usize].name)
    }

    /// Returns the reference to the segment before a name in a path of PHP, as `B` in `A\B\name`.
    fn outer_segment(&self, reference: &Reference) -> Option<&Reference> {
        let Value::Of { at, steps } = reference.receiver else {
            return None;
        };
        let outer = &self.references[self.reference_at(at)? as usize];
        let is_path = steps == Steps::default() && outer.range.end + 1 == reference.range.start;
        (self.family == Family::Php && is_path).then_some(outer)
    }

    /// Returns true for a part of a path of PHP before the last segment.
    fn is_namespace_segment(&self, reference: &Reference) -> bool {
        let next = self.reference_at(reference.range.end + 1);
        next.is_some_and(|next| {
            let inner = self.outer_segment(&self.references[next as usize]);
            inner.is_some_and(|outer| outer.range == reference.range)
        })
    }

    /// Returns true if a reference of PHP is the last segment of a path.
    pub(super) fn is_path_of_php(&self, reference: &Reference) -> bool {
        self.family == Family::Php && self.outer_segment(reference).is_some()
    }

    /// Returns the segments of a name, and whether it begins at the root.
    fn segments_of<'a>(&'a self, reference: &'a Reference) -> (Vec<&'a str>, bool) {
        let mut segments = vec![reference.name.as_str()];
        let mut first = reference;
        while let Some(outer) = self.outer_segment(first).filter(|_| segments.len() < MAX_SEGMENTS) {
            segments.push(&outer.name);
            first = outer;
        }
        segments.reverse();
        let is_rooted = first.qualifier.as_deref() == Some(ROOT);
        (segments, is_rooted)
    }
}

impl Linker<'_> {
    /// Finds what a name of PHP means that is no variable and no member.
    pub(super) fn name_in_php(&self, facts: &Facts, reference: &Reference) -> Found {
        if facts.is_namespace_segment(reference) {
            let is_defined = self.is_defined_in(facts.family, &reference.name);
            return if is_defined { Found::unknown() } else { Found::outside() };
        }
        let (segments, is_rooted) = facts.segments_of(reference);
        let is_imported = !facts.imports_of(segments[0]).is_empty();
        let names = full_names(facts, &segments, is_rooted, reference.range);
        for (namespace, name) in &names {
            let found = self.defined_in_php(namespace, name);
            let found = self.of_kind(found, reference);
            if found.is_empty() {
                continue;
            }
            let tier = match self.nearest(found.clone(), namespace, name) {
                Some(of) => return one(of, is_imported || segments.len() > 1),
                None => Tier::Named,
            };
            let syms = found.into_iter().map(Sym::Def).collect();
            return Found { syms, tier };
        }
        // A name that is imported or has a path means nothing else.
        let is_fixed = is_rooted || segments.len() > 1 || is_imported;
        if is_fixed && !self.has_namespace(&names[0].0) {
            return Found::outside();
        }
        self.invisible(facts, reference)
    }

    /// Finds what an import takes from a namespace.
    pub(super) fn taken_in_php(&self, namespace: &str, name: &str) -> Vec<Sym> {
        let found = self.defined_in_php(namespace, name);
        if let Some(of) = self.nearest(found.clone(), namespace, name) {
            return vec![Sym::Def(of)];
        }
        if !found.is_empty() {
            return vec![Sym::Unknown];
        }
        let inner = joined(namespace, name);
        match self.links.environment.namespace(self, Family::Php, &inner) {
            Some(module) => vec![Sym::Module(module)],
            None if self.has_namespace(namespace) => vec![Sym::Unknown],
            None => vec![Sym::Outside],
        }
    }

    /// Returns true if the repository has a namespace or one around it.
    fn has_namespace(&self, namespace: &str) -> bool {
        // Each name that is looked up is kept.
        if namespace.matches('\\').count() >= MAX_SEGMENTS {
            return true;
        }
        let mut at = Some(namespace).filter(|namespace| !namespace.is_empty());
        while let Some(namespace) = at {
            if self.links.environment.namespace(self, Family::Php, namespace).is_some() {
                return true;
            }
            at = namespace.rsplit_once('\\').map(|(outer, _)| outer);
        }
        false
    }

    /// Returns the classes, functions and constants with a full name.
    fn defined_in_php(&self, namespace: &str, name: &str) -> Vec<DefId> {
        let is_meant = |of: &DefId| {
            self.facts(of.file).is_some_and(|facts| {
                let definition = &facts.definitions[of.index as usize];
                let is_in_namespace = definition
                    .container
                    .is_none_or(|outer| facts.has_kind(outer, DefinitionKind::Module));
                is_in_namespace
                    && definition.kind != DefinitionKind::Module
                    && facts.namespace_at(definition.name_range.start) == namespace
            })
        };
        let mut found = self.named(Family::Php, name);
        found.retain(is_meant);
        found
    }

    /// Of the definitions of a name, returns those that a use can mean: a class and a function can have one name.
    fn of_kind(&self, found: Vec<DefId>, reference: &Reference) -> Vec<DefId> {
        let must_be_type = matches!(
            reference.kind,
            ReferenceKind::Type | ReferenceKind::Inherit | ReferenceKind::Attribute
        );
        let is_type = |of: &DefId| self.definition(*of).is_some_and(|of| of.kind.is_type());
        // The name of an argument, as in `f(level: 1)`, can differ only in case from that of a type.
        let is_written = |of: &DefId| self.definition(*of).is_some_and(|of| of.name == reference.name);
        let is_value = reference.kind == ReferenceKind::Value;
        let is_possible = |of: &DefId| (!must_be_type || is_type(of)) && (!is_value || is_written(of));
        found.into_iter().filter(is_possible).collect()
    }

    /// Of several definitions of a full name, returns the one in the file that the autoloader would read: the one whose
    /// path ends most like the name. Returns `None` if several do.
    fn nearest(&self, found: Vec<DefId>, namespace: &str, name: &str) -> Option<DefId> {
        let whole = joined(namespace, name);
        let n_common = |of: &DefId| {
            let path = self.links.environment.path(of.file);
            let path = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
            let pairs = path.rsplit('/').zip(whole.rsplit('\\'));
            pairs.take_while(|(one, other)| one == other).count()
        };
        let most = found.iter().map(n_common).max()?;
        let mut nearest = found.iter().filter(|of| n_common(of) == most);
        let first = *nearest.next()?;
        nearest.all(|of| of.file == first.file).then_some(first)
    }
}

fn one(of: DefId, is_import: bool) -> Found {
    Found {
        syms: vec![Sym::Def(of)],
        tier: if is_import { Tier::Import } else { Tier::Scope },
    }
}

/// Returns the full names that a path can mean, in the order in which they are tried.
fn full_names(facts: &Facts, segments: &[&str], is_rooted: bool, range: ByteRange) -> Vec<FullName> {
    let (last, outer) = segments.split_last().expect("a name has a segment");
    let full = |namespace: String| (namespace, (*last).to_owned());
    let path = outer.join("\\");
    if is_rooted {
        return vec![full(path)];
    }
    let imported = facts.imports_of(segments[0]).iter().filter_map(|&(import, at)| {
        let import = &facts.imports[import as usize];
        let name = &import.names[at? as usize].name;
        Some(match segments.len() {
            1 => (import.module.clone(), name.clone()),
            _ => full(joined(&joined(&import.module, name), &outer[1..].join("\\"))),
        })
    });
    let imported: Vec<FullName> = imported.collect();
    if !imported.is_empty() {
        return imported;
    }
    let namespace = facts.namespace_at(range.start);
    let mut names = vec![full(joined(namespace, &path))];
    let is_class = last.starts_with(char::is_uppercase) && last.contains(char::is_lowercase);
    // Functions and constants are also sought at the root.
    if !namespace.is_empty() && segments.len() == 1 && !is_class {
        names.push(full(path));
    }
    names
}

/// Joins two parts of a name, of which each can be empty.
fn joined(outer: &str, inner: &str) -> String {
    match (outer, inner) {
        ("", one) | (one, "") => one.to_owned(),
        _ => format!("{outer}\\{inner}"),
    }
}
