//! Selects the lines of a hit to show: its signature and the lines that best match the query.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use super::hit::{FurtherPart, Hit};
use super::lines::LineStarts;
use crate::extract::ChunkKind;
use crate::index::lexical::for_each_term;
use crate::model::{ByteRange, start_of};

/// Maximum size of a definition whose best lines are searched. In a longer one, only the chunk that matches is searched.
const MAX_SEARCHED_BYTES: usize = 64 << 10;
/// Maximum number of lines to show for which the best place is searched.
const MAX_SEARCHED_LINES: u32 = 100;
/// Maximum length of a line in bytes. The rest is omitted.
const MAX_LINE_BYTES: usize = 500;
/// Maximum length of a signature in bytes.
const MAX_SIGNATURE_BYTES: usize = 200;

/// The lines of a hit to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The signature on one line with the number of its first line, if `text` does not contain that line.
    pub signature: Option<(u32, String)>,
    /// The number of the first line of `text`.
    pub start_line: u32,
    /// Adjacent lines.
    pub text: String,
}

impl FurtherPart {
    /// Returns the best adjacent lines of the part, at most `n_lines`, with the number of the first.
    pub fn preview(&self, bytes: &[u8], terms: &[(String, f32)], n_lines: usize) -> (u32, String) {
        let lines = LineStarts::of(bytes);
        let (first, last, n_lines) = (self.start_line, self.end_line, n_lines as u32);
        let text = |line: u32| String::from_utf8_lossy(bytes.get(lines.range(line, line)).unwrap_or_default());
        let start = best_start((first, last), first, n_lines, terms, text);
        let start = start.min((last + 1).saturating_sub(n_lines)).max(first);
        let range = lines.range(start, last.min(start.saturating_add(n_lines.saturating_sub(1))));
        let shown = bytes.get(range).unwrap_or_default();
        (start, cut_lines(String::from_utf8_lossy(shown).trim_end()))
    }
}

impl Hit {
    /// Returns the signature and the best lines of the hit, at most `n_lines` in all. `terms` are the terms of the
    /// query with their weights, and `bytes` is the content of the first place's file.
    pub fn preview(&self, bytes: &[u8], terms: &[(String, f32)], n_lines: usize) -> Preview {
        let Some((range, matched)) = self.searched(bytes) else {
            return Preview::default();
        };
        let lines = LineStarts::of(bytes);
        let (first, last) = lines.of_range(bytes, range.as_usize());
        let (matched, _) = lines.of_range(bytes, matched.as_usize());
        let signature = self.symbol.as_ref().map(|symbol| symbol.signature);
        // Of several small items, the lines may belong to another one.
        let is_one = self.focus.is_some() || !matches!(self.kind, ChunkKind::Items | ChunkKind::Data);
        let signature = signature.filter(|signature| is_one && range.contains(*signature) && self.line.is_none());
        let signature = signature.map(|range| (lines.of_range(bytes, range.as_usize()).0, range));
        let text = |line: u32| String::from_utf8_lossy(bytes.get(lines.range(line, line)).unwrap_or_default());
        let n_lines = n_lines.max(1) as u32;
        let n_best = if signature.is_some() { n_lines - 1 } else { n_lines };
        let is_inside = |line: &u32| (first..=last).contains(line);
        let start = match (self.line.or(self.best_line.filter(is_inside)), n_best) {
            (Some(line), _) => line,
            (None, 0) => signature.map_or(first, |(line, _)| line),
            (None, _) => best_start((first, last), matched, n_best, terms, text),
        };
        // Moves up to show as many lines as asked for.
        let start = start.min((last + 1).saturating_sub(n_best.max(1))).max(first);
        // A signature in or right above the lines is shown with them.
        let is_near = |line: u32| (start.saturating_sub(2)..start + n_lines).contains(&line);
        let (start, n_shown) = match signature {
            Some((line, _)) if is_near(line) => (start.min(line), n_lines),
            _ => (start, n_best.max(1)),
        };
        let end = last.min(start.saturating_add(n_shown - 1));
        let shown = bytes.get(lines.range(start, end)).unwrap_or_default();
        Preview {
            signature: signature
                .filter(|(line, _)| !(start..=end).contains(line))
                .map(|(line, range)| (line, on_one_line(bytes.get(range.as_usize()).unwrap_or_default()))),
            start_line: start,
            text: cut_lines(String::from_utf8_lossy(shown).trim_end()),
        }
    }

    /// Returns the range in which lines are selected, and the part of it that matches.
    fn searched(&self, bytes: &[u8]) -> Option<(ByteRange, ByteRange)> {
        let place = self.places.first()?;
        Some(match (self.line, self.focus) {
            (Some(_), _) => {
                let (_, _, range) = self.lines(bytes)?;
                (range, range)
            }
            (None, Some(focus)) => (focus, focus),
            (None, None) if place.whole.len() > MAX_SEARCHED_BYTES => (place.range, place.range),
            (None, None) => (place.whole, place.range),
        })
    }
}

/// Returns the first of `n_lines` lines with the greatest weight of distinct terms. Without terms, returns the first
/// line that matches.
fn best_start<'t>(
    (first, last): (u32, u32),
    matched: u32,
    n_lines: u32,
    terms: &[(String, f32)],
    text: impl Fn(u32) -> std::borrow::Cow<'t, str>,
) -> u32 {
    let weights = weights_of(terms);
    if n_lines >= MAX_SEARCHED_LINES || n_lines > last.saturating_sub(first) {
        return matched.min((last + 1).saturating_sub(n_lines)).max(first);
    }
    let mut found: Vec<(u32, BTreeSet<&str>)> = Vec::new();
    for line in first..=last {
        let held = terms_in(&text(line), &weights);
        if !held.is_empty() {
            found.push((line, held));
        }
    }
    let mut best = (0.0, 0, matched);
    for (at, (line, _)) in found.iter().enumerate() {
        let window = found[at..].iter().take_while(|(other, _)| other - line < n_lines);
        let n_found = window.clone().count();
        let held: BTreeSet<&str> = window.flat_map(|(_, held)| held.iter().copied()).collect();
        let weight: f32 = held.iter().map(|term| weights[term]).sum();
        if (weight, n_found) > (best.0, best.1) {
            best = (weight, n_found, *line);
        }
    }
    best.2
}

/// Returns the weight of the distinct terms in a text.
pub(super) fn weight_of(text: &str, terms: &[(String, f32)]) -> f32 {
    let weights = weights_of(terms);
    terms_in(text, &weights).iter().map(|term| weights[term]).sum()
}

/// Returns the greatest weight of distinct terms in a line of a text, and the offset of the first such line.
pub(super) fn best_offset(text: &str, terms: &[(String, f32)]) -> Option<(f32, usize)> {
    let weights = weights_of(terms);
    let mut best: Option<(f32, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let weight: f32 = terms_in(line, &weights).iter().map(|term| weights[term]).sum();
        if weight > best.map_or(0.0, |(most, _)| most) {
            best = Some((weight, at + line.len() - line.trim_start().len()));
        }
        at += line.len();
    }
    best
}

/// The weights of terms.
pub(super) type TermWeights<'t> = HashMap<&'t str, f32, RandomState>;

fn weights_of(terms: &[(String, f32)]) -> TermWeights<'_> {
    terms.iter().map(|(term, weight)| (term.as_str(), *weight)).collect()
}

/// Returns the terms with a weight that a line contains.
pub(super) fn terms_in<'w>(line: &str, weights: &TermWeights<'w>) -> BTreeSet<&'w str> {
    let mut held = BTreeSet::new();
    for_each_term(line, |term| {
        held.extend(weights.get_key_value(term).map(|(known, _)| *known));
    });
    held
}

/// Joins the lines of a signature with single spaces.
fn on_one_line(signature: &[u8]) -> String {
    let text = String::from_utf8_lossy(signature);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace("( ", "(").replace(", )", ")").replace(" )", ")");
    cut(&line, MAX_SIGNATURE_BYTES)
}

fn cut_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| cut(line, MAX_LINE_BYTES)).collect();
    lines.join("\n")
}

/// Returns the start of a line that is longer than `max` bytes.
fn cut(line: &str, max: usize) -> String {
    if line.len() <= max {
        return line.to_owned();
    }
    format!("{}…", start_of(line, max))
}
