//! Unified diffs of two versions of a file, with the headers of `diff -u`.

use crate::git::unified_diff;

/// Returns the unified diff of two texts. It is empty if they are equal. `None` means that the file does not exist.
pub(super) fn unified(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let hunks = unified_diff(old.as_bytes(), new.as_bytes(), (1, 1));
    let name = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{}", path.trim_start_matches('/')),
        None => "/dev/null".to_owned(),
    };
    if hunks.is_empty() {
        hunks
    } else {
        format!("--- {}\n+++ {}\n{hunks}", name("a", before), name("b", after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_the_file_or_say_that_there_is_none() {
        assert_eq!(
            unified("/x/f", Some("a\n"), Some("b\n")),
            "--- a/x/f\n+++ b/x/f\n@@ -1 +1 @@\n-a\n+b\n"
        );
        assert_eq!(
            unified("f", None, Some("a\n")),
            "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
        );
        assert_eq!(
            unified("f", Some("a"), None),
            "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n"
        );
        assert_eq!(unified("f", Some("a\n"), Some("a\n")), "");
    }
}
