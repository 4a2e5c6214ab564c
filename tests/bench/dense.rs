//! Measures the speed of embedding texts and searching vectors, and the recall lost by quantisation and the graph.
//!
//! ```text
//! cargo bench --bench dense                                 # scan 100,000 made-up vectors
//! cargo bench --bench dense -- embed DIR                    # MB/s a core over the files below DIR
//! cargo bench --bench dense -- recall DIR QUERIES           # int4 and int8 against f32; QUERIES has one query a line
//! cargo bench --bench dense -- scan N [DIR]                 # whole, and through filters of 10 % and 1 %
//! cargo bench --bench dense -- hnsw N DIR QUERIES [WIDTH]   # the graph against the scan
//! cargo bench --bench dense -- sparse N TERMS               # made-up sparse vectors, against going through all rows
//! ```
//!
//! DIR is any folder of source files. The figures in the documents come from the trees of git and rust-analyzer, with
//! the commit subjects of both as queries. Files are split at line ends into pieces of about 1,000 bytes (400 for
//! `hnsw`, so that there are more). Times are the best of several rounds on one thread, except that scans of more than
//! 200,000 live documents use all threads.

#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]
#![expect(clippy::unwrap_used, reason = "a bench may stop")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use codescout::embed::{Embedder, ProfileId, Scratch, Side, SparseVector, StaticModel};
use codescout::index::dense::{
    DenseIndex, FlatIndex, GraphFile, HnswIndex, Quantisation, VectorFile, VectorWriter, build_graph,
};
use codescout::index::sparse::{SparseFile, SparseIndex, SparseWriter};
use roaring::RoaringBitmap;

const DIM: usize = 256;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["embed", folder] => embed(folder.as_ref()),
        ["recall", folder, queries] => recall(folder.as_ref(), queries.as_ref()),
        ["scan", n] => scan(&made_up(n.parse().unwrap())),
        ["scan", n, folder] => scan(&repeated(chunk_vectors(folder.as_ref(), 1000), n.parse().unwrap())),
        ["sparse", n, n_terms] => sparse(n.parse().unwrap(), n_terms.parse().unwrap()),
        ["hnsw", n, folder, queries] => hnsw(n.parse().unwrap(), 1, folder.as_ref(), queries.as_ref()),
        ["hnsw", n, folder, queries, width] => {
            hnsw(
                n.parse().unwrap(),
                width.parse().unwrap(),
                folder.as_ref(),
                queries.as_ref(),
            );
        }
        _ => scan(&made_up(100_000)),
    }
}

fn embed(folder: &Path) {
    let files = files(folder);
    let chunks: Vec<&[u8]> = files.iter().flat_map(|file| chunks(file, 1000)).collect();
    let n_bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    println!(
        "{} files, {} chunks, {:.1} MB",
        files.len(),
        chunks.len(),
        n_bytes as f64 / 1e6
    );
    let open = best_of(5, || drop(black_box(StaticModel::embedded())));
    let model = StaticModel::embedded();
    let tokenise = best_of(5, || {
        chunks.iter().for_each(|chunk| drop(black_box(model.token_ids(chunk))))
    });
    let (mut scratch, mut vector) = (Scratch::default(), vec![0.0; model.dim()]);
    let embed = best_of(5, || {
        chunks
            .iter()
            .for_each(|chunk| _ = black_box(model.embed_into(chunk, Side::Document, &mut scratch, &mut vector)));
    });
    let rate = |time: Duration| n_bytes as f64 / time.as_secs_f64() / 1e6;
    println!(
        "open {open:.2?}, tokenise {:.0} MB/s, embed {:.0} MB/s",
        rate(tokenise),
        rate(embed)
    );
}

fn recall(folder: &Path, queries: &Path) {
    let (vectors, queries) = (chunk_vectors(folder, 1000), query_vectors(queries));
    println!("{} chunks, {} queries", vectors.len(), queries.len());
    let truth: Vec<Vec<u32>> = queries.iter().map(|query| top_in_f32(&vectors, query, 10)).collect();
    let live = RoaringBitmap::from_iter(0..vectors.len() as u32);
    for quantisation in [Quantisation::Int8, Quantisation::Int4] {
        let start = Instant::now();
        let index = flat(&vectors, quantisation);
        let written = start.elapsed();
        let (mut hits, mut held) = (0, 0);
        for (query, truth) in queries.iter().zip(&truth) {
            let found: Vec<u32> = index
                .search(query, &live, 50)
                .unwrap()
                .iter()
                .map(|hit| hit.0)
                .collect();
            hits += truth.iter().filter(|doc| found[..10].contains(doc)).count();
            held += usize::from(truth.iter().all(|doc| found.contains(doc)));
        }
        println!(
            "{quantisation:?}: recall@10 {:.4}, top 50 holds the top 10 in {:.4} of queries, written in {:.2} µs a vector",
            hits as f64 / (10 * queries.len()) as f64,
            held as f64 / queries.len() as f64,
            written.as_secs_f64() * 1e6 / vectors.len() as f64,
        );
    }
}

fn scan(vectors: &[Vec<f32>]) {
    let n = vectors.len() as u32;
    let query = &vectors[vectors.len() / 3];
    for quantisation in [Quantisation::Int8, Quantisation::Int4] {
        let index = flat(vectors, quantisation);
        let report = |what: &str, live: &RoaringBitmap| {
            let time = best_of(30, || drop(black_box(index.search(query, live, 50).unwrap())));
            let each = time.as_secs_f64() * 1e9 / live.len() as f64;
            println!("{quantisation:?} {what}: {time:.2?}, {each:.2} ns a live vector");
        };
        report(&format!("all {n}"), &one_in(1, 1, n));
        report("10 %, scattered", &one_in(10, 1, n));
        report("1 %, scattered", &one_in(100, 1, n));
        report("10 %, in runs of 30", &one_in(10, 30, n));
    }
}

/// Selects runs of `run` documents; about one run in `share` is selected.
fn one_in(share: u32, run: u32, n: u32) -> RoaringBitmap {
    (0..n).filter(|doc| mixed(doc / run).is_multiple_of(share)).collect()
}

/// Compares the graph with the scan, with the built-in model's vectors in int4, or with `width` times as many dimensions
/// in int8: each vector is that of a chunk and those of its neighbours.
fn hnsw(n: usize, width: usize, folder: &Path, queries: &Path) {
    let vectors = widened(repeated(chunk_vectors(folder, 400), n), width);
    let queries = widened(query_vectors(queries), width);
    let live = RoaringBitmap::from_iter(0..vectors.len() as u32);
    let quantisation = if width == 1 {
        Quantisation::Int4
    } else {
        Quantisation::Int8
    };
    let flat = flat(&vectors, quantisation);
    drop(vectors);
    let (before, start) = (reset_peak_mib(), Instant::now());
    let bytes = build_graph(&flat, n as u32, &AtomicBool::new(false)).unwrap();
    println!(
        "built in {:.1?} with at most {} MiB more, {:.1} bytes a vector",
        start.elapsed(),
        peak_mib() - before,
        bytes.len() as f64 / n as f64
    );
    let graph = GraphFile::from_bytes(Path::new("graph"), bytes).unwrap();
    graph.verify().unwrap();
    println!("ef {} of the trial", graph.ef());
    let index = HnswIndex::new(flat.clone(), Some(graph));
    for (k, ef) in [(10, 64), (10, 128), (10, 256), (200, 256), (200, 512), (200, 1024)] {
        let (mut hits, mut n_hits, mut by_scan, mut by_graph) = (0, 0, Duration::ZERO, Duration::ZERO);
        let mut best_ten = 0;
        for query in &queries {
            let (time, truth) = timed(|| flat.search(query, &live, k).unwrap());
            by_scan += time;
            let (time, found) = timed(|| index.search_graph(query, &live, k, ef).unwrap());
            by_graph += time;
            let found = found.unwrap_or_default();
            hits += truth.iter().filter(|hit| found.contains(hit)).count();
            best_ten += truth[..10].iter().filter(|hit| found.contains(hit)).count();
            n_hits += truth.len();
        }
        let [recall, recall_10] = [(hits, n_hits), (best_ten, 10 * queries.len())].map(|(a, b)| a as f64 / b as f64);
        let [by_graph, by_scan] = [by_graph, by_scan].map(|time| time / queries.len() as u32);
        println!(
            "k {k}, ef {ef}: recall {recall:.4}, of the best ten {recall_10:.4}; graph {by_graph:.2?}, scan {by_scan:.2?} \
             a query; by rule: {}",
            if index.uses_graph(&live, k) { "graph" } else { "scan" }
        );
    }
}

/// Concatenates each vector with those that follow it, at unit length.
fn widened(vectors: Vec<Vec<f32>>, width: usize) -> Vec<Vec<f32>> {
    if width == 1 {
        return vectors;
    }
    let scale = 1.0 / (width as f32).sqrt();
    (0..vectors.len())
        .map(|i| {
            let parts = (0..width).map(|j| &vectors[(i + j * j) % vectors.len()]);
            parts.flatten().map(|x| x * scale).collect()
        })
        .collect()
}

/// Returns the texts of the files below a folder, in path order.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let (mut folders, mut paths) = (vec![folder.to_owned()], Vec::<PathBuf>::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                paths.push(entry.path());
            }
        }
    }
    paths.sort();
    let texts = paths.iter().map(|path| fs::read(path).unwrap());
    texts
        .filter(|text| text.len() <= 1 << 20 && !text.contains(&0))
        .collect()
}

/// Splits a file into pieces of whole lines. A piece ends with the line that reaches `size` bytes.
fn chunks(file: &[u8], size: usize) -> Vec<&[u8]> {
    let (mut chunks, mut start, mut end) = (Vec::new(), 0, 0);
    for line in file.split_inclusive(|&byte| byte == b'\n') {
        end += line.len();
        if end - start >= size {
            chunks.push(&file[start..end]);
            start = end;
        }
    }
    if start < end {
        chunks.push(&file[start..end]);
    }
    chunks
}

/// Returns the vectors of the distinct chunks below a folder.
fn chunk_vectors(folder: &Path, size: usize) -> Vec<Vec<f32>> {
    let (model, files, mut seen) = (StaticModel::embedded(), files(folder), HashSet::new());
    let distinct = files
        .iter()
        .flat_map(|file| chunks(file, size))
        .filter(|&chunk| seen.insert(chunk));
    distinct
        .map(|chunk| model.embed(chunk, Side::Document).vector)
        .collect()
}

fn query_vectors(queries: &Path) -> Vec<Vec<f32>> {
    let model = StaticModel::embedded();
    let queries = fs::read_to_string(queries).unwrap();
    queries
        .lines()
        .map(|query| model.embed_query(query, &AtomicBool::new(false)).unwrap().vector)
        .collect()
}

/// Returns `n` vectors without structure.
fn made_up(n: usize) -> Vec<Vec<f32>> {
    (0..n as u32)
        .map(|i| {
            unit(
                (0..DIM as u32)
                    .map(|j| mixed(i * 1_021 + j) as f32 - (1u64 << 31) as f32)
                    .collect(),
            )
        })
        .collect()
}

/// Returns the first `n` vectors. If there are fewer, repeats them, each with a tenth of another vector added.
fn repeated(mut vectors: Vec<Vec<f32>>, n: usize) -> Vec<Vec<f32>> {
    let n_given = vectors.len();
    for i in n_given..n {
        let (one, other) = (&vectors[i - n_given], &vectors[mixed(i as u32) as usize % n_given]);
        let sum = unit(one.iter().zip(other).map(|(a, b)| a + 0.1 * b).collect());
        vectors.push(sum);
    }
    println!("{} vectors, {n_given} of them of chunks", n.min(vectors.len()));
    vectors.truncate(n);
    vectors
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.iter_mut().for_each(|x| *x /= norm);
    vector
}

/// Maps each number to an arbitrary number.
fn mixed(i: u32) -> u32 {
    let x = u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
}

fn flat(vectors: &[Vec<f32>], quantisation: Quantisation) -> FlatIndex {
    let mut writer = VectorWriter::new(vectors[0].len(), quantisation, ProfileId([0; 16])).unwrap();
    vectors.iter().for_each(|vector| writer.push(vector, 1.0).unwrap());
    FlatIndex::new(vec![(
        0,
        VectorFile::from_bytes(Path::new("vectors"), writer.finish()).unwrap(),
    )])
    .unwrap()
}

fn top_in_f32(vectors: &[Vec<f32>], query: &[f32], k: usize) -> Vec<u32> {
    let mut all: Vec<(f32, u32)> = (0..)
        .zip(vectors)
        .map(|(doc, vector)| {
            let mut lanes = [0f32; 16];
            for (x, y) in vector.chunks_exact(16).zip(query.chunks_exact(16)) {
                (0..16).for_each(|i| lanes[i] += x[i] * y[i]);
            }
            (-lanes.iter().sum::<f32>(), doc)
        })
        .collect();
    all.select_nth_unstable_by(k, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all[..k].iter().map(|&(_, doc)| doc).collect()
}

fn timed<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let outcome = run();
    (start.elapsed(), outcome)
}

fn best_of(n_rounds: usize, mut run: impl FnMut()) -> Duration {
    (0..n_rounds).map(|_| timed(&mut run).0).min().unwrap()
}

/// Returns the memory of this process in MiB, if the system reports it.
/// Forgets the peak of resident memory, and returns the present use in MiB.
fn reset_peak_mib() -> i64 {
    let _ = fs::write("/proc/self/clear_refs", "5");
    peak_mib()
}

fn peak_mib() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.split_whitespace().next()?.parse::<i64>().ok())
        .unwrap_or_default()
        / 1024
}

/// Generates sparse vectors whose tokens follow Zipf's law over a vocabulary of BERT's size, like those of texts.
fn sparse_vectors(n: usize, n_terms: usize, mut state: u64) -> Vec<SparseVector> {
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut vector = || {
        let mut terms = HashMap::new();
        while terms.len() < n_terms {
            let token = 30_522f64.powf(random()) as u32;
            terms.insert(token, 0.05 + 2.0 * random() as f32);
        }
        SparseVector::from_foreign(terms.into_iter().collect(), "bench").unwrap()
    };
    (0..n).map(|_| vector()).collect()
}

fn sparse(n: usize, n_terms: usize) {
    let vectors = sparse_vectors(n, n_terms, 1);
    let mut writer = SparseWriter::new(ProfileId([0; 16]));
    vectors.iter().for_each(|vector| writer.push(vector).unwrap());
    let bytes = writer.finish();
    println!("{n} documents of {n_terms} terms: {:.1} MB", bytes.len() as f64 / 1e6);
    let file = SparseFile::from_bytes(Path::new("vectors"), bytes).unwrap();
    println!("verify {:.2?}", best_of(5, || file.verify().unwrap()));
    let index = SparseIndex::new(vec![(0, file)]);
    let all: RoaringBitmap = (0..n as u32).collect();
    let tenth: RoaringBitmap = (0..n as u32).filter(|doc| doc % 10 == 3).collect();
    for n_query_terms in [10, 30, 60] {
        let queries = sparse_vectors(20, n_query_terms, 2);
        let time = |run: &dyn Fn(&SparseVector)| best_of(5, || queries.iter().for_each(run)) / queries.len() as u32;
        let by_rows = time(&|query| {
            let weights: HashMap<u32, f32> = query.terms().iter().copied().collect();
            let mut table = vec![0.0; 30_522];
            weights
                .iter()
                .for_each(|(token, weight)| table[*token as usize] = *weight);
            let sums: Vec<f32> = vectors
                .iter()
                .map(|vector| {
                    vector
                        .terms()
                        .iter()
                        .map(|(token, weight)| table[*token as usize] * weight)
                        .sum()
                })
                .collect();
            black_box(sums);
        });
        println!(
            "query of {n_query_terms} terms: {:.2?}, through a filter of 10 % {:.2?}; all rows {by_rows:.2?}",
            time(&|query| drop(black_box(index.search(query, &all, 200)))),
            time(&|query| drop(black_box(index.search(query, &tenth, 200)))),
        );
    }
}
