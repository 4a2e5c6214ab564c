//! Request and response formats of embedding servers.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::client::Request;
use super::embedder::{EmbedderOptions, EmbeddingApi, Encoding};
use super::texts::ServerLimits;

/// Builds the request for the vectors of `texts`.
pub(super) fn request(options: &EmbedderOptions, texts: &[&str]) -> Request {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| _ = body.insert(name.to_owned(), value);
    if options.api != EmbeddingApi::Tei {
        put("model", json!(options.model));
    }
    match options.api {
        EmbeddingApi::OpenAi => {
            put("input", json!(texts));
            put(
                "encoding_format",
                json!(match options.encoding {
                    Encoding::Float => "float",
                    Encoding::Base64 => "base64",
                }),
            );
        }
        EmbeddingApi::Ollama => {
            put("input", json!(texts));
            put("truncate", json!(true));
        }
        EmbeddingApi::Tei => {
            put("inputs", json!(texts));
            put("truncate", json!(true));
            put("normalize", json!(true));
        }
    }
    if let Some(dimensions) = options.dimensions {
        put("dimensions", json!(dimensions));
    }
    let path = match options.api {
        EmbeddingApi::OpenAi => "/embeddings",
        EmbeddingApi::Ollama => "/api/embed",
        EmbeddingApi::Tei => "/embed",
    };
    Request::post(path, &body).with_max_response_bytes(max_answer_bytes(texts.len()))
}

/// Maximum size of a response with `n` dense vectors: 16,384 numbers of 32 characters per vector, plus one such vector
/// for everything else.
fn max_answer_bytes(n: usize) -> u64 {
    (n as u64 + 1) << 19
}

/// Maximum size of a response with `n` sparse vectors: 30,000 tokens (the whole vocabulary of such models) of 64
/// characters each.
fn max_sparse_answer_bytes(n: usize) -> u64 {
    (n as u64 + 1) << 21
}

/// Builds the request for the sparse vectors of `texts`.
pub(super) fn sparse_request(texts: &[&str]) -> Request {
    Request::post("/embed_sparse", &json!({"inputs": texts, "truncate": true}))
        .with_max_response_bytes(max_sparse_answer_bytes(texts.len()))
}

/// A token of a sparse vector, with its weight.
#[derive(Deserialize)]
pub(super) struct Term {
    /// Index of the token in the vocabulary.
    pub(super) index: u32,
    pub(super) value: Number,
}

/// A component of a vector. JSON cannot express NaN or infinity, so servers send `null`, which is read as NaN.
#[derive(Clone, Copy, Deserialize)]
#[serde(from = "Option<f32>")]
pub(super) struct Number(pub(super) f32);

impl From<Option<f32>> for Number {
    fn from(number: Option<f32>) -> Self {
        Self(number.unwrap_or(f32::NAN))
    }
}

/// Returns the number of texts per request that every server with this API accepts.
pub(super) fn max_texts(api: EmbeddingApi) -> usize {
    match api {
        // OpenAI accepts 2,048 texts, but local servers answer smaller requests sooner.
        EmbeddingApi::OpenAi | EmbeddingApi::Ollama => 64,
        // The default of TEI's `--max-client-batch-size`.
        EmbeddingApi::Tei => 32,
    }
}

/// Returns the maximum size in bytes of all texts in a request. OpenAI accepts 300,000 tokens, TEI 2 MB of JSON.
pub(super) fn max_bytes(api: EmbeddingApi) -> usize {
    match api {
        EmbeddingApi::OpenAi | EmbeddingApi::Ollama => 600_000,
        EmbeddingApi::Tei => 1_000_000,
    }
}

/// Builds the request for the limits of a server. `None` if the API has no such request.
pub(super) fn limits_request(api: EmbeddingApi, model: &str) -> Option<Request> {
    match api {
        EmbeddingApi::OpenAi => None,
        EmbeddingApi::Ollama => Some(Request::post("/api/show", &json!({"model": model}))),
        EmbeddingApi::Tei => Some(Request::get("/info")),
    }
}

/// Reads the limits of a server from its response.
pub(super) fn limits(api: EmbeddingApi, answer: &Value) -> ServerLimits {
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    match api {
        EmbeddingApi::OpenAi => ServerLimits::default(),
        EmbeddingApi::Ollama => {
            // The field `<architecture>.context_length`.
            let info = answer["model_info"].as_object();
            let length = info.and_then(|info| info.iter().find(|(key, _)| key.ends_with(".context_length")));
            ServerLimits {
                max_tokens: length.and_then(|(_, value)| number(value)),
                max_texts: None,
            }
        }
        EmbeddingApi::Tei => ServerLimits {
            max_tokens: number(&answer["max_input_length"]),
            max_texts: number(&answer["max_client_batch_size"]).filter(|&max_texts| max_texts > 0),
        },
    }
}

/// The vectors in a response.
#[derive(Debug)]
pub(super) enum Answer {
    /// Vectors with the indices of their texts (OpenAI).
    Numbered(Vec<Numbered>),
    /// Vectors in the order of the texts, without indices.
    InOrder(Vec<Numbers>),
}

/// Parses a response in the format of `api` only, because trying several formats takes many times the memory.
pub(super) fn vectors(api: EmbeddingApi, answer: &[u8]) -> Result<Answer, String> {
    #[derive(Deserialize)]
    struct OfOpenAi {
        data: Vec<Numbered>,
    }
    #[derive(Deserialize)]
    struct OfOllama {
        embeddings: Vec<Numbers>,
    }
    let read = match api {
        EmbeddingApi::OpenAi => serde_json::from_slice(answer).map(|found: OfOpenAi| Answer::Numbered(found.data)),
        EmbeddingApi::Ollama => serde_json::from_slice(answer).map(|found: OfOllama| Answer::InOrder(found.embeddings)),
        EmbeddingApi::Tei => serde_json::from_slice(answer).map(Answer::InOrder),
    };
    read.map_err(|error| error.to_string())
}

#[derive(Debug, Deserialize)]
pub(super) struct Numbered {
    index: Option<usize>,
    embedding: Numbers,
}

/// A vector, written as numbers or as base64 of little-endian `f32`.
#[derive(Debug)]
pub(super) struct Numbers(Vec<f32>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vector")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Numbers, A::Error> {
        let mut vector = Vec::new();
        while let Some(Number(number)) = numbers.next_element()? {
            vector.push(number);
        }
        Ok(Numbers(vector))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Numbers, E> {
        let bytes = STANDARD_PAD_INDIFFERENT
            .decode(text)
            .map_err(|_| E::custom("a vector that is not base64"))?;
        match bytes.as_chunks::<4>() {
            (numbers, []) => Ok(Numbers(numbers.iter().map(|four| f32::from_le_bytes(*four)).collect())),
            _ => Err(E::custom("a vector whose length is not a multiple of four bytes")),
        }
    }
}

impl Answer {
    /// Returns one vector for each of `n` texts, in their order. The error describes the mismatch.
    pub(super) fn of_texts(self, n: usize) -> Result<Vec<Vec<f32>>, String> {
        match self {
            Self::Numbered(data) => numbered(data, n),
            Self::InOrder(vectors) if vectors.len() == n => Ok(vectors.into_iter().map(|vector| vector.0).collect()),
            Self::InOrder(vectors) => Err(format!("{} vectors for {n} texts", vectors.len())),
        }
    }
}

/// Sorts vectors by their indices. If none has an index, keeps their order.
fn numbered(data: Vec<Numbered>, n: usize) -> Result<Vec<Vec<f32>>, String> {
    if data.len() != n {
        return Err(format!("{} vectors for {n} texts", data.len()));
    }
    let has_numbers = data.iter().any(|entry| entry.index.is_some());
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; n];
    for (position, entry) in data.into_iter().enumerate() {
        let at = match entry.index {
            Some(index) => index,
            None if has_numbers => return Err("a vector without an index, although others have one".to_owned()),
            None => position,
        };
        let place = vectors
            .get_mut(at)
            .ok_or_else(|| format!("a vector for text {at} of {n}, counted from 0"))?;
        if place.replace(entry.embedding.0).is_some() {
            return Err(format!("two vectors for text {at}, counted from 0"));
        }
    }
    vectors
        .into_iter()
        .collect::<Option<_>>()
        .ok_or_else(|| "a text without a vector".to_owned())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(api: EmbeddingApi, text: &str, n: usize) -> Result<Vec<Vec<f32>>, String> {
        vectors(api, text.as_bytes())?.of_texts(n)
    }

    #[test]
    fn every_form_is_read_where_it_was_asked_for() {
        let expected = vec![vec![1.0, 2.0], vec![3.0, -0.5]];
        let apis = [EmbeddingApi::OpenAi, EmbeddingApi::Ollama, EmbeddingApi::Tei];
        for (api, text) in [
            (EmbeddingApi::Tei, r#"[[1,2],[3,-0.5]]"#),
            (
                EmbeddingApi::Ollama,
                r#"{"model":"m","embeddings":[[1,2],[3,-0.5]],"total_duration":1}"#,
            ),
            (
                EmbeddingApi::OpenAi,
                r#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[3,-0.5]},{"index":0,"embedding":[1,2]}]}"#,
            ),
            (
                EmbeddingApi::OpenAi,
                r#"{"data":[{"embedding":[1,2]},{"embedding":[3,-0.5]}]}"#,
            ),
            (
                EmbeddingApi::OpenAi,
                r#"{"data":[{"index":0,"embedding":"AACAPwAAAEA="},{"index":1,"embedding":"AABAQAAAAL8"}]}"#,
            ),
        ] {
            assert_eq!(read(api, text, 2).unwrap(), expected, "{text}");
            for other in apis.into_iter().filter(|other| *other != api) {
                assert!(read(other, text, 2).is_err(), "{other:?}: {text}");
            }
        }
        let odd = read(EmbeddingApi::Tei, "[[1,null]]", 1).unwrap();
        assert!(odd[0][0] == 1.0 && odd[0][1].is_nan());
    }

    #[test]
    fn wrong_answers_are_named() {
        for (text, what) in [
            (r#"[[1,2]]"#, "1 vectors for 2"),
            (r#"[[1],[2],[3]]"#, "3 vectors for 2"),
            (r#"[[1,NaN],[1,2]]"#, "expected value"),
            (r#"[[1,"2"],[1,2]]"#, "invalid type"),
            (r#"[1,2]"#, "expected a vector"),
        ] {
            let error = read(EmbeddingApi::Tei, text, 2).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
        for (text, what) in [
            (
                r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
                "two vectors",
            ),
            (
                r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#,
                "text 2 of 2",
            ),
            (
                r#"{"data":[{"index":0,"embedding":[1]},{"embedding":[1]}]}"#,
                "without an index",
            ),
            (
                r#"{"data":[{"index":0,"embedding":"AACAPw=="},{"index":1,"embedding":"A*"}]}"#,
                "base64",
            ),
            (
                r#"{"data":[{"index":0,"embedding":"AACAPw=="},{"index":1,"embedding":"AAA="}]}"#,
                "four bytes",
            ),
            (r#"{"error":"x"}"#, "missing field `data`"),
        ] {
            let error = read(EmbeddingApi::OpenAi, text, 2).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
