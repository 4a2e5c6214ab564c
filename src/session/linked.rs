//! Opens the repositories that the user's settings link, and joins their views with the view of a question.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::call::CallCtx;
use super::error::{OpError, Result};
use super::fleet::{Chosen, some_of};
use super::open::{SeenView, Session, ViewRequest, Visibility};
use super::workspace::Workspace;
use crate::config::{LIBRARIES, Link, UnknownLink};
use crate::model::{Hint, RepoPath};
use crate::query::Sought;
use crate::remote::Failure;
use crate::snapshot::{Documents, FileEntry, Other, View, linked_folder};

/// Maximum number of files in a joined view.
const MAX_FILES: u32 = 5_000_000;

/// Opens repositories other than that of a call.
pub(crate) trait Opens {
    /// Opens the repository in a folder.
    fn open(&self, folder: &Path) -> Result<Arc<Session>>;

    /// Returns true if the repository in a folder, which need not exist yet, may be opened.
    fn may_open(&self, folder: &Path) -> bool;
}

/// Opens any repository, as a command may.
pub(crate) struct OpensAny;

impl Opens for OpensAny {
    fn open(&self, folder: &Path) -> Result<Arc<Session>> {
        let workspace = Workspace::open_linked(folder)?;
        Ok(Arc::new(Session::for_command(workspace)))
    }

    fn may_open(&self, _: &Path) -> bool {
        true
    }
}

/// A joined view with the views that it was made of.
pub(super) struct Joined {
    parts: Vec<Arc<SeenView>>,
    names: Vec<String>,
    left_out: Vec<String>,
    whole: Arc<SeenView>,
}

/// A linked repository with its view.
struct Part {
    link: Link,
    session: Arc<Session>,
    seen: Arc<SeenView>,
    /// The age of the view, if it is not current.
    old: Option<Duration>,
}

impl Session {
    /// Joins a view with those of the linked repositories or scopes with these names. The view of another repository is
    /// of the revision that its link names. A repository that cannot be read makes the answer incomplete.
    pub(crate) fn with_linked(
        &self,
        seen: Arc<SeenView>,
        names: &[String],
        sought: Option<&Sought>,
        opens: &dyn Opens,
        request: ViewRequest<'_>,
        call: &CallCtx<'_>,
    ) -> Result<Arc<SeenView>> {
        let (mut parts, mut left_out, mut same) = (Vec::<Part>::new(), Vec::new(), Vec::new());
        let mut n_files = seen.view.n_files();
        let mut links = self.selected(names, opens, &mut left_out)?;
        let chosen = self.chosen(&mut links, sought, &mut left_out, call)?;
        for link in links {
            let name = link.name.clone();
            let files = chosen.as_ref().and_then(|chosen| chosen.files.get(&name));
            match self.part(link, files, &seen.view, opens, request, call) {
                Ok(part) if n_files.saturating_add(part.seen.view.n_files()) > MAX_FILES => {
                    left_out.push(format!("{name} is not searched: more than {MAX_FILES} files"));
                }
                Ok(part) => match parts.iter().find(|other| other.is_same(&part)) {
                    Some(first) => same.push(format!("{name} is the same as {}", first.link.name)),
                    None => {
                        n_files += part.seen.view.n_files();
                        parts.push(part);
                    }
                },
                Err(error) if error.is_interrupted() => return Err(error),
                Err(error) => left_out.push(format!("{name} is not searched: {error}")),
            }
        }
        if !same.is_empty() {
            left_out.push(some_of(&same));
        }
        for part in &parts {
            let name = &part.link.name;
            if let Some(old) = part.old {
                left_out.push(format!("{name} is as it was {:.0} s ago", old.as_secs_f64()));
            } else if part.seen.building.is_some() {
                left_out.push(format!("{name} is still being indexed"));
            }
        }
        let names: Vec<String> = parts.iter().map(|part| part.link.name.clone()).collect();
        let views = [&seen].into_iter().chain(parts.iter().map(|part| &part.seen));
        let views: Vec<Arc<SeenView>> = views.cloned().collect();
        let is_held = |joined: &&Joined| {
            let mut both = joined.parts.iter().zip(&views);
            let is_same = (&joined.names, &joined.left_out) == (&names, &left_out);
            is_same && joined.parts.len() == views.len() && both.all(|(a, b)| Arc::ptr_eq(a, b))
        };
        if let Some(joined) = self.joined.lock().as_ref().filter(is_held) {
            return Ok(Arc::clone(&joined.whole));
        }
        let others: Vec<Other<'_>> = parts.iter().map(Part::other).collect();
        let view = seen.view.joined(&others)?.with_incomplete(left_out.clone());
        let whole = Arc::new(seen.with_view(view));
        *self.joined.lock() = self.is_kept.then(|| Joined {
            parts: views,
            names,
            left_out,
            whole: Arc::clone(&whole),
        });
        Ok(whole)
    }

    /// Opens the linked repository that a target such as `sdk:src/lib.rs` names. Also returns the target in it and the
    /// revision that the link names. Returns `None` if the target names no linked repository.
    pub(crate) fn linked_target<'t>(
        &self,
        target: &'t str,
        opens: &dyn Opens,
    ) -> Result<Option<(Arc<Session>, &'t str, String)>> {
        let links = &self.workspace.config.links;
        let Some((name, rest)) = links.split(target) else {
            return Ok(None);
        };
        let link = match links.get(name) {
            Some(link) => link,
            None => self.workspace.libraries(opens)?.0,
        };
        let session = self.opened(&link, opens)?;
        let reference = match &self.workspace.fleet {
            // Not the files on disk, which may have more than what was stored.
            Some(fleet) => match fleet.recorded(&link.name) {
                Some(recorded) => recorded.commit,
                None => {
                    let hint = "codescout fleet index stores it";
                    return Err(OpError::not_found(format!("{name} is not stored"), hint));
                }
            },
            None => link.reference.unwrap_or_else(|| "WORKTREE".to_owned()),
        };
        Ok(Some((session, if rest.is_empty() { "." } else { rest }, reference)))
    }

    /// Returns the links with these names, and adds what they lack to `left_out`.
    fn selected(&self, names: &[String], opens: &dyn Opens, left_out: &mut Vec<String>) -> Result<Vec<Link>> {
        let links = &self.workspace.config.links;
        let is_libraries = |name: &String| name == LIBRARIES && links.get(name).is_none();
        let (libraries, names): (Vec<String>, Vec<String>) = names.iter().cloned().partition(is_libraries);
        if links.is_empty() && !names.is_empty() {
            return Err(OpError::new(
                "no repositories are linked",
                "the user can link one: codescout config set linked.NAME PATH (--user for all repositories)",
            ));
        }
        let mut selected = links.select(&names).map_err(|UnknownLink { name, near }| {
            let hint = Hint::from(format!("linked are {}", some_of(&near)));
            OpError::not_found(format!("no linked repository or scope is called {name:?}"), hint)
        })?;
        if !libraries.is_empty() {
            match self.workspace.libraries(opens) {
                Ok((link, too_large)) => {
                    selected.push(link);
                    left_out.extend(too_large);
                }
                Err(error) => left_out.push(format!("{LIBRARIES} is not searched: {error}")),
            }
        }
        Ok(selected)
    }

    /// Chooses the files of a fleet that may answer a question. Keeps the links that have such files. Returns `None` if
    /// all files are searched.
    fn chosen(
        &self,
        links: &mut Vec<Link>,
        sought: Option<&Sought>,
        left_out: &mut Vec<String>,
        call: &CallCtx<'_>,
    ) -> Result<Option<Chosen>> {
        let Some(fleet) = &self.workspace.fleet else {
            return Ok(None);
        };
        let mut unstored = Vec::new();
        links.retain_mut(|link| match fleet.recorded(&link.name) {
            Some(recorded) if fleet.is_stored_for_visible(&recorded) => {
                link.reference = Some(recorded.commit);
                true
            }
            _ => {
                unstored.push(link.name.clone());
                false
            }
        });
        if !unstored.is_empty() {
            let names = some_of(&unstored);
            left_out.push(format!("not stored yet: {names}; codescout fleet index stores them"));
        }
        if links.is_empty() {
            return Ok(Some(Chosen::default()));
        }
        let Some(sought) = sought else {
            return Ok(None);
        };
        match fleet.choose(&self.workspace, sought, links, call.ctx.interrupt) {
            Ok(mut chosen) => {
                left_out.append(&mut chosen.incomplete);
                links.retain(|link| chosen.files.contains_key(&link.name) || chosen.lost.contains(&link.name));
                Ok(Some(chosen))
            }
            Err(error) if matches!(error.failure, Failure::Interrupted) => Err(OpError::interrupted()),
            Err(error) => {
                left_out.push(fleet.why_not(&error));
                Ok(None)
            }
        }
    }

    fn opened(&self, link: &Link, opens: &dyn Opens) -> Result<Arc<Session>> {
        let here = &self.workspace.repository;
        let home = || std::env::var_os("HOME").map(PathBuf::from);
        let below_home = link
            .path
            .strip_prefix("~")
            .ok()
            .and_then(|below| Some(home()?.join(below)));
        let folder = below_home.unwrap_or_else(|| here.place().join(&link.path));
        let mut session = opens.open(&folder)?;
        // A server has hidden them already.
        if let Some(session) = Arc::get_mut(&mut session).filter(|_| self.workspace.fleet.is_some()) {
            session.visibility = Visibility::WithoutCredentials;
        }
        let there = &session.workspace.repository;
        // Discovery goes upwards, so the folder may be part of another repository.
        let is_itself = there.common_dir() == here.common_dir();
        if is_itself {
            return Err(OpError::failed(format!(
                "{} is in this repository",
                link.path.display()
            )));
        }
        Ok(session)
    }

    /// Opens the view of a linked repository, of all its files or only of these.
    fn part(
        &self,
        link: Link,
        chosen: Option<&Vec<RepoPath>>,
        own: &View,
        opens: &dyn Opens,
        request: ViewRequest<'_>,
        call: &CallCtx<'_>,
    ) -> Result<Part> {
        let folder = linked_folder(&link.name);
        if own.has_below(folder.as_bytes()) {
            return Err(OpError::failed(format!("this repository has a folder {folder}")));
        }
        let session = self.opened(&link, opens)?;
        let reference = link.reference.as_deref().unwrap_or("WORKTREE");
        let files = &[];
        let (seen, old) = session.view(
            ViewRequest {
                reference,
                files,
                ..request
            },
            call,
        )?;
        let seen = match chosen {
            Some(paths) => {
                let files = paths.iter().filter_map(|path| seen.view.find(path.as_bytes()));
                let files: Vec<FileEntry> = files.map(|file| seen.view.file(file).entry()).collect();
                let view = seen.view.with_files(&files, Documents::All)?;
                Arc::new(seen.with_view(view))
            }
            None => seen,
        };
        Ok(Part {
            link,
            session,
            seen,
            old,
        })
    }
}

impl Part {
    fn other(&self) -> Other<'_> {
        Other {
            name: &self.link.name,
            view: &self.seen.view,
            repository: &self.session.workspace.repository,
        }
    }

    /// Returns true if both are the same revision of one repository, or the files in one worktree.
    fn is_same(&self, other: &Self) -> bool {
        let place = |part: &Self| match part.link.reference {
            Some(_) => part.session.workspace.repository.common_dir().to_owned(),
            None => part.session.workspace.repository.place().to_owned(),
        };
        self.link.reference == other.link.reference && place(self) == place(other)
    }
}
