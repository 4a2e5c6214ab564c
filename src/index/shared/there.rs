//! Records the vectors that a shared store is known to contain.

use std::io;

use roaring::RoaringBitmap;

use super::RepositoryTag;
use crate::embed::ProfileId;
use crate::model::ChunkKey;
use crate::sidecar::{Bytes, Sidecar, Store};

/// The extension of the files.
pub const THERE_ENDING: &str = "there";
const MAGIC: &[u8; 4] = b"CSTH";
/// Format version. 1: initial. 2: adds documents that the model cannot embed.
const FORMAT: u32 = 2;
const HEADER_BYTES: usize = 128;
/// Number of header bytes that the checksum covers.
const HASHED: usize = 112;
const KEY_BYTES: usize = 16;

/// The vectors that a shared store is known to contain, for one profile and one repository.
///
/// The file is stored next to the vectors and named after the profile and the repository. If it is lost, the store is
/// queried again.
///
/// Little endian:
///
/// | offset | bytes | content |
/// | --- | --- | --- |
/// | 0 | 4 | `CSTH` |
/// | 4 | u32 | format version = 2 |
/// | 8 | u32 | number of keys n |
/// | 12 | u32 | bytes of both bitmaps b |
/// | 16 | 16 | id of the embedding profile |
/// | 32 | 16 | tag of the repository |
/// | 48 | 16 | generation of the store |
/// | 64 | 16 | epoch of the document numbers |
/// | 80 | u64 | vectors of the repository in the store, including those of other clones |
/// | 88 | u32 | dim, 0 for sparse vectors |
/// | 92 | 20 | zero |
/// | 112 | 16 | first bytes of BLAKE3 of the bytes 0..112 and the bitmaps |
/// | 128 | b | portable roaring bitmaps: numbers of the documents in the store, then of those without a vector |
/// | | n × 16 | keys of the chunks, ascending |
/// | | 16 | first bytes of BLAKE3 of the keys |
#[derive(Clone, Debug, PartialEq)]
pub struct There {
    /// The embedding profile of the vectors.
    pub profile: ProfileId,
    /// The repository whose vectors these are.
    pub repository: RepositoryTag,
    /// The generation of the store before this clone looked up or stored any vector.
    pub generation: [u8; 16],
    /// The epoch of the numbers in `docs`.
    pub epoch: [u8; 16],
    /// Number of vectors of the repository in the store when the file was written. If the store now has fewer in the
    /// same generation, vectors have been lost.
    pub n_vectors: u64,
    /// Number of components of each vector; 0 for sparse vectors.
    pub dim: u32,
    /// The documents whose vectors are in the store.
    pub docs: RoaringBitmap,
    /// The documents that the model cannot embed, for example files of white space.
    pub empty: RoaringBitmap,
}

impl There {
    /// Reads the file for a profile and a repository. Returns `None` if the file is missing or damaged.
    pub fn load(sidecar: &Sidecar, profile: ProfileId, repository: RepositoryTag) -> io::Result<Option<Self>> {
        let Some(bytes) = mapped(sidecar, &name(profile, repository))? else {
            return Ok(None);
        };
        let found = Self::parse(bytes.as_ref()).map(|(there, _)| there);
        if found.is_none() {
            tracing::warn!("the record of shared vectors is damaged; querying the store again");
        }
        Ok(found.filter(|found| (found.profile, found.repository) == (profile, repository)))
    }

    /// Returns the keys of all chunks whose vectors this clone has stored or found in the shared store, ascending. Some
    /// of the vectors may have been removed from the store, and some of the chunks from this clone.
    pub fn keys(sidecar: &Sidecar, profile: ProfileId, repository: RepositoryTag) -> io::Result<Vec<ChunkKey>> {
        let bytes = mapped(sidecar, &name(profile, repository))?;
        Ok(bytes.and_then(|bytes| parsed_keys(bytes.as_ref())).unwrap_or_default())
    }

    /// Returns the profile in the content of a file, or `None` if the file is invalid.
    pub fn profile_of(bytes: &[u8]) -> Option<ProfileId> {
        parsed_keys(bytes)?;
        Some(Self::parse(bytes)?.0.profile)
    }

    /// Writes the file. `keys` must be ascending.
    pub fn store(&self, sidecar: &Sidecar, keys: &[ChunkKey]) -> io::Result<()> {
        let mut bytes = vec![0; HEADER_BYTES];
        self.docs.serialize_into(&mut bytes)?;
        self.empty.serialize_into(&mut bytes)?;
        let n_bitmap = bytes.len() - HEADER_BYTES;
        bytes[..4].copy_from_slice(MAGIC);
        for (at, number) in [
            (4, FORMAT),
            (8, keys.len() as u32),
            (12, n_bitmap as u32),
            (88, self.dim),
        ] {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        for (at, id) in [
            (16, self.profile.0),
            (32, self.repository.0),
            (48, self.generation),
            (64, self.epoch),
        ] {
            bytes[at..at + 16].copy_from_slice(&id);
        }
        bytes[80..88].copy_from_slice(&self.n_vectors.to_le_bytes());
        let hash = head_hash(&bytes[..HASHED], &bytes[HEADER_BYTES..]);
        bytes[HASHED..HEADER_BYTES].copy_from_slice(&hash);
        let keys: Vec<u8> = keys.iter().flat_map(|key| key.0).collect();
        bytes.extend_from_slice(&keys);
        bytes.extend_from_slice(&blake3::hash(&keys).as_bytes()[..16]);
        sidecar.write(Store::Dense, &name(self.profile, self.repository), &bytes)
    }

    /// Parses the content of a file. Also returns the offset of the keys.
    fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let header = bytes.get(..HEADER_BYTES)?;
        let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four"));
        let id = |at: usize| <[u8; 16]>::try_from(&header[at..at + 16]).expect("sixteen");
        if !header.starts_with(MAGIC) || number(4) != FORMAT {
            return None;
        }
        let end = HEADER_BYTES + number(12) as usize;
        let mut bitmaps = bytes.get(HEADER_BYTES..end)?;
        if id(HASHED) != head_hash(&header[..HASHED], bitmaps) {
            return None;
        }
        let there = Self {
            profile: ProfileId(id(16)),
            repository: RepositoryTag(id(32)),
            generation: id(48),
            epoch: id(64),
            n_vectors: u64::from_le_bytes(header[80..88].try_into().expect("eight")),
            dim: number(88),
            docs: RoaringBitmap::deserialize_from(&mut bitmaps).ok()?,
            empty: RoaringBitmap::deserialize_from(&mut bitmaps).ok()?,
        };
        Some((there, end))
    }
}

fn parsed_keys(bytes: &[u8]) -> Option<Vec<ChunkKey>> {
    let (_, start) = There::parse(bytes)?;
    let (keys, hash) = bytes[start..].split_last_chunk::<16>()?;
    let n = u32::from_le_bytes(bytes[8..12].try_into().expect("four")) as usize;
    if keys.len() != n * KEY_BYTES || hash != &blake3::hash(keys).as_bytes()[..16] {
        return None;
    }
    let key = |raw: &[u8]| ChunkKey(raw.try_into().expect("sixteen"));
    Some(keys.chunks_exact(KEY_BYTES).map(key).collect())
}

fn head_hash(header: &[u8], bitmaps: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header).update(bitmaps);
    hasher.finalize().as_bytes()[..16].try_into().expect("sixteen")
}

fn name(profile: ProfileId, repository: RepositoryTag) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&profile.0).update(&repository.0);
    format!("{}.{THERE_ENDING}", &hasher.finalize().to_hex()[..32])
}

fn mapped(sidecar: &Sidecar, name: &str) -> io::Result<Option<Bytes>> {
    match sidecar.map(Store::Dense, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => bytes.map(Some),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::time::Duration;

    use super::*;

    #[test]
    fn catalogue_round_trips_and_ignores_damage() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        drop(sidecar.lock(Duration::from_secs(20)).unwrap());
        let (profile, repository) = (ProfileId([1; 16]), RepositoryTag([2; 16]));
        assert_eq!(There::load(&sidecar, profile, repository).unwrap(), None);
        let there = There {
            profile,
            repository,
            generation: [3; 16],
            epoch: [4; 16],
            n_vectors: 5_000_000_000,
            dim: 384,
            docs: (10..5000).collect(),
            empty: (5000..5003).collect(),
        };
        let keys: Vec<ChunkKey> = (0..9).map(|n| ChunkKey([n; 16])).collect();
        there.store(&sidecar, &keys).unwrap();
        assert_eq!(There::load(&sidecar, profile, repository).unwrap(), Some(there));
        assert_eq!(There::keys(&sidecar, profile, repository).unwrap(), keys);
        assert_eq!(There::load(&sidecar, profile, RepositoryTag([9; 16])).unwrap(), None);

        let path = sidecar.path(Store::Dense, &name(profile, repository));
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(There::profile_of(&whole), Some(profile));
        for at in (0..whole.len()).step_by(3) {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            assert_eq!(There::profile_of(&bytes), None, "{at}");
            assert_eq!(There::profile_of(&whole[..at]), None, "{at}");
        }
        std::fs::write(&path, &whole[..150]).unwrap();
        assert_eq!(There::load(&sidecar, profile, repository).unwrap(), None);
        assert!(There::keys(&sidecar, profile, repository).unwrap().is_empty());
    }
}
