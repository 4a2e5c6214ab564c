//! The language of a blob, as a number that never changes its meaning.

/// A language by its stable number; `extract::language` holds the table of names, extensions and grammars.
///
/// `Lang::TEXT` is everything without a grammar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lang(pub u16);

impl Lang {
    /// Plain text: cut by line windows, no definitions.
    pub const TEXT: Self = Self(0);
}
