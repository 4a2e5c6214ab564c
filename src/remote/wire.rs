//! What embedders are sent and what they answer, form by form.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::client::Request;
use super::embedder::{EmbedderOptions, EmbeddingApi, Encoding};
use super::texts::ServerLimits;

/// The request for the vectors of `texts`.
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
    Request::post(path, &body)
}

/// The request for the sparse vectors of `texts`.
pub(super) fn sparse_request(texts: &[&str]) -> Request {
    Request::post("/embed_sparse", &json!({"inputs": texts, "truncate": true}))
}

/// A token of a sparse vector.
#[derive(Deserialize)]
pub(super) struct Term {
    /// Its number in the vocabulary.
    pub(super) index: u32,
    pub(super) value: Number,
}

/// A number of a vector. What is none in the server's arithmetic has no form in JSON, and comes as `null`.
#[derive(Clone, Copy, Deserialize)]
#[serde(from = "Option<f32>")]
pub(super) struct Number(pub(super) f32);

impl From<Option<f32>> for Number {
    fn from(number: Option<f32>) -> Self {
        Self(number.unwrap_or(f32::NAN))
    }
}

/// Texts in a request that are taken everywhere.
pub(super) fn max_texts(api: EmbeddingApi) -> usize {
    match api {
        // OpenAI takes 2,048; servers at home answer smaller requests sooner.
        EmbeddingApi::OpenAi | EmbeddingApi::Ollama => 64,
        // The default of its --max-client-batch-size.
        EmbeddingApi::Tei => 32,
    }
}

/// Bytes of texts in a request: OpenAI takes 300,000 tokens, TEI 2 MB of JSON.
pub(super) fn max_bytes(api: EmbeddingApi) -> usize {
    match api {
        EmbeddingApi::OpenAi | EmbeddingApi::Ollama => 600_000,
        EmbeddingApi::Tei => 1_000_000,
    }
}

/// The request for what a server takes, where there is one.
pub(super) fn limits_request(api: EmbeddingApi, model: &str) -> Option<Request> {
    match api {
        EmbeddingApi::OpenAi => None,
        EmbeddingApi::Ollama => Some(Request::post("/api/show", &json!({"model": model}))),
        EmbeddingApi::Tei => Some(Request::get("/info")),
    }
}

/// What a server takes, by its answer.
pub(super) fn limits(api: EmbeddingApi, answer: &Value) -> ServerLimits {
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    match api {
        EmbeddingApi::OpenAi => ServerLimits::default(),
        EmbeddingApi::Ollama => {
            // `<architecture>.context_length`
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

/// The vectors in an answer, in any of the forms.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Answer {
    /// OpenAI.
    Numbered { data: Vec<Numbered> },
    /// Ollama.
    Named { embeddings: Vec<Vec<Number>> },
    /// TEI.
    Bare(Vec<Vec<Number>>),
}

#[derive(Deserialize)]
pub(super) struct Numbered {
    index: Option<usize>,
    embedding: Numbers,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Numbers {
    Plain(Vec<Number>),
    Base64(String),
}

impl Answer {
    /// One vector for each of `n` texts, in their order; else what is wrong.
    pub(super) fn into_vectors(self, n: usize) -> Result<Vec<Vec<f32>>, String> {
        let found = match self {
            Self::Numbered { data } => return numbered(data, n),
            Self::Named { embeddings } => embeddings,
            Self::Bare(embeddings) => embeddings,
        };
        match found.len() == n {
            true => Ok(found.into_iter().map(plain).collect()),
            false => Err(format!("{} vectors for {n} texts", found.len())),
        }
    }
}

fn plain(numbers: Vec<Number>) -> Vec<f32> {
    numbers.into_iter().map(|number| number.0).collect()
}

/// In the order of their numbers, which need not be that of the list; without numbers it is.
fn numbered(data: Vec<Numbered>, n: usize) -> Result<Vec<Vec<f32>>, String> {
    if data.len() != n {
        return Err(format!("{} vectors for {n} texts", data.len()));
    }
    let has_numbers = data.iter().any(|entry| entry.index.is_some());
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; n];
    for (position, entry) in data.into_iter().enumerate() {
        let at = match entry.index {
            Some(index) => index,
            None if has_numbers => return Err("a vector without a number among others with one".to_owned()),
            None => position,
        };
        let place = vectors
            .get_mut(at)
            .ok_or_else(|| format!("a vector for text {at} of {n}, counted from 0"))?;
        if place.replace(entry.embedding.into_vector()?).is_some() {
            return Err(format!("two vectors for text {at}, counted from 0"));
        }
    }
    vectors
        .into_iter()
        .collect::<Option<_>>()
        .ok_or_else(|| "a text without a vector".to_owned())
}

impl Numbers {
    fn into_vector(self) -> Result<Vec<f32>, String> {
        match self {
            Self::Plain(vector) => Ok(plain(vector)),
            Self::Base64(text) => {
                let bytes = base64(&text).ok_or_else(|| "a vector that is not base64".to_owned())?;
                let (numbers, rest) = bytes.as_chunks::<4>();
                match rest.is_empty() {
                    true => Ok(numbers.iter().map(|four| f32::from_le_bytes(*four)).collect()),
                    false => Err("a vector that is no list of numbers of four bytes".to_owned()),
                }
            }
        }
    }
}

/// Source: RFC 4648, section 4. Padding may be left out.
fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.chunks(4) {
        let mut bits = 0u32;
        for &letter in group {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        let n_bytes = group.len().checked_sub(1).filter(|&n| n > 0)?;
        bits <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=n_bytes]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(text: &str, n: usize) -> Result<Vec<Vec<f32>>, String> {
        serde_json::from_str::<Answer>(text)
            .map_err(|error| error.to_string())?
            .into_vectors(n)
    }

    #[test]
    fn every_form_is_read() {
        let expected = vec![vec![1.0, 2.0], vec![3.0, -0.5]];
        for text in [
            r#"[[1,2],[3,-0.5]]"#,
            r#"{"model":"m","embeddings":[[1,2],[3,-0.5]],"total_duration":1}"#,
            r#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[3,-0.5]},{"index":0,"embedding":[1,2]}]}"#,
            r#"{"data":[{"embedding":[1,2]},{"embedding":[3,-0.5]}]}"#,
            r#"{"data":[{"index":0,"embedding":"AACAPwAAAEA="},{"index":1,"embedding":"AABAQAAAAL8"}]}"#,
        ] {
            assert_eq!(read(text, 2).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn wrong_answers_are_named() {
        for (text, what) in [
            (r#"[[1,2]]"#, "1 vectors for 2"),
            (r#"[[1],[2],[3]]"#, "3 vectors for 2"),
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
                "without a number",
            ),
            (
                r#"{"data":[{"index":0,"embedding":"AACAPw=="},{"index":1,"embedding":"A*"}]}"#,
                "base64",
            ),
            (
                r#"{"data":[{"index":0,"embedding":"AACAPw=="},{"index":1,"embedding":"AAA="}]}"#,
                "four bytes",
            ),
            (r#"{"error":"x"}"#, "did not match"),
            (r#"[[1,NaN],[1,2]]"#, "expected value"),
        ] {
            let error = read(text, 2).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
