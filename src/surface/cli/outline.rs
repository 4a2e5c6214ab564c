//! `codescout outline`

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::args::{Global, OutlineArgs, OutlineView};
use super::json::ProvenanceOut;
use super::progress::CliProgress;
use super::read::inside;
use super::render::{FAINT, Output, PATH, STRONG, note, one_line};
use super::search::filter;
use super::{Found, INTERRUPTED};
use crate::query::{
    FileHeadings, FileImports, FileSymbols, FoundDefinition, Share, Sources, Summary, TreeNode, files_below,
    headings_of, imports_of, kind_name, map, summary, symbols_of, tree, unknown_path,
};
use crate::snapshot::{FileId, View};
use crate::surface::open::Workspace;

const DEFAULT_TREE_DEPTH: usize = 2;
const DEFAULT_MAX_TOKENS: usize = 2000;

#[derive(Debug, Serialize)]
struct OutlineOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    path: String,
    view: &'static str,
    #[serde(flatten)]
    body: Body,
    took_ms: f64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Body {
    Summary {
        summary: SummaryOut,
    },
    Tree {
        tree: NodeOut,
    },
    Symbols {
        results: Vec<FileSymbolsOut>,
    },
    Map {
        results: Vec<FileSymbolsOut>,
        tokens: usize,
        left_out: usize,
    },
    Headings {
        results: Vec<FileHeadingsOut>,
    },
    Imports {
        results: Vec<FileImportsOut>,
    },
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

#[derive(Debug, Serialize)]
struct NodeOut {
    name: String,
    folder: bool,
    files: u32,
    lines: u64,
    children: Vec<NodeOut>,
}

#[derive(Debug, Serialize)]
struct FileSymbolsOut {
    path: String,
    definitions: Vec<DefinitionOut>,
}

#[derive(Debug, Serialize)]
struct DefinitionOut {
    id: String,
    name: String,
    kind: &'static str,
    level: u32,
    signature: String,
    start_line: u32,
    end_line: u32,
    name_line: u32,
}

#[derive(Debug, Serialize)]
struct FileHeadingsOut {
    path: String,
    headings: Vec<HeadingOut>,
}

#[derive(Debug, Serialize)]
struct HeadingOut {
    level: u8,
    title: String,
    start_line: u32,
    end_line: u32,
}

#[derive(Debug, Serialize)]
struct FileImportsOut {
    path: String,
    imports: Vec<ImportOut>,
}

#[derive(Debug, Serialize)]
struct ImportOut {
    module: String,
    names: Vec<String>,
    line: u32,
    reexport: bool,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &OutlineArgs, output: &mut Output) -> Result<Found> {
    let filter = filter(&args.filter)?;
    let opened = workspace.view(&global.reference, &CliProgress::new(global.quiet), &INTERRUPTED)?;
    let view = &opened.view;
    let started = Instant::now();
    let sources = Sources::new(view, &workspace.repository);
    let path = root(inside(workspace, args.path.as_deref().unwrap_or_default()));
    let files = files_below(view, &path, &filter);
    if files.is_empty() && !path.is_empty() && files_below(view, &path, &Default::default()).is_empty() {
        return Err(unknown_path(view, &path).into());
    }
    let kind = args.view.unwrap_or_else(|| default_view(view, &path));
    let depth = match args.depth {
        Some(0) => usize::MAX,
        Some(depth) => depth,
        None if kind == OutlineView::Tree => DEFAULT_TREE_DEPTH,
        None => usize::MAX,
    };
    let body = match kind {
        OutlineView::Summary => Body::Summary {
            summary: summary_out(summary(view, &path, &files)?),
        },
        OutlineView::Tree => Body::Tree {
            tree: node_out(tree(view, &path, &files, depth)?),
        },
        OutlineView::Symbols => Body::Symbols {
            results: symbols_out(view, symbols_of(&sources, &files, depth)?),
        },
        OutlineView::Map => {
            let map = map(&sources, &files, args.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS))?;
            Body::Map {
                results: symbols_out(view, map.files),
                tokens: map.n_tokens,
                left_out: map.n_left_out,
            }
        }
        OutlineView::Headings => Body::Headings {
            results: headings_out(view, headings_of(&sources, &files, depth)?),
        },
        OutlineView::Imports => Body::Imports {
            results: imports_out(view, imports_of(&sources, &files)?),
        },
    };
    let is_empty = files.is_empty() || body.is_empty();
    let answer = OutlineOut {
        provenance: ProvenanceOut::of(view),
        path,
        view: kind.name(),
        body,
        took_ms: started.elapsed().as_secs_f64() * 1e3,
    };
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, output)?;
    }
    Ok(if is_empty { Found::Nothing } else { Found::Something })
}

/// A path as the view has it: `.` is the root.
fn root(path: &str) -> String {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    if path == "." { String::new() } else { path.to_owned() }
}

fn default_view(view: &View, path: &str) -> OutlineView {
    match path {
        "" => OutlineView::Summary,
        path if view.find(path.as_bytes()).is_some() => OutlineView::Symbols,
        _ => OutlineView::Tree,
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
        }
    }
}

impl Body {
    fn is_empty(&self) -> bool {
        match self {
            Self::Summary { .. } | Self::Tree { .. } => false,
            Self::Symbols { results } | Self::Map { results, .. } => results.is_empty(),
            Self::Headings { results } => results.is_empty(),
            Self::Imports { results } => results.is_empty(),
        }
    }
}

fn path_of(view: &View, file: FileId) -> String {
    String::from_utf8_lossy(view.file(file).path).into_owned()
}

fn summary_out(summary: Summary) -> SummaryOut {
    let shares = |shares: Vec<Share>| {
        let share = |share: Share| ShareOut {
            name: share.name,
            files: share.n_files,
            lines: share.n_lines,
        };
        shares.into_iter().map(share).collect()
    };
    SummaryOut {
        files: summary.n_files,
        lines: summary.n_lines,
        languages: shares(summary.languages),
        folders: shares(summary.folders),
        entry_points: summary.entry_points,
        build_files: summary.build_files,
        test_folders: summary.test_folders,
    }
}

fn node_out(node: TreeNode) -> NodeOut {
    NodeOut {
        name: node.name,
        folder: node.is_folder,
        files: node.n_files,
        lines: node.n_lines,
        children: node.children.into_iter().map(node_out).collect(),
    }
}

fn symbols_out(view: &View, files: Vec<FileSymbols>) -> Vec<FileSymbolsOut> {
    let definition = |(level, found): (u32, FoundDefinition)| DefinitionOut {
        id: found.id,
        name: found.name,
        kind: kind_name(found.kind),
        level,
        signature: found.signature,
        start_line: found.start_line,
        end_line: found.end_line,
        name_line: found.name_line,
    };
    let file = |file: FileSymbols| FileSymbolsOut {
        path: path_of(view, file.file),
        definitions: file.definitions.into_iter().map(definition).collect(),
    };
    files.into_iter().map(file).collect()
}

fn headings_out(view: &View, files: Vec<FileHeadings>) -> Vec<FileHeadingsOut> {
    let heading = |(level, title, start_line, end_line)| HeadingOut {
        level,
        title,
        start_line,
        end_line,
    };
    let file = |file: FileHeadings| FileHeadingsOut {
        path: path_of(view, file.file),
        headings: file.headings.into_iter().map(heading).collect(),
    };
    files.into_iter().map(file).collect()
}

fn imports_out(view: &View, files: Vec<FileImports>) -> Vec<FileImportsOut> {
    let name = |name: crate::extract::ImportedName| match (name.name.as_str(), name.alias) {
        (_, None) => name.name,
        ("", Some(alias)) => format!("as {alias}"),
        (_, Some(alias)) => format!("{} as {alias}", name.name),
    };
    let file = |file: FileImports| FileImportsOut {
        path: path_of(view, file.file),
        imports: file
            .imports
            .into_iter()
            .map(|(line, import)| ImportOut {
                module: import.module,
                names: import.names.into_iter().map(name).collect(),
                line,
                reexport: import.is_reexport,
            })
            .collect(),
    };
    files.into_iter().map(file).collect()
}

fn show(answer: &OutlineOut, output: &mut Output) -> Result<()> {
    match &answer.body {
        Body::Summary { summary } => show_summary(summary, output)?,
        Body::Tree { tree } => show_tree(tree, 0, output)?,
        Body::Symbols { results } => show_symbols(results, output)?,
        Body::Map {
            results,
            tokens,
            left_out,
        } => {
            show_symbols(results, output)?;
            output.flush()?;
            note(&format!("about {tokens} tokens; {left_out} definitions did not fit"));
        }
        Body::Headings { results } => {
            for file in results {
                let path = output.name(PATH, &file.path);
                output.line(&path)?;
                for heading in &file.headings {
                    let indent = "  ".repeat(usize::from(heading.level));
                    let title = one_line(&heading.title);
                    let number = output.styled(FAINT, &format!("{:>6}", heading.start_line));
                    output.line(&format!("{number} {indent}{title}"))?;
                }
            }
        }
        Body::Imports { results } => {
            for file in results {
                let path = output.name(PATH, &file.path);
                output.line(&path)?;
                for import in &file.imports {
                    let number = output.styled(FAINT, &format!("{:>6}", import.line));
                    let names = match import.names.is_empty() {
                        true => String::new(),
                        false => format!(": {}", import.names.join(", ")),
                    };
                    output.line(&format!("{number} {}", one_line(&format!("{}{names}", import.module))))?;
                }
            }
        }
    }
    Ok(())
}

fn show_summary(summary: &SummaryOut, output: &mut Output) -> Result<()> {
    output.line(&format!("{} files, {} lines", summary.files, summary.lines))?;
    for (title, shares) in [("languages", &summary.languages), ("folders", &summary.folders)] {
        let title = output.styled(STRONG, title);
        output.line(&format!("\n{title}"))?;
        for share in shares {
            let name = one_line(&share.name);
            output.line(&format!(
                "  {name:<24} {:>6} files {:>9} lines",
                share.files, share.lines
            ))?;
        }
    }
    for (title, paths) in [
        ("entry points", &summary.entry_points),
        ("build files", &summary.build_files),
        ("test folders", &summary.test_folders),
    ] {
        if paths.is_empty() {
            continue;
        }
        let title = output.styled(STRONG, title);
        output.line(&format!("\n{title}"))?;
        for path in paths {
            let path = output.name(PATH, path);
            output.line(&format!("  {path}"))?;
        }
    }
    Ok(())
}

fn show_tree(node: &NodeOut, depth: usize, output: &mut Output) -> Result<()> {
    let slash = if node.folder { "/" } else { "" };
    let name = output.name(
        if node.folder { STRONG } else { PATH },
        &format!("{}{slash}", node.name),
    );
    let counts = match node.folder {
        true => format!("{} files, {} lines", node.files, node.lines),
        false => format!("{} lines", node.lines),
    };
    let counts = output.styled(FAINT, &counts);
    output.line(&format!("{}{name} {counts}", "  ".repeat(depth)))?;
    node.children
        .iter()
        .try_for_each(|child| show_tree(child, depth + 1, output))
}

fn show_symbols(files: &[FileSymbolsOut], output: &mut Output) -> Result<()> {
    for file in files {
        let path = output.name(PATH, &file.path);
        output.line(&path)?;
        for definition in &file.definitions {
            let indent = "  ".repeat(definition.level as usize);
            let number = output.styled(FAINT, &format!("{:>6}", definition.name_line));
            output.line(&format!("{number} {indent}{}", one_line(&definition.signature)))?;
        }
    }
    Ok(())
}
