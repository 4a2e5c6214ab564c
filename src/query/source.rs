//! The bytes of a view's files: from git, from the view, and from disk for those that the view does not hold.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::git::{
    Attributes, BlobContent, FileMode, MAX_OBJECT_BYTES, MAX_RULES_BYTES, ObjectError, ObjectReader, Repository,
    Unread, WorkTreeError, WorkTreeReader,
};
use crate::model::{Oid, RepoPath};
use crate::snapshot::{FileId, View, is_rules_path};

/// Where the bytes of a view's files come from. Cheap to make; threads take a [`SourceReader`] each.
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

/// What reading a file gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// All of its bytes; for a symbolic link the path that it points to.
    Bytes(Vec<u8>),
    /// Another repository.
    Submodule,
    /// Its object is not in this clone, or the file has gone from disk since the view was made.
    Missing,
    /// It has more bytes than were to be read.
    TooLarge {
        /// Its size in bytes.
        size: u64,
    },
    /// The system refuses, in its words.
    Refused(String),
}

/// Why a file of `size` bytes is left out, and what reads it.
pub(super) fn too_large(size: u64) -> String {
    let limit = MAX_OBJECT_BYTES >> 20;
    if size > MAX_OBJECT_BYTES {
        format!("it has {size} bytes and files over {limit} MiB are not read; git show and git grep read it")
    } else {
        format!("it is stored as a difference to an object of more than {limit} MiB; git show and git grep read it")
    }
}

/// Why the files of a view cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// An object is damaged.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The work tree cannot be read at all.
    #[error(transparent)]
    WorkTree(#[from] WorkTreeError),
    /// Nobody wants the answer any more.
    #[error("interrupted")]
    Interrupted,
}

impl<'a> Sources<'a> {
    /// The files of `view`, which is of `repository`.
    pub fn new(view: &'a View, repository: &'a Repository) -> Self {
        Self {
            view,
            repository,
            interrupt: None,
        }
    }

    /// The same for an answer that nobody wants any more once the flag is set.
    pub fn until(self, interrupt: &'a AtomicBool) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// Fails once the answer is not wanted; asked before each file that is looked at.
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

    /// What the view's own files say about others, and files that should say something and cannot be read, with the reason.
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
                // As where these rules decide what is indexed.
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

    /// A reader for one thread.
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

/// A changed file that was too large to be read with the others has no id in the view.
fn is_only_on_disk(oid: &Oid) -> bool {
    oid.as_bytes().iter().all(|byte| *byte == 0)
}
