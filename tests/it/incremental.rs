//! Tests that an index updated step by step gives the same answers as one built from scratch, after any sequence of
//! commits and with any changes on disk.

use crate::indexed::{Dice, Indexed};
use crate::support::{TestRepo, is_long};

const N_STEPS: usize = 3;

const WORDS: [&str; 16] = [
    "retry", "upload", "parse", "token", "cache", "flush", "merge", "render", "socket", "index", "decode", "limit",
    "window", "signal", "vector", "lookup",
];
const QUERIES: [&str; 4] = [
    "retry_upload",
    "where is the cache flushed after a merge",
    "Parser",
    "socket limit",
];

/// Runs one of four parts of the sequences.
fn part(number: u64) {
    let n_sequences = if is_long() { 10 } else { 5 };
    (number * n_sequences..(number + 1) * n_sequences).for_each(|seed| sequence(seed, N_STEPS));
}

#[test]
fn first_part_of_the_sequences() {
    part(0);
}

#[test]
fn second_part_of_the_sequences() {
    part(1);
}

#[test]
fn third_part_of_the_sequences() {
    part(2);
}

#[test]
fn fourth_part_of_the_sequences() {
    part(3);
}

/// A sequence that is long enough for segments to be merged.
#[test]
fn one_long_sequence() {
    sequence(1_000, 20);
}

fn sequence(seed: u64, n_steps: usize) {
    let mut dice = Dice::new(seed);
    let repo = TestRepo::empty();
    let n_files = 6 + dice.below(8);
    for _ in 0..n_files {
        let path = new_path(&mut dice);
        put(&repo, &path, &source(&mut dice, &path));
    }
    repo.commit("start");
    let updated = Indexed::at(repo.root(), repo.beside("updated"));
    updated.view("HEAD");
    let mut done = Vec::new();
    for step in 0..n_steps {
        done.push(commit_something(&repo, &mut dice));
        // Some commits are skipped, so that updates span several commits.
        if dice.below(4) == 0 {
            done.push(commit_something(&repo, &mut dice));
        }
        let on_disk = dice.below(2) == 0;
        if on_disk {
            for _ in 0..1 + dice.below(3) {
                done.push(change_something(&repo, &mut dice));
            }
        }
        let reference = if on_disk {
            *dice.one_of(&["WORKTREE", "INDEX"])
        } else {
            "HEAD"
        };
        let fresh = Indexed::at(repo.root(), repo.beside(&format!("fresh{step}")));
        let about = format!("seed {seed}, {reference} after {done:#?}");
        compare(&updated, &fresh, reference, &about);
        if on_disk {
            repo.git(["reset", "--quiet", "--hard"]);
            repo.git(["clean", "--quiet", "-fd"]);
        }
    }
    // The answers for older states are unchanged.
    let all = repo.git(["rev-list", "--all"]);
    let commits: Vec<&str> = all.lines().collect();
    let commit = *dice.one_of(&commits);
    let fresh = Indexed::at(repo.root(), repo.beside("fresh-old"));
    compare(
        &updated,
        &fresh,
        commit,
        &format!("seed {seed}, {commit} after {done:#?}"),
    );
}

pub(crate) fn compare(updated: &Indexed, fresh: &Indexed, reference: &str, about: &str) {
    let (ours, theirs) = (updated.view(reference), fresh.view(reference));
    assert_eq!(ours.provenance(), theirs.provenance(), "{about}");
    assert_eq!(updated.contents(&ours), fresh.contents(&theirs), "{about}");
    // Linked in opposite orders: the result must not depend on what was asked before.
    assert_eq!(updated.links(&ours, true), fresh.links(&theirs, false), "{about}");
    let (ours, theirs) = (updated.answers(&ours, &QUERIES), fresh.answers(&theirs, &QUERIES));
    for (our, their) in ours.iter().zip(&theirs) {
        our.assert_same(their, about);
    }
}

/// Makes a commit of a random kind and describes it.
pub(crate) fn commit_something(repo: &TestRepo, dice: &mut Dice) -> String {
    let said = match dice.below(8) {
        0 => {
            let reverted = repo.try_git(["revert", "--no-edit", "HEAD"]);
            if !reverted.status.success() {
                repo.git(["reset", "--quiet", "--hard"]);
            }
            return format!("revert: {}", reverted.status.success());
        }
        1 => {
            let name = format!("branch{}", dice.next() % 1000);
            let back = dice.below(3);
            let start = if back == 0 {
                "HEAD".to_owned()
            } else {
                format!("HEAD~{back}")
            };
            let made = repo.try_git(["checkout", "--quiet", "-B", &name, &start]);
            format!(
                "branch {name} at {start}: {}; {}",
                made.status.success(),
                change_something(repo, dice)
            )
        }
        2 => {
            let all = repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
            let branches: Vec<&str> = all.lines().collect();
            let other = *dice.one_of(&branches);
            let merged = repo.try_git(["merge", "--quiet", "--no-edit", "-X", "ours", other]);
            if !merged.status.success() {
                repo.git(["reset", "--quiet", "--hard"]);
            }
            return format!("merge {other}: {}", merged.status.success());
        }
        3 => {
            let all = repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
            let branches: Vec<&str> = all.lines().collect();
            let other = *dice.one_of(&branches);
            repo.checkout(other);
            return format!("checkout {other}");
        }
        _ => {
            let n_changes = 1 + dice.below(3);
            let changes: Vec<String> = (0..n_changes).map(|_| change_something(repo, dice)).collect();
            changes.join(", ")
        }
    };
    repo.commit("change");
    said
}

/// Makes a random change on disk and describes it.
fn change_something(repo: &TestRepo, dice: &mut Dice) -> String {
    let all = repo.git_bytes(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let all = String::from_utf8(all).unwrap();
    let present = |path: &&str| repo.path(path).symlink_metadata().is_ok_and(|file| !file.is_dir());
    let files: Vec<&str> = all.split_terminator('\0').filter(present).collect();
    let kind = if files.is_empty() { 0 } else { dice.below(11) };
    match kind {
        0 | 1 => {
            let path = new_path(dice);
            put(repo, &path, &source(dice, &path));
            format!("add {path}")
        }
        2..=4 => {
            let path = *dice.one_of(&files);
            let text = edited(repo, dice, path);
            put(repo, path, &text);
            format!("edit {path}")
        }
        5 => {
            let path = *dice.one_of(&files);
            repo.remove(path);
            format!("delete {path}")
        }
        6 => {
            let (from, to) = (*dice.one_of(&files), new_path(dice));
            if repo.path(&to).exists() || blocked(repo, &to) {
                return "nothing".to_owned();
            }
            repo.rename(from, &to);
            format!("rename {from} to {to}")
        }
        7 => {
            let (from, to) = (*dice.one_of(&files), new_path(dice));
            let Ok(bytes) = std::fs::read(repo.path(from)) else {
                return "nothing".to_owned();
            };
            put(repo, &to, &bytes);
            format!("copy {from} to {to}")
        }
        8 => {
            let path = new_path(dice);
            if repo.path(&path).symlink_metadata().is_ok() || blocked(repo, &path) {
                return "nothing".to_owned();
            }
            repo.symlink("nowhere", &path);
            format!("link {path}")
        }
        9 => {
            let rule = *dice.one_of(&[
                "*.py linguist-generated",
                "src/** linguist-vendored",
                "*.go -linguist-generated",
            ]);
            put(repo, ".gitattributes", format!("{rule}\n").as_bytes());
            format!("attribute {rule}")
        }
        _ => {
            let rule = *dice.one_of(&["*.md", "lib/", "!*.rs", "*.js\n!retry*"]);
            put(repo, ".codescoutignore", format!("{rule}\n").as_bytes());
            format!("ignore {rule}")
        }
    }
}

/// Returns true if a file exists where the path needs a folder.
fn blocked(repo: &TestRepo, path: &str) -> bool {
    let folders = std::path::Path::new(path).ancestors().skip(1);
    folders
        .into_iter()
        .any(|folder| repo.path(folder).symlink_metadata().is_ok_and(|file| !file.is_dir()))
}

/// Writes a file unless a folder has its name.
fn put(repo: &TestRepo, path: &str, bytes: &[u8]) {
    let is_folder = repo.path(path).is_dir();
    if !is_folder && !blocked(repo, path) {
        if repo.path(path).is_symlink() {
            repo.remove(path);
        }
        repo.write(path, bytes);
    }
}

fn new_path(dice: &mut Dice) -> String {
    let folder = *dice.one_of(&["", "src/", "src/net/", "lib/", "tests/", "docs/", "Retry/"]);
    let ending = *dice.one_of(&["rs", "py", "js", "go", "md", "toml", "txt", "java", "bin", "lock"]);
    // There are few names, so that paths occur again.
    format!("{folder}{}.{ending}", &WORDS[dice.below(6)])
}

fn name(dice: &mut Dice) -> String {
    format!("{}_{}", dice.one_of(&WORDS[..6]), dice.one_of(&WORDS[..6]))
}

fn body(dice: &mut Dice) -> String {
    let n_words = 1 + dice.below(6);
    let mut words: Vec<String> = (0..n_words).map(|_| (*dice.one_of(&WORDS)).to_owned()).collect();
    if dice.below(2) == 0 {
        words.push(name(dice));
    }
    words.join("(); ")
}

/// Returns a file with random functions with few names. Some chunks occur again in other files, and some differ only in
/// whitespace.
fn source(dice: &mut Dice, path: &str) -> Vec<u8> {
    let n_items = dice.below(7);
    let items: Vec<String> = (0..n_items).map(|_| item(dice, path)).collect();
    let mut text = items.join(if dice.below(2) == 0 { "\n" } else { "\n\n" }).into_bytes();
    if path.ends_with(".bin") {
        text.push(0);
    }
    if dice.below(8) == 0 {
        text.splice(0..0, *b"// Code generated by hand. DO NOT EDIT.\n");
    }
    text
}

fn item(dice: &mut Dice, path: &str) -> String {
    let (name, body) = (name(dice), body(dice));
    let blank = *dice.one_of(&["    ", "\t", "        "]);
    match path.rsplit('.').next().unwrap_or_default() {
        "rs" if dice.below(3) == 0 => format!("impl Parser {{\n{blank}fn {name}() {{ {body}(); }}\n}}\n"),
        "rs" => format!("/// Does {body}.\nfn {name}() {{\n{blank}{body}();\n}}\n"),
        "py" => format!("def {name}():\n{blank}{body}()\n"),
        "js" => format!("function {name}() {{\n{blank}{body}();\n}}\n"),
        "go" => format!("func {name}() {{\n{blank}{body}()\n}}\n"),
        "java" => format!("class Parser {{\n{blank}void {name}() {{ {body}(); }}\n}}\n"),
        "md" => format!("# {name}\n\n{}\n", body.replace("(); ", " ")),
        "toml" => format!("[{name}]\nvalue = \"{body}\"\n"),
        _ => format!("{name} {body}\n{}", "{ } ;\n".repeat(dice.below(3))),
    }
}

fn edited(repo: &TestRepo, dice: &mut Dice, path: &str) -> Vec<u8> {
    let mut text = std::fs::read(repo.path(path)).unwrap_or_default();
    match dice.below(3) {
        0 => text.extend_from_slice(item(dice, path).as_bytes()),
        1 => text.splice(0..0, item(dice, path).into_bytes()).for_each(drop),
        _ => text = source(dice, path),
    }
    text
}
