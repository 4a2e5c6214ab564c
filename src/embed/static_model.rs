//! The static embedding model, which treats a text as a weighted bag of tokens.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::embedder::{EmbedError, Embedder, Embedding};
use super::model_file::{Header, ModelFile, ModelFileError, Pooling};
use super::profile::Profile;
use super::rows;
use super::token_dots::Bag;
use super::tokenizer::for_each_token;
use super::vocabulary::WordHash;

/// A static embedding model. The vector of a text is unit(Σ √n(t) · s\[t\] · q\[t\]) over the distinct tokens t of the
/// text, as defined in `weights/FORMAT.md`.
///
/// The vector of a text is bit-identical on every machine.
#[derive(Debug)]
pub struct StaticModel {
    profile: Profile,
    /// The parsed model file. The built-in model is parsed on first use.
    file: OnceLock<ModelFile>,
}

/// Selects the token weights. Some words have less weight in a query than in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Weights for texts that are searched.
    Document,
    /// Weights for queries.
    Query,
}

/// An error from opening a model on disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be read.
    #[error("cannot read embedding model {}", .path.display())]
    Io {
        /// The path of the file or directory.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The file is not a valid model.
    #[error("cannot use embedding model {}", .path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The underlying error.
        source: ModelFileError,
    },
    /// The loader rejected a Model2Vec directory.
    #[error("cannot use Model2Vec folder {}: {reason}", .path.display())]
    Refused {
        /// The path of the directory.
        path: PathBuf,
        /// The error of the loader.
        reason: String,
    },
    /// The feature for Model2Vec is not enabled in this build.
    #[error("cannot use Model2Vec folder {}: this build lacks the feature `model2vec`", .path.display())]
    NotBuilt {
        /// The path of the directory.
        path: PathBuf,
    },
}

/// The file of the built-in model.
static EMBEDDED: &[u8] = include_bytes!("weights/codescout-embed.bin");
const EMBEDDED_NAME: &str = "codescout-embed-v1";
/// The BLAKE3 hash of `EMBEDDED`. It is a constant so that startup need not hash 7 MB; a test verifies it.
const EMBEDDED_DIGEST: &str = "fd67d72474d4617ce6b0700e1c282084dd8d5e861adcbca4d92390ad0669cb81";

/// Size limit of a model file, far above that of any real model. Prevents a wrong path from filling the memory.
const MAX_MODEL_BYTES: u64 = 1 << 31;

/// Number of texts between checks of the interrupt flag.
const TEXTS_PER_INTERRUPT_CHECK: usize = 64;

impl StaticModel {
    /// Returns the built-in model. The first use takes about a millisecond to index the vocabulary.
    pub fn embedded() -> Self {
        let header = Header::parse(EMBEDDED).expect("the tests read the model inside the binary");
        Self {
            profile: profile(header.dim, header.pooling, EMBEDDED_NAME, EMBEDDED_DIGEST.to_owned()),
            file: OnceLock::new(),
        }
    }

    /// Reads a model file in the format of the built-in model. The profile has the name of the file and the BLAKE3 hash
    /// of its bytes.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io {
            path: path.to_owned(),
            source,
        };
        if fs::metadata(path).map_err(io)?.len() > MAX_MODEL_BYTES {
            return Err(io(io::ErrorKind::FileTooLarge.into()));
        }
        let bytes = fs::read(path).map_err(io)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::from_bytes(bytes, &name).map_err(|source| OpenError::Damaged {
            path: path.to_owned(),
            source,
        })
    }

    /// Parses the bytes of a model file.
    pub fn from_bytes(bytes: Vec<u8>, name: &str) -> Result<Self, ModelFileError> {
        let digest = blake3::hash(&bytes).to_hex().to_string();
        Ok(Self::new(ModelFile::parse(Cow::Owned(bytes))?, name, digest))
    }

    fn new(file: ModelFile, name: &str, digest: String) -> Self {
        Self {
            profile: profile(file.dim, file.pooling, name, digest),
            file: file.into(),
        }
    }

    fn file(&self) -> &ModelFile {
        let read = || ModelFile::parse(Cow::Borrowed(EMBEDDED)).expect("the tests read the model inside the binary");
        self.file.get_or_init(read)
    }

    /// Returns the number of components of each vector.
    pub fn dim(&self) -> usize {
        self.profile.dim
    }

    /// Returns the number of tokens in the vocabulary. Token ids are below this number.
    pub fn n_tokens(&self) -> usize {
        self.file().vocabulary.len()
    }

    /// Returns the token ids of `text`, in order. Accepts any bytes: invalid UTF-8 has the same tokens as its lossy
    /// decoding.
    pub fn token_ids(&self, text: &[u8]) -> Vec<u32> {
        let mut ids = Vec::new();
        for_each_token(&self.file().vocabulary, text, |id| ids.push(id));
        ids
    }

    /// Returns the id of a word if it is a single token. `word` must be in lower case.
    pub fn token_id(&self, word: &str) -> Option<u32> {
        let hash = word.bytes().fold(WordHash::EMPTY, WordHash::with);
        self.file().vocabulary.find(hash, word.as_bytes())
    }

    /// Returns the text of a token.
    pub fn token_text(&self, token: u32) -> Option<&str> {
        std::str::from_utf8(self.file().vocabulary.entry(token)?).ok()
    }

    /// Returns the embedding of one text. To embed many texts, use [`Self::embed_into`].
    pub fn embed(&self, text: &[u8], side: Side) -> Embedding {
        let mut vector = vec![0.0; self.dim()];
        let weight = self.embed_into(text, side, &mut Scratch::default(), &mut vector);
        Embedding { vector, weight }
    }

    /// Computes the unit vector of `text` and writes it to `vector`, which must have `dim` components. Writes zeros if
    /// the text has no tokens. Returns the weight, which is the length of the pooled vector before normalisation.
    ///
    /// Does not allocate if `scratch` has been used before. Accepts any bytes, like [`Self::token_ids`].
    pub fn embed_into(&self, text: &[u8], side: Side, scratch: &mut Scratch, vector: &mut [f32]) -> f32 {
        assert_eq!(vector.len(), self.dim(), "the vector must have the model's dimension");
        scratch.start(self.n_tokens());
        for_each_token(&self.file().vocabulary, text, |id| scratch.count(id));
        let terms = scratch.weigh(self.file().pooling, self.scale(side));
        vector.fill(0.0);
        rows::add_rows(self.file().rows(), terms, vector);
        rows::normalise(vector)
    }

    /// Returns the pooled and normalised [`Bag`] of some tokens, which can be scored against many queries. Ignores ids
    /// outside the vocabulary.
    pub fn bag(&self, token_ids: &[u32], side: Side) -> Bag {
        self.bag_in(token_ids, side, &mut Scratch::default())
    }

    /// Returns the same as [`Self::bag`], faster for many bags.
    pub(super) fn bag_in(&self, token_ids: &[u32], side: Side, scratch: &mut Scratch) -> Bag {
        scratch.start(self.n_tokens());
        for &id in token_ids.iter().filter(|&&id| (id as usize) < self.n_tokens()) {
            scratch.count(id);
        }
        let terms = scratch.weigh(self.file().pooling, self.scale(side));
        let mut vector = vec![0.0; self.dim()];
        rows::add_rows(self.file().rows(), terms, &mut vector);
        Bag::new(terms, rows::norm(&vector))
    }

    /// Returns the stored row of a token: `dim` signed bytes, not multiplied with the token's scale.
    pub(super) fn row(&self, token: u32) -> Option<&[u8]> {
        let start = (token as usize).checked_mul(self.dim())?;
        self.file().rows().get(start..start + self.dim())
    }

    /// Returns the `k` tokens whose rows are most similar to the row of `token`, with their cosines. Sorted by
    /// descending cosine, then by id; excludes `token` itself. Reads all rows, which takes about a millisecond for the
    /// built-in model.
    pub fn neighbours(&self, token: u32, k: usize) -> Vec<(u32, f32)> {
        let Some(row) = self.row(token) else { return Vec::new() };
        let all = rows::dots_and_squares(self.file().rows(), row);
        let own = all[token as usize].1;
        let mut ranked: Vec<(u32, f32)> = (0u32..)
            .zip(&all)
            .filter(|&(id, &(_, square))| id != token && square > 0 && own > 0)
            .map(|(id, &(dot, square))| (id, dot as f32 / (own as f32 * square as f32).sqrt()))
            .collect();
        let best_first = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if k < ranked.len() {
            ranked.select_nth_unstable_by(k, best_first);
            ranked.truncate(k);
        }
        ranked.sort_unstable_by(best_first);
        ranked
    }

    fn scale(&self, side: Side) -> &[f32] {
        match (side, &self.file().query_scale) {
            (Side::Query, Some(scale)) => scale,
            _ => &self.file().scale,
        }
    }
}

fn profile(dim: usize, pooling: Pooling, name: &str, digest: String) -> Profile {
    let counts = match pooling {
        Pooling::Linear => "linear counts",
        Pooling::Sqrt => "sqrt counts",
    };
    Profile {
        model: name.to_owned(),
        digest,
        dim,
        recipe: format!("static rows pooled by {counts}, no prefix"),
    }
}

impl Embedder for StaticModel {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Embedding>, EmbedError> {
        let mut scratch = Scratch::default();
        let mut embeddings = Vec::with_capacity(texts.len());
        for batch in texts.chunks(TEXTS_PER_INTERRUPT_CHECK) {
            if interrupt.load(Ordering::Relaxed) {
                return Err(EmbedError::Interrupted);
            }
            embeddings.extend(batch.iter().map(|text| {
                let mut vector = vec![0.0; self.dim()];
                let weight = self.embed_into(text.as_bytes(), Side::Document, &mut scratch, &mut vector);
                Embedding { vector, weight }
            }));
        }
        Ok(embeddings)
    }

    fn embed_query(&self, text: &str, _interrupt: &AtomicBool) -> Result<Embedding, EmbedError> {
        Ok(self.embed(text.as_bytes(), Side::Query))
    }
}

/// Working memory of [`StaticModel::embed_into`]. Use one per thread; it works with any model.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The number of occurrences of each token. All zero between texts.
    counts: Vec<u32>,
    /// The distinct tokens of the text in the order of their first occurrence; later also their weights.
    terms: Vec<(u32, f32)>,
}

impl Scratch {
    fn start(&mut self, n_tokens: usize) {
        self.counts.resize(n_tokens, 0);
        self.terms.clear();
    }

    #[inline(always)]
    fn count(&mut self, token: u32) {
        let count = &mut self.counts[token as usize];
        if *count == 0 {
            self.terms.push((token, 0.0));
        }
        *count = count.saturating_add(1);
    }

    /// Converts counts to weights and resets the counts.
    fn weigh(&mut self, pooling: Pooling, scale: &[f32]) -> &[(u32, f32)] {
        for (token, weight) in &mut self.terms {
            let count = std::mem::take(&mut self.counts[*token as usize]) as f32;
            let count = match pooling {
                Pooling::Linear => count,
                Pooling::Sqrt => count.sqrt(),
            };
            *weight = count * scale[*token as usize];
        }
        &self.terms
    }
}

#[cfg(test)]
mod tests;
