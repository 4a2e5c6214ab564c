//! `codescout config`

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::args::{ConfigArgs, ConfigCommand};
use super::json::Hinted;
use super::render::{FAINT, Output, STRONG, one_line};
use super::{Found, INTERRUPTED};
use crate::config::{EditError, KEYS, Overrides, set};
use crate::query::nearest;
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

pub(super) fn run(workspace: &Workspace, args: &ConfigArgs, output: &mut Output) -> Result<Found> {
    match &args.command {
        None | Some(ConfigCommand::Show) => show(workspace, None, output),
        Some(ConfigCommand::Get { key }) => show(workspace, Some(key), output),
        Some(ConfigCommand::Set { key, value }) => change(workspace, key, value, output),
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

fn change(workspace: &Workspace, key: &str, value: &str, output: &mut Output) -> Result<Found> {
    let is_known = KEYS.iter().any(|(known, _)| *known == key);
    if !is_known {
        return Err(unknown_key(key).into());
    }
    // The folder has to be ours before anything is written into it.
    let sidecar = workspace.open_or_create_sidecar(&INTERRUPTED)?;
    // Two that set something at once would each write what it read, and one of them be lost.
    let lock = sidecar.lock_unless(PATIENCE, &INTERRUPTED)?;
    let path = file(workspace);
    let before = std::fs::read(&path).ok();
    match set(&path, key, value) {
        Err(EditError::UnknownKey { key }) => return Err(unknown_key(&key).into()),
        done => done?,
    }
    // A value of the right kind may still be none that a command can start with.
    if let Err(error) = Workspace::open(workspace.repository.place(), &Overrides::default()) {
        match before {
            Some(bytes) => std::fs::write(&path, bytes),
            None => std::fs::remove_file(&path),
        }
        .with_context(|| format!("cannot put {} back as it was", path.display()))?;
        return Err(error.context(format!("{key} is left as it was")));
    }
    drop(lock);
    if output.json {
        let setting = SettingOut {
            key: KEYS
                .iter()
                .find(|(known, _)| *known == key)
                .map_or("", |(known, _)| known),
            value: value.to_owned(),
            origin: path.display().to_string(),
        };
        output.json(&ConfigOut {
            repo: repo(workspace),
            file: path.display().to_string(),
            results: vec![setting],
        })?;
    }
    Ok(Found::Something)
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
            true => format!("settings are {}", KEYS.map(|(known, _)| known).join(", ")),
            false => format!("did you mean {}?", near.join(" or ")),
        },
    }
}
