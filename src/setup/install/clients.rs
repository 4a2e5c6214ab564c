//! The table of supported clients, with the locations of their files and the format of a server's entry.

use std::path::PathBuf;

use super::entry::{Entry, HttpShape, Server, Shape, StdioShape, Token};
use super::extras::{HookForm, Hooks, OwnFile};
use super::json_text::nested;
use super::places::{Base, Places, Scope};
use super::yaml_map;

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    /// The name on the command line.
    pub(crate) id: &'static str,
    /// Other names on the command line.
    pub(crate) aliases: &'static [&'static str],
    /// The name for display.
    pub(crate) title: &'static str,
    /// Format of its configuration.
    pub(super) format: Format,
    /// The field of the configuration that contains all servers, after the fields that contain it. Only JSON has several.
    pub(super) section: &'static [&'static str],
    /// Format of a server's entry.
    pub(super) shape: Shape,
    /// Possible locations of the user's configuration file. The first existing one is used, or else the first. Some are
    /// not on every platform.
    pub(super) user: &'static [Place],
    /// Possible locations of a project's configuration file, relative to the root of the worktree. Empty if the client
    /// has none.
    pub(super) project: &'static [&'static str],
    /// Its instruction files.
    pub(super) instructions: Instructions,
    /// Its file for the skill, if it has skills.
    skill: Option<OwnFile>,
    /// Its file for the sub-agent, if it has sub-agents.
    subagent: Option<OwnFile>,
    /// Its hooks that can add to the agent's context, if it has any.
    pub(super) hooks: Option<Hooks>,
    /// Arguments after `serve` in a project's entry.
    project_args: &'static [&'static str],
    /// True if the client starts the user's server in an arbitrary folder, so that each call must name a repository.
    pub(crate) starts_anywhere: bool,
    /// Programs and folders that indicate that the client is used on this machine.
    pub(super) programs: &'static [&'static str],
    traces: &'static [Place],
    /// Advice for the user after installing.
    pub(super) next: &'static str,
}

/// A path relative to a folder that depends on the platform.
pub(super) type Place = (Base, &'static str);

/// The format of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON; comments and trailing commas are accepted.
    Json,
    /// TOML.
    Toml,
    /// YAML, in a separate file named after the server.
    Yaml,
    /// YAML, in a file with other settings.
    YamlMap,
}

/// The instruction files of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instructions {
    user: Option<Place>,
    project: Option<&'static str>,
    /// The text at the beginning of a new file.
    pub(super) preamble: &'static str,
}

const PLAIN: &str = "";
const HEADER_OF_ENV: Token = Token::Header("Bearer ${env:VARIABLE}");

/// The skill that several clients share.
const SHARED_SKILL: Option<OwnFile> = Some(OwnFile {
    user: (Base::Home, ".agents/skills/codescout/SKILL.md"),
    project: Some(".agents/skills/codescout/SKILL.md"),
});

const fn http(url: &'static str, kind: Option<&'static str>, token: Token) -> Option<HttpShape> {
    let kind = match kind {
        Some(kind) => Some(("type", kind)),
        None => None,
    };
    Some(HttpShape { url, kind, token })
}

/// What most clients have in common: servers in `mcpServers` of a JSON file, and nothing else.
const JSON_CLIENT: Client = Client {
    id: "",
    aliases: &[],
    title: "",
    format: Format::Json,
    section: &["mcpServers"],
    shape: Shape {
        stdio: StdioShape::Plain,
        http: http("url", None, Token::None),
    },
    user: &[],
    project: &[],
    instructions: Instructions {
        user: None,
        project: None,
        preamble: PLAIN,
    },
    skill: None,
    subagent: None,
    hooks: None,
    project_args: &[],
    starts_anywhere: false,
    programs: &[],
    traces: &[],
    next: "",
};

/// All clients, in the order in which they are listed.
pub(crate) fn clients() -> &'static [Client] {
    &CLIENTS
}

static CLIENTS: [Client; 17] = [
    Client {
        id: "claude-code",
        aliases: &["claude"],
        title: "Claude Code",
        shape: Shape {
            stdio: StdioShape::Typed,
            http: http("url", Some("http"), Token::Header("Bearer ${VARIABLE}")),
        },
        user: &[(Base::ClaudeState, ".claude.json")],
        project: &[".mcp.json"],
        instructions: Instructions {
            user: Some((Base::Claude, "CLAUDE.md")),
            project: Some("CLAUDE.md"),
            preamble: PLAIN,
        },
        skill: Some(OwnFile {
            user: (Base::Claude, "skills/codescout/SKILL.md"),
            project: Some(".claude/skills/codescout/SKILL.md"),
        }),
        subagent: Some(OwnFile {
            user: (Base::Claude, "agents/codescout.md"),
            project: Some(".claude/agents/codescout.md"),
        }),
        hooks: Some(Hooks {
            user: (Base::Claude, "settings.json"),
            project: ".claude/settings.json",
            form: HookForm::Groups {
                tools: ("PreToolUse", "Bash|Grep"),
                timeout: 5,
            },
            next: "",
        }),
        programs: &["claude"],
        traces: &[(Base::Claude, "")],
        next: "restart Claude Code; it asks once whether to trust the servers of a project",
        ..JSON_CLIENT
    },
    Client {
        id: "codex",
        title: "Codex",
        format: Format::Toml,
        section: &["mcp_servers"],
        shape: Shape {
            stdio: StdioShape::Plain,
            http: http("url", None, Token::Field),
        },
        user: &[(Base::Codex, "config.toml")],
        project: &[".codex/config.toml"],
        instructions: Instructions {
            user: Some((Base::Codex, "AGENTS.md")),
            project: Some("AGENTS.md"),
            preamble: PLAIN,
        },
        skill: SHARED_SKILL,
        hooks: Some(Hooks {
            user: (Base::Codex, "hooks.json"),
            project: ".codex/hooks.json",
            form: HookForm::Groups {
                tools: ("PreToolUse", "Bash"),
                timeout: 5,
            },
            next: "Codex runs new hooks after you have approved them with /hooks",
        }),
        programs: &["codex"],
        traces: &[(Base::Codex, "")],
        next: "restart Codex; it uses the configuration of a project only if you trust the project",
        ..JSON_CLIENT
    },
    Client {
        id: "cursor",
        title: "Cursor",
        shape: Shape {
            stdio: StdioShape::Typed,
            http: http("url", None, HEADER_OF_ENV),
        },
        user: &[(Base::Home, ".cursor/mcp.json")],
        project: &[".cursor/mcp.json"],
        instructions: Instructions {
            user: None,
            project: Some(".cursor/rules/codescout.mdc"),
            preamble: "---\ndescription: When to use which tool of codescout\nalwaysApply: true\n---\n",
        },
        skill: Some(OwnFile {
            user: (Base::Home, ".cursor/skills/codescout/SKILL.md"),
            project: Some(".cursor/skills/codescout/SKILL.md"),
        }),
        subagent: Some(OwnFile {
            user: (Base::Home, ".cursor/agents/codescout.md"),
            project: Some(".cursor/agents/codescout.md"),
        }),
        hooks: Some(Hooks {
            user: (Base::Home, ".cursor/hooks.json"),
            project: ".cursor/hooks.json",
            form: HookForm::Commands {
                tools: ("postToolUse", "Shell|Grep"),
            },
            next: "Cursor adds the note to the result of a search, not before it",
        }),
        // Cursor starts servers in its own folder.
        project_args: &["--repo", "${workspaceFolder}"],
        starts_anywhere: true,
        programs: &["cursor"],
        traces: &[(Base::Home, ".cursor")],
        next: "enable the server in Cursor's settings under MCP; use --scope project so that it knows the open \
            repository",
        ..JSON_CLIENT
    },
    Client {
        id: "vscode",
        aliases: &["code", "vs-code", "copilot"],
        title: "VS Code",
        section: &["servers"],
        shape: Shape {
            stdio: StdioShape::Typed,
            http: http("url", Some("http"), HEADER_OF_ENV),
        },
        user: &[(Base::VsCodeUser, "mcp.json")],
        project: &[".vscode/mcp.json"],
        instructions: Instructions {
            user: Some((Base::VsCodeUser, "prompts/codescout.instructions.md")),
            project: Some(".github/instructions/codescout.instructions.md"),
            preamble: "---\ndescription: When to use which tool of codescout\napplyTo: \"**\"\n---\n",
        },
        programs: &["code"],
        traces: &[(Base::VsCodeUser, "")],
        next: "start it with the command \"MCP: List Servers\"; VS Code asks once whether to trust it",
        ..JSON_CLIENT
    },
    Client {
        id: "gemini",
        aliases: &["gemini-cli"],
        title: "Gemini CLI",
        shape: Shape {
            stdio: StdioShape::Plain,
            http: http("url", Some("http"), Token::Header("Bearer $VARIABLE")),
        },
        user: &[(Base::Home, ".gemini/settings.json")],
        project: &[".gemini/settings.json"],
        instructions: Instructions {
            user: Some((Base::Home, ".gemini/GEMINI.md")),
            project: Some("GEMINI.md"),
            preamble: PLAIN,
        },
        skill: SHARED_SKILL,
        subagent: Some(OwnFile {
            user: (Base::Home, ".gemini/agents/codescout.md"),
            project: Some(".gemini/agents/codescout.md"),
        }),
        hooks: Some(Hooks {
            user: (Base::Home, ".gemini/settings.json"),
            project: ".gemini/settings.json",
            form: HookForm::Groups {
                tools: ("AfterTool", "run_shell_command|grep_search|search_file_content"),
                timeout: 5000,
            },
            next: "Gemini CLI adds the note to the result of a search, not before it",
        }),
        programs: &["gemini"],
        traces: &[(Base::Home, ".gemini")],
        next: "restart Gemini CLI; it uses the settings of a project only if you trust the folder",
        ..JSON_CLIENT
    },
    Client {
        id: "zed",
        title: "Zed",
        section: &["context_servers"],
        shape: Shape {
            stdio: StdioShape::Plain,
            http: http("url", None, Token::None),
        },
        user: &[(Base::Zed, "settings.json")],
        project: &[".zed/settings.json"],
        instructions: Instructions {
            user: None,
            project: Some("AGENTS.md"),
            preamble: PLAIN,
        },
        programs: &["zed", "zeditor"],
        traces: &[(Base::Zed, "")],
        next: "no restart needed: Zed reloads its settings; it reads only the first instruction file that exists",
        ..JSON_CLIENT
    },
    Client {
        id: "opencode",
        title: "OpenCode",
        section: &["mcp"],
        shape: Shape {
            stdio: StdioShape::Local,
            http: http("url", Some("remote"), Token::Header("Bearer {env:VARIABLE}")),
        },
        user: &[
            (Base::Config, "opencode/opencode.json"),
            (Base::Config, "opencode/opencode.jsonc"),
        ],
        project: &["opencode.json", "opencode.jsonc"],
        instructions: Instructions {
            user: Some((Base::Config, "opencode/AGENTS.md")),
            project: Some("AGENTS.md"),
            preamble: PLAIN,
        },
        skill: SHARED_SKILL,
        subagent: Some(OwnFile {
            user: (Base::Config, "opencode/agents/codescout.md"),
            project: Some(".opencode/agents/codescout.md"),
        }),
        hooks: Some(Hooks {
            user: (Base::Config, "opencode/plugins/codescout.js"),
            project: ".opencode/plugins/codescout.js",
            form: HookForm::Plugin,
            next: "OpenCode has no hook that adds to the start of a session; it adds the note to the result of a search",
        }),
        programs: &["opencode"],
        traces: &[(Base::Config, "opencode")],
        next: "restart OpenCode",
        ..JSON_CLIENT
    },
    Client {
        id: "windsurf",
        title: "Windsurf",
        shape: Shape {
            stdio: StdioShape::Plain,
            http: http("serverUrl", None, HEADER_OF_ENV),
        },
        user: &[(Base::Home, ".codeium/windsurf/mcp_config.json")],
        instructions: Instructions {
            user: Some((Base::Home, ".codeium/windsurf/memories/global_rules.md")),
            project: None,
            preamble: PLAIN,
        },
        starts_anywhere: true,
        programs: &["windsurf"],
        traces: &[(Base::Home, ".codeium/windsurf")],
        next: "refresh the servers in Windsurf; it does not pass the open project, so agents must name the \
            repository in `repo`",
        ..JSON_CLIENT
    },
    Client {
        id: "cline",
        title: "Cline",
        shape: Shape {
            stdio: StdioShape::Plain,
            http: http("url", Some("streamableHttp"), HEADER_OF_ENV),
        },
        user: &[(
            Base::VsCodeUser,
            "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        )],
        instructions: Instructions {
            user: Some((Base::Home, "Documents/Cline/Rules/codescout.md")),
            project: None,
            preamble: PLAIN,
        },
        skill: SHARED_SKILL,
        starts_anywhere: true,
        traces: &[(Base::VsCodeUser, "globalStorage/saoudrizwan.claude-dev")],
        next: "no restart needed; Cline does not pass the open project, so agents must name the repository in `repo`",
        ..JSON_CLIENT
    },
    Client {
        id: "continue",
        title: "Continue",
        format: Format::Yaml,
        shape: Shape {
            stdio: StdioShape::Typed,
            http: http(
                "url",
                Some("streamable-http"),
                Token::RequestOptions("Bearer ${{ secrets.VARIABLE }}"),
            ),
        },
        user: &[(Base::Home, ".continue/mcpServers")],
        project: &[".continue/mcpServers"],
        instructions: Instructions {
            user: Some((Base::Home, ".continue/rules/codescout.md")),
            project: Some(".continue/rules/codescout.md"),
            preamble: "---\nname: codescout\nalwaysApply: true\n---\n",
        },
        skill: Some(OwnFile {
            user: (Base::Home, ".continue/skills/codescout/SKILL.md"),
            project: Some(".continue/skills/codescout/SKILL.md"),
        }),
        programs: &["cn"],
        traces: &[(Base::Home, ".continue")],
        next: "reload Continue; it uses tools in agent mode only",
        ..JSON_CLIENT
    },
    Client {
        id: "roo",
        aliases: &["roo-code"],
        title: "Roo Code",
        shape: Shape {
            stdio: StdioShape::Plain,
            http: http("url", Some("streamable-http"), HEADER_OF_ENV),
        },
        user: &[(
            Base::VsCodeUser,
            "globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        )],
        project: &[".roo/mcp.json"],
        instructions: Instructions {
            user: Some((Base::Home, ".roo/rules/codescout.md")),
            project: Some(".roo/rules/codescout.md"),
            preamble: PLAIN,
        },
        skill: SHARED_SKILL,
        traces: &[(Base::VsCodeUser, "globalStorage/rooveterinaryinc.roo-cline")],
        next: "no restart needed: Roo Code reloads its settings",
        ..JSON_CLIENT
    },
    Client {
        id: "amp",
        title: "Amp",
        // One key with a dot, as in the settings of an editor.
        section: &["amp.mcpServers"],
        shape: Shape {
            stdio: StdioShape::Plain,
            http: http("url", None, Token::Header("Bearer ${VARIABLE}")),
        },
        user: &[(Base::Config, "amp/settings.json")],
        project: &[".amp/settings.json"],
        instructions: Instructions {
            user: Some((Base::Config, "amp/AGENTS.md")),
            project: Some("AGENTS.md"),
            preamble: PLAIN,
        },
        programs: &["amp"],
        traces: &[(Base::Config, "amp")],
        next: "restart Amp; it asks once whether to trust the servers of a project",
        ..JSON_CLIENT
    },
    Client {
        id: "junie",
        aliases: &["jetbrains"],
        title: "Junie",
        shape: Shape {
            stdio: StdioShape::Plain,
            http: http("url", None, Token::None),
        },
        user: &[(Base::Home, ".junie/mcp/mcp.json")],
        project: &[".junie/mcp/mcp.json"],
        instructions: Instructions {
            user: None,
            project: Some(".junie/guidelines.md"),
            preamble: PLAIN,
        },
        programs: &["junie"],
        traces: &[(Base::Home, ".junie")],
        next: "reload the servers in the IDE's settings under Tools, Junie, MCP Settings",
        ..JSON_CLIENT
    },
    Client {
        id: "copilot-cli",
        title: "Copilot CLI",
        shape: Shape {
            stdio: StdioShape::Typed,
            http: http("url", Some("http"), Token::Header("Bearer ${VARIABLE}")),
        },
        user: &[(Base::Copilot, "mcp-config.json")],
        project: &[".github/mcp.json"],
        instructions: Instructions {
            user: Some((Base::Copilot, "copilot-instructions.md")),
            project: Some("AGENTS.md"),
            preamble: PLAIN,
        },
        skill: SHARED_SKILL,
        subagent: Some(OwnFile {
            user: (Base::Copilot, "agents/codescout.agent.md"),
            project: Some(".github/agents/codescout.agent.md"),
        }),
        programs: &["copilot"],
        traces: &[(Base::Copilot, "")],
        next: "restart Copilot CLI; it uses the servers of a project only if you trust the folder",
        ..JSON_CLIENT
    },
    Client {
        id: "openclaw",
        title: "OpenClaw",
        section: &["mcp", "servers"],
        shape: Shape {
            stdio: StdioShape::Plain,
            http: Some(HttpShape {
                url: "url",
                kind: Some(("transport", "streamable-http")),
                token: Token::Header("Bearer ${VARIABLE}"),
            }),
        },
        user: &[(Base::OpenClaw, "openclaw.json")],
        skill: Some(OwnFile {
            user: (Base::OpenClaw, "skills/codescout/SKILL.md"),
            project: None,
        }),
        // Its gateway is a service, which starts servers.
        starts_anywhere: true,
        programs: &["openclaw"],
        traces: &[(Base::OpenClaw, "")],
        next: "check it with: openclaw mcp doctor --probe; OpenClaw does not pass the open project, so agents must name \
            the repository in `repo`",
        ..JSON_CLIENT
    },
    Client {
        id: "goose",
        title: "Goose",
        format: Format::YamlMap,
        section: &["extensions"],
        shape: Shape {
            stdio: StdioShape::Cmd,
            http: http(
                "uri",
                Some("streamable_http"),
                Token::HeaderOfKeys("Bearer ${VARIABLE}"),
            ),
        },
        user: &[(Base::Goose, "config.yaml")],
        instructions: Instructions {
            user: Some((Base::Goose, ".goosehints")),
            project: None,
            preamble: PLAIN,
        },
        skill: Some(OwnFile {
            user: (Base::Goose, "skills/codescout/SKILL.md"),
            project: None,
        }),
        // There is another program `goose`, which migrates databases.
        traces: &[(Base::Goose, "")],
        next: "start a new session of Goose",
        ..JSON_CLIENT
    },
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        shape: Shape {
            stdio: StdioShape::Plain,
            http: None,
        },
        user: &[(Base::ClaudeDesktop, "claude_desktop_config.json")],
        starts_anywhere: true,
        traces: &[(Base::ClaudeDesktop, "")],
        next: "quit and restart Claude Desktop; it does not pass the open project, so agents must name the repository \
            in `repo`",
        ..JSON_CLIENT
    },
];

impl Client {
    /// Returns the client with this name or alias.
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        CLIENTS
            .iter()
            .find(|client| client.id == name || client.aliases.contains(&name))
    }

    /// Returns the possible configuration files. The first one is written if none exists. Empty if the client has no
    /// configuration for this scope, or if there is no project.
    pub(crate) fn files(&self, scope: Scope, name: &str, places: &Places) -> Vec<PathBuf> {
        let folders: Vec<PathBuf> = match (scope, &places.project) {
            (Scope::User, _) => self.user.iter().filter_map(|place| at(places, place)).collect(),
            (Scope::Project, Some(root)) => self.project.iter().map(|path| root.join(path)).collect(),
            (Scope::Project, None) => Vec::new(),
        };
        match self.format {
            Format::Yaml => folders
                .iter()
                .map(|folder| folder.join(format!("{name}.yaml")))
                .collect(),
            _ => folders,
        }
    }

    /// Returns the path of the client's instruction file.
    pub(super) fn instructions_file(&self, scope: Scope, places: &Places) -> Option<PathBuf> {
        match scope {
            Scope::User => at(places, &self.instructions.user?),
            Scope::Project => Some(places.project.as_ref()?.join(self.instructions.project?)),
        }
    }

    /// Returns the path of the client's skill.
    pub(super) fn skill_file(&self, scope: Scope, places: &Places) -> Option<PathBuf> {
        let skill = self.skill?;
        scoped(scope, places, &skill.user, skill.project)
    }

    /// Returns the path of the client's sub-agent.
    pub(super) fn subagent_file(&self, scope: Scope, places: &Places) -> Option<PathBuf> {
        let subagent = self.subagent?;
        scoped(scope, places, &subagent.user, subagent.project)
    }

    /// Returns the path of the file with the client's hooks.
    pub(super) fn hooks_file(&self, scope: Scope, places: &Places) -> Option<PathBuf> {
        let hooks = self.hooks?;
        scoped(scope, places, &hooks.user, Some(hooks.project))
    }

    /// Returns the fields of a new file with hooks.
    pub(super) fn hooks_template(&self) -> Entry {
        match self.hooks.map(|hooks| hooks.form) {
            Some(HookForm::Commands { .. }) => Entry::from_iter([("version".to_owned(), 1.into())]),
            _ => self.template(),
        }
    }

    /// Returns a program or folder that indicates that the client is used on this machine.
    pub(crate) fn trace(&self, places: &Places) -> Option<String> {
        if let Some(program) = self.programs.iter().find(|program| places.has_program(program)) {
            return Some(format!("the program {program}"));
        }
        let mut folders = self.traces.iter().filter_map(|place| at(places, place));
        let found = folders.find(|folder| folder.exists())?;
        Some(found.display().to_string())
    }

    /// Returns the entry for a server that the client starts with these options.
    pub(crate) fn stdio(&self, scope: Scope, program: &str, options: &[String]) -> Server {
        let own: &[&str] = match scope {
            Scope::User => &[],
            Scope::Project => self.project_args,
        };
        let options = options.iter().map(String::as_str);
        let args = std::iter::once("serve").chain(own.iter().copied()).chain(options);
        Server::Stdio {
            command: program.to_owned(),
            args: args.map(str::to_owned).collect(),
        }
    }

    /// Returns what can be edited of the client's configuration, if that is less than the client reads.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        match (self.id, self.format) {
            ("openclaw", _) => Some("JSON5 cannot be edited, only JSON"),
            (_, Format::YamlMap) => Some("only simple YAML can be edited"),
            _ => None,
        }
    }

    /// Returns what to add by hand to a configuration that cannot be edited. JSON is JSON5 too.
    pub(crate) fn by_hand(&self, name: &str, server: &Server) -> Option<String> {
        let entry = self.shape.entry(server).filter(|_| self.limit().is_some())?;
        Some(match self.format {
            Format::YamlMap => {
                let whole = self.required(name).into_iter().chain(entry).collect();
                yaml_map::block(self.section[0], name, whole).trim_end().to_owned()
            }
            _ => nested(self.section, name, &entry).to_string(),
        })
    }

    /// Returns the fields that an entry must have besides those that say how to connect to the server.
    pub(super) fn required(&self, name: &str) -> Entry {
        match self.id {
            "goose" => Entry::from_iter([("enabled".to_owned(), true.into()), ("name".to_owned(), name.into())]),
            _ => Entry::new(),
        }
    }

    /// Returns the fields of a new configuration file.
    pub(super) fn template(&self) -> Entry {
        match self.id {
            // OpenCode adds this field to a file that lacks it.
            "opencode" => Entry::from_iter([("$schema".to_owned(), "https://opencode.ai/config.json".into())]),
            _ => Entry::new(),
        }
    }
}

fn scoped(scope: Scope, places: &Places, user: &Place, project: Option<&str>) -> Option<PathBuf> {
    match scope {
        Scope::User => at(places, user),
        Scope::Project => Some(places.project.as_ref()?.join(project?)),
    }
}

fn at(places: &Places, (base, path): &Place) -> Option<PathBuf> {
    let folder = places.folder(*base)?;
    Some(if path.is_empty() { folder } else { folder.join(path) })
}

#[cfg(test)]
mod tests;
