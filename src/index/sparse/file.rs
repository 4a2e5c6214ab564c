//! Reads files of sparse vectors.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::embed::{ProfileId, SparseVector};
use crate::index::dense::FORMAT;
use crate::sidecar::{Bytes, FileError, SectionFile};

/// An immutable file of sparse vectors, one row per document from 0.
///
/// Sections of the file (the format of dense vector files, little endian):
/// - `scales`: n × f32, the scales of the rows: above 0, or 0 for no vector.
/// - `tokens`: t × (u32 token, ascending; u32 end of its postings, counted in postings).
/// - `postings`: m × u32, row × 256 + step, ascending by row within a token; weight = scale · step, steps are 1 to 255.
/// - `profile`: 16 bytes id of the embedding profile.
///
/// Rows are stored by token, so that a query reads only the tokens that it has in common with documents. With 100,000
/// documents of 100 tokens, this takes about a tenth of the time of reading all rows (`tests/bench/dense.rs`). The
/// first access by row transposes the file.
///
/// One byte per weight is usual for such models. It does not reduce effectiveness in Mackenzie, Trotman, Lin, "Wacky
/// Weights in Learned Sparse Representations and the Revenge of Score-at-a-Time Query Evaluation", 2021.
#[derive(Clone)]
pub struct SparseFile {
    file: SectionFile,
    profile: ProfileId,
    scales: Bytes,
    tokens: Bytes,
    postings: Bytes,
    rows: Arc<OnceLock<Rows>>,
}

/// The scale of a row that has no tokens or only weights close to 0. A scale of 0 marks a row without a vector.
pub(super) const NO_SCALE: f32 = f32::MIN_POSITIVE;

/// The contents of the file by row.
struct Rows {
    /// The end of the terms of each row.
    ends: Vec<u32>,
    terms: Vec<Term>,
}

/// A posting in four bytes: either a token of a row or a row of a token, with the step of its weight.
#[derive(Clone, Copy)]
pub(super) struct Term(pub(super) u32);

impl Term {
    /// One past the highest number that fits.
    pub(super) const END: u32 = 1 << 24;

    pub(super) fn new(number: u32, step: u32) -> Self {
        Self(number << 8 | step)
    }

    /// Returns the number of the token or row.
    pub(super) fn number(self) -> u32 {
        self.0 >> 8
    }

    pub(super) fn step(self) -> u32 {
        self.0 & 255
    }
}

impl SparseFile {
    /// Opens a file in memory. `name` is used in error messages.
    pub fn from_bytes(name: &Path, bytes: impl Into<Bytes>) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::from_bytes(name, bytes.into(), FORMAT)?)
    }

    /// Opens a file and verifies its checksums. Values may still be out of range, which changes scores but causes no
    /// panic; [`Self::verify`] finds them.
    pub(in crate::index) fn from_sections(file: SectionFile) -> Result<Self, FileError> {
        let profile = file.section("profile")?;
        let opened = Self {
            profile: ProfileId((*profile).try_into().map_err(|_| file.damaged("profile"))?),
            scales: file.section("scales")?,
            tokens: file.section("tokens")?,
            postings: file.section("postings")?,
            rows: Arc::default(),
            file,
        };
        let is_whole = opened.scales.len().is_multiple_of(4)
            && opened.scales.len() / 4 <= Term::END as usize
            && opened.tokens.len().is_multiple_of(8)
            && opened.postings.len().is_multiple_of(4);
        if is_whole {
            Ok(opened)
        } else {
            Err(opened.file.damaged("lengths of sections"))
        }
    }

    /// Verifies the whole file and checks that [`SparseWriter`] could have written it. Checksums alone do not protect
    /// against a crafted file.
    ///
    /// [`SparseWriter`]: super::SparseWriter
    pub fn verify(&self) -> Result<(), FileError> {
        self.file.verify()?;
        if self.are_tables_in_order() && self.are_rows_in_range() {
            Ok(())
        } else {
            Err(self.file.damaged("values out of range"))
        }
    }

    fn are_tables_in_order(&self) -> bool {
        let (n_rows, n_postings) = (self.len(), self.postings.len() / 4);
        let tokens = || self.tokens().iter().map(|entry| first_of(*entry));
        let ends = || self.tokens().iter().map(|entry| second_of(*entry));
        let row_of = |four: &[u8; 4]| Term(u32::from_le_bytes(*four)).number();
        let are_rows = |postings: &[[u8; 4]]| {
            postings.is_sorted_by(|a, b| row_of(a) < row_of(b))
                && postings.last().is_none_or(|last| row_of(last) < n_rows)
        };
        tokens().is_sorted_by(|a, b| a < b)
            && tokens().all(|token| token < SparseVector::N_TOKENS)
            && ends().is_sorted()
            && ends().next_back().unwrap_or(0) as usize == n_postings
            && (0..self.tokens().len()).all(|at| are_rows(self.postings_at(at)))
    }

    /// Returns true if the largest step of each row is 255, so that the scale determines the largest weight of the row,
    /// and if that weight is within its limit.
    ///
    /// Does not transpose the file, which would take too much memory when the file is only opened.
    fn are_rows_in_range(&self) -> bool {
        let mut rows = vec![(0u32, u32::MAX, 0u32); self.len() as usize];
        for posting in (0..self.tokens().len()).flat_map(|at| self.postings_at(at)) {
            let posting = Term(u32::from_le_bytes(*posting));
            let Some((n_terms, least, most)) = rows.get_mut(posting.number() as usize) else {
                return false;
            };
            *n_terms += 1;
            (*least, *most) = ((*least).min(posting.step()), (*most).max(posting.step()));
        }
        // The scale may have been rounded up.
        let largest = SparseVector::MAX_WEIGHT / 255.0 * 1.0001;
        let is_in_range = |(&(n_terms, least, most), scale): (&(u32, u32, u32), &[u8; 4])| {
            let scale = f32::from_le_bytes(*scale);
            let is_scale = if most == 0 {
                scale == 0.0 || scale == NO_SCALE
            } else {
                (NO_SCALE..=largest).contains(&scale)
            };
            is_scale && least > 0 && (scale <= NO_SCALE || most == 255) && n_terms as usize <= SparseVector::MAX_TERMS
        };
        rows.iter().zip(self.scales()).all(is_in_range)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u32 {
        (self.scales.len() / 4) as u32
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the embedding profile of the vectors.
    pub fn profile(&self) -> ProfileId {
        self.profile
    }

    /// Returns true if `row` has a vector, which may be empty.
    pub fn has(&self, row: u32) -> bool {
        self.scale(row) > 0.0
    }

    /// Returns the tokens of a row and their weights, sorted by token. Empty if the row is outside the file.
    ///
    /// The first call transposes the file, which takes time and as much memory as the file.
    pub fn terms(&self, row: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        let scale = self.scale(row);
        let terms = self.row(row).iter();
        terms.map(move |term| (term.number(), scale * term.step() as f32))
    }

    /// Returns the cosine of a row and a row of another file. Returns `None` if one of them is empty.
    pub fn cosine(&self, row: u32, other: &Self, other_row: u32) -> Option<f32> {
        let theirs: HashMap<u32, f32> = other.terms(other_row).collect();
        let dot: f32 = self
            .terms(row)
            .filter_map(|(token, weight)| Some(weight * theirs.get(&token)?))
            .sum();
        let norm = |file: &Self, row| file.terms(row).map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
        let norms = norm(self, row) * norm(other, other_row);
        (norms > 0.0).then(|| dot / norms)
    }

    /// Returns the scale of a row: the factor of its steps. Returns 0 if the row is outside the file.
    pub(super) fn scale(&self, row: u32) -> f32 {
        let scale = self.scales().get(row as usize);
        scale.map_or(0.0, |scale| f32::from_le_bytes(*scale))
    }

    /// Returns the scales of all rows, as stored.
    pub(super) fn scales(&self) -> &[[u8; 4]] {
        self.scales.as_chunks().0
    }

    /// Returns the rows that have a token, each with the step of the token.
    pub(super) fn postings(&self, token: u32) -> impl Iterator<Item = Term> + '_ {
        let postings = self.postings_of(token).iter();
        postings.map(|four| Term(u32::from_le_bytes(*four)))
    }

    /// Returns the step of a token in a row, or 0 if the row does not have the token.
    pub(super) fn step(&self, token: u32, row: u32) -> u32 {
        let postings = self.postings_of(token);
        let term = |four: &[u8; 4]| Term(u32::from_le_bytes(*four));
        let found = postings.binary_search_by_key(&row, |four| term(four).number());
        found.map_or(0, |at| term(&postings[at]).step())
    }

    /// Returns the tokens of a row with their steps. Empty if the row is outside the file.
    pub(super) fn row(&self, row: u32) -> &[Term] {
        let rows = self.rows.get_or_init(|| self.rows_from_postings());
        let end = |row: u32| rows.ends.get(row as usize).map(|&end| end as usize);
        let start = row.checked_sub(1).map_or(Some(0), end);
        let range = start.zip(end(row)).map(|(start, end)| start..end);
        range.and_then(|range| rows.terms.get(range)).unwrap_or_default()
    }

    fn rows_from_postings(&self) -> Rows {
        let all = || {
            let tokens = self.tokens().iter().enumerate();
            tokens.flat_map(|(at, entry)| {
                let postings = self.postings_at(at).iter();
                let postings = postings.map(|four| Term(u32::from_le_bytes(*four)));
                postings.map(|posting| (first_of(*entry), posting))
            })
        };
        let mut ends = vec![0u32; self.len() as usize];
        // Ignore postings of rows outside the file.
        all().for_each(|(_, posting)| {
            if let Some(n) = ends.get_mut(posting.number() as usize) {
                *n += 1;
            }
        });
        let mut next = Vec::with_capacity(ends.len());
        let mut n_terms = 0;
        for end in &mut ends {
            next.push(n_terms);
            n_terms += *end;
            *end = n_terms;
        }
        let mut terms = vec![Term(0); n_terms as usize];
        for (token, posting) in all() {
            if let Some(at) = next.get_mut(posting.number() as usize) {
                terms[*at as usize] = Term::new(token, posting.step());
                *at += 1;
            }
        }
        Rows { ends, terms }
    }

    /// Returns the tokens, each with the end of its postings.
    fn tokens(&self) -> &[[u8; 8]] {
        self.tokens.as_chunks().0
    }

    fn postings_of(&self, token: u32) -> &[[u8; 4]] {
        let found = self.tokens().binary_search_by_key(&token, |entry| first_of(*entry));
        found.map(|at| self.postings_at(at)).unwrap_or_default()
    }

    /// Returns the postings of the token at position `at`. Empty if they are outside the file.
    fn postings_at(&self, at: usize) -> &[[u8; 4]] {
        let postings: &[[u8; 4]] = self.postings.as_chunks().0;
        let end = |at: usize| self.tokens().get(at).map(|entry| second_of(*entry) as usize);
        let first = at.checked_sub(1).map_or(Some(0), end);
        let range = first.zip(end(at)).map(|(first, end)| first..end);
        range.and_then(|range| postings.get(range)).unwrap_or_default()
    }
}

impl fmt::Debug for SparseFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SparseFile({} rows)", self.len())
    }
}

fn first_of(entry: [u8; 8]) -> u32 {
    u64::from_le_bytes(entry) as u32
}

fn second_of(entry: [u8; 8]) -> u32 {
    (u64::from_le_bytes(entry) >> 32) as u32
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::index::sparse::SparseWriter;
    use crate::sidecar::SectionWriter;

    #[test]
    fn crafted_tables_are_rejected() {
        let mut writer = SparseWriter::new(ProfileId([1; 16]));
        for row in 0..3u32 {
            let terms = vec![(row, 1.0), (row + 1, 2.0)];
            writer.push(&SparseVector::from_foreign(terms, "m").unwrap()).unwrap();
        }
        let sound = SectionFile::from_bytes(Path::new("sound"), writer.finish().into(), FORMAT).unwrap();
        let is_sound = |patch: Option<(&str, usize, u32)>| {
            let mut writer = SectionWriter::new(FORMAT);
            for name in ["scales", "tokens", "postings", "profile"] {
                let mut bytes = sound.section(name).unwrap().to_vec();
                if let Some((_, at, number)) = patch.filter(|(section, ..)| *section == name) {
                    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
                }
                writer.add(name, bytes);
            }
            let file = SparseFile::from_bytes(Path::new("patched"), writer.finish());
            file.unwrap().verify().is_ok()
        };
        assert!(is_sound(None));
        let patched = |section: &str, at: usize, number: u32| is_sound(Some((section, at, number)));
        for scale in [f32::INFINITY, f32::NAN, -1.0, 0.0, 1e-40, 3930.0] {
            assert!(!patched("scales", 0, scale.to_bits()), "{scale}");
        }
        assert!(!patched("tokens", 0, 2), "tokens that do not ascend");
        assert!(!patched("tokens", 3 * 8, u32::MAX), "a token out of bounds");
        assert!(!patched("tokens", 4, 6), "ends that do not ascend");
        assert!(!patched("tokens", 3 * 8 + 4, 5), "postings of no token");
        assert!(!patched("postings", 0, 3 << 8 | 255), "a row that is not there");
        assert!(!patched("postings", 4, 254), "a row without its largest step");
        assert!(!patched("postings", 4, 0), "a step of nothing");
        assert!(!patched("postings", 8, 255), "a row twice for one token");
    }
}
