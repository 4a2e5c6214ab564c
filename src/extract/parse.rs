//! Bytes to syntax tree, within bounds that depend on the bytes alone.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// How much text the lexer is given at a time.
const BLOCK_BYTES: usize = 1_024;
/// Operations of the parser for each byte of a file. Code needs 0.3 to 1.5, tables of short numbers up to 6.
const MAX_OPERATIONS_PER_BYTE: u64 = 3;
/// Operations for a file of any length, about 0.2 s: small files may be as dense as they like.
const BASE_OPERATIONS: u64 = 1_000_000;

/// Parses `bytes` with the language that `parser` is set to; a newline is added at the end if there is none, because
/// some grammars take its absence for an error.
///
/// Returns nothing if the parser does more work than a real file of this length needs: on hostile input its time grows
/// with the square of the length. Work is counted, not timed, so that the answer is the same on every machine. The
/// parser in `vendor/tree-sitter` beside this file counts what it does within an operation, too, so an operation takes 0.05 to 0.4 µs.
pub(crate) fn parse(parser: &mut Parser, bytes: &[u8]) -> Option<Tree> {
    let max_operations = BASE_OPERATIONS + MAX_OPERATIONS_PER_BYTE * bytes.len() as u64;
    let mut report = |state: &ParseState| {
        if state.operation_count() > max_operations {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut report);
    let tree = parser.parse_with_options(&mut |at, _| block(bytes, at), None, Some(options));
    if tree.is_none() {
        parser.reset();
    }
    tree
}

/// The next block of text at `at`, or the newline that the blob may lack.
///
/// A block may end within a character: the lexer then asks for the text from that character on.
fn block(bytes: &[u8], at: usize) -> &[u8] {
    match bytes.len().checked_sub(at) {
        None => b"",
        Some(0) if bytes.last() == Some(&b'\n') => b"",
        Some(0) => b"\n",
        Some(n_left) => &bytes[at..at + n_left.min(BLOCK_BYTES)],
    }
}
