//! Runs a program of the user with limits on time and memory.

use std::io::{self, PipeReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::lsp::memory_by_group;

/// Interval between checks of the limits.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of checks between measurements of the memory.
const LOOKS_PER_MEASUREMENT: u32 = 5;
/// Time for the last output to arrive after the end.
const LINGER: Duration = Duration::from_millis(500);
/// Number of bytes that are kept of the output: its end.
const KEPT_BYTES: usize = 4 << 10;

/// The limits of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    pub(super) timeout: Duration,
    /// Limit on the resident memory of all processes together.
    pub(super) max_memory_bytes: u64,
    pub(super) interrupt: &'a AtomicBool,
    /// True if the output is shown on standard error.
    pub(super) shows_output: bool,
}

/// The reason why a program failed or was stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum LimitError {
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

/// A program and all processes that it started, except those that began a group of their own. They end with this value.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // The leader is still there, at least as a zombie, so that its id is that of no other group.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Runs a program to its end. Returns the end of its output too, in every case.
pub(super) fn run(command: &mut Command, limits: Limits<'_>) -> (Result<(), LimitError>, String) {
    let output = Arc::new(Mutex::new(Vec::new()));
    let ended = start(command, &output, limits.shows_output).and_then(|mut group| {
        watch(&group.0, limits)?;
        // Nothing that it started stays behind.
        let _ = kill_process_group(Pid::from_child(&group.0), Signal::KILL);
        match group.0.wait()? {
            status if status.success() => Ok(()),
            status => Err(LimitError::Failed(status)),
        }
    });
    let waited = Instant::now();
    while Arc::strong_count(&output) > 1 && waited.elapsed() < LINGER {
        std::thread::sleep(Duration::from_millis(5));
    }
    let end = String::from_utf8_lossy(&output.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
    (ended, end)
}

fn start(command: &mut Command, output: &Arc<Mutex<Vec<u8>>>, shows_output: bool) -> Result<Group, LimitError> {
    let (from, to) = io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(to.try_clone()?)
        .stderr(to)
        .process_group(0);
    let child = command.spawn();
    // The pipe must not stay open here, or its end is never seen.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let group = Group(child?);
    let output = Arc::clone(output);
    std::thread::Builder::new().spawn(move || keep_end(from, &output, shows_output))?;
    Ok(group)
}

/// Keeps the end of what a program writes.
fn keep_end(mut from: PipeReader, output: &Mutex<Vec<u8>>, shows_output: bool) {
    let mut buffer = [0; 8 << 10];
    while let Ok(n_bytes @ 1..) = from.read(&mut buffer) {
        let new = &mut buffer[..n_bytes];
        // A terminal gets no control characters from a program that reads a repository.
        let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\n' | b'\t') || *byte == 0x7f;
        new.iter_mut()
            .filter(|byte| is_control(byte))
            .for_each(|byte| *byte = b' ');
        if shows_output {
            let _ = io::stderr().lock().write_all(new);
        }
        let mut kept = output.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(new);
        let n_over = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..n_over);
    }
}

/// Waits for the end of a child, without reaping it.
fn watch(child: &Child, limits: Limits<'_>) -> Result<(), LimitError> {
    let pid = Pid::from_child(child);
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

    fn shell(script: &str, limits: Limits<'_>) -> (Result<(), LimitError>, String) {
        run(Command::new("sh").args(["-c", script]), limits)
    }

    fn limits(interrupt: &AtomicBool) -> Limits<'_> {
        Limits {
            timeout: Duration::from_secs(60),
            max_memory_bytes: u64::MAX,
            interrupt,
            shows_output: false,
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
