//! Reads a whole issue, bug report or task as a query: its title, the lines that say something, and the names in it.

use std::collections::{HashMap, HashSet};

use crate::snapshot::FileId;

use super::candidates::{Candidate, Ranked, Run, sort_best_first};
use super::places::TypedPlace;
use super::printed::printed_names;
use super::reading::read;
use super::request::{Request, SearchError};
use super::search::Searcher;
use super::source::Source;

/// Minimum number of lines with text in a report.
const MIN_LINES: usize = 3;
/// Minimum number of words in a report.
const MIN_WORDS: usize = 25;
/// Maximum size of the lines that are searched, in bytes.
const MAX_REST_BYTES: usize = 1_500;
/// Maximum number of names.
const MAX_NAMES: usize = 12;
/// The constant k of the reciprocal ranks of a report's parts. Smaller than usual, since the first ranks say most.
const REPORT_K: f32 = 10.0;
/// Divides the score of a chunk, so that it orders the chunks of a file and not the files.
const REPORT_SCALE: f32 = 1_000.0;
/// Maximum number and size of the issue templates that are read.
const MAX_TEMPLATES: usize = 16;
const MAX_TEMPLATE_BYTES: u64 = 64 << 10;
/// Headings that templates of issues have.
const HEADINGS: &[&str] = &[
    "actual",
    "additional",
    "bug",
    "checklist",
    "checks",
    "context",
    "current",
    "describe",
    "description",
    "details",
    "environment",
    "expected",
    "feature",
    "how",
    "issue",
    "logs",
    "minimal",
    "motivation",
    "os",
    "platform",
    "possible",
    "prerequisites",
    "problem",
    "proposal",
    "question",
    "relevant",
    "reproduction",
    "screenshots",
    "solution",
    "steps",
    "summary",
    "system",
    "to",
    "version",
    "versions",
    "what",
    "your",
];
/// Words that begin the lines of a block of versions and machines.
const MACHINE: &[&str] = &[
    "arch",
    "architecture",
    "browser",
    "client",
    "cpu",
    "distribution",
    "distro",
    "kernel",
    "node",
    "npm",
    "operating",
    "os",
    "platform",
    "python",
    "runtime",
    "rustc",
    "server",
    "terminal",
    "version",
    "yarn",
];

/// The parts of a report. Each is searched by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) title: String,
    /// The lines that are neither the title nor parts of a template, a log or a list of versions.
    pub(super) rest: String,
    /// The names that look like code, those that occur most often first.
    pub(super) names: Vec<String>,
}

/// Reads a text of several lines. `None` if it is none. Lines in `template` are ignored.
pub(super) fn read_report(text: &str, template: &HashSet<String>) -> Option<Report> {
    let n_lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(MIN_LINES)
        .count();
    if n_lines < MIN_LINES || text.split_whitespace().take(MIN_WORDS).count() < MIN_WORDS {
        return None;
    }
    let mut lines = Lines::default();
    let mut title = None;
    let mut rest = String::new();
    let mut names: Vec<(usize, String)> = Vec::new();
    for line in text.lines().map(str::trim) {
        let kind = lines.kind_of(line);
        if line.is_empty() || template.contains(line) || kind == LineKind::Nothing {
            continue;
        }
        if title.is_none() && kind == LineKind::Text {
            title = Some(plain_title(line).to_owned());
            continue;
        }
        for name in printed_names(line).into_iter().filter(|name| name.is_code) {
            let name = name.segments.join(".");
            match names.iter_mut().find(|(_, known)| *known == name) {
                Some((n_found, _)) => *n_found += 1,
                None => names.push((1, name)),
            }
        }
        if kind == LineKind::Text && rest.len() < MAX_REST_BYTES {
            rest.push_str(line);
            rest.push('\n');
        }
    }
    names.sort_by_key(|(n_found, _)| std::cmp::Reverse(*n_found));
    let names = names.into_iter().take(MAX_NAMES).map(|(_, name)| name).collect();
    Some(Report {
        title: title?,
        rest,
        names,
    })
}

/// Returns a title without marks such as `# [Bug]:`.
fn plain_title(line: &str) -> &str {
    let line = line.trim_start_matches(['#', ' ', '*']);
    match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((mark, rest)) if mark.len() <= 20 && !rest.trim().is_empty() => rest.trim_start_matches([':', ' ']),
        _ => line,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    /// Prose.
    Text,
    /// Code and output, of which only names count.
    Code,
    /// Parts of templates, versions, links and shell commands.
    Nothing,
}

/// Classifies lines in order.
#[derive(Default)]
struct Lines {
    /// The language of the fenced block that the lines are in.
    fence: Option<String>,
    is_comment: bool,
}

impl Lines {
    fn kind_of(&mut self, line: &str) -> LineKind {
        if let Some(language) = line.strip_prefix("```").or(line.strip_prefix("~~~")) {
            self.fence = match self.fence {
                Some(_) => None,
                None => Some(language.trim().to_lowercase()),
            };
            return LineKind::Nothing;
        }
        if let Some(language) = &self.fence {
            let is_shell = ["bash", "sh", "shell", "console", "powershell", "zsh"].contains(&language.as_str());
            return if is_shell || line.starts_with("$ ") {
                LineKind::Nothing
            } else {
                LineKind::Code
            };
        }
        if self.is_comment || line.starts_with("<!--") {
            self.is_comment = !line.contains("-->");
            return LineKind::Nothing;
        }
        let first = line
            .trim_start_matches(['#', '*', '-', '>', ' ', '_'])
            .split(|c: char| !c.is_alphanumeric())
            .next();
        let first = first.unwrap_or_default().to_lowercase();
        let n_words = line.split_whitespace().count();
        let is_heading =
            (line.starts_with('#') || line.starts_with("**") && line.ends_with("**") || line.ends_with(':'))
                && n_words <= 8
                && HEADINGS.contains(&first.as_str());
        let is_check =
            line.starts_with("- [") || line.starts_with("* [") || line.starts_with("[x]") || line.starts_with("[ ]");
        let is_machine = n_words <= 8 && MACHINE.contains(&first.as_str()) && line.contains([':', '=']);
        let is_link = (line.starts_with("http") || line.starts_with("![") || line.starts_with("<http")) && n_words <= 2;
        let is_command = line.starts_with("$ ") || line.starts_with("PS ");
        let is_trailer = ["Signed-off-by:", "Co-authored-by:", "Change-Id:", "Cc:", "Reviewed-by:"]
            .iter()
            .any(|start| line.starts_with(start));
        if is_heading || is_check || is_machine || is_link || is_command || is_trailer {
            LineKind::Nothing
        } else if is_log(line) {
            LineKind::Code
        } else {
            LineKind::Text
        }
    }
}

/// Returns true for lines that begin with a date, a time or a level, as those of logs do.
fn is_log(line: &str) -> bool {
    let first = line
        .trim_start_matches('[')
        .split_whitespace()
        .next()
        .unwrap_or_default();
    let n_digits = first.bytes().filter(u8::is_ascii_digit).count();
    let has_time = n_digits >= 4
        && first.contains([':', '-'])
        && first
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b":-.,TZ+]/".contains(&byte));
    has_time || ["DEBUG", "INFO", "WARN", "WARNING", "TRACE"].contains(&first.trim_matches([':', ']', '[']))
}

impl Searcher<'_> {
    /// Reads a query as a report, if it is one. The lines of the repository's own templates are left out.
    pub(super) fn report(&self, text: &str) -> Result<Option<Report>, SearchError> {
        if read_report(text, &HashSet::new()).is_none() || read(text).is_trace {
            return Ok(None);
        }
        let mut template = HashSet::new();
        let is_template = |path: &[u8]| {
            let path = String::from_utf8_lossy(path).to_lowercase();
            path.contains("issue_template") || path.contains("pull_request_template")
        };
        if let Some(sources) = self.sources {
            let mut reader = sources.reader();
            let files = self.view.files().filter(|(_, file)| is_template(file.path));
            for (file, _) in files.take(MAX_TEMPLATES) {
                self.go_on()?;
                if let Ok(Source::Bytes(bytes)) = reader.read_up_to(file, MAX_TEMPLATE_BYTES) {
                    let text = String::from_utf8_lossy(&bytes);
                    template.extend(text.lines().map(|line| line.trim().to_owned()));
                }
            }
        }
        Ok(read_report(text, &template))
    }

    /// Ranks the parts of a report one by one and adds the reciprocal ranks of each file.
    pub(super) fn rank_report(
        &self,
        request: &Request,
        text: &str,
        report: &Report,
        run: &mut Run,
    ) -> Result<Ranked, SearchError> {
        let names = report.names.join(" ");
        let parts = [&report.title, &report.rest, &names]
            .into_iter()
            .filter(|part| !part.is_empty());
        let mut fused: Option<Ranked> = None;
        let mut by_file: HashMap<FileId, f32> = HashMap::new();
        let mut candidates: Vec<Candidate> = Vec::new();
        for part in parts {
            let request = Request {
                query: part.clone(),
                is_any: true,
                ..request.clone()
            };
            let ranked = self.rank(&request, part, run)?;
            let mut seen = HashSet::new();
            for candidate in &ranked.candidates {
                if self.is_about_code(candidate.place.file) && seen.insert(candidate.place.file) {
                    *by_file.entry(candidate.place.file).or_default() += 1.0 / (REPORT_K + seen.len() as f32);
                }
            }
            candidates.extend(ranked.candidates.iter().cloned());
            match &mut fused {
                None => fused = Some(ranked),
                Some(fused) => {
                    fused.terms.extend(ranked.terms);
                    fused.verbatim.extend(ranked.verbatim);
                }
            }
        }
        let mut fused = fused.unwrap_or_else(|| Ranked::of(Vec::new(), read(text)));
        // A hit has the words of a part, not of the report.
        fused.all_words = f32::INFINITY;
        fused.reading = read(text);
        // A bare file name is often one of the reporter's own.
        let is_given = |place: &TypedPlace| place.line.is_some() || place.path.contains('/');
        let reading = &mut fused.reading;
        let (places, names) = (std::mem::take(&mut reading.places), std::mem::take(&mut reading.names));
        let given = places.into_iter().zip(names).filter(|(place, _)| is_given(place));
        (reading.places, reading.names) = given.unzip();
        fused.placed = self.placed(&fused.reading, text, true, &run.scope, &mut run.opened)?;
        let place = |candidate: &Candidate| fused.placed.by_doc.get(&candidate.doc).copied().unwrap_or_default();
        // The best chunk of a file first; among chunks, those of the part that ranks them best.
        candidates.retain(|candidate| by_file.contains_key(&candidate.place.file));
        let best = candidates
            .iter()
            .map(|candidate| candidate.score)
            .fold(f32::MIN_POSITIVE, f32::max);
        for candidate in &mut candidates {
            let of_file = by_file[&candidate.place.file];
            candidate.features.place = place(candidate);
            candidate.score = of_file + candidate.features.place + candidate.score / best / REPORT_SCALE;
        }
        sort_best_first(&mut candidates, self.view);
        let mut seen = HashSet::new();
        candidates.retain(|candidate| seen.insert(candidate.doc));
        fused.candidates = candidates;
        Ok(fused)
    }

    /// Returns false for files that repeat the words of reports without being their subject: templates and settings of
    /// the host, translations and change logs.
    fn is_about_code(&self, file: FileId) -> bool {
        let path = String::from_utf8_lossy(self.view.file(file).path).to_lowercase();
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_log = ["change", "history", "news", "release"]
            .iter()
            .any(|start| name.starts_with(start));
        let is_text = [".md", ".rst", ".txt", ".adoc"].iter().any(|end| name.ends_with(end)) || !name.contains('.');
        let is_translation = name.ends_with(".po")
            || path
                .split('/')
                .any(|part| ["locale", "locales", "i18n"].contains(&part));
        !(path.starts_with(".github/") || is_log && is_text || is_translation)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const ISSUE: &str = "### [Bug]: Upload stops when the token expires\n\n### Describe the bug\n<!-- A clear description -->\n\
        When `refresh_token` fails in the middle of an upload, the client waits forever and no error is shown to anybody.\n\n\
        ### To Reproduce\n```bash\n$ app upload big.bin\n```\n```python\nclient.upload(path, retry=Retry(3))\n```\n\
        2026-01-02T10:11:12 waiting\n### Environment\n- OS: Linux 6.1\n- Version: 1.2.3\n- [x] I searched the issues\n\
        https://example.org/shot.png\nSigned-off-by: A <a@b>\n";

    #[test]
    fn templates_and_versions_are_left_out() {
        let report = read_report(ISSUE, &HashSet::new()).unwrap();
        assert_eq!(report.title, "Upload stops when the token expires");
        assert!(
            report.rest.starts_with("When `refresh_token`") && report.rest.lines().count() == 1,
            "{}",
            report.rest
        );
        assert_eq!(report.names, ["refresh_token", "client.upload"]);
    }

    #[test]
    fn lines_of_the_repositorys_templates_are_left_out() {
        let template = HashSet::from(["Please tell us everything.".to_owned()]);
        let text = ISSUE.replace("### Describe", "Please tell us everything.\n### Describe");
        assert!(!read_report(&text, &template).unwrap().rest.contains("Please"));
    }

    #[test]
    fn short_texts_are_no_reports() {
        assert_eq!(read_report("a\nb", &HashSet::new()), None);
        assert_eq!(read_report("one line with words", &HashSet::new()), None);
    }
}
