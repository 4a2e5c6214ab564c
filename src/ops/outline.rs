//! What is in a repository, a folder or a file.

use anyhow::Result;
use serde::Serialize;

use crate::extract::DefinitionKind;
use crate::model::{quoted, without_stand_ins};
use crate::query::{
    FileFilter, FileHeadings, FileImports, FileSymbols, FoundDefinition, Share, Sources, Summary, TreeNode,
    files_below, headings_of, imports_of, kind_name, map, summary, symbols_of, tree, unknown_path,
};
use crate::snapshot::{FileId, View};

/// How deep a tree is shown unless more is asked for.
pub(crate) const DEFAULT_TREE_DEPTH: usize = 2;
/// How large a map is unless another size is asked for.
pub(crate) const DEFAULT_MAP_TOKENS: usize = 2000;

/// How to look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutlineKind {
    /// Languages, folders, entry points, build files, tests.
    Summary,
    /// Folders and files with their sizes.
    Tree,
    /// Definitions, nested, with signatures.
    Symbols,
    /// The definitions that most files refer to.
    Map,
    /// Headings of documents.
    Headings,
    /// What each file imports.
    Imports,
}

/// What to outline.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutlineQuestion {
    /// A folder or file from the root; empty for the whole.
    pub(crate) path: String,
    /// How to look at it; by what stands at the path unless given.
    pub(crate) kind: Option<OutlineKind>,
    /// How deep; 0 for all.
    pub(crate) depth: Option<usize>,
    /// How large a map may be.
    pub(crate) max_tokens: Option<usize>,
    /// Of what kinds the definitions of a map are; none for all.
    pub(crate) kinds: Vec<DefinitionKind>,
    /// Which files.
    pub(crate) filter: FileFilter,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Outline {
    /// How it was looked at.
    pub(crate) kind: OutlineKind,
    /// What is there.
    pub(crate) body: OutlineBody,
    /// Whether there is nothing.
    pub(crate) is_empty: bool,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum OutlineBody {
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
pub(crate) struct SummaryOut {
    pub(crate) files: u32,
    pub(crate) lines: u64,
    pub(crate) languages: Vec<ShareOut>,
    pub(crate) folders: Vec<ShareOut>,
    pub(crate) entry_points: Vec<String>,
    pub(crate) build_files: Vec<String>,
    pub(crate) test_folders: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ShareOut {
    pub(crate) name: String,
    pub(crate) files: u32,
    pub(crate) lines: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct NodeOut {
    pub(crate) name: String,
    /// The name with stand-ins, of which paths are joined.
    #[serde(skip)]
    pub(crate) text: String,
    pub(crate) folder: bool,
    pub(crate) files: u32,
    pub(crate) lines: u64,
    pub(crate) children: Vec<NodeOut>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FileSymbolsOut {
    pub(crate) path: String,
    pub(crate) definitions: Vec<DefinitionOut>,
}

#[derive(Debug, Serialize)]
pub(crate) struct DefinitionOut {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) level: u32,
    pub(crate) signature: String,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    pub(crate) name_line: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct FileHeadingsOut {
    pub(crate) path: String,
    pub(crate) headings: Vec<HeadingOut>,
}

#[derive(Debug, Serialize)]
pub(crate) struct HeadingOut {
    pub(crate) level: u8,
    pub(crate) title: String,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct FileImportsOut {
    pub(crate) path: String,
    pub(crate) imports: Vec<ImportOut>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ImportOut {
    pub(crate) module: String,
    pub(crate) names: Vec<String>,
    pub(crate) line: u32,
    pub(crate) reexport: bool,
}

/// Looks at what stands at a path.
pub(crate) fn outline(sources: &Sources<'_>, question: &OutlineQuestion) -> Result<Outline> {
    let view = sources.view();
    let OutlineQuestion { path, filter, .. } = question;
    let files = files_below(view, path, filter);
    if files.is_empty() && !path.is_empty() && files_below(view, path, &Default::default()).is_empty() {
        return Err(unknown_path(view, path).into());
    }
    let kind = question.kind.unwrap_or_else(|| default_kind(view, path));
    let depth = match question.depth {
        Some(0) => usize::MAX,
        Some(depth) => depth,
        None if kind == OutlineKind::Tree => DEFAULT_TREE_DEPTH,
        None => usize::MAX,
    };
    let body = match kind {
        OutlineKind::Summary => OutlineBody::Summary {
            summary: summary_out(summary(sources, path, &files)?),
        },
        OutlineKind::Tree => OutlineBody::Tree {
            tree: node_out(tree(sources, path, &files, depth)?),
        },
        OutlineKind::Symbols => OutlineBody::Symbols {
            results: symbols_out(view, symbols_of(sources, &files, depth)?),
        },
        OutlineKind::Map => {
            let map = map(
                sources,
                &files,
                &question.kinds,
                question.max_tokens.unwrap_or(DEFAULT_MAP_TOKENS),
            )?;
            OutlineBody::Map {
                results: symbols_out(view, map.files),
                tokens: map.n_tokens,
                left_out: map.n_left_out,
            }
        }
        OutlineKind::Headings => OutlineBody::Headings {
            results: headings_out(view, headings_of(sources, &files, depth)?),
        },
        OutlineKind::Imports => OutlineBody::Imports {
            results: imports_out(view, imports_of(sources, &files)?),
        },
    };
    let is_empty = files.is_empty() || body.is_empty();
    Ok(Outline { kind, body, is_empty })
}

impl OutlineKind {
    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
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

/// A path as the view has it: `.` is the root.
pub(crate) fn outline_path(path: &str) -> String {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    if path == "." { String::new() } else { path.to_owned() }
}

fn default_kind(view: &View, path: &str) -> OutlineKind {
    match path {
        "" => OutlineKind::Summary,
        path if view.find_text(path).is_some() => OutlineKind::Symbols,
        _ => OutlineKind::Tree,
    }
}

impl OutlineBody {
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
    quoted(view.file(file).path).into_owned()
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
    SummaryOut {
        files: summary.n_files,
        lines: summary.n_lines,
        languages: shares(summary.languages),
        folders: shares(summary.folders),
        entry_points: all_shown(&summary.entry_points),
        build_files: all_shown(&summary.build_files),
        test_folders: all_shown(&summary.test_folders),
    }
}

/// A path with stand-ins as answers write it.
pub(crate) fn shown(path: &str) -> String {
    quoted(&without_stand_ins(path)).into_owned()
}

fn all_shown(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| shown(path)).collect()
}

fn node_out(node: TreeNode) -> NodeOut {
    NodeOut {
        name: shown(&node.name),
        text: node.name,
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
