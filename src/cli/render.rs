//! Writes to the terminal. No other module does. Escapes control characters, and uses colors only on a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anstyle::{AnsiColor, Effects, Style};

use super::input::read_line;
use super::links;
use super::pager::{Pager, Size};
use crate::config::TerminalVariables;
use crate::git::Repository;
use crate::model::unprintable::{is_unprintable, json};
use crate::model::without_middles;
use crate::program::checkout_around;
use crate::session::{ErrorOut, OpError};

/// Style of headings and names.
pub(super) const STRONG: Style = Style::new().effects(Effects::BOLD);
/// Style of line numbers and secondary information.
pub(super) const FAINT: Style = Style::new().effects(Effects::DIMMED);
/// Style of matches.
pub(super) const MATCH: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
/// Style of added lines.
pub(super) const ADDED: Style = AnsiColor::Green.on_default();
/// Style of removed lines.
pub(super) const REMOVED: Style = AnsiColor::Red.on_default();
/// Style of strings in code.
pub(super) const LITERAL: Style = AnsiColor::Green.on_default();
/// Style of reserved words in code.
pub(super) const KEYWORD: Style = AnsiColor::Cyan.on_default();
/// Style of paths.
pub(super) const PATH: Style = AnsiColor::Magenta.on_default();

/// Writes the standard output and error of one command.
pub(super) struct Output {
    out: io::BufWriter<anstream::AutoStream<io::Stdout>>,
    pager: Option<Pager>,
    columns: Option<usize>,
    has_links: bool,
    has_color: bool,
    has_text: bool,
    pub(super) json: bool,
    quiet: bool,
    failed: Option<io::Error>,
}

impl Output {
    pub(super) fn new(color: anstream::ColorChoice, json: bool, quiet: bool) -> Self {
        let choice = match color {
            anstream::ColorChoice::Auto => anstream::AutoStream::choice(&io::stdout()),
            choice => choice,
        };
        Self {
            out: io::BufWriter::new(anstream::AutoStream::new(io::stdout(), choice)),
            pager: None,
            columns: None,
            has_links: false,
            has_color: choice != anstream::ColorChoice::Never,
            has_text: false,
            json,
            quiet,
            failed: None,
        }
    }

    /// Adapts the output to the terminal, if standard output is one: its width, links, and a pager up to the next
    /// [`Self::flush`]. The pager is no program of the repository at `repo`.
    pub(super) fn adapt(&mut self, variables: &TerminalVariables, has_pager: bool, repo: &Path) {
        let Some(size) = Size::of_stdout().filter(|_| self.is_terminal() && !self.json) else {
            return;
        };
        if has_pager {
            let (repository, around) = (Repository::discover(repo).ok(), checkout_around(repo));
            let mut roots = repository.as_ref().map(Repository::folders).unwrap_or_default();
            roots.extend(around.as_deref());
            self.pager = Pager::new(variables, size, &roots);
        }
        let cuts_lines = self.pager.as_ref().is_none_or(|pager| !pager.scrolls_sideways());
        self.columns = cuts_lines.then_some(size.columns);
        self.has_links = self.has_color && links::are_opened(variables);
    }

    /// Returns the width at which lines of lists are cut; `None` if they are not.
    pub(super) fn columns(&self) -> Option<usize> {
        self.columns
    }

    fn is_paging(&self) -> bool {
        self.pager.as_ref().is_some_and(Pager::is_running)
    }

    /// Returns true if paths become links. Pagers may not understand them.
    pub(super) fn has_links(&self) -> bool {
        self.has_links && !self.is_paging()
    }

    /// Writes text. Unprintable characters are escaped, except in styles and links, which only [`Self::styled`] and
    /// [`Self::path`] add to untrusted text.
    pub(super) fn put(&mut self, text: &str) -> io::Result<()> {
        let text = &*without_foreign(text);
        self.has_text |= !text.is_empty();
        let put = match &mut self.pager {
            Some(pager) => pager.put(text, &mut self.out),
            None => self.out.write_all(text.as_bytes()),
        };
        put.map_err(on_stdout)
    }

    /// Writes text. An error is returned by the next [`Self::flush`].
    pub(super) fn put_deferred(&mut self, text: &str) {
        if let Err(error) = self.put(text) {
            self.failed.get_or_insert(error);
        }
    }

    /// Writes a line, as [`Self::put`] does.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        self.put(text)?;
        self.put("\n")
    }

    /// Formats untrusted text in a style. Unprintable characters are escaped.
    pub(super) fn styled(&self, style: Style, text: &str) -> String {
        let text = sanitize(text);
        if self.has_color {
            format!("{style}{text}{style:#}")
        } else {
            text
        }
    }

    /// Formats untrusted text, such as a path, on one line in a style.
    pub(super) fn name(&self, style: Style, text: &str) -> String {
        self.styled(style, &one_line(text))
    }

    /// Formats a path, as a link if its file is given.
    pub(super) fn path(&self, text: &str, file: Option<&Path>) -> String {
        let path = self.name(PATH, text);
        match file.filter(|_| self.has_links()) {
            Some(file) => links::link(file, &path),
            None => path,
        }
    }

    /// Formats untrusted text on one line, with a style for the given byte ranges.
    pub(super) fn marked(&self, style: Style, text: &[u8], spans: &[(u32, u32)]) -> String {
        let mut marked = String::new();
        let mut at = 0;
        let piece = |from: usize, to: usize| one_line(&String::from_utf8_lossy(text.get(from..to).unwrap_or_default()));
        for &(start, end) in spans.iter().filter(|_| self.has_color) {
            let (start, end) = (start as usize, (end as usize).min(text.len()));
            marked.push_str(&piece(at, start));
            marked.push_str(&self.styled(style, &piece(start, end)));
            at = end;
        }
        marked.push_str(&piece(at, text.len()));
        marked
    }

    /// Prints a remark to standard error unless `--quiet` is set.
    pub(super) fn remark(&self, text: &str) {
        if !self.quiet {
            note(text);
        }
    }

    /// Prints the reasons for an incomplete answer to standard error, after the answer.
    pub(super) fn incomplete(&mut self, because: &[String]) -> io::Result<()> {
        self.flush()?;
        because.iter().for_each(|why| note(why));
        Ok(())
    }

    /// Writes a JSON value on one line.
    pub(super) fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let mut line = json(value)?;
        line.push(b'\n');
        self.bytes(&line)
    }

    /// Writes bytes unchanged.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Bypasses the text stream, which removes terminal control sequences.
        self.flush()?;
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(on_stdout)
    }

    /// Returns standard output, for data that is too large to hold in memory.
    pub(super) fn raw(&mut self) -> io::Result<io::StdoutLock<'static>> {
        self.flush()?;
        Ok(io::stdout().lock())
    }

    /// Returns true if any text was written.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }

    /// Returns true if standard output is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns true if standard input and standard error are terminals, so that the user can be asked.
    pub(super) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks a yes-or-no question. An empty answer means no.
    pub(super) fn ask(&mut self, question: &str) -> io::Result<bool> {
        self.flush()?;
        write!(io::stderr().lock(), "{} [y/N] ", sanitize(question))?;
        let answer = read_line()?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Shows all text, and waits until the user leaves the pager.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let shown = match self.pager.take() {
            Some(pager) => pager.finish(&mut self.out),
            None => Ok(()),
        };
        match self.failed.take() {
            Some(error) => Err(error),
            None => shown.and_then(|()| self.out.flush()).map_err(on_stdout),
        }
    }

    /// Shows all text before the remarks about it, given the outcome of writing it. Remarks follow even if the user left
    /// the pager early; the inner result then has the error.
    pub(super) fn finish_text(&mut self, written: io::Result<()>) -> io::Result<io::Result<()>> {
        let is_paged = self.is_paging();
        match written.and(self.flush()) {
            Err(error) if is_paged => Ok(Err(error)),
            shown => shown.map(Ok),
        }
    }

    /// Prints an error with its causes and hint to standard error, and with `--json` also as JSON to standard output.
    pub(super) fn error(&mut self, error: &OpError) {
        let ErrorOut { error, hint, retry } = error.for_shell();
        let out = ErrorOut {
            error: sanitize(&error),
            hint,
            retry,
        };
        if self.json {
            // If standard output is closed, the exit code still reports the error.
            let _ = self.json(&out).and_then(|()| self.flush());
        }
        let mut err = io::stderr().lock();
        // If standard error is closed too, the error cannot be reported.
        let _ = writeln!(err, "codescout: {}", out.error);
        if let Some(hint) = out.hint {
            let _ = writeln!(err, "hint: {}", sanitize(&hint));
        }
    }
}

/// Adds context to an error from standard output. Preserves the kind, because a broken pipe is not reported as an
/// error.
fn on_stdout(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write standard output: {error}"))
}

/// Prints a warning or remark to standard error.
pub(super) fn note(text: &str) {
    // Ignores an error if standard error is closed.
    let _ = writeln!(io::stderr().lock(), "codescout: {}", sanitize(&without_middles(text)));
}

/// Escapes unprintable characters except tab and newline as `\u{…}`.
pub(super) fn sanitize(text: &str) -> String {
    if text.chars().all(is_safe) {
        return text.to_owned();
    }
    let escape = |c: char| {
        if is_safe(c) {
            c.to_string()
        } else {
            c.escape_unicode().to_string()
        }
    };
    text.chars().map(escape).collect()
}

/// Escapes unprintable characters except tab and newline, and those of styles and links.
fn without_foreign(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| !is_safe(c)) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\x1b' => style_length(rest).or_else(|| links::length(rest)),
            _ => Some(c.len_utf8()).filter(|_| is_safe(c)),
        };
        match length {
            Some(length) => safe.push_str(&rest[..length]),
            None => safe.extend(c.escape_unicode()),
        }
        rest = &rest[length.unwrap_or(c.len_utf8())..];
    }
    safe.into()
}

/// Returns the length of the style (SGR sequence) at the start of a text, if there is one.
fn style_length(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\x1b[")?;
    let n_codes = codes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    codes[n_codes..].starts_with('m').then_some(2 + n_codes + 1)
}

fn is_safe(c: char) -> bool {
    c == '\n' || c == '\t' || !is_unprintable(c)
}

/// Like [`sanitize`], but also escapes newlines, so that the text stays on one line.
pub(super) fn one_line(text: &str) -> String {
    sanitize(text).replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_cannot_steer_a_terminal() {
        assert_eq!(sanitize("a\x1b[31mb\tc\n"), "a\\u{1b}[31mb\tc\n");
        assert_eq!(sanitize("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(sanitize("x\u{200b}\u{e0041}y"), "x\\u{200b}\\u{e0041}y");
        assert_eq!(sanitize("größe 漢字"), "größe 漢字");
    }

    #[test]
    fn only_styles_and_links_steer_a_terminal() {
        let link = links::link(Path::new("/a b"), "\x1b[1mtext\x1b[0m");
        for own in ["a\tb\n", "\x1b[38;5;4mpath\x1b[m", &link, "größe 漢字"] {
            assert_eq!(without_foreign(own), own);
        }
        for (foreign, escaped) in [
            ("\x1b[2Jx", "\\u{1b}[2Jx"),
            ("\x1b[1;", "\\u{1b}[1;"),
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("\x1b]8;;http://x y\x1b\\", "\\u{1b}]8;;http://x y\\u{1b}\\"),
            ("\x1b]8;;x", "\\u{1b}]8;;x"),
            ("a\u{9b}31mb", "a\\u{9b}31mb"),
            ("x\u{202e}y\u{200b}\u{feff}", "x\\u{202e}y\\u{200b}\\u{feff}"),
            ("\x1b", "\\u{1b}"),
            ("a\rb\x08", "a\\u{d}b\\u{8}"),
        ] {
            assert_eq!(without_foreign(foreign), escaped);
        }
    }
}
