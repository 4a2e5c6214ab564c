//! Refuses to remove definitions that other code still uses.

use std::collections::HashMap;

use super::Edit;
use crate::artifact::Extractor;
use crate::edit::{Edited, Operation, Verb};
use crate::extract::Options;
use crate::link::{Linker, Site};
use crate::model::Hint;
use crate::ops::ask::{Ask, FileSelection};
use crate::ops::paths::{name_or_place, path_of};
use crate::ops::question::{About, Question};
use crate::query::{FoundDefinition, LineStarts, Source, meant};
use crate::session::{OpError, Result};
use crate::snapshot::FileId;

/// Maximum number of places in an error.
const MAX_PLACES: usize = 5;

/// The removed definitions and the files after the edit.
struct Removal<'a> {
    question: &'a Question<'a>,
    linker: &'a Linker<'a>,
    edited: &'a [Edited],
    removed: Vec<FoundDefinition>,
}

impl Edit {
    /// Fails if certain references to a removed definition are left. Returns why others may have been missed.
    pub(super) fn check_uses(&self, ask: &Ask<'_>, edited: &[Edited]) -> Result<Vec<String>> {
        let removes = |operation: &&Operation| operation.op == Verb::Remove;
        let targets: Vec<&str> = self
            .edits
            .iter()
            .filter(removes)
            .map(|one| one.target.as_str())
            .collect();
        if self.allow_uses || targets.is_empty() {
            return Ok(Vec::new());
        }
        let selection = FileSelection::default();
        let about = About {
            has_cursor: false,
            ..About::indexed_files(&selection)
        };
        let question = Question::new(ask, &about)?;
        let links = question.links();
        let linker = question.linker(&links);
        let mut removal = Removal {
            question: &question,
            linker: &linker,
            edited,
            removed: Vec::new(),
        };
        for target in targets {
            let (query, _) = name_or_place(&ask.session.workspace, question.view(), target)?;
            let found = meant(&question.sources(), query, Some(&linker), |_| true)?;
            removal.removed.extend(found.definitions);
        }
        for removed in &removal.removed {
            removal.check(removed)?;
        }
        linker.check()?;
        let provenance = question.provenance();
        let missed = provenance.incomplete_because().iter();
        Ok(missed
            .map(|why| format!("uses were not sought everywhere: {why}"))
            .collect())
    }
}

impl Removal<'_> {
    fn check(&self, removed: &FoundDefinition) -> Result<()> {
        let mut left: Vec<Site> = self.linker.mentions(removed.def(), |_| true)?.sites;
        let mut has_name = HashMap::new();
        left.retain(|site| {
            let mut is_left = || {
                *has_name
                    .entry(site.file)
                    .or_insert_with(|| self.has_name(site.file, &removed.name))
            };
            site.tier.is_sure() && !self.is_removed(site) && is_left()
        });
        if left.is_empty() {
            return Ok(());
        }
        let mut places = Vec::new();
        for site in left.iter().take(MAX_PLACES) {
            places.push(self.place(site)?);
        }
        let rest = match left.len() - places.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        Err(OpError::new(
            format!("{} is still used: {}{rest}", removed.id, places.join(", ")),
            Hint::each(
                "change these places in the same edit, or remove it anyway with --allow-uses",
                "change these places in the same call, or remove it anyway with allow_uses",
            ),
        ))
    }

    /// Returns true for a reference inside of a removed definition.
    fn is_removed(&self, site: &Site) -> bool {
        let at = site.range.start as usize;
        let holds = |one: &FoundDefinition| one.file == site.file && one.range.contains(&at);
        self.removed.iter().any(holds)
    }

    /// Returns true if the code of a file has a name after the edit.
    fn has_name(&self, file: FileId, name: &str) -> bool {
        let path = self.question.view().file(file).path;
        let Some(edited) = self.edited.iter().find(|edited| edited.path.as_bytes() == path) else {
            return true;
        };
        let lang = self.question.view().lang(file);
        let words = |bytes: &Vec<u8>| Extractor::new(Options::default()).words(bytes, lang, name);
        match edited.new.as_ref() {
            None => false,
            // What is not parsed may have it.
            Some(bytes) => words(bytes).is_none_or(|words| !words.is_empty()),
        }
    }

    fn place(&self, site: &Site) -> Result<String> {
        let path = path_of(self.question.view(), site.file);
        Ok(match self.question.sources().reader().read(site.file)? {
            Source::Bytes(bytes) => format!("{path}:{}", LineStarts::of(&bytes).line_of(site.range.start as usize)),
            _ => path,
        })
    }
}
