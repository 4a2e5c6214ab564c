//! Finds configuration files and programs on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::program::absolute_folders;

/// Determines for whom codescout is installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The installation is for all projects of this user.
    #[default]
    User,
    /// The installation is for all users of one repository.
    Project,
}

impl Scope {
    /// The name of the scope.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// The operating system, which determines the locations of folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    /// The operating system that this program was built for.
    pub(crate) const HERE: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// A folder that contains files of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// The user's home directory.
    Home,
    /// `XDG_CONFIG_HOME`, or else `.config` in the home directory, on every platform.
    Config,
    /// `CLAUDE_CONFIG_DIR`, or else the home directory.
    ClaudeState,
    /// `CLAUDE_CONFIG_DIR`, or else `.claude` in the home directory.
    Claude,
    /// `CODEX_HOME`, or else `.codex` in the home directory.
    Codex,
    /// Visual Studio Code's folder for user settings.
    VsCodeUser,
    /// Zed's configuration folder.
    Zed,
    /// `COPILOT_HOME`, or else `.copilot` in the home directory.
    Copilot,
    /// `OPENCLAW_STATE_DIR`, or else `.openclaw` in the home directory.
    OpenClaw,
    /// Goose's configuration folder.
    Goose,
    /// Claude Desktop's folder. There is no Claude Desktop for Linux.
    ClaudeDesktop,
}

/// The folders of one user, and of one project if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The platform.
    pub(crate) platform: Platform,
    /// The user's home directory.
    pub(crate) home: PathBuf,
    /// The root of the project's worktree.
    pub(crate) project: Option<PathBuf>,
    /// The folders in `PATH`.
    pub(crate) path: Vec<PathBuf>,
    /// The environment variables in [`MOVERS`] that are set.
    moved: Vec<(&'static str, PathBuf)>,
}

/// The environment variables that change the locations of folders.
const MOVERS: [&str; 8] = [
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "OPENCLAW_STATE_DIR",
    "APPDATA",
    "LOCALAPPDATA",
];

impl Places {
    /// Reads the environment. Returns `None` if it names no home directory.
    pub(crate) fn read(project: Option<PathBuf>) -> Option<Self> {
        let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = absolute_folders(&value("PATH").unwrap_or_default()).collect();
        Self::new(Platform::HERE, project, path, value)
    }

    /// Computes the folders from environment variables. Returns `None` if they name no home directory.
    pub(crate) fn new(
        platform: Platform,
        project: Option<PathBuf>,
        path: Vec<PathBuf>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Option<Self> {
        let home = match platform {
            Platform::Windows => variable("USERPROFILE").or_else(|| variable("HOME")),
            _ => variable("HOME"),
        };
        let moved = MOVERS.into_iter().filter_map(|name| {
            // Ignores relative paths: https://specifications.freedesktop.org/basedir-spec/
            let folder = PathBuf::from(variable(name)?);
            folder.has_root().then_some((name, folder))
        });
        Some(Self {
            platform,
            home: PathBuf::from(home?),
            project,
            path,
            moved: moved.collect(),
        })
    }

    /// Returns the path of a base folder; `None` if this platform has none.
    pub(crate) fn folder(&self, base: Base) -> Option<PathBuf> {
        let config = || self.moved_or("XDG_CONFIG_HOME", ".config");
        let roaming = || self.moved_or("APPDATA", "AppData/Roaming");
        let support = self.home.join("Library/Application Support");
        Some(match base {
            Base::Home => self.home.clone(),
            Base::Config => config(),
            Base::ClaudeState => self.moved_or("CLAUDE_CONFIG_DIR", ""),
            Base::Claude => self.moved_or("CLAUDE_CONFIG_DIR", ".claude"),
            Base::Codex => self.moved_or("CODEX_HOME", ".codex"),
            Base::Copilot => self.moved_or("COPILOT_HOME", ".copilot"),
            Base::OpenClaw => self.moved_or("OPENCLAW_STATE_DIR", ".openclaw"),
            Base::VsCodeUser => match self.platform {
                Platform::Linux => config().join("Code/User"),
                Platform::MacOs => support.join("Code/User"),
                Platform::Windows => roaming().join("Code/User"),
            },
            Base::Zed => match self.platform {
                Platform::Linux => config().join("zed"),
                Platform::MacOs => self.home.join(".config/zed"),
                Platform::Windows => roaming().join("Zed"),
            },
            Base::Goose => match self.platform {
                Platform::Windows => roaming().join("Block/goose/config"),
                _ => config().join("goose"),
            },
            Base::ClaudeDesktop => match self.platform {
                Platform::Linux => return None,
                Platform::MacOs => support.join("Claude"),
                Platform::Windows => roaming().join("Claude"),
            },
        })
    }

    /// Returns the folder for backups.
    pub(crate) fn records(&self) -> PathBuf {
        let default = match self.platform {
            Platform::Linux => ".local/state",
            Platform::MacOs => "Library/Application Support",
            Platform::Windows => return self.moved_or("LOCALAPPDATA", "AppData/Local").join("codescout/install"),
        };
        self.moved_or("XDG_STATE_HOME", default).join("codescout/install")
    }

    /// Returns the path of the program in a folder of `PATH` if it is found there, or else its own path. A package
    /// manager may change the target of a link in `PATH`, but keeps the link.
    pub(crate) fn stable_path(&self, program: &Path) -> PathBuf {
        let Some(name) = program.file_name() else {
            return program.to_owned();
        };
        let real = std::fs::canonicalize(program).ok();
        let is_same = |candidate: &PathBuf| {
            candidate.is_absolute() && real.is_some() && std::fs::canonicalize(candidate).ok() == real
        };
        let mut candidates = self.path.iter().map(|folder| folder.join(name));
        candidates.find(is_same).unwrap_or_else(|| program.to_owned())
    }

    /// Returns true if `PATH` contains a program of this name.
    pub(crate) fn has_program(&self, name: &str) -> bool {
        let is_there = |folder: &PathBuf| match self.platform {
            Platform::Windows => ["exe", "cmd"]
                .iter()
                .any(|ending| folder.join(format!("{name}.{ending}")).is_file()),
            _ => folder.join(name).is_file(),
        };
        self.path.iter().any(is_there)
    }

    fn moved_or(&self, variable: &str, below_home: &str) -> PathBuf {
        let moved = self.moved.iter().find(|(name, _)| *name == variable);
        match moved {
            Some((_, folder)) => folder.clone(),
            None if below_home.is_empty() => self.home.clone(),
            None => self.home.join(below_home),
        }
    }
}
