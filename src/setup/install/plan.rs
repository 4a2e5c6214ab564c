//! Plans and applies an installation or its removal.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::clients::{Client, Format};
use super::entry::{Entry, Server};
use super::extras::{self, HookForm, agent_hooks, hook_command, is_own_hook, put_whole, take_whole};
use super::file::{self, FileError, Found};
use super::places::{Places, Scope};
use super::record::{Kept, Record, Records, hash};
use super::{Edited, TextError, block, diff, entry, json_text, toml_text, yaml_map, yaml_text};
use crate::model::Explain;

/// The section of a configuration that contains lists of hooks.
const HOOKS: &str = "hooks";

/// An error after which all files are unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    /// The client has no such file in this scope.
    #[error("{client} has no {what} with scope {}", .scope.name())]
    NoFile {
        /// The client.
        client: &'static str,
        /// `configuration` or `instruction file`.
        what: &'static str,
        /// The requested scope.
        scope: Scope,
    },
    /// The client has no configuration on this platform.
    #[error("{client} is not available on this platform")]
    NotHere {
        /// The client.
        client: &'static str,
    },
    /// The client cannot be given the address of a server.
    #[error("{client} takes no address of a server from its configuration")]
    NoHttp {
        /// The client.
        client: &'static str,
    },
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content of the file cannot be edited.
    #[error("cannot edit {}", .path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: TextError,
    },
    /// The file was changed after the diff was shown.
    #[error("{} was changed by another program", .path.display())]
    Raced {
        /// The file.
        path: PathBuf,
    },
}

impl Explain for InstallError {}

/// A request to install or uninstall.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// Determines whether the user's or a project's files are changed.
    pub(crate) scope: Scope,
    /// Name of the server in the configuration.
    pub(crate) name: String,
    /// True to also add the block to the instruction file.
    pub(crate) instructions: bool,
    /// True to also add the skill; for a client without skills, the block.
    pub(crate) skill: bool,
    /// True to also add the sub-agent.
    pub(crate) subagent: bool,
    /// True to also add hooks.
    pub(crate) hooks: bool,
    /// True to replace a skill, sub-agent or plugin that the user has changed, and a project's entry that somebody else wrote.
    pub(crate) force: bool,
    /// The program that hooks run.
    pub(crate) program: String,
}

/// A file of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The configuration with the server.
    Server,
    /// The instruction file.
    Instructions,
    /// The skill.
    Skill,
    /// The sub-agent.
    Subagent,
    /// The file with hooks.
    Hooks,
}

/// The kind of change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// No change.
    Keep,
    /// No change, because the user has changed what codescout wrote.
    Left,
    /// The file is created.
    Create,
    /// A part of the file changes.
    Edit,
    /// The file is removed, because it contained nothing else.
    Remove,
}

/// The planned change of one file.
#[derive(Debug)]
pub(crate) struct Change {
    /// The kind of file.
    pub(crate) part: Part,
    /// The path of the file, before resolving links.
    pub(crate) path: PathBuf,
    /// The path of the file with the original text. The file may not exist yet.
    pub(crate) backup: Option<PathBuf>,
    target: PathBuf,
    before: Option<String>,
    after: Option<String>,
    /// The record to store; `None` to delete the record.
    kept: Option<Kept>,
    made_folders: Vec<PathBuf>,
    /// True if the user has changed the file since codescout wrote it, and keeps it.
    is_left: bool,
}

impl Change {
    /// Returns the kind of change.
    pub(crate) fn act(&self) -> Act {
        match (&self.before, &self.after) {
            _ if self.is_left => Act::Left,
            (before, after) if before == after => Act::Keep,
            (None, _) => Act::Create,
            (_, None) => Act::Remove,
            _ => Act::Edit,
        }
    }

    /// Returns the unified diff. It is empty if nothing changes.
    pub(crate) fn diff(&self) -> String {
        let path = self.path.display().to_string();
        diff::unified(&path, self.before.as_deref(), self.after.as_deref())
    }

    fn apply(&self, records: &Records) -> Result<(), InstallError> {
        if self.before == self.after {
            return Ok(());
        }
        let now = Found::read(&self.target, None)?;
        if now.text != self.before {
            return Err(InstallError::Raced {
                path: self.path.clone(),
            });
        }
        // Stores the record first. If the process is killed afterwards, the hash in the record shows that the change
        // was not made.
        if let Some(kept) = &self.kept {
            records.store(kept)?;
        }
        match &self.after {
            Some(after) => file::write(&self.target, after)?,
            None => file::remove(&self.target, &self.made_folders)?,
        }
        if self.kept.is_none() {
            records.remove(&self.target)?;
        }
        Ok(())
    }
}

/// The planned changes. Creating a plan changes no file.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The changes. For an installation, includes files that do not change.
    pub(crate) changes: Vec<Change>,
    /// Notes for the user.
    pub(crate) next: Vec<String>,
    /// What a project's files have in place of what an installation writes, although no installation by this user wrote
    /// it: one line each.
    pub(crate) planted: Vec<String>,
    records: Records,
}

impl Plan {
    /// Plans to add `server` to the configuration of `client`.
    pub(crate) fn install(
        client: &Client,
        server: &Server,
        request: &Request,
        places: &Places,
    ) -> Result<Self, InstallError> {
        let entry = client
            .shape
            .entry(server)
            .ok_or(InstallError::NoHttp { client: client.title })?;
        let mut desk = Desk::new(client, request, places);
        let chosen = config_file(client, request, places)?;
        desk.find_planted(&chosen, &entry)?;
        let is_replaced = request.force && !desk.planted.is_empty();
        let tag = format!("server:{}", request.name);
        for path in client.files(request.scope, &request.name, places) {
            if is_replaced && path != chosen {
                desk.take_server(path, &tag)?;
            }
        }
        desk.put(Part::Server, chosen, &tag, |text| {
            let without = if is_replaced {
                take_server(client, text, &request.name, false)?
            } else {
                None
            };
            put_server(client, without.as_deref().unwrap_or(text), &request.name, &entry)
        })?;
        let mut next = vec![client.next.to_owned()];
        let skill = client.skill_file(request.scope, places).filter(|_| request.skill);
        if request.instructions || (request.skill && skill.is_none()) {
            let path = client.instructions_file(request.scope, places);
            desk.put_block(path.ok_or(no_file(client, "instruction file", request.scope))?)?;
        }
        match skill {
            Some(path) => desk.put_skill(path)?,
            None if request.skill => next.push(format!(
                "no skills of {} are known, so the same is in its instruction file, without examples",
                client.title
            )),
            None => {}
        }
        match client.subagent_file(request.scope, places) {
            Some(path) if request.subagent => {
                let tag = format!("subagent:{}", client.id);
                desk.put_own(Part::Subagent, path, &tag, &extras::subagent(client.id))?;
            }
            None if request.subagent => next.push(format!(
                "no sub-agents of {} are known, so none was added",
                client.title
            )),
            _ => {}
        }
        if request.hooks {
            match (client.hooks, client.hooks_file(request.scope, places)) {
                (Some(hooks), Some(path)) => {
                    desk.put_hooks(hooks.form, path)?;
                    next.push(hooks.next.to_owned());
                }
                _ => next.push(format!(
                    "no hooks of {} that add to the agent's context are known, so none were added",
                    client.title
                )),
            }
        }
        next.retain(|note| !note.is_empty());
        Ok(desk.into_plan(next))
    }

    /// Plans to remove the server from the configuration of `client`, and with its last server the block of
    /// instructions, the skill, the sub-agent and the hooks.
    pub(crate) fn uninstall(client: &Client, request: &Request, places: &Places) -> Result<Self, InstallError> {
        let files = client.files(request.scope, &request.name, places);
        if files.is_empty() {
            return Err(no_configuration(client, request.scope));
        }
        let mut desk = Desk::new(client, request, places);
        for path in files {
            desk.take_server(path, &format!("server:{}", request.name))?;
        }
        let has_another = desk.changes.iter().any(|change| {
            let parts = change.kept.as_ref().map(|kept| &kept.record.parts);
            parts.is_some_and(|parts| parts.iter().any(|part| part.starts_with("server:")))
        });
        if !has_another {
            desk.take_extras(client)?;
        }
        desk.changes.retain(|change| change.act() != Act::Keep);
        Ok(desk.into_plan(Vec::new()))
    }

    /// Returns true if a file would change.
    pub(crate) fn is_needed(&self) -> bool {
        self.changes.iter().any(|change| change.before != change.after)
    }

    /// Applies the plan file by file. Each file is replaced atomically.
    pub(crate) fn apply(&self) -> Result<(), InstallError> {
        self.changes.iter().try_for_each(|change| change.apply(&self.records))
    }
}

/// Returns the file of this scope that has a server of this name, if there is one.
pub(crate) fn is_installed(client: &Client, scope: Scope, name: &str, places: &Places) -> Option<PathBuf> {
    let files = client.files(scope, name, places).into_iter();
    let read = |path: &Path| Found::read(path, root(scope, places)).ok()?.text;
    let mut files = files.filter_map(|path| Some((read(&path)?, path)));
    let names = |text: &str| match client.format {
        Format::Yaml => yaml_text::has(text, name),
        _ => entry_in(client, text, name).is_some(),
    };
    files.find(|(text, _)| names(text)).map(|(_, path)| path)
}

/// Returns the entry of a server in the text of a configuration. A file that cannot be parsed counts as having none: an
/// installation reports the error. A file of one server has none, as it is written whole.
fn entry_in(client: &Client, text: &str, name: &str) -> Option<Value> {
    let root = match client.format {
        Format::Json => json_text::value(text).ok()??,
        Format::Toml => Value::Object(toml_text::value(text).ok()??),
        Format::YamlMap => Value::Object(yaml_map::value(text).ok()??),
        Format::Yaml => return None,
    };
    let servers = client.section.iter().fold(&root, |fields, key| &fields[*key]);
    servers.get(name).cloned()
}

/// Returns the folder that a project's files must be in.
fn root(scope: Scope, places: &Places) -> Option<&Path> {
    match scope {
        Scope::User => None,
        Scope::Project => places.project.as_deref(),
    }
}

fn no_file(client: &Client, what: &'static str, scope: Scope) -> InstallError {
    InstallError::NoFile {
        client: client.title,
        what,
        scope,
    }
}

fn no_configuration(client: &Client, scope: Scope) -> InstallError {
    if scope == Scope::User {
        InstallError::NotHere { client: client.title }
    } else {
        no_file(client, "configuration", scope)
    }
}

/// Returns the first configuration file that exists, or else the first one.
pub(crate) fn config_file(client: &Client, request: &Request, places: &Places) -> Result<PathBuf, InstallError> {
    let mut files = client.files(request.scope, &request.name, places);
    let existing = files.iter().position(|path| path.exists()).unwrap_or(0);
    if files.is_empty() {
        Err(no_configuration(client, request.scope))
    } else {
        Ok(files.swap_remove(existing))
    }
}

fn put_server(client: &Client, text: &str, name: &str, entry: &Entry) -> Result<Edited, TextError> {
    match client.format {
        Format::Json => json_text::put(text, client.section, name, entry, &client.template()),
        Format::Toml => toml_text::put(text, client.section[0], name, entry),
        Format::YamlMap => yaml_map::put(text, client.section[0], name, entry, &client.required(name)),
        Format::Yaml => Ok(Edited {
            text: yaml_text::put(text, client.section[0], name, entry)?,
            made_section: false,
        }),
    }
}

fn take_server(client: &Client, text: &str, name: &str, with_section: bool) -> Result<Option<String>, TextError> {
    match client.format {
        Format::Json => json_text::take(text, client.section, name, with_section),
        Format::Toml => toml_text::take(text, client.section[0], name),
        Format::YamlMap => yaml_map::take(text, client.section[0], name, with_section),
        Format::Yaml => Ok(yaml_text::take(text, client.section[0], name)),
    }
}

/// Computes the changes of files.
struct Desk<'a> {
    client: &'a Client,
    request: &'a Request,
    places: &'a Places,
    records: Records,
    changes: Vec<Change>,
    planted: Vec<String>,
}

impl<'a> Desk<'a> {
    fn new(client: &'a Client, request: &'a Request, places: &'a Places) -> Self {
        Self {
            client,
            request,
            places,
            records: Records::new(places.records()),
            changes: Vec::new(),
            planted: Vec::new(),
        }
    }

    fn into_plan(self, next: Vec<String>) -> Plan {
        Plan {
            changes: self.changes,
            next,
            planted: self.planted,
            records: self.records,
        }
    }

    /// Reads a file as the changes so far leave it, with its record.
    fn read(&self, path: &Path) -> Result<(Found, Option<Kept>), InstallError> {
        // The files must be in the project's folder after resolving links.
        let mut found = Found::read(path, root(self.request.scope, self.places))?;
        match self.changes.iter().find(|change| change.path == path) {
            Some(change) => {
                found.text.clone_from(&change.after);
                Ok((found, change.kept.clone()))
            }
            None => {
                let kept = self.known(&found);
                Ok((found, kept))
            }
        }
    }

    /// Adds a change, or extends that of the same file.
    fn add(&mut self, change: Change) {
        match self.changes.iter_mut().find(|earlier| earlier.path == change.path) {
            Some(earlier) if earlier.after == change.after => {}
            Some(earlier) => {
                let before = earlier.before.take();
                let part = earlier.part;
                *earlier = Change { part, before, ..change };
            }
            None => self.changes.push(change),
        }
    }

    /// Finds entries of a project's files that no installation by this user wrote, and that differ from `wanted`, which
    /// would be in the file `chosen`.
    fn find_planted(&mut self, chosen: &Path, wanted: &Entry) -> Result<(), InstallError> {
        let (scope, name) = (self.request.scope, &self.request.name);
        if scope == Scope::User {
            return Ok(());
        }
        for path in self.client.files(scope, name, self.places) {
            let (found, kept) = self.read(&path)?;
            let text = found.text.as_deref().unwrap_or_default();
            let Some(entry) = entry_in(self.client, text, name).filter(|_| !is_written(text, kept.as_ref())) else {
                continue;
            };
            let wanted = if path == chosen { wanted } else { &Entry::new() };
            let lines = entry::differences(&entry, wanted).into_iter();
            self.planted
                .extend(lines.map(|line| format!("{}: {line}", path.display())));
        }
        Ok(())
    }

    /// Removes the entry of the server from a file.
    fn take_server(&mut self, path: PathBuf, tag: &str) -> Result<(), InstallError> {
        let (client, name) = (self.client, &self.request.name);
        let take = |text: &str, with_section: bool| take_server(client, text, name, with_section);
        let is_leftover = |text: &str| match client.format {
            Format::Json => json_text::is_leftover(text, &client.template()),
            _ => text.trim().is_empty(),
        };
        self.take(Part::Server, path, tag, take, is_leftover)
    }

    /// Adds a part to a file.
    fn put(
        &mut self,
        part: Part,
        path: PathBuf,
        tag: &str,
        edit: impl Fn(&str) -> Result<Edited, TextError>,
    ) -> Result<(), InstallError> {
        let (found, kept) = self.read(&path)?;
        let edited = edit(found.text.as_deref().unwrap_or_default()).map_err(|source| InstallError::Text {
            path: path.clone(),
            source,
        })?;
        let kept = if found.text.as_deref() == Some(edited.text.as_str()) {
            kept
        } else {
            found.writable()?;
            Some(recorded(&found, kept, tag, &edited))
        };
        let change = self.change(part, path, found, Some(edited.text), kept);
        self.add(change);
        Ok(())
    }

    fn put_block(&mut self, path: PathBuf) -> Result<(), InstallError> {
        let client = self.client;
        self.put(Part::Instructions, path, &format!("block:{}", client.id), |text| {
            let text = block::put(text, client.id, client.instructions.preamble)?;
            Ok(Edited {
                text,
                made_section: false,
            })
        })
    }

    fn put_hooks(&mut self, form: HookForm, path: PathBuf) -> Result<(), InstallError> {
        let program = &self.request.program;
        let client = self.client;
        let tag = format!("hooks:{}", client.id);
        if matches!(form, HookForm::Plugin) {
            return self.put_own(Part::Hooks, path, &tag, &extras::plugin(program));
        }
        let command = hook_command(program, client.id, self.places.platform);
        let items = form.items(&command);
        let is_own = |item: &Value| is_own_hook(item, program);
        let is_like_own = |item: &Value| !agent_hooks(item).is_empty();
        let (found, kept) = self.read(&path)?;
        let may_be_planted = self.request.scope == Scope::Project
            && !is_written(found.text.as_deref().unwrap_or_default(), kept.as_ref());
        let is_replaced = self.request.force && may_be_planted;
        self.put(Part::Hooks, path.clone(), &tag, |text| {
            let without = if is_replaced {
                json_text::list::take(text, HOOKS, &is_like_own, false)?
            } else {
                None
            };
            let text = without.as_deref().unwrap_or(text);
            json_text::list::put(text, HOOKS, &items, &is_own, &client.hooks_template())
        })?;
        if may_be_planted {
            let text = self.read(&path)?.0.text.unwrap_or_default();
            let root = json_text::value(&text).ok().flatten().unwrap_or_default();
            let others = agent_hooks(&root[HOOKS]).into_iter().filter(|hook| *hook != command);
            let line = |hook| format!("{}: a hook is {hook:?} instead of {command:?}", path.display());
            self.planted.extend(others.map(line));
        }
        Ok(())
    }

    /// Writes the skill, for the clients too that use it already.
    fn put_skill(&mut self, path: PathBuf) -> Result<(), InstallError> {
        let client = self.client.id;
        let tag = format!("skill:{client}");
        let text = self.read(&path)?.0.text.unwrap_or_default();
        let mut clients = extras::users_of_skill(&text);
        if clients.is_empty() {
            return self.put_own(Part::Skill, path, &tag, &extras::skill(&[client]));
        }
        if !clients.contains(&client) {
            clients.push(client);
        }
        self.put(Part::Skill, path, &tag, |text| {
            put_whole(text, &extras::skill(&clients))
        })
    }

    /// Writes a whole file. If the user has changed it since codescout wrote it, it is left as it is, unless the request
    /// says otherwise.
    fn put_own(&mut self, part: Part, path: PathBuf, tag: &str, wanted: &str) -> Result<(), InstallError> {
        let (found, kept) = self.read(&path)?;
        let text = found.text.clone().unwrap_or_default();
        let is_as_written = kept.as_ref().is_some_and(|kept| kept.record.hash == hash(&text));
        let is_free = text.trim().is_empty() || take_whole(&text, wanted).is_some();
        if self.request.force || is_free || is_as_written || !(kept.is_some() || extras::is_marked(&text)) {
            return self.put(part, path, tag, |text| put_whole(text, wanted));
        }
        if self.request.scope == Scope::Project && kept.is_none() {
            let line = "the file is not as this version of codescout writes it";
            self.planted.push(format!("{}: {line}", path.display()));
        }
        let change = Change {
            is_left: true,
            ..self.change(part, path, found, Some(text), kept)
        };
        self.add(change);
        Ok(())
    }

    /// Removes the block of instructions, the skill, the sub-agent and the hooks.
    fn take_extras(&mut self, client: &Client) -> Result<(), InstallError> {
        let scope = self.request.scope;
        if let Some(path) = client.instructions_file(scope, self.places) {
            let take = |text: &str, _| block::take(text, client.id);
            let preamble = client.instructions.preamble.trim();
            let is_leftover = |text: &str| text.trim().is_empty() || text.replace("\r\n", "\n").trim() == preamble;
            self.take(
                Part::Instructions,
                path,
                &format!("block:{}", client.id),
                take,
                is_leftover,
            )?;
        }
        if let Some(path) = client.skill_file(scope, self.places) {
            let take = |text: &str, _| Ok(extras::take_skill(text, client.id));
            self.take(Part::Skill, path, &format!("skill:{}", client.id), take, str::is_empty)?;
        }
        if let Some(path) = client.subagent_file(scope, self.places) {
            let take = |text: &str, _| Ok(take_whole(text, &extras::subagent(client.id)));
            self.take(
                Part::Subagent,
                path,
                &format!("subagent:{}", client.id),
                take,
                str::is_empty,
            )?;
        }
        if let (Some(hooks), Some(path)) = (client.hooks, client.hooks_file(scope, self.places)) {
            let program = &self.request.program;
            let plugin = extras::plugin(program);
            let is_own = |item: &Value| is_own_hook(item, program);
            let take = |text: &str, with_section| match hooks.form {
                HookForm::Plugin => Ok(take_whole(text, &plugin)),
                _ => json_text::list::take(text, HOOKS, &is_own, with_section),
            };
            let is_leftover = |text: &str| match hooks.form {
                HookForm::Plugin => text.is_empty(),
                _ => json_text::is_leftover(text, &client.hooks_template()),
            };
            self.take(Part::Hooks, path, &format!("hooks:{}", client.id), take, is_leftover)?;
        }
        Ok(())
    }

    /// Removes a part from a file. `is_leftover` returns true if the remaining text can be deleted.
    fn take(
        &mut self,
        part: Part,
        path: PathBuf,
        tag: &str,
        edit: impl Fn(&str, bool) -> Result<Option<String>, TextError>,
        is_leftover: impl Fn(&str) -> bool,
    ) -> Result<(), InstallError> {
        let change = self.taken(part, path, tag, edit, is_leftover)?;
        self.add(change);
        Ok(())
    }

    fn taken(
        &self,
        part: Part,
        path: PathBuf,
        tag: &str,
        edit: impl Fn(&str, bool) -> Result<Option<String>, TextError>,
        is_leftover: impl Fn(&str) -> bool,
    ) -> Result<Change, InstallError> {
        let (found, kept) = self.read(&path)?;
        let Some(before) = found.text.clone() else {
            return Ok(self.change(part, path, found, None, kept));
        };
        let is_last = kept.as_ref().is_some_and(|kept| kept.record.parts == [tag]);
        let is_untouched = |kept: &Kept| !kept.record.diverged && kept.record.hash == hash(&before);
        if let Some(kept) = kept.as_ref().filter(|kept| is_last && is_untouched(kept)) {
            found.writable()?;
            let after = kept.original.clone();
            return Ok(self.with_folders(self.change(part, path, found, after, None), kept));
        }
        let with_section = is_last && kept.as_ref().is_some_and(|kept| kept.record.made_section);
        let taken = edit(&before, with_section).map_err(|source| InstallError::Text {
            path: path.clone(),
            source,
        })?;
        let Some(after) = taken else {
            return Ok(self.change(part, path, found, Some(before), kept));
        };
        found.writable()?;
        let Some(mut kept) = kept else {
            // A skill, sub-agent or plugin that somebody else committed.
            let is_whole = after.is_empty() && matches!(part, Part::Skill | Part::Subagent | Part::Hooks);
            return Ok(self.change(part, path, found, (!is_whole).then_some(after), None));
        };
        if is_last {
            let is_blank = kept.original.as_ref().is_none_or(|original| original.trim().is_empty());
            let after = if is_blank && is_leftover(&after) {
                kept.original.clone()
            } else {
                Some(after)
            };
            return Ok(self.with_folders(self.change(part, path, found, after, None), &kept));
        }
        kept.record.diverged |= kept.record.hash != hash(&before);
        kept.record.hash = hash(&after);
        kept.record.parts.retain(|part| part != tag);
        Ok(self.change(part, path, found, Some(after), Some(kept)))
    }

    /// Returns the record of a file if it still applies. It does not apply if the file is in its original state again
    /// or was removed.
    fn known(&self, found: &Found) -> Option<Kept> {
        let kept = self.records.load(&found.target)?;
        (found.text != kept.original && found.text.is_some()).then_some(kept)
    }

    fn change(&self, part: Part, path: PathBuf, found: Found, after: Option<String>, kept: Option<Kept>) -> Change {
        let has_original = kept.as_ref().is_some_and(|kept| kept.record.existed);
        Change {
            part,
            path,
            backup: has_original.then(|| self.records.backup(&found.target)),
            target: found.target,
            before: found.text,
            after,
            kept,
            made_folders: Vec::new(),
            is_left: false,
        }
    }

    fn with_folders(&self, change: Change, kept: &Kept) -> Change {
        Change {
            made_folders: kept.record.made_folders.clone(),
            ..change
        }
    }
}

/// Returns true if a file is as this user's last installation left it.
fn is_written(text: &str, kept: Option<&Kept>) -> bool {
    kept.is_some_and(|kept| !kept.record.diverged && kept.record.hash == hash(text))
}

/// Returns the record of a file after a change: a new record, or the previous one updated.
fn recorded(found: &Found, kept: Option<Kept>, tag: &str, edited: &Edited) -> Kept {
    let Some(mut kept) = kept else {
        return Kept {
            record: Record {
                path: found.target.clone(),
                existed: found.text.is_some(),
                parts: vec![tag.to_owned()],
                hash: hash(&edited.text),
                diverged: false,
                made_section: edited.made_section,
                made_folders: file::missing_folders(&found.target),
            },
            original: found.text.clone(),
        };
    };
    let record = &mut kept.record;
    record.diverged |= record.hash != hash(found.text.as_deref().unwrap_or_default());
    record.hash = hash(&edited.text);
    record.made_section |= edited.made_section;
    if !record.parts.iter().any(|part| part == tag) {
        record.parts.push(tag.to_owned());
    }
    kept
}
