//! Compares the stat data of tracked files with the index, to find the files whose content must be compared.
//!
//! Directories are processed in parallel, with one system call per file and a few per directory. No file is opened.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::index::entry::stat::Time;
use gix::index::entry::{Stat, stat};
use rayon::prelude::*;
use rustix::fs::FileType;

use super::beneath::{self, Root};
use super::index::Tracked;
use super::tree::FileMode;

/// Properties of the file system and of the index. Most come from `core.*` settings.
#[derive(Clone, Copy)]
pub(super) struct DiskRules {
    pub(super) stat: stat::Options,
    pub(super) has_executable_bit: bool,
    pub(super) has_symlinks: bool,
    pub(super) ignores_case: bool,
    pub(super) precomposes_unicode: bool,
    /// The time when the index was written.
    pub(super) index_time: Time,
}

/// The result of a scan.
#[derive(Default)]
pub(super) struct Scan {
    /// Tracked files that may differ from the index: their positions in the list of tracked files, and their stat data.
    pub(super) suspects: Vec<(usize, Stat)>,
    /// Tracked files that do not exist, as positions in the list of tracked files.
    pub(super) absent: Vec<usize>,
    /// Untracked entries of directories that contain tracked files, in no particular order.
    pub(super) unknown: Vec<Unknown>,
    /// Directories that could not be listed, with the error.
    pub(super) unreadable: Vec<(Vec<u8>, io::Error)>,
    /// The directories listed by this scan.
    pub(super) listed: Vec<(Vec<u8>, Listing)>,
    /// Number of directories that contain tracked files at any depth.
    pub(super) n_folders: usize,
}

/// An untracked directory entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unknown {
    pub(super) path: Vec<u8>,
    pub(super) is_folder: bool,
}

/// The untracked entries that a directory contained when it was last listed.
#[derive(Clone)]
pub(super) struct Listing {
    /// The stat data of the directory, from before it was listed.
    pub(super) stat: Stat,
    /// A digest of the names of tracked files and subdirectories in the directory.
    tracked_names: u64,
    unknown: Arc<[Unknown]>,
    /// True if the directory is a git directory whose files were committed.
    is_git_dir: bool,
}

/// Maps directories to their listings.
pub(super) type Listings = HashMap<Vec<u8>, Listing>;

/// A directory that contains tracked files at any depth.
struct Folder<'t> {
    /// The path without a trailing slash; empty for the root.
    path: &'t [u8],
    parent: usize,
    /// Positions of the tracked files directly in the directory.
    files: Vec<usize>,
    /// Names of the subdirectories that contain tracked files.
    subfolders: Vec<&'t [u8]>,
}

/// Compares the tracked files on disk with the index. Returns `None` if interrupted.
///
/// Reuses a listing in `known` if the directory's stat data have not changed.
pub(super) fn scan(
    root: &Root,
    tracked: &[Tracked<'_>],
    rules: &DiskRules,
    known: &Listings,
    interrupt: &AtomicBool,
) -> Option<Scan> {
    let folders = folders_of(tracked);
    let scanner = Scanner {
        root,
        tracked,
        rules,
        known,
    };
    let mut scans: Vec<(Presence, Scan)> = folders
        .par_iter()
        .with_min_len(8)
        .map(|folder| {
            if interrupt.load(Ordering::Relaxed) {
                (Presence::Absent, Scan::default())
            } else {
                scanner.scan(folder)
            }
        })
        .collect();
    if interrupt.load(Ordering::Relaxed) {
        return None;
    }
    let mut whole = Scan {
        n_folders: folders.len(),
        ..Scan::default()
    };
    let mut presence = vec![Presence::Here; folders.len()];
    for (at, folder) in folders.iter().enumerate() {
        let (own, part) = std::mem::take(&mut scans[at]);
        // A parent precedes its subdirectories. Files below a symbolic link count as absent.
        presence[at] = own.max(presence[folder.parent]);
        match presence[at] {
            Presence::Here => whole.append(part),
            Presence::GitDir => whole.append(Scan {
                unknown: Vec::new(),
                ..part
            }),
            // It is unknown if the files have changed, so report only the error.
            Presence::Unreadable => whole.unreadable.extend(part.unreadable),
            Presence::Absent => {
                let missed = folder
                    .files
                    .iter()
                    .filter(|file| tracked[**file].mode != FileMode::Submodule);
                whole.absent.extend(missed);
            }
        }
    }
    Some(whole)
}

/// The result of opening a directory.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Presence {
    #[default]
    Here,
    /// The directory is, or is below, a git directory whose files were committed. Only these files are compared.
    GitDir,
    Unreadable,
    /// The directory does not exist, or it is the repository's own git directory or sidecar.
    Absent,
}

impl Listing {
    fn presence(&self, folder: &Folder<'_>) -> Presence {
        // git looks for `.git` in the root first.
        if self.is_git_dir && !folder.path.is_empty() {
            Presence::GitDir
        } else {
            Presence::Here
        }
    }
}

impl Scan {
    fn append(&mut self, other: Self) {
        self.suspects.extend(other.suspects);
        self.absent.extend(other.absent);
        self.unknown.extend(other.unknown);
        self.unreadable.extend(other.unreadable);
        self.listed.extend(other.listed);
    }
}

/// Returns the directories that contain tracked files, beginning with the root. A parent precedes its subdirectories.
fn folders_of<'t>(tracked: &[Tracked<'t>]) -> Vec<Folder<'t>> {
    let new = |path, parent| Folder {
        path,
        parent,
        files: Vec::new(),
        subfolders: Vec::new(),
    };
    let mut folders = vec![new(&[][..], 0)];
    let mut known: HashMap<&[u8], usize> = HashMap::from([(&[][..], 0)]);
    let mut last = 0;
    for (position, file) in tracked.iter().enumerate() {
        let folder_path = parent(file.path);
        if folders[last].path != folder_path {
            last = 0;
            let slashes = (0..folder_path.len()).filter(|at| folder_path[*at] == b'/');
            for end in slashes.chain(std::iter::once(folder_path.len())) {
                let path = &folder_path[..end];
                let next = *known.entry(path).or_insert(folders.len());
                if next == folders.len() {
                    folders[last].subfolders.push(file_name(path));
                    folders.push(new(path, last));
                }
                last = next;
            }
        }
        folders[last].files.push(position);
    }
    folders
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter()
        .rposition(|byte| *byte == b'/')
        .map_or(&[], |slash| &path[..slash])
}

fn file_name(path: &[u8]) -> &[u8] {
    path.iter()
        .rposition(|byte| *byte == b'/')
        .map_or(path, |slash| &path[slash + 1..])
}

/// The inputs that the scans of all directories have in common.
struct Scanner<'a, 't> {
    root: &'a Root,
    tracked: &'a [Tracked<'t>],
    rules: &'a DiskRules,
    known: &'a Listings,
}

impl Scanner<'_, '_> {
    /// Compares the files directly in a directory with the index.
    fn scan(&self, folder: &Folder<'_>) -> (Presence, Scan) {
        let mut scan = Scan::default();
        if let Some(listing) = self.known_listing(folder) {
            // Looking up a full path is slower than looking up a name in an open directory, but opening the directory
            // costs more.
            self.compare_files(folder, &mut scan, &|path| self.root.stat_in_one_step(path));
            scan.unknown.extend(listing.unknown.iter().cloned());
            return (listing.presence(folder), scan);
        }
        let opened = match self.root.folder_in_one_step(folder.path) {
            Ok(opened) => opened,
            Err(error) if beneath::is_absence(&error) || beneath::is_of_git(&error) => return (Presence::Absent, scan),
            Err(error) => {
                scan.unreadable.push((folder.path.to_owned(), error));
                return (Presence::Unreadable, scan);
            }
        };
        self.compare_files(folder, &mut scan, &|path| {
            beneath::stat(opened.as_fd(), file_name(path))
        });
        match self.list_unknown(folder, opened) {
            Ok(listing) => {
                let presence = listing.presence(folder);
                scan.unknown.extend(listing.unknown.iter().cloned());
                scan.listed.push((folder.path.to_owned(), listing));
                (presence, scan)
            }
            Err(error) => {
                scan.unreadable.push((folder.path.to_owned(), error));
                (Presence::Here, scan)
            }
        }
    }

    fn compare_files(
        &self,
        folder: &Folder<'_>,
        scan: &mut Scan,
        stat: &dyn Fn(&[u8]) -> io::Result<rustix::fs::Stat>,
    ) {
        for &position in &folder.files {
            let file = &self.tracked[position];
            match stat(file.path) {
                Ok(found) => match compare(file, &found, self.rules) {
                    Verdict::Same => {}
                    Verdict::Absent => scan.absent.push(position),
                    Verdict::Suspect => scan.suspects.push((position, index_stat(&found))),
                },
                Err(error) if !beneath::is_absence(&error) => scan.unreadable.push((file.path.to_owned(), error)),
                Err(_) if file.mode == FileMode::Submodule => {}
                Err(_) => scan.absent.push(position),
            }
        }
    }

    /// Returns the known listing of a directory if the directory has not changed.
    fn known_listing(&self, folder: &Folder<'_>) -> Option<&Listing> {
        let known = self.known.get(folder.path)?;
        let found = self.root.stat_in_one_step(folder.path).ok()?;
        let is_unchanged = is_folder(&found) && index_stat(&found) == known.stat;
        (is_unchanged && self.tracked_names(folder) == known.tracked_names).then_some(known)
    }

    /// Returns a digest of the names of tracked files and subdirectories in a directory.
    fn tracked_names(&self, folder: &Folder<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        for &position in &folder.files {
            let file = &self.tracked[position];
            (file_name(file.path), file.mode == FileMode::Submodule).hash(&mut hasher);
        }
        folder.subfolders.hash(&mut hasher);
        hasher.finish()
    }

    fn list_unknown(&self, folder: &Folder<'_>, opened: OwnedFd) -> io::Result<Listing> {
        let stat = index_stat(&rustix::fs::fstat(&opened)?);
        let names = Names::of(folder, self.tracked, self.rules);
        let listed = list(opened, self.rules)?;
        let is_git_dir = is_git_dir(&listed);
        let entries = listed.into_iter().filter(|entry| !names.has(entry));
        Ok(Listing {
            stat,
            tracked_names: self.tracked_names(folder),
            is_git_dir,
            unknown: entries.map(|entry| entry.inside(folder.path)).collect(),
        })
    }
}

fn is_folder(found: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

enum Verdict {
    Same,
    Suspect,
    Absent,
}

fn compare(file: &Tracked<'_>, found: &rustix::fs::Stat, rules: &DiskRules) -> Verdict {
    let kind = FileType::from_raw_mode(found.st_mode);
    match (kind, file.mode) {
        // Files inside a submodule are not compared.
        (FileType::Directory, FileMode::Submodule) => Verdict::Same,
        (FileType::RegularFile, FileMode::File | FileMode::Executable) => {
            let is_executable = found.st_mode & 0o100 != 0;
            let has_changed_mode = rules.has_executable_bit && is_executable != (file.mode == FileMode::Executable);
            if has_changed_mode {
                Verdict::Suspect
            } else {
                compare_stat(file, found, rules)
            }
        }
        (FileType::RegularFile, FileMode::Symlink) if !rules.has_symlinks => compare_stat(file, found, rules),
        (FileType::Symlink, FileMode::Symlink) => compare_stat(file, found, rules),
        (FileType::RegularFile | FileType::Symlink, _) => Verdict::Suspect,
        _ => Verdict::Absent,
    }
}

/// As in `git status`, a file with equal stat data is unchanged, unless it may have been written after the index.
fn compare_stat(file: &Tracked<'_>, found: &rustix::fs::Stat, rules: &DiskRules) -> Verdict {
    let Some(known) = &file.stat else {
        return Verdict::Suspect;
    };
    // Some programs write an index without fractions of seconds, and some file systems do not store fractions.
    let has_fractions = known.mtime.nsecs != 0;
    let options = stat::Options {
        use_nsec: has_fractions,
        ..rules.stat
    };
    let written = rules.index_time;
    let is_racy = if has_fractions && rules.stat.check_stat {
        (known.mtime.secs, known.mtime.nsecs) >= (written.secs, written.nsecs)
    } else {
        known.mtime.secs >= written.secs
    };
    if !is_racy && known.matches(&index_stat(found), options) {
        Verdict::Same
    } else {
        Verdict::Suspect
    }
}

/// Converts stat data to the form stored in the index, truncating values as git does.
pub(super) fn index_stat(found: &rustix::fs::Stat) -> Stat {
    Stat {
        mtime: Time {
            secs: found.st_mtime as u32,
            nsecs: found.st_mtime_nsec as u32,
        },
        ctime: Time {
            secs: found.st_ctime as u32,
            nsecs: found.st_ctime_nsec as u32,
        },
        dev: found.st_dev as u32,
        ino: found.st_ino as u32,
        uid: found.st_uid,
        gid: found.st_gid,
        size: found.st_size as u32,
    }
}

/// The tracked names in a directory, case-folded if the file system ignores case.
struct Names<'t> {
    files: Vec<Cow<'t, [u8]>>,
    folders: Vec<Cow<'t, [u8]>>,
    ignores_case: bool,
}

impl<'t> Names<'t> {
    fn of(folder: &Folder<'t>, tracked: &[Tracked<'t>], rules: &DiskRules) -> Self {
        let fold = |name| folded(name, rules.ignores_case);
        let mut names = Self {
            files: Vec::with_capacity(folder.files.len()),
            folders: folder.subfolders.iter().map(|name| fold(name)).collect(),
            ignores_case: rules.ignores_case,
        };
        for &position in &folder.files {
            let name = fold(file_name(tracked[position].path));
            if tracked[position].mode == FileMode::Submodule {
                names.folders.push(name.clone());
            }
            names.files.push(name);
        }
        names.files.sort_unstable();
        names.folders.sort_unstable();
        names
    }

    fn has(&self, entry: &Unknown) -> bool {
        let names = if entry.is_folder { &self.folders } else { &self.files };
        names.binary_search(&folded(&entry.path, self.ignores_case)).is_ok()
    }
}

fn folded(name: &[u8], ignores_case: bool) -> Cow<'_, [u8]> {
    if ignores_case {
        name.to_ascii_lowercase().into()
    } else {
        name.into()
    }
}

impl Unknown {
    pub(super) fn inside(mut self, folder: &[u8]) -> Self {
        if !folder.is_empty() {
            self.path.splice(..0, folder.iter().copied().chain([b'/']));
        }
        self
    }
}

/// Returns true if a directory with these entries is a git directory.
pub(super) fn is_git_dir(listed: &[Unknown]) -> bool {
    beneath::is_git_dir(|name| listed.iter().any(|entry| entry.path == name))
}

/// Lists the files, symbolic links and subdirectories of a directory by name, without `.git`. Skips pipes, sockets and
/// devices.
pub(super) fn list(folder: OwnedFd, rules: &DiskRules) -> io::Result<Vec<Unknown>> {
    let mut listing = rustix::fs::Dir::new(folder)?;
    let mut entries = Vec::new();
    while let Some(entry) = listing.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || name.eq_ignore_ascii_case(b".git") {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not report the type.
            FileType::Unknown => match beneath::stat(listing.fd()?, name) {
                Ok(found) => FileType::from_raw_mode(found.st_mode),
                Err(_) => continue,
            },
            kind => kind,
        };
        if matches!(kind, FileType::RegularFile | FileType::Symlink | FileType::Directory) {
            entries.push(Unknown {
                path: composed(name, rules.precomposes_unicode),
                is_folder: kind == FileType::Directory,
            });
        }
    }
    Ok(entries)
}

/// Composes accented letters in a name if git is configured to do so. Apple's file systems decompose them.
fn composed(name: &[u8], precomposes_unicode: bool) -> Vec<u8> {
    match std::str::from_utf8(name) {
        Ok(text) if precomposes_unicode => gix::utils::str::precompose(text.into()).into_owned().into_bytes(),
        _ => name.to_owned(),
    }
}
