//! A git that ends when it is asked to. One that talks to others writes, says and keeps in memory no more than it may, too.
//!
//! What a server sends is unpacked by git into a folder; how much that will be no server has to say beforehand. So the folder and the
//! room on its disk are watched while git runs.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::sidecar::volume;

/// What has to stay free on the disk.
const SPARE_BYTES: u64 = 64 << 20;
/// No list and no message is longer.
const MAX_SAID: usize = 16 << 20;
const CHUNK_BYTES: usize = 8 << 10;
const CHUNKS_AHEAD: usize = 16;
/// How long what is said is waited for at first; twice as long each time, up to [`LOOK_EVERY`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// How often the folder and the flag are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long git has to clear up when it is ended.
const GRACE: Duration = Duration::from_secs(5);
/// How long others may hold its output open once it has ended: an ssh that stays for later calls does so for as long as it stays.
const LINGER: Duration = Duration::from_secs(2);
/// A pack can be written so that a few bytes of it open to any number.
#[cfg(target_os = "linux")]
const MAX_MEMORY: u64 = 2 << 30;

/// How much may come, and who may stop it.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    /// How many bytes a call may put into the folder.
    pub max_bytes: u64,
    /// Ends it when it is set.
    pub interrupt: &'a AtomicBool,
}

/// Why git was ended.
#[derive(Debug, thiserror::Error)]
pub enum BoundError {
    /// There is no git, or a call of the system failed.
    #[error("cannot run the git executable")]
    NotRun(#[source] io::Error),
    /// More came than may.
    #[error("more than {allowed} bytes come from there")]
    TooMuch {
        /// How much may.
        allowed: u64,
    },
    /// It never stops talking.
    #[error("more than {MAX_SAID} bytes of messages come from there")]
    TooTalkative,
    /// The disk is nearly full.
    #[error("only {free} bytes are left on the disk of {}", .folder.display())]
    NoRoom {
        /// How much is free.
        free: u64,
        /// Where it was to go.
        folder: PathBuf,
    },
    /// Somebody asked for it.
    #[error("interrupted")]
    Interrupted,
}

enum Said {
    Output(Vec<u8>),
    Message(Vec<u8>),
}

impl Bounds<'_> {
    /// Runs `command`, which writes below `folder`, to its end.
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

/// Runs `command`, which only reads, to its end, or until `interrupt` is set.
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

/// What a child says until it ends, at most `max_said` bytes, while `check` says so.
fn watch(child: &mut Child, max_said: usize, check: &dyn Fn() -> Result<(), BoundError>) -> Result<Output, BoundError> {
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
            is_open = take(&said, pause, max_said, &mut output)?;
            // Who has said all is about to end.
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
        is_open = take(&said, LOOK_EVERY, max_said, &mut output)?;
        if output.stdout.len() + output.stderr.len() > n_said {
            heard = Instant::now();
        } else if heard.elapsed() >= LINGER {
            break;
        }
        check()?;
    }
    Ok(output)
}

/// What comes within `pause`; whether more may.
fn take(said: &Receiver<Said>, pause: Duration, max_said: usize, output: &mut Output) -> Result<bool, BoundError> {
    match said.recv_timeout(pause) {
        Ok(Said::Output(bytes)) => output.stdout.extend(bytes),
        Ok(Said::Message(bytes)) => output.stderr.extend(bytes),
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => return Ok(false),
    }
    if output.stdout.len().max(output.stderr.len()) > max_said {
        Err(BoundError::TooTalkative)
    } else {
        Ok(true)
    }
}

/// Both streams of a child, piece by piece. Whoever no longer listens ends those that read.
fn listen(child: &mut Child) -> io::Result<Receiver<Said>> {
    let (sender, said) = sync_channel(CHUNKS_AHEAD);
    if let Some(stdout) = child.stdout.take() {
        hand_on(stdout, sender.clone(), Said::Output)?;
    }
    if let Some(stderr) = child.stderr.take() {
        hand_on(stderr, sender, Said::Message)?;
    }
    Ok(said)
}

fn hand_on(mut from: impl Read + Send + 'static, to: SyncSender<Said>, said: fn(Vec<u8>) -> Said) -> io::Result<()> {
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

/// Gives a child all that it is to read. One that reads nothing is none the worse.
fn feed(child: &mut Child, input: &[u8]) -> io::Result<()> {
    match child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Politely first, so that git ends those that it has started.
fn end(child: &mut Child) {
    // Its number may be another process's by now.
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

/// Those that the child starts from now on have the same limit. Best effort: it guards against one attack among several.
#[cfg(target_os = "linux")]
fn limit_memory(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit {
        current: Some(MAX_MEMORY),
        maximum: Some(MAX_MEMORY),
    };
    if let Err(error) = prlimit(Some(Pid::from_child(child)), Resource::Data, limit) {
        tracing::debug!("git runs without a limit of memory: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_child: &Child) {}

/// Of all files below a folder. What goes away meanwhile is passed over.
fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

#[cfg(all(test, unix))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn run(script: &str, max_bytes: u64, interrupt: &AtomicBool) -> Result<Output, BoundError> {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(folder.path());
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        Bounds { max_bytes, interrupt }.output(&mut shell, folder.path(), b"in")
    }

    #[test]
    fn what_is_within_bounds_is_told_as_it_is() {
        let never = AtomicBool::new(false);
        let output = run("cat; echo err >&2; echo file > file; exit 3", 100, &never).unwrap();
        assert_eq!((output.stdout, output.stderr), (b"in".to_vec(), b"err\n".to_vec()));
        assert_eq!(output.status.code(), Some(3));
        // Somebody else who keeps the streams open is not waited for to the end.
        let output = run("sleep 60 & echo done", 100, &never).unwrap();
        assert_eq!(output.stdout, b"done\n");
    }

    #[test]
    fn who_writes_or_says_too_much_or_is_not_wanted_any_more_is_ended() {
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
            Err(BoundError::TooTalkative)
        ));
        assert!(matches!(
            run("cat /dev/zero >&2", 1 << 20, &never),
            Err(BoundError::TooTalkative)
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
