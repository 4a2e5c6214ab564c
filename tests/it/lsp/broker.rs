//! The broker with a fake server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use codescout::lsp::{AskError, ask, running};

use super::Scene;
use crate::support::wait_until;

#[test]
fn questions_are_answered() {
    for faults in ["", "utf8", "wrong_ids,asks_back", "fragments", "flood", "logs", "busy"] {
        let scene = Scene::with_fake(faults, "");
        let answer = scene
            .ask(&scene.question())
            .unwrap_or_else(|error| panic!("{faults}: {error}"));
        scene.assert_right(&answer);
        scene.assert_right(&scene.ask(&scene.question()).unwrap());
        assert_eq!(scene.n_noted("started"), 1, "{faults}");
    }
}

#[test]
fn a_server_that_is_late_never_answers_falsely() {
    let scene = Scene::with_fake("late", "");
    let mut question = scene.question();
    question.patience = Duration::from_millis(30);
    let mut n_answers = 0;
    for _ in 0..1000 {
        match scene.ask(&question) {
            Ok(answer) if answer.is_partial => {
                assert!(answer.references[0].as_ref().is_none_or(|found| found.len() == 3))
            }
            Ok(answer) => {
                scene.assert_right(&answer);
                n_answers += 1;
            }
            Err(AskError::NotReady { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(n_answers > 100, "{n_answers}");
    assert_eq!(scene.n_noted("started"), 1);
}
