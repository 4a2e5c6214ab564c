//! Writes bundles.

use std::io::{self, Write};

use crate::artifact::ArtifactKey;
use crate::embed::ProfileId;
use crate::history::{HistoryError, Selected};
use crate::index::{
    MergeError, NumberSet, Ranks, RecordsError, Segment, Segments, Survivors, gather_records, rewrite_segments,
};
use crate::ingest::{ExportedCommits, gather_rows, probe_of};
use crate::model::{ErrorKind, Explain, Explanation, TreeId};
use crate::sidecar::{SegmentEntry, Sidecar, Staging, State, Store, compress_into};

use super::format::{
    AddedPart, CommitsPart, Entry, Header, HeaderError, Kind, MAX_ENTRY_BYTES, PREFIX_BYTES, PartSizes,
};
use super::signature::SigningKey;

/// Total size of files below which adjacent segments are merged into one part.
const MAX_JOINED_BYTES: usize = 24 << 20;

/// The contents of a bundle to write.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// The indexed segments.
    pub segments: &'a Segments,
    /// The state that names the files of `segments`.
    pub state: &'a State,
    /// The blobs to include, in this order. Blobs that are not indexed are skipped.
    pub keys: &'a [ArtifactKey],
    /// The trees whose files `keys` covers.
    pub trees: &'a [TreeId],
    /// Identifies the settings with which the records were made.
    pub recipe: u64,
    /// Profile of the vectors.
    pub profile: ProfileId,
    /// Bytes of an object id.
    pub id_bytes: usize,
    /// Profiles of the external models whose vectors are included.
    pub added: &'a [ProfileId],
    /// The recorded commits to include.
    pub commits: Option<&'a ExportedCommits>,
    /// The facts of indexers to include.
    pub facts: &'a [(u32, Vec<u8>)],
}

/// A bundle that was written.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The header of the bundle.
    pub header: Header,
    /// Size of the bundle in bytes.
    pub n_bytes: u64,
}

/// An error from writing a bundle.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The index cannot be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The segments cannot be rewritten.
    #[error(transparent)]
    Segments(#[from] MergeError),
    /// The commit record cannot be read.
    #[error(transparent)]
    Commits(#[from] HistoryError),
    /// The header is invalid, so no reader would accept it.
    #[error("the bundle would be invalid")]
    Header(#[from] HeaderError),
    /// The bundle cannot be written.
    #[error("cannot write the bundle")]
    Io(#[from] io::Error),
    /// No external model has vectors for `keys`.
    #[error("the index has no vectors of the configured model: run `codescout index` to compute them")]
    NoRows,
    /// An entry exceeds the size that readers accept.
    #[error("bundle entry {name} has {length} bytes, the limit is {MAX_ENTRY_BYTES}")]
    TooLarge {
        /// The name of the entry.
        name: String,
        /// Its size in bytes.
        length: u64,
    },
}

impl Explain for PackError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Commits(error) => error.explain(),
            Self::TooLarge { .. } => Explanation::of_kind(ErrorKind::TooLarge),
            _ => Explanation::default(),
        }
    }
}

impl Contents<'_> {
    /// Writes a bundle to `to`, staging the entries in an unnamed file in `sidecar`.
    ///
    /// A records bundle depends only on the keys, the trees and the contents of the blobs. A ready bundle also depends
    /// on how the segments are numbered.
    pub fn write(
        &self,
        kind: Kind,
        key: Option<&SigningKey>,
        sidecar: &Sidecar,
        to: &mut dyn Write,
    ) -> Result<Packed, PackError> {
        // Recorded commits and facts do not depend on the recipe and the profile.
        let (recipe, profile) = if kind == Kind::Added && self.added.is_empty() {
            (0, [0; 16])
        } else {
            (self.recipe, self.profile.0)
        };
        let mut packing = Packing {
            header: Header::new(kind, recipe, profile, self.id_bytes, self.trees),
            frames: Counted {
                to: sidecar.staging()?,
                n_bytes: 0,
            },
        };
        match kind {
            Kind::Records => self.add_records(&mut packing)?,
            Kind::Ready => self.add_segments(sidecar, &mut packing)?,
            Kind::Added => {}
        }
        for &profile in self.added {
            self.add_rows(profile, sidecar, &mut packing)?;
        }
        let has_rows = !packing.header.added.is_empty();
        if kind == Kind::Added && !has_rows && self.commits.is_none() && self.facts.is_empty() {
            return Err(PackError::NoRows);
        }
        if let Some(commits) = self.commits {
            packing.header.commits = Some(CommitsPart::new(commits.recipe, &commits.tips));
            commits.each(|batch| packing.add_batch(&batch))?;
        }
        for (n_documents, file) in self.facts {
            packing.header.facts.push(*n_documents);
            packing.add_files(&[file])?;
        }
        let Packing { header, frames } = packing;
        header.check()?;
        let head = header.to_bytes();
        let signature = match key {
            None => vec![0],
            Some(key) => {
                let hash = head[PREFIX_BYTES - 32..PREFIX_BYTES]
                    .try_into()
                    .expect("the hash has 32 bytes");
                [&[1][..], &key.public().0, &key.sign(&hash)].concat()
            }
        };
        to.write_all(&head)?;
        to.write_all(&signature)?;
        io::copy(&mut frames.to.rewind()?, to)?;
        to.flush()?;
        Ok(Packed {
            n_bytes: (head.len() + signature.len()) as u64 + header.n_packed(),
            header,
        })
    }

    fn add_records(&self, packing: &mut Packing) -> Result<(), PackError> {
        gather_records(self.segments, self.keys, |part| {
            let sizes = PartSizes {
                n_blobs: part.n_blobs,
                n_docs: part.n_docs,
            };
            packing.add(sizes, &[&part.artifacts, &part.vectors])
        })
    }

    /// Adds the probe vector and the vectors of one external model, unless the model has no vectors.
    fn add_rows(&self, profile: ProfileId, sidecar: &Sidecar, packing: &mut Packing) -> Result<(), PackError> {
        let Some(probe) = probe_of(sidecar, profile)? else {
            return Ok(());
        };
        let segments = self.segments.with_added(sidecar, self.state, &profile.to_string());
        let mut probe = Some(probe);
        gather_rows(&segments, self.keys, profile, |n_rows, part| match probe.take() {
            Some(probe) => {
                packing.header.added.push(AddedPart {
                    profile: profile.0,
                    rows: vec![n_rows],
                });
                packing.add_files(&[&probe, part])
            }
            None => packing.add_more_rows(n_rows, part),
        })
    }

    /// Adds the blobs of `keys` as segments, in segment order. Copies their postings.
    fn add_segments(&self, sidecar: &Sidecar, packing: &mut Packing) -> Result<(), PackError> {
        let survivors = self.survivors();
        let segments: Vec<&Segment> = self.segments.iter().collect();
        let mut first = 0;
        while first < segments.len() {
            let mut end = first + 1;
            let mut n_bytes = segments[first].n_bytes();
            while end < segments.len() && n_bytes + segments[end].n_bytes() <= MAX_JOINED_BYTES {
                n_bytes += segments[end].n_bytes();
                end += 1;
            }
            match &self.state.segments[first..end] {
                [entry] if is_included_unchanged(entry, &survivors) => self.add_files(entry, sidecar, packing)?,
                _ => {
                    let part = rewrite_segments(&segments[first..end], &survivors)?;
                    let sizes = PartSizes {
                        n_blobs: part.n_blobs,
                        n_docs: part.n_docs,
                    };
                    if part.n_blobs > 0 {
                        packing.add(sizes, &[&part.artifacts, &part.vectors, &part.lexical])?;
                    }
                }
            }
            first = end;
        }
        Ok(())
    }

    fn add_files(&self, entry: &SegmentEntry, sidecar: &Sidecar, packing: &mut Packing) -> Result<(), PackError> {
        let profile = self.profile.to_string();
        let vectors = entry.vectors.iter().find(|vectors| vectors.profile == profile);
        let vectors = vectors.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let files = [
            sidecar.map(Store::Artifacts, &entry.artifacts.name)?,
            sidecar.map(Store::Dense, &vectors.file.name)?,
            sidecar.map(Store::Lexical, &entry.lexical.name)?,
        ];
        let sizes = PartSizes {
            n_blobs: entry.n_blobs,
            n_docs: entry.n_docs,
        };
        packing.add(sizes, &[&files[0], &files[1], &files[2]])
    }

    fn survivors(&self) -> Survivors {
        let mut blobs = NumberSet::below(self.segments.n_blobs());
        let mut docs = NumberSet::below(self.segments.n_docs());
        for blob in self.keys.iter().filter_map(|&key| self.segments.find_blob(key)) {
            blobs.insert(blob);
            if let Some((segment, local)) = self.segments.of_blob(blob) {
                segment.artifacts.docs(local).for_each(|doc| {
                    docs.insert(doc);
                });
            }
        }
        Survivors {
            blobs: Ranks::new(blobs),
            docs: Ranks::new(docs),
        }
    }
}

/// Returns true if the whole segment is included and its numbers do not change.
fn is_included_unchanged(entry: &SegmentEntry, survivors: &Survivors) -> bool {
    let (blobs, docs) = (entry.base_blob + entry.n_blobs, entry.base_doc + entry.n_docs);
    survivors.blobs.below(blobs) == blobs && survivors.docs.below(docs) == docs
}

struct Packing {
    header: Header,
    frames: Counted,
}

impl Packing {
    /// Adds a part. `files` must be in the order of the part's entries.
    fn add(&mut self, sizes: PartSizes, files: &[&[u8]]) -> Result<(), PackError> {
        self.header.parts.push(sizes);
        self.add_files(files)
    }

    /// Adds another file of vectors to the last model.
    fn add_more_rows(&mut self, n_rows: u32, file: &[u8]) -> Result<(), PackError> {
        if let Some(last) = self.header.added.last_mut() {
            last.rows.push(n_rows);
        }
        self.add_files(&[file])
    }

    /// Adds a batch of commits.
    fn add_batch(&mut self, batch: &Selected) -> Result<(), PackError> {
        if let Some(commits) = &mut self.header.commits {
            commits.batches.push(batch.n_commits);
        }
        self.add_files(&[&batch.records, &batch.symbols, &batch.lines])
    }

    fn add_files(&mut self, files: &[&[u8]]) -> Result<(), PackError> {
        let names: Vec<String> = self.header.names().skip(self.header.entries.len()).collect();
        for (name, bytes) in names.into_iter().zip(files) {
            let length = bytes.len() as u64;
            if length > MAX_ENTRY_BYTES {
                return Err(PackError::TooLarge { name, length });
            }
            let before = self.frames.n_bytes;
            compress_into(bytes, &mut self.frames)?;
            self.header.entries.push(Entry {
                name,
                length,
                hash: *blake3::hash(bytes).as_bytes(),
                n_packed: self.frames.n_bytes - before,
            });
        }
        Ok(())
    }
}

struct Counted {
    to: Staging,
    n_bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_written = self.to.write(bytes)?;
        self.n_bytes += n_written as u64;
        Ok(n_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
