//! Tests limits: disk space, memory, file descriptors, line length, nesting depth, time.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use super::{check_sound, cut_off, history, program, stderr, succeed, temporaries, told_by};
use crate::indexed::{files_below, skip};
use crate::support::{InTime, TestRepo, is_long};

/// A small file system of a few megabytes, mounted at `folder` until dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(folder: &'a Path, size: &str) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder)
            .output_in_time();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(Self(folder))
    }

    /// Fills the file system except for `n_free` bytes and a margin of one page.
    fn fill(&self, n_free: usize) {
        let filler = self.0.join("filler");
        let mut size = 4096;
        let _ = fs::remove_file(&filler);
        let mut file = fs::File::create(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {
            size += 4096;
        }
        file.set_len((size as u64).saturating_sub(4096 + n_free as u64))
            .unwrap();
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status_in_time();
    }
}

#[test]
fn a_full_disk_leaves_the_old_snapshot_and_is_recovered_from() {
    let (repo, commits) = history(6);
    let disk_folder = repo.beside("disk");
    let Some(disk) = SmallDisk::mount(&disk_folder, "8m") else {
        skip("no file system can be mounted here");
        return;
    };
    let copy = disk_folder.join("repo");
    super::copy_of(repo.root(), &copy);
    succeed(&copy, &["index", &commits[2]]);
    let old = vec![commits[2].clone()];
    let all = vec![commits[5].clone(), commits[2].clone()];
    let expected_old = told_by(&copy, Some(repo.beside("sidecar")), &old);
    let expected_all = told_by(&copy, Some(repo.beside("sidecar")), &all);
    let mut n_refused = 0;
    for n_free in [0, 4096, 8192, 12288, 20480, 28672] {
        disk.fill(n_free);
        let update = program(&copy, &["index"]).output_in_time().unwrap();
        let text = stderr(&update);
        if update.status.success() {
            disk.free();
            break;
        }
        n_refused += 1;
        assert_eq!(update.status.code(), Some(2), "{text}");
        assert!(
            text.contains("No space left on device") && text.contains(".codescout"),
            "{text}"
        );
        assert_eq!(
            temporaries(&copy),
            Vec::<std::path::PathBuf>::new(),
            "{n_free} bytes free"
        );
        // Indexed files are served from disk and others from memory, and the answer has a note.
        assert!(told_by(&copy, None, &old) == expected_old, "{n_free} bytes free");
        let asked = succeed(&copy, &["--json", "--ref", &commits[5], "search", "packet"]);
        assert!(String::from_utf8_lossy(&asked.stdout).contains("in memory"));
        let asked = succeed(&copy, &["--json", "--ref", &commits[2], "search", "packet"]);
        assert!(!String::from_utf8_lossy(&asked.stdout).contains("in memory"));
        disk.free();
    }
    assert!(n_refused >= 2, "the disk was never full");
    check_sound(&copy, &all, &expected_all, "a disk that was full");
}

/// Runs the program with a limit on its address space.
fn with_memory(root: &Path, megabytes: usize, args: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        &format!("ulimit -v {}; ulimit -c 0; exec \"$0\" {args}", megabytes << 10),
    ]);
    shell.arg(env!("CARGO_BIN_EXE_codescout"));
    cut_off(&mut shell, root);
    shell.output_in_time().unwrap()
}

#[test]
fn with_little_memory_it_finishes_or_fails_plainly() {
    let (repo, commits) = history(4);
    for n in 0..20 {
        let line = |m: usize| format!("pub fn packet_{n}_{m}() -> usize {{\n    {m} + {n}\n}}\n");
        repo.write(format!("src/many{n}.rs"), (0..200).map(line).collect::<String>());
    }
    let revisions = vec![repo.commit("many"), commits[1].clone()];
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
    let mut n_failed = 0;
    let mut has_finished = false;
    // With less memory even the program itself cannot be loaded. Near the limit that depends on the address at which it
    // is loaded.
    let loads = |megabytes: usize| with_memory(repo.root(), megabytes, "--version").status.success();
    let fits = |megabytes: &usize| (0..5).all(|_| loads(*megabytes));
    let least = (64..1024).step_by(4).find(fits).unwrap();
    let more: &[usize] = if is_long() {
        &[4, 8, 16, 48, 120, 320, 1024]
    } else {
        &[4, 16, 1024]
    };
    for megabytes in more.iter().map(|more| least + more) {
        let output = with_memory(repo.root(), megabytes, "index");
        let (about, text) = (format!("{megabytes} MB"), stderr(&output));
        assert!(!text.contains("panicked"), "{about}: {text}");
        has_finished = output.status.success();
        n_failed += usize::from(!has_finished);
        assert!(has_finished || !text.is_empty(), "{about}: {:?}", output.status);
        check_sound(repo.root(), &revisions, &expected, &about);
        fs::remove_dir_all(repo.path(".codescout")).unwrap();
    }
    assert!(has_finished, "a gigabyte was not enough");
    assert!(n_failed > 0, "the limit has no effect");
}

/// Sets the modification time of everything below a folder.
fn set_times(folder: &Path, time: SystemTime) {
    for path in files_below(folder).into_keys() {
        let file = fs::File::options().append(true).open(folder.join(path)).unwrap();
        file.set_modified(time).unwrap();
    }
}

#[test]
fn clocks_that_jump_change_nothing() {
    let (repo, commits) = history(9);
    let revisions = vec![commits[8].clone(), commits[2].clone()];
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
    for commit in &commits[..7] {
        succeed(repo.root(), &["index", commit]);
    }
    let day = Duration::from_secs(86_400);
    let template = repo.beside("template");
    super::copy_of(repo.root(), &template);
    for (about, time) in [
        ("years ago", SystemTime::now() - 400 * day),
        ("years ahead", SystemTime::now() + 3650 * day),
        ("at the beginning", SystemTime::UNIX_EPOCH),
    ] {
        let copy = repo.beside("copy");
        super::copy_of(&template, &copy);
        set_times(&copy.join(".codescout"), time);
        let before: Vec<_> = named_by_state(&copy);
        // Merges segments, and removes unused files by age.
        succeed(&copy, &["index"]);
        assert!(told_by(&copy, None, &revisions) == expected, "{about}");
        set_times(&copy.join(".codescout"), time);
        let named = named_by_state(&copy);
        assert_ne!(named, before, "nothing was merged");
        assert!(
            named.iter().all(|name| copy.join(".codescout").join(name).exists()),
            "{about}"
        );
        check_sound(&copy, &revisions, &expected, about);
    }
    let faketime = Command::new("faketime").args(["-f", "+1y", "true"]).output_in_time();
    if !faketime.is_ok_and(|output| output.status.success()) {
        skip("no faketime: only the times of files were moved");
        return;
    }
    for shift in ["-400d", "+10y", "-1d"] {
        let copy = repo.beside("copy");
        super::copy_of(&template, &copy);
        let mut command = Command::new("faketime");
        command
            .args(["-f", shift])
            .arg(env!("CARGO_BIN_EXE_codescout"))
            .arg("index");
        cut_off(&mut command, &copy);
        assert!(command.status_in_time().unwrap().success());
        check_sound(&copy, &revisions, &expected, shift);
    }
}

fn named_by_state(root: &Path) -> Vec<String> {
    let sidecar = codescout::sidecar::Sidecar::open(&root.join(".codescout")).unwrap();
    let state = sidecar.state().unwrap().unwrap();
    let artifacts = state
        .segments
        .iter()
        .map(|segment| format!("artifacts-v1/{}", segment.artifacts.name));
    let lexical = state
        .segments
        .iter()
        .map(|segment| format!("lexical-v1/{}", segment.lexical.name));
    artifacts.chain(lexical).collect()
}

#[test]
fn an_edit_of_equal_size_and_time_is_seen() {
    let repo = TestRepo::new("//- a.rs\nfn alpha_one() {}\n");
    let path = repo.path("a.rs");
    succeed(repo.root(), &["search", "alpha_one"]);
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    for word in ["alpha_two", "alpha_six"] {
        fs::write(&path, format!("fn {word}() {{}}\n")).unwrap();
        fs::File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
        // The file is changed within the same timestamp as the index was written.
        fs::File::options()
            .append(true)
            .open(repo.path(".git/index"))
            .unwrap()
            .set_modified(time)
            .unwrap();
        let found = succeed(repo.root(), &["grep", "-l", word]);
        assert_eq!(String::from_utf8_lossy(&found.stdout).trim(), "a.rs", "{word}");
    }
}

/// Returns the peak memory of an index run in KiB, if a suitable `time` command exists.
fn peak_of_index(root: &Path, variables: &[(&str, &str)]) -> Option<u64> {
    let record = root.with_extension("peak");
    let mut command = Command::new("/usr/bin/time");
    command
        .args(["-f", "%M", "-o"])
        .arg(&record)
        .arg(env!("CARGO_BIN_EXE_codescout"))
        .args(["-q", "index"]);
    cut_off(&mut command, root);
    let output = command.envs(variables.iter().copied()).output_in_time().ok()?;
    assert!(output.status.success(), "{}", stderr(&output));
    fs::read_to_string(record).unwrap().trim().parse().ok()
}

/// Files of extreme size or structure, by name.
fn monsters() -> Vec<(&'static str, Vec<u8>)> {
    let deep = |open: &str, close: &str| [open.repeat(100_000), close.repeat(100_000)].concat().into_bytes();
    let lines = |n: usize| (0..n).map(|n| format!("x{n}\n")).collect::<String>().into_bytes();
    let symbols = (0..50_000)
        .map(|n| format!("fn s{n}(){{}}\n"))
        .collect::<String>()
        .into_bytes();
    vec![
        ("one_line.js", b"a=1;".repeat(5 << 20)),
        ("million_lines.txt", lines(1_000_000)),
        ("million_lines.rs", lines(1_000_000)),
        ("symbols.rs", symbols),
        ("deep.rs", deep("{", "}")),
        ("deep.json", deep("[", "]")),
        ("deep.py", deep("(", ")")),
        ("deep.js", deep("[", "]")),
        ("deep.c", deep("(", ")")),
        ("deep.html", deep("<b>", "</b>")),
        ("deep.md", deep("> ", "\n")),
        ("deep.yaml", deep("[", "]")),
        ("deep.hs", deep("(", ")")),
        ("deep.cpp", deep("<", ">")),
    ]
}

#[test]
fn files_beyond_measure_are_bounded() {
    let repo = TestRepo::new("//- src/small.rs\npub fn small_packet() {}\n");
    for (name, bytes) in monsters() {
        repo.write(format!("big/{name}"), bytes);
    }
    // Stored as a blob without zlib compression, which would take git's time.
    repo.git(["config", "core.compression", "0"]);
    repo.commit("monsters");
    // A sparse file of two gigabytes, only in the worktree.
    fs::File::create(repo.path("big/sparse.rs"))
        .unwrap()
        .set_len(2 << 30)
        .unwrap();
    let taken_in: &[(&str, &str)] = &[("CODESCOUT_MAX_BLOB_BYTES", "100000000")];
    // The second round also indexes files that the first one skips because of their size.
    let rounds: &[&[(&str, &str)]] = if is_long() { &[&[], taken_in] } else { &[&[]] };
    for &variables in rounds {
        let _ = fs::remove_dir_all(repo.path(".codescout"));
        match is_long().then(|| peak_of_index(repo.root(), variables)) {
            Some(Some(kib)) => assert!(kib < 1 << 20, "{variables:?}: {kib} KiB"),
            Some(None) => skip("no GNU time: the peak of memory is not known"),
            None => drop(succeed(repo.root(), &["-q", "index"])),
        }
        for call in [
            &["search", "small packet"][..],
            &["grep", "small_packet"],
            &["outline"],
            &["status"],
        ] {
            let output = program(repo.root(), call)
                .envs(variables.iter().copied())
                .output_in_time()
                .unwrap();
            assert!(output.status.success(), "{variables:?} {call:?}: {}", stderr(&output));
        }
    }
    let found = succeed(repo.root(), &["--ref", "HEAD", "grep", "-l", "x999999"]);
    assert!(String::from_utf8_lossy(&found.stdout).contains("million_lines.txt"));
}
