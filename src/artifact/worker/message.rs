//! The messages between a process and its workers: a header as a record, and a body of bytes, each with its length
//! before it as a little-endian u32.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::extract::{Options, recipe_number};
use crate::model::Lang;
use crate::sidecar::{decode, encode};

/// Limit on the size of each part of a message.
const MAX_BYTES: u32 = 1 << 30;

/// The first message of a worker: the number of its extraction rules.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello(u32);

impl Hello {
    pub(super) fn new() -> Self {
        Self(recipe_number())
    }
}

/// The header of a question. The body is the text.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Question {
    lang: u16,
    pub(super) wanted: Wanted,
}

impl Question {
    pub(super) fn new(lang: Lang, wanted: Wanted) -> Self {
        Self { lang: lang.0, wanted }
    }

    pub(super) fn lang(&self) -> Lang {
        Lang(self.lang)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Wanted {
    /// An extraction, with the sizes of [`Options`].
    All([u32; 4]),
    Definitions,
    /// The words that are this name.
    Words(String),
}

impl Wanted {
    pub(super) fn all(options: &Options) -> Self {
        Self::All([
            options.target_bytes,
            options.small_bytes,
            options.max_bytes,
            options.overlap_lines,
        ])
    }

    pub(super) fn options(&self) -> Options {
        match *self {
            Self::All([target_bytes, small_bytes, max_bytes, overlap_lines]) => Options {
                target_bytes,
                small_bytes,
                max_bytes,
                overlap_lines,
            },
            _ => Options::default(),
        }
    }
}

/// The header of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The body is a core record of this length and a references record.
    All { n_core_bytes: u32 },
    /// The body is a core record.
    Definitions { errors: Option<Vec<(u32, u32)>> },
    /// The start, the end and the kind of each word.
    Words(Option<Vec<(u32, u32, u8)>>),
}

pub(super) fn write_message(to: &mut impl Write, header: &impl Serialize, body: &[u8]) -> io::Result<()> {
    let header = encode(header);
    let mut message = Vec::with_capacity(8 + header.len() + body.len());
    for part in [&header[..], body] {
        message.extend_from_slice(&(part.len() as u32).to_le_bytes());
        message.extend_from_slice(part);
    }
    to.write_all(&message)
}

pub(super) fn read_message<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<(T, Vec<u8>)> {
    let mut part = || -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > MAX_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = Vec::new();
        // Grows with what arrives, whatever the length says.
        match from.by_ref().take(length.into()).read_to_end(&mut bytes)? {
            n_read if n_read == length as usize => Ok(bytes),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    };
    let header = decode(&part()?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok((header, part()?))
}
