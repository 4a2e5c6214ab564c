//! Measures the quality of one ranked answer.

use std::collections::{HashMap, HashSet};

use super::judgements::Relevant;

/// Number of leading results that are measured.
const DEPTH: usize = 10;

/// One result: a path and ranges of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Path relative to the root of the tree.
    pub path: String,
    /// The lines of the result.
    pub lines: Lines,
    /// The lines of further places in the same file that the result lists.
    pub further: Vec<Lines>,
}

/// A range of lines, 1-based and inclusive.
pub type Lines = (u32, u32);

/// The quality of one answer. Every measure except `lines_shown` is between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measures {
    /// NDCG@10 by file: a result is relevant if its path is judged.
    pub ndcg_file: f64,
    /// NDCG@10 by line: a result is relevant if its own lines overlap a judged place.
    pub ndcg_lines: f64,
    /// NDCG@10 by line with further places: each judged place gains at the rank of the result that lists it.
    pub ndcg_places: f64,
    /// Number of lines of the results and their further places.
    pub lines_shown: f64,
    /// True if there are no results.
    pub is_empty: bool,
    /// Recall of judged files among the first 1, 5 and 10 results.
    pub recall_file: [f64; 3],
    /// 1 / rank of the first result in a judged file; 0 if no measured result is in one.
    pub mrr_file: f64,
}

/// Measures the quality of `results`, which are ordered best first.
///
/// DCG@10 = Σ (2^grade − 1) / log2(rank + 1), divided by the DCG of the ideal order. A place has the rank of the first
/// result that hits it. A result that hits several places counts once, with the highest grade. A result that hits no
/// new place gains nothing but takes up a rank. In the line measures, a result hits a place if they overlap by at least
/// a third of the shorter one.
///
/// With further places, each of a result's ranges gains with the highest grade that it hits first, at the result's
/// rank. The best possible order lists all judged places of a file at one rank, the files with the most gain first.
///
/// Source: Järvelin, Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002, with exponential gain.
pub fn measure(results: &[Ranked], relevant: &[Relevant]) -> Measures {
    let mut file_grades: HashMap<&str, u32> = HashMap::new();
    for place in relevant {
        let grade = file_grades.entry(&place.path).or_default();
        *grade = place.grade.max(*grade);
    }
    let top = &results[..results.len().min(DEPTH)];
    let mut seen = HashSet::new();
    let file_gains: Vec<u32> = top
        .iter()
        .map(|result| match file_grades.get(result.path.as_str()) {
            Some(&grade) if seen.insert(result.path.as_str()) => grade,
            _ => 0,
        })
        .collect();
    let found_by = |depth: usize| {
        let n_found = file_gains.iter().take(depth).filter(|&&grade| grade > 0).count();
        n_found as f64 / file_grades.len().max(1) as f64
    };
    let first = file_gains.iter().position(|&grade| grade > 0);
    Measures {
        ndcg_file: ndcg(&file_gains, file_grades.values().copied().collect()),
        ndcg_lines: ndcg(
            &line_gains(top, relevant),
            relevant.iter().map(|place| place.grade).collect(),
        ),
        ndcg_places: ndcg_places(top, relevant),
        is_empty: top.is_empty(),
        lines_shown: top
            .iter()
            .flat_map(Ranked::ranges)
            .map(|(start, end)| f64::from(length(start, end)))
            .sum(),
        recall_file: [1, 5, 10].map(found_by),
        mrr_file: first.map_or(0.0, |index| 1.0 / (index + 1) as f64),
    }
}

impl Ranked {
    fn ranges(&self) -> impl Iterator<Item = Lines> {
        [self.lines].into_iter().chain(self.further.iter().copied())
    }
}

/// Returns the gain of each result for the judged places that its own lines hit first.
fn line_gains(results: &[Ranked], relevant: &[Relevant]) -> Vec<u32> {
    let mut is_hit = vec![false; relevant.len()];
    results
        .iter()
        .map(|result| new_grade(&result.path, result.lines, relevant, &mut is_hit))
        .collect()
}

fn ndcg_places(results: &[Ranked], relevant: &[Relevant]) -> f64 {
    let mut is_hit = vec![false; relevant.len()];
    let gains = results.iter().map(|result| {
        let grades = result
            .ranges()
            .map(|lines| new_grade(&result.path, lines, relevant, &mut is_hit));
        grades.map(gain).sum::<f64>()
    });
    let found = discounted(gains);
    let mut by_file: HashMap<&str, f64> = HashMap::new();
    for place in relevant {
        *by_file.entry(&place.path).or_default() += gain(place.grade);
    }
    let mut ideal: Vec<f64> = by_file.into_values().collect();
    ideal.sort_unstable_by(|a, b| b.total_cmp(a));
    let best = discounted(ideal.into_iter().take(DEPTH));
    if best == 0.0 { 0.0 } else { found / best }
}

/// Marks the judged places that the lines hit first, and returns the highest of their grades.
fn new_grade(path: &str, lines: Lines, relevant: &[Relevant], is_hit: &mut [bool]) -> u32 {
    let mut best = 0;
    for (place, is_hit) in relevant.iter().zip(is_hit) {
        if !*is_hit && path == place.path && hits(lines, place) {
            *is_hit = true;
            best = best.max(place.grade);
        }
    }
    best
}

fn hits((start, end): Lines, place: &Relevant) -> bool {
    let overlap = length(start.max(place.start), end.min(place.end));
    let shorter = length(start, end).min(length(place.start, place.end));
    overlap > 0 && u64::from(overlap) * 3 >= u64::from(shorter)
}

fn length(start: u32, end: u32) -> u32 {
    end.saturating_add(1).saturating_sub(start)
}

fn ndcg(gains: &[u32], mut ideal: Vec<u32>) -> f64 {
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    ideal.truncate(DEPTH);
    let best = discounted(ideal.into_iter().map(gain));
    if best == 0.0 {
        0.0
    } else {
        discounted(gains.iter().copied().map(gain)) / best
    }
}

fn gain(grade: u32) -> f64 {
    f64::from(grade).exp2() - 1.0
}

fn discounted(gains: impl Iterator<Item = f64>) -> f64 {
    gains
        .enumerate()
        .map(|(index, gain)| gain / (index as f64 + 2.0).log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(path: &str, start: u32, end: u32) -> Ranked {
        Ranked {
            path: path.to_owned(),
            lines: (start, end),
            further: Vec::new(),
        }
    }

    fn place(path: &str, start: u32, end: u32, grade: u32) -> Relevant {
        Relevant {
            path: path.to_owned(),
            start,
            end,
            grade,
        }
    }

    #[test]
    fn perfect_answer_scores_one_and_empty_answer_zero() {
        let relevant = [place("a", 1, 10, 2), place("b", 5, 9, 1)];
        let perfect = measure(&[ranked("a", 1, 10), ranked("b", 5, 9)], &relevant);
        assert!((perfect.ndcg_file - 1.0).abs() < 1e-12 && (perfect.ndcg_lines - 1.0).abs() < 1e-12);
        assert_eq!((perfect.recall_file, perfect.mrr_file), ([0.5, 1.0, 1.0], 1.0));
        assert_eq!(
            measure(&[], &relevant),
            Measures {
                is_empty: true,
                ..Measures::default()
            }
        );
    }

    #[test]
    fn repeated_results_gain_nothing_but_take_up_a_rank() {
        let relevant = [place("a", 1, 10, 2), place("b", 1, 10, 2)];
        let results = [ranked("a", 1, 10), ranked("a", 1, 10), ranked("b", 1, 10)];
        let expected = (3.0 + 3.0 / 2.0) / (3.0 + 3.0 / 3f64.log2());
        assert!((measure(&results, &relevant).ndcg_file - expected).abs() < 1e-12);
    }

    #[test]
    fn lines_must_overlap_by_a_third_of_the_shorter() {
        let of = |start, end| measure(&[ranked("a", start, end)], &[place("a", 10, 18, 2)]).ndcg_lines;
        assert!((of(1, 12) - 1.0).abs() < 1e-12);
        assert!(of(1, 11).abs() < 1e-12);
        assert!((of(1, 500) - 1.0).abs() < 1e-12);
        assert!(of(19, 30).abs() < 1e-12);
    }

    #[test]
    fn one_result_counts_once_with_the_highest_grade() {
        let relevant = [place("a", 1, 5, 1), place("a", 6, 10, 2)];
        let measures = measure(&[ranked("a", 1, 10)], &relevant);
        let ideal = 3.0 + 1.0 / 3f64.log2();
        assert!((measures.ndcg_lines - 3.0 / ideal).abs() < 1e-12);
    }

    #[test]
    fn further_places_gain_at_the_rank_of_their_result() {
        let relevant = [place("a", 1, 5, 2), place("a", 20, 25, 1), place("b", 1, 5, 2)];
        let listing = Ranked {
            further: vec![(20, 25), (90, 99)],
            ..ranked("a", 1, 5)
        };
        let measures = measure(&[listing, ranked("b", 1, 5)], &relevant);
        assert!((measures.ndcg_places - 1.0).abs() < 1e-12);
        assert!(measures.ndcg_lines < 0.95);
        assert!((measures.lines_shown - 26.0).abs() < 1e-12);
        let without = measure(&[ranked("a", 1, 5), ranked("b", 1, 5)], &relevant);
        let second = 1.0 / 3f64.log2();
        let expected = (3.0 + 3.0 * second) / (4.0 + 3.0 * second);
        assert!((without.ndcg_places - expected).abs() < 1e-12);
    }
}
