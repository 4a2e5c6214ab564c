//! Computes a short name for all settings and formats that decide whether a bundle can be imported. Used in cache keys.

use crate::embed::ProfileId;

use super::format::{FORMAT, Formats};

/// Number of hexadecimal digits in a name.
const DIGITS: usize = 16;

/// Returns a name for the combination of formats, recipe, profile and object format. A bundle made under another name
/// is rejected.
pub fn pipeline(recipe: u64, profile: ProfileId, id_bytes: usize) -> String {
    let Formats {
        artifacts,
        lexical,
        vectors,
    } = Formats::CURRENT;
    let mut hasher = blake3::Hasher::new_derive_key("codescout pipeline 1");
    for number in [FORMAT, artifacts, lexical, vectors, id_bytes as u32] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(&recipe.to_le_bytes()).update(&profile.0);
    let mut name = hasher.finalize().to_hex().to_string();
    name.truncate(DIGITS);
    name
}
