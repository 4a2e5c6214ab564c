//! Tests the traced history of definitions in generated repositories, for which every edit, rename and move is known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use codescout::git::Repository;
use codescout::history::{
    History, HistoryError, HistoryLimit, Reachable, SymbolBatch, SymbolChangeCache, SymbolHistory, SymbolKey,
    SymbolTracer, symbol_batch_bytes, symbol_recipe, trace,
};
use codescout::ingest::Recorder;
use codescout::model::{CommitId, Ctx, Oid, RepoPath};

use crate::cli::call_in;
use crate::indexed::StopAfter;
use crate::support::TestRepo;

/// A deterministic pseudorandom number generator (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    /// Identifies the function regardless of its name.
    identity: usize,
    name: String,
    parameters: Vec<String>,
    body: Vec<String>,
    doc: Option<String>,
    is_spread: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Rust,
    Python,
}

impl Dialect {
    fn ending(self) -> &'static str {
        match self {
            Self::Rust => "rs",
            Self::Python => "py",
        }
    }

    fn render(self, functions: &[Function]) -> String {
        let mut text = String::new();
        for function in functions {
            let parameters = function
                .parameters
                .join(if function.is_spread { ",\n    " } else { ", " });
            let name = &function.name;
            match self {
                Self::Rust => {
                    if let Some(doc) = &function.doc {
                        writeln!(text, "/// {doc}").unwrap();
                    }
                    writeln!(text, "pub fn {name}({parameters}) {{").unwrap();
                    for line in &function.body {
                        if function.is_spread {
                            writeln!(text, "    // {} words", line.len()).unwrap();
                        }
                        writeln!(text, "    {line};").unwrap();
                    }
                    writeln!(text, "}}\n").unwrap();
                }
                Self::Python => {
                    writeln!(text, "def {name}({parameters}):").unwrap();
                    if let Some(doc) = &function.doc {
                        writeln!(text, "    \"\"\"{doc}\"\"\"").unwrap();
                    }
                    for line in &function.body {
                        if function.is_spread {
                            writeln!(text, "    # {} words", line.len()).unwrap();
                        }
                        writeln!(text, "    {line}").unwrap();
                    }
                    writeln!(text, "\n").unwrap();
                }
            }
        }
        text
    }
}

/// The events of each function, the latest last: the commit, the previous location if it changed, and the kinds of
/// changes.
type Truth = BTreeMap<usize, Vec<(String, Option<(String, String)>, BTreeSet<&'static str>)>>;

struct Script {
    dice: Dice,
    dialect: Dialect,
    files: BTreeMap<String, Vec<Function>>,
    truth: Truth,
    n_made: usize,
}

/// The events of one function in one commit.
type Done = (usize, Option<(String, String)>, BTreeSet<&'static str>);

const WORDS: [&str; 12] = [
    "total", "index", "buffer", "offset", "limit", "weight", "cursor", "amount", "border", "signal", "margin", "packet",
];

impl Script {
    fn new(seed: u64, dialect: Dialect) -> Self {
        let mut script = Self {
            dice: Dice(seed),
            dialect,
            files: BTreeMap::new(),
            truth: Truth::new(),
            n_made: 0,
        };
        for name in ["first", "second", "folder/third"] {
            let functions = (0..7).map(|_| script.function()).collect();
            script.files.insert(format!("{name}.{}", dialect.ending()), functions);
        }
        script
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.dice.roll(WORDS.len())]
    }

    fn line(&mut self) -> String {
        let (a, b, c) = (self.word(), self.word(), self.word());
        let (n, m) = (self.dice.roll(90), self.dice.roll(90));
        match self.dice.roll(3) {
            0 => format!("{a} = {b}_{n}({c}, {m})"),
            1 => format!("{a}.push({b} + {c} * {n})"),
            _ => format!("{a}_{b}({c}, \"{n} {m}\")"),
        }
    }

    fn function(&mut self) -> Function {
        self.n_made += 1;
        // Some functions are so short that they are hard to distinguish.
        let n_lines = if self.dice.roll(7) == 0 {
            1
        } else {
            3 + self.dice.roll(8)
        };
        Function {
            identity: self.n_made,
            name: format!("{}_{}_{}", self.word(), self.word(), self.n_made),
            parameters: (0..self.dice.roll(3)).map(|n| format!("p{n}")).collect(),
            body: (0..n_lines).map(|_| self.line()).collect(),
            doc: (self.dice.roll(2) == 0).then(|| format!("Says {}.", self.n_made)),
            is_spread: false,
        }
    }

    /// Returns a function that this commit has not changed yet.
    fn pick(&mut self, done: &[Done]) -> Option<(String, usize)> {
        for _ in 0..20 {
            let paths: Vec<String> = self.files.keys().cloned().collect();
            let path = paths[self.dice.roll(paths.len())].clone();
            let n_functions = self.files[&path].len();
            if n_functions < 2 {
                continue;
            }
            let at = self.dice.roll(n_functions);
            let identity = self.files[&path][at].identity;
            if done.iter().all(|(other, ..)| *other != identity) {
                return Some((path, at));
            }
        }
        None
    }

    fn act(&mut self, done: &mut Vec<Done>) {
        let Some((path, at)) = self.pick(done) else { return };
        let line = self.line();
        let new_name = format!("{}_{}", self.word(), 500 + self.dice.roll(400));
        let n_lines = self.files[&path][at].body.len();
        let place = self.dice.roll(n_lines);
        let choice = self.dice.roll(11);
        let function = &mut self.files.get_mut(&path).unwrap()[at];
        let identity = function.identity;
        let before = (path.clone(), function.name.clone());
        let mut record = |from: Option<(String, String)>, events: &[&'static str]| {
            done.push((identity, from, events.iter().copied().collect()));
        };
        match choice {
            0..=2 => {
                function.body[place] = line;
                record(None, &["body"]);
            }
            3 => {
                function.parameters.push(format!("extra{}", 100 + place));
                record(None, &["signature"]);
            }
            4 => {
                function.doc = Some(format!("Says {line} now.").replace('"', ""));
                record(None, &["doc"]);
            }
            5 => {
                function.is_spread = !function.is_spread;
                record(None, &["formatting"]);
            }
            6 => {
                function.name = new_name;
                record(Some(before), &["renamed"]);
            }
            7 if n_lines > 4 => {
                function.name = new_name;
                function.body[place] = line;
                record(Some(before), &["renamed", "body"]);
            }
            8 | 9 => {
                let moved = self.files.get_mut(&path).unwrap().remove(at);
                let others: Vec<String> = self.files.keys().filter(|other| **other != path).cloned().collect();
                let target = others[self.dice.roll(others.len())].clone();
                let mut events = vec!["moved"];
                let functions = self.files.get_mut(&target).unwrap();
                functions.push(moved);
                if choice == 9 && n_lines > 4 {
                    functions.last_mut().unwrap().body[place] = line;
                    events.push("body");
                }
                done.push((identity, Some(before), events.into_iter().collect()));
            }
            _ => {
                self.files.get_mut(&path).unwrap().remove(at);
                done.push((identity, None, ["removed"].into()));
                let new = self.function();
                done.push((new.identity, None, ["added"].into()));
                self.files.get_mut(&path).unwrap().insert(0, new);
            }
        }
    }

    /// Moves a whole file.
    fn move_file(&mut self, done: &mut Vec<Done>) {
        let paths: Vec<String> = self.files.keys().cloned().collect();
        let path = paths[self.dice.roll(paths.len())].clone();
        let target = format!(
            "moved{}/{}.{}",
            self.dice.roll(1000),
            self.word(),
            self.dialect.ending()
        );
        let functions = self.files.remove(&path).unwrap();
        for function in &functions {
            let before = (path.clone(), function.name.clone());
            done.push((function.identity, Some(before), ["moved"].into()));
        }
        self.files.insert(target, functions);
    }

    fn write(&self, repo: &TestRepo) {
        repo.git(["rm", "-r", "-q", "-f", "--ignore-unmatch", "."]);
        for (path, functions) in &self.files {
            repo.write(path, self.dialect.render(functions));
        }
    }

    fn remember(&mut self, commit: &str, done: Vec<Done>) {
        for (identity, from, events) in done {
            self.truth
                .entry(identity)
                .or_default()
                .push((commit.to_owned(), from, events));
        }
    }

    fn commit(&mut self, repo: &TestRepo) {
        let mut done = Vec::new();
        match self.dice.roll(12) {
            0 => self.move_file(&mut done),
            _ => (0..1 + self.dice.roll(3)).for_each(|_| self.act(&mut done)),
        }
        self.write(repo);
        let commit = repo.commit("edit");
        self.remember(&commit, done);
    }

    /// Creates two branches with independent commits, and merges them.
    fn fork(&mut self, repo: &TestRepo) {
        let start = repo.rev_parse("HEAD");
        let paths: Vec<String> = self.files.keys().cloned().collect();
        let (mine, theirs) = paths.split_at(1);
        let edit = |script: &mut Self, path: &str| {
            let line = script.line();
            let at = script.dice.roll(script.files[path].len());
            let function = &mut script.files.get_mut(path).unwrap()[at];
            // A line that already exists would be no change.
            function.body.push(line);
            vec![(function.identity, None, BTreeSet::from(["body"]))]
        };
        let before = self.files.clone();
        let done = edit(self, &mine[0]);
        self.write(repo);
        let left = repo.commit("left");
        self.remember(&left, done);
        let with_left = std::mem::replace(&mut self.files, before);
        repo.git(["checkout", "--quiet", "--detach", &start]);
        let done = edit(self, &theirs[0]);
        self.write(repo);
        let right = repo.commit("right");
        self.remember(&right, done);
        self.files.insert(mine[0].clone(), with_left[&mine[0]].clone());
        repo.checkout("main");
        repo.git(["merge", "--quiet", "--no-commit", "--no-ff", "-s", "ours", &right]);
        self.write(repo);
        repo.commit("merge");
    }
}

impl Script {
    /// Creates two branches: one moves a file and the other changes functions in it. Merges one into the other.
    fn fork_moved(&mut self, repo: &TestRepo) {
        let start = repo.rev_parse("HEAD");
        let paths: Vec<String> = self.files.keys().cloned().collect();
        let path = paths[self.dice.roll(paths.len())].clone();
        let target = format!("joined{}/{}", self.n_made, path.rsplit('/').next().unwrap());
        self.n_made += 1;
        let n_functions = self.files[&path].len();
        let (mine, theirs) = (self.dice.roll(n_functions), self.dice.roll(n_functions));
        let has_edit = self.dice.roll(2) == 0 && mine != theirs;
        let before = self.files.clone();
        let is_mover_first = self.dice.roll(2) == 0;
        let mut sides = BTreeMap::new();
        for is_mover in [is_mover_first, !is_mover_first] {
            self.files = before.clone();
            let steps = if is_mover { 1 + usize::from(has_edit) } else { 1 };
            for step in 0..steps {
                let line = self.line();
                let done = match (is_mover, step) {
                    (true, 0) => {
                        let functions = self.files.remove(&path).unwrap();
                        let moved = |function: &Function| {
                            (
                                function.identity,
                                Some((path.clone(), function.name.clone())),
                                ["moved"].into(),
                            )
                        };
                        let done = functions.iter().map(moved).collect();
                        self.files.insert(target.clone(), functions);
                        done
                    }
                    _ => {
                        let (path, at) = if is_mover { (&target, mine) } else { (&path, theirs) };
                        let function = &mut self.files.get_mut(path).unwrap()[at];
                        function.body.push(line);
                        vec![(function.identity, None, BTreeSet::from(["body"]))]
                    }
                };
                self.write(repo);
                let commit = repo.commit("on a side");
                self.remember(&commit, done);
            }
            if is_mover == is_mover_first {
                repo.git(["branch", "-f", "first"]);
                repo.git(["checkout", "--quiet", "--detach", &start]);
            } else {
                repo.git(["branch", "-f", "second"]);
            }
            let of_side = if is_mover { &target } else { &path };
            sides.insert(is_mover, self.files[of_side].clone());
        }
        let mut joined = sides[&true].clone();
        joined[theirs].body.clone_from(&sides[&false][theirs].body);
        self.files = before;
        self.files.remove(&path);
        self.files.insert(target, joined);
        repo.checkout("main");
        repo.git(["reset", "--quiet", "--hard", "first"]);
        repo.git(["merge", "--quiet", "--no-commit", "--no-ff", "-s", "ours", "second"]);
        self.write(repo);
        repo.commit("merge");
    }
}

/// Counts the results of comparing traced histories with the true ones.
#[derive(Debug, Default)]
struct Score {
    n_right: usize,
    n_missed: usize,
    n_invented: usize,
    n_sure_and_wrong: usize,
    n_events_right: usize,
}

fn recorded(repo: &TestRepo) -> (Repository, History, u32) {
    let repository = Repository::discover(repo.root()).unwrap();
    let tip = CommitId(Oid::from_hex(&repo.rev_parse("HEAD")).unwrap());
    let recorder = Recorder {
        repository: &repository,
        limit: HistoryLimit::default(),
        n_threads: 1,
        patience: Duration::ZERO,
    };
    let history = recorder
        .record_in_memory(History::default(), &[tip], &AtomicBool::new(false))
        .unwrap();
    let tip = history.number(tip).unwrap();
    (repository, history, tip)
}

/// Returns the history traced completely, and traced for its newer half only.
fn traced(repository: &Repository, history: &History) -> Vec<History> {
    let batch = &history.batches()[0];
    let recipe = symbol_recipe(1 << 20);
    let from = |first: u32| {
        let mut traced = history.clone();
        let never = AtomicBool::new(false);
        let paths = trace(
            repository,
            batch,
            &(first..batch.n_commits()).collect(),
            1 << 20,
            &|| {},
            &never,
        )
        .unwrap();
        let symbols = SymbolBatch::from_bytes(symbol_batch_bytes(batch, first, recipe, &paths)).unwrap();
        symbols.verify(batch).unwrap();
        assert_eq!(symbols.all(batch).unwrap(), paths);
        traced.add_symbols(symbols);
        assert_eq!(traced.n_traced(recipe), batch.n_commits() - first);
        traced
    };
    vec![from(0), from(batch.n_commits() / 2)]
}

fn judge(repo: &TestRepo, script: &Script, score: &mut Score) {
    let (repository, history, tip) = recorded(repo);
    let traced = traced(&repository, &history);
    let reached = history.reachable(&[tip]);
    for (path, functions) in &script.files {
        for function in functions {
            let key = SymbolKey {
                path: RepoPath::from(path.as_str()),
                name: function.name.clone(),
                nth: 1,
            };
            let life = whole_life(&repository, &history, tip, &reached, &key);
            // Stored and newly computed records give the same result.
            for traced in &traced {
                let again = whole_life(&repository, traced, tip, &reached, &key);
                assert_eq!(life, again);
            }
            assert!(life.is_there, "{key:?}");
            let wanted: BTreeMap<&str, _> = script.truth[&function.identity]
                .iter()
                .map(|(commit, from, events)| (commit.as_str(), (from, events)))
                .collect();
            let mut found = BTreeSet::new();
            for change in &life.changes {
                let commit = history.id(change.commit).unwrap().to_string();
                let from = change
                    .from
                    .as_ref()
                    .map(|from| (from.path.to_string(), from.name.clone()));
                match wanted.get(commit.as_str()) {
                    Some((wanted_from, events)) if **wanted_from == from => {
                        score.n_right += 1;
                        let events: Vec<&str> = events.iter().copied().collect();
                        let mut names = change.events.names();
                        names.sort_unstable();
                        score.n_events_right += usize::from(names == events);
                    }
                    _ => {
                        score.n_invented += 1;
                        score.n_sure_and_wrong += usize::from(from.is_some() && change.confidence >= 0.9);
                    }
                }
                found.insert(commit);
            }
            score.n_missed += wanted.keys().filter(|commit| !found.contains(**commit)).count();
        }
    }
}

#[test]
fn nearly_every_step_of_every_life_is_right_and_none_is_surely_wrong() {
    let mut score = Score::default();
    let n_seeds = if crate::support::is_long() { 40 } else { 2 };
    for seed in 11..11 + n_seeds {
        let dialect = if seed % 2 == 1 { Dialect::Rust } else { Dialect::Python };
        let repo = TestRepo::empty();
        let mut script = Script::new(seed, dialect);
        script.write(&repo);
        let start = repo.commit("start");
        let all: Vec<Done> = script
            .files
            .values()
            .flatten()
            .map(|one| (one.identity, None, ["added"].into()))
            .collect();
        script.remember(&start, all);
        for n in 0..45 {
            match n % 9 {
                8 => script.fork(&repo),
                4 => script.fork_moved(&repo),
                _ => script.commit(&repo),
            }
        }
        judge(&repo, &script, &mut score);
    }
    let n_steps = score.n_right + score.n_missed + score.n_invented;
    let share = score.n_right as f64 / n_steps as f64;
    assert!(n_steps > 60 * n_seeds as usize, "{score:?}");
    assert!(share >= 0.98, "{share:.4} of {n_steps}: {score:?}");
    assert_eq!(score.n_sure_and_wrong, 0, "{score:?}");
    let events = score.n_events_right as f64 / score.n_right as f64;
    assert!(events >= 0.97, "{events:.4}: {score:?}");
}

const MAX_BYTES: u64 = 1 << 20;

fn whole_life(
    repository: &Repository,
    history: &History,
    tip: u32,
    reached: &Reachable,
    key: &SymbolKey,
) -> SymbolHistory {
    let mut known = SymbolChangeCache::new(None, symbol_recipe(MAX_BYTES));
    let interrupt = AtomicBool::new(false);
    let mut reader = repository.reader();
    let ctx = Ctx::silent(&interrupt);
    let mut lives = SymbolTracer::new(history, reached, &mut reader, MAX_BYTES, &mut known, ctx);
    lives.of(tip, key).unwrap()
}

fn life_of(repo: &TestRepo, path: &str, name: &str) -> Vec<(String, Vec<&'static str>)> {
    let (repository, history, tip) = recorded(repo);
    let key = SymbolKey {
        path: RepoPath::from(path),
        name: name.to_owned(),
        nth: 1,
    };
    let reached = history.reachable(&[tip]);
    let life = whole_life(&repository, &history, tip, &reached, &key);
    let changes = life.changes.into_iter().map(|change| {
        let heads = history.heads(&[change.commit]).unwrap();
        (heads[&change.commit].subject.clone(), change.events.names())
    });
    changes.collect()
}

#[test]
fn a_life_is_read_from_its_end_and_goes_on_where_it_stopped() {
    let repo = TestRepo::empty();
    let version = |n: usize| format!("fn other() {{}}\n\nfn grown() {{\n{}}}\n", "    step();\n".repeat(n));
    for n in 0..12 {
        repo.write("a.rs", version(n));
        repo.commit(&format!("step {n}"));
    }
    let (repository, history, tip) = recorded(&repo);
    let reached = history.reachable(&[tip]);
    let key = SymbolKey {
        path: RepoPath::from("a.rs"),
        name: "grown".to_owned(),
        nth: 1,
    };
    let mut known = SymbolChangeCache::new(None, symbol_recipe(MAX_BYTES));
    let mut read = |ctx| {
        let mut reader = repository.reader();
        SymbolTracer::new(&history, &reached, &mut reader, MAX_BYTES, &mut known, ctx).of(tip, &key)
    };
    let interrupt = AtomicBool::new(false);
    let progress = StopAfter {
        n_left: AtomicUsize::new(5),
        flag: &interrupt,
    };
    assert!(matches!(
        read(Ctx::new(&progress, &interrupt)),
        Err(HistoryError::Interrupted)
    ));
    interrupt.store(false, Ordering::Relaxed);
    let no_time = Ctx::silent(&interrupt).until(Some(Instant::now()));
    let part = read(no_time).unwrap();
    let whole = read(Ctx::silent(&interrupt)).unwrap();
    // Four more are read without time.
    assert_eq!((part.changes.len(), part.n_unread), (9, 3));
    assert_eq!((whole.changes.len(), whole.n_unread), (12, 0));
    assert_eq!(part.changes, whole.changes[..9]);
    assert_eq!(whole, whole_life(&repository, &history, tip, &reached, &key));
    // All versions have been read.
    let again = read(no_time).unwrap();
    assert_eq!(again, whole);
}

#[test]
fn a_revert_goes_on_with_the_life_before() {
    let body = "    let a = one(two, three);\n    let b = four(a, five);\n    six(a, b)\n";
    let with = |extra: &str| format!("fn kept() {{}}\n\nfn target() {{\n{body}{extra}}}\n");
    let repo = TestRepo::empty();
    repo.write("a.rs", with(""));
    repo.commit("add");
    repo.write("a.rs", "fn kept() {}\n");
    repo.commit("remove");
    repo.write("a.rs", with(""));
    repo.commit("revert");
    repo.write("a.rs", with("    seven();\n"));
    repo.commit("edit");
    let life = life_of(&repo, "a.rs", "target");
    let found: Vec<(&str, Vec<&str>)> = life
        .iter()
        .map(|(subject, events)| (subject.as_str(), events.clone()))
        .collect();
    assert_eq!(
        found,
        [
            ("edit", vec!["body"]),
            ("revert", vec!["added"]),
            ("remove", vec!["removed"]),
            ("add", vec!["added"])
        ]
    );
}

#[test]
fn renamed_files_do_not_count_in_the_limit_of_searched_files() {
    let function = |name: &str| {
        format!(
            "fn {name}(a: u32) -> u32 {{\n    let sum = first(a) + second(a, 3);\n    third(sum, {name:?}) + 7\n}}\n"
        )
    };
    let repo = TestRepo::empty();
    for number in 0..60 {
        repo.write(format!("f{number}.rs"), function(&format!("renamed_{number}")));
    }
    repo.write("all.rs", function("stays") + &function("target"));
    repo.commit("add");
    for number in 0..60 {
        repo.rename(format!("f{number}.rs"), format!("src/f{number}.rs"));
    }
    repo.write("all.rs", function("stays"));
    repo.write("src/one.rs", function("target"));
    repo.commit("split");
    let (repository, history, tip) = recorded(&repo);
    let key = SymbolKey {
        path: RepoPath::from("src/one.rs"),
        name: "target".to_owned(),
        nth: 1,
    };
    let traced = traced(&repository, &history);
    for history in [&history].into_iter().chain(&traced) {
        let life = whole_life(&repository, history, tip, &history.reachable(&[tip]), &key);
        let events: Vec<_> = life.changes.iter().map(|change| change.events.names()).collect();
        assert_eq!(events, [vec!["moved"], vec!["added"]]);
    }
}

#[test]
fn what_is_gone_is_followed_from_where_it_was_removed() {
    let repo = TestRepo::new("//- a.py\ndef gone(a):\n    return compute(a, 1)\n\ndef kept():\n    pass\n");
    repo.write(
        "a.py",
        "def gone(a):\n    return compute(a, 2)\n\ndef kept():\n    pass\n",
    );
    repo.commit("edit");
    repo.write("a.py", "def kept():\n    pass\n");
    repo.commit("remove");
    let life = life_of(&repo, "a.py", "gone");
    let subjects: Vec<&str> = life.iter().map(|(subject, _)| subject.as_str()).collect();
    assert_eq!(subjects, ["remove", "edit", "start"]);
    assert!(life_of(&repo, "a.py", "never").is_empty());
}

/// Returns the subjects of the commits in the history of a definition, without and with tracing. They must be equal.
fn subjects_of(repo: &TestRepo, path: &str, name: &str) -> BTreeSet<String> {
    let (repository, history, tip) = recorded(repo);
    let key = SymbolKey {
        path: RepoPath::from(path),
        name: name.to_owned(),
        nth: 1,
    };
    let reached = history.reachable(&[tip]);
    let life = whole_life(&repository, &history, tip, &reached, &key);
    for traced in traced(&repository, &history) {
        let again = whole_life(&repository, &traced, tip, &reached, &key);
        assert_eq!(life, again);
    }
    let numbers: Vec<u32> = life.changes.iter().map(|change| change.commit).collect();
    let heads = history.heads(&numbers).unwrap();
    heads.values().map(|head| head.subject.clone()).collect()
}

#[test]
fn what_both_sides_of_a_merge_renamed_is_followed_on_both() {
    let body = |n: u32| {
        let lines: String = (0..12)
            .map(|line| format!("    step_{line}(input, {line})\n"))
            .collect();
        format!("{lines}    last({n})\n")
    };
    let text = |name: &str, n: u32| format!("def {name}(input):\n{}\n\ndef other():\n    pass\n", body(n));
    for is_swapped in [false, true] {
        let repo = TestRepo::empty();
        repo.write("a.py", text("old", 0));
        repo.commit("add");
        repo.branch("side");
        // One branch moves the file and changes the function; the other renames and changes the function.
        repo.rename("a.py", "src/a.py");
        repo.commit("move");
        repo.write("src/a.py", text("old", 1));
        repo.commit("edit one");
        repo.checkout("side");
        repo.write("a.py", text("new", 0));
        repo.commit("rename");
        repo.write("a.py", text("new", 2));
        repo.commit("edit two");
        let (into, from) = if is_swapped { ("side", "main") } else { ("main", "side") };
        repo.checkout(into);
        repo.git(["merge", "--quiet", "--no-commit", "--no-ff", "-s", "ours", from]);
        repo.git(["rm", "-r", "-q", "-f", "--ignore-unmatch", "."]);
        repo.write("src/a.py", text("new", 3));
        repo.commit("merge");
        let subjects = subjects_of(&repo, "src/a.py", "new");
        let all = ["add", "move", "edit one", "rename", "edit two", "merge"];
        assert_eq!(subjects, all.map(str::to_owned).into(), "swapped: {is_swapped}");
    }
}

/// Returns the verdict that a note about a function deserves.
fn deserved(then: &(String, Function), now: Option<&(String, Function)>) -> &'static str {
    let Some((path, function)) = now else { return "gone" };
    let content = |function: &Function| {
        let Function {
            parameters, body, doc, ..
        } = function.clone();
        (parameters, body, doc)
    };
    match () {
        () if (path, &function.name) != (&then.0, &then.1.name) => "moved",
        () if content(function) != content(&then.1) => "changed",
        () => "fresh",
    }
}

#[test]
fn notes_know_what_became_of_definitions() {
    let (mut n_right, mut wrong) = (0, Vec::new());
    for seed in 1..=4 {
        let dialect = if seed % 2 == 0 { Dialect::Rust } else { Dialect::Python };
        let repo = TestRepo::empty();
        let mut script = Script::new(0x9e37_79b9 * seed, dialect);
        script.write(&repo);
        repo.commit("start");
        (0..3).for_each(|_| script.commit(&repo));
        let located = |script: &Script| -> BTreeMap<usize, (String, Function)> {
            let all = script
                .files
                .iter()
                .flat_map(|(path, functions)| functions.iter().map(move |one| (path, one)));
            all.map(|(path, one)| (one.identity, (path.clone(), one.clone())))
                .collect()
        };
        let then = located(&script);
        for (identity, (path, function)) in &then {
            let about = format!("{path}#{}", function.name);
            let name = format!("n{identity}");
            let args = ["memory", "write", &name, "--about", &about, "--text", "x", "--private"];
            let called = call_in(repo.root(), &args, b"");
            assert_eq!(called.code, 0, "{}", called.stderr);
        }
        for _ in 0..6 {
            script.commit(&repo);
            let called = call_in(repo.root(), &["memory", "list", "--json", "--limit", "0"], b"");
            let answer: serde_json::Value = serde_json::from_slice(&called.stdout).unwrap();
            let now = located(&script);
            let answer = answer["results"].as_array().unwrap();
            assert_eq!(answer.len(), then.len());
            for note in answer {
                let identity: usize = note["name"].as_str().unwrap()[1..].parse().unwrap();
                let (verdict, deserved) = (&note["verdict"], deserved(&then[&identity], now.get(&identity)));
                if verdict == deserved {
                    n_right += 1;
                } else {
                    wrong.push(format!("seed {seed}: {identity} is {deserved}: {note}"));
                }
            }
        }
    }
    let n_all = n_right + wrong.len();
    assert!(n_right * 100 >= n_all * 99, "{n_right} of {n_all}: {wrong:#?}");
}
