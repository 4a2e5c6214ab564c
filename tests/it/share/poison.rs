//! Changes every value in a bundle in turn, with correct checksums. Values that are compared are refused, and no answer
//! changes.

use std::path::Path;

use codescout::artifact::{ArtifactFile, ArtifactKey, ArtifactWriter, SkipReason, Status};
use codescout::extract::{
    Chunk, ChunkKind, Definition, DefinitionKind, Extraction, Import, Reference, Value, languages,
};
use codescout::index::dense::FORMAT;
use codescout::model::{ByteRange, Lang};
use codescout::sidecar::{SectionFile, SectionWriter};

use super::hostile_remote::Trap;
use super::project;
use super::raw::Raw;
use crate::cli::call_in;
use crate::indexed::{Answer, Contents, Indexed};
use crate::support::TestRepo;

const QUERIES: [&str; 5] = [
    "retry_upload",
    "where is a failed upload retried",
    "evict",
    "Installing",
    "point",
];

/// Creates a project whose records use every field.
fn rich_project() -> TestRepo {
    let repo = project();
    repo.write(
        "src/point.rs",
        "use std::fmt::{self, Display as Show};\npub use crate::upload::retry_upload;\n\n/// A place.\npub struct Point { x: i32 }\n\n\
         impl Show for Point {\n    /// Writes it.\n    fn fmt(&self) -> fmt::Result { fmt::write(self.x); helper() }\n}\n",
    );
    // Long enough for more than one chunk.
    let function = |n| {
        format!(
            "pub fn long_{n}() {{\n{}}}\n\n",
            format!("    measure_{n}(Point::x());\n").repeat(40)
        )
    };
    repo.write("src/long.rs", (0..4).map(function).collect::<String>());
    repo.commit("a bit of everything");
    repo
}

fn has_taken_something(repo: &TestRepo) -> bool {
    let sidecar = Indexed::new(repo.root()).workspace.storage.open_with_state().unwrap();
    let state = sidecar.and_then(|(_, state)| state);
    state.is_some_and(|state| !state.segments.is_empty())
}

/// Returns the answers of a clone after indexing everything.
fn told_by(repo: &TestRepo) -> (Contents, Vec<Answer>) {
    let indexed = Indexed::new(repo.root());
    let view = indexed.view("HEAD");
    (indexed.contents(&view), indexed.answers(&view, &QUERIES))
}

/// One blob in the form that the writer uses.
struct Recorded {
    key: ArtifactKey,
    lang: Lang,
    outcome: Result<Extraction, SkipReason>,
    docs: Vec<u32>,
}

fn recorded(bytes: &[u8]) -> (u64, Vec<Recorded>) {
    let file = ArtifactFile::from_bytes(Path::new("records"), bytes.to_vec()).unwrap();
    let blob = |blob| Recorded {
        key: file.key(blob).unwrap(),
        lang: file.lang(blob).unwrap(),
        outcome: match file.status(blob).unwrap() {
            Status::Skipped(reason) => Err(reason),
            Status::Indexed => {
                let (references, bindings) = file.links(blob).unwrap();
                Ok(Extraction {
                    references,
                    bindings,
                    ..file.extraction(blob).unwrap()
                })
            }
        },
        docs: file.docs(blob).collect(),
    };
    (file.recipe(), (0..file.n_blobs()).map(blob).collect())
}

fn written((recipe, blobs): (u64, Vec<Recorded>)) -> Vec<u8> {
    let mut writer = ArtifactWriter::new(recipe);
    for blob in blobs {
        match &blob.outcome {
            Err(reason) => writer.push_skipped(blob.key, *reason),
            Ok(extraction) => {
                let mut docs = blob.docs;
                docs.resize(extraction.chunks.len(), 0);
                writer.push(blob.key, blob.lang, extraction, &docs);
            }
        }
    }
    writer.finish()
}

type OfExtraction = fn(&mut Extraction) -> Option<()>;
type OfBlobs = fn(&mut Vec<Recorded>);
type OfVectors = fn(&mut Row<'_>);

fn definition(extraction: &mut Extraction, is_it: fn(&Definition) -> bool) -> Option<&mut Definition> {
    extraction.definitions.iter_mut().find(|definition| is_it(definition))
}

fn reference(extraction: &mut Extraction) -> Option<&mut Reference> {
    extraction
        .references
        .iter_mut()
        .find(|reference| reference.qualifier.is_some())
}

fn import(extraction: &mut Extraction) -> Option<&mut Import> {
    extraction.imports.iter_mut().find(|import| !import.names.is_empty())
}

fn chunk(extraction: &mut Extraction) -> Option<&mut Chunk> {
    extraction.chunks.iter_mut().find(|chunk| chunk.definition.is_some())
}

fn moved(range: &mut ByteRange) {
    *range = ByteRange::new(range.start + 1, range.end);
}

/// Changes of each field of an extraction.
#[expect(clippy::unit_arg, reason = "a change is made or there is nothing to change")]
const EXTRACTIONS: &[(&str, OfExtraction)] = &[
    ("lines", |it| Some(it.n_lines -= 1)),
    ("parse errors", |it| Some(it.n_parse_errors += 1)),
    ("line of an error", |it| Some(it.first_error_line += 1)),
    ("name", |it| Some(definition(it, |_| true)?.name = "evil".to_owned())),
    ("kind", |it| {
        Some(definition(it, |_| true)?.kind = DefinitionKind::Macro)
    }),
    ("container", |it| {
        Some(definition(it, |it| it.container.is_some())?.container = None)
    }),
    ("qualifier", |it| {
        Some(definition(it, |_| true)?.qualifier = Some("evil".to_owned()))
    }),
    ("range", |it| Some(moved(&mut definition(it, |_| true)?.range))),
    ("place of the name", |it| {
        Some(moved(&mut definition(it, |_| true)?.name_range))
    }),
    ("signature", |it| Some(moved(&mut definition(it, |_| true)?.signature))),
    ("doc comment", |it| {
        Some(moved(definition(it, |it| it.doc.is_some())?.doc.as_mut()?))
    }),
    ("no doc comment", |it| {
        Some(definition(it, |it| it.doc.is_some())?.doc = None)
    }),
    ("a definition less", |it| it.definitions.pop().map(drop)),
    ("module", |it| Some(import(it)?.module = "evil".to_owned())),
    ("imported name", |it| {
        Some(import(it)?.names[0].name = "evil".to_owned())
    }),
    ("alias", |it| Some(import(it)?.names[0].alias = Some("evil".to_owned()))),
    ("handed on", |it| Some(import(it)?.is_reexport ^= true)),
    ("place of an import", |it| Some(moved(&mut import(it)?.range))),
    ("level", |it| Some(it.headings.first_mut()?.level += 1)),
    ("title", |it| Some(it.headings.first_mut()?.title = "evil".to_owned())),
    ("place of a heading", |it| {
        Some(moved(&mut it.headings.first_mut()?.range))
    }),
    ("reference", |it| Some(reference(it)?.name = "evi".to_owned())),
    ("qualifier of a reference", |it| {
        Some(reference(it)?.qualifier = Some("evil".to_owned()))
    }),
    ("kind of a reference", |it| {
        let other = it
            .references
            .iter()
            .find(|other| other.kind != it.references[0].kind)?
            .kind;
        it.references[0].kind = other;
        Some(())
    }),
    ("place of a reference", |it| Some(moved(&mut reference(it)?.range))),
    ("a reference less", |it| it.references.pop().map(drop)),
    ("receiver", |it| {
        let mut members = it.references.iter_mut();
        Some(members.find(|member| member.receiver != Value::None)?.receiver = Value::None)
    }),
    ("number of arguments", |it| {
        let mut calls = it.references.iter_mut();
        Some(*calls.find_map(|call| call.n_arguments.as_mut())? += 1)
    }),
    ("name of a binding", |it| {
        Some(it.bindings.first_mut()?.name = "evil".to_owned())
    }),
    ("place of a binding", |it| Some(it.bindings.first_mut()?.start += 1)),
    ("scope of a binding", |it| {
        Some(moved(&mut it.bindings.first_mut()?.scope))
    }),
    ("value of a binding", |it| {
        let mut bindings = it.bindings.iter_mut();
        Some(bindings.find(|binding| binding.value != Value::Other)?.value = Value::Other)
    }),
    ("a binding less", |it| it.bindings.pop().map(drop)),
    ("first line", |it| {
        let chunk = it.chunks.iter_mut().find(|chunk| chunk.start_line < chunk.end_line)?;
        Some(chunk.start_line += 1)
    }),
    ("last line", |it| {
        let chunk = it.chunks.iter_mut().find(|chunk| chunk.start_line < chunk.end_line)?;
        Some(chunk.end_line -= 1)
    }),
    ("kind of a chunk", |it| Some(chunk(it)?.kind = ChunkKind::Window)),
    ("what a chunk is of", |it| Some(chunk(it)?.definition = None)),
    ("part", |it| Some(chunk(it)?.part += 1)),
    ("a chunk that overlaps", |it| {
        let last = it.chunks.last().cloned()?;
        Some(it.chunks.push(last))
    }),
    ("chunks joined", |it| {
        let last = it.chunks.pop()?;
        Some(it.chunks.last_mut()?.range.end = last.range.end)
    }),
];

/// Changes of the other data of blobs.
const BLOBS: &[(&str, OfBlobs)] = &[
    ("language", |blobs| {
        blobs
            .iter_mut()
            .filter(|it| it.outcome.is_ok())
            .for_each(|it| it.lang.0 ^= 1)
    }),
    ("left out", |blobs| {
        blobs.iter_mut().for_each(|it| it.outcome = Err(SkipReason::Generated))
    }),
    ("reason", |blobs| {
        let left_out = blobs.iter_mut().filter(|it| it.outcome.is_err());
        left_out.for_each(|it| it.outcome = Err(SkipReason::Minified));
    }),
    ("not left out", |blobs| {
        let left_out = blobs.iter_mut().filter(|it| it.outcome.is_err());
        left_out.for_each(|it| it.outcome = Ok(Extraction::default()));
    }),
    ("vectors of other chunks", |blobs| {
        let mut docs: Vec<u32> = blobs.iter().flat_map(|it| it.docs.clone()).collect();
        docs.rotate_left(1);
        let mut docs = docs.into_iter();
        blobs
            .iter_mut()
            .for_each(|it| it.docs.iter_mut().for_each(|doc| *doc = docs.next().unwrap()));
    }),
    ("one vector for all", |blobs| {
        blobs.iter_mut().for_each(|it| it.docs.fill(0))
    }),
    ("vectors that are not there", |blobs| {
        blobs.iter_mut().for_each(|it| it.docs.fill(u32::MAX))
    }),
];

/// A row of a vector file.
pub(super) struct Row<'a> {
    codes: &'a mut [u8],
    factor: &'a mut [u8; 2],
    weight: &'a mut [u8; 2],
}

impl Row<'_> {
    /// Multiplies the factor, a half-precision number, by a power of two.
    pub(super) fn scale(&mut self, exponent: u16) {
        *self.factor = (u16::from_le_bytes(*self.factor) + (exponent << 10)).to_le_bytes();
    }
}

const VECTORS: &[(&str, OfVectors)] = &[
    ("factor a thousandfold", |row| row.scale(10)),
    ("factor twice", |row| row.scale(1)),
    ("factor a little more", |row| row.factor[0] ^= 0x80),
    ("an infinite factor", |row| *row.factor = 0x7c00u16.to_le_bytes()),
    ("a factor that is no number", |row| {
        *row.factor = 0x7e00u16.to_le_bytes()
    }),
    ("a negative factor", |row| row.factor[1] |= 0x80),
    ("no factor", |row| *row.factor = [0; 2]),
    ("weight", |row| row.weight[1] ^= 4),
    ("an infinite weight", |row| *row.weight = 0x7c00u16.to_le_bytes()),
    ("no weight", |row| *row.weight = [0; 2]),
    ("one component a little more", |row| row.codes[0] ^= 1),
    ("all components", |row| {
        row.codes.iter_mut().for_each(|code| *code ^= 0xff)
    }),
];

pub(super) fn with_vectors(bytes: Vec<u8>, change: impl Fn(&mut Row<'_>)) -> Vec<u8> {
    let names = ["codes", "factors", "weights", "meta"];
    let mut sections = sections(bytes, FORMAT, names);
    let [codes, factors, weights, _] = &mut sections;
    let row_bytes = codes.len() / (factors.len() / 2);
    let halves = factors.as_chunks_mut().0.iter_mut().zip(weights.as_chunks_mut().0);
    let rows = codes.chunks_exact_mut(row_bytes).zip(halves);
    rows.for_each(|(codes, (factor, weight))| change(&mut Row { codes, factor, weight }));
    with_sections(FORMAT, names, sections)
}

/// The sections of a file.
pub(super) fn sections<const N: usize>(bytes: Vec<u8>, format: u32, names: [&str; N]) -> [Vec<u8>; N] {
    let file = SectionFile::from_bytes(Path::new("file"), bytes.into(), format).unwrap();
    names.map(|name| file.section(name).unwrap().to_vec())
}

/// A file with valid checksums.
pub(super) fn with_sections<const N: usize>(format: u32, names: [&'static str; N], sections: [Vec<u8>; N]) -> Vec<u8> {
    let mut writer = SectionWriter::new(format);
    names
        .into_iter()
        .zip(sections)
        .for_each(|(name, bytes)| writer.add(name, bytes));
    writer.finish()
}

/// Returns bundles with one change each.
fn poisons(honest: &Raw) -> Vec<(String, Raw)> {
    let (artifacts, vectors) = (honest.opened(0), honest.opened(1));
    let mut all = Vec::new();
    let mut put = |about: &str, at: usize, bytes: Vec<u8>| {
        assert!(bytes != honest.opened(at), "{about} changes nothing");
        let mut raw = honest.clone();
        raw.put(at, &bytes);
        all.push((about.to_owned(), raw));
    };
    for (about, change) in EXTRACTIONS {
        let (recipe, mut blobs) = recorded(&artifacts);
        let is_changed = |blob: &mut Recorded| {
            let Ok(extraction) = &mut blob.outcome else {
                return false;
            };
            let before = extraction.clone();
            let has_it = change(extraction).is_some() && *extraction != before;
            if !has_it {
                *extraction = before;
            }
            has_it
        };
        assert!(blobs.iter_mut().any(is_changed), "{about}: no blob has it");
        put(about, 0, written((recipe, blobs)));
    }
    for (about, change) in BLOBS {
        let (recipe, mut blobs) = recorded(&artifacts);
        change(&mut blobs);
        put(about, 0, written((recipe, blobs)));
    }
    for (about, change) in VECTORS {
        put(about, 1, with_vectors(vectors.clone(), change));
    }
    all
}

#[test]
fn every_value_that_is_changed_is_found_where_all_is_compared() {
    let repo = rich_project();
    let clone = repo.clone_with("clone", &[]);
    let honest = Raw::parse(&call_in(repo.root(), &["export", "-", "-q"], b"").expect(0).stdout);
    // Each case needs a process.
    let step = if crate::support::is_long() { 1 } else { 5 };
    for (about, raw) in poisons(&honest).into_iter().step_by(step) {
        let called = call_in(clone.root(), &["import", "-", "--compare-all"], &raw.to_bytes());
        assert_eq!(called.code, 2, "{about}: {}{}", called.text(), called.stderr);
        assert!(!called.stderr.contains("panicked"), "{about}: {}", called.stderr);
        assert!(!has_taken_something(&clone), "{about}");
    }
    assert_eq!(told_by(&clone), told_by(&repo));
}

#[test]
fn a_blob_is_not_recorded_in_any_number_of_languages() {
    let repo = project();
    repo.write("notes.txt", "some words\n".repeat(90_000));
    repo.commit("a large file");
    let honest = Raw::parse(&call_in(repo.root(), &["export", "-", "-q"], b"").expect(0).stdout);
    let in_languages = |langs: &[Lang]| {
        let (recipe, mut blobs) = recorded(&honest.opened(0));
        let is_large = |blob: &Recorded| {
            let chunks = blob.outcome.as_ref().map_or(&[][..], |extraction| &extraction.chunks);
            chunks.iter().any(|chunk| chunk.range.end > 100_000)
        };
        let large = blobs.iter().position(is_large).unwrap();
        let also = langs.iter().map(|lang| {
            let blob = &blobs[large];
            let key = ArtifactKey {
                lang: *lang,
                ..blob.key
            };
            Recorded {
                key,
                lang: blob.lang,
                outcome: blob.outcome.clone(),
                docs: blob.docs.clone(),
            }
        });
        let also: Vec<Recorded> = also.collect();
        blobs.extend(also);
        let mut raw = honest.clone();
        raw.header.parts[0].0 = blobs.len() as u32;
        raw.put(0, &written((recipe, blobs)));
        raw
    };
    let all: Vec<Lang> = languages().map(|language| language.lang).collect();
    for (langs, said) in [(&[Lang(9_999)][..], "unknown language"), (&all, "too many languages")] {
        let clone = repo.clone_with(said, &[]);
        let called = call_in(clone.root(), &["import", "-"], &in_languages(langs).to_bytes());
        assert_eq!(called.code, 2, "{}{}", called.text(), called.stderr);
        assert!(called.stderr.contains(said), "{}", called.stderr);
        assert!(!has_taken_something(&clone));
    }
}

/// Changes that are not compared, because the values are not used or are also valid.
#[test]
fn what_is_taken_where_all_is_compared_changes_no_answer() {
    let repo = rich_project();
    let expected = told_by(&repo);
    let export = |args: &[&str]| Raw::parse(&call_in(repo.root(), args, b"").expect(0).stdout);
    let (records, ready) = (
        export(&["export", "-", "-q"]),
        export(&["export", "-", "-q", "--ready"]),
    );

    // The lexical index from an untrusted producer is not used; it is built locally.
    let mut words = ready.clone();
    words.put(2, b"nonsense");
    // Blobs and chunks have other numbers.
    let mut order = records.clone();
    let (recipe, mut blobs) = recorded(&records.opened(0));
    blobs.reverse();
    order.put(0, &written((recipe, blobs)));
    for (about, raw) in [("words", words), ("order", order)] {
        let clone = repo.clone_with(about, &[]);
        call_in(clone.root(), &["import", "-", "--compare-all"], &raw.to_bytes()).expect(0);
        assert_eq!(told_by(&clone), expected, "{about}");
        call_in(clone.root(), &["verify", "--deep"], b"").expect(0);
    }
}

#[test]
fn an_archive_or_a_part_on_a_remote_is_compared_in_the_same_way() {
    let repo = rich_project();
    let archive = repo.beside("archive");
    let file = archive.to_str().unwrap();
    call_in(repo.root(), &["ci", "save", file], b"").expect(0);
    let honest = Raw::parse(&std::fs::read(&archive).unwrap());
    let clone = repo.clone_with("clone", &[]);
    let trap = Trap::new();
    let index = trap.part();
    // One of each kind, because they are imported in the same way as by `import`.
    for (about, change) in VECTORS.iter().step_by(10) {
        let mut raw = honest.clone();
        raw.put(1, &with_vectors(honest.opened(1), change));
        std::fs::write(&archive, raw.to_bytes()).unwrap();
        let called = call_in(clone.root(), &["ci", "restore", file, "--compare"], b"").expect(2);
        assert!(!called.stderr.contains("panicked"), "{about}: {}", called.stderr);
        assert!(!has_taken_something(&clone), "{about}");

        let mut raw = Raw::parse(&index);
        raw.put(1, &with_vectors(raw.opened(1), change));
        trap.put_part(&raw.to_bytes());
        let said = trap.refuses(about, &["pull", "--yes", "--compare-all"], "");
        assert!(
            said.contains("invalid record") || said.contains("damaged"),
            "{about}: {said}"
        );
        assert!(!has_taken_something(&trap.clone), "{about}");
    }
}
