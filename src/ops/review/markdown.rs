//! Writes a review as Markdown for a comment on a pull request.

use super::Facts;
use super::rows::{DefinitionRow, ReviewRow};
use crate::model::count::count;
use crate::model::unprintable::visible;
use crate::ops::op::Page;
use crate::ops::sink::fence_of;

/// The first line. A job finds its earlier comment by it, to replace it.
const MARKER: &str = "<!-- codescout review -->";
/// Maximum size of a comment. GitHub takes 65,536 characters.
const MAX_BYTES: usize = 60_000;
/// Maximum number of callers that are named for a definition.
const MAX_SITES: usize = 5;
/// Maximum number of changed lines that are shown for a definition, and maximum length of a line in characters.
const MAX_LINES: usize = 60;
const MAX_LINE: usize = 300;
/// Room for lines that end a section, in bytes.
const SPARE: usize = 300;
/// Maximum number of tests that are named.
const MAX_TESTS: usize = 20;

/// Returns a review as Markdown of at most 60,000 bytes. Text of the repository is code, so that it is no markup.
pub(crate) fn markdown(page: &Page<Facts, ReviewRow>) -> String {
    let facts = &page.facts;
    let mut text = format!(
        "{MARKER}\n### Review of {}\n\n{}\n\n**{}**\n\n{}\n",
        code(&facts.range()),
        facts.size(),
        facts.changes(),
        sentence(&facts.reach())
    );
    if !facts.unknown.is_empty() {
        text += &format!("\nNot known: {}\n", facts.unknown.join("; "));
    }
    let provenance = page.provenance.iter();
    for why in provenance.flat_map(|provenance| provenance.incomplete_because()) {
        text += &format!("\nIncomplete: {}\n", code(why));
    }
    let end = ending(page);
    let room = MAX_BYTES.saturating_sub(end.len());
    let definitions = page.rows.iter().filter_map(|row| match row {
        ReviewRow::Definition(row) => Some(row.as_ref()),
        _ => None,
    });
    let (minor, major): (Vec<&DefinitionRow>, Vec<&DefinitionRow>) = definitions.partition(|row| row.is_minor());
    let others = page.rows.iter().filter_map(|row| match row {
        ReviewRow::Other(row) => Some(vec![format!("- {} {} {}\n", row.change, code(&row.path), row.size())]),
        _ => None,
    });
    // Each item with its changed lines, and without.
    let forms = |row: &&DefinitionRow| vec![definition(row, true), definition(row, false)];
    let folded = |summary: &str| format!("\n<details><summary>{summary}</summary>\n\n");
    let sections: [(String, &str, Vec<Vec<String>>); 3] = [
        (
            "\n#### Changed definitions\n\n".to_owned(),
            "",
            major.iter().map(forms).collect(),
        ),
        (
            folded("Moved, documented or formatted"),
            "\n</details>\n",
            minor.iter().map(forms).collect(),
        ),
        (
            folded("Changed outside of definitions"),
            "\n</details>\n",
            others.collect(),
        ),
    ];
    for (head, tail, items) in sections.into_iter().filter(|(_, _, items)| !items.is_empty()) {
        text += &head;
        let mut n_left_out = 0;
        for forms in items {
            // Room for what ends the section.
            let fits = |form: &&String| text.len() + form.len() + tail.len() + SPARE <= room;
            match forms.iter().find(fits).cloned() {
                Some(form) => text += &form,
                None => n_left_out += 1,
            }
        }
        if n_left_out > 0 {
            text += &format!("- {n_left_out} more\n");
        }
        text += tail;
    }
    text + &end
}

/// Returns what follows the changes: tests, files that usually change, too, and people.
fn ending(page: &Page<Facts, ReviewRow>) -> String {
    let mut text = String::new();
    let impact = &page.facts.impact;
    let n_tests = impact.tests + impact.possible_tests;
    if n_tests > 0 {
        text += &format!("\n#### {} to run\n\n", count(n_tests, "test"));
        for command in &page.facts.commands {
            let fence = fence_of(command);
            text += &format!("{fence}sh\n{}\n{fence}\n", visible(command));
        }
        let tests = page.rows.iter().filter_map(|row| match row {
            ReviewRow::Test(test) => Some(test),
            _ => None,
        });
        let items: Vec<String> = tests
            .take(MAX_TESTS)
            .map(|test| {
                let possible = if test.sure { "" } else { "possible: " };
                let name = test.name.as_deref().map(code).unwrap_or_default();
                format!("- {possible}{} {name}\n", code(&format!("{}:{}", test.path, test.line)))
            })
            .collect();
        text += "\n<details><summary>Tests</summary>\n\n";
        text += &items.concat();
        if let n @ 1.. = n_tests.saturating_sub(items.len()) {
            text += &format!("- {n} more\n");
        }
        text += "\n</details>\n";
    }
    let together: Vec<String> = page
        .rows
        .iter()
        .filter_map(|row| match row {
            ReviewRow::Together(row) => Some(format!(
                "- {} changed in {} of {} commits with {}\n",
                code(&row.path),
                row.both,
                row.commits,
                code(&row.with)
            )),
            _ => None,
        })
        .collect();
    if !together.is_empty() {
        text += &format!("\n#### Usually change, too, and did not\n\n{}", together.concat());
    }
    let owners: Vec<String> = page
        .rows
        .iter()
        .filter_map(|row| match row {
            ReviewRow::Owner(row) => Some(format!(
                "{} ({})",
                code(&row.owner.name),
                count(row.owner.commits, "commit")
            )),
            _ => None,
        })
        .collect();
    if !owners.is_empty() {
        text += &format!("\nWho knows these files: {}\n", owners.join(", "));
    }
    text
}

fn definition(row: &DefinitionRow, has_lines: bool) -> String {
    let place = code(&format!("{}:{}", row.path, row.line));
    let usage = match row.usage() {
        usage if usage.is_empty() => usage,
        usage => format!(": {usage}"),
    };
    let mut text = format!(
        "- **{}** {} in {place}{usage}\n",
        row.events.join(", "),
        code(row.name())
    );
    if let Some(from) = &row.from {
        text += &format!("  - from {}\n", code(from));
    }
    if row.may_break() {
        for site in row.unchanged.iter().take(MAX_SITES) {
            let name = site.name.as_deref().map(code).unwrap_or_default();
            text += &format!(
                "  - {} {} {name}\n",
                site.label(),
                code(&format!("{}:{}", site.path, site.line))
            );
        }
        let n_all = row.unchanged_callers.max(row.unchanged.len());
        if let n @ 1.. = n_all.saturating_sub(MAX_SITES) {
            text += &format!("  - {n} more\n");
        }
    }
    for note in &row.notes {
        text += &format!("  - note {} may no longer hold\n", code(note));
    }
    for document in &row.documents {
        text += &format!(
            "  - {} names it\n",
            code(&format!("{}:{}", document.path, document.line))
        );
    }
    if let Some(diff) = row.diff.as_ref().filter(|_| has_lines && !row.is_minor()) {
        text += &folded(diff);
    }
    text
}

/// Returns changed lines as a block that opens with a click, inside of a list item.
fn folded(diff: &str) -> String {
    let fence = fence_of(diff);
    let cut = |line: &str| line.chars().take(MAX_LINE).collect::<String>();
    let lines = diff
        .lines()
        .take(MAX_LINES)
        .map(|line| format!("  {}\n", visible(&cut(line))));
    let lines: Vec<String> = lines.collect();
    let rest = diff.lines().count().saturating_sub(MAX_LINES);
    let rest = if rest > 0 {
        format!("  {} more\n", count(rest, "line"))
    } else {
        String::new()
    };
    format!(
        "  <details><summary>changed lines</summary>\n\n  {fence}diff\n{}{rest}  {fence}\n\n  </details>\n",
        lines.concat()
    )
}

/// Returns text of the repository as a code span, in which nothing is markup.
fn code(text: &str) -> String {
    // Ticks around nothing would begin a code span that ends elsewhere.
    let text = if text.trim().is_empty() {
        "(no name)".into()
    } else {
        visible(text)
    };
    let longest = text
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let ticks = "`".repeat(longest + 1);
    // A space keeps ticks of the text apart.
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// Returns a text with an upper-case letter at its start.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_repository_is_no_markup() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("`a`"), "`` `a` ``");
        assert_eq!(code("a``b"), "```a``b```");
        assert!(!code("a\nb\u{2028}c\u{202e}").contains(['\n', '\u{2028}', '\u{202e}']));
    }
}
