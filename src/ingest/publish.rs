//! Writes segments to files and publishes the state.

use crate::index::{RowWriter, SegmentData};
use crate::sidecar::{
    FileError, PastVersions, SegmentEntry, Sidecar, State, Store, StoredFile, VectorEntry, WriterLock, failpoint,
};

/// File extensions of the files of a segment.
pub(super) const ARTIFACTS_ENDING: &str = "art";
pub(super) const LEXICAL_ENDING: &str = "lex";
pub(super) const VECTORS_ENDING: &str = "vec";
pub(super) const SPARSE_ENDING: &str = "sparse";
pub(super) const GRAPH_ENDING: &str = "graph";
/// Hexadecimal digits of the content's hash at the start of file names.
pub(super) const NAME_DIGITS: usize = StoredFile::NAME_DIGITS;

/// Stores a segment's files and publishes the state that lists them.
pub(super) fn publish_segment(
    sidecar: &Sidecar,
    lock: &WriterLock,
    state: &mut State,
    data: &SegmentData,
    profile: &str,
) -> Result<(), FileError> {
    let stored = store_segment(sidecar, data, profile)?;
    pass("segment.stored", sidecar)?;
    state.segments.push(stored);
    publish_state(sidecar, lock, state)
}

/// Stores a segment's files. They are unused until a state lists them.
pub(super) fn store_segment(sidecar: &Sidecar, data: &SegmentData, profile: &str) -> Result<SegmentEntry, FileError> {
    // Written in parallel, because writing a small file mostly waits for the disk.
    let (artifacts, (lexical, vectors)) = rayon::join(
        || store(sidecar, Store::Artifacts, ARTIFACTS_ENDING, &data.artifacts),
        || {
            rayon::join(
                || store(sidecar, Store::Lexical, LEXICAL_ENDING, &data.lexical),
                || store(sidecar, Store::Dense, VECTORS_ENDING, &data.vectors),
            )
        },
    );
    Ok(SegmentEntry {
        base_blob: data.base_blob,
        n_blobs: data.n_blobs,
        base_doc: data.base_doc,
        n_docs: data.n_docs,
        artifacts: artifacts?,
        lexical: lexical?,
        vectors: vec![VectorEntry {
            profile: profile.to_owned(),
            file: vectors?,
        }],
    })
}

/// Publishes the next generation of the state.
pub(super) fn publish_state(sidecar: &Sidecar, lock: &WriterLock, state: &mut State) -> Result<(), FileError> {
    state.generation += 1;
    state.drop_stale_graphs();
    sidecar
        .publish(state, lock)
        .map_err(|source| FileError::write(sidecar.root(), source))
}

/// Records which past versions of files are indexed.
pub(super) fn note_past_versions(
    sidecar: &Sidecar,
    lock: &WriterLock,
    versions: PastVersions,
) -> Result<(), FileError> {
    sidecar
        .set_past_versions(versions, lock)
        .map_err(|source| FileError::write(sidecar.root(), source))
}

/// Passes a fail point of the writer.
pub(super) fn pass(name: &str, sidecar: &Sidecar) -> Result<(), FileError> {
    failpoint::hit(name).map_err(|source| FileError::write(sidecar.root(), source))
}

/// Writes the rows of a segment.
pub(super) fn store_rows(sidecar: &Sidecar, rows: RowWriter) -> Result<StoredFile, FileError> {
    let ending = match rows {
        RowWriter::Dense(_) => VECTORS_ENDING,
        RowWriter::Sparse(_) => SPARSE_ENDING,
    };
    store(sidecar, Store::Dense, ending, &rows.finish())
}

/// Stores a file under a name derived from its content. An existing file with that name has the same content.
pub(super) fn store(sidecar: &Sidecar, store: Store, ending: &str, bytes: &[u8]) -> Result<StoredFile, FileError> {
    let file = StoredFile::of(bytes, ending);
    sidecar
        .write(store, &file.name, bytes)
        .map_err(|source| FileError::write(sidecar.path(store, &file.name), source))?;
    Ok(file)
}
