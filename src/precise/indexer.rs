//! The indexers that codescout knows how to run.

/// A program that writes a SCIP index of a project.
#[derive(Debug, PartialEq, Eq)]
pub struct Indexer {
    /// The languages that it is chosen by.
    pub languages: &'static [&'static str],
    /// The name of the program.
    pub program: &'static str,
    /// Its arguments, followed by the path of the index.
    arguments: &'static [&'static str],
    /// A file of the project's root, and arguments for a project without it.
    without: Option<(&'static str, &'static [&'static str])>,
    /// What of the repository it executes, if anything.
    pub executes: Option<&'static str>,
    /// The command that installs it.
    pub installation: &'static str,
}

/// All indexers.
///
/// scip-python needs a name for the project, which is part of its symbols. It must be the same in all clones, so that
/// their facts fit together.
pub const INDEXERS: [Indexer; 5] = [
    Indexer {
        languages: &["python"],
        program: "scip-python",
        arguments: &[
            "index",
            ".",
            "--project-name=project",
            "--project-version=0",
            "--output",
        ],
        without: None,
        executes: None,
        installation: "npm install -g @sourcegraph/scip-python",
    },
    Indexer {
        languages: &["typescript", "javascript"],
        program: "scip-typescript",
        arguments: &["index", "--output"],
        without: Some(("tsconfig.json", &["--infer-tsconfig"])),
        executes: None,
        installation: "npm install -g @sourcegraph/scip-typescript",
    },
    Indexer {
        languages: &["rust"],
        program: "rust-analyzer",
        arguments: &["scip", ".", "--output"],
        without: None,
        executes: Some("build scripts and procedural macros"),
        installation: "rustup component add rust-analyzer",
    },
    Indexer {
        languages: &["go"],
        program: "scip-go",
        arguments: &["--output"],
        without: None,
        executes: Some("the C compiler, with the options of packages that use cgo"),
        installation: "go install github.com/sourcegraph/scip-go/cmd/scip-go@latest",
    },
    Indexer {
        languages: &["java", "kotlin", "scala"],
        program: "scip-java",
        arguments: &["index", "--output"],
        without: None,
        executes: Some("the build (Gradle, Maven or sbt)"),
        installation: "coursier install scip-java",
    },
];

impl Indexer {
    /// Returns the indexer of a language.
    pub fn of_language(language: &str) -> Option<&'static Self> {
        INDEXERS.iter().find(|indexer| indexer.languages.contains(&language))
    }

    /// Returns all arguments except the path of the index, which comes last. `has_file` says whether the root of the
    /// project has a file.
    pub fn arguments(&self, has_file: impl Fn(&str) -> bool) -> Vec<&'static str> {
        let without = self.without.filter(|(file, _)| !has_file(file));
        let (last, first) = self
            .arguments
            .split_last()
            .expect("every indexer has an option for its output");
        let more = without.map_or(&[][..], |(_, arguments)| arguments);
        first.iter().chain(more).chain([last]).copied().collect()
    }
}
