//! Bytes to syntax tree, within bounds that depend on the bytes alone.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tree_sitter::{LogType, ParseOptions, ParseState, Parser, Tree};

/// The parser reports once in this many of its operations (`OP_COUNT_PER_PARSER_CALLBACK_CHECK` of tree-sitter 0.27).
const OPERATIONS_PER_REPORT: u64 = 100;
/// How much text the lexer is given at a time.
const BLOCK_BYTES: usize = 1_024;
/// What counts besides the length, so that short files are never cut off.
const BASE_BYTES: u64 = 8_192;

/// Operations per byte, within each stretch of [`STRETCH_BYTES`] and in all. Code needs about 0.5, tables of one-digit
/// numbers up to 12.
const MAX_OPERATIONS: u64 = 20;
/// Trouble is noticed where it stands, not at the end of a long file.
const STRETCH_BYTES: u64 = 4_096;
/// Operations per byte while no reading of the text is without errors; they cost some fifty times as much. Broken files
/// of real repositories stay below 0.2.
const MAX_ERROR_OPERATIONS: u64 = 1;
/// How often each block is read. Real files stay below 30; a lexer that looks for the end of a comment from each of its
/// beginnings reads thousands of times.
const MAX_READS: u64 = 200;

/// What a grammar's parser may do.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Operations per byte.
    pub(crate) operations: u64,
    /// Syntax errors per KiB: each may cost time in the length of all that is open.
    pub(crate) errors: u64,
    /// Errors are counted in files from this size on, because to count them takes as long as to parse.
    pub(crate) errors_from_bytes: usize,
}

impl Limits {
    /// For well-behaved grammars.
    pub(crate) const DEFAULT: Self = Self {
        operations: MAX_OPERATIONS,
        errors: 128,
        errors_from_bytes: 256 << 10,
    };
}

/// Parses `bytes` with the language that `parser` is set to; a newline is added at the end if there is none, because
/// some grammars take its absence for an error.
///
/// Returns nothing if the parser works more for a byte than any real file asks for: on hostile input its time grows with
/// the square of the length. Work is counted, not timed, so that the answer is the same on every machine.
pub(crate) fn parse(parser: &mut Parser, bytes: &[u8], limits: Limits) -> Option<Tree> {
    let work = Work::for_length(bytes.len(), limits);
    if bytes.len() >= limits.errors_from_bytes {
        work.listen(parser);
    }
    let mut report = |state: &ParseState| work.report(state);
    let options = ParseOptions::new().progress_callback(&mut report);
    let tree = parser.parse_with_options(&mut |at, _| work.read(bytes, at), None, Some(options));
    parser.set_logger(None);
    if tree.is_none() {
        parser.reset();
    }
    tree.filter(|_| !work.is_too_much())
}

/// What the parser has done so far, and how much it may do.
struct Work {
    n_reports: Cell<u64>,
    n_error_reports: Cell<u64>,
    n_reads: Cell<u64>,
    n_errors: Arc<AtomicU64>,
    /// Reports since the parser came to the current stretch, and where that ends.
    n_in_stretch: Cell<u64>,
    stretch_end: Cell<u64>,
    /// Where the parser stood at the last report. At the end it stands still and balances the tree.
    last_at: Cell<u64>,
    max_in_stretch: u64,
    max_reports: u64,
    max_error_reports: u64,
    max_reads: u64,
    max_errors: u64,
}

impl Work {
    fn for_length(n_bytes: usize, limits: Limits) -> Self {
        let n_bytes = n_bytes as u64 + BASE_BYTES;
        Self {
            last_at: Cell::new(0),
            n_reports: Cell::new(0),
            n_error_reports: Cell::new(0),
            n_reads: Cell::new(0),
            n_errors: Arc::default(),
            max_errors: n_bytes * limits.errors / 1_024,
            n_in_stretch: Cell::new(0),
            stretch_end: Cell::new(0),
            max_in_stretch: STRETCH_BYTES * limits.operations / OPERATIONS_PER_REPORT,
            max_reports: n_bytes * limits.operations / OPERATIONS_PER_REPORT,
            max_error_reports: n_bytes * MAX_ERROR_OPERATIONS / OPERATIONS_PER_REPORT,
            max_reads: n_bytes * MAX_READS / BLOCK_BYTES as u64,
        }
    }

    /// Counts the errors that the parser's log tells of.
    fn listen(&self, parser: &mut Parser) {
        let n_errors = Arc::clone(&self.n_errors);
        parser.set_logger(Some(Box::new(move |kind, message| {
            let is_error = kind == LogType::Parse && message.starts_with("detect_error");
            n_errors.fetch_add(u64::from(is_error), Ordering::Relaxed);
        })));
    }

    fn report(&self, state: &ParseState) -> ControlFlow<()> {
        self.n_reports.update(|n| n + 1);
        self.n_error_reports.update(|n| n + u64::from(state.has_error()));
        let at = state.current_byte_offset() as u64;
        if at >= self.stretch_end.get() {
            self.stretch_end.set(at + STRETCH_BYTES);
            self.n_in_stretch.set(0);
        }
        self.n_in_stretch.update(|n| n + u64::from(at != self.last_at.get()));
        self.last_at.set(at);
        if self.is_too_much() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn is_too_much(&self) -> bool {
        self.n_reports.get() > self.max_reports
            || self.n_in_stretch.get() > self.max_in_stretch
            || self.n_error_reports.get() > self.max_error_reports
            || self.n_reads.get() > self.max_reads
            || self.n_errors.load(Ordering::Relaxed) > self.max_errors
    }

    /// The next block of text at `at`; the newline that the blob may lack; nothing once too much was read.
    ///
    /// A block may end within a character: the lexer then asks for the text from that character on.
    fn read<'b>(&self, bytes: &'b [u8], at: usize) -> &'b [u8] {
        self.n_reads.update(|n| n + 1);
        match bytes.len().checked_sub(at) {
            _ if self.n_reads.get() > self.max_reads => b"",
            None => b"",
            Some(0) if bytes.last() == Some(&b'\n') => b"",
            Some(0) => b"\n",
            Some(n_left) => &bytes[at..at + n_left.min(BLOCK_BYTES)],
        }
    }
}
