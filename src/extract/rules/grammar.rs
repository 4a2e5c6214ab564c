//! A grammar, and what a language says about it.

use tree_sitter::{Node, Tree};

use super::{Rule, Zone};
use crate::extract::walk::Cx;
use crate::model::ByteRange;

/// A grammar and the rules for reading its trees.
pub(crate) struct Grammar {
    /// The name of the grammar in `codescout_grammars`.
    pub(crate) name: &'static str,
    /// The rules, as several lists because languages share some of them. A node kind may have several roles.
    pub(crate) rules: &'static [&'static [Rule]],
    /// Returns true if a callable definition is a test case.
    pub(crate) is_test: fn(&TestProbe<'_>) -> bool,
    /// Prefixes of comments that belong to the enclosing definition instead of the next one, for example `//!`.
    pub(crate) inner_docs: &'static [&'static str],
    /// Returns true if a text would make the grammar's C scanner abort the process.
    pub(crate) is_too_much: fn(&[u8]) -> bool,
    /// True if several functions of one name differ in the types of their parameters.
    pub(crate) has_overloads: bool,
    /// The kinds of the nodes with the arguments of a call, if they are in no field: a list, and a function behind it.
    pub(crate) arguments: Option<(&'static str, &'static str)>,
    /// Replaces syntax that the grammar misreads, before a text is parsed.
    pub(crate) mask: Option<MaskFn>,
    /// Replaces syntax that the grammar does not know, in texts with syntax errors. They are parsed again.
    pub(crate) mask_after_errors: Option<MaskFn>,
    /// Replaces what the parser took for something else. The text is parsed again.
    pub(crate) mask_misread: Option<MaskTreeFn>,
    /// Finds code that the grammar does not parse, such as `<script>` in HTML.
    pub(crate) embedded: Option<EmbeddedFn>,
    /// Finds the zone of a leaf where the grammar has no node for it.
    pub(crate) zone: Option<ZoneFn>,
    /// The mark before a name that begins at the root of all names.
    pub(crate) root: Option<u8>,
    /// The kinds of functions without a name in which `this` can mean another object.
    pub(crate) lambdas: &'static [&'static str],
    /// The kind of a call that begins with `new`, which is then the qualifier of the name.
    pub(crate) creation: &'static str,
}

impl Grammar {
    /// Returns the parser's language. Returns `None` if it is not built in.
    pub(crate) fn language(&self) -> Option<tree_sitter::Language> {
        codescout_grammars::language(self.name).map(Into::into)
    }

    /// Creates a grammar with `rules` and default values.
    pub(crate) const fn new(name: &'static str, rules: &'static [&'static [Rule]]) -> Self {
        Self {
            name,
            rules,
            is_test: never_a_test,
            inner_docs: &[],
            is_too_much: never_too_much,
            has_overloads: false,
            arguments: None,
            mask: None,
            mask_after_errors: None,
            mask_misread: None,
            embedded: None,
            zone: None,
            root: None,
            lambdas: &[],
            creation: "",
        }
    }

    /// Marks a language with overloads.
    pub(crate) const fn overloads(mut self) -> Self {
        self.has_overloads = true;
        self
    }

    /// Sets the kinds of the nodes with the arguments of a call.
    pub(crate) const fn arguments(mut self, list: &'static str, behind: &'static str) -> Self {
        self.arguments = Some((list, behind));
        self
    }

    /// Sets the function that selects texts not to parse.
    pub(crate) const fn unless(mut self, is_too_much: fn(&[u8]) -> bool) -> Self {
        self.is_too_much = is_too_much;
        self
    }

    /// Sets the function that recognises tests.
    pub(crate) const fn tests(mut self, is_test: fn(&TestProbe<'_>) -> bool) -> Self {
        self.is_test = is_test;
        self
    }

    /// Sets the mark before a name that begins at the root of all names.
    pub(crate) const fn rooted_by(mut self, mark: u8) -> Self {
        self.root = Some(mark);
        self
    }

    /// Sets the kinds of functions without a name in which `this` can mean another object.
    pub(crate) const fn lambdas(mut self, kinds: &'static [&'static str]) -> Self {
        self.lambdas = kinds;
        self
    }

    /// Sets the kind of a call that begins with `new`.
    pub(crate) const fn created_by(mut self, kind: &'static str) -> Self {
        self.creation = kind;
        self
    }

    /// Sets the prefixes of comments that are not attached to the next definition.
    pub(crate) const fn inner_docs(mut self, starts: &'static [&'static str]) -> Self {
        self.inner_docs = starts;
        self
    }

    /// Sets the function that replaces syntax in all texts.
    pub(crate) const fn masks(mut self, mask: MaskFn) -> Self {
        self.mask = Some(mask);
        self
    }

    /// Sets the function that replaces syntax in texts with syntax errors.
    pub(crate) const fn masks_after_errors(mut self, mask: MaskFn) -> Self {
        self.mask_after_errors = Some(mask);
        self
    }

    /// Sets the function that replaces what the parser took for something else.
    pub(crate) const fn masks_misread(mut self, mask: MaskTreeFn) -> Self {
        self.mask_misread = Some(mask);
        self
    }

    /// Sets the function that finds the zone of a leaf.
    pub(crate) const fn zones(mut self, zone: ZoneFn) -> Self {
        self.zone = Some(zone);
        self
    }

    /// Sets the function that finds embedded code.
    pub(crate) const fn embeds(mut self, embedded: EmbeddedFn) -> Self {
        self.embedded = Some(embedded);
        self
    }
}

fn never_too_much(_: &[u8]) -> bool {
    false
}

fn never_a_test(_: &TestProbe<'_>) -> bool {
    false
}

/// Returns a copy of a text in which some syntax is replaced, usually by spaces. Returns `None` if the text has no such
/// syntax. The copy has the same length and lines, and only the parser reads it: names and
/// signatures come from the original.
pub(crate) type MaskFn = fn(&[u8]) -> Option<Vec<u8>>;

/// Like [`MaskFn`], for a text and its tree.
pub(crate) type MaskTreeFn = fn(&Tree, &[u8]) -> Option<Vec<u8>>;

/// Finds the embedded code in `node`. Returns its range and the name of its language.
pub(crate) type EmbeddedFn = for<'t> fn(&Cx<'_, 't>, Node<'t>) -> Option<(ByteRange, &'static str)>;

/// Finds the zone of a leaf, given its parent, the kind of the node around that, and the text.
pub(crate) type ZoneFn = fn(Node<'_>, Node<'_>, &str, &[u8]) -> Option<Zone>;

/// The properties of a function that determine if it is a test.
pub(crate) struct TestProbe<'a> {
    /// The name without a qualifier.
    pub(crate) name: &'a str,
    /// The source text of the attributes, annotations or decorators. May include comments.
    pub(crate) attributes: &'a str,
    /// The source text from the first token to the body.
    pub(crate) signature: &'a str,
    /// The name of the enclosing definition; empty at file level.
    pub(crate) container: &'a str,
}

impl TestProbe<'_> {
    /// Returns true if the last path segment of an attribute is `name`: `test` in `#[tokio::test]`, `Test` in
    /// `@org.junit.Test`.
    pub(crate) fn has_attribute(&self, name: &str) -> bool {
        self.attributes.match_indices(name).any(|(at, _)| {
            let before = self.attributes[..at].chars().next_back();
            let after = self.attributes[at + name.len()..].chars().next();
            before.is_some_and(|c| "@[:.\\<".contains(c)) && after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    }
}
