//! Paths as git keeps them: bytes, relative to the root of the tree, `/` between components.

use std::borrow::Cow;
use std::fmt;

use bstr::{BString, ByteSlice};

/// A path inside a tree. Bytes, not text: git allows any but NUL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(BString);

impl RepoPath {
    /// Takes the bytes of a path as a tree or an index holds them.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(BString::from(bytes.into()))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as text, invalid UTF-8 replaced.
    pub fn to_text(&self) -> Cow<'_, str> {
        self.0.to_str_lossy()
    }

    /// The part after the last `/`.
    pub fn file_name(&self) -> &[u8] {
        match self.0.rfind_byte(b'/') {
            Some(slash) => &self.0[slash + 1..],
            None => &self.0,
        }
    }
}

impl From<&str> for RepoPath {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
