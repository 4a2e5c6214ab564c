//! Finds the sections of plain text: titles underlined with `=`, `-` or `~`, and numbered titles that stand alone.

use super::markdown::{Title, range, sections};
use super::restructuredtext::{Line, lines, title_above, underlined};
use super::{Language, Profile, Structure};
use crate::extract::layout::Layout;
use crate::extract::types::Extraction;
use crate::model::Lang;

/// Maximum length of a numbered title. Longer lines are sentences.
const MAX_TITLE: usize = 72;

pub(super) const LANGUAGE: Language = Language {
    name: "plaintext",
    lang: Lang(206),
    aliases: &["txt"],
    extensions: &["txt", "text"],
    file_names: &["LICENSE", "README", "AUTHORS", "COPYING", "NEWS", "CHANGELOG"],
    interpreters: &[],
    profile: Profile::MARKUP,
    structure: Structure::Prose(scan),
};

fn scan(bytes: &[u8], layout: &mut Layout) -> Extraction {
    let lines = lines(bytes, layout);
    let mut titles: Vec<Title> = Vec::new();
    for (below, mark, has_above) in underlined(&lines, Some(b"=-~")) {
        let level = b"=-~".iter().position(|known| *known == mark).map_or(1, |at| at as u8 + 1);
        titles.push(title_above(&lines, below, has_above, level, layout));
    }
    let is_blank = |at: usize| lines.get(at).is_none_or(|line| line.text.is_empty());
    for (number, line) in lines.iter().enumerate() {
        let stands_alone = is_blank(number + 1) && (number == 0 || is_blank(number - 1));
        if let Some(level) = level_of(line).filter(|_| stands_alone) {
            layout.set_depth(number, 0);
            titles.push(Title {
                level,
                lines: range(line.start, line.end),
                text: range(line.start, line.start + line.text.len()),
            });
        }
    }
    titles.sort_by_key(|title| title.lines.start);
    sections(&titles, bytes)
}

/// Returns the level of a line such as `2.1 Files`: the number of its numbers.
fn level_of(line: &Line<'_>) -> Option<u8> {
    let text = std::str::from_utf8(line.text).ok().filter(|text| text.len() <= MAX_TITLE)?;
    let (numbers, title) = text.split_once(' ')?;
    let parts = numbers.trim_end_matches('.').split('.');
    let is_number = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let n_parts = parts.clone().filter(|part| is_number(part)).count();
    let is_title = title.starts_with(char::is_uppercase) && !title.ends_with(['.', ',', ';', ':']);
    (n_parts == parts.count() && n_parts <= 6 && is_title).then_some(n_parts as u8)
}
