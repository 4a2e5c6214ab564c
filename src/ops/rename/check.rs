//! Checks a rename before it is written: that the new name is free, and that every name means what it meant before.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
use super::role::Place;
use crate::edit::spliced;
use crate::extract::{DefinitionKind, ReferenceKind};
use crate::link::{DefId, Linker, Links, NameUse, Tier};
use crate::model::RepoPath;
use crate::ops::ask::Ask;
use crate::session::{OpError, Result};
use crate::snapshot::FileId;

/// Maximum number of places that an error lists.
const MAX_LISTED: usize = 5;

/// A file that changes: its number afterwards, and the ranges that were replaced.
struct Changed {
    file: FileId,
    /// The end of each range before, and by how much the text after it moves.
    moves: Vec<(u32, i64)>,
}

impl Changed {
    fn position(&self, at: u32) -> u32 {
        let moved = self.moves.iter().take_while(|(end, _)| *end <= at).map(|(_, by)| by);
        (i64::from(at) + moved.sum::<i64>()) as u32
    }
}

impl Plan<'_> {
    /// Fails if the new name is taken where the definitions or their references are.
    pub(super) fn check_clashes(&self) -> Result<()> {
        let mut taken = BTreeSet::new();
        for &of in &self.subject.kin {
            let Some(definition) = self.subject.linker.definition(of) else {
                continue;
            };
            let mut others = self.subject.linker.siblings(of, self.new);
            others.extend(self.subject.linker.members_around(of, self.new)?);
            for other in others {
                let Some(other_definition) = self.subject.linker.definition(other) else {
                    continue;
                };
                // A field and a method of Java can have one name.
                let is_apart = definition.kind.is_callable() != other_definition.kind.is_callable()
                    && self.subject.linker.has_separate_methods(of);
                if !is_apart && !self.subject.kin.contains(&other) {
                    taken.insert((other.file, other_definition.name_range.start));
                }
            }
        }
        for (&file, planned) in &self.files {
            let bare = planned.changed.iter().filter(|place| place.is_bare);
            let places: Vec<u32> = bare.map(|place| place.range.start).collect();
            if places.is_empty() {
                continue;
            }
            taken.extend(
                self.subject
                    .linker
                    .bound_at(file, self.new, &places)
                    .map(|at| (file, at)),
            );
            taken.extend(self.subject.linker.at_file_level(file, self.new).map(|at| (file, at)));
        }
        self.refuse(taken, "the name is taken", "choose another name")?;
        self.refuse(
            self.out_of_sight(),
            "the name is not visible",
            "keep the case of the first letter",
        )?;
        self.refuse(
            self.constants(),
            "patterns with the name would mean it instead of a new variable",
            "begin the name with a capital letter",
        )?;
        self.refuse(
            self.elements(),
            "it would be an element of HTML",
            "begin the name of a component with a capital letter",
        )
    }

    /// Returns the definition if it is a constant or variant of Rust whose new name looks like that of a variable.
    fn constants(&self) -> BTreeSet<(FileId, u32)> {
        let definition = &self.subject.definition;
        let is_constant = matches!(definition.kind, DefinitionKind::Variant | DefinitionKind::Constant);
        let is_lower = |name: &str| name.starts_with(char::is_lowercase);
        let is_meant = self.subject.language == "rust" && is_constant && is_lower(self.new) && !is_lower(self.old());
        let place = (self.subject.of.file, definition.name_range.start);
        is_meant.then_some(place).into_iter().collect()
    }

    /// Returns the tags of JSX if they would no longer name a component.
    fn elements(&self) -> BTreeSet<(FileId, u32)> {
        let is_element = self.new.starts_with(char::is_lowercase);
        if !is_element || !self.subject.is_script() || self.old().starts_with(char::is_lowercase) {
            return BTreeSet::new();
        }
        let is_type = |file: FileId, at: u32| {
            let reference = self.subject.linker.reference(file, at);
            reference.is_some_and(|reference| matches!(reference.kind, ReferenceKind::Type | ReferenceKind::Inherit))
        };
        let places = self.files.iter().flat_map(|(file, planned)| {
            let starts = planned.changed.iter().map(|place| place.range.start);
            let tags = starts.filter(|at| {
                let before = &planned.bytes[..*at as usize];
                before.ends_with(b"</") || before.ends_with(b"<") && !is_type(*file, *at)
            });
            tags.map(|at| (*file, at))
        });
        places.collect()
    }

    /// Returns the places in other packages of Go if only the old name is visible there.
    fn out_of_sight(&self) -> BTreeSet<(FileId, u32)> {
        let is_exported = |name: &str| name.starts_with(char::is_uppercase);
        if self.subject.language != "go" || !is_exported(&self.subject.definition.name) || is_exported(self.new) {
            return BTreeSet::new();
        }
        let folder = |file: FileId| {
            let path = self.question.view().file(file).path;
            path.rsplitn(2, |byte| *byte == b'/').nth(1).unwrap_or_default()
        };
        let own: BTreeSet<&[u8]> = self.subject.kin.iter().map(|of| folder(of.file)).collect();
        let changed = self
            .files
            .iter()
            .filter(|(file, _)| own.len() > 1 || !own.contains(folder(**file)));
        let places = changed.flat_map(|(file, planned)| planned.changed.iter().map(|place| (*file, place.range.start)));
        places.collect()
    }

    fn refuse(&self, places: BTreeSet<(FileId, u32)>, why: &str, hint: &str) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        let shown = places.iter().take(MAX_LISTED).map(|(file, at)| self.shown(*file, *at));
        let shown: Vec<String> = shown.collect();
        Err(OpError::new(
            format!("{}: {why} at {}", self.new, shown.join(", ")),
            hint,
        ))
    }

    /// Resolves the changed files in memory. Fails if a changed place does not mean a renamed definition, or if another
    /// name means something else than before.
    pub(super) fn check_meanings(&self, ask: &Ask<'_>) -> Result<()> {
        let view = self.question.view();
        let (mut files, mut moves) = (Vec::new(), BTreeMap::new());
        let mut reader = ask.session.workspace.repository.work_tree_reader()?;
        for (&file, planned) in self.files.iter().filter(|(_, planned)| !planned.changed.is_empty()) {
            let path = self.new_path(file);
            let bytes = spliced(&planned.bytes, self.splices(planned))?;
            let stored = reader.stored_as(&path, view.file(file).entry().mode, bytes.clone());
            let stored = stored.map_err(|error| OpError::failed(format!("{}: {error}", path.to_text())))?;
            let by = |place: &Place| {
                (
                    place.range.end,
                    self.text_at(place).0.len() as i64 - i64::from(place.range.len() as u32),
                )
            };
            moves.insert(file, planned.changed.iter().map(by).collect::<Vec<_>>());
            files.push((file, path, stored.blob, bytes));
        }
        let after = ask.session.with_contents(view, files, ask.call.ctx.interrupt)?;
        let links = Links::new(&after, &mut ask.session.workspace.repository.reader());
        let new_links = links.with_facts(&after, ask.session.facts().0);
        let linker = Linker::new(&after, &new_links, ask.call.ctx.interrupt);
        let mut known: BTreeMap<FileId, Changed> = BTreeMap::new();
        let find = |path: &RepoPath| after.find(path.as_bytes());
        for (file, moves) in moves {
            let gone = || OpError::failed("a file cannot be read with the new name");
            let new_file = find(&self.new_path(file)).ok_or_else(gone)?;
            known.insert(file, Changed { file: new_file, moves });
        }
        let compared = Compared {
            plan: self,
            linker,
            known,
            new_file: &|file| find(&RepoPath::new(view.file(file).path)),
        };
        let wrong = compared.changed_places()?;
        self.refuse(wrong, "it would mean something else", "choose another name")?;
        let other = compared.other_places()?;
        compared.linker.check()?;
        self.refuse(
            other,
            "a name that means something else would mean this definition, or no longer what it means",
            "choose another name",
        )
    }
}

/// The references before and after.
struct Compared<'a> {
    plan: &'a Plan<'a>,
    linker: Linker<'a>,
    known: BTreeMap<FileId, Changed>,
    new_file: &'a dyn Fn(FileId) -> Option<FileId>,
}

impl Compared<'_> {
    /// Returns the file and position after the rename.
    fn moved(&self, file: FileId, at: u32) -> Option<(FileId, u32)> {
        match self.known.get(&file) {
            Some(changed) => Some((changed.file, changed.position(at))),
            None => Some(((self.new_file)(file)?, at)),
        }
    }

    /// Returns a definition after the rename. Its number in the file is the same.
    fn moved_definition(&self, of: DefId) -> Option<DefId> {
        let (file, _) = self.moved(of.file, 0)?;
        Some(DefId { file, ..of })
    }

    fn moved_all(&self, all: impl IntoIterator<Item = DefId>) -> BTreeSet<DefId> {
        all.into_iter().filter_map(|of| self.moved_definition(of)).collect()
    }

    /// Returns the changed places that do not mean a renamed definition.
    fn changed_places(&self) -> Result<BTreeSet<(FileId, u32)>> {
        let plan = self.plan;
        let kin = self.moved_all(plan.subject.kin.iter().copied());
        let mut wrong = BTreeSet::new();
        for (&file, planned) in &plan.files {
            for place in &planned.changed {
                let Some((new_file, at)) = self.moved(file, place.range.start) else {
                    continue;
                };
                let at = at + plan.text_at(place).1 as u32;
                let found = self.linker.use_at(new_file, at, plan.new);
                let is_right = match (place.reason, found) {
                    ("definition", NameUse::Definition(of)) => kin.contains(&of),
                    ("definition", _) => false,
                    ("accepted" | "compiler" | "export" | "import", NameUse::Reference(site)) => {
                        !site.tier.is_sure() || site.targets.iter().any(|target| kin.contains(target))
                    }
                    (_, NameUse::Reference(site)) => {
                        site.tier.is_sure() && site.targets.iter().all(|target| kin.contains(target))
                    }
                    (reason, _) => matches!(reason, "accepted" | "compiler" | "export" | "import"),
                };
                if !is_right {
                    wrong.insert((file, place.range.start));
                }
            }
        }
        Ok(wrong)
    }

    /// Returns the places with the old or the new name that were not changed and mean something else than before.
    fn other_places(&self) -> Result<BTreeSet<(FileId, u32)>> {
        let plan = self.plan;
        let kin = self.moved_all(plan.subject.kin.iter().copied());
        let listed: BTreeSet<(FileId, u32)> = plan
            .candidates
            .iter()
            .map(|place| (place.file, place.range.start))
            .collect();
        let mut wrong = BTreeSet::new();
        for name in [plan.new, &plan.subject.definition.name] {
            for file in plan.subject.linker.files_with(name)? {
                for at in plan.subject.linker.positions(file, name) {
                    let planned = plan.files.get(&file);
                    let changed = planned.map_or(&[][..], |planned| &planned.changed);
                    let bytes = planned.map_or(&[][..], |planned| &planned.bytes);
                    if plan.subject.is_other_module(file, at, bytes) {
                        continue;
                    }
                    if changed.iter().any(|place| place.range.start == at) || listed.contains(&(file, at)) {
                        continue;
                    }
                    let Some((new_file, new_at)) = self.moved(file, at) else {
                        continue;
                    };
                    let sure = |found: Option<(Tier, Vec<DefId>)>| found.filter(|(tier, _)| tier.is_sure());
                    let before =
                        sure(plan.subject.linker.resolved(file, at, name)).map(|(_, targets)| self.moved_all(targets));
                    let after = sure(self.linker.resolved(new_file, new_at, name));
                    let after = after.map(|(_, targets)| targets.into_iter().collect::<BTreeSet<_>>());
                    let is_same = match (&before, &after) {
                        (Some(before), after) => after.as_ref() == Some(before),
                        (None, Some(after)) => after.is_disjoint(&kin),
                        (None, None) => true,
                    };
                    if !is_same {
                        wrong.insert((file, at));
                    }
                }
            }
        }
        Ok(wrong)
    }
}
