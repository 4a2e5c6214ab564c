//! `codescout outline`

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::args::{Global, OutlineArgs, OutlineView};
use super::json::ProvenanceOut;
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, STRONG, note, one_line};
use super::{Found, INTERRUPTED};
use crate::model::{RepoPath, without_stand_ins};
use crate::ops::{
    FileSymbolsOut, NodeOut, OutlineBody, OutlineKind, OutlineQuestion, SummaryOut, inside, outline, outline_path,
    shown,
};
use crate::query::Sources;
use crate::session::Workspace;

#[derive(Debug, Serialize)]
struct OutlineOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    path: String,
    view: &'static str,
    #[serde(flatten)]
    body: OutlineBody,
    took_ms: f64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &OutlineArgs, output: &mut Output) -> Result<Found> {
    let filter = args.filter.filter(workspace)?;
    let file = outline_path(&inside(workspace, args.path.as_deref().unwrap_or_default()));
    let paths = [RepoPath::new(without_stand_ins(&file))];
    let progress = CliProgress::new(global.quiet);
    let view = &workspace.view_of_files(&global.reference, &paths, &progress, &INTERRUPTED)?;
    let started = Instant::now();
    let question = OutlineQuestion {
        kinds: Vec::new(),
        path: file,
        kind: args.view.map(OutlineView::kind),
        depth: args.depth,
        max_tokens: args.max_tokens,
        filter,
    };
    let found = outline(
        &Sources::new(view, &workspace.repository).until(&INTERRUPTED),
        &question,
    )?;
    let answer = OutlineOut {
        provenance: ProvenanceOut::of(view),
        path: shown(&question.path),
        view: found.kind.name(),
        body: found.body,
        took_ms: started.elapsed().as_secs_f64() * 1e3,
    };
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, output)?;
        output.incomplete(answer.provenance.incomplete_because())?;
    }
    Ok(if found.is_empty {
        Found::Nothing
    } else {
        Found::Something
    })
}

impl OutlineView {
    fn kind(self) -> OutlineKind {
        match self {
            Self::Summary => OutlineKind::Summary,
            Self::Tree => OutlineKind::Tree,
            Self::Symbols => OutlineKind::Symbols,
            Self::Map => OutlineKind::Map,
            Self::Headings => OutlineKind::Headings,
            Self::Imports => OutlineKind::Imports,
        }
    }
}

fn show(answer: &OutlineOut, output: &mut Output) -> Result<()> {
    match &answer.body {
        OutlineBody::Summary { summary } => show_summary(summary, output)?,
        OutlineBody::Tree { tree } => show_tree(tree, 0, output)?,
        OutlineBody::Symbols { results } => show_symbols(results, output)?,
        OutlineBody::Map {
            results,
            tokens,
            left_out,
        } => {
            show_symbols(results, output)?;
            output.flush()?;
            note(&format!("about {tokens} tokens; {left_out} definitions did not fit"));
        }
        OutlineBody::Headings { results } => {
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
        OutlineBody::Imports { results } => {
            for file in results {
                let path = output.name(PATH, &file.path);
                output.line(&path)?;
                for import in &file.imports {
                    let number = output.styled(FAINT, &format!("{:>6}", import.line));
                    let names = if import.names.is_empty() {
                        String::new()
                    } else {
                        format!(": {}", import.names.join(", "))
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
    let counts = if node.folder {
        format!("{} files, {} lines", node.files, node.lines)
    } else {
        format!("{} lines", node.lines)
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
