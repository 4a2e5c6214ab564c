//! Writes a change of a file as a patch that `git apply` accepts.

use crate::git::{FileMode, unified_diff_bytes};
use crate::model::quoted;

/// The content of a file before or after a change.
pub(super) struct Version<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) blob: &'a str,
}

/// Returns the patch from one version of a file to another; `None` means that the file does not exist.
pub(super) fn patch(path: &[u8], mode: FileMode, old: Option<Version<'_>>, new: Option<Version<'_>>) -> Vec<u8> {
    let mode = if mode == FileMode::Executable {
        "100755"
    } else {
        "100644"
    };
    let none = Version { bytes: b"", blob: "" };
    let sides = [("a/", old.as_ref()), ("b/", new.as_ref())];
    let [from, to] = sides.map(|(prefix, _)| name(prefix, path));
    let mut patch = format!("diff --git {from} {to}\n");
    match (&old, &new) {
        (None, _) => patch += &format!("new file mode {mode}\n"),
        (_, None) => patch += &format!("deleted file mode {mode}\n"),
        _ => {}
    }
    let (old, new) = (old.as_ref().unwrap_or(&none), new.as_ref().unwrap_or(&none));
    let zeros = "0".repeat(old.blob.len().max(new.blob.len()));
    let id = |version: &Version<'_>| {
        if version.blob.is_empty() {
            zeros.clone()
        } else {
            version.blob.to_owned()
        }
    };
    let both = !old.blob.is_empty() && !new.blob.is_empty();
    patch += &format!(
        "index {}..{}{}\n",
        id(old),
        id(new),
        if both { format!(" {mode}") } else { String::new() }
    );
    let hunks = unified_diff_bytes(old.bytes, new.bytes, (1, 1));
    if !hunks.is_empty() {
        for (sign, version, name) in [("---", old, from), ("+++", new, to)] {
            let name = if version.blob.is_empty() {
                "/dev/null".to_owned()
            } else {
                name
            };
            // A tab ends a name with blanks, as in git.
            let tab = if name.contains(' ') && !name.starts_with('"') {
                "\t"
            } else {
                ""
            };
            patch += &format!("{sign} {name}{tab}\n");
        }
    }
    [patch.into_bytes(), hunks].concat()
}

/// Returns a path with its prefix, in quotes if it needs them.
fn name(prefix: &str, path: &[u8]) -> String {
    let whole = [prefix.as_bytes(), path].concat();
    let needs_escapes = path.iter().any(|byte| matches!(byte, b'"' | b'\\'));
    match quoted(&whole) {
        std::borrow::Cow::Borrowed(plain) if needs_escapes => {
            format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
        }
        shown => shown.into_owned(),
    }
}
