//! Reads SCIP indexes without copying or allocating: only the fields that are needed, in one pass over the bytes.
//!
//! SCIP is a protobuf message (<https://github.com/sourcegraph/scip/blob/main/scip.proto>). The encoding is described at
//! <https://protobuf.dev/programming-guides/encoding/>.

use super::positions::unit_of_number;
use crate::model::ColumnUnit;
use crate::model::unprintable::is_unprintable;
use crate::model::varint::take;

/// Limit on the name of an indexer, and on its version, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// An error from reading a SCIP index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScipError {
    /// The bytes are not a protobuf message, or end early.
    #[error("not a SCIP index, or truncated: byte {at} cannot be read")]
    Malformed {
        /// Position of the field that cannot be read.
        at: usize,
    },
    /// The message has no documents.
    #[error("not a SCIP index: it has no documents")]
    Empty,
}

/// A SCIP index.
#[derive(Clone, Copy, Debug)]
pub struct Index<'a> {
    bytes: &'a [u8],
    /// The name of the indexer; `unknown` if the index does not have it.
    pub tool: &'a str,
    /// The version of the indexer.
    pub version: &'a str,
    /// Number of documents.
    pub n_documents: usize,
}

/// What an index says about one file.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    bytes: &'a [u8],
    /// Position of `bytes` in the index.
    base: usize,
    /// The path relative to the root of the indexed project.
    pub path: &'a [u8],
    /// The unit of columns, if it is declared.
    pub(super) encoding: Option<ColumnUnit>,
    /// The text of the file, if the index has it.
    pub(super) text: Option<&'a [u8]>,
}

/// A name in a file, as the index describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RawOccurrence<'a> {
    /// Line and column of the start, then of the end, all counted from 0. `None` if the range has another form.
    pub(super) range: Option<[u32; 4]>,
    pub(super) symbol: &'a str,
    pub(super) is_definition: bool,
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A fixed-width number, which no needed field is.
    Fixed,
}

/// The fields of a message.
struct Fields<'a> {
    all: &'a [u8],
    rest: &'a [u8],
    base: usize,
}

impl<'a> Fields<'a> {
    fn of(all: &'a [u8], base: usize) -> Self {
        Self { all, rest: all, base }
    }

    /// Returns the position of the next field in the index.
    fn at(&self) -> usize {
        self.base + self.all.len() - self.rest.len()
    }

    fn take(&mut self) -> Option<(u64, Value<'a>)> {
        let key = take(&mut self.rest)?;
        let skip = |rest: &mut &'a [u8], n: usize| {
            let (skipped, after) = rest.split_at_checked(n)?;
            *rest = after;
            Some(skipped)
        };
        let value = match key & 7 {
            0 => Value::Number(take(&mut self.rest)?),
            1 => skip(&mut self.rest, 8).map(|_| Value::Fixed)?,
            2 => {
                let length = take(&mut self.rest)?.try_into().ok()?;
                Value::Bytes(skip(&mut self.rest, length)?)
            }
            5 => skip(&mut self.rest, 4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        (key >> 3 > 0).then_some((key >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    /// The position after a field, its number and its value.
    type Item = Result<(usize, u64, Value<'a>), ScipError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let at = self.at();
        let Some((number, value)) = self.take() else {
            self.rest = &[];
            return Some(Err(ScipError::Malformed { at }));
        };
        Some(Ok((self.at(), number, value)))
    }
}

impl<'a> Index<'a> {
    /// Reads the outer structure of an index: everything except the occurrences.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ScipError> {
        let mut index = Self {
            bytes,
            tool: "unknown",
            version: "",
            n_documents: 0,
        };
        for field in Fields::of(bytes, 0) {
            match field? {
                (end, 1, Value::Bytes(metadata)) => index.read_metadata(metadata, end - metadata.len())?,
                (end, 2, Value::Bytes(document)) => {
                    Document::read(document, end - document.len())?;
                    index.n_documents += 1;
                }
                _ => {}
            }
        }
        if index.n_documents == 0 {
            return Err(ScipError::Empty);
        }
        Ok(index)
    }

    fn read_metadata(&mut self, metadata: &'a [u8], base: usize) -> Result<(), ScipError> {
        for field in Fields::of(metadata, base) {
            let (end, 2, Value::Bytes(tool)) = field? else { continue };
            let base = end - tool.len();
            for field in Fields::of(tool, base) {
                match field? {
                    (_, 1, Value::Bytes(bytes)) => self.tool = name(bytes, base)?,
                    (_, 2, Value::Bytes(bytes)) => self.version = name(bytes, base)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Returns the documents in the order of the index.
    pub fn documents(&self) -> impl Iterator<Item = Result<Document<'a>, ScipError>> {
        Fields::of(self.bytes, 0).filter_map(|field| match field {
            Ok((end, 2, Value::Bytes(document))) => Some(Document::read(document, end - document.len())),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

impl<'a> Document<'a> {
    fn read(bytes: &'a [u8], base: usize) -> Result<Self, ScipError> {
        let mut document = Self {
            bytes,
            base,
            path: b"",
            encoding: None,
            text: None,
        };
        for field in Fields::of(bytes, base) {
            match field? {
                (_, 1, Value::Bytes(path)) => document.path = path,
                (_, 5, Value::Bytes(text)) => document.text = Some(text),
                (_, 6, Value::Number(encoding)) => document.encoding = unit_of_number(encoding),
                _ => {}
            }
        }
        Ok(document)
    }

    /// Returns the size of the document in bytes.
    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the occurrences in the order of the index.
    pub(super) fn occurrences(&self) -> impl Iterator<Item = Result<RawOccurrence<'a>, ScipError>> {
        Fields::of(self.bytes, self.base).filter_map(|field| match field {
            Ok((end, 2, Value::Bytes(bytes))) => Some(RawOccurrence::read(bytes, end - bytes.len())),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

impl<'a> RawOccurrence<'a> {
    fn read(bytes: &'a [u8], base: usize) -> Result<Self, ScipError> {
        let mut occurrence = Self::default();
        let (mut range, mut n_numbers) = ([0; 4], 0);
        let mut add = |number: u64| {
            if let Some(place) = range.get_mut(n_numbers) {
                // A number that does not fit is beyond the end of every file.
                *place = u32::try_from(number).unwrap_or(u32::MAX);
            }
            n_numbers += 1;
        };
        for field in Fields::of(bytes, base) {
            match field? {
                (end, 1, Value::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        let at = end - packed.len();
                        add(take(&mut packed).ok_or(ScipError::Malformed { at })?);
                    }
                }
                (_, 1, Value::Number(number)) => add(number),
                (_, 2, Value::Bytes(symbol)) => occurrence.symbol = text(symbol, base)?,
                (_, 3, Value::Number(roles)) => occurrence.is_definition = roles & 1 != 0,
                _ => {}
            }
        }
        occurrence.range = match (n_numbers, range) {
            (3, [line, start, end, _]) => Some([line, start, line, end]),
            (4, range) => Some(range),
            _ => None,
        };
        Ok(occurrence)
    }
}

/// Returns the name or version of an indexer, which is stored and shown.
fn name(bytes: &[u8], at: usize) -> Result<&str, ScipError> {
    Some(text(bytes, at)?)
        .filter(|text| is_name(text))
        .ok_or(ScipError::Malformed { at })
}

/// Returns true if a text can be the name or version of an indexer.
pub(super) fn is_name(text: &str) -> bool {
    // Agents and terminals see it.
    let is_odd = |letter: char| is_unprintable(letter) || "<>|`".contains(letter);
    text.len() <= MAX_NAME_BYTES && !text.contains(is_odd)
}

fn text(bytes: &[u8], at: usize) -> Result<&str, ScipError> {
    std::str::from_utf8(bytes).map_err(|_| ScipError::Malformed { at })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::precise::check;
    use crate::support::scip::{document, field, index, varint};

    const TEXT: &str = "fn größe() {}\nfn main() { größe() }\n";

    fn sample() -> Vec<u8> {
        let names = [
            ("größe", 0, "=a b c d größe()."),
            ("größe", 1, "a b c d größe()."),
            ("main", 0, "local 1"),
        ];
        index("tool", &[document("a.rs", TEXT, &names), document("b.rs", "", &[])])
    }

    /// Reads everything in an index. Returns the number of occurrences.
    fn read(bytes: &[u8]) -> Result<usize, ScipError> {
        let mut n = 0;
        for document in Index::read(bytes)?.documents() {
            let document = document?;
            for occurrence in document.occurrences() {
                occurrence?;
                n += 1;
            }
            let _ = check(&document, TEXT.as_bytes())?;
        }
        Ok(n)
    }

    #[test]
    fn occurrences_are_read_in_the_encoding_that_fits() {
        let bytes = sample();
        let index = Index::read(&bytes).unwrap();
        assert_eq!((index.tool, index.version, index.n_documents), ("tool", "1.0", 2));
        let first = index.documents().next().unwrap().unwrap();
        let checked = check(&first, TEXT.as_bytes()).unwrap().unwrap();
        let starts: Vec<(u32, bool)> = checked.names.iter().map(|name| (name.0, name.2)).collect();
        assert_eq!((starts, checked.n_local), (vec![(3, true), (28, false)], 1));
        assert_eq!(
            check(&first, b"fn other() {}").unwrap().err(),
            Some(crate::precise::Mismatch::Range)
        );
    }

    #[test]
    fn every_cut_is_an_error_or_a_shorter_index() {
        let good = sample();
        assert_eq!(read(&good), Ok(3));
        for length in 0..good.len() {
            if let Ok(n) = read(&good[..length]) {
                assert!(n < 3 || length + 8 >= good.len(), "{length}");
            }
        }
    }

    #[test]
    fn damaged_and_random_bytes_never_panic() {
        let good = sample();
        let mut seed = 1u64;
        for at in 0..good.len() {
            for _ in 0..8 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let mut bad = good.clone();
                bad[at] = (seed >> 33) as u8;
                let _ = read(&bad);
                let random: Vec<u8> = (0..at).map(|i| (seed.rotate_left(i as u32) >> 20) as u8).collect();
                let _ = read(&random);
            }
        }
    }

    #[test]
    fn huge_lengths_and_numbers_are_refused() {
        for length in [1 << 20, u64::from(u32::MAX), u64::MAX] {
            let bytes = [vec![2 << 3 | 2], varint(length), vec![0; 16]].concat();
            assert_eq!(read(&bytes), Err(ScipError::Malformed { at: 0 }), "{length}");
        }
        let range = [varint(u64::MAX), varint(1 << 40), varint(3)].concat();
        let occurrence = field(2, &[field(1, &range), field(2, b"a b c d x.")].concat());
        let bytes = index("t", &[[field(1, b"a.rs"), occurrence].concat()]);
        let document = Index::read(&bytes).unwrap().documents().next().unwrap().unwrap();
        assert_eq!(
            check(&document, b"x").unwrap().err(),
            Some(crate::precise::Mismatch::Range)
        );
    }
}
