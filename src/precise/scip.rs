//! Reads SCIP indexes without copying or allocating: only the fields that are needed, in one pass over the bytes.
//!
//! SCIP is a protobuf message (<https://github.com/sourcegraph/scip/blob/main/scip.proto>). The encoding is described at
//! <https://protobuf.dev/programming-guides/encoding/>.

use super::positions::Encoding;
use super::varint::take;

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
    pub(super) encoding: Option<Encoding>,
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
                    (_, 1, Value::Bytes(name)) => self.tool = text(name, base)?,
                    (_, 2, Value::Bytes(version)) => self.version = text(version, base)?,
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
                (_, 6, Value::Number(encoding)) => document.encoding = Encoding::of_number(encoding),
                _ => {}
            }
        }
        Ok(document)
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

fn text(bytes: &[u8], at: usize) -> Result<&str, ScipError> {
    std::str::from_utf8(bytes).map_err(|_| ScipError::Malformed { at })
}
