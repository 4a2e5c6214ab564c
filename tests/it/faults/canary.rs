//! Tests a repository whose configuration names a program in every possible place. Every command is run, and none of
//! these programs may run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{cut_off, program, stderr, succeed};
use crate::cli::commands_in_help;
use crate::support::{InTime, TestRepo, is_long, write_executable};

/// A repository with such programs, called traps. The file `trace` exists after one has run.
struct Trapped {
    repo: TestRepo,
    trace: PathBuf,
}

/// Hooks that git, or a program that reads the index or changes a ref, may call.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-auto-gc",
    "pre-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Settings whose value is, or contains, the name of a program.
const PROGRAMS: &[&str] = &[
    "alias.cat-file",
    "alias.config",
    "alias.for-each-ref",
    "alias.log",
    "alias.rev-parse",
    "alias.status",
    "browser.trap.cmd",
    "core.alternateRefsCommand",
    "core.askPass",
    "core.editor",
    "core.fsmonitor",
    "core.gitProxy",
    "core.pager",
    "core.sshCommand",
    "credential.helper",
    "diff.external",
    "diff.trap.command",
    "diff.trap.textconv",
    "difftool.trap.cmd",
    "filter.lfs.clean",
    "filter.lfs.process",
    "filter.lfs.smudge",
    "filter.trap.clean",
    "filter.trap.process",
    "filter.trap.smudge",
    "gpg.openpgp.program",
    "gpg.program",
    "gpg.ssh.defaultKeyCommand",
    "gpg.ssh.program",
    "gpg.x509.program",
    "hook.trap.command",
    "imap.tunnel",
    "interactive.diffFilter",
    "man.trap.cmd",
    "merge.trap.driver",
    "mergetool.trap.cmd",
    "pager.cat-file",
    "pager.config",
    "pager.for-each-ref",
    "pager.log",
    "pager.rev-parse",
    "pager.status",
    "receive.procReceiveRefs",
    "remote.origin.receivepack",
    "remote.origin.uploadpack",
    "remote.origin.vcs",
    "sequence.editor",
    "ssh.variant",
    "trailer.trap.cmd",
    "trailer.trap.command",
    "uploadpack.packObjectsHook",
];

impl Trapped {
    fn new() -> Self {
        let repo = TestRepo::new(
            "
            //- .gitattributes
            *.trap filter=trap diff=trap merge=trap
            *.lfs filter=lfs
            //- src/a.trap
            first
            //- src/b.lfs
            first
            //- src/lib.rs
            /// A packet.
            pub fn parse_header() -> u8 { 1 }
            //- README.md
            # Packets

            Words.
            ",
        );
        repo.tag("v1");
        repo.write("src/a.trap", "second");
        repo.write(
            "src/lib.rs",
            "/// A packet.\npub fn parse_header() -> u8 { 2 }\npub fn caller() { parse_header(); }\n",
        );
        repo.commit("parse the header of a packet");
        let trace = repo.beside("trace");
        let trap = script(&repo.beside("trap.sh"), &trace);
        let hooks = repo.beside("hooks");
        for folder in [&hooks, &repo.path(".git/hooks")] {
            fs::create_dir_all(folder).unwrap();
            for hook in HOOKS {
                fs::copy(&trap, folder.join(hook)).unwrap();
            }
        }
        let trap = trap.to_str().unwrap();
        for key in PROGRAMS {
            let value = if key.starts_with("alias.") {
                format!("!{trap}")
            } else {
                trap.to_owned()
            };
            repo.git(["config", key, &value]);
        }
        for (key, value) in [
            ("core.hooksPath", hooks.to_str().unwrap()),
            ("core.fsmonitorHookVersion", "2"),
            ("core.untrackedCache", "true"),
            ("hook.trap.event", "post-index-change"),
            ("log.showSignature", "true"),
            ("filter.trap.required", "true"),
            ("protocol.allow", "always"),
            ("protocol.ext.allow", "always"),
            ("protocol.file.allow", "always"),
            ("remote.origin.url", &format!("ext::{trap}")),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialCloneFilter", "blob:none"),
            ("branch.main.remote", "origin"),
            ("branch.main.merge", "refs/heads/main"),
            ("maintenance.auto", "true"),
            ("gc.auto", "1"),
            ("gitoxide.core.indexFile", "../../trap.sh"),
        ] {
            repo.git(["config", key, value]);
        }
        repo.write("src/a.trap", "edited");
        repo.write("src/b.lfs", "edited");
        repo.write("new.trap", "new");
        let _ = fs::remove_file(&trace);
        Self { repo, trace }
    }

    /// Fails the test if a trap has run.
    fn assert_quiet(&self, after: &str) {
        let fired = fs::read_to_string(&self.trace);
        assert!(fired.is_err(), "{after}: {}", fired.unwrap());
    }

    /// Runs a command. The exit code is ignored.
    fn run(&self, args: &[&str], variables: &[(&str, &Path)]) {
        let mut command = program(self.repo.root(), args);
        command.envs(variables.iter().copied());
        let output = command.output_in_time().unwrap();
        let said = stderr(&output);
        assert!(
            output.status.code().is_some() && !said.contains("panicked"),
            "{args:?}: {said}"
        );
        self.assert_quiet(&format!("{args:?}"));
    }
}

/// Creates a program that writes to `trace`.
fn script(path: &Path, trace: &Path) -> PathBuf {
    write_executable(
        path,
        &format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", trace.display()),
    );
    path.to_owned()
}

/// The calls of each command, by the names in the program's help. A command that is missing here fails the test. A
/// command that must not be run has no calls and a comment with the reason.
const CALLS: &[(&str, &[&[&str]])] = &[
    (
        "search",
        &[
            &["search", "parse header"],
            &["--ref", "v1", "search", "packet", "-m", "regex"],
            &["--ref", "INDEX", "search", "packet"],
            &["search", "packet", "--refs", "v1,HEAD"],
            &["search", "packet", "--all-history"],
            &["search", "--in", "commits", "packet"],
            &["search", "--in", "diffs", "edited"],
        ],
    ),
    (
        "grep",
        &[&["grep", "first|second|edited"], &["--ref", "HEAD~1", "grep", "first"]],
    ),
    (
        "symbol",
        &[
            &["symbol", "parse_header", "--refs", "--body", "--doc"],
            &["symbol", "--at", "src/lib.rs:2"],
        ],
    ),
    (
        "graph",
        &[&["graph", "stats"], &["graph", "imports"], &["graph", "export"]],
    ),
    (
        "outline",
        &[&["outline"], &["outline", "src/lib.rs"], &["outline", "--view", "map"]],
    ),
    (
        "read",
        &[
            &["read", "src/a.trap"],
            &["--ref", "v1", "read", "src/b.lfs"],
            &["read", "README.md", "--heading", "Packets"],
        ],
    ),
    (
        "edit",
        &[
            &["edit", "create", "src/new.trap", "--text", "x", "--dry-run"],
            &["edit", "create", "src/new.trap", "--text", "x"],
            &["edit", "delete", "src/new.trap"],
        ],
    ),
    (
        "rename",
        &[
            &["rename", "first", "renamed"],
            &["rename", "first", "renamed", "--apply"],
            &["rename", "renamed", "first", "--apply"],
        ],
    ),
    (
        "memory",
        &[
            &["memory"],
            &[
                "memory",
                "write",
                "packets",
                "--about",
                "src/lib.rs#first",
                "--text",
                "x",
                "--private",
            ],
        ],
    ),
    ("run", &[&["run"], &["run", "test"]]),
    (
        "docs",
        &[
            &["docs", "audit"],
            &["docs", "audit", "--fix"],
            &["docs", "list", "--ref", "v1"],
        ],
    ),
    (
        "export",
        &[
            &["export", ".git/canary.bundle", "HEAD", "v1", "--history"],
            &["export", ".git/ready.bundle", "--ready"],
        ],
    ),
    (
        "import",
        &[
            &["import", ".git/canary.bundle", "--compare-all"],
            &["import", "--inspect", ".git/ready.bundle"],
        ],
    ),
    ("precise", &[&["precise", "run", "python"]]),
    (
        "ci",
        &[
            &["ci", "key", "--gitlab"],
            &["ci", "save", ".git/ci.bundle", "--history"],
            &["ci", "restore", ".git/ci.bundle"],
            &["ci", "restore", ".git/ci.bundle", "--compare"],
        ],
    ),
    (
        "push",
        &[&["push", "--yes", ".", "--history"], &["push", "--dry-run", "origin"]],
    ),
    (
        "pull",
        &[&["pull", "--yes", ".", "--history"], &["pull", "--dry-run", "origin"]],
    ),
    (
        "index",
        &[
            &["index"],
            &["index", "--all-branches"],
            &["index", "--history"],
            &["index", "v1", "HEAD@{1}", ":/parse", "main~1"],
        ],
    ),
    (
        "history",
        &[
            &["history", "src/a.trap", "--diff"],
            &["history", "src/lib.rs#parse_header", "--diff"],
            &["history", "src", "--cochange"],
            &["history", "src/lib.rs:1-2"],
            &["history", "--deleted", "src"],
            &["history", "--deleted", "the header of packets"],
        ],
    ),
    (
        "blame",
        &[
            &["blame", "src/a.trap", "--by", "line"],
            &["blame", "src/lib.rs"],
            &["blame", "src"],
        ],
    ),
    (
        "diff",
        &[
            &["diff"],
            &["diff", "v1", "--by", "text"],
            &["diff", "v1...HEAD", "--by", "text"],
            &["--ref", "INDEX", "diff", "v1"],
        ],
    ),
    (
        "review",
        &[
            &["review"],
            &["review", "v1..HEAD", "--markdown"],
            &["review", "v1", "--html", "-"],
        ],
    ),
    // The tests in `web.rs` request its pages.
    ("web", &[]),
    ("fleet", &[]),
    (
        "status",
        &[&["status", "--bytes"], &["--ref", "v1", "status", "--json"]],
    ),
    (
        "init",
        &[&["init", "--yes"], &["init", "--json"], &["init", "--undo", "--yes"]],
    ),
    (
        "hooks",
        &[
            &["hooks", "install", "--dry-run"],
            &["hooks", "install"],
            &["hooks", "status"],
            &["hooks", "run", "post-commit"],
        ],
    ),
    ("doctor", &[&["doctor"], &["doctor", "--fix", "--json"]]),
    // The tests in `mcp/` call its tools.
    ("serve", &[&["serve"]]),
    (
        "install",
        &[&["install", "--list"], &["install", "claude-code", "--dry-run"]],
    ),
    ("uninstall", &[&["uninstall", "claude-code", "--dry-run"]]),
    ("verify", &[&["verify", "--deep"], &["verify", "--repair"]]),
    (
        "gc",
        &[
            &["gc", "--dry-run"],
            &["gc", "--pin", "v1"],
            &["gc", "--pins"],
            &["gc", "--unpin", "v1"],
            &["gc", "--aggressive"],
        ],
    ),
    (
        "config",
        &[
            &["config"],
            &["config", "get", "search.limit"],
            &["config", "set", "search.limit", "5"],
            &["config", "unset", "search.limit"],
        ],
    ),
    ("completions", &[&["completions", "bash"]]),
    ("man", &[&["man", "target/man"]]),
    ("eval", &[&["eval", "--from-history", "--sample", "3"]]),
];

#[test]
fn every_command_is_called() {
    let called: Vec<&str> = CALLS.iter().map(|(name, _)| *name).collect();
    let missing: Vec<String> = commands_in_help()
        .into_iter()
        .filter(|name| !called.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "CALLS has no calls of {missing:?}");
}

#[test]
fn no_command_runs_what_a_repository_names() {
    let trapped = Trapped::new();
    for (_, calls) in CALLS {
        for call in *calls {
            trapped.run(call, &[]);
        }
    }
    // Checks that the traps work.
    let mut git = Command::new("git");
    cut_off(&mut git, trapped.repo.root());
    git.arg("status").output_in_time().unwrap();
    assert!(trapped.trace.exists());
}

#[test]
fn what_git_variables_say_changes_nothing() {
    let trapped = Trapped::new();
    let honest = succeed(trapped.repo.root(), &["grep", "first|second|edited"]).stdout;
    let other = TestRepo::new("//- other.rs\nfn first() {}\n");
    let trap = trapped.repo.beside("trap.sh");
    let config = trapped.repo.beside("evil.config");
    fs::write(
        &config,
        format!("[core]\nfsmonitor = {0}\n[diff]\nexternal = {0}\n", trap.display()),
    )
    .unwrap();
    let (count, key) = (Path::new("1"), Path::new("core.fsmonitor"));
    let parameters = format!("'core.fsmonitor={}'", trap.display());
    let git_dir = other.path(".git");
    let index = other.path(".git/index");
    let objects = other.path(".git/objects");
    let sets: &[&[(&str, &Path)]] = &[
        &[("GIT_DIR", &git_dir)],
        &[("GIT_DIR", &git_dir), ("GIT_WORK_TREE", other.root())],
        &[("GIT_WORK_TREE", other.root())],
        &[("GIT_INDEX_FILE", &index)],
        &[("GIT_OBJECT_DIRECTORY", &objects)],
        &[("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects)],
        &[("GIT_COMMON_DIR", &git_dir)],
        &[("GIT_NAMESPACE", Path::new("evil"))],
        &[("GIT_REPLACE_REF_BASE", Path::new("refs/heads/"))],
        &[("GIT_SHALLOW_FILE", &config)],
        &[("GIT_CEILING_DIRECTORIES", Path::new("/"))],
        &[("GIT_CONFIG", &config)],
        &[("GIT_CONFIG_GLOBAL", &config)],
        &[("GIT_CONFIG_SYSTEM", &config)],
        &[
            ("GIT_CONFIG_COUNT", count),
            ("GIT_CONFIG_KEY_0", key),
            ("GIT_CONFIG_VALUE_0", &trap),
        ],
        &[("GIT_CONFIG_PARAMETERS", Path::new(&parameters))],
        &[("GIT_EXTERNAL_DIFF", &trap)],
        &[("GIT_PAGER", &trap), ("PAGER", &trap)],
        &[("GIT_EDITOR", &trap), ("EDITOR", &trap), ("VISUAL", &trap)],
        &[
            ("GIT_SSH", &trap),
            ("GIT_SSH_COMMAND", &trap),
            ("GIT_PROXY_COMMAND", &trap),
        ],
        &[("GIT_ASKPASS", &trap), ("SSH_ASKPASS", &trap)],
        &[("GIT_EXEC_PATH", trap.parent().unwrap())],
        &[("GIT_TEMPLATE_DIR", trap.parent().unwrap())],
        &[("GIT_PREFIX", Path::new("src/"))],
        &[("GIT_TRACE", &trapped.trace), ("GIT_TRACE2_EVENT", &trapped.trace)],
    ];
    for variables in sets {
        for call in [
            &["grep", "first|second|edited"][..],
            &["--json", "status"],
            &["index"],
            &["search", "packet"],
        ] {
            let output = program(trapped.repo.root(), call)
                .envs(variables.iter().copied())
                .output_in_time()
                .unwrap();
            assert!(output.status.success(), "{variables:?} {call:?}: {}", stderr(&output));
            if call.contains(&"grep") {
                assert!(output.stdout == honest, "{variables:?}: another repository answered");
            }
            trapped.assert_quiet(&format!("{variables:?} {call:?}"));
        }
    }
    assert!(!other.path(".codescout").exists(), "another repository was written to");
}

#[test]
fn no_setting_of_a_repository_names_a_program_an_address_or_a_path() {
    let trapped = Trapped::new();
    let trap = trapped.repo.beside("trap.sh");
    let known = codescout::config::SETTINGS;
    assert!(!known.is_empty());
    let values = [
        trap.display().to_string(),
        format!("!{}", trap.display()),
        "http://127.0.0.1:9/".to_owned(),
        "https://example.com/model".to_owned(),
        "../outside".to_owned(),
        "$(touch trace)".to_owned(),
    ];
    for key in known.iter().map(|setting| setting.key) {
        for (at, value) in values.iter().enumerate() {
            let (table, name) = key.split_once('.').unwrap_or(("", key));
            let header = if table.is_empty() {
                String::new()
            } else {
                format!("[{table}]\n")
            };
            trapped
                .repo
                .write(".codescout.toml", format!("{header}{name} = {}\n", toml(value)));
            let calls = [&["index"][..], &["search", "packet"], &["config"]];
            let tried = if is_long() { &calls[..] } else { &calls[at % 3..][..1] };
            for call in tried {
                let output = program(trapped.repo.root(), call).output_in_time().unwrap();
                let said = stderr(&output);
                assert_eq!(
                    output.status.code(),
                    Some(2),
                    "{key} = {value} is taken by {call:?}: {said}"
                );
                assert!(
                    said.contains(".codescout.toml") && said.contains(name),
                    "{key} = {value}: {said}"
                );
                trapped.assert_quiet(&format!("{key} = {value}"));
            }
        }
    }
    // A setting that this program does not know, but another version of it may know.
    for line in [
        "[lsp]\nrust = 'trap'",
        "[embedding]\nurl = 'http://example.com'",
        "[hooks]\npost = 'trap'",
    ] {
        trapped.repo.write(".codescout.toml", line);
        let output = program(trapped.repo.root(), &["search", "packet"])
            .output_in_time()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
    }
}

/// Formats a text as a TOML string.
fn toml(value: &str) -> String {
    format!("'{value}'")
}
