#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;

use super::super::model_file::tests::tiny;
use super::*;

/// Test cases that the reference implementation, `weights/train/export.py`, generated.
const GOLDEN: &str = include_str!("../../../tests/fixtures/embed/golden.json");

fn golden() -> Vec<(String, Value)> {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let cases = golden["cases"].as_array().unwrap().clone();
    cases.into_iter().map(|case| (text_of(&case), case)).collect()
}

fn text_of(case: &Value) -> String {
    match (case["text"].as_str(), case["text_recipe"].as_str()) {
        (Some(text), _) => text.to_owned(),
        (None, Some("'word ' repeated 5000 times")) => "word ".repeat(5000),
        _ => (0..400)
            .map(|i| format!("field{i}Name = parse_value({i});\n"))
            .collect(),
    }
}

fn assert_near(found: f64, expected: &Value, tolerance: f64, what: &str) {
    let expected = expected.as_f64().unwrap();
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1.0),
        "{what}: {found}, expected {expected}"
    );
}

#[test]
fn tokens_are_those_of_the_reference() {
    let model = StaticModel::embedded();
    let cases = golden();
    assert_eq!(cases.len(), 45);
    for (text, case) in cases {
        let ids = model.token_ids(text.as_bytes());
        assert_eq!(ids.len() as u64, case["n_ids"].as_u64().unwrap(), "{text:?}");
        assert_eq!(
            ids.iter().map(|&id| u64::from(id)).sum::<u64>(),
            case["ids_sum"].as_u64().unwrap(),
            "{text:?}"
        );
        if let Some(expected) = case["ids"].as_array() {
            let expected: Vec<u32> = expected.iter().map(|id| id.as_u64().unwrap() as u32).collect();
            assert_eq!(ids, expected, "{text:?}");
        }
    }
}

#[test]
fn vectors_are_those_of_the_reference() {
    let model = StaticModel::embedded();
    for (text, case) in golden() {
        for (side, first, norm) in [(Side::Document, "v8", "norm"), (Side::Query, "query_v8", "query_norm")] {
            let embedding = model.embed(text.as_bytes(), side);
            let what = format!("{side:?} {text:?}");
            assert_near(f64::from(embedding.weight), &case[norm], 1e-5, &what);
            for (i, expected) in case[first].as_array().unwrap().iter().enumerate() {
                assert_near(f64::from(embedding.vector[i]), expected, 1e-5, &what);
            }
            if side == Side::Document {
                assert_near(
                    f64::from(*embedding.vector.last().unwrap()),
                    &case["v_last"],
                    1e-5,
                    &what,
                );
            }
        }
    }
}

#[test]
fn the_digest_of_the_built_in_model_is_right() {
    assert_eq!(blake3::hash(EMBEDDED).to_hex().as_str(), EMBEDDED_DIGEST);
    let model = StaticModel::embedded();
    assert_eq!((model.dim(), model.n_tokens()), (256, 27_493));
    assert_eq!(
        StaticModel::from_bytes(EMBEDDED.to_vec(), EMBEDDED_NAME)
            .unwrap()
            .profile(),
        model.profile()
    );
}

#[test]
fn a_batch_gives_what_each_text_gives_alone() {
    let model = StaticModel::embedded();
    let texts: Vec<String> = (0..150).map(|i| format!("fn part{i}() {{ read_line({i}) }}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).chain([""]).collect();
    let batch = model.embed_documents(&texts, &AtomicBool::new(false)).unwrap();
    assert_eq!(batch.len(), texts.len());
    for (embedding, text) in batch.iter().zip(&texts) {
        assert_eq!(embedding, &model.embed(text.as_bytes(), Side::Document));
    }
    assert_eq!(
        batch.last().unwrap(),
        &Embedding {
            vector: vec![0.0; 256],
            weight: 0.0
        }
    );
}

#[test]
fn an_interrupt_stops_a_batch() {
    let model = StaticModel::embedded();
    let outcome = model.embed_documents(&["a"], &AtomicBool::new(true));
    assert!(matches!(outcome, Err(EmbedError::Interrupted)));
}

#[test]
fn queries_use_their_own_weights() {
    let bytes = tiny(&[("how", 1.0, 0.0, [4, 0, 0, 0]), ("sort", 1.0, 1.0, [0, 3, 0, 0])]);
    let model = StaticModel::from_bytes(bytes, "tiny").unwrap();
    assert_eq!(model.embed(b"how_sort", Side::Document).vector, [0.8, 0.6, 0.0, 0.0]);
    assert_eq!(
        model.embed_query("howSort", &AtomicBool::new(false)).unwrap().vector,
        [0.0, 1.0, 0.0, 0.0]
    );
    let repeated = model.embed(b"sort sort sort sort how", Side::Document);
    assert_eq!(
        (repeated.vector[0], repeated.weight),
        (4.0 / 52f32.sqrt(), 52f32.sqrt())
    );
}

#[test]
fn words_are_near_their_relatives() {
    let model = StaticModel::embedded();
    let texts = |word: &str| -> Vec<String> {
        let near = model.neighbours(model.token_id(word).unwrap(), 10);
        assert!(near.is_sorted_by(|a, b| a.1 >= b.1) && near.len() == 10);
        near.iter()
            .map(|&(id, _)| model.token_text(id).unwrap().to_owned())
            .collect()
    };
    assert!(texts("delete").contains(&"removes".to_owned()), "{:?}", texts("delete"));
    assert!(!texts("parse").contains(&"parse".to_owned()));
    assert_eq!(model.neighbours(u32::MAX, 3), []);
    assert_eq!(model.neighbours(0, usize::MAX).len(), model.n_tokens() - 1);
}

#[test]
fn a_model_file_is_opened_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.bin");
    fs::write(&path, tiny(&[("a", 1.0, 1.0, [1, 0, 0, 0])])).unwrap();
    let model = StaticModel::open(&path).unwrap();
    assert_eq!((model.profile().model.as_str(), model.dim()), ("small", 4));
    fs::write(&path, b"CSEM").unwrap();
    assert!(matches!(StaticModel::open(&path), Err(OpenError::Damaged { .. })));
    assert!(matches!(
        StaticModel::open(&folder.path().join("none")),
        Err(OpenError::Io { .. })
    ));
}
