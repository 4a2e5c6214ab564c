//! Reads refs, `HEAD` and reflogs.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use gix::prelude::HeaderExt;

use super::cause::{Cause, without_quotes};
use super::command::{CommandError, git};
use super::object_id::from_gix;
use super::open::{RefStorage, Repository};
use crate::model::{CommitId, Oid, explain_by};

/// The target of `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// A branch. `commit` is `None` if the branch is unborn, as in a new repository.
    Branch {
        /// The name without `refs/heads/`.
        name: BString,
        /// The tip of the branch.
        commit: Option<CommitId>,
    },
    /// A commit that was checked out without a branch.
    Detached {
        /// The id of the commit.
        commit: CommitId,
    },
}

impl Head {
    /// Returns the checked-out commit, or `None` for an unborn branch.
    pub fn commit(&self) -> Option<CommitId> {
        match self {
            Self::Branch { commit, .. } => *commit,
            Self::Detached { commit } => Some(*commit),
        }
    }
}

/// A ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// The full name, for example `refs/heads/main`.
    pub name: BString,
    /// The namespace of the ref.
    pub kind: RefKind,
    /// The commit that the ref points to, with tags peeled. `None` if the target is another object or is missing.
    pub commit: Option<CommitId>,
}

impl Ref {
    /// Returns the name without `refs/heads/`, `refs/tags/` or `refs/remotes/`.
    pub fn short_name(&self) -> &BStr {
        self.kind.shorten(self.name.as_bstr())
    }
}

/// The namespaces of refs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefKind {
    /// A ref under `refs/heads/`.
    Branch,
    /// A ref under `refs/tags/`.
    Tag,
    /// A ref under `refs/remotes/`.
    Remote,
    /// Any other ref, for example notes, the stash or the pull requests of a forge.
    Other,
}

impl RefKind {
    fn of(name: &BStr) -> Self {
        [Self::Branch, Self::Tag, Self::Remote]
            .into_iter()
            .find(|kind| name.starts_with(kind.prefix()))
            .unwrap_or(Self::Other)
    }

    fn prefix(self) -> &'static [u8] {
        match self {
            Self::Branch => b"refs/heads/",
            Self::Tag => b"refs/tags/",
            Self::Remote => b"refs/remotes/",
            Self::Other => b"",
        }
    }

    fn shorten(self, name: &BStr) -> &BStr {
        name.strip_prefix(self.prefix()).unwrap_or(name).as_bstr()
    }
}

/// An error from reading refs.
#[derive(Debug, thiserror::Error)]
pub enum RefError {
    /// `HEAD` or a ref is malformed.
    #[error("cannot read the refs of this repository")]
    Damaged(#[source] Cause),
    /// The git executable failed to read the refs, which are in reftable.
    #[error("cannot read the reftable refs of this repository")]
    Command(#[from] CommandError),
}

explain_by!(RefError: Command);

impl From<gix::Error> for RefError {
    fn from(source: gix::Error) -> Self {
        Self::Damaged(without_quotes(&source))
    }
}

impl Repository {
    /// Returns the target of this worktree's `HEAD`.
    pub fn head(&self) -> Result<Head, RefError> {
        match self.places.refs {
            RefStorage::Files => self.head_of_files(),
            RefStorage::Reftable => self.head_of_reftable(),
        }
    }

    /// Returns all refs of the repository, sorted by name. A damaged ref has no commit.
    pub fn refs(&self) -> Result<Vec<Ref>, RefError> {
        match self.places.refs {
            RefStorage::Files => self.refs_of_files(),
            RefStorage::Reftable => self.refs_of_reftable(),
        }
    }

    /// Returns the checked-out commits of all worktrees, including this one and those whose directory is deleted but
    /// not pruned. Omits unborn branches.
    pub fn work_tree_heads(&self) -> Result<Vec<CommitId>, RefError> {
        let mut commits = Vec::new();
        for head in self.head_names()? {
            commits.extend(match self.places.refs {
                RefStorage::Files => self.commit_of_file(head.as_bstr())?,
                RefStorage::Reftable => match self.reftable_commit(&head.to_str_lossy()) {
                    Err(RefError::Command(CommandError::Failed { .. })) => None,
                    commit => Some(commit?),
                },
            });
        }
        commits.extend(self.head()?.commit());
        commits.sort_unstable();
        commits.dedup();
        Ok(commits)
    }

    /// Returns the name of each worktree's `HEAD`, in a form that is valid in every worktree. It is not an error if the
    /// list of worktrees does not exist, but it is if the list cannot be read.
    pub(super) fn head_names(&self) -> Result<Vec<BString>, RefError> {
        let mut heads = vec![BString::from("main-worktree/HEAD")];
        let failed = |error: std::io::Error| RefError::Damaged(Box::new(error));
        let listed = match std::fs::read_dir(self.common_dir().join("worktrees")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(heads),
            listed => listed.map_err(failed)?,
        };
        for entry in listed {
            let name = entry.map_err(failed)?.file_name();
            heads.push([b"worktrees/", name.as_bytes(), b"/HEAD"].concat().into());
        }
        Ok(heads)
    }

    /// Returns the commit that a ref points to, or `None` if the ref or its target does not exist.
    fn commit_of_file(&self, name: &BStr) -> Result<Option<CommitId>, RefError> {
        let local = self.local();
        let Some(mut reference) = unless_absent(local.try_find_reference(name))?.flatten() else {
            return Ok(None);
        };
        let Some(id) = unless_absent(reference.peel_to_id())? else {
            return Ok(None);
        };
        let header = local.try_find_header(id.detach())?;
        Ok(header
            .filter(|header| header.kind() == gix::objs::Kind::Commit)
            .map(|_| CommitId(from_gix(&id))))
    }

    fn head_of_files(&self) -> Result<Head, RefError> {
        let local = self.local();
        let mut head = local.head()?;
        let branch = head
            .referent_name()
            .map(|name| BString::from(RefKind::Branch.shorten(name.as_bstr())));
        let commit = head.try_peel_to_id()?.map(|id| CommitId(from_gix(&id)));
        match (branch, commit) {
            (Some(name), commit) => Ok(Head::Branch { name, commit }),
            (None, Some(commit)) => Ok(Head::Detached { commit }),
            (None, None) => Err(RefError::Damaged("HEAD names neither a branch nor a commit".into())),
        }
    }

    fn refs_of_files(&self) -> Result<Vec<Ref>, RefError> {
        let local = self.local();
        let platform = local.references()?;
        let mut refs = Vec::new();
        // Many refs can point to the same object, so cache results instead of reading the object again.
        let mut commits: HashMap<gix::ObjectId, Option<CommitId>> = HashMap::new();
        for each in platform.all()? {
            let Some(mut reference) = unless_damaged(each)? else {
                continue;
            };
            let name = BString::from(reference.name().as_bstr());
            let target = match reference.target() {
                gix::refs::TargetRef::Object(id) => Some(id.to_owned()),
                gix::refs::TargetRef::Symbolic(_) => unless_damaged(reference.peel_to_id())?.map(gix::Id::detach),
            };
            let commit = match target {
                Some(id) => unless_damaged(as_commit(&local, id, &mut commits))?.flatten(),
                None => None,
            };
            refs.push(Ref {
                kind: RefKind::of(name.as_bstr()),
                name,
                commit,
            });
        }
        refs.sort_by(|a, b| a.name.cmp(&b.name));
        refs.dedup_by(|a, b| a.name == b.name);
        Ok(refs)
    }

    fn head_of_reftable(&self) -> Result<Head, RefError> {
        let commit = self.reftable_commit("HEAD");
        match git(self, "symbolic-ref", &["--quiet", "HEAD"]) {
            Ok(printed) => Ok(Head::Branch {
                name: BString::from(RefKind::Branch.shorten(printed.trim_end().as_bstr())),
                commit: commit.ok(),
            }),
            Err(CommandError::Failed { .. }) => Ok(Head::Detached { commit: commit? }),
            Err(error) => Err(error.into()),
        }
    }

    fn reftable_commit(&self, name: &str) -> Result<CommitId, RefError> {
        let spec = format!("{name}^{{commit}}");
        let printed = git(self, "rev-parse", &["--verify", "--quiet", "--end-of-options", &spec])?;
        Ok(CommitId(printed_oid(&printed)?))
    }

    fn refs_of_reftable(&self) -> Result<Vec<Ref>, RefError> {
        let format = "--format=%(refname) %(objecttype) %(objectname) %(*objecttype) %(*objectname)";
        let printed = git(self, "for-each-ref", &[format])?;
        let line_to_ref = |line: &[u8]| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            let pointed_at = match words.as_slice() {
                [_, b"commit", oid, ..] | [_, b"tag", _, b"commit", oid] => printed_oid(oid).ok(),
                _ => None,
            };
            let name = BString::from(*words.first()?);
            Some(Ref {
                kind: RefKind::of(name.as_bstr()),
                name,
                commit: pointed_at.map(CommitId),
            })
        };
        let mut refs: Vec<Ref> = printed.lines().filter_map(line_to_ref).collect();
        refs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(refs)
    }
}

/// Converts an error about a missing object or ref to `None`. Returns all other errors.
fn unless_absent<T>(found: Result<T, gix::Error>) -> Result<Option<T>, gix::Error> {
    match found {
        Err(error) if error.is_not_found() && !is_refused(&error) => Ok(None),
        found => found.map(Some),
    }
}

/// Converts an error about a missing or malformed object to `None`. Returns errors of the operating system.
pub(super) fn unless_damaged<T>(found: Result<T, gix::Error>) -> Result<Option<T>, gix::Error> {
    match found {
        Err(error) if !is_refused(&error) => Ok(None),
        found => found.map(Some),
    }
}

/// Returns true if the operating system failed to read a file that may exist.
fn is_refused(error: &gix::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound, UnexpectedEof};
    let mut causes = error
        .iter_errors()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| {
        !matches!(
            cause.kind(),
            InvalidData | IsADirectory | NotADirectory | NotFound | UnexpectedEof
        )
    })
}

/// Returns the commit with this id, or the commit that the tag with this id points to.
fn as_commit(
    local: &gix::Repository,
    mut id: gix::ObjectId,
    known: &mut HashMap<gix::ObjectId, Option<CommitId>>,
) -> Result<Option<CommitId>, gix::Error> {
    let mut tags = Vec::new();
    let commit = loop {
        if let Some(commit) = known.get(&id) {
            break *commit;
        }
        tags.push(id);
        match local.objects.header(id)?.kind() {
            gix::objs::Kind::Commit => break Some(CommitId(from_gix(&id))),
            gix::objs::Kind::Tag => id = local.find_tag(id)?.target_id()?.detach(),
            _ => break None,
        }
    };
    known.extend(tags.into_iter().map(|tag| (tag, commit)));
    Ok(commit)
}

/// Parses an id that git printed on a line.
pub(super) fn printed_oid(printed: &[u8]) -> Result<Oid, RefError> {
    let text = printed.trim_end().to_str_lossy();
    Oid::from_hex(&text).map_err(|source| RefError::Damaged(Box::new(source)))
}
