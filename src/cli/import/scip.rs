//! `codescout import scip`

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde::Serialize;

use super::{open, size};
use crate::cli::Found;
use crate::cli::args::{Global, ImportScipArgs};
use crate::cli::progress::CliProgress;
use crate::cli::render::{Output, one_line};
use crate::config::Overrides;
use crate::ingest::{ImportedFacts, Target};
use crate::model::count::count;
use crate::precise::Index;
use crate::session::{Context as _, Result, Workspace, ensure};

/// Limit on the size of an index in bytes. It is read into memory.
const MAX_INDEX_BYTES: u64 = 2 << 30;

/// The outcome of importing a SCIP file.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct ImportScipOut {
    indexer: String,
    version: String,
    commit: Option<String>,
    folder: String,
    documents: usize,
    joined: usize,
    refused: BTreeMap<&'static str, RefusedOut>,
    names: usize,
    local_names: usize,
    names_left_out: usize,
    stored_documents: u32,
    index_bytes: usize,
    stored_bytes: u64,
    took_ms: u64,
}

#[derive(Debug, Serialize)]
struct RefusedOut {
    documents: usize,
    paths: Vec<String>,
}

impl ImportScipOut {
    fn of(target: Target, imported: ImportedFacts, index_bytes: usize) -> Self {
        let refused = imported.refused.iter().map(|(reason, refused)| {
            let paths = refused.paths.iter().map(|path| path.to_text().into_owned());
            let out = RefusedOut {
                documents: refused.n,
                paths: paths.collect(),
            };
            (reason.to_text(), out)
        });
        Self {
            commit: target.commit.map(|commit| commit.to_string()),
            folder: imported.folder,
            documents: imported.n_documents,
            joined: imported.n_joined,
            refused: refused.collect(),
            names: imported.n_names,
            local_names: imported.n_local,
            names_left_out: imported.n_left_out,
            stored_documents: imported.n_stored,
            index_bytes,
            stored_bytes: imported.n_bytes,
            took_ms: imported.elapsed.as_millis() as u64,
            indexer: imported.tool,
            version: imported.version,
        }
    }

    pub(in crate::cli) fn print(&self, output: &mut Output) -> Result<()> {
        output.line(&format!(
            "{} {}: {} of {} joined, {}; {} local, {} left out; {} stored for {} ({:.2} s)",
            one_line(&self.indexer),
            one_line(&self.version),
            self.joined,
            count(self.documents, "file"),
            count(self.names, "name"),
            self.local_names,
            self.names_left_out,
            size(self.stored_bytes),
            count(self.stored_documents, "file"),
            self.took_ms as f64 / 1e3
        ))?;
        for (reason, refused) in &self.refused {
            let more = match refused.documents - refused.paths.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let paths = one_line(&refused.paths.join(", "));
            output.line(&format!("not joined, {reason}: {paths}{more}"))?;
        }
        Ok(())
    }
}

pub(super) fn run(global: &Global, args: &ImportScipArgs, output: &mut Output) -> Result<Found> {
    let mut workspace = Workspace::open(&global.repo, &Overrides::default())?;
    workspace.start_in(&global.repo);
    let reference = args.commit.as_deref().unwrap_or(&global.reference);
    let answer = import(&workspace, &args.file, reference, global)?;
    if output.json {
        output.json(&answer)?;
    } else {
        answer.print(output)?;
    }
    Ok(Found::Something)
}

/// Imports a SCIP file about a revision.
pub(in crate::cli) fn import(
    workspace: &Workspace,
    path: &Path,
    reference: &str,
    global: &Global,
) -> Result<ImportScipOut> {
    let cannot = || format!("cannot import {}", path.display());
    let mut bytes = Vec::new();
    let mut file = open(path)?.take(MAX_INDEX_BYTES + 1);
    file.read_to_end(&mut bytes).with_context(cannot)?;
    ensure!(
        bytes.len() as u64 <= MAX_INDEX_BYTES,
        "{} is larger than {}: import the index of each part of the project by itself",
        path.display(),
        size(MAX_INDEX_BYTES)
    );
    let index = Index::read(&bytes).with_context(cannot)?;
    let progress = CliProgress::new(global.quiet);
    let imported = workspace.import_facts(&index, reference, progress.ctx());
    let (target, imported) = imported.with_context(cannot)?;
    Ok(ImportScipOut::of(target, imported, bytes.len()))
}
