//! Knows which names a language allows, and which it needs.

use crate::extract::DefinitionKind;
use crate::session::{OpError, Result};

/// The languages in which definitions can be renamed, and their keywords.
const KEYWORDS: &[(&str, &str)] = &[
    (
        "python",
        "False None True and as assert async await break class continue def del elif else except finally for from global \
         if import in is lambda nonlocal not or pass raise return try while with yield",
    ),
    ("javascript", SCRIPT),
    ("typescript", SCRIPT),
    ("tsx", SCRIPT),
    (
        "go",
        "break case chan const continue default defer else fallthrough for func go goto if import interface map package \
         range return select struct switch type var",
    ),
    (
        "java",
        "_ abstract assert boolean break byte case catch char class const continue default do double else enum extends \
         false final finally float for goto if implements import instanceof int interface long native new null package \
         permits private protected public record return sealed short static strictfp super switch synchronized this \
         throw throws transient true try var void volatile while yield",
    ),
    (
        "rust",
        "Self abstract as async await become box break const continue crate do dyn else enum extern false final fn for \
         gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait \
         true try type typeof unsafe unsized use virtual where while yield",
    ),
];
const SCRIPT: &str = "any arguments as async await boolean break case catch class const continue debugger declare default \
    delete do else enum eval export extends false finally for function if implements import in instanceof interface let \
    never new null number object package private protected public return static string super switch symbol this throw \
    true try type typeof undefined unknown var void while with yield";
/// Members that languages and their standard libraries run by name.
const RUN_BY_NAME: &[(&str, &str)] = &[
    ("javascript", SCRIPT_MEMBERS),
    ("typescript", SCRIPT_MEMBERS),
    ("tsx", SCRIPT_MEMBERS),
    (
        "go",
        "As BinaryMarshaler Close Done Deadline Err Error Flush Format GoString GobDecode GobEncode Header Hijack Is Len \
         Less Lock LogValue MarshalBinary MarshalJSON MarshalText MarshalXML MarshalYAML Open Pop Push Push Read ReadAt \
         ReadByte ReadFrom ReadRune RoundTrip Scan Seek ServeHTTP Set Stat String Swap Temporary Timeout Unlock \
         UnmarshalBinary UnmarshalJSON UnmarshalText UnmarshalXML UnmarshalYAML UnreadByte UnreadRune Unwrap Value Write \
         WriteAt WriteByte WriteHeader WriteString WriteTo",
    ),
    (
        "java",
        "clone compareTo equals finalize getClass hashCode notify notifyAll toString wait",
    ),
];
const SCRIPT_MEMBERS: &str = "constructor next return then throw toJSON toLocaleString toString valueOf";

fn of(table: &[(&str, &'static str)], language: &str) -> Option<&'static str> {
    table
        .iter()
        .find(|(name, _)| *name == language)
        .map(|(_, words)| *words)
}

fn has(words: Option<&str>, word: &str) -> bool {
    words.unwrap_or_default().split_whitespace().any(|other| other == word)
}

/// Fails unless a definition can be renamed: the language is known, and its name is not one that something else needs.
pub(super) fn check_old(language: &str, name: &str, kind: DefinitionKind, is_member: bool) -> Result<()> {
    if of(KEYWORDS, language).is_none() {
        return Err(OpError::new(
            format!(
                "definitions of {} cannot be renamed",
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
    if is_magic || is_member && has(of(RUN_BY_NAME, language), name) {
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
    if !is_identifier(new) || new.contains('$') && language != "java" && of(KEYWORDS, language) != Some(SCRIPT) {
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
    if has(of(KEYWORDS, language), new) {
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
