//! `codescout export`

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::Found;
use super::args::{ExportArgs, Global};
use super::import::{BundleOut, size};
use super::progress::CliProgress;
use super::render::{Output, note, one_line};
use crate::bundle::{Kind, SigningKey};
use crate::session::{Context as _, Packing, Result, Workspace, check_output, ensure, write_whole};

#[derive(Debug, Serialize)]
struct ExportOut {
    file: String,
    bundle: BundleOut,
    bytes: u64,
    took_ms: u64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &ExportArgs, output: &mut Output) -> Result<Found> {
    let started = Instant::now();
    let key = args.sign.as_deref().map(read_key).transpose()?;
    let revisions = match args.revisions.as_slice() {
        [] => vec![global.reference.clone()],
        some => some.to_vec(),
    };
    let kind = if args.ready { Kind::Ready } else { Kind::Records };
    let is_stdout = args.file == Path::new("-");
    ensure!(
        !is_stdout || !output.is_terminal(),
        "refusing to write a bundle to a terminal; name a file"
    );
    let known = workspace.known(&revisions, CliProgress::new(global.quiet).ctx())?;
    let progress = CliProgress::new(global.quiet);
    let commits = if args.history {
        Some(workspace.records().given_commits(&known.commits, progress.ctx())?)
    } else {
        None
    };
    let added = if args.vectors {
        workspace.added_profiles()
    } else {
        Vec::new()
    };
    ensure!(
        !args.vectors || !added.is_empty(),
        "only the built-in model is configured; to use another one: codescout config set embedding.server ADDRESS"
    );
    ensure!(
        !args.vectors || workspace.n_rows(&known).iter().any(|(_, n_rows)| *n_rows > 0),
        "there are no vectors of the configured models yet; run codescout index"
    );
    let packing = Packing {
        kind,
        added: &added,
        commits: commits.as_ref(),
        facts: &known.facts()?,
        key: key.as_ref(),
    };
    let pack = |to: &mut dyn Write| workspace.pack(&known, packing, to);
    let packed = if is_stdout {
        pack(&mut output.raw()?)
    } else {
        write_whole(&check_output(workspace, &args.file)?, &args.file, |file| pack(file))
    }?;
    let answer = ExportOut {
        file: args.file.display().to_string(),
        bundle: BundleOut::of(&packed.header, key.map(|key| key.public())),
        bytes: packed.n_bytes,
        took_ms: started.elapsed().as_millis() as u64,
    };
    let said = format!(
        "{}: {} in {}",
        one_line(&answer.file),
        answer.bundle.content(),
        size(packed.n_bytes)
    );
    match (is_stdout, output.json) {
        // The bundle is written to standard output, so the message goes to standard error.
        (true, _) if !global.quiet => note(&said),
        (true, _) => {}
        (false, true) => output.json(&answer)?,
        (false, false) => output.line(&said)?,
    }
    Ok(Found::Something)
}

/// Reads a signing key from a PEM file.
pub(super) fn read_key(path: &Path) -> Result<SigningKey> {
    let cannot = || format!("cannot use the key {}", path.display());
    let text = fs::read_to_string(path).with_context(cannot)?;
    SigningKey::from_pem(&text).with_context(cannot)
}
