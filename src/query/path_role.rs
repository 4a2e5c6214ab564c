//! Determines from a path whether a file is a test or peripheral code.

use crate::index::lexical::{parts, words};

/// The purpose of a file that is not part of the product, judged by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathRole {
    /// A test, or data of tests.
    Test,
    /// An example, a benchmark, documentation or the like.
    Peripheral,
}

/// Words that mark a folder of tests. `testing` is not one of them: except at the top, such folders mostly hold helpers
/// for the tests of others, which belong to the product.
const TEST_WORDS: &[&str] = &[
    "e2e",
    "fixture",
    "fixtures",
    "spec",
    "specs",
    "test",
    "testcase",
    "testcases",
    "testdata",
    "testfiles",
    "tests",
    "testsuite",
    "testsuites",
    "testutil",
    "testutils",
    "unittest",
    "unittests",
];
/// Words that mark a folder of examples, benchmarks or playgrounds.
const PERIPHERAL_WORDS: &[&str] = &[
    "bench",
    "benches",
    "benchmark",
    "benchmarks",
    "demo",
    "demos",
    "example",
    "examples",
    "playground",
    "playgrounds",
    "sample",
    "samples",
];
/// Names of other peripheral folders. As parts of names, these words mark folders of the product, too.
const PERIPHERAL_FOLDERS: &[&str] = &[
    "contrib",
    "deprecated",
    "doc",
    "docs",
    "legacy",
    "scripts",
    "third_party",
    "tools",
    "vendor",
];
/// Endings and beginnings of the names of test files (up to the first dot). They contain a separator or capital, so
/// they cannot be part of a plain word.
const TEST_ENDINGS: &[&str] = &[
    "Test", "Tests", "Spec", "Specs", "_test", "_tests", "_spec", "-test", "-tests",
];
const TEST_BEGINNINGS: &[&str] = &["test_", "test-", "tests_"];

/// Returns the role that the names in a path are typical for, or `None` for the product itself. A folder is recognized
/// by any word of its name, for example `Acme.Tests.Unit` or `myBenchmarks2`. Tests of examples are tests.
pub(super) fn path_role(path: &str) -> Option<PathRole> {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    if is_test_file(name) || path.starts_with("testing/") {
        return Some(PathRole::Test);
    }
    let roles = || folders.split('/').filter_map(folder_role);
    if roles().any(|role| role == PathRole::Test) {
        return Some(PathRole::Test);
    }
    roles().next()
}

/// Returns true if the names of folders and files in a path are typical for tests.
pub fn is_test_path(path: &str) -> bool {
    path_role(path) == Some(PathRole::Test)
}

/// Returns the outermost folder of a path whose name is typical for tests.
pub(super) fn test_folder(path: &str) -> Option<&str> {
    if path.starts_with("testing/") {
        return Some("testing");
    }
    let mut start = 0;
    path.match_indices('/').map(|(end, _)| end).find_map(|end| {
        let name = &path[start..end];
        start = end + 1;
        (folder_role(name) == Some(PathRole::Test)).then(|| &path[..end])
    })
}

fn folder_role(folder: &str) -> Option<PathRole> {
    let mut role = PERIPHERAL_FOLDERS
        .contains(&folder.to_lowercase().as_str())
        .then_some(PathRole::Peripheral);
    for part in words(folder).flat_map(|(_, word)| parts(word)) {
        let part = part
            .trim_end_matches(|letter: char| letter.is_ascii_digit())
            .to_lowercase();
        if TEST_WORDS.contains(&part.as_str()) {
            return Some(PathRole::Test);
        }
        if PERIPHERAL_WORDS.contains(&part.as_str()) {
            role = Some(PathRole::Peripheral);
        }
    }
    role
}

fn is_test_file(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    TEST_ENDINGS.iter().any(|ending| stem.ends_with(ending))
        || TEST_BEGINNINGS.iter().any(|start| stem.starts_with(start))
        || ["test", "tests", "conftest"].contains(&stem)
        || name.contains(".test.")
        || name.contains(".spec.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_paths_are_recognized_by_name() {
        for path in [
            "tests/it/main.rs",
            "src/foo_test.go",
            "a/FooTest.java",
            "x/foo.spec.ts",
            "test_client.py",
            "src/commonTest/A.kt",
            "Acme.Tests.Unit/A.cs",
            "integration-tests/a.go",
            "lib/testcases/a.pl",
            "TestData/a.json",
            "web/__tests__/a.js",
            "e2e/a.ts",
            "spec/a.rb",
            "tests2/a.py",
            "iOSTests/A.swift",
            "examples/shop/tests/a.py",
            "testing/server/a.scala",
        ] {
            assert_eq!(path_role(path), Some(PathRole::Test), "{path}");
        }
    }

    #[test]
    fn peripheral_paths_are_recognized_by_folder() {
        for path in [
            "examples/a.rs",
            "Acme.Examples/A.cs",
            "Acme.Benchmark/A.cs",
            "myBenchmarks/a.js",
            "playground/a.ts",
            "Intro.playground/Contents.swift",
            "example2/a.go",
            "demo-app/a.js",
            "Docs/a.md",
            "docs/guide/a.md",
        ] {
            assert_eq!(path_role(path), Some(PathRole::Peripheral), "{path}");
        }
    }

    #[test]
    fn words_that_contain_a_test_are_part_of_the_product() {
        for path in [
            "src/latest.rs",
            "src/contest/a.rs",
            "lib/testament.py",
            "src/Attest.java",
            "src/attest/a.go",
            "src/document/a.rs",
            "api-docs/a.rs",
            "src/inspect/a.rb",
            "src/spectrum/a.c",
            "src/testing/a.py",
            "src/workbench/a.ts",
            "src/sampler/a.rs",
            "build-tools/a.rs",
        ] {
            assert_eq!(path_role(path), None, "{path}");
        }
    }
}
