//! The log of background runs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::queue::Queue;
use crate::git::Repository;
use crate::sidecar::{Sidecar, failpoint, remove_stale_temporaries, write_atomic};

/// Maximum size of the log. A longer log is truncated to its second half before the next line is added.
const MAX_BYTES: u64 = 128 << 10;

/// The log of the runs that hooks start. It is `log/hooks.log` in the sidecar, or `codescout-hooks/hooks.log` in the
/// common git directory if the sidecar cannot be written. Each line is one JSON object, the oldest first. The log has
/// at most 128 KiB.
#[derive(Clone, Debug)]
pub struct HookLog {
    sidecar_root: Option<PathBuf>,
    last_resort: PathBuf,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The time, as in `2024-05-06T07:08:09.123Z`.
    pub at: String,
    /// The hook's name.
    pub event: String,
    /// The root of the worktree, or the bare repository.
    pub repo: String,
    /// The indexed revision: `HEAD` or a branch.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The outcome.
    pub outcome: RunOutcome,
    /// The commit's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Number of blobs that were read and extracted.
    #[serde(default)]
    pub new_blobs: usize,
    /// Duration in milliseconds.
    #[serde(default)]
    pub took_ms: u64,
    /// The error, if the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// The run started. If no other line follows, it was killed or is still running.
    Started,
    /// The index is up to date.
    Indexed,
    /// The run was interrupted. Completed work is kept.
    Interrupted,
    /// The run failed.
    Failed,
}

impl RunOutcome {
    /// The word in the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Indexed => "indexed",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

impl HookLog {
    /// Returns the log of a repository whose sidecar is at `sidecar_root`, if that is known.
    pub fn of(repository: &Repository, sidecar_root: Option<&Path>) -> Self {
        Self {
            sidecar_root: sidecar_root.map(Path::to_owned),
            last_resort: Queue::of(repository).path("hooks.log"),
        }
    }

    /// Adds a line. Fails only if neither of the two files can be written.
    pub(super) fn append(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.append_to_sidecar(&line)
            .or_else(|_| append_bounded(&self.last_resort, &line))
    }

    fn append_to_sidecar(&self, line: &[u8]) -> io::Result<()> {
        let root = self.sidecar_root.as_deref().ok_or(io::ErrorKind::NotFound)?;
        // A file at this path may be part of the checkout instead of a sidecar.
        Sidecar::open(root).map_err(io::Error::other)?;
        let folder = root.join("log");
        if !folder.exists() {
            fs::create_dir(&folder)?;
        }
        if !fs::symlink_metadata(&folder)?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        append_bounded(&folder.join("hooks.log"), line)
    }

    /// Removes unfinished files of a killed worker. Only the worker may call this.
    pub(super) fn clear(&self) -> io::Result<()> {
        let root = self.sidecar_root.as_deref().ok_or(io::ErrorKind::NotFound)?;
        Sidecar::open(root).map_err(io::Error::other)?;
        remove_stale_temporaries(&root.join("log"))
    }

    /// Returns the paths of both files, the preferred one first.
    pub fn paths(&self) -> Vec<PathBuf> {
        let in_sidecar = self
            .sidecar_root
            .as_deref()
            .map(|root| root.join("log").join("hooks.log"));
        in_sidecar.into_iter().chain([self.last_resort.clone()]).collect()
    }

    /// Returns all readable lines of both files, the oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        let paths = self.paths().into_iter();
        let mut entries: Vec<Entry> = paths
            .filter_map(|path| read_end(&path).ok())
            .flat_map(|text| parse(&text))
            .collect();
        entries.sort_by(|a, b| a.at.cmp(&b.at));
        entries
    }
}

fn parse(text: &[u8]) -> Vec<Entry> {
    text.split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn append_bounded(path: &Path, line: &[u8]) -> io::Result<()> {
    let mut file = open(
        path,
        OpenOptions::new().create(true).append(true).read(true).mode(0o644),
    )?;
    let length = file.metadata()?.len();
    let line = if ends_whole(&file, length)? {
        line.to_vec()
    } else {
        // A crash may have left a partial line. The next line must begin on a new line.
        [b"\n", line].concat()
    };
    if length + line.len() as u64 > MAX_BYTES {
        let kept = read_end(path)?;
        let half = &kept[kept.len() / 2..];
        let start = half.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        return write_atomic(path, &[&half[start..], &line].concat());
    }
    let mut write = || {
        let (first, second) = line.split_at(if cfg!(debug_assertions) { line.len() / 2 } else { 0 });
        file.write_all(first)?;
        failpoint::hit("hooks.log_half")?;
        file.write_all(second)?;
        failpoint::hit("hooks.log_written")
    };
    write().inspect_err(|_| {
        // Removes a partial line, so that the next line remains readable.
        let _ = file.set_len(length);
    })
}

fn ends_whole(file: &File, length: u64) -> io::Result<bool> {
    let Some(at) = length.checked_sub(1) else {
        return Ok(true);
    };
    let mut last = [0];
    file.read_exact_at(&mut last, at)?;
    Ok(last == *b"\n")
}

/// Reads the last 128 KiB of a log.
fn read_end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path, OpenOptions::new().read(true))?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file. Fails for symbolic links, and also for pipes, because reading those would block.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::from(io::ErrorKind::InvalidInput))
    }
}

/// Formats a time in UTC, as in `2024-05-06T07:08:09.123Z`.
pub(super) fn timestamp(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59.000Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59.000Z");
    }

    #[test]
    fn a_log_stays_bounded_and_keeps_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.log");
        let line = |n: usize| {
            let entry = Entry {
                at: format!("{n:06}"),
                event: "post-commit".to_owned(),
                repo: "x".repeat(200),
                reference: "HEAD".to_owned(),
                outcome: RunOutcome::Indexed,
                commit: None,
                new_blobs: n,
                took_ms: 1,
                why: None,
            };
            [serde_json::to_vec(&entry).unwrap(), b"\n".to_vec()].concat()
        };
        for n in 0..2000 {
            append_bounded(&path, &line(n)).unwrap();
        }
        assert!(fs::metadata(&path).unwrap().len() <= MAX_BYTES);
        let entries = parse(&read_end(&path).unwrap());
        assert!(entries.len() > 100);
        assert_eq!(entries.last().unwrap().new_blobs, 1999);
        assert!(
            entries
                .windows(2)
                .all(|pair| pair[0].new_blobs + 1 == pair[1].new_blobs)
        );
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.log");
        append_bounded(&path, b"one\n").unwrap();
        append_bounded(&path, b"tw").unwrap();
        append_bounded(&path, b"three\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\ntw\nthree\n");
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        fs::write(&target, "").unwrap();
        let path = folder.path().join("hooks.log");
        std::os::unix::fs::symlink(&target, &path).unwrap();
        append_bounded(&path, b"x\n").unwrap_err();
        assert_eq!(fs::read(&target).unwrap(), b"");
    }
}
