//! Detects the language of a blob from its path and first bytes.

use super::lang::{self, Language};
use crate::model::{Lang, RepoPath};

/// Number of bytes at the start of a blob that are inspected.
const HEAD_BYTES: usize = 16_384;

/// Result for the path of a `.h` file, which contains either C or C++. [`refine`] replaces it according to the content,
/// so it is never the language of an extraction.
const HEADER: Lang = Lang(u16::MAX);

/// Returns the language of the blob `bytes` at `path`. The file name takes precedence over the extension, and the
/// extension over the `#!` line. Returns [`Lang::TEXT`] if none of them matches.
///
/// A `.h` file is C++ if it contains a construct that C does not have. The result depends only on the arguments.
pub fn detect(path: &RepoPath, bytes: &[u8]) -> Lang {
    refine(lang_of_path(path), bytes)
}

/// Returns true if [`lang_of_path`] can return `lang`.
pub fn is_lang_of_path(lang: Lang) -> bool {
    lang == Lang::TEXT || lang == HEADER || lang::languages().any(|language| language.lang == lang)
}

/// Returns the language according to the path alone. Pass the result to [`refine`]. Together with the id of a blob, it
/// identifies an artifact, so the blob need not be read to find the artifact.
pub fn lang_of_path(path: &RepoPath) -> Lang {
    let name = path.file_name();
    match by_file_name(name).or_else(|| by_extension(name)) {
        Some(language) if name.ends_with(b".h") && language.name == "c" => HEADER,
        Some(language) => language.lang,
        None => Lang::TEXT,
    }
}

/// Returns the language of a blob. `lang` is the result of [`lang_of_path`] for its path.
pub fn refine(lang: Lang, bytes: &[u8]) -> Lang {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let named = |name| lang::by_name(name).unwrap_or(Lang::TEXT);
    match lang {
        HEADER if looks_like_cpp(head) => named("cpp"),
        HEADER => named("c"),
        Lang::TEXT => by_shebang(head).map_or(Lang::TEXT, |language| language.lang),
        known => known,
    }
}

fn by_file_name(name: &[u8]) -> Option<&'static Language> {
    lang::languages().find(|language| language.file_names.iter().any(|known| known.as_bytes() == name))
}

fn by_extension(name: &[u8]) -> Option<&'static Language> {
    let dot = memchr::memrchr(b'.', name)?;
    let extension = &name[dot + 1..];
    lang::languages().find(|language| {
        language
            .extensions
            .iter()
            .any(|known| known.as_bytes().eq_ignore_ascii_case(extension))
    })
}

/// Returns the language of a `#!` line. For example, the language of `#!/usr/bin/env -S python3.12 -u` is Python.
/// Compares the file name of the program, ignoring `env`, options and version numbers.
fn by_shebang(head: &[u8]) -> Option<&'static Language> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let words = line
        .split_ascii_whitespace()
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    let mut programs = words.filter(|word| *word != "env" && !word.starts_with('-') && !word.contains('='));
    let program = programs
        .next()?
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    lang::languages().find(|language| language.interpreters.contains(&program))
}

/// Returns true if a line starts with a construct that C++ has but C does not.
fn looks_like_cpp(head: &[u8]) -> bool {
    const STARTS: [&[u8]; 12] = [
        b"class ",
        b"namespace ",
        b"template ",
        b"template<",
        b"using ",
        b"public:",
        b"private:",
        b"protected:",
        b"constexpr ",
        b"virtual ",
        b"inline namespace ",
        b"#include <string>",
    ];
    head.split(|&byte| byte == b'\n').any(|line| {
        let line = line.trim_ascii();
        STARTS.iter().any(|start| line.starts_with(start)) || includes_std_header(line)
    })
}

/// Returns true if a line includes a header of the C++ standard library, which has no extension: `#include <vector>`.
fn includes_std_header(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"#include <") else {
        return false;
    };
    let name = rest.strip_suffix(b">").unwrap_or(rest);
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(path: &str, bytes: &str) -> &'static str {
        lang::language(detect(&path.into(), bytes.as_bytes())).map_or("text", |language| language.name)
    }

    #[test]
    fn extensions_decide_before_the_shebang() {
        assert_eq!(name_of("src/main.rs", "#!/bin/sh\n"), "rust");
        assert_eq!(name_of("A.PY", ""), "python");
    }

    #[test]
    fn shebangs_are_read_through_env_options_and_versions() {
        for line in [
            "#!/usr/bin/python",
            "#!/usr/bin/env python3",
            "#! /usr/bin/env -S python3.12 -u",
        ] {
            assert_eq!(name_of("bin/tool", line), "python", "{line}");
        }
        assert_eq!(name_of("bin/tool", "#!/opt/unheard-of"), "text");
    }

    #[test]
    fn header_with_cpp_constructs_is_cpp() {
        assert_eq!(name_of("a.h", "#include <stdio.h>\nint f(void);\n"), "c");
        assert_eq!(name_of("a.h", "#include <vector>\n"), "cpp");
        assert_eq!(name_of("a.h", "  class Foo {\n"), "cpp");
        assert_eq!(name_of("a.h", "/* the class of things */\n"), "c");
    }

    #[test]
    fn unknown_names_are_text() {
        assert_eq!(name_of("NOTES", "words"), "text");
        assert_eq!(name_of("a.unheard-of", "words"), "text");
    }
}
