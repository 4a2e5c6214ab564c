//! The difference of two texts, as `diff -u` shows it.

/// Lines around a change.
const CONTEXT: usize = 3;
/// Above this many pairs of lines in a changed region it is shown as replaced: configuration files are small.
const MAX_PAIRS: usize = 4_000_000;
const NO_NEWLINE: &str = "\\ No newline at end of file\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Keep,
    Remove,
    Add,
}

/// The unified difference; empty if there is none. A text that is `None` is a file that does not exist.
pub(super) fn unified(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let old: Vec<&str> = before.unwrap_or_default().split_inclusive('\n').collect();
    let new: Vec<&str> = after.unwrap_or_default().split_inclusive('\n').collect();
    let ops = operations(&old, &new);
    let name = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{}", path.trim_start_matches('/')),
        None => "/dev/null".to_owned(),
    };
    let mut shown = String::new();
    for (start, end) in hunks(&ops) {
        shown += &hunk(&ops, start, end, &old, &new);
    }
    if shown.is_empty() {
        shown
    } else {
        format!("--- {}\n+++ {}\n{shown}", name("a", before), name("b", after))
    }
}

/// What turns the old lines into the new ones, with as few changes as there can be.
fn operations(old: &[&str], new: &[&str]) -> Vec<Op> {
    let n_before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[n_before..], &new[n_before..]);
    let n_after = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old, new) = (&old[..old.len() - n_after], &new[..new.len() - n_after]);
    let mut ops = vec![Op::Keep; n_before];
    ops.extend(changed(old, new));
    ops.extend(vec![Op::Keep; n_after]);
    ops
}

/// By the longest common subsequence.
fn changed(old: &[&str], new: &[&str]) -> Vec<Op> {
    let width = new.len() + 1;
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        return [vec![Op::Remove; old.len()], vec![Op::Add; new.len()]].concat();
    }
    // `common[i * width + j]`: how many lines old[i..] and new[j..] have in common.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut ops = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            ops.push(Op::Keep);
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[(i + 1) * width + j] >= common[i * width + j + 1]) {
            ops.push(Op::Remove);
            i += 1;
        } else {
            ops.push(Op::Add);
            j += 1;
        }
    }
    ops
}

/// The ranges of operations that are shown.
fn hunks(ops: &[Op]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (at, _) in ops.iter().enumerate().filter(|(_, op)| **op != Op::Keep) {
        let (start, end) = (at.saturating_sub(CONTEXT), (at + 1 + CONTEXT).min(ops.len()));
        match hunks.last_mut() {
            Some(last) if start <= last.1 => last.1 = end,
            _ => hunks.push((start, end)),
        }
    }
    hunks
}

fn hunk(ops: &[Op], start: usize, end: usize, old: &[&str], new: &[&str]) -> String {
    let n_old = |ops: &[Op]| ops.iter().filter(|op| **op != Op::Add).count();
    let n_new = |ops: &[Op]| ops.iter().filter(|op| **op != Op::Remove).count();
    let (mut i, mut j) = (n_old(&ops[..start]), n_new(&ops[..start]));
    let range = |first: usize, length: usize| match length {
        0 => format!("{first},0"),
        _ => format!("{},{length}", first + 1),
    };
    let shown = &ops[start..end];
    let mut text = format!("@@ -{} +{} @@\n", range(i, n_old(shown)), range(j, n_new(shown)));
    for op in shown {
        let (sign, line) = match op {
            Op::Keep => (' ', old[i]),
            Op::Remove => ('-', old[i]),
            Op::Add => ('+', new[j]),
        };
        i += usize::from(*op != Op::Add);
        j += usize::from(*op != Op::Remove);
        text.push(sign);
        text += line;
        if !line.ends_with('\n') {
            text += "\n";
            text += NO_NEWLINE;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_shown_with_its_surroundings() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = before.replace("5\n", "five\nmore\n");
        assert_eq!(
            unified("/x/f", Some(before), Some(&after)),
            "--- a/x/f\n+++ b/x/f\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+more\n 6\n 7\n 8\n"
        );
        assert_eq!(unified("f", Some(before), Some(before)), "");
    }

    #[test]
    fn files_that_come_and_go_and_missing_line_ends_are_told() {
        assert_eq!(
            unified("f", None, Some("a\n")),
            "--- /dev/null\n+++ b/f\n@@ -0,0 +1,1 @@\n+a\n"
        );
        assert_eq!(
            unified("f", Some("a"), None),
            "--- a/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn changes_far_apart_are_shown_apart() {
        let before: String = (0..30).map(|n| format!("{n}\n")).collect();
        let after = before.replacen("2\n", "two\n", 1).replace("27\n", "");
        let shown = unified("f", Some(&before), Some(&after));
        assert_eq!(shown.matches("@@ -").count(), 2, "{shown}");
    }
}
