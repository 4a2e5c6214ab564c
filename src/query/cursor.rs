//! Encodes cursors, which identify the start of the next page of a result.
//!
//! A cursor is bound to a query and a snapshot, so that pages never mix two states of the repository. Its bytes:
//! version (1) | snapshot (8) | query (8) | position (two u32, little endian) | check (4); printed as hexadecimal
//! digits.

use crate::model::{CommitId, Explain, Explanation, Hint};
use crate::snapshot::View;

const VERSION: u8 = 1;
const BODY_BYTES: usize = 25;
const CHECK_BYTES: usize = 4;

/// Identifies the snapshot and the query that a cursor is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorKey {
    snapshot: [u8; 8],
    question: [u8; 8],
}

/// What determined the order of a result besides the built-in model. All pages of a result must use the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScorersUsed {
    /// True for a configured embedding model.
    pub added: bool,
    /// True for sparse vectors.
    pub sparse: bool,
    /// True for a reranker.
    pub reranker: bool,
    /// True for the messages of recorded commits.
    pub messages: bool,
}

impl ScorersUsed {
    const IS_SET: u32 = 8;

    /// Encodes the value as part of a cursor position.
    pub fn to_number(self) -> u32 {
        let flags = [self.added, self.sparse, self.reranker, false, self.messages];
        let bits = flags.iter().enumerate().map(|(at, flag)| u32::from(*flag) << at);
        bits.fold(Self::IS_SET, |number, bit| number | bit)
    }

    /// Decodes a number from a cursor position. Returns `None` if the number is invalid.
    pub fn from_number(number: u32) -> Option<Self> {
        (number & Self::IS_SET > 0).then_some(Self {
            added: number & 1 > 0,
            sparse: number & 2 > 0,
            reranker: number & 4 > 0,
            messages: number & 16 > 0,
        })
    }
}

/// The reason why a cursor is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// The cursor is malformed.
    #[error("invalid cursor")]
    Malformed,
    /// The cursor belongs to another state of the files.
    #[error("the cursor is for an older state of the files")]
    OtherSnapshot,
    /// The cursor belongs to another query.
    #[error("the cursor belongs to another query")]
    OtherQuestion,
}

impl Explain for CursorError {
    fn explain(&self) -> Explanation {
        Explanation::hinting(match self {
            Self::Malformed => "use the next_cursor of the previous answer".into(),
            Self::OtherSnapshot => Hint::each(
                "the files have changed since that page; repeat the query without --cursor",
                "the files have changed since that page; repeat the query without cursor",
            ),
            Self::OtherQuestion => "use the same query and filters as for the previous page".into(),
        })
    }
}

impl CursorKey {
    /// Creates the key for a query on one view. `question` must contain everything that affects the result, except the
    /// page size.
    pub fn new(view: &View, question: &str) -> Self {
        Self::of(&snapshot(view), question)
    }

    /// Creates the key for a query on several views.
    pub fn over<'v>(views: impl Iterator<Item = &'v View>, question: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        views.for_each(|view| {
            hasher.update(&snapshot(view));
        });
        Self::of(hasher.finalize().as_bytes(), question)
    }

    /// Creates the key for a query on the commits reachable from `tip`.
    pub fn of_commits(tip: Option<CommitId>, profile: &str, question: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(profile.as_bytes());
        if let Some(tip) = tip {
            hasher.update(tip.0.as_bytes());
        }
        Self::of(hasher.finalize().as_bytes(), question)
    }

    /// Creates the key for a query on other data. `state` must contain everything that the result depends on.
    pub fn of_state(state: &str, question: &str) -> Self {
        Self::of(blake3::hash(state.as_bytes()).as_bytes(), question)
    }

    fn of(digest: &[u8; 32], question: &str) -> Self {
        Self {
            snapshot: digest[..8].try_into().expect("eight bytes"),
            question: blake3::hash(question.as_bytes()).as_bytes()[..8]
                .try_into()
                .expect("eight bytes"),
        }
    }

    /// Encodes a cursor for a position in the result.
    pub fn write(&self, position: (u32, u32)) -> String {
        let mut raw = vec![VERSION];
        raw.extend_from_slice(&self.snapshot);
        raw.extend_from_slice(&self.question);
        raw.extend_from_slice(&position.0.to_le_bytes());
        raw.extend_from_slice(&position.1.to_le_bytes());
        raw.extend_from_slice(&check(&raw));
        raw.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Decodes a cursor and returns its position.
    pub fn read(&self, cursor: &str) -> Result<(u32, u32), CursorError> {
        let raw = from_hex(cursor.trim()).ok_or(CursorError::Malformed)?;
        let (body, found) = raw.split_at_checked(BODY_BYTES).ok_or(CursorError::Malformed)?;
        if found != check(body) || body[0] != VERSION {
            return Err(CursorError::Malformed);
        }
        if body[9..17] != self.question {
            return Err(CursorError::OtherQuestion);
        }
        if body[1..9] != self.snapshot {
            return Err(CursorError::OtherSnapshot);
        }
        let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().expect("four bytes"));
        Ok((number(17), number(21)))
    }
}

/// Hashes the state of the files and the embedding profile. The id of a commit's tree identifies its files; if there
/// are uncommitted changes, every file is hashed.
fn snapshot(view: &View) -> [u8; 32] {
    let provenance = view.provenance();
    let mut hasher = blake3::Hasher::new();
    hasher.update(provenance.profile.as_bytes());
    match provenance.tree {
        Some(tree) if provenance.n_dirty_files == 0 => hasher.update(tree.0.as_bytes()),
        _ => hasher.update(&view.digest()),
    };
    *hasher.finalize().as_bytes()
}

fn check(body: &[u8]) -> [u8; CHECK_BYTES] {
    blake3::hash(body).as_bytes()[..CHECK_BYTES]
        .try_into()
        .expect("four bytes")
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || text.len() != 2 * (BODY_BYTES + CHECK_BYTES) {
        return None;
    }
    (0..text.len() / 2)
        .map(|index| u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_bound_to_its_query_and_snapshot() {
        let key = CursorKey::of(&[1; 32], "grep x");
        let cursor = key.write((7, u32::MAX));
        assert_eq!(key.read(&cursor), Ok((7, u32::MAX)));
        assert_eq!(
            CursorKey::of(&[2; 32], "grep x").read(&cursor),
            Err(CursorError::OtherSnapshot)
        );
        assert_eq!(
            CursorKey::of(&[1; 32], "grep y").read(&cursor),
            Err(CursorError::OtherQuestion)
        );
    }

    #[test]
    fn scorers_round_trip_through_a_position() {
        for number in 0..8 {
            let judges = ScorersUsed::from_number(number | ScorersUsed::IS_SET).expect("told");
            assert_eq!(judges.to_number(), number | ScorersUsed::IS_SET);
            assert_eq!(ScorersUsed::from_number(number), None);
        }
    }

    #[test]
    fn malformed_cursors_are_rejected() {
        let key = CursorKey::of(&[1; 32], "q");
        let good = key.write((1, 2));
        let flipped = format!(
            "{}{}",
            &good[..good.len() - 1],
            if good.ends_with('0') { '1' } else { '0' }
        );
        for bad in ["", "zz", "ü", &good[2..], &flipped] {
            assert_eq!(key.read(bad), Err(CursorError::Malformed), "{bad}");
        }
    }
}
