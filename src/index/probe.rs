//! Recognizes a model by its vector for a fixed text.

use std::sync::Arc;

use super::rows::{Row, RowFile, RowWriter};
use crate::embed::ProfileId;

/// The probe text. A model that gives it a different vector than before is a different model.
pub const PROBE_TEXT: &str = "fn parse(text: &str) -> Result<Config, Error> // reads the settings file, line by line";
/// Rounding, processors and batch sizes change a vector by less than this allows; another model changes it by far more.
const MIN_PROBE_COSINE: f32 = 0.99;

/// Checks that a row can be from the model that gave `known`. The error describes the difference.
pub fn check_probe(probe: &RowFile, known: &RowFile) -> Result<(), String> {
    match probe.likeness(known)? {
        MIN_PROBE_COSINE.. => Ok(()),
        cosine => Err(format!(
            "another vector for the same text than before (cosine {cosine:.2})"
        )),
    }
}

/// Returns the bytes of a file with one row. Fails if the row cannot be written.
pub fn probe_file(row: &Row, profile: ProfileId) -> Result<Vec<u8>, String> {
    let mut writer = RowWriter::like(row, profile).map_err(|error| error.to_string())?;
    writer.push(row).map_err(|error| error.to_string())?;
    Ok(writer.finish())
}

/// Does [`check_probe`] for a row that is not in a file.
pub fn check_row(row: &Row, known: &RowFile) -> Result<(), String> {
    let probe = RowFile::open(Arc::new(probe_file(row, known.profile())?)).map_err(|error| error.to_string())?;
    check_probe(&probe, known)
}
