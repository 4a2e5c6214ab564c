//! `docs`: lists documents by their front matter, and finds what their prose says about code that is not so any more.

mod audit;
mod dated;
mod document;
mod files;
mod headings;
mod link;
mod listed;
mod mention;
mod naming;
mod present;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use self::audit::{Auditor, FindingOut};
use self::dated::{is_dated, is_record_of_changes};
use self::document::Document;
use self::listed::DocumentOut;
pub(super) use self::mention::DOCUMENT_LANGUAGES;
use self::mention::Markup;
pub(crate) use self::naming::naming;
use self::present::Present;
use super::ask::{Ask, FileSelection, path_text};
use super::op::{Op, Page, PageOf, Paging, Row};
use super::question::{About, Question};
use super::record::Past;
use super::sink::Sink;
use crate::git::Rewrite;
use crate::model::count::count;
use crate::model::{Hint, RepoPath};
use crate::query::{Gaps, Source};
use crate::session::{OpError, Result, is_read_only};

/// Maximum size of a document that is audited.
const MAX_BYTES: usize = 4 << 20;
/// Default maximum number of documents or findings.
const DEFAULT_LIMIT: usize = 100;
/// Time that a call waits for commits to be recorded, and for other programs that edit files.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for which a command traces definitions, the newest commits first. The next audit goes on from there.
const TRACING_TIME: Duration = Duration::from_secs(10);

/// The request.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[command(after_help = "Examples:
  codescout docs audit
  codescout docs audit docs README.md --fix
  codescout docs audit --ref main --json
  codescout docs list --kind decision --status accepted")]
pub(crate) struct Docs {
    /// What to do
    #[arg(value_enum)]
    #[schemars(description = "")]
    op: DocsOp,
    /// Only these files and directories, or files that match these globs
    #[arg(value_name = "PATH", value_parser = path_text())]
    #[serde(default)]
    #[schemars(description = "globs")]
    path: Vec<String>,
    /// For list: only documents whose front matter has this kind
    #[arg(long, value_name = "KIND")]
    #[serde(default)]
    #[schemars(description = "in front matter: decision")]
    kind: Option<String>,
    /// For list: only documents whose front matter has this status
    #[arg(long, value_name = "STATUS")]
    #[serde(default)]
    #[schemars(description = "in front matter: accepted")]
    status: Option<String>,
    /// For audit: replace stale names that have exactly one new name
    #[arg(long)]
    #[serde(default)]
    #[schemars(description = "write new names")]
    fix: bool,
}

/// What to do with documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DocsOp {
    /// List documents that have a kind or status
    List,
    /// Find names, paths and links that were right once, but are not any more
    Audit,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    /// Number of findings or listed documents.
    total: usize,
    /// Number of documents that were read.
    documents: usize,
    /// Number of names, paths and links in them.
    mentions: usize,
}

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum DocsRow {
    Finding(Box<FindingOut>),
    Document(DocumentOut),
}

impl Row for DocsRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Finding(finding) => finding.render(out),
            Self::Document(document) => document.render(out),
        }
    }
}

impl Docs {
    /// Returns true if results are problems.
    pub(crate) fn is_audit(&self) -> bool {
        self.op == DocsOp::Audit
    }
}

impl Op for Docs {
    type Facts = Facts;
    type Row = DocsRow;
    const WHEN_TOO_SLOW: &'static str =
        "index history=true traces definitions once; or audit fewer documents with path";

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let is_filtered = self.kind.is_some() || self.status.is_some();
        match self.op {
            DocsOp::Audit if is_filtered => Err(OpError::new(
                "kind and status are for op list",
                Hint::each("omit --kind and --status", "omit them"),
            )),
            DocsOp::List if self.fix => Err(OpError::new("fix is for op audit", Hint::each("omit --fix", "omit it"))),
            DocsOp::Audit => self.audit(ask),
            DocsOp::List => self.list(ask),
        }
    }
}

impl Docs {
    fn question<'a>(&self, ask: &'a Ask<'a>) -> Result<Question<'a>> {
        let selection = FileSelection {
            path: self.path.clone(),
            ..FileSelection::default()
        };
        Question::new(ask, &About::unindexed_files(&selection))
    }

    fn list(&self, ask: &Ask<'_>) -> Result<PageOf<Docs>> {
        let question = self.question(ask)?;
        let documents = listed::documents(&question)?;
        let n_documents = documents.len();
        let is_wanted = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let rows = documents
            .into_iter()
            .filter(|document| is_wanted(&self.kind, &document.kind) && is_wanted(&self.status, &document.status));
        let rows: Vec<DocsRow> = rows.map(DocsRow::Document).collect();
        let facts = Facts {
            total: rows.len(),
            documents: n_documents,
            mentions: 0,
        };
        let mut page = paged(ask, &question, rows, facts)?;
        if page.is_empty {
            page.notes.extend(question.why_nothing());
            page.hint = Some("a document has a kind and a status in its front matter: kind: decision".to_owned());
        }
        Ok(page)
    }

    fn audit(&self, ask: &Ask<'_>) -> Result<PageOf<Docs>> {
        if self.fix && ask.session.checked(&ask.common.reference)? != "WORKTREE" {
            return Err(OpError::new(
                "only documents of the worktree can be fixed",
                "omit the revision",
            ));
        }
        if self.fix && !ask.session.is_own {
            return Err(OpError::new(
                "this repository can only be read",
                "docs fixes documents of the repository in which the server was started",
            ));
        }
        let question = self.question(ask)?;
        let (mut documents, n_unread) = documents(&question)?;
        if documents.is_empty() && n_unread == 0 && !self.path.is_empty() {
            return Err(OpError::new(
                format!("no document is at {}", self.path.join(", ")),
                "Markdown, reStructuredText, AsciiDoc and plain text are read, but not change logs",
            ));
        }
        let mut facts = Facts {
            total: 0,
            documents: documents.len(),
            mentions: documents.iter().map(|document| document.mentions.len()).sum(),
        };
        let present = Present::new(&question, &documents)?;
        for document in &mut documents {
            let is_right: Vec<bool> = document
                .mentions
                .iter()
                .map(|mention| present.is_right(document, mention))
                .collect();
            let mut is_right = is_right.into_iter();
            document.mentions.retain(|_| is_right.next() == Some(false));
        }
        documents.retain(|document| !document.mentions.is_empty());
        let (mut findings, mut incomplete) = if documents.is_empty() {
            (Vec::new(), Vec::new())
        } else {
            explained(ask, &present, &documents)?
        };
        if n_unread > 0 {
            incomplete.push(format!(
                "{} not read, because they are not UTF-8 or larger than 4 MiB",
                count(n_unread, "document")
            ));
        }
        if self.fix {
            fix(ask, &question, &mut findings)?;
            let left = findings.iter_mut().filter(|finding| !finding.fixed);
            left.for_each(FindingOut::leave);
        }
        facts.total = findings.len();
        let n_left = findings.iter().filter(|finding| !finding.fixed).count();
        let rows = findings
            .into_iter()
            .map(|finding| DocsRow::Finding(Box::new(finding)))
            .collect();
        let mut page = paged(ask, &question, rows, facts)?;
        page.is_empty = n_left == 0;
        page.is_unfinished = n_left == 0 && !incomplete.is_empty();
        let facts = &page.facts;
        if facts.total == 0 {
            let (mentions, documents) = (count(facts.mentions, "mention"), count(facts.documents, "document"));
            page.notes
                .push(format!("{mentions} of code in {documents}: no finding"));
        }
        if let Some(provenance) = &mut page.provenance {
            incomplete.into_iter().for_each(|why| provenance.also_incomplete(why));
        }
        Ok(page)
    }
}

fn paged(ask: &Ask<'_>, question: &Question<'_>, rows: Vec<DocsRow>, facts: Facts) -> Result<PageOf<Docs>> {
    let state = question.view().digest();
    let n_before = ask.n_before(state)?;
    let (n_all, limit) = (rows.len(), ask.limit(DEFAULT_LIMIT));
    let rows: Vec<DocsRow> = rows.into_iter().skip(n_before).take(limit.max(1)).collect();
    let mut paging = Paging::numbered(ask.key(state), n_before, rows.len(), limit);
    if n_before + rows.len() < n_all {
        paging.end = Some(((n_before + rows.len()) as u32, 0));
    }
    let mut page = Page::new(question.provenance_of_files(), facts, rows, paging);
    page.n_selected = Some(n_all);
    Ok(page)
}

/// Reads the documents to audit. Also returns the number of those that cannot be read as text.
fn documents(question: &Question<'_>) -> Result<(Vec<Document>, usize)> {
    let (view, mut reader) = (question.view(), question.sources().reader());
    let (mut documents, mut n_unread) = (Vec::new(), 0);
    for (id, file) in view.files().filter(|(id, _)| question.filter.passes(view, *id)) {
        let Some(markup) = Markup::of(view.lang(id)).filter(|_| !is_record_of_changes(file.path)) else {
            continue;
        };
        if let Source::Bytes(bytes) = reader.read(id)? {
            let document = (bytes.len() <= MAX_BYTES)
                .then(|| Document::new(RepoPath::new(file.path), bytes, markup))
                .flatten();
            n_unread += usize::from(document.is_none());
            documents.extend(document.filter(|document| !is_dated(&document.text)));
        }
    }
    Ok((documents, n_unread))
}

/// Returns the mentions that the history proves to be findings, and why some may be missing.
fn explained(ask: &Ask<'_>, present: &Present, documents: &[Document]) -> Result<(Vec<FindingOut>, Vec<String>)> {
    let has_names = documents.iter().any(|document| document.names().next().is_some());
    let past = if has_names {
        traced(ask)?
    } else {
        Past::of(ask, PATIENCE)?
    };
    let (findings, mut incomplete) = past.with_targets(|targets| {
        let mut auditor = Auditor::new(targets, present, documents)?;
        let of_documents = documents.iter().map(|document| auditor.audit(document));
        let findings = of_documents
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect();
        Ok((findings, if has_names { targets.untraced() } else { Vec::new() }))
    })?;
    incomplete.extend(past.gap()?);
    incomplete.extend(Gaps::of(&past.opened.history, &past.opened.reached)?.sentences());
    Ok((findings, incomplete))
}

/// Opens the history. A command traces definitions for a while; a call with a time limit uses what is traced.
fn traced<'a>(ask: &'a Ask<'a>) -> Result<Past<'a>> {
    let past = Past::of(ask, PATIENCE)?;
    let lacks_some = past.with_targets(|targets| Ok(!targets.untraced().is_empty()))?;
    if !lacks_some || ask.call.reading_ends().is_some() {
        return Ok(past);
    }
    let (until, records) = (Instant::now() + TRACING_TIME, ask.session.workspace.records());
    match records.trace_history_until(Some(until), ask.call.ctx) {
        Ok(_) => Past::of(ask, PATIENCE),
        Err(error) if is_read_only(&error) => Ok(past),
        Err(error) => Err(error),
    }
}

/// Writes the fixes into the documents.
fn fix(ask: &Ask<'_>, question: &Question<'_>, findings: &mut [FindingOut]) -> Result<()> {
    let mut of_files: BTreeMap<String, Vec<&mut FindingOut>> = BTreeMap::new();
    for finding in findings.iter_mut().filter(|finding| finding.fix.is_some()) {
        of_files.entry(finding.path.clone()).or_default().push(finding);
    }
    let mut reader = question.sources().reader();
    let mut rewrites = Vec::new();
    for (path, findings) in &of_files {
        let Some(Source::Bytes(old)) = question.view().find_text(path).map(|id| reader.read(id)).transpose()? else {
            continue;
        };
        let mut new = old.clone();
        // From the end, so that ranges stay valid.
        for finding in findings.iter().rev() {
            let fix = finding.fix.iter().flat_map(|fix| fix.bytes());
            new.splice(finding.range.clone(), fix);
        }
        rewrites.push(Rewrite {
            path: path.as_bytes().to_vec(),
            from: Some(old),
            to: Some(new),
            mode: None,
        });
    }
    ask.session
        .workspace
        .rewriter(PATIENCE, ask.call.ctx.interrupt)?
        .apply(rewrites)?;
    ask.session.files_changed();
    of_files
        .into_values()
        .flatten()
        .for_each(|finding| finding.fixed = true);
    Ok(())
}
