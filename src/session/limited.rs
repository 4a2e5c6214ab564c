//! Runs a program of the user with limits on time and memory.

use std::io::{self, PipeReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::lsp::{Guard, kill_tree, memory_by_group};
use crate::model::unprintable::is_unprintable;
use crate::program::{command_at, this_program};

/// Interval between checks of the limits.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of checks between measurements of the memory.
const LOOKS_PER_MEASUREMENT: u32 = 5;
/// Time for the last output to arrive after the end.
const LINGER: Duration = Duration::from_millis(500);

/// The limits of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    pub(super) timeout: Duration,
    /// Limit on the resident memory of all processes together.
    pub(super) max_memory_bytes: u64,
    pub(super) interrupt: &'a AtomicBool,
    /// Ends the program if this process is killed.
    pub(super) guard: Option<&'a Guard>,
    /// True if the output is shown on standard error.
    pub(super) shows_output: bool,
    /// Number of bytes that are kept of the output: its end.
    pub(super) kept_bytes: usize,
}

/// The end of what a program wrote to standard output and standard error, without control characters.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) text: String,
    /// Number of lines before the text.
    pub(crate) n_lines_before: usize,
}

/// The end of the output while it grows.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    n_lines_before: usize,
}

impl Kept {
    /// Keeps the lines that begin in the last `max_bytes` bytes, or if none does, the bytes.
    fn shorten(&mut self, max_bytes: usize) {
        let n_over = self.bytes.len().saturating_sub(max_bytes);
        if n_over == 0 {
            return;
        }
        let ends = &self.bytes[n_over - 1..self.bytes.len() - 1];
        let line = ends.iter().position(|byte| *byte == b'\n');
        let removed = self.bytes.drain(..line.map_or(n_over, |line| n_over + line));
        self.n_lines_before += removed.filter(|byte| *byte == b'\n').count();
    }
}

/// The reason why a program failed or was stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LimitError {
    #[error("it cannot be run")]
    NotRun(#[from] io::Error),
    #[error("it was stopped after {} seconds", .0.as_secs())]
    TooLong(Duration),
    #[error("it was stopped at {} MB of memory", .0 / 1_000_000)]
    TooMuchMemory(u64),
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Failed(ExitStatus),
}

/// Starts the process that ends programs if this one is killed.
pub(super) fn start_guard() -> io::Result<Guard> {
    Guard::start(command_at(&this_program()?)?.arg0("codescout"))
}

/// A program and the processes of its group. They end with this value.
struct Group<'a> {
    child: Child,
    guard: Option<&'a Guard>,
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        let leader = Pid::from_child(&self.child);
        // The leader is still there, at least as a zombie, so that its id is that of no other group.
        let _ = kill_process_group(leader, Signal::KILL);
        // Fails if the guard was killed.
        let _ = self.guard.map(|guard| guard.remove(leader));
        let _ = self.child.wait();
    }
}

/// Runs a program to its end. Returns the end of its output too, in every case.
pub(super) fn run(command: &mut Command, limits: Limits<'_>) -> (Result<(), LimitError>, Printed) {
    let output = Arc::new(Mutex::new(Kept::default()));
    let ended = start(command, &output, limits).and_then(|mut group| {
        let leader = Pid::from_child(&group.child);
        watch(leader, limits).inspect_err(|_| kill_tree(leader))?;
        // Its group ends with it.
        let _ = kill_process_group(leader, Signal::KILL);
        match group.child.wait()? {
            status if status.success() => Ok(()),
            status => Err(LimitError::Failed(status)),
        }
    });
    let waited = Instant::now();
    while Arc::strong_count(&output) > 1 && waited.elapsed() < LINGER {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut kept = output.lock();
    kept.shorten(limits.kept_bytes);
    let printed = Printed {
        text: String::from_utf8_lossy(&kept.bytes).into_owned(),
        n_lines_before: kept.n_lines_before,
    };
    (ended, printed)
}

fn start<'a>(command: &mut Command, output: &Arc<Mutex<Kept>>, limits: Limits<'a>) -> Result<Group<'a>, LimitError> {
    let (from, to) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(to.try_clone()?).stderr(to);
    begin_session(command);
    let guard = limits.guard;
    guard.map_or(Ok(()), |guard| guard.add_when_started(command))?;
    let child = command.spawn();
    // The pipe must not stay open here, or its end is never seen.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let group = Group { child: child?, guard };
    let output = Arc::clone(output);
    let (shows_output, max_bytes) = (limits.shows_output, limits.kept_bytes);
    std::thread::Builder::new().spawn(move || keep_end(from, &output, shows_output, max_bytes))?;
    Ok(group)
}

/// Makes the program the leader of a session and a group, and on Linux the parent of all processes below it whose own
/// parent ends, so that [`kill_tree`] finds them. The kernel keeps this, whatever they do with their environment,
/// session or group.
///
/// If it only led a group, the end of this process would send SIGHUP to the group once the guard stops a process of it.
fn begin_session(command: &mut Command) {
    let begin = || {
        rustix::process::setsid()?;
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(Pid::INIT))?;
        Ok(())
    };
    // SAFETY: between fork and exec, the closure makes two system calls, and does not allocate.
    unsafe { command.pre_exec(begin) };
}

/// Keeps the end of what a program writes.
fn keep_end(mut from: PipeReader, output: &Mutex<Kept>, shows_output: bool, max_bytes: usize) {
    let mut buffer = [0; 8 << 10];
    let mut read = Vec::new();
    let mut is_over = false;
    while !is_over {
        match from.read(&mut buffer) {
            Ok(n_bytes @ 1..) => read.extend_from_slice(&buffer[..n_bytes]),
            _ => is_over = true,
        }
        let n_later = if is_over { 0 } else { n_incomplete(&read) };
        let later = read.split_off(read.len() - n_later);
        let new = printable(&std::mem::replace(&mut read, later));
        if shows_output {
            let _ = io::stderr().lock().write_all(new.as_bytes());
        }
        let mut kept = output.lock();
        kept.bytes.extend_from_slice(new.as_bytes());
        // Twice as much is kept meanwhile, so that few bytes are moved.
        if kept.bytes.len() > 2 * max_bytes {
            kept.shorten(max_bytes);
        }
    }
}

/// Returns the number of bytes at the end that begin a character which more bytes complete.
fn n_incomplete(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3).enumerate();
    let mut starts = last.filter(|(_, byte)| **byte & 0xc0 != 0x80);
    let n_bytes = |start: u8| match start {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    let start = starts.next().map(|(n_after, start)| (n_after + 1, n_bytes(*start)));
    start
        .filter(|(n_there, n_bytes)| n_there < n_bytes)
        .map_or(0, |(n_there, _)| n_there)
}

/// Returns text without what a terminal acts on or hides, from a program that reads a repository.
fn printable(bytes: &[u8]) -> String {
    let shown = |c: char| {
        if is_unprintable(c) && !matches!(c, '\n' | '\t') {
            ' '
        } else {
            c
        }
    };
    String::from_utf8_lossy(bytes).chars().map(shown).collect()
}

/// Waits for the end of a child, without reaping it.
fn watch(pid: Pid, limits: Limits<'_>) -> Result<(), LimitError> {
    let started = Instant::now();
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    for look in 0u32.. {
        if waitid(WaitId::Pid(pid), options).map_err(io::Error::from)?.is_some() {
            break;
        }
        if limits.interrupt.load(Ordering::Relaxed) {
            return Err(LimitError::Interrupted);
        }
        if started.elapsed() >= limits.timeout {
            return Err(LimitError::TooLong(limits.timeout));
        }
        if look % LOOKS_PER_MEASUREMENT == 0 {
            match memory_of_group(pid) {
                n_bytes if n_bytes > limits.max_memory_bytes => return Err(LimitError::TooMuchMemory(n_bytes)),
                _ => {}
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Returns the resident memory of the processes of a group in bytes, as far as it can be read.
fn memory_of_group(group: Pid) -> u64 {
    let processes = memory_by_group().into_iter();
    processes
        .filter(|(of, _)| *of == group)
        .map(|(_, n_bytes)| n_bytes)
        .sum()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use rustix::io::Errno;
    use rustix::process::test_kill_process;

    use super::*;

    const KEPT_BYTES: usize = 4 << 10;

    fn shell(script: &str, limits: Limits<'_>) -> (Result<(), LimitError>, String) {
        let (ended, printed) = run(Command::new("sh").args(["-c", script]), limits);
        (ended, printed.text)
    }

    fn limits(interrupt: &AtomicBool) -> Limits<'_> {
        Limits {
            timeout: Duration::from_secs(60),
            max_memory_bytes: u64::MAX,
            interrupt,
            guard: None,
            shows_output: false,
            kept_bytes: KEPT_BYTES,
        }
    }

    #[test]
    fn output_has_no_control_characters_and_complete_characters() {
        let never = AtomicBool::new(false);
        let hostile = "printf 'a\\033[2Jb\\302\\233cd\\233e\\342\\200\\256f\\342\\200\\213g\\357\\273\\277h\\303'; sleep 0.2; printf '\\274\\r\\tz\\342\\202'";
        let (_, printed) = shell(hostile, limits(&never));
        assert_eq!(printed, "a [2Jb cd\u{fffd}e f g h\u{fc} \tz\u{fffd}");
        for (bytes, n) in [
            (&b""[..], 0),
            (b"a", 0),
            (b"\xc3", 1),
            (b"\xf0\x9f\x98", 3),
            (b"\xe2\x82\xac", 0),
            (b"\x80\x80\x80\x80", 0),
        ] {
            assert_eq!(n_incomplete(bytes), n, "{bytes:?}");
        }
    }

    #[test]
    fn lines_that_are_not_kept_are_counted() {
        let never = AtomicBool::new(false);
        let (_, printed) = run(Command::new("seq").arg("100000"), limits(&never));
        let first: usize = printed.text.lines().next().unwrap().parse().unwrap();
        assert_eq!(first, printed.n_lines_before + 1);
        assert!(printed.text.len() > KEPT_BYTES - 8 && printed.text.ends_with("\n100000\n"));
        let mut long = Kept {
            bytes: b"a\nlong".to_vec(),
            n_lines_before: 0,
        };
        long.shorten(3);
        assert_eq!((&*long.bytes, long.n_lines_before), (&b"ong"[..], 1));
        long.bytes = b"longer\n".to_vec();
        long.shorten(3);
        assert_eq!(&*long.bytes, b"er\n");
    }

    #[test]
    fn processes_without_environment_session_or_parent_are_stopped_too() {
        let never = AtomicBool::new(false);
        let short = Limits {
            timeout: Duration::from_secs(1),
            ..limits(&never)
        };
        let (ended, pids) = shell(
            "own='echo $$; exec sleep 600'
            setsid sh -c \"$own\" &
            env -i setsid sh -c \"$own\" &
            (env -i setsid sh -c \"($own) &\" &)
            sleep 600",
            short,
        );
        assert!(matches!(ended, Err(LimitError::TooLong(_))), "{ended:?}");
        assert_eq!(pids.lines().count(), 3, "{pids}");
        for pid in pids.lines() {
            let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
            assert!(test_kill_process(pid) == Err(Errno::SRCH) || is_zombie(pid));
        }
    }

    #[test]
    fn the_end_of_the_output_is_kept_without_control_characters() {
        let never = AtomicBool::new(false);
        let (ended, output) = shell("seq 2000; printf '\\033[1mlast\\n' >&2; exit 3", limits(&never));
        assert!(matches!(ended, Err(LimitError::Failed(status)) if status.code() == Some(3)));
        assert!(
            output.ends_with("2000\n [1mlast\n") && output.len() <= KEPT_BYTES,
            "{output}"
        );
        assert!(shell("true", limits(&never)).0.is_ok());
        let missing = run(&mut Command::new("/nowhere/program"), limits(&never));
        assert!(matches!(missing.0, Err(LimitError::NotRun(_))));
    }

    /// Returns true if a process has ended, and its parent has not asked how.
    fn is_zombie(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, state)| state.starts_with(" Z"))
    }

    #[test]
    fn what_was_started_ends_with_the_program_and_at_every_limit() {
        let never = AtomicBool::new(false);
        // A process that was killed is there for a moment.
        let has_ended = |pid: &str| {
            let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
            let has_ended = || test_kill_process(pid) == Err(Errno::SRCH) || is_zombie(pid);
            (0..500).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                has_ended()
            })
        };
        let (ended, pid) = shell("sleep 600 & echo $!", limits(&never));
        assert!(ended.is_ok() && has_ended(&pid), "{pid}");
        let short = Limits {
            timeout: Duration::from_millis(300),
            ..limits(&never)
        };
        let (ended, pid) = shell("sleep 600 & echo $!; wait", short);
        assert!(
            matches!(ended, Err(LimitError::TooLong(_))) && has_ended(&pid),
            "{ended:?}"
        );
        let stopped = AtomicBool::new(true);
        let (ended, _) = shell("sleep 600 & wait", limits(&stopped));
        assert!(matches!(ended, Err(LimitError::Interrupted)));
    }

    #[test]
    fn the_memory_of_all_processes_is_limited() {
        let never = AtomicBool::new(false);
        let small = Limits {
            max_memory_bytes: 40 << 20,
            ..limits(&never)
        };
        // The output of `head` is kept in memory by `tail`, a child of the shell.
        let (ended, _) = shell(
            "(head -c 200000000 /dev/zero | tail -c 150000000; sleep 60) | sleep 60",
            small,
        );
        assert!(matches!(ended, Err(LimitError::TooMuchMemory(_))), "{ended:?}");
    }
}
