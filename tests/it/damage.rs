//! Tests a sidecar that is damaged, has another format or owner, or has no disk space. The next query returns the right
//! answer or an error, but never a panic or a wrong answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use codescout::config::Overrides;
use codescout::ingest::{Depth, Verification};
use codescout::query::Mode;
use codescout::sidecar::Sidecar;
use codescout::snapshot::View;

use crate::cli::call_in;
use crate::indexed::{Answer, Contents, Dice, Indexed, files_below};
use crate::support::{InTime, TestRepo};

const QUERIES: [&str; 2] = ["parse_header", "how is a broken packet handled"];
/// Number of single-bit flips in a default run, and in a run with `CODESCOUT_LONG_TESTS=1`.
const N_FLIPS: usize = 60;
const N_FLIPS_LONG: usize = 1000;

/// A repository with two segments and two manifests, with its undamaged sidecar and the expected answers.
struct Sound {
    repo: TestRepo,
    sidecar: PathBuf,
    expected: (Contents, Vec<Answer>),
}

impl Sound {
    fn new() -> Self {
        let repo = TestRepo::new(
            "
            //- src/packet.rs
            /// Reads the header; a broken packet is dropped.
            pub fn parse_header(bytes: &[u8]) -> Option<Header> {
                Header::read(bytes.get(..16)?)
            }
            //- src/lib.py
            class Packet:
                def handle(self):
                    self.drop_if_broken()
            //- README.md
            # Packets

            How they are handled.
            ",
        );
        let sidecar = repo.beside("sidecar");
        let index = Indexed::at(repo.root(), sidecar.clone());
        index.view("HEAD");
        repo.write(
            "src/more.go",
            "package more\n\nfunc ParseHeader(b []byte) error {\n\treturn broken(b)\n}\n",
        );
        repo.commit("second");
        let view = index.view("HEAD");
        let expected = (index.contents(&view), answers(&index, &view).unwrap());
        Self {
            repo,
            sidecar,
            expected,
        }
    }

    /// Copies the sidecar, so that the copy can be damaged.
    fn copy(&self, name: &str) -> PathBuf {
        let copy = self.repo.beside(name);
        for (path, bytes) in files_below(&self.sidecar) {
            let to = copy.join(path);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::write(to, bytes).unwrap();
        }
        copy
    }

    fn ask(&self, sidecar: &Path) -> Result<(Contents, Vec<Answer>)> {
        let overrides = Overrides {
            sidecar: Some(sidecar.to_owned()),
            ..Overrides::default()
        };
        let index = Indexed::with(self.repo.root(), overrides)?;
        let view = index.try_open("HEAD")?.view.clone();
        let answers = answers(&index, &view)?;
        Ok((index.contents(&view), answers))
    }

    /// Queries a damaged sidecar.
    fn check(&self, sidecar: &Path, what: &str) {
        match self.ask(sidecar) {
            Ok(answer) => assert!(answer == self.expected, "{what}: the answer is wrong"),
            Err(error) => panic!("{what}: {error:#}"),
        }
    }

    /// Queries a damaged sidecar twice. The second answer uses the files that the first query wrote.
    fn check_twice(&self, sidecar: &Path, what: &str) {
        self.check(sidecar, what);
        self.check(sidecar, &format!("{what}, asked again"));
    }

    /// Verifies a damaged sidecar.
    fn verify(&self, sidecar: &Path, depth: Depth) -> Verification {
        crate::verify::verify(&Indexed::at(self.repo.root(), sidecar.to_owned()), depth)
    }

    fn files(&self) -> Vec<PathBuf> {
        let files: Vec<PathBuf> = files_below(&self.sidecar).into_keys().collect();
        assert!(files.len() >= 10, "{files:?}");
        files
    }
}

fn answers(index: &Indexed, view: &View) -> Result<Vec<Answer>> {
    let asked = QUERIES
        .iter()
        .flat_map(|query| [Mode::Auto, Mode::Semantic, Mode::Keyword].map(|mode| (mode, query)));
    asked.map(|(mode, query)| index.answer(view, mode, query)).collect()
}

fn assert_says_what_to_do(error: &anyhow::Error, sidecar: &Path) {
    let text = format!("{error:#}");
    assert!(text.contains(&sidecar.display().to_string()), "{text}");
}

#[test]
fn a_file_that_was_cut_is_made_anew() {
    let sound = Sound::new();
    for path in sound.files() {
        let length = fs::metadata(sound.sidecar.join(&path)).unwrap().len();
        for cut in [0, 1, length / 2, length.saturating_sub(1)] {
            if cut >= length {
                continue;
            }
            let copy = sound.copy("cut");
            fs::OpenOptions::new()
                .write(true)
                .open(copy.join(&path))
                .unwrap()
                .set_len(cut)
                .unwrap();
            sound.check_twice(&copy, &format!("{} cut to {cut} of {length}", path.display()));
            fs::remove_dir_all(copy).unwrap();
        }
    }
}

#[test]
fn a_file_that_is_gone_is_made_anew() {
    let sound = Sound::new();
    for path in sound.files() {
        let copy = sound.copy("gone");
        fs::remove_file(copy.join(&path)).unwrap();
        assert!(
            sound.ask(&copy).unwrap() == sound.expected,
            "{} gone: the answer is wrong",
            path.display()
        );
        fs::remove_dir_all(copy).unwrap();
    }
    let folders: Vec<PathBuf> = fs::read_dir(&sound.sidecar)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() && fs::read_dir(path).unwrap().next().is_some())
        .collect();
    for folder in folders {
        let copy = sound.copy("gone");
        fs::remove_dir_all(copy.join(folder.file_name().unwrap())).unwrap();
        assert!(
            sound.ask(&copy).unwrap() == sound.expected,
            "{} gone: the answer is wrong",
            folder.display()
        );
        fs::remove_dir_all(copy).unwrap();
    }
}

#[test]
fn flipped_bits_are_noticed() {
    let sound = Sound::new();
    let files = sound.files();
    let is_long = crate::support::is_long();
    let n_flips = if is_long { N_FLIPS_LONG } else { N_FLIPS };
    // The lock contains no index data.
    let files: Vec<&PathBuf> = files.iter().filter(|path| !path.ends_with("lock")).collect();
    let mut dice = Dice::new(7);
    let mut n_found = [0; 2];
    for flip in 0..n_flips {
        let path = files[flip % files.len()];
        let copy = sound.copy("flipped");
        let mut bytes = fs::read(copy.join(path)).unwrap();
        let bit = dice.below(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(copy.join(path), bytes).unwrap();
        let what = format!("{}: bit {bit}", path.display());
        for (n_found, from_blobs) in n_found.iter_mut().zip([false, true]) {
            let depth = Depth {
                from_blobs,
                ..Depth::default()
            };
            let found = sound.verify(&copy, depth);
            let is_named = found.findings.iter().any(|finding| path.ends_with(&finding.name));
            assert!(is_named, "{what} was not found: {:?}", found.findings);
            *n_found += 1;
        }
        sound.check(&copy, &what);
        fs::remove_dir_all(copy).unwrap();
    }
    if is_long {
        crate::indexed::tell(&format!(
            "{n_flips} flips in {} files: verify found {}, verify --deep {}; changed answers 0, panics 0",
            files.len(),
            n_found[0],
            n_found[1]
        ));
    }
}

#[test]
fn files_that_changed_places_are_noticed() {
    let sound = Sound::new();
    let files = sound.files();
    for store in ["artifacts-v1", "lexical-v1", "dense-v1"] {
        let of_store: Vec<&PathBuf> = files.iter().filter(|path| path.starts_with(store)).collect();
        let [one, other] = of_store[..] else {
            panic!("{of_store:?}")
        };
        let copy = sound.copy("swapped");
        fs::rename(copy.join(one), copy.join("aside")).unwrap();
        fs::rename(copy.join(other), copy.join(one)).unwrap();
        fs::rename(copy.join("aside"), copy.join(other)).unwrap();
        sound.check_twice(&copy, &format!("files of {store} swapped"));
        fs::remove_dir_all(copy).unwrap();
    }
}

/// As when another process replaces batches of commits between two reads of the state.
#[test]
fn messages_of_another_batch_are_indexed_again() {
    let sound = Sound::new();
    let copy = sound.copy("swapped");
    let opened = Sidecar::open(&copy).unwrap();
    let mut state = opened.state().unwrap().unwrap();
    let [first, second] = &mut state.history[..] else {
        panic!("{:?}", state.history)
    };
    assert!(first.messages.is_some() && second.messages.is_some());
    std::mem::swap(&mut first.messages, &mut second.messages);
    let lock = opened.lock(std::time::Duration::ZERO).unwrap();
    opened.publish(&state, &lock).unwrap();
    drop(lock);
    assert!(!sound.verify(&copy, Depth::default()).findings.is_empty());
    sound.check_twice(&copy, "messages swapped");
    assert_eq!(sound.verify(&copy, Depth::default()).findings, []);
}

#[test]
fn what_others_made_is_refused_and_left_alone() {
    let sound = Sound::new();
    let newer = sound.copy("newer");
    fs::write(newer.join("FORMAT"), "codescout sidecar\nlayout 99\n").unwrap();
    let foreign = sound.repo.beside("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("project.json"), "{}").unwrap();
    let file = sound.repo.beside("file");
    fs::write(&file, "mine").unwrap();
    for folder in [&newer, &foreign] {
        let before = files_below(folder);
        let error = sound.ask(folder).err().unwrap();
        assert_says_what_to_do(&error, folder);
        assert!(files_below(folder) == before, "{} was changed", folder.display());
    }
    assert_says_what_to_do(&sound.ask(&file).err().unwrap(), &file);
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    #[cfg(unix)]
    {
        let link = sound.repo.beside("link");
        std::os::unix::fs::symlink(&sound.sidecar, &link).unwrap();
        assert_says_what_to_do(&sound.ask(&link).err().unwrap(), &link);
    }
}

#[test]
fn manifests_that_changed_places_are_noticed() {
    let sound = Sound::new();
    let copy = sound.copy("swapped");
    let snapshots: Vec<PathBuf> = files_below(&copy.join("snapshots-v1")).into_keys().collect();
    let path = |at: usize| copy.join("snapshots-v1").join(&snapshots[at]);
    fs::rename(path(0), copy.join("aside")).unwrap();
    fs::rename(path(1), path(0)).unwrap();
    fs::rename(copy.join("aside"), path(1)).unwrap();
    assert_eq!(sound.verify(&copy, Depth::default()).findings.len(), 2);
    sound.check_twice(&copy, "manifests swapped");
}

/// Changes format numbers by hand. A file that can be rebuilt is rebuilt.
/// Numbers of blobs are unique in an index. In copies of it that have been continued apart, one number means two blobs.
#[test]
fn indexes_that_were_one_are_not_mixed() {
    let repo = TestRepo::new("\n//- a.py\ndef one():\n    return 1\n");
    for (branch, file, name) in [("x", "b.py", "two_in_x"), ("y", "c.py", "three_in_y")] {
        repo.git(["switch", "--quiet", "--create", branch, "main"]);
        repo.write(file, format!("def {name}():\n    return 2\n"));
        repo.commit(branch);
    }
    repo.git(["switch", "--quiet", "main"]);
    let call = |args: &[&str]| call_in(repo.root(), args, b"");
    let copy = |from: &Path, to: &Path| {
        let copied = Command::new("cp").arg("-a").arg(from).arg(to).output_in_time().unwrap();
        assert!(copied.status.success());
    };
    let (sidecar, kept, of_x) = (repo.path(".codescout"), repo.beside("kept"), repo.beside("of-x"));
    let check = |what: &str| {
        let found = call(&["symbol", "two_in_x", "--ref", "x"]).expect(0).text();
        assert!(found.contains("b.py"), "{what}: {found}");
        call(&["symbol", "three_in_y", "--ref", "x"]).expect(1);
        call(&["symbol", "three_in_y", "--ref", "y"]).expect(0);
    };
    call(&["index", "main"]).expect(0);
    copy(&sidecar, &kept);
    call(&["index", "x"]).expect(0);
    fs::rename(&sidecar, &of_x).unwrap();
    copy(&kept, &sidecar);
    call(&["index", "y"]).expect(0);
    copy(&sidecar.join("."), &of_x);
    fs::remove_dir_all(&sidecar).unwrap();
    fs::rename(&of_x, &sidecar).unwrap();
    check("a copy over the index");
    fs::remove_dir_all(&sidecar).unwrap();
    copy(&kept, &sidecar);
    call(&["index", "x"]).expect(0);
    fs::copy(kept.join("state"), sidecar.join("state")).unwrap();
    call(&["index", "y"]).expect(0);
    check("an older state");
}

#[test]
fn headers_of_other_formats_are_refused_or_made_anew() {
    let sound = Sound::new();
    for path in sound.files().iter().filter(|path| path.components().count() == 2) {
        for number in [0u32, 9, 10, 4_000_000_000] {
            let copy = sound.copy("header");
            let mut bytes = fs::read(copy.join(path)).unwrap();
            bytes[4..8].copy_from_slice(&number.to_le_bytes());
            fs::write(copy.join(path), bytes).unwrap();
            let what = format!("{} with format {number}", path.display());
            assert!(!sound.verify(&copy, Depth::default()).is_sound(), "{what}");
            sound.check_twice(&copy, &what);
            assert!(sound.verify(&copy, Depth::default()).is_sound(), "{what}");
            fs::remove_dir_all(copy).unwrap();
        }
    }
    for layout in [0, 2, 3, 99] {
        let copy = sound.copy("layout");
        let text = format!("codescout sidecar\nlayout {layout}\n");
        fs::write(copy.join("FORMAT"), text).unwrap();
        let before = files_below(&copy);
        let error = sound.ask(&copy).err().unwrap();
        assert_says_what_to_do(&error, &copy);
        assert!(format!("{error:#}").contains(&format!("layout {layout}")), "{error:#}");
        assert!(files_below(&copy) == before, "layout {layout}: something was changed");
        fs::remove_dir_all(copy).unwrap();
    }
}

#[test]
fn damage_is_named_once_by_the_command_that_meets_it() {
    let sound = Sound::new();
    for path in sound
        .files()
        .iter()
        .filter(|path| !path.ends_with("lock") && !path.ends_with(".gitignore"))
    {
        let copy = sound.copy("named");
        let bytes = fs::read(copy.join(path)).unwrap();
        fs::write(copy.join(path), &bytes[..bytes.len() / 2]).unwrap();
        let called = |args: &[&str]| {
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_codescout"))
                .args(args)
                .current_dir(sound.repo.root())
                .env("CODESCOUT_SIDECAR", &copy)
                .env_remove("CODESCOUT_LOG")
                .output_in_time()
                .unwrap();
            assert!(output.status.success(), "{args:?}");
            String::from_utf8(output.stderr).unwrap()
        };
        let name = path.file_name().unwrap().to_str().unwrap();
        let refusal = called(&["search", "parse_header", "--ref", "HEAD"]);
        // The query does not read the manifest of the older tree.
        if name.ends_with(".snap") && refusal.is_empty() {
            continue;
        }
        assert_eq!(refusal.matches(name).count(), 1, "{}: {refusal}", path.display());
        assert_eq!(
            called(&["search", "parse_header", "--ref", "HEAD"])
                .matches(name)
                .count(),
            0
        );
        fs::remove_dir_all(copy).unwrap();
    }
}

#[test]
fn a_state_of_another_format_is_not_overwritten() {
    let sound = Sound::new();
    let copy = sound.copy("state");
    let mut state = fs::read(copy.join("state")).unwrap();
    state[4] = 200;
    fs::write(copy.join("state"), &state).unwrap();
    let error = sound.ask(&copy).err().unwrap();
    assert!(format!("{error:#}").contains("format 200"), "{error:#}");
    assert_eq!(fs::read(copy.join("state")).unwrap(), state);
}

#[test]
fn every_command_says_that_the_state_is_damaged_and_does_without() {
    let repo = TestRepo::new(
        "
        //- src/a.py
        def handle(packet):
            return packet.drop()
        //- docs/a.md
        # Handling

        See `handle` in `src/a.py`, and `absent_name`.
    ",
    );
    let bundle = repo.beside("bundle").display().to_string();
    let run = |args: &[&str]| crate::cli::call_in(repo.root(), args, b"");
    run(&["index", "--history"]).expect(0);
    run(&["export", &bundle, "--history"]).expect(0);
    let state = repo.path(".codescout/state");
    let good = fs::read(&state).unwrap();
    let cut_flipped_and_empty = [
        good[..good.len() / 2].to_vec(),
        [&good[..20], b"x", &good[21..]].concat(),
        Vec::new(),
    ];
    for (args, damaged) in [
        &["docs", "audit"][..],
        &["blame", "src/a.py"],
        &["blame", "src/a.py#handle"],
        &["history", "src/a.py"],
        &["history", "handle"],
        &["memory"],
        &["search", "--in", "commits", "first"],
        &["search", "handle"],
        &["graph", "callers", "handle"],
        &["symbol", "--history", "handle"],
        &["export", &bundle, "--history"],
        &["import", &bundle],
        &["index"],
        &["status"],
    ]
    .into_iter()
    .zip(cut_flipped_and_empty.iter().cycle())
    {
        fs::write(&state, damaged).unwrap();
        let called = run(args);
        assert!(matches!(called.code, 0 | 1), "{args:?}: {}", called.stderr);
        let said = format!("{}{}", called.stderr, called.text());
        assert!(said.contains("damaged"), "{args:?}: {said}");
        assert!(!said.contains("cannot be written"), "{args:?}: {said}");
        let is_renewed = args[0] != "status";
        assert_eq!(run(&["verify"]).code, i32::from(!is_renewed), "{args:?}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_survived() {
    use std::process::Command;

    let sound = Sound::new();
    let disk = sound.repo.beside("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .output_in_time();
    if !mounted.is_ok_and(|output| output.status.success()) {
        crate::indexed::skip("no file system can be mounted here");
        return;
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // The disk is too small for the first segment, then for the other files. Each attempt leaves only a partial
        // index.
        for n_free in [0usize, 4, 8, 16, 32, 48] {
            let sidecar = disk.join(format!("sidecar{n_free}"));
            let filler = disk.join("filler");
            fs::write(&filler, vec![1; (64 - 4 - n_free).saturating_mul(1 << 10)]).unwrap();
            let answer = sound.ask(&sidecar).unwrap();
            assert!(answer == sound.expected, "{n_free} KiB free: the answer is wrong");
            fs::remove_file(filler).unwrap();
            let _ = fs::remove_dir_all(sidecar);
        }
    }));
    let unmounted = Command::new("umount").arg(&disk).status_in_time().unwrap();
    assert!(unmounted.success());
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}
