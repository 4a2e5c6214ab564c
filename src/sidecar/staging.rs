//! A file without a name: what came from outside stands in it until it has been checked.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use super::failpoint;
use super::sections::Bytes;

/// A file on the volume of a sidecar that has no name there: whatever ends the program, nothing is left of it.
#[derive(Debug)]
pub struct Staging {
    file: File,
}

impl Staging {
    pub(super) fn on(file: File) -> io::Result<Self> {
        failpoint::hit("staging.begun")?;
        Ok(Self { file })
    }

    /// What was written, mapped. It does not change any more.
    pub fn finish(self) -> io::Result<Bytes> {
        failpoint::hit("staging.written")?;
        Bytes::map(&self.file)
    }

    /// What was written, to be read from its start.
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
