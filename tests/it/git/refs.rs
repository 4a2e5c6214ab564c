//! Tests opening repositories, `HEAD`, refs, reflogs and revisions.

use codescout::git::{Head, OpenError, RefKind, Repository, RevisionError};
use codescout::model::{Explain, TreeId};

use super::oracle::{commit_id, oid, open, tree_of};
use crate::support::TestRepo;

const FILES: &str = "
    //- a.txt
    one
";

#[test]
fn head_is_a_branch_detached_or_unborn() {
    let repo = TestRepo::new(FILES);
    let first = repo.rev_parse("HEAD");
    let branch = Head::Branch {
        name: "main".into(),
        commit: Some(commit_id(&first)),
    };
    assert_eq!(open(&repo).head().unwrap(), branch);
    repo.checkout(&first);
    let detached = Head::Detached {
        commit: commit_id(&first),
    };
    assert_eq!(open(&repo).head().unwrap(), detached);
    let unborn = Head::Branch {
        name: "main".into(),
        commit: None,
    };
    assert_eq!(open(&TestRepo::empty()).head().unwrap(), unborn);
}

#[test]
fn head_of_a_linked_worktree_is_its_own() {
    let repo = TestRepo::new(FILES);
    let linked = repo.worktree("linked");
    let commit = linked.commit("second");
    let expected = Head::Branch {
        name: "linked".into(),
        commit: Some(commit_id(&commit)),
    };
    assert_eq!(open(&linked).head().unwrap(), expected);
    assert_ne!(open(&repo).head().unwrap(), expected);
}

fn resolves_like_git(repo: &TestRepo, spec: &str) {
    let resolved = open(repo).resolve(spec).unwrap();
    let object = repo.rev_parse(spec);
    assert_eq!(
        resolved.commit,
        Some(commit_id(&repo.rev_parse(&format!("{object}^{{commit}}")))),
        "{spec}"
    );
    assert_eq!(resolved.tree, tree_of(repo, &object), "{spec}");
}

#[test]
fn revisions_resolve_like_git() {
    let repo = TestRepo::new(FILES);
    repo.write("a.txt", "two");
    let second = repo.commit("second subject");
    repo.tag("v1");
    repo.git(["tag", "nested", "v1"]);
    repo.branch("topic/thing");
    repo.write("a.txt", "three");
    repo.commit("third");
    let specs = [
        "HEAD",
        "@",
        "HEAD~1",
        "HEAD~2",
        "HEAD^",
        "main",
        "v1",
        "nested",
        "v1~1",
        "topic/thing",
        "heads/main",
        "refs/tags/v1",
        ":/second",
        "HEAD^{/second}",
        "HEAD@{1}",
        "main@{0}",
        &second,
        &second[..8],
        "v1^{commit}",
    ];
    for spec in specs {
        resolves_like_git(&repo, spec);
    }
}

#[test]
fn the_id_of_a_tree_resolves_to_the_tree_alone() {
    let repo = TestRepo::new(FILES);
    let tree = repo.tree_of("HEAD");
    for spec in [tree.as_str(), "HEAD^{tree}"] {
        let resolved = open(&repo).resolve(spec).unwrap();
        assert_eq!((resolved.commit, resolved.tree), (None, TreeId(oid(&tree))), "{spec}");
    }
}

fn failure(repo: &TestRepo, spec: &str) -> RevisionError {
    open(repo).resolve(spec).unwrap_err()
}

#[test]
fn unknown_revisions_suggest_names() {
    let repo = TestRepo::new(FILES);
    repo.branch("feature/login-page");
    repo.tag("v1.2.0");
    for (spec, expected) in [
        ("mian", "main"),
        ("login-page", "feature/login-page"),
        ("v1.2", "v1.2.0"),
        ("mainn~3", "main"),
    ] {
        match failure(&repo, spec) {
            RevisionError::Unknown { near, .. } => {
                assert_eq!(near.first().map(String::as_str), Some(expected), "{spec}")
            }
            other => panic!("{spec}: {other}"),
        }
    }
    for spec in [
        "",
        " ",
        "no-such-thing-at-all",
        "HEAD~99",
        "main^7",
        "deadbeefdeadbeef",
        "main@{999}",
        "\u{1F980}",
        "a b",
        "HEAD^{",
    ] {
        assert!(
            matches!(failure(&repo, spec), RevisionError::Unknown { .. }),
            "{spec:?}"
        );
    }
}

#[test]
fn other_failures_are_told_apart() {
    let repo = TestRepo::new(FILES);
    repo.commit("second");
    assert!(matches!(
        failure(&repo, "--output=/tmp/x"),
        RevisionError::LooksLikeOption { .. }
    ));
    assert!(matches!(failure(&repo, "HEAD~1..HEAD"), RevisionError::Range { .. }));
    assert!(matches!(failure(&repo, "HEAD:a.txt"), RevisionError::NotATree { .. }));
    assert!(matches!(failure(&TestRepo::empty(), "HEAD"), RevisionError::Unborn { branch } if branch == "main"));
}

#[test]
fn ambiguous_abbreviations_list_what_they_can_mean() {
    let repo = TestRepo::empty();
    // Among a few thousand blobs, some share their first four digits.
    let mut seen = std::collections::HashMap::new();
    let mut shared = None;
    for n in 0..4000 {
        let id = codescout::git::hash_blob(codescout::git::ObjectFormat::Sha1, format!("{n}\n").as_bytes()).to_string();
        if let Some(other) = seen.insert(id[..4].to_owned(), n) {
            shared = Some((other, n, id[..4].to_owned()));
            break;
        }
    }
    let (one, two, prefix) = shared.unwrap();
    repo.write("one", format!("{one}\n"));
    repo.write("two", format!("{two}\n"));
    repo.commit("both");
    match failure(&repo, &prefix) {
        RevisionError::Ambiguous { candidates, .. } => assert_eq!(candidates.len(), 2),
        other => panic!("{other}"),
    }
}

#[test]
fn refs_agree_with_git() {
    let origin = TestRepo::new(FILES);
    origin.tag("annotated");
    origin.git(["tag", "light"]);
    origin.git(["tag", "of-a-tree", "HEAD^{tree}"]);
    let repo = origin.clone_with("clone", &[]);
    repo.branch("topic");
    repo.git(["pack-refs", "--all"]);
    repo.commit("moves main on, beside its packed value");
    repo.git(["notes", "add", "-m", "note"]);
    let refs = open(&repo).refs().unwrap();
    let printed = repo.git(["for-each-ref", "--format=%(refname)"]);
    assert_eq!(
        refs.iter().map(|each| each.name.to_string()).collect::<Vec<_>>(),
        printed.lines().collect::<Vec<_>>()
    );
    for each in &refs {
        let name = each.name.to_string();
        let peeled = repo.try_git(["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]);
        let expected = peeled
            .status
            .success()
            .then(|| commit_id(String::from_utf8_lossy(&peeled.stdout).trim()));
        assert_eq!(each.commit, expected, "{name}");
    }
    let kinds: Vec<_> = refs
        .iter()
        .map(|each| (each.short_name().to_string(), each.kind))
        .collect();
    assert!(kinds.contains(&("topic".into(), RefKind::Branch)));
    assert!(kinds.contains(&("annotated".into(), RefKind::Tag)));
    assert!(kinds.contains(&("origin/main".into(), RefKind::Remote)));
    assert!(kinds.contains(&("refs/notes/commits".into(), RefKind::Other)));
}

#[test]
fn reftable_is_read_through_git() {
    let repo = TestRepo::init(&["--ref-format=reftable"]);
    assert_eq!(open(&repo).head().unwrap().commit(), None);
    assert!(matches!(failure(&repo, "HEAD"), RevisionError::Unborn { branch } if branch == "main"));
    repo.write("a.txt", "one");
    let first = repo.commit("first");
    repo.tag("v1");
    let second = repo.commit("second");
    let repository = open(&repo);
    let expected = Head::Branch {
        name: "main".into(),
        commit: Some(commit_id(&second)),
    };
    assert_eq!(repository.head().unwrap(), expected);
    for spec in ["HEAD", "HEAD~1", "v1", "main", &first[..8]] {
        resolves_like_git(&repo, spec);
    }
    assert!(matches!(failure(&repo, "mian"), RevisionError::Unknown { near, .. } if near == ["main"]));
    assert!(matches!(failure(&repo, "-x"), RevisionError::LooksLikeOption { .. }));
    let refs = repository.refs().unwrap();
    let seen: Vec<_> = refs.iter().map(|each| (each.name.to_string(), each.commit)).collect();
    assert_eq!(
        seen,
        [
            ("refs/heads/main".to_owned(), Some(commit_id(&second))),
            ("refs/tags/v1".to_owned(), Some(commit_id(&first))),
        ]
    );
    repo.checkout(&first);
    let detached = Head::Detached {
        commit: commit_id(&first),
    };
    assert_eq!(open(&repo).head().unwrap(), detached);
}

#[test]
fn no_repository_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let failure = Repository::discover(folder.path()).unwrap_err();
    assert!(matches!(failure, OpenError::NotARepository { .. }), "{failure:?}");
    let failure = Repository::open(folder.path()).unwrap_err();
    assert!(matches!(failure, OpenError::NotARepository { .. }), "{failure:?}");
    let failure = Repository::discover(&folder.path().join("gone")).unwrap_err();
    assert!(matches!(failure, OpenError::Inaccessible { .. }), "{failure:?}");
}

#[test]
fn open_does_not_look_above() {
    let repo = TestRepo::new(
        "
        //- sub/a.txt
        a
    ",
    );
    assert!(Repository::discover(&repo.path("sub")).is_ok());
    assert!(matches!(
        Repository::open(&repo.path("sub")),
        Err(OpenError::NotARepository { .. })
    ));
    assert!(Repository::open(repo.root()).is_ok());
    assert!(Repository::open(&repo.path(".git")).is_ok());
}

#[test]
fn formats_from_the_future_are_refused() {
    let repo = TestRepo::new(FILES);
    repo.git(["config", "extensions.timeTravel", "true"]);
    assert!(
        Repository::discover(repo.root()).is_ok(),
        "git ignores unknown extensions in format version 0"
    );
    repo.git(["config", "core.repositoryFormatVersion", "1"]);
    let failure = Repository::discover(repo.root()).unwrap_err();
    assert!(
        matches!(&failure, OpenError::UnsupportedExtension { extension, .. } if extension == "timetravel=true"),
        "{failure:?}"
    );
    let other = TestRepo::new(FILES);
    other.git(["config", "core.repositoryFormatVersion", "2"]);
    let failure = Repository::discover(other.root()).unwrap_err();
    assert!(
        matches!(failure, OpenError::UnsupportedVersion { ref version, .. } if version == "2"),
        "{failure:?}"
    );
}

/// Requires the permission to change the owner of files. Otherwise the test is skipped.
#[cfg(unix)]
#[test]
fn a_repository_of_another_user_is_refused() {
    let repo = TestRepo::new(FILES);
    let somebody_else = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(repo.root()).unwrap()) + 1;
    let give_away = |path: &std::path::Path| std::os::unix::fs::chown(path, Some(somebody_else), None);
    if give_away(&repo.path(".git"))
        .and_then(|()| give_away(repo.root()))
        .is_err()
    {
        return;
    }
    for attempt in [Repository::discover(repo.root()), Repository::open(repo.root())] {
        let failure = attempt.unwrap_err();
        assert!(
            matches!(&failure, OpenError::Untrusted { path } if path == repo.root()),
            "{failure:?}"
        );
        assert!(failure.explain().hint.shell.unwrap().contains("safe.directory"));
    }
}

#[test]
fn beyond_a_shallow_boundary_the_reason_is_given() {
    let repo = TestRepo::new(FILES);
    repo.commit("second");
    let shallow = repo.clone_with("shallow", &["--depth=1"]);
    let unknown = failure(&shallow, "HEAD~1");
    assert!(
        matches!(unknown, RevisionError::Unknown { is_shallow: true, .. }),
        "{unknown}"
    );
    assert!(unknown.explain().hint.shell.unwrap().contains("--unshallow"));
}

#[test]
fn heads_of_all_work_trees_are_known_to_each() {
    for options in [&[][..], &["--ref-format=reftable"]] {
        let repo = TestRepo::init(options);
        repo.write("a.txt", "a");
        let main = repo.commit("main");
        let one = repo.worktree("one");
        let in_one = one.commit("one");
        let two = repo.worktree("two");
        two.git(["checkout", "--quiet", "--detach"]);
        let in_two = two.commit("two");
        let mut expected = [main, in_one, in_two].map(|hex| commit_id(&hex));
        expected.sort_unstable();
        for each in [&repo, &one, &two] {
            assert_eq!(
                open(each).work_tree_heads().unwrap(),
                expected,
                "{}",
                each.root().display()
            );
        }
        std::fs::remove_dir_all(one.root()).unwrap();
        assert_eq!(open(&two).work_tree_heads().unwrap(), expected);
    }
    assert_eq!(open(&TestRepo::empty()).work_tree_heads().unwrap(), []);
}

#[test]
fn a_tag_of_a_tag_is_its_commit_and_one_of_a_tree_is_none() {
    let repo = TestRepo::new(FILES);
    let commit = commit_id(&repo.rev_parse("HEAD"));
    repo.git(["tag", "-a", "-m", "one", "inner"]);
    repo.git(["tag", "-a", "-m", "two", "outer", "inner"]);
    repo.git(["tag", "-a", "-m", "tree", "of-tree", "HEAD^{tree}"]);
    repo.git(["symbolic-ref", "refs/heads/alias", "refs/tags/outer"]);
    for command in ["pack-refs", "count-objects"] {
        let found = open(&repo).refs().unwrap();
        let commits: Vec<_> = found
            .iter()
            .map(|each| (each.short_name().to_string(), each.commit))
            .collect();
        let expected = [
            ("alias", Some(commit)),
            ("main", Some(commit)),
            ("inner", Some(commit)),
            ("of-tree", None),
            ("outer", Some(commit)),
        ];
        assert_eq!(commits, expected.map(|(name, commit)| (name.to_owned(), commit)));
        repo.git([command]);
    }
}

/// Returns the number of page faults of this thread. Each mapped file causes one.
#[cfg(target_os = "linux")]
fn n_page_faults() -> usize {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap();
    fields.split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn an_object_that_many_refs_name_is_read_once() {
    let repo = TestRepo::new(FILES);
    let id = repo.rev_parse("HEAD");
    const N_REFS: usize = 20_000;
    let lines = (0..N_REFS).map(|n| format!("{id} refs/tags/t{n:05}\n"));
    let header = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
    repo.write(".git/packed-refs", header + &lines.collect::<String>());
    let opened = open(&repo);
    let before = n_page_faults();
    let found = opened.refs().unwrap();
    let n_faults = n_page_faults() - before;
    assert!(found.len() > N_REFS && found.iter().all(|each| each.commit == Some(commit_id(&id))));
    assert!(
        !crate::support::is_long() || n_faults < N_REFS,
        "{n_faults} page faults"
    );
}
