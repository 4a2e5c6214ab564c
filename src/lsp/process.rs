//! The process of a server with everything that it starts: a process group that never outlives the broker.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::servers::Found;

/// Asks the tools that servers start to work with what is there.
const OFFLINE: [(&str, &str); 3] = [
    ("CARGO_NET_OFFLINE", "true"),
    ("GOPROXY", "off"),
    ("npm_config_offline", "true"),
];

/// Ends the groups of a broker that was killed.
///
/// It is a process that reads the numbers of groups from the broker. When the broker ends, for whatever reason, the
/// pipe between them is closed. Linux can do that for a process (`PR_SET_PDEATHSIG`), but not for what that process
/// starts, and other systems cannot.
#[derive(Debug)]
pub(super) struct Guard(Mutex<ChildStdin>);

impl Guard {
    /// Starts a guard: the program `command`, which calls [`guard`].
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self(Mutex::new(pipe)))
    }

    fn tell(&self, sign: char, group: Pid) -> io::Result<()> {
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(pipe, "{sign}{}", group.as_raw_nonzero())
    }
}

/// Reads numbers of groups with `+` or `-` until the end, and then kills the groups that are left.
pub fn guard(from: impl BufRead) {
    let mut groups = HashSet::new();
    for line in from.lines().map_while(Result::ok) {
        let (sign, number) = line.split_at(line.len().min(1));
        match (sign, number.parse().ok().and_then(Pid::from_raw)) {
            ("+", Some(group)) => groups.insert(group),
            (_, Some(group)) => groups.remove(&group),
            (_, None) => continue,
        };
    }
    for group in groups {
        // Fails if the group has ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The pipes to a server.
pub(super) type Pipes = (ChildStdin, ChildStdout, ChildStderr);

/// A server that has been started. It is killed when dropped.
#[derive(Debug)]
pub(super) struct Process<'a> {
    child: Child,
    group: Pid,
    guard: &'a Guard,
}

impl<'a> Process<'a> {
    pub(super) fn start(found: &Found, root: &Path, search_path: &str, guard: &'a Guard) -> io::Result<(Self, Pipes)> {
        // A relative folder would be one of the repository.
        let folders = std::env::split_paths(search_path).filter(|folder| folder.is_absolute());
        let search_path = std::env::join_paths(folders).map_err(io::Error::other)?;
        let mut child = Command::new(&found.program)
            .args(found.server.arguments)
            .current_dir(root)
            .env("PATH", search_path)
            .envs(OFFLINE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = Pid::from_child(&child);
        let process = Self { child, group, guard };
        process.guard.tell('+', group)?;
        match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((process, (stdin, stdout, stderr))),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Waits until the process ends by itself. Whatever is left is killed when this is dropped.
    pub(super) fn wait(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while !self.has_ended() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns true if the process has ended. Its number stays taken, so that the group can be killed.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        // Each step fails only if there is nothing left to end.
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = self.guard.tell('-', self.group);
        let _ = self.child.wait();
    }
}

/// Kills a group.
pub(super) fn kill_group(group: Pid) {
    // Fails only if the group has ended.
    let _ = kill_process_group(group, Signal::KILL);
}

/// Returns the resident bytes of each process with its group.
pub fn memory_by_group() -> Vec<(Pid, u64)> {
    if cfg!(target_os = "linux") {
        memory_by_proc()
    } else {
        memory_by_ps()
    }
}

fn memory_by_proc() -> Vec<(Pid, u64)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let of_process = |entry: io::Result<fs::DirEntry>| {
        let folder = entry.ok()?.path();
        folder.file_name()?.to_str()?.parse::<u32>().ok()?;
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.split_whitespace().next()?.parse::<i64>().ok()
        };
        let kib: u64 = field("VmRSS:")?.try_into().ok()?;
        Some((Pid::from_raw(field("NSpgid:")?.try_into().ok()?)?, kib << 10))
    };
    entries.filter_map(of_process).collect()
}

fn memory_by_ps() -> Vec<(Pid, u64)> {
    let mut command = Command::new("/bin/ps");
    command
        .args(["-axo", "pgid=,rss="])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let Ok(output) = command.output() else {
        return Vec::new();
    };
    let of_process = |line: &str| {
        let (group, kib) = line.trim().split_once(' ')?;
        let kib: u64 = kib.trim().parse().ok()?;
        Some((Pid::from_raw(group.parse().ok()?)?, kib << 10))
    };
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(of_process).collect()
}
