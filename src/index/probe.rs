//! By what a model is known again: the row that it gives a fixed text.

use std::sync::Arc;

use super::rows::{Row, RowFile, RowWriter};
use crate::embed::ProfileId;

/// Whoever gives another vector for it than before is another model.
pub const PROBE_TEXT: &str = "fn parse(text: &str) -> Result<Config, Error> // reads the settings file, line by line";
/// Rounding, other processors and batches turn a vector by less; another model turns it by far more.
const MIN_PROBE_COSINE: f32 = 0.99;

/// Whether a row can be of the model that gave `known`; else what is different.
pub fn check_probe(probe: &RowFile, known: &RowFile) -> Result<(), String> {
    match probe.likeness(known)? {
        MIN_PROBE_COSINE.. => Ok(()),
        cosine => Err(format!(
            "another vector for the same text than before (cosine {cosine:.2})"
        )),
    }
}

/// The bytes of a file of one row; else why there can be none.
pub fn probe_file(row: &Row, profile: ProfileId) -> Result<Vec<u8>, String> {
    let mut writer = RowWriter::like(row, profile).map_err(|error| error.to_string())?;
    writer.push(row).map_err(|error| error.to_string())?;
    Ok(writer.finish())
}

/// [`check_probe`] of a row that is in no file.
pub fn check_row(row: &Row, known: &RowFile) -> Result<(), String> {
    let probe = RowFile::open(Arc::new(probe_file(row, known.profile())?)).map_err(|error| error.to_string())?;
    check_probe(&probe, known)
}
