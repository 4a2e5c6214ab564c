#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;

const NO_GRACE: Grace = Grace {
    period: Duration::ZERO,
    min_bytes: u64::MAX,
};

/// Returns uneven sizes without a random number generator.
fn uneven(number: u64, most: u64) -> u64 {
    1 + number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % most
}

/// Adds segments of the given sizes one by one, as updates do. Returns the final sizes, the maximum number of segments
/// and the number of bytes rewritten.
fn simulate(first: &[u64], added: impl Iterator<Item = u64>) -> (Vec<u64>, usize, u64) {
    let mut sizes = first.to_vec();
    let (mut most, mut rewritten) = (0, 0);
    for size in added {
        sizes.push(size);
        if let Some(run) = next_run(&sizes) {
            assert!(run.len() >= MIN_RUN);
            let total: u64 = sizes[run.clone()].iter().sum();
            assert!(total <= MAX_MERGED_BYTES);
            sizes.splice(run, [total]);
            rewritten += total;
        }
        most = most.max(sizes.len());
    }
    (sizes, most, rewritten)
}

#[test]
fn small_updates_leave_few_segments() {
    for most_bytes in [10_000, 100_000] {
        let first = [30 << 20, 5 << 20];
        let added: Vec<u64> = (0..300).map(|number| uneven(number, most_bytes)).collect();
        let (_, most, _) = simulate(&first, added.into_iter());
        assert!(most <= 16, "{most}");
    }
}

#[test]
fn a_byte_is_rewritten_rarely() {
    let added: Vec<u64> = (0..20_000).map(|number| uneven(number, 20_000)).collect();
    let total: u64 = added.iter().sum();
    let (sizes, most, rewritten) = simulate(&[], added.into_iter());
    // 200 MB in 20,000 updates: log2(24 MiB / 80 kB) is 8.
    assert!(rewritten < 9 * total, "{rewritten} of {total}");
    assert!(
        most < 16 + sizes.iter().filter(|&&size| is_large(size)).count(),
        "{most}"
    );
    assert_eq!(sizes.iter().sum::<u64>(), total);
}

#[test]
fn large_segments_stay_and_part_the_small_ones() {
    const LARGE: u64 = MAX_MERGED_BYTES;
    assert_eq!(next_run(&[LARGE, LARGE, LARGE]), None);
    assert_eq!(next_run(&[1; MIN_RUN - 1]), None);
    assert_eq!(next_run(&[1; MIN_RUN]), Some(0..MIN_RUN));
    let mut sizes = vec![1; MIN_RUN];
    sizes.extend([LARGE, 1]);
    assert_eq!(next_run(&sizes), Some(0..MIN_RUN));
    // The first is larger than the rest, so it waits until the rest has grown.
    let mut sizes = vec![100];
    sizes.extend([1; MIN_RUN]);
    assert_eq!(next_run(&sizes), Some(1..MIN_RUN + 1));
}

#[test]
fn hundreds_of_segments_of_an_older_build_melt_away() {
    let (sizes, _, _) = simulate(&[300_000; 400], (0..40).map(|_| 1000));
    assert!(sizes.len() < 24, "{sizes:?}");
}

#[test]
fn killed_between_files_and_state_the_old_state_stands() {
    let sample = Sample::new(MIN_RUN as u32);
    let (mut state, segments) = sample.current();
    let before = sample.answers(&segments);
    let merged = store_merged(&sample.sidecar, &segments, 0..MIN_RUN, PROFILE).unwrap();

    // A crash here: the next writer finds the old state and some unused files.
    let (again, reopened) = sample.current();
    assert_eq!(again, state);
    assert_eq!(sample.answers(&reopened), before);
    let lock = sample.sidecar.lock(Duration::from_secs(20)).unwrap();
    assert_eq!(sweep(&sample.sidecar, &again, GRACE, &lock).unwrap(), 0);
    assert_eq!(sweep(&sample.sidecar, &again, NO_GRACE, &lock).unwrap(), 3);
    assert!(
        !sample
            .sidecar
            .path(crate::sidecar::Store::Lexical, &merged.lexical.name)
            .exists()
    );
    assert_eq!(sample.answers(&sample.current().1), before);

    // The next attempt merges.
    assert_eq!(tidy(&sample.sidecar, &lock, &mut state, &reopened, PROFILE), MIN_RUN);
    let (state, compacted) = sample.current();
    assert_eq!((state.segments.len(), state.epoch), (1, again.epoch));
    assert_eq!(sample.answers(&compacted), before);
}

#[test]
fn readers_of_an_older_state_answer_or_find_the_newer_one() {
    let sample = Sample::new(MIN_RUN as u32 + 2);
    let (old_state, held) = sample.current();
    let before = sample.answers(&held);
    let lock = sample.sidecar.lock(Duration::from_secs(20)).unwrap();
    let mut state = old_state.clone();
    assert_eq!(tidy(&sample.sidecar, &lock, &mut state, &held, PROFILE), MIN_RUN + 2);
    // During the grace period, the old files remain.
    assert!(Segments::open(&sample.sidecar, &old_state, PROFILE).is_ok());
    assert_eq!(
        sweep(&sample.sidecar, &state, NO_GRACE, &lock).unwrap(),
        3 * (MIN_RUN + 2)
    );

    assert_eq!(sample.answers(&held), before, "a reader that holds them open");
    let gone = Segments::open(&sample.sidecar, &old_state, PROFILE).unwrap_err();
    assert!(gone.is_gone(), "{gone}");
    let newest = Segments::open_newest(&sample.sidecar, &old_state, PROFILE).unwrap();
    assert_eq!(newest.iter().count(), 1);
    assert_eq!(sample.answers(&newest), before, "a reader that comes late");

    let other_epoch = State {
        epoch: [9; 16],
        ..old_state
    };
    assert!(
        Segments::open_newest(&sample.sidecar, &other_epoch, PROFILE)
            .unwrap_err()
            .is_gone()
    );
}

#[test]
fn what_is_open_already_is_not_opened_again() {
    let sample = Sample::new(3);
    let (state, segments) = sample.current();
    for name in state.segments[..2].iter().map(|entry| &entry.lexical.name) {
        std::fs::remove_file(sample.sidecar.path(crate::sidecar::Store::Lexical, name)).unwrap();
    }
    let again = segments.reopen(&sample.sidecar, &state, PROFILE).unwrap();
    assert_eq!(sample.answers(&again), sample.answers(&segments));
    let shorter = State {
        segments: state.segments[..1].to_vec(),
        ..state.clone()
    };
    assert_eq!(
        segments
            .reopen(&sample.sidecar, &shorter, PROFILE)
            .unwrap()
            .iter()
            .count(),
        1
    );
    assert!(Segments::default().reopen(&sample.sidecar, &state, PROFILE).is_err());
}

use sample::{PROFILE, Sample};

/// A sidecar with segments of one blob and two documents each.
mod sample {
    use super::*;
    use crate::artifact::{ArtifactKey, ArtifactWriter};
    use crate::embed::ProfileId;
    use crate::extract::{Chunk, ChunkKind, Extraction};
    use crate::index::SegmentData;
    use crate::index::dense::{Quantisation, VectorWriter};
    use crate::index::lexical::{DocMeta, LexicalDoc, LexicalWriter, Signature};
    use crate::ingest::publish::publish_segment;
    use crate::model::{BlobId, ByteRange, ChunkKey, Lang, Oid};

    pub(super) const PROFILE: &str = "sample";
    const DIM: usize = 8;
    const LANG: Lang = Lang(1);

    pub(super) struct Sample {
        pub(super) sidecar: Sidecar,
        n_blobs: u32,
        _folder: tempfile::TempDir,
    }

    impl Sample {
        pub(super) fn new(n_segments: u32) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
            let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
            let mut state = State {
                epoch: [1; 16],
                ..State::default()
            };
            for number in 0..n_segments {
                publish_segment(&sidecar, &lock, &mut state, &segment(number), PROFILE).unwrap();
            }
            Self {
                sidecar,
                n_blobs: n_segments,
                _folder: folder,
            }
        }

        /// Opens the published state.
        pub(super) fn current(&self) -> (State, Segments) {
            let state = self.sidecar.state().unwrap().unwrap();
            let segments = Segments::open(&self.sidecar, &state, PROFILE).unwrap();
            (state, segments)
        }

        /// Formats everything that segments contain, for comparison.
        pub(super) fn answers(&self, segments: &Segments) -> Vec<String> {
            let mut answers = Vec::new();
            for blob in 0..self.n_blobs {
                assert_eq!(segments.find_blob(key(blob)), Some(blob));
                let (segment, local) = segments.of_blob(blob).unwrap();
                let extraction = segments.extraction(blob).unwrap().unwrap();
                let docs: Vec<u32> = segment.artifacts.docs(local).collect();
                let signature = segment.lexical.signature(local).0;
                answers.push(format!("{blob} {extraction:?} {docs:?} {signature:?}"));
                segment.artifacts.verify().unwrap();
            }
            for doc in 0..segments.n_docs() {
                let (segment, local) = segments.of_doc(doc).unwrap();
                let key = segment.lexical.key(local);
                assert_eq!(segments.find_doc(key), Some(doc));
                let vectors = segment.vectors.as_ref().unwrap();
                let (vector, weight) = (vectors.vector(local), vectors.weight(local));
                let meta = segments.doc_meta(doc);
                answers.push(format!("{doc} {key:?} {meta:?} {vector:?} {weight}"));
            }
            for term in ["share", "0", "3", "9"] {
                for segment in segments.iter() {
                    let found = |p: crate::index::lexical::Posting| {
                        answers.push(format!(
                            "{term} {} {} {}",
                            segment.base_doc + p.doc,
                            p.in_body,
                            p.in_name
                        ));
                    };
                    segment.lexical.postings(term, found).unwrap();
                }
            }
            answers
        }
    }

    fn key(number: u32) -> ArtifactKey {
        ArtifactKey {
            blob: BlobId(Oid::from_bytes(&[200 - number as u8; 20]).unwrap()),
            lang: LANG,
        }
    }

    fn segment(number: u32) -> SegmentData {
        let base_doc = number * 2;
        let profile = ProfileId([7; 16]);
        let mut artifacts = ArtifactWriter::new(0);
        let mut lexical = LexicalWriter::new().unwrap();
        let mut vectors = VectorWriter::new(DIM, Quantisation::default(), profile).unwrap();
        let mut extraction = Extraction::default();
        for doc in [base_doc, base_doc + 1] {
            extraction.chunks.push(Chunk {
                range: ByteRange::new(doc - base_doc, doc - base_doc + 1),
                start_line: 1,
                end_line: 1,
                kind: ChunkKind::Window,
                definition: None,
                part: 0,
            });
            let meta = DocMeta {
                n_tokens: 0,
                n_bytes: doc,
                lang: LANG,
                kind: ChunkKind::Window,
                n_definitions: 0,
            };
            let doc_key = ChunkKey([doc as u8 ^ 0x55; 16]);
            let (head, body) = ("", format!("shared {doc}"));
            let names = &["name"];
            lexical
                .add(LexicalDoc {
                    key: doc_key,
                    meta,
                    names,
                    head,
                    body: &body,
                })
                .unwrap();
            let mut vector = [0.0; DIM];
            vector[doc as usize % DIM] = 1.0;
            vectors.push(&vector, doc as f32).unwrap();
        }
        lexical.add_signature(&Signature::of(&number.to_le_bytes().repeat(3)));
        artifacts.push(key(number), LANG, &extraction, &[base_doc, base_doc + 1]);
        SegmentData {
            base_blob: number,
            n_blobs: 1,
            base_doc,
            n_docs: 2,
            artifacts: artifacts.finish(),
            lexical: lexical.finish().unwrap(),
            vectors: vectors.finish(),
            n_text_bytes: 0,
        }
    }

    #[test]
    fn only_neighbours_of_one_recipe_merge() {
        let sample = Sample::new(3);
        let (_, segments) = sample.current();
        let all: Vec<&Segment> = segments.iter().collect();
        assert!(matches!(merge_segments(&[]), Err(MergeError::Unlike { .. })));
        assert!(matches!(
            merge_segments(&[all[0], all[2]]),
            Err(MergeError::Unlike { .. })
        ));
        assert!(matches!(
            merge_segments(&[all[1], all[0]]),
            Err(MergeError::Unlike { .. })
        ));
        let data = merge_segments(&all[1..]).unwrap();
        assert_eq!((data.base_blob, data.base_doc, data.n_blobs, data.n_docs), (1, 2, 2, 4));
    }
}
