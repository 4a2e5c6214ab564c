//! Collects garbage, manages pins, and looks up revisions that exist only in the sidecar.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::call::CallCtx;
use super::error::{Context as _, OpError, Result, bail};
use super::update::{Event, Steps};
use super::workspace::Workspace;
use super::writing::PATIENCE;
use crate::ingest::{CollectError, CollectOptions, CollectOutcome, Collector, Survey, Target, Trigger};
use crate::model::{Ctx, Oid, TreeId};
use crate::sidecar::{LockError, Pin};
use crate::snapshot::SnapshotStore;

/// Minimum number of digits of an abbreviated id. A shorter hexadecimal word is treated as a name.
const MIN_ID_DIGITS: usize = 7;

impl Workspace {
    /// Lists the data in the sidecar and the reason to keep each part. Returns `None` if there is no sidecar. Writes
    /// nothing.
    pub fn survey(&self) -> Result<Option<Survey>> {
        self.with_collector(|collector| Ok(collector.survey()?))
    }

    /// Deletes unused data. Returns `None` if there is no sidecar.
    pub fn collect(&self, occasion: Trigger<'_>, ctx: Ctx<'_>) -> Result<Option<CollectOutcome>> {
        self.with_collector(|collector| Ok(collector.collect(occasion, PATIENCE, ctx)?))
    }

    /// Deletes unused data if a collection is due and enabled and no other writer is active; otherwise returns `None`.
    /// Keeps the snapshots of `used`. Intended for runs that no user waits for.
    pub fn collect_if_due(&self, used: &[TreeId], ctx: Ctx<'_>) -> Result<Option<CollectOutcome>> {
        if !self.config.gc.auto.value {
            return Ok(None);
        }
        let collected = self.with_collector(|collector| {
            if !collector.is_due()? {
                return Ok(None);
            }
            match collector.collect(Trigger::Unasked(used), Duration::ZERO, ctx) {
                Err(CollectError::Lock(LockError::Busy { .. })) => Ok(None),
                collected => Ok(Some(collected?)),
            }
        })?;
        Ok(collected.flatten())
    }

    /// Returns the pins, oldest first.
    pub fn pins(&self) -> Result<Vec<Pin>> {
        match self.storage.open()? {
            Some(sidecar) => Ok(sidecar.pins()?),
            None => Ok(Vec::new()),
        }
    }

    /// Pins the snapshot of a revision. Indexes the revision first if needed. A pinned snapshot remains even if git
    /// deletes the commit.
    pub fn pin(&self, reference: &str, ctx: Ctx<'_>) -> Result<Pin> {
        if matches!(reference, "WORKTREE" | "INDEX") {
            bail!("cannot pin {reference}: pin a commit, branch or tag");
        }
        let target = self.target(reference)?.context("there is no commit yet to pin")?;
        if self.stored_tree(target.tree).is_none() {
            let call = CallCtx::unlimited(ctx);
            let outcome = self.update(target, Steps::default(), &call, &mut Event::log)?;
            if outcome.interrupted {
                return Err(OpError::interrupted_with("the files indexed so far are kept"));
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let pin = Pin {
            name: reference.to_owned(),
            commit: target.commit,
            tree: target.tree,
            pinned_at: now.as_secs() as i64,
        };
        self.change_pins(ctx.interrupt, |pins| {
            // Another process may have deleted the snapshot before this one acquired the lock.
            if self.stored_tree(target.tree).is_none() {
                bail!("the snapshot of {reference:?} was deleted before it could be pinned; try again");
            }
            pins.retain(|other| other.name != pin.name);
            pins.push(pin.clone());
            Ok(())
        })?;
        Ok(pin)
    }

    /// Removes the pins with this name, or if there are none, the pins of the tree that `reference` resolves to.
    /// Returns the number of removed pins.
    pub fn unpin(&self, reference: &str, interrupt: &AtomicBool) -> Result<usize> {
        let pins = self.pins()?;
        let is_named = pins.iter().any(|pin| pin.name == reference);
        let target = if is_named { None } else { self.target(reference)? };
        let goes = |pin: &Pin| {
            if is_named {
                pin.name == reference
            } else {
                target.is_some_and(|target| target.tree == pin.tree)
            }
        };
        if !pins.iter().any(goes) {
            return Ok(0);
        }
        let mut n_removed = 0;
        self.change_pins(interrupt, |pins| {
            let n_before = pins.len();
            pins.retain(|pin| !goes(pin));
            n_removed = n_before - pins.len();
            Ok(())
        })?;
        Ok(n_removed)
    }

    /// Resolves a revision that exists only in the sidecar: the full or abbreviated id of a stored tree or pinned
    /// commit, or the name of a pin. Returns `None` for an ambiguous abbreviation.
    pub(super) fn vanished(&self, reference: &str) -> Option<Target> {
        let sidecar = self.storage.open().ok()??;
        let pins = sidecar.pins().unwrap_or_default();
        let of_pin = |pin: &Pin| Target {
            commit: pin.commit,
            tree: pin.tree,
        };
        if let Some(pin) = pins.iter().find(|pin| pin.name == reference) {
            return Some(of_pin(pin));
        }
        let digits = reference.to_ascii_lowercase();
        if digits.len() < MIN_ID_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let begins = |id: Oid| id.to_string().starts_with(&digits);
        let state = sidecar.state().ok()??;
        let trees = SnapshotStore::new(&sidecar, state.epoch, state.recipe).trees().ok()?;
        let stored = trees.into_iter().filter(|tree| begins(tree.0));
        let mut found: Vec<Target> = stored.map(|tree| Target { commit: None, tree }).collect();
        let pinned = pins
            .iter()
            .filter(|pin| pin.commit.is_some_and(|commit| begins(commit.0)));
        found.extend(pinned.map(of_pin));
        found.dedup();
        match found.as_slice() {
            [target] => Some(*target),
            _ => None,
        }
    }

    fn change_pins(&self, interrupt: &AtomicBool, change: impl FnOnce(&mut Vec<Pin>) -> Result<()>) -> Result<()> {
        let sidecar = self.storage.open()?.context("nothing is indexed")?;
        let lock = sidecar.lock_unless(PATIENCE, interrupt)?;
        let mut pins = sidecar.pins()?;
        change(&mut pins)?;
        sidecar
            .write_pins(&pins, &lock)
            .with_context(|| format!("cannot write the pins of {}", sidecar.root().display()))
    }

    fn with_collector<T>(&self, act: impl FnOnce(&Collector<'_>) -> Result<T>) -> Result<Option<T>> {
        let Some(sidecar) = self.storage.open()? else {
            return Ok(None);
        };
        let options: CollectOptions = self.config.collect_options();
        let makers = self.models.sources().into_iter();
        let profiles: Vec<String> = makers.map(|maker| maker.profile().id().to_string()).collect();
        act(&Collector {
            repository: &self.repository,
            sidecar: &sidecar,
            options: &options,
            profiles: &profiles,
        })
        .map(Some)
    }
}
