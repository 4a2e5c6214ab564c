//! Everything that decides whether a bundle can be taken, in one short name: for the keys of caches.

use crate::embed::ProfileId;

use super::format::{FORMAT, Formats};

/// How many hexadecimal digits a name has.
const DIGITS: usize = 16;

/// The name of formats, recipe, profile and object format. Bundles of another name are refused.
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
