//! Tests `memory`: notes are files, and say what became of the definitions that they are about.

use std::thread;

use serde_json::Value;

use crate::cli::{Called, call_in};
use crate::support::TestRepo;

const CODE: &str = "def parse(text):\n    words = text.split()\n    return [word.lower() for word in words if word]\n\n\nclass Item:\n    def price(self):\n        return 1\n";

fn run(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), args, b"")
}

fn notes(repo: &TestRepo, args: &[&str]) -> Value {
    let called = run(repo, args);
    serde_json::from_slice(&called.stdout).unwrap_or_else(|_| panic!("{}", called.stderr))
}

fn project() -> TestRepo {
    let repo = TestRepo::empty();
    repo.write("src/a.py", CODE);
    repo.commit("one");
    repo
}

fn write(repo: &TestRepo, name: &str, about: &str) -> Called {
    run(
        repo,
        &[
            "memory",
            "write",
            name,
            "--about",
            about,
            "--text",
            "# Why\n\nSee `Item.price`.",
        ],
    )
}

#[test]
fn a_note_is_a_file_and_follows_its_definition() {
    let repo = project();
    let written = write(&repo, "parser/words", "parse");
    assert_eq!((written.code, written.text().as_str()), (0, "parser/words: Why\n"));
    assert!(written.stderr.contains("src/a.py#Item.price"), "{}", written.stderr);
    let file = String::from_utf8(repo.read(".agents/notes/parser/words.md")).unwrap();
    assert!(file.starts_with("---\nabout:\n  - id: \"src/a.py#parse\"\n"), "{file}");
    assert!(file.ends_with("---\n# Why\n\nSee `Item.price`.\n"), "{file}");
    repo.commit("note");
    repo.rename("src/a.py", "src/b.py");
    let moved = repo.commit("move");
    let answer = notes(&repo, &["memory", "--json"]);
    let anchor = &answer["results"][0]["about"][0];
    assert_eq!(
        (&anchor["verdict"], &anchor["now"]),
        (&"moved".into(), &"src/b.py#parse".into())
    );
    assert_eq!(anchor["commits"][0]["commit"], moved);
    // At the revision of the note, nothing has moved.
    let answer = notes(&repo, &["memory", "--ref", "HEAD~1", "--json"]);
    assert_eq!(answer["results"][0]["verdict"], "fresh");
    assert_eq!(run(&repo, &["memory", "mend"]).code, 0);
    let answer = notes(&repo, &["memory", "read", "parser/words", "--json"]);
    assert_eq!(answer["results"][0]["verdict"], "fresh");
    assert_eq!(answer["results"][0]["text"], "# Why\n\nSee `Item.price`.\n");
    // An uncommitted edit and an uncommitted deletion.
    repo.write("src/b.py", CODE.replace("text.split()", "text.split(',')"));
    let answer = notes(&repo, &["memory", "--json"]);
    let anchor = &answer["results"][0]["about"][0];
    assert_eq!(
        (&anchor["verdict"], &anchor["uncommitted"]),
        (&"changed".into(), &true.into())
    );
    repo.write("src/b.py", "x = 1\n");
    assert_eq!(notes(&repo, &["memory", "--json"])["results"][0]["verdict"], "gone");
    assert_eq!(run(&repo, &["memory", "forget", "parser/words"]).code, 0);
    assert!(!repo.path(".agents").exists());
    assert_eq!(run(&repo, &["memory"]).code, 1);
}

#[test]
fn private_notes_are_no_files_of_the_repository() {
    let repo = project();
    let args = [
        "memory",
        "write",
        "own",
        "--about",
        "Item.price",
        "--text",
        "mine",
        "--private",
    ];
    assert_eq!(run(&repo, &args).code, 0);
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    let answer = notes(&repo, &["memory", "--json"]);
    assert_eq!(
        (&answer["results"][0]["path"], &answer["results"][0]["verdict"]),
        (&Value::Null, &"fresh".into())
    );
    assert_eq!(run(&repo, &["verify"]).code, 0);
    assert_eq!(run(&repo, &["memory", "forget", "own"]).code, 0);
    assert_eq!(run(&repo, &["memory", "forget", "own"]).code, 2);
}

#[test]
fn a_private_note_that_was_damaged_is_reported_and_kept() {
    let repo = project();
    let path = repo.path(".codescout/memories/team/own.md");
    let write = |text: &str| {
        let args = [
            "memory",
            "write",
            "team/own",
            "--private",
            "--about",
            "Item.price",
            "--text",
            text,
        ];
        run(&repo, &args).expect(0);
    };
    write("first");
    write("# Second");
    let good = std::fs::read(&path).unwrap();
    assert!(good.ends_with(b"---\n# Second\n"), "plain text");
    let is_damaged = |what: &str| {
        let verified = notes(&repo, &["verify", "--json"]);
        let found = &verified["results"][0]["file"];
        assert_eq!(
            (&verified["health"], found),
            (&"damaged".into(), &"memories/team/own.md".into()),
            "{what}: {verified}"
        );
        assert!(
            verified["hint"].to_string().contains("codescout memory"),
            "{what}: {verified}"
        );
    };
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&path, bad).unwrap();
        is_damaged(&format!("byte {at}"));
    }
    for end in [0, 1, good.len() / 2, good.len() - 1] {
        std::fs::write(&path, &good[..end]).unwrap();
        is_damaged(&format!("cut at {end}"));
    }
    std::fs::remove_file(&path).unwrap();
    is_damaged("removed");

    // A person edits it.
    let edited = [&good[..], b"By hand.\n"].concat();
    std::fs::write(&path, &edited).unwrap();
    let listed = run(&repo, &["memory"]).text();
    assert!(listed.contains("not what codescout wrote"), "{listed}");
    assert_eq!(
        notes(&repo, &["memory", "read", "team/own", "--json"])["results"][0]["changed_outside"],
        true
    );
    // Nothing replaces the only copy, or makes it valid, except writing it.
    repo.rename("src/a.py", "src/b.py");
    repo.commit("move");
    run(&repo, &["memory", "mend"]).expect(0);
    let repaired = run(&repo, &["verify", "--repair"]).expect(2);
    assert!(
        repaired.text().contains("memories/team/own.md: read it"),
        "{}",
        repaired.text()
    );
    assert_eq!(std::fs::read(&path).unwrap(), edited);
    is_damaged("edited");
    write("By hand.");
    run(&repo, &["verify"]).expect(0);
    // A note of an earlier build has no checksum.
    std::fs::remove_file(repo.path(".codescout/memories/team/own.md.sum")).unwrap();
    std::fs::write(&path, "old").unwrap();
    run(&repo, &["verify"]).expect(0);
    run(&repo, &["memory", "forget", "team/own"]).expect(0);
    run(&repo, &["verify"]).expect(0);
}

#[test]
fn of_several_writers_of_a_private_note_one_succeeds() {
    let repo = project();
    let write = ["memory", "write", "own", "--private", "--json", "--text", "first"];
    let first = notes(&repo, &write);
    let blob = first["results"][0]["blob"]
        .as_str()
        .unwrap_or_else(|| panic!("{first}"));
    let root = repo.root();
    let codes: Vec<i32> = thread::scope(|scope| {
        let writers = ["a", "b", "c", "d"].map(|text| {
            scope.spawn(move || {
                let args = ["memory", "write", "own", "--private", "--text", text, "--expect", blob];
                call_in(root, &args, b"").code
            })
        });
        writers.map(|writer| writer.join().unwrap()).to_vec()
    });
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    // A pipe is not read.
    let pipe = root.join(".codescout/memories/pipe.md");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let refused = run(&repo, &["memory", "write", "pipe", "--private", "--text", "x"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("not a regular file"), "{}", refused.stderr);
}

#[test]
fn bad_notes_and_names_are_reported() {
    let repo = project();
    repo.write("src/b.py", CODE);
    repo.commit("twice");
    for (args, problem) in [
        (
            &["memory", "write", "../x", "--text", "t"][..],
            "not the name of a note",
        ),
        (&["memory", "write", ".git/x", "--text", "t"], "not the name of a note"),
        (&["memory", "write", "x.md", "--text", "t"], "not the name of a note"),
        (&["memory", "write", "x", "--text", " "], "a note needs a text"),
        (&["memory", "write", "x", "--text", "---\nabout:\n"], "no end"),
        (
            &["memory", "write", "x", "--about", "parse", "--text", "t"],
            "codescout memory write x --about src/a.py#parse; others: src/b.py#parse",
        ),
        (
            &["memory", "write", "x", "--about", "absent", "--text", "t"],
            "no definition named \"absent\"",
        ),
        (
            &["memory", "write", "x", "--text", "t", "--ref", "HEAD"],
            "only notes of the worktree",
        ),
        (&["memory", "read", "absent"], "no note is named absent"),
        (&["memory", "list", "--text", "t"], "for write only"),
    ] {
        let called = run(&repo, args);
        assert_eq!(called.code, 2, "{args:?}: {}", called.text());
        assert!(called.stderr.contains(problem), "{args:?}: {}", called.stderr);
    }
    assert!(!repo.path(".agents").exists());
    assert_eq!(run(&repo, &["memory", "write", "y", "--text", "t"]).code, 0);
    let other = ["memory", "write", "y", "--text", "u", "--expect", "0123456789ab"];
    let refused = run(&repo, &other).stderr;
    assert!(refused.contains("pass its new blob with --expect"), "{refused}");
    assert_eq!(run(&repo, &["memory", "forget", "y"]).code, 0);
    // A file that people broke is listed with the reason.
    repo.write(".agents/notes/broken.md", "---\nabout:\n  - [x]\n---\ntext\n");
    repo.write(
        ".agents/notes/hand.md",
        "---\nkind: decision\nabout:\n- src/a.py#parse\n- src/a.py#absent\n---\ntext\n",
    );
    let found = notes(&repo, &["memory", "--json"]);
    assert_eq!(found["results"][0]["problem"], "invalid line in about: - [x]");
    let verdicts: Vec<&Value> = (0..2).map(|at| &found["results"][1]["about"][at]["verdict"]).collect();
    assert_eq!(verdicts, ["unknown", "unknown"]);
    // Writing it again completes the anchors, and keeps the other lines.
    let text = "---\nkind: decision\nabout:\n- src/a.py#parse\n---\ntext\n";
    assert_eq!(run(&repo, &["memory", "write", "hand", "--text", text]).code, 0);
    let answer = notes(&repo, &["memory", "read", "hand", "--json"]);
    assert_eq!(answer["results"][0]["verdict"], "fresh");
    let file = String::from_utf8(repo.read(".agents/notes/hand.md")).unwrap();
    assert!(file.starts_with("---\nkind: decision\nabout:\n"), "{file}");
}

#[test]
fn answers_about_a_definition_say_that_a_note_no_longer_holds() {
    let repo = project();
    write(&repo, "parser/words", "parse");
    repo.commit("note");
    let remark = "note parser/words no longer holds: its definition src/a.py#parse was changed in ";
    for args in [["symbol", "parse"], ["read", "src/a.py#parse"]] {
        let called = run(&repo, &args);
        assert!(!called.stderr.contains("no longer holds"), "{}", called.stderr);
    }
    repo.rename("src/a.py", "src/b.py");
    let moved = repo.commit("move");
    assert_eq!(run(&repo, &["memory"]).code, 0);
    let called = run(&repo, &["symbol", "parse"]);
    let remark_on_move = format!("definition src/a.py#parse was moved in {}", &moved[..10]);
    assert!(called.stderr.contains(&remark_on_move), "{}", called.stderr);
    repo.rename("src/b.py", "src/a.py");
    repo.commit("move back");
    repo.write("src/a.py", CODE.replace("text.split()", "text.split(',')"));
    let changed = repo.commit("split at commas");
    for args in [["symbol", "parse"], ["read", "src/a.py#parse"]] {
        assert_eq!(run(&repo, &["memory"]).code, 0);
        let called = run(&repo, &args);
        let remark = format!("{remark}{}\n", &changed[..10]);
        assert!(called.stderr.contains(&remark), "{}", called.stderr);
    }
}

#[test]
fn a_private_note_is_not_written_through_a_link() {
    let repo = project();
    let outside = repo.beside("outside");
    std::fs::create_dir_all(outside.join("deep")).unwrap();
    let args = ["memory", "write", "team/deep/x", "--private", "--text", "a"];
    run(&repo, &["memory", "write", "first", "--private", "--text", "a"]).expect(0);
    repo.symlink(&outside, ".codescout/memories/team");
    for name in ["team/x", "team/deep/x"] {
        let said = run(&repo, &["memory", "write", name, "--private", "--text", "a"])
            .expect(2)
            .stderr;
        assert!(said.contains("is a symbolic link"), "{said}");
    }
    assert_eq!(std::fs::read_dir(outside.join("deep")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    std::fs::remove_file(repo.path(".codescout/memories/team")).unwrap();
    run(&repo, &args).expect(0);
}

#[test]
fn a_note_whose_path_git_cannot_open_is_refused() {
    let repo = project();
    for name in ["a/".repeat(3_000) + "b", "a".repeat(300)] {
        run(&repo, &["memory", "write", &name, "--text", "a"]).expect(2);
    }
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}
