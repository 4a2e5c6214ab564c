//! Tests power failures: any part of the data that was not flushed may be lost.
//!
//! strace records the changes of a run, so that the test does not depend on the program's own claims. The record is
//! replayed up to a random point on a model of a disk that keeps only flushed data: the bytes of a file after `fsync`
//! of the file, names after `fsync` of their folder.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use codescout::sidecar::Sidecar;

use super::{Told, copy_of, cut_off, history, stderr, succeed, told_by};
use crate::indexed::{Dice, files_below, skip};
use crate::support::{InTime, is_long};

/// Cuts of each recorded run, in a default run and in a long one.
const N_CUTS: usize = 20;
const N_CUTS_LONG: usize = 100;

/// A change of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Act {
    MakeFolder(PathBuf),
    /// The file was created or truncated.
    Create(PathBuf),
    Write(PathBuf, Vec<u8>),
    SyncFile(PathBuf),
    SyncFolder(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// Determines what happens to changes that were not flushed.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// All unflushed changes are lost.
    Everything,
    /// Changes of names are kept, but bytes are lost, as on older versions of ext4.
    Bytes,
    /// Each change is kept or lost at random.
    Chance,
}

/// A model of a disk: files by name, names by folder, and which of them are flushed.
#[derive(Clone, Debug, Default)]
struct Disk {
    /// The names as programs see them.
    names: BTreeMap<PathBuf, usize>,
    files: Vec<File>,
    /// The flushed names of files and folders.
    kept: BTreeMap<PathBuf, usize>,
    /// Changes of names that are not flushed yet, in order.
    pending: Vec<Change>,
}

#[derive(Clone, Debug, Default)]
struct File {
    is_folder: bool,
    bytes: Vec<u8>,
    kept: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Change {
    Put(PathBuf, usize),
    Move(PathBuf, PathBuf, usize),
    Remove(PathBuf),
}

impl Change {
    fn folder(&self) -> &Path {
        let (Self::Put(path, _) | Self::Move(_, path, _) | Self::Remove(path)) = self;
        path.parent().unwrap()
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Put(path, file) => {
                names.insert(path.clone(), *file);
            }
            Self::Move(from, to, file) => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
            Self::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

impl Disk {
    /// Creates a model of existing folders, with everything flushed.
    fn of(folders: &[PathBuf]) -> Self {
        let mut disk = Self::default();
        for folder in folders.iter().filter(|folder| folder.exists()) {
            disk.put_folders(folder, folder);
            for (path, bytes) in files_below(folder) {
                let path = folder.join(path);
                let file = disk.add(File {
                    is_folder: false,
                    bytes: bytes.clone(),
                    kept: bytes,
                });
                disk.put_folders(folder, path.parent().unwrap());
                disk.names.insert(path.clone(), file);
                disk.kept.insert(path, file);
            }
        }
        disk
    }

    fn put_folders(&mut self, root: &Path, folder: &Path) {
        for folder in folder.ancestors().take_while(|folder| folder.starts_with(root)) {
            let file = self.add(File {
                is_folder: true,
                ..File::default()
            });
            self.names.insert(folder.to_owned(), file);
            self.kept.insert(folder.to_owned(), file);
        }
    }

    fn add(&mut self, file: File) -> usize {
        self.files.push(file);
        self.files.len() - 1
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::MakeFolder(path) => {
                let file = self.add(File {
                    is_folder: true,
                    ..File::default()
                });
                self.change(Change::Put(path.clone(), file));
            }
            Act::Create(path) => match self.names.get(path) {
                Some(&file) => self.files[file].bytes.clear(),
                None => {
                    let file = self.add(File::default());
                    self.change(Change::Put(path.clone(), file));
                }
            },
            Act::Write(path, bytes) => {
                let file = self.names[path];
                self.files[file].bytes.extend_from_slice(bytes);
            }
            Act::SyncFile(path) => {
                let file = &mut self.files[self.names[path]];
                file.kept = file.bytes.clone();
            }
            Act::SyncFolder(folder) => {
                let (done, left) = self.pending.drain(..).partition(|change| change.folder() == folder);
                self.pending = left;
                let done: Vec<Change> = done;
                done.iter().for_each(|change| change.apply(&mut self.kept));
            }
            Act::Rename(from, to) => {
                let file = self.names[from];
                self.change(Change::Move(from.clone(), to.clone(), file));
            }
            Act::Remove(path) => self.change(Change::Remove(path.clone())),
        }
    }

    /// Writes a possible content of the disk after a power failure.
    fn fail(&self, loss: Loss, dice: &mut Dice) {
        let mut names = self.kept.clone();
        for change in &self.pending {
            let is_kept = match loss {
                Loss::Everything => false,
                Loss::Bytes => true,
                Loss::Chance => dice.below(2) == 0,
            };
            if is_kept {
                change.apply(&mut names);
            }
        }
        for (path, &file) in &names {
            let file = &self.files[file];
            // A file whose folder is lost is lost too.
            let is_below = path.parent().is_some_and(Path::exists);
            if file.is_folder {
                let _ = fs::create_dir(path);
            } else if is_below {
                fs::write(path, self.bytes_after(file, loss, dice)).unwrap();
            }
        }
    }

    fn bytes_after(&self, file: &File, loss: Loss, dice: &mut Dice) -> Vec<u8> {
        if file.kept == file.bytes || !matches!(loss, Loss::Chance) {
            return file.kept.clone();
        }
        // The file has its full length, with holes for blocks that were not written.
        let mut bytes = file.bytes.clone();
        let cut = dice.below(bytes.len() + 1);
        if dice.below(2) == 0 {
            bytes.truncate(cut);
        } else {
            bytes[cut..].fill(0);
        }
        bytes
    }
}

/// Runs the program under strace and returns its changes below `folders`. `None` if strace is not available.
fn recorded(root: &Path, args: &[&str], folders: &[PathBuf]) -> Option<Vec<Act>> {
    let record = root.parent().unwrap().join("record");
    let mut strace = Command::new("strace");
    cut_off(&mut strace, root);
    strace
        .args(["-f", "-y", "-xx", "-s", "99999999", "-o"])
        .arg(&record)
        .args(["-e", "trace=openat,open,creat,write,pwrite64,writev,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir,mkdir,mkdirat,ftruncate,fallocate,copy_file_range,sendfile"])
        .arg(env!("CARGO_BIN_EXE_codescout"))
        .args(args);
    let output = match strace.output_in_time() {
        Ok(output) => output,
        Err(_) => return None,
    };
    if !output.status.success() {
        skip(&format!("strace does not run here: {}", stderr(&output)));
        return None;
    }
    let text = fs::read_to_string(record).unwrap();
    let is_ours = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let lines = whole_lines(&text);
    let acts = lines
        .iter()
        .flat_map(|line| acts_of(line, root))
        .filter(|act| match act {
            Act::MakeFolder(path)
            | Act::Create(path)
            | Act::Write(path, _)
            | Act::SyncFile(path)
            | Act::Remove(path) => is_ours(path),
            Act::SyncFolder(path) => is_ours(path),
            Act::Rename(from, to) => is_ours(from) || is_ours(to),
        });
    Some(acts.collect())
}

/// Returns the calls in the order of their completion. Joins calls that were interrupted by another thread.
fn whole_lines(record: &str) -> Vec<String> {
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut whole = Vec::new();
    for line in record.lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(start) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, start);
        } else if call.starts_with("<... ") {
            let rest = call.split_once(" resumed>").unwrap().1;
            whole.push(format!("{}{rest}", begun.remove(thread).unwrap()));
        } else {
            whole.push(call.to_owned());
        }
    }
    whole
}

/// Returns the changes that a call made. Relative names start at `folder`, the program's current folder.
fn acts_of(line: &str, folder: &Path) -> Vec<Act> {
    let Some((name, rest)) = line.split_once('(') else {
        return Vec::new();
    };
    let Some((arguments, result)) = rest.rsplit_once(" = ") else {
        return Vec::new();
    };
    if result.starts_with('-') || result.starts_with('?') {
        return Vec::new();
    }
    let arguments: Vec<&str> = arguments.split(", ").collect();
    let path = |at: usize| folder.join(path_of(quoted(arguments[at])));
    let path_in = |at: usize| {
        folder
            .join(described(arguments[at]))
            .join(path_of(quoted(arguments[at + 1])))
    };
    let opened = || described(arguments[0]);
    let has = |flag| {
        arguments
            .iter()
            .any(|argument| argument.split('|').any(|word| word == flag))
    };
    match name {
        "mkdir" => vec![Act::MakeFolder(path(0))],
        "mkdirat" => vec![Act::MakeFolder(path_in(0))],
        "creat" => vec![Act::Create(path(0))],
        "open" if has("O_CREAT") || has("O_TRUNC") => vec![Act::Create(path(0))],
        "openat" if has("O_CREAT") || has("O_TRUNC") => vec![Act::Create(path_in(0))],
        "write" => vec![Act::Write(opened(), quoted(arguments[1]))],
        "fsync" | "fdatasync" => {
            let path = opened();
            // Folders still exist after the run, and no removed path was a folder.
            vec![if path.is_dir() {
                Act::SyncFolder(path)
            } else {
                Act::SyncFile(path)
            }]
        }
        "rename" => vec![Act::Rename(path(0), path(1))],
        "renameat" | "renameat2" => vec![Act::Rename(path_in(0), path_in(2))],
        "unlink" | "rmdir" => vec![Act::Remove(path(0))],
        "unlinkat" => vec![Act::Remove(path_in(0))],
        "open" | "openat" => Vec::new(),
        other => panic!("the model does not know {other}: {line}"),
    }
}

/// Returns the path of a descriptor, which `strace -y` prints in angle brackets. Empty if there is none: older versions
/// omit it for the current folder.
fn described(descriptor: &str) -> PathBuf {
    let inside = descriptor
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'))
        .map(|(inside, _)| inside);
    path_of(unescaped(inside.unwrap_or_default()))
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns the text between quotation marks.
fn quoted(argument: &str) -> Vec<u8> {
    unescaped(argument.split('"').nth(1).unwrap())
}

/// Decodes `\x41` to `A`. `strace -xx` writes all bytes of texts and file names in this form.
fn unescaped(text: &str) -> Vec<u8> {
    let hex = |digits: &str| u8::from_str_radix(digits, 16).unwrap();
    if text.starts_with("\\x") {
        text.split("\\x").skip(1).map(hex).collect()
    } else {
        text.as_bytes().to_vec()
    }
}

#[test]
fn after_the_power_has_failed_the_old_state_or_the_new_is_there() {
    let (repo, commits) = history(9);
    let revisions = vec![commits[8].clone(), commits[2].clone()];
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
    let mut dice = Dice::new(25);
    let first = repo.beside("first");
    copy_of(repo.root(), &first);
    for commit in &commits[..7] {
        succeed(repo.root(), &["index", commit]);
    }
    let n_cuts = if is_long() { N_CUTS_LONG } else { N_CUTS };
    for template in [first, repo.root().to_owned()] {
        let work = repo.beside("work");
        copy_of(&template, &work);
        let folders = [work.join(".codescout"), work.join(".git/info")];
        let start = Disk::of(&folders);
        let Some(acts) = recorded(&work, &["-q", "index"], &folders) else {
            skip("no strace");
            return;
        };
        assert!(
            acts.iter().filter(|act| matches!(act, Act::SyncFolder(_))).count() >= 5,
            "{acts:?}"
        );
        let epoch = epoch_of(&template);
        for cut in 0..n_cuts {
            let loss = [Loss::Everything, Loss::Bytes, Loss::Chance, Loss::Chance][cut % 4];
            let n_done = cut * acts.len() / (n_cuts - 1);
            let mut disk = start.clone();
            acts[..n_done].iter().for_each(|act| disk.act(act));
            folders
                .iter()
                .for_each(|folder| fs::remove_dir_all(folder).unwrap_or_default());
            disk.fail(loss, &mut dice);
            let about = format!(
                "{loss:?} not flushed was lost after {n_done} of {} acts: {:?}",
                acts.len(),
                acts.get(n_done.saturating_sub(1)).map(short)
            );
            check(&work, &revisions, &expected, &about);
            if epoch.is_some() {
                assert_eq!(epoch_of(&work), epoch, "{about}: everything was indexed anew");
            }
        }
    }
}

fn short(act: &Act) -> String {
    match act {
        Act::Write(path, bytes) => format!("write of {} bytes to {}", bytes.len(), path.display()),
        act => format!("{act:?}"),
    }
}

fn epoch_of(root: &Path) -> Option<[u8; 16]> {
    let sidecar = Sidecar::open(&root.join(".codescout")).ok()?;
    Some(sidecar.state().unwrap()?.epoch)
}

fn check(root: &Path, revisions: &[String], expected: &Told, about: &str) {
    let answers = told_by(root, None, revisions);
    assert!(answers == *expected, "{about}: the answers are wrong");
}
