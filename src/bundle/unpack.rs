//! Reads bundles. Everything in a bundle is checked before use, and entries are only written to an unnamed file.

use std::io::{self, BufRead, BufReader, Read, Write};

use crate::embed::ProfileId;
use crate::ingest::{ReceivedCommits, ReceivedRows};
use crate::model::{CommitId, ErrorKind, Explain, Explanation, TreeId};
use crate::sidecar::{Bytes, CompressError, Sidecar, decompress_from, volume};

use super::format::{Entry, FORMAT, Formats, Header, HeaderError, Kind, PREFIX_BYTES};
use super::signature::{PUBLIC_BYTES, PublicKey, SIGNATURE_BYTES};

/// The largest decompressed size of a bundle.
pub const MAX_TOTAL_BYTES: u64 = 64 << 30;
/// Disk space that must remain free.
const SPARE_BYTES: u64 = 64 << 20;

/// Determines which signatures are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Any bundle, signed or not.
    Anybody,
    /// Only bundles signed with this key.
    Only(PublicKey),
}

/// A bundle whose header has been read and checked.
pub struct BundleFile<R> {
    /// The header of the bundle.
    pub header: Header,
    /// The key that signed the bundle, if it is signed. The signature has been verified.
    pub signer: Option<PublicKey>,
    from: BufReader<R>,
    n_head_bytes: u64,
}

/// An error from reading a bundle.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The header is invalid.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The file ends too early.
    #[error("the bundle is truncated")]
    CutShort,
    /// Bytes follow the last entry.
    #[error("unexpected data follows the end of the bundle")]
    Trailing,
    /// The file cannot be read.
    #[error("cannot read the bundle")]
    Io(#[source] io::Error),
    /// The entries cannot be staged.
    #[error("cannot write to {}", .root.display())]
    Stage {
        /// The directory of the sidecar.
        root: std::path::PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// The signature does not match the public key in the bundle.
    #[error("the bundle signature is invalid")]
    Signature,
    /// The bundle is not signed with the trusted key.
    #[error("the bundle is not signed by {wanted}{}", .found.map_or(String::new(), |found| format!(" but by {found}")))]
    Untrusted {
        /// The trusted key.
        wanted: PublicKey,
        /// The key that signed the bundle, if any.
        found: Option<PublicKey>,
    },
    /// The bundle was written by another build, with other settings, or for another object format.
    #[error("the bundle has the wrong {what}: {found}, expected {expected}")]
    Other {
        /// The property that differs.
        what: &'static str,
        /// Its value in the bundle.
        found: String,
        /// Its value in this repository.
        expected: String,
    },
    /// The decompressed bundle exceeds the limit or the free disk space.
    #[error("the bundle needs {needed} bytes, only {room} are available")]
    NoRoom {
        /// Decompressed size in bytes, as stated in the header.
        needed: u64,
        /// Number of bytes that may be written.
        room: u64,
    },
    /// An entry does not match the header.
    #[error("entry {name} is damaged: {what}")]
    Entry {
        /// The name of the entry.
        name: String,
        /// Describes the mismatch.
        what: String,
    },
}

impl Explain for ReadError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Other { .. } | Self::Header(HeaderError::OtherFormat { .. }) => {
                Explanation::of_kind(ErrorKind::OtherOrigin)
            }
            _ => Explanation::default(),
        }
    }
}

impl<R: Read> BundleFile<R> {
    /// Reads everything before the entries.
    pub fn open(from: R) -> Result<Self, ReadError> {
        let mut from = BufReader::with_capacity(1 << 17, from);
        let mut prefix = [0; PREFIX_BYTES];
        // A file too short for a prefix is not a bundle.
        read_exactly(&mut from, &mut prefix).map_err(|error| match error {
            ReadError::CutShort => HeaderError::OtherKind.into(),
            error => error,
        })?;
        let (length, hash) = Header::parse_prefix(&prefix)?;
        let mut record = vec![0; length];
        read_exactly(&mut from, &mut record)?;
        let header = Header::parse(&prefix, &record)?;
        let signer = read_signature(&mut from, &hash)?;
        let n_signature_bytes = signer.map_or(1, |_| 1 + PUBLIC_BYTES + SIGNATURE_BYTES);
        Ok(Self {
            header,
            signer,
            from,
            n_head_bytes: (PREFIX_BYTES + length + n_signature_bytes) as u64,
        })
    }

    /// Returns the size of the whole bundle in bytes, computed from the header.
    pub fn n_bytes(&self) -> u64 {
        self.n_head_bytes + self.header.n_packed()
    }

    /// Checks that the bundle matches this build's formats, the settings and the object format, and that its signature
    /// is accepted.
    pub fn check(&self, recipe: u64, profile: ProfileId, id_bytes: usize, trust: Trust) -> Result<(), ReadError> {
        if let Trust::Only(wanted) = trust
            && self.signer != Some(wanted)
        {
            return Err(ReadError::Untrusted {
                wanted,
                found: self.signer,
            });
        }
        let header = &self.header;
        let other = |what, found: String, expected: String| ReadError::Other { what, found, expected };
        if header.formats != Formats::CURRENT {
            let text = |formats: Formats| format!("{}.{}.{}", formats.artifacts, formats.lexical, formats.vectors);
            return Err(other("format", text(header.formats), text(Formats::CURRENT)));
        }
        if usize::from(header.id_bytes) != id_bytes {
            let text = |n_bytes| if n_bytes == 20 { "sha1" } else { "sha256" }.to_owned();
            return Err(other(
                "object format",
                text(usize::from(header.id_bytes)),
                text(id_bytes),
            ));
        }
        if header.kind() == Kind::Added && header.added.is_empty() {
            return Ok(());
        }
        if header.recipe != recipe {
            let text = |recipe| format!("{recipe:016x}");
            return Err(other("extraction recipe", text(header.recipe), text(recipe)));
        }
        match ProfileId(header.profile) {
            found if found == profile => Ok(()),
            found => Err(other("embedding profile", found.to_string(), profile.to_string())),
        }
    }

    /// Decompresses all entries into an unnamed file on the volume of `sidecar` and verifies their hashes. Returns the
    /// entries in order.
    pub fn stage(mut self, sidecar: &Sidecar) -> Result<Vec<Bytes>, ReadError> {
        let stage_error = |source| ReadError::Stage {
            root: sidecar.root().to_owned(),
            source,
        };
        let needed = self.header.n_bytes();
        // Half of the free space is reserved for the files that are built from the staged entries.
        let free = volume(sidecar.root()).map_err(stage_error)?.free_bytes;
        let room = (free.saturating_sub(SPARE_BYTES) / 2).min(MAX_TOTAL_BYTES);
        if needed > room {
            return Err(ReadError::NoRoom { needed, room });
        }
        let mut staging = sidecar.staging().map_err(stage_error)?;
        for entry in &self.header.entries {
            open_entry(&mut self.from, entry, &mut staging, &stage_error)?;
        }
        if !self.from.fill_buf().map_err(ReadError::Io)?.is_empty() {
            return Err(ReadError::Trailing);
        }
        let all = staging.finish().map_err(stage_error)?;
        let mut start = 0;
        let lengths = self.header.entries.iter().map(|entry| entry.length as usize);
        Ok(lengths
            .map(|length| {
                let bytes = all.slice(start, length).expect("the staged file holds every entry");
                start += length;
                bytes
            })
            .collect())
    }
}

impl<R> std::fmt::Debug for BundleFile<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BundleFile({} entries, format {FORMAT})", self.header.entries.len())
    }
}

impl Header {
    /// Groups `files` by part, each a tuple of records, vectors and, in a ready bundle, words.
    pub fn by_part(&self, files: &[Bytes]) -> Vec<(Bytes, Bytes, Option<Bytes>)> {
        let width = match self.kind() {
            Kind::Records => 2,
            Kind::Ready => 3,
            Kind::Added => return Vec::new(),
        };
        files[..self.n_part_entries()]
            .chunks_exact(width)
            .map(|part| (part[0].clone(), part[1].clone(), part.get(2).cloned()))
            .collect()
    }

    /// Returns the vectors of external models: for each model its profile, its probe vector and its files.
    pub fn offered_rows(&self, files: &[Bytes]) -> Vec<ReceivedRows> {
        let mut rest = &files[self.n_part_entries()..];
        let mut offered = Vec::with_capacity(self.added.len());
        for added in &self.added {
            let (own, others) = rest.split_at(1 + added.rows.len());
            offered.push(ReceivedRows {
                profile: ProfileId(added.profile),
                probe: own[0].clone(),
                sizes: added.rows.clone(),
                parts: own[1..].to_vec(),
            });
            rest = others;
        }
        offered
    }

    /// Returns the recorded commits, if the bundle contains any.
    pub fn offered_commits(&self, files: &[Bytes]) -> Option<ReceivedCommits> {
        let commits = self.commits.as_ref()?;
        let after = files.len() - self.facts.len();
        let (batches, _) = files[self.n_part_entries() + self.n_added_entries()..after].as_chunks::<3>();
        Some(ReceivedCommits {
            recipe: commits.recipe,
            sizes: commits.batches.clone(),
            batches: batches.to_vec(),
        })
    }

    /// Returns the files of facts of indexers, each with its number of documents.
    pub fn offered_facts<'a>(&'a self, files: &'a [Bytes]) -> impl Iterator<Item = (u32, &'a Bytes)> {
        let first = files.len() - self.facts.len();
        self.facts.iter().copied().zip(&files[first..])
    }

    /// Returns true if the bundle contains the record of `commit` and all its ancestors under `recipe`.
    pub fn has_commit(&self, commit: CommitId, recipe: u64) -> bool {
        let commits = self.commits.as_ref().filter(|commits| commits.recipe == recipe);
        commits.is_some_and(|commits| commits.tips().any(|tip| tip == commit))
    }

    /// Returns true if the bundle covers `tree` completely.
    pub fn has_tree(&self, tree: TreeId) -> bool {
        self.trees().any(|known| known == tree)
    }
}

fn open_entry(
    from: &mut impl BufRead,
    entry: &Entry,
    to: &mut impl Write,
    stage_error: &dyn Fn(io::Error) -> ReadError,
) -> Result<(), ReadError> {
    let damaged = |what: String| ReadError::Entry {
        name: entry.name.clone(),
        what,
    };
    let mut frame = Limited {
        left: entry.n_packed,
        from,
    };
    let mut hashed = Hashed {
        hasher: blake3::Hasher::new(),
        to,
    };
    let opened = decompress_from(&mut frame, entry.length, &mut hashed);
    let n_left = frame.left;
    match opened {
        Err(CompressError::Damaged(source)) if source.kind() == io::ErrorKind::StorageFull => {
            return Err(stage_error(source));
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
            return Err(damaged(format!("{error}{cause}")));
        }
        Ok(()) if n_left > 0 => return Err(ReadError::CutShort),
        Ok(()) => {}
    }
    if *hashed.hasher.finalize().as_bytes() == entry.hash {
        Ok(())
    } else {
        Err(damaged("its hash does not match the header".to_owned()))
    }
}

/// A reader limited to the packed bytes of one entry.
struct Limited<'a, R> {
    left: u64,
    from: &'a mut R,
}

impl<R: BufRead> Read for Limited<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n_read = self.fill_buf()?.read(to)?;
        self.consume(n_read);
        Ok(n_read)
    }
}

impl<R: BufRead> BufRead for Limited<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Ok(&[]);
        }
        let buffer = self.from.fill_buf()?;
        Ok(&buffer[..buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX))])
    }

    fn consume(&mut self, n_bytes: usize) {
        self.from.consume(n_bytes);
        self.left -= n_bytes as u64;
    }
}

/// A writer that hashes the bytes written through it.
struct Hashed<'a, W> {
    hasher: blake3::Hasher,
    to: &'a mut W,
}

impl<W: Write> Write for Hashed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_written = self.to.write(bytes)?;
        self.hasher.update(&bytes[..n_written]);
        Ok(n_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn read_exactly(from: &mut impl Read, to: &mut [u8]) -> Result<(), ReadError> {
    from.read_exact(to).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::CutShort,
        _ => ReadError::Io(error),
    })
}

fn read_signature(from: &mut impl Read, hash: &[u8; 32]) -> Result<Option<PublicKey>, ReadError> {
    let mut kind = [0];
    read_exactly(from, &mut kind)?;
    if kind == [0] {
        return Ok(None);
    }
    let (mut public, mut signature) = ([0; PUBLIC_BYTES], [0; SIGNATURE_BYTES]);
    read_exactly(from, &mut public)?;
    read_exactly(from, &mut signature)?;
    let public = PublicKey(public);
    if kind == [1] && public.is_valid_signature(hash, &signature) {
        Ok(Some(public))
    } else {
        Err(ReadError::Signature)
    }
}
