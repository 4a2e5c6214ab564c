//! Stores files that are not in any repository as commits of a bare repository, so that they are indexed by content.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bstr::BString;
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Commit, Tree};

use super::cause::Cause;
use super::command::{CommandError, git};
use super::open::{OpenError, Repository};
use crate::model::{RepoPath, explain_by};

/// An error from storing files.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The repository cannot be created or opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] CommandError),
    /// An object cannot be written.
    #[error("cannot write an object")]
    Write(#[source] Cause),
    /// The folder cannot be created.
    #[error("cannot create the folder of the store")]
    Io(#[from] std::io::Error),
}

explain_by!(StoreError: Open, Git);

/// A bare repository of files from elsewhere.
pub struct FileStore {
    repository: Repository,
    local: gix::Repository,
    folders: BTreeMap<Vec<u8>, Vec<Entry>>,
}

impl FileStore {
    /// Opens the bare repository in `folder`. Creates it if there is none.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        if !folder.join("HEAD").exists() {
            let parent = folder.parent().unwrap_or(folder);
            fs::create_dir_all(parent)?;
            // A folder that is not whole must not stay if this program is ended, or meet another process.
            let work = tempfile::tempdir_in(parent)?;
            let made = work.path().join("store.git");
            gix::init_bare(&made).map_err(|error| StoreError::Write(Box::new(error)))?;
            if let Err(error) = fs::rename(&made, folder)
                && !folder.join("HEAD").exists()
            {
                return Err(error.into());
            }
        }
        let repository = Repository::open(folder)?;
        Ok(Self {
            local: repository.local(),
            repository,
            folders: BTreeMap::from([(Vec::new(), Vec::new())]),
        })
    }

    /// Adds a file. Each path may be added once.
    pub fn add(&mut self, path: &RepoPath, content: &[u8]) -> Result<(), StoreError> {
        let id = self
            .local
            .write_blob(content)
            .map_err(|error| StoreError::Write(error.into()))?;
        self.put(path.as_bytes(), EntryKind::Blob, id.detach());
        Ok(())
    }

    /// Stores the added files as a commit, to which the ref `name` then points.
    pub fn commit(mut self, name: &str) -> Result<(), StoreError> {
        let mut root = self.local.object_hash().empty_tree();
        // The last folder in this order contains no other folder that is left.
        while let Some((folder, mut entries)) = self.folders.pop_last() {
            entries.sort_unstable();
            root = self
                .local
                .write_object(&Tree { entries })
                .map_err(|error| StoreError::Write(error.into()))?
                .detach();
            if !folder.is_empty() {
                self.put(&folder, EntryKind::Tree, root);
            }
        }
        let nobody = gix::actor::Signature {
            name: "codescout".into(),
            email: "codescout@localhost".into(),
            time: gix::date::Time::default(),
        };
        let commit = Commit {
            tree: root,
            parents: Default::default(),
            author: nobody.clone(),
            committer: nobody,
            encoding: None,
            message: "Store files".into(),
            extra_headers: Vec::new(),
        };
        let id = self
            .local
            .write_object(&commit)
            .map_err(|error| StoreError::Write(error.into()))?
            .detach();
        git(&self.repository, "update-ref", &[name, &id.to_string()])?;
        Ok(())
    }

    fn put(&mut self, path: &[u8], kind: EntryKind, oid: gix::ObjectId) {
        let (folder, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        let mut above = folder;
        while let Some(slash) = above.iter().rposition(|byte| *byte == b'/') {
            above = &above[..slash];
            self.folders.entry(above.to_vec()).or_default();
        }
        self.folders.entry(folder.to_vec()).or_default().push(Entry {
            mode: kind.into(),
            filename: BString::from(name),
            oid,
        });
    }
}
