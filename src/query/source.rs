//! Reads the bytes of a view's files from the view, from git or from disk.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::git::{
    Attributes, BlobContent, FileMode, MAX_OBJECT_BYTES, MAX_RULES_BYTES, ObjectError, ObjectReader, Repository,
    Unread, WorkTreeError, WorkTreeReader,
};
use crate::model::{Oid, RepoPath, explain_by};
use crate::snapshot::{FileId, View, is_rules_path};

/// The sources of a view's files. Cheap to create. Each thread uses its own [`SourceReader`].
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    view: &'a View,
    repository: &'a Repository,
    interrupt: Option<&'a AtomicBool>,
}

/// Reads the files of a view on one thread.
pub struct SourceReader<'a> {
    view: &'a View,
    repository: &'a Repository,
    objects: ObjectReader,
    disk: Option<WorkTreeReader>,
}

/// The result of reading a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// All bytes of the file; for a symbolic link, its target.
    Bytes(Vec<u8>),
    /// The entry is a submodule.
    Submodule,
    /// The object is missing in this clone, or the file was removed from disk after the view was created.
    Missing,
    /// The file exceeds the size limit.
    TooLarge {
        /// Its size in bytes.
        size: u64,
    },
    /// The operating system denied access. Contains its message.
    Refused(String),
}

/// Explains why a file of `size` bytes is skipped, and how to read it with git.
pub(super) fn too_large(size: u64) -> String {
    let limit = MAX_OBJECT_BYTES >> 20;
    if size > MAX_OBJECT_BYTES {
        format!("{size} bytes exceed the limit of {limit} MiB; use git show or git grep")
    } else {
        format!("stored as a delta against an object of more than {limit} MiB; use git show or git grep")
    }
}

/// An error from reading the files of a view.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// An object is damaged.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The worktree cannot be read.
    #[error(transparent)]
    WorkTree(#[from] WorkTreeError),
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(SourceError: Object, WorkTree; Interrupted);

impl<'a> Sources<'a> {
    /// Creates the sources for `view`, a view of `repository`.
    pub fn new(view: &'a View, repository: &'a Repository) -> Self {
        Self {
            view,
            repository,
            interrupt: None,
        }
    }

    /// Sets a flag that aborts reading when set.
    pub fn until(self, interrupt: &'a AtomicBool) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// Returns an error once the interrupt flag is set. Callers check it before each file.
    pub fn go_on(&self) -> Result<(), SourceError> {
        if self
            .interrupt
            .is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
        {
            Err(SourceError::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Returns the attributes set by the view's own files. Also returns the attribute files that cannot be read, each
    /// with the reason.
    pub(super) fn attributes(&self) -> (Attributes, Vec<(FileId, String)>) {
        let (mut sources, mut unread) = (Vec::new(), Vec::new());
        let mut reader = None;
        for (id, file) in self.view.files().filter(|(_, file)| is_rules_path(file.path)) {
            let entry = file.entry();
            if !matches!(entry.mode, FileMode::File | FileMode::Executable) {
                continue;
            }
            match reader
                .get_or_insert_with(|| self.reader())
                .read_up_to(id, MAX_RULES_BYTES)
            {
                Ok(Source::Bytes(bytes)) => sources.push((entry.path, bytes)),
                // Missing and too large files are ignored, as by the rules that decide which files are indexed.
                Ok(_) => {}
                Err(error) => unread.push((id, error.to_string())),
            }
        }
        (Attributes::of_sources(sources), unread)
    }

    /// The view.
    pub fn view(&self) -> &'a View {
        self.view
    }

    /// Creates a reader for one thread.
    pub fn reader(&self) -> SourceReader<'a> {
        SourceReader {
            view: self.view,
            repository: self.repository,
            objects: self.repository.reader(),
            disk: None,
        }
    }
}

impl SourceReader<'_> {
    /// Reads a file of up to [`MAX_OBJECT_BYTES`].
    pub fn read(&mut self, file: FileId) -> Result<Source, SourceError> {
        self.read_up_to(file, MAX_OBJECT_BYTES)
    }

    /// Reads a file of up to `max_bytes`.
    pub(super) fn read_up_to(&mut self, file: FileId, max_bytes: u64) -> Result<Source, SourceError> {
        let entry = self.view.file(file).entry();
        if entry.mode == FileMode::Submodule {
            return Ok(Source::Submodule);
        }
        if is_only_on_disk(&entry.oid) {
            return self.read_from_disk(&entry.path, max_bytes);
        }
        Ok(match self.view.read(file, &mut self.objects, max_bytes)? {
            BlobContent::Content(bytes) => Source::Bytes(bytes),
            BlobContent::TooLarge { size } => Source::TooLarge { size },
            BlobContent::Missing | BlobContent::Damaged => Source::Missing,
        })
    }

    fn read_from_disk(&mut self, path: &RepoPath, max_bytes: u64) -> Result<Source, SourceError> {
        let reader = match &mut self.disk {
            Some(reader) => reader,
            none => none.insert(self.repository.work_tree_reader()?),
        };
        Ok(match reader.read(path, max_bytes) {
            Ok(file) => Source::Bytes(file.bytes),
            Err(Unread::Absent) => Source::Missing,
            Err(Unread::TooLarge { size }) => Source::TooLarge { size },
            Err(Unread::Refused { reason }) => Source::Refused(reason),
        })
    }
}

/// Returns true for a changed file that was too large to read when the view was created. Such a file has no id.
fn is_only_on_disk(oid: &Oid) -> bool {
    oid.as_bytes().iter().all(|byte| *byte == 0)
}
