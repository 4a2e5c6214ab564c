//! Real servers, where they are on PATH.

#![allow(clippy::print_stderr, reason = "messages of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use codescout::lsp::{AskError, Canary, KnownFile, Place, Question, References, running, servers};
use regex::Regex;

use super::Scene;

/// Returns true if the server is installed. Prints a message otherwise.
fn is_installed(scene: &Scene, name: &str) -> bool {
    let known = servers(&scene.search_path, None);
    let server = known.iter().find(|server| server.name == name).unwrap();
    if server.program.is_none() {
        eprintln!("skipped: {name} is not installed ({})", server.how_to_install);
    }
    server.program.is_some()
}

/// Writes the files, and asks for the references of `sought` and for the meaning of its first use. The first file
/// defines it and `known`, the second uses both.
fn check(name: &str, language: &str, files: &[(&str, &str)]) {
    let scene = Scene::new("--idle 5");
    if !is_installed(&scene, name) {
        return;
    }
    for (path, text) in files {
        scene.write(path, &text.replace("ROOT", scene.root.to_str().unwrap()));
    }
    let (defines, uses) = (files[0].0, files[1].0);
    let question = Question {
        root: scene.root.clone(),
        language: language.to_owned(),
        search_path: scene.search_path.clone(),
        files: files
            .iter()
            .map(|(path, text)| KnownFile {
                path: (*path).to_owned(),
                id: (*text).to_owned(),
            })
            .collect(),
        canaries: vec![Canary {
            site: scene.place(uses, "known", 0),
            definition: scene.place(defines, "known", 0),
        }],
        definitions: vec![scene.place(defines, "sought", 0), scene.place(defines, "unused", 0)],
        sites: vec![scene.place(uses, "sought", 0)],
        patience: super::PATIENCE,
    };
    let answer = scene.ask(&question);
    let answer = match answer {
        Err(AskError::Failed { reason, .. }) if reason.contains("version") || reason.contains("Unknown binary") => {
            eprintln!("skipped: {reason}");
            return;
        }
        answer => answer.unwrap(),
    };
    assert_eq!(answer.server, name);
    let expected = scene.place(uses, "sought", 0);
    assert!(answer.references[0].as_ref().unwrap().contains(&expected), "{answer:?}");
    assert_eq!(answer.references[1], Some(Vec::new()));
    assert_eq!(answer.definitions, [Some(vec![scene.place(defines, "sought", 0)])]);
}

#[test]
fn pyright_answers() {
    check(
        "pyright",
        "python",
        &[
            (
                "tools.py",
                "def known(): pass\ndef sought(): pass\ndef unused(): pass\n",
            ),
            ("use.py", "import tools\n'é𝄞'; tools.known(); tools.sought()\n"),
        ],
    );
}

#[test]
fn tsc_answers() {
    check(
        "tsc",
        "typescript",
        &[
            (
                "src/tools.ts",
                "export function known() {}\nexport function sought() {}\nexport function unused() {}\n",
            ),
            (
                "src/use.ts",
                "import * as t from './tools';\n'é𝄞'; t.known(); t.sought();\n",
            ),
            ("tsconfig.json", "{}"),
        ],
    );
}

#[test]
fn clangd_answers() {
    check(
        "clangd",
        "c",
        &[
            (
                "tools.h",
                "static void known(void) {}\nstatic void sought(void) {}\nstatic void unused(void) {}\n",
            ),
            (
                "use.c",
                "#include \"tools.h\"\nint main(void) { /* é𝄞 */ known(); sought(); }\n",
            ),
            (
                "compile_commands.json",
                r#"[{"directory": "ROOT", "file": "use.c", "arguments": ["cc", "-c", "use.c"]}]"#,
            ),
        ],
    );
}

#[test]
fn rust_analyzer_answers() {
    check(
        "rust-analyzer",
        "rust",
        &[
            (
                "src/tools.rs",
                "pub fn known() {}\npub fn sought() {}\npub fn unused() {}\n",
            ),
            (
                "src/lib.rs",
                "mod tools;\npub fn f() { \"é𝄞\"; tools::known(); tools::sought() }\n",
            ),
            (
                "Cargo.toml",
                "[package]\nname = 'example'\nversion = '0.1.0'\nedition = '2021'\n",
            ),
        ],
    );
}

/// Measures a server on the worktree that the variables `CODESCOUT_LSP_PROJECT` (a folder), `CODESCOUT_LSP_LANGUAGE` and
/// `CODESCOUT_LSP_PATTERNS` name: two regular expressions, one a line, for a definition and for a reference that is
/// certain. The name is the first group. Asks 1,000 questions from the start of the server, and compares each answer
/// with the last one.
#[test]
#[ignore = "needs a project and a server"]
fn no_answer_is_falsely_empty() {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(project), Some(language), Some(patterns)) = (
        variable("CODESCOUT_LSP_PROJECT"),
        variable("CODESCOUT_LSP_LANGUAGE"),
        variable("CODESCOUT_LSP_PATTERNS"),
    ) else {
        return eprintln!("skipped: no project is named");
    };
    let mut scene = Scene::new("--idle 5 --max-memory 4096");
    scene.root = PathBuf::from(project).canonicalize().unwrap();
    let (first, second) = patterns.split_once('\n').unwrap();
    let project = Project::read(&scene.root, &Regex::new(first).unwrap(), &Regex::new(second).unwrap());
    eprintln!(
        "{} files, {} definitions, {} certain references",
        project.files.len(),
        project.definitions.len(),
        project.canaries.len()
    );
    let question = |definitions: Vec<Place>, patience| Question {
        root: scene.root.clone(),
        language: language.clone(),
        search_path: scene.search_path.clone(),
        files: project.files.clone(),
        canaries: project.canaries.clone(),
        definitions,
        sites: Vec::new(),
        patience,
    };
    let began = Instant::now();
    let (mut given, mut ready_at): (BTreeMap<Place, Vec<References>>, _) = (BTreeMap::new(), None);
    let (mut states, mut n_not_ready, mut n_partial) = (BTreeMap::new(), 0, 0);
    for number in 0..1000 {
        let place = project.definitions[number % project.definitions.len()].clone();
        match scene.ask(&question(vec![place.clone()], Duration::from_millis(100))) {
            Ok(answer) => {
                ready_at.get_or_insert_with(|| began.elapsed());
                n_partial += usize::from(answer.is_partial);
                let found = answer.references.into_iter().next().unwrap();
                given.entry(place).or_default().push(found);
            }
            Err(AskError::NotReady { state, .. }) => {
                n_not_ready += 1;
                *states.entry(state).or_insert(0) += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    eprintln!(
        "{n_not_ready} not ready, {n_partial} partial, answers after {ready_at:?}, all after {:?}",
        began.elapsed()
    );
    eprintln!("{states:?}");
    let places: Vec<Place> = given.keys().cloned().collect();
    let last = scene.ask(&question(places.clone(), Duration::from_secs(600))).unwrap();
    assert!(!last.is_partial);
    eprintln!(
        "{} of {} unsaid in the end",
        last.references.iter().filter(|found| found.is_none()).count(),
        places.len()
    );
    let (mut n_answers, mut n_empty, mut n_unsaid, mut n_other, mut n_false) = (0, 0, 0, 0, 0);
    for (place, last) in places.iter().zip(&last.references) {
        for found in &given[place] {
            n_answers += 1;
            n_unsaid += usize::from(found.is_none());
            n_empty += usize::from(found.as_ref().is_some_and(Vec::is_empty));
            n_other += usize::from(found.is_some() && found != last);
            let is_false =
                found.as_ref().is_some_and(Vec::is_empty) && last.as_ref().is_some_and(|last| !last.is_empty());
            n_false += usize::from(is_false);
        }
    }
    let memory =
        running(&scene.broker).map(|servers| servers.iter().map(|server| server.memory >> 20).collect::<Vec<_>>());
    eprintln!(
        "{} {}: {n_answers} answers, {n_empty} empty, {n_unsaid} unsaid, {n_other} other than the last, {n_false} falsely \
         empty; memory {memory:?} MiB",
        last.server, last.version
    );
    assert_eq!(n_false, 0);
}

/// A worktree read with regular expressions.
struct Project {
    files: Vec<KnownFile>,
    definitions: Vec<Place>,
    canaries: Vec<Canary>,
}

impl Project {
    /// Only names that are defined once count.
    fn read(root: &Path, definition: &Regex, reference: &Regex) -> Self {
        let extensions = ["py", "ts", "rs", "c", "h", "php"];
        let mut texts = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
                let (path, name) = (entry.path(), entry.file_name());
                if entry.file_type().unwrap().is_dir() && name != ".git" && name != "node_modules" && name != "target" {
                    folders.push(path);
                } else if path
                    .extension()
                    .is_some_and(|e| extensions.iter().any(|known| e == *known))
                    && let Ok(text) = fs::read_to_string(&path)
                {
                    texts.push((path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), text));
                }
            }
        }
        texts.sort();
        let find = |pattern: &Regex| {
            let mut found: BTreeMap<String, Vec<Place>> = BTreeMap::new();
            for (path, text) in &texts {
                for name in pattern.captures_iter(text).map(|captures| captures.get(1).unwrap()) {
                    found.entry(name.as_str().to_owned()).or_default().push(Place {
                        path: path.clone(),
                        start: u32::try_from(name.start()).unwrap(),
                        end: u32::try_from(name.end()).unwrap(),
                    });
                }
            }
            found
        };
        let (mut defined, referred) = (find(definition), find(reference));
        defined.retain(|_, places| places.len() == 1);
        let canaries = referred.iter().filter_map(|(name, sites)| {
            let definition = defined.get(name)?[0].clone();
            let site = sites.iter().find(|site| site.path != definition.path)?.clone();
            Some(Canary { site, definition })
        });
        Self {
            canaries: canaries.take(50).collect(),
            definitions: defined.values().map(|places| places[0].clone()).take(200).collect(),
            files: texts
                .iter()
                .map(|(path, text)| KnownFile {
                    path: path.clone(),
                    id: text.len().to_string(),
                })
                .collect(),
        }
    }
}
