//! Knows which names a language allows, and which it needs.

use crate::extract::{self, DefinitionKind, Profile};
use crate::session::{OpError, Result};

fn profile_of(language: &str) -> &'static Profile {
    extract::by_name(language).map_or(&Profile::MARKUP, extract::profile)
}

/// Fails unless a definition can be renamed: the language is known, and its name is not one that something else needs.
pub(super) fn check_old(language: &str, name: &str, kind: DefinitionKind, is_member: bool) -> Result<()> {
    let profile = profile_of(language);
    if profile.keywords.is_empty() {
        return Err(OpError::new(
            format!(
                "rename does not support {}",
                if language.is_empty() { "text" } else { language }
            ),
            "graph refs lists the references; edit changes them",
        ));
    }
    let has_name = !matches!(
        kind,
        DefinitionKind::Module | DefinitionKind::Impl | DefinitionKind::Constructor
    );
    if !has_name || kind.is_data() || !is_identifier(name) {
        return Err(OpError::new(
            format!("{name} is not a name that can be changed alone"),
            "rename the type instead of its constructor or block; move files with git mv",
        ));
    }
    let is_magic = name.starts_with("__")
        || matches!(name, "_" | "main")
        || language == "go" && matches!(name, "init" | "TestMain");
    if is_magic || is_member && profile.runs(name) {
        return Err(OpError::failed(format!(
            "{language} gives the name {name} a meaning, so it cannot be changed"
        )));
    }
    Ok(())
}

/// Fails unless a definition can have a new name.
pub(super) fn check_new(language: &str, old: &str, new: &str) -> Result<()> {
    if old == new {
        return Err(OpError::failed(format!("the name is {new} already")));
    }
    let is_hidden = |name: &str| name.starts_with('#');
    let profile = profile_of(language);
    if !is_identifier(new) || new.contains('$') && !profile.has_dollar {
        return Err(OpError::failed(format!("{new:?} is not a name in {language}")));
    }
    if is_hidden(old) != is_hidden(new) || language == "python" && new.starts_with("__") || new == "_" {
        return Err(OpError::failed(format!(
            "{language} gives the name {new} another meaning than {old}"
        )));
    }
    if language == "go" && matches!(new, "init" | "main") {
        return Err(OpError::failed(format!("{language} gives the name {new} a meaning")));
    }
    if profile.is_keyword(new) {
        return Err(OpError::failed(format!("{new} is a keyword of {language}")));
    }
    Ok(())
}

fn is_identifier(name: &str) -> bool {
    let mut letters = name.strip_prefix('#').unwrap_or(name).chars();
    letters
        .next()
        .is_some_and(|first| first.is_alphabetic() || matches!(first, '_' | '$'))
        && letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '$'))
}
