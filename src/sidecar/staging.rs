//! Stores external data in an unlinked file until it is verified.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use super::failpoint;
use super::sections::Bytes;

/// An unlinked file in the sidecar's file system. The kernel deletes it when the process ends, for whatever reason.
#[derive(Debug)]
pub struct Staging {
    file: File,
}

impl Staging {
    pub(super) fn on(file: File) -> io::Result<Self> {
        failpoint::hit("staging.begun")?;
        Ok(Self { file })
    }

    /// Maps the written data. No more data can be written.
    pub fn finish(self) -> io::Result<Bytes> {
        failpoint::hit("staging.written")?;
        Bytes::map(&self.file)
    }

    /// Returns the file, positioned at its start.
    pub fn rewind(mut self) -> io::Result<File> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok(self.file)
    }
}

impl Write for Staging {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
