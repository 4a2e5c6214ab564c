//! Tests trees, tree diffs, blobs and commits in all kinds of repositories.

use codescout::git::{BlobContent, FileMode, ObjectError, ObjectFormat, Repository, RepositoryKind, hash_blob};
use codescout::model::{BlobId, CommitId, RepoPath, TreeId};

use super::oracle::{commit_id, diff_tree, ls_tree, oid, open, tree_files, tree_of};
use crate::support::TestRepo;

const FILES: &str = "
    //- README.md
    # A small project
    //- a.c
    int a;
    //- a/x.c
    int x;
    //- a/b/y.c
    int y;
    //- a0
    sorts after a/
    //- z/deep/down/under.txt
    end
";

/// Compares everything about the checked-out commit with the output of git.
fn agrees_with_git(repo: &TestRepo) {
    let repository = open(repo);
    let tree = tree_of(repo, "HEAD");
    let files = tree_files(&repository, tree);
    assert_eq!(files, ls_tree(repo, tree));
    assert!(!files.is_empty());
    let mut reader = repository.reader();
    for file in files.iter().filter(|file| file.mode != FileMode::Submodule) {
        let blob = file.blob().unwrap();
        let expected = repo.git_bytes(["cat-file", "blob", &blob.to_string()]);
        assert_eq!(hash_blob(repository.object_format(), &expected), blob);
        assert_eq!(reader.blob(blob, u64::MAX).unwrap(), BlobContent::Content(expected));
    }
}

#[test]
fn normal_repository() {
    let repo = TestRepo::new(FILES);
    agrees_with_git(&repo);
    let repository = open(&repo);
    assert_eq!(repository.kind(), RepositoryKind::MainWorkTree);
    assert_eq!(repository.work_dir(), Some(repo.root()));
    assert_eq!(repository.main_work_dir().as_deref(), Some(repo.root()));
    assert_eq!(repository.git_dir(), repo.path(".git"));
    assert_eq!(repository.common_dir(), repo.path(".git"));
    assert!(!repository.is_shallow() && !repository.is_partial());
}

#[test]
fn a_file_or_folder_inside_leads_to_the_repository() {
    let repo = TestRepo::new(FILES);
    for inside in ["a/b", "a/b/y.c", ".git", ".git/objects"] {
        let repository = Repository::discover(&repo.path(inside)).unwrap();
        assert_eq!(repository.git_dir(), repo.path(".git"), "{inside}");
    }
}

#[test]
fn sha256_repository() {
    let repo = TestRepo::sha256(FILES);
    agrees_with_git(&repo);
    assert_eq!(open(&repo).object_format(), ObjectFormat::Sha256);
}

#[test]
fn packed_objects() {
    let repo = TestRepo::new(FILES);
    let long = (0..500).map(|n| format!("line {n}\n")).collect::<String>();
    repo.write("long.txt", &long);
    repo.commit("long");
    repo.write("long.txt", long.replace("line 77\n", "seventy-seven\n"));
    repo.commit("a delta");
    repo.git(["gc", "--quiet", "--aggressive"]);
    agrees_with_git(&repo);
}

#[test]
fn bare_repository() {
    let repo = TestRepo::new(FILES).bare_clone("bare.git");
    agrees_with_git(&repo);
    let repository = open(&repo);
    assert_eq!(repository.kind(), RepositoryKind::Bare);
    assert_eq!(repository.work_dir(), None);
    assert_eq!(repository.main_work_dir(), None);
}

#[test]
fn linked_worktree() {
    let repo = TestRepo::new(FILES);
    let linked = repo.worktree("linked");
    linked.write("only-here.txt", "x");
    linked.commit("in the linked one");
    agrees_with_git(&linked);
    let repository = open(&linked);
    assert_eq!(repository.kind(), RepositoryKind::LinkedWorkTree);
    assert_eq!(repository.work_dir(), Some(linked.root()));
    assert_eq!(repository.git_dir(), repo.path(".git/worktrees/linked"));
    assert_eq!(repository.common_dir(), repo.path(".git"));
    assert_eq!(repository.main_work_dir().as_deref(), Some(repo.root()));
}

#[test]
fn worktree_of_a_bare_repository() {
    let bare = TestRepo::new(FILES).bare_clone("bare.git");
    let linked = bare.worktree("linked");
    agrees_with_git(&linked);
    let repository = open(&linked);
    assert_eq!(repository.kind(), RepositoryKind::LinkedWorkTree);
    assert_eq!(repository.common_dir(), bare.root());
    assert_eq!(repository.main_work_dir(), None);
}

#[test]
fn shallow_clone() {
    let repo = TestRepo::new(FILES);
    repo.write("later.txt", "x");
    repo.commit("later");
    let shallow = repo.clone_with("shallow", &["--depth=1"]);
    agrees_with_git(&shallow);
    let repository = open(&shallow);
    assert!(repository.is_shallow());
    let mut reader = repository.reader();
    let commit = reader.commit(repository.head().unwrap().commit().unwrap()).unwrap();
    assert_eq!(commit.parents.len(), 1);
    assert!(matches!(
        reader.commit(commit.parents[0]),
        Err(ObjectError::Missing { .. })
    ));
}

#[test]
fn blobs_of_a_partial_clone_are_missing_and_not_fetched() {
    let repo = TestRepo::new(FILES);
    repo.git(["config", "uploadpack.allowFilter", "true"]);
    let partial = repo.clone_with("partial", &["--filter=blob:none", "--no-checkout"]);
    let repository = open(&partial);
    assert!(repository.is_partial());
    let tree = tree_of(&partial, "HEAD");
    let files = tree_files(&repository, tree);
    assert_eq!(files, ls_tree(&repo, tree));
    let mut reader = repository.reader();
    for file in &files {
        assert_eq!(
            reader.blob(file.blob().unwrap(), u64::MAX).unwrap(),
            BlobContent::Missing
        );
    }
    let still_missing = partial.git(["rev-list", "--objects", "--missing=print", "HEAD"]);
    assert_eq!(
        still_missing.lines().filter(|line| line.starts_with('?')).count(),
        files.len()
    );
}

#[test]
fn trees_of_a_treeless_clone_are_missing() {
    let repo = TestRepo::new(FILES);
    repo.git(["config", "uploadpack.allowFilter", "true"]);
    let partial = repo.clone_with("partial", &["--filter=tree:0", "--no-checkout"]);
    let repository = open(&partial);
    let resolved = repository.resolve("HEAD").unwrap();
    let failure = repository.reader().tree_files(resolved.tree, &mut |_| {}).unwrap_err();
    assert!(
        matches!(failure, ObjectError::Missing { kind: "tree", .. }),
        "{failure}"
    );
}

#[test]
fn alternates() {
    let repo = TestRepo::new(FILES);
    let borrowing = repo.clone_with("borrowing", &["--reference", repo.root().to_str().unwrap()]);
    assert!(borrowing.path(".git/objects/info/alternates").exists());
    agrees_with_git(&borrowing);
}

#[test]
fn submodule_is_a_boundary_and_a_repository_of_its_own() {
    let inner = TestRepo::new(
        "
        //- inner.txt
        inside
    ",
    );
    let outer = TestRepo::new(FILES);
    outer.git([
        "submodule",
        "--quiet",
        "add",
        inner.root().to_str().unwrap(),
        "lib/inner",
    ]);
    outer.commit("with a submodule");
    agrees_with_git(&outer);
    let files = tree_files(&open(&outer), tree_of(&outer, "HEAD"));
    let boundary = files.iter().find(|file| file.mode == FileMode::Submodule).unwrap();
    assert_eq!(boundary.path, RepoPath::from("lib/inner"));
    assert_eq!(boundary.blob(), None);

    let repository = Repository::discover(&outer.path("lib/inner")).unwrap();
    assert_eq!(repository.kind(), RepositoryKind::Submodule);
    assert_eq!(repository.work_dir(), Some(outer.path("lib/inner").as_path()));
    assert_eq!(repository.common_dir(), outer.path(".git/modules/lib/inner"));
}

#[test]
fn replacement_refs_are_not_followed() {
    let repo = TestRepo::new(FILES);
    let original = repo.rev_parse("HEAD:a.c");
    let other = repo.rev_parse("HEAD:a0");
    repo.git(["replace", &original, &other]);
    let content = open(&repo).reader().blob(BlobId(oid(&original)), 100).unwrap();
    assert_eq!(content, BlobContent::Content(b"int a;\n".to_vec()));
}

#[cfg(unix)]
#[test]
fn symlinks_modes_and_odd_names() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    let repo = TestRepo::new(FILES);
    repo.symlink("/etc/passwd", "link");
    repo.write("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(repo.path("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.write(OsStr::from_bytes(b"not-\xff\xfe-utf8"), "bytes");
    repo.write("new\nline\ttab\"quote", "odd");
    repo.write("Case", "upper");
    repo.write("case", "lower");
    repo.commit("odd");
    agrees_with_git(&repo);
    let files = tree_files(&open(&repo), tree_of(&repo, "HEAD"));
    let mode_of = |path: &[u8]| files.iter().find(|file| file.path.as_bytes() == path).unwrap().mode;
    assert_eq!(mode_of(b"link"), FileMode::Symlink);
    assert_eq!(mode_of(b"run.sh"), FileMode::Executable);
    assert_eq!(mode_of(b"not-\xff\xfe-utf8"), FileMode::File);
}

#[test]
fn entries_that_would_leave_the_root_are_left_out_and_counted() {
    let repo = TestRepo::new(FILES);
    let blob = repo.rev_parse("HEAD:a.c");
    let listing = format!(
        "100644 blob {blob}\tfine\n100644 blob {blob}\t..\n040000 tree {}\t.git\n",
        repo.tree_of("HEAD")
    );
    // Git writes such a tree only if checks are disabled.
    let raw = raw_tree(&listing);
    let id = repo.git_with_input(["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &raw);
    let tree = TreeId(oid(String::from_utf8(id).unwrap().trim()));
    let mut paths = Vec::new();
    let outcome = open(&repo)
        .reader()
        .tree_files(tree, &mut |file| paths.push(file.path))
        .unwrap();
    assert_eq!(paths, [RepoPath::from("fine")]);
    assert_eq!(outcome.n_unusable, 2);
}

fn raw_tree(listing: &str) -> Vec<u8> {
    let mut raw = Vec::new();
    for line in listing.lines() {
        let (head, name) = line.split_once('\t').unwrap();
        let words: Vec<&str> = head.split(' ').collect();
        raw.extend_from_slice(format!("{} {name}\0", words[0].trim_start_matches('0')).as_bytes());
        raw.extend_from_slice(oid(words[2]).as_bytes());
    }
    raw
}

#[test]
fn a_damaged_tree_is_an_error_and_no_panic() {
    let repo = TestRepo::new(FILES);
    for garbage in [
        &b"100644"[..],
        b"100644 name",
        b"100644 name\0short",
        b"9 x\0aaaaaaaaaaaaaaaaaaaa",
        b"\0\0\0",
    ] {
        let id = repo.git_with_input(["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], garbage);
        let tree = TreeId(oid(String::from_utf8(id).unwrap().trim()));
        let failure = open(&repo).reader().tree_files(tree, &mut |_| {}).unwrap_err();
        assert!(matches!(failure, ObjectError::Damaged { .. }), "{failure}");
    }
}

#[test]
fn size_limit_is_checked_before_reading() {
    let repo = TestRepo::new(FILES);
    let blob = BlobId(oid(&repo.rev_parse("HEAD:README.md")));
    let mut reader = open(&repo).reader();
    assert_eq!(reader.blob(blob, 17).unwrap(), BlobContent::TooLarge { size: 18 });
    assert!(matches!(reader.blob(blob, 18).unwrap(), BlobContent::Content(_)));
}

#[test]
fn asking_for_the_wrong_kind_is_an_error() {
    let repo = TestRepo::new(FILES);
    let (tree, blob) = (tree_of(&repo, "HEAD"), oid(&repo.rev_parse("HEAD:README.md")));
    let mut reader = open(&repo).reader();
    let failure = reader.commit(CommitId(blob)).unwrap_err();
    assert!(matches!(failure, ObjectError::WrongKind { .. }), "{failure}");
    // Not an error, so that a tree with an entry of the wrong type can still be processed.
    assert_eq!(reader.blob(BlobId(tree.0), 100).unwrap(), BlobContent::Damaged);
}

#[test]
fn commit_fields() {
    let repo = TestRepo::new(FILES);
    repo.branch("side");
    repo.write("main.txt", "x");
    repo.commit("on main");
    repo.checkout("side");
    repo.write("side.txt", "x");
    let side = repo.commit("on side\n\nwith a body");
    repo.checkout("main");
    let first = repo.rev_parse("HEAD");
    let merge = repo.merge("side");
    let mut reader = open(&repo).reader();
    let info = reader.commit(commit_id(&merge)).unwrap();
    assert_eq!(info.parents, [commit_id(&first), commit_id(&side)]);
    assert_eq!(info.tree, tree_of(&repo, "HEAD"));
    let side_info = reader.commit(commit_id(&side)).unwrap();
    assert_eq!(side_info.message, "on side\n\nwith a body\n");
    assert_eq!(
        (side_info.author.name, side_info.author.email),
        ("Ada Author".into(), "ada@example.com".into())
    );
    assert_eq!(side_info.committer.name, "Carl Committer");
    let time: i64 = repo.git(["log", "-1", "--format=%at", &side]).parse().unwrap();
    assert_eq!(side_info.author.time, time);
}

#[test]
fn diffs_agree_with_git() {
    let repo = TestRepo::new(FILES);
    repo.remove("a.c");
    repo.write("README.md", "changed");
    repo.write("z/deep/new.txt", "new");
    repo.commit("changes");
    // A file is replaced by a folder, and a folder by a file.
    repo.remove("a0");
    repo.write("a0/now-a-folder", "x");
    std::fs::remove_dir_all(repo.path("a")).unwrap();
    repo.write("a", "now a file");
    repo.commit("kinds");
    repo.rename("a", "b");
    repo.commit("rename");
    let repository = open(&repo);
    let mut reader = repository.reader();
    for (from, to) in [
        ("HEAD~1", "HEAD"),
        ("HEAD~2", "HEAD~1"),
        ("HEAD~3", "HEAD"),
        ("HEAD", "HEAD~3"),
        ("HEAD", "HEAD"),
    ] {
        let (from, to) = (tree_of(&repo, from), tree_of(&repo, to));
        assert_eq!(reader.diff_trees(Some(from), to).unwrap(), diff_tree(&repo, from, to));
    }
    let tree = tree_of(&repo, "HEAD");
    let all: Vec<_> = reader
        .diff_trees(None, tree)
        .unwrap()
        .into_iter()
        .map(|change| change.path)
        .collect();
    assert_eq!(
        all,
        tree_files(&repository, tree)
            .into_iter()
            .map(|file| file.path)
            .collect::<Vec<_>>()
    );
}

#[test]
fn handles_can_be_shared_and_readers_sent() {
    fn shared<T: Clone + Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Repository>();
    shared::<codescout::git::Attributes>();
    sent::<codescout::git::ObjectReader>();
    sent::<codescout::git::WorkTreeReader>();
    sent::<codescout::git::AttributeMatcher>();
}

#[test]
fn readers_work_in_many_threads() {
    let repo = TestRepo::new(FILES);
    let repository = open(&repo);
    let tree = tree_of(&repo, "HEAD");
    let expected = ls_tree(&repo, tree);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let repository = repository.clone();
            let expected = &expected;
            scope.spawn(move || assert_eq!(&tree_files(&repository, tree), expected));
        }
    });
}
