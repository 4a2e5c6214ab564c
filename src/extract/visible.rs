//! Decides which definitions code outside of a repository can name.

use super::lang::{Visibility, profile};
use super::types::{Definition, DefinitionKind};
use crate::model::Lang;

/// Maximum number of bytes in front of a name that are read.
const MAX_HEAD: usize = 2 << 10;

/// Returns true if code outside of the repository can name the definition with this index. `is_exported` says whether
/// the file exports a definition by name.
pub fn is_visible_outside(
    lang: Lang,
    bytes: &[u8],
    definitions: &[Definition],
    index: u32,
    is_exported: impl Fn(u32) -> bool,
) -> bool {
    let outer = |index: u32| definitions[index as usize].container;
    let mut chain = std::iter::successors(Some(index), |index| outer(*index));
    chain.all(|at| {
        let definition = &definitions[at as usize];
        let container = definition.container.map(|outer| definitions[outer as usize].kind);
        let is_of_interface = matches!(container, Some(DefinitionKind::Interface | DefinitionKind::Trait));
        // Members of a trait or interface have its visibility.
        if definition.kind == DefinitionKind::Impl || is_of_interface {
            return true;
        }
        // What is inside a function is local.
        if at != index && definition.kind.is_callable() {
            return false;
        }
        let end = definition.name_range.start as usize;
        let head = end.saturating_sub(MAX_HEAD).max(definition.signature.start as usize)..end;
        let head = String::from_utf8_lossy(bytes.get(head).unwrap_or_default());
        let has = |word: &str| head.split_whitespace().any(|part| part == word);
        let is_private = || has("private") || definition.name.starts_with(['_', '#']);
        match profile(lang).visibility {
            Visibility::UnlessPrivate => !is_private(),
            Visibility::Words(words) => definition.kind == DefinitionKind::Macro || words.iter().any(|word| has(word)),
            Visibility::Capital => definition.name.starts_with(char::is_uppercase),
            Visibility::UnlessStatic => !has("static"),
            Visibility::Exports if definition.container.is_none() => head.contains("export") || is_exported(at),
            Visibility::Exports => !is_private(),
        }
    })
}
