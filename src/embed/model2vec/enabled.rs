//! Implements [`Embedder`] with the reference loader of Model2Vec.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use model2vec_rs::model::StaticModel as Loaded;

use crate::embed::{EmbedError, Embedder, Embedding, OpenError, Profile};
use crate::model::panics;

/// Opens a directory that contains `tokenizer.json`, `model.safetensors` and `config.json`.
///
/// The profile has the name of the directory and the BLAKE3 hash of the three files. Texts are never truncated. The
/// weight of every embedding is 1, because the loader returns means, whose length does not depend on the amount of
/// content in a text.
pub fn open(folder: &Path) -> Result<Box<dyn Embedder>, OpenError> {
    let [tokenizer, tensors, config] = [
        read(&folder.join("tokenizer.json"))?,
        read(&folder.join("model.safetensors"))?,
        read(&folder.join("config.json"))?,
    ];
    let refused = |reason: String| OpenError::Refused {
        path: folder.to_owned(),
        reason,
    };
    // It panics if the files of a model are inconsistent, for example if a token id has no row.
    let model = panics::caught(|| Loaded::from_bytes(&tokenizer, &tensors, &config, Some(true)))
        .ok_or_else(|| refused("its loader failed".to_owned()))?
        .map_err(|error| refused(format!("{error:#}")))?;
    let mut hasher = blake3::Hasher::new();
    for file in [&tokenizer, &tensors, &config] {
        hasher.update(&(file.len() as u64).to_le_bytes());
        hasher.update(file);
    }
    let profile = Profile {
        model: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        digest: hasher.finalize().to_hex().to_string(),
        dim: model.dim(),
        recipe: "model2vec, whole texts, no prefix".to_owned(),
    };
    Ok(Box::new(Model2Vec { profile, model }))
}

struct Model2Vec {
    profile: Profile,
    model: Loaded,
}

impl Model2Vec {
    fn embed(&self, text: &str) -> Result<Embedding, EmbedError> {
        let vector = panics::caught(|| self.model.encode_with_args(&[text.to_owned()], None, 1).pop())
            .flatten()
            .ok_or_else(|| EmbedError::Unusable {
                backend: self.profile.model.clone(),
                detail: "no vector".to_owned(),
            })?;
        Embedding::from_foreign(vector, self.profile.dim, &self.profile.model)
    }
}

impl Embedder for Model2Vec {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Embedding>, EmbedError> {
        texts
            .iter()
            .map(|text| match interrupt.load(Ordering::Relaxed) {
                true => Err(EmbedError::Interrupted),
                false => self.embed(text),
            })
            .collect()
    }

    fn embed_query(&self, text: &str, _interrupt: &AtomicBool) -> Result<Embedding, EmbedError> {
        self.embed(text)
    }
}

/// Size limit of a model's file, far above that of any real model. Prevents a wrong path from filling the memory.
const MAX_FILE_BYTES: u64 = 1 << 32;

fn read(path: &Path) -> Result<Vec<u8>, OpenError> {
    let io = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    match fs::metadata(path).map_err(io)?.len() > MAX_FILE_BYTES {
        true => Err(io(io::ErrorKind::FileTooLarge.into())),
        false => fs::read(path).map_err(io),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// Writes a model with three words and two dimensions.
    fn write_folder(folder: &Path, rows: &[[f32; 2]]) {
        let tokenizer = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
            "decoder": null,
            "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "read": 1, "file": 2}, "unk_token": "[UNK]"}}"#;
        let data: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
        let mut header = format!(
            r#"{{"embeddings":{{"dtype":"F32","shape":[{},2],"data_offsets":[0,{}]}}}}"#,
            rows.len(),
            data.len()
        );
        header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
        let tensors = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
        fs::write(folder.join("tokenizer.json"), tokenizer).unwrap();
        fs::write(folder.join("model.safetensors"), tensors).unwrap();
        fs::write(folder.join("config.json"), r#"{"normalize": false}"#).unwrap();
    }

    #[test]
    fn a_folder_gives_unit_vectors() {
        let folder = tempfile::tempdir().unwrap();
        write_folder(folder.path(), &[[9.0, 9.0], [3.0, 0.0], [0.0, 4.0]]);
        let model = open(folder.path()).unwrap();
        assert_eq!(model.profile().dim, 2);
        let texts = ["read file unheard", "File", "unheard"];
        let found = model.embed_documents(&texts, &AtomicBool::new(false)).unwrap();
        assert!(
            (found[0].vector[0] - 0.6).abs() < 1e-6 && (found[0].vector[1] - 0.8).abs() < 1e-6,
            "{found:?}"
        );
        assert_eq!(found[1], model.embed_query("file", &AtomicBool::new(false)).unwrap());
        assert_eq!(
            found[2],
            Embedding {
                vector: vec![0.0, 0.0],
                weight: 0.0
            }
        );
        let long = "read ".repeat(2000) + &"file ".repeat(2000);
        assert_eq!(
            model.embed_query(&long, &AtomicBool::new(false)).unwrap(),
            model.embed_query("read file", &AtomicBool::new(false)).unwrap()
        );
    }

    #[test]
    fn the_files_pin_the_profile() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_folder(one.path(), &[[9.0, 9.0], [3.0, 0.0], [0.0, 4.0]]);
        write_folder(other.path(), &[[9.0, 9.0], [3.0, 0.0], [0.0, 5.0]]);
        assert_ne!(
            open(one.path()).unwrap().profile().digest,
            open(other.path()).unwrap().profile().digest
        );
    }

    #[test]
    fn a_damaged_folder_is_an_error_and_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(open(folder.path()), Err(OpenError::Io { .. })));
        write_folder(folder.path(), &[[9.0, 9.0], [3.0, 0.0]]);
        let model = open(folder.path()).unwrap();
        assert!(matches!(
            model.embed_query("file", &AtomicBool::new(false)),
            Err(EmbedError::Unusable { .. })
        ));
        fs::write(folder.path().join("model.safetensors"), b"nonsense").unwrap();
        assert!(matches!(open(folder.path()), Err(OpenError::Refused { .. })));
    }
}
