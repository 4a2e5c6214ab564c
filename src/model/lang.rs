//! Identifies the language of a blob.

/// A language, identified by a number that never changes. `extract::language` maps the numbers to names, extensions and
/// grammars.
///
/// A file without a grammar is [`Lang::TEXT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lang(pub u16);

impl Lang {
    /// Plain text, which is chunked into windows of lines and has no definitions.
    pub const TEXT: Self = Self(0);
}
