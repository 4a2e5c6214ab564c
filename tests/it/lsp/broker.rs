//! The broker with a fake server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use codescout::lsp::{Answer, AskError, ask, running, servers};

use super::{Scene, fake_runs, is_running};
use crate::support::{InTime, wait_until, write_executable};

/// Returns the reason of a failure.
#[track_caller]
fn reason(answer: Result<Answer, AskError>) -> String {
    match answer {
        Err(AskError::Failed { reason, .. }) => reason,
        other => panic!("no failure: {other:?}"),
    }
}

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

#[test]
fn eight_clients_share_one_broker_and_one_server() {
    let scene = Scene::with_fake("late", "");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| scene.assert_right(&scene.ask(&scene.question()).unwrap()));
        }
    });
    assert_eq!(scene.n_noted("started"), 1);
    assert_eq!(scene.brokers().len(), 1);
    let listed = running(&scene.broker).unwrap();
    assert_eq!(
        (listed.len(), &listed[0].root, &listed[0].state[..]),
        (1, &scene.root, "ready")
    );
    assert_eq!((&listed[0].server[..], &listed[0].language[..]), ("pyright", "python"));
}

#[test]
fn a_crash_costs_one_attempt() {
    let scene = Scene::with_fake("crash_once", "");
    scene.assert_right(&scene.ask(&scene.question()).unwrap());
    assert_eq!(scene.n_noted("started"), 2);
    // As if it had been killed between two questions.
    let id = fs::read_to_string(scene.notes().join("started")).unwrap();
    let id = id.lines().last().unwrap();
    assert!(
        Command::new("kill")
            .args(["-9", id])
            .status_in_time()
            .unwrap()
            .success()
    );
    wait_until("it has ended", || !is_running(id));
    scene.assert_right(&scene.ask(&scene.question()).unwrap());
    assert_eq!(scene.n_noted("started"), 3);
}

#[test]
fn a_server_that_always_crashes_is_not_started_a_fourth_time() {
    let scene = Scene::with_fake("crash_always", "");
    assert!(reason(scene.ask(&scene.question())).contains("the fake server"));
    for _ in 0..4 {
        scene.ask(&scene.question()).unwrap_err();
    }
    assert!(reason(scene.ask(&scene.question())).contains("failed 3 times in a row"));
    assert_eq!(scene.n_noted("started"), 3);
}

#[test]
fn a_server_that_asks_for_too_much_is_left() {
    let scene = Scene::with_fake("asks_much", "");
    assert!(reason(scene.ask(&scene.question())).contains("too many values"));
    let reply = fs::read_to_string(scene.notes().join("many")).unwrap();
    assert!(reply.contains("not supported"), "{}", &reply[..reply.len().min(100)]);
}

#[test]
fn nothing_runs_after_the_last_client() {
    for faults in ["", "stubborn"] {
        let scene = Scene::with_fake(faults, "--idle 1");
        scene.assert_right(&scene.ask(&scene.question()).unwrap());
        assert!(fake_runs(&scene));
        wait_until("all have ended", || scene.processes().is_empty() && !fake_runs(&scene));
        assert_eq!(running(&scene.broker), None);
        scene.assert_right(&scene.ask(&scene.question()).unwrap());
    }
}

#[test]
fn servers_that_are_idle_are_stopped() {
    let scene = Scene::with_fake("", "--server-idle 1");
    scene.assert_right(&scene.ask(&scene.question()).unwrap());
    wait_until("it has ended", || !fake_runs(&scene));
    wait_until("it is not listed", || running(&scene.broker) == Some(Vec::new()));
    scene.assert_right(&scene.ask(&scene.question()).unwrap());
}

#[test]
fn a_broker_that_is_killed_leaves_no_server() {
    let scene = Scene::with_fake("stubborn", "");
    scene.assert_right(&scene.ask(&scene.question()).unwrap());
    for id in scene.brokers() {
        assert!(
            Command::new("kill")
                .args(["-9", &id])
                .status_in_time()
                .unwrap()
                .success()
        );
    }
    wait_until("it has ended", || !fake_runs(&scene));
    // Its socket is left.
    scene.assert_right(&scene.ask(&scene.question()).unwrap());
}

#[test]
fn a_server_that_hangs_costs_no_more_than_patience() {
    let scene = Scene::with_fake("hang", "");
    let mut question = scene.question();
    question.patience = Duration::from_millis(300);
    let mut states = Vec::new();
    let answer = ask(&question, &scene.broker, &AtomicBool::new(false), &mut |state| {
        states.push(state.to_owned());
    });
    let Err(AskError::NotReady { server, state }) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(
        (&server[..], &state[..], &states[..]),
        ("pyright", "starting", &["starting".to_owned()][..])
    );
    let interrupt = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&scene.question(), &scene.broker, &interrupt, &mut |_| {}));
        thread::sleep(Duration::from_millis(300));
        interrupt.store(true, Ordering::Relaxed);
        let began = Instant::now();
        assert_eq!(asking.join().unwrap(), Err(AskError::Interrupted));
        assert!(began.elapsed() < Duration::from_secs(5));
    });
    // The question of the client that has gone does not keep others waiting.
    let answer = scene.ask(&question);
    assert!(
        matches!(&answer, Err(AskError::NotReady { state, .. }) if state == "starting"),
        "{answer:?}"
    );
}

#[test]
fn a_server_that_grows_is_killed() {
    let scene = Scene::with_fake("grows,late", "--max-memory 200");
    let mut question = scene.question();
    question.canaries[0].definition = scene.place("tools.py", "unused", 0);
    assert!(reason(scene.ask(&question)).contains("200 MiB are allowed"));
    assert_eq!(scene.n_noted("started"), 1);
}

#[test]
fn changed_files_are_sent() {
    let scene = Scene::with_fake("", "");
    scene.assert_right(&scene.ask(&scene.question()).unwrap());
    assert_eq!(scene.n_noted("edited"), 0);
    scene.write(
        "use.py",
        "\nfrom tools import known, sought\nsought(); sought()\nelsewhere()\n",
    );
    fs::remove_file(scene.root.join("more.py")).unwrap();
    scene.write("new.py", "from tools import sought\n");
    let answer = scene.ask(&scene.question()).unwrap();
    assert_eq!(answer.references[0].as_ref().unwrap().len(), 4);
    assert_eq!(scene.n_noted("edited"), 1);
    let changes = fs::read_to_string(scene.notes().join("changes")).unwrap();
    let kinds = ["more.py\",\"type\":3", "new.py\",\"type\":1", "use.py\",\"type\":2"];
    assert!(kinds.iter().all(|kind| changes.contains(kind)), "{changes}");
    assert!(!changes.contains("tools.py"), "{changes}");
}

#[test]
fn what_is_not_sure_is_not_said() {
    let scene = Scene::with_fake("", "");
    let mut question = scene.question();
    // No reference to it exists.
    let mut canary = question.canaries[0].clone();
    canary.definition = scene.place("tools.py", "unused", 0);
    question.canaries.push(canary.clone());
    let mut odd = scene.place("tools.py", "sought", 0);
    odd.end -= 1;
    question.definitions.push(odd.clone());
    odd.path = "../tools.py".to_owned();
    question.sites.push(odd);
    let answer = scene.ask(&question).unwrap();
    assert_eq!(answer.references[1..], [None, None]);
    assert_eq!(answer.definitions[2], None);
    assert_eq!(answer.is_outside, [false, true, false]);

    question.canaries = vec![canary];
    question.patience = Duration::from_secs(3);
    scene.assert_right(&scene.ask(&scene.question()).unwrap());
    let other = Scene::with_fake("", "");
    question.root.clone_from(&other.root);
    question.search_path.clone_from(&other.search_path);
    let answer = other.ask(&question);
    assert!(matches!(answer, Err(AskError::NotReady { .. })), "{answer:?}");
}

#[test]
fn programs_of_the_worktree_are_not_servers() {
    let scene = Scene::with_fake("", "");
    let mut question = scene.question();
    write_executable(&scene.root.join("bin/pyright-langserver"), "#!/bin/sh\ntouch started\n");
    let link = scene.root.with_file_name("link");
    std::os::unix::fs::symlink(scene.root.join("bin"), &link).unwrap();
    for path in [
        String::new(),
        "bin:.::".to_owned(),
        scene.root.join("bin").display().to_string(),
        link.display().to_string(),
    ] {
        question.search_path = path;
        let answer = scene.ask(&question);
        assert!(matches!(answer, Err(AskError::NotInstalled { .. })), "{answer:?}");
    }
    question.language = "cobol".to_owned();
    assert_eq!(scene.ask(&question), Err(AskError::NoServer("cobol".to_owned())));
    assert_eq!(running(&scene.broker), None, "no broker is needed for that");
    let known = servers(&scene.search_path, None);
    let pyright = known.iter().find(|server| server.name == "pyright").unwrap();
    assert!(pyright.program.as_ref().unwrap().ends_with("bin/pyright-langserver"));
}

#[test]
fn the_socket_is_private() {
    let scene = Scene::with_fake("", "");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    scene.assert_right(&scene.ask(&scene.question()).unwrap());
    assert_eq!(mode(&scene.broker.folder), 0o700);
    let entries = fs::read_dir(&scene.broker.folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let socket = entries
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "sock"));
    assert_eq!(mode(&socket.unwrap()), 0o600);
    fs::set_permissions(&scene.broker.folder, fs::Permissions::from_mode(0o755)).unwrap();
    let answer = scene.ask(&scene.question());
    assert!(matches!(answer, Err(AskError::Broker(_))), "{answer:?}");
}
