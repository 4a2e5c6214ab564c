//! Tests malicious bundles: they are refused with a reason, and nothing outside the sidecar is changed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use codescout::artifact::{ArtifactFile, ArtifactWriter, SkipReason, Status};
use codescout::bundle::BundleFile;
use codescout::extract::Extraction;
use codescout::index::dense::{VectorFile, VectorWriter};
use codescout::sidecar::Sidecar;

use super::audit::audited;
use super::raw::{Raw, RawEntry};
use super::{PRIVATE_KEY, PUBLIC_KEY, project};
use crate::cli::call_in;
use crate::indexed::files_below;
use crate::support::{TestRepo, is_long};

/// A repository with an index of its first commit, a bundle of its last commit, and files around it that must not
/// change.
pub(super) struct Victim {
    pub(super) repo: TestRepo,
    pub(super) honest: Raw,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl Victim {
    fn new() -> Self {
        Self::of(&["export", "-", "-q"])
    }

    /// Like `new`, with a bundle exported with other arguments.
    pub(super) fn of(export: &[&str]) -> Self {
        let repo = project();
        let other = repo.clone_with("other", &[]);
        let bytes = call_in(other.root(), export, b"").expect(0).stdout;
        call_in(repo.root(), &["index", "HEAD~2"], b"").expect(0);
        for path in ["canary/a", "canary/b/c", "etc/passwd", "records-0000", "x"] {
            let path = repo.beside(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "canary").unwrap();
        }
        let before = Self::around(&repo);
        Self {
            honest: Raw::parse(&bytes),
            before,
            repo,
        }
    }

    /// Returns all files except the lock and unused segment files, which a refused run may leave for the next writer to
    /// remove.
    fn around(repo: &TestRepo) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = files_below(&repo.beside(""));
        files.retain(|path, _| {
            let text = path.to_string_lossy();
            !["repo/.codescout/lock", "-v1/"].iter().any(|part| text.contains(part))
        });
        files
    }

    /// Imports bytes that must be refused with this message.
    #[track_caller]
    pub(super) fn refuses(&self, about: &str, bytes: &[u8], args: &[&str], said: &str) {
        let args = [&["import", "-"], args].concat();
        let (called, outside) = audited(self.repo.root(), &args, bytes, &self.repo.path(".codescout"));
        assert!(outside.is_empty(), "{about}: {outside:#?}");
        assert_eq!(called.code, 2, "{about}: {}{}", called.text(), called.stderr);
        assert!(called.stderr.contains(said), "{about}: {}", called.stderr);
        assert!(!called.stderr.contains("panicked"), "{about}: {}", called.stderr);
        assert!(Self::around(&self.repo) == self.before, "{about}: something changed");
    }
}

type Change = fn(&mut Raw);

/// Headers with false contents and correct hashes, each with the expected message.
const LYING_HEADERS: &[(&str, Change, &str)] = &[
    ("a path upwards", |raw| name(raw, "../canary/a"), "wrong entries"),
    (
        "a path upwards behind a name",
        |raw| name(raw, "records-0000/../../x"),
        "wrong entries",
    ),
    ("an absolute path", |raw| name(raw, "/etc/passwd"), "wrong entries"),
    ("a drive letter", |raw| name(raw, "C:\\x"), "wrong entries"),
    ("a backslash", |raw| name(raw, "..\\x"), "wrong entries"),
    ("a NUL", |raw| name(raw, "records-0000\0"), "wrong entries"),
    ("a device name", |raw| name(raw, "CON"), "wrong entries"),
    ("a trailing dot", |raw| name(raw, "records-0000."), "wrong entries"),
    ("a trailing space", |raw| name(raw, "records-0000 "), "wrong entries"),
    ("upper case", |raw| name(raw, "RECORDS-0000"), "wrong entries"),
    (
        "letters that look alike",
        |raw| name(raw, "r\u{435}cords-0000"),
        "wrong entries",
    ),
    ("no name", |raw| name(raw, ""), "wrong entries"),
    ("a long name", |raw| name(raw, &"a".repeat(100_000)), "wrong entries"),
    ("a name of the sidecar", |raw| name(raw, "state"), "wrong entries"),
    ("five digits", |raw| name(raw, "records-00000"), "wrong entries"),
    (
        "a part that is not there",
        |raw| name(raw, "records-0001"),
        "wrong entries",
    ),
    ("a name twice", |raw| name(raw, "vectors-0000"), "wrong entries"),
    ("another order", |raw| raw.header.entries.swap(0, 1), "wrong entries"),
    (
        "an entry too few",
        |raw| drop(raw.header.entries.pop()),
        "wrong entries",
    ),
    (
        "an entry too many",
        |raw| raw.header.entries.push(raw.header.entries[0].clone()),
        "wrong entries",
    ),
    ("no parts", |raw| raw.header.parts.clear(), "wrong entries"),
    (
        "very many parts",
        |raw| raw.header.parts = vec![(1, 1); 5000],
        "too many",
    ),
    (
        "very many trees",
        |raw| raw.header.trees = vec![vec![1; 20]; 2000],
        "too many",
    ),
    (
        "a header of two megabytes",
        |raw| raw.header.trees = vec![vec![1; 20]; 100_000],
        "bytes",
    ),
    (
        "more blobs than numbers",
        |raw| raw.header.parts[0].0 = u32::MAX,
        "sizes",
    ),
    (
        "a huge length",
        |raw| raw.header.entries[0].length = u64::MAX,
        "bytes in",
    ),
    (
        "a length beyond the limit",
        |raw| raw.header.entries[0].length = 257 << 20,
        "bytes in",
    ),
    (
        "a huge frame",
        |raw| raw.header.entries[0].n_packed = u64::MAX,
        "bytes in",
    ),
    (
        "a ratio that no index has",
        |raw| raw.header.entries[0].length = 250 << 20,
        "bytes in",
    ),
    ("an unknown kind", |raw| raw.header.kind = 3, "kind 3"),
    ("ids of 21 bytes", |raw| raw.header.id_bytes = 21, "ids of 21"),
    (
        "a tree of another object format",
        |raw| raw.header.trees[0] = vec![1; 32],
        "object format",
    ),
];

/// Bundles that do not match the repository or the settings.
const OF_OTHERS: &[(&str, Change, &str)] = &[
    (
        "something else",
        |raw| raw.magic = b"PK\x03\x04aaaa".to_vec(),
        "not a bundle",
    ),
    ("a newer format", |raw| raw.format = 4, "format 4"),
    ("another recipe", |raw| raw.header.recipe ^= 1, "extraction recipe"),
    ("another profile", |raw| raw.header.profile[0] ^= 1, "embedding profile"),
    (
        "another object format",
        |raw| (raw.header.id_bytes, raw.header.trees) = (32, vec![vec![1; 32]]),
        "object format",
    ),
    (
        "files of another format",
        |raw| raw.header.formats.0 += 1,
        "wrong format",
    ),
];

/// Entries that differ from the header.
const LYING_ENTRIES: &[(&str, Change, &str)] = &[
    ("a shorter length", |raw| raw.header.entries[0].length -= 1, "damaged"),
    ("a longer length", |raw| raw.header.entries[0].length += 1, "damaged"),
    ("another hash", |raw| raw.header.entries[1].hash[0] ^= 1, "hash"),
    ("a shorter frame", |raw| raw.header.entries[0].n_packed -= 1, "damaged"),
    ("a longer frame", |raw| raw.header.entries[0].n_packed += 1, "damaged"),
    ("something behind", |raw| raw.after = b"x".to_vec(), "follows"),
    ("a bundle behind", |raw| raw.after = raw.to_bytes(), "follows"),
    (
        "no zstd",
        |raw| {
            let bytes = raw.opened(0);
            raw.put_frame(0, &bytes, bytes.clone())
        },
        "damaged",
    ),
    (
        "a bomb that says that it is small",
        |raw| {
            let (small, bomb) = (
                vec![0; 1 << 20],
                zstd::stream::encode_all(&*vec![0; 1 << 28], 3).unwrap(),
            );
            raw.put_frame(0, &small, bomb);
        },
        "damaged",
    ),
    (
        "a bomb that says what it is",
        |raw| raw.put(0, &vec![0; 1 << 27]),
        "bytes in",
    ),
    (
        "two frames",
        |raw| {
            let bytes = raw.opened(0);
            let (one, other) = bytes.split_at(bytes.len() / 2);
            let frames = [one, other]
                .map(|half| zstd::stream::encode_all(half, 3).unwrap())
                .concat();
            raw.put_frame(0, &bytes, frames);
        },
        "damaged",
    ),
    (
        "a frame that is skipped",
        |raw| {
            let bytes = raw.opened(0);
            let frame = [&b"\x50\x2a\x4d\x18\x04\0\0\0abcd"[..], &raw.frames[0]].concat();
            raw.put_frame(0, &bytes, frame);
        },
        "damaged",
    ),
    (
        "a window beyond the limit",
        |raw| {
            let bytes = raw.opened(0);
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
            encoder.window_log(30).unwrap();
            encoder.write_all(&bytes).unwrap();
            raw.put_frame(0, &bytes, encoder.finish().unwrap());
        },
        "damaged",
    ),
    ("no artifacts", |raw| raw.put(0, b"nonsense"), "damaged"),
    ("no vectors", |raw| raw.put(1, b"nonsense"), "vector"),
    (
        "vectors for artifacts",
        |raw| {
            let bytes = raw.opened(1);
            raw.put(0, &bytes)
        },
        "has format",
    ),
    ("nothing in an entry", |raw| raw.put(0, b""), "damaged"),
    ("artifacts of another recipe", |raw| patch_recipe(raw), "damaged"),
];

fn name(raw: &mut Raw, name: &str) {
    name.clone_into(&mut raw.header.entries[0].name);
}

/// The recipe is in the first section, which has its own checksum.
fn patch_recipe(raw: &mut Raw) {
    let mut bytes = raw.opened(0);
    let at = bytes.len() - 1;
    bytes[at] ^= 1;
    raw.put(0, &bytes);
}

#[test]
fn bundles_that_lie_are_refused() {
    let victim = Victim::new();
    for (about, change, said) in LYING_HEADERS.iter().chain(OF_OTHERS).chain(LYING_ENTRIES) {
        let mut raw = victim.honest.clone();
        change(&mut raw);
        victim.refuses(about, &raw.to_bytes(), &[], said);
    }
    // Imports the honest bundle last, to show that the others were not refused for another reason.
    call_in(victim.repo.root(), &["import", "-"], &victim.honest.to_bytes()).expect(0);
}

#[test]
fn cut_and_flipped_bundles_are_refused() {
    let victim = Victim::new();
    let good = victim.honest.to_bytes();
    for length in [0, 1, 7, 8, 15, 47, 48, 60, good.len() / 2, good.len() - 1] {
        victim.refuses(&format!("cut at {length}"), &good[..length], &[], "");
    }
    let folder = tempfile::tempdir().unwrap();
    let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
    let read = |bytes: &[u8]| BundleFile::open(bytes)?.stage(&sidecar);
    let opened = |bytes: &[u8]| Some(read(bytes).ok()?.iter().map(|entry| entry.to_vec()).collect::<Vec<_>>());
    let whole = opened(&good).unwrap();
    assert_eq!(whole.len(), 2);
    let step = good.len() / 700 + 1;
    for at in (0..good.len()).step_by(step) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        // Some bits of a compressed frame do not affect its content.
        assert!(opened(&bad).is_none_or(|opened| opened == whole), "byte {at}");
    }
    let mut left = files_below(folder.path());
    left.retain(|path, _| path.to_string_lossy().contains(".writing-"));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_bundle_that_needs_more_than_there_is_room_for_is_refused_before_it_is_opened() {
    let victim = Victim::new();
    let mut raw = victim.honest.clone();
    // 4,000 parts with entries of 256 MiB each, with packed sizes that are large enough to pass the ratio check.
    raw.header.parts = vec![(1, 1); 4000];
    let entry = |name: String| RawEntry {
        name,
        length: 256 << 20,
        hash: [0; 32],
        n_packed: 2 << 20,
    };
    let names = (0..4000).flat_map(|part| ["records", "vectors"].map(|stem| format!("{stem}-{part:04}")));
    raw.header.entries = names.map(entry).collect();
    victim.refuses("two terabytes", &raw.to_bytes(), &[], "are available");
}

#[test]
fn what_is_not_signed_by_who_is_trusted_is_refused() {
    let victim = Victim::new();
    let trust: &[&str] = &["--trust", PUBLIC_KEY];
    victim.refuses("unsigned", &victim.honest.to_bytes(), trust, "not signed by");
    let key = victim.repo.beside("other/key.pem");
    fs::write(&key, PRIVATE_KEY).unwrap();
    let args = ["export", "-", "-q", "--sign", "key.pem"];
    let signed = call_in(&victim.repo.beside("other"), &args, b"").expect(0).stdout;
    fs::remove_file(&key).unwrap();
    let signed = Raw::parse(&signed);
    let other: &[&str] = &[
        "--trust",
        "20bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1",
    ];
    victim.refuses("signed by another", &signed.to_bytes(), other, "but by");
    let mut changed = signed.clone();
    changed.header.trees.clear();
    victim.refuses("changed since", &changed.to_bytes(), &[], "signature");
    let mut changed = signed.clone();
    changed.signature[0] = 2;
    victim.refuses("another kind of signature", &changed.to_bytes(), &[], "signature");
    let mut changed = signed.clone();
    *changed.signature.last_mut().unwrap() ^= 1;
    victim.refuses("another signature", &changed.to_bytes(), trust, "signature");
    victim.refuses("no key", b"", &["--trust", "no key"], "public key");
    call_in(
        victim.repo.root(),
        &["import", "-", "--trust", PUBLIC_KEY],
        &signed.to_bytes(),
    )
    .expect(0);
}

#[test]
fn a_bundle_of_another_repository_is_refused() {
    let victim = Victim::new();
    let stranger = TestRepo::new("//- other.rs\nfn somewhere_else() {}\n");
    let bundle = call_in(stranger.root(), &["export", "-", "-q"], b"").expect(0).stdout;
    victim.refuses("a stranger's", &bundle, &[], "in this repository");
}

#[test]
fn odd_files_are_no_bundles() {
    let victim = Victim::new();
    let root = victim.repo.root();
    for path in [".", "absent", "/dev/null"] {
        call_in(root, &["import", path], b"").expect(2);
    }
    assert!(Path::new(root).exists());
    call_in(root, &["import", "--inspect", "-"], b"nonsense").expect(2);
}

/// Returns the artifact file with the extraction of one indexed blob changed.
fn poisoned(bytes: Vec<u8>, change: impl Fn(&mut Extraction)) -> Vec<u8> {
    let file = ArtifactFile::from_bytes(Path::new("records"), bytes).unwrap();
    let mut writer = ArtifactWriter::new(file.recipe());
    let extraction_of = |blob| {
        let mut extraction = file.extraction(blob).ok()?;
        (extraction.references, extraction.bindings) = file.links(blob).ok()?;
        Some(extraction)
    };
    // Selects the last blob, which the victim has not indexed yet.
    let is_rich = |found: &Extraction| !found.definitions.is_empty() && !found.references.is_empty();
    let changed = (0..file.n_blobs()).rfind(|&blob| extraction_of(blob).as_ref().is_some_and(is_rich));
    for blob in 0..file.n_blobs() {
        let key = file.key(blob).unwrap();
        match file.status(blob).unwrap() {
            Status::Skipped(reason) => writer.push_skipped(key, reason),
            Status::Indexed => {
                let mut extraction = extraction_of(blob).unwrap();
                if changed == Some(blob) {
                    change(&mut extraction);
                }
                let docs: Vec<u32> = file.docs(blob).collect();
                let docs: Vec<u32> = extraction
                    .chunks
                    .iter()
                    .enumerate()
                    .map(|(at, _)| docs[at.min(docs.len() - 1)])
                    .collect();
                writer.push(key, file.lang(blob).unwrap(), &extraction, &docs);
            }
        }
    }
    assert!(changed.is_some());
    writer.finish()
}

/// Returns the vectors in reverse order.
fn reversed(bytes: Vec<u8>) -> Vec<u8> {
    let vectors = VectorFile::from_bytes(Path::new("vectors"), bytes).unwrap();
    let mut writer = VectorWriter::new(vectors.dim(), vectors.quantisation(), vectors.profile()).unwrap();
    for row in (0..vectors.len()).rev() {
        writer.copy_row(&vectors, row).unwrap();
    }
    writer.finish()
}

type Poison = fn(&mut Extraction);

#[test]
fn records_that_are_not_true_are_refused() {
    let victim = Victim::new();
    let changes: &[(&str, Poison)] = &[
        ("another name", |poison| poison.definitions[0].name = "evil".to_owned()),
        ("a place outside", |poison| poison.definitions[0].range.end = 1 << 30),
        ("another reference", |poison| {
            poison.references[0].name = "evil".to_owned()
        }),
        ("a chunk outside", |poison| {
            poison.chunks.last_mut().unwrap().range.end += 1
        }),
        ("a chunk that is not there", |poison| poison.chunks.truncate(0)),
        ("a chunk of nothing", |poison| poison.chunks[0].definition = Some(99)),
        ("lines of another file", |poison| poison.n_lines = 1 << 20),
        ("a line outside", |poison| poison.chunks[0].end_line = 1 << 20),
        ("no references", |poison| poison.references.clear()),
        ("a binding outside", |poison| poison.bindings[0].scope.end = 1 << 30),
    ];
    for (about, change) in changes {
        let mut raw = victim.honest.clone();
        raw.put(0, &poisoned(raw.opened(0), change));
        victim.refuses(about, &raw.to_bytes(), &[], "invalid record");
    }

    // A text that is marked as skipped, and vectors of other texts.
    let mut raw = victim.honest.clone();
    let file = ArtifactFile::from_bytes(Path::new("records"), raw.opened(0)).unwrap();
    let mut writer = ArtifactWriter::new(file.recipe());
    for blob in 0..file.n_blobs() {
        writer.push_skipped(file.key(blob).unwrap(), SkipReason::Binary);
    }
    raw.put(0, &writer.finish());
    victim.refuses("all of it binary", &raw.to_bytes(), &[], "invalid record");

    let mut raw = victim.honest.clone();
    let changed = reversed(raw.opened(1));
    raw.put(1, &changed);
    victim.refuses("vectors of other texts", &raw.to_bytes(), &[], "invalid record");
    call_in(victim.repo.root(), &["import", "-"], &victim.honest.to_bytes()).expect(0);
}

/// A bundle from a trusted signer is imported without a comparison. False content is found later by a deep
/// verification, and repaired.
#[test]
fn what_was_believed_and_is_not_true_is_found_by_the_deep_check_and_mended() {
    let repo = project();
    let archive = repo.beside("archive");
    let file = archive.to_str().unwrap();
    call_in(repo.root(), &["ci", "save", file], b"").expect(0);
    let honest = Raw::parse(&fs::read(&archive).unwrap());
    let changes: [(&str, Change); 2] = [
        ("another name", |raw| {
            let changed = poisoned(raw.opened(0), |poison| poison.definitions[0].name = "evil".to_owned());
            raw.put(0, &changed);
        }),
        ("vectors of other texts", |raw| {
            let changed = reversed(raw.opened(1));
            raw.put(1, &changed);
        }),
    ];
    for (about, change) in changes {
        let mut raw = honest.clone();
        change(&mut raw);
        fs::write(&archive, raw.to_bytes()).unwrap();
        let clone = repo.clone_with(about, &[]);
        let answer = call_in(clone.root(), &["ci", "restore", file, "--json"], b"")
            .expect(0)
            .json();
        assert_eq!(answer["adopted"], true, "{about}");
        call_in(clone.root(), &["verify"], b"").expect(0);
        call_in(clone.root(), &["verify", "--deep"], b"").expect(1);
        call_in(clone.root(), &["verify", "--deep", "--repair"], b"");
        call_in(clone.root(), &["verify", "--deep"], b"").expect(0);
        // A clone that does not trust the signer does not import the bundle.
        let other = repo.clone_with(&format!("{about}, compared"), &[]);
        let called = call_in(other.root(), &["ci", "restore", file, "--compare"], b"").expect(2);
        assert!(called.stderr.contains("invalid record"), "{about}: {}", called.stderr);
    }
}

/// Corrects the checksums in a file of sections, as its maker could.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    use xxhash_rust::xxh3::xxh3_64;
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let n_sections = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    for entry in (0..n_sections).map(|at| 16 + at * 40) {
        let (offset, length) = (number(&bytes, entry + 16), number(&bytes, entry + 24));
        let sum = xxh3_64(&bytes[offset..offset + length]);
        bytes[entry + 32..entry + 40].copy_from_slice(&sum.to_le_bytes());
    }
    let end = 16 + n_sections * 40;
    let sum = xxh3_64(&bytes[..end]);
    bytes[end..end + 8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The sections of a file: their offsets and lengths.
fn sections(bytes: &[u8]) -> Vec<(String, usize, usize)> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let n_sections = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    let entries = (0..n_sections).map(|at| 16 + at * 40);
    let name = |entry: usize| {
        String::from_utf8_lossy(&bytes[entry..entry + 16])
            .trim_end_matches('\0')
            .to_owned()
    };
    entries
        .map(|entry| (name(entry), number(entry + 16), number(entry + 24)))
        .collect()
}

/// A segment from a trusted signer is used as it is. Damage in it is reported with what repairs it.
#[test]
fn damage_in_a_segment_that_was_believed_is_reported_and_found() {
    let repo = project();
    let archive = repo.beside("archive");
    let file = archive.to_str().unwrap();
    call_in(repo.root(), &["ci", "save", file], b"").expect(0);
    let honest = Raw::parse(&fs::read(&archive).unwrap());
    let poisons: &[(&str, Poison)] = &[
        ("a place outside", |poison| poison.definitions[0].range.end = 1 << 30),
        ("a chunk outside", |poison| {
            poison.chunks.last_mut().unwrap().range.end = 1 << 30
        }),
        ("a chunk of nothing", |poison| poison.chunks[0].definition = Some(99)),
        ("a binding outside", |poison| poison.bindings[0].scope.end = 1 << 30),
    ];
    let mut damaged: Vec<(String, Raw)> = Vec::new();
    for (about, poison) in poisons {
        let mut raw = honest.clone();
        raw.put(0, &poisoned(raw.opened(0), poison));
        damaged.push(((*about).to_owned(), raw));
    }
    for at in [0, 2] {
        let bytes = honest.opened(at);
        for (name, offset, length) in sections(&bytes) {
            let step = match name.as_str() {
                "core" | "refs" => length / 2,
                "t.term" | "t.idx" => length / if is_long() { 60 } else { 3 },
                _ => continue,
            };
            for place in (0..length).step_by(step).skip(1) {
                let mut bytes = bytes.clone();
                bytes[offset + place] ^= 0xa5;
                let mut raw = honest.clone();
                raw.put(at, &resealed(bytes));
                damaged.push((format!("{name} at {place} of {length}"), raw));
            }
        }
    }
    for (number, (about, raw)) in damaged.iter().enumerate() {
        fs::write(&archive, raw.to_bytes()).unwrap();
        let clone = repo.clone_with(&format!("clone{number}"), &[]);
        let call = |args: &[&str]| call_in(clone.root(), args, b"");
        // Some damage is noticed at once.
        if call(&["ci", "restore", file]).code == 2 {
            continue;
        }
        // A word that became another word is found only by the deep check.
        let mut must_be_found = !about.starts_with("t.");
        for args in [
            &["search", "retry upload"][..],
            &["symbol", "retry_upload", "--refs"],
            &["outline", "."],
            &["outline", "--view", "map"],
            &["read", "src/upload.rs#retry_upload"],
            &["graph", "callers", "retry_upload"],
            &["graph", "hubs"],
        ] {
            let called = call(args);
            let is_plain = called.code != 2 || called.stderr.contains("codescout verify --repair");
            assert!(is_plain, "{about}, {args:?}: {}", called.stderr);
            must_be_found |= called.code == 2;
        }
        let verified = call(&["verify"]);
        assert!(verified.code == 1 || !must_be_found, "{about}: {}", verified.text());
        call(&["verify", "--deep", "--repair"]);
        let found = call(&["search", "retry upload"]).expect(0).text();
        assert!(found.contains("src/upload.rs"), "{about}: {found}");
        call(&["verify"]).expect(0);
        fs::remove_dir_all(clone.root()).unwrap();
    }
}

#[test]
fn nothing_is_indexed_for_trees_that_a_bundle_only_names() {
    let victim = Victim::new();
    let repo = &victim.repo;
    repo.write("src/other.rs", "pub fn not_in_the_bundle() {}\n");
    repo.commit("another");
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]);
    let digits = tree.trim().as_bytes().chunks(2);
    let id = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
    let mut raw = victim.honest.clone();
    raw.header.trees.push(id.collect());
    let answer = call_in(repo.root(), &["import", "-", "--json"], &raw.to_bytes())
        .expect(0)
        .json();
    assert_eq!(answer["indexed_trees"].as_array().unwrap().len(), 1, "{answer}");
    let indexed = call_in(repo.root(), &["index", "--json"], b"").expect(0).json();
    assert_eq!(indexed["revisions"][0]["new_blobs"], 1, "{indexed}");
}
