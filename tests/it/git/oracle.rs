//! Runs the git executable and converts its output to the types of the module `git`, for comparison.

use std::sync::atomic::AtomicBool;

use bstr::ByteSlice;
use codescout::git::{FileMode, KnownFiles, OnDisk, Repository, TreeChange, TreeEntry, TreeFile, WorkTreeChange};
use codescout::model::{CommitId, Oid, RepoPath, TreeId};

use crate::support::{InTime, TestRepo};

pub(super) fn open(repo: &TestRepo) -> Repository {
    Repository::discover(repo.root()).unwrap()
}

pub(super) fn oid(hex: &str) -> Oid {
    Oid::from_hex(hex).unwrap()
}

pub(super) fn commit_id(hex: &str) -> CommitId {
    CommitId(oid(hex))
}

pub(super) fn tree_of(repo: &TestRepo, spec: &str) -> TreeId {
    TreeId(oid(&repo.tree_of(spec)))
}

/// Returns the output of `git ls-tree -r`.
pub(super) fn ls_tree(repo: &TestRepo, tree: TreeId) -> Vec<TreeFile> {
    let printed = repo.git_bytes(["ls-tree", "-r", "-z", "--full-tree", &tree.to_string()]);
    let entries = printed.split_str("\0").filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let (head, path) = entry.split_once_str("\t").unwrap();
            let words: Vec<&str> = head.to_str().unwrap().split(' ').collect();
            TreeFile {
                path: RepoPath::new(path),
                mode: mode(words[0]).unwrap(),
                oid: oid(words[2]),
            }
        })
        .collect()
}

/// Returns the output of `git diff-tree -r`.
pub(super) fn diff_tree(repo: &TestRepo, from: TreeId, to: TreeId) -> Vec<TreeChange> {
    let printed = repo.git_bytes([
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        &from.to_string(),
        &to.to_string(),
    ]);
    let mut words = printed.split_str("\0").filter(|word| !word.is_empty());
    let mut changes = Vec::new();
    while let (Some(head), Some(path)) = (words.next(), words.next()) {
        let head: Vec<&str> = head.to_str().unwrap().trim_start_matches(':').split(' ').collect();
        let entry = |mode_text: &str, hex: &str| {
            let mode = mode(mode_text)?;
            Some(TreeEntry { mode, oid: oid(hex) })
        };
        changes.push(TreeChange {
            path: RepoPath::new(path),
            old: entry(head[0], head[2]),
            new: entry(head[1], head[3]),
        });
    }
    changes
}

fn mode(octal: &str) -> Option<FileMode> {
    match octal {
        "000000" => None,
        "100644" => Some(FileMode::File),
        "100755" => Some(FileMode::Executable),
        "120000" => Some(FileMode::Symlink),
        "160000" => Some(FileMode::Submodule),
        other => panic!("unexpected mode {other}"),
    }
}

/// Returns the files of a tree according to the module `git`.
pub(super) fn tree_files(repository: &Repository, tree: TreeId) -> Vec<TreeFile> {
    let mut files = Vec::new();
    let outcome = repository
        .reader()
        .tree_files(tree, &mut |file| files.push(file))
        .unwrap();
    assert_eq!(outcome.n_files, files.len());
    files
}

/// Returns the differences from `HEAD` if everything on disk that is not ignored were committed: runs `git add --all`
/// with a copy of the index. Omits nested repositories, which git would add as submodules.
pub(super) fn everything_added(repo: &TestRepo) -> Vec<TreeChange> {
    let copy = repo.beside("index-copy");
    let index = repo.root().join(repo.git(["rev-parse", "--git-path", "index"]));
    if index.exists() {
        std::fs::copy(index, &copy).unwrap();
    }
    let run = |arguments: &[&str]| {
        let output = repo
            .command()
            .env("GIT_INDEX_FILE", &copy)
            .args(arguments)
            .output_in_time()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    run(&["add", "--all"]);
    let tree = TreeId(oid(&run(&["write-tree"])));
    std::fs::remove_file(&copy).unwrap();
    let is_born = repo
        .try_git(["rev-parse", "--verify", "--quiet", "HEAD"])
        .status
        .success();
    let head = if is_born {
        tree_of(repo, "HEAD")
    } else {
        TreeId(oid(&run(&["hash-object", "-t", "tree", "/dev/null"])))
    };
    let mut changes = diff_tree(repo, head, tree);
    changes.retain(|change| change.new.is_none_or(|new| new.mode != FileMode::Submodule));
    changes
}

/// Returns the same differences according to the module `git`.
pub(super) fn work_tree_changes(repository: &Repository) -> Vec<TreeChange> {
    let found = repository
        .work_tree_changes(1 << 20, &mut KnownFiles::default(), &AtomicBool::new(false))
        .unwrap();
    assert_eq!(found.unreadable, []);
    found.changes.into_iter().map(as_tree_change).collect()
}

pub(super) fn as_tree_change(change: WorkTreeChange) -> TreeChange {
    let new = match change.new {
        OnDisk::Absent => None,
        OnDisk::File { mode, blob } => Some(TreeEntry { mode, oid: blob.0 }),
        OnDisk::Submodule(commit) => Some(TreeEntry {
            mode: FileMode::Submodule,
            oid: commit.0,
        }),
        OnDisk::Unread(unread) => panic!("{}: {unread}", change.path),
    };
    TreeChange {
        path: change.path,
        old: change.old,
        new,
    }
}

/// Compares the differences, in a newly opened repository.
pub(super) fn work_tree_agrees(repo: &TestRepo) {
    assert_eq!(work_tree_changes(&open(repo)), everything_added(repo));
}
