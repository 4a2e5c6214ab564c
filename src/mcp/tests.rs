//! Tests the answers of tools while the first index is being built. Another writer holds the sidecar's lock, so the
//! build cannot finish.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::cell::OnceCell;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::blocking::{Blocking, Outcome};
use super::hub::Hub;
use super::reply::Reply;
use super::tool::Call;
use super::tools::TOOLS;
use crate::mcp::Bodies;
use crate::model::Ctx;
use crate::session::{Advance, CallCtx, Limits, OpError};
use crate::support::TestRepo;

/// A server that serves one repository.
struct Served {
    hub: Arc<Hub>,
    runtime: tokio::runtime::Runtime,
    advances: Arc<parking_lot::Mutex<Vec<Advance>>>,
}

impl Served {
    fn of(repo: &TestRepo) -> Self {
        Self {
            hub: Arc::new(Hub::new(repo.root(), &[], None).unwrap()),
            runtime: super::runtime().unwrap(),
            advances: Arc::default(),
        }
    }

    /// Returns the answer to a call that was started `ago` before now.
    fn call(&self, tool: &str, arguments: &Value, ago: Duration) -> Result<Reply, OpError> {
        let tool = TOOLS.iter().find(|known| known.name == tool).unwrap();
        let given = arguments.as_object().unwrap().clone();
        let (hub, advances) = (Arc::clone(&self.hub), Arc::clone(&self.advances));
        let work = move |interrupt: &std::sync::atomic::AtomicBool, permit: &super::blocking::Permit| {
            let call = Call {
                tool: tool.name,
                hub: &hub,
                found: OnceCell::new(),
                arguments: Arguments::check(tool.name, tool.parameters(), given)?,
                ctx: CallCtx {
                    ctx: Ctx::silent(interrupt),
                    began: Instant::now().checked_sub(ago).unwrap(),
                    limits: Some(Limits {
                        pause: &|wait| permit.pause(wait),
                        waiting: &|advance| advances.lock().push(advance),
                    }),
                },
                bodies: Bodies::Both,
                sends_structure: true,
            };
            (tool.run)(&call)
        };
        let blocking = Blocking::new(1);
        let running = blocking.run(std::future::pending(), Duration::from_secs(60), work);
        match self.runtime.block_on(running) {
            Outcome::Ended(ended) => ended,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the answer to a call that has already used up its waiting time.
    fn late(&self, tool: &str, arguments: Value) -> Reply {
        self.call(tool, &arguments, Duration::from_secs(7)).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.hub.stop();
    }
}

/// Acquires the writer's lock, so that no build can finish.
fn held(repo: &TestRepo) -> File {
    std::fs::create_dir_all(repo.path(".codescout")).unwrap();
    let workspace = crate::session::Workspace::open(repo.root(), &Default::default()).unwrap();
    workspace
        .storage
        .open_or_create(&std::sync::atomic::AtomicBool::new(false))
        .unwrap();
    let lock = File::options()
        .create(true)
        .append(true)
        .open(repo.path(".codescout/lock"))
        .unwrap();
    lock.lock().unwrap();
    lock
}

/// Creates a repository with the file that the queries are about, and with too many other files to index within one
/// answer.
fn project() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- .github/workflows/ci.yaml
        steps:
          - name: upload coverage
        //- src/upload.rs
        use crate::part_1::part;

        /// Sends what failed again, later each time.
        pub fn retry_failed_upload(n: u32) -> u32 {
            part(n)
        }
        ",
    );
    for number in 0..80 {
        let text = format!("/// Adds {number}.\npub fn part_{number}(n: u32) -> u32 {{\n    n + {number}\n}}\n");
        repo.write(format!("src/part_{number}.rs"), text);
    }
    repo.commit("start");
    repo
}

fn paths(reply: &Reply) -> Vec<String> {
    let results = structured(reply)["results"].as_array().unwrap();
    results
        .iter()
        .map(|result| result["path"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn assert_partial(reply: &Reply) {
    assert_eq!(structured(reply)["complete"], false, "{}", reply.text);
    assert!(reply.text.contains("files are not indexed yet"), "{}", reply.text);
    assert!(!structured(reply).contains_key("next_cursor"), "{}", reply.text);
}

fn structured(reply: &Reply) -> &Map<String, Value> {
    reply.structured.as_ref().unwrap()
}

#[test]
fn a_search_that_cannot_wait_answers_from_the_likely_files() {
    let repo = project();
    let _lock = held(&repo);
    let served = Served::of(&repo);
    for query in ["where is a failed upload retried", "retry_failed_upload"] {
        for mode in ["auto", "hybrid", "semantic", "keyword"] {
            let reply = served.late("search", json!({"query": query, "mode": mode}));
            assert_eq!(paths(&reply)[0], "src/upload.rs", "{mode} {query}: {}", reply.text);
            assert_partial(&reply);
        }
    }
    let nothing = served.late("search", json!({"query": "zzzz", "mode": "keyword"}));
    assert!(nothing.text.contains("in the files indexed so far"), "{}", nothing.text);
    assert_partial(&nothing);
    // The query is recognized as a location, and the results exclude that location.
    let similar = served.late("search", json!({"query": "src/part_7.rs:3", "mode": "similar"}));
    let found = paths(&similar);
    assert!(
        found[0].starts_with("src/part_") && !found.contains(&"src/part_7.rs".to_owned()),
        "{}",
        similar.text
    );
    assert_partial(&similar);
    // A regex search reads the files themselves, so it is complete.
    let lines = served.late("search", json!({"query": "Adds 7[0-9]", "mode": "regex"}));
    assert_eq!(
        (paths(&lines).len(), &structured(&lines)["complete"]),
        (10, &json!(true)),
        "{}",
        lines.text
    );
}

#[test]
fn a_name_is_found_while_the_index_is_built() {
    let repo = project();
    let _lock = held(&repo);
    let served = Served::of(&repo);
    let defined = served.late("symbol", json!({"name": "part_63"}));
    assert_eq!(paths(&defined), ["src/part_63.rs"], "{}", defined.text);
    // Every file that contains the name was searched.
    assert_eq!(structured(&defined)["complete"], true, "{}", defined.text);
    let by_id = served.late("symbol", json!({"id": "src/part_5.rs#part_5"}));
    assert_eq!(paths(&by_id), ["src/part_5.rs"], "{}", by_id.text);
    let at = served.late("symbol", json!({"at": "src/part_9.rs:2"}));
    assert_eq!(paths(&at), ["src/part_9.rs"], "{}", at.text);
    let prefix = served.late("symbol", json!({"name": "retry_f", "prefix": true}));
    assert_eq!(paths(&prefix), ["src/upload.rs"], "{}", prefix.text);
    assert_partial(&prefix);
    let unknown = served.late("symbol", json!({"name": "nowhere_at_all"}));
    assert!(unknown.text.contains("in the files indexed so far"), "{}", unknown.text);
    assert_partial(&unknown);
    let blamed = served.late("blame", json!({"target": "retry_failed_upload"}));
    assert!(blamed.text.contains("retry_failed_upload"), "{}", blamed.text);
}

#[test]
fn what_needs_no_index_is_complete_without_it() {
    let repo = project();
    repo.write("src/part_1.rs", "pub fn changed() {}\n");
    let _lock = held(&repo);
    let served = Served::of(&repo);
    for (tool, arguments, expected) in [
        ("outline", json!({"at": "src/upload.rs"}), "retry_failed_upload"),
        ("outline", json!({"view": "tree", "depth": 0}), "part_79.rs"),
        (
            "read",
            json!({"target": "src/upload.rs", "symbol": ["retry_failed_upload"]}),
            "part(n)",
        ),
        ("diff", json!({}), "changed"),
        ("blame", json!({"target": "src/upload.rs"}), "retry_failed_upload"),
        ("search", json!({"query": "changed", "mode": "regex"}), "src/part_1.rs"),
    ] {
        let reply = served.late(tool, arguments.clone());
        assert!(reply.text.contains(expected), "{tool} {arguments}: {}", reply.text);
        assert_eq!(
            structured(&reply)["complete"],
            true,
            "{tool} {arguments}: {}",
            reply.text
        );
    }
    let late = Duration::from_secs(7);
    let map = served.call("outline", &json!({"view": "map"}), late).err().unwrap();
    assert!(
        map.message.contains("the definitions are not indexed yet"),
        "{}",
        map.message
    );
    let strict = json!({"query": "part", "stale": "error"});
    let strict = served.call("search", &strict, late).err().unwrap();
    assert!(strict.message.contains("still being indexed"), "{}", strict.message);
    let jobs = served.late("status", json!({"op": "jobs"}));
    assert!(jobs.text.contains("running WORKTREE"), "{}", jobs.text);
}

#[test]
fn few_new_files_are_all_indexed_for_the_answer() {
    let repo = project();
    let served = Served::of(&repo);
    let whole = served
        .call("search", &json!({"query": "upload"}), Duration::ZERO)
        .unwrap();
    assert_eq!(structured(&whole)["complete"], true, "{}", whole.text);
    repo.write("src/late.rs", "/// Adds.\npub fn add_late() {}\n");
    repo.commit("late");
    let _lock = held(&repo);
    let reply = served.late("search", json!({"query": "where is add_late defined"}));
    assert_eq!(
        (paths(&reply)[0].as_str(), &structured(&reply)["complete"]),
        ("src/late.rs", &json!(true)),
        "{}",
        reply.text
    );
    let map = served.late("outline", json!({"view": "map"}));
    assert!(map.text.contains("add_late"), "{}", map.text);
}

#[test]
fn a_call_waits_for_the_build_and_tells_how_far_it_is() {
    let repo = project();
    let lock = held(&repo);
    let served = Served::of(&repo);
    let advances = Arc::clone(&served.advances);
    // The other writer releases the lock after the call has reported that it waits.
    let release = std::thread::spawn(move || {
        while advances.lock().is_empty() {
            std::thread::yield_now();
        }
        drop(lock);
    });
    let reply = served
        .call(
            "search",
            &json!({"query": "where is a failed upload retried"}),
            Duration::ZERO,
        )
        .unwrap();
    release.join().unwrap();
    assert_eq!(
        (paths(&reply)[0].as_str(), &structured(&reply)["complete"]),
        ("src/upload.rs", &json!(true)),
        "{}",
        reply.text
    );
}

#[test]
fn a_call_that_can_answer_in_part_waits_briefly() {
    let repo = project();
    let _lock = held(&repo);
    let served = Served::of(&repo);
    let has_waited = |tool: &str, arguments: Value| {
        // The time that a partial answer may take before it.
        let called = served.call(tool, &arguments, Duration::from_secs(2));
        let has_waited = !std::mem::take(&mut *served.advances.lock()).is_empty();
        (called, has_waited)
    };
    let (found, has_searched_later) = has_waited("search", json!({"query": "retry_failed_upload"}));
    assert_partial(&found.unwrap());
    let (found, has_looked_up_later) = has_waited("symbol", json!({"name": "retry_f", "prefix": true}));
    assert_partial(&found.unwrap());
    assert!(!has_searched_later && !has_looked_up_later);
    // Without the whole index, a map is no map.
    let (map, has_waited) = has_waited("outline", json!({"view": "map"}));
    assert!(map.is_err() && has_waited);
}

#[test]
fn a_tool_that_is_too_slow_says_what_to_do() {
    for (tool, hint) in [
        ("search", "path, lang or limit"),
        ("history", "index history=true"),
        ("index", "status op=jobs"),
    ] {
        let tool = TOOLS.iter().find(|known| known.name == tool).unwrap();
        let result = super::server::result(tool, Outcome::TooLong, false).unwrap();
        let answer = result.structured_content.unwrap();
        assert_eq!(answer["error"], "the call timed out");
        assert!(answer["hint"].as_str().unwrap().contains(hint), "{answer}");
    }
}
