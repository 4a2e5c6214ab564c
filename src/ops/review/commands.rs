//! The commands that run tests.

use std::collections::{BTreeMap, BTreeSet};

use super::around::without_number;
use crate::git::shell_quoted;
use crate::model::typed;
use crate::ops::diff::name_in;
use crate::ops::graph::ReachedOut;
use crate::ops::question::Question;
use crate::query::Source;

/// Maximum length of a command. A longer one runs whole files, or all tests.
const MAX_BYTES: usize = 1_000;

/// The runners of tests: the endings of their files, and the files by which the folder of a project is known.
const RUNNERS: &[(&[&str], &[&str], Runner)] = &[
    (&["py"], &[], pytest),
    (&["rs"], &["Cargo.toml"], cargo),
    (&["go"], &["go.mod"], go),
    (
        &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue"],
        &["package.json"],
        script,
    ),
    (
        &["java", "kt", "scala", "groovy"],
        &["pom.xml", "build.gradle", "build.gradle.kts", "build.sbt"],
        jvm,
    ),
    (&["rb"], &[], ruby),
    (&["php"], &["composer.json"], phpunit),
    (&["cs"], &[], dotnet),
    (&["swift"], &["Package.swift"], swift),
    (&["exs"], &["mix.exs"], |tests, _| of_paths(tests, "mix test")),
    (&["dart"], &["pubspec.yaml"], |tests, _| of_paths(tests, "dart test")),
];

/// Returns commands that run tests, the shortest last. [`Project`] has files beside them.
type Runner = fn(&[Test<'_>], &Project<'_>) -> Vec<String>;

struct Test<'a> {
    /// The path in the project.
    path: &'a str,
    /// The qualified name; `None` for a whole file.
    name: Option<&'a str>,
}

/// A folder of the repository in which a runner is started.
struct Project<'a> {
    question: &'a Question<'a>,
    /// The path with a slash at its end; empty for the root.
    folder: &'a str,
}

impl Project<'_> {
    fn has(&self, name: &str) -> bool {
        let path = format!("{}{name}", self.folder);
        self.question.view().find_text(&typed(&path)).is_some()
    }

    fn text(&self, name: &str) -> String {
        let file = self
            .question
            .view()
            .find_text(&typed(&format!("{}{name}", self.folder)));
        match file.map(|file| self.question.sources().reader().read(file)) {
            Some(Ok(Source::Bytes(bytes))) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        }
    }
}

/// Returns the commands that run tests, one for each runner and project. Tests of languages whose runner is not known, and
/// tests outside of projects, have none.
pub(super) fn of(question: &Question<'_>, tests: &[ReachedOut]) -> Vec<String> {
    let mut commands = Vec::new();
    for (endings, manifests, runner) in RUNNERS {
        let mut projects: BTreeMap<&str, Vec<Test<'_>>> = BTreeMap::new();
        for test in tests {
            let ending = test.path.rsplit_once('.').map(|(_, ending)| ending);
            if !ending.is_some_and(|ending| endings.contains(&ending)) {
                continue;
            }
            let Some(folder) = folder_of(question, &test.path, manifests) else {
                continue;
            };
            let name = test.id.as_deref().map(|id| without_number(name_in(id, &test.path)));
            projects.entry(folder).or_default().push(Test {
                path: &test.path[folder.len()..],
                name,
            });
        }
        for (folder, tests) in projects {
            let all = runner(&tests, &Project { question, folder });
            let last = all.len().saturating_sub(1);
            let mut fitting = all.into_iter().enumerate();
            let fitting = fitting.find(|(at, command)| *at == last || command.len() <= MAX_BYTES);
            commands.extend(fitting.map(|(_, command)| match folder.trim_end_matches('/') {
                "" => command,
                folder => format!("(cd {} && {command})", shell(folder)),
            }));
        }
    }
    commands
}

/// Returns the nearest folder around a file that has one of the manifests, with a slash at its end. The root, if there are none
/// to look for.
fn folder_of<'a>(question: &Question<'_>, path: &'a str, manifests: &[&str]) -> Option<&'a str> {
    let ends = path.rmatch_indices('/').map(|(at, _)| at + 1);
    let mut folders = ends.chain([0]).map(|end| &path[..end]);
    let is_project = |folder: &&str| {
        let project = Project { question, folder };
        manifests.iter().any(|manifest| project.has(manifest))
    };
    if manifests.is_empty() {
        Some("")
    } else {
        folders.find(is_project)
    }
}

/// Quotes an argument for a shell, if it needs to be.
fn shell(argument: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=@%+,~".contains(letter);
    let argument = match argument.strip_prefix('-') {
        Some(_) => format!("./{argument}"),
        None => argument.to_owned(),
    };
    if argument.chars().all(is_plain) && !argument.starts_with('~') {
        return argument;
    }
    shell_quoted(&argument)
}

fn distinct<'a>(of: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    of.filter(|one| seen.insert(*one)).collect()
}

fn joined(program: &str, arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|argument| shell(argument)).collect();
    format!("{program} {}", arguments.join(" "))
}

/// The command with the paths of the tests, then the command alone.
fn of_paths(tests: &[Test<'_>], program: &str) -> Vec<String> {
    let paths = distinct(tests.iter().map(|test| test.path));
    vec![joined(program, &paths), program.to_owned()]
}

fn pytest(tests: &[Test<'_>], _: &Project<'_>) -> Vec<String> {
    let whole: BTreeSet<&str> = tests
        .iter()
        .filter(|test| test.name.is_none())
        .map(|test| test.path)
        .collect();
    let mut nodes: Vec<String> = whole.iter().map(|path| (*path).to_owned()).collect();
    for test in tests.iter().filter(|test| !whole.contains(test.path)) {
        nodes.extend(
            test.name
                .map(|name| format!("{}::{}", test.path, name.replace('.', "::"))),
        );
    }
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut commands = vec![joined("pytest", &nodes)];
    commands.extend(of_paths(tests, "pytest"));
    commands
}

fn cargo(tests: &[Test<'_>], _: &Project<'_>) -> Vec<String> {
    let names: Vec<String> = tests
        .iter()
        .filter_map(|test| Some(test.name?.replace('.', "::")))
        .collect();
    let mut commands = Vec::new();
    if names.len() == tests.len() {
        commands.push(joined("cargo test --", &distinct(names.iter().map(String::as_str))));
    }
    commands.push("cargo test".to_owned());
    commands
}

fn go(tests: &[Test<'_>], _: &Project<'_>) -> Vec<String> {
    let folder = |path: &str| match path.rsplit_once('/') {
        Some((folder, _)) => format!("./{folder}"),
        None => ".".to_owned(),
    };
    let mut of_folders: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for test in tests {
        of_folders.entry(folder(test.path)).or_default().extend(test.name);
    }
    let folders: Vec<&str> = of_folders.keys().map(String::as_str).collect();
    // `-run` runs no benchmarks.
    let names = of_folders.values().flatten().copied();
    let names = distinct(names.filter(|name| !name.starts_with("Benchmark")));
    let pattern = format!("^({})$", names.join("|"));
    let mut commands = Vec::new();
    if !names.is_empty() && tests.iter().all(|test| test.name.is_some()) {
        commands.push(format!("{} -run {}", joined("go test", &folders), shell(&pattern)));
    }
    commands.push(joined("go test", &folders));
    commands.push("go test ./...".to_owned());
    commands
}

fn script(tests: &[Test<'_>], project: &Project<'_>) -> Vec<String> {
    let manifest = project.text("package.json");
    for (name, program) in [
        ("vitest", "npx vitest run"),
        ("jest", "npx jest"),
        ("\"ava\"", "npx ava"),
        ("mocha", "npx mocha"),
    ] {
        if manifest.contains(name) {
            return of_paths(tests, program);
        }
    }
    vec!["npm test".to_owned()]
}

fn stems<'a>(tests: &[Test<'a>]) -> Vec<&'a str> {
    let stem = |path: &'a str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.split('.').next().unwrap_or_default()
    };
    distinct(tests.iter().map(|test| stem(test.path)))
}

fn jvm(tests: &[Test<'_>], project: &Project<'_>) -> Vec<String> {
    let stems = stems(tests);
    if project.has("pom.xml") {
        return vec![
            format!("mvn test -Dtest={}", shell(&stems.join(","))),
            "mvn test".to_owned(),
        ];
    }
    if project.has("build.gradle") || project.has("build.gradle.kts") {
        let filters: Vec<String> = stems.iter().map(|stem| format!("--tests {}", shell(stem))).collect();
        return vec![
            format!("./gradlew test {}", filters.join(" ")),
            "./gradlew test".to_owned(),
        ];
    }
    if project.has("build.sbt") {
        let patterns: Vec<String> = stems.iter().map(|stem| format!("*{stem}")).collect();
        return vec![
            format!("sbt {}", shell(&format!("testOnly {}", patterns.join(" ")))),
            "sbt test".to_owned(),
        ];
    }
    Vec::new()
}

fn ruby(tests: &[Test<'_>], _: &Project<'_>) -> Vec<String> {
    if tests.iter().all(|test| test.path.ends_with("_spec.rb")) {
        return of_paths(tests, "bundle exec rspec");
    }
    vec!["bundle exec rake test".to_owned()]
}

fn phpunit(tests: &[Test<'_>], _: &Project<'_>) -> Vec<String> {
    let pattern = format!("({})", stems(tests).join("|"));
    vec![
        format!("vendor/bin/phpunit --filter {}", shell(&pattern)),
        "vendor/bin/phpunit".to_owned(),
    ]
}

fn dotnet(tests: &[Test<'_>], _: &Project<'_>) -> Vec<String> {
    let names: Vec<String> = stems(tests)
        .iter()
        .map(|stem| format!("FullyQualifiedName~{stem}"))
        .collect();
    vec![
        format!("dotnet test --filter {}", shell(&names.join("|"))),
        "dotnet test".to_owned(),
    ]
}

fn swift(tests: &[Test<'_>], _: &Project<'_>) -> Vec<String> {
    let stems = stems(tests);
    vec![
        format!("swift test --filter {}", shell(&stems.join("|"))),
        "swift test".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(shell("tests/a_b.py::TestA::test_c"), "tests/a_b.py::TestA::test_c");
        assert_eq!(shell("$(touch x)"), "'$(touch x)'");
        assert_eq!(shell("it's"), "'it'\\''s'");
        assert_eq!(shell("-rf"), "./-rf");
        assert_eq!(shell("~a"), "'~a'");
    }
}
