use serde_json::Value;

use super::{call, project};
use crate::support::TestRepo;

/// Requests all pages of an answer with at most two results each. Returns the number of results of each page.
fn pages(repo: &TestRepo, args: &[&str], n_results: impl Fn(&Value) -> usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut all = [args, &["--json", "--limit", "2"]].concat();
        if let Some(cursor) = &cursor {
            all.extend(["--cursor", cursor]);
        }
        let answer = call(repo, &all).expect(0).json();
        sizes.push(n_results(&answer));
        match answer["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return sizes,
        }
    }
}

#[test]
fn pages_together_are_the_whole_answer() {
    let repo = project();
    let n_results = |answer: &Value| answer["results"].as_array().unwrap().len();
    let n_lines = |answer: &Value| answer["matching_lines"].as_u64().unwrap() as usize;
    let whole = |args: &[&str], count: &dyn Fn(&Value) -> usize| {
        let all = [args, &["--json", "--limit", "0"]].concat();
        count(&call(&repo, &all).expect(0).json())
    };
    for args in [
        &["search", "parse text"][..],
        &["symbol", "p", "--prefix"],
        &["symbol", "parse", "--refs"],
        &["search", "--mode", "regex", "e"],
    ] {
        let sizes = pages(&repo, args, n_results);
        assert!(
            sizes.len() > 1 && sizes.iter().all(|&n| (1..=2).contains(&n)),
            "{args:?} {sizes:?}"
        );
        assert_eq!(sizes.iter().sum::<usize>(), whole(args, &n_results), "{args:?}");
    }
    let sizes = pages(&repo, &["grep", "e"], n_lines);
    assert!(sizes.len() > 2, "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), whole(&["grep", "e"], &n_lines));
}

#[test]
fn a_cursor_does_not_serve_another_question_or_other_files() {
    let repo = project();
    let first = call(&repo, &["grep", "e", "--limit", "1", "--json"]).expect(0).json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let next = |pattern: &str, cursor: &str| call(&repo, &["grep", pattern, "--limit", "1", "--cursor", cursor]);
    next("e", cursor).expect(0);
    let other = next("a", cursor).expect(2);
    assert!(
        other.stderr.contains("another query") && other.stderr.contains("hint:"),
        "{}",
        other.stderr
    );
    let nonsense = next("e", "123").expect(2);
    assert!(nonsense.stderr.contains("invalid cursor"), "{}", nonsense.stderr);
    repo.write("src/main.rs", "fn main() {}\n");
    let stale = next("e", cursor).expect(2);
    assert!(stale.stderr.contains("an older state of the files"), "{}", stale.stderr);
    assert!(
        stale.stderr.contains("hint: the files have changed"),
        "{}",
        stale.stderr
    );
}
