//! Detects that a server uses another model, by embedding a fixed text.

use std::path::Path;

use super::rows::{Row, RowFile, RowWriter};
use crate::embed::ProfileId;

/// The text that is embedded. If its vector differs from the stored one, the model has changed.
pub const PROBE_TEXT: &str = "fn parse(text: &str) -> Result<Config, Error> // reads the settings file, line by line";
/// The minimum cosine of two vectors of the same model. Rounding, processors and batch sizes change a vector by far
/// less, another model by far more.
const MIN_PROBE_COSINE: f32 = 0.99;

/// Checks that `probe` and `known`, two vectors of the fixed text, are from the same model. The error describes the
/// difference.
pub fn check_probe(probe: &RowFile, known: &RowFile) -> Result<(), String> {
    match probe.likeness(known)? {
        MIN_PROBE_COSINE.. => Ok(()),
        cosine => Err(format!(
            "a different vector for the same text than before (cosine {cosine:.2})"
        )),
    }
}

/// Returns the content of a file with one row.
pub fn probe_file(row: &Row, profile: ProfileId) -> Result<Vec<u8>, String> {
    let mut writer = RowWriter::like(row, profile).map_err(|error| error.to_string())?;
    writer.push(row).map_err(|error| error.to_string())?;
    Ok(writer.finish())
}

/// Like [`check_probe`], for a row that is not in a file.
pub fn check_row(row: &Row, known: &RowFile) -> Result<(), String> {
    let probe = RowFile::from_bytes(Path::new("probe"), probe_file(row, known.profile())?);
    let probe = probe.map_err(|error| error.to_string())?;
    check_probe(&probe, known)
}
