//! Extraction options, and the version of everything else that affects an extraction.

/// The version of the extraction rules. Increase it whenever the same bytes, language and [`Options`] may give another
/// [`super::Extraction`]: a new grammar version, a changed rule, different chunk boundaries. Artifacts with another
/// version are not used.
pub const RECIPE_VERSION: u32 = 2;

/// Sizes that control chunking. They are part of the recipe: other options give other artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The preferred size of a chunk in bytes.
    pub target_bytes: u32,
    /// Size in bytes below which neighbouring items are merged.
    pub small_bytes: u32,
    /// Size in bytes above which an item is split. Only a window with its overlap or a single long line may exceed it,
    /// by at most `small_bytes`.
    pub max_bytes: u32,
    /// Number of lines that a window of an unstructured file shares with the previous window.
    pub overlap_lines: u32,
}

impl Default for Options {
    /// Returns 1,000, 300 and 2,000 bytes and 2 lines, in the order of the fields.
    fn default() -> Self {
        Self {
            target_bytes: 1_000,
            small_bytes: 300,
            max_bytes: 2_000,
            overlap_lines: 2,
        }
    }
}
