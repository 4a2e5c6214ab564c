//! Transfers files through a ref of a remote. The ref is not a branch or a tag, and no default refspec includes it.
//!
//! All work happens in a separate repository in a temporary directory, so the user's repository gets no objects, refs
//! or locks. Its configuration is used only to look up the addresses of remotes. The system and user configuration
//! applies: credentials, proxies, `insteadOf`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::bounded::{BoundError, Bounds};
use super::command::{CommandError, networked};
use super::open::{ObjectFormat, Repository};
use crate::model::{ErrorKind, Explain, Explanation};

/// The allowed transports. Others, such as `ext`, can run a program that the address names.
const TRANSPORTS: [&str; 4] = ["file", "https", "http", "ssh"];
/// Settings for git: fetch single objects, verify them, and do not load large ones into memory. Received packs are not
/// unpacked, so they take no more space than the server sent.
const SETTINGS: [&str; 7] = [
    "fetch.fsckObjects=true",
    "fetch.negotiationAlgorithm=noop",
    "fetch.unpackLimit=1",
    "core.bigFileThreshold=1m",
    "core.packedGitWindowSize=32m",
    "core.packedGitLimit=256m",
    "push.recurseSubmodules=no",
];
/// Time for a server to list its refs.
const LISTING_TIME: Duration = Duration::from_secs(120);
/// Settings for every transfer: start no background tasks, and give up on a server that sends nothing for a minute.
const TRANSFER_SETTINGS: [&str; 5] = [
    "protocol.version=2",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "gc.auto=0",
    "maintenance.auto=false",
];
/// Option for a push to a local repository. Prevents commands that its owner configured from running.
const NO_COMMANDS: &str = "--receive-pack=git -c core.hooksPath=/dev/null -c core.fsmonitor=false \
    -c core.alternateRefsCommand=true -c receive.autogc=false receive-pack";
/// Number of bytes allowed for the overhead of a pack.
const SLACK_BYTES: u64 = 1 << 20;
/// Maximum number of files under the ref.
const MAX_FILES: usize = 4096;
/// A fixed identity and time, so that the same files always produce the same commit.
const NOBODY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "codescout"),
    ("GIT_AUTHOR_EMAIL", "codescout@localhost"),
    ("GIT_AUTHOR_DATE", "@0 +0000"),
    ("GIT_COMMITTER_NAME", "codescout"),
    ("GIT_COMMITTER_EMAIL", "codescout@localhost"),
    ("GIT_COMMITTER_DATE", "@0 +0000"),
];

/// A remote and one of its refs.
#[derive(Debug)]
pub struct Exchange<'a> {
    address: String,
    reference: String,
    folder: PathBuf,
    /// The folders of the repository.
    roots: Vec<PathBuf>,
    bounds: Bounds<'a>,
}

/// The direction of a transfer: a remote may have a separate push address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A transfer from the remote.
    Fetch,
    /// A transfer to the remote.
    Push,
}

/// The files under the ref at the time of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteFiles {
    /// The commit that the ref points to; `None` if the ref does not exist.
    pub commit: Option<String>,
    /// Blob ids by file name.
    pub files: BTreeMap<String, String>,
}

/// An error from using a remote.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// `name` is neither a remote of this repository nor an address.
    #[error("no such remote: {name}")]
    NoRemote {
        /// The given name.
        name: String,
    },
    /// The transport of the address is not supported.
    #[error("unsupported address {address}: expected https, http, ssh, host:path or a folder")]
    Address {
        /// The address without passwords and tokens.
        address: String,
    },
    /// git failed.
    #[error(transparent)]
    Git(#[from] CommandError),
    /// git could not run, was stopped or exceeded a limit.
    #[error("{address}")]
    Bound {
        /// The address without passwords and tokens.
        address: String,
        /// The reason why git failed or was stopped.
        #[source]
        source: BoundError,
    },
    /// Another process changed the ref at the same time.
    #[error("{reference} was changed by another push")]
    Moved {
        /// The name of the ref.
        reference: String,
    },
    /// The ref contains files that codescout did not write.
    #[error("{reference} was not written by codescout: {what}")]
    Foreign {
        /// The name of the ref.
        reference: String,
        /// The unexpected content.
        what: String,
    },
    /// The temporary repository cannot be used.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The path of the directory.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: io::Error,
    },
}

impl Explain for ExchangeError {
    fn explain(&self) -> Explanation {
        match self {
            Self::NoRemote { .. } => {
                Explanation::hinting("the first argument is the name or URL of a remote; revisions follow")
            }
            Self::Git(error) => error.explain(),
            Self::Bound { source, .. } => source.explain(),
            Self::Moved { .. } => Explanation::of_kind(ErrorKind::Raced),
            Self::Foreign { .. } => Explanation::hinting("run codescout push --replace to replace it"),
            _ => Explanation::default(),
        }
    }
}

impl<'a> Exchange<'a> {
    /// Prepares the use of `reference` on a remote of `repository`. `remote` is the name or the address of the remote.
    /// `folder` is an empty directory for the temporary repository.
    pub fn new(
        repository: &Repository,
        remote: &str,
        reference: &str,
        folder: &Path,
        direction: Direction,
        bounds: Bounds<'a>,
    ) -> Result<Self, ExchangeError> {
        let address = address_of(repository, remote, direction)?;
        let exchange = Self {
            address,
            reference: reference.to_owned(),
            folder: folder.to_owned(),
            roots: repository.folders().into_iter().map(Path::to_owned).collect(),
            bounds,
        };
        let format = match repository.object_format() {
            ObjectFormat::Sha1 => "--object-format=sha1",
            ObjectFormat::Sha256 => "--object-format=sha256",
        };
        exchange.run("init", &["--bare", "--quiet", "--template=", format, "."])?;
        Ok(exchange)
    }

    /// Returns the address of the remote without a password.
    pub fn shown(&self) -> String {
        without_password(&self.address)
    }

    /// Returns the commit that the ref currently points to, or `None` if the ref does not exist.
    pub fn commit(&self) -> Result<Option<String>, ExchangeError> {
        let until = Instant::now() + LISTING_TIME;
        let bounds = Bounds {
            until: Some(self.bounds.until.map_or(until, |other| other.min(until))),
            ..self.bounds
        };
        let listed = self.ask_within(&bounds, "ls-remote", &["--", &self.address, &self.reference], b"")?;
        let listed = String::from_utf8_lossy(&listed);
        let commit = listed.lines().find_map(|line| {
            let (id, name) = line.split_once('\t')?;
            (name == self.reference).then(|| id.to_owned())
        });
        Ok(commit.filter(|id| is_id(id)))
    }

    /// Returns the names and blob ids of the files under the ref. Does not fetch their contents if the remote supports
    /// partial fetches.
    pub fn look(&self) -> Result<RemoteFiles, ExchangeError> {
        if self.commit()?.is_none() {
            return Ok(RemoteFiles::default());
        }
        let refspec = format!("+{}:refs/heads/there", self.reference);
        let arguments = [
            "--quiet",
            "--no-tags",
            "--depth=1",
            "--filter=blob:none",
            "--no-write-fetch-head",
            "--",
            &self.address,
            &refspec,
        ];
        self.ask("fetch", &arguments, b"")?;
        let commit = String::from_utf8_lossy(&self.run("rev-parse", &["refs/heads/there"])?)
            .trim()
            .to_owned();
        let files = self.run("ls-tree", &["-z", &commit])?;
        Ok(RemoteFiles {
            files: self.parse(&files)?,
            commit: Some(commit),
        })
    }

    /// Fetches the blobs with these ids, except those that are already in the temporary repository. `n_bytes` is their
    /// total size, if known.
    pub fn bring(&self, ids: &[&str], n_bytes: Option<u64>) -> Result<(), ExchangeError> {
        let mut missing = String::new();
        for id in ids {
            if self.run("cat-file", &["-e", id]).is_err() {
                missing.push_str(&format!("{id}\n"));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        // git itself uses these arguments to fetch missing objects of a partial clone.
        let arguments = [
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--recurse-submodules=no",
            "--filter=blob:none",
            "--stdin",
            "--",
            &self.address,
        ];
        let announced = n_bytes.map_or(u64::MAX, |n_bytes| n_bytes + n_bytes / 64 + SLACK_BYTES);
        let bounds = Bounds {
            max_bytes: self.bounds.max_bytes.min(announced),
            ..self.bounds
        };
        self.ask_within(&bounds, "fetch", &arguments, missing.as_bytes())?;
        Ok(())
    }

    /// Returns the size of a fetched or added blob, in bytes.
    pub fn size(&self, id: &str) -> Result<u64, ExchangeError> {
        let printed = self.run("cat-file", &["-s", id])?;
        let printed = String::from_utf8_lossy(&printed);
        printed.trim().parse().map_err(|_| self.foreign("invalid size"))
    }

    /// Starts a git process that prints the content of a fetched or added blob. The process ends when its output is
    /// dropped.
    pub fn read(&self, id: &str) -> Result<Child, ExchangeError> {
        let mut command = self.command()?;
        command.args(["cat-file", "blob", id]).stderr(Stdio::null());
        Ok(command.spawn().map_err(CommandError::NotRun)?)
    }

    /// Adds a file to the temporary repository. Returns the id of its blob.
    pub fn add(&self, file: &Path) -> Result<String, ExchangeError> {
        let printed = self.run(
            "hash-object",
            &[OsStr::new("-w"), OsStr::new("--no-filters"), file.as_os_str()],
        )?;
        Ok(String::from_utf8_lossy(&printed).trim().to_owned())
    }

    /// Replaces the files under the ref if the ref still points to the commit of `old`. Otherwise fails.
    pub fn replace(&self, old: &RemoteFiles, files: &BTreeMap<String, String>) -> Result<(), ExchangeError> {
        let lines = files.iter().map(|(name, id)| format!("100644 blob {id}\t{name}\0"));
        let tree = self.feed("mktree", &["-z", "--missing"], lines.collect::<String>().as_bytes())?;
        let commit = self.feed("commit-tree", &[tree.as_str()], b"codescout index\n")?;
        let lease = format!(
            "--force-with-lease={}:{}",
            self.reference,
            old.commit.as_deref().unwrap_or_default()
        );
        // The refspec has no leading plus, which would override the lease.
        let refspec = format!("{commit}:{}", self.reference);
        let mut arguments = vec!["--quiet", "--porcelain", "--no-verify", "--no-signed", &lease];
        if is_folder(&self.address) {
            arguments.push(NO_COMMANDS);
        }
        arguments.extend(["--", &self.address, &refspec]);
        match self.ask("push", &arguments, b"") {
            Ok(_) => Ok(()),
            // git's error output differs between versions and hosts, so check if the ref has changed.
            Err(error) => match self.look() {
                Ok(now) if now.commit != old.commit => Err(ExchangeError::Moved {
                    reference: self.reference.clone(),
                }),
                _ => Err(error),
            },
        }
    }

    fn parse(&self, listed: &[u8]) -> Result<BTreeMap<String, String>, ExchangeError> {
        let mut files = BTreeMap::new();
        for line in listed.split(|&byte| byte == 0).filter(|line| !line.is_empty()) {
            let text = std::str::from_utf8(line).map_err(|_| self.foreign("file name is not UTF-8"))?;
            let (facts, name) = text
                .split_once('\t')
                .ok_or_else(|| self.foreign("tree entry without a name"))?;
            match facts.split(' ').collect::<Vec<_>>()[..] {
                ["100644", "blob", id] if is_id(id) => files.insert(name.to_owned(), id.to_owned()),
                _ => return Err(self.foreign("tree entry is not a regular file")),
            };
        }
        if files.len() <= MAX_FILES {
            Ok(files)
        } else {
            Err(self.foreign("too many files"))
        }
    }

    fn foreign(&self, what: &str) -> ExchangeError {
        ExchangeError::Foreign {
            reference: self.reference.clone(),
            what: what.to_owned(),
        }
    }

    fn command(&self) -> Result<Command, CommandError> {
        let roots: Vec<&Path> = self.roots.iter().map(PathBuf::as_path).collect();
        let mut command = transferring(&self.folder, &roots)?;
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.envs(NOBODY);
        Ok(command)
    }

    /// Runs a git command that contacts the remote, within the limits.
    fn ask(&self, operation: &str, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, ExchangeError> {
        self.ask_within(&self.bounds, operation, arguments, input)
    }

    fn ask_within(
        &self,
        bounds: &Bounds<'_>,
        operation: &str,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, ExchangeError> {
        let mut command = self.command()?;
        command.arg(operation).args(arguments);
        let output = bounds.output(&mut command, &self.folder, input);
        let output = output.map_err(|source| ExchangeError::Bound {
            address: self.shown(),
            source,
        })?;
        outcome(operation, &self.address, output)
    }

    fn run<S: AsRef<OsStr>>(&self, operation: &str, arguments: &[S]) -> Result<Vec<u8>, ExchangeError> {
        let mut command = self.command()?;
        command.arg(operation).args(arguments);
        outcome(
            operation,
            &self.address,
            command.output().map_err(CommandError::NotRun)?,
        )
    }

    fn feed(&self, operation: &str, arguments: &[&str], input: &[u8]) -> Result<String, ExchangeError> {
        let mut command = self.command()?;
        command.arg(operation).args(arguments).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(CommandError::NotRun)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input).map_err(CommandError::NotRun)?;
        }
        let output = child.wait_with_output().map_err(CommandError::NotRun)?;
        let output = outcome(operation, &self.address, output)?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }
}

/// Returns a git command that may use the network, by the allowed transports. Folders of `PATH` below `roots` do not
/// count.
pub(super) fn transferring(folder: &Path, roots: &[&Path]) -> Result<Command, CommandError> {
    let mut command = networked(folder, roots)?;
    for transport in TRANSPORTS {
        command.arg("-c").arg(format!("protocol.{transport}.allow=always"));
    }
    for setting in TRANSFER_SETTINGS {
        command.args(["-c", setting]);
    }
    Ok(command)
}

/// Returns the output of git, or the error that it printed about the repository at `address`.
pub(super) fn outcome(operation: &str, address: &str, output: Output) -> Result<Vec<u8>, ExchangeError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    // `git push` reports rejected refs on stdout.
    let said = [output.stderr, output.stdout].concat();
    // ssh ends lines with CR LF.
    let said = String::from_utf8_lossy(&said).replace('\r', "");
    let message = without_secrets(&said, address);
    Err(ExchangeError::Git(CommandError::Failed {
        operation: operation.to_owned(),
        // What a server says cannot look like messages of this program, which begin at the margin.
        message: message.trim().replace('\n', "\n    "),
    }))
}

fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the address of a remote. If `remote` is a name, looks it up in the configuration of the repository, which is
/// used for nothing else.
pub(super) fn address_of(repository: &Repository, remote: &str, direction: Direction) -> Result<String, ExchangeError> {
    let is_name = !remote.contains(['/', ':', '\\']) && !remote.starts_with(['-', '.']);
    let address = if !is_name {
        remote.to_owned()
    } else {
        let get = |what: &str| {
            let key = format!("remote.{remote}.{what}");
            super::command::git(repository, "config", &["--local", "--get", &key])
        };
        let found = match direction {
            Direction::Push => get("pushurl").or_else(|_| get("url")),
            Direction::Fetch => get("url"),
        };
        let found = found.map_err(|error| match error {
            CommandError::Failed { .. } => ExchangeError::NoRemote {
                name: remote.to_owned(),
            },
            error => error.into(),
        })?;
        String::from_utf8_lossy(&found).trim_end_matches('\n').to_owned()
    };
    if !is_allowed(&address) {
        return Err(ExchangeError::Address {
            address: without_password(&address),
        });
    }
    if !is_folder(&address) || address.starts_with("file://") {
        return Ok(address);
    }
    // Use a URL, because git supports partial fetches only for URLs.
    let path = repository.work_dir().unwrap_or(repository.common_dir()).join(&address);
    match fs::canonicalize(&path) {
        Ok(whole) => Ok(format!("file://{}", whole.to_string_lossy().replace('%', "%25"))),
        Err(source) => Err(ExchangeError::Io { path, source }),
    }
}

pub(super) fn is_allowed(address: &str) -> bool {
    if address.is_empty() || address.starts_with('-') || address.contains("::") || address.chars().any(char::is_control)
    {
        return false;
    }
    match address.split_once("://") {
        Some((scheme, rest)) => TRANSPORTS.contains(&scheme) && !rest.starts_with('-'),
        None => true,
    }
}

/// Returns true if an address is a local directory: a `file://` URL, or an address without a `host:` before its first
/// slash.
fn is_folder(address: &str) -> bool {
    let has_host = address.find(':').is_some_and(|colon| !address[..colon].contains('/'));
    address.starts_with("file://") || !has_host
}

/// Returns the address without credentials, query and fragment, for display.
pub(super) fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let shown = &rest[credentials(rest).map_or(0, |found| found.len() + 1)..];
    format!("{scheme}://{}", shown.split(['?', '#']).next().unwrap_or_default())
}

/// Returns the credentials before the host. Also finds a password that contains a slash, although git rejects it.
fn credentials(rest: &str) -> Option<&str> {
    let end = rest.find('/').unwrap_or(rest.len());
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let host = &rest[..end];
    match host.rfind('@') {
        Some(at) => Some(&rest[..at]),
        None if host
            .split_once(':')
            .is_none_or(|(_, port)| host.starts_with('[') || is_port(port)) =>
        {
            None
        }
        None => rest.rfind('@').map(|at| &rest[..at]),
    }
}

/// Removes the secrets of the address from git's output.
fn without_secrets(text: &str, address: &str) -> String {
    let text = text.replace(address, &without_password(address));
    let Some((_, rest)) = address.split_once("://") else {
        return text;
    };
    let words = credentials(rest)
        .into_iter()
        .flat_map(|words| [Some(words), words.split_once(':').map(|(_, word)| word)]);
    let query = rest.split_once('?').map(|(_, query)| query);
    words
        .chain([query])
        .flatten()
        .filter(|word| !word.is_empty())
        .fold(text, |text, word| text.replace(word, "***"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_run_programs_are_refused() {
        for bad in [
            "",
            "-x",
            "ext::sh -c x",
            "fd::7",
            "--upload-pack=x",
            "git://host/x",
            "gopher://x",
            "a\nb",
            "ssh://-oProxy=x/",
        ] {
            assert!(!is_allowed(bad), "{bad}");
        }
        for good in [
            "https://host/x",
            "ssh://git@host/x",
            "git@host:x/y.git",
            "/srv/x.git",
            "../x.git",
            "file:///srv/x",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        assert!(is_folder("/srv/x") && is_folder("./a:b") && is_folder("file:///x") && !is_folder("host:x"));
        assert_eq!(without_password("https://me:secret@host/x@y"), "https://host/x@y");
        assert_eq!(without_password("git@host:x"), "git@host:x");
        assert_eq!(without_password("https://host:80/x@y"), "https://host:80/x@y");
        assert_eq!(without_password("https://[::1]/x@y"), "https://[::1]/x@y");
        assert_eq!(without_password("https://token@host/x?key=secret#y"), "https://host/x");
        assert_eq!(without_password("https://me:se/cret@host/x"), "https://host/x");
        assert_eq!(without_password("https://me:se/c?ret@host/x"), "https://host/x");
        let said = "fatal: 'https://me:secret@host/x/' and secret and key=other";
        let shown = without_secrets(said, "https://me:secret@host/x?key=other");
        assert!(!shown.contains("secret") && !shown.contains("other"), "{shown}");
    }
}
