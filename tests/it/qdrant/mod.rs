//! Tests vectors that clones share through Qdrant, with a stub server: uploads and downloads, that answers equal those
//! of the local index, and answers while the server fails.

mod answers;
mod away;
mod clones;
mod collections;
mod course;
mod faults;
mod removal;
mod reports;
mod sparse;

use serde_json::Value;

use crate::cli::{Called, call_in};
use crate::support::model::openai;
use crate::support::{Stub, TestRepo};

const DIM: usize = 64;
const QUERIES: [&str; 3] = ["packet 7", "where is the length counted", "handles bytes of a packet"];

fn openai_stub() -> Stub {
    Stub::start(|seen| openai(seen, DIM))
}

/// Creates files with one function each.
fn project(n_files: usize) -> TestRepo {
    let repo = TestRepo::empty();
    for number in 0..n_files {
        write_packet(&repo, number);
    }
    repo.commit("start");
    repo
}

fn write_packet(repo: &TestRepo, number: usize) {
    let text = format!(
        "/// Handles packet {number} of kind {}.\npub fn packet_{number}(bytes: &[u8]) -> usize {{\n    bytes.len() + {number}\n}}\n",
        number % 7
    );
    repo.write(format!("src/packet_{number}.rs"), text);
}

fn with_embedder(embedder: &Stub) -> String {
    format!(
        "[embedding]\nserver = '{}'\nmodel = 'm'\nbatch = 4\nin_flight = 1\n",
        embedder.url()
    )
}

/// Returns settings that send every query to the server, even for few documents.
fn with_qdrant(url: &str) -> String {
    format!("[qdrant]\nserver = '{url}'\nscan_below = 0\nquery_timeout_ms = 20000\n")
}

fn index(repo: &TestRepo) -> Called {
    call_in(repo.root(), &["index", "--json"], b"").expect(0)
}

fn search(repo: &TestRepo, query: &str) -> Value {
    call_in(repo.root(), &["search", query, "--json"], b"").json()
}

/// Returns the results of a search, without how they were computed.
fn found(repo: &TestRepo, query: &str) -> Value {
    search(repo, query)["results"].clone()
}

fn why(answer: &Value) -> String {
    let reasons = answer["incomplete_because"].as_array().cloned().unwrap_or_default();
    reasons.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// Returns the answers of a repository without any server.
fn answers(repo: &TestRepo) -> Vec<Value> {
    QUERIES.iter().map(|query| found(repo, query)).collect()
}

/// Creates a project whose chunks are so similar that small differences decide their order.
fn large_project(n_files: usize) -> TestRepo {
    let repo = TestRepo::empty();
    for file in 0..n_files {
        let functions = (0..10).map(|at| {
            let number = file * 10 + at;
            format!(
                "/// Reads field {} of record {number} from the {} of the stream, {} times.\n\
                 pub fn read_field_{number}(stream: &mut Stream) -> Result<Field, Error> {{\n    \
                 stream.seek({number})?;\n    let bytes = stream.take({})?;\n    Field::decode(bytes, {})\n}}\n\n{}",
                number % 13,
                ["head", "tail", "middle", "end"][number % 4],
                number % 5,
                number % 11,
                number % 3,
                // Long enough to be a separate chunk.
                "// padding that says nothing of the record at all\n".repeat(12),
            )
        });
        repo.write(
            format!("part_{}/file_{file}.rs", file % 6),
            functions.collect::<String>(),
        );
    }
    repo.commit("start");
    repo
}

/// Returns the locations and scores of the results of a search.
fn places(answer: &Value) -> Vec<(String, u64, f64)> {
    let results = answer["results"].as_array().unwrap().iter();
    let place = |result: &Value| {
        let line = result["start_line"].as_u64().unwrap();
        (result["path"].to_string(), line, result["score"].as_f64().unwrap())
    };
    results.map(place).collect()
}
