//! A model for stubs of embedding servers. Texts with the same words have similar vectors.

use serde_json::{Value, json};

use super::stub::{Reply, Seen};

/// Returns a vector of unit length, in which each word adds to its own component.
pub(crate) fn vector_of(text: &str, dim: usize) -> Vec<f32> {
    let mut vector = vec![0f32; dim];
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    for word in words {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in word.to_lowercase().bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mixed = (hash ^ hash >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = (mixed >> 40) as usize % dim;
        vector[at] += if mixed >> 32 & 1 == 0 { 1.0 } else { -1.0 };
    }
    // Prevents a zero vector.
    vector[0] += 0.5;
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter().map(|x| x / norm).collect()
}

/// Returns the texts of a request, in any API format.
pub(crate) fn texts_of(seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let list = if body["inputs"].is_null() {
        &body["input"]
    } else {
        &body["inputs"]
    };
    let texts = list.as_array().cloned().unwrap_or_default();
    texts
        .iter()
        .map(|text| text.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Returns a response of OpenAI's API with the last text first, to detect clients that ignore the indices.
pub(crate) fn openai(seen: &Seen, dim: usize) -> Reply {
    let is_base64 = seen.json()["encoding_format"] == "base64";
    let data = texts_of(seen).into_iter().enumerate().rev().map(|(index, text)| {
        let vector = vector_of(&text, dim);
        let embedding = if is_base64 {
            Value::String(base64(&vector))
        } else {
            json!(vector)
        };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    });
    Reply::json(&json!({"object": "list", "data": data.collect::<Vec<_>>(), "model": "stub", "usage": {}}))
}

/// Returns a response of Ollama's API.
pub(crate) fn ollama(seen: &Seen, dim: usize) -> Reply {
    if seen.path == "/api/show" {
        return Reply::json(&json!({"model_info": {"bert.context_length": 16}}));
    }
    let vectors: Vec<Vec<f32>> = texts_of(seen).iter().map(|text| vector_of(text, dim)).collect();
    Reply::json(&json!({"model": "stub", "embeddings": vectors, "total_duration": 1}))
}

/// Returns a response of text-embeddings-inference, with its limit on the number of texts.
pub(crate) fn tei(seen: &Seen, dim: usize, max_texts: usize) -> Reply {
    if seen.path == "/info" {
        return Reply::json(&json!({"model_id": "stub", "max_input_length": 8, "max_client_batch_size": max_texts}));
    }
    let texts = texts_of(seen);
    if texts.len() > max_texts {
        let error = format!("batch size {} > maximum allowed batch size {max_texts}", texts.len());
        let body = json!({"error": error, "error_type": "Validation"});
        return Reply::status(413).body(body.to_string().as_bytes());
    }
    let vectors: Vec<Vec<f32>> = texts.iter().map(|text| vector_of(text, dim)).collect();
    Reply::json(&json!(vectors))
}

/// Returns a sparse vector like those of SPLADE: each word has a token and a weight, and some words also add tokens of
/// synonyms.
pub(crate) fn sparse_of(text: &str) -> Vec<(u32, f32)> {
    const SAME: &[(&str, &str)] = &[("automobile", "car"), ("zorblax", "quuxify"), ("halt", "stop")];
    let mut weights = std::collections::BTreeMap::new();
    let words = text
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| !word.is_empty());
    for word in words.map(str::to_lowercase) {
        *weights.entry(token_of(&word)).or_insert(0.0) = 1.5f32;
        for (_, other) in SAME.iter().filter(|(known, _)| *known == word) {
            weights.entry(token_of(other)).or_insert(0.75);
        }
    }
    weights.into_iter().collect()
}

fn token_of(word: &str) -> u32 {
    let hash = word.bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash % 30_522
}

/// Returns a response of text-embeddings-inference with a SPLADE model.
pub(crate) fn tei_sparse(seen: &Seen) -> Reply {
    if seen.path == "/info" {
        return Reply::json(&json!({"model_id": "stub", "max_input_length": 512, "max_client_batch_size": 32}));
    }
    if seen.path != "/embed_sparse" {
        let body = json!({"error": "Model is not an embedding model", "error_type": "Backend"});
        return Reply::status(424).body(body.to_string().as_bytes());
    }
    let vectors: Vec<Vec<Value>> = texts_of(seen)
        .iter()
        .map(|text| {
            // In reverse order, because clients must not depend on the order.
            let terms = sparse_of(text).into_iter().rev();
            terms
                .map(|(index, value)| json!({"index": index, "value": value}))
                .collect()
        })
        .collect();
    Reply::json(&json!(vectors))
}

fn base64(vector: &[f32]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut four = [0; 4];
        four[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(four);
        for at in 0..4 {
            if at <= group.len() {
                text.push(char::from(LETTERS[(bits >> (18 - 6 * at)) as usize & 63]))
            } else {
                text.push('=')
            }
        }
    }
    text
}

/// The format of a reranker's response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Judge {
    Tei,
    Infinity,
    Cohere,
    Jina,
    Voyage,
    LlamaCpp,
}

/// Returns the query and the texts of a reranking request, in any API format.
pub(crate) fn asked_of(seen: &Seen) -> (String, Vec<String>) {
    let body = seen.json();
    let query = body["query"].as_str().unwrap_or_default().to_owned();
    let texts = [&body["texts"], &body["documents"]]
        .into_iter()
        .find_map(Value::as_array);
    let texts = texts.into_iter().flatten();
    let texts = texts.map(|text| text.as_str().unwrap_or_default().to_owned());
    (query, texts.collect())
}

/// Returns a reranker's response, best text first. The response of llama.cpp is in the order of the texts.
pub(crate) fn judged(seen: &Seen, judge: Judge, score: impl Fn(&str) -> f64) -> Reply {
    let (_, texts) = asked_of(seen);
    let mut scored: Vec<(usize, f64)> = texts.iter().map(|text| score(text)).enumerate().collect();
    if !matches!(judge, Judge::LlamaCpp) {
        scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    }
    let result = |&(index, score): &(usize, f64)| match judge {
        Judge::Tei => json!({"index": index, "score": score}),
        Judge::Infinity => json!({"relevance_score": score, "index": index, "document": texts[index]}),
        Judge::Jina => json!({"index": index, "relevance_score": score, "document": {"text": texts[index]}}),
        Judge::Cohere | Judge::Voyage | Judge::LlamaCpp => json!({"index": index, "relevance_score": score}),
    };
    let results: Vec<Value> = scored.iter().map(result).collect();
    Reply::json(&match judge {
        Judge::Tei => json!(results),
        Judge::Voyage => json!({"object": "list", "data": results, "model": "stub", "usage": {"total_tokens": 1}}),
        Judge::Infinity => json!({"object": "rerank", "results": results, "model": "stub", "usage": {}, "created": 1}),
        Judge::Cohere => json!({"id": "x", "results": results, "meta": {"billed_units": {"search_units": 1}}}),
        Judge::Jina | Judge::LlamaCpp => json!({"model": "stub", "results": results, "usage": {"total_tokens": 1}}),
    })
}

/// Returns the first number in a text.
pub(crate) fn number_in(text: &str) -> f64 {
    let digits = text.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(-1.0)
}
