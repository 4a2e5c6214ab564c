//! Adds codescout's lines to the file of a hook and removes them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::event::HookEvent;

const START: &str = include_str!("../../../hooks/start.sh");
const CHAIN: &str = include_str!("../../../hooks/chain.sh");
const SHEBANG: &[u8] = b"#!/bin/sh\n";
/// The prefix of codescout's first line.
const BEGIN: &str = "# >>> codescout >>>";
const END: &str = "# <<< codescout <<<\n";
/// The suffix of a hook that was renamed.
pub(super) const MOVED: &str = ".codescout-orig";

/// How the lines were added to a file. It is recorded in the first line, so that the lines can be removed correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// codescout created the file.
    Own,
    /// codescout created the file, which calls the renamed hook.
    Chain,
    /// The lines are below the first line of another script.
    Added,
}

impl Shape {
    const ALL: [Self; 3] = [Self::Own, Self::Chain, Self::Added];

    fn word(self) -> &'static str {
        match self {
            Self::Own => "own file",
            Self::Chain => "before the hook that stood here",
            Self::Added => "added",
        }
    }
}

/// The program that the lines call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Program<'a> {
    /// The executable at this path, or the one in `PATH` if the path does not exist.
    At(&'a Path),
    /// The program in `PATH`, for files that several users share.
    Named,
}

/// The content of a file with codescout's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) shape: Shape,
    /// codescout's lines, including the markers at both ends.
    pub(super) lines: Vec<u8>,
    /// The other lines of the file.
    pub(super) rest: Vec<u8>,
}

impl Held {
    /// Finds codescout's lines in a file. Returns `None` if there are none.
    pub(super) fn find(content: &[u8]) -> Option<Self> {
        let begin = find_line(content, BEGIN.as_bytes(), 0)?;
        let end = find_line(content, END.as_bytes(), begin)? + END.len();
        let first_line = content[begin..end].split(|byte| *byte == b'\n').next()?;
        let is_named = |shape: &Shape| contains(first_line, format!("({})", shape.word()).as_bytes());
        Some(Self {
            shape: Shape::ALL.into_iter().find(is_named).unwrap_or(Shape::Added),
            lines: content[begin..end].to_vec(),
            rest: [&content[..begin], &content[end..]].concat(),
        })
    }

    /// Returns true if the file consists of codescout's lines only.
    pub(super) fn is_whole_file(&self) -> bool {
        self.shape != Shape::Added && self.rest == SHEBANG
    }
}

/// Returns a file that consists of codescout's lines only.
pub(super) fn own_file(event: HookEvent, shape: Shape, program: Program<'_>) -> Vec<u8> {
    [SHEBANG, &lines(event, shape, program)].concat()
}

/// Returns codescout's lines.
pub(super) fn lines(event: HookEvent, shape: Shape, program: Program<'_>) -> Vec<u8> {
    let begin = format!(
        "{BEGIN} ({}) keeps the index fresh; taken out by: codescout hooks uninstall\n",
        shape.word()
    );
    let mut text = [begin.as_bytes(), START.as_bytes()].concat();
    if shape == Shape::Chain {
        text.extend_from_slice(CHAIN.as_bytes());
    }
    text.extend_from_slice(END.as_bytes());
    let program = match program {
        Program::At(path) => quoted(path.as_os_str().as_bytes()),
        Program::Named => b"codescout".to_vec(),
    };
    let text = replaced(&text, b"@EVENT@", event.name().as_bytes());
    replaced(&text, b"@PROGRAM@", &program)
}

/// Adds the lines below the first line of a script. At the end they would not run after `exit` or `exec`. Returns
/// `None` if the script is not for a POSIX shell.
pub(super) fn added(content: &[u8], lines: &[u8]) -> Option<Vec<u8>> {
    let first = content.iter().position(|byte| *byte == b'\n')? + 1;
    is_shell(&content[..first]).then(|| [&content[..first], lines, &content[first..]].concat())
}

/// Returns true if a first line names a POSIX shell.
fn is_shell(first_line: &[u8]) -> bool {
    let Some(words) = std::str::from_utf8(first_line)
        .ok()
        .and_then(|line| line.strip_suffix('\n'))
        .and_then(|line| line.strip_prefix("#!"))
        .filter(|line| !line.contains('\r'))
    else {
        return false;
    };
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut words = words.split([' ', '\t']).filter(|word| !word.is_empty());
    let interpreter = match words.next().map(name) {
        Some(env) if env == "env" => words.find(|word| *word != "-S").map(name),
        interpreter => interpreter,
    };
    interpreter.is_some_and(|name| ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"].contains(&name.as_str()))
}

/// Returns the start of the first line at or after `from` that begins with `start`.
fn find_line(content: &[u8], start: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while at < content.len() {
        if content[at..].starts_with(start) {
            return Some(at);
        }
        at += content[at..].iter().position(|byte| *byte == b'\n')? + 1;
    }
    None
}

pub(super) fn contains(content: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(content, needle).is_some()
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for found in memchr::memmem::find_iter(text, from) {
        out.extend_from_slice(&text[at..found]);
        out.extend_from_slice(to);
        at = found + from.len();
    }
    out.extend_from_slice(&text[at..]);
    out
}

fn quoted(path: &[u8]) -> Vec<u8> {
    [b"'", replaced(path, b"'", br"'\''").as_slice(), b"'"].concat()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn ours() -> Vec<u8> {
        lines(
            HookEvent::PostCommit,
            Shape::Added,
            Program::At(Path::new("/opt/it's/codescout")),
        )
    }

    #[test]
    fn lines_go_below_the_first_and_come_out_again() {
        let scripts: [&[u8]; 4] = [
            b"#!/bin/sh\nexit 3",
            b"#!/usr/bin/env bash\n",
            b"#! /bin/bash -e\n\xff\n",
            b"#!/usr/bin/env -S zsh\n\n\n",
        ];
        for script in scripts {
            let with = added(script, &ours()).unwrap();
            let held = Held::find(&with).unwrap();
            assert_eq!(held.rest, script);
            assert_eq!(held.lines, ours());
            assert_eq!(held.shape, Shape::Added);
        }
    }

    #[test]
    fn what_is_no_shell_script_is_reported() {
        let others: [&[u8]; 6] = [
            b"#!/usr/bin/env python3\n",
            b"#!/bin/sh",
            b"#!/bin/sh\r\n",
            b"\x7fELF\n",
            b"echo\n",
            b"#!/usr/bin/fish\n",
        ];
        for other in others {
            assert_eq!(added(other, b"x"), None, "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn a_path_with_quotes_stays_one_word() {
        assert!(contains(&ours(), br"codescout='/opt/it'\''s/codescout'"));
    }
}
