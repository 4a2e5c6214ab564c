//! Tests language servers: the broker with a fake server, and with real ones where they are installed.

mod broker;
mod fake;
mod precise;
mod real;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use codescout::lsp::{Answer, AskError, BrokerPlace, Canary, KnownFile, Place, Question, ask};
use tempfile::TempDir;

use crate::support::{InTime, wait_until, write_executable};

const PROGRAM: &str = env!("CARGO_BIN_EXE_codescout");
const PATIENCE: Duration = Duration::from_secs(100);

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the Python files of a folder, sorted.
fn python_files(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    files.sort();
    files
}

/// A worktree with a broker of its own, which is ended when this is dropped.
struct Scene {
    folder: TempDir,
    root: PathBuf,
    broker: BrokerPlace,
    search_path: String,
}

impl Scene {
    /// Creates a worktree without files. `options` are passed to the broker.
    fn new(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The test may run in a folder with a link.
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("worktree");
        fs::create_dir(&root).unwrap();
        let program = base.join("program");
        write_executable(&program, &format!("#!/bin/sh\nexec {PROGRAM} \"$@\" {options}\n"));
        let broker = BrokerPlace {
            folder: base.join("broker"),
            program,
        };
        let search_path = format!("{}:{}", base.join("bin").display(), std::env::var("PATH").unwrap());
        Self {
            folder,
            root,
            broker,
            search_path,
        }
    }

    /// Creates a project for the fake server.
    fn with_fake(faults: &str, options: &str) -> Self {
        let scene = Self::new(options);
        let fake = format!(
            "#!/bin/sh\nexport {}='{faults}' {}='{}'\nexec '{}' --exact lsp::fake::serves_if_started_as_server --nocapture\n",
            fake::FAULTS,
            fake::NOTES,
            scene.notes().display(),
            std::env::current_exe().unwrap().display(),
        );
        fs::create_dir(scene.notes()).unwrap();
        write_executable(&scene.notes().with_file_name("bin").join("pyright-langserver"), &fake);
        scene.write(
            "tools.py",
            "def known(): pass\ndef sought(): pass\ndef unused(): pass\n",
        );
        scene.write(
            "use.py",
            "from tools import known, sought\n'é𝄞'; known(); sought()\nelsewhere()\n",
        );
        scene.write("more.py", "import tools\ntools.sought()\n");
        scene
    }

    fn notes(&self) -> PathBuf {
        self.root.with_file_name("notes")
    }

    /// Returns the number of lines of a note of the fake server.
    fn n_noted(&self, name: &str) -> usize {
        fs::read_to_string(self.notes().join(name)).map_or(0, |text| text.lines().count())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns the n-th occurrence of a word in a file, counted from 0.
    fn place(&self, path: &str, word: &str, n: usize) -> Place {
        let text = fs::read_to_string(self.root.join(path)).unwrap();
        let mut found = text
            .match_indices(word)
            .filter(|(at, _)| !text[..*at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part));
        let at = found.nth(n).unwrap().0;
        Place {
            path: path.to_owned(),
            start: u32::try_from(at).unwrap(),
            end: u32::try_from(at + word.len()).unwrap(),
        }
    }

    /// Returns a question about `sought`, `unused` and two references.
    fn question(&self) -> Question {
        let files = python_files(&self.root).into_iter().map(|path| KnownFile {
            id: fs::read_to_string(&path).unwrap(),
            path: path.file_name().unwrap().to_str().unwrap().to_owned(),
        });
        Question {
            root: self.root.clone(),
            language: "python".to_owned(),
            search_path: self.search_path.clone(),
            files: files.collect(),
            canaries: vec![Canary {
                site: self.place("use.py", "known", 0),
                definition: self.place("tools.py", "known", 0),
            }],
            definitions: vec![self.place("tools.py", "sought", 0), self.place("tools.py", "unused", 0)],
            sites: vec![self.place("use.py", "sought", 1), self.place("use.py", "elsewhere", 0)],
            patience: PATIENCE,
        }
    }

    fn ask(&self, question: &Question) -> Result<Answer, AskError> {
        ask(question, &self.broker, &AtomicBool::new(false), &mut |_| {})
    }

    /// Asserts that an answer to [`question`](Self::question) is right.
    #[track_caller]
    fn assert_right(&self, answer: &Answer) {
        let sought = vec![
            self.place("more.py", "sought", 0),
            self.place("use.py", "sought", 0),
            self.place("use.py", "sought", 1),
        ];
        assert_eq!(answer.references, [Some(sought), Some(Vec::new())]);
        assert_eq!(
            answer.definitions,
            [Some(vec![self.place("tools.py", "sought", 0)]), Some(Vec::new())]
        );
        assert_eq!(answer.is_outside, [false, true]);
        assert_eq!((&answer.server[..], &answer.version[..]), ("pyright", "1.2"));
        assert!(!answer.is_partial);
    }

    /// Returns the command lines of the processes that name the folder of this scene.
    fn processes(&self) -> Vec<String> {
        let output = Command::new("ps")
            .args(["-axww", "-o", "pid=,command="])
            .output_in_time()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let mine = self.folder.path().to_str().unwrap().to_owned();
        printed
            .lines()
            .filter(|line| line.contains(&mine))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the numbers of the processes of brokers.
    fn brokers(&self) -> Vec<String> {
        let lines = self
            .processes()
            .into_iter()
            .filter(|line| line.contains("broker --folder"));
        lines
            .map(|line| line.split_whitespace().next().unwrap().to_owned())
            .collect()
    }
}

/// Returns true if processes of the fake server run.
fn fake_runs(scene: &Scene) -> bool {
    let text = fs::read_to_string(scene.notes().join("started")).unwrap_or_default();
    text.lines().any(is_running)
}

/// Returns true for a process that has not ended.
fn is_running(id: &str) -> bool {
    let output = Command::new("ps")
        .args(["-o", "stat=", "-p", id])
        .output_in_time()
        .unwrap();
    let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

impl Drop for Scene {
    fn drop(&mut self) {
        for id in self.brokers() {
            // Fails if it has just ended.
            let _ = Command::new("kill").arg(id).status_in_time();
        }
        if !std::thread::panicking() {
            wait_until("the broker ends", || self.processes().is_empty());
        }
    }
}
