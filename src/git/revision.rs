//! Resolves a revision, as typed by a user, to a commit and its tree.

use bstr::{BString, ByteSlice};
use gix::prelude::HeaderExt;
use strsim::osa_distance;

use super::cause::Cause;
use super::command::{CommandError, git};
use super::object_id::{from_gix, to_gix};
use super::open::{RefStorage, Repository};
use super::reader::ObjectError;
use super::refs::{Head, RefError, printed_oid};
use crate::model::{CommitId, ErrorKind, Explain, Explanation, NameKind, Oid, TreeId};

/// Maximum number of suggestions for an unknown name.
const MAX_SUGGESTIONS: usize = 3;

/// Length limit of names that are considered as suggestions.
const MAX_LIKELY_NAME: usize = 200;

/// The commit and the tree that a revision names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The commit, with tags peeled. `None` if the revision is the id of a tree.
    pub commit: Option<CommitId>,
    /// The id of the tree.
    pub tree: TreeId,
}

/// An object that an abbreviated id matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The shortest unambiguous form of the object's id.
    pub abbreviation: String,
    /// A description for display: the type and, for a commit, its date and subject.
    pub description: String,
}

/// An error from resolving a revision.
#[derive(Debug, thiserror::Error)]
pub enum RevisionError {
    /// No object or ref has this name.
    #[error("unknown revision {spec:?}")]
    Unknown {
        /// The revision as typed.
        spec: String,
        /// Similar ref names, best match first.
        near: Vec<String>,
        /// True if the clone is shallow, so that a full clone may contain the revision.
        is_shallow: bool,
    },
    /// The revision is an abbreviated id that matches several objects.
    #[error("revision {spec:?} is ambiguous")]
    Ambiguous {
        /// The revision as typed.
        spec: String,
        /// The matching objects.
        candidates: Vec<Candidate>,
    },
    /// The revision begins with a dash, so a program would interpret it as an option.
    #[error("{spec:?} is not a revision: it begins with a dash")]
    LooksLikeOption {
        /// The revision as typed.
        spec: String,
    },
    /// The revision is a range, not a single commit.
    #[error("{spec:?} is a range, not a single revision")]
    Range {
        /// The revision as typed.
        spec: String,
    },
    /// The revision is a branch without commits.
    #[error("branch {branch:?} has no commits yet")]
    Unborn {
        /// The name of the branch.
        branch: String,
    },
    /// The revision names a blob.
    #[error("{spec:?} is a {kind}, not a commit or tree")]
    NotATree {
        /// The revision as typed.
        spec: String,
        /// The type of the object.
        kind: String,
    },
    /// The revision refers to an unreadable object, for example beyond the boundary of a shallow clone.
    #[error("cannot read the object of revision {spec:?}")]
    Object {
        /// The revision as typed.
        spec: String,
        /// The cause, which contains the object's id.
        #[source]
        source: ObjectError,
    },
    /// The refs could not be read.
    #[error("cannot look up revision {spec:?}")]
    Refs {
        /// The revision as typed.
        spec: String,
        /// The underlying error.
        #[source]
        source: Cause,
    },
}

impl Explain for RevisionError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Unknown { spec, near, is_shallow } => {
                let explanation = Explanation::misspelt(NameKind::Revision, spec, near);
                let hint = if near.is_empty() && *is_shallow {
                    "this clone is shallow: run `git fetch --unshallow` to get the rest of the history".into()
                } else {
                    explanation.hint
                };
                Explanation {
                    kind: ErrorKind::NotFound,
                    hint: hint.or_for_tools("status op=refs lists branches and tags"),
                    ..explanation
                }
            }
            Self::Ambiguous { candidates, .. } => {
                let meanings = candidates
                    .iter()
                    .map(|one| format!("{} ({})", one.abbreviation, one.description));
                Explanation::hinting(format!("candidates: {}", meanings.collect::<Vec<_>>().join(", ")))
            }
            Self::Object { source, .. } => source.explain(),
            _ => Explanation::default(),
        }
    }
}

impl Repository {
    /// Resolves a revision: any git syntax for a commit (`HEAD~2`, a branch, a tag, an abbreviated id, `:/subject`), or
    /// the id of a tree.
    pub fn resolve(&self, spec: &str) -> Result<Resolved, RevisionError> {
        if spec.starts_with('-') {
            return Err(RevisionError::LooksLikeOption { spec: spec.to_owned() });
        }
        let object = match self.places.refs {
            RefStorage::Files => self.lookup_in_files(spec)?,
            RefStorage::Reftable => self.lookup_in_reftable(spec)?,
        };
        self.peel(spec, object)
    }

    /// Resolves the full name of a ref. Looks for no similar name if that fails, which takes time in proportion to the refs.
    pub(super) fn resolve_ref(&self, name: &str) -> Option<Resolved> {
        let object = match self.places.refs {
            RefStorage::Files => from_gix(&self.local().rev_parse(name).ok()?.single()?),
            RefStorage::Reftable => {
                let arguments = ["--verify", "--quiet", "--end-of-options", name];
                printed_oid(&git(self, "rev-parse", &arguments).ok()?).ok()?
            }
        };
        self.peel(name, object).ok()
    }

    fn lookup_in_files(&self, spec: &str) -> Result<Oid, RevisionError> {
        let local = self.local();
        let parsed = local.rev_parse(spec).map_err(|error| self.lookup_error(spec, error))?;
        match parsed.single() {
            Some(id) => Ok(from_gix(&id)),
            None => Err(RevisionError::Range { spec: spec.to_owned() }),
        }
    }

    fn lookup_error(&self, spec: &str, error: gix::Error) -> RevisionError {
        use gix::revision::spec::parse::Error as ParseError;
        let spec = spec.to_owned();
        match error.downcast_any_ref::<ParseError>() {
            Some(
                ParseError::AmbiguousPrefix { candidates, .. } | ParseError::AmbiguousRefAndObject { candidates, .. },
            ) => {
                let candidates = candidates.iter().map(|(prefix, info)| Candidate {
                    abbreviation: prefix.to_string(),
                    description: info.to_string(),
                });
                RevisionError::Ambiguous {
                    spec,
                    candidates: candidates.collect(),
                }
            }
            _ => self.unknown(spec),
        }
    }

    fn lookup_in_reftable(&self, spec: &str) -> Result<Oid, RevisionError> {
        match git(self, "rev-parse", &["--verify", "--quiet", "--end-of-options", spec]) {
            Ok(printed) => printed_oid(&printed).map_err(|error| refs_error(spec, error)),
            Err(CommandError::Failed { .. }) => Err(self.unknown(spec.to_owned())),
            Err(error) => Err(refs_error(spec, error.into())),
        }
    }

    /// Returns the most specific error for an unknown revision.
    fn unknown(&self, spec: String) -> RevisionError {
        if let (true, Ok(Head::Branch { name, commit: None })) = (is_head(&spec), self.head()) {
            return RevisionError::Unborn {
                branch: name.to_string(),
            };
        }
        RevisionError::Unknown {
            near: self.near_names(&spec),
            is_shallow: self.is_shallow(),
            spec,
        }
    }

    fn near_names(&self, spec: &str) -> Vec<String> {
        if spec.len() > MAX_LIKELY_NAME {
            return Vec::new();
        }
        let base: &str = spec.split(['~', '^', '@', ':']).next().unwrap_or(spec);
        let names: Vec<BString> = match self.refs() {
            Ok(refs) => refs.iter().map(|each| each.short_name().to_owned()).collect(),
            Err(_) => return Vec::new(),
        };
        // If the name before the suffix exists, the suffix is wrong. Similar names would not help.
        if is_head(base) || names.iter().any(|name| name == base) {
            return Vec::new();
        }
        let mut scored: Vec<(usize, String)> = names
            .iter()
            .filter_map(|name| name.to_str().ok())
            .filter_map(|name| Some((likeness(base, name)?, name.to_owned())))
            .collect();
        scored.sort();
        scored.dedup();
        scored.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
    }

    /// Follows tags from `start` to a commit or tree.
    fn peel(&self, spec: &str, start: Oid) -> Result<Resolved, RevisionError> {
        let object_error = |source| RevisionError::Object {
            spec: spec.to_owned(),
            source,
        };
        let mut reader = self.reader();
        let mut oid = start;
        // git has no limit on the length either. A chain of tags cannot be circular, because each tag contains the id
        // of the next object.
        loop {
            match reader.kind(oid).map_err(object_error)? {
                gix::objs::Kind::Commit => {
                    let commit = CommitId(oid);
                    let tree = reader.commit(commit).map_err(object_error)?.tree;
                    return Ok(Resolved {
                        commit: Some(commit),
                        tree,
                    });
                }
                gix::objs::Kind::Tree => {
                    return Ok(Resolved {
                        commit: None,
                        tree: TreeId(oid),
                    });
                }
                gix::objs::Kind::Tag => oid = reader.tag_target(oid).map_err(object_error)?,
                gix::objs::Kind::Blob => {
                    return Err(RevisionError::NotATree {
                        spec: spec.to_owned(),
                        kind: "blob".to_owned(),
                    });
                }
            }
        }
    }
}

impl super::reader::ObjectReader {
    fn kind(&self, id: Oid) -> Result<gix::objs::Kind, ObjectError> {
        match self.repo.objects.header(to_gix(id)) {
            Ok(header) => Ok(header.kind()),
            Err(error) if error.is_not_found() => Err(ObjectError::Missing { id, kind: "object" }),
            Err(source) => Err(ObjectError::Damaged {
                id,
                source: Box::new(source),
            }),
        }
    }

    fn tag_target(&mut self, id: Oid) -> Result<Oid, ObjectError> {
        let bytes = self.read(id, gix::objs::Kind::Tag)?;
        let target = gix::objs::TagRef::from_bytes(&bytes, self.object_hash()).map(|tag| from_gix(&tag.target()));
        self.recycle(bytes);
        target.map_err(|source| ObjectError::Damaged {
            id,
            source: Box::new(source),
        })
    }
}

fn refs_error(spec: &str, source: RefError) -> RevisionError {
    RevisionError::Refs {
        spec: spec.to_owned(),
        source: Box::new(source),
    }
}

fn is_head(spec: &str) -> bool {
    matches!(spec.split(['~', '^']).next(), Some("HEAD" | "@"))
}

/// Returns the edit distance between the typed text and `name`, or `None` if it is too large.
fn likeness(typed: &str, name: &str) -> Option<usize> {
    if name.len() > MAX_LIKELY_NAME {
        return None;
    }
    let (typed, name) = (typed.to_lowercase(), name.to_lowercase());
    let last = name.rsplit('/').next().unwrap_or(&name);
    let distance = osa_distance(&typed, &name).min(osa_distance(&typed, last));
    let is_part = typed.len() >= 3 && name.contains(&typed);
    (is_part || distance <= (typed.chars().count() / 3).max(usize::from(!typed.is_empty()))).then_some(distance)
}
