//! The directory `.codescout/`: its layout, crash-safe writes, and locks.
//!
//! This module handles files, checksums and the list of live files ([`State`]). It does not interpret the contents of
//! the files. Published files are immutable; replacing `state` is the only commit point. Start with [`Sidecar`].

mod atomic;
mod beneath;
mod codec;
mod collected;
mod compress;
pub mod failpoint;
mod file_error;
mod format;
mod layout;
mod location;
mod lock;
mod past;
mod pins;
mod real_folder;
mod record;
mod sections;
mod staging;
mod state;
mod sums;
mod volume;

pub use atomic::{make_like, remove_stale_temporaries, write_atomic, write_in, write_private_in};
pub use beneath::{Entry, EntryKind, Owners};
pub use codec::{CodecError, decode, encode};
pub use collected::LastCollection;
pub use compress::{CompressError, compress, compress_into, decompress, decompress_from};
pub use file_error::{FileError, FileErrorKind, HOW_TO_REPAIR};
pub use layout::{FORMAT_VERSION, NOTES_NAME, Sidecar, Store};
pub use location::{Location, OpenError};
pub use lock::{FileLock, LockError, WriterLock};
pub use past::PastVersions;
pub use pins::Pin;
pub use real_folder::{RealFolder, real_path};
pub use sections::{Bytes, SectionFile, SectionWriter};
pub use staging::Staging;
pub use state::{GraphEntry, HistoryEntry, PreciseEntry, SegmentEntry, State, StoredFile, VectorEntry};
pub use sums::{ChangedFile, SUM_ENDING, is_intact, sums_of};
pub use volume::{Volume, volume};
