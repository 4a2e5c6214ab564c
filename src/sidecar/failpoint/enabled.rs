//! Implements fail points for debug builds.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

use super::NotAFailPoint;

/// The armed fail point. A process can arm only one: with several, a test could not attribute the effect to one of
/// them.
static ARMED: OnceLock<Armed> = OnceLock::new();

#[derive(Debug)]
struct Armed {
    name: String,
    /// Number of remaining hits, including the one that triggers the action.
    left: AtomicUsize,
    act: Act,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// Sends SIGKILL: the process writes and cleans up nothing more.
    Kill,
    /// Sends SIGSTOP: the process sleeps until it receives SIGCONT.
    Stop,
    Fail(Errno),
}

/// Arms one fail point. `wanted` has the form `name[:n]=act`: the n-th hit (by default the first) kills or stops the
/// process, or makes [`hit`] return the given error. Later calls have no effect.
pub fn arm(wanted: &str) -> Result<(), NotAFailPoint> {
    let armed = parse(wanted).ok_or_else(|| NotAFailPoint(wanted.to_owned()))?;
    let _ = ARMED.set(armed);
    Ok(())
}

/// Marks a fail point. Performs the armed action if this is the hit that triggers it.
pub fn hit(name: &str) -> io::Result<()> {
    tracing::trace!(target: "codescout::failpoint", "hit {name}");
    let Some(armed) = ARMED.get().filter(|armed| armed.name == name) else {
        return Ok(());
    };
    let turn = |left: usize| left.checked_sub(1);
    if armed.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, turn) != Ok(1) {
        return Ok(());
    }
    match armed.act {
        Act::Kill => kill_process(getpid(), Signal::KILL).map_err(io::Error::from),
        Act::Stop => kill_process(getpid(), Signal::STOP).map_err(io::Error::from),
        Act::Fail(errno) => Err(errno.into()),
    }
}

fn parse(wanted: &str) -> Option<Armed> {
    let (place, act) = wanted.split_once('=')?;
    let (name, left) = match place.split_once(':') {
        Some((name, n)) => (name, n.parse().ok().filter(|&n| n > 0)?),
        None => (place, 1),
    };
    let act = match act {
        "kill" => Act::Kill,
        "stop" => Act::Stop,
        "eio" => Act::Fail(Errno::IO),
        "enospc" => Act::Fail(Errno::NOSPC),
        "emfile" => Act::Fail(Errno::MFILE),
        _ => return None,
    };
    Some(Armed {
        name: name.to_owned(),
        left: AtomicUsize::new(left),
        act,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn arguments_are_parsed() {
        let armed = parse("sweep.removed:3=enospc").unwrap();
        assert_eq!((armed.name.as_str(), armed.left.into_inner()), ("sweep.removed", 3));
        assert!(matches!(armed.act, Act::Fail(Errno::NOSPC)));
        for wrong in ["", "a", "a=b", "a:0=kill", "a:x=kill"] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
