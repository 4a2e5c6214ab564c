//! Finds the sections of reStructuredText: titles with a line of punctuation below, and perhaps above them. Which mark has
//! which rank, each document decides by the order in which they occur.

use super::markdown::{Title, range, sections};
use super::{Language, Profile, Structure};
use crate::extract::layout::Layout;
use crate::extract::types::Extraction;
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "restructuredtext",
    lang: Lang(204),
    aliases: &["rst"],
    extensions: &["rst"],
    file_names: &[],
    interpreters: &[],
    profile: Profile::MARKUP,
    structure: Structure::Prose(scan),
};

/// A line without its end.
pub(super) struct Line<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: &'a [u8],
}

/// Splits a text into lines, and records their depths as those of prose without headings.
pub(super) fn lines<'a>(bytes: &'a [u8], layout: &mut Layout) -> Vec<Line<'a>> {
    let (mut lines, mut start, mut is_inside) = (Vec::new(), 0, false);
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let text = line.trim_ascii_end();
        let indent = (text.len() - text.trim_ascii_start().len()).min(8) / 2;
        if !text.is_empty() {
            layout.set_depth(number, if is_inside { 3 } else { 1 + indent });
        }
        is_inside = !text.is_empty();
        lines.push(Line { start, end: start + line.len(), text });
        start += line.len();
    }
    lines
}

/// Returns the mark of a line of at least `n` equal marks.
pub(super) fn mark_of(text: &[u8], n: usize) -> Option<u8> {
    let mark = text.first().filter(|mark| mark.is_ascii_punctuation())?;
    (text.len() >= n.max(2) && text.iter().all(|byte| byte == mark)).then_some(*mark)
}

/// Returns the titles that are underlined with one of `marks`: the number of the line below, the mark, and true if there
/// is also a line above.
pub(super) fn underlined(lines: &[Line<'_>], marks: Option<&[u8]>) -> Vec<(usize, u8, bool)> {
    let is_blank = |at: Option<usize>| at.is_none_or(|at| lines[at].text.is_empty());
    let mut found: Vec<(usize, u8, bool)> = Vec::new();
    for (below, line) in lines.iter().enumerate().skip(1) {
        let title = lines[below - 1].text;
        let n_letters = title.len().min(String::from_utf8_lossy(title).chars().count());
        let Some(mark) = mark_of(line.text, n_letters.min(4)) else { continue };
        let above = below.checked_sub(2);
        let has_above = above.is_some_and(|above| lines[above].text == line.text);
        let is_title = !title.is_empty()
            && mark_of(title, 2).is_none()
            && (has_above || !title[0].is_ascii_whitespace() && is_blank(above))
            && marks.is_none_or(|marks| marks.contains(&mark));
        if is_title {
            found.push((below, mark, has_above));
        }
    }
    found
}

/// Returns the title above line `below`, and records the depths of its lines.
pub(super) fn title_above(lines: &[Line<'_>], below: usize, has_above: bool, level: u8, layout: &mut Layout) -> Title {
    let (first, title) = (below - 1 - usize::from(has_above), &lines[below - 1]);
    layout.set_depth(first, 0);
    (first + 1..=below).for_each(|line| layout.set_depth(line, 3));
    let n_blank = title.text.len() - title.text.trim_ascii_start().len();
    Title {
        level,
        lines: range(lines[first].start, lines[below].end),
        text: range(title.start + n_blank, title.start + title.text.len()),
    }
}

fn scan(bytes: &[u8], layout: &mut Layout) -> Extraction {
    let lines = lines(bytes, layout);
    let mut ranks: Vec<(u8, bool)> = Vec::new();
    let title = |(below, mark, has_above)| {
        let known = ranks.iter().position(|rank| *rank == (mark, has_above));
        let rank = known.unwrap_or_else(|| {
            ranks.push((mark, has_above));
            ranks.len() - 1
        });
        title_above(&lines, below, has_above, rank.min(8) as u8 + 1, layout)
    };
    let titles: Vec<Title> = underlined(&lines, None).into_iter().map(title).collect();
    sections(&titles, bytes)
}
