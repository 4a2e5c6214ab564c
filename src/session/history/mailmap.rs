//! Reads the mailmaps that git uses.

use std::path::Path;

use crate::git::{BlobContent, Repository};
use crate::history::Mailmap;
use crate::ingest::Target;
use crate::model::{BlobId, Oid, RepoPath, TreeId};
use crate::session::error::Result;

/// Maximum size of a mailmap. A larger one is ignored.
const MAX_MAILMAP_BYTES: u64 = 4 << 20;

/// Reads mailmaps in git's order: first the file in the worktree (in a bare repository, the file in the commit),
/// then those named by the configuration. Later entries take precedence.
pub(super) fn read(repository: &Repository, target: Option<Target>, notes: &mut Vec<String>) -> Result<Mailmap> {
    let configured = repository.configured_mailmaps();
    let mut texts = Vec::new();
    match repository.work_dir() {
        // Like git, does not read `.mailmap` through a symbolic link.
        Some(root) => texts.extend(read_file(&root.join(".mailmap"))),
        None if configured.blob.is_none() => {
            let tree = target.map(|target| target.tree);
            texts.extend(
                tree.map(|tree| blob_at(repository, tree, ".mailmap"))
                    .transpose()?
                    .flatten(),
            );
        }
        None => {}
    }
    if let Some(name) = &configured.blob {
        let text = named_blob(repository, name)?;
        if text.is_none() {
            notes.push(format!("mailmap.blob: no blob {name:?} in this repository"));
        }
        texts.extend(text);
    }
    if let Some(path) = &configured.file {
        let text = read_file(path);
        if text.is_none() {
            notes.push(format!("mailmap.file: cannot read {}", path.display()));
        }
        texts.extend(text);
    }
    Ok(Mailmap::parse(&texts.join(&b'\n')))
}

/// Reads a blob given as `revision:path` or as an id.
fn named_blob(repository: &Repository, name: &str) -> Result<Option<Vec<u8>>> {
    match name.split_once(':') {
        Some((revision, path)) => match repository.resolve(revision) {
            Ok(resolved) => blob_at(repository, resolved.tree, path),
            Err(_) => Ok(None),
        },
        None => match Oid::from_hex(name) {
            Ok(oid) => text_of(repository, BlobId(oid)),
            Err(_) => Ok(None),
        },
    }
}

fn blob_at(repository: &Repository, tree: TreeId, path: &str) -> Result<Option<Vec<u8>>> {
    let path = RepoPath::from(path);
    let found = repository.reader().diff_trees_at(None, tree, &[&path])?;
    let blob = found.first().and_then(|change| change.new?.blob());
    blob.map_or(Ok(None), |blob| text_of(repository, blob))
}

fn text_of(repository: &Repository, blob: BlobId) -> Result<Option<Vec<u8>>> {
    Ok(match repository.reader().blob(blob, MAX_MAILMAP_BYTES)? {
        BlobContent::Content(text) => Some(text),
        _ => None,
    })
}

/// Reads a regular file of at most [`MAX_MAILMAP_BYTES`].
fn read_file(path: &Path) -> Option<Vec<u8>> {
    let is_small = |meta: &std::fs::Metadata| meta.is_file() && meta.len() <= MAX_MAILMAP_BYTES;
    path.symlink_metadata().ok().filter(is_small)?;
    std::fs::read(path).ok()
}
