//! Counts how many brackets, comments and quotes edits leave open, without knowing the language.

/// Prefixes of lines that are skipped: the line is a comment, or its brackets are assumed to close on the same line.
const COMMENTS: [&[u8]; 4] = [b"*", b"//", b"#", b"--"];
/// Number of counted kinds: five kinds of brackets and comments, and three kinds of quotes.
const KINDS: usize = 8;

/// The number of open brackets, comments and quotes that replacing text has added or removed, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Balance([i32; KINDS]);

impl Balance {
    /// Adds what `new` leaves open and subtracts what `old` leaves open.
    pub(super) fn replace(&mut self, old: &[u8], new: &[u8]) {
        let (old, new) = (opened(old), opened(new));
        for (sum, (old, new)) in self.0.iter_mut().zip(old.into_iter().zip(new)) {
            *sum += new - old;
        }
    }

    /// Returns true if the replacements left the same brackets, comments and quotes open.
    pub(super) fn is_even(&self) -> bool {
        let (nested, quotes) = self.0.split_at(5);
        nested.iter().all(|n| *n == 0) && quotes.iter().all(|n| n % 2 == 0)
    }
}

/// Counts opening minus closing brackets and comment marks, and counts quotes. Skips brackets inside comments and
/// inside strings on one line.
fn opened(text: &[u8]) -> [i32; KINDS] {
    let mut opened = [0; KINDS];
    for line in text.split(|byte| *byte == b'\n') {
        add_line(line, &mut opened);
    }
    opened
}

fn add_line(line: &[u8], opened: &mut [i32; KINDS]) {
    let start = line.trim_ascii_start();
    let mut is_code = !COMMENTS.iter().any(|mark| start.starts_with(mark));
    let mut n_quotes = 0;
    for (at, byte) in line.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| line[at]);
        // A character literal such as `'{'`.
        if before == Some(b'\'') && line.get(at + 1) == Some(&b'\'') && *byte != b'\'' {
            continue;
        }
        let mut add = |kind: usize, n: i32| opened[kind] += i32::from(is_code && n_quotes % 2 == 0) * n;
        match byte {
            b'{' => add(0, 1),
            b'}' => add(0, -1),
            b'(' => add(1, 1),
            b')' => add(1, -1),
            b'[' => add(2, 1),
            b']' => add(2, -1),
            b'*' if before == Some(b'/') => {
                opened[3] += 1;
                is_code = false;
            }
            b'/' if before == Some(b'*') => {
                opened[3] -= 1;
                is_code = true;
            }
            b'/' if before == Some(b'/') => is_code = false,
            b'"' => {
                opened[5] += 1;
                n_quotes += i32::from(before != Some(b'\\'));
            }
            b'`' => opened[6] += 1,
            b'\'' if line[at..].starts_with(b"'''") => opened[7] += 1,
            _ => {}
        }
    }
    // `=begin` and `=end` in Ruby, `=pod` and `=cut` in Perl.
    match line {
        [b'=', rest @ ..] if rest.starts_with(b"end") || rest.starts_with(b"cut") => opened[4] -= 1,
        [b'=', first, ..] if first.is_ascii_lowercase() => opened[4] += 1,
        _ if line.starts_with(b"__END__") => opened[4] += 1,
        _ => {}
    }
}
