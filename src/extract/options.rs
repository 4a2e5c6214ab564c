//! What can be set, and the number that stands for everything else.

/// Raise it whenever the same bytes, language and [`Options`] may give another [`super::Extraction`]: a new grammar
/// version, a changed rule, another cut. Artifacts made under another number are not used.
pub const RECIPE_VERSION: u32 = 2;

/// How blobs are cut. Part of the recipe: other options make other artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// About how large a chunk is where the text leaves a choice.
    pub target_bytes: u32,
    /// Neighbours below this are merged.
    pub small_bytes: u32,
    /// Larger items are split. Longer than this is only a line that cannot be cut.
    pub max_bytes: u32,
    /// How many lines a window of a file without structure shares with the one before it.
    pub overlap_lines: u32,
}

impl Default for Options {
    /// 1,000 bytes, 300, 2,000 and 2 lines.
    fn default() -> Self {
        Self {
            target_bytes: 1_000,
            small_bytes: 300,
            max_bytes: 2_000,
            overlap_lines: 2,
        }
    }
}
