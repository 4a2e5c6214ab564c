//! Indexes the commit messages of a batch, by words and by vectors. Each message is one document.
//!
//! Section file, format 1:
//!
//! ```text
//! meta      u32 number of the first commit, u32 n
//! words     a lexical file of n documents; its keys are the first 16 bytes of the commits' ids
//! vectors   a vector file of n rows
//! ```

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use crate::embed::{EmbedError, Embedder, ProfileId};
use crate::extract::ChunkKind;
use crate::index::dense::{Quantisation, VectorFile, VectorWriter, WriteError};
use crate::index::lexical::{DocMeta, LexicalDoc, LexicalError, LexicalSegment, LexicalWriter};
use crate::model::{ChunkKey, Lang, explain_by};
use crate::sidecar::{Bytes, FileError, HistoryEntry, SectionFile, SectionWriter, Sidecar, Store};

use super::batch::Batch;
use super::wire::{put_u32, u32_at};

/// Format version. 1: initial.
const FORMAT: u32 = 1;
/// Length limit of the text that is embedded. Text beyond it rarely describes the purpose of a commit.
const MAX_EMBEDDED_BYTES: usize = 4 << 10;
/// Number of texts in a call of the embedder.
const EMBED_BATCH: usize = 64;

/// The index of the messages of a batch.
#[derive(Clone, Debug)]
pub struct Messages {
    base: u32,
    /// The lexical index. Document 0 is the first commit of the batch.
    pub words: LexicalSegment,
    /// The vectors, in the same order.
    pub vectors: VectorFile,
}

/// An error from building or reading the index of messages.
#[derive(Debug, thiserror::Error)]
pub enum MessagesError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The lexical index cannot be written or read.
    #[error(transparent)]
    Words(#[from] LexicalError),
    /// The vectors cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The embedder failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

explain_by!(MessagesError: File, Words, Embed);

impl Messages {
    /// Opens the message index of a stored batch, if it has one.
    pub fn open(sidecar: &Sidecar, batch: &HistoryEntry) -> Result<Option<Self>, MessagesError> {
        let Some(stored) = &batch.messages else {
            return Ok(None);
        };
        let file = SectionFile::open(sidecar, Store::History, &stored.name, FORMAT)?;
        let messages = Self::of(&file)?;
        if (messages.base, messages.n_commits()) == (batch.base_commit, batch.n_commits) {
            Ok(Some(messages))
        } else {
            Err(file.damaged("commits differ from the state").into())
        }
    }

    /// Opens a message index in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, MessagesError> {
        let name = Path::new("index of messages");
        Self::of(&SectionFile::from_bytes(name, Bytes::from_vec(bytes), FORMAT)?)
    }

    fn of(file: &SectionFile) -> Result<Self, MessagesError> {
        let meta = file.section("meta")?;
        let number = |index| u32_at(&meta, index).ok_or_else(|| file.damaged("meta"));
        let messages = Self {
            base: number(0)?,
            words: LexicalSegment::from_bytes(file.path(), file.section("words")?)?,
            vectors: VectorFile::from_bytes(file.path(), file.section("vectors")?)?,
        };
        let n_commits = number(1)?;
        if (messages.words.n_docs(), messages.vectors.len()) == (n_commits, n_commits) {
            Ok(messages)
        } else {
            Err(file.damaged("number of messages").into())
        }
    }

    /// Returns the number of the first commit.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Returns the number of commits.
    pub fn n_commits(&self) -> u32 {
        self.words.n_docs()
    }

    /// Returns the embedding profile of the vectors.
    pub fn profile(&self) -> ProfileId {
        self.vectors.profile()
    }

    /// Verifies the whole file and checks that it matches its batch.
    pub fn verify(&self, batch: &Batch) -> Result<(), MessagesError> {
        self.words.verify()?;
        self.vectors.verify()?;
        for local in 0..self.n_commits() {
            if self.words.key(local) != key_of(batch, local)? {
                return Err(FileError::damaged("index of messages", "commit ids").into());
            }
        }
        Ok(())
    }

    /// Builds the message index of a batch.
    pub fn build(batch: &Batch, embedder: &dyn Embedder, interrupt: &AtomicBool) -> Result<Vec<u8>, MessagesError> {
        let messages = batch.messages()?;
        let (words, vectors) = rayon::join(
            || words_of(batch, &messages),
            || vectors_of(&messages, embedder, interrupt),
        );
        Ok(file_of(batch, words?, vectors?))
    }

    /// Builds the message index of `batch` from those of the batches that it was merged from, without embedding
    /// messages again. Returns `None` if their vectors have different profiles or formats.
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

fn key_of(batch: &Batch, local: u32) -> Result<ChunkKey, FileError> {
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
            // The head contains the subject again, to give it more weight.
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

/// Returns a message without its trailers, which are similar in all commits.
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

/// Returns true if a line is a trailer, such as `Signed-off-by: A U Thor <author@example.com>`.
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
    fn trailers_are_not_embedded() {
        let message = "fix: the leak\n\nWhy: it leaked.\nSigned-off-by: A <a@b>\nChange-Id: I12\n";
        assert_eq!(embedded_text(message), "fix: the leak\n\nWhy: it leaked.\n");
        let long = "é".repeat(MAX_EMBEDDED_BYTES);
        assert!(embedded_text(&long).len() <= MAX_EMBEDDED_BYTES);
    }
}
