//! Reads files of a worktree and converts them to the form that git would store.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use gix::index::entry::Stat;
use rustix::fs::FileType;

use super::beneath::{self, Root};
use super::blob::hash_blob;
use super::index::Index;
use super::irregular::RulesFiles;
use super::object_id::from_gix;
use super::open::{ObjectFormat, Repository};
use super::scan::{DiskRules, index_stat};
use super::tree::FileMode;
use super::worktree::WorkTreeError;
use crate::model::{BlobId, RepoPath};

/// A file of the worktree, converted to the blob that `git add` would create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFile {
    /// The file mode.
    pub mode: FileMode,
    /// The id of a blob with the content `bytes`.
    pub blob: BlobId,
    /// The content that git would store, after the conversions of line endings, `$Id$` and encoding that the attributes
    /// require. For a symbolic link, the path of its target.
    pub bytes: Vec<u8>,
    /// The name of a configured filter (`filter=<name>`) that git would run but this module does not. In that case,
    /// `bytes` are those on disk, and `blob` may differ from the id that git would compute.
    pub unfiltered: Option<BString>,
}

/// A regular file of the worktree as it is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactFile {
    /// The bytes on disk.
    pub raw: Vec<u8>,
    /// The file as git would store it.
    pub stored: DiskFile,
    /// The number of hard links to the file.
    pub n_links: u64,
}

/// The reason why a file of the worktree was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// The path does not exist, passes through a symbolic link, or is neither a file nor a link.
    #[error("not found")]
    Absent,
    /// The file is larger than the limit.
    #[error("too large ({size} bytes)")]
    TooLarge {
        /// The size of the file in bytes.
        size: u64,
    },
    /// The operating system denies access.
    #[error("unreadable: {reason}")]
    Refused {
        /// The underlying error.
        reason: String,
    },
}

/// Reads files of a worktree, on one thread. Never follows symbolic links or runs filters.
#[derive(Clone)]
pub struct WorkTreeReader {
    root: Arc<Root>,
    index: Arc<Index>,
    objects: gix::OdbHandle,
    pipeline: gix::filter::plumbing::Pipeline,
    attributes: gix::worktree::Stack,
    filter: gix::attrs::search::Outcome,
    /// Names of the filters that git would run.
    configured_filters: Vec<BString>,
    format: ObjectFormat,
    rules: DiskRules,
    rules_files: RulesFiles,
}

impl Repository {
    /// Returns a reader of worktree files, for one thread. It uses the attributes and the index as of this call.
    pub fn work_tree_reader(&self) -> Result<WorkTreeReader, WorkTreeError> {
        let index = Arc::new(Index::read(self)?);
        let rules = self.disk_rules(&index)?;
        WorkTreeReader::new(self, index, rules)
    }
}

impl WorkTreeReader {
    pub(super) fn new(repository: &Repository, index: Arc<Index>, rules: DiskRules) -> Result<Self, WorkTreeError> {
        let local = repository.local();
        let attributes_from = gix::worktree::stack::state::attributes::Source::WorktreeThenIdMapping;
        let attributes = local
            .attributes_only(index.state(), attributes_from)
            .map_err(WorkTreeError::rules)?
            .detach();
        let filter = attributes.selected_attribute_matches(["filter"]);
        let pipeline = gix::filter::Pipeline::new(&local, attributes).map_err(WorkTreeError::rules)?;
        let (mut pipeline, attributes) = pipeline.into_parts();
        // Programs that a repository configures must not run, and line endings that do not survive a round trip must
        // not cause an error.
        let options = pipeline.options_mut();
        let drivers = std::mem::take(&mut options.drivers).into_iter();
        let cleaning = drivers.filter(|driver| driver.clean.is_some() || driver.process.is_some());
        let configured_filters = cleaning.map(|driver| driver.name).collect();
        options.crlf_roundtrip_check = gix::filter::plumbing::pipeline::CrlfRoundTripCheck::Skip;
        Ok(Self {
            root: Arc::new(repository.root()?),
            index,
            objects: local.objects.clone(),
            pipeline,
            attributes,
            filter,
            configured_filters,
            format: repository.object_format(),
            rules,
            rules_files: RulesFiles::default(),
        })
    }

    /// Reads the file at `path` unless it is larger than `max_bytes`.
    pub fn read(&mut self, path: &RepoPath, max_bytes: u64) -> Result<DiskFile, Unread> {
        self.read_with_stat(path.as_bytes(), None, max_bytes)
            .map(|(file, _)| file)
    }

    /// Like [`Self::read`], but also returns the bytes on disk. Returns `None` for a symbolic link.
    pub fn read_exact(&mut self, path: &RepoPath, max_bytes: u64) -> Result<Option<ExactFile>, Unread> {
        let path = path.as_bytes();
        let (folder, name) = self.root.parent_of(path).map_err(unread)?;
        let found = beneath::stat(folder.as_fd(), name).map_err(unread)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
            return Ok(None);
        }
        self.rules_files.check(&self.root, path).map_err(unread)?;
        let opened = beneath::open_file(folder.as_fd(), name).map_err(unread)?;
        let found = rustix::fs::fstat(&opened).map_err(|errno| unread(errno.into()))?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Unread::Absent),
            _ => {
                return Err(Unread::Refused {
                    reason: "not a regular file".to_owned(),
                });
            }
        }
        let raw = read_up_to(opened, max_bytes)?;
        let mode = self.rules.mode_of_file(found.st_mode, None);
        Ok(Some(ExactFile {
            stored: self.convert(path, mode, raw.clone()),
            raw,
            n_links: found.st_nlink as u64,
        }))
    }

    /// Returns what git would store of a file with the content `raw`.
    pub fn stored_as(&mut self, path: &RepoPath, mode: FileMode, raw: Vec<u8>) -> Result<DiskFile, Unread> {
        self.rules_files.check(&self.root, path.as_bytes()).map_err(unread)?;
        Ok(self.convert(path.as_bytes(), mode, raw))
    }

    /// Returns the blob that the git index has for a path.
    pub fn indexed_blob(&self, path: &RepoPath) -> Option<BlobId> {
        self.index.blob_at(path.as_bytes()).map(|id| BlobId(from_gix(&id)))
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// Like [`Self::read`], but also returns the stat data from before the file was read. If the file system cannot
    /// represent the mode, the result has `tracked_mode`.
    pub(super) fn read_with_stat(
        &mut self,
        path: &[u8],
        tracked_mode: Option<FileMode>,
        max_bytes: u64,
    ) -> Result<(DiskFile, Stat), Unread> {
        let (folder, name) = self.root.parent_of(path).map_err(unread)?;
        let found = beneath::stat(folder.as_fd(), name).map_err(unread)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                let target = beneath::read_link(folder.as_fd(), name).map_err(unread)?;
                Ok((self.stored(FileMode::Symlink, target, None), index_stat(&found)))
            }
            FileType::RegularFile => {
                self.rules_files.check(&self.root, path).map_err(unread)?;
                let opened = beneath::open_file(folder.as_fd(), name).map_err(unread)?;
                // Check the opened file too: the path may have been replaced since `stat`.
                let found = rustix::fs::fstat(&opened).map_err(|errno| unread(errno.into()))?;
                if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                    return Err(Unread::Absent);
                }
                let raw = read_up_to(opened, max_bytes)?;
                let mode = self.rules.mode_of_file(found.st_mode, tracked_mode);
                Ok((self.convert(path, mode, raw), index_stat(&found)))
            }
            _ => Err(Unread::Absent),
        }
    }

    fn stored(&self, mode: FileMode, bytes: Vec<u8>, unfiltered: Option<BString>) -> DiskFile {
        DiskFile {
            mode,
            blob: hash_blob(self.format, &bytes),
            bytes,
            unfiltered,
        }
    }

    /// Converts line endings, `$Id$` and encoding to the form that git stores.
    fn convert(&mut self, path: &[u8], mode: FileMode, raw: Vec<u8>) -> DiskFile {
        let is_text_of_link = mode == FileMode::Symlink;
        match self.filter_of(path) {
            _ if is_text_of_link => self.stored(mode, raw, None),
            Some(filter) if filter == "lfs" => self.stored(mode, lfs_pointer(raw), None),
            Some(filter) => self.stored(mode, raw, Some(filter)),
            None => match self.converted(path, &raw) {
                Some(bytes) => self.stored(mode, bytes, None),
                // Reached if nothing needs conversion, the encoding is unknown, or the content is invalid in it.
                None => self.stored(mode, raw, None),
            },
        }
    }

    /// Returns the converted bytes, or `None` if nothing needs conversion or the conversion fails.
    fn converted(&mut self, path: &[u8], raw: &[u8]) -> Option<Vec<u8>> {
        use gix::filter::plumbing::pipeline::convert::ToGitOutcome;
        use gix::objs::Find;
        let entry = self.attributes.at_entry(path.as_bstr(), None, &self.objects).ok()?;
        let (index, objects) = (&self.index, &self.objects);
        let outcome = self.pipeline.convert_to_git(
            raw,
            std::path::Path::new(std::ffi::OsStr::new(path.to_os_str().ok()?)),
            &mut |_, attributes| {
                entry.matching_attributes(attributes);
            },
            &mut |buffer| {
                let Some(blob) = index.blob_at(path) else {
                    return Ok(None);
                };
                let found = objects.try_find(&blob, buffer)?;
                Ok(found.filter(|object| object.kind == gix::objs::Kind::Blob).map(|_| ()))
            },
        );
        match outcome.ok()? {
            ToGitOutcome::Buffer(bytes) => Some(bytes.to_owned()),
            ToGitOutcome::Unchanged(_) | ToGitOutcome::Process(_) => None,
        }
    }

    /// Returns the filter that git would run on the file.
    fn filter_of(&mut self, path: &[u8]) -> Option<BString> {
        if self.configured_filters.is_empty() {
            return None;
        }
        let entry = self.attributes.at_entry(path.as_bstr(), None, &self.objects).ok()?;
        entry.matching_attributes(&mut self.filter);
        let found = self.filter.iter_selected().next()?;
        match found.assignment.state {
            gix::attrs::StateRef::Value(name) => Some(name.as_bstr().to_owned()),
            _ => None,
        }
        .filter(|name| self.configured_filters.contains(name))
    }
}

/// Returns the output of `git lfs clean`: a pointer with size and hash, or `raw` itself if it is empty or already a
/// pointer.
///
/// Source: git-lfs `docs/spec.md`, "The Pointer".
fn lfs_pointer(raw: Vec<u8>) -> Vec<u8> {
    const HEADER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
    const MAX_POINTER_BYTES: usize = 1024;
    if raw.is_empty() || raw.len() < MAX_POINTER_BYTES && raw.starts_with(HEADER) {
        return raw;
    }
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha256);
    hasher.update(&raw);
    let hash = hasher.try_finalize().expect("SHA-256 has no collisions to detect");
    [HEADER, format!("oid sha256:{hash}\nsize {}\n", raw.len()).as_bytes()].concat()
}

impl DiskRules {
    fn mode_of_file(&self, st_mode: rustix::fs::RawMode, tracked: Option<FileMode>) -> FileMode {
        match tracked {
            Some(FileMode::Symlink) if !self.has_symlinks => FileMode::Symlink,
            Some(FileMode::Executable) if !self.has_executable_bit => FileMode::Executable,
            _ if self.has_executable_bit && st_mode & 0o100 != 0 => FileMode::Executable,
            _ => FileMode::File,
        }
    }
}

/// Reads the whole file. Fails if it is larger than `max_bytes`, even if it grows during the read.
fn read_up_to(opened: OwnedFd, max_bytes: u64) -> Result<Vec<u8>, Unread> {
    let file = File::from(opened);
    let size = file.metadata().map_err(unread)?.len();
    if size > max_bytes {
        return Err(Unread::TooLarge { size });
    }
    let mut bytes = Vec::with_capacity(size as usize);
    let n_read = file
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(unread)? as u64;
    if n_read > max_bytes {
        return Err(Unread::TooLarge { size: n_read });
    }
    Ok(bytes)
}

fn unread(error: io::Error) -> Unread {
    if beneath::is_absence(&error) {
        return Unread::Absent;
    }
    Unread::Refused {
        reason: error.to_string(),
    }
}
