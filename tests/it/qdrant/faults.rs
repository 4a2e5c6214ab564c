//! Tests answers while a server fails, and after it has lost data.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{QUERIES, answers, index, large_project, places, project, search, why, with_qdrant, write_packet};
use crate::cli::call_in;
use crate::remote::configure;
use crate::support::qdrant::QdrantStub;
use crate::support::{Reply, Seen, assert_within};

#[test]
fn while_it_is_away_slow_or_wrong_answers_are_local_and_say_so() {
    let repo = project(20);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    let before = answers(&repo);
    index(&repo);
    let html = || Reply::status(200).body(b"<html>Login</html>");
    let other_vector = || Reply::json(&json!({ "result": [{ "points": [] }], "status": "ok" }));
    let not_a_number = |seen: &Seen| {
        let n = seen.json()["searches"].as_array().map_or(0, Vec::len);
        let found = format!(
            "{{\"points\":[{{\"id\":\"{}\",\"score\":1e999}}]}}",
            "00000000-0000-0000-0000-000000000000"
        );
        let all = vec![found; n].join(",");
        Reply::status(200).body(format!("{{\"result\":[{all}]}}").as_bytes())
    };
    type Fault = Box<dyn Fn(&Seen) -> Option<Reply> + Send + Sync>;
    let faults: Vec<(&str, Fault)> = vec![
        ("401", Box::new(|_| Some(Reply::status(401)))),
        ("429", Box::new(|_| Some(Reply::status(429)))),
        ("500", Box::new(|_| Some(Reply::status(500)))),
        ("503", Box::new(|_| Some(Reply::status(503)))),
        ("404", Box::new(|_| Some(Reply::status(404)))),
        ("connection lost", Box::new(|_| Some(Reply::hang_up()))),
        (
            "no answer within",
            Box::new(|_| Some(Reply::status(200).after(Duration::from_secs(600)))),
        ),
        ("not the JSON", Box::new(move |_| Some(html()))),
        ("another number of results", Box::new(move |_| Some(other_vector()))),
        ("not the JSON", Box::new(move |seen| Some(not_a_number(seen)))),
        (
            "response larger than",
            Box::new(|_| Some(Reply::status(200).body(&vec![b' '; 1 << 20]))),
        ),
    ];
    for (message, fault) in faults {
        qdrant.fail(fault);
        qdrant.stub().forget();
        let patience = match message {
            "no answer within" => "1500",
            _ => "10000",
        };
        configure(&repo, &with_qdrant(&qdrant.url()).replace("20000", patience));
        let started = Instant::now();
        let answer = search(&repo, QUERIES[0]);
        assert_eq!(answer["results"], before[0], "{message}");
        let why = why(&answer);
        assert!(
            why.contains(message) && why.contains("compared the vectors locally"),
            "{message}: {why}"
        );
        assert_eq!(qdrant.stub().requests().len(), 1, "{message}: somebody waits");
        assert_within(Duration::from_secs(60), started, message);
    }
    qdrant.mend();
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
    let gone = qdrant.url();
    configure(&repo, &(with_qdrant(&gone) + "timeout_s = 1\n"));
    drop(qdrant);
    let answer = search(&repo, QUERIES[0]);
    assert_eq!(answer["results"], before[0]);
    assert!(why(&answer).contains("no connection"), "{gone}: {answer}");
    let done = index(&repo).json();
    assert!(
        done["shared"]["stopped_because"]
            .as_str()
            .unwrap()
            .contains("no connection"),
        "{done}"
    );
}

#[test]
fn little_of_what_it_says_is_repeated() {
    let repo = project(10);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    index(&repo);
    write_packet(&repo, 40);
    repo.commit("more");
    let long = "\u{1b}[2J".repeat(5000);
    for asked in ["ids", "points"] {
        let said = json!({ "result": match asked {
            "ids" => json!([{ "id": long }]),
            _ => json!({ "status": long }),
        } });
        qdrant.fail(move |seen| {
            let is_vector = seen.json()[asked].is_array() && !seen.json().to_string().contains("generation");
            let is_own = seen.json()["with_payload"] == true;
            (is_vector && !is_own).then(|| Reply::json(&said))
        });
        let done = index(&repo).json();
        let why = done["shared"]["stopped_because"].as_str().unwrap().to_owned();
        assert!(
            why.contains("[2J") && why.len() < 1000 && !why.contains('\u{1b}'),
            "{why}"
        );
    }
}

#[test]
fn vectors_that_went_behind_everybodys_back_are_missed_and_put_back() {
    let repo = project(30);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    let before = answers(&repo);
    index(&repo);
    qdrant.lose_every(3);
    let answer = search(&repo, QUERIES[0]);
    assert_eq!(answer["results"], before[0]);
    assert!(why(&answer).contains("vectors are missing"), "{answer}");
    let done = index(&repo).json();
    assert_eq!(
        (&done["shared"]["new"], &done["shared"]["found"]),
        (&json!(10), &json!(20)),
        "{done}"
    );
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
}

#[test]
fn vectors_that_were_lost_among_many_are_missed_and_put_back() {
    let repo = large_project(40);
    let qdrant = QdrantStub::start();
    index(&repo);
    let query = "read field 3 from the tail";
    let before = search(&repo, query);
    assert_eq!(why(&before), "");
    configure(&repo, &with_qdrant(&qdrant.url()));
    let n_docs = index(&repo).json()["shared"]["new"].as_u64().unwrap();
    assert!(n_docs > 256, "{n_docs}");
    // Another clone has uploaded more vectors than are lost below.
    qdrant.put_others(n_docs as usize);
    assert_eq!(index(&repo).json()["shared"]["new"], 0);
    qdrant.stub().forget();
    assert_eq!(why(&search(&repo, query)), "");
    assert_eq!(qdrant.n_asked("/points/count"), 1);
    let before_loss = qdrant.n_vectors();
    qdrant.lose_every(3);
    let n_lost = before_loss - qdrant.n_vectors();
    assert!(qdrant.n_vectors() as u64 > n_docs);
    let answer = search(&repo, query);
    assert_eq!(places(&answer), places(&before));
    assert!(why(&answer).contains("vectors instead of the recorded"), "{answer}");
    let done = index(&repo).json();
    let (new, found) = (&done["shared"]["new"], &done["shared"]["found"]);
    let (new, found) = (new.as_u64().unwrap(), found.as_u64().unwrap());
    assert!(new > 0 && new <= n_lost as u64 && new + found == n_docs, "{done}");
    assert_eq!(why(&search(&repo, query)), "");
}

#[test]
fn what_is_only_promised_does_not_count() {
    let repo = project(12);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    // The collection is created before the faults begin.
    index(&repo);
    write_packet(&repo, 40);
    repo.commit("more");
    qdrant.only_promise(&["points"], false);
    let done = index(&repo).json();
    assert_eq!(
        (&done["shared"]["new"], &done["shared"]["missing"]),
        (&json!(0), &json!(1)),
        "{done}"
    );
    assert!(
        done["shared"]["stopped_because"].as_str().unwrap().contains("accepted"),
        "{done}"
    );
    assert_eq!(why(&search(&repo, "packet 40")), "");
    qdrant.only_promise(&[], false);
    assert_eq!(index(&repo).json()["shared"]["new"], 1);
}

#[test]
fn a_collection_that_is_gone_or_being_emptied_is_not_relied_on() {
    let repo = project(20);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    let before = answers(&repo);
    index(&repo);
    qdrant.begin_removal(0);
    let answer = search(&repo, QUERIES[0]);
    assert!(why(&answer).contains("being removed"), "{answer}");
    assert_eq!(answer["results"], before[0]);
    write_packet(&repo, 50);
    repo.commit("more");
    let done = index(&repo).json();
    assert!(
        done["shared"]["stopped_because"]
            .as_str()
            .unwrap()
            .contains("removing vectors"),
        "{done}"
    );
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("vectors are being removed"), "{doctor}");
    // The removal was last announced longer ago than any step takes.
    qdrant.begin_removal(301);
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
    assert_eq!(index(&repo).json()["shared"]["new"], 1);

    qdrant.drop_all();
    let answer = search(&repo, QUERIES[0]);
    assert!(
        why(&answer).contains("404") && why(&answer).contains("codescout index"),
        "{answer}"
    );
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("of this repository yet"), "{doctor}");
    assert_eq!(index(&repo).json()["shared"]["new"], 21);
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
}
