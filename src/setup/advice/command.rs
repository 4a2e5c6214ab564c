//! Finds out what a shell command searches for. The command is never run.

use std::iter::Peekable;
use std::path::{Component, Path};
use std::str::Chars;

/// Maximum length of a command in bytes. A longer one is a script.
const MAX_COMMAND_BYTES: usize = 8 << 10;
/// Maximum number of words to search for.
const MAX_WORDS: usize = 8;
/// Minimum length of a word. Shorter ones are parts of patterns or of file names.
const MIN_WORD: usize = 3;
/// Words of declarations, which stand before a name in patterns.
const KEYWORDS: [&str; 14] = [
    "class",
    "const",
    "def",
    "enum",
    "export",
    "fun",
    "func",
    "function",
    "impl",
    "interface",
    "let",
    "pub",
    "struct",
    "type",
];

/// Returns the words that the first search of a shell command in `folder` looks for: `grep -r`, `rg`, `git grep` or
/// `find`. Returns `None` if there is none, if its pattern has no words, or if it names another folder.
pub(super) fn sought_by_command(command: &str, folder: Option<&str>) -> Option<String> {
    if command.len() > MAX_COMMAND_BYTES {
        return None;
    }
    let commands = simple_commands(without_documents(command));
    if commands.iter().any(|command| names_other_folder(command, folder)) {
        return None;
    }
    commands.iter().find_map(|command| {
        let (program, arguments) = program(command)?;
        match program {
            "rg" | "ag" | "ack" => words(pattern(arguments)?),
            "grep" | "egrep" | "fgrep" if is_recursive(arguments) => words(pattern(arguments)?),
            "git" if arguments.first().is_some_and(|argument| argument == "grep") => words(pattern(&arguments[1..])?),
            "find" => words(file_name(arguments)?),
            _ => None,
        }
    })
}

/// Returns a command without its here-documents and what follows them.
fn without_documents(command: &str) -> &str {
    let document = command
        .find("<<")
        .and_then(|at| command[at..].find('\n').map(|newline| at + newline));
    &command[..document.unwrap_or(command.len())]
}

/// Returns true if an argument is a path outside of `folder`. Patterns with a slash at the start count as such.
fn names_other_folder(command: &[String], folder: Option<&str>) -> bool {
    let Some((_, arguments)) = program(command) else {
        return false;
    };
    arguments
        .iter()
        .any(|argument| argument != "/dev/null" && is_elsewhere(argument, folder))
}

/// Returns true for a path that is not below `folder` by its form.
pub(super) fn is_elsewhere(path: &str, folder: Option<&str>) -> bool {
    let has_parent = Path::new(path).components().any(|part| part == Component::ParentDir);
    let is_below = || folder.is_some_and(|folder| Path::new(path).starts_with(folder));
    has_parent || path.starts_with('~') || path.starts_with('/') && !is_below()
}

/// Returns the words of a regular expression or glob: what remains without its operators, classes and keywords.
pub(super) fn words(pattern: &str) -> Option<String> {
    let plain = without_operators(pattern);
    let is_word = |word: &&str| word.len() >= MIN_WORD && word.contains(char::is_alphabetic);
    let found = plain
        .split(' ')
        .map(|word| word.trim_matches([':', '.']))
        .filter(is_word);
    let mut found: Vec<&str> = found.take(MAX_WORDS).collect();
    if found.iter().any(|word| !KEYWORDS.contains(word)) {
        found.retain(|word| !KEYWORDS.contains(word));
    }
    (!found.is_empty()).then(|| found.join(" "))
}

/// Replaces everything by spaces that is not part of a word or of a qualified name.
fn without_operators(pattern: &str) -> String {
    let mut plain = String::new();
    let mut characters = pattern.chars().take(MAX_COMMAND_BYTES).peekable();
    let mut is_in_class = false;
    while let Some(c) = characters.next() {
        match c {
            // `\b`, `\s`, `\(`: an escaped letter is an operator, an escaped dot belongs to a name.
            '\\' => {
                let escaped = characters.next();
                plain.push(if escaped == Some('.') && !is_in_class { '.' } else { ' ' });
            }
            '[' => is_in_class = true,
            ']' => {
                is_in_class = false;
                plain.push(' ');
            }
            _ if is_in_class => {}
            '.' if characters
                .peek()
                .is_some_and(|next| matches!(next, '*' | '+' | '?' | '{')) =>
            {
                plain.push(' ')
            }
            _ if c.is_alphanumeric() || matches!(c, '_' | '.' | ':') => plain.push(c),
            _ => plain.push(' '),
        }
    }
    plain
}

/// Splits a command line at operators and white space, as a shell does. Commands that read the output of another one are
/// left out, because they search no files.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![(Vec::new(), false)];
    let mut word: Option<String> = None;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        let is_end = c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')');
        match c {
            _ if is_end => {
                let (command, _) = commands.last_mut().expect("there is always a command");
                command.extend(word.take());
                let is_fed = c == '|' && characters.peek() != Some(&'|') && !command.is_empty();
                if c == '\n' || !c.is_whitespace() {
                    commands.push((Vec::new(), is_fed));
                }
            }
            '\'' | '"' => quoted(c, &mut characters, word.get_or_insert_default()),
            '\\' => word.get_or_insert_default().extend(characters.next()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    let (command, _) = commands.last_mut().expect("there is always a command");
    command.extend(word);
    let unfed = commands.into_iter().filter(|(_, is_fed)| !is_fed);
    unfed.map(|(command, _)| command).collect()
}

/// Reads up to the closing quote.
fn quoted(quote: char, characters: &mut Peekable<Chars<'_>>, word: &mut String) {
    while let Some(c) = characters.next().filter(|c| *c != quote) {
        // Between double quotes, a backslash only escapes these.
        let is_escaped = |next: &char| quote == '"' && matches!(next, '"' | '\\' | '$' | '`');
        match characters.peek() {
            Some(next) if c == '\\' && is_escaped(next) => word.extend(characters.next()),
            _ => word.push(c),
        }
    }
}

/// Returns the name of the program without its folder, and its arguments. Skips assignments and programs that run
/// another one.
fn program(command: &[String]) -> Option<(&str, &[String])> {
    let is_before = |word: &String| word.contains('=') || ["command", "env", "nice", "sudo", "time"].contains(&&**word);
    let at = command.iter().position(|word| !is_before(word))?;
    let name = command[at].rsplit('/').next()?;
    Some((name, &command[at + 1..]))
}

fn is_recursive(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| match argument.strip_prefix('-') {
        Some(long) if long.starts_with('-') => long.ends_with("recursive"),
        Some(short) => short.contains(['r', 'R']),
        None => false,
    })
}

/// Returns the pattern among the arguments of a grep.
fn pattern(arguments: &[String]) -> Option<&str> {
    const WITH_VALUE: [&str; 18] = [
        "-A",
        "-B",
        "-C",
        "-m",
        "-f",
        "-g",
        "-t",
        "-T",
        "-d",
        "-j",
        "-M",
        "--glob",
        "--type",
        "--type-not",
        "--max-count",
        "--context",
        "--include",
        "--exclude",
    ];
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match &**argument {
            "-e" | "--regexp" | "--" => return arguments.next().map(String::as_str),
            // The files that are listed, not a pattern.
            "--files" => return None,
            option if WITH_VALUE.contains(&option) => drop(arguments.next()),
            option if option.starts_with('-') && option.len() > 1 => {
                if let Some(pattern) = option.strip_prefix("--regexp=") {
                    return Some(pattern);
                }
            }
            pattern => return Some(pattern),
        }
    }
    None
}

/// Returns the pattern for file names among the arguments of `find`, unless it only selects an extension.
fn file_name(arguments: &[String]) -> Option<&str> {
    const TESTS: [&str; 7] = ["-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"];
    let at = arguments.iter().position(|argument| TESTS.contains(&&**argument))?;
    let pattern = arguments.get(at + 1)?;
    (!pattern.trim_start_matches('*').starts_with('.')).then_some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_searches_are_found() {
        for (command, expected) in [
            ("grep -rn retry_upload src", Some("retry_upload")),
            ("grep -Rni 'retry  upload' .", Some("retry upload")),
            ("grep --recursive -A 3 retry", Some("retry")),
            (
                "cd src && rg -n -g '*.rs' \"fn retry_upload\\(\" | head -20",
                Some("retry_upload"),
            ),
            (
                "rg -e 'Table\\.add_row|add_column' -t py",
                Some("Table.add_row add_column"),
            ),
            ("LC_ALL=C /usr/bin/rg --type rust 'impl.*Display'", Some("Display")),
            ("rg 'class [A-Za-z]+Error'", Some("Error")),
            ("git grep -n \"std::fs\"", Some("std::fs")),
            ("find . -type f -name '*retry*'", Some("retry")),
            ("ls; find src -iname 'Upload.java'", Some("Upload.java")),
            ("rg struct", Some("struct")),
            ("rg -- -retry", Some("retry")),
            ("cat x | grep -r retry", None),
            ("grep retry file.txt", None),
            ("find . -name '*.java'", None),
            ("find . -type d", None),
            ("rg --files -g '*.rs'", None),
            ("rg '\\d+'", None),
            ("rg ab", None),
            ("echo rg retry", None),
            ("rg", None),
            ("rg 'retry", Some("retry")),
            ("rg retry /w/src 2> /dev/null", Some("retry")),
            ("rg retry /other", None),
            ("rg retry ../other", None),
            ("cd /w/../other && rg retry", None),
            ("cd ~/other; rg retry", None),
            ("cat > a.md <<EOF\nrg retry\nEOF", None),
            ("", None),
        ] {
            assert_eq!(sought_by_command(command, Some("/w")).as_deref(), expected, "{command}");
        }
        let long = format!("rg {}", "x".repeat(MAX_COMMAND_BYTES));
        assert_eq!(sought_by_command(&long, None), None);
    }

    #[test]
    fn patterns_are_bounded() {
        let many = words(&"word ".repeat(100));
        assert_eq!(many.map(|words| words.split(' ').count()), Some(MAX_WORDS));
        assert_eq!(words("[[[\\"), None);
        assert_eq!(words("größe.*"), Some("größe".to_owned()));
    }
}
