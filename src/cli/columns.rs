//! The width of text on a terminal.

use unicode_width::UnicodeWidthChar;

/// Distance of tab stops.
const TAB: usize = 8;

/// Returns the width of a character after `column` columns.
fn width_at(character: char, column: usize) -> usize {
    match character {
        '\t' => TAB - column % TAB,
        _ => character.width().unwrap_or(0),
    }
}

/// Returns the width of a line.
pub(super) fn width(line: &str) -> usize {
    line.chars()
        .fold(0, |column, character| column + width_at(character, column))
}

/// Replaces the tabs of a line, given in pieces, by spaces.
pub(super) fn expand_tabs<'a>(pieces: impl Iterator<Item = &'a mut String>) {
    let mut column = 0;
    for piece in pieces {
        let mut expanded = String::with_capacity(piece.len());
        for character in piece.chars() {
            let width = width_at(character, column);
            match character {
                '\t' => expanded.extend(std::iter::repeat_n(' ', width)),
                character => expanded.push(character),
            }
            column += width;
        }
        *piece = expanded;
    }
}

/// Shortens a path to `columns` columns by leaving out folders in the middle, at most all folders.
pub(super) fn shorten(path: &str, columns: usize) -> String {
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    let mut shortened = path.to_owned();
    for n_kept in (0..folders.len()).rev() {
        if width(&shortened) <= columns {
            break;
        }
        let (first, last) = (n_kept.div_ceil(2), folders.len() - n_kept / 2);
        shortened = [&folders[..first], &["…"], &folders[last..], &[name]]
            .concat()
            .join("/");
    }
    shortened
}

/// Returns the number of rows that a text takes on a terminal with `columns` columns. Control sequences take no space.
pub(super) fn n_rows(text: &str, columns: usize) -> usize {
    let visible = anstream::adapter::strip_str(text).to_string();
    let rows = visible.lines().map(|line| width(line).div_ceil(columns).max(1));
    rows.sum()
}

/// Cuts a line, given in pieces, to `columns` columns. The last of them then shows that text is left out.
pub(super) fn cut<'a>(pieces: impl Iterator<Item = &'a mut String>, columns: usize) {
    let mut pieces: Vec<&mut String> = pieces.collect();
    // The place of the sign: the first character that leaves no room for it.
    let mut sign = None;
    let mut column = 0;
    for (number, piece) in pieces.iter().enumerate() {
        for (at, character) in piece.char_indices() {
            column += width_at(character, column);
            if column >= columns && sign.is_none() {
                sign = Some((number, at));
            }
        }
    }
    if let Some((number, at)) = sign.filter(|_| column > columns) {
        pieces[number].truncate(at);
        pieces[number].push('…');
        pieces.drain(number + 1..).for_each(String::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_to(columns: usize, mut pieces: Vec<String>) -> Vec<String> {
        cut(pieces.iter_mut(), columns);
        pieces
    }

    #[test]
    fn long_lines_are_cut_to_the_width() {
        let pieces = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(cut_to(4, pieces(&["ab", "cd"])), ["ab", "cd"]);
        assert_eq!(cut_to(4, pieces(&["ab", "cde"])), ["ab", "c…"]);
        assert_eq!(cut_to(4, pieces(&["abc", "def", "g"])), ["abc", "…", ""]);
        assert_eq!(cut_to(4, pieces(&["abcdef", "g"])), ["abc…", ""]);
        assert_eq!(cut_to(4, pieces(&["漢字", ""])), ["漢字", ""]);
        assert_eq!(cut_to(5, pieces(&["漢字漢"])), ["漢字…"]);
        assert_eq!(cut_to(4, pieces(&["漢字漢"])), ["漢…"]);
        assert_eq!(cut_to(9, pieces(&["a\tbc"])), ["a\t…"]);
        assert_eq!(cut_to(4, pieces(&["e\u{301}e\u{301}ee"])), ["e\u{301}e\u{301}ee"]);
    }

    #[test]
    fn paths_are_shortened_in_the_middle() {
        assert_eq!(shorten("a/bb/cc/d.rs:1", 14), "a/bb/cc/d.rs:1");
        assert_eq!(shorten("a/bb/cc/d.rs:1", 13), "a/…/cc/d.rs:1");
        assert_eq!(shorten("a/bb/cc/d.rs:1", 12), "a/…/d.rs:1");
        assert_eq!(shorten("a/bb/cc/d.rs:1", 9), "…/d.rs:1");
        assert_eq!(shorten("a/bb/cc/d.rs:1", 2), "…/d.rs:1");
        assert_eq!(shorten("long.rs", 2), "long.rs");
    }

    #[test]
    fn tabs_become_spaces() {
        let mut pieces = ["\ta\t", "b", "\tc"].map(str::to_owned);
        expand_tabs(pieces.iter_mut());
        assert_eq!(pieces.concat(), "        a       b       c");
    }

    #[test]
    fn long_lines_take_several_rows() {
        assert_eq!(n_rows("", 4), 0);
        assert_eq!(n_rows("\nabcd\n", 4), 2);
        assert_eq!(n_rows("abcde", 4), 2);
        assert_eq!(n_rows("漢字漢", 4), 2);
        assert_eq!(n_rows("\u{1b}[1mabcd\u{1b}[0m", 4), 1);
        assert_eq!(n_rows("a\tb", 8), 2);
    }
}
