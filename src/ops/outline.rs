//! `outline`: what is in the repository, a directory or a file.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ask::{Ask, CHARACTERS_PER_TOKEN, Detail, FileSelection, KindSelection, path_text};
use super::op::{Op, Page, PageOf, Paging, Row};
use super::paths::inside;
use super::provenance::ProvenanceOut;
use super::question::{About, Question};
use super::sink::{Recorded, Sink, Style};
use crate::extract::{self, DefinitionKind, ImportedName};
use crate::model::count::{count, plural};
use crate::model::{Hint, RepoPath, quoted, without_placeholders};
use crate::query::{
    FileFilter, FileHeadings, FileImports, FileSymbols, FoundDefinition, LikelyQuery, Package, Share, Summary,
    TreeNode, files_below, headings_of, imports_of, kind_name, map, summary, symbols_of, tree, unknown_path,
};
use crate::session::{Build, OpError, Result};
use crate::snapshot::{FileId, View};

/// Default depth of a tree.
const DEFAULT_TREE_DEPTH: usize = 2;
/// Default size of a map in tokens.
const DEFAULT_MAP_TOKENS: usize = 2000;
/// Languages of documents whose headings are not extracted.
const WITHOUT_HEADINGS: &[&str] = &["restructuredtext", "asciidoc", "latex", "org"];

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout outline
  codescout outline src --depth 3
  codescout outline src/parser.rs
  codescout outline src --kind function
  codescout outline --view map --max-tokens 4000
  codescout outline docs --view headings
  codescout outline --view packages")]
pub(crate) struct Outline {
    /// Directory or file; the whole repository by default
    #[arg(value_name = "PATH", value_parser = path_text())]
    #[schemars(description = "folder or file")]
    at: Option<String>,
    /// What to show; by default a summary of the repository, the tree of a directory or the symbols of a file
    #[arg(long, value_enum)]
    #[schemars(description = "")]
    view: Option<OutlineView>,
    /// Maximum depth of directories, nested symbols or headings; 0 for all
    #[arg(long, value_name = "N")]
    #[schemars(description = "", range(max = 100))]
    depth: Option<usize>,
    /// Maximum size of the map in tokens
    // Over MCP, `max_tokens` limits every answer and is a common parameter.
    #[arg(long, value_name = "N")]
    #[schemars(skip)]
    max_tokens: Option<usize>,
    #[command(flatten)]
    #[serde(flatten)]
    selection: FileSelection,
    #[command(flatten)]
    #[serde(flatten)]
    kind: KindSelection,
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutlineView {
    /// Languages, directories, entry points, build files and tests
    Summary,
    /// Directories and files with sizes
    Tree,
    /// Nested definitions with signatures
    Symbols,
    /// The most referenced definitions
    Map,
    /// Headings of documents
    Headings,
    /// Imports of each file
    Imports,
    /// Packages and the packages of the repository that they need
    Packages,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    path: String,
    view: OutlineView,
    #[serde(flatten)]
    more: More,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
}

/// The fields that only some views have.
#[derive(Debug, Default, Serialize)]
struct More {
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryOut>,
    /// Approximate number of tokens of a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<usize>,
    /// Number of definitions that did not fit into a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
    /// Manifests that cannot be parsed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<String>,
}

#[derive(Debug, Serialize)]
struct SummaryOut {
    files: u32,
    lines: u64,
    languages: Vec<ShareOut>,
    folders: Vec<ShareOut>,
    entry_points: Vec<String>,
    build_files: Vec<String>,
    test_folders: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ShareOut {
    name: String,
    files: u32,
    lines: u64,
}

/// A result: one line of the outline.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum OutlineRow {
    Node(NodeOut),
    File(FileOut),
    Definition(DefinitionOut),
    Heading(HeadingOut),
    Import(ImportOut),
    Package(PackageOut),
}

/// A directory or file of a tree.
#[derive(Debug, Serialize)]
pub(crate) struct NodeOut {
    path: String,
    folder: bool,
    files: u32,
    lines: u64,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    depth: usize,
}

/// The file that contains the definitions in the following rows.
#[derive(Debug, Serialize)]
pub(crate) struct FileOut {
    path: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct DefinitionOut {
    id: String,
    name: String,
    kind: &'static str,
    level: u32,
    /// The signature; null if only ids are shown.
    signature: Option<String>,
    start_line: u32,
    end_line: u32,
    name_line: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct HeadingOut {
    level: u8,
    title: String,
    start_line: u32,
    end_line: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct ImportOut {
    module: String,
    names: Vec<String>,
    line: u32,
    reexport: bool,
}

/// A package, and the packages of the repository that it needs.
#[derive(Debug, Serialize)]
pub(crate) struct PackageOut {
    name: String,
    manager: &'static str,
    path: String,
    needs: Vec<String>,
}

impl Op for Outline {
    type Facts = Facts;
    type Row = OutlineRow;

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let kinds = self.kinds()?;
        let is_listed = match self.view {
            Some(OutlineView::Tree) => ask.common.characters.is_some(),
            view => view == Some(OutlineView::Packages),
        };
        let file = self.file(ask);
        let about = About {
            files: &file,
            build: match file.as_slice() {
                _ if is_listed => Build::Never,
                [] => Build::Need,
                _ => Build::Wait,
            },
            ..About::files(&self.selection)
        };
        let mut question = Question::new(ask, &about)?;
        let place = self.place(ask, |path| question.is_path(path));
        let has_all = is_listed || fill(&mut question, &place)?;
        let files = files_below(question.view(), &place, &question.filter);
        if files.is_empty()
            && !place.is_empty()
            && files_below(question.view(), &place, &FileFilter::default()).is_empty()
        {
            return Err(unknown_path(question.view(), &place).into());
        }
        let outlined = Outlined {
            ask,
            view: self
                .view
                .unwrap_or_else(|| default_view(question.view(), &place, &kinds)),
            depth: self.depth,
            max_tokens: self.map_tokens(ask),
            kinds: &kinds,
            question: &question,
            place: &place,
            files: &files,
        };
        let (rows, more) = outlined.rows()?;
        let provenance = if has_all {
            question.provenance_of_files()
        } else {
            question.provenance()
        };
        outlined.page(rows, more, provenance)
    }
}

impl Outline {
    /// Returns the requested kinds. Fails if kinds are given for a view without definitions.
    fn kinds(&self) -> Result<Vec<DefinitionKind>> {
        let kinds = self.kind.kinds()?;
        match self.view {
            None | Some(OutlineView::Symbols | OutlineView::Map) => Ok(kinds),
            Some(_) if kinds.is_empty() => Ok(kinds),
            Some(view) => Err(OpError::new(
                format!("kind cannot be used with view {}", view.name()),
                Hint::each(
                    "omit one of them, or use --view symbols or --view map",
                    "omit one of them, or use view symbols or map",
                ),
            )),
        }
    }

    /// Returns the directory or file to outline. A single path option without wildcards counts as one.
    fn place(&self, ask: &Ask<'_>, is_path: impl Fn(&str) -> bool) -> String {
        let plain = match self.selection.path.as_slice() {
            [path] if is_path(path) || !path.contains(['*', '?', '[', '{', '!']) => Some(path),
            _ => None,
        };
        let Some(place) = self.at.as_ref().or(plain) else {
            return String::new();
        };
        let place = inside(&ask.session.workspace, place);
        let place = place.trim_start_matches("./").trim_end_matches('/');
        if place == "." { String::new() } else { place.to_owned() }
    }

    /// Returns the path to outline if it is a file; otherwise an empty list.
    fn file(&self, ask: &Ask<'_>) -> Vec<RepoPath> {
        let place = self.place(ask, |_| true);
        let file = (!place.is_empty()).then(|| RepoPath::new(without_placeholders(&place)));
        file.into_iter().collect()
    }

    /// Returns the size of a map in tokens. If the size of the answer is limited, the size of the other fields is
    /// subtracted.
    fn map_tokens(&self, ask: &Ask<'_>) -> usize {
        match ask.common.characters {
            Some(characters) => characters * 3 / 4 / CHARACTERS_PER_TOKEN,
            None => self.max_tokens.unwrap_or(DEFAULT_MAP_TOKENS),
        }
    }
}

impl OutlineView {
    fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Tree => "tree",
            Self::Symbols => "symbols",
            Self::Map => "map",
            Self::Headings => "headings",
            Self::Imports => "imports",
            Self::Packages => "packages",
        }
    }
}

/// Indexes all files below `place` while the index is being built. Returns true if all of them are indexed.
fn fill(question: &mut Question<'_>, place: &str) -> Result<bool> {
    let is_whole = place.is_empty();
    let files = if is_whole {
        Vec::new()
    } else {
        files_below(question.view(), place, &question.filter)
    };
    let has_all = question.fill(&LikelyQuery {
        files,
        ..LikelyQuery::default()
    })?;
    if is_whole {
        question.needs_index(
            "the definitions are not indexed yet",
            "try again later; view=tree, the outline of a file, search and read work now",
            Some(json!({"tool": "outline", "arguments": {"view": "tree"}})),
        )?;
    }
    Ok(has_all)
}

fn default_view(view: &View, place: &str, kinds: &[DefinitionKind]) -> OutlineView {
    match place {
        _ if !kinds.is_empty() => OutlineView::Symbols,
        "" => OutlineView::Summary,
        path if view.find_text(path).is_some() => OutlineView::Symbols,
        _ => OutlineView::Tree,
    }
}

/// A request and the data to answer it.
struct Outlined<'a> {
    ask: &'a Ask<'a>,
    view: OutlineView,
    depth: Option<usize>,
    max_tokens: usize,
    kinds: &'a [DefinitionKind],
    question: &'a Question<'a>,
    place: &'a str,
    files: &'a [FileId],
}

impl Outlined<'_> {
    fn rows(&self) -> Result<(Vec<OutlineRow>, More)> {
        let (files, sources) = (self.files, self.question.sources());
        let depth = match self.depth {
            Some(0) => usize::MAX,
            Some(depth) => depth,
            None if self.view == OutlineView::Tree => DEFAULT_TREE_DEPTH,
            None => usize::MAX,
        };
        let mut more = More::default();
        let rows = match self.view {
            OutlineView::Summary => {
                more.summary = Some(summary_out(summary(&sources, self.place, files)?));
                Vec::new()
            }
            OutlineView::Tree => {
                let mut rows = Vec::new();
                add_node(tree(&sources, self.place, files, depth)?, "", 0, &mut rows);
                rows
            }
            OutlineView::Symbols => self.definitions(symbols_of(&sources, files, depth)?),
            OutlineView::Map => {
                let links = self.question.links();
                let linker = self.question.linker(&links);
                let map = map(&sources, &linker, files, self.kinds, self.max_tokens)?;
                linker.check()?;
                more.tokens = Some(map.n_tokens);
                more.left_out = Some(map.n_left_out);
                self.definitions(map.files)
            }
            OutlineView::Headings => self.headings(headings_of(&sources, files, depth)?),
            OutlineView::Imports => self.imports(imports_of(&sources, files)?),
            OutlineView::Packages => {
                let (rows, broken) = self.packages(self.question.seen.packages(&sources)?);
                more.broken = broken;
                rows
            }
        };
        Ok((rows, more))
    }

    fn page(&self, rows: Vec<OutlineRow>, more: More, mut provenance: ProvenanceOut) -> Result<PageOf<Outline>> {
        if self.view == OutlineView::Headings {
            self.note_missing_headings(&mut provenance);
        }
        let facts = Facts {
            path: shown(self.place),
            view: self.view,
            total: more.summary.is_none().then_some(rows.len()),
            more,
        };
        let n_before = self.question.n_before();
        let rest = rows.len().saturating_sub(n_before);
        let paging = Paging::numbered(self.question.key(), n_before, rest, self.ask.limit(usize::MAX));
        let mut page = Page::new(provenance, facts, Vec::new(), paging);
        page.n_selected = page.facts.total;
        let More {
            summary,
            tokens,
            left_out,
            broken,
        } = &page.facts.more;
        let broken = broken.iter().map(|path| format!("cannot parse {path}"));
        broken.for_each(|reason| {
            page.provenance
                .iter_mut()
                .for_each(|out| out.also_incomplete(reason.clone()))
        });
        page.is_empty = self.files.is_empty() || rows.is_empty() && summary.is_none();
        if page.is_empty {
            page.notes.push("nothing found".to_owned());
            page.hint = self.question.why_nothing();
        }
        page.notes.extend(self.parse_errors()?);
        if let (Some(tokens), Some(left_out)) = (tokens, left_out) {
            page.notes
                .push(format!("about {tokens} tokens; {left_out} definitions did not fit"));
        }
        page.head = match summary {
            Some(summary) => Recorded::of(|out| summary.render(out)),
            None => Recorded::of(|out| render_file_before(&rows, n_before, out)),
        };
        page.rows = rows.into_iter().skip(n_before).collect();
        Ok(page)
    }

    /// Returns a note if definitions may be missing.
    fn parse_errors(&self) -> Result<Option<String>> {
        let view = self.question.view();
        let is_about_definitions = matches!(self.view, OutlineView::Symbols | OutlineView::Map);
        let files = self.files.iter().filter(|_| is_about_definitions);
        let mut errors = Vec::new();
        for file in files {
            let line = view
                .extraction(*file)
                .transpose()?
                .map_or(0, |facts| facts.first_error_line);
            errors.extend((line > 0).then_some((*file, line)));
        }
        let unparsed = match self.files {
            [file] => view.extraction(*file).transpose()?.and_then(|facts| facts.unparsed),
            _ => None,
        };
        if let (Some(reason), [_]) = (unparsed, errors.as_slice()) {
            return Ok(Some(format!(
                "not parsed, so definitions are missing: {}",
                reason.text()
            )));
        }
        Ok(match (errors.as_slice(), self.files) {
            ([], _) => None,
            ([(_, line)], [_]) => Some(format!("parse error at line {line}: definitions may be missing")),
            ([(file, line), ..], _) => Some(format!(
                "parse error in {}, the first at {}:{line}: definitions may be missing",
                count(errors.len(), "file"),
                quoted(view.file(*file).path)
            )),
        })
    }

    fn note_missing_headings(&self, provenance: &mut ProvenanceOut) {
        let view = self.question.view();
        let is_unknown = |file: &&FileId| {
            let language = extract::language(view.lang(**file)).map_or("text", |language| language.name);
            WITHOUT_HEADINGS.contains(&language)
        };
        let n_unknown = self.files.iter().filter(is_unknown).count();
        if n_unknown > 0 {
            provenance.also_incomplete(format!(
                "{n_unknown} documents are not Markdown; their headings are not extracted"
            ));
        }
    }

    fn file(&self, file: FileId) -> OutlineRow {
        OutlineRow::File(FileOut {
            path: quoted(self.question.view().file(file).path).into_owned(),
        })
    }

    fn definitions(&self, files: Vec<FileSymbols>) -> Vec<OutlineRow> {
        let has_signature = self.ask.common.detail > Detail::Ids;
        let mut rows = Vec::new();
        for FileSymbols { file, mut definitions } in files {
            definitions.retain(|(_, found)| self.kinds.is_empty() || self.kinds.contains(&found.kind));
            if definitions.is_empty() {
                continue;
            }
            rows.push(self.file(file));
            let definition = |(level, found)| OutlineRow::Definition(DefinitionOut::new(level, found, has_signature));
            rows.extend(definitions.into_iter().map(definition));
        }
        rows
    }

    /// Returns a row for each package below the place, and the manifests that cannot be parsed.
    fn packages(&self, (packages, broken): &(Vec<Package>, Vec<String>)) -> (Vec<OutlineRow>, Vec<String>) {
        let (place, folder) = (self.place, format!("{}/", self.place));
        let is_here = |path: &str| place.is_empty() || path == place || path.starts_with(&folder);
        let row = |package: &Package| {
            OutlineRow::Package(PackageOut {
                name: package.name.clone(),
                manager: package.manager,
                path: shown(&package.folder),
                needs: package
                    .needs
                    .iter()
                    .map(|other| packages[*other].name.clone())
                    .collect(),
            })
        };
        let here = packages.iter().filter(|package| is_here(&package.folder));
        (
            here.map(row).collect(),
            broken.iter().filter(|path| is_here(path)).cloned().collect(),
        )
    }

    fn headings(&self, files: Vec<FileHeadings>) -> Vec<OutlineRow> {
        let mut rows = Vec::new();
        for FileHeadings { file, headings } in files {
            rows.push(self.file(file));
            rows.extend(headings.into_iter().map(|(level, title, start_line, end_line)| {
                OutlineRow::Heading(HeadingOut {
                    level,
                    title,
                    start_line,
                    end_line,
                })
            }));
        }
        rows
    }

    fn imports(&self, files: Vec<FileImports>) -> Vec<OutlineRow> {
        let mut rows = Vec::new();
        for FileImports { file, imports } in files {
            rows.push(self.file(file));
            rows.extend(imports.into_iter().map(|(line, import)| {
                OutlineRow::Import(ImportOut {
                    module: import.module,
                    names: import.names.into_iter().map(imported_name).collect(),
                    line,
                    reexport: import.is_reexport,
                })
            }));
        }
        rows
    }
}

fn imported_name(name: ImportedName) -> String {
    match (name.name.as_str(), name.alias) {
        (_, None) => name.name,
        ("", Some(alias)) => format!("as {alias}"),
        (_, Some(alias)) => format!("{} as {alias}", name.name),
    }
}

/// Adds a node of a tree and its descendants. `parent` is the path of its directory, with placeholders for bytes that are
/// not UTF-8.
fn add_node(node: TreeNode, parent: &str, depth: usize, rows: &mut Vec<OutlineRow>) {
    let path = match parent {
        "" | "." => node.name.clone(),
        parent => format!("{parent}/{}", node.name),
    };
    rows.push(OutlineRow::Node(NodeOut {
        path: shown(&path),
        folder: node.is_folder,
        files: node.n_files,
        lines: node.n_lines,
        name: shown(&node.name),
        depth,
    }));
    for child in node.children {
        add_node(child, &path, depth + 1, rows);
    }
}

fn summary_out(summary: Summary) -> SummaryOut {
    let shares = |shares: Vec<Share>| {
        let share = |share: Share| ShareOut {
            name: shown(&share.name),
            files: share.n_files,
            lines: share.n_lines,
        };
        shares.into_iter().map(share).collect()
    };
    let all_shown = |paths: Vec<String>| paths.iter().map(|path| shown(path)).collect();
    SummaryOut {
        files: summary.n_files,
        lines: summary.n_lines,
        languages: shares(summary.languages),
        folders: shares(summary.folders),
        entry_points: all_shown(summary.entry_points),
        build_files: all_shown(summary.build_files),
        test_folders: all_shown(summary.test_folders),
    }
}

/// Formats a path for output. Bytes that are not UTF-8 are escaped.
fn shown(path: &str) -> String {
    quoted(&without_placeholders(path)).into_owned()
}

/// Repeats the name of the file if a page begins within it.
fn render_file_before(rows: &[OutlineRow], n_before: usize, out: &mut dyn Sink) {
    let is_inside = rows
        .get(n_before)
        .is_some_and(|row| !matches!(row, OutlineRow::File(_) | OutlineRow::Node(_) | OutlineRow::Package(_)));
    let before = rows.get(..n_before).filter(|_| is_inside).unwrap_or_default();
    let file = before.iter().rev().find_map(|row| match row {
        OutlineRow::File(file) => Some(file),
        _ => None,
    });
    if let Some(file) = file {
        out.span(Style::Path, &file.path);
        out.line(" (continued)");
    }
}

impl SummaryOut {
    fn render(&self, out: &mut dyn Sink) {
        out.line(&format!("{}, {}", count(self.files, "file"), count(self.lines, "line")));
        for (title, shares) in [("languages", &self.languages), ("folders", &self.folders)] {
            render_title(title, out);
            let widest = |of: fn(&ShareOut) -> String| shares.iter().map(|share| of(share).chars().count()).max();
            let name = widest(|share| share.name.clone()).unwrap_or_default();
            let files = widest(|share| share.files.to_string()).unwrap_or_default();
            let lines = widest(|share| share.lines.to_string()).unwrap_or_default();
            for share in shares {
                out.line(&format!(
                    "  {:<name$} {:>files$} {:<5} {:>lines$} {}",
                    share.name,
                    share.files,
                    plural(share.files.into(), "file"),
                    share.lines,
                    plural(share.lines, "line")
                ));
            }
        }
        for (title, paths) in [
            ("entry points", &self.entry_points),
            ("build files", &self.build_files),
            ("test folders", &self.test_folders),
        ] {
            if paths.is_empty() {
                continue;
            }
            render_title(title, out);
            for path in paths {
                out.plain("  ");
                out.span(Style::Path, path);
                out.end();
            }
        }
    }
}

fn render_title(title: &str, out: &mut dyn Sink) {
    out.end();
    out.span(Style::Name, title);
    out.end();
}

impl Row for OutlineRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Node(node) => node.render(out),
            Self::File(file) => {
                out.span(Style::Path, &file.path);
                out.end();
            }
            Self::Definition(definition) => {
                let shown = definition.signature.as_ref().unwrap_or(&definition.name);
                let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
                render_item(definition.name_line, definition.level as usize, &shown, out);
            }
            Self::Heading(heading) => {
                render_item(heading.start_line, usize::from(heading.level), &heading.title, out);
            }
            Self::Import(import) if import.names.is_empty() => render_item(import.line, 0, &import.module, out),
            Self::Import(import) => {
                let names = import.names.join(", ");
                render_item(import.line, 0, &format!("{}: {names}", import.module), out);
            }
            Self::Package(package) => package.render(out),
        }
    }
}

impl PackageOut {
    fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Path, if self.path.is_empty() { "." } else { &self.path });
        out.plain(" ");
        out.span(Style::Name, &self.name);
        out.span(Style::Fact, &format!(" {}", self.manager));
        if !self.needs.is_empty() {
            out.plain(&format!(" needs {}", self.needs.join(", ")));
        }
        out.end();
    }
}

fn render_item(line: u32, level: usize, text: &str, out: &mut dyn Sink) {
    out.span(Style::Fact, &format!("{line:>6}"));
    out.line(&format!(" {}{text}", "  ".repeat(level)));
}

impl NodeOut {
    fn render(&self, out: &mut dyn Sink) {
        out.plain(&"  ".repeat(self.depth));
        if self.folder {
            out.span(Style::Name, &format!("{}/", self.name));
            out.span(Style::Fact, &format!(" {}", count(self.files, "file")));
        } else {
            out.span(Style::Name, &self.name);
        }
        // The number of lines is known only for indexed files.
        if self.lines > 0 {
            let comma = if self.folder { "," } else { "" };
            out.span(Style::Fact, &format!("{comma} {}", count(self.lines, "line")));
        }
        out.end();
    }
}

impl DefinitionOut {
    fn new(level: u32, found: FoundDefinition, has_signature: bool) -> Self {
        Self {
            id: found.id,
            name: found.name,
            kind: kind_name(found.kind),
            level,
            signature: has_signature.then_some(found.signature),
            start_line: found.start_line,
            end_line: found.end_line,
            name_line: found.name_line,
        }
    }
}
