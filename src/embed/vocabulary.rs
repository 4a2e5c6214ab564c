//! A vocabulary of tokens, with a hash table for exact lookups.

/// Length limit of words. The tokenizer skips longer words, so longer prefixes are never looked up.
pub(super) const MAX_WORD_BYTES: usize = 64;

/// Maps texts to token ids. The ids are the indices of the entries.
///
/// The hash table uses open addressing and is at most half full. The hash is incremental: it is complete when the last
/// byte of a word has been read, and a single pass computes the hashes of all prefixes of a word.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// The texts of all entries, concatenated.
    text: Vec<u8>,
    /// The end of each entry in `text`.
    ends: Vec<u32>,
    slots: Vec<Slot>,
    /// Number of bits by which to shift a hash to get the first slot to probe.
    shift: u32,
    /// The length of the longest entry for each pair of classes of the first two bytes. Avoids most prefix lookups.
    longest: Vec<u8>,
}

/// A slot of the hash table. It is empty if `id_plus_1` is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    tag: u32,
    id_plus_1: u32,
}

impl Vocabulary {
    /// Creates the hash table. The entries are given as their concatenated texts and the end of each.
    ///
    /// Entries must be distinct and not empty. Otherwise, the error is the id of the first invalid entry.
    pub(super) fn new(text: Vec<u8>, ends: Vec<u32>) -> Result<Self, u32> {
        let bits = (ends.len().max(1) * 2).next_power_of_two().trailing_zeros().max(4);
        let mut vocabulary = Self {
            text,
            ends,
            slots: vec![Slot::default(); 1 << bits],
            shift: u64::BITS - bits,
            longest: vec![0; CLASSES * CLASSES],
        };
        for id in 0..vocabulary.len() as u32 {
            vocabulary.add(id)?;
        }
        Ok(vocabulary)
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the text of an entry.
    pub(super) fn entry(&self, id: u32) -> Option<&[u8]> {
        let end = *self.ends.get(id as usize)?;
        let start = if id == 0 { 0 } else { self.ends[id as usize - 1] };
        self.text.get(start as usize..end as usize)
    }

    /// Returns the id of the entry that equals `word`. `hash` is the hash of `word`.
    #[inline]
    pub(super) fn find(&self, hash: WordHash, word: &[u8]) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = (hash.0 >> self.shift) as usize;
        loop {
            let slot = self.slots[at];
            if slot.id_plus_1 == 0 {
                return None;
            }
            let id = slot.id_plus_1 - 1;
            if slot.tag == hash.tag() && self.entry(id) == Some(word) {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
    }

    /// Splits `word` from the front into the longest matching entries. Skips a byte if no entry starts with it.
    pub(super) fn split(&self, word: &[u8], emit: &mut impl FnMut(u32)) {
        let mut rest = word;
        while !rest.is_empty() {
            match self.longest_prefix(rest) {
                Some((id, len)) => {
                    emit(id);
                    rest = &rest[len..];
                }
                None => rest = &rest[1..],
            }
        }
    }

    /// Returns the id and the length of the longest entry that is a prefix of `rest`.
    fn longest_prefix(&self, rest: &[u8]) -> Option<(u32, usize)> {
        let limit = usize::from(self.longest[pair_class(rest)])
            .min(rest.len())
            .min(MAX_WORD_BYTES);
        let mut hashes = [WordHash::EMPTY; MAX_WORD_BYTES + 1];
        for len in 0..limit {
            hashes[len + 1] = hashes[len].with(rest[len]);
        }
        (1..=limit)
            .rev()
            .find_map(|len| Some((self.find(hashes[len], &rest[..len])?, len)))
    }

    fn add(&mut self, id: u32) -> Result<(), u32> {
        let entry = self.entry(id).filter(|entry| !entry.is_empty()).ok_or(id)?;
        let hash = entry.iter().fold(WordHash::EMPTY, |hash, &byte| hash.with(byte));
        if self.find(hash, entry).is_some() {
            return Err(id);
        }
        let (len, first) = (entry.len().min(MAX_WORD_BYTES) as u8, pair_class(entry));
        let starts = if entry.len() == 1 {
            first - (CLASSES - 1)..first + 1
        } else {
            first..first + 1
        };
        for longest in &mut self.longest[starts] {
            *longest = len.max(*longest);
        }
        let mask = self.slots.len() - 1;
        let mut at = (hash.0 >> self.shift) as usize;
        while self.slots[at].id_plus_1 != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = Slot {
            tag: hash.tag(),
            id_plus_1: id + 1,
        };
        Ok(())
    }
}

/// The hash of the bytes read so far. Uses the step of FNV-1a with a denser multiplier. The high bits determine the
/// slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordHash(u64);

impl WordHash {
    /// The hash of no bytes.
    pub(super) const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    /// Returns the hash after one more byte.
    #[inline(always)]
    pub(super) fn with(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn tag(self) -> u32 {
        (self.0 >> 16) as u32
    }
}

/// The classes of bytes: `a`–`z`, `0`–`9`, any other byte, no byte.
const CLASSES: usize = 38;

fn class(byte: Option<&u8>) -> usize {
    match byte {
        Some(&letter @ b'a'..=b'z') => usize::from(letter - b'a'),
        Some(&digit @ b'0'..=b'9') => 26 + usize::from(digit - b'0'),
        Some(_) => 36,
        None => CLASSES - 1,
    }
}

fn pair_class(word: &[u8]) -> usize {
    class(word.first()) * CLASSES + class(word.get(1))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn vocabulary(entries: &[&str]) -> Result<Vocabulary, u32> {
        let mut ends = Vec::new();
        let mut text = Vec::new();
        for entry in entries {
            text.extend_from_slice(entry.as_bytes());
            ends.push(text.len() as u32);
        }
        Vocabulary::new(text, ends)
    }

    fn split(vocabulary: &Vocabulary, word: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        vocabulary.split(word.as_bytes(), &mut |id| ids.push(id));
        ids
    }

    #[test]
    fn the_longest_prefix_wins() {
        let vocabulary = vocabulary(&["a", "ab", "abcd", "c", "d", "bc"]).unwrap();
        assert_eq!(split(&vocabulary, "abcd"), [2]);
        assert_eq!(split(&vocabulary, "abc"), [1, 3]);
        assert_eq!(split(&vocabulary, "abbcd"), [1, 5, 4]);
        assert_eq!(split(&vocabulary, "aa"), [0, 0]);
    }

    #[test]
    fn what_starts_no_entry_is_skipped() {
        let vocabulary = vocabulary(&["ab"]).unwrap();
        assert_eq!(split(&vocabulary, "zabzza"), [0]);
        assert!(split(&self::vocabulary(&[]).unwrap(), "abc").is_empty());
    }

    #[test]
    fn empty_and_repeated_entries_are_refused() {
        assert_eq!(vocabulary(&["a", "", "b"]).unwrap_err(), 1);
        assert_eq!(vocabulary(&["a", "b", "a"]).unwrap_err(), 2);
    }
}
