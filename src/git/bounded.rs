//! Runs git subprocesses that can be interrupted. Limits disk space, output and memory of those that use the network.
//!
//! git unpacks the data of a server into a directory, and a server need not declare how much data it sends. Therefore
//! the size of the directory and the free disk space are checked while git runs.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::model::{ErrorKind, Explain, Explanation};
use crate::sidecar::volume;

/// git is stopped if less disk space than this is free.
const SPARE_BYTES: u64 = 64 << 20;
/// Size limit of stdout and of stderr, above the size of any ref list or message.
const MAX_SAID: usize = 16 << 20;
const CHUNK_BYTES: usize = 8 << 10;
const CHUNKS_AHEAD: usize = 16;
/// First interval of waiting for output. Each interval is twice as long as the one before, up to [`LOOK_EVERY`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Interval between checks of the directory and of the interrupt flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time that git gets to clean up after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// Time that other processes may hold the output open after git has exited. For example, an ssh connection that is
/// shared by later calls holds it for as long as the connection exists.
const LINGER: Duration = Duration::from_secs(2);
/// Limit on the memory of git. A small pack can be crafted to decompress to any size.
#[cfg(target_os = "linux")]
const MAX_MEMORY: u64 = 2 << 30;

/// Limits of a subprocess that uses the network.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    /// Maximum number of bytes that one call may add to the directory.
    pub max_bytes: u64,
    /// The subprocess is stopped at this time.
    pub until: Option<Instant>,
    /// Stops the subprocess when set.
    pub interrupt: &'a AtomicBool,
}

/// The reason why a git subprocess could not run or was stopped.
#[derive(Debug, thiserror::Error)]
pub enum BoundError {
    /// git is not installed, or a system call failed.
    #[error("cannot run the git executable")]
    NotRun(#[source] io::Error),
    /// The directory grew beyond the limit.
    #[error("the transfer exceeds {allowed} bytes")]
    TooMuch {
        /// The limit in bytes.
        allowed: u64,
    },
    /// The time is over.
    #[error("the transfer takes too long")]
    TooLong,
    /// The output exceeds the limit.
    #[error("the output of git exceeds {MAX_SAID} bytes")]
    TooMuchOutput,
    /// The disk is nearly full.
    #[error("the disk of {} has only {free} bytes free", .folder.display())]
    NoRoom {
        /// Number of free bytes.
        free: u64,
        /// The directory that git writes to.
        folder: PathBuf,
    },
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

impl Explain for BoundError {
    fn explain(&self) -> Explanation {
        match self {
            Self::TooMuch { .. } => Explanation::hinting("raise the limit with --max-size, such as 8G or 500M"),
            Self::Interrupted => Explanation::of_kind(ErrorKind::Interrupted),
            _ => Explanation::default(),
        }
    }
}

enum Said {
    Output(Vec<u8>),
    Message(Vec<u8>),
}

impl Bounds<'_> {
    /// Runs `command`, which writes below `folder`, with `input` on stdin. Returns its output.
    pub(super) fn output(&self, command: &mut Command, folder: &Path, input: &[u8]) -> Result<Output, BoundError> {
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(BoundError::NotRun)?;
        limit_memory(&child);
        let fed = feed(&mut child, input).map_err(BoundError::NotRun);
        let before = bytes_below(folder);
        let outcome = fed.and_then(|()| watch(&mut child, MAX_SAID, &|| self.check(folder, before)));
        if outcome.is_err() {
            end(&mut child);
        }
        outcome
    }

    fn check(&self, folder: &Path, before: u64) -> Result<(), BoundError> {
        go_on(self.interrupt)?;
        if self.until.is_some_and(|until| Instant::now() > until) {
            return Err(BoundError::TooLong);
        }
        if bytes_below(folder).saturating_sub(before) > self.max_bytes {
            let allowed = self.max_bytes;
            return Err(BoundError::TooMuch { allowed });
        }
        match volume(folder).map_err(BoundError::NotRun)?.free_bytes {
            free if free < SPARE_BYTES => Err(BoundError::NoRoom {
                free,
                folder: folder.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// Runs `command`, which must not write, until it exits or `interrupt` is set. Returns its output.
pub(super) fn output_until(command: &mut Command, interrupt: &AtomicBool) -> Result<Output, BoundError> {
    let mut child = command.spawn().map_err(BoundError::NotRun)?;
    let outcome = watch(&mut child, usize::MAX, &|| go_on(interrupt));
    if outcome.is_err() {
        end(&mut child);
    }
    outcome
}

fn go_on(interrupt: &AtomicBool) -> Result<(), BoundError> {
    if interrupt.load(Ordering::Relaxed) {
        Err(BoundError::Interrupted)
    } else {
        Ok(())
    }
}

/// Collects the output of a child until it exits. Fails if stdout or stderr exceeds `max_output_bytes` or if `check`
/// fails.
fn watch(
    child: &mut Child,
    max_output_bytes: usize,
    check: &dyn Fn() -> Result<(), BoundError>,
) -> Result<Output, BoundError> {
    let said = listen(child).map_err(BoundError::NotRun)?;
    let mut output = Output {
        status: ExitStatus::default(),
        stdout: Vec::new(),
        stderr: Vec::new(),
    };
    let (mut pause, mut looked) = (FIRST_PAUSE, Instant::now());
    let mut is_open = true;
    loop {
        if is_open {
            is_open = take(&said, pause, max_output_bytes, &mut output)?;
            // A child that has closed its output is about to exit.
            pause = if is_open { pause } else { FIRST_PAUSE };
        } else {
            std::thread::sleep(pause);
        }
        pause = (2 * pause).min(LOOK_EVERY);
        if let Some(status) = child.try_wait().map_err(BoundError::NotRun)? {
            output.status = status;
            break;
        }
        if looked.elapsed() >= LOOK_EVERY {
            check()?;
            looked = Instant::now();
        }
    }
    check()?;
    let mut heard = Instant::now();
    while is_open {
        let n_said = output.stdout.len() + output.stderr.len();
        is_open = take(&said, LOOK_EVERY, max_output_bytes, &mut output)?;
        if output.stdout.len() + output.stderr.len() > n_said {
            heard = Instant::now();
        } else if heard.elapsed() >= LINGER {
            break;
        }
        check()?;
    }
    Ok(output)
}

/// Receives output for up to `pause` and appends it to `output`. Returns false once both streams are closed.
fn take(
    said: &Receiver<Said>,
    pause: Duration,
    max_output_bytes: usize,
    output: &mut Output,
) -> Result<bool, BoundError> {
    match said.recv_timeout(pause) {
        Ok(Said::Output(bytes)) => output.stdout.extend(bytes),
        Ok(Said::Message(bytes)) => output.stderr.extend(bytes),
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => return Ok(false),
    }
    if output.stdout.len().max(output.stderr.len()) > max_output_bytes {
        Err(BoundError::TooMuchOutput)
    } else {
        Ok(true)
    }
}

/// Spawns threads that read stdout and stderr of a child in chunks. The threads end once the receiver is dropped.
fn listen(child: &mut Child) -> io::Result<Receiver<Said>> {
    let (sender, said) = sync_channel(CHUNKS_AHEAD);
    if let Some(stdout) = child.stdout.take() {
        forward_output(stdout, sender.clone(), Said::Output)?;
    }
    if let Some(stderr) = child.stderr.take() {
        forward_output(stderr, sender, Said::Message)?;
    }
    Ok(said)
}

fn forward_output(
    mut from: impl Read + Send + 'static,
    to: SyncSender<Said>,
    said: fn(Vec<u8>) -> Said,
) -> io::Result<()> {
    let read = move || {
        let mut buffer = [0; CHUNK_BYTES];
        while let Ok(n_bytes @ 1..) = from.read(&mut buffer) {
            if to.send(said(buffer[..n_bytes].to_vec())).is_err() {
                break;
            }
        }
    };
    std::thread::Builder::new().spawn(read).map(drop)
}

/// Writes `input` to the stdin of the child. A child that closes stdin early is not an error.
fn feed(child: &mut Child, input: &[u8]) -> io::Result<()> {
    match child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Stops the child. Sends SIGTERM first, so that git can stop its own children.
fn end(child: &mut Child) {
    // If the child has exited, its process id may already belong to another process.
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::Pid::from_child(child), rustix::process::Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(LOOK_EVERY),
            _ => return,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Limits the memory of processes that the child starts from now on. Errors are ignored, because the limit prevents
/// only one of several attacks.
#[cfg(target_os = "linux")]
fn limit_memory(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit {
        current: Some(MAX_MEMORY),
        maximum: Some(MAX_MEMORY),
    };
    if let Err(error) = prlimit(Some(Pid::from_child(child)), Resource::Data, limit) {
        tracing::debug!("git runs without a memory limit: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_child: &Child) {}

/// Returns the total size of the files below a directory, in bytes. Ignores files that disappear meanwhile.
fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn run(script: &str, max_bytes: u64, interrupt: &AtomicBool) -> Result<Output, BoundError> {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(folder.path());
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        Bounds {
            max_bytes,
            until: None,
            interrupt,
        }
        .output(&mut shell, folder.path(), b"in")
    }

    #[test]
    fn output_within_bounds_is_returned() {
        let never = AtomicBool::new(false);
        let output = run("cat; echo err >&2; echo file > file; exit 3", 100, &never).unwrap();
        assert_eq!((output.stdout, output.stderr), (b"in".to_vec(), b"err\n".to_vec()));
        assert_eq!(output.status.code(), Some(3));
        // The call does not wait forever for a process that holds the streams open.
        let output = run("sleep 60 & echo done", 100, &never).unwrap();
        assert_eq!(output.stdout, b"done\n");
    }

    #[test]
    fn subprocess_is_ended_beyond_limits_or_on_interrupt() {
        let never = AtomicBool::new(false);
        let endless = "while :; do head -c 100000 /dev/zero >> file; done";
        let ended = run(endless, 1 << 20, &never);
        assert!(
            matches!(ended, Err(BoundError::TooMuch { allowed: 1_048_576 })),
            "{ended:?}"
        );
        assert!(matches!(
            run("head -c 2000 /dev/zero > file", 1000, &never),
            Err(BoundError::TooMuch { .. })
        ));
        assert!(matches!(
            run("cat /dev/zero", 1 << 20, &never),
            Err(BoundError::TooMuchOutput)
        ));
        assert!(matches!(
            run("cat /dev/zero >&2", 1 << 20, &never),
            Err(BoundError::TooMuchOutput)
        ));
        assert!(matches!(
            run("sleep 60", 1 << 20, &AtomicBool::new(true)),
            Err(BoundError::Interrupted)
        ));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_has_a_limit() {
        let output = run("cat > in; ulimit -d", 100, &AtomicBool::new(false)).unwrap();
        assert_eq!(output.stdout, b"2097152\n");
    }
}
