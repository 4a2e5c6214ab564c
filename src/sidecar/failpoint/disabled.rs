//! Replaces fail points in release builds.

use std::io;

use super::NotAFailPoint;

/// Does nothing.
pub fn arm(_wanted: &str) -> Result<(), NotAFailPoint> {
    Ok(())
}

/// Does nothing.
#[inline(always)]
pub fn hit(_name: &str) -> io::Result<()> {
    Ok(())
}
