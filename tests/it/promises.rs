//! Tests the guarantees of the index: equal content gives equal bytes, nothing is computed twice, and answers name
//! their revision.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use codescout::artifact::SkipReason;
use codescout::config::Overrides;
use codescout::embed::{EmbedError, Embedder, Embedding, Profile};
use codescout::git::BlobContent;
use codescout::ingest::{Ingest, Outcome};
use codescout::model::{ChunkKey, Ctx};
use codescout::query::{FileFilter, Mode, Request, Searcher, Tests};
use codescout::session::ViewRequest;
use codescout::sidecar::Sidecar;
use codescout::snapshot::View;

use crate::indexed::{Indexed, NEVER, StopAfter, chunk_keys, files_below, path_of, seen_until};
use crate::support::TestRepo;

const FIXTURE: &str = "
    //- src/upload.rs
    /// Sends a file, and tries again when the connection is lost.
    pub fn retry_upload(path: &Path) -> Result<(), UploadError> {
        for attempt in 0..MAX_ATTEMPTS {
            if send(path, attempt).is_ok() {
                return Ok(());
            }
        }
        Err(UploadError::GaveUp)
    }

    fn send(path: &Path, attempt: u32) -> io::Result<()> {
        connect(attempt)?.write_all(&read(path)?)
    }
    //- src/cache.py
    class Cache:
        def evict(self, key):
            '''Removes the oldest entry.'''
            self.entries.pop(key)
    //- web/render.ts
    export function renderTable(rows: Row[]): string {
        return rows.map(renderRow).join('');
    }
    //- docs/guide.md
    # Installing

    Copy the binary somewhere.

    # Uploading

    A failed upload is retried three times.
    //- config.toml
    [upload]
    attempts = 3
";

const QUERIES: [&str; 3] = ["retry_upload", "where is a failed upload retried", "Cache.evict"];

#[test]
fn building_twice_gives_the_same_bytes() {
    let repo = TestRepo::new(FIXTURE);
    let build = |name: &str| {
        let index = Indexed::at(repo.root(), repo.beside(name));
        index.view("HEAD");
        let mut files = files_below(index.workspace.storage.root());
        files.retain(|path, _| {
            ["artifacts-v1", "lexical-v1", "dense-v1"]
                .iter()
                .any(|store| path.starts_with(store))
        });
        assert_eq!(files.len(), 3, "{:?}", files.keys());
        files
    };
    let first = build("first");
    for name in ["second", "third"] {
        assert!(build(name) == first, "the bytes differ");
    }
}

#[test]
fn what_is_known_is_not_computed_again() {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    let first = index.ingested("HEAD");
    assert!(first.n_new_chunks > 4 && first.n_new_blobs == 5, "{first:?}");

    repo.rename("src/upload.rs", "src/net/send.rs");
    repo.commit("rename");
    assert_nothing_new(index.ingested("HEAD"), "a rename");

    repo.write("src/copy.py", repo.read("src/cache.py"));
    repo.commit("copy");
    assert_nothing_new(index.ingested("HEAD"), "a copy");

    repo.remove("docs/guide.md");
    repo.commit("delete");
    assert_nothing_new(index.ingested("HEAD"), "a deletion");

    repo.git(["revert", "--no-edit", "HEAD"]);
    assert_eq!(
        index.ingested("HEAD"),
        Outcome::default(),
        "a revert to a tree that is known"
    );

    repo.git(["checkout", "--quiet", "-b", "known", "HEAD~3"]);
    repo.write("again.toml", repo.read("config.toml"));
    repo.commit("known blobs only");
    assert_nothing_new(index.ingested("HEAD"), "a branch of known blobs");
    repo.merge("main");
    assert_nothing_new(index.ingested("HEAD"), "a merge of known blobs");

    let worktree = repo.worktree("linked");
    let linked = Indexed::new(worktree.root());
    assert_eq!(linked.workspace.storage.root(), index.workspace.storage.root());
    let opened = linked.try_open("WORKTREE").unwrap();
    assert_eq!(opened.ingested, Outcome::default(), "a new work tree");
    assert_eq!(opened.view.provenance().n_dirty_files, 0);
    assert_eq!(
        linked.paths(&opened.view, "attempts"),
        ["again.toml", "config.toml", "src/net/send.rs"]
    );
}

fn assert_nothing_new(outcome: Outcome, what: &str) {
    assert_eq!(
        (outcome.n_new_blobs, outcome.n_new_chunks),
        (0, 0),
        "{what}: {outcome:?}"
    );
}

/// Counts the texts that it embeds.
struct Counting<'a> {
    inner: &'a dyn Embedder,
    n_texts: AtomicUsize,
}

impl Embedder for Counting<'_> {
    fn profile(&self) -> &Profile {
        self.inner.profile()
    }

    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Embedding>, EmbedError> {
        self.n_texts.fetch_add(texts.len(), Ordering::Relaxed);
        self.inner.embed_documents(texts, interrupt)
    }

    fn embed_query(&self, text: &str, interrupt: &AtomicBool) -> Result<Embedding, EmbedError> {
        self.inner.embed_query(text, interrupt)
    }
}

#[test]
fn a_branch_embeds_only_chunks_never_seen() {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    let known: BTreeSet<ChunkKey> = chunk_keys(&index.view("HEAD")).into_iter().collect();

    repo.git(["checkout", "--quiet", "-b", "feature"]);
    let mut text = repo.read("docs/guide.md");
    text.extend_from_slice(b"\n# Removing\n\nDelete the folder.\n");
    repo.write("docs/guide.md", text);
    let moved = String::from_utf8(repo.read("src/upload.rs")).unwrap();
    repo.write("src/upload.rs", moved.replace("GaveUp", "TimedOut"));
    repo.write("src/new.py", "def entirely_new():\n    return 'unseen'\n");
    repo.commit("three blobs change");

    let fresh = Indexed::at(repo.root(), repo.beside("fresh"));
    let wanted: BTreeSet<ChunkKey> = chunk_keys(&fresh.view("HEAD")).into_iter().collect();
    let n_unseen = wanted.difference(&known).count();
    assert!(
        n_unseen > 0 && n_unseen < wanted.len(),
        "{n_unseen} of {}",
        wanted.len()
    );

    let sidecar = Sidecar::open(index.workspace.storage.root()).unwrap();
    let counting = Counting {
        inner: index.workspace.models.embedder(),
        n_texts: AtomicUsize::new(0),
    };
    let ingest = Ingest {
        repository: &index.workspace.repository,
        sidecar: &sidecar,
        embedder: &counting,
        options: index.workspace.build_options(),
        patience: Duration::from_secs(60),
    };
    let target = index.workspace.target("HEAD").unwrap().unwrap();
    let outcome = ingest.update(target, Ctx::silent(&NEVER)).unwrap();
    assert_eq!(counting.n_texts.load(Ordering::Relaxed), n_unseen);
    assert_eq!((outcome.n_new_blobs, outcome.n_new_chunks), (3, n_unseen));
}

#[test]
fn the_last_line_of_a_long_function_is_found() {
    let repo = TestRepo::new(FIXTURE);
    let lines: String = (0..298)
        .map(|i| format!("    total += weigh(rows[{i}], {});\n", i * 7))
        .collect();
    let around = "fn before() { start(); }\n\nfn after() { stop(); }\n";
    let text =
        format!("{around}\nfn weigh_everything(rows: &[Row]) -> u32 {{\n{lines}    finish_with_zanzibar(total) }}\n");
    repo.write("src/long.rs", text);
    repo.commit("long");
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    for mode in [Mode::Auto, Mode::Hybrid, Mode::Keyword] {
        let hits = index.search(&view, mode, "zanzibar");
        let best = hits.first().unwrap_or_else(|| panic!("nothing found with {mode:?}"));
        assert_eq!(
            best.symbol.as_ref().unwrap().qualified_name,
            "weigh_everything",
            "{mode:?}"
        );
        let place = best.places[0];
        assert_eq!(path_of(&view, place.file), "src/long.rs");
        assert!((place.start_line..=place.end_line).contains(&303), "{place:?}");
    }
}

#[test]
fn what_is_on_disk_is_seen_by_the_next_query() {
    let repo = TestRepo::new(FIXTURE);
    repo.write(".gitignore", "*.log\n");
    repo.commit("ignore");
    let index = Indexed::new(repo.root());
    assert_eq!(index.view("WORKTREE").provenance().n_dirty_files, 0);

    repo.write("src/upload.rs", "fn edited_on_disk() { marmalade() }\n");
    repo.write("src/untracked.py", "def marmalade(): pass\n");
    repo.write("debug.log", "marmalade\n");
    repo.remove("docs/guide.md");
    let view = index.view("WORKTREE");
    assert_eq!(index.paths(&view, "marmalade"), ["src/untracked.py", "src/upload.rs"]);
    assert_eq!(index.paths(&view, "somewhere"), Vec::<String>::new());
    assert_eq!(view.find(b"docs/guide.md"), None);
    assert_eq!((view.find(b"debug.log"), view.provenance().n_dirty_files), (None, 3));
    let head = index.view("HEAD");
    assert_eq!(index.paths(&head, "marmalade"), Vec::<String>::new());
    assert_eq!(index.paths(&head, "somewhere"), ["docs/guide.md"]);

    // Staged and then changed back on disk, so only the index has it.
    let committed = repo.read("config.toml");
    repo.write("config.toml", "[staged]\nquokka = 1\n");
    repo.git(["add", "config.toml"]);
    repo.write("config.toml", committed);
    let staged = index.view("INDEX");
    assert_eq!(index.paths(&staged, "quokka"), ["config.toml"]);
    assert_eq!(index.paths(&staged, "marmalade"), Vec::<String>::new());
    assert_eq!(
        (
            staged.provenance().n_dirty_files,
            staged.provenance().reference.as_str()
        ),
        (1, "INDEX")
    );
    assert_eq!(index.paths(&index.view("WORKTREE"), "quokka"), Vec::<String>::new());
    assert_eq!(
        repo.git(["status", "--porcelain"]).lines().count(),
        4,
        "the sidecar shows in git status"
    );
}

#[test]
fn two_clones_agree() {
    let repo = TestRepo::new(FIXTURE);
    repo.write(
        "src/cache.py",
        "class Cache:\n    def evict(self, key):\n        del self.entries[key]\n",
    );
    repo.commit("second");
    repo.rename("web/render.ts", "src/render.ts");
    repo.write(
        "web/extra.ts",
        "export function renderRow(row: Row) { return row.text; }\n",
    );
    repo.commit("third");
    let (one, other) = (repo.clone_with("one", &[]), repo.bare_clone("other"));
    let (one, other) = (Indexed::new(one.root()), Indexed::new(other.root()));
    for reference in ["HEAD~2", "HEAD~1", "HEAD"] {
        one.view(reference);
    }
    let (ours, theirs) = (one.view("HEAD"), other.view("HEAD"));
    assert_eq!(ours.digest(), theirs.digest());
    assert_eq!(one.contents(&ours), other.contents(&theirs));
    assert_eq!(one.answers(&ours, &QUERIES), other.answers(&theirs, &QUERIES));
    assert_ne!(ours.digest(), one.view("HEAD~1").digest());
}

#[test]
fn a_tag_is_searched_as_it_was() {
    let repo = TestRepo::new(FIXTURE);
    repo.tag("v1");
    let tagged = repo.read("src/upload.rs");
    repo.git(["checkout", "--quiet", "-b", "next"]);
    repo.write("src/upload.rs", "fn send_once() { no_more_retries() }\n");
    repo.commit("next");
    repo.write("src/upload.rs", "fn not_even_committed() {}\n");
    let index = Indexed::new(repo.root());
    index.view("WORKTREE");
    let view = index.view("v1");
    let provenance = view.provenance();
    assert_eq!(provenance.reference, "v1");
    assert_eq!(provenance.commit.unwrap().to_string(), repo.rev_parse("v1^{commit}"));
    assert_eq!(provenance.tree.unwrap().to_string(), repo.tree_of("v1"));
    assert_eq!((provenance.n_dirty_files, provenance.incomplete.len()), (0, 0));
    let hits = index.search(&view, Mode::Auto, "retry_upload");
    assert_eq!(hits[0].symbol.as_ref().unwrap().qualified_name, "retry_upload");
    assert_eq!(text_of(&index, &view, "src/upload.rs"), Some(tagged));
    assert!(index.search(&view, Mode::Keyword, "send_once").iter().all(|hit| {
        hit.symbol
            .as_ref()
            .is_none_or(|symbol| symbol.qualified_name != "send_once")
    }));
}

fn text_of(index: &Indexed, view: &View, path: &str) -> Option<Vec<u8>> {
    let file = view.find(path.as_bytes())?;
    match view
        .read(file, &mut index.workspace.repository.reader(), 1 << 20)
        .unwrap()
    {
        BlobContent::Content(bytes) => Some(bytes),
        BlobContent::TooLarge { .. } | BlobContent::Missing | BlobContent::Damaged => None,
    }
}

#[test]
fn every_kind_of_repository_answers() {
    let expected = {
        let repo = TestRepo::new(FIXTURE);
        let index = Indexed::new(repo.root());
        index.answers(&index.view("HEAD"), &QUERIES)
    };
    let sha256 = TestRepo::sha256(FIXTURE);
    let repo = TestRepo::new(FIXTURE);
    repo.write("later.txt", "later");
    repo.commit("later");
    repo.remove("later.txt");
    repo.commit("and gone");
    let roots = [
        ("sha256", sha256.root().to_owned(), "WORKTREE"),
        ("bare", repo.bare_clone("bare.git").root().to_owned(), "WORKTREE"),
        (
            "shallow",
            repo.clone_with("shallow", &["--depth=1"]).root().to_owned(),
            "WORKTREE",
        ),
        ("linked", repo.worktree("linked").root().to_owned(), "INDEX"),
        ("subfolder", repo.path("src"), "WORKTREE"),
    ];
    for (kind, root, reference) in roots {
        let index = Indexed::new(&root);
        let view = index.view(reference);
        assert_eq!(index.answers(&view, &QUERIES), expected, "{kind}");
        assert_eq!(view.provenance().incomplete, Vec::<String>::new(), "{kind}");
    }
    let shallow = Indexed::new(&repo.beside("shallow"));
    let error = shallow.try_open("HEAD~1").err().unwrap();
    assert!(format!("{error:#}").contains("HEAD~1"), "{error:#}");
}

#[test]
fn what_a_partial_clone_lacks_is_counted_and_not_fetched() {
    let repo = TestRepo::new(FIXTURE);
    repo.git(["config", "uploadpack.allowFilter", "true"]);
    repo.git(["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let partial = repo.clone_with("partial", &["--filter=blob:none", "--no-checkout"]);
    let objects = || partial.git(["count-objects", "-v"]);
    let before = objects();
    let index = Indexed::at(partial.root(), repo.beside("sidecar"));
    let view = index.view("HEAD");
    assert_eq!(
        view.coverage().skipped.get(&SkipReason::Missing),
        Some(&5),
        "{:?}",
        view.coverage()
    );
    assert_eq!(index.search(&view, Mode::Auto, "retry_upload").len(), 0);
    assert_eq!(objects(), before);

    // Objects that are fetched later are searched, even by an index that was built without them.
    partial.git(["checkout", "--quiet", "main"]);
    let (later, fresh) = (
        Indexed::at(partial.root(), repo.beside("sidecar")),
        Indexed::at(partial.root(), repo.beside("fresh")),
    );
    let (ours, theirs) = (later.view("HEAD"), fresh.view("HEAD"));
    assert_eq!(theirs.coverage().n_indexed, 5);
    assert_eq!(later.contents(&ours), fresh.contents(&theirs));
    assert_eq!(later.answers(&ours, &QUERIES), fresh.answers(&theirs, &QUERIES));
    assert_eq!(later.ingested("HEAD"), Outcome::default());
}

#[cfg(unix)]
#[test]
fn boundaries_are_not_crossed() {
    use std::os::unix::ffi::OsStrExt;

    let repo = TestRepo::new(FIXTURE);
    std::fs::write(repo.beside("secret.txt"), "aardvark outside\n").unwrap();
    repo.symlink("../secret.txt", "link.txt");
    repo.symlink("..", "loop");
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"src/caf\xe9.rs"));
    repo.write(odd, "fn aardvark_inside() {}\n");
    repo.git(["add", "--all"]);
    let commit = repo.rev_parse("HEAD");
    repo.git([
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{commit},vendored-repo"),
    ]);
    std::fs::create_dir(repo.path("vendored-repo")).unwrap();
    repo.commit_index("boundaries");
    let index = Indexed::new(repo.root());
    for reference in ["HEAD", "WORKTREE"] {
        let view = index.view(reference);
        let found = index.search(&view, Mode::Keyword, "aardvark");
        let paths: Vec<&[u8]> = found.iter().map(|hit| view.file(hit.places[0].file).path).collect();
        assert_eq!(paths, [&b"src/caf\xe9.rs"[..]], "{reference}");
        let skipped = &view.coverage().skipped;
        assert_eq!(skipped.get(&SkipReason::Symlink), Some(&2), "{reference}: {skipped:?}");
        assert_eq!(
            skipped.get(&SkipReason::Submodule),
            Some(&1),
            "{reference}: {skipped:?}"
        );
    }
}

#[test]
fn a_repository_without_a_commit_has_an_empty_view() {
    let repo = TestRepo::empty();
    let index = Indexed::new(repo.root());
    for reference in ["WORKTREE", "INDEX"] {
        let view = index.view(reference);
        assert_eq!((view.n_files(), view.provenance().commit), (0, None), "{reference}");
        assert!(index.answers(&view, &QUERIES).iter().all(|answer| answer.is_empty()));
    }
    let error = index.try_open("HEAD").err().unwrap();
    assert!(format!("{error:#}").contains("no commit"), "{error:#}");

    let bare = TestRepo::init(&["--bare"]);
    let error = Indexed::new(bare.root()).try_open("WORKTREE").err().unwrap();
    assert!(format!("{error:#}").contains("no commit"), "{error:#}");

    repo.write_files(FIXTURE);
    let view = index.view("WORKTREE");
    assert_eq!((view.coverage().n_indexed, view.provenance().n_dirty_files), (5, 5));
    assert_eq!(index.paths(&view, "evict"), ["src/cache.py"]);
    assert_eq!(index.view("INDEX").n_files(), 0);
}

#[test]
fn without_a_place_for_the_index_queries_still_answer() {
    let repo = TestRepo::new(FIXTURE);
    let expected = Indexed::at(repo.root(), repo.beside("fresh"));
    let expected = expected.answers(&expected.view("HEAD"), &QUERIES);
    std::fs::write(repo.beside("file"), "no folder").unwrap();
    let index = Indexed::at(repo.root(), repo.beside("file").join("sidecar"));
    let opened = index.try_open("HEAD").unwrap();
    assert_eq!(index.answers(&opened.view, &QUERIES), expected);
    assert!(opened.note.unwrap().contains("in memory"));
    repo.write("new.rs", "fn wombat() {}\n");
    assert_eq!(index.paths(&index.view("WORKTREE"), "wombat"), ["new.rs"]);
}

#[cfg(unix)]
#[test]
fn a_sidecar_that_cannot_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt;

    if rustix::process::geteuid().is_root() {
        crate::indexed::skip("permissions do not bind root");
        return;
    }
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    index.view("HEAD");
    repo.write("new.rs", "fn wombat() {}\n");
    repo.commit("new");
    let allow = |mode| {
        let mut folders = vec![index.workspace.storage.root().to_owned()];
        folders.extend(
            std::fs::read_dir(&folders[0])
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.is_dir()),
        );
        for folder in folders {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    allow(0o555);
    let view = index.try_open("HEAD").map(|opened| opened.view.clone());
    let old = index.try_open("HEAD~1").map(|opened| opened.view.clone());
    allow(0o755);
    assert_eq!(index.paths(&view.unwrap(), "wombat"), ["new.rs"]);
    assert_eq!(old.unwrap().provenance().incomplete.len(), 0);
}

#[test]
fn several_writers_at_once_end_well() {
    let repo = many_files(300);
    let expected = Indexed::at(repo.root(), repo.beside("fresh"));
    let expected = expected.answers(&expected.view("HEAD"), &["step_7", "value of step"]);
    repo.write("later.rs", "fn later() {}\n");
    repo.commit("later");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6)
            .map(|number| {
                let (root, reference) = (repo.root(), if number % 2 == 0 { "HEAD~1" } else { "HEAD" });
                scope.spawn(move || {
                    let index = Indexed::new(root);
                    let view = index.view(reference);
                    assert_eq!(view.coverage().n_indexed, view.n_files(), "{reference}");
                    index.answers(&index.view("HEAD~1"), &["step_7", "value of step"])
                })
            })
            .collect();
        for run in runs {
            assert_eq!(run.join().unwrap(), expected);
        }
    });
    let index = Indexed::new(repo.root());
    assert_eq!(index.ingested("HEAD"), Outcome::default());
    assert_no_leftovers(index.workspace.storage.root());
}

fn many_files(n_files: usize) -> TestRepo {
    let repo = TestRepo::empty();
    for number in 0..n_files {
        repo.write(
            format!("src/part{}/step{number}.rs", number % 7),
            format!("fn step_{number}() {{\n    value({number})\n}}\n"),
        );
    }
    repo.commit("many");
    repo
}

fn assert_no_leftovers(sidecar: &Path) {
    let temporary = |path: &&std::path::PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.') && name != ".gitignore")
    };
    let files = files_below(sidecar);
    assert_eq!(
        files.keys().filter(temporary).collect::<Vec<_>>(),
        Vec::<&std::path::PathBuf>::new()
    );
}

#[test]
fn what_was_done_before_an_interruption_is_kept() {
    let repo = many_files(700);
    let index = Indexed::new(repo.root());
    let flag = AtomicBool::new(false);
    let progress = StopAfter {
        n_left: AtomicUsize::new(300),
        flag: &flag,
    };
    let target = index.workspace.target("HEAD").unwrap().unwrap();
    let stopped = index.workspace.ingest(target, Ctx::new(&progress, &flag)).unwrap();
    assert!(
        stopped.interrupted && stopped.n_new_blobs >= 300 && stopped.n_new_blobs < 700,
        "{stopped:?}"
    );
    let interrupted = AtomicBool::new(true);
    let error = seen_until(&index.workspace, ViewRequest::of("HEAD"), &interrupted)
        .err()
        .unwrap();
    assert!(format!("{error:#}").contains("interrupted"), "{error:#}");

    let finished = index.ingested("HEAD");
    assert_eq!(finished.n_new_blobs, 700 - stopped.n_new_blobs);
    let fresh = Indexed::at(repo.root(), repo.beside("fresh"));
    let (ours, theirs) = (index.view("HEAD"), fresh.view("HEAD"));
    assert_eq!(index.contents(&ours), fresh.contents(&theirs));
    assert_eq!(
        index.answers(&ours, &["step_7", "value of step"]),
        fresh.answers(&theirs, &["step_7", "value of step"])
    );
}

#[test]
fn rules_that_change_are_applied_to_files_that_do_not() {
    let repo = TestRepo::new(FIXTURE);
    let index = Indexed::new(repo.root());
    let reasons = |reference: &str| index.view(reference).coverage().skipped.clone();
    assert_eq!(reasons("HEAD").len(), 0);
    repo.write(".gitattributes", "*.py linguist-generated\nweb/** linguist-vendored\n");
    repo.commit("attributes");
    assert_eq!(reasons("HEAD").get(&SkipReason::Generated), Some(&1));
    assert_eq!(reasons("HEAD").get(&SkipReason::Vendored), Some(&1));
    assert_eq!(index.paths(&index.view("HEAD"), "evict"), Vec::<String>::new());
    repo.write(".codescoutignore", "docs/\n");
    repo.commit("ignore");
    assert_eq!(reasons("HEAD").get(&SkipReason::Ignored), Some(&1));
    repo.remove(".gitattributes");
    repo.remove(".codescoutignore");
    repo.commit("no rules");
    assert_eq!(reasons("HEAD").len(), 0);
    assert_eq!(index.paths(&index.view("HEAD"), "evict"), ["src/cache.py"]);
    assert_eq!(reasons("HEAD~1").len(), 3);
}

#[test]
fn places_outside_the_filter_are_not_listed() {
    let repo = TestRepo::new(
        "
        //- src/a.rs
        pub fn shared_zebra() -> u32 { 41 + 1 }
        //- lib/b.rs
        pub fn shared_zebra() -> u32 { 41 + 1 }
    ",
    );
    let index = Indexed::new(repo.root());
    let view = index.view("HEAD");
    let searcher = Searcher::new(&view, index.workspace.models.embedder(), index.workspace.models.own()).unwrap();
    let ask = |paths: &[String]| {
        let request = Request {
            query: "shared_zebra".to_owned(),
            filter: FileFilter::new(paths, &[], Tests::Any).unwrap(),
            limit: 10,
            ..Request::default()
        };
        let hits = searcher.search(&request).unwrap().hits;
        hits[0]
            .places
            .iter()
            .map(|place| path_of(&view, place.file))
            .collect::<Vec<_>>()
    };
    assert_eq!(ask(&[]), ["lib/b.rs", "src/a.rs"]);
    assert_eq!(ask(&["src/".to_owned()]), ["src/a.rs"]);
}

#[test]
fn configuration_that_comes_with_a_repository_is_refused() {
    let repo = TestRepo::new(FIXTURE);
    repo.write(".codescout/config.toml", "[index]\nmax_blob_bytes = 7\n");
    let own = Indexed::with(repo.root(), Overrides::default()).unwrap();
    assert_eq!(own.workspace.config.index.max_blob_bytes.value, 7);
    repo.git(["add", "--force", ".codescout/config.toml"]);
    repo.commit("bring configuration along");
    let refused = Indexed::with(repo.root(), Overrides::default()).err().unwrap();
    assert!(refused.to_string().contains("tracked by git"), "{refused}");
}
