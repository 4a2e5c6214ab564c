//! The commands that run tests.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::typed;
use crate::ops::diff::name_in;
use crate::ops::graph::ReachedOut;
use crate::ops::question::Question;
use crate::query::Source;

/// Maximum length of a command. A longer one runs whole files, or all tests.
const MAX_BYTES: usize = 1_000;

/// The runners of tests, each with the endings of its files.
const RUNNERS: &[(&[&str], Runner)] = &[
    (&["py"], pytest),
    (&["rs"], cargo),
    (&["go"], go),
    (&["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue"], script),
    (&["java", "kt", "scala", "groovy"], jvm),
    (&["rb"], ruby),
    (&["php"], phpunit),
    (&["cs"], dotnet),
    (&["swift"], swift),
    (&["exs"], |tests, _| of_paths(tests, "mix test")),
    (&["dart"], |tests, _| of_paths(tests, "dart test")),
];

/// Returns commands that run tests, the shortest last. `Files` finds files of the repository.
type Runner = fn(&[Test<'_>], &Files<'_>) -> Vec<String>;

struct Test<'a> {
    path: &'a str,
    /// The qualified name; `None` for a whole file.
    name: Option<&'a str>,
}

/// The texts of files at the root of the repository.
struct Files<'a>(&'a Question<'a>);

impl Files<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let file = self.0.view().find_text(&typed(path))?;
        match self.0.sources().reader().read(file) {
            Ok(Source::Bytes(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        }
    }
}

/// Returns the commands that run tests, one for each runner. Tests of languages whose runner is not known have none.
pub(super) fn of(question: &Question<'_>, tests: &[ReachedOut]) -> Vec<String> {
    let mut commands = Vec::new();
    for (endings, runner) in RUNNERS {
        let is_own = |test: &&ReachedOut| {
            let ending = test.path.rsplit_once('.').map(|(_, ending)| ending);
            ending.is_some_and(|ending| endings.contains(&ending))
        };
        let own: Vec<Test<'_>> = tests
            .iter()
            .filter(is_own)
            .map(|test| Test {
                path: &test.path,
                name: test.id.as_deref().map(|id| name_in(id, &test.path)),
            })
            .collect();
        if own.is_empty() {
            continue;
        }
        let all = runner(&own, &Files(question));
        let last = all.len().saturating_sub(1);
        let fits = all
            .into_iter()
            .enumerate()
            .find(|(at, command)| *at == last || command.len() <= MAX_BYTES);
        commands.extend(fits.map(|(_, command)| command));
    }
    commands
}

/// Quotes an argument for a shell.
fn shell(argument: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=@%+,~".contains(letter);
    let argument = match argument.strip_prefix('-') {
        Some(_) => format!("./{argument}"),
        None => argument.to_owned(),
    };
    if argument.chars().all(is_plain) && !argument.starts_with('~') {
        return argument;
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
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

fn pytest(tests: &[Test<'_>], _: &Files<'_>) -> Vec<String> {
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

fn cargo(tests: &[Test<'_>], _: &Files<'_>) -> Vec<String> {
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

fn go(tests: &[Test<'_>], _: &Files<'_>) -> Vec<String> {
    let folder = |path: &str| match path.rsplit_once('/') {
        Some((folder, _)) => format!("./{folder}"),
        None => ".".to_owned(),
    };
    let mut of_folders: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for test in tests {
        of_folders.entry(folder(test.path)).or_default().extend(test.name);
    }
    let folders: Vec<&str> = of_folders.keys().map(String::as_str).collect();
    let names = distinct(of_folders.values().flatten().copied());
    let pattern = format!("^({})$", names.join("|"));
    let mut commands = Vec::new();
    if tests.iter().all(|test| test.name.is_some()) {
        commands.push(format!("{} -run {}", joined("go test", &folders), shell(&pattern)));
    }
    commands.push(joined("go test", &folders));
    commands.push("go test ./...".to_owned());
    commands
}

fn script(tests: &[Test<'_>], files: &Files<'_>) -> Vec<String> {
    let manifest = files.text("package.json").unwrap_or_default();
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
    if manifest.is_empty() {
        Vec::new()
    } else {
        vec!["npm test".to_owned()]
    }
}

fn stems<'a>(tests: &[Test<'a>]) -> Vec<&'a str> {
    let stem = |path: &'a str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.split('.').next().unwrap_or_default()
    };
    distinct(tests.iter().map(|test| stem(test.path)))
}

fn jvm(tests: &[Test<'_>], files: &Files<'_>) -> Vec<String> {
    let stems = stems(tests);
    let has = |path| files.text(path).is_some();
    if has("pom.xml") {
        return vec![
            format!("mvn test -Dtest={}", shell(&stems.join(","))),
            "mvn test".to_owned(),
        ];
    }
    if has("build.gradle") || has("build.gradle.kts") {
        let filters: Vec<String> = stems.iter().map(|stem| format!("--tests {}", shell(stem))).collect();
        return vec![
            format!("./gradlew test {}", filters.join(" ")),
            "./gradlew test".to_owned(),
        ];
    }
    if has("build.sbt") {
        let patterns: Vec<String> = stems.iter().map(|stem| format!("*{stem}")).collect();
        return vec![
            format!("sbt {}", shell(&format!("testOnly {}", patterns.join(" ")))),
            "sbt test".to_owned(),
        ];
    }
    Vec::new()
}

fn ruby(tests: &[Test<'_>], _: &Files<'_>) -> Vec<String> {
    if tests.iter().all(|test| test.path.ends_with("_spec.rb")) {
        return of_paths(tests, "bundle exec rspec");
    }
    vec!["bundle exec rake test".to_owned()]
}

fn phpunit(tests: &[Test<'_>], _: &Files<'_>) -> Vec<String> {
    let pattern = format!("({})", stems(tests).join("|"));
    vec![
        format!("vendor/bin/phpunit --filter {}", shell(&pattern)),
        "vendor/bin/phpunit".to_owned(),
    ]
}

fn dotnet(tests: &[Test<'_>], _: &Files<'_>) -> Vec<String> {
    let names: Vec<String> = stems(tests)
        .iter()
        .map(|stem| format!("FullyQualifiedName~{stem}"))
        .collect();
    vec![
        format!("dotnet test --filter {}", shell(&names.join("|"))),
        "dotnet test".to_owned(),
    ]
}

fn swift(tests: &[Test<'_>], _: &Files<'_>) -> Vec<String> {
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
