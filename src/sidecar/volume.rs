//! Queries the file system of a directory.

use std::io;
use std::path::Path;

/// Properties of the file system that contains a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Bytes available to the current user.
    pub free_bytes: u64,
    /// True for a network file system, on which locks may not work and a mapped file may change.
    pub is_network: bool,
}

/// The `statfs(2)` types of network file systems: NFS, SMB, CIFS, SMB2, AFS, Ceph, 9P, Coda.
const NETWORK_TYPES: [u32; 8] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x5346_414f,
    0x00c3_6400,
    0x0102_1997,
    0x7375_7245,
];

/// Returns the properties of the file system that contains `folder`. If `folder` does not exist, uses its nearest
/// existing parent.
pub fn volume(folder: &Path) -> io::Result<Volume> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    let space = rustix::fs::statvfs(there)?;
    Ok(Volume {
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
        is_network: is_network(there)?,
    })
}

#[cfg(target_os = "linux")]
fn is_network(folder: &Path) -> io::Result<bool> {
    let kind = rustix::fs::statfs(folder)?.f_type;
    // The integer type of the field depends on the architecture. The values have 32 bits.
    Ok(NETWORK_TYPES.contains(&(kind as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_network(_folder: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn missing_directory_uses_its_parents_volume() {
        let folder = tempfile::tempdir().unwrap();
        let found = volume(&folder.path().join("a/b")).unwrap();
        assert!(found.free_bytes > 0 && !found.is_network);
    }
}
