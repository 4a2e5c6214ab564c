//! Killed at any moment.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use codescout::sidecar::Sidecar;

use super::{Told, check_sound, cut_off, history, long_form, program, start, stderr, succeed, told_by};
use crate::indexed::{Dice, skip};
use crate::support::TestRepo;

const N_SHORT: usize = 30;
const N_LONG: usize = 500;

/// What a number of kills came to.
#[derive(Debug, Default)]
struct Tally {
    n_killed: usize,
    /// It was done before it was killed.
    n_finished: usize,
    /// Published segments that a kill took away.
    n_lost_segments: usize,
}

/// Kills indexing runs of `revisions` at random, `n` times, now the first index and now an update, and checks after each.
fn kill_at_random(root: &Path, revisions: &[String], expected: &Told, n: usize, dice: &mut Dice) -> Tally {
    let mut tally = Tally::default();
    let sidecar = root.join(".codescout");
    let longest = duration_of_index(root, &sidecar, &revisions[0]);
    for round in 0..n {
        if round % 3 != 2 {
            let _ = std::fs::remove_dir_all(&sidecar);
        }
        if round % 3 == 1 {
            succeed(root, &["index", &revisions[1]]);
        }
        let before = n_segments(&sidecar);
        let mut child = start(program(root, &["index", &revisions[0]]));
        std::thread::sleep(Duration::from_micros(dice.below(longest.as_micros() as usize) as u64));
        child.kill().unwrap();
        let is_done = child.wait().unwrap().success();
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

fn duration_of_index(root: &Path, sidecar: &Path, revision: &str) -> Duration {
    let _ = std::fs::remove_dir_all(sidecar);
    let started = Instant::now();
    succeed(root, &["index", revision]);
    started.elapsed()
}

fn n_segments(sidecar: &Path) -> usize {
    let state = Sidecar::open(sidecar).ok().and_then(|sidecar| sidecar.state().unwrap());
    state.map_or(0, |state| state.segments.len())
}

#[test]
fn killed_at_random_moments_nothing_is_lost() {
    let (repo, commits) = history(5);
    // Enough for a run of a few hundred milliseconds.
    for n in 0..60 {
        let line = |m: usize| {
            format!(
                "/// Handles packet {n} of group {m}.\npub fn packet_{n}_{m}(bytes: &[u8]) -> Option<u8> {{\n    bytes.get({m}).map(|byte| byte ^ {n})\n}}\n"
            )
        };
        repo.write(format!("src/many{n}.rs"), (0..40).map(line).collect::<String>());
    }
    let revisions = vec![repo.commit("many"), commits[2].clone()];
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
    let tally = kill_at_random(repo.root(), &revisions, &expected, N_SHORT, &mut Dice::new(11));
    assert!(tally.n_killed >= N_SHORT / 3, "{tally:?}: hardly any kill met a run");
    assert_eq!(tally.n_lost_segments, 0, "{tally:?}");
}

/// The long form over real repositories.
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
            .output()
            .unwrap();
        assert!(cloned.status.success(), "{}", stderr(&cloned));
        let revision = |spec: &str| {
            let mut git = Command::new("git");
            cut_off(&mut git, &copy);
            let printed = git.args(["rev-parse", spec]).output().unwrap();
            String::from_utf8(printed.stdout).unwrap().trim().to_owned()
        };
        let revisions = vec![revision("HEAD"), revision("HEAD~30")];
        let expected = told_by(&copy, Some(scratch.beside("sidecar")), &revisions);
        let tally = kill_at_random(&copy, &revisions, &expected, N_LONG.div_ceil(clones.len()), &mut dice);
        eprintln!("{}: {tally:?}, 0 corrupt, 0 wrong answers", clone.display());
        assert_eq!(tally.n_lost_segments, 0, "{tally:?}");
    }
}
