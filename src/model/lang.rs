//! The language of a blob, as a stable number.

/// A language by its stable number. `extract::language` has the table of names, extensions and grammars.
///
/// Everything without a grammar is `Lang::TEXT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lang(pub u16);

impl Lang {
    /// Plain text: split into windows of lines, without definitions.
    pub const TEXT: Self = Self(0);
}
