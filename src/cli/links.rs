//! Links to files, for terminals that open them.
//!
//! Source: <https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda>

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::config::TerminalVariables;

const START: &str = "\x1b]8;;";
const END: &str = "\x1b\\";

/// Values of `TERM_PROGRAM` and `TERM` of terminals that open links.
const PROGRAMS: &[&str] = &["iTerm.app", "WezTerm", "ghostty", "vscode"];
const TERMS: &[&str] = &["alacritty", "foot", "wezterm", "xterm-ghostty", "xterm-kitty"];
/// VTE 0.50.0, which crashed on links. Later versions open them.
const VTE_THAT_CRASHED: u32 = 5000;

/// Returns true if the terminal is known to open links to files of this machine.
pub(super) fn are_opened(variables: &TerminalVariables) -> bool {
    let term = variables.term.as_deref().unwrap_or_default();
    // Within tmux and screen, the other variables describe the terminal around them.
    let is_remote = variables.is_remote || term.starts_with("tmux") || term.starts_with("screen");
    let program = variables.term_program.as_deref();
    let vte = variables
        .vte_version
        .as_deref()
        .and_then(|version| version.parse().ok());
    !is_remote
        && (TERMS.contains(&term)
            || program.is_some_and(|program| PROGRAMS.contains(&program))
            || vte.is_some_and(|version: u32| version > VTE_THAT_CRASHED))
}

/// Returns a link with a text to a file with an absolute path.
pub(super) fn link(file: &Path, text: &str) -> String {
    let mut link = format!("{START}file://");
    for &byte in file.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            link.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(link, "%{byte:02X}");
        }
    }
    link + END + text + START + END
}

/// Returns the length of the start or end of a link at the start of a text, if there is one.
pub(super) fn length(text: &str) -> Option<usize> {
    let address = text.strip_prefix(START)?;
    let n_bytes = address.find(|c: char| !c.is_ascii_alphanumeric() && !"/-._~%:".contains(c))?;
    let is_of_file = n_bytes == 0 || address.starts_with("file:///");
    (is_of_file && address[n_bytes..].starts_with(END)).then_some(START.len() + n_bytes + END.len())
}

/// Returns a text with links as plain text.
pub(super) fn without_links(text: &str) -> String {
    let mut parts = text.split(START);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once(END).map_or("", |(_, text)| text));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_opened_in(term: &str, program: Option<&str>, vte: Option<&str>) -> bool {
        are_opened(&TerminalVariables {
            term: Some(term.to_owned()),
            term_program: program.map(str::to_owned),
            vte_version: vte.map(str::to_owned),
            ..TerminalVariables::default()
        })
    }

    #[test]
    fn known_terminals_open_links() {
        assert!(are_opened_in("xterm-kitty", None, None));
        assert!(are_opened_in("xterm-256color", Some("WezTerm"), None));
        assert!(are_opened_in("xterm-256color", None, Some("6003")));
        assert!(!are_opened_in("xterm-256color", None, None));
        assert!(!are_opened_in("xterm-256color", None, Some("5000")));
        assert!(!are_opened_in("xterm-256color", Some("Apple_Terminal"), None));
        assert!(!are_opened_in("tmux-256color", Some("tmux"), Some("6003")));
        assert!(!are_opened(&TerminalVariables {
            term: Some("xterm-kitty".to_owned()),
            is_remote: true,
            ..TerminalVariables::default()
        }));
    }

    #[test]
    fn links_are_escaped_and_removed() {
        let linked = link(Path::new("/a b/ü.rs"), "ü.rs:3");
        assert_eq!(linked, "\x1b]8;;file:///a%20b/%C3%BC.rs\x1b\\ü.rs:3\x1b]8;;\x1b\\");
        assert_eq!(
            without_links(&format!("1 {linked} 2 {linked}\n")),
            "1 ü.rs:3 2 ü.rs:3\n"
        );
    }
}
