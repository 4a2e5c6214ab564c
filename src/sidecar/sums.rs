//! Checksums of files that people read too, which therefore have no header: private notes and logs.
//!
//! The file `NAME.sum` has one line for each content that `NAME` may have: the first 32 hexadecimal digits of its BLAKE3
//! hash. A writer lists the present and the new content there before it writes the new one, so that the file is valid at
//! every moment, even if the writer is killed. A file without checksums is valid: an earlier build wrote it.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;

use super::atomic::write_in;
use super::beneath::{EntryKind, Folder};
use super::state::StoredFile;

/// The end of the names of files with checksums.
pub const SUM_ENDING: &str = ".sum";
/// Maximum size of a file that is read to be checked. All such files are smaller.
const MAX_BYTES: u64 = 64 << 20;

/// A file that differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Path relative to the sidecar's root.
    pub path: String,
    /// The difference.
    pub what: &'static str,
}

/// Returns the text of the file with checksums for a file whose content `old`, with the checksums `sums`, is about to be
/// replaced by `new`. Damaged content does not become valid.
pub fn sums_of(old: Option<&[u8]>, sums: Option<&[u8]>, new: &[u8]) -> String {
    let line = |content| format!("{}\n", sum_of(content));
    let old = old.filter(|old| is_intact(old, sums));
    old.map(line).into_iter().chain([line(new)]).collect()
}

/// Returns false if a file is not what was written. A file without checksums is.
pub fn is_intact(content: &[u8], sums: Option<&[u8]>) -> bool {
    let sum = sum_of(content);
    sums.is_none_or(|sums| sums.split(|byte| *byte == b'\n').any(|line| line == sum.as_bytes()))
}

fn sum_of(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..StoredFile::NAME_DIGITS].to_owned()
}

/// Writes a file with checksums atomically.
pub(super) fn write_summed(folder: &Folder, name: &str, bytes: &[u8]) -> io::Result<()> {
    let sums_name = format!("{name}{SUM_ENDING}");
    let (old, sums) = (read(folder, name).ok(), read(folder, &sums_name).ok());
    let sums = sums_of(old.as_deref(), sums.as_deref(), bytes);
    write_in(folder.as_fd(), OsStr::new(&sums_name), sums.as_bytes())?;
    write_in(folder.as_fd(), OsStr::new(name), bytes)
}

/// Removes the checksums of a file, if there are any.
pub(super) fn forget_sums(folder: &Folder, name: &OsStr) -> io::Result<()> {
    let mut sums_name = name.to_owned();
    sums_name.push(SUM_ENDING);
    match folder.remove_file(&sums_name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Adds the files below a folder that differ from their checksums to `changed`. `path` is the path of the folder.
pub(super) fn find_changed(folder: &Folder, path: &str, changed: &mut Vec<ChangedFile>) -> io::Result<()> {
    for entry in folder.entries()? {
        let Some(name) = entry.name.to_str() else { continue };
        if entry.kind == EntryKind::Folder {
            find_changed(&folder.folder(name)?, &format!("{path}/{name}"), changed)?;
        }
        let Some(of) = name.strip_suffix(SUM_ENDING).filter(|_| entry.kind == EntryKind::File) else {
            continue;
        };
        let what = match (read(folder, of), read(folder, name)) {
            (Ok(content), Ok(sums)) if is_intact(&content, Some(&sums)) => continue,
            (Ok(_), Ok(_)) => "something other than codescout has changed it",
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => "file is missing",
            _ => "it cannot be read",
        };
        changed.push(ChangedFile {
            path: format!("{path}/{of}"),
            what,
        });
    }
    Ok(())
}

fn read(folder: &Folder, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    folder.file(OsStr::new(name))?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;

    use super::super::Sidecar;

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        sidecar.write_log("run-a.json", b"{\"a\":1}").unwrap();
        sidecar.write_log("run-a.json", b"{\"b\":22}").unwrap();
        let path = sidecar.root().join("log/run-a.json");
        let good = fs::read(&path).unwrap();
        let n_changed = || sidecar.changed_logs().unwrap().len();
        assert_eq!(n_changed(), 0);
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bad).unwrap();
            assert_eq!(n_changed(), 1, "bit {bit}");
            fs::write(&path, &good[..bit / 8]).unwrap();
            assert_eq!(n_changed(), 1, "cut before bit {bit}");
        }
        // Damaged content is replaced, and does not become valid.
        sidecar.write_log("run-a.json", b"{\"c\":3}").unwrap();
        assert_eq!(n_changed(), 0);
        fs::write(&path, &good[..4]).unwrap();
        assert_eq!(n_changed(), 1);
        fs::remove_file(&path).unwrap();
        assert_eq!(sidecar.changed_logs().unwrap()[0].what, "file is missing");
        fs::remove_file(sidecar.root().join("log/run-a.json.sum")).unwrap();
        fs::write(&path, "of an earlier build").unwrap();
        assert_eq!(n_changed(), 0);
    }
}
