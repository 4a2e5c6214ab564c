//! Finds the sections of AsciiDoc: lines that start with up to six `=`, outside of blocks.

use super::markdown::{Title, range, sections};
use super::restructuredtext::{lines, mark_of};
use super::{Language, Profile, Structure};
use crate::extract::layout::Layout;
use crate::extract::types::Extraction;
use crate::model::Lang;

pub(super) const LANGUAGE: Language = Language {
    name: "asciidoc",
    lang: Lang(205),
    aliases: &[],
    extensions: &["adoc", "asciidoc"],
    file_names: &[],
    interpreters: &[],
    profile: Profile::MARKUP,
    structure: Structure::Prose(scan),
};

fn scan(bytes: &[u8], layout: &mut Layout) -> Extraction {
    let lines = lines(bytes, layout);
    let (mut titles, mut block) = (Vec::new(), None);
    for (number, line) in lines.iter().enumerate() {
        // Listings, literals, examples, comments, quotes, sidebars and passed text.
        let delimiter = mark_of(line.text, 4).filter(|mark| b"-.=/_*+`".contains(mark));
        block = match (block, delimiter) {
            (None, Some(_)) => Some(line.text),
            (Some(open), Some(_)) if open == line.text => None,
            (block, _) => block,
        };
        let level = line.text.iter().take_while(|byte| **byte == b'=').count();
        let is_title = (1..=6).contains(&level) && line.text.get(level) == Some(&b' ');
        if is_title && block.is_none() {
            layout.set_depth(number, 0);
            titles.push(Title {
                level: level as u8,
                lines: range(line.start, line.end),
                text: range(line.start + level + 1, line.start + line.text.len()),
            });
        }
    }
    sections(&titles, bytes)
}
