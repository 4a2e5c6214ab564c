//! What lines open and leave open, as far as that can be told in any language.

/// Kinds of marks that are counted.
const KINDS: usize = 8;

/// How much more one text leaves open than another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance([i32; KINDS]);

impl Balance {
    /// Counts that `new` stands in place of `old`.
    pub fn replace(&mut self, old: &[u8], new: &[u8]) {
        let (old, new) = (opened(old), opened(new));
        for (sum, (old, new)) in self.0.iter_mut().zip(old.into_iter().zip(new)) {
            *sum += new - old;
        }
    }

    /// Whether nothing more is left open.
    pub fn is_even(&self) -> bool {
        let (nested, quotes) = self.0.split_at(5);
        nested.iter().all(|n| *n == 0) && quotes.iter().all(|n| n % 2 == 0)
    }
}

/// Brackets and comments that are opened less those that are closed; and how many quotes there are.
fn opened(text: &[u8]) -> [i32; KINDS] {
    let mut opened = [0; KINDS];
    let starts_line = |at: usize| at == 0 || text[at - 1] == b'\n';
    for (at, byte) in text.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| text[at]);
        match byte {
            b'{' => opened[0] += 1,
            b'}' => opened[0] -= 1,
            b'(' => opened[1] += 1,
            b')' => opened[1] -= 1,
            b'[' => opened[2] += 1,
            b']' => opened[2] -= 1,
            b'*' if before == Some(b'/') => opened[3] += 1,
            b'/' if before == Some(b'*') => opened[3] -= 1,
            // `=begin` and `=end` of Ruby, `=pod` and `=cut` of Perl.
            b'=' if starts_line(at) && text[at + 1..].starts_with(b"end") => opened[4] -= 1,
            b'=' if starts_line(at) && text[at + 1..].starts_with(b"cut") => opened[4] -= 1,
            b'=' if starts_line(at) && text.get(at + 1).is_some_and(u8::is_ascii_lowercase) => opened[4] += 1,
            b'_' if starts_line(at) && text[at..].starts_with(b"__END__") => opened[4] += 1,
            b'"' => opened[5] += 1,
            b'`' => opened[6] += 1,
            b'\'' if text[at..].starts_with(b"'''") => opened[7] += 1,
            _ => {}
        }
    }
    opened
}
