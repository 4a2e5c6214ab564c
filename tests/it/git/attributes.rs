//! Compares attributes and ignore rules of trees with `git check-attr` and `git check-ignore`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use codescout::git::{AttributeMatcher, Attributes, KnownFiles, MAX_RULES_BYTES, PathAttributes};
use codescout::model::{RepoPath, TreeId};

use super::oracle::{open, tree_files, tree_of};
use crate::support::TestRepo;
use crate::support::cpu_time::cpu_time;

const FILES: &str = "
    //- .gitattributes
    # comment
    *.min.js linguist-generated
    /vendor/** linguist-vendored
    docs/* linguist-documentation=true
    *.pb.go linguist-generated=true
    keep.pb.go -linguist-generated
    false.pb.go linguist-generated=false
    odd.pb.go linguist-generated=maybe
    again.pb.go !linguist-generated
    *.bin filter=lfs diff=lfs merge=lfs -text
    [attr]made linguist-generated linguist-vendored
    *.made made
    *.pic binary
    *.text diff
    \"with space.txt\" linguist-generated
    //- sub/.gitattributes
    *.pb.go -linguist-generated
    [attr]ignored-macro linguist-vendored
    *.macro ignored-macro
    //- sub/deep/.gitattributes
    special.pb.go linguist-generated
    //- vendor/lib/x.c
    x
";

const PATHS: [&str; 26] = [
    "a.text",
    "sub/a.pic",
    "a.min.js",
    "deep/down/a.min.js",
    "vendor/x.c",
    "vendor/lib/x.c",
    "other/vendor/x.c",
    "docs/a.md",
    "docs/sub/a.md",
    "a.pb.go",
    "keep.pb.go",
    "x/keep.pb.go",
    "false.pb.go",
    "odd.pb.go",
    "again.pb.go",
    "a.bin",
    "sub/a.bin",
    "a.made",
    "with space.txt",
    "sub/a.pb.go",
    "sub/deep/a.pb.go",
    "sub/deep/special.pb.go",
    "sub/a.macro",
    "subway/a.pb.go",
    "plain.txt",
    "vendor",
];

fn matcher(repo: &TestRepo) -> AttributeMatcher {
    let tree = tree_of(repo, "HEAD");
    Attributes::for_tree(&mut open(repo).reader(), tree).unwrap().matcher()
}

fn check_attr(repo: &TestRepo, path: &str) -> PathAttributes {
    let value = |name: &str| {
        let printed = repo.git(["check-attr", "--source=HEAD", "-z", name, "--", path]);
        printed.split('\0').nth(2).unwrap().to_owned()
    };
    let truth = |name: &str| match value(name).as_str() {
        "set" | "true" => Some(true),
        "unset" | "false" => Some(false),
        _ => None,
    };
    PathAttributes {
        generated: truth("linguist-generated"),
        vendored: truth("linguist-vendored"),
        documentation: truth("linguist-documentation"),
        is_lfs: value("filter") == "lfs",
        is_text: match value("diff").as_str() {
            "set" => Some(true),
            "unset" => Some(false),
            _ => None,
        },
        is_ignored: false,
    }
}

#[test]
fn attributes_are_those_of_git_check_attr() {
    let repo = TestRepo::new(FILES);
    let mut matcher = matcher(&repo);
    for path in PATHS {
        assert_eq!(matcher.of(&RepoPath::from(path)), check_attr(&repo, path), "{path}");
    }
    assert_eq!(matcher.of(&RepoPath::from("a.min.js")).generated, Some(true));
}

#[test]
fn a_tree_without_rules_says_nothing() {
    let repo = TestRepo::new(
        "
        //- a.txt
        a
    ",
    );
    let attributes = Attributes::for_tree(&mut open(&repo).reader(), tree_of(&repo, "HEAD")).unwrap();
    assert!(attributes.is_empty());
    assert_eq!(
        attributes.matcher().of(&RepoPath::from("a.txt")),
        PathAttributes::default()
    );
}

#[test]
fn the_machines_rules_have_no_say() {
    let repo = TestRepo::new(FILES);
    repo.write(".git/info/attributes", "* linguist-vendored\n");
    repo.write("attributes", "* linguist-documentation\n");
    repo.git([
        "config",
        "core.attributesFile",
        repo.path("attributes").to_str().unwrap(),
    ]);
    assert_eq!(
        matcher(&repo).of(&RepoPath::from("plain.txt")),
        PathAttributes::default()
    );
}

const IGNORES: &str = "
    *.log
    !keep.log
    /build
    out/
    docs/**/private
    a/b/*.txt
    !a/b/kept.txt
    \\#odd
    trailing\\ 
    [0-9]*.tmp
";

const IGNORES_BELOW: &str = "
    !*.log
    local.txt
    /anchored.txt
";

#[test]
fn ignore_patterns_work_as_in_gitignore() {
    let repo = TestRepo::empty();
    let unindent = |text: &str| {
        text.lines()
            .map(|line| line.strip_prefix("    ").unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
    };
    for name in [".gitignore", ".codescoutignore"] {
        repo.write(name, unindent(IGNORES));
        repo.write(format!("sub/{name}"), unindent(IGNORES_BELOW));
        repo.write(format!("build/{name}"), "!*");
    }
    repo.git(["add", "--force", "--all"]);
    repo.commit_index("rules");
    let mut matcher = matcher(&repo);
    let paths = [
        "a.log",
        "x/a.log",
        "keep.log",
        "x/keep.log",
        "build",
        "build/kept",
        "x/build",
        "out",
        "out/x",
        "x/out/y",
        "docs/private",
        "docs/x/private",
        "docs/x/y/private/z",
        "docs/public",
        "a/b/x.txt",
        "a/b/kept.txt",
        "a/b/c/x.txt",
        "#odd",
        "trailing ",
        "1.tmp",
        "x.tmp",
        "sub/a.log",
        "sub/x/a.log",
        "sub/local.txt",
        "sub/x/local.txt",
        "local.txt",
        "sub/anchored.txt",
        "sub/x/anchored.txt",
        "sub/build",
    ];
    for path in paths {
        let is_ignored = repo
            .try_git(["check-ignore", "--quiet", "--no-index", "--", path])
            .status
            .success();
        assert_eq!(matcher.of(&RepoPath::from(path)).is_ignored, is_ignored, "{path}");
    }
}

#[test]
fn patterns_that_take_long_to_match_do_not_and_others_beside_them_count() {
    let path = format!("{}x", "abcde/".repeat(600));
    let many = "**/".repeat((MAX_RULES_BYTES as usize - 20) / 3);
    for pattern in [format!("{}*a*b*c*d*e/**", "**/".repeat(20)), format!("{many}x"), many] {
        let repo = TestRepo::empty();
        repo.write(".codescoutignore", format!("{pattern}\n*.log\n"));
        repo.commit("rules");
        let mut matcher = matcher(&repo);
        let before = cpu_time();
        matcher.of(&RepoPath::from(path.as_str()));
        assert!(matcher.of(&RepoPath::from(format!("{path}/a.log").as_str())).is_ignored);
        let took = cpu_time().saturating_sub(before);
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
}

#[test]
fn rules_follow_the_tree_not_the_work_tree() {
    let repo = TestRepo::new(FILES);
    let old = tree_of(&repo, "HEAD");
    repo.write(".gitattributes", "* linguist-generated\n");
    repo.commit("other rules");
    let mut reader = open(&repo).reader();
    let plain = RepoPath::from("plain.txt");
    let generated = |reader: &mut _, tree: TreeId| {
        Attributes::for_tree(reader, tree)
            .unwrap()
            .matcher()
            .of(&plain)
            .generated
    };
    assert_eq!(generated(&mut reader, old), None);
    assert_eq!(generated(&mut reader, tree_of(&repo, "HEAD")), Some(true));
}

#[test]
fn rules_on_disk_take_the_place_of_those_of_the_commit() {
    let repo = TestRepo::new(FILES);
    repo.write(".gitattributes", "*.txt linguist-vendored\n");
    repo.write("new/.codescoutignore", "*\n");
    repo.remove("sub/.gitattributes");
    let repository = open(&repo);
    let found = repository
        .work_tree_changes(1000, &mut KnownFiles::default(), &AtomicBool::new(false))
        .unwrap();
    let committed = Attributes::for_tree(&mut repository.reader(), found.tree.unwrap()).unwrap();
    let mut matcher = committed
        .with_changes(&found, &mut repository.work_tree_reader().unwrap())
        .matcher();
    let mut of = |path| matcher.of(&RepoPath::from(path));
    assert_eq!(of("a.txt").vendored, Some(true));
    assert_eq!(of("a.min.js").generated, None);
    assert!(of("new/x").is_ignored && !of("old/x").is_ignored);
    assert_eq!(of("sub/a.pb.go").generated, None);
    assert_eq!(of("sub/deep/special.pb.go").generated, Some(true));
}

#[test]
fn missing_and_oversized_rules_are_named() {
    let repo = TestRepo::new(FILES);
    repo.write("big/.gitattributes", "# long\n".repeat(200_000));
    repo.commit("big");
    let attributes = Attributes::for_tree(&mut open(&repo).reader(), tree_of(&repo, "HEAD")).unwrap();
    assert_eq!(attributes.unread(), [RepoPath::from("big/.gitattributes")]);
    repo.git(["config", "uploadpack.allowFilter", "true"]);
    let partial = repo.clone_with("partial", &["--filter=blob:none", "--no-checkout"]);
    let attributes = Attributes::for_tree(&mut open(&partial).reader(), tree_of(&repo, "HEAD")).unwrap();
    assert_eq!(attributes.unread().len(), 4);
}

#[test]
fn files_already_at_hand_give_the_same_rules() {
    let repo = TestRepo::new(FILES);
    let repository = open(&repo);
    let files = tree_files(&repository, tree_of(&repo, "HEAD"));
    let mut matcher = Attributes::for_files(&mut repository.reader(), &files)
        .unwrap()
        .matcher();
    assert_eq!(matcher.of(&RepoPath::from("a.min.js")).generated, Some(true));
}
