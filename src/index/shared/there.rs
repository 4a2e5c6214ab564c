//! Records the vectors that a shared store is known to contain.

use roaring::RoaringBitmap;

use super::RepositoryTag;
use crate::embed::ProfileId;
use crate::model::ChunkKey;
use crate::sidecar::{FileError, SectionFile, SectionWriter, Sidecar, Store, decode, encode};

/// The extension of the files.
pub const THERE_ENDING: &str = "there";
/// Format version. 3: sections.
const FORMAT: u32 = 3;

/// The vectors that a shared store is known to contain, for one profile and one repository.
///
/// The file is stored next to the vectors and named after the profile and the repository. If it is lost, the store is
/// queried again.
///
/// Sections of the file:
/// - `meta`: record of (profile, repository, generation, epoch: 16 bytes each; n_vectors u64; dim u32).
/// - `docs`, `empty`: portable roaring bitmaps.
/// - `keys`: n × 16 bytes, the keys of the chunks, ascending.
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
    pub fn load(sidecar: &Sidecar, profile: ProfileId, repository: RepositoryTag) -> Result<Option<Self>, FileError> {
        let found = Self::open(sidecar, &name(profile, repository), Self::of)?;
        Ok(found.filter(|found| (found.profile, found.repository) == (profile, repository)))
    }

    /// Returns the keys of all chunks whose vectors this clone has stored or found in the shared store, ascending. Some
    /// of the vectors may have been removed from the store, and some of the chunks from this clone.
    pub fn keys(sidecar: &Sidecar, profile: ProfileId, repository: RepositoryTag) -> Result<Vec<ChunkKey>, FileError> {
        let keys = Self::open(sidecar, &name(profile, repository), keys_of)?;
        Ok(keys.unwrap_or_default())
    }

    /// Verifies the file `name`. Returns its profile.
    pub fn check(sidecar: &Sidecar, name: &str) -> Result<ProfileId, FileError> {
        let file = SectionFile::open(sidecar, Store::Dense, name, FORMAT)?;
        file.verify()?;
        keys_of(&file)?;
        Ok(Self::of(&file)?.profile)
    }

    /// Writes the file. `keys` must be ascending.
    pub fn store(&self, sidecar: &Sidecar, keys: &[ChunkKey]) -> Result<(), FileError> {
        let name = name(self.profile, self.repository);
        let bytes_of = |docs: &RoaringBitmap| {
            let mut bytes = Vec::with_capacity(docs.serialized_size());
            docs.serialize_into(&mut bytes).expect("a vector takes all bytes");
            bytes
        };
        let ids = (self.profile.0, self.repository.0, self.generation, self.epoch);
        let mut file = SectionWriter::new(FORMAT);
        file.add("meta", encode(&(ids, self.n_vectors, self.dim)));
        file.add("docs", bytes_of(&self.docs));
        file.add("empty", bytes_of(&self.empty));
        file.add("keys", keys.iter().flat_map(|key| key.0).collect());
        let written = sidecar.write(Store::Dense, &name, &file.finish());
        written.map_err(|source| FileError::write(sidecar.path(Store::Dense, &name), source))
    }

    /// Reads a part of the file `name`. `None` if the file is missing or that part is damaged.
    fn open<T>(
        sidecar: &Sidecar,
        name: &str,
        read: impl FnOnce(&SectionFile) -> Result<T, FileError>,
    ) -> Result<Option<T>, FileError> {
        match SectionFile::open(sidecar, Store::Dense, name, FORMAT).and_then(|file| read(&file)) {
            Err(error) if error.is_gone() => Ok(None),
            Err(error) if error.is_invalid() => {
                tracing::warn!("{error}; querying the shared store again");
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    fn of(file: &SectionFile) -> Result<Self, FileError> {
        let meta = file.section("meta")?;
        let (ids, n_vectors, dim) = decode(&meta).map_err(|error| file.damaged(error.to_string()))?;
        let (profile, repository, generation, epoch) = ids;
        let bitmap = |name: &str| {
            let bytes = file.section(name)?;
            RoaringBitmap::deserialize_from(&*bytes).map_err(|error| file.damaged(format!("{name}: {error}")))
        };
        Ok(Self {
            profile: ProfileId(profile),
            repository: RepositoryTag(repository),
            generation,
            epoch,
            n_vectors,
            dim,
            docs: bitmap("docs")?,
            empty: bitmap("empty")?,
        })
    }
}

fn keys_of(file: &SectionFile) -> Result<Vec<ChunkKey>, FileError> {
    let bytes = file.section("keys")?;
    match bytes.as_chunks() {
        (keys, []) => Ok(keys.iter().map(|key| ChunkKey(*key)).collect()),
        _ => Err(file.damaged("keys")),
    }
}

fn name(profile: ProfileId, repository: RepositoryTag) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&profile.0).update(&repository.0);
    format!("{}.{THERE_ENDING}", &hasher.finalize().to_hex()[..32])
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

        let name = name(profile, repository);
        let path = sidecar.path(Store::Dense, &name);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(There::check(&sidecar, &name).unwrap(), profile);
        for at in (0..whole.len()).step_by(31) {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            for damaged in [&bytes, &whole[..at]] {
                std::fs::write(&path, damaged).unwrap();
                assert!(There::check(&sidecar, &name).unwrap_err().is_invalid(), "{at}");
            }
        }
        std::fs::write(&path, &whole[..150]).unwrap();
        assert_eq!(There::load(&sidecar, profile, repository).unwrap(), None);
        assert!(There::keys(&sidecar, profile, repository).unwrap().is_empty());
    }
}
