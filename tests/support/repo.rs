//! Creates real repositories with the git executable. The same input gives the same ids on every machine.

use std::cell::Cell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::rc::Rc;

use super::{InTime, output_of};
use tempfile::TempDir;

/// Time of the first commit. Each further commit is a minute later.
const FIRST_COMMIT_TIME: u64 = 1_700_000_000;

const SETTINGS: &str = "
[core]
\tautocrlf = false
\texcludesFile = /dev/null
\tattributesFile = /dev/null
";

/// A repository in a temporary folder, which is deleted with the last handle.
///
/// The user's and the system's git configuration have no effect: every `git` call is isolated from them, and settings
/// that affect file contents are set in the repository's own configuration for code that reads it in this process.
///
/// ```ignore
/// let repo = TestRepo::new("
///     //- src/lib.rs
///     pub fn parse() {}
/// ");
/// ```
pub(crate) struct TestRepo {
    folder: Rc<TempDir>,
    root: PathBuf,
    clock: Rc<Cell<u64>>,
}

impl TestRepo {
    /// Creates a repository with one commit of the files of `fixture`, on branch `main`.
    pub(crate) fn new(fixture: &str) -> Self {
        let repo = Self::empty();
        repo.write_files(fixture);
        repo.commit("start");
        repo
    }

    /// Creates a repository without a commit.
    pub(crate) fn empty() -> Self {
        Self::init(&[])
    }

    /// Like [`Self::new`], with SHA-256 as the object format.
    pub(crate) fn sha256(fixture: &str) -> Self {
        let repo = Self::init(&["--object-format=sha256"]);
        repo.write_files(fixture);
        repo.commit("start");
        repo
    }

    /// Creates a repository without a commit by `git init` with these options.
    pub(crate) fn init(options: &[&str]) -> Self {
        let folder = Rc::new(TempDir::with_prefix("codescout-test-").unwrap());
        let repo = Self {
            root: std::fs::canonicalize(folder.path()).unwrap().join("repo"),
            folder,
            clock: Rc::new(Cell::new(FIRST_COMMIT_TIME)),
        };
        std::fs::create_dir(&repo.root).unwrap();
        repo.git([&["init", "--quiet", "--initial-branch=main", "--template="], options].concat());
        repo.settle();
        repo
    }

    /// Sets the settings that the machine's configuration could change otherwise.
    fn settle(&self) {
        let inside = self.path(".git/config");
        let config = if inside.exists() { inside } else { self.path("config") };
        let mut settings = std::fs::read(&config).unwrap();
        settings.extend_from_slice(SETTINGS.as_bytes());
        std::fs::write(config, settings).unwrap();
    }

    /// Returns a handle for another folder in the same temporary folder.
    fn at(&self, root: PathBuf) -> Self {
        Self {
            folder: Rc::clone(&self.folder),
            root,
            clock: Rc::clone(&self.clock),
        }
    }

    /// Returns the root of the worktree, or of a bare repository.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a path next to the repository, in the same temporary folder.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.parent().unwrap().join(name)
    }

    /// Returns the path of a file in the worktree.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    // Files.

    /// Writes the files of a fixture. A line `//- path` begins a file, which ends at the next such line. The
    /// indentation that all lines share is removed.
    pub(crate) fn write_files(&self, fixture: &str) {
        for (path, content) in parse_fixture(fixture) {
            self.write(path, content);
        }
    }

    /// Writes a file and creates the folders for it.
    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Returns the bytes of a file.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        std::fs::read(self.path(path)).unwrap()
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: impl AsRef<Path>) {
        std::fs::remove_file(self.path(path)).unwrap();
    }

    /// Moves a file and creates the folders for it.
    pub(crate) fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        let to = self.path(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::rename(self.path(from), to).unwrap();
    }

    /// Creates a symbolic link.
    #[cfg(unix)]
    pub(crate) fn symlink(&self, target: impl AsRef<Path>, path: impl AsRef<Path>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    // History. New objects are identified by their ids in hexadecimal.

    /// Commits everything in the worktree, even if nothing has changed.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(["add", "--all"]);
        self.commit_index(message)
    }

    /// Commits the staged changes.
    pub(crate) fn commit_index(&self, message: &str) -> String {
        self.git(["commit", "--quiet", "--allow-empty", "--message", message]);
        self.rev_parse("HEAD")
    }

    /// Creates a branch at `HEAD` without checking it out.
    pub(crate) fn branch(&self, name: &str) {
        self.git(["branch", name]);
    }

    /// Checks out a branch or a commit.
    pub(crate) fn checkout(&self, spec: &str) {
        self.git(["checkout", "--quiet", spec]);
    }

    /// Merges into the checked-out branch, always with a merge commit.
    pub(crate) fn merge(&self, spec: &str) -> String {
        self.git([
            "merge",
            "--quiet",
            "--no-ff",
            "--message",
            &format!("merge {spec}"),
            spec,
        ]);
        self.rev_parse("HEAD")
    }

    /// Creates an annotated tag at `HEAD`.
    pub(crate) fn tag(&self, name: &str) {
        self.git(["tag", "--annotate", "--message", name, name]);
    }

    /// Returns the id of the object that `spec` names.
    pub(crate) fn rev_parse(&self, spec: &str) -> String {
        self.git(["rev-parse", "--verify", spec])
    }

    /// Returns the id of the tree of `spec`.
    pub(crate) fn tree_of(&self, spec: &str) -> String {
        self.rev_parse(&format!("{spec}^{{tree}}"))
    }

    // Other repositories in the same temporary folder.

    /// Creates a linked worktree with a new branch of the same name.
    pub(crate) fn worktree(&self, name: &str) -> Self {
        let root = self.beside(name);
        self.git([
            OsStr::new("worktree"),
            "add".as_ref(),
            "--quiet".as_ref(),
            "-b".as_ref(),
            name.as_ref(),
            root.as_os_str(),
        ]);
        self.at(root)
    }

    /// Clones the repository with these options.
    pub(crate) fn clone_with(&self, name: &str, options: &[&str]) -> Self {
        let clone = self.at(self.beside(name));
        let url = format!("file://{}", self.root.display());
        let mut arguments = vec!["clone", "--quiet", "--template="];
        arguments.extend(options);
        arguments.extend([url.as_str(), clone.root.to_str().unwrap()]);
        self.git(arguments);
        clone.settle();
        clone
    }

    /// Creates a bare clone.
    pub(crate) fn bare_clone(&self, name: &str) -> Self {
        self.clone_with(name, &["--bare"])
    }

    // Calling git.

    /// Runs git and returns its output as text without the last line break. Fails the test if git fails.
    pub(crate) fn git<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> String {
        let printed = String::from_utf8(self.git_bytes(arguments)).unwrap();
        printed.strip_suffix('\n').unwrap_or(&printed).to_owned()
    }

    /// Runs git and returns its output. Fails the test if git fails.
    pub(crate) fn git_bytes<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Vec<u8> {
        let mut command = self.command();
        command.args(arguments);
        let output = command.output_in_time().unwrap();
        assert!(
            output.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// Runs git and returns its output even if it fails.
    pub(crate) fn try_git<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Output {
        self.command().args(arguments).output_in_time().unwrap()
    }

    /// Runs git with standard input and returns its output. Fails the test if git fails.
    pub(crate) fn git_with_input<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(
        &self,
        arguments: I,
        input: &[u8],
    ) -> Vec<u8> {
        let mut command = self.command();
        let child = command.args(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let output = output_of(child, input);
        assert!(
            output.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// Returns a git command that is isolated from the machine's configuration. Advances the clock.
    pub(crate) fn command(&self) -> Command {
        let time = self.clock.replace(self.clock.get() + 60);
        let date = format!("{time} +0000");
        let mut command = Command::new("git");
        command
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Ada Author")
            .env("GIT_AUTHOR_EMAIL", "ada@example.com")
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_NAME", "Carl Committer")
            .env("GIT_COMMITTER_EMAIL", "carl@example.com")
            .env("GIT_COMMITTER_DATE", &date)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .args([
                "-c",
                "commit.gpgSign=false",
                "-c",
                "protocol.file.allow=always",
                "-c",
                "advice.detachedHead=false",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Parses the files of a fixture with their contents.
fn parse_fixture(fixture: &str) -> Vec<(String, String)> {
    let indent = fixture
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let lines = fixture
        .lines()
        .map(|line| line.get(indent.unwrap_or(0)..).unwrap_or(""));
    let mut files: Vec<(String, String)> = Vec::new();
    for line in lines {
        if let Some(path) = line.strip_prefix("//- ") {
            files.push((path.trim().to_owned(), String::new()));
        } else if let Some((_, content)) = files.last_mut() {
            content.push_str(line);
            content.push('\n');
        } else {
            assert!(
                line.trim().is_empty(),
                "a fixture begins with a line \"//- path\", not with {line:?}"
            );
        }
    }
    // The closing quote is on its own line, which is not part of the last file.
    if let Some((_, content)) = files
        .last_mut()
        .filter(|_| fixture.lines().last().is_some_and(|line| line.trim().is_empty()))
    {
        content.pop();
    }
    files
}
