//! What can be installed beside the server: a skill, a sub-agent, and hooks that add notes to the agent's context.

use serde_json::{Value, json};

use super::clients::Place;
use super::json_text::list::Item;
use super::places::Platform;
use super::{Edited, TextError};

/// The text of a skill. `CLIENTS` stands for the clients that use it.
const SKILL: &str = include_str!("skill.md");
/// The text of a sub-agent.
const SUBAGENT: &str = include_str!("subagent.md");
/// OpenCode's hooks. `PROGRAM` stands for the program.
const OPENCODE_PLUGIN: &str = include_str!("opencode.js");
/// Follows the comment mark in every file that codescout writes whole.
const MARK: &str = " Written by `codescout install`";
/// The part of a hook's command between the program and the client.
const COMMAND: &str = " hooks agent ";
/// The end of a hook's command in a POSIX shell.
const NEVER_FAILS: &str = " 2>/dev/null || true";

/// A file that codescout writes whole: the user's, and a project's relative to the root of the worktree.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnFile {
    pub(super) user: Place,
    pub(super) project: Option<&'static str>,
}

/// The file with a client's hooks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hooks {
    pub(super) user: Place,
    /// The file of a project, relative to the root of the worktree.
    pub(super) project: &'static str,
    pub(super) form: HookForm,
    /// What the user should know about them.
    pub(super) next: &'static str,
}

/// The form of a hook.
#[derive(Clone, Copy, Debug)]
pub(super) enum HookForm {
    /// Lists of groups in the section `hooks` of a JSON file: `{"matcher": …, "hooks": [{"type": "command", …}]}`.
    Groups {
        /// The event before or after a tool call, and the tools for which it is called.
        tools: (&'static str, &'static str),
        /// The time limit in the client's unit.
        timeout: u32,
    },
    /// Lists of commands in the section `hooks` of a JSON file with a version.
    Commands {
        /// As for groups.
        tools: (&'static str, &'static str),
    },
    /// A plugin in a file of its own.
    Plugin,
}

impl HookForm {
    /// Returns the items of the lists of hooks.
    pub(super) fn items(self, command: &str) -> Vec<Item> {
        match self {
            Self::Groups {
                tools: (list, matcher),
                timeout,
            } => {
                let hook = json!({"type": "command", "command": command, "timeout": timeout});
                let start = json!({"hooks": [hook]});
                let tools = json!({"matcher": matcher, "hooks": [hook]});
                vec![item("SessionStart", start), item(list, tools)]
            }
            Self::Commands { tools: (list, matcher) } => {
                let tools = json!({"command": command, "matcher": matcher});
                vec![item("sessionStart", json!({"command": command})), item(list, tools)]
            }
            Self::Plugin => Vec::new(),
        }
    }
}

fn item(list: &'static str, value: Value) -> Item {
    Item { list, value }
}

/// Returns the shell command of a hook. It never fails, because some clients stop the tool call then.
pub(super) fn hook_command(program: &str, client: &str, platform: Platform) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    if platform == Platform::Windows {
        return format!("\"{program}\"{COMMAND}{client}");
    }
    let program = if program.chars().all(is_plain) {
        program.to_owned()
    } else {
        format!("'{}'", program.replace('\'', "'\\''"))
    };
    format!("{program}{COMMAND}{client}{NEVER_FAILS}")
}

/// Returns true for an item of a list of hooks that consists of codescout's hooks alone.
pub(super) fn is_own_hook(item: &Value, program: &str) -> bool {
    let is_own = |hook: &Value| {
        hook["command"]
            .as_str()
            .is_some_and(|command| is_own_command(command, program))
    };
    match item["hooks"].as_array() {
        Some(hooks) => !hooks.is_empty() && hooks.iter().all(is_own),
        None => is_own(item),
    }
}

/// Returns the strings of a value that name codescout's command for hooks, whatever else they do.
pub(super) fn agent_hooks(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) if text.contains(COMMAND.trim()) => vec![text],
        Value::Array(items) => items.iter().flat_map(agent_hooks).collect(),
        Value::Object(fields) => fields.values().flat_map(agent_hooks).collect(),
        _ => Vec::new(),
    }
}

/// Returns true for a command that [`hook_command`] writes for this program, or for another one named codescout.
fn is_own_command(command: &str, own: &str) -> bool {
    let Some((program, rest)) = command.rsplit_once(COMMAND) else {
        return false;
    };
    let client = rest.strip_suffix(NEVER_FAILS).unwrap_or(rest);
    let program = program.trim_matches(['\'', '"']).replace("'\\''", "'");
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_written = |platform| hook_command(&program, client, platform) == command;
    (matches!(name, "codescout" | "codescout.exe") || program == own)
        && !program.contains('"')
        && client.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && (is_written(Platform::Linux) || is_written(Platform::Windows))
}

/// Returns the text of the skill for these clients, which read the same file.
pub(super) fn skill(clients: &[&str]) -> String {
    SKILL.replace("CLIENTS", &clients.join(","))
}

/// Returns the clients for which a skill was written, or none if it was changed since.
pub(super) fn users_of_skill(text: &str) -> Vec<&str> {
    let mark = text.split_once(MARK).and_then(|(_, rest)| rest.strip_prefix(" for "));
    let names = mark.and_then(|rest| rest.split_once(';'));
    let clients: Vec<&str> = names.map(|(names, _)| names.split(',').collect()).unwrap_or_default();
    let is_known = |name: &&str| super::clients().iter().any(|client| client.id == *name);
    let is_as_written = clients.iter().all(is_known) && take_whole(text, &skill(&clients)).is_some();
    if is_as_written { clients } else { Vec::new() }
}

/// Removes a client from those that use a skill; an empty text if there is no other. Returns `None` if the file is not
/// as codescout writes it for this client.
pub(super) fn take_skill(text: &str, client: &str) -> Option<String> {
    let mut clients = users_of_skill(text);
    let n_clients = clients.len();
    clients.retain(|other| *other != client);
    match clients.len() {
        n if n == n_clients => None,
        0 => Some(String::new()),
        _ => Some(skill(&clients)),
    }
}

/// Returns the text of a client's sub-agent.
pub(super) fn subagent(client: &str) -> String {
    match client {
        // Else it would also be offered in place of the main agent.
        "opencode" => SUBAGENT.replacen("---\n", "---\nmode: subagent\n", 1),
        _ => SUBAGENT.to_owned(),
    }
}

/// Returns the text of OpenCode's plugin.
pub(super) fn plugin(program: &str) -> String {
    OPENCODE_PLUGIN.replace("PROGRAM", &Value::from(program).to_string())
}

/// Returns true if codescout wrote a file, which may have been changed since.
pub(super) fn is_marked(text: &str) -> bool {
    text.contains(MARK)
}

/// Writes a whole file, which must be blank or written by codescout.
pub(super) fn put_whole(text: &str, wanted: &str) -> Result<Edited, TextError> {
    if !text.trim().is_empty() && !is_marked(text) {
        return Err(TextError::Foreign);
    }
    Ok(Edited {
        text: wanted.to_owned(),
        made_section: false,
    })
}

/// Returns an empty text if the file is as codescout writes it, or else `None`.
pub(super) fn take_whole(text: &str, written: &str) -> Option<String> {
    (text.replace("\r\n", "\n") == written).then(String::new)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn whole_files_carry_the_mark_and_others_are_refused() {
        for text in [skill(&["codex"]), subagent("opencode"), plugin("/x \"y\"")] {
            assert!(text.contains(MARK));
            assert!(put_whole(&text, "new").is_ok());
            assert_eq!(take_whole(&text, &text), Some(String::new()));
            assert_eq!(take_whole("mine", &text), None);
        }
        assert!(matches!(put_whole("mine", "new"), Err(TextError::Foreign)));
    }

    #[test]
    fn a_skill_stays_until_its_last_client_is_removed() {
        let both = skill(&["codex", "roo"]);
        assert_eq!(users_of_skill(&both.replace('\n', "\r\n")), ["codex", "roo"]);
        assert_eq!(take_skill(&both, "gemini"), None);
        assert_eq!(take_skill(&both.replace("search", "find"), "codex"), None);
        let roo = take_skill(&both, "codex").unwrap();
        assert_eq!(roo, skill(&["roo"]));
        assert_eq!(take_skill(&roo, "roo"), Some(String::new()));
        assert!(users_of_skill(&skill(&["codex", "everyone who reads this"])).is_empty());
    }

    #[test]
    fn the_command_is_one_word_and_never_fails() {
        let command = |program| hook_command(program, "codex", Platform::Linux);
        assert_eq!(
            command("/usr/bin/codescout"),
            "/usr/bin/codescout hooks agent codex 2>/dev/null || true"
        );
        assert_eq!(
            command("/a b/it's"),
            "'/a b/it'\\''s' hooks agent codex 2>/dev/null || true"
        );
        let windows = hook_command("C:\\x y\\codescout.exe", "codex", Platform::Windows);
        assert_eq!(windows, "\"C:\\x y\\codescout.exe\" hooks agent codex");
        for own in [
            &windows,
            &command("/a b/it's/codescout"),
            &command("codescout"),
            &command("/x/mine"),
        ] {
            assert!(is_own_command(own, "/x/mine"), "{own}");
        }
        for other in [
            "mytool hooks agent audit",
            "mytool hooks agent codex 2>/dev/null || true",
            "wrapper codescout hooks agent codex 2>/dev/null || true",
            "'wrapper' '/usr/bin/codescout' hooks agent codex 2>/dev/null || true",
            "\"wrapper\" \"codescout.exe\" hooks agent codex",
            "codescout hooks agent codex | tee log 2>/dev/null || true",
        ] {
            assert!(!is_own_command(other, "/x/mine"), "{other}");
        }
    }
}
