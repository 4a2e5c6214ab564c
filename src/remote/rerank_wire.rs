//! Request and response formats of rerankers.

use serde_json::{Map, Value, json};

use super::client::Request;
use super::reranker::{RerankApi, RerankerOptions};

/// Builds the request for the scores of `texts`.
pub(super) fn request(options: &RerankerOptions, query: &str, texts: &[&str]) -> Request {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| _ = body.insert(name.to_owned(), value);
    put("query", json!(query));
    if options.api != RerankApi::Tei && !options.model.is_empty() {
        put("model", json!(options.model));
    }
    match options.api {
        RerankApi::Tei => {
            put("texts", json!(texts));
            put("raw_scores", json!(false));
            put("return_text", json!(false));
            put("truncate", json!(true));
        }
        RerankApi::Cohere => {
            put("documents", json!(texts));
            put("top_n", json!(texts.len()));
        }
        RerankApi::Infinity | RerankApi::Jina | RerankApi::LlamaCpp => {
            put("documents", json!(texts));
            put("top_n", json!(texts.len()));
            put("return_documents", json!(false));
        }
        RerankApi::Voyage => {
            put("documents", json!(texts));
            put("top_k", json!(texts.len()));
            put("return_documents", json!(false));
            put("truncation", json!(true));
        }
    }
    Request::post("/rerank", &body)
}

/// Returns the number of texts per request that every server with this API accepts.
pub(super) fn max_texts(api: RerankApi) -> usize {
    match api {
        // The default of TEI's `--max-client-batch-size`.
        RerankApi::Tei => 32,
        // Other servers accept a thousand, but smaller requests finish sooner.
        _ => 100,
    }
}

/// Reads one score for each of `n` texts, in the order of the request, or describes the error.
///
/// Servers differ in the location of the list and the name of the score, and most sort results by score. Other fields
/// are ignored.
pub(super) fn scores(answer: &[u8], n: usize) -> Result<Vec<f32>, String> {
    let answer: Value = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    let lists = [&answer, &answer["results"], &answer["data"]];
    let results = lists
        .into_iter()
        .find_map(Value::as_array)
        .ok_or("no list of results")?;
    let mut scores: Vec<Option<f32>> = vec![None; n];
    for result in results {
        let index = result["index"].as_u64().ok_or("a result without an index")?;
        let place = usize::try_from(index).ok().and_then(|index| scores.get_mut(index));
        let place = place.ok_or_else(|| format!("a result for text {index} of {n}, counted from 0"))?;
        let score = [&result["relevance_score"], &result["score"]]
            .into_iter()
            .find_map(Value::as_f64);
        let score = score.ok_or_else(|| format!("no score for text {index}"))? as f32;
        if !score.is_finite() {
            return Err(format!("the score of text {index} is not a number"));
        }
        if place.replace(score).is_some() {
            return Err(format!("two results for text {index}"));
        }
    }
    let scores: Option<Vec<f32>> = scores.into_iter().collect();
    scores.ok_or_else(|| format!("{} results for {n} texts", results.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        for answer in [
            r#"[{"index":1,"score":0.5},{"index":0,"score":-2}]"#,
            r#"{"results":[{"index":0,"relevance_score":-2,"document":"a string"},{"index":1,"relevance_score":0.5}]}"#,
            r#"{"results":[{"index":1,"relevance_score":0.5,"document":{"text":"an object"}},{"index":0,"relevance_score":-2}]}"#,
            r#"{"object":"list","data":[{"relevance_score":0.5,"index":1},{"relevance_score":-2,"index":0}],"usage":{}}"#,
            r#"[{"index":0,"score":-2,"text":null},{"index":1,"score":0.5}]"#,
        ] {
            assert_eq!(scores(answer.as_bytes(), 2), Ok(vec![-2.0, 0.5]), "{answer}");
        }
        assert_eq!(scores(b"[]", 0), Ok(vec![]));
    }

    #[test]
    fn wrong_answers_are_named() {
        for (answer, what) in [
            (r#"[{"index":0,"score":1}]"#, "1 results for 2"),
            (
                r#"[{"index":0,"score":1},{"index":0,"score":1}]"#,
                "two results for text 0",
            ),
            (r#"[{"index":0,"score":1},{"index":2,"score":1}]"#, "text 2 of 2"),
            (r#"[{"index":0,"score":1},{"index":-1,"score":1}]"#, "without an index"),
            (r#"[{"index":0,"score":1},{"score":1}]"#, "without an index"),
            (
                r#"[{"index":0,"score":1},{"index":1,"score":null}]"#,
                "no score for text 1",
            ),
            (r#"[{"index":0,"score":1},{"index":1}]"#, "no score for text 1"),
            (
                r#"[{"index":0,"score":1},{"index":1,"score":"0.5"}]"#,
                "no score for text 1",
            ),
            (
                r#"[{"index":0,"score":1},{"index":1,"score":1e39}]"#,
                "text 1 is not a number",
            ),
            (r#"[{"index":0,"score":NaN}]"#, "expected value"),
            (r#"[1,2]"#, "without an index"),
            (r#"{"error":"overloaded"}"#, "no list of results"),
            (r#"{"results":{}}"#, "no list of results"),
            (r#""text""#, "no list of results"),
            ("<html>", "expected value"),
            ("", "EOF"),
        ] {
            let message = scores(answer.as_bytes(), 2).expect_err(answer);
            assert!(message.contains(what), "{answer}: {message}");
        }
    }
}
