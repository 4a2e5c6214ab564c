//! Finds every line of a view that matches a pattern, including files that are not indexed.
//!
//! Signatures rule out indexed files without reading them; all other files are read. As in `git grep`, links and
//! submodules are not searched, and a binary file is reported without its lines. The attribute `diff` decides whether a
//! file is binary; without it, NUL bytes do.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::git::{AttributeMatcher, Attributes, FileMode, MAX_OBJECT_BYTES};
use crate::snapshot::{FileId, View};

use super::filter::FileFilter;
use super::pattern::{LineAt, Pattern};
use super::source::{Source, SourceReader, Sources, too_large};

/// Number of files searched in parallel at a time. Results are returned in file order.
const BLOCK_FILES: usize = 256;
/// Maximum size of files that are searched in parallel. Larger files are searched one after another.
const MAX_PARALLEL_BYTES: u64 = 8 << 20;
/// Limit on the matches of one file that are held in memory during a parallel search. A file with more matches is
/// searched again when its turn comes.
const MAX_HELD: Held = Held {
    lines: 4096,
    bytes: 1 << 20,
};
/// Limit on the matches reported for one file.
const MAX_REPORTED: Held = Held {
    lines: 2_000_000,
    bytes: MAX_OBJECT_BYTES as usize,
};
/// Number of bytes that git searches for NUL (`FIRST_FEW_BYTES` in its `xdiff-interface.c`).
const BINARY_HEAD: usize = 8_000;

/// A search request.
#[derive(Clone, Debug)]
pub struct GrepRequest {
    /// The pattern.
    pub pattern: Pattern,
    /// The files to search.
    pub filter: FileFilter,
    /// The detail to report for each file.
    pub detail: GrepDetail,
    /// Number of context lines before each match.
    pub before: usize,
    /// Number of context lines after each match.
    pub after: usize,
    /// Maximum number of matching lines, or of files unless [`GrepDetail::Lines`] is requested. `usize::MAX` for no
    /// limit.
    pub limit: usize,
    /// The position at which the previous page ended.
    pub from: Option<GrepPosition>,
}

/// The detail reported for a matching file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrepDetail {
    /// The matching lines.
    #[default]
    Lines,
    /// The file, without its lines.
    Files,
    /// The number of matching lines.
    Counts,
}

/// The position at which a truncated result ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrepPosition {
    /// The file.
    pub file: FileId,
    /// The last reported line; `u32::MAX` if the whole file was reported.
    pub line: u32,
}

/// A file that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMatches {
    /// The file.
    pub file: FileId,
    /// True if the file is binary. `lines` is then empty.
    pub is_binary: bool,
    /// Number of matching lines: all lines for [`GrepDetail::Counts`], the number in `lines` for [`GrepDetail::Lines`],
    /// else 1.
    pub n_matching_lines: u32,
    /// Matching lines and their context, in order.
    pub lines: Vec<GrepLine>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepLine {
    /// Line number, 1-based.
    pub number: u32,
    /// The bytes without the line break.
    pub text: Vec<u8>,
    /// Byte ranges of the matches within the line; empty for context and for an empty match.
    pub spans: Vec<(u32, u32)>,
    /// True for a matching line, false for context.
    pub is_match: bool,
}

/// The totals of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrepOutcome {
    /// Number of reported matching lines.
    pub n_lines: u64,
    /// Number of reported files.
    pub n_files: u32,
    /// The position from which to continue; `None` if the search is complete.
    pub next: Option<GrepPosition>,
    /// Files that may match but cannot be read, each with the reason.
    pub unread: Vec<(FileId, String)>,
    /// True if the search was interrupted.
    pub interrupted: bool,
}

/// Passes every matching file to `found`, in path order, until `found` breaks or the limit is reached.
pub fn grep(
    sources: &Sources<'_>,
    request: &GrepRequest,
    interrupt: &AtomicBool,
    found: &mut dyn FnMut(FileMatches) -> ControlFlow<()>,
) -> GrepOutcome {
    let candidates = candidates(sources.view(), request);
    let (attributes, unread) = sources.attributes();
    let mut tally = Tally {
        outcome: GrepOutcome {
            unread,
            ..GrepOutcome::default()
        },
        left: request.limit,
        detail: request.detail,
        last: None,
    };
    for block in candidates.chunks(BLOCK_FILES) {
        let searched: Vec<Searched> = block
            .par_iter()
            .map_init(
                || Searcher::new(sources, &attributes, request, interrupt),
                |searcher, &file| searcher.search(file, MAX_PARALLEL_BYTES, MAX_HELD),
            )
            .collect();
        for searched in searched {
            let searched = match searched {
                Searched::Large(file) => {
                    Searcher::new(sources, &attributes, request, interrupt).search(file, MAX_OBJECT_BYTES, MAX_REPORTED)
                }
                small => small,
            };
            if tally.take(searched, found).is_break() {
                return tally.outcome;
            }
        }
    }
    tally.outcome
}

enum Searched {
    Nothing,
    /// The file or its matches are too large to be held in memory together with other files.
    Large(FileId),
    Unread(FileId, String),
    Found(FileMatches),
    Interrupted,
}

/// The totals so far and the remaining limit.
struct Tally {
    outcome: GrepOutcome,
    left: usize,
    detail: GrepDetail,
    last: Option<GrepPosition>,
}

impl Tally {
    fn take(&mut self, searched: Searched, found: &mut dyn FnMut(FileMatches) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut matches = match searched {
            Searched::Nothing => return ControlFlow::Continue(()),
            Searched::Large(file) => {
                let reason = format!("more than {} matching lines", MAX_REPORTED.lines);
                self.outcome.unread.push((file, reason));
                return ControlFlow::Continue(());
            }
            Searched::Unread(file, reason) => {
                self.outcome.unread.push((file, reason));
                return ControlFlow::Continue(());
            }
            Searched::Interrupted => {
                self.outcome.interrupted = true;
                return ControlFlow::Break(());
            }
            Searched::Found(matches) => matches,
        };
        if self.left == 0 {
            // There is one line more than the limit, so there is another page.
            self.outcome.next = self.last;
            return ControlFlow::Break(());
        }
        let is_cut = self.cut(&mut matches);
        let last = matches.lines.iter().rev().find(|line| line.is_match);
        let position = GrepPosition {
            file: matches.file,
            line: last.filter(|_| is_cut).map_or(u32::MAX, |line| line.number),
        };
        self.outcome.n_lines += u64::from(matches.n_matching_lines);
        self.outcome.n_files += 1;
        self.last = Some(position);
        if found(matches).is_break() || is_cut {
            self.outcome.next = self.last;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Removes lines beyond the limit. Returns true if there were any.
    fn cut(&mut self, matches: &mut FileMatches) -> bool {
        if self.detail != GrepDetail::Lines || matches.is_binary {
            self.left -= 1;
            return false;
        }
        let n_lines = matches.n_matching_lines as usize;
        let is_cut = n_lines > self.left;
        if is_cut {
            let first_over = matches
                .lines
                .iter()
                .enumerate()
                .filter(|(_, line)| line.is_match)
                .nth(self.left);
            if let Some((index, _)) = first_over {
                matches.lines.truncate(index);
            }
            matches.n_matching_lines = self.left as u32;
        }
        self.left -= n_lines.min(self.left);
        is_cut
    }
}

/// Returns the files that may match, in order.
fn candidates(view: &View, request: &GrepRequest) -> Vec<FileId> {
    let first = request.from.map_or(0, |position| match position.line {
        u32::MAX => position.file.0.saturating_add(1),
        _ => position.file.0,
    });
    (first..view.n_files())
        .map(FileId)
        .filter(|&file| may_match(view, file, &request.pattern))
        .filter(|&file| request.filter.is_open() || request.filter.passes(view, file))
        .collect()
}

fn may_match(view: &View, file: FileId, pattern: &Pattern) -> bool {
    match view.file(file).blob.and_then(|blob| view.segments().of_blob(blob)) {
        Some((segment, local)) => segment.lexical.signature(local).may_match(pattern.candidates()),
        None => matches!(view.file(file).entry().mode, FileMode::File | FileMode::Executable),
    }
}

/// A number of matching lines and of their bytes.
#[derive(Clone, Copy)]
struct Held {
    lines: usize,
    bytes: usize,
}

/// Searches files on one thread.
struct Searcher<'a> {
    view: &'a View,
    reader: SourceReader<'a>,
    /// The attributes that decide whether a file is binary; `None` if there are none.
    attributes: Option<AttributeMatcher>,
    request: &'a GrepRequest,
    interrupt: &'a AtomicBool,
}

impl<'a> Searcher<'a> {
    fn new(
        sources: &Sources<'a>,
        attributes: &Attributes,
        request: &'a GrepRequest,
        interrupt: &'a AtomicBool,
    ) -> Self {
        Self {
            view: sources.view(),
            reader: sources.reader(),
            attributes: (!attributes.is_empty()).then(|| attributes.matcher()),
            request,
            interrupt,
        }
    }

    fn search(&mut self, file: FileId, max_bytes: u64, max_held: Held) -> Searched {
        if self.interrupt.load(Ordering::Relaxed) {
            return Searched::Interrupted;
        }
        match self.reader.read_up_to(file, max_bytes) {
            Ok(Source::Bytes(bytes)) => {
                let path = || self.view.file(file).entry().path;
                let stated = self.attributes.as_mut().and_then(|rules| rules.of(&path()).is_text);
                let is_text =
                    stated.unwrap_or_else(|| memchr::memchr(0, &bytes[..bytes.len().min(BINARY_HEAD)]).is_none());
                search_bytes(file, &bytes, is_text, self.request, max_held, self.interrupt)
            }
            Ok(Source::TooLarge { size }) if size <= MAX_OBJECT_BYTES && max_bytes < MAX_OBJECT_BYTES => {
                Searched::Large(file)
            }
            Ok(Source::TooLarge { size }) => Searched::Unread(file, too_large(size)),
            Ok(Source::Submodule) => Searched::Nothing,
            Ok(Source::Missing) => Searched::Unread(file, "content is missing or damaged in git".to_owned()),
            Ok(Source::Refused(reason)) => Searched::Unread(file, reason),
            Err(error) => Searched::Unread(file, error.to_string()),
        }
    }
}

fn search_bytes(
    file: FileId,
    bytes: &[u8],
    is_text: bool,
    request: &GrepRequest,
    max_held: Held,
    interrupt: &AtomicBool,
) -> Searched {
    let is_binary = !is_text;
    let max_lines = match request.detail {
        GrepDetail::Counts => usize::MAX,
        GrepDetail::Lines if !is_binary => request.limit.saturating_add(1),
        GrepDetail::Lines | GrepDetail::Files => 1,
    };
    let skipped_up_to = request
        .from
        .filter(|position| position.file == file)
        .map_or(0, |position| position.line);
    let mut lines = Vec::new();
    let (mut n_matching_lines, mut n_bytes) = (0, 0);
    request.pattern.for_each_line(bytes, |line| {
        if line.number <= skipped_up_to {
            return true;
        }
        n_matching_lines += 1;
        if request.detail == GrepDetail::Lines && !is_binary {
            n_bytes += line.end - line.start;
            lines.push(line);
        }
        let is_wanted = !interrupt.load(Ordering::Relaxed);
        is_wanted
            && (n_matching_lines as usize) < max_lines
            && lines.len() <= max_held.lines
            && n_bytes <= max_held.bytes
    });
    if interrupt.load(Ordering::Relaxed) {
        return Searched::Interrupted;
    }
    if lines.len() > max_held.lines || n_bytes > max_held.bytes {
        return Searched::Large(file);
    }
    if n_matching_lines == 0 {
        return Searched::Nothing;
    }
    Searched::Found(FileMatches {
        file,
        is_binary,
        n_matching_lines,
        lines: with_context(bytes, &lines, request),
    })
}

/// Returns the matching lines with their context, without duplicates.
fn with_context(bytes: &[u8], matching: &[LineAt], request: &GrepRequest) -> Vec<GrepLine> {
    let mut lines: Vec<GrepLine> = Vec::with_capacity(matching.len());
    for (index, &line) in matching.iter().enumerate() {
        let last_shown = lines.last().map_or(0, |last| last.number);
        let mut before = Vec::new();
        let mut next = line;
        while before.len() < request.before {
            match line_before(bytes, next) {
                Some(above) if above.number > last_shown => before.push(above),
                _ => break,
            }
            next = before[before.len() - 1];
        }
        lines.extend(before.into_iter().rev().map(|above| context(bytes, above)));
        let text = &bytes[line.start..line.end];
        lines.push(GrepLine {
            number: line.number,
            text: text.to_vec(),
            spans: request.pattern.spans(text),
            is_match: true,
        });
        let stop = matching.get(index + 1).map_or(u32::MAX, |line| line.number);
        let mut last = line;
        for _ in 0..request.after {
            match line_after(bytes, last) {
                Some(below) if below.number < stop => {
                    lines.push(context(bytes, below));
                    last = below;
                }
                _ => break,
            }
        }
    }
    lines
}

fn context(bytes: &[u8], line: LineAt) -> GrepLine {
    GrepLine {
        number: line.number,
        text: bytes[line.start..line.end].to_vec(),
        spans: Vec::new(),
        is_match: false,
    }
}

fn line_before(bytes: &[u8], line: LineAt) -> Option<LineAt> {
    let end = line.start.checked_sub(1)?;
    let start = memchr::memrchr(b'\n', &bytes[..end]).map_or(0, |newline| newline + 1);
    Some(LineAt {
        number: line.number - 1,
        start,
        end,
    })
}

fn line_after(bytes: &[u8], line: LineAt) -> Option<LineAt> {
    let start = line.end + 1;
    if start >= bytes.len() {
        return None;
    }
    let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |length| start + length);
    Some(LineAt {
        number: line.number + 1,
        start,
        end,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::query::PatternOptions;

    fn request(limit: usize, around: usize) -> GrepRequest {
        GrepRequest {
            pattern: Pattern::new("x", PatternOptions::default()).unwrap(),
            filter: FileFilter::default(),
            detail: GrepDetail::Lines,
            before: around,
            after: around,
            limit,
            from: None,
        }
    }

    fn numbers(found: Searched) -> Vec<(u32, bool)> {
        match found {
            Searched::Found(matches) => matches.lines.iter().map(|l| (l.number, l.is_match)).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn context_lines_come_once() {
        let found = search_bytes(
            FileId(0),
            b"a\nx\nb\nx\nc\nd\ne\nx",
            true,
            &request(usize::MAX, 1),
            MAX_REPORTED,
            &AtomicBool::new(false),
        );
        let expected = [
            (1, false),
            (2, true),
            (3, false),
            (4, true),
            (5, false),
            (7, false),
            (8, true),
        ];
        assert_eq!(numbers(found), expected);
    }

    #[test]
    fn an_interrupted_search_ends_within_a_file() {
        let is_over = AtomicBool::new(true);
        let found = search_bytes(FileId(0), b"x\n", true, &request(9, 0), MAX_REPORTED, &is_over);
        assert!(matches!(found, Searched::Interrupted));
    }

    #[test]
    fn a_truncated_result_continues_where_it_ended() {
        let bytes = b"x1\nx2\nx3\nx4\nx5\n";
        let mut request = request(2, 0);
        let mut numbers = Vec::new();
        loop {
            let mut tally = Tally {
                outcome: GrepOutcome::default(),
                left: request.limit,
                detail: request.detail,
                last: None,
            };
            let _ = tally.take(
                search_bytes(FileId(0), bytes, true, &request, MAX_REPORTED, &AtomicBool::new(false)),
                &mut |matches| {
                    numbers.extend(matches.lines.iter().map(|line| line.number));
                    ControlFlow::Continue(())
                },
            );
            match tally.outcome.next {
                Some(position) if position.line < u32::MAX => request.from = Some(position),
                _ => break,
            }
        }
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }
}
