//! Tests the location of the sidecar and files in its place that are rejected: nothing that came with a repository is
//! trusted, nothing is written through a link, and losing the sidecar costs only time.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use codescout::git::Repository;
use codescout::query::Mode;
use codescout::session::Workspace;
use codescout::sidecar::{Location, OpenError, Sidecar};

use crate::cli::call;
use crate::indexed::{Indexed, files_below, skip};
use crate::support::{InTime, TestRepo};

const FIXTURE: &str = "
    //- src/packet.rs
    pub fn parse_header(bytes: &[u8]) -> Option<u8> {
        bytes.first().copied()
    }
    //- README.md
    # Packets
";

fn try_open(root: &Path) -> anyhow::Result<Indexed> {
    Ok(Indexed {
        workspace: Arc::new(Workspace::open(root, &Default::default())?),
    })
}

/// Checks that every command is refused with a reason and a hint, and changes nothing.
#[track_caller]
fn assert_refused(repo: &TestRepo, why: &str) {
    let before = files_below(repo.root());
    for args in [
        &["search", "header"][..],
        &["grep", "header", "--ref", "HEAD"],
        &["index"],
        &["status"],
        &["verify", "--repair"],
        &["config", "set", "search.limit", "3"],
    ] {
        let called = call(repo, args).expect(2);
        assert!(called.stderr.contains(why), "{args:?}: {}", called.stderr);
        assert!(called.stderr.contains("hint: "), "{args:?}: {}", called.stderr);
        assert!(
            called.stderr.contains("CODESCOUT_SIDECAR"),
            "{args:?}: {}",
            called.stderr
        );
    }
    assert!(files_below(repo.root()) == before, "something was changed");
}

#[test]
fn what_the_repository_tracks_there_is_refused() {
    let file = TestRepo::new(FIXTURE);
    file.write(".codescout/config.toml", "[embedding]\nmodel = \"/evil\"\n");
    file.commit("with settings");
    assert_refused(&file, "tracked");

    let whole = TestRepo::new(FIXTURE);
    Indexed::new(whole.root()).view("HEAD");
    whole.git(["add", "--force", "--all", "."]);
    whole.git(["add", "--force", ".codescout"]);
    fs::remove_file(whole.path(".codescout/.gitignore")).unwrap();
    whole.git(["add", "--force", ".codescout/state"]);
    assert_refused(&whole, "tracked");

    let link = TestRepo::new(FIXTURE);
    fs::create_dir(link.beside("outside")).unwrap();
    link.symlink("../outside", ".codescout");
    link.commit("with a link");
    assert_refused(&link, "tracked");
    assert_eq!(fs::read_dir(link.beside("outside")).unwrap().count(), 0);

    let submodule = TestRepo::new(FIXTURE);
    let commit = submodule.rev_parse("HEAD");
    submodule.git([
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{commit},.codescout"),
    ]);
    assert_refused(&submodule, "tracked");

    // Only in the index, or not on disk at all.
    let absent = TestRepo::new(FIXTURE);
    absent.write(".codescout/memories/a.md", "do as I say");
    absent.commit("with notes");
    fs::remove_dir_all(absent.path(".codescout")).unwrap();
    assert_refused(&absent, "tracked");
}

#[test]
fn a_name_that_only_looks_alike_is_no_matter() {
    let repo = TestRepo::new(FIXTURE);
    for path in [
        ".codescout.toml",
        ".codescoutignore",
        "sub/.codescout/x",
        ".codescou/x",
        "codescout/x",
    ] {
        repo.write(path, "");
    }
    repo.commit("alike");
    let index = Indexed::new(repo.root());
    assert!(!index.paths(&index.view("HEAD"), "header").is_empty());
}

#[test]
fn the_index_is_read_in_every_form_that_git_writes() {
    let forms: [&[&[&str]]; 6] = [
        &[&["update-index", "--index-version", "2"]],
        &[&["update-index", "--index-version", "3"]],
        &[&["update-index", "--index-version", "4"]],
        &[&["update-index", "--split-index"]],
        // A flag that requires index version 3.
        &[&["update-index", "--skip-worktree", ".codeclimate.yml"]],
        &[
            &["update-index", "--index-version", "4"],
            &["update-index", "--skip-worktree", ".codeclimate.yml"],
        ],
    ];
    for make in [TestRepo::new as fn(&str) -> TestRepo, TestRepo::sha256] {
        for form in forms {
            let repo = make(FIXTURE);
            for path in [
                ".a",
                ".codeclimate.yml",
                ".codescou",
                ".codescout-notes",
                ".codescoutignore",
                "zz",
            ] {
                repo.write(path, path);
            }
            repo.commit("neighbours");
            for arguments in form {
                repo.git(*arguments);
            }
            let opened = Repository::discover(repo.root()).unwrap();
            let tracks = |path: &str| opened.tracks(path.as_bytes()).unwrap();
            assert!(!tracks(".codescout"), "{form:?}");
            for path in repo.git(["ls-files"]).lines() {
                assert!(tracks(path), "{form:?}: {path}");
            }
            assert!(tracks("src") && !tracks("sr"), "{form:?}");
            repo.write(".codescout/deep/er", "x");
            repo.git(["add", "--force", ".codescout/deep/er"]);
            assert!(tracks(".codescout"), "{form:?}");
            repo.git(["rm", "--quiet", "--cached", "-r", ".codescout"]);
            // An old shared index file may still contain the entry.
            assert!(form[0].contains(&"--split-index") || !tracks(".codescout"), "{form:?}");
        }
    }
}

#[test]
fn what_is_not_ours_is_refused() {
    let link = TestRepo::new(FIXTURE);
    let outside = link.beside("outside");
    Sidecar::open_or_create(&outside).unwrap();
    let before = files_below(&outside);
    link.symlink(&outside, ".codescout");
    let error = try_open(link.root()).err().unwrap();
    assert!(format!("{error:#}").contains("symbolic link"), "{error:#}");
    assert!(files_below(&outside) == before);

    let inside = TestRepo::new(FIXTURE);
    Indexed::new(inside.root()).view("HEAD");
    fs::rename(inside.path(".codescout/dense-v1"), inside.beside("dense")).unwrap();
    symlink(inside.beside("dense"), inside.path(".codescout/dense-v1")).unwrap();
    let error = try_open(inside.root()).err().unwrap();
    assert!(format!("{error:#}").contains("symbolic link"), "{error:#}");

    // Another program with the same folder name.
    let other = TestRepo::new(FIXTURE);
    other.write(".git/info/exclude", "/.codescout\n");
    for (name, content) in [
        ("project.toml", "[project]\n"),
        ("usage.db", "SQLite"),
        ("call_edges.db", "SQLite"),
    ] {
        other.write(Path::new(".codescout").join(name), content);
    }
    assert_refused(&other, "not created by codescout");
}

#[test]
fn a_folder_of_another_user_is_refused_unless_the_repository_is_theirs() {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    let expected = index.answers(&index.view("HEAD"), &["parse_header"]);
    let sidecar = repo.path(".codescout");
    if std::os::unix::fs::chown(&sidecar, Some(12345), None).is_err() {
        skip("only the administrator can give a folder away");
        return;
    }
    let error = try_open(repo.root()).err().unwrap();
    assert!(
        format!("{error:#}").contains("belongs to another user (12345)"),
        "{error:#}"
    );
    let theirs = Location {
        root: sidecar.clone(),
        trusted_owner: Some(12345),
    };
    theirs.open().unwrap();
    assert!(matches!(
        Location::new(&sidecar).open(),
        Err(OpenError::OtherOwner { user: 12345, .. })
    ));

    // As in a CI job: another user owns the checkout, and git was configured to trust it. The sidecar may belong to
    // either user.
    std::os::unix::fs::chown(repo.path(".git"), Some(12345), None).unwrap();
    std::os::unix::fs::chown(repo.root(), Some(12345), None).unwrap();
    let home = repo.beside("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join(".gitconfig"), "[safe]\n\tdirectory = *\n").unwrap();
    for owner in [12345, fs::metadata(&home).unwrap().uid()] {
        std::os::unix::fs::chown(&sidecar, Some(owner), None).unwrap();
        let called = Command::new(env!("CARGO_BIN_EXE_codescout"))
            .args(["search", "parse_header"])
            .current_dir(repo.root())
            .env("HOME", &home)
            .output_in_time()
            .unwrap();
        assert!(called.status.success(), "{}", String::from_utf8_lossy(&called.stderr));
    }

    // A file of another user in a sidecar of the current user is treated as damaged.
    for path in [repo.path(".git"), repo.root().to_owned()] {
        std::os::unix::fs::chown(path, Some(fs::metadata(&home).unwrap().uid()), None).unwrap();
    }
    fs::write(sidecar.join("config.toml"), "[search]\nlimit = 7\n").unwrap();
    let limit = |owner| {
        std::os::unix::fs::chown(sidecar.join("config.toml"), Some(owner), None).unwrap();
        let called = crate::cli::call_in(repo.root(), &["config", "get", "search.limit"], b"");
        (
            called.text().trim() == "7",
            called.stderr.contains("belongs to another user"),
        )
    };
    assert_eq!(limit(fs::metadata(&home).unwrap().uid()), (true, false));
    assert_eq!(limit(12345), (false, true));
    fs::remove_file(sidecar.join("config.toml")).unwrap();
    for (path, _) in files_below(&sidecar) {
        if path.components().count() == 2 {
            std::os::unix::fs::chown(sidecar.join(&path), Some(12345), None).unwrap();
            let index = Indexed::new(repo.root());
            assert_eq!(
                index.answers(&index.view("HEAD"), &["parse_header"]),
                expected,
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn links_pipes_and_folders_in_place_of_files_do_no_harm() {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    let expected = index.answers(&index.view("HEAD"), &["parse_header"]);
    let sidecar = repo.path(".codescout");
    let kept = repo.beside("kept");
    fs::create_dir(&kept).unwrap();
    for store in ["artifacts-v1", "lexical-v1", "dense-v1", "snapshots-v1"] {
        for trick in ["link", "hard link", "pipe", "folder", "link to a device"] {
            // The sidecar is created again each time, because repaired files have other names.
            fs::remove_dir_all(&sidecar).unwrap();
            Indexed::new(repo.root()).view("HEAD");
            let [path]: [PathBuf; 1] = fs::read_dir(sidecar.join(store))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect::<Vec<_>>()
                .try_into()
                .unwrap();
            let outside = kept.join("outside");
            fs::rename(&path, &outside).unwrap();
            let bytes = fs::read(&outside).unwrap();
            match trick {
                "link" => symlink(&outside, &path).unwrap(),
                "hard link" => fs::hard_link(&outside, &path).unwrap(),
                "link to a device" => symlink("/dev/zero", &path).unwrap(),
                "folder" => fs::create_dir(&path).unwrap(),
                _ => assert!(Command::new("mkfifo").arg(&path).status_in_time().unwrap().success()),
            }
            let found = call(&repo, &["verify", "--repair"]);
            // A hard link to the same bytes is not damage, and index files are never written in place.
            assert_eq!(found.code, i32::from(trick != "hard link"), "{trick}: {}", found.text());
            let index = Indexed::new(repo.root());
            assert_eq!(
                index.answers(&index.view("HEAD"), &["parse_header"]),
                expected,
                "{trick}"
            );
            assert_eq!(fs::read(&outside).unwrap(), bytes, "{trick}");
            fs::remove_file(outside).unwrap();
        }
    }
}

#[test]
fn work_trees_share_one_store_and_submodules_have_their_own() {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    index.view("HEAD");
    let linked = repo.worktree("linked");
    let there = Indexed::new(linked.root());
    assert_eq!(there.workspace.storage.root(), repo.path(".codescout"));
    assert_eq!(there.ingested("HEAD").n_new_blobs, 0);
    assert!(!linked.path(".codescout").exists());
    for at in [&repo, &linked] {
        assert_eq!(at.git(["status", "--porcelain", "--ignored=no"]), "");
    }
    assert!(
        repo.git(["check-ignore", "-v", ".codescout/state"])
            .contains("info/exclude")
    );
    fs::write(repo.path(".git/info/exclude"), "").unwrap();
    assert!(
        repo.git(["check-ignore", "-v", ".codescout/state"])
            .contains(".codescout/.gitignore")
    );

    let bare = repo.bare_clone("bare");
    assert_eq!(Indexed::new(bare.root()).ingested("HEAD").n_new_blobs, 2);
    assert_eq!(
        Indexed::new(bare.root()).workspace.storage.root(),
        bare.path("codescout")
    );
    let of_bare = bare.worktree("of-bare");
    assert_eq!(
        Indexed::new(of_bare.root()).workspace.storage.root(),
        bare.path("codescout")
    );
    assert_eq!(Indexed::new(of_bare.root()).ingested("HEAD").n_new_blobs, 0);

    let parent = TestRepo::new("//- top.txt\ntop\n");
    parent.git(["submodule", "--quiet", "add", &repo.root().display().to_string(), "sub"]);
    parent.commit("with a submodule");
    let sub = Indexed::new(&parent.path("sub"));
    assert_eq!(sub.workspace.storage.root(), parent.path("sub/.codescout"));
    assert_eq!(sub.ingested("HEAD").n_new_blobs, 2);
    assert_eq!(parent.git(["status", "--porcelain"]), "");
}

#[test]
fn losing_or_moving_the_sidecar_costs_only_time() {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    let held = index.view("HEAD");
    let expected = index.answers(&held, &["parse_header"]);
    let losses: [(&str, &dyn Fn()); 3] = [
        ("clean", &|| {
            repo.git(["clean", "-fdxq"]);
        }),
        ("deleted", &|| fs::remove_dir_all(repo.path(".codescout")).unwrap()),
        ("emptied", &|| {
            for entry in fs::read_dir(repo.path(".codescout")).unwrap() {
                let path = entry.unwrap().path();
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }),
    ];
    for (what, lose) in losses {
        lose();
        // An open view remains valid, and the same process can create the next one.
        assert_eq!(
            index.answers(&held, &["parse_header"]),
            expected,
            "{what}: the view that is held"
        );
        assert_eq!(index.ingested("HEAD").n_new_blobs, 2, "{what}");
        assert_eq!(
            index.answers(&index.view("HEAD"), &["parse_header"]),
            expected,
            "{what}"
        );
    }
    let moved = repo.beside("moved");
    fs::rename(repo.root(), &moved).unwrap();
    assert_eq!(index.answers(&held, &["parse_header"]), expected);
    let there = Indexed::new(&moved);
    assert_eq!(there.ingested("HEAD").n_new_blobs, 0);
    let view = there.view("HEAD");
    assert!(!there.search(&view, Mode::Auto, "parse_header").is_empty());
    fs::rename(&moved, repo.root()).unwrap();
}

#[test]
fn the_exclude_file_keeps_its_mode() {
    let repo = TestRepo::new(FIXTURE);
    let exclude = repo.path(".git/info/exclude");
    let mode_of = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    repo.write(".git/info/exclude", "# mine\n");
    fs::set_permissions(&exclude, fs::Permissions::from_mode(0o664)).unwrap();
    call(&repo, &["index"]).expect(0);
    assert_eq!(fs::read_to_string(&exclude).unwrap(), "# mine\n/.codescout/\n");
    assert_eq!(mode_of(&exclude), 0o664);
    // New files have the same permissions as other files that the user creates.
    fs::write(repo.beside("usual"), "").unwrap();
    for name in [".codescout/FORMAT", ".codescout/state", ".codescout/.gitignore"] {
        assert_eq!(mode_of(&repo.path(name)), mode_of(&repo.beside("usual")), "{name}");
    }
}

#[test]
fn links_in_the_git_directory_are_not_written_through() {
    for link in ["info/exclude", "info", "codescout-hooks", "codescout-hooks/lock"] {
        let repo = TestRepo::new(FIXTURE);
        let outside = repo.beside("outside");
        let file = if link == "info" {
            outside.join("exclude")
        } else {
            outside.clone()
        };
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        if link == "codescout-hooks" {
            fs::create_dir(&file).unwrap();
        } else if link != "codescout-hooks/lock" {
            fs::write(&file, "# mine\n").unwrap();
        }
        let _ = fs::remove_dir_all(repo.path(".git/info"));
        repo.symlink(&outside, format!(".git/{link}"));
        call(&repo, &["index"]).expect(0);
        call(&repo, &["hooks", "run", "post-commit"]);
        assert!(repo.path(".git").join(link).is_symlink());
        match link {
            "codescout-hooks" => assert_eq!(fs::read_dir(&outside).unwrap().count(), 0),
            "codescout-hooks/lock" => assert!(!outside.exists()),
            _ => assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\n"),
        }
        // The folder of the index contains a .gitignore, too.
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{link}");
    }
}

#[test]
fn a_request_from_elsewhere_indexes_no_other_repository() {
    let (repo, other) = (TestRepo::new(FIXTURE), TestRepo::new(FIXTURE));
    let request = format!("post-commit\n{}", other.path(".git").display());
    repo.write(".git/codescout-hooks/request x", request);
    call(&repo, &["hooks", "run", "--worker", "post-commit"]).expect(0);
    assert!(!repo.path(".git/codescout-hooks/request x").exists());
    assert!(!other.path(".codescout").exists() && !other.path(".git/codescout-hooks").exists());
}
