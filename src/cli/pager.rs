//! Shows long output through a pager, as git does.
//!
//! Output that fits on one screen is printed directly. A repository's configuration has no effect on the pager.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::columns::n_rows;
use super::links::without_links;
use crate::config::TerminalVariables;
use crate::program;

/// Set when a pager starts. Ctrl-C is the pager's then, and this process must not end before it. It stays set after the
/// pager, because the thread that handles signals may be late. Only remarks follow then.
pub(super) static IS_PAGING: AtomicBool = AtomicBool::new(false);

/// The pager if `PAGER` is not set.
const DEFAULT_PAGER: &str = "less";
/// Options of less if `LESS` is not set. Source: `pager_env` in git's `Makefile`.
const LESS: &str = "FRX";
/// Characters for which a shell runs the command. Source: `prepare_shell_cmd` in git's `run-command.c`, without blanks.
const SHELL_CHARACTERS: &[char] = &[
    '|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '[', '#', '~', '=', '%',
];

/// Exit status of a shell for a program that it cannot run, or does not find.
const SHELL_CANNOT_RUN: i32 = 126;
const SHELL_FINDS_NOTHING: i32 = 127;

/// Rows and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Size {
    /// Returns the size of the terminal that is standard output.
    pub(super) fn of_stdout() -> Option<Self> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_row > 0 && size.ws_col > 0).then(|| Self {
            rows: size.ws_row.into(),
            columns: size.ws_col.into(),
        })
    }
}

/// Receives text for the terminal. Text that fits on the screen is held back until it is known that no more follows.
pub(super) struct Pager {
    command: Command,
    scrolls_sideways: bool,
    size: Size,
    state: State,
}

enum State {
    Held {
        text: String,
        n_rows: usize,
    },
    Running {
        child: Child,
        input: BufWriter<ChildStdin>,
    },
    /// The pager cannot be run.
    Missing,
}

impl Pager {
    /// Returns the pager that the environment names; `None` for none, and if it cannot be found. Programs in `roots` do
    /// not count.
    pub(super) fn new(variables: &TerminalVariables, size: Size, roots: &[&Path]) -> Option<Self> {
        let name = named(variables)?;
        let mut command = command(name, roots)
            .inspect_err(|error| tracing::debug!(%error, "cannot run the pager"))
            .ok()?;
        if variables.less.is_none() {
            command.env("LESS", LESS);
        }
        Some(Self {
            command,
            scrolls_sideways: scrolls_sideways(name, variables.less.as_deref()),
            size,
            state: State::Held {
                text: String::new(),
                n_rows: 0,
            },
        })
    }

    /// Returns true if the pager can show lines that are wider than the terminal.
    pub(super) fn scrolls_sideways(&self) -> bool {
        self.scrolls_sideways
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Takes text. `terminal` receives it if there is no such pager.
    pub(super) fn put(&mut self, text: &str, terminal: &mut impl Write) -> io::Result<()> {
        match &mut self.state {
            State::Running { input, .. } => input.write_all(without_links(text).as_bytes()),
            State::Missing => terminal.write_all(text.as_bytes()),
            State::Held { text: held, n_rows: n } => {
                // A row may be continued.
                let start = held.rfind('\n').map_or(0, |at| at + 1);
                *n -= n_rows(&held[start..], self.size.columns);
                held.push_str(text);
                *n += n_rows(&held[start..], self.size.columns);
                if *n < self.size.rows {
                    return Ok(());
                }
                let held = std::mem::take(held);
                self.state = self.start();
                self.put(&held, terminal)
            }
        }
    }

    fn start(&mut self) -> State {
        IS_PAGING.store(true, Ordering::SeqCst);
        let started = self.command.stdin(Stdio::piped()).spawn();
        let started = started.map(|mut child| (child.stdin.take(), child));
        match started {
            Ok((Some(input), child)) => State::Running {
                child,
                input: BufWriter::new(input),
            },
            failed => {
                tracing::debug!(?failed, "cannot run the pager");
                IS_PAGING.store(false, Ordering::SeqCst);
                State::Missing
            }
        }
    }

    /// Shows the rest, and waits until the user leaves the pager.
    pub(super) fn finish(self, terminal: &mut impl Write) -> io::Result<()> {
        match self.state {
            State::Held { text, .. } => terminal.write_all(text.as_bytes()),
            State::Missing => Ok(()),
            State::Running { mut child, mut input } => {
                let written = input.flush();
                drop(input);
                match child.wait()?.code() {
                    Some(code @ (SHELL_CANNOT_RUN | SHELL_FINDS_NOTHING)) => Err(io::Error::other(format!(
                        "the pager ended with status {code}: set PAGER to another program, or use --no-pager"
                    ))),
                    _ => written,
                }
            }
        }
    }
}

/// Returns the pager that the environment names; `None` for none.
fn named(variables: &TerminalVariables) -> Option<&str> {
    let is_dumb = variables.term.as_deref().is_none_or(|term| term == "dumb");
    let name = variables.pager.as_deref().unwrap_or(DEFAULT_PAGER).trim();
    (!is_dumb && !name.is_empty() && name != "cat").then_some(name)
}

/// Returns true if one of the options is `-S` of less. `LESS` may omit the hyphen.
fn scrolls_sideways(name: &str, less: Option<&str>) -> bool {
    let options = name
        .split_whitespace()
        .skip(1)
        .chain(less.unwrap_or_default().split_whitespace());
    options
        .into_iter()
        .any(|option| option == "--chop-long-lines" || !option.starts_with("--") && option.contains('S'))
}

fn command(name: &str, roots: &[&Path]) -> io::Result<Command> {
    let mut words = name.split_whitespace();
    let mut command;
    match words.next() {
        Some(name_of_program) if !name.contains(SHELL_CHARACTERS) => {
            command = program::command(name_of_program, roots)?;
            command.args(words);
        }
        _ => {
            command = program::command("sh", roots)?;
            command.args(["-c", name]);
        }
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const SIZE: Size = Size { rows: 4, columns: 10 };

    fn variables(pager: Option<&str>) -> TerminalVariables {
        TerminalVariables {
            pager: pager.map(str::to_owned),
            term: Some("xterm".to_owned()),
            ..TerminalVariables::default()
        }
    }

    #[test]
    fn the_environment_names_the_pager() {
        for (pager, wanted) in [
            (None, Some("less")),
            (Some("more"), Some("more")),
            (Some(" less -S "), Some("less -S")),
            (Some(""), None),
            (Some(" "), None),
            (Some("cat"), None),
        ] {
            assert_eq!(named(&variables(pager)), wanted, "{pager:?}");
        }
        for term in [None, Some("dumb".to_owned())] {
            let variables = TerminalVariables {
                term,
                ..variables(None)
            };
            assert_eq!(named(&variables), None);
        }
    }

    #[test]
    fn less_can_scroll_sideways() {
        assert!(!scrolls_sideways("less", None));
        assert!(!scrolls_sideways("less -R --Silent", Some("FRX")));
        assert!(scrolls_sideways("less -RS", None));
        assert!(scrolls_sideways("less", Some("FRSX")));
        assert!(scrolls_sideways("less", Some("-R --chop-long-lines")));
    }

    #[test]
    fn a_shell_runs_what_only_a_shell_reads() {
        let words = |name: &str| {
            let command = command(name, &[]).unwrap();
            let program = Path::new(command.get_program()).file_name();
            let words = program.into_iter().chain(command.get_args());
            words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(words("cat  -R"), ["cat", "-R"]);
        assert_eq!(words("col -b | more"), ["sh", "-c", "col -b | more"]);
        assert_eq!(words("'my pager' -x"), ["sh", "-c", "'my pager' -x"]);
    }

    #[test]
    fn what_fits_on_the_screen_is_printed() {
        let mut terminal = Vec::new();
        let mut pager = Pager::new(&variables(Some("false")), SIZE, &[]).unwrap();
        for text in ["a\n", "b", "b", "\n", "cccccccccc\n"] {
            pager.put(text, &mut terminal).unwrap();
        }
        assert!(terminal.is_empty());
        pager.finish(&mut terminal).unwrap();
        assert_eq!(terminal, b"a\nbb\ncccccccccc\n");
    }

    #[test]
    fn a_pager_is_on_the_path_or_has_an_absolute_one() {
        for name in ["no-such-pager-here", "./pager", "bin/pager"] {
            assert!(Pager::new(&variables(Some(name)), SIZE, &[]).is_none(), "{name}");
        }
    }

    #[test]
    fn without_the_program_all_is_printed() {
        let mut terminal = Vec::new();
        let mut pager = Pager::new(&variables(Some("/no-such-pager-here")), SIZE, &[]).unwrap();
        for _ in 0..5 {
            pager.put("a\n", &mut terminal).unwrap();
        }
        pager.finish(&mut terminal).unwrap();
        assert_eq!(terminal, b"a\n".repeat(5));
    }

    #[test]
    fn a_pager_that_the_shell_does_not_find_is_an_error() {
        let mut pager = Pager::new(&variables(Some("'no-such-pager-here' | cat; exit 127")), SIZE, &[]).unwrap();
        for _ in 0..5 {
            pager.put("a\n", &mut io::sink()).unwrap();
        }
        let error = pager.finish(&mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("--no-pager"), "{error}");
    }

    #[test]
    fn a_pager_that_ends_early_breaks_the_pipe() {
        let mut terminal = Vec::new();
        let mut pager = Pager::new(&variables(Some("true")), SIZE, &[]).unwrap();
        let row = "a\n".repeat(1 << 12);
        let ended = (0..1 << 10).try_for_each(|_| pager.put(&row, &mut terminal));
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        // Succeeds if nothing is left in the buffer.
        let _ = pager.finish(&mut terminal);
        assert!(terminal.is_empty());
    }
}
