//! `gc --pin`, `--unpin` and `--pins`: manages revisions whose snapshots are kept even if git deletes their commits.

use serde::Serialize;

use super::ask::Ask;
use super::op::{NoFacts, Op, Page, PageOf, Paging, Row};
use super::question::beside;
use super::sink::Sink;
use crate::session::{Context as _, OpError, Result, Workspace};
use crate::sidecar::Pin;

/// Number of digits of an id in text output.
const ID_DIGITS: usize = 12;

/// The request: pins to change, if any. The answer is all pins.
#[derive(Clone, Debug, Default, Serialize, clap::Args)]
pub(crate) struct Pins {
    /// Pin this revision: keep its snapshot even if git deletes the commit; repeatable
    #[arg(long, value_name = "REV", conflicts_with = "aggressive")]
    pub(crate) pin: Vec<String>,
    /// Remove a pin; repeatable
    #[arg(long, value_name = "REV", conflicts_with = "aggressive")]
    pub(crate) unpin: Vec<String>,
    /// List pins
    #[arg(long, conflicts_with = "aggressive")]
    pub(crate) pins: bool,
    /// True to change nothing.
    #[arg(skip)]
    pub(crate) dry_run: bool,
}

/// A pin.
#[derive(Debug, Serialize)]
pub(crate) struct PinOut {
    name: String,
    commit: Option<String>,
    tree: String,
    pinned_at: i64,
    /// True if the snapshot of the pin is stored.
    indexed: bool,
}

impl Op for Pins {
    type Facts = NoFacts;
    type Row = PinOut;

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let workspace = &ask.session.workspace;
        for reference in &self.unpin {
            ask.session.checked(reference)?;
            self.unpin(ask, reference)?;
        }
        for reference in &self.pin {
            ask.session.checked(reference)?;
            if self.dry_run {
                workspace
                    .target(reference)?
                    .context("cannot pin: the repository has no commits yet")?;
            } else {
                workspace.pin(reference, ask.call.ctx)?;
            }
        }
        let pins = workspace.pins()?;
        let rows = pins.iter().map(|pin| PinOut::new(workspace, pin)).collect();
        let mut page = Page::new(beside(ask), NoFacts, rows, Paging::default());
        page.is_empty = false;
        if self.dry_run {
            page.notes.push("nothing was changed; current pins:".to_owned());
        }
        if pins.is_empty() {
            page.notes.push("nothing is pinned".to_owned());
        }
        Ok(page)
    }
}

impl Pins {
    /// Returns true if the request is about pins.
    pub(crate) fn is_given(&self) -> bool {
        self.pins || !self.pin.is_empty() || !self.unpin.is_empty()
    }

    fn unpin(&self, ask: &Ask<'_>, reference: &str) -> Result<()> {
        let workspace = &ask.session.workspace;
        let pins = workspace.pins()?;
        let n_removed = if self.dry_run {
            pins.iter().filter(|pin| pin.name == reference).count()
        } else {
            workspace.unpin(reference, ask.call.ctx.interrupt)?
        };
        if n_removed > 0 {
            return Ok(());
        }
        let names: Vec<&str> = pins.iter().map(|pin| &*pin.name).collect();
        let hint = match names.len() {
            0 => "nothing is pinned".to_owned(),
            _ => format!("pinned: {}", names.join(", ")),
        };
        Err(OpError::new(format!("{reference:?} is not pinned"), hint))
    }
}

impl PinOut {
    fn new(workspace: &Workspace, pin: &Pin) -> Self {
        Self {
            name: pin.name.clone(),
            commit: pin.commit.map(|commit| commit.to_string()),
            tree: pin.tree.to_string(),
            pinned_at: pin.pinned_at,
            indexed: workspace.stored_tree(pin.tree).is_some(),
        }
    }
}

impl Row for PinOut {
    fn render(&self, out: &mut dyn Sink) {
        let commit = self.commit.as_deref().map_or("-", |commit| &commit[..ID_DIGITS]);
        let state = if self.indexed { "" } else { " (not indexed)" };
        let (tree, name) = (&self.tree[..ID_DIGITS], &self.name);
        out.line(&format!("{commit:<12} {tree} {name}{state}"));
    }
}
