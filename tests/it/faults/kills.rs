//! Tests killing the program at random moments.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use codescout::sidecar::Sidecar;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::failpoints::{LOG, places_in};
use super::{Told, check_sound, cut_off, history, long_form, program, start, stderr, succeed, told_by};
use crate::indexed::{Dice, skip};
use crate::support::{InTime, TestRepo, kill};

const N_DEFAULT: usize = 9;
const N_TIMED: usize = 30;
const N_LONG: usize = 500;

/// Counts the outcomes of kills.
#[derive(Debug, Default)]
struct Tally {
    n_killed: usize,
    /// The run ended before it was killed.
    n_finished: usize,
    /// Published segments that were lost by a kill.
    n_lost_segments: usize,
}

/// Kills `n` index runs of `revisions`, both first runs and updates, and checks the result of each. `begin` starts a
/// run and returns it when it is to be killed.
fn kill_runs(
    root: &Path,
    revisions: &[String],
    expected: &Told,
    n: usize,
    mut begin: impl FnMut(Command) -> Child,
) -> Tally {
    let mut tally = Tally::default();
    let sidecar = root.join(".codescout");
    for round in 0..n {
        if round % 3 != 2 {
            let _ = std::fs::remove_dir_all(&sidecar);
        }
        if round % 3 == 1 {
            succeed(root, &["index", &revisions[1]]);
        }
        let before = n_segments(&sidecar);
        let mut child = begin(program(root, &["index", &revisions[0]]));
        let is_done = kill(&mut child).success();
        *(if is_done {
            &mut tally.n_finished
        } else {
            &mut tally.n_killed
        }) += 1;
        tally.n_lost_segments += before.saturating_sub(n_segments(&sidecar));
        check_sound(
            root,
            revisions,
            expected,
            &format!("kill {round} of {}", root.display()),
        );
    }
    tally
}

/// Waits for a random time, at most the duration of a first index run.
fn at_any_time<'a>(root: &Path, revision: &str, dice: &'a mut Dice) -> impl FnMut(Command) -> Child + use<'a> {
    let _ = std::fs::remove_dir_all(root.join(".codescout"));
    let started = Instant::now();
    succeed(root, &["index", revision]);
    let longest = started.elapsed().as_micros() as usize;
    move |command| {
        let child = start(command);
        std::thread::sleep(Duration::from_micros(dice.below(longest) as u64));
        child
    }
}

/// Stops runs at a random fail point of a first index run. An update that does not pass the point runs to its end.
fn at_any_place(root: &Path, revision: &str, mut dice: Dice) -> impl FnMut(Command) -> Child + use<> {
    let _ = std::fs::remove_dir_all(root.join(".codescout"));
    let logged = program(root, &["index", revision])
        .envs([LOG])
        .output_in_time()
        .unwrap();
    let places: Vec<String> = places_in(&stderr(&logged)).into_iter().collect();
    move |mut command| {
        command.env(
            "CODESCOUT_FAIL_AT",
            format!("{}=stop", places[dice.below(places.len())]),
        );
        let child = start(command);
        waitid(
            WaitId::Pid(Pid::from_child(&child)),
            WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT,
        )
        .unwrap();
        child
    }
}

fn n_segments(sidecar: &Path) -> usize {
    let state = Sidecar::open(sidecar).ok().and_then(|sidecar| sidecar.state().unwrap());
    state.map_or(0, |state| state.segments.len())
}

#[test]
fn killed_at_random_places_nothing_is_lost() {
    let (repo, revisions) = much_to_index();
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
    let begin = at_any_place(repo.root(), &revisions[0], Dice::new(11));
    let tally = kill_runs(repo.root(), &revisions, &expected, N_DEFAULT, begin);
    assert!(tally.n_killed >= N_DEFAULT / 3, "{tally:?}: hardly any kill met a run");
    assert_eq!(tally.n_lost_segments, 0, "{tally:?}");
}

#[test]
#[ignore = "sleeps for a share of the time that a run takes"]
fn killed_at_random_moments_nothing_is_lost() {
    let (repo, revisions) = much_to_index();
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
    let mut dice = Dice::new(11);
    let begin = at_any_time(repo.root(), &revisions[0], &mut dice);
    let tally = kill_runs(repo.root(), &revisions, &expected, N_TIMED, begin);
    assert!(tally.n_killed >= N_TIMED / 3, "{tally:?}: hardly any kill met a run");
    assert_eq!(tally.n_lost_segments, 0, "{tally:?}");
}

/// Creates a repository whose first revision takes a few hundred milliseconds to index.
fn much_to_index() -> (TestRepo, Vec<String>) {
    let (repo, commits) = history(5);
    for n in 0..60 {
        let line = |m: usize| {
            format!(
                "/// Handles packet {n} of group {m}.\npub fn packet_{n}_{m}(bytes: &[u8]) -> Option<u8> {{\n    bytes.get({m}).map(|byte| byte ^ {n})\n}}\n"
            )
        };
        repo.write(format!("src/many{n}.rs"), (0..40).map(line).collect::<String>());
    }
    let revisions = vec![repo.commit("many"), commits[2].clone()];
    (repo, revisions)
}

/// Long test with real repositories.
#[test]
#[expect(clippy::print_stderr, reason = "its figures stand in docs/evaluation.md")]
fn killed_at_random_moments_over_real_repositories() {
    let Some(clones) = long_form() else {
        skip("CODESCOUT_LONG_TESTS names no clones");
        return;
    };
    let mut dice = Dice::new(12);
    for clone in &clones {
        let scratch = TestRepo::new("//- a\na");
        let copy = scratch.beside("clone");
        let mut git = Command::new("git");
        cut_off(&mut git, scratch.root());
        let cloned = git
            .args(["clone", "--quiet", "--shared"])
            .args([clone, &copy])
            .output_in_time()
            .unwrap();
        assert!(cloned.status.success(), "{}", stderr(&cloned));
        let revision = |spec: &str| {
            let mut git = Command::new("git");
            cut_off(&mut git, &copy);
            let printed = git.args(["rev-parse", spec]).output_in_time().unwrap();
            String::from_utf8(printed.stdout).unwrap().trim().to_owned()
        };
        let revisions = vec![revision("HEAD"), revision("HEAD~30")];
        let expected = told_by(&copy, Some(scratch.beside("sidecar")), &revisions);
        let begin = at_any_time(&copy, &revisions[0], &mut dice);
        let tally = kill_runs(&copy, &revisions, &expected, N_LONG.div_ceil(clones.len()), begin);
        eprintln!("{}: {tally:?}, 0 corrupt, 0 wrong answers", clone.display());
        assert_eq!(tally.n_lost_segments, 0, "{tally:?}");
    }
}
