//! Finds the blobs that may contain a literal or a match of a regex. Each blob has a signature of hashed trigrams.
//!
//! A signature is a bit set with about [`BITS_PER_TRIGRAM`] bits for each distinct trigram of the blob; each trigram
//! sets one bit. A trigram that the blob does not contain matches with a probability of 1 − e^(−1/bits). A literal of
//! eight characters has six trigrams. A signature has no false negatives, so searching the blobs that match gives a
//! complete result. Signatures need a sixth of the space of posting lists. Trigrams consist of bytes, with ASCII
//! letters in lower case, and never contain a line break.

use parking_lot::Mutex;
use regex_syntax::hir::{Class, Hir, HirKind};

const BITS_PER_TRIGRAM: usize = 2;
/// Limit on the branches of an alternation or class. If it is exceeded, no trigrams are required.
const MAX_BRANCHES: usize = 32;

/// The n-gram signature of a blob: a bit set that starts with the least significant bit of the first byte.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a>(pub &'a [u8]);

impl Signature<'_> {
    /// Computes the signature of a blob with the content `bytes`.
    pub fn of(bytes: &[u8]) -> Vec<u8> {
        let hashes = distinct_hashes(bytes);
        let mut signature = vec![0; (hashes.len() * BITS_PER_TRIGRAM).div_ceil(8).max(1)];
        for hash in hashes {
            let bit = position(hash, signature.len());
            signature[bit / 8] |= 1 << (bit % 8);
        }
        signature
    }

    /// Returns true if the blob may match. Returns false only if it certainly does not.
    pub fn may_match(self, query: &TrigramQuery) -> bool {
        match query {
            TrigramQuery::Any => true,
            TrigramQuery::Trigram(hash) => self.has(*hash),
            TrigramQuery::All(parts) => parts.iter().all(|part| self.may_match(part)),
            TrigramQuery::Either(parts) => parts.iter().any(|part| self.may_match(part)),
        }
    }

    fn has(self, hash: u32) -> bool {
        // A blob without a signature may always match.
        if self.0.is_empty() {
            return true;
        }
        let bit = position(hash, self.0.len());
        self.0[bit / 8] & (1 << (bit % 8)) != 0
    }
}

/// Returns the bit of a signature for a hash. Uses the high bits of the hash.
fn position(hash: u32, n_bytes: usize) -> usize {
    ((u64::from(hash) * (n_bytes as u64 * 8)) >> 32) as usize
}

/// A pool of unused tables with one bit for each possible trigram, all zero. They are pooled because a table of 2 MB is
/// too large for each thread of a server.
static TABLES: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());
const TABLE_WORDS: usize = (1 << 24) / 64;
const MAX_TABLES: usize = 16;

/// Returns the hashes of the distinct trigrams, in the order of their first occurrence. A table lookup takes a fifth of
/// the time of sorting, which caused a seventh of the cost of importing records.
fn distinct_hashes(bytes: &[u8]) -> Vec<u32> {
    let tables = || TABLES.lock();
    let unused = tables().pop();
    let mut seen = unused.unwrap_or_else(|| vec![0; TABLE_WORDS]);
    let mut found = Vec::new();
    for trigram in trigrams(bytes) {
        let (word, bit) = (&mut seen[trigram as usize / 64], 1 << (trigram % 64));
        if *word & bit == 0 {
            *word |= bit;
            found.push(trigram);
        }
    }
    for &trigram in &found {
        seen[trigram as usize / 64] = 0;
    }
    let mut tables = tables();
    if tables.len() < MAX_TABLES {
        tables.push(seen);
    }
    drop(tables);
    found.into_iter().map(hash_trigram).collect()
}

fn trigram_hashes(bytes: &[u8]) -> Vec<u32> {
    trigrams(bytes).map(hash_trigram).collect()
}

/// Returns the trigrams of `bytes`, each in the low 24 bits of a number.
fn trigrams(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let windows = bytes.windows(3).filter(|window| !window.contains(&b'\n'));
    windows.map(|window| {
        let lower = [0, 1, 2].map(|i| window[i].to_ascii_lowercase());
        u32::from_le_bytes([lower[0], lower[1], lower[2], 0])
    })
}

fn hash_trigram(packed: u32) -> u32 {
    // A single multiplication mixes the bits enough, because the trigrams of a blob are distinct.
    packed.wrapping_mul(0x9e37_79b1)
}

/// A condition on signatures. Every blob with a match satisfies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrigramQuery {
    /// No trigram is required.
    Any,
    /// The trigram with this hash is required.
    Trigram(u32),
    /// All of these conditions are required.
    All(Vec<TrigramQuery>),
    /// At least one of these conditions is required.
    Either(Vec<TrigramQuery>),
}

impl TrigramQuery {
    /// Returns the condition for blobs that contain a match of a regex.
    pub fn of_regex(hir: &Hir) -> Self {
        let (mut run, mut pieces) = (Vec::new(), Vec::new());
        collect(hir, &mut run, &mut pieces);
        end_run(&mut run, &mut pieces);
        Self::all(pieces)
    }

    /// Returns the condition for blobs that contain a literal, ignoring the case of ASCII letters.
    pub fn of_literal(literal: &[u8]) -> Self {
        Self::all(trigram_hashes(literal).into_iter().map(Self::Trigram).collect())
    }

    fn all(mut parts: Vec<Self>) -> Self {
        parts.retain(|part| *part != Self::Any);
        parts.dedup();
        match parts.len() {
            0 => Self::Any,
            1 => parts.remove(0),
            _ => Self::All(parts),
        }
    }

    /// Returns the condition for blobs that satisfy at least one of `parts`.
    pub fn either(parts: Vec<Self>) -> Self {
        if parts.contains(&Self::Any) {
            return Self::Any;
        }
        Self::Either(parts)
    }
}

/// Walks the parts of a concatenation. `run` is the literal text that ends at the current position. New conditions are
/// added to `pieces`.
fn collect(hir: &Hir, run: &mut Vec<u8>, pieces: &mut Vec<TrigramQuery>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => run.extend_from_slice(&literal.0),
        HirKind::Class(class) => match one_letter(class) {
            Some(letter) => run.push(letter),
            None => end_run(run, pieces),
        },
        HirKind::Capture(capture) => collect(&capture.sub, run, pieces),
        HirKind::Concat(parts) => parts.iter().for_each(|part| collect(part, run, pieces)),
        HirKind::Repetition(repetition) => {
            if repetition.min == 0 {
                end_run(run, pieces);
                return;
            }
            collect(&repetition.sub, run, pieces);
            if repetition.max != Some(1) {
                end_run(run, pieces);
            }
        }
        HirKind::Alternation(branches) => {
            end_run(run, pieces);
            if branches.len() <= MAX_BRANCHES {
                pieces.push(TrigramQuery::either(
                    branches.iter().map(TrigramQuery::of_regex).collect(),
                ));
            }
        }
    }
}

fn end_run(run: &mut Vec<u8>, pieces: &mut Vec<TrigramQuery>) {
    pieces.push(TrigramQuery::of_literal(run));
    run.clear();
}

/// Returns the letter if a class consists of one letter in both cases, as in a case-insensitive regex.
fn one_letter(class: &Class) -> Option<u8> {
    let lower = |character: char| character.is_ascii().then(|| character.to_ascii_lowercase() as u8);
    let mut letters = Vec::new();
    match class {
        Class::Unicode(class) => {
            for range in class.ranges() {
                (range.start() == range.end()).then_some(())?;
                letters.push(lower(range.start())?);
            }
        }
        Class::Bytes(class) => {
            for range in class.ranges() {
                (range.start() == range.end()).then_some(())?;
                letters.push(lower(char::from(range.start()))?);
            }
        }
    }
    letters.dedup();
    (letters.len() == 1).then(|| letters[0])
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const TEXT: &[u8] = b"fn parse_query(text: &str) -> Query {\n    lex(text).collect()\n}\n";

    fn query(pattern: &str) -> TrigramQuery {
        let hir = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .build()
            .parse(pattern)
            .unwrap();
        TrigramQuery::of_regex(&hir)
    }

    fn may_match(pattern: &str) -> bool {
        let bytes = Signature::of(TEXT);
        Signature(&bytes).may_match(&query(pattern))
    }

    #[test]
    fn matching_blobs_always_pass() {
        for pattern in [
            "parse_query",
            "(?i)PARSE_Query",
            r"lex\(\w+\)",
            "(foo|parse)_q",
            "x*",
            "Quer[y]",
            r"\bfn\b",
            "a|b",
            "(?:te){1}xt",
        ] {
            assert!(regex::bytes::Regex::new(pattern).unwrap().is_match(TEXT), "{pattern}");
            assert!(may_match(pattern), "{pattern}");
        }
    }

    #[test]
    fn absent_literals_mostly_fail() {
        let strangers = [
            "serialize",
            "connection_pool",
            "(?i)HttpHeader",
            "(zebra|quokka)s?",
            "unbounded_[a-z]+_channel",
        ];
        let n_passed = strangers.iter().filter(|pattern| may_match(pattern)).count();
        assert!(n_passed <= 1, "{n_passed}");
    }

    #[test]
    fn case_and_line_breaks_do_not_count() {
        assert_eq!(Signature::of(b"").len(), 1);
        assert_eq!(Signature::of(b"abc"), Signature::of(b"ABC\n\n"));
    }
}
