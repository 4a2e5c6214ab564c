//! `codescout config`

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::args::{ConfigArgs, ConfigCommand, Global};
use super::json::Hinted;
use super::render::{FAINT, Output, STRONG, note, one_line};
use super::{Found, INTERRUPTED};
use crate::config::{KEYS, Overrides, set, unset};
use crate::query::nearest;
use crate::sidecar::write_atomic;
use crate::surface::open::{PATIENCE, Workspace};

#[derive(Debug, Serialize)]
struct ConfigOut {
    repo: String,
    file: String,
    results: Vec<SettingOut>,
}

/// A setting with what it is and where it was set.
#[derive(Debug, Serialize)]
pub(super) struct SettingOut {
    key: &'static str,
    value: String,
    origin: String,
}

impl From<(&'static str, String, String)> for SettingOut {
    fn from((key, value, origin): (&'static str, String, String)) -> Self {
        Self { key, value, origin }
    }
}

pub(super) fn run(global: &Global, args: &ConfigArgs, output: &mut Output) -> Result<Found> {
    let mut shown = |key| show(&Workspace::open(&global.repo, &Overrides::default())?, key, output);
    match &args.command {
        None | Some(ConfigCommand::Show) => shown(None),
        Some(ConfigCommand::Get { key }) => shown(Some(key)),
        Some(ConfigCommand::Set { key, value }) => change(global, key, Some(value), output),
        Some(ConfigCommand::Unset { key }) => change(global, key, None, output),
    }
}

fn show(workspace: &Workspace, key: Option<&str>, output: &mut Output) -> Result<Found> {
    let entries = workspace.config.entries().into_iter();
    let results: Vec<SettingOut> = entries
        .filter(|(known, _, _)| key.is_none_or(|key| key == *known))
        .map(SettingOut::from)
        .collect();
    if let (Some(key), true) = (key, results.is_empty()) {
        return Err(unknown_key(key).into());
    }
    if output.json {
        output.json(&ConfigOut {
            repo: repo(workspace),
            file: file(workspace).display().to_string(),
            results,
        })?;
        return Ok(Found::Something);
    }
    for setting in &results {
        let value = one_line(&setting.value);
        if key.is_some() {
            output.line(&value)?;
            continue;
        }
        let name = output.styled(STRONG, setting.key);
        let origin = output.name(FAINT, &format!("({})", setting.origin));
        output.line(&format!("{name} = {value} {origin}"))?;
    }
    Ok(Found::Something)
}

/// Sets a key to a value, or takes it out.
fn change(global: &Global, key: &str, value: Option<&str>, output: &mut Output) -> Result<Found> {
    let Some((key, _)) = KEYS.iter().find(|(known, _)| *known == key) else {
        return Err(unknown_key(key).into());
    };
    // With what is set now nothing may be opened any more, and this is what mends it.
    let workspace = Workspace::open_without_settings(&global.repo)?;
    let opened = || Workspace::open(&global.repo, &Overrides::default());
    let was_usable = opened().is_ok();
    // The folder has to be ours before anything is written into it.
    let sidecar = workspace.open_or_create_sidecar(&INTERRUPTED)?;
    // Two that set something at once would each write what it read, and one of them be lost.
    let lock = sidecar.lock_unless(PATIENCE, &INTERRUPTED)?;
    let path = file(&workspace);
    let before = std::fs::read(&path).ok();
    let is_changed = match value {
        Some(value) => set(&path, key, value).map(|()| true)?,
        None => {
            let is_changed = unset(&path, key)?;
            // A model's name is its server's: without that it would be a folder's.
            if is_changed && *key == "embedding.server" {
                unset(&path, "embedding.model")?;
            }
            is_changed
        }
    };
    let now = match opened() {
        Ok(now) => now.config.entries(),
        // It was not for this that nothing could be opened.
        Err(error) if !was_usable => {
            return Err(error.context(format!("{} is written, but this is in the way", path.display())));
        }
        // A value of the right kind may still be none that a command can start with.
        Err(error) => {
            match before {
                Some(bytes) => write_atomic(&path, &bytes),
                None => std::fs::remove_file(&path),
            }
            .with_context(|| format!("cannot put {} back as it was", path.display()))?;
            return Err(error.context(format!("{key} is left as it was")));
        }
    };
    drop(lock);
    if !is_changed {
        note(&format!("{key} is not set in {}", path.display()));
    }
    if output.json {
        let results = now.into_iter().filter(|(known, _, _)| known == key);
        output.json(&ConfigOut {
            repo: repo(&workspace),
            file: path.display().to_string(),
            results: results.map(SettingOut::from).collect(),
        })?;
    }
    Ok(match is_changed {
        true => Found::Something,
        false => Found::Nothing,
    })
}

fn repo(workspace: &Workspace) -> String {
    let repository = &workspace.repository;
    let root = repository.place();
    root.display().to_string()
}

fn file(workspace: &Workspace) -> std::path::PathBuf {
    workspace.sidecar_root().join("config.toml")
}

fn unknown_key(key: &str) -> Hinted {
    let near = nearest(key, KEYS.iter().map(|(known, _)| *known));
    Hinted {
        message: format!("unknown setting {key:?}"),
        hint: match near.is_empty() {
            true => "codescout config lists all settings".to_owned(),
            false => format!("did you mean {}?", near.join(" or ")),
        },
    }
}
