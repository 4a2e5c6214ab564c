//! The checks of `doctor`.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{Finding, Remedy, Severity};
use crate::config::unknown_variables;
use crate::embed::EmbedError;
use crate::git::{BlobContent, GitVersion, Repository, RepositoryKind, git_version};
use crate::index::Segments;
use crate::model::{BlobId, chain};
use crate::remote::{EmbeddingApi, Endpoint, ServerProbe, is_about_key};
use crate::session::{FleetFolder, Freshness, OpError, Workspace, sizes};
use crate::setup::hooks::{self, Foreign, HookState, HookStatus, RunOutcome, Trial};
use crate::sidecar::{Sidecar, State, volume};

/// The oldest git version that supports all functions, because it introduced `git hook run`. (Only git 2.45 and later
/// use reftable.)
const KNOWN_GIT: GitVersion = GitVersion { major: 2, minor: 36 };
/// Free disk space below which there is a warning.
const LITTLE_SPACE_BYTES: u64 = 200 << 20;
pub(super) fn git_executable(path: &Path) -> Finding {
    let finding = |severity, message: String| Finding::new("git", severity, message);
    match git_version(path) {
        Ok(version) if version < KNOWN_GIT => finding(
            Severity::Warning,
            format!("git {version} is older than {KNOWN_GIT}, the oldest tested version"),
        ),
        Ok(version) => finding(Severity::Fine, format!("git {version}")),
        Err(error) => finding(
            Severity::Warning,
            format!("{error}; objects are read without it, but hooks, blame and refs kept in reftable need it"),
        ),
    }
}

/// Creates the finding for a repository, configuration or sidecar that cannot be opened.
pub(super) fn not_opened(path: &Path, error: &OpError) -> Finding {
    let area = if Repository::discover(path).is_err() {
        "repository"
    } else if Workspace::open_without_settings(path).is_err() {
        "sidecar"
    } else {
        "configuration"
    };
    let finding = Finding::new(area, Severity::Problem, format!("{error:#}"));
    match &error.hint.shell {
        Some(hint) => finding.mended_by(hint),
        None => finding,
    }
}

pub(super) fn repository(repository: &Repository) -> Vec<Finding> {
    let kind = match repository.kind() {
        RepositoryKind::Bare => "a bare repository",
        RepositoryKind::MainWorkTree => "a repository with its main work tree",
        RepositoryKind::LinkedWorkTree => "a linked work tree; its index is shared with the main one",
        RepositoryKind::Submodule => "a submodule, with an index of its own",
    };
    let root = repository.place();
    let note = |message| Finding::new("repository", Severity::Note, message);
    let mut findings = vec![Finding::new(
        "repository",
        Severity::Fine,
        format!("{}: {kind}", root.display()),
    )];
    if repository.is_shallow() {
        findings.push(
            note("a shallow clone: older commits are missing, and the history ends there")
                .mended_by("git fetch --unshallow"),
        );
    }
    if repository.is_partial() {
        findings.push(
            note("a partial clone: files with missing objects are not searched, and codescout does not fetch them")
                .mended_by("git fetch --refetch --no-filter"),
        );
    }
    match repository.head() {
        Ok(head) if head.commit().is_none() => findings.push(note("no commit yet: only files on disk are searched")),
        Ok(_) => {}
        Err(error) => findings.push(Finding::new("repository", Severity::Problem, format!("{error:#}"))),
    }
    findings
}

/// Time limit for the response of a server.
const EXAMINE_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn sidecar(workspace: &Workspace) -> Vec<Finding> {
    let finding = |severity, message: String| Finding::new("sidecar", severity, message);
    let root = workspace.storage.root();
    let mut findings = Vec::new();
    match workspace.storage.open_with_state() {
        Ok(Some((sidecar, state))) => {
            findings.push(match sidecar.check_writable() {
                Ok(()) => finding(Severity::Fine, format!("the index is kept in {}", root.display())),
                Err(error) => finding(
                    Severity::Warning,
                    format!(
                        "{} is not writable ({error}): files that are not indexed are processed again for every search",
                        root.display()
                    ),
                )
                .mended_by("make the folder writable, or set CODESCOUT_SIDECAR to one that is"),
            });
            findings.extend(state.into_iter().flat_map(|state| stored(workspace, &sidecar, &state)));
        }
        Ok(None) => findings.push(
            finding(
                Severity::Note,
                format!("no index yet; it will be kept in {}", root.display()),
            )
            .with(Remedy::Index),
        ),
        Err(error) => {
            let finding = finding(Severity::Problem, format!("{error:#}"));
            findings.push(match error.hint.shell {
                Some(hint) => finding.mended_by(hint),
                None => finding.with(Remedy::Repair),
            });
        }
    }
    match workspace.storage.needs_exclude_line() {
        Ok(true) if root.exists() => findings.push(
            finding(
                Severity::Warning,
                "info/exclude has no line for the index; only the .gitignore inside keeps it out of commits".into(),
            )
            .with(Remedy::Exclude),
        ),
        Ok(_) => {}
        Err(error) => findings.push(finding(
            Severity::Warning,
            format!("info/exclude cannot be read: {error}"),
        )),
    }
    match volume(root) {
        Ok(volume) => {
            if volume.is_network {
                findings.push(
                    finding(
                        Severity::Warning,
                        "the index is on a network file system, where locks may fail and reading is slow".into(),
                    )
                    .mended_by("set CODESCOUT_SIDECAR to a folder on a local disk"),
                );
            }
            if volume.free_bytes < LITTLE_SPACE_BYTES {
                findings.push(
                    finding(
                        Severity::Warning,
                        format!("{} MB are free on its disk", volume.free_bytes / 1_000_000),
                    )
                    .mended_by("codescout gc"),
                );
            }
        }
        Err(error) => findings.push(finding(Severity::Warning, format!("cannot inspect its disk: {error}"))),
    }
    findings
}

/// Checks the size of the index and opens its segments. In contrast to `verify`, does not read every byte.
fn stored(workspace: &Workspace, sidecar: &Sidecar, state: &State) -> Vec<Finding> {
    let finding = |severity, message: String| Finding::new("sidecar", severity, message);
    let size = match sizes(sidecar, state) {
        Ok(sizes) => finding(Severity::Fine, sizes.to_text()),
        Err(error) => finding(Severity::Warning, format!("cannot determine its size: {error:#}")),
    };
    let profile = workspace.models.own_profile();
    let opened = Segments::open_newest(sidecar, state, &profile);
    let damage = opened
        .err()
        .map(|error| finding(Severity::Problem, format!("damaged: {}", chain(&error))).with(Remedy::Repair));
    std::iter::once(size).chain(damage).collect()
}

/// Maximum number of unreadable objects to check again, and to list.
const MAX_LOOKED_AT: usize = 1_000;
const MAX_NAMED: usize = 3;

/// Checks again the objects that could not be read during indexing or recording. `git fsck` checks all objects.
pub(super) fn objects(workspace: &Workspace) -> Vec<Finding> {
    let finding = |severity, message: String| Finding::new("objects", severity, message);
    let met = match workspace.records().unread_objects() {
        Ok(met) => met,
        Err(error) => return vec![finding(Severity::Warning, format!("{error:#}"))],
    };
    let mut reader = workspace.repository.reader();
    let (mut damaged, mut missing, mut is_back) = (Vec::new(), Vec::new(), false);
    for (path, oid) in met.iter().take(MAX_LOOKED_AT) {
        let name = match path {
            Some(path) => format!("{oid} ({})", path.to_text()),
            None => oid.to_string(),
        };
        match reader.blob(BlobId(*oid), workspace.build_options().max_blob_bytes) {
            Ok(BlobContent::Missing) => missing.push(name),
            Ok(BlobContent::Damaged) | Err(_) => damaged.push(name),
            Ok(BlobContent::Content(_) | BlobContent::TooLarge { .. }) => is_back = true,
        }
    }
    let message = |names: &[String], what: &str| {
        let (named, n_more) = (
            &names[..names.len().min(MAX_NAMED)],
            names.len().saturating_sub(MAX_NAMED),
        );
        let more = if n_more > 0 {
            format!(" and {n_more} more")
        } else {
            String::new()
        };
        let blobs = if names.len() == 1 { "blob" } else { "blobs" };
        format!(
            "{} {what} {blobs} that the index needs: {}{more}",
            names.len(),
            named.join(", ")
        )
    };
    let mut findings = Vec::new();
    if !damaged.is_empty() {
        findings.push(finding(Severity::Problem, message(&damaged, "damaged")).mended_by(
            "git fsck lists their files: move these out of the objects folder, then git fetch --refetch, then \
             codescout index",
        ));
    }
    // In a partial clone missing objects are expected, and another check reports them.
    if !missing.is_empty() && !workspace.repository.is_partial() {
        findings.push(
            finding(Severity::Problem, message(&missing, "missing"))
                .mended_by("git fetch --refetch, or copy the objects from another clone; then codescout index"),
        );
    }
    // The list also contains versions that were never missing: those with which a missing version would have been
    // compared.
    if is_back && damaged.is_empty() && missing.is_empty() {
        findings.push(
            finding(
                Severity::Note,
                "blobs that were missing or damaged are available again".to_owned(),
            )
            .mended_by("codescout index"),
        );
    }
    findings
}

pub(super) fn index(workspace: &Workspace) -> Option<Finding> {
    let finding = |severity, message: &str| Finding::new("index", severity, message);
    let freshness = workspace
        .target("WORKTREE")
        .and_then(|target| target.map(|target| workspace.freshness(target.tree)).transpose());
    match freshness {
        // Without a commit there is nothing to index, and another check reports a missing sidecar.
        Ok(None | Some(Freshness::Missing)) => None,
        Ok(Some(Freshness::UpToDate)) => Some(finding(Severity::Fine, "up to date with HEAD")),
        Ok(Some(Freshness::Damaged(what))) => {
            let message = format!("cannot read the index of HEAD: {what}");
            Some(finding(Severity::Problem, &message).with(Remedy::Repair))
        }
        Ok(Some(Freshness::OtherSettings)) => Some(
            finding(
                Severity::Note,
                "HEAD is indexed with other settings; the next search rebuilds the index",
            )
            .with(Remedy::Index),
        ),
        Ok(Some(Freshness::Behind)) => {
            Some(finding(Severity::Note, "HEAD is not indexed yet; the next query indexes it").with(Remedy::Index))
        }
        Err(error) => Some(finding(Severity::Problem, &format!("{error:#}")).with(Remedy::Repair)),
    }
}

/// Checks that git would run the hooks, and runs installed hooks as a test.
pub(super) fn hooks(workspace: &Workspace) -> Vec<Finding> {
    let finding = |severity, message: String| Finding::new("hooks", severity, message);
    let repository = &workspace.repository;
    let status = hooks::status(repository, workspace.storage.root());
    let mut findings: Vec<Finding> = status
        .managers
        .iter()
        .map(|seen| {
            finding(
                Severity::Note,
                format!(
                    "{} manages hooks here ({})",
                    seen.manager.name(),
                    seen.evidence.display()
                ),
            )
        })
        .collect();
    let is_ours = |hook: &&HookStatus| !matches!(hook.state, HookState::Missing | HookState::Foreign);
    if status.hooks.iter().filter(is_ours).count() == 0 {
        findings.push(
            finding(
                Severity::Note,
                "no hooks: the first query after a commit or checkout updates the index".into(),
            )
            .mended_by("codescout hooks install"),
        );
        return findings;
    }
    for hook in status.hooks.iter().filter(|hook| !hook.is_called) {
        let why = hook.note.as_deref().unwrap_or("it is not installed");
        findings.push(
            finding(
                Severity::Warning,
                format!("git does not call {}: {why}", hook.event.name()),
            )
            .mended_by("codescout hooks install"),
        );
    }
    findings.extend(tried(workspace));
    findings.extend(status.last_run.and_then(|run| last_run(&run)));
    findings
}

fn tried(workspace: &Workspace) -> Vec<Finding> {
    let finding = |severity, message: String| Finding::new("hooks", severity, message);
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return vec![finding(Severity::Warning, format!("the hooks were not tried: {error}"))],
    };
    let trials = hooks::trial(
        &workspace.repository,
        workspace.storage.root(),
        &program,
        Foreign::LeaveAlone,
    );
    let found = trials.into_iter().filter_map(|(event, trial)| match trial {
        Trial::Called { elapsed } => Some(finding(
            Severity::Fine,
            format!("git calls {} ({} ms)", event.name(), elapsed.as_millis()),
        )),
        Trial::NotCalled { why } => Some(
            finding(
                Severity::Warning,
                format!("git did not run {} in a test: {why}", event.name()),
            )
            .mended_by("codescout hooks install"),
        ),
        Trial::NotTried { why } => Some(finding(
            Severity::Note,
            format!("{} was not tried: {why}", event.name()),
        )),
        Trial::NotInstalled => None,
    });
    found.collect()
}

fn last_run(run: &hooks::Entry) -> Option<Finding> {
    let why = run.why.as_deref().unwrap_or_default();
    let message = match run.outcome {
        RunOutcome::Failed => format!("the last run, after {} at {}, failed: {why}", run.event, run.at),
        RunOutcome::Interrupted => format!("the last run, after {} at {}, was interrupted", run.event, run.at),
        RunOutcome::Started | RunOutcome::Indexed => return None,
    };
    Some(Finding::new("hooks", Severity::Warning, message).mended_by("codescout index"))
}

pub(super) fn configuration() -> Vec<Finding> {
    let unknown = unknown_variables();
    unknown
        .into_iter()
        .map(|name| {
            Finding::new(
                "configuration",
                Severity::Warning,
                format!("unknown environment variable {name}"),
            )
        })
        .collect()
}

/// Checks that the embedding server returns correct responses in time.
pub(super) fn embedder(workspace: &Workspace, interrupt: &AtomicBool) -> Vec<Finding> {
    let Some(model) = workspace.models.remote() else {
        return Vec::new();
    };
    let options = model.options();
    let server = Examinee {
        area: "embedder",
        name: &options.model,
        endpoint: &options.endpoint,
        section: "embedding",
        patience: "embedding.query_timeout_ms",
        without: "the built-in model is used",
    };
    let found = model.examine(EXAMINE_WITHIN, interrupt);
    let found = found.map_err(|error| server.unusable(&error));
    let mut findings = server.findings(found.map(|found| Answered::of(&found, "dimensions", options.query_timeout)));
    if options.model.is_empty() && options.api != EmbeddingApi::Tei {
        let unnamed = Finding::new(server.area, Severity::Warning, "no model is named");
        findings.push(unnamed.mended_by("codescout config set embedding.model NAME"));
    }
    findings
}

/// Checks that the server for sparse vectors returns correct responses in time.
pub(super) fn sparse(workspace: &Workspace, interrupt: &AtomicBool) -> Vec<Finding> {
    let Some(model) = workspace.models.remote_sparse() else {
        return Vec::new();
    };
    let options = model.options();
    let server = Examinee {
        area: "sparse",
        name: &options.model,
        endpoint: &options.endpoint,
        section: "sparse",
        patience: "sparse.query_timeout_ms",
        without: "sparse vectors are not used",
    };
    let found = model.examine(EXAMINE_WITHIN, interrupt);
    let found = found.map_err(|error| server.unusable(&error));
    server.findings(found.map(|found| Answered::of(&found, "tokens for a word", options.query_timeout)))
}

/// Checks that the reranker responds.
pub(super) fn reranker(workspace: &Workspace, interrupt: &AtomicBool) -> Vec<Finding> {
    let Some(reranker) = workspace.models.reranker() else {
        return Vec::new();
    };
    let server = Examinee {
        area: "reranker",
        name: reranker.model(),
        endpoint: &reranker.options().endpoint,
        section: "rerank",
        patience: "rerank.timeout_ms",
        without: "results are not reranked",
    };
    let (began, patience) = (Instant::now(), reranker.options().timeout);
    let found = reranker.examine(interrupt).map(|elapsed| Answered {
        message: in_time(elapsed),
        elapsed,
        patience,
    });
    // The check uses the time limit of queries.
    let is_too_slow = found.is_err() && began.elapsed() >= patience;
    let mut findings = server.findings(found.map_err(|error| server.failed(&error)));
    if is_too_slow {
        let longer = server.longer(2 * patience);
        findings[0].mend = Some(format!("{longer}, or: codescout config set rerank.server ADDRESS"));
    }
    findings
}

fn in_time(elapsed: Duration) -> String {
    format!("answers in {} ms", elapsed.as_millis())
}

/// The response of a server to a check.
struct Answered {
    message: String,
    elapsed: Duration,
    /// Time limit of queries.
    patience: Duration,
}

impl Answered {
    /// Describes the response of an embedding server. `unit` is the unit of the vectors' size.
    fn of(found: &ServerProbe, unit: &str, patience: Duration) -> Self {
        let reads = found.limits.max_tokens;
        let reads = reads.map(|max_tokens| format!("; input limit: {max_tokens} tokens"));
        let (elapsed, reads) = (found.elapsed, reads.unwrap_or_default());
        Self {
            message: format!("{} with {} {unit}{reads}", in_time(elapsed), found.dim),
            elapsed,
            patience,
        }
    }
}

/// A server to check.
struct Examinee<'a> {
    area: &'static str,
    name: &'a str,
    endpoint: &'a Endpoint,
    /// The section with its settings.
    section: &'static str,
    /// The setting for the time limit of queries.
    patience: &'static str,
    /// What codescout does without the server.
    without: &'static str,
}

impl Examinee<'_> {
    fn findings(&self, found: Result<Answered, Finding>) -> Vec<Finding> {
        let finding = |severity, message: String| Finding::new(self.area, severity, message);
        let host = self.endpoint.host();
        let mut findings = vec![match found {
            Ok(found) if found.elapsed > found.patience => finding(
                Severity::Warning,
                format!(
                    "{} at {host} {}, longer than the query time limit of {} ms; after it {}",
                    self.name,
                    found.message,
                    found.patience.as_millis(),
                    self.without
                ),
            )
            .mended_by(self.longer(2 * found.elapsed)),
            Ok(found) => finding(Severity::Fine, format!("{} at {host} {}", self.name, found.message)),
            Err(failed) => failed,
        }];
        if self.endpoint.is_in_clear() {
            findings.push(finding(
                Severity::Warning,
                format!("requests to {host} use plain http: the text can be read by anyone on the network path"),
            ));
        }
        findings
    }

    /// Returns the command that sets the time limit of queries to `patience`.
    fn longer(&self, patience: Duration) -> String {
        let in_ms = patience.as_millis().next_multiple_of(500);
        format!("codescout config set {} {in_ms}", self.patience)
    }

    /// The server does not answer.
    fn failed(&self, error: &(dyn Error + 'static)) -> Finding {
        self.finding(error, "it answers")
            .mended_by(reached(self.section, error))
    }

    /// The server does not make vectors that can be used.
    fn unusable(&self, error: &EmbedError) -> Finding {
        let section = self.section;
        let mend = match error {
            EmbedError::OtherModel { .. } => format!(
                "restore the previous model; to use the new one, run codescout config set {section}.revision NAME, \
                 then codescout index"
            ),
            EmbedError::OtherDimensions { wanted, .. } => {
                format!("run codescout config unset {section}.dimensions (now {wanted})")
            }
            EmbedError::Unusable { .. } => {
                format!("check the model and the log of the server, or: codescout config unset {section}.server")
            }
            _ => return self.failed(error),
        };
        self.finding(error, "that is fixed").mended_by(mend)
    }

    fn finding(&self, error: &dyn Error, until: &str) -> Finding {
        let message = format!("{}; until {until} {}", chain(error), self.without);
        Finding::new(self.area, Severity::Warning, message)
    }
}

/// Returns the fix for a server that does not respond. `section` contains its settings.
fn reached(section: &str, error: &(dyn Error + 'static)) -> String {
    if is_about_key(error) {
        format!(
            "run codescout config set {section}.key_file PATH with a file that contains the right key, or set the \
             environment variable named by {section}.key_variable"
        )
    } else {
        format!("codescout config set {section}.server ADDRESS, or: codescout config unset {section}.server")
    }
}

/// Lists all data that leaves this process, and its destinations.
pub(super) fn what_leaves(workspace: &Workspace) -> Vec<Finding> {
    let finding = |severity, message: String| Finding::new("privacy", severity, message);
    let dense = workspace.models.remote().map(|model| model.options());
    let sparse = workspace.models.remote_sparse().map(|model| model.options());
    let mut findings = Vec::new();
    let mut tell = |message: String| findings.push(finding(Severity::Note, message));
    let chunks = "the text of every chunk of the revisions that are indexed or evaluated with codescout eval, with \
        the names of the enclosing definitions; no paths, no history, nothing from files whose names suggest secrets";
    let struck = "keys, tokens and passwords are detected and removed first; other secrets are not detected";
    let model = |name: &str| (!name.is_empty()).then(|| format!("the name of the model: {name}"));
    if let Some(options) = dense {
        tell(format!("{}, the embedder:", destination(&options.endpoint)));
        tell(chunks.to_owned());
        tell("every query, except grep and mode keyword".to_owned());
        tell(struck.to_owned());
        model(&options.model).into_iter().for_each(&mut tell);
    }
    if let Some(options) = sparse {
        tell(format!("{}, for sparse vectors:", destination(&options.endpoint)));
        tell(chunks.to_owned());
        tell("every query with mode auto or hybrid".to_owned());
        tell(struck.to_owned());
    }
    if let Some(reranker) = workspace.models.reranker() {
        tell(format!("{}, the reranker:", destination(&reranker.options().endpoint)));
        tell(format!(
            "every query in prose, and every query that requests reranking, with the text of its first {} results \
             and the names of the enclosing definitions; nothing from uncommitted files or files whose names suggest secrets",
            workspace.config.rerank.n_candidates()
        ));
        tell(struck.to_owned());
        model(&reranker.options().model).into_iter().for_each(&mut tell);
    }
    leaves_of_fleet().into_iter().for_each(tell);
    if findings.is_empty() {
        findings.push(finding(
            Severity::Fine,
            "nothing leaves this machine: the embedding model is inside the program, and no remote service is \
             configured"
                .to_owned(),
        ));
    }
    findings
}

/// Lists the data that the server of the user's fleet receives. Empty without a fleet.
fn leaves_of_fleet() -> Vec<String> {
    let folder = FleetFolder::at(None).ok().filter(|folder| folder.settings().exists());
    let config = folder.and_then(|folder| folder.config().ok());
    let Some(options) = config.and_then(|config| config.qdrant.options().ok()?) else {
        return Vec::new();
    };
    vec![
        format!("{}, where codescout fleet finds files:", destination(&options.endpoint)),
        "for each chunk of the fleet's repositories its vector and up to three paths; for each file its path, \
         language, names of definitions and hashes of its words; for each repository its name, groups and commit"
            .to_owned(),
        "no text, and nothing from files whose names suggest secrets".to_owned(),
        "the vector and the hashed words of every question about the fleet".to_owned(),
    ]
}

/// Describes a server: its address, its proxy, and whether a key is sent.
fn destination(endpoint: &Endpoint) -> String {
    let to = if endpoint.is_loopback() {
        format!("{endpoint} (this machine)")
    } else {
        endpoint.to_string()
    };
    let by = endpoint
        .proxy_host()
        .map_or(String::new(), |host| format!(", through the proxy {host}"));
    let key = if endpoint.has_key() {
        "with a key"
    } else {
        "without a key"
    };
    format!("to {to}{by}, {key}")
}

/// Like [`what_leaves`], if the settings cannot be read.
pub(super) fn what_leaves_unknown() -> Finding {
    Finding::new(
        "privacy",
        Severity::Fine,
        "nothing leaves this machine: no server is used, because the repository's settings cannot be read",
    )
}
