//! The process of a server with everything that it starts: a process group that never outlives the broker.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group, waitid};

use super::servers::Found;
use crate::program::{absolute_folders, command, command_at, joined_path};

/// Asks the tools that servers start to work with what is there.
const OFFLINE: [(&str, &str); 3] = [
    ("CARGO_NET_OFFLINE", "true"),
    ("GOPROXY", "off"),
    ("npm_config_offline", "true"),
];

/// Number of times that the processes that a process started are killed. While they are, they may start others.
const KILL_ROUNDS: usize = 100;
/// Interval between them.
const KILL_EVERY: Duration = Duration::from_millis(5);

/// Ends what a process started that was killed.
///
/// It is a process that reads the numbers of leaders of groups from this one. When this one ends, for whatever reason,
/// the pipe between them is closed. Linux can do that for a process (`PR_SET_PDEATHSIG`), but not for what that process
/// starts, and other systems cannot.
#[derive(Debug)]
pub struct Guard(Mutex<Child>);

impl Guard {
    /// Starts a guard. `command` runs this program, which calls [`guard`].
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let process = command
            .args(["broker", "--guard"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self(Mutex::new(process)))
    }

    /// Adds a leader of a group.
    pub(super) fn add(&self, leader: Pid) -> io::Result<()> {
        self.tell('+', leader)
    }

    /// Makes the process of `command`, a leader, add itself before it runs the program: if this process adds it, it may
    /// be killed before. It is not removed if the program cannot be run.
    pub fn add_when_started(&self, command: &mut Command) -> io::Result<()> {
        let process = self.0.lock();
        let pipe = process.stdin.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut pipe = File::from(pipe.as_fd().try_clone_to_owned()?);
        let add = move || {
            let mut line = [0; 16];
            let mut rest = &mut line[..];
            writeln!(rest, "+{}", getpid().as_raw_nonzero())?;
            let n_rest = rest.len();
            pipe.write_all(&line[..line.len() - n_rest])
        };
        // SAFETY: between fork and exec, the closure makes two system calls, and does not allocate.
        unsafe { command.pre_exec(add) };
        Ok(())
    }

    /// Removes a leader, whose number may be given to another process from now on.
    pub fn remove(&self, leader: Pid) -> io::Result<()> {
        self.tell('-', leader)
    }

    fn tell(&self, sign: char, leader: Pid) -> io::Result<()> {
        let mut process = self.0.lock();
        let pipe = process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(pipe, "{sign}{}", leader.as_raw_nonzero())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let process = self.0.get_mut();
        // Whoever drops it has ended the processes. Each step fails only if the guard has ended.
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// Reads numbers of leaders with `+` or `-` until the end, and then kills those that are left and what they started.
pub fn guard(from: impl BufRead) {
    let mut leaders = HashSet::new();
    for line in from.lines().map_while(Result::ok) {
        let (sign, number) = line.split_at(line.len().min(1));
        match (sign, number.parse().ok().and_then(Pid::from_raw)) {
            ("+", Some(leader)) => leaders.insert(leader),
            (_, Some(leader)) => leaders.remove(&leader),
            (_, None) => continue,
        };
    }
    leaders.into_iter().for_each(kill_tree);
}

/// Kills a leader of a group, its group, and on Linux all other processes that it started, also through others.
///
/// Those whose parent has ended are found if the leader is their reaper (`PR_SET_CHILD_SUBREAPER`). It is stopped first:
/// its end would give them away.
pub fn kill_tree(leader: Pid) {
    // Each step fails for processes that have ended.
    let _ = kill_process(leader, Signal::STOP);
    for _ in 0..KILL_ROUNDS {
        let started = descendants(leader).into_iter();
        if started.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count() == 0 {
            break;
        }
        thread::sleep(KILL_EVERY);
    }
    kill_group(leader);
}

/// Returns the processes that a process started, also through others, and that run, as far as `/proc` shows them.
fn descendants(of: Pid) -> Vec<Pid> {
    let processes: Vec<(Pid, Pid, bool)> = entries_of_proc().filter_map(parent).collect();
    let mut all = vec![of];
    let mut n_seen = 0;
    while let Some(parent) = all.get(n_seen).copied() {
        n_seen += 1;
        let children = processes
            .iter()
            .filter(|(_, of, _)| *of == parent)
            .map(|(pid, ..)| *pid);
        // Numbers that were given to other processes meanwhile could form a ring.
        let new: Vec<Pid> = children.filter(|pid| !all.contains(pid)).collect();
        all.extend(new);
    }
    let runs = |pid: &Pid| processes.iter().any(|(of, _, runs)| of == pid && *runs);
    all.into_iter().skip(1).filter(runs).collect()
}

/// Returns a process with its parent, and whether it runs.
fn parent(process: PathBuf) -> Option<(Pid, Pid, bool)> {
    let pid = Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)?;
    let stat = fs::read(process.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name before it may contain any bytes.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let runs = !matches!(fields.next()?, "Z" | "X");
    Some((pid, Pid::from_raw(fields.next()?.parse().ok()?)?, runs))
}

fn entries_of_proc() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
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
        let mut child = command_at(&found.program)?
            .args(found.server.arguments)
            .current_dir(root)
            .env("PATH", joined_path(absolute_folders(search_path.as_ref())))
            .envs(OFFLINE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = Pid::from_child(&child);
        let process = Self { child, group, guard };
        process.guard.add(group)?;
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
        let _ = self.guard.remove(self.group);
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
    let of_process = |folder: PathBuf| {
        folder.file_name()?.to_str()?.parse::<u32>().ok()?;
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.split_whitespace().next()?.parse::<i64>().ok()
        };
        let kib: u64 = field("VmRSS:")?.try_into().ok()?;
        Some((Pid::from_raw(field("NSpgid:")?.try_into().ok()?)?, kib << 10))
    };
    entries_of_proc().filter_map(of_process).collect()
}

fn memory_by_ps() -> Vec<(Pid, u64)> {
    let Ok(mut command) = command("/bin/ps", &[]) else {
        return Vec::new();
    };
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
