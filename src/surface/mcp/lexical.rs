//! The first answer in a repository whose index is still being built: files are read and lines counted by the words they hold.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Result, bail};

use super::desk::Seen;
use super::tool::Call;
use crate::extract;
use crate::query::{FileFilter, GrepLine, Pattern, PatternOptions, Sources, grep};
use crate::snapshot::FileId;
use crate::surface::answer::{ResultOut, SearchPage, lines_request};

/// How long files are read.
const READING: Duration = Duration::from_millis(600);
/// Lines that are looked at, so that a word that is everywhere does not fill memory.
const MAX_LINES: usize = 20_000;
/// Words of the query that are looked for.
const MAX_WORDS: usize = 12;
/// Words that stand in every question.
const STOP_WORDS: &[&str] = &[
    "the", "and", "for", "with", "that", "this", "from", "are", "was", "how", "what", "where", "when", "which", "does",
    "into", "not", "all", "can", "has", "have", "its", "who", "why", "is", "in", "of", "to", "a", "an", "it", "on",
    "or", "by", "be",
];
/// What begins a line that defines something, in most languages.
const DEFINING: &[&str] = &[
    "fn",
    "def",
    "class",
    "function",
    "func",
    "struct",
    "enum",
    "trait",
    "interface",
    "type",
    "impl",
    "module",
    "const",
    "let",
    "var",
    "pub",
    "static",
    "public",
    "private",
    "protected",
    "async",
    "export",
    "sub",
    "proc",
    "macro_rules!",
    "#define",
];

struct Line {
    file: FileId,
    number: u32,
    text: String,
    words: u64,
    is_defining: bool,
}

/// The lines with the most of the query's words, those that define something first.
pub(super) fn search(
    call: &Call<'_>,
    seen: &Seen,
    query: &str,
    filter: &FileFilter,
    limit: usize,
) -> Result<SearchPage> {
    let words = words_of(query);
    if words.is_empty() {
        return Ok(SearchPage::default());
    }
    let options = PatternOptions {
        ignore_case: true,
        ..PatternOptions::default()
    };
    // Words hold letters, digits and underscores alone, which stand for themselves in a regular expression.
    let pattern = Pattern::new(&words.join("|"), options)?;
    let request = lines_request(pattern, filter.clone(), 0, MAX_LINES, None);
    let sources = Sources::new(&seen.view, &call.workspace()?.repository);
    let mut lines = Vec::new();
    let is_all = within(READING, call.interrupt, |interrupt| {
        let outcome = grep(&sources, &request, interrupt, &mut |matches| {
            lines.extend(matches.lines.iter().map(|line| weighed(matches.file, line, &words)));
            ControlFlow::Continue(())
        });
        !outcome.interrupted && outcome.next.is_none()
    });
    if call.interrupt.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    let mut page = SearchPage {
        results: best(seen, lines, limit),
        ..SearchPage::default()
    };
    if !is_all {
        page.notes
            .push("not all files were read in the time there was".to_owned());
    }
    page.after = vec![(0, 0); page.results.len()];
    Ok(page)
}

/// Runs `work` with a flag that is set after `time`, or when `interrupt` is.
fn within<T>(time: Duration, interrupt: &AtomicBool, work: impl FnOnce(&AtomicBool) -> T) -> T {
    const TICK: Duration = Duration::from_millis(20);
    let flag = AtomicBool::new(false);
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let flag = &flag;
        scope.spawn(move || {
            let mut left = time;
            while let Err(mpsc::RecvTimeoutError::Timeout) = is_done.recv_timeout(TICK.min(left)) {
                left = left.saturating_sub(TICK);
                if left.is_zero() || interrupt.load(Ordering::Relaxed) {
                    flag.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        let result = work(flag);
        drop(done);
        result
    })
}

fn words_of(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in query.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
        let word = word.to_lowercase();
        if word.len() > 1 && !STOP_WORDS.contains(&word.as_str()) && !words.contains(&word) {
            words.push(word);
        }
    }
    words.truncate(MAX_WORDS);
    words
}

fn weighed(file: FileId, line: &GrepLine, words: &[String]) -> Line {
    const MAX_SHOWN: usize = 400;
    let whole = String::from_utf8_lossy(&line.text);
    let lower = whole.to_lowercase();
    let found = words
        .iter()
        .enumerate()
        .filter(|(_, word)| lower.contains(word.as_str()));
    let first = whole.trim_start().split(|c: char| c.is_whitespace() || c == '(').next();
    Line {
        file,
        number: line.number,
        words: found.fold(0, |bits, (number, _)| bits | 1 << number),
        is_defining: first.is_some_and(|first| DEFINING.contains(&first)),
        text: whole.chars().take(MAX_SHOWN).collect(),
    }
}

fn best(seen: &Seen, mut lines: Vec<Line>, limit: usize) -> Vec<ResultOut> {
    let mut of_file: HashMap<FileId, u64> = HashMap::new();
    for line in &lines {
        *of_file.entry(line.file).or_default() |= line.words;
    }
    let weight = |line: &Line| {
        let in_line = line.words.count_ones();
        let in_file = of_file.get(&line.file).map_or(0, |words| words.count_ones());
        4 * in_line + 2 * in_file + 3 * u32::from(line.is_defining)
    };
    lines.sort_by_cached_key(|line| (std::cmp::Reverse(weight(line)), line.file, line.number));
    let view = &seen.view;
    let result = |line: &Line| ResultOut {
        path: String::from_utf8_lossy(view.file(line.file).path).into_owned(),
        start_line: line.number,
        end_line: line.number,
        score: weight(line) as f32,
        language: extract::language(view.lang(line.file)).map_or("text", |language| language.name),
        kind: "line".to_owned(),
        symbol: None,
        blob: view.file(line.file).entry().oid.to_string(),
        places: Vec::new(),
        refs: Vec::new(),
        life: None,
        snippet: Some(line.text.clone()),
        snippet_start_line: line.number,
        features: None,
    };
    lines.iter().take(limit).map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_something_are_looked_for() {
        assert_eq!(
            words_of("Where is the parse_query of a Lexer, parse_query?"),
            ["parse_query", "lexer"]
        );
        assert!(words_of("how is it?").is_empty());
    }

    #[test]
    fn reading_ends_in_time() {
        let never = AtomicBool::new(false);
        let spin = |flag: &AtomicBool| {
            while !flag.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        within(Duration::from_millis(1), &never, spin);
        let cancelled = AtomicBool::new(true);
        within(Duration::from_secs(3600), &cancelled, spin);
        assert_eq!(within(Duration::from_secs(3600), &never, |_| 7), 7);
    }
}
