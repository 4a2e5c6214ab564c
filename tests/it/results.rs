//! Tests what a result of a search is: a definition with its best lines, and one result per file.

use serde_json::{Value, json};

use crate::cli::{Called, call_in};
use crate::mcp::Client;
use crate::support::TestRepo;

/// Creates a project with a long function, a short class and several functions about uploads in one file.
fn project() -> TestRepo {
    let filler: String = (0..150).map(|n| format!("    step_{n} = {n}\n")).collect();
    let long = format!(
        "def synchronise(files):\n    '''Runs every step.'''\n{filler}    raise UploadError('the quota of the bucket is used up')\n"
    );
    let repo = TestRepo::new(
        "
        //- store/uploads.py
        class Upload:
            '''An upload that is retried after a failure.'''

            def start(self, file):
                '''Starts the upload of a file.'''
                return self.send(file)

            def retry(self, file, attempts):
                '''Retries the failed upload of a file.'''
                for attempt in range(attempts):
                    self.send(file)

        def retry_uploads(uploads):
            '''Retries all failed uploads.'''
            for upload in uploads:
                upload.retry()
        //- store/copies.py
        def retry(copy):
            '''Copies a file once more.'''
            return copy()
        //- store/notes.py
        GREETING = 'hello'
        //- README.md
        # Store

        Uploads are retried when they fail.
        ",
    );
    repo.write("store/sync.py", long);
    repo.commit("start");
    repo
}

fn called(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), &[&["search"], args].concat(), b"")
}

fn searched(repo: &TestRepo, args: &[&str]) -> Value {
    called(repo, &[&["--json"], args].concat()).json()
}

fn results(answer: &Value) -> &[Value] {
    answer["results"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn paths(answer: &Value) -> Vec<&str> {
    results(answer)
        .iter()
        .filter_map(|result| result["path"].as_str())
        .collect()
}

#[test]
fn a_file_has_two_results_with_further_parts() {
    let repo = project();
    let answer = searched(&repo, &["how is a failed upload retried"]);
    let files = paths(&answer);
    let n_most = files
        .iter()
        .map(|path| files.iter().filter(|other| *other == path).count())
        .max();
    assert_eq!(n_most, Some(2), "{answer}");
    let by_words = searched(&repo, &["how is a failed upload retried", "--mode", "keyword"]);
    let uploads = &results(&by_words)[0];
    assert_eq!(uploads["path"], "store/uploads.py");
    let places = uploads["places"].as_array().unwrap();
    assert!(!places.is_empty(), "{uploads}");
    for place in places {
        assert_eq!(place["path"], "store/uploads.py");
        assert!(place["symbol"].is_string(), "{place}");
        assert!(
            place["snippet"].as_str().is_some_and(|text| text.lines().count() <= 2),
            "{place}"
        );
        let overlaps = place["start_line"].as_u64() <= uploads["end_line"].as_u64()
            && uploads["start_line"].as_u64() <= place["end_line"].as_u64();
        assert!(!overlaps, "{uploads}");
    }
    let text = called(
        &repo,
        &["how is a failed upload retried", "--mode", "keyword", "-n", "1"],
    )
    .text();
    let listed = format!("       also {}-{} ", places[0]["start_line"], places[0]["end_line"]);
    assert!(text.contains(&listed), "{text}");
}

#[test]
fn every_definition_of_a_name_is_a_result() {
    let repo = project();
    let answer = searched(&repo, &["retry"]);
    let symbols: Vec<&str> = results(&answer)
        .iter()
        .take(3)
        .filter_map(|result| result["symbol"].as_str())
        .collect();
    assert_eq!(symbols, ["Upload.retry", "retry", "retry_uploads"], "{answer}");
}

#[test]
fn a_preview_has_the_signature_and_the_best_lines() {
    let repo = project();
    let answer = searched(
        &repo,
        &["what happens when the quota of a bucket is used up", "-n", "1"],
    );
    let sync = &results(&answer)[0];
    assert_eq!(
        (&sync["path"], &sync["symbol"]),
        (&json!("store/sync.py"), &json!("synchronise"))
    );
    assert_eq!(
        (&sync["start_line"], &sync["end_line"]),
        (&json!(1), &json!(153)),
        "{sync}"
    );
    assert_eq!(sync["signature"], "def synchronise(files):");
    let snippet = sync["snippet"].as_str().unwrap();
    assert!(snippet.contains("the quota of the bucket"), "{snippet}");
    assert_eq!(
        sync["snippet_start_line"].as_u64().unwrap() + snippet.lines().count() as u64 - 1,
        153
    );
    let one = searched(
        &repo,
        &[
            "what happens when the quota of a bucket is used up",
            "-n",
            "1",
            "-C",
            "1",
        ],
    );
    assert_eq!(results(&one)[0]["snippet"], "def synchronise(files):");
}

#[test]
fn a_result_starts_at_a_quoted_text() {
    let repo = project();
    let answer = searched(&repo, &["\"send(file)\""]);
    let uploads = &results(&answer)[0];
    assert_eq!(
        (&uploads["path"], &uploads["start_line"]),
        (&json!("store/uploads.py"), &json!(6))
    );
    assert!(
        uploads["snippet"]
            .as_str()
            .unwrap()
            .starts_with("        return self.send(file)")
    );
}

#[test]
fn kinds_select_among_the_parts_of_a_file() {
    let repo = project();
    let answer = searched(
        &repo,
        &[
            "how is a failed upload retried",
            "--kind",
            "function",
            "--path",
            "store",
        ],
    );
    assert_eq!(results(&answer)[0]["symbol"], "retry_uploads", "{answer}");
    let none = searched(&repo, &["how is a failed upload retried", "--kind", "enum"]);
    assert!(results(&none).is_empty(), "{none}");
}

#[test]
fn full_detail_has_the_whole_definition() {
    let repo = project();
    let mut client = Client::legacy(&repo, &["--bodies", "both"]);
    let question = "what happens when the quota of a bucket is used up";
    let whole = client.call_complete(
        "search",
        json!({"query": question, "limit": 1, "detail": "full", "max_tokens": 9_000}),
    );
    let snippet = whole.results()[0]["snippet"].as_str().unwrap().to_owned();
    assert!(snippet.starts_with("def synchronise"), "{snippet}");
    assert_eq!(snippet.lines().count(), 153);
    let ids = client.call("search", json!({"query": question, "limit": 1, "detail": "ids"}));
    assert!(ids.results()[0].get("snippet").is_none());
}

/// Returns the score of each path by commit messages.
fn by_messages(repo: &TestRepo, reference: &str) -> Vec<(String, f64)> {
    let query = "how is overload of the billing gateway avoided";
    let answer = searched(repo, &[query, "--explain", "--ref", reference]);
    let row = |row: &Value| {
        let messages = row["features"]["messages"].as_f64().unwrap();
        (row["path"].as_str().unwrap().to_owned(), messages)
    };
    results(&answer).iter().map(row).collect()
}

#[test]
fn messages_of_reachable_commits_rank_their_files() {
    let repo = TestRepo::new(
        "
        //- one.py
        def alpha(value):
            return value + 1
        //- two.py
        def beta(value):
            return value + 2
        ",
    );
    repo.commit("start");
    repo.write("two.py", "def beta(value):\n    return min(value, 2)\n");
    repo.commit("Avoid overload of the billing gateway\n\nRequests are limited.\n\nSigned-off-by: A <a@b>");
    repo.git(["switch", "--quiet", "--create", "side"]);
    repo.write("one.py", "def alpha(value):\n    return min(value, 1)\n");
    repo.commit("Avoid overload of the billing gateway once more");
    repo.git(["switch", "--quiet", "main"]);
    call_in(repo.root(), &["index", "main", "side"], b"").expect(0);

    let of = |list: &[(&str, f64)]| {
        list.iter()
            .map(|(path, score)| ((*path).to_owned(), *score))
            .collect::<Vec<_>>()
    };
    assert_eq!(by_messages(&repo, "main"), of(&[("two.py", 1.0), ("one.py", 0.0)]));
    assert!(by_messages(&repo, "side").iter().all(|(_, score)| *score > 0.5));
    assert_eq!(by_messages(&repo, "main~1"), [], "nothing there is about it");
    // A renamed file keeps its messages, because the index records the rename.
    repo.git(["mv", "two.py", "three.py"]);
    repo.commit("move");
    assert_eq!(by_messages(&repo, "main"), of(&[("three.py", 1.0), ("one.py", 0.0)]));
}

#[test]
fn nothing_is_found_where_nothing_matches() {
    let repo = project();
    for (query, absent) in [
        ("frobnicate_widget", json!(["frobnicate_widget"])),
        ("frobnicateWidget", json!(["frobnicateWidget"])),
        ("TODO", json!(["TODO"])),
        ("kubernetes autoscaler", Value::Null),
    ] {
        let answer = called(&repo, &["--json", query]).expect(1).json();
        assert!(results(&answer).is_empty(), "{query}: {answer}");
        assert_eq!(answer["absent"], absent, "{query}");
    }
    // Another spelling occurs, and the nearest code is still listed on request.
    let other_case = searched(&repo, &["RetryUploads"]);
    assert_eq!(
        (&other_case["absent"], &results(&other_case)[0]["symbol"]),
        (&Value::Null, &json!("retry_uploads"))
    );
    called(&repo, &["--mode", "semantic", "kubernetes autoscaler"]).expect(0);
}

#[test]
fn credential_files_are_no_results() {
    let repo = project();
    repo.write(".env", "RETRY_UPLOADS_TOKEN=hunter22\n");
    repo.write("deploy/id_rsa", "retry_uploads_token\n");
    repo.commit("secrets");
    for query in [
        "retry uploads token",
        "where is the token for retried uploads",
        "\"hunter22\"",
        "RETRY_UPLOADS_TOKEN",
    ] {
        for mode in ["auto", "keyword", "semantic"] {
            let text = called(&repo, &["-n", "0", "--mode", mode, query]).text();
            assert!(
                !text.contains("hunter22") && !text.contains("id_rsa"),
                "{query}: {text}"
            );
        }
    }
}

#[test]
fn a_quoted_text_alone_is_found_or_nothing_is() {
    let repo = project();
    repo.write(".env", "TOKEN=hunter22\n");
    repo.commit("secrets");
    let missing = called(&repo, &["--json", "\"no such text at all\""]).expect(1).json();
    assert_eq!(missing["absent"], json!(["no such text at all"]));
    let withheld = called(&repo, &["\"hunter22\""]).expect(1);
    assert!(
        withheld.stderr.contains("1 file whose names suggest credentials"),
        "{}",
        withheld.stderr
    );
}

#[test]
fn similar_names_and_file_names_are_offered() {
    let repo = project();
    let misspelt = called(&repo, &["retry_uplods"]).expect(1);
    assert!(
        misspelt.stderr.contains("did you mean retry_uploads?"),
        "{}",
        misspelt.stderr
    );
    repo.write("setup.cfg", "[zebra]\nstripes = 9\n");
    repo.commit("configure");
    let file = searched(&repo, &["setup.cfg"]);
    assert!(paths(&file).contains(&"setup.cfg"), "{file}");
}

#[test]
fn typing_errors_are_corrected_towards_words_of_the_view() {
    let repo = project();
    repo.write(
        "store/digest.py",
        "def sha256(blob):\n    '''Receives and staples a zimbrel from a source.'''\n",
    );
    repo.commit("digest");
    for (query, read_as) in [
        ("failed uplaod", json!("failed upload")),
        ("failed retyr", json!("failed retry")),
        ("sah256 of a file", json!("sha256 of a file")),
        ("a zimbrle", json!("a zimbrel")),
        // a word rather than its stem
        ("failed soure", json!("failed source")),
        // a common misspelling, which the model knows
        ("recieve the failure", json!("receive the failure")),
        // other forms of words of the view
        ("stapling a stapler", Value::Null),
        // English words and invented ones that resemble no word of the view
        ("start the stalling", Value::Null),
        ("upload the zorblatt", Value::Null),
        ("upload to sha265x", Value::Null),
    ] {
        assert_eq!(searched(&repo, &[query])["read_as"], read_as, "{query}");
    }
}

#[test]
fn a_short_type_has_all_of_its_lines() {
    let repo = project();
    let methods: String = (0..12)
        .map(|n| format!("    def step_{n}(self, value):\n        \"\"\"Takes step {n} of the treatment of a value.\"\"\"\n        return value\n\n"))
        .collect();
    repo.write(
        "store/steps.py",
        format!("class Treatment:\n    \"\"\"Treats values.\"\"\"\n\n{methods}\ndef after(value):\n    return value\n"),
    );
    repo.commit("add steps");
    let answer = searched(&repo, &["Treatment"]);
    let found = &results(&answer)[0];
    assert_eq!(
        (&found["symbol"], &found["start_line"]),
        (&json!("Treatment"), &json!(1)),
        "{found}"
    );
    assert_eq!(found["end_line"], 50, "{found}");
}
