//! Reads the input of a hook and writes its output, in the form of each client.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::command::{is_elsewhere, sought_by_command, words};

/// Maximum size of a hook's input. Inputs of hooks that run after a tool contain its output.
pub(crate) const MAX_INPUT_BYTES: u64 = 4 << 20;

/// A call of a hook.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The folder in which the agent works; `None` for the hook's own.
    pub(crate) folder: Option<PathBuf>,
    /// The occasion.
    pub(crate) occasion: Occasion,
    name: String,
}

/// The occasion of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A session begins.
    Start,
    /// A tool call searches for these words.
    Search(String),
}

impl Event {
    /// Reads the input of a hook. Returns `None` if there is nothing to say about it.
    pub(crate) fn read(input: &[u8]) -> Option<Self> {
        let input: Value = serde_json::from_slice(input).ok()?;
        let name = input["hook_event_name"].as_str()?;
        let folder = input["cwd"].as_str().or_else(|| input["workspace_roots"][0].as_str());
        let occasion = match name {
            "SessionStart" | "sessionStart" => Occasion::Start,
            "PreToolUse" | "AfterTool" | "postToolUse" => Occasion::Search(sought(&input["tool_input"], folder)?),
            _ => return None,
        };
        Some(Self {
            folder: folder.map(PathBuf::from),
            occasion,
            name: name.to_owned(),
        })
    }

    /// Returns the output of the hook that adds `text` to the agent's context.
    pub(crate) fn reply(&self, client: &str, text: &str) -> String {
        match client {
            "opencode" => text.to_owned(),
            "cursor" => json!({"additional_context": text}).to_string(),
            _ => {
                let own = json!({"hookEventName": self.name, "additionalContext": text});
                json!({"hookSpecificOutput": own}).to_string()
            }
        }
    }
}

/// Returns the words that a tool call searches for in `folder`: those of a pattern or of a shell command.
fn sought(call: &Value, folder: Option<&str>) -> Option<String> {
    match (&call["pattern"], &call["command"]) {
        (Value::String(_), _) if call["path"].as_str().is_some_and(|path| is_elsewhere(path, folder)) => None,
        (Value::String(pattern), _) => words(pattern),
        (_, Value::String(command)) => sought_by_command(command, folder),
        // `["bash", "-lc", "rg x"]`
        (_, Value::Array(command)) => sought_by_command(command.last()?.as_str()?, folder),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn calls_of_every_client_are_understood() {
        let search = |words: &str| Some(Occasion::Search(words.to_owned()));
        for (input, occasion) in [
            (
                json!({"hook_event_name": "SessionStart", "source": "startup"}),
                Some(Occasion::Start),
            ),
            (
                json!({"hook_event_name": "sessionStart", "workspace_roots": ["/w"]}),
                Some(Occasion::Start),
            ),
            (
                json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rg -n retry_upload src"}}),
                search("retry_upload"),
            ),
            (
                json!({"hook_event_name": "PreToolUse", "tool_name": "Grep", "tool_input": {"pattern": "fn\\s+retry_upload"}}),
                search("retry_upload"),
            ),
            (
                json!({"hook_event_name": "AfterTool", "tool_input": {"command": ["bash", "-lc", "grep -rn retry_upload ."]}}),
                search("retry_upload"),
            ),
            (
                json!({"hook_event_name": "PreToolUse", "cwd": "/w", "tool_input": {"pattern": "retry_upload", "path": "/v"}}),
                None,
            ),
            (
                json!({"hook_event_name": "postToolUse", "tool_input": {"command": "ls"}}),
                None,
            ),
            (json!({"hook_event_name": "Stop"}), None),
            (json!([1]), None),
            (json!({"hook_event_name": "PreToolUse", "tool_input": 7}), None),
        ] {
            let read = Event::read(input.to_string().as_bytes());
            assert_eq!(read.map(|event| event.occasion), occasion, "{input}");
        }
        assert_eq!(Event::read(b"{"), None);
        assert_eq!(Event::read(b"\xff"), None);
    }

    #[test]
    fn the_reply_has_the_form_of_the_client() {
        let input = json!({"hook_event_name": "SessionStart", "cwd": "/w"});
        let event = Event::read(input.to_string().as_bytes()).unwrap();
        assert_eq!(event.folder, Some(PathBuf::from("/w")));
        let hook_specific = r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"a \"b\""}}"#;
        for client in ["claude-code", "codex", "gemini"] {
            assert_eq!(event.reply(client, "a \"b\""), hook_specific);
        }
        assert_eq!(event.reply("cursor", "a"), r#"{"additional_context":"a"}"#);
        assert_eq!(event.reply("opencode", "a"), "a");
    }
}
