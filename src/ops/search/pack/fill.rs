//! Chooses what fits into the budget of a pack.
//!
//! Results are added in their order until half of the budget is used, then what they are related to, then further
//! results, then whatever else fits.

use std::collections::{BTreeMap, HashMap};

use super::super::super::ask::Ask;
use super::super::super::graph::qualified;
use super::super::super::history::latest::latest_changes;
use super::super::super::question::Question;
use super::super::super::record::Past;
use super::parts::parts;
use super::related::{Related, Relation, related};
use super::rows::{PackOut, Role};
use super::seeds::{Lines, Seed};
use super::texts::{Texts, short};
use crate::link::{DefId, Linker, Together};
use crate::query::LineStarts;
use crate::session::{OpError, Result};
use crate::snapshot::FileId;

/// Number of characters reserved for the line that says what was left out.
const REST_CHARACTERS: usize = 160;
/// Minimum size up to which a definition is shown whole, in characters.
const MIN_BODY: usize = 800;
/// Number of characters that an answer over MCP reserves for the facts of its first item.
const FACTS_CHARACTERS: usize = 700;

/// The items that were chosen.
#[derive(Default)]
pub(super) struct Packed {
    pub(super) rows: Vec<PackOut>,
    /// Number of items left out, by what they are.
    pub(super) left_out: BTreeMap<&'static str, usize>,
    pub(super) n_uncertain: usize,
    pub(super) n_characters: usize,
    pub(super) notes: Vec<String>,
}

/// A result that was added.
struct Group {
    of: Option<(DefId, String)>,
    /// The first items: the text or the signature, and the last change.
    own: Vec<PackOut>,
    others: Vec<PackOut>,
    /// What was not added yet.
    rest: Vec<Related>,
}

/// Chooses items.
pub(super) struct Packing<'a> {
    ask: &'a Ask<'a>,
    question: &'a Question<'a>,
    linker: &'a Linker<'a>,
    texts: Texts<'a>,
    /// The references to the results.
    references: Together,
    past: Option<Past<'a>>,
    pub(super) with_tests: bool,
    budget: usize,
    left: usize,
    groups: Vec<Group>,
    /// The definitions that are results, with the places of their groups.
    seeds: HashMap<DefId, Option<usize>>,
    /// The lines that are shown.
    shown: HashMap<FileId, Vec<(u32, u32)>>,
    /// The definitions that are items of a group.
    known: HashMap<DefId, (usize, usize)>,
    n_uncertain: usize,
    notes: Vec<String>,
    /// True after all results were added for which there is room.
    is_last: bool,
}

impl<'a> Packing<'a> {
    pub(super) fn new(
        ask: &'a Ask<'a>,
        question: &'a Question<'a>,
        linker: &'a Linker<'a>,
        texts: Texts<'a>,
        budget: usize,
    ) -> Result<Self> {
        let past = Past::recorded(ask)?.filter(Past::is_traced);
        let mut notes = Vec::new();
        match &past {
            None => {
                notes.push("definitions are not traced, so last changes are left out: run codescout index --history")
            }
            Some(past) if !past.is_whole() => notes.push("last changes: the newest commits are not recorded yet"),
            Some(_) => {}
        }
        Ok(Self {
            ask,
            question,
            linker,
            texts,
            references: Together::of(linker, std::iter::empty()),
            past,
            with_tests: true,
            budget,
            left: budget.saturating_sub(REST_CHARACTERS),
            groups: Vec::new(),
            seeds: HashMap::new(),
            shown: HashMap::new(),
            known: HashMap::new(),
            n_uncertain: 0,
            is_last: false,
            notes: notes.into_iter().map(str::to_owned).collect(),
        })
    }

    /// Adds results and what they are related to, while there is room.
    pub(super) fn fill(mut self, seeds: Vec<Seed>) -> Result<Packed> {
        let n_seeds = seeds.len();
        let defined = seeds.iter().filter_map(|seed| match seed {
            Seed::Lines(lines) => lines.of.as_ref().map(|(of, _)| (*of, None)),
            Seed::Ready(_) => None,
        });
        self.seeds = defined.collect();
        self.references = Together::of(self.linker, self.seeds.keys().copied());
        let max_body = self.max_body(n_seeds);
        let mut seeds = seeds.into_iter();
        let mut n_left_out = 0;
        let half = self.budget / 2;
        while self.left > half {
            let Some(seed) = seeds.next() else { break };
            n_left_out += usize::from(!self.add(seed, max_body)?);
        }
        let n_first = self.groups.len();
        for at in 0..n_first {
            self.relate(at, true)?;
        }
        for seed in seeds {
            n_left_out += usize::from(!self.add(seed, max_body)?);
        }
        self.is_last = true;
        for at in n_first..self.groups.len() {
            self.relate(at, true)?;
        }
        for at in 0..self.groups.len() {
            self.relate(at, false)?;
        }
        Ok(self.packed(n_left_out))
    }

    /// Returns the size up to which the text of a result is shown whole.
    fn max_body(&self, n_seeds: usize) -> usize {
        let share = match n_seeds {
            0 | 1 => self.budget / 2,
            2 | 3 => self.budget / 3,
            n => (self.budget * 3 / n).clamp(MIN_BODY.min(self.budget / 3), self.budget / 3),
        };
        match self.ask.common.characters {
            // Over MCP, a longer first item is truncated.
            Some(_) => share.min(self.budget.saturating_sub(FACTS_CHARACTERS).max(200)),
            None => share,
        }
    }

    fn packed(self, n_left_out: usize) -> Packed {
        let mut packed = Packed {
            n_uncertain: self.n_uncertain,
            notes: self.notes,
            ..Packed::default()
        };
        if n_left_out > 0 {
            packed.left_out.insert("result", n_left_out);
        }
        for group in self.groups {
            for one in group.rest {
                *packed.left_out.entry(one.relation.noun()).or_default() += 1;
            }
            packed.rows.extend(group.own);
            packed.rows.extend(group.others);
        }
        packed.n_characters = packed.rows.iter().map(|row| row.size(false)).sum();
        packed
    }

    fn go_on(&self) -> Result<()> {
        if self.ask.call.ctx.is_interrupted() {
            return Err(OpError::interrupted());
        }
        Ok(())
    }

    fn size(&self, item: &PackOut) -> usize {
        item.size(self.ask.common.characters.is_some())
    }

    /// Takes room for items. Returns false if there is not enough.
    fn take(&mut self, items: &[PackOut]) -> bool {
        let size: usize = items.iter().map(|item| self.size(item)).sum();
        let fits = size <= self.left;
        if fits {
            self.left -= size;
        }
        fits
    }

    /// Adds a result: its whole text if that is not too long, or else its signature with parts. Returns false if there
    /// is no room.
    fn add(&mut self, seed: Seed, max_body: usize) -> Result<bool> {
        self.go_on()?;
        let lines = match seed {
            Seed::Lines(lines) => lines,
            Seed::Ready(item) => {
                let fits = self.take(std::slice::from_ref(&item));
                if fits {
                    self.groups.push(Group {
                        of: None,
                        own: vec![item],
                        others: Vec::new(),
                        rest: Vec::new(),
                    });
                }
                return Ok(fits);
            }
        };
        if self.is_shown(lines.file, lines.lines) {
            return Ok(true);
        }
        // Lists of versions and prose can be long.
        let max_body = match lines.of {
            Some(_) => max_body,
            None => max_body / 2,
        };
        let name = lines.of.as_ref().map(|(_, found)| qualified(found)).unwrap_or_default();
        let mut body = self.texts.lines(lines.file, lines.lines)?;
        body.id = lines.of.as_ref().map(|(_, found)| found.id.clone());
        body.name.clone_from(&name);
        body.is_first = true;
        body.reason.clone_from(&lines.reason);
        body.label.clone_from(&lines.reason);
        let overlaps = self.shown.get(&lines.file).is_some_and(|shown| {
            let is_part = |part: &(u32, u32)| part.0 <= lines.lines.1 && lines.lines.0 <= part.1;
            shown.iter().any(is_part)
        });
        let is_short = !overlaps && self.size(&body) <= max_body.min(self.left);
        let mut own = if is_short {
            vec![body]
        } else {
            self.in_parts(&lines, body, max_body)?
        };
        let mut fits = self.take(&own);
        if !fits && own.len() > 1 {
            own.truncate(1);
            fits = self.take(&own);
        }
        if !fits || own.is_empty() {
            return Ok(false);
        }
        for item in own.iter().filter(|item| item.role == Role::Body) {
            let shown = self.shown.entry(lines.file).or_default();
            shown.push((item.start_line, item.end_line));
        }
        if let Some((of, _)) = &lines.of {
            self.seeds.insert(*of, Some(self.groups.len()));
        }
        own.extend(self.change(&lines, &own[0])?);
        let mut rest = Vec::new();
        if let Some((of, found)) = &lines.of {
            let (found, n_uncertain) = related(
                self.question,
                self.linker,
                &mut self.references,
                *of,
                found,
                self.with_tests,
            )?;
            self.n_uncertain += n_uncertain;
            rest = found;
        }
        self.groups.push(Group {
            of: lines.of.map(|(of, _)| (of, name)),
            own,
            others: Vec::new(),
            rest,
        });
        Ok(true)
    }

    /// Returns the signature of a long definition and its matching or changed parts, or its first lines.
    fn in_parts(&mut self, lines: &Lines, whole: PackOut, max_body: usize) -> Result<Vec<PackOut>> {
        let mut items = Vec::new();
        if let Some((_, found)) = &lines.of {
            let mut signature = self.texts.signature(found);
            signature.is_first = true;
            signature.reason.clone_from(&whole.reason);
            signature.label = format!(
                "{} · {} lines",
                whole.label,
                lines.lines.1.saturating_sub(lines.lines.0) + 1
            );
            items.push(signature);
        }
        let used: usize = items.iter().map(|item| self.size(item)).sum();
        let room = max_body.min(self.left).saturating_sub(used);
        let shown = self.shown.get(&lines.file).map_or(&[][..], Vec::as_slice);
        for part in parts(&mut self.texts, lines, room, shown)? {
            let mut item = self.texts.lines(lines.file, part)?;
            item.id.clone_from(&whole.id);
            let has_marked = lines
                .marked
                .iter()
                .any(|(start, end)| *start <= part.1 && part.0 <= *end);
            let what = if has_marked { lines.marked_as } else { "first lines" };
            item.reason = what.to_owned();
            if items.is_empty() {
                item.reason = format!("{}: {}", whole.reason, item.reason);
                item.is_first = true;
            }
            item.label.clone_from(&item.reason);
            items.push(item);
        }
        Ok(items)
    }

    /// Returns the last change of a result, if there is room for it.
    fn change(&mut self, lines: &Lines, first: &PackOut) -> Result<Option<PackOut>> {
        let Some(past) = &self.past else { return Ok(None) };
        let target = lines.of.as_ref().map_or(&first.path, |(_, found)| &found.id);
        let latest = latest_changes(past, target, 1)?;
        for why in latest.incomplete {
            if !self.notes.contains(&why) {
                self.notes.push(why);
            }
        }
        let Some(entry) = latest.entries.first() else {
            return Ok(None);
        };
        let text = short(&entry.in_short());
        let earlier = self.groups.iter().flat_map(|group| &group.own);
        let is_known = earlier
            .filter(|item| item.role == Role::Change)
            .any(|item| item.text.as_deref() == Some(&text));
        let change = PackOut {
            is_known,
            role: Role::Change,
            reason: "last change".to_owned(),
            label: "last change".to_owned(),
            text: Some(text),
            lossy: false,
            is_first: false,
            blob: None,
            ..first.clone()
        };
        Ok(self.take(std::slice::from_ref(&change)).then_some(change))
    }

    /// Adds what a result is related to. If `is_first`, adds a few of each relation.
    fn relate(&mut self, at: usize, is_first: bool) -> Result<()> {
        let mut rest = Vec::new();
        let mut n_added: HashMap<Relation, usize> = HashMap::new();
        for one in std::mem::take(&mut self.groups[at].rest) {
            self.go_on()?;
            let n = n_added.entry(one.relation).or_default();
            if is_first && *n >= one.relation.first() {
                rest.push(one);
                continue;
            }
            *n += 1;
            if !self.add_related(at, one)? {
                rest.push(one);
            }
        }
        self.groups[at].rest = rest;
        Ok(())
    }

    /// Adds a related definition, or the reason if it is already an item. Returns false if there is no room.
    fn add_related(&mut self, at: usize, one: Related) -> Result<bool> {
        let name = self.groups[at]
            .of
            .as_ref()
            .map(|(_, name)| name.clone())
            .unwrap_or_default();
        let reason = format!("{} {name}", one.verb);
        if let Some(of) = one.of {
            if let Some(&group) = self.seeds.get(&of).filter(|group| group.is_some() || !self.is_last) {
                if let Some(group) = group {
                    self.add_reason(group, None, &reason);
                }
                // It is not yet known if there is room for the result.
                return Ok(group.is_some());
            }
            if let Some(&(group, item)) = self.known.get(&of) {
                self.add_reason(group, Some(item), &reason);
                return Ok(true);
            }
        }
        let mut item = match one.of {
            Some(of) => {
                let all = self.texts.definitions(of.file)?;
                let Some(found) = all.get(of.index as usize) else {
                    return Ok(true);
                };
                if self.is_shown(of.file, (found.start_line, found.end_line)) {
                    return Ok(true);
                }
                if short(&found.signature).len() > self.left {
                    return Ok(false);
                }
                let mut item = self.texts.signature(found);
                item.start_line = found.name_line;
                if one.at.1 > 0 {
                    let bytes = self.texts.bytes(one.at.0)?;
                    let line = LineStarts::of(&bytes).line_of(one.at.1 as usize);
                    item.line = (line != found.name_line).then_some(line);
                }
                item
            }
            None => {
                let bytes = self.texts.bytes(one.at.0)?;
                let line = LineStarts::of(&bytes).line_of(one.at.1 as usize);
                if self.is_shown(one.at.0, (line, line)) {
                    return Ok(true);
                }
                let mut item = self.texts.lines(one.at.0, (line, line))?;
                item.role = Role::Signature;
                item.text = item.text.map(|text| short(text.trim()));
                item
            }
        };
        if one.relation == Relation::Test {
            item.role = Role::Test;
        }
        item.reason = reason;
        item.label = one.label();
        if !self.take(std::slice::from_ref(&item)) {
            return Ok(false);
        }
        if let Some(of) = one.of {
            self.known.insert(of, (at, self.groups[at].others.len()));
        }
        self.groups[at].others.push(item);
        Ok(true)
    }

    /// Adds a reason to an item, if there is room.
    fn add_reason(&mut self, at: usize, item: Option<usize>, reason: &str) {
        let group = &self.groups[at];
        let old = item.map_or(&group.own[0], |item| &group.others[item]);
        let mut new = old.clone();
        if !new.add_reason(reason) {
            return;
        }
        let more = self.size(&new).saturating_sub(self.size(old));
        if more > self.left {
            return;
        }
        self.left -= more;
        let group = &mut self.groups[at];
        match item {
            None => group.own[0] = new,
            Some(item) => group.others[item] = new,
        }
    }

    /// Returns true if all these lines are shown.
    fn is_shown(&self, file: FileId, (first, last): (u32, u32)) -> bool {
        let shown = self.shown.get(&file);
        shown.is_some_and(|shown| shown.iter().any(|part| part.0 <= first && last <= part.1))
    }
}
