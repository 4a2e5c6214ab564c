//! Compares the state of the worktree with git's.

use std::sync::atomic::AtomicBool;

use codescout::git::{FileMode, KnownFiles, OnDisk, Repository, Stage, Unread, WorkTreeChange, WorkTreeError};
use codescout::model::RepoPath;

use super::oracle::{
    as_tree_change, diff_tree, everything_added, oid, open, tree_of, work_tree_agrees, work_tree_changes,
};
use crate::support::{InTime, TestRepo};

const FILES: &str = "
    //- README.md
    # A small project
    //- src/main.rs
    fn main() {}
    //- src/deep/er/mod.rs
    mod er;
    //- src/deep.rs
    mod deep;
    //- docs/guide.md
    A guide
";

fn changes(repo: &TestRepo) -> Vec<WorkTreeChange> {
    let found = open(repo)
        .work_tree_changes(1 << 20, &mut KnownFiles::default(), &AtomicBool::new(false))
        .unwrap();
    found.changes
}

fn stages(repo: &TestRepo) -> Vec<(String, Stage)> {
    changes(repo)
        .into_iter()
        .map(|change| (change.path.to_text().into_owned(), change.stage))
        .collect()
}

#[test]
fn nothing_has_changed() {
    let repo = TestRepo::new(FILES);
    work_tree_agrees(&repo);
    assert_eq!(changes(&repo), []);
}

#[test]
fn edits_of_every_kind() {
    let repo = TestRepo::new(FILES);
    repo.write("src/main.rs", "fn main() { edited() }");
    repo.write("src/new.rs", "new");
    repo.write("new/folder/file.txt", "new");
    repo.remove("docs/guide.md");
    work_tree_agrees(&repo);
    let expected = [
        ("docs/guide.md", Stage::Unstaged),
        ("new/folder/file.txt", Stage::Untracked),
        ("src/main.rs", Stage::Unstaged),
        ("src/new.rs", Stage::Untracked),
    ];
    assert_eq!(stages(&repo), expected.map(|(path, stage)| (path.to_owned(), stage)));
}

#[test]
fn staged_changes_and_those_on_top_of_them() {
    let repo = TestRepo::new(FILES);
    repo.write("src/main.rs", "staged");
    repo.write("src/deep.rs", "staged, then edited");
    repo.write("added.txt", "added");
    repo.write("added-and-deleted.txt", "gone");
    repo.remove("README.md");
    repo.git(["add", "--all"]);
    repo.write("src/deep.rs", "edited after staging");
    repo.remove("added-and-deleted.txt");
    work_tree_agrees(&repo);
    let expected = [
        ("README.md", Stage::Staged),
        ("added.txt", Stage::Staged),
        ("src/deep.rs", Stage::Unstaged),
        ("src/main.rs", Stage::Staged),
    ];
    assert_eq!(stages(&repo), expected.map(|(path, stage)| (path.to_owned(), stage)));
}

#[test]
fn what_was_staged_and_taken_back_on_disk_is_no_change() {
    let repo = TestRepo::new(FILES);
    let before = repo.read("src/main.rs");
    repo.write("src/main.rs", "staged");
    repo.git(["add", "--all"]);
    repo.write("src/main.rs", before);
    work_tree_agrees(&repo);
    assert_eq!(changes(&repo), []);
}

#[test]
fn out_of_the_index_but_still_on_disk() {
    let repo = TestRepo::new(FILES);
    repo.git(["rm", "--quiet", "--cached", "src/main.rs", "docs/guide.md"]);
    repo.write("docs/guide.md", "rewritten");
    work_tree_agrees(&repo);
    assert_eq!(stages(&repo), [("docs/guide.md".to_owned(), Stage::Untracked)]);
}

#[test]
fn index_changes_are_those_of_git_diff_cached() {
    let repo = TestRepo::new(FILES);
    let check = |repo: &TestRepo| {
        let tree = codescout::model::TreeId(oid(&repo.git(["write-tree"])));
        assert_eq!(
            open(repo).index_changes().unwrap(),
            diff_tree(repo, tree_of(repo, "HEAD"), tree)
        );
    };
    check(&repo);
    repo.write("src/main.rs", "staged");
    repo.write("src/other.rs", "staged");
    repo.write("src/deep/er/more.rs", "staged");
    repo.write("zzz", "staged");
    repo.write("AAA", "staged");
    repo.git(["add", "--all"]);
    repo.write("README.md", "not staged");
    check(&repo);
    repo.remove("src/deep/er/mod.rs");
    repo.remove("src/deep/er/more.rs");
    std::fs::remove_dir_all(repo.path("src/deep")).unwrap();
    repo.write("src/deep", "a file now");
    repo.git(["add", "--all"]);
    check(&repo);
    repo.git(["reset", "--quiet", "--soft", "HEAD"]);
    check(&repo);
}

#[test]
fn a_commit_that_is_reset_away_is_staged() {
    let repo = TestRepo::new(FILES);
    repo.write("src/main.rs", "second");
    repo.write("second.txt", "second");
    repo.commit("second");
    repo.git(["reset", "--quiet", "--soft", "HEAD~1"]);
    work_tree_agrees(&repo);
    repo.git(["reset", "--quiet", "--mixed"]);
    work_tree_agrees(&repo);
    assert_eq!(changes(&repo).len(), 2);
}

#[test]
fn ignored_files_do_not_enter() {
    let repo = TestRepo::new(
        "
        //- .gitignore
        *.log
        /build/
        !keep.log
        //- sub/.gitignore
        local.txt
        !wanted.log
        //- build/tracked-although-ignored.txt
        x
        //- a.txt
        a
    ",
    );
    repo.git(["add", "--force", "build/tracked-although-ignored.txt"]);
    repo.commit("tracked");
    repo.write(".git/info/exclude", "excluded-here.txt\n");
    repo.write("global-ignores", "*.global\n");
    repo.git([
        "config",
        "core.excludesFile",
        repo.path("global-ignores").to_str().unwrap(),
    ]);
    for path in [
        "a.log",
        "keep.log",
        "build/out.o",
        "sub/local.txt",
        "sub/wanted.log",
        "sub/build/kept.txt",
        "sub/b.log",
        "excluded-here.txt",
        "x.global",
        "deep/a.log",
        "deep/b.txt",
        "local.txt",
        "node_modules/x/index.js",
    ] {
        repo.write(path, "new");
    }
    repo.write("build/tracked-although-ignored.txt", "changed");
    repo.write("node_modules/.gitignore", "*");
    work_tree_agrees(&repo);
}

#[test]
fn the_sidecar_never_enters() {
    let repo = TestRepo::new(FILES);
    repo.write(".codescout/state", "ours");
    repo.write("sub/.codescout/state", "somebody's");
    assert_eq!(stages(&repo), [("sub/.codescout/state".to_owned(), Stage::Untracked)]);
}

#[test]
fn tracked_sidecar_files_are_no_changes() {
    let repo = TestRepo::new(
        "
        //- .codescout/state
        planted
        //- .codescout.toml
        fine
    ",
    );
    repo.write(".codescout/state", "changed");
    repo.write(".codescout/new", "new");
    repo.git(["add", "--all"]);
    repo.write(".codescout.toml", "changed");
    assert_eq!(stages(&repo), [(".codescout.toml".to_owned(), Stage::Unstaged)]);
}

#[test]
fn unborn_branch() {
    let repo = TestRepo::empty();
    assert_eq!(changes(&repo), []);
    repo.write("a.txt", "a");
    repo.write("b.txt", "b");
    repo.git(["add", "a.txt"]);
    work_tree_agrees(&repo);
}

#[test]
fn bare_repository_has_no_work_tree() {
    let repo = TestRepo::new(FILES).bare_clone("bare.git");
    let outcome = open(&repo).work_tree_changes(100, &mut KnownFiles::default(), &AtomicBool::new(false));
    assert!(matches!(outcome, Err(WorkTreeError::NoWorkTree)));
}

#[test]
fn no_checkout_has_no_index() {
    let repo = TestRepo::new(FILES).clone_with("clone", &["--no-checkout"]);
    let found = open(&repo)
        .work_tree_changes(100, &mut KnownFiles::default(), &AtomicBool::new(false))
        .unwrap();
    assert!(!found.has_index);
    assert_eq!(found.changes.len(), 5);
    assert!(found.changes.iter().all(|change| change.new == OnDisk::Absent));
}

#[test]
fn linked_worktree_has_its_own_files_and_index() {
    let repo = TestRepo::new(FILES);
    let linked = repo.worktree("linked");
    linked.write("src/main.rs", "in the linked one");
    linked.write("new.txt", "new");
    work_tree_agrees(&linked);
    assert_eq!(changes(&linked).len(), 2);
    assert_eq!(changes(&repo), []);
}

#[test]
fn sha256_split_index_and_old_index_versions() {
    let sha256 = TestRepo::sha256(FILES);
    sha256.write("src/main.rs", "edited");
    work_tree_agrees(&sha256);
    for settings in [
        ["core.splitIndex", "true"],
        ["index.version", "4"],
        ["index.skipHash", "true"],
        ["core.untrackedCache", "true"],
    ] {
        let repo = TestRepo::new(FILES);
        repo.git([&["config"], &settings[..]].concat());
        repo.git(["update-index", "--force-write-index"]);
        repo.write("src/other.rs", "staged");
        repo.git(["add", "--all"]);
        repo.write("src/main.rs", "edited");
        repo.write("untracked", "x");
        work_tree_agrees(&repo);
    }
}

#[test]
fn reftable_work_tree() {
    let repo = TestRepo::init(&["--ref-format=reftable"]);
    repo.write_files(FILES);
    repo.commit("start");
    repo.write("src/main.rs", "edited");
    work_tree_agrees(&repo);
}

#[test]
fn same_size_and_time_but_other_content() {
    for _ in 0..20 {
        let repo = TestRepo::new(
            "
            //- a.txt
            one
        ",
        );
        let times = std::fs::metadata(repo.path("a.txt")).unwrap();
        // Changed immediately after the index was written: in the same second, and with the old modification time.
        std::fs::write(repo.path("a.txt"), "two\n").unwrap();
        let file = std::fs::File::options().write(true).open(repo.path("a.txt")).unwrap();
        file.set_modified(times.modified().unwrap()).unwrap();
        // Git itself compares only seconds, and misses the change if the index was written in the next second.
        assert_eq!(changes(&repo).len(), 1);
    }
}

#[test]
fn an_edit_right_after_the_index_was_written_is_seen() {
    let repo = TestRepo::new(FILES);
    for n in 0..50 {
        repo.write("a.txt", format!("{n:04}"));
        repo.git(["add", "a.txt"]);
        // There is no pause, so the file may have exactly the time of the index.
        repo.write("a.txt", format!("{n:04}").replace('0', "x"));
        let change = changes(&repo).pop().unwrap();
        assert_eq!(change.stage, Stage::Unstaged, "round {n}");
    }
}

#[test]
fn touched_files_are_no_changes() {
    let repo = TestRepo::new(FILES);
    let content = repo.read("src/main.rs");
    repo.write("src/main.rs", content);
    assert_eq!(changes(&repo), []);
}

#[test]
fn intent_to_add() {
    let repo = TestRepo::new(FILES);
    repo.write("intended.txt", "content");
    repo.write("intended-and-gone.txt", "content");
    repo.git(["add", "--intent-to-add", "intended.txt", "intended-and-gone.txt"]);
    repo.remove("intended-and-gone.txt");
    work_tree_agrees(&repo);
    assert_eq!(open(&repo).index_changes().unwrap(), []);
    assert_eq!(stages(&repo), [("intended.txt".to_owned(), Stage::Unstaged)]);
}

#[test]
fn assume_unchanged_files_are_seen_as_they_are() {
    let repo = TestRepo::new(FILES);
    repo.git(["update-index", "--assume-unchanged", "src/main.rs", "README.md"]);
    repo.write("src/main.rs", "edited in secret");
    repo.remove("README.md");
    assert_eq!(stages(&repo), [("src/main.rs".to_owned(), Stage::Unstaged)]);
}

fn conflicted() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- both-edit.txt
        base
        //- we-delete.txt
        base
        //- they-delete.txt
        base
        //- fine.txt
        base
    ",
    );
    repo.branch("theirs");
    repo.write("both-edit.txt", "ours");
    repo.write("both-add.txt", "ours");
    repo.write("they-delete.txt", "ours");
    repo.remove("we-delete.txt");
    repo.commit("ours");
    repo.checkout("theirs");
    repo.write("both-edit.txt", "theirs");
    repo.write("both-add.txt", "theirs");
    repo.write("we-delete.txt", "theirs");
    repo.remove("they-delete.txt");
    repo.write("only-theirs.txt", "theirs");
    repo.commit("theirs");
    repo.checkout("main");
    assert!(!repo.try_git(["merge", "theirs"]).status.success());
    repo
}

#[test]
fn conflicted_merge() {
    let repo = conflicted();
    work_tree_agrees(&repo);
    let expected = [
        ("both-add.txt", Stage::Conflicted),
        ("both-edit.txt", Stage::Conflicted),
        ("only-theirs.txt", Stage::Staged),
        ("we-delete.txt", Stage::Conflicted),
    ];
    assert_eq!(stages(&repo), expected.map(|(path, stage)| (path.to_owned(), stage)));
    let staged: Vec<_> = open(&repo)
        .index_changes()
        .unwrap()
        .into_iter()
        .map(|change| change.path)
        .collect();
    assert_eq!(staged, [RepoPath::from("only-theirs.txt")]);
    repo.remove("both-edit.txt");
    work_tree_agrees(&repo);
}

#[test]
fn submodules_are_boundaries() {
    let inner = TestRepo::new(
        "
        //- inner.txt
        inside
    ",
    );
    let repo = TestRepo::new(FILES);
    repo.git([
        "submodule",
        "--quiet",
        "add",
        inner.root().to_str().unwrap(),
        "lib/inner",
    ]);
    let staged = changes(&repo);
    assert!(
        staged
            .iter()
            .any(|change| matches!(change.new, OnDisk::Submodule(_)) && change.stage == Stage::Staged)
    );
    repo.commit("submodule");
    repo.write("lib/inner/inner.txt", "edited inside");
    repo.write("lib/inner/new.txt", "new inside");
    assert_eq!(changes(&repo), []);
    // A submodule that is not checked out is not a deletion.
    std::fs::remove_dir_all(repo.path("lib/inner")).unwrap();
    assert_eq!(changes(&repo), []);
    repo.write("lib/inner", "a file in its place");
    assert_eq!(stages(&repo), [("lib/inner".to_owned(), Stage::Unstaged)]);
}

#[test]
fn other_repositories_are_not_entered() {
    let repo = TestRepo::new(FILES);
    repo.git(["init", "--quiet", "nested"]);
    repo.write("nested/file.txt", "theirs");
    repo.git(["init", "--quiet", "deeper/nested"]);
    repo.write("deeper/nested/file.txt", "theirs");
    repo.write("deeper/ours.txt", "ours");
    std::fs::create_dir_all(repo.path("worktree-like")).unwrap();
    repo.write("worktree-like/file.txt", "theirs");
    std::fs::write(repo.path("worktree-like/.git"), "gitdir: /somewhere/else\n").unwrap();
    // An empty folder `.git` is not a repository.
    std::fs::create_dir_all(repo.path("plain/.git")).unwrap();
    repo.write("plain/file.txt", "ours");
    let paths: Vec<_> = stages(&repo).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["deeper/ours.txt", "plain/file.txt"]);
}

#[test]
fn sparse_checkout() {
    for mode in [
        &["--cone", "--no-sparse-index"][..],
        &["--cone", "--sparse-index"],
        &["--no-cone"],
    ] {
        let repo = TestRepo::new(FILES);
        repo.git([&["sparse-checkout", "set"], mode, &["docs"]].concat());
        assert!(!repo.path("src/deep.rs").exists());
        assert_eq!(changes(&repo), [], "{mode:?}");
        repo.write("docs/guide.md", "edited");
        repo.write("docs/new.md", "new");
        assert_eq!(changes(&repo).len(), 2, "{mode:?}");
        assert_eq!(work_tree_changes(&open(&repo)), everything_added(&repo), "{mode:?}");
    }
}

#[test]
fn files_present_outside_a_sparse_checkout_count() {
    for mode in ["--sparse-index", "--no-sparse-index"] {
        let repo = TestRepo::new(FILES);
        repo.git(["sparse-checkout", "set", "--cone", mode, "docs"]);
        repo.write("src/main.rs", "put back and edited");
        repo.write("src/deep.rs", "mod deep;\n");
        repo.write("src/untracked.rs", "new");
        let expected = [("src/main.rs", Stage::Unstaged), ("src/untracked.rs", Stage::Untracked)];
        assert_eq!(
            stages(&repo),
            expected.map(|(path, stage)| (path.to_owned(), stage)),
            "{mode}"
        );
    }
}

#[test]
fn staged_changes_beside_a_sparse_index() {
    let repo = TestRepo::new(FILES);
    repo.write("src/main.rs", "second");
    repo.write("docs/guide.md", "second");
    repo.commit("second");
    repo.git(["sparse-checkout", "set", "--cone", "--sparse-index", "docs"]);
    repo.git(["reset", "--quiet", "--soft", "HEAD~1"]);
    let staged = open(&repo).index_changes().unwrap();
    let paths: Vec<_> = staged.iter().map(|change| change.path.to_text().into_owned()).collect();
    assert_eq!(paths, ["docs/guide.md", "src/main.rs"]);
    assert_eq!(
        staged,
        diff_tree(&repo, tree_of(&repo, "HEAD"), tree_of(&repo, "HEAD@{1}"))
    );
    assert_eq!(stages(&repo).len(), 2);
}

#[test]
fn line_ends_are_converted_as_git_does() {
    let attributes = "
        //- .gitattributes
        *.txt text
        *.auto text=auto
        *.bin -text
        *.win text eol=crlf
        *.unix text eol=lf
        *.id ident
        *.u16 text working-tree-encoding=UTF-16LE
        //- sub/.gitattributes
        *.txt -text
        //- already.txt
        x
    ";
    for autocrlf in ["false", "true", "input"] {
        let repo = TestRepo::new(attributes);
        repo.git(["config", "core.autocrlf", autocrlf]);
        repo.git(["config", "core.safecrlf", "false"]);
        for path in [
            "a.txt",
            "a.auto",
            "a.bin",
            "a.win",
            "a.unix",
            "a.id",
            "plain",
            "sub/a.txt",
            "sub/a.auto",
        ] {
            repo.write(path, "line\r\n$Id: abc $\r\nline\r\n");
        }
        repo.write("mixed.auto", "one\r\ntwo\n");
        repo.write("binary.auto", "one\r\n\0two\r\n");
        repo.write("text.u16", "a\0\r\0\n\0b\0");
        repo.write("already.txt", "x\r\n");
        work_tree_agrees(&repo);
        // Once the files are in the index, their content there affects the conversion.
        repo.commit("all");
        for path in ["a.txt", "a.auto", "plain"] {
            repo.write(path, "other\r\nline\r\n");
        }
        work_tree_agrees(&repo);
    }
}

#[test]
fn crlf_in_the_index_keeps_automatic_conversion_away() {
    let repo = TestRepo::new(FILES);
    repo.write("dos.txt", "one\r\ntwo\r\n");
    repo.commit("with carriage returns");
    repo.git(["config", "core.autocrlf", "true"]);
    repo.write("dos.txt", "one\r\ntwo\r\nthree\r\n");
    repo.write("new.txt", "one\r\ntwo\r\n");
    work_tree_agrees(&repo);
}

#[cfg(unix)]
#[test]
fn links_modes_and_odd_names() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    let repo = TestRepo::new(FILES);
    repo.symlink("README.md", "link");
    repo.symlink("README.md", "link-to-file");
    repo.write("file-to-link", "x");
    repo.write(OsStr::from_bytes(b"\xff\xfe"), "bytes");
    repo.write("new\nline", "odd");
    repo.write("Case", "upper");
    repo.write("case", "lower");
    repo.commit("odd");
    repo.remove("link");
    repo.symlink("/etc/passwd", "link");
    repo.remove("link-to-file");
    repo.write("link-to-file", "README.md");
    repo.remove("file-to-link");
    repo.symlink("x", "file-to-link");
    repo.write(OsStr::from_bytes(b"\xff\xfe"), "edited");
    repo.write(OsStr::from_bytes(b"dir\xff/new"), "new");
    repo.write("new\nline", "edited");
    repo.write("case", "edited");
    repo.symlink("/etc", "link-to-folder");
    std::fs::set_permissions(repo.path("README.md"), std::fs::Permissions::from_mode(0o755)).unwrap();
    work_tree_agrees(&repo);
    let passwd = changes(&repo)
        .into_iter()
        .find(|change| change.path == RepoPath::from("link"))
        .unwrap();
    let target = codescout::git::hash_blob(codescout::git::ObjectFormat::Sha1, b"/etc/passwd");
    assert_eq!(
        passwd.new,
        OnDisk::File {
            mode: FileMode::Symlink,
            blob: target
        }
    );
    repo.git(["config", "core.fileMode", "false"]);
    work_tree_agrees(&repo);
}

#[cfg(unix)]
#[test]
fn a_folder_that_became_a_link_has_lost_its_files() {
    let repo = TestRepo::new(FILES);
    // The link points to a folder with the same files.
    std::fs::rename(repo.path("src"), repo.path("moved")).unwrap();
    repo.symlink("moved", "src");
    work_tree_agrees(&repo);
    let mut reader = open(&repo).work_tree_reader().unwrap();
    for path in ["src/main.rs", "src/deep/er/mod.rs"] {
        assert_eq!(reader.read(&RepoPath::from(path), 100), Err(Unread::Absent), "{path}");
    }
    assert!(reader.read(&RepoPath::from("moved/main.rs"), 100).is_ok());
}

#[test]
fn files_and_folders_change_places() {
    let repo = TestRepo::new(FILES);
    repo.remove("README.md");
    repo.write("README.md/now-a-folder.txt", "x");
    std::fs::remove_dir_all(repo.path("src")).unwrap();
    repo.write("src", "now a file");
    work_tree_agrees(&repo);
}

#[cfg(unix)]
#[test]
fn pipes_and_sockets_are_nothing() {
    let repo = TestRepo::new(FILES);
    let make_pipe = |path: &str| {
        repo.try_git(["version"]);
        assert!(
            std::process::Command::new("mkfifo")
                .arg(repo.path(path))
                .status_in_time()
                .unwrap()
                .success()
        );
    };
    make_pipe("pipe");
    let _socket = std::os::unix::net::UnixListener::bind(repo.path("socket")).unwrap();
    repo.remove("README.md");
    make_pipe("README.md");
    assert_eq!(stages(&repo), [("README.md".to_owned(), Stage::Unstaged)]);
    assert_eq!(changes(&repo)[0].new, OnDisk::Absent);
    let mut reader = open(&repo).work_tree_reader().unwrap();
    assert_eq!(reader.read(&RepoPath::from("pipe"), 100), Err(Unread::Absent));
}

#[test]
fn large_files_are_not_read() {
    let repo = TestRepo::new(FILES);
    repo.write("large.txt", "x".repeat(1001));
    repo.write("src/main.rs", "y".repeat(1001));
    repo.write("fits.txt", "z".repeat(1000));
    let found = open(&repo)
        .work_tree_changes(1000, &mut KnownFiles::default(), &AtomicBool::new(false))
        .unwrap();
    let unread: Vec<_> = found
        .changes
        .iter()
        .filter(|change| matches!(change.new, OnDisk::Unread(_)))
        .collect();
    assert_eq!(unread.len(), 2);
    assert!(
        unread
            .iter()
            .all(|change| change.new == OnDisk::Unread(Unread::TooLarge { size: 1001 }))
    );
    // A large file that equals its staged version is unchanged, although it may be too new for its stat data to be
    // trusted.
    repo.git(["add", "--all"]);
    repo.commit_index("large");
    let found = open(&repo)
        .work_tree_changes(1000, &mut KnownFiles::default(), &AtomicBool::new(false))
        .unwrap();
    assert_eq!(found.changes, []);
}

/// Requires a user to whom the system can deny access.
#[cfg(unix)]
#[test]
fn what_cannot_be_read_is_named_and_not_taken_for_deleted() {
    use std::os::unix::fs::PermissionsExt;
    let repo = TestRepo::new(FILES);
    repo.write("README.md", "edited");
    repo.write("private/new.txt", "new");
    let set_mode = |path: &str, mode: u32| {
        std::fs::set_permissions(repo.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let closed = ["README.md", "src/deep", "private"];
    closed.iter().for_each(|path| set_mode(path, 0));
    if std::fs::read(repo.path("README.md")).is_err() {
        let found = open(&repo)
            .work_tree_changes(1000, &mut KnownFiles::default(), &AtomicBool::new(false))
            .unwrap();
        let unreadable: Vec<_> = found
            .unreadable
            .iter()
            .map(|(path, _)| path.to_text().into_owned())
            .collect();
        assert_eq!(unreadable, ["src/deep", "src/deep/er", "private"]);
        let changes: Vec<_> = found
            .changes
            .iter()
            .map(|change| change.path.to_text().into_owned())
            .collect();
        assert_eq!(changes, ["README.md"]);
        assert!(matches!(found.changes[0].new, OnDisk::Unread(Unread::Refused { .. })));
    }
    closed.iter().for_each(|path| set_mode(path, 0o755));
}

#[test]
fn paths_that_lead_outside_are_refused() {
    let repo = TestRepo::new(FILES);
    std::fs::write(repo.beside("secret"), "secret").unwrap();
    let mut reader = open(&repo).work_tree_reader().unwrap();
    for path in [
        "../secret",
        "src/../../secret",
        "/etc/passwd",
        "",
        ".",
        "src",
        ".git/config",
        "src/./main.rs",
        "src//main.rs",
    ] {
        assert!(reader.read(&RepoPath::from(path), 100).is_err(), "{path}");
    }
    assert_eq!(
        reader.read(&RepoPath::from("src/main.rs"), 100).unwrap().bytes,
        b"fn main() {}\n"
    );
}

#[test]
fn lfs_files_become_their_pointers() {
    let repo = TestRepo::new(
        "
        //- .gitattributes
        *.bin filter=lfs -text
        //- asset.bin
        version https://git-lfs.github.com/spec/v1
        oid sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
        size 5
    ",
    );
    repo.git(["config", "filter.lfs.clean", "exit 1"]);
    // The content after the smudge filter, as in a checkout with git-lfs.
    repo.write("asset.bin", "hello");
    assert_eq!(changes(&repo), []);
    repo.write("asset.bin", "other");
    let file = open(&repo)
        .work_tree_reader()
        .unwrap()
        .read(&RepoPath::from("asset.bin"), 100)
        .unwrap();
    assert!(file.bytes.starts_with(b"version https://git-lfs") && file.bytes.ends_with(b"\nsize 5\n"));
    assert_eq!(file.unfiltered, None);
}

#[test]
fn other_filters_are_named_and_not_run() {
    let repo = TestRepo::new(
        "
        //- .gitattributes
        *.ipynb filter=strip
        *.other filter=unconfigured
        //- a.ipynb
        stored
    ",
    );
    repo.git(["config", "filter.strip.clean", "echo cleaned"]);
    repo.write("a.ipynb", "on disk");
    repo.write("a.other", "plain");
    let mut reader = open(&repo).work_tree_reader().unwrap();
    let file = reader.read(&RepoPath::from("a.ipynb"), 100).unwrap();
    assert_eq!(
        (file.bytes.as_slice(), file.unfiltered),
        (&b"on disk"[..], Some("strip".into()))
    );
    assert_eq!(reader.read(&RepoPath::from("a.other"), 100).unwrap().unfiltered, None);
}

#[test]
fn the_environment_cannot_turn_to_another_repository() {
    // Set for a child process, because all tests share the environment of this one.
    let repo = TestRepo::new(FILES);
    let other = TestRepo::new(
        "
        //- other.txt
        other
    ",
    );
    let Ok(name) = std::env::var("CODESCOUT_TEST_CHILD_OF") else {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child
            .args([
                "--exact",
                "git::worktree::the_environment_cannot_turn_to_another_repository",
            ])
            .env("CODESCOUT_TEST_CHILD_OF", other.root())
            .env("GIT_DIR", other.path(".git"))
            .env("GIT_WORK_TREE", other.root())
            .env("GIT_INDEX_FILE", other.path(".git/index"))
            .env("GIT_COMMON_DIR", other.path(".git"))
            .env("GIT_OBJECT_DIRECTORY", other.path(".git/objects"))
            .env("GIT_NAMESPACE", "elsewhere")
            .env("GIT_SHALLOW_FILE", other.path(".git/HEAD"));
        let output = child.output_in_time().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    };
    assert!(!name.is_empty());
    repo.write("src/main.rs", "edited");
    let repository = Repository::discover(&repo.path("src")).unwrap();
    assert_eq!(repository.git_dir(), repo.path(".git"));
    assert_eq!(repository.work_dir(), Some(repo.root()));
    assert_eq!(work_tree_changes(&repository).len(), 1);
    let reftable = TestRepo::init(&["--ref-format=reftable"]);
    reftable.write("a", "a");
    let commit = reftable.commit("a");
    let head = Repository::discover(reftable.root()).unwrap().head().unwrap();
    assert_eq!(head.commit().unwrap().to_string(), commit);
}

#[test]
fn interrupted() {
    let repo = TestRepo::new(FILES);
    let outcome = open(&repo).work_tree_changes(100, &mut KnownFiles::default(), &AtomicBool::new(true));
    assert!(matches!(outcome, Err(WorkTreeError::Interrupted)));
}

#[test]
fn a_damaged_index_is_an_error_and_no_panic() {
    let repo = TestRepo::new(FILES);
    let whole = repo.read(".git/index");
    for len in [0, 4, 12, 40, whole.len() / 2] {
        repo.write(".git/index", &whole[..len]);
        let outcome = open(&repo).work_tree_changes(100, &mut KnownFiles::default(), &AtomicBool::new(false));
        assert!(
            matches!(outcome, Err(WorkTreeError::Index { .. })),
            "{len}: {outcome:?}"
        );
    }
}

#[test]
fn the_users_index_is_not_written() {
    let repo = TestRepo::new(FILES);
    let before = (
        repo.read(".git/index"),
        std::fs::metadata(repo.path(".git/index")).unwrap().modified().unwrap(),
    );
    repo.write("src/main.rs", "edited");
    changes(&repo);
    let after = (
        repo.read(".git/index"),
        std::fs::metadata(repo.path(".git/index")).unwrap().modified().unwrap(),
    );
    assert_eq!(before, after);
}

/// A deterministic pseudorandom number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

const RANDOM_PATHS: [&str; 8] = ["a", "a.b", "b/c", "b/d/e", "b.c/d", "f", "f0/g", "b/d.e"];

fn random_step(repo: &TestRepo, dice: &mut Dice) {
    let path = RANDOM_PATHS[dice.below(RANDOM_PATHS.len())];
    let in_the_way = |path: &str| {
        let parent = std::path::Path::new(path).parent().unwrap();
        repo.path(path).is_dir() || parent.ancestors().any(|dir| repo.path(dir).is_file())
    };
    match dice.below(10) {
        0..=3 if !in_the_way(path) => repo.write(path, format!("{}", dice.below(4))),
        4 if repo.path(path).is_file() => repo.remove(path),
        5 if repo.path(path).is_dir() => std::fs::remove_dir_all(repo.path(path)).unwrap(),
        6 => drop(repo.try_git(["add", "--", path])),
        7 => drop(repo.try_git(["rm", "--cached", "-r", "--quiet", "--", path])),
        8 => drop(repo.commit_index("random")),
        9 => drop(repo.try_git([
            "reset",
            "--quiet",
            if dice.below(2) == 0 { "--mixed" } else { "--soft" },
            "HEAD~1",
        ])),
        _ => {}
    }
}

#[test]
fn random_changes_agree_with_git() {
    for seed in 1..=3 {
        let repo = TestRepo::new(FILES);
        let repository = open(&repo);
        let mut known = KnownFiles::default();
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        for step in 0..40 {
            random_step(&repo, &mut dice);
            if step % 4 == 3 {
                let found = repository
                    .work_tree_changes(1 << 20, &mut known, &AtomicBool::new(false))
                    .unwrap();
                let found: Vec<_> = found.changes.into_iter().map(as_tree_change).collect();
                assert_eq!(found, everything_added(&repo), "seed {seed}, step {step}");
                let tree = codescout::model::TreeId(oid(&repo.git(["write-tree"])));
                let staged = diff_tree(&repo, tree_of(&repo, "HEAD"), tree);
                assert_eq!(repository.index_changes().unwrap(), staged, "seed {seed}, step {step}");
            }
        }
    }
}
