//! The folder with the broker's socket. Only the user can enter it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::sidecar::FileLock;

/// Name of the socket. Versions with different messages have different brokers.
const SOCKET: &str = concat!("lsp-", env!("CARGO_PKG_VERSION"), ".sock");
/// Limit on the length of the path of a socket on all systems.
const MAX_SOCKET_BYTES: usize = 103;
const LOCK: &str = "lsp.lock";

/// Where the broker listens, and the program that is started as broker if none listens.
#[derive(Clone, Debug)]
pub struct BrokerPlace {
    /// A folder of the user for the socket. Created if it does not exist.
    pub folder: PathBuf,
    /// The program.
    pub program: PathBuf,
}

/// Returns the path of the socket in a folder.
pub(super) fn socket(folder: &Path) -> PathBuf {
    folder.join(SOCKET)
}

/// Creates the folder if necessary. Fails if others may enter it.
pub(super) fn prepare(folder: &Path) -> io::Result<()> {
    if socket(folder).as_os_str().len() > MAX_SOCKET_BYTES {
        let reason = format!("{} is too long for the path of a socket", socket(folder).display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let entry = fs::symlink_metadata(folder)?;
    let is_ours = entry.is_dir() && entry.uid() == rustix::process::geteuid().as_raw();
    if !is_ours || entry.mode() & 0o077 != 0 {
        let reason = format!("{} is not a folder that only you can enter", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

/// Locks the start and the end of a broker. Returns `None` if another process holds the lock.
pub(super) fn try_lock(folder: &Path) -> io::Result<Option<FileLock>> {
    let file = File::options().create(true).append(true).open(folder.join(LOCK))?;
    Ok(FileLock::take(file)?.ok())
}
