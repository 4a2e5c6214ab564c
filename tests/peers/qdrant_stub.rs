//! Runs the Qdrant stub of the tests until standard input ends. `qdrant.sh` compares its responses with those of a real
//! server.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "prints where it listens; ends where it cannot"
)]
#![allow(dead_code, reason = "the tests use all of it")]

#[path = "../support/qdrant.rs"]
mod qdrant;
#[path = "../support/stub.rs"]
mod stub;

fn main() {
    let served = qdrant::QdrantStub::start();
    println!("listening at {}", served.url());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut std::io::stdin(), &mut rest).unwrap();
}
