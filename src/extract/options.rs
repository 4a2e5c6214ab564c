//! Options of the extraction, and the version of its rules.

use super::lang::languages;

/// The version of the extraction rules. Artifacts with another version are not used. Increase it whenever the same
/// bytes, language and [`Options`] may give another [`super::Extraction`] or [`super::Content`], for example after a new
/// grammar version, a changed rule or different chunk boundaries.
const RECIPE_VERSION: u32 = 20;

/// Returns the number of the extraction rules: their version, changed by each grammar that this program lacks.
pub fn recipe_number() -> u32 {
    let missing = languages().filter(|language| language.lacks_grammar());
    missing.fold(RECIPE_VERSION, |number, language| {
        number.wrapping_mul(0x0100_0193) ^ u32::from(language.lang.0)
    })
}

/// Sizes that control chunking. They are part of the extraction recipe, so artifacts made with other options are not
/// used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The preferred size of a chunk in bytes.
    pub target_bytes: u32,
    /// Neighbouring items that are smaller than this size in bytes are merged.
    pub small_bytes: u32,
    /// Items that are larger than this size in bytes are split. A window with repeated lines or a single long line may
    /// exceed it by at most `small_bytes`.
    pub max_bytes: u32,
    /// Number of lines that a window of an unstructured file repeats from the previous window.
    pub overlap_lines: u32,
}

impl Default for Options {
    /// Returns the default sizes: a target of 1,000 bytes, merging below 300 bytes, splitting above 2,000 bytes, and an
    /// overlap of 2 lines.
    fn default() -> Self {
        Self {
            target_bytes: 1_000,
            small_bytes: 300,
            max_bytes: 2_000,
            overlap_lines: 2,
        }
    }
}
