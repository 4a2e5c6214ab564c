//! `codescout config`

use std::path::Path;

use serde::Serialize;

use super::args::{ConfigArgs, ConfigCommand, Global};
use super::render::{FAINT, Output, STRONG, note, one_line};
use super::{Found, INTERRUPTED};
use crate::config::{
    Config, Edited, Entry, Environment, NAMED, Origin, Overrides, RepositoryFiles, SETTINGS, SettingInfo, set, trust,
    trust_text, unset, untrusted_key,
};
use crate::git::Repository;
use crate::query::nearest;
use crate::session::{Context as _, OpError, PATIENCE, Result, Workspace};
use crate::sidecar::write_atomic;

#[derive(Debug, Serialize)]
struct ConfigOut {
    repo: Option<String>,
    file: String,
    results: Vec<SettingOut>,
}

/// A setting with its value and origin.
#[derive(Debug, Serialize)]
pub(super) struct SettingOut {
    key: String,
    value: String,
    origin: String,
    help: &'static str,
}

impl From<Entry> for SettingOut {
    fn from(entry: Entry) -> Self {
        Self {
            key: entry.key,
            value: entry.value,
            origin: entry.origin.to_string(),
            help: entry.help,
        }
    }
}

pub(super) fn run(global: &Global, args: &ConfigArgs, output: &mut Output) -> Result<Found> {
    let mut shown = |key| show(global, key, output);
    match &args.command {
        None | Some(ConfigCommand::Show) => shown(None),
        Some(ConfigCommand::Get { key }) => shown(Some(key)),
        Some(ConfigCommand::Set { key, value, user }) => change(global, key, Some(value), *user, output),
        Some(ConfigCommand::Unset { key, user }) => change(global, key, None, *user, output),
        Some(ConfigCommand::Trust) => approve(global, output),
    }
}

/// Records the sidecar's settings file as trusted and shows its settings.
fn approve(global: &Global, output: &mut Output) -> Result<Found> {
    let path = file(&Workspace::open_without_settings(&global.repo)?);
    trust(&path, &Environment::read())?;
    let workspace = Workspace::open(&global.repo, &Overrides::default())?;
    let origin = Origin::File(path);
    let entries = workspace.config.entries().into_iter();
    let set = entries.filter(|entry| entry.origin == origin).map(SettingOut::from);
    list(set.collect(), &workspace, global.verbose > 0, output)
}

fn show(global: &Global, key: Option<&str>, output: &mut Output) -> Result<Found> {
    let workspace = Workspace::open(&global.repo, &Overrides::default())?;
    let entries = workspace.config.entries().into_iter();
    let results: Vec<SettingOut> = entries
        .filter(|entry| key.is_none_or(|key| key == entry.key))
        .map(SettingOut::from)
        .collect();
    if let (Some(key), true) = (key, results.is_empty()) {
        return Err(unknown_key(key));
    }
    match key {
        Some(_) if !output.json => {
            for setting in &results {
                output.line(&one_line(&setting.value))?;
            }
            Ok(Found::Something)
        }
        _ => list(results, &workspace, global.verbose > 0, output),
    }
}

fn list(results: Vec<SettingOut>, workspace: &Workspace, with_help: bool, output: &mut Output) -> Result<Found> {
    if output.json {
        output.json(&ConfigOut {
            repo: Some(repo(workspace)),
            file: file(workspace).display().to_string(),
            results,
        })?;
        return Ok(Found::Something);
    }
    for setting in &results {
        let name = output.styled(STRONG, &setting.key);
        let origin = output.name(FAINT, &format!("({})", setting.origin));
        output.line(&format!("{name} = {} {origin}", one_line(&setting.value)))?;
        if with_help {
            output.line(&format!("    {}", setting.help))?;
        }
    }
    Ok(Found::Something)
}

/// Sets a key to a value, or removes it.
fn change(global: &Global, key: &str, value: Option<&str>, is_users: bool, output: &mut Output) -> Result<Found> {
    SettingInfo::of(key).ok_or_else(|| unknown_key(key))?;
    let change = Change { key, value };
    let opened = || Ok(Workspace::open(&global.repo, &Overrides::default())?.config.entries());
    if is_users {
        let path = Environment::read()
            .user_file
            .context("neither HOME nor XDG_CONFIG_HOME is set")?;
        // If the file is a symbolic link, its target is changed.
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let is_changed = if Repository::discover(&global.repo).is_ok() {
            change.apply(&path, &opened, &|_, _| Ok(()))?
        } else {
            let resolved = || {
                let files = RepositoryFiles::default();
                Ok(Config::resolve(&Overrides::default(), &Environment::read(), &files)?.entries())
            };
            change.apply(&path, &resolved, &|_, _| Ok(()))?
        };
        return change.answer(is_changed, None, &path, output);
    }
    // Invalid settings may prevent opening the repository, and this command must be able to correct them.
    let workspace = Workspace::open_without_settings(&global.repo)?;
    // Opening the sidecar checks that codescout created it, before a file in it is changed.
    let sidecar = workspace.storage.open_or_create(&INTERRUPTED)?;
    // Without the lock, concurrent commands could overwrite each other's changes.
    let lock = sidecar.lock_unless(PATIENCE, &INTERRUPTED)?;
    let (path, environment) = (file(&workspace), Environment::read());
    // Changing one line must not turn an untrusted file into a trusted one. The file is not read again: somebody may have
    // replaced it.
    let record = |before: &str, after: &str| {
        let needs_trust = |text: &str| untrusted_key(&path, text, &environment);
        let was_trusted = matches!(needs_trust(before), Ok(None));
        if was_trusted && (needs_trust(after)?.is_some() || workspace.repository.is_inside_another()) {
            Ok(trust_text(&path, after, &environment)?)
        } else {
            Ok(())
        }
    };
    let is_changed = change.apply(&path, &opened, &record)?;
    drop(lock);
    change.answer(is_changed, Some(repo(&workspace)), &path, output)
}

struct Change<'a> {
    key: &'a str,
    value: Option<&'a str>,
}

impl Change<'_> {
    /// Changes the file, and undoes the change if the repository cannot be opened with the new settings. Calls `record`
    /// with the text before and after each change. Returns true if the file has changed, and the resulting settings.
    fn apply(
        &self,
        path: &Path,
        opened: &dyn Fn() -> Result<Vec<Entry>>,
        record: &dyn Fn(&str, &str) -> Result<()>,
    ) -> Result<(bool, Vec<Entry>)> {
        let was_usable = opened().is_ok();
        let mut edits = match self.value {
            Some(value) => vec![set(path, self.key, value)?],
            None => Vec::from_iter(unset(path, self.key)?),
        };
        // Without a server, the name of its model would be interpreted as the path of a local model.
        if self.value.is_none() && self.key == "embedding.server" && !edits.is_empty() {
            edits.extend(unset(path, "embedding.model")?);
        }
        let mut texts = edits.iter();
        let recorded = texts.try_for_each(|edit| record(edit.before.as_deref().unwrap_or_default(), &edit.after));
        match recorded.and_then(|()| opened()) {
            Ok(now) => Ok((!edits.is_empty(), now)),
            // The settings were invalid before, so this change did not cause the error.
            Err(error) if !was_usable => {
                Err(error.context(format!("wrote {}, but the settings are still invalid", path.display())))
            }
            // A value of the right type may still be invalid.
            Err(error) => {
                let restored = match (edits.first(), edits.last()) {
                    (Some(Edited { before: None, .. }), _) => std::fs::remove_file(path).map_err(Into::into),
                    (Some(Edited { before: Some(text), .. }), Some(last)) => write_atomic(path, text.as_bytes())
                        .map_err(Into::into)
                        .and_then(|()| record(&last.after, text)),
                    _ => Ok(()),
                };
                restored.with_context(|| format!("cannot restore {}", path.display()))?;
                Err(error.context(format!("{} was not changed", self.key)))
            }
        }
    }

    fn answer(
        &self,
        (is_changed, now): (bool, Vec<Entry>),
        repo: Option<String>,
        path: &Path,
        output: &mut Output,
    ) -> Result<Found> {
        let key = self.key;
        if !is_changed {
            note(&format!("{key} is not set in {}", path.display()));
        }
        if output.json {
            let results = now.into_iter().filter(|entry| entry.key == key);
            output.json(&ConfigOut {
                repo,
                file: path.display().to_string(),
                results: results.map(SettingOut::from).collect(),
            })?;
        }
        Ok(if is_changed { Found::Something } else { Found::Nothing })
    }
}

fn repo(workspace: &Workspace) -> String {
    let repository = &workspace.repository;
    let root = repository.place();
    root.display().to_string()
}

fn file(workspace: &Workspace) -> std::path::PathBuf {
    workspace.storage.root().join("config.toml")
}

fn unknown_key(key: &str) -> OpError {
    let near = nearest(key, SETTINGS.iter().chain(NAMED).map(|setting| setting.key));
    OpError::new(
        format!("unknown setting {key:?}"),
        if near.is_empty() {
            "codescout config lists all settings".to_owned()
        } else {
            format!("did you mean {}?", near.join(" or "))
        },
    )
}
