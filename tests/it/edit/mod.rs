//! Tests `codescout edit`: what each operation changes, what is refused, and that a list is applied as a whole.

mod batches;
mod git_folders;
mod guards;
mod operations;
mod patches;
mod planted;

use serde_json::{Value, json};

use crate::cli::{Called, call_in};
use crate::support::TestRepo;

/// Runs `codescout edit` with a list of operations.
pub(crate) fn edit(repo: &TestRepo, edits: &Value, options: &[&str]) -> Called {
    let args = [&["edit", "-"], options].concat();
    call_in(repo.root(), &args, edits.to_string().as_bytes())
}

/// Creates a repository with one file.
fn with_file(path: &str, content: &[u8]) -> TestRepo {
    let repo = TestRepo::empty();
    repo.write(path, content);
    repo.commit("start");
    repo
}

/// Applies one operation to a file that contains `content`, and returns the new content.
#[track_caller]
fn after(path: &str, content: &str, op: &str, part: &str, more: Value) -> String {
    let repo = with_file(path, content.as_bytes());
    let mut operation = json!({"op": op, "target": format!("{path}{part}")});
    operation
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    edit(&repo, &json!([operation]), &["--allow-uses"]).expect(0);
    String::from_utf8(repo.read(path)).unwrap()
}
