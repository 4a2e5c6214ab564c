//! Keeps the contents of blobs that were read last. Most searches show parts of the same few files, and decompressing
//! them takes longer than ranking.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::model::BlobId;

/// Limit on the total size. A server has up to 48 views.
const MAX_BYTES: usize = 4 << 20;
/// Limit on the size of one content. Larger ones would displace all others.
const MAX_BLOB_BYTES: usize = 256 << 10;

/// The contents of some blobs.
#[derive(Debug, Default)]
pub(super) struct RecentBlobs(Mutex<Contents>);

#[derive(Debug, Default)]
struct Contents {
    by_blob: HashMap<BlobId, Vec<u8>>,
    n_bytes: usize,
}

impl RecentBlobs {
    /// Returns the content of a blob if it is kept.
    pub(super) fn get(&self, blob: BlobId) -> Option<Vec<u8>> {
        let contents = self.0.lock();
        contents.by_blob.get(&blob).cloned()
    }

    /// Keeps the content of a blob, instead of all others if there is no room.
    pub(super) fn keep(&self, blob: BlobId, bytes: &[u8]) {
        if bytes.len() > MAX_BLOB_BYTES {
            return;
        }
        let mut contents = self.0.lock();
        if contents.by_blob.contains_key(&blob) {
            return;
        }
        if contents.n_bytes + bytes.len() > MAX_BYTES {
            *contents = Contents::default();
        }
        contents.n_bytes += bytes.len();
        contents.by_blob.insert(blob, bytes.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Oid;

    #[test]
    fn the_size_of_what_is_kept_is_limited() {
        let blob = |number: u8| BlobId(Oid::from_bytes(&[number; 20]).expect("20 bytes"));
        let recent = RecentBlobs::default();
        recent.keep(blob(0), &vec![0; MAX_BLOB_BYTES + 1]);
        assert_eq!(recent.get(blob(0)), None);
        let n_that_fit = (MAX_BYTES / MAX_BLOB_BYTES) as u8;
        for number in 1..=n_that_fit {
            recent.keep(blob(number), &vec![number; MAX_BLOB_BYTES]);
            recent.keep(blob(number), &vec![number; MAX_BLOB_BYTES]);
        }
        assert!((1..=n_that_fit).all(|number| recent.get(blob(number)).is_some()));
        recent.keep(blob(n_that_fit + 1), b"x");
        assert_eq!(recent.get(blob(1)), None);
        assert_eq!(recent.get(blob(n_that_fit + 1)).as_deref(), Some(&b"x"[..]));
    }
}
