//! Draws the life of a definition or file.

use std::collections::BTreeMap;

use super::rows::EntryOut;
use super::{History, HistoryFacts, HistoryRow};
use crate::model::count::count;
use crate::ops::grouped::GroupedFacts;
use crate::ops::op::PageOf;
use crate::ops::picture::{Mark, Picture, Shape, life_line};
use crate::ops::sink::{PlainText, Recorded};
use crate::query::{day, timestamp};
use crate::session::{OpError, Result};

/// Returns a picture of the commits on a page about one definition or file, and `None` about anything else. `link`
/// returns the link of a commit, if it has one.
pub(crate) fn life_picture(page: &PageOf<History>, link: impl Fn(&str) -> Option<String>) -> Option<Picture> {
    let GroupedFacts::One(HistoryFacts::Log(facts)) = &page.facts else {
        return None;
    };
    if !matches!(facts.target.kind, "symbol" | "file") {
        return None;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut marks = Vec::new();
    for row in page.rows.iter().rev() {
        let HistoryRow::Commit(entry) = &row.row else {
            return None;
        };
        let (name, events) = entry.event()?;
        events.iter().for_each(|event| *counts.entry(event).or_default() += 1);
        marks.push(Mark {
            // What is not committed is later than all commits.
            time: entry.time.or(marks.last().map(|mark: &Mark| mark.time))?,
            name: name.to_owned(),
            title: format!("{} ({})", entry.in_short(), events.join(", ")),
            href: entry.commit.as_deref().and_then(&link),
            shape: shape(&events),
        });
    }
    marks.sort_by_key(|mark| mark.time);
    let (first, last) = (marks.first()?, marks.last()?);
    let [from, to] = [first, last].map(|mark| timestamp(mark.time, 0));
    let counts: Vec<String> = counts.iter().map(|(event, n)| format!("{n} {event}")).collect();
    let (n, counts) = (count(marks.len(), "change"), counts.join(", "));
    let title = format!("{}: {n} from {} to {}: {counts}", last.name, day(&from), day(&to));
    Some(life_line(&title, &marks))
}

/// Replaces the text of a page by a picture, and adds that text to the notes.
pub(super) fn draw(page: &mut PageOf<History>) -> Result<()> {
    let Some(picture) = life_picture(page, |_| None) else {
        return Err(OpError::new(
            "only the commits of one file or definition have a picture",
            "omit --format",
        ));
    };
    let mut text = PlainText::default();
    page.head.replay(&mut text);
    page.notes.extend(text.0.lines().map(str::to_owned));
    page.head = Recorded::of(|out| out.whole_line(&picture.into_string()));
    for row in &mut page.rows {
        row.heading = Recorded::default();
        if let HistoryRow::Commit(entry) = &mut row.row {
            entry.is_drawn = true;
        }
    }
    Ok(())
}

fn shape(events: &[&str]) -> Shape {
    let has = |names: &[&str]| events.iter().any(|event| names.contains(event));
    match () {
        () if has(&["removed", "deleted"]) => Shape::Removed,
        () if has(&["moved", "renamed"]) => Shape::Moved,
        () if has(&["added", "signature", "body", "modified"]) => Shape::Changed,
        () => Shape::Minor,
    }
}

impl EntryOut {
    /// Returns the name of the definition or file then, and what happened to it.
    fn event(&self) -> Option<(&str, Vec<&str>)> {
        match (&self.symbol, self.changes.as_slice()) {
            (Some(symbol), _) => Some((&symbol.id, symbol.events.clone())),
            (None, [change]) => Some((&change.path, vec![change.kind])),
            // A part of another definition.
            _ => Some((self.earlier_kind?, vec!["body"])),
        }
    }
}
