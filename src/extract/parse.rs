//! Parses bytes into a syntax tree. The limits depend only on the bytes, not on time.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// Size of the blocks of text that the lexer reads.
const BLOCK_BYTES: usize = 1_024;
/// Number of operations between two calls of the progress callback: `OP_COUNT_PER_PARSER_CALLBACK_CHECK` in tree-sitter's
/// `parser.c`.
const OPERATIONS_PER_REPORT: u64 = 100;
/// Number of parser operations allowed per byte. Code needs 0.5 to 2.5; tables of short numbers need up to 6.
const MAX_OPERATIONS_PER_BYTE: u64 = 3;
/// Number of parser operations allowed in addition for every file, about 0.2 s. Allows small files to be dense.
const BASE_OPERATIONS: u64 = 1_000_000;
/// Number of parser operations allowed per byte of a guess, which has no base, since a file may have many.
const MAX_OPERATIONS_PER_BYTE_OF_GUESS: u64 = 10;

/// Number of parser operations per byte of a small effort, and number in addition. One in 2,500 small files needs more.
const MAX_OPERATIONS_PER_BYTE_OF_SMALL: u64 = 2;
const BASE_OPERATIONS_OF_SMALL: u64 = 2_000;

/// The number of operations that parsing may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    OfFile,
    /// The limit for a part that may be code, and is only used if it has no syntax errors.
    OfGuess,
}

impl Limit {
    fn operations(self, n_bytes: usize) -> u64 {
        match self {
            Self::OfFile => BASE_OPERATIONS + MAX_OPERATIONS_PER_BYTE * n_bytes as u64,
            Self::OfGuess => MAX_OPERATIONS_PER_BYTE_OF_GUESS * n_bytes as u64,
        }
    }
}

/// The work that parsing a text and its parts may take besides [`Limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Full,
    /// The work that most code takes: so many operations, and none on text that no alternative of the parser can read.
    Small {
        n_left: u64,
    },
    /// More was needed.
    Exceeded,
}

impl Effort {
    pub(crate) fn small(n_bytes: usize) -> Self {
        Self::Small {
            n_left: BASE_OPERATIONS_OF_SMALL + MAX_OPERATIONS_PER_BYTE_OF_SMALL * n_bytes as u64,
        }
    }
}

/// Parses `bytes` with the language of `parser`. Adds a newline if the last line has none, because some grammars report
/// an error without it.
///
/// Returns `None` if the parser does more work than a real file of this length needs: on hostile input, its time grows
/// with the square of the length. The limit is a number of operations instead of a time, so that the result is the same
/// on every machine. It does not bound the work within an operation; see `artifact/worker`.
pub(crate) fn parse(parser: &mut Parser, bytes: &[u8], limit: Limit, effort: &mut Effort) -> Option<Tree> {
    if *effort == Effort::Exceeded {
        return None;
    }
    let max_operations = limit.operations(bytes.len());
    let mut n_operations = 0;
    let mut report = |state: &ParseState| {
        n_operations += OPERATIONS_PER_REPORT;
        match *effort {
            Effort::Small { n_left } if state.has_error() || n_operations > n_left => *effort = Effort::Exceeded,
            _ if n_operations > max_operations => {}
            _ => return ControlFlow::Continue(()),
        }
        ControlFlow::Break(())
    };
    let options = ParseOptions::new().progress_callback(&mut report);
    let tree = parser.parse_with_options(&mut |at, _| block(bytes, at), None, Some(options));
    if tree.is_none() {
        parser.reset();
    }
    if let Effort::Small { n_left } = effort {
        *n_left = n_left.saturating_sub(n_operations);
    }
    tree
}

/// Returns the block of text at `at`, or the added newline at the end.
///
/// A block may end inside a character. The lexer then requests a block from the start of that character.
fn block(bytes: &[u8], at: usize) -> &[u8] {
    match bytes.len().checked_sub(at) {
        None => b"",
        Some(0) if bytes.last() == Some(&b'\n') => b"",
        Some(0) => b"\n",
        Some(n_left) => &bytes[at..at + n_left.min(BLOCK_BYTES)],
    }
}
