//! `outline`: what is here.

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asking, CHARACTERS_PER_TOKEN, Detail, OF_FILES, selection};
use super::super::reply::{Draft, Reply, single};
use super::super::tool::{Call, QUESTION_TIME, Tool, results};
use crate::extract;
use crate::model::{RepoPath, without_stand_ins};
use crate::ops::About;
use crate::ops::{
    NodeOut, OutlineBody, OutlineKind, OutlineQuestion, ProvenanceOut, SummaryOut, inside, outline, outline_path, shown,
};
use crate::query::{Sought, files_below, kind_name};
use crate::session::Build;
use crate::snapshot::FileId;

pub(super) const TOOL: Tool = Tool {
    name: "outline",
    title: "See what is there",
    description: "What is in the repository, a folder or a file: a summary, the tree, definitions with signatures, a ranked map \
                  within max_tokens, headings or imports. Start here in a repository that you do not know.",
    own: || {
        vec![
            Parameter::new("at", Kind::Text, "folder or file; default: all"),
            Parameter::new(
                "view",
                Kind::Choice(&["summary", "tree", "symbols", "map", "headings", "imports"]),
                "",
            ),
            Parameter::new("depth", Kind::Number(100), ""),
        ]
    },
    common: OF_FILES,
    output,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

fn output() -> Value {
    json!({
        "view": {"type": "string"},
        "summary": {"type": "object"},
        "results": results(&[("path", "string"), ("name", "string"), ("start_line", "integer")]),
    })
}

#[derive(Serialize)]
struct Own<'a> {
    path: &'a str,
    view: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a SummaryOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

/// One line of an outline: its facts, and as text.
struct Row {
    facts: Value,
    text: String,
    /// Whether it names a file, and so is told again where a page begins below it.
    is_file: bool,
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let view = call.arguments.text("view");
    let is_tree = view == Some("tree");
    let mut has_all = true;
    let ask = call.ask()?;
    let selection = selection(call)?;
    let about = About {
        files: &files_named(call)?,
        build: if is_tree { Build::Never } else { Build::Wait },
        ..About::files(&selection)
    };
    let mut question = Asking::about(call, &ask, about)?;
    let outlined = outlined(call, &question)?;
    if !is_tree {
        let files = files_below(&question.seen.view, &outlined.path, &outlined.filter);
        let sought = Sought {
            // A map or a summary of everything is of no use with some of the files.
            files: if outlined.path.is_empty() { Vec::new() } else { files },
            ..Sought::default()
        };
        has_all = question.fill(&sought)?;
        if outlined.path.is_empty() {
            question.needs_index(
                "only the tree is known yet",
                "ask again in a while; view=tree, an outline of a file, search and read work meanwhile",
                Some(json!({"tool": "outline", "arguments": {"view": "tree"}})),
            )?;
        }
    }
    let found = outline(&question.sources(), &outlined)?;
    let mut provenance = if has_all {
        question.provenance_of_files()
    } else {
        question.provenance()
    };
    if found.kind == OutlineKind::Headings {
        let unknown = without_headings(&question, &outlined);
        if unknown > 0 {
            provenance.also_incomplete(format!(
                "of {unknown} documents here the headings are not known: they are in a language of which only the text is"
            ));
        }
    }
    let mut own = Own {
        path: &shown(&outlined.path),
        view: found.kind.name(),
        summary: None,
        left_out: None,
    };
    match &found.body {
        OutlineBody::Summary { summary } => {
            let own = Own {
                summary: Some(summary),
                ..own
            };
            return Ok(single(call, &provenance, &own, &summary_text(summary)));
        }
        OutlineBody::Map { left_out, .. } => own.left_out = Some(*left_out),
        _ => {}
    }
    let kinds: Vec<&str> = question.asked.kinds.iter().map(|kind| kind_name(*kind)).collect();
    let rows = rows(found.body, question.asked.detail, &kinds);
    page(call, &question, &provenance, &rows, &own)
}

/// The paths of files that the call may be about: what `at` names, or `path` if that is one.
fn files_named(call: &Call<'_>) -> Result<Vec<RepoPath>> {
    let place = place(call, &|_| true)?;
    let file = (!place.is_empty()).then(|| RepoPath::new(without_stand_ins(&place)));
    Ok(file.into_iter().collect())
}

/// The folder or file to look at. One in `path` is meant as that, too, if it is no pattern, or the path of a file.
fn place(call: &Call<'_>, is_path: &dyn Fn(&str) -> bool) -> Result<String> {
    let paths = call.arguments.texts("path");
    let plain = match paths.as_slice() {
        [path] if is_path(path) || !path.contains(['*', '?', '[', '{', '!']) => Some(path.as_str()),
        _ => None,
    };
    let at = call.arguments.text("at").or(plain).unwrap_or_default();
    Ok(outline_path(&inside(call.workspace()?, at)))
}

fn outlined(call: &Call<'_>, question: &Asking<'_>) -> Result<OutlineQuestion> {
    let arguments = &call.arguments;
    Ok(OutlineQuestion {
        path: place(call, &|path| question.is_path(path))?,
        kind: arguments.text("view").and_then(kind_of),
        depth: arguments.number("depth"),
        max_tokens: Some(question.asked.characters * 3 / 4 / CHARACTERS_PER_TOKEN),
        kinds: question.asked.kinds.clone(),
        filter: question.filter.clone(),
    })
}

/// How many documents are asked about whose headings cannot be told.
fn without_headings(question: &Asking<'_>, outlined: &OutlineQuestion) -> usize {
    const DOCUMENTS: &[&str] = &["restructuredtext", "asciidoc", "latex", "org"];
    let view = &question.seen.view;
    let is_document = |id: &FileId| {
        let language = extract::language(view.lang(*id)).map_or("text", |language| language.name);
        DOCUMENTS.contains(&language)
    };
    let files = files_below(view, &outlined.path, &outlined.filter);
    files.iter().filter(|id| is_document(id)).count()
}

fn kind_of(name: &str) -> Option<OutlineKind> {
    let kinds = [
        OutlineKind::Summary,
        OutlineKind::Tree,
        OutlineKind::Symbols,
        OutlineKind::Map,
        OutlineKind::Headings,
        OutlineKind::Imports,
    ];
    kinds.into_iter().find(|kind| kind.name() == name)
}

fn page(
    call: &Call<'_>,
    question: &Asking<'_>,
    provenance: &ProvenanceOut,
    rows: &[Row],
    own: &Own<'_>,
) -> Result<Reply> {
    let skip = question.n_before();
    // A limit counts lines; without one the size of the answer is limit enough.
    let limit = call.arguments.number("limit").filter(|limit| *limit > 0);
    let end = skip.saturating_add(limit.unwrap_or(usize::MAX)).min(rows.len());
    let mut draft = Draft::new(call, question.asked.characters);
    if rows.is_empty() {
        draft.note("nothing there");
        if let Some(hint) = question.why_nothing()? {
            draft.hint(hint);
        }
    }
    let is_inside_a_file = rows.get(skip).is_some_and(|row| !row.is_file);
    let file = rows
        .get(..skip)
        .and_then(|told| told.iter().rposition(|row| row.is_file));
    if let Some(file) = file.filter(|_| is_inside_a_file) {
        draft.note(&format!("{} (continued)", rows[file].text));
    }
    let mut n_told = skip;
    for row in rows.get(skip..end).unwrap_or_default() {
        if !draft.push(&row.facts, &row.text, None) {
            break;
        }
        n_told += 1;
    }
    let is_rest_left = n_told < rows.len();
    let next = question
        .key()
        .map(|key| key.write((n_told as u32, 0)))
        .filter(|_| is_rest_left);
    Ok(draft.finish(provenance, next, own))
}

fn rows(body: OutlineBody, detail: Detail, kinds: &[&str]) -> Vec<Row> {
    let mut rows = Vec::new();
    let file = |path: &str, rows: &mut Vec<Row>| {
        rows.push(Row {
            facts: json!({"path": path}),
            text: path.to_owned(),
            is_file: true,
        });
    };
    match body {
        OutlineBody::Summary { .. } => {}
        OutlineBody::Tree { tree } => tree_rows(&tree, "", 0, &mut rows),
        OutlineBody::Symbols { results } | OutlineBody::Map { results, .. } => {
            for mut found in results {
                let is_wanted = |kind: &str| kinds.is_empty() || kinds.contains(&kind);
                found.definitions.retain(|definition| is_wanted(definition.kind));
                if found.definitions.is_empty() && !kinds.is_empty() {
                    continue;
                }
                file(&found.path, &mut rows);
                for definition in &found.definitions {
                    let indent = "  ".repeat(definition.level as usize);
                    let mut facts = serde_json::to_value(definition).unwrap_or_default();
                    let shown = match detail {
                        Detail::Ids => {
                            facts["signature"].take();
                            &definition.name
                        }
                        _ => &definition.signature,
                    };
                    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
                    rows.push(Row {
                        text: format!("{:>6} {indent}{shown}", definition.name_line),
                        facts,
                        is_file: false,
                    });
                }
            }
        }
        OutlineBody::Headings { results } => {
            for found in results {
                file(&found.path, &mut rows);
                rows.extend(found.headings.iter().map(|heading| Row {
                    facts: serde_json::to_value(heading).unwrap_or_default(),
                    text: format!(
                        "{:>6} {}{}",
                        heading.start_line,
                        "  ".repeat(usize::from(heading.level)),
                        heading.title
                    ),
                    is_file: false,
                }));
            }
        }
        OutlineBody::Imports { results } => {
            for found in results {
                file(&found.path, &mut rows);
                rows.extend(found.imports.iter().map(|import| Row {
                    facts: serde_json::to_value(import).unwrap_or_default(),
                    text: if import.names.is_empty() {
                        format!("{:>6} {}", import.line, import.module)
                    } else {
                        format!("{:>6} {}: {}", import.line, import.module, import.names.join(", "))
                    },
                    is_file: false,
                }));
            }
        }
    }
    rows
}

fn tree_rows(node: &NodeOut, parent: &str, depth: usize, rows: &mut Vec<Row>) {
    let path = match parent {
        "" => node.text.clone(),
        parent => format!("{parent}/{}", node.text),
    };
    let slash = if node.folder { "/" } else { "" };
    // Lines are counted when a file is indexed.
    let lines = if node.lines > 0 {
        format!("{} lines", node.lines)
    } else {
        String::new()
    };
    let counts = if node.folder {
        format!("{} files {lines}", node.files)
    } else {
        lines
    };
    rows.push(Row {
        facts: json!({"path": shown(&path), "folder": node.folder, "files": node.files, "lines": node.lines}),
        text: format!("{}{}{slash} {counts}", "  ".repeat(depth), node.name)
            .trim_end()
            .to_owned(),
        is_file: true,
    });
    for child in &node.children {
        tree_rows(child, &path, depth + 1, rows);
    }
}

fn summary_text(summary: &SummaryOut) -> String {
    let mut text = format!("{} files, {} lines\n", summary.files, summary.lines);
    for (title, shares) in [("languages", &summary.languages), ("folders", &summary.folders)] {
        let shares = shares.iter();
        let shares: Vec<String> = shares
            .map(|share| format!("{} ({} files, {} lines)", share.name, share.files, share.lines))
            .collect();
        text.push_str(&format!("{title}: {}\n", shares.join(", ")));
    }
    for (title, paths) in [
        ("entry points", &summary.entry_points),
        ("build files", &summary.build_files),
        ("test folders", &summary.test_folders),
    ] {
        if !paths.is_empty() {
            text.push_str(&format!("{title}: {}\n", paths.join(", ")));
        }
    }
    text.push_str("next: outline view=map for the main definitions, outline at=FOLDER, search\n");
    text
}
