//! What the messages of a batch of commits say: their words and their meaning, one document a commit.
//!
//! A file of sections, format 1:
//!
//! ```text
//! meta      u32 number of the first commit, u32 n
//! words     a lexical file of n documents; its keys are the first 16 bytes of the commits' ids
//! vectors   a vector file of n rows
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use crate::embed::{EmbedError, Embedder, ProfileId};
use crate::extract::ChunkKind;
use crate::index::dense::{Quantisation, VectorFile, VectorFileError, VectorWriter, WriteError};
use crate::index::lexical::{DocMeta, LexicalDoc, LexicalError, LexicalSegment, LexicalWriter};
use crate::model::{ChunkKey, Lang};
use crate::sidecar::{Bytes, SectionError, SectionFile, SectionWriter, Sidecar, Store};

use super::batch::{Batch, BatchError};
use super::wire::{put_u32, u32_at};

/// 1: the first.
const FORMAT: u32 = 1;
/// Further text of a message says nothing about what the commit is for.
const MAX_EMBEDDED_BYTES: usize = 4 << 10;
/// Texts handed to the embedder at once.
const EMBED_BATCH: usize = 64;

/// Words and vectors of the messages of one batch, opened.
#[derive(Clone, Debug)]
pub struct Messages {
    base: u32,
    /// Their words; document 0 is the first commit of the batch.
    pub words: LexicalSegment,
    /// Their vectors, in the same order.
    pub vectors: VectorFile,
}

/// Why messages could not be indexed or their index read.
#[derive(Debug, thiserror::Error)]
pub enum MessagesError {
    /// The file.
    #[error(transparent)]
    Section(#[from] SectionError),
    /// Its words.
    #[error(transparent)]
    Words(#[from] LexicalError),
    /// Its vectors.
    #[error("vectors of messages cannot be read")]
    Vectors(#[from] VectorFileError),
    /// New vectors.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The embedder.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The messages.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl Messages {
    /// Opens a file of the store.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, MessagesError> {
        Self::of(&SectionFile::open(sidecar, Store::History, name, FORMAT)?)
    }

    /// Opens bytes in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, MessagesError> {
        let name = Path::new("index of messages");
        Self::of(&SectionFile::from_bytes(name, Bytes::from_vec(bytes), FORMAT)?)
    }

    fn of(file: &SectionFile) -> Result<Self, MessagesError> {
        let meta = file.section("meta")?;
        let number = |index| u32_at(&meta, index).ok_or_else(|| file.damaged("meta"));
        let messages = Self {
            base: number(0)?,
            words: LexicalSegment::from_shared(file.path(), file.section("words")?)?,
            vectors: VectorFile::open(Arc::new(file.section("vectors")?))?,
        };
        let n_commits = number(1)?;
        if (messages.words.n_docs(), messages.vectors.len()) == (n_commits, n_commits) {
            Ok(messages)
        } else {
            Err(file.damaged("number of messages").into())
        }
    }

    /// The number of the first commit.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// How many commits it has.
    pub fn n_commits(&self) -> u32 {
        self.words.n_docs()
    }

    /// What the vectors depend on.
    pub fn profile(&self) -> ProfileId {
        self.vectors.profile()
    }

    /// Reads all of it, and compares it with the batch that it is about.
    pub fn verify(&self, batch: &Batch) -> Result<(), MessagesError> {
        self.words.verify()?;
        self.vectors.verify()?;
        for local in 0..self.n_commits() {
            if self.words.key(local) != key_of(batch, local)? {
                return Err(SectionError::Damaged {
                    path: "index of messages".into(),
                    what: "it is about other commits".to_owned(),
                }
                .into());
            }
        }
        Ok(())
    }

    /// The bytes of the file for a batch.
    pub fn build(batch: &Batch, embedder: &dyn Embedder, interrupt: &AtomicBool) -> Result<Vec<u8>, MessagesError> {
        let messages = batch.messages()?;
        let (words, vectors) = rayon::join(
            || words_of(batch, &messages),
            || vectors_of(&messages, embedder, interrupt),
        );
        Ok(file_of(batch, words?, vectors?))
    }

    /// The same from the files of the batches that `batch` was merged of: no text is embedded again. `None` if their vectors are of
    /// different kinds.
    pub fn merged(parts: &[Self], batch: &Batch) -> Result<Option<Vec<u8>>, MessagesError> {
        let Some(first) = parts.first() else { return Ok(None) };
        let mut vectors = VectorWriter::new(first.vectors.dim(), first.vectors.quantisation(), first.profile())?;
        for part in parts {
            for row in 0..part.vectors.len() {
                match vectors.copy_row(&part.vectors, row) {
                    Err(WriteError::OtherKind) => return Ok(None),
                    copied => copied?,
                }
            }
        }
        let words = words_of(batch, &batch.messages()?)?;
        Ok(Some(file_of(batch, words, vectors.finish())))
    }
}

fn file_of(batch: &Batch, words: Vec<u8>, vectors: Vec<u8>) -> Vec<u8> {
    let mut meta = Vec::new();
    put_u32(&mut meta, batch.base());
    put_u32(&mut meta, batch.n_commits());
    let mut file = SectionWriter::new(FORMAT);
    file.add("meta", meta);
    file.add("words", words);
    file.add("vectors", vectors);
    file.finish()
}

fn key_of(batch: &Batch, local: u32) -> Result<ChunkKey, BatchError> {
    let id = batch.id(local)?;
    let first = id.0.as_bytes().first_chunk().expect("an id has at least 20 bytes");
    Ok(ChunkKey(*first))
}

fn words_of(batch: &Batch, messages: &[String]) -> Result<Vec<u8>, MessagesError> {
    let mut writer = LexicalWriter::new()?;
    for (local, message) in (0..).zip(messages) {
        writer.add(LexicalDoc {
            key: key_of(batch, local)?,
            meta: DocMeta {
                n_tokens: 0,
                n_bytes: message.len() as u32,
                lang: Lang::TEXT,
                kind: ChunkKind::Window,
                n_definitions: 0,
            },
            names: &[],
            // The subject counts twice.
            head: message.lines().next().unwrap_or_default(),
            body: message,
        })?;
    }
    Ok(writer.finish()?)
}

fn vectors_of(messages: &[String], embedder: &dyn Embedder, interrupt: &AtomicBool) -> Result<Vec<u8>, MessagesError> {
    let texts: Vec<String> = messages.iter().map(|message| embedded_text(message)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let embedded: Vec<_> = texts
        .par_chunks(EMBED_BATCH)
        .map(|texts| embedder.embed_documents(texts, interrupt))
        .collect::<Result<_, _>>()?;
    let profile = embedder.profile();
    let mut writer = VectorWriter::new(profile.dim, Quantisation::Int4, profile.id())?;
    for embedding in embedded.into_iter().flatten() {
        writer.push(&embedding.vector, embedding.weight)?;
    }
    Ok(writer.finish())
}

/// A message without the lines that only say who was involved: they are alike in all commits.
fn embedded_text(message: &str) -> String {
    let mut text = String::new();
    for line in message.lines().filter(|line| !is_trailer(line)) {
        if text.len() + line.len() > MAX_EMBEDDED_BYTES {
            text.extend(line.chars().take(MAX_EMBEDDED_BYTES.saturating_sub(text.len()) / 4));
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Whether a line is like `Signed-off-by: A U Thor <author@example.com>`.
pub fn is_trailer(line: &str) -> bool {
    let Some((name, _)) = line.split_once(": ") else {
        return false;
    };
    name.contains('-') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_not_what_a_commit_is_about() {
        let message = "fix: the leak\n\nWhy: it leaked.\nSigned-off-by: A <a@b>\nChange-Id: I12\n";
        assert_eq!(embedded_text(message), "fix: the leak\n\nWhy: it leaked.\n");
        let long = "é".repeat(MAX_EMBEDDED_BYTES);
        assert!(embedded_text(&long).len() <= MAX_EMBEDDED_BYTES);
    }
}
